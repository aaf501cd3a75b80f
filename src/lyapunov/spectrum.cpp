#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "lyapunov/batch_sums.hpp"
#include "lyapunov/checkpoint.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"
#include "primitives.hpp"
#include "quoin/lyapunov.hpp"
#include "quoin/qr.hpp"

namespace quoin {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Segments of length tau that cover `time`.
Index segments_of(const char* name, double time, double tau) {
    require_finite(name, time);
    require_at_least<double>(name, time, 0);
    const double count = std::ceil(time / tau * (1 - 1e-12));
    if (count > 1e15) throw InvalidArgument(fmt::format("{} of {} is {:.3g} segments, too many", name, time, count));
    return static_cast<Index>(count);
}

class Run {
public:
    Run(Context<Host>& ctx, TangentMap& system, const LyapunovOptions& options)
        : ctx_(ctx),
          system_(system),
          options_(options),
          n_(system.dimension()),
          p_(checked_exponents()),
          state_(n_, p_) {
        require_at_least<Index>("steps_per_qr", options.steps_per_qr, 1);
        require_positive("time", options.time);
        require_positive("checkpoint_seconds", options.checkpoint_seconds);
        tau_ = static_cast<double>(options.steps_per_qr) * system.step();
        transient_ = segments_of("transient", options.transient, tau_);
        aligned_ = transient_ + segments_of("alignment", options.alignment, tau_);
        end_ = aligned_ + segments_of("time", options.time, tau_);
        Options qr_options = options.qr;
        qr_options.q = QForm::Explicit;
        qr_options.check_finite = true;
        qr_options.verify = false;
        plan_ = plan_qr<double>(ctx, n_, p_, qr_options);
        method_ = plan_.method;
    }

    LyapunovSpectrum run() {
        begin();
        bool completed = true;
        try {
            while (completed && state_.segment < end_) {
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
    Index checked_exponents() const {
        const Index p = options_.exponents;
        if (p < 0 || p > n_) {
            throw InvalidArgument(fmt::format(
                "exponents must be between 1 and the dimension {} of the system, or 0 for all, and is {}", n_, p));
        }
        return p == 0 ? n_ : p;
    }

    /// What the bits of the rest of a run depend on, besides its state.
    std::string identity() const {
        std::string plan = to_string(plan_);
        std::replace(plan.begin(), plan.end(), '\n', ';');
        return fmt::format(
            "system: {}\nexponents: {}\nsteps per QR: {}\nseed: {}\ntransient segments: {}\nalignment segments: "
            "{}\nQR: {}\n",
            system_.description(), p_, options_.steps_per_qr, options_.seed, transient_, aligned_ - transient_, plan);
    }

    void begin() {
        if (!options_.checkpoint.empty()) {
            if (auto state = load_checkpoint(options_.checkpoint, identity(), n_, p_)) {
                state_ = std::move(*state);
                saved_segment_ = state_.segment;
                return;
            }
        }
        state_.x = system_.initial_state(options_.seed);
        require_finite_state();
    }

    double time() const { return static_cast<double>(state_.segment) * tau_; }

    LyapunovProgress progress() const {
        const auto phase = state_.segment < transient_ ? LyapunovProgress::Transient
                           : state_.segment < aligned_ ? LyapunovProgress::Alignment
                                                       : LyapunovProgress::Sampling;
        return {phase, time(), static_cast<double>(state_.segment) / static_cast<double>(end_)};
    }

    void require_finite_state() const {
        for (Index i = 0; i < n_; ++i) {
            if (!std::isfinite(state_.x[static_cast<std::size_t>(i)])) {
                throw NonFiniteEntry(i, 0, fmt::format("the state at time {:.6g} (step {})", time(), system_.step()));
            }
        }
    }

    /// x := Φᵏ(x), Z := DΦᵏ(x) Q = Q'R.
    void segment() {
        whole_ = false;
        const Clock::time_point start = Clock::now();
        const bool in_transient = state_.segment < transient_;
        if (!in_transient && state_.Q.cols() == 0) first_vectors();
        if (!in_transient && (forces_seconds_ == 0 || state_.segment % segments_per_measurement == 0)) measure_forces();
        const Clock::time_point evolution = Clock::now();
        system_.advance(ctx_, options_.steps_per_qr, state_.x, state_.Q.view());
        if (!in_transient) {
            const double forces = std::min(forces_seconds_, since(evolution));
            state_.force_seconds += forces;
            state_.tangent_seconds += since(evolution) - forces;
        }
        ++state_.segment;
        require_finite_state();
        if (!in_transient) {
            const Clock::time_point reorthonormalisation = Clock::now();
            const Matrix<double> R = reorthonormalise();
            state_.qr_seconds += since(reorthonormalisation);
            if (state_.segment > aligned_) {
                std::vector<double> logarithms(static_cast<std::size_t>(p_));
                for (Index i = 0; i < p_; ++i) logarithms[static_cast<std::size_t>(i)] = std::log(std::abs(R(i, i)));
                state_.batches.add(logarithms);
            }
        }
        state_.seconds += since(start);
        whole_ = true;
    }

    /// Q of a matrix of independent normal numbers, as good as any: almost every one has a part of every direction.
    void first_vectors() {
        NormalNumbers normal(options_.seed + 0x9e3779b97f4a7c15u);
        state_.Q = Matrix<double>(n_, p_);
        for (Index j = 0; j < p_; ++j) {
            for (Index i = 0; i < n_; ++i) state_.Q(i, j) = normal();
        }
        reorthonormalise();
        state_.first_energy = system_.energy(state_.x).value_or(0);
    }

    /// Q := Q' of Q = Q'R; returns R.
    Matrix<double> reorthonormalise() {
        try {
            Context<Host>& ctx = 4.0 * static_cast<double>(n_ * p_ * p_) < worth_a_team ? alone_ : ctx_;
            QR<double, Host> f = qr<double, Host>(ctx, std::move(state_.Q), plan_);
            method_ = f.report().method;
            Matrix<double> R = f.r(ctx);
            state_.Q = std::move(f).take_q(ctx);
            return R;
        } catch (const NonFiniteEntry& e) {
            throw NonFiniteEntry(
                e.row, e.col,
                fmt::format("the matrix of tangent vectors at time {:.6g} (reorthonormalised every {:.6g})", time(),
                            tau_));
        } catch (const NumericalBreakdown& e) {
            throw NumericalBreakdown(
                fmt::format("the tangent vectors at time {:.6g} are too near each other after {} steps: {}", time(),
                            options_.steps_per_qr, e.what()),
                e.column);
        }
    }

    /// What a segment of the state alone takes: vector field, forces.
    void measure_forces() {
        std::vector<double> x = state_.x;
        const Clock::time_point start = Clock::now();
        system_.advance(ctx_, options_.steps_per_qr, x, {});
        forces_seconds_ = since(start);
    }

    void save() {
        saved_ = Clock::now();
        if (options_.checkpoint.empty() || saved_segment_ == state_.segment) return;
        save_checkpoint(options_.checkpoint, identity(), state_);
        saved_segment_ = state_.segment;
    }

    LyapunovSpectrum result(bool completed) const {
        LyapunovSpectrum result;
        result.dimension = n_;
        estimate(state_.batches, tau_, result);
        result.vanishing = system_.vanishing_exponents();
        result.divergence = system_.divergence();
        result.state = state_.x;
        result.energy = system_.energy(state_.x);
        if (result.energy && state_.Q.cols() > 0) {
            result.energy_drift = (*result.energy - state_.first_energy) / std::abs(state_.first_energy);
        }
        result.completed = completed || state_.segment >= end_;
        result.method = method_;
        result.seconds = state_.seconds;
        result.qr_seconds = state_.qr_seconds;
        result.tangent_seconds = state_.tangent_seconds;
        result.force_seconds = state_.force_seconds;
        result.reorthonormalisations = std::max<Index>(0, state_.segment - transient_);
        return result;
    }

    // A small QR, thousands of times a second, costs less than the threads that would share it cost to wake.
    static constexpr double worth_a_team = 1e8;
    static constexpr Index segments_per_measurement = 64;

    Context<Host>& ctx_;
    Context<Host> alone_{1};
    TangentMap& system_;
    const LyapunovOptions& options_;
    Index n_, p_;
    RunState state_;
    double tau_ = 0;
    Index transient_ = 0, aligned_ = 0, end_ = 0;  // segments until the end of each phase
    Plan plan_;
    Method method_ = Method::Auto;
    double forces_seconds_ = 0;
    bool whole_ = true;  // false in the middle of a segment
    Clock::time_point saved_ = Clock::now();
    Index saved_segment_ = -1;
};

}  // namespace

LyapunovSpectrum lyapunov_spectrum(Context<Host>& ctx, TangentMap& system, const LyapunovOptions& options) {
    return Run(ctx, system, options).run();
}

}  // namespace quoin
