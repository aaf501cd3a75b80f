// The SVD on the GPU obeys the law of the host, with R's own SVD on the host and on the device.

#include "quoin/svd.hpp"

#include <fmt/format.h>

#include "cuda/tuning.hpp"
#include "gpu.hpp"
#include "svd_law.hpp"

namespace quoin::test {
namespace {

constexpr Index beyond =
    cuda::max_host_svd_cols(ScalarKind::F32, /*vectors=*/false) + 7;  ///< columns whose SVD is the device's

template <class T>
class GpuSvd : public OnGpu {
protected:
    SVD<T> decompose(MatrixView<const T> A, bool vectors = true, Options options = {}) {
        GpuPadded<T> gA(gpu(), A);
        auto f = svd<T, Cuda>(gpu(), gA.view(), vectors, options);
        EXPECT_TRUE(same_bits<T>(gA.fetch(gpu()).view(), A));
        if (!options.pivoting) EXPECT_GE(f.report.seconds, 0);
        return {copy_to_host<T>(gpu(), f.U.view()), f.s, copy_to_host<T>(gpu(), f.Vt.view()), f.report};
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuSvd, Precisions);

TYPED_TEST(GpuSvd, FactorsObeyTheLaw) {
    using T = TypeParam;
    const std::pair<Index, Index> shapes[] = {{1, 1},       {5, 5},
                                              {7, 1},       {1, 7},
                                              {60, 13},     {13, 60},
                                              {33, 33},     {quick() ? 200 : 1500, 20},
                                              {70, 90},     {beyond, beyond + 20},
                                              {400, beyond}};
    for (const Gallery matrix_class : svd_classes) {
        for (const auto& [m, n] : shapes) {
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            if (quick() && m * n > 5000 && matrix_class != Gallery::RandomNormal) continue;
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            expect_svd_law<T>(A.view(), this->decompose(A.view()));
        }
    }
}

TYPED_TEST(GpuSvd, BatchesObeyTheLaw) {
    using T = TypeParam;
    const auto on_host = [&](const Batch<T, Cuda>& there) {
        std::vector<std::pair<Index, Index>> shapes;
        for (Index b = 0; b < there.count(); ++b) shapes.emplace_back(there[b].rows, there[b].cols);
        Batch<T> here(Context<Host>(), shapes);
        for (Index b = 0; b < there.count(); ++b)
            copy<T>(this->host, copy_to_host<T>(this->gpu(), there[b]).view(), here[b]);
        return here;
    };
    expect_svd_law_of_batches<T>([&](BatchView<const T> A, bool vectors) {
        BatchedSVD<T, Cuda> f;
        if (A.uniform()) {
            const Index m = A.rows(0), n = A.cols(0), size = m * n * A.count();
            const Matrix<T, Cuda> there = copy_to_device<T>(this->gpu(), MatrixView<const T>(A.data(0), size, 1, size));
            f = svd<T, Cuda>(
                this->gpu(),
                BatchView<const T, Cuda>(there.data(), m, n, A.row_stride(0), A.col_stride(0), m * n, A.count()),
                vectors);
        } else {
            std::vector<Matrix<T, Cuda>> there;
            std::vector<MatrixView<const T, Cuda>> views;
            for (Index b = 0; b < A.count(); ++b) {
                there.push_back(copy_to_device<T>(this->gpu(), MatrixView<const T>(A.data(b), A.rows(b), A.cols(b))));
                views.push_back(std::as_const(there.back()).view());
            }
            f = svd<T, Cuda>(this->gpu(), BatchView<const T, Cuda>(views), vectors);
        }
        return BatchedSVD<T>{on_host(f.U), on_host(f.s), on_host(f.Vt)};
    });
}

/// m×n of 2100 rows and more is sketched by way of a sparse embedding.
TYPED_TEST(GpuSvd, TruncatedAtARank) {
    using T = TypeParam;
    const Index r = 12;
    for (const auto& [m, n] : {std::pair<Index, Index>{1000, 300}, {5000, 300}, {300, 5000}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index k = std::min(m, n);
        std::vector<double> sigma(static_cast<std::size_t>(k));
        for (Index i = 0; i < k; ++i) sigma[i] = std::pow(0.5, i);
        const Matrix<T> A = with_singular_values<T>(m, n, sigma);
        Options options;
        options.pivoting = Pivoting{.max_rank = r};
        const double rest = 100 * sigma[26], rounding = law * k * unit_roundoff<T>;
        for (const bool vectors : {true, false}) {
            const auto f = this->decompose(A.view(), vectors, options);
            ASSERT_EQ(static_cast<Index>(f.s.size()), r);
            for (Index i = 0; i < r; ++i) EXPECT_NEAR(f.s[i], sigma[i], rest * rest / sigma[i] + rounding) << i;
            if (!vectors) continue;
            EXPECT_LE(orthogonality_error<T>(f.U.view(), r), law);
            EXPECT_LE(orthogonality_error<T>(transposed<T>(f.Vt.view()).view(), r), law);
        }
    }
}

TYPED_TEST(GpuSvd, SingularTrianglesOfManyColumns) {
    using T = TypeParam;
    const Index n = quick() ? beyond : Tuning<Cuda>::host_svd_cols_uncertified + 10;
    const Matrix<T> A = generate<T>(Gallery::RankDeficientExact, n, n);
    const auto f = this->decompose(A.view());
    EXPECT_LE(orthogonality_error<T>(f.U.view(), n), svd_law) << "UᵀU = I";
    EXPECT_LE(orthogonality_error<T>(transposed<T>(f.Vt.view()).view(), n), svd_law) << "VᵀV = I";
    EXPECT_LE(singular_value_error<T>(reference_singular_values<T>(A.view()), f.s), svd_law);
}

TYPED_TEST(GpuSvd, ValuesAlone) {
    using T = TypeParam;
    for (const Gallery matrix_class : svd_classes) {
        for (const auto& [m, n] : {std::pair<Index, Index>{70, 17}, {17, 70}, {400, beyond}}) {
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            if (quick() && n == beyond) continue;
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            const auto f = this->decompose(A.view(), /*vectors=*/false);
            EXPECT_LE(singular_value_error<T>(reference_singular_values<T>(A.view()), f.s), svd_law);
            EXPECT_EQ(f.U.cols(), 0);
            EXPECT_EQ(f.Vt.rows(), 0);
        }
    }
}

TYPED_TEST(GpuSvd, EveryHolderOfQ) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(300, 40), wide = transposed<T>(A.view());
    for (const QForm q : {QForm::Any, QForm::None, QForm::Explicit, QForm::Reflectors}) {
        SCOPED_TRACE(to_string(q));
        Options options;
        options.q = q;
        expect_svd_law<T>(A.view(), this->decompose(A.view(), true, options));
        expect_svd_law<T>(wide.view(), this->decompose(wide.view(), true, options));
    }
}

TYPED_TEST(GpuSvd, EmptyShapes) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{0, 0}, {4, 0}, {0, 4}}) {
        for (const bool vectors : {false, true}) {
            const auto f = this->decompose(Matrix<T>(m, n).view(), vectors);
            EXPECT_TRUE(f.s.empty());
            if (!vectors) continue;
            EXPECT_EQ(f.U.rows(), m);
            EXPECT_EQ(f.Vt.cols(), n);
        }
    }
}

TYPED_TEST(GpuSvd, EntriesThatAreNotFinite) {
    using T = TypeParam;
    for (const Index n : {Index(6), beyond}) {
        Matrix<T> A = random_normal<T>(200, n);
        A(5, 4) = std::numeric_limits<T>::quiet_NaN();
        try {
            this->decompose(A.view());
            ADD_FAILURE() << "no NonFiniteEntry";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, 5);
            EXPECT_EQ(e.col, 4);
        }
        Options unchecked;
        unchecked.check_finite = false;
        EXPECT_THROW(this->decompose(A.view(), true, unchecked), NumericalBreakdown);
    }
}

TYPED_TEST(GpuSvd, SameBitsTwice) {
    using T = TypeParam;
    for (const Index n : {Index(20), beyond}) {
        const Matrix<T> A = random_normal<T>(500, n);
        const auto f = this->decompose(A.view()), g = this->decompose(A.view());
        EXPECT_EQ(f.s, g.s);
        EXPECT_TRUE(same_bits<T>(f.U.view(), g.U.view()));
        EXPECT_TRUE(same_bits<T>(f.Vt.view(), g.Vt.view()));
    }
}

}  // namespace
}  // namespace quoin::test
