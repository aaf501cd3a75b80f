// Figures 2, 4 and 10 of Brandes, Arnold, Soddemann and Reith (2012), modified Gram-Schmidt on a CPU, and the laws of
// the loss of orthogonality.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "bench.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "paper_gram_schmidt.hpp"
#include "random_matrix.hpp"
#include "reference_lapack.hpp"
#include "results.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

namespace {

constexpr Index sizes[] = {1024, 2048, 4096, 8192};
constexpr Index widths[] = {16, 32, 48, 64, 96, 128, 192, 256};
/// Beyond, Listing 1 takes minutes.
constexpr Index most_elementwise_cols = 2048;
/// The paper's width 32, which is near the best of `widths` for its blocked code at every size.
constexpr Index paper_width = 32;
/// The required speed of the blocked method over the unblocked one, on all cores, from `required_from` columns on.
constexpr double required_ratio = 4;
constexpr Index required_from = 4096;

enum class Code { Elementwise, Blas2, Unblocked, PaperBlocked, Mgs, MgsTwice, Cgs, CgsTwice, Lapack };

struct CodeName {
    Code code;
    const char* name;  ///< in JSON and CSV
    const char* text;
};
constexpr CodeName codes[] = {
    {Code::Elementwise, "mgs-elementwise", "Listing 1, element by element, 1 core"},
    {Code::Blas2, "mgs-blas2", "Listing 3, GEMV, SCAL, GER"},
    {Code::Unblocked, "mgs-unblocked", "OpenMP, unblocked"},
    {Code::PaperBlocked, "mgs-blocked", "OpenMP, blocked as the paper's"},
    {Code::Mgs, "mgs", "Quoin: mgs"},
    {Code::MgsTwice, "mgs-always", "  reorthogonalized always"},
    {Code::Cgs, "cgs", "Quoin: cgs"},
    {Code::CgsTwice, "cgs-always", "  reorthogonalized always"},
    {Code::Lapack, "geqrf-orgqr", "LAPACK: geqrf + orgqr"},
};

bool by_quoin(Code code) { return code >= Code::Mgs && code <= Code::CgsTwice; }

struct Row {
    Shape shape;
    DType dtype;
    const CodeName* code;
    int threads;
    Index width;  ///< of a panel; 0: none
    double seconds = 0, orthogonality = -1, residual = -1;

    /// 2mn²/T, as the paper counts for every code.
    double gflops() const {
        return 2e-9 * static_cast<double>(shape.rows) * std::pow(static_cast<double>(shape.cols), 2) / seconds;
    }
};

class GramSchmidtBench {
public:
    explicit GramSchmidtBench(const BenchArguments& arguments)
        : arguments_(arguments), ctx_(make_context(arguments.common)), guard_(ctx_), results_(arguments) {}

    void run() {
        const Machine machine = describe_machine();
        const std::string where = fmt::format("{}, {} threads, {}", machine.cpu, ctx_.threads(), build_info().blas);
        results_.describe(where);
        results_.say("Modified Gram-Schmidt, GFLOP/s = 2mn²/T\n{}\n", where);
        if (const std::string warning = machine.busy(); !warning.empty()) fmt::print(stderr, "quoin: {}\n", warning);
        std::vector<Shape> shapes = arguments_.shapes;
        if (shapes.empty()) {
            for (const Index n : sizes) shapes.push_back({n, n});
        }
        const std::vector<DType> dtypes = arguments_.dtypes_or({DType::F32, DType::F64});
        for (const DType dtype : dtypes) {
            for (const Shape shape : shapes) with_dtype(dtype, [&]<class T>(T) { compare<T>(shape, dtype); });
        }
        for (const DType dtype : dtypes) with_dtype(dtype, [&]<class T>(T) { vary_width<T>(shapes, dtype); });
        const Shape scaled = shapes[std::min<std::size_t>(1, shapes.size() - 1)];
        for (const DType dtype : dtypes) with_dtype(dtype, [&]<class T>(T) { vary_threads<T>(scaled, dtype); });
        results_.say(
            "\nThe paper's 8192² in f32 on two Xeon X5650 (12 cores): unblocked 159 s, blocked 18.9 s, 58 GFLOP/s.\n");
    }

private:
    /// Median of three runs and more, for half a second; of one that takes over two.
    template <class T>
    Row measure(const Matrix<T>& A, DType dtype, Code code, Context<Host>& ctx, Index width, bool accuracy) {
        const auto& name =
            *std::find_if(std::begin(codes), std::end(codes), [&](const auto& c) { return c.code == code; });
        const Index m = A.rows(), n = A.cols();
        Row row{{m, n}, dtype, &name, code == Code::Elementwise ? 1 : ctx.threads(), width};
        Options options = arguments_.common.options;
        options.method =
            code == Code::Cgs || code == Code::CgsTwice ? Method::ClassicalGramSchmidt : Method::ModifiedGramSchmidt;
        if (code == Code::MgsTwice || code == Code::CgsTwice)
            options.method.set_reorthogonalization(Reorthogonalization::Always);
        options.q = QForm::Explicit;
        options.method.set_panel_width(width);
        const Plan plan = plan_qr<T>(ctx, m, n, options);
        if (by_quoin(code)) row.width = plan.panel_width;

        std::vector<double> seconds;
        Matrix<T> Q, R(n, n);
        ReferenceLapack<T> lapack(m, n);
        double total = 0;
        do {
            throw_if_interrupted();
            Q = Matrix<T>(m, n);
            copy_in_parallel(Q.data(), A.data(), sizeof(T) * static_cast<std::size_t>(m * n));
            std::optional<QR<T>> f;
            const Stopwatch watch;
            switch (code) {
                case Code::Elementwise: bench::mgs_elementwise<T>(Q.view(), R.view()); break;
                case Code::Blas2: bench::mgs_blas2<T>(Q.view(), R.view()); break;
                case Code::Unblocked: bench::mgs_unblocked<T>(Q.view(), R.view(), ctx.threads()); break;
                case Code::PaperBlocked: bench::mgs_blocked<T>(Q.view(), R.view(), width, ctx.threads()); break;
                case Code::Lapack:
                    lapack.geqrf(Q.view());
                    for (Index j = 0; j < n; ++j) std::copy_n(Q.view().at(0, j), j + 1, R.view().at(0, j));
                    lapack.orgqr(Q.view());
                    break;
                default: f.emplace(qr<T, Host>(ctx, std::move(Q), plan));
            }
            seconds.push_back(watch.seconds());
            total += seconds.back();
            if (f) {
                ThinQR<T> thin = std::move(*f).take_thin(ctx);
                R = std::move(thin.R);
                Q = std::move(thin.Q);
            }
        } while (seconds.back() < 2 && (seconds.size() < 3 || total < 0.5) &&
                 (arguments_.repeat == 0 || static_cast<int>(seconds.size()) < arguments_.repeat));
        row.seconds = median(std::move(seconds));
        if (accuracy) {
            for (Index j = 0; j < n; ++j) std::fill(R.view().at(j + 1, j), R.view().at(n, j), T(0));
            row.orthogonality = orthogonality<T>(ctx_, std::as_const(Q).view());
            row.residual = residual<T>(ctx_, A.view(), std::as_const(Q).view(), std::as_const(R).view());
        }
        report(row);
        return row;
    }

    void report(const Row& row) {
        JsonLine json;
        json.add("rows", row.shape.rows).add("cols", row.shape.cols).add("dtype", to_string(row.dtype));
        json.add("code", row.code->name).add("threads", row.threads).add("panel_width", row.width);
        json.add("seconds", row.seconds).add("gflops", row.gflops());
        json.add_measured("orthogonality", row.orthogonality).add_measured("residual", row.residual);
        results_.add(json);
    }

    template <class T>
    Matrix<T> random(Shape shape) {
        Matrix<T> A(shape.rows, shape.cols);
        fill_normal(A, /*seed=*/1);
        return A;
    }

    /// Every code at one size.
    template <class T>
    void compare(Shape shape, DType dtype) {
        const Matrix<T> A = random<T>(shape);
        results_.say("\n{} x {} {:<26} {:>10} {:>10} {:>12} {:>12} {:>12}\n", shape.rows, shape.cols, to_string(dtype),
                     "seconds", "GFLOP/s", "/ unblocked", "‖I − QᵀQ‖", "residual");
        double unblocked = 0, mgs = 0;
        for (const CodeName& code : codes) {
            if (code.code == Code::Elementwise && shape.cols > most_elementwise_cols) continue;
            const Row row =
                measure<T>(A, dtype, code.code, ctx_, code.code == Code::PaperBlocked ? paper_width : 0, true);
            if (code.code == Code::Unblocked) unblocked = row.seconds;
            if (code.code == Code::Mgs) mgs = row.seconds;
            results_.say("{:<40} {:>10.4g} {:>10.1f} {:>12} {:>12.2e} {:>12.2e}\n", code.text, row.seconds,
                         row.gflops(), unblocked > 0 ? fmt::format("{:.1f}x", unblocked / row.seconds) : "",
                         row.orthogonality, row.residual);
        }
        if (shape.cols >= required_from)
            results_.say("mgs over unblocked: {:.1f}x, required {:g}x\n", unblocked / mgs, required_ratio);
    }

    /// Figure 4: GFLOP/s over the width of a panel, the best of each line marked.
    template <class T>
    void vary_width(const std::vector<Shape>& shapes, DType dtype) {
        results_.say("\nGFLOP/s over the columns of a panel, {}\n{:<24}", to_string(dtype), "");
        for (const Index width : widths) results_.say("{:>9}", width);
        results_.say("{:>9}\n", "best");
        for (const Shape shape : shapes) {
            const Matrix<T> A = random<T>(shape);
            for (const Code code : {Code::PaperBlocked, Code::Mgs, Code::Cgs}) {
                // the paper's code at 8192 columns takes a minute a width
                if (code == Code::PaperBlocked && shape.cols > required_from) continue;
                results_.say("{:<24}", fmt::format("{} {}x{}",
                                                   code == Code::PaperBlocked ? "paper"
                                                   : code == Code::Mgs        ? "mgs"
                                                                              : "cgs",
                                                   shape.rows, shape.cols));
                std::optional<Row> best;
                for (const Index width : widths) {
                    const Row row = measure<T>(A, dtype, code, ctx_, width, false);
                    results_.say("{:>9.1f}", row.gflops());
                    if (!best || row.seconds < best->seconds) best = row;
                }
                results_.say("{:>9}\n", best->width);
            }
        }
    }

    /// Figure 2: over the number of threads.
    template <class T>
    void vary_threads(Shape shape, DType dtype) {
        const Matrix<T> A = random<T>(shape);
        results_.say("\nGFLOP/s over threads, {} x {} {}\n{:<24}", shape.rows, shape.cols, to_string(dtype), "");
        std::vector<int> counts;
        for (int t = 1; t < ctx_.threads(); t *= 2) counts.push_back(t);
        counts.push_back(ctx_.threads());
        for (const int t : counts) results_.say("{:>9}", t);
        results_.say("{:>9}\n", "speedup");
        for (const Code code : {Code::Unblocked, Code::PaperBlocked, Code::Mgs}) {
            results_.say("{:<24}", code == Code::Unblocked      ? "unblocked"
                                   : code == Code::PaperBlocked ? "paper, blocked"
                                                                : "mgs");
            double first = 0, last = 0;
            for (const int t : counts) {
                Context<Host> ctx(t);
                const Row row = measure<T>(A, dtype, code, ctx, code == Code::PaperBlocked ? paper_width : 0, false);
                if (first == 0) first = row.seconds;
                last = row.seconds;
                results_.say("{:>9.1f}", row.gflops());
            }
            results_.say("{:>8.2f}x\n", first / last);
        }
    }

    const BenchArguments& arguments_;
    Context<Host> ctx_;
    InterruptGuard guard_;
    Results results_;
};

// ---- The laws -------------------------------------------------------------------------------------------------------

constexpr Shape law_shape = {1000, 100};

struct Law {
    const char* name;
    const char* text;
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
        Matrix<double> X(rows, n);
        fill_normal(X, seed);
        return qr(ctx, X.view(), law_options(Method::BlockedHouseholder)).form_q(ctx);
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
void measure_laws(Context<Host>& ctx, Results& results, DType dtype) {
    using enum Reorthogonalization;
    const Law laws[] = {{"cgs", "CGS", law_options(Method::ClassicalGramSchmidt)},
                        {"mgs", "MGS", law_options(Method::ModifiedGramSchmidt)},
                        {"cgs-selective", "CGS, sel.", law_options(Method::ClassicalGramSchmidt, Selective)},
                        {"cgs-always", "CGS, alw.", law_options(Method::ClassicalGramSchmidt, Always)},
                        {"mgs-always", "MGS, alw.", law_options(Method::ModifiedGramSchmidt, Always)},
                        {"householder", "Householder", law_options(Method::BlockedHouseholder)},
                        {"tsqr", "TSQR", law_options(Method::TSQR)}};
    results.say("\n{:<10}", fmt::format("κ, {}", to_string(dtype)));
    for (const Law& law : laws) results.say("{:>13}", law.text);
    results.say("\n");
    const Index m = law_shape.rows, n = law_shape.cols;
    for (double kappa = 10; kappa < 1.01 * (dtype == DType::F32 ? 1e6 : 1e15); kappa *= 10) {
        throw_if_interrupted();
        const Matrix<double> exact = near_one_line(ctx, kappa);
        Matrix<T> A(m, n);
        for (Index i = 0; i < m * n; ++i) A.data()[i] = static_cast<T>(exact.data()[i]);
        results.say("{:<10.0e}", kappa);
        for (const Law& law : laws) {
            const QR<T> f = qr(ctx, A.view(), law.options);
            const Matrix<T> Q = f.form_q(ctx), R = f.r();
            const double lost = orthogonality<T>(ctx, Q.view()), left = residual<T>(ctx, A.view(), Q.view(), R.view());
            JsonLine json;
            json.add("rows", m).add("cols", n).add("dtype", to_string(dtype)).add("code", law.name);
            results.add(json.add("condition", kappa).add("orthogonality", lost).add("residual", left));
            results.say("{:>13.1e}", lost);
        }
        results.say("\n");
    }
}

}  // namespace

void bench_gram_schmidt(const BenchArguments& arguments) { GramSchmidtBench(arguments).run(); }

void bench_orthogonality(const BenchArguments& arguments) {
    Context<Host> ctx = make_context(arguments.common);
    const InterruptGuard guard(ctx);
    Results results(arguments);
    results.describe("singular values 1, 1/κ, …, 1/κ");
    results.say("‖I − QᵀQ‖_F of {} x {} matrices with singular values 1, 1/κ, …, 1/κ\n", law_shape.rows,
                law_shape.cols);
    for (const DType dtype : arguments.dtypes_or({DType::F32, DType::F64}))
        with_dtype(dtype, [&]<class T>(T) { measure_laws<T>(ctx, results, dtype); });
}

}  // namespace quoin::cli
