#include "cuda/small/solve.cuh"

#include <algorithm>
#include <vector>

#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "cuda/small/batch.hpp"

namespace quoin {

using namespace cuda;

template <class T>
bool SmallBatch<T, Cuda>::solve(Context<Cuda>& ctx, Op op, Members members, BatchView<const T, Cuda> B, double rcond,
                                bool ask, BatchView<T, Cuda> X, BatchView<T, Cuda> norms,
                                BatchView<T, Cuda> conditions) const {
    if (members.count == 0) return false;
    const bool shortest = op == Op::Transpose, uniform = members.list.empty() && B.uniform();
    Arena::Frame frame(ctx);
    // R and C of member i, one after the other
    T* const R = frame.take<T>(n_ * n_ * members.count);
    Index columns = uniform ? members.count * B.cols(0) : 0, last = 0;
    for (Index i = 0; !uniform && i < members.count; ++i) {
        columns += B.cols(members[i]);
        last = std::max(last, members[i]);
    }
    T* const C = frame.take<T>(m_ * std::max<Index>(1, columns));
    SolveProblems<T> problems;
    const auto problem = [&](Index b, T* c) {
        return SolveProblem<T>{B.data(b),
                               B.row_stride(b),
                               B.col_stride(b),
                               c,
                               X.data(b),
                               X.col_stride(b),
                               norms.data(b),
                               conditions.data(b),
                               static_cast<int>(B.cols(b))};
    };
    BatchView<T, Cuda> all_R(R, n_, n_, n_, n_ * n_, members.count), all_C(C, m_, 0, m_, 0, 0);
    Matrix<SolveProblem<T>, Cuda> list;
    if (uniform) {
        const Index p = B.cols(0), many = members.count > 1;
        all_C = {C, m_, p, m_, m_ * p, members.count};
        problems.first = problem(0, C);
        problems.B = many ? B.data(1) - B.data(0) : 0;
        problems.C = m_ * p;
        problems.X = many ? X.data(1) - X.data(0) : 0;
    } else {
        std::vector<MatrixView<T, Cuda>> R_views(last + 1), C_views(last + 1);
        std::vector<SolveProblem<T>> entries;
        T* c = C;
        for (Index i = 0; i < members.count; ++i) {
            const Index b = members[i], p = B.cols(b);
            R_views[b] = {R + i * n_ * n_, n_, n_};
            C_views[b] = {c, m_, p};
            entries.push_back(problem(b, c));
            c += m_ * p;
        }
        all_R = BatchView<T, Cuda>(std::move(R_views));
        all_C = BatchView<T, Cuda>(std::move(C_views));
        list = on_device(ctx, entries);
        problems.list = list.data();
    }
    unpack(ctx, Factor::R, members, all_R);
    if (!shortest) apply_q(ctx, Op::Transpose, members, B, all_C);
    auto* const first_refused = frame.take<unsigned long long>(1);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(first_refused, 0xff, sizeof(*first_refused), ctx.stream()));
    const BatchSize size(members.count, m_, n_, m_);
    with_row<std::size(batch_solve_rows)>(batch_solve_row(n_), [&](auto row) {
        const dim3 grid(static_cast<unsigned>(std::min<Index>(members.count, 1 << 30))),
            block(32, static_cast<unsigned>(std::clamp<Index>(n_ / 8, 1, max_solve_warps)));
        launch(ctx.stream(), solve_problems_kernel<T, batch_solve_rows[row]>, {grid, block}, size, problems, R,
               shortest, static_cast<T>(rcond), first_refused);
    });
    // X = Q [Y; 0]
    if (shortest) apply_q(ctx, Op::None, members, all_C, X);
    return ask && *ctx.state().read_back(first_refused, 1) != none_bad;
}

#define QUOIN_INSTANTIATE(T)                                                                                      \
    template bool SmallBatch<T, Cuda>::solve(Context<Cuda>&, Op, Members, BatchView<const T, Cuda>, double, bool, \
                                             BatchView<T, Cuda>, BatchView<T, Cuda>, BatchView<T, Cuda>) const;
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
