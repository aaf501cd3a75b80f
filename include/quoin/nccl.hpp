#pragma once

#include <nccl.h>

#include "quoin/communicator.hpp"
#include "quoin/cuda.hpp"

namespace quoin {

/// Ranks with one GPU each, connected by NCCL: the library quoin_nccl, for CMake quoin::nccl of find_package(quoin
/// COMPONENTS nccl).
///
/// Messages between GPUs are ncclSend and ncclRecv on the context's stream. Notes and messages of the host's memory are
/// sent by `control`, an MpiCommunicator or a Communicator of `run_ranks`. `control` must outlive this object and must
/// not be used for anything else meanwhile. If a rank's work has failed, the other ranks learn it from `control` before
/// they enqueue a receive that would never complete.
///
/// Construction and destruction are collective. The current device of the calling thread is the rank's GPU; every rank
/// needs another GPU. Throws InvalidArgument if `nccl` and `control` have different ranks, and Error with
/// ErrorCode::CommunicationFailure and NCCL's own text. Each message first checks for errors that NCCL has had since
/// the previous one.
///
///     run_ranks(4, [&](Communicator& control) {
///         CurrentDevice gpu(control.rank());
///         NcclCommunicator comm(control);
///         Context<Cuda> ctx;
///         auto f = qr(ctx, comm, A.view());  // this rank's rows
///     });
class NcclCommunicator final : public Communicator {
public:
    explicit NcclCommunicator(Communicator& control);
    /// Uses `nccl`, which the caller still owns.
    NcclCommunicator(Communicator& control, ncclComm_t nccl);
    ~NcclCommunicator() override;

private:
    void send_bytes(const void* data, Index bytes, int to, int note) override;
    int receive_bytes(void* data, Index bytes, int from) override;
    bool reaches_gpus() const override { return true; }
    void enqueue_send(Context<Cuda>& ctx, const void* data, Index bytes, int to) override;
    void enqueue_receive(Context<Cuda>& ctx, void* data, Index bytes, int from) override;
    void enqueue_exchange(Context<Cuda>& ctx, const void* sent, void* received, Index bytes, int other) override;
    void check(ncclResult_t status, const char* operation) const;
    void check_earlier_messages() const;

    Communicator& control_;
    ncclComm_t nccl_ = nullptr;
    bool owns_ = true;
};

}  // namespace quoin
