// Reads back the few numbers on which the host's decisions depend. They are copied, which needs no multiprocessor: all
// of these may be busy with a large product. While matrices are copied out, a few bytes would wait 10 ms for the one
// copy engine of that direction. Then a kernel stores the numbers in pinned memory.

#include <algorithm>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin {
namespace {

constexpr int store_threads = 256;

/// One block.
__global__ void __launch_bounds__(store_threads)
    store_words_kernel(const unsigned* from, unsigned* to, std::size_t count) {
    for (std::size_t i = threadIdx.x; i < count; i += store_threads) to[i] = from[i];
}

}  // namespace

void Context<Cuda>::State::send_words(const void* p, std::size_t count) {
    void* const read = read_back_.at_least(std::max<std::size_t>(4 * count, 1 << 16));
    if (count > 0 && side_copies_out_) {
        cuda::launch(queue_.stream, store_words_kernel, {1, store_threads}, static_cast<const unsigned*>(p),
                     static_cast<unsigned*>(read), count);
    } else if (count > 0) {
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(read, p, 4 * count, cudaMemcpyDeviceToHost, queue_.stream));
    }
    if (!sent_) QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&sent_, cudaEventDisableTiming));
    QUOIN_CUDA_CHECK(cudaEventRecord(sent_, queue_.stream));
}

unsigned long long* Context<Cuda>::State::counters_of_checks() {
    if (!counters_of_checks_) {
        auto* const p =
            static_cast<unsigned long long*>(detail::allocate_device(queue_, 2 * sizeof(*counters_of_checks_)));
        counters_of_checks_ = p;
        QUOIN_CUDA_CHECK(cudaMemsetAsync(p, 0xff, sizeof(*p), queue_.stream));
        QUOIN_CUDA_CHECK(cudaMemsetAsync(p + 1, 0, sizeof(*p), queue_.stream));
    }
    return counters_of_checks_;
}

bool Context<Cuda>::State::stream_is_done() {
    const cudaError_t status = cudaStreamQuery(queue_.stream);
    if (status == cudaErrorNotReady) return false;
    QUOIN_CUDA_CHECK(status);
    return true;
}

const void* Context<Cuda>::State::receive_words() {
    QUOIN_CUDA_CHECK(cudaEventSynchronize(sent_));
    return read_back_.at_least(0);
}

}  // namespace quoin
