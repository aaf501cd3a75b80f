// Tests of what `quoin rpca` is judged by: the synthetic scene, and the score of masks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "quoin/error.hpp"
#include "video/mask_score.hpp"
#include "video/synthetic_scene.hpp"

namespace quoin::test {
namespace {

using video::FrameFormat;
using video::MaskScore;
using video::SyntheticScene;
using Bytes = std::vector<std::uint8_t>;

struct Frame {
    Bytes pixels, mask;
    Frame(const SyntheticScene& scene, Index j)
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

/// Sums of the pixels in a grid of 6×4 blocks, and how many pixels the mask has: of what figures are measured with, so
/// that they remain comparable. A pixel may round otherwise with another compiler.
void expect_fingerprint(const SyntheticScene& scene, Index j, const std::vector<Index>& sums, Index covered) {
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
    const SyntheticScene synthetic({192, 144, 3});
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
