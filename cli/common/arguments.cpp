#include "arguments.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>

#include "add_value.hpp"
#include "describe.hpp"

namespace quoin::cli {

const char* to_string(Device device) {
    constexpr const char* names[] = {"host", "cuda", "auto"};
    return names[static_cast<int>(device)];
}

void add_device_argument(CLI::App& command, Device& device) {
    add_choice(
        command, "--device", device, {Device::Host, Device::Cuda, Device::Auto},
        "Where to compute: host, cuda (an NVIDIA GPU; see `quoin info`) or auto (cuda if a GPU can be used and the\n"
        "work fits its free memory, otherwise host; default: host)");
}

std::optional<Pivoting> PivotArguments::pivoting() const {
    constexpr Pivots kinds[] = {Pivots::Auto, Pivots::Greedy, Pivots::Randomized, Pivots::Strong};
    if (kind.empty()) return {};
    return Pivoting{.kind = parse_name<Pivots>("--pivot", kind, kinds),
                    .max_rank = rank,
                    .relative_tolerance = tolerance,
                    .relative_frobenius = frobenius};
}

void add_pivot_arguments(CLI::App& command, PivotArguments& arguments, bool is_in_help) {
    CLI::Option* const options[] = {
        command.add_flag(
            "--pivot{auto}", arguments.kind,
            "Column pivoting; --pivot=KIND: auto, greedy (LAPACK's geqp3), randomized (from a sketch, faster) or\n"
            "strong (bounds |R₁₁⁻¹R₁₂| by 2)"),
        add_number(command, "--rank", "N", arguments.rank, 1, std::numeric_limits<Index>::max(),
                   "With --pivot: the most columns of Q")
            ->needs("--pivot"),
        add_value(command, "--tol", "T", arguments.tolerance,
                  "With --pivot: as few columns of Q as leave no column of A P − QR above T times A's largest")
            ->needs("--pivot"),
        add_value(command, "--tol-frobenius", "T", arguments.frobenius,
                  "With --pivot: as few columns of Q as leave ‖A P − QR‖_F <= T ‖A‖_F")
            ->needs("--pivot")};
    for (CLI::Option* const option : options) {
        if (!is_in_help) option->group("");
    }
}

void add_trace_argument(CLI::App& command, std::string& path) {
    add_value(command, "--trace", "FILE", path,
              "Write a timeline of the computation and of the copies to and from a GPU, for chrome://tracing,\n"
              "ui.perfetto.dev or bench/plots/timeline.py");
}

void add_common_arguments(CLI::App& command, CommonArguments& arguments, bool algorithm) {
    add_number(command, "--threads", "N", arguments.threads, 1, 4096,
               "Cores to use (default: OMP_NUM_THREADS, or all within the CPU quota)");
    command.add_flag("--json", arguments.json, "Print one line of JSON instead of text");
    if (algorithm)
        add_algorithm_arguments(command, arguments.options,
                                "Algorithm (by default Quoin chooses by shape; see `quoin plan`)");
}

void add_algorithm_arguments(CLI::App& command, Options& options, const std::string& group) {
    MethodOptions& method = options.method;
    // --method is read first
    CLI::Option* const added[] = {
        add_choice(command, "--method", method, every_method(),
                   "Method: auto, householder, tsqr, caqr, cholesky-qr2, randomized-cholesky-qr, mgs or cgs (default:\n"
                   "auto). Q of mgs and cgs (modified and classical Gram-Schmidt) is orthonormal to κ(A)u and κ(A)²u\n"
                   "unless reorthogonalised"),
        add_parsed(
            command, "--panel-width", "N",
            [&method](const std::string& text) { method.set_panel_width(parse_dimension("--panel-width", text)); },
            "Columns of a panel (0: Quoin chooses)"),
        add_parsed(
            command, "--leaf-rows", "N",
            [&method](const std::string& text) {
                method.set_tree({parse_dimension("--leaf-rows", text), method.tree().fan_in});
            },
            "Rows of a leaf of a TSQR tree (0: Quoin chooses)"),
        add_parsed(
            command, "--fan-in", "N",
            [&method](const std::string& text) {
                const Index fan_in = text == "flat" ? flat_tree : parse_dimension("--fan-in", text);
                method.set_tree({method.tree().leaf_rows, fan_in});
            },
            "R factors merged at a node of a TSQR tree: at least 2, or flat (leaf after leaf; 0: Quoin chooses)"),
        add_choice(command, "--arithmetic", options.arithmetic,
                   {Arithmetic::Auto, Arithmetic::Native, Arithmetic::FP16, Arithmetic::Corrected},
                   "How large products in f32 are computed on a GPU: native, corrected (three products of f16 for\n"
                   "each one, as accurate as f32) or auto; for cgs also fp16, which rounds the factors (default:\n"
                   "auto)"),
        add_parsed(
            command, "--reorthogonalize", "NAME",
            [&method](const std::string& text) {
                using enum Reorthogonalization;
                method.set_reorthogonalization(parse_name("--reorthogonalize", text, {Off, Selective, Always}));
            },
            "Which panels of mgs and cgs are orthogonalised twice: off, selective (those that cancellation has\n"
            "shortened) or always; Q is then orthonormal to u, for every matrix (default: off)"),
        add_parsed(
            command, "--panel-method", "NAME",
            [&method](const std::string& text) {
                using enum GramSchmidtPanel;
                method.set_panel(parse_name("--panel-method", text, {Auto, MGS, CholeskyQR2}));
            },
            "How cgs factors a panel: mgs, cholesky-qr2 or auto (default: auto)")};
    for (CLI::Option* const option : added) option->group(group);
}

void add_compact_wy_arguments(CLI::App& command, Options& options, const std::string& group) {
    const auto full_t = [&options](const char* name) -> FullT& {
        if (!options.q.full_t) throw InvalidArgument(std::string(name) + " belongs to --compact-wy full");
        return *options.q.full_t;
    };
    CLI::Option* const added[] = {
        add_parsed(
            command, "--compact-wy", "NAME",
            [&options](const std::string& text) {
                const bool full = text == "full";
                if (!full && text != "panels") refuse_name("--compact-wy", text, {"panels", "full"});
                if (full) options.q = FullT{};
            },
            "Triangular factors: panels (one T each) or full (one T for all columns, LAPACK's geqrt3; default: "
            "panels)"),
        command.add_flag_callback(
            "--keep-s", [full_t] { full_t("--keep-s").keep_s = true; },
            "With --compact-wy full: keep S = V Tᵀ, Q = I − V Sᵀ"),
        add_parsed(
            command, "--full-t", "NAME",
            [full_t](const std::string& text) {
                constexpr FullTRoute routes[] = {FullTRoute::Auto, FullTRoute::Recurrence, FullTRoute::Joined};
                full_t("--full-t").route = parse_name<FullTRoute>("--full-t", text, routes);
            },
            "With --compact-wy full: how T is computed, by recurrence (during the factorization), joined (afterwards,\n"
            "from the panels' T) or auto (default: auto)")};
    for (CLI::Option* const option : added) option->group(group);
}

CLI::Option* add_parsed(CLI::App& command, const std::string& name, const std::string& kind,
                        std::function<void(const std::string&)> set, const std::string& description) {
    return command.add_option_function<std::string>(name, std::move(set), description)->type_name(kind);
}

CLI::Option* add_size(CLI::App& command, const std::string& name, Index& value, const std::string& description) {
    const auto set = [&value, name](const std::string& text) { value = parse_dimension(name, text); };
    return add_parsed(command, name, "N", set, description);
}

CLI::Option* add_dtype(CLI::App& command, ScalarKind& dtype, const std::string& description) {
    const auto set = [&dtype](const std::string& text) { dtype = parse_dtype("--dtype", text); };
    return add_parsed(command, "--dtype", "TYPE", set, description);
}

void refuse_argument(const std::string& argument, const std::string& why) { throw CLI::ValidationError(argument, why); }

void refuse_name(const std::string& argument, const std::string& text, std::vector<std::string> names) {
    throw NoSuchName(argument, text, std::move(names));
}

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
    if (error != std::errc() || end != last) {
        double number = 0;  // "1e6"
        const bool whole = std::from_chars(text.data(), last, number).ptr == last && number == std::trunc(number) &&
                           std::abs(number) < 0x1p53;
        throw CLI::ValidationError(argument, fmt::format("'{}' is not a whole number{}", text,
                                                         whole ? fmt::format(" in digits: write {:.0f}", number) : ""));
    }
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
    if (cross == std::string::npos || cross != text.rfind('x') || cross == 0 || cross + 1 == text.size())
        throw CLI::ValidationError(argument,
                                   fmt::format("'{}' is not a shape: write ROWSxCOLS, for example 1000000x192", text));
    const Shape shape{parse_dimension(argument, text.substr(0, cross)),
                      parse_dimension(argument, text.substr(cross + 1))};
    check_shape(argument, shape);
    return shape;
}

ScalarKind parse_dtype(const std::string& argument, const std::string& text) {
    return parse_name(argument, text, {ScalarKind::F32, ScalarKind::F64});
}

}  // namespace quoin::cli
