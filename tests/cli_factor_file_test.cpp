// `quoin factor` of a matrix larger than its memory cap: ends at any moment, memory, and what the user is told.

#include <chrono>
#include <random>
#include <thread>
#include <tuple>

#include "checks.hpp"
#include "cli_run.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

using Clock = std::chrono::steady_clock;

class CliFile : public Cli {
protected:
    /// A in C order, whatever its size.
    static void save_rows(Index m, Index n) {
        NpyRowWriter<double> writer("A.npy", m, n);
        const Index step = 10000;
        for (Index i = 0; i < m; i += step)
            writer.write_rows(i, random_normal<double>(std::min(step, m - i), n, static_cast<unsigned>(i)).view());
        writer.commit();
    }
    /// Bytes of the journal, 0 where there is none.
    static std::uintmax_t journal_bytes() {
        std::error_code error;
        const auto bytes = fs::file_size("f/quoin-journal/journal", error);
        return error ? 0 : bytes;
    }
    static std::string outputs() { return contents("f/Q.npy") + contents("f/R.npy"); }
};

/// kill -9 at random moments: the run that is left alone at last has the bytes of one that always was.
TEST_F(CliFile, KilledAtAnyMomentItGoesOnToTheSameBytes) {
    write_npy<double>("B.npy", random_normal<double>(200, 200, 1).view());
    save_rows(4000, 24);
    for (const std::string way : {"A.npy --memory 200KiB --second-pass stored",
                                  "A.npy --memory 200KiB --second-pass recomputed", "B.npy --memory 300KiB"}) {
        const std::string line = "factor --out f --json " + way;
        const auto start = Clock::now();
        ASSERT_EQ(quoin_run(line).exit_code, 0);
        double whole = std::chrono::duration<double>(Clock::now() - start).count();
        const std::string expected = outputs();
        fs::remove_all("f");

        std::mt19937 random(7);
        std::istringstream words(line);
        const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
        // kills that left a journal; the run after the last of them is left alone
        const int wanted = 4;
        bool left_alone = false;
        for (int kills = 0; !left_alone;) {
            left_alone = kills >= wanted;
            const bool anew = journal_bytes() == 0;
            const double moment = std::uniform_real_distribution<double>(0, whole)(random);
            Process process(arguments);
            if (!left_alone) {
                std::this_thread::sleep_for(std::chrono::duration<double>(moment));
                process.send(SIGKILL);
            }
            const Outcome outcome = process.wait();
            // a disk that others use may have been much slower when the whole was measured, or faster
            if (outcome.exit_code == 128 + SIGKILL) {
                const bool counts = journal_bytes() > 0;
                kills += counts;
                if (!counts) whole *= 1.05;
                continue;
            }
            if (anew && !left_alone) whole = std::min(whole, moment);
            ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
            const std::string now = outputs();
            const auto differ = std::mismatch(now.begin(), now.end(), expected.begin(), expected.end()).first;
            EXPECT_TRUE(now == expected) << way << " after " << kills << " kills, from byte " << differ - now.begin()
                                         << " of " << now.size() << "\n"
                                         << outcome.err << outcome.out;
            EXPECT_EQ(names_in("f"), (std::vector<std::string>{"Q.npy", "R.npy"}));
            fs::remove_all("f");
        }
    }
}

TEST_F(CliFile, TheCapHoldsForTheWholeProcess) {
#ifdef QUOIN_SANITIZED
    GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
    const Index m = 100000, n = 100;
    const int cap = 12, beside = 32;  // MiB, the latter for pieces of files, threads and their stacks
    ASSERT_GT(8 * m * n, (cap + beside) << 20) << "or A would fit";
    save_rows(m, n);
    const long idle = quoin_run("info").peak_kib;
    for (const std::string flags : {"r --r-only", "q --second-pass stored --verify", "q --second-pass recomputed"}) {
        SCOPED_TRACE(flags);
        const Outcome outcome =
            quoin_run(fmt::format("factor A.npy --json --threads 2 --memory {}MiB --out {}", cap, flags));
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_GT(json_number(outcome.out, "blocks"), 1);
        EXPECT_LT(outcome.peak_kib - idle, (cap + beside) * 1024);
    }
}

/// Square and wide: the n² of R and QᵀQ alone are more than the cap, and they go by columns.
TEST_F(CliFile, TheCapHoldsToVerifyWhatIsWide) {
#ifdef QUOIN_SANITIZED
    GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
    const Index m = 1000, n = 1500;
    save_rows(m, n);
    const long idle = quoin_run("info").peak_kib;
    const int cap = 8;
    ASSERT_GT(8.0 * m * (3 * m + n), 4.0 * cap * (1 << 20));
    const Outcome outcome =
        quoin_run(fmt::format("factor A.npy --out f --json --verify --threads 2 --memory {}MiB", cap));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const double unit = static_cast<double>(m) * unit_roundoff<double>;
    EXPECT_LE(json_number(outcome.out, "orthogonality"), law * unit);
    EXPECT_LE(json_number(outcome.out, "residual"), law * unit);
    EXPECT_LT(outcome.peak_kib - idle, (cap + 32) * 1024);
}

TEST_F(CliFile, CtrlCKeepsTheJournalAndSaysHowToGoOn) {
    save_rows(50000, 40);
    const std::vector<std::string> arguments = {"factor", "A.npy", "--out", "f", "--memory", "3MiB", "--json"};
    Process process(arguments);
    const auto start = Clock::now();
    while (journal_bytes() < 400 && Clock::now() - start < std::chrono::seconds(20))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.send(SIGINT);
    const Outcome stopped = process.wait();
    EXPECT_EQ(stopped.exit_code, 128 + SIGINT);
    ASSERT_EQ(lines_of(stopped.err).size(), 2u) << stopped.err;
    EXPECT_NE(stopped.err.find("are kept in f/quoin-journal: the same command goes on"), std::string::npos);
    EXPECT_EQ(names_in("f"), std::vector<std::string>{"quoin-journal"});

    const Outcome other = quoin_run("factor A.npy --out f --memory 3MiB --r-only");
    expect_error(other, exit_code_of(ErrorCode::InvalidArgument), {"f/quoin-journal", "--restart", "q wanted"});

    const Outcome finished = Process(arguments).wait();
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_NE(finished.err.find("going on from f/quoin-journal"), std::string::npos) << finished.err;
    EXPECT_GT(json_number(finished.out, "first_step"), 0);
    EXPECT_LT(json_number(finished.out, "first_step"), json_number(finished.out, "steps"));
    EXPECT_EQ(names_in("f"), (std::vector<std::string>{"Q.npy", "R.npy"}));
}

TEST_F(CliFile, JsonCountsWhatWasMoved) {
    save_rows(20000, 30);
    const Outcome outcome = quoin_run("factor A.npy --out f --memory 900KiB --json --second-pass recomputed");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json_keys(outcome.out),
              (std::vector<std::string>{"rows", "cols", "dtype", "method", "seconds", "gflops", "device", "blocks",
                                        "block", "first_step", "steps", "bytes_read", "bytes_written", "read_seconds",
                                        "write_seconds"}));
    const double A_bytes = 8.0 * 20000 * 30;
    EXPECT_GE(json_number(outcome.out, "bytes_read"), 2 * A_bytes);
    EXPECT_LE(json_number(outcome.out, "bytes_read"), 2.2 * A_bytes);
    EXPECT_GE(json_number(outcome.out, "bytes_written"), A_bytes);
}

/// Tall, square and wide: what --verify prints is what the files have.
TEST_F(CliFile, VerifyMeasuresTheFiles) {
    // in one pass over Q, and in several
    const std::tuple<Index, Index, const char*> cases[] = {
        {6000, 40, "300KiB"}, {200, 200, "250KiB"}, {60, 600, "130KiB"}, {60, 600, "100KiB"}};
    for (const auto& [m, n, cap] : cases) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const auto A = random_normal<double>(m, n, 3);
        if (n == 200) {
            NpyRowWriter<double> writer("A.npy", m, n);
            writer.write_rows(0, A.view());
            writer.commit();
        } else {
            save("A.npy", A);
        }
        const Outcome outcome = quoin_run(fmt::format("factor A.npy --out f --json --verify --memory {}", cap));
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        const Index k = std::min(m, n);
        const double unit = static_cast<double>(k) * unit_roundoff<double>;
        const Matrix<double> Q = load<double>("f/Q.npy"), R = load<double>("f/R.npy");
        const double orthogonality = orthogonality_error<double>(Q.view(), k),
                     printed = json_number(outcome.out, "orthogonality");
        EXPECT_LE(orthogonality, law);
        EXPECT_LE(residual_error<double>(A.view(), Q.view(), R.view()), law);
        // the program's own rounding of QᵀQ stays below 256 u
        EXPECT_NEAR(printed / unit, orthogonality, 256 / static_cast<double>(k));
        EXPECT_LE(json_number(outcome.out, "residual"), law * unit);
        EXPECT_NEAR(json_number(outcome.out, "residual") / unit, residual_error<double>(A.view(), Q.view(), R.view()),
                    256 / static_cast<double>(k));
        EXPECT_GT(json_number(outcome.out, "blocks"), 1);
        fs::remove_all("f");
    }
}

}  // namespace
}  // namespace quoin::test
