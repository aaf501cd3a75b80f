// Q and R, or R alone, of rows over ranks: threads of this process, each with its share of the cores, or with a GPU of its own.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench.hpp"
#include "devices.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "primitives.hpp"
#include "quoin/distributed.hpp"
#include "random_matrix.hpp"
#include "results.hpp"
#include "stopwatch.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "device.hpp"
#include "random.hpp"
#endif
#ifdef QUOIN_HAVE_NCCL
#include "quoin/nccl.hpp"
#endif

namespace quoin::cli {

namespace {

/// The same on every rank, and when all have come.
double maximum(Context<Host>& host, Communicator& comm, double x) {
    comm.all_reduce<double>(host, {&x, 1, 1}, Reduction::Max);
    return x;
}
double sum(Context<Host>& host, Communicator& comm, double x) {
    comm.all_reduce<double>(host, {&x, 1, 1});
    return x;
}

struct Answer {
    double seconds = 0, orthogonality = -1, residual = -1;
    Method method = Method::Auto;
};

/// One rank's part: A's rows (on GPUs the same on every rank), the runs, and the measurements of the last answer.
template <class T, class D>
class Rank {
public:
    Rank(Context<D>& ctx, Communicator& comm, const Case& c, const BenchArguments& arguments)
        : ctx_(ctx), comm_(comm), case_(c), options_(arguments.common.options), repeat_(arguments.repeat) {
        options_.q = form_of_q(c.operation);
        const auto [m, n] = c.shape;
        const Index first = m * comm.rank() / comm.size(), past = m * (comm.rank() + 1) / comm.size();
        if constexpr (std::is_same_v<D, Host>) {
            A_ = Matrix<T>(past - first, n);
            fill_normal(A_, 1 + comm.rank());
        } else {
#ifdef QUOIN_HAVE_CUDA
            A_ = Matrix<T, D>(ctx, past - first, n);
            bench::fill_normal<T>(ctx, A_);
#endif
        }
    }

    Answer run() {
        std::vector<double> seconds;
        const double first = std::max(once(), once());  // the second is warm
        const int runs = repeat_ > 0 ? repeat_ : std::clamp(static_cast<int>(1 / first), 5, 50);
        for (int i = 0; i < runs; ++i) seconds.push_back(once());
        Answer answer;
        answer.seconds = median(std::move(seconds));
        answer.method = method_;
        if (case_.operation == Operation::ThinQr) measure(answer);
        return answer;
    }

private:
    double once() {
        Q_ = {};
        R_ = {};
        ctx_.wait();
        maximum(host_, comm_, 0);
        const Stopwatch watch;
        auto f = qr<T, D>(ctx_, comm_, std::as_const(A_).view(), options_);
        R_ = f.r(ctx_);
        if (case_.operation == Operation::ThinQr) Q_ = std::move(f).take_q(ctx_);
        ctx_.wait();
        method_ = f.report().method;
        return maximum(host_, comm_, watch.seconds());
    }

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
        const double norm = sum(host_, comm_, entry_norms<T>(ctx_, std::as_const(A_).view(), {}).squares);
        subtract_product<T>(ctx_, Q_.view(), R_.view(), A_.view());
        answer.residual =
            std::sqrt(sum(host_, comm_, entry_norms<T>(ctx_, std::as_const(A_).view(), {}).squares) / norm);
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

}  // namespace

void bench_ranks(const BenchArguments& given) {
    BenchArguments arguments = given;
    if (arguments.shapes.empty()) arguments.shapes = {{1000000, 192}};
    Results results(arguments);
    const int threads = make_context(arguments.common).threads();
    const bool on_gpus = arguments.on_device();
#ifdef QUOIN_HAVE_CUDA
    results.describe(on_gpus ? bench::describe_device() : describe_machine().cpu);
#else
    results.describe(describe_machine().cpu);
#endif
    std::vector<int> counts = arguments.ranks;
    if (counts.empty()) counts = {1, 2, 4};
    results.say("{:>20} {:<5} {:<8} {:>5}  {:<20} {:>10} {:>10} {:>10} {:>13} {:>10}\n", "rows x columns", "type", "op",
                "ranks", "method", "ms", "GFLOP/s", "speed-up", "‖I − QᵀQ‖", "residual");
    for (const Case& c : requested_cases(arguments)) {
        double of_first = 0;
        for (const int ranks : counts) {
            throw_if_interrupted();
            Answer answer;
            with_dtype(c.dtype, [&]<class T>(T) {
                const auto of = [&]<class D>(Context<D>& ctx, Communicator& comm) {
                    const Answer found = Rank<T, D>(ctx, comm, c, arguments).run();
                    if (comm.rank() == 0) answer = found;
                };
                run_ranks(ranks, [&](Communicator& control) {
                    if (!on_gpus) {
                        Context<Host> ctx(std::max(1, threads / ranks));
                        return of(ctx, control);
                    }
#ifdef QUOIN_HAVE_NCCL
                    const CurrentDevice gpu(control.rank());
                    NcclCommunicator comm(control);
                    Context<Cuda> ctx;
                    of(ctx, comm);
#endif
                });
            });
            if (of_first == 0) of_first = answer.seconds * counts.front();
            const auto [m, n] = c.shape;
            const double flops = operation_flops(c.operation, m, n);
            results.say("{:>20} {:<5} {:<8} {:>5}  {:<20} {:>10.4g} {:>10.4g} {:>10.2f} {:>13} {:>10}\n",
                        fmt::format("{}x{}", m, n), quoin::to_string(c.dtype), to_string(c.operation), ranks,
                        quoin::to_string(answer.method), 1e3 * answer.seconds, 1e-9 * flops / answer.seconds,
                        of_first / answer.seconds,
                        answer.orthogonality < 0 ? "" : fmt::format("{:.2g}", answer.orthogonality),
                        answer.residual < 0 ? "" : fmt::format("{:.2g}", answer.residual));
            JsonLine json;
            json.add("rows", m)
                .add("cols", n)
                .add("dtype", quoin::to_string(c.dtype))
                .add("op", to_string(c.operation));
            json.add("ranks", Index{ranks}).add("method", quoin::to_string(answer.method));
            json.add_measured("seconds", answer.seconds).add_measured("gflops", 1e-9 * flops / answer.seconds);
            json.add_measured("orthogonality", answer.orthogonality).add_measured("residual", answer.residual);
            results.add(json);
        }
    }
}

}  // namespace quoin::cli
