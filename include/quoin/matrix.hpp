#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "quoin/error.hpp"

namespace quoin {

/// Every size, index and stride is 64-bit: m·n may exceed 2^31.
using Index = std::int64_t;

/// Memory of the host, computed on by its cores. The device is part of a matrix's type.
struct Host {};

/// The half-open, zero-based range [begin, end).
struct Range {
    Index begin = 0;
    Index end = 0;
    Index size() const { return end - begin; }
};

/// A view of a column-major matrix in memory of another owner: element (i, j) is data[i + j·ld].
///
/// `ld >= max(1, rows)`; rows or cols may be 0, and then data may be null. Views are values: copy them.
template <class T, class D = Host>
struct MatrixView {
    T* data = nullptr;
    Index rows = 0;
    Index cols = 0;
    Index ld = 1;

    MatrixView() = default;
    MatrixView(T* data_, Index rows_, Index cols_, Index ld_) : data(data_), rows(rows_), cols(cols_), ld(ld_) {}
    MatrixView(T* data_, Index rows_, Index cols_) : MatrixView(data_, rows_, cols_, std::max<Index>(1, rows_)) {}
    /// Converts a view that can write to a view that only reads.
    template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>) MatrixView(MatrixView<U, D> other)
        : MatrixView(other.data, other.rows, other.cols, other.ld) {}

    /// Pointer to element (i, j); null in a view without data.
    T* at(Index i, Index j) const { return data ? data + i + j * ld : nullptr; }
    /// Element (i, j); the view must be of host memory.
    T& operator()(Index i, Index j) const { return data[i + j * ld]; }
    /// Views A(r, c) in the same memory.
    MatrixView block(Range r, Range c) const { return {at(r.begin, c.begin), r.size(), c.size(), ld}; }
    /// Rows r, every column.
    MatrixView row_block(Range r) const { return block(r, {0, cols}); }
    /// Columns c, every row.
    MatrixView col_block(Range c) const { return block({0, rows}, c); }
    bool empty() const { return rows == 0 || cols == 0; }
};

/// The type of a parameter whose T and D are deduced elsewhere. A view of T then converts to a view of const T.
template <class T, class D>
using View = std::type_identity_t<MatrixView<T, D>>;

/// A view of a row-major matrix (C order, NumPy's default): element (i, j) is data[i·ld + j], ld >= max(1, cols).
template <class T, class D = Host>
struct RowMajorView {
    T* data = nullptr;
    Index rows = 0;
    Index cols = 0;
    Index ld = 1;
};

/// A view of a matrix that is only read, in either storage order. MatrixView and RowMajorView convert to it.
template <class T, class D = Host>
struct InputView {
    const T* data = nullptr;
    Index rows = 0;
    Index cols = 0;
    Index ld = 1;
    bool by_rows = false;  ///< element (i, j) is data[i·ld + j], and otherwise data[i + j·ld]

    InputView() = default;
    template <class U>
    requires std::is_same_v<std::remove_const_t<U>, T> InputView(MatrixView<U, D> A)
        : data(A.data), rows(A.rows), cols(A.cols), ld(A.ld) {}
    template <class U>
    requires std::is_same_v<std::remove_const_t<U>, T> InputView(RowMajorView<U, D> A)
        : data(A.data), rows(A.rows), cols(A.cols), ld(A.ld), by_rows(true) {}

    /// Pointer to element (i, j); null in a view without data.
    const T* at(Index i, Index j) const { return data ? data + (by_rows ? i * ld + j : i + j * ld) : nullptr; }
    /// Views the memory as a column-major matrix: A, or Aᵀ if `by_rows`.
    MatrixView<const T, D> stored() const { return {data, by_rows ? cols : rows, by_rows ? rows : cols, ld}; }
    /// Rows r, every column.
    InputView row_block(Range r) const {
        InputView block = *this;
        block.rows = r.size();
        block.data = at(r.begin, 0);
        return block;
    }
    /// Columns c, every row.
    InputView col_block(Range c) const {
        InputView block = *this;
        block.cols = c.size();
        block.data = at(0, c.begin);
        return block;
    }
    bool empty() const { return rows == 0 || cols == 0; }
};
/// An InputView as a parameter whose T and D are deduced elsewhere, as `View`.
template <class T, class D>
using Input = std::type_identity_t<InputView<T, D>>;

namespace detail {
/// Allocates 64-byte aligned, uninitialised host memory, in large pages if the system has them. Throws OutOfMemory.
/// `allocate_host(0)` is null.
void* allocate_host(std::size_t bytes);
void free_host(void* p) noexcept;
/// Returns rows·cols·size. Throws InvalidArgument if a dimension is negative or the product overflows.
std::size_t checked_bytes(Index rows, Index cols, std::size_t size);
}  // namespace detail

/// A matrix that owns its memory: column-major, ld = max(1, rows), uninitialised until written. Movable, not copyable.
///
/// Throws InvalidArgument for a negative or overflowing size and OutOfMemory when the memory cannot be had.
template <class T, class D = Host>
class Matrix;

template <class D>
class Context;

/// A matrix in the memory of the host.
template <class T>
class Matrix<T, Host> {
public:
    Matrix() = default;
    /// Allocates rows×cols. Takes the context for the sake of code for any device; on a GPU the memory follows the
    /// order of the context's work.
    Matrix(const Context<Host>&, Index rows, Index cols) : Matrix(rows, cols) {}
    Matrix(Index rows, Index cols)
        : data_(static_cast<T*>(detail::allocate_host(detail::checked_bytes(rows, cols, sizeof(T))))),
          rows_(rows),
          cols_(cols) {}
    /// Allocates rows×cols. On a GPU the columns may be further apart than their length (cuda.hpp).
    static Matrix aligned(const Context<Host>&, Index rows, Index cols) { return Matrix(rows, cols); }
    static constexpr Index aligned_ld(Index rows) { return rows; }
    /// Makes a matrix in memory that the caller owns and keeps alive, with A.ld = max(1, A.rows). If it is moved into
    /// `qr`, `qr` computes in that memory.
    static Matrix over(MatrixView<T> A) {
        Matrix borrowed;
        borrowed.data_ = A.data;
        borrowed.rows_ = A.rows;
        borrowed.cols_ = A.cols;
        borrowed.owned_ = false;
        return borrowed;
    }
    Matrix(Matrix&& other) noexcept { swap(other); }
    Matrix& operator=(Matrix&& other) noexcept {
        swap(other);
        return *this;
    }
    Matrix(const Matrix&) = delete;
    Matrix& operator=(const Matrix&) = delete;
    ~Matrix() {
        if (owned_) detail::free_host(data_);
    }

    Index rows() const { return rows_; }
    Index cols() const { return cols_; }
    Index ld() const { return std::max<Index>(1, rows_); }
    T* data() { return data_; }
    const T* data() const { return data_; }
    MatrixView<T> view() { return {data_, rows_, cols_, ld()}; }
    MatrixView<const T> view() const { return {data_, rows_, cols_, ld()}; }
    T& operator()(Index i, Index j) { return data_[i + j * ld()]; }
    const T& operator()(Index i, Index j) const { return data_[i + j * ld()]; }

private:
    void swap(Matrix& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(rows_, other.rows_);
        std::swap(cols_, other.cols_);
        std::swap(owned_, other.owned_);
    }
    T* data_ = nullptr;
    Index rows_ = 0;
    Index cols_ = 0;
    bool owned_ = true;
};

}  // namespace quoin
