// Measures the methods that `Auto` compares, and fits the times of their steps to one machine.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <random>

#include "algorithms/one_matrix/plan.hpp"
#include "devices.hpp"
#include "quoin/error.hpp"
#include "quoin/qr.hpp"
#include "quoin/tuning.hpp"

namespace quoin {

namespace {

constexpr QForm every_form[] = {QForm::None, QForm::Explicit, QForm::Reflectors, QForm::Any};
constexpr Index most_entries = 20'000'000, most_columns_of_c = 16;

double seconds_of_thread() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

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
        Matrix<T> work(case_.rows, case_.cols), C;
        copy<T>(ctx_, std::as_const(A_).view(), work.view());
        if (case_.q == QForm::Any) {
            C = Matrix<T>(C_.rows(), C_.cols());
            copy<T>(ctx_, std::as_const(C_).view(), C.view());
        }
        const double busy = seconds_of_thread();
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
        const double seconds = seconds_since(start);
        // with one thread, other programs do not count
        return ctx_.threads() == 1 && seconds > 1e-4 ? std::min(seconds, seconds_of_thread() - busy) : seconds;
    }

    Context<Host>& ctx_;
    TunedCase& case_;
    Matrix<T> A_, C_;
};

/// Whether the built-in times of two methods are within a factor of 2, so that a machine may choose either.
template <class T>
bool is_close(const Context<Host>& ctx, const TunedCase& c, std::span<const Method> methods) {
    std::vector<double> times;
    for (const Method method : methods)
        times.push_back(modelled_time(plan_by<T>(ctx, c, method), Tuning<Host>::built_in_step_times(scalar_kind<T>)));
    std::sort(times.begin(), times.end());
    return times[1] < 2 * times[0];
}

/// Measures all forms of Q of a shape, and adds them to `cases`.
template <class T>
void measure_shape(Context<Host>& ctx, Index m, Index n, bool close_alone, std::vector<TunedCase>& cases) {
    for (const QForm q : every_form) {
        TunedCase c{m, n, scalar_kind<T>, q};
        const auto methods = compared_methods<Host>(m, n, scalar_kind<T>, q);
        if (methods.size() == 1 || (close_alone && !is_close<T>(ctx, c, methods))) continue;
        try {
            CaseTimer<T>(ctx, c).measure();
            cases.push_back(c);
        } catch (const NumericalBreakdown&) {
            // CholeskyQR2 refuses this matrix
        }
    }
}

// ---- The fit ------------------------------------------------------------------------------------------------------

constexpr std::size_t fitted = step_time_count - 1;  // threaded_flops stays
/// log(time / built-in time) of each time.
using LogFactors = std::array<double, fitted>;

template <class T>
std::array<double, step_time_count> built_in_times() {
    return std::bit_cast<std::array<double, step_time_count>>(Tuning<Host>::built_in_step_times(scalar_kind<T>));
}

template <class T>
LogFactors log_factors(const std::array<double, step_time_count>& times) {
    const auto usual = built_in_times<T>();
    LogFactors theta{};
    for (std::size_t i = 0; i < fitted; ++i)
        if (usual[i] > 0) theta[i] = std::log(times[i] / usual[i]);
    return theta;
}

/// A measured case: of each method the built-in time of each part, and the share of time that it loses to the best, at
/// most a half, so that no single case decides.
struct ModelledCase {
    const TunedCase* measured;
    std::array<LogFactors, tuned_methods.size()> parts{};
    std::array<double, tuned_methods.size()> loss{};

    bool has(std::size_t method) const { return measured->seconds[method] > 0; }
    /// Returns the method of least time.
    std::size_t choice(const LogFactors& theta) const {
        std::size_t best = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < parts.size(); ++k) {
            double time = 0;
            for (std::size_t i = 0; i < fitted; ++i) time += std::exp(theta[i]) * parts[k][i];
            if (has(k) && time < least) {
                least = time;
                best = k;
            }
        }
        return best;
    }
    double lost(const LogFactors& theta) const { return loss[choice(theta)]; }
};

/// Returns the cases of type T in which methods were compared.
template <class T>
std::vector<ModelledCase> modelled_cases(const std::vector<TunedCase>& cases) {
    const Context<Host> ctx(1);
    const auto usual = built_in_times<T>();
    std::vector<ModelledCase> modelled;
    for (const TunedCase& c : cases) {
        if (c.scalar != scalar_kind<T>) continue;
        ModelledCase& made = modelled.emplace_back(ModelledCase{&c});
        double best = std::numeric_limits<double>::infinity();
        for (const double seconds : c.seconds)
            if (seconds > 0) best = std::min(best, seconds);
        for (std::size_t k = 0; k < tuned_methods.size(); ++k) {
            if (!made.has(k)) continue;
            made.loss[k] = std::min(0.5, c.seconds[k] / best - 1);
            const Plan plan = plan_by<T>(ctx, c, tuned_methods[k]);
            for (std::size_t i = 0; i < fitted; ++i) {
                std::array<double, step_time_count> alone{};
                alone[i] = usual[i];
                alone[fitted] = usual[fitted];
                made.parts[k][i] = modelled_time(plan, std::bit_cast<StepTimes>(alone));
            }
        }
    }
    return modelled;
}

/// The smoothed loss of the choices, and its gradient.
class Loss {
public:
    explicit Loss(const std::vector<const ModelledCase*>& cases) : cases_(cases) {}

    double operator()(const LogFactors& theta, LogFactors* gradient) const {
        constexpr double smoothed_over = 0.07, lambda = 0.3;
        LogFactors factor{};
        double total = 0;
        for (std::size_t i = 0; i < fitted; ++i) {
            factor[i] = std::exp(theta[i]);
            total += lambda * theta[i] * theta[i];
            if (gradient) (*gradient)[i] = 2 * lambda * theta[i];
        }
        for (const ModelledCase* c : cases_) {
            std::array<double, tuned_methods.size()> time{}, weight{};
            double least = std::numeric_limits<double>::infinity(), weights = 0, expected = 0;
            for (std::size_t k = 0; k < time.size(); ++k) {
                if (!c->has(k)) continue;
                for (std::size_t i = 0; i < fitted; ++i) time[k] += factor[i] * c->parts[k][i];
                least = std::min(least, time[k]);
            }
            for (std::size_t k = 0; k < time.size(); ++k) {
                if (!c->has(k)) continue;
                weight[k] = std::pow(time[k] / least, -1 / smoothed_over);
                weights += weight[k];
                expected += weight[k] * c->loss[k];
            }
            expected /= weights;
            total += expected;
            if (!gradient) continue;
            for (std::size_t k = 0; k < time.size(); ++k) {
                if (!c->has(k)) continue;
                const double pull = -weight[k] / weights * (c->loss[k] - expected) / smoothed_over;
                for (std::size_t i = 0; i < fitted; ++i) (*gradient)[i] += pull * factor[i] * c->parts[k][i] / time[k];
            }
        }
        return total;
    }

private:
    const std::vector<const ModelledCase*>& cases_;
};

/// Minimises the loss by gradient descent from the built-in times, within a factor of 4.
LogFactors descend(const Loss& loss) {
    constexpr double limit = 1.4;
    LogFactors theta{}, gradient{};
    double value = loss(theta, &gradient), step = 0.1;
    for (int iteration = 0; iteration < 100 && step > 1e-5;) {
        LogFactors next = theta;
        for (std::size_t i = 0; i < fitted; ++i) next[i] = std::clamp(theta[i] - step * gradient[i], -limit, limit);
        if (loss(next, nullptr) >= value) {
            step /= 2;
            continue;
        }
        theta = next;
        value = loss(theta, &gradient);
        step *= 2;
        ++iteration;
    }
    return theta;
}

/// Fits `times` to the cases of type T.
template <class T>
void fit(const TuningTable& table, std::array<double, step_time_count>& times) {
    times = built_in_times<T>();
    const std::vector<ModelledCase> all = modelled_cases<T>(table.cases);
    std::vector<std::size_t> shape;  // of each case, counted
    for (const ModelledCase& c : all) {
        const TunedCase* const last = shape.empty() ? nullptr : all[shape.size() - 1].measured;
        const bool same = last && last->rows == c.measured->rows && last->cols == c.measured->cols;
        shape.push_back(!last ? 0 : shape.back() + !same);
    }
    const auto fitted_to = [&](auto takes) {
        std::vector<const ModelledCase*> cases;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (takes(shape[i])) cases.push_back(&all[i]);
        return descend(Loss(cases));
    };
    // the loss that fits to seven eighths of the shapes save for the remaining ones
    constexpr std::size_t folds = 8;
    std::vector<double> saved(shape.empty() ? 0 : shape.back() + 1);
    for (std::size_t fold = 0; fold < folds; ++fold) {
        const LogFactors theta = fitted_to([&](std::size_t s) { return s % folds != fold; });
        for (std::size_t i = 0; i < all.size(); ++i)
            if (shape[i] % folds == fold) saved[shape[i]] += all[i].lost({}) - all[i].lost(theta);
    }
    double sum = 0, squares = 0;
    for (const double s : saved) {
        sum += s;
        squares += s * s;
    }
    // by two standard errors, which noise alone seldom gives
    if (!(sum > 2 * std::sqrt(squares))) return;
    const LogFactors theta = fitted_to([](std::size_t) { return true; });
    for (std::size_t i = 0; i < fitted; ++i) times[i] *= std::exp(theta[i]);
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
    const auto add = [&]<class T>(const std::array<double, step_time_count>& times) {
        for (const ModelledCase& c : modelled_cases<T>(table.cases)) {
            const std::size_t built_in = c.choice({}), tuned = c.choice(log_factors<T>(times));
            if (built_in == tuned) continue;
            const TunedCase& measured = *c.measured;
            changed.push_back({measured, tuned_methods[built_in], tuned_methods[tuned],
                               measured.seconds[built_in] / measured.seconds[tuned]});
        }
    };
    add.operator()<float>(table.f32);
    add.operator()<double>(table.f64);
    return changed;
}

}  // namespace quoin
