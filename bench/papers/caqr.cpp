// Table I, Figure 8 and Figure 9 of Anderson, Ballard, Demmel and Keutzer (IPDPS 2011): single precision QR of matrices
// on one GPU, by Quoin's LAPACK format and by its CAQR, as the papers have it, against every reference.

#include <fmt/format.h>

#include <algorithm>

#include "device_cases.hpp"

namespace quoin::cli {

namespace {

/// Rates that the paper printed for one code, one for each shape.
struct PublishedRates {
    const char* code;  ///< as a `reference` of the results: "caqr-2011"
    const char* heading;
    std::vector<double> gflops;
};

/// A table or a figure of the paper.
struct PaperTable {
    const char* title;
    const char* published;  ///< the machine of the paper's own figures, and the paper's remarks
    bool speedups = false;  ///< print Quoin's speed over each reference instead of rates
    std::vector<Shape> shapes;
    std::vector<PublishedRates> rates;
};

std::vector<Shape> powers_of_two_wide() {
    std::vector<Shape> shapes;
    for (Index cols = 64; cols <= 8192; cols *= 2) shapes.push_back({8192, cols});
    return shapes;
}

constexpr const char* curves_of_2011 =
    "curves without numbers, on an NVIDIA C2050 and 8 cores of Xeon 5530; there CAQR falls behind\n"
    "the best library from about 4000 columns on (in the report of 2010, with Q formed, from about 3000)";

class CaqrTable {
public:
    CaqrTable(const BenchArguments& arguments, const PaperTable& paper)
        : arguments_(arguments),
          paper_(paper),
          cases_(arguments, {Reference::Cusolver, Reference::Blas2, Reference::Lapack}, false, /*table=*/false) {}

    void run() {
        arguments_.for_each_dtype({ScalarKind::F32}, [&]<class T>(T) { run<T>(); });
        cases_.write_trace();
    }

private:
    template <class T>
    void run() {
        print_header(scalar_kind<T>);
        Options caqr = arguments_.common.options;
        caqr.method = Method::CAQR;
        const std::vector<DeviceCases::Variant> variants = {{Operation::Geqrf, arguments_.common.options},
                                                            {Operation::Factor, caqr}};
        std::vector<std::vector<std::pair<Index, double>>> cusolver_ratios(variants.size());
        for (std::size_t s = 0; s < paper_.shapes.size(); ++s) {
            const Shape shape = paper_.shapes[s];
            cases_.measure<T>(
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
                            if (r.reference == Reference::Cusolver)
                                cusolver_ratios[v].emplace_back(shape.cols, compared.ratio);
                        }
                        for (const PublishedRates& published : paper_.rates)
                            cases_.output().add(
                                against(row, published.code, row.gflops * row.seconds / published.gflops[s]));
                        if (references.empty() && paper_.rates.empty()) cases_.output().add(row);
                    }
                    if (!paper_.speedups) {
                        for (const TimedReference& r : references)
                            cells.push_back(1e-9 * operation_flops(Operation::Geqrf, shape.rows, shape.cols) /
                                            r.seconds);
                        for (const PublishedRates& published : paper_.rates) cells.push_back(published.gflops[s]);
                    }
                    print_row(shape, cells);
                });
        }
        if (arguments_.common.json) return;
        if (paper_.rates.empty()) {
            print_crossover("Quoin (V, tau, R)", cusolver_ratios[0]);
            print_crossover("Quoin CAQR", cusolver_ratios[1]);
        }
    }

    void print_header(ScalarKind dtype) const {
        if (arguments_.common.json) return;
        fmt::print("\n{}\nHere: {}. Published in 2011: {}.\n\n{:>12}", paper_.title, to_string(dtype), paper_.published,
                   "matrix");
        const char* const codes[] = {"Quoin", "CAQR"};
        if (paper_.speedups) {
            for (const char* code : codes)
                for (const Reference r : cases_.references())
                    fmt::print("  {:>14}", fmt::format("{}/{}", code, to_string(r)));
        } else {
            for (const char* code : codes) fmt::print("  {:>9}", code);
            for (const Reference r : cases_.references()) fmt::print("  {:>9}", to_string(r));
            for (const PublishedRates& published : paper_.rates) fmt::print("  {:>9}", published.heading);
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
                fmt::print("  {:>9.4g}", cell);
        }
        fmt::print("\n");
        flush_output();
    }

    /// Prints the first width at which `code` is slower than cuSOLVER, if there is one.
    static void print_crossover(const char* code, const std::vector<std::pair<Index, double>>& ratios) {
        if (ratios.empty()) return;
        const auto behind = std::find_if(ratios.begin(), ratios.end(), [](const auto& r) { return r.second < 1; });
        if (behind == ratios.end())
            fmt::print("{} is ahead of cuSOLVER at every width: no crossover\n", code);
        else
            fmt::print("{} falls behind cuSOLVER at {} columns\n", code, behind->first);
    }

    const BenchArguments& arguments_;
    const PaperTable& paper_;
    DeviceCases cases_;
};

}  // namespace

void bench_caqr_table1(const BenchArguments& arguments) {
    const PaperTable paper = {
        "Table I of Anderson, Ballard, Demmel, Keutzer (IPDPS 2011): GFLOP/s of sgeqrf, very tall-skinny",
        "CAQR, MAGMA 1.0 and CULA on an NVIDIA C2050, MKL 10.2 on 8 cores of Xeon 5530",
        /*speedups=*/false,
        {{1000, 192}, {10000, 192}, {50000, 192}, {100000, 192}, {500000, 192}, {1000000, 192}},
        {{"caqr-2011", "CAQR '11", {39.6, 111, 174, 180, 194, 195}},
         {"magma-2011", "MAGMA '11", {5.01, 18.7, 20.8, 18.8, 12.4, 11.4}},
         {"cula-2011", "CULA '11", {2.99, 9.67, 9.42, 8.90, 8.40, 7.79}},
         {"mkl-2011", "MKL '11", {3.12, 16.9, 22.8, 21.4, 17.8, 16.5}}}};
    CaqrTable(arguments, paper).run();
}

void bench_caqr_figure8(const BenchArguments& arguments) {
    const PaperTable paper = {
        "Figure 8 of Anderson, Ballard, Demmel, Keutzer (IPDPS 2011): speedup of sgeqrf over the libraries, 8192 rows",
        curves_of_2011,
        /*speedups=*/true,
        powers_of_two_wide(),
        {}};
    CaqrTable(arguments, paper).run();
}

void bench_caqr_figure9(const BenchArguments& arguments) {
    const PaperTable paper = {
        "Figure 9 of Anderson, Ballard, Demmel, Keutzer (IPDPS 2011): GFLOP/s of sgeqrf, 8192 rows",
        curves_of_2011,
        /*speedups=*/false,
        powers_of_two_wide(),
        {}};
    CaqrTable(arguments, paper).run();
}

}  // namespace quoin::cli
