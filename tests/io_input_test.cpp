#include <sys/mman.h>

#include "io/page_memory.hpp"
#include "io_files.hpp"

namespace quoin::test {
namespace {

// ---------------------------------------------------------------------------------------------------------- .npy input

template <class S>
struct ElementType {
    using Value = S;
    static std::string name() {
        const char kind = std::is_floating_point_v<S> ? 'f' : std::is_signed_v<S> ? 'i' : 'u';
        return fmt::format("{}{}", kind, sizeof(S));
    }
    /// Element (i, j): the type's extremes among them; 64-bit integers that no double holds, too.
    static S value(Index i, Index j) {
        const Index k = 31 * i + 7 * j;
        if (k % 5 == 0) return std::numeric_limits<S>::max();
        if (k % 5 == 1) return std::numeric_limits<S>::lowest();
        if (k % 5 == 2) return static_cast<S>(std::numeric_limits<S>::max() / S(3) - S(k % 11));
        return static_cast<S>(k % 97);
    }
};

template <class E>
class NpyTypeTest : public IoTest {};

using ElementTypes =
    testing::Types<ElementType<float>, ElementType<double>, ElementType<std::int8_t>, ElementType<std::int16_t>,
                   ElementType<std::int32_t>, ElementType<std::int64_t>, ElementType<std::uint8_t>,
                   ElementType<std::uint16_t>, ElementType<std::uint32_t>, ElementType<std::uint64_t>>;

struct ElementTypeName {
    template <class E>
    static std::string GetName(int) {
        return E::name();
    }
};
TYPED_TEST_SUITE(NpyTypeTest, ElementTypes, ElementTypeName);

/// Reads rows of `file` as T into a view with ld > rows, and compares every element and the poisoned padding.
template <class E, class T>
void check_rows(const MatrixFile& file, Range rows) {
    const T poison = std::numeric_limits<T>::quiet_NaN();
    Matrix<T> padded(rows.size() + 3, file.cols());
    std::fill_n(padded.data(), padded.rows() * padded.cols(), poison);
    file.read_rows<T>(rows, padded.view().row_block({0, rows.size()}));
    for (Index j = 0; j < file.cols(); ++j) {
        for (Index i = 0; i < rows.size(); ++i) {
            ASSERT_EQ(padded(i, j), static_cast<T>(E::value(rows.begin + i, j))) << "(" << i << ", " << j << ")";
        }
        for (Index i = rows.size(); i < padded.rows(); ++i) ASSERT_TRUE(std::isnan(padded(i, j)));
    }
}

TYPED_TEST(NpyTypeTest, BothByteOrdersBothStorageOrdersEveryVersion) {
    using E = TypeParam;
    using S = typename E::Value;
    constexpr std::pair<Index, Index> shapes[] = {{1, 1}, {1, 70}, {70, 1}, {3, 5}, {32, 32}, {100, 33}, {67, 130}};
    for (const auto& [m, n] : shapes) {
        for (const bool big_endian : {false, true}) {
            for (const bool fortran_order : {false, true}) {
                const int version = 1 + static_cast<int>(m + n) % 3;
                std::string data;
                for (Index k = 0; k < m * n; ++k) {
                    data += encode(fortran_order ? E::value(k % m, k / m) : E::value(k / n, k % n), big_endian);
                }
                const std::string descr = fmt::format("{}{}", sizeof(S) == 1 ? '|' : big_endian ? '>' : '<', E::name());
                const std::string dict = dict_of(descr, fortran_order, fmt::format("({}, {})", m, n));
                SCOPED_TRACE(fmt::format("{} version {}", dict, version));
                const MatrixFile file(this->write_file("A.npy", npy_bytes(dict, data, version)));
                ASSERT_EQ(file.rows(), m);
                ASSERT_EQ(file.cols(), n);
                EXPECT_EQ(file.dtype(), (std::is_same_v<S, float> ? ScalarKind::F32 : ScalarKind::F64));
                EXPECT_TRUE(file.streams());
                check_rows<E, double>(file, {0, m});
                check_rows<E, float>(file, {0, m});
                check_rows<E, double>(file, {m / 3, m - m / 4});
                check_rows<E, double>(file, {m / 2, m / 2});
            }
        }
    }
}

TEST_F(IoTest, NpyBool) {
    const Matrix<double> A = read("A.npy", npy_bytes(dict_of("|b1", false, "(2, 3)"), {"\0\1\1\1\0\2", 6}));
    expect_equal(A, {{0, 1, 1}, {1, 0, 1}});
}

TEST_F(IoTest, NpyKeepsInfinityAndNaN) {
    const std::string data = encode(nan, false) + encode(-inf, false);
    expect_equal(read("A.npy", npy_bytes(dict_of("<f8", false, "(1, 2)"), data)), {{nan, -inf}});
}

TEST_F(IoTest, NpyOneDimensionIsAColumn) {
    const std::string data = encode(1.5, false) + encode(2.5, false);
    expect_equal(read("b.npy", npy_bytes(dict_of("<f8", false, "(2,)"), data)), {{1.5}, {2.5}});
}

TEST_F(IoTest, NpyWithoutElements) {
    for (const auto& [shape, m, n] : {std::tuple{"(0,)", 0, 1}, {"(0, 5)", 0, 5}, {"(5, 0)", 5, 0}, {"(0, 0)", 0, 0}}) {
        for (const bool fortran_order : {false, true}) {
            const Matrix<double> A = read("A.npy", npy_bytes(dict_of("<f8", fortran_order, shape), ""));
            EXPECT_EQ(A.rows(), m);
            EXPECT_EQ(A.cols(), n);
        }
    }
}

TEST_F(IoTest, NpyHeaderInEveryLegalSpelling) {
    const std::string data = encode(7.0, false) + encode(8.0, false);
    for (const char* dict : {
             "{'descr':'<f8','fortran_order':False,'shape':(2,1)}",
             "{\"shape\": (2,), \"descr\": \"<f8\", \"fortran_order\": True}   \n\n",
             " {\n'fortran_order' : False , 'shape' : ( 2L , 1L , ) , 'descr' : '<f8' , } ",
         }) {
        SCOPED_TRACE(dict);
        expect_equal(read("A.npy", npy_bytes(dict, data)), {{7}, {8}});
    }
}

TEST_F(IoTest, NpyIsToldByContent) {
    expect_equal(read("A.csv", npy_bytes(dict_of("|u1", false, "(1, 1)"), "\x05")), {{5}});
}

TEST_F(IoTest, NpyHeaderMalformed) {
    const std::string open = "{", order = "'fortran_order': False, ", shape = "'shape': (1, 1), ",
                      descr = "'descr': '|u1', ";
    const std::pair<std::string, std::string> cases[] = {
        {"", "'{' expected at byte 1"},
        {"[]", "'{' expected at byte 0"},
        {"{", "a key must be a string"},
        {"{}", "key 'descr' is missing"},
        {open + descr + "}", "key 'fortran_order' is missing"},
        {open + descr + order + "}", "key 'shape' is missing"},
        {open + order + shape + "}", "key 'descr' is missing"},
        {open + descr + order + shape + "'more': 1}", "unknown key 'more'"},
        {open + descr + descr + order + shape + "}", "key 'descr' appears twice"},
        {open + descr + order + shape + ", }", "a key must be a string"},
        {open + descr + order + shape, "a key must be a string"},
        {open + descr + order + "'shape': (1, 1)", "'}' expected"},
        {open + descr + order + shape + "} x", "text follows the dict"},
        {open + descr + order + "'shape' (1, 1)}", "':' expected"},
        {open + order + shape + "'descr': '|u1", "does not end"},
        {open + order + shape + "'descr': 5}", "descr must be a string"},
        {open + order + shape + "'descr': None}", "descr must be a string"},
        {open + order + shape + "'descr': '|f8'}", "has no byte order"},
        {open + descr + shape + "'fortran_order': 0}", "neither True nor False"},
        {open + descr + shape + "'fortran_order': 'True'}", "neither True nor False"},
        {open + descr + shape + "'fortran_order': Falsehood}", "neither True nor False"},
        {open + descr + order + "'shape': 1}", "shape is not a tuple"},
        {open + descr + order + "'shape': (1)}", "shape is not a tuple"},
        {open + descr + order + "'shape': [1, 1]}", "shape is not a tuple"},
        {open + descr + order + "'shape': (1, 1}", "',' expected"},
        {open + descr + order + "'shape': (1 1)}", "',' expected"},
        {open + descr + order + "'shape': (,)}", "not a tuple of integers"},
        {open + descr + order + "'shape': (1.0, 1)}", "not a tuple of integers"},
        {open + descr + order + "'shape': (0x1, 1)}", "not a tuple of integers"},
        {open + descr + order + "'shape': (None, 1)}", "not a tuple of integers"},
        {open + descr + order + "'shape': (-1, 1)}", "dimension -1 is negative"},
        {open + descr + order + "'shape': (9223372036854775808, 1)}", "exceeds 64 bits"},
        {open + descr + order + "'shape': (4294967296, 4294967296)}", "impossibly large"},
        {open + descr + order + "'shape': (0, 9223372036854775807)}", "impossibly large"},
        {open + descr + order + "'shape': ()}", "a 0-dimensional array is not a matrix"},
        {open + descr + order + "'shape': (1, 1, 1)}", "a 3-dimensional array is not a matrix"},
    };
    for (const auto& [dict, why] : cases) {
        SCOPED_TRACE(dict);
        expect_unreadable(write_file("A.npy", npy_bytes(dict, "\x05")), why);
    }
}

TEST_F(IoTest, NpyUnsupportedTypesAreNamed) {
    const std::pair<const char*, const char*> cases[] = {
        {"<f2", "half precision"},
        {"<f16", "extended precision"},
        {"<c8", "complex"},
        {">c16", "complex"},
        {"|O", "object"},
        {"|S5", "string"},
        {"<U3", "string"},
        {"<M8[ns]", "date or time"},
        {"<m8[s]", "date or time"},
        {"|V16", "structured"},
        {"<q", "unknown"},
        {"", "unknown"},
        {"<", "unknown"},
        {"<f80", "extended precision"},
        {"f8<", "extended precision"},
    };
    for (const auto& [descr, why] : cases) {
        const std::string path = write_file("A.npy", npy_bytes(dict_of(descr, false, "(1, 1)"), "01234567"));
        expect_unreadable(path, fmt::format("elements of type '{}' ({}) are not supported", descr, why));
    }
    const std::string structured = "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (1,), }";
    expect_unreadable(write_file("A.npy", npy_bytes(structured, "01234567")), "structured elements are not supported");
}

TEST_F(IoTest, NpyUnknownVersionAndMagic) {
    std::string file = npy_bytes(dict_of("|u1", false, "(1, 1)"), "\x05");
    file[6] = 4;
    expect_unreadable(write_file("A.npy", file), ".npy version 4.0 is not known");
    file[6] = 0;
    expect_unreadable(write_file("A.npy", file), ".npy version 0.0 is not known");
    file[6] = 1, file[7] = 1;
    expect_unreadable(write_file("A.npy", file), ".npy version 1.1 is not known");
    expect_unreadable(write_file("A.npy", "1,2\n3,4\n"), "not an .npy file");
    expect_unreadable(write_file("A.NPY", "1,2\n3,4\n"), "not an .npy file");
}

TEST_F(IoTest, NpyHugeHeaderLength) {
    std::string file = npy_bytes(dict_of("|u1", false, "(1, 1)"), "\x05", 2);
    std::fill_n(file.begin() + 8, 4, '\xff');
    expect_unreadable(write_file("A.npy", file), "claims 4294967295 bytes");
    file[10] = file[11] = '\0';
    expect_unreadable(write_file("A.npy", file), "truncated .npy header: expected 65535 bytes");
}

TEST_F(IoTest, NpyTruncatedAtEveryByteOrTooLong) {
    for (const int version : {1, 2, 3}) {
        const std::string file =
            npy_bytes(dict_of("<f8", false, "(2, 2)"), std::string(4 * sizeof(double), '\x3f'), version);
        ASSERT_NO_THROW(read("A.npy", file));
        for (std::size_t size = 0; size < file.size(); ++size) {
            for (const char* name : {"A.npy", "A"}) {
                const std::string path = write_file(name, file.substr(0, size));
                EXPECT_THROW(MatrixFile{path}, UnreadableFile) << size;
            }
        }
        expect_unreadable(write_file("A.npy", file.substr(0, file.size() - 1)),
                          "expected 32 bytes of data, file has 31");
        expect_unreadable(write_file("A.npy", file + "x"), "expected 32 bytes of data, file has 33");
    }
}

/// mincore fails for an address that is not mapped.
TEST(PageMemory, MovesWithItsSizeAndIsGivenBack) {
    char* address = nullptr;
    {
        io::PageMemory first(1 << 16, io::PageMemory::Pages::Small), second;
        address = first.data();
        second = std::move(first);
        EXPECT_EQ(second.data(), address);
        EXPECT_EQ(second.size(), 1 << 16);
    }
    unsigned char there = 0;
    EXPECT_NE(mincore(address, 1, &there), 0);
}

/// The last rows of a file beyond 2^32 bytes and 2^31 elements, all zeros (a hole) but for entries put at its end.
TEST_F(IoTest, NpyBeyond32Bits) {
    const Index m = (Index{1} << 31) + 3, n = 3;
    for (const bool fortran_order : {false, true}) {
        const std::string head = npy_bytes(dict_of("|u1", fortran_order, fmt::format("({}, {})", m, n)), "");
        const std::string file = write_file("A.npy", head);
        const auto data = static_cast<off_t>(head.size());
        ASSERT_EQ(truncate(file.c_str(), data + m * n), 0);
        const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
        ASSERT_GE(fd, 0);
        for (Index j = 0; j < n; ++j) {
            const char value = static_cast<char>(j + 1);
            ASSERT_EQ(pwrite(fd, &value, 1, data + (fortran_order ? (m - 1) + j * m : (m - 1) * n + j)), 1);
        }
        close(fd);

        const MatrixFile matrix(file);
        ASSERT_EQ(matrix.rows(), m);
        Matrix<double> last(2, n);
        std::fill_n(last.data(), 2 * n, nan);
        matrix.read_rows({m - 2, m}, last.view());
        expect_equal(last, {{0, 0, 0}, {1, 2, 3}});
    }
}

/// At least three of the pieces that a large read is cut into, by rows and by columns.
TEST_F(IoTest, NpyLargeReadIsWhole) {
    for (const auto& [m, n, fortran_order] :
         {std::tuple<Index, Index, bool>{1'200'001, 4, false}, {5'000'000, 1, true}, {700'001, 6, true}}) {
        std::vector<double> values(static_cast<std::size_t>(m * n));
        std::iota(values.begin(), values.end(), 0.0);
        const std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
        const std::string descr = std::string(native) + "f8";
        const Matrix<double> A =
            read("A.npy", npy_bytes(dict_of(descr, fortran_order, fmt::format("({}, {})", m, n)), data));
        Index wrong = 0;
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i)
                wrong += A(i, j) != static_cast<double>(fortran_order ? i + j * m : i * n + j);
        }
        EXPECT_EQ(wrong, 0);
    }
}

/// Bytes of mapped files in this process's resident memory.
Index resident_file_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word != "RssFile:") continue;
        Index kibibytes = 0;
        status >> kibibytes;
        return kibibytes * 1024;
    }
    return -1;
}

TEST_F(IoTest, NpyRowsThatWereReadDoNotStayInMemory) {
    constexpr Index mebibyte = 1 << 20, m = 32 * mebibyte, n = 4, rows = m / 32;
    for (const bool fortran_order : {false, true}) {
        const std::string head = npy_bytes(dict_of("|u1", fortran_order, fmt::format("({}, {})", m, n)), "");
        const std::string file = write_file("A.npy", head);
        ASSERT_EQ(truncate(file.c_str(), static_cast<off_t>(head.size()) + m * n), 0);
        const MatrixFile matrix(file);
        Matrix<float> block(rows, n);
        matrix.read_rows({0, rows}, block.view());
        const Index before = resident_file_bytes();
        ASSERT_GT(before, 0);
        for (Index i = 0; i < m; i += rows) matrix.read_rows({i, i + rows}, block.view());
        EXPECT_LT(resident_file_bytes() - before, 32 * mebibyte);
    }
}

TEST_F(IoTest, ReadRowsChecksItsArguments) {
    for (const char* name : {"A.npy", "A.csv"}) {
        const std::string bytes =
            std::string(name) == "A.npy" ? npy_bytes(dict_of("|u1", false, "(3, 2)"), "123456") : "1,2\n3,4\n5,6\n";
        const MatrixFile file(write_file(name, bytes));
        Matrix<double> out(3, 3);
        EXPECT_THROW(file.read_rows({-1, 2}, out.view().block({0, 3}, {0, 2})), InvalidArgument);
        EXPECT_THROW(file.read_rows({1, 4}, out.view().block({0, 3}, {0, 2})), InvalidArgument);
        EXPECT_THROW(file.read_rows({2, 1}, out.view().block({0, 0}, {0, 2})), InvalidArgument);
        EXPECT_THROW(file.read_rows({0, 2}, out.view().block({0, 3}, {0, 2})), InvalidArgument);
        EXPECT_THROW(file.read_rows({0, 3}, out.view()), InvalidArgument);
        EXPECT_THROW(file.read_rows({0, 3}, MatrixView<double>(out.data(), 3, 2, 2)), InvalidArgument);
        EXPECT_NO_THROW(file.read_rows({0, 3}, out.view().block({0, 3}, {0, 2})));
    }
}

// -------------------------------------------------------------------------------------------------------- Matrix
// Market

TEST_F(IoTest, MatrixMarketArray) {
    const std::string body = "% a comment\n\n2 3\n1\n2\n3\n\n4.5\n-5e-1\n+6\n";
    const Matrix<double> A = read("A.mtx", "%%MatrixMarket matrix array real general\n" + body);
    expect_equal(A, {{1, 3, -0.5}, {2, 4.5, 6}});
    expect_equal(read("A.txt", "%%matrixmarket MATRIX Array Real General\n" + body), {{1, 3, -0.5}, {2, 4.5, 6}});
}

TEST_F(IoTest, MatrixMarketArrayWithSymmetry) {
    expect_equal(read("A.mtx", "%%MatrixMarket matrix array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"),
                 {{1, 2, 3}, {2, 4, 5}, {3, 5, 6}});
    expect_equal(read("A.mtx", "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n"),
                 {{0, -1, -2}, {1, 0, -3}, {2, 3, 0}});
    expect_equal(read("A.mtx", "%%MatrixMarket matrix array real skew-symmetric\n1 1\n"), {{0}});
}

TEST_F(IoTest, MatrixMarketCoordinate) {
    expect_equal(read("A.mtx",
                      "%%MatrixMarket matrix coordinate real general\n%\n3 2 3\n3 1 7\r\n\t1   2 -2.5e1\n"
                      "% in between\n2 2 nan"),
                 {{0, -25}, {0, nan}, {7, 0}});
    expect_equal(read("A.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n"),
                 {{1, 0}, {0, 1}});
    expect_equal(read("A.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 3\n2 1 4\n"),
                 {{3, 4}, {4, 0}});
    expect_equal(read("A.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n"), {{0, 1}, {1, 0}});
    expect_equal(read("A.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 4\n"),
                 {{0, -4}, {4, 0}});
}

TEST_F(IoTest, MatrixMarketWithFortransExponents) {
    expect_equal(read("A.mtx",
                      "%%MatrixMarket matrix array real general\n2 2\n1.0D+00\n-2.5d-1\n5.68-304\n\xe2\x88\x92"
                      "1Q1\n"),
                 {{1, 5.68e-304}, {-0.25, -10}});
}

TEST_F(IoTest, MatrixMarketSumsDuplicates) {
    expect_equal(read("A.mtx", "%%MatrixMarket matrix coordinate real general\n1 2 3\n1 2 1\n1 2 2\n1 2 4\n"),
                 {{0, 7}});
    expect_equal(read("A.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 1\n2 1 2\n"),
                 {{0, 3}, {3, 0}});
}

TEST_F(IoTest, MatrixMarketWithoutElements) {
    const Matrix<double> A = read("A.mtx", "%%MatrixMarket matrix coordinate real general\n0 4 0\n");
    EXPECT_EQ(A.rows(), 0);
    EXPECT_EQ(A.cols(), 4);
    EXPECT_EQ(read("A.mtx", "%%MatrixMarket matrix array real general\n4 0\n").rows(), 4);
}

TEST_F(IoTest, MatrixMarketMalformed) {
    const std::string banner = "%%MatrixMarket matrix ";
    const std::string coordinate = banner + "coordinate real general\n", array = banner + "array real general\n";
    const std::pair<std::string, std::string> cases[] = {
        {"2 2\n1\n2\n3\n4\n", "not a Matrix Market file"},
        {"%%MatrixMarket\n", "line 1: the banner must read"},
        {banner + "array real\n1 1\n1\n", "line 1: the banner must read"},
        {banner + "array real general twice\n1 1\n1\n", "line 1: the banner must read"},
        {"%%MatrixMarket vector array real general\n1\n1\n", "line 1: object 'vector'"},
        {banner + "dense real general\n1 1\n1\n", "line 1: format 'dense'"},
        {banner + "array complex general\n1 1\n1 0\n", "line 1: field 'complex'"},
        {banner + "coordinate complex hermitian\n1 1 1\n1 1 1 0\n", "line 1: field 'complex'"},
        {banner + "array real hermitian\n1 1\n1\n", "line 1: symmetry 'hermitian'"},
        {banner + "array pattern general\n1 1\n", "line 1: an array has values"},
        {banner + "coordinate pattern skew-symmetric\n1 1 0\n", "line 1: a pattern cannot be skew-symmetric"},
        {array, "ends before the size line"},
        {array + "% only a comment\n", "ends before the size line"},
        {array + "2\n", "line 2: the size line must have 2 numbers"},
        {array + "2 2 4\n", "line 2: the size line must have 2 numbers"},
        {coordinate + "2 2\n", "line 2: the size line must have 3 numbers"},
        {coordinate + "2 2 0 0\n", "line 2: the size line must have 3 numbers"},
        {array + "%\n\n2 x\n", "line 4: size 'x' is not a 64-bit integer"},
        {array + "2 1.0\n", "line 2: size '1.0' is not a 64-bit integer"},
        {array + "9223372036854775808 1\n", "is not a 64-bit integer"},
        {array + "-2 2\n", "line 2: size -2 is negative"},
        {coordinate + "2 2 -1\n", "line 2: size -1 is negative"},
        {coordinate + "4294967296 4294967296 0\n", "impossibly large"},
        {coordinate + "2 2 1000000\n", "1000000 entries do not fit in a file of 58 bytes"},
        {array + "1000 1000\n1\n", "1000000 entries do not fit"},
        {banner + "array real symmetric\n2 3\n1\n", "line 2: a symmetric matrix cannot be 2 x 3"},
        {coordinate + "2 2 1\n0 1 1\n", "line 3: row index 0 is not in 1..2"},
        {coordinate + "2 2 1\n3 1 1\n", "line 3: row index 3 is not in 1..2"},
        {coordinate + "2 2 1\n1 -1 1\n", "line 3: column index -1 is not in 1..2"},
        {coordinate + "2 2 1\n1 3 1\n", "line 3: column index 3 is not in 1..2"},
        {coordinate + "2 2 1\n1 1.5 1\n", "line 3: column index '1.5' is not an integer"},
        {coordinate + "2 2 1\n1\n", "line 3: column index '' is not an integer"},
        {coordinate + "2 2 1\n1 1\n", "line 3: the entry has no value"},
        {coordinate + "2 2 1\n1 1 one\n", "line 3: 'one' is not a number"},
        {coordinate + "2 2 1\n1 1 1e999\n", "line 3: '1e999' is not a number that f64 can hold"},
        {coordinate + "2 2 1\n1 1 1 1\n", "line 3: '1' follows the entry"},
        {banner + "coordinate pattern general\n2 2 1\n1 1 1\n", "line 3: '1' follows the entry"},
        {banner + "coordinate integer general\n2 2 1\n1 1 1.5\n", "line 3: '1.5' is not an integer"},
        {banner + "coordinate real symmetric\n2 2 1\n1 2 1\n", "line 3: entry (1, 2) of a symmetric matrix"},
        {banner + "coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "line 3: entry (1, 1) of a skew-symmetric matrix"},
        {coordinate + "2 2 2\n1 1 1\n", "ends after 1 of 2 entries"},
        {coordinate + "2 2 1\n1 1 1\n2 2 2\n", "line 4: more than the 1 entries"},
        {array + "2 1\n1\n", "ends after 1 of 2 entries"},
        {array + "2 1\n1\n2\n% fine\n3\n", "line 6: more than the 2 entries"},
        {array + "2 1\n1 2\n", "line 3: '2' follows the entry"},
        {array + "1 1\n\x01\xff\n", "line 3: '\\x01\\xff' is not a number"},
    };
    for (const auto& [text, why] : cases) {
        SCOPED_TRACE(text);
        expect_unreadable(write_file("A.mtx", text), why);
    }
}

TEST_F(IoTest, MatrixMarketTruncatedAtEveryByte) {
    for (const std::string text : {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4",
                                   "%%MatrixMarket matrix coordinate real general\n% c\n2 2 2\n1 1 3\n2 2 4"}) {
        ASSERT_NO_THROW(read("A.mtx", text));
        for (std::size_t size = 0; size < text.size(); ++size) {
            const std::string path = write_file("A.mtx", text.substr(0, size));
            EXPECT_THROW(MatrixFile(path).read<double>(), UnreadableFile) << text.substr(0, size);
        }
    }
}

// ------------------------------------------------------------------------------------------------------------------
// CSV

TEST_F(IoTest, CsvSeparatorsHeadersAndBlankLines) {
    for (const char* text : {
             "1,-2.5,3e2\n4,5,6\n",
             "1;-2.5;3e2\n4;5;6",
             "1\t-2.5\t3e2\n4\t5\t6\n",
             "1 -2.5 3e2\n4 5 6\n",
             "   1   -2.5 3e2   \n 4 5  6",
             " 1 , -2.5 ,3e2\r\n\r\n4\t,+5,6\r\n  \n\n",
             "a,b,c\n1,-2.5,3e2\n4,5,6\n",
             "\n\nx y z\n1,-2.5,3e2\n4,5,6\n",
             "\"a, b\",c,d\n1,-2.5,3e2\n4,5,6\n",
             "A title of six words, not more\n1 -2.5 3e2\n4 5 6\n",
             "# 1 2 3\n1 -2.5 3e2\n4 5 6\n",
             "\"1\",\" -2.5\",\"3e2\"\n4,\"5\",6\n",
             "\xef\xbb\xbf"
             "1,-2.5,3e2\n4,5,6\n",
         }) {
        SCOPED_TRACE(text);
        expect_equal(read("A.csv", text), {{1, -2.5, 3e2}, {4, 5, 6}});
    }
    // what pandas and R write: an index below an empty name
    for (const char* text : {",x,y\n0,1,2\n1,3,4\n", ",0,1\n2020-01-01,1,2\n2020-01-02,3,4\n",
                             "\"\",\"x\",\"y\"\n\"a\",1,2\n\"b\",3,4\n", ";x;y\n;1;2\n;3;4\n"}) {
        SCOPED_TRACE(text);
        const MatrixFile file(write_file("A.csv", text));
        expect_equal(file.read<double>(), {{1, 2}, {3, 4}});
        EXPECT_NE(file.remark().find("the first column"), std::string::npos);
    }
    EXPECT_EQ(MatrixFile(write_file("A.csv", "\n x,y\n1,2\n")).remark(), "line 2 is taken for a header: ' x,y'");
    EXPECT_EQ(MatrixFile(write_file("A.csv", "# x,y\n1,2\n")).remark(), "");
    expect_equal(read("A", "7"), {{7}});
    expect_equal(read("A.txt", "x\n7\n8\n"), {{7}, {8}});
}

TEST_F(IoTest, CsvDelimiterAndHeaderAsTheCallerSays) {
    const auto read_with = [&](const std::string& text, const MatrixFileOptions& options) {
        return MatrixFile(write_file("A.csv", text), options).read<double>();
    };
    expect_equal(read_with("1|2\n3|4\n", {.delimiter = '|'}), {{1, 2}, {3, 4}});
    expect_equal(read_with("a;b|c;d\n1|2\n3|4\n", {.delimiter = '|'}), {{1, 2}, {3, 4}});
    expect_equal(read_with("1990,1991\n1,2\n3,4\n", {.header = false}), {{1990, 1991}, {1, 2}, {3, 4}});
    expect_equal(read_with("1990,1991\n1,2\n3,4\n", {.header = true}), {{1, 2}, {3, 4}});
    expect_equal(read_with(",1990,1991\na,1,2\nb,3,4\n", {.header = true}), {{1, 2}, {3, 4}});
    expect_refusal<UnreadableFile>(path("A.csv"), "line 1, field 1: '1,2' is not a number",
                                   [&] { read_with("1,2\n3,4\n", {.delimiter = ';'}); });
    // the fields are counted as the line has them
    expect_refusal<UnreadableFile>(path("A.csv"), "line 3, field 2: 'z' is not a number",
                                   [&] { read_with(",x\na,1\nb,z\n", {}); });
}

TEST_F(IoTest, CsvSpecialValues) {
    expect_equal(read("A.csv", "nan,NaN,inf,-inf,Infinity,-INF\n"), {{nan, nan, inf, -inf, inf, -inf}});
    expect_equal(read("A.csv", "5e-324,1e-400,-1e-400,1e-4000,.5,5.,1.7976931348623157e308\n"),
                 {{5e-324, 0, 0, 0, 0.5, 5, std::numeric_limits<double>::max()}});
}

/// Lines that are data, and were once taken for a header. Values as by np.genfromtxt, R's read.table and Fortran's
/// list-directed READ.
TEST_F(IoTest, CsvNumbersOfFortranRAndTypesetters) {
    expect_equal(read("A.txt", " 1.0D+00  -2.5d0 5.68-304\n .5Q+01 1.Q-2 +1.5+100\n"),
                 {{1, -2.5, 5.68e-304}, {5, 0.01, 1.5e100}});
    expect_equal(read("A.csv", "1D2,1.0D-400\n3,4\n"), {{100, 0}, {3, 4}});
    expect_equal(read("A.csv",
                      "\xe2\x88\x92"
                      "1.5,2e\xe2\x88\x92"
                      "3\n3,4\n"),
                 {{-1.5, 2e-3}, {3, 4}});
    expect_equal(read("A.csv", "NA\n1\nNA\n"), {{nan}, {1}, {nan}});
    const std::pair<std::string, std::string> no_numbers[] = {
        {"1\n-\n", "'-' is not a number that f64 can hold: --missing '-' reads it as NaN"},
        {"-\n1\n",
         "line 1, field 1: '-' is not a number that f64 can hold: --header takes the line for a header, --missing '-'"},
        {"****\n1\n", "line 1, field 1: '****' is not a number"},
        {"$5\n6\n", "line 1, field 1: '$5' is not a number"},
        {"1.5-30\n2\n", "'1.5-30'"},      // Fortran drops the letter for three digits
        {"2020-100\n2\n", "'2020-100'"},  // and writes a point
        {"1D\n2\n", "'1D'"},
        {"1D2D3\n2\n", "'1D2D3'"},
        {"1.0Q+4000\n2\n", "'1.0Q+4000' is not a number that f64 can hold"},
        {"2*1.5\n2\n", "'2*1.5'"},
        {"\xe2\x88\x92\n2\n", "'\\xe2\\x88\\x92'"},
    };
    for (const auto& [text, why] : no_numbers) {
        SCOPED_TRACE(text);
        expect_unreadable(write_file("A.txt", text), why);
    }
}

TEST_F(IoTest, CsvWordsThatAreMissing) {
    const auto read_with = [&](const std::string& text, std::vector<std::string> missing) {
        return MatrixFile(write_file("A.csv", text), {.missing = std::move(missing)}).read<double>();
    };
    expect_equal(read_with("-,1\n****,2\n#N/A,-999\n-999.0,NA\n", {"-", "****", "-999", "#N/A"}),
                 {{nan, 1}, {nan, 2}, {nan, nan}, {nan, nan}});
    expect_equal(read_with("1,,3\n,5,\n", {""}), {{1, nan, 3}, {nan, 5, nan}});
    expect_equal(read_with(",x,y\n0,,3\n1,5,\n", {""}), {{nan, 3}, {5, nan}});
    expect_unreadable(write_file("A.csv", "#N/A,2\n3,4\n"), "line 1, field 1: '#N/A' is not a number");
    expect_unreadable(write_file("A.csv", "1,2\n,4\n"), "is empty: --missing '' reads it as NaN");
}

/// Comments as np.loadtxt and R read them.
TEST_F(IoTest, CsvComments) {
    expect_equal(read("A.txt", "# a\n# b\n#\n1 2\n  # in between, with words\n3 4 # after 5 6\n# end\n"),
                 {{1, 2}, {3, 4}});
    expect_equal(read("A.csv", "# a\n# b\nx,y\n1,2\n"), {{1, 2}});
    const MatrixFile labels(write_file("A.csv", ",x\n\"no #1\",2\nb#2,3\n"));
    expect_equal(labels.read<double>(), {{2}, {3}});
    expect_equal(MatrixFile(write_file("A.txt", "% a\n1 2 % b\n"), {.comment = '%'}).read<double>(), {{1, 2}});
    expect_unreadable(write_file("A.txt", "% a\n% b\n1 2\n"),
                      "line 2, field 1: '%' is not a number that f64 can hold: --comment %");
    EXPECT_THROW(MatrixFile(write_file("A.txt", "# 1\n2\n"), {.comment = 0}).read<double>(), UnreadableFile);
}

TEST_F(IoTest, CsvSkippedLinesAndChosenColumns) {
    const std::string text = "made by a logger\n\n1 2 3\nname,t,x,y\na,1,2,3\nb,4,5,6\n";
    const auto read_with = [&](const MatrixFileOptions& options) {
        return MatrixFile(write_file("A.csv", text), options).read<double>();
    };
    expect_equal(read_with({.skip = 3, .columns = {{1, last_column}}}), {{1, 2, 3}, {4, 5, 6}});
    expect_equal(read_with({.skip = 4, .columns = {{3, 4}, {1, 2}}}), {{3, 1}, {6, 4}});
    expect_refusal<UnreadableFile>(path("A.csv"), "line 5, field 1: 'a' is not a number that f64 can hold",
                                   [&] { read_with({.skip = 3}); });
    expect_refusal<UnreadableFile>(path("A.csv"), "has 4 columns, and --columns asks for column 5", [&] {
        read_with({.skip = 4, .columns = {{1, 5}}});
    });
    expect_refusal<InvalidArgument>(path("A.csv"), "--columns asks for column 2 twice", [&] {
        read_with({.skip = 4, .columns = {{1, 2}, {1, 3}}});
    });
    expect_refusal<UnreadableFile>(path("A.csv"), "holds no numbers", [&] { read_with({.skip = 100}); });
    expect_refusal<UnreadableFile>(path("A.mtx"), "--columns chooses columns of CSV only", [&] {
        MatrixFile(write_file("A.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n"), {.columns = {{0, 1}}});
    });
}

/// Reads what R's write.table(A), with sep = ",", and with quote = FALSE write; read.table and pandas.read_csv leave
/// the row names out.
TEST_F(IoTest, CsvOfRsWriteTable) {
    for (const char* text : {"\"V1\" \"V2\"\n\"1\" 0.5 NA\n\"2\" 1.5 4\n", "\"V1\",\"V2\"\n\"1\",0.5,NA\n\"2\",1.5,4\n",
                             "V1 V2\n1 0.5 NA\n2 1.5 4\n",
                             "\"the first\" \"the second\"\n\"Mazda RX4\" 0.5 NA\n\"Datsun \"\"710\"\"\" 1.5 4\n"}) {
        SCOPED_TRACE(text);
        const MatrixFile file(write_file("A.txt", text));
        expect_equal(file.read<double>(), {{0.5, nan}, {1.5, 4}});
        EXPECT_NE(file.remark().find("line 1 is taken for a header"), std::string::npos);
        EXPECT_NE(file.remark().find("it is taken for row names"), std::string::npos);
    }
    expect_equal(MatrixFile(write_file("A.txt", "\"V1\"\n\"1\" 0.5\n"), {.columns = {{0, last_column}}}).read<double>(),
                 {{1, 0.5}});
    expect_equal(
        MatrixFile(write_file("A.txt", "\"\";\"V1\"\n\"1\";0,5\n\"2\";-1,25\n"), {.decimal = ','}).read<double>(),
        {{0.5}, {-1.25}});  // write.csv2
    expect_unreadable(write_file("A.txt", "x y\n0.1 2 3\n0.2 5 6\n"),
                      "line 1 has 2 names for 3 columns: write --columns 2- if the first column holds row names");
    expect_unreadable(write_file("A.txt", "\"1\" 2 3\n\"2\" 5 6\n"), "field 1: '1' alone is in double quotes");
}

TEST_F(IoTest, CsvDecimalCommas) {
    const auto read_with = [&](const std::string& text, const MatrixFileOptions& options) {
        return MatrixFile(write_file("A.csv", text), options).read<double>();
    };
    const std::string column = "1,5\n2,25\n-3,7\n";
    expect_equal(read_with(column, {.decimal = ','}), {{1.5}, {2.25}, {-3.7}});
    expect_equal(read_with(column, {}), {{1, 5}, {2, 25}, {-3, 7}});
    expect_equal(read_with(column, {.delimiter = ',', .one_column = true}), {{1, 5}, {2, 25}, {-3, 7}});
    expect_equal(read_with("x;y\n1,5;2\n,5;1,25D-2\n", {.decimal = ','}), {{1.5, 2}, {0.5, 0.0125}});
    expect_equal(read_with("1,5 2,5\n3 4\n", {.decimal = ','}), {{1.5, 2.5}, {3, 4}});
    expect_equal(read_with("\"1,5\",\"2,5\"\n", {.delimiter = ',', .decimal = ','}), {{1.5, 2.5}});
    expect_equal(read_with("1, 5\n2, 6\n", {.one_column = true}), {{1, 5}, {2, 6}});
    expect_equal(read_with("1.5,2\n3,4\n", {.one_column = true}), {{1.5, 2}, {3, 4}});
    expect_equal(read_with("x,y\n1,05\n2,25\n", {.one_column = true}), {{1, 5}, {2, 25}});
    const std::pair<const char*, bool> ambiguous[] = {{column.c_str(), true},
                                                      {"1,5\n2,05\n", false},
                                                      {"0,287577520124614\n1,5\n", false},
                                                      {"x\n1,5\n2,5\n", false},
                                                      {"-0,5\n1,5\n", false}};
    for (const auto& [text, one_column] : ambiguous) {
        SCOPED_TRACE(text);
        expect_refusal<UnreadableFile>(
            path("A.csv"), "may be two numbers or one with a decimal comma: write --delimiter , or --decimal ,",
            [&, text = text, one_column = one_column] { read_with(text, {.one_column = one_column}); });
    }
    for (const char* text : {"1;2\n3;4,5\n", "x\ty\n1,5\t2,5\n", "1,5 2,5\n", "1,5\n2\n"}) {
        SCOPED_TRACE(text);
        expect_unreadable(write_file("A.csv", text), "--decimal , reads a comma as the decimal point");
    }
    EXPECT_THROW(read_with("1.234,5;2\n", {.decimal = ','}), UnreadableFile);  // of thousands
}

/// A header of numbers, as pandas.DataFrame(A).to_csv(index=False) and tables of years have one.
TEST_F(IoTest, CsvColumnsHaveTheNamesOfTheHeader) {
    using Names = std::vector<std::string>;
    const auto names = [&](const char* text, const MatrixFileOptions& options = {}) {
        return MatrixFile(write_file("A.csv", text), options).column_names();
    };
    EXPECT_EQ(names("x, \"y, z\"\n1,2\n"), (Names{"x", "y, z"}));
    EXPECT_EQ(names("1,2\n3,4\n"), Names{});
    EXPECT_EQ(names(",x,y\n0,1,2\n1,3,4\n"), (Names{"x", "y"})) << "pandas";
    EXPECT_EQ(names("\"x\",\"y\"\n\"1\",5,6\n\"2\",7,8\n"), (Names{"x", "y"})) << "R";
    EXPECT_EQ(names("\"x\",\"y\"\n\"1\",5,6\n\"2\",7,8\n", {.columns = {{2, 3}, {1, 2}}}), (Names{"y", "x"}));
    EXPECT_EQ(names("x,y,z\n1,2,3\n", {.columns = {{2, last_column}, {0, 1}}}), (Names{"z", "x"}));
    EXPECT_EQ(names("a title\n1,2,3\n", {.header = true}), Names{});
}

TEST_F(IoTest, CsvHeadersThatMayBeData) {
    for (const char* text : {"2001,2002\n3,4\n5,6\n", "1990,2000,2010\n3.5,4,5\n", "0,1,2\n0.5,1.5,2\n3,4,5\n"}) {
        SCOPED_TRACE(text);
        expect_unreadable(write_file("A.csv", text), "may be a header or data: write --header or --no-header");
        EXPECT_GT(MatrixFile(path("A.csv"), {.header = false}).rows(),
                  MatrixFile(path("A.csv"), {.header = true}).rows());
    }
    for (const char* text :
         {"1,2\n3,4.5\n", "0,1\n1,2\n2.5,3\n", "0,1,2\n1,0,1\n", "2001,2002\n2003,2004\n", "1024,99\n1,2\n"}) {
        SCOPED_TRACE(text);
        EXPECT_EQ(read("A.csv", text)(0, 1),
                  read("B.csv", std::string(text).substr(0, std::string(text).find('\n')))(0, 1));
    }
    expect_unreadable(write_file("A.csv", "time,2001\n1,2\n"), "'time' is not a number that f64 can hold");
    expect_unreadable(path("A.csv"), "--header takes the line for a header");
    expect_unreadable(write_file("A.csv", "x,y\nm,s\n1,2\n"), "--skip N leaves out the first N lines");
}

TEST_F(IoTest, CsvIsReadToTheLastBit) {
    const Index m = 1000, n = 7;
    std::vector<std::vector<double>> rows(m, std::vector<double>(n));
    std::uint64_t bits = 1;
    std::string text;
    for (auto& row : rows) {
        for (double& value : row) {
            do {
                bits = bits * 6364136223846793005u + 1442695040888963407u;
                value = std::bit_cast<double>(bits);
            } while (!std::isfinite(value));
            text += fmt::format("{:.17g},", value);
        }
        text.back() = '\n';
    }
    expect_equal(read("A.csv", text), rows);
}

TEST_F(IoTest, CsvMalformed) {
    const std::pair<std::string, std::string> cases[] = {
        {"\n \n", "holds no numbers"},
        {"a,b\n", "holds no numbers"},
        {"1,2\n3\n", "line 2 has 1 fields where line 1 has 2"},
        {"h\n\n1,2\n\n3,4,5\n", "line 5 has 3 fields where line 3 has 2"},
        {"1 2\n3\n", "line 2 has 1 fields where line 1 has 2"},
        {"1,2\n3 4\n", "line 2 has 1 fields where line 1 has 2"},
        {"1,2\n3,x\n", "line 2, field 2: 'x' is not a number"},
        {"1,2\n3,\n", "line 2, field 2: is empty"},
        {"1,2\n,3\n", "line 2, field 1: is empty"},
        {"1,2,\n3,4,\n", "line 1, field 3: is empty"},
        {",5,7\n1,2,3\n", "line 1, field 1: is empty"},
        {"1,2\n3,1e999\n", "line 2, field 2: '1e999' is not a number that f64 can hold"},
        {"1,2\n3,0x10\n", "line 2, field 2: '0x10'"},
        {"1,2\n3,4z\n", "line 2, field 2: '4z'"},
        {"1,2\n3,+-4\n", "line 2, field 2: '+-4'"},
        {"1,2\n3,\"x\"\n", "line 2, field 2: 'x'"},
        {"1,2\n3,\"\"\n", "line 2, field 2: is empty"},
        {"1,2\n3,\"4\n", "line 2, field 2: '\"4'"},
        {"1;2\n3;4,5\n", "line 2, field 2: '4,5'"},
        {"x;y\n1,5;2,5\n", "line 2, field 1: '1,5'"},
        {"1.0,2.o\n3,4\n", "line 1, field 2: '2.o'"},
        {"1,2\na,b\n", "line 2, field 1: 'a'"},
        {"1,2\n3," + std::string(100, 'y') + "\n", "'" + std::string(40, 'y') + "...'"},
        {std::string("PK\3\4\0\0", 6), "is a ZIP archive that is cut off"},
        {std::string("1,2\0", 4), "neither .npy nor Matrix Market nor text"},
    };
    for (const auto& [text, why] : cases) {
        SCOPED_TRACE(text);
        expect_unreadable(write_file("A.csv", text), why);
    }
}

/// A prefix of a table may be a table; what it must not do is to crash, or to give another shape or other numbers.
TEST_F(IoTest, CsvTruncatedAtEveryByte) {
    const std::string text = "x,y\n11,12\n21,\"22\"\n31,32\n";
    for (std::size_t size = 0; size < text.size(); ++size) {
        const std::string path = write_file("A.csv", text.substr(0, size));
        try {
            const Matrix<double> A = MatrixFile(path).read<double>();
            ASSERT_GE(A.rows(), 1);
            ASSERT_LE(A.rows(), 3);
        } catch (const UnreadableFile&) {
        }
    }
}

// ----------------------------------------------------------------------------------------------------- every text
// format

TEST_F(IoTest, TextFilesGiveRowsFromTheSecondCallOnWithoutTheFile) {
    const MatrixFile file(write_file("A.csv", "1,2\n3,4\n5,1e300\n"));
    EXPECT_FALSE(file.streams());
    EXPECT_EQ(file.dtype(), ScalarKind::F64);
    Matrix<float> padded(4, 2);
    std::fill_n(padded.data(), 8, std::numeric_limits<float>::quiet_NaN());
    file.read_rows<float>({1, 3}, padded.view().row_block({0, 2}));
    expect_equal(padded, {{3, 4}, {5, inf}, {nan, nan}, {nan, nan}});
    expect_equal(file.read<float>(), {{1, 2}, {3, 4}, {5, inf}});
    expect_equal(file.read<double>(), {{1, 2}, {3, 4}, {5, 1e300}});
}

TEST_F(IoTest, OneFileServesManyThreads) {
    for (const char* name : {"A.csv", "A.npy"}) {
        std::string text;
        if (std::string(name) == "A.npy") {
            text = npy_bytes(dict_of("|u1", false, "(100, 2)"), std::string(200, '\x07'));
        } else {
            for (int i = 0; i < 100; ++i) text += "7,7\n";
        }
        const MatrixFile file(write_file(name, text));
        std::vector<Matrix<double>> blocks;
        for (int t = 0; t < 4; ++t) blocks.emplace_back(25, 2);
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                file.read_rows({25 * t, 25 * t + 25}, blocks[static_cast<std::size_t>(t)].view());
            });
        }
        for (std::thread& thread : threads) thread.join();
        for (const Matrix<double>& block : blocks) {
            expect_equal(block, std::vector<std::vector<double>>(25, {7, 7}));
        }
    }
}

TEST_F(IoTest, LocaleDoesNotMatter) {
    struct German : std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new German));
    expect_equal(read("A.csv", "1.5;2000.25\n"), {{1.5, 2000.25}});
    quoin::write_npy<double>(path("v.npy"), std::vector<double>(2000, 0.5));
    EXPECT_EQ(MatrixFile(path("v.npy")).rows(), 2000);
    std::locale::global(before);
}

// ------------------------------------------------------------------------------------------- compressed, and by pipes
// The files are NumPy's and Python's.

const std::string corpus = QUOIN_CORPUS;
const std::vector<std::vector<double>> counted = {{1, 2}, {3, 4}, {5, 6}};

TEST_F(IoTest, GzipOfEveryFormat) {
    for (const char* name : {"A.csv.gz", "A.mtx.gz", "A.npy.gz", "two_members.csv.gz"}) {
        SCOPED_TRACE(name);
        const MatrixFile file(corpus + "/gzip/" + name);
        EXPECT_FALSE(file.streams());
        EXPECT_EQ(file.dtype(), std::string(name) == "A.npy.gz" ? ScalarKind::F32 : ScalarKind::F64);
        expect_equal(file.read<double>(), counted);
        Matrix<float> last(1, 2);
        file.read_rows<float>({2, 3}, last.view());
        expect_equal(last, {{5, 6}});
    }
}

TEST_F(IoTest, GzipDamagedOrTooLarge) {
    const std::string whole = [&] {
        std::ifstream in(corpus + "/gzip/A.npy.gz", std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    for (std::size_t size = 2; size < whole.size(); ++size)
        expect_unreadable(write_file("A.gz", whole.substr(0, size)), "cut off");
    std::string wrong = whole;
    wrong[whole.size() - 6] ^= 1;  // of the checksum
    expect_unreadable(write_file("A.gz", wrong), "damaged");
    // 128 bytes of header and 24 of data
    const std::string path = write_file("A.npy.gz", whole);
    expect_equal(MatrixFile(path, {.max_unpacked_bytes = 152}).read<double>(), counted);
    expect_refusal<OutOfMemory>(path, "limit of 151 bytes", [&] { MatrixFile(path, {.max_unpacked_bytes = 151}); });
}

TEST_F(IoTest, ArraysOfAnNpz) {
    const std::string two = corpus + "/npz/two_arrays.npz";
    expect_equal(MatrixFile(two + ":A").read<double>(), counted);
    expect_equal(MatrixFile(two + ":b").read<double>(), {{1}, {2}, {3}});
    EXPECT_EQ(MatrixFile(two + ":b").dtype(), ScalarKind::F32);
    EXPECT_FALSE(MatrixFile(two + ":b").streams());
    expect_unreadable(two, "has 2 arrays (A, b): write which, as in " + two + ":A");
    expect_refusal<UnreadableFile>(two, "has no array c; it has A, b", [&] { MatrixFile(two + ":c"); });
    expect_unreadable(corpus + "/npz/no_array.npz", "without an .npy array");
    expect_equal(MatrixFile(corpus + "/npz/zip64.npz").read<double>(), counted);
    const std::string deflated = corpus + "/npz/one_deflated.npz";
    EXPECT_EQ(MatrixFile(deflated).rows(), 120);
    EXPECT_EQ(MatrixFile(deflated).read<double>()(119, 1), 6);
    EXPECT_EQ(MatrixFile(deflated, {.max_unpacked_bytes = 128 + 120 * 2 * 8}).cols(), 2);
    expect_refusal<OutOfMemory>(deflated, "2048 bytes", [&] { MatrixFile(deflated, {.max_unpacked_bytes = 2047}); });
}

TEST_F(IoTest, NpzCutOffOrDamagedAtEveryByte) {
    for (const char* name : {"zip64.npz", "one_deflated.npz"}) {
        std::ifstream in(corpus + "/npz/" + name, std::ios::binary);
        const std::string whole(std::istreambuf_iterator<char>(in), {});
        const Matrix<double> expected = MatrixFile(corpus + "/npz/" + name).read<double>();
        for (std::size_t at = 4; at < whole.size(); ++at) {
            expect_unreadable(write_file("A.npz", whole.substr(0, at)), "ZIP archive");
            std::string wrong = whole;
            wrong[at] ^= 0x10;
            try {  // not every byte of an archive means something
                read("A.npz", wrong);
            } catch (const Error&) {
            }
        }
    }
}

TEST_F(IoTest, APipeIsReadToItsEnd) {
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    for (const std::string& text :
         {std::string("1,2\n3,4\n5,6\n"), npy_bytes(dict_of("|u1", false, "(3, 2)"), "\1\2\3\4\5\6")}) {
        std::thread writer([&] { std::ofstream(path("pipe"), std::ios::binary) << text; });
        const MatrixFile file(path("pipe"));
        writer.join();
        EXPECT_FALSE(file.streams());
        expect_equal(file.read<double>(), counted);
    }
    std::thread writer([&] { std::ofstream(path("pipe")) << "1,2\n"; });
    expect_refusal<OutOfMemory>(path("pipe"), "limit of 3 bytes",
                                [&] { MatrixFile(path("pipe"), {.max_unpacked_bytes = 3}); });
    writer.join();
}

TEST_F(IoTest, FilesOfOtherProgramsAreToldApart) {
    for (const auto& [bytes, what, how] :
         {std::tuple<std::string, const char*, const char*>{"\x89HDF\r\n\x1a\n....", "HDF5", "h5py"},
          {std::string(512, ' ') + "\x89HDF\r\n\x1a\n", "HDF5", "h5py"},
          {"MATLAB 5.0 MAT-file, Platform", "MATLAB", "loadmat"},
          {"PAR1....PAR1", "Parquet", "read_parquet"}}) {
        expect_unreadable(write_file("A", bytes), what);
        expect_unreadable(write_file("A", bytes), how);
    }
}

// ------------------------------------------------------------------------------------------------ files of the wrong
// kind

TEST_F(IoTest, UnreadableFiles) {
    expect_unreadable(path("missing.npy"), "No such file or directory");
    expect_unreadable(directory_.string(), "is a directory");
    expect_unreadable(write_file("empty.npy", ""), "is empty");
    expect_unreadable("/dev/null", "is not a regular file");
    const std::string secret = write_file("secret.csv", "1\n");
    fs::permissions(secret, fs::perms::none);
    const OrdinaryUser user;
    expect_unreadable(secret, "Permission denied");
}

}  // namespace
}  // namespace quoin::test
