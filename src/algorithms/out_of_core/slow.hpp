#pragma once

// The interface of slow memory, and the host's memory as one.

#include <concepts>
#include <type_traits>

#include "primitives.hpp"

namespace quoin {

/// A matrix in memory slower than device D's, read and written by blocks. Moves are enqueued in order on the given
/// context. Like its other work they may end after the call returns.
template <class S, class T, class D>
concept Slow = requires(S& A, Context<D>& ctx, Range r, MatrixView<T, D> to, MatrixView<const T, D> from) {
    { A.rows() } -> std::convertible_to<Index>;
    { A.cols() } -> std::convertible_to<Index>;
    A.read(ctx, r, r, to);     // to := A(rows, cols)
    A.write(ctx, from, r, r);  // A(rows, cols) := from
};

/// Bytes of the enqueued moves in each direction.
struct BytesMoved {
    double in = 0, out = 0;
};

/// A matrix of the host's memory for a device D. If D is the host, every move is a copy.
template <class T>
class HostMemory {
public:
    explicit HostMemory(MatrixView<T> A) : A_(A) {}
    Index rows() const { return A_.rows; }
    Index cols() const { return A_.cols; }

    template <class D>
    void read(Context<D>& ctx, Range rows, Range cols, MatrixView<T, std::type_identity_t<D>> to) {
        moved_.in += bytes(rows, cols);
        start_copy_from_host<T>(ctx, A_.block(rows, cols), to);
    }
    template <class D>
    void write(Context<D>& ctx, MatrixView<const T, std::type_identity_t<D>> from, Range rows, Range cols) {
        moved_.out += bytes(rows, cols);
        start_copy_to_host<T>(ctx, from, A_.block(rows, cols));
    }
    const BytesMoved& moved() const { return moved_; }

private:
    static double bytes(Range rows, Range cols) {
        return static_cast<double>(rows.size()) * static_cast<double>(cols.size()) * sizeof(T);
    }
    MatrixView<T> A_;
    BytesMoved moved_;
};

}  // namespace quoin
