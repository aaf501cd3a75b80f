// QR of matrices larger than the memory they may take: classical Gram-Schmidt by recursion and by blocks, and
// Householder by slabs, with caps so small that everything happens many times.

#include "quoin/out_of_core.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "algorithms/out_of_core/passing.hpp"
#include "algorithms/out_of_core/tiles.hpp"
#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "out_of_core_law.hpp"
#include "quoin/study.hpp"

namespace quoin::test {
namespace {

constexpr OutOfCoreMethod methods[] = {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, study::Blocking};
constexpr std::pair<Index, Index> shapes[] = {{1, 1}, {5, 3}, {64, 64}, {90, 37}, {300, 101}, {257, 256}};

template <class T>
class OutOfCore : public testing::Test {
protected:
    Context<Host> ctx{2};

    /// Memory in which about a `part`-th of the matrix stays.
    static OutOfCoreOptions options(OutOfCoreMethod method, Index m, Index n, double part, Index block = 0) {
        OutOfCoreOptions options;
        options.method = method;
        options.block = block;
        options.memory_bytes = (static_cast<double>(m * n) / part + 8.0 * m + 4.0 * n + 64) * sizeof(T) / 0.5;
        return options;
    }

    using Factors = OutOfCoreFactors<T>;
    Factors factor(MatrixView<const T> A, const OutOfCoreOptions& options) {
        return factor_out_of_core_copy<T>(ctx, A, options);
    }
    void expect_law(MatrixView<const T> A, const Factors& f, bool orthonormal) {
        expect_out_of_core_law<T>(A, f, orthonormal);
    }
};
TYPED_TEST_SUITE(OutOfCore, Scalars);

TYPED_TEST(OutOfCore, FactorsWithinEveryCap) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (const OutOfCoreMethod method : methods) {
            for (const double part : {1.5, 4.0, 30.0}) {
                for (const bool again : {false, true}) {
                    OutOfCoreOptions options = this->options(method, m, n, part);
                    if (again && method == OutOfCoreMethod::Householder) continue;
                    options.reorthogonalize = again;
                    SCOPED_TRACE(shape_name(m, n) + " " + to_string(method) + " a " + std::to_string(part) + "th" +
                                 (again ? " again" : ""));
                    const auto f = this->factor(A.view(), options);
                    // κ of these is below 1e4, but for the square ones, whose Q is not orthonormal unless made so
                    this->expect_law(A.view(), f, again || method == OutOfCoreMethod::Householder);
                    EXPECT_LT(f.report.plan.block, n / part + 64);
                }
            }
        }
    }
}

/// A schedule changes times: the law holds, what moves is what was planned, and the bits change only with the widths of
/// products.
TYPED_TEST(OutOfCore, FactorsByEverySchedule) {
    using T = TypeParam;
    for (const auto& [m, n, block] : {std::array<Index, 3>{90, 37, 8}, {301, 190, 20}, {257, 256, 37}, {60, 20, 20}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (const OutOfCoreMethod method : {OutOfCoreMethod::Recursive, study::Blocking}) {
            for (const bool again : {false, true}) {
                OutOfCoreOptions options = this->options(method, m, n, 1, block);
                options.reorthogonalize = again;
                const auto as_it_is = factor_out_of_core_copy<T>(this->ctx, A.view(), options);
                for (const OutOfCoreSchedule& schedule : {OutOfCoreSchedule{.asynchronous = false},
                                                          {.growing = false},
                                                          {.joined_stages = false},
                                                          {false, false, false}}) {
                    SCOPED_TRACE(shape_name(m, n) + " " + to_string(method) + (again ? " again" : "") +
                                 (schedule.asynchronous ? "" : ", synchronous") +
                                 (schedule.growing ? "" : ", equal steps") +
                                 (schedule.joined_stages ? "" : ", separate stages"));
                    const auto f = factor_out_of_core_copy<T>(this->ctx, A.view(), options, schedule);
                    this->expect_law(A.view(), f, again);
                    if (schedule.growing && (schedule.joined_stages || method == study::Blocking)) {
                        EXPECT_TRUE(same_bits<T>(f.Q.view(), as_it_is.Q.view()));
                        EXPECT_TRUE(same_bits<T>(f.R.view(), as_it_is.R.view()));
                    }
                    const OutOfCorePlan &plan = f.report.plan, &usual = as_it_is.report.plan;
                    EXPECT_EQ(plan.bytes_in > usual.bytes_in, n > block && !schedule.joined_stages);
                    EXPECT_EQ(plan.seconds > usual.seconds, !schedule.asynchronous || plan.bytes_in > usual.bytes_in ||
                                                                plan.bytes_out > usual.bytes_out);
                }
            }
        }
    }
}

/// The block that is asked for, by recursion as by blocks, also where a larger one would fit.
TYPED_TEST(OutOfCore, TakesTheBlockThatIsAskedFor) {
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Recursive, study::Blocking}) {
        const OutOfCorePlan plan =
            plan_out_of_core<TypeParam, Host>(900, 500, this->options(method, 900, 500, 1.5, 40));
        EXPECT_EQ(plan.block, 40) << to_string(method);
        EXPECT_GT((plan_out_of_core<TypeParam, Host>(900, 500, this->options(method, 900, 500, 1.5))).block, 80);
    }
}

/// Nodes of the recursion in which the end of Q₁ is made of the leaf where it lies, or not, and in which a leaf finds
/// its first columns, or all, and more than that leave.
TYPED_TEST(OutOfCore, KeepsWhatIsThere) {
    using T = TypeParam;
    std::map<Index, int> nodes;     // the largest by the blocks that it keeps
    std::map<int, int> tiles_seen;  // narrower than the leaf, as wide, and wider
    for (const Index leaf : {1, 3, 8, 20, 37}) {
        for (const Index n : {2 * leaf + 1, 3 * leaf, 4 * leaf, 4 * leaf + 1, 7 * leaf - 1, 9 * leaf + 2}) {
            if (n > 190) continue;
            const Index m = 301;
            const Matrix<T> A = random_normal<T>(m, n);
            for (const bool again : {false, true}) {
                // of the memory, the leaf's; more is refused
                for (const double share : {again ? 0.69 : 0.84, 0.6, 0.45}) {
                    OutOfCoreOptions options;
                    options.method = OutOfCoreMethod::Recursive;
                    options.block = leaf;
                    options.reorthogonalize = again;
                    // a fifth is the workspace's
                    options.memory_bytes = 1.25 * sizeof(T) *
                                           std::max(static_cast<double>((m + leaf) * leaf) / share + 64,
                                                    static_cast<double>(Tiles::min_elements(m, leaf) + 64));
                    SCOPED_TRACE(shape_name(m, n) + " leaves of " + std::to_string(leaf) + " in " +
                                 std::to_string(share) + (again ? " again" : ""));
                    const auto f = this->factor(A.view(), options);
                    this->expect_law(A.view(), f, again);
                    const OutOfCorePlan& plan = f.report.plan;
                    const Tiles tiles{m, n, plan.block, plan.elements, again, false};
                    const Index s = tiles.middle({0, n});
                    if (s <= plan.block) continue;
                    const Tiles::Passing sizes = tiles.passing_q(s, n - s);
                    ++nodes[sizes.kept];
                    ++tiles_seen[(sizes.columns > plan.block) - (sizes.columns < plan.block)];
                }
            }
        }
    }
    for (Index kept = 0; kept <= passing_places; ++kept) EXPECT_GT(nodes[kept], 0) << kept;
    for (const int wider : {-1, 0, 1}) EXPECT_GT(tiles_seen[wider], 0) << wider;
}

/// Householder obeys the law for every matrix; Gram-Schmidt leaves a small residual, or refuses, naming a column.
TYPED_TEST(OutOfCore, TakesTheGallery) {
    using T = TypeParam;
    const Index m = 70, n = 50;
    for (const Gallery g : gallery()) {
        const Matrix<T> A = generate<T>(g, m, n);
        for (const OutOfCoreMethod method : methods) {
            SCOPED_TRACE(to_string(g) + " " + to_string(method));
            const bool householder = method == OutOfCoreMethod::Householder;
            try {
                const auto f = this->factor(A.view(), this->options(method, m, n, 6));
                this->expect_law(A.view(), f, householder);
            } catch (const NumericalBreakdown& breakdown) {
                EXPECT_FALSE(householder) << breakdown.what();
                EXPECT_TRUE(breakdown.column >= 0 && breakdown.column < n);
            }
        }
    }
}

TYPED_TEST(OutOfCore, OrthonormalisesWhatIsNearlyDependent) {
    using T = TypeParam;
    const Index m = 120, n = 80;
    // κu = 0.01: one pass loses all orthogonality, two keep it
    const Matrix<T> A = with_condition<T>(m, n, 0.01 / unit_roundoff<T>);
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Recursive, study::Blocking}) {
        OutOfCoreOptions options = this->options(method, m, n, 6);
        const auto once = this->factor(A.view(), options);
        EXPECT_GT(orthogonality_error<T>(once.Q.view(), n), law) << "too easy to tell";
        options.reorthogonalize = true;
        this->expect_law(A.view(), this->factor(A.view(), options), true);
    }
}

TYPED_TEST(OutOfCore, NamesTheColumnThatDependsOnOthers) {
    using T = TypeParam;
    const Index m = 90, n = 60;
    Matrix<T> A = random_normal<T>(m, n);
    for (Index i = 0; i < m; ++i) A(i, 47) = A(i, 3) * 2;
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Recursive, study::Blocking}) {
        Matrix<T> Q = test::copy<T>(A.view()), R = filled<T>(n, n, T(0));
        // one leaf: what is left of a column after several products is rounding error, which no leaf can tell from a
        // column
        OutOfCoreOptions options = this->options(method, m, n, 0.2);
        try {
            qr_out_of_core<T, Host>(this->ctx, Q.view(), R.view(), options);
            FAIL() << "a dependent column went through";
        } catch (const NumericalBreakdown& breakdown) {
            EXPECT_EQ(breakdown.column, 47);
        }
    }
}

TYPED_TEST(OutOfCore, NamesTheFirstBadEntry) {
    using T = TypeParam;
    for (const OutOfCoreMethod method : methods) {
        Matrix<T> A = random_normal<T>(60, 40), R = filled<T>(40, 40, T(0));
        A(59, 31) = A(3, 38) = std::numeric_limits<T>::quiet_NaN();
        OutOfCoreOptions options = this->options(method, 60, 40, 4);
        if (method == OutOfCoreMethod::Recursive) {
            // the right half comes in several tiles, for the first time, the last one first
            options.block = 5;
            options.memory_bytes = 750 * sizeof(T);
        }
        try {
            qr_out_of_core<T, Host>(this->ctx, A.view(), R.view(), options);
            FAIL() << "NaN went through";
        } catch (const NonFiniteEntry& entry) {
            EXPECT_EQ(entry.row, 59);
            EXPECT_EQ(entry.col, 31);
        }
    }
}

TYPED_TEST(OutOfCore, LeavesLapacksFormat) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{80, 33}, {33, 80}, {41, 41}}) {
        const Index k = std::min(m, n);
        const Matrix<T> A = random_normal<T>(m, n);
        Padded<T> V(A.view()), tau(k, 1);
        const auto report = factor_out_of_core<T, Host>(this->ctx, V.view(), tau.view(),
                                                        this->options(OutOfCoreMethod::Householder, m, n, 5));
        EXPECT_EQ(report.bytes_in, report.plan.bytes_in);
        EXPECT_EQ(report.bytes_out, report.plan.bytes_out);
        EXPECT_TRUE(V.padding_intact() && tau.padding_intact());
        // A = H₁ H₂ … [R; 0]
        Matrix<T> QR = filled<T>(m, n, T(0));
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i <= std::min(j, k - 1); ++i) QR(i, j) = V.view()(i, j);
        }
        for (Index l = k - 1; l >= 0; --l) {
            for (Index j = 0; j < n; ++j) {
                Wide<T> dot = QR(l, j);
                for (Index i = l + 1; i < m; ++i) dot += Wide<T>(V.view()(i, l)) * QR(i, j);
                dot *= tau.view()(l, 0);
                QR(l, j) -= static_cast<T>(dot);
                for (Index i = l + 1; i < m; ++i) QR(i, j) -= static_cast<T>(dot * V.view()(i, l));
            }
        }
        EXPECT_LE(difference<T>(QR.view(), A.view(), k, frobenius_norm<T>(A.view())), law) << shape_name(m, n);
    }
}

TYPED_TEST(OutOfCore, TellsHowFarItIsAndStops) {
    using T = TypeParam;
    for (const OutOfCoreMethod method : methods) {
        Matrix<T> A = random_normal<T>(300, 200), R = filled<T>(200, 200, T(0));
        OutOfCoreOptions options = this->options(method, 300, 200, 10);
        double last = 0;
        int calls = 0;
        options.progress = [&](double fraction) {
            EXPECT_GE(fraction, last);
            EXPECT_LE(fraction, 1);
            last = fraction;
            if (++calls == 3) this->ctx.request_stop();
        };
        EXPECT_THROW((qr_out_of_core<T, Host>(this->ctx, A.view(), R.view(), options)), Interrupted);
        this->ctx.clear_stop();
        EXPECT_EQ(calls, 3);
        EXPECT_GT(last, 0);
    }
}

TEST(OutOfCoreTiles, AreOfOneWidthIfTheyDoNotGrow) {
    Tiles tiles{1000, 200, 64, 100000};
    EXPECT_EQ(tiles.in_steps({0, 100}, 16).front().size(), 8);
    EXPECT_EQ(tiles.arriving(64).front().size(), 1);
    tiles.schedule.growing = false;
    for (const Range& step : tiles.in_steps({0, 96}, 16)) EXPECT_EQ(step.size(), 16);
    for (const Range& part : tiles.arriving(64)) EXPECT_EQ(part.size(), 8);
}

TEST(OutOfCorePlan, MovesNoMoreThanThePaperCounts) {
    OutOfCoreOptions options;
    options.arithmetic = Arithmetic::Native;
    for (const Index n : {16384, 65536, 131072}) {
        for (const Index b : {2048, 4096, 8192}) {
            for (const OutOfCoreMethod method : {OutOfCoreMethod::Recursive, study::Blocking}) {
                options.method = method;
                options.block = b;
                // their counts are for an R₁₂ that fits
                options.memory_bytes = 16.0 * (1 << 30);
                const OutOfCorePlan plan = plan_out_of_core<float, Host>(131072, n, options);
                const study::PaperBytes paper = study::paper_bytes(plan, b);
                EXPECT_LE(plan.bytes_in + plan.bytes_out, paper.in + paper.out)
                    << n << " " << b << " " << to_string(method);
                EXPECT_LE(plan.bytes_in, paper.in);
                EXPECT_GE(plan.flops, 2.0 * 131072 * double(n) * double(n));
                EXPECT_FALSE(to_string(plan).empty());
            }
        }
    }
}

// R of a square matrix costs 4n³/3 flops, and Q from V as many.
TEST(OutOfCorePlan, CountsTheFlopsOfHouseholder) {
    const Index n = 1024;
    OutOfCoreOptions options;
    options.memory_bytes = 1e9;
    for (const bool form_q : {false, true}) {
        options.form_q = form_q;
        const OutOfCorePlan plan = plan_out_of_core<double, Host>(n, n, options);
        EXPECT_GE(plan.block, n) << "one slab";
        EXPECT_NEAR(plan.flops / std::pow(double(n), 3), form_q ? 8.0 / 3 : 4.0 / 3, 1e-12);
    }
}

TEST(OutOfCorePlan, RefusesInASentence) {
    const auto why = [](Index m, Index n, OutOfCoreOptions options) {
        try {
            plan_out_of_core<float, Host>(m, n, options);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    OutOfCoreOptions options;
    EXPECT_EQ(why(10, 10, options), "memory_bytes must be positive for a plan");
    options.memory_bytes = 1000;
    EXPECT_NE(why(1000, 1000, options).find("at least"), std::string::npos);
    options.memory_bytes = 1e9;
    options.block = -1;
    EXPECT_NE(why(10, 10, options).find("block"), std::string::npos);
    options.block = 0;
    options.reorthogonalize = true;
    EXPECT_NE(why(10, 10, options).find("Gram-Schmidt"), std::string::npos);
    options.method = OutOfCoreMethod::Recursive;
    EXPECT_NE(why(10, 20, options).find("rows"), std::string::npos);
    options.arithmetic = Arithmetic::FP16;
    EXPECT_NE(why(20, 10, options).find("GPU"), std::string::npos);
    options.arithmetic = Arithmetic::Auto;
    EXPECT_EQ(why(20, 10, options), "");
}

TEST(OutOfCorePlan, AsksForAsMuchMemoryAsItThenAccepts) {
    for (const OutOfCoreMethod method : methods) {
        OutOfCoreOptions options;
        options.method = method;
        options.memory_bytes = 1;
        double needed = 0;
        try {
            plan_out_of_core<double, Host>(5000, 3000, options);
        } catch (const OutOfMemory& error) {
            const std::string text = error.what();
            needed = std::stod(text.substr(text.find("at least ") + 9));
        }
        // the workspace grows with the memory
        options.memory_bytes = 1.3 * needed;
        EXPECT_NO_THROW((plan_out_of_core<double, Host>(5000, 3000, options))) << to_string(method) << " " << needed;
        options.memory_bytes = 0.9 * needed;
        EXPECT_THROW((plan_out_of_core<double, Host>(5000, 3000, options)), OutOfMemory) << to_string(method);
    }
}

/// A trace by seconds.
class OutOfCoreTrace : public testing::Test {
protected:
    void add(const char* name, Trace::Row row, double begin, double end) {
        trace.add({name, row, -1, {1e6 * begin, 1e6 * end}});
    }
    Trace trace;
};

TEST_F(OutOfCoreTrace, CountWhatIsUnderWayAtATime) {
    EXPECT_EQ(out_of_core_times(trace).hidden(), 1);
    EXPECT_EQ(out_of_core_times(trace).hidden_in_products(), 1);
    EXPECT_EQ(out_of_core_times(trace).hideable_in_products(), 1);
    add("A in", Trace::Row::ToDevice, 0, 10);
    add("A out", Trace::Row::ToHost, 5, 20);
    EXPECT_EQ(out_of_core_times(trace).hidden(), 0);
    add("outer product", Trace::Row::Device, 5, 12);
    add("panel", Trace::Row::SideStream, 10, 15);
    add("Gram passes", Trace::Row::SideStream, 11, 12);
    add("of the panel", Trace::Row::SideStream, 13, 14);
    add("of the host", Trace::Row::Host, 0, 100);
    const OutOfCoreTimes times = out_of_core_times(trace);
    EXPECT_NEAR(times.in, 10, 1e-9);
    EXPECT_NEAR(times.out, 15, 1e-9);
    EXPECT_NEAR(times.panels, 5, 1e-9);
    EXPECT_NEAR(times.products, 7, 1e-9) << "beside a panel on the other stream, and not within one";
    EXPECT_NEAR(times.copies, 20, 1e-9);
    EXPECT_NEAR(times.hidden(), 0.5, 1e-9);
    EXPECT_NEAR(times.hidden_in_products(), 0.5, 1e-9);
    EXPECT_NEAR(times.hideable_in_products(), 7.0 / 20, 1e-9) << "the panel hides the rest";
    EXPECT_NEAR(out_of_core_times(trace, 5e6).hidden(), 10.0 / 15, 1e-9) << "from 5 s on";
}

TEST_F(OutOfCoreTrace, TellsTheCopiesOfProductsFromThoseOfPanels) {
    for (const char* name : {"panel in", "slab in", "copy in"}) add(name, Trace::Row::ToDevice, 0, 8);
    for (const char* name : {"panel out", "slab out", "copy out"}) add(name, Trace::Row::ToHost, 2, 8);
    EXPECT_EQ(out_of_core_times(trace).product_copies, 0);
    add("Q in", Trace::Row::ToDevice, 10, 12);
    add("V in", Trace::Row::ToDevice, 12, 13);
    add("R out", Trace::Row::ToHost, 11, 15);
    add("projection", Trace::Row::Device, 11, 13);
    const OutOfCoreTimes times = out_of_core_times(trace);
    EXPECT_NEAR(times.in, 11, 1e-9);
    EXPECT_NEAR(times.copies, 13, 1e-9);
    EXPECT_NEAR(times.product_copies, 5, 1e-9);
    EXPECT_NEAR(times.hidden(), 2.0 / 13, 1e-9);
    EXPECT_NEAR(times.hidden_in_products(), 2.0 / 5, 1e-9);
}

}  // namespace
}  // namespace quoin::test
