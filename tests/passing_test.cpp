// The order in which blocks of Q₁ meet tiles of A₂ out of core: every pair of them once, and nothing in the place of what is still
// needed.

#include "algorithms/out_of_core/passing.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace quoin::test {
namespace {

struct Case {
    Index n, tile, blocks;
};

class Passing : public testing::Test {
protected:
    /// What step i may rely on: what leaves has been asked for, and what was computed has been waited for, up to step i − 2.
    static void expect_law(const Case& c) {
        SCOPED_TRACE(std::to_string(c.n) + " in tiles of " + std::to_string(c.tile) + " past " +
                     std::to_string(c.blocks));
        const std::vector<PassingStep> steps = passing_steps(c.n, c.tile, c.blocks);
        const Index count = static_cast<Index>(steps.size());
        std::vector<Index> met(c.n, 0), arrived(c.n, -1), left(c.n, -1);  // of each column of A₂: blocks, and steps
        std::map<Index, Index> brought, last_use;                         // of each q
        Index next_q = 0;
        for (Index i = 0; i < count; ++i) {
            const PassingStep& step = steps[i];
            for (Index q = step.brings.begin; q < step.brings.end; ++q) {
                EXPECT_EQ(q, next_q++);
                brought[q] = i;
                if (q >= passing_places) {
                    EXPECT_LE(last_use.at(q - passing_places), i - 2) << "step " << i;
                }
            }
            if (step.columns.size() == 0) {
                EXPECT_FALSE(step.arrives || step.leaves);
                continue;
            }
            EXPECT_EQ(step.q, step.tile * c.blocks + step.block);
            EXPECT_EQ(step.arrives, step.block == 0);
            EXPECT_EQ(step.leaves, step.block + 1 == c.blocks);
            ASSERT_TRUE(brought.count(step.q)) << "step " << i;
            last_use[step.q] = i;
            for (Index at = step.columns.begin; at < step.columns.end; ++at) {
                const Index j = step.tile * c.tile + at;
                ASSERT_LT(at, c.tile);
                ASSERT_LT(j, c.n);
                EXPECT_EQ(met[j]++, step.block) << "column " << j;
                if (step.arrives) {
                    arrived[j] = i;
                    if (step.tile > 0) {
                        EXPECT_GE(left[j - c.tile], 0);
                        EXPECT_LE(left[j - c.tile], i - 2) << "column " << j;
                    }
                }
                EXPECT_GE(arrived[j], 0);
                if (step.leaves) left[j] = i;
            }
        }
        EXPECT_EQ(next_q, static_cast<Index>(last_use.size()));
        for (Index j = 0; j < c.n; ++j) EXPECT_EQ(met[j], c.blocks) << "column " << j;
    }
};

TEST_F(Passing, MeetsEveryPairOnceAndOverwritesNothing) {
    for (const Index n : {1, 2, 7, 8, 9, 16, 17, 63, 64, 100}) {
        for (const Index tile : {1, 2, 3, 8, 9, 15, 16, 40, 100}) {
            for (const Index blocks : {1, 2, 3, 4, 5, 11}) {
                if (tile <= n) expect_law({n, tile, blocks});
            }
        }
    }
}

TEST_F(Passing, BringsTheNextTileWhileOneLeaves) {
    // two tiles of 8 parts past 4 blocks
    const std::vector<PassingStep> steps = passing_steps(128, 64, 4);
    Index first_arrival = -1, last_leave = -1;
    for (Index i = 0; i < static_cast<Index>(steps.size()); ++i) {
        if (steps[i].tile == 1 && steps[i].arrives && first_arrival < 0) first_arrival = i;
        if (steps[i].tile == 0 && steps[i].leaves) last_leave = i;
    }
    EXPECT_EQ(last_leave - first_arrival, 9);
}

}  // namespace
}  // namespace quoin::test
