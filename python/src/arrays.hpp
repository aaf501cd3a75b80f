#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "call.hpp"

namespace quoin::python {

/// NumPy's name of T.
template <class T>
inline constexpr const char* numpy_name = std::is_same_v<T, float> ? "float32" : "float64";

/// An array of T in the memory of D, of any strides, that is only read.
template <class T, class D = Host>
using Array = nb::ndarray<const T, std::conditional_t<std::is_same_v<D, Host>, nb::device::cpu, nb::device::cuda>>;

/// One matrix of an array's last two dimensions.
template <class T, class D = Host>
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
    MatrixView<const T, D> view() const { return {data, rows, cols, cols > 1 ? col_stride : std::max<Index>(1, rows)}; }
    bool is_readable() const { return column_major() || row_major(); }
    /// Returns a column-major or row-major matrix as an input of the library.
    InputView<T, D> input() const {
        if (column_major()) return view();
        return RowMajorView<const T, D>{data, rows, cols, rows > 1 ? row_stride : std::max<Index>(1, cols)};
    }
};

/// B := A, which has its rows or its columns next to each other if it is in a GPU's memory.
template <class T, class D>
void load(Context<D>& ctx, const StridedMatrix<T, D>& A, MatrixView<T, D> B) {
    if (B.empty()) return;
    if (A.column_major()) {
        copy<T>(ctx, A.view(), B);
    } else if (A.row_major()) {
        transpose<T>(ctx, A.transposed().view(), B);
    } else if constexpr (std::is_same_v<D, Host>) {
        for (Index j = 0; j < A.cols; ++j) {
            for (Index i = 0; i < A.rows; ++i) B(i, j) = A.at(i, j);
        }
    } else {
        throw InvalidArgument("an array in a GPU's memory must have its rows or its columns next to each other");
    }
}
/// Returns a column-major copy of A.
template <class T, class D>
Matrix<T, D> copy_of(Context<D>& ctx, const StridedMatrix<T, D>& A) {
    Matrix<T, D> B(ctx, A.rows, A.cols);
    load<T>(ctx, A, B.view());
    return B;
}
/// Moves the host's matrix A to the memory of the context's device.
template <class T>
Matrix<T> placed(Context<Host>&, Matrix<T>&& A) {
    return std::move(A);
}

/// A as a column-major view of its own memory or of a copy.
template <class T, class D>
struct ColumnMajor {
    ColumnMajor(Context<D>& ctx, const StridedMatrix<T, D>& A)
        : copy(A.column_major() ? Matrix<T, D>() : copy_of<T>(ctx, A)),
          view(A.column_major() ? A.view() : std::as_const(copy).view()) {}
    ColumnMajor(const ColumnMajor&) = delete;
    ColumnMajor& operator=(const ColumnMajor&) = delete;

    Matrix<T, D> copy;
    MatrixView<const T, D> view;
};

/// A as an input of the library, in its own memory, or as a copy if neither its rows nor its columns are contiguous.
/// The copy is in `place` if that has A's shape.
template <class T, class D>
struct Readable {
    Readable(Context<D>& ctx, const StridedMatrix<T, D>& A, MatrixView<T, D> place = {}) {
        if (A.is_readable()) {
            view = A.input();
            return;
        }
        if (place.rows != A.rows || place.cols != A.cols) {
            copy = Matrix<T, D>(ctx, A.rows, A.cols);
            place = copy.view();
        }
        load<T>(ctx, A, place);
        view = place;
    }
    Readable(const Readable&) = delete;
    Readable& operator=(const Readable&) = delete;

    Matrix<T, D> copy;
    InputView<T, D> view;
};

/// The matrices in the last two dimensions of an array of at least two. The leading dimensions are the batch, in C
/// order.
template <class T, class D>
class Batch {
public:
    explicit Batch(const Array<T, D>& array) : array_(array) {
        for (std::size_t d = 0; d + 2 < array.ndim(); ++d) {
            shape_.push_back(array.shape(d));
            count_ *= static_cast<Index>(array.shape(d));
        }
    }
    const std::vector<std::size_t>& shape() const { return shape_; }
    Index count() const { return count_; }
    Index rows() const { return array_.shape(array_.ndim() - 2); }
    Index cols() const { return array_.shape(array_.ndim() - 1); }
    StridedMatrix<T, D> operator[](Index b) const {
        Index offset = 0;
        for (std::size_t d = shape_.size(); d-- > 0;) {
            const Index extent = shape_[d];
            offset += b % extent * array_.stride(d);
            b /= extent;
        }
        const std::size_t d = array_.ndim();
        return {array_.data() + offset, rows(), cols(), array_.stride(d - 2), array_.stride(d - 1)};
    }
    /// Returns the distance from each matrix to the next, or nothing if the distances differ.
    std::optional<Index> stride() const {
        Index stride = 0, extent = 1;
        for (std::size_t d = shape_.size(); d-- > 0;) {
            const Index here = array_.stride(d);
            if (shape_[d] == 1) continue;
            if (extent > 1 && here != stride * extent) return std::nullopt;
            if (extent == 1) stride = here;
            extent *= static_cast<Index>(shape_[d]);
        }
        return stride;
    }

private:
    const Array<T, D>& array_;
    std::vector<std::size_t> shape_;
    Index count_ = 1;
};

/// Returns the matrix of an array of two dimensions, or the column of an array of one.
template <class T, class D>
StridedMatrix<T, D> matrix_of(const Array<T, D>& array) {
    if (array.ndim() == 1) return {array.data(), static_cast<Index>(array.shape(0)), 1, array.stride(0), 1};
    return Batch<T, D>(array)[0];
}

/// Returns an array of `shape` and `strides` that owns the memory of M: of the library Kind, or a DLPack capsule if
/// none is given.
template <class T, class... Kind>
nb::object to_library(Matrix<T>&& M, const std::vector<std::size_t>& shape, const std::vector<std::int64_t>& strides) {
    static T nothing;  // an array without entries needs an address, too
    auto* owned = new Matrix<T>(std::move(M));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Matrix<T>*>(p); });
    T* data = owned->data() ? owned->data() : &nothing;
    return nb::cast(nb::ndarray<Kind..., T>(data, shape.size(), shape.data(), owner, strides.data()));
}

template <class T>
nb::object to_numpy(Matrix<T>&& M, const std::vector<std::size_t>& shape, const std::vector<std::int64_t>& strides) {
    return to_library<T, nb::numpy>(std::move(M), shape, strides);
}

/// The form of a column-major matrix for the caller: unchanged, as its transpose in C order, or one column as a
/// vector.
enum class As { Matrix, Transpose, Vector };

template <class T>
nb::object to_numpy(Matrix<T>&& M, As as = As::Matrix) {
    const std::size_t rows = M.rows(), cols = M.cols();
    const std::int64_t ld = M.rows();
    if (as == As::Vector) return to_numpy(std::move(M), {rows}, {1});
    if (as == As::Transpose) return to_numpy(std::move(M), {cols, rows}, {ld, 1});
    return to_numpy(std::move(M), {rows, cols}, {1, ld});
}

/// Returns a copy of A.
template <class T, class D>
Matrix<T, D> own_copy(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<T, D> B(ctx, A.rows, A.cols);
    copy<T>(ctx, A, B.view());
    return B;
}

/// One result of a batch: column-major matrices of one shape, one after the other. A single matrix is a batch without
/// leading dimensions.
template <class T, class D>
class BatchResult;

template <class T>
class BatchResult<T, Host> {
public:
    /// Makes `count` rows×cols matrices. The unnamed arguments (the number of threads, and the number of rows that will
    /// be written) are used for arrays on a GPU only.
    BatchResult(int, const std::vector<std::size_t>& batch, Index count, Index rows, Index cols, Index,
                As as = As::Matrix)
        : batch_(batch), count_(count), rows_(rows), cols_(cols), as_(as) {}
    /// Returns the first `rows` rows of the only matrix, or of all matrices, to be written. The rows below are zeros.
    MatrixView<T> matrix(Index rows) {
        all(rows);
        return memory_.view().row_block({0, rows});
    }
    BatchView<T> all(Index rows) {
        memory_ = Matrix<T>(rows_, cols_ * count_);
        for (Index j = 0; rows < rows_ && j < memory_.cols(); ++j)
            std::fill(&memory_(0, j) + rows, &memory_(0, j) + rows_, T(0));
        return {memory_.data(), rows, cols_, memory_.ld(), rows_ * cols_, count_};
    }
    /// Sets the matrix to [M; 0].
    void put(Context<Host>&, Matrix<T>&& M) {
        if (M.rows() == rows_) {
            memory_ = std::move(M);
            return;
        }
        const BatchView<T> top = all(M.rows());
        for (Index j = 0; j < cols_; ++j) std::copy_n(M.data() + j * M.rows(), M.rows(), top.data(0) + j * rows_);
    }
    void put(Context<Host>&, quoin::Batch<T>&& batch) { memory_ = std::move(batch).take(); }
    nb::object take() {
        if (as_ == As::Vector) return take_as({rows_}, {1});
        return as_ == As::Matrix ? take_as({rows_, cols_}, {1, rows_}) : take_as({cols_, rows_}, {rows_, 1});
    }

private:
    nb::object take_as(std::vector<Index> last, std::vector<std::int64_t> last_strides) {
        if (memory_.rows() == 0) memory_ = Matrix<T>(rows_, cols_ * count_);
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
    Index count_, rows_, cols_;
    As as_;
    Matrix<T> memory_;
};

/// Returns M, or the vector x, as the caller's array.
template <class T>
nb::object to_array(const Home<Host>&, int, Matrix<T>&& M, As as = As::Matrix) {
    return to_numpy(std::move(M), as);
}
template <class T>
nb::object to_vector(const Home<Host>&, int, const std::vector<T>& x) {
    Matrix<T> column(static_cast<Index>(x.size()), 1);
    std::copy(x.begin(), x.end(), column.data());
    return to_numpy(std::move(column), As::Vector);
}

/// Returns the matrix made by `make(ctx)` as the caller's array.
template <class D, class Make>
nb::object array_of(const Home<D>& home, const Where<D>& where, double flops, Make&& make, As as = As::Matrix) {
    return to_array(home, where, result_of(home, where, flops, make), as);
}
/// Returns a copy of A as the caller's array.
template <class T, class D>
nb::object copied_array(const Home<D>& home, const Where<D>& where, MatrixView<const T, D> A) {
    return array_of(home, where, flops_of_copy(A.rows, A.cols),
                    [&](Context<D>& ctx) { return own_copy<T, D>(ctx, A); });
}

}  // namespace quoin::python
