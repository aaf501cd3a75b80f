#pragma once

// Steps that only online robust PCA has (quoin/apps/online_robust_pca.hpp). U is a basis of r columns; m, l, s and e
// are columns. The numbers that the steps compute for a column stay in D's memory, so that the host reads them once.

#include <span>
#include <vector>

#include "primitives/context.hpp"
#include "primitives/elements.hpp"
#include "robust_pca/online_entries.hpp"

namespace quoin {

/// RowRecord of every row, each m×1.
template <class T, class D>
struct RowRecords {
    MatrixView<T, D> last;
    MatrixView<float, D> size, change, noise;
    MatrixView<std::int32_t, D> age, votes;

    constexpr RowRecord<T> get(Index i) const {
        return {last.data[i], size.data[i], change.data[i], noise.data[i], age.data[i], votes.data[i]};
    }
    constexpr void set(Index i, const RowRecord<T>& row) const {
        last.data[i] = row.last;
        size.data[i] = row.size;
        change.data[i] = row.change;
        noise.data[i] = row.noise;
        age.data[i] = row.age;
        votes.data[i] = row.votes;
    }
};

/// The numbers of a column: the first row that is not finite, or −1; entries of s; Σ noise²; rows of U that were
/// replaced; ‖e‖² less its projection; c.
enum ColumnNumber : Index { BadRow, SparseCount, NoiseSquares, ReplacedCount, LeftSquares, FirstOfC };
/// Copies the numbers to the host. Waits.
template <class D>
std::vector<double> read_numbers(Context<D>& ctx, View<const double, D> numbers);
template <>
std::vector<double> read_numbers(Context<Host>& ctx, View<const double, Host> numbers);

// ---- The first columns: these wait ----------------------------------------------------------------------------------

/// u := m/‖m‖ if ‖m‖ is not 0. Starts the records of rows whose noise is not known, with quantiles of `guess`. Returns
/// ‖m‖.
template <class T, class D>
double start_from_column(Context<D>& ctx, View<const T, D> m, float guess, View<T, D> u, RowRecords<T, D> rows);
/// Writes the median of each row of M to `median`, and the records by r = M − median except `age`. Writes every
/// `step`-th row of r to R, in units of the larger of its noise and the rules' least noise, clipped to ±3. Returns
/// ‖median‖².
template <class T, class D>
double start_from_median(Context<D>& ctx, View<const T, D> M, EntryRules rules, Index step, View<T, D> median,
                         RowRecords<T, D> rows, View<T, D> R);
/// Writes the records by r = M − A Vᵀ, except `age`.
template <class T, class D>
void start_from_factors(Context<D>& ctx, View<const T, D> M, View<const T, D> A, View<const T, D> Vt, EntryRules rules,
                        RowRecords<T, D> rows);
/// Returns Σ u⁴ of every column.
template <class T, class D>
std::vector<double> fourth_powers(Context<D>& ctx, View<const T, D> U);

// ---- Every column ---------------------------------------------------------------------------------------------------

/// c := Uᵀm.
template <class T, class D>
void project_column(Context<D>& ctx, View<const T, D> U, View<const T, D> m, View<double, D> c);
/// c += Uᵀ clip(m − U c, ±τ). With `leaves_out`, entries beyond ±τ count as 0 instead. `work` is a column.
template <class T, class D>
void refine_projection(Context<D>& ctx, View<const T, D> U, View<const T, D> m, View<const float, D> noise,
                       EntryRules rules, bool leaves_out, View<T, D> work, View<double, D> c);
/// l := U c; s, e and the records by r = m − l (EntryRules). If the rules replace an entry of the background, its row
/// of U changes by the least such that l = m there. Numbers: BadRow, SparseCount, NoiseSquares, ReplacedCount. If
/// `found` has a bad row, only the numbers are written.
template <class T, class D>
void separate_column(Context<D>& ctx, View<T, D> U, View<const double, D> c, View<const T, D> m, EntryRules rules,
                     View<const Scan, D> found, RowRecords<T, D> rows, View<T, D> l, View<T, D> s, View<T, D> e,
                     View<double, D> numbers);
/// e := r if s has more than `most` entries.
template <class T, class D>
void take_whole_difference(Context<D>& ctx, double most, View<const T, D> r, View<const double, D> numbers,
                           View<T, D> e);
/// Twice: h = Uᵀe, e −= U h, c += h. Numbers: LeftSquares, ‖e‖².
template <class T, class D>
void remove_projection(Context<D>& ctx, View<const T, D> U, View<T, D> e, View<double, D> c, View<double, D> numbers);
/// The first columns of U (m×(r + 1)) := U W. The caller may free W when it returns.
template <class T, class D>
void rotate_basis(Context<D>& ctx, View<const T, Host> W, View<T, D> U);

// ---- Frames ---------------------------------------------------------------------------------------------------------

/// m := bytes/255. The caller may free the bytes when it returns.
template <class T, class D>
void column_of_bytes(Context<D>& ctx, std::span<const std::uint8_t> bytes, View<T, D> m);
/// bytes := 255|x|, rounded, at most 255. Waits.
template <class T, class D>
void bytes_of_column(Context<D>& ctx, View<const T, D> x, std::span<std::uint8_t> bytes);

}  // namespace quoin
