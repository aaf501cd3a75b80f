#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

#include "arguments.hpp"
#include "byte_size.hpp"
#include "json_line.hpp"
#include "measure/machine_limits.hpp"
#include "on_device.hpp"
#include "quoin/study.hpp"
#include "quoin/tuning.hpp"
#include "random_matrix.hpp"
#include "rank_rate.hpp"
#include "routes.hpp"
#include "stopwatch.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

struct PlanArguments {
    CommonArguments common;
    std::vector<std::string> shape;
    ScalarKind dtype = ScalarKind::F64;
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

template <class D>
constexpr Device device_of = std::is_same_v<D, Host> ? Device::Host : Device::Cuda;

/// Returns JSON of a plan. With `device` also the device, and its threads on the host.
JsonLine line_of(const std::vector<PlanField>& fields, std::optional<Device> device = {}, int threads = 0) {
    JsonLine line;
    for (const PlanField& field : fields) {
        line.add(field);
        if (!device || std::string_view(field.name) != "dtype") continue;
        line.add("device", to_string(*device));
        if (*device == Device::Host)
            line.add("threads", threads);
        else
            line.add_null("threads");
    }
    return line;
}

/// Prints the plan from file to file, for a matrix that does not fit the cap. By way of a GPU, only the time of the
/// disk is counted.
void print_file_plan(const PlanArguments& arguments, const FilePlan& plan, Device device, int threads = 0) {
    const ScalarKind dtype = arguments.dtype;
    const bool on_host = device == Device::Host;
    double arithmetic = 0, seconds = (plan.bytes_read + plan.bytes_written) / 1e9;
    if (on_host) {
        arithmetic = measure_machine_limits(dtype == ScalarKind::F32, dtype == ScalarKind::F64).arithmetic(dtype);
        seconds = std::max(seconds, plan.flops / (0.6 * arithmetic));
    }
    if (arguments.common.json)
        return line_of(plan_fields(plan), device, threads).add("seconds_at_1_gb_a_second", seconds).print();
    fmt::print("{} x {} {}, from file to file within {}: {}\nabout {:.3g} s at 1 GB/s of disk", plan.rows, plan.cols,
               to_string(dtype), format_given_size(static_cast<double>(arguments.memory)), to_string(plan), seconds);
    if (on_host) fmt::print(" and 60% of this machine's {:.0f} GFLOP/s", 1e-9 * arithmetic);
    fmt::print("\n");
}

/// Returns the options of the route, without its caps.
RouteOptions route_options(const PlanArguments& arguments) {
    FileOptions files;
    files.want_q = arguments.common.options.q != QForm::None;
    return {.options = arguments.common.options, .files = files};
}

template <class T, class D>
void run_plan(const Context<D>& ctx, const PlanArguments& arguments, Shape shape) {
    int threads = 0;
    RouteOptions options = route_options(arguments);
    if constexpr (std::is_same_v<D, Host>) {
        threads = ctx.threads();
        if (arguments.memory > 0) options.memory = static_cast<double>(arguments.memory);
    }
    const RoutePlan route =
        within_cap(plan_route<T>(ctx, shape.rows, shape.cols, options), "the plan", shape, scalar_kind<T>);
    if (const auto* files = std::get_if<FilesRoute>(&route.by))
        return print_file_plan(arguments, files->plan, Device::Host, threads);
    const std::string refusal = tuning_in_use<D>().refusal;
    std::vector<KernelUse> kernels;
    if (const auto* plan = std::get_if<Plan>(&route.by); plan && arguments.kernels) kernels = kernels_of<D>(*plan);
    if (!arguments.common.json) {
        fmt::print("{}\n", to_string(route));
        if (!refusal.empty()) fmt::print("methods by the built-in choice: {}\n", refusal);
        for (const auto& [step, kernel] : kernels) fmt::print("  {}: {}\n", step, kernel);
        return;
    }
    JsonLine line = line_of(plan_fields(route), device_of<D>, threads);
    line.add_known("tuning_refusal", refusal);
    if (arguments.kernels) {
        std::vector<JsonLine> lines;
        for (const auto& [step, kernel] : kernels) lines.push_back(JsonLine().add("step", step).add("kernel", kernel));
        line.add("kernels", lines);
    }
    line.print();
}

/// Prints the cost of every method out of core with the same memory of a GPU, and of blocking, which Zhang and Wu
/// compare the recursion with. Needs no GPU.
template <class T>
void plan_beyond_gpu([[maybe_unused]] const PlanArguments& arguments, [[maybe_unused]] Shape shape) {
#ifdef QUOIN_HAVE_CUDA
    const bool json = arguments.common.json;
    const double cap = static_cast<double>(arguments.gpu_memory);
    RouteOptions options = route_options(arguments);
    options.memory = cap;
    if (arguments.memory > 0) options.host_memory = static_cast<double>(arguments.memory);
    const bool beyond_host = bytes_beside_gpu(shape.rows, shape.cols, sizeof(T), false) > options.host_memory;
    const std::optional<RoutePlan> route = plan_stream<T, Cuda>(shape.rows, shape.cols, options);
    const auto* stream = route ? std::get_if<StreamPlan>(&route->by) : nullptr;
    const Options& given = arguments.common.options;
    if (stream) {
        if (json) {
            line_of(plan_fields(*stream)).print();
        } else {
            fmt::print("{} x {} {} through {} of the device: {}\n", shape.rows, shape.cols, to_string(arguments.dtype),
                       format_given_size(cap), to_string(*stream));
            fmt::print("moves {} to the device and {} from it\n{:.3g} GFLOP; {:.3g} s of copies at {:.0f} GB/s\n",
                       format_byte_size(stream->bytes_in), format_byte_size(stream->bytes_out), 1e-9 * stream->flops,
                       stream->seconds, 1e-9 * OutOfCoreRates().link);
        }
        if (beyond_host) return;
    } else if (beyond_host) {
        FileOptions files = *options.files;
        files.memory = options.host_memory;
        files.device_memory = cap;
        files.arithmetic = given.arithmetic;
        const FilePlan plan = plan_file_qr<T, Cuda>(shape.rows, shape.cols, files);
        files.memory = 0;
        const double least = plan_file_qr<T, Cuda>(shape.rows, shape.cols, files).memory_bytes;
        within_cap({FilesRoute{files, plan}, plan.memory_bytes, options.host_memory, least}, "the plan", shape,
                   scalar_kind<T>);
        return print_file_plan(arguments, plan, Device::Cuda);
    }
    bool first = !stream;
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, study::Blocking}) {
        const bool slabs = method == OutOfCoreMethod::Householder;
        const bool rounded = given.arithmetic != Arithmetic::Auto && given.arithmetic != Arithmetic::Native &&
                             given.arithmetic != Arithmetic::Corrected;
        // skip a method that cannot do this
        if (slabs ? rounded : shape.rows < shape.cols) continue;
        OutOfCoreOptions beyond;
        beyond.method = method;
        beyond.arithmetic = given.arithmetic;
        beyond.reorthogonalize = !slabs && given.method.reorthogonalization() != Reorthogonalization::Off;
        beyond.memory_bytes = cap;
        beyond.block = given.method.panel_width();
        OutOfCorePlan plan;
        try {
            plan = plan_out_of_core<T, Cuda>(shape.rows, shape.cols, beyond);
        } catch (const OutOfMemory& refusal) {
            if (!stream) throw;
            if (!json) fmt::print("\n{}: {}\n", to_string(method), refusal.what());
            continue;
        }
        JsonLine line = line_of(plan_fields(plan));
        if (!json) fmt::print("{}{}\n", first ? "" : "\n", to_string(plan));
        first = false;
        if (!slabs) {
            const study::PaperBytes paper = study::paper_bytes(plan, plan.block);
            line.add("paper_bytes_to_gpu", paper.in).add("paper_bytes_from_gpu", paper.out);
            if (!json)
                fmt::print("Zhang and Wu (2021) count {} to the device and {} from it\n", format_byte_size(paper.in),
                           format_byte_size(paper.out));
        }
        if (json) line.print();
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
    const Matrix<T> A = normal_matrix<T>(layout.rows, layout.cols);
    double rate = 0;
    run_ranks(1, [&](Communicator& comm) {
        const ProcessGrid grid(comm, 1, 1);
        const double flops = plan_block_cyclic<T>(ctx, layout, 1, 1, false, plan.panel_width).flops;
        rate =
            measure_flops(flops, [&] { qr(ctx, grid, BlockCyclicView<const T>(layout, A.view()), plan.panel_width); });
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
        "With --device cuda: cap on the GPU's memory, for a matrix in the host's memory. Prints the bytes and the\n"
        "time of blocks of rows (for a tall matrix), of householder, and of classical Gram-Schmidt by recursion and\n"
        "by blocks, the last two beside the counts of Zhang and Wu (2021), with --panel-width as their block. Needs\n"
        "no GPU");
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
                [&](const auto& ctx, const DeviceInUse&) { run_plan<T>(ctx, *arguments, shape); });
        });
    });
}

}  // namespace quoin::cli
