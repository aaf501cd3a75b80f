#include "checks.hpp"
#include "io_files.hpp"

namespace quoin::test {
namespace {

/// Header and data of an .npy file as NumPy's description of version 1.0 has them.
void expect_npy(const std::string& file, const std::string& dict, const std::string& data) {
    ASSERT_GE(file.size(), 64u);
    EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\1\0", 8));
    const std::size_t length = static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
    EXPECT_EQ((10 + length) % 64, 0u);
    ASSERT_EQ(file.size(), 10 + length + data.size());
    const std::string header = file.substr(10, length);
    EXPECT_TRUE(header.starts_with(dict)) << header;
    EXPECT_EQ(header.substr(dict.size()), std::string(length - dict.size() - 1, ' ') + "\n");
    EXPECT_TRUE(file.substr(10 + length) == data) << "the data differ";
}

template <class T>
T entry(Index i, Index j) {
    return static_cast<T>(i) + static_cast<T>(j) / 1024;
}

/// m×n with a NaN in the padding of each column.
template <class T>
Matrix<T> padded_matrix(Index m, Index n, Index padding) {
    Matrix<T> A(m + padding, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < A.rows(); ++i) A(i, j) = i < m ? entry<T>(i, j) : std::numeric_limits<T>::quiet_NaN();
    }
    return A;
}

template <class T>
std::string expected_data(Index m, Index n, bool fortran_order) {
    std::string data(static_cast<std::size_t>(m * n) * sizeof(T), '\0');
    for (Index k = 0; k < m * n; ++k) {
        const T value = fortran_order ? entry<T>(k % m, k / m) : entry<T>(k / n, k % n);
        std::memcpy(data.data() + k * Index{sizeof(T)}, &value, sizeof(T));
    }
    return data;
}

template <class T>
class NpyOutputTest : public IoTest {
protected:
    std::string descr() const { return fmt::format("{}f{}", native, sizeof(T)); }
};
TYPED_TEST_SUITE(NpyOutputTest, Scalars);

TYPED_TEST(NpyOutputTest, WriteMatrix) {
    using T = TypeParam;
    // The last two: more columns than one write gathers, and columns longer than that.
    constexpr std::pair<Index, Index> shapes[] = {{1, 1}, {5, 3},    {3, 5},      {0, 4},
                                                  {4, 0}, {7, 2000}, {500, 1500}, {300'000, 2}};
    for (const auto& [m, n] : shapes) {
        for (const Index padding : {0, 3}) {
            const Matrix<T> A = padded_matrix<T>(m, n, padding);
            quoin::write_npy<T>(this->path("A.npy"), A.view().row_block({0, m}));
            SCOPED_TRACE(fmt::format("{} x {} + {}", m, n, padding));
            expect_npy(this->file_bytes("A.npy"), dict_of(this->descr(), true, fmt::format("({}, {})", m, n)),
                       expected_data<T>(m, n, true));
            EXPECT_EQ(this->names(), std::set<std::string>{"A.npy"});
            EXPECT_EQ(MatrixFile(this->path("A.npy")).dtype(), scalar_kind<T>);
        }
    }
}

TYPED_TEST(NpyOutputTest, WriteVector) {
    using T = TypeParam;
    quoin::write_npy<T>(this->path("v.npy"), std::vector<T>{0, 1, 2});
    expect_npy(this->file_bytes("v.npy"), dict_of(this->descr(), false, "(3,)"), expected_data<T>(3, 1, false));
    quoin::write_npy<T>(this->path("v.npy"), std::vector<T>{});
    expect_npy(this->file_bytes("v.npy"), dict_of(this->descr(), false, "(0,)"), "");
}

TYPED_TEST(NpyOutputTest, WriteRowsInAnyOrder) {
    using T = TypeParam;
    // The last: a row longer than what one write gathers.
    constexpr std::pair<Index, Index> shapes[] = {{10, 3}, {100, 70}, {5, 1},      {40'000, 9},
                                                  {0, 3},  {3, 0},    {4, 300'000}};
    for (const auto& [m, n] : shapes) {
        SCOPED_TRACE(fmt::format("{} x {}", m, n));
        const Matrix<T> A = padded_matrix<T>(m, n, 2);
        fs::remove(this->path("A.npy"));
        NpyRowWriter<T> writer(this->path("A.npy"), m, n);
        for (const Range rows : {Range{m / 2, m}, Range{0, m / 3}, Range{m / 3, m / 2}}) {
            writer.write_rows(rows.begin, A.view().row_block(rows));
        }
        EXPECT_FALSE(fs::exists(this->path("A.npy")));
        writer.commit();
        expect_npy(this->file_bytes("A.npy"), dict_of(this->descr(), false, fmt::format("({}, {})", m, n)),
                   expected_data<T>(m, n, false));
        EXPECT_EQ(this->names(), std::set<std::string>{"A.npy"});
    }
}

TYPED_TEST(NpyOutputTest, AppendColumns) {
    using T = TypeParam;
    // The last: a column longer than what one write gathers.
    constexpr std::pair<Index, Index> shapes[] = {{10, 3}, {70, 100}, {1, 5}, {0, 3}, {3, 0}, {300'000, 4}};
    for (const auto& [m, n] : shapes) {
        for (const Index padding : {0, 2}) {
            SCOPED_TRACE(fmt::format("{} x {} + {}", m, n, padding));
            const Matrix<T> A = padded_matrix<T>(m, n, padding);
            fs::remove(this->path("A.npy"));
            NpyColumnWriter<T> writer(this->path("A.npy"), m);
            for (const Range columns : {Range{0, n / 3}, Range{n / 3, n}}) {
                writer.append(A.view().block({0, m}, columns));
            }
            EXPECT_FALSE(fs::exists(this->path("A.npy")));
            writer.commit();
            expect_npy(this->file_bytes("A.npy"), dict_of(this->descr(), true, fmt::format("({}, {})", m, n)),
                       expected_data<T>(m, n, true));
            EXPECT_EQ(this->names(), std::set<std::string>{"A.npy"});
        }
    }
}

TEST_F(IoTest, ColumnWriterChecksItsArguments) {
    const Matrix<double> A = padded_matrix<double>(4, 3, 0);
    EXPECT_THROW(NpyColumnWriter<double>(path("B.npy"), -1), InvalidArgument);
    NpyColumnWriter<double> writer(path("A.npy"), 5);
    EXPECT_THROW(writer.append(A.view()), InvalidArgument);
    writer.commit();
    EXPECT_THROW(writer.append(A.view()), InvalidArgument);
    EXPECT_THROW(writer.commit(), InvalidArgument);
    { NpyColumnWriter<double> unfinished(path("C.npy"), 5); }
    EXPECT_EQ(names(), std::set<std::string>{"A.npy"});
}

TEST_F(IoTest, RowWriterChecksItsArguments) {
    const Matrix<double> A = padded_matrix<double>(4, 3, 0);
    NpyRowWriter<double> writer(path("A.npy"), 4, 3);
    EXPECT_THROW(writer.write_rows(-1, A.view()), InvalidArgument);
    EXPECT_THROW(writer.write_rows(1, A.view()), InvalidArgument);
    EXPECT_THROW(writer.write_rows(0, A.view().col_block({0, 2})), InvalidArgument);
    writer.write_rows(0, A.view().row_block({0, 2}));
    EXPECT_THROW(writer.commit(), InvalidArgument);
    writer.write_rows(2, A.view().row_block({2, 4}));
    writer.commit();
    EXPECT_THROW(writer.commit(), InvalidArgument);
    EXPECT_THROW(writer.write_rows(0, A.view()), InvalidArgument);
    EXPECT_THROW(NpyRowWriter<double>(path("B.npy"), -1, 3), InvalidArgument);
    EXPECT_EQ(names(), std::set<std::string>{"A.npy"});
}

TEST_F(IoTest, UnfinishedWriterLeavesNothing) {
    const Matrix<double> A = padded_matrix<double>(4, 3, 0);
    {
        NpyRowWriter<double> writer(path("A.npy"), 8, 3);
        NpyRowWriter<double> moved = std::move(writer);
        moved.write_rows(0, A.view());
        EXPECT_EQ(names().size(), 1u);
    }
    EXPECT_EQ(names(), std::set<std::string>{});
}

TEST_F(IoTest, WriterReplacesOnlyAtCommit) {
    write_file("A.npy", "before");
    { NpyRowWriter<double> writer(path("A.npy"), 1, 1); }
    EXPECT_EQ(file_bytes("A.npy"), "before");
    quoin::write_npy<double>(path("A.npy"), std::vector<double>{1});
    EXPECT_EQ(MatrixFile(path("A.npy")).rows(), 1);
    EXPECT_EQ(names(), std::set<std::string>{"A.npy"});
}

TEST_F(IoTest, WriterOutlivesAChangeOfDirectory) {
    const fs::path before = fs::current_path();
    fs::current_path(directory_);
    NpyRowWriter<double> writer("A.npy", 0, 1);
    fs::current_path(before);
    writer.commit();
    EXPECT_EQ(names(), std::set<std::string>{"A.npy"});
}

TEST_F(IoTest, LongestFileName) {
    const std::string name = std::string(251, 'n') + ".npy";
    quoin::write_npy<double>(path(name), std::vector<double>{1});
    EXPECT_EQ(names(), std::set<std::string>{name});
}

TEST_F(IoTest, UnwritablePaths) {
    const std::vector<double> v{1, 2};
    const auto expect_unwritable = [&](const std::string& target, const std::string& why) {
        expect_refusal<UnwritableFile>(target, why, [&] { quoin::write_npy(target, v); });
        expect_refusal<UnwritableFile>(target, why, [&] { NpyRowWriter<float>(target, 2, 2); });
    };
    expect_unwritable(path("no/such/A.npy"), "No such file or directory");
    expect_unwritable(directory_.string(), "names a directory");
    expect_unwritable(path("A.npy/"), "names a directory");
    expect_unwritable("", "Invalid argument");
    expect_unwritable(path(std::string(300, 'n')), "File name too long");
    expect_unwritable(path(std::string(5000, '/')) + "A.npy", "File name too long");
    expect_unwritable(write_file("file", "") + "/A.npy", "Not a directory");

    // A device must neither take the data nor be replaced by a file; the link saves it where this test fails.
    fs::create_symlink("/dev/full", path("device"));
    expect_unwritable(path("device"), "is not a regular file");
    EXPECT_TRUE(fs::is_symlink(path("device")));

    fs::permissions(directory_,
                    fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
    {
        const OrdinaryUser user;
        expect_unwritable(path("A.npy"), "Permission denied");
    }
    EXPECT_EQ(names(), (std::set<std::string>{"device", "file"}));
}

TEST_F(IoTest, FullDiskShowsBeforeTheWorkAndLeavesNothing) {
    write_file("A.npy", "before");
    {
        const FileSizeLimit limit(4096);
        expect_refusal<UnwritableFile>(path("A.npy"), "File too large",
                                       [&] { NpyRowWriter<double>(path("A.npy"), 1000, 1); });
        expect_refusal<UnwritableFile>(path("A.npy"), "File too large",
                                       [&] { quoin::write_npy(path("A.npy"), std::vector<float>(2000)); });
    }
    // No file system has 2^62 bytes.
    expect_refusal<UnwritableFile>(path("A.npy"), "", [&] { NpyRowWriter<double>(path("A.npy"), Index{1} << 59, 1); });
    EXPECT_EQ(file_bytes("A.npy"), "before");
    EXPECT_EQ(names(), std::set<std::string>{"A.npy"});
}

TEST_F(IoTest, FailedWriteEndsTheWriter) {
    const Matrix<double> A = padded_matrix<double>(1000, 1, 0);
    NpyRowWriter<double> writer(path("A.npy"), 1000, 1);
    {
        const FileSizeLimit limit(4096);
        expect_refusal<UnwritableFile>(path("A.npy"), "File too large", [&] { writer.write_rows(0, A.view()); });
    }
    EXPECT_EQ(names(), std::set<std::string>{});
    EXPECT_THROW(writer.write_rows(0, A.view()), InvalidArgument);
    EXPECT_THROW(writer.commit(), InvalidArgument);
}

TEST_F(IoTest, CommitThatCannotRenameLeavesNothing) {
    NpyRowWriter<double> writer(path("A.npy"), 0, 1);
    fs::create_directory(path("A.npy"));
    expect_refusal<UnwritableFile>(path("A.npy"), "Is a directory", [&] { writer.commit(); });
    EXPECT_EQ(names(), std::set<std::string>{"A.npy"});
}

TEST_F(IoTest, TooManyWritersAreRefusedAndTheirPlacesReused) {
    for (int round = 0; round < 2; ++round) {
        std::vector<NpyRowWriter<double>> writers;
        const auto open_many = [&] {
            for (int i = 0; i < 1000; ++i) writers.emplace_back(path("A.npy"), 0, 1);
        };
        expect_refusal<UnwritableFile>(path("A.npy"), "64 other files are being written already", open_many);
        EXPECT_EQ(writers.size(), 64u);
    }
    EXPECT_EQ(names(), std::set<std::string>{});
}

TEST_F(IoTest, RemoveUnfinishedFiles) {
    NpyRowWriter<double> one(path("A.npy"), 0, 1);
    std::optional<NpyRowWriter<double>> two(std::in_place, path("B.npy"), 5, 1);
    quoin::write_npy<double>(path("done.npy"), std::vector<double>{1});
    EXPECT_EQ(names().size(), 3u);
    quoin::remove_unfinished_files();
    EXPECT_EQ(names(), std::set<std::string>{"done.npy"});
    errno = EDOM;
    quoin::remove_unfinished_files();  // finds nothing to remove
    EXPECT_EQ(errno, EDOM);
    expect_refusal<UnwritableFile>(path("A.npy"), "No such file or directory", [&] { one.commit(); });
    two.reset();
    EXPECT_EQ(names(), std::set<std::string>{"done.npy"});
}

TEST_F(IoTest, SignalHandlerRemovesUnfinishedFiles) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::signal(SIGTERM, [](int) {
            quoin::remove_unfinished_files();
            _exit(42);
        });
        NpyRowWriter<double> writer(path("A.npy"), 100, 1);
        if (names().size() != 1) _exit(1);
        raise(SIGTERM);
        _exit(2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 42);
    EXPECT_EQ(names(), std::set<std::string>{});
}

TEST_F(IoTest, ForkedChildDoesNotRemoveItsParentsFiles) {
    NpyRowWriter<double> writer(path("A.npy"), 0, 1);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        quoin::remove_unfinished_files();
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    writer.commit();
    EXPECT_EQ(names(), std::set<std::string>{"A.npy"});
}

TEST_F(IoTest, ConcurrentWritersOfOneNameEachSucceed) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([this, t] {
            for (int k = 0; k < 20; ++k) {
                quoin::write_npy<double>(path("A.npy"), std::vector<double>(100, static_cast<double>(t)));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    const Matrix<double> A = MatrixFile(path("A.npy")).read<double>();
    ASSERT_EQ(A.rows(), 100);
    for (Index i = 1; i < 100; ++i) EXPECT_EQ(A(i, 0), A(0, 0));
    EXPECT_EQ(names(), std::set<std::string>{"A.npy"});
}

}  // namespace
}  // namespace quoin::test
