// The cases in a GPU's memory.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cases.hpp"
#include "interrupt.hpp"
#include "measure/cuda/device.hpp"
#include "measure/cuda/device_run.hpp"
#include "measure/cuda/random.hpp"
#include "random_matrix.hpp"
#include "rivals/blas2_qr.hpp"
#include "rivals/cusolver_qr.hpp"
#include "rivals/reference_lapack.hpp"
#include "stopwatch.hpp"
#include "tracing.hpp"

namespace quoin::cli {

namespace {

class DeviceCases : public Cases {
public:
    DeviceCases(const BenchArguments& arguments, const std::vector<Reference>& by_default)
        : Cases(arguments),
          host_(make_context(arguments.common)),
          guard_(host_),
          ctx_(device_context()),
          tracing_(ctx_, arguments.common.trace) {
        for (const Reference reference : {Reference::Cusolver, Reference::Blas2, Reference::Lapack}) {
            if (arguments.wants(reference,
                                std::find(by_default.begin(), by_default.end(), reference) != by_default.end()))
                references_.push_back(reference);
        }
        energy_.emplace(arguments, uses(Reference::Lapack), true);
        describe();
    }

private:
    bool uses(Reference reference) const {
        return std::find(references_.begin(), references_.end(), reference) != references_.end();
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
        if (uses(Reference::Lapack)) text += "; host: " + describe_host(host_);
        output_.describe(text);
        if (uses(Reference::Lapack)) warn_about_host();
    }

    /// All run by turns, the host's LAPACK after them.
    template <class T>
    void measure(Shape shape, const std::vector<Variant>& variants, const Report& report) {
        unless_too_large(shape, scalar_kind<T>, [&] {
            const auto [rows, cols] = shape;
            const Index m = rows, n = cols;
            const bool thin_q = variants.front().first == Operation::ThinQr;
            // every run makes its matrix anew and leaves nothing: the device holds what one run needs
            Matrix<T, Cuda> of_blas2;
            std::optional<bench::Blas2QR<T>> blas2;
            std::vector<TimedReference> references;
            std::vector<std::function<double()>> runs;
            if (uses(Reference::Cusolver)) {
                references.push_back({Reference::Cusolver});
                runs.push_back([&] {
                    bench::CusolverQR<T> cusolver(ctx_, m, n);
                    Matrix<T, Cuda> work(ctx_, m, n);
                    bench::fill_normal(ctx_, work);
                    return bench::seconds_of(ctx_, [&] {
                        cusolver.geqrf(ctx_, work.view());
                        if (thin_q) cusolver.orgqr(ctx_, work.view());
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
            std::vector<double> joules;
            for (std::size_t r = 0; r < runs.size(); ++r)
                joules.push_back(joules_of(energy_->gpu, runs[r], medians[r]));
            for (std::size_t r = 0; r < references.size(); ++r)
                references[r] = {references[r].reference, medians[r], joules[r]};
            blas2.reset();
            of_blas2 = {};
            std::vector<Measurement> results;
            for (std::size_t q = 0; q < quoin.size(); ++q) {
                results.push_back(quoin[q].measurement(medians[references.size() + q]));
                results.back().joules = joules[references.size() + q];
            }
            if (uses(Reference::Lapack)) references.push_back(lapack_on_host<T>(shape, thin_q));
            report(results, references);
        });
    }

    template <class T>
    TimedReference lapack_on_host(Shape shape, bool thin_q) {
        const auto [m, n] = shape;
        Matrix<T, Cuda> A(ctx_, m, n);
        bench::fill_normal(ctx_, A);
        const Matrix<T> on_host = copy_to_host<T>(ctx_, A.view());
        ReferenceLapack<T> lapack(m, n);
        Matrix<T> work(m, n);
        const auto run = [&] {
            copy_in_parallel(work.data(), on_host.data(),
                             sizeof(T) * static_cast<std::size_t>(work.rows() * work.cols()));
            const Stopwatch watch;
            lapack.geqrf(work.view());
            if (thin_q) lapack.orgqr(work.view());
            return watch.seconds();
        };
        const double seconds = median_of(run, /*repeat=*/0);
        return {Reference::Lapack, seconds, joules_of(energy_->host, run, seconds)};
    }

    void measure(Shape shape, ScalarKind dtype, const std::vector<Variant>& variants, bool,
                 const Report& report) override {
        with_dtype(dtype, [&]<class T>(T) { measure<T>(shape, variants, report); });
    }
    void write_trace() const override { tracing_.write(); }

    Context<Host> host_;
    InterruptGuard guard_;
    Context<Cuda> ctx_;
    Tracing<Cuda> tracing_;
    std::vector<Reference> references_;
    std::optional<EnergyMeters> energy_;
};

}  // namespace

std::unique_ptr<Cases> device_cases(const BenchArguments& arguments, const std::vector<Reference>& by_default) {
    return std::make_unique<DeviceCases>(arguments, by_default);
}

}  // namespace quoin::cli
