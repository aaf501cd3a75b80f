#include "papers/caqr_tables.hpp"

namespace quoin::cli {

namespace {

std::vector<Shape> powers_of_two_wide() {
    std::vector<Shape> shapes;
    for (Index cols = 64; cols <= 8192; cols *= 2) shapes.push_back({8192, cols});
    return shapes;
}

constexpr const char* curves_of_2011 =
    "curves without numbers, on an NVIDIA C2050 and 8 cores of Xeon 5530; there CAQR falls behind\n"
    "the best library from about 4000 columns on (in the report of 2010, with Q formed, from about 3000)";

}  // namespace

const std::vector<PaperTable>& paper_tables() {
    static const std::vector<PaperTable> tables = {
        {"Table I of Anderson, Ballard, Demmel, Keutzer (IPDPS 2011): GFLOP/s of sgeqrf, very tall-skinny",
         "CAQR, MAGMA 1.0 and CULA on an NVIDIA C2050, MKL 10.2 on 8 cores of Xeon 5530",
         /*speedups=*/false,
         {{1000, 192}, {10000, 192}, {50000, 192}, {100000, 192}, {500000, 192}, {1000000, 192}},
         {{"caqr-2011", "CAQR '11", {39.6, 111, 174, 180, 194, 195}},
          {"magma-2011", "MAGMA '11", {5.01, 18.7, 20.8, 18.8, 12.4, 11.4}},
          {"cula-2011", "CULA '11", {2.99, 9.67, 9.42, 8.90, 8.40, 7.79}},
          {"mkl-2011", "MKL '11", {3.12, 16.9, 22.8, 21.4, 17.8, 16.5}}}},
        {"Figure 8 of Anderson, Ballard, Demmel, Keutzer (IPDPS 2011): speedup of sgeqrf over the libraries, 8192 rows",
         curves_of_2011,
         /*speedups=*/true,
         powers_of_two_wide(),
         {}},
        {"Figure 9 of Anderson, Ballard, Demmel, Keutzer (IPDPS 2011): GFLOP/s of sgeqrf, 8192 rows",
         curves_of_2011,
         /*speedups=*/false,
         powers_of_two_wide(),
         {}},
    };
    return tables;
}

}  // namespace quoin::cli
