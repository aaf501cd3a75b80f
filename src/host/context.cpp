// Contexts of the host: threads, workspace, streams and timers.

#include "quoin/context.hpp"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "host/device.hpp"
#include "host/parallel.hpp"
#include "io/control_group.hpp"
#include "quoin/rows.hpp"

namespace quoin {

namespace host {

namespace {
/// GCC's OpenMP crashes as it makes room for 100 000 threads.
constexpr int max_threads = 4096;

// a thread that the child process starts has OpenMP threads of its own
thread_local bool made_by_fork = false;
[[maybe_unused]] const int handler = pthread_atfork(nullptr, nullptr, [] { made_by_fork = true; });
}  // namespace

bool forked() { return made_by_fork; }

int default_threads(double quota) {
    const int threads = omp_get_max_threads();
    return threads <= quota || threads != omp_get_num_procs() ? threads : static_cast<int>(std::ceil(quota));
}
int default_threads() {
    static const double quota =
        std::getenv("OMP_NUM_THREADS") ? std::numeric_limits<double>::infinity() : io::control_group_limits().cpus;
    return default_threads(quota);
}

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

Context<Host>::Context(int threads)
    : threads_(std::min(host::max_threads, threads > 0 ? threads : host::default_threads())) {
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

template <>
void throw_if_stopped(Context<Host>& ctx) {
    if (ctx.state().stopped()) throw Interrupted();
}

template <>
Context<Host>& side_stream(Context<Host>& ctx) {
    return ctx;
}
template <>
void wait_for(Context<Host>&, Context<Host>&) {}

template <>
Context<Host>& copy_in_stream(Context<Host>& ctx) {
    return ctx;
}
template <>
Context<Host>& copy_out_stream(Context<Host>& ctx) {
    return ctx;
}
template <>
void finish_copies(Context<Host>&) {}
template <>
MemoryInUse memory_in_use(Context<Host>&) {
    return {};
}
template <>
void limit_workspace(Context<Host>&, double) {}

template <>
Context<Host>& host_context(Context<Host>& ctx) {
    return ctx;
}
template <>
void* pinned_staging(Context<Host>& ctx, std::size_t bytes) {
    Matrix<std::byte>& memory = ctx.state().staging;
    if (static_cast<std::size_t>(memory.rows()) < bytes) memory = Matrix<std::byte>(static_cast<Index>(bytes), 1);
    return memory.data();
}

template <>
Scan read_scan(Context<Host>&, MatrixView<const Scan> found) {
    return *found.data;
}

template <>
Certificate read_certificate(Context<Host>&, CertificateView<Host> certificate) {
    return *certificate.data;
}
template <>
void request_certificate(Context<Host>&, CertificateView<Host>) {}
template <>
Certificate receive_certificate(Context<Host>&, CertificateView<Host> certificate) {
    return *certificate.data;
}

template <class T, class D>
void pack_certificate(Context<D>&, CertificateView<D> certificate, View<T, D> numbers) {
    write_numbers(*certificate.data, numbers.data);
}
template <class T, class D>
void unpack_certificate(Context<D>&, View<const T, D> numbers, CertificateView<D> certificate) {
    *certificate.data = read_numbers(numbers.data);
}
template <>
void write_certificate(Context<Host>&, CertificateView<Host> certificate, Certificate state) {
    *certificate.data = state;
}

namespace {
/// Calls f(rows) for blocks of rows of n elements each.
template <class T, class F>
void for_each_block_of_rows(Index m, Index n, F f) {
    const Index step = std::max<Index>(1, Tuning<Host>::passed_bytes / (std::max<Index>(1, n) * Index{sizeof(T)}));
    for (Index i = 0; i < m; i += step) f(Range{i, std::min(m, i + step)});
}
}  // namespace

template <class T, class D>
void copy_rows_to_device(Context<D>&, const RowReader<T>& read, View<T, D> B) {
    for_each_block_of_rows<T>(B.rows, B.cols, [&](Range rows) { read(rows, B.row_block(rows)); });
}
template <class T, class D>
void copy_rows_to_host(Context<D>&, View<const T, D> A, const RowWriter<T>& write) {
    for_each_block_of_rows<T>(A.rows, A.cols, [&](Range rows) { write(rows, A.row_block(rows)); });
}

QUOIN_IMPLEMENT(Host, copy_rows_to_device, copy_rows_to_host, pack_certificate, unpack_certificate)

}  // namespace quoin
