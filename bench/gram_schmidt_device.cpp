// Figures 6 to 9 of Brandes, Arnold, Soddemann and Reith (2012), modified Gram-Schmidt on a GPU, and classical
// Gram-Schmidt in every arithmetic of its tensor cores against cuSOLVER's and Quoin's Householder QR.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "accuracy.hpp"
#include "bench.hpp"
#include "cusolver_qr.hpp"
#include "device.hpp"
#include "devices.hpp"
#include "gram_schmidt_kernels.hpp"
#include "interrupt.hpp"
#include "quoin/study.hpp"
#include "random.hpp"
#include "results.hpp"

namespace quoin::cli {

namespace {

using bench::Access;
using bench::BlockShape;

constexpr Index paper_sizes[] = {1024, 2048, 4096, 8192};
constexpr int along[] = {32, 64, 128, 256, 512, 1024}, columns_a_block[] = {1, 2, 4, 8, 16};
constexpr int most_threads = 1024;
/// A kernel is timed on every `step_stride`-th step of a factorization.
constexpr Index step_stride = 128;
/// The required speed of the blocked method over cuBLAS's, from `required_over_blas2_from` columns on.
constexpr double required_over_blas2 = 5;
constexpr Index required_over_blas2_from = 8192;

constexpr Index tensor_sizes[] = {16384, 32768};
/// Required ratios: cuSOLVER's seconds / corrected and reorthogonalised classical Gram-Schmidt's, and / plain FP16's.
constexpr double required_corrected = 3, required_fp16 = 10;

const char* name_of(Access access) { return access == Access::Direct ? "direct" : "shared"; }

/// Shared by both tables.
class DeviceTables {
public:
    explicit DeviceTables(const BenchArguments& arguments)
        : arguments_(arguments),
          host_(make_context(arguments.common)),
          guard_(host_),
          ctx_(device_context()),
          results_(arguments) {
        results_.describe(bench::describe_device());
        results_.say("{}\n", bench::describe_device());
    }

protected:
    /// 2mn²/T, for every code.
    static double gflops(Shape shape, double seconds) {
        return 2e-9 * static_cast<double>(shape.rows) * std::pow(static_cast<double>(shape.cols), 2) / seconds;
    }
    std::vector<Shape> shapes(std::span<const Index> sizes) const {
        std::vector<Shape> result = arguments_.shapes;
        if (result.empty()) {
            for (const Index n : sizes) result.push_back({n, n});
        }
        return result;
    }
    /// Returns the median of three runs, or of --repeat runs, after a warm-up. A run of over a second is made once,
    /// without.
    double median_seconds(const std::function<double()>& run) const {
        throw_if_interrupted();
        const double first = run();
        if (first > 1 && arguments_.repeat == 0) return first;
        std::vector<double> seconds;
        for (int i = 0; i < (arguments_.repeat > 0 ? arguments_.repeat : 3); ++i) {
            throw_if_interrupted();
            seconds.push_back(run());
        }
        return median(std::move(seconds));
    }
    /// Seconds of Q and R by `options`, in place, and the answer.
    template <class T>
    double run_quoin(const Matrix<T, Cuda>& A, const Options& options, Matrix<T, Cuda>& Q, Matrix<T, Cuda>& R) {
        const Plan plan = plan_qr<T>(ctx_, A.rows(), A.cols(), options);
        Q = {};
        R = {};
        Matrix<T, Cuda> work(ctx_, A.rows(), A.cols());
        copy<T>(ctx_, A.view(), work.view());
        return bench::seconds_of(ctx_, [&] {
            ThinQR<T, Cuda> thin = qr<T, Cuda>(ctx_, std::move(work), plan).take_thin(ctx_);
            R = std::move(thin.R);
            Q = std::move(thin.Q);
        });
    }
    /// Times cuSOLVER's geqrf and orgqr.
    template <class T>
    double run_cusolver(const Matrix<T, Cuda>& A, bench::CusolverQR<T>& cusolver, Matrix<T, Cuda>& Q,
                        Matrix<T, Cuda>& R) {
        Q = {};
        R = {};
        Q = Matrix<T, Cuda>(ctx_, A.rows(), A.cols());
        copy<T>(ctx_, A.view(), Q.view());
        return bench::seconds_of(ctx_, [&] {
            cusolver.geqrf(ctx_, Q);
            R = bench::upper_trapezoid(ctx_, Q);
            cusolver.orgqr(ctx_, Q);
        });
    }

    const BenchArguments& arguments_;
    Context<Host> host_;
    InterruptGuard guard_;
    Context<Cuda> ctx_;
    Results results_;
};

// ---- Figures 6 to 9 -------------------------------------------------------------------------------------------------

class PaperFigures : DeviceTables {
public:
    using DeviceTables::DeviceTables;

    void run() {
        const std::vector<Shape> sizes = shapes(paper_sizes);
        for (const DType dtype : arguments_.dtypes_or({DType::F32, DType::F64})) {
            with_dtype(dtype, [&]<class T>(T) {
                kernels<T>(sizes.back(), dtype);
                steps<T>(sizes.back(), dtype);
                results_.say(
                    "\nFigure 9: modified Gram-Schmidt, {}, GFLOP/s = 2mn²/T\n{:>12} {:<26} {:>10} {:>10} {:>12} "
                    "{:>12} "
                    "{:>12}\n",
                    quoin::to_string(dtype), "matrix", "code", "seconds", "GFLOP/s", "/ cuBLAS", "‖I − QᵀQ‖",
                    "residual");
                for (const Shape shape : sizes) codes<T>(shape, dtype);
            });
        }
        results_.say(
            "\nThe paper's 8192² in f32: cuBLAS 4.1 and its own kernels on a GeForce GTX480 about 45 and 49 "
            "GFLOP/s.\n");
    }

private:
    struct Choice {
        Access access = Access::Direct;
        BlockShape shape{256, 1};
        double seconds = 0;
    };

    void report(Shape size, DType dtype, const char* code, const Choice* choice, Index left, double seconds,
                double rate, double orthogonality = -1, double residual = -1) {
        JsonLine json;
        json.add("rows", size.rows).add("cols", size.cols).add("dtype", quoin::to_string(dtype)).add("code", code);
        json.add("access", choice ? name_of(choice->access) : "");
        json.add("nx", choice ? choice->shape.nx : 0).add("ny", choice ? choice->shape.ny : 0);
        json.add("columns_left", left).add("seconds", seconds).add("gflops", rate);
        json.add_measured("orthogonality", orthogonality).add_measured("residual", residual);
        results_.add(json);
    }

    /// One launch of either kernel with `left` columns to the right of column i.
    template <class T>
    void launch(bool dots, const Choice& choice, Matrix<T, Cuda>& Q, Matrix<T, Cuda>& R, Index i) {
        if (dots) {
            bench::dot_products<T>(ctx_, Q.view(), R.view(), i, choice.shape, choice.access);
        } else {
            bench::orthogonalize<T>(ctx_, Q.view(), R.view(), i, choice.shape, choice.access);
        }
    }

    /// Figures 6 and 7: the kernels over the shapes of a block, by every `step_stride`-th step.
    template <class T>
    void kernels(Shape size, DType dtype) {
        Matrix<T, Cuda> Q(ctx_, size.rows, size.cols), R(ctx_, size.cols, size.cols);
        bench::fill_normal(ctx_, Q);
        for (const bool dots : {false, true})
            for (const Access access : {Access::Direct, Access::Shared}) {
                results_.say(
                    "\nFigure {}: {} kernel, {}, {} x {} {}, GFLOP/s over NX threads along a column (down) and NY "
                    "columns "
                    "a block\n{:>8}",
                    dots ? 7 : 6, dots ? "dot products" : "orthogonalization",
                    access == Access::Direct ? "direct access" : "through shared memory", size.rows, size.cols,
                    quoin::to_string(dtype), "");
                for (const int ny : columns_a_block) results_.say("{:>9}", ny);
                results_.say("\n");
                Choice& best = dots ? dots_ : updates_;
                if (access == Access::Direct) best = {};
                for (const int nx : along) {
                    results_.say("{:>8}", nx);
                    for (const int ny : columns_a_block) {
                        if (nx * ny > most_threads) continue;
                        Choice choice{access, {nx, ny}};
                        // the updates subtract nothing: entries keep their values however often they are updated
                        set_identity<T>(ctx_, size.cols, R.view());
                        double flops = 0;
                        const double seconds = timed(flops, dots, choice, Q, R);
                        const double rate = 1e-9 * flops / seconds;
                        choice.seconds = seconds;
                        results_.say("{:>9.1f}", rate);
                        report(size, dtype, dots ? "dot-products" : "orthogonalization", &choice, -1, seconds, rate);
                        if (best.seconds == 0 || seconds < best.seconds) best = choice;
                    }
                    results_.say("\n");
                }
            }
    }

    template <class T>
    double timed(double& flops, bool dots, const Choice& choice, Matrix<T, Cuda>& Q, Matrix<T, Cuda>& R) {
        throw_if_interrupted();
        const Index n = Q.cols(), stride = std::max<Index>(1, std::min(step_stride, n / 8));
        launch(dots, choice, Q, R, 0);
        return bench::seconds_of(ctx_, [&] {
            for (Index i = 0; i < n; i += stride) {
                launch(dots, choice, Q, R, i);
                flops += 2.0 * static_cast<double>(Q.rows()) * static_cast<double>(n - i);
            }
        });
    }

    /// Figure 8: a launch of the orthogonalization over the columns that are left.
    template <class T>
    void steps(Shape size, DType dtype) {
        constexpr BlockShape some[] = {{32, 8}, {64, 8}, {128, 8}, {256, 1}, {512, 1}};
        constexpr int launches = 16;
        Matrix<T, Cuda> Q(ctx_, size.rows, size.cols), R(ctx_, size.cols, size.cols);
        bench::fill_normal(ctx_, Q);
        set_identity<T>(ctx_, size.cols, R.view());
        results_.say(
            "\nFigure 8: µs of an orthogonalization by direct access over the columns that are left, {} x {} {}\n{:>8}",
            size.rows, size.cols, quoin::to_string(dtype), "");
        for (const BlockShape shape : some) results_.say("{:>9}", fmt::format("{}x{}", shape.nx, shape.ny));
        results_.say("\n");
        for (Index left = 16; left < size.cols; left *= 2) {
            results_.say("{:>8}", left);
            for (const BlockShape shape : some) {
                const Choice choice{Access::Direct, shape};
                launch(false, choice, Q, R, size.cols - left - 1);
                const double seconds = bench::seconds_of(ctx_,
                                                         [&] {
                                                             for (int i = 0; i < launches; ++i)
                                                                 launch(false, choice, Q, R, size.cols - left - 1);
                                                         }) /
                                       launches;
                results_.say("{:>9.1f}", 1e6 * seconds);
                report(size, dtype, "orthogonalization", &choice, left, seconds,
                       2e-9 * static_cast<double>(size.rows) * static_cast<double>(left) / seconds);
            }
            results_.say("\n");
        }
    }

    /// Figure 9, with Quoin's blocked method and cuSOLVER for comparison.
    template <class T>
    void codes(Shape size, DType dtype) {
        Matrix<T, Cuda> A(ctx_, size.rows, size.cols), Q, R;
        bench::fill_normal(ctx_, A);
        bench::CusolverQR<T> cusolver(ctx_, size.rows, size.cols);
        const auto by_columns = [&](auto mgs) {
            return [&, mgs] {
                Q = Matrix<T, Cuda>(ctx_, size.rows, size.cols);
                R = Matrix<T, Cuda>(ctx_, size.cols, size.cols);
                copy<T>(ctx_, A.view(), Q.view());
                set_identity<T>(ctx_, size.cols, R.view());
                return bench::seconds_of(ctx_, mgs);
            };
        };
        const auto by_quoin = [&](Method method, Reorthogonalization reorthogonalization) {
            Options options = arguments_.common.options;
            options.method = method;
            options.q = QForm::Explicit;
            options.method.set_reorthogonalization(reorthogonalization);
            return [&, options] { return run_quoin(A, options, Q, R); };
        };
        using enum Method;
        using enum Reorthogonalization;
        const struct {
            const char *name, *text;
            std::function<double()> run;
        } codes[] = {
            {"mgs-cublas", "cuBLAS GEMV, SCAL, GER",
             by_columns([&] { bench::mgs_cublas<T>(ctx_, Q.view(), R.view()); })},
            {"mgs-native", "the paper's kernels", by_columns([&] {
                 bench::mgs_native<T>(ctx_, Q.view(), R.view(), dots_.shape, dots_.access, updates_.shape,
                                      updates_.access);
             })},
            {"mgs", "Quoin: mgs", by_quoin(ModifiedGramSchmidt, Off)},
            {"mgs-always", "  reorthogonalized always", by_quoin(ModifiedGramSchmidt, Always)},
            {"cgs", "Quoin: cgs", by_quoin(ClassicalGramSchmidt, Off)},
            {"cgs-always", "  reorthogonalized always", by_quoin(ClassicalGramSchmidt, Always)},
            {"geqrf-orgqr", "cuSOLVER: geqrf + orgqr", [&] { return run_cusolver(A, cusolver, Q, R); }},
        };
        double blas2 = 0, mgs = 0;
        for (const auto& code : codes) {
            const double seconds = median_seconds(code.run);
            if (blas2 == 0) blas2 = seconds;
            if (std::string(code.name) == "mgs") mgs = seconds;
            const double orthogonality = bench::orthogonality(ctx_, Q), residual = bench::residual(ctx_, A, Q, R);
            report(size, dtype, code.name, nullptr, -1, seconds, gflops(size, seconds), orthogonality, residual);
            results_.say("{:>12} {:<26} {:>10.4g} {:>10.1f} {:>11.1f}x {:>12.2e} {:>12.2e}\n",
                         fmt::format("{}x{}", size.rows, size.cols), code.text, seconds, gflops(size, seconds),
                         blas2 / seconds, orthogonality, residual);
        }
        if (size.cols >= required_over_blas2_from)
            results_.say("mgs over cuBLAS: {:.1f}x, required {:g}x\n", blas2 / mgs, required_over_blas2);
    }

    Choice dots_, updates_;  // the best of Figures 7 and 6
};

// ---- Tensor cores ---------------------------------------------------------------------------------------------------

class TensorCores : DeviceTables {
public:
    using DeviceTables::DeviceTables;

    void run() {
        results_.say("\nQ and R in f32; GFLOP/s = 2mn²/T; orthogonality and residual in f64 on the device\n");
        for (const Shape shape : shapes(tensor_sizes)) compare(shape);
    }

private:
    struct Row {
        const char *method, *arithmetic, *reorthogonalization;
        double required = 0;
    };

    void compare(Shape shape) {
        results_.say("\n{:>12} {:<12} {:<10} {:<8} {:>10} {:>10} {:>12} {:>9} {:>12} {:>12}\n",
                     fmt::format("{}x{}", shape.rows, shape.cols), "method", "arithmetic", "again", "seconds",
                     "GFLOP/s", "/ cuSOLVER", "required", "‖I − QᵀQ‖", "residual");
        Matrix<float, Cuda> A(ctx_, shape.rows, shape.cols), Q, R;
        bench::fill_normal(ctx_, A);
        double cusolver_seconds = 0;
        {
            bench::CusolverQR<float> cusolver(ctx_, shape.rows, shape.cols);
            cusolver_seconds = median_seconds([&] { return run_cusolver(A, cusolver, Q, R); });
            report(shape, {"cusolver", "native", ""}, cusolver_seconds, 1, A, Q, R);
        }
        const auto measure = [&](Method method, Arithmetic arithmetic, Reorthogonalization again, double required = 0) {
            Options options = arguments_.common.options;
            options.method = method;
            options.q = QForm::Explicit;
            options.arithmetic = arithmetic;
            options.method.set_reorthogonalization(again);
            const double seconds = median_seconds([&] { return run_quoin(A, options, Q, R); });
            const bool by_columns = method == Method::ClassicalGramSchmidt;
            report(shape,
                   {quoin::to_string(method), quoin::to_string(arithmetic), by_columns ? quoin::to_string(again) : "",
                    required},
                   seconds, cusolver_seconds / seconds, A, Q, R);
        };
        using enum Arithmetic;
        using enum Reorthogonalization;
        for (const Arithmetic arithmetic : {Native, Corrected}) measure(Method::BlockedHouseholder, arithmetic, Off);
        for (const Reorthogonalization again : {Off, Always})
            for (const Arithmetic arithmetic : {Native, study::TF32, FP16, study::BF16, Corrected})
                measure(Method::ClassicalGramSchmidt, arithmetic, again,
                        arithmetic == Corrected && again == Always ? required_corrected
                        : arithmetic == FP16 && again == Off       ? required_fp16
                                                                   : 0);
    }

    void report(Shape shape, const Row& row, double seconds, double ratio, const Matrix<float, Cuda>& A,
                Matrix<float, Cuda>& Q, Matrix<float, Cuda>& R) {
        const double orthogonality = bench::orthogonality(ctx_, Q), residual = bench::residual(ctx_, A, Q, R);
        const std::string required = row.required > 0 ? fmt::format("{:g}", row.required) : "";
        results_.say("{:>12} {:<12} {:<10} {:<8} {:>10.4g} {:>10.0f} {:>12.2f} {:>9} {:>12.2e} {:>12.2e}\n", "",
                     row.method, row.arithmetic, row.reorthogonalization, seconds, gflops(shape, seconds), ratio,
                     required, orthogonality, residual);
        JsonLine json;
        json.add("rows", shape.rows).add("cols", shape.cols).add("dtype", "f32").add("method", row.method);
        json.add("arithmetic", row.arithmetic).add("reorthogonalization", row.reorthogonalization);
        json.add("seconds", seconds).add("gflops", gflops(shape, seconds)).add("ratio", ratio);
        json.add_measured("required_ratio", row.required > 0 ? row.required : -1);
        results_.add(json.add("orthogonality", orthogonality).add("residual", residual));
    }
};

}  // namespace

void bench_gram_schmidt_on_device(const BenchArguments& arguments) { PaperFigures(arguments).run(); }

void bench_tensor_cores(const BenchArguments& arguments) { TensorCores(arguments).run(); }

}  // namespace quoin::cli
