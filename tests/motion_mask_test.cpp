// Masks of what moves: the noise of each pixel, and each step from residuals to a mask.

#include "video/motion_mask.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "quoin/matrix.hpp"
#include "video/noise_level.hpp"
#include "video/window_sum.hpp"

namespace quoin::test {
namespace {

using namespace quoin::video;
using Bytes = std::vector<std::uint8_t>;

/// Residuals of one frame, 0 but where something is drawn, and the mask that they give.
struct Picture {
    FrameFormat format;
    std::vector<float> m, noise;
    explicit Picture(FrameFormat f)
        : format(f), m(static_cast<std::size_t>(f.bytes())), noise(static_cast<std::size_t>(f.bytes())) {}

    Picture& draw(Index x0, Index y0, Index x1, Index y1, float value, Index channel = 0) {
        for (Index y = y0; y < y1; ++y) {
            for (Index x = x0; x < x1; ++x)
                m[static_cast<std::size_t>((y * format.width + x) * format.channels + channel)] = value;
        }
        return *this;
    }
    Bytes mask(double threshold = 0.06) const {
        Bytes mask(static_cast<std::size_t>(format.width * format.height), 7);
        set_motion_mask<float>(format, m, noise, threshold, mask);
        return mask;
    }
};

/// The pixels [x0, x1)×[y0, y1) without those that most of their 5×5 neighbours lie outside of: three at each corner.
Bytes rectangle(FrameFormat format, Index x0, Index y0, Index x1, Index y1) {
    Bytes mask(static_cast<std::size_t>(format.width * format.height));
    for (Index y = y0; y < y1; ++y) {
        for (Index x = x0; x < x1; ++x) {
            const Index from_side = std::min(x - x0, x1 - 1 - x), from_end = std::min(y - y0, y1 - 1 - y);
            mask[static_cast<std::size_t>(y * format.width + x)] =
                from_side + from_end >= 2 || (from_side == 1 && from_end == 1) ? 255 : 0;
        }
    }
    return mask;
}

Index count(const Bytes& mask) { return std::count(mask.begin(), mask.end(), 255); }

TEST(MotionMask, IsWhatTheMajorityOfNeighboursMakesOfARectangle) {
    // 5×5 windows about a pixel next to a corner have 3·3, 3·4 = 12 and 4·4 pixels of it, of which 13 are most
    const FrameFormat format{60, 40, 1};
    const Bytes found = Picture(format).draw(10, 12, 30, 25, 0.2f).draw(50, 20, 52, 22, 0.9f).mask();
    EXPECT_EQ(found, rectangle(format, 10, 12, 30, 25));
}

TEST(MotionMask, GrowsFromWhatIsCertain) {
    const FrameFormat format{80, 40, 1};
    // without noise the unit is half the threshold: 0.05 is above 1.5 of it and below 3
    EXPECT_EQ(count(Picture(format).draw(10, 10, 40, 20, 0.05f).mask()), 0);
    EXPECT_EQ(Picture(format).draw(10, 10, 40, 20, 0.05f).draw(40, 10, 60, 20, -0.14f).mask(),
              rectangle(format, 10, 10, 60, 20));
    EXPECT_EQ(count(Picture(format).draw(10, 10, 40, 20, 0.044f).draw(40, 10, 60, 20, -0.2f).mask()),
              count(rectangle(format, 40, 10, 60, 20)));
    EXPECT_EQ(count(Picture(format).draw(10, 10, 40, 20, 0.2f).mask(0.2)), 0) << "the threshold";
}

TEST(MotionMask, EndsWhereABlurredEdgeHasHalfOfItsHeight) {
    const FrameFormat format{60, 40, 1};
    for (const float share : {0.1f, 0.25f, 0.4f}) {
        for (const float height : {0.2f, 0.4f, 0.9f}) {
            const float outside = share * height, inside = (1 - share) * height;
            const Bytes found = Picture(format)
                                    .draw(11, 12, 31, 25, outside)
                                    .draw(12, 12, 30, 25, inside)
                                    .draw(13, 12, 29, 25, height)
                                    .mask();
            // what noise may have added to the largest z decides for a weak edge
            if (outside < (inside - 1.5f * 0.03f) / 2 || outside < 1.5f * 0.03f) {
                EXPECT_EQ(found, rectangle(format, 12, 12, 30, 25)) << share << " of " << height;
            } else {
                EXPECT_EQ(found, rectangle(format, 11, 12, 31, 25)) << share << " of " << height;
            }
        }
    }
}

TEST(MotionMask, FillsHolesOfAHundredthOfTheFrame) {
    const FrameFormat format{100, 50, 1};  // 50 pixels
    const auto ring = [&](Index hole, Index x) {
        return Picture(format).draw(x, 10, x + 30, 40, 0.3f).draw(x + 10, 20, x + 10 + hole, 27, 0).mask();
    };
    EXPECT_EQ(ring(7, 20), rectangle(format, 20, 10, 50, 40)) << "49 pixels, of which the votes leave fewer";
    EXPECT_LT(count(ring(9, 20)), count(rectangle(format, 20, 10, 50, 40)));
    const Bytes bay = Picture(format).draw(0, 10, 30, 40, 0.3f).draw(0, 20, 7, 27, 0).mask();
    EXPECT_EQ(bay[23 * 100 + 2], 0) << "open to the side of the frame";
}

TEST(MotionMask, NoiseRaisesItsOwnThreshold) {
    const FrameFormat format{60, 40, 1};
    Picture picture(format);
    picture.draw(10, 10, 30, 20, 0.3f);
    std::fill(picture.noise.begin(), picture.noise.end(), 0.09f);
    EXPECT_EQ(picture.mask(), rectangle(format, 10, 10, 30, 20));
    std::fill(picture.noise.begin(), picture.noise.end(), 0.11f);
    EXPECT_EQ(count(picture.mask()), 0);
}

TEST(MotionMask, ChannelsAddUp) {
    const FrameFormat format{60, 40, 3};
    const float one = 0.03f * 3.5f;  // below the first bound of three channels; two of them are √2 times it
    EXPECT_EQ(count(Picture(format).draw(10, 10, 30, 20, one, 2).mask()), 0);
    EXPECT_EQ(Picture(format).draw(10, 10, 30, 20, one, 2).draw(10, 10, 30, 20, -one, 0).mask(),
              rectangle(format, 10, 10, 30, 20));
}

/// The noise of the residuals M − L.
template <class T>
std::vector<float> noise_of(const FrameFormat& format, MatrixView<const T> M, MatrixView<const T> L) {
    return noise_levels<T>(format, M.cols, [&](Range rows, MatrixView<T> R) {
        for (Index j = 0; j < M.cols; ++j) {
            for (Index i = 0; i < R.rows; ++i) R(i, j) = M(rows.begin + i, j) - L(rows.begin + i, j);
        }
    });
}

template <class T>
class NoiseLevels : public testing::Test {};
TYPED_TEST_SUITE(NoiseLevels, Scalars);

/// The deviations of 400 frames of normal noise; of a pixel of a street, which cars cover in 40% of the frames, for 16
/// frames each; and of one that a leaf covers and uncovers.
TYPED_TEST(NoiseLevels, AreTheDeviationsOfNoiseAndOfWhatRecurs) {
    using T = TypeParam;
    const FrameFormat format{24, 6, 1};
    const Index frames = 400;
    Matrix<T> M(format.bytes(), frames), L(format.bytes(), frames);
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    for (Index j = 0; j < frames; ++j) {
        for (Index i = 0; i < format.bytes(); ++i) {
            const Index third = i % 24 / 8;
            const double moving = third == 1 && j % 40 < 16 ? normal(random) : third == 2 && j % 6 == 0 ? 0.5 : 0;
            L(i, j) = static_cast<T>(0.01 * static_cast<double>(i));
            M(i, j) = static_cast<T>(0.01 * static_cast<double>(i) + 0.02 * normal(random) + moving);
        }
    }
    const std::vector<float> levels = noise_of<T>(format, M.view(), L.view());
    ASSERT_EQ(levels.size(), 24u * 6u);
    for (Index y = 0; y < 6; ++y) {
        const auto level = [&](Index x) { return static_cast<double>(levels[static_cast<std::size_t>(24 * y + x)]); };
        // of 25 pixels with 66 ranges each the 40% quantile deviates by 1%
        EXPECT_NEAR(level(3) / 0.02, 1, 0.05);
        // 19 of 40 ranges are without a car: 40% of all are 84% of them, up to 3.4 deviations and not 2.26
        EXPECT_NEAR(level(12) / 0.02, 1.5, 0.15) << "cars";
        EXPECT_GT(level(21), 0.2) << "leaves";
    }
}

TYPED_TEST(NoiseLevels, AreZeroWithoutFramesToCompare) {
    using T = TypeParam;
    const FrameFormat format{3, 2, 3};
    Matrix<T> M(format.bytes(), 1);
    std::fill_n(M.data(), format.bytes(), T(0.5));
    EXPECT_EQ(noise_of<T>(format, M.view(), M.view()), std::vector<float>(18));
    EXPECT_EQ(noise_of<T>(format, M.view().col_block({0, 0}), M.view().col_block({0, 0})), std::vector<float>(18));
}

/// Returns the pixels of a field that are connected to a seed, by sides or by corners too.
Bytes connected(const FrameFormat& format, const Bytes& field, Bytes seeds, bool corners) {
    for (std::size_t i = 0; i < field.size(); ++i) seeds[i] = seeds[i] && field[i];
    for (bool grows = true; grows;) {
        grows = false;
        for (Index i = 0; i < format.bytes(); ++i) {
            if (!field[static_cast<std::size_t>(i)] || seeds[static_cast<std::size_t>(i)]) continue;
            for (Index k = 0; k < 9; ++k) {
                const Index x = i % format.width + k % 3 - 1, y = i / format.width + k / 3 - 1;
                if ((k % 2 == 0 && !corners) || x < 0 || x >= format.width || y < 0 || y >= format.height) continue;
                if (!seeds[static_cast<std::size_t>(y * format.width + x)]) continue;
                seeds[static_cast<std::size_t>(i)] = 1;
                grows = true;
                break;
            }
        }
    }
    return seeds;
}

/// A mask by its definition, pixel by pixel.
template <class T>
Bytes plain_mask(const FrameFormat& format, const std::vector<T>& r, const std::vector<float>& noise,
                 double threshold) {
    const FrameFormat grey{format.width, format.height, 1};
    // f(k) for each pixel k of the window about pixel i
    const auto about = [&](Index i, Index radius, const auto& f) {
        for (Index y = i / format.width - radius; y <= i / format.width + radius; ++y) {
            for (Index x = i % format.width - radius; x <= i % format.width + radius; ++x) {
                if (0 <= x && x < format.width && 0 <= y && y < format.height) f(y * format.width + x);
            }
        }
    };
    std::vector<double> z(static_cast<std::size_t>(grey.bytes()));
    for (std::size_t i = 0; i < r.size(); ++i) {
        z[i / static_cast<std::size_t>(format.channels)] +=
            std::pow(static_cast<double>(r[i]) / std::max(static_cast<double>(noise[i]), threshold / 2), 2);
    }
    for (double& value : z) value = std::sqrt(value);
    const double grows = format.channels == 3 ? 2.36 : 1.5, starts = format.channels == 3 ? 3.76 : 3;
    Bytes inside(z.size()), certain(z.size());
    for (Index i = 0; i < grey.bytes(); ++i) {
        double largest = 0;
        Index below = 0;
        about(i, 1, [&](Index k) {
            largest = std::max(largest, z[static_cast<std::size_t>(k)]);
            below += z[static_cast<std::size_t>(k)] <= grows;
        });
        const auto at = static_cast<std::size_t>(i);
        inside[at] = z[at] > grows && (below < 3 || z[at] > (largest - grows) / 2);
        certain[at] = z[at] > starts;
    }
    const auto majority = [&](const Bytes& votes) {
        Bytes won(votes.size());
        for (Index i = 0; i < grey.bytes(); ++i) {
            Index above = 0, pixels = 0;
            about(i, 2, [&](Index k) {
                above += votes[static_cast<std::size_t>(k)];
                ++pixels;
            });
            won[static_cast<std::size_t>(i)] = 2 * above > pixels;
        }
        return won;
    };
    Bytes mask = connected(grey, majority(inside), majority(certain), true);
    Bytes background(mask.size()), sides(mask.size());
    for (Index i = 0; i < grey.bytes(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const Index x = i % format.width, y = i / format.width;
        background[at] = !mask[at];
        sides[at] = x == 0 || y == 0 || x == format.width - 1 || y == format.height - 1;
    }
    const Bytes outside = connected(grey, background, sides, false);
    for (std::size_t i = 0; i < mask.size(); ++i) {
        if (outside[i] || !background[i]) continue;
        Bytes seed(mask.size());
        seed[i] = 1;
        const Bytes hole = connected(grey, background, seed, false);
        mask[i] = std::count(hole.begin(), hole.end(), 1) <= grey.bytes() / 100;
    }
    for (std::uint8_t& pixel : mask) pixel = pixel ? 255 : 0;
    return mask;
}

template <class T>
void expect_plain_mask(const FrameFormat& format) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<T> r(static_cast<std::size_t>(format.bytes()));
    std::vector<float> noise(r.size());
    for (Index i = 0; i < format.bytes(); ++i) {
        const Index x = i / format.channels % format.width, y = i / format.channels / format.width;
        const auto at = static_cast<std::size_t>(i);
        noise[at] = 0.04f * (1 + std::abs(normal(random)));
        // blocks of 7x6 pixels with much, little and no movement
        r[at] = static_cast<T>(noise[at] * normal(random)) * static_cast<T>(1 + 3 * ((x / 7 + y / 6) % 3));
    }
    Bytes mask(static_cast<std::size_t>(format.width * format.height), 7);
    set_motion_mask<T>(format, r, noise, 0.06, mask);
    EXPECT_EQ(mask, plain_mask(format, r, noise, 0.06))
        << format.width << 'x' << format.height << 'x' << format.channels;
}

TEST(MotionMask, IsThatOfItsDefinition) {
    for (const Index channels : {1, 3}) {
        for (const auto& [width, height] :
             {std::pair<Index, Index>{1, 1}, {2, 3}, {3, 2}, {5, 40}, {150, 4}, {67, 40}}) {
            expect_plain_mask<float>({width, height, channels});
            expect_plain_mask<double>({width, height, channels});
        }
    }
}

TEST(WindowSums, HaveTheChannelsApartAndEndAtTheSides) {
    const FrameFormat format{4, 3, 3};
    std::vector<float> entries(static_cast<std::size_t>(format.bytes()));
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<float>(i * i % 17);
    const auto set_row = [&](Index y, float* row) { std::copy_n(entries.data() + y * 12, 12, row); };
    std::vector<float> sums(entries.size());
    for_window_sums<float, 1>(format, set_row, [&](Index y, std::span<const float> row) {
        std::copy(row.begin(), row.end(), sums.begin() + y * 12);
    });
    std::vector<float> means(entries.size()), noise(entries.size());
    set_window_means<float, 1>(
        format, set_row, [](float mean) { return mean; }, means);
    smooth_noise(format, std::vector<float>(entries.size(), 0.02f), noise);
    for (Index i = 0; i < format.bytes(); ++i) {
        float sum = 0, pixels = 0;
        for (Index k = 0; k < format.bytes(); ++k) {
            const bool near = std::abs(i / 3 % 4 - k / 3 % 4) <= 1 && std::abs(i / 12 - k / 12) <= 1 && i % 3 == k % 3;
            sum += near ? entries[static_cast<std::size_t>(k)] : 0;
            pixels += near;
        }
        EXPECT_EQ(sums[static_cast<std::size_t>(i)], sum) << i;
        EXPECT_FLOAT_EQ(means[static_cast<std::size_t>(i)], sum / pixels) << i;
        EXPECT_FLOAT_EQ(noise[static_cast<std::size_t>(i)], 0.02f) << i;
    }
}

}  // namespace
}  // namespace quoin::test
