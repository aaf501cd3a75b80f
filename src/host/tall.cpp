// Products and solves of tall matrices, by chunks of rows: Gram matrices, A R⁻¹, QᵀC.

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

/// Whether a block of A, or of X, is used in place. It must be column-major, and its columns must not evict each other:
/// they are few, or at different places of a page.
template <class T>
bool used_in_place(const InputView<T>& A) {
    if (A.by_rows) return false;
    constexpr Index page_bytes = 4096;
    const Index place = A.ld * Index{sizeof(T)} % page_bytes;
    return A.cols <= Tuned::few_streams || std::min(place, page_bytes - place) >= Tuned::streams_apart_bytes;
}

/// Least tasks of each thread, so that none waits long for the last one.
constexpr Index tasks_per_thread = 4;

/// The given rows of A R⁻¹ for R = R₁, then R₂, ...: in `buffer`, if there is one, and in X, if it has data. X may be
/// A.
template <class T>
MatrixView<const T> solve_rows(Range rows, const InputView<T>& A, std::span<const MatrixView<const T>> factors,
                               MatrixView<T> X, T* buffer) {
    const Index h = rows.size(), n = A.cols;
    const auto from = A.row_block(rows);
    const MatrixView<T> x = buffer ? MatrixView<T>(buffer, h, n, h) : X.row_block(rows);
    if (x.data != from.data) load_block(from, x.data, x.ld);
    for (const auto& R : factors) solve_block(h, n, x.data, x.ld, R);
    if (buffer && X.data) copy_block(h, n, x.data, x.ld, X.at(rows.begin, 0), X.ld);
    return x;
}

/// X := A R⁻¹ for R = R₁, then R₂, ..., `height` rows at a time in cache.
template <class T>
void solve_blocks(Context<Host>& ctx, const Team& threads, Index height, const InputView<T>& A,
                  std::span<const MatrixView<const T>> factors, MatrixView<T> X) {
    const Index n = A.cols, m = A.rows;
    const Index run = std::max<Index>(1, m / (tasks_per_thread * threads * height)) * height;
    Arena::Frame frame(ctx.state().arena);
    const bool in_place = used_in_place<T>(X);
    ThreadBuffers<T> buffers(frame, threads, in_place ? 0 : height * n);
    for_tasks(threads, (m + run - 1) / run, [&](Index task) {
        const Index end = std::min(m, (task + 1) * run);
        for (Index i = task * run; i < end && !threads.stopped(); i += height) {
            solve_rows<T>({i, std::min(end, i + height)}, A, factors, X, in_place ? nullptr : buffers.mine());
        }
    });
}

/// The given columns of the upper triangle of G += BᵀB.
template <class T>
void add_gram(MatrixView<const T> B, Range cols, T* G, Index ldg) {
    for (Index s = 0; s < B.rows; s += block_rows<T>) {
        const Index rows = std::min(block_rows<T>, B.rows - s);
        T* const C = G + cols.begin * ldg;
        kernels<T>().inner(cols.begin, cols.size(), rows, B.at(s, 0), B.ld, B.at(s, cols.begin), B.ld, C, ldg);
        kernels<T>().inner_upper(cols.size(), rows, B.at(s, cols.begin), B.ld, C + cols.begin, ldg);
    }
}

}  // namespace

template <class T, class D>
GramPrecision gram_precision(Context<D>&, Index m, Index n) {
    // docs/algorithms.md, section 6: a lane of a block, the runs of a chunk in the narrowest vectors, the chunks in
    // pairs
    const double block = block_rows<T>, run = longest_chain * 16 / sizeof(T);
    const double chunks = static_cast<double>(RowChunks(m, n).count);
    const double longest = block + static_cast<double>(m) / (run * chunks) + std::ceil(std::log2(chunks));
    return {.u = Scalar<T>::u, .longest_sum = longest};
}

template <class T, class D>
void solve_and_gram(Context<D>& ctx, Input<T, D> A, std::span<const View<const Sum<T, D>, D>> factors, View<T, D> X,
                    View<Sum<T, D>, D> G, CertificateView<D> certificate, View<const Index, D> order) {
    const Index n = A.cols, m = A.rows;
    if (n == 0 || (certificate.data && certificate.data->refused())) return;
    if (order.data) permute_columns<T>(ctx, order, X);
    const double flops = 1.0 * m * n * n * (static_cast<double>(factors.size()) + (G.data ? 1 : 0));
    ctx.state().add_flops(flops);
    const Team threads = team(ctx, flops, m * n);
    const RowChunks chunks(m, n);
    const Index h_max = std::min(cache_block_rows<T>(n), std::max<Index>(m, 1));
    const bool few_chunks = threads > 1 && chunks.count < tasks_per_thread * threads;
    // no sum runs over the rows of X, so all threads share its blocks; G is then formed from the new X
    if (X.data && (few_chunks || !G.data)) {
        solve_blocks<T>(ctx, threads, h_max, A, factors, X);
        A = X;
        X = {};
        factors = {};
    }
    if (!G.data) return;
    Arena::Frame frame(ctx.state().arena);
    const bool in_place = X.data && used_in_place<T>(X), direct = factors.empty() && !X.data && used_in_place<T>(A);
    const Index most =
        factors.empty() && few_chunks ? (tasks_per_thread * threads + chunks.count - 1) / chunks.count : 1;
    const Index strip = ((n + most - 1) / most + tile_cols - 1) / tile_cols * tile_cols,
                strips = (n + strip - 1) / strip;
    T* parts = frame.take<T>(chunks.count * n * n);
    ThreadBuffers<T> buffers(frame, threads, direct || in_place ? 0 : h_max * n);
    // the last columns first: they take longest
    for_tasks(threads, strips, chunks.count, [&](Index s, Index c) {
        const Range cols{(strips - 1 - s) * strip, std::min(n, (strips - s) * strip)}, r = chunks[c];
        T* part = parts + c * n * n;
        fill_zero(n, cols.size(), part + cols.begin * n, n);
        const auto A_cols = A.col_block({0, cols.end});
        for (Index i = r.begin; i < r.end && !threads.stopped(); i += h_max) {
            const Range rows{i, std::min(r.end, i + h_max)};
            add_gram<T>(direct ? A_cols.row_block(rows).stored()
                               : solve_rows<T>(rows, A_cols, factors, X, in_place ? nullptr : buffers.mine()),
                        cols, part, n);
        }
    });
    sum_parts(ctx, n, n, chunks.count, parts, G.data, G.ld);
    for (Index j = 0; j < n; ++j) std::fill(G.at(j + 1, j), G.at(n, j), T(0));
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
    for_tasks(team(ctx, flops, A.rows * (n + p)), chunks.count, tiles * strips, [&](Index c, Index task) {
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
    for_tasks(team(ctx, flops, C.rows * (C.cols + A.cols)), chunks.count, tiles, [&](Index c, Index tile) {
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

template <class T, class D>
void multiply_windows(Context<D>& ctx, std::span<const WindowFactor<T, D>> windows, Input<T, D> A, Input<T, D> B,
                      Range kept, View<T, D> Q) {
    Index widest = 0;
    double flops = 0;
    for (const auto& [minus_G, first] : windows) {
        widest = std::max(widest, minus_G.rows);
        flops += 2.0 * Q.rows * minus_G.rows * minus_G.rows;
    }
    constexpr Index height = Tuned::window_rows;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, flops, Q.rows * Q.cols);
    ThreadBuffers<T> buffers(frame, threads, height * (2 * widest + (A.by_rows || B.by_rows ? A.cols + B.cols : 0)));
    for_tasks(threads, (Q.rows + height - 1) / height, [&](Index task) {
        const Range rows{task * height, std::min(Q.rows, (task + 1) * height)};
        const Index h = rows.size();
        const auto Q_rows = Q.row_block(rows);
        T *Y = buffers.mine(), *last = Y + h * widest, *const X = last + h * widest;
        Range held, done;  // the columns in `last`, and all so far
        // calls f(columns, data, ld) for columns of A and of B
        const auto pass = [&](Range cols, const auto& f) {
            if (cols.size() <= 0) return;
            const Index end = std::clamp(A.cols, cols.begin, cols.end);
            const auto pass_part = [&](const Input<T, D>& part, Range r, Index from) {
                if (r.size() <= 0) return;
                const auto P = part.row_block(rows).col_block({r.begin - from, r.end - from});
                if (P.by_rows) load_block(P, X, h);
                f(r, P.by_rows ? X : P.data, P.by_rows ? h : P.ld);
            };
            pass_part(A, {cols.begin, end}, 0);
            pass_part(B, {end, cols.end}, A.cols);
        };
        const auto store = [&](Range cols) {
            const Index c = std::max(cols.begin, kept.begin), n = std::min(cols.end, kept.end) - c;
            copy_block(h, n, last + (c - held.begin) * h, h, Q_rows.at(0, c - kept.begin), Q.ld);
        };
        for (const auto& window : windows) {
            const auto minus_G = window.minus_G;
            const Index first = window.first;
            const Range cols{first, first + minus_G.rows};
            if (done.size() == 0) done = held = {first, first};
            const Range both{std::clamp(held.begin, first, cols.end), std::clamp(held.end, first, cols.end)};
            const auto add = [&](Range r, const T* P, Index ld) {
                kernels<T>().outer(h, cols.size(), r.size(), P, ld, minus_G.at(r.begin - first, 0), minus_G.ld, Y, h);
            };
            fill_zero(h, cols.size(), Y, h);
            pass({first, both.begin}, add);
            if (both.size() > 0) add(both, last + (both.begin - held.begin) * h, h);
            pass({both.end, cols.end}, add);
            store({held.begin, both.begin});
            store({both.end, held.end});
            std::swap(Y, last);
            held = cols;
            done = {std::min(done.begin, cols.begin), std::max(done.end, cols.end)};
        }
        store(held);
        if (Q.data == A.data) return;
        for (const Range cols :
             {Range{kept.begin, std::min(kept.end, done.begin)}, Range{std::max(kept.begin, done.end), kept.end}}) {
            pass(cols, [&](Range r, const T* P, Index ld) {
                copy_block(h, r.size(), P, ld, Q_rows.at(0, r.begin - kept.begin), Q.ld);
            });
        }
    });
    ctx.state().add_flops(flops);
}

QUOIN_IMPLEMENT(Host, solve_and_gram, gram_precision, multiply_transposed, subtract_product, block_gram_schmidt_step,
                multiply_windows)

}  // namespace quoin
