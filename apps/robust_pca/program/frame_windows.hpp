#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "on_device.hpp"
#include "quoin/apps/robust_pca_of_frames.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

/// The windows of frames that `quoin rpca` separates, with M as bytes in the memory of the host and L and S column by
/// column.
template <class T, class D>
class FrameWindows;

template <class T>
class FrameWindows<T, Host> : public RobustPcaOfFrames<T> {
public:
    using RobustPcaOfFrames<T>::RobustPcaOfFrames;
    /// Most bytes for an entry of M, and for an entry of the carried columns. They are needed if L has full rank.
    static constexpr double bytes_of_own = 1 + 3 * sizeof(T), bytes_of_carried = 4 * sizeof(T);

    MatrixView<std::uint8_t> columns(Context<Host>&, Index count) { return RobustPcaOfFrames<T>::columns(count); }
    double seconds_in() const { return 0; }
    double seconds_out() const { return 0; }

    /// Saves the columns that the next window carries, as F C (run_state.hpp).
    template <class State>
    void save(Context<Host>&, State& state) const {
        state(this->background());
        state(this->background_coordinates());
    }
    template <class State>
    void load(Context<Host>&, State& state) {
        Matrix<T> F, C;
        state(F);
        state(C);
        this->set_background(std::move(F), std::move(C));
    }
};

#ifdef QUOIN_HAVE_CUDA
template <class T>
class FrameWindows<T, Cuda> {
public:
    using Outcome = typename RobustPcaOfFrames<T>::Outcome;
    /// Bytes for six matrices as large as M, and for the columns that are carried.
    static constexpr double bytes_of_own = 6 * sizeof(T), bytes_of_carried = 6 * sizeof(T);

    FrameWindows(Index rows, Index carried) : rows_(rows), windows_(rows, carried), column_(rows, 1) {}
    MatrixView<std::uint8_t> columns(Context<Cuda>&, Index count) {
        if (bytes_.rows() != rows_ || bytes_.cols() < count) bytes_ = Matrix<std::uint8_t>(rows_, count);
        count_ = count;
        return bytes_.view().col_block({0, count});
    }
    Outcome pursue(Context<Cuda>& ctx, const RobustPcaOptions<T>& options) {
        RobustPcaOptions<T, Cuda> on_device;
        on_device.pursuit = options.pursuit, on_device.route = options.route;
        on_device.lambda = options.lambda, on_device.mu = options.mu, on_device.noise = options.noise;
        on_device.rho = options.rho, on_device.tolerance = options.tolerance;
        on_device.max_iterations = options.max_iterations, on_device.max_rank = options.max_rank;
        on_device.on_step = options.on_step;
        window_ = {};
        const MatrixView<T, Cuda> M = windows_.columns(ctx, count_);
        const Stopwatch sending;
        for (Index j = 0; j < count_; ++j) {
            for (Index i = 0; i < rows_; ++i) column_(i, 0) = static_cast<T>(bytes_(i, j)) / T(255);
            copy_to_device<T>(ctx, std::as_const(column_).view(), M.col_block({j, j + 1}));
        }
        seconds_in_ += sending.seconds();
        window_ = windows_.pursue(ctx, on_device);
        window_.parts.Y = {};
        return {window_.parts.last, window_.parts.end, window_.parts.lambda, window_.parts.route, window_.carried};
    }
    void low_rank_rows(Context<Cuda>& ctx, Range rows, MatrixView<T> L) { fetch(ctx, window_.L().row_block(rows), L); }
    void low_rank(Context<Cuda>& ctx, Index j, std::span<T> l) {
        fetch(ctx, window_.L().col_block({j, j + 1}), column(l));
    }
    void sparse(Context<Cuda>& ctx, Index j, std::span<T> s) {
        fetch(ctx, window_.S().col_block({j, j + 1}), column(s));
    }
    void release_sparse() { window_.parts.S = {}; }
    double seconds_in() const { return seconds_in_; }
    double seconds_out() const { return seconds_out_; }

    template <class State>
    void save(Context<Cuda>& ctx, State& state) const {
        const Matrix<T> F = copy_to_host<T>(ctx, windows_.background().view());
        Matrix<T> C(F.cols(), F.cols());
        for (Index j = 0; j < C.cols(); ++j) {
            for (Index i = 0; i < C.rows(); ++i) C(i, j) = i == j;
        }
        state(F.view());
        state(C);
    }
    template <class State>
    void load(Context<Cuda>& ctx, State& state) {
        Matrix<T> F, C;
        state(F);
        state(C);
        Matrix<T> background(F.rows(), C.cols());
        for (Index j = 0; j < C.cols(); ++j) {
            for (Index i = 0; i < F.rows(); ++i) {
                background(i, j) = 0;
                for (Index k = 0; k < F.cols(); ++k) background(i, j) += F(i, k) * C(k, j);
            }
        }
        windows_.set_background(to_device(ctx, std::move(background)));
    }

private:
    static MatrixView<T> column(std::span<T> values) { return {values.data(), static_cast<Index>(values.size()), 1}; }
    void fetch(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T> to) {
        const Stopwatch fetching;
        const Matrix<T> copy = copy_to_host<T>(ctx, A);
        for (Index j = 0; j < A.cols; ++j) std::copy_n(copy.view().at(0, j), A.rows, to.at(0, j));
        seconds_out_ += fetching.seconds();
    }
    Index rows_, count_ = 0;
    RobustPcaWindows<T, Cuda> windows_;
    typename RobustPcaWindows<T, Cuda>::Window window_;
    Matrix<std::uint8_t> bytes_;
    Matrix<T> column_;
    double seconds_in_ = 0, seconds_out_ = 0;
};
#endif

}  // namespace quoin::cli
