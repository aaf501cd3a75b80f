// The table of `quoin tune`: its file, what is refused, the choices that it makes, and the fit to known machines.

#include "quoin/tuning.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>

#include "algorithms/one_matrix/measured_cases.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "checks.hpp"
#include "host/tuning.hpp"
#include "quoin/distributed.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

namespace fs = std::filesystem;

std::string contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

/// Each test has a folder, and leaves the built-in times.
class TuningTest : public testing::Test {
protected:
    void SetUp() override {
        folder_ = (fs::temp_directory_path() / "quoin-tuning-XXXXXX").string();
        ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    }
    void TearDown() override {
        use("off");
        fs::remove_all(folder_);
    }
    std::string path(const std::string& name = "table.json") const { return folder_ + "/" + name; }
    static const TuningInUse& use(const std::string& choice) {
        setenv("QUOIN_TUNING", choice.c_str(), 1);
        Tuning<Host>::read_table_again();
        return tuning_in_use();
    }
    /// Saves a table in which updates by panels are slow, so that Q for QᵀC is a tree's, and uses it.
    TuningTable use_slow_updates() {
        TuningTable table = built_in_tuning(ctx);
        scale(table, "update.flop", 50);
        scale(table, "panel.flop", 50);
        save_tuning(table, path());
        use(path());
        return table;
    }
    static void scale(TuningTable& table, const std::string& name, double factor) {
        const auto names = step_time_names();
        const auto i = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
        table.f32.at(i) *= factor;
        table.f64.at(i) *= factor;
    }

    Context<Host> ctx{2};

private:
    std::string folder_;
};

TEST_F(TuningTest, AFileHasTheTableToTheLastBit) {
    TuningTable table = built_in_tuning(ctx);
    scale(table, "gram.flop", 1 / 3.0);
    table.cases = {{30, 7, ScalarKind::F32, QForm::Any, {1e-7 / 3, 0, 5e300, 5e-324}},
                   {1000000, 3, ScalarKind::F64, QForm::Reflectors, {0.25, 1, 0, 0}},
                   {5, 6, ScalarKind::F64, QForm::None, {}},
                   {6, 5, ScalarKind::F32, QForm::Explicit, {}}};
    save_tuning(table, path("new/folder/table.json"));
    const TuningTable read = load_tuning(path("new/folder/table.json"));
    EXPECT_EQ(read.id, table.id);
    EXPECT_NE(read.id, 0u);
    EXPECT_EQ(std::tie(read.version, read.device, read.kernels, read.threads, read.date),
              std::tie(table.version, table.device, table.kernels, table.threads, table.date));
    EXPECT_EQ(read.f32, table.f32);
    EXPECT_EQ(read.f64, table.f64);
    ASSERT_EQ(read.cases.size(), table.cases.size());
    for (std::size_t i = 0; i < read.cases.size(); ++i) {
        const TunedCase &a = read.cases[i], &b = table.cases[i];
        EXPECT_EQ(std::tie(a.rows, a.cols, a.scalar, a.q, a.seconds),
                  std::tie(b.rows, b.cols, b.scalar, b.q, b.seconds));
    }
    TuningTable other = table;
    other.date = "2000-01-01";
    save_tuning(other, path());
    EXPECT_NE(other.id, table.id);
}

/// Each table that belongs to another machine, or has times that no machine has, leaves the built-in times, and a
/// sentence that names the file and the reason.
TEST_F(TuningTest, TablesOfOtherMachinesAreRefused) {
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const Plan usual = plan_qr<double>(ctx, 3000, 500, {.q = QForm::Any});
    const auto expect_refused = [&](const std::string& reason, auto change) {
        TuningTable table = built_in_tuning(ctx);
        scale(table, "update.flop", 50);
        change(table);
        save_tuning(table, path());
        const TuningInUse& used = use(path());
        EXPECT_EQ(used.id, 0u) << reason;
        EXPECT_EQ(used.refusal.find(path() + ": "), 0u) << used.refusal;
        EXPECT_NE(used.refusal.find(reason), std::string::npos) << used.refusal;
        const Plan plan = plan_qr<double>(ctx, 3000, 500, {.q = QForm::Any});
        EXPECT_EQ(to_string(plan), to_string(usual));
        EXPECT_EQ(plan.tuning, 0u);
    };
    expect_refused("was measured on Z80 with", [](TuningTable& t) { t.device = "Z80"; });
    expect_refused("kernels mmx", [](TuningTable& t) { t.kernels = "mmx"; });
    expect_refused("version 0.0.9", [](TuningTable& t) { t.version = "0.0.9"; });
    for (const double time : {0.0, -1.0, 1e300, 1e-300})
        for (const auto times : {&TuningTable::f32, &TuningTable::f64})
            expect_refused("gram.flop of", [&](TuningTable& t) { (t.*times)[0] = time; });
    expect_refused("node.column of f64", [](TuningTable& t) { t.f64[17] = 1; });
    for (const double time : {inf, -inf, nan}) expect_refused("is no table", [&](TuningTable& t) { t.f64[0] = time; });
}

/// A file with any other text is refused: none, half of one, one letter changed, added or lost anywhere.
TEST_F(TuningTest, ChangedFilesAreRefused) {
    TuningTable table = built_in_tuning(ctx);
    table.cases = {{3000, 50, ScalarKind::F64, QForm::Any, {1, 2, 3, 4}}};
    save_tuning(table, path());
    EXPECT_EQ(use(path()).id, table.id);
    EXPECT_EQ(use(path()).refusal, "");
    const std::string good = contents(path());
    const auto expect_refused = [&](const std::string& text) {
        std::ofstream(path()) << text;
        EXPECT_EQ(use(path()).id, 0u) << text;
        EXPECT_NE(use(path()).refusal.find("was changed since"), std::string::npos) << use(path()).refusal;
    };
    for (const std::string text : {"", "{}", "not a table", "[1, 2", "\"", "\"checksum\": \""}) expect_refused(text);
    for (std::size_t i = 0; i < good.size(); i += 31) {
        std::string changed = good;
        changed[i] = changed[i] == '1' ? '2' : '1';
        expect_refused(changed);
        expect_refused(good.substr(0, i) + good.substr(i + 1));
        expect_refused(good.substr(0, i) + " " + good.substr(i));
        expect_refused(good.substr(0, i));
    }
    fs::remove(path());
    EXPECT_NE(use(path()).refusal.find("cannot be opened"), std::string::npos);
}

TEST_F(TuningTest, TheTableChoosesAndThePlanNamesIt) {
    const auto plan = [&](Method method) {
        return plan_qr<double>(ctx, 3000, 500, {.method = method, .q = QForm::Any});
    };
    use("off");
    EXPECT_EQ(plan(Method::Auto).method, Method::BlockedHouseholder);
    EXPECT_EQ(to_string(plan(Method::Auto)).find("table"), std::string::npos);
    const TuningTable table = use_slow_updates();
    EXPECT_NE(plan(Method::Auto).method, Method::BlockedHouseholder);
    EXPECT_EQ(plan(Method::Auto).tuning, table.id);
    EXPECT_NE(to_string(plan(Method::Auto)).find(fmt::format("table {:08x}", table.id)), std::string::npos);
    EXPECT_EQ(plan(Method::BlockedHouseholder).tuning, 0u);
    use("off");
    EXPECT_EQ(plan(Method::Auto).method, Method::BlockedHouseholder);
}

/// Machines of ranks may have different tables, and all ranks must take one method.
TEST_F(TuningTest, RanksTakeTheBuiltInTimes) {
    const auto over_ranks = [&] { return plan_ranks<double>(ctx, 3000, 500, 4, {.q = QForm::Any}).method; };
    use("off");
    const Method usual = over_ranks();
    TuningTable table = built_in_tuning(ctx);
    for (const char* step : {"gram.flop", "square.flop", "solve.flop"}) scale(table, step, 0.02);
    save_tuning(table, path());
    use(path());
    EXPECT_EQ(plan_qr<double>(ctx, 3000, 500, {.q = QForm::Any}).method, Method::CholeskyQR2);
    EXPECT_EQ(over_ranks(), usual);
    EXPECT_NE(usual, Method::CholeskyQR2);
}

/// A plan states all that the bits of a result depend on.
TEST_F(TuningTest, APlanGivesTheSameBitsWithoutItsTable) {
    use_slow_updates();
    for (const auto& [m, n] : {std::pair<Index, Index>{400, 120}, {100, 150}, {1500, 30}})
        for (const QForm q : {QForm::Any, QForm::Explicit, QForm::Reflectors, QForm::None}) {
            Matrix<double> A(m, n);
            std::mt19937 random(1);
            std::normal_distribution<double> normal;
            for (Index j = 0; j < n; ++j)
                for (Index i = 0; i < m; ++i) A(i, j) = normal(random);
            use(path());
            const Plan plan = plan_qr<double>(ctx, m, n, {.q = q});
            if (q == QForm::Any) {
                EXPECT_EQ(plan.tuning, tuning_in_use().id);
            }
            const auto r_of = [&] {
                Matrix<double> copied(A.rows(), A.cols());
                copy<double>(ctx, std::as_const(A).view(), copied.view());
                return qr<double>(ctx, std::move(copied), plan).r(ctx);
            };
            const Matrix<double> tuned = r_of();
            use("off");
            EXPECT_TRUE(same_bits<double>(tuned.view(), r_of().view())) << to_string(plan);
        }
}

/// Cases with the times of a machine whose steps take `factor` of the built-in times, with errors of `noise`.
template <class T>
std::vector<TunedCase> cases_of(const std::array<double, step_time_count>& times, unsigned seed, int shapes,
                                double noise) {
    const Context<Host> ctx(1);
    const StepTimes machine = std::bit_cast<StepTimes>(times);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> rows(5, 20), cols(1, 10);
    std::normal_distribution<double> normal;
    std::vector<TunedCase> cases;
    for (int i = 0; i < shapes; ++i) {
        const Index m = Index(std::exp2(rows(random))), n = Index(std::exp2(cols(random)));
        for (const QForm q : {QForm::None, QForm::Explicit, QForm::Reflectors, QForm::Any}) {
            const auto methods = compared_methods<Host>(m, n, scalar_kind<T>, q);
            if (methods.size() == 1) continue;
            TunedCase& c = cases.emplace_back(TunedCase{m, n, scalar_kind<T>, q});
            for (std::size_t k = 0; k < tuned_methods.size(); ++k) {
                if (std::find(methods.begin(), methods.end(), tuned_methods[k]) == methods.end()) continue;
                const Plan plan = plan_qr<T>(ctx, m, n, {.method = tuned_methods[k], .q = q});
                c.seconds[k] = 1e-9 * modelled_time(plan, machine) * std::exp(noise * normal(random));
            }
        }
    }
    return cases;
}

/// Returns the mean share of time that the choices by `times` lose to the best methods.
template <class T>
double lost(const std::array<double, step_time_count>& times, const std::vector<TunedCase>& cases) {
    const Context<Host> ctx(1);
    double sum = 0;
    for (const TunedCase& c : cases) {
        double best = std::numeric_limits<double>::infinity(), least = best, taken = 0;
        for (std::size_t k = 0; k < tuned_methods.size(); ++k) {
            if (c.seconds[k] == 0) continue;
            const Plan plan = plan_qr<T>(ctx, c.rows, c.cols, {.method = tuned_methods[k], .q = c.q});
            const double time = modelled_time(plan, std::bit_cast<StepTimes>(times));
            if (time < least) {
                least = time;
                taken = c.seconds[k];
            }
            best = std::min(best, c.seconds[k]);
        }
        sum += taken / best - 1;
    }
    return sum / static_cast<double>(cases.size());
}

/// On a machine whose panels and n×n steps are slow and whose trees are fast, the fit finds choices for shapes that it
/// has not seen, from exact times and from times with errors of 10%. On the built-in machine it changes little.
TEST_F(TuningTest, TheFitFindsTheChoicesOfAMachine) {
    for (const double noise : {0.0, 0.1}) {
        TuningTable table = built_in_tuning(ctx), machine = table;
        const std::array<double, step_time_count> usual = table.f64;
        for (const char* step : {"panel.flop", "panel.entry", "panel.column", "update.flop", "update.entry"})
            scale(machine, step, 2);
        for (const char* step : {"square.flop", "square.entry", "square.column"}) scale(machine, step, 3);
        table.cases = cases_of<double>(machine.f64, 1, 100, noise);
        fit_tuning(table);
        const std::vector<TunedCase> fresh = cases_of<double>(machine.f64, 2, 300, 0);
        const double before = lost<double>(usual, fresh), after = lost<double>(table.f64, fresh);
        EXPECT_GT(before, 0.05);
        EXPECT_LT(after, before / 4) << noise;
        EXPECT_EQ(table.f32, built_in_tuning(ctx).f32) << "it has no cases";

        table.cases = cases_of<double>(usual, 3, 100, noise);
        fit_tuning(table);
        EXPECT_LT(lost<double>(table.f64, cases_of<double>(usual, 4, 300, 0)), 0.005) << noise;
    }
}

TEST_F(TuningTest, ChangedChoicesAreThoseOfTheTwoTables) {
    TuningTable table = built_in_tuning(ctx);
    table.cases = {{3000, 500, ScalarKind::F64, QForm::Any, {4, 3, 2, 1}}};
    EXPECT_TRUE(changed_choices(table).empty());
    scale(table, "update.flop", 50);
    scale(table, "panel.flop", 50);
    const std::vector<TunedChoice> changed = changed_choices(table);
    ASSERT_EQ(changed.size(), 1u);
    EXPECT_EQ(changed[0].built_in, Method::BlockedHouseholder);
    EXPECT_EQ(
        changed[0].ratio,
        3 / table.cases[0].seconds[std::size_t(std::find(tuned_methods.begin(), tuned_methods.end(), changed[0].tuned) -
                                               tuned_methods.begin())]);
}

/// Every method that Auto compares is measured, and no other; a shape without a choice has no case.
TEST_F(TuningTest, TuneMeasuresWhatAutoCompares) {
    double last = -1;
    const TuningTable table = tune(ctx, {.shapes = {{60, 40}, {300, 5}, {4, 2}}, .progress = [&](double done) {
                                             EXPECT_GT(done, last);
                                             EXPECT_LT(done, 1);
                                             last = done;
                                         }});
    EXPECT_EQ(table.cases.size(), 10u);  // 3 forms of 60×40, 2 of 300×5, in f32 and f64
    for (const TunedCase& c : table.cases) {
        const auto compared = compared_methods<Host>(c.rows, c.cols, c.scalar, c.q);
        for (std::size_t k = 0; k < tuned_methods.size(); ++k) {
            const bool is_compared = std::find(compared.begin(), compared.end(), tuned_methods[k]) != compared.end();
            EXPECT_EQ(c.seconds[k] > 0, is_compared) << c.rows << " " << to_string(tuned_methods[k]);
            EXPECT_LT(c.seconds[k], 1);
        }
    }
    EXPECT_EQ(table.threads, 2);
}

TEST_F(TuningTest, AnInterruptionKeepsTheCasesSoFar) {
    TuningTable table = tune(ctx, {.shapes = {{60, 40}, {60, 40}}, .progress = [&](double done) {
                                       if (done > 0) ctx.request_stop();
                                   }});
    EXPECT_EQ(table.cases.size(), 6u);
    save_tuning(table, path());
    EXPECT_EQ(use(path()).id, table.id) << use(path()).refusal;
}

/// Random shapes end by the time. They are such that two methods are close.
TEST_F(TuningTest, MeasuringEndsInTime) {
    const TuningTable table = tune(ctx, {.seconds = 0.3, .flops = 1e7});
    EXPECT_GT(table.cases.size(), 0u);
    for (const TunedCase& c : table.cases) EXPECT_LE(c.rows * c.cols * std::min(c.rows, c.cols), 10'000'000);
}

TEST_F(TuningTest, ThePathIsInTheUsersFolder) {
    const auto path_with = [](const char* tuning, const char* config, const char* home) {
        for (const auto& [name, value] :
             {std::pair("QUOIN_TUNING", tuning), {"XDG_CONFIG_HOME", config}, {"HOME", home}})
            value ? setenv(name, value, 1) : unsetenv(name);
        return tuning_path();
    };
    EXPECT_EQ(path_with("mine.json", "/config", "/home/me"), "mine.json");
    const std::string in_config = path_with(nullptr, "/config", "/home/me");
    EXPECT_EQ(in_config.find("/config/quoin/tuning-"), 0u) << in_config;
    EXPECT_EQ(path_with("off", "/config", "/home/me"), in_config);
    EXPECT_EQ(path_with(nullptr, nullptr, "/home/me"), "/home/me/.config" + in_config.substr(7));
    EXPECT_EQ(path_with(nullptr, "relative", "/home/me"), "/home/me/.config" + in_config.substr(7));
    EXPECT_EQ(path_with(nullptr, nullptr, nullptr), "");
    // without a file there is nothing to refuse
    Tuning<Host>::read_table_again();
    EXPECT_EQ(tuning_in_use().refusal, "");
}

// ---- Nearest cases, as on a GPU -------------------------------------------------------------------------------------

/// Cases at powers of two in which TSQR, the third of the methods, takes `ratio(m, n)` of the time of reflectors.
template <class Ratio>
std::vector<TunedCase> grid_of_cases(const Ratio& ratio) {
    std::vector<TunedCase> cases;
    for (Index m = 64; m <= 1 << 20; m *= 2)
        for (Index n = 2; n <= std::min<Index>(m, 256); n *= 2)
            cases.push_back({m, n, ScalarKind::F32, QForm::Explicit, {0, 1e-3, 1e-3 * ratio(m, n), 0}});
    return cases;
}
Method chosen(const std::vector<TunedCase>& cases, Index m, Index n, Method usual = Method::BlockedHouseholder,
              ScalarKind scalar = ScalarKind::F32, QForm q = QForm::Explicit) {
    return nearest_choice(cases, m, n, scalar, q, usual);
}

TEST(NearestCases, OfAMeasuredShapeDecide) {
    const auto cases = grid_of_cases([](Index m, Index n) { return m > 1000 * n ? 0.5 : 2.0; });
    for (const TunedCase& c : cases) {
        // neighbours on the other side of the bound weigh a hundredth each
        const Method expected = c.rows > 1000 * c.cols ? Method::TSQR : Method::BlockedHouseholder;
        EXPECT_EQ(chosen(cases, c.rows, c.cols), expected) << c.rows << "x" << c.cols;
        EXPECT_EQ(chosen(cases, c.rows, c.cols, Method::TSQR), expected) << c.rows << "x" << c.cols;
    }
    EXPECT_EQ(chosen(cases, 90000, 3), Method::TSQR);
    EXPECT_EQ(chosen(cases, 700, 90), Method::BlockedHouseholder);
}

TEST(NearestCases, LeaveTheUsualChoiceWithoutAGain) {
    const auto slightly = grid_of_cases([](Index, Index) { return 0.96; });
    EXPECT_EQ(chosen(slightly, 4096, 16), Method::BlockedHouseholder) << "less than 5%";
    const auto fast = grid_of_cases([](Index, Index) { return 0.5; });
    EXPECT_EQ(chosen(fast, 4096, 16), Method::TSQR);
    EXPECT_EQ(chosen({}, 4096, 16), Method::BlockedHouseholder);
    EXPECT_EQ(chosen(fast, 10, 16), Method::BlockedHouseholder) << "more than an octave away";
    EXPECT_EQ(chosen(fast, 4096, 600), Method::BlockedHouseholder) << "more than an octave away";
    EXPECT_EQ(chosen(fast, 4096, 16, Method::BlockedHouseholder, ScalarKind::F64), Method::BlockedHouseholder);
    EXPECT_EQ(chosen(fast, 4096, 16, Method::BlockedHouseholder, ScalarKind::F32, QForm::None),
              Method::BlockedHouseholder);
    EXPECT_EQ(chosen(fast, 4096, 16, Method::CAQR), Method::CAQR) << "the usual method was not measured";
    EXPECT_EQ(chosen(fast, 4096, 16, Method::ModifiedGramSchmidt), Method::ModifiedGramSchmidt);
}

TEST(NearestCases, LackAMethodThatOneOfThemLacks) {
    auto cases = grid_of_cases([](Index, Index) { return 0.5; });
    for (TunedCase& c : cases)
        if (c.rows == 4096 && c.cols == 16) c.seconds[2] = 0;
    EXPECT_EQ(chosen(cases, 4096, 16), Method::BlockedHouseholder);
    EXPECT_EQ(chosen(cases, 4096, 64), Method::TSQR);
}

}  // namespace
}  // namespace quoin::test
