// The law (checks.hpp) for every method, every QForm, every class of matrices, and every way a shape can be awkward.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/one_matrix/plan.hpp"
#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

/// Reductions in a row: the leaf, and the fan_in − 1 members of the head at each level; leaf after leaf in a flat tree
/// (which Quoin may choose where fan_in = 0).
Index tree_stages(Index m, Index leaf_rows, Index fan_in) {
    const Index leaves = std::max<Index>(1, (m + leaf_rows - 1) / leaf_rows);
    if (fan_in == 0 || fan_in == flat_tree) return leaves;
    Index stages = 1;
    for (Index heads = leaves; heads > 1; heads = (heads + fan_in - 1) / fan_in) stages += fan_in - 1;
    return std::min(stages, leaves);
}

/// A method and the shape of its trees. Rows a leaf are given beyond the panel's width.
struct Scheme {
    friend std::ostream& operator<<(std::ostream& out, const Scheme& scheme) { return out << scheme.name; }

    const char* name;
    Method method;
    Index panel_width = 0;
    Index extra_leaf_rows = -1;  // -1: Quoin chooses the leaves
    Index fan_in = 0;

    /// Reductions in a row in a tree over m rows, where this scheme asks for one.
    Index stages(Index m, Index n) const {
        return extra_leaf_rows < 0 ? 1 : tree_stages(m, options(n, QForm::Any).method.tree().leaf_rows, fan_in);
    }

    Options options(Index n, QForm q) const {
        Options o = with(method, q);
        // A panel is no wider than the matrix.
        o.method.set_panel_width(std::min(panel_width, n));
        // TSQR has one panel, as wide as the matrix.
        const Index width = method == Method::TSQR ? std::max<Index>(1, n) : panel_width;
        if (extra_leaf_rows >= 0) o.method.set_tree({width + extra_leaf_rows, fan_in});
        return o;
    }
};

constexpr Scheme schemes[] = {
    {"auto", Method::Auto},
    {"householder", Method::BlockedHouseholder},
    {"householder_panel5", Method::BlockedHouseholder, 5},
    // Panels so narrow that even short ones are tall enough for reconstruction, from deep trees.
    {"householder_panel2_leaf4_fan2", Method::BlockedHouseholder, 2, 2, 2},
    {"tsqr", Method::TSQR},
    {"tsqr_square_leaves_fan2", Method::TSQR, 0, 0, 2},
    {"tsqr_leaves_plus3_fan3", Method::TSQR, 0, 3, 3},
    {"caqr", Method::CAQR},
    {"caqr_panel8_leaf16_fan2", Method::CAQR, 8, 8, 2},
    {"caqr_panel5_leaf5_fan4", Method::CAQR, 5, 0, 4},
};

/// Factors A with the QForms whose turn it is and expects the law of each.
template <class T>
void expect_law_in_turn(Context<Host>& ctx, const Scheme& scheme, MatrixView<const T> A, Index turn) {
    if (!factors_shape(scheme.method, A.rows, A.cols)) return;
    for (QForm q : in_turn(q_forms, turn)) {
        SCOPED_TRACE(shape_name(A.rows, A.cols) + " " + to_string(q));
        const QR<T> f = qr(ctx, A, scheme.options(A.cols, q));
        if (scheme.method != Method::Auto) {
            EXPECT_EQ(f.report().method, scheme.method);
        }
        expect_law(ctx, A, f, scheme.stages(A.rows, A.cols));
    }
}

// ---- classes of matrices -------------------------------------------------------------------------------------------

class QrOfTheGallery : public testing::TestWithParam<std::tuple<Gallery, Scheme>> {
protected:
    template <class T>
    void check() {
        const auto& [matrix_class, scheme] = GetParam();
        Context<Host> ctx(2);
        std::vector<std::pair<Index, Index>> shapes = {{45, 45}, {19, 50}, {60, 1}};
        if (!quick()) shapes.insert(shapes.end(), {{203, 37}, {64, 12}, {1, 20}});
        Index turn = static_cast<Index>(matrix_class);
        for (auto [m, n] : shapes)
            expect_law_in_turn<T>(ctx, scheme, generate<T>(matrix_class, m, n, m + n).view(), turn++);
    }
};

TEST_P(QrOfTheGallery, F32) { check<float>(); }
TEST_P(QrOfTheGallery, F64) { check<double>(); }

INSTANTIATE_TEST_SUITE_P(Every, QrOfTheGallery,
                         testing::Combine(testing::ValuesIn(gallery()), testing::ValuesIn(schemes)),
                         [](const auto& info) {
                             return to_string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
                         });

// ---- shapes --------------------------------------------------------------------------------------------------------

class QrOfShapes : public testing::TestWithParam<Scheme> {
protected:
    Context<Host> ctx{2};

    /// Every pair from LAPACK's list of sizes.
    template <class T>
    void check_every_pair() {
        Index turn = 0;
        for (Index m : {0, 1, 2, 3, 5, 10, 50})
            for (Index n : {0, 1, 2, 3, 5, 10, 50})
                expect_law_in_turn<T>(ctx, GetParam(), random_normal<T>(m, n, m * 100 + n).view(), turn++);
    }

    /// Widths around the multiples of vector lengths and of block sizes.
    template <class T>
    void check_widths() {
        std::vector<Index> widths = {1, 3, 4, 7, 8, 9, 15, 17, 31, 32, 33};
        if (!quick()) widths.insert(widths.end(), {47, 63, 64, 65, 100, 129});
        Index turn = 0;
        for (Index n : widths) {
            expect_law_in_turn<T>(ctx, GetParam(), random_normal<T>(n + 1, n, 2 * n + 1).view(), turn);
            expect_law_in_turn<T>(ctx, GetParam(), random_normal<T>(3 * n + 5, n, 4 * n + 5).view(), 2 + turn++);
        }
    }

    /// The bound does not contain m.
    template <class T>
    void check_tall() {
        // in f64 the checker's long double takes most of the time
        const Index m = quick() ? 3001 : std::is_same_v<T, double> && !every_combination() ? 10000 : 40000;
        Index turn = 0;
        for (Index n : {1, 33}) expect_law_in_turn<T>(ctx, GetParam(), random_normal<T>(m, n, n).view(), turn++);
        // Entries of one sign, so that the roundings of a long sum drift the same way.
        const Matrix<T> A = generate<T>(Gallery::Hilbert, m, 5);
        expect_law_in_turn<T>(ctx, GetParam(), A.view(), turn++);
        expect_law_in_turn<T>(ctx, GetParam(), filled<T>(m, 3, T(0.1)).view(), turn++);
    }

    /// Several panels of few rows, on both sides of the width from which on the columns to their right pass all of them
    /// at the end.
    template <class T>
    void check_wide() {
        Index turn = 0;
        for (auto [m, n] : {std::pair<Index, Index>{17, 200}, {40, 319}, {40, 320}, {130, 1041}})
            expect_law_in_turn<T>(ctx, GetParam(), random_normal<T>(m, n, m + n).view(), turn++);
    }

    /// A inside a larger leading dimension: neither A nor the padding changes.
    template <class T>
    void check_leading_dimension() {
        Index turn = 0;
        for (auto [m, n] : {std::pair<Index, Index>{83, 21}, {30, 30}, {7, 40}, {1, 1}})
            for (Index padding : {1, 5, 64}) {
                SCOPED_TRACE("padding " + std::to_string(padding));
                const Padded<T> A(random_normal<T>(m, n).view(), padding);
                const Matrix<T> before = copy<T>(A.view());
                expect_law_in_turn<T>(ctx, GetParam(), A.view(), turn++);
                EXPECT_TRUE(same_bits<T>(A.view(), before.view()));
                EXPECT_TRUE(A.padding_intact());
            }
    }
};

TEST_P(QrOfShapes, EveryPairOfSmallSizesF32) { check_every_pair<float>(); }
TEST_P(QrOfShapes, EveryPairOfSmallSizesF64) { check_every_pair<double>(); }
TEST_P(QrOfShapes, WidthsF32) { check_widths<float>(); }
TEST_P(QrOfShapes, WidthsF64) { check_widths<double>(); }
TEST_P(QrOfShapes, TallF32) { check_tall<float>(); }
TEST_P(QrOfShapes, TallF64) { check_tall<double>(); }
TEST_P(QrOfShapes, WideF32) { check_wide<float>(); }
TEST_P(QrOfShapes, WideF64) { check_wide<double>(); }
TEST_P(QrOfShapes, LeadingDimensionF32) { check_leading_dimension<float>(); }
TEST_P(QrOfShapes, LeadingDimensionF64) { check_leading_dimension<double>(); }

INSTANTIATE_TEST_SUITE_P(Every, QrOfShapes, testing::ValuesIn(schemes),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- trees ---------------------------------------------------------------------------------------------------------

struct Tree {
    Method method;
    Index fan_in;
};

/// Trees of several levels: any number of leaves (so that a level may end with one block alone), leaves of exactly n
/// rows, a last leaf shorter than n, m barely above n.
class QrOverTrees : public testing::TestWithParam<Tree> {
protected:
    template <class T>
    void check() {
        Context<Host> ctx(2);
        const auto [method, fan_in] = GetParam();
        const Index n = 7;
        Index turn = 0;
        for (Index leaf_rows : {n, n + 1, 2 * n + 3})
            for (Index leaves : {1, 2, 3, 4, 5, 8, 9, 17, 28})
                for (Index last : {Index(1), n - 1, n, leaf_rows}) {
                    ++turn;
                    const Index m = (leaves - 1) * leaf_rows + last;
                    if (!factors_shape(method, m, n)) continue;
                    const Index stages = tree_stages(m, leaf_rows, fan_in);
                    Options options = with(method);
                    options.method.set_tree({leaf_rows, fan_in});
                    // CAQR: the last panel is narrower than the others.
                    if (method == Method::CAQR) options.method.set_panel_width(3);
                    const Matrix<T> A = random_normal<T>(m, n, m);
                    // the four last leaves take turns at each number of leaves
                    for (QForm q : in_turn(q_forms, turn + turn / 4)) {
                        SCOPED_TRACE(shape_name(m, n) + " leaves of " + std::to_string(leaf_rows) + " rows, " +
                                     to_string(q));
                        options.q = q;
                        expect_law(ctx, A.view(), qr(ctx, A.view(), options), stages);
                    }
                }
    }
};

TEST_P(QrOverTrees, F32) { check<float>(); }
TEST_P(QrOverTrees, F64) { check<double>(); }

INSTANTIATE_TEST_SUITE_P(Every, QrOverTrees,
                         testing::Values(Tree{Method::TSQR, 0}, Tree{Method::TSQR, flat_tree}, Tree{Method::TSQR, 2},
                                         Tree{Method::TSQR, 4}, Tree{Method::TSQR, 3}, Tree{Method::TSQR, 16},
                                         Tree{Method::CAQR, 0}, Tree{Method::CAQR, flat_tree}, Tree{Method::CAQR, 2},
                                         Tree{Method::CAQR, 5}),
                         [](const auto& info) {
                             const Tree& tree = info.param;
                             const std::string shape = tree.fan_in == flat_tree ? "_flat"
                                                       : tree.fan_in > 0        ? "_fan" + std::to_string(tree.fan_in)
                                                                                : "";
                             return to_string(tree.method) + shape;
                         });

// ---- what the rest of qr.hpp promises ------------------------------------------------------------------------------

template <class T>
class QrInterface : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(QrInterface, Scalars);

constexpr Method householder_methods[] = {Method::BlockedHouseholder, Method::TSQR, Method::CAQR};

TYPED_TEST(QrInterface, CholeskyOfAWideMatrixIsInvalid) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(9, 31);
    for (Method method : {Method::CholeskyQR2, Method::RandomizedCholeskyQR}) {
        SCOPED_TRACE(to_string(method));
        EXPECT_FALSE(factors_shape(method, 9, 31));
        EXPECT_THROW(qr(this->ctx, A.view(), with(method)), InvalidArgument);
    }
}

/// Reconstruction and the m×m Q of an explicit one, where the signed LU of the reconstruction is ill-conditioned: as
/// the whole factorization and, with m >= 64 n, as a tall panel of the blocked one.
TYPED_TEST(QrInterface, ABasisWhoseSignedLuGrowsIsFactoredAsAnyOther) {
    using T = TypeParam;
    Index turn = 0;
    for (auto [m, n] : {std::pair<Index, Index>{576, 64}, {1440, 160}, {64 * 64, 64}}) {
        const Matrix<T> A = generate<T>(Gallery::OrthogonalGrowth, m, n);
        for (Method method :
             {Method::Auto, Method::TSQR, Method::CAQR, Method::BlockedHouseholder, Method::CholeskyQR2})
            for (QForm q : in_turn(q_forms, turn++)) {
                SCOPED_TRACE(case_name(m, n, method, q));
                Options options = with(method, q);
                if (method == Method::BlockedHouseholder) options.method.set_panel_width(n);
                expect_law(this->ctx, A.view(), qr(this->ctx, A.view(), options));
            }
    }
}

/// R alone carries κ·u, never κ²·u.
TYPED_TEST(QrInterface, LongSumsOfRoundingErrorsOfOneSignObeyTheLaw) {
    using T = TypeParam;
    const Index m = quick() ? 100000 : 2000000;
    Context<Host> ctx;
    for (Method method : {Method::CholeskyQR2, Method::TSQR, Method::BlockedHouseholder}) {
        SCOPED_TRACE(to_string(method));
        const Matrix<T> A = filled<T>(m, 1, T(1));
        const Matrix<T> Q = qr(ctx, A.view(), with(method)).form_q(ctx);
        EXPECT_LE(orthogonality<T>(ctx, Q.view()), law * unit_roundoff<T>);
    }
}

/// Columns of 32 KiB and of nearly as much: the updates work on a copy of V.
TYPED_TEST(QrInterface, ColumnsThatCollideInACacheObeyTheLaw) {
    using T = TypeParam;
    const Index n = 150, page = Index(32768) / Index(sizeof(T));
    for (const Index m : {page - 9, page, 2 * page + 7}) {
        if (quick() && m != page) continue;
        const Matrix<T> A = random_normal<T>(m, n);
        const QR<T> f = qr(this->ctx, A.view(), with(Method::BlockedHouseholder));
        const Matrix<T> Q = f.form_q(this->ctx), R = f.r();
        EXPECT_LE(orthogonality<T>(this->ctx, Q.view()), law * n * unit_roundoff<T>) << m;
        EXPECT_LE(residual<T>(this->ctx, A.view(), Q.view(), R.view()), law * n * unit_roundoff<T>) << m;
    }
}

/// Every row is alike and rounds alike: roundings of one sign in V and in T.
TYPED_TEST(QrInterface, ConstantMatricesObeyTheLaw) {
    using T = TypeParam;
    Context<Host> ctx;
    for (const Index m : {4096, 8192})
        for (const Index n : {8, 12, 16})
            for (const Method method : unconditional_methods) {
                const Matrix<T> A = filled<T>(m, n, T(0.1));
                const Matrix<T> Q = qr(ctx, A.view(), with(method)).form_q(ctx);
                EXPECT_LE(orthogonality<T>(ctx, Q.view()), law * static_cast<double>(n) * unit_roundoff<T>)
                    << shape_name(m, n) << " " << to_string(method);
            }
}

TYPED_TEST(QrInterface, RAloneIsTheFactorOfAndNotOfTheGramMatrix) {
    using T = TypeParam;
    for (Index m : {60, 5000}) {
        const Matrix<T> A = with_condition<T>(m, 12, std::sqrt(0.1 / unit_roundoff<T>));
        for (Method method : unconditional_methods) {
            SCOPED_TRACE(shape_name(m, 12) + " " + to_string(method));
            const QR<T> f = qr(this->ctx, A.view(), with(method, QForm::None));
            EXPECT_LE(implicit_orthogonality_error<T>(A.view(), f.r().view()), law);
        }
    }
}

TYPED_TEST(QrInterface, BlocksOfQAreBlocksOfQ) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{61, 14}, {20, 20}, {9, 31}, {5, 0}}) {
        const Index k = std::min(m, n);
        const Matrix<T> A = random_normal<T>(m, n);
        for (Method method : unconditional_methods)
            for (QForm q : q_forms_with_q) {
                if (!factors_shape(method, m, n)) continue;
                const QR<T> f = qr(this->ctx, A.view(), with(method, q));
                Matrix<T> Q = identity<T>(m);
                f.apply_q(this->ctx, Side::Left, Op::None, Q.view());
                const Range row_ranges[] = {{0, m}, {0, 1}, {m - 1, m}, {m / 3, m / 2}, {m / 2, m / 2}};
                // Inside the thin part, across its edge, beyond it, empty.
                const Range col_ranges[] = {{0, m}, {0, k}, {k / 3, k / 2}, {k / 2, (k + m + 1) / 2}, {k, m}, {k, k}};
                for (Range rows : row_ranges)
                    for (Range cols : col_ranges) {
                        SCOPED_TRACE(case_name(m, n, method, q) + " Q(" + std::to_string(rows.begin) + ":" +
                                     std::to_string(rows.end) + ", " + std::to_string(cols.begin) + ":" +
                                     std::to_string(cols.end) + ")");
                        const Matrix<T> block = f.q_block(this->ctx, rows, cols);
                        EXPECT_LE(difference<T>(block.view(), Q.view().block(rows, cols), k,
                                                std::sqrt(double(std::min(rows.size(), cols.size())))),
                                  law);
                    }
            }
    }
}

TYPED_TEST(QrInterface, BlocksOutsideOfQAreInvalid) {
    using T = TypeParam;
    for (QForm q : q_forms_with_q) {
        const QR<T> f = qr(this->ctx, random_normal<T>(12, 4).view(), with(Method::Auto, q));
        const Range all{0, 12};
        for (Range bad : {Range{0, 13}, Range{-1, 3}, Range{5, 4}, Range{13, 13}}) {
            EXPECT_THROW(f.q_block(this->ctx, bad, all), InvalidArgument);
            EXPECT_THROW(f.q_block(this->ctx, all, bad), InvalidArgument);
        }
    }
}

TYPED_TEST(QrInterface, TakeQIsFormQ) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{300, 14}, {20, 20}, {9, 31}, {3, 0}, {0, 3}}) {
        const Index k = std::min(m, n);
        const Matrix<T> A = random_normal<T>(m, n);
        for (Method method : unconditional_methods)
            for (QForm q : q_forms_with_q) {
                if (!factors_shape(method, m, n)) continue;
                SCOPED_TRACE(case_name(m, n, method, q));
                QR<T> f = qr(this->ctx, A.view(), with(method, q));
                const Matrix<T> formed = f.form_q(this->ctx), again = f.form_q(this->ctx);
                EXPECT_TRUE(same_bits<T>(formed.view(), again.view())) << "form_q changed what it formed Q from";
                const Matrix<T> taken = std::move(f).take_q(this->ctx);
                EXPECT_LE(difference<T>(taken.view(), formed.view(), k, std::sqrt(double(k))), law);
            }
    }
}

TYPED_TEST(QrInterface, TakeThinIsRAndTakeQ) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{300, 14}, {20, 20}, {9, 31}, {3, 0}, {0, 3}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (Method method : all_methods)
            for (QForm q : {QForm::None, QForm::Any, QForm::Explicit, QForm::Reflectors}) {
                if (!factors_shape(method, m, n) || (is_gram_schmidt(method) && q == QForm::Reflectors)) continue;
                SCOPED_TRACE(case_name(m, n, method, q));
                QR<T> f = qr(this->ctx, A.view(), with(method, q)), g = qr(this->ctx, A.view(), with(method, q));
                const Matrix<T> R = f.r(this->ctx);
                const ThinQR<T> thin = std::move(g).take_thin(this->ctx);
                EXPECT_TRUE(same_bits<T>(thin.R.view(), R.view()));
                EXPECT_THROW(g.r(this->ctx), InvalidArgument);
                EXPECT_THROW((void)std::move(g).take_thin(this->ctx), InvalidArgument);
                if (q == QForm::None) {
                    EXPECT_TRUE(thin.Q.view().empty());
                } else {
                    EXPECT_TRUE(same_bits<T>(thin.Q.view(), std::move(f).take_q(this->ctx).view()));
                }
            }
    }
}

TYPED_TEST(QrInterface, TakeQWithoutQIsInvalid) {
    using T = TypeParam;
    QR<T> f = qr(this->ctx, random_normal<T>(12, 4).view(), with(Method::Auto, QForm::None));
    EXPECT_THROW(std::move(f).take_q(this->ctx), InvalidArgument);
}

TYPED_TEST(QrInterface, ApplyQTakesAnyNumberOfColumns) {
    using T = TypeParam;
    const Index m = 57, n = 13;
    const Matrix<T> A = random_normal<T>(m, n);
    for (Method method : unconditional_methods)
        for (QForm q : q_forms_with_q) {
            const QR<T> f = qr(this->ctx, A.view(), with(method, q));
            Matrix<T> Q = identity<T>(m);
            f.apply_q(this->ctx, Side::Left, Op::None, Q.view());
            for (Index p : {0, 1, 2, 13, 31, 64, 200})
                for (Side side : {Side::Left, Side::Right})
                    for (Op op : {Op::None, Op::Transpose}) {
                        SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(q) + " p = " + std::to_string(p) +
                                     (side == Side::Left ? " left" : " right") + (op == Op::None ? " Q" : " Qᵀ"));
                        const Matrix<T> C = side == Side::Left ? random_normal<T>(m, p) : random_normal<T>(p, m);
                        Padded<T> X(C.view());
                        f.apply_q(this->ctx, side, op, X.view());
                        EXPECT_LE(product_error<T>(side, op, Q.view(), C.view(), X.view(), n), law);
                        EXPECT_TRUE(X.padding_intact());
                    }
        }
}

TYPED_TEST(QrInterface, ApplyQRefusesAShapeThatDoesNotFit) {
    using T = TypeParam;
    for (QForm q : q_forms_with_q) {
        const QR<T> f = qr(this->ctx, random_normal<T>(12, 4).view(), with(Method::Auto, q));
        Matrix<T> C = filled<T>(11, 13, 1);
        EXPECT_THROW(f.apply_q(this->ctx, Side::Left, Op::None, C.view()), InvalidArgument);
        EXPECT_THROW(f.apply_q(this->ctx, Side::Right, Op::Transpose, C.view()), InvalidArgument);
        EXPECT_TRUE(same_bits<T>(C.view(), filled<T>(11, 13, 1).view()));
    }
}

TYPED_TEST(QrInterface, InPlaceUnderAPlanIsTheCopyingCall) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{300, 21}, {40, 40}, {9, 31}, {0, 2}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (Method method : unconditional_methods)
            for (QForm q : q_forms) {
                if (!factors_shape(method, m, n)) continue;
                SCOPED_TRACE(case_name(m, n, method, q));
                const Options options = with(method, q);
                const Plan plan = plan_qr<T>(this->ctx, m, n, options);
                const QR<T> in_place = qr(this->ctx, copy<T>(A.view()), plan);
                expect_law(this->ctx, A.view(), in_place);
                const QR<T> copying = qr(this->ctx, A.view(), options);
                EXPECT_TRUE(same_bits<T>(in_place.r().view(), copying.r().view()));
            }
    }
}

TYPED_TEST(QrInterface, APlanForAnotherShapeOrTypeIsInvalid) {
    using T = TypeParam;
    using Other = std::conditional_t<std::is_same_v<T, float>, double, float>;
    const Matrix<T> A = random_normal<T>(30, 5);
    EXPECT_THROW(qr(this->ctx, copy<T>(A.view()), plan_qr<T>(this->ctx, 31, 5)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, copy<T>(A.view()), plan_qr<T>(this->ctx, 30, 6)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, copy<T>(A.view()), plan_qr<Other>(this->ctx, 30, 5)), InvalidArgument);
}

/// Blocks larger than the matrix mean one block.
TYPED_TEST(QrInterface, BlockSizesMayBeHuge) {
    using T = TypeParam;
    const Index huge = std::numeric_limits<Index>::max();
    for (auto [m, n] : {std::pair<Index, Index>{300, 14}, {20, 20}, {9, 31}, {5, 0}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (Method method : householder_methods)
            for (QForm q : q_forms) {
                if (!factors_shape(method, m, n)) continue;
                SCOPED_TRACE(case_name(m, n, method, q));
                Options options = with(method, q);
                options.method.set_tree({.fan_in = huge - 1});
                expect_law(this->ctx, A.view(), qr(this->ctx, A.view(), options));
                options.method.set_tree({huge, huge - 1});
                if (method != Method::TSQR) options.method.set_panel_width(huge);
                expect_law(this->ctx, A.view(), qr(this->ctx, A.view(), options));
            }
    }
}

TYPED_TEST(QrInterface, RowMajorInputGivesTheBitsOfItsColumnMajorCopy) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{500, 21}, {33, 33}, {9, 31}, {1, 1}, {0, 4}, {4, 0}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (Index padding : {0, 3}) {
            // Column j of Aᵀ with its leading dimension is row j of A with its.
            const Padded<T> At(transposed<T>(A.view()).view(), padding);
            const RowMajorView<const T> rows{At.view().data, m, n, At.view().ld};
            for (Method method : unconditional_methods)
                for (QForm q : q_forms) {
                    if (!factors_shape(method, m, n)) continue;
                    SCOPED_TRACE(case_name(m, n, method, q));
                    const Options options = with(method, q);
                    const QR<T> f = qr(this->ctx, rows, options);
                    EXPECT_TRUE(same_bits<T>(f.r().view(), qr(this->ctx, A.view(), options).r().view()));
                    expect_law(this->ctx, A.view(), f);
                    EXPECT_TRUE(same_bits<T>(At.view(), transposed<T>(A.view()).view()));
                    EXPECT_TRUE(At.padding_intact());
                }
        }
    }
}

/// A factorization of NaN leaves NaN in the workspace; none of it may reach the next one.
TYPED_TEST(QrInterface, StaleWorkspaceDoesNotLeak) {
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (auto [m, n] : {std::pair<Index, Index>{700, 30}, {90, 90}, {20, 70}})
        for (Method method : householder_methods)
            for (QForm q : q_forms) {
                if (!factors_shape(method, m, n)) continue;
                SCOPED_TRACE(case_name(m, n, method, q));
                Context<Host> fresh(2), stale(2);
                Options options = with(method, q);
                options.check_finite = false;
                const Matrix<T> A = random_normal<T>(m, n), poison = filled<T>(m, n, nan);
                const QR<T> poisoned = qr(stale, poison.view(), options);
                if (q != QForm::None) poisoned.form_q(stale);
                const QR<T> f = qr(stale, A.view(), options), g = qr(fresh, A.view(), options);
                EXPECT_TRUE(same_bits<T>(f.r().view(), g.r().view()));
                if (q == QForm::None) continue;
                EXPECT_TRUE(same_bits<T>(f.form_q(stale).view(), g.form_q(fresh).view()));
            }
}

TYPED_TEST(QrInterface, TheReportTellsWhatWasMeasuredAndNothingElse) {
    using T = TypeParam;
    const Index m = 400, n = 20;
    const Matrix<T> A = random_normal<T>(m, n);
    for (Method method : unconditional_methods)
        for (QForm q : q_forms_with_q)
            for (bool verify : {false, true}) {
                SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(q) + (verify ? " verify" : ""));
                Options options = with(method, q);
                options.verify = verify;
                const bool in_place = q == QForm::Any;
                const QR<T> f = in_place ? qr(this->ctx, copy<T>(A.view()), plan_qr<T>(this->ctx, m, n, options))
                                         : qr(this->ctx, A.view(), options);
                const Report& report = f.report();
                EXPECT_NE(report.method, Method::Auto);
                EXPECT_EQ(report.fell_back, report.method != f.plan().method);
                EXPECT_GT(report.seconds, 0);
                EXPECT_GT(report.flops, 0);
                if (!report.fell_back) {
                    EXPECT_EQ(report.gram_departure >= 0, is_conditional(report.method));
                }
                if (verify) {
                    const Matrix<T> Q = f.form_q(this->ctx);
                    const double k_u = n * unit_roundoff<T>;
                    EXPECT_NEAR(report.orthogonality / k_u, orthogonality_error<T>(Q.view(), n), 1e-3 * law);
                    EXPECT_NEAR(report.residual / k_u, residual_error<T>(A.view(), Q.view(), f.r().view()), 1e-3 * law);
                } else {
                    EXPECT_LT(report.orthogonality, 0);
                    EXPECT_LT(report.residual, 0);
                }
            }
}

TYPED_TEST(QrInterface, AFactorizationMoves) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(40, 9), B = random_normal<T>(7, 3);
    QR<T> f = qr(this->ctx, A.view()), g = qr(this->ctx, B.view());
    QR<T> moved = std::move(f);
    expect_law<T>(this->ctx, A.view(), moved);
    g = std::move(moved);
    expect_law<T>(this->ctx, A.view(), g);
}

// ---- Scales --------------------------------------------------------------------------------------------------------

template <class T>
class QrOfScales : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(QrOfScales, Scalars);

/// 2^e A = Q (2^e R) to the bit, by the method that was asked for: whether columns are scaled first or not is not seen.
TYPED_TEST(QrOfScales, APowerOfTwoIsOfNoAccount) {
    using T = TypeParam;
    using Limits = std::numeric_limits<T>;
    const Matrix<T> A = random_normal<T>(60, 6);
    std::vector<int> exponents;
    for (int e = 60 + Limits::min_exponent; e < Limits::max_exponent - 10; e += std::is_same_v<T, double> ? 17 : 2) {
        exponents.push_back(e);
    }
    for (int at : {Scalar<T>::safe_exponent, Limits::max_exponent / 2}) {
        for (int e = at - 4; e <= at + 2; ++e) exponents.insert(exponents.end(), {e, -e});
    }
    for (const Method method :
         {Method::Auto, Method::BlockedHouseholder, Method::TSQR, Method::CAQR, Method::CholeskyQR2,
          Method::RandomizedCholeskyQR, Method::ModifiedGramSchmidt, Method::ClassicalGramSchmidt}) {
        const Options options = with(method, QForm::Explicit);
        const QR<T> expected = qr(this->ctx, A.view(), options);
        const Matrix<T> Q = expected.form_q(this->ctx), R = expected.r(this->ctx);
        for (const int e : exponents) {
            SCOPED_TRACE(std::string(to_string(method)) + " times 2^" + std::to_string(e));
            const auto scaled = [e](const Matrix<T>& B) {
                Matrix<T> C = copy<T>(B.view());
                for (Index j = 0; j < C.cols(); ++j) {
                    for (Index i = 0; i < C.rows(); ++i) C(i, j) = std::ldexp(C(i, j), e);
                }
                return C;
            };
            const QR<T> f = qr(this->ctx, scaled(A).view(), options);
            EXPECT_EQ(f.report().method, expected.report().method);
            EXPECT_TRUE(same_bits<T>(f.form_q(this->ctx).view(), Q.view()));
            EXPECT_TRUE(same_bits<T>(f.r(this->ctx).view(), scaled(R).view()));
        }
    }
}

TEST(QrOfAMatrix, HasTheBitsOfItsView) {
    Context<Host> ctx;
    const Matrix<double> A = random_normal<double>(40, 7);
    const Options explicit_q{.q = QForm::Explicit};
    const auto expected = qr(ctx, A.view(), explicit_q).take_thin(ctx),
               of_matrix = qr(ctx, A, explicit_q).take_thin(ctx);
    const auto [Q, R] = qr(A);
    for (const Matrix<double>* const found : {&of_matrix.Q, &Q})
        EXPECT_TRUE(same_bits<double>(found->view(), expected.Q.view()));
    for (const Matrix<double>* const found : {&of_matrix.R, &R})
        EXPECT_TRUE(same_bits<double>(found->view(), expected.R.view()));
}

}  // namespace
}  // namespace quoin::test
