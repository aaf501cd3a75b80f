// ?geqrf, ?geqr2, ?orgqr, ?ormqr, ?geqrt, ?geqrt3 and ?gemqrt: the six residuals, workspace, argument errors, and
// exchange with the system's LAPACK.

#include <cmath>
#include <limits>
#include <thread>
#include <tuple>
#include <vector>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

/// The first Q.cols columns of Q, of the reflectors in V's first k columns.
template <class T, class Int>
void form_q(const Lapack<T, Int>& lapack, MatrixView<const T> V, Index k, const std::vector<T>& tau, MatrixView<T> Q,
            Work size) {
    for (Index j = 0; j < k; ++j) std::copy_n(V.at(0, j), V.rows, Q.at(0, j));
    lapack.orgqr(Q, static_cast<Int>(k), tau, size);
}

/// The six quantities of A = QR as `lapack` computes it, in padded memory.
template <class T, class Int>
void expect_six_laws(const Lapack<T, Int>& lapack, MatrixView<const T> A, Work size, bool unblocked = false) {
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    SCOPED_TRACE(testing::Message() << m << " x " << n << (size == Work::Minimal ? ", least work" : ", queried work"));
    Padded<T> V(A);
    const auto tau = lapack.geqrf(V.view(), size, unblocked);
    EXPECT_TRUE(V.padding_intact());
    Padded<T> Q(m, k);
    form_q<T>(lapack, V.view(), k, tau, Q.view(), size);
    EXPECT_TRUE(Q.padding_intact());
    if (k == 0) return;
    const Matrix<T> R = upper<T>(V.view(), k);
    EXPECT_LE(residual_error<T>(A, Q.view(), R.view()), law);
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
    // the m×m Q is compared with where it is not too large to be multiplied in higher precision
    const bool small = m <= 128;
    Padded<T> Q_square(small ? m : 0, small ? m : 0);
    if (small) {
        form_q<T>(lapack, V.view(), k, tau, Q_square.view(), size);
        EXPECT_LE(orthogonality_error<T>(Q_square.view(), k), law);
    }
    const auto reflectors = MatrixView<const T>(V.view()).col_block({0, k});
    for (const Side side : {Side::Left, Side::Right}) {
        for (const Op op : {Op::None, Op::Transpose}) {
            const Index p = 19;
            const bool left = side == Side::Left;
            const Matrix<T> C = generate<T>(Gallery::RandomNormal, left ? m : p, left ? p : m, 7);
            Padded<T> X(C.view());
            lapack.ormqr(side, op, reflectors, tau, X.view(), size);
            EXPECT_TRUE(X.padding_intact());
            if (small) {
                EXPECT_LE(product_error<T>(side, op, Q_square.view(), C.view(), X.view(), k), law);
            } else {
                // op(Q)ᵀ op(Q) C = C, in two products
                lapack.ormqr(side, op == Op::None ? Op::Transpose : Op::None, reflectors, tau, X.view(), size);
                EXPECT_LE(difference<T>(X.view(), C.view(), 2 * k, frobenius_norm<T>(C.view())), law);
            }
        }
    }
    if (m >= n) {
        // QᵀA = R
        Matrix<T> X = copy<T>(A), R_full = filled<T>(m, n, 0);
        for (Index j = 0; j < n; ++j) std::copy_n(R.view().at(0, j), j + 1, R_full.view().at(0, j));
        lapack.ormqr(Side::Left, Op::Transpose, reflectors, tau, X.view(), size);
        EXPECT_LE(difference<T>(X.view(), R_full.view(), 2 * k, frobenius_norm<T>(A)), law);
    }
}

std::vector<std::pair<Index, Index>> shapes() {
    std::vector<std::pair<Index, Index>> list;
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) list.emplace_back(m, n);
    }
    for (const auto& shape : {std::pair<Index, Index>{301, 37}, {301, 301}, {37, 301}, {513, 129}, {700, 65}}) {
        list.push_back(shape);
    }
    if (!quick()) list.insert(list.end(), {{2500, 33}, {1100, 260}, {190, 1000}});
    return list;
}

template <class Types>
class LapackHouseholder : public OverAllTypes<Types> {};
TYPED_TEST_SUITE(LapackHouseholder, AllTypes);

TYPED_TEST(LapackHouseholder, SixQuantitiesOverAllShapes) {
    using T = typename TestFixture::T;
    // each of the three where the matrix is small, one of them in turn where not
    int turn = 0;
    for (const auto& [m, n] : shapes()) {
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        const bool all = m * n <= 2500;
        ++turn;
        if (all || turn % 3 == 0) expect_six_laws<T>(this->quoin, A.view(), Work::Minimal);
        if (all || turn % 3 == 1) expect_six_laws<T>(this->quoin, A.view(), Work::Queried);
        if (all || turn % 3 == 2) expect_six_laws<T>(this->quoin, A.view(), Work::Minimal, true);
    }
}

TYPED_TEST(LapackHouseholder, SixQuantitiesOverTheGallery) {
    using T = typename TestFixture::T;
    // every class as one panel by reconstruction; blocked, square or wide in turn
    int turn = 0;
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const std::pair<Index, Index> other = turn % 3 == 0   ? std::pair<Index, Index>{700, 80}
                                              : turn % 3 == 1 ? std::pair<Index, Index>{90, 90}
                                                              : std::pair<Index, Index>{40, 70};
        ++turn;
        const std::pair<Index, Index> sizes[] = {{1600, 40}, other};
        for (const auto& [m, n] : quick() ? std::span(sizes).subspan(turn % 2, 1) : sizes) {
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            expect_six_laws<T>(this->quoin, A.view(), Work::Queried);
        }
    }
}

TYPED_TEST(LapackHouseholder, FewerReflectorsThanColumns) {
    using T = typename TestFixture::T;
    const Index m = 400;
    for (const Index k : {0, 1, 40, 120}) {
        Matrix<T> V = generate<T>(Gallery::RandomNormal, m, k);
        const auto tau = this->quoin.geqrf(V.view(), Work::Minimal);
        Matrix<T> Q_square = filled<T>(m, m, std::numeric_limits<T>::quiet_NaN());
        form_q<T>(this->quoin, V.view(), k, tau, Q_square.view(), Work::Minimal);
        const Index reflectors = std::max<Index>(1, k);
        EXPECT_LE(orthogonality_error<T>(Q_square.view(), reflectors), law) << k;
        for (const Index n : {k + 1, k + 77}) {
            Padded<T> Q(m, n);
            form_q<T>(this->quoin, V.view(), k, tau, Q.view(), Work::Minimal);
            const auto first = MatrixView<const T>(Q_square.view()).col_block({0, n});
            EXPECT_LE(difference<T>(Q.view(), first, reflectors, std::sqrt(double(n))), law) << k << ", " << n;
        }
    }
}

TYPED_TEST(LapackHouseholder, SixQuantitiesWithTKept) {
    using T = typename TestFixture::T;
    for (const auto& [m, n] : shapes()) {
        const Index k = std::min(m, n);
        if (k == 0 || m > 513) continue;
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        for (const Index nb : {0, 1, 5, 16, 40}) {
            if (nb > k || (nb == 0 && m < n) || (k > 64 && nb > 0 && nb < 40)) continue;
            SCOPED_TRACE(testing::Message() << m << " x " << n << ", nb " << nb);
            Padded<T> V(A.view()), Tf(nb == 0 ? k : nb, k), Q(m, k);
            this->quoin.geqrt(nb, V.view(), Tf.view());
            EXPECT_TRUE(V.padding_intact());
            EXPECT_TRUE(Tf.padding_intact());
            const auto reflectors = MatrixView<const T>(V.view()).col_block({0, k});
            const MatrixView<const T> factors = Tf.view();
            Matrix<T> I = identity<T>(m);
            for (Index j = 0; j < k; ++j) std::copy_n(I.view().at(0, j), m, Q.view().at(0, j));
            this->quoin.gemqrt(Side::Left, Op::None, reflectors, factors, Q.view());
            EXPECT_TRUE(Q.padding_intact());
            EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
            EXPECT_LE(residual_error<T>(A.view(), Q.view(), upper<T>(V.view(), k).view()), law);
            if (m > 64) continue;
            this->quoin.gemqrt(Side::Left, Op::None, reflectors, factors, I.view());
            for (const Side side : {Side::Left, Side::Right}) {
                for (const Op op : {Op::None, Op::Transpose}) {
                    const bool left = side == Side::Left;
                    const Matrix<T> C = generate<T>(Gallery::RandomNormal, left ? m : 19, left ? 19 : m, 7);
                    Padded<T> X(C.view());
                    this->quoin.gemqrt(side, op, reflectors, factors, X.view());
                    EXPECT_LE(product_error<T>(side, op, I.view(), C.view(), X.view(), k), law);
                    EXPECT_TRUE(X.padding_intact());
                }
            }
        }
    }
}

TYPED_TEST(LapackHouseholder, NanPropagates) {
    using T = typename TestFixture::T;
    for (const auto& [m, n] : {std::pair<Index, Index>{3000, 40}, {200, 200}, {4, 3}}) {
        Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        A(m / 2, 0) = std::numeric_limits<T>::quiet_NaN();
        this->quoin.geqrf(A.view(), Work::Queried);
        EXPECT_TRUE(std::isnan(A(0, 0)));
        EXPECT_TRUE(std::isnan(A(0, n - 1)));
    }
}

template <class T>
class LapackExchange : public Exchange<T> {};
TYPED_TEST_SUITE(LapackExchange, Precisions);

TYPED_TEST(LapackExchange, EitherAcceptsTheReflectorsOfTheOther) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{3000, 60}, {400, 300}, {130, 400}}) {
        const Index k = std::min(m, n);
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        for (const auto* factors : {&this->quoin, &this->system}) {
            Matrix<T> V = copy<T>(A.view());
            const auto tau = factors->geqrf(V.view(), Work::Queried);
            const auto reflectors = MatrixView<const T>(V.view()).col_block({0, k});
            Matrix<T> Q = copy<T>(reflectors), Q_system = copy<T>(reflectors);
            this->quoin.orgqr(Q.view(), k, tau, Work::Queried);
            this->system.orgqr(Q_system.view(), k, tau, Work::Queried);
            EXPECT_LE(difference<T>(Q.view(), Q_system.view(), k, std::sqrt(double(k))), law) << m << " x " << n;
            const Matrix<T> R = upper<T>(V.view(), k);
            EXPECT_LE(residual_error<T>(A.view(), Q_system.view(), R.view()), law);
            for (const Op op : {Op::None, Op::Transpose}) {
                const Matrix<T> C = generate<T>(Gallery::RandomNormal, m, 60, 3);
                Matrix<T> X = copy<T>(C.view()), X_system = copy<T>(C.view());
                this->quoin.ormqr(Side::Left, op, reflectors, tau, X.view(), Work::Queried);
                this->system.ormqr(Side::Left, op, reflectors, tau, X_system.view(), Work::Queried);
                EXPECT_LE(difference<T>(X.view(), X_system.view(), k, frobenius_norm<T>(C.view())), law);
            }
        }
    }
}

TYPED_TEST(LapackExchange, EitherAcceptsTheTriangularFactorsOfTheOther) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{3000, 60}, {400, 300}, {130, 400}}) {
        const Index k = std::min(m, n), nb = 32;
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        for (const auto* factors : {&this->quoin, &this->system}) {
            Matrix<T> V = copy<T>(A.view()), Tf = filled<T>(nb, k, 0);
            factors->geqrt(nb, V.view(), Tf.view());
            const auto reflectors = MatrixView<const T>(V.view()).col_block({0, k});
            for (const Op op : {Op::None, Op::Transpose}) {
                const Matrix<T> C = generate<T>(Gallery::RandomNormal, m, 60, 3);
                Matrix<T> X = copy<T>(C.view()), X_system = copy<T>(C.view());
                this->quoin.gemqrt(Side::Left, op, reflectors, Tf.view(), X.view());
                this->system.gemqrt(Side::Left, op, reflectors, Tf.view(), X_system.view());
                EXPECT_LE(difference<T>(X.view(), X_system.view(), k, frobenius_norm<T>(C.view())), law);
            }
        }
    }
}

TYPED_TEST(LapackExchange, SignsAreTheReferences) {
    using T = TypeParam;
    // R is unique up to the signs of its rows, and LAPACK's reflectors make its diagonal negative where a_jj was
    // positive
    for (const auto& [m, n] : {std::pair<Index, Index>{3000, 60}, {400, 300}}) {
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        Matrix<T> mine = copy<T>(A.view()), theirs = copy<T>(A.view());
        this->quoin.geqrf(mine.view(), Work::Queried);
        this->system.geqrf(theirs.view(), Work::Queried);
        for (Index j = 0; j < n; ++j) EXPECT_EQ(mine(j, j) < 0, theirs(j, j) < 0) << j;
    }
}

TYPED_TEST(LapackExchange, IllegalArgumentsAreReportedAsTheSystemDoes) {
    using T = TypeParam;
    using Int = std::int32_t;
    T A[16] = {}, C[16] = {}, tau[4] = {}, work[512];
    struct Geqrf {
        Int m, n, lda, lwork, argument;
    };
    for (const Geqrf& c :
         {Geqrf{-1, 0, 1, 1, 1}, {0, -1, 1, 1, 2}, {2, 1, 1, 1, 4}, {2, 2, 2, 1, 7}, {0, 0, 1, 0, 7}}) {
        this->expect_refusal("GEQRF", c.argument, [&](const auto& f, Int* info) {
            f.geqrf(&c.m, &c.n, A, &c.lda, tau, work, &c.lwork, info);
        });
        if (c.argument == 7) continue;
        this->expect_refusal("GEQR2", c.argument,
                             [&](const auto& f, Int* info) { f.geqr2(&c.m, &c.n, A, &c.lda, tau, work, info); });
    }
    struct Orgqr {
        Int m, n, k, lda, lwork, argument;
    };
    for (const Orgqr& c : {Orgqr{-1, 0, 0, 1, 1, 1},
                           {0, -1, 0, 1, 1, 2},
                           {1, 2, 0, 1, 2, 2},
                           {0, 0, -1, 1, 1, 3},
                           {2, 1, 2, 2, 1, 3},
                           {2, 2, 0, 1, 2, 5},
                           {2, 2, 0, 2, 1, 8}}) {
        this->expect_refusal("ORGQR", c.argument, [&](const auto& f, Int* info) {
            f.orgqr(&c.m, &c.n, &c.k, A, &c.lda, tau, work, &c.lwork, info);
        });
    }
    struct Ormqr {
        const char *side, *trans;
        Int m, n, k, lda, ldc, lwork, argument;
    };
    for (const Ormqr& c : {Ormqr{"/", "N", 0, 0, 0, 1, 1, 1, 1},
                           {"L", "/", 0, 0, 0, 1, 1, 1, 2},
                           {"L", "N", -1, 0, 0, 1, 1, 1, 3},
                           {"L", "N", 0, -1, 0, 1, 1, 1, 4},
                           {"L", "N", 0, 0, -1, 1, 1, 1, 5},
                           {"L", "N", 0, 1, 1, 1, 1, 1, 5},
                           {"R", "N", 1, 0, 1, 1, 1, 1, 5},
                           {"L", "N", 2, 1, 0, 1, 2, 1, 7},
                           {"R", "N", 1, 2, 0, 1, 1, 1, 7},
                           {"L", "N", 2, 1, 0, 2, 1, 1, 10},
                           {"L", "N", 1, 2, 0, 1, 1, 1, 12},
                           {"R", "N", 2, 1, 0, 1, 2, 1, 12}}) {
        this->expect_refusal("ORMQR", c.argument, [&](const auto& f, Int* info) {
            f.ormqr(c.side, c.trans, &c.m, &c.n, &c.k, A, &c.lda, tau, C, &c.ldc, work, &c.lwork, info, 1, 1);
        });
    }
}

TYPED_TEST(LapackExchange, IllegalArgumentsWithTKept) {
    using T = TypeParam;
    using Int = std::int32_t;
    T A[16] = {}, C[16] = {}, Tf[16] = {}, work[64];
    struct Geqrt {
        Int m, n, nb, lda, ldt, argument;
    };
    for (const Geqrt& c : {Geqrt{-1, 0, 1, 1, 1, 1},
                           {0, -1, 1, 1, 1, 2},
                           {0, 0, 0, 1, 1, 3},
                           {2, 1, 2, 2, 2, 3},
                           {2, 1, 1, 1, 1, 5},
                           {2, 2, 2, 2, 1, 7}}) {
        this->expect_refusal("GEQRT", c.argument, [&](const auto& f, Int* info) {
            f.geqrt(&c.m, &c.n, &c.nb, A, &c.lda, Tf, &c.ldt, work, info);
        });
    }
    for (const Geqrt& c : {Geqrt{-1, 0, 0, 1, 1, 1}, {0, -1, 0, 1, 1, 2}, {2, 2, 0, 1, 2, 4}, {2, 2, 0, 2, 1, 6}}) {
        this->expect_refusal("GEQRT3", c.argument,
                             [&](const auto& f, Int* info) { f.geqrt3(&c.m, &c.n, A, &c.lda, Tf, &c.ldt, info); });
    }
    struct Gemqrt {
        const char *side, *trans;
        Int m, n, k, nb, ldv, ldt, ldc, argument;
    };
    for (const Gemqrt& c : {Gemqrt{"/", "N", 0, 0, 0, 1, 1, 1, 1, 1},
                            {"L", "/", 0, 0, 0, 1, 1, 1, 1, 2},
                            {"L", "N", -1, 0, 0, 1, 1, 1, 1, 3},
                            {"L", "N", 0, -1, 0, 1, 1, 1, 1, 4},
                            {"L", "N", 0, 0, -1, 1, 1, 1, 1, 5},
                            {"R", "N", 1, 0, 1, 1, 1, 1, 1, 5},
                            {"L", "N", 0, 0, 0, 0, 1, 1, 1, 6},
                            {"R", "N", 1, 2, 1, 1, 1, 1, 1, 8},
                            {"L", "N", 2, 1, 0, 1, 1, 1, 1, 8},
                            {"R", "N", 1, 1, 1, 1, 1, 0, 1, 10},
                            {"L", "N", 1, 1, 1, 1, 1, 0, 1, 10},
                            {"L", "N", 1, 1, 1, 1, 1, 1, 0, 12}}) {
        this->expect_refusal("GEMQRT", c.argument, [&](const auto& f, Int* info) {
            f.gemqrt(c.side, c.trans, &c.m, &c.n, &c.k, &c.nb, A, &c.ldv, Tf, &c.ldt, C, &c.ldc, work, info, 1, 1);
        });
    }
}

TYPED_TEST(LapackExchange, WorkspaceQueriesWriteWorkAlone) {
    using T = TypeParam;
    // beyond 2^24, where not every size is a float
    const std::int32_t m = 1 << 20, n = 600001, k = 600001, query = -1, ld = m;
    T work = -1, untouched = 3;
    std::int32_t info = 99;
    this->quoin.f.geqrf(&m, &n, &untouched, &ld, &untouched, &work, &query, &info);
    EXPECT_EQ(info, 0);
    EXPECT_GE(static_cast<double>(work), 32.0 * n);
    this->quoin.f.orgqr(&m, &n, &k, &untouched, &ld, &untouched, &work, &query, &info);
    EXPECT_EQ(info, 0);
    EXPECT_GE(static_cast<double>(work), 32.0 * n);
    EXPECT_EQ(untouched, 3);
}

TYPED_TEST(LapackExchange, ThreadsAtOnceComputeTheSameBits) {
    using T = TypeParam;
    const Matrix<T> A = generate<T>(Gallery::RandomNormal, 1500, 70);
    const auto factor = [&] {
        Matrix<T> V = copy<T>(A.view());
        const auto tau = this->quoin.geqrf(V.view(), Work::Queried);
        this->quoin.orgqr(V.view(), 70, tau, Work::Queried);
        return V;
    };
    const Matrix<T> alone = factor();
    std::vector<Matrix<T>> together(6);
    std::vector<std::thread> threads;
    for (auto& result : together) threads.emplace_back([&] { result = factor(); });
    for (auto& thread : threads) thread.join();
    for (const auto& result : together) EXPECT_TRUE(same_bits<T>(result.view(), alone.view()));
}

}  // namespace
}  // namespace quoin::test
