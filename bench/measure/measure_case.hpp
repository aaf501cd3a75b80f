#pragma once

#include "flop_counts.hpp"
#include "measure/energy_meter.hpp"
#include "measure/machine_limits.hpp"
#include "quoin/quoin.hpp"

namespace quoin::cli {

/// The operation that is timed, and its LAPACK routines.
enum class Operation {
    ThinQr,  ///< R and thin Q: geqrf + orgqr
    ROnly,   ///< R alone: geqrf
    Geqrf,   ///< LAPACK's format, V, tau and R: geqrf
    Factor,  ///< R and Q as the method holds it: geqrf
    Geqrt3,  ///< V, R and one T for all columns: geqrt3
    Geqrt,   ///< the same against geqrt, whose T are 32 columns wide
    Lstsq,   ///< least squares with one right-hand side: gels
    Svd,     ///< thin singular value decomposition: gesdd
};

inline constexpr auto all_operations = {Operation::ThinQr, Operation::ROnly, Operation::Geqrf, Operation::Factor,
                                        Operation::Geqrt3, Operation::Geqrt, Operation::Lstsq, Operation::Svd};

/// "thin-qr", "r-only", "geqrf", "factor", "geqrt3", "geqrt", "lstsq", "svd".
const char* to_string(Operation operation);

/// The standard flop count of the operation on an m×n matrix.
double operation_flops(Operation operation, Index m, Index n);

/// Returns the form of Q of the operation.
QForm form_of_q(Operation operation);

struct MeasureSettings {
    Options options;
    int repeat = 0;  ///< timed runs; 0: as `medians_of` decides
    bool against_lapack = true;
    EnergyMeter* energy = nullptr;  ///< of the host, where joules are asked for
};

/// Medians of wall times. Quantities that were not measured are negative.
struct Measurement {
    Method method = Method::Auto;
    double seconds = 0;
    double reference_seconds = -1;
    double joules = -1, reference_joules = -1;  ///< mean power while it is repeated, times the seconds of a run
    double orthogonality = -1;
    double residual = -1;
};

/// Returns the bytes that `measure_case` needs in addition to A.
template <class T>
double measure_case_bytes(const Context<Host>& ctx, Operation operation, Index m, Index n,
                          const MeasureSettings& settings);

/// Times the operation on A by Quoin and by LAPACK in turn, each run on a fresh copy of A made outside the timed region
/// into memory already touched, as `medians_of` says. The accuracy is measured on Quoin's last answer: R and
/// thin Q, which for Geqrf LAPACK's own orgqr forms from Quoin's V and tau.
template <class T>
Measurement measure_case(Context<Host>& ctx, Operation operation, MatrixView<const T> A,
                         const MeasureSettings& settings);

/// The least time the machine could take over the time taken: the larger of flops / arithmetic rate and compulsory
/// bytes / copy rate, over `seconds`. Compulsory: A read once, Q or the reflectors written once.
double limit_fraction(Operation operation, Index m, Index n, ScalarKind dtype, const MachineLimits& limits,
                      double seconds);

}  // namespace quoin::cli
