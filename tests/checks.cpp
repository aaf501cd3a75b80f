#include "checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "gallery.hpp"
#include "wide_products.hpp"

namespace quoin::test {

namespace {

template <class T>
constexpr double eta = std::numeric_limits<T>::denorm_min();

template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
constexpr Bits<T> poison_bits = sizeof(T) == 8 ? Bits<T>(0x7ff8dead'beef5a5aULL) : Bits<T>(0x7fedbeefU);

template <class T>
const T poison = std::bit_cast<T>(poison_bits<T>);

/// k·(u·scale + √(mn)·η)
template <class T>
Wide<T> backward_error_unit(Index k, Index m, Index n, Wide<T> scale) {
    return k * (unit_roundoff<T> * scale + std::sqrt(Wide<T>(m) * Wide<T>(n)) * eta<T>);
}

template <class W>
double in_units(W measured, W unit) {
    return measured == 0 ? 0.0 : static_cast<double>(measured / unit);
}

/// y := y − αx
template <class W>
void subtract_scaled(W alpha, const W* x, W* y, Index m) {
    for (Index i = 0; i < m; ++i) y[i] -= alpha * x[i];
}

template <class W>
W norm(const std::vector<W>& x) {
    return std::sqrt(dot<W>(x.data(), x.data(), static_cast<Index>(x.size())));
}

/// ‖A‖_F
template <class T>
Wide<T> norm(MatrixView<const T> A) {
    Wide<T> squares = 0;
    for (Index j = 0; j < A.cols; ++j) squares += dot<Wide<T>>(A.at(0, j), A.at(0, j), A.rows);
    return std::sqrt(squares);
}

/// ‖I − AᵀA‖_F
template <class W, class X>
W departure_from_orthonormality(MatrixView<const X> A) {
    WideMatrix<W> departure(A.cols, A.cols);
    for (Index j = 0; j < A.cols; ++j) departure(j, j) = 1;
    subtract_product(departure, A, A);
    return norm(departure.data);
}

}  // namespace

template <class T>
ResidualErrors residual_errors(MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R) {
    using W = Wide<T>;
    const Index m = A.rows, n = A.cols, k = R.rows;
    WideMatrix<W> E = widened(A);
    subtract_product<W, T>(E, transposed<T>(Q).view(), R, true);
    W whole = 0;
    double worst_column = 0;
    for (Index j = 0; j < n; ++j) {
        // ‖a_j − Q r_j‖, R upper trapezoidal
        const W squares = dot<W>(E.column(j), E.column(j), m);
        whole += squares;
        const double error =
            in_units(std::sqrt(squares), backward_error_unit<T>(k, m, 1, norm(A.col_block({j, j + 1}))));
        // Written so that NaN wins.
        if (!(error <= worst_column)) worst_column = error;
    }
    return {in_units(std::sqrt(whole), backward_error_unit<T>(k, m, n, norm(A))), worst_column};
}

namespace {
bool is_one(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && std::string_view(value) == "1";
}
}  // namespace

bool quick() { return is_one("QUOIN_TEST_QUICK"); }
bool every_combination() { return is_one("QUOIN_TEST_FULL"); }

template <class T>
double orthogonality_error(MatrixView<const T> Q, Index k) {
    return in_units<Wide<T>>(departure_from_orthonormality<Wide<T>>(Q),
                             std::sqrt(Wide<T>(k) * Wide<T>(Q.cols)) * unit_roundoff<T>);
}

template <class T>
double residual_error(MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R) {
    return residual_errors(A, Q, R).of_matrix;
}

template <class T>
double column_residual_error(MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R) {
    return residual_errors(A, Q, R).of_worst_column;
}

template <class T>
double gram_error(MatrixView<const T> A, MatrixView<const T> R) {
    using W = Wide<T>;
    WideMatrix<W> AtA(A.cols, A.cols), RtR(A.cols, A.cols);  // −AᵀA and −RᵀR
    subtract_product(AtA, A, A);
    subtract_product(RtR, R, R);
    std::vector<W> length(A.cols), e(A.cols);
    for (Index j = 0; j < A.cols; ++j) {
        length[j] = norm(A.col_block({j, j + 1}));
        e[j] = backward_error_unit<T>(R.rows, A.rows, 1, length[j]);
    }
    double worst = 0;
    for (Index j = 0; j < A.cols; ++j)
        for (Index i = 0; i <= j; ++i) {
            const W unit = e[i] * length[j] + e[j] * length[i] + W(law) * e[i] * e[j];
            const double error = in_units(std::abs(AtA(i, j) - RtR(i, j)), unit);
            if (!(error <= worst)) worst = error;
        }
    return worst;
}

template <class T>
double implicit_orthogonality_error(MatrixView<const T> A, MatrixView<const T> R) {
    using W = Wide<T>;
    const Index m = A.rows, n = A.cols;
    const W norm_A = norm(A);
    // X := X R⁻¹ by columns: x_j = (x_j − Σ_{l<j} x_l r_lj) / r_jj
    const auto solve_from_right = [&](WideMatrix<W> X) {
        for (Index j = 0; j < n; ++j) {
            for (Index l = 0; l < j; ++l) subtract_scaled(W(R(l, j)), X.column(l), X.column(j), X.rows);
            for (Index i = 0; i < X.rows; ++i) X(i, j) /= W(R(j, j));
        }
        return X;
    };
    WideMatrix<W> I(n, n);
    for (Index j = 0; j < n; ++j) I(j, j) = 1;
    const W norm_R_inverse = norm(solve_from_right(std::move(I)).data);
    const W unit = 2 * backward_error_unit<T>(n, m, n, norm_A) * norm_R_inverse;
    const WideMatrix<W> X = solve_from_right(widened(A));
    return in_units(departure_from_orthonormality<W>(X.view()), unit);
}

template <class T>
double difference(MatrixView<const T> X, MatrixView<const T> Y, Index k, double scale) {
    if (X.rows != Y.rows || X.cols != Y.cols) return std::numeric_limits<double>::quiet_NaN();
    auto E = widened(X);
    for (Index j = 0; j < Y.cols; ++j)
        for (Index i = 0; i < Y.rows; ++i) E(i, j) -= Wide<T>(Y(i, j));
    return in_units(norm(E.data), backward_error_unit<T>(k, X.rows, X.cols, scale));
}

template <class T>
double product_error(Side side, Op op, MatrixView<const T> Q, MatrixView<const T> C, MatrixView<const T> X, Index k) {
    using W = Wide<T>;
    const Matrix<T> Qt = transposed<T>(Q), Ct = transposed<T>(C);
    WideMatrix<W> E = widened(X);
    if (side == Side::Left)
        subtract_product(E, op == Op::None ? std::as_const(Qt).view() : Q, C);
    else
        subtract_product(E, Ct.view(), op == Op::None ? Q : Qt.view());
    return in_units(norm(E.data), backward_error_unit<T>(k, C.rows, C.cols, norm(C)));
}

template <class T>
Matrix<T> product(MatrixView<const T> A, MatrixView<const T> B) {
    WideMatrix<Wide<T>> P(A.rows, B.cols);  // −A B
    subtract_product<Wide<T>, T>(P, transposed<T>(A).view(), B);
    Matrix<T> C(A.rows, B.cols);
    std::transform(P.data.begin(), P.data.end(), C.data(), [](auto x) { return static_cast<T>(-x); });
    return C;
}

template <class T>
double frobenius_norm(MatrixView<const T> A) {
    return static_cast<double>(norm(A));
}

template <class T>
bool is_upper_trapezoidal(MatrixView<const T> R) {
    for (Index j = 0; j < R.cols; ++j)
        for (Index i = j + 1; i < R.rows; ++i)
            if (R(i, j) != T(0)) return false;
    return true;
}

template <class T>
bool is_finite(MatrixView<const T> A) {
    for (Index j = 0; j < A.cols; ++j)
        if (!std::all_of(A.at(0, j), A.at(0, j) + A.rows, [](T x) { return std::isfinite(x); })) return false;
    return true;
}

template <class T>
bool same_bits(MatrixView<const T> A, MatrixView<const T> B) {
    if (A.rows != B.rows || A.cols != B.cols) return false;
    for (Index j = 0; j < A.cols; ++j)
        for (Index i = 0; i < A.rows; ++i)
            if (std::bit_cast<Bits<T>>(A(i, j)) != std::bit_cast<Bits<T>>(B(i, j))) return false;
    return true;
}

template <class T>
Matrix<T> copy(MatrixView<const T> A) {
    Matrix<T> B(A.rows, A.cols);
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, B.view().at(0, j));
    return B;
}

template <class T>
Matrix<T> filled(Index m, Index n, T value) {
    Matrix<T> A(m, n);
    std::fill_n(A.data(), m * n, value);
    return A;
}

template <class T>
Matrix<T> identity(Index m) {
    Matrix<T> I = filled<T>(m, m, 0);
    for (Index i = 0; i < m; ++i) I(i, i) = 1;
    return I;
}

template <class T>
Matrix<T> transposed(MatrixView<const T> A) {
    Matrix<T> B(A.cols, A.rows);
    for (Index j = 0; j < A.cols; ++j)
        for (Index i = 0; i < A.rows; ++i) B(j, i) = A(i, j);
    return B;
}

template <class T>
Padded<T>::Padded(Index rows, Index cols, Index padding)
    : storage_(filled<T>(rows + padding, cols, poison<T>)), rows_(rows) {}

template <class T>
Padded<T>::Padded(MatrixView<const T> A, Index padding) : Padded(A.rows, A.cols, padding) {
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, view().at(0, j));
}

template <class T>
bool Padded<T>::padding_intact() const {
    const MatrixView<const T> padding = storage_.view().row_block({rows_, storage_.rows()});
    return same_bits<T>(padding, filled<T>(padding.rows, padding.cols, poison<T>).view());
}

namespace {

template <class T>
void expect_refused_without_q(Context<Host>& ctx, const QR<T>& f) {
    Matrix<T> C = filled<T>(f.rows(), 1, 1);
    EXPECT_THROW(f.apply_q(ctx, Side::Left, Op::None, C.view()), InvalidArgument);
    EXPECT_THROW(f.form_q(ctx), InvalidArgument);
    EXPECT_THROW(f.q_block(ctx, {0, f.rows()}, {0, f.rows()}), InvalidArgument);
}

/// [R; 0], m×n
template <class T>
Matrix<T> with_zero_rows(MatrixView<const T> R, Index m) {
    Matrix<T> B = filled<T>(m, R.cols, 0);
    for (Index j = 0; j < R.cols; ++j) std::copy_n(R.at(0, j), R.rows, B.view().at(0, j));
    return B;
}

/// Qᵀ A = [R; 0], Q [R; 0] = A, Aᵀ Q = [R; 0]ᵀ, [R; 0]ᵀ Qᵀ = Aᵀ: the four products without the m×m Q.
template <class T>
void expect_products_with_a(Context<Host>& ctx, MatrixView<const T> A, MatrixView<const T> R, const QR<T>& f,
                            double bound) {
    const Index k = std::min(A.rows, A.cols);
    const double norm_A = frobenius_norm(A);
    const Matrix<T> R0 = with_zero_rows(R, A.rows);
    const Matrix<T> At = transposed(A), R0t = transposed<T>(R0.view());
    const struct {
        const char* name;
        Side side;
        Op op;
        MatrixView<const T> C, expected;
    } products[] = {{"QᵀA = [R; 0]", Side::Left, Op::Transpose, A, R0.view()},
                    {"Q[R; 0] = A", Side::Left, Op::None, R0.view(), A},
                    {"AᵀQ = [R; 0]ᵀ", Side::Right, Op::None, At.view(), R0t.view()},
                    {"[R; 0]ᵀQᵀ = Aᵀ", Side::Right, Op::Transpose, R0t.view(), At.view()}};
    for (const auto& product : products) {
        Padded<T> X(product.C);
        f.apply_q(ctx, product.side, product.op, X.view());
        EXPECT_LE(difference<T>(X.view(), product.expected, k, norm_A), bound) << product.name;
        EXPECT_TRUE(X.padding_intact()) << product.name;
    }
}

/// The m×m Q: orthogonal, its first k columns the thin Q, and Q C, Qᵀ C, C Q, C Qᵀ for a random C.
template <class T>
void expect_products_with_full_q(Context<Host>& ctx, MatrixView<const T> thin_Q, const QR<T>& f, double bound) {
    const Index m = f.rows(), k = thin_Q.cols, p = 5;
    Matrix<T> Q = identity<T>(m);
    f.apply_q(ctx, Side::Left, Op::None, Q.view());
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), bound) << "m×m Q";
    EXPECT_LE(difference<T>(Q.view().col_block({0, k}), thin_Q, k, std::sqrt(double(k))), bound) << "QI against thin Q";
    const Matrix<T> tall = random_normal<T>(m, p, 71), wide = random_normal<T>(p, m, 72);
    const struct {
        const char* name;
        Side side;
        Op op;
    } products[] = {{"QC", Side::Left, Op::None},
                    {"QᵀC", Side::Left, Op::Transpose},
                    {"CQ", Side::Right, Op::None},
                    {"CQᵀ", Side::Right, Op::Transpose}};
    for (const auto& [name, side, op] : products) {
        const Matrix<T>& C = side == Side::Left ? tall : wide;
        Padded<T> X(C.view());
        f.apply_q(ctx, side, op, X.view());
        EXPECT_LE(product_error<T>(side, op, Q.view(), C.view(), X.view(), k), bound) << name;
        EXPECT_TRUE(X.padding_intact()) << name;
    }
}

}  // namespace

template <class T>
void expect_law(Context<Host>& ctx, MatrixView<const T> A, const QR<T>& f, Index stages) {
    const double bound = law * std::sqrt(double(stages));
    const Index m = A.rows, n = A.cols, k = std::min(m, n), small = 64;
    EXPECT_EQ(f.rows(), m);
    EXPECT_EQ(f.cols(), n);

    const Matrix<T> R = f.r();
    ASSERT_EQ(R.rows(), k);
    ASSERT_EQ(R.cols(), n);
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    EXPECT_TRUE(is_finite<T>(R.view()));
    if (f.plan().q == QForm::None) {
        // Without Q, R has to answer for itself.
        EXPECT_LE(gram_error<T>(A, R.view()), bound) << "AᵀA = RᵀR";
        return expect_refused_without_q(ctx, f);
    }

    const Matrix<T> Q = f.form_q(ctx);
    ASSERT_EQ(Q.rows(), m);
    ASSERT_EQ(Q.cols(), k);
    EXPECT_TRUE(is_finite<T>(Q.view()));
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), bound) << "‖I − QᵀQ‖";
    const ResidualErrors residual = residual_errors<T>(A, Q.view(), R.view());
    EXPECT_LE(residual.of_matrix, bound) << "‖A − QR‖";
    EXPECT_LE(residual.of_worst_column, bound) << "max ‖a_j − Q r_j‖";
    expect_products_with_a<T>(ctx, A, R.view(), f, bound);
    if (m <= small) expect_products_with_full_q<T>(ctx, Q.view(), f, bound);
}

#define QUOIN_INSTANTIATE(T)                                                                                       \
    template double orthogonality_error(MatrixView<const T>, Index);                                               \
    template ResidualErrors residual_errors(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>);        \
    template double residual_error(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>);                 \
    template double column_residual_error(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>);          \
    template double gram_error(MatrixView<const T>, MatrixView<const T>);                                          \
    template double implicit_orthogonality_error(MatrixView<const T>, MatrixView<const T>);                        \
    template double difference(MatrixView<const T>, MatrixView<const T>, Index, double);                           \
    template double product_error(Side, Op, MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, Index); \
    template Matrix<T> product(MatrixView<const T>, MatrixView<const T>);                                          \
    template double frobenius_norm(MatrixView<const T>);                                                           \
    template bool is_upper_trapezoidal(MatrixView<const T>);                                                       \
    template bool is_finite(MatrixView<const T>);                                                                  \
    template bool same_bits(MatrixView<const T>, MatrixView<const T>);                                             \
    template Matrix<T> identity(Index);                                                                            \
    template Matrix<T> transposed(MatrixView<const T>);                                                            \
    template class Padded<T>;                                                                                      \
    template void expect_law(Context<Host>&, MatrixView<const T>, const QR<T>&, Index)

QUOIN_INSTANTIATE(float);
QUOIN_INSTANTIATE(double);
#undef QUOIN_INSTANTIATE

#define QUOIN_INSTANTIATE(T)                      \
    template Matrix<T> copy(MatrixView<const T>); \
    template Matrix<T> filled(Index, Index, T)

QUOIN_INSTANTIATE(float);
QUOIN_INSTANTIATE(double);
QUOIN_INSTANTIATE(std::complex<float>);
QUOIN_INSTANTIATE(std::complex<double>);
#undef QUOIN_INSTANTIATE

}  // namespace quoin::test
