// Tables 1 to 4 and Figures 7 to 15 of Zhang and Wu (2021) on this GPU: QR of matrices in the host's memory under a cap
// on the device's, by recursion and by blocks, and by Householder for comparison; and what each optimization of their
// section 4 gains.

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/out_of_core/schedule.hpp"
#include "byte_size.hpp"
#include "interrupt.hpp"
#include "measure/cuda/device.hpp"
#include "measure/cuda/page_locked.hpp"
#include "papers/large_matrix.hpp"
#include "quoin/io.hpp"
#include "quoin/study.hpp"
#include "results.hpp"
#include "stopwatch.hpp"
#include "studies.hpp"
#include "tracing.hpp"

namespace quoin::cli {

namespace {

/// A schedule, and its name in the results; "" for Quoin's.
struct NamedSchedule {
    const char* name = "";
    OutOfCoreSchedule schedule{};
};

template <class T>
class OutOfCoreBench {
public:
    OutOfCoreBench(const BenchArguments& arguments, const std::vector<NamedSchedule>& schedules, Context<Cuda>& ctx)
        : arguments_(arguments), schedules_(schedules), ctx_(ctx), results_(arguments) {
        results_.describe(fmt::format("{}; memory_bytes {}", bench::describe_device(), arguments.gpu_memory));
        results_.say("{}\n", bench::describe_device());
    }

    void run(Shape shape) {
        const auto [m, n] = shape;
        Matrix<T> A(m, n);
        Stopwatch watch;
        bench::fill_noise<T>(seed, A.view());
        const double made = watch.seconds();
        watch = {};
        const bench::PageLocked locked(A.data(), static_cast<std::size_t>(m) * static_cast<std::size_t>(n) * sizeof(T));
        results_.say("\n{} x {} {}: {} in the host's memory, made in {:.3g} s, {} in {:.3g} s; {} of the GPU's\n", m, n,
                     to_string(scalar_kind<T>), format_byte_size(double(m) * double(n) * sizeof(T)), made,
                     locked.locked() ? "pinned" : "refused to be pinned", watch.seconds(),
                     format_byte_size(double(arguments_.gpu_memory)));
        bool first = true;
        for (const OutOfCoreOptions& route : arguments_.routes) {
            load_kernels(route);
            for (const NamedSchedule& schedule : schedules_) {
                throw_if_interrupted();
                if (!first) bench::fill_noise<T>(seed, A.view());
                first = false;
                measure(shape, A.view(), route, schedule, locked.locked());
            }
        }
    }

private:
    static constexpr std::uint64_t seed = 1;

    /// A small matrix by the same route, on a context of its own, in pieces too: CUDA loads kernels at their first use.
    static void load_kernels(OutOfCoreOptions options) {
        const Index m = 16384, n = 8192;
        Matrix<T> A(m, n), R(n, n);
        bench::fill_noise<T>(seed, A.view());
        for (const double part : {0.5, 1.5}) {
            options.memory_bytes = double(Index(1) << 29) + part * double(m) * double(n) * sizeof(T);
            Context<Cuda> ctx;
            qr_out_of_core<T, Cuda>(ctx, A.view(), R.view(), options);
            bench::fill_noise<T>(seed, A.view());
        }
    }

    void measure(Shape shape, MatrixView<T> A, OutOfCoreOptions options, const NamedSchedule& schedule, bool pinned) {
        options.memory_bytes = static_cast<double>(arguments_.gpu_memory);
        options.block = arguments_.block;
        options.check_finite = false;
        const bench::UpperZeros<T> R(shape.cols);
        const std::string name = name_of(options, schedule);
        std::string trace_path = arguments_.common.trace;
        if (!trace_path.empty() && arguments_.routes.size() * schedules_.size() > 1)
            trace_path += fmt::format(".{}.json", name);
        OutOfCoreReport report;
        OutOfCoreTimes times;
        {
            Trace trace;
            {
                const Attached<Cuda> attached(ctx_, trace);
                report = qr_out_of_core<T, Cuda>(ctx_, A, R.view(), options, schedule.schedule);
            }
            times = out_of_core_times(trace);
            if (!trace_path.empty()) trace.write(trace_path);
        }
        const bench::Probed probed = bench::probe<T>(seed, A, R.view());
        const OutOfCorePlan& plan = report.plan;
        study::PaperBytes by_paper;
        if (plan.method != OutOfCoreMethod::Householder)
            by_paper = study::paper_bytes(plan, options.block > 0 ? std::min(options.block, shape.cols) : plan.block);
        const double tflops = 1e-12 * plan.flops / report.seconds;
        JsonLine line = case_line(shape, scalar_kind<T>);
        line.add("method", to_string(plan.method)).add("arithmetic", to_string(plan.arithmetic));
        line.add("reorthogonalized", plan.reorthogonalize).add_known("schedule", schedule.name);
        line.add("memory_cap", arguments_.gpu_memory);
        line.add("asked_block", arguments_.block).add("block", plan.block).add("seconds", report.seconds);
        line.add("predicted_seconds", plan.seconds).add("tflops", tflops);
        line.add("bytes_in", Index(report.bytes_in)).add("bytes_out", Index(report.bytes_out));
        line.add("paper_bytes_in", Index(by_paper.in)).add("paper_bytes_out", Index(by_paper.out));
        line.add("seconds_in", times.in).add("seconds_out", times.out);
        line.add("seconds_products", times.products).add("seconds_panels", times.panels);
        line.add("hidden", times.hidden()).add("seconds_product_copies", times.product_copies);
        line.add("hidden_in_products", times.hidden_in_products());
        line.add("memory_bytes", Index(report.memory_bytes)).add("pinned", pinned);
        results_.add(line.add("orthogonality", probed.orthogonality).add("residual", probed.residual));
    }

    static std::string name_of(const OutOfCoreOptions& options, const NamedSchedule& schedule) {
        return fmt::format("{}-{}{}{}{}", to_string(options.method), to_string(options.arithmetic),
                           options.reorthogonalize ? "-twice" : "", *schedule.name ? "-" : "", schedule.name);
    }
    const BenchArguments& arguments_;
    const std::vector<NamedSchedule>& schedules_;
    Context<Cuda>& ctx_;
    Results results_;
};

/// Measures the matrices of the command line, or one of `order` rows and columns, by every route and schedule.
void measure_out_of_core(const BenchArguments& arguments, Index order, const std::vector<NamedSchedule>& schedules) {
    make_context(arguments.common);  // sets the threads of the program's own loops
    arguments.for_each_dtype({ScalarKind::F32}, [&]<class T>(T) {
        Context<Cuda> ctx = device_context();
        const InterruptGuard guard(ctx);
        OutOfCoreBench<T> bench(arguments, schedules, ctx);
        for (const Shape shape : arguments.shapes_or({{order, order}})) bench.run(shape);
    });
}

}  // namespace

void bench_out_of_core(const BenchArguments& arguments) { measure_out_of_core(arguments, 65536, {{}}); }
void bench_out_of_core_large(const BenchArguments& arguments) { measure_out_of_core(arguments, 131072, {{}}); }
void bench_out_of_core_overlap(const BenchArguments& arguments) {
    measure_out_of_core(arguments, 131072, {{}, {"synchronous", {.asynchronous = false}}});
}
void bench_out_of_core_growing(const BenchArguments& arguments) {
    measure_out_of_core(arguments, 131072, {{}, {"equal-steps", {.growing = false}}});
}
void bench_out_of_core_stages(const BenchArguments& arguments) {
    measure_out_of_core(arguments, 131072, {{}, {"separate-stages", {.joined_stages = false}}});
}

}  // namespace quoin::cli
