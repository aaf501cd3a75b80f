#include <fmt/format.h>

#include "algorithms/instantiate.hpp"
#include "algorithms/solver_steps.hpp"
#include "quoin/streaming.hpp"

namespace quoin {

template <class T, class D>
StreamingQR<T, D>::StreamingQR(Context<D>&, Index n) : n_(n) {
    if (n < 0) throw InvalidArgument(fmt::format("StreamingQR: n must not be negative, and is {}", n));
}

/// A_i = P_i [R_i; 0], under the same plan in both passes, so that every bit of R_i is the same in both.
template <class T, class D>
QR<T, D> StreamingQR<T, D>::factor_block(Context<D>& ctx, MatrixView<const T, D> A) const {
    return qr<T, D>(ctx, A, streaming_options(ctx, A.rows, n_, QForm::Any));
}

/// [R_1; …; R_N] = G R
template <class T, class D>
QR<T, D> StreamingQR<T, D>::factor_stack(Context<D>& ctx) const {
    Index stacked = 0;
    for (const Block& block : blocks_) stacked += block.R.rows();
    Matrix<T, D> S(ctx, stacked, n_);
    Index row = 0;
    for (const Block& block : blocks_) {
        copy<T>(ctx, block.R.view(), S.view().row_block({row, row + block.R.rows()}));
        row += block.R.rows();
    }
    const Plan plan = plan_qr<T>(ctx, stacked, n_, streaming_options(ctx, stacked, n_, QForm::Explicit));
    return qr<T, D>(ctx, std::move(S), plan);
}

template <class T, class D>
void StreamingQR<T, D>::append(Context<D>& ctx, MatrixView<const T, D> block) {
    if (backward_) throw InvalidArgument("StreamingQR::append: no block can follow once q_rows has been called");
    if (block.cols != n_) {
        throw InvalidArgument(
            fmt::format("StreamingQR::append: the block has {} columns instead of {}", block.cols, n_));
    }
    require_finite(ctx, block);
    blocks_.push_back({block.rows, factor_block(ctx, block).r(ctx)});
    rows_ += block.rows;
}

template <class T, class D>
Matrix<T, D> StreamingQR<T, D>::r(Context<D>& ctx) const {
    return backward_ ? copy_of<T, D>(ctx, R_.view()) : factor_stack(ctx).r(ctx);
}

template <class T, class D>
Matrix<T, D> StreamingQR<T, D>::q_rows(Context<D>& ctx, MatrixView<const T, D> block) {
    if (blocks_.empty()) throw InvalidArgument("StreamingQR::q_rows: no block is left");
    const Block& last = blocks_.back();
    if (block.rows != last.rows || block.cols != n_) {
        throw InvalidArgument(
            fmt::format("StreamingQR::q_rows: the next block in reverse order is {}x{}, and the one given is {}x{}",
                        last.rows, n_, block.rows, block.cols));
    }
    const QR<T, D> P = factor_block(ctx, block);
    if (!equal<T>(ctx, P.r(ctx).view(), last.R.view())) {
        throw InvalidArgument(
            "StreamingQR::q_rows: not the block that was appended; give the same blocks in reverse order");
    }
    if (!backward_) {
        QR<T, D> stack = factor_stack(ctx);
        R_ = stack.r(ctx);
        G_ = std::move(stack).take_q(ctx);
        backward_ = true;
    }
    // Q(rows of A_i, :) = P_i [G_i; 0]
    Index first = 0;
    for (const Block& before : blocks_) first += before.R.rows();
    first -= last.R.rows();
    const Index k = last.R.rows();
    Matrix<T, D> Q(ctx, block.rows, G_.cols());
    copy<T>(ctx, G_.view().row_block({first, first + k}), Q.view().row_block({0, k}));
    set_zero(ctx, Q.view().row_block({k, block.rows}));
    P.apply_q(ctx, Side::Left, Op::None, Q.view());
    blocks_.pop_back();
    return Q;
}

#define QUOIN_INSTANTIATE(T, D) template class StreamingQR<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
