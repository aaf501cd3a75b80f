// Table II of Anderson, Ballard, Demmel and Keutzer (2011), Table I of their report of 2010: iterations of robust PCA a
// second, and the result that they reach.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "machine.hpp"
#include "on_device.hpp"
#include "quoin/apps/online_robust_pca.hpp"
#include "quoin/apps/robust_pca.hpp"
#include "results.hpp"
#include "stopwatch.hpp"
#include "studies.hpp"
#include "video/synthetic_scene.hpp"

namespace quoin::cli {

namespace {

constexpr Index width = 384, height = 288, frames = 100;
/// When a tolerance was first met; nothing: not at all.
struct Reached {
    double tolerance;
    std::optional<RobustPcaStep> at = {};
};

/// One pursuit, and when it met what.
struct PursuitRow {
    Pursuit pursuit;
    ThresholdRoute route;
    RobustPcaStep last;
    Reached reached[2] = {{1e-3}, {1e-5}};

    double rate() const { return static_cast<double>(last.iteration) / last.seconds; }
    double seconds_to(int tolerance) const { return reached[tolerance].at ? reached[tolerance].at->seconds : -1; }
};

template <class D>
PursuitRow run_pursuit(Context<D>& ctx, MatrixView<const float, D> M, Pursuit pursuit, ThresholdRoute route,
                       Index iterations) {
    PursuitRow row{pursuit, route, {}};
    RobustPcaOptions<float, D> options;
    options.pursuit = pursuit;
    options.route = route;
    options.tolerance = row.reached[1].tolerance;
    options.max_iterations = iterations;
    options.on_step = [&](const RobustPcaStep& step) {
        for (Reached& r : row.reached) {
            if (!r.at && step.error <= r.tolerance) r.at = step;
        }
        return true;
    };
    row.last = robust_pca<float, D>(ctx, M, options).last;
    return row;
}

/// Frames of the stream that `quoin rpca --online` separates, and those that are drawn: they come forward and back.
constexpr video::FrameFormat stream{1920, 1080, 1};
constexpr Index drawn = 12;

/// A stream of bytes, whose parts come back as bytes.
struct OnlineRow {
    Index frames, rank = 0;
    double seconds = 0, longest = 0;  ///< of the frames after those that the background is learned from

    double rate() const { return static_cast<double>(frames) / seconds; }
};

template <class D>
OnlineRow run_online(Context<D>& ctx, Index timed) {
    const video::SyntheticScene scene(stream);
    const auto n = static_cast<std::size_t>(stream.bytes());
    std::vector<std::vector<std::uint8_t>> frames(drawn, std::vector<std::uint8_t>(n));
    std::vector<std::uint8_t> background(n), foreground(n);
    for (Index j = 0; j < drawn; ++j) scene.frame(j, frames[static_cast<std::size_t>(j)], foreground);
    const OnlineRobustPcaOptions options;
    OnlineRobustPca<float, D> pca(stream.bytes(), options);
    OnlineRow row{timed};
    for (Index t = 0; t < options.start + timed; ++t) {
        const Index k = t % (2 * drawn - 2);
        const Stopwatch since_it_came;
        pca.next_frame(ctx, frames[static_cast<std::size_t>(std::min(k, 2 * drawn - 2 - k))], background, foreground);
        const double seconds = since_it_came.seconds();
        if (t < options.start) continue;
        row.seconds += seconds;
        row.longest = std::max(row.longest, seconds);
    }
    row.rank = pca.rank();
    return row;
}

JsonLine line_of(const OnlineRow& row) {
    JsonLine json = case_line({stream.bytes(), row.frames}, ScalarKind::F32);
    json.add("code", "quoin").add("method", "online").add("route", "").add("iterations", row.frames);
    json.add("iterations_per_second", row.rate());
    json.add_measured("seconds_to_1e-3", -1).add_measured("seconds_to_1e-5", -1);
    json.add_measured("residual", -1).add("rank", row.rank).add_measured("objective", -1);
    json.add_measured("latency", row.seconds / static_cast<double>(row.frames));
    json.add_measured("longest_latency", row.longest);
    return json;
}

JsonLine line_of(const PursuitRow& row) {
    JsonLine json = case_line({width * height, frames}, ScalarKind::F32);
    json.add("code", "quoin").add("method", to_string(row.pursuit)).add("route", to_string(row.route));
    json.add("iterations", row.last.iteration).add("iterations_per_second", row.rate());
    json.add_measured("seconds_to_1e-3", row.seconds_to(0)).add_measured("seconds_to_1e-5", row.seconds_to(1));
    json.add("residual", row.last.residual).add("rank", row.last.rank).add("objective", row.last.objective);
    json.add_measured("latency", -1).add_measured("longest_latency", -1);
    return json;
}

Matrix<float> scene_matrix() {
    const video::SyntheticScene scene({width, height, 1});
    Matrix<float> M(width * height, frames);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height)), mask(pixels.size());
    for (Index j = 0; j < frames; ++j) {
        scene.frame(j, pixels, mask);
        for (Index i = 0; i < M.rows(); ++i) M(i, j) = static_cast<float>(pixels[static_cast<std::size_t>(i)]) / 255;
    }
    return M;
}

template <class D>
void bench_robust_pca_on(Context<D>& ctx, const DeviceInUse& device, const BenchArguments& arguments) {
    constexpr bool on_gpu = !std::is_same_v<D, Host>;
    const Matrix<float, D> M = to_device(ctx, scene_matrix());
    std::string where = device.description;
    if constexpr (!on_gpu) where = fmt::format("{}, {} threads", describe_machine().cpu, ctx.threads());
    Results results(arguments);
    results.describe(where);
    results.say("Robust PCA of {}x{}, f32: {} frames of {}x{}, the synthetic scene of `quoin rpca`\n", M.rows(), frames,
                frames, width, height);
    results.say("{}\n", where);
    for (const Pursuit pursuit : {Pursuit::InexactAlm, Pursuit::AlternatingDirections}) {
        for (const ThresholdRoute route : {ThresholdRoute::Qr, ThresholdRoute::Gram, ThresholdRoute::Auto}) {
            // Auto is one of the others: on a GPU that takes no time to show
            if (!on_gpu && route == ThresholdRoute::Auto) continue;
            // kernels and memory come with the first iterations
            if (on_gpu) run_pursuit<D>(ctx, M.view(), pursuit, route, 3);
            const PursuitRow row = run_pursuit<D>(ctx, M.view(), pursuit, route, arguments.iterations);
            results.add(line_of(row));
        }
    }
    // beyond the frame at which the basis is made orthonormal anew
    const Index timed = on_gpu ? 300 : 30;
    if (on_gpu) run_online(ctx, timed);
    const OnlineRow online = run_online(ctx, timed);
    results.add(line_of(online));
}

}  // namespace

void bench_robust_pca(const BenchArguments& arguments) {
    constexpr double matrices_held = 6;  // M, L, S, Y, the QR's copy of an iterate, and room
    on_device(
        arguments.common, "the video",
        [](const auto&) { return matrices_held * sizeof(float) * static_cast<double>(width * height * frames); },
        [&](auto& ctx, const DeviceInUse& device) { bench_robust_pca_on(ctx, device, arguments); });
}

}  // namespace quoin::cli
