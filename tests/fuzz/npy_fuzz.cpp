// The .npy reader, from memory: whatever the bytes, it gives a matrix or throws UnreadableFile.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "io/npy_reader.hpp"
#include "quoin/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using quoin::Index, quoin::Matrix, quoin::Range;
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    try {
        const quoin::io::NpyHeader header = quoin::io::parse_npy_header(file, "fuzz");
        const Range cols{0, header.cols}, lower{header.rows / 2, header.rows};
        Matrix<double> A(header.rows, header.cols), B(lower.size(), header.cols);
        quoin::io::read_npy_block(file, header, {0, header.rows}, cols, A.view());
        quoin::io::read_npy_block(file, header, lower, cols, B.view());
        if (B.view().empty()) return 0;
        for (Index j = 0; j < header.cols; ++j) {
            // memcmp: NaNs must agree, too.
            if (std::memcmp(&A(lower.begin, j), &B(0, j), static_cast<std::size_t>(B.rows()) * sizeof(double)) != 0) {
                __builtin_trap();
            }
        }
    } catch (const quoin::UnreadableFile&) {
    }
    return 0;
}
