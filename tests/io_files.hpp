#pragma once

// Shared by the tests of reading and of writing files: a folder of their own, bytes composed without the library, and
// what a refusal has to look like.

#include "quoin/io.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <locale>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "quoin/error.hpp"

namespace quoin::test {

namespace fs = std::filesystem;
using quoin::Index;
using quoin::InvalidArgument;
using quoin::Matrix;
using quoin::MatrixFile;
using quoin::MatrixFileOptions;
using quoin::MatrixView;
using quoin::NpyRowWriter;
using quoin::OutOfMemory;
using quoin::Range;
using quoin::scalar_kind;
using quoin::ScalarKind;
using quoin::UnreadableFile;
using quoin::UnwritableFile;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

constexpr const char* native = std::endian::native == std::endian::little ? "<" : ">";

/// The bytes of an .npy file, composed here and not by the library. `dict` is the header's text.
inline std::string npy_bytes(const std::string& dict, const std::string& data, int version = 1) {
    std::string header = dict + "\n";
    std::string file = "\x93NUMPY";
    file += static_cast<char>(version);
    file += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
    return file + header + data;
}

inline std::string dict_of(const std::string& descr, bool fortran_order, const std::string& shape) {
    return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran_order ? "True" : "False",
                       shape);
}

template <class S>
std::string encode(S value, bool big_endian) {
    std::string bytes(sizeof(S), '\0');
    std::memcpy(bytes.data(), &value, sizeof(S));
    if (big_endian != (std::endian::native == std::endian::big)) std::reverse(bytes.begin(), bytes.end());
    return bytes;
}

/// While it lives, a test started as root is an ordinary user, whom file permissions bind.
class OrdinaryUser {
public:
    OrdinaryUser() { EXPECT_EQ(seteuid(was_root_ ? 65534 : geteuid()), 0); }
    ~OrdinaryUser() { EXPECT_EQ(seteuid(was_root_ ? 0 : geteuid()), 0); }

private:
    bool was_root_ = geteuid() == 0;
};

/// While it lives, no file of this process grows beyond `bytes`: a full disk that every machine has.
class FileSizeLimit {
public:
    explicit FileSizeLimit(rlim_t bytes) {
        EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
        const rlimit limit{bytes, before_.rlim_max};
        EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    }
    ~FileSizeLimit() {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    rlimit before_{};
    void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

class IoTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "quoin-io-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
        fs::permissions(directory_, fs::perms::all);
    }
    void TearDown() override {
        fs::permissions(directory_, fs::perms::all);
        fs::remove_all(directory_);
    }

    std::string path(const std::string& name) const { return directory_ / name; }

    std::string write_file(const std::string& name, const std::string& bytes) const {
        fs::remove(path(name));  // writing over a file costs a flush on some file systems
        std::ofstream(path(name), std::ios::binary) << bytes;
        return path(name);
    }

    std::string file_bytes(const std::string& name) const {
        std::ifstream in(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    std::set<std::string> names() const {
        std::set<std::string> out;
        for (const auto& entry : fs::directory_iterator(directory_)) out.insert(entry.path().filename());
        return out;
    }

    Matrix<double> read(const std::string& name, const std::string& bytes) const {
        return MatrixFile(write_file(name, bytes)).read<double>();
    }

    fs::path directory_;
};

/// `action` throws an E whose message is one line that begins with `path` and contains `why`.
template <class E>
void expect_refusal(const std::string& path, const std::string& why, const std::function<void()>& action) {
    try {
        action();
        ADD_FAILURE() << path << ": nothing was thrown; expected: " << why;
    } catch (const E& error) {
        const std::string what = error.what();
        EXPECT_TRUE(what.starts_with(path + ": ")) << what;
        EXPECT_NE(what.find(why), what.npos) << what << "\nexpected: " << why;
        EXPECT_EQ(what.find('\n'), what.npos) << what;
    }
}

inline void expect_unreadable(const std::string& path, const std::string& why) {
    expect_refusal<UnreadableFile>(path, why, [&] { MatrixFile(path).read<double>(); });
}

template <class T>
void expect_equal(const Matrix<T>& A, const std::vector<std::vector<double>>& rows) {
    ASSERT_EQ(A.rows(), static_cast<Index>(rows.size()));
    for (Index i = 0; i < A.rows(); ++i) {
        const std::vector<double>& row = rows[static_cast<std::size_t>(i)];
        ASSERT_EQ(A.cols(), static_cast<Index>(row.size()));
        for (Index j = 0; j < A.cols(); ++j) {
            const double expected = row[static_cast<std::size_t>(j)];
            if (std::isnan(expected)) {
                EXPECT_TRUE(std::isnan(A(i, j))) << "(" << i << ", " << j << ")";
            } else {
                EXPECT_EQ(A(i, j), expected) << "(" << i << ", " << j << ")";
            }
        }
    }
}

}  // namespace quoin::test
