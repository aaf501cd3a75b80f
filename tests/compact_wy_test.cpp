// Q = I − V T Vᵀ with one T for all columns: the law of T and S, blocks of Q, LAPACK's ?geqrt, ?geqrt3 and ?tpqrt.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "lapack.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

/// ‖T⁻¹ + T⁻ᵀ − VᵀV‖_F in units of k·u·‖VᵀV‖_F, T⁻¹ in higher precision; no tau is 0.
template <class T>
double defining_error(MatrixView<const T> V, MatrixView<const T> Tf) {
    using W = Wide<T>;
    const Index k = Tf.cols;
    Matrix<W> inverse(k, k);
    for (Index j = 0; j < k; ++j) {
        for (Index i = k - 1; i >= 0; --i) {
            W sum = i == j;
            for (Index l = i + 1; l <= j; ++l) sum -= W(Tf(i, l)) * inverse(l, j);
            inverse(i, j) = i > j ? W(0) : sum / Tf(i, i);
        }
    }
    W error = 0, norm = 0;
    for (Index j = 0; j < k; ++j) {
        for (Index i = 0; i < k; ++i) {
            W g = 0;
            for (Index l = 0; l < V.rows; ++l) g += W(V(l, i)) * V(l, j);
            const W e = inverse(i, j) + inverse(j, i) - g;
            error += e * e;
            norm += g * g;
        }
    }
    return k == 0 ? 0 : static_cast<double>(std::sqrt(error / norm)) / (double(k) * unit_roundoff<T>);
}

/// I − V T Vᵀ, m×m, rounded once more than the products with T.
template <class T>
Matrix<T> multiplied_out(MatrixView<const T> V, MatrixView<const T> Tf) {
    const Matrix<T> Vt = transposed(V), W = product<T>(V, Tf);
    Matrix<T> Q = product<T>(W.view(), Vt.view());
    for (Index j = 0; j < Q.cols(); ++j) {
        for (Index i = 0; i < Q.rows(); ++i) Q(i, j) = T(i == j) - Q(i, j);
    }
    return Q;
}

constexpr FullT routes[] = {{false, FullTRoute::Recurrence},
                            {true, FullTRoute::Recurrence},
                            {false, FullTRoute::Joined},
                            {true, FullTRoute::Joined}};

std::string name_of(const FullT& full_t) { return std::string(to_string(full_t.route)) + (full_t.keep_s ? ", S" : ""); }

Options full(const FullT& full_t, Index panel_width, Method method = Method::BlockedHouseholder) {
    Options options = with(method, QForm::Any);
    options.q = full_t;
    options.method.set_panel_width(panel_width);
    return options;
}

template <class T>
class FullTOf : public testing::Test {
protected:
    Context<Host> ctx{3};

    /// Checks the laws of T, S and V, and that their Q is the factorization's.
    void expect_full_t(const QR<T>& f) {
        const Index m = f.rows(), k = std::min(m, f.cols());
        const Matrix<T> V = f.v(ctx), Tf = f.t(ctx), S = f.s(ctx), tau = f.tau(ctx);
        ASSERT_TRUE(Tf.rows() == k && Tf.cols() == k && S.rows() == m && S.cols() == k);
        bool invertible = true;
        for (Index j = 0; j < k; ++j) {
            for (Index i = j + 1; i < k; ++i) EXPECT_EQ(Tf(i, j), T(0));
            for (Index i = 0; i < j; ++i) EXPECT_EQ(S(i, j), T(0));
            EXPECT_EQ(Tf(j, j), tau(j, 0));
            EXPECT_EQ(S(j, j), tau(j, 0));
            invertible = invertible && tau(j, 0) != 0;
        }
        if (invertible) {
            EXPECT_LE(defining_error<T>(V.view(), Tf.view()), law) << "T⁻¹ + T⁻ᵀ = VᵀV";
        }
        const Matrix<T> Tt = transposed<T>(Tf.view()), VTt = product<T>(V.view(), Tt.view());
        EXPECT_LE(difference<T>(S.view(), VTt.view(), k, frobenius_norm<T>(VTt.view())), law) << "S = V Tᵀ";
        const Matrix<T> Q = multiplied_out<T>(V.view(), Tf.view());
        EXPECT_LE(orthogonality_error<T>(Q.view(), k), law) << "I − V T Vᵀ";
        const Matrix<T> thin = f.form_q(ctx);
        EXPECT_LE(difference<T>(Q.view().col_block({0, k}), thin.view(), k, std::sqrt(double(k))), law);
    }

    /// Blocks of Q, and products with them, against Q as LAPACK forms it.
    void expect_blocks(const QR<T>& f) {
        const Index m = f.rows(), k = std::min(m, f.cols());
        Matrix<T> Q = filled<T>(m, m, 0);
        const Matrix<T> V = f.v(ctx), tau = f.tau(ctx);
        for (Index j = 0; j < k; ++j) std::copy_n(V.view().at(0, j), m, Q.view().at(0, j));
        ASSERT_EQ(lapack::orgqr(Q.view(), k, tau.data()), 0);
        const Range ranges[] = {{0, m},     {0, m / 2},     {m / 2, m},         {0, 1},     {m - 1, m},
                                {k / 3, k}, {k / 2, k / 2}, {m / 3, m - m / 4}, {k - 1, m}, {0, std::min(m, k + 1)}};
        for (const Range r : ranges)
            for (const Range c : ranges) {
                SCOPED_TRACE("Q([" + std::to_string(r.begin) + ", " + std::to_string(r.end) + "), [" +
                             std::to_string(c.begin) + ", " + std::to_string(c.end) + "))");
                const auto expected = std::as_const(Q).view().block(r, c);
                const double scale = std::sqrt(double(std::max<Index>(1, std::min(r.size(), c.size()))));
                const Matrix<T> B = f.q_block(ctx, r, c);
                ASSERT_TRUE(B.rows() == r.size() && B.cols() == c.size());
                if (!B.view().empty()) {
                    EXPECT_LE(difference<T>(B.view(), expected, k, scale), law);
                }
                for (const Op op : {Op::None, Op::Transpose}) {
                    const Index rows = op == Op::None ? c.size() : r.size();
                    const Padded<T> C(random_normal<T>(rows, 3, 7).view());
                    const Matrix<T> QC = f.apply_q_block(ctx, op, r, c, C.view());
                    const Matrix<T> block = op == Op::None ? copy<T>(expected) : transposed<T>(expected);
                    const Matrix<T> exact = product<T>(block.view(), C.view());
                    ASSERT_TRUE(QC.rows() == exact.rows() && QC.cols() == 3);
                    if (exact.rows() == 0) continue;
                    EXPECT_LE(difference<T>(QC.view(), exact.view(), k, frobenius_norm<T>(C.view())), law)
                        << (op == Op::None ? "QC" : "QᵀC");
                }
            }
    }
};
TYPED_TEST_SUITE(FullTOf, Scalars);

TYPED_TEST(FullTOf, IsQOnTheGallery) {
    using T = TypeParam;
    for (Gallery matrix_class : gallery())
        for (auto [m, n] : {std::pair<Index, Index>{60, 31}, {40, 40}, {20, 35}})
            for (const FullT& route : routes) {
                SCOPED_TRACE(to_string(matrix_class) + " " + shape_name(m, n) + " " + name_of(route));
                const Matrix<T> A = generate<T>(matrix_class, m, n);
                const QR<T> f = qr(this->ctx, A.view(), full(route, 6));
                EXPECT_EQ(f.plan().q, QForm::Reflectors);
                expect_law<T>(this->ctx, A.view(), f);
                this->expect_full_t(f);
            }
}

TYPED_TEST(FullTOf, OddShapesAndEveryWayToPanels) {
    using T = TypeParam;
    Index turn = 0;
    for (auto [m, n] : {std::pair<Index, Index>{0, 0},
                        {0, 4},
                        {4, 0},
                        {1, 1},
                        {1, 5},
                        {5, 1},
                        {7, 7},
                        {33, 32},
                        {130, 129},
                        {700, 60},   // panels of 8: tall ones by reconstruction, and then others
                        {2100, 8}})  // one panel
        for (Index nb : {0, 1, 8, 17}) {
            ++turn;
            for (const FullT& route : in_turn(routes, turn + turn / 4)) {
                if (quick() && m * n * n > 100000) continue;
                SCOPED_TRACE(shape_name(m, n) + " panels of " + std::to_string(nb) + " " + name_of(route));
                const Matrix<T> A = random_normal<T>(m, n);
                const QR<T> f = qr(this->ctx, A.view(), full(route, nb));
                expect_law<T>(this->ctx, A.view(), f);
                if (m <= 700) this->expect_full_t(f);
            }
        }
}

TYPED_TEST(FullTOf, OfEveryMethod) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(300, 24);
    Index turn = sizeof(T) / sizeof(float);
    for (Method method : all_methods)
        for (const FullT& route : in_turn(routes, turn++)) {
            SCOPED_TRACE(std::string(to_string(method)) + " " + name_of(route));
            const QR<T> f = qr(this->ctx, A.view(), full(route, 0, method));
            expect_law<T>(this->ctx, A.view(), f, 4);
            this->expect_full_t(f);
            this->expect_blocks(f);
        }
}

TYPED_TEST(FullTOf, BlocksOfQ) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{60, 23}, {31, 31}, {12, 30}, {1, 1}})
        for (Index nb : {4, 64})
            for (const FullT& route : routes) {
                SCOPED_TRACE(shape_name(m, n) + " panels of " + std::to_string(nb) + " " + name_of(route));
                this->expect_blocks(qr(this->ctx, random_normal<T>(m, n).view(), full(route, nb)));
            }
}

/// Blocks are wider here than in products with T.
TYPED_TEST(FullTOf, BlocksOfALargerQ) {
    using T = TypeParam;
    if (quick()) GTEST_SKIP();
    const Index m = 700, n = 500;
    for (const FullT& route : in_turn(routes, sizeof(T) / sizeof(float))) {
        SCOPED_TRACE(name_of(route));
        const Matrix<T> A = random_normal<T>(m, n);
        const QR<T> f = qr(this->ctx, A.view(), full(route, 64));
        expect_law<T>(this->ctx, A.view(), f);
        this->expect_blocks(f);
    }
}

TYPED_TEST(FullTOf, EveryHolderOfQHasBlocks) {
    using T = TypeParam;
    const Index m = 90, n = 20, p = 4;
    const Matrix<T> A = random_normal<T>(m, n);
    for (Method method : all_methods)
        for (QForm q : q_forms_with_q) {
            SCOPED_TRACE(case_name(m, n, method, q));
            const QR<T> f = qr(this->ctx, A.view(), with(method, q));
            Matrix<T> Q = identity<T>(m);
            f.apply_q(this->ctx, Side::Left, Op::None, Q.view());
            const Range r{10, 60}, c{5, 50};
            const Matrix<T> C = random_normal<T>(c.size(), p), D = random_normal<T>(r.size(), p);
            const auto block = std::as_const(Q).view().block(r, c);
            const Matrix<T> turned = transposed<T>(block);
            EXPECT_LE(difference<T>(f.apply_q_block(this->ctx, Op::None, r, c, C.view()).view(),
                                    product<T>(block, C.view()).view(), n, frobenius_norm<T>(C.view())),
                      2 * law);
            EXPECT_LE(difference<T>(f.apply_q_block(this->ctx, Op::Transpose, r, c, D.view()).view(),
                                    product<T>(turned.view(), D.view()).view(), n, frobenius_norm<T>(D.view())),
                      2 * law);
        }
}

TYPED_TEST(FullTOf, TheNumberOfThreadsDoesNotMatter) {
    using T = TypeParam;
    for (const FullT& route : routes) {
        const Matrix<T> A = random_normal<T>(450, 300);
        Context<Host> one(1), four(4);
        const Options options = full(route, 40);
        const QR<T> f = qr(one, A.view(), options), g = qr(four, A.view(), options);
        EXPECT_TRUE(same_bits<T>(f.t(one).view(), g.t(four).view())) << name_of(route);
        EXPECT_TRUE(same_bits<T>(f.s(one).view(), g.s(four).view())) << name_of(route);
        EXPECT_TRUE(same_bits<T>(f.r().view(), g.r().view())) << name_of(route);
        const Range r{100, 400}, c{50, 420};
        EXPECT_TRUE(same_bits<T>(f.q_block(one, r, c).view(), g.q_block(four, r, c).view())) << name_of(route);
    }
}

TYPED_TEST(FullTOf, RefusesWhatItCannotDo) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(20, 9);
    auto& ctx = this->ctx;
    const auto expect_invalid = [&](const std::string& named, auto call) {
        try {
            call();
            ADD_FAILURE() << named << " accepted";
        } catch (const InvalidArgument& error) {
            EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
        }
    };
    for (const Options& options : {full(routes[0], 4), with(Method::CAQR)}) {
        const QR<T> f = qr(ctx, A.view(), options);
        const Matrix<T> C = random_normal<T>(5, 2);
        for (const Range bad : {Range{-1, 4}, Range{16, 21}, Range{4, 3}}) {
            expect_invalid("q_block", [&] { f.q_block(ctx, bad, {0, 5}); });
            expect_invalid("apply_q_block", [&] { f.apply_q_block(ctx, Op::None, bad, {0, 5}, C.view()); });
            expect_invalid("apply_q_block", [&] { f.apply_q_block(ctx, Op::None, {0, 5}, bad, C.view()); });
        }
        expect_invalid("C is 5 x 2", [&] { f.apply_q_block(ctx, Op::None, {0, 5}, {0, 6}, C.view()); });
        expect_invalid("C is 5 x 2", [&] { f.apply_q_block(ctx, Op::Transpose, {0, 6}, {0, 5}, C.view()); });
    }
    const QR<T> r_only = qr(ctx, A.view(), {.q = QForm::None});
    expect_invalid("apply_q_block", [&] { r_only.apply_q_block(ctx, Op::None, {0, 5}, {0, 20}, A.view()); });
    EXPECT_THROW(r_only.s(ctx), InvalidArgument);
    QR<T> taken = qr(ctx, A.view(), full(routes[0], 4));
    std::move(taken).take_q(ctx);
    expect_invalid("taken", [&] { taken.q_block(ctx, {0, 1}, {0, 1}); });
    EXPECT_THROW(taken.t(ctx), InvalidArgument);
}

// ---- LAPACK's blocks of T ------------------------------------------------------------------------------------------

constexpr std::pair<Index, Index> shapes[] = {{60, 17}, {33, 33}, {12, 40}, {50, 1}, {1, 1}, {203, 64}};

/// op(Q) C or C op(Q) by ?gemqrt.
template <class T>
void gemqrt(const LapackQRT<T>& factors, Side side, Op op, MatrixView<T> C) {
    EXPECT_EQ(lapack::gemqrt(side == Side::Left ? 'L' : 'R', op == Op::None ? 'N' : 'T', factors.V_R.view(),
                             factors.Tf.view(), C),
              0);
}

template <class T>
LapackQRT<T> copied(const LapackQRT<T>& factors) {
    return {copy<T>(factors.V_R.view()), copy<T>(factors.Tf.view())};
}

TYPED_TEST(FullTOf, GemqrtAcceptsWhatQuoinWrote) {
    using T = TypeParam;
    for (auto [m, n] : shapes)
        for (Method method : {Method::BlockedHouseholder, Method::TSQR, Method::Auto})
            for (bool one_t : {false, true})
                for (Index nb : {1, 3, 8, 1000}) {
                    const Index k = std::min(m, n), block = std::min(nb, k);
                    SCOPED_TRACE(case_name(m, n, method, QForm::Any) + (one_t ? " one T " : " ") +
                                 std::to_string(block));
                    Options options = with(method);
                    if (one_t) options.q = FullT{};
                    if (method == Method::BlockedHouseholder) options.method.set_panel_width(8);
                    const Matrix<T> A = random_normal<T>(m, n);
                    QR<T> f = qr(this->ctx, A.view(), options);
                    const bool same_q = one_t || method == Method::BlockedHouseholder;
                    std::vector<Matrix<T>> products;
                    const auto operand = [&, m = m](Side side) {
                        return side == Side::Left ? random_normal<T>(m, 4) : random_normal<T>(4, m);
                    };
                    for (Side side : {Side::Left, Side::Right})
                        for (Op op : {Op::None, Op::Transpose}) {
                            products.push_back(operand(side));
                            f.apply_q(this->ctx, side, op, products.back().view());
                        }
                    const LapackQRT<T> factors = to_lapack_t(this->ctx, std::move(f), block);
                    ASSERT_TRUE(factors.Tf.rows() == block && factors.Tf.cols() == k);
                    // QᵀA = R, whatever signs reconstruction chose
                    Matrix<T> X = copy<T>(A.view());
                    gemqrt<T>(factors, Side::Left, Op::Transpose, X.view());
                    Matrix<T> R = filled<T>(m, n, 0);
                    for (Index j = 0; j < n; ++j) {
                        std::copy_n(factors.V_R.view().at(0, j), std::min(j + 1, k), R.view().at(0, j));
                    }
                    EXPECT_LE(difference<T>(X.view(), R.view(), k, frobenius_norm<T>(A.view())), law);
                    if (!same_q) continue;
                    auto expected = products.begin();
                    for (Side side : {Side::Left, Side::Right})
                        for (Op op : {Op::None, Op::Transpose}) {
                            Matrix<T> C = operand(side);
                            const double norm = frobenius_norm<T>(C.view());
                            gemqrt<T>(factors, side, op, C.view());
                            EXPECT_LE(difference<T>(C.view(), (expected++)->view(), k, norm), law);
                        }
                }
}

TYPED_TEST(FullTOf, WhatGeqrtWroteIsTheFactorization) {
    using T = TypeParam;
    for (Gallery matrix_class : gallery())
        for (auto [m, n] : shapes)
            for (Index nb : {3, 8, 1000}) {
                const Index k = std::min(m, n), block = std::min(nb, k);
                if (block == k && m < n) continue;  // ?geqrt3 is for m >= n
                SCOPED_TRACE(to_string(matrix_class) + " " + shape_name(m, n) + " " + std::to_string(block));
                const Matrix<T> A = generate<T>(matrix_class, m, n);
                // below the triangles LAPACK leaves what it likes
                LapackQRT<T> factors{copy<T>(A.view()), filled<T>(block, k, std::numeric_limits<T>::quiet_NaN())};
                ASSERT_EQ(block == k ? lapack::geqrt3(factors.V_R.view(), factors.Tf.view())
                                     : lapack::geqrt(factors.V_R.view(), factors.Tf.view()),
                          0);
                const QR<T> f = from_lapack_t(this->ctx, copied(factors));
                for (Side side : {Side::Left, Side::Right})
                    for (Op op : {Op::None, Op::Transpose}) {
                        const Matrix<T> C = side == Side::Left ? random_normal<T>(m, 3) : random_normal<T>(3, m);
                        Matrix<T> ours = copy<T>(C.view()), theirs = copy<T>(C.view());
                        f.apply_q(this->ctx, side, op, ours.view());
                        gemqrt<T>(factors, side, op, theirs.view());
                        EXPECT_LE(difference<T>(ours.view(), theirs.view(), k, frobenius_norm<T>(C.view())), law);
                    }
                if (block == k) {
                    this->expect_full_t(f);
                }
                // and back, bit for bit
                const Matrix<T> Tf = f.t(this->ctx);
                const LapackQRT<T> back = to_lapack_t(this->ctx, from_lapack_t(this->ctx, copied(factors)), block);
                EXPECT_TRUE(same_bits<T>(back.V_R.view(), factors.V_R.view()));
                for (Index j = 0; j < k; ++j) {
                    for (Index i = 0; i <= j % block; ++i) EXPECT_EQ(back.Tf(i, j), factors.Tf(i, j));
                    for (Index i = j % block + 1; i < block; ++i) EXPECT_EQ(back.Tf(i, j), T(0));
                }
            }
}

/// [R; B] = Q [R'; 0] has V = [I; V_B], which ?tpmqrt takes.
TYPED_TEST(FullTOf, OfAStackIsTheFormatOfTpqrt) {
    using T = TypeParam;
    for (auto [h, n] : {std::pair<Index, Index>{1, 1}, {40, 9}, {5, 30}, {300, 64}})
        for (Index nb : {1, 4, 1000})
            for (const FullT& route : routes) {
                const Index block = std::min(nb, n);
                SCOPED_TRACE(shape_name(h, n) + " " + std::to_string(block) + " " + name_of(route));
                Matrix<T> A = random_normal<T>(n + h, n);
                for (Index j = 0; j < n; ++j) std::fill(A.view().at(j + 1, j), A.view().at(n, j), T(0));
                Matrix<T> C = random_normal<T>(n + h, 5);
                Matrix<T> top = copy<T>(std::as_const(C).view().row_block({0, n}));
                Matrix<T> rest = copy<T>(std::as_const(C).view().row_block({n, n + h}));
                const double norm = frobenius_norm<T>(C.view());
                QR<T> f = qr(this->ctx, A.view(), full(route, 8));
                f.apply_q(this->ctx, Side::Left, Op::Transpose, C.view());
                const LapackQRT<T> factors = to_lapack_t(this->ctx, std::move(f), block);
                for (Index j = 0; j < n; ++j) {
                    for (Index i = j + 1; i < n; ++i) ASSERT_EQ(factors.V_R(i, j), T(0));
                }
                const Matrix<T> V_B = copy<T>(factors.V_R.view().row_block({n, n + h}));
                ASSERT_EQ(lapack::tpmqrt('L', 'T', V_B.view(), factors.Tf.view(), top.view(), rest.view()), 0);
                EXPECT_LE(difference<T>(top.view(), std::as_const(C).view().row_block({0, n}), n, norm), law);
                EXPECT_LE(difference<T>(rest.view(), std::as_const(C).view().row_block({n, n + h}), n, norm), law);
            }
}

TYPED_TEST(FullTOf, RefusesBlocksOfTheWrongSize) {
    using T = TypeParam;
    for (Index nb : {-1, 0, 6}) {
        EXPECT_THROW(to_lapack_t(this->ctx, qr(this->ctx, random_normal<T>(12, 5).view()), nb), InvalidArgument);
    }
    EXPECT_THROW(to_lapack_t(this->ctx, qr(this->ctx, random_normal<T>(12, 5).view(), {.q = QForm::None}), 2),
                 InvalidArgument);
    for (auto [nb, k] : {std::pair<Index, Index>{0, 5}, {6, 5}, {2, 4}, {2, 6}}) {
        LapackQRT<T> factors{random_normal<T>(12, 5), filled<T>(nb, k, T(1))};
        EXPECT_THROW(from_lapack_t(this->ctx, std::move(factors)), InvalidArgument);
    }
}

// ---- the primitives underneath --------------------------------------------------------------------------------------

TYPED_TEST(FullTOf, MultiplyTriangle) {
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (Index n : {0, 1, 7, 48, 49, 130})
        for (Index lines : {0, 1, 49, 600})
            for (Side side : {Side::Left, Side::Right})
                for (Triangle triangle : {Triangle::UnitLower, Triangle::Lower, Triangle::Upper})
                    for (Op op : {Op::None, Op::Transpose}) {
                        // what is not the triangle is not read
                        Matrix<T> stored = random_normal<T>(n, n, 1), dense = filled<T>(n, n, 0);
                        for (Index j = 0; j < n; ++j) {
                            for (Index i = 0; i < n; ++i) {
                                const bool is = triangle == Triangle::Upper   ? i <= j
                                                : triangle == Triangle::Lower ? i >= j
                                                                              : i > j;
                                dense(i, j) = is ? stored(i, j) : T(i == j && triangle == Triangle::UnitLower);
                                if (!is) stored(i, j) = nan;
                            }
                        }
                        if (op == Op::Transpose) dense = transposed<T>(dense.view());
                        const bool left = side == Side::Left;
                        const Matrix<T> B = left ? random_normal<T>(n, lines, 2) : random_normal<T>(lines, n, 2);
                        Padded<T> X(B.view());
                        const Padded<T> A(stored.view());
                        multiply_triangle<T>(this->ctx, side, triangle, op, A.view(), X.view());
                        EXPECT_TRUE(X.padding_intact());
                        if (B.view().empty()) continue;
                        const Matrix<T> exact =
                            left ? product<T>(dense.view(), B.view()) : product<T>(B.view(), dense.view());
                        EXPECT_LE(difference<T>(X.view(), exact.view(), 1,
                                                frobenius_norm<T>(dense.view()) * frobenius_norm<T>(B.view())),
                                  law)
                            << n << " " << lines << (left ? " left " : " right ") << int(triangle)
                            << (op == Op::None ? "" : "ᵀ");
                    }
}

TYPED_TEST(FullTOf, MultiplyTransposedAccumulates) {
    using T = TypeParam;
    for (auto [m, n, p] : {std::array<Index, 3>{0, 3, 4}, {1, 1, 1}, {50, 7, 60}, {5000, 3, 50}}) {
        const Matrix<T> A = random_normal<T>(m, n, 1), B = random_normal<T>(m, p, 2), C = random_normal<T>(n, p, 3);
        Padded<T> X(C.view());
        multiply_transposed<T>(this->ctx, A.view(), B.view(), X.view(), true);
        EXPECT_TRUE(X.padding_intact());
        Matrix<T> exact = product<T>(transposed<T>(A.view()).view(), B.view());
        for (Index j = 0; j < p; ++j) {
            for (Index i = 0; i < n; ++i) exact(i, j) += C(i, j);
        }
        EXPECT_LE(
            difference<T>(X.view(), exact.view(), 1,
                          frobenius_norm<T>(C.view()) + frobenius_norm<T>(A.view()) * frobenius_norm<T>(B.view())),
            law);
    }
}

}  // namespace
}  // namespace quoin::test
