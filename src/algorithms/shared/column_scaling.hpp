#pragma once

// Scaling of columns by powers of two, for columns out of range and for products in 16 bits.

#include <algorithm>
#include <utility>

#include "devices.hpp"
#include "primitives.hpp"

namespace quoin {

/// The column scaling A D, D = diag(2^-e_j), that makes every route safe. A D has A's Q, and R D as its R. All e_j
/// are 0 if no scaling is needed.
///
/// The columns from `head` on are left to `scale_tail`, which the caller has to call later.
template <class T, class D>
class ColumnScaling {
public:
    ColumnScaling(Context<D>& ctx, InputView<T, D> A, Arithmetic arithmetic, Index head)
        : head_{0, head}, tail_{head, A.cols}, arithmetic_(arithmetic), memory_(ctx, scans_of(A.cols), 1) {
        look_at(ctx, A, head_);
    }
    ColumnScaling(Context<D>& ctx, InputView<T, D> A) : ColumnScaling(ctx, A, Arithmetic::Native, A.cols) {}
    /// For [R; B], R an upper triangle if `part` says so. All e_j are 0 if an entry is not finite.
    ColumnScaling(Context<D>& ctx, Part part, MatrixView<const T, D> R,
                  MatrixView<const T, D> B) requires std::is_same_v<D, Host>
        : head_{0, B.cols}, tail_{B.cols, B.cols}, memory_(ctx, scans_of(B.cols), 1) {
        Matrix<T, D> triangle;
        Matrix<int, D> of_B(ctx, B.cols, 1);
        if (part == Part::Upper) {
            triangle = Matrix<T, D>(ctx, B.cols, B.cols);
            copy_triangle<T>(ctx, R, triangle.view());
            R = std::as_const(triangle).view();
        }
        const auto look = [&](int safe) {
            scan<T>(ctx, R, safe, exponents(), found_of(0));
            scan<T>(ctx, B, safe, of_B.view(), found_of(1));
        };
        look(Scalar<T>::safe_exponent);
        if (!found_of(0).data->scaled && !found_of(1).data->scaled) return;
        // one of R and B is out of range: take the exponents of both
        look(-1);
        const bool finite = found_of(0).data->bad_row < 0 && found_of(1).data->bad_row < 0;
        for (Index j = 0; j < B.cols; ++j) exponents()(j, 0) = finite ? std::max(exponents()(j, 0), of_B(j, 0)) : 0;
        found_of(0).data->scaled = finite;
    }
    /// D = 2^-e I.
    ColumnScaling(Index cols, int e) requires std::is_same_v<D, Host> : head_{0, cols}, memory_(scans_of(cols), 1) {
        std::fill_n(exponents().data, cols, e);
    }
    /// A := A D.
    void scale(Context<D>& ctx, MatrixView<T, D> A) const { scale(ctx, A, head_); }
    /// Scans the tail, and scales it: A := A D.
    void scale_tail(Context<D>& ctx, MatrixView<T, D> A) {
        look_at(ctx, A, tail_);
        scale(ctx, A, tail_);
    }
    Index tail_cols() const { return tail_.size(); }
    /// R := R D, for an upper triangle R.
    void scale_triangle(Context<D>& ctx, MatrixView<T, D> R) const {
        scale_columns<T>(ctx, exponents(), -1, Part::Upper, R);
    }
    /// R := R D⁻¹.
    void unscale(Context<D>& ctx, Part part, MatrixView<T, D> R) const { unscale(ctx, part, R, {0, R.cols}); }
    /// R := R D⁻¹. R has the given `columns` of A's R.
    void unscale(Context<D>& ctx, Part part, MatrixView<T, D> R, Range columns) const {
        scale_columns<T>(ctx, exponents().row_block(columns), 1, part, R);
    }
    /// Whether a column was out of range. With `check_finite` throws NonFiniteEntry for NaN or Inf. Waits.
    bool needed(Context<D>& ctx, bool check_finite) {
        bool scaled = false;
        for (const Range cols : {head_, tail_}) {
            if (cols.begin > 0 && cols.size() == 0) continue;
            const Scan scan = read_scan(ctx, found(cols));
            if (check_finite && scan.bad_row >= 0) throw NonFiniteEntry(scan.bad_row, cols.begin + scan.bad_col);
            scaled = scaled || scan.scaled;
        }
        return scaled;
    }
    /// The exponents e_j.
    MatrixView<int, D> exponents() const {
        return {reinterpret_cast<int*>(const_cast<Scan*>(memory_.data()) + 2), std::max(head_.end, tail_.end), 1};
    }

private:
    void look_at(Context<D>& ctx, InputView<T, D> A, Range cols) {
        const Span span(ctx, "scan");
        const auto exponents = this->exponents().row_block(cols);
        if (arithmetic_ == Arithmetic::Native) {
            scan<T>(ctx, A.col_block(cols), Scalar<T>::safe_exponent, exponents, found(cols));
        } else {
            norm_exponents<T>(ctx, A.col_block(cols).stored(), exponents, found(cols));  // norms from 1 to 2
        }
    }
    void scale(Context<D>& ctx, MatrixView<T, D> A, Range cols) const {
        scale_columns<T>(ctx, exponents().row_block(cols), -1, Part::All, A.col_block(cols));
    }
    // two scans, followed by the exponents
    static Index scans_of(Index cols) {
        return 2 + (cols * Index{sizeof(int)} + Index{sizeof(Scan)} - 1) / Index{sizeof(Scan)};
    }
    MatrixView<Scan, D> found_of(Index part) { return memory_.view().row_block({part, part + 1}); }
    MatrixView<Scan, D> found(Range cols) { return found_of(cols.begin > 0); }

    Range head_, tail_ = {};
    Arithmetic arithmetic_ = Arithmetic::Native;
    Matrix<Scan, D> memory_;
};

/// Scales columns into range: A := A D, if needed. `unscale` takes D out of their coefficients.
template <class T, class D>
class ColumnsInRange {
public:
    ColumnsInRange(Context<D>& ctx, MatrixView<T, D> A, Arithmetic arithmetic = Arithmetic::Native,
                   bool check_finite = false)
        : scaling_(ctx, A, arithmetic, A.cols),
          scaled_(scaling_.needed(ctx, check_finite) || arithmetic != Arithmetic::Native) {
        if (scaled_) scaling_.scale(ctx, A);
    }
    /// R := R D⁻¹, for `columns` of A.
    void unscale(Context<D>& ctx, MatrixView<T, D> R, Range columns) const {
        if (scaled_) scaling_.unscale(ctx, Part::All, R, columns);
    }

private:
    ColumnScaling<T, D> scaling_;
    bool scaled_;
};

/// Scales C := C D to column norms from 1 to 2, D of powers of two, if the arithmetic of the products needs that.
/// `restore` multiplies a result of C by D⁻¹. Both do nothing otherwise, or for columns that are zero or not finite.
template <class T, class D>
class UnitColumns {
public:
    UnitColumns(Context<D>& ctx, Arithmetic arithmetic, MatrixView<T, D> C) {
        if (arithmetic == Arithmetic::Native) return;
        exponents_ = Matrix<int, D>(ctx, C.cols, 1);
        norm_exponents<T>(ctx, C, exponents_.view());
        scale(ctx, -1, C);
    }
    void restore(Context<D>& ctx, MatrixView<T, D> C) const {
        if (exponents_.rows() > 0) scale(ctx, 1, C);
    }

private:
    void scale(Context<D>& ctx, int sign, MatrixView<T, D> C) const {
        scale_columns<T>(ctx, exponents_.view(), sign, Part::All, C);
    }
    Matrix<int, D> exponents_;
};

}  // namespace quoin
