#include "measure/cuda/page_locked.hpp"

#include <cuda_runtime_api.h>

namespace quoin::bench {

PageLocked::PageLocked(void* memory, std::size_t bytes) {
    if (cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess) {
        memory_ = memory;
    } else {
        cudaGetLastError();
    }
}

PageLocked::~PageLocked() {
    if (memory_) cudaHostUnregister(memory_);
}

}  // namespace quoin::bench
