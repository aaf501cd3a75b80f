// The pseudoinverse of a triangular R of deficient rank r. D scales the columns of R to norms from 1 to 2, or is I:
//
//     R D = Q₂ ([W; 0] + E) D         QR with pivoting, or the SVD; E is negligible, and W r×k
//     (Wᵀ)(order, :) P₂ = Z [U; 0]    QR with pivoting, the longest columns of R first
//     R⁺ ≈ Z U⁻ᵀ P₂ᵀ Q₂(:, 0:r)ᵀ

#include "algorithms/one_matrix/least_norm.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "algorithms/one_matrix/range_scaling.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"
#include "quoin/qr.hpp"

namespace quoin {
namespace {

/// Returns A P = QR by reflectors.
template <class T>
QR<T, Host> pivoted(Context<Host>& ctx, MatrixView<const T> A) {
    Options options;
    options.method = BlockedHouseholder{};
    options.pivoting = Pivoting{};
    options.check_finite = false;
    return qr<T, Host>(ctx, A, options);
}

template <class T>
class DeficientTriangle {
public:
    DeficientTriangle(Context<Host>& ctx, MatrixView<const T> R, const RankTest& test);

    Index rank() const { return rank_; }
    /// Returns the columns of R that the pivots leave, in order.
    const std::vector<Index>& dependent() const { return dependent_; }
    /// C := R⁺C, or (Rᵀ)⁺C. left[j] := the norm of the part of column j outside of the range.
    void solve(Context<Host>& ctx, Op op, MatrixView<T> C, std::span<Real<T>> left) const;

private:
    Index find_rank(Context<Host>& ctx, MatrixView<const T> R2, double tolerance) const;

    Index rank_ = 0;
    std::vector<Index> dependent_;
    int exponent_ = 0;          // 2^-exponent R is decomposed
    Matrix<T> Q2_;              // k×k
    std::vector<Index> order_;  // of the columns of R, by their norms
    std::optional<QR<T, Host>> Wt_;
    Matrix<T> U_;
};

/// Returns the largest r < k such that the leading r×r triangle, with unit columns, has 1/κ₁ above the tolerance.
template <class T>
Index DeficientTriangle<T>::find_rank(Context<Host>& ctx, MatrixView<const T> R2, double tolerance) const {
    Index r = 0, above = R2.cols, shown = 0;
    const auto narrow = [&](Index tried) {
        if (tried <= r || tried >= above) return;
        const double kappa = inspect_triangle<T>(ctx, R2.block({0, tried}, {0, tried})).scaled_condition;
        (1 / kappa > tolerance ? r : above) = tried;
    };
    for (Index j = 0; j < R2.cols; ++j) shown += std::abs(R2(j, j)) > tolerance * std::abs(R2(0, 0));
    for (const Index guess : {shown, shown + 1, shown - 1}) narrow(guess);
    while (above - r > 1) narrow(r + (above - r) / 2);
    return r;
}

template <class T>
DeficientTriangle<T>::DeficientTriangle(Context<Host>& ctx, MatrixView<const T> R, const RankTest& test)
    : exponent_(std::max(0, min_norm_exponent<T>(entry_norms<T>(ctx, R).largest))), order_(R.cols) {
    const Index k = R.cols;
    const bool is_scaled = test.rank < 0;
    Matrix<T> S = scaled_by_power<T, Host>(ctx, -exponent_, R);
    Matrix<int> e(k, 1);
    std::fill_n(e.data(), k, 0);
    if (is_scaled) {
        norm_exponents<T>(ctx, S.view(), e.view());
        scale_columns<T>(ctx, e.view(), -1, Part::Upper, S.view());
    }

    // S P = Q₂ [R₁₁ R₁₂; 0 R₂₂]
    const QR<T, Host> f = pivoted<T>(ctx, S.view());
    const Matrix<T> R2 = f.r(ctx);
    const auto pivots = f.permutation();
    rank_ = is_scaled ? find_rank(ctx, R2.view(), test.tolerance) : test.rank;
    // E is no larger than the SVD allows, or than rounding errors
    const double most = is_scaled ? test.tolerance : rounding_of_r<T>(k);
    const auto squares = [&](MatrixView<const T> A) { return entry_norms<T>(ctx, A).squares; };
    const bool is_revealed = squares(R2.view().block({rank_, k}, {rank_, k})) <= most * most * squares(R2.view());
    Matrix<T> W;
    if (is_revealed) {
        Q2_ = f.form_q(ctx);
        W = Matrix<T>(rank_, k);
        for (Index j = 0; j < k; ++j)
            copy<T>(ctx, R2.view().block({0, rank_}, {j, j + 1}), W.view().col_block({pivots[j], pivots[j] + 1}));
    } else {
        // S = Q₂ Σ Vᵀ
        std::vector<Real<T>> s(static_cast<std::size_t>(k));
        Matrix<T> Vt(k, k);
        Q2_ = Matrix<T>(k, k);
        small_svd<T>(ctx, S.view(), s, Q2_.view(), Vt.view());
        if (is_scaled) {
            const double least = test.tolerance * static_cast<double>(s[0]);
            rank_ = std::min<Index>(k - 1, std::count_if(s.begin(), s.end(), [&](T x) { return x > least; }));
        }
        W = copy_of<T, Host>(ctx, Vt.view().row_block({0, rank_}));
        for (Index j = 0; j < k; ++j)
            for (Index i = 0; i < rank_; ++i) W(i, j) *= s[i];
    }
    dependent_.assign(pivots.begin() + rank_, pivots.end());
    std::sort(dependent_.begin(), dependent_.end());

    scale_columns<T>(ctx, e.view(), 1, Part::All, W.view());
    std::iota(order_.begin(), order_.end(), Index(0));
    std::stable_sort(order_.begin(), order_.end(), [&](Index a, Index b) { return e(a, 0) > e(b, 0); });
    Matrix<T> Wt(k, rank_);
    for (Index j = 0; j < rank_; ++j)
        for (Index i = 0; i < k; ++i) Wt(i, j) = W(j, order_[i]);
    Wt_ = pivoted<T>(ctx, Wt.view());
    U_ = Wt_->r(ctx);
}

template <class T>
void DeficientTriangle<T>::solve(Context<Host>& ctx, Op op, MatrixView<T> C, std::span<Real<T>> left) const {
    const Index k = C.rows, p = C.cols;
    const Range kept{0, rank_}, rest{rank_, k};
    const auto P2 = Wt_->permutation();
    Matrix<T> G(k, p), Y(k, p);
    if (op == Op::None) {
        // G = Q₂ᵀC,   Uᵀ Y = P₂ᵀ G₁,   C := Z [Y; 0]
        multiply_transposed<T>(ctx, Q2_.view(), C, G.view());
        column_norms<T>(ctx, G.view().row_block(rest), left);
        set_zero(ctx, Y.view());
        for (Index j = 0; j < p; ++j)
            for (Index i = 0; i < rank_; ++i) Y(i, j) = G(P2[i], j);
        solve_triangle<T>(ctx, Triangle::Upper, Op::Transpose, U_.view(), Y.view().row_block(kept));
        Wt_->apply_q(ctx, Side::Left, Op::None, Y.view());
        for (Index j = 0; j < p; ++j)
            for (Index i = 0; i < k; ++i) C(order_[i], j) = Y(i, j);
    } else {
        // G = ZᵀC,   U P₂ᵀ Y = G₁,   C := Q₂ [Y; 0] = 0 − Q₂ [−Y; 0]
        for (Index j = 0; j < p; ++j)
            for (Index i = 0; i < k; ++i) G(i, j) = C(order_[i], j);
        Wt_->apply_q(ctx, Side::Left, Op::Transpose, G.view());
        column_norms<T>(ctx, G.view().row_block(rest), left);
        solve_triangle<T>(ctx, Triangle::Upper, Op::None, U_.view(), G.view().row_block(kept));
        for (Index j = 0; j < p; ++j)
            for (Index i = 0; i < rank_; ++i) Y(P2[i], j) = -G(i, j);
        set_zero(ctx, C);
        subtract_product<T>(ctx, Q2_.view().col_block(kept), Y.view().row_block(kept), C);
    }
    if (exponent_ != 0) scale_by_power<T, Host>(ctx, -exponent_, C, C);
}

}  // namespace

template <class T, class D>
void solve_of_any_rank(Context<D>& ctx, Op op, MatrixView<const T, D> R, const RankTest& test,
                       LeastSquares<T, D>& solution) {
    if (test.is_full) return solve_triangle<T>(ctx, Triangle::Upper, op, R, solution.X.view());
    Context<Host>& host = host_context(ctx);
    const Matrix<T> R_on_host = host_copy_of<T, D>(ctx, R);
    Matrix<T> X = host_copy_of<T, D>(ctx, solution.X.view());
    const DeficientTriangle<T> triangle(host, R_on_host.view(), test);
    solution.rank = triangle.rank();
    solution.dependent = triangle.dependent();
    std::vector<Real<T>> left(solution.residual_norms.size());
    triangle.solve(host, op, X.view(), left);
    solution.X = device_copy_of<T, D>(ctx, X.view());
    for (std::size_t j = 0; j < left.size(); ++j)
        solution.residual_norms[j] = std::hypot(solution.residual_norms[j], left[j]);
}

#define QUOIN_INSTANTIATE(T, D) template decltype(solve_of_any_rank<T, D>) solve_of_any_rank<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
