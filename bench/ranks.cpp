// Q and R, or R alone, of rows over ranks: threads of this process, each with its share of the cores, or with a GPU of
// its own.

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/ranks/block_cyclic_tuning.hpp"
#include "devices.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "primitives.hpp"
#include "quoin/block_cyclic.hpp"
#include "quoin/distributed.hpp"
#include "random_matrix.hpp"
#include "rank_rate.hpp"
#include "results.hpp"
#include "stopwatch.hpp"
#include "studies.hpp"
#include "tracing.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "measure/cuda/accuracy.hpp"
#include "measure/cuda/device.hpp"
#include "measure/cuda/random.hpp"
#endif
#ifdef QUOIN_HAVE_NCCL
#include "quoin/nccl.hpp"
#endif

namespace quoin::cli {

namespace {

/// Returns the maximum of x over all ranks, on every rank, once all have called.
double maximum(Context<Host>& host, Communicator& comm, double x) {
    comm.all_reduce<double>(host, {&x, 1, 1}, Reduction::Max);
    return x;
}
double sum(Context<Host>& host, Communicator& comm, double x) {
    comm.all_reduce<double>(host, {&x, 1, 1});
    return x;
}

struct Answer {
    double seconds = 0, fastest = 0, orthogonality = -1, residual = -1;
    Method method = Method::Auto;
};

/// Calls `once()`, whose seconds are the same on every rank, until the time of a run is known, then `repeat` times or,
/// for 0, for a second, 3 to 50 times. Returns the median and the least.
template <class Once>
Answer timed(Once once, int repeat) {
    double warm_up = once();
    if (warm_up <= 1) warm_up = once();
    const int runs = repeat > 0 ? repeat : std::clamp(static_cast<int>(1 / warm_up), 3, 50);
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) seconds.push_back(once());
    Answer answer;
    answer.fastest = *std::min_element(seconds.begin(), seconds.end());
    answer.seconds = median(std::move(seconds));
    return answer;
}

/// Returns the seconds of `work()` from when all ranks begin to when the last has ended.
template <class D, class Work>
double seconds_of_ranks(Context<D>& ctx, Communicator& comm, Work work) {
    Context<Host> host(1);
    ctx.wait();
    maximum(host, comm, 0);
    const Stopwatch watch;
    work();
    ctx.wait();
    return maximum(host, comm, watch.seconds());
}

/// Seconds of a message without data between two ranks, and bytes a second of one with many.
struct Link {
    double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
};

/// Measures the link between ranks 0 and 1, while the other ranks wait.
Link measure_link(int ranks) {
    Link link;
    if (ranks == 1) return link;
    run_ranks(ranks, [&](Communicator& comm) {
        Context<Host> host(1);
        // the median of a message there and back, halved
        const auto seconds_of = [&](Index words) {
            Matrix<double> x = normal_matrix<double>(words, 1);
            std::vector<double> seconds;
            for (int run = 0; run < 101 && comm.rank() < 2; ++run) {
                const Stopwatch watch;
                if (comm.rank() == 0) comm.send<double>(host, std::as_const(x).view(), 1);
                comm.receive<double>(host, x.view(), 1 - comm.rank());
                if (comm.rank() == 1) comm.send<double>(host, std::as_const(x).view(), 0);
                seconds.push_back(watch.seconds() / 2);
            }
            return comm.rank() < 2 ? median(std::move(seconds)) : 0;
        };
        const double empty = seconds_of(0), full = seconds_of(Index{1} << 17);
        if (comm.rank() == 0) link = {empty, sizeof(double) * 0x1p17 / std::max(full - empty, 1e-9)};
    });
    return link;
}

/// Returns the predicted seconds of the case by the model of `quoin plan --ranks`, with the measured rates of this
/// machine's threads and their messages; −1 if a rank has fewer rows than columns.
template <class T>
double planned_seconds(const Case& c, int ranks, int threads, Options options) {
    const auto [m, n] = c.shape;
    if (m / ranks < n) return -1;
    options.q = form_of_q(c.operation);
    const RankPlan plan = plan_ranks<T>(Context<Host>(threads), m, n, ranks, options);
    const Link link = measure_link(ranks);
    return plan.seconds(link.latency, link.bandwidth, measure_rank<T>(ranks, threads, plan, n, options));
}

/// One rank's part: A's rows (on GPUs the same on every rank), the runs, and the measurements of the last answer.
template <class T, class D>
class Rank {
public:
    Rank(Context<D>& ctx, Communicator& comm, const Case& c, const BenchArguments& arguments)
        : ctx_(ctx), comm_(comm), case_(c), options_(arguments.common.options), repeat_(arguments.repeat) {
        options_.q = form_of_q(c.operation);
        const auto [m, n] = c.shape;
        const Index rows = rows_of_rank(m, comm.size(), comm.rank()).size();
        if constexpr (std::is_same_v<D, Host>) {
            A_ = normal_matrix<T>(rows, n, 1 + comm.rank());
        } else {
#ifdef QUOIN_HAVE_CUDA
            A_ = Matrix<T, D>(ctx, rows, n);
            bench::fill_normal<T>(ctx, A_);
#endif
        }
    }

    Answer run() {
        Answer answer = timed([&] { return once(); }, repeat_);
        answer.method = method_;
        if (case_.operation == Operation::ThinQr) measure(answer);
        return answer;
    }

    double once() {
        Q_ = {};
        R_ = {};
        return seconds_of_ranks(ctx_, comm_, [&] {
            auto f = qr<T, D>(ctx_, comm_, std::as_const(A_).view(), options_);
            method_ = f.report().method;
            R_ = f.r(ctx_);
            if (case_.operation == Operation::ThinQr) Q_ = std::move(f).take_q(ctx_);
        });
    }

private:
    /// ‖I − QᵀQ‖_F and ‖A − QR‖_F / ‖A‖_F over all ranks.
    void measure(Answer& answer) {
        const Index n = case_.shape.cols;
        Matrix<double> total = gram();
        comm_.all_reduce<double>(host_, total.view());
        double squares = 0;
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i <= j; ++i) squares += (i < j ? 2 : 1) * std::pow(total(i, j) - (i == j), 2);
        }
        answer.orthogonality = std::sqrt(squares);
        const double norm = sum(host_, comm_, entry_norms<T>(ctx_, std::as_const(A_).view()).squares);
        subtract_product<T>(ctx_, Q_.view(), R_.view(), A_.view());
        answer.residual = std::sqrt(sum(host_, comm_, entry_norms<T>(ctx_, std::as_const(A_).view()).squares) / norm);
    }

    /// QᵀQ of these rows, upper triangle, in double.
    Matrix<double> gram() {
        const Index n = Q_.cols();
        Matrix<double> G(n, n);
        if constexpr (std::is_same_v<D, Host>) {
            Matrix<double> Q(Q_.rows(), n);
            std::copy_n(Q_.data(), Q_.rows() * n, Q.data());
            solve_and_gram<double>(ctx_, Q.view(), {}, {}, G.view());
        } else {
            Matrix<double, D> there(ctx_, n, n);
            solve_and_gram<T>(ctx_, Q_.view(), {}, {}, there.view());
            copy_to_host<double>(ctx_, there.view(), G.view());
        }
        return G;
    }

    Context<D>& ctx_;
    Communicator& comm_;
    const Case& case_;
    Options options_;
    int repeat_;
    Context<Host> host_{1};
    Matrix<T, D> A_, Q_, R_;
    Method method_ = Method::Auto;
};

/// One rank's part of a block-cyclic matrix.
template <class T, class D>
class CyclicRank {
public:
    CyclicRank(Context<D>& ctx, Communicator& comm, const Case& c, const BenchArguments& arguments)
        : ctx_(ctx),
          grid_(comm, static_cast<int>(arguments.grid.rows), static_cast<int>(arguments.grid.cols)),
          layout_{c.shape.rows, c.shape.cols, block_of(arguments), block_of(arguments)},
          forms_q_(c.operation == Operation::ThinQr),
          repeat_(arguments.repeat),
          A_(ctx, layout_.local_rows(grid_), layout_.local_cols(grid_)) {
        if constexpr (std::is_same_v<D, Host>) {
            A_ = normal_matrix<T>(A_.rows(), A_.cols(), 1 + comm.rank());
        } else {
#ifdef QUOIN_HAVE_CUDA
            const Index first = comm.rank() * layout_.cols;  // other columns of the noise on every rank
            bench::normal_columns<T>(ctx)({first, first + A_.cols()}, A_.view());
#endif
        }
    }

    Answer run() {
        Answer answer = timed([&] { return once(); }, repeat_);
        if constexpr (!std::is_same_v<D, Host>) measure(answer);
        return answer;
    }
    double once() {
        return seconds_of_ranks(ctx_, grid_.comm(), [&] {
            auto f = factor();
            if (forms_q_) f.form_q(ctx_);
        });
    }

private:
    static Index block_of(const BenchArguments& arguments) {
        return arguments.block > 0 ? arguments.block : std::is_same_v<D, Host> ? 64 : CyclicTuning::block;
    }
    auto factor() { return qr<T, D>(ctx_, grid_, BlockCyclicView<const T, D>(layout_, std::as_const(A_).view())); }

    /// ‖I − QᵀQ‖_F and ‖A − QR‖_F / ‖A‖_F of the whole matrices on rank 0, where its memory has room for them.
    void measure([[maybe_unused]] Answer& answer) {
        const Index m = layout_.rows, n = layout_.cols, k = std::min(m, n);
        BlockCyclic of_q = layout_, of_r = layout_;
        of_q.cols = of_r.rows = k;
        // A, Q and R on rank 0, a message, and what the measurement takes
        const double whole = sizeof(T) * (number(m) * number(n) + number(m) * number(k) + number(k) * number(n));
        constexpr double max_products = 4e13;  // a few seconds of DGEMM
        const bool fits =
            2 * whole + 8e9 < memory_in_use(ctx_).obtainable && number(m) * number(n) * number(k) <= max_products;
        if (maximum(host_, grid_.comm(), fits ? 0 : 1) > 0) return;
        const bool root = grid_.comm().rank() == 0;
        Matrix<T, D> A, Q, R;
        {
            const auto f = factor();
            A = gathered(layout_, A_, root);
            R = gathered(of_r, f.r(ctx_), root);
            Q = gathered(of_q, f.form_q(ctx_), root);
        }
        if (!root) return;
#ifdef QUOIN_HAVE_CUDA
        answer.orthogonality = bench::orthogonality<T>(ctx_, Q);
        answer.residual = bench::residual<T>(ctx_, A, Q, R);
#endif
    }
    /// The whole matrix on the root, no rows on other ranks.
    Matrix<T, D> gathered(const BlockCyclic& layout, const Matrix<T, D>& part, bool root) {
        Matrix<T, D> all(ctx_, root ? layout.rows : 0, layout.cols);
        redistribute<T, D>(ctx_, grid_, BlockCyclicView<const T, D>(layout, part.view()), all.view());
        return all;
    }

    Context<D>& ctx_;
    ProcessGrid grid_;
    BlockCyclic layout_;
    bool forms_q_;
    int repeat_;
    Context<Host> host_{1};
    Matrix<T, D> A_;
};

/// The timed runs, and with --trace one more that is recorded.
template <class D, class Part>
Answer run_part(Context<D>& ctx, Communicator& comm, Part&& part, const std::string& trace) {
    const Answer answer = part.run();
    if (trace.empty()) return answer;
    const Tracing tracing(ctx, trace);
    part.once();
    tracing.write(comm);
    return answer;
}

}  // namespace

void bench_ranks(const BenchArguments& given) {
    BenchArguments arguments = given;
    arguments.shapes = given.shapes_or({{1000000, 192}});
    Results results(arguments);
    const int threads = make_context(arguments.common).threads();
    const bool on_gpus = arguments.on_device();
    std::string where = describe_machine().cpu;
#ifdef QUOIN_HAVE_CUDA
    if (on_gpus) where = bench::describe_device();
#endif
    results.describe(where);
    std::vector<int> counts = arguments.ranks;
    if (counts.empty()) counts = {1, 2, 4};
    const bool by_grid = arguments.grid.rows > 0;
    if (by_grid) counts = {static_cast<int>(arguments.grid.rows * arguments.grid.cols)};
    results.say("{}\n", where);
    for (const Case& c : requested_cases(arguments)) {
        for (const int ranks : counts) {
            throw_if_interrupted();
            Answer answer;
            const int threads_each = std::max(1, threads / ranks);
            double planned = -1;
            with_dtype(c.dtype, [&]<class T>(T) {
                const auto plan = [&] { return planned_seconds<T>(c, ranks, threads_each, arguments.common.options); };
                if (!on_gpus && !by_grid) planned = plan();
                const auto of = [&]<class D>(Context<D>& ctx, Communicator& comm) {
                    const std::string& trace = arguments.common.trace;
                    const Answer found = by_grid ? run_part(ctx, comm, CyclicRank<T, D>(ctx, comm, c, arguments), trace)
                                                 : run_part(ctx, comm, Rank<T, D>(ctx, comm, c, arguments), trace);
                    if (comm.rank() == 0) answer = found;
                };
                run_ranks(ranks, [&](Communicator& control) {
                    if (!on_gpus) {
                        Context<Host> ctx(threads_each);
                        return of(ctx, control);
                    }
#ifdef QUOIN_HAVE_NCCL
                    const CurrentDevice gpu(control.rank());
                    NcclCommunicator comm(control);
                    Context<Cuda> ctx;
                    of(ctx, comm);
#endif
                });
                if (!on_gpus && planned >= 0) planned = std::min(planned, plan());  // other programs disturb either
            });
            const auto [m, n] = c.shape;
            const double flops = operation_flops(c.operation, m, n);
            const std::string method =
                by_grid ? "block-cyclic " + to_string(arguments.grid) : quoin::to_string(answer.method);
            JsonLine json = case_line(c.shape, c.dtype);
            json.add("op", to_string(c.operation)).add("ranks", Index{ranks}).add("method", method);
            json.add_measured("seconds", answer.seconds).add_measured("gflops", 1e-9 * flops / answer.seconds);
            json.add_measured("orthogonality", answer.orthogonality).add_measured("residual", answer.residual);
            json.add_measured("fastest_seconds", answer.fastest).add_measured("planned_seconds", planned);
            results.add(json);
        }
    }
}

}  // namespace quoin::cli
