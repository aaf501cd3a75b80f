#include "video/lettering.hpp"

#include <algorithm>

namespace quoin::video {
namespace {

struct Letter {
    char character;
    const char* rows[7];  // five dots each
};

// clang-format off
constexpr Letter letters[] = {
    {'A', {".###.", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"}},
    {'B', {"####.", "#...#", "#...#", "####.", "#...#", "#...#", "####."}},
    {'C', {".###.", "#...#", "#....", "#....", "#....", "#...#", ".###."}},
    {'D', {"####.", "#...#", "#...#", "#...#", "#...#", "#...#", "####."}},
    {'E', {"#####", "#....", "#....", "####.", "#....", "#....", "#####"}},
    {'F', {"#####", "#....", "#....", "####.", "#....", "#....", "#...."}},
    {'G', {".###.", "#...#", "#....", "#.###", "#...#", "#...#", ".###."}},
    {'H', {"#...#", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"}},
    {'I', {".###.", "..#..", "..#..", "..#..", "..#..", "..#..", ".###."}},
    {'J', {"..###", "...#.", "...#.", "...#.", "...#.", "#..#.", ".##.."}},
    {'K', {"#...#", "#..#.", "#.#..", "##...", "#.#..", "#..#.", "#...#"}},
    {'L', {"#....", "#....", "#....", "#....", "#....", "#....", "#####"}},
    {'M', {"#...#", "##.##", "#.#.#", "#.#.#", "#...#", "#...#", "#...#"}},
    {'N', {"#...#", "##..#", "##..#", "#.#.#", "#..##", "#..##", "#...#"}},
    {'O', {".###.", "#...#", "#...#", "#...#", "#...#", "#...#", ".###."}},
    {'P', {"####.", "#...#", "#...#", "####.", "#....", "#....", "#...."}},
    {'Q', {".###.", "#...#", "#...#", "#...#", "#.#.#", "#..#.", ".##.#"}},
    {'R', {"####.", "#...#", "#...#", "####.", "#.#..", "#..#.", "#...#"}},
    {'S', {".####", "#....", "#....", ".###.", "....#", "....#", "####."}},
    {'T', {"#####", "..#..", "..#..", "..#..", "..#..", "..#..", "..#.."}},
    {'U', {"#...#", "#...#", "#...#", "#...#", "#...#", "#...#", ".###."}},
    {'V', {"#...#", "#...#", "#...#", "#...#", ".#.#.", ".#.#.", "..#.."}},
    {'W', {"#...#", "#...#", "#...#", "#.#.#", "#.#.#", "##.##", "#...#"}},
    {'X', {"#...#", "#...#", ".#.#.", "..#..", ".#.#.", "#...#", "#...#"}},
    {'Y', {"#...#", "#...#", ".#.#.", "..#..", "..#..", "..#..", "..#.."}},
    {'Z', {"#####", "....#", "...#.", "..#..", ".#...", "#....", "#####"}},
};
// clang-format on

/// Fills rows [y, y + size) and columns [x, x + size), as far as they are in the image.
void fill_dot(Image& image, Index x, Index y, Index size, Rgb color) {
    const Index right = std::min(x + size, image.format.width), bottom = std::min(y + size, image.format.height);
    for (Index i = std::max<Index>(y, 0); i < bottom; ++i) {
        for (Index j = std::max<Index>(x, 0); j < right; ++j) {
            std::copy(color.begin(), color.end(), image.pixels.begin() + 3 * (i * image.format.width + j));
        }
    }
}

}  // namespace

void draw_text(Image& image, Index x, Index y, std::string_view text, Index scale, Rgb color) {
    for (const char c : text) {
        const char capital = 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        const auto* letter = std::find_if(std::begin(letters), std::end(letters),
                                          [&](const Letter& l) { return l.character == capital; });
        for (Index i = 0; letter != std::end(letters) && i < 7; ++i) {
            for (Index j = 0; j < 5; ++j) {
                if (letter->rows[i][j] == '#') fill_dot(image, x + j * scale, y + i * scale, scale, color);
            }
        }
        x += 6 * scale;
    }
}

}  // namespace quoin::video
