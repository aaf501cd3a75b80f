#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "measure_case.hpp"

namespace quoin::cli {

/// What Quoin is timed against.
enum class Reference {
    None,
    Lapack,    ///< through the BLAS that Quoin uses, on the host
    Cusolver,  ///< on the device
    Blas2,     ///< a Householder QR column by column on the device: `bench/cuda/blas2_qr.hpp`
};

inline constexpr auto all_references = {Reference::None, Reference::Lapack, Reference::Cusolver, Reference::Blas2};

/// "none", "lapack", "cusolver", "blas2".
const char* to_string(Reference reference);

struct PaperTable;

struct BenchArguments {
    CommonArguments common;
    std::string csv;  ///< a path, or empty
    bool on_device = false;
    std::vector<Shape> shapes;
    std::vector<DType> dtypes;  ///< none: f64, for a paper's table f32, for a table of requirements all of it
    std::vector<Operation> operations = {Operation::ThinQr};
    std::optional<std::vector<Reference>> references;  ///< not given: LAPACK on the host, cuSOLVER on the device
    const PaperTable* paper = nullptr;
    bool robust_pca = false;     ///< the paper's Table II
    bool storage = false;        ///< Table 1 of Benner, Köhler and Penke
    bool gram_schmidt = false;   ///< Figures 2, 4 and 10 of Brandes, Arnold, Soddemann and Reith, or 6 to 9 on a GPU
    bool tensor_cores = false;   ///< classical Gram-Schmidt in every arithmetic, on a GPU
    bool orthogonality = false;  ///< the loss of orthogonality over κ
    bool out_of_core = false;    ///< Tables 3 and 4 of Zhang and Wu
    std::vector<OutOfCoreOptions> routes;  ///< of it: method, arithmetic and reorthogonalize
    Index gpu_memory = Index(16) << 30;
    Index block = 0;
    std::string files;  ///< a folder, or empty: from file to file there
    Index memory = 0;
    int repeat = 0;
    bool energy = false;
};

struct Case {
    Shape shape;
    DType dtype = DType::F64;
    Operation operation = Operation::ThinQr;
    double required_ratio = 0;     ///< 0: none
    bool growth = false;           ///< one of the cases whose time per row is compared; without a reference
    Method method = Method::Auto;  ///< Auto: as the command line says
};

/// Every shape, type (without any: f64) and operation of the command line.
std::vector<Case> requested_cases(const BenchArguments& arguments);

double median(std::vector<double> values);

/// Medians of `runs`, each of which returns its seconds, called in turn: `repeat` times, or, for 0, for half a second, 3 to 30
/// times (once beyond 10 s), after two warm-up rounds (one beyond 1 s).
std::vector<double> medians_of(const std::vector<std::function<double()>>& runs, int repeat);

/// What --energy measures by. Without it, and where a counter cannot be read, which is said on stderr, a meter measures nothing.
struct EnergyMeters {
    /// Those that are wanted.
    EnergyMeters(const BenchArguments& arguments, bool of_host, bool of_gpu);
    EnergyMeter host, gpu;
};

/// Joules of one `run`: mean power by the meter, times `seconds`, those of one; −1 where that is not measured.
double joules_of(EnergyMeter& meter, const std::function<double()>& run, double seconds);

/// The measurements that the command line asks for, with A in the host's memory.
void bench_on_host(const BenchArguments& arguments);

/// The same with A in the memory of the current GPU. Throws DeviceFailure where there is no usable one.
void bench_on_device(const BenchArguments& arguments);

/// Table 1 of Benner, Köhler and Penke: the factorization with the full T, products with Qᵀ, and a block of Q, on the host or
/// the current GPU.
void bench_storage(const BenchArguments& arguments);

/// Figures 2, 4 and 10 of Brandes, Arnold, Soddemann and Reith: modified Gram-Schmidt on the host.
void bench_gram_schmidt(const BenchArguments& arguments);

/// Figures 6 to 9: modified Gram-Schmidt on the current GPU. Throws DeviceFailure where there is no usable one.
void bench_gram_schmidt_on_device(const BenchArguments& arguments);

/// Q and R in f32 by classical Gram-Schmidt in every arithmetic, against Householder's method and cuSOLVER, on the current GPU.
/// Throws DeviceFailure.
void bench_tensor_cores(const BenchArguments& arguments);

/// ‖I − QᵀQ‖ over κ by Gram-Schmidt and reflectors on the host.
void bench_orthogonality(const BenchArguments& arguments);

/// Tables 3 and 4 of Zhang and Wu, with Householder beside them: matrices in the host's memory on the current GPU.
void bench_out_of_core(const BenchArguments& arguments);
/// Matrices larger than a cap from file to file, on the host or by way of the current GPU, against memory and the disk.
void bench_files(const BenchArguments& arguments);

/// Table II of the paper: iterations of robust PCA a second. Throws DeviceFailure where a GPU is asked for and there is none.
void bench_robust_pca(const BenchArguments& arguments);

}  // namespace quoin::cli
