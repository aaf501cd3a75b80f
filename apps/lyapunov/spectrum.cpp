#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "algorithms/shared/copies.hpp"
#include "devices.hpp"
#include "lyapunov/checkpoint.hpp"
#include "lyapunov/estimates.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"
#include "lyapunov/segments.hpp"
#include "quoin/apps/lyapunov.hpp"
#include "quoin/qr.hpp"

namespace quoin {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// to := A, in host memory. Waits.
template <class T>
void copy_out(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T> to) {
    copy<T>(ctx, A, to);
}
#ifdef QUOIN_HAVE_CUDA
template <class T>
void copy_out(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T> to) {
    copy_to_host<T>(ctx, A, to);
}
#endif

template <class T, class D>
class Run {
public:
    Run(Context<D>& ctx, TangentMap<T, D>& system, const LyapunovOptions& options)
        : ctx_(ctx),
          system_(system),
          options_(options),
          n_(system.dimension()),
          p_(checked_exponents(options.exponents, n_)),
          state_(n_, p_),
          x_(ctx, n_, 1),
          diagonal_(ctx, p_, 1),
          diagonal_on_host_(p_, 1),
          rounding_(static_cast<std::size_t>(p_)) {
        require_at_least<Index>("steps_per_qr", options.steps_per_qr, 1);
        require_positive("time", options.time);
        require_finite("until", options.until);
        require_at_least<double>("until", options.until, 0);
        require_positive("checkpoint_seconds", options.checkpoint_seconds);
        tau_ = static_cast<double>(options.steps_per_qr) * system.step();
        transient_ = segments_of("transient", options.transient, tau_);
        aligned_ = transient_ + segments_of("alignment", options.alignment, tau_);
        end_ = aligned_ + segments_of("time", options.time, tau_);
        Options qr_options = options.qr;
        qr_options.q = QForm::Explicit;
        qr_options.check_finite = true;
        qr_options.verify = false;
        plan_ = plan_qr<T>(ctx, n_, p_, qr_options);
        method_ = plan_.method;
    }

    LyapunovSpectrum run() {
        begin();
        bool completed = true;
        try {
            while (completed && state_.segment < end_ && !is_exact_enough()) {
                throw_if_stopped(ctx_);
                segment();
                if (options_.on_segment) completed = options_.on_segment(progress());
                if (since(saved_) > options_.checkpoint_seconds) save();
            }
        } catch (const Error& error) {
            // an orbit that left the numbers is no state to go on from
            if (error.code() == ErrorCode::Interrupted && whole_) save();
            throw;
        } catch (...) {
            if (whole_) save();
            throw;
        }
        save();
        return result(completed);
    }

private:
    /// Returns the settings that, together with the state, determine the bits of the rest of a run.
    std::string identity() const {
        std::string plan = to_string(plan_);
        std::replace(plan.begin(), plan.end(), '\n', ';');
        return fmt::format(
            "system: {}\nvectors: f{} on {}\nexponents: {}\nsteps per QR: {}\nseed: {}\ntransient segments: "
            "{}\nalignment segments: {}\nQR: {}\n",
            system_.description(), 8 * sizeof(T), std::is_same_v<D, Host> ? "host" : "cuda", p_, options_.steps_per_qr,
            options_.seed, transient_, aligned_ - transient_, plan);
    }

    void begin() {
        if (!options_.checkpoint.empty()) {
            Matrix<T> Q;
            if (auto state = load_checkpoint<T>(options_.checkpoint, identity(), n_, p_, Q)) {
                state_ = std::move(*state);
                saved_segment_ = state_.segment;
                put_state();
                put_vectors(Q);
                return;
            }
        }
        state_.x = system_.initial_state(options_.seed);
        require_finite_state();
        put_state();
    }

    MatrixView<double> host_state() { return {state_.x.data(), n_, 1}; }
    void put_state() { x_ = device_copy_of<double, D>(ctx_, host_state()); }
    void put_vectors(const Matrix<T>& Q) { Q_ = device_copy_of<T, D>(ctx_, Q.view()); }

    double time() const { return static_cast<double>(state_.segment) * tau_; }

    LyapunovProgress progress() const {
        const auto phase = state_.segment < transient_ ? LyapunovProgress::Transient
                           : state_.segment < aligned_ ? LyapunovProgress::Alignment
                                                       : LyapunovProgress::Sampling;
        return {phase, time(), static_cast<double>(state_.segment) / static_cast<double>(end_)};
    }

    void require_finite_state() const { quoin::require_finite_state(state_.x, time(), system_.step()); }

    /// x := Φᵏ(x), Z := DΦᵏ(x) Q = Q'R.
    void segment() {
        whole_ = false;
        const Clock::time_point start = Clock::now();
        const bool in_transient = state_.segment < transient_;
        if (!in_transient && Q_.cols() == 0) first_vectors();
        if (!in_transient && (forces_seconds_ == 0 || state_.segment % segments_per_measurement == 0)) measure_forces();
        ++state_.segment;
        if (in_transient) {
            advance(options_.steps_per_qr);
        } else {
            const std::vector<double> x = state_.x;
            Matrix<T, D> Q;
            if (can_be_cut()) Q = copied(Q_);
            std::vector<double> logarithms(static_cast<std::size_t>(p_));
            evolution_seconds_ = qr_seconds_ = 0;
            while (!evolve_vectors(logarithms)) {
                state_.parts = std::min(2 * state_.parts, options_.steps_per_qr);
                state_.x = x;
                put_state();
                Q_ = copied(Q);
            }
            if (state_.segment > aligned_) state_.batches.add(logarithms);
            const double forces = std::min(forces_seconds_, evolution_seconds_);
            state_.force_seconds += forces;
            state_.tangent_seconds += evolution_seconds_ - forces;
            state_.qr_seconds += qr_seconds_;
        }
        state_.seconds += since(start);
        whole_ = true;
    }

    template <class S>
    Matrix<S, D> copied(const Matrix<S, D>& A) {
        return copy_of<S, D>(ctx_, A.view());
    }

    void advance(Index steps) {
        WorkTimer<D> evolution(ctx_);
        system_.advance(ctx_, steps, {x_.data(), static_cast<std::size_t>(n_)}, Q_.view());
        evolution.stop();
        evolution_seconds_ += evolution.seconds();
        copy_out<double>(ctx_, std::as_const(x_).view(), host_state());
        require_finite_state();
    }

    /// A segment in `parts`, each followed by Z = Q'R; log|r_ii| of all parts are added up. False if a part was too
    /// long. `halves`: 2 if the system's step has been halved, and otherwise 1.
    bool evolve_vectors(std::vector<double>& logarithms, Index halves = 1) {
        const Index k = options_.steps_per_qr, parts = state_.parts;
        std::fill(logarithms.begin(), logarithms.end(), 0.);
        std::fill(rounding_.begin(), rounding_.end(), 0.);
        for (Index part = 0; part < parts; ++part) {
            advance(halves * ((part + 1) * k / parts - part * k / parts));
            WorkTimer<D> reorthonormalisation(ctx_);
            Matrix<T, D> R;
            try {
                R = reorthonormalise();
            } catch (const NonFiniteEntry&) {
                if (!can_be_cut()) throw;
                return false;
            } catch (const NumericalBreakdown&) {
                if (!can_be_cut()) throw;
                return false;
            }
            reorthonormalisation.stop();
            qr_seconds_ += reorthonormalisation.seconds();
            if (!add_logarithms(R, logarithms)) return false;
        }
        return true;
    }
    bool can_be_cut() const { return state_.parts < options_.steps_per_qr; }

    /// Returns false if a column of R shows that r_jj has too few digits: its error is u ‖R(:, j)‖.
    bool add_logarithms(const Matrix<T, D>& R, std::vector<double>& logarithms) {
        copy_diagonal<T>(ctx_, R.view(), diagonal_.view());
        copy_out<T>(ctx_, std::as_const(diagonal_).view(), diagonal_on_host_.view());
        std::vector<T> norms(static_cast<std::size_t>(p_));
        column_norms<T>(ctx_, R.view(), norms);
        for (Index j = 0; j < p_; ++j) {
            const double r = std::abs(static_cast<double>(diagonal_on_host_(j, 0)));
            const double norm = static_cast<double>(norms[static_cast<std::size_t>(j)]);
            if (lacks_digits<T>(r, norm)) {
                if (can_be_cut()) return false;
                if (r > 0) {
                    throw NumericalBreakdown(
                        fmt::format("tangent vector {} at time {:.6g} keeps {:.1e} of its length after one step: a "
                                    "shorter step, or fewer exponents",
                                    j + 1, time(), r / norm),
                        j);
                }
            }
            logarithms[static_cast<std::size_t>(j)] += std::log(r);
            if (r > 0) rounding_[static_cast<std::size_t>(j)] += Scalar<T>::u * norm / r;
        }
        return true;
    }

    /// Whether the half widths are at most `until`, asked each time that the run has become 7% longer.
    bool is_exact_enough() const {
        const Index sampled = state_.batches.segments();
        const auto tenths = [](Index count) { return std::floor(10 * std::log2(static_cast<double>(count))); };
        if (options_.until == 0 || sampled < 64 || tenths(sampled) == tenths(sampled - 1)) return false;
        LyapunovSpectrum so_far;
        estimate_into(so_far);
        return reached(so_far);
    }
    bool reached(const LyapunovSpectrum& f) const {
        const auto small = [&](const Estimate& e) { return e.half_width <= options_.until; };
        return options_.until == 0 || std::all_of(f.exponents.begin(), f.exponents.end(), small);
    }
    void estimate_into(LyapunovSpectrum& f, const Resolution& resolution = {}) const {
        f.dimension = n_;
        estimate(state_.batches, tau_, system_.energy(state_.x).has_value(), f, resolution);
    }

    /// Returns the errors that the step and rounding may have added to the exponents. It measures them on a stretch
    /// after the run, 1/64 of its length and at most 4096 segments, with the step and with half of it. Restores the
    /// state and the vectors of the run's end. Returns an empty Resolution if the system cannot go on, or if its
    /// vectors need shorter segments.
    Resolution resolution() {
        const double h = system_.step();
        const std::vector<double> end = state_.x;
        Matrix<double, D> x = copied(x_);
        Matrix<T, D> Q = copied(Q_);
        Resolution found;
        const auto restore = [&] {
            system_.set_step(h);
            state_.x = end;
            x_ = std::move(x);
            Q_ = std::move(Q);
        };
        try {
            if (!compare_with_half_step(h, found)) found = {};
        } catch (const Error& error) {
            restore();
            if (error.code() == ErrorCode::Interrupted) throw;
            return {};
        } catch (...) {
            restore();
            throw;
        }
        restore();
        return found;
    }

    /// Runs two copies of the system, one with the step and one with half of it. Both start from one state again before
    /// perturbations have grown by e², so that their difference is due to the step. In regular motion perturbations
    /// never grow that far, and each copy reaches its own attractor. Without friction there is no attractor, and the
    /// copies start again every segment. Returns false if a segment is too long or there are fewer segments than
    /// pieces.
    bool compare_with_half_step(double h, Resolution& found) {
        constexpr Index pieces = Resolution::pieces;
        const Index sampled = state_.batches.segments();
        if (sampled < pieces) return false;
        const Index length = std::clamp<Index>(sampled / 64 / pieces, 1, 256);  // of a piece
        const std::vector<double> totals = state_.batches.total();
        const double growth = *std::max_element(totals.begin(), totals.end()) / static_cast<double>(sampled);
        const bool has_step = system_.set_step(h), conservative = system_.energy(state_.x).has_value();
        found.differences = Matrix<double>(p_, has_step ? pieces : 0);
        std::fill_n(found.differences.data(), found.differences.rows() * found.differences.cols(), 0.);
        found.rounding.assign(static_cast<std::size_t>(p_), 0.);

        const double k = static_cast<double>(options_.steps_per_qr), n = static_cast<double>(n_);
        std::vector<double> logarithms(static_cast<std::size_t>(p_));
        Matrix<double, D> x;  // with half the step
        Matrix<T, D> Q;
        double grown = std::numeric_limits<double>::infinity();  // log of a perturbation since the copies were one
        for (Index s = 0; s < pieces * length; ++s, grown += growth) {
            throw_if_stopped(ctx_);
            if (has_step && (grown + growth > 2 || conservative)) {
                x = copied(x_);
                Q = copied(Q_);
                grown = 0;
            }
            if (!evolve_vectors(logarithms)) return false;
            for (std::size_t i = 0; i < logarithms.size(); ++i) {
                found.rounding[i] +=
                    2 * (std::sqrt(n) + k) * rounding_[i] / (static_cast<double>(pieces * length) * tau_);
            }
            if (!has_step) continue;
            const std::vector<double> whole = logarithms;
            std::swap(x, x_);
            std::swap(Q, Q_);
            system_.set_step(h / 2);
            if (!evolve_vectors(logarithms, 2)) return false;
            system_.set_step(h);
            std::swap(x, x_);
            std::swap(Q, Q_);
            for (std::size_t i = 0; i < logarithms.size(); ++i) {
                found.differences(static_cast<Index>(i), s / length) +=
                    (whole[i] - logarithms[i]) / (static_cast<double>(length) * tau_);
            }
        }
        return true;
    }

    /// Q of a matrix of normal numbers.
    void first_vectors() {
        put_vectors(normal_matrix<T>(options_.seed + vectors_seed, n_, p_));
        reorthonormalise();
        state_.first_energy = system_.energy(state_.x).value_or(0);
    }

    /// Q := Q' of Q = Q'R; returns R.
    Matrix<T, D> reorthonormalise() {
        const double between = tau_ / static_cast<double>(state_.parts);
        try {
            Context<D>& ctx = qr_context();
            QR<T, D> f = qr<T, D>(ctx, std::move(Q_), plan_);
            method_ = f.report().method;
            ThinQR<T, D> thin = std::move(f).take_thin(ctx);
            Q_ = std::move(thin.Q);
            return std::move(thin.R);
        } catch (const NonFiniteEntry& e) {
            throw NonFiniteEntry(
                e.row, e.col,
                fmt::format("the matrix of tangent vectors at time {:.6g} (reorthonormalised every {:.6g})", time(),
                            between));
        } catch (const NumericalBreakdown& e) {
            throw NumericalBreakdown(
                fmt::format("the tangent vectors at time {:.6g} are too near each other (reorthonormalised every "
                            "{:.6g}): {}",
                            time(), between, e.what()),
                e.column);
        }
    }

    Context<D>& qr_context() {
        if constexpr (std::is_same_v<D, Host>) {
            if (4.0 * static_cast<double>(n_ * p_ * p_) < worth_a_team) return alone_;
        }
        return ctx_;
    }

    /// Measures the time of a segment of the state alone: vector field, forces.
    void measure_forces() {
        Matrix<double, D> x = copied(x_);
        WorkTimer<D> timer(ctx_);
        system_.advance(ctx_, options_.steps_per_qr, {x.data(), static_cast<std::size_t>(n_)}, {});
        timer.stop();
        forces_seconds_ = timer.seconds();
    }

    void save() {
        saved_ = Clock::now();
        if (options_.checkpoint.empty() || saved_segment_ == state_.segment) return;
        const Matrix<T> Q = host_copy_of<T, D>(ctx_, Q_.view());
        save_checkpoint<T>(options_.checkpoint, identity(), state_, Q.view());
        saved_segment_ = state_.segment;
    }

    LyapunovSpectrum result(bool completed) {
        LyapunovSpectrum result;
        const Clock::time_point start = Clock::now();
        estimate_into(result, completed ? resolution() : Resolution{});
        result.reached = reached(result);
        result.steps_between_qr = (options_.steps_per_qr + state_.parts - 1) / state_.parts;
        result.vanishing = system_.vanishing_exponents();
        result.divergence = system_.divergence();
        result.state = state_.x;
        result.energy = system_.energy(state_.x);
        if (result.energy && Q_.cols() > 0) {
            result.energy_drift = (*result.energy - state_.first_energy) / std::abs(state_.first_energy);
        }
        result.completed = completed || state_.segment >= end_;
        if (!has_known_sum(result)) {
            throw NumericalBreakdown(
                fmt::format("the {} exponents have the sum {:.6g} ± {:.2g}, which must be {:.6g}: a shorter step, or "
                            "fewer exponents",
                            n_, result.sum.value, result.sum.half_width, *result.divergence),
                0);
        }
        result.method = method_;
        result.seconds = state_.seconds + since(start);
        result.qr_seconds = state_.qr_seconds;
        result.tangent_seconds = state_.tangent_seconds;
        result.force_seconds = state_.force_seconds;
        result.reorthonormalisations = std::max<Index>(0, state_.segment - transient_);
        return result;
    }

    // A small QR, thousands of times a second, costs less than the threads that would share it cost to wake.
    static constexpr double worth_a_team = 1e8;
    static constexpr Index segments_per_measurement = 64;

    Context<D>& ctx_;
    Context<Host> alone_{1};
    TangentMap<T, D>& system_;
    const LyapunovOptions& options_;
    Index n_, p_;
    RunState state_;
    Matrix<double, D> x_;  // as state_.x at the end of a segment
    Matrix<T, D> Q_;       // empty in the transient
    Matrix<T, D> diagonal_;
    Matrix<T> diagonal_on_host_;
    double tau_ = 0;
    Index transient_ = 0, aligned_ = 0, end_ = 0;  // segments until the end of each phase
    Plan plan_;
    Method method_ = Method::Auto;
    double forces_seconds_ = 0, evolution_seconds_ = 0, qr_seconds_ = 0;  // of a segment
    std::vector<double> rounding_;  // of log|r_ii| in a segment, in units of n + k
    bool whole_ = true;             // false in the middle of a segment
    Clock::time_point saved_ = Clock::now();
    Index saved_segment_ = -1;
};

}  // namespace

template <class T, class D>
LyapunovSpectrum lyapunov_spectrum(Context<D>& ctx, TangentMap<T, D>& system, const LyapunovOptions& options) {
    return Run<T, D>(ctx, system, options).run();
}

#define QUOIN_INSTANTIATE(T, D) \
    template LyapunovSpectrum lyapunov_spectrum<T, D>(Context<D>&, TangentMap<T, D>&, const LyapunovOptions&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
