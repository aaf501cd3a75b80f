// ?copy: y := x, number by number in the order of the reference, and nothing else.

#include <omp.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

/// As many numbers of any bits: quiet and signalling NaN, Inf, both zeros and what is below the normal numbers.
template <class T>
std::vector<T> any_bits(Index count, unsigned seed) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    std::mt19937_64 random(seed);
    std::vector<T> v(count);
    for (T& number : v) {
        const Bits bits = static_cast<Bits>(random());
        std::memcpy(&number, &bits, sizeof bits);
    }
    return v;
}

/// The reference's loop.
template <class T>
void copy_in_order(Index n, const T* x, Index incx, T* y, Index incy) {
    Index ix = incx < 0 ? (1 - n) * incx : 0, iy = incy < 0 ? (1 - n) * incy : 0;
    for (Index i = 0; i < n; ++i, ix += incx, iy += incy) std::memcpy(y + iy, x + ix, sizeof(T));
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Numbers before and after a vector that must survive, as the numbers between its strides must.
constexpr Index margin = 70;
Index extent(Index n, Index inc) { return n > 0 ? (n - 1) * std::abs(inc) + 1 : 0; }

template <class Types>
class LapackCopy : public OverAllTypes<Types> {
protected:
    using typename OverAllTypes<Types>::T;
    using typename OverAllTypes<Types>::Int;

    void copy(Index n, const T* x, Index incx, T* y, Index incy) const {
        const Int n_ = static_cast<Int>(n), incx_ = static_cast<Int>(incx), incy_ = static_cast<Int>(incy);
        this->quoin.f.copy(&n_, x, &incx_, y, &incy_);
    }
};
TYPED_TEST_SUITE(LapackCopy, AllTypes);

TYPED_TEST(LapackCopy, EveryBitOfEverySignOfIncrement) {
    using T = typename TestFixture::T;
    const Index increments[] = {1, 3, -1, -3, 0};
    Index turn = 0;
    // the last three are long enough for threads, strided, contiguous in f64 and in f32
    for (const Index n : {-3, 0, 1, 2, 3, 5, 10, 50, 1000, (1 << 16) - 1, 1 << 16, 70001, (1 << 17) + 3}) {
        for (const Index incx : {1, 2, 7, -1, -2, -7, 0}) {
            for (const Index incy : in_turn(increments, turn++)) {
                const auto x = any_bits<T>(extent(n, incx) + 2 * margin, 1);
                const auto before = any_bits<T>(extent(n, incy) + 2 * margin, 2);
                auto wanted = before, y = before;
                copy_in_order(n, x.data() + margin, incx, wanted.data() + margin, incy);
                this->copy(n, x.data() + margin, incx, y.data() + margin, incy);
                EXPECT_TRUE(same_bytes(y, wanted)) << n << ", " << incx << ", " << incy;
            }
        }
    }
}

TYPED_TEST(LapackCopy, ColumnsOfARowMajorMatrixAndBack) {
    using T = typename TestFixture::T;
    const Index m = 70000, n = 5;
    const auto A = any_bits<T>(m * n, 3);
    auto columns = any_bits<T>(m * n, 4), back = any_bits<T>(m * n, 5);
    for (Index j = 0; j < n; ++j) this->copy(m, A.data() + j, n, columns.data() + j * m, 1);
    for (const Index i : {Index(0), m / 3, m - 1}) {
        for (Index j = 0; j < n; ++j) EXPECT_EQ(std::memcmp(&columns[j * m + i], &A[i * n + j], sizeof(T)), 0);
    }
    for (Index j = 0; j < n; ++j) this->copy(m, columns.data() + j * m, 1, back.data() + j, n);
    EXPECT_TRUE(same_bytes(back, A));
}

TYPED_TEST(LapackCopy, AnyNumberOfThreads) {
    using T = typename TestFixture::T;
    const Index n = 150001;
    const auto x = any_bits<T>(3 * n, 6);
    const int usual = omp_get_max_threads();
    // LLVM's OpenMP leaks its own records of a team that grows beyond four threads, in a program without Quoin too.
    for (const int threads : {1, 2, 3, 4}) {
        omp_set_num_threads(threads);
        for (const Index incx : {1, -3}) {
            auto y = any_bits<T>(n, 7), wanted = y;
            copy_in_order(n, x.data(), incx, wanted.data(), Index(-1));
            this->copy(n, x.data(), incx, y.data(), -1);
            EXPECT_TRUE(same_bytes(y, wanted)) << threads << " threads, incx " << incx;
        }
    }
    omp_set_num_threads(usual);
}

// Fortran forbids it, and programs that move a vector by a few places in its own memory do it all the same.
TYPED_TEST(LapackCopy, VectorsThatShareMemoryAreCopiedInOrder) {
    using T = typename TestFixture::T;
    const Index n = 140000;
    for (const Index shift : {-3, -1, 0, 1}) {
        for (const auto& [incx, incy] : {std::pair<Index, Index>{1, 1}, {2, 2}, {-1, -1}, {1, -1}}) {
            auto v = any_bits<T>(extent(n, 2) + 2 * margin, 8), wanted = v;
            copy_in_order(n, wanted.data() + margin, incx, wanted.data() + margin + shift, incy);
            this->copy(n, v.data() + margin, incx, v.data() + margin + shift, incy);
            EXPECT_TRUE(same_bytes(v, wanted)) << shift << ", " << incx << ", " << incy;
        }
    }
}

}  // namespace
}  // namespace quoin::test
