#include "video/shrink.hpp"

#include <type_traits>

namespace quoin::video {
namespace {

/// A row of `width` means of f×f pixels.
template <class F, class Channels>
void shrink_row(const std::uint8_t* from, Index from_row, F f, Channels channels, Index width, std::uint8_t* to) {
    const auto area = static_cast<unsigned>(f * f);
    for (Index x = 0; x < width; ++x) {
        for (Index c = 0; c < channels; ++c) {
            unsigned sum = area / 2;
            for (Index i = 0; i < f; ++i) {
                for (Index j = 0; j < f; ++j) sum += from[i * from_row + (x * f + j) * channels + c];
            }
            to[x * channels + c] = static_cast<std::uint8_t>(sum / area);
        }
    }
}

}  // namespace

Image shrink(const Image& image, Index f) {
    const FrameFormat& from = image.format;
    Image small{{from.width / f, from.height / f, from.channels}, {}};
    small.pixels.resize(static_cast<std::size_t>(small.format.bytes()));
    const Index from_row = from.width * from.channels, to_row = small.format.width * from.channels;
#pragma omp parallel for schedule(static)
    for (Index y = 0; y < small.format.height; ++y) {
        const std::uint8_t* const squares = image.pixels.data() + y * f * from_row;
        std::uint8_t* const to = small.pixels.data() + y * to_row;
        if (f == 2 && from.channels == 1) {  // loops of vectors
            shrink_row(squares, from_row, std::integral_constant<Index, 2>(), std::integral_constant<Index, 1>(),
                       small.format.width, to);
        } else {
            shrink_row(squares, from_row, f, from.channels, small.format.width, to);
        }
    }
    return small;
}

}  // namespace quoin::video
