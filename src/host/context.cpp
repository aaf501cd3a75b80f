#include "quoin/context.hpp"

#include <omp.h>
#include <pthread.h>

#include "host/parallel.hpp"
#include "primitives.hpp"

namespace quoin {

namespace host {

namespace {
// a thread that the child process starts has OpenMP threads of its own
thread_local bool made_by_fork = false;
[[maybe_unused]] const int handler = pthread_atfork(nullptr, nullptr, [] { made_by_fork = true; });
}  // namespace

bool forked() { return made_by_fork; }

}  // namespace host

Arena::~Arena() {
    release(0, 0);
    detail::free_host(base_);
}

void* Arena::take(std::size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    wanted_ += bytes;
    if (used_ + bytes <= size_) {
        void* p = base_ + used_;
        used_ += bytes;
        return p;
    }
    extra_.push_back(detail::allocate_host(bytes));
    return extra_.back();
}

void Arena::release(std::size_t used, std::size_t extra) {
    while (extra_.size() > extra) {
        detail::free_host(extra_.back());
        extra_.pop_back();
    }
    used_ = used;
    if (used_ == 0 && extra_.empty()) {
        if (wanted_ > size_) {
            detail::free_host(base_);
            base_ = nullptr;
            size_ = 0;
            base_ = static_cast<char*>(detail::allocate_host(wanted_));
            size_ = wanted_;
        }
        wanted_ = 0;
    }
}

Context<Host>::Context(int threads) : threads_(threads > 0 ? threads : omp_get_max_threads()) {
    if (threads < 0) throw InvalidArgument("threads must not be negative, and is " + std::to_string(threads));
    state_ = std::make_unique<State>();
}
Context<Host>::Context(Context&&) noexcept = default;
Context<Host>& Context<Host>::operator=(Context&&) noexcept = default;
Context<Host>::~Context() = default;

double Context<Host>::flops_done() const { return state_->flops.load(std::memory_order_relaxed); }
void Context<Host>::reset_progress() { state_->flops = 0; }
void Context<Host>::request_stop() noexcept { state_->stop = true; }
void Context<Host>::clear_stop() noexcept { state_->stop = false; }

void Context<Host>::attach(Trace* trace) { state_->trace = trace; }
Trace* Context<Host>::trace() const { return state_->trace; }

void throw_if_stopped(Context<Host>& ctx) {
    if (ctx.state().stop.load(std::memory_order_relaxed)) throw Interrupted();
}

Context<Host>& work_beside(Context<Host>& ctx) { return ctx; }
void wait_for(Context<Host>&, Context<Host>&) {}

Context<Host>& moving_in(Context<Host>& ctx) { return ctx; }
Context<Host>& moving_out(Context<Host>& ctx) { return ctx; }
template <class T>
void move_in(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T, Host> B) {
    copy<T>(ctx, A, B);
}
template <class T>
void move_out(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T> B) {
    copy<T>(ctx, A, B);
}
void settle(Context<Host>&) {}
MemoryInUse memory_in_use(Context<Host>&) { return {}; }
void limit_workspace(Context<Host>&, double) {}

template void move_in<float>(Context<Host>&, MatrixView<const float>, MatrixView<float>);
template void move_in<double>(Context<Host>&, MatrixView<const double>, MatrixView<double>);
template void move_out<float>(Context<Host>&, MatrixView<const float>, MatrixView<float>);
template void move_out<double>(Context<Host>&, MatrixView<const double>, MatrixView<double>);

Context<Host>& host_beside(Context<Host>& ctx) { return ctx; }
void* travelling_memory(Context<Host>& ctx, std::size_t bytes) {
    Matrix<std::byte>& memory = ctx.state().travelling;
    if (static_cast<std::size_t>(memory.rows()) < bytes) memory = Matrix<std::byte>(static_cast<Index>(bytes), 1);
    return memory.data();
}

template <class T>
void fetch(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T> B) {
    copy<T>(ctx, A, B);
}
void arrive(Context<Host>&) {}
template <class T>
void send(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T, Host> B) {
    copy<T>(ctx, A, B);
}
template void fetch<int>(Context<Host>&, MatrixView<const int>, MatrixView<int>);
template void fetch<float>(Context<Host>&, MatrixView<const float>, MatrixView<float>);
template void fetch<double>(Context<Host>&, MatrixView<const double>, MatrixView<double>);
template void send<float>(Context<Host>&, MatrixView<const float>, MatrixView<float>);
template void send<double>(Context<Host>&, MatrixView<const double>, MatrixView<double>);

}  // namespace quoin
