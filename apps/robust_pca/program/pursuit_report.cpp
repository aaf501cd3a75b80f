#include "pursuit_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace quoin::cli {

namespace {

double rate(const RobustPcaStep& step) {
    return step.seconds > 0 ? static_cast<double>(step.iteration) / step.seconds : 0;
}

}  // namespace

void PursuitReport::add(Index rows, Index cols, const RobustPcaStep& last, PursuitEnd end, double lambda,
                        ThresholdRoute route) {
    windows_.push_back({rows, cols, last, end});
    lambda_ = std::max(lambda_, lambda);
    route_ = route;
}

RobustPcaStep PursuitReport::total() const {
    RobustPcaStep total;
    for (const Window& window : windows_) {
        total.iteration += window.last.iteration;
        total.seconds += window.last.seconds;
        total.nonzeros += window.last.nonzeros;
        total.objective += window.last.objective;
        total.rank = std::max(total.rank, window.last.rank);
        total.residual = std::max(total.residual, window.last.residual);
    }
    return total;
}

PursuitEnd PursuitReport::end() const {
    for (const Window& window : windows_) {
        if (window.end != PursuitEnd::Converged) return window.end;
    }
    return PursuitEnd::Converged;
}

void PursuitReport::add_to(JsonLine& json) const {
    const auto add = [](JsonLine& line, const RobustPcaStep& step, PursuitEnd end) {
        line.add("end", to_string(end)).add("iterations", step.iteration).add("seconds", step.seconds);
        line.add("iterations_per_second", rate(step)).add("rank", step.rank).add("nonzeros", step.nonzeros);
        line.add("residual", step.residual).add("objective", step.objective);
    };
    add(json, total(), end());
    json.add("lambda", lambda_).add("route", to_string(route_));
    if (windows_.size() < 2) return;
    std::vector<JsonLine> lines;
    for (const Window& window : windows_) add(lines.emplace_back().add("cols", window.cols), window.last, window.end);
    json.add("windows", lines);
}

void PursuitReport::print(double tolerance) const {
    const RobustPcaStep sum = total();
    double entries = 0;
    for (const Window& window : windows_)
        entries += static_cast<double>(window.rows) * static_cast<double>(window.cols);
    fmt::print("end            {} after {} iterations{}, {:.3g} s, {:.3g} iterations/s\n", to_string(end()),
               sum.iteration, windows_.size() < 2 ? "" : fmt::format(" in {} windows", windows_.size()), sum.seconds,
               rate(sum));
    if (end() != PursuitEnd::Converged) {
        fmt::print(
            "warning        the {}residual is above --tol {:.1e}{}\n", sum.residual > tolerance ? "" : "dual ",
            tolerance,
            end() == PursuitEnd::Stalled ? ", and the precision of the type is reached" : ": raise --iterations");
    }
    fmt::print("L              rank {}\n", sum.rank);
    fmt::print("S              {} nonzeros, {:.3g}%\n", sum.nonzeros,
               entries > 0 ? 100.0 * static_cast<double>(sum.nonzeros) / entries : 0.0);
    fmt::print("residual       {:.3e}\n", sum.residual);
    fmt::print("objective      {:.6g} = ‖L‖_* + λ‖S‖₁, λ = {:.4g}\n", sum.objective, lambda_);
    fmt::print("route          singular values by {}\n", to_string(route_));
}

PursuitLine::~PursuitLine() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void PursuitLine::draw(const RobustPcaStep& step, const std::string& label, double windows_left) {
    if (!isatty(STDERR_FILENO) || (!drawn_ && step.seconds < 1)) return;
    const double steps_left = std::max(0.0, std::log(step.residual / tolerance_) / std::log(rho_));
    const double left =
        (steps_left + windows_left * (static_cast<double>(step.iteration) + steps_left)) / std::max(rate(step), 1e-9);
    fmt::print(stderr, "\r\x1b[K{}iteration {}  residual {:.1e}  rank {}  {:.1f} it/s{}", label, step.iteration,
               step.residual, step.rank, rate(step), rho_ > 1 ? fmt::format("  {:.0f} s left", left) : "");
    drawn_ = true;
}

}  // namespace quoin::cli
