#pragma once

#include <functional>
#include <string>

#include "quoin/qr.hpp"

namespace quoin {

/// How a matrix larger than the device's memory is factored.
enum class OutOfCoreMethod {
    Householder,  ///< slabs of columns from left to right; Q is orthonormal to O(nu) for every A
    Recursive,    ///< classical Gram-Schmidt by halves (Zhang and Wu 2021)
};

/// Choices of a factorization of a matrix that is larger than the memory of the device.
struct OutOfCoreOptions {
    OutOfCoreMethod method = OutOfCoreMethod::Householder;
    /// Arithmetic of the large products, as `Options::arithmetic`. Auto: corrected for f32 on a GPU, native otherwise.
    Arithmetic arithmetic = Arithmetic::Auto;
    /// For Gram-Schmidt: orthogonalise every leaf a second time, against all earlier columns and within itself.
    bool reorthogonalize = false;
    /// Memory of the device that the call may take, including its libraries'; 0: nine tenths of the free memory.
    double memory_bytes = 0;
    /// Columns of a slab, of a block, or of the recursion's smallest node; 0: the largest number that the memory holds.
    Index block = 0;
    bool check_finite = true;  ///< NaN or Inf in A is an error
    bool form_q = true;        ///< for a plan by Householder: whether Q is formed
    /// Called from time to time on the calling thread with the finished share of the work, from 0 to 1.
    std::function<void(double)> progress{};
};

/// Rates of a machine, for the predictions of a plan. The defaults are for an H100 on PCIe 5.
struct OutOfCoreRates {
    double link = 50e9;         ///< bytes in each direction, both at once
    double native_f32 = 45e12;  ///< flops of large products
    double native_f64 = 50e12;
    double corrected = 130e12;       ///< Gram-Schmidt's, of thousands of columns
    double corrected_rows = 131072;  ///< largest number of rows with this rate; with more, fewer columns fit
    double corrected_by_panels = 95e12;
    double tensor = 450e12;  ///< 16 bits
    double tf32 = 250e12;
};

/// The choices for one shape, and their costs. A pure value.
struct OutOfCorePlan {
    Index rows = 0, cols = 0;
    ScalarKind scalar = ScalarKind::F64;
    OutOfCoreMethod method = OutOfCoreMethod::Householder;
    Arithmetic arithmetic = Arithmetic::Native;
    bool reorthogonalize = false;
    double memory_bytes = 0;     ///< the cap
    double workspace_bytes = 0;  ///< the part for products, panels and libraries
    Index block = 0;             ///< columns of a slab or a leaf, which stay on the device during their use
    Index panel = 0;             ///< of Householder: columns of one T
    Index elements = 0;          ///< of Gram-Schmidt: numbers on the device at a time, without workspace
    bool check_finite = true;
    bool form_q = true;
    double bytes_in = 0, bytes_out = 0;  ///< to the device and from it, exactly
    double flops = 0;
    double seconds = 0;  ///< prediction: the slowest of the arithmetic and the two directions, stage by stage
};

/// Results of a factorization out of core.
struct OutOfCoreReport {
    OutOfCorePlan plan;
    double seconds = 0;
    double bytes_in = 0, bytes_out = 0;  ///< to the device and from it, as counted
    double memory_bytes = -1;            ///< device memory that the context holds at the end; −1 on the host
    /// Share of the time of all copies during which the device computed; −1 without a trace.
    double hidden = -1;
};

/// Chooses the block sizes for an m×n matrix of T on a device D. Pure; options.memory_bytes must be given.
///
/// Throws InvalidArgument for sizes and options outside their domain and for Gram-Schmidt of a wide matrix. Throws
/// OutOfMemory if the memory is too small for one block; the message says how much is needed.
///
///     OutOfCoreOptions options;
///     options.memory_bytes = 16e9;
///     std::puts(to_string(plan_out_of_core<float, Cuda>(131072, 131072, options)).c_str());
template <class T, class D>
OutOfCorePlan plan_out_of_core(Index m, Index n, const OutOfCoreOptions& options, const OutOfCoreRates& rates = {});

/// Factors A = QR for A in the host's memory on a device that has less memory. The thin Q (m×k, k = min(m, n)) replaces
/// A's first k columns; R is k×n.
///
/// R is written on and above its diagonal, and not everywhere below: fill it with zeros before the call. The method is
/// `options.method`. Householder by slabs (Toledo and Rabani 2002) has ‖I − QᵀQ‖ and ‖A − QR‖/‖A‖ of O(nu) for every A.
/// Classical Gram-Schmidt by recursion (Zhang and Wu 2021; m >= n) has a residual of O(nu), too, where u is the unit
/// roundoff of the arithmetic. Its ‖I − QᵀQ‖ is bounded only if it is reorthogonalised and κ(A)u < 1 (Barlow and
/// Smoktunowicz 2013). 2mn² flops by Gram-Schmidt, twice that with reorthogonalization; 4mn² − 4n³/3 by Householder.
/// The plan has the bytes.
///
/// The device holds blocks, within `options.memory_bytes` in all. Pageable memory is copied through a bounded pool of
/// pinned buffers (256 MiB each way). Pinned memory is read and written in place, which is faster. Blocks until A and R
/// are complete. After an exception A and R are unspecified.
///
/// Throws InvalidArgument as `plan_out_of_core` does and for an R of another shape, NonFiniteEntry, NumericalBreakdown
/// for a column that depends on earlier columns (Gram-Schmidt), OutOfMemory, DeviceFailure, and Interrupted.
///
///     OutOfCoreOptions options;
///     options.memory_bytes = 16e9;
///     OutOfCoreReport report = qr_out_of_core<float, Cuda>(ctx, A, R, options);
template <class T, class D>
OutOfCoreReport qr_out_of_core(Context<D>& ctx, MatrixView<T> A, MatrixView<T> R, const OutOfCoreOptions& options = {});

/// Factors A in place by Householder, in LAPACK's format (geqrf): V below the diagonal of A, R on and above it, tau
/// (k×1). 2mn² − 2n³/3 flops, and no memory but A's. options.method must be Householder.
template <class T, class D>
OutOfCoreReport factor_out_of_core(Context<D>& ctx, MatrixView<T> A, MatrixView<T> tau,
                                   const OutOfCoreOptions& options = {});

/// "householder", "recursive".
const char* to_string(OutOfCoreMethod method);
/// Describes the plan in one paragraph: blocks, bytes each way, flops and predicted time.
std::string to_string(const OutOfCorePlan& plan);

/// Seconds that an out-of-core factorization spent on a device. Overlapping spans count once.
struct OutOfCoreTimes {
    double in = 0, out = 0;                                ///< copies to the device, and from it
    double panels = 0;                                     ///< the device, factoring panels
    double products = 0;                                   ///< the device, all else
    double copies = 0, copies_hidden = 0;                  ///< in either direction; while the device computed
    double product_copies = 0, product_copies_hidden = 0;  ///< only of operands and results of products

    /// Return the hidden shares of the copies' time; 1 if nothing is copied.
    double hidden() const { return copies > 0 ? copies_hidden / copies : 1; }
    double hidden_in_products() const { return product_copies > 0 ? product_copies_hidden / product_copies : 1; }
    /// Returns the largest possible `hidden_in_products`: the time of the products over the time of their copies, at
    /// most 1.
    double hideable_in_products() const { return products < product_copies ? products / product_copies : 1; }
};

/// Adds up the spans of a trace from `since` µs on.
///
///     Trace trace;
///     ctx.attach(&trace);
///     qr_out_of_core<float, Cuda>(ctx, A, R, options);
///     ctx.attach(nullptr);
///     std::printf("%.0f%% of the copies' time was hidden\n", 100 * out_of_core_times(trace).hidden());
OutOfCoreTimes out_of_core_times(const Trace& trace, double since = 0);

}  // namespace quoin
