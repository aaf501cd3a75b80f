#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "quoin/robust_pca.hpp"

namespace quoin::cli {

/// Matrices as large as M that a pursuit may hold: M, L, S, Y, the QR's copy of an iterate, and room.
inline constexpr double matrices_held = 6;

/// Where a pixel of a mask is foreground.
enum class Masks {
    Motion,  ///< where it stands out of its own noise, with most of its neighbours
    Raw,     ///< where |S| is above the threshold
};
/// "motion", "raw".
const char* to_string(Masks masks);

/// The command line of `quoin rpca`.
struct RpcaArguments {
    CommonArguments common;
    std::string input, out;
    std::optional<Pursuit> method;  // none: stable for frames with noise, InexactAlm for all else
    double noise = 0;               // 0: that of the frames
    ThresholdRoute route = ThresholdRoute::Auto;
    double lambda = 0, mu = 0, rho = 1.5;
    std::optional<double> tolerance;
    Index iterations = 1000, max_rank = 0, memory = 0;
    bool restart = false;
    bool nan_is_missing = false;  // matrices only
    MatrixFileOptions reading;    // too

    // frames only
    Index start = 0, frames = -1, width = 0, height = 0, window = 0;
    std::optional<Index> carry;  // none: as many as a window has, up to 100
    bool online = false;
    double forget = 0.01;
    bool color = false, grey = false;  // neither: as the input is
    bool synthetic = false, npy = false;
    bool street = false;  // the scene of `quoin demo` in the place of that of --synthetic
    DType dtype = DType::F32;
    Masks masks = Masks::Motion;
    double threshold = 0.06;
    std::string ground_truth, write_scene;
    std::vector<std::string> scene_troubles;

    double tolerance_taken() const { return tolerance.value_or(method == Pursuit::Stable ? 1e-4 : 1e-5); }
    /// Of μ an iteration.
    double growth() const { return method.value_or(Pursuit::InexactAlm) == Pursuit::InexactAlm ? rho : 1; }
    template <class T, class D>
    RobustPcaOptions<T, D> options() const {
        RobustPcaOptions<T, D> options;
        options.pursuit = method.value_or(Pursuit::InexactAlm);
        options.noise = noise;
        options.route = route;
        options.lambda = lambda;
        options.mu = mu;
        options.rho = rho;
        options.tolerance = tolerance_taken();
        options.max_iterations = iterations;
        options.max_rank = max_rank;
        return options;
    }
};

/// A few iterations, for what they load.
template <class T, class D>
void load_pursuit(Context<D>& ctx, MatrixView<const T, D> M, const RpcaArguments& arguments) {
    auto options = arguments.options<T, D>();
    options.max_iterations = 3;
    if (options.pursuit == Pursuit::Stable) options.mu = 1;
    robust_pca<T, D>(ctx, M, options);
}

/// All that `quoin rpca` writes, of a matrix or of frames.
inline const std::vector<std::string> every_rpca_output = {
    "L.npy",          "S.npy",          "background.mp4",  "foreground.mp4", "mask.mp4",
    "comparison.mp4", "comparison.png", "convergence.svg", "decisions.svg",  "report.json"};

/// The video, or the images.
std::vector<std::string> input_files(const RpcaArguments& arguments);

/// Robust PCA of a video, of images or of a synthetic scene: its films and pictures in `arguments.out`, and a report.
void run_rpca_frames(const RpcaArguments& arguments);
/// The same frame by frame, as they come: online robust PCA.
void run_rpca_online(const RpcaArguments& arguments);

}  // namespace quoin::cli
