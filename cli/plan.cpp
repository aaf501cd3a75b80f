#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

#include "arguments.hpp"
#include "byte_size.hpp"
#include "file_route.hpp"
#include "json_line.hpp"
#include "measure/machine_limits.hpp"
#include "on_device.hpp"
#include "random_matrix.hpp"
#include "rank_rate.hpp"
#include "stopwatch.hpp"
#include "streaming_layout.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

struct PlanArguments {
    CommonArguments common;
    std::vector<std::string> shape;
    DType dtype = DType::F64;
    QForm q = QForm::Explicit;
    bool kernels = false;
    Index gpu_memory = 0;
    Index memory = 0;
    Index ranks = 0, per_machine = 1, block = 64;
    Shape grid{0, 0};
    double latency = 2e-6, bandwidth = 25e9;
};

Shape shape_of(const std::vector<std::string>& texts) {
    if (texts.size() == 1) return parse_shape("SHAPE", texts[0]);
    const Shape shape{parse_dimension("M", texts[0]), parse_dimension("N", texts[1])};
    check_shape("M N", shape);
    return shape;
}

void add_threads(JsonLine& line, const Context<Host>& ctx) { line.add("threads", ctx.threads()); }
#ifdef QUOIN_HAVE_CUDA
void add_threads(JsonLine& line, const Context<Cuda>&) { line.add_null("threads"); }
#endif

/// Prints the plan from file to file, for a matrix that does not fit the cap. `threads`: threads of the host, or 0 by
/// way of a GPU; then only the time of the disk is counted.
void print_file_plan(int threads, const PlanArguments& arguments, const FilePlan& plan) {
    const DType dtype = arguments.dtype;
    double arithmetic = 0, seconds = (plan.bytes_read + plan.bytes_written) / 1e9;
    if (threads > 0) {
        arithmetic = measure_machine_limits(dtype == DType::F32, dtype == DType::F64).arithmetic(dtype);
        seconds = std::max(seconds, plan.flops / (0.6 * arithmetic));
    }
    if (arguments.common.json) {
        JsonLine line;
        line.add("rows", plan.rows).add("cols", plan.cols).add("dtype", to_string(dtype));
        line.add("device", threads > 0 ? "host" : "cuda");
        if (threads > 0)
            line.add("threads", threads);
        else
            line.add_null("threads");
        line.add("method", plan.route == FileRoute::RowBlocks ? "streaming-tsqr" : "left-looking");
        line.add("blocks", plan.blocks).add("block", plan.block).add("stored", plan.stored);
        line.add("memory_bytes", plan.memory_bytes).add("disk_bytes", plan.disk_bytes);
        line.add("bytes_read", plan.bytes_read).add("bytes_written", plan.bytes_written).add("flops", plan.flops);
        line.add("seconds_at_1_gb_a_second", seconds).print();
        return;
    }
    fmt::print("{} x {} {}, from file to file within {}: {}\n", plan.rows, plan.cols, to_string(dtype),
               format_given_size(static_cast<double>(arguments.memory)), to_string(plan));
    if (threads > 0) {
        fmt::print("about {:.3g} s at 1 GB/s of disk and 60% of this machine's {:.0f} GFLOP/s\n", seconds,
                   1e-9 * arithmetic);
    } else {
        fmt::print("about {:.3g} s at 1 GB/s of disk\n", seconds);
    }
}

template <class T, class D>
void run_plan(const Context<D>& ctx, const DeviceInUse& device, const PlanArguments& arguments, Shape shape) {
    const Plan plan = plan_qr<T>(ctx, shape.rows, shape.cols, arguments.common.options);
    if constexpr (std::is_same_v<D, Host>) {
        if (arguments.memory > 0 && factor_bytes(plan, false) > static_cast<double>(arguments.memory)) {
            FileOptions options;
            options.memory = static_cast<double>(arguments.memory);
            options.want_q = plan.q != QForm::None;
            const auto planned = [&](const FileOptions& o) { return plan_file_qr<T>(ctx, shape.rows, shape.cols, o); };
            return print_file_plan(ctx.threads(), arguments, file_plan_within<T>(planned, "the plan", shape, options));
        }
    }
    const auto kernels = arguments.kernels ? kernels_of<D>(plan) : std::vector<KernelUse>();
    if (!arguments.common.json) {
        fmt::print("{}\n", to_string(plan));
        for (const auto& [step, kernel] : kernels) fmt::print("  {}: {}\n", step, kernel);
        return;
    }
    JsonLine line;
    line.add("rows", plan.rows).add("cols", plan.cols).add("dtype", to_string(arguments.dtype));
    line.add("device", to_string(device.device));
    add_threads(line, ctx);
    line.add("method", to_string(plan.method));
    line.add_known("fallback", plan.fallback == Method::Auto ? "" : to_string(plan.fallback));
    line.add("q", to_string(plan.q)).add("panel_width", plan.panel_width).add("inner_block", plan.inner_block);
    const FullT full_t = plan.full_t.value_or(FullT{});
    line.add("compact_wy", plan.full_t ? "full" : "panels").add("keep_s", full_t.keep_s);
    line.add("full_t", to_string(full_t.route));
    line.add("arithmetic", to_string(plan.arithmetic));
    line.add("reorthogonalization", to_string(plan.reorthogonalization));
    line.add("gram_schmidt_panel", to_string(plan.gram_schmidt_panel));
    line.add("leaf_rows", plan.leaf_rows).add("domain_leaves", plan.domain_leaves).add("fan_in", plan.fan_in);
    line.add("reconstruct_rows", plan.reconstruct_rows).add("workspace_bytes", plan.workspace_bytes);
    line.add("flops", plan.flops).add("bytes_moved", plan.bytes_moved);
    if (arguments.kernels) {
        std::vector<JsonLine> lines;
        for (const auto& [step, kernel] : kernels) lines.push_back(JsonLine().add("step", step).add("kernel", kernel));
        line.add("kernels", lines);
    }
    line.print();
}

#ifdef QUOIN_HAVE_CUDA
/// By blocks of rows through a GPU: R in one pass over A, Q in a second one.
template <class T>
void print_stream_plan(const PlanArguments& arguments, Shape shape, RowBlocks blocks, bool with_q) {
    const double m = static_cast<double>(shape.rows), n = static_cast<double>(shape.cols);
    const double A = sizeof(T) * m * n, in = with_q ? 2 * A : A, out = (with_q ? A : 0) + sizeof(T) * n * n;
    const double flops = (with_q ? 8 : 2) * m * n * n, link = OutOfCoreRates().link, seconds = in / link;
    if (arguments.common.json) {
        JsonLine line;
        line.add("rows", shape.rows).add("cols", shape.cols).add("dtype", to_string(arguments.dtype));
        line.add("method", "streaming-tsqr").add("gpu_memory_bytes", arguments.gpu_memory);
        line.add("blocks", blocks.count()).add("block", blocks.block_rows);
        line.add("bytes_to_gpu", in).add("bytes_from_gpu", out).add("flops", flops);
        line.add("seconds_of_copies", seconds).print();
        return;
    }
    fmt::print("{} x {} {} through {} of the device: {}, streaming-tsqr, {} blocks of {} rows\n", shape.rows,
               shape.cols, to_string(arguments.dtype), format_given_size(static_cast<double>(arguments.gpu_memory)),
               with_q ? "R in one pass over A, Q in a second one" : "R in one pass over A", blocks.count(),
               blocks.block_rows);
    fmt::print("moves {} to the device and {} from it\n{:.3g} GFLOP; {:.3g} s of copies at {:.0f} GB/s\n",
               format_byte_size(in), format_byte_size(out), 1e-9 * flops, seconds, 1e-9 * link);
}
#endif

/// Prints the cost of every method out of core with the same memory of a GPU. Needs no GPU.
template <class T>
void plan_beyond_gpu([[maybe_unused]] const PlanArguments& arguments, [[maybe_unused]] Shape shape) {
#ifdef QUOIN_HAVE_CUDA
    const Options& given = arguments.common.options;
    const bool with_q = given.q != QForm::None;
    const auto streaming = gpu_streaming(shape.rows, shape.cols, 0, with_q, sizeof(T), given);
    const auto blocks =
        streaming ? largest_blocks(*streaming, shape.rows, shape.cols, static_cast<double>(arguments.gpu_memory),
                                   enough_gpu_rows(shape.cols, sizeof(T)))
                  : std::nullopt;
    const bool beyond_host =
        arguments.memory > 0 && bytes_beside_gpu<T>(shape, false) > static_cast<double>(arguments.memory);
    if (blocks) {
        print_stream_plan<T>(arguments, shape, *blocks, with_q);
        if (beyond_host) return;
    } else if (beyond_host) {
        FileOptions options;
        options.memory = static_cast<double>(arguments.memory);
        options.device_memory = static_cast<double>(arguments.gpu_memory);
        options.arithmetic = given.arithmetic;
        options.want_q = with_q;
        const auto planned = [&](const FileOptions& o) { return plan_file_qr<T, Cuda>(shape.rows, shape.cols, o); };
        return print_file_plan(0, arguments, file_plan_within<T>(planned, "the plan", shape, options));
    }
    bool first = !blocks;
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive}) {
        const bool slabs = method == OutOfCoreMethod::Householder;
        const bool rounded = given.arithmetic != Arithmetic::Auto && given.arithmetic != Arithmetic::Native &&
                             given.arithmetic != Arithmetic::Corrected;
        // skip a method that cannot do this
        if (slabs ? rounded : shape.rows < shape.cols) continue;
        OutOfCoreOptions options;
        options.method = method;
        options.arithmetic = given.arithmetic;
        options.reorthogonalize = !slabs && given.method.reorthogonalization() != Reorthogonalization::Off;
        options.memory_bytes = static_cast<double>(arguments.gpu_memory);
        options.block = given.method.panel_width();
        OutOfCorePlan plan;
        try {
            plan = plan_out_of_core<T, Cuda>(shape.rows, shape.cols, options);
        } catch (const OutOfMemory& refusal) {
            if (!blocks) throw;
            if (!arguments.common.json) fmt::print("\n{}: {}\n", to_string(method), refusal.what());
            continue;
        }
        if (!arguments.common.json) {
            fmt::print("{}{}\n", first ? "" : "\n", to_string(plan));
            first = false;
            continue;
        }
        JsonLine line;
        line.add("rows", plan.rows).add("cols", plan.cols).add("dtype", to_string(arguments.dtype));
        line.add("method", to_string(plan.method)).add("arithmetic", to_string(plan.arithmetic));
        line.add("reorthogonalize", plan.reorthogonalize).add("gpu_memory_bytes", plan.memory_bytes);
        line.add("block", plan.block).add("bytes_to_gpu", plan.bytes_in).add("bytes_from_gpu", plan.bytes_out);
        line.add("flops", plan.flops).add("predicted_seconds", plan.seconds);
        line.print();
    }
#else
    refuse_gpu("Quoin was built without CUDA");
#endif
}

/// Measures the flops a second of one rank. Runs `call`, which takes `flops` flops, four times, and takes the fastest.
template <class F>
double measure_flops(double flops, F&& call) {
    double least = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 4; ++run) {
        const Stopwatch watch;
        call();
        least = std::min(least, watch.seconds());
    }
    return flops / least;
}

/// Measures the flops a second of one rank on some rows and columns of its part of a block-cyclic matrix.
template <class T>
double measure_cyclic_rank(Context<Host>& ctx, const BlockCyclicPlan& plan, BlockCyclic layout) {
    layout.cols = std::min<Index>(plan.cols, 1024);
    layout.rows = std::min(plan.rows, std::max(layout.cols, (Index{1} << 20) / std::max<Index>(1, layout.cols)));
    Matrix<T> A(layout.rows, layout.cols);
    fill_normal(A, 1);
    double rate = 0;
    run_ranks(1, [&](Communicator& comm) {
        const ProcessGrid grid(comm, 1, 1);
        const double flops = plan_block_cyclic<T>(ctx, layout, 1, 1, false, plan.panel_width).flops;
        rate = measure_flops(
            flops, [&] { qr(ctx, grid, BlockCyclicView<const T>(layout, std::as_const(A).view()), plan.panel_width); });
    });
    return rate;
}

/// Prints the costs of every method over ranks, and of a block-cyclic matrix if a grid is given, by the model of α, β
/// and γ. γ is measured on this machine, with the threads of one rank.
template <class T>
void print_rank_plans(const PlanArguments& arguments, Shape shape) {
    Context<Host> ctx = make_context(arguments.common);
    const Options& given = arguments.common.options;
    const int ranks = static_cast<int>(arguments.ranks), per_machine = static_cast<int>(arguments.per_machine);
    const bool json = arguments.common.json;
    if (!json) {
        fmt::print("{} x {} {} on {} ranks of {} threads: {:.3g} us a message, {:.3g} GB/s between two ranks\n",
                   shape.rows, shape.cols, to_string(arguments.dtype), ranks, ctx.threads(), 1e6 * arguments.latency,
                   1e-9 * arguments.bandwidth);
        fmt::print("{:22}{:>11}{:>11}{:>11}{:>10}{:>12}{:>15}\n", "", "seconds", "computing", "GFLOP/s", "messages",
                   "sent", "memory a rank");
    }
    const auto print = [&](const std::string& method, const RankCosts& plan, double rate, Index rows, bool taken) {
        const double seconds = plan.seconds(arguments.latency, arguments.bandwidth, rate);
        if (!json) {
            fmt::print("{:22}{:>11.3g}{:>11.3g}{:>11.3g}{:>10.0f}{:>12}{:>15}{}\n", method, seconds, plan.flops / rate,
                       1e-9 * rate, plan.messages, format_byte_size(plan.bytes), format_byte_size(plan.memory_bytes),
                       taken ? "  <- taken" : "");
            return;
        }
        JsonLine line;
        line.add("rows", shape.rows)
            .add("cols", shape.cols)
            .add("dtype", to_string(arguments.dtype))
            .add("ranks", ranks);
        line.add("threads", ctx.threads()).add("method", method).add("taken", taken);
        line.add("rows_of_a_rank", rows).add("latency", arguments.latency).add("bandwidth", arguments.bandwidth);
        line.add("flops", plan.flops)
            .add("flops_per_second", rate)
            .add("messages", plan.messages)
            .add("bytes_sent", plan.bytes);
        line.add("memory_bytes", plan.memory_bytes).add("seconds", seconds).print();
    };
    const auto plan_of = [&](Method method) {
        Options options = given;
        options.method = method;
        return plan_ranks<T>(ctx, shape.rows, shape.cols, ranks, options);
    };
    const bool by_grid = arguments.grid.rows > 0;
    if (!by_grid || shape.rows / ranks >= shape.cols) {
        const Method taken = plan_of(given.method).method;
        for (const Method method : {Method::TSQR, Method::CholeskyQR2, Method::RandomizedCholeskyQR}) {
            const RankPlan plan = plan_of(method);
            print(to_string(method), plan, measure_rank<T>(per_machine, ctx.threads(), plan, shape.cols, given),
                  plan.rows, method == taken);
        }
    }
    if (!by_grid) return;
    const BlockCyclic layout{shape.rows, shape.cols, arguments.block, arguments.block};
    const int grid_rows = static_cast<int>(arguments.grid.rows), grid_cols = static_cast<int>(arguments.grid.cols);
    const BlockCyclicPlan plan =
        plan_block_cyclic<T>(ctx, layout, grid_rows, grid_cols, given.q == QForm::Explicit, given.method.panel_width());
    print(fmt::format("block-cyclic {}x{}", grid_rows, grid_cols), plan, measure_cyclic_rank<T>(ctx, plan, layout),
          plan.rows, false);
}

}  // namespace

void add_plan(CLI::App& program) {
    auto arguments = std::make_shared<PlanArguments>();
    CLI::App& command = *program.add_subcommand(
        "plan",
        "Print how an m x n matrix would be factored: method, tree, block sizes and cost.\n"
        "\n"
        "Shape, type and options fix a plan; no data is read. Results of one plan have the same bits for any number\n"
        "of threads.");
    command.add_option("SHAPE", arguments->shape, "Rows and columns, as 1000000x192 or as two numbers")
        ->required()
        ->expected(1, 2)
        ->type_name("");
    add_dtype(command, arguments->dtype, "f32 or f64 (default: f64)");
    const CLI::Option* const q = add_choice(
        command, "--q", arguments->q, {QForm::Any, QForm::None, QForm::Explicit, QForm::Reflectors},
        "Form of Q: explicit (the thin Q), none (R alone), reflectors (LAPACK's format) or any (default: explicit;\n"
        "with --compact-wy full: reflectors)");
    CLI::Option* const kernels =
        command.add_flag("--kernels", arguments->kernels,
                         "Also print which kernel of the device runs each step, with its file in src/host or src/cuda");
    add_byte_size_argument(
        command, "--memory", arguments->memory,
        "Cap on the memory of `quoin factor`. If the matrix does not fit, the plan goes from file to file and has the\n"
        "bytes read and written and a time; with --gpu-memory it goes through a GPU (default: none)");
    add_device_argument(command, arguments->common.device);
    add_byte_size_argument(
        command, "--gpu-memory", arguments->gpu_memory,
        "With --device cuda: cap on the GPU's memory, for a matrix in the host's memory. Prints the bytes and the "
        "time\n"
        "of blocks of rows (for a tall matrix), of householder, and of recursive classical Gram-Schmidt,\n"
        "beside the counts of Zhang and Wu (2021), with --panel-width as their block. Needs no GPU");
    CLI::Option* const ranks = add_parsed(
        command, "--ranks", "P",
        [arguments](const std::string& text) {
            arguments->ranks = parse_dimension("--ranks", text);
            if (arguments->ranks < 1) refuse_argument("--ranks", "it must be at least 1");
        },
        "Rows spread evenly over P processes: seconds, messages, bytes and memory of a rank for every method, by\n"
        "--latency, --bandwidth and what one rank's share of the work takes here with --threads");
    for (const char* other : {"--memory", "--gpu-memory", "--ranks"}) command.get_option(other)->excludes(kernels);
    add_parsed(
        command, "--ranks-per-machine", "N",
        [arguments](const std::string& text) {
            arguments->per_machine = parse_dimension("--ranks-per-machine", text);
            if (arguments->per_machine < 1 || arguments->per_machine > 4096)
                refuse_argument("--ranks-per-machine", "it must be from 1 to 4096");
        },
        "With --ranks: so many compute here at a time while one is measured, and share cores and memory as they will\n"
        "on their machine (default: 1)")
        ->needs(ranks);
    add_parsed(
        command, "--latency", "TIME",
        [arguments](const std::string& text) { arguments->latency = parse_seconds("--latency", text); },
        "With --ranks: time of a message without data (default: 2us)")
        ->needs(ranks);
    add_parsed(
        command, "--bandwidth", "RATE",
        [arguments](const std::string& text) { arguments->bandwidth = parse_byte_rate("--bandwidth", text); },
        "With --ranks: bytes a second from one rank to another (default: 25GB/s)")
        ->needs(ranks);
    CLI::Option* const grid = add_parsed(
        command, "--grid", "PxQ",
        [arguments](const std::string& text) {
            arguments->grid = parse_shape("--grid", text);
            if (arguments->grid.rows < 1) refuse_argument("--grid", "it must have at least 1 process row");
        },
        "With --ranks: the matrix block-cyclic on P x Q processes, as in ScaLAPACK. A matrix that is not tall is\n"
        "planned for it alone; seconds are without look-ahead");
    grid->needs(ranks);
    add_parsed(
        command, "--block", "NB",
        [arguments](const std::string& text) {
            arguments->block = parse_dimension("--block", text);
            if (arguments->block < 1) refuse_argument("--block", "it must be at least 1");
        },
        "With --grid: rows and columns of a block, MB = NB (default: 64)")
        ->needs(grid);
    add_common_arguments(command, arguments->common);
    add_compact_wy_arguments(command, arguments->common.options);
    command.footer(
        "Example:  quoin plan 1000000x192 --dtype f32\n"
        "          quoin plan 4096x4096 --kernels\n"
        "          quoin plan 131072x131072 --dtype f32 --device cuda --gpu-memory 16GiB --arithmetic fp16\n"
        "          quoin plan 1000000000x256 --ranks 4096 --latency 2us --bandwidth 25GB/s\n"
        "          quoin plan 65536x65536 --ranks 64 --grid 8x8 --block 128 --threads 1\n\n"
        "--json prints the plan's fields on one line; workspace and traffic are in bytes.");
    command.callback([arguments, q] {
        Options& options = arguments->common.options;
        if (options.q.full_t) {
            if (!q->empty() && (arguments->q == QForm::None || arguments->q == QForm::Explicit))
                throw InvalidArgument("--compact-wy full keeps Q as reflectors, and --q asks for another form");
        } else {
            options.q = arguments->q;
        }
        const Shape shape = shape_of(arguments->shape);
        if (arguments->ranks > 0) {
            if (arguments->ranks > std::numeric_limits<int>::max()) refuse_argument("--ranks", "it must be below 2^31");
            if (arguments->common.device == Device::Cuda) refuse_argument("--ranks", "it is for --device host");
            const auto [grid_rows, grid_cols] = arguments->grid;
            if (grid_rows > 0 && (arguments->ranks % grid_rows != 0 || grid_cols != arguments->ranks / grid_rows)) {
                refuse_argument("--grid", fmt::format("{} x {} processes are not {} ranks", grid_rows, grid_cols,
                                                      arguments->ranks));
            }
            return with_dtype(arguments->dtype, [&]<class T>(T) { print_rank_plans<T>(*arguments, shape); });
        }
        if (arguments->gpu_memory > 0) {
            if (arguments->common.device == Device::Host)
                throw CLI::ValidationError("--gpu-memory", "belongs to --device cuda");
            return with_dtype(arguments->dtype, [&]<class T>(T) { plan_beyond_gpu<T>(*arguments, shape); });
        }
        with_dtype(arguments->dtype, [&]<class T>(T) {
            on_device(
                arguments->common,
                fmt::format("a {} x {} {} matrix", shape.rows, shape.cols, to_string(arguments->dtype)),
                [&](const auto& ctx) {
                    const Plan plan = plan_qr<T>(ctx, shape.rows, shape.cols, arguments->common.options);
                    return sizeof(T) * static_cast<double>(shape.rows) * static_cast<double>(shape.cols) +
                           plan.workspace_bytes;
                },
                [&](const auto& ctx, const DeviceInUse& device) { run_plan<T>(ctx, device, *arguments, shape); });
        });
    });
}

}  // namespace quoin::cli
