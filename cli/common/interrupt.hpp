#pragma once

#include "quoin/context.hpp"

namespace quoin::cli {

/// While a guard lives, the first SIGINT or SIGTERM requests `ctx` to stop, so that the library throws Interrupted and
/// every unfinished output is removed on the way out. A second signal removes the outputs and ends the program at once.
class InterruptGuard {
public:
    template <class D>
    explicit InterruptGuard(Context<D>& ctx)
        : InterruptGuard(Target{&ctx, [](void* of) { static_cast<Context<D>*>(of)->request_stop(); }}) {}
    /// The first signal stops nothing by itself. A loop of the program must check `interrupted()`.
    InterruptGuard() : InterruptGuard(Target{nullptr, [](void*) {}}) {}
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

    /// A context of any device, and how to stop it.
    struct Target {
        void* context;
        void (*request_stop)(void*);
    };

private:
    explicit InterruptGuard(Target target);
    Target target_;
};

/// Whether a signal has come; for the program's own loops.
bool interrupted();
/// Throws Interrupted if a signal has come.
void throw_if_interrupted();

/// The shell's convention for a program ended by the signal that came: 128 + its number, so 130 for Ctrl-C.
int interrupted_exit_code();

}  // namespace quoin::cli
