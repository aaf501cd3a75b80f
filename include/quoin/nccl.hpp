#pragma once

#include <nccl.h>

#include "quoin/communicator.hpp"
#include "quoin/cuda.hpp"

namespace quoin {

/// Ranks with a GPU each, whose memories NCCL connects: the library quoin_nccl, for CMake quoin::nccl of
/// find_package(quoin COMPONENTS nccl).
///
/// Messages between GPUs are ncclSend and ncclRecv on the context's stream. Notes and messages of the host's memory go by `control`, an
/// MpiCommunicator or one of `run_ranks`, which must outlive this one and is not used for anything else meanwhile. Where a rank's work
/// has failed the others hear it by that way, before they enqueue what would never come.
///
/// Construction and destruction are collective. The current device of the calling thread is the rank's GPU, another one for every rank.
/// Throws InvalidArgument where `nccl` has other ranks than `control`, and Error with ErrorCode::CommunicationFailure and NCCL's own
/// text. Before each message NCCL is asked for errors since the last one.
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
    /// Over the caller's communicator, which stays the caller's.
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
