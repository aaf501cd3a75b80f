// Updates of explicit factors A = QR by two steps on windows of neighbouring columns of Q and rows of R
// (docs/updates.md).

#include "quoin/update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "algorithms/one_matrix/gram_schmidt.hpp"
#include "algorithms/shared/column_scaling.hpp"
#include "algorithms/shared/copies.hpp"
#include "algorithms/shared/matrix_checks.hpp"
#include "devices.hpp"

namespace quoin {
namespace {

/// The two steps. They change matrices of as many rows as Q has columns, and keep the windows' G for Q.
template <class T, class D>
class Windows {
public:
    /// For blocks W of p columns, or p diagonals below R's.
    Windows(Context<D>& ctx, Index p) : ctx_(ctx), p_(p), width_(std::max(Tuning<D>::update_width, p)) {}

    /// W := [T; 0] from row r on, T upper triangular. R, whose row r + i starts in column i, keeps p diagonals below
    /// them.
    void compress(Index r, MatrixView<T, D> W, MatrixView<T, D> R) {
        const ColumnsInRange<T, D> scaling_W(ctx_, W), scaling_R(ctx_, R);
        const Index rest = p_ > 0 ? W.rows - r : 0, n = R.cols;
        const Index count = rest > p_ ? (rest - p_ + width_ - 1) / width_ : rest > 0;
        start(std::min(rest, width_ + p_), count);
        for (Index j = count - 1; j >= 0; --j) {
            const Range rows{r + j * width_, std::min(W.rows, r + (j + 1) * width_ + p_)};
            const Index q = std::min(p_, rows.size()), c = std::min(n, j * width_);
            const Range lower{rows.begin + q, rows.end}, cols{c, c + std::min(lower.size(), n - c)};
            // H₁ᵀ[W R](rows, :) = [T *; 0 R₂],   H₂ᵀR₂ upper triangular,   G = H₁ [I 0; 0 H₂]
            start_window(rows);
            eliminate(W.block(rows, {0, q}), 0, {W.block(rows, {q, p_}), R.block(rows, {c, n})});
            eliminate(R.block(lower, cols), q, {R.block(lower, {cols.end, n})});
            finish_window(rows);
        }
        scaling_W.unscale(ctx_, W, {0, p_});
        scaling_R.unscale(ctx_, R, {0, n});
    }

    /// Makes R upper triangular, which has p diagonals below its own from column `first` on.
    void retriangularize(Index first, MatrixView<T, D> R) {
        const ColumnsInRange<T, D> scaling(ctx_, R);
        const Index end = p_ > 0 ? std::min(R.rows, R.cols) : 0;
        start(std::min(R.rows, width_ + p_), std::max<Index>(0, end - first + width_ - 1) / width_);
        for (Index c = first; c < end; c += width_) {
            const Range cols{c, std::min(end, c + width_)}, rows{c, std::min(R.rows, cols.end + p_)};
            start_window(rows);
            eliminate(R.block(rows, cols), 0, {R.block(rows, {cols.end, R.cols})});
            finish_window(rows);
        }
        scaling.unscale(ctx_, R, {0, R.cols});
    }

    /// Q := the columns `kept` of [A B] G, G the product of all windows. Q may be A, if all of A is kept.
    void multiply(InputView<T, D> A, InputView<T, D> B, Range kept, MatrixView<T, D> Q) const {
        multiply_windows<T, D>(ctx_, windows_, A, B, kept, Q);
    }

private:
    /// Makes room for `count` windows of up to `height` rows.
    void start(Index height, Index count) {
        minus_Gt_ = Matrix<T, D>(ctx_, height, height);
        minus_G_ = Matrix<T, D>(ctx_, height, height * count);
        Tf_ = Matrix<T, D>(ctx_, height, height);
    }
    /// G := I
    void start_window(Range rows) {
        throw_if_stopped(ctx_);
        Gt_ = minus_Gt_.view().block({0, rows.size()}, {0, rows.size()});
        set_identity<T>(ctx_, 0, Gt_);
        negate<T>(ctx_, Gt_);
    }
    /// A = H [R; 0], in place; C := HᵀC for the `others`, and G := G H, which starts at row `first` of the window.
    void eliminate(MatrixView<T, D> A, Index first, std::initializer_list<MatrixView<T, D>> others) {
        if (A.empty()) return;
        const auto Tf = Tf_.view().block({0, A.cols}, {0, A.cols});
        factor_panel<T>(ctx_, A, Tf);
        for (const auto& C : others) apply_panel<T>(ctx_, Op::Transpose, A, Tf, C);
        apply_panel<T>(ctx_, Op::Transpose, A, Tf, Gt_.row_block({first, first + A.rows}));
        copy_triangle<T>(ctx_, A, A);
    }
    /// Keeps G for Q(:, rows).
    void finish_window(Range rows) {
        const Index begin = static_cast<Index>(windows_.size()) * minus_Gt_.cols();
        const auto minus_G = minus_G_.view().block({0, rows.size()}, {begin, begin + rows.size()});
        transpose<T>(ctx_, Gt_, minus_G);
        windows_.push_back({minus_G, rows.begin});
    }

    Context<D>& ctx_;
    const Index p_, width_;
    std::vector<WindowFactor<T, D>> windows_;
    Matrix<T, D> minus_G_, minus_Gt_, Tf_;
    MatrixView<T, D> Gt_;
};

/// Extends Q (m×kk), whose first k columns are orthonormal, such that U = Q W, and returns W (kk×p). Either kk = k + p
/// or Q becomes square.
template <class T, class D>
Matrix<T, D> coordinates(Context<D>& ctx, MatrixView<T, D> Q, Index k, InputView<T, D> U) {
    const Index kk = Q.cols, p = U.cols;
    Matrix<T, D> V = loaded<T, D>(ctx, U), W(ctx, kk, p);
    const ColumnsInRange<T, D> scaling(ctx, V.view());
    const Range next{k, kk}, first{0, kk - k}, rest{kk - k, p};
    if (next.size() > 0) {
        // [Q₁ V₁] = [Q₁ Q₂] [I W₁₁; 0 W₂₁]
        const Options options{.method = ClassicalGramSchmidt{.reorthogonalization = Reorthogonalization::Always},
                              .q = QForm::Explicit};
        GramSchmidtBasis<T, D> basis(ctx, plan_qr<T, D>(ctx, Q.rows, kk, options), kk);
        Matrix<T, D> R(ctx, kk, kk);
        set_zero(ctx, R.view().col_block(next));
        copy<T>(ctx, V.view().col_block(first), Q.col_block(next));
        basis.orthonormalize(ctx, Q, R.view(), k);
        copy<T>(ctx, R.view().col_block(next), W.view().col_block(first));
    }
    // a square Q: W₂ = QᵀV₂
    multiply_transposed<T>(ctx, Q, V.view().col_block(rest), W.view().col_block(rest));
    scaling.unscale(ctx, W.view(), {0, p});
    return W;
}

/// Throws for a matrix that has not `rows` rows and `cols` columns; −1 is any number.
template <class T, class D>
void check_operand(Context<D>& ctx, const char* function, const char* name, InputView<T, D> A, Index rows, Index cols,
                   bool check_finite) {
    check_storage(A.data, A.rows, A.cols, A.by_rows ? A.cols : A.rows, A.by_rows ? "cols" : "rows", A.ld);
    if ((rows >= 0 && A.rows != rows) || (cols >= 0 && A.cols != cols)) {
        const bool of_rows = rows >= 0 && A.rows != rows;
        throw InvalidArgument(fmt::format("{}: {} is {} x {}, and must have {} {}", function, name, A.rows, A.cols,
                                          of_rows ? rows : cols, of_rows ? "rows" : "columns"));
    }
    if (check_finite) require_finite<T, D>(ctx, A, name);
}

/// The checked factors and their sizes.
template <class T, class D>
struct Given {
    Given(Context<D>& ctx, const char* function, const ExplicitFactors<T, D>& f, bool check_finite)
        : Q(f.Q), R(f.R), m(Q.rows), k(Q.cols), n(R.cols), square(k == m) {
        check_operand<T, D>(ctx, function, "R", R, k, -1, check_finite);
        check_operand<T, D>(ctx, function, "Q", Q, -1, -1, check_finite);
        if (!square && k > std::min(m, n)) {
            throw InvalidArgument(
                fmt::format("{}: Q is {} x {} and R {} x {}, and Q must be square or thin", function, m, k, k, n));
        }
    }
    /// Returns the number of columns of Q', if R' has these rows and columns.
    Index kept(Index rows, Index cols) const { return square ? rows : std::min(rows, cols); }

    InputView<T, D> Q, R;
    Index m, k, n;
    bool square;
};

void check_range(const char* function, const char* what, Range r, Index size) {
    if (r.begin >= 0 && r.begin <= r.end && r.end <= size) return;
    throw InvalidArgument(fmt::format("{}: {} {} to {} are not among 0 to {}", function, what, r.begin, r.end, size));
}

/// Returns [0; R; 0] for the upper triangle R of A (k×n), from row `first` on, of `rows` rows.
template <class T, class D>
Matrix<T, D> triangle_of(Context<D>& ctx, InputView<T, D> A, Index first, Index rows) {
    Matrix<T, D> R(ctx, rows, A.cols);
    const auto middle = R.view().row_block({first, first + A.rows});
    load<T>(ctx, A, middle);
    copy_triangle<T>(ctx, middle, middle);
    set_zero(ctx, R.view().row_block({0, first}));
    set_zero(ctx, R.view().row_block({first + A.rows, rows}));
    return R;
}

/// Returns the first rows of R.
template <class T, class D>
Matrix<T, D> top(Context<D>& ctx, Matrix<T, D>&& R, Index rows) {
    if (rows == R.rows()) return std::move(R);
    return copy_of<T, D>(ctx, R.view().row_block({0, rows}));
}

/// Returns A without the given rows.
template <class T, class D>
Matrix<T, D> without_rows(Context<D>& ctx, InputView<T, D> A, Range rows) {
    Matrix<T, D> B(ctx, A.rows - rows.size(), A.cols);
    load<T>(ctx, A.row_block({0, rows.begin}), B.view().row_block({0, rows.begin}));
    load<T>(ctx, A.row_block({rows.end, A.rows}), B.view().row_block({rows.begin, B.rows()}));
    return B;
}

}  // namespace

template <class T, class D>
ThinQR<T, D> insert_columns(Context<D>& ctx, Explicit<T, D> f, Index at, Input<T, D> U, bool check_finite) {
    const Given<T, D> A(ctx, "insert_columns", f, check_finite);
    check_operand<T, D>(ctx, "insert_columns", "U", U, A.m, -1, check_finite);
    check_range("insert_columns", "columns", {at, at}, A.n);
    const Index p = U.cols, k = std::min(A.m, A.k + p);
    const Range right{at + p, A.n + p};
    Matrix<T, D> Q(ctx, A.m, k), R(ctx, k, A.n + p);
    load<T>(ctx, A.Q, Q.view().col_block({0, A.k}));
    // R' = [R₁ W R₂]
    const Matrix<T, D> old = triangle_of<T, D>(ctx, A.R, 0, k);
    const auto W = R.view().col_block({at, at + p});
    copy<T>(ctx, old.view().col_block({0, at}), R.view().col_block({0, at}));
    copy<T>(ctx, coordinates<T, D>(ctx, Q.view(), A.k, U).view(), W);
    copy<T>(ctx, old.view().col_block({at, A.n}), R.view().col_block(right));
    Windows<T, D> windows(ctx, p);
    windows.compress(std::min(at, k), W, R.view().col_block(right));
    windows.multiply(Q.view(), {}, {0, k}, Q.view());
    copy_triangle<T>(ctx, R.view(), R.view());
    return {std::move(Q), std::move(R)};
}

template <class T, class D>
ThinQR<T, D> delete_columns(Context<D>& ctx, Explicit<T, D> f, Range columns, bool check_finite) {
    const Given<T, D> A(ctx, "delete_columns", f, check_finite);
    check_range("delete_columns", "columns", columns, A.n);
    const Matrix<T, D> old = triangle_of<T, D>(ctx, A.R, 0, A.k);
    Matrix<T, D> R(ctx, A.k, A.n - columns.size());
    copy<T>(ctx, old.view().col_block({0, columns.begin}), R.view().col_block({0, columns.begin}));
    copy<T>(ctx, old.view().col_block({columns.end, A.n}), R.view().col_block({columns.begin, R.cols()}));
    Windows<T, D> windows(ctx, columns.size());
    windows.retriangularize(columns.begin, R.view());
    const Index k = A.kept(A.k, R.cols());
    Matrix<T, D> Q(ctx, A.m, k);
    windows.multiply(A.Q, {}, {0, k}, Q.view());
    return {std::move(Q), top(ctx, std::move(R), k)};
}

template <class T, class D>
ThinQR<T, D> insert_rows(Context<D>& ctx, Explicit<T, D> f, Index at, Input<T, D> V, bool check_finite) {
    const Given<T, D> A(ctx, "insert_rows", f, check_finite);
    check_operand<T, D>(ctx, "insert_rows", "V", V, -1, A.n, check_finite);
    check_range("insert_rows", "rows", {at, at}, A.m);
    // [V; R] = [Q_V 0; 0 I] [R_V; R], Q_V = I unless V has many rows
    const bool many = !A.square && V.rows > A.n;
    ThinQR<T, D> of_V;
    if (many) of_V = qr<T, D>(ctx, V, {.q = QForm::Explicit, .check_finite = false}).take_thin(ctx);
    const Index p = many ? A.n : V.rows, k = A.kept(p + A.k, A.n);
    Matrix<T, D> R = triangle_of<T, D>(ctx, A.R, p, p + A.k);
    load<T>(ctx, many ? InputView<T, D>(of_V.R.view()) : V, R.view().row_block({0, p}));
    Windows<T, D> windows(ctx, p);
    windows.retriangularize(0, R.view());
    // Q' := [0 Q₁; Q_V 0; 0 Q₂] G
    Matrix<T, D> Q(ctx, A.m + V.rows, k), zeros(ctx, std::max(at, A.m - at), p), more(ctx, V.rows, A.k);
    set_zero(ctx, zeros.view());
    set_zero(ctx, more.view());
    if (!many) {
        of_V.Q = Matrix<T, D>(ctx, p, p);
        set_identity<T>(ctx, 0, of_V.Q.view());
    }
    const Index below = A.m - at, end = at + V.rows;
    windows.multiply(zeros.view().row_block({0, at}), A.Q.row_block({0, at}), {0, k}, Q.view().row_block({0, at}));
    windows.multiply(of_V.Q.view(), more.view(), {0, k}, Q.view().row_block({at, end}));
    windows.multiply(zeros.view().row_block({0, below}), A.Q.row_block({at, A.m}), {0, k},
                     Q.view().row_block({end, Q.rows()}));
    return {std::move(Q), top(ctx, std::move(R), k)};
}

template <class T, class D>
ThinQR<T, D> delete_rows(Context<D>& ctx, Explicit<T, D> f, Range rows, bool check_finite) {
    const Given<T, D> A(ctx, "delete_rows", f, check_finite);
    check_range("delete_rows", "rows", rows, A.m);
    const Index p = rows.size();
    if (4 * p > A.k) {
        // the kept rows of Q are Q₂R₂, and A' = Q₂ (R₂ R)
        const Matrix<T, D> kept = without_rows<T, D>(ctx, A.Q, rows);
        ThinQR<T, D> of_Q = qr(ctx, kept.view(), {.q = QForm::Explicit, .check_finite = false}).take_thin(ctx);
        Matrix<T, D> R0 = triangle_of<T, D>(ctx, A.R, 0, A.k), R(ctx, of_Q.R.rows(), A.n);
        const ColumnsInRange<T, D> scaling(ctx, R0.view());
        negate<T>(ctx, of_Q.R.view());
        set_zero(ctx, R.view());
        subtract_product<T>(ctx, of_Q.R.view(), R0.view(), R.view());
        scaling.unscale(ctx, R.view(), {0, A.n});
        copy_triangle<T>(ctx, R.view(), R.view());
        return {std::move(of_Q.Q), std::move(R)};
    }
    // [E A] = Q' [±I ±A(rows, :); 0 R'], where E are unit vectors: so are the first columns and the given rows of Q'
    const Index k = std::min(A.m, A.k + p);
    Matrix<T, D> E(ctx, A.m, p), Q0(ctx, A.m, k), R0 = triangle_of<T, D>(ctx, A.R, 0, k), Q(ctx, A.m - p, k - p);
    set_identity<T>(ctx, -rows.begin, E.view());
    load<T>(ctx, A.Q, Q0.view().col_block({0, A.k}));
    Matrix<T, D> W = coordinates<T, D>(ctx, Q0.view(), A.k, E.view());
    Windows<T, D> windows(ctx, p);
    windows.compress(0, W.view(), R0.view());
    for (const auto& [from, to] : {std::pair<Range, Index>{{0, rows.begin}, 0}, {{rows.end, A.m}, rows.begin}}) {
        windows.multiply(Q0.view().row_block(from), {}, {p, k}, Q.view().row_block({to, to + from.size()}));
    }
    return {std::move(Q), copy_of<T, D>(ctx, R0.view().row_block({p, k}))};
}

template <class T, class D>
ThinQR<T, D> update(Context<D>& ctx, Explicit<T, D> f, Input<T, D> U, Input<T, D> V, bool check_finite) {
    const Given<T, D> A(ctx, "update", f, check_finite);
    check_operand<T, D>(ctx, "update", "U", U, A.m, -1, check_finite);
    check_operand<T, D>(ctx, "update", "V", V, A.n, U.cols, check_finite);
    const Index p = U.cols, k = std::min(A.m, A.k + p);
    Matrix<T, D> Q(ctx, A.m, k), R = triangle_of<T, D>(ctx, A.R, 0, k);
    load<T>(ctx, A.Q, Q.view().col_block({0, A.k}));
    Matrix<T, D> W = coordinates<T, D>(ctx, Q.view(), A.k, U);
    Windows<T, D> up(ctx, p), down(ctx, p);
    up.compress(0, W.view(), R.view());
    up.multiply(Q.view(), {}, {0, k}, Q.view());
    // R := R + [T; 0] Vᵀ
    Matrix<T, D> minus_Vt = transposed<T, D>(ctx, loaded<T, D>(ctx, V).view());
    negate<T>(ctx, minus_Vt.view());
    const Range first{0, std::min(p, k)};
    subtract_product<T>(ctx, W.view().row_block(first), minus_Vt.view(), R.view().row_block(first));
    down.retriangularize(0, R.view());
    const Index kept = A.kept(k, A.n);
    Matrix<T, D> Q1(ctx, A.m, kept);
    down.multiply(Q.view(), {}, {0, kept}, Q1.view());
    return {std::move(Q1), top(ctx, std::move(R), kept)};
}

#define QUOIN_INSTANTIATE(T, D)                                                                        \
    template ThinQR<T, D> insert_columns<T, D>(Context<D>&, Explicit<T, D>, Index, Input<T, D>, bool); \
    template ThinQR<T, D> delete_columns<T, D>(Context<D>&, Explicit<T, D>, Range, bool);              \
    template ThinQR<T, D> insert_rows<T, D>(Context<D>&, Explicit<T, D>, Index, Input<T, D>, bool);    \
    template ThinQR<T, D> delete_rows<T, D>(Context<D>&, Explicit<T, D>, Range, bool);                 \
    template ThinQR<T, D> update<T, D>(Context<D>&, Explicit<T, D>, Input<T, D>, Input<T, D>, bool);
// a GPU has no updates yet
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
