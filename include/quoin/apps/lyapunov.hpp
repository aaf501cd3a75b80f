#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quoin/options.hpp"

namespace quoin {

struct Cuda;

/// Properties of a dynamical system that do not depend on the device.
class DynamicalSystem {
public:
    virtual ~DynamicalSystem() = default;

    /// Returns n, the size of the state.
    virtual Index dimension() const = 0;
    /// Returns the time of one step; 1 for maps.
    virtual double step() const { return 1; }
    /// Sets the length of the following steps and returns true. Returns false without a change for maps and for a fixed
    /// step. If it can, a run compares its exponents with the exponents at half the step.
    virtual bool set_step(double) { return false; }
    /// Describes the system and its parameters, with every digit. Two maps with one description are the same map.
    virtual std::string description() const = 0;
    /// Returns a state to start from: a function of `seed`, or the caller's own state.
    virtual std::vector<double> initial_state(std::uint64_t seed) const = 0;

    /// Returns the sum of all n exponents, if it is known: the divergence of the flow, log|det DΦ| of the map.
    virtual std::optional<double> divergence() const { return {}; }
    /// Returns the number of exponents that symmetries and conserved quantities make zero.
    virtual Index vanishing_exponents() const { return 0; }
    /// Returns the energy of a state in the host's memory, if the system conserves one.
    virtual std::optional<double> energy(std::span<const double>) const { return {}; }
};

/// A dynamical system in steps, with its derivative: x := Φ(x) and X := DΦ(x) X. The columns of X (n×p, of T, in D's
/// memory) are p tangent vectors. For a flow Φ is the integrator's step of length `step()`, and DΦ is the derivative of
/// exactly this map. So exact properties of Φ (det DΦ = 1, DΦᵀJ DΦ = J) hold for the vectors up to rounding.
template <class T = double, class D = Host>
class TangentMap : public DynamicalSystem {
public:
    /// Does x := Φ(x), X := DΦ(x) X `steps` times. x: n numbers in D's memory, f64 for every T. X may have no columns.
    /// The bits do not depend on the number of threads, and the bits of x do not depend on X.
    virtual void advance(Context<D>& ctx, Index steps, std::span<double> x, MatrixView<T, D> X) = 0;
};

/// ẋ = σ(y − x), ẏ = x(ρ − z) − y, ż = xy − βz (Lorenz 1963).
struct Lorenz63 {
    double sigma = 10, rho = 28, beta = 8. / 3, step = 0.01;
};
/// x' = 1 − ax² + y, y' = bx (Hénon 1976).
struct Henon {
    double a = 1.4, b = 0.3;
};
/// ẋ_i = (x_{i+1} − x_{i−2}) x_{i−1} − x_i + F, i modulo N >= 4 (Lorenz 1996).
struct Lorenz96 {
    Index size = 40;
    double forcing = 8, step = 0.02;
};
/// u_t = −u_xx − u_xxxx − u u_x, of period L and mean zero, in `modes` Fourier modes without aliasing. (The mean is
/// conserved and only moves the frame; it would add one exponent that is exactly 0.) Exponential time differencing,
/// ETDRK4 (Cox and Matthews 2002; Kassam and Trefethen 2005).
struct KuramotoSivashinsky {
    double length = 22;
    Index modes = 0;  ///< n = 2·modes; 0: wavenumbers to 4.5
    double step = 0.1;
};
/// ẋ = a y/(1 + yⁿ) − bx, y = x(t − τ) (Mackey and Glass 1977). The state is x at `intervals` + 1 points of the last
/// delay; a step is τ/intervals, of the Runge-Kutta method of order 4. There are intervals + 1 exponents. The first
/// ones belong to the equation, the last ones to the grid.
struct MackeyGlass {
    double a = 0.2, b = 0.1, power = 10, tau = 17;
    Index intervals = 100;  ///< of the delay, at least 3; n = intervals + 1
};
/// H = Σ p²/2 + Σ (Δ²/2 + βΔ⁴/4), Δ the stretch of a spring (Fermi, Pasta, Ulam and Tsingou 1955). Velocity Verlet.
struct FputBeta {
    Index size = 32;  ///< masses; n = 2·size
    double beta = 1;
    double energy = 1;      ///< a mass
    bool periodic = false;  ///< a ring; otherwise between two walls
    double step = 0.05;
};

/// Interactions of particles, in units of ε, σ and the mass. U is shifted so that U and U' vanish at the cutoff.
enum class Potential {
    LennardJones,  ///< 4(r⁻¹² − r⁻⁶), cutoff 2.5
    Wca,           ///< Lennard-Jones up to its minimum, 2^(1/6): repulsion alone (Weeks, Chandler and Andersen 1971)
    Yukawa,        ///< e^{−κr}/r, cutoff 6/κ
    Soft,          ///< 100(1 − r²)⁴, cutoff 1, where three derivatives vanish
};
/// N particles in a periodic square or cube; n = 2dN: positions, then momenta. Velocity Verlet.
///
/// U'' jumps at the cutoff (except for Soft), and Verlet then conserves no energy near H. So the pair of vanishing
/// exponents that belongs to energy and time only goes to zero with the step (WCA, 0.6, T = 1: 0.05 at 0.004, below
/// 0.01 at 0.0005).
struct Particles {
    Index count = 108;
    int dimensions = 3;  ///< 2 or 3
    Potential potential = Potential::Wca;
    double density = 0.6;    ///< N/Lᵈ
    double temperature = 1;  ///< of the first momenta; their total is zero
    double kappa = 1;        ///< Yukawa's
    double cutoff = 0;       ///< 0: as `Potential` says
    double step = 0.002;
};

/// A flow dx/dt = f(x) of the caller's, integrated by Dormand and Prince's method of order 5 (Boost.Odeint).
struct UserFlow {
    std::vector<double> x0;
    std::function<void(const double* x, double* dx)> field;  ///< dx := f(x)
    /// dX := Df(x) X, n×p. Called by one thread, which may start more.
    std::function<void(const double* x, MatrixView<const double> X, MatrixView<double> dX)> jvp;
    double step = 0.01;
    std::optional<double> divergence{};  ///< the mean of div f, if known: must equal the sum of all exponents
};
/// A delay differential equation ẋ = f(x(t), x(t − τ)) of the caller's, of d components, with the state and steps of
/// MackeyGlass: n = d(intervals + 1), the oldest point first.
struct UserDelayFlow {
    std::vector<double> x0;                                  ///< d numbers: x(t) for all t <= 0
    std::function<void(const double* z, double* dx)> field;  ///< dx := f(x, y), z = [x; y]
    /// dX := Df(z) Z, Z = [X; Y], 2d×p. Called by one thread, which may start more.
    std::function<void(const double* z, MatrixView<const double> Z, MatrixView<double> dX)> jvp;
    double tau = 1;
    Index intervals = 100;
};
/// A map of the caller's.
struct UserMap {
    std::vector<double> x0;
    std::function<void(const double* x, double* y)> map;                                         ///< y := Φ(x)
    std::function<void(const double* x, MatrixView<const double> X, MatrixView<double> Y)> jvp;  ///< Y := DΦ(x) X
    std::optional<double> divergence{};  ///< the mean of log|det DΦ|, if known
};

/// Make the systems. Each throws InvalidArgument for a parameter out of its domain.
std::unique_ptr<TangentMap<>> tangent_map(const Lorenz63&);
std::unique_ptr<TangentMap<>> tangent_map(const Henon&);
std::unique_ptr<TangentMap<>> tangent_map(const Lorenz96&);
std::unique_ptr<TangentMap<>> tangent_map(const KuramotoSivashinsky&);
std::unique_ptr<TangentMap<>> tangent_map(const MackeyGlass&);
std::unique_ptr<TangentMap<>> tangent_map(const FputBeta&);
std::unique_ptr<TangentMap<>> tangent_map(const Particles&);
std::unique_ptr<TangentMap<>> tangent_map(UserFlow);
std::unique_ptr<TangentMap<>> tangent_map(UserDelayFlow);
std::unique_ptr<TangentMap<>> tangent_map(UserMap);

/// Wraps a system for tangent vectors in f32. Every call of `advance` computes in f64 and rounds the vectors to f32 at
/// its end. The QR of a spectrum is then done in f32, in half the memory and less time. In a segment, rounding adds a
/// random error of order n·u·cond(Z)/(k h) to λ_i, u = 6e-8. cond(Z) must stay far below 1e7.
std::unique_ptr<TangentMap<float>> with_f32_vectors(std::unique_ptr<TangentMap<>> system);

/// Make systems whose state and vectors are kept and evolved on a GPU: the map of the host's `tangent_map` up to
/// rounding, with the vectors' products in T. A block of vectors stays in shared memory for many steps if it fits there
/// (1100 variables, 2400 particles in three dimensions), otherwise in the GPU's caches. Particles go through all pairs,
/// N² distances a step. A step of Kuramoto-Sivashinsky transforms every vector eight times by cuFFT, at least 3·modes +
/// 1 points each; these functions make the cuFFT plans. For chains and particles `advance` waits once in 16 steps for
/// the status of the state's steps, and throws InvalidArgument if particles meet. Other systems do not wait. The
/// functions throw as the host's do.
///
///     Context<Cuda> gpu;
///     auto fluid = tangent_map<float>(gpu, Particles{.count = 1000});
///     auto f = lyapunov_spectrum(gpu, *fluid, {.time = 10});
template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>& ctx, const Lorenz63&);
template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>& ctx, const Henon&);
template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>& ctx, const Lorenz96&);
template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>& ctx, const KuramotoSivashinsky&);
template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>& ctx, const FputBeta&);
template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>& ctx, const Particles&);

/// Progress of a run.
struct LyapunovProgress {
    /// The state alone evolves; the vectors turn into their directions; exponents are averaged.
    enum Phase { Transient, Alignment, Sampling } phase = Transient;
    double time = 0;      ///< since the start, including the transient
    double fraction = 0;  ///< of all steps
};

/// Choices of a run. Times are rounded up to whole segments of `steps_per_qr` steps.
struct LyapunovOptions {
    Index exponents = 0;             ///< p, the first p; 0: all
    double time = 1000;              ///< the longest time over which exponents are averaged
    double until = 0;                ///< ends the run once every exponent's half width is at most this; 0: after `time`
    double transient = 100;          ///< time before averaging, of the state only
    double alignment = 100;          ///< time after the transient for the vectors to align, not averaged
    Index steps_per_qr = 10;         ///< at most: a segment is split if its vectors grow too far apart
    std::uint64_t seed = 1;          ///< seeds the tangent vectors, and the state unless the caller gave it
    Options qr{};                    ///< `method`, and its blocks; `q` is Explicit
    std::string checkpoint{};        ///< a file to continue from, if it exists, and to save to; empty: none
    double checkpoint_seconds = 60;  ///< between two saves
    std::function<bool(const LyapunovProgress&)> on_segment{};  ///< called after each segment; false ends the run
};

/// A number, its standard error and half the width of its 95% interval. The half width is above 1.96 errors if few
/// independent batches determine the error. NaN: unknown.
struct Estimate {
    double value = 0, error = 0, half_width = 0;
};

/// The first p exponents of a run, quantities derived from them, and the times of the run.
struct LyapunovSpectrum {
    std::vector<Estimate> exponents;  ///< p of them, descending
    Estimate sum;                     ///< of the p exponents
    Estimate kolmogorov_sinai;        ///< sum of the exponents above zero (Pesin 1977); NaN if all p < n are above zero
    /// j + Σ_{i<=j} λ_i / |λ_{j+1}|, j the largest with Σ_{i<=j} λ_i >= 0 (Kaplan and Yorke 1979). NaN if p exponents
    /// are too few to find j.
    Estimate kaplan_yorke;
    /// Number of exponents above three standard errors and above log(K)/T, the exponent of vectors that grow linearly
    /// after K segments.
    Index positive = 0;
    Index dimension = 0;                         ///< n
    Index vanishing = 0;                         ///< number of exponents that the system's symmetries make zero
    std::optional<double> divergence;            ///< the known sum of all n exponents
    std::optional<double> energy, energy_drift;  ///< at the end, and since the end of the transient, relative

    std::vector<double> state;   ///< x at the end
    double time = 0;             ///< sampled
    double discarded = 0;        ///< part of `time` at its start: a detected transient, left out of all results
    Index segments = 0;          ///< sampled; of `steps_per_qr` steps each
    Index steps_between_qr = 0;  ///< `steps_per_qr`, or fewer if the vectors grew too far apart
    Index skipped = 0;           ///< `series_spectrum`: Jacobians that their neighbours did not determine; left out
    bool resolved = true;        ///< false if correlations last longer than 1/16 of the time: errors may be too small
    bool completed = true;       ///< false if `on_segment` ended the run
    bool reached = true;         ///< false if `until` is above 0 and the run ended with a larger half width
    Method method = Method::Auto;

    double seconds = 0;  ///< of all parts of the run, including those before a checkpoint
    double qr_seconds = 0, tangent_seconds = 0, force_seconds = 0;
    Index reorthonormalisations = 0;  ///< including the alignment

    /// Column b holds the averages of the exponents, in their order, over the first `times[b]` after the discarded
    /// time.
    std::vector<double> times;
    Matrix<double> averages;
};

/// Returns half the width of the 95% interval of `averages(i, b)`, computed from the first b + 1 batches. For the last
/// b it is the half width of exponent i. NaN for b < 15. O(b) flops.
double half_width_after(const LyapunovSpectrum& spectrum, Index i, Index b);

/// Computes the first p Lyapunov exponents of `system`, λ_i = lim 1/t Σ log|r_ii|, by QR of the tangent vectors every k
/// steps:
///
///     Z := DΦᵏ(x) Q,   x := Φᵏ(x),   Z = QR,   s_i += log|r_ii|
///
/// See Benettin, Galgani, Giorgilli and Strelcyn 1980, and Shimada and Nagashima 1979. Geist, Parlitz and Lauterborn
/// 1990 compare methods.
///
/// Errors are estimated from 128 to 255 batches whose length grows with the run. Groups of batches longer than the
/// correlations are modelled as a moving average of order 1. If log|r_ii| is a difference of a bounded function along
/// the orbit, as for the flow's direction, the error is O(1/T). Intervals include rounding, and the error of the step
/// if `set_step` can change it and the run is completed. The error of the step comes from a comparison with half the
/// step after the run's end, over 1/64 of the run and at least 16 segments. A transient at the start is found by the
/// marginal standard error (White 1997) and left out. In a system that conserves energy the intervals of exponents near
/// 0 include log(K)/T, the exponent of vectors that grow linearly. Errors do not include the bias of vectors that have
/// not found their directions, or motion slower than the run.
///
/// R limits the length of a segment. A column of Z has too few digits if it keeps less than 1000u of its length after
/// projection off the earlier columns, or if QR refuses it. The segment is then repeated in twice as many parts, with a
/// QR each.
///
/// Costs a QR of n×p a segment, 4np² flops, the system's own tangent products, and a copy of the vectors. A run has the
/// same bits for any number of threads, also if it was stopped or killed and continued from its checkpoint. On a GPU
/// state, vectors and QR stay in its memory, and the seconds of the parts are measured by events on its stream. Blocks
/// until done.
///
/// Throws InvalidArgument (p, a time, a checkpoint of another run), NonFiniteEntry (the orbit or a tangent vector
/// became NaN or Inf; the message has the time), NumericalBreakdown (vectors too near each other after a single step;
/// the sum of all exponents is not the known divergence), UnreadableFile, UnwritableFile, OutOfMemory, Interrupted
/// (after saving the checkpoint).
///
///     Context<Host> ctx;
///     auto system = tangent_map(Lorenz96{.size = 40, .forcing = 8});
///     auto f = lyapunov_spectrum(ctx, *system, {.time = 1000});  // f.exponents[0].value, f.kaplan_yorke
template <class T, class D>
LyapunovSpectrum lyapunov_spectrum(Context<D>& ctx, TangentMap<T, D>& system, const LyapunovOptions& options = {});

/// "lennard-jones", "wca", "yukawa", "soft".
const char* to_string(Potential potential);

}  // namespace quoin
