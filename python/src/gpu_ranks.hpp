#pragma once

// Ranks with a GPU each.

#include "cuda.hpp"
#include "ranks.hpp"
#ifdef QUOIN_HAVE_NCCL
#include "quoin/nccl.hpp"
#endif

struct ncclComm;

namespace quoin::python {

/// What connects the GPUs of some ranks: NCCL, or where ranks share a GPU or are one alone nothing but their messages through the host.
///
/// It keeps NCCL's communicator until `close`. The destructor leaves it to the end of the process: NCCL's own calls may wait for
/// other ranks, and no garbage collection may.
class GpuLink {
public:
    GpuLink(int device, Index number, ncclComm* nccl) : device_(device), number_(number), nccl_(nccl) {}
    GpuLink(const GpuLink&) = delete;
    GpuLink& operator=(const GpuLink&) = delete;

    int device() const { return device_; }
    /// The same on the ranks that were connected together, and another one for each connection; never 0.
    Index number() const { return number_; }
    /// Null: messages go through the host.
    ncclComm* nccl() const { return nccl_; }
    /// Gives NCCL's communicator back, on a thread of its own: returns at once. No call is in progress.
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
    /// Nothing of a call is under way in NCCL when it returns, so that the link can be closed at any time.
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

/// `cuda.Link` and `cuda.connect`.
void bind_gpu_ranks(nb::module_& cuda);

}  // namespace quoin::python
