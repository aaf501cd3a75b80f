// The full T on the GPU: each primitive against the host's, and the law of T, S and blocks of Q.

#include <array>

#include "cases.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"
#include "quoin/study.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuFullT : public OnGpu {
protected:
    static constexpr double u = unit_roundoff<T>;

    void expect_close(const Matrix<T>& X, const Matrix<T>& Y, Index k, double scale, const char* what) {
        ASSERT_TRUE(X.rows() == Y.rows() && X.cols() == Y.cols()) << what;
        if (X.view().empty()) return;
        EXPECT_LE(difference<T>(X.view(), Y.view(), std::max<Index>(k, 1), scale), law) << what;
    }
    Matrix<T> on_host(const Matrix<T, Cuda>& A) { return copy_to_host<T>(gpu(), A.view()); }

    Options options(FullTRoute route, bool keep_s, Index panel_width) {
        Options options = with(Method::BlockedHouseholder);
        options.q = FullT{keep_s, route};
        options.method.set_panel_width(panel_width);
        return options;
    }

    /// Panels factored on the host.
    QR<T, Cuda> by_host(Context<Cuda>& g, const Matrix<T, Cuda>& A, const Options& options) {
        Matrix<T, Cuda> W(g, A.rows(), A.cols());
        copy<T>(g, A.view(), W.view());
        const Plan plan = study::plan_with_panels_on_host<T>(g, A.rows(), A.cols(), options);
        return qr<T, Cuda>(g, std::move(W), plan);
    }

    void expect_full_t_of_every_class(bool panels_on_host) {
        for (enum Gallery matrix_class : gallery())
            for (FullTRoute route : {FullTRoute::Recurrence, FullTRoute::Joined}) {
                SCOPED_TRACE(to_string(matrix_class) + " " + to_string(route));
                const Matrix<T> A = generate<T>(matrix_class, 200, 150);
                const auto gA = copy_to_device<T>(gpu(), A.view());
                const Options options = this->options(route, true, 64);
                expect_full_t(panels_on_host ? by_host(gpu(), gA, options) : qr<T, Cuda>(gpu(), gA.view(), options),
                              A.view());
            }
    }

    /// V, T and S of the GPU say one Q: T⁻¹ + T⁻ᵀ = VᵀV multiplied out, T + Tᵀ = T VᵀV Tᵀ, S = V Tᵀ, and QᵀA = R.
    void expect_full_t(const QR<T, Cuda>& f, MatrixView<const T> A) {
        const Index m = f.rows(), n = f.cols(), k = std::min(m, n);
        const Matrix<T> V = on_host(f.v(gpu())), Tf = on_host(f.t(gpu())), S = on_host(f.s(gpu()));
        const Matrix<T> tau = on_host(f.tau(gpu()));
        for (Index j = 0; j < k; ++j) {
            for (Index i = j + 1; i < k; ++i) ASSERT_EQ(Tf(i, j), T(0));
            for (Index i = 0; i < j; ++i) ASSERT_EQ(S(i, j), T(0));
            ASSERT_EQ(Tf(j, j), tau(j, 0));
            ASSERT_EQ(S(j, j), tau(j, 0));
        }
        if (k == 0) return;
        // in double: S = V Tᵀ, and the departure of I − V T Vᵀ from orthogonality through SᵀS = T VᵀV Tᵀ
        const Matrix<double> Vd = widened(V), Td = widened(Tf), Sd = widened(S);
        Matrix<double> VTt(m, k), Tt(k, k), G(k, k), D(k, k);
        transpose<double>(host, Td.view(), Tt.view());
        copy<double>(host, Vd.view(), VTt.view());
        multiply_triangle<double>(host, Side::Right, Triangle::Upper, Op::Transpose, Td.view(), VTt.view());
        EXPECT_LE(distance(Sd, VTt), law * double(k) * u * frobenius_norm<double>(VTt.view())) << "S = V Tᵀ";
        multiply_transposed<double>(host, VTt.view(), VTt.view(), G.view());
        for (Index j = 0; j < k; ++j) {
            for (Index i = 0; i < k; ++i) D(i, j) = Td(i, j) + Tt(i, j);
        }
        EXPECT_LE(distance(G, D),
                  law * double(k) * u * frobenius_norm<double>(Vd.view()) * frobenius_norm<double>(VTt.view()))
            << "T + Tᵀ = T VᵀV Tᵀ";
        GpuPadded<T> X(gpu(), A);
        f.apply_q(gpu(), Side::Left, Op::Transpose, X.view());
        const Matrix<T> R = on_host(f.r(gpu()));
        Matrix<T> R0 = filled<T>(m, n, 0);
        for (Index j = 0; j < n; ++j) std::copy_n(R.view().at(0, j), k, R0.view().at(0, j));
        expect_close(X.fetch(gpu()), R0, k, frobenius_norm<T>(A), "QᵀA = R");
        f.apply_q(gpu(), Side::Left, Op::None, X.view());
        expect_close(X.fetch(gpu()), copy<T>(A), 2 * k, frobenius_norm<T>(A), "QR = A");
    }
    static Matrix<double> widened(const Matrix<T>& A) {
        Matrix<double> B(A.rows(), A.cols());
        std::copy_n(A.data(), A.rows() * A.cols(), B.data());
        return B;
    }
    static double distance(const Matrix<double>& A, const Matrix<double>& B) {
        double sum = 0;
        for (Index i = 0; i < A.rows() * A.cols(); ++i) {
            sum += (A.data()[i] - B.data()[i]) * (A.data()[i] - B.data()[i]);
        }
        return std::sqrt(sum);
    }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuFullT, Types);

TYPED_TEST(GpuFullT, MultiplyTriangle) {
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (Index n : {1, 33, 200, 1025, 2500})
        for (Index lines : {1, 70})
            for (Side side : {Side::Left, Side::Right})
                for (Triangle triangle : {Triangle::UnitLower, Triangle::Lower, Triangle::Upper})
                    for (Op op : {Op::None, Op::Transpose}) {
                        if (quick() && n > 200) continue;
                        // what is not the triangle is not read
                        Matrix<T> A = random_normal<T>(n, n, 1);
                        for (Index j = 0; j < n; ++j) {
                            for (Index i = 0; i < n; ++i) {
                                if (triangle == Triangle::Upper ? i > j : triangle == Triangle::Lower ? i < j : i <= j)
                                    A(i, j) = nan;
                            }
                        }
                        const bool left = side == Side::Left;
                        Matrix<T> X = left ? random_normal<T>(n, lines, 2) : random_normal<T>(lines, n, 2);
                        GpuPadded<T> gA(this->gpu(), A.view()), gX(this->gpu(), X.view());
                        const double scale = std::sqrt(double(n)) * frobenius_norm<T>(X.view());
                        multiply_triangle<T>(this->host, side, triangle, op, A.view(), X.view());
                        multiply_triangle<T>(this->gpu(), side, triangle, op, gA.view(), gX.view());
                        this->expect_close(gX.fetch(this->gpu()), X, 1, std::sqrt(double(n)) * scale,
                                           "multiply_triangle");
                    }
}

TYPED_TEST(GpuFullT, MultiplyTransposedAccumulates) {
    using T = TypeParam;
    for (auto [m, n, p] : {std::array<Index, 3>{1, 1, 1}, {50, 7, 60}, {5000, 192, 100}, {9001, 3, 50}}) {
        const Matrix<T> A = random_normal<T>(m, n, 1), B = random_normal<T>(m, p, 2);
        Matrix<T> C = random_normal<T>(n, p, 3);
        GpuPadded<T> gA(this->gpu(), A.view()), gB(this->gpu(), B.view()), gC(this->gpu(), C.view());
        const double scale = frobenius_norm<T>(C.view()) +
                             frobenius_norm<T>(A.view()) * frobenius_norm<T>(B.view()) / std::sqrt(double(n));
        multiply_transposed<T>(this->host, A.view(), B.view(), C.view(), true);
        multiply_transposed<T>(this->gpu(), gA.view(), gB.view(), gC.view(), true);
        this->expect_close(gC.fetch(this->gpu()), C, 1, scale, "C + AᵀB");
    }
}

/// V in its place, but for its triangle.
TYPED_TEST(GpuFullT, ApplyPanelOfALargeV) {
    using T = TypeParam;
    auto& g = this->gpu();
    if (quick()) GTEST_SKIP();
    const Index m = 30001, k = 192, p = 37;
    Matrix<T> V = random_normal<T>(m, k, 1), Tf(k, k);
    factor_panel<T>(this->host, V.view(), Tf.view());
    GpuPadded<T> gV(g, V.view()), gT(g, Tf.view());
    for (Op op : {Op::None, Op::Transpose}) {
        Matrix<T> C = random_normal<T>(m, p, 2);
        GpuPadded<T> gC(g, C.view());
        const double norm = frobenius_norm<T>(C.view());
        apply_panel<T>(this->host, op, V.view(), Tf.view(), C.view());
        apply_panel<T>(g, op, gV.view(), gT.view(), gC.view());
        this->expect_close(gC.fetch(g), C, k, norm, "op(H) C");
    }
}

TYPED_TEST(GpuFullT, ApplyAndExtend) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (auto [m, k, p, before] :
         {std::array<Index, 4>{40, 8, 5, 12}, {300, 64, 70, 0}, {2100, 192, 33, 192}, {5000, 32, 0, 400}}) {
        SCOPED_TRACE(shape_name(m, k));
        Matrix<T> V = random_normal<T>(m, k, 1), Tf(k, k), S(m, k);
        factor_panel<T>(this->host, V.view(), Tf.view());
        // S = V Tᵀ
        copy<T>(this->host, V.view(), S.view());
        set_root<T>(this->host, S.view());
        multiply_triangle<T>(this->host, Side::Right, Triangle::Upper, Op::Transpose, Tf.view(), S.view());
        Matrix<T> C = random_normal<T>(m, p, 2), S1 = random_normal<T>(m, before, 3);
        Matrix<T> T12 = filled<T>(before, k, std::numeric_limits<T>::quiet_NaN());
        GpuPadded<T> gV(g, V.view()), gT(g, Tf.view()), gS(g, S.view()), gC(g, C.view()), gS1(g, S1.view());
        GpuPadded<T> gT12(g, before, k);
        const double norm_C = frobenius_norm<T>(C.view()), norm_S = frobenius_norm<T>(S1.view());
        apply_and_extend<T>(this->host, V.view(), Tf.view(), C.view(), {S.view(), S1.view(), T12.view()});
        apply_and_extend<T>(g, gV.view(), gT.view(), gC.view(), {gS.view(), gS1.view(), gT12.view()});
        this->expect_close(gC.fetch(g), C, k, norm_C, "C");
        this->expect_close(gS1.fetch(g), S1, k, norm_S, "S1");
        this->expect_close(gT12.fetch(g), T12, k, 2 * norm_S, "T12");
    }
}

TYPED_TEST(GpuFullT, ApplyAndFactorNextWithS) {
    using T = TypeParam;
    auto& g = this->gpu();
    const Index m = 900, k = 64, next = 64, before = 128, p = 300;
    Matrix<T> V = random_normal<T>(m, k, 1), Tf(k, k), S(m, k);
    factor_panel<T>(this->host, V.view(), Tf.view());
    copy<T>(this->host, V.view(), S.view());
    set_root<T>(this->host, S.view());
    multiply_triangle<T>(this->host, Side::Right, Triangle::Upper, Op::Transpose, Tf.view(), S.view());
    Matrix<T> C = random_normal<T>(m, p, 2), S1 = random_normal<T>(m, before, 3), T12(before, k), T2(next, next);
    GpuPadded<T> gV(g, V.view()), gT(g, Tf.view()), gS(g, S.view()), gC(g, C.view()), gS1(g, S1.view());
    GpuPadded<T> gT12(g, before, k), gT2(g, next, next);
    const double norm_C = frobenius_norm<T>(C.view()), norm_S = frobenius_norm<T>(S1.view());
    apply_and_factor_next<T>(this->host, V.view(), Tf.view(), C.view(), T2.view(), {S.view(), S1.view(), T12.view()});
    apply_and_factor_next<T>(g, gV.view(), gT.view(), gC.view(), gT2.view(), {gS.view(), gS1.view(), gT12.view()});
    this->expect_close(gC.fetch(g), C, 2 * k, 8 * norm_C, "C and the next panel");
    this->expect_close(gS1.fetch(g), S1, k, norm_S, "S1");
    this->expect_close(gT12.fetch(g), T12, k, 2 * norm_S, "T12");
    this->expect_close(gT2.fetch(g), T2, 2 * k, 8 * frobenius_norm<T>(T2.view()), "T of the next panel");
}

TYPED_TEST(GpuFullT, ShapesAndRoutes) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{0, 3},
                        {3, 0},
                        {1, 1},
                        {5, 9},
                        {70, 70},
                        {129, 31},
                        {300, 260},
                        {700, 500},
                        {17000, 150},   // panels of 64: tall ones by reconstruction
                        {2500, 2300}})  // products in more than one block
        for (Index nb : {0, 64})
            for (FullTRoute route : {FullTRoute::Recurrence, FullTRoute::Joined})
                for (bool keep_s : {false, true}) {
                    if (quick() && m * n > 10000) continue;
                    if (m > 2000 && nb > 0 && n > 2000) continue;
                    SCOPED_TRACE(shape_name(m, n) + " " + std::to_string(nb) + " " + to_string(route) +
                                 (keep_s ? ", S" : ""));
                    const Matrix<T> A = random_normal<T>(m, n);
                    const auto gA = copy_to_device<T>(this->gpu(), A.view());
                    const auto f = qr<T, Cuda>(this->gpu(), gA.view(), this->options(route, keep_s, nb));
                    this->expect_full_t(f, A.view());
                }
}

TYPED_TEST(GpuFullT, Gallery) { this->expect_full_t_of_every_class(false); }

/// Panels that the host factors, with one T and with one a panel.
TYPED_TEST(GpuFullT, HostPanelsShapes) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{0, 3},
                        {3, 0},
                        {1, 1},
                        {5, 9},
                        {70, 70},
                        {129, 31},
                        {40, 90},
                        {300, 260},
                        {700, 500},
                        {9001, 300}})
        for (Index nb : {0, 1, 31, 64}) {
            if ((quick() && m * n > 10000) || (nb == 1 && m > 300)) continue;
            SCOPED_TRACE(shape_name(m, n) + " " + std::to_string(nb));
            const Matrix<T> A = random_normal<T>(m, n);
            const auto gA = copy_to_device<T>(this->gpu(), A.view());
            for (FullTRoute route : {FullTRoute::Recurrence, FullTRoute::Joined}) {
                const auto f =
                    this->by_host(this->gpu(), gA, this->options(route, route == FullTRoute::Recurrence, nb));
                EXPECT_TRUE(f.plan().householder().panels_on_host);
                this->expect_full_t(f, A.view());
            }
            Options panels = with(Method::Auto, QForm::Reflectors);
            panels.method.set_panel_width(nb);
            const auto f = this->by_host(this->gpu(), gA, panels);
            EXPECT_EQ(f.plan().method, Method::BlockedHouseholder);
            this->expect_full_t(f, A.view());
            panels.method = CAQR{nb};  // by TSQR
            this->expect_full_t(this->by_host(this->gpu(), gA, panels), A.view());
        }
}

TYPED_TEST(GpuFullT, HostPanelsGallery) { this->expect_full_t_of_every_class(true); }

/// R of two backward stable factorizations: ‖R − R'‖ <= √2 κ(A) ‖ΔA‖ up to signs, κ = (√3 + 1) / (√3 − 1) for normal
/// entries and three times as many rows as columns.
TYPED_TEST(GpuFullT, HostPanelsGiveTheDevicesR) {
    using T = TypeParam;
    for (Index n : {40, 300, 1000}) {
        if (quick() && n > 100) continue;
        const Matrix<T> A = random_normal<T>(3 * n, n);
        const auto gA = copy_to_device<T>(this->gpu(), A.view());
        Options options = with(Method::BlockedHouseholder, QForm::Reflectors);
        options.method.set_panel_width(64);
        const Matrix<T> R = this->on_host(qr<T, Cuda>(this->gpu(), gA.view(), options).r(this->gpu()));
        Matrix<T> R_by_host = this->on_host(this->by_host(this->gpu(), gA, options).r(this->gpu()));
        for (Index i = 0; i < n; ++i) {
            const T sign = (R(i, i) < 0) == (R_by_host(i, i) < 0) ? T(1) : T(-1);
            for (Index j = i; j < n; ++j) R_by_host(i, j) *= sign;
        }
        this->expect_close(R_by_host, R, n, std::sqrt(2.0) * 4 * frobenius_norm<T>(A.view()), "R");
    }
}

/// A second factorization in the same buffers, a larger one, and one that ends early.
TYPED_TEST(GpuFullT, HostPanelsOneAfterTheOther) {
    using T = TypeParam;
    auto& g = this->gpu();
    Options options = with(Method::BlockedHouseholder, QForm::Reflectors);
    options.method.set_panel_width(48);
    options.check_finite = false;  // then nothing waits between them
    const Matrix<T> A = random_normal<T>(500, 400), B = random_normal<T>(2000, 300);
    const auto gA = copy_to_device<T>(g, A.view()), gB = copy_to_device<T>(g, B.view());
    const auto f = this->by_host(g, gA, options), h = this->by_host(g, gB, options);
    g.request_stop();
    EXPECT_THROW(this->by_host(g, gA, options), Interrupted);
    g.clear_stop();
    const auto again = this->by_host(g, gA, options);
    this->expect_full_t(f, A.view());
    this->expect_full_t(h, B.view());
    this->expect_full_t(again, A.view());
    EXPECT_TRUE(same_bits<T>(this->on_host(f.r(g)).view(), this->on_host(again.r(g)).view()));
    {
        // a context that goes while a panel may still be on its way back
        Context<Cuda> other;
        const auto last = this->by_host(other, gB, options);
    }
}

TYPED_TEST(GpuFullT, BlocksOfQ) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (auto [m, n] : {std::pair<Index, Index>{60, 23}, {150, 150}, {40, 90}, {1400, 1200}})
        for (FullTRoute route : {FullTRoute::Recurrence, FullTRoute::Joined})
            for (bool keep_s : {false, true}) {
                if (quick() && m > 1000) continue;
                SCOPED_TRACE(shape_name(m, n) + " " + to_string(route) + (keep_s ? ", S" : ""));
                const Index k = std::min(m, n);
                const Matrix<T> A = random_normal<T>(m, n);
                const auto gA = copy_to_device<T>(g, A.view());
                const auto f = qr<T, Cuda>(g, gA.view(), this->options(route, keep_s, 64));
                // all of Q by the panels' T
                Options panels = with(Method::BlockedHouseholder, QForm::Reflectors);
                panels.method.set_panel_width(64);
                const auto by_panels = qr<T, Cuda>(g, gA.view(), panels);
                Matrix<T> Q = identity<T>(m);
                GpuPadded<T> gQ(g, Q.view());
                by_panels.apply_q(g, Side::Left, Op::None, gQ.view());
                Q = gQ.fetch(g);
                const Range ranges[] = {{0, m}, {m / 2, m}, {0, m / 2}, {k / 3, k}, {m - 1, m}, {m / 3, m / 3}};
                for (const Range r : ranges)
                    for (const Range c : ranges) {
                        SCOPED_TRACE(std::to_string(r.begin) + ":" + std::to_string(r.end) + ", " +
                                     std::to_string(c.begin) + ":" + std::to_string(c.end));
                        const Matrix<T> block = copy<T>(std::as_const(Q).view().block(r, c));
                        const double scale = std::sqrt(double(std::max<Index>(1, std::min(r.size(), c.size()))));
                        this->expect_close(this->on_host(f.q_block(g, r, c)), block, k, 2 * scale, "q_block");
                        for (Op op : {Op::None, Op::Transpose}) {
                            const Matrix<T> turned =
                                op == Op::None ? copy<T>(block.view()) : transposed<T>(block.view());
                            const Matrix<T> C = random_normal<T>(turned.cols(), 3, 9);
                            Matrix<T> exact(turned.rows(), 3);
                            multiply_transposed<T>(this->host, transposed<T>(turned.view()).view(), C.view(),
                                                   exact.view());
                            GpuPadded<T> gC(g, C.view());
                            this->expect_close(this->on_host(f.apply_q_block(g, op, r, c, gC.view())), exact, k,
                                               2 * frobenius_norm<T>(C.view()), "apply_q_block");
                        }
                    }
            }
}

/// Products with Q large enough to be corrected, on columns of any scale.
class GpuCorrectedProducts : public GpuFullT<float> {
protected:
    void SetUp() override {
        GpuFullT<float>::SetUp();
        if (has_plain_kernels()) GTEST_SKIP() << "plain kernels have no corrected products";
    }

    enum class Kept { T, S, Panels };

    QR<float, Cuda> factor(MatrixView<const float> A, Kept kept, Arithmetic arithmetic) {
        Options options = this->options(FullTRoute::Auto, kept == Kept::S, 256);
        if (kept == Kept::Panels) options.q = QForm::Reflectors;
        options.arithmetic = arithmetic;
        return qr<float, Cuda>(gpu(), copy_to_device<float>(gpu(), A).view(), options);
    }
    /// Columns of norms from 1e-30 to 1e30, one of zeros, and one with a single entry.
    static Matrix<float> of_every_scale(Index m, Index p) {
        Matrix<float> C = random_normal<float>(m, p, 7);
        for (Index j = 0; j < p; ++j) {
            const float scale = std::pow(10.0f, float(-30 + 60 * j / (p - 1))) / std::sqrt(float(m));
            for (Index i = 0; i < m; ++i) C(i, j) *= j == 3 || (j == 5 && i != m / 2) ? 0.0f : scale;
        }
        return C;
    }
    /// op(Q) C in double, of f's V and T.
    Matrix<double> exactly(const Matrix<double>& V, const Matrix<double>& Tf, Op op, const Matrix<double>& C) {
        const auto gV = copy_to_device<double>(gpu(), V.view()), gT = copy_to_device<double>(gpu(), Tf.view());
        auto X = copy_to_device<double>(gpu(), C.view());
        apply_panel<double>(gpu(), op, gV.view(), gT.view(), X.view());
        return copy_to_host<double>(gpu(), X.view());
    }
};

TEST_F(GpuCorrectedProducts, AreAsAccurateAsNativeOnesOnEveryClass) {
    auto& g = gpu();
    const Index m = 1301, n = 1032, p = 1030;
    const Matrix<float> C = of_every_scale(m, p);
    int turn = 0;
    for (enum Gallery matrix_class : gallery()) {
        if (quick() && matrix_class != Gallery::Kahan) continue;
        const Matrix<float> A = generate<float>(matrix_class, m, n);
        // one class all three ways, each of the others in one
        const bool all = matrix_class == Gallery::Kahan;
        ++turn;
        for (Kept kept : {Kept::T, Kept::S, Kept::Panels}) {
            if (!all && turn % 3 != int(kept)) continue;
            SCOPED_TRACE(testing::Message() << to_string(matrix_class) << ", kept " << int(kept));
            const auto native = factor(A.view(), kept, Arithmetic::Native),
                       chosen = factor(A.view(), kept, Arithmetic::Auto);
            const Matrix<double> V = widened(on_host(native.v(g))), Tf = widened(on_host(native.t(g)));
            for (Op op : {Op::None, Op::Transpose}) {
                const Matrix<double> exact = exactly(V, Tf, op, widened(C));
                GpuPadded<float> X(g, C.view()), Y(g, C.view());
                native.apply_q(g, Side::Left, op, X.view());
                chosen.apply_q(g, Side::Left, op, Y.view());
                const Matrix<float> by_native = X.fetch(g), by_halves = Y.fetch(g);
                const double error = column_error(by_native.view(), exact.view());
                // without one of the three products it is 2000 and more
                EXPECT_LE(column_error(by_halves.view(), exact.view()), 2 * error + 64) << error;
                // H = I of a T of zeros has the same bits by all products
                if (frobenius_norm<double>(Tf.view()) > 0) {
                    EXPECT_FALSE(same_bits<float>(by_native.view(), by_halves.view()))
                        << "neither is corrected, or both are";
                }
                for (Index i = 0; i < m; ++i) ASSERT_EQ(by_halves(i, 3), 0.0f);
                // and back
                chosen.apply_q(g, Side::Left, op == Op::None ? Op::Transpose : Op::None, Y.view());
                EXPECT_LE(column_error(Y.fetch(g).view(), widened(C).view()), 2 * law * double(n)) << "Qᵀ(Q C)";
            }
        }
    }
}

/// QᵀA for A itself: sums of VᵀA do not cancel, which is when they lose most.
TEST_F(GpuCorrectedProducts, OfTheMatrixItself) {
    auto& g = gpu();
    const Index m = quick() ? 1300 : 4100, n = 1032;
    const Matrix<float> A = random_normal<float>(m, n);
    const auto native = factor(A.view(), Kept::T, Arithmetic::Native),
               chosen = factor(A.view(), Kept::T, Arithmetic::Auto);
    const Matrix<double> exact =
        exactly(widened(on_host(native.v(g))), widened(on_host(native.t(g))), Op::Transpose, widened(A));
    GpuPadded<float> X(g, A.view()), Y(g, A.view());
    native.apply_q(g, Side::Left, Op::Transpose, X.view());
    chosen.apply_q(g, Side::Left, Op::Transpose, Y.view());
    const double error = column_error(X.fetch(g).view(), exact.view());
    EXPECT_LE(column_error(Y.fetch(g).view(), exact.view()), 2 * error + 64) << error;
}

TEST_F(GpuCorrectedProducts, BlocksOfQ) {
    auto& g = gpu();
    const Index m = 2100, n = 1600;
    const Matrix<float> A = random_normal<float>(m, n);
    const Range r{900, 2000}, c{100, 1150};
    for (Kept kept : {Kept::T, Kept::S}) {
        const auto native = factor(A.view(), kept, Arithmetic::Native),
                   chosen = factor(A.view(), kept, Arithmetic::Auto);
        const Matrix<float> X = on_host(native.q_block(g, r, c)), Y = on_host(chosen.q_block(g, r, c));
        expect_close(Y, X, n, std::sqrt(double(r.size())), "q_block");
        EXPECT_FALSE(same_bits<float>(X.view(), Y.view()));
        for (Op op : {Op::None, Op::Transpose}) {
            const Matrix<float> C = of_every_scale(op == Op::None ? c.size() : r.size(), 1010);
            const auto gC = copy_to_device<float>(g, C.view());
            const Matrix<float> B = on_host(native.apply_q_block(g, op, r, c, gC.view())),
                                D = on_host(chosen.apply_q_block(g, op, r, c, gC.view()));
            EXPECT_FALSE(same_bits<float>(B.view(), D.view()));
            for (Index j = 0; j < C.cols(); ++j) {
                const Range col{j, j + 1};
                expect_close(copy<float>(D.view().col_block(col)), copy<float>(B.view().col_block(col)), n,
                             frobenius_norm<float>(C.view().col_block(col)), "apply_q_block");
            }
        }
    }
}

/// Entries that are not finite spoil their own column alone.
TEST_F(GpuCorrectedProducts, ColumnsKeepToThemselves) {
    auto& g = gpu();
    const Index m = 900, n = 600, p = 520;
    const auto f = factor(random_normal<float>(m, n).view(), Kept::T, Arithmetic::Auto);
    Matrix<float> C = random_normal<float>(m, p, 2);
    C(17, 4) = std::numeric_limits<float>::quiet_NaN();
    C(500, 300) = std::numeric_limits<float>::infinity();
    GpuPadded<float> X(g, C.view());
    f.apply_q(g, Side::Left, Op::Transpose, X.view());
    const Matrix<float> found = X.fetch(g);
    for (Index j = 0; j < p; ++j) {
        EXPECT_EQ(is_finite<float>(found.view().col_block({j, j + 1})), j != 4 && j != 300) << j;
    }
}

TYPED_TEST(GpuFullT, BlocksOfTOutAndIn) {
    using T = TypeParam;
    auto& g = this->gpu();
    const Index m = 400, n = 130;
    const Matrix<T> A = random_normal<T>(m, n);
    const auto gA = copy_to_device<T>(g, A.view());
    for (bool one_t : {false, true})
        for (Index nb : {1, 32, 50, 64, 130}) {
            SCOPED_TRACE((one_t ? "one T " : "") + std::to_string(nb));
            Options options = with(Method::BlockedHouseholder, QForm::Reflectors);
            if (one_t) options.q = FullT{};
            options.method.set_panel_width(64);
            LapackQRT<T, Cuda> factors = to_lapack_t(g, qr<T, Cuda>(g, gA.view(), options), nb);
            // the host reads what the GPU wrote
            const QR<T> f =
                from_lapack_t(this->host, LapackQRT<T>{this->on_host(factors.V_R), this->on_host(factors.Tf)});
            test::expect_law<T>(this->host, A.view(), f);
            const QR<T, Cuda> back = from_lapack_t(g, std::move(factors));
            this->expect_full_t(back, A.view());
        }
}

}  // namespace
}  // namespace quoin::test
