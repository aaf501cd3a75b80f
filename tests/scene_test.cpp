// Tests of what `quoin rpca` is judged by: the synthetic scene, and the score of masks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "quoin/apps/robust_pca.hpp"
#include "quoin/error.hpp"
#include "video/mask_score.hpp"
#include "video/street_scene.hpp"
#include "video/synthetic_scene.hpp"

namespace quoin::test {
namespace {

using video::FrameFormat;
using video::MaskScore;
using video::StreetScene;
using video::SyntheticScene;
using Bytes = std::vector<std::uint8_t>;

struct Frame {
    Bytes pixels, mask;
    Frame(const video::Scene& scene, Index j)
        : pixels(static_cast<std::size_t>(scene.format().bytes())),
          mask(static_cast<std::size_t>(scene.format().width * scene.format().height), 7) {
        scene.frame(j, pixels, mask);
    }
};

TEST(SyntheticScene, IsTheSameInAnyOrder) {
    const FrameFormat format{96, 64, 3};
    const SyntheticScene one(format), two(format);
    const Frame late(one, 1000), early(one, 3), again(two, 3), later(two, 1000);
    EXPECT_EQ(early.pixels, again.pixels);
    EXPECT_EQ(early.mask, again.mask);
    EXPECT_EQ(late.pixels, later.pixels);
    EXPECT_NE(early.pixels, late.pixels);
}

TEST(SyntheticScene, ItsMasksAreExact) {
    const SyntheticScene scene({192, 144, 1});
    // From one frame to the next a pixel of the background changes by its noise, each of standard deviation 2.55 levels
    // and at most sqrt(3)·2 of them, and by a drift of less than 1 level; a walker's comes or goes by more in most
    // places.
    const double most = 2 * 2 * std::sqrt(3.0) * 2.55 + 2;
    const Frame before(scene, 10), after(scene, 11);
    Index covered = 0, changed = 0, came_or_went = 0;
    for (std::size_t i = 0; i < before.mask.size(); ++i) {
        ASSERT_TRUE(before.mask[i] == 0 || before.mask[i] == 255);
        covered += before.mask[i] != 0;
        const double change = std::abs(static_cast<double>(before.pixels[i]) - after.pixels[i]);
        if (before.mask[i] == 0 && after.mask[i] == 0) {
            EXPECT_LE(change, most);
        } else if (before.mask[i] != after.mask[i]) {
            ++came_or_went;
            changed += change > most;
        }
    }
    EXPECT_GT(covered, Index{192 * 144} / 50);
    EXPECT_LT(covered, Index{192 * 144} / 5);
    EXPECT_GT(came_or_went, 0);
    EXPECT_GT(2 * changed, came_or_went);
}

/// Beside the walkers, whose masks they leave as they are, each trouble changes what its name says.
TEST(SyntheticScene, ItsTroublesComeWhereAndWhenTheyShould) {
    const FrameFormat format{192, 144, 1};
    const SyntheticScene plain(format), noise(format, {.noise = true}), leaves(format, {.leaves = true}),
        light(format, {.light = true}), standing(format, {.standing = true});
    const auto changes = [](const Frame& a, const Frame& b) {
        std::vector<double> changes;
        for (std::size_t i = 0; i < a.pixels.size(); ++i)
            if (a.mask[i] == 0 && b.mask[i] == 0) changes.push_back(double{1} * a.pixels[i] - b.pixels[i]);
        return changes;
    };
    const auto deviation = [](const std::vector<double>& values) {
        double squares = 0;
        for (const double value : values) squares += value * value / static_cast<double>(values.size());
        return std::sqrt(squares);
    };
    const Frame at_20(plain, 20), at_60(plain, 60);
    EXPECT_NEAR(deviation(changes(Frame(noise, 20), at_20)), 255 * 0.02, 0.3) << "three times the same noise";
    EXPECT_EQ(Frame(noise, 20).mask, at_20.mask);

    const Frame still(leaves, 20), swaying(leaves, 24);
    EXPECT_EQ(still.mask, at_20.mask);
    const auto moved = changes(still, swaying);
    const auto share =
        static_cast<double>(std::count_if(moved.begin(), moved.end(), [](double c) { return std::abs(c) > 24; })) /
        static_cast<double>(moved.size());
    EXPECT_GT(share, 0.03);
    EXPECT_LT(share, 0.2);

    EXPECT_EQ(Frame(light, 20).pixels, at_20.pixels);
    const Frame dark(light, 60);
    double bright = 0, clouded = 0;
    for (std::size_t i = 0; i < dark.pixels.size(); ++i) bright += at_60.pixels[i], clouded += dark.pixels[i];
    EXPECT_NEAR(clouded / bright, 0.8, 0.01);
    EXPECT_EQ(Frame(light, 140).pixels, Frame(plain, 140).pixels);

    // what the one who stands covers beside the others is the same in frames 30 to 70, up to those who pass
    const auto added = [&](Index j) {
        const Frame with(standing, j), without(plain, j);
        Bytes added(with.mask.size());
        for (std::size_t i = 0; i < added.size(); ++i) added[i] = with.mask[i] != without.mask[i];
        return added;
    };
    const Bytes first = added(30), last = added(70), gone = added(100);
    Index both = 0, either = 0;
    for (std::size_t i = 0; i < first.size(); ++i) both += first[i] && last[i], either += first[i] || last[i];
    EXPECT_GT(2 * both, either);
    EXPECT_NE(gone, last);
}

TEST(StreetScene, HasNoNoiseAndExactMasks) {
    const StreetScene scene({160, 120, 1});
    const std::size_t pixels = 160 * 120;
    // the light stays for ten frames at a time: what does not move is the same in all of them
    for (Index first = 0; first < 100; first += 10) {
        std::vector<int> still(pixels, -1);
        Index covered = 0, hidden = 0;
        for (Index j = first; j < first + 10; ++j) {
            const Frame frame(scene, j);
            for (std::size_t i = 0; i < pixels; ++i) {
                ASSERT_TRUE(frame.mask[i] == 0 || frame.mask[i] == 255);
                if (frame.mask[i] != 0) continue;
                if (still[i] < 0) still[i] = frame.pixels[i];
                ASSERT_EQ(still[i], frame.pixels[i]) << "frame " << j << ", pixel " << i;
            }
        }
        for (Index j = first; j < first + 10; ++j) {
            const Frame frame(scene, j);
            for (std::size_t i = 0; i < pixels; ++i) {
                if (frame.mask[i] == 0 || still[i] < 0) continue;
                ++covered;
                hidden += std::abs(still[i] - frame.pixels[i]) < 16;
            }
        }
        EXPECT_GT(covered, static_cast<Index>(10 * pixels) / 50);
        EXPECT_LT(covered, static_cast<Index>(10 * pixels) / 5);
        EXPECT_LT(20 * hidden, covered) << "what moves is seen";
    }
    const Frame once(scene, 63), again(StreetScene({160, 120, 1}), 63);
    EXPECT_EQ(once.pixels, again.pixels);
}

/// `quoin demo` shows this.
TEST(StreetScene, IsTakenApartByRobustPca) {
    const StreetScene scene({192, 144, 1});
    const Index frames = 100, pixels = 192 * 144;
    Matrix<float> M(pixels, frames);
    for (Index j = 0; j < frames; ++j) {
        const Frame frame(scene, j);
        for (Index i = 0; i < pixels; ++i)
            M(i, j) = static_cast<float>(frame.pixels[static_cast<std::size_t>(i)]) / 255;
    }
    Context<Host> ctx;
    RobustPcaOptions<float> options;
    options.tolerance = 1e-5;  // of `quoin rpca`
    const RobustPca<float> f = robust_pca<float>(ctx, M.view(), options);
    EXPECT_EQ(f.last.rank, 3);
    MaskScore score;
    for (Index j = 0; j < frames; ++j) {
        Bytes mask(static_cast<std::size_t>(pixels));
        for (Index i = 0; i < pixels; ++i) mask[static_cast<std::size_t>(i)] = std::abs(f.S(i, j)) > 0.06 ? 255 : 0;
        score.add(mask, Frame(scene, j).mask);
    }
    EXPECT_GE(score.f(), 0.97);
    EXPECT_LE(static_cast<double>(f.last.nonzeros),
              1.5 * static_cast<double>(score.true_positives + score.false_negatives));
}

/// Sums of the pixels in a grid of 6×4 blocks, and how many pixels the mask has: of what figures are measured with, so
/// that they remain comparable. A pixel may round otherwise with another compiler.
void expect_fingerprint(const video::Scene& scene, Index j, const std::vector<Index>& sums, Index covered) {
    const Frame frame(scene, j);
    const Index width = scene.format().width, height = scene.format().height, channels = scene.format().channels;
    std::vector<Index> found(24);
    for (Index y = 0; y < height; ++y) {
        for (Index x = 0; x < width; ++x) {
            for (Index c = 0; c < channels; ++c)
                found[static_cast<std::size_t>(6 * (4 * y / height) + 6 * x / width)] +=
                    frame.pixels[static_cast<std::size_t>((y * width + x) * channels + c)];
        }
    }
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], sums[i], 3) << "frame " << j << ": " << testing::PrintToString(found);
    EXPECT_EQ(std::count(frame.mask.begin(), frame.mask.end(), 255), covered);
}

TEST(Scenes, AreThoseThatFiguresWereMeasuredWith) {
    const StreetScene street({192, 144, 1});
    const SyntheticScene synthetic({192, 144, 3});
    expect_fingerprint(street, 0,
                       {206786, 176193, 174184, 219836, 169453, 190289, 161588, 157664, 162282, 177864, 149865, 159760,
                        145766, 162020, 157031, 142629, 150966, 146931, 137933, 182073, 182562, 141021, 178120, 168841},
                       1873);
    expect_fingerprint(street, 137,
                       {206786, 176193, 174184, 219836, 169453, 190289, 162890, 161330, 164424, 171447, 149865, 167092,
                        146169, 158943, 150890, 157916, 150966, 141636, 152006, 182073, 151531, 163496, 178636, 182024},
                       1505);
    // cars on both lanes
    expect_fingerprint(street, 20,
                       {206786, 176193, 174184, 219836, 169453, 190289, 170700, 150562, 165544, 171789, 144931, 164981,
                        160608, 153379, 144599, 151301, 147406, 130486, 182611, 168663, 153980, 177719, 179168, 135628},
                       2654);
    expect_fingerprint(street, 60,
                       {152974, 130423, 128901, 162666, 125406, 140785, 126643, 119734, 120106, 119748, 111393, 118336,
                        122738, 108433, 118061, 115175, 111653, 119440, 125774, 100489, 135088, 134404, 104100, 123410},
                       2667);
    expect_fingerprint(synthetic, 0,
                       {482629, 478837, 419006, 345595, 514502, 518541, 498138, 444881, 356072, 327744, 492978, 553550,
                        401884, 385964, 374067, 494919, 533203, 490037, 433524, 384785, 408505, 478700, 477622, 417791},
                       1772);
    expect_fingerprint(synthetic, 137,
                       {577996, 421636, 398626, 359628, 414389, 459997, 502282, 448489, 365781, 366743, 442069, 471642,
                        444468, 369414, 360956, 349939, 476992, 463961, 417990, 368642, 405831, 517529, 448916, 389829},
                       2030);
}

TEST(Scenes, RefuseFramesTooSmall) {
    EXPECT_THROW(SyntheticScene({31, 64, 1}), InvalidArgument);
    EXPECT_THROW(StreetScene({31, 64, 1}), InvalidArgument);
    EXPECT_THROW(SyntheticScene({64, 31, 1}), InvalidArgument);
}

TEST(MaskScore, FollowsChangeDetectionNet) {
    const Bytes labels{0, 50, 255, 85, 170, 255, 0, 255, 42};
    MaskScore score;
    score.add(Bytes{255, 1, 255, 255, 255, 0, 0, 255, 255}, labels);
    EXPECT_EQ(score.true_positives, 2);
    EXPECT_EQ(score.false_positives, 2);
    EXPECT_EQ(score.false_negatives, 1);
    EXPECT_DOUBLE_EQ(score.precision(), 0.5);
    EXPECT_DOUBLE_EQ(score.recall(), 2.0 / 3);
    EXPECT_DOUBLE_EQ(score.f(), 4.0 / 7);
    score.add(Bytes(9, 0), labels);
    EXPECT_EQ(score.frames, 2);
    EXPECT_EQ(score.false_negatives, 4);
    EXPECT_TRUE(std::isnan(MaskScore().f()));
}

}  // namespace
}  // namespace quoin::test
