#include "rank_rate.hpp"

#include <algorithm>
#include <limits>

#include "random_matrix.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

template <class T>
double measure_rank(int ranks, int threads, const RankPlan& plan, Index n, Options options) {
    const Index enough = (Index{1} << 22) / std::max<Index>(1, n), rows = std::min(plan.rows, std::max(8 * n, enough));
    options.method = plan.method;
    double least = std::numeric_limits<double>::infinity();
    run_ranks(ranks, [&](Communicator& comm) {
        Context<Host> ctx(threads), host(1);
        const Matrix<T> A = normal_matrix<T>(rows, n, 1 + comm.rank());
        const auto of_last = [&](double x) {
            comm.all_reduce<double>(host, {&x, 1, 1}, Reduction::Max);
            return x;
        };
        for (int run = 0; run < 5; ++run) {
            of_last(0);  // all begin together
            const Stopwatch watch;
            qr(ctx, A.view(), options);
            const double taken = of_last(watch.seconds());
            if (comm.rank() == 0) least = std::min(least, taken);
        }
    });
    return plan_qr<T>(Context<Host>(threads), rows, n, options).flops / least;
}

template double measure_rank<float>(int, int, const RankPlan&, Index, Options);
template double measure_rank<double>(int, int, const RankPlan&, Index, Options);

}  // namespace quoin::cli
