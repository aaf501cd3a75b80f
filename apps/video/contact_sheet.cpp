#include "video/contact_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "quoin/error.hpp"
#include "video/lettering.hpp"

namespace quoin::video {
namespace {

constexpr Rgb paper{255, 255, 255}, ink{32, 32, 32}, red{255, 32, 32};
constexpr Index separator = 4;

/// Frames of one format's width and height, a column under each title.
void check(const std::vector<std::vector<FrameView>>& rows, const std::vector<std::string>& titles) {
    if (rows.empty() || titles.empty()) throw InvalidArgument("a contact sheet needs a frame");
    for (const std::vector<FrameView>& row : rows) {
        if (row.size() != titles.size()) {
            throw InvalidArgument(
                fmt::format("a contact sheet has {} titles and a row of {} frames", titles.size(), row.size()));
        }
        for (const FrameView& frame : row) {
            const FrameFormat &format = frame.format, &first = rows[0][0].format;
            check_format(format);
            check_frame(format, frame.pixels);
            if (format.width != first.width || format.height != first.height) {
                throw InvalidArgument(fmt::format("a contact sheet has frames of {} x {} and of {} x {}", first.width,
                                                  first.height, format.width, format.height));
            }
        }
    }
}

/// Copies row i of a frame, grey or RGB.
void place_row(const FrameView& frame, Index i, std::uint8_t* to) {
    const FrameFormat& f = frame.format;
    const std::uint8_t* const from = frame.pixels.data() + i * f.width * f.channels;
    if (f.channels == 3) {
        std::memcpy(to, from, static_cast<std::size_t>(3 * f.width));
    } else {
        for (Index j = 0; j < f.width; ++j) to[3 * j] = to[3 * j + 1] = to[3 * j + 2] = from[j];
    }
}

/// Draws the pixels of row i of a mask that have a neighbour outside it.
void outline_row(const FrameView& mask, Index i, std::uint8_t* to) {
    const FrameFormat& f = mask.format;
    const auto row = [&](Index k) {
        return mask.pixels.data() + std::clamp<Index>(k, 0, f.height - 1) * f.width * f.channels;
    };
    const std::uint8_t *const above = row(i - 1), *const here = row(i), *const below = row(i + 1);
    for (Index j = 0; j < f.width; ++j) {
        const Index at = j * f.channels, left = std::max<Index>(0, j - 1) * f.channels,
                    right = std::min(f.width - 1, j + 1) * f.channels;
        if (here[at] < 128 || (above[at] & below[at] & here[left] & here[right]) >= 128) continue;
        std::copy(red.begin(), red.end(), to + 3 * j);
    }
}

}  // namespace

Image contact_sheet(const std::vector<std::vector<FrameView>>& rows, const std::vector<std::string>& titles,
                    bool outlined, Image memory) {
    check(rows, titles);
    const Index columns = static_cast<Index>(titles.size()), width = rows[0][0].format.width,
                height = rows[0][0].format.height;
    Index longest = 0;
    for (const std::string& title : titles) longest = std::max(longest, static_cast<Index>(title.size()));
    // a title takes at most its column's width, and a twelfth of its height
    Index scale = std::max<Index>(1, height / (12 * text_height(1)));
    while (scale > 1 && text_width(longest, scale) > width) --scale;
    const Index margin = longest > 0 ? 2 * scale : 0, heading = longest > 0 ? text_height(scale) + 2 * margin : 0;

    Image sheet = std::move(memory);
    sheet.format = {columns * width + (columns - 1) * separator,
                    heading + static_cast<Index>(rows.size()) * (height + separator) - separator, 3};
    sheet.pixels.resize(static_cast<std::size_t>(sheet.format.bytes()));
#pragma omp parallel for schedule(static)
    for (Index y = 0; y < sheet.format.height; ++y) {
        std::uint8_t* const to = sheet.pixels.data() + 3 * y * sheet.format.width;
        std::fill_n(to, 3 * sheet.format.width, paper[0]);
        const Index i = (y - heading) / (height + separator), in_frame = (y - heading) % (height + separator);
        if (y < heading || in_frame >= height) continue;
        for (Index j = 0; j < columns; ++j) place_row(rows[i][j], in_frame, to + 3 * j * (width + separator));
        if (outlined) outline_row(rows[i].back(), in_frame, to);
    }
    for (Index j = 0; j < columns; ++j) {
        const Index x = j * (width + separator), fitting = (width / scale + 1) / 6;
        const std::string_view title = std::string_view(titles[j]).substr(0, static_cast<std::size_t>(fitting));
        draw_text(sheet, x + (width - text_width(static_cast<Index>(title.size()), scale)) / 2, margin, title, scale,
                  ink);
    }
    return sheet;
}

}  // namespace quoin::video
