#include "studies.hpp"

#include <fmt/format.h>

#include "interrupt.hpp"
#include "machine.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "measure/cuda/device.hpp"
#endif

namespace quoin::cli {

const char* to_string(Reference reference) {
    constexpr const char* names[] = {"none", "lapack", "cusolver", "blas2"};
    return names[static_cast<int>(reference)];
}

std::string to_string(Shape shape) { return fmt::format("{}x{}", shape.rows, shape.cols); }

std::string to_string(const BatchSpec& spec) { return fmt::format("{}x{}", spec.count, to_string(spec.shape)); }

std::vector<Case> requested_cases(const BenchArguments& arguments, const std::vector<Case>& otherwise) {
    std::vector<Case> cases;
    if (arguments.shapes.empty()) {
        for (const Case& c : otherwise)
            for (const ScalarKind dtype : arguments.dtypes_or({c.dtype}))
                if (dtype == c.dtype) cases.push_back(c);
    }
    for (const Shape shape : arguments.shapes)
        for (const ScalarKind dtype : arguments.dtypes_or({ScalarKind::F64}))
            for (const Operation operation : arguments.operations) cases.push_back({shape, dtype, operation});
    return cases;
}

EnergyMeters::EnergyMeters(const BenchArguments& arguments, bool of_host, [[maybe_unused]] bool of_gpu) {
    if (!arguments.energy) return;
    if (of_host) host = EnergyMeter::of_host();
#ifdef QUOIN_HAVE_CUDA
    if (of_gpu) gpu = EnergyMeter::of_gpu(bench::pci_bus_id());
#endif
    for (const EnergyMeter* meter : {&host, &gpu}) {
        if (!meter->problem().empty()) fmt::print(stderr, "quoin: no joules: {}\n", meter->problem());
    }
}

std::string describe_host(const Context<Host>& ctx) {
    return fmt::format("{}, {} threads, {}", describe_machine().cpu, ctx.threads(), build_info().blas);
}

void warn_about_host() {
    for (const std::string& warning : {std::string(build_info().blas_warning), describe_machine().busy()})
        if (!warning.empty()) fmt::print(stderr, "quoin: {}\n", warning);
}

void unless_too_large(Shape shape, ScalarKind dtype, const std::function<void()>& work) {
    throw_if_interrupted();
    try {
        work();
    } catch (const OutOfMemory& error) {
        fmt::print(stderr, "quoin: skipped {} {}: {}\n", to_string(shape), to_string(dtype), error.what());
    }
}

#ifdef QUOIN_HAVE_CUDA
Context<Cuda> device_context() {
    try {
        return Context<Cuda>();
    } catch (const DeviceFailure& failure) {
        throw DeviceFailure(fmt::format("--device cuda: no usable GPU: {}", failure.what()));
    }
}
#endif

}  // namespace quoin::cli
