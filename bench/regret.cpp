// How much slower `Auto` is than the best of Quoin's methods, over random shapes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "either_device.hpp"
#include "results.hpp"

namespace quoin::cli {

namespace {

template <class D>
class RegretStudy {
public:
    RegretStudy(Context<D>& ctx, const BenchArguments& arguments, const std::string& machine)
        : ctx_(ctx),
          arguments_(arguments),
          results_(arguments),
          count_(arguments.shape_count > 0  ? arguments.shape_count
                 : arguments.shapes.empty() ? 200
                                            : static_cast<Index>(arguments.shapes.size())) {
        results_.describe(machine);
        results_.say("{}\n{} shapes, seed {}\n\n{:>18} {:<5} {:<8} {:<20} {:>10}  {:<20} {:>10} {:>7} {:>10} {:>7}\n",
                     machine, count_, arguments.seed, "rows x columns", "type", "op", "auto takes", "ms", "best", "ms",
                     "behind", "reference", "ahead");
    }

    void run() {
        std::mt19937_64 random(static_cast<std::uint64_t>(arguments_.seed));
        std::vector<Shape> shapes = arguments_.shapes;
        while (static_cast<Index>(shapes.size()) < count_) {
            const auto drawn = [&](double least, double most) {
                // not std::uniform_real_distribution: the same numbers everywhere
                const double x = static_cast<double>(random() >> 11) * 0x1p-53;
                return static_cast<Index>(std::llround(least * std::pow(most / least, x)));
            };
            const Index m = drawn(32, 1e7), n = drawn(2, 20000);
            if (is_feasible(m, n)) shapes.push_back({m, n});
        }
        arguments_.for_each_dtype({ScalarKind::F32, ScalarKind::F64}, [&]<class T>(T) {
            for (const Shape shape : shapes)
                for (const Operation operation :
                     {Operation::ROnly, Operation::Geqrf, Operation::ThinQr, Operation::Factor})
                    measure<T>(shape, operation);
        });
        summarise();
    }

private:
    static constexpr Method candidate_methods[] = {Method::BlockedHouseholder, Method::TSQR, Method::CAQR,
                                                   Method::CholeskyQR2};

    /// At most, of C in Qᵀ C.
    static constexpr Index columns_of_c = 16;

    /// Seconds, not minutes, and memory for A, a copy and Q of 8 bytes an entry.
    static bool is_feasible(Index m, Index n) {
        const bool on_host = std::is_same_v<D, Host>;
        const double entries = static_cast<double>(m) * static_cast<double>(n), k = static_cast<double>(std::min(m, n));
        return entries * k <= (on_host ? 2e10 : 2e13) && entries <= (on_host ? 2e8 : 2e9);
    }

    /// The methods with the accuracy of `Auto` that this shape allows, `Auto` first.
    template <class T>
    std::vector<Plan> plans(Shape shape, Operation operation) const {
        std::vector<Plan> found;
        const auto consider = [&](Method method) {
            Options options;
            options.method = method;
            options.q = form_of_q(operation);
            try {
                const Plan plan = plan_qr<T>(ctx_, shape.rows, shape.cols, options);
                const bool known = std::any_of(found.begin(), found.end(), [&](const Plan& other) {
                    return other.method == plan.method && other.q == plan.q;
                });
                if (!known) found.push_back(plan);
            } catch (const InvalidArgument&) {
                // too wide for a tree, or no more rows than columns
            }
        };
        consider(Method::Auto);
        for (const Method method : candidate_methods) consider(method);
        return found;
    }

    template <class T>
    void measure(Shape shape, Operation operation) {
        const Index m = shape.rows, n = shape.cols;
        std::vector<Plan> candidates = plans<T>(shape, operation);
        unless_too_large(shape, scalar_kind<T>, [&] {
            const Index p = operation == Operation::Factor ? std::min(n, columns_of_c) : 0;
            const Matrix<T, D> A = normal_matrix<T>(ctx_, m, n), columns = normal_matrix<T>(ctx_, m, p);
            const auto timed = [&](const Plan& plan) {
                return std::function<double()>([&, plan] {
                    throw_if_interrupted();
                    Matrix<T, D> work = copy_of<T, D>(ctx_, A.view());
                    Matrix<T, D> C = copy_of<T, D>(ctx_, columns.view());
                    ThinQR<T, D> thin;
                    LapackQR<T, D> factors;
                    return seconds_of(ctx_, [&] {
                        QR<T, D> f = qr<T, D>(ctx_, std::move(work), plan);
                        if (operation == Operation::Geqrf) {
                            factors = to_lapack(ctx_, std::move(f));
                        } else if (operation == Operation::Factor) {
                            thin.R = f.r(ctx_);
                            f.apply_q(ctx_, Side::Left, Op::Transpose, C.view());
                        } else {
                            thin = std::move(f).take_thin(ctx_);
                        }
                    });
                });
            };
            // a method whose certificate this matrix does not get is none of the candidates
            std::vector<std::function<double()>> runs;
            std::erase_if(candidates, [&](const Plan& plan) {
                try {
                    runs.push_back(timed(plan));
                    runs.back()();
                    return false;
                } catch (const NumericalBreakdown&) {
                    runs.pop_back();
                    return true;
                }
            });
            const bool against = operation != Operation::Factor && !arguments_.wants(Reference::None, false);
            std::optional<Rival<T, D>> rival;
            if (against) {
                rival.emplace(ctx_, m, n);
                runs.push_back([&] {
                    Matrix<T, D> work = copy_of<T, D>(ctx_, A.view());
                    return seconds_of(ctx_, [&] {
                        rival->geqrf(ctx_, work.view());
                        if (operation == Operation::ThinQr) rival->orgqr(ctx_, work.view());
                    });
                });
            }
            const std::vector<double> seconds = fastest_of(runs, arguments_.repeat);
            const double of_lapack = against ? seconds.back() : -1;
            const auto past = seconds.begin() + static_cast<std::ptrdiff_t>(candidates.size());
            const auto best = static_cast<std::size_t>(std::min_element(seconds.begin(), past) - seconds.begin());
            report<T>(shape, operation, candidates, seconds, best, of_lapack);
        });
    }

    template <class T>
    void report(Shape shape, Operation operation, const std::vector<Plan>& candidates,
                const std::vector<double>& seconds, std::size_t best, double of_lapack) {
        const double behind = seconds[0] / seconds[best] - 1;
        regrets_.push_back(behind);
        if (of_lapack >= 0) ratios_.push_back(of_lapack / seconds[0]);
        if (behind > 0.1 || (of_lapack >= 0 && of_lapack < seconds[0])) {
            results_.say("{:>18} {:<5} {:<8} {:<20} {:>10.4g}  {:<20} {:>10.4g} {:>6.0f}% {:>10} {:>7}\n",
                         to_string(shape), quoin::to_string(scalar_kind<T>), to_string(operation),
                         quoin::to_string(candidates[0].method), 1e3 * seconds[0],
                         quoin::to_string(candidates[best].method), 1e3 * seconds[best], 100 * behind,
                         measured(1e3 * of_lapack, "{:.4g}", ""), measured(of_lapack / seconds[0], "{:.2f}", ""));
        }
        JsonLine json = case_line(shape, scalar_kind<T>);
        json.add("op", to_string(operation)).add("method", quoin::to_string(candidates[0].method));
        json.add("seconds", seconds[0]).add("best", quoin::to_string(candidates[best].method));
        json.add("best_seconds", seconds[best]).add("behind", behind).add_measured("reference_seconds", of_lapack);
        for (const Method method : candidate_methods) {
            const auto found = std::find_if(candidates.begin(), candidates.end(),
                                            [&](const Plan& plan) { return plan.method == method; });
            const double of_method =
                found == candidates.end() ? -1 : seconds[static_cast<std::size_t>(found - candidates.begin())];
            json.add_measured(fmt::format("{}_seconds", quoin::to_string(method)).c_str(), of_method);
        }
        results_.record(json);
    }

    void summarise() {
        const auto share = [](const std::vector<double>& values, auto holds) {
            return 100.0 * static_cast<double>(std::count_if(values.begin(), values.end(), holds)) /
                   static_cast<double>(std::max<std::size_t>(1, values.size()));
        };
        results_.say(
            "\n{} cases: auto is within 10% of the best in {:.1f}%, within 30% in {:.1f}%, at worst {:.0f}% behind\n",
            regrets_.size(), share(regrets_, [](double x) { return x <= 0.1; }),
            share(regrets_, [](double x) { return x <= 0.3; }),
            100 * (regrets_.empty() ? 0 : *std::max_element(regrets_.begin(), regrets_.end())));
        if (ratios_.empty()) return;
        results_.say("the reference is behind auto in {:.1f}%; its time over auto's is {:.2f} at least\n",
                     share(ratios_, [](double x) { return x >= 1; }),
                     *std::min_element(ratios_.begin(), ratios_.end()));
    }

    Context<D>& ctx_;
    const BenchArguments& arguments_;
    Results results_;
    Index count_;
    std::vector<double> regrets_, ratios_;
};

}  // namespace

void bench_regret(const BenchArguments& arguments) {
    on_either_device(arguments, [&]<class D>(Context<D>& ctx, const std::string& machine) {
        RegretStudy<D>(ctx, arguments, machine).run();
    });
}

}  // namespace quoin::cli
