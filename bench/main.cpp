// The command line of `quoin bench`: one table of studies, each a subcommand with its own few options.

#include <fmt/format.h>

#include "add_value.hpp"
#include "byte_size.hpp"
#include "papers/published.hpp"
#include "program.hpp"
#include "quoin/study.hpp"
#include "results.hpp"
#include "study.hpp"

namespace quoin::cli {

namespace {

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

/// Every subcommand but `paper`, in the order of --help. The first is `quoin bench` itself, too.
const Study studies[] = {
    {"shapes",
     "Time Quoin against LAPACK through the same BLAS, or on a GPU against cuSOLVER.\n\n"
     "All factor the same random matrix in one process. Their runs alternate; medians are printed.\n"
     "Without SHAPE, every case of the requirements is run (on the host 10 minutes and 6 GiB).",
     Shapes | Types | AnyDevice | Operations | References | Energy | Timeline | Csv | Algorithm | Pivoted | Repeat,
     bench_on_host, QUOIN_ON_GPU(bench_on_device), check_shapes},
    {"files",
     "Measure matrices larger than --memory, from file to file.\n\n"
     "Q and R of 200000x2000, or of SHAPE, against the same in memory; R alone of 3.2 GB by 8 and by 64\n"
     "columns, or of a SHAPE of at most 64, against reading the file. On a GPU Q and R of 30000x30000 in f32,\n"
     "or of SHAPE, within --gpu-memory. The folder needs three times the size of the file, 8 and 11 GB.",
     Files | Shapes | Types | AnyDevice | GpuMemory | Repeat, bench_files, QUOIN_ON_GPU(bench_files)},
    {"batches",
     "Time many matrices at once, such as 640x512x512, against LAPACK matrix by matrix.\n\n"
     "On a GPU against cuSOLVER's geqrf matrix by matrix and cuBLAS's geqrfBatched. `factor` makes V, tau and R,\n"
     "`geqrf` writes them as LAPACK does too, `thin-qr` makes Q and R. Then the accuracy of Q and R over classes of\n"
     "matrices, in units of k·u, k = min(rows, columns). Without SPEC, twelve batches from 100000x3x3 to 2x4096x4096.",
     Specs | Types | AnyDevice | References | Csv | Repeat, bench_batches, QUOIN_ON_GPU(bench_batches)},
    {"regret",
     "Time the method that Quoin chooses against its other methods, over shapes at random.\n\n"
     "Rows from 32 to 10 000 000, columns from 2 to 20 000, as far as one run takes about a second. R alone, V, tau\n"
     "and R, Q and R, each by every method of the same accuracy and by LAPACK or cuSOLVER, and R and QᵀC (factor)\n"
     "by the methods. The fastest of several runs counts; with --threads 1 the time for which the thread had its\n"
     "core. Printed are the cases in which the choice is more than 10% behind the best or behind the reference;\n"
     "--csv has all.",
     Shapes | Types | AnyDevice | References | Csv | Draws | Repeat, bench_regret, QUOIN_ON_GPU(bench_regret)},
    {"ranks",
     "Time a tall matrix whose rows are spread over ranks, such as 1000000x192.\n\n"
     "The ranks are threads with a share of the cores each; with --device cuda each has a GPU, and NCCL connects\n"
     "them. The speed-up is against the first number of ranks. On the host the fastest run is beside the plan: the\n"
     "model of `quoin plan --ranks`, with this machine's messages and as many ranks at work. Without SHAPE\n"
     "1000000x192.",
     Shapes | Types | AnyDevice | Operations | RankCounts | Timeline | Csv | Algorithm | Repeat, bench_ranks,
     QUOIN_ON_GPU(bench_ranks), check_ranks},
    {"rpca",
     "Masks of moving objects by `quoin rpca` against OpenCV's methods.\n\n"
     "Precision, recall, F and seconds of CPU a frame, on frames whose masks are known: of quoin, also with\n"
     "--masks raw, of MOG2 and KNN, and of the temporal median, each as it is and with a 5×5 median.",
     Masks, bench_masks},
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
        add_value(command, "--against", "NAME", arguments.subtraction,
                  "opencv: MOG2, KNN and a temporal median, by python3 with opencv-python")
            ->check(CLI::IsMember({"opencv"}).description(""))
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
        add_number(command, "--shapes", "N", arguments.shape_count, 1, 1000000,
                   "How many shapes, those of SHAPE among them (default: 200, or those of SHAPE)");
        add_number(command, "--seed", "N", arguments.seed, 0, 1000000000, "Seed of the random shapes (default: 1)");
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
                               has(LargeBlocks) ? "Memory of the GPU that may be taken (default: 32GiB)"
                                                : "Memory of the GPU that may be taken (default: 16GiB)");
    if (has(Routes)) {
        add_list(command, "--routes", "ROUTES", arguments.routes, parse_route,
                 "METHOD-ARITHMETIC or METHOD-ARITHMETIC-twice (reorthogonalised), separated by commas; recursive,\n"
                 "blocking or householder; native, tf32, fp16, bf16 or corrected\n"
                 "(default: recursive-fp16,blocking-fp16)");
        add_size(command, "--block", arguments.block,
                 has(LargeBlocks) ? "Columns of a block (default: 16384)"
                                  : "Columns of a block (default: as many as the memory has room for)");
    }
    if (has(Energy))
        command.add_flag("--energy", arguments.energy,
                         "Measure joules too, of the CPUs by RAPL or of the GPU by NVML, over a second a code or more");
    if (has(Timeline)) add_trace_argument(command, arguments.common.trace);
    if (has(Csv)) add_value(command, "--csv", "FILE", arguments.csv, "Write the results to a CSV file as well");
    if (has(Iterations))
        add_number(command, "--iterations", "N", arguments.iterations, 1, 1000000,
                   "At most N iterations of each pursuit (default: 500)");
    if (has(Repeat))
        add_number(command, "--repeat", "N", arguments.repeat, 1, 1000000,
                   "Timed runs (default: by their time, 1 to 50)");
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
        const bool large = study.has & LargeBlocks;
        if (arguments.gpu_memory == 0) arguments.gpu_memory = Index(large ? 32 : 16) << 30;
        if (arguments.block == 0 && large) arguments.block = 16384;
        if (study.check) study.check(arguments);
        const Run run = arguments.on_device() ? study.on_gpu : study.on_host;
        if (!run)
            throw Error(ErrorCode::DeviceFailure,
                        fmt::format("{}: Quoin was built without CUDA", gpu_alone ? study.name : "--device cuda"));
        run(arguments);
        const std::string text = published_text(arguments.paper, arguments.entry);
        if (!arguments.common.json && !text.empty()) fmt::print("\nThe paper:\n{}", text);
    });
}

// The papers

/// Returns the first entry whose run serves `entry` too; one that runs on both devices, if there is one.
const PaperEntry& run_of(const PaperEntry& entry) {
    const Study& own = entry.study;
    if (!own.on_host && !own.on_gpu) return entry;
    const auto serves = [&](const PaperEntry& other) {
        return other.study.on_gpu == own.on_gpu && (!own.on_host || other.study.on_host == own.on_host);
    };
    const auto on_both = [&](const PaperEntry& other) { return serves(other) && other.study.on_host; };
    const auto found = std::find_if(paper_entries.begin(), paper_entries.end(), on_both);
    return found != paper_entries.end() ? *found : *std::find_if(paper_entries.begin(), paper_entries.end(), serves);
}

/// Prints the entries of `paper`, or of all papers for "": where each runs, and about how long.
void list_entries(const std::string& paper, bool json) {
    for (const Paper& p : papers) {
        if (!paper.empty() && paper != p.name) continue;
        if (!json) fmt::print("{}: {}\n", p.name, p.authors);
        for (const PaperEntry& entry : paper_entries) {
            if (std::string(entry.paper) != p.name) continue;
            const PaperEntry& run = run_of(entry);
            if (json) {
                JsonLine line;
                line.add("paper", p.name).add("entry", entry.study.name).add("title", entry.study.description);
                line.add_known("host", entry.host_time ? entry.host_time : "");
                line.add_known("gpu", entry.gpu_time ? entry.gpu_time : "");
                line.add("run", fmt::format("{} {}", run.paper, run.study.name)).print();
                continue;
            }
            std::string where = entry.host_time ? fmt::format("host {}", entry.host_time) : "";
            if (entry.gpu_time) where += fmt::format("{}GPU {}", where.empty() ? "" : ", ", entry.gpu_time);
            if (&run != &entry) where += fmt::format("; the run of {} {}", run.paper, run.study.name);
            fmt::print("  {:<14}{}\n{:16}{}\n", entry.study.name, entry.study.description, "", where);
        }
    }
}

/// Makes `command` print the entries of `paper` ("": of all papers) for --list, and otherwise ask for one of `names`.
void add_list_of_entries(CLI::App& command, BenchArguments& arguments, const std::string& paper,
                         const std::string& names) {
    CLI::Option* const list =
        command.add_flag("--list")->description("List the entries: where each runs, and about how long");
    command.add_flag("--json", arguments.common.json, "With --list: one JSON object a line");
    command.allow_extras();
    command.footer("");
    command.callback([&command, &arguments, paper, names, list] {
        if (!command.get_subcommands().empty()) return;
        const std::vector<std::string> rest = command.remaining();
        if (rest.empty() && *list) return list_entries(paper, arguments.common.json);
        refuse_argument(command.get_name(), (rest.empty() ? "needs one of " : "'" + rest[0] + "' is none of ") + names);
    });
}

/// Adds `quoin bench paper PAPER ENTRY` for every entry.
void add_papers(CLI::App& program, BenchArguments& arguments) {
    CLI::App& command = *program.add_subcommand("paper", "Every table and figure of five papers, again.");
    std::string names;
    for (const Paper& paper : papers) {
        CLI::App& of_paper = *command.add_subcommand(paper.name, paper.authors);
        std::string entries;
        for (const PaperEntry& entry : paper_entries) {
            if (std::string(entry.paper) != paper.name) continue;
            CLI::App& of_entry = *of_paper.add_subcommand(entry.study.name, entry.study.description);
            entries += (entries.empty() ? "" : ", ") + std::string(entry.study.name);
            of_entry.preparse_callback([&arguments, &entry](std::size_t) {
                arguments.paper = entry.paper;
                arguments.entry = entry.study.name;
            });
            add_study(of_entry, arguments, entry.study);
        }
        add_list_of_entries(of_paper, arguments, paper.name, entries);
        names += (names.empty() ? "" : ", ") + std::string(paper.name);
    }
    add_list_of_entries(command, arguments, "", names);
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
        add_study(*program.add_subcommand(study.name, study.description), arguments, study);
    add_papers(program, arguments);
    program.footer(std::string(also_options_of_factor) +
                   " docs/performance.md explains the columns.\n\n"
                   "Example:  quoin bench 1000000x192 --dtype f32,f64 --op thin-qr,r-only --json\n"
                   "          quoin bench 1000000x192 --device cuda --against cusolver,blas2 --op geqrf");
    return program.run(argc, argv);
}
