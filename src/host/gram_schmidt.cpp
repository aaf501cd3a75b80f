// Gram-Schmidt of a few columns, column by column.

#include <cmath>

#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin {
namespace {

using namespace host;

/// ‖R(:, j)‖ down to row `end`.
template <class T>
double column_norm(MatrixView<const T> R, Index j, Index end) {
    double square = 0;
    for (Index i = 0; i < end; ++i) square += static_cast<double>(R(i, j)) * static_cast<double>(R(i, j));
    return std::sqrt(square);
}

}  // namespace

template <class T, class D>
void orthonormalize_columns(Context<D>& ctx, View<T, D> A, View<T, D> R, bool complete,
                            CertificateView<D> certificate) {
    const Index m = A.rows, n = A.cols, k = R.rows - n;
    if (n == 0 || certificate.data->refused()) return;
    Arena::Frame frame(ctx.state().arena);
    const RowChunks chunks(m, Tuning<Host>::gram_schmidt_chunk_rows);
    T* parts = frame.take<T>(chunks.count * n);
    T* products = frame.take<T>(n);
    const Team threads = team(ctx, 4.0 * static_cast<double>(m * n));

    // One sweep: q_{j−1} = a_{j−1} `scale`, or random signs if that is 0; A₂ −= q_{j−1} r; products = a_jᵀ[a_j A₂]
    const auto sweep = [&](Index j, T scale, bool project) {
        const Index rest = n - j;
        for_parts(threads, chunks.count, [&](Index c) {
            T* part = parts + c * rest;
            std::fill_n(part, rest, T(0));
            const Range r = chunks[c];
            for (Index i = r.begin; i < r.end; i += block_rows<T>) {
                const Index h = std::min(block_rows<T>, r.end - i);
                if (project) {
                    kernels<T>().scale(h, scale, A.at(i, j - 1));
                    kernels<T>().outer(h, rest, 1, A.at(i, j - 1), A.ld, R.at(k + j - 1, j), R.ld, A.at(i, j), A.ld);
                }
                kernels<T>().inner(1, rest, h, A.at(i, j), A.ld, A.at(i, j), A.ld, part, 1);
            }
        });
        sum_parts(ctx, 1, rest, chunks.count, parts, products, 1);
    };
    const auto fill_random = [&](Index j) {
        const T entry = 1 / std::sqrt(static_cast<T>(m));
        for (Index i = 0; i < m; ++i) A(i, j) = entry * static_cast<T>(random_sign(i, k + j));
    };

    T scale = 1;
    for (Index j = 0; j < n; ++j) {
        sweep(j, scale, j > 0);
        T norm = std::sqrt(products[0]);
        R(k + j, j) = norm;
        const bool depends = norm <= dependence<T>(k + j) * column_norm<T>(R, j, k + j + 1);
        if (depends) {
            if (!complete) return certificate.data->refuse(0, Certificate::Pivot, k + j);
            fill_random(j);
            sweep(j, 1, false);
            norm = std::sqrt(products[0]);
            R(k + j, j) = 0;
        }
        scale = 1 / norm;
        for (Index l = j + 1; l < n; ++l) R(k + j, l) = products[l - j] * scale;
        std::fill(R.at(k + j + 1, j), R.at(k + n, j), T(0));
    }
    kernels<T>().scale(m, scale, A.at(0, n - 1));
    ctx.state().add_flops(2.0 * static_cast<double>(m) * static_cast<double>(n * n));
}

template <class T, class D>
Remainders inspect_remainders(Context<D>&, View<const T, D> R) {
    const Index n = R.cols, k = R.rows - n;
    Remainders found;
    for (Index j = 0; j < n; ++j) {
        found.count(std::abs(static_cast<double>(R(k + j, j))), column_norm<T>(R, j, k + j + 1), dependence<T>(k + j));
    }
    return found;
}

QUOIN_IMPLEMENT(Host, orthonormalize_columns, inspect_remainders)

}  // namespace quoin
