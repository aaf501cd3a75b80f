// Timelines of a GPU: spans of every stream on one clock, and what panels on the host overlap with.

#include "quoin/trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"
#include "quoin/study.hpp"
#include "quoin/svd.hpp"

namespace quoin::test {
namespace {

using Row = Trace::Row;
using Spans = std::vector<Trace::Span>;

class GpuTrace : public OnGpu {
protected:
    /// Returns the spans of `work`, recorded from an idle stream.
    template <class Work>
    Spans record(Work&& work) {
        Trace trace;
        gpu().attach(&trace);
        work();
        gpu().wait();
        gpu().attach(nullptr);
        EXPECT_NO_THROW(trace.json());
        return trace.spans();
    }
    /// Panels factored on the host; how wide they are.
    Index factor_by_both(const Matrix<double, Cuda>& A, bool one_t) {
        Options options = with(Method::BlockedHouseholder, QForm::Reflectors);
        if (one_t) options.q = FullT{.route = FullTRoute::Recurrence};
        const Plan plan = study::plan_with_panels_on_host<double>(gpu(), A.rows(), A.cols(), options);
        Matrix<double, Cuda> W(gpu(), A.rows(), A.cols());
        copy<double>(gpu(), A.view(), W.view());
        qr<double, Cuda>(gpu(), std::move(W), plan);
        return plan.panel_width;
    }
};

double length(const Trace::Times& times) { return times.end - times.begin; }

bool is_step(const Trace::Span& span) {
    return span.name == "panel" || span.name == "update" || span.name == "T" || span.name == "S" ||
           (span.step >= 0 && (span.row == Row::ToHost || span.row == Row::ToDevice));
}

TEST_F(GpuTrace, WithoutATraceNothingIsRecordedAndWithOneEveryStep) {
    const Matrix<double> A = random_normal<double>(1500, 700);
    const auto gA = copy_to_device<double>(gpu(), A.view());
    Options options = with(Method::BlockedHouseholder, QForm::Reflectors);
    options.q = FullT{.route = FullTRoute::Recurrence};
    options.method.set_panel_width(128);
    options.check_finite = false;
    const auto untraced = qr<double, Cuda>(gpu(), gA.view(), options);
    Matrix<double> R;
    double before = 0, after = 0;
    const Spans spans = record([&] {
        const Trace& trace = *gpu().trace();
        before = trace.now();
        const auto f = qr<double, Cuda>(gpu(), gA.view(), options);
        gpu().wait();
        after = trace.now();
        R = copy_to_host<double>(gpu(), f.r(gpu()).view());
    });
    EXPECT_TRUE(same_bits<double>(copy_to_host<double>(gpu(), untraced.r(gpu()).view()).view(), R.view()));
    std::map<std::string, int> count;
    std::map<Row, double> last_end;
    for (const auto& span : spans) {
        ++count[span.name];
        EXPECT_LE(span.times.begin, span.times.end) << span.name;
        if (!is_step(span)) continue;
        // the GPU's clock is the host's to a fraction of a millisecond
        EXPECT_GE(span.times.begin, before - 200) << span.name;
        EXPECT_LE(span.times.end, after + 200) << span.name;
        // one thing after the other on a stream
        EXPECT_GE(span.times.begin, last_end[span.row] - 1) << span.name;
        last_end[span.row] = std::max(last_end[span.row], span.times.end);
    }
    EXPECT_EQ(count["panel"], 6);
    EXPECT_EQ(count["S"], 6 + 5);  // of every panel, and S₁ of all but the first
    EXPECT_EQ(count["T"], 5);
    EXPECT_GE(count["update"], 5);
    EXPECT_EQ(count["copy out"], 1);
}

TEST_F(GpuTrace, PhasesOfOtherRuns) {
    const Matrix<float> A = random_normal<float>(20000, 60);
    const Spans spans = record([&] {
        const auto gA = copy_to_device<float>(gpu(), A.view());
        svd<float, Cuda>(gpu(), gA.view(), true);
    });
    for (const auto& [name, row] : {std::pair<std::string, Row>{"copy in", Row::ToDevice},
                                    {"Gram passes", Row::Device},
                                    {"SVD of R, vectors", Row::Device}}) {
        EXPECT_TRUE(std::any_of(spans.begin(), spans.end(), [&, name = name, row = row](const auto& span) {
            return span.name == name && span.row == row;
        })) << name;
    }
}

/// While the host has panel k+1, from its leaving to its return, the GPU updates the rest with panel k.
TEST_F(GpuTrace, APanelOnTheHostOverlapsWithTheUpdateBeforeIt) {
    if (quick()) GTEST_SKIP();
    const Index n = 6000;
    const auto gA = copy_to_device<double>(gpu(), random_normal<double>(n, n).view());
    const Index nb = factor_by_both(gA, false), count = (n + nb - 1) / nb;
    const Spans spans = record([&] { factor_by_both(gA, false); });
    std::map<Index, Trace::Times> away, rest;
    std::map<Index, int> panels;
    for (const auto& span : spans) {
        if (span.step < 0) continue;
        if (span.row == Row::ToHost) away[span.step].begin = span.times.begin;
        if (span.row == Row::ToDevice) away[span.step].end = span.times.end;
        if (span.row == Row::Host) ++panels[span.step];
        // the later update of a step; the next panel's may run at the same time
        if (span.name == "update" && span.row == Row::Device) rest[span.step] = span.times;
    }
    ASSERT_EQ(static_cast<Index>(panels.size()), count);
    for (Index k = 0; k < count / 4; ++k) {  // later updates are over before the panel has travelled
        SCOPED_TRACE(k);
        EXPECT_EQ(panels[k], 1);
        EXPECT_LT(away[k + 1].begin, rest[k].end);
        EXPECT_LT(rest[k].begin, away[k + 1].end);
    }
}

/// Whichever side is slower never waits for more than the first and the last panel: in the best of up to five runs, for
/// other programs can only add to the waiting.
TEST_F(GpuTrace, TheSlowerSideOfTheHybridHardlyWaits) {
    if (quick()) GTEST_SKIP();
    const Index n = 8000;
    const auto gA = copy_to_device<double>(gpu(), random_normal<double>(n, n).view());
    for (bool one_t : {false, true}) {
        SCOPED_TRACE(one_t);
        factor_by_both(gA, one_t);
        double waiting = 1e300;  // the time of the whole over the slower side's time
        bool overlapped = false;
        for (int run = 0; run < 5 && (waiting > 1.15 || !overlapped); ++run) {
            double host = 0, device = 0, begin = 1e300, end = 0;
            std::vector<Trace::Times> of_host, of_device;
            for (const auto& span : record([&] { factor_by_both(gA, one_t); })) {
                if (!is_step(span)) continue;
                begin = std::min(begin, span.times.begin);
                end = std::max(end, span.times.end);
                (span.row == Row::Device || span.row == Row::SideStream ? device : host) += length(span.times);
                if (span.row == Row::Host) of_host.push_back(span.times);
                if (span.row == Row::Device) of_device.push_back(span.times);
            }
            for (const auto& a : of_host) {
                for (const auto& b : of_device) overlapped |= std::min(a.end, b.end) > std::max(a.begin, b.begin);
            }
            waiting = std::min(waiting, (end - begin) / std::max(host, device));
        }
        EXPECT_LE(waiting, 1.15);
        EXPECT_TRUE(overlapped) << "the host factors while the device computes";
    }
}

}  // namespace
}  // namespace quoin::test
