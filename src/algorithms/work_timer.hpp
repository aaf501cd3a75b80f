#pragma once

#include <chrono>

#include "quoin/context.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// The time between its making and `stop`, in the order of the context's work; `seconds` waits for the work before `stop`.
template <class D>
class WorkTimer;

template <>
class WorkTimer<Host> {
public:
    explicit WorkTimer(Context<Host>&) {}
    void stop() { stop_ = Clock::now(); }
    double seconds() const { return std::chrono::duration<double>(stop_ - start_).count(); }

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now(), stop_ = start_;
};

/// The factorization's report with its time, where that was not known yet when it returned.
template <class D>
Report completed(Report report, const WorkTimer<D>& timer) {
    if (report.seconds < 0) report.seconds = timer.seconds();
    return report;
}

}  // namespace quoin
