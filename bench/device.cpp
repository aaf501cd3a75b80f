#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "bench.hpp"
#include "blas2_qr.hpp"
#include "cusolver_qr.hpp"
#include "device.hpp"
#include "device_run.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "output.hpp"
#include "output_files.hpp"
#include "paper_tables.hpp"
#include "quoin/io.hpp"
#include "random.hpp"
#include "random_matrix.hpp"
#include "reference_lapack.hpp"
#include "stopwatch.hpp"
#include "tracing.hpp"

namespace quoin::cli {

namespace {

/// The cases that Quoin's requirements name.
std::vector<Case> required_of_device() {
    using enum Operation;
    struct Requirement {
        Shape shape;
        Operation operation;
        double f32, f64;
        Method method = Method::Auto;
    };
    const Requirement requirements[] = {
        {{1000, 192}, ThinQr, 4, 4},       {{10000, 192}, ThinQr, 4, 4},
        {{100000, 192}, ThinQr, 8, 5},     {{500000, 192}, ThinQr, 8, 5},
        {{1000000, 192}, ThinQr, 10, 6},   {{1000000, 192}, ThinQr, 5, 3, Method::CAQR},  // the unconditional route
        {{1000000, 192}, Geqrf, 5, 3},     {{110592, 100}, ThinQr, 12, 8},
        {{4000000, 32}, ThinQr, 15, 10},   {{4000000, 8}, ThinQr, 80, 50},
        {{8192, 64}, Geqrf, 4, 4},         {{8192, 128}, Geqrf, 4, 4},
        {{8192, 256}, Geqrf, 4, 4},        {{8192, 512}, Geqrf, 4, 4},
        {{8192, 1024}, Geqrf, 4, 4},       {{8192, 2048}, Geqrf, 3, 3},
        {{8192, 4096}, Geqrf, 3, 3},       {{8192, 8192}, Geqrf, 2.5, 2.2},
        {{10000, 10000}, Geqrf, 2.5, 2.2}, {{16384, 16384}, Geqrf, 1.8, 1.8},
        {{32768, 32768}, Geqrf, 1.3, 1.4},
    };
    std::vector<Case> cases;
    for (const Requirement& r : requirements)
        for (const DType dtype : {DType::F32, DType::F64})
            cases.push_back({r.shape, dtype, r.operation, dtype == DType::F32 ? r.f32 : r.f64, false, r.method});
    return cases;
}

struct TimedReference {
    Reference reference;
    double seconds = 0;
    double joules = -1;
};

/// Runs cases one after the other, each on a matrix of its own.
class DeviceBench {
public:
    DeviceBench(const BenchArguments& arguments, const PaperTable* paper)
        : arguments_(arguments),
          paper_(paper),
          with_requirements_(arguments.shapes.empty() && !paper),
          host_(make_context(arguments.common)),
          guard_(host_),
          ctx_(device_context()),
          tracing_(ctx_, arguments.common.trace),
          output_(arguments, with_requirements_, !paper) {
        // in the order of measurement
        for (const Reference reference : {Reference::Cusolver, Reference::Blas2, Reference::Lapack}) {
            if (arguments.wants(reference, paper || reference == Reference::Cusolver)) references_.push_back(reference);
        }
        energy_.emplace(arguments, uses(Reference::Lapack), true);
    }

    void run() {
        describe();
        measure_all();
        tracing_.write();
    }

private:
    void measure_all() {
        if (paper_) return run_paper(*paper_);
        for (const Case& c : with_requirements_ ? required_of_device() : requested_cases(arguments_)) {
            const auto& dtypes = arguments_.dtypes;
            if (!dtypes.empty() && std::find(dtypes.begin(), dtypes.end(), c.dtype) == dtypes.end()) continue;
            with_dtype(c.dtype, [&]<class T>(T) { run_case<T>(c); });
        }
    }

    void describe() {
        limits_.gemm_f32 = bench::measure_gemm<float>(ctx_);
        limits_.gemm_f64 = bench::measure_gemm<double>(ctx_);
        limits_.arithmetic_f64 = limits_.gemm_f64;
        limits_.arithmetic_f32 = std::max(limits_.gemm_f32, limits_.gemm_f64);  // floats multiply exactly as doubles
        limits_.copy = bench::measure_copy(ctx_);
        std::string text = fmt::format(
            "{}: SGEMM {:.1f} TFLOP/s, DGEMM {:.1f} TFLOP/s, copy {:.2f} TB/s read and written",
            bench::describe_device(), 1e-12 * limits_.gemm_f32, 1e-12 * limits_.gemm_f64, 1e-12 * limits_.copy);
        if (uses(Reference::Lapack))
            text +=
                fmt::format("; host: {}, {} threads, {}", describe_machine().cpu, host_.threads(), build_info().blas);
        output_.describe(text);
        if (const std::string warning = build_info().blas_warning; uses(Reference::Lapack) && !warning.empty())
            fmt::print(stderr, "quoin: {}\n", warning);
    }

    bool uses(Reference reference) const {
        return std::find(references_.begin(), references_.end(), reference) != references_.end();
    }

    template <class T>
    void run_case(const Case& c) {
        Options options = arguments_.common.options;
        if (c.method != Method::Auto) options.method = c.method;
        measure<T>(c.shape, {{c.operation, options}}, [&](const auto& results, const auto& references) {
            BenchRow row = bench_row(c.shape, c.dtype, c.operation, results.front(), limits_);
            row.required_ratio = c.required_ratio;
            for (const TimedReference& r : references)
                output_.add(against(row, to_string(r.reference), r.seconds, r.joules));
            if (references.empty()) output_.add(row);
        });
    }

    using Variant = std::pair<Operation, Options>;

    /// Medians for every variant of Quoin and every reference on one random matrix, run in turn after two warm-up runs,
    /// the host's LAPACK after them all. `report(measurements of the variants, references)`. What the memory of the
    /// device cannot hold is skipped with a line on stderr.
    template <class T, class Report>
    void measure(Shape shape, const std::vector<Variant>& variants, Report&& report) {
        throw_if_interrupted();
        try {
            const auto [m, n] = shape;
            const bool thin_q = variants.front().first == Operation::ThinQr;
            // every run makes its matrix anew and leaves nothing: the device holds what one run needs
            Matrix<T, Cuda> of_blas2;
            std::optional<bench::Blas2QR<T>> blas2;
            std::vector<TimedReference> references;
            std::vector<std::function<double()>> runs;
            if (uses(Reference::Cusolver)) {
                references.push_back({Reference::Cusolver});
                runs.push_back([&, m = m, n = n] {
                    bench::CusolverQR<T> cusolver(ctx_, m, n);
                    Matrix<T, Cuda> work(ctx_, m, n);
                    bench::fill_normal(ctx_, work);
                    return bench::seconds_of(ctx_, [&] {
                        cusolver.geqrf(ctx_, work);
                        if (thin_q) cusolver.orgqr(ctx_, work);
                    });
                });
            }
            if (uses(Reference::Blas2)) {
                of_blas2 = Matrix<T, Cuda>(ctx_, m, n);
                blas2.emplace(ctx_, of_blas2.view());  // a graph, and so one place
                references.push_back({Reference::Blas2});
                runs.push_back([&] {
                    bench::fill_normal(ctx_, of_blas2);
                    return bench::seconds_of(ctx_, [&] { blas2->geqrf(ctx_); });
                });
            }
            std::vector<DeviceRun<T>> quoin;
            for (const auto& [operation, options] : variants)
                quoin.emplace_back(ctx_, m, n, bench::normal_columns<T>(ctx_), operation, options);
            for (DeviceRun<T>& run : quoin) runs.push_back([&run] { return run.seconds(); });

            const std::vector<double> medians = medians_of(runs, arguments_.repeat);
            for (std::size_t r = 0; r < references.size(); ++r) references[r].seconds = medians[r];
            std::vector<double> joules;
            for (std::size_t r = 0; r < runs.size(); ++r)
                joules.push_back(joules_of(energy_->gpu, runs[r], medians[r]));
            for (std::size_t r = 0; r < references.size(); ++r) references[r].joules = joules[r];
            std::vector<Measurement> results;
            blas2.reset();
            of_blas2 = {};
            for (std::size_t q = 0; q < quoin.size(); ++q) {
                results.push_back(quoin[q].measurement(medians[references.size() + q]));
                results.back().joules = joules[references.size() + q];
            }
            if (uses(Reference::Lapack)) references.push_back(lapack_on_host<T>(shape, thin_q));
            report(results, references);
        } catch (const OutOfMemory& error) {
            fmt::print(stderr, "quoin: skipped {}x{} {}: {}\n", shape.rows, shape.cols, to_string(dtype_of<T>),
                       error.what());
        }
    }

    /// LAPACK on the host: the median of as many runs as a second holds, at least one, after a warm-up.
    template <class T>
    TimedReference lapack_on_host(Shape shape, bool thin_q) {
        const auto [m, n] = shape;
        Matrix<T, Cuda> A(ctx_, m, n);
        bench::fill_normal(ctx_, A);
        const Matrix<T> on_host = copy_to_host<T>(ctx_, A.view());
        ReferenceLapack<T> lapack(m, n);
        Matrix<T> work(m, n);
        const auto run = [&] {
            throw_if_interrupted();
            copy_in_parallel(work.data(), on_host.data(),
                             sizeof(T) * static_cast<std::size_t>(work.rows() * work.cols()));
            const Stopwatch watch;
            lapack.geqrf(work.view());
            if (thin_q) lapack.orgqr(work.view());
            return watch.seconds();
        };
        const double warm_up = run();
        std::vector<double> seconds;
        const int repeat = std::clamp(static_cast<int>(1 / std::max(warm_up, 1e-3)), 1, 9);
        for (int i = 0; i < repeat; ++i) seconds.push_back(run());
        const double of_a_run = median(std::move(seconds));
        return {Reference::Lapack, of_a_run, joules_of(energy_->host, run, of_a_run)};
    }

    // ---- a paper's table: Quoin's LAPACK format and its CAQR, as the papers have it, against every reference --------

    void run_paper(const PaperTable& paper) {
        for (const DType dtype : arguments_.dtypes_or({DType::F32}))
            with_dtype(dtype, [&]<class T>(T) { run_paper<T>(paper, dtype); });
    }

    template <class T>
    void run_paper(const PaperTable& paper, DType dtype) {
        print_paper_header(paper, dtype);
        Options caqr = arguments_.common.options;
        caqr.method = Method::CAQR;
        const std::vector<Variant> variants = {{Operation::Geqrf, arguments_.common.options},
                                               {Operation::Factor, caqr}};
        std::vector<std::vector<std::pair<Index, double>>> cusolver_ratios(variants.size());
        for (std::size_t s = 0; s < paper.shapes.size(); ++s) {
            const Shape shape = paper.shapes[s];
            measure<T>(shape, variants, [&](const auto& results, const auto& references) {
                std::vector<double> cells;
                for (std::size_t v = 0; v < variants.size(); ++v) {
                    const BenchRow row = bench_row(shape, dtype, variants[v].first, results[v], limits_);
                    if (!paper.speedups) cells.push_back(row.gflops);
                    for (const TimedReference& r : references) {
                        const BenchRow compared = against(row, to_string(r.reference), r.seconds, r.joules);
                        output_.add(compared);
                        if (paper.speedups) cells.push_back(compared.ratio);
                        if (r.reference == Reference::Cusolver)
                            cusolver_ratios[v].emplace_back(shape.cols, compared.ratio);
                    }
                    for (const PublishedRates& published : paper.rates)
                        output_.add(against(row, published.code, row.gflops * row.seconds / published.gflops[s]));
                    if (references.empty() && paper.rates.empty()) output_.add(row);
                }
                if (!paper.speedups) {
                    for (const TimedReference& r : references)
                        cells.push_back(1e-9 * operation_flops(Operation::Geqrf, shape.rows, shape.cols) / r.seconds);
                    for (const PublishedRates& published : paper.rates) cells.push_back(published.gflops[s]);
                }
                print_paper_row(paper, shape, cells);
            });
        }
        if (arguments_.common.json) return;
        if (paper.rates.empty()) {
            print_crossover("Quoin (V, tau, R)", cusolver_ratios[0]);
            print_crossover("Quoin CAQR", cusolver_ratios[1]);
        }
    }

    void print_paper_header(const PaperTable& paper, DType dtype) const {
        if (arguments_.common.json) return;
        fmt::print("\n{}\nHere: {}. Published in 2011: {}.\n\n{:>12}", paper.title, to_string(dtype), paper.published,
                   "matrix");
        const char* const codes[] = {"Quoin", "CAQR"};
        if (paper.speedups) {
            for (const char* code : codes)
                for (const Reference r : references_) fmt::print("  {:>14}", fmt::format("{}/{}", code, to_string(r)));
        } else {
            for (const char* code : codes) fmt::print("  {:>9}", code);
            for (const Reference r : references_) fmt::print("  {:>9}", to_string(r));
            for (const PublishedRates& published : paper.rates) fmt::print("  {:>9}", published.heading);
        }
        fmt::print("\n");
    }

    void print_paper_row(const PaperTable& paper, Shape shape, const std::vector<double>& cells) const {
        if (arguments_.common.json) return;
        fmt::print("{:>12}", fmt::format("{}x{}", shape.rows, shape.cols));
        for (const double cell : cells) {
            if (paper.speedups)
                fmt::print("  {:>14.2f}", cell);
            else
                fmt::print("  {:>9.4g}", cell);
        }
        fmt::print("\n");
        flush_output();
    }

    /// Prints from which width on `code` is slower than cuSOLVER, if it ever is.
    static void print_crossover(const char* code, const std::vector<std::pair<Index, double>>& ratios) {
        if (ratios.empty()) return;
        const auto behind = std::find_if(ratios.begin(), ratios.end(), [](const auto& r) { return r.second < 1; });
        if (behind == ratios.end())
            fmt::print("{} is ahead of cuSOLVER at every width: no crossover\n", code);
        else
            fmt::print("{} falls behind cuSOLVER at {} columns\n", code, behind->first);
    }

    const BenchArguments& arguments_;
    const PaperTable* paper_;
    bool with_requirements_;
    std::vector<Reference> references_;
    Context<Host> host_;
    InterruptGuard guard_;
    Context<Cuda> ctx_;
    Tracing<Cuda> tracing_;
    MachineLimits limits_;
    BenchOutput output_;
    std::optional<EnergyMeters> energy_;
};

}  // namespace

Context<Cuda> device_context() {
    try {
        return Context<Cuda>();
    } catch (const DeviceFailure& failure) {
        throw DeviceFailure(fmt::format("--device cuda: no usable GPU: {}", failure.what()));
    }
}

void bench_on_device(const BenchArguments& arguments) { DeviceBench(arguments, nullptr).run(); }

void bench_paper_table(const BenchArguments& arguments, const PaperTable& paper) {
    DeviceBench(arguments, &paper).run();
}

}  // namespace quoin::cli
