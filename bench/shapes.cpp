// The cases of the command line, or of Quoin's requirements, with A in the memory of either device.

#include <fmt/format.h>

#include <algorithm>

#include "cases.hpp"

namespace quoin::cli {

namespace {

/// The cases of Quoin's requirements on the host. Cases of one matrix are neighbours.
std::vector<Case> required_of_host() {
    using enum ScalarKind;
    using enum Operation;
    std::vector<Case> cases = {
        {{1000000, 192}, F64, ThinQr, 6}, {{1000000, 192}, F64, ROnly, 5},  {{1000000, 192}, F64, Geqrf, 3},
        {{1000000, 192}, F32, ThinQr, 5}, {{1000000, 192}, F32, ROnly, 4},  {{110592, 100}, F64, ThinQr, 4},
        {{110592, 100}, F32, ThinQr, 4},  {{100000, 192}, F64, ThinQr, 4},  {{100000, 192}, F32, ThinQr, 4},
        {{4000000, 8}, F64, ThinQr, 4},   {{4000000, 8}, F32, ThinQr, 4},   {{8192, 64}, F64, ThinQr, 2},
        {{8192, 64}, F32, ThinQr, 2},     {{8192, 256}, F64, ThinQr, 2},    {{8192, 256}, F32, ThinQr, 2},
        {{8192, 512}, F64, ThinQr, 2},    {{8192, 512}, F32, ThinQr, 2},    {{1000, 1000}, F64, Geqrf, 1},
        {{1000, 1000}, F32, Geqrf, 1},    {{2000, 2000}, F64, Geqrf, 1},    {{2000, 2000}, F32, Geqrf, 1},
        {{4000, 4000}, F64, Geqrf, 1.15}, {{4000, 4000}, F32, Geqrf, 1.15},
    };
    for (const ScalarKind dtype : {F64, F32})
        for (const Index rows : {100000, 250000, 500000, 1000000, 2000000, 4000000})
            cases.push_back({{rows, 64}, dtype, ThinQr, 0, /*growth=*/true});
    return cases;
}

constexpr double allowed_growth = 0.15;

/// Time per row must not depend on the number of rows.
void print_growth(const std::vector<std::pair<Case, double>>& growth) {
    for (const ScalarKind dtype : {ScalarKind::F64, ScalarKind::F32}) {
        std::vector<double> seconds_a_row;
        for (const auto& [c, seconds] : growth)
            if (c.dtype == dtype) seconds_a_row.push_back(seconds / static_cast<double>(c.shape.rows));
        if (seconds_a_row.empty()) continue;
        const auto [least, most] = std::minmax_element(seconds_a_row.begin(), seconds_a_row.end());
        const double spread = *most / *least - 1;
        fmt::print(
            "time per row, thin-qr {} n = 64: {:.3g} to {:.3g} ns, spread {:.0f}% (required: within {:.0f}%) {}\n",
            to_string(dtype), 1e9 * *least, 1e9 * *most, 100 * spread, 100 * allowed_growth,
            spread <= allowed_growth ? "met" : "MISSED");
    }
}

#ifdef QUOIN_HAVE_CUDA
/// The cases of Quoin's requirements on a GPU.
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
        for (const ScalarKind dtype : {ScalarKind::F32, ScalarKind::F64})
            cases.push_back({r.shape, dtype, r.operation, entry_for(dtype, r.f32, r.f64), false, r.method});
    return cases;
}
#endif

}  // namespace

void bench_on_host(const BenchArguments& arguments) {
    const std::unique_ptr<Cases> cases = host_cases(arguments);
    cases->run(requested_cases(arguments, required_of_host()));
    if (!arguments.common.json) print_growth(cases->growth());
}

#ifdef QUOIN_HAVE_CUDA
void bench_on_device(const BenchArguments& arguments) {
    device_cases(arguments, {Reference::Cusolver})->run(requested_cases(arguments, required_of_device()));
}
#endif

}  // namespace quoin::cli
