#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "factor_outputs.hpp"
#include "factor_report.hpp"
#include "naming_file.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

/// Returns A(:, permutation), or A if there is no permutation.
template <class T, class D>
Matrix<T, D> permuted(Context<D>& ctx, Matrix<T, D>&& A, const std::vector<Index>& permutation) {
    if (permutation.empty()) return std::move(A);
    Matrix<T, D> AP(ctx, A.rows(), A.cols());
    for (Index j = 0; j < A.cols(); ++j) {
        const Index p = permutation[j];
        copy<T>(ctx, A.view().col_block({p, p + 1}), AP.view().col_block({j, j + 1}));
    }
    return AP;
}

/// Says which entries of R's diagonal decided the rank, and which columns of A are beyond it.
template <class T, class D>
void show_rank(Context<D>& ctx, MatrixView<const T, D> R, const std::vector<Index>& permutation,
               FactorOutcome& outcome) {
    const Index k = std::min(R.rows, R.cols), r = outcome.rank;
    const auto diagonal = [&](Index j) {
        Matrix<T, D> entry(ctx, 1, 1);
        copy<T>(ctx, R.block({j, j + 1}, {j, j + 1}), entry.view());
        return std::abs(static_cast<double>(on_host(ctx, entry)(0, 0)));
    };
    if (k == 0) return;
    outcome.decided = fmt::format(" of {}: ", k);
    if (r > 0) outcome.decided += fmt::format("|r_jj| falls from {:.3e} to {:.3e}", diagonal(0), diagonal(r - 1));
    if (r < k)
        outcome.decided +=
            fmt::format("{}{:.3e} is not above max(m, n) u |r|, |r| the largest", r > 0 ? ", and " : "", diagonal(r));
    outcome.dependent.assign(permutation.begin() + r, permutation.end());
    std::sort(outcome.dependent.begin(), outcome.dependent.end());
}

/// In the memory of D.
template <class T, class D>
FactorOutcome factor_in_memory(Context<D>& ctx, const MatrixFile& file, const Plan& plan, bool verify,
                               FactorOutputs<T>& outputs) {
    constexpr bool transfers = !std::is_same_v<D, Host>;
    FactorOutcome outcome;
    Stopwatch watch;
    Matrix<T, D> A = read_matrix<T>(ctx, file);
    if (transfers) outcome.transfer_in_seconds = watch.seconds();

    watch = {};
    QR<T, D> f = [&] {
        ctx.reset_progress();
        const ProgressBar bar("factoring", [&] { return ctx.flops_done() / plan.flops; });
        return naming_file(file.path(), 0, [&] { return qr(ctx, std::move(A), plan); });
    }();
    wait(ctx);
    outcome.seconds = transfers ? watch.seconds() : f.report().seconds;
    outcome.method = to_string(f.report().method);
    if (f.report().fell_back)
        outcome.remark = fmt::format(" ({} could not certify its answer)", to_string(plan.method));
    if (const Index dependent = f.report().dependent_columns; dependent > 0)
        outcome.remark = fmt::format(" ({} on others: 0 on R's diagonal)",
                                     dependent == 1 ? "1 column depends" : fmt::format("{} columns depend", dependent));

    const std::vector<Index> permutation(f.permutation().begin(), f.permutation().end());
    if (plan.pivoting) {
        outcome.rank = f.report().rank;
        outputs.set_permutation(permutation,
                                plan.pivoting->has_limit() ? outcome.rank : std::min(plan.rows, plan.cols));
    }

    watch = {};
    const Matrix<T, D> R = f.r(ctx);
    if (plan.pivoting && !plan.pivoting->has_limit()) show_rank<T, D>(ctx, R.view(), permutation, outcome);
    write_matrix<T>(ctx, *outputs.r, "R.npy", R.view());
    if (outputs.v) write_matrix<T>(ctx, *outputs.v, "V.npy", f.v(ctx).view());
    if (outputs.t) write_matrix<T>(ctx, *outputs.t, "T.npy", f.t(ctx).view());
    if (outputs.s) write_matrix<T>(ctx, *outputs.s, "S.npy", f.s(ctx).view());
    Matrix<T, D> Q;
    if (plan.q == QForm::Explicit || (verify && plan.q != QForm::None)) Q = std::move(f).take_q(ctx);
    if (outputs.q) write_matrix<T>(ctx, *outputs.q, "Q.npy", Q.view());
    if (transfers) outcome.transfer_out_seconds = watch.seconds();
    if (verify) {
        const Matrix<T, D> original = permuted(ctx, read_matrix<T>(ctx, file), permutation);
        outcome.orthogonality = orthogonality<T>(ctx, Q.view());
        outcome.residual = residual<T>(ctx, original.view(), Q.view(), R.view());
    }
    return outcome;
}

}  // namespace quoin::cli
