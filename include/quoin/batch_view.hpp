#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin {

/// A view of many matrices in memory of the caller: of one shape, at equal distances in one array, or of any shapes
/// anywhere.
///
/// Entry (i, j) of matrix b of an array is data[b·stride + i·row_stride + j·col_stride].
template <class T, class D = Host>
class BatchView {
public:
    BatchView() = default;
    /// Views `count` m×n matrices, column-major with leading dimension `ld`. With `stride` 0 one matrix is read `count`
    /// times; it must not be written.
    BatchView(T* data, Index rows, Index cols, Index ld, Index stride, Index count)
        : BatchView(data, rows, cols, 1, ld, stride, count) {}
    /// Views matrices with any strides, also row-major ones (NumPy's default).
    BatchView(T* data, Index rows, Index cols, Index row_stride, Index col_stride, Index stride, Index count)
        : data_(data),
          rows_(rows),
          cols_(cols),
          row_stride_(row_stride),
          col_stride_(col_stride),
          stride_(stride),
          count_(count) {}
    /// Views a ragged batch, or an array of pointers.
    explicit BatchView(std::vector<MatrixView<T, D>> matrices)
        : list_(std::make_shared<const std::vector<MatrixView<T, D>>>(std::move(matrices))),
          count_(static_cast<Index>(list_->size())) {}
    /// Converts a view that can be written to a view that can only be read.
    template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>) BatchView(const BatchView<U, D>& other)
        : BatchView(other.data_, other.rows_, other.cols_, other.row_stride_, other.col_stride_, other.stride_,
                    other.count_) {
        if (other.list_) *this = BatchView(std::vector<MatrixView<T, D>>(other.list_->begin(), other.list_->end()));
    }

    /// Returns the transposes of a uniform batch, in the same memory.
    BatchView transposed() const { return {data_, cols_, rows_, col_stride_, row_stride_, stride_, count_}; }

    Index count() const { return count_; }
    /// Whether all matrices have the shape of matrix 0.
    bool uniform() const { return !list_; }
    Index rows(Index b) const { return list_ ? (*list_)[b].rows : rows_; }
    Index cols(Index b) const { return list_ ? (*list_)[b].cols : cols_; }
    Index row_stride(Index) const { return row_stride_; }
    Index col_stride(Index b) const { return list_ ? (*list_)[b].ld : col_stride_; }
    T* data(Index b) const { return list_ ? (*list_)[b].data : data_ ? data_ + b * stride_ : nullptr; }

private:
    template <class, class>
    friend class BatchView;

    T* data_ = nullptr;
    std::shared_ptr<const std::vector<MatrixView<T, D>>> list_;
    Index rows_ = 0, cols_ = 0, row_stride_ = 1, col_stride_ = 1, stride_ = 0, count_ = 0;
};

}  // namespace quoin
