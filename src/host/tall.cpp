#include <cmath>
#include <limits>

#include "host/cache_block.hpp"
#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin {
namespace {

using namespace host;
using Tuned = Tuning<Host>;

/// X (h×n) := X R⁻¹, `solve_width` columns at a time: X₂ := (X₂ − X₁ R₁₂) R₂₂⁻¹.
template <class T>
void solve_block(Index h, Index n, T* X, Index ldx, MatrixView<const T> R) {
    for (Index j = 0; j < n; j += solve_width) {
        outer_blocked(h, std::min(solve_width, n - j), j, X, ldx, R.at(0, j), R.ld, X + j * ldx, ldx);
        kernels<T>().solve(h, std::min(solve_width, n - j), X + j * ldx, ldx, R.at(j, j), R.ld);
    }
}

/// Whether a block of A, or of X, is used where it lies: its columns do not evict each other, being few or at different places of a page.
template <class T>
bool used_in_place(MatrixView<const T> A) {
    constexpr Index page_bytes = 4096;
    const Index place = A.ld * Index{sizeof(T)} % page_bytes;
    return A.cols <= Tuned::few_streams || std::min(place, page_bytes - place) >= Tuned::streams_apart_bytes;
}

}  // namespace

template <class T, class D>
GramPrecision gram_precision(Context<D>&, Index m, Index n) {
    // docs/algorithms.md, section 6: a lane of a block, the runs of a chunk in the narrowest vectors, the chunks in pairs
    const double block = block_rows<T>, run = longest_chain * 16 / sizeof(T);
    const double chunks = static_cast<double>(RowChunks(m, n).count);
    const double longest = block + static_cast<double>(m) / (run * chunks) + std::ceil(std::log2(chunks));
    return {.u = Scalar<T>::u, .longest_sum = longest};
}

template <class T, class D>
void solve_and_gram(Context<D>& ctx, View<const T, D> A, std::span<const View<const Sum<T, D>, D>> factors,
                    View<T, D> X, View<Sum<T, D>, D> G, CertificateView<D> certificate) {
    const Index n = A.cols, m = A.rows;
    if (n == 0 || (certificate.data && certificate.data->refused())) return;
    const double flops = 1.0 * m * n * n * (static_cast<double>(factors.size()) + (G.data ? 1 : 0));
    Arena::Frame frame(ctx.state().arena);
    const RowChunks chunks(m, n);
    const Index h_max = std::min(cache_block_rows<T>(n), std::max<Index>(m, 1));
    const bool in_place = X.data && used_in_place<T>(X), direct = factors.empty() && !X.data && used_in_place<T>(A);
    T* parts = G.data ? frame.take<T>(chunks.count * n * n) : nullptr;
    const int threads = team(ctx, flops);
    ThreadBuffers<T> buffers(frame, threads, direct || in_place ? 0 : h_max * n);
    for_tasks(threads, chunks.count, [&](Index c) {
        T* part = G.data ? parts + c * n * n : nullptr;
        if (G.data) std::fill_n(part, n * n, T(0));
        const Range r = chunks[c];
        for (Index i = r.begin; i < r.end; i += h_max) {
            const Index h = std::min(h_max, r.end - i);
            const T* block = A.at(i, 0);
            Index ld = A.ld;
            if (in_place) {
                T* const x = X.at(i, 0);
                if (X.data != A.data) copy_block(h, n, block, ld, x, X.ld);
                for (const auto& R : factors) solve_block(h, n, x, X.ld, R);
                block = x;
                ld = X.ld;
            } else if (!direct) {
                T* copy = buffers.mine();
                copy_block(h, n, block, ld, copy, h);
                for (const auto& R : factors) solve_block(h, n, copy, h, R);
                if (X.data) copy_block(h, n, copy, h, X.at(i, 0), X.ld);
                block = copy;
                ld = h;
            }
            if (G.data) {
                for (Index s = 0; s < h; s += block_rows<T>) {
                    kernels<T>().inner_upper(n, std::min(block_rows<T>, h - s), block + s, ld, part, n);
                }
            }
        }
    });
    if (G.data) {
        sum_parts(ctx, n, n, chunks.count, parts, G.data, G.ld);
        for (Index j = 0; j < n; ++j) std::fill(G.at(j + 1, j), G.at(n, j), T(0));
    }
    ctx.state().add_flops(flops);
}

template <class T, class D>
void multiply_transposed(Context<D>& ctx, View<const T, D> A, View<const T, D> B, View<T, D> C, bool accumulate,
                         Arithmetic) {
    const Index n = A.cols, p = B.cols, tiles = (p + tile_cols - 1) / tile_cols;
    if (n == 0 || p == 0) return;
    const double flops = 2.0 * A.rows * n * p;
    Arena::Frame frame(ctx.state().arena);
    const RowChunks chunks = chunks_of_product(A.rows, n);
    // A narrow B alone is too few tasks: the columns of A, in whole tiles, are shared out too
    const Index strip = chunks.count * tiles < Tuned::few_tasks ? 2 * tile_cols : n, strips = (n + strip - 1) / strip;
    T* parts = frame.take<T>(chunks.count * n * p);
    for_tasks(team(ctx, flops), chunks.count, tiles * strips, [&](Index c, Index task) {
        const Index i = task % strips * strip, h = std::min(strip, n - i);
        const Index j = task / strips * tile_cols, q = std::min(tile_cols, p - j);
        const Range r = chunks[c];
        T* part = parts + (c * p + j) * n + i;
        if (accumulate && c == 0) {
            copy_block(h, q, C.at(i, j), C.ld, part, n);
        } else {
            fill_zero(h, q, part, n);
        }
        inner_blocked(h, q, r.size(), A.at(r.begin, i), A.ld, B.at(r.begin, j), B.ld, part, n);
    });
    sum_parts(ctx, n, p, chunks.count, parts, C.data, C.ld);
    ctx.state().add_flops(flops);
}

template <class T, class D>
void subtract_product(Context<D>& ctx, View<const T, D> A, View<const T, D> B, View<T, D> C, Arithmetic) {
    const Index tiles = (C.cols + tile_cols - 1) / tile_cols;
    const double flops = 2.0 * C.rows * C.cols * A.cols;
    // no sum runs over rows: how they are cut changes no bits
    const bool few = tiles * (C.rows / Tuned::chunk_rows) < Tuned::few_tasks;
    const RowChunks chunks(C.rows, few ? Tuned::short_chunk_rows : Tuned::chunk_rows);
    for_tasks(team(ctx, flops), chunks.count, tiles, [&](Index c, Index tile) {
        const Index j = tile * tile_cols;
        const Range r = chunks[c];
        outer_blocked(r.size(), std::min(tile_cols, C.cols - j), A.cols, A.at(r.begin, 0), A.ld, B.at(0, j), B.ld,
                      C.at(r.begin, j), C.ld);
    });
    ctx.state().add_flops(flops);
}

template <class T, class D>
void block_gram_schmidt_step(Context<D>& ctx, View<const T, D> Q, View<T, D> W, View<T, D> S, Arithmetic, bool) {
    multiply_transposed<T>(ctx, Q, W, S);
    subtract_product<T>(ctx, Q, S, W);
}

QUOIN_IMPLEMENT(Host, solve_and_gram, gram_precision, multiply_transposed, subtract_product, block_gram_schmidt_step)

}  // namespace quoin
