// The Matrix Market reader, from memory: whatever the bytes, it gives a matrix of the promised symmetry or throws
// UnreadableFile.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/matrix_market.hpp"
#include "quoin/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using quoin::Index, quoin::io::MatrixMarketSymmetry;
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    try {
        const quoin::io::MatrixMarketHeader header = quoin::io::parse_matrix_market_header(file, "fuzz");
        // A few bytes may ask for any amount of memory, a sparse matrix being read dense.
        constexpr Index max_elements = 1 << 14;
        if (header.rows > max_elements || header.cols > max_elements) return 0;
        if (header.rows * header.cols > max_elements) return 0;
        const quoin::Matrix<double> A = quoin::io::read_matrix_market(header, "fuzz");
        if (header.symmetry == MatrixMarketSymmetry::General) return 0;
        const double sign = header.symmetry == MatrixMarketSymmetry::SkewSymmetric ? -1 : 1;
        for (Index j = 0; j < A.cols(); ++j) {
            for (Index i = j; i < A.rows(); ++i) {
                if (A(i, j) != sign * A(j, i) && !(std::isnan(A(i, j)) && std::isnan(A(j, i)))) __builtin_trap();
            }
        }
    } catch (const quoin::UnreadableFile&) {
    }
    return 0;
}
