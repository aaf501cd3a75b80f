// `quoin lyapunov`, run as a user runs it: spectra, files, refusals, runs that were stopped, killed and resumed.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "checks.hpp"
#include "cli_run.hpp"

namespace quoin::test {
namespace {

using LyapunovCli = Cli;

std::vector<double> numbers(const std::string& list) {
    std::vector<double> values;
    std::istringstream stream(list.substr(1, list.size() - 2));
    for (std::string word; std::getline(stream, word, ',');) values.push_back(std::stod(word));
    return values;
}

TEST_F(LyapunovCli, ReportsTheSpectrumInEveryForm) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome =
        quoin_run("lyapunov lorenz96 --size 8 --time 50 --transient 10 --alignment 10 --json --out d");
    const double ran = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(json_keys(outcome.out), (std::vector<std::string>{"system",
                                                                "dimension",
                                                                "end",
                                                                "exponents",
                                                                "errors",
                                                                "half_widths",
                                                                "sum",
                                                                "sum_error",
                                                                "sum_half_width",
                                                                "divergence",
                                                                "kolmogorov_sinai",
                                                                "kolmogorov_sinai_error",
                                                                "kolmogorov_sinai_half_width",
                                                                "kaplan_yorke",
                                                                "kaplan_yorke_error",
                                                                "kaplan_yorke_half_width",
                                                                "positive",
                                                                "vanishing",
                                                                "time",
                                                                "transient",
                                                                "alignment",
                                                                "discarded",
                                                                "resolved",
                                                                "segments",
                                                                "steps_per_qr",
                                                                "seed",
                                                                "method",
                                                                "dtype",
                                                                "device",
                                                                "seconds",
                                                                "qr_share",
                                                                "tangent_share",
                                                                "force_share",
                                                                "reorthonormalisations_per_second"}));
    EXPECT_EQ(names_in("d"),
              (std::vector<std::string>{"convergence.svg", "exponents.npy", "report.json", "spectrum.svg"}));
    EXPECT_EQ(contents("d/report.json"), outcome.out);
    const Matrix<double> table = load<double>("d/exponents.npy");
    const std::vector<double> exponents = numbers(json_value(outcome.out, "exponents"));
    ASSERT_EQ(table.rows(), 8);
    ASSERT_EQ(exponents.size(), 8u);
    for (Index i = 0; i < 8; ++i) {
        EXPECT_NEAR(table(i, 0), exponents[static_cast<std::size_t>(i)], 1e-5 * std::abs(table(i, 0)) + 1e-12);
        EXPECT_GT(table(i, 1), 0);
        EXPECT_GT(table(i, 2), 1.9 * table(i, 1));
    }
    EXPECT_EQ(json_number(outcome.out, "divergence"), -8);
    EXPECT_NEAR(json_number(outcome.out, "sum"), -8, 1e-3);
    const double shares = json_number(outcome.out, "qr_share") + json_number(outcome.out, "tangent_share") +
                          json_number(outcome.out, "force_share");
    EXPECT_NEAR(shares, 1, 1e-4);
    // rates and shares are of what the segments took: a part of the run
    EXPECT_EQ(json_value(outcome.out, "device"), "\"host\"");
    EXPECT_GT(json_number(outcome.out, "seconds"), 0);
    EXPECT_LE(json_number(outcome.out, "seconds"), ran);
    EXPECT_GE(json_number(outcome.out, "reorthonormalisations_per_second") * ran, json_number(outcome.out, "segments"));
    EXPECT_EQ(json_value(outcome.out, "end"), "\"completed\"");
    for (const char* picture : {"d/convergence.svg", "d/spectrum.svg"}) {
        const std::string svg = contents(picture);
        EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n")) << picture;
        EXPECT_EQ(svg.find("nan"), svg.npos) << picture;
        const bool over_time = picture == std::string("d/convergence.svg");
        for (const std::string& name : over_time ? std::vector<std::string>{"time averaged over", "Lyapunov exponents"}
                                                 : std::vector<std::string>{"i", "λᵢ", "λ₁ + … + λᵢ"})
            EXPECT_NE(svg.find(">" + name + "<"), svg.npos) << picture << " names no " << name;
        EXPECT_GE(std::count(svg.begin(), svg.end(), 'L'), 8) << picture;
        // closed paths: the band of each exponent's interval
        EXPECT_EQ(std::count(svg.begin(), svg.end(), 'Z'), over_time ? 8 : 0) << picture;
        // every curve is within its panel, which lies below y = 20 and above y = 430
        const std::regex point("[ML]-?[0-9.]+,(-?[0-9.]+)");
        for (auto it = std::sregex_iterator(svg.begin(), svg.end(), point); it != std::sregex_iterator(); ++it) {
            EXPECT_GE(std::stod((*it)[1]), 20) << picture;
            EXPECT_LE(std::stod((*it)[1]), 430) << picture;
        }
    }

    const Outcome text = quoin_run("lyapunov fput --size 30 --time 20 --transient 1 --alignment 1 --exponents 50");
    ASSERT_EQ(text.exit_code, 0) << text.err;
    for (const char* words : {"50 of 60", "...", "symmetries     make 2", "drifted by", "reorthonormalisations/s"})
        EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
    // numbered from 1, the middle left out
    std::vector<int> shown;
    const std::regex row("\n +(\\d+) +-?[0-9.]+ ± [0-9.]+ +95%: ± [0-9.]+(?=\n)");
    for (auto it = std::sregex_iterator(text.out.begin(), text.out.end(), row); it != std::sregex_iterator(); ++it)
        shown.push_back(std::stoi((*it)[1]));
    ASSERT_EQ(shown.size(), 24u) << text.out;
    for (int i = 0; i < 12; ++i) EXPECT_TRUE(shown[i] == i + 1 && shown[12 + i] == 39 + i) << text.out;
    // the exponents that add up to the entropy are counted, also if they may be 0; symmetries' zeros are drawn as zeros
    const std::string few = "lyapunov fput --size 4 --time 20 --transient 1 --alignment 1 ";
    const Outcome chain = quoin_run(few + "--json --out e");
    Index above = 0;
    for (const double exponent : numbers(json_value(chain.out, "exponents"))) above += exponent > 0;
    EXPECT_NE(quoin_run(few).out.find(std::to_string(above) + " exponents above 0"), std::string::npos);
    std::smatch zeros;
    const std::string picture = contents("e/spectrum.svg");
    ASSERT_TRUE(std::regex_search(picture, zeros, std::regex("(\\d+) exponents at 0")));
    EXPECT_GE(std::stoi(zeros[1]), json_number(chain.out, "vanishing"));
    // the sum of all exponents is known, a partial sum is not
    EXPECT_EQ(text.out.find("exactly"), std::string::npos) << text.out;
    const std::string whole = quoin_run("lyapunov lorenz96 --size 8 --time 5 --transient 1").out;
    EXPECT_NE(whole.find("exactly -8.0000"), std::string::npos) << whole;
}

TEST_F(LyapunovCli, KnowsEverySystemAndItsParameters) {
    const std::string times = " --time 3 --transient 1 --alignment 1 --json";
    for (const auto& [line, dimension] : std::initializer_list<std::pair<const char*, int>>{
             {"lorenz63 --sigma 10 --rho 28 --beta 2.5 --step 0.02", 3},
             {"henon --a 1.3 --b 0.2", 2},
             {"lorenz96 --size 12 --forcing 6", 12},
             {"kuramoto-sivashinsky --length 22 --modes 12", 24},
             {"kuramoto-sivashinsky", 32},
             {"mackey-glass --a 0.21 --b 0.11 --power 9 --tau 20 --size 12", 13},
             {"fput --size 7 --beta 0.5 --energy 2 --periodic", 14},
             {"particles --size 6 --dimensions 2 --density 0.5 --temperature 2", 24},
             {"particles --size 7 --dimensions 3 --potential soft --density 0.5", 42},
             {"particles --size 30 --dimensions 2 --potential yukawa --kappa 3 --cutoff 2 --density 0.5", 120},
             {"particles --size 70 --potential lennard-jones --density 0.5 --exponents 2", 420}}) {
        const Outcome outcome = quoin_run("lyapunov " + std::string(line) + times);
        EXPECT_EQ(outcome.exit_code, 0) << line << outcome.err;
        EXPECT_EQ(json_number(outcome.out, "dimension"), dimension) << line;
    }
}

TEST_F(LyapunovCli, TheHelpNamesTheDefaultsOfEverySystem) {
    const std::string help = quoin_run("lyapunov --help").out;
    for (const char* line : {"lorenz63                10000           50           50       10\n",
                             "henon                 1000000         1000         1000       10\n",
                             "lorenz96                 1000           50           50        5\n",
                             "kuramoto-sivashinsky    10000          200         2000        5\n",
                             "mackey-glass            20000         2000         2000       50\n",
                             "fput                    10000          200          200       10\n",
                             "particles                  40           10           10       10\n"})
        EXPECT_NE(help.find(line), std::string::npos) << line << help;
    const Outcome run = quoin_run("lyapunov henon --json");
    EXPECT_EQ(json_number(run.out, "time"), 1e6);
    EXPECT_EQ(json_number(run.out, "transient"), 1000);
    EXPECT_EQ(json_number(run.out, "alignment"), 1000);
    EXPECT_EQ(json_number(run.out, "steps_per_qr"), 10);
    EXPECT_EQ(json_number(quoin_run("lyapunov henon --time 10 --transient 7 --json").out, "transient"), 7);
}

/// OMP_WAIT_POLICY, which ctest sets, and GOMP_SPINCOUNT are as a user's until the end of the scope.
class UsersThreads {
public:
    UsersThreads() {
        unsetenv("OMP_WAIT_POLICY");
        unsetenv("GOMP_SPINCOUNT");
        setenv("OMP_DISPLAY_ENV", "verbose", 1);
    }
    UsersThreads(const UsersThreads&) = delete;
    ~UsersThreads() {
        unsetenv("OMP_DISPLAY_ENV");
        unsetenv("GOMP_SPINCOUNT");
        setenv("OMP_WAIT_POLICY", "passive", 1);
    }
};

TEST_F(LyapunovCli, WaitingThreadsSleepSoonUnlessTheUserSaysOtherwise) {
    const UsersThreads users;
    const std::string said = quoin_run("--version").err;
    if (said.find("GOMP_SPINCOUNT") == std::string::npos) GTEST_SKIP() << "the OpenMP runtime is not libgomp";
    EXPECT_NE(said.find("GOMP_SPINCOUNT = '30000'"), std::string::npos) << said;
    setenv("GOMP_SPINCOUNT", "77", 1);
    EXPECT_EQ(quoin_run("--version").err.find("'10000'"), std::string::npos);
}

TEST_F(LyapunovCli, DrawsTheConvergenceByTheSuffix) {
    const std::string line = "lyapunov lorenz96 --size 8 --time 20 --transient 1 --alignment 1 --plot ";
    ASSERT_EQ(quoin_run(line + "a.svg").exit_code, 0);
    EXPECT_TRUE(contents("a.svg").starts_with("<svg "));
    expect_error(quoin_run(line + "a.pdf"), usage_error, {"--plot", "a.pdf", ".svg or .png"});
    expect_error(quoin_run(line + "no/such/folder/a.svg"), exit_code_of(ErrorCode::UnwritableFile), {"no/such/folder"});
    const Outcome png = quoin_run(line + "a.png");
    if (png.exit_code == 0) {
        EXPECT_TRUE(contents("a.png").starts_with("\x89PNG\r\n"));
        EXPECT_NE(png.out.find("wrote          a.png"), std::string::npos) << png.out;
    } else {
        expect_error(png, exit_code_of(ErrorCode::InvalidArgument), {"a.png", "without librsvg"});
    }
}

TEST_F(LyapunovCli, TakesVectorsInF32AndSaysWhichSystemsAGpuHas) {
    const std::string line = "lyapunov lorenz96 --size 8 --time 20 --transient 1 --alignment 1 --json ";
    const Outcome wide = quoin_run(line + "--dtype f64"), narrow = quoin_run(line + "--dtype f32 --device host");
    ASSERT_EQ(narrow.exit_code, 0) << narrow.err;
    EXPECT_EQ(json_value(wide.out, "dtype"), "\"f64\"");
    EXPECT_EQ(json_value(narrow.out, "dtype"), "\"f32\"");
    EXPECT_EQ(json_value(narrow.out, "device"), "\"host\"");
    EXPECT_NE(json_value(narrow.out, "exponents"), json_value(wide.out, "exponents"));
    const std::vector<double> expected = numbers(json_value(wide.out, "exponents")),
                              errors = numbers(json_value(wide.out, "errors")),
                              values = numbers(json_value(narrow.out, "exponents"));
    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(values[i], expected[i], errors[i]);
    expect_error(quoin_run("lyapunov henon --dtype f16"), usage_error, {"--dtype", "f16", "f32, f64"});
    expect_error(quoin_run("lyapunov mackey-glass --device cuda"), exit_code_of(ErrorCode::InvalidArgument),
                 {"--device cuda", "mackey-glass", "all other systems"});
    const Outcome delayed = quoin_run("lyapunov mackey-glass --device auto --time 1000");
    ASSERT_EQ(delayed.exit_code, 0) << delayed.err;
    EXPECT_NE(delayed.out.find("device         host (mackey-glass"), std::string::npos) << delayed.out;
}

// A segment of 400 steps draws the vectors apart by e^{62}: more QRs, and a word; λ₃ has its digits.
TEST_F(LyapunovCli, SaysWhatItChanged) {
    const Outcome cut = quoin_run("lyapunov lorenz63 --every 400 --time 1000");
    ASSERT_EQ(cut.exit_code, 0) << cut.err;
    EXPECT_NE(cut.out.find("instead of 400: the vectors grow too far apart"), std::string::npos) << cut.out;
    const Outcome json = quoin_run("lyapunov lorenz63 --every 400 --time 1000 --json");
    EXPECT_NEAR(numbers(json_value(json.out, "exponents"))[2], -14.572, 0.03);
    EXPECT_NEAR(json_number(json.out, "sum"), -41. / 3, 1e-3);
    EXPECT_LE(json_number(json.out, "steps_per_qr"), 200);

    const Outcome until = quoin_run("lyapunov henon --until 0.01 --json");
    ASSERT_EQ(until.exit_code, 0) << until.err;
    EXPECT_EQ(json_value(until.out, "reached"), "true");
    for (const double half_width : numbers(json_value(until.out, "half_widths"))) EXPECT_LE(half_width, 0.01);
    EXPECT_NE(quoin_run("lyapunov henon --until 1e-4 --time 1000").out.find("--until 0.0001 was not reached"),
              std::string::npos);
    EXPECT_NE(quoin_run("lyapunov henon --time 50").out.find("too few segments for errors"), std::string::npos);
}

TEST_F(LyapunovCli, ReportsCovariantVectors) {
    const std::string run = "lyapunov lorenz63 --covariant --time 50 --transient 10 --alignment 20 ";
    const Outcome outcome = quoin_run(run + "--window 2 --json --out d");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json_keys(outcome.out),
              (std::vector<std::string>{"system", "dimension", "exponents", "window", "deviations", "split",
                                        "least_angle", "percentile_angle", "median_angle", "time", "segments"}));
    EXPECT_EQ(contents("d/report.json"), outcome.out);
    const Matrix<double> local = load<double>("d/local.npy"), finite = load<double>("d/finite_time.npy"),
                         angles = load<double>("d/angles.npy");
    EXPECT_TRUE(local.rows() == 3 && local.cols() == 500 && finite.rows() == 3 && finite.cols() == 25);
    EXPECT_EQ(angles.rows() * angles.cols(), 500);
    double least = 9, first = 0;
    for (Index k = 0; k < 500; ++k) least = std::min(least, angles.data()[k]);
    for (Index k = 0; k < 20; ++k) first += local(0, k) / 20;
    EXPECT_NEAR(json_number(outcome.out, "least_angle"), least, 1e-5 * least);
    EXPECT_NEAR(finite(0, 0), first, 1e-12);
    for (const char* picture : {"d/finite_time.svg", "d/angles.svg"}) {
        const std::string svg = contents(picture);
        EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n")) << picture;
        EXPECT_EQ(svg.find("nan"), svg.npos) << picture;
    }
    const Outcome text = quoin_run(run + "--split 2");
    for (const char* words : {"3 vectors over 50", "windows of 1\n", "of the first 2 to the other 1"})
        EXPECT_NE(text.out.find(words), std::string::npos) << words << text.out;
    expect_error(quoin_run(run + "--until 1"), usage_error, {"--until", "is not for --covariant"});
    expect_error(quoin_run("lyapunov henon --split 1"), usage_error, {"--split", "is for --covariant"});
}

TEST_F(LyapunovCli, ReadsAMeasuredSeries) {
    Matrix<double> x(1000, 1);  // Hénon's
    double a = 0.1, b = 0.1;
    for (Index k = 0; k < 1000; ++k) {
        const double next = 1 - 1.4 * a * a + b;
        b = 0.3 * a, a = next;
        x(k, 0) = a;
    }
    std::string column = "time;x\n";
    for (Index k = 0; k < 1000; ++k) column += fmt::format("{};{}\n", k, x(k, 0));
    std::replace(column.begin(), column.end(), '.', ',');
    std::ofstream("x.csv") << column;
    save("x.npy", std::move(x));
    const Outcome json = quoin_run("lyapunov --series x.npy --delays 2 --horizon 30 --json");
    ASSERT_EQ(json.exit_code, 0) << json.err;
    const Outcome table = quoin_run("lyapunov --series x.csv --decimal , --columns 2 --delays 2 --horizon 30 --json");
    EXPECT_EQ(json_value(table.out, "exponents"), json_value(json.out, "exponents")) << table.err;
    EXPECT_NE(table.err.find("line 1 is taken for a header"), std::string::npos) << table.err;
    std::ofstream("x.csv") << "0,1\n0,5\n0,25\n";
    expect_error(quoin_run("lyapunov --series x.csv"), exit_code_of(ErrorCode::UnreadableFile),
                 {"x.csv", "--decimal ,"});
    EXPECT_EQ(json_keys(json.out),
              (std::vector<std::string>{"series", "samples", "components", "largest", "largest_error",
                                        "largest_half_width", "slope_from", "slope_to", "exponents", "errors",
                                        "half_widths", "kaplan_yorke", "resolved", "time", "skipped"}));
    EXPECT_NEAR(numbers(json_value(json.out, "exponents"))[0], 0.419, 0.06);
    EXPECT_NEAR(json_number(json.out, "largest"), 0.419, 0.1);
    const Outcome text = quoin_run("lyapunov --series x.npy --delays 2 --exponents 1");
    for (const char* words : {"1000 samples of 1 components", "by nearest neighbours", "of 2 variables by Jacobians"})
        EXPECT_NE(text.out.find(words), std::string::npos) << words << text.out << text.err;
    // the curve, whose slope is the largest exponent
    ASSERT_EQ(quoin_run("lyapunov --series x.npy --delays 2 --horizon 30 --out d --plot curve.svg").exit_code, 0);
    EXPECT_EQ(names_in("d"),
              (std::vector<std::string>{"divergence.csv", "divergence.svg", "exponents.npy", "report.json"}));
    std::istringstream csv(contents("d/divergence.csv"));
    std::string header;
    std::getline(csv, header);
    EXPECT_EQ(header, "time,mean_log_distance");
    std::vector<double> logarithms;
    for (std::string row; std::getline(csv, row);) {
        EXPECT_EQ(std::stoul(row), logarithms.size());
        logarithms.push_back(std::stod(row.substr(row.find(',') + 1)));
    }
    ASSERT_EQ(logarithms.size(), 30u);
    const double from = json_number(json.out, "slope_from"), to = json_number(json.out, "slope_to");
    const double rise = logarithms[static_cast<std::size_t>(to)] - logarithms[static_cast<std::size_t>(from)];
    EXPECT_NEAR(rise / (to - from), json_number(json.out, "largest"), 0.05);
    EXPECT_EQ(contents("curve.svg"), contents("d/divergence.svg"));
    EXPECT_NE(contents("curve.svg").find("mean log-distance of neighbours"), std::string::npos);
    EXPECT_EQ(load<double>("d/exponents.npy").rows(), 2);
    expect_error(quoin_run("lyapunov --series x.npy --plot curve.gif"), usage_error, {"--plot", ".svg or .png"});
    Matrix<double> gap(500, 2);
    for (Index k = 0; k < 1000; ++k) gap.data()[k] = std::sin(static_cast<double>(k * k));
    gap(300, 1) = std::nan("");
    save("gap.npy", std::move(gap));
    expect_error(quoin_run("lyapunov --series gap.npy"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"row 300, column 1"});
    expect_error(quoin_run("lyapunov henon --series x.npy"), usage_error, {"SYSTEM", "is not for --series"});
    expect_error(quoin_run("lyapunov --series x.npy --time 3"), usage_error, {"--time", "is not for --series"});
    expect_error(quoin_run("lyapunov --series x.npy --delays 900"), exit_code_of(ErrorCode::InvalidArgument),
                 {"too short"});
}

// The exponents of the origin are the eigenvalues of the Jacobian; of the sum, −41/3 to as many digits as its error is
// printed with.
TEST_F(LyapunovCli, PrintsWhatAStepDoesToRegularMotion) {
    const std::string run = "--time 100 --transient 50 --alignment 50";
    const std::string text = quoin_run("lyapunov lorenz63 --rho 0.5 " + run).out;
    EXPECT_EQ(text.find("correlations"), std::string::npos) << text;
    EXPECT_NE(text.find("exactly -13.66666667 by"), std::string::npos) << text;
    for (const char* words : {"± 0.00000000", "-0.00000000"}) EXPECT_EQ(text.find(words), std::string::npos) << text;
    EXPECT_NE(quoin_run("lyapunov fput --size 4 " + run).out.find("sum            0.00000000 ± "), std::string::npos);
}

TEST_F(LyapunovCli, RefusesWhatIsOutOfRange) {
    const int invalid = exit_code_of(ErrorCode::InvalidArgument);
    expect_error(quoin_run("lyapunov lorenz64"), usage_error,
                 {"lorenz64", "lorenz63, henon, lorenz96, kuramoto-sivashinsky, mackey-glass, fput, particles"});
    expect_error(quoin_run("lyapunov"), usage_error, {"SYSTEM"});
    expect_error(quoin_run("lyapunov henon --rho 3"), usage_error, {"--rho", "is for lorenz63", "henon"});
    expect_error(quoin_run("lyapunov henon --step 3"), usage_error, {"--step", "henon"});
    expect_error(quoin_run("lyapunov lorenz63 --size 3"), usage_error,
                 {"--size", "lorenz96, mackey-glass, fput, particles"});
    expect_error(quoin_run("lyapunov particles --potential hard"), usage_error, {"hard", "wca"});
    expect_error(quoin_run("lyapunov lorenz63 --exponents 4"), invalid, {"exponents", "dimension 3", "4"});
    expect_error(quoin_run("lyapunov lorenz63 --step 0"), invalid, {"step", "0"});
    expect_error(quoin_run("lyapunov lorenz63 --time -5"), invalid, {"time", "-5"});
    expect_error(quoin_run("lyapunov lorenz96 --size 3"), invalid, {"lorenz96", "4"});
    expect_error(quoin_run("lyapunov particles --size 5 --density 1"), invalid, {"box", "cutoff"});
    expect_error(quoin_run("lyapunov particles --density 4"), invalid, {"overlap"});
    expect_error(quoin_run("lyapunov lorenz63 --step 1 --out d"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"state at time", "step 1"});
    EXPECT_FALSE(fs::exists("d"));
    expect_error(quoin_run("lyapunov kuramoto-sivashinsky --exponents 0 --transient 5 --alignment 5 --time 20"),
                 exit_code_of(ErrorCode::NumericalBreakdown), {"32 exponents have the sum", "must be -3000.68"});
    expect_error(quoin_run("lyapunov henon --until 0"), usage_error, {"--until", "positive"});
    expect_error(quoin_run("lyapunov lorenz63 --checkpoint no/such/folder/file"),
                 exit_code_of(ErrorCode::UnwritableFile), {"no/such/folder/file"});
    expect_error(quoin_run("lyapunov henon --time 100 --out /dev/null"), exit_code_of(ErrorCode::UnwritableFile),
                 {"/dev/null"});
}

const std::string long_run = "lyapunov lorenz96 --size 20 --seed 3 --transient 2 --alignment 2 --time ";

/// Returns the exponents of a run of length `time` without interruptions.
Matrix<double> uninterrupted(const std::string& time) {
    EXPECT_EQ(quoin_run(long_run + time + " --out whole").exit_code, 0);
    return load<double>("whole/exponents.npy");
}

TEST_F(LyapunovCli, StopsAtASignalAndGoesOn) {
    const std::string time = "300";
    for (const int signal : {SIGINT, SIGTERM}) {
        Process process({"lyapunov", "lorenz96", "--size", "20", "--seed", "3", "--transient", "2", "--alignment", "2",
                         "--time", "1e9", "--checkpoint", "run", "--json", "--out", "part"});
        process.wait_until_caught(signal);
        process.wait_until_used(0.3);
        process.send(signal);
        const Outcome stopped = process.wait();
        EXPECT_EQ(stopped.exit_code, 128 + signal);
        EXPECT_EQ(stopped.err, "quoin: interrupted\n");
        EXPECT_EQ(json_value(stopped.out, "end"), "\"stopped\"") << stopped.out;
        EXPECT_GT(json_number(stopped.out, "segments"), 0);
        EXPECT_LT(json_number(stopped.out, "time"), 1e9);
        EXPECT_EQ(contents("part/report.json"), stopped.out);
        EXPECT_EQ(names_in(".").size(), 2u) << "the checkpoint and the folder, and nothing unfinished";
    }
    const Outcome stopped = quoin_run(long_run + "1e-9 --checkpoint run --json");
    const double had = json_number(stopped.out, "time");
    EXPECT_GT(had, 0);
    const std::string more = fmt::format("{:.6f}", had + 20);
    const Outcome resumed = quoin_run(long_run + more + " --checkpoint run --out resumed --json");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(same_bits<double>(load<double>("resumed/exponents.npy").view(), uninterrupted(more).view()));
    expect_error(quoin_run("lyapunov lorenz96 --size 21 --checkpoint run"), exit_code_of(ErrorCode::InvalidArgument),
                 {"run", "size=20", "size=21"});
}

TEST_F(LyapunovCli, StopsBeforeThereIsAnythingToReport) {
    Process process({"lyapunov", "lorenz63", "--transient", "1e9", "--out", "d"});
    process.wait_until_caught(SIGINT);
    // into the transient: a signal before it ends the program without a report
    process.wait_until_used(0.3);
    process.send(SIGINT);
    const Outcome stopped = process.wait();
    EXPECT_EQ(stopped.exit_code, 128 + SIGINT);
    EXPECT_NE(stopped.out.find("exponents      none yet"), std::string::npos) << stopped.out;
    EXPECT_NE(contents("d/report.json").find("\"exponents\": [null, null, null]"), std::string::npos);
    for (const char* picture : {"d/convergence.svg", "d/spectrum.svg"})
        EXPECT_EQ(contents(picture).find("nan"), std::string::npos) << picture;
}

// Killed again and again between and during its saves, a run ends with the bits of one that was left alone.
TEST_F(LyapunovCli, SurvivesBeingKilled) {
    const std::string time = "400";
    const Matrix<double> whole = uninterrupted(time);
    int killed = 0;
    for (int attempt = 0; attempt < (quick() ? 20 : 200); ++attempt) {
        Process process({"lyapunov",
                         "lorenz96",
                         "--size",
                         "20",
                         "--seed",
                         "3",
                         "--transient",
                         "2",
                         "--alignment",
                         "2",
                         "--time",
                         time,
                         "--checkpoint",
                         "run",
                         "--checkpoint-every",
                         "0.002",
                         "--out",
                         "end",
                         "--threads",
                         attempt % 2 ? "1" : "2"});
        std::this_thread::sleep_for(std::chrono::milliseconds(40 + 17 * (attempt % 5)));
        process.send(SIGKILL);
        const Outcome outcome = process.wait();
        if (outcome.exit_code == 0) break;
        ASSERT_EQ(outcome.exit_code, 128 + SIGKILL) << outcome.err;
        ++killed;
    }
    EXPECT_GE(killed, 2);
    const Outcome last = quoin_run(long_run + time + " --checkpoint run --out end");
    ASSERT_EQ(last.exit_code, 0) << last.err;
    EXPECT_TRUE(same_bits<double>(load<double>("end/exponents.npy").view(), whole.view()));
}

TEST_F(LyapunovCli, RefusesADamagedCheckpoint) {
    ASSERT_EQ(quoin_run(long_run + "20 --checkpoint run").exit_code, 0);
    const std::string whole = contents("run");
    std::ofstream("run", std::ios::binary | std::ios::trunc) << whole.substr(0, whole.size() - 3);
    expect_error(quoin_run(long_run + "20 --checkpoint run"), exit_code_of(ErrorCode::UnreadableFile),
                 {"run", "cut off"});
    // five counts follow the empty line: segments, the length of a batch, how much of it is filled, batches, vectors
    const std::size_t counts = whole.find("\n\n") + 2;
    const auto expect_refused = [&](int count, std::int64_t value, const char* why) {
        std::string damaged = whole;
        std::memcpy(damaged.data() + counts + 8 * static_cast<std::size_t>(count), &value, sizeof value);
        std::ofstream("run", std::ios::binary | std::ios::trunc) << damaged;
        expect_error(quoin_run(long_run + "20 --checkpoint run"), exit_code_of(ErrorCode::UnreadableFile),
                     {"run", why});
    };
    std::int64_t length;
    std::memcpy(&length, whole.data() + counts + 8, sizeof length);
    expect_refused(0, -1, "damaged");
    expect_refused(1, 0, "damaged");
    expect_refused(2, -1, "damaged");
    expect_refused(2, length, "damaged");
    expect_refused(3, -1, "damaged");
    expect_refused(3, 257, "damaged");
    expect_refused(3, 256, "cut off");
    save("A.npy", identity<double>(3));
    expect_error(quoin_run(long_run + "20 --checkpoint A.npy"), exit_code_of(ErrorCode::UnreadableFile),
                 {"A.npy", "not a checkpoint"});
}

}  // namespace
}  // namespace quoin::test
