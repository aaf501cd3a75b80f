// The order in which blocks of Q₁ meet tiles of A₂ out of core: every pair of them once, and nothing in the place of
// what is still needed.

#include "algorithms/out_of_core/passing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/out_of_core/tiles.hpp"

namespace quoin::test {
namespace {

struct Case {
    Index n, tile, blocks, kept, stay;
};

class Passing : public testing::Test {
protected:
    /// Checks what step i may rely on: what leaves has been asked for, and what was computed has been waited for, up to
    /// step i − 2.
    static void expect_law(const Case& c) {
        SCOPED_TRACE(std::to_string(c.n) + " in tiles of " + std::to_string(c.tile) + " past " +
                     std::to_string(c.blocks) + ", " + std::to_string(c.kept) + " kept, " + std::to_string(c.stay) +
                     " stay");
        const std::vector<PassingStep> steps = passing_steps(c.n, c.tile, c.blocks, c.kept, c.stay);
        const Index count = static_cast<Index>(steps.size());
        std::vector<std::set<Index>> met(c.n);  // of each column of A₂: blocks
        std::vector<Index> there(c.tile, -1),
            left(c.tile, -2);  // of each place of the tile: its column, and where one left
        std::vector<Index> in_place(passing_places, -1), last_use(passing_places, -2);
        for (Index b = 0; b < c.kept; ++b) in_place[b] = b;
        for (Index i = 0; i < count; ++i) {
            const PassingStep& step = steps[i];
            const Index place = step.block % passing_places;
            if (step.columns.size() == 0) {
                EXPECT_FALSE(step.brings || step.arrives || step.leaves.size() > 0);
                continue;
            }
            if (step.brings) {
                EXPECT_LE(last_use[place], i - 2) << "step " << i;
                EXPECT_NE(in_place[place], step.block) << "it is there";
                in_place[place] = step.block;
            }
            ASSERT_EQ(in_place[place], step.block) << "step " << i;
            last_use[place] = i;
            for (Index at = step.columns.begin; at < step.columns.end; ++at) {
                const Index j = step.tile * c.tile + at;
                ASSERT_LT(at, c.tile);
                ASSERT_LT(j, c.n);
                EXPECT_EQ(step.arrives, met[j].empty()) << "column " << j;
                EXPECT_TRUE(met[j].insert(step.block).second) << "column " << j << " and block " << step.block;
                if (step.arrives) {
                    EXPECT_EQ(there[at], -1) << "column " << j;
                    EXPECT_LE(left[at], i - 2) << "column " << j;
                    there[at] = j;
                }
                EXPECT_EQ(there[at], j);
                const bool done = static_cast<Index>(met[j].size()) == c.blocks, leaves = done && j >= c.stay;
                EXPECT_EQ(step.leaves.begin <= at && at < step.leaves.end, leaves) << "column " << j;
                if (!leaves) continue;
                there[at] = -1;
                left[at] = i;
            }
        }
        for (Index j = 0; j < c.n; ++j) EXPECT_EQ(static_cast<Index>(met[j].size()), c.blocks) << "column " << j;
        for (Index at = 0; at < c.tile; ++at) EXPECT_EQ(there[at], at < c.stay ? at : -1) << "column " << at;
    }
};

TEST_F(Passing, MeetsEveryPairOnceAndOverwritesNothing) {
    for (const Index n : {1, 2, 7, 8, 9, 16, 17, 63, 64, 100}) {
        for (const Index tile : {1, 2, 3, 8, 9, 15, 16, 40, 100}) {
            for (const Index blocks : {1, 2, 3, 4, 5, 11}) {
                for (Index kept = 0; kept <= std::min(blocks, passing_places); ++kept) {
                    for (const Index stay : {Index(0), Index(1), tile / 2, tile}) {
                        if (tile <= n) expect_law({n, tile, blocks, kept, stay});
                    }
                }
            }
        }
    }
}

TEST_F(Passing, BringsTheNextTileWhileOneLeaves) {
    constexpr Index parts = CommonTuning::passing_parts;
    // two tiles in several parts past 9 blocks, of which the last three stay
    const std::vector<PassingStep> steps = passing_steps(128, 64, 9, 3, 0);
    std::set<Index> arrived, left, met_both;
    Index brought = 0;
    for (const PassingStep& step : steps) {
        brought += step.brings;
        EXPECT_FALSE(step.brings && !left.empty() && left.size() < parts) << "three do for both tiles";
        if (step.tile == 1 && step.leaves.size() > 0) left.insert(step.columns.begin);
        if (step.tile == 0 && step.arrives && left.size() < parts) arrived.insert(step.columns.begin);
        if (step.tile == 0 && step.block == 7 && left.size() < parts) met_both.insert(step.columns.begin);
    }
    EXPECT_EQ(arrived.size(), parts - 3) << "two parts behind";
    EXPECT_EQ(met_both, arrived);
    EXPECT_EQ(brought, 2 * 9 - 3 - 3);
}

/// Blocks of Q₁ that are made of the leaf, from right to left: nothing is written where something is still to be read.
TEST_F(Passing, KeepsBlocksWhereNothingIsStillRead) {
    std::map<Index, int> cases;  // by the number of blocks kept
    int leaf_passes = 0;
    for (const Index m : {256, 257, 1000, 17001, 131072}) {
        for (const Index leaf : {8, 37, 256, 1000, 8192}) {
            for (const Index p : {Index(1), leaf / 2, 2 * leaf, 20 * leaf}) {
                for (const Index leaves : {1, 2, 3, 20}) {
                    for (const bool halves : {false, true}) {
                        for (const double share : {0.5, 0.7, 0.85, 0.99}) {
                            const double of_leaf = static_cast<double>(m * leaf + leaf * leaf);
                            const Tiles tiles{
                                m,     leaves * leaf + p,
                                leaf,  std::max(static_cast<Index>(of_leaf / share), Tiles::min_elements(m, leaf)),
                                false, halves};
                            const Tiles::Passing sizes = tiles.passing_q(leaves * leaf, p);
                            const Index whole = leaves == 1 ? (leaf + sizes.step - 1) / sizes.step : leaf / sizes.step;
                            ASSERT_LE(sizes.kept, std::min(passing_places, whole));
                            if (!tiles.passes_q(leaves * leaf, p)) continue;
                            ASSERT_GE(tiles.elements, passing_places * (sizes.place + sizes.step * sizes.columns) +
                                                          m * (sizes.columns + 2 * sizes.piece));
                            leaf_passes += leaves == 1;
                            ++cases[sizes.kept];
                            for (Index b = 0; b < sizes.kept; ++b) {
                                ASSERT_GE(tiles.elements - (b + 1) * sizes.place, (leaf - b * sizes.step) * m)
                                    << m << " rows, leaves of " << leaf << ", block " << b;
                            }
                        }
                    }
                }
            }
        }
    }
    for (Index kept = 0; kept <= passing_places; ++kept) EXPECT_GT(cases[kept], 0) << kept;
    EXPECT_GT(leaf_passes, 0);
}

}  // namespace
}  // namespace quoin::test
