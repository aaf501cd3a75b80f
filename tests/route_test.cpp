#include <gtest/gtest.h>

#include <cmath>

#include "checks.hpp"
#include "quoin/plan_fields.hpp"

namespace quoin::test {

namespace {

template <class T>
class RouteOf : public testing::Test {
protected:
    Context<Host> ctx{2};

    RoutePlan route(Index m, Index n, RouteOptions options) { return plan_route<T>(ctx, m, n, options); }
};
TYPED_TEST_SUITE(RouteOf, Scalars);

const RouteOptions works[] = {{},
                              {.verify = true},
                              {.options = {.q = FullT{.keep_s = true}}},
                              {.files = FileOptions{}},
                              {.options = {.q = QForm::None}, .files = FileOptions{.want_q = false}},
                              {.options = {.method = Method::ClassicalGramSchmidt}, .files = FileOptions{}},
                              {.work = Work::LeastSquares, .right_hand_sides = 3},
                              {.options = {.method = Method::BlockedHouseholder}, .work = Work::LeastSquares},
                              {.work = Work::SVD},
                              {.work = Work::SingularValues}};
constexpr std::pair<Index, Index> route_shapes[] = {{20000, 20}, {600, 600}, {30, 900}};

/// The smallest cap with which a route fits is `min_bytes`: one byte less is refused, and names that number again.
TYPED_TEST(RouteOf, TheLeastMemoryIsEnoughAndOneByteLessIsNot) {
    for (const auto& [m, n] : route_shapes)
        for (RouteOptions options : works) {
            if (m < n && options.options.method == Method::ClassicalGramSchmidt) continue;
            for (const double reader : {0.0, 1e6}) {
                SCOPED_TRACE(testing::Message() << m << " x " << n << ", work " << to_string(options.work));
                options.reader_bytes = options.files ? 0 : reader;
                options.memory = 0;
                const RoutePlan none = this->route(m, n, options);
                EXPECT_FALSE(none.fits());
                options.memory = none.min_bytes;
                EXPECT_TRUE(this->route(m, n, options).fits());
                options.memory = none.min_bytes - 1;
                const RoutePlan refused = this->route(m, n, options);
                EXPECT_FALSE(refused.fits());
                EXPECT_EQ(refused.min_bytes, none.min_bytes);
            }
        }
}

TYPED_TEST(RouteOf, MemoryIsTakenBeforeBlocksAndBlocksBeforeFiles) {
    for (const auto& [m, n] : route_shapes)
        for (RouteOptions options : works) {
            if (m < n && options.options.method == Method::ClassicalGramSchmidt) continue;
            SCOPED_TRACE(testing::Message() << m << " x " << n << ", work " << to_string(options.work));
            const RoutePlan all = this->route(m, n, options);
            EXPECT_STREQ(all.name(), "memory");
            options.memory = all.memory_bytes;
            EXPECT_STREQ(this->route(m, n, options).name(), "memory");
            options.memory = all.memory_bytes - 1;
            const bool automatic = options.options.method == Method::Auto;
            const bool streams = m > n && automatic && options.work != Work::Factor && options.work != Work::SVD;
            const bool files = options.files && automatic;
            EXPECT_STREQ(this->route(m, n, options).name(), streams ? "row-blocks" : files ? "files" : "memory");
        }
}

/// A block of a stream is as long as memory allows.
TYPED_TEST(RouteOf, BlocksFillTheMemory) {
    const double s = sizeof(TypeParam), m = 20000, width = 23;
    RouteOptions options{.work = Work::LeastSquares, .right_hand_sides = 3};
    for (const double memory : {1.0, 0.1}) {
        options.memory = 400000 * s * memory;
        const RoutePlan route = this->route(20000, 20, options);
        ASSERT_STREQ(route.name(), "row-blocks");
        const auto& plan = std::get<StreamPlan>(route.by);
        const double row = route.memory_bytes - 8 * s * width * width;  // of all rows of a block
        EXPECT_LE(route.memory_bytes, options.memory);
        EXPECT_GT(route.memory_bytes + row / static_cast<double>(plan.blocks.block_rows), options.memory);
        EXPECT_EQ(plan.blocks.count(), std::ceil(m / static_cast<double>(plan.blocks.block_rows)));
        EXPECT_EQ(plan.bytes_in, s * m * width);
    }
}

/// A route from file to file has the plan that FileQR makes of its options.
TYPED_TEST(RouteOf, AFileRouteIsFileQrsPlan) {
    RouteOptions options{.memory = 2e6, .files = FileOptions{.second_pass = SecondPass::Recomputed}};
    const RoutePlan route = this->route(30000, 30, options);
    const auto& [files, plan] = std::get<FilesRoute>(route.by);
    EXPECT_EQ(files.memory, 2e6);
    EXPECT_EQ(files.second_pass, SecondPass::Recomputed);
    EXPECT_EQ(to_string(plan), to_string(plan_file_qr<TypeParam>(this->ctx, 30000, 30, files)));
    EXPECT_EQ(to_string(route), to_string(plan));
    EXPECT_EQ(route.memory_bytes, plan.memory_bytes);
}

}  // namespace

}  // namespace quoin::test
