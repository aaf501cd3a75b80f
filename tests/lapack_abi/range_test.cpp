// Columns whose norms are near the overflow threshold, in shapes that Quoin passes on to the system's LAPACK otherwise.

#include <cmath>
#include <limits>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

template <class T>
class LapackRange : public testing::Test {
protected:
    using Library = Lapack<T, std::int32_t>;
    const Library quoin{fortran::quoin_library(), fortran::Owner::Quoin};
    const Library system{fortran::system_library(), fortran::Owner::System};
};
TYPED_TEST_SUITE(LapackRange, Precisions);

TYPED_TEST(LapackRange, NormsUpToTheLargestNumberAreFactored) {
    using T = TypeParam;
    using Library = typename LapackRange<T>::Library;
    // 2^e times a norm below 1 is finite
    constexpr int e = std::numeric_limits<T>::max_exponent;
    const auto times = [](Matrix<T>& A, int exponent) {
        for (Index j = 0; j < A.cols(); ++j) {
            for (Index i = 0; i < A.rows(); ++i) A(i, j) = std::ldexp(A(i, j), exponent);
        }
    };
    for (const auto& [rows, cols] : {std::pair<Index, Index>{6, 4}, {40, 3}, {90, 12}, {4, 6}}) {
        const Index m = rows, n = cols;
        SCOPED_TRACE(testing::Message() << m << " x " << n);
        Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n, 5);
        for (Index j = 0; j < n; ++j) {
            const auto norm = frobenius_norm<T>(A.view().col_block({j, j + 1}));
            for (Index i = 0; i < m; ++i) A(i, j) = static_cast<T>(0.9 * A(i, j) / norm);
        }
        const Index k = std::min(m, n), nb = std::min<Index>(k, 2);
        // R of 2^e A by Quoin is 2^e R of A by the system's LAPACK. `factor` returns R, in any storage.
        const auto expect_scaled = [&, m = m, n = n](const char* routine, auto factor) {
            SCOPED_TRACE(routine);
            Matrix<T> large = copy<T>(A.view()), as_it_is = copy<T>(A.view());
            times(large, e);
            Matrix<T> R = factor(this->quoin, large);
            times(R, -e);
            const Matrix<T> expected = factor(this->system, as_it_is);
            EXPECT_LE(difference<T>(R.view(), expected.view(), k, frobenius_norm<T>(A.view())), law);
        };
        for (const bool unblocked : {false, true}) {
            expect_scaled(unblocked ? "geqr2" : "geqrf", [&](const Library& lapack, Matrix<T>& V) {
                lapack.geqrf(V.view(), Work::Minimal, unblocked);
                return upper<T>(V.view(), k);
            });
        }
        expect_scaled("geqr", [&](const Library& lapack, Matrix<T>& V) {
            lapack.geqr(V.view(), Work::Queried);
            return upper<T>(V.view(), k);
        });
        expect_scaled("geqrt", [&](const Library& lapack, Matrix<T>& V) {
            Matrix<T> Tf(nb, k);
            lapack.geqrt(static_cast<std::int32_t>(nb), V.view(), Tf.view());
            return upper<T>(V.view(), k);
        });
        if (m < n) continue;
        expect_scaled("geqrt3", [&](const Library& lapack, Matrix<T>& V) {
            Matrix<T> Tf(n, n);
            lapack.geqrt(0, V.view(), Tf.view());
            return upper<T>(V.view(), k);
        });
        expect_scaled("latsqr", [&](const Library& lapack, Matrix<T>& V) {
            const auto mb = static_cast<std::int32_t>(n + 1);
            Matrix<T> Tf(nb, n * m);
            lapack.latsqr(mb, static_cast<std::int32_t>(nb), V.view(), Tf.view(), Work::Minimal);
            return upper<T>(V.view(), k);
        });
        for (const Index l : {Index{0}, n}) {
            expect_scaled("tpqrt", [&](const Library& lapack, Matrix<T>& V) {
                Matrix<T> R = filled<T>(n, n, 0), Tf(nb, n);
                lapack.tpqrt(static_cast<std::int32_t>(l), static_cast<std::int32_t>(nb), R.view(), V.view(),
                             Tf.view());
                return upper<T>(R.view(), n);
            });
        }
    }
}

}  // namespace
}  // namespace quoin::test
