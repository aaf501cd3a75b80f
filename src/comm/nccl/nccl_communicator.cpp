// Messages between GPUs by NCCL.

#include "quoin/nccl.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace quoin {

NcclCommunicator::NcclCommunicator(Communicator& control)
    : Communicator(control.rank(), control.size()), control_(control) {
    std::array<Index, sizeof(ncclUniqueId) / sizeof(Index)> words{};
    Context<Host> host(1);
    ncclResult_t made = ncclSuccess;
    if (rank() == 0) {
        ncclUniqueId id;
        made = ncclGetUniqueId(&id);
        words = std::bit_cast<decltype(words)>(id);
    }
    const int note = control.broadcast<Index>(host, {words.data(), static_cast<Index>(words.size()), 1}, 0,
                                              made == ncclSuccess ? 0 : 1);
    check(made, "ncclGetUniqueId");
    if (note != 0) throw Error(ErrorCode::CommunicationFailure, "ncclGetUniqueId failed on rank 0");
    check(ncclCommInitRank(&nccl_, size(), std::bit_cast<ncclUniqueId>(words), rank()), "ncclCommInitRank");
}

NcclCommunicator::NcclCommunicator(Communicator& control, ncclComm_t nccl)
    : Communicator(control.rank(), control.size()), control_(control), nccl_(nccl), owns_(false) {
    int ranks = 0, own = 0;
    check(ncclCommCount(nccl, &ranks), "ncclCommCount");
    check(ncclCommUserRank(nccl, &own), "ncclCommUserRank");
    if (ranks != size() || own != rank()) {
        throw InvalidArgument(
            fmt::format("NcclCommunicator: this is rank {} of {} by NCCL, and rank {} of {} by control", own, ranks,
                        rank(), size()));
    }
}

NcclCommunicator::~NcclCommunicator() {
    if (owns_ && nccl_) ncclCommDestroy(nccl_);
}

void NcclCommunicator::check(ncclResult_t status, const char* operation) const {
    if (status == ncclSuccess) return;
    throw Error(ErrorCode::CommunicationFailure, fmt::format("{} on rank {} of {}: {} ({})", operation, rank(), size(),
                                                             ncclGetErrorString(status), ncclGetLastError(nccl_)));
}

void NcclCommunicator::check_earlier_messages() const {
    ncclResult_t status = ncclSuccess;
    check(ncclCommGetAsyncError(nccl_, &status), "ncclCommGetAsyncError");
    check(status, "an earlier message");
}

void NcclCommunicator::send_bytes(const void* data, Index bytes, int to, int note) {
    send_bytes_by(control_, data, bytes, to, note);
}
int NcclCommunicator::receive_bytes(void* data, Index bytes, int from) {
    return receive_bytes_by(control_, data, bytes, from);
}

void NcclCommunicator::enqueue_send(Context<Cuda>& ctx, const void* data, Index bytes, int to) {
    check_earlier_messages();
    check(ncclSend(data, static_cast<std::size_t>(bytes), ncclUint8, to, nccl_, ctx.stream()), "ncclSend");
}
void NcclCommunicator::enqueue_receive(Context<Cuda>& ctx, void* data, Index bytes, int from) {
    check_earlier_messages();
    check(ncclRecv(data, static_cast<std::size_t>(bytes), ncclUint8, from, nccl_, ctx.stream()), "ncclRecv");
}
void NcclCommunicator::enqueue_exchange(Context<Cuda>& ctx, const void* sent, void* received, Index bytes, int other) {
    check(ncclGroupStart(), "ncclGroupStart");
    enqueue_send(ctx, sent, bytes, other);
    enqueue_receive(ctx, received, bytes, other);
    check(ncclGroupEnd(), "ncclGroupEnd");
}

}  // namespace quoin
