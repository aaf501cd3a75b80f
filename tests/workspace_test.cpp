// A plan's workspace is what its factorization takes of the heap beyond A.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/quoin.hpp"
#include "workspace_cases.hpp"

// a sanitizer has a heap of its own
#ifndef QUOIN_SANITIZED
namespace {

/// The blocks of at least a page that are allocated, by the bytes asked for: the heap itself would add what it keeps
/// for alignment.
struct Blocks {
    struct Block {
        void* data;
        std::size_t bytes;
    };
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    std::size_t count = 0, now = 0, most = 0;
    Block blocks[4096];

    void add(void* data, std::size_t bytes) {
        if (!data || bytes < 4096) return;
        while (busy.test_and_set()) {
        }
        if (count < std::size(blocks)) blocks[count++] = {data, bytes};
        most = std::max(most, now += bytes);
        busy.clear();
    }
    void remove(void* data) {
        while (busy.test_and_set()) {
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (blocks[i].data != data) continue;
            now -= blocks[i].bytes;
            blocks[i] = blocks[--count];
            break;
        }
        busy.clear();
    }
} allocated;

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* data);
void* malloc(std::size_t bytes) {
    void* const data = __libc_malloc(bytes);
    allocated.add(data, bytes);
    return data;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    void* const data = __libc_memalign(alignment, bytes);
    allocated.add(data, bytes);
    return data;
}
void free(void* data) {
    allocated.remove(data);
    __libc_free(data);
}
}

namespace quoin::test {
namespace {

template <class T>
class Workspace : public testing::Test {};
TYPED_TEST_SUITE(Workspace, Scalars);

TYPED_TEST(Workspace, IsWhatThePlanSays) {
    using T = TypeParam;
    // small matrices, and what the thread has in its caches
    constexpr double spare = 3 * 0x1p20;
    const Matrix<T> numbers = random_normal<T>(2048 * 2048, 1);
    for (const double aspect : aspects) {
        for (const WorkspaceCase& c : workspace_cases<Host>(2e6, aspect)) {
            Context<Host> ctx{1};
            const Plan plan = plan_qr<T>(ctx, c.m, c.n, c.options);
            Matrix<T> A(c.m, c.n);
            std::copy_n(numbers.data(), c.m * c.n, A.data());
            const std::size_t before = allocated.most = allocated.now;
            const QR<T, Host> f = qr(ctx, std::move(A), plan);
            const double taken = static_cast<double>(allocated.most - before);
            EXPECT_LE(taken, plan.workspace_bytes + spare) << c.name;
            EXPECT_LE(plan.workspace_bytes, 1.1 * taken + spare) << c.name;
        }
    }
}

}  // namespace
}  // namespace quoin::test
#endif
