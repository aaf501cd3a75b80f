#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "arguments.hpp"
#include "byte_size.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "machine.hpp"
#include "measure_case.hpp"
#include "memory_cap.hpp"
#include "naming_file.hpp"
#include "random_matrix.hpp"
#include "row_blocks.hpp"
#include "rpca.hpp"
#include "subcommands.hpp"
#ifdef QUOIN_HAVE_VIDEO
#include "video/frame_reader.hpp"
#endif

namespace quoin::cli {

namespace {

struct DemoArguments {
    CommonArguments common;
    std::string input, out = "quoin-demo";
};

/// A tall and a square matrix that LAPACK factors in about a second on two cores, and that take a sixteenth of memory.
std::vector<Shape> demo_shapes(const Machine& machine, int threads) {
    constexpr Index tall_cols = 100;
    const Index rows_in_memory = machine.memory_available_bytes / (16 * Index{sizeof(double)} * tall_cols);
    const Index rows = std::min<Index>(50000 * std::clamp(threads, 2, 8), rows_in_memory);
    const Index order = std::min<Index>(threads <= 4 ? 1500 : 2500, rows);
    return {{rows, tall_cols}, {order, order}};
}

void print_header() {
    fmt::print("{:>14}  {:4}  {:20}  {:>9}  {:>8}  {:>9}  {:>6}  {:>12}  {:>10}\n", "shape", "type", "method",
               "seconds", "GFLOP/s", "LAPACK s", "ratio", "‖A − QR‖/‖A‖", "‖I − QᵀQ‖");
}

template <class T>
void demonstrate(Context<Host>& ctx, const CommonArguments& common, MatrixView<const T> A) {
    const DType dtype = sizeof(T) == sizeof(float) ? DType::F32 : DType::F64;
    const Measurement result = measure_case<T>(ctx, Operation::ThinQr, A, {common.options});
    const double gflops = 1e-9 * thin_qr_flops(A.rows, A.cols) / result.seconds;
    const double ratio = result.reference_seconds / result.seconds;
    if (common.json) {
        JsonLine line;
        line.add("rows", A.rows).add("cols", A.cols).add("dtype", to_string(dtype));
        line.add("method", to_string(result.method)).add("seconds", result.seconds).add("gflops", gflops);
        line.add("reference_seconds", result.reference_seconds).add("ratio", ratio);
        line.add("residual", result.residual).add("orthogonality", result.orthogonality);
        line.print();
        return;
    }
    fmt::print("{:>14}  {:4}  {:20}  {:>9.3g}  {:>8.1f}  {:>9.3g}  {:>6.2f}  {:>12.2e}  {:>10.2e}\n",
               fmt::format("{}x{}", A.rows, A.cols), to_string(dtype), to_string(result.method), result.seconds, gflops,
               result.reference_seconds, ratio, result.residual, result.orthogonality);
    std::fflush(stdout);
}

template <class T>
void demonstrate_random(Context<Host>& ctx, const CommonArguments& common, Shape shape) {
    Matrix<T> A(shape.rows, shape.cols);
    fill_normal(A, /*seed=*/1);
    demonstrate<T>(ctx, common, A.view());
}

template <class T>
void demonstrate_file(Context<Host>& ctx, const CommonArguments& common, const MatrixFile& file) {
    const double matrix = static_cast<double>(file.rows()) * static_cast<double>(file.cols()) * sizeof(T);
    const double needed =
        matrix + measure_case_bytes<T>(ctx, Operation::ThinQr, file.rows(), file.cols(), {common.options});
    if (const double cap = memory_cap(0); needed + reader_bytes(file) > cap)
        throw OutOfMemory(
            fmt::format("{}: the comparison needs {} of memory and may take {}; `quoin factor` streams a "
                        "matrix of any size",
                        file.path(), format_byte_size(needed + reader_bytes(file)), format_byte_size(cap)));
    if (file.rows() == 0 || file.cols() == 0)
        throw InvalidArgument(
            fmt::format("{}: a {} x {} matrix has nothing to time", file.path(), file.rows(), file.cols()));
    const Matrix<T> A = read_matrix<T>(ctx, file);
    naming_file(file.path(), 0, [&] { demonstrate<T>(ctx, common, A.view()); });
}

#ifdef QUOIN_HAVE_VIDEO
/// Background and foreground of a video, or of the synthetic scene: at most 200 frames of at most 640 columns.
void demonstrate_separation(const DemoArguments& arguments) {
    RpcaArguments rpca;
    rpca.common = arguments.common;
    rpca.input = arguments.input;
    rpca.out = arguments.out;
    rpca.synthetic = arguments.input.empty();
    if (!rpca.synthetic) {
        rpca.frames = 200;
        if (video::FrameReader(rpca.input).format().width > 640) rpca.width = 640;
    }
    if (!rpca.common.json) fmt::print("M = L + S, a still background and what moves before it, by robust PCA\n\n");
    run_rpca_frames(rpca);
}
#endif

void run_demo(const DemoArguments& arguments) {
    const CommonArguments& common = arguments.common;
#ifdef QUOIN_HAVE_VIDEO
    if (!arguments.input.empty() && !is_matrix(arguments.input)) return demonstrate_separation(arguments);
#endif
    std::unique_ptr<MatrixFile> file;
    if (!arguments.input.empty()) file = std::make_unique<MatrixFile>(arguments.input);

    Context<Host> ctx = make_context(common);
    const InterruptGuard guard(ctx);
    const Machine machine = describe_machine();
    if (!common.json) {
        fmt::print("A = QR, thin Q and R, by Quoin and by LAPACK's geqrf + orgqr through the same BLAS\n");
        fmt::print("{}, {} threads, kernels {}; {}\n\n", machine.cpu, ctx.threads(), build_info().kernels,
                   build_info().blas);
        print_header();
    }
    if (file) {
        with_dtype(file->dtype(), [&]<class T>(T) { demonstrate_file<T>(ctx, common, *file); });
    } else {
        for (const Shape shape : demo_shapes(machine, ctx.threads())) {
            demonstrate_random<float>(ctx, common, shape);
            demonstrate_random<double>(ctx, common, shape);
        }
    }
    if (!common.json) {
        fmt::print("\nratio: LAPACK's time over Quoin's; medians of alternating runs on {}.\n",
                   file ? file->path() : "random matrices");
        fmt::print("u is 6e-08 (f32) and 1.1e-16 (f64); norms are Frobenius norms.\n");
        if (*build_info().blas_warning != '\0') fmt::print("{}\n", build_info().blas_warning);
        if (!machine.busy().empty()) fmt::print("{}\n", machine.busy());
        fmt::print("\n");
    }
#ifdef QUOIN_HAVE_VIDEO
    if (!file) demonstrate_separation(arguments);
#endif
}

}  // namespace

void add_demo(CLI::App& program) {
    auto arguments = std::make_shared<DemoArguments>();
    CLI::App& command = *program.add_subcommand(
        "demo",
        "Factor, verify and compare with LAPACK; separate what moves in a video: ours, or your own.\n\n"
        "Without FILE, a tall-skinny and a square matrix are factored in f32 and f64, and a synthetic scene is "
        "separated\n"
        "into background and foreground (quoin rpca), in well under a minute. Of a video, the first 200 frames are "
        "taken,\n"
        "at most 640 pixels wide.");
    command.add_option("FILE", arguments->input,
                       "Your matrix (.npy, Matrix Market, CSV) or video (default: random matrices, a scene)");
    command.add_option("--out", arguments->out, "Folder for films and pictures, created if missing")
        ->capture_default_str()
        ->type_name("DIR")
        ->take_last();
    add_common_arguments(command, arguments->common);
    command.footer(
        "Example:  quoin demo A.npy\n"
        "          quoin demo street.mp4 --out parts\n\n"
        "Units: seconds of wall time; 10^9 flop/s by the standard Householder count 4mn² − 4n³/3. --json prints one\n"
        "line a matrix and the report of a separation.");
    command.callback([arguments] { run_demo(*arguments); });
}

}  // namespace quoin::cli
