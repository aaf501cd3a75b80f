// The loss of orthogonality of Gram-Schmidt and of reflectors over the condition of the matrix.

#include "interrupt.hpp"
#include "random_matrix.hpp"
#include "results.hpp"

namespace quoin::cli {

namespace {

constexpr Shape law_shape = {1000, 100};

struct Law {
    const char* name;
    Options options;
};

Options law_options(Method method, Reorthogonalization r = Reorthogonalization::Off) {
    Options options;
    options.method = method;
    options.method.set_reorthogonalization(r);
    options.q = QForm::Explicit;
    return options;
}

/// A = U diag(1, 1/κ, …, 1/κ) Vᵀ with random orthogonal U and V, made in f64: all columns near one line.
Matrix<double> near_one_line(Context<Host>& ctx, double kappa) {
    const Index m = law_shape.rows, n = law_shape.cols;
    const auto random_basis = [&](Index rows, std::uint64_t seed) {
        return qr(ctx, normal_matrix<double>(rows, n, seed).view(), law_options(Method::BlockedHouseholder))
            .form_q(ctx);
    };
    const Matrix<double> U = random_basis(m, 1), V = random_basis(n, 2);
    Matrix<double> A(m, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            long double sum = 0;
            for (Index l = 0; l < n; ++l) sum += static_cast<long double>(U(i, l)) * V(j, l) * (l == 0 ? 1 : 1 / kappa);
            A(i, j) = static_cast<double>(sum);
        }
    }
    return A;
}

template <class T>
void measure_laws(Context<Host>& ctx, Results& results) {
    using enum Reorthogonalization;
    constexpr ScalarKind dtype = scalar_kind<T>;
    const Law laws[] = {{"cgs", law_options(Method::ClassicalGramSchmidt)},
                        {"mgs", law_options(Method::ModifiedGramSchmidt)},
                        {"cgs-selective", law_options(Method::ClassicalGramSchmidt, Selective)},
                        {"cgs-always", law_options(Method::ClassicalGramSchmidt, Always)},
                        {"mgs-always", law_options(Method::ModifiedGramSchmidt, Always)},
                        {"householder", law_options(Method::BlockedHouseholder)},
                        {"tsqr", law_options(Method::TSQR)}};
    const Index m = law_shape.rows, n = law_shape.cols;
    for (double kappa = 10; kappa < 1.01 * (dtype == ScalarKind::F32 ? 1e6 : 1e15); kappa *= 10) {
        throw_if_interrupted();
        const Matrix<double> exact = near_one_line(ctx, kappa);
        Matrix<T> A(m, n);
        for (Index i = 0; i < m * n; ++i) A.data()[i] = static_cast<T>(exact.data()[i]);
        for (const Law& law : laws) {
            const QR<T> f = qr(ctx, A.view(), law.options);
            const Matrix<T> Q = f.form_q(ctx), R = f.r();
            const double lost = orthogonality<T>(ctx, Q.view()), left = residual<T>(ctx, A.view(), Q.view(), R.view());
            JsonLine json = case_line(law_shape, dtype).add("code", law.name);
            results.add(json.add("condition", kappa).add("orthogonality", lost).add("residual", left));
        }
    }
}

}  // namespace

void bench_orthogonality(const BenchArguments& arguments) {
    Context<Host> ctx = make_context(arguments.common);
    const InterruptGuard guard(ctx);
    Results results(arguments);
    results.describe("singular values 1, 1/κ, …, 1/κ");
    results.say("‖I − QᵀQ‖_F of {} x {} matrices with singular values 1, 1/κ, …, 1/κ\n", law_shape.rows,
                law_shape.cols);
    arguments.for_each_dtype({ScalarKind::F32, ScalarKind::F64}, [&]<class T>(T) { measure_laws<T>(ctx, results); });
}

}  // namespace quoin::cli
