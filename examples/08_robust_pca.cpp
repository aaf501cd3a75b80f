// Robust PCA: a fixed camera's video, one frame a column, is a background that hardly changes, of low rank, and a
// foreground that covers few pixels, sparse. M = L + S takes them apart.

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "quoin/apps/robust_pca.hpp"

using namespace quoin;

int main(int argc, char** argv) {
    // width × height pixels and as many frames as asked for: 08_robust_pca 384 288 100 is the size of the papers
    const Index width = argc > 3 ? std::atol(argv[1]) : 48, height = argc > 3 ? std::atol(argv[2]) : 36,
                frames = argc > 3 ? std::atol(argv[3]) : 40, side = height / 6;
    Matrix<float> M(width * height, frames), foreground(width * height, frames);
    for (Index t = 0; t < frames; ++t) {
        // the light drifts; a square walks to the right
        const double light = 1 + 0.1 * std::sin(0.1 * double(t));
        const Index left = t * (width - side) / frames, top = height / 2;
        for (Index y = 0; y < height; ++y) {
            for (Index x = 0; x < width; ++x) {
                const double wall = 0.4 + 0.2 * std::sin(0.7 * double(x)) * std::cos(0.5 * double(y));
                const bool covered = x >= left && x < left + side && y >= top && y < top + side;
                foreground(x + y * width, t) = covered ? 1.f : 0.f;
                M(x + y * width, t) = covered ? 0.95f : static_cast<float>(light * wall);
            }
        }
    }

    Context<Host> ctx;
    double wrong = 1;
    for (ThresholdRoute route : {ThresholdRoute::Qr, ThresholdRoute::Gram}) {
        RobustPcaOptions<float> options;
        options.route = route;
        options.tolerance = 1e-5;
        const RobustPca<float> f = robust_pca<float>(ctx, M.view(), options);
        Index errors = 0;
        for (Index t = 0; t < frames; ++t) {
            for (Index p = 0; p < width * height; ++p) errors += (std::abs(f.S(p, t)) > 0.1f) != (foreground(p, t) > 0);
        }
        wrong = double(errors) / double(width * height * frames);
        std::printf(
            "%s: %s after %lld iterations, %.0f a second; background of rank %lld; %.2f%% of the pixels on the wrong "
            "side\n",
            route == ThresholdRoute::Qr ? "QR  " : "Gram", to_string(f.end), static_cast<long long>(f.last.iteration),
            double(f.last.iteration) / f.last.seconds, static_cast<long long>(f.last.rank), 100 * wrong);
        if (f.end != PursuitEnd::Converged || wrong > 0.02) return 1;
    }
    return 0;
}
