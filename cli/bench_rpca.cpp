// Table II of Anderson, Ballard, Demmel and Keutzer (2011): iterations of robust PCA a second, and what they lead to.

#include <fmt/format.h>

#include <optional>

#include "bench.hpp"
#include "csv_file.hpp"
#include "json_line.hpp"
#include "machine.hpp"
#include "on_device.hpp"
#include "quoin/robust_pca.hpp"
#include "rpca.hpp"
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

void print_json(const PursuitRow& row, const char* device) {
    JsonLine json;
    json.add("rows", width * height).add("cols", frames).add("dtype", "f32").add("device", device);
    json.add("method", to_string(row.pursuit)).add("route", to_string(row.route));
    json.add("iterations", row.last.iteration).add("iterations_per_second", row.rate());
    json.add("residual", row.last.residual).add("rank", row.last.rank).add("objective", row.last.objective);
    json.add_measured("seconds_to_1e-3", row.seconds_to(0)).add_measured("seconds_to_1e-5", row.seconds_to(1));
    json.print();
}

void print_row(const PursuitRow& row) {
    const auto cell = [](const Reached& r) {
        return r.at ? fmt::format("{:.3g} s ({})", r.at->seconds, r.at->iteration) : std::string("-");
    };
    fmt::print("{:<40}  {:>12.1f}  {:>20}  {:>20}\n",
               fmt::format("{}, singular values by {}", row.pursuit == Pursuit::InexactAlm ? "growing μ" : "constant μ",
                           to_string(row.route)),
               row.rate(), cell(row.reached[0]), cell(row.reached[1]));
    std::fflush(stdout);
}

/// The rows as CSV; `bench/pytorch_rpca.py` adds its own.
class PursuitCsv {
public:
    PursuitCsv(const std::string& path, const std::string& device) : file_(path) {
        file_.print(
            "# quoin {}; {}\nrows,cols,dtype,code,method,route,iterations,iterations_per_second,"
            "seconds_to_1e-3,seconds_to_1e-5,residual,rank,objective\n",
            version(), device);
    }
    void add(const PursuitRow& row) const {
        const auto seconds = [&](int at) {
            return row.seconds_to(at) < 0 ? std::string() : fmt::format("{:.6g}", row.seconds_to(at));
        };
        file_.print("{},{},f32,quoin,{},{},{},{:.6g},{},{},{:.6g},{},{:.6g}\n", width * height, frames,
                    to_string(row.pursuit), to_string(row.route), row.last.iteration, row.rate(), seconds(0),
                    seconds(1), row.last.residual, row.last.rank, row.last.objective);
    }

private:
    CsvFile file_;
};

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
    const PursuitCsv csv(arguments.csv, where);
    if (!arguments.common.json) {
        fmt::print("Robust PCA of {}x{}, f32: {} frames of {}x{}, the synthetic scene of `quoin rpca`\n", M.rows(),
                   frames, frames, width, height);
        fmt::print("{}\n\n", where);
        fmt::print("{:<40}  {:>12}  {:>20}  {:>20}\n", "", "iterations/s", "to 1e-3", "to 1e-5");
    }
    for (const Pursuit pursuit : {Pursuit::InexactAlm, Pursuit::AlternatingDirections}) {
        for (const ThresholdRoute route : {ThresholdRoute::Qr, ThresholdRoute::Gram, ThresholdRoute::Auto}) {
            // Auto is one of the others: on a GPU that takes no time to show
            if (!on_gpu && route == ThresholdRoute::Auto) continue;
            // kernels and memory come with the first iterations
            if (on_gpu) run_pursuit<D>(ctx, M.view(), pursuit, route, 3);
            const PursuitRow row = run_pursuit<D>(ctx, M.view(), pursuit, route, most_iterations);
            csv.add(row);
            if (arguments.common.json) {
                print_json(row, to_string(device.device));
            } else {
                print_row(row);
            }
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

}  // namespace

void bench_robust_pca(const BenchArguments& arguments) {
    CommonArguments common = arguments.common;
    common.device = arguments.on_device ? Device::Cuda : Device::Host;
    const double bytes =
        matrices_held * sizeof(float) * static_cast<double>(width * height) * static_cast<double>(frames);
    on_device(
        common, "the video", [&](const auto&) { return bytes; },
        [&](auto& ctx, const DeviceInUse& device) { bench_robust_pca_on(ctx, device, arguments); });
}

}  // namespace quoin::cli
