#pragma once

// Demands of every 8×8 diagonal block of R (n×n) that X := A R⁻¹ by the block's inverse is as good as substitution. With
// B = A_i − Σ X_l R_li, |B − X_i R_ii| <= 16u |B||R_ii⁻¹||R_ii|, and column k of B is no longer than a_k, so that column j of
// the residual is at most 16u s_j ‖a_j‖ (about 0.2u s_j on random data and on the gallery's worst class):
//
//     s_j = Σ_k ‖a_k‖ (|R_ii⁻¹||R_ii|)_kj / ‖a_j‖ <= limit,   ‖a_j‖ = ‖R(:, j)‖
//
// One warp a block of R: its lanes read columns; lane j < 8 solves for column j of R_ii⁻¹ and adds s_j. Nothing where the
// verdict is closed already; several blocks may close it, with the same words.

#include "primitives.hpp"

namespace quoin::cuda {

__global__ void __launch_bounds__(32)
    demand_block_condition(MatrixView<const double, Cuda> R, double limit, int step, Verdict* verdict) {
    constexpr int width = 8;
    __shared__ double D[width][width + 1], Z[width][width + 1], norm[width];  // [column][row]
    if (verdict->closed()) return;
    const Index first = Index(blockIdx.x) * width;
    const int lane = threadIdx.x, cols = static_cast<int>(min(Index(width), R.cols - first));
    for (int j = 0; j < width; ++j) {
        double square = 0;
        if (j < cols) {
            for (Index i = lane; i <= first + j; i += 32)
                square += R.data[i + (first + j) * R.ld] * R.data[i + (first + j) * R.ld];
        }
        for (int half = 16; half > 0; half /= 2) square += __shfl_xor_sync(~0u, square, half);
        if (lane == 0) norm[j] = j < cols ? sqrt(square) : 1.0;
        if (lane < width) {
            D[j][lane] = lane <= j && j < cols ? R.data[first + lane + (first + j) * R.ld] : lane == j ? 1.0 : 0.0;
        }
    }
    __syncwarp();
    if (lane < width) {
        // R_ii z = e_lane
        for (int i = width - 1; i >= 0; --i) {
            double sum = i == lane ? 1.0 : 0.0;
            for (int l = i + 1; l <= lane; ++l) sum -= D[l][i] * Z[lane][l];
            Z[lane][i] = i > lane ? 0.0 : sum / D[i][i];
        }
    }
    __syncwarp();
    if (lane < cols) {
        double sum = 0;
        for (int k = 0; k <= lane; ++k) {
            for (int l = k; l <= lane; ++l) sum += norm[k] / norm[lane] * fabs(Z[l][k]) * fabs(D[lane][l]);
        }
        if (!(sum <= limit)) verdict->close(step, Verdict::Condition, -1);
    }
}

}  // namespace quoin::cuda
