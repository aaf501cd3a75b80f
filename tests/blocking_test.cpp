// The edges of every blocking: 1, b − 1, b and b + 1 rows and columns for the block sizes of the host, taken from where
// they are defined.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "host/cache_block.hpp"
#include "host/parallel.hpp"
#include "host/tuning.hpp"

namespace quoin::test {
namespace {

using Tuned = Tuning<Host>;

template <class T>
class Blocking : public testing::Test {
protected:
    Context<Host> ctx{1};  // any number gives the same bits, and small matrices wait for no other thread

    /// Q and R of every method that an m×n matrix of a small condition number has.
    void expect_q_and_r(Index m, Index n) {
        const Matrix<T> A = random_normal<T>(m, n, static_cast<std::uint64_t>(m + n));
        std::vector<Options> choices;
        for (const Method method : all_methods) {
            if (m >= 2 * n || !is_conditional(method)) choices.push_back(with(method, QForm::Explicit));
        }
        choices.push_back(with(Method::Auto, QForm::Reflectors));
        choices.push_back({.q = FullT{}});
        using enum Reorthogonalization;
        for (const MethodOptions& method : {MethodOptions(ModifiedGramSchmidt{.reorthogonalization = Always}),
                                            MethodOptions(ClassicalGramSchmidt{.reorthogonalization = Always})}) {
            if (m >= n) choices.push_back({.method = method, .q = QForm::Explicit});
        }
        const double bound = law * static_cast<double>(std::min(m, n)) * unit_roundoff<T>;
        // a sanitizer sees one access beyond an edge in any of the methods: a third of them at each shape, in turn
        const std::size_t stride = quick() ? 3 : 1;
        for (std::size_t c = shapes_++ % stride; c < choices.size(); c += stride) {
            const Options& options = choices[c];
            SCOPED_TRACE(case_name(m, n, options.method, options.q) + (options.q.full_t ? " one T" : ""));
            const QR<T> f = qr(ctx, A.view(), options);
            const Matrix<T> Q = f.form_q(ctx), R = f.r(ctx);
            EXPECT_LE(orthogonality<T>(ctx, Q.view()), bound);
            EXPECT_LE(residual<T>(ctx, A.view(), Q.view(), R.view()), bound);
            EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
        }
    }

private:
    std::size_t shapes_ = 0;
};
TYPED_TEST_SUITE(Blocking, Scalars);

std::set<Index> edges(std::initializer_list<Index> blocks) {
    std::set<Index> sizes{1};
    for (const Index b : blocks) sizes.insert({std::max<Index>(1, b - 1), b, b + 1});
    return sizes;
}

TYPED_TEST(Blocking, EdgesOfBlocksOfRows) {
    using T = TypeParam;
    for (const Index n : {1, 20}) {
        const Index chunk = host::RowChunks(1, 1).chunk_rows, block = host::block_rows<T>;
        for (const Index m : edges({static_cast<Index>(Tuned::tall_aspect * number(n)), chunk, 2 * chunk, block,
                                    2 * block, host::cache_block_rows<T>(n), Tuned::leaf_rows(0, n, scalar_kind<T>),
                                    2 * Tuned::leaf_rows(0, n, scalar_kind<T>),
                                    Tuned::reconstruct_rows(std::min(n, Tuned::panel_width(n)), scalar_kind<T>)})) {
            if (m >= n) this->expect_q_and_r(m, n);
        }
    }
    // blocks shorter than a chunk: of many columns
    const Index n = 4 * host::tile_cols;
    for (const Index m : edges({host::cache_block_rows<T>(n), 2 * host::cache_block_rows<T>(n)})) {
        if (m >= n) this->expect_q_and_r(m, n);
    }
}

// tile_cols is a multiple of the registers' tiles of every kernel set: all of their edges are here
TYPED_TEST(Blocking, EveryTileOfTheKernels) {
    for (Index n = 1; n <= host::tile_cols + 1; ++n) {
        this->expect_q_and_r(n, n);
        this->expect_q_and_r(2 * n + n * 5 % host::tile_cols, n);
        this->expect_q_and_r(n, n + n * 7 % host::tile_cols);
    }
}

TYPED_TEST(Blocking, EdgesOfBlocksOfColumns) {
    std::set<Index> sizes = edges({Tuned::base_width, Tuned::column_by_column(1000), Tuned::max_by_column,
                                   host::solve_width, host::tile_cols, Tuned::tree_width, Tuned::wy_block,
                                   Tuned::gram_schmidt_base, Tuned::gram_schmidt_width(Method::ModifiedGramSchmidt),
                                   Tuned::gram_schmidt_width(Method::ClassicalGramSchmidt)});
    // where the table changes its mind, and multiples of what it says
    for (Index n = 1; n < 256; ++n) {
        const auto table = [](Index n) { return std::pair(Tuned::panel_width(n), Tuned::inner_block(n)); };
        if (table(n) != table(n + 1)) sizes.insert({n, n + 1, n + 2});
        if (n % table(n).first == 0 && n <= 3 * table(n).first) sizes.insert({n - 1, n, n + 1});
    }
    for (const Index n : sizes) {
        this->expect_q_and_r(n + 1, n);
        this->expect_q_and_r(2 * n + 1, n);
        this->expect_q_and_r(n, n + 1);
        this->expect_q_and_r(Tuned::tall_aspect * n, n);
    }
}

}  // namespace
}  // namespace quoin::test
