// The steps of principal component pursuit on the CPU: each one pass over row chunks, whose sums are added in order.

#include <cmath>

#include "host/device.hpp"
#include "host/parallel.hpp"
#include "robust_pca/gram.hpp"
#include "robust_pca/pursuit.hpp"

namespace quoin {

using namespace host;

namespace {

/// Whether m_ij was observed; without a mask all are.
bool seen(MatrixView<const std::uint8_t> observed, Index i, Index j) { return !observed.data || observed(i, j) != 0; }

}  // namespace

template <>
PursuitSums read_sums(Context<Host>&, SumsView<Host> sums) {
    return *sums.data;
}

template <class T, class D>
void copy_observed(Context<D>& ctx, View<const T, D> M, View<const std::uint8_t, D> observed, View<T, D> X) {
    for_parts(team(ctx, 0, M.rows * M.cols), M.cols, [&](Index j) {
        for (Index i = 0; i < M.rows; ++i) X(i, j) = seen(observed, i, j) ? M(i, j) : T(0);
    });
}

template <class T, class D>
void shrink_sparse(Context<D>& ctx, View<const T, D> M, View<const T, D> Y, View<const std::uint8_t, D> observed,
                   double mu, double threshold, View<T, D> L, View<T, D> S, SumsView<D> sums) {
    const T inverse_mu = static_cast<T>(1 / mu), t = static_cast<T>(threshold);
    const RowChunks chunks(M.rows, Tuning<Host>::short_chunk_rows);
    const auto parts = over_chunks<PursuitSums>(ctx, chunks, 50.0 * M.rows * M.cols, [&](Range rows) {
        PursuitSums part;
        for (Index j = 0; j < M.cols; ++j) {
            const Index h = rows.size();
            const T *const m = M.at(rows.begin, j), *const y = Y.at(rows.begin, j);
            T *const l = L.at(rows.begin, j), *const s = S.at(rows.begin, j);
            T change = 0;
            if (observed.data) {
                for (Index i = 0; i < h; ++i) {
                    const bool is_seen = seen(observed, rows.begin + i, j);
                    const T target = m[i] + inverse_mu * y[i], r = target - l[i];
                    const T shrunk = !is_seen ? T(0) : r > t ? r - t : r < -t ? r + t : T(0);
                    change += (shrunk - s[i]) * (shrunk - s[i]);
                    s[i] = shrunk;
                    l[i] = is_seen ? target - shrunk : l[i];
                }
            } else {
                for (Index i = 0; i < h; ++i) {
                    const T target = m[i] + inverse_mu * y[i], r = target - l[i];
                    // r less its projection to [−t, t]
                    const T shrunk = r - std::max(-t, std::min(t, r));
                    change += (shrunk - s[i]) * (shrunk - s[i]);
                    s[i] = shrunk;
                    l[i] = target - shrunk;
                }
            }
            T sum = 0;
            Index nonzeros = 0;
            for (Index i = 0; i < h; ++i) {
                sum += std::abs(s[i]);
                nonzeros += s[i] != 0;
            }
            part.sparse += static_cast<double>(sum);
            part.change += static_cast<double>(change);
            part.nonzeros += static_cast<double>(nonzeros);
        }
        return part;
    });
    PursuitSums& total = *sums.data;
    total.sparse = total.change = total.nonzeros = 0;
    for (const PursuitSums& part : parts) total.add(part);
}

template <class T, class D>
void gram_eigenvectors(Context<D>& ctx, View<const T, D> X, SpectrumNeeds, std::span<Real<T>> s, View<T, D> Vt) {
    const Index n = X.cols, h_max = block_height<double>(n);
    if (n == 0) return;
    const double flops = 1.0 * X.rows * n * n;
    Matrix<double> G(n, n);
    {
        Arena::Frame frame(ctx.state().arena);
        const RowChunks chunks(X.rows, n);
        double* const parts = frame.take<double>(chunks.count * n * n);
        ThreadBuffers<double> buffers(frame, ctx.threads(), std::is_same_v<T, double> ? 0 : h_max * n);
        for_tasks(team(ctx, flops), chunks.count, [&](Index c) {
            double* const part = parts + c * n * n;
            std::fill_n(part, n * n, 0.0);
            const Range r = chunks[c];
            for (Index i = r.begin; i < r.end; i += h_max) {
                const Index h = std::min(h_max, r.end - i);
                if constexpr (std::is_same_v<T, double>) {
                    kernels<double>().inner_upper(n, h, X.at(i, 0), X.ld, part, n);
                } else {
                    double* const wide = buffers.mine();
                    for (Index j = 0; j < n; ++j) std::copy_n(X.at(i, j), h, wide + j * h);
                    kernels<double>().inner_upper(n, h, wide, h, part, n);
                }
            }
        });
        sum_parts(ctx, n, n, chunks.count, parts, G.data(), n);
    }
    eigenvectors_of_gram<T>(ctx, G.view(), s, Vt);
    ctx.state().add_flops(flops);
}

template <class T, class D>
void right_singular_vectors(Context<D>& ctx, View<T, D> R, SpectrumNeeds, std::span<Real<T>> s, View<T, D> Vt) {
    Matrix<T> U(R.rows, R.cols);
    small_svd<T>(ctx, R, s, U.view(), Vt);
}

template <class T, class D>
void weighted_projector(Context<D>& ctx, View<const T, D> Vt, std::span<const Real<T>> weights, View<T, D> P) {
    const Index r = Vt.rows, n = Vt.cols;
    Matrix<T> weighted(r, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < r; ++i) weighted(i, j) = weights[i] * Vt(i, j);
    }
    multiply_transposed<T>(ctx, Vt, weighted.view(), P);
}

template <class T, class D>
void update_low_rank_and_multipliers(Context<D>& ctx, View<const T, D> P, View<const T, D> M, View<const T, D> S,
                                     View<const std::uint8_t, D> observed, double mu, View<T, D> X, View<T, D> Y,
                                     SumsView<D> sums) {
    const Index n = X.cols, h_max = block_height<T>(n);
    const double flops = 2.0 * X.rows * n * n;
    const T m_u = static_cast<T>(mu);
    Arena::Frame frame(ctx.state().arena);
    T* const minus_p = frame.take<T>(n * n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < n; ++i) minus_p[i + j * n] = -P(i, j);
    }
    ThreadBuffers<T> buffers(frame, ctx.threads(), h_max * n);
    const RowChunks chunks(X.rows, Tuning<Host>::short_chunk_rows);
    const auto parts = over_chunks<PursuitSums>(ctx, chunks, flops, [&](Range rows) {
        PursuitSums part;
        T* const block = buffers.mine();
        for (Index begin = rows.begin; begin < rows.end; begin += h_max) {
            const Index h = std::min(h_max, rows.end - begin);
            // L = 0 − X (−P)
            copy_block(h, n, X.at(begin, 0), X.ld, block, h);
            fill_zero(h, n, X.at(begin, 0), X.ld);
            outer_blocked(h, n, n, block, h, minus_p, n, X.at(begin, 0), X.ld);
            for (Index j = 0; j < n; ++j) {
                const T *const m = M.at(begin, j), *const s = S.at(begin, j), *const l = X.at(begin, j);
                T* const y = Y.at(begin, j);
                T residual = 0, multipliers = 0;
                for (Index i = 0; i < h; ++i) {
                    const T z = seen(observed, begin + i, j) ? m[i] - l[i] - s[i] : T(0);
                    y[i] += m_u * z;
                    residual += z * z;
                    multipliers += y[i] * y[i];
                }
                part.residual += static_cast<double>(residual);
                part.multipliers += static_cast<double>(multipliers);
            }
        }
        return part;
    });
    PursuitSums& total = *sums.data;
    total.residual = total.multipliers = 0;
    for (const PursuitSums& part : parts) total.add(part);
    ctx.state().add_flops(flops);
}

QUOIN_IMPLEMENT(Host, copy_observed, shrink_sparse, gram_eigenvectors, right_singular_vectors, weighted_projector,
                update_low_rank_and_multipliers)

}  // namespace quoin
