// The command line of `quoin bench`: one table of studies, each a subcommand with its own few options.

#include <fmt/format.h>

#include "byte_size.hpp"
#include "number_between.hpp"
#include "program.hpp"
#include "quoin/study.hpp"
#include "studies.hpp"

namespace quoin::cli {

namespace {

/// A study that runs on a GPU; null in a build without CUDA.
#ifdef QUOIN_HAVE_CUDA
#define QUOIN_ON_GPU(study) study
#else
#define QUOIN_ON_GPU(study) nullptr
#endif

#ifdef QUOIN_HAVE_NCCL
constexpr bool have_nccl = true;
#else
constexpr bool have_nccl = false;
#endif

// ---- What cannot be measured is refused before anything is ----------------------------------------------------------

void check_shapes(const BenchArguments& arguments) {
    if (arguments.wants(Reference::None, false) && arguments.references.size() > 1)
        refuse_argument("--against", "none excludes the others");
    if (!arguments.on_device()) {
        if (arguments.common.options.pivoting)
            refuse_argument("--pivot", "it needs --device cuda; bench/rivals/pivoted_qr.py times it on the host");
        for (const Reference reference : {Reference::Cusolver, Reference::Blas2})
            if (arguments.wants(reference, false))
                refuse_argument("--against", fmt::format("{} needs --device cuda", to_string(reference)));
        return;
    }
    for (const Operation operation : arguments.operations) {
        using enum Operation;
        if (operation == Geqrf && arguments.pivots.rank + arguments.pivots.tolerance > 0)
            refuse_argument("--op", "geqrf is timed without --rank and --tol");
        if (operation == Lstsq || operation == Svd || operation == Geqrt || operation == Geqrt3)
            refuse_argument("--op", fmt::format("{} is timed on the host alone", to_string(operation)));
        if (operation == ThinQr && arguments.wants(Reference::Blas2, false))
            refuse_argument("--against", "blas2 forms no Q: ask for --op geqrf, r-only or factor");
    }
}
void check_tall(const BenchArguments& arguments) {
    for (const Shape shape : arguments.shapes)
        if (shape.rows < shape.cols) refuse_argument("SHAPE", "out-of-core takes no wide matrices");
}

void check_ranks(const BenchArguments& arguments) {
    for (const Operation operation : arguments.operations)
        if (operation != Operation::ThinQr && operation != Operation::ROnly)
            refuse_argument("--op",
                            fmt::format("over ranks there are thin-qr and r-only, not {}", to_string(operation)));
    const auto [p, q] = arguments.grid;
    if (p * q == 0 && p + q > 0) refuse_argument("--grid", "it must have at least one process");
    if (arguments.on_device() && !have_nccl)
        throw Error(ErrorCode::DeviceFailure, "ranks with --device cuda: Quoin was built without NCCL");
}

// Options

/// "recursive-fp16-twice".
OutOfCoreOptions parse_route(const std::string& argument, const std::string& text) {
    const std::vector<std::string> parts = CLI::detail::split(text, '-');
    const bool twice = parts.size() == 3 && parts[2] == "twice";
    if (parts.size() != 2 && !twice)
        refuse_argument(argument, fmt::format("'{}' is not METHOD-ARITHMETIC or METHOD-ARITHMETIC-twice", text));
    OutOfCoreOptions options;
    options.method =
        parse_name(argument, parts[0], {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, study::Blocking});
    options.arithmetic = parse_name(
        argument, parts[1],
        {Arithmetic::Auto, Arithmetic::Native, study::TF32, Arithmetic::FP16, study::BF16, Arithmetic::Corrected});
    options.reorthogonalize = twice;
    return options;
}

/// Adds `name` KIND: a list whose parts `parse(name, part)` reads.
template <class List, class Parse>
void add_list(CLI::App& command, const std::string& name, const std::string& kind, List& list, Parse parse,
              const std::string& description) {
    add_parsed(
        command, name, kind, [&list, name, parse](const std::string& text) { list = parse_list(name, text, parse); },
        description);
}

/// The options of a study besides --threads and --json.
enum Has : unsigned {
    Shapes = 1,
    Types = 2,
    AnyDevice = 4,
    Operations = 8,
    References = 16,
    Energy = 32,
    Timeline = 64,
    Csv = 128,
    Algorithm = 256,  // the options of `quoin factor` that say how
    GpuMemory = 512,
    Routes = 1024,
    Files = 2048,
    Repeat = 4096,
    Specs = 8192,
    RankCounts = 16384,
    Draws = 32768,
    Masks = 65536,
    Pivoted = 131072,
};

using Run = void (*)(const BenchArguments&);

struct Study {
    enum Group { Bench, Paper } group;  ///< of `quoin bench`, or of `quoin bench paper`
    const char *name, *description;
    unsigned has;
    Run on_host;  ///< null: it runs on a GPU alone
    Run on_gpu;
    Run check = nullptr;  ///< refuses what cannot be measured, before anything is
};

void robust_pca([[maybe_unused]] const BenchArguments& arguments) {
#ifdef QUOIN_HAVE_VIDEO
    bench_robust_pca(arguments);
#else
    throw InvalidArgument("rpca: this quoin-bench was built without FFmpeg's libraries");
#endif
}

constexpr unsigned of_2011 = Types | References | Energy | Timeline | Csv | Algorithm | Repeat;
/// Every subcommand, in the order of --help. The first is `quoin bench` itself, too.
const Study studies[] = {
    {Study::Bench, "shapes",
     "Time Quoin against LAPACK through the same BLAS, or on a GPU against cuSOLVER.\n\n"
     "All factor the same random matrix in one process. Their runs alternate; medians are printed.\n"
     "Without SHAPE, every case of the requirements is run (on the host 10 minutes and 6 GiB).",
     Shapes | Types | AnyDevice | Operations | References | Energy | Timeline | Csv | Algorithm | Pivoted | Repeat,
     bench_on_host, QUOIN_ON_GPU(bench_on_device), check_shapes},
    {Study::Bench, "files",
     "Measure matrices larger than --memory, from file to file.\n\n"
     "Q and R of 200000x2000, or of SHAPE, against the same in memory; R alone of 3.2 GB by 8 and by 64\n"
     "columns, or of a SHAPE of at most 64, against reading the file. On a GPU Q and R of 30000x30000 in f32,\n"
     "or of SHAPE, within --gpu-memory. The folder needs three times the size of the file, 8 and 11 GB.",
     Files | Shapes | Types | AnyDevice | GpuMemory | Repeat, bench_files, QUOIN_ON_GPU(bench_files)},
    {Study::Bench, "batches",
     "Time many matrices at once, such as 640x512x512, against LAPACK matrix by matrix.\n\n"
     "On a GPU against cuSOLVER's geqrf matrix by matrix and cuBLAS's geqrfBatched. `factor` makes V, tau and R,\n"
     "`geqrf` writes them as LAPACK does too, `thin-qr` makes Q and R. Then the accuracy of Q and R over classes of\n"
     "matrices, in units of k·u, k = min(rows, columns). Without SPEC, twelve batches from 100000x3x3 to 2x4096x4096.",
     Specs | Types | AnyDevice | References | Csv | Repeat, bench_batches, QUOIN_ON_GPU(bench_batches)},
    {Study::Bench, "regret",
     "Time the method that Quoin chooses against its other methods, over shapes at random.\n\n"
     "Rows from 32 to 10 000 000, columns from 2 to 20 000, as far as one run takes about a second. R alone, V, tau\n"
     "and R, Q and R, each by every method of the same accuracy and by LAPACK or cuSOLVER, and R and QᵀC (factor)\n"
     "by the methods. The fastest of several runs counts; with --threads 1 the time for which the thread had its\n"
     "core. Printed are the cases in which the choice is more than 10% behind the best or behind the reference;\n"
     "--csv has all.",
     Shapes | Types | AnyDevice | References | Csv | Draws | Repeat, bench_regret, QUOIN_ON_GPU(bench_regret)},
    {Study::Bench, "ranks",
     "Time a tall matrix whose rows are spread over ranks, such as 1000000x192.\n\n"
     "The ranks are threads with a share of the cores each; with --device cuda each has a GPU, and NCCL connects\n"
     "them. The speed-up is against the first number of ranks. On the host the fastest run is beside the plan: the "
     "model\n"
     "of `quoin plan --ranks`, with this machine's messages and as many ranks at work. Without SHAPE 1000000x192.",
     Shapes | Types | AnyDevice | Operations | RankCounts | Timeline | Csv | Algorithm | Repeat, bench_ranks,
     QUOIN_ON_GPU(bench_ranks), check_ranks},
    {Study::Bench, "rpca",
     "Masks of moving objects by `quoin rpca` against OpenCV's methods.\n\n"
     "Precision, recall, F and seconds of CPU a frame, on frames whose masks are known: of quoin, also with\n"
     "--masks raw, of MOG2 and KNN, and of the temporal median, each as it is and with a 5×5 median.",
     Masks, bench_masks, nullptr},
    {Study::Paper, "table1", "Table I of Anderson, Ballard, Demmel and Keutzer (2011), on this GPU.", of_2011, nullptr,
     QUOIN_ON_GPU(bench_caqr_table1)},
    {Study::Paper, "figure8", "Their Figure 8.", of_2011, nullptr, QUOIN_ON_GPU(bench_caqr_figure8)},
    {Study::Paper, "figure9", "Their Figure 9.", of_2011, nullptr, QUOIN_ON_GPU(bench_caqr_figure9)},
    {Study::Paper, "rpca", "Their Table II: iterations of robust PCA a second; and online, frames of a stream.",
     AnyDevice | Timeline | Csv | Repeat, robust_pca, QUOIN_ON_GPU(robust_pca)},
    {Study::Paper, "storage",
     "Table 1 of Benner, Köhler and Penke: V, R and one T.\n\n"
     "Without SHAPE also products with Qᵀ and a block of Q.",
     Shapes | Types | AnyDevice | References | Energy | Timeline | Csv | Algorithm | Repeat, bench_storage,
     QUOIN_ON_GPU(bench_storage)},
    {Study::Paper, "gram-schmidt",
     "Figures 2, 4 and 10, or on a GPU 6 to 9, of Brandes, Arnold, Soddemann and Reith (2012).\n\n"
     "Every code, width of a panel and number of threads; on a GPU the paper's kernels over the shape of a block,\n"
     "and every code.",
     Shapes | Types | AnyDevice | Csv | Algorithm | Repeat, bench_gram_schmidt,
     QUOIN_ON_GPU(bench_gram_schmidt_on_device)},
    {Study::Paper, "orthogonality", "‖I − QᵀQ‖ over κ by Gram-Schmidt and by reflectors.", Types | Csv | Repeat,
     bench_orthogonality, nullptr},
    {Study::Paper, "tensor-cores",
     "Q and R in f32 by cgs in every arithmetic, against cuSOLVER and householder, on this GPU.\n\n"
     "16384x16384 and 32768x32768, or SHAPE.",
     Shapes | Csv | Algorithm | Repeat, nullptr, QUOIN_ON_GPU(bench_tensor_cores)},
    {Study::Paper, "out-of-core",
     "Tables 3 and 4 of Zhang and Wu (2021): a matrix of the host's memory by this GPU.\n\n"
     "65536x65536, or SHAPE, within --gpu-memory. bench/plots/out_of_core.py draws what --csv and --trace write.",
     Shapes | Types | GpuMemory | Routes | Timeline | Csv | Repeat, nullptr, QUOIN_ON_GPU(bench_out_of_core),
     check_tall},
};

constexpr const char* also_options_of_factor =
    "Also --method and the other options of `quoin factor` that say how to factor.";

/// Parses a shape that has an entry.
Shape parse_full_shape(const std::string& argument, const std::string& text) {
    const Shape shape = parse_shape(argument, text);
    if (shape.rows == 0 || shape.cols == 0) refuse_argument(argument, fmt::format("'{}' has nothing to time", text));
    return shape;
}

/// Parses "640x512x512".
BatchSpec parse_batch(const std::string& argument, const std::string& text) {
    const std::size_t cross = text.find('x');
    const Index count = parse_shape(argument, text.substr(0, cross) + "x1").rows;
    if (cross == std::string::npos)
        refuse_argument(argument, fmt::format("'{}' is not COUNTxROWSxCOLS, such as 640x512x512", text));
    if (count == 0) refuse_argument(argument, fmt::format("'{}' has nothing to time", text));
    return {count, parse_full_shape(argument, text.substr(cross + 1))};
}

/// Adds any number of arguments, which `parse(name, text)` reads into `list`.
template <class List, class Parse>
void add_arguments(CLI::App& command, const std::string& name, List& list, Parse parse,
                   const std::string& description) {
    const auto set = [&list, name, parse](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) list.push_back(parse(name, text));
    };
    command.add_option_function<std::vector<std::string>>(name, set, description)->type_name("");
}

void add_study(CLI::App& command, BenchArguments& arguments, const Study& study) {
    const auto has = [&](Has what) { return (study.has & what) != 0; };
    if (has(Files)) command.add_option("DIR", arguments.folder, "Folder for the files")->required()->type_name("");
    if (has(Shapes))
        add_arguments(command, "SHAPE", arguments.shapes, parse_full_shape,
                      "Rows and columns, such as 1000000x192; any number of shapes");
    if (has(Specs)) {
        add_arguments(command, "SPEC", arguments.batches, parse_batch,
                      "Number, rows and columns, such as 640x512x512; any number of batches");
        command.add_flag("--no-accuracy", arguments.no_accuracy, "Times alone");
    }
    if (has(Masks)) {
        command
            .add_option("DIR", arguments.folder,
                        "Frames in DIR/input and their masks in DIR/groundtruth, as ChangeDetection.net has them")
            ->required()
            ->type_name("");
        command.add_option("OPTION", arguments.rpca_options, "After --: options of `quoin rpca`, such as --window 50")
            ->type_name("");
        command
            .add_option("--against", arguments.subtraction,
                        "opencv: MOG2, KNN and a temporal median, by python3 with opencv-python")
            ->check(CLI::IsMember({"opencv"}).description(""))
            ->type_name("NAME")
            ->capture_default_str();
    }
    if (has(Types)) add_list(command, "--dtype", "TYPES", arguments.dtypes, parse_dtype, "f32, f64 or f32,f64");
    if (has(Operations))
        add_list(
            command, "--op", "OPS", arguments.operations,
            [](const std::string& argument, const std::string& name) {
                return parse_name(argument, name, all_operations);
            },
            "thin-qr, r-only, geqrf (LAPACK's V, tau and R) or factor (Q in any form); on the host also geqrt3\n"
            "and geqrt (one T), lstsq and svd; separated by commas (default: thin-qr)");
    if (has(AnyDevice))
        add_choice(command, "--device", arguments.common.device, {Device::Host, Device::Cuda},
                   "host or cuda: where the matrix is (default: host)");
    if (has(Draws)) {
        command
            .add_option("--shapes", arguments.shape_count,
                        "How many shapes, those of SHAPE among them (default: 200, or those of SHAPE)")
            ->check(number_between(1, 1000000))
            ->type_name("N");
        command.add_option("--seed", arguments.seed, "Seed of the random shapes (default: 1)")
            ->check(number_between(0, 1000000000))
            ->type_name("N");
    }
    if (has(RankCounts)) {
        add_list(
            command, "--ranks", "COUNTS", arguments.ranks,
            [](const std::string& argument, const std::string& text) {
                return static_cast<int>(parse_dimension(argument, text));
            },
            "Numbers of ranks, separated by commas (default: 1,2,4)");
        CLI::Option* const grid = add_parsed(
            command, "--grid", "PxQ",
            [&arguments](const std::string& text) { arguments.grid = parse_shape("--grid", text); },
            "In place of --ranks: a block-cyclic matrix of any shape on P x Q ranks");
        add_size(command, "--block", arguments.block,
                 "With --grid: rows and columns of a block (default: 64; on GPUs 512)")
            ->needs(grid);
    }
    if (has(References))
        add_list(
            command, "--against", "REFERENCES", arguments.references,
            [](const std::string& argument, const std::string& name) {
                using enum Reference;
                return parse_name(argument, name, {None, Lapack, Cusolver, Blas2});
            },
            "lapack or none; on a GPU any of cusolver, lapack (on the host) and blas2 (Householder QR column by\n"
            "column), separated by commas (default: lapack; on a GPU cusolver)");
    if (has(Files)) {
        add_byte_size_argument(command, "--memory", arguments.memory,
                               "Cap of the host's memory (default: 512MiB; with --device cuda 2GiB)");
    }
    if (has(GpuMemory))
        add_byte_size_argument(command, "--gpu-memory", arguments.gpu_memory,
                               "Memory of the GPU that may be taken (default: 16GiB)");
    if (has(Routes)) {
        add_list(command, "--routes", "ROUTES", arguments.routes, parse_route,
                 "METHOD-ARITHMETIC or METHOD-ARITHMETIC-twice (reorthogonalised), separated by commas; recursive,\n"
                 "blocking or householder; native, tf32, fp16, bf16 or corrected\n"
                 "(default: recursive-fp16,blocking-fp16)");
        add_size(command, "--block", arguments.block, "Columns of a block (0: as many as the memory has room for)");
    }
    if (has(Energy))
        command.add_flag("--energy", arguments.energy,
                         "Measure joules too, of the CPUs by RAPL or of the GPU by NVML, over a second a code or more");
    if (has(Timeline)) add_trace_argument(command, arguments.common.trace);
    if (has(Csv))
        command.add_option("--csv", arguments.csv, "Write the results to a CSV file as well")->type_name("FILE");
    if (has(Repeat))
        command.add_option("--repeat", arguments.repeat, "Timed runs (default: by their time, 1 to 50)")
            ->check(number_between(1, 1000000))
            ->type_name("N");
    add_common_arguments(command, arguments.common, /*algorithm=*/false);
    if (has(Algorithm)) {
        // the help names where they are explained
        add_algorithm_arguments(command, arguments.common.options, "");
        add_compact_wy_arguments(command, arguments.common.options, "");
    }
    if (has(Pivoted)) add_pivot_arguments(command, arguments.pivots, false);
    // a subcommand begins with the footer of its parent
    command.footer(has(Masks)
                       ? "Example:  quoin rpca --synthetic --scene-with noise,leaves --out parts --write-scene scene\n"
                         "          quoin bench rpca scene --against opencv -- --window 50"
                   : has(Algorithm) ? also_options_of_factor
                                    : "");
    command.callback([&command, &arguments, &study] {
        if (!command.get_subcommands().empty()) return;
        const bool gpu_alone = !study.on_host;
        if (gpu_alone) arguments.common.device = Device::Cuda;
        arguments.common.options.pivoting = arguments.pivots.pivoting();
        if (study.check) study.check(arguments);
        const Run run = arguments.on_device() ? study.on_gpu : study.on_host;
        if (!run)
            throw Error(ErrorCode::DeviceFailure,
                        fmt::format("{}: Quoin was built without CUDA", gpu_alone ? study.name : "--device cuda"));
        run(arguments);
    });
}

}  // namespace

}  // namespace quoin::cli

int main(int argc, char** argv) {
    using namespace quoin::cli;
    BenchArguments arguments;
    arguments.routes = parse_list("--routes", "recursive-fp16,blocking-fp16", parse_route);
    Program program(studies[0].description, "quoin bench");
    add_study(program, arguments, studies[0]);
    for (const Study& study : studies)
        if (study.group == Study::Bench)
            add_study(*program.add_subcommand(study.name, study.description), arguments, study);
    CLI::App& paper = *program.add_subcommand("paper", "Tables and figures of papers, and the laws of Gram-Schmidt.");
    std::string names;
    for (const Study& study : studies) {
        if (study.group != Study::Paper) continue;
        add_study(*paper.add_subcommand(study.name, study.description), arguments, study);
        names += (names.empty() ? "" : ", ") + std::string(study.name);
    }
    paper.allow_extras();
    paper.callback([&] {
        if (!paper.get_subcommands().empty()) return;
        const std::vector<std::string> rest = paper.remaining();
        refuse_argument("paper", (rest.empty() ? "needs one of " : "'" + rest[0] + "' is none of ") + names);
    });
    program.footer(std::string(also_options_of_factor) +
                   " docs/performance.md explains the columns.\n\n"
                   "Example:  quoin bench 1000000x192 --dtype f32,f64 --op thin-qr,r-only --json\n"
                   "          quoin bench 1000000x192 --device cuda --against cusolver,blas2 --op geqrf");
    return program.run(argc, argv);
}
