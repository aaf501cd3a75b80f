// Table 3 and Table 4 of Zhang and Wu (2021) on this GPU: QR of matrices in the host's memory under a cap on the device's, by
// recursion and by blocks, and by Householder beside them.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "bench.hpp"
#include "byte_size.hpp"
#include "csv_file.hpp"
#include "device.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "large_matrix.hpp"
#include "page_locked.hpp"
#include "stopwatch.hpp"
#include "tracing.hpp"

namespace quoin::cli {

namespace {

/// On a V100 PCIe, GEMMs by FP16, blocks of 8192: Table 4, the sum of GEMMs and panels; of 131072², blocks of 16384, what the
/// copies took: Table 3.
struct Published {
    Shape shape;
    OutOfCoreMethod method;
    double seconds, seconds_in, seconds_out;
};
constexpr Published published[] = {
    {{65536, 65536}, OutOfCoreMethod::Recursive, 13.2, -1, -1},
    {{65536, 65536}, OutOfCoreMethod::Blocking, 21.6, -1, -1},
    {{262144, 65536}, OutOfCoreMethod::Recursive, 47.5, -1, -1},
    {{262144, 65536}, OutOfCoreMethod::Blocking, 86.0, -1, -1},
    {{131072, 131072}, OutOfCoreMethod::Recursive, -1, 37.9, 19.3},
    {{131072, 131072}, OutOfCoreMethod::Blocking, -1, 47.2, 22.3},
};

const Published* published_for(Shape shape, OutOfCoreMethod method) {
    for (const Published& row : published) {
        if (row.shape.rows == shape.rows && row.shape.cols == shape.cols && row.method == method) return &row;
    }
    return nullptr;
}

std::string or_dash(double value, const char* unit = "") {
    return value < 0 ? "−" : fmt::format("{:.4g}{}", value, unit);
}

template <class T>
class OutOfCoreBench {
public:
    OutOfCoreBench(const BenchArguments& arguments, Context<Cuda>& ctx)
        : arguments_(arguments), ctx_(ctx), csv_(arguments.csv) {
        csv_.print(
            "# quoin {}; {}; memory_bytes "
            "{}\nrows,cols,dtype,method,arithmetic,reorthogonalized,block,seconds,predicted_seconds,"
            "tflops,bytes_in,bytes_out,paper_bytes_in,paper_bytes_out,hidden,memory_bytes,pinned,orthogonality,"
            "residual,"
            "paper_seconds,paper_seconds_in,paper_seconds_out\n",
            version(), bench::describe_device(), arguments.gpu_memory);
    }

    void run(Shape shape) {
        const auto [m, n] = shape;
        Matrix<T> A(m, n);
        Stopwatch watch;
        bench::fill_noise<T>(seed, A.view());
        const double made = watch.seconds();
        watch = {};
        const bench::PageLocked locked(A.data(), static_cast<std::size_t>(m) * static_cast<std::size_t>(n) * sizeof(T));
        print("\n{} x {} {}: {} in the host's memory, made in {:.3g} s, {} in {:.3g} s; {} of the GPU's\n", m, n,
              sizeof(T) == 4 ? "f32" : "f64", format_byte_size(double(m) * double(n) * sizeof(T)), made,
              locked.locked() ? "pinned" : "refused to be pinned", watch.seconds(),
              format_byte_size(double(arguments_.gpu_memory)));
        print("{:>28} {:>7} {:>8} {:>8} {:>8} {:>17} {:>17} {:>7} {:>9} {:>9} {:>9}\n", "", "block", "s", "planned s",
              "TFLOP/s", "GiB in (paper)", "GiB out (paper)", "hidden", "GiB used", "‖I−QᵀQ‖", "‖A−QR‖");
        bool first = true;
        for (const OutOfCoreOptions& route : arguments_.routes) {
            throw_if_interrupted();
            load_kernels(route);
            if (!first) bench::fill_noise<T>(seed, A.view());
            first = false;
            measure(shape, A.view(), route, locked.locked());
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

    void measure(Shape shape, MatrixView<T> A, OutOfCoreOptions options, bool pinned) {
        options.memory_bytes = static_cast<double>(arguments_.gpu_memory);
        options.block = arguments_.block;
        options.check_finite = false;
        const bench::UpperZeros<T> R(shape.cols);
        std::string trace_path = arguments_.common.trace;
        if (!trace_path.empty() && arguments_.routes.size() > 1) {
            trace_path += fmt::format(".{}.json", name_of(options));
        }
        OutOfCoreReport report;
        {
            Trace trace;
            ctx_.attach(&trace);
            try {
                report = qr_out_of_core<T, Cuda>(ctx_, A, R.view(), options);
            } catch (...) {
                ctx_.attach(nullptr);
                throw;
            }
            ctx_.attach(nullptr);
            if (!trace_path.empty()) trace.write(trace_path);
        }
        const bench::Probed probed = bench::probe<T>(seed, A, R.view());
        const Published* const paper = published_for(shape, options.method);
        const OutOfCorePlan& plan = report.plan;
        constexpr double GiB = 1 << 30;
        const double tflops = 1e-12 * plan.flops / report.seconds;
        const auto bytes = [&](double moved, double of_paper) {
            return fmt::format("{:.4g} ({})", moved / GiB, of_paper > 0 ? fmt::format("{:.4g}", of_paper / GiB) : "−");
        };
        print("{:>28} {:>7} {:>8.3f} {:>9.2f} {:>8.1f} {:>17} {:>17} {:>6.1f}% {:>9.2f} {:>9.2e} {:>9.2e}\n",
              name_of(options), plan.block, report.seconds, plan.seconds, tflops,
              bytes(report.bytes_in, plan.paper_bytes_in), bytes(report.bytes_out, plan.paper_bytes_out),
              100 * report.hidden, report.memory_bytes / GiB, probed.orthogonality, probed.residual);
        if (paper) {
            print("{:>28} on a V100: {} s, copies in {} s, out {} s\n", "the paper", or_dash(paper->seconds),
                  or_dash(paper->seconds_in), or_dash(paper->seconds_out));
        }
        csv_.print(
            "{},{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.0f},{:.0f},{:.0f},{:.0f},{:.4g},{:.0f},{},{:.4g},{:.4g},{},{}"
            ",{}\n",
            shape.rows, shape.cols, sizeof(T) == 4 ? "f32" : "f64", to_string(plan.method), to_string(plan.arithmetic),
            plan.reorthogonalize, plan.block, report.seconds, plan.seconds, tflops, report.bytes_in, report.bytes_out,
            plan.paper_bytes_in, plan.paper_bytes_out, report.hidden, report.memory_bytes, pinned, probed.orthogonality,
            probed.residual, paper ? paper->seconds : -1, paper ? paper->seconds_in : -1,
            paper ? paper->seconds_out : -1);
        if (!arguments_.common.json) return;
        JsonLine line;
        line.add("rows", shape.rows).add("cols", shape.cols).add("dtype", sizeof(T) == 4 ? "f32" : "f64");
        line.add("method", to_string(plan.method)).add("arithmetic", to_string(plan.arithmetic));
        line.add("reorthogonalized", plan.reorthogonalize).add("block", plan.block).add("seconds", report.seconds);
        line.add("predicted_seconds", plan.seconds).add("bytes_in", report.bytes_in).add("bytes_out", report.bytes_out);
        line.add("paper_bytes_in", plan.paper_bytes_in).add("paper_bytes_out", plan.paper_bytes_out);
        line.add_measured("hidden", report.hidden)
            .add_measured("memory_bytes", report.memory_bytes)
            .add("pinned", pinned);
        line.add("orthogonality", probed.orthogonality).add("residual", probed.residual);
        line.add_measured("paper_seconds", paper ? paper->seconds : -1);
        line.print();
    }

    static std::string name_of(const OutOfCoreOptions& options) {
        return fmt::format("{}-{}{}", to_string(options.method), to_string(options.arithmetic),
                           options.reorthogonalize ? "-twice" : "");
    }
    template <class... Arguments>
    void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
        if (arguments_.common.json) return;
        fmt::print(format, std::forward<Arguments>(arguments)...);
        std::fflush(stdout);
    }

    const BenchArguments& arguments_;
    Context<Cuda>& ctx_;
    CsvFile csv_;
};

}  // namespace

void bench_out_of_core(const BenchArguments& arguments) {
    make_context(arguments.common);  // its threads are those of the program's own loops
    const std::vector<DType> dtypes = arguments.dtypes.empty() ? std::vector{DType::F32} : arguments.dtypes;
    const std::vector<Shape> shapes = arguments.shapes.empty() ? std::vector{Shape{65536, 65536}} : arguments.shapes;
    try {
        for (const DType dtype : dtypes) {
            with_dtype(dtype, [&]<class T>(T) {
                Context<Cuda> ctx;
                const InterruptGuard guard(ctx);
                if (!arguments.common.json) fmt::print("{}\n", bench::describe_device());
                OutOfCoreBench<T> bench(arguments, ctx);
                for (const Shape shape : shapes) bench.run(shape);
            });
        }
    } catch (const DeviceFailure& failure) {
        throw DeviceFailure(fmt::format("--device cuda: {}", failure.what()));
    }
}

}  // namespace quoin::cli
