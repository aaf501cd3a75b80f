// ?gelqf, ?gelq2, ?orglq and ?ormlq: A = L Q by its residuals, workspace, argument errors, and exchange with the
// system's LAPACK.

#include <cmath>
#include <limits>
#include <vector>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

/// The first Q.rows rows of Q, of the reflectors in V's first k rows.
template <class T, class Int>
void form_rows_of_q(const Lapack<T, Int>& lapack, MatrixView<const T> V, Index k, const std::vector<T>& tau,
                    MatrixView<T> Q, Work size) {
    for (Index j = 0; j < V.cols; ++j) std::copy_n(V.at(0, j), k, Q.at(0, j));
    lapack.orglq(Q, static_cast<Int>(k), tau, size);
}

/// The six quantities of A = LQ as `lapack` computes it, in padded memory.
template <class T, class Int>
void expect_laws_of_lq(const Lapack<T, Int>& lapack, MatrixView<const T> A, Work size, bool unblocked = false) {
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    SCOPED_TRACE(testing::Message() << m << " x " << n << (size == Work::Minimal ? ", least work" : ", queried work"));
    Padded<T> V(A), Q(k, n);
    const auto tau = lapack.gelqf(V.view(), size, unblocked);
    EXPECT_TRUE(V.padding_intact());
    form_rows_of_q<T>(lapack, V.view(), k, tau, Q.view(), size);
    EXPECT_TRUE(Q.padding_intact());
    if (k == 0) return;
    // Aᵀ = Qᵀ Lᵀ
    const Matrix<T> Qt = transposed<T>(Q.view()), Lt = upper<T>(transposed<T>(V.view()).view(), k);
    EXPECT_LE(residual_error<T>(transposed<T>(A).view(), Qt.view(), Lt.view()), law);
    EXPECT_LE(orthogonality_error<T>(Qt.view(), k), law);
    if (n > 128) return;
    Padded<T> square(n, n);
    form_rows_of_q<T>(lapack, V.view(), k, tau, square.view(), size);
    EXPECT_LE(orthogonality_error<T>(square.view(), k), law);
    for (const Side side : sides) {
        for (const Op op : ops) {
            const bool left = side == Side::Left;
            const Matrix<T> C = generate<T>(Gallery::RandomNormal, left ? n : 19, left ? 19 : n, 7);
            Padded<T> X(C.view());
            lapack.ormlq(side, op, MatrixView<const T>(V.view()).row_block({0, k}), tau, X.view(), size);
            EXPECT_TRUE(X.padding_intact());
            EXPECT_LE(product_error<T>(side, op, square.view(), C.view(), X.view(), k), law);
        }
    }
}

template <class Types>
class LapackLQ : public OverAllTypes<Types> {};
TYPED_TEST_SUITE(LapackLQ, AllTypes);

TYPED_TEST(LapackLQ, SixQuantitiesOverAllShapes) {
    using T = typename TestFixture::T;
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) {
            const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
            expect_laws_of_lq<T>(this->quoin, A.view(), Work::Minimal);
            expect_laws_of_lq<T>(this->quoin, A.view(), Work::Queried);
            expect_laws_of_lq<T>(this->quoin, A.view(), Work::Minimal, true);
        }
    }
    for (const auto& [m, n] : {std::pair<Index, Index>{37, 128}, {128, 128}, {301, 37}, {65, 700}, {40, 3000}}) {
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        expect_laws_of_lq<T>(this->quoin, A.view(), Work::Queried, n == 700);
    }
}

TYPED_TEST(LapackLQ, SixQuantitiesOverTheGallery) {
    using T = typename TestFixture::T;
    int turn = 0;
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const std::pair<Index, Index> sizes[] = {{40, 1600}, {80, 300}, {90, 90}, {70, 40}};
        const auto& [m, n] = sizes[turn++ % 4];
        expect_laws_of_lq<T>(this->quoin, transposed<T>(generate<T>(matrix_class, n, m).view()).view(), Work::Queried);
    }
}

TYPED_TEST(LapackLQ, FewerReflectorsThanRows) {
    using T = typename TestFixture::T;
    const Index n = 200;
    for (const Index k : {0, 1, 40}) {
        Matrix<T> V = generate<T>(Gallery::RandomNormal, k, n);
        const auto tau = this->quoin.gelqf(V.view(), Work::Minimal);
        Padded<T> Q(k + 77, n);
        form_rows_of_q<T>(this->quoin, V.view(), k, tau, Q.view(), Work::Minimal);
        EXPECT_TRUE(Q.padding_intact());
        EXPECT_LE(orthogonality_error<T>(transposed<T>(Q.view()).view(), std::max<Index>(1, k)), law) << k;
    }
}

TYPED_TEST(LapackLQ, NanPropagates) {
    using T = typename TestFixture::T;
    for (const auto& [m, n] : {std::pair<Index, Index>{40, 3000}, {200, 200}, {3, 4}}) {
        Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        A(0, n / 2) = std::numeric_limits<T>::quiet_NaN();
        this->quoin.gelqf(A.view(), Work::Queried);
        EXPECT_TRUE(std::isnan(A(0, 0)));
        EXPECT_TRUE(std::isnan(A(m - 1, 0)));
    }
}

template <class T>
class LQExchange : public Exchange<T> {};
TYPED_TEST_SUITE(LQExchange, Precisions);

TYPED_TEST(LQExchange, EitherAcceptsTheReflectorsOfTheOther) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{60, 3000}, {150, 400}, {200, 130}, {90, 90}}) {
        const Index k = std::min(m, n);
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        std::vector<T> taus[2];
        Matrix<T> factors[2];
        for (const bool ours : {false, true}) {
            const auto& lapack = ours ? this->quoin : this->system;
            Matrix<T>& V = factors[ours] = copy<T>(A.view());
            const auto tau = taus[ours] = lapack.gelqf(V.view(), Work::Queried);
            Matrix<T> Q(k, n), Q_system(k, n);
            form_rows_of_q<T>(this->quoin, V.view(), k, tau, Q.view(), Work::Queried);
            form_rows_of_q<T>(this->system, V.view(), k, tau, Q_system.view(), Work::Queried);
            EXPECT_LE(difference<T>(Q.view(), Q_system.view(), k, std::sqrt(double(k))), law) << m << " x " << n;
            for (const Side side : sides) {
                for (const Op op : ops) {
                    const bool left = side == Side::Left;
                    const Matrix<T> C = generate<T>(Gallery::RandomNormal, left ? n : 60, left ? 60 : n, 3);
                    Matrix<T> X = copy<T>(C.view()), X_system = copy<T>(C.view());
                    const auto reflectors = std::as_const(V).view().row_block({0, k});
                    this->quoin.ormlq(side, op, reflectors, tau, X.view(), Work::Queried);
                    this->system.ormlq(side, op, reflectors, tau, X_system.view(), Work::Queried);
                    EXPECT_LE(difference<T>(X.view(), X_system.view(), k, frobenius_norm<T>(C.view())), law);
                }
            }
        }
        for (Index j = 0; j < k; ++j) EXPECT_EQ(factors[0](j, j) < 0, factors[1](j, j) < 0) << "sign of column " << j;
    }
}

TYPED_TEST(LQExchange, NormsUpToTheLargestNumberAreFactored) {
    using T = TypeParam;
    const Index m = 4, n = 30;
    Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n), large(m, n);
    const auto norm = frobenius_norm<T>(A.view());
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            A(i, j) = static_cast<T>(A(i, j) / norm);
            large(i, j) = std::ldexp(A(i, j), std::numeric_limits<T>::max_exponent);
        }
    }
    this->quoin.gelqf(large.view(), Work::Minimal);
    this->system.gelqf(A.view(), Work::Minimal);
    for (Index j = 0; j < m; ++j) {
        for (Index i = j; i < m; ++i) large(i, j) = std::ldexp(large(i, j), -std::numeric_limits<T>::max_exponent);
    }
    EXPECT_LE(difference<T>(large.view(), A.view(), 2 * m, 1), law);
}

TYPED_TEST(LQExchange, IllegalArgumentsAreReportedAsTheSystemDoes) {
    using T = TypeParam;
    using Int = std::int32_t;
    T A[16] = {}, C[16] = {}, tau[4] = {}, work[512];
    struct Gelqf {
        Int m, n, lda, lwork, argument;
    };
    for (const Gelqf& c : {Gelqf{-1, 0, 1, 1, 1},
                           {0, -1, 1, 1, 2},
                           {2, 1, 1, 2, 4},
                           {2, 2, 2, 1, 7},
                           {2, 3, 2, 0, 7},
                           {0, 0, 1, 0, 7}}) {
        this->expect_refusal("GELQF", c.argument, [&](const auto& f, Int* info) {
            f.gelqf(&c.m, &c.n, A, &c.lda, tau, work, &c.lwork, info);
        });
        if (c.argument == 7) continue;
        this->expect_refusal("GELQ2", c.argument,
                             [&](const auto& f, Int* info) { f.gelq2(&c.m, &c.n, A, &c.lda, tau, work, info); });
    }
    struct Orglq {
        Int m, n, k, lda, lwork, argument;
    };
    for (const Orglq& c : {Orglq{-1, 0, 0, 1, 1, 1},
                           {0, -1, 0, 1, 1, 2},
                           {2, 1, 0, 2, 2, 2},
                           {0, 0, -1, 1, 1, 3},
                           {1, 2, 2, 1, 1, 3},
                           {2, 2, 0, 1, 2, 5},
                           {2, 2, 0, 2, 1, 8}}) {
        this->expect_refusal("ORGLQ", c.argument, [&](const auto& f, Int* info) {
            f.orglq(&c.m, &c.n, &c.k, A, &c.lda, tau, work, &c.lwork, info);
        });
    }
    struct Ormlq {
        const char *side, *trans;
        Int m, n, k, lda, ldc, lwork, argument;
    };
    for (const Ormlq& c : {Ormlq{"/", "N", 0, 0, 0, 1, 1, 1, 1},
                           {"L", "/", 0, 0, 0, 1, 1, 1, 2},
                           {"L", "N", -1, 0, 0, 1, 1, 1, 3},
                           {"L", "N", 0, -1, 0, 1, 1, 1, 4},
                           {"L", "N", 0, 0, -1, 1, 1, 1, 5},
                           {"L", "N", 0, 1, 1, 1, 1, 1, 5},
                           {"R", "N", 1, 0, 1, 1, 1, 1, 5},
                           {"L", "N", 2, 1, 2, 1, 2, 1, 7},
                           {"R", "N", 1, 2, 2, 1, 1, 1, 7},
                           {"L", "N", 2, 1, 0, 1, 1, 1, 10},
                           {"L", "N", 1, 2, 0, 1, 1, 1, 12},
                           {"R", "N", 2, 1, 0, 1, 2, 1, 12}}) {
        this->expect_refusal("ORMLQ", c.argument, [&](const auto& f, Int* info) {
            f.ormlq(c.side, c.trans, &c.m, &c.n, &c.k, A, &c.lda, tau, C, &c.ldc, work, &c.lwork, info, 1, 1);
        });
    }
}

}  // namespace
}  // namespace quoin::test
