#pragma once

// Brings blocks of rows to the device while it works on the block before.

#include <chrono>
#include <memory>
#include <utility>

#include "primitives.hpp"
#include "quoin/streaming.hpp"

namespace quoin {

/// Blocks of rows from the host's memory in two places on D, used alternately. One is filled while the context works on
/// the other.
///
///     copies   0 │ 1 │ 2 │ …
///     ctx        │ 0 │ 1 │ …
template <class T, class D>
class RowsFromHost {
public:
    /// Returns the h×n block whose rows begin at row `first` of the rows that `read` supplies. It serves work enqueued
    /// on ctx before the next block is brought.
    MatrixView<const T, D> read(Context<D>& ctx, Index first, Index h, Index n, const RowReader<T>& read) {
        MatrixView<const T, D> block;
        double reading = 0;
        const RowReader<T> timed = [&](Range rows, MatrixView<T> piece) {
            reading += seconds_of([&] { read({first + rows.begin, first + rows.end}, piece); });
        };
        const double all = seconds_of([&] {
            block =
                bring(ctx, h, n, [&](Context<D>& in, MatrixView<T, D> to) { copy_rows_to_device<T>(in, timed, to); });
        });
        times_.reading += reading;
        times_.to_device += all - reading;
        return block;
    }
    /// Returns the block [A b] on D. A and b may be changed once this returns.
    MatrixView<const T, D> copy(Context<D>& ctx, MatrixView<const T> A, MatrixView<const T> b = {}) {
        MatrixView<const T, D> block;
        times_.to_device += seconds_of([&] {
            block = bring(ctx, A.rows, A.cols + b.cols, [&](Context<D>& in, MatrixView<T, D> to) {
                start_copy_from_host<T>(in, A, to.col_block({0, A.cols}));
                start_copy_from_host<T>(in, b, to.col_block({A.cols, to.cols}));
                in.wait();
            });
        });
        return block;
    }
    /// Calls `work()`, which enqueues the work on a block on ctx, once the work on the previous block is done.
    template <class Work>
    void compute(Context<D>& ctx, Work work) {
        finish();
        auto timer = std::make_unique<WorkTimer<D>>(ctx);
        work();
        timer->stop();
        timer_ = std::move(timer);
    }
    /// Waits for the work.
    void finish() {
        if (timer_) times_.computing += timer_->seconds();
        timer_.reset();
    }
    /// Passes the rows of Q, which begin at row `first`, to `write`. Waits.
    void write(Context<D>& ctx, Index first, MatrixView<const T, D> Q, const RowWriter<T>& write) {
        double writing = 0;
        const RowWriter<T> timed = [&](Range rows, MatrixView<const T> piece) {
            writing += seconds_of([&] { write({first + rows.begin, first + rows.end}, piece); });
        };
        const double all = seconds_of([&] { copy_rows_to_host<T>(ctx, Q, timed); });
        times_.writing += writing;
        times_.from_device += all - writing;
    }
    /// Waits for the work.
    StreamTimes times() {
        finish();
        return times_;
    }

private:
    template <class F>
    static double seconds_of(F f) {
        const auto start = std::chrono::steady_clock::now();
        f();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    /// Brings a block to the next place. `fill(in, block)` enqueues the copies on `in`.
    template <class Fill>
    MatrixView<const T, D> bring(Context<D>& ctx, Index h, Index n, Fill fill) {
        Context<D>& in = copy_in_stream(ctx);
        Matrix<T, D>& place = places_[turn_];
        if (place.rows() < h * n) {
            place = {};
            place = Matrix<T, D>(ctx, h * n, 1);
            wait_for(in, ctx);
        }
        const MatrixView<T, D> block(place.data(), h, n);
        try {
            fill(in, block);
        } catch (...) {
            // no copy may go on, because the place is given back in the order of ctx
            in.wait();
            throw;
        }
        wait_for(ctx, in);
        // the next copy goes to the place of the previous block, whose work has been enqueued
        wait_for(in, ctx);
        if (&in != &ctx) turn_ = 1 - turn_;
        return block;
    }

    Matrix<T, D> places_[2];  // the host has only one
    int turn_ = 0;
    std::unique_ptr<WorkTimer<D>> timer_;
    StreamTimes times_;
};

}  // namespace quoin
