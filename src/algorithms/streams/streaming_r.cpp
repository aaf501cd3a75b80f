// R of rows that arrive block by block, and least squares from it.

#include <fmt/format.h>

#include "algorithms/one_matrix/least_norm.hpp"
#include "algorithms/shared/matrix_checks.hpp"
#include "algorithms/streams/rows_from_host.hpp"
#include "algorithms/streams/streaming_options.hpp"
#include "devices.hpp"
#include "quoin/streaming.hpp"

namespace quoin {

template <class T, class D>
StreamingR<T, D>::StreamingR(Context<D>& ctx, Index n, Index p)
    : n_(n), p_(p), from_host_(std::make_shared<RowsFromHost<T, D>>()) {
    if (n < 0 || p < 0) {
        throw InvalidArgument(fmt::format("StreamingR: n and p must not be negative, and are {} and {}", n, p));
    }
    R_ = Matrix<T, D>(ctx, 0, n + p);
}

template <class T, class D>
StreamingR<T, D>::StreamingR(State state)
    : n_(state.n),
      p_(state.R.cols() - state.n),
      rows_(state.rows),
      R_(std::move(state.R)),
      report_(state.report),
      from_host_(std::make_shared<RowsFromHost<T, D>>()) {
    if (n_ < 0 || p_ < 0 || rows_ < 0 || R_.rows() != std::min(rows_, n_ + p_)) {
        throw InvalidArgument(fmt::format("StreamingR: R of {} rows and {} columns, {} of them of A, is not {}x{}",
                                          rows_, n_ + p_, n_, R_.rows(), R_.cols()));
    }
}

template <class T, class D>
typename StreamingR<T, D>::State StreamingR<T, D>::state(Context<D>& ctx) const {
    return {n_, rows_, copy_of<T, D>(ctx, R_.view()), report_};
}

template <class T, class D>
void StreamingR<T, D>::require_shape(Index rows, Index cols, Index b_rows, Index b_cols) const {
    if (rows < 0) throw InvalidArgument(fmt::format("StreamingR: a block cannot have {} rows", rows));
    if (cols != n_) {
        throw InvalidArgument(
            fmt::format("StreamingR: the stream's blocks have {} columns, and this one has {}", n_, cols));
    }
    if (b_cols != p_) {
        throw InvalidArgument(fmt::format(
            "StreamingR: the stream's blocks come with {} right-hand sides, and this one with {}", p_, b_cols));
    }
    if (p_ > 0 && b_rows != rows) {
        throw InvalidArgument(fmt::format("StreamingR: the block has {} rows, and its b has {}", rows, b_rows));
    }
}

template <class T, class D>
void StreamingR<T, D>::append(Context<D>& ctx, InputView<T, D> A, InputView<T, D> b) {
    const Index h = A.rows, k = R_.rows();
    require_shape(h, A.cols, b.rows, b.cols);
    if (h == 0) return;

    // [R_ext; [A b]] = Q R_ext'
    Matrix<T, D> W(ctx, k + h, n_ + p_);
    const auto below = W.view().row_block({k, k + h});
    const auto take = [&](InputView<T, D> rows, Range columns, const char* name) {
        load<T>(ctx, rows, below.col_block(columns));
        require_finite<T, D>(ctx, below.col_block(columns), name);
    };
    take(A, {0, n_}, "the matrix");
    if (p_ > 0) take(b, {n_, n_ + p_}, "b");
    copy<T>(ctx, R_.view(), W.view().row_block({0, k}));
    reduce(ctx, std::move(W));
    rows_ += h;
}

template <class T, class D>
void StreamingR<T, D>::append(Context<D>& ctx, HostRows<T, D> A, HostRows<T, D> b) {
    require_shape(A.rows, A.cols, b.rows, b.cols);
    append_brought(ctx, from_host_->copy(ctx, A, b));
}

template <class T, class D>
void StreamingR<T, D>::append(Context<D>& ctx, Index h, const RowReader<T>& read) {
    require_shape(h, n_, h, p_);
    append_brought(ctx, from_host_->read(ctx, rows_, h, n_ + p_, read));
}

template <class T, class D>
void StreamingR<T, D>::append_brought(Context<D>& ctx, MatrixView<const T, D> Ab) {
    from_host_->compute(ctx, [&] { append(ctx, Ab.col_block({0, n_}), Ab.col_block({n_, n_ + p_})); });
}

template <class T, class D>
StreamTimes StreamingR<T, D>::times() const {
    return from_host_->times();
}

template <class T, class D>
void StreamingR<T, D>::merge(Context<D>& ctx, const StreamingR& other) {
    if (other.n_ != n_ || other.p_ != p_) {
        throw InvalidArgument(
            fmt::format("merge: one stream has {} columns and {} right-hand sides, the other {} and {}", n_, p_,
                        other.n_, other.p_));
    }
    if (other.rows_ == 0) return;

    // [R_ext; R_ext of other] = Q R_ext'
    const Index k = R_.rows(), h = other.R_.rows(), rows = other.rows_;
    const Report report = other.report_;
    Matrix<T, D> W(ctx, k + h, n_ + p_);
    copy<T>(ctx, R_.view(), W.view().row_block({0, k}));
    copy<T>(ctx, other.R_.view(), W.view().row_block({k, k + h}));
    reduce(ctx, std::move(W));
    rows_ += rows;
    count(report);
}

/// R_ext := R factor of the stacked rows.
template <class T, class D>
void StreamingR<T, D>::reduce(Context<D>& ctx, Matrix<T, D>&& stacked) {
    const Index m = stacked.rows(), n = stacked.cols();
    const Plan plan = plan_qr<T>(ctx, m, n, streaming_options(ctx, m, n, QForm::None));
    const QR<T, D> factorization = qr<T, D>(ctx, std::move(stacked), plan);
    R_ = factorization.r(ctx);
    report_.method = factorization.report().method;
    count(factorization.report());
}

/// Adds to the flops, and to the seconds unless one of them was not measured.
template <class T, class D>
void StreamingR<T, D>::count(const Report& report) {
    report_.seconds = std::min(report_.seconds, report.seconds) < 0 ? -1 : report_.seconds + report.seconds;
    report_.flops += report.flops;
}

template <class T, class D>
Matrix<T, D> StreamingR<T, D>::r(Context<D>& ctx) const {
    return copy_of<T, D>(ctx, R_.view().block({0, std::min(rows_, n_)}, {0, n_}));
}

template <class T, class D>
LeastSquares<T, D> StreamingR<T, D>::solve(Context<D>& ctx, const LeastSquaresOptions& solver) const {
    require_options(solver);
    if (p_ == 0) throw InvalidArgument("solve: this stream was given no right-hand sides");
    if (rows_ < n_) {
        throw InvalidArgument(fmt::format("solve: {} rows so far do not determine {} unknowns", rows_, n_));
    }
    Matrix<T, D> R = r(ctx);
    LeastSquares<T, D> solution;
    const RankTest test = test_rank<T, D>(ctx, R.view(), rows_, n_, solver, solution);

    // R_ext = [R C; 0 E],   R X = C,   ‖A x_j − b_j‖ = ‖E(:, j)‖
    solution.X = copy_of<T, D>(ctx, R_.view().block({0, n_}, {n_, n_ + p_}));
    solution.residual_norms.resize(p_);
    column_norms<T>(ctx, R_.view().block({n_, R_.rows()}, {n_, n_ + p_}), solution.residual_norms);
    solve_of_any_rank<T, D>(ctx, Op::None, R.view(), test, solution);
    solution.report = report_;
    solution.R = std::move(R);
    return solution;
}

#define QUOIN_INSTANTIATE(T, D) template class StreamingR<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
