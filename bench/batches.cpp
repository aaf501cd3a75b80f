// Batches: V, tau and R, and Q and R, of many matrices at once against LAPACK, or cuSOLVER and cuBLAS, matrix by
// matrix; and the accuracy of the answers over classes of matrices.

#include <algorithm>
#include <cmath>

#include "either_device.hpp"
#include "results.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "rivals/cublas_batched.hpp"
#endif

namespace quoin::cli {

namespace {

/// On a GPU: V, tau and R in f32, ms.
struct Required {
    BatchSpec spec;
    double ms;
};
constexpr Required table[] = {
    {{100000, {3, 3}}, 0.012}, {{10000, {16, 8}}, 0.012}, {{4096, {32, 32}}, 0.06},  {{1000, {64, 32}}, 0.06},
    {{256, {256, 64}}, 0.15},  {{20, {32, 32}}, 0.012},   {{40, {176, 176}}, 0.085}, {{40, {352, 352}}, 0.25},
    {{640, {512, 512}}, 3.5},  {{60, {1024, 1024}}, 2.0}, {{8, {2048, 2048}}, 3.0},  {{2, {4096, 4096}}, 7.0},
};

/// Matrices on which a factorization goes wrong when something is wrong with it.
enum class Kind {
    Normal,
    RankDeficient,
    NearlyRankDeficient,
    ClusteredSingularValues,
    Banded,
    ScaledRows,
    NearlyCollinear,
    UpperTriangular,
};
constexpr const char* kinds[] = {"normal", "rank-deficient", "nearly-rank-deficient", "clustered-singular-values",
                                 "banded", "scaled-rows",    "nearly-collinear",      "upper-triangular"};

template <class T>
Matrix<T> member(Kind kind, Index m, Index n, std::uint64_t seed) {
    Matrix<T> A = normal_matrix<T>(m, n, seed);
    const double u = std::numeric_limits<T>::epsilon() / 2.0;
    const Index k = std::min(m, n);
    switch (kind) {
        case Kind::Normal: break;
        case Kind::RankDeficient:
        case Kind::NearlyRankDeficient:
        case Kind::NearlyCollinear: {
            // the second half of the columns repeats the first, or all repeat one, with this much noise
            const double noise = kind == Kind::RankDeficient ? 0 : kind == Kind::NearlyCollinear ? 1e-4 : u;
            const Index distinct = kind == Kind::NearlyCollinear ? 1 : std::max<Index>(1, k / 2);
            for (Index j = distinct; j < n; ++j) {
                for (Index i = 0; i < m; ++i) A(i, j) = A(i, j % distinct) + static_cast<T>(noise) * A(i, j);
            }
            break;
        }
        case Kind::ClusteredSingularValues:
            // columns in four clusters of norms, mixed by a reflector
            for (Index j = 0; j < n; ++j) {
                const T scale =
                    static_cast<T>(std::pow(10.0, -4.0 * static_cast<double>(4 * j / std::max<Index>(1, n)) / 3));
                for (Index i = 0; i < m; ++i) A(i, j) *= scale;
            }
            for (Index i = 0; i < m; ++i) {
                T sum = 0;
                for (Index j = 0; j < n; ++j) sum += A(i, j);
                for (Index j = 0; j < n; ++j) A(i, j) -= 2 * sum / static_cast<T>(n);
            }
            break;
        case Kind::Banded:
        case Kind::UpperTriangular:
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i) {
                    if (i > j + (kind == Kind::Banded ? 2 : 0) || (kind == Kind::Banded && j > i + 3)) A(i, j) = 0;
                }
            }
            break;
        case Kind::ScaledRows:
            for (Index i = 0; i < m; ++i) {
                const T scale = static_cast<T>(std::pow(10.0, static_cast<double>((7 * i + 3) % 13) - 6));
                for (Index j = 0; j < n; ++j) A(i, j) *= scale;
            }
            break;
    }
    return A;
}

template <class D>
class BatchStudy {
public:
    BatchStudy(Context<D>& ctx, const BenchArguments& arguments, const std::string& machine)
        : ctx_(ctx), arguments_(arguments), results_(arguments) {
        results_.describe(machine);
        results_.say("{}\n\n{:>18} {:<5} {:<9} {:>11} {:>9}  {:<12} {:>11} {:>8} {:>10}\n", machine, "batch", "dtype",
                     "op", "ms", "GFLOP/s", "reference", "ms", "ratio", "required");
    }

    void run() {
        std::vector<BatchSpec> specs = arguments_.batches;
        if (specs.empty()) {
            for (const Required& row : table) specs.push_back(row.spec);
        }
        arguments_.for_each_dtype({ScalarKind::F32}, [&]<class T>(T) {
            for (const BatchSpec& spec : specs) measure<T>(spec, scalar_kind<T>);
        });
    }

private:
    template <class T>
    static BatchView<T, D> view_of(Matrix<T, D>& A, Index rows, Index cols, Index count) {
        return {A.data(), rows, cols, std::max<Index>(1, rows), rows * cols, count};
    }

    template <class T>
    void measure(const BatchSpec& spec, ScalarKind dtype) {
        const Index m = spec.shape.rows, n = spec.shape.cols, count = spec.count, k = std::min(m, n);
        // on a GPU several short calls one after the other, as in a program that enqueues its work
        const int several = !std::is_same_v<D, Host> && count * m * n < Index(1) << 24 ? 10 : 1;
        Matrix<T, D> A = to_device(ctx_, normal_matrix<T>(m, n * count)), Q(ctx_, m, k * count), R(ctx_, k, n * count),
                     tau(ctx_, k, count);
        std::vector<Matrix<T, D>> work;  // factored in place: a matrix that is factored already takes another time
        for (int i = 0; i < several; ++i) work.emplace_back(ctx_, m, n * count);
        const BatchView<const T, D> in = view_of<T>(A, m, n, count);
        const BatchView<T, D> out = view_of<T>(work[0], m, n, count), q = view_of<T>(Q, m, k, count),
                              r = view_of<T>(R, k, n, count), t = view_of<T>(tau, k, 1, count);
        Options options = arguments_.common.options;
        // as the references, which look at nothing
        options.check_finite = false;
        Rival<T, D> rival(ctx_, m, n);
        const auto reset = [&] {
            for (auto& W : work) copy<T>(ctx_, std::as_const(A).view(), W.view());
        };
        const auto calls = [&](auto call) {
            return std::function<double()>([&, call] {
                return seconds_of(ctx_,
                                  [&] {
                                      for (int i = 0; i < several; ++i) call(i);
                                  }) /
                       several;
            });
        };
        const auto factor = calls([&](int) { (void)qr<T, D>(ctx_, in, options); });
        // in place, as the references
        const auto in_place =
            calls([&](int i) { qr_lapack<T, D>(ctx_, view_of<T>(work[i], m, n, count), t, options); });
        const std::function<double()> geqrf = [&] {
            reset();
            return in_place();
        };
        const auto thin_qr = calls([&](int) { qr<T, D>(ctx_, in, q, r, options); });
        const auto matrix = [&](Index b) { return MatrixView<T, D>(out.data(b), m, n); };
        const std::function<double()> loop_geqrf = [&] {
            reset();
            return seconds_of(ctx_, [&] {
                for (Index b = 0; b < count; ++b) rival.geqrf(ctx_, matrix(b));
            });
        };
        const std::function<double()> loop_thin_qr = [&] {
            reset();
            return seconds_of(ctx_, [&] {
                for (Index b = 0; b < count; ++b) rival.geqrf(ctx_, matrix(b));
                // with the last tau: as much work
                for (Index b = 0; b < count; ++b) rival.orgqr(ctx_, matrix(b));
            });
        };
        std::vector<std::function<double()>> runs = {factor, geqrf, thin_qr};
        const bool against = arguments_.wants(std::is_same_v<D, Host> ? Reference::Lapack : Reference::Cusolver);
        if (against) runs.insert(runs.end(), {loop_geqrf, loop_thin_qr});
#ifdef QUOIN_HAVE_CUDA
        if constexpr (std::is_same_v<D, Cuda>) {
            if (against) {
                auto batched = std::make_shared<bench::CublasBatchedQR<T>>(ctx_, out);
                // in place: from the second call on it factors a factor, which takes as long
                runs.push_back(calls([&, batched](int) { batched->geqrf(ctx_); }));
            }
        }
#endif
        const std::vector<double> seconds = medians_of(runs, arguments_.repeat);
        const double factor_flops = count * operation_flops(Operation::Geqrf, m, n),
                     thin_flops = count * operation_flops(Operation::ThinQr, m, n);
        const double required = required_seconds(spec, dtype);
        const double by_loop = against ? seconds[3] : -1, thin_by_loop = against ? seconds[4] : -1;
        add(spec, dtype, "factor", seconds[0], factor_flops, Rival<T, D>::name, by_loop, required);
        add(spec, dtype, "geqrf", seconds[1], factor_flops, Rival<T, D>::name, by_loop, required);
        add(spec, dtype, "thin-qr", seconds[2], thin_flops, Rival<T, D>::name, thin_by_loop, -1);
        if (seconds.size() > 5) add(spec, dtype, "factor", seconds[0], factor_flops, "cublas", seconds[5], required);
        if (arguments_.no_accuracy) return;
        for (std::size_t kind = 0; kind <= std::size(kinds); ++kind) check<T>(spec, dtype, kind);
    }

    /// Measures the accuracy of a batch of one kind, or of all kinds, in units of k·u, on the matrices that a few
    /// seconds allow.
    template <class T>
    void check(const BatchSpec& spec, ScalarKind dtype, std::size_t kind) {
        throw_if_interrupted();
        const auto [m, n] = spec.shape;
        const bool mixed = kind == std::size(kinds);
        const Index k = std::min(m, n);
        const double each = 4.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
        const Index count = std::min(
            spec.count, std::clamp<Index>(static_cast<Index>(2e9 / each), mixed ? std::ssize(kinds) : 2, 1000));
        std::vector<Matrix<T>> given;
        Matrix<T> all(m, n * count);
        for (Index b = 0; b < count; ++b) {
            given.push_back(member<T>(static_cast<Kind>(mixed ? b % std::ssize(kinds) : kind), m, n, b + 1));
            std::copy_n(given.back().data(), m * n, all.data() + b * m * n);
        }
        Matrix<T, D> A = to_device<T>(ctx_, std::move(all)), Q(ctx_, m, k * count), R(ctx_, k, n * count);
        qr<T, D>(ctx_, BatchView<const T, D>(view_of<T>(A, m, n, count)), view_of<T>(Q, m, k, count),
                 view_of<T>(R, k, n, count), arguments_.common.options);
        const Matrix<T>& Qs = on_host<T>(ctx_, Q);
        const Matrix<T>& Rs = on_host<T>(ctx_, R);
        Context<Host> host(arguments_.common.threads);
        const double unit = static_cast<double>(std::max<Index>(1, k)) * std::numeric_limits<T>::epsilon() / 2;
        double worst_orthogonality = 0, worst_residual = 0;
        for (Index b = 0; b < count; ++b) {
            const auto Qb = Qs.view().col_block({b * k, (b + 1) * k}), Rb = Rs.view().col_block({b * n, (b + 1) * n});
            // NaN wins
            const auto raise = [](double& worst, double x) { worst = x <= worst ? worst : x; };
            raise(worst_orthogonality, orthogonality<T>(host, Qb) / unit);
            raise(worst_residual, residual<T>(host, given[b].view(), Qb, Rb) / unit);
        }
        const char* const name = mixed ? "mixed" : kinds[kind];
        results_.say("{:>18} {:<5} {:<26} ‖I − QᵀQ‖ {:>7.3f} ku   ‖A − QR‖/‖A‖ {:>7.3f} ku   {} matrices\n", "", "",
                     name, worst_orthogonality, worst_residual, count);
        write(spec, dtype, "thin-qr", name, -1, -1, "", -1, -1, worst_orthogonality, worst_residual);
    }

    static double required_seconds(const BatchSpec& spec, ScalarKind dtype) {
        if (std::is_same_v<D, Host> || dtype != ScalarKind::F32) return -1;
        for (const Required& row : table) {
            if (row.spec == spec) return 1e-3 * row.ms;
        }
        return -1;
    }
    void add(const BatchSpec& spec, ScalarKind dtype, const char* op, double seconds, double flops,
             const char* reference, double reference_seconds, double required) {
        const bool compared = reference_seconds >= 0;
        results_.say("{:>18} {:<5} {:<9} {:>11.4g} {:>9.4g}  {:<12} {:>11} {:>8} {:>10}\n", to_string(spec),
                     quoin::to_string(dtype), op, 1e3 * seconds, 1e-9 * flops / seconds, compared ? reference : "",
                     measured(1e3 * reference_seconds, "{:.4g}", ""),
                     measured(reference_seconds / seconds, "{:.2f}", ""), measured(1e3 * required, "{:g}", ""));
        write(spec, dtype, op, kinds[0], seconds, 1e-9 * flops / seconds, compared ? reference : "", reference_seconds,
              required, -1, -1);
    }
    void write(const BatchSpec& spec, ScalarKind dtype, const char* op, const char* kind, double seconds, double gflops,
               const char* reference, double reference_seconds, double required, double orthogonality,
               double residual) {
        JsonLine json;
        json.add("count", spec.count).add("rows", spec.shape.rows).add("cols", spec.shape.cols);
        json.add("dtype", quoin::to_string(dtype)).add("op", op).add("matrices", kind);
        json.add_measured("seconds", seconds).add_measured("gflops", gflops).add("reference", reference);
        json.add_measured("reference_seconds", reference_seconds);
        json.add_measured("ratio", reference_seconds < 0 ? -1 : reference_seconds / seconds);
        json.add_measured("required_seconds", required);
        json.add_measured("orthogonality_ku", orthogonality).add_measured("residual_ku", residual);
        results_.record(json);
    }

    Context<D>& ctx_;
    const BenchArguments& arguments_;
    Results results_;
};

}  // namespace

void bench_batches(const BenchArguments& arguments) {
    on_either_device(arguments, [&]<class D>(Context<D>& ctx, const std::string& machine) {
        BatchStudy<D>(ctx, arguments, machine).run();
    });
}

}  // namespace quoin::cli
