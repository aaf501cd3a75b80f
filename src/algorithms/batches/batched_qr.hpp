#pragma once

// Batches by shape, and their matrices one by one.

#include <fmt/format.h>

#include <map>
#include <optional>

#include "algorithms/batches/pivoted_batch.hpp"
#include "devices.hpp"
#include "quoin/batch.hpp"

namespace quoin {

/// Matrices of one shape.
template <class T, class D>
struct ShapeClass {
    Index m, n, k;            // k: columns of Q
    std::vector<Index> list;  // empty: all of the batch
    Index count = 0;
    std::optional<SmallBatch<T, D>> small;
    std::optional<PivotedBatch<T, D>> pivoted;
    std::vector<std::optional<QR<T, D>>> each;  // neither small nor pivoted ones

    Members members() const { return {list, count}; }
    /// Calls work(QR) for member i of a class that is not small.
    template <class Work>
    auto with_qr(Context<D>& ctx, Index i, const Work& work) const {
        return pivoted ? work(pivoted->one(ctx, i)) : work(*each[i]);
    }
};

/// Calls f(X, columns, is_transposed) for column-major views X, each of some columns of matrix b of a batch or of their
/// transpose: all columns at once if one stride is 1, otherwise one by one.
template <class U, class D, class F>
void for_each_stored(BatchView<U, D> A, Index b, F f) {
    using View = MatrixView<U, D>;
    const Index m = A.rows(b), n = A.cols(b), rs = A.row_stride(b), cs = A.col_stride(b);
    if (rs == 1) return f(View(A.data(b), m, n, cs), Range{0, n}, false);
    if (cs == 1) return f(View(A.data(b), n, m, rs), Range{0, n}, true);
    for (Index j = 0; j < n; ++j) f(View(A.data(b) + j * cs, 1, m, rs), Range{j, j + 1}, true);
}
/// B := matrix b of a batch of any strides.
template <class T, class D>
void gather(Context<D>& ctx, BatchView<const T, D> A, Index b, MatrixView<T, D> B) {
    for_each_stored(A, b, [&](MatrixView<const T, D> X, Range cols, bool is_transposed) {
        const auto to = B.col_block(cols);
        is_transposed ? transpose<T>(ctx, X, to) : copy<T>(ctx, X, to);
    });
}
template <class T, class D>
Matrix<T, D> gathered(Context<D>& ctx, BatchView<const T, D> A, Index b) {
    Matrix<T, D> B(ctx, A.rows(b), A.cols(b));
    gather<T, D>(ctx, A, b, B.view());
    return B;
}
/// Writes A to the first rows and columns of matrix b of a batch of any strides, and zeros to the other ones.
template <class T, class D>
void scatter(Context<D>& ctx, MatrixView<const T, D> A, BatchView<T, D> B, Index b) {
    Matrix<T, D> padded;
    if (A.rows < B.rows(b) || A.cols < B.cols(b)) {
        padded = Matrix<T, D>(ctx, B.rows(b), B.cols(b));
        set_zero(ctx, padded.view());
        copy<T>(ctx, A, padded.view().block({0, A.rows}, {0, A.cols}));
        A = std::as_const(padded).view();
    }
    for_each_stored(B, b, [&](MatrixView<T, D> X, Range cols, bool is_transposed) {
        const auto from = A.col_block(cols);
        is_transposed ? transpose<T>(ctx, from, X) : copy<T>(ctx, from, X);
    });
}
/// Throws InvalidArgument unless batch B, called `name` in the message, has `count` matrices of rows(b)×cols(b).
template <class T, class D, class RowsOf, class ColsOf>
void require_shapes(const char* name, BatchView<const T, D> B, Index count, RowsOf rows, ColsOf cols) {
    if (B.count() != count) {
        throw InvalidArgument(fmt::format("{} has {} matrices, and the batch {}", name, B.count(), count));
    }
    for (Index b = 0; b < (B.uniform() ? std::min<Index>(count, 1) : count); ++b) {
        if (B.rows(b) != rows(b) || B.cols(b) != cols(b)) {
            throw InvalidArgument(fmt::format("matrix {} of {} is {}x{}, and must be {}x{}", b, name, B.rows(b),
                                              B.cols(b), rows(b), cols(b)));
        }
    }
}

/// Throws InvalidArgument for a batch that no memory can hold, naming the matrix.
template <class T, class D>
void require_storage(BatchView<const T, D> A) {
    const auto refuse = [](Index b, const char* why) {
        throw InvalidArgument(fmt::format("matrix {} of the batch {}", b, why));
    };
    if (A.count() < 0) throw InvalidArgument(fmt::format("a batch cannot have {} matrices", A.count()));
    for (Index b = 0; b < (A.uniform() ? std::min<Index>(A.count(), 1) : A.count()); ++b) {
        if (A.rows(b) < 0 || A.cols(b) < 0) refuse(b, "has a negative size");
        if (!A.data(b) && A.rows(b) > 0 && A.cols(b) > 0) refuse(b, "has no data");
        const Index ld = A.col_stride(b);
        if (!A.uniform() && A.cols(b) > 1 && ld >= 0 && ld < A.rows(b)) refuse(b, "has an ld below its number of rows");
    }
}

/// Returns memory for a batch of `count` results. shape_of(b) gives their shapes.
template <class T, class D, class ShapeOf>
Batch<T, D> batch_of(const Context<D>& ctx, Index count, bool uniform, const ShapeOf& shape_of) {
    if (uniform) {
        const auto [rows, cols] = count > 0 ? shape_of(0) : std::pair<Index, Index>{0, 0};
        return Batch<T, D>(ctx, rows, cols, count);
    }
    std::vector<std::pair<Index, Index>> shapes;
    for (Index b = 0; b < count; ++b) shapes.push_back(shape_of(b));
    return Batch<T, D>(ctx, shapes);
}

/// Returns the name of matrix b for messages.
inline std::string name_of(Index b) { return fmt::format("matrix {} of the batch", b); }

/// Whether the device factors several m×n matrices at once, and the options leave the method to it.
template <class T, class D>
bool at_once(Index m, Index n, const Options& options) {
    return (options.method == Method::Auto || options.method == Method::BlockedHouseholder) && !options.verify &&
           !options.pivoting && !options.q.full_t && SmallBatch<T, D>::fits(m, n, options.arithmetic);
}

/// The data of a BatchedQR.
template <class T, class D>
struct BatchedFactors {
    std::vector<ShapeClass<T, D>> classes;
    Index count = 0;
    std::vector<std::pair<Index, Index>> place;  // class of matrix b, and its place there; empty: one class, in order

    std::pair<Index, Index> at(Index b) const { return place.empty() ? std::pair<Index, Index>{0, b} : place[b]; }
    const ShapeClass<T, D>& shape(Index b) const { return classes[at(b).first]; }
};

/// Access of Quoin's own sources to the data of a BatchedQR.
struct InsideBatch {
    template <class T, class D>
    static const BatchedFactors<T, D>& of(const BatchedQR<T, D>& f) {
        return *f.inside_;
    }
    template <class T, class D>
    static BatchedQR<T, D> made(detail::Owned<BatchedFactors<T, D>> inside) {
        return BatchedQR<T, D>(std::move(inside));
    }
};

/// Sorts the matrices of a batch by shape, and factors none.
template <class T, class D>
BatchedFactors<T, D> by_shape(BatchView<const T, D> A) {
    BatchedFactors<T, D> sorted;
    sorted.count = A.count();
    const auto add = [&](Index b, Index count) {
        sorted.classes.push_back({A.rows(b), A.cols(b), std::min(A.rows(b), A.cols(b)), {}, count, {}, {}, {}});
    };
    if (A.uniform()) {
        if (A.count() > 0) add(0, A.count());
        return sorted;
    }
    std::map<std::pair<Index, Index>, Index> known;
    for (Index b = 0; b < A.count(); ++b) {
        const auto [it, fresh] = known.try_emplace({A.rows(b), A.cols(b)}, static_cast<Index>(sorted.classes.size()));
        if (fresh) add(b, 0);
        auto& c = sorted.classes[it->second];
        sorted.place.emplace_back(it->second, c.count++);
        c.list.push_back(b);
    }
    return sorted;
}

}  // namespace quoin
