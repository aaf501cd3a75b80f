#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "quoin/apps/robust_pca.hpp"

namespace quoin::cli {

/// Matrices as large as M that a pursuit may hold: M, L, S, Y, the QR's copy of an iterate, and room.
inline constexpr double matrices_held = 6;

/// The condition for a pixel of a mask to be foreground.
enum class Masks {
    Motion,  ///< it stands out of its own noise, and so do most of its neighbours
    Raw,     ///< |S| is above the threshold
};
/// "motion", "raw".
const char* to_string(Masks masks);

/// The command line of `quoin rpca`.
struct RpcaArguments {
    CommonArguments common;
    std::string input, out;
    std::optional<Pursuit> method;  // none: stable for frames with noise, InexactAlm for all else
    double noise = 0;               // 0: estimated from the frames
    ThresholdRoute route = ThresholdRoute::Auto;
    double lambda = 0, mu = 0, rho = 1.5;
    std::optional<double> tolerance;
    Index iterations = 1000, max_rank = 0, memory = 0;
    bool restart = false;
    bool nan_is_missing = false;  // matrices only
    MatrixFileOptions reading;    // matrices only

    // frames only
    Index start = 0, frames = -1, width = 0, height = 0, window = 0;
    std::optional<Index> carry;  // none: the frames of a window, but at most 100
    bool online = false;
    double forget = 0.01;
    bool color = false, grey = false;  // neither: as the input is
    bool synthetic = false, npy = false;
    bool street = false;  // with `synthetic`: the scene of `quoin demo`
    ScalarKind dtype = ScalarKind::F32;
    Masks masks = Masks::Motion;
    double threshold = 0.06;
    std::string ground_truth, write_scene;
    std::vector<std::string> scene_troubles;

    double tolerance_taken() const { return tolerance.value_or(method == Pursuit::Stable ? 1e-4 : 1e-5); }
    /// Growth of μ in an iteration.
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

/// Runs a few iterations, which load libraries and kernels.
template <class T, class D>
void load_pursuit(Context<D>& ctx, MatrixView<const T, D> M, const RpcaArguments& arguments) {
    auto options = arguments.options<T, D>();
    options.max_iterations = 3;
    if (options.pursuit == Pursuit::Stable) options.mu = 1;
    robust_pca<T, D>(ctx, M, options);
}

/// Every file that `quoin rpca` may write, for a matrix or for frames.
inline const std::vector<std::string> every_rpca_output = {
    "L.npy",          "S.npy",          "background.mp4",  "foreground.mp4", "mask.mp4",
    "comparison.mp4", "comparison.png", "convergence.svg", "decisions.svg",  "report.json"};

/// Returns the path of the video, or the paths of the images.
std::vector<std::string> input_files(const RpcaArguments& arguments);

/// Runs robust PCA of a video, of images or of a synthetic scene. Writes films and pictures to `arguments.out`, and a
/// report.
void run_rpca_frames(const RpcaArguments& arguments);
/// Separates frames like `run_rpca_frames`, but one by one as they come, by online robust PCA.
void run_rpca_online(const RpcaArguments& arguments);

}  // namespace quoin::cli
