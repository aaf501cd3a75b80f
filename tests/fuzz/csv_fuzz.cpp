// The CSV reader, from memory: whatever the bytes, it throws UnreadableFile or gives a matrix that survives being
// written out and read again.

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/csv.hpp"
#include "quoin/error.hpp"

namespace {

quoin::Matrix<double> read(std::string_view text, const quoin::MatrixFileOptions& options) {
    return quoin::io::read_csv(quoin::io::parse_csv_header(text, "fuzz", options), "fuzz");
}

void check_round_trip(const quoin::Matrix<double>& A) {
    std::string text;
    for (quoin::Index i = 0; i < A.rows(); ++i) {
        for (quoin::Index j = 0; j < A.cols(); ++j) text += fmt::format("{},", A(i, j));
        text.back() = '\n';
    }
    const quoin::Matrix<double> B = read(text, {.delimiter = ',', .header = false});
    if (B.rows() != A.rows() || B.cols() != A.cols()) __builtin_trap();
    for (quoin::Index k = 0; k < A.rows() * A.cols(); ++k) {
        if (A.data()[k] != B.data()[k] && !(std::isnan(A.data()[k]) && std::isnan(B.data()[k]))) __builtin_trap();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const quoin::MatrixFileOptions several[] = {{},
                                                {.delimiter = '|', .header = false},
                                                {.delimiter = ' ', .header = true, .skip = 1},
                                                {.decimal = ',', .one_column = true, .missing = {"", "-", "-9"}},
                                                {.comment = '%', .columns = {{1, quoin::last_column}, {0, 1}}}};
    for (const quoin::MatrixFileOptions& options : several) {
        quoin::Matrix<double> A;
        try {
            A = read(text, options);
        } catch (const quoin::UnreadableFile&) {
            continue;
        }
        check_round_trip(A);
    }
    return 0;
}
