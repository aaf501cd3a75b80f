#pragma once

#include "cuda/error.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// A few pinned buffers between pageable memory and one stream, with a second stream on which the host's cores fill or empty them
/// in its order: neither the caller nor the device waits for the other.
class StagedCopies {
public:
    static constexpr int count = 8;
    static constexpr std::size_t bytes = std::size_t(32) << 20;  ///< of each

    StagedCopies();
    StagedCopies(const StagedCopies&) = delete;
    /// Waits for what is on its way.
    ~StagedCopies();

    /// B := A behind what is on `stream`.
    template <class T>
    void in(cudaStream_t stream, MatrixView<const T> A, MatrixView<T, Cuda> B);
    /// B := A behind what is on `stream`, which goes on when A is in the buffers.
    template <class T>
    void out(cudaStream_t stream, MatrixView<const T, Cuda> A, MatrixView<T> B);
    /// What comes behind on `stream` finds what was copied out.
    void finish(cudaStream_t stream);

private:
    struct Buffer {
        std::byte* data = nullptr;
        cudaEvent_t filled = nullptr, emptied = nullptr;
    };
    Buffer& next() { return buffers_[at_++ % count]; }
    void order(cudaEvent_t event, cudaStream_t first, cudaStream_t second);
    void release() noexcept;

    cudaStream_t host_ = nullptr;  // of work by the host's cores
    cudaEvent_t begun_ = nullptr;
    Matrix<std::byte> memory_;  // of all buffers, pinned
    bool pinned_ = false;
    Buffer buffers_[count];
    unsigned at_ = 0;
};

}  // namespace quoin::cuda
