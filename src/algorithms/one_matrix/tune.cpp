// Measures the methods that `Auto` compares, and fits the times of their steps to one machine.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "algorithms/one_matrix/measured_cases.hpp"
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

template <class T, class D>
Plan plan_by(const Context<D>& ctx, const TunedCase& c, Method method) {
    return plan_qr<T>(ctx, c.rows, c.cols, {.method = method, .q = c.q});
}

/// A := Σ 2^-k S_k, matrices S_k of random signs.
template <class T, class D>
void set_random(Context<D>& ctx, MatrixView<T, D> A) {
    set_zero(ctx, A);
    Matrix<T, D> signs(ctx, A.rows, A.cols), scaled(ctx, A.rows, A.cols);
    for (int k = 1; k <= 6; ++k) {
        set_random_signs<T>(ctx, static_cast<std::uint64_t>(k), signs.view());
        scaled_copy<T>(ctx, std::ldexp(1, -k), std::as_const(signs).view(), scaled.view());
        add<T>(ctx, std::as_const(scaled).view(), A);
    }
}

/// A plan that is measured, and its place in `TunedCase::seconds`.
struct MeasuredPlan {
    Plan plan;
    std::size_t method;
};
/// Returns the plans that `Auto` compares on a CPU. On a GPU returns the built-in choice and a plan of every other
/// method that the shape allows.
template <class T, class D>
std::vector<MeasuredPlan> compared_plans(Context<D>& ctx, const TunedCase& c) {
    std::vector<MeasuredPlan> plans;
    if constexpr (Tuning<D>::has_step_times) {
        for (const Method method : compared_methods<D>(c.rows, c.cols, scalar_kind<T>, c.q))
            plans.push_back({plan_by<T>(ctx, c, method), place_of(method)});
    } else {
        const Plan own = plan_for<T>(tuning_of(ctx), c.rows, c.cols, {.q = c.q}, /*built_in=*/true);
        for (std::size_t k = 0; k < tuned_methods.size(); ++k) {
            // as the choice by these cases lays it out, so that times of different shapes compare
            TunedCase held = c;
            held.q = held_form<D>(c.q, tuned_methods[k]);
            try {
                plans.push_back({own.method == tuned_methods[k] ? own : plan_by<T>(ctx, held, tuned_methods[k]), k});
            } catch (const InvalidArgument&) {
                // too wide for a tree, or fewer rows than columns
            }
        }
    }
    return plans;
}

/// Measures the methods of a case on one matrix.
template <class T, class D>
class CaseTimer {
public:
    CaseTimer(Context<D>& ctx, TunedCase& measured)
        : ctx_(ctx),
          case_(measured),
          A_(ctx, measured.rows, measured.cols),
          C_(ctx, measured.rows, std::min(measured.cols, most_columns_of_c)) {
        set_random<T, D>(ctx, A_.view());
        set_random<T, D>(ctx, C_.view());
    }

    /// Takes the fastest of 3 to 200 rounds of one run a method, about `seconds` together. A method that refuses the
    /// matrix has no time.
    void measure(std::vector<MeasuredPlan> plans, double seconds) {
        double rounds = 3;
        for (int round = 0; round < rounds; ++round) {
            double of_round = 0;
            std::erase_if(plans, [&](const MeasuredPlan& p) {
                double& fastest = case_.seconds[p.method];
                try {
                    const double taken = run(p.plan);
                    fastest = round == 0 ? taken : std::min(fastest, taken);
                    of_round += taken;
                } catch (const NumericalBreakdown&) {
                    fastest = 0;
                }
                return fastest == 0;
            });
            if (round == 1) rounds = std::clamp(seconds / of_round, 3.0, 200.0);
        }
    }

private:
    double run(const Plan& plan) {
        Matrix<T, D> work = copy_of<T, D>(ctx_, A_.view()), C;
        if (case_.q == QForm::Any) C = copy_of<T, D>(ctx_, C_.view());
        ctx_.wait();
        WorkTimer<D> timer(ctx_);
        QR<T, D> f = qr<T, D>(ctx_, std::move(work), plan);
        if (case_.q == QForm::Reflectors) {
            to_lapack(ctx_, std::move(f));
        } else if (case_.q == QForm::Any) {
            f.r(ctx_);
            f.apply_q(ctx_, Side::Left, Op::Transpose, C.view());
        } else {
            std::move(f).take_thin(ctx_);
        }
        timer.stop();
        return timer.seconds();
    }

    Context<D>& ctx_;
    TunedCase& case_;
    Matrix<T, D> A_, C_;
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

/// Measures all forms of Q of a shape, about 0.06 s each on a CPU, and adds them to `cases`.
template <class T, class D>
void measure_shape(Context<D>& ctx, Index m, Index n, bool close_alone, std::vector<TunedCase>& cases) {
    constexpr double seconds = Tuning<D>::has_step_times ? 0.06 : 0.01;
    for (const QForm q : every_form) {
        TunedCase c{m, n, scalar_kind<T>, q};
        if constexpr (Tuning<D>::has_step_times) {
            const auto compared = compared_methods<D>(m, n, scalar_kind<T>, q);
            if (compared.size() == 1 || (close_alone && !is_close<T>(ctx, c, compared))) continue;
        }
        CaseTimer<T, D>(ctx, c).measure(compared_plans<T, D>(ctx, c), seconds);
        if (std::count_if(c.seconds.begin(), c.seconds.end(), [](double x) { return x > 0; }) > 1) cases.push_back(c);
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

template <class D>
TuningTable tune(Context<D>& ctx, const TuneOptions& options) {
    constexpr bool fits = Tuning<D>::has_step_times;
    TuningTable table = built_in_tuning(ctx);
    const auto start = std::chrono::steady_clock::now();
    std::mt19937_64 random(1);
    double place[2] = {0.5, 0.5};
    const auto drawn = [&](int dimension, double least, double most) {
        // a fit to the times of steps wants random shapes, neighbours want even distances (the plastic number's powers)
        double& x = place[dimension];
        x = fits ? static_cast<double>(random() >> 11) * 0x1p-53 : x + (dimension == 0 ? 0.7548776662 : 0.5698402910);
        x -= std::floor(x);
        return static_cast<Index>(std::llround(least * std::pow(most / least, x)));
    };
    // on a GPU a thousand times as many flops take as long
    const double flops = fits ? options.flops : 1000 * options.flops;
    const Index entries = fits ? most_entries : 10 * most_entries;
    const std::size_t count = options.shapes.size();
    try {
        for (std::size_t i = 0; count == 0 || i < count; ++i) {
            const double elapsed = seconds_since(start) / options.seconds;
            if (elapsed >= 1) break;
            if (options.progress) options.progress(count == 0 ? elapsed : number(Index(i)) / number(Index(count)));
            const Index m = count > 0 ? options.shapes[i].first : drawn(0, 32, fits ? 1e6 : 1e7);
            const Index n = count > 0 ? options.shapes[i].second : drawn(1, 2, fits ? 4000 : 16000);
            if (count == 0 && (m * n > entries || number(m * n) * number(std::min(m, n)) > flops)) continue;
            try {
                measure_shape<float>(ctx, m, n, count == 0, table.cases);
                measure_shape<double>(ctx, m, n, count == 0, table.cases);
            } catch (const OutOfMemory&) {
                // smaller shapes fit
            }
        }
    } catch (const Interrupted&) {
        // the cases so far stay
    }
    if (fits) fit_tuning(table);
    return table;
}

void fit_tuning(TuningTable& table) {
    fit<float>(table, table.f32);
    fit<double>(table, table.f64);
}

template <class D>
std::vector<TunedChoice> changed_choices(const TuningTable& table) {
    std::vector<TunedChoice> changed;
    if constexpr (!Tuning<D>::has_step_times) {
        for (const TunedCase& c : table.cases) {
            const auto built_in = [&]<class T>(T) {
                return plan_for<T>(Tuning<D>::here(), c.rows, c.cols, {.q = c.q}, /*built_in=*/true).method;
            };
            const Method own = c.scalar == ScalarKind::F32 ? built_in(float()) : built_in(double());
            const Method tuned = nearest_choice(table.cases, c.rows, c.cols, c.scalar, c.q, own);
            if (tuned != own) changed.push_back({c, own, tuned, c.seconds[place_of(own)] / c.seconds[place_of(tuned)]});
        }
        return changed;
    }
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
    add.template operator()<float>(table.f32);
    add.template operator()<double>(table.f64);
    return changed;
}

#define QUOIN_INSTANTIATE(D)                                       \
    template TuningTable tune<D>(Context<D>&, const TuneOptions&); \
    template std::vector<TunedChoice> changed_choices<D>(const TuningTable&);
QUOIN_FOR_EACH_DEVICE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
