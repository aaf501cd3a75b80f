#include <fmt/format.h>

#include <memory>

#include "arguments.hpp"
#include "json_line.hpp"
#include "on_device.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

struct PlanArguments {
    CommonArguments common;
    std::vector<std::string> shape;
    DType dtype = DType::F64;
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

template <class T, class D>
void run_plan(const Context<D>& ctx, const DeviceInUse& device, const PlanArguments& arguments, Shape shape) {
    const Plan plan = plan_qr<T>(ctx, shape.rows, shape.cols, arguments.common.options);
    if (!arguments.common.json) {
        fmt::print("{}\n", to_string(plan));
        return;
    }
    JsonLine line;
    line.add("rows", plan.rows).add("cols", plan.cols).add("dtype", to_string(arguments.dtype));
    line.add("device", to_string(device.device));
    add_threads(line, ctx);
    line.add("method", to_string(plan.method));
    if (plan.fallback == Method::Auto)
        line.add_null("fallback");
    else
        line.add("fallback", to_string(plan.fallback));
    line.add("q", to_string(plan.q)).add("panel_width", plan.panel_width).add("inner_block", plan.inner_block);
    line.add("compact_wy", to_string(plan.compact_wy)).add("keep_s", plan.keep_s).add("full_t", to_string(plan.full_t));
    line.add("arithmetic", to_string(plan.arithmetic));
    line.add("reorthogonalization", to_string(plan.reorthogonalization));
    line.add("gram_schmidt_panel", to_string(plan.gram_schmidt_panel));
    line.add("panel", to_string(plan.panel));
    line.add("leaf_rows", plan.leaf_rows).add("domain_leaves", plan.domain_leaves).add("fan_in", plan.fan_in);
    line.add("reconstruct_rows", plan.reconstruct_rows).add("workspace_bytes", plan.workspace_bytes);
    line.add("flops", plan.flops).add("bytes_moved", plan.bytes_moved);
    line.print();
}

}  // namespace

void add_plan(CLI::App& program) {
    auto arguments = std::make_shared<PlanArguments>();
    arguments->common.options.q = QForm::Explicit;
    CLI::App& command = *program.add_subcommand(
        "plan",
        "Print how an m x n matrix would be factored: method, tree, block sizes and cost.\n\n"
        "A plan is fixed by shape, type and options; no data is touched. Results of one plan are the same bits for\n"
        "any number of threads.");
    command.add_option("shape", arguments->shape, "Rows and columns, as 1000000x192 or as two numbers")
        ->required()
        ->expected(1, 2)
        ->type_name("SHAPE | M N");
    command
        .add_option_function<std::string>(
            "--dtype", [arguments](const std::string& text) { arguments->dtype = parse_dtype("--dtype", text); },
            "f32 or f64 (default: f64)")
        ->type_name("TYPE");
    const CLI::Option* const q =
        command
            .add_option_function<std::string>(
                "--q",
                [arguments](const std::string& text) { arguments->common.options.q = parse_q_form("--q", text); },
                "What Q is wanted for: explicit (the thin Q itself), none (R alone), reflectors (LAPACK's format)\n"
                "or any (default: explicit; with --compact-wy full reflectors)")
            ->type_name("FORM");
    add_device_argument(command, arguments->common.device);
    add_common_arguments(command, arguments->common);
    add_compact_wy_arguments(command, arguments->common.options);
    command.footer(
        "Example:  quoin plan 1000000x192 --dtype f32\n\n"
        "--json prints the plan's fields on one line; workspace and traffic are in bytes.");
    command.callback([arguments, q] {
        if (q->empty() && arguments->common.options.compact_wy == CompactWY::Full)
            arguments->common.options.q = QForm::Reflectors;
        const Shape shape = shape_of(arguments->shape);
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
