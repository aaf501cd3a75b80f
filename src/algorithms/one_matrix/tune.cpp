// Measures the methods that `Auto` compares, and fits the times of their steps to one machine.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"
#include "quoin/error.hpp"
#include "quoin/qr.hpp"
#include "quoin/tuning.hpp"

namespace quoin {

namespace {

constexpr QForm every_form[] = {QForm::None, QForm::Explicit, QForm::Reflectors, QForm::Any};
constexpr Index most_entries = 20'000'000, most_columns_of_c = 16;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
Plan plan_by(const Context<Host>& ctx, const TunedCase& c, Method method) {
    return plan_qr<T>(ctx, c.rows, c.cols, {.method = method, .q = c.q});
}

/// Measures the methods of a case on one matrix.
template <class T>
class CaseTimer {
public:
    CaseTimer(Context<Host>& ctx, TunedCase& measured)
        : ctx_(ctx),
          case_(measured),
          A_(measured.rows, measured.cols),
          C_(measured.rows, std::min(measured.cols, most_columns_of_c)) {
        std::uint64_t state = 1;
        for (Matrix<T>* const X : {&A_, &C_}) {
            for (Index j = 0; j < X->cols(); ++j)
                for (Index i = 0; i < X->rows(); ++i) {
                    state = 6364136223846793005u * state + 1442695040888963407u;
                    (*X)(i, j) = static_cast<T>(static_cast<double>(state >> 11) * 0x1p-52 - 1);
                }
        }
    }

    /// Takes the fastest of rounds of one run a method, about 0.06 s together, 3 to 200 rounds.
    void measure() {
        const auto compared = compared_methods<Host>(case_.rows, case_.cols, scalar_kind<T>, case_.q);
        double rounds = 3;
        for (int round = 0; round < rounds; ++round) {
            double of_round = 0;
            for (const Method method : compared) {
                double& fastest = case_.seconds[static_cast<std::size_t>(
                    std::find(tuned_methods.begin(), tuned_methods.end(), method) - tuned_methods.begin())];
                const double seconds = run(plan_by<T>(ctx_, case_, method));
                fastest = round == 0 ? seconds : std::min(fastest, seconds);
                of_round += seconds;
            }
            if (round == 1) rounds = std::clamp(0.06 / of_round, 3.0, 200.0);
        }
    }

private:
    double run(const Plan& plan) {
        Matrix<T> work = copy_of<T, Host>(ctx_, A_.view()), C;
        if (case_.q == QForm::Any) C = copy_of<T, Host>(ctx_, C_.view());
        const auto start = std::chrono::steady_clock::now();
        QR<T> f = qr<T>(ctx_, std::move(work), plan);
        if (case_.q == QForm::Reflectors) {
            to_lapack(ctx_, std::move(f));
        } else if (case_.q == QForm::Any) {
            f.r(ctx_);
            f.apply_q(ctx_, Side::Left, Op::Transpose, C.view());
        } else {
            std::move(f).take_thin(ctx_);
        }
        return seconds_since(start);
    }

    Context<Host>& ctx_;
    TunedCase& case_;
    Matrix<T> A_, C_;
};

/// Whether the built-in times of two methods are within a factor of 2, so that a machine may choose either.
template <class T>
bool is_close(const Context<Host>& ctx, const TunedCase& c, std::span<const Method> compared) {
    std::vector<double> times;
    for (const Method method : compared)
        times.push_back(modelled_time(plan_by<T>(ctx, c, method), Tuning<Host>::built_in_step_times(scalar_kind<T>)));
    std::sort(times.begin(), times.end());
    return times[1] < 2 * times[0];
}

/// Measures all forms of Q of a shape, and adds them to `cases`.
template <class T>
void measure_shape(Context<Host>& ctx, Index m, Index n, bool close_alone, std::vector<TunedCase>& cases) {
    for (const QForm q : every_form) {
        TunedCase c{m, n, scalar_kind<T>, q};
        const auto compared = compared_methods<Host>(m, n, scalar_kind<T>, q);
        if (compared.size() == 1 || (close_alone && !is_close<T>(ctx, c, compared))) continue;
        try {
            CaseTimer<T>(ctx, c).measure();
            cases.push_back(c);
        } catch (const NumericalBreakdown&) {
            // CholeskyQR2 refuses this matrix
        }
    }
}

// ---- The fit --------------------------------------------------------------------------------------------------------

using Times = std::array<double, step_time_count>;
constexpr std::size_t fitted = step_time_count - 1;  // threaded_flops stays
constexpr std::size_t methods = tuned_methods.size();

template <class T>
Times built_in_times() {
    return std::bit_cast<Times>(Tuning<Host>::built_in_step_times(scalar_kind<T>));
}

/// A measured case: of each method the built-in time of each part, and the share of time that it loses to the best, at
/// most a half, so that no single case decides.
struct ModelledCase {
    const TunedCase* measured;
    std::array<Times, methods> parts{};
    std::array<double, methods> loss{};

    /// Returns each time of a method if its parts take `factor` of the built-in times; Infinity if it is not compared.
    std::array<double, methods> times(const Times& factor) const {
        std::array<double, methods> time{};
        for (std::size_t k = 0; k < methods; ++k) {
            for (std::size_t i = 0; i < fitted; ++i) time[k] += factor[i] * parts[k][i];
            if (measured->seconds[k] <= 0) time[k] = std::numeric_limits<double>::infinity();
        }
        return time;
    }
    /// Returns the method of least time.
    std::size_t choice(const Times& factor) const {
        const auto time = times(factor);
        return static_cast<std::size_t>(std::min_element(time.begin(), time.end()) - time.begin());
    }
};

/// Returns the cases of type T.
template <class T>
std::vector<ModelledCase> modelled_cases(const std::vector<TunedCase>& cases) {
    const Context<Host> ctx(1);
    const Times usual = built_in_times<T>();
    std::vector<ModelledCase> modelled;
    for (const TunedCase& c : cases) {
        if (c.scalar != scalar_kind<T>) continue;
        ModelledCase& made = modelled.emplace_back(ModelledCase{&c});
        double best = std::numeric_limits<double>::infinity();
        for (const double seconds : c.seconds)
            if (seconds > 0) best = std::min(best, seconds);
        for (std::size_t k = 0; k < methods; ++k) {
            if (c.seconds[k] <= 0) continue;
            made.loss[k] = std::min(0.5, c.seconds[k] / best - 1);
            const Plan plan = plan_by<T>(ctx, c, tuned_methods[k]);
            for (std::size_t i = 0; i < fitted; ++i) {
                Times alone{};
                alone[i] = usual[i];
                alone[fitted] = usual[fitted];
                made.parts[k][i] = modelled_time(plan, std::bit_cast<StepTimes>(alone));
            }
        }
    }
    return modelled;
}

/// Returns exp(theta) by entries.
Times factors(const Times& theta) {
    Times factor{};
    std::transform(theta.begin(), theta.end(), factor.begin(), [](double x) { return std::exp(x); });
    return factor;
}

/// Returns the smoothed loss of the choices with the factors exp(theta), and its gradient in theta.
double smoothed_loss(const std::vector<const ModelledCase*>& cases, const Times& theta, Times& gradient) {
    constexpr double smoothed_over = 0.07, lambda = 0.3;
    const Times factor = factors(theta);
    double total = 0;
    for (std::size_t i = 0; i < fitted; ++i) {
        total += lambda * theta[i] * theta[i];
        gradient[i] = 2 * lambda * theta[i];
    }
    for (const ModelledCase* c : cases) {
        const auto time = c->times(factor);
        const double least = *std::min_element(time.begin(), time.end());
        std::array<double, methods> weight{};
        double weights = 0, expected = 0;
        for (std::size_t k = 0; k < methods; ++k) {
            weight[k] = std::pow(time[k] / least, -1 / smoothed_over);
            weights += weight[k];
            expected += weight[k] * c->loss[k];
        }
        expected /= weights;
        total += expected;
        for (std::size_t k = 0; k < methods; ++k) {
            const double pull = weight[k] / weights * (expected - c->loss[k]) / smoothed_over / time[k];
            for (std::size_t i = 0; i < fitted; ++i) gradient[i] += pull * factor[i] * c->parts[k][i];
        }
    }
    return total;
}

/// Returns the factors of least loss within 4, by gradient descent from 1.
Times descend(const std::vector<const ModelledCase*>& cases) {
    constexpr double limit = 1.4;
    Times theta{}, gradient{};
    double value = smoothed_loss(cases, theta, gradient), step = 0.1;
    for (int iteration = 0; iteration < 100 && step > 1e-5; ++iteration) {
        Times next{}, next_gradient{};
        for (std::size_t i = 0; i < fitted; ++i) next[i] = std::clamp(theta[i] - step * gradient[i], -limit, limit);
        const double next_value = smoothed_loss(cases, next, next_gradient);
        step *= next_value < value ? 2 : 0.5;
        if (next_value >= value) continue;
        theta = next;
        value = next_value;
        gradient = next_gradient;
    }
    return factors(theta);
}

/// Fits `times` to the cases of type T.
template <class T>
void fit(const TuningTable& table, Times& times) {
    times = built_in_times<T>();
    const std::vector<ModelledCase> all = modelled_cases<T>(table.cases);
    std::vector<std::size_t> shape;  // of each case, counted
    for (std::size_t i = 0; i < all.size(); ++i) {
        const TunedCase &c = *all[i].measured, &last = *all[i == 0 ? 0 : i - 1].measured;
        shape.push_back(i == 0 ? 0 : shape.back() + (c.rows != last.rows || c.cols != last.cols));
    }
    const auto fitted_to = [&](auto takes) {
        std::vector<const ModelledCase*> cases;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (takes(shape[i])) cases.push_back(&all[i]);
        return descend(cases);
    };
    // the loss that fits to seven eighths of the shapes save for the remaining ones
    constexpr std::size_t folds = 8;
    const Times usual = factors({});
    std::vector<double> saved(all.size());
    for (std::size_t fold = 0; fold < folds; ++fold) {
        const Times factor = fitted_to([&](std::size_t s) { return s % folds != fold; });
        for (std::size_t i = 0; i < all.size(); ++i)
            if (shape[i] % folds == fold)
                saved[shape[i]] += all[i].loss[all[i].choice(usual)] - all[i].loss[all[i].choice(factor)];
    }
    const double sum = std::accumulate(saved.begin(), saved.end(), 0.0);
    const double squares = std::inner_product(saved.begin(), saved.end(), saved.begin(), 0.0);
    // by two standard errors, which noise alone seldom gives
    if (!(sum > 2 * std::sqrt(squares))) return;
    const Times factor = fitted_to([](std::size_t) { return true; });
    for (std::size_t i = 0; i < fitted; ++i) times[i] *= factor[i];
}

}  // namespace

TuningTable tune(Context<Host>& ctx, const TuneOptions& options) {
    TuningTable table = built_in_tuning(ctx);
    const auto start = std::chrono::steady_clock::now();
    std::mt19937_64 random(1);
    const auto drawn = [&](double least, double most) {
        const double x = static_cast<double>(random() >> 11) * 0x1p-53;
        return static_cast<Index>(std::llround(least * std::pow(most / least, x)));
    };
    const std::size_t count = options.shapes.size();
    try {
        for (std::size_t i = 0; count == 0 || i < count; ++i) {
            const double elapsed = seconds_since(start) / options.seconds;
            if (elapsed >= 1) break;
            if (options.progress) options.progress(count == 0 ? elapsed : number(Index(i)) / number(Index(count)));
            const auto [m, n] = count > 0 ? options.shapes[i] : std::pair(drawn(32, 1e6), drawn(2, 4000));
            if (count == 0 && (m * n > most_entries || number(m * n) * number(std::min(m, n)) > options.flops))
                continue;
            measure_shape<float>(ctx, m, n, count == 0, table.cases);
            measure_shape<double>(ctx, m, n, count == 0, table.cases);
        }
    } catch (const Interrupted&) {
        // the cases so far stay
    }
    fit_tuning(table);
    return table;
}

void fit_tuning(TuningTable& table) {
    fit<float>(table, table.f32);
    fit<double>(table, table.f64);
}

std::vector<TunedChoice> changed_choices(const TuningTable& table) {
    std::vector<TunedChoice> changed;
    const auto add = [&]<class T>(const Times& times) {
        const Times usual = built_in_times<T>();
        Times factor = factors({});
        for (std::size_t i = 0; i < fitted; ++i)
            if (usual[i] > 0) factor[i] = times[i] / usual[i];
        for (const ModelledCase& c : modelled_cases<T>(table.cases)) {
            const std::size_t built_in = c.choice(factors({})), tuned = c.choice(factor);
            const auto& seconds = c.measured->seconds;
            if (built_in != tuned)
                changed.push_back(
                    {*c.measured, tuned_methods[built_in], tuned_methods[tuned], seconds[built_in] / seconds[tuned]});
        }
    };
    add.operator()<float>(table.f32);
    add.operator()<double>(table.f64);
    return changed;
}

}  // namespace quoin
