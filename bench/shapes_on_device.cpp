// The cases of the command line, or of Quoin's requirements, with A in a GPU's memory.

#include "device_cases.hpp"

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
        for (const ScalarKind dtype : {ScalarKind::F32, ScalarKind::F64})
            cases.push_back({r.shape, dtype, r.operation, entry_for(dtype, r.f32, r.f64), false, r.method});
    return cases;
}

}  // namespace

void bench_on_device(const BenchArguments& arguments) {
    const bool with_requirements = arguments.shapes.empty();
    DeviceCases cases(arguments, {Reference::Cusolver}, with_requirements, /*table=*/true);
    for (const Case& c : requested_cases(arguments, required_of_device())) {
        Options options = arguments.common.options;
        if (c.method != Method::Auto) options.method = c.method;
        const auto report = [&](const std::vector<Measurement>& results,
                                const std::vector<TimedReference>& references) {
            BenchRow row = bench_row(c.shape, c.dtype, c.operation, results.front(), cases.limits());
            row.required_ratio = c.required_ratio;
            cases.output().add(row, references);
        };
        with_dtype(c.dtype, [&]<class T>(T) { cases.measure<T>(c.shape, {{c.operation, options}}, report); });
    }
    cases.write_trace();
}

}  // namespace quoin::cli
