// The tables and figures of the five papers, and the studies that measure them.

#include "study.hpp"

namespace quoin::cli {

namespace {

void check_tall(const BenchArguments& arguments) {
    for (const Shape shape : arguments.shapes)
        if (shape.rows < shape.cols) refuse_argument("SHAPE", "this entry takes no wide matrices");
}
void check_rates(const BenchArguments& arguments) {
    for (const Reference reference : {Reference::Cusolver, Reference::Blas2})
        if (!arguments.on_device() && arguments.wants(reference, false))
            refuse_argument("--against", std::string(to_string(reference)) + " needs --device cuda");
}
void check_thin_q(const BenchArguments& arguments) {
    check_rates(arguments);
    if (arguments.wants(Reference::Blas2, false)) refuse_argument("--against", "blas2 forms no Q");
}

void check_schedules(const BenchArguments& arguments) {
    check_tall(arguments);
    for (const OutOfCoreOptions& route : arguments.routes)
        if (route.method == OutOfCoreMethod::Householder)
            refuse_argument("--routes", "this entry is about recursive and blocking, and householder has one schedule");
}

void robust_pca([[maybe_unused]] const BenchArguments& arguments) {
#ifdef QUOIN_HAVE_VIDEO
    bench_robust_pca(arguments);
#else
    throw InvalidArgument("robust PCA: this quoin-bench was built without FFmpeg's libraries");
#endif
}

constexpr unsigned of_rates = Shapes | Types | AnyDevice | References | Energy | Timeline | Csv | Algorithm | Repeat;
constexpr unsigned of_pursuits = AnyDevice | Timeline | Csv | Iterations;
constexpr unsigned of_storage = Shapes | Types | AnyDevice | References | Timeline | Csv | Algorithm | Repeat;
constexpr unsigned of_schedules = Shapes | Types | Timeline | Csv | Algorithm;
constexpr unsigned of_kernels = Shapes | Types | Csv, of_loops = of_kernels | Repeat;
constexpr unsigned of_out_of_core = Shapes | Types | GpuMemory | Routes | Timeline | Csv;
constexpr unsigned of_large_blocks = of_out_of_core | LargeBlocks;
#define BOTH(study) study, QUOIN_ON_GPU(study)
#define ON_GPU(study) nullptr, QUOIN_ON_GPU(study)
#define OUT_OF_CORE(name, title) \
    { "out-of-core", {name, title, of_out_of_core, ON_GPU(bench_out_of_core), check_tall}, nullptr, "17 s" }
#define LARGE_BLOCKS(name, title) \
    { "out-of-core", {name, title, of_large_blocks, ON_GPU(bench_out_of_core_large), check_tall}, nullptr, "80 s" }
#define SCHEDULES(name, title, study) \
    { "out-of-core", {name, title, of_large_blocks, ON_GPU(study), check_schedules}, nullptr, "2 min" }

}  // namespace

const std::vector<Paper> papers = {
    {"caqr-report", "Anderson, Ballard, Demmel and Keutzer, report UCB/EECS-2010-131 (2010)"},
    {"caqr", "Anderson, Ballard, Demmel and Keutzer, IPDPS 2011"},
    {"storage", "Benner, Köhler and Penke, storage-efficient QR"},
    {"out-of-core", "Zhang and Wu, ICPP 2021"},
    {"gram-schmidt", "Brandes, Arnold, Soddemann and Reith (2012)"},
};

// clang-format off
const std::vector<PaperEntry> paper_entries = {
    {"caqr-report", {"figure7", "Figure 7: rate of the updates by leaves and by the tree, over the width of a block",
     of_kernels, ON_GPU(bench_tree_tuning), check_tall}, nullptr, "9 s"},
    {"caqr-report", {"strategies", "Section IV.E: GFLOP/s of apply_qt_h by each strategy of reduction",
     Csv, ON_GPU(bench_reductions)}, nullptr, "2 s"},
    {"caqr-report", {"figure8", "Figure 8: GFLOP/s of sgeqrf and sorgqr, 8192 rows",
     of_rates, BOTH(bench_caqr_report_figure8), check_thin_q}, "8 min", "24 s"},
    {"caqr-report", {"figure9", "Figure 9: GFLOP/s of sgeqrf and sorgqr, very tall and skinny",
     of_rates, BOTH(bench_caqr_report_figure9), check_thin_q}, "1 min", "6 s"},
    {"caqr-report", {"figure10", "Figure 10: the same CAQR on two devices; here on one, to compare with another's",
     of_rates, BOTH(bench_caqr_report_figure8), check_thin_q}, "8 min", "24 s"},
    {"caqr-report", {"table1", "Table I: iterations of robust PCA a second",
     of_pursuits, BOTH(robust_pca)}, "2 min", "3 s"},

    {"caqr", {"figure7", "Figure 7: rate of the updates over the rows and columns of a block",
     of_kernels, ON_GPU(bench_tree_tuning), check_tall}, nullptr, "9 s"},
    {"caqr", {"strategies", "Section IV.E: GFLOP/s of apply_qt_h by each strategy of reduction",
     Csv, ON_GPU(bench_reductions)}, nullptr, "2 s"},
    {"caqr", {"figure8", "Figure 8: speed-up of sgeqrf over the libraries, from skinny to square",
     of_rates, BOTH(bench_caqr_figure8), check_rates}, "6 min", "39 s"},
    {"caqr", {"figure9", "Figure 9: GFLOP/s of sgeqrf, 8192 rows",
     of_rates, BOTH(bench_caqr_figure9), check_rates}, "4 min", "20 s"},
    {"caqr", {"table1", "Table I: GFLOP/s of sgeqrf, very tall and skinny",
     of_rates, BOTH(bench_caqr_table1), check_rates}, "1 min", "13 s"},
    {"caqr", {"table2", "Table II: iterations of robust PCA a second; and online, frames of a stream",
     of_pursuits, BOTH(robust_pca)}, "2 min", "3 s"},

    {"storage", {"table1", "Table 1: seconds for V, R and one T",
     of_storage, BOTH(bench_storage)}, "20 min", "5 min"},
    {"storage", {"figure1", "Figure 1: the GPU's and the host's work beside each other",
     of_schedules, ON_GPU(bench_storage_schedules)}, nullptr, "2 s"},
    {"storage", {"figure2", "Figure 2: GFLOP/s and flops a joule of the same",
     of_storage, BOTH(bench_storage)}, "20 min", "5 min"},
    {"storage", {"products", "What T is for: products with Qᵀ, and a block of Q without the rest",
     of_storage, BOTH(bench_storage_products)}, "5 min", "9 s"},

    SCHEDULES("table1", "Table 1: the largest inner product, synchronous and asynchronous", bench_out_of_core_overlap),
    SCHEDULES("table2", "Table 2: the largest outer product, synchronous and asynchronous", bench_out_of_core_overlap),
    LARGE_BLOCKS("table3", "Table 3: seconds of copies"),
    OUT_OF_CORE("table4", "Table 4: seconds of products and of panels"),
    LARGE_BLOCKS("figure7", "Figure 7: timeline of the largest inner product by blocks"),
    LARGE_BLOCKS("figure8", "Figure 8: timeline of the largest inner product by recursion"),
    LARGE_BLOCKS("figure9", "Figure 9: timeline of the largest outer product by blocks"),
    LARGE_BLOCKS("figure10", "Figure 10: timeline of the largest outer product by recursion"),
    OUT_OF_CORE("figure11", "Figure 11: timeline of an outer product by blocks of 8192"),
    LARGE_BLOCKS("figure12", "Figure 12: timeline of the run by blocks of 16384"),
    LARGE_BLOCKS("figure13", "Figure 13: timeline of the run by recursion, 16384"),
    OUT_OF_CORE("figure14", "Figure 14: timeline of the run by blocks of 8192"),
    OUT_OF_CORE("figure15", "Figure 15: timeline of the run by recursion, 8192"),
    SCHEDULES("growing", "Section 4.1.3: blocks that grow, and blocks of one size", bench_out_of_core_growing),
    SCHEDULES("stages", "Section 4.2: joined stages, and each by itself", bench_out_of_core_stages),
    {"out-of-core", {"tensor-cores", "In memory: Q and R in f32 by cgs in every arithmetic",
     Shapes | Csv | Algorithm | Repeat, ON_GPU(bench_tensor_cores)}, nullptr, "1 min"},

    {"gram-schmidt", {"figure2", "Figure 2: seconds over the number of threads, unblocked and blocked",
     of_loops, bench_gram_schmidt_threads, nullptr, check_tall}, "40 min"},
    {"gram-schmidt", {"figure4", "Figure 4: GFLOP/s over the columns of a block",
     of_loops | Algorithm, bench_gram_schmidt_widths, nullptr, check_tall}, "60 min"},
    {"gram-schmidt", {"figure5", "Figure 5: GFLOP/s on one core by compilers and languages",
     of_loops, bench_gram_schmidt_compilers, nullptr, check_tall}, "2 min"},
    {"gram-schmidt", {"figure6", "Figure 6: rate of the orthogonalization kernel over the shape of a block",
     of_kernels, ON_GPU(bench_gram_schmidt_kernels), check_tall}, nullptr, "2 s"},
    {"gram-schmidt", {"figure7", "Figure 7: rate of the dot products' kernel over the shape of a block",
     of_kernels, ON_GPU(bench_gram_schmidt_kernels), check_tall}, nullptr, "2 s"},
    {"gram-schmidt", {"figure8", "Figure 8: time of an orthogonalization over the columns that are left",
     of_kernels, ON_GPU(bench_gram_schmidt_steps), check_tall}, nullptr, "1 s"},
    {"gram-schmidt", {"figure9", "Figure 9: the paper's kernels against cuBLAS",
     of_loops | Algorithm, ON_GPU(bench_gram_schmidt_codes), check_tall}, nullptr, "33 s"},
    {"gram-schmidt", {"figure10", "Figure 10: GFLOP/s over the order, every code", of_loops | Algorithm | AnyDevice,
     bench_gram_schmidt_sizes, QUOIN_ON_GPU(bench_gram_schmidt_codes), check_tall}, "20 min", "33 s"},
    {"gram-schmidt", {"table1", "Table 1: seconds by compilers, languages and threads, unblocked and blocked",
     of_loops, bench_gram_schmidt_compilers, nullptr, check_tall}, "2 min"},
    {"gram-schmidt", {"table2", "Table 2: the devices; here this machine's",
     AnyDevice | Csv, BOTH(bench_gram_schmidt_machine)}, "1 s", "1 s"},
    {"gram-schmidt", {"orthogonality", "What it costs: ‖I − QᵀQ‖ over κ by Gram-Schmidt and by reflectors",
     Types | Csv, bench_orthogonality}, "10 s"},
};
// clang-format on

}  // namespace quoin::cli
