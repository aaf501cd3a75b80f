// Table II of Anderson, Ballard, Demmel and Keutzer (2011): iterations of robust PCA a second, and what they lead to.

#include <fmt/format.h>

#include <optional>

#include "bench.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "machine.hpp"
#include "quoin/robust_pca.hpp"
#include "video/synthetic_scene.hpp"

namespace quoin::cli {

namespace {

constexpr Index width = 384, height = 288, frames = 100;
/// The constant-μ iteration takes hundreds of iterations, as the paper's did; enough to see its rate and where it stands.
constexpr Index most_iterations = 500;

struct PublishedRate {
    const char* code;
    double iterations_per_second;
};
constexpr PublishedRate published[] = {{"MKL SVD (4 cores)", 0.9}, {"BLAS2 QR (GTX480)", 8.7}, {"CAQR (GTX480)", 27.0}};

/// When a tolerance was first met; nothing: not at all.
struct Reached {
    double tolerance;
    std::optional<RobustPcaStep> at = {};
};

}  // namespace

void bench_robust_pca(const BenchArguments& arguments) {
    Context<Host> ctx = make_context(arguments.common);
    const InterruptGuard guard(ctx);
    const video::SyntheticScene scene({width, height, 1});
    Matrix<float> M(width * height, frames);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height)), mask(pixels.size());
    for (Index j = 0; j < frames; ++j) {
        scene.frame(j, pixels, mask);
        for (Index i = 0; i < M.rows(); ++i) M(i, j) = static_cast<float>(pixels[static_cast<std::size_t>(i)]) / 255;
    }
    if (!arguments.common.json) {
        fmt::print("Robust PCA of {}x{}, f32: {} frames of {}x{}, the synthetic scene of `quoin rpca`\n", M.rows(),
                   frames, frames, width, height);
        fmt::print("{}, {} threads\n\n", describe_machine().cpu, ctx.threads());
        fmt::print("{:<40}  {:>12}  {:>20}  {:>20}\n", "", "iterations/s", "to 1e-3", "to 1e-5");
    }
    for (const Pursuit pursuit : {Pursuit::InexactAlm, Pursuit::AlternatingDirections}) {
        for (const ThresholdRoute route : {ThresholdRoute::Qr, ThresholdRoute::Gram}) {
            Reached reached[] = {{1e-3}, {1e-5}};
            RobustPcaOptions<float> options;
            options.pursuit = pursuit;
            options.route = route;
            options.tolerance = reached[1].tolerance;
            options.max_iterations = most_iterations;
            options.on_step = [&](const RobustPcaStep& step) {
                for (Reached& r : reached) {
                    if (!r.at && step.error <= r.tolerance) r.at = step;
                }
                return true;
            };
            const RobustPca<float> f = robust_pca<float>(ctx, M.view(), options);
            const double rate = static_cast<double>(f.last.iteration) / f.last.seconds;
            if (arguments.common.json) {
                JsonLine json;
                json.add("rows", M.rows())
                    .add("cols", frames)
                    .add("dtype", "f32")
                    .add("method", to_string(pursuit))
                    .add("route", to_string(route));
                json.add("iterations", f.last.iteration).add("iterations_per_second", rate);
                json.add("residual", f.last.residual).add("rank", f.last.rank).add("objective", f.last.objective);
                json.add_measured("seconds_to_1e-3", reached[0].at ? reached[0].at->seconds : -1);
                json.add_measured("seconds_to_1e-5", reached[1].at ? reached[1].at->seconds : -1);
                json.print();
                continue;
            }
            const auto cell = [](const Reached& r) {
                return r.at ? fmt::format("{:.3g} s ({})", r.at->seconds, r.at->iteration) : std::string("-");
            };
            fmt::print("{:<40}  {:>12.1f}  {:>20}  {:>20}\n",
                       fmt::format("{}, singular values by {}",
                                   pursuit == Pursuit::InexactAlm ? "growing μ" : "constant μ", to_string(route)),
                       rate, cell(reached[0]), cell(reached[1]));
            std::fflush(stdout);
        }
    }
    if (arguments.common.json) return;
    for (const PublishedRate& row : published)
        fmt::print("{:<40}  {:>12.1f}\n", fmt::format("2011: {}", row.code), row.iterations_per_second);
    fmt::print(
        "\nseconds, and iterations in parentheses, to ‖M − L − S‖ / ‖M‖, with constant μ to the dual residual as well, "
        "of\n"
        "at most {} iterations. The paper's iteration is that with constant μ by QR; its video was another one of the\n"
        "same size, and took over 500.\n",
        most_iterations);
}

}  // namespace quoin::cli
