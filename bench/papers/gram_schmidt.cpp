// Figures 2, 4 and 10 and Table 2 of Brandes, Arnold, Soddemann and Reith (2012): modified Gram-Schmidt on a CPU.

#include <fmt/format.h>

#include <algorithm>

#include "byte_size.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "papers/gram_schmidt.hpp"
#include "papers/gram_schmidt_baselines.hpp"
#include "random_matrix.hpp"
#include "results.hpp"
#include "rivals/reference_lapack.hpp"
#include "stopwatch.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "measure/cuda/device.hpp"
#endif

namespace quoin::cli {

namespace {

constexpr Index widths[] = {16, 32, 48, 64, 96, 128, 192, 256};
/// Beyond, Listing 1 takes minutes.
constexpr Index max_elementwise_cols = 2048;
/// The paper's width 32, which is near the best of `widths` for its blocked code at every size.
constexpr Index paper_width = 32;

enum class Code { Elementwise, Blas2, Unblocked, PaperBlocked, Mgs, MgsTwice, Cgs, CgsTwice, Lapack };

/// Names of the codes, in the order of `Code`: Listings 1 and 3, OpenMP, the paper's blocks, Quoin's, and LAPACK's.
constexpr const char* codes[] = {"mgs-elementwise", "mgs-blas2", "mgs-unblocked", "mgs-blocked", "mgs",
                                 "mgs-always",      "cgs",       "cgs-always",    "geqrf-orgqr"};

class GramSchmidtBench {
public:
    explicit GramSchmidtBench(const BenchArguments& arguments)
        : arguments_(arguments), ctx_(make_context(arguments.common)), guard_(ctx_), results_(arguments) {}

    /// Figure 10: every code at every order.
    void sizes() {
        for_each_shape([&]<class T>(T, Shape shape) { compare<T>(shape); });
    }
    /// Figure 4: GFLOP/s over the width of a panel.
    void panel_widths() {
        for_each_shape([&]<class T>(T, Shape shape) { vary_width<T>(shape); });
    }
    /// Figure 2: over the number of threads.
    void threads() {
        for_each_shape([&]<class T>(T, Shape shape) { vary_threads<T>(shape); });
    }

private:
    template <class Work>
    void for_each_shape(Work work) {
        const std::string where = describe_host(ctx_);
        results_.describe(where);
        results_.say("Modified Gram-Schmidt, GFLOP/s = 2mn²/T\n{}\n", where);
        warn_about_host();
        arguments_.for_each_dtype({ScalarKind::F32}, [&](auto zero) {
            for (const Shape shape : arguments_.shapes_or(squares(gram_schmidt_orders))) work(zero, shape);
        });
    }

    template <class T>
    void measure(const Matrix<T>& A, Code code, Context<Host>& ctx, Index width, bool accuracy) {
        const Index m = A.rows(), n = A.cols();
        Options options = arguments_.common.options;
        options.method =
            code == Code::Cgs || code == Code::CgsTwice ? Method::ClassicalGramSchmidt : Method::ModifiedGramSchmidt;
        if (code == Code::MgsTwice || code == Code::CgsTwice)
            options.method.set_reorthogonalization(Reorthogonalization::Always);
        options.q = QForm::Explicit;
        options.method.set_panel_width(width);
        const Plan plan = plan_qr<T>(ctx, m, n, options);

        Matrix<T> Q, R(n, n);
        ReferenceLapack<T> lapack(m, n);
        const auto run = [&] {
            Q = Matrix<T>(m, n);
            copy_in_parallel(Q.data(), A.data(), sizeof(T) * static_cast<std::size_t>(m * n));
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
                default: {
                    QR<T> f = qr<T, Host>(ctx, std::move(Q), plan);
                    width = plan.panel_width;
                    const double seconds = watch.seconds();
                    ThinQR<T> thin = std::move(f).take_thin(ctx);
                    R = std::move(thin.R);
                    Q = std::move(thin.Q);
                    return seconds;
                }
            }
            return watch.seconds();
        };
        const double seconds = median_of(run, arguments_.repeat);
        double orthogonality = -1, residual = -1;
        if (accuracy) {
            for (Index j = 0; j < n; ++j) std::fill(R.view().at(j + 1, j), R.view().at(n, j), T(0));
            orthogonality = quoin::orthogonality<T>(ctx_, std::as_const(Q).view());
            residual = quoin::residual<T>(ctx_, A.view(), std::as_const(Q).view(), std::as_const(R).view());
        }
        JsonLine json = case_line({m, n}, scalar_kind<T>);
        json.add("code", codes[static_cast<int>(code)]);
        json.add("threads", code == Code::Elementwise ? 1 : ctx.threads()).add("panel_width", width);
        json.add("seconds", seconds).add("gflops", gram_schmidt_gflops({m, n}, seconds));
        results_.add(json.add_measured("orthogonality", orthogonality).add_measured("residual", residual));
    }

    /// Every code at one size.
    template <class T>
    void compare(Shape shape) {
        const Matrix<T> A = normal_matrix<T>(shape.rows, shape.cols);
        for (Code code = Code::Elementwise; code <= Code::Lapack; code = Code(int(code) + 1))
            if (code != Code::Elementwise || shape.cols <= max_elementwise_cols)
                measure<T>(A, code, ctx_, code == Code::PaperBlocked ? paper_width : 0, true);
    }

    template <class T>
    void vary_width(Shape shape) {
        const Matrix<T> A = normal_matrix<T>(shape.rows, shape.cols);
        for (const Code code : {Code::PaperBlocked, Code::Mgs, Code::Cgs})
            for (const Index width : widths)
                if (width <= shape.cols) measure<T>(A, code, ctx_, width, false);
    }

    template <class T>
    void vary_threads(Shape shape) {
        const Matrix<T> A = normal_matrix<T>(shape.rows, shape.cols);
        std::vector<int> counts;
        for (int t = 1; t < ctx_.threads(); t *= 2) counts.push_back(t);
        counts.push_back(ctx_.threads());
        for (const Code code : {Code::Unblocked, Code::PaperBlocked, Code::Mgs})
            for (const int t : counts) {
                Context<Host> ctx(t);
                measure<T>(A, code, ctx, code == Code::PaperBlocked ? paper_width : 0, false);
            }
    }

    const BenchArguments& arguments_;
    Context<Host> ctx_;
    InterruptGuard guard_;
    Results results_;
};

}  // namespace

void bench_gram_schmidt_sizes(const BenchArguments& arguments) { GramSchmidtBench(arguments).sizes(); }
void bench_gram_schmidt_widths(const BenchArguments& arguments) { GramSchmidtBench(arguments).panel_widths(); }
void bench_gram_schmidt_threads(const BenchArguments& arguments) { GramSchmidtBench(arguments).threads(); }

void bench_gram_schmidt_machine(const BenchArguments& arguments) {
    Results results(arguments);
    const Machine machine = describe_machine();
    std::string caches;
    for (const Cache& cache : machine.caches)
        caches += fmt::format("{}L{} {} ({} CPUs)", caches.empty() ? "" : ", ", cache.level,
                              format_byte_size(static_cast<double>(cache.bytes)), cache.shared_by);
    results.describe(machine.cpu);
    warn_about_host();
    results.say("{}: {} cores, {}, {} of memory\n", machine.cpu, machine.physical_cores, caches,
                format_byte_size(static_cast<double>(machine.memory_bytes)));
    JsonLine line;
    line.add("name", machine.cpu).add("cores", machine.physical_cores).add("caches", caches);
    results.add(line.add("memory_bytes", machine.memory_bytes));
#ifdef QUOIN_HAVE_CUDA
    if (!arguments.on_device()) return;
    device_context();
    results.say("{}\n", bench::describe_device());
    line = {};
    line.add("name", bench::describe_device()).add_null("cores").add_null("caches");
    results.add(line.add_null("memory_bytes"));
#endif
}

}  // namespace quoin::cli
