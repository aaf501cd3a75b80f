#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "quoin/quoin.hpp"

namespace quoin::python {

namespace nb = nanobind;

/// An array of T in host memory, of any strides, that is only read.
template <class T>
using Array = nb::ndarray<const T, nb::device::cpu>;

/// One matrix of an array's last two dimensions.
template <class T>
struct StridedMatrix {
    const T* data = nullptr;
    Index rows = 0, cols = 0, row_stride = 1, col_stride = 1;

    T at(Index i, Index j) const { return data[i * row_stride + j * col_stride]; }

    bool column_major() const {
        return (rows <= 1 || row_stride == 1) && (cols <= 1 || col_stride >= std::max<Index>(1, rows));
    }
    bool row_major() const {
        return (cols <= 1 || col_stride == 1) && (rows <= 1 || row_stride >= std::max<Index>(1, cols));
    }
    StridedMatrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
    MatrixView<const T> view() const { return {data, rows, cols, cols > 1 ? col_stride : std::max<Index>(1, rows)}; }
    RowMajorView<const T> row_major_view() const {
        return {data, rows, cols, rows > 1 ? row_stride : std::max<Index>(1, cols)};
    }
    Matrix<T> gathered() const {
        Matrix<T> A(rows, cols);
        for (Index j = 0; j < cols; ++j) {
            for (Index i = 0; i < rows; ++i) A(i, j) = at(i, j);
        }
        return A;
    }
};

/// A as a column-major view: of its own memory, or of a copy.
template <class T>
struct ColumnMajor {
    explicit ColumnMajor(const StridedMatrix<T>& A)
        : copy(A.column_major() ? Matrix<T>() : A.gathered()), view(A.column_major() ? A.view() : copy.view()) {}
    ColumnMajor(const ColumnMajor&) = delete;
    ColumnMajor& operator=(const ColumnMajor&) = delete;

    Matrix<T> copy;
    MatrixView<const T> view;
};

/// The matrices in the last two dimensions of an array of at least two; the leading ones are the batch, in C order.
template <class T>
class Batch {
public:
    explicit Batch(const Array<T>& array) : array_(array) {
        for (std::size_t d = 0; d + 2 < array.ndim(); ++d) {
            shape_.push_back(array.shape(d));
            count_ *= static_cast<Index>(array.shape(d));
        }
    }
    const std::vector<std::size_t>& shape() const { return shape_; }
    Index count() const { return count_; }
    Index rows() const { return array_.shape(array_.ndim() - 2); }
    Index cols() const { return array_.shape(array_.ndim() - 1); }
    StridedMatrix<T> operator[](Index b) const {
        Index offset = 0;
        for (std::size_t d = shape_.size(); d-- > 0;) {
            const Index extent = shape_[d];
            offset += b % extent * array_.stride(d);
            b /= extent;
        }
        const std::size_t d = array_.ndim();
        return {array_.data() + offset, rows(), cols(), array_.stride(d - 2), array_.stride(d - 1)};
    }

private:
    const Array<T>& array_;
    std::vector<std::size_t> shape_;
    Index count_ = 1;
};

/// A NumPy array of `shape` and `strides` over the memory of M, which it owns.
template <class T>
nb::object to_numpy(Matrix<T>&& M, const std::vector<std::size_t>& shape, const std::vector<std::int64_t>& strides) {
    static T nothing;  // an array of no entries has an address too
    auto* owned = new Matrix<T>(std::move(M));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Matrix<T>*>(p); });
    T* data = owned->data() ? owned->data() : &nothing;
    return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner, strides.data()));
}

/// M as an array in Fortran order.
template <class T>
nb::object to_numpy(Matrix<T>&& M) {
    const std::size_t rows = M.rows(), cols = M.cols();
    return to_numpy(std::move(M), {rows, cols}, {1, static_cast<std::int64_t>(rows)});
}

/// Mᵀ as an array in C order.
template <class T>
nb::object to_numpy_transposed(Matrix<T>&& M) {
    const std::size_t rows = M.rows(), cols = M.cols();
    return to_numpy(std::move(M), {cols, rows}, {static_cast<std::int64_t>(rows), 1});
}

/// x as an array of one dimension, x a column.
template <class T>
nb::object to_numpy_vector(Matrix<T>&& x) {
    const std::size_t rows = x.rows();
    return to_numpy(std::move(x), {rows}, {1});
}

/// Matrices of one shape, one result of a batch: each column-major, one after the other.
template <class T>
class BatchResult {
public:
    BatchResult(const std::vector<std::size_t>& batch, Index count, Index rows, Index cols)
        : batch_(batch), rows_(rows), cols_(cols) {
        if (!batch_.empty()) memory_ = Matrix<T>(rows, cols * count);
    }
    void put(Index b, Matrix<T>&& M) {
        if (batch_.empty()) {
            memory_ = std::move(M);
        } else {
            std::copy_n(M.data(), rows_ * cols_, memory_.data() + b * rows_ * cols_);
        }
    }
    /// Of shape (..., rows, cols).
    nb::object take() { return take_as({rows_, cols_}, {1, rows_}); }
    /// Of shape (..., cols, rows), each in C order.
    nb::object take_transposed() { return take_as({cols_, rows_}, {rows_, 1}); }
    /// Of shape (..., rows), from one column each.
    nb::object take_vectors() { return take_as({rows_}, {1}); }

private:
    nb::object take_as(std::vector<Index> last, std::vector<std::int64_t> last_strides) {
        std::vector<std::size_t> shape(batch_);
        std::vector<std::int64_t> strides(batch_.size());
        std::int64_t stride = rows_ * cols_;
        for (std::size_t d = batch_.size(); d-- > 0;) {
            strides[d] = stride;
            stride *= static_cast<std::int64_t>(batch_[d]);
        }
        shape.insert(shape.end(), last.begin(), last.end());
        strides.insert(strides.end(), last_strides.begin(), last_strides.end());
        return to_numpy(std::move(memory_), shape, strides);
    }
    std::vector<std::size_t> batch_;
    Index rows_, cols_;
    Matrix<T> memory_;
};

}  // namespace quoin::python
