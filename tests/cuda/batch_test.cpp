// Batches on a GPU obey the law of single matrices, whatever their neighbours are.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "batches.hpp"
#include "devices.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuBatch : public OnGpuBatches<T> {
protected:
    void expect_law(const std::vector<Matrix<T>>& matrices, const BatchedQR<T, Cuda>& f) {
        Batch<T, Cuda> Q = f.form_q(this->gpu()), R = f.r(this->gpu());
        for (Index b = 0; b < f.count(); ++b) {
            const Matrix<T>& A = matrices[b];
            SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, A.rows(), A.cols()));
            const Matrix<T> Qb = this->fetched(Q[b]), Rb = this->fetched(R[b]);
            EXPECT_TRUE(is_upper_trapezoidal<T>(Rb.view()));
            EXPECT_LE(orthogonality_error<T>(Qb.view(), std::min(A.rows(), A.cols())), law);
            EXPECT_LE(column_residual_error<T>(A.view(), Qb.view(), Rb.view()), law);
        }
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuBatch, Precisions);

struct Shape {
    Index m, n;
};
/// Both sides of every edge of the kernels in cuda/batch.cu, cuda/batch_rows.cu and cuda/batch_strips.cu: rows of a
/// block or a cluster, columns of a thread or a strip.
constexpr Shape shapes[] = {
    {1, 1},     {3, 3},     {4, 4},      {2, 7},      {16, 8},    {17, 8},    {16, 16},   {16, 17},
    {64, 8},    {65, 8},    {32, 32},    {33, 32},    {64, 32},   {64, 33},   {64, 64},   {65, 65},
    {128, 64},  {129, 64},  {256, 64},   {257, 64},   {257, 32},  {512, 32},  {513, 32},  {100, 128},
    {128, 129}, {192, 192}, {193, 60},   {8, 200},    {200, 200}, {70, 300},  {97, 400},  {300, 257},
    {511, 65},  {1024, 40}, {1025, 17},  {1100, 33},  {2048, 20}, {2049, 65}, {4096, 17}, {4097, 33},
    {8192, 20}, {8193, 16}, {16384, 40}, {16385, 5},  {65, 4},    {66, 5},    {65, 9},    {100, 17},
    {300, 24},  {2000, 25}, {900, 3},    {1030, 6},   {2048, 32}, {2049, 31}, {4097, 4},  {8192, 32},
    {8193, 31}, {16384, 9}, {16385, 16}, {32768, 10}, {32769, 9}, {32769, 8}, {65536, 4}, {65537, 3}};

TYPED_TEST(GpuBatch, EveryClassAndShapeInOneMixedBatch) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    Index turn = 0;
    for (const Gallery matrix_class : gallery()) {
        for (const auto& [m, n] : in_turn(shapes, turn++)) matrices.push_back(generate<T>(matrix_class, m, n));
        matrices.push_back(generate<T>(matrix_class, 16, 8));
    }
    for (const auto& [m, n] : shapes) matrices.push_back(random_normal<T>(m, n));
    const auto copies = this->on_gpu(matrices);
    const auto f = qr<T>(this->gpu(), this->of(copies));
    this->expect_law(matrices, f);
    // each has the bits that it has alone
    Batch<T, Cuda> R = f.r(this->gpu());
    for (std::size_t b = 0; b < matrices.size(); ++b) {
        SCOPED_TRACE(b);
        Batch<T, Cuda> alone = qr<T>(this->gpu(), this->in(copies[b], copies[b].cols())).r(this->gpu());
        EXPECT_TRUE(same_bits<T>(this->fetched(alone[0]).view(), this->fetched(R[static_cast<Index>(b)]).view()));
    }
}

/// Columns at angles from 90° to 0.01° to each other: strips on both sides of what a Gram matrix may be used for.
TYPED_TEST(GpuBatch, ColumnsCloserAndCloserToOneLine) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    for (const auto& [m, n] : {Shape{50, 40}, Shape{64, 48}, Shape{128, 128}, Shape{176, 64}, Shape{352, 80},
                               Shape{1000, 33}, Shape{2000, 48}, Shape{4000, 48}, Shape{8000, 48}}) {
        for (const double apart : {4.0, 1.0, 0.7, 0.5, 0.35, 0.25, 0.1, 0.01, 1e-4}) {
            const Matrix<T> line = random_normal<T>(m, 1, 3);
            Matrix<T> A = random_normal<T>(m, n, 4);
            for (Index j = 0; j < n; ++j) {
                // scales that differ from column to column
                for (Index i = 0; i < m; ++i)
                    A(i, j) = std::ldexp(line(i, 0) + static_cast<T>(apart) * A(i, j), static_cast<int>(j % 7) * 3 - 9);
            }
            matrices.push_back(std::move(A));
        }
    }
    const auto copies = this->on_gpu(matrices);
    this->expect_law(matrices, qr<T>(this->gpu(), this->of(copies)));
}

TYPED_TEST(GpuBatch, AppliesQ) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices, right_sides;
    Index p = 1;
    for (const auto& [m, n] : shapes) {
        if (m > 2100) continue;  // the reference is the whole Q, m×m
        for (int twice = 0; twice < 2; ++twice) {
            matrices.push_back(random_normal<T>(m, n, p));
            right_sides.push_back(random_normal<T>(m, p++ % 40 + 1));
        }
    }
    const auto copies = this->on_gpu(matrices);
    const auto f = qr<T>(this->gpu(), this->of(copies));
    for (const Op op : {Op::None, Op::Transpose}) {
        std::vector<GpuPadded<T>> C;
        std::vector<MatrixView<T, Cuda>> views;
        C.reserve(right_sides.size());
        for (const auto& B : right_sides) views.push_back(C.emplace_back(this->gpu(), B.view()).view());
        f.apply_q(this->gpu(), op, BatchView<T, Cuda>(views));
        for (std::size_t b = 0; b < matrices.size(); ++b) {
            SCOPED_TRACE(fmt::format("{}x{}", matrices[b].rows(), matrices[b].cols()));
            const auto I = copy_to_device<T>(this->gpu(), identity<T>(matrices[b].rows()).view());
            Batch<T, Cuda> Q =
                qr<T>(this->gpu(), this->in(copies[b], copies[b].cols())).apply_q(this->gpu(), Op::None, I.view());
            const Index k = std::min(matrices[b].rows(), matrices[b].cols());
            EXPECT_LE(product_error<T>(Side::Left, op, this->fetched(Q[0]).view(), right_sides[b].view(),
                                       C[b].fetch(this->gpu()).view(), k),
                      law);
        }
    }
}

TYPED_TEST(GpuBatch, RowMajorAndManyMatrices) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{3, 3}, Shape{16, 8}, Shape{70, 40}, Shape{300, 100}, Shape{150, 200}}) {
        const Index count = 1000 / m, k = std::min(m, n);
        const Matrix<T> all = random_normal<T>(m, n * count);
        Matrix<T> rows(n, m * count);  // C order
        for (Index b = 0; b < count; ++b) {
            for (Index i = 0; i < m; ++i) {
                for (Index j = 0; j < n; ++j) rows(j, b * m + i) = all(i, b * n + j);
            }
        }
        const auto by_columns = copy_to_device<T>(this->gpu(), all.view()),
                   by_rows = copy_to_device<T>(this->gpu(), rows.view());
        const auto f = qr<T>(this->gpu(), this->in(by_columns, n));
        const auto g = qr<T>(this->gpu(), BatchView<const T, Cuda>(by_rows.data(), m, n, n, 1, m * n, count));
        Batch<T, Cuda> R = f.r(this->gpu()), S = g.r(this->gpu());
        Batch<T, Cuda> V_R(this->gpu(), m, n, count), tau(this->gpu(), k, 1, count);
        f.lapack(this->gpu(), V_R.view(), tau.view());
        for (Index b = 0; b < count; ++b) {
            EXPECT_TRUE(same_bits<T>(this->fetched(R[b]).view(), this->fetched(S[b]).view()));
            const Matrix<T> both = this->fetched(V_R[b]), Rb = this->fetched(R[b]), t = this->fetched(tau[b]);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < k; ++i) EXPECT_EQ(Rb(i, j), i <= j ? both(i, j) : T(0));
            }
            // τ = 2/(vᵀv) of every reflector that is not I
            for (Index j = 0; j < k; ++j) {
                double squares = 1;
                for (Index i = j + 1; i < m; ++i) squares += double(both(i, j)) * double(both(i, j));
                if (t(j, 0) != 0) {
                    EXPECT_NEAR(t(j, 0), 2 / squares, 50 * unit_roundoff<T>);
                }
            }
        }
    }
}

/// A list in which each matrix lies before the one listed before it, aligned to its entries alone, and some are empty.
TYPED_TEST(GpuBatch, ListsInAnyOrderOfAddresses) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    Index size = 1;
    for (const auto& [m, n] : shapes) {
        for (const auto& [rows, cols] : {Shape{m, n}, Shape{0, n}, Shape{m, n}}) {
            matrices.push_back(random_normal<T>(rows, cols, static_cast<std::uint64_t>(size)));
            size += rows * cols + 1;
        }
    }
    const auto copies = this->on_gpu(matrices);
    Batch<T, Cuda> R = qr<T>(this->gpu(), this->of(copies)).r(this->gpu());
    Matrix<T, Cuda> memory(this->gpu(), size, 1);
    std::vector<MatrixView<T, Cuda>> views;
    T* end = memory.data() + size;
    for (const auto& A : matrices) {
        end -= A.rows() * A.cols() + 1;
        views.emplace_back(end, A.rows(), A.cols());
        copy_to_device<T>(this->gpu(), A.view(), views.back());
    }
    const BatchView<T, Cuda> list(views);
    Batch<T, Cuda> found = qr<T>(this->gpu(), list).r(this->gpu());
    std::vector<std::pair<Index, Index>> of_tau;
    for (const auto& A : matrices) of_tau.emplace_back(std::min(A.rows(), A.cols()), 1);
    Batch<T, Cuda> tau(this->gpu(), of_tau);
    qr_lapack<T, Cuda>(this->gpu(), list, tau.view());
    for (Index b = 0; b < std::ssize(matrices); ++b) {
        SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, matrices[b].rows(), matrices[b].cols()));
        const Matrix<T> expected = this->fetched(R[b]), V_R = this->fetched(views[b]);
        EXPECT_TRUE(same_bits<T>(this->fetched(found[b]).view(), expected.view()));
        if (V_R.rows() > 8192) continue;  // factored alone, by what Auto takes for V, tau and R
        for (Index j = 0; j < V_R.cols(); ++j) {
            for (Index i = 0; i <= std::min(j, V_R.rows() - 1); ++i) EXPECT_EQ(V_R(i, j), expected(i, j));
        }
    }
}

/// One of every kernel, m < n too.
constexpr Shape of_every_kernel[] = {{3, 3},  {4, 2},   {2, 4},   {16, 8},   {9, 16},   {20, 7},
                                     {60, 7}, {32, 32}, {64, 20}, {70, 40},  {300, 90}, {90, 150},
                                     {65, 3}, {700, 8}, {90, 16}, {300, 30}, {5001, 6}};

TYPED_TEST(GpuBatch, GivenMemoryGetsWhatTheResultHas) {
    using T = TypeParam;
    const Index count = 37;
    for (const auto& [m, n] : of_every_kernel) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index k = std::min(m, n);
        std::vector<Matrix<T>> matrices;
        for (Index b = 0; b < count; ++b) matrices.push_back(random_normal<T>(m, n, b));
        const auto copies = this->on_gpu(matrices);
        const auto f = qr<T>(this->gpu(), this->of(copies));
        Batch<T, Cuda> V_R(this->gpu(), m, n, count), tau(this->gpu(), k, 1, count), R = f.r(this->gpu());
        f.lapack(this->gpu(), V_R.view(), tau.view());

        // side by side, a list with gaps, and in place
        Batch<T, Cuda> Q2(this->gpu(), m, k, count), R2(this->gpu(), k, n, count), V_R2(this->gpu(), m, n, count),
            tau2(this->gpu(), k, 1, count), tau3(this->gpu(), k, 1, count);
        qr<T>(this->gpu(), this->of(copies), Q2.view(), R2.view());
        qr_lapack<T>(this->gpu(), this->of(copies), V_R2.view(), tau2.view());
        std::vector<GpuPadded<T>> padded;
        std::vector<MatrixView<T, Cuda>> views;
        padded.reserve(count);
        for (const auto& A : matrices) views.push_back(padded.emplace_back(this->gpu(), A.view()).view());
        const BatchView<T, Cuda> list(views);
        qr_lapack<T, Cuda>(this->gpu(), list, tau3.view());
        for (Index b = 0; b < count; ++b) {
            const Matrix<T> Qb = this->fetched(Q2[b]), Rb = this->fetched(R2[b]), expected = this->fetched(V_R[b]);
            EXPECT_LE(orthogonality_error<T>(Qb.view(), k), law);
            EXPECT_LE(column_residual_error<T>(matrices[b].view(), Qb.view(), Rb.view()), law);
            EXPECT_TRUE(same_bits<T>(Rb.view(), this->fetched(R[b]).view()));
            EXPECT_TRUE(same_bits<T>(this->fetched(V_R2[b]).view(), expected.view()));
            EXPECT_TRUE(same_bits<T>(padded[b].fetch(this->gpu()).view(), expected.view()));
            for (const auto& other : {tau2[b], tau3[b]})
                EXPECT_TRUE(same_bits<T>(this->fetched(other).view(), this->fetched(tau[b]).view()));
        }
        // a matrix with NaN stays as it is
        Matrix<T> spoilt = random_normal<T>(m, n * count);
        spoilt(m - 1, 5 * n) = std::numeric_limits<T>::quiet_NaN();
        const auto before = copy_to_host<T>(this->gpu(), copy_to_device<T>(this->gpu(), spoilt.view()).view());
        auto A = copy_to_device<T>(this->gpu(), spoilt.view());
        const BatchView<T, Cuda> in_place(A.data(), m, n, m, m * n, count);
        EXPECT_THROW((qr_lapack<T, Cuda>(this->gpu(), in_place, tau2.view())), NonFiniteEntry);
        const Matrix<T> after = copy_to_host<T>(this->gpu(), A.view());
        EXPECT_TRUE(same_bits<T>(after.view().col_block({5 * n, 6 * n}), before.view().col_block({5 * n, 6 * n})));
    }
}

/// Matrices too tall for one kernel, several streams at a time.
TYPED_TEST(GpuBatch, LargeMatricesSideBySideHaveTheBitsOfOneAlone) {
    using T = TypeParam;
    const Index m = 17000, n = 100, count = 9;
    Matrix<T> all = random_normal<T>(m, n * count);
    const auto A = copy_to_device<T>(this->gpu(), all.view());
    Batch<T, Cuda> V_R(this->gpu(), m, n, count), tau(this->gpu(), n, 1, count), Q(this->gpu(), m, n, count),
        R(this->gpu(), n, n, count);
    qr_lapack<T, Cuda>(this->gpu(), this->in(A, n), V_R.view(), tau.view());
    qr<T>(this->gpu(), this->in(A, n), Q.view(), R.view());
    Options reflectors;
    reflectors.q = QForm::Reflectors;
    // one panel, which is reconstructed; a GPU whose f64 is slow takes trees
    if (tuning_of(this->gpu()).tall_method(n, scalar_kind<T>) == Method::CholeskyQR2)
        reflectors.method = Method::BlockedHouseholder;
    for (Index b = 0; b < count; ++b) {
        const auto one = A.view().col_block({b * n, (b + 1) * n});
        LapackQR<T, Cuda> alone = to_lapack(this->gpu(), qr<T, Cuda>(this->gpu(), one, reflectors));
        EXPECT_TRUE(same_bits<T>(this->fetched(V_R[b]).view(), this->fetched(alone.V_R.view()).view())) << b;
        EXPECT_TRUE(same_bits<T>(this->fetched(tau[b]).view(), this->fetched(alone.tau.view()).view())) << b;
        const Matrix<T> Qb = this->fetched(Q[b]), Rb = this->fetched(R[b]);
        EXPECT_LE(orthogonality_error<T>(Qb.view(), n), law);
        EXPECT_LE(column_residual_error<T>(all.view().col_block({b * n, (b + 1) * n}), Qb.view(), Rb.view()), law);
    }
    this->gpu().request_stop();
    EXPECT_THROW((qr_lapack<T, Cuda>(this->gpu(), this->in(A, n), V_R.view(), tau.view())), Interrupted);
    this->gpu().clear_stop();
    all(5, 7 * n + 3) = all(m - 1, 4 * n + 8) = std::numeric_limits<T>::quiet_NaN();
    const auto spoilt = copy_to_device<T>(this->gpu(), all.view());
    Batch<T, Cuda> again(this->gpu(), m, n, count);
    try {
        qr_lapack<T, Cuda>(this->gpu(), this->in(spoilt, n), again.view(), tau.view());
        FAIL() << "NaN was accepted";
    } catch (const NonFiniteEntry& e) {
        EXPECT_EQ(e.row, m - 1);
        EXPECT_EQ(e.col, 8);
        EXPECT_NE(std::string(e.what()).find("matrix 4 of the batch"), std::string::npos) << e.what();
    }
    EXPECT_TRUE(same_bits<T>(this->fetched(again[8]).view(), this->fetched(V_R[8]).view()));
}

TYPED_TEST(GpuBatch, BitsDoNotDependOnTheNumber) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{30, 25}, Shape{32, 32}, Shape{4, 4}, Shape{12, 7}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const auto A = copy_to_device<T>(this->gpu(), random_normal<T>(m, 3000 * n).view());
        const Matrix<T, Cuda> first =
            copy_to_device<T>(this->gpu(), copy_to_host<T>(this->gpu(), A.view().col_block({0, 5 * n})).view());
        for (const bool with_q : {false, true}) {
            const auto results = [&](const Matrix<T, Cuda>& all) {
                const Index count = all.cols() / n;
                Batch<T, Cuda> Q(this->gpu(), m, n, with_q ? count : 0), R(this->gpu(), n, n, count);
                qr<T>(this->gpu(), this->in(all, n), Q.view(), R.view());
                return std::pair{std::move(Q), std::move(R)};
            };
            auto [Q, R] = results(A);
            auto [Q5, R5] = results(first);
            for (Index b = 0; b < 5; ++b) {
                EXPECT_TRUE(same_bits<T>(this->fetched(R[b]).view(), this->fetched(R5[b]).view()));
                if (with_q) {
                    EXPECT_TRUE(same_bits<T>(this->fetched(Q[b]).view(), this->fetched(Q5[b]).view()));
                }
            }
        }
    }
}

TYPED_TEST(GpuBatch, AMatrixAloneHasTheBitsOfABatchOfOne) {
    using T = TypeParam;
    const Index max_rows = std::is_same_v<T, float> ? 2048 : 1024;
    std::vector<Shape> all(std::begin(of_every_kernel), std::end(of_every_kernel));
    all.insert(all.end(), {{200, 200}, {520, 300}, {max_rows, 40}, {max_rows - 3, 17}});
    for (const auto& [m, n] : all) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index k = std::min(m, n);
        const Matrix<T> A = random_normal<T>(m, n);
        const auto on_gpu = copy_to_device<T>(this->gpu(), A.view());
        const auto batch = qr<T>(this->gpu(), this->in(on_gpu, n));
        Batch<T, Cuda> R = batch.r(this->gpu()), Q = batch.form_q(this->gpu()), V_R(this->gpu(), m, n, 1),
                       tau(this->gpu(), k, 1, 1);
        batch.lapack(this->gpu(), V_R.view(), tau.view());
        const auto expect_bits = [&](const Matrix<T, Cuda>& found, const MatrixView<T, Cuda>& expected) {
            EXPECT_TRUE(
                same_bits<T>(copy_to_host<T>(this->gpu(), found.view()).view(), this->fetched(expected).view()));
        };
        Options options;
        options.method = Method::BlockedHouseholder;
        const auto alone = [&](QForm form) {
            options.q = form;
            return qr<T, Cuda>(this->gpu(), on_gpu.view(), options);
        };
        EXPECT_TRUE(alone(QForm::Any).plan().householder().one_launch);
        expect_bits(alone(QForm::None).r(this->gpu()), R[0]);
        expect_bits(alone(QForm::Explicit).r(this->gpu()), R[0]);
        Batch<T, Cuda> thin_Q(this->gpu(), m, k, 1);
        qr<T>(this->gpu(), this->in(on_gpu, n), thin_Q.view(), R.view());
        expect_bits(alone(QForm::Explicit).form_q(this->gpu()), thin_Q[0]);
        expect_bits(alone(QForm::Any).take_q(this->gpu()), Q[0]);
        const QR<T, Cuda> f = alone(QForm::Reflectors);
        expect_bits(f.r(this->gpu()), R[0]);
        expect_bits(f.form_q(this->gpu()), Q[0]);
        expect_bits(f.tau(this->gpu()), tau[0]);
        const LapackQR<T, Cuda> factors = to_lapack(this->gpu(), alone(QForm::Reflectors));
        expect_bits(factors.V_R, V_R[0]);
        expect_bits(factors.tau, tau[0]);
        // I − V T Vᵀ, by panels, is the same Q
        const Matrix<T> V = copy_to_host<T>(this->gpu(), f.v(this->gpu()).view()),
                        S = copy_to_host<T>(this->gpu(), f.s(this->gpu()).view()), Qh = this->fetched(Q[0]);
        double worst = 0;
        for (Index j = 0; j < k; ++j) {
            for (Index i = 0; i < m; ++i) {
                double entry = i == j;
                for (Index l = 0; l < k; ++l) entry -= double(V(i, l)) * double(S(j, l));
                worst = std::max(worst, std::abs(entry - double(Qh(i, j))));
            }
        }
        EXPECT_LE(worst, law * static_cast<double>(k) * unit_roundoff<T>);
    }
}

TYPED_TEST(GpuBatch, AutoLeavesCholeskyQRForReflectorsAtItsEdge) {
    using T = TypeParam;
    const Index edge = Tuning<Cuda>::tall_cols, m = 4 * edge + 4;
    const auto tall = [&](Index n) { return tuning_of(this->gpu()).tall_method(n, scalar_kind<T>); };
    for (const QForm form : {QForm::Explicit, QForm::None}) {
        Options options;
        options.q = form;
        EXPECT_EQ(plan_qr<T>(this->gpu(), m, edge, options).method, tall(edge));
        const Plan beyond = plan_qr<T>(this->gpu(), m, edge + 1, options);
        EXPECT_EQ(beyond.method, Method::BlockedHouseholder);
        EXPECT_TRUE(beyond.householder().one_launch);
        EXPECT_EQ(plan_qr<T>(this->gpu(), 16385, 306, options).method, tall(306));
        const Plan wider = plan_qr<T>(this->gpu(), 16385, 307, options);
        EXPECT_EQ(wider.method, Method::BlockedHouseholder) << "random numbers would need two passes";
        EXPECT_FALSE(wider.householder().one_launch) << "too many rows";
        EXPECT_EQ(plan_qr<T>(this->gpu(), 160, 128, options).method, tall(128));
        EXPECT_EQ(plan_qr<T>(this->gpu(), 159, 128, options).method, Method::BlockedHouseholder) << "nearly square";
    }
}

TYPED_TEST(GpuBatch, NonFiniteEntriesAreNamedOrStayInTheirMatrix) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{4, 4}, Shape{6, 4}, Shape{32, 32}, Shape{90, 70}, Shape{220, 210}, Shape{600, 400},
                               Shape{1200, 20}, Shape{5000, 4}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index count = 21;
        Matrix<T> all = random_normal<T>(m, n * count);
        const auto clean = copy_to_device<T>(this->gpu(), all.view());
        all(m - 1, 18 * n + 1) = std::numeric_limits<T>::infinity();
        all(2, 17 * n + 3) = std::numeric_limits<T>::quiet_NaN();
        const auto spoilt = copy_to_device<T>(this->gpu(), all.view());
        // a check leaves no trace for the next one
        for (int round = 0; round < 2; ++round) {
            try {
                (void)qr<T>(this->gpu(), this->in(spoilt, n));
                FAIL() << "NaN was accepted";
            } catch (const NonFiniteEntry& e) {
                EXPECT_EQ(e.row, 2);
                EXPECT_EQ(e.col, 3);
                EXPECT_NE(std::string(e.what()).find("matrix 17 of the batch"), std::string::npos) << e.what();
            }
            EXPECT_NO_THROW((void)qr<T>(this->gpu(), this->in(clean, n)));
        }
        Options options;
        options.check_finite = false;
        Batch<T, Cuda> R = qr<T>(this->gpu(), this->in(spoilt, n), options).r(this->gpu());
        Batch<T, Cuda> expected = qr<T>(this->gpu(), this->in(clean, n), options).r(this->gpu());
        for (Index b = 0; b < count; ++b) {
            if (b == 17 || b == 18) {
                EXPECT_FALSE(is_finite<T>(this->fetched(R[b]).view()));
            } else {
                EXPECT_TRUE(same_bits<T>(this->fetched(R[b]).view(), this->fetched(expected[b]).view()));
            }
        }
    }
}

TYPED_TEST(GpuBatch, AMatrixAloneWithNaNStaysAsItIs) {
    using T = TypeParam;
    for (const auto& [m, n] :
         {Shape{60, 7}, Shape{65, 4}, Shape{5000, 3}, Shape{5001, 6}, Shape{700, 30}, Shape{300, 90}}) {
        for (const auto& [row, col] : {Shape{0, 0}, Shape{m - 1, n - 1}, Shape{0, n - 1}}) {
            SCOPED_TRACE(fmt::format("{}x{} at {}, {}", m, n, row, col));
            Matrix<T> A = random_normal<T>(m, n);
            A(row, col) = std::numeric_limits<T>::quiet_NaN();
            for (const QForm form : {QForm::None, QForm::Explicit, QForm::Reflectors}) {
                auto on_gpu = copy_to_device<T>(this->gpu(), A.view());
                Options options;
                options.method = Method::BlockedHouseholder;
                options.q = form;
                const Plan plan = plan_qr<T>(this->gpu(), m, n, options);
                ASSERT_TRUE(plan.householder().one_launch);
                try {
                    (void)qr<T, Cuda>(this->gpu(), Matrix<T, Cuda>::over(on_gpu.view()), plan);
                    ADD_FAILURE() << "NaN was accepted";
                } catch (const NonFiniteEntry& e) {
                    EXPECT_EQ(e.row, row);
                    EXPECT_EQ(e.col, col);
                }
                EXPECT_TRUE(same_bits<T>(copy_to_host<T>(this->gpu(), on_gpu.view()).view(), A.view()));
            }
        }
    }
}

TYPED_TEST(GpuBatch, TallQOfFewColumnsThereAndBack) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{30000, 7}, Shape{16000, 15}, Shape{2000, 30}, Shape{60000, 2}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index p = 11;
        const Matrix<T> A = random_normal<T>(m, n), C = random_normal<T>(m, p, 2);
        const auto A_gpu = copy_to_device<T>(this->gpu(), A.view());
        auto R_and_0 = copy_to_device<T>(this->gpu(), A.view()), there = copy_to_device<T>(this->gpu(), C.view());
        const auto f = qr<T>(this->gpu(), this->in(A_gpu, n));
        f.apply_q(this->gpu(), Op::Transpose, BatchView<T, Cuda>(R_and_0.data(), m, n, m, 0, 1));
        const Matrix<T> R = this->fetched(f.r(this->gpu())[0]), found = copy_to_host<T>(this->gpu(), R_and_0.view());
        // ‖found_j − expected_j‖ <= most n u ‖a_j‖
        const auto expect_columns = [&](const Matrix<T>& found, const Matrix<T>& expected, const Matrix<T>& A,
                                        double most) {
            for (Index j = 0; j < A.cols(); ++j) {
                double error = 0, norm = 0;
                for (Index i = 0; i < m; ++i) {
                    const double difference = double(found(i, j)) - double(expected(i, j));
                    error += difference * difference;
                    norm += double(A(i, j)) * double(A(i, j));
                }
                EXPECT_LE(std::sqrt(error / norm), most * static_cast<double>(n) * unit_roundoff<T>) << j;
            }
        };
        Matrix<T> expected = filled<T>(m, n, 0);
        for (Index j = 0; j < n; ++j) std::copy_n(&R(0, j), n, &expected(0, j));
        expect_columns(found, expected, A, law);
        for (const Op op : {Op::Transpose, Op::None})
            f.apply_q(this->gpu(), op, BatchView<T, Cuda>(there.data(), m, p, m, 0, 1));
        const Matrix<T> back = copy_to_host<T>(this->gpu(), there.view());
        expect_columns(back, C, C, 2 * law);
    }
}

TYPED_TEST(GpuBatch, AGraphReplaysTheSameBits) {
    using T = TypeParam;
    if (has_plain_kernels()) GTEST_SKIP() << "plain kernels wait";
    Options options;
    options.check_finite = false;  // nothing waits
    for (const auto& [m, n] : {Shape{6, 4}, Shape{60, 30}, Shape{200, 70}, Shape{600, 100}, Shape{5000, 6}}) {
        const Index count = 50;
        auto A = copy_to_device<T>(this->gpu(), random_normal<T>(m, n * count, 1).view());
        Batch<T, Cuda> Q(this->gpu(), m, n, count), R(this->gpu(), n, n, count);
        const auto factor = [&] {
            const auto f = qr<T>(this->gpu(), this->in(A, n), options);
            f.form_q(this->gpu(), Q.view());
            f.r(this->gpu(), R.view());
        };
        factor();  // takes the memory that it needs
        cudaGraph_t graph;
        cudaGraphExec_t replay;
        const auto stream = static_cast<cudaStream_t>(this->gpu().stream());
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        factor();
        ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
        ASSERT_EQ(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
        for (std::uint64_t seed = 2; seed < 4; ++seed) {
            const auto next = copy_to_device<T>(this->gpu(), random_normal<T>(m, n * count, seed).view());
            ASSERT_EQ(
                cudaMemcpyAsync(A.data(), next.data(), m * n * count * sizeof(T), cudaMemcpyDeviceToDevice, stream),
                cudaSuccess);
            ASSERT_EQ(cudaGraphLaunch(replay, stream), cudaSuccess);
            const auto f = qr<T>(this->gpu(), this->in(next, n), options);
            Batch<T, Cuda> expected_q = f.form_q(this->gpu()), expected_r = f.r(this->gpu());
            for (const Index b : {Index(0), count - 1}) {
                EXPECT_TRUE(same_bits<T>(this->fetched(Q[b]).view(), this->fetched(expected_q[b]).view()));
                EXPECT_TRUE(same_bits<T>(this->fetched(R[b]).view(), this->fetched(expected_r[b]).view()));
            }
        }
        cudaGraphExecDestroy(replay);
        cudaGraphDestroy(graph);
    }
}

TYPED_TEST(GpuBatch, EightThreadsWithAStreamEach) {
    using T = TypeParam;
    constexpr Shape sizes[] = {{3, 3}, {30, 20}, {64, 32}, {100, 64}, {250, 80}, {500, 130}, {1000, 40}, {3000, 20}};
    std::vector<Matrix<T>> expected, found[8];
    const auto factor = [&](Context<Cuda>& ctx, const Shape& shape) {
        const auto A = copy_to_device<T>(ctx, random_normal<T>(shape.m, shape.n * 20, shape.m).view());
        const Batch<T, Cuda> R = qr<T>(ctx, this->in(A, shape.n)).r(ctx);
        return copy_to_host<T>(ctx, MatrixView<const T, Cuda>(R.view().data(0), shape.n, shape.n * 20));
    };
    for (const auto& shape : sizes) expected.push_back(factor(this->gpu(), shape));
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            Context<Cuda> ctx;
            for (int i = 0; i < 8; ++i) found[t].push_back(factor(ctx, sizes[(i + t) % 8]));
        });
    }
    for (auto& thread : threads) thread.join();
    for (int t = 0; t < 8; ++t) {
        for (int i = 0; i < 8; ++i) EXPECT_TRUE(same_bits<T>(expected[(i + t) % 8].view(), found[t][i].view()));
    }
}

/// Zeros, but for matrices at both ends and around entry 2³¹, in place and elsewhere. 8.6 GB each.
class GpuLargeBatch : public OnGpuBatches<float> {};
TEST_F(GpuLargeBatch, MoreThan2To31Entries) {
    if (has_plain_kernels()) GTEST_SKIP() << "plain kernels factor one matrix after the other";
    std::size_t free_bytes = 0, all_bytes = 0;
    ASSERT_EQ(cudaMemGetInfo(&free_bytes, &all_bytes), cudaSuccess);
    if (free_bytes < std::size_t{40} << 30) GTEST_SKIP() << "needs 40 GB";
    for (const auto& [m, n] : {Shape{4, 4}, Shape{16, 8}, Shape{64, 32}, Shape{200, 100}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index each = m * n, middle = (Index(1) << 31) / each, count = middle + 5;
        const std::vector<Index> places{0, middle - 1, middle, middle + 1, count - 1};
        Matrix<float, Cuda> A(gpu(), m, n * count);
        Batch<float, Cuda> tau(gpu(), n, 1, count), R(gpu(), n, n, count);
        ASSERT_EQ(cudaMemsetAsync(A.data(), 0, static_cast<std::size_t>(each * count) * sizeof(float),
                                  static_cast<cudaStream_t>(gpu().stream())),
                  cudaSuccess);
        std::vector<Matrix<float>> matrices;
        for (const Index b : places) {
            matrices.push_back(random_normal<float>(m, n, static_cast<std::uint64_t>(b)));
            copy_to_device<float>(gpu(), matrices.back().view(), A.view().col_block({b * n, (b + 1) * n}));
        }
        const auto copies = on_gpu(matrices);
        Batch<float, Cuda> V_R(gpu(), m, n, std::ssize(places)), t(gpu(), n, 1, std::ssize(places)),
            expected = qr<float>(gpu(), of(copies)).r(gpu());
        qr_lapack<float>(gpu(), of(copies), V_R.view(), t.view());
        qr<float>(gpu(), in(A, n), BatchView<float, Cuda>(), R.view());
        const auto found = [&](Index b) { return A.view().col_block({b * n, (b + 1) * n}); };
        for (Index i = 0; i < std::ssize(places); ++i)
            EXPECT_TRUE(same_bits<float>(fetched(R[places[i]]).view(), fetched(expected[i]).view())) << places[i];
        qr_lapack<float, Cuda>(gpu(), BatchView<float, Cuda>(A.data(), m, n, m, each, count), tau.view());
        for (Index i = 0; i < std::ssize(places); ++i) {
            EXPECT_TRUE(same_bits<float>(fetched(found(places[i])).view(), fetched(V_R[i]).view())) << places[i];
            EXPECT_TRUE(same_bits<float>(fetched(tau[places[i]]).view(), fetched(t[i]).view())) << places[i];
        }
        for (const Index b : {Index(1), middle - 2, middle + 2}) {
            const Matrix<float> zeros = fetched(found(b));
            EXPECT_TRUE(std::all_of(zeros.data(), zeros.data() + each, [](float x) { return x == 0; })) << b;
        }
    }
}

TYPED_TEST(GpuBatch, NothingToDo) {
    using T = TypeParam;
    EXPECT_EQ(qr<T>(this->gpu(), BatchView<const T, Cuda>(nullptr, 3, 3, 3, 9, 0)).r(this->gpu()).count(), 0);
    std::vector<Matrix<T>> matrices;
    matrices.push_back(random_normal<T>(5, 3));
    matrices.push_back(Matrix<T>(0, 4));
    matrices.push_back(Matrix<T>(4, 0));
    const auto copies = this->on_gpu(matrices);
    this->expect_law(matrices, qr<T>(this->gpu(), this->of(copies)));
}

}  // namespace
}  // namespace quoin::test
