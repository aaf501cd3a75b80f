// The pictures that `quoin rpca` makes: contact sheet, letters, plot of the convergence.

#include <array>
#include <cmath>
#include <regex>

#include "video/contact_sheet.hpp"
#include "video/convergence_plot.hpp"
#include "video/decision_plot.hpp"
#include "video/lettering.hpp"
#include "video/shrink.hpp"
#include "video_files.hpp"

namespace quoin::test {
namespace {

TEST(Frame, SizesBeyond32Bits) { EXPECT_EQ((FrameFormat{65'536, 65'536, 3}.bytes()), Index{12'884'901'888}); }

std::array<int, 3> pixel(const Image& image, Index x, Index y) {
    const std::uint8_t* p = image.pixels.data() + 3 * (y * image.format.width + x);
    return {p[0], p[1], p[2]};
}

TEST(ContactSheet, PutsEveryFrameInItsPlace) {
    constexpr FrameFormat grey{60, 40, 1}, color{60, 40, 3};
    const Pixels a = noise(grey, 1), b = noise(color, 2), c = noise(grey, 3), d = noise(color, 4);
    for (const std::vector<std::string>& titles : {std::vector<std::string>{"Original", "Mask"}, {"", ""}}) {
        const Image sheet = contact_sheet({{{grey, a}, {color, b}}, {{grey, c}, {color, d}}}, titles);
        const Index heading = sheet.format.height - 2 * 40 - 4;
        EXPECT_EQ(sheet.format.width, 2 * 60 + 4);
        EXPECT_EQ(sheet.format.channels, 3);
        EXPECT_EQ(sheet.pixels.size(), static_cast<std::size_t>(sheet.format.bytes()));
        EXPECT_EQ(heading == 0, titles[0].empty());
        for (Index y = 0; y < 40; ++y) {
            for (Index x = 0; x < 60; ++x) {
                const std::size_t p = static_cast<std::size_t>(y * 60 + x);
                EXPECT_EQ(pixel(sheet, x, heading + y), (std::array<int, 3>{a[p], a[p], a[p]}));
                EXPECT_EQ(pixel(sheet, 64 + x, heading + y),
                          (std::array<int, 3>{b[3 * p], b[3 * p + 1], b[3 * p + 2]}));
                EXPECT_EQ(pixel(sheet, x, heading + 44 + y), (std::array<int, 3>{c[p], c[p], c[p]}));
                EXPECT_EQ(pixel(sheet, 64 + x, heading + 44 + y),
                          (std::array<int, 3>{d[3 * p], d[3 * p + 1], d[3 * p + 2]}));
            }
        }
        for (Index y = 0; y < sheet.format.height; ++y) EXPECT_EQ(pixel(sheet, 62, y), (std::array{255, 255, 255}));
        const Image row = contact_sheet({{{grey, a}, {color, b}}}, titles);
        EXPECT_EQ(row.format, (FrameFormat{124, heading + 40, 3}));
        EXPECT_TRUE(std::equal(row.pixels.begin(), row.pixels.end(), sheet.pixels.begin()));
    }
}

TEST(ContactSheet, TheEdgeOfAMaskIsDrawnOverItsFrame) {
    constexpr FrameFormat format{9, 7, 1};
    const Pixels frame = noise(format, 1), other = noise(format, 2);
    Pixels mask(9 * 7, 0);
    // a block at the corner, whose inner pixels (x < 3, y < 2) have no neighbour outside, and one pixel alone
    for (std::size_t y = 0; y < 3; ++y) std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(9 * y), 4, 255);
    mask[9 * 5 + 6] = 255;
    const Image plain = contact_sheet({{{format, other}, {format, mask}}, {{format, frame}, {format, mask}}}, {"", ""});
    const Image sheet =
        contact_sheet({{{format, other}, {format, mask}}, {{format, frame}, {format, mask}}}, {"", ""}, true);
    for (Index y = 0; y < sheet.format.height; ++y) {
        for (Index x = 0; x < sheet.format.width; ++x) {
            const Index row = y % 11;
            const bool edge = x < 9 && ((x < 4 && row < 3 && (x == 3 || row == 2)) || (x == 6 && row == 5));
            EXPECT_EQ(pixel(sheet, x, y), edge ? (std::array{255, 32, 32}) : pixel(plain, x, y)) << x << ' ' << y;
        }
    }
}

TEST(ContactSheet, LeavesNothingOfTheMemoryThatItTakes) {
    constexpr FrameFormat format{60, 40, 1};
    const Pixels a = noise(format, 1), b = noise(format, 2);
    const Image fresh = contact_sheet({{{format, a}, {format, b}}}, {"a", "b"}, true);
    for (const Index width : {1, 124, 500}) {
        Image memory{{width, fresh.format.height, 3}, {}};
        memory.pixels.assign(static_cast<std::size_t>(memory.format.bytes()), 7);
        const Image sheet = contact_sheet({{{format, a}, {format, b}}}, {"a", "b"}, true, std::move(memory));
        EXPECT_EQ(sheet.format, fresh.format);
        EXPECT_EQ(sheet.pixels, fresh.pixels);
    }
}

TEST(Shrink, TakesTheRoundedMeanOfEachSquare) {
    for (const Index channels : {1, 3}) {
        for (const Index f : {1, 2, 3}) {
            const FrameFormat format{71, 20, channels}, small{71 / f, 20 / f, channels};
            const Pixels pixels = noise(format, 3);
            const Image shrunk = shrink({format, pixels}, f);
            ASSERT_EQ(shrunk.format, small);
            ASSERT_EQ(shrunk.pixels.size(), static_cast<std::size_t>(small.bytes()));
            for (Index i = 0; i < small.bytes(); ++i) {
                const Index y = i / (small.width * channels), x = i / channels % small.width;
                double sum = 0;
                for (Index k = 0; k < f * f; ++k) {
                    const Index at = ((y * f + k / f) * 71 + x * f + k % f) * channels + i % channels;
                    sum += pixels[static_cast<std::size_t>(at)];
                }
                EXPECT_EQ(shrunk.pixels[static_cast<std::size_t>(i)], std::floor(sum / double(f * f) + 0.5)) << i;
            }
        }
    }
}

TEST(ContactSheet, TitlesStayInTheirColumns) {
    for (const Index width : {1, 4, 5, 6, 11, 50, 400}) {
        const FrameFormat format{width, 300, 1};
        const Pixels white(static_cast<std::size_t>(format.bytes()), 255);
        const Image sheet = contact_sheet({{{format, white}, {format, white}}}, {"", "HHHHHHHHHHHH"});
        for (Index y = 0; y < sheet.format.height; ++y) {
            for (Index x = 0; x < width + 4; ++x) EXPECT_EQ(pixel(sheet, x, y), (std::array{255, 255, 255})) << width;
        }
    }
}

TEST(ContactSheet, ChecksItsFrames) {
    const Pixels pixels(16);
    const FrameView frame{{4, 4, 1}, pixels}, wide{{8, 2, 1}, pixels}, empty{{4, 4, 1}, {}};
    EXPECT_THROW(contact_sheet({}, {"a"}), InvalidArgument);
    EXPECT_THROW(contact_sheet({{}}, {}), InvalidArgument);
    EXPECT_THROW(contact_sheet({{frame}}, {"a", "b"}), InvalidArgument);
    EXPECT_THROW(contact_sheet({{frame, frame}, {frame}}, {"a", "b"}), InvalidArgument);
    EXPECT_THROW(contact_sheet({{frame, wide}}, {"a", "b"}), InvalidArgument);
    EXPECT_THROW(contact_sheet({{frame, empty}}, {"a", "b"}), InvalidArgument);
}

TEST(Lettering, EveryLetterIsDrawnAndDiffers) {
    std::set<std::string> seen;
    for (const char c : std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZ ")) {
        const auto draw = [](char letter) {
            Image image{{5, 7, 3}, Pixels(105)};
            draw_text(image, 0, 0, std::string(1, letter), 1, {255, 255, 255});
            return std::string(image.pixels.begin(), image.pixels.end());
        };
        EXPECT_TRUE(seen.insert(draw(c)).second) << c;
        EXPECT_EQ(draw(static_cast<char>(std::tolower(c))), draw(c)) << c;
    }
}

TEST(Lettering, ScalesAndIsCutOffAtTheEdges) {
    Image one{{text_width(2, 1), text_height(1), 3}, {}}, three{{text_width(2, 3), text_height(3), 3}, {}};
    one.pixels.resize(static_cast<std::size_t>(one.format.bytes()));
    three.pixels.resize(static_cast<std::size_t>(three.format.bytes()));
    draw_text(one, 0, 0, "QR", 1, {9, 8, 7});
    draw_text(three, 0, 0, "QR", 3, {9, 8, 7});
    for (Index y = 0; y < three.format.height; ++y) {
        for (Index x = 0; x < three.format.width; ++x) EXPECT_EQ(pixel(three, x, y), pixel(one, x / 3, y / 3));
    }
    for (const Index x : {-100, -4, 0, 8, 100}) {
        for (const Index y : {-100, -4, 0, 5, 100}) draw_text(one, x, y, "QUOIN", 4, {1, 2, 3});
    }
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
    return n;
}

TEST(ConvergencePlot, DrawsEveryFinitePoint) {
    std::vector<RobustPcaStep> steps;
    for (Index k = 1; k <= 40; ++k) {
        RobustPcaStep step;
        step.iteration = k;
        step.residual = std::pow(0.7, k);
        step.rank = k / 3;
        steps.push_back(step);
    }
    const auto check = [](const std::string& svg) {
        EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        EXPECT_EQ(svg.find("nan"), svg.npos);
        EXPECT_EQ(svg.find("inf"), svg.npos);
        EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
        // what is drawn is on the canvas
        const std::regex number("c[xy]=\"([^\"]*)\"");
        for (std::sregex_iterator match(svg.begin(), svg.end(), number); match != std::sregex_iterator(); ++match) {
            const double value = std::stod((*match)[1]);
            EXPECT_TRUE(0 <= value && value <= 720) << value;
        }
        return count(svg, "<circle");
    };
    EXPECT_EQ(check(convergence_svg(steps, 1e-5)), 80u);
    EXPECT_NE(convergence_svg(steps, 1e-5).find("tolerance 1e-05"), std::string::npos);
    EXPECT_EQ(convergence_svg(steps).find("tolerance"), std::string::npos);
    EXPECT_EQ(check(convergence_svg(std::span(steps).first(1))), 2u);
    EXPECT_EQ(check(convergence_svg({})), 0u);
    // with constant μ the dual residual decides, too, and has a curve and a name
    std::vector<RobustPcaStep> constant = steps;
    for (RobustPcaStep& step : constant) step.error = step.dual_residual = 10 * step.residual;
    EXPECT_EQ(check(convergence_svg(constant, 1e-5)), 120u);
    EXPECT_NE(convergence_svg(constant).find("μ‖S − S′‖ / ‖Y‖"), std::string::npos);
    // a second window's curves begin anew: no line leads back to its first iteration
    std::vector<RobustPcaStep> windows = steps;
    windows.insert(windows.end(), steps.begin(), steps.begin() + 10);
    EXPECT_EQ(check(convergence_svg(windows)), 100u);
    EXPECT_EQ(count(convergence_svg(windows), "h0"), 2 * count(convergence_svg(steps), "h0"));
    const double breaks[] = {nan, 0, inf};
    for (const double residual : breaks) {
        std::vector<RobustPcaStep> broken = steps;
        broken[20].residual = residual;
        EXPECT_EQ(check(convergence_svg(broken)), 79u);
        for (RobustPcaStep& step : broken) step.residual = residual;
        EXPECT_EQ(check(convergence_svg(broken)), 40u);
    }
}

/// Points of the curve of a colour, and its pieces.
std::pair<std::size_t, std::size_t> points_of(const std::string& svg, const std::string& color) {
    const std::size_t end = svg.find("\" stroke=\"" + color + "\"");
    if (end == svg.npos) return {0, 0};
    const std::size_t begin = svg.rfind("d=\"", end);
    const std::string path = svg.substr(begin, end - begin);
    return {count(path, ","), count(path, "M")};
}

TEST(DecisionPlot, HasAPointForEachFrameAndALineForEachSeam) {
    Decisions decisions;
    for (const double iterations : {19, 23}) {
        decisions.begin_window(iterations);
        for (int j = 0; j < 30; ++j)
            decisions.add({iterations - 17, {20, 25, 90 + iterations}, 0.01 * j, j == 0 ? 1.2 : 0.07});
    }
    const std::string svg = decisions_svg(decisions, "method stable", 22.95);
    EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for (const char* text : {"method stable", "19 iterations", "23 iterations", "rank of L", "threshold", "foreground",
                             "change of L", "seams of windows", ">20%<"})
        EXPECT_NE(svg.find(text), svg.npos) << text;
    EXPECT_EQ(svg.find("nan"), svg.npos);
    EXPECT_EQ(points_of(svg, "#b2501e"), std::pair(std::size_t(60), std::size_t(2))) << "rank, in two windows";
    EXPECT_EQ(points_of(svg, "#2b7a3d"), std::pair(std::size_t(60), std::size_t(1))) << "foreground";
    EXPECT_EQ(count(svg, "stroke-dasharray=\"3 3\""), 4u) << "one seam in four panels";
    EXPECT_EQ(count(svg, "stroke-dasharray=\"5 4\""), 1u) << "the least threshold";

    Decisions online;
    EXPECT_TRUE(decisions_svg(online, "", 0).ends_with("</svg>\n")) << "no frames";
    for (int j = 0; j < 100000; ++j) online.add({1, {1, 2, 3}, 0.1, j < 50000 ? 0.0 : 1.0});
    EXPECT_LT(online.kept().size(), 4096u) << "the memory is bounded";
    EXPECT_GT(online.kept().size(), 2000u);
    EXPECT_EQ(online.frames(), 100000);
    const std::string stream = decisions_svg(online, "", 0);
    EXPECT_EQ(points_of(stream, "#6b4c9a").first, online.kept().size());
    EXPECT_EQ(stream.find("seams"), stream.npos);
    for (std::size_t k = 0; k < online.kept().size(); ++k)
        EXPECT_EQ(online.kept()[k].change, static_cast<double>(k) * online.stride() < 50000 ? 0 : 1) << k;
}

}  // namespace
}  // namespace quoin::test
