#pragma once

// The types that the contract leaves to a device.

#include <memory>

#include "primitives.hpp"
#include "quoin/cuda.hpp"

struct CUevent_st;

namespace quoin {

template <class T>
struct SumOf<T, Cuda> {
    using Type = double;
};

template <>
class Event<Cuda> {
public:
    Event() = default;
    Event(const Event&) = delete;
    ~Event();
    void record(Context<Cuda>& ctx);
    void precede(Context<Cuda>& ctx) const;
    void wait() const;

private:
    CUevent_st* event_ = nullptr;
    CudaStream recorded_on_ = nullptr;
};

/// Between two events on the context's stream.
template <>
class WorkTimer<Cuda> {
public:
    explicit WorkTimer(Context<Cuda>& ctx);
    WorkTimer(const WorkTimer&) = delete;
    ~WorkTimer();
    void stop();
    double seconds() const;

private:
    CudaStream stream_;
    CUevent_st *start_ = nullptr, *stop_ = nullptr;
};

template <>
class Span<Cuda> {
public:
    explicit Span(Context<Cuda>& ctx, const char* name, Index step = -1);
    Span(Context<Cuda>& ctx, const char* name, Index step, Trace::Row row);
    Span(const Span&) = delete;
    ~Span();

private:
    struct Recording;
    std::shared_ptr<Recording> recording_;  // none without a trace
};

}  // namespace quoin
