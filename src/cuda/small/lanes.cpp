// Matrices of a batch side by side: a stream and a host thread each, since a factorization by panels waits for
// certificates.

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "cuda/runtime/state.hpp"
#include "cuda/small/batch.hpp"
#include "cuda/tuning.hpp"

namespace quoin::cuda {

bool side_by_side_pays(Context<Cuda>& ctx, Index count, double flops) {
    using Tuned = Tuning<Cuda>;
    if (count < 2 || flops < Tuned::min_flops_side_by_side || flops > Tuned::max_flops_side_by_side) return false;
    // a cap is one stream's, a trace has one row for it, and a graph is captured from one thread
    if (ctx.state().arena.is_limited() || ctx.trace()) return false;
    cudaStreamCaptureStatus status;
    QUOIN_CUDA_CHECK(cudaStreamIsCapturing(ctx.stream(), &status));
    return status == cudaStreamCaptureStatusNone;
}

void for_each_side_by_side(Context<Cuda>& ctx, Index count, const std::function<void(Context<Cuda>&, Index)>& work) {
    const int lanes = static_cast<int>(std::min<Index>(count, Tuning<Cuda>::lanes)), device = ctx.queue()->device;
    std::atomic<Index> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    Index failed = count;
    const auto run = [&](Context<Cuda>& lane) {
        for (Index i; (i = next.fetch_add(1)) < count;) {
            try {
                const CurrentDevice current(device);
                throw_if_stopped(lane);
                work(lane, i);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (i < failed) {
                    failed = i;
                    failure = std::current_exception();
                }
            }
        }
    };
    for (int i = 0; i < lanes; ++i) ctx.state().lane(i).follow(ctx.stream());
    {
        std::vector<std::jthread> threads;
        try {
            for (int i = 1; i < lanes; ++i) threads.emplace_back(run, std::ref(ctx.state().lane(i)));
        } catch (const std::system_error&) {
            // fewer threads than wanted: those that there are take all matrices
        }
        run(ctx.state().lane(0));
    }
    for (int i = 0; i < lanes; ++i) ctx.follow(ctx.state().lane(i).stream());
    if (failure) std::rethrow_exception(failure);
}

}  // namespace quoin::cuda
