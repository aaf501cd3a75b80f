// Reads blocks of a mapped .npy file, and converts their elements.

#include "io/npy_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "io/transpose.hpp"

namespace quoin::io {
namespace {

/// Converts n consecutive elements of a file. `src` need not be aligned.
template <class T>
using Decode = void (*)(const char* src, Index n, T* dst);

template <class S, bool Swapped>
S load(const char* p) {
    if constexpr (Swapped) {
        char reversed[sizeof(S)];
        std::reverse_copy(p, p + sizeof(S), reversed);
        return load<S, false>(reversed);
    }
    S value;
    std::memcpy(&value, p, sizeof(S));
    return value;
}

template <class S, bool Swapped, class T>
void decode(const char* src, Index n, T* dst) {
    if constexpr (std::is_same_v<S, T> && !Swapped) {
        std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(T));
    } else {
        for (Index i = 0; i < n; ++i) dst[i] = static_cast<T>(load<S, Swapped>(src + i * Index{sizeof(S)}));
    }
}

template <class T>
void decode_bool(const char* src, Index n, T* dst) {
    for (Index i = 0; i < n; ++i) dst[i] = src[i] != 0 ? T(1) : T(0);
}

template <class S, class T>
Decode<T> decoder_of(bool swapped) {
    return swapped ? decode<S, true, T> : decode<S, false, T>;
}

template <class T>
Decode<T> decoder(const NpyHeader& header) {
    switch (header.type) {
        case NpyType::F4: return decoder_of<float, T>(header.swapped);
        case NpyType::F8: return decoder_of<double, T>(header.swapped);
        case NpyType::I1: return decode<std::int8_t, false, T>;
        case NpyType::I2: return decoder_of<std::int16_t, T>(header.swapped);
        case NpyType::I4: return decoder_of<std::int32_t, T>(header.swapped);
        case NpyType::I8: return decoder_of<std::int64_t, T>(header.swapped);
        case NpyType::U1: return decode<std::uint8_t, false, T>;
        case NpyType::U2: return decoder_of<std::uint16_t, T>(header.swapped);
        case NpyType::U4: return decoder_of<std::uint32_t, T>(header.swapped);
        case NpyType::U8: return decoder_of<std::uint64_t, T>(header.swapped);
        case NpyType::B1: return decode_bool<T>;
    }
    return nullptr;
}

}  // namespace

template <class T>
void read_npy_block(std::string_view file, const NpyHeader& header, Range rows, Range cols, MatrixView<T> out) {
    if (out.empty()) return;
    const Decode<T> decode_run = decoder<T>(header);
    if (header.fortran_order || header.cols == 1) {
        for (Index j = 0; j < out.cols; ++j) {
            decode_run(file.data() + header.offset(rows.begin, cols.begin + j), out.rows, out.at(0, j));
        }
        return;
    }
    T tile[tile_size * tile_size];
    for (Index i0 = 0; i0 < out.rows; i0 += tile_size) {
        const Index ni = std::min(tile_size, out.rows - i0);
        for (Index j0 = 0; j0 < out.cols; j0 += tile_size) {
            const Index nj = std::min(tile_size, out.cols - j0);
            for (Index i = 0; i < ni; ++i) {
                decode_run(file.data() + header.offset(rows.begin + i0 + i, cols.begin + j0), nj, tile + i * nj);
            }
            transpose(ni, nj, tile, nj, out.at(i0, j0), out.ld);
        }
    }
}

template void read_npy_block<float>(std::string_view, const NpyHeader&, Range, Range, MatrixView<float>);
template void read_npy_block<double>(std::string_view, const NpyHeader&, Range, Range, MatrixView<double>);

}  // namespace quoin::io
