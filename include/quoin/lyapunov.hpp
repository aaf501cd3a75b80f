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

    virtual Index dimension() const = 0;
    /// Time of one step; 1 for maps.
    virtual double step() const { return 1; }
    /// Makes the following steps `h` long and returns true; false, and no change, for maps and where the step is fixed. A run
    /// compares its exponents with those of half the step if it can.
    virtual bool set_step(double) { return false; }
    /// The system and its parameters, every digit: two maps of one description are one map.
    virtual std::string description() const = 0;
    /// A state to start from, a function of `seed`, or the caller's.
    virtual std::vector<double> initial_state(std::uint64_t seed) const = 0;

    /// Sum of all n exponents, where it is known: the divergence of the flow, log|det DΦ| of the map.
    virtual std::optional<double> divergence() const { return {}; }
    /// Exponents that symmetries and conserved quantities make zero.
    virtual Index vanishing_exponents() const { return 0; }
    /// The conserved energy, where there is one, of a state in the host's memory.
    virtual std::optional<double> energy(std::span<const double>) const { return {}; }
};

/// A dynamical system in steps, with its derivative: x := Φ(x) and X := DΦ(x) X, for the p tangent vectors at once that are
/// the columns of X (n×p), in T and in D's memory. For a flow Φ is the integrator's step of length `step()`, and DΦ the
/// derivative of that very map, so that what holds exactly of Φ (det DΦ = 1, DΦᵀJ DΦ = J) holds of the vectors up to rounding.
template <class T = double, class D = Host>
class TangentMap : public DynamicalSystem {
public:
    /// `steps` times x := Φ(x), X := DΦ(x) X. x: n numbers in D's memory, f64 whatever T is. X may have no columns. The bits
    /// do not depend on the number of threads, nor those of x on X.
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
/// ẋ = a y/(1 + yⁿ) − bx, y = x(t − τ) (Mackey and Glass 1977). The state is x at `intervals` + 1 points of the last delay; a step
/// is τ/intervals, of the Runge-Kutta method of order 4. There are as many exponents as points: the first are those of the
/// equation, the last those of the grid.
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

/// Interactions of particles, in units of ε, σ and the mass. U is shifted, so that U and U' vanish at the cutoff.
enum class Potential {
    LennardJones,  ///< 4(r⁻¹² − r⁻⁶), cutoff 2.5
    Wca,           ///< the same to its minimum, 2^(1/6): repulsion alone (Weeks, Chandler and Andersen 1971)
    Yukawa,        ///< e^{−κr}/r, cutoff 6/κ
    Soft,          ///< 100(1 − r²)⁴, cutoff 1, where three derivatives vanish
};
/// N particles in a periodic square or cube; n = 2dN: positions, then momenta. Velocity Verlet.
///
/// U'' jumps at the cutoff (but for Soft), and Verlet then conserves no energy near H: of the vanishing exponents the pair
/// that belongs to energy and time goes to zero with the step only (WCA, 0.6, T = 1: 0.05 at 0.004, below 0.01 at 0.0005).
struct Particles {
    Index count = 108;
    int dimensions = 3;  ///< 2 or 3
    Potential potential = Potential::Wca;
    double density = 0.6;    ///< N/Lᵈ
    double temperature = 1;  ///< of the first momenta, of which the total is zero
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
    std::optional<double> divergence{};  ///< the mean of div f, where it is known: the sum of all exponents must be it
};
/// A delay differential equation ẋ = f(x(t), x(t − τ)) of the caller's, of d components, with the state and steps of MackeyGlass:
/// n = d(intervals + 1), the oldest point first.
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
    std::optional<double> divergence{};  ///< the mean of log|det DΦ|, where it is known
};

/// Each throws InvalidArgument for a parameter out of its domain.
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

/// The same system with tangent vectors in f32: every call of `advance` computes in f64 and rounds them to f32 at its end.
/// The QR of a spectrum is then one in f32, in half the memory and less time. What rounding adds to λ_i in a segment is of order
/// n·u·cond(Z)/(k h), u = 6e-8, and random: cond(Z) must stay far below 1e7.
std::unique_ptr<TangentMap<float>> with_f32_vectors(std::unique_ptr<TangentMap<>> system);

/// Systems whose state and vectors live and are evolved on a GPU: the map of the host's `tangent_map` up to rounding, the
/// vectors' products in T. A block of vectors stays in shared memory for many steps while it fits there (1100 variables, 2400
/// particles in three dimensions), and else in the GPU's caches. Particles pass through all pairs, N² distances a step. Of
/// Kuramoto-Sivashinsky a step transforms every vector eight times by cuFFT, at least 3·modes + 1 points each; its plans are made
/// here. Of chains and particles `advance` waits once in 16 steps, for what the steps of the state have found, and throws
/// InvalidArgument where particles meet; otherwise it does not wait. Throw as the host's.
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

/// Where a run stands.
struct LyapunovProgress {
    /// The state alone evolves; the vectors turn into their directions; exponents are averaged.
    enum Phase { Transient, Alignment, Sampling } phase = Transient;
    double time = 0;      ///< since the start, transient included
    double fraction = 0;  ///< of all steps
};

/// Choices of a run. Times are rounded up to whole segments of `steps_per_qr` steps.
struct LyapunovOptions {
    Index exponents = 0;     ///< p, the first p; 0: all
    double time = 1000;      ///< over which they are averaged, at most
    double until = 0;        ///< ends the run as soon as no half width of an exponent is larger; 0: after `time`
    double transient = 100;  ///< before it, of the state alone
    double alignment = 100;  ///< after that, of the tangent vectors, not averaged
    Index steps_per_qr =
        10;  ///< at most: where the vectors grow too far apart in a segment, it is cut into shorter ones
    std::uint64_t seed = 1;    ///< of the tangent vectors, and of the state where the system makes it
    Options qr{};              ///< `method`, and its blocks; `q` is Explicit
    std::string checkpoint{};  ///< a file: the run goes on from it where it exists, and is saved to it; empty: none
    double checkpoint_seconds = 60;                             ///< between two saves
    std::function<bool(const LyapunovProgress&)> on_segment{};  ///< after each; false ends the run
};

/// A number, its standard error and half the width of its 95% interval, which is wider than 1.96 errors where few independent
/// batches determine the error; NaN where they are not known.
struct Estimate {
    double value = 0, error = 0, half_width = 0;
};

/// The first p exponents of a run, what follows from them, and how long the run took.
struct LyapunovSpectrum {
    std::vector<Estimate> exponents;  ///< p of them, descending
    Estimate sum;                     ///< of the p exponents
    Estimate kolmogorov_sinai;        ///< sum of those above zero (Pesin 1977); NaN where p end before zero
    /// j + Σ_{i<=j} λ_i / |λ_{j+1}|, j the largest with Σ_{i<=j} λ_i >= 0 (Kaplan and Yorke 1979). NaN where p exponents do
    /// not reach so far.
    Estimate kaplan_yorke;
    /// Exponents above three standard errors and log(K)/T, which vectors that grow linearly have after K segments.
    Index positive = 0;
    Index dimension = 0;                         ///< n
    Index vanishing = 0;                         ///< that the system's symmetries make zero
    std::optional<double> divergence;            ///< what the sum of all n must be
    std::optional<double> energy, energy_drift;  ///< at the end, and since the end of the transient, relative

    std::vector<double> state;   ///< x at the end
    double time = 0;             ///< sampled
    double discarded = 0;        ///< of `time`, at its start: a transient that was found, and is in no result
    Index segments = 0;          ///< sampled; of `steps_per_qr` steps each
    Index steps_between_qr = 0;  ///< `steps_per_qr`, or fewer where the vectors' growth asked for it
    Index skipped = 0;      ///< `series_spectrum`: Jacobians that its neighbours did not determine, in no average
    bool resolved = true;   ///< false where correlations last longer than 1/16 of the time: errors may be too small
    bool completed = true;  ///< false where `on_segment` ended the run
    bool reached = true;    ///< false where the run ended before no half width was above `until`
    Method method = Method::Auto;

    double seconds = 0;  ///< of all parts of the run, also before a checkpoint
    double qr_seconds = 0, tangent_seconds = 0, force_seconds = 0;
    Index reorthonormalisations = 0;  ///< alignment included

    /// Column b holds the averages of the exponents, in their order, over the first `times[b]` after what was discarded.
    std::vector<double> times;
    Matrix<double> averages;
};

/// Half the width of the 95% interval of `averages(i, b)`, by the first b + 1 batches alone; of the last b that of exponent i. NaN for
/// b < 15. O(b) flops.
double half_width_after(const LyapunovSpectrum& spectrum, Index i, Index b);

/// The first p Lyapunov exponents of `system`, λ_i = lim 1/t Σ log|r_ii|, by QR of the tangent vectors every k steps:
///
///     Z := DΦᵏ(x) Q,   x := Φᵏ(x),   Z = QR,   s_i += log|r_ii|
///
/// Benettin, Galgani, Giorgilli and Strelcyn 1980; Shimada and Nagashima 1979; Geist, Parlitz and Lauterborn 1990 compare.
///
/// Errors come from 128 to 255 batches whose length grows with the run, as a moving average of order 1 after groups of them have
/// outgrown their correlations; where log|r_ii| is a difference of a bounded function along the orbit, as that of the flow's
/// direction is, the error is O(1/T). Intervals include the error of the step, by a comparison with half the step over 1/64 of the
/// run, at least 16 segments, after its end, if `set_step` can and the run is completed; and rounding. A transient at the start is found by the marginal standard error (White 1997) and left out.
/// In a system that conserves energy the intervals of exponents near 0 include log(K)/T, which vectors that grow linearly have.
/// No error knows the bias of vectors that have not found their directions, nor a motion slower than the run.
///
/// R says how far a segment may go: a column of Z that keeps less than 1000u of its length after projection off those before it,
/// or that QR refuses, has too few digits. The segment is then repeated in twice as many parts, with a QR each.
///
/// Costs a QR of n×p a segment, 4np² flops, the system's own tangent products, and a copy of the vectors. A run has the same bits
/// for any number of threads, and where it was stopped, or killed, and went on from its checkpoint. On a GPU state, vectors and
/// QR stay in its memory, and the seconds of the parts are those between events on its stream. Blocks until done.
///
/// Throws InvalidArgument (p, a time, a checkpoint of another run), NonFiniteEntry (the orbit or a tangent vector left the
/// numbers; the message has the time), NumericalBreakdown (vectors too near each other after a single step; the sum of all
/// exponents is not the known divergence), UnreadableFile, UnwritableFile, OutOfMemory, Interrupted (after saving the checkpoint).
///
///     Context<Host> ctx;
///     auto system = tangent_map(Lorenz96{.size = 40, .forcing = 8});
///     auto f = lyapunov_spectrum(ctx, *system, {.time = 1000});  // f.exponents[0].value, f.kaplan_yorke
template <class T, class D>
LyapunovSpectrum lyapunov_spectrum(Context<D>& ctx, TangentMap<T, D>& system, const LyapunovOptions& options = {});

/// "lennard-jones", "wca", "yukawa", "soft".
const char* to_string(Potential potential);

}  // namespace quoin
