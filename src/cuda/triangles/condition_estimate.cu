// Condition numbers of a triangle, from its inverse by cuBLAS.
//
//   triangle_sums_kernel  one warp a column of W = R D and of W⁻¹: their absolute sums, with and without the scaling D
//                         undone, each in a fixed tree. 2n² reads.
//
// All is bound by latency up to n ~ 500: about 5 µs a launch.

#include <cmath>
#include <limits>

#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/triangles/triangle_columns.cuh"

namespace quoin {
namespace {

using namespace cuda;

/// Sums column j of W = R D and S = W⁻¹. ν are the norms of R's columns, divided by the power of two of the largest.
/// sums(j) := Σ|w_ij|, Σ|s_ij|, Σ|w_ij| ν_j = Σ|r_ij| and Σ|s_ij| / ν_i = Σ|(R⁻¹)_ij|.
__global__ void __launch_bounds__(32)
    triangle_sums_kernel(MatrixView<const double, Cuda> W, MatrixView<const double, Cuda> S, ColumnScales scales,
                         MatrixView<double, Cuda> sums) {
    const Index j = blockIdx.x, n = W.cols;
    double top = 0;
    for (Index i = threadIdx.x; i < n; i += 32) top = fmax(top, scales.tops[i]);
    top = warp_max(top);
    const int e = ilogb(top);
    const auto norm = [&](Index i) { return scalbn(scales.tops[i], -e) * scales.lengths[i]; };
    double of_w = 0, of_s = 0, of_inverse = 0;
    for (Index i = threadIdx.x; i <= j; i += 32) {
        const double s = fabs(S.data[i + j * S.ld]);
        of_w += fabs(W.data[i + j * W.ld]);
        of_s += s;
        of_inverse += s / norm(i);
    }
    of_w = warp_sum(of_w);
    of_s = warp_sum(of_s);
    of_inverse = warp_sum(of_inverse);
    if (threadIdx.x == 0) {
        double* sum = sums.data + j * sums.ld;
        sum[0] = of_w;
        sum[1] = of_s;
        sum[2] = of_w * norm(j);
        sum[3] = of_inverse;
    }
}

/// S := W⁻¹ for an upper triangle W, by halves: S₁₂ = −S₁₁ (W₁₂ S₂₂). S is I on entry. 2n³/3 flops, zeros included;
/// trsm of I takes n³.
void invert_triangle(Context<Cuda>& ctx, MatrixView<const double, Cuda> W, MatrixView<double, Cuda> S) {
    constexpr Index solved_cols = 256;
    const Index n = W.cols;
    if (n <= solved_cols) return trsm<double>(ctx, Side::Left, Triangle::Upper, Op::None, W, S);
    const Range left{0, (n / 2 + solved_cols - 1) / solved_cols * solved_cols}, right{left.end, n};
    invert_triangle(ctx, W.block(left, left), S.block(left, left));
    invert_triangle(ctx, W.block(right, right), S.block(right, right));
    Arena::Frame frame(ctx);
    const auto product = frame.matrix<double>(left.size(), right.size());
    gemm<double>(ctx, Op::None, Op::None, 1, W.block(left, right), S.block(right, right), 0, product);
    gemm<double>(ctx, Op::None, Op::None, -1, S.block(left, left), product, 0, S.block(left, right));
}

/// A product of norms, each the maximum over a row of the 4×n sums; infinity where one of them is no number.
double condition_of(const double* sums, Index n, int first, int second) {
    double top[2] = {0, 0};
    for (Index j = 0; j < n; ++j) {
        const double pair[] = {sums[4 * j + first], sums[4 * j + second]};
        for (int k = 0; k < 2; ++k) {
            if (!std::isfinite(pair[k])) return std::numeric_limits<double>::infinity();
            top[k] = std::max(top[k], pair[k]);
        }
    }
    return top[0] * top[1];
}

/// max x_j; a NaN stays.
double largest(const double* x, Index n) {
    double top = 0;
    for (Index j = 0; j < n; ++j) {
        if (!(x[j] <= top) && !std::isnan(top)) top = x[j];
    }
    return top;
}

}  // namespace

template <class T, class D>
TriangleInspection inspect_triangle(Context<D>& ctx, View<const T, D> R) {
    const Index n = R.cols;
    TriangleInspection result;
    if (n == 0) return result;
    const auto grid = static_cast<unsigned>(small_size(n));
    Arena::Frame frame(ctx);
    const auto W = frame.matrix<double>(n, n), S = frame.matrix<double>(n, n);
    // tops, W's diagonal and the sums, to be read at once
    double *found = frame.take<double>(6 * n), *diagonal = found + n, *sums = found + 2 * n;
    const ColumnScales scales{found, frame.take<double>(n)};
    launch(ctx.stream(), unit_columns_kernel<T>, {grid, 32}, R, W, scales, diagonal);
    // S = W⁻¹
    set_identity<double>(ctx, 0, S);
    invert_triangle(ctx, W, S);
    launch(ctx.stream(), triangle_sums_kernel, {grid, 32}, W, S, scales, MatrixView<double, Cuda>{sums, 4, n});
    const double* on_host = ctx.state().read_back(found, 6 * n);

    bool singular = false;
    for (Index j = n; j-- > 0;) {
        if (!std::isfinite(on_host[j])) {
            result.condition = result.scaled_condition = std::numeric_limits<double>::quiet_NaN();
            return result;
        }
        if (on_host[j] == 0) result.zero_column = j;
        singular = singular || on_host[j] == 0 || on_host[n + j] == 0;
    }
    if (singular) {
        result.condition = result.scaled_condition = std::numeric_limits<double>::infinity();
    } else {
        result.condition = condition_of(on_host + 2 * n, n, 2, 3);
        result.scaled_condition = condition_of(on_host + 2 * n, n, 0, 1);
    }
    return result;
}

template <class T>
double condition_estimate(Context<Cuda>& ctx, MatrixView<const T, Cuda> R) {
    if (R.rows != R.cols) {
        throw InvalidArgument("condition_estimate: R must be square, and is " + std::to_string(R.rows) + "x" +
                              std::to_string(R.cols));
    }
    return inspect_triangle<T>(ctx, R).condition;
}

template <class T, class D>
double inverse_norm_estimate(Context<D>& ctx, View<const T, D> LU) {
    const Index n = LU.cols;
    if (n == 0) return 0;
    Arena::Frame frame(ctx);
    const auto S = frame.matrix<T>(n, n);
    double* sums = frame.take<double>(n);
    // S = U⁻¹ L⁻¹
    set_identity<T>(ctx, 0, S);
    trsm<T>(ctx, Side::Left, Triangle::UnitLower, Op::None, LU, S);
    trsm<T>(ctx, Side::Left, Triangle::Upper, Op::None, LU, S);
    launch(ctx.stream(), column_sums_kernel<false, T>, {static_cast<unsigned>(small_size(n)), 32}, S, sums);
    return largest(ctx.state().read_back(sums, n), n);
}

QUOIN_IMPLEMENT(Cuda, inspect_triangle, inverse_norm_estimate)
template double condition_estimate<float>(Context<Cuda>&, MatrixView<const float, Cuda>);
template double condition_estimate<double>(Context<Cuda>&, MatrixView<const double, Cuda>);

}  // namespace quoin
