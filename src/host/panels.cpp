// Panels in LAPACK's format: factors, applies and forms them, by tiles of columns and chunks of rows.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "host/device.hpp"
#include "host/parallel.hpp"
#include "host/row_team.hpp"
#include "primitives/generic/apply_panels.hpp"
#include "primitives/generic/panel_product.hpp"

namespace quoin {
namespace {

using namespace host;

/// A panel in LAPACK's format, its unit triangle unpacked, over row chunks of fixed size. Where S = V Tᵀ has data, Hᵀ
/// is applied as I − S Vᵀ.
template <class T>
struct TallReflector {
    /// For products with p columns.
    TallReflector(Context<Host>& ctx, Arena::Frame& frame, Index p, MatrixView<const T> V, MatrixView<const T> Tf,
                  MatrixView<const T> S = {})
        : state_(ctx.state()),
          V_(V),
          Tf_(Tf),
          S_(S),
          L_(frame.take<T>(V.cols * V.cols)),
          chunks(chunks_of_product(V.rows, V.cols)) {
        copy_unit_lower(V.cols, V.data, V.ld, L_, V.cols);
        if (V.rows <= Tuning<Host>::max_short_rows && p >= Tuning<Host>::min_short_cols && !S.data) {
            lay_out_short(frame);
        } else if (p >= V.cols && Tuning<Host>::columns_collide(V.ld * Index{sizeof(T)})) {
            V_ = apart(ctx, frame, V);
        }
    }

    /// W += V(r, :)ᵀ C(r, :) for the rows r of chunk c. Nothing once the context was asked to stop, nor does `outer`
    /// then.
    void inner(Index c, MatrixView<T> C, T* W) const {
        if (state_.stopped()) return;
        const Index k = V_.cols;
        Range r = chunks[c];
        if (c == 0) {
            kernels<T>().inner(k, C.cols, k, L_, k, C.data, C.ld, W, k);
            r.begin = k;
        }
        inner_blocked(k, C.cols, r.size(), V_.at(r.begin, 0), V_.ld, C.at(r.begin, 0), C.ld, W, k);
    }
    /// C(r, :) −= V(r, :) W, or S(r, :) W
    void outer(Index c, const T* W, MatrixView<T> C) const {
        if (state_.stopped()) return;
        const Index k = V_.cols;
        Range r = chunks[c];
        if (S_.data) {
            return outer_blocked(r.size(), C.cols, k, S_.at(r.begin, 0), S_.ld, W, k, C.at(r.begin, 0), C.ld);
        }
        if (c == 0) {
            kernels<T>().outer(k, C.cols, k, L_, k, W, k, C.data, C.ld);
            r.begin = k;
        }
        outer_blocked(r.size(), C.cols, k, V_.at(r.begin, 0), V_.ld, W, k, C.at(r.begin, 0), C.ld);
    }
    /// TW := op(T) W
    void multiply(Op op, Index p, const T* W, T* TW) const {
        if (S_.data) return copy_block(V_.cols, p, W, V_.cols, TW, V_.cols);
        multiply_t(op == Op::Transpose, BlockReflector<T>{V_.cols, nullptr, 0, nullptr, 0, 0, Tf_.data, Tf_.ld}, p, W,
                   TW);
    }
    /// T₁₂ := −WᵀT for W = VᵀS₁, if T₁₂ has data.
    void extend_t(const T* W, MatrixView<T> T12) const {
        const Index k = V_.cols;
        if (!T12.data) return;
        fill_zero(T12.rows, k, T12.data, T12.ld);
        kernels<T>().inner(T12.rows, k, k, W, k, Tf_.data, Tf_.ld, T12.data, T12.ld);
        for (Index j = 0; j < k; ++j) {
            for (Index i = 0; i < T12.rows; ++i) T12(i, j) = -T12(i, j);
        }
    }
    /// C := op(H) C for one tile of columns, by one core, and T₁₂ for it. `buffer` holds `work()` elements.
    void apply(Op op, MatrixView<T> C, T* buffer, MatrixView<T> T12 = {}) const {
        if (Vt_) return apply_short(op, C, buffer);
        T *TW = buffer, *W = TW + V_.cols * C.cols;
        inner_pairwise({0, static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(chunks.count)))}, C, W);
        extend_t(W, T12);
        multiply(op, C.cols, W, TW);
        for (Index c = 0; c < chunks.count; ++c) outer(c, TW, C);
    }
    Index work() const {
        if (Vt_) return (2 * Tf_.ld + V_.ld) * tile_cols;
        return (2 + std::bit_width(static_cast<std::uint64_t>(chunks.count - 1))) * V_.cols * tile_cols;
    }

private:
    /// Rows in whole vector registers, the last ones zeros.
    static Index padded(Index rows) {
        constexpr Index whole = 64 / sizeof(T);
        return (rows + whole - 1) / whole * whole;
    }
    /// V with its ones and zeros, Vᵀ, T and Tᵀ, all padded.
    void lay_out_short(Arena::Frame& frame) {
        const Index m = V_.rows, k = V_.cols, mp = padded(m), kp = padded(k);
        T *V = frame.take<T>(mp * k), *Tp = frame.take<T>(kp * k);
        Vt_ = frame.take<T>(kp * m);
        Tt_ = frame.take<T>(kp * k);
        fill_zero(mp - m, k, V + m, mp);
        fill_zero(kp - k, k, Tp + k, kp);
        fill_zero(kp - k, m, Vt_ + k, kp);
        fill_zero(kp - k, k, Tt_ + k, kp);
        copy_block(k, k, L_, k, V, mp);
        copy_block(m - k, k, V_.at(k, 0), V_.ld, V + k, mp);
        copy_block(k, k, Tf_.data, Tf_.ld, Tp, kp);
        transpose_block(m, k, V, mp, Vt_, kp);
        transpose_block(k, k, Tp, kp, Tt_, kp);
        V_ = {V, m, k, mp};
        Tf_ = {Tp, k, k, kp};
    }
    /// As sums of columns: the inner products of few rows would spend their time adding up vector registers. From a
    /// copy of C if its columns end in a part of a register.
    void apply_short(Op op, MatrixView<T> C, T* buffer) const {
        const Index m = V_.rows, k = V_.cols, p = C.cols, kp = Tf_.ld;
        const bool copied = m % (32 / Index{sizeof(T)}) != 0;
        T *W = buffer, *TW = W + kp * p;
        MatrixView<T> B = C;
        fill_zero(kp, p, W, kp);
        fill_zero(kp, p, TW, kp);
        if (copied) {
            B = {TW + kp * p, V_.ld, p};
            for (Index j = 0; j < p; ++j) std::fill(std::copy_n(C.at(0, j), m, B.at(0, j)), B.at(B.rows, j), T(0));
        }
        // W = −VᵀC;  TW = −op(T) W;  C −= V TW
        kernels<T>().outer(kp, p, m, Vt_, kp, B.data, B.ld, W, kp);
        kernels<T>().outer(kp, p, k, op == Op::Transpose ? Tt_ : Tf_.data, kp, W, kp, TW, kp);
        kernels<T>().outer(B.rows, p, k, V_.data, V_.ld, TW, kp, B.data, B.ld);
        if (copied) copy_block(m, p, B.data, B.ld, C.data, C.ld);
    }
    /// A copy of V whose columns do not collide.
    static MatrixView<const T> apart(Context<Host>& ctx, Arena::Frame& frame, MatrixView<const T> V) {
        const Index ld = Tuning<Host>::rows_apart(V.rows, sizeof(T));
        const MatrixView<T> B(frame.take<T>(ld * V.cols), V.rows, V.cols, ld);
        copy<T>(ctx, V, B);
        return B;
    }
    /// W := VᵀC over the chunks c, a power of two of them, added as `sum_parts` does. Chunks past the last one are
    /// skipped. W is followed by one buffer of its size for each level.
    void inner_pairwise(Range c, MatrixView<T> C, T* W) const {
        const Index size = V_.cols * C.cols, middle = (c.begin + c.end) / 2;
        if (c.size() == 1) {
            std::fill_n(W, size, T(0));
            return inner(c.begin, C, W);
        }
        inner_pairwise({c.begin, middle}, C, W);
        if (middle >= chunks.count) return;
        inner_pairwise({middle, c.end}, C, W + size);
        for (Index i = 0; i < size; ++i) W[i] += W[size + i];
    }

    const Context<Host>::State& state_;
    MatrixView<const T> V_, Tf_, S_;
    T* L_;
    T *Vt_ = nullptr, *Tt_ = nullptr;  // if V has few rows

public:
    RowChunks chunks;
};

Index tile_count(Index p, Index width = tile_cols) { return (p + width - 1) / width; }

template <class T>
MatrixView<T> tile_of(MatrixView<T> C, Index tile, Index width = tile_cols) {
    return C.col_block({tile * width, std::min(C.cols, (tile + 1) * width)});
}

/// Returns how many of `threads` factor an m×n panel so that it takes no longer than the work of the other threads.
/// `update`: flops on the panel's own columns, which come first. `others`: flops of the other threads.
template <class T>
int cores_of_panel(int threads, Index m, Index n, double update, double others) {
    if (threads == 1) return 1;
    // a flop of a panel takes twice as long as a flop of an update
    const double panel = 3.0 * static_cast<double>(m) * static_cast<double>(n * n), chain = update + 2 * panel;
    const auto share = static_cast<Index>(std::ceil(0.9 * chain * threads / (chain + others)));
    const auto cores = static_cast<int>(std::min({share, Index{threads}, RowTeam<T>::max_cores(m, n)}));
    return Tuning<Host>::sharing_pays(panel, cores) ? cores : 1;
}

/// The rows of T₁₂ that belong to a tile of S₁'s columns.
template <class T>
MatrixView<T> rows_of_tile(MatrixView<T> T12, Index tile) {
    if (!T12.data) return {};
    return T12.row_block({tile * tile_cols, std::min(T12.rows, (tile + 1) * tile_cols)});
}

/// C := op(H) C, and computes T₁₂ if it has data.
template <class T>
void apply_tall(Context<Host>& ctx, Op op, MatrixView<const T> V, MatrixView<const T> Tf, MatrixView<const T> S,
                MatrixView<T> C, MatrixView<T> T12) {
    const Index k = V.cols, p = C.cols, tiles = tile_count(p);
    if (k == 0 || p == 0) return;
    const double flops = 4.0 * V.rows * k * p;
    Arena::Frame frame(ctx.state().arena);
    const TallReflector<T> H(ctx, frame, p, V, Tf, S);
    const Index count = H.chunks.count;
    const Team threads = team(ctx, flops, V.rows * (k + p));
    if (threads == 1 || count == 1 || tiles >= 2 * threads) {
        ThreadBuffers<T> buffers(frame, threads, H.work());
        for_tasks(threads, tiles,
                  [&](Index tile) { H.apply(op, tile_of(C, tile), buffers.mine(), rows_of_tile(T12, tile)); });
    } else {
        // The sums over rows are the same, chunk by chunk, as in TallReflector::apply; only who adds them differs.
        T *parts = frame.take<T>(count * k * p), *W = frame.take<T>(k * p), *TW = frame.take<T>(k * p);
        for_tasks(threads, count, tiles, [&](Index c, Index tile) {
            const auto C_tile = tile_of(C, tile);
            T* part = parts + (c * p + tile * tile_cols) * k;
            std::fill_n(part, k * C_tile.cols, T(0));
            H.inner(c, C_tile, part);
        });
        sum_parts(ctx, k, p, count, parts, W, k);
        for (Index tile = 0; tile < tiles; ++tile) H.extend_t(W + tile * tile_cols * k, rows_of_tile(T12, tile));
        H.multiply(op, p, W, TW);
        for_tasks(threads, count, tiles,
                  [&](Index c, Index tile) { H.outer(c, TW + tile * tile_cols * k, tile_of(C, tile)); });
    }
    ctx.state().add_flops(flops);
}

}  // namespace

template <class T, class D>
void factor_panel(Context<D>& ctx, View<T, D> A, View<T, D> Tf, Index) {
    const double flops = 3.0 * A.rows * A.cols * A.cols;
    const Team threads = team(ctx, flops);
    const int most = cores_of_panel<T>(threads, A.rows, A.cols, 0, 0);
    Arena::Frame frame(ctx.state().arena);
    RowTeam<T> rows(ctx, A.rows, A.cols, most > 1 ? frame.take<T>(RowTeam<T>::size(A.rows, A.cols)) : nullptr);
    const ThreadBuffers<T> buffers(frame, most == 1 ? 1 : threads, panel_work(A.cols));
    if (most == 1) {
        factor_rows(rows, 0, 1, A, Tf, buffers.mine());
    } else {
        std::atomic<int> arrived{0};
#pragma omp parallel num_threads(int{threads})
        {
            const int core = arrived.fetch_add(1), cores = std::min(most, omp_get_num_threads());
            if (core < cores) factor_rows(rows, core, cores, A, Tf, buffers.mine());
        }
    }
    threads.throw_if_stopped();
    ctx.state().add_flops(flops);
}

template <class T, class D>
void apply_panel(Context<D>& ctx, Op op, View<const T, D> V, View<const T, D> Tf, View<T, D> C, Arithmetic) {
    apply_tall<T>(ctx, op, V, Tf, {}, C, {});
}

template <class T, class D>
void apply_panels(Context<D>& ctx, Op op, std::span<const PanelFactors<T, D>> panels, View<T, D> C,
                  Arithmetic arithmetic) {
    const Index tiles = tile_count(C.cols);
    // threads share the rows of few tiles, and V is copied where its columns collide: panel by panel
    const bool by_tiles = std::all_of(panels.begin(), panels.end(), [&](const PanelFactors<T, D>& H) {
        return !Tuning<Host>::columns_collide(H.V.ld * Index{sizeof(T)}) &&
               (tiles >= 2 * ctx.threads() || chunks_of_product(H.V.rows, H.V.cols).count == 1);
    });
    if (!by_tiles) return apply_one_by_one<T, D>(ctx, op, panels, C, arithmetic);
    const std::size_t count = panels.size();
    Arena::Frame frame(ctx.state().arena);
    std::vector<TallReflector<T>> reflectors;
    reflectors.reserve(count);
    double flops_of_column = 0;
    Index work = 0;
    for (const auto& [V, Tf, first] : panels) {
        reflectors.emplace_back(ctx, frame, C.cols, V, Tf);
        work = std::max(work, reflectors.back().work());
        flops_of_column += 4.0 * V.rows * V.cols;
    }
    const Team threads = team(ctx, flops_of_column * C.cols);
    const ThreadBuffers<T> buffers(frame, threads, work);
    // as many tiles at a time as take a fraction of a second
    constexpr double flops_at_a_time = 2e9;
    const double of_tile = std::max(1.0, flops_of_column * tile_cols);
    const Index step =
        std::max<Index>(1, static_cast<Index>(std::min(1.0 * tiles, threads * flops_at_a_time / of_tile)));
    for (Index begin = 0; begin < tiles; begin += step) {
        throw_if_stopped(ctx);
        const Range now{begin, std::min(tiles, begin + step)};
        for_tasks(threads, now.size(), [&](Index t) {
            const auto tile = tile_of(C, now.begin + t);
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t s = op == Op::Transpose ? i : count - 1 - i;
                reflectors[s].apply(op, tile.row_block({panels[s].first, tile.rows}), buffers.mine());
            }
        });
        ctx.state().add_flops(flops_of_column * (std::min(C.cols, now.end * tile_cols) - now.begin * tile_cols));
    }
}

template <class T, class D>
void form_s(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> S) {
    copy<T>(ctx, V, S);
    set_root<T>(ctx, S);
    multiply_triangle<T>(ctx, Side::Right, Triangle::Upper, Op::Transpose, Tf, S);
}

template <class T, class D>
void apply_and_extend(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> C, FullTStep<T, D> step) {
    {
        const Span span(ctx, "update");
        apply_tall<T>(ctx, Op::Transpose, V, Tf, step.S, C, {});
    }
    const Span span(ctx, "T and S");
    apply_tall<T>(ctx, Op::Transpose, V, Tf, step.S, step.S1, step.T12);
}

template <class T, class D>
void apply_and_factor_next(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> C, View<T, D> next_Tf,
                           FullTStep<T, D> step, Arithmetic) {
    const Span span(ctx, step.S.data ? "update, T, S and next panel" : "update and next panel");
    const Index k = V.cols, next = next_Tf.cols;
    const auto C_next = C.col_block({0, next}), C_rest = C.col_block({next, C.cols});
    const Index rest = tile_count(C_rest.cols), tiles = rest + tile_count(step.S1.cols);
    const double flops = 4.0 * V.rows * k * (C.cols + step.S1.cols) + 3.0 * (C.rows - k) * next * next;
    Arena::Frame frame(ctx.state().arena);
    const TallReflector<T> H(ctx, frame, C.cols + step.S1.cols, V, Tf, step.S);
    const Team threads = team(ctx, flops);
    const double of_next = 4.0 * V.rows * k * next, of_rest = 4.0 * V.rows * k * (C.cols - next + step.S1.cols);
    const auto A_next = C_next.row_block({k, C.rows});
    const int most = cores_of_panel<T>(threads, A_next.rows, next, of_next, of_rest);
    RowTeam<T> rows(ctx, A_next.rows, next, most > 1 ? frame.take<T>(RowTeam<T>::size(A_next.rows, next)) : nullptr);
    const ThreadBuffers<T> buffers(frame, threads, std::max(H.work(), panel_work(next)));
    std::atomic<Index> next_tile{0};
    const auto factor_next = [&](int core, int cores) {
        const Index width = cores == 1 ? tile_cols : min_tile_cols, count = tile_count(next, width);
        for (Index tile; (tile = next_tile.fetch_add(1, std::memory_order_relaxed)) < count;) {
            H.apply(Op::Transpose, tile_of(C_next, tile, width), buffers.mine());
        }
        if (cores > 1) rows.wait(cores);
        factor_rows(rows, core, cores, A_next, next_Tf, buffers.mine());
    };
    const auto update = [&](Index tile) {
        if (tile < rest) {
            H.apply(Op::Transpose, tile_of(C_rest, tile), buffers.mine());
        } else {
            H.apply(Op::Transpose, tile_of(step.S1, tile - rest), buffers.mine(), rows_of_tile(step.T12, tile - rest));
        }
    };
    if (threads == 1) {
        factor_next(0, 1);
        for_tasks(threads, tiles, update);
    } else {
        // the first to arrive: the thread that starts the others comes late
        std::atomic<int> arrived{0};
#pragma omp parallel num_threads(int{threads})
        {
            const int core = arrived.fetch_add(1), cores = std::min(most, omp_get_num_threads());
            if (core < cores) factor_next(core, cores);
#pragma omp for schedule(dynamic, 1) nowait
            for (Index tile = 0; tile < tiles; ++tile) update(tile);
        }
    }
    threads.throw_if_stopped();
    ctx.state().add_flops(flops);
}

template <class T, class D>
void form_panel(Context<D>& ctx, View<T, D> A, View<const T, D> Tf) {
    const Index k = A.cols, m = A.rows;
    if (k == 0) return;
    const double flops = 2.0 * m * k * k;
    Arena::Frame frame(ctx.state().arena);
    T *L = frame.take<T>(k * k), *Lt = frame.take<T>(k * k), *M = frame.take<T>(k * k);
    copy_unit_lower(k, A.data, A.ld, L, k);
    for (Index j = 0; j < k; ++j) {
        for (Index i = 0; i < k; ++i) Lt[j + i * k] = conjugate(L[i + j * k]);
    }
    // M = T Lᵀ;  [A₁; A₂] := [I; 0] − [L; V₂] M
    multiply_t(false, BlockReflector<T>{k, nullptr, 0, nullptr, 0, 0, Tf.data, Tf.ld}, k, Lt, M);
    fill_zero(k, k, A.data, A.ld);
    for (Index j = 0; j < k; ++j) A(j, j) = 1;
    kernels<T>().outer(k, k, k, L, k, M, k, A.data, A.ld);
    const Index blocks = (m - k + block_rows<T> - 1) / block_rows<T>;
    const Team threads = team(ctx, flops, m * k);
    ThreadBuffers<T> buffers(frame, threads, block_rows<T> * k);
    for_parts(threads, blocks, [&](Index b) {
        const Index row = k + b * block_rows<T>, h = std::min(block_rows<T>, m - row);
        T* V2 = buffers.mine();
        copy_block(h, k, A.at(row, 0), A.ld, V2, h);
        fill_zero(h, k, A.at(row, 0), A.ld);
        kernels<T>().outer(h, k, k, V2, h, M, k, A.at(row, 0), A.ld);
    });
    ctx.state().add_flops(flops);
}

template <class T, class D>
void compact_wy(Context<D>& ctx, View<const T, D> V, View<const T, D> tau, View<T, D> Tf) {
    const Index k = V.cols;
    if (k == 0) return;
    const double flops = 1.0 * V.rows * k * k;
    Arena::Frame frame(ctx.state().arena);
    const RowChunks chunks = chunks_of_product(V.rows, k);
    T *L = frame.take<T>(k * k), *G = frame.take<T>(k * k), *parts = frame.take<T>(chunks.count * k * k);
    copy_unit_lower(k, V.data, V.ld, L, k);
    for_tasks(team(ctx, flops, V.rows * k), chunks.count, [&](Index c) {
        T* part = parts + c * k * k;
        std::fill_n(part, k * k, T(0));
        Range r = chunks[c];
        if (c == 0) {
            kernels<T>().inner_upper(k, k, L, k, part, k);
            r.begin = k;
        }
        for (Index i = r.begin; i < r.end; i += gram_rows<T>) {
            kernels<T>().inner_upper(k, std::min(gram_rows<T>, r.end - i), V.at(i, 0), V.ld, part, k);
        }
    });
    sum_parts(ctx, k, k, chunks.count, parts, G, k);
    compact_wy_from_gram<T>(ctx, {G, k, k}, tau, Tf);
    ctx.state().add_flops(flops);
}

template <class T, class D>
void compact_wy_from_gram(Context<D>&, View<const T, D> G, View<const T, D> tau, View<T, D> Tf) {
    fill_zero(G.cols, G.cols, Tf.data, Tf.ld);
    for (Index j = 0; j < G.cols; ++j) extend_t(j, tau(j, 0), G.at(0, j), Tf.data, Tf.ld);
}

template class PanelProduct<QUOIN_F32, Host>;
template class PanelProduct<QUOIN_F64, Host>;
QUOIN_IMPLEMENT(Host, factor_panel, apply_panel, apply_panels, form_s, apply_and_extend, apply_and_factor_next,
                form_panel, compact_wy, compact_wy_from_gram)

}  // namespace quoin
