#pragma once

// Copies between the host's memory and a device's. On the host they are plain copies.

#include "primitives/context.hpp"

namespace quoin {

/// Contexts for copies from the host and to the host. Each has its own order, and runs concurrently with the other and
/// with `ctx`. On the host they are `ctx` itself. `wait_for` orders them.
template <class D>
Context<D>& copy_in_stream(Context<D>& ctx);
template <class D>
Context<D>& copy_out_stream(Context<D>& ctx);

/// B := A, from any memory of the host, in the order of the context's work. A stays as it is until a wait for that
/// work. A GPU reads pinned memory in place; other memory goes through eight pinned buffers of 32 MiB.
template <class T, class D>
void start_copy_from_host(Context<D>& ctx, View<const T, Host> A, View<T, D> B);
/// B := A, to any memory of the host. B is complete once the context has been waited for after `finish_copies`; pinned
/// memory needs only the wait. What follows in the context's order may overwrite A.
template <class T, class D>
void start_copy_to_host(Context<D>& ctx, View<const T, D> A, View<T, Host> B);
/// Later work on `ctx` waits for the copies that the host's cores still make for it.
template <class D>
void finish_copies(Context<D>& ctx);

/// Memory of the host for `bytes`, uninitialised, which copies read and write in place: the same at every call, for one
/// panel or a few numbers on their way. Waits for the context where it has to grow.
template <class D>
void* pinned_staging(Context<D>& ctx, std::size_t bytes);

}  // namespace quoin
