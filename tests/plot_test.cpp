// A figure's PNG file is the picture that its SVG file describes.

#include <gtest/gtest.h>

#include "plot/figure.hpp"
#include "plot/png.hpp"
#include "quoin/error.hpp"

#ifdef QUOIN_HAVE_PNG
#include <cairo.h>

#include <cstring>
#include <memory>
#endif

namespace quoin::test {
namespace {

constexpr plot::Panel panel{20, 430, -1, 1};

/// One line along y = 0 from 2 to 8, and a dot's worth of nothing elsewhere.
plot::Figure figure() {
    plot::Figure figure(480, 0, 10);
    figure.axes(panel, {-1, 0, 1}, "ordinate", "#333333", [](double) { return std::string(); });
    figure.curve(panel, {2, 8}, {0, 0}, "#ff0000", 6);
    return figure;
}

TEST(Figure, AnAbscissaRunsFromItsFirstValueToItsLast) {
    const plot::Figure f(480, 50, 150);
    EXPECT_DOUBLE_EQ(f.x(50), plot::Figure::left);
    EXPECT_DOUBLE_EQ(f.x(100), (plot::Figure::left + plot::Figure::right) / 2);
    EXPECT_DOUBLE_EQ(f.x(150), plot::Figure::right);
}

#ifdef QUOIN_HAVE_PNG

/// A PNG file's pixels.
class Picture {
public:
    explicit Picture(const std::string& file) : rest_(file) {
        surface_.reset(cairo_image_surface_create_from_png_stream(
            [](void* of, unsigned char* to, unsigned int count) {
                std::string& rest = static_cast<Picture*>(of)->rest_;
                if (rest.size() < count) return CAIRO_STATUS_READ_ERROR;
                std::memcpy(to, rest.data(), count);
                rest.erase(0, count);
                return CAIRO_STATUS_SUCCESS;
            },
            this));
        EXPECT_EQ(cairo_surface_status(surface_.get()), CAIRO_STATUS_SUCCESS);
    }
    int width() const { return cairo_image_surface_get_width(surface_.get()); }
    int height() const { return cairo_image_surface_get_height(surface_.get()); }
    /// 0xRRGGBB.
    unsigned at(double x, double y) const {
        unsigned pixel;
        const int i = static_cast<int>(x), j = static_cast<int>(y);
        std::memcpy(
            &pixel,
            cairo_image_surface_get_data(surface_.get()) + j * cairo_image_surface_get_stride(surface_.get()) + 4 * i,
            4);
        return pixel & 0xffffff;
    }
    /// Pixels of a rectangle that are not white.
    int marked(int left, int top, int right, int bottom) const {
        int count = 0;
        for (int y = top; y < bottom; ++y) {
            for (int x = left; x < right; ++x) count += at(x, y) != 0xffffff;
        }
        return count;
    }

private:
    std::string rest_;
    std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface_{nullptr, cairo_surface_destroy};
};

TEST(Png, IsThePictureOfTheSvg) {
    const plot::Figure f = figure();
    for (const double scale : {1., 2., 3.}) {
        const Picture picture(plot::png(f.svg(), scale));
        EXPECT_EQ(picture.width(), 720 * scale);
        EXPECT_EQ(picture.height(), 480 * scale);
        EXPECT_EQ(picture.at(scale * f.x(5), scale * panel.y(0)), 0xff0000u) << "on the curve";
        EXPECT_EQ(picture.at(scale * f.x(2.5), scale * panel.y(0.5)), 0xffffffu) << "beside it";
        EXPECT_NE(picture.at(scale * f.x(9), scale * panel.y(0)), 0xff0000u) << "behind its end";
        const int mark = static_cast<int>(scale);
        EXPECT_GT(picture.marked(10 * mark, 180 * mark, 40 * mark, 280 * mark), 50 * mark) << "the ordinate's name";
    }
}

TEST(Png, HasTwoPixelsAUnitUnlessAsked) { EXPECT_EQ(Picture(plot::png(figure().svg())).width(), 2 * 720); }

TEST(Png, RefusesWhatIsNoSvg) {
    EXPECT_TRUE(plot::has_png());
    for (const char* text : {"", "no svg", "<svg"}) EXPECT_THROW(plot::png(text), InvalidArgument) << text;
}

#else

TEST(Png, SaysWhatIsMissing) {
    EXPECT_FALSE(plot::has_png());
    try {
        plot::png(figure().svg());
        FAIL();
    } catch (const InvalidArgument& e) {
        EXPECT_NE(std::string(e.what()).find("librsvg"), std::string::npos) << e.what();
    }
}

#endif

}  // namespace
}  // namespace quoin::test
