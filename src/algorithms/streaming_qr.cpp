#include <fmt/format.h>

#include "algorithms/instantiate.hpp"
#include "algorithms/solver_steps.hpp"
#include "quoin/streaming.hpp"

namespace quoin {
namespace {

template <class T>
bool equal(MatrixView<const T, Host> A, MatrixView<const T, Host> B) {
    for (Index j = 0; j < A.cols; ++j) {
        if (!std::equal(A.at(0, j), A.at(0, j) + A.rows, B.at(0, j))) return false;
    }
    return true;
}

}  // namespace

template <class T, class D>
StreamingQR<T, D>::StreamingQR(Context<D>&, Index n) : n_(n) {
    if (n < 0) throw InvalidArgument(fmt::format("StreamingQR: n must not be negative, and is {}", n));
    R_ = Matrix<T, D>(0, n);
}

/// [R_before; A] = P R
template <class T, class D>
QR<T, D> StreamingQR<T, D>::factor(Context<D>& ctx, const Block& block, MatrixView<const T, D> A) const {
    const Index k = block.R_before.rows();
    Matrix<T, D> W(k + A.rows, n_);
    copy<T>(ctx, block.R_before.view(), W.view().row_block({0, k}));
    copy<T>(ctx, A, W.view().row_block({k, k + A.rows}));
    return qr<T, D>(ctx, std::move(W), block.plan);
}

template <class T, class D>
void StreamingQR<T, D>::append(Context<D>& ctx, MatrixView<const T, D> block) {
    if (backward_) throw InvalidArgument("StreamingQR::append: no block can follow once q_rows has been called");
    if (block.cols != n_) {
        throw InvalidArgument(
            fmt::format("StreamingQR::append: the block has {} columns instead of {}", block.cols, n_));
    }
    require_finite(ctx, block);
    // not R alone: one plan for both passes, so that every bit of R_i is the same in both
    const Index m = R_.rows() + block.rows;
    const Plan plan = plan_qr<T>(ctx, m, n_, streaming_options(m, n_, QForm::Any));
    Block next{plan, copy_of<T>(R_.view())};
    Matrix<T, D> R = factor(ctx, next, block).r();
    blocks_.push_back(std::move(next));
    R_ = std::move(R);
    rows_ += block.rows;
}

template <class T, class D>
Matrix<T, D> StreamingQR<T, D>::r() const {
    return copy_of<T>(R_.view());
}

template <class T, class D>
Matrix<T, D> StreamingQR<T, D>::q_rows(Context<D>& ctx, MatrixView<const T, D> block) {
    if (blocks_.empty()) throw InvalidArgument("StreamingQR::q_rows: no block is left");
    Block& last = blocks_.back();
    const Index k = last.R_before.rows(), h = last.plan.rows - k, r = R_.rows();
    if (block.rows != h || block.cols != n_) {
        throw InvalidArgument(
            fmt::format("StreamingQR::q_rows: the next block in reverse order is {}x{}, and the one given is {}x{}", h,
                        n_, block.rows, block.cols));
    }
    Matrix<T, D> C(k + h, r);
    {
        const QR<T, D> P = factor(ctx, last, block);
        const Matrix<T, D> R = P.r();
        if (!equal<T>(R.view(), backward_ ? R_after_.view() : R_.view())) {
            throw InvalidArgument(
                "StreamingQR::q_rows: not the block that was appended; give the same blocks in reverse order");
        }
        // P [G_i; 0] = [G_{i−1}; Q(rows of A_i, :)],   G_last = I
        const Index g = R.rows();
        if (backward_) {
            copy<T>(ctx, G_.view(), C.view().row_block({0, g}));
        } else {
            set_identity<T>(ctx, 0, C.view().row_block({0, g}));
        }
        set_zero(ctx, C.view().row_block({g, k + h}));
        P.apply_q(ctx, Side::Left, Op::None, C.view());
    }
    Matrix<T, D> G = copy_of<T>(C.view().row_block({0, k})), Q(h, r);
    copy<T>(ctx, C.view().row_block({k, k + h}), Q.view());
    backward_ = true;
    G_ = std::move(G);
    R_after_ = std::move(last.R_before);
    blocks_.pop_back();
    return Q;
}

#define QUOIN_INSTANTIATE(T, D) template class StreamingQR<T, D>;
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)

}  // namespace quoin
