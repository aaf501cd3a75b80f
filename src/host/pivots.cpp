// Column pivoting on the host: greedy panels by tiles of columns, permutations by blocks of rows.

#include "primitives/pivots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "host/column_norm.hpp"
#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin {
namespace {

using namespace host;

/// A norm 2^e x, ordered even if it is out of the range of numbers.
struct ScaledNorm {
    double x = 0;
    int e = 0;
    ScaledNorm(double norm, int exponent) : x(norm), e(0) {
        if (!(norm > 0) || std::isinf(norm)) return;
        e = std::ilogb(norm);
        x = std::scalbn(norm, -e);
        e += exponent;
    }
    bool operator>(const ScaledNorm& other) const {
        const bool zero = !(x > 0), other_zero = !(other.x > 0);
        if (zero || other_zero || e == other.e) return zero ? false : other_zero || x > other.x;
        return e > other.e;
    }
    double value() const { return std::scalbn(x, e); }
};

/// A greedy panel. Its steps alternate between one thread, which makes a reflector, and all of them, which update
/// tiles of columns. A small matrix takes every reflector at once, and a larger one all of them at the panel's end.
template <class T>
class GreedyPanel {
public:
    GreedyPanel(const PivotedColumns<T, Host>& columns, Index first, MatrixView<T> tau, MatrixView<T> F, T* small)
        : c_(columns),
          A_(columns.A),
          F_(F),
          tau_(tau),
          first_(first),
          at_once_(Tuning<Host>::reflects_at_once(A_.rows, A_.cols, sizeof(T))),
          aux_(small),
          row_(small + tau.rows) {}

    bool at_once() const { return at_once_; }

    /// Moves the largest remaining column to place k, and makes its reflector. Returns false if its norm is not above
    /// the tolerance.
    bool begin(Index k, double tolerance) {
        const Index r = first_ + k, m = A_.rows, p = largest(r);
        if (!(tolerance < 0) && !(norm_of(p).value() > tolerance)) return false;
        if (p != r) {
            std::swap_ranges(A_.at(0, p), A_.at(0, p) + m, A_.at(0, r));
            if (!at_once_) std::swap_ranges(F_.at(0, p), F_.at(0, p) + k, F_.at(0, r));
            std::swap(c_.order(p, 0), c_.order(r, 0));
            for (Index i = 0; i < 2; ++i) std::swap(c_.norms(p, i), c_.norms(r, i));
            if (c_.exponents.data) std::swap(c_.exponents(p, 0), c_.exponents(r, 0));
        }
        // a := a − V F
        if (!at_once_) outer_blocked(m - r, 1, k, A_.at(r, first_), A_.ld, F_.at(0, r), F_.ld, A_.at(r, r), A_.ld);
        AllRows<T> rows;
        T none[1] = {};
        T* const v = A_.at(r, r);
        reached_ = at_once_ ? std::min(A_.cols, r + max_by_column) : r + 1;
        tau_(k, 0) = reflect_column(m - r - 1, Index(0), reached_ - r - 1, v, static_cast<const T*>(nullptr), A_.ld,
                                    v + 1, A_.ld, none, rows);
        if (at_once_) return true;
        // Vᴴv, and V's row of the new reflector
        for (Index l = 0; l < k; ++l) row_[l] = aux_[l] = conjugate(A_(r, first_ + l));
        inner_blocked(k, 1, m - r - 1, A_.at(r + 1, first_), A_.ld, v + 1, A_.ld, aux_, k);
        return true;
    }

    /// Updates the columns of a tile, or F, and the row of R and the norms, after `begin(k)`. `work` holds m elements.
    void update(Index k, Index tile, T* work) const {
        const Index r = first_ + k, m = A_.rows, h = m - r - 1, end = std::min(A_.cols, (tile + 1) * tile_cols);
        const Index j = std::max(tile * tile_cols, reached_), n = end - j;
        if (at_once_) {
            if (n > 0) reflect(r, j, n);
            for (Index l = std::max(tile * tile_cols, r + 1); l < end; ++l) downdate(k, l, A_(r, l), work);
            return;
        }
        if (n <= 0) return;
        T products[tile_cols] = {}, known[tile_cols] = {}, above[tile_cols] = {};
        inner_blocked(1, n, h, A_.at(r + 1, r), A_.ld, A_.at(r + 1, j), A_.ld, products, 1);
        kernels<T>().inner(1, n, k, aux_, std::max<Index>(1, k), F_.at(0, j), F_.ld, known, 1);
        kernels<T>().inner(1, n, k, row_, std::max<Index>(1, k), F_.at(0, j), F_.ld, above, 1);
        const T tau = conjugate(tau_(k, 0));
        for (Index l = 0; l < n; ++l) {
            T& a = A_(r, j + l);
            // f = tau vᴴ(a − V F);  r = a − V F
            const T f = tau * (a + products[l] - known[l]);
            F_(k, j + l) = f;
            a -= above[l] + f;
            downdate(k, j + l, a, work);
        }
    }

private:
    ScaledNorm norm_of(Index j) const {
        return {static_cast<double>(c_.norms(j, 0)), c_.exponents.data ? c_.exponents(j, 0) : 0};
    }
    Index largest(Index from) const {
        Index p = from;
        if (!c_.exponents.data) {
            for (Index j = from + 1; j < A_.cols; ++j) p = c_.norms(j, 0) > c_.norms(p, 0) ? j : p;
            return p;
        }
        for (Index j = from + 1; j < A_.cols; ++j) p = norm_of(j) > norm_of(p) ? j : p;
        return p;
    }
    /// Applies the reflector of column r to n columns from j on: w = tauᵀ (aᵣᵀ + vᵀC), [aᵣ; C] −= [1; v] w.
    void reflect(Index r, Index j, Index n) const {
        const Index h = A_.rows - r - 1;
        const T *const v = A_.at(r + 1, r), tau = conjugate(tau_(r - first_, 0));
        T w[tile_cols] = {};
        inner_blocked(1, n, h, v, A_.ld, A_.at(r + 1, j), A_.ld, w, 1);
        for (Index l = 0; l < n; ++l) {
            w[l] = tau * (A_(r, j + l) + w[l]);
            A_(r, j + l) -= w[l];
        }
        outer_blocked(h, n, 1, v, A_.ld, w, 1, A_.at(r + 1, j), A_.ld);
    }
    void downdate(Index k, Index j, T r, T* work) const {
        Real<T>&norm = c_.norms(j, 0), &computed = c_.norms(j, 1);
        if (norm == 0) return;
        // ‖a'‖² = ‖a‖² − |r|²
        const Real<T> ratio = std::abs(r) / norm, left = std::max(Real<T>(0), (1 + ratio) * (1 - ratio));
        const Real<T> kept = norm / computed;
        if (left * kept * kept > std::sqrt(std::numeric_limits<Real<T>>::epsilon() / 2)) {
            norm *= std::sqrt(left);
            return;
        }
        const Index below = first_ + k + 1, h = A_.rows - below;
        const T* a = A_.at(below, j);
        if (!at_once_) {
            std::copy_n(a, h, work);
            outer_blocked(h, 1, k + 1, A_.at(below, first_), A_.ld, F_.at(0, j), F_.ld, work, h);
            a = work;
        }
        norm = computed = host::column_norm(h, a);
    }

    const PivotedColumns<T, Host>& c_;
    const MatrixView<T> A_, F_, tau_;
    const Index first_;
    const bool at_once_;
    Index reached_ = 0;  // columns before it have the last reflector
    T *const aux_, *const row_;
};

}  // namespace

template <class T, class D>
Index factor_pivoted(Context<D>& ctx, PivotedColumns<T, D> columns, Index first, double tolerance, View<T, D> tau,
                     View<T, D> F) {
    const auto A = columns.A;
    const Index m = A.rows, n = A.cols, width = tau.rows;
    const double flops = 2.0 * (m - first) * (n - first) * width;
    const Team threads = team(ctx, flops);
    Arena::Frame frame(ctx.state().arena);
    GreedyPanel<T> panel(columns, first, tau, F, frame.take<T>(2 * width));
    const ThreadBuffers<T> buffers(frame, threads, m);
    const Index tiles = (n + tile_cols - 1) / tile_cols;
    Index taken = 0;
    bool goes_on = true;
    const auto update = [&](Index k, int thread, int count) {
        for (Index tile = (first + k) / tile_cols + thread; tile < tiles; tile += count)
            panel.update(k, tile, buffers.mine());
    };
    const auto begin = [&](Index k) {
        goes_on = !threads.stopped() && panel.begin(k, tolerance);
        taken += goes_on;
    };
    if (threads == 1) {
        for (Index k = 0; k < width; ++k) {
            begin(k);
            if (!goes_on) break;
            update(k, 0, 1);
        }
    } else {
#pragma omp parallel num_threads(int{threads})
        for (Index k = 0; k < width; ++k) {
#pragma omp single
            begin(k);
            if (!goes_on) break;
            update(k, omp_get_thread_num(), omp_get_num_threads());
#pragma omp barrier
        }
    }
    threads.throw_if_stopped();
    ctx.state().add_flops(flops);
    if (panel.at_once()) return taken;
    // A₂₂ −= V F
    const Range done{first, first + taken}, right{first + taken, n}, below{first + taken, m};
    subtract_product<T>(ctx, A.block(below, done), F.block({0, taken}, right), A.block(below, right));
    return taken;
}

template <class T, class D>
void pivot_sketch(Context<D>& ctx, PivotedColumns<T, D> Y, Index width) {
    Arena::Frame frame(ctx.state().arena);
    const MatrixView<T> F{frame.take<T>(width * Y.A.cols), width, Y.A.cols};
    factor_pivoted<T, D>(ctx, Y, 0, -1, {frame.take<T>(width), width, 1}, F);
}

template <>
Index max_pivoted_gram(Context<Host>&) {
    return 256;
}

template <class T, class D>
void pivot_gram(Context<D>& ctx, View<Sum<T, D>, D> G, View<Index, D> order) {
    const Index n = G.cols;
    Arena::Frame frame(ctx.state().arena);
    // G and its Schur complements, whole. Columns stay in their places
    const MatrixView<T> all(frame.take<T>(n * n), n, n, n), S(frame.take<T>(n * n), n, n, n);
    for (Index j = 0; j < n; ++j) {
        order(j, 0) = j;
        for (Index i = 0; i < n; ++i) all(i, j) = S(i, j) = i <= j ? G(i, j) : conjugate(G(j, i));
    }
    for (Index k = 0; k < n; ++k) {
        Index largest = k;
        for (Index l = k + 1; l < n; ++l) {
            const Index j = order(l, 0), p = order(largest, 0);
            if (real_part(S(j, j)) > real_part(S(p, p))) largest = l;
        }
        std::swap(order(k, 0), order(largest, 0));
        const Index p = order(k, 0);
        for (Index l = k + 1; l < n; ++l) {
            // s_j := s_j − s_p (s_pj / s_pp)
            const Index j = order(l, 0);
            const T factor = S(p, j) / real_part(S(p, p)), *const pivot = S.at(0, p);
            T* const s = S.at(0, j);
            for (Index i = 0; i < n; ++i) s[i] -= pivot[i] * factor;
        }
    }
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i <= j; ++i) G(i, j) = all(order(i, 0), order(j, 0));
    }
    ctx.state().add_flops(1.0 * n * n * n);
}

template <class T, class D>
void permute_columns(Context<D>& ctx, View<const Index, D> order, View<T, D> A, Index) {
    const Index n = A.cols;
    // the first column of every cycle of more than one
    std::vector<Index> cycles;
    std::vector<char> seen(static_cast<std::size_t>(n));
    for (Index j = 0; j < n; ++j) {
        if (seen[j] || order(j, 0) == j) continue;
        cycles.push_back(j);
        for (Index i = j; !seen[i]; i = order(i, 0)) seen[i] = 1;
    }
    constexpr Index rows = 1024;
    for_parts(team(ctx, 0, 2 * A.rows * n), (A.rows + rows - 1) / rows, [&](Index block) {
        const Range r{block * rows, std::min(A.rows, (block + 1) * rows)};
        T first[rows];
        for (const Index start : cycles) {
            std::copy_n(A.at(r.begin, start), r.size(), first);
            Index j = start;
            for (Index from; (from = order(j, 0)) != start; j = from)
                std::copy_n(A.at(r.begin, from), r.size(), A.at(r.begin, j));
            std::copy_n(first, r.size(), A.at(r.begin, j));
        }
    });
}

QUOIN_IMPLEMENT(Host, factor_pivoted, pivot_sketch, pivot_gram, permute_columns)
template decltype(permute_columns<int, Host>) permute_columns<int, Host>;
template decltype(permute_columns<Index, Host>) permute_columns<Index, Host>;

}  // namespace quoin
