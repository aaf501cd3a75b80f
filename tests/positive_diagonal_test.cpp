// Options::positive_diagonal: R's signs, the law for every holder of Q, the uniqueness of QR, and refusals.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/batch.hpp"
#include "quoin/least_squares.hpp"
#include "quoin/qr.hpp"
#include "quoin/svd.hpp"

namespace quoin::test {
namespace {

template <class T>
bool has_positive_diagonal(MatrixView<const T> R) {
    for (Index j = 0; j < std::min(R.rows, R.cols); ++j) {
        if (!(R(j, j) >= 0)) return false;
    }
    return true;
}

Options positive(Options options) {
    options.positive_diagonal = true;
    return options;
}

template <class T>
Matrix<T> columns(MatrixView<const T> A, std::span<const Index> p) {
    Matrix<T> B(A.rows, A.cols);
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, p.empty() ? j : p[j]), A.rows, B.view().at(0, j));
    return B;
}

template <class T>
class PositiveDiagonal : public testing::Test {
protected:
    Context<Host> ctx{2};

    /// Expects the law, the signs, and equal results from everything that has Q.
    void expect_positive(MatrixView<const T> A, const Options& options) {
        QR<T> f = qr(ctx, A, options);
        const Index m = A.rows, k = std::min(m, A.cols);
        const Matrix<T> AP = columns(A, f.permutation()), R = f.r();
        EXPECT_TRUE(has_positive_diagonal<T>(R.view()));
        expect_law<T>(ctx, AP.view(), f);
        if (options.q == QForm::None) return;
        const Matrix<T> Q = f.form_q(ctx);
        const double scale = std::sqrt(static_cast<double>(k));
        const Range all{0, m}, half{m / 3, m}, first{0, k}, last{k / 2, m};
        const auto thin = MatrixView<const T>(Q.view());
        EXPECT_LE(difference<T>(f.q_block(ctx, all, first).view(), thin, std::max<Index>(1, k), scale), law);
        // Q(half, last), and its products, against the m×m Q
        const Matrix<T> whole = f.q_block(ctx, all, all);
        const auto expected = std::as_const(whole).view().block(half, last);
        const double of_block = std::sqrt(static_cast<double>(m));
        EXPECT_LE(difference<T>(f.q_block(ctx, half, last).view(), expected, std::max<Index>(1, 2 * k), of_block), law);
        for (const Op op : {Op::None, Op::Transpose}) {
            const Matrix<T> I = identity<T>(op == Op::None ? last.size() : half.size());
            const Matrix<T> X = f.apply_q_block(ctx, op, half, last, I.view());
            const Matrix<T> Y = op == Op::None ? copy<T>(X.view()) : transposed<T>(X.view());
            EXPECT_LE(difference<T>(Y.view(), expected, std::max<Index>(1, 2 * k), of_block), law);
        }
        const ThinQR<T> taken = std::move(f).take_thin(ctx);
        EXPECT_TRUE(same_bits<T>(taken.R.view(), R.view()));
        EXPECT_LE(difference<T>(taken.Q.view(), thin, std::max<Index>(1, k), scale), law);
    }
};
TYPED_TEST_SUITE(PositiveDiagonal, Scalars);

TYPED_TEST(PositiveDiagonal, ObeysTheLawForEveryMethodShapeAndForm) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{0, 3},
                               {3, 0},
                               {1, 1},
                               {5, 5},
                               {60, 60},
                               {50, 17},
                               {17, 50},
                               {200, 130},
                               {2000, 20},
                               {40, 300}}) {
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        for (const Method method : all_methods) {
            if (!factors_shape(method, m, n)) continue;
            for (const QForm q : q_forms) {
                SCOPED_TRACE(shape_name(m, n) + " " + to_string(method) + " " + to_string(q));
                this->expect_positive(A.view(), positive(with(method, q)));
            }
        }
    }
}

TYPED_TEST(PositiveDiagonal, ObeysTheLawForEveryClassOfMatricesAndWithPivots) {
    using T = TypeParam;
    Index turn = 0;
    for (const Gallery c : gallery()) {
        for (const auto& [m, n] : {std::pair<Index, Index>{60, 60}, {33, 48}, {500, 20}}) {
            const Matrix<T> A = generate<T>(c, m, n);
            for (const QForm q : in_turn(q_forms, turn++)) {
                SCOPED_TRACE(to_string(c) + " " + shape_name(m, n) + " " + to_string(q));
                Options options = positive(with(Method::Auto, q));
                this->expect_positive(A.view(), options);
                for (const Pivots kind : {Pivots::Greedy, Pivots::Randomized}) {
                    options.pivoting = Pivoting{.kind = kind};
                    this->expect_positive(A.view(), options);
                }
            }
        }
    }
}

TYPED_TEST(PositiveDiagonal, FullTAndGramSchmidtHaveIt) {
    using T = TypeParam;
    const Matrix<T> A = generate<T>(Gallery::RandomNormal, 150, 70);
    for (const bool keep_s : {false, true}) {
        Options options = positive({});
        options.q = FullT{.keep_s = keep_s};
        this->expect_positive(A.view(), options);
    }
    const auto& twice = gram_schmidt_cases[2];
    this->expect_positive(A.view(), positive(twice.options()));
}

TYPED_TEST(PositiveDiagonal, MakesQRUnique) {
    using T = TypeParam;
    const Index m = 900, n = 30;
    const Matrix<T> A = with_condition<T>(m, n, 10);
    const auto factors = [&](Method method, QForm q) {
        return qr(this->ctx, A.view(), positive(with(method, q))).take_thin(this->ctx);
    };
    const ThinQR<T> expected = factors(Method::BlockedHouseholder, QForm::Any);
    for (const Method method : all_methods) {
        const ThinQR<T> found = factors(method, QForm::Explicit);
        // the condition number amplifies the rounding errors
        EXPECT_LE(difference<T>(found.R.view(), expected.R.view(), 10 * n, frobenius_norm<T>(A.view())), law);
        EXPECT_LE(difference<T>(found.Q.view(), expected.Q.view(), 10 * n, std::sqrt(double(n))), law);
    }
}

TYPED_TEST(PositiveDiagonal, ReachesTheCallersMemoryAndTheSolvers) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{90, 40}, {1500, 20}, {20, 31}}) {
        const Index k = std::min(m, n);
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n), B = generate<T>(Gallery::RandomNormal, m, 2);
        Padded<T> Q(m, k), R(k, n);
        qr(this->ctx, A.view(), Q.view(), R.view(), positive({}));
        EXPECT_TRUE(Q.padding_intact() && R.padding_intact());
        EXPECT_TRUE(has_positive_diagonal<T>(R.view()));
        EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), law);
        EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
        const Matrix<T> x = least_squares(this->ctx, A.view(), B.view()).X;
        const Matrix<T> y = least_squares(this->ctx, A.view(), B.view(), {}, positive({})).X;
        EXPECT_LE(difference<T>(x.view(), y.view(), 100 * k, frobenius_norm<T>(x.view())), law);
        if (m < n) continue;
        for (const QForm q : q_forms_with_q) {
            const QR<T> f = qr(this->ctx, A.view(), positive(with(Method::Auto, q)));
            const Matrix<T> z = least_squares(this->ctx, f, B.view()).X;
            EXPECT_LE(difference<T>(x.view(), z.view(), 100 * k, frobenius_norm<T>(x.view())), law);
        }
    }
}

TYPED_TEST(PositiveDiagonal, LeavesLapacksFormatAsItIs) {
    using T = TypeParam;
    const Matrix<T> A = generate<T>(Gallery::RandomNormal, 80, 30);
    for (const Method method : {Method::BlockedHouseholder, Method::TSQR}) {
        const QR<T> back =
            from_lapack(this->ctx, to_lapack(this->ctx, qr(this->ctx, A.view(), positive(with(method)))));
        expect_law<T>(this->ctx, A.view(), back);
    }
}

TYPED_TEST(PositiveDiagonal, IsRefusedWhereItIsNotOffered) {
    using T = TypeParam;
    Matrix<T> A = generate<T>(Gallery::RandomNormal, 30, 20), tau(20, 1);
    const auto refuses = [](const char* part, auto call) {
        try {
            call();
            ADD_FAILURE() << "accepted: " << part;
        } catch (const InvalidArgument& e) {
            EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
        }
    };
    refuses("qr_lapack takes the signs",
            [&] { qr_lapack<T, Host>(this->ctx, A.view(), A.view(), tau.view(), positive({})); });
    const BatchView<const T> batch{A.data(), 30, 10, 30, 300, 2};
    refuses("a batch takes the signs", [&] { qr(this->ctx, batch, positive({})); });
}

}  // namespace
}  // namespace quoin::test
