#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

#include "gpu.hpp"
#include "ranks.hpp"
#ifdef QUOIN_TEST_NCCL
#include "quoin/nccl.hpp"
#endif

/// Ranks in the memory of GPUs: all of them share one GPU and their messages go through the host; or, with NCCL, every
/// rank has a GPU of its own.
namespace quoin::test {

#ifdef QUOIN_TEST_NCCL
inline std::vector<int> gpu_rank_counts() {
    int gpus = 0;
    cudaGetDeviceCount(&gpus);
    std::vector<int> counts;
    for (int ranks = 2; ranks <= gpus; ++ranks) counts.push_back(ranks);
    return counts;
}
/// NCCL takes a second to connect GPUs: the tests share what it has made for a number of them.
inline const std::vector<ncclComm_t>& connected(int gpus) {
    static std::map<int, std::vector<ncclComm_t>> made;
    std::vector<ncclComm_t>& all = made[gpus];
    if (all.empty()) {
        all.resize(gpus);
        if (ncclCommInitAll(all.data(), gpus, nullptr) != ncclSuccess) throw std::runtime_error("ncclCommInitAll");
    }
    return all;
}
inline void on_gpus(int ranks, const std::function<void(Context<Cuda>&, Communicator&)>& f) {
    const std::vector<ncclComm_t>& all = connected(ranks);
    run_ranks(ranks, [&](Communicator& control) {
        const CurrentDevice gpu(control.rank());
        NcclCommunicator comm(control, all[control.rank()]);
        Context<Cuda> ctx;
        f(ctx, comm);
        ctx.wait();
    });
}
#else
inline std::vector<int> gpu_rank_counts() { return rank_counts(); }
inline void on_gpus(int ranks, const std::function<void(Context<Cuda>&, Communicator&)>& f) {
    run_ranks(ranks, [&](Communicator& comm) {
        Context<Cuda> ctx;
        f(ctx, comm);
    });
}
#endif

template <class T>
class GpuRanks : public OnGpu {
protected:
    void SetUp() override {
        OnGpu::SetUp();
        if (!IsSkipped() && gpu_rank_counts().empty()) GTEST_SKIP() << "one GPU: NCCL needs two";
    }
};

}  // namespace quoin::test
