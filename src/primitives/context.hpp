#pragma once

// The operations of every context, and the types that belong to a device.

#include "quoin/context.hpp"
#include "quoin/scalar.hpp"

/// The scalars that a translation unit is compiled for. Sources whose formulas have their conjugates are compiled a
/// second time for complex numbers, so far for tests/complex_test.cpp alone; tests/CMakeLists.txt lists them.
#ifdef QUOIN_COMPLEX
#define QUOIN_F32 std::complex<float>
#define QUOIN_F64 std::complex<double>
#else
#define QUOIN_F32 float
#define QUOIN_F64 double
#endif

/// QUOIN_IMPLEMENT(D, primitive, …) instantiates primitives for these scalars on device D, in the translation unit that
/// defines them.
#define QUOIN_IMPLEMENT(D, ...) QUOIN_RESCAN(QUOIN_IMPLEMENT_FIRST(D, __VA_ARGS__))
#define QUOIN_IMPLEMENT_FIRST(D, primitive, ...)                        \
    template decltype(primitive<QUOIN_F32, D>) primitive<QUOIN_F32, D>; \
    template decltype(primitive<QUOIN_F64, D>) primitive<QUOIN_F64, D>; \
    __VA_OPT__(QUOIN_IMPLEMENT_REST QUOIN_PARENTHESES(D, __VA_ARGS__))
#define QUOIN_IMPLEMENT_REST() QUOIN_IMPLEMENT_FIRST
#define QUOIN_PARENTHESES ()
// one scan for each primitive: 16 of them at most
#define QUOIN_RESCAN(...) QUOIN_RESCAN_3(QUOIN_RESCAN_3(QUOIN_RESCAN_3(__VA_ARGS__)))
#define QUOIN_RESCAN_3(...) QUOIN_RESCAN_1(QUOIN_RESCAN_1(QUOIN_RESCAN_1(__VA_ARGS__)))
#define QUOIN_RESCAN_1(...) __VA_ARGS__

namespace quoin {

/// SumOf<T, D>::Type: the type of sums over the rows of a matrix of T on device D, and of the triangles made from them.
/// T on the host. Double on a GPU: products of f32 are exact in it, and tensor cores add it as fast as other units add
/// f32.
template <class T, class D>
struct SumOf;
template <class T, class D>
using Sum = typename SumOf<T, D>::Type;

/// Throws Interrupted if the context was asked to stop. Algorithms call it between steps.
template <class D>
void throw_if_stopped(Context<D>& ctx);
template <>
void throw_if_stopped(Context<Host>& ctx);  // declared before its first use where sources are compiled as one

/// Returns a second context. Its work runs after the work already on `ctx`, and may overlap with later work on `ctx`.
/// On the host it is `ctx` itself, on a GPU a stream of higher priority.
template <class D>
Context<D>& side_stream(Context<D>& ctx);
/// Has later work on `ctx` run after all work already on `other`.
template <class D>
void wait_for(Context<D>& ctx, Context<D>& other);

/// A moment of a context's work, for which other contexts can wait later.
///
///     void record(Context<D>& ctx);         // sets the moment after all work already on ctx
///     void precede(Context<D>& ctx) const;  // has later work on ctx run after the moment; nothing without a record
///     void wait() const;                    // has the caller wait for the moment
template <class D>
class Event;

/// The time between its construction and `stop`, in the order of the context's work; `seconds` waits for the work
/// before `stop`.
///
///     explicit WorkTimer(Context<D>& ctx);
///     void stop();
///     double seconds() const;
template <class D>
class WorkTimer;

/// A span of the context's work on its trace, from construction to destruction; nothing where no trace is attached.
/// `name` must outlive it. On a GPU it covers the work that is enqueued on the stream in between, on `row` or the row
/// of the stream.
///
///     Span(Context<D>& ctx, const char* name, Index step = -1);
///     Span(Context<D>& ctx, const char* name, Index step, Trace::Row row);
template <class D>
class Span;

template <class D, class... Arguments>
Span(Context<D>&, Arguments...) -> Span<D>;

/// The host's cores, for work that they do while the context's device computes.
template <class D>
Context<Host>& host_context(Context<D>& ctx);

/// Bytes of the device's memory.
struct MemoryInUse {
    double own = -1;        ///< held by this context and its streams; −1 on the host
    double obtainable = 0;  ///< free on the device, or their own
};
/// Returns the memory of the context's device that is in use. CUDA's own context and the loaded kernels are not
/// counted.
template <class D>
MemoryInUse memory_in_use(Context<D>& ctx);
/// Caps the workspace; 0: no cap. Primitives that would take more do with less. The host knows no cap. Waits.
template <class D>
void limit_workspace(Context<D>& ctx, double bytes);

}  // namespace quoin
