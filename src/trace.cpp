// Records the spans of work of a trace.

#include "quoin/trace.hpp"

#include <algorithm>
#include <chrono>

namespace quoin {

namespace {

double microseconds() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

const char* to_string(Trace::Row row) {
    constexpr const char* names[] = {"host", "device, main stream", "device, side stream", "host to device",
                                     "device to host"};
    return names[static_cast<int>(row)];
}

Trace::Trace() : start_(microseconds()) {}

double Trace::now() const { return microseconds() - start_; }

void Trace::add(Span span) { add(std::move(span), {}); }

void Trace::add(Span span, std::function<Times()> times) {
    const std::lock_guard lock(mutex_);
    recorded_.push_back({std::move(span), std::move(times)});
}

std::vector<Trace::Span> Trace::spans() const {
    std::vector<Span> spans;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [span, times] : recorded_) {
            spans.push_back(span);
            if (times) spans.back().times = times();
        }
    }
    std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
        return a.times.begin != b.times.begin ? a.times.begin < b.times.begin : a.times.end > b.times.end;
    });
    return spans;
}

}  // namespace quoin
