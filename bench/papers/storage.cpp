// Table 1 and Figures 1 and 2 of Benner, Köhler and Penke (storage-efficient QR) and what the full T is for: V, R and
// one T, products with Qᵀ, and a block of Q, on either device, against LAPACK on the host and cuSOLVER.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "either_device.hpp"
#include "papers/large_matrix.hpp"
#include "quoin/study.hpp"
#include "results.hpp"
#ifdef QUOIN_HAVE_CUDA
#endif

namespace quoin::cli {

namespace {

/// Qᵀ applied to `columns` columns.
struct Application {
    Shape shape;
    Index columns;
};
constexpr Application applications[] = {{{1000000, 192}, 100}, {{8192, 2048}, 2048}, {{10000, 10000}, 1000}};

constexpr Index block_order = 10000, blocks_a_side = 10;

/// The paper's count for V, R and T of an n×n matrix: 5n³/3.
double paper_flops(Index n) { return 5.0 / 3 * std::pow(static_cast<double>(n), 3); }

/// A := independent entries uniform on (0, 1), as the paper's.
template <class T, class D>
void fill_uniform(Context<D>& ctx, Matrix<T, D>& A) {
    Matrix<T> X(A.rows(), A.cols());
    bench::fill_noise<T>(/*seed=*/1, X.view());
    std::transform(X.data(), X.data() + X.rows() * X.cols(), X.data(), [](T x) { return std::abs(x); });
    A = to_device(ctx, std::move(X));
}

/// Returns the seconds during which `row` of the trace was busy.
double busy_seconds(const Trace& trace, Trace::Row row) {
    double busy = 0, end = 0;
    for (const Trace::Span& span : trace.spans()) {
        if (span.row != row) continue;
        busy += std::max(0.0, span.times.end - std::max(end, span.times.begin));
        end = std::max(end, span.times.end);
    }
    return 1e-6 * busy;
}

template <class D>
class StorageBench {
public:
    StorageBench(const BenchArguments& arguments, Context<D>& ctx, const std::string& machine)
        : arguments_(arguments),
          ctx_(ctx),
          results_(arguments),
          energy_(arguments, on_host || arguments.wants(Reference::Lapack), !on_host) {
        results_.describe(machine);
        results_.say("{}\n", machine);
    }

    /// Table 1 and Figure 2.
    void full_t() {
        arguments_.for_each_dtype({ScalarKind::F64}, [&]<class T>(T) { factorizations<T>(); });
    }
    /// Figure 1: each way to factor the panels on the host, with its timeline in a file if `trace` names one.
    void schedules(const std::string& trace) {
        arguments_.for_each_dtype({ScalarKind::F64}, [&]<class T>(T) { schedules<T>(trace); });
    }
    /// Products with Qᵀ, and blocks of Q.
    void uses_of_t() {
        arguments_.for_each_dtype({ScalarKind::F32, ScalarKind::F64}, [&]<class T>(T) { products<T>(); });
        arguments_.for_each_dtype({ScalarKind::F32, ScalarKind::F64}, [&]<class T>(T) { blocks<T>(); });
    }

private:
    static constexpr bool on_host = std::is_same_v<D, Host>;
    struct Named {
        std::string name;
        std::function<double()> run;
    };

    bool wants_rival() const { return arguments_.wants(on_host ? Reference::Lapack : Reference::Cusolver); }

    /// Adds the medians of the runs, all of one code's energy on one meter, or none.
    template <class T>
    void measure(const char* op, Shape shape, Index columns, const std::vector<Named>& runs,
                 EnergyMeter* meter = nullptr) {
        std::vector<std::function<double()>> functions;
        for (const auto& [name, run] : runs) functions.push_back(run);
        const std::vector<double> medians = medians_of(functions, arguments_.repeat);
        for (std::size_t r = 0; r < runs.size(); ++r)
            add(op, shape, columns, scalar_kind<T>, runs[r].name, medians[r],
                meter ? joules_of(*meter, runs[r].run, medians[r]) : -1);
    }
    void add(const char* op, Shape shape, Index columns, ScalarKind dtype, const std::string& code, double seconds,
             double joules) {
        const double gflop = 1e-9 * factor_flops(shape.rows, shape.cols), of_paper = 1e-9 * paper_flops(shape.cols);
        const auto a_joule = [&](double count) { return joules < 0 ? -1 : count / joules; };
        JsonLine line;
        line.add("op", op).add("rows", shape.rows).add("cols", shape.cols).add("columns", columns);
        line.add("dtype", to_string(dtype)).add("code", code).add("seconds", seconds);
        if (arguments_.energy) line.add_measured("joules", joules).add_measured("gflop_per_joule", a_joule(gflop));
        if (std::string(op) == "factor") {
            const bool square = shape.rows == shape.cols;
            line.add("gflops", gflop / seconds).add_measured("paper_gflops", square ? of_paper / seconds : -1);
            if (arguments_.energy) line.add_measured("paper_gflop_per_joule", square ? a_joule(of_paper) : -1);
        }
        results_.add(line);
    }
    Options options(QOptions q) const {
        Options options = arguments_.common.options;
        options.q = q;
        return options;
    }
    template <class T>
    double factor_seconds(const Matrix<T, D>& A, const Plan& plan) {
        Matrix<T, D> work = copy_of<T, D>(ctx_, A.view());
        std::optional<QR<T, D>> f;
        return seconds_of(ctx_, [&] { f.emplace(qr<T, D>(ctx_, std::move(work), plan)); });
    }

    /// Returns the plans of the paper's schedule, by name: a panel on the host by blocked Householder, or by TSQR.
    template <class T>
    std::vector<std::pair<const char*, Plan>> hybrid_plans(Shape shape) const {
        Options by_householder = options(FullT{.route = FullTRoute::Recurrence}), by_tsqr = by_householder;
        by_tsqr.method = CAQR{by_householder.method.panel_width()};
        const auto plan = [&](const Options& options) {
            return study::plan_with_panels_on_host<T>(ctx_, shape.rows, shape.cols, options);
        };
        return {{"hybrid", plan(by_householder)}, {"hybrid-tsqr", plan(by_tsqr)}};
    }

    template <class T>
    void schedules(const std::string& trace_path) {
        for (const Shape shape : arguments_.shapes_or({{10000, 10000}})) {
            unless_too_large(shape, scalar_kind<T>, [&] {
                Matrix<T, D> A(ctx_, shape.rows, shape.cols);
                fill_uniform(ctx_, A);
                for (const auto& [name, plan] : hybrid_plans<T>(shape)) {
                    factor_seconds<T>(A, plan);  // loads kernels
                    Trace trace;
                    double seconds = 0;
                    {
                        const Attached<D> attached(ctx_, trace);
                        seconds = factor_seconds<T>(A, plan);
                    }
                    const double host = busy_seconds(trace, Trace::Row::Host) / seconds,
                                 gpu = busy_seconds(trace, Trace::Row::Device) / seconds;
                    JsonLine line = case_line(shape, scalar_kind<T>);
                    results_.add(line.add("code", name).add("seconds", seconds).add("host", host).add("gpu", gpu));
                    if (!trace_path.empty()) trace.write(fmt::format("{}.{}.json", trace_path, name));
                }
            });
        }
    }

    template <class T>
    void factorizations() {
        std::vector<Index> orders;
        for (Index n = 1000; n <= 15000; n += 1000) orders.push_back(n);
        for (const Shape shape : arguments_.shapes_or(squares(orders))) {
            unless_too_large(shape, scalar_kind<T>, [&] {
                const auto [m, n] = shape;
                Matrix<T, D> A(ctx_, m, n);
                fill_uniform(ctx_, A);
                std::vector<Named> runs;
                const auto add_plan = [&](const char* name, const Plan& plan) {
                    runs.push_back({name, [&, plan] { return factor_seconds<T>(A, plan); }});
                };
                const auto add_quoin = [&, m = m, n = n](const char* name, QOptions q) {
                    add_plan(name, plan_qr<T>(ctx_, m, n, options(q)));
                };
                add_quoin("recurrence", FullT{.route = FullTRoute::Recurrence});
                add_quoin("recurrence-s", FullT{.keep_s = true, .route = FullTRoute::Recurrence});
                add_quoin("joined", FullT{.route = FullTRoute::Joined});
                if (!on_host)
                    for (const auto& [name, plan] : hybrid_plans<T>(shape)) add_plan(name, plan);
                add_quoin("without-t", QForm::Reflectors);
                std::optional<Rival<T, D>> rival;
                if (wants_rival()) {
                    rival.emplace(ctx_, m, n);
                    runs.push_back({"geqrf", [&] {
                                        Matrix<T, D> work = copy_of<T, D>(ctx_, A.view());
                                        return seconds_of(ctx_, [&] { rival->geqrf(ctx_, work.view()); });
                                    }});
                }
                measure<T>("factor", shape, 0, runs, on_host ? &energy_.host : &energy_.gpu);
                if (m >= n && arguments_.wants(Reference::Lapack)) measure_geqrt3<T>(shape, A);
            });
        }
    }

    /// Times LAPACK on the host.
    template <class T>
    void measure_geqrt3(Shape shape, const Matrix<T, D>& A) {
        Context<Host> host = make_context(arguments_.common);
        Matrix<T> original;
        if constexpr (std::is_same_v<D, Host>) {
            original = copy_of<T, D>(ctx_, A.view());
        } else {
            original = copy_to_host<T>(ctx_, A.view());
        }
        ReferenceLapack<T> lapack(A.rows(), A.cols());
        Matrix<T> work(A.rows(), A.cols()), Tf(A.cols(), A.cols());
        const auto run = [&] {
            copy<T>(host, std::as_const(original).view(), work.view());
            const Stopwatch watch;
            lapack.geqrt3(work.view(), Tf.view());
            return watch.seconds();
        };
        measure<T>("factor", shape, 0, {{"geqrt3", run}}, &energy_.host);
    }

    /// Times `by_quoin(f)` for factorizations f of A with T and with S, and `by_rival(rival)` once A is what the
    /// rival's geqrf leaves, as "t", "s" and `routine`. All return seconds.
    template <class T, class ByQuoin, class ByRival>
    void compare_products(const char* op, Index columns, Matrix<T, D>& A, ByQuoin by_quoin, const char* routine,
                          ByRival by_rival) {
        const auto f = qr<T, D>(ctx_, std::as_const(A).view(), options(FullT{}));
        const auto g = qr<T, D>(ctx_, std::as_const(A).view(), options(FullT{.keep_s = true}));
        std::vector<Named> runs = {{"t", [&] { return by_quoin(f); }}, {"s", [&] { return by_quoin(g); }}};
        std::optional<Rival<T, D>> rival;
        if (wants_rival()) {
            rival.emplace(ctx_, A.rows(), A.cols());
            rival->geqrf(ctx_, A.view());
            runs.push_back({routine, [&] { return by_rival(*rival); }});
        }
        measure<T>(op, {A.rows(), A.cols()}, columns, runs);
    }

    template <class T>
    void products() {
        std::vector<Application> asked;
        for (const auto& [m, n] : arguments_.shapes) asked.push_back({{m, n}, n});
        if (asked.empty()) asked.assign(std::begin(applications), std::end(applications));
        for (const Application& application : asked) {
            unless_too_large(application.shape, scalar_kind<T>, [&] {
                const auto [m, n] = application.shape;
                Matrix<T, D> A = normal_matrix<T>(ctx_, m, n), C = normal_matrix<T>(ctx_, m, application.columns);
                compare_products(
                    "apply-qt", application.columns, A,
                    [&](const QR<T, D>& f) {
                        return seconds_of(ctx_, [&] { f.apply_q(ctx_, Side::Left, Op::Transpose, C.view()); });
                    },
                    "ormqr",
                    [&](Rival<T, D>& rival) {
                        return seconds_of(ctx_, [&] { rival.ormqr(ctx_, std::as_const(A).view(), C.view()); });
                    });
            });
        }
    }

    template <class T>
    void blocks() {
        for (const auto& [rows, cols] : arguments_.shapes_or({{block_order, block_order}}))
            if (rows == cols) block_of_q<T>(cols);
    }
    template <class T>
    void block_of_q(Index n) {
        const Index block_size = std::max<Index>(1, n / blocks_a_side);
        unless_too_large({n, n}, scalar_kind<T>, [&] {
            Matrix<T, D> A = normal_matrix<T>(ctx_, n, n);
            const Range last{n - block_size, n};  // no zeros of V to leave out: the block that costs most
            compare_products(
                "q-block", block_size, A,
                [&](const QR<T, D>& f) {
                    Matrix<T, D> B;
                    return seconds_of(ctx_, [&] { B = f.q_block(ctx_, last, last); });
                },
                "orgqr",
                [&](Rival<T, D>& rival) {
                    Matrix<T, D> work = copy_of<T, D>(ctx_, A.view());
                    return seconds_of(ctx_, [&] { rival.orgqr(ctx_, work.view()); });
                });
        });
    }

    const BenchArguments& arguments_;
    Context<D>& ctx_;
    Results results_;
    EnergyMeters energy_;
};

}  // namespace

void bench_storage(const BenchArguments& arguments) {
    BenchArguments asked = arguments;
    asked.energy = true;
    on_either_device(asked, [&]<class D>(Context<D>& ctx, const std::string& machine) {
        StorageBench<D>(asked, ctx, machine).full_t();
    });
}

void bench_storage_schedules(const BenchArguments& arguments) {
    BenchArguments asked = arguments;
    asked.common.trace.clear();  // a timeline for each
    on_either_device(asked, [&]<class D>(Context<D>& ctx, const std::string& machine) {
        StorageBench<D>(asked, ctx, machine).schedules(arguments.common.trace);
    });
}

void bench_storage_products(const BenchArguments& arguments) {
    on_either_device(arguments, [&]<class D>(Context<D>& ctx, const std::string& machine) {
        StorageBench<D>(arguments, ctx, machine).uses_of_t();
    });
}

}  // namespace quoin::cli
