// Plans are pure values: what they promise, what they refuse, and that no size overflows them.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "algorithms/sampled_sum.hpp"
#include "cases.hpp"
#include "quoin/file_qr.hpp"
#include "quoin/options.hpp"
#include "quoin/out_of_core.hpp"

namespace quoin::test {
namespace {

constexpr std::pair<Index, Index> shapes[] = {{1000000, 192}, {40000, 33}, {4000000, 8}, {8192, 512},
                                              {4000, 4000},   {100, 3000}, {10, 10},     {1, 1}};

template <class T>
class PlanOf : public testing::Test {
protected:
    Context<Host> ctx{2};

    Plan plan(Index m, Index n, Options options = {}) { return plan_qr<T>(ctx, m, n, options); }

    void expect_invalid(const std::string& named, Index m, Index n, Options options) {
        try {
            plan(m, n, options);
            ADD_FAILURE() << named << " accepted";
        } catch (const InvalidArgument& e) {
            EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
            EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << e.what();
        }
    }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(PlanOf, Types);

// One panel of all columns costs twice the flops of LAPACK's blocked reflectors, and is slower on one core.
TYPED_TEST(PlanOf, LapacksFormatIsOnePanelOnlyWhereFewColumnsAreVeryTall) {
    const auto method = [&](Index m, Index n, QForm q) { return this->plan(m, n, {.q = q}).method; };
    for (auto [m, n] :
         {std::pair<Index, Index>{8192, 512}, {5000, 300}, {12345, 678}, {20000, 500}, {2000, 64}, {1000000, 129}}) {
        EXPECT_EQ(method(m, n, QForm::Reflectors), Method::BlockedHouseholder) << shape_name(m, n);
        EXPECT_EQ(method(m, n, QForm::Explicit), Method::CholeskyQR2) << shape_name(m, n);
    }
    for (auto [m, n] : {std::pair<Index, Index>{300000, 16}, {8192, 128}}) {
        EXPECT_EQ(method(m, n, QForm::Reflectors), Method::CholeskyQR2) << shape_name(m, n);
    }
}

TYPED_TEST(PlanOf, AShapeIsAlwaysTheSame) {
    for (auto [m, n] : shapes)
        for (QForm q : q_forms) {
            const Plan a = this->plan(m, n, {.q = q}), b = this->plan(m, n, {.q = q});
            EXPECT_EQ(to_string(a), to_string(b));
            EXPECT_EQ(a.method, b.method);
            EXPECT_EQ(a.fallback, b.fallback);
            EXPECT_EQ(a.panel_width, b.panel_width);
            EXPECT_EQ(a.inner_block, b.inner_block);
            EXPECT_EQ(a.leaf_rows, b.leaf_rows);
            EXPECT_EQ(a.domain_leaves, b.domain_leaves);
            EXPECT_EQ(a.fan_in, b.fan_in);
            EXPECT_EQ(a.reconstruct_rows, b.reconstruct_rows);
            EXPECT_EQ(a.workspace_bytes, b.workspace_bytes);
            EXPECT_EQ(a.flops, b.flops);
            EXPECT_EQ(a.bytes_moved, b.bytes_moved);
        }
}

TYPED_TEST(PlanOf, PanelsOnTheHostAreOfBlockedHouseholder) {
    Options options;
    options.study.panels = PanelDevice::Host;
    for (auto [m, n] : shapes) {
        const Plan plan = this->plan(m, n, options);
        EXPECT_EQ(plan.method, Method::BlockedHouseholder);
        EXPECT_EQ(plan.panel, PanelDevice::Device) << "the matrix is on the host";
        Options usual = options;
        usual.study.panels = PanelDevice::Auto;
        usual.method = Method::BlockedHouseholder;
        EXPECT_EQ(to_string(plan), to_string(this->plan(m, n, usual)));
    }
    for (Method method : {Method::TSQR, Method::CAQR, Method::CholeskyQR2, Method::ShiftedCholeskyQR3}) {
        options.method = method;
        this->expect_invalid("panels on the host", 1000, 10, options);
    }
    options.method = Method::Auto;
    options.tree.fan_in = 4;
    this->expect_invalid("panels on the host", 1000, 10, options);
}

TYPED_TEST(PlanOf, AutoNamesAMethodAndConditionalMethodsHaveAFallback) {
    for (auto [m, n] : shapes)
        for (QForm q : q_forms) {
            SCOPED_TRACE(shape_name(m, n) + " " + to_string(q));
            const Plan p = this->plan(m, n, {.q = q});
            EXPECT_EQ(p.rows, m);
            EXPECT_EQ(p.cols, n);
            EXPECT_EQ(p.element_bytes, int(sizeof(TypeParam)));
            EXPECT_EQ(p.q, q);
            EXPECT_NE(p.method, Method::Auto);
            EXPECT_EQ(p.fallback != Method::Auto, is_conditional(p.method));
            EXPECT_FALSE(is_conditional(p.fallback));
        }
}

TYPED_TEST(PlanOf, AMethodAskedForByNameIsTaken) {
    for (auto [m, n] : shapes) {
        if (m < n) continue;
        for (Method method : named_methods)
            for (QForm q : q_forms) {
                SCOPED_TRACE(case_name(m, n, method, q));
                const Plan p = this->plan(m, n, {.method = method, .q = q});
                EXPECT_EQ(p.method, method);
                EXPECT_EQ(p.fallback, Method::Auto);
                EXPECT_EQ(p.q, q);
            }
    }
}

TYPED_TEST(PlanOf, BlockSizesAskedForAreTaken) {
    const Plan caqr = this->plan(5000, 64, {.method = Method::CAQR, .panel_width = 16, .tree = {48, 3}});
    EXPECT_EQ(caqr.panel_width, 16);
    EXPECT_EQ(caqr.leaf_rows, 48);
    EXPECT_EQ(caqr.fan_in, 3);
    const Plan tsqr = this->plan(5000, 20, {.method = Method::TSQR, .tree = {.leaf_rows = 20}});
    EXPECT_EQ(tsqr.leaf_rows, 20);
    const Plan householder = this->plan(5000, 64, {.method = Method::BlockedHouseholder, .panel_width = 24});
    EXPECT_EQ(householder.panel_width, 24);
}

TYPED_TEST(PlanOf, AFanInIsTakenAndAFlatTreeIsOneDomain) {
    const auto tree = [&](Index fan_in) {
        return this->plan(50000, 20, {.method = Method::TSQR, .tree = {100, fan_in}});
    };
    for (const Index fan_in : {2, 4, 7}) {
        EXPECT_EQ(tree(fan_in).fan_in, fan_in);
        EXPECT_EQ(tree(fan_in).domain_leaves, 1);
    }
    EXPECT_EQ(tree(flat_tree).domain_leaves, 500);
}

TYPED_TEST(PlanOf, NegativeSizesAreInvalid) {
    EXPECT_THROW(this->plan(-1, 3), InvalidArgument);
    EXPECT_THROW(this->plan(3, -1), InvalidArgument);
}

TYPED_TEST(PlanOf, OptionsOutsideTheirDomainAreNamed) {
    this->expect_invalid("panel_width", 100, 20, {.panel_width = -1});
    this->expect_invalid("leaf_rows", 100, 20, {.tree = {.leaf_rows = -1}});
    this->expect_invalid("fan_in", 100, 20, {.tree = {.fan_in = -2}});
    for (Method method : {Method::TSQR, Method::CAQR})
        this->expect_invalid("fan_in", 100, 20, {.method = method, .tree = {.fan_in = 1}});
    this->expect_invalid("leaf_rows", 100, 20, {.method = Method::CAQR, .panel_width = 16, .tree = {.leaf_rows = 15}});
    this->expect_invalid("leaf_rows", 100, 20, {.method = Method::TSQR, .tree = {.leaf_rows = 19}});
    for (Arithmetic arithmetic : {Arithmetic::TF32, Arithmetic::FP16, Arithmetic::BF16, Arithmetic::Corrected})
        for (Method method : {Method::Auto, Method::BlockedHouseholder, Method::ClassicalGramSchmidt})
            this->expect_invalid("arithmetic", 5000, 5000, {.method = method, .arithmetic = arithmetic});
    EXPECT_EQ(this->plan(5000, 5000, {.arithmetic = Arithmetic::Auto}).arithmetic, Arithmetic::Native);
    EXPECT_EQ(this->plan(5000, 5000, {.arithmetic = Arithmetic::Auto}).products, Arithmetic::Native);
}

TYPED_TEST(PlanOf, CostsGrowLinearlyWithTheRowsOfATallMatrix) {
    for (Method method : named_methods)
        for (QForm q : q_forms) {
            SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(q));
            const Options options{.method = method, .q = q};
            const Plan once = this->plan(1000000, 64, options), twice = this->plan(2000000, 64, options);
            // 2mn² − 2n³/3 is the least that R costs.
            EXPECT_GE(once.flops, 0.99 * 2e6 * 64 * 64);
            EXPECT_NEAR(twice.flops / once.flops, 2, 0.02);
            EXPECT_NEAR(twice.bytes_moved / once.bytes_moved, 2, 0.02);
            // Every method reads A once at least.
            EXPECT_GE(once.bytes_moved, 1e6 * 64 * sizeof(TypeParam));
        }
}

// A panel of CholeskyQR2 reads A for its Gram matrix, then reads it and writes Q₁ where Q is wanted, then Q; a tree reads A once.
TYPED_TEST(PlanOf, BytesMovedArePassesOverATallMatrix) {
    struct Case {
        Method method;
        QForm q;
        double passes;
    };
    const double A_bytes = 1e6 * 32 * sizeof(TypeParam);
    for (const auto& [method, q, passes] : {Case{Method::CholeskyQR2, QForm::None, 2},
                                            {Method::CholeskyQR2, QForm::Explicit, 5},
                                            {Method::ShiftedCholeskyQR3, QForm::None, 5},
                                            {Method::ShiftedCholeskyQR3, QForm::Explicit, 7},
                                            {Method::TSQR, QForm::None, 1},
                                            {Method::TSQR, QForm::Explicit, 4},
                                            {Method::BlockedHouseholder, QForm::None, 2},
                                            {Method::BlockedHouseholder, QForm::Explicit, 4}}) {
        SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(q));
        const Plan p = this->plan(1000000, 32, {.method = method, .q = q});
        EXPECT_EQ(p.bytes_moved, passes * A_bytes);
        EXPECT_LE(p.workspace_bytes, 0.1 * A_bytes);
    }
}

TYPED_TEST(PlanOf, NoSizeOverflows) {
    const Index huge = Index(1) << 40;
    for (auto [m, n] : {std::pair<Index, Index>{huge, 1024}, {Index(1) << 33, 3}, {1 << 20, 1 << 20}})
        for (QForm q : q_forms) {
            SCOPED_TRACE(shape_name(m, n) + " " + to_string(q));
            const Plan p = this->plan(m, n, {.q = q});
            EXPECT_TRUE(std::isfinite(p.flops));
            EXPECT_GE(p.flops, 0.6 * double(m) * double(n) * double(n));
            EXPECT_TRUE(std::isfinite(p.bytes_moved));
            EXPECT_GE(p.bytes_moved, double(m) * double(n) * sizeof(TypeParam));
            EXPECT_TRUE(std::isfinite(p.workspace_bytes));
            EXPECT_GE(p.workspace_bytes, 0);
        }
}

TYPED_TEST(PlanOf, SizesThat64BitsDoNotCountAreRefused) {
    using T = TypeParam;
    const Index huge = Index(1000000000) * 1000000000, most = std::numeric_limits<Index>::max();
    for (auto [m, n] : {std::pair<Index, Index>{huge, huge}, {huge, 10}, {10, huge}, {most, 1}, {-1, 3}, {3, -1}}) {
        SCOPED_TRACE(shape_name(m, n));
        for (Method method : named_methods) {
            EXPECT_THROW(this->plan(m, n, {.method = method}), InvalidArgument);
        }
        EXPECT_THROW((plan_out_of_core<T, Host>(m, n, {.memory_bytes = 1e10})), InvalidArgument);
        EXPECT_THROW((plan_file_qr<T, Host>(this->ctx, m, n, {})), InvalidArgument);
        EXPECT_THROW((Matrix<T>(m, n)), InvalidArgument);
    }
}

// as large as 64 bits count them: what would be listed panel by panel takes hours, and all memory
TYPED_TEST(PlanOf, EverySizeIsPlannedAtOnce) {
    using T = TypeParam;
    const Index n = Index(1) << 30, m = std::numeric_limits<Index>::max() / Index(sizeof(T));
    for (const Options& options :
         {Options{}, Options{.method = Method::BlockedHouseholder, .panel_width = 1}, Options{.method = Method::CAQR},
          Options{.method = Method::CAQR, .panel_width = 1, .tree = {.leaf_rows = 1}},
          Options{.full_t = FullTOptions{}}, Options{.method = Method::ModifiedGramSchmidt, .panel_width = 1}}) {
        const Plan square = this->plan(n - 1, n - 1, options);
        SCOPED_TRACE(to_string(square));
        const double cube = std::pow(static_cast<double>(n), 3);
        EXPECT_GE(square.flops, 1.33 * cube);
        EXPECT_LE(square.flops, 5 * cube);
        EXPECT_TRUE(std::isfinite(square.bytes_moved) && std::isfinite(square.workspace_bytes));
        EXPECT_GE(this->plan(m, 1, options).flops, static_cast<double>(m));
    }
    EXPECT_GE(this->plan(1, m).bytes_moved, static_cast<double>(m));
    EXPECT_GE(this->plan(m, 1, {.method = Method::TSQR, .tree = {1, 10000000000}}).flops, 2.0 * m);
    for (const OutOfCoreMethod method :
         {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, OutOfCoreMethod::Blocking}) {
        const OutOfCorePlan beyond =
            plan_out_of_core<T, Host>(n - 1, n - 1, {.method = method, .memory_bytes = 0x1p37});
        EXPECT_GE(beyond.flops, 1.3 * std::pow(static_cast<double>(n), 3));
        EXPECT_GT(beyond.seconds, beyond.bytes_in / 1e12);
    }
    EXPECT_GE(plan_file_qr<T>(this->ctx, n - 1, n - 1, {.memory = 0x1p37}).flops,
              1.3 * std::pow(static_cast<double>(n), 3));
}

/// Σ i² by groups, against its closed form.
TEST(SampledSum, IsExactUpToManyTermsAndCloseBeyond) {
    for (const Index count :
         {Index(0), Index(1), Index(2), Index(4095), Index(4096), Index(4097), Index(1000003), Index(1) << 40}) {
        double terms = 0, squares = 0, weights = 0;
        for_each_sampled(count, [&](Index i, double weight) {
            ++terms;
            weights += weight;
            squares += weight * static_cast<double>(i) * static_cast<double>(i);
        });
        const double n = static_cast<double>(count), expected = (n - 1) * n * (2 * n - 1) / 6;
        EXPECT_EQ(weights, n);
        EXPECT_LE(terms, 4096);
        EXPECT_NEAR(squares, expected, count <= 4096 ? 1e-12 * expected : 1e-3 * expected);
    }
}

TYPED_TEST(PlanOf, NothingIsPlannedForNothing) {
    for (auto [m, n] : {std::pair<Index, Index>{0, 0}, {0, 5}, {5, 0}})
        for (QForm q : q_forms) {
            const Plan p = this->plan(m, n, {.q = q});
            EXPECT_EQ(p.flops, 0);
            EXPECT_NE(p.method, Method::Auto);
        }
}

TYPED_TEST(PlanOf, TheParagraphNamesTheMethodAndTheShape) {
    for (Method method : named_methods) {
        const std::string text = to_string(this->plan(40000, 33, {.method = method}));
        EXPECT_NE(text.find(to_string(method)), std::string::npos) << text;
        EXPECT_NE(text.find("40000"), std::string::npos) << text;
        EXPECT_NE(text.find("33"), std::string::npos) << text;
    }
}

TEST(Names, AreThoseOfTheDocumentation) {
    EXPECT_STREQ(to_string(Method::Auto), "auto");
    EXPECT_STREQ(to_string(Method::BlockedHouseholder), "householder");
    EXPECT_STREQ(to_string(Method::TSQR), "tsqr");
    EXPECT_STREQ(to_string(Method::CAQR), "caqr");
    EXPECT_STREQ(to_string(Method::CholeskyQR2), "cholesky-qr2");
    EXPECT_STREQ(to_string(Method::ShiftedCholeskyQR3), "shifted-cholesky-qr3");
    EXPECT_STREQ(to_string(QForm::Any), "any");
    EXPECT_STREQ(to_string(QForm::None), "none");
    EXPECT_STREQ(to_string(QForm::Explicit), "explicit");
    EXPECT_STREQ(to_string(QForm::Reflectors), "reflectors");
}

}  // namespace
}  // namespace quoin::test
