// Q and R in f32 by classical Gram-Schmidt in every arithmetic of a GPU's tensor cores, against cuSOLVER's and Quoin's
// Householder QR.

#include "papers/thin_qr_on_device.hpp"
#include "quoin/study.hpp"

namespace quoin::cli {

namespace {

constexpr Index tensor_sizes[] = {16384, 32768};
/// Required ratios: cuSOLVER's seconds / corrected and reorthogonalised classical Gram-Schmidt's, and / plain FP16's.
constexpr double required_corrected = 3, required_fp16 = 10;

class TensorCores : ThinQrOnDevice {
public:
    using ThinQrOnDevice::ThinQrOnDevice;

    void run() {
        results_.say("\nQ and R in f32; GFLOP/s = 2mn²/T; orthogonality and residual in f64 on the device\n");
        for (const Shape shape : arguments_.shapes_or(squares(tensor_sizes))) compare(shape);
    }

private:
    struct Row {
        const char *method, *arithmetic, *reorthogonalization;
        double required = 0;
    };

    void compare(Shape shape) {
        Matrix<float, Cuda> A(ctx_, shape.rows, shape.cols), Q, R;
        bench::fill_normal(ctx_, A);
        double cusolver_seconds = 0;
        {
            bench::CusolverQR<float> cusolver(ctx_, shape.rows, shape.cols);
            cusolver_seconds = median_seconds([&] { return run_cusolver(A, cusolver, Q, R); });
            report(shape, {"cusolver", "native", ""}, cusolver_seconds, 1, A, Q, R);
        }
        const auto measure = [&](Method method, Arithmetic arithmetic, Reorthogonalization again, double required = 0) {
            Options options = options_for(method, again);
            options.arithmetic = arithmetic;
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
        JsonLine json = case_line(shape, ScalarKind::F32);
        json.add("method", row.method)
            .add("arithmetic", row.arithmetic)
            .add("reorthogonalization", row.reorthogonalization);
        json.add("seconds", seconds).add("gflops", gram_schmidt_gflops(shape, seconds)).add("ratio", ratio);
        json.add_measured("required_ratio", row.required > 0 ? row.required : -1);
        results_.add(json.add("orthogonality", orthogonality).add("residual", residual));
    }
};

}  // namespace

void bench_tensor_cores(const BenchArguments& arguments) { TensorCores(arguments).run(); }

}  // namespace quoin::cli
