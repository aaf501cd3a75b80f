// `mpiexec -n P quoin factor`: files in, files out, and errors of all processes said once.

#include "checks.hpp"
#include "cli_run.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

/// Starts the command line with `processes` processes.
Process start_by(int processes, const std::string& line) {
    std::istringstream words(line);
    std::vector<std::string> arguments = {"--oversubscribe", "-q", "-n", std::to_string(processes),
                                          Process::quoin_path()};
    arguments.insert(arguments.end(), std::istream_iterator<std::string>(words), {});
    return Process(QUOIN_MPIEXEC, std::move(arguments));
}
Outcome quoin_by(int processes, const std::string& line) { return start_by(processes, line).wait(); }

/// mpiexec adds lines of its own.
void expect_error_once(const Outcome& outcome, int exit_code, std::initializer_list<std::string> fragments) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    const auto lines = lines_of(outcome.err);
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const std::string& l) { return l.starts_with("quoin: "); }),
              1)
        << outcome.err;
    for (const std::string& fragment : fragments)
        EXPECT_NE(outcome.err.find(fragment), std::string::npos) << outcome.err;
}

class CliOfSeveral : public Cli {};

template <class T>
void expect_factors(const std::string& A_path, const std::string& folder) {
    const Matrix<T> A = load<T>(A_path), Q = load<T>(folder + "/Q.npy"), R = load<T>(folder + "/R.npy");
    const Index k = std::min(A.rows(), A.cols());
    ASSERT_EQ(Q.rows(), A.rows());
    ASSERT_EQ(Q.cols(), k);
    ASSERT_EQ(R.rows(), k);
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), 2 * law);
    EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), 2 * law);
    EXPECT_EQ(names_in(folder), (std::vector<std::string>{"Q.npy", "R.npy"}));
}

TEST_F(CliOfSeveral, FactorsAreThoseOfTheFile) {
    const struct {
        Index m, n;
        int processes;
        const char* options;
    } cases[] = {{1003, 17, 3, ""},
                 {1003, 17, 2, " --method tsqr"},
                 {5, 9, 4, ""},
                 {3, 3, 7, " --method tsqr"},
                 {400, 5, 2, " --method randomized-cholesky-qr"},
                 {0, 4, 2, ""}};
    bool in_f64 = true;
    for (const auto& [m, n, processes, options] : cases) {
        SCOPED_TRACE(fmt::format("{}x{} by {}{}", m, n, processes, options));
        const bool wide = std::exchange(in_f64, !in_f64);
        if (wide) {
            save("A.npy", random_normal<double>(m, n));
        } else {
            save("A.npy", random_normal<float>(m, n));
        }
        const Outcome run = quoin_by(processes, fmt::format("factor A.npy --out A --json --verify{}", options));
        ASSERT_EQ(run.exit_code, 0) << run.err;
        EXPECT_EQ(lines_of(run.out).size(), 1u) << run.out;
        EXPECT_EQ(json_number(run.out, "ranks"), processes);
        EXPECT_EQ(json_number(run.out, "rows"), static_cast<double>(m));
        const double unit = static_cast<double>(std::max<Index>(1, std::min(m, n))) *
                            (wide ? unit_roundoff<double> : unit_roundoff<float>);
        EXPECT_LE(json_number(run.out, "orthogonality"), 2 * law * unit);
        EXPECT_LE(json_number(run.out, "residual"), 2 * law * unit);
        if (*options) {
            EXPECT_NE(json_value(run.out, "method").find(options + 10), std::string::npos) << run.out;
        }
        wide ? expect_factors<double>("A.npy", "A") : expect_factors<float>("A.npy", "A");
        fs::remove_all("A");
    }
}

TEST_F(CliOfSeveral, ROnlyIsTheSameR) {
    save("A.npy", random_normal<double>(900, 12));
    ASSERT_EQ(quoin_by(3, "factor A.npy --out whole --method tsqr").exit_code, 0);
    const Outcome run = quoin_by(3, "factor A.npy --out alone --method tsqr --r-only --trace t.json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("ranks          3"), std::string::npos) << run.out;
    EXPECT_EQ(names_in("alone"), std::vector<std::string>{"R.npy"});
    for (const char* name : {"rank 0", "rank 2", "wait", "merge"})
        EXPECT_NE(contents("t.json").find(fmt::format("\"{}\"", name)), std::string::npos) << name;
    EXPECT_LE(difference<double>(load<double>("alone/R.npy").view(), load<double>("whole/R.npy").view(), 12,
                                 frobenius_norm<double>(load<double>("A.npy").view())),
              2 * law);
}

TEST_F(CliOfSeveral, AnErrorOfOneIsSaidOnceAndLeavesNoFile) {
    Matrix<double> A = random_normal<double>(300, 4);
    A(299, 2) = std::numeric_limits<double>::quiet_NaN();
    save("A.npy", A);
    expect_error_once(quoin_by(3, "factor A.npy --out out"), exit_code_of(ErrorCode::NonFiniteEntry),
                      {"rank 2", "A.npy", "row 299", "column 2"});
    expect_error_once(quoin_by(2, "factor none.npy --out out"), exit_code_of(ErrorCode::UnreadableFile), {"none.npy"});
    expect_error_once(quoin_by(2, "factor - --out out"), exit_code_of(ErrorCode::InvalidArgument), {"standard input"});
    expect_error_once(quoin_by(2, "factor A.npy --out out --method cgs"), usage_error, {"--method", "cgs"});
    expect_error_once(quoin_by(2, "svd A.npy"), usage_error, {"factor alone", "svd"});
    EXPECT_FALSE(fs::exists("out"));
    fs::create_directory("out");
    save("out/V.npy", A);
    expect_error_once(quoin_by(2, "factor A.npy --out out"), exit_code_of(ErrorCode::UnwritableFile),
                      {"rank 0", "V.npy"});
    EXPECT_EQ(names_in("out"), std::vector<std::string>{"V.npy"});
}

/// Whatever ends a run from file to file, the same command goes on to the same bytes.
TEST_F(CliOfSeveral, KilledItGoesOnFromItsJournals) {
    const Index m = 20000, n = 24;
    save("A.npy", random_normal<double>(m, n));
    const std::string line = "factor A.npy --out f --json --memory 210KiB --second-pass recomputed";
    const Outcome whole = quoin_by(3, line + " --verify");
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_EQ(json_value(whole.out, "method"), "\"streaming-tsqr\"");
    EXPECT_EQ(json_number(whole.out, "first_step"), 0);
    const double steps = json_number(whole.out, "steps"), unit = n * unit_roundoff<double>;
    ASSERT_GE(steps, 200);
    EXPECT_LE(json_number(whole.out, "orthogonality"), law * std::sqrt(steps) * unit);
    EXPECT_LE(json_number(whole.out, "residual"), law * std::sqrt(steps) * unit);
    const auto outputs = [] { return contents("f/Q.npy") + contents("f/R.npy"); };
    const std::string expected = outputs();
    fs::remove_all("f");

    const auto lines_of_rank_1 = [] { return lines_of(contents("f/quoin-journal/rank-1/journal")).size(); };
    // one rank, at once: mpiexec takes longer than the run to pass on a Ctrl-C
    for (const int signal : {SIGKILL, SIGINT}) {
        const std::size_t before = lines_of_rank_1();
        Process run = start_by(3, line);
        const auto start = std::chrono::steady_clock::now();
        while (lines_of_rank_1() < before + 4 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const auto ranks = run.children();
        ASSERT_GE(ranks.size(), 3u);
        kill(ranks.back(), signal);
        const auto ended = std::chrono::steady_clock::now();
        EXPECT_NE(run.wait().exit_code, 0);
        EXPECT_LE(std::chrono::steady_clock::now() - ended, std::chrono::seconds(10));
        EXPECT_EQ(names_in("f"), std::vector<std::string>{"quoin-journal"});
    }
    const Outcome finished = quoin_by(3, line);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(finished.err.find("going on from f/quoin-journal"), std::string::npos) << finished.err;
    EXPECT_GT(json_number(finished.out, "first_step"), 0);
    EXPECT_TRUE(expected == outputs());
    EXPECT_EQ(names_in("f"), (std::vector<std::string>{"Q.npy", "R.npy"}));
}

/// A matrix that does not fit goes from file to file, or is refused with what would do.
TEST_F(CliOfSeveral, RefusesWhatDoesNotFit) {
    save("A.npy", random_normal<double>(900, 200));
    for (const std::string options : {"--memory 100KiB", "--memory 1MiB --method cholesky-qr2"}) {
        expect_error_once(quoin_by(2, "factor A.npy --out out " + options), exit_code_of(ErrorCode::OutOfMemory),
                          {"A.npy", "the smallest cap that works is --memory"});
    }
    EXPECT_FALSE(fs::exists("out"));
}

/// A process of an MPI program may run quoin by itself.
TEST_F(CliOfSeveral, AChildOfAProcessIsAlone) {
    save("A.npy", random_normal<double>(20, 4));
    const Outcome run =
        Process(QUOIN_MPIEXEC, {"--oversubscribe", "-q", "-n", "2", "/bin/sh", "-c",
                                "\"$0\" factor A.npy --out of$OMPI_COMM_WORLD_RANK; exit $?", Process::quoin_path()})
            .wait();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(fs::exists("of0/Q.npy") && fs::exists("of1/Q.npy"));
}

}  // namespace
}  // namespace quoin::test
