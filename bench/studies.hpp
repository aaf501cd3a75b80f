#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "measure/measure_case.hpp"
#include "measure/medians.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "quoin/cuda.hpp"
#endif

namespace quoin::cli {

/// The references that Quoin is timed against.
enum class Reference {
    None,
    Lapack,    ///< through the BLAS that Quoin uses, on the host
    Cusolver,  ///< on the device
    Blas2,     ///< a Householder QR column by column on the device: `bench/rivals/blas2_qr.hpp`
};
/// "none", "lapack", "cusolver", "blas2".
const char* to_string(Reference reference);

/// "1000000x192".
std::string to_string(Shape shape);
/// Returns the shapes of square matrices.
template <class Orders>
std::vector<Shape> squares(const Orders& orders) {
    std::vector<Shape> shapes;
    for (const Index n : orders) shapes.push_back({n, n});
    return shapes;
}

/// Number and shape of the matrices of a batch: 640x512x512.
struct BatchSpec {
    Index count = 0;
    Shape shape;
    bool operator==(const BatchSpec& other) const {
        return count == other.count && shape.rows == other.shape.rows && shape.cols == other.shape.cols;
    }
};
std::string to_string(const BatchSpec& spec);

/// The command line of `quoin bench`; each study has options for some of it.
struct BenchArguments {
    CommonArguments common;
    PivotArguments pivots;
    std::string paper, entry;  ///< of `quoin bench paper`: "caqr" and "table1"
    std::string csv;           ///< a path, or empty
    std::vector<Shape> shapes;
    std::vector<BatchSpec> batches;
    std::vector<ScalarKind> dtypes;  ///< none: the study's own
    std::vector<Operation> operations = {Operation::ThinQr};
    std::vector<Reference> references;  ///< none: the study's own
    Index shape_count = 0, seed = 1;    ///< shapes drawn at random
    std::vector<int> ranks;             ///< how many, one after the other; none: the study's own
    Shape grid{0, 0};                   ///< of processes; none: rows over ranks
    int repeat = 0, iterations = 500;
    bool energy = false, no_accuracy = false;
    std::vector<OutOfCoreOptions> routes;  ///< method, arithmetic and reorthogonalize
    std::string folder;
    Index gpu_memory = 0, block = 0, memory = 0;  ///< 0: the study's own
    std::string subtraction = "opencv";           ///< whose masks of moving objects are compared
    std::vector<std::string> rpca_options;        ///< of `quoin rpca`

    bool on_device() const { return common.device == Device::Cuda; }
    std::vector<Shape> shapes_or(std::vector<Shape> otherwise) const { return shapes.empty() ? otherwise : shapes; }
    std::vector<ScalarKind> dtypes_or(std::vector<ScalarKind> otherwise) const {
        return dtypes.empty() ? otherwise : dtypes;
    }
    /// Calls `work(T{})` for every type T of --dtype or, without that, of `otherwise`.
    template <class Work>
    void for_each_dtype(const std::vector<ScalarKind>& otherwise, Work&& work) const {
        for (const ScalarKind dtype : dtypes_or(otherwise)) with_dtype(dtype, work);
    }
    /// Whether it is among `references`; `otherwise` where there are none.
    bool wants(Reference reference, bool otherwise = true) const {
        return references.empty() ? otherwise
                                  : std::find(references.begin(), references.end(), reference) != references.end();
    }
};

struct Case {
    Shape shape;
    ScalarKind dtype = ScalarKind::F64;
    Operation operation = Operation::ThinQr;
    double required_ratio = 0;     ///< 0: none
    bool growth = false;           ///< one of the cases whose time per row is compared; without a reference
    Method method = Method::Auto;  ///< Auto: as the command line says
};
/// Returns every shape, type (without any: f64) and operation of the command line; without shapes the cases of
/// `otherwise` with these types.
std::vector<Case> requested_cases(const BenchArguments& arguments, const std::vector<Case>& otherwise = {});

/// Meters for studies of energy and for --energy. Elsewhere a meter measures nothing. Neither does one whose counter
/// cannot be read; stderr names it.
struct EnergyMeters {
    /// Opens the meters that `arguments` want.
    EnergyMeters(const BenchArguments& arguments, bool of_host, bool of_gpu);
    EnergyMeter host, gpu;
};

/// "AMD EPYC 9005, 4 threads, OpenBLAS 0.3.21".
std::string describe_host(const Context<Host>& ctx);
/// Warns on stderr of what makes times on the host mean little: other programs at work, or a BLAS that takes the CPU
/// for an older one.
void warn_about_host();

/// Calls `work()`, unless Ctrl-C was typed. If memory for the matrix runs out, says so on stderr and returns.
void unless_too_large(Shape shape, ScalarKind dtype, const std::function<void()>& work);

#ifdef QUOIN_HAVE_CUDA
/// Returns a context on the current GPU. Throws DeviceFailure if there is no usable one, as the studies on a GPU do.
Context<Cuda> device_context();
#endif

// The studies of `quoin bench`

/// Times the cases of the command line, with A in the host's memory.
void bench_on_host(const BenchArguments& arguments);
/// Times them with A in a GPU's memory.
void bench_on_device(const BenchArguments& arguments);
/// Batches against loops over LAPACK, or cuSOLVER and cuBLAS, on either device, and the accuracy of their answers.
void bench_batches(const BenchArguments& arguments);
/// `Auto` against every method of the same accuracy, over shapes at random, on either device.
void bench_regret(const BenchArguments& arguments);
/// Rows over ranks: threads with their share of the cores, or with a GPU each.
void bench_ranks(const BenchArguments& arguments);
/// Matrices larger than a cap from file to file, on the host or by way of a GPU, against memory and the disk.
void bench_files(const BenchArguments& arguments);
/// Masks of moving objects by `quoin rpca` and by OpenCV's methods on a folder in ChangeDetection.net's layout. Becomes
/// Python with bench/rivals/background_subtraction.py, which the program holds. Throws UnreadableFile where there is no
/// python3.
void bench_masks(const BenchArguments& arguments);

// The studies of `quoin bench paper`, each in bench/papers; entries.cpp says which serves which table and figure.

/// Anderson, Ballard, Demmel and Keutzer: rates of Quoin's QR and of its CAQR against every reference, on either
/// device.
void bench_caqr_table1(const BenchArguments& arguments);
void bench_caqr_figure8(const BenchArguments& arguments);
void bench_caqr_figure9(const BenchArguments& arguments);
/// These rates with the thin Q, as in the report of 2010.
void bench_caqr_report_figure8(const BenchArguments& arguments);
void bench_caqr_report_figure9(const BenchArguments& arguments);
/// Rates of the stages of CAQR, and the tree's share of the time, over the size of a block, on a GPU.
void bench_tree_tuning(const BenchArguments& arguments);
void bench_reductions(const BenchArguments& arguments);
/// Iterations of robust PCA a second, and frames of a stream, online. On either device.
void bench_robust_pca(const BenchArguments& arguments);
/// Benner, Köhler and Penke: V, R and one T for all columns, on either device.
void bench_storage(const BenchArguments& arguments);
/// The timelines of their schedule on a GPU, with the panels on the host.
void bench_storage_schedules(const BenchArguments& arguments);
/// Products with Qᵀ, and a block of Q, by that T.
void bench_storage_products(const BenchArguments& arguments);
/// Brandes, Arnold, Soddemann and Reith: modified Gram-Schmidt over threads, over the width of a block, by compilers
/// and languages, and every code over the order of the matrix.
void bench_gram_schmidt_threads(const BenchArguments& arguments);
void bench_gram_schmidt_widths(const BenchArguments& arguments);
void bench_gram_schmidt_compilers(const BenchArguments& arguments);
void bench_gram_schmidt_sizes(const BenchArguments& arguments);
/// Their kernels on a GPU over the shape of a block and over the columns that are left, and every code over the order.
void bench_gram_schmidt_kernels(const BenchArguments& arguments);
void bench_gram_schmidt_steps(const BenchArguments& arguments);
void bench_gram_schmidt_codes(const BenchArguments& arguments);
/// The row of this machine in their table of devices.
void bench_gram_schmidt_machine(const BenchArguments& arguments);
/// ‖I − QᵀQ‖ over κ by Gram-Schmidt and reflectors.
void bench_orthogonality(const BenchArguments& arguments);
/// Q and R in f32 by classical Gram-Schmidt in every arithmetic, against Householder's method and cuSOLVER, on a GPU.
void bench_tensor_cores(const BenchArguments& arguments);
/// Zhang and Wu: matrices in the host's memory on a GPU, by recursion, by blocks, and by Householder for comparison.
void bench_out_of_core(const BenchArguments& arguments);
/// Measures by default the matrix, memory and blocks of their Figures 12 and 13.
void bench_out_of_core_large(const BenchArguments& arguments);
/// Measure this matrix with and without one optimization: copies beside the work, growing blocks, joined stages.
void bench_out_of_core_overlap(const BenchArguments& arguments);
void bench_out_of_core_growing(const BenchArguments& arguments);
void bench_out_of_core_stages(const BenchArguments& arguments);

}  // namespace quoin::cli
