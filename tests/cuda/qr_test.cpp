// Every method on the GPU obeys the law of checks.hpp, in every form of Q, and gives the same bits twice.

#include "quoin/qr.hpp"

#include "cases.hpp"
#include "cuda/tuning.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"

namespace quoin::test {
namespace {

class GpuQr : public OnGpu {
protected:
    Index stages(const Plan& plan) {
        Index depth = 1;
        const TreePlan tree = plan.tree();
        for (Index rows = tree.leaf_rows; rows > 0 && rows < plan.rows; rows *= std::max<Index>(2, tree.fan_in))
            ++depth;
        return plan.method == Method::BlockedHouseholder ? 1 : depth;
    }
    template <class T>
    void check(MatrixView<const T> A, Options options) {
        SCOPED_TRACE(case_name(A.rows, A.cols, options.method, options.q));
        Matrix<T, Cuda> gA = copy_to_device<T>(gpu(), A);
        const QR<T, Cuda> f = qr<T, Cuda>(gpu(), gA.view(), options);
        expect_law<T>(gpu(), A, f, stages(f.plan()));
        EXPECT_TRUE(same_bits<T>(copy_to_host<T>(gpu(), gA.view()).view(), A)) << "A is as it was";
    }
    /// Trees on the GPU are at most 256 columns wide.
    static bool has(Method method, Index m, Index n) {
        return factors_shape(method, m, n) && (method != Method::TSQR || std::min(m, n) <= 256);
    }
    template <class T>
    void shapes() {
        for (auto [m, n] : {std::pair<Index, Index>{0, 0},
                            {5, 0},
                            {0, 5},
                            {1, 1},
                            {1, 7},
                            {7, 1},
                            {33, 32},
                            {32, 33},
                            {40, 70},
                            {129, 31},
                            {300, 33},
                            {257, 256},
                            {90, 300},
                            {1000, 100},
                            {4099, 32},
                            {20011, 23}}) {
            if (quick() && m * n > 10000) continue;
            const Matrix<T> A = m >= n && n > 0 ? with_condition<T>(m, n, 10) : random_normal<T>(m, n);
            for (Method method : all_methods)
                for (QForm q : q_forms) {
                    if (has(method, m, n)) check<T>(A.view(), with(method, q));
                }
        }
    }
    template <class T>
    void classes() {
        for (auto [m, n] : {std::pair<Index, Index>{1300, 29}, {400, 70}, {50, 80}}) {
            if (quick() && m > n) continue;
            for (Gallery matrix_class : gallery()) {
                SCOPED_TRACE(to_string(matrix_class));
                const Matrix<T> A = generate<T>(matrix_class, m, n);
                for (Method method : unconditional_methods)
                    for (QForm q : {QForm::Any, QForm::Reflectors}) {
                        if (has(method, m, n)) check<T>(A.view(), with(method, q));
                    }
            }
        }
    }
    /// TSQR, and CAQR by panels, of more columns than a tile has.
    template <class T>
    void wide_trees() {
        for (auto [m, n] : {std::pair<Index, Index>{9001, 130}, {5000, 192}, {3000, 256}, {700, 65}}) {
            if (quick() && m > 1000) continue;
            const Matrix<T> A = with_condition<T>(m, n, 1 / unit_roundoff<T>);
            for (QForm q : q_forms) check<T>(A.view(), with(Method::TSQR, q));
        }
        const Matrix<T> A = random_normal<T>(2000, 100);
        for (Index fan_in : {Index(2), Index(4), flat_tree}) {
            Options options = with(Method::TSQR);
            options.method.set_tree({.leaf_rows = 150, .fan_in = fan_in});
            check<T>(A.view(), options);
        }
        Options by_panels = with(Method::CAQR);
        by_panels.method.set_panel_width(48);
        by_panels.method.set_tree({.leaf_rows = 64, .fan_in = 16});
        for (QForm q : q_forms) {
            by_panels.q = q;
            check<T>(A.view(), by_panels);
        }
        EXPECT_THROW(plan_qr<T>(gpu(), 1000, 257, with(Method::TSQR)), InvalidArgument);
    }
    /// One matrix, one level of leaves that leave rows over, two levels; narrow and wide.
    template <class T>
    void batched_trees() {
        const Index most = Tuning<Cuda>::max_rows_in_strips(scalar_kind<T>);
        for (auto [m, n] :
             {std::pair<Index, Index>{33, 33}, {most + 1, 70}, {2 * most + 777, 133}, {20003, 256}, {150001, 7}}) {
            if (quick() && m > 100) continue;
            const Matrix<T> A = with_condition<T>(m, n, 1 / unit_roundoff<T>);
            for (QForm q : q_forms) check<T>(A.view(), with(Method::CAQR, q));
        }
        for (Gallery matrix_class : gallery()) {
            SCOPED_TRACE(to_string(matrix_class));
            for (const Index n : {7, 45}) {
                const Matrix<T> A = generate<T>(matrix_class, 403, n);
                Options options = with(Method::TSQR);
                options.method.set_tree({.leaf_rows = 50, .fan_in = 3});
                for (QForm q : {QForm::Any, QForm::Explicit}) {
                    options.q = q;
                    check<T>(A.view(), options);
                }
            }
        }
        if (quick()) return;
        // several levels
        const Matrix<T> A = random_normal<T>(1100003, 33);
        Options options = with(Method::TSQR, QForm::Explicit);
        options.method.set_tree({.leaf_rows = 128, .fan_in = 4});
        check<T>(A.view(), options);
    }
    template <class T>
    void conditions() {
        const double u = unit_roundoff<T>;
        for (auto [m, n] : {std::pair<Index, Index>{3000, 33}, {60, 20}, {257, 64}})
            for (QForm q : q_forms) {
                if (quick() && q != QForm::Explicit) continue;
                for (double kappa : {1.0, 0.01 / std::sqrt(u)}) {
                    check<T>(with_condition<T>(m, n, kappa).view(), with(Method::CholeskyQR2, q));
                }
                for (double kappa : {0.01 / std::sqrt(u), 0.01 / u}) {
                    check<T>(with_condition<T>(m, n, kappa).view(), with(Method::RandomizedCholeskyQR, q));
                }
                // R's diagonal blocks are what these break
                for (Index cols : {16, 17}) {
                    check<T>(generate<T>(Gallery::UpperTriangular, 70, cols).view(), with(Method::Auto, q));
                }
                // Auto answers for every matrix
                for (double kappa : {1 / std::sqrt(u), 1 / u, 1e3 / u}) {
                    check<T>(with_condition<T>(m, n, kappa).view(), with(Method::Auto, q));
                }
            }
    }
    /// Rows from which on A R⁻¹ is made by halves, or by f64 where the condition asks for it: on both sides of that,
    /// and beyond 192 columns.
    void solves_by_halves(Index m, Index n) {
        if (quick() && n != 256) return;
        for (double kappa : {1.0, 4.0, 300.0, 1e6}) {
            if (quick() && kappa != 4.0) continue;
            const Matrix<float> A = with_condition<float>(m, n, kappa);
            for (QForm q : q_forms) check<float>(A.view(), with(Method::Auto, q));
            if (kappa < 1e3) check<float>(A.view(), with(Method::CholeskyQR2, QForm::Reflectors));
        }
        check<float>(generate<float>(Gallery::GradedColumnsUp, m, n).view(), with(Method::Auto, QForm::Explicit));
    }
    /// Up to ‖(R D)⁻¹‖₂² = 8, by the trace of (D G D)⁻¹, n − 2 + 2/(1 − x²): x² = 3/4. mn² flops for R alone, and 3mn²
    /// beyond. f32 of up to 256 columns, whose Gram matrix is in f64, needs one pass of all these.
    template <class T>
    void one_pass() {
        for (auto [m, n] : {std::pair<Index, Index>{5001, 40}, {8001, 192}, {13601, 257}}) {
            if (quick() && n > 100) continue;
            for (const double x : {0.86, 0.872}) {
                SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + ", cosine " + std::to_string(x));
                const Matrix<T> A = with_cosine<T>(m, n, x);
                const auto gA = copy_to_device<T>(gpu(), A.view());
                gpu().reset_progress();
                const QR<T, Cuda> f = qr<T, Cuda>(gpu(), gA.view(), with(Method::CholeskyQR2, QForm::None));
                const bool one = x < 0.866 || (std::is_same_v<T, float> && n <= 256);
                EXPECT_NEAR(gpu().flops_done() / (1.0 * m * n * n), one ? 1 : 3, 0.15);
                for (QForm q : {QForm::Explicit, QForm::Reflectors}) check<T>(A.view(), with(Method::CholeskyQR2, q));
            }
        }
    }
    template <class T>
    void tall_panels() {
        // panels by CholeskyQR2, or by a tree where that does not certify, and Householder reconstruction
        for (double kappa : {10.0, 1e3 / unit_roundoff<T>}) {
            check<T>(with_condition<T>(16500, 70, kappa).view(), with(Method::BlockedHouseholder));
        }
        // V₂ from a boundary of the memory on, by one kernel and by blocks of columns
        if (!quick()) {
            check<T>(with_condition<T>(130001, 70, 10).view(), with(Method::CholeskyQR2, QForm::Reflectors));
            check<T>(with_condition<T>(26000, 330, 10).view(), with(Method::CholeskyQR2, QForm::Reflectors));
        }
        // by halves of several such panels
        Options options = with(Method::BlockedHouseholder);
        options.method.set_panel_width(390);
        check<T>(with_condition<T>(16500, 420, 10).view(), options);
    }
    /// Behind the panels that are reconstructed others that one launch factors, of another width.
    template <class T>
    void last_panels() {
        const Index rows = Tuning<Cuda>::max_rows_in_strips(scalar_kind<T>), n = 700;
        const Matrix<T> A = with_condition<T>(rows + 100, n, 10);
        const auto gA = copy_to_device<T>(gpu(), A.view());
        const Options options = with(Method::BlockedHouseholder, QForm::Reflectors);
        {
            const QR<T, Cuda> f = qr<T, Cuda>(gpu(), gA.view(), options);
            EXPECT_NE(f.plan().householder().last_width, f.plan().panel_width);
            EXPECT_EQ(f.plan().householder().last_rows, rows);
            expect_law<T>(gpu(), A.view(), f);
        }
        {
            // equal columns: the panels before them go by a tree
            Matrix<T> B = copy<T>(A.view());
            for (Index j : {7, 77}) std::copy_n(B.view().at(0, 3), B.rows(), B.view().at(0, j));
            check<T>(B.view(), options);
        }
        // blocks of T that lie in one panel, and across two
        for (Index nb : {64, 100}) {
            SCOPED_TRACE(nb);
            LapackQRT<T, Cuda> factors = to_lapack_t(gpu(), qr<T, Cuda>(gpu(), gA.view(), options), nb);
            expect_law<T>(gpu(), A.view(), from_lapack_t(gpu(), std::move(factors)), 2);
        }
    }
    template <class T>
    void bits() {
        for (auto [m, n] : {std::pair<Index, Index>{20011, 23}, {1031, 130}, {300, 300}}) {
            if (quick() && m > 300) continue;
            const Matrix<T> A = with_condition<T>(m, n, 10);
            for (Method method : all_methods)
                for (QForm q : {QForm::Any, QForm::Reflectors}) {
                    if (!has(method, m, n)) continue;
                    SCOPED_TRACE(case_name(m, n, method, q));
                    const auto gA = copy_to_device<T>(gpu(), A.view());
                    Matrix<T> R, Q;
                    for (int time = 0; time < 2; ++time) {
                        Context<Cuda> fresh;
                        Context<Cuda>& ctx = time == 0 ? gpu() : fresh;
                        const QR<T, Cuda> f = qr<T, Cuda>(ctx, gA.view(), with(method, q));
                        Matrix<T> R2 = copy_to_host<T>(ctx, f.r(ctx).view());
                        Matrix<T> Q2 = copy_to_host<T>(ctx, f.form_q(ctx).view());
                        if (time > 0) {
                            EXPECT_TRUE(same_bits<T>(R2.view(), R.view()));
                            EXPECT_TRUE(same_bits<T>(Q2.view(), Q.view()));
                        }
                        R = std::move(R2);
                        Q = std::move(Q2);
                    }
                }
        }
    }
    template <class T>
    void lapack_exchange() {
        for (Method method : {Method::BlockedHouseholder, Method::CAQR, Method::CholeskyQR2}) {
            const Matrix<T> A = with_condition<T>(2000, 60, 10);
            auto f = qr<T, Cuda>(gpu(), copy_to_device<T>(gpu(), A.view()).view(), with(method));
            LapackQR<T, Cuda> factors = to_lapack<T, Cuda>(gpu(), std::move(f));
            // the host reads what the GPU wrote
            LapackQR<T> on_host{copy_to_host<T>(gpu(), factors.V_R.view()), copy_to_host<T>(gpu(), factors.tau.view())};
            const QR<T> g = from_lapack<T, Host>(host, std::move(on_host));
            test::expect_law<T>(host, A.view(), g, 4);
            const QR<T, Cuda> back = from_lapack<T, Cuda>(gpu(), std::move(factors));
            expect_law<T>(gpu(), A.view(), back, 4);
        }
    }
    /// A = [D; 0]: nothing is below the diagonal, and nothing is reflected.
    template <class T>
    void columns_that_are_zero_below() {
        for (auto [m, n] : {std::pair<Index, Index>{20000, 32}, {20000, 100}, {17000, 200}, {3000, 200}, {300, 200}})
            for (Method method : {Method::Auto, Method::BlockedHouseholder, Method::CAQR, Method::CholeskyQR2}) {
                SCOPED_TRACE(shape_name(m, n) + " " + to_string(method));
                Matrix<T> A = filled<T>(m, n, 0);
                for (Index j = 0; j < n; ++j) A(j, j) = j % 3 == 1 ? T(-4) : T(4);
                LapackQR<T, Cuda> factors = to_lapack<T, Cuda>(
                    gpu(),
                    qr<T, Cuda>(gpu(), copy_to_device<T>(gpu(), A.view()).view(), with(method, QForm::Reflectors)));
                const Matrix<T> V_R = copy_to_host<T>(gpu(), factors.V_R.view());
                const Matrix<T> tau = copy_to_host<T>(gpu(), factors.tau.view());
                for (Index j = 0; j < n; ++j) EXPECT_EQ(tau(j, 0), 0) << j;
                EXPECT_LE(difference<T>(V_R.view(), A.view(), n, frobenius_norm<T>(A.view())), law);
            }
    }
};

TEST_F(GpuQr, ShapesF32) { shapes<float>(); }
TEST_F(GpuQr, ShapesF64) { shapes<double>(); }
TEST_F(GpuQr, ColumnsThatAreZeroBelowF32) { columns_that_are_zero_below<float>(); }
TEST_F(GpuQr, ColumnsThatAreZeroBelowF64) { columns_that_are_zero_below<double>(); }
TEST_F(GpuQr, ClassesF32) { classes<float>(); }
TEST_F(GpuQr, ClassesF64) { classes<double>(); }
TEST_F(GpuQr, WideTreesF32) { wide_trees<float>(); }
TEST_F(GpuQr, WideTreesF64) { wide_trees<double>(); }
TEST_F(GpuQr, BatchedTreesF32) { batched_trees<float>(); }
TEST_F(GpuQr, BatchedTreesF64) { batched_trees<double>(); }
TEST_F(GpuQr, ConditionsF32) { conditions<float>(); }
TEST_F(GpuQr, ConditionsF64) { conditions<double>(); }
TEST_F(GpuQr, SolvesByHalves70) { solves_by_halves(152651, 70); }
TEST_F(GpuQr, SolvesByHalves192) { solves_by_halves(36267, 192); }
TEST_F(GpuQr, SolvesByHalves193) { solves_by_halves(16500, 193); }
TEST_F(GpuQr, SolvesByHalves256) { solves_by_halves(16401, 256); }
TEST_F(GpuQr, OnePassF32) { one_pass<float>(); }
TEST_F(GpuQr, OnePassF64) { one_pass<double>(); }
TEST_F(GpuQr, TallPanelsF32) { tall_panels<float>(); }
TEST_F(GpuQr, TallPanelsF64) { tall_panels<double>(); }
TEST_F(GpuQr, LastPanelsF32) { last_panels<float>(); }
TEST_F(GpuQr, LastPanelsF64) { last_panels<double>(); }
TEST_F(GpuQr, SameBitsTwiceF32) { bits<float>(); }
TEST_F(GpuQr, SameBitsTwiceF64) { bits<double>(); }
TEST_F(GpuQr, LapackExchangeF32) { lapack_exchange<float>(); }
TEST_F(GpuQr, LapackExchangeF64) { lapack_exchange<double>(); }

/// R alone has the same bits by rows and by columns: by Gram matrices, by trees where these refuse, and with columns
/// that are scaled.
TEST_F(GpuQr, RAloneOfRowMajorMatrices) {
    const auto check_rows = [&]<class T>(const Matrix<T>& A) {
        const Index m = A.rows(), n = A.cols();
        const auto by_columns = copy_to_device<T>(gpu(), A.view());
        const auto by_rows = copy_to_device<T>(gpu(), transposed<T>(A.view()).view());
        const InputView<T, Cuda> rows = RowMajorView<const T, Cuda>{by_rows.data(), m, n, n};
        const Options options = with(Method::Auto, QForm::None);
        const auto f = qr<T, Cuda>(gpu(), rows, options), expected = qr<T, Cuda>(gpu(), by_columns.view(), options);
        EXPECT_EQ(f.report().method, expected.report().method);
        EXPECT_TRUE(same_bits<T>(copy_to_host<T>(gpu(), f.r(gpu()).view()).view(),
                                 copy_to_host<T>(gpu(), expected.r(gpu()).view()).view()));
    };
    for (const Index n : {1, 5, 40, 100, 192, 230, 300}) {
        for (const double kappa : {10.0, 1e12}) {
            SCOPED_TRACE(testing::Message() << n << " columns, kappa " << kappa);
            Matrix<double> A = with_condition<double>(4096, n, kappa);
            check_rows(A);
            if (kappa == 10) check_rows(with_condition<float>(4096, n, kappa));
            for (Index i = 0; i < A.rows(); ++i) A(i, n / 2) = std::ldexp(A(i, n / 2), 700);
            check_rows(A);
        }
    }
}

/// If R alone is wanted, A is only read, and trees answer.
TEST_F(GpuQr, AutoTakesASketchWhereAGramMatrixRefuses) {
    const auto expect_method = [&](Method method, double kappa, QForm q) {
        const Matrix<double> A = with_condition<double>(9000, 60, kappa);
        const auto gA = copy_to_device<double>(gpu(), A.view());
        const QR<double, Cuda> f = qr<double, Cuda>(gpu(), gA.view(), with(Method::Auto, q));
        EXPECT_EQ(f.report().method, method) << to_string(q) << ", kappa " << kappa;
        EXPECT_EQ(f.report().fell_back, method != Method::CholeskyQR2);
        expect_law<double>(gpu(), A.view(), f);
    };
    for (const QForm q : {QForm::Any, QForm::Explicit, QForm::Reflectors}) {
        expect_method(Method::CholeskyQR2, 1e3, q);
        expect_method(Method::RandomizedCholeskyQR, 1e11, q);
    }
    expect_method(Method::TSQR, 1e11, QForm::None);
    // columns of zeros, and others that depend on each other
    Matrix<double> A = generate<double>(Gallery::DuplicateColumns, 9000, 60);
    for (const Index j : {0, 31, 59}) std::fill_n(A.view().at(0, j), A.rows(), 0.0);
    const auto gA = copy_to_device<double>(gpu(), A.view());
    for (const QForm q : {QForm::Explicit, QForm::None}) {
        const QR<double, Cuda> f = qr<double, Cuda>(gpu(), gA.view(), with(Method::Auto, q));
        // cuBLAS solves with any triangle, so that a perturbed sketch suffices
        const bool perturbs = has_plain_kernels() && q == QForm::Explicit;
        EXPECT_EQ(f.report().method, perturbs ? Method::RandomizedCholeskyQR : Method::TSQR);
        expect_law<double>(gpu(), A.view(), f);
    }
    EXPECT_THROW(plan_qr<float>(gpu(), 10000, 7169, with(Method::RandomizedCholeskyQR)), InvalidArgument);
}
TEST_F(GpuQr, CorrectedUpdatesObeyTheLawOnEveryClass) {
    // 1024 columns are left to the first update
    for (Gallery matrix_class : gallery()) {
        if (quick() && matrix_class != Gallery::Kahan) continue;
        SCOPED_TRACE(to_string(matrix_class));
        Options options = with(Method::BlockedHouseholder);
        options.method.set_panel_width(64);
        options.arithmetic = Arithmetic::Corrected;
        check<float>(generate<float>(matrix_class, 900, 1100).view(), options);
    }
}

TEST_F(GpuQr, CorrectedIsAsAccurateAsNative) {
    const Index n = quick() ? 1500 : 6000;
    const Matrix<float, Cuda> A = copy_to_device<float>(gpu(), random_normal<float>(n, n).view());
    double orthogonality[2], residual[2];
    for (Arithmetic arithmetic : {Arithmetic::Native, Arithmetic::Corrected}) {
        Options options = with(Method::BlockedHouseholder);
        options.arithmetic = arithmetic;
        options.verify = true;
        const Report report = qr<float, Cuda>(gpu(), A.view(), options).report();
        orthogonality[arithmetic == Arithmetic::Corrected] = report.orthogonality;
        residual[arithmetic == Arithmetic::Corrected] = report.residual;
    }
    EXPECT_LE(orthogonality[1], 2 * orthogonality[0]) << orthogonality[0];
    EXPECT_LE(residual[1], 2 * residual[0]) << residual[0];
    EXPECT_GT(residual[1], 0);
}

TEST_F(GpuQr, CorrectedIsForF32ByPanels) {
    Options options;
    options.arithmetic = Arithmetic::Corrected;
    options.method = Method::BlockedHouseholder;
    EXPECT_NO_THROW(plan_qr<float>(gpu(), 100, 50, options));
    EXPECT_THROW(plan_qr<double>(gpu(), 100, 50, options), InvalidArgument);
    EXPECT_THROW(plan_qr<float>(host, 100, 50, options), InvalidArgument);
    options.q = FullT{};
    EXPECT_THROW(plan_qr<float>(gpu(), 100, 50, options), InvalidArgument);
    options.q = QForm::Reflectors;
    options.method = Method::CAQR;
    EXPECT_THROW(plan_qr<float>(gpu(), 100, 50, options), InvalidArgument);
}

TEST_F(GpuQr, ProductsAreCorrectedUnlessNativeOnesAreAskedFor) {
    const auto products = [&]<class T>(T, Method method, Arithmetic arithmetic, QOptions q) {
        return plan_qr<T>(gpu(), 3000, 2000, {.method = method, .q = q, .arithmetic = arithmetic}).products;
    };
    const Method reflectors = Method::BlockedHouseholder;
    for (const QOptions& q : {QOptions(QForm::Any), QOptions(FullT{})}) {
        EXPECT_EQ(products(1.0f, reflectors, Arithmetic::Auto, q), Arithmetic::Corrected);
        EXPECT_EQ(products(1.0f, reflectors, Arithmetic::Native, q), Arithmetic::Native);
        EXPECT_EQ(products(1.0, reflectors, Arithmetic::Auto, q), Arithmetic::Native);
    }
    EXPECT_EQ(products(1.0f, reflectors, Arithmetic::Corrected, {}), Arithmetic::Corrected);
    EXPECT_EQ(products(1.0f, Method::ClassicalGramSchmidt, Arithmetic::FP16, {}), Arithmetic::Native);
}

TEST_F(GpuQr, CorrectedNamesTheFirstEntryThatIsNotFinite) {
    Options options = with(Method::BlockedHouseholder);
    options.method.set_panel_width(64);
    options.arithmetic = Arithmetic::Corrected;
    // in the first panel, and right of it
    for (auto [row, col] : {std::pair<Index, Index>{0, 0}, {699, 63}, {5, 64}, {698, 299}}) {
        for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
            Matrix<float> A = random_normal<float>(700, 300);
            A(row, col) = A(699, 299) = value;
            try {
                qr<float, Cuda>(gpu(), copy_to_device<float>(gpu(), A.view()).view(), options);
                FAIL() << row << ", " << col;
            } catch (const NonFiniteEntry& error) {
                EXPECT_EQ(error.row, row);
                EXPECT_EQ(error.col, col);
            }
        }
    }
}

TEST_F(GpuQr, NotFiniteEntriesAreNamed) {
    for (const Index n : {20, 40}) {
        Matrix<double> A = random_normal<double>(9000, n);
        A(8765, 7) = std::numeric_limits<double>::quiet_NaN();
        for (Method method : all_methods)
            for (QForm q : {QForm::Any, QForm::None, QForm::Explicit}) {
                SCOPED_TRACE(case_name(9000, n, method, q));
                if (!factors_shape(method, 9000, n)) continue;
                try {
                    qr<double, Cuda>(gpu(), copy_to_device<double>(gpu(), A.view()).view(), with(method, q));
                    ADD_FAILURE();
                } catch (const NonFiniteEntry& error) {
                    EXPECT_EQ(error.row, 8765);
                    EXPECT_EQ(error.col, 7);
                }
            }
    }
}

}  // namespace
}  // namespace quoin::test
