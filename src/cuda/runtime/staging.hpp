#pragma once

#include "cuda/runtime/error.hpp"
#include "cuda/tuning.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// A few pinned buffers between pageable memory and one stream. The host's cores fill and empty them on a second
/// stream, in the order of the first, so that neither the caller nor the device waits (`in`, `out`); or the caller does
/// itself, by turns (`buffer`).
class Staging {
public:
    static constexpr int count = Tuning<Cuda>::staging_buffers;
    static constexpr std::size_t bytes = Tuning<Cuda>::staging_bytes;  ///< of each, and more where one row has more

    struct Buffer {
        template <class T>
        MatrixView<T> block(Index h, Index q) {
            return {reinterpret_cast<T*>(memory.data()), h, q};
        }
        /// Waits for the last use.
        void wait() const { QUOIN_CUDA_CHECK(cudaEventSynchronize(used)); }

        Matrix<std::byte> memory;                      // pinned
        cudaEvent_t filled = nullptr, used = nullptr;  // used: the last use is done, whoever makes it
    };

    Staging();
    Staging(const Staging&) = delete;
    /// Waits for all copies.
    ~Staging();

    /// B := A after the work already on `stream`.
    template <class T>
    void in(cudaStream_t stream, MatrixView<const T> A, MatrixView<T, Cuda> B);
    /// B := A after the work already on `stream`. The stream goes on when A is in the buffers.
    template <class T>
    void out(cudaStream_t stream, MatrixView<const T, Cuda> A, MatrixView<T> B);
    /// Later work on `stream` waits for what was copied out.
    void finish(cudaStream_t stream);

    /// Returns buffer b with at least `least` bytes. Its contents are lost if it had fewer. It may still be in use.
    Buffer& buffer(int b, std::size_t least);

private:
    Buffer& next() { return buffer(static_cast<int>(at_++ % count), bytes); }
    /// Pins all buffers, so that none is pinned while copies run.
    void pin_all();
    void release() noexcept;

    cudaStream_t host_ = nullptr;  // of work by the host's cores
    cudaEvent_t begun_ = nullptr;
    Buffer buffers_[count];
    unsigned at_ = 0;
};

}  // namespace quoin::cuda
