#include "studies.hpp"

#include <fmt/format.h>

#ifdef QUOIN_HAVE_CUDA
#include "measure/cuda/device.hpp"
#endif

namespace quoin::cli {

const char* to_string(Reference reference) {
    switch (reference) {
        case Reference::Lapack: return "lapack";
        case Reference::Cusolver: return "cusolver";
        case Reference::Blas2: return "blas2";
        case Reference::None: break;
    }
    return "none";
}

std::vector<Case> requested_cases(const BenchArguments& arguments) {
    std::vector<Case> cases;
    for (const Shape shape : arguments.shapes)
        for (const DType dtype : arguments.dtypes_or({DType::F64}))
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
        if (!meter->problem().empty()) fmt::print(stderr, "quoin: --energy: {}\n", meter->problem());
    }
}

}  // namespace quoin::cli
