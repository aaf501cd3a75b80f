// Reduces a matrix to bidiagonal form: panels, whose products with the trailing matrix are shared by columns.

#include "host/bidiagonal.hpp"

#include <algorithm>
#include <cmath>

#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin::host {
namespace {

/// Columns of a panel, and the columns of the trailing matrix that stay in a core's L2 cache during a sweep.
constexpr Index panel_cols = 32, sweep_cols = 16;
/// Most groups of columns that threads share in a sweep. Each group has a sum of its own, in an order that the shape
/// fixes.
constexpr Index max_groups = 16;

/// One panel of nb reflectors on either side, from row and column `p` on. The trailing matrix of the steps so far is
///
///     A − [V X] [Y; U],   V and X m×nb, Y and U nb×n
template <class T>
class Panel {
public:
    Panel(Context<Host>& ctx, Arena::Frame& frame, Bidiagonal<T>& B, MatrixView<T> A, Index p, Index nb)
        : ctx_(ctx),
          B_(B),
          A_(A),
          m_(A.rows),
          n_(A.cols),
          p_(p),
          nb_(nb),
          VX_(frame.take<T>(m_ * 2 * nb), m_, 2 * nb, m_),
          YU_(frame.take<T>(2 * nb * n_), 2 * nb, n_, 2 * nb),
          row_(frame.take<T>(n_)),
          parts_(frame.take<T>(max_groups * m_)) {}

    /// Makes the reflectors of column and row c = p + i.
    void step(Index i) {
        const Index c = p_ + i, h = m_ - c, w = n_ - c - 1;
        T *const v = VX_.at(c, i), *const a = A_.at(c, c);
        // a := A(c:, c) − V Y(:, c) − X U(:, c)
        outer_blocked(h, 1, i, VX_.at(c, 0), m_, YU_.at(0, c), 2 * nb_, a, h);
        outer_blocked(h, 1, i, VX_.at(c, nb_), m_, YU_.at(nb_, c), 2 * nb_, a, h);
        B_.tau_v[c] = reflector(h, a);
        B_.d[c] = a[0];
        a[0] = 1;
        std::copy_n(a, h, v);
        if (w == 0) return;
        // v' = [V X]ᵀv
        T products[2 * panel_cols] = {};
        inner_blocked(i, 1, h, VX_.at(c, 0), m_, v, h, products, nb_);
        inner_blocked(i, 1, h, VX_.at(c, nb_), m_, v, h, products + nb_, nb_);
        T* const x = VX_.at(c + 1, nb_ + i);
        sweep(i, products, x);

        // G's reflector u = r / (r₀ − β) with the row r, and A u = (A r − β A e₀) / (r₀ − β)
        T *const r = row_ + c + 1, r0 = r[0];
        const T tau = reflector(w, r), beta = r[0];
        B_.tau_u[c] = tau;
        B_.e[c] = beta;
        r[0] = 1;
        std::copy_n(r, w, B_.U.view().at(c + 1, c));
        for (Index j = 0; j < w; ++j) YU_(nb_ + i, c + 1 + j) = r[j];
        if (tau == 0) {
            std::fill_n(x, h - 1, T(0));
            return;
        }
        if (std::abs(beta) > std::sqrt(SafeSquares<T>::low)) {
            const T scale = tau / (r0 - beta);
            const T* const first = A_.at(c + 1, c + 1);
            for (Index k = 0; k < h - 1; ++k) x[k] = scale * (x[k] - beta * first[k]);
        } else {
            // A r has lost digits to underflow
            std::fill_n(x, h - 1, T(0));
            for (Index k = 0; k < w; ++k) r[k] *= -tau;
            outer_blocked(h - 1, 1, w, A_.at(c + 1, c + 1), A_.ld, r, w, x, h);
            for (Index k = 0; k < w; ++k) r[k] = YU_(nb_ + i, c + 1 + k);
        }
        // x := tau (A u − V Y u − X U u)
        for (const Index side : {Index(0), nb_}) {
            const Index k = side == 0 ? i + 1 : i;
            T sums[panel_cols] = {};
            outer_blocked(k, 1, w, YU_.at(side, c + 1), 2 * nb_, r, w, sums, nb_);
            for (Index l = 0; l < k; ++l) sums[l] *= -tau;
            outer_blocked(h - 1, 1, k, VX_.at(c + 1, side), m_, sums, nb_, x, h);
        }
    }
    /// A₂₂ := A₂₂ − [V X] [Y; U]
    void update() {
        const Range rows{p_ + nb_, m_}, cols{p_ + nb_, n_};
        subtract_product<T>(ctx_, VX_.row_block(rows), YU_.col_block(cols), A_.block(rows, cols));
    }

private:
    /// Makes the reflector of x (n numbers), x := [β; v]. Returns tau.
    static T reflector(Index n, T* x) {
        AllRows<T> rows;
        return reflect_column<T>(n - 1, 0, 0, x, nullptr, 0, x + 1, n, nullptr, rows);
    }

    /// In one sweep over A₂₂, for the columns j > c = p + i:
    ///
    ///     y_j = tau (A(c:, j)ᵀv − [Y; U](:, j)ᵀ v'),   r_j = A(c, j) − Y(:, j)ᵀV(c, :) − U(:, j)ᵀX(c, :),
    ///     x = A(c + 1:, c + 1:) r
    void sweep(Index i, const T* products, T* x) {
        const Index c = p_ + i, h = m_ - c, cols = n_ - c - 1;
        const Index blocks = (cols + sweep_cols - 1) / sweep_cols, groups = std::min(max_groups, blocks);
        const T tau = B_.tau_v[c], *const v = VX_.at(c, i);
        T row_of_V[panel_cols], row_of_X[panel_cols];
        for (Index l = 0; l <= i; ++l) row_of_V[l] = VX_(c, l);
        for (Index l = 0; l < i; ++l) row_of_X[l] = VX_(c, nb_ + l);
        for_parts(team(ctx_, 4.0 * h * cols), groups, [&](Index g) {
            T* const sum = parts_ + g * m_;
            std::fill_n(sum, h - 1, T(0));
            for (Index b = g * blocks / groups; b < (g + 1) * blocks / groups; ++b) {
                const Index j0 = c + 1 + b * sweep_cols, k = std::min(sweep_cols, n_ - j0);
                T y[sweep_cols] = {}, minus_r[sweep_cols];
                inner_blocked(k, 1, h, A_.at(c, j0), A_.ld, v, h, y, sweep_cols);
                for (Index j = 0; j < k; ++j) {
                    T *const Y = YU_.at(0, j0 + j), *const U = Y + nb_;
                    T dot = 0, r = A_(c, j0 + j);
                    for (Index l = 0; l < i; ++l) dot += Y[l] * products[l] + U[l] * products[nb_ + l];
                    Y[i] = tau * (y[j] - dot);
                    for (Index l = 0; l < i; ++l) r -= Y[l] * row_of_V[l] + U[l] * row_of_X[l];
                    r -= Y[i];
                    row_[j0 + j] = r;
                    minus_r[j] = -r;
                }
                outer_blocked(h - 1, 1, k, A_.at(c + 1, j0), A_.ld, minus_r, sweep_cols, sum, h);
            }
        });
        ctx_.state().add_flops(4.0 * h * cols);
        std::copy_n(parts_, h - 1, x);
        for (Index g = 1; g < groups; ++g)
            for (Index k = 0; k < h - 1; ++k) x[k] += parts_[g * m_ + k];
    }

    Context<Host>& ctx_;
    Bidiagonal<T>& B_;
    MatrixView<T> A_;
    Index m_, n_, p_, nb_;
    MatrixView<T> VX_, YU_;
    T *row_, *parts_;
};

}  // namespace

template <class T>
Bidiagonal<T> reduce_to_bidiagonal(Context<Host>& ctx, MatrixView<T> A) {
    const Index n = A.cols;
    Bidiagonal<T> B{std::vector<T>(n), std::vector<T>(n - 1), A,
                    Matrix<T>(n, n),   std::vector<T>(n),     std::vector<T>(n - 1)};
    for (Index p = 0; p < n; p += panel_cols) {
        Arena::Frame frame(ctx.state().arena);
        const Index nb = std::min(panel_cols, n - p);
        Panel<T> panel(ctx, frame, B, A, p, nb);
        for (Index i = 0; i < nb; ++i) panel.step(i);
        if (p + nb < n) panel.update();
    }
    return B;
}

template <class T>
void apply_reflectors(Context<Host>& ctx, Index first, MatrixView<T> V, std::vector<T>& tau, MatrixView<T> C) {
    const Index m = V.rows, count = static_cast<Index>(tau.size());
    constexpr Index width = 2 * panel_cols;
    Matrix<T> factors(width, count);
    std::vector<PanelFactors<T, Host>> panels;
    for (Index p = 0; p < count; p += width) {
        const Index k = std::min(width, count - p);
        const MatrixView<T> V_p = V.block({first + p, m}, {p, p + k}), Tf = factors.view().block({0, k}, {p, p + k});
        compact_wy<T>(ctx, V_p, {tau.data() + p, k, 1, k}, Tf);
        panels.push_back({V_p, Tf, first + p});
    }
    apply_panels<T, Host>(ctx, Op::None, panels, C);
}

#define QUOIN_INSTANTIATE(T)                                                    \
    template Bidiagonal<T> reduce_to_bidiagonal(Context<Host>&, MatrixView<T>); \
    template void apply_reflectors(Context<Host>&, Index, MatrixView<T>, std::vector<T>&, MatrixView<T>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::host
