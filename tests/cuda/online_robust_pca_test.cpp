// Online robust PCA on the GPU: each of its steps against the host's or against sums in higher precision, and streams
// against the host's.

#include "quoin/apps/online_robust_pca.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"
#include "robust_pca/online_steps.hpp"

namespace quoin::test {
namespace {

// ---- The steps ------------------------------------------------------------------------------------------------------

/// Columns of the records in the memory of D, NaN at first.
template <class T, class D>
struct Records {
    Matrix<T, D> last;
    Matrix<float, D> size, change, noise;
    Matrix<std::int32_t, D> age, votes;
    RowRecords<T, D> view() {
        return {last.view(), size.view(), change.view(), noise.view(), age.view(), votes.view()};
    }
};

template <class T>
class GpuOnlineSteps : public OnGpu {
protected:
    static constexpr double u = unit_roundoff<T>;
    static constexpr float float_nan = std::numeric_limits<float>::quiet_NaN();

    static Records<T, Host> host_records(Index m) {
        Matrix<std::int32_t> age(m, 1), votes(m, 1);
        std::fill_n(age.data(), m, -7);
        std::fill_n(votes.data(), m, -70);
        return {filled<T>(m, 1, std::numeric_limits<T>::quiet_NaN()),
                filled<float>(m, 1, float_nan),
                filled<float>(m, 1, float_nan),
                filled<float>(m, 1, float_nan),
                std::move(age),
                std::move(votes)};
    }
    Matrix<std::int32_t, Cuda> to_gpu(MatrixView<const std::int32_t> A) {
        Matrix<std::int32_t, Cuda> B(gpu(), A.rows, A.cols);
        start_copy_from_host<int, Cuda>(gpu(), A, B.view());
        finish_copies(gpu());
        gpu().wait();
        return B;
    }
    Matrix<std::int32_t> to_host(MatrixView<const std::int32_t, Cuda> A) {
        Matrix<std::int32_t> B(A.rows, A.cols);
        start_copy_to_host<int, Cuda>(gpu(), A, B.view());
        finish_copies(gpu());
        gpu().wait();
        return B;
    }
    template <class X>
    Matrix<X, Cuda> to_gpu(const Matrix<X>& A) {
        return copy_to_device<X>(gpu(), A.view());
    }
    template <class X>
    Matrix<X> to_host(const Matrix<X, Cuda>& A) {
        return copy_to_host<X>(gpu(), A.view());
    }
    Records<T, Cuda> to_gpu(const Records<T, Host>& rows) {
        return {to_gpu(rows.last),  to_gpu(rows.size),       to_gpu(rows.change),
                to_gpu(rows.noise), to_gpu(rows.age.view()), to_gpu(rows.votes.view())};
    }
    void expect_same(const Records<T, Cuda>& rows, const Records<T, Host>& expected) {
        EXPECT_TRUE(same_bits<T>(to_host(rows.last).view(), expected.last.view())) << "last";
        EXPECT_TRUE(same_bits<float>(to_host(rows.size).view(), expected.size.view())) << "size";
        EXPECT_TRUE(same_bits<float>(to_host(rows.change).view(), expected.change.view())) << "change";
        EXPECT_TRUE(same_bits<float>(to_host(rows.noise).view(), expected.noise.view())) << "noise";
        const Matrix<std::int32_t> age = to_host(rows.age.view());
        EXPECT_TRUE(std::equal(age.data(), age.data() + age.rows(), expected.age.data())) << "age";
        const Matrix<std::int32_t> votes = to_host(rows.votes.view());
        EXPECT_TRUE(std::equal(votes.data(), votes.data() + votes.rows(), expected.votes.data())) << "votes";
    }
    static EntryRules rules() {
        return {.threshold = 0.5,
                .min_noise = 0.01f,
                .size_up = 1.02f,
                .size_down = 0.97f,
                .change_up = 1.05f,
                .change_down = 0.99f,
                .patience = 3,
                .undecided = 2};
    }
    static constexpr double nan_number = std::numeric_limits<double>::quiet_NaN();

    /// A basis, a column and the noise of its rows; no m − U c is within a hundredth of a threshold.
    struct Column {
        Column(Index m, Index r)
            : U(random_normal<T>(m, r, 1)), x(random_normal<T>(m, 1, 2)), c(r, 1), left(m, 1), noise(m, 1) {
            for (Index k = 0; k < r; ++k) c(k, 0) = 0.3 + 0.1 * static_cast<double>(k);
            for (Index i = 0; i < m; ++i) {
                noise(i, 0) = 0.1f + 0.05f * static_cast<float>(i % 7);
                double low = 0;
                for (Index k = 0; k < r; ++k) low += c(k, 0) * static_cast<double>(U(i, k));
                left(i, 0) = static_cast<double>(x(i, 0)) - low;
                const bool near = std::abs(std::abs(left(i, 0)) - rules().tau(noise(i, 0))) < 0.02;
                if (near) x(i, 0) += T(0.1), left(i, 0) += 0.1;
            }
        }
        Matrix<T> U, x;
        Matrix<double> c, left;  // left: m − U c
        Matrix<float> noise;
    };
    /// |c_k − expected_k| in units of u times what the roundings of r products and a sum were relative to.
    void expect_products(const Matrix<double, Cuda>& found, const Column& of, const std::function<double(Index)>& x,
                         double norm_of_x, const std::vector<double>& before, double unit, const char* what) {
        const Matrix<double> c = to_host(found);
        for (Index k = 0; k < of.U.cols(); ++k) {
            long double sum = before[static_cast<std::size_t>(k)], squares = 0;
            for (Index i = 0; i < of.U.rows(); ++i) {
                const long double entry = of.U(i, k);
                sum += entry * x(i);
                squares += entry * entry;
            }
            const double scale =
                static_cast<double>(std::sqrt(squares)) * norm_of_x + std::abs(static_cast<double>(sum));
            EXPECT_LE(std::abs(c(k, 0) - static_cast<double>(sum)), law * unit * scale) << what << " " << k;
        }
    }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuOnlineSteps, Types);

constexpr std::pair<Index, Index> bases[] = {{1, 1},    {5, 3},     {255, 1},   {256, 8},    {257, 9},
                                             {1023, 4}, {1025, 17}, {70001, 4}, {300000, 3}, {4099, 50}};

TYPED_TEST(GpuOnlineSteps, TheMediansAndQuantilesOfTheFirstColumnsAreThoseOfTheHost) {
    using T = TypeParam;
    for (auto [m, n] :
         {std::pair<Index, Index>{1, 2}, {7, 3}, {257, 4}, {1000, 5}, {70001, 8}, {9001, 32}, {511, 33}}) {
        for (const bool ties : {false, true}) {
            SCOPED_TRACE(fmt::format("{}x{}{}", m, n, ties ? " ties" : ""));
            Matrix<T> M = random_normal<T>(m, n);
            for (Index j = 0; ties && j < n; ++j) {
                for (Index i = 0; i < m; ++i) M(i, j) = std::round(M(i, j)) + T(0);
            }
            const Index step = std::max<Index>(1, m / 100), count = (m + step - 1) / step;
            Records<T, Host> rows = this->host_records(m);
            Records<T, Cuda> on_gpu = this->to_gpu(rows);
            Matrix<T> median = filled<T>(m, 1, std::numeric_limits<T>::quiet_NaN()), R(count, n);
            GpuPadded<T> gM(this->gpu(), M.view()), of_gpu(this->gpu(), m, 1), gR(this->gpu(), count, n);
            EntryRules rules = this->rules();
            rules.min_noise = 0.3f;
            const double squares =
                start_from_median<T>(this->host, M.view(), rules, step, median.view(), rows.view(), R.view());
            const double found =
                start_from_median<T>(this->gpu(), gM.view(), rules, step, of_gpu.view(), on_gpu.view(), gR.view());
            EXPECT_TRUE(same_bits<T>(of_gpu.fetch(this->gpu()).view(), median.view())) << "median";
            EXPECT_TRUE(same_bits<T>(gR.fetch(this->gpu()).view(), R.view())) << "R";
            EXPECT_NEAR(found, squares, 1e-12 * squares);
            this->expect_same(on_gpu, rows);
        }
    }
}

TYPED_TEST(GpuOnlineSteps, TheFirstColumnIsThatOfTheHost) {
    using T = TypeParam;
    for (const Index m : {1, 300, 70001}) {
        const Matrix<T> x = random_normal<T>(m, 1);
        Records<T, Host> rows = this->host_records(m);
        Records<T, Cuda> on_gpu = this->to_gpu(rows);
        Matrix<T> direction(m, 1);
        GpuPadded<T> gx(this->gpu(), x.view()), of_gpu(this->gpu(), m, 1);
        const double norm = start_from_column<T>(this->host, x.view(), 0.25f, direction.view(), rows.view());
        EXPECT_NEAR(start_from_column<T>(this->gpu(), gx.view(), 0.25f, of_gpu.view(), on_gpu.view()), norm,
                    1e-12 * norm);
        EXPECT_LE(difference<T>(of_gpu.fetch(this->gpu()).view(), direction.view(), 1, 1), law);
        this->expect_same(on_gpu, rows);
    }
}

TYPED_TEST(GpuOnlineSteps, QuantilesOfWhatFactorsLeaveAreThoseOfTheHost) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{1, 2}, {257, 9}, {30001, 32}}) {
        for (const Index r : {0, 1, 4}) {
            SCOPED_TRACE(fmt::format("{}x{}, rank {}", m, n, r));
            const Matrix<T> M = random_normal<T>(m, n), A = random_normal<T>(m, r, 2), Vt = random_normal<T>(r, n, 3);
            Records<T, Host> rows = this->host_records(m);
            Records<T, Cuda> on_gpu = this->to_gpu(rows);
            GpuPadded<T> gM(this->gpu(), M.view()), gA(this->gpu(), A.view()), gVt(this->gpu(), Vt.view());
            start_from_factors<T>(this->host, M.view(), A.view(), Vt.view(), this->rules(), rows.view());
            start_from_factors<T>(this->gpu(), gM.view(), gA.view(), gVt.view(), this->rules(), on_gpu.view());
            const Matrix<T> last = this->to_host(on_gpu.last);
            const Matrix<float> size = this->to_host(on_gpu.size), change = this->to_host(on_gpu.change);
            for (Index i = 0; i < m; ++i) {
                // a quantile moves by no more than the entry that moves most, and is rounded to f32
                double most = 0;
                for (Index j = 0; j < n; ++j) {
                    double scale = std::abs(static_cast<double>(M(i, j)));
                    for (Index k = 0; k < r; ++k)
                        scale += std::abs(static_cast<double>(A(i, k)) * static_cast<double>(Vt(k, j)));
                    most = std::max(most, 2 * static_cast<double>(r + 1) * this->u * scale);
                }
                ASSERT_NEAR(last(i, 0), rows.last(i, 0), most);
                ASSERT_NEAR(size(i, 0), rows.size(i, 0),
                            most + 2 * unit_roundoff<float> * static_cast<double>(size(i, 0)));
                ASSERT_NEAR(change(i, 0), rows.change(i, 0),
                            2 * most + 2 * unit_roundoff<float> * static_cast<double>(change(i, 0)));
            }
        }
    }
}

TYPED_TEST(GpuOnlineSteps, ProductsOfABasisAndFourthPowers) {
    using T = TypeParam;
    for (auto [m, r] : bases) {
        SCOPED_TRACE(fmt::format("{}x{}", m, r));
        const typename TestFixture::Column of(m, r);
        GpuPadded<T> U(this->gpu(), of.U.view()), x(this->gpu(), of.x.view());
        Matrix<double, Cuda> c = this->to_gpu(filled<double>(r, 1, this->nan_number));
        project_column<T>(this->gpu(), U.view(), x.view(), c.view());
        const auto entry = [&](Index i) { return static_cast<double>(of.x(i, 0)); };
        // products of f32 are exact in double
        this->expect_products(c, of, entry, frobenius_norm<T>(of.x.view()),
                              std::vector<double>(static_cast<std::size_t>(r), 0.0), unit_roundoff<double>, "c");
        const std::vector<double> fourth = fourth_powers<T>(this->gpu(), U.view()),
                                  expected = fourth_powers<T>(this->host, of.U.view());
        for (std::size_t k = 0; k < fourth.size(); ++k) EXPECT_NEAR(fourth[k], expected[k], 1e-12 * expected[k]);
    }
}

TYPED_TEST(GpuOnlineSteps, RefinesAProjection) {
    using T = TypeParam;
    for (auto [m, r] : bases) {
        for (const bool leaves_out : {false, true}) {
            SCOPED_TRACE(fmt::format("{}x{}{}", m, r, leaves_out ? " leaves out" : ""));
            const typename TestFixture::Column of(m, r);
            GpuPadded<T> U(this->gpu(), of.U.view()), x(this->gpu(), of.x.view()), work(this->gpu(), m, 1);
            GpuPadded<float> noise(this->gpu(), of.noise.view());
            Matrix<double, Cuda> c = this->to_gpu(of.c);
            refine_projection<T>(this->gpu(), U.view(), x.view(), noise.view(), this->rules(), leaves_out, work.view(),
                                 c.view());
            double scale = 0;
            const auto clipped = [&](Index i) {
                return this->rules().clipped(of.left(i, 0), of.noise(i, 0), leaves_out);
            };
            // an entry of m − U c has r + 2 roundings, relative to its terms
            for (Index i = 0; i < m; ++i) {
                double terms = std::abs(static_cast<double>(of.x(i, 0)));
                for (Index k = 0; k < r; ++k) terms += std::abs(of.c(k, 0) * static_cast<double>(of.U(i, k)));
                scale += std::pow(static_cast<double>(r + 2) * terms, 2);
            }
            this->expect_products(c, of, clipped, std::sqrt(scale), {of.c.data(), of.c.data() + r}, this->u, "c");
            work.fetch(this->gpu());
        }
    }
}

TYPED_TEST(GpuOnlineSteps, SeparatesAColumnAsTheHost) {
    using T = TypeParam;
    for (auto [m, r] : bases) {
        SCOPED_TRACE(fmt::format("{}x{}", m, r));
        const typename TestFixture::Column of(m, r);
        Records<T, Host> rows = this->host_records(m);
        for (Index i = 0; i < m; ++i) {
            // changes and sizes are far from what they are compared with, too; a third of the differences stay
            rows.last(i, 0) = i % 3 == 0 ? T(50) : i % 3 == 1 ? static_cast<T>(of.left(i, 0)) : T(0);
            rows.size(i, 0) = i % 2 == 0 ? 1e-3f : 1e3f;
            rows.change(i, 0) = i % 5 == 0 ? 1e-3f : 1e3f;
            rows.noise(i, 0) = of.noise(i, 0);
            rows.age(i, 0) = static_cast<std::int32_t>(i % 4);
            rows.votes(i, 0) = static_cast<std::int32_t>(i % 11 - 3);
        }
        Matrix<T> changed(m, r);
        copy<T>(this->host, of.U.view(), changed.view());
        Records<T, Cuda> on_gpu = this->to_gpu(rows);
        GpuPadded<T> U(this->gpu(), of.U.view()), x(this->gpu(), of.x.view()), gl(this->gpu(), m, 1),
            gs(this->gpu(), m, 1), ge(this->gpu(), m, 1);
        Matrix<T> l(m, 1), s(m, 1), e(m, 1);
        const Matrix<double, Cuda> c = this->to_gpu(of.c);
        Matrix<double> numbers = filled<double>(FirstOfC, 1, this->nan_number);
        Matrix<double, Cuda> numbers_of_gpu = this->to_gpu(numbers);
        Scan good;
        Matrix<int, Cuda> exponents(this->gpu(), 1, 1);
        Matrix<Scan, Cuda> found(this->gpu(), 1, 1);
        scan<T>(this->gpu(), x.view(), Scalar<T>::safe_exponent, exponents.view(), found.view());
        separate_column<T>(this->host, changed.view(), of.c.view(), of.x.view(), this->rules(), {&good, 1, 1},
                           rows.view(), l.view(), s.view(), e.view(), numbers.view());
        separate_column<T>(this->gpu(), U.view(), c.view(), x.view(), this->rules(), found.view(), on_gpu.view(),
                           gl.view(), gs.view(), ge.view(), numbers_of_gpu.view());
        const Matrix<T> found_l = gl.fetch(this->gpu()), found_s = gs.fetch(this->gpu()),
                        found_e = ge.fetch(this->gpu()), found_U = U.fetch(this->gpu());
        const Matrix<std::int32_t> age = this->to_host(on_gpu.age.view()), votes = this->to_host(on_gpu.votes.view());
        double squares = 0;  // of c
        for (Index k = 0; k < r; ++k) squares += of.c(k, 0) * of.c(k, 0);
        for (Index i = 0; i < m; ++i) {
            double terms = std::abs(static_cast<double>(of.x(i, 0)));
            for (Index k = 0; k < r; ++k) terms += std::abs(of.c(k, 0) * static_cast<double>(of.U(i, k)));
            const double bound = 2 * static_cast<double>(r + 2) * this->u * terms;
            // s and e are m − l or exact zeros, of the same rows
            ASSERT_NEAR(found_l(i, 0), l(i, 0), bound) << i;
            ASSERT_EQ(found_s(i, 0) == 0, s(i, 0) == 0) << i;
            ASSERT_EQ(found_e(i, 0) == 0, e(i, 0) == 0) << i;
            ASSERT_NEAR(found_s(i, 0), s(i, 0), bound) << i;
            ASSERT_NEAR(found_e(i, 0), e(i, 0), bound) << i;
            ASSERT_EQ(age(i, 0), rows.age(i, 0)) << i;
            ASSERT_EQ(votes(i, 0), rows.votes(i, 0)) << i;
            for (Index k = 0; k < r; ++k) {
                const double rounding = 2 * this->u * std::abs(static_cast<double>(changed(i, k)));
                ASSERT_NEAR(found_U(i, k), changed(i, k), bound * of.c(k, 0) / squares + rounding) << i << " " << k;
            }
        }
        EXPECT_TRUE(same_bits<float>(this->to_host(on_gpu.size).view(), rows.size.view()));
        EXPECT_TRUE(same_bits<float>(this->to_host(on_gpu.change).view(), rows.change.view()));
        EXPECT_TRUE(same_bits<float>(this->to_host(on_gpu.noise).view(), rows.noise.view()));
        const std::vector<double> known = read_numbers<Cuda>(this->gpu(), numbers_of_gpu.view());
        EXPECT_EQ(known[BadRow], -1);
        EXPECT_EQ(known[SparseCount], numbers(SparseCount, 0));
        EXPECT_EQ(known[ReplacedCount], numbers(ReplacedCount, 0));
        if (m >= 255) EXPECT_GT(known[ReplacedCount], 0);
        EXPECT_NEAR(known[NoiseSquares], numbers(NoiseSquares, 0), 1e-12 * numbers(NoiseSquares, 0));

        // e := r where that is asked for
        const Matrix<T> before = ge.fetch(this->gpu());
        take_whole_difference<T>(this->gpu(), known[SparseCount], on_gpu.last.view(), numbers_of_gpu.view(), ge.view());
        EXPECT_TRUE(same_bits<T>(ge.fetch(this->gpu()).view(), before.view()));
        take_whole_difference<T>(this->gpu(), known[SparseCount] - 1, on_gpu.last.view(), numbers_of_gpu.view(),
                                 ge.view());
        EXPECT_TRUE(same_bits<T>(ge.fetch(this->gpu()).view(), this->to_host(on_gpu.last).view()));
    }
}

TYPED_TEST(GpuOnlineSteps, OfAColumnWithABadEntryNothingIsKept) {
    using T = TypeParam;
    const Index m = 5000, r = 3;
    typename TestFixture::Column of(m, r);
    of.x(4321, 0) = std::numeric_limits<T>::infinity();
    Records<T, Host> rows = this->host_records(m);
    Records<T, Cuda> on_gpu = this->to_gpu(rows);
    GpuPadded<T> U(this->gpu(), of.U.view()), x(this->gpu(), of.x.view()), l(this->gpu(), m, 1), s(this->gpu(), m, 1),
        e(this->gpu(), m, 1);
    const Matrix<double, Cuda> c = this->to_gpu(of.c);
    Matrix<double, Cuda> numbers = this->to_gpu(filled<double>(FirstOfC, 1, this->nan_number));
    Matrix<int, Cuda> exponents(this->gpu(), 1, 1);
    Matrix<Scan, Cuda> found(this->gpu(), 1, 1);
    scan<T>(this->gpu(), x.view(), Scalar<T>::safe_exponent, exponents.view(), found.view());
    separate_column<T>(this->gpu(), U.view(), c.view(), x.view(), this->rules(), found.view(), on_gpu.view(), l.view(),
                       s.view(), e.view(), numbers.view());
    EXPECT_EQ(read_numbers<Cuda>(this->gpu(), numbers.view())[BadRow], 4321);
    this->expect_same(on_gpu, rows);
}

TYPED_TEST(GpuOnlineSteps, RemovesAProjectionAndRotatesABasis) {
    using T = TypeParam;
    for (auto [m, r] : bases) {
        if (m < 4 * (r + 1)) continue;
        SCOPED_TRACE(fmt::format("{}x{}", m, r));
        // an orthonormal basis, followed by e
        Matrix<T> all = random_normal<T>(m, r + 1, 1);
        const QR<T> f = qr<T, Host>(this->host, all.view().col_block({0, r}));
        copy<T>(this->host, f.form_q(this->host).view(), all.view().col_block({0, r}));
        GpuPadded<T> on_gpu(this->gpu(), all.view());
        const MatrixView<T, Cuda> U = on_gpu.view().col_block({0, r}), e = on_gpu.view().col_block({r, r + 1});
        Matrix<double> c = filled<double>(r, 1, 1), numbers = filled<double>(FirstOfC, 1, this->nan_number);
        Matrix<double, Cuda> c_of_gpu = this->to_gpu(c), numbers_of_gpu = this->to_gpu(numbers);
        const double norm = frobenius_norm<T>(all.view().col_block({r, r + 1}));
        const MatrixView<T> e_of_host = all.view().col_block({r, r + 1});
        remove_projection<T>(this->gpu(), U, e, c_of_gpu.view(), numbers_of_gpu.view());
        remove_projection<T>(this->host, all.view().col_block({0, r}), e_of_host, c.view(), numbers.view());
        const Matrix<T> left = on_gpu.fetch(this->gpu());
        const Matrix<double> found = this->to_host(c_of_gpu);
        // the host sums runs of 4096 rows in T
        const double unit = this->u * std::sqrt(static_cast<double>(std::min<Index>(m, 4096)));
        EXPECT_LE(difference<T>(left.view().col_block({r, r + 1}), e_of_host, r + 1, norm) * this->u / unit, law);
        for (Index k = 0; k < r; ++k) EXPECT_NEAR(found(k, 0), c(k, 0), law * unit * norm) << k;
        EXPECT_NEAR(this->to_host(numbers_of_gpu)(LeftSquares, 0), numbers(LeftSquares, 0), law * unit * norm * norm);

        for (const Index kept : {Index(1), r}) {
            const Matrix<T> W = random_normal<T>(r + 1, kept, 7);
            GpuPadded<T> basis(this->gpu(), left.view());
            rotate_basis<T>(this->gpu(), W.view(), basis.view());
            const Matrix<T> rotated = basis.fetch(this->gpu()), expected = product<T>(left.view(), W.view());
            EXPECT_LE(difference<T>(rotated.view().col_block({0, kept}), expected.view(), r + 1,
                                    frobenius_norm<T>(left.view()) * frobenius_norm<T>(W.view())),
                      law)
                << kept;
        }
    }
}

TYPED_TEST(GpuOnlineSteps, BytesAreColumnsAndBack) {
    using T = TypeParam;
    for (const std::size_t m : {std::size_t(1), std::size_t(256), std::size_t(100001)}) {
        std::vector<std::uint8_t> bytes(m), back(m, 7);
        for (std::size_t i = 0; i < m; ++i) bytes[i] = static_cast<std::uint8_t>(i);
        Matrix<T> expected(static_cast<Index>(m), 1);
        column_of_bytes<T>(this->host, bytes, expected.view());
        GpuPadded<T> x(this->gpu(), static_cast<Index>(m), 1);
        column_of_bytes<T>(this->gpu(), bytes, x.view());
        EXPECT_TRUE(same_bits<T>(x.fetch(this->gpu()).view(), expected.view()));
        bytes_of_column<T>(this->gpu(), x.view(), back);
        EXPECT_EQ(back, bytes);
        for (Index i = 0; i < expected.rows(); ++i) expected(i, 0) = T(-1.7) * expected(i, 0);
        GpuPadded<T> beyond(this->gpu(), expected.view());
        bytes_of_column<T>(this->gpu(), beyond.view(), back);
        bytes_of_column<T>(this->host, expected.view(), bytes);
        EXPECT_EQ(back, bytes);
    }
}

// ---- Streams --------------------------------------------------------------------------------------------------------

struct Troubles {
    bool light_at_first = false;  // changes from the first frame on, and not from frame 40
    bool guest = false;           // another direction, from frame 60 to 120
    Index stands = Index(1) << 20, negative = Index(1)
                                              << 20;  // the frames from which the object stands, and 1 − x comes
};

/// A background whose light changes, noise, and an object of a twentieth of the rows that moves.
template <class T>
class Scene {
public:
    explicit Scene(Index rows, Troubles with = {})
        : rows_(rows), with_(with), parts_(random_normal<double>(rows, 2, 11)) {}
    static constexpr double noise = 0.004;
    std::vector<T> frame(Index t) const {
        const Matrix<double> z = random_normal<double>(rows_, 1, 100 + static_cast<std::uint64_t>(t));
        const double time = static_cast<double>(t),
                     light = t < 40 && !with_.light_at_first ? 1 : 1 + 0.05 * std::sin((time - 40) / 9),
                     guest = with_.guest && t >= 60 && t < 120 ? 0.015 * std::cos(time / 4) : 0;
        const Index place = rows_ / 37 * std::min(t, with_.stands);
        std::vector<T> m;
        for (Index i = 0; i < rows_; ++i) {
            const double object = (i + place) % rows_ < rows_ / 20 ? 0.4 : 0;
            const double x = (0.5 + 0.1 * parts_(i, 0)) * light + guest * parts_(i, 1) + object + noise * z(i, 0);
            m.push_back(static_cast<T>(t < with_.negative ? x : 1 - x));
        }
        return m;
    }

private:
    Index rows_;
    Troubles with_;
    Matrix<double> parts_;
};

template <class T>
class GpuOnlineRobustPca : public OnGpu {
protected:
    struct Parts {
        std::vector<T> l, s;
    };
    Parts next(OnlineRobustPca<T, Cuda>& pca, const std::vector<T>& m) {
        const MatrixView<const T> column(m.data(), static_cast<Index>(m.size()), 1);
        GpuPadded<T> of_m(gpu(), column), of_l(gpu(), column.rows, 1), of_s(gpu(), column.rows, 1);
        pca.next(gpu(), of_m.view(), of_l.view(), of_s.view());
        EXPECT_TRUE(same_bits<T>(of_m.fetch(gpu()).view(), column)) << "m";
        const Matrix<T> l = of_l.fetch(gpu()), s = of_s.fetch(gpu());
        return {{l.data(), l.data() + l.rows()}, {s.data(), s.data() + s.rows()}};
    }
    Parts next(OnlineRobustPca<T>& pca, const std::vector<T>& m) {
        Parts parts{std::vector<T>(m.size()), std::vector<T>(m.size())};
        pca.next(host, m, parts.l, parts.s);
        return parts;
    }

    /// Frames of a scene by both devices. Each frame commits some r + 10 roundings to U on either, relative to the
    /// least of its directions, which add up. In f32 a size may round to the other side of a threshold or of a
    /// quantile, which then moves by a step of 5%: fewer than 0.2% of S. A pursuit that ends at 1e-4 of ‖M‖, 1.2% of
    /// ‖z‖, may do so an iteration later: `by_pursuit` allows l four times as much. Gives the ranks.
    std::vector<Index> expect_same(Index rows, OnlineRobustPcaOptions options, Index frames, Troubles with,
                                   bool by_pursuit = false) {
        const Scene<T> scene(rows, with);
        OnlineRobustPca<T, Cuda> pca(rows, options);
        OnlineRobustPca<T> expected(rows, options);
        const bool exact = std::is_same_v<T, double> && !by_pursuit;
        const double noise = Scene<T>::noise * std::sqrt(static_cast<double>(rows));
        std::vector<Index> ranks;
        double min_share = 1;
        for (Index t = 1; t <= frames; ++t) {
            const std::vector<T> m = scene.frame(t);
            const Parts found = next(pca, m), parts = next(expected, m);
            EXPECT_EQ(pca.columns(), t);
            if (pca.rank() != expected.rank()) {
                ADD_FAILURE() << "rank " << pca.rank() << " and not " << expected.rank() << " in frame " << t;
                return ranks;
            }
            const std::vector<double>&sigma = pca.singular_values(), &sigma_of_host = expected.singular_values();
            min_share = std::min(min_share, sigma_of_host.back() / sigma_of_host.front());
            double squares = 0, size = 0;
            Index others = 0;
            for (std::size_t i = 0; i < m.size(); ++i) {
                squares += std::pow(static_cast<double>(found.l[i] - parts.l[i]), 2);
                size += std::pow(static_cast<double>(m[i]), 2);
                others += (found.s[i] != 0) != (parts.s[i] != 0);
                if (found.s[i] != 0) {
                    EXPECT_EQ(found.s[i], m[i] - found.l[i]);
                }
            }
            const double units = law * static_cast<double>((pca.rank() + 10) * t) * unit_roundoff<T> / min_share;
            EXPECT_LE(std::sqrt(squares), units * std::sqrt(size) + (by_pursuit ? 0.05 * noise : 0))
                << "l of frame " << t;
            EXPECT_LE(others, exact ? 0 : rows / 500) << "S of frame " << t;
            for (std::size_t k = 0; k < sigma.size(); ++k)
                EXPECT_NEAR(sigma[k], sigma_of_host[k], (units + (by_pursuit ? 1e-3 : 0)) * sigma_of_host[0]);
            if (testing::Test::HasFailure()) return ranks;
            ranks.push_back(pca.rank());
        }
        const Matrix<float> tracked = copy_to_host<float>(gpu(), pca.noise());
        double sum = 0, sum_of_host = 0;
        for (const float value : expected.noise()) sum_of_host += static_cast<double>(value);
        for (Index i = 0; i < rows; ++i) sum += static_cast<double>(tracked(i, 0));
        EXPECT_NEAR(sum, sum_of_host, (exact ? 1e-6 : 1e-2) * sum_of_host);

        // each frame rounds U once, since it was made orthonormal last
        const Matrix<T> U = copy_to_host<T>(gpu(), pca.basis());
        EXPECT_LE(orthogonality_error<T>(U.view(), U.cols()), law * static_cast<double>(std::min<Index>(frames, 256)));
        return ranks;
    }
};
TYPED_TEST_SUITE(GpuOnlineRobustPca, Types);

TYPED_TEST(GpuOnlineRobustPca, AMovingSceneIsThatOfTheHost) {
    // beyond the frame at which U is made orthonormal anew
    this->expect_same(quick() ? 3001 : 20011, {}, quick() ? 80 : 270, {});
    this->expect_same(3001, {}, 60, {.light_at_first = true}, /*by_pursuit=*/true);
}

TYPED_TEST(GpuOnlineRobustPca, TheRankGrowsAndFallsAsOnTheHost) {
    const std::vector<Index> ranks =
        this->expect_same(3001, {.max_rank = 5, .forget = 0.05, .threshold = 0.06}, 220, {.guest = true});
    ASSERT_EQ(ranks.size(), 220u);
    EXPECT_EQ(ranks[50], 1);
    EXPECT_EQ(ranks[100], 2) << "with the guest";
    EXPECT_EQ(ranks[219], 1) << "once it is forgotten";
}

TYPED_TEST(GpuOnlineRobustPca, WhatStandsIsForgottenAsOnTheHost) {
    this->expect_same(2003, {.forget = 0.05, .start = 8}, 100, {.stands = 40});
    this->expect_same(2003, {.forget = 0, .start = 1}, 60, {.stands = 40});
}

TYPED_TEST(GpuOnlineRobustPca, AnotherSceneIsTakenAsOnTheHost) {
    const std::vector<Index> ranks = this->expect_same(1500, {.max_rank = 3, .start = 8}, 60, {.negative = 31});
    ASSERT_EQ(ranks.size(), 60u);
    EXPECT_GT(ranks[31], ranks[20]);
}

TYPED_TEST(GpuOnlineRobustPca, RefusesWhatIsNotFiniteAndTakesNothingOfIt) {
    using T = TypeParam;
    const Index rows = 999;
    const Scene<T> scene(rows);
    OnlineRobustPca<T, Cuda> pca(rows, {.start = 6}), undisturbed(rows, {.start = 6});
    EXPECT_THROW(this->next(pca, std::vector<T>(998)), InvalidArgument);
    for (Index t = 1; t <= 20; ++t) {
        for (const T wrong : {std::numeric_limits<T>::quiet_NaN(), -std::numeric_limits<T>::infinity()}) {
            std::vector<T> bad = scene.frame(t);
            bad[700] = bad[800] = wrong;
            try {
                this->next(pca, bad);
                ADD_FAILURE() << "it was taken";
            } catch (const NonFiniteEntry& refused) {
                EXPECT_EQ(refused.row, 700);
                EXPECT_EQ(refused.col, 0);
            }
            EXPECT_EQ(pca.columns(), t - 1);
        }
        const auto found = this->next(pca, scene.frame(t)), expected = this->next(undisturbed, scene.frame(t));
        EXPECT_EQ(found.l, expected.l);
        EXPECT_EQ(found.s, expected.s);
    }
    EXPECT_EQ(pca.singular_values(), undisturbed.singular_values());
}

TYPED_TEST(GpuOnlineRobustPca, FramesOfBytesAreColumns) {
    using T = TypeParam;
    const Index rows = 5000;
    const Scene<T> scene(rows);
    OnlineRobustPca<T, Cuda> pca(rows, {.start = 4}), same(rows, {.start = 4});
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(rows)), l(bytes.size(), 7), s(bytes.size(), 7);
    std::vector<T> m(bytes.size());
    for (Index t = 1; t <= 12; ++t) {
        const std::vector<T> frame = scene.frame(t);
        for (std::size_t i = 0; i < m.size(); ++i) {
            bytes[i] = byte_of_value(frame[i]);
            m[i] = value_of_byte<T>(bytes[i]);
        }
        const auto expected = this->next(same, m);
        const bool asked = t % 2 == 0;
        if (asked) {
            pca.next_frame(this->gpu(), bytes, l, s);
        } else {
            pca.next_frame(this->gpu(), bytes, {}, {});
        }
        const Matrix<T> low = copy_to_host<T>(this->gpu(), pca.frame_low_rank()),
                        sparse = copy_to_host<T>(this->gpu(), pca.frame_sparse()),
                        residual = copy_to_host<T>(this->gpu(), pca.residual());
        for (std::size_t i = 0; i < m.size(); ++i) {
            const Index row = static_cast<Index>(i);
            ASSERT_EQ(low(row, 0), expected.l[i]);
            ASSERT_EQ(sparse(row, 0), expected.s[i]);
            ASSERT_EQ(residual(row, 0), m[i] - expected.l[i]);
            if (asked) {
                ASSERT_EQ(l[i], byte_of_value(expected.l[i]));
                ASSERT_EQ(s[i], byte_of_value(expected.s[i]));
            }
        }
    }
    EXPECT_THROW(pca.next_frame(this->gpu(), std::vector<std::uint8_t>(4999), {}, {}), InvalidArgument);
    EXPECT_THROW(pca.next_frame(this->gpu(), bytes, std::span(l).first(9), {}), InvalidArgument);
}

TYPED_TEST(GpuOnlineRobustPca, SameBitsTwice) {
    using T = TypeParam;
    const Scene<T> scene(30011);
    const auto last = [&] {
        OnlineRobustPca<T, Cuda> pca(30011, {.start = 8});
        typename TestFixture::Parts parts;
        for (Index t = 1; t <= 30; ++t) parts = this->next(pca, scene.frame(t));
        parts.l.insert(parts.l.end(), parts.s.begin(), parts.s.end());
        return parts.l;
    };
    EXPECT_EQ(last(), last());
}

TYPED_TEST(GpuOnlineRobustPca, BlackAndASingleRow) {
    using T = TypeParam;
    const T law = 16 * std::numeric_limits<T>::epsilon();
    for (const Index rows : {1, 5}) {
        OnlineRobustPca<T, Cuda> pca(rows, {.start = 3});
        OnlineRobustPca<T> of_host(rows, {.start = 3});
        const auto step = [&](T x) {
            const std::vector<T> m(static_cast<std::size_t>(rows), x);
            const auto parts = this->next(pca, m), expected = this->next(of_host, m);
            for (std::size_t i = 0; i < m.size(); ++i) {
                EXPECT_NEAR(parts.l[i], expected.l[i], law);
                EXPECT_NEAR(parts.s[i], expected.s[i], law);
            }
            EXPECT_EQ(pca.rank(), of_host.rank());
        };
        step(0);
        EXPECT_EQ(pca.rank(), 0);
        for (int t = 0; t < 6; ++t) step(T(0.5));
        EXPECT_EQ(pca.rank(), 1);
    }
}

TYPED_TEST(GpuOnlineRobustPca, StopsWhenItIsAskedTo) {
    using T = TypeParam;
    OnlineRobustPca<T, Cuda> pca(100);
    this->gpu().request_stop();
    EXPECT_THROW(this->next(pca, std::vector<T>(100)), Interrupted);
    this->gpu().clear_stop();
    this->next(pca, std::vector<T>(100));
    EXPECT_EQ(pca.columns(), 1);
}

}  // namespace
}  // namespace quoin::test
