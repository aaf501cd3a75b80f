#pragma once

// Element-wise steps and passes over matrices. `copy` and `transpose` are in quoin/context.hpp.

#include <cstdint>
#include <span>

#include "primitives/context.hpp"

namespace quoin {

/// ‖a_j‖₂ of every column of A, without overflow or underflow on the way. Waits.
template <class T, class D>
void column_norms(Context<D>& ctx, View<const T, D> A, std::span<Real<T>> norms);
/// norms (n×1) := the same, without a wait.
template <class T, class D>
void write_column_norms(Context<D>& ctx, View<const T, D> A, View<Real<T>, D> norms);
struct EntryNorms {
    double squares = 0, sum = 0, largest = 0;  ///< ‖M‖_F², ‖M‖₁ entrywise, max |m_ij|
};
/// Returns the norms of M's entries. Waits.
template <class T, class D>
EntryNorms entry_norms(Context<D>& ctx, View<const T, D> M);
/// B := factor A. B may be A.
template <class T, class D>
void scaled_copy(Context<D>& ctx, double factor, View<const T, D> A, View<T, D> B);
/// B := A diag(factors), computed in f64 and rounded to B's type. S and T are f32 and f64, in either order.
template <class S, class T, class D>
void multiply_columns(Context<D>& ctx, View<const S, D> A, View<const double, D> factors, View<T, D> B);
/// Whether all entries of A and B, of one shape, are equal. Waits.
template <class T, class D>
bool equal(Context<D>& ctx, View<const T, D> A, View<const T, D> B);
/// The result of one pass over the entries of a matrix.
struct Scan {
    Index bad_row = -1, bad_col = -1;  ///< first NaN or Inf in column-major order, or −1
    bool scaled = false;               ///< whether some exponent is not 0
};
/// Reads A once. `exponents` (n×1) receives ilogb of each column's largest entry (0 for a zero column) where one of
/// them is beyond ±safe, and zeros otherwise or where an entry is not finite; `found` is 1×1.
template <class T, class D>
void scan(Context<D>& ctx, Input<T, D> A, int safe, View<int, D> exponents, View<Scan, D> found);
/// The result of `scan`. Waits.
template <class D>
Scan read_scan(Context<D>& ctx, View<const Scan, D> found);
/// e_j := the exponent of ‖a_j‖₂, 0 where that is 0 or not finite; `found`, if it is there, as by `scan`, and not
/// scaled. Waits but for f32 on a GPU.
template <class T, class D>
void norm_exponents(Context<D>& ctx, View<const T, D> A, View<int, D> exponents, View<Scan, D> found = {});
/// Column j of A (of its upper triangle or trapezoid alone, if asked) := 2^(sign·e_j) times itself: exact unless it
/// under- or overflows.
enum class Part { All, Upper };
template <class T, class D>
void scale_columns(Context<D>& ctx, View<const int, D> exponents, int sign, Part part, View<T, D> A);
/// R := the upper triangle or trapezoid of A, exact zeros below it. R may be A.
template <class T, class D>
void copy_triangle(Context<D>& ctx, View<const T, D> A, View<T, D> R);
/// The upper triangle of A := I; entries below it keep their values: the root of a tree before `form_nodes`.
template <class T, class D>
void set_root(Context<D>& ctx, View<T, D> A);
/// Copies the upper triangle of R to A. Entries of A below it keep their values.
template <class T, class D>
void store_triangle(Context<D>& ctx, View<const T, D> R, View<T, D> A);
/// p := the entries on and above the diagonal of R (k×n), column by column: k n − k(k − 1)/2 of them, k <= n.
template <class T, class D>
void pack_triangle(Context<D>& ctx, View<const T, D> R, View<T, D> p);
/// The inverse of pack_triangle. Entries below R's diagonal keep their values.
template <class T, class D>
void unpack_triangle(Context<D>& ctx, View<const T, D> p, View<T, D> R);
/// Where column j of a packed triangle of k rows begins.
constexpr Index packed_column(Index k, Index j) { return j < k ? j * (j + 1) / 2 : k * (k + 1) / 2 + (j - k) * k; }
/// A := [I; 0], with ones on the diagonal that starts at (0, first_col); first_col may be negative.
template <class T, class D>
void set_identity(Context<D>& ctx, Index first_col, View<T, D> A);
/// A := 0.
template <class T, class D>
void set_zero(Context<D>& ctx, MatrixView<T, D> A) {
    // the diagonal that starts beyond the last column
    set_identity<T>(ctx, A.cols, A);
}
/// d (n×1) := the diagonal of A.
template <class T, class D>
void copy_diagonal(Context<D>& ctx, View<const T, D> A, View<T, D> d);
/// s (n×1) := the signs of the diagonal of A, 1 for zeros.
template <class T, class D>
void diagonal_signs(Context<D>& ctx, View<const T, D> A, View<T, D> s);
/// A := A + I.
template <class T, class D>
void add_identity(Context<D>& ctx, View<T, D> A);
/// A := −A.
template <class T, class D>
void negate(Context<D>& ctx, View<T, D> A);
/// A := Ā. Of complex numbers alone.
template <class T, class D>
void conjugate_entries(Context<D>& ctx, View<T, D> A);
/// B := Aᵀ, or Aᴴ of complex numbers.
template <class T, class D>
void adjoint(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    transpose<T>(ctx, A, B);
    if constexpr (is_complex<T>) conjugate_entries<T>(ctx, B);
}
/// B := B + A.
template <class T, class D>
void add(Context<D>& ctx, View<const T, D> A, View<T, D> B);
/// B := B − A.
template <class T, class D>
void subtract(Context<D>& ctx, View<const T, D> A, View<T, D> B);
/// A := diag(signs) A, signs or other factors of length A.rows.
template <class T, class D>
void flip_rows(Context<D>& ctx, View<const T, D> signs, View<T, D> A);
/// A := A diag(signs), signs of length A.cols.
template <class T, class D>
void flip_columns(Context<D>& ctx, View<const T, D> signs, View<T, D> A);

}  // namespace quoin
