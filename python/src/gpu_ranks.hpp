#pragma once

// Ranks with one GPU each.

#include "cuda.hpp"
#include "ranks.hpp"
#ifdef QUOIN_HAVE_NCCL
#include "quoin/nccl.hpp"
#endif

struct ncclComm;

namespace quoin::python {

/// The connection of the GPUs of some ranks, by NCCL, or by messages through the host if ranks share a GPU. A rank
/// alone needs none.
///
/// It keeps NCCL's communicator until `close`. The destructor leaves it to the end of the process, because NCCL's calls
/// may wait for other ranks, which garbage collection must not do.
class GpuLink {
public:
    GpuLink(int device, Index number, ncclComm* nccl) : device_(device), number_(number), nccl_(nccl) {}
    GpuLink(const GpuLink&) = delete;
    GpuLink& operator=(const GpuLink&) = delete;

    int device() const { return device_; }
    /// Returns the number of the connection, the same on the ranks that made it together. It is different for every
    /// connection by NCCL, 1 for connections through the host, and never 0.
    Index number() const { return number_; }
    /// Returns NCCL's communicator, or null if messages go through the host.
    ncclComm* nccl() const { return nccl_; }
    /// Gives NCCL's communicator back on its own thread, and returns at once. No call may be in progress.
    void close() noexcept;

private:
    int device_;
    Index number_;
    ncclComm* nccl_;
};

template <>
class RanksOfCall<Cuda> {
public:
    explicit RanksOfCall(const nb::tuple& ranks)
        : control_(ranks[0], nb::cast<int>(ranks[1]), nb::cast<int>(ranks[2])),
          link_(ranks[3].is_none() ? nullptr : nb::cast<GpuLink*>(ranks[3])) {}

    Communicator& control() { return control_; }
    Communicator& all() {
#ifdef QUOIN_HAVE_NCCL
        if (link_ && link_->nccl()) {
            if (!gpus_) gpus_.emplace(control_, link_->nccl());
            return *gpus_;
        }
#endif
        return control_;
    }
    /// Waits until none of the call's work is under way in NCCL, so that the link can be closed at any time.
    void finish(Context<Cuda>& ctx) {
        if (link_ && link_->nccl()) ctx.wait();
    }

private:
    PythonCommunicator control_;
    GpuLink* link_;
#ifdef QUOIN_HAVE_NCCL
    std::optional<NcclCommunicator> gpus_;
#endif
};

/// Adds `cuda.Link`, `cuda.wait_for_closing` and `cuda.connect`.
void bind_gpu_ranks(nb::module_& cuda);

}  // namespace quoin::python
