#include "bench.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "byte_size.hpp"
#include "interrupt.hpp"
#include "number_between.hpp"
#include "paper_tables.hpp"
#include "subcommands.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "device.hpp"
#endif

namespace quoin::cli {

const char* to_string(Reference reference) {
    switch (reference) {
        case Reference::Lapack: return "lapack";
        case Reference::Cusolver: return "cusolver";
        case Reference::Blas2: return "blas2";
        case Reference::None: break;
    }
    return "none";
}

std::vector<Case> requested_cases(const BenchArguments& arguments) {
    std::vector<Case> cases;
    const std::vector<DType> dtypes = arguments.dtypes.empty() ? std::vector{DType::F64} : arguments.dtypes;
    for (const Shape shape : arguments.shapes)
        for (const DType dtype : dtypes)
            for (const Operation operation : arguments.operations) cases.push_back({shape, dtype, operation});
    return cases;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<double> medians_of(const std::vector<std::function<double()>>& runs, int repeat) {
    double longest = 0;
    for (int warm_up = 0; warm_up < (longest > 1 ? 1 : 2); ++warm_up) {
        longest = 0;
        for (const auto& run : runs) {
            throw_if_interrupted();
            longest = std::max(longest, run());
        }
    }
    if (repeat == 0)
        repeat = longest > 10 ? 1 : std::clamp(static_cast<int>(std::ceil(0.5 / std::max(longest, 1e-3))), 3, 30);
    std::vector<std::vector<double>> seconds(runs.size());
    for (int i = 0; i < repeat; ++i)
        for (std::size_t r = 0; r < runs.size(); ++r) {
            throw_if_interrupted();
            seconds[r].push_back(runs[r]());
        }
    std::vector<double> medians;
    for (auto& of_run : seconds) medians.push_back(median(std::move(of_run)));
    return medians;
}

EnergyMeters::EnergyMeters(const BenchArguments& arguments, bool of_host, [[maybe_unused]] bool of_gpu) {
    if (!arguments.energy) return;
    if (of_host) host = EnergyMeter::of_host();
#ifdef QUOIN_HAVE_CUDA
    if (of_gpu) gpu = EnergyMeter::of_gpu(bench::pci_bus_id());
#endif
    for (const EnergyMeter* meter : {&host, &gpu}) {
        if (!meter->problem().empty()) fmt::print(stderr, "quoin: --energy: {}\n", meter->problem());
    }
}

double joules_of(EnergyMeter& meter, const std::function<double()>& run, double seconds) {
    const double watts = meter.watts([&] {
        throw_if_interrupted();
        run();
    });
    return watts < 0 ? -1 : watts * seconds;
}

namespace {

/// Refuses what cannot be measured, before anything is.
void check_arguments(const BenchArguments& arguments) {
    const std::vector<Reference> references = arguments.references.value_or(std::vector<Reference>{});
    const auto asks_for = [&](Reference reference) {
        return std::find(references.begin(), references.end(), reference) != references.end();
    };
    const auto times = [&](Operation operation) {
        const auto& operations = arguments.operations;
        return std::find(operations.begin(), operations.end(), operation) != operations.end();
    };
    if (asks_for(Reference::None) && references.size() > 1)
        throw CLI::ValidationError("--against", "none excludes the others");
    if (!arguments.on_device) {
        for (const Reference reference : {Reference::Cusolver, Reference::Blas2}) {
            if (asks_for(reference))
                throw CLI::ValidationError("--against", fmt::format("{} needs --device cuda", to_string(reference)));
        }
        if (arguments.paper) throw CLI::ValidationError("--paper", "needs --device cuda");
        return;
    }
    if (arguments.paper && !arguments.shapes.empty())
        throw CLI::ValidationError("--paper", "has shapes of its own: leave out SHAPE");
    for (const Operation operation : {Operation::Lstsq, Operation::Svd, Operation::Geqrt, Operation::Geqrt3}) {
        if (times(operation))
            throw CLI::ValidationError("--op", fmt::format("{} is timed on the host alone", to_string(operation)));
    }
    if (asks_for(Reference::Blas2) && !arguments.paper && times(Operation::ThinQr))
        throw CLI::ValidationError("--against", "blas2 forms no Q: ask for --op geqrf, r-only or factor");
}

/// "recursive-fp16-twice".
OutOfCoreOptions parse_route(const std::string& argument, const std::string& text) {
    const std::vector<std::string> parts = CLI::detail::split(text, '-');
    const bool twice = parts.size() == 3 && parts[2] == "twice";
    if (parts.size() != 2 && !twice)
        throw CLI::ValidationError(argument,
                                   fmt::format("'{}' is not METHOD-ARITHMETIC or METHOD-ARITHMETIC-twice", text));
    OutOfCoreOptions options;
    options.method = parse_name(argument, parts[0],
                                {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, OutOfCoreMethod::Blocking},
                                [](OutOfCoreMethod method) { return to_string(method); });
    options.arithmetic = parse_name(argument, parts[1],
                                    {Arithmetic::Auto, Arithmetic::Native, Arithmetic::TF32, Arithmetic::FP16,
                                     Arithmetic::BF16, Arithmetic::Corrected},
                                    [](Arithmetic arithmetic) { return to_string(arithmetic); });
    options.reorthogonalize = twice;
    return options;
}

void run_bench(const BenchArguments& arguments) {
    if (arguments.robust_pca) {
        if (!arguments.shapes.empty()) throw CLI::ValidationError("--paper", "has shapes of its own: leave out SHAPE");
        if (arguments.energy)
            throw CLI::ValidationError("--energy", "is of factorizations, and --paper table2 has none");
#ifdef QUOIN_HAVE_VIDEO
        return bench_robust_pca(arguments);
#else
        throw InvalidArgument("--paper table2: this quoin was built without FFmpeg's libraries");
#endif
    }
    if (arguments.storage) return bench_storage(arguments);
    if (arguments.out_of_core) {
        if (!arguments.on_device) throw CLI::ValidationError("--paper", "out-of-core needs --device cuda");
        for (const Shape shape : arguments.shapes) {
            if (shape.rows < shape.cols) throw CLI::ValidationError("SHAPE", "out-of-core takes no wide matrices");
        }
#ifdef QUOIN_HAVE_CUDA
        return bench_out_of_core(arguments);
#else
        throw Error(ErrorCode::DeviceFailure, "--device cuda: this quoin was built without its CUDA backend");
#endif
    }
    if (arguments.tensor_cores && !arguments.on_device)
        throw CLI::ValidationError("--paper", "tensor-cores needs --device cuda");
    if (arguments.tensor_cores || (arguments.gram_schmidt && arguments.on_device)) {
#ifdef QUOIN_HAVE_CUDA
        return arguments.tensor_cores ? bench_tensor_cores(arguments) : bench_gram_schmidt_on_device(arguments);
#else
        throw Error(ErrorCode::DeviceFailure, "--device cuda: this quoin was built without its CUDA backend");
#endif
    }
    if (arguments.gram_schmidt || arguments.orthogonality) {
        if (arguments.on_device) throw CLI::ValidationError("--paper", "orthogonality is of the host");
        if (arguments.gram_schmidt) return bench_gram_schmidt(arguments);
        if (!arguments.shapes.empty()) throw CLI::ValidationError("--paper", "has shapes of its own: leave out SHAPE");
        return bench_orthogonality(arguments);
    }
    if (!arguments.files.empty()) return bench_files(arguments);
    check_arguments(arguments);
    if (!arguments.on_device) return bench_on_host(arguments);
#ifdef QUOIN_HAVE_CUDA
    bench_on_device(arguments);
#else
    throw Error(ErrorCode::DeviceFailure, "--device cuda: this quoin was built without its CUDA backend");
#endif
}

}  // namespace

void add_bench(CLI::App& program) {
    auto arguments = std::make_shared<BenchArguments>();
    CLI::App& command = *program.add_subcommand(
        "bench",
        "Time Quoin against LAPACK through the same BLAS, or on a GPU against cuSOLVER.\n\n"
        "All factor the same random matrix, in one process. Runs alternate between them, in place, on a matrix\n"
        "restored outside the timed region; medians are printed. Without a shape, every case that Quoin's\n"
        "requirements name is run (on the host 10 minutes and 6 GiB), and what was required is printed beside what\n"
        "was measured. With --device cuda the matrix is made and stays in the GPU's memory.");
    command
        .add_option_function<std::vector<std::string>>(
            "SHAPE",
            [arguments](const std::vector<std::string>& texts) {
                for (const std::string& text : texts) {
                    const Shape shape = parse_shape("SHAPE", text);
                    if (shape.rows == 0 || shape.cols == 0)
                        throw CLI::ValidationError("SHAPE", fmt::format("'{}' has nothing to time", text));
                    arguments->shapes.push_back(shape);
                }
            },
            "Rows and columns, such as 1000000x192; any number of shapes")
        ->type_name("");
    command
        .add_option_function<std::string>(
            "--dtype",
            [arguments](const std::string& text) { arguments->dtypes = parse_list("--dtype", text, parse_dtype); },
            "f32, f64 or f32,f64 (default: f64; with --paper f32)")
        ->type_name("TYPES");
    command
        .add_option_function<std::string>(
            "--op",
            [arguments](const std::string& text) {
                arguments->operations =
                    parse_list("--op", text, [](const std::string& argument, const std::string& name) {
                        return parse_name(argument, name, all_operations, [](Operation op) { return to_string(op); });
                    });
            },
            "Operations, separated by commas (default: thin-qr):\n"
            "thin-qr   R and thin Q            against geqrf + orgqr\n"
            "r-only    R                       against geqrf\n"
            "geqrf     LAPACK's V, tau and R   against geqrf\n"
            "geqrt3    V, R and one T          against geqrt3\n"
            "geqrt     V, R and one T          against geqrt with blocks of 32 columns\n"
            "factor    R and Q in any form     against geqrf\n"
            "lstsq     one right-hand side     against gels\n"
            "svd       thin U, s and Vᵀ        against gesdd\n"
            "On a GPU thin-qr, r-only, geqrf and factor.")
        ->type_name("OPS");
    command
        .add_option_function<std::string>(
            "--device",
            [arguments](const std::string& text) {
                arguments->on_device = parse_name("--device", text, {false, true},
                                                  [](bool on_device) { return on_device ? "cuda" : "host"; });
            },
            "host or cuda: where the matrix is (default: host)")
        ->type_name("DEVICE");
    command
        .add_option_function<std::string>(
            "--against",
            [arguments](const std::string& text) {
                arguments->references =
                    parse_list("--against", text, [](const std::string& argument, const auto& name) {
                        return parse_name(argument, name, all_references, [](Reference r) { return to_string(r); });
                    });
            },
            "lapack or none; on a GPU any of cusolver, lapack (on the host) and blas2 (Householder QR column by\n"
            "column, tuned for the GPU), separated by commas (default: lapack; on a GPU cusolver)")
        ->type_name("REFERENCES");
    command
        .add_option_function<std::string>(
            "--paper",
            [arguments](const std::string& text) {
                std::string names = "table2";
                arguments->robust_pca = text == names;
                arguments->storage = text == "storage";
                arguments->gram_schmidt = text == "gram-schmidt";
                arguments->orthogonality = text == "orthogonality";
                arguments->out_of_core = text == "out-of-core";
                arguments->tensor_cores = text == "tensor-cores";
                for (const PaperTable& table : paper_tables()) {
                    if (text == table.name) arguments->paper = &table;
                    names += ", " + std::string(table.name);
                }
                names += ", storage, gram-schmidt, orthogonality, tensor-cores, out-of-core";
                if (!arguments->paper && !arguments->robust_pca && !arguments->storage && !arguments->gram_schmidt &&
                    !arguments->orthogonality && !arguments->tensor_cores && !arguments->out_of_core)
                    throw CLI::ValidationError("--paper", fmt::format("'{}' is none of {}", text, names));
            },
            "table1, figure8 or figure9 of Anderson, Ballard, Demmel and Keutzer (2011) on this GPU (--device cuda),\n"
            "or table2, robust PCA, on either device; with the paper's figures beside. storage: Table 1 of Benner, "
            "Köhler "
            "and\n"
            "Penke, V, R and one T, products with Qᵀ and a block of Q, on either device; SHAPE replaces its sizes.\n"
            "gram-schmidt: Figures 2, 4 and 10 of Brandes, Arnold, Soddemann and Reith (2012) on this CPU, every "
            "code,\n"
            "width of a panel and number of threads, or Figures 6 to 9 on this GPU: its kernels over the shape of a "
            "block,\n"
            "and every code; SHAPE replaces its sizes. orthogonality: ‖I − QᵀQ‖ over κ. tensor-cores: Q and R in f32\n"
            "by cgs in every arithmetic, against cuSOLVER and householder, 16384² and 32768² or SHAPE\n"
            "(--device cuda). out-of-core: Tables 3 and 4 of Zhang and Wu (2021), a matrix of the host's memory by\n"
            "this GPU within --gpu-memory, by every one of --routes; SHAPE replaces 65536x65536; "
            "bench/out_of_core_plot.py\n"
            "draws what --csv and --trace write")
        ->type_name("NAME");
    add_byte_size_argument(command, "--gpu-memory", arguments->gpu_memory,
                           "Of --paper out-of-core and --files: memory of the GPU that may be taken (default: 16GiB)");
    arguments->routes = parse_list("--routes", "recursive-fp16,blocking-fp16", parse_route);
    command
        .add_option_function<std::string>(
            "--routes",
            [arguments](const std::string& text) { arguments->routes = parse_list("--routes", text, parse_route); },
            "Of --paper out-of-core: METHOD-ARITHMETIC or METHOD-ARITHMETIC-twice (reorthogonalised), separated by\n"
            "commas; recursive, blocking or householder; native, tf32, fp16, bf16 or corrected\n"
            "(default: recursive-fp16,blocking-fp16)")
        ->type_name("ROUTES");
    command
        .add_option_function<std::string>(
            "--block", [arguments](const std::string& text) { arguments->block = parse_dimension("--block", text); },
            "Of --paper out-of-core: columns of a block (0: as many as the memory has room for)")
        ->type_name("N");
    command
        .add_option(
            "--files", arguments->files,
            "Measure matrices larger than --memory, from file to file in this folder: Q and R of 200000x2000, or of\n"
            "SHAPE, against memory; R alone of 3.2 GB by 8 and 64 columns against reading the same file, as dd does\n"
            "and as fast as the disk can. With --device cuda Q and R of 30000x30000 in f32, or of SHAPE, by way of\n"
            "this GPU within --gpu-memory. The folder needs three times the file's size, 8 and 11 GB")
        ->type_name("DIR");
    add_byte_size_argument(command, "--memory", arguments->memory,
                           "With --files: the cap of the host (default: 512MiB; with --device cuda 2GiB)");
    add_trace_argument(command, arguments->common.trace);
    command.add_option("--csv", arguments->csv, "Write the results to a CSV file as well")->type_name("FILE");
    command.add_flag(
        "--energy", arguments->energy,
        "Measure joules as well: those of the CPUs by RAPL, or of the GPU by NVML, while each code is run for a\n"
        "second or more");
    command
        .add_option("--repeat", arguments->repeat,
                    "Timed runs (default: at least 5, more for short ones, 3 beyond 2 s a run, 1 beyond 10 s;\n"
                    "on a GPU half a second of them, 3 to 30)")
        ->check(number_between(1, 1000000))
        ->type_name("N");
    add_common_arguments(command, arguments->common);
    add_compact_wy_arguments(command, arguments->common.options);
    command.footer(
        "Example:  quoin bench 1000000x192 --dtype f32,f64 --op thin-qr,r-only --against lapack --json\n"
        "          quoin bench 1000000x192 --device cuda --against cusolver,blas2 --op geqrf\n\n"
        "seconds         median wall time; on a GPU between two events\n"
        "GFLOP/s         by the standard Householder count, for both: 2mn² − 2n³/3 for geqrf, r-only and factor,\n"
        "                twice that for thin-qr; geqrt3 and geqrt as geqrf\n"
        "limit           the least time this machine could take over the time taken: the larger of flops / GEMM\n"
        "                rate and bytes / copy rate, both measured at the start and printed; beyond 100% where\n"
        "                the method needs fewer flops or has faster kernels than the BLAS (see quoin info)\n"
        "ratio           the reference's time over Quoin's\n"
        "‖I − QᵀQ‖, ‖A − QR‖/‖A‖   of Quoin's last answer, in the Frobenius norm; null or − where not measured\n"
        "joules          with --energy: mean power over repeats of a second or more, times the seconds of a run, of "
        "the\n"
        "                device that the code runs on (a GPU's without its host's); GFLOP/J in the count above\n\n"
        "--json prints one line for each case and reference with the keys rows, cols, dtype, op, method, seconds,\n"
        "gflops, limit_fraction, reference, reference_seconds, reference_gflops, ratio, required_ratio, "
        "orthogonality,\n"
        "residual, and with --energy joules, gflop_per_joule and reference_joules; the columns of --csv are the same.");
    command.callback([arguments] { run_bench(*arguments); });
}

}  // namespace quoin::cli
