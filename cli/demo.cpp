#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "add_value.hpp"
#include "arguments.hpp"
#include "byte_size.hpp"
#include "either_device.hpp"
#include "input_matrix.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "machine.hpp"
#include "measure/measure_case.hpp"
#include "measure/medians.hpp"
#include "memory_cap.hpp"
#include "naming_file.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "program.hpp"
#include "row_blocks.hpp"
#include "subcommands.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "measure/cuda/device_run.hpp"
#endif

namespace quoin::cli {

namespace {

struct DemoArguments {
    CommonArguments common;
    std::string input, out = "quoin-demo";
    MatrixFileOptions reading;
};

// ---- What the devices have of their own: who is compared with, on which matrices, and what memory that takes --------

const char* reference_name(const Context<Host>&) { return "LAPACK"; }

/// A tall and a square matrix that LAPACK factors in about a second on two cores, and that take a sixteenth of memory.
std::vector<Shape> demo_shapes(const Context<Host>& ctx) {
    constexpr Index tall_cols = 100;
    const Index available = describe_machine().memory_available_bytes;
    const Index rows =
        std::min<Index>(50000 * std::clamp(ctx.threads(), 2, 8), available / (16 * Index{sizeof(double)} * tall_cols));
    const Index order = std::min<Index>(ctx.threads() <= 4 ? 1500 : 2500, rows);
    return {{rows, tall_cols}, {order, order}};
}

template <class T>
Measurement measure_thin_qr(Context<Host>& ctx, const Matrix<T>& A, const Options& options) {
    return measure_case<T>(ctx, Operation::ThinQr, A.view(), {options});
}

/// Throws OutOfMemory where the comparison does not fit the host.
template <class T>
void require_memory(const Context<Host>& ctx, const MatrixFile& file, const Options& options) {
    const double matrix = static_cast<double>(file.rows()) * static_cast<double>(file.cols()) * sizeof(T);
    const double needed = matrix + measure_case_bytes<T>(ctx, Operation::ThinQr, file.rows(), file.cols(), {options});
    if (const double cap = memory_cap(0); needed + reader_bytes(file) > cap)
        throw OutOfMemory(
            fmt::format("{}: the comparison needs {} of memory and may take {}; `quoin factor` streams a "
                        "matrix of any size",
                        file.path(), format_byte_size(needed + reader_bytes(file)), format_byte_size(cap)));
}

void print_machine(const Context<Host>& ctx, const Machine& machine) {
    fmt::print("A = QR, thin Q and R, by Quoin and by LAPACK's geqrf + orgqr through the same BLAS\n");
    fmt::print("{}, {} threads, kernels {}; {}\n", machine.cpu, ctx.threads(), build_info().kernels, build_info().blas);
    if (*build_info().blas_warning != '\0') fmt::print("{}\n", build_info().blas_warning);
    if (!machine.busy().empty()) fmt::print("{}\n", machine.busy());
}

/// Starts the program again with a better core type if OpenBLAS takes the CPU for an older one, because a comparison
/// with it would be worth little. OpenBLAS reads the core type when it is loaded. A core type in the environment is
/// left as it is.
void run_with_better_core(const CommonArguments& common) {
    const std::string core = build_info().better_core;
    if (core.empty() || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
    std::ifstream file("/proc/self/cmdline");
    std::vector<std::string> arguments;
    for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
    if (arguments.empty()) return;
    if (!common.json) {
        fmt::print(
            "OpenBLAS takes this CPU for an older one ({}): the demonstration sets OPENBLAS_CORETYPE={}, for LAPACK "
            "and "
            "Quoin alike\n",
            build_info().blas_core, core);
    }
    setenv("OPENBLAS_CORETYPE", core.c_str(), 1);
    become("/proc/self/exe", std::move(arguments));
    // without it the table comes with a warning
}

#ifdef QUOIN_HAVE_CUDA
const char* reference_name(const Context<Cuda>&) { return "cuSOLVER"; }

/// A tall and a square matrix that cuSOLVER factors in less than a second on an H100, and that take a sixteenth of
/// memory.
std::vector<Shape> demo_shapes(const Context<Cuda>& ctx) {
    constexpr Index tall_cols = 192;
    const Index numbers = static_cast<Index>(device_memory(ctx).free / (16 * sizeof(double)));
    const Index rows = std::clamp<Index>(numbers / tall_cols, 1, 1000000);
    const Index order = std::clamp<Index>(static_cast<Index>(std::sqrt(static_cast<double>(numbers))), 1, 8192);
    return {{rows, tall_cols}, {order, order}};
}

template <class T>
Measurement measure_thin_qr(Context<Cuda>& ctx, const Matrix<T, Cuda>& A, const Options& options) {
    bench::CusolverQR<T> cusolver(ctx, A.rows(), A.cols());
    DeviceRun<T> quoin(ctx, A.rows(), A.cols(), bench::columns_of(ctx, A), Operation::ThinQr, options);
    const auto reference_seconds = [&] {
        throw_if_interrupted();
        Matrix<T, Cuda> work = copy_of<T, Cuda>(ctx, A.view());
        return bench::seconds_of(ctx, [&] {
            cusolver.geqrf(ctx, work.view());
            cusolver.orgqr(ctx, work.view());
        });
    };
    const std::vector<double> medians = medians_of({reference_seconds, [&] { return quoin.seconds(); }}, /*repeat=*/0);
    Measurement result = quoin.measurement(medians[1]);
    result.reference_seconds = medians[0];
    return result;
}

/// `on_device` has made sure of it.
template <class T>
void require_memory(const Context<Cuda>&, const MatrixFile&, const Options&) {}

void print_machine(const Context<Cuda>&, const Machine&) {
    fmt::print("A = QR, thin Q and R, by Quoin and by cuSOLVER's geqrf + orgqr, in the memory of a GPU\n");
    fmt::print("{}\n", bench::describe_device());
}

#endif

// ---- The demonstration ----------------------------------------------------------------------------------------------

/// A, Q and, to measure the accuracy, at most a matrix of double, for f32 two; plus what the factorization takes.
template <class T, class D>
double bytes_on_gpu(const Context<D>& ctx, const MatrixFile& file, const Options& options) {
    const double numbers = static_cast<double>(file.rows()) * static_cast<double>(file.cols());
    return numbers * (2 * sizeof(T) + (scalar_kind<T> == ScalarKind::F32 ? 2 : 1) * sizeof(double)) +
           plan_qr<T>(ctx, file.rows(), file.cols(), options).workspace_bytes;
}

void print_header(const std::string& reference) {
    fmt::print("{:>14}  {:4}  {:20}  {:>9}  {:>8}  {:>10}  {:>6}  {:>12}  {:>10}\n", "shape", "type", "method",
               "seconds", "GFLOP/s", reference + " s", "ratio", "‖A − QR‖/‖A‖", "‖I − QᵀQ‖");
    flush_output();
}

template <class T, class D>
void demonstrate(Context<D>& ctx, const CommonArguments& common, const Matrix<T, D>& A) {
    const ScalarKind dtype = scalar_kind<T>;
    const Measurement result = measure_thin_qr<T>(ctx, A, common.options);
    const double gflops = 1e-9 * thin_qr_flops(A.rows(), A.cols()) / result.seconds;
    const double ratio = result.reference_seconds / result.seconds;
    if (common.json) {
        JsonLine line;
        line.add("rows", A.rows()).add("cols", A.cols()).add("dtype", to_string(dtype));
        line.add("method", to_string(result.method)).add("seconds", result.seconds).add("gflops", gflops);
        line.add("device", to_string(std::is_same_v<D, Host> ? Device::Host : Device::Cuda));
        line.add("reference_seconds", result.reference_seconds).add("ratio", ratio);
        line.add("residual", result.residual).add("orthogonality", result.orthogonality);
        line.print();
        return;
    }
    fmt::print("{:>14}  {:4}  {:20}  {:>9.3g}  {:>8.1f}  {:>10.3g}  {:>6.2f}  {:>12.2e}  {:>10.2e}\n",
               fmt::format("{}x{}", A.rows(), A.cols()), to_string(dtype), to_string(result.method), result.seconds,
               gflops, result.reference_seconds, ratio, result.residual, result.orthogonality);
    flush_output();
}

template <class T, class D>
void demonstrate_file(Context<D>& ctx, const CommonArguments& common, const MatrixFile& file) {
    require_memory<T>(ctx, file, common.options);
    const auto A = read_matrix<T>(ctx, file);
    naming_file(file.path(), 0, [&] { demonstrate<T>(ctx, common, A); });
}

/// The table: of the matrix of `file`, or without one of random matrices.
template <class D>
void demonstrate_matrices(Context<D>& ctx, const DeviceInUse& device, const CommonArguments& common,
                          const MatrixFile* file) {
    const Machine machine = describe_machine();
    if (!common.json) {
        print_machine(ctx, machine);
        if (common.device != Device::Host && device.device == Device::Host) fmt::print("{}\n", device.description);
        fmt::print("{}\n\n", file ? "" : "Four random matrices: within half a minute where nothing else runs.");
        print_header(reference_name(ctx));
    }
    if (file) {
        with_dtype(file->dtype(), [&]<class T>(T) { demonstrate_file<T>(ctx, common, *file); });
    } else {
        for (const auto& [m, n] : demo_shapes(ctx)) {
            demonstrate<float>(ctx, common, normal_matrix<float>(ctx, m, n));
            demonstrate<double>(ctx, common, normal_matrix<double>(ctx, m, n));
        }
    }
    if (common.json) return;
    fmt::print("\nratio: {}'s time over Quoin's; medians of alternating runs on {}.\n", reference_name(ctx),
               file ? file->path() : "random matrices");
    fmt::print("u is 6e-08 (f32) and 1.1e-16 (f64); norms are Frobenius norms.\n");
    fmt::print("\n");
}

/// Background and foreground of a video, or of a street that Quoin draws.
[[noreturn]] void demonstrate_separation(const DemoArguments& arguments) {
    const CommonArguments& common = arguments.common;
    std::vector<std::string> rpca = {"--demonstration", "--out", arguments.out, "--device", to_string(common.device)};
    if (common.threads > 0) rpca.insert(rpca.end(), {"--threads", std::to_string(common.threads)});
    if (common.json) rpca.push_back("--json");
    if (!arguments.input.empty()) rpca.insert(rpca.end(), {"--", arguments.input});
    if (!common.json)
        fmt::print(
            "M = L + S, a background of low rank and sparse moving objects, by robust PCA: within half a minute\n\n");
    become_program("rpca", rpca, "`quoin demo`");
}

void run_demo(const DemoArguments& arguments) {
    const CommonArguments& common = arguments.common;
    if (!arguments.input.empty() && !is_matrix(arguments.input)) demonstrate_separation(arguments);
    std::unique_ptr<MatrixFile> file;
    if (!arguments.input.empty())
        file = std::make_unique<MatrixFile>(open_matrix(arguments.input, arguments.reading, 0));
    if (common.device != Device::Cuda) run_with_better_core(common);

    if (file && (file->rows() == 0 || file->cols() == 0))
        throw InvalidArgument(
            fmt::format("{}: a {} x {} matrix has nothing to time", file->path(), file->rows(), file->cols()));
    on_device(
        common, file ? matrix_in_words(*file) : "the demonstration",
        [&](const auto& ctx) {
            return file ? with_dtype(file->dtype(),
                                     [&]<class T>(T) { return bytes_on_gpu<T>(ctx, *file, common.options); })
                        : 0.0;
        },
        [&](auto& ctx, const DeviceInUse& device) { demonstrate_matrices(ctx, device, common, file.get()); });
#ifdef QUOIN_HAVE_VIDEO
    if (!file) demonstrate_separation(arguments);
#endif
}

}  // namespace

void add_demo(CLI::App& program) {
    auto arguments = std::make_shared<DemoArguments>();
    CLI::App& command = *program.add_subcommand(
        "demo",
        "Factor, verify and compare with LAPACK; separate moving objects from the background of a sample video or "
        "yours.\n"
        "\n"
        "Without FILE it factors a tall and a square matrix in f32 and f64, and separates a synthetic scene into\n"
        "background and foreground (quoin rpca), in less than a minute. From a video it takes the first 200 frames,\n"
        "at most 640 pixels wide. With --device cuda all of it runs on a GPU, on larger matrices, against cuSOLVER.");
    command.add_option("FILE", arguments->input,
                       fmt::format("Your matrix ({}) or video\n(default: random matrices, a scene)", matrix_formats));
    add_value(command, "--out", "DIR", arguments->out, "Folder for films and pictures, created if missing")
        ->capture_default_str()
        ->take_last();
    add_reading_arguments(command, arguments->reading);
    add_device_argument(command, arguments->common.device);
    add_common_arguments(command, arguments->common);
    command.footer(
        "Example:  quoin demo A.npy\n"
        "          quoin demo --device cuda\n"
        "          quoin demo street.mp4 --out parts\n\n"
        "Units: seconds of wall time; 10^9 flop/s by the standard Householder count 4mn² − 4n³/3. --json prints one\n"
        "line a matrix and the report of a separation.");
    command.callback([arguments] { run_demo(*arguments); });
}

}  // namespace quoin::cli
