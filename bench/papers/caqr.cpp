// Figures 8 and 9 and Table I of Anderson, Ballard, Demmel and Keutzer (IPDPS 2011), and Figures 8 to 10 of their
// report of 2010: single precision QR by Quoin's own choice and by its CAQR, as the papers have it, against every
// reference.

#include "cases.hpp"

namespace quoin::cli {

namespace {

std::vector<Shape> powers_of_two_wide() {
    std::vector<Shape> shapes;
    for (Index cols = 64; cols <= 8192; cols *= 2) shapes.push_back({8192, cols});
    return shapes;
}
/// Returns matrices of 2²⁶ entries, from 1048576x64 to 8192x8192.
std::vector<Shape> skinny_to_square() {
    std::vector<Shape> shapes;
    for (Index cols = 64; cols <= 8192; cols *= 2) shapes.push_back({(Index(1) << 26) / cols, cols});
    return shapes;
}

/// V, tau and R of the matrices, or Q and R.
void bench_caqr(const BenchArguments& arguments, bool with_q, const std::vector<Shape>& shapes) {
    using enum Operation;
    std::vector<Case> list;
    for (const ScalarKind dtype : arguments.dtypes_or({ScalarKind::F32}))
        for (const Shape shape : arguments.shapes_or(shapes)) {
            list.push_back({shape, dtype, with_q ? ThinQr : Geqrf});
            list.push_back({shape, dtype, with_q ? ThinQr : Factor, 0, false, Method::CAQR});
        }
    std::unique_ptr<Cases> cases;
#ifdef QUOIN_HAVE_CUDA
    using enum Reference;
    if (arguments.on_device())
        cases = device_cases(arguments, with_q ? std::vector{Cusolver, Lapack} : std::vector{Cusolver, Blas2, Lapack});
#endif
    if (!cases) cases = host_cases(arguments);
    cases->run(list, /*together=*/true);
}

}  // namespace

void bench_caqr_table1(const BenchArguments& arguments) {
    bench_caqr(arguments, false,
               {{1000, 192}, {10000, 192}, {50000, 192}, {100000, 192}, {500000, 192}, {1000000, 192}});
}
void bench_caqr_figure8(const BenchArguments& arguments) { bench_caqr(arguments, false, skinny_to_square()); }
void bench_caqr_figure9(const BenchArguments& arguments) { bench_caqr(arguments, false, powers_of_two_wide()); }
void bench_caqr_report_figure8(const BenchArguments& arguments) { bench_caqr(arguments, true, powers_of_two_wide()); }
void bench_caqr_report_figure9(const BenchArguments& arguments) {
    bench_caqr(arguments, true, {{110592, 100}, {1000000, 192}});
}

}  // namespace quoin::cli
