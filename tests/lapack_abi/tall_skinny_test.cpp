// ?tpqrt, ?tpmqrt, ?latsqr, ?lamtsqr, ?orgtsqr, ?orgtsqr_row, ?orhr_col, ?geqr and ?gemqr: the six residuals, sizes of
// T and of the workspace, argument errors, and exchange with the system's LAPACK.

#include <array>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

/// ‖A − QR‖, ‖I − QᵀQ‖ for the first k columns of Q, and the four products `apply(side, op, C)` against Q, which is
/// square.
template <class T, class Apply>
void expect_laws_of(MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R, Index p, Apply apply,
                    double law = quoin::test::law) {
    const Index m = A.rows, k = R.rows;
    EXPECT_LE(orthogonality_error<T>(Q, k), law);
    EXPECT_LE(residual_error<T>(A, Q.col_block({0, k}), R), law);
    for (const Side side : sides) {
        for (const Op op : ops) {
            const bool left = side == Side::Left;
            const Matrix<T> C = generate<T>(Gallery::RandomNormal, left ? m : p, left ? p : m, 7);
            Padded<T> X(C.view());
            apply(side, op, X.view());
            EXPECT_TRUE(X.padding_intact());
            EXPECT_LE(product_error<T>(side, op, Q, C.view(), X.view(), k), law);
        }
    }
}

template <class T>
void fill_below(MatrixView<T> A, Index first_row, T value) {
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = std::max<Index>(0, first_row + j + 1); i < A.rows; ++i) A(i, j) = value;
    }
}

template <class Types>
class LapackTallSkinny : public OverAllTypes<Types> {
protected:
    using typename OverAllTypes<Types>::T;

    /// [R; B], R n×n and B m×n with l rows that end on a diagonal: what lies below the diagonals is NaN and must stay
    /// so.
    void expect_laws_of_stack(Gallery matrix_class, Index m, Index n, Index l, Index nb) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << ", l " << l << ", nb " << nb);
        const T nan = std::numeric_limits<T>::quiet_NaN();
        Matrix<T> A = generate<T>(matrix_class, n + m, n);
        const auto A_top = A.view().row_block({0, n}), A_rest = A.view().row_block({n, n + m});
        fill_below<T>(A_top, 0, 0);
        fill_below<T>(A_rest, m - l, 0);
        Padded<T> R{MatrixView<const T>(A_top)}, V{MatrixView<const T>(A_rest)}, Tf(nb, n);
        fill_below<T>(R.view(), 0, nan);
        if (l > 0) fill_below<T>(V.view(), m - l, nan);
        this->quoin.tpqrt(l, nb, R.view(), V.view(), Tf.view());
        EXPECT_TRUE(R.padding_intact() && V.padding_intact() && Tf.padding_intact());
        for (Index j = 0; j < n; ++j) {
            for (Index i = j + 1; i < n; ++i) EXPECT_TRUE(std::isnan(R.view()(i, j)));
            for (Index i = m - l + j + 1; i < m; ++i) EXPECT_TRUE(std::isnan(V.view()(i, j)));
        }
        if (n == 0) return;
        const auto apply = [&](Side side, Op op, MatrixView<T> C) {
            const bool left = side == Side::Left;
            const Range top{0, n}, rest{n, n + m};
            this->quoin.tpmqrt(side, op, l, nb, V.view(), Tf.view(), left ? C.row_block(top) : C.col_block(top),
                               left ? C.row_block(rest) : C.col_block(rest));
        };
        const Matrix<T> triangle = upper<T>(R.view(), n);
        if (m + n <= 301) {
            Matrix<T> Q = identity<T>(n + m);
            apply(Side::Left, Op::None, Q.view());
            expect_laws_of<T>(A.view(), Q.view(), triangle.view(), 19, apply);
            return;
        }
        Matrix<T> Q = filled<T>(n + m, n, 0), R_full = filled<T>(n + m, n, 0);
        for (Index j = 0; j < n; ++j) Q(j, j) = 1;
        apply(Side::Left, Op::None, Q.view());
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), law);
        EXPECT_LE(residual_error<T>(A.view(), Q.view(), triangle.view()), law);
        // QᵀA = [R; 0]
        for (Index j = 0; j < n; ++j) std::copy_n(triangle.view().at(0, j), n, R_full.view().at(0, j));
        apply(Side::Left, Op::Transpose, A.view());
        EXPECT_LE(difference<T>(A.view(), R_full.view(), 2 * n, frobenius_norm<T>(triangle.view())), law);
    }
};
TYPED_TEST_SUITE(LapackTallSkinny, AllTypes);

Index columns_of_t(Index m, Index n, Index mb) { return mb > n && mb < m ? n * ((m - n + mb - n - 1) / (mb - n)) : n; }

TYPED_TEST(LapackTallSkinny, SixQuantitiesOfStackedBlocks) {
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) {
            for (const Index l : {Index(0), std::min(m, n) / 2, std::min(m, n)}) {
                for (const Index nb : {1, 3, 20, 50}) {
                    if (nb <= std::max<Index>(1, n)) {
                        this->expect_laws_of_stack(Gallery::RandomNormal, m, n, l, nb);
                    }
                }
            }
        }
    }
    for (const auto& [m, n, l, nb] : std::vector<std::array<Index, 4>>{
             {200, 100, 0, 32}, {130, 130, 130, 16}, {140, 100, 60, 24}, {300, 257, 0, 32}, {2500, 65, 0, 32}}) {
        this->expect_laws_of_stack(Gallery::RandomNormal, m, n, l, nb);
    }
    // where C's products are shared out by rows
    if (!quick()) this->expect_laws_of_stack(Gallery::RandomNormal, 9000, 40, 0, 16);
}

TYPED_TEST(LapackTallSkinny, StackedBlocksOverTheGallery) {
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        this->expect_laws_of_stack(matrix_class, 120, 40, 0, 16);
        this->expect_laws_of_stack(matrix_class, 60, 60, 60, 32);
    }
}

TYPED_TEST(LapackTallSkinny, SixQuantitiesOfRowBlocks) {
    using T = typename TestFixture::T;
    std::vector<std::array<Index, 4>> cases{
        {301, 37, 75, 16}, {301, 37, 38, 5}, {260, 130, 200, 40}, {700, 65, 131, 16}};
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) {
            for (const Index mb : {n + 1, n + 3, 2 * n + 1, m, m + 5}) {
                for (const Index nb : {1, 5, 40}) {
                    if (m >= n && mb > n && nb <= std::max<Index>(1, n)) cases.push_back({m, n, mb, nb});
                }
            }
        }
    }
    // the second, where C's products are shared out by rows
    if (!quick()) cases.insert(cases.end(), {{2500, 33, 300, 16}, {20000, 16, 9000, 16}});
    for (const auto& shape : cases) {
        const Index m = shape[0], n = shape[1], mb = shape[2], nb = shape[3];
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        SCOPED_TRACE(testing::Message() << m << " x " << n << ", mb " << mb << ", nb " << nb);
        const Work size = nb == 5 ? Work::Queried : Work::Minimal;
        Padded<T> V(A.view()), Tf(nb, columns_of_t(m, n, mb));
        this->quoin.latsqr(mb, nb, V.view(), Tf.view(), size);
        EXPECT_TRUE(V.padding_intact() && Tf.padding_intact());
        Padded<T> Q{MatrixView<const T>(V.view())}, Q_row{MatrixView<const T>(V.view())};
        this->quoin.orgtsqr(false, mb, nb, Q.view(), Tf.view(), size);
        this->quoin.orgtsqr(true, mb, nb, Q_row.view(), Tf.view(), size);
        EXPECT_TRUE(Q.padding_intact() && Q_row.padding_intact());
        if (n == 0) continue;
        // a column goes through one reflector of each row block: stages in a row, as in checks.hpp
        const double law = quoin::test::law * std::sqrt(static_cast<double>(columns_of_t(m, n, mb) / n));
        EXPECT_LE(difference<T>(Q.view(), Q_row.view(), n, std::sqrt(double(n))), law);
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), law);
        const Matrix<T> R = upper<T>(V.view(), n);
        EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), law);
        const auto apply = [&](Side side, Op op, MatrixView<T> C) {
            this->quoin.lamtsqr(side, op, mb, nb, V.view(), Tf.view(), C, size);
        };
        if (m <= 64) {
            Matrix<T> Q_square = identity<T>(m);
            apply(Side::Left, Op::None, Q_square.view());
            expect_laws_of<T>(A.view(), Q_square.view(), R.view(), std::max<Index>(19, n), apply, law);
        } else {
            Matrix<T> X = copy<T>(Q.view()), I = filled<T>(m, n, 0);
            for (Index j = 0; j < n; ++j) I(j, j) = 1;
            apply(Side::Left, Op::Transpose, X.view());
            EXPECT_LE(difference<T>(X.view(), I.view(), 2 * n, std::sqrt(double(n))), law);
            Matrix<T> Qt = transposed<T>(Q.view()), It = transposed<T>(I.view());
            apply(Side::Right, Op::None, Qt.view());
            EXPECT_LE(difference<T>(Qt.view(), It.view(), 2 * n, std::sqrt(double(n))), law);
        }
    }
}

TYPED_TEST(LapackTallSkinny, ReconstructionGivesTheColumnsBack) {
    using T = typename TestFixture::T;
    for (const auto& [m, n] : std::vector<std::pair<Index, Index>>{
             {0, 0}, {3, 0}, {1, 1}, {5, 2}, {10, 10}, {50, 20}, {301, 37}, {140, 140}, {2500, 65}}) {
        Matrix<T> Q = generate<T>(Gallery::RandomNormal, m, n);
        const auto tau = this->quoin.geqrf(Q.view(), Work::Minimal);
        this->quoin.orgqr(Q.view(), n, tau, Work::Minimal);
        for (const Index nb : {1, 5, 32, 200}) {
            SCOPED_TRACE(testing::Message() << m << " x " << n << ", nb " << nb);
            const Index width = std::min(nb, n);
            Padded<T> V{MatrixView<const T>(Q.view())}, Tf(width, n), H(m, n);
            const auto signs = this->quoin.orhr_col(nb, V.view(), Tf.view());
            EXPECT_TRUE(V.padding_intact() && Tf.padding_intact());
            if (n == 0) continue;
            // H [I; 0] S = Q
            for (Index j = 0; j < n; ++j) {
                std::fill_n(H.view().at(0, j), m, T(0));
                EXPECT_EQ(std::abs(signs[j]), 1);
                H.view()(j, j) = signs[j];
            }
            this->quoin.gemqrt(Side::Left, Op::None, V.view(), Tf.view(), H.view());
            EXPECT_LE(difference<T>(H.view(), Q.view(), n, std::sqrt(double(n))), law);
        }
    }
}

TYPED_TEST(LapackTallSkinny, SixQuantitiesInTheFormOfTheLibrary) {
    using T = typename TestFixture::T;
    std::vector<std::pair<Index, Index>> shapes{{301, 37}, {260, 130}, {37, 301}, {700, 65}};
    if (!quick()) shapes.insert(shapes.end(), {{9000, 16}, {1100, 260}});
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) shapes.emplace_back(m, n);
    }
    for (const auto& [m, n] : shapes) {
        const Index k = std::min(m, n);
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        for (const Work size : {Work::Minimal, Work::Queried}) {
            SCOPED_TRACE(testing::Message() << m << " x " << n << (size == Work::Minimal ? ", least" : ", queried"));
            Padded<T> V(A.view());
            const auto Tf = this->quoin.geqr(V.view(), size);
            EXPECT_TRUE(V.padding_intact());
            if (k == 0) continue;
            const auto reflectors = MatrixView<const T>(V.view()).col_block({0, k});
            const auto apply = [&](Side side, Op op, MatrixView<T> C) {
                this->quoin.gemqr(side, op, reflectors, Tf, C, size);
            };
            Matrix<T> Q = m <= 301 ? identity<T>(m) : filled<T>(m, k, 0);
            for (Index j = 0; j < k; ++j) Q(j, j) = 1;
            apply(Side::Left, Op::None, Q.view());
            const Matrix<T> R = upper<T>(V.view(), k);
            if (m <= 301) {
                expect_laws_of<T>(A.view(), Q.view(), R.view(), 19, apply);
            } else {
                EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
                EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), law);
            }
        }
    }
}

/// T by blocks of nb columns: nb n numbers after a header of 5, which names m and nb.
TYPED_TEST(LapackTallSkinny, SizesOfTInTheFormOfTheLibrary) {
    using T = typename TestFixture::T;
    const Matrix<T> A = generate<T>(Gallery::RandomNormal, 700, 65);
    for (const Work size : {Work::Minimal, Work::Queried}) {
        Padded<T> V(A.view());
        const std::vector<T> Tf = this->quoin.geqr(V.view(), size);
        const double nb = static_cast<double>(Tf[2]);
        EXPECT_EQ(Tf[1], 700);
        EXPECT_EQ(static_cast<double>(Tf.size()), nb * 65 + 5);
        EXPECT_EQ(Tf[0], static_cast<T>(Tf.size()));
        EXPECT_EQ(nb == 1, size == Work::Minimal) << nb;
    }
}

template <class T>
class LapackTallSkinnyExchange : public Exchange<T> {};
TYPED_TEST_SUITE(LapackTallSkinnyExchange, Precisions);

TYPED_TEST(LapackTallSkinnyExchange, EitherReadsWhatTheOtherWrote) {
    using T = TypeParam;
    for (const auto& shape :
         std::vector<std::array<Index, 4>>{{3000, 60, 500, 32}, {700, 130, 300, 16}, {2000, 48, 9000, 48}}) {
        const Index m = shape[0], n = shape[1], mb = shape[2], nb = shape[3];
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n), C = generate<T>(Gallery::RandomNormal, m, 60, 3),
                        C_top = generate<T>(Gallery::RandomNormal, n, 60, 4);
        const double scale = frobenius_norm<T>(C.view());
        // product(lapack, C) and product_stacked(lapack, C_top, C) agree
        const auto expect_one_product = [&](const auto& product) {
            Matrix<T> X = copy<T>(C.view()), X_system = copy<T>(C.view());
            product(this->quoin, X.view());
            product(this->system, X_system.view());
            EXPECT_LE(difference<T>(X.view(), X_system.view(), n, scale), law) << m << " x " << n;
        };
        for (const auto* writer : {&this->quoin, &this->system}) {
            Matrix<T> V = copy<T>(A.view()), Tf = filled<T>(nb, columns_of_t(m, n, mb), 0);
            writer->latsqr(mb, nb, V.view(), Tf.view(), Work::Queried);
            Matrix<T> Q = copy<T>(V.view()), Q_system = copy<T>(V.view());
            this->quoin.orgtsqr(true, mb, nb, Q.view(), Tf.view(), Work::Queried);
            this->system.orgtsqr(true, mb, nb, Q_system.view(), Tf.view(), Work::Queried);
            EXPECT_LE(difference<T>(Q.view(), Q_system.view(), n, std::sqrt(double(n))), law);

            Matrix<T> B = copy<T>(A.view()), R = upper<T>(V.view(), n), T_stack = filled<T>(nb, n, 0);
            writer->tpqrt(0, nb, R.view(), B.view(), T_stack.view());

            Matrix<T> W = copy<T>(A.view());
            const std::vector<T> T_own = writer->geqr(W.view(), Work::Queried);
            Matrix<T> W_least = copy<T>(A.view());
            const std::vector<T> T_least = writer->geqr(W_least.view(), Work::Minimal);
            for (const Op op : ops) {
                expect_one_product([&](const auto& lapack, MatrixView<T> X) {
                    lapack.lamtsqr(Side::Left, op, mb, nb, V.view(), Tf.view(), X, Work::Queried);
                });
                expect_one_product([&](const auto& lapack, MatrixView<T> X) {
                    Matrix<T> X_top = copy<T>(C_top.view());
                    lapack.tpmqrt(Side::Left, op, 0, nb, B.view(), T_stack.view(), X_top.view(), X);
                });
                expect_one_product([&](const auto& lapack, MatrixView<T> X) {
                    lapack.gemqr(Side::Left, op, W.view(), T_own, X, Work::Queried);
                });
                expect_one_product([&](const auto& lapack, MatrixView<T> X) {
                    lapack.gemqr(Side::Left, op, W_least.view(), T_least, X, Work::Queried);
                });
            }
        }
    }
}

TYPED_TEST(LapackTallSkinnyExchange, ReconstructionIsTheReferences) {
    using T = TypeParam;
    for (const auto& [m, n, nb] : std::vector<std::array<Index, 3>>{{3000, 60, 32}, {200, 150, 32}}) {
        Matrix<T> Q = generate<T>(Gallery::RandomNormal, m, n);
        const auto tau = this->quoin.geqrf(Q.view(), Work::Queried);
        this->quoin.orgqr(Q.view(), n, tau, Work::Queried);
        Matrix<T> V = copy<T>(Q.view()), V_system = copy<T>(Q.view());
        Matrix<T> Tf = filled<T>(nb, n, 0), T_system = filled<T>(nb, n, 0);
        EXPECT_EQ(this->quoin.orhr_col(nb, V.view(), Tf.view()),
                  this->system.orhr_col(nb, V_system.view(), T_system.view()));
        EXPECT_LE(difference<T>(V.view(), V_system.view(), n, frobenius_norm<T>(V.view())), law);
        EXPECT_LE(difference<T>(Tf.view(), T_system.view(), n, frobenius_norm<T>(Tf.view())), law);
    }
}

TYPED_TEST(LapackTallSkinnyExchange, IllegalArguments) {
    using T = TypeParam;
    using Int = std::int32_t;
    T A[16] = {}, B[16] = {}, C[16] = {}, Tf[16] = {}, d[4], work[64];
    struct Tpqrt {
        Int m, n, l, nb, lda, ldb, ldt, argument;
    };
    for (const Tpqrt& c : {Tpqrt{-1, 1, 0, 1, 1, 1, 1, 1},
                           {1, -1, 0, 1, 1, 1, 1, 2},
                           {0, 1, -1, 1, 1, 1, 1, 3},
                           {0, 1, 1, 1, 1, 1, 1, 3},
                           {0, 1, 0, 0, 1, 1, 1, 4},
                           {0, 1, 0, 2, 1, 1, 1, 4},
                           {1, 2, 0, 2, 1, 1, 2, 6},
                           {2, 1, 0, 1, 1, 1, 1, 8},
                           {2, 2, 1, 2, 2, 2, 1, 10}}) {
        this->expect_refusal("TPQRT", c.argument, [&](const auto& f, Int* info) {
            f.tpqrt(&c.m, &c.n, &c.l, &c.nb, A, &c.lda, B, &c.ldb, Tf, &c.ldt, work, info);
        });
    }
    struct Tpmqrt {
        const char *side, *trans;
        Int m, n, k, l, nb, ldv, ldt, lda, ldb, argument;
    };
    for (const Tpmqrt& c : {Tpmqrt{"/", "N", 0, 0, 0, 0, 1, 1, 1, 1, 1, 1},
                            {"L", "/", 0, 0, 0, 0, 1, 1, 1, 1, 1, 2},
                            {"L", "N", -1, 0, 0, 0, 1, 1, 1, 1, 1, 3},
                            {"L", "N", 0, -1, 0, 0, 1, 1, 1, 1, 1, 4},
                            {"L", "N", 0, 0, -1, 0, 1, 1, 1, 1, 1, 5},
                            {"L", "N", 0, 0, 0, -1, 1, 1, 1, 1, 1, 6},
                            {"L", "N", 0, 0, 0, 0, 0, 1, 1, 1, 1, 7},
                            {"L", "N", 2, 2, 1, 0, 1, 1, 1, 1, 2, 9},
                            {"R", "N", 2, 2, 1, 0, 1, 1, 1, 2, 2, 9},
                            {"R", "N", 1, 1, 1, 0, 1, 1, 0, 1, 1, 11},
                            {"L", "N", 1, 1, 2, 0, 1, 1, 1, 1, 1, 13},
                            {"R", "N", 2, 1, 1, 0, 1, 1, 1, 1, 2, 13},
                            {"L", "N", 1, 1, 1, 0, 1, 1, 1, 1, 0, 15}}) {
        this->expect_refusal("TPMQRT", c.argument, [&](const auto& f, Int* info) {
            f.tpmqrt(c.side, c.trans, &c.m, &c.n, &c.k, &c.l, &c.nb, A, &c.ldv, Tf, &c.ldt, B, &c.lda, C, &c.ldb, work,
                     info, 1, 1);
        });
    }
    struct Latsqr {
        Int m, n, mb, nb, lda, ldt, lwork, argument;
    };
    for (const Latsqr& c : {Latsqr{-1, 0, 1, 1, 1, 1, 1, 1},
                            {1, 2, 1, 1, 1, 1, 1, 2},
                            {0, -1, 1, 1, 1, 1, 1, 2},
                            {2, 1, -1, 1, 2, 1, 1, 3},
                            {2, 1, 2, 0, 2, 1, 1, 4},
                            {2, 1, 2, 2, 2, 2, 2, 4},
                            {2, 1, 2, 1, 1, 1, 1, 6},
                            {2, 1, 2, 1, 2, 0, 1, 8},
                            {2, 1, 2, 1, 2, 1, 0, 10}}) {
        this->expect_refusal("LATSQR", c.argument, [&](const auto& f, Int* info) {
            f.latsqr(&c.m, &c.n, &c.mb, &c.nb, A, &c.lda, Tf, &c.ldt, work, &c.lwork, info);
        });
    }
    const auto refused_by_orgtsqr = [&](const Latsqr& c) {
        this->expect_refusal("ORGTSQR", c.argument, [&](const auto& f, Int* info) {
            f.orgtsqr(&c.m, &c.n, &c.mb, &c.nb, A, &c.lda, Tf, &c.ldt, work, &c.lwork, info);
        });
    };
    for (const Latsqr& c : {Latsqr{-1, 0, 1, 1, 1, 1, 2, 1},
                            {0, -1, 1, 1, 1, 1, 2, 2},
                            {1, 2, 3, 1, 1, 1, 9, 2},
                            {2, 2, 2, 1, 2, 1, 9, 3},
                            {2, 1, 2, 0, 2, 1, 9, 4},
                            {2, 1, 2, 1, 1, 1, 9, 6},
                            {2, 1, 2, 1, 2, 0, 9, 8},
                            {2, 1, 2, 1, 2, 1, 0, 10}}) {
        refused_by_orgtsqr(c);
        this->expect_refusal("ORGTSQR_ROW", c.argument, [&](const auto& f, Int* info) {
            f.orgtsqr_row(&c.m, &c.n, &c.mb, &c.nb, A, &c.lda, Tf, &c.ldt, work, &c.lwork, info);
        });
    }
    refused_by_orgtsqr({2, 1, 2, 1, 2, 1, 2, 10});  // one short
    struct Lamtsqr {
        const char *side, *trans;
        Int m, n, k, mb, nb, lda, ldt, ldc, lwork, argument;
    };
    for (const Lamtsqr& c : {Lamtsqr{"/", "N", 0, 0, 0, 1, 1, 1, 1, 1, 1, 1},
                             {"L", "/", 0, 0, 0, 1, 1, 1, 1, 1, 1, 2},
                             {"L", "N", -1, 0, 0, 1, 1, 1, 1, 1, 1, 3},
                             {"L", "N", 1, 1, 2, 1, 1, 1, 1, 1, 1, 3},
                             {"L", "N", 0, -1, 0, 1, 1, 1, 1, 1, 1, 4},
                             {"L", "N", 0, 0, -1, 1, 1, 1, 1, 1, 1, 5},
                             {"L", "N", 2, 2, 1, 1, 2, 2, 2, 2, 9, 7},
                             {"L", "N", 2, 2, 1, 1, 0, 2, 1, 2, 9, 7},
                             {"L", "N", 2, 2, 1, 1, 1, 1, 1, 2, 9, 9},
                             {"R", "N", 2, 2, 1, 1, 1, 1, 1, 2, 9, 9},
                             {"L", "N", 2, 2, 1, 1, 1, 2, 0, 2, 9, 11},
                             {"L", "N", 2, 2, 1, 1, 1, 2, 1, 1, 9, 13},
                             {"L", "N", 2, 2, 1, 1, 1, 2, 1, 2, 0, 15}}) {
        this->expect_refusal("LAMTSQR", c.argument, [&](const auto& f, Int* info) {
            f.lamtsqr(c.side, c.trans, &c.m, &c.n, &c.k, &c.mb, &c.nb, A, &c.lda, Tf, &c.ldt, C, &c.ldc, work, &c.lwork,
                      info, 1, 1);
        });
    }
    struct OrhrCol {
        Int m, n, nb, lda, ldt, argument;
    };
    for (const OrhrCol& c : {OrhrCol{-1, 0, 1, 1, 1, 1},
                             {0, -1, 1, 1, 1, 2},
                             {1, 2, 1, 1, 1, 2},
                             {0, 0, -1, 1, 1, 3},
                             {0, 0, 0, 1, 1, 3},
                             {2, 0, 1, 1, 1, 5},
                             {0, 0, 1, 1, 0, 7},
                             {4, 3, 4, 4, 2, 7}}) {
        this->expect_refusal("ORHR_COL", c.argument, [&](const auto& f, Int* info) {
            f.orhr_col(&c.m, &c.n, &c.nb, A, &c.lda, Tf, &c.ldt, d, info);
        });
    }
    struct Geqr {
        Int m, n, lda, tsize, lwork, argument;
    };
    for (const Geqr& c : {Geqr{-1, 0, 1, 10, 1, 1},
                          {0, -1, 1, 10, 1, 2},
                          {2, 2, 1, 10, 2, 4},
                          {3, 2, 3, 1, 2, 6},
                          {3, 2, 3, 8, 0, 8}}) {
        this->expect_refusal("GEQR", c.argument, [&](const auto& f, Int* info) {
            f.geqr(&c.m, &c.n, A, &c.lda, Tf, &c.tsize, work, &c.lwork, info);
        });
    }
    struct Gemqr {
        const char *side, *trans;
        Int m, n, k, lda, tsize, ldc, lwork, argument;
    };
    Tf[0] = 6, Tf[1] = 2, Tf[2] = 1;
    for (const Gemqr& c : {Gemqr{"/", "N", 0, 0, 0, 1, 6, 1, 9, 1},
                           {"L", "/", 0, 0, 0, 1, 6, 1, 9, 2},
                           {"L", "N", -1, 0, 0, 1, 6, 1, 9, 3},
                           {"L", "N", 0, -1, 0, 1, 6, 1, 9, 4},
                           {"L", "N", 0, 0, -1, 1, 6, 1, 9, 5},
                           {"R", "N", 2, 1, 2, 2, 6, 2, 9, 5},
                           {"L", "N", 2, 1, 1, 1, 6, 2, 9, 7},
                           {"R", "N", 1, 2, 1, 1, 6, 1, 9, 7},
                           {"L", "N", 2, 1, 1, 2, 0, 2, 9, 9},
                           {"L", "N", 2, 1, 1, 2, 6, 1, 9, 11},
                           {"L", "N", 2, 1, 1, 2, 6, 2, 0, 13}}) {
        this->expect_refusal("GEMQR", c.argument, [&](const auto& f, Int* info) {
            f.gemqr(c.side, c.trans, &c.m, &c.n, &c.k, A, &c.lda, Tf, &c.tsize, C, &c.ldc, work, &c.lwork, info, 1, 1);
        });
    }
}

}  // namespace
}  // namespace quoin::test
