// Factorization from file to file: the law in many blocks, the same bits however often a run ends, and what may go
// wrong.

#include "quoin/file_qr.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <set>

#include "checks.hpp"
#include "file_qr/run.hpp"
#include "file_qr_folder.hpp"
#include "heap_peak.hpp"

// A disk in the place of the C library's: it takes so long to flush, or does not flush while it is held, and knows what
// a power failure would lose when a line of the journal becomes lasting.
static std::atomic<int> flush_milliseconds{0};
static std::atomic<bool> disk_is_held{false};
static std::mutex disk;
static std::set<std::string> unflushed;         // files in the folder of a journal
static std::vector<std::string> claimed_early;  // files that were not flushed when a line of their journal was
static int lasting_lines = 0;
static std::atomic<long> lines_until_full{-1};  // of a journal; then the disk is full, unless it is −1
static std::uintmax_t max_on_disk = 0;          // bytes in the folder of the outputs, at a line of their journal

/// Returns the bytes that files occupy: Q is written from its end on, and the place before it is a hole.
static std::uintmax_t bytes_below(const std::filesystem::path& folder) {
    std::uintmax_t sum = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
        struct stat status;
        if (stat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) sum += 512 * status.st_blocks;
    }
    return sum;
}

static std::string path_of(int fd) {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error).string();
}

extern "C" ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
    if (const std::string path = path_of(fd); path.find("/quoin-journal/") != path.npos) {
        const std::lock_guard lock(disk);
        unflushed.insert(path);
    }
    return syscall(SYS_pwrite64, fd, from, bytes, offset);
}
extern "C" int fdatasync(int fd) {
    std::this_thread::sleep_for(std::chrono::milliseconds(flush_milliseconds));
    disk_is_held.wait(true);
    {
        const std::string path = path_of(fd);
        const std::lock_guard lock(disk);
        unflushed.erase(path);
        if (path.find("/quoin-journal/") != path.npos && path.ends_with("/journal")) {
            if (lines_until_full == 0) {
                errno = ENOSPC;
                return -1;
            }
            lines_until_full -= lines_until_full > 0;
            ++lasting_lines;
            max_on_disk = std::max(max_on_disk, bytes_below(std::filesystem::path(path).parent_path().parent_path()));
            claimed_early.insert(claimed_early.end(), unflushed.begin(), unflushed.end());
        }
    }
    return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace quoin::test {
namespace {

template <class T>
class FileQRTest : public FileQRFolder<T> {
protected:
    using IoTest::path;
    using FileQRFolder<T>::outputs;

    FileOptions tight(Index m, Index n, SecondPass second_pass = SecondPass::Auto, bool want_q = true) {
        FileOptions options{0, want_q, second_pass};
        options.journal_seconds = 0;  // a line for each step
        options.memory = plan_file_qr<T>(ctx, m, n, options).memory_bytes;
        return options;
    }
    FileQR<T> open(const FileOptions& options) { return FileQR<T>(ctx, path("A.npy"), path("out"), options); }
    FileReport factor(const FileOptions& options) {
        FileQR<T> f = open(options);
        f.run(ctx);
        f.commit();
        return f.report();
    }
    std::string outputs_of(const FileOptions& options) {
        factor(options);
        return outputs();
    }

    /// Returns the options with the least memory of the rank that needs most.
    FileOptions tight_by(int ranks, Index m, Index n, SecondPass second_pass = SecondPass::Auto, bool want_q = true) {
        FileOptions options{0, want_q, second_pass};
        options.journal_seconds = 0;
        double most = 0;
        for (int rank = 0; rank < ranks; ++rank)
            most = std::max(most, plan_file_qr<T>(ctx, m, n, options, ranks, rank).memory_bytes);
        options.memory = most;
        return options;
    }
    /// By several ranks, from `first_step` of all of them on.
    Index factor_by(int ranks, const FileOptions& options) {
        std::atomic<Index> first_step{0};
        run_ranks(ranks, [&](Communicator& comm) {
            Context<Host> own(1);
            FileQR<T> f(own, comm, path("A.npy"), path("out"), options);
            f.run(own);
            f.commit();
            first_step += f.report().first_step;
        });
        return first_step;
    }

    /// Runs that end as a line of their journal is flushed, until `steps` steps or more are on the disk, and not all.
    void run_until(const FileOptions& options, Index steps) {
        while (true) {
            FileQR<T> f = open(options);
            if (f.steps_done() >= steps) break;
            lines_until_full = steps - f.steps_done();
            EXPECT_THROW(f.run(ctx), UnwritableFile);
            lines_until_full = -1;
        }
    }

    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(FileQRTest, Scalars);

constexpr SecondPass passes[] = {SecondPass::Stored, SecondPass::Recomputed};

/// N factorizations of n·u each, whose errors add up as independent ones do.
double file_law(const FilePlan& plan) { return law * std::sqrt(static_cast<double>(plan.blocks)); }

TYPED_TEST(FileQRTest, ObeysTheLawForAnyMatrix) {
    using T = TypeParam;
    const Index n = 12;
    for (const Index m : {13, 76, 77, 400}) {
        for (const Gallery matrix_class : gallery()) {
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            this->save(A.view());
            for (const SecondPass second_pass : passes) {
                SCOPED_TRACE(fmt::format("{} {} rows {}", to_string(matrix_class), m, to_string(second_pass)));
                const FileOptions options = this->tight(m, n, second_pass);
                this->factor(options);
                const Matrix<T> Q = this->q(), R = this->r();
                const double bound = file_law(plan_file_qr<T>(this->ctx, m, n, options));
                EXPECT_LE(orthogonality_error<T>(Q.view(), n), bound);
                EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), bound);
                EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
                EXPECT_FALSE(fs::exists(this->path("out/quoin-journal")));
            }
            if (m < 400 && quick()) break;
        }
    }
}

TYPED_TEST(FileQRTest, SeveralPanelsRaggedBlocksBothOrders) {
    using T = TypeParam;
    const Index m = 1001, n = 90;  // panels of 32
    const Matrix<T> A = random_normal<T>(m, n);
    std::string first;
    for (const bool fortran_order : {false, true}) {
        this->save(A.view(), fortran_order);
        for (const SecondPass second_pass : passes) {
            const FileOptions options = this->tight(m, n, second_pass);
            const FilePlan plan = plan_file_qr<T>(this->ctx, m, n, options);
            EXPECT_GE(plan.blocks, 8);
            const FileReport report = this->factor(options);
            EXPECT_LE(orthogonality_error<T>(this->q().view(), n), file_law(plan));
            EXPECT_LE(residual_error<T>(A.view(), this->q().view(), this->r().view()), file_law(plan));
            // V and T do not depend on where they come from, nor A on its order
            if (first.empty()) first = this->outputs();
            EXPECT_TRUE(first == this->outputs());
            EXPECT_EQ(report.bytes_read, plan.bytes_read);
            EXPECT_LE(report.bytes_written - plan.bytes_written, headers);
            EXPECT_GE(report.bytes_written, plan.bytes_written);
        }
    }
}

/// Square and wide ones by slabs, and tall ones of whose rows not even a block as high as wide fits.
TYPED_TEST(FileQRTest, SlabsObeyTheLawInAnyShapeAndOrder) {
    using T = TypeParam;
    const std::pair<Index, Index> shapes[] = {{70, 70}, {1, 1}, {1, 30}, {40, 97}, {97, 96}, {64, 200}, {150, 110}};
    for (const auto& [m, n] : shapes) {
        for (const Gallery matrix_class : gallery()) {
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            for (const bool fortran_order : {false, true}) {
                SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
                this->save(A.view(), fortran_order);
                FileOptions options;
                // a few panels
                options.memory = 1.5 * this->tight(m, n).memory;
                FilePlan plan = plan_file_qr<T>(this->ctx, m, n, options);
                if (plan.route == FileRoute::RowBlocks) continue;
                options.memory = std::max(options.memory, plan.memory_bytes);
                const FileReport report = this->factor(options);
                EXPECT_LE(orthogonality_error<T>(this->q().view(), std::min(m, n)), law);
                EXPECT_LE(residual_error<T>(A.view(), this->q().view(), this->r().view()), law);
                EXPECT_TRUE(is_upper_trapezoidal<T>(this->r().view()));
                EXPECT_EQ(report.bytes_read, plan.bytes_read);
                EXPECT_GE(report.bytes_written, plan.bytes_written);
                EXPECT_LE(report.bytes_written - plan.bytes_written, headers);
            }
            if (quick() || m * n > 5000) break;
        }
    }
}

/// Beside the columns of R that are on their way to their file.
TYPED_TEST(FileQRTest, SlabsTakeNoMoreMemoryThanTheirPlan) {
    using T = TypeParam;
#ifdef QUOIN_SANITIZED
    GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
    const Index m = 2000, n = 150;
    this->save(random_normal<T>(m, n).view());
    FileOptions options = this->tight(m, n);
    options.memory *= 2;
    const FilePlan plan = plan_file_qr<T>(this->ctx, m, n, options);
    ASSERT_EQ(plan.route, FileRoute::Slabs);
    const double r_columns = sizeof(T) * static_cast<double>(n * plan.block);
    const std::size_t before = in_use();
    max_in_use = 0;
    this->factor(options);
    const double taken = static_cast<double>(max_in_use) - static_cast<double>(before);
    EXPECT_LE(taken, plan.memory_bytes + r_columns);
    EXPECT_GE(taken, plan.memory_bytes / 2) << "or it was not measured";
}

TYPED_TEST(FileQRTest, SlabsTakeNoMoreDiskThanTheirPlan) {
    using T = TypeParam;
    const Index m = 400, n = 300;
    this->save(random_normal<T>(m, n).view());
    for (const bool want_q : {false, true}) {
        const FileOptions options = this->tight(m, n, SecondPass::Auto, want_q);
        const FilePlan plan = plan_file_qr<T>(this->ctx, m, n, options);
        ASSERT_EQ(plan.route, FileRoute::Slabs);
        fs::remove(this->path("out/R.npy"));  // of the run before
        max_on_disk = 0;
        this->factor(options);
        const double headers = 1 << 16;
        EXPECT_LE(static_cast<double>(max_on_disk), plan.disk_bytes + headers);
        EXPECT_GE(static_cast<double>(max_on_disk), plan.disk_bytes / 2);
    }
}

/// R of a square matrix costs 4n³/3 flops, and Q from V as many.
TYPED_TEST(FileQRTest, APlanOfSlabsCountsTheFlopsOfHouseholder) {
    const Index n = 6000;
    const double cubed = std::pow(static_cast<double>(n), 3);
    FileOptions options;
    options.memory = 0.5 * sizeof(TypeParam) * n * n;
    for (const bool want_q : {false, true}) {
        options.want_q = want_q;
        const FilePlan plan = plan_file_qr<TypeParam>(this->ctx, n, n, options);
        EXPECT_NE(plan.route, FileRoute::RowBlocks);
        EXPECT_NEAR(plan.flops / cubed, want_q ? 8.0 / 3 : 4.0 / 3, 1e-12);
    }
}

/// As before a device, on the host: columns by way of two places, however many go at a time, and from the middle on.
TYPED_TEST(FileQRTest, ColumnsThatTravelGiveTheSameBits) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{130, 120}, {50, 97}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (const bool fortran_order : {false, true}) {
            this->save(A.view(), fortran_order);
            FileOptions options;
            options.memory = 1.5 * this->tight(m, n).memory;
            FilePlan plan = plan_file_qr<T>(this->ctx, m, n, options);
            ASSERT_EQ(plan.route, FileRoute::Slabs);
            ASSERT_GE(plan.blocks, 4);
            const std::string expected = this->outputs_of(options);
            for (const Index chunk : {Index{1}, plan.v_block + 1, plan.block, 2 * n}) {
                if (quick() && chunk != plan.v_block + 1) continue;
                SCOPED_TRACE(fmt::format("{}x{} by {}", m, n, chunk));
                const std::string folder = this->path("out/quoin-journal");
                io::ByteCounters bytes;
                BusyClock clock;
                io::PageMemory staging;
                io::NpyBlockReader<T> input(this->path("A.npy"), bytes, staging);
                plan.chunk = chunk;
                const auto run = [&](bool want_q) {
                    io::Journal journal(folder);
                    BytesMoved moved;
                    plan.want_q = want_q;
                    run_slabs<T, Host>(this->ctx, {plan, 0, journal, input, staging, bytes, clock, clock, moved});
                    return moved;
                };
                const BytesMoved moved = run(false);
                EXPECT_GE(moved.in, sizeof(T) * static_cast<double>(m * n));
                EXPECT_EQ(moved.out, sizeof(T) * static_cast<double>(m * n));
                // two slabs are done, and T of them is in its file
                std::string lines = this->file_bytes("out/quoin-journal/journal");
                lines.resize(lines.find('\n', lines.find('\n') + 1) + 1);
                std::ofstream(folder + "/journal", std::ios::binary) << lines;
                run(true);
                const std::string Q = this->file_bytes("out/quoin-journal/Q.npy"),
                                  R = this->file_bytes("out/quoin-journal/R.npy");
                EXPECT_TRUE(Q + R == expected);
                fs::remove_all(folder);
            }
        }
    }
}

TYPED_TEST(FileQRTest, AStoppedRunOfSlabsGoesOnToTheSameBits) {
    using T = TypeParam;
    const Index m = 130, n = 120;
    this->save(random_normal<T>(m, n).view());
    const FileOptions options = this->tight(m, n);
    const std::string expected = this->outputs_of(options);
    const Index slabs = plan_file_qr<T>(this->ctx, m, n, options).blocks;
    ASSERT_GE(slabs, 8);
    for (const Index steps : {Index{1}, slabs / 2, slabs, slabs + 1, 3 * slabs / 2}) {
        this->run_until(options, steps);
        EXPECT_GE(this->factor(options).first_step, steps);
        EXPECT_TRUE(expected == this->outputs()) << "from step " << steps;
    }
}

TYPED_TEST(FileQRTest, ROfAllMethodsIsThatInMemory) {
    using T = TypeParam;
    const Index m = 3000, n = 20;
    const double kappa = 100;
    const Matrix<T> A = with_condition<T>(m, n, kappa);
    this->save(A.view());
    const Matrix<T> expected = qr(this->ctx, A.view()).r();
    for (const bool want_q : {false, true}) {
        const FileOptions options = this->tight(m, n, SecondPass::Auto, want_q);
        this->factor(options);
        EXPECT_EQ(fs::exists(this->path("out/Q.npy")), want_q);
        Matrix<T> R = this->r(), E = copy(expected.view());
        for (Matrix<T>* S : {&R, &E})
            for (Index i = 0; i < n; ++i)
                if (std::signbit((*S)(i, i)))
                    for (Index j = 0; j < n; ++j) (*S)(i, j) = -(*S)(i, j);
        const FilePlan plan = plan_file_qr<T>(this->ctx, m, n, options);
        // Stewart 1977: κ(A)√2 times what moves A
        EXPECT_LE(difference<T>(R.view(), E.view(), n, std::sqrt(2.0) * kappa * frobenius_norm<T>(A.view())),
                  law + file_law(plan));
    }
}

TYPED_TEST(FileQRTest, AStoppedRunGoesOnToTheSameBits) {
    using T = TypeParam;
    const Index m = 1600, n = 24;
    this->save(random_normal<T>(m, n).view());
    for (const auto& [second_pass, want_q] :
         {std::pair{SecondPass::Stored, true}, {SecondPass::Recomputed, true}, {SecondPass::Auto, false}}) {
        const FileOptions options = this->tight(m, n, second_pass, want_q);
        const std::string expected = this->outputs_of(options);
        const Index blocks = plan_file_qr<T>(this->ctx, m, n, options).blocks;
        std::vector<Index> stops = {1, blocks / 2};
        if (want_q) stops.insert(stops.end(), {blocks, blocks + 1, 3 * blocks / 2});
        for (const Index steps : stops) {
            this->run_until(options, steps);
            const FileReport report = this->factor(options);
            EXPECT_GE(report.first_step, steps);
            EXPECT_TRUE(expected == this->outputs())
                << to_string(second_pass) << (want_q ? "" : ", R alone") << " from step " << report.first_step;
        }
    }
}

/// Whatever ends the program, and the machine with it, the lines of the journal are true.
TYPED_TEST(FileQRTest, ALineOfTheJournalIsFlushedAfterWhatItClaims) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{1000, 24}, {90, 80}}) {
        this->save(random_normal<T>(m, n).view());
        for (const auto& [second_pass, want_q] :
             {std::pair{SecondPass::Stored, true}, {SecondPass::Recomputed, true}, {SecondPass::Auto, false}}) {
            const FileOptions options = this->tight(m, n, second_pass, want_q);
            unflushed.clear();  // a run that an error ended may have left some
            claimed_early.clear();
            lasting_lines = 0;
            this->factor(options);
            EXPECT_GT(lasting_lines, plan_file_qr<T>(this->ctx, m, n, options).blocks / 4);
            for (const std::string& file : claimed_early) ADD_FAILURE() << m << "x" << n << ": " << file;
        }
    }
}

// ---- rows of a file over ranks --------------------------------------------------------------------------------------

Index lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

/// √N blocks of a rank and ⌈log₂P⌉ merges.
double ranks_law(const FilePlan& plan) { return file_law(plan) + law * std::ceil(std::log2(plan.ranks)); }

TYPED_TEST(FileQRTest, RanksObeyTheLawForAnyMatrix) {
    using T = TypeParam;
    const Index m = 703, n = 17;
    constexpr int ranks_in_turn[] = {2, 3, 4, 7};
    int turn = 0;
    for (const Gallery matrix_class : gallery()) {
        const int ranks = ranks_in_turn[turn % 4];
        const SecondPass second_pass = passes[turn++ / 4 % 2];
        SCOPED_TRACE(fmt::format("{} by {} ranks, {}", to_string(matrix_class), ranks, to_string(second_pass)));
        const Matrix<T> A = generate<T>(matrix_class, m, n);
        this->save(A.view(), ranks == 3);
        const FileOptions options = this->tight_by(ranks, m, n, second_pass);
        const FilePlan plan = plan_file_qr<T>(this->ctx, m, n, options, ranks, 0);
        EXPECT_EQ(plan.route, FileRoute::RowBlocks);
        EXPECT_GE(plan.blocks, 2);
        EXPECT_EQ(this->factor_by(ranks, options), 0);
        const Matrix<T> Q = this->q(), R = this->r();
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), ranks_law(plan));
        EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), ranks_law(plan));
        EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
        EXPECT_FALSE(fs::exists(this->path("out/quoin-journal")));
        if (quick() && turn == 4) break;
    }
}

TYPED_TEST(FileQRTest, OneRankIsAsOneProcess) {
    const Index m = 700, n = 12;
    this->save(random_normal<TypeParam>(m, n).view());
    const std::string expected = this->outputs_of(this->tight(m, n));
    this->factor_by(1, this->tight(m, n));
    EXPECT_TRUE(expected == this->outputs());
}

/// A full disk ends the runs: one rank's line is not written, and every rank throws.
TYPED_TEST(FileQRTest, AStoppedRunOfRanksGoesOnToTheSameBits) {
    using T = TypeParam;
    const Index m = 1500, n = 24;
    const int ranks = 3;
    this->save(random_normal<T>(m, n).view());
    for (const auto& [second_pass, want_q] :
         {std::pair{SecondPass::Stored, true}, {SecondPass::Recomputed, true}, {SecondPass::Auto, false}}) {
        const FileOptions options = this->tight_by(ranks, m, n, second_pass, want_q);
        this->factor_by(ranks, options);
        const std::string expected = this->outputs();
        int runs = 0;
        // two lines of each rank before its steps; then each run gets a few further
        for (bool over = false; !over && runs < 100; ++runs) {
            lines_until_full = (runs == 0 ? 2 * ranks : 0) + 2 + runs % 3;
            std::atomic<int> failed{0};
            try {
                run_ranks(ranks, [&](Communicator& comm) {
                    Context<Host> own(1);
                    FileQR<T> f(own, comm, this->path("A.npy"), this->path("out"), options);
                    try {
                        f.run(own);
                    } catch (const Error& e) {
                        ++failed;
                        EXPECT_EQ(e.code(), ErrorCode::UnwritableFile) << e.what();
                        EXPECT_NE(std::string(e.what()).find("rank "), std::string::npos) << e.what();
                        throw;
                    }
                    f.commit();
                });
                over = true;
            } catch (const Error&) {
                EXPECT_EQ(failed, ranks);
            }
            lines_until_full = -1;
        }
        EXPECT_GE(runs, 4);
        EXPECT_TRUE(expected == this->outputs()) << to_string(second_pass) << (want_q ? "" : ", R alone");
    }
}

TYPED_TEST(FileQRTest, ABadEntryOfOneRankIsAnErrorOfAll) {
    using T = TypeParam;
    const Index m = 1000, n = 9;
    for (const Index row : {0, 600, 999}) {
        Matrix<T> A = random_normal<T>(m, n);
        A(row, 5) = std::numeric_limits<T>::quiet_NaN();
        this->save(A.view());
        std::atomic<int> named{0};
        EXPECT_THROW(run_ranks(3,
                               [&](Communicator& comm) {
                                   Context<Host> own(1);
                                   FileQR<T> f(own, comm, this->path("A.npy"), this->path("out"),
                                               this->tight_by(3, m, n));
                                   try {
                                       f.run(own);
                                   } catch (const NonFiniteEntry& e) {
                                       named += e.row == row && e.col == 5;
                                       throw;
                                   }
                               }),
                     NonFiniteEntry);
        EXPECT_EQ(named, 3) << row;
        EXPECT_TRUE(fs::is_empty(this->path("out")));
    }
}

TYPED_TEST(FileQRTest, RefusesAJournalOfAnotherNumberOfRanks) {
    const Index m = 1000, n = 9;
    this->save(random_normal<TypeParam>(m, n).view());
    const FileOptions options = this->tight_by(3, m, n);
    lines_until_full = 12;
    EXPECT_THROW(this->factor_by(3, options), Error);
    lines_until_full = -1;
    // rank 0 has no step, and the others must not lose theirs
    std::string left = this->file_bytes("out/quoin-journal/journal");
    left.resize(left.find('\n', left.find('\n') + 1) + 1);
    std::ofstream(this->path("out/quoin-journal/journal"), std::ios::binary) << left;
    const auto refused = [&](const std::string& why, auto open) {
        try {
            open();
            ADD_FAILURE() << why;
        } catch (const InvalidArgument& e) {
            EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
        }
    };
    refused("ranks 3 instead of 2", [&] { this->factor_by(2, this->tight_by(2, m, n)); });
    refused("ranks 3 instead of 1", [&] { this->factor(this->tight(m, n)); });
    EXPECT_EQ(this->file_bytes("out/quoin-journal/journal"), left);
    const auto steps_of = [&](int rank) {
        return lines_in(this->file_bytes(fmt::format("out/quoin-journal/rank-{}/journal", rank))) - 2;
    };
    const Index steps = steps_of(1) + steps_of(2);
    EXPECT_EQ(this->factor_by(3, options), steps);
}

/// Failures of the file, of the memory and between the ranks.
TYPED_TEST(FileQRTest, WhatOneRankCannotDoIsAnErrorOfAll) {
    const Index m = 1000, n = 9;
    this->save(random_normal<TypeParam>(m, n).view());
    const FileOptions options = this->tight_by(3, m, n);
    EXPECT_THROW((plan_file_qr<TypeParam>(this->ctx, 27, n, options, 3, 0)), InvalidArgument);
    const auto with = [&](auto change, ErrorCode code, const std::string& what) {
        std::atomic<int> named{0};
        EXPECT_THROW(run_ranks(3,
                               [&](Communicator& comm) {
                                   Context<Host> own(1);
                                   FileOptions mine = options;
                                   if (comm.rank() == 1) change(mine);
                                   try {
                                       FileQR<TypeParam>(own, comm, this->path("A.npy"), this->path("out"), mine);
                                   } catch (const Error& e) {
                                       named +=
                                           e.code() == code && std::string(e.what()).find(what) != std::string::npos;
                                       throw;
                                   }
                               }),
                     Error);
        EXPECT_EQ(named, 3) << what;
        EXPECT_TRUE(fs::is_empty(this->path("out")));
    };
    with([](FileOptions& o) { o.want_q = false; }, ErrorCode::InvalidArgument, "FileOptions::want_q is 1 on rank 0");
    with([](FileOptions& o) { o.memory -= 1; }, ErrorCode::OutOfMemory, "rank 1: ");
}

/// However slow the disk is to flush, work that no line of the journal stands for is bounded.
TYPED_TEST(FileQRTest, AKillLosesTheStepUnderWayAndTheOneOnItsWayToTheDisk) {
    using T = TypeParam;
    const Index n = 24, blocks = 60, m = n + 64 * blocks;  // all of one height
    this->save(random_normal<T>(m, n).view());
    FileOptions options = this->tight(m, n, SecondPass::Auto, false);
    ASSERT_EQ(plan_file_qr<T>(this->ctx, m, n, options).blocks, blocks);
    this->ctx.reset_progress();
    this->factor(options);
    const double flops = this->ctx.flops_done() / static_cast<double>(blocks);
    for (const double seconds : {0.0, 1e9}) {
        options.journal_seconds = seconds;
        FileQR<T> f = this->open(options);
        flush_milliseconds = seconds == 0 ? 10 : 0;
        disk_is_held = seconds != 0;
        const auto start = std::chrono::steady_clock::now();
        this->ctx.reset_progress();
        std::atomic<bool> over{false};
        std::thread run([&] {
            f.run(this->ctx);
            over = true;
        });
        double max_lost = 0;
        while (!over) {
            const double computed = this->ctx.flops_done() / flops;
            const std::string journal = this->file_bytes("out/quoin-journal/journal");
            const std::size_t last = journal.rfind(" R ");
            const double recorded = last == journal.npos ? 0 : std::stod(journal.substr(last + 3));
            max_lost = std::max(max_lost, computed - recorded);
            if (max_lost >= 10 || std::chrono::steady_clock::now() - start > std::chrono::seconds(30)) {
                disk_is_held = false;
                disk_is_held.notify_all();
            }
        }
        run.join();
        f.commit();
        if (seconds == 0) {
            EXPECT_LE(max_lost, 2.01);
        } else {
            EXPECT_GE(max_lost, 10) << "the computation waits for the disk";
        }
        flush_milliseconds = 0;
    }
}

TYPED_TEST(FileQRTest, ATornJournalEndsAtItsLastGoodLine) {
    using T = TypeParam;
    const Index m = 1600, n = 24;
    this->save(random_normal<T>(m, n).view());
    const FileOptions options = this->tight(m, n);
    const std::string expected = this->outputs_of(options);
    const auto journal = [&] { return this->file_bytes("out/quoin-journal/journal"); };
    const auto tear = [&](const std::string& text) {
        std::ofstream(this->path("out/quoin-journal/journal"), std::ios::binary) << text;
    };
    // cut off at every byte of its last line; one flipped bit of it; garbage after it
    for (int way = 0; way < 4; ++way) {
        this->run_until(options, 5);
        const std::string whole = journal();
        const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
        std::string torn = whole;
        if (way == 0) torn = whole.substr(0, last + 4);
        if (way == 1) torn = whole.substr(0, whole.size() - 1);
        if (way == 2) torn[last + 10] ^= 1;
        if (way == 3) torn += std::string("\0\0\0garbage", 10);
        tear(torn);
        Index left = 0;
        {
            FileQR<T> f = this->open(options);
            left = f.steps_done();
        }
        EXPECT_EQ(journal(), way == 3 ? whole : whole.substr(0, last));
        EXPECT_GE(left, way == 3 ? 5 : 1);
        this->factor(options);
        EXPECT_TRUE(expected == this->outputs()) << way;
    }
}

TYPED_TEST(FileQRTest, RefusesAJournalOfAnotherComputation) {
    using T = TypeParam;
    const Index m = 1600, n = 24;
    const Matrix<T> A = random_normal<T>(m, n, 1), B = random_normal<T>(m, n, 2);
    this->save(A.view());
    FileOptions options = this->tight(m, n);
    const auto refused = [&](const std::string& why, const FileOptions& with) {
        try {
            this->open(with);
            ADD_FAILURE() << "went on in spite of " << why;
        } catch (const InvalidArgument& e) {
            EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
        }
    };
    this->run_until(options, 3);
    FileOptions r_only = options;
    r_only.want_q = false;
    refused("q wanted instead of not-wanted", r_only);
    FileOptions little = options;
    little.memory = options.memory - 1;
    EXPECT_THROW(this->open(little), OutOfMemory);
    // what is in the journal is how it goes on with more memory
    FileOptions much = options;
    much.memory *= 3;
    EXPECT_EQ(this->open(much).plan().block, plan_file_qr<T>(this->ctx, m, n, options).block);

    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    this->save(B.view());
    refused("written to since", options);
    this->save(random_normal<T>(m + 1, n).view());
    refused(fmt::format("rows {} instead of {}", m, m + 1), options);
    this->save(B.view());
    options.restart = true;
    this->factor(options);
    EXPECT_LE(residual_error<T>(B.view(), this->q().view(), this->r().view()),
              file_law(plan_file_qr<T>(this->ctx, m, n, options)));
}

TYPED_TEST(FileQRTest, OneProgramAtATime) {
    const Index m = 1000, n = 8;
    this->save(random_normal<TypeParam>(m, n).view());
    const FileOptions options = this->tight(m, n);
    const FileQR<TypeParam> f = this->open(options);
    expect_refusal<UnwritableFile>(this->path("out/quoin-journal"), "another program", [&] { this->open(options); });
}

TYPED_TEST(FileQRTest, AFullDiskLosesNothing) {
    using T = TypeParam;
    const Index m = 1600, n = 24;
    this->save(random_normal<T>(m, n).view());
    for (const SecondPass second_pass : passes) {
        const FileOptions options = this->tight(m, n, second_pass);
        const std::string expected = this->outputs_of(options);
        Index kept = 0;
        // V or Q does not fit, the triangles do
        {
            const FileSizeLimit limit(m * n * sizeof(T) * 3 / 4);
            FileQR<T> f = this->open(options);
            expect_refusal<UnwritableFile>(
                this->path(second_pass == SecondPass::Stored ? "out/quoin-journal/V" : "out/quoin-journal/Q.npy"),
                "File too large", [&] { f.run(this->ctx); });
            kept = f.steps_done();
            EXPECT_GE(kept, f.plan().blocks / 4);
        }
        EXPECT_EQ(this->factor(options).first_step, kept);
        EXPECT_TRUE(expected == this->outputs());
    }
}

TYPED_TEST(FileQRTest, AnInputThatEndsEarlyLosesNothing) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{1600, 24}, {130, 120}}) {
        this->save(random_normal<T>(m, n).view(), m == 130);
        FileOptions options = this->tight(m, n);
        options.restart = true;
        FileQR<T> f = this->open(options);
        fs::resize_file(this->path("A.npy"), m * n * sizeof(T) / 2);
        expect_refusal<UnreadableFile>(this->path("A.npy"), "ends before its data", [&] { f.run(this->ctx); });
        EXPECT_GE(f.steps_done(), 1);
        EXPECT_TRUE(fs::exists(f.journal_folder()));
    }
}

TYPED_TEST(FileQRTest, NamesTheFirstBadEntryAndLeavesNothing) {
    using T = TypeParam;
    const Index m = 2000, n = 9;
    for (const Index row : {0, 7, 8, 9, 72, 73, 1234, 1999}) {
        Matrix<T> A = random_normal<T>(m, n);
        A(row, 5) = std::numeric_limits<T>::quiet_NaN();
        this->save(A.view());
        try {
            this->factor(this->tight(m, n));
            ADD_FAILURE() << "NaN went through";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, row);
            EXPECT_EQ(e.col, 5);
            EXPECT_NE(std::string(e.what()).find(this->path("A.npy")), std::string::npos) << e.what();
        }
        EXPECT_TRUE(fs::is_empty(this->path("out")));
    }
}

/// Also while V is read for a later slab.
TYPED_TEST(FileQRTest, SlabsNameTheFirstBadEntry) {
    using T = TypeParam;
    const Index m = 130, n = 120;
    for (const Index col : {5, 70, 119}) {
        Matrix<T> A = random_normal<T>(m, n);
        A(17, col) = std::numeric_limits<T>::infinity();
        this->save(A.view());
        try {
            this->factor(this->tight(m, n));
            ADD_FAILURE() << "Inf went through";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, 17);
            EXPECT_EQ(e.col, col);
        }
        EXPECT_TRUE(fs::is_empty(this->path("out")));
    }
}

TYPED_TEST(FileQRTest, EveryTypeOfNpy) {
    // integers of the other byte order, which T holds exactly
    const Index m = 500, n = 3;
    std::string data;
    Matrix<TypeParam> A(m, n);
    for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j) {
            const auto value = static_cast<std::int16_t>((i * 37 + j * j * 1001) % 2003 - 1000);
            A(i, j) = value;
            data += encode(value, std::endian::native == std::endian::little);
        }
    this->write_file("A.npy", npy_bytes(dict_of(std::endian::native == std::endian::little ? ">i2" : "<i2", false,
                                                fmt::format("({}, {})", m, n)),
                                        data));
    const FileOptions options = this->tight(m, n);
    this->factor(options);
    EXPECT_LE(residual_error<TypeParam>(A.view(), this->q().view(), this->r().view()),
              file_law(plan_file_qr<TypeParam>(this->ctx, m, n, options)));
}

}  // namespace
}  // namespace quoin::test
