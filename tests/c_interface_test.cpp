// The C interface obeys the same laws as C++'s, in both storage orders, and answers every mistake with a status and a
// sentence. Everything is computed by quoin.h.

#include "quoin.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "least_squares_law.hpp"
#include "svd_law.hpp"

namespace quoin::test {
namespace {

constexpr int orders[] = {QUOIN_COLUMN_MAJOR, QUOIN_ROW_MAJOR};

/// A struct for an answer of quoin.h.
template <class Struct>
Struct sized() {
    Struct answer{};
    answer.size = sizeof answer;
    return answer;
}

/// A matrix for quoin.h in padded memory; NaN until it is written.
template <class T>
class Given {
public:
    Given(Index rows, Index cols, int order)
        : rows_(rows),
          cols_(cols),
          by_rows_(order == QUOIN_ROW_MAJOR),
          memory_(by_rows_ ? cols : rows, by_rows_ ? rows : cols) {}
    Given(MatrixView<const T> A, int order) : Given(A.rows, A.cols, order) {
        for (Index j = 0; j < cols_; ++j)
            for (Index i = 0; i < rows_; ++i) (by_rows_ ? memory_.view()(j, i) : memory_.view()(i, j)) = A(i, j);
    }
    quoin_matrix operator*() {
        const auto stored = memory_.view();
        const int type = std::is_same_v<T, float> ? QUOIN_TYPE_F32 : QUOIN_TYPE_F64;
        return {stored.data, rows_, cols_, stored.ld, type, by_rows_ ? QUOIN_ROW_MAJOR : QUOIN_COLUMN_MAJOR, 0};
    }
    /// Returns the entries. Expects the padding as it was.
    Matrix<T> read() const {
        EXPECT_TRUE(memory_.padding_intact());
        return by_rows_ ? transposed<T>(memory_.view()) : copy<T>(memory_.view());
    }

private:
    Index rows_, cols_;
    bool by_rows_;
    Padded<T> memory_;
};

class CInterface : public testing::Test {
protected:
    CInterface() {
        EXPECT_EQ(quoin_context_create(QUOIN_HOST, 2, nullptr, &ctx), QUOIN_OK);
        EXPECT_EQ(quoin_options_init(&options, sizeof options), QUOIN_OK);
    }
    ~CInterface() override { quoin_context_destroy(ctx); }

    template <class T>
    quoin_factorization* factor(MatrixView<const T> A, int order = QUOIN_COLUMN_MAJOR) {
        Given<T> input(A, order);
        const quoin_matrix given = *input;
        quoin_factorization* f = nullptr;
        EXPECT_EQ(quoin_factor(ctx, &given, &options, &f), QUOIN_OK) << quoin_last_error();
        EXPECT_TRUE(same_bits<T>(input.read().view(), A)) << "A is only read";
        return f;
    }

    quoin_context* ctx = nullptr;
    quoin_options options;
};

template <class T>
class CLaw : public CInterface {
protected:
    /// Q and R of a factorization, with the law for them.
    void expect_thin_law(MatrixView<const T> A, const Matrix<T>& Q, const Matrix<T>& R) {
        const Index k = std::min(A.rows, A.cols);
        EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
        EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
        EXPECT_LE(residual_error<T>(A, Q.view(), R.view()), law);
    }
    /// The output of `call`, which writes a rows×cols matrix.
    template <class Call>
    Matrix<T> written(Index rows, Index cols, int order, const Call& call) {
        Given<T> output(rows, cols, order);
        const quoin_matrix given = *output;
        EXPECT_EQ(call(&given), QUOIN_OK) << quoin_last_error();
        return output.read();
    }
    Matrix<T> applied(const quoin_factorization* f, int side, int op, MatrixView<const T> C, int order) {
        Given<T> in_place(C, order);
        const quoin_matrix given = *in_place;
        EXPECT_EQ(quoin_apply_q(this->ctx, f, side, op, &given), QUOIN_OK) << quoin_last_error();
        return in_place.read();
    }
};
TYPED_TEST_SUITE(CLaw, Scalars);

struct Shape {
    Index m, n;
};
constexpr Shape shapes[] = {{300, 7}, {40, 40}, {6, 50}, {1, 1}, {0, 3}, {3, 0}, {0, 0}};

TYPED_TEST(CLaw, HoldsForFactorizations) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        for (const int order : orders) {
            SCOPED_TRACE(testing::Message() << m << " x " << n << ", order " << order);
            const Index k = std::min(m, n);
            const Matrix<T> A = random_normal<T>(m, n);
            quoin_factorization* f = this->template factor<T>(A.view(), order);
            quoin_report report = sized<quoin_report>();
            EXPECT_EQ(quoin_factorization_report(f, &report), QUOIN_OK);
            EXPECT_EQ(report.rows, m);
            EXPECT_EQ(report.cols, n);
            EXPECT_EQ(report.k, k);
            const auto r = [&](const quoin_matrix* R) { return quoin_r(this->ctx, f, R); };
            const auto q = [&](const quoin_matrix* Q) { return quoin_thin_q(this->ctx, f, Q); };
            this->expect_thin_law(A.view(), this->written(m, k, order, q), this->written(k, n, order, r));
            if (m <= 64) {
                const Matrix<T> I = identity<T>(m), C = random_normal<T>(m, 5, 2), D = random_normal<T>(5, m, 3);
                const Matrix<T> Q = this->applied(f, QUOIN_LEFT, QUOIN_NO_TRANSPOSE, I.view(), order);
                EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
                for (const int op : {QUOIN_NO_TRANSPOSE, QUOIN_TRANSPOSE}) {
                    const Op as_op = op == QUOIN_TRANSPOSE ? Op::Transpose : Op::None;
                    const Matrix<T> QC = this->applied(f, QUOIN_LEFT, op, C.view(), order);
                    EXPECT_LE(product_error<T>(Side::Left, as_op, Q.view(), C.view(), QC.view(), k), law);
                    const Matrix<T> DQ = this->applied(f, QUOIN_RIGHT, op, D.view(), order);
                    EXPECT_LE(product_error<T>(Side::Right, as_op, Q.view(), D.view(), DQ.view(), k), law);
                }
            }
            quoin_factorization_destroy(f);

            Given<T> input(A.view(), order), Q(m, k, order), R(k, n, order), R_alone(k, n, order);
            const quoin_matrix a = *input, to_q = *Q, to_r = *R, to_r_alone = *R_alone;
            EXPECT_EQ(quoin_qr(this->ctx, &a, nullptr, &to_q, &to_r), QUOIN_OK) << quoin_last_error();
            this->expect_thin_law(A.view(), Q.read(), R.read());
            EXPECT_EQ(quoin_qr(this->ctx, &a, nullptr, nullptr, &to_r_alone), QUOIN_OK) << quoin_last_error();
            EXPECT_TRUE(is_upper_trapezoidal<T>(R_alone.read().view()));
            EXPECT_LE(gram_error<T>(A.view(), R_alone.read().view()), law);
        }
    }
}

TYPED_TEST(CLaw, HoldsForEveryMethodAndForPivots) {
    using T = TypeParam;
    const Index m = 400, n = 12;
    const Matrix<T> A = random_normal<T>(m, n);
    for (int method = QUOIN_METHOD_HOUSEHOLDER; method <= QUOIN_METHOD_CGS; ++method) {
        SCOPED_TRACE(method);
        this->options.method = method;
        this->options.reorthogonalize =
            method >= QUOIN_METHOD_MGS ? QUOIN_REORTHOGONALIZE_ALWAYS : QUOIN_REORTHOGONALIZE_OFF;
        quoin_factorization* f = this->template factor<T>(A.view());
        quoin_report report = sized<quoin_report>();
        EXPECT_EQ(quoin_factorization_report(f, &report), QUOIN_OK);
        EXPECT_EQ(report.method, method);
        const auto r = [&](const quoin_matrix* R) { return quoin_r(this->ctx, f, R); };
        const auto q = [&](const quoin_matrix* Q) { return quoin_thin_q(this->ctx, f, Q); };
        this->expect_thin_law(A.view(), this->written(m, n, 0, q), this->written(n, n, 0, r));
        std::vector<std::int64_t> p(n);
        EXPECT_EQ(quoin_permutation(f, p.data()), QUOIN_OK);
        for (Index j = 0; j < n; ++j) EXPECT_EQ(p[j], j);
        quoin_factorization_destroy(f);
    }
    const Matrix<T> low = random_normal<T>(m, 5, 7), right = random_normal<T>(5, n, 8);
    const Matrix<T> B = product<T>(low.view(), right.view());
    for (const bool by_norm : {false, true}) {
        quoin_options_init(&this->options, sizeof this->options);
        this->options.pivots = QUOIN_PIVOTS_GREEDY;
        this->options.max_rank = by_norm ? 0 : 5;
        this->options.relative_frobenius = by_norm ? 1e-4 : 0;
        quoin_factorization* f = this->template factor<T>(B.view());
        quoin_report report = sized<quoin_report>();
        EXPECT_EQ(quoin_factorization_report(f, &report), QUOIN_OK);
        ASSERT_EQ(report.k, 5);
        EXPECT_EQ(report.rank, 5);
        std::vector<std::int64_t> p(n);
        EXPECT_EQ(quoin_permutation(f, p.data()), QUOIN_OK);
        Matrix<T> BP(m, n);
        for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < m; ++i) BP(i, j) = B(i, p[j]);
        const Matrix<T> R = this->written(5, n, 0, [&](const quoin_matrix* to) { return quoin_r(this->ctx, f, to); });
        const Matrix<T> Q =
            this->written(m, 5, 0, [&](const quoin_matrix* to) { return quoin_thin_q(this->ctx, f, to); });
        EXPECT_LE(orthogonality_error<T>(Q.view(), 5), law);
        EXPECT_LE(residual_error<T>(BP.view(), Q.view(), R.view()), law);
        quoin_factorization_destroy(f);
    }
}

/// Q = H₀H₁… by LAPACK's formula, and by the factorization that V and tau are imported into.
TYPED_TEST(CLaw, HoldsForLapacksFormat) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        for (const int order : orders) {
            for (const int q : {QUOIN_Q_ANY, QUOIN_Q_EXPLICIT, QUOIN_Q_REFLECTORS}) {
                SCOPED_TRACE(testing::Message() << m << " x " << n << ", order " << order << ", q " << q);
                const Index k = std::min(m, n);
                const Matrix<T> A = random_normal<T>(m, n);
                this->options.q = q;
                quoin_factorization* f = this->template factor<T>(A.view(), order);
                const auto r = [&](const quoin_matrix* R) { return quoin_r(this->ctx, f, R); };
                const Matrix<T> R_before = this->written(k, n, order, r);
                Given<T> V_R(m, n, order), tau(k, 1, order);
                const quoin_matrix v_r = *V_R, t = *tau;
                ASSERT_EQ(quoin_to_lapack(this->ctx, f, &v_r, &t), QUOIN_OK) << quoin_last_error();
                const Matrix<T> H = V_R.read(), scalars = tau.read();
                Matrix<T> R(k, n), Q = identity<T>(m);
                for (Index j = 0; j < n; ++j)
                    for (Index i = 0; i < k; ++i) R(i, j) = i <= j ? H(i, j) : 0;
                for (Index j = k; j-- > 0;) {
                    for (Index c = 0; c < m; ++c) {
                        double product = Q(j, c);
                        for (Index i = j + 1; i < m; ++i) product += double(H(i, j)) * Q(i, c);
                        Q(j, c) = T(Q(j, c) - scalars(j, 0) * product);
                        for (Index i = j + 1; i < m; ++i) Q(i, c) = T(Q(i, c) - scalars(j, 0) * product * H(i, j));
                    }
                }
                EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
                const Matrix<T> thin = copy<T>(Q.view().col_block({0, k}));
                EXPECT_LE(residual_error<T>(A.view(), thin.view(), R.view()), law);
                EXPECT_TRUE(q != QUOIN_Q_REFLECTORS || same_bits<T>(R.view(), R_before.view()));

                ASSERT_EQ(quoin_from_lapack(this->ctx, &v_r, &t, &f), QUOIN_OK) << quoin_last_error();
                const Matrix<T> I = identity<T>(m);
                const Matrix<T> imported = this->applied(f, QUOIN_LEFT, QUOIN_NO_TRANSPOSE, I.view(), order);
                EXPECT_LE(residual_error<T>(Q.view(), imported.view(), I.view()), law);
                EXPECT_TRUE(same_bits<T>(this->written(k, n, order, r).view(), R.view()));
                quoin_factorization_destroy(f);
            }
        }
    }
}

TYPED_TEST(CLaw, HoldsForLeastSquares) {
    using T = TypeParam;
    for (const Shape& shape : {Shape{300, 7}, {40, 40}, {6, 50}, {5, 0}}) {
        const Index m = shape.m, n = shape.n;
        for (const int order : orders) {
            SCOPED_TRACE(testing::Message() << m << " x " << n << ", order " << order);
            const Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(m, 3, 2);
            Given<T> input(A.view(), order), rhs(B.view(), order), X(n, 3, order);
            const quoin_matrix a = *input, b = *rhs, x = *X;
            const auto expect_law = [&](const char* what, const auto& solve) {
                SCOPED_TRACE(what);
                LeastSquares<T> found;
                found.residual_norms.assign(3, std::numeric_limits<T>::quiet_NaN());
                quoin_solution solution = sized<quoin_solution>();
                EXPECT_EQ(solve(found.residual_norms.data(), &solution), QUOIN_OK) << quoin_last_error();
                EXPECT_EQ(solution.rank, std::min(m, n));
                EXPECT_GE(solution.condition, 1);
                found.X = X.read();
                expect_least_squares_law<T>(A.view(), B.view(), found);
            };
            expect_law("least squares", [&](T* norms, quoin_solution* solution) {
                return quoin_least_squares(this->ctx, &a, &b, nullptr, &x, norms, solution);
            });
            if (m < n) continue;
            quoin_factorization* f = this->template factor<T>(A.view(), order);
            expect_law("a factorization", [&](T* norms, quoin_solution* solution) {
                return quoin_solve(this->ctx, f, &b, nullptr, &x, norms, solution);
            });
            quoin_factorization_destroy(f);

            quoin_stream* stream = nullptr;
            EXPECT_EQ(quoin_stream_create(this->ctx, a.type, n, 3, &stream), QUOIN_OK);
            for (Index first = 0; first < m; first += 17) {
                const Index last = std::min(m, first + 17);
                Given<T> A1(A.view().row_block({first, last}), order), B1(B.view().row_block({first, last}), order);
                const quoin_matrix a1 = *A1, b1 = *B1;
                EXPECT_EQ(quoin_stream_append(this->ctx, stream, &a1, &b1), QUOIN_OK) << quoin_last_error();
            }
            const Matrix<T> R = this->written(
                n, n, order, [&](const quoin_matrix* to) { return quoin_stream_r(this->ctx, stream, to); });
            EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
            EXPECT_LE(gram_error<T>(A.view(), R.view()), law * double((m + 16) / 17));
            if (m == 300) {
                // each of the 18 blocks is one more reduction in a row
                std::vector<T> norms(3);
                EXPECT_EQ(quoin_stream_solve(this->ctx, stream, nullptr, &x, norms.data(), nullptr), QUOIN_OK);
                const auto errors = least_squares_errors<T>(A.view(), B.view(), X.read().view(), norms);
                EXPECT_LE(errors.gradient, least_squares_law * 18);
                EXPECT_LE(errors.residual_norm, least_squares_law * 18);
            }
            quoin_stream_destroy(stream);
        }
    }
}

/// y = 1 + 2x + e at x = −2, …, 2, e = (1, −1, 0, −1, 1)/4 orthogonal to 1 and x, and twice that: closed forms.
TYPED_TEST(CLaw, HoldsForARegression) {
    using T = TypeParam;
    const Index m = 5;
    Matrix<T> A(m, 1), B(m, 2);
    for (Index i = 0; i < m; ++i) {
        A(i, 0) = static_cast<T>(i - 2);
        const double e = i == 2 ? 0 : i % 4 == 0 ? 0.25 : -0.25;
        for (Index j = 0; j < 2; ++j)
            B(i, j) = static_cast<T>((1.0 + static_cast<double>(j)) * (1 + 2.0 * static_cast<double>(i - 2) + e));
    }
    const double near = 4 * least_squares_law * unit_roundoff<T>;  // n = 2, κ = √2
    for (const int order : {QUOIN_COLUMN_MAJOR, QUOIN_ROW_MAJOR})
        for (const double w : {1.0, 4.0}) {
            Given<T> a(A.view(), order), b(B.view(), order);
            const quoin_matrix of_a = *a, of_b = *b;
            const std::vector<double> weights(m, w);
            double x[4], errors[4], t[4], p[4], bounds[4], norms[2], s[2], r2[2], adjusted[2], f[2], f_p[2];
            quoin_fit fit = {sizeof fit, 0, 0, 0, 0, x, errors, t, p, bounds, norms, s, r2, adjusted, f, f_p};
            ASSERT_EQ(quoin_regression(this->ctx, &of_a, &of_b, 1, 0, w == 1 ? nullptr : weights.data(), &fit),
                      QUOIN_OK)
                << quoin_last_error();
            EXPECT_EQ(fit.observations, 5);
            EXPECT_EQ(fit.rank, 2);
            EXPECT_EQ(fit.degrees_of_freedom, 3);
            EXPECT_GE(fit.condition, 1);
            for (Index j = 0; j < 2; ++j) {
                const double c = 1.0 + static_cast<double>(j), sigma = c * std::sqrt(w / 12), t1 = 2 * std::sqrt(120.0);
                EXPECT_NEAR(x[2 * j], c, c * near);
                EXPECT_NEAR(x[2 * j + 1], 2 * c, c * near);
                EXPECT_NEAR(norms[j], c * std::sqrt(w) / 2, c * near * std::sqrt(w) * 10);  // of b, up to 5
                EXPECT_NEAR(s[j] / sigma, 1, 20 * near);
                EXPECT_NEAR(errors[2 * j + 1] * std::sqrt(10 * w) / sigma, 1, 20 * near);
                EXPECT_NEAR(t[2 * j + 1] / t1, 1, 20 * near);
                EXPECT_NEAR(f[j] / (t1 * t1), 1, 40 * near);
                EXPECT_NEAR(r2[j], 160.0 / 161, near);
                EXPECT_NEAR(adjusted[j], 1 - 4.0 / 3 / 161, near);
                // Student's t of 3 degrees of freedom
                const double z = t1 / std::sqrt(3.0),
                             tail = 1 - 2 / std::numbers::pi * (z / (1 + z * z) + std::atan(z));
                EXPECT_NEAR(p[2 * j + 1] / tail, 1, 1e-6 + 80 * near);  // the tail itself cancels
                EXPECT_NEAR(f_p[j] / tail, 1, 1e-6 + 80 * near);
                EXPECT_GE(bounds[2 * j + 1], 0);
                EXPECT_LE(std::abs(x[2 * j + 1] - 2 * c), bounds[2 * j + 1]);
            }
        }
    Given<T> a(A.view(), QUOIN_COLUMN_MAJOR), b(B.view(), QUOIN_COLUMN_MAJOR);
    const quoin_matrix of_a = *a, of_b = *b;
    double x[2];
    quoin_fit fit = {};
    EXPECT_EQ(quoin_regression(this->ctx, &of_a, &of_b, 0, 0, nullptr, &fit), QUOIN_INVALID_ARGUMENT);
    fit.size = sizeof fit;
    fit.coefficients = x;
    ASSERT_EQ(quoin_regression(this->ctx, &of_a, &of_b, 0, 10, nullptr, &fit), QUOIN_OK) << quoin_last_error();
    EXPECT_NEAR(x[0], 1, near);  // xᵀy/(xᵀx + λ) = 20/20
    EXPECT_EQ(quoin_regression(this->ctx, &of_a, &of_b, 0, -1, nullptr, &fit), QUOIN_INVALID_ARGUMENT);
}

TYPED_TEST(CLaw, HoldsForSingularValues) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{200, 9}, {9, 60}, {0, 4}}) {
        for (const int order : orders) {
            SCOPED_TRACE(testing::Message() << m << " x " << n << ", order " << order);
            const Index k = std::min(m, n);
            const Matrix<T> A = random_normal<T>(m, n);
            Given<T> input(A.view(), order), U(m, k, order), Vt(k, n, order);
            const quoin_matrix a = *input, u = *U, vt = *Vt;
            SVD<T> found;
            found.s.resize(k);
            std::int64_t count = -1;
            EXPECT_EQ(quoin_svd(this->ctx, &a, nullptr, found.s.data(), &u, &vt, &count), QUOIN_OK);
            EXPECT_EQ(count, k);
            found.U = U.read();
            found.Vt = Vt.read();
            expect_svd_law<T>(A.view(), found);
            std::vector<T> alone(k);
            EXPECT_EQ(quoin_svd(this->ctx, &a, nullptr, alone.data(), nullptr, nullptr, nullptr), QUOIN_OK);
            EXPECT_LE(singular_value_error<T>(reference_singular_values<T>(A.view()), alone), svd_law);
        }
    }
}

/// The k largest values of a matrix of rank k, in memory for k of them.
TYPED_TEST(CLaw, HoldsForTruncatedSingularValues) {
    using T = TypeParam;
    std::vector<double> values(30);
    values[0] = 4, values[1] = 3, values[2] = 2;
    const Matrix<T> A = with_singular_values<T>(120, 30, values);
    Given<T> input(A.view(), QUOIN_ROW_MAJOR), U(120, 3, QUOIN_ROW_MAJOR), Vt(3, 30, QUOIN_ROW_MAJOR);
    const quoin_matrix a = *input, u = *U, vt = *Vt;
    this->options.pivots = QUOIN_PIVOTS_AUTO;
    this->options.max_rank = 3;
    std::vector<T> s(30);
    std::int64_t count = 0;
    ASSERT_EQ(quoin_svd(this->ctx, &a, &this->options, s.data(), &u, &vt, &count), QUOIN_OK) << quoin_last_error();
    ASSERT_EQ(count, 3);
    s.resize(3);
    // A itself is known up to a rounding of each entry
    EXPECT_LE(singular_value_error<T>({4, 3, 2}, s), 2 * svd_law);
    EXPECT_LE(orthogonality_error<T>(U.read().view(), 3), svd_law);
    EXPECT_LE(orthogonality_error<T>(transposed<T>(Vt.read().view()).view(), 3), svd_law);
}

TYPED_TEST(CLaw, HoldsForBatches) {
    using T = TypeParam;
    const Index m = 16, n = 5, count = 37;
    for (const int order : orders) {
        for (const Index gap : {0, 3}) {
            SCOPED_TRACE(testing::Message() << "order " << order << ", gap " << gap);
            const int type = std::is_same_v<T, float> ? QUOIN_TYPE_F32 : QUOIN_TYPE_F64;
            std::vector<std::vector<T>> memory;
            const auto batch = [&](Index rows, Index cols) {
                memory.emplace_back((rows * cols + gap) * count, std::numeric_limits<T>::quiet_NaN());
                const Index ld = order == QUOIN_ROW_MAJOR ? cols : rows;
                return quoin_matrix{memory.back().data(), rows, cols, ld, type, order, rows * cols + gap};
            };
            const auto entry = [&](const quoin_matrix& M, Index b, Index i, Index j) -> T& {
                T* const data = static_cast<T*>(M.data) + b * M.stride;
                return order == QUOIN_ROW_MAJOR ? data[i * M.ld + j] : data[i + j * M.ld];
            };
            const auto member = [&](const quoin_matrix& M, Index b) {
                Matrix<T> one(M.rows, M.cols);
                for (Index j = 0; j < M.cols; ++j)
                    for (Index i = 0; i < M.rows; ++i) one(i, j) = entry(M, b, i, j);
                return one;
            };
            const quoin_matrix A = batch(m, n), B = batch(m, 2), Q = batch(m, n), R = batch(n, n), X = batch(n, 2);
            for (const quoin_matrix& M : {A, B}) {
                for (Index b = 0; b < count; ++b) {
                    const Matrix<T> one = random_normal<T>(M.rows, M.cols, 2 * b + M.cols % 2);
                    for (Index j = 0; j < M.cols; ++j)
                        for (Index i = 0; i < M.rows; ++i) entry(M, b, i, j) = one(i, j);
                }
            }
            EXPECT_EQ(quoin_qr_batch(this->ctx, count, &A, nullptr, &Q, &R), QUOIN_OK) << quoin_last_error();
            EXPECT_EQ(quoin_least_squares_batch(this->ctx, count, &A, &B, nullptr, &X), QUOIN_OK) << quoin_last_error();
            for (Index b = 0; b < count; ++b) {
                const Matrix<T> Ab = member(A, b), Bb = member(B, b), Xb = member(X, b);
                this->expect_thin_law(Ab.view(), member(Q, b), member(R, b));
                const auto errors = least_squares_errors<T>(Ab.view(), Bb.view(), Xb.view(), std::vector<T>(2));
                EXPECT_LE(errors.gradient, least_squares_law);
            }
            quoin_matrix forgotten = R;
            forgotten.stride = 0;
            EXPECT_EQ(quoin_qr_batch(this->ctx, count, &A, nullptr, nullptr, &forgotten), QUOIN_INVALID_ARGUMENT);
            EXPECT_STREQ(quoin_last_error(), "R has stride 0, and 37 results to hold");
            EXPECT_EQ(quoin_qr_batch(this->ctx, 0, &A, nullptr, &Q, &R), QUOIN_OK) << quoin_last_error();
            entry(A, 20, 3, 1) = std::numeric_limits<T>::infinity();
            EXPECT_EQ(quoin_qr_batch(this->ctx, count, &A, nullptr, &Q, &R), QUOIN_NON_FINITE_ENTRY);
            EXPECT_STREQ(quoin_last_error(),
                         "matrix 20 of the batch holds NaN or Inf, first at row 3, column 1 (zero-based)");
        }
    }
}

/// Every status with its sentence. Handles that a call could not make are null, and destroying null does nothing.
TEST_F(CInterface, AnswersMistakesWithASentence) {
    const auto expect = [](quoin_status status, quoin_status expected, const std::string& sentence) {
        EXPECT_EQ(status, expected);
        EXPECT_NE(std::string(quoin_last_error()).find(sentence), std::string::npos)
            << quoin_last_error() << " is not: " << sentence;
    };
    double data[12] = {1, 1, 1, 2, 2, 2, 3, 3, 4, 1, 5, 9}, out[12];
    const quoin_matrix good = {data, 4, 2, 4, QUOIN_TYPE_F64, QUOIN_COLUMN_MAJOR, 0};
    quoin_factorization* f = nullptr;
    const auto factor_with = [&](const auto& change) {
        quoin_matrix A = good;
        quoin_options o = options;
        change(A, o);
        f = reinterpret_cast<quoin_factorization*>(&data);
        const quoin_status status = quoin_factor(ctx, &A, &o, &f);
        EXPECT_TRUE(status == QUOIN_OK || !f);
        return status;
    };
    using A_ = quoin_matrix&;
    using O_ = quoin_options&;
    const auto refused = QUOIN_INVALID_ARGUMENT;
    expect(factor_with([](A_ A, O_) { A.type = 2; }), refused, "the type must be 0 (f32) or 1 (f64), and is 2");
    expect(factor_with([](A_ A, O_) { A.order = 5; }), refused, "A has order 5, which is neither");
    expect(factor_with([](A_ A, O_) { A.rows = -1; }), refused, "A cannot have -1 rows and 2 columns");
    expect(factor_with([](A_ A, O_) { A.ld = 3; }), refused, "A has ld 3, which must be at least 4");
    expect(factor_with([](A_ A, O_) { A.order = QUOIN_ROW_MAJOR, A.ld = 1; }), refused, "must be at least 2");
    expect(factor_with([](A_ A, O_) { A.data = nullptr; }), refused, "A has no data");
    expect(factor_with([](A_, O_ o) { o.method = 8; }), refused, "options.method must be from 0 to 7, and is 8");
    expect(factor_with([](A_, O_ o) { o.q = -1; }), refused, "options.q must be from 0 to 3, and is -1");
    expect(factor_with([](A_, O_ o) { o.pivots = 5; }), refused, "options.pivots must be from 0 to 4");
    expect(factor_with([](A_, O_ o) { o.max_rank = 1; }), refused, "belong to column pivoting");
    expect(factor_with([](A_, O_ o) { o.relative_frobenius = 1; }), refused, "belong to column pivoting");
    expect(factor_with([](A_, O_ o) { o.panel_width = 1, o.method = QUOIN_METHOD_TSQR; }), refused, "panel_width");
    expect(factor_with([](A_, O_ o) { o.size = 0; }), refused, "options.size is 0, and must be from 8 to ");
    expect(factor_with([](A_, O_ o) { ++o.size; }), refused, "for this version of the library");
    expect(quoin_factor(ctx, &good, nullptr, nullptr), refused, "factorization is null");
    expect(quoin_factor(ctx, nullptr, nullptr, &f), refused, "A is null");
    expect(quoin_factor(nullptr, &good, nullptr, &f), refused, "the context is null");
    expect(quoin_context_create(QUOIN_HOST, -1, nullptr, nullptr), refused, "ctx is null");
    quoin_context* none = ctx;
    expect(quoin_context_create(QUOIN_HOST, -1, nullptr, &none), refused, "threads");
    EXPECT_EQ(none, nullptr);
    expect(quoin_context_create(-2, 0, nullptr, &none), refused, "device must be -1 (the host) or the number of a GPU");
    const bool has_cuda =
#ifdef QUOIN_HAVE_CUDA
        true;
#else
        false;
#endif
    expect(quoin_context_create(9999, 0, nullptr, &none), QUOIN_DEVICE_FAILURE,
           has_cuda ? "" : "device 9999 is a GPU, and Quoin was built without CUDA");

    // NaN by its place, in either order
    data[6] = std::numeric_limits<double>::quiet_NaN();
    expect(factor_with([](A_, O_) {}), QUOIN_NON_FINITE_ENTRY, "first at row 2, column 1 (zero-based)");
    expect(factor_with([](A_ A, O_) { A.order = QUOIN_ROW_MAJOR, A.ld = 2; }), QUOIN_NON_FINITE_ENTRY,
           "first at row 3, column 0 (zero-based)");
    ASSERT_EQ(factor_with([](A_, O_ o) { o.check_finite = 0; }), QUOIN_OK);
    quoin_factorization_destroy(f);
    data[6] = 3;

    expect(factor_with([](A_ A, O_) { A.rows = A.ld = Index{1} << 47, A.cols = 1; }), QUOIN_OUT_OF_MEMORY, "");
    quoin_matrix twice = good;
    data[4] = data[0], data[5] = data[1], data[6] = data[2], data[7] = data[3];
    expect(factor_with([](A_, O_ o) { o.method = QUOIN_METHOD_CHOLESKY_QR2; }), QUOIN_NUMERICAL_BREAKDOWN,
           "cholesky-qr2: the matrix is too ill-conditioned");
    quoin_matrix B = {data + 8, 4, 1, 4, QUOIN_TYPE_F64, QUOIN_COLUMN_MAJOR, 0};
    const quoin_matrix X = {out, 2, 1, 2, QUOIN_TYPE_F64, QUOIN_COLUMN_MAJOR, 0};
    options.refuse_deficient = 1;
    expect(quoin_least_squares(ctx, &twice, &B, &options, &X, nullptr, nullptr), QUOIN_RANK_DEFICIENT, "column");
    quoin_solution solution = sized<quoin_solution>();
    EXPECT_EQ(quoin_least_squares(ctx, &twice, &B, nullptr, &X, nullptr, &solution), QUOIN_OK);
    EXPECT_EQ(solution.rank, 1);

    ASSERT_EQ(quoin_factor(ctx, &good, nullptr, &f), QUOIN_OK);
    expect(quoin_r(ctx, f, &good), refused, "R is 2 x 2, and its memory 4 x 2");
    expect(quoin_apply_q(ctx, f, 2, 0, &good), refused, "side must be from 0 to 1, and is 2");
    expect(quoin_apply_q(ctx, f, 0, 3, &good), refused, "op must be from 0 to 1, and is 3");
    expect(quoin_apply_q(ctx, f, QUOIN_RIGHT, 0, &good), refused, "C is 4 x 2, and Q is 4 x 4");
    B.type = QUOIN_TYPE_F32;
    expect(quoin_solve(ctx, f, &B, nullptr, &X, nullptr, nullptr), refused, "B has type 0, and the call is for f64");
    expect(quoin_svd(ctx, &good, nullptr, out, &X, nullptr, nullptr), refused, "U and Vt must both be given");
    expect(quoin_svd(ctx, &good, nullptr, nullptr, nullptr, nullptr, nullptr), refused, "s is null");
    expect(quoin_to_lapack(ctx, f, &good, &good), refused, "tau is 2 x 1, and its memory 4 x 2");
    expect(quoin_to_lapack(ctx, nullptr, &good, &good), refused, "factorization is null");
    expect(quoin_from_lapack(ctx, &good, &good, &f), refused, "tau");
    EXPECT_EQ(f, nullptr);
    quoin_stream* stream = nullptr;
    expect(quoin_stream_create(ctx, QUOIN_TYPE_F64, -1, 0, &stream), refused, "must not be negative");
    quoin_stream_destroy(stream);
    quoin_factorization_destroy(nullptr);
    quoin_plan_destroy(nullptr);
    quoin_context_destroy(nullptr);
}

/// A program that was compiled with an earlier header has shorter structs.
TEST_F(CInterface, ServesEarlierVersionsOfItsStructs) {
    quoin_options earlier;
    std::memset(&earlier, 0x7f, sizeof earlier);
    const std::size_t known = offsetof(quoin_options, panel_width);
    EXPECT_EQ(quoin_options_init(&earlier, known), QUOIN_OK);
    EXPECT_EQ(earlier.size, known);
    EXPECT_EQ(earlier.check_finite, 1);
    EXPECT_EQ(earlier.rcond, [] {
        double bytes;
        std::memset(&bytes, 0x7f, sizeof bytes);
        return bytes;
    }());
    const Matrix<double> A = random_normal<double>(30, 4);
    options = earlier;
    quoin_factorization* f = factor<double>(A.view());
    quoin_report report;
    std::memset(&report, 0x7f, sizeof report);
    report.size = offsetof(quoin_report, method);
    const quoin_report before = report;
    EXPECT_EQ(quoin_factorization_report(f, &report), QUOIN_OK);
    EXPECT_EQ(report.k, 4);
    EXPECT_EQ(report.size, before.size);
    EXPECT_EQ(report.method, before.method);
    quoin_factorization_destroy(f);
}

TEST_F(CInterface, GivesTheSameBitsForAnyThreadsAndToAnyThread) {
    const Index m = 3000, n = 24;
    const Matrix<double> A = random_normal<double>(m, n), C = random_normal<double>(m, 3, 2);
    quoin_factorization* f = factor<double>(A.view());
    const auto product = [&](int threads) {
        quoin_context* mine = nullptr;
        EXPECT_EQ(quoin_context_create(QUOIN_HOST, threads, nullptr, &mine), QUOIN_OK);
        Given<double> QtC(C.view(), QUOIN_COLUMN_MAJOR);
        const quoin_matrix given = *QtC;
        EXPECT_EQ(quoin_apply_q(mine, f, QUOIN_LEFT, QUOIN_TRANSPOSE, &given), QUOIN_OK);
        EXPECT_EQ(quoin_apply_q(mine, f, 7, QUOIN_TRANSPOSE, &given), QUOIN_INVALID_ARGUMENT);
        EXPECT_STREQ(quoin_last_error(), "side must be from 0 to 1, and is 7");
        quoin_context_destroy(mine);
        return QtC.read();
    };
    EXPECT_EQ(quoin_wait(ctx), QUOIN_OK);
    EXPECT_EQ(quoin_wait(nullptr), QUOIN_INVALID_ARGUMENT);
    std::vector<Matrix<double>> products(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { products[t] = product(1 + t % 2); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_STREQ(quoin_last_error(), "the context is null") << "a sentence of this thread";
    for (const Matrix<double>& one : products) EXPECT_TRUE(same_bits<double>(one.view(), products[0].view()));
    quoin_factorization_destroy(f);
}

TEST_F(CInterface, StopsUntilItMayGoOn) {
    Given<double> A(random_normal<double>(3000, 60).view(), QUOIN_COLUMN_MAJOR);
    const quoin_matrix given = *A;
    quoin_factorization* f = nullptr;
    quoin_request_stop(ctx);
    EXPECT_EQ(quoin_factor(ctx, &given, nullptr, &f), QUOIN_INTERRUPTED);
    EXPECT_STREQ(quoin_last_error(), "interrupted");
    quoin_clear_stop(ctx);
    EXPECT_EQ(quoin_factor(ctx, &given, nullptr, &f), QUOIN_OK);
    quoin_factorization_destroy(f);
}

TEST_F(CInterface, DescribesAPlan) {
    options.method = QUOIN_METHOD_TSQR;
    options.leaf_rows = 500;
    quoin_plan* plan = nullptr;
    ASSERT_EQ(quoin_plan_create(ctx, QUOIN_TYPE_F32, 100000, 20, &options, &plan), QUOIN_OK);
    const std::string json = quoin_plan_json(plan);
    EXPECT_EQ(
        json.find("{\"rows\": 100000, \"cols\": 20, \"dtype\": \"f32\", \"method\": \"tsqr\", \"fallback\": null"), 0);
    EXPECT_NE(json.find("\"keep_s\": false"), std::string::npos);
    EXPECT_NE(json.find("\"leaf_rows\": 500"), std::string::npos);
    EXPECT_EQ(json.back(), '}');
    EXPECT_NE(std::string(quoin_plan_text(plan)).find("100000"), std::string::npos);
    quoin_plan_destroy(plan);
    EXPECT_EQ(quoin_plan_create(ctx, QUOIN_TYPE_F32, -1, 20, nullptr, &plan), QUOIN_INVALID_ARGUMENT);
    EXPECT_EQ(plan, nullptr);
    EXPECT_EQ(std::string(quoin_version()).find(QUOIN_TEST_VERSION), 0);
}

}  // namespace
}  // namespace quoin::test
