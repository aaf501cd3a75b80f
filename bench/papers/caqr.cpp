// Figures 8 and 9 and Table I of Anderson, Ballard, Demmel and Keutzer (IPDPS 2011), and Figures 8 to 10 of their
// report of 2010: single precision QR by Quoin's own choice and by its CAQR, as the papers have it, against every
// reference.

#include <fmt/format.h>

#include <algorithm>

#include "host_cases.hpp"
#include "papers/published.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "device_cases.hpp"
#endif

namespace quoin::cli {

namespace {

/// A table or a figure of the papers.
struct PaperTable {
    const char* title;
    bool with_q;    ///< Q and R, not V, tau and R
    bool speedups;  ///< print Quoin's speed over each reference instead of rates
    std::vector<Shape> shapes;
};

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

template <class Cases>
class CaqrTable {
public:
    CaqrTable(const BenchArguments& arguments, const PaperTable& paper)
        : arguments_(arguments),
          paper_(paper),
          published_(published_series(arguments.paper, arguments.entry)),
          cases_(arguments, references_for(paper), false, /*table=*/false) {}

    void run() {
        arguments_.for_each_dtype({ScalarKind::F32}, [&]<class T>(T) { run<T>(); });
        cases_.write_trace();
    }

private:
    static std::vector<Reference> references_for(const PaperTable& paper) {
        using enum Reference;
        return paper.with_q ? std::vector{Cusolver, Lapack} : std::vector{Cusolver, Blas2, Lapack};
    }

    template <class T>
    void run() {
        print_header(scalar_kind<T>);
        Options caqr = arguments_.common.options;
        caqr.method = Method::CAQR;
        const std::vector<std::pair<Operation, Options>> variants = {
            {paper_.with_q ? Operation::ThinQr : Operation::Geqrf, arguments_.common.options},
            {paper_.with_q ? Operation::ThinQr : Operation::Factor, caqr}};
        std::vector<std::vector<std::pair<Index, double>>> library_ratios(variants.size());
        for (const Shape shape : arguments_.shapes_or(paper_.shapes)) {
            cases_.template measure<T>(
                shape, variants,
                [&](const std::vector<Measurement>& results, const std::vector<TimedReference>& references) {
                    std::vector<double> cells;
                    for (std::size_t v = 0; v < variants.size(); ++v) {
                        const BenchRow row =
                            bench_row(shape, scalar_kind<T>, variants[v].first, results[v], cases_.limits());
                        if (!paper_.speedups) cells.push_back(row.gflops);
                        for (const TimedReference& r : references) {
                            const BenchRow compared = against(row, to_string(r.reference), r.seconds, r.joules);
                            cases_.output().add(compared);
                            if (paper_.speedups) cells.push_back(compared.ratio);
                            if (r.reference == references.front().reference)
                                library_ratios[v].emplace_back(shape.cols, compared.ratio);
                        }
                        if (references.empty()) cases_.output().add(row);
                    }
                    if (!paper_.speedups) {
                        for (const TimedReference& r : references)
                            cells.push_back(1e-9 * operation_flops(variants[0].first, shape.rows, shape.cols) /
                                            r.seconds);
                        for (const PublishedSeries& series : published_)
                            cells.push_back(published(series.paper, series.entry, series.code, to_string(shape)));
                    }
                    print_row(shape, cells);
                });
        }
        if (arguments_.common.json) return;
        print_crossover("Quoin", library_ratios[0]);
        print_crossover("Quoin CAQR", library_ratios[1]);
    }

    void print_header(ScalarKind dtype) const {
        if (arguments_.common.json) return;
        fmt::print("\n{}, {}\n\n{:>12}", paper_.title, to_string(dtype), "matrix");
        const char* const codes[] = {"Quoin", "CAQR"};
        if (paper_.speedups) {
            for (const char* code : codes)
                for (const Reference r : cases_.references())
                    fmt::print("  {:>14}", fmt::format("{}/{}", code, to_string(r)));
        } else {
            for (const char* code : codes) fmt::print("  {:>12}", code);
            for (const Reference r : cases_.references()) fmt::print("  {:>12}", to_string(r));
            for (const PublishedSeries& series : published_) fmt::print("  {:>12}", series.code);
        }
        fmt::print("\n");
    }

    void print_row(Shape shape, const std::vector<double>& cells) const {
        if (arguments_.common.json) return;
        fmt::print("{:>12}", to_string(shape));
        for (const double cell : cells) {
            if (paper_.speedups)
                fmt::print("  {:>14.2f}", cell);
            else
                fmt::print("  {:>12}", measured(cell, "{:.4g}"));
        }
        fmt::print("\n");
        flush_output();
    }

    /// Prints the first width at which `code` is slower than the first reference, if there is one.
    void print_crossover(const char* code, const std::vector<std::pair<Index, double>>& ratios) const {
        if (ratios.empty()) return;
        const char* const library = to_string(cases_.references().front());
        const auto behind = std::find_if(ratios.begin(), ratios.end(), [](const auto& r) { return r.second < 1; });
        if (behind == ratios.end())
            fmt::print("{} is ahead of {} at every width: no crossover\n", code, library);
        else
            fmt::print("{} falls behind {} at {} columns\n", code, library, behind->first);
    }

    const BenchArguments& arguments_;
    const PaperTable& paper_;
    const std::vector<PublishedSeries> published_;
    Cases cases_;
};

void bench_caqr(const BenchArguments& arguments, const PaperTable& paper) {
#ifdef QUOIN_HAVE_CUDA
    if (arguments.on_device()) return CaqrTable<DeviceCases>(arguments, paper).run();
#endif
    CaqrTable<HostCases>(arguments, paper).run();
}

}  // namespace

void bench_caqr_table1(const BenchArguments& arguments) {
    bench_caqr(arguments, {"GFLOP/s of sgeqrf, very tall and skinny",
                           /*with_q=*/false,
                           /*speedups=*/false,
                           {{1000, 192}, {10000, 192}, {50000, 192}, {100000, 192}, {500000, 192}, {1000000, 192}}});
}
void bench_caqr_figure8(const BenchArguments& arguments) {
    bench_caqr(arguments, {"Speed-up of sgeqrf over the libraries", false, true, skinny_to_square()});
}
void bench_caqr_figure9(const BenchArguments& arguments) {
    bench_caqr(arguments, {"GFLOP/s of sgeqrf, 8192 rows", false, false, powers_of_two_wide()});
}
void bench_caqr_report_figure8(const BenchArguments& arguments) {
    bench_caqr(arguments, {"GFLOP/s of sgeqrf and sorgqr, 8192 rows", true, false, powers_of_two_wide()});
}
void bench_caqr_report_figure9(const BenchArguments& arguments) {
    bench_caqr(arguments,
               {"GFLOP/s of sgeqrf and sorgqr, very tall and skinny", true, false, {{110592, 100}, {1000000, 192}}});
}

}  // namespace quoin::cli
