// Q and R of rows that arrive block by block: a TSQR of two levels, with the blocks read again for Q.

#include <fmt/format.h>

#include "algorithms/shared/matrix_checks.hpp"
#include "algorithms/streams/rows_from_host.hpp"
#include "algorithms/streams/streaming_options.hpp"
#include "devices.hpp"
#include "quoin/streaming.hpp"

namespace quoin {

template <class T, class D>
StreamingQR<T, D>::StreamingQR(Context<D>&, Index n) : n_(n), from_host_(std::make_shared<RowsFromHost<T, D>>()) {
    if (n < 0) throw InvalidArgument(fmt::format("StreamingQR: n must not be negative, and is {}", n));
}

template <class T, class D>
StreamingQR<T, D>::StreamingQR(Context<D>& ctx, State state)
    : n_(state.n),
      rows_(state.rows),
      backward_(state.backward),
      R_(std::move(state.R)),
      G_(std::move(state.G)),
      from_host_(std::make_shared<RowsFromHost<T, D>>()) {
    Index row = 0, appended = 0;
    bool fits = n_ >= 0 && state.stack.cols() == n_;
    for (const Index h : state.heights) {
        const Range rows{row, row + std::min(h, n_)};
        fits = fits && h >= 0 && rows.end <= state.stack.rows();
        if (!fits) break;
        blocks_.push_back({h, copy_of<T, D>(ctx, std::as_const(state.stack).view().row_block(rows))});
        row = rows.end;
        appended += h;
    }
    const Index k = std::min(rows_, n_);
    fits = fits && row == state.stack.rows() && (backward_ ? appended <= rows_ : appended == rows_) &&
           (!backward_ || (R_.rows() == k && R_.cols() == n_ && G_.rows() >= row && G_.cols() == k));
    if (!fits) throw InvalidArgument("StreamingQR: the sizes of the state do not fit each other");
}

template <class T, class D>
typename StreamingQR<T, D>::State StreamingQR<T, D>::state(Context<D>& ctx) const {
    State state{n_, rows_, {}, stack(ctx), backward_, copy_of<T, D>(ctx, R_.view()), copy_of<T, D>(ctx, G_.view())};
    for (const Block& block : blocks_) state.heights.push_back(block.rows);
    return state;
}

/// Factors A_i = P_i [R_i; 0], with equal plans in both passes, so that R_i is bitwise the same in both.
template <class T, class D>
QR<T, D> StreamingQR<T, D>::factor_block(Context<D>& ctx, InputView<T, D> A) const {
    return qr<T, D>(ctx, A, streaming_options(ctx, A.rows, n_, QForm::Any));
}

/// Returns [R_1; …; R_N].
template <class T, class D>
Matrix<T, D> StreamingQR<T, D>::stack(Context<D>& ctx) const {
    Index stacked = 0;
    for (const Block& block : blocks_) stacked += block.R.rows();
    Matrix<T, D> S(ctx, stacked, n_);
    Index row = 0;
    for (const Block& block : blocks_) {
        copy<T>(ctx, block.R.view(), S.view().row_block({row, row + block.R.rows()}));
        row += block.R.rows();
    }
    return S;
}

/// Factors [R_1; …; R_N] = G R.
template <class T, class D>
QR<T, D> StreamingQR<T, D>::factor_stack(Context<D>& ctx) const {
    Matrix<T, D> S = stack(ctx);
    const Plan plan = plan_qr<T>(ctx, S.rows(), n_, streaming_options(ctx, S.rows(), n_, QForm::Explicit));
    return qr<T, D>(ctx, std::move(S), plan);
}

template <class T, class D>
void StreamingQR<T, D>::require_shape(Index rows, Index cols) const {
    if (backward_) throw InvalidArgument("StreamingQR: no block can follow once q_rows has been called");
    if (cols != n_) {
        throw InvalidArgument(
            fmt::format("StreamingQR: the stream's blocks have {} columns, and this one has {}", n_, cols));
    }
    if (rows < 0) throw InvalidArgument(fmt::format("StreamingQR: a block cannot have {} rows", rows));
}

template <class T, class D>
void StreamingQR<T, D>::append(Context<D>& ctx, InputView<T, D> block) {
    require_shape(block.rows, block.cols);
    require_finite<T, D>(ctx, block);
    blocks_.push_back({block.rows, factor_block(ctx, block).r(ctx)});
    rows_ += block.rows;
    read_ = {};
}

template <class T, class D>
void StreamingQR<T, D>::append(Context<D>& ctx, HostRows<T, D> block) {
    require_shape(block.rows, block.cols);
    read_ = {};
    const auto A = from_host_->copy(ctx, block);
    from_host_->compute(ctx, [&] { append(ctx, A); });
}

template <class T, class D>
void StreamingQR<T, D>::append(Context<D>& ctx, Index h, const RowReader<T>& read) {
    require_shape(h, n_);
    read_ = {};
    const auto A = from_host_->read(ctx, rows_, h, n_, read);
    from_host_->compute(ctx, [&] { append(ctx, A); });
    read_ = A;
}

template <class T, class D>
Matrix<T, D> StreamingQR<T, D>::r(Context<D>& ctx) const {
    return backward_ ? copy_of<T, D>(ctx, R_.view()) : factor_stack(ctx).r(ctx);
}

template <class T, class D>
Matrix<T, D> StreamingQR<T, D>::q_rows(Context<D>& ctx, InputView<T, D> block) {
    if (blocks_.empty()) throw InvalidArgument("q_rows: no block is left");
    const Block& last = blocks_.back();
    if (block.rows != last.rows || block.cols != n_) {
        throw InvalidArgument(
            fmt::format("q_rows: the next block in reverse order is {}x{}, and the one given is {}x{}", last.rows, n_,
                        block.rows, block.cols));
    }
    const QR<T, D> P = factor_block(ctx, block);
    if (!equal<T>(ctx, P.r(ctx).view(), last.R.view())) {
        throw InvalidArgument(
            "q_rows: this block differs from the one that the stream was given; give the same blocks in reverse order");
    }
    if (!backward_) {
        ThinQR<T, D> stack = factor_stack(ctx).take_thin(ctx);
        R_ = std::move(stack.R);
        G_ = std::move(stack.Q);
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
    read_ = {};
    return Q;
}

template <class T, class D>
Matrix<T, Host> StreamingQR<T, D>::q_rows(Context<D>& ctx, HostRows<T, D> block) {
    read_ = {};
    const auto A = from_host_->copy(ctx, block);
    Matrix<T, D> Q;
    from_host_->compute(ctx, [&] { Q = q_rows(ctx, A); });
    Context<D>& out = copy_out_stream(ctx);
    wait_for(out, ctx);
    return host_copy_of<T, D>(out, Q.view());
}

template <class T, class D>
void StreamingQR<T, D>::q(Context<D>& ctx, const RowReader<T>& read, const RowWriter<T>& write) {
    Index first = 0;
    for (const Block& block : blocks_) first += block.rows;
    auto A = std::exchange(read_, {});
    const auto bring = [&] {
        const Index h = blocks_.back().rows;
        return from_host_->read(ctx, first - h, h, n_, read);
    };
    if (!A.data && !blocks_.empty()) A = bring();
    while (!blocks_.empty()) {
        Matrix<T, D> Q;
        from_host_->compute(ctx, [&] { Q = q_rows(ctx, A); });
        first -= A.rows;
        if (!blocks_.empty()) A = bring();
        from_host_->finish();
        from_host_->write(ctx, first, Q.view(), write);
    }
}

template <class T, class D>
StreamTimes StreamingQR<T, D>::times() const {
    return from_host_->times();
}

#define QUOIN_INSTANTIATE(T, D) template class StreamingQR<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
