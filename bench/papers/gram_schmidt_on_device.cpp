// Figures 6 to 9 of Brandes, Arnold, Soddemann and Reith (2012): modified Gram-Schmidt on a GPU.

#include <algorithm>
#include <functional>

#include "papers/gram_schmidt_kernels.hpp"
#include "papers/thin_qr_on_device.hpp"

namespace quoin::cli {

namespace {

using bench::Access;
using bench::BlockShape;

constexpr int along[] = {32, 64, 128, 256, 512, 1024}, columns_a_block[] = {1, 2, 4, 8, 16};
constexpr int max_threads = 1024;
/// A kernel is timed on every `step_stride`-th step of a factorization.
constexpr Index step_stride = 128;
const char* name_of(Access access) { return access == Access::Direct ? "direct" : "shared"; }

class PaperFigures : ThinQrOnDevice {
public:
    using ThinQrOnDevice::ThinQrOnDevice;

    /// Figures 6 and 7.
    void block_shapes() {
        for_each_dtype([&]<class T>(T) { kernels<T>(sizes().back()); });
    }
    /// Figure 8.
    void columns_left() {
        for_each_dtype([&]<class T>(T) { steps<T>(sizes().back()); });
    }
    /// Figures 9 and 10, by the best shapes of a block.
    void every_code() {
        for_each_dtype([&]<class T>(T) {
            kernels<T>(sizes().back());
            for (const Shape shape : sizes()) codes<T>(shape);
        });
    }

private:
    std::vector<Shape> sizes() const { return arguments_.shapes_or(squares(gram_schmidt_orders)); }
    template <class Work>
    void for_each_dtype(Work work) const {
        arguments_.for_each_dtype({ScalarKind::F32, ScalarKind::F64}, work);
    }

    struct Choice {
        Access access = Access::Direct;
        BlockShape shape{256, 1};
        double seconds = 0;
    };

    void report(Shape size, ScalarKind dtype, const char* code, const Choice* choice, Index left, double seconds,
                double rate, double orthogonality = -1, double residual = -1) {
        JsonLine json = case_line(size, dtype);
        json.add("code", code).add("access", choice ? name_of(choice->access) : "");
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
    void kernels(Shape size) {
        Matrix<T, Cuda> Q(ctx_, size.rows, size.cols), R(ctx_, size.cols, size.cols);
        bench::fill_normal(ctx_, Q);
        for (const bool dots : {false, true})
            for (const Access access : {Access::Direct, Access::Shared}) {
                Choice& best = dots ? dots_ : updates_;
                if (access == Access::Direct) best = {};
                for (const int nx : along)
                    for (const int ny : columns_a_block) {
                        if (nx * ny > max_threads) continue;
                        Choice choice{access, {nx, ny}};
                        // the updates subtract nothing: entries keep their values however often they are updated
                        set_identity<T>(ctx_, size.cols, R.view());
                        double flops = 0;
                        const double seconds = timed(flops, dots, choice, Q, R);
                        const double rate = 1e-9 * flops / seconds;
                        choice.seconds = seconds;
                        report(size, scalar_kind<T>, dots ? "dot-products" : "orthogonalization", &choice, -1, seconds,
                               rate);
                        if (best.seconds == 0 || seconds < best.seconds) best = choice;
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
    void steps(Shape size) {
        constexpr BlockShape some[] = {{32, 8}, {64, 8}, {128, 8}, {256, 1}, {512, 1}};
        constexpr int launches = 16;
        Matrix<T, Cuda> Q(ctx_, size.rows, size.cols), R(ctx_, size.cols, size.cols);
        bench::fill_normal(ctx_, Q);
        set_identity<T>(ctx_, size.cols, R.view());
        for (Index left = 16; left < size.cols; left *= 2)
            for (const BlockShape shape : some) {
                const Choice choice{Access::Direct, shape};
                launch(false, choice, Q, R, size.cols - left - 1);
                const double seconds = bench::seconds_of(ctx_,
                                                         [&] {
                                                             for (int i = 0; i < launches; ++i)
                                                                 launch(false, choice, Q, R, size.cols - left - 1);
                                                         }) /
                                       launches;
                report(size, scalar_kind<T>, "orthogonalization", &choice, left, seconds,
                       2e-9 * static_cast<double>(size.rows) * static_cast<double>(left) / seconds);
            }
    }

    /// Figure 9, with Quoin's blocked method and cuSOLVER for comparison.
    template <class T>
    void codes(Shape size) {
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
            return [&, options = options_for(method, reorthogonalization)] { return run_quoin(A, options, Q, R); };
        };
        using enum Method;
        using enum Reorthogonalization;
        const struct {
            const char* name;
            std::function<double()> run;
        } codes[] = {
            {"mgs-cublas", by_columns([&] { bench::mgs_cublas<T>(ctx_, Q.view(), R.view()); })},
            {"mgs-native", by_columns([&] {
                 bench::mgs_native<T>(ctx_, Q.view(), R.view(), dots_.shape, dots_.access, updates_.shape,
                                      updates_.access);
             })},
            {"mgs", by_quoin(ModifiedGramSchmidt, Off)},
            {"mgs-always", by_quoin(ModifiedGramSchmidt, Always)},
            {"cgs", by_quoin(ClassicalGramSchmidt, Off)},
            {"cgs-always", by_quoin(ClassicalGramSchmidt, Always)},
            {"geqrf-orgqr", [&] { return run_cusolver(A, cusolver, Q, R); }},
        };
        for (const auto& code : codes) {
            const double seconds = median_seconds(code.run);
            const double orthogonality = bench::orthogonality(ctx_, Q), residual = bench::residual(ctx_, A, Q, R);
            report(size, scalar_kind<T>, code.name, nullptr, -1, seconds, gram_schmidt_gflops(size, seconds),
                   orthogonality, residual);
        }
    }

    Choice dots_, updates_;  // the best of Figures 7 and 6
};

}  // namespace

void bench_gram_schmidt_kernels(const BenchArguments& arguments) { PaperFigures(arguments).block_shapes(); }
void bench_gram_schmidt_steps(const BenchArguments& arguments) { PaperFigures(arguments).columns_left(); }
void bench_gram_schmidt_codes(const BenchArguments& arguments) { PaperFigures(arguments).every_code(); }

}  // namespace quoin::cli
