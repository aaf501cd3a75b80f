// Small triangles: Cholesky, solves, products and Householder reconstruction.

#include <vector>

#include "host/cache_block.hpp"
#include "host/condition_estimate.hpp"
#include "host/device.hpp"
#include "host/parallel.hpp"
#include "host/substitute.hpp"

namespace quoin {
namespace {

using namespace host;

constexpr Index step = Tuning<Host>::square_step;
/// A triangle is used in place for solves with at most this number of columns, because a copy of it costs more.
constexpr Index few_columns = 4;

/// Upper Cholesky factor of an n×n diagonal block, n <= step.
template <class T>
Index cholesky_block(Index n, T* G, Index ldg) {
    T row[step];
    for (Index k = 0; k < n; ++k) {
        const Real<T> pivot = real_part(G[k + k * ldg]);
        if (!(pivot > 0) || !std::isfinite(pivot)) return k;
        const Real<T> r = std::sqrt(pivot);
        G[k + k * ldg] = r;
        for (Index j = k + 1; j < n; ++j) row[j] = G[k + j * ldg] /= r;
        // G₂₂ −= rᵀr
        for (Index j = k + 1; j < n; ++j) {
            for (Index i = k + 1; i <= j; ++i) G[i + j * ldg] -= conjugate(row[i]) * row[j];
        }
    }
    return -1;
}

/// G = RᵀR in place, zeros below. The first column whose pivot is not positive and finite, or −1.
template <class T>
Index cholesky(Context<Host>& ctx, MatrixView<T> G) {
    const Index n = G.rows;
    Arena::Frame frame(ctx.state().arena);
    T* X = frame.take<T>(n * step);
    for (Index c = 0; c < n; c += step) {
        const Index k = std::min(step, n - c), rest = n - c - k;
        const Index failed = cholesky_block(k, G.at(c, c), G.ld);
        if (failed >= 0) return c + failed;
        const Index tiles = (rest + step - 1) / step;
        // X = G₁₂ᵀ R₁₁⁻¹, R₁₂ = Xᵀ
        for_tasks(team(ctx, 2.0 * rest * rest * step), tiles, [&](Index t) {
            const Index i = t * step, q = std::min(step, rest - i);
            transpose_block(k, q, G.at(c, c + k + i), G.ld, X + i, rest);
            for (Index j = 0; j < k; j += solve_width) {
                const Index w = std::min(solve_width, k - j);
                kernels<T>().outer(q, w, j, X + i, rest, G.at(c, c + j), G.ld, X + i + j * rest, rest);
                kernels<T>().solve(q, w, X + i + j * rest, rest, G.at(c + j, c + j), G.ld);
            }
            transpose_block(q, k, X + i, rest, G.at(c, c + k + i), G.ld);
        });
        // G₂₂ −= X R₁₂, upper triangle, the last columns first: they take longest
        for_tasks(team(ctx, 2.0 * rest * rest * step), tiles, [&](Index t) {
            const Index j = (tiles - 1 - t) * step, q = std::min(step, rest - j);
            kernels<T>().outer(j + q, q, k, X, rest, G.at(c, c + k + j), G.ld, G.at(c + k, c + k + j), G.ld);
        });
    }
    for (Index j = 0; j < n; ++j) std::fill(G.at(j + 1, j), G.at(n, j), T(0));
    ctx.state().add_flops(1.0 / 3.0 * n * n * n);
    return -1;
}

}  // namespace

template <class T, class D>
void factor_gram(Context<D>& ctx, View<Sum<T, D>, D> G, GramDemands demands, View<Sum<T, D>, D> R,
                 CertificateView<D> certificate) {
    Certificate& state = *certificate.data;
    if (demands.step == 0) state = {};
    if (state.refused()) return;
    Index unusable = -1;
    double square = 0, trace = 0;
    for (Index j = 0; j < G.cols; ++j) {
        const Real<T> g = real_part(G(j, j));
        const bool usable = g > smallest_square<Real<T>> && g < largest_square<Real<T>>;
        if (!usable && unusable < 0) unusable = j;
        for (Index i = 0; i < j; ++i) square += real_part(2.0 * conjugate(widened(G(i, j))) * widened(G(i, j)));
        square += (1.0 - g) * (1.0 - g);
        trace += g;
    }
    state.departure = std::sqrt(square);
    if (unusable >= 0) return state.refuse(demands.step, Certificate::Unusable, unusable);
    if (!(trace <= demands.max_trace)) return state.refuse(demands.step, Certificate::Trace, -1);
    if (!(state.departure <= demands.max_departure)) return state.refuse(demands.step, Certificate::Departure, -1);
    Index column_of_eigenvalue = -1;
    if (demands.min_eigenvalue > 0) {
        const Index n = G.cols;
        Arena::Frame frame(ctx.state().arena);
        const MatrixView<T> shifted(frame.take<T>(n * n), n, n, n);
        copy<T>(ctx, G, shifted);
        for (Index j = 0; j < n; ++j) shifted(j, j) *= static_cast<Real<T>>(1 - demands.min_eigenvalue);
        column_of_eigenvalue = cholesky(ctx, shifted);
    }
    if (R.data != G.data) copy<T>(ctx, G, R);
    const Index failed = cholesky(ctx, R);
    if (failed >= 0) return state.refuse(demands.step, Certificate::Pivot, failed);
    // ‖(R D)⁻¹‖₂² <= 1/λ and ‖R D‖₁ <= √n: κ₁(R D) <= n/√λ
    const double bound = static_cast<double>(R.cols) / std::sqrt(demands.min_eigenvalue);
    const bool is_known = column_of_eigenvalue < 0 && bound < demands.max_condition;
    if (demands.asks_condition() && !is_known && R.cols > 0) {
        state.condition = scaled_condition_estimate<T>(R);
        if (!(state.condition < demands.max_condition)) return state.refuse(demands.step, Certificate::Condition, -1);
    }
    if (column_of_eigenvalue >= 0) state.refuse(demands.step, Certificate::Eigenvalue, column_of_eigenvalue);
}

template <class T, class P, class D>
void multiply_upper(Context<D>& ctx, View<const T, D> S, View<const T, D> R, View<P, D> to,
                    CertificateView<D> certificate) {
    if (certificate.data && certificate.data->refused()) return;
    if (!S.data) return copy_triangle<T>(ctx, R, to);
    const Index n = R.rows, tiles = (R.cols + step - 1) / step;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, 1.0 * n * n * R.cols);
    ThreadBuffers<T> buffers(frame, threads, n * step);
    for_tasks(threads, tiles, [&](Index t) {
        const Index j = t * step, q = std::min(step, R.cols - j), rows = std::min(n, j + q);
        T* B = buffers.mine();
        // to(:, tile) = 0 − S (−R(:, tile))
        for (Index l = 0; l < q; ++l) {
            for (Index i = 0; i < rows; ++i) B[i + l * n] = -R(i, j + l);
        }
        fill_zero(n, q, to.at(0, j), to.ld);
        kernels<T>().outer(rows, q, rows, S.data, S.ld, B, n, to.at(0, j), to.ld);
    });
    ctx.state().add_flops(1.0 / 3.0 * n * n * n);
}

template <class T, class D>
void signed_lu(Context<D>& ctx, View<T, D> Q, View<T, D> signs) {
    const Index n = Q.rows;
    for (Index c = 0; c < n; c += step) {
        const Index end = std::min(n, c + step);
        for (Index k = c; k < end; ++k) {
            const T sign = real_part(Q(k, k)) >= 0 ? T(-1) : T(1);
            signs(k, 0) = sign;
            const T pivot = Q(k, k) - sign;
            Q(k, k) = pivot;
            kernels<T>().scale(n - k - 1, T(1) / pivot, Q.at(k + 1, k));
            kernels<T>().outer(n - k - 1, end - k - 1, 1, Q.at(k + 1, k), Q.ld, Q.at(k, k + 1), Q.ld,
                               Q.at(k + 1, k + 1), Q.ld);
        }
        const Index rest = n - end, tiles = (rest + step - 1) / step;
        for_tasks(team(ctx, 2.0 * rest * rest * step), tiles, [&](Index t) {
            const Index j = end + t * step, q = std::min(step, n - j);
            // U₁₂ = L₁₁⁻¹ Q₁₂;  Q₂₂ −= L₂₁ U₁₂
            for (Index k = c; k < end; ++k) {
                kernels<T>().outer(end - k - 1, q, 1, Q.at(k + 1, k), Q.ld, Q.at(k, j), Q.ld, Q.at(k + 1, j), Q.ld);
            }
            kernels<T>().outer(rest, q, end - c, Q.at(end, c), Q.ld, Q.at(c, j), Q.ld, Q.at(end, j), Q.ld);
        });
    }
    ctx.state().add_flops(2.0 / 3.0 * n * n * n);
}

template <class T, class D>
void drop_unit_reflectors(Context<D>&, View<T, D> A, View<T, D> R, View<T, D> Tf, View<T, D> signs,
                          CertificateView<D> certificate) {
    if (certificate.data->refused()) return;
    const Index m = A.rows, n = A.cols;
    for (Index j = 0; j < n; ++j) {
        const auto is_zero = [](T v) { return v == T(0); };
        if (imaginary_part(Tf(j, j)) != 0 || !std::all_of(A.at(j, j) + 1, A.at(j, j) + m - j, is_zero)) continue;
        signs(j, 0) = -signs(j, 0);
        for (Index l = j; l < n; ++l) A(j, l) = R(j, l) = -R(j, l);
        for (Index l = 0; l < n; ++l) Tf(j, l) = Tf(l, j) = 0;
    }
}

template <class T, class D>
void solve_triangle(Context<D>& ctx, Triangle triangle, Op op, View<const T, D> A, View<T, D> X) {
    const Index n = A.rows, p = X.cols, tiles = (p + step - 1) / step;
    if (n == 0 || p == 0) return;
    const bool unit = triangle == Triangle::UnitLower, lower = triangle != Triangle::Upper;
    if (p <= few_columns) {
        for (Index j = 0; j < p; ++j) substitute<T>(triangle, op, A, X.at(0, j));
        return ctx.state().add_flops(1.0 * n * n * p);
    }
    // op(A)⁻¹ X = (Xᵀ B⁻¹)ᵀ with B = op(A)ᵀ, ᵀ without conjugates here; where that is lower triangular, both run
    // backwards: (J B J) is upper.
    const bool transpose_a = op == Op::None, backwards = lower == (op == Op::Transpose);
    Arena::Frame frame(ctx.state().arena);
    T* B = frame.take<T>(n * n);
    const auto at = [&](Index i) { return backwards ? n - 1 - i : i; };
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i <= j; ++i) {
            const Index r = at(i), c = at(j);
            B[i + j * n] = unit && i == j ? T(1) : transpose_a ? A(c, r) : conjugate(A(r, c));
        }
    }
    const Team threads = team(ctx, 1.0 * n * n * p);
    ThreadBuffers<T> buffers(frame, threads, n * step);
    for_tasks(threads, tiles, [&](Index t) {
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
    });
    ctx.state().add_flops(1.0 * n * n * p);
}

namespace {

/// X := X A, A upper or lower triangular: some rows of X at a time in cache.
template <class T>
void multiply_from_right(Context<Host>& ctx, bool lower, bool unit, bool transpose, MatrixView<const T> A,
                         MatrixView<T> X) {
    const Index n = A.rows, height = std::min(cache_block_rows<T>(n), X.rows), tiles = (X.rows + height - 1) / height;
    const bool upper = lower == transpose;
    Arena::Frame frame(ctx.state().arena);
    // −op(A) with its zeros: kernels subtract
    T* M = frame.take<T>(n * n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < n; ++i) {
            const bool stored = i == j ? !unit : (i < j) == upper;
            M[i + j * n] = stored ? -(transpose ? conjugate(A(j, i)) : A(i, j)) : T(i == j ? -1 : 0);
        }
    }
    const Team threads = team(ctx, 1.0 * n * n * X.rows);
    ThreadBuffers<T> buffers(frame, threads, height * (n + solve_width));
    for_tasks(threads, tiles, [&](Index t) {
        const Index first = t * height, q = std::min(height, X.rows - first);
        T *B = buffers.mine(), *B_c = B + n * q;
        copy_block(q, n, X.at(first, 0), X.ld, B, q);
        // in an order that overwrites columns of B only after their last use
        const Index steps = (n + solve_width - 1) / solve_width;
        for (Index l = 0; l < steps; ++l) {
            const Index c = (upper ? steps - 1 - l : l) * solve_width, k = std::min(solve_width, n - c);
            const Index i = upper ? 0 : c + k, h = upper ? c : n - c - k;
            copy_block(q, k, B + c * q, q, B_c, q);
            fill_zero(q, k, B + c * q, q);
            outer_blocked(q, k, k, B_c, q, M + c + c * n, n, B + c * q, q);
            outer_blocked(q, k, h, B + i * q, q, M + i + c * n, n, B + c * q, q);
        }
        copy_block(q, n, B, q, X.at(first, 0), X.ld);
    });
}

}  // namespace

template <class T, class D>
void multiply_triangle(Context<D>& ctx, Side side, Triangle triangle, Op op, View<const T, D> A, View<T, D> X) {
    const bool lower = triangle != Triangle::Upper, unit = triangle == Triangle::UnitLower;
    const Index n = A.rows;
    if (X.empty()) return;
    ctx.state().add_flops(1.0 * n * n * (side == Side::Left ? X.cols : X.rows));
    if (side == Side::Right) return multiply_from_right<T>(ctx, lower, unit, op == Op::Transpose, A, X);
    const Index tiles = (X.cols + step - 1) / step;
    Arena::Frame frame(ctx.state().arena);
    // A's diagonal blocks, with explicit zeros in the other triangle
    T* diagonal = frame.take<T>(n * step);
    for (Index j = 0; j < n; ++j) {
        const Index c = j / step * step, k = std::min(step, n - c);
        for (Index i = 0; i < k; ++i) {
            const bool stored = c + i == j ? !unit : (c + i > j) == lower;
            diagonal[i + j * step] = stored ? A(c + i, j) : T(c + i == j);
        }
    }
    const Team threads = team(ctx, 1.0 * n * n * X.cols);
    ThreadBuffers<T> buffers(frame, threads, n * step);
    for_tasks(threads, tiles, [&](Index t) {
        const Index first = t * step, q = std::min(step, X.cols - first);
        const auto X_t = X.col_block({first, first + q});
        // X := AᵀB with B = X, or 0 − A B with B = −X
        T* B = buffers.mine();
        copy_block(n, q, X_t.data, X_t.ld, B, n);
        if (op == Op::None) {
            for (Index i = 0; i < n * q; ++i) B[i] = -B[i];
        }
        fill_zero(n, q, X_t.data, X_t.ld);
        for (Index c = 0; c < n; c += step) {
            const Index k = std::min(step, n - c), i = lower ? c + k : 0, h = lower ? n - c - k : c;
            const T *D_c = diagonal + c * step, *A_c = A.at(i, c);  // A_c: h rows below or above the diagonal block
            if (op == Op::None) {
                outer_blocked(k, q, k, D_c, step, B + c, n, X_t.at(c, 0), X.ld);
                outer_blocked(h, q, k, A_c, A.ld, B + c, n, X_t.at(i, 0), X.ld);
            } else {
                inner_blocked(k, q, k, D_c, step, B + c, n, X_t.at(c, 0), X.ld);
                inner_blocked(k, q, h, A_c, A.ld, B + i, n, X_t.at(c, 0), X.ld);
            }
        }
    });
}

template decltype(multiply_upper<QUOIN_F32, QUOIN_F32, Host>) multiply_upper<QUOIN_F32, QUOIN_F32, Host>;
template decltype(multiply_upper<QUOIN_F64, QUOIN_F64, Host>) multiply_upper<QUOIN_F64, QUOIN_F64, Host>;
QUOIN_IMPLEMENT(Host, factor_gram, signed_lu, drop_unit_reflectors, solve_triangle, multiply_triangle)

}  // namespace quoin
