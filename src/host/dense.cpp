#include <vector>

#include "host/parallel.hpp"
#include "primitives.hpp"

namespace quoin {
namespace {

using namespace host;

/// Columns of one step of the blocked factorizations of this file.
constexpr Index step = 48;

/// Upper Cholesky factor of an n×n diagonal block, n <= step; `original` is the diagonal of G before any update.
template <class T>
Index cholesky_block(Index n, T* G, Index ldg, const T* original, T tolerance) {
    T row[step];
    for (Index k = 0; k < n; ++k) {
        const T pivot = G[k + k * ldg];
        if (!(pivot > tolerance * original[k]) || !std::isfinite(pivot)) return k;
        const T r = std::sqrt(pivot);
        G[k + k * ldg] = r;
        for (Index j = k + 1; j < n; ++j) row[j] = G[k + j * ldg] /= r;
        // G₂₂ −= rᵀr
        for (Index j = k + 1; j < n; ++j) {
            for (Index i = k + 1; i <= j; ++i) G[i + j * ldg] -= row[i] * row[j];
        }
    }
    return -1;
}

template <class T>
void transpose_block(Index m, Index n, const T* A, Index lda, T* B, Index ldb) {
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) B[j + i * ldb] = A[i + j * lda];
    }
}

}  // namespace

template <class T>
Index cholesky(Context<Host>& ctx, MatrixView<T> G, T tolerance) {
    const Index n = G.rows;
    Arena::Frame frame(ctx.state().arena);
    T *X = frame.take<T>(n * step), *original = frame.take<T>(n);
    for (Index j = 0; j < n; ++j) original[j] = G(j, j);
    for (Index c = 0; c < n; c += step) {
        const Index k = std::min(step, n - c), rest = n - c - k;
        const Index failed = cholesky_block(k, G.at(c, c), G.ld, original + c, tolerance);
        if (failed >= 0) return c + failed;
        const Index tiles = (rest + step - 1) / step;
        // X = G₁₂ᵀ R₁₁⁻¹, R₁₂ = Xᵀ
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(ctx, 2.0 * rest * rest * step))
        for (Index t = 0; t < tiles; ++t) {
            const Index i = t * step, q = std::min(step, rest - i);
            transpose_block(k, q, G.at(c, c + k + i), G.ld, X + i, rest);
            for (Index j = 0; j < k; j += solve_width) {
                const Index w = std::min(solve_width, k - j);
                kernels<T>().outer(q, w, j, X + i, rest, G.at(c, c + j), G.ld, X + i + j * rest, rest);
                kernels<T>().solve(q, w, X + i + j * rest, rest, G.at(c + j, c + j), G.ld);
            }
            transpose_block(q, k, X + i, rest, G.at(c, c + k + i), G.ld);
        }
        // G₂₂ −= X R₁₂, upper triangle
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(ctx, 2.0 * rest * rest * step))
        for (Index t = 0; t < tiles; ++t) {
            const Index j = t * step, q = std::min(step, rest - j);
            kernels<T>().outer(j + q, q, k, X, rest, G.at(c, c + k + j), G.ld, G.at(c + k, c + k + j), G.ld);
        }
    }
    for (Index j = 0; j < n; ++j) std::fill(G.at(j + 1, j), G.at(n, j), T(0));
    ctx.state().add_flops(1.0 / 3.0 * n * n * n);
    return -1;
}

template <class T>
GramInspection inspect_gram(Context<Host>&, MatrixView<const T> G) {
    constexpr T u = std::numeric_limits<T>::epsilon() / 2;
    constexpr T low = std::numeric_limits<T>::min() / (u * u), high = std::numeric_limits<T>::max() * u;
    GramInspection found;
    double sum = 0;
    for (Index j = 0; j < G.cols; ++j) {
        const bool usable = G(j, j) > low && G(j, j) < high;
        if (!usable && found.unusable_column < 0) found.unusable_column = j;
        for (Index i = 0; i < j; ++i) sum += 2.0 * G(i, j) * G(i, j);
        sum += (1.0 - G(j, j)) * (1.0 - G(j, j));
        found.trace += G(j, j);
    }
    found.departure = std::sqrt(sum);
    return found;
}

template <class T>
void scale_diagonal(Context<Host>&, T factor, MatrixView<T> G) {
    for (Index j = 0; j < G.cols; ++j) G(j, j) *= factor;
}

template <class T>
void multiply_upper(Context<Host>& ctx, MatrixView<const T> S, MatrixView<T> R) {
    const Index n = R.rows, tiles = (R.cols + step - 1) / step;
    Arena::Frame frame(ctx.state().arena);
    ThreadBuffers<T> buffers(frame, ctx.threads(), n * step);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(ctx, 1.0 * n * n * R.cols))
    for (Index t = 0; t < tiles; ++t) {
        const Index j = t * step, q = std::min(step, R.cols - j), rows = std::min(n, j + q);
        T* B = buffers.mine();
        // R(:, tile) = 0 − S (−R(:, tile))
        for (Index l = 0; l < q; ++l) {
            for (Index i = 0; i < rows; ++i) B[i + l * n] = -R(i, j + l);
        }
        fill_zero(rows, q, R.at(0, j), R.ld);
        kernels<T>().outer(rows, q, rows, S.data, S.ld, B, n, R.at(0, j), R.ld);
    }
    ctx.state().add_flops(1.0 / 3.0 * n * n * n);
}

template <class T>
void signed_lu(Context<Host>& ctx, MatrixView<T> Q, MatrixView<T> signs) {
    const Index n = Q.rows;
    for (Index c = 0; c < n; c += step) {
        const Index end = std::min(n, c + step);
        for (Index k = c; k < end; ++k) {
            const T sign = Q(k, k) >= 0 ? T(-1) : T(1);
            signs(k, 0) = sign;
            const T pivot = Q(k, k) - sign;
            Q(k, k) = pivot;
            kernels<T>().scale(n - k - 1, 1 / pivot, Q.at(k + 1, k));
            kernels<T>().outer(n - k - 1, end - k - 1, 1, Q.at(k + 1, k), Q.ld, Q.at(k, k + 1), Q.ld,
                               Q.at(k + 1, k + 1), Q.ld);
        }
        const Index rest = n - end, tiles = (rest + step - 1) / step;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(ctx, 2.0 * rest * rest * step))
        for (Index t = 0; t < tiles; ++t) {
            const Index j = end + t * step, q = std::min(step, n - j);
            // U₁₂ = L₁₁⁻¹ Q₁₂;  Q₂₂ −= L₂₁ U₁₂
            for (Index k = c; k < end; ++k) {
                kernels<T>().outer(end - k - 1, q, 1, Q.at(k + 1, k), Q.ld, Q.at(k, j), Q.ld, Q.at(k + 1, j), Q.ld);
            }
            kernels<T>().outer(rest, q, end - c, Q.at(end, c), Q.ld, Q.at(c, j), Q.ld, Q.at(end, j), Q.ld);
        }
    }
    ctx.state().add_flops(2.0 / 3.0 * n * n * n);
}

template <class T>
void solve_triangle(Context<Host>& ctx, Triangle triangle, Op op, MatrixView<const T> A, MatrixView<T> X) {
    const Index n = A.rows, p = X.cols, tiles = (p + step - 1) / step;
    if (n == 0 || p == 0) return;
    const bool unit = triangle == Triangle::UnitLower;
    // op(A)⁻¹ X = (Xᵀ B⁻¹)ᵀ with B = op(A)ᵀ; where that is lower triangular, both run backwards: (J B J) is upper.
    const bool transpose_a = op == Op::None, backwards = unit == (op == Op::Transpose);
    Arena::Frame frame(ctx.state().arena);
    T* B = frame.take<T>(n * n);
    const auto at = [&](Index i) { return backwards ? n - 1 - i : i; };
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i <= j; ++i) {
            const Index r = at(i), c = at(j);
            B[i + j * n] = unit && i == j ? T(1) : transpose_a ? A(c, r) : A(r, c);
        }
    }
    ThreadBuffers<T> buffers(frame, ctx.threads(), n * step);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(ctx, 1.0 * n * n * p))
    for (Index t = 0; t < tiles; ++t) {
        const Index first = t * step, q = std::min(step, p - first);
        T* Xt = buffers.mine();
        for (Index j = 0; j < q; ++j) {
            for (Index i = 0; i < n; ++i) Xt[j + i * q] = X(at(i), first + j);
        }
        for (Index j = 0; j < n; j += solve_width) {
            const Index w = std::min(solve_width, n - j);
            kernels<T>().outer(q, w, j, Xt, q, B + j * n, n, Xt + j * q, q);
            kernels<T>().solve(q, w, Xt + j * q, q, B + j + j * n, n);
        }
        for (Index j = 0; j < q; ++j) {
            for (Index i = 0; i < n; ++i) X(at(i), first + j) = Xt[j + i * q];
        }
    }
    ctx.state().add_flops(1.0 * n * n * p);
}

#define QUOIN_INSTANTIATE(T)                                                             \
    template Index cholesky<T>(Context<Host>&, MatrixView<T>, T);                        \
    template GramInspection inspect_gram<T>(Context<Host>&, MatrixView<const T>);        \
    template void scale_diagonal<T>(Context<Host>&, T, MatrixView<T>);                   \
    template void multiply_upper<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>); \
    template void signed_lu<T>(Context<Host>&, MatrixView<T>, MatrixView<T>);            \
    template void solve_triangle<T>(Context<Host>&, Triangle, Op, MatrixView<const T>, MatrixView<T>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
