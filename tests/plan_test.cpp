// Plans are pure values: what they promise, what they refuse, and that no size overflows them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <filesystem>
#include <limits>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/one_matrix/panel_layout.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/shared/sampled_sum.hpp"
#include "cases.hpp"
#include "checks.hpp"
#include "host/tuning.hpp"
#include "quoin/file_qr.hpp"
#include "quoin/options.hpp"
#include "quoin/out_of_core.hpp"
#include "quoin/qr.hpp"
#include "quoin/scalar.hpp"
#include "quoin/study.hpp"

namespace quoin::test {
namespace {

/// Returns the method with panels of `width` columns.
MethodOptions in_panels(MethodOptions method, Index width) {
    method.set_panel_width(width);
    return method;
}

template <class Call>
void expect_refused(const std::string& named, Call call) {
    try {
        call();
        ADD_FAILURE() << named << " accepted";
    } catch (const InvalidArgument& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
        EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << e.what();
    }
}

constexpr std::pair<Index, Index> shapes[] = {{1000000, 192}, {40000, 33}, {4000000, 8}, {8192, 512},
                                              {4000, 4000},   {100, 3000}, {10, 10},     {1, 1}};

template <class T>
class PlanOf : public testing::Test {
protected:
    Context<Host> ctx{2};

    Plan plan(Index m, Index n, Options options = {}) { return plan_qr<T>(ctx, m, n, options); }

    void expect_invalid(const std::string& named, Index m, Index n, Options options) {
        expect_refused(named, [&] { plan(m, n, options); });
    }
};
TYPED_TEST_SUITE(PlanOf, Scalars);

/// Whether `Auto` may take `method`: CholeskyQR2 for R or the thin Q of a tall matrix; otherwise reflectors where there
/// are few entries, CholeskyQR2 where the matrix is tall, and no tree for LAPACK's format, which it reaches by forming
/// Q.
bool may_be_taken(Method method, Index m, Index n, QForm q) {
    using Tuned = Tuning<Host>;
    const bool tall = static_cast<double>(m) >= Tuned::tall_aspect * static_cast<double>(n);
    if (tall && (q == QForm::None || q == QForm::Explicit)) return method == Method::CholeskyQR2;
    if (m * n < Tuned::min_compared) return method == Method::BlockedHouseholder;
    if (method == Method::CholeskyQR2) return tall;
    return q != QForm::Reflectors || method == Method::BlockedHouseholder;
}

/// The time is modelled for all that may be taken, and none of them is faster than what is taken.
TYPED_TEST(PlanOf, AutoTakesTheMethodOfLeastTime) {
    using T = TypeParam;
    std::mt19937 random(5);
    std::uniform_real_distribution<double> rows(0, 23), cols(0, 11);
    const auto time = [](const Plan& plan) { return modelled_time(plan, Tuning<Host>::step_times(scalar_kind<T>)); };
    for (int i = 0; i < 300; ++i) {
        const Index m = Index(std::exp2(rows(random))), n = Index(std::exp2(cols(random)));
        for (const QForm q : q_forms) {
            const Plan taken = this->plan(m, n, {.q = q});
            SCOPED_TRACE(shape_name(m, n) + " " + to_string(q) + ": " + to_string(taken.method));
            EXPECT_TRUE(may_be_taken(taken.method, m, n, q));
            for (const Method method : {Method::BlockedHouseholder, Method::TSQR, Method::CAQR, Method::CholeskyQR2}) {
                if (!may_be_taken(method, m, n, q)) continue;
                EXPECT_LE(time(taken), time(this->plan(m, n, {.method = method, .q = q}))) << to_string(method);
            }
        }
    }
}

/// With a time of 1 for each flop, and none for entries, columns and calls, the time is the plan's flops.
TYPED_TEST(PlanOf, ModelledTimesAreThoseOfTheFlops) {
    StepTimes times;
    for (StepTime* step : {&times.gram, &times.solve, &times.leaf, &times.node, &times.form, &times.tree_update,
                           &times.panel, &times.update})
        step->flop = 1;
    times.square.flop = 2 / 3.0;
    times.signed_lu.flop = 2;
    times.threaded_flops = std::numeric_limits<double>::infinity();
    for (const auto& [m, n] : {std::pair<Index, Index>{5000, 70}, {700, 600}, {90, 900}, {40000, 20}, {30, 30}})
        for (const Method method : {Method::BlockedHouseholder, Method::TSQR, Method::CAQR, Method::CholeskyQR2})
            for (const QForm q : {QForm::None, QForm::Explicit, QForm::Reflectors}) {
                if (m < n && method == Method::CholeskyQR2) continue;
                const bool tree = method == Method::TSQR || method == Method::CAQR;
                if (q == QForm::Reflectors && tree) continue;
                SCOPED_TRACE(case_name(m, n, method, q));
                const Plan plan = this->plan(m, n, {.method = method, .q = q});
                EXPECT_NEAR(modelled_time(plan, times), plan.flops, 1e-9 * plan.flops);
            }
}

TYPED_TEST(PlanOf, AShapeIsAlwaysTheSame) {
    for (auto [m, n] : shapes)
        for (QForm q : q_forms) {
            const Plan a = this->plan(m, n, {.q = q}), b = this->plan(m, n, {.q = q});
            EXPECT_EQ(to_string(a), to_string(b));
            EXPECT_EQ(a.method, b.method);
            EXPECT_EQ(a.fallback(), b.fallback());
            EXPECT_EQ(a.panel_width, b.panel_width);
            EXPECT_EQ(a.inner_block, b.inner_block);
            EXPECT_EQ(a.tree().leaf_rows, b.tree().leaf_rows);
            EXPECT_EQ(a.tree().domain_leaves, b.tree().domain_leaves);
            EXPECT_EQ(a.tree().fan_in, b.tree().fan_in);
            EXPECT_EQ(a.householder().reconstruct_rows, b.householder().reconstruct_rows);
            EXPECT_EQ(a.workspace_bytes, b.workspace_bytes);
            EXPECT_EQ(a.flops, b.flops);
            EXPECT_EQ(a.bytes_moved, b.bytes_moved);
        }
}

TYPED_TEST(PlanOf, PanelsOnTheHostAreOfBlockedHouseholder) {
    const auto on_host = [&](Index m, Index n, Options options) {
        return study::plan_with_panels_on_host<TypeParam>(this->ctx, m, n, options);
    };
    for (auto [m, n] : shapes) {
        const Plan plan = on_host(m, n, {});
        EXPECT_EQ(plan.method, Method::BlockedHouseholder);
        EXPECT_FALSE(plan.householder().panels_on_host) << "the matrix is on the host";
        Plan usual = this->plan(m, n, {.method = Method::BlockedHouseholder});
        std::get<HouseholderPlan>(usual.choices).one_launch = false;
        EXPECT_EQ(to_string(plan), to_string(usual));
        EXPECT_EQ(to_string(on_host(m, n, {.method = Method::CAQR})), to_string(usual));
    }
    for (Method method : {Method::TSQR, Method::CholeskyQR2, Method::RandomizedCholeskyQR})
        expect_refused("panels on the host", [&] { on_host(1000, 10, {.method = method}); });
    expect_refused("panels on the host", [&] { on_host(1000, 10, {.method = Auto{.tree = {.fan_in = 4}}}); });
    expect_refused("panels on the host", [&] { on_host(1000, 10, {.method = CAQR{.tree = {.fan_in = 4}}}); });
}

/// Each option of each method, by name, as programs and bindings give it: the methods that have it take it, and the
/// others are refused with the names of those.
TEST(MethodOptionsOf, EachMethodHasItsOwn) {
    using enum Method;
    const auto owners = [](auto give) {
        std::vector<Method> found;
        for (const Method method : every_method()) {
            MethodOptions options = method;
            try {
                give(options);
                found.push_back(options);
            } catch (const InvalidArgument& refusal) {
                EXPECT_NE(std::string(refusal.what()).find(to_string(method)), std::string::npos) << refusal.what();
            }
        }
        return found;
    };
    using Methods = std::vector<Method>;
    EXPECT_EQ(owners([](MethodOptions& o) {
                  o.set_panel_width(7);
                  EXPECT_EQ(o.panel_width(), 7);
              }),
              (Methods{Auto, BlockedHouseholder, CAQR, ModifiedGramSchmidt, ClassicalGramSchmidt}));
    EXPECT_EQ(owners([](MethodOptions& o) {
                  o.set_tree({30, 4});
                  EXPECT_EQ(o.tree().leaf_rows, 30);
                  EXPECT_EQ(o.tree().fan_in, 4);
              }),
              (Methods{Auto, BlockedHouseholder, TSQR, CAQR}));
    EXPECT_EQ(owners([](MethodOptions& o) {
                  o.set_reorthogonalization(Reorthogonalization::Selective);
                  EXPECT_EQ(o.reorthogonalization(), Reorthogonalization::Selective);
              }),
              (Methods{ModifiedGramSchmidt, ClassicalGramSchmidt}));
    EXPECT_EQ(owners([](MethodOptions& o) {
                  o.set_panel(GramSchmidtPanel::CholeskyQR2);
                  EXPECT_EQ(o.panel(), GramSchmidtPanel::CholeskyQR2);
              }),
              (Methods{ClassicalGramSchmidt}));
    MethodOptions tsqr = TSQR;
    tsqr.set_panel_width(0);
    tsqr.set_reorthogonalization(Reorthogonalization::Off);
    expect_refused("panel_width belongs to householder, caqr, mgs, cgs, and the method is tsqr",
                   [&] { tsqr.set_panel_width(8); });
}

TYPED_TEST(PlanOf, AutoNamesAMethodAndConditionalMethodsHaveAFallback) {
    for (auto [m, n] : shapes)
        for (QForm q : q_forms) {
            SCOPED_TRACE(shape_name(m, n) + " " + to_string(q));
            const Plan p = this->plan(m, n, {.q = q});
            EXPECT_EQ(p.rows, m);
            EXPECT_EQ(p.cols, n);
            EXPECT_EQ(p.scalar, scalar_kind<TypeParam>);
            EXPECT_EQ(p.q, q);
            EXPECT_NE(p.method, Method::Auto);
            EXPECT_EQ(p.fallback() != Method::Auto, is_conditional(p.method));
            EXPECT_FALSE(is_conditional(p.fallback()));
        }
}

TEST(ScalarKind, IsKnownByItsNameAndNotByItsBytes) {
    static_assert(scalar_kind<float> == ScalarKind::F32 && scalar_kind<double> == ScalarKind::F64);
    static_assert(scalar_kind<std::complex<float>> == ScalarKind::C64);
    static_assert(scalar_kind<std::complex<double>> == ScalarKind::C128);
    const auto expect = [](ScalarKind kind, const std::string& name, std::size_t bytes) {
        EXPECT_EQ(to_string(kind), name);
        EXPECT_EQ(bytes_of(kind), static_cast<int>(bytes)) << name;
    };
    expect(ScalarKind::F32, "f32", sizeof(float));
    expect(ScalarKind::F64, "f64", sizeof(double));
    expect(ScalarKind::C64, "c64", sizeof(std::complex<float>));
    expect(ScalarKind::C128, "c128", sizeof(std::complex<double>));
}

TEST(ScalarKind, TablesHaveNoEntryForComplexNumbers) {
    EXPECT_EQ(entry_for(ScalarKind::F32, 1, 2), 1);
    EXPECT_EQ(entry_for(ScalarKind::F64, 1, 2), 2);
    for (const ScalarKind kind : {ScalarKind::C64, ScalarKind::C128}) {
        expect_refused("the tables of f32 and f64 have no entry for " + std::string(to_string(kind)),
                       [&] { Tuning<Host>::step_times(kind); });
    }
    EXPECT_NE(&Tuning<Host>::step_times(ScalarKind::F32), &Tuning<Host>::step_times(ScalarKind::F64));
}

TYPED_TEST(PlanOf, APlanOfOtherNumbersIsRefused) {
    const std::string own = to_string(scalar_kind<TypeParam>);
    for (const ScalarKind other : {ScalarKind::F32, ScalarKind::F64, ScalarKind::C64, ScalarKind::C128}) {
        Plan plan = this->plan(3, 2, {});
        if (other == plan.scalar) continue;
        plan.scalar = other;
        expect_refused(fmt::format("the plan is for 3 x 2 {}, and A is 3 x 2 {}", to_string(other), own),
                       [&] { qr(this->ctx, Matrix<TypeParam>(3, 2), plan); });
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
                EXPECT_EQ(p.fallback(), Method::Auto);
                EXPECT_EQ(p.q, q);
            }
    }
}

TYPED_TEST(PlanOf, BlockSizesAskedForAreTaken) {
    const Plan caqr = this->plan(5000, 64, {.method = CAQR{.panel_width = 16, .tree = {48, 3}}});
    EXPECT_EQ(caqr.panel_width, 16);
    EXPECT_EQ(caqr.tree().leaf_rows, 48);
    EXPECT_EQ(caqr.tree().fan_in, 3);
    const Plan tsqr = this->plan(5000, 20, {.method = TSQR{.tree = {.leaf_rows = 20}}});
    EXPECT_EQ(tsqr.tree().leaf_rows, 20);
    const Plan householder = this->plan(5000, 64, {.method = BlockedHouseholder{.panel_width = 24}});
    EXPECT_EQ(householder.panel_width, 24);
}

TYPED_TEST(PlanOf, AFanInIsTakenAndAFlatTreeIsOneDomain) {
    const auto tree = [&](Index fan_in) {
        return this->plan(50000, 20, {.method = TSQR{.tree = {100, fan_in}}}).tree();
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
    this->expect_invalid("panel_width", 100, 20, {.method = Auto{.panel_width = -1}});
    this->expect_invalid("leaf_rows", 100, 20, {.method = Auto{.tree = {.leaf_rows = -1}}});
    this->expect_invalid("fan_in", 100, 20, {.method = Auto{.tree = {.fan_in = -2}}});
    const auto by_tree = [](MethodOptions method, TreeOptions tree) {
        method.set_tree(tree);
        return Options{.method = method};
    };
    for (Method method : {Method::TSQR, Method::CAQR})
        this->expect_invalid("fan_in", 100, 20, by_tree(method, {.fan_in = 1}));
    this->expect_invalid("leaf_rows", 100, 20, {.method = CAQR{.panel_width = 16, .tree = {.leaf_rows = 15}}});
    this->expect_invalid("leaf_rows", 100, 20, {.method = TSQR{.tree = {.leaf_rows = 19}}});
    for (Arithmetic arithmetic : {study::TF32, Arithmetic::FP16, study::BF16, Arithmetic::Corrected})
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
            // one triangle of AᵀA is the least that R costs
            EXPECT_GE(once.flops, 1e6 * 64 * 64);
            EXPECT_NEAR(twice.flops / once.flops, 2, 0.02);
            EXPECT_NEAR(twice.bytes_moved / once.bytes_moved, 2, 0.02);
            // Every method reads A once at least.
            EXPECT_GE(once.bytes_moved, 1e6 * 64 * sizeof(TypeParam));
        }
}

// One pass of CholeskyQR2 reads A for its Gram matrix, and where Q is wanted reads it and writes Q; a tree reads A
// once.
TYPED_TEST(PlanOf, BytesMovedArePassesOverATallMatrix) {
    struct Case {
        Method method;
        QForm q;
        double passes;
    };
    const double A_bytes = 1e6 * 32 * sizeof(TypeParam);
    for (const auto& [method, q, passes] : {Case{Method::CholeskyQR2, QForm::None, 1},
                                            {Method::CholeskyQR2, QForm::Explicit, 3},
                                            {Method::RandomizedCholeskyQR, QForm::None, 3},
                                            {Method::RandomizedCholeskyQR, QForm::Explicit, 5},
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

/// Counted step by step: a Gram matrix or a triangular solve mn², a Cholesky factor or a product of triangles n³/3, T
/// by reconstruction LU's 2n³/3 and two solves and a product, 4n³/3, and V mn². A GEMM of m×n by n×p 2mnp.
TYPED_TEST(PlanOf, FlopsAreThoseOfTheSteps) {
    struct Case {
        Method method;
        QForm q;
        double mnn, nnn;
    };
    const double m = 90, n = 48;
    for (const auto& [method, q, mnn, nnn] : {Case{Method::CholeskyQR2, QForm::None, 1, 2 / 3.0},
                                              {Method::CholeskyQR2, QForm::Explicit, 2, 2 / 3.0},
                                              {Method::CholeskyQR2, QForm::Reflectors, 2, 2 / 3.0 + 2},
                                              {Method::RandomizedCholeskyQR, QForm::None, 2, 9},
                                              {Method::RandomizedCholeskyQR, QForm::Explicit, 3, 9},
                                              {Method::RandomizedCholeskyQR, QForm::Reflectors, 3, 9 + 2}}) {
        SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(q));
        EXPECT_NEAR(this->plan(90, 48, {.method = method, .q = q}).flops, mnn * m * n * n + nnn * n * n * n,
                    1e-9 * m * n * n);
    }
    // leaves of h rows 2hw² each, all of them in one domain; of the tree above domains the primitives count the heads
    // too
    const double w = 20, www = w * w * w, leaves = 2 * m * w * w;
    for (const Index fan_in : {flat_tree, Index{2}}) {
        const auto flops = [&](QForm q) { return this->plan(90, 20, {.method = TSQR{{30, fan_in}}, .q = q}).flops; };
        const double r = flops(QForm::None), most = fan_in == flat_tree ? leaves : leaves + 4 * 2.0 / 3 * www;
        EXPECT_TRUE((1 - 1e-12) * leaves <= r && r <= (1 + 1e-12) * most) << r;
        EXPECT_NEAR(flops(QForm::Explicit), 2 * r, 1e-9 * r);
        EXPECT_NEAR(flops(QForm::Reflectors), 2 * r + m * w * w + 2 * www, 1e-9 * r);
    }
    // Gram-Schmidt of two panels, 3mn² each with its T, and Q₁ᵀA₂ and A₂ − Q₁R₁₂ between them
    for (const Method method : {Method::ModifiedGramSchmidt, Method::ClassicalGramSchmidt}) {
        const Plan plan = this->plan(90, 40, {.method = in_panels(method, 20), .q = QForm::Explicit});
        EXPECT_NEAR(plan.flops, 2 * 3 * m * 20 * 20 + 2 * 2 * m * 20 * 20, 1e-9 * plan.flops);
    }
}

/// Panels of nb columns by halves, n/nb a power of 2. A level of columns w reads A₂ twice and writes it once for each
/// product, and reads Q₁ twice: (3/2 + 1)mn words; modified has w/2nb products a node, 3mnw/4nb + mn, whose sum is
/// 3mn(n/nb − 1)/2 + mn log₂(n/nb). A panel is read and written.
TYPED_TEST(PlanOf, BytesMovedByGramSchmidtAreThoseOfItsHalves) {
    const double m = 5000, n = 128, nb = 16, levels = 3, mn_bytes = m * n * sizeof(TypeParam);
    for (const bool modified : {false, true}) {
        const Method method = modified ? Method::ModifiedGramSchmidt : Method::ClassicalGramSchmidt;
        const Plan plan = this->plan(5000, 128, {.method = in_panels(method, 16), .q = QForm::Explicit});
        const double halves = modified ? 1.5 * (n / nb - 1) + levels : 2.5 * levels;
        EXPECT_NEAR(plan.bytes_moved, (2 + halves) * mn_bytes, 1e-9 * mn_bytes);
        EXPECT_NEAR(plan.flops, 2 * m * n * n + m * n * nb, 1e-9 * plan.flops);
    }
}

/// docs/algorithms.md, "Gram-Schmidt": twice the flops; all columns twice take R₂R₁, n³/3, and panel by panel every
/// panel meets all columns before it, mn²/nb words.
TYPED_TEST(PlanOf, ReorthogonalizationAlwaysCostsTwice) {
    const double m = 5000, n = 64, nb = 16, s = sizeof(TypeParam);
    for (const Method method : {Method::ModifiedGramSchmidt, Method::ClassicalGramSchmidt}) {
        const auto plan = [&](Reorthogonalization r, Index width) {
            Options options{.method = in_panels(method, width), .q = QForm::Explicit};
            options.method.set_reorthogonalization(r);
            return this->plan(5000, 64, options);
        };
        for (const Index width : {16, 64}) {
            SCOPED_TRACE(std::string(to_string(method)) + " in panels of " + std::to_string(width));
            const Plan off = plan(Reorthogonalization::Off, width), always = plan(Reorthogonalization::Always, width);
            EXPECT_EQ(plan(Reorthogonalization::Selective, width).flops, off.flops);
            const bool all_twice = method == Method::ClassicalGramSchmidt && width == 16;
            EXPECT_NEAR(always.flops, 2 * off.flops + (all_twice ? n * n * n / 3 : 0), 1e-9 * off.flops);
            const double panels_again = all_twice ? 0 : m * n * (width == 16 ? n / nb : 1) * s;
            EXPECT_NEAR(always.bytes_moved, 2 * off.bytes_moved + panels_again, 1e-9 * off.bytes_moved);
        }
    }
}

TYPED_TEST(PlanOf, GramSchmidtFactorsPanelsAsItIsTold) {
    const auto panel = [&](MethodOptions method) {
        return this->plan(5000, 64, {.method = method}).gram_schmidt().panel;
    };
    using enum GramSchmidtPanel;
    EXPECT_EQ(panel(ModifiedGramSchmidt{}), MGS);
    EXPECT_NE(panel(ClassicalGramSchmidt{}), Auto);
    EXPECT_EQ(panel(ClassicalGramSchmidt{.panel = MGS}), MGS);
    EXPECT_EQ(panel(ClassicalGramSchmidt{.panel = CholeskyQR2}), CholeskyQR2);
}

/// A step takes as long as the slowest of link and products. With a slow link its bytes determine the time; with a
/// fast one the flops do, at the rate of the type.
TYPED_TEST(PlanOf, OutOfCoreTakesTheTimeOfTheSlowestEngine) {
    using T = TypeParam;
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, study::Blocking}) {
        const auto planned = [&](double link, double f32, double f64) {
            OutOfCoreOptions options;
            options.method = method;
            options.memory_bytes = 0x1p27;
            OutOfCoreRates rates;
            rates.link = link;
            rates.native_f32 = f32;
            rates.native_f64 = f64;
            return plan_out_of_core<T, Host>(20000, 5000, options, rates);
        };
        const bool single = sizeof(T) == 4;
        const OutOfCorePlan slow_products = planned(1e30, single ? 2e9 : 1e30, single ? 1e30 : 2e9);
        EXPECT_NEAR(slow_products.seconds, slow_products.flops / 2e9, 1e-9 * slow_products.seconds);
        const OutOfCorePlan slow_link = planned(3e9, 1e30, 1e30);
        EXPECT_GE(slow_link.seconds, (1 - 1e-9) * std::max(slow_link.bytes_in, slow_link.bytes_out) / 3e9);
        EXPECT_LE(slow_link.seconds, (1 + 1e-9) * (slow_link.bytes_in + slow_link.bytes_out) / 3e9);
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
         {Options{}, Options{.method = BlockedHouseholder{.panel_width = 1}}, Options{.method = Method::CAQR},
          Options{.method = CAQR{.panel_width = 1, .tree = {.leaf_rows = 1}}}, Options{.q = FullT{}},
          Options{.method = ModifiedGramSchmidt{.panel_width = 1}}}) {
        const Plan square = this->plan(n - 1, n - 1, options);
        SCOPED_TRACE(to_string(square));
        const double cube = std::pow(static_cast<double>(n), 3);
        EXPECT_GE(square.flops, 1.33 * cube);
        EXPECT_LE(square.flops, 5 * cube);
        EXPECT_TRUE(std::isfinite(square.bytes_moved) && std::isfinite(square.workspace_bytes));
        EXPECT_GE(this->plan(m, 1, options).flops, static_cast<double>(m));
    }
    EXPECT_GE(this->plan(1, m).bytes_moved, static_cast<double>(m));
    EXPECT_GE(this->plan(m, 1, {.method = TSQR{.tree = {1, 10000000000}}}).flops, 2.0 * m);
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, study::Blocking}) {
        const OutOfCorePlan beyond =
            plan_out_of_core<T, Host>(n - 1, n - 1, {.method = method, .memory_bytes = 0x1p37});
        EXPECT_GE(beyond.flops, 1.3 * std::pow(static_cast<double>(n), 3));
        EXPECT_GT(beyond.seconds, beyond.bytes_in / 1e12);
    }
    EXPECT_GE(plan_file_qr<T>(this->ctx, n - 1, n - 1, {.memory = 0x1p37}).flops,
              1.3 * std::pow(static_cast<double>(n), 3));
}

/// Every plan has kernels for its steps, in its order, and each names its file in this repository.
TYPED_TEST(PlanOf, EveryStepHasAKernel) {
    const auto source = std::filesystem::path(__FILE__).parent_path().parent_path() / "src";
    for (auto [m, n] : shapes) {
        for (Method method : every_method()) {
            if (m < n && method != Method::BlockedHouseholder && method != Method::CAQR) continue;
            const Plan plan = this->plan(m, n, {.method = method});
            const auto kernels = kernels_of<Host>(plan);
            SCOPED_TRACE(to_string(plan));
            EXPECT_FALSE(kernels.empty());
            for (const auto& [step, kernel] : kernels) {
                EXPECT_FALSE(step.empty());
                std::smatch file;
                if (step.find("panel") == 0 && kernel.find("reconstruction") != std::string::npos) continue;
                ASSERT_TRUE(std::regex_search(kernel, file, std::regex(R"(\(([a-z_/]+\.[ch]pp)\))"))) << kernel;
                EXPECT_TRUE(std::filesystem::exists(source / file[1].str())) << kernel;
            }
        }
    }
    // panels that shrink below the reconstructed ones, each kernel once
    const auto panels = kernels_of<Host>(this->plan(5000, 5000, {.method = BlockedHouseholder{100}}));
    const auto is_panel = [](const KernelUse& use) { return use.step.find("panels of 5000 to ") == 0; };
    EXPECT_EQ(std::count_if(panels.begin(), panels.end(), is_panel), 1);
    EXPECT_TRUE(kernels_of<Host>(this->plan(0, 0)).empty());
}

/// Σ i² by groups, against its closed form.
/// Each column has one panel, whose width depends on the rows that are left.
TEST(PanelColumnsOf, CoverTheColumnsInOrder) {
    for (auto [rows, cols, width, last_rows, last_width] : {std::array<Index, 5>{100, 40, 16, 0, 0},
                                                            {100, 40, 50, 0, 0},
                                                            {100, 90, 16, 40, 8},
                                                            {100, 90, 8, 40, 30},
                                                            {100, 60, 16, 40, 8},
                                                            {100, 90, 16, 200, 7},
                                                            {30, 90, 16, 20, 64},
                                                            {100, 0, 16, 40, 8},
                                                            {0, 0, 0, 0, 0}}) {
        SCOPED_TRACE(testing::Message() << rows << "x" << cols << ", " << width << ", " << last_rows << ", "
                                        << last_width);
        Plan plan;
        plan.rows = rows;
        plan.cols = cols;
        plan.panel_width = width;
        plan.choices = HouseholderPlan{.last_rows = last_rows, .last_width = last_width};
        const PanelColumns columns(plan);
        const Index k = std::min(rows, cols);
        Index first = 0;
        for (Index i = 0; i < columns.count(); ++i) {
            const Range panel = columns[i];
            EXPECT_EQ(panel.begin, first);
            EXPECT_EQ(panel.end, std::min(k, first + (rows - first <= last_rows ? last_width : width)));
            for (Index j = panel.begin; j < panel.end; ++j) EXPECT_EQ(columns.panel_of(j), i) << j;
            first = panel.end;
        }
        EXPECT_EQ(first, k);
    }
}

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

/// The numbers of the paragraph's last line, in order.
std::vector<double> last_numbers(const std::string& text) {
    const std::string line = text.substr(text.rfind('\n') + 1);
    std::vector<double> numbers;
    const std::regex number("(?:^|[ (])([0-9][0-9.]*(?:e[-+]?[0-9]+)?)(?= )");
    for (auto it = std::sregex_iterator(line.begin(), line.end(), number); it != std::sregex_iterator(); ++it)
        numbers.push_back(std::stod((*it)[1]));
    return numbers;
}
/// To three digits.
void expect_numbers(const std::string& text, const std::vector<double>& expected) {
    const std::vector<double> numbers = last_numbers(text);
    ASSERT_EQ(numbers.size(), expected.size()) << text;
    for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_NEAR(numbers[i], expected[i], 6e-3 * expected[i]) << text;
}

TYPED_TEST(PlanOf, TheParagraphHasItsNumbers) {
    using T = TypeParam;
    const auto expect_text = [](const std::string& text, const std::string& part) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    };
    for (Method method : named_methods) {
        const Plan p = this->plan(40000, 33, {.method = method});
        const std::string text = to_string(p);
        expect_numbers(text, {1e-9 * p.flops, 1e-9 * p.bytes_moved, 1e-6 * p.workspace_bytes});
        if (method == Method::TSQR || method == Method::CAQR)
            expect_text(text, "leaves of " + std::to_string(p.tree().leaf_rows) + " rows, domains of " +
                                  std::to_string(p.tree().domain_leaves) + " leaves, fan-in " +
                                  std::to_string(p.tree().fan_in));
        if (!is_conditional(method)) expect_text(text, "panels of " + std::to_string(p.panel_width) + " columns");
    }
    for (const auto& [m, n] : {std::pair<Index, Index>{400000, 50}, {3000, 3000}}) {
        const FilePlan p = plan_file_qr<T>(this->ctx, m, n, {.memory = 40e6});
        const std::string text = to_string(p);
        expect_numbers(text, {1e-9 * p.flops, 1e-9 * p.bytes_read, 1e-9 * p.bytes_written, 1e-6 * p.memory_bytes,
                              1e-9 * p.disk_bytes});
        expect_text(text, std::to_string(p.blocks) + (m > n ? " blocks of " : " slabs of ") + std::to_string(p.block));
    }
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, study::Blocking}) {
        const OutOfCorePlan p = plan_out_of_core<T, Host>(20000, 5000, {.method = method, .memory_bytes = 0x1p27});
        std::string text = to_string(p);
        expect_numbers(text, {1e-9 * p.flops, p.seconds});
        text.resize(text.rfind('\n'));
        std::vector<double> moved = {p.bytes_in * 0x1p-30, p.bytes_out * 0x1p-30};
        expect_numbers(text, moved);
        expect_text(text, "of " + std::to_string(p.block) + " columns");
        expect_text(text, "within 0.125 GiB");
    }
}

TEST(Names, AreThoseOfTheDocumentation) {
    EXPECT_STREQ(to_string(Method::Auto), "auto");
    EXPECT_STREQ(to_string(Method::BlockedHouseholder), "householder");
    EXPECT_STREQ(to_string(Method::TSQR), "tsqr");
    EXPECT_STREQ(to_string(Method::CAQR), "caqr");
    EXPECT_STREQ(to_string(Method::CholeskyQR2), "cholesky-qr2");
    EXPECT_STREQ(to_string(Method::RandomizedCholeskyQR), "randomized-cholesky-qr");
    EXPECT_STREQ(to_string(QForm::Any), "any");
    EXPECT_STREQ(to_string(QForm::None), "none");
    EXPECT_STREQ(to_string(QForm::Explicit), "explicit");
    EXPECT_STREQ(to_string(QForm::Reflectors), "reflectors");
}

}  // namespace
}  // namespace quoin::test
