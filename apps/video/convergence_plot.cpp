#include "video/convergence_plot.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plot/figure.hpp"

namespace quoin::video {
namespace {

constexpr const char *residual_color = "#1f5fa8", *other_color = "#3f7d3a", *rank_color = "#b2501e";

}  // namespace

std::string convergence_svg(std::span<const RobustPcaStep> steps, double tolerance) {
    std::vector<double> iterations, residuals, others, ranks;
    const double decades = tolerance > 0 ? std::log10(tolerance) : 0;
    double low = decades, high = decades, top_rank = 1, last = 2;
    // the tolerance bounds the dual residual, too, if μ is constant, and the change of S if the pursuit is stable
    const char* other = nullptr;
    for (const RobustPcaStep& step : steps) {
        if (step.error > 0 && step.error != step.residual)
            other = step.dual_residual > 0 ? "μ‖S − S′‖ / ‖Y‖" : "‖S − S′‖ / ‖M‖";
    }
    for (const RobustPcaStep& step : steps) {
        iterations.push_back(static_cast<double>(step.iteration));
        last = std::max(last, iterations.back());
        ranks.push_back(static_cast<double>(step.rank));
        top_rank = std::max(top_rank, ranks.back());
        residuals.push_back(std::log10(step.residual));
        if (other) others.push_back(std::log10(step.dual_residual > 0 ? step.dual_residual : step.error));
        for (const double value : {residuals.back(), other ? others.back() : residuals.back()})
            if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    }
    const double first = steps.empty() ? 1 : iterations.front();
    plot::Figure figure(480, first, std::max(last, first + 1), /*smallest_tick=*/1);
    const plot::Panel residual{20, 250, std::floor(low - 0.2), std::max(std::ceil(high), 1 + std::floor(low - 0.2))},
        rank{286, 430, 0, 1.05 * top_rank};

    figure.axes(residual, plot::ticks(residual.low, residual.high, 8, 1), "‖M − L − S‖ / ‖M‖", residual_color,
                [](double t) { return fmt::format("10<tspan dy=\"-5\" font-size=\"9\">{:g}</tspan>", t); });
    figure.axes(rank, plot::ticks(rank.low, rank.high, 5, 1), "rank of L", rank_color);
    figure.name_abscissa(rank, "iteration");
    if (tolerance > 0) {
        figure.out("<path d=\"M{:.1f},{:.1f}H{:.1f}\" stroke=\"#666666\" stroke-dasharray=\"5 4\"/>\n", figure.left,
                   residual.y(decades), figure.right);
        figure.text(figure.left + 6, residual.y(decades) - 5, "start", fmt::format("tolerance {:g}", tolerance));
    }
    figure.curve(residual, iterations, residuals, residual_color);
    if (other) {
        figure.curve(residual, iterations, others, other_color);
        figure.text(figure.right - 12, residual.top + 18, "end",
                    fmt::format("<tspan fill=\"{}\">{}</tspan>", other_color, other));
    }
    figure.curve(rank, iterations, ranks, rank_color);
    return figure.svg();
}

}  // namespace quoin::video
