#include "arguments.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <CLI/CLI.hpp>

#include <charconv>

#include "number_between.hpp"

namespace quoin::cli {

namespace {

Method parse_method(const std::string& argument, const std::string& text) {
    return parse_name(argument, text, every_method(), [](Method method) { return to_string(method); });
}

}  // namespace

const char* to_string(Device device) {
    switch (device) {
        case Device::Host: return "host";
        case Device::Cuda: return "cuda";
        case Device::Auto: return "auto";
    }
    return "";
}

void add_device_argument(CLI::App& command, Device& device) {
    command
        .add_option_function<std::string>(
            "--device",
            [&device](const std::string& text) {
                device = parse_name("--device", text, {Device::Host, Device::Cuda, Device::Auto},
                                    [](Device d) { return to_string(d); });
            },
            "host, cuda (an NVIDIA GPU; see `quoin info`) or auto (cuda where a GPU can be used and the work\n"
            "fits its free memory, otherwise host; default: host)")
        ->type_name("NAME");
}

void add_trace_argument(CLI::App& command, std::string& path) {
    command
        .add_option("--trace", path,
                    "Write a timeline of the computation and of the copies to and from a GPU, for chrome://tracing,\n"
                    "ui.perfetto.dev or bench/trace_plot.py")
        ->type_name("FILE");
}

void add_common_arguments(CLI::App& command, CommonArguments& arguments, bool algorithm) {
    command.add_option("--threads", arguments.threads, "Cores to use (default: OMP_NUM_THREADS, or all)")
        ->check(number_between(1, 4096))
        ->type_name("N");
    command.add_flag("--json", arguments.json, "Print one line of JSON instead of text");
    if (!algorithm) return;

    const std::string group = "Algorithm (by default Quoin chooses by shape; see `quoin plan`)";
    command
        .add_option_function<std::string>(
            "--method", [&](const std::string& text) { arguments.options.method = parse_method("--method", text); },
            "auto, householder, tsqr, caqr, cholesky-qr2, shifted-cholesky-qr3, or modified or classical "
            "Gram-Schmidt,\n"
            "mgs or cgs, whose Q is orthonormal to κ(A)u and κ(A)²u unless reorthogonalised (default: auto)")
        ->type_name("NAME")
        ->group(group);
    const auto add_size = [&](const char* name, Index& value, const char* description) {
        command
            .add_option_function<std::string>(
                name, [&value, name](const std::string& text) { value = parse_dimension(name, text); }, description)
            ->type_name("N")
            ->group(group);
    };
    command
        .add_option_function<std::string>(
            "--panel-device",
            [&](const std::string& text) {
                arguments.options.study.panels =
                    parse_name("--panel-device", text, {PanelDevice::Auto, PanelDevice::Device, PanelDevice::Host},
                               [](PanelDevice panel) { return to_string(panel); });
            },
            "Where panels of a matrix on a GPU are factored by --method householder: device, host (on its cores,\n"
            "while the GPU updates the rest) or auto (default: auto)")
        ->type_name("NAME")
        ->group("");  // a study: not in --help
    add_size("--panel-width", arguments.options.panel_width, "Columns a panel (0: Quoin chooses)");
    add_size("--leaf-rows", arguments.options.tree.leaf_rows, "Rows a leaf of a TSQR tree (0: Quoin chooses)");
    command
        .add_option_function<std::string>(
            "--fan-in",
            [&](const std::string& text) {
                arguments.options.tree.fan_in = text == "flat" ? flat_tree : parse_dimension("--fan-in", text);
            },
            "R factors merged at a node of a TSQR tree: at least 2, or flat (leaf after leaf; 0: Quoin chooses)")
        ->type_name("N")
        ->group(group);
    command
        .add_option_function<std::string>(
            "--arithmetic",
            [&](const std::string& text) {
                arguments.options.arithmetic = parse_name("--arithmetic", text,
                                                          {Arithmetic::Auto, Arithmetic::Native, Arithmetic::TF32,
                                                           Arithmetic::FP16, Arithmetic::BF16, Arithmetic::Corrected},
                                                          [](Arithmetic arithmetic) { return to_string(arithmetic); });
            },
            "Of the large products in f32 on a GPU: native, corrected (three products of f16 for one of f32, as\n"
            "accurate) or auto; of cgs alone also fp16, which rounds what it multiplies (default: auto)")
        ->type_name("NAME")
        ->group(group);
    command
        .add_option_function<std::string>(
            "--reorthogonalize",
            [&](const std::string& text) {
                arguments.options.gram_schmidt.reorthogonalization =
                    parse_name("--reorthogonalize", text,
                               {Reorthogonalization::Off, Reorthogonalization::Selective, Reorthogonalization::Always},
                               [](Reorthogonalization r) { return to_string(r); });
            },
            "Which panels of mgs and cgs are orthogonalised twice: off, selective (those that cancellation has\n"
            "shortened) or always; Q is then orthonormal to u, for every matrix (default: off)")
        ->type_name("NAME")
        ->group(group);
    command
        .add_option_function<std::string>(
            "--panel-method",
            [&](const std::string& text) {
                arguments.options.gram_schmidt.panel =
                    parse_name("--panel-method", text,
                               {GramSchmidtPanel::Auto, GramSchmidtPanel::MGS, GramSchmidtPanel::CholeskyQR2},
                               [](GramSchmidtPanel panel) { return to_string(panel); });
            },
            "How cgs factors a panel: mgs, cholesky-qr2 or auto (default: auto)")
        ->type_name("NAME")
        ->group(group);
}

void add_compact_wy_arguments(CLI::App& command, Options& options) {
    const std::string group = "Q = I − V T Vᵀ with one T";
    const auto full_t = [&options](const char* name) -> FullTOptions& {
        if (!options.full_t) throw InvalidArgument(std::string(name) + " belongs to compact_wy full");
        return *options.full_t;
    };
    command
        .add_option_function<std::string>(
            "--compact-wy",
            [&options](const std::string& text) {
                if (parse_name("--compact-wy", text, {false, true}, [](bool full) { return full ? "full" : "panels"; }))
                    options.full_t.emplace();
            },
            "panels (one T a panel) or full (one T for all columns, LAPACK's geqrt3; default: panels)")
        ->type_name("NAME")
        ->group(group);
    command
        .add_flag_callback(
            "--keep-s", [full_t] { full_t("keep_s").keep_s = true; },
            "With --compact-wy full: keep S = V Tᵀ, Q = I − V Sᵀ")
        ->group(group);
    command
        .add_option_function<std::string>(
            "--full-t",
            [full_t](const std::string& text) {
                full_t("full_t").route =
                    parse_name("--full-t", text, {FullTRoute::Auto, FullTRoute::Recurrence, FullTRoute::Joined},
                               [](FullTRoute route) { return to_string(route); });
            },
            "With --compact-wy full: recurrence (during the factorization, from S), joined (afterwards, from the\n"
            "panels' T) or auto (default: auto)")
        ->type_name("NAME")
        ->group(group);
}

void refuse_argument(const std::string& argument, const std::string& why) { throw CLI::ValidationError(argument, why); }

std::vector<std::string> split_list(const std::string& text) { return CLI::detail::split(text, ','); }

Context<Host> make_context(const CommonArguments& arguments) {
    Context<Host> ctx(arguments.threads);
    omp_set_num_threads(ctx.threads());
    return ctx;
}

Index parse_dimension(const std::string& argument, const std::string& text) {
    Index value = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error == std::errc::result_out_of_range)
        throw CLI::ValidationError(argument, fmt::format("'{}' does not fit 64 bits", text));
    if (error != std::errc() || end != last)
        throw CLI::ValidationError(argument, fmt::format("'{}' is not a whole number", text));
    if (value < 0) throw CLI::ValidationError(argument, fmt::format("'{}' is negative", text));
    return value;
}

void check_shape(const std::string& argument, Shape shape) {
    try {
        detail::checked_bytes(shape.rows, shape.cols, sizeof(double));
    } catch (const InvalidArgument& refusal) {
        refuse_argument(argument, refusal.what());
    }
}

Shape parse_shape(const std::string& argument, const std::string& text) {
    const std::size_t cross = text.find('x');
    if (cross == std::string::npos)
        throw CLI::ValidationError(argument,
                                   fmt::format("'{}' is not a shape: write ROWSxCOLS, for example 1000000x192", text));
    const Shape shape{parse_dimension(argument, text.substr(0, cross)),
                      parse_dimension(argument, text.substr(cross + 1))};
    check_shape(argument, shape);
    return shape;
}

DType parse_dtype(const std::string& argument, const std::string& text) {
    return parse_name(argument, text, {DType::F32, DType::F64}, [](DType dtype) { return to_string(dtype); });
}

QForm parse_q_form(const std::string& argument, const std::string& text) {
    return parse_name(argument, text, {QForm::Any, QForm::None, QForm::Explicit, QForm::Reflectors},
                      [](QForm q) { return to_string(q); });
}

}  // namespace quoin::cli
