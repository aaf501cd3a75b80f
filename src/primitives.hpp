#pragma once

// The contract between algorithms and devices. Each device overloads every function below on its Context; algorithms
// call them unqualified and contain no loop over rows, no pragma and no launch. A primitive acts on a whole tree level or
// a whole matrix, neither allocates nor throws for numerical reasons, and its result does not depend on how many threads
// share the work: blocks and the order of every sum are fixed by its arguments.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "algorithms/span.hpp"
#include "algorithms/tree.hpp"
#include "quoin/qr.hpp"

namespace quoin {

/// Throws Interrupted if the context was asked to stop. Algorithms call it between steps.
void throw_if_stopped(Context<Host>& ctx);

/// A context for work that may run beside what is asked of `ctx` from now on, and behind all before; on the host `ctx` itself.
Context<Host>& work_beside(Context<Host>& ctx);
/// What is asked of `ctx` from now on runs behind all that was asked of `beside`.
void wait_for(Context<Host>& ctx, Context<Host>& beside);

/// A moment of a context's work, for which others can wait later, when more has been asked of that context.
template <class D>
class Mark;

template <>
class Mark<Host> {
public:
    /// All that has been asked of `ctx` so far.
    void set(Context<Host>&) {}
    /// What is asked of `ctx` from now on runs behind it; at once where it was never set.
    void before(Context<Host>&) const {}
};

/// Contexts for what comes from slower memory and for what goes back to it, each in its own order and beside the other and `ctx`;
/// on the host `ctx` itself. `wait_for` orders them.
Context<Host>& moving_in(Context<Host>& ctx);
Context<Host>& moving_out(Context<Host>& ctx);
/// B := A, from any memory of the host, which stays as it is until the work behind is done; of such a context.
template <class T>
void move_in(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T, Host> B);
/// B := A, to any memory of the host, where it is there for what waits for this work once it has been settled; A may be
/// overwritten before.
template <class T>
void move_out(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T> B);
void settle(Context<Host>& ctx);

/// Bytes of the device's memory; none on the host.
struct MemoryInUse {
    double own = 0;         ///< held by this context and those beside it, whatever others on the device hold
    double obtainable = 0;  ///< free, or their own
};
MemoryInUse memory_in_use(Context<Host>& ctx);
/// Workspace of so many bytes at once, with which primitives do that would take more where they may; 0: they may. On the host
/// they always do.
void limit_workspace(Context<Host>& ctx, double bytes);

// ---- Trees: panels A (rows×width) under a PanelTree; V and R overwrite A, T is inner_block × t_cols() ----------------

/// Every domain: leaf 0 = H R (geqrt), then [R; leaf t] = H [R; 0] for t = 1, 2, … (tpqrt).
template <class T>
void factor_leaves(Context<Host>& ctx, const PanelTree& tree, MatrixView<T, Host> A, MatrixView<T, Host> Tf);

/// Every node of one level: [R_head; R_member] = H [R; 0], member by member (tpqrt of triangles); V of the node overwrites
/// the member's triangle.
template <class T>
void factor_nodes(Context<Host>& ctx, const PanelTree& tree, Index level, MatrixView<T, Host> A,
                  MatrixView<T, Host> Tf);

/// `factor_nodes` of all levels, and C := Q_leavesᵀ C meanwhile: neither needs what the other computes.
template <class T>
void factor_nodes_and_apply_leaves(Context<Host>& ctx, const PanelTree& tree, MatrixView<T, Host> A,
                                   MatrixView<T, Host> Tf, MatrixView<T, Host> C);

/// C := op(Q_leaves) C (gemqrt, tpmqrt): the horizontal update. C has the panel's rows.
template <class T>
void apply_leaves(Context<Host>& ctx, const PanelTree& tree, Op op, MatrixView<const T, Host> A,
                  MatrixView<const T, Host> Tf, MatrixView<T, Host> C);

/// C := op(Q_level) C: the tree update, on the top `width` rows of the domains.
template <class T>
void apply_nodes(Context<Host>& ctx, const PanelTree& tree, Index level, Op op, MatrixView<const T, Host> A,
                 MatrixView<const T, Host> Tf, MatrixView<T, Host> C);

/// One level down of Q := Q_tree [I; 0]: every head's upper triangular block E becomes [E; E_member], in place of V.
template <class T>
void form_nodes(Context<Host>& ctx, const PanelTree& tree, Index level, MatrixView<T, Host> A,
                MatrixView<const T, Host> Tf);

/// The last step of it: each domain's rows of the thin Q from its block E, in place of V; and before, C := Q_leaves C, where C
/// has columns.
template <class T>
void form_leaves(Context<Host>& ctx, const PanelTree& tree, MatrixView<T, Host> A, MatrixView<const T, Host> Tf,
                 MatrixView<T, Host> C = {});

/// R of every domain without storing V: `stack` ((domains·width)×width) receives R_0, R_1, … with exact zeros below.
template <class T>
void reduce_leaves(Context<Host>& ctx, const PanelTree& tree, MatrixView<const T, Host> A, MatrixView<T, Host> stack);

// ---- Panels in LAPACK's format: one leaf of any height -----------------------------------------------------------------

/// A (m×n, m >= n) = H R (geqrt with block size n): V below the diagonal, R on and above it, Tf n×n. 3mn² flops.
template <class T>
void factor_panel(Context<Host>& ctx, MatrixView<T, Host> A, MatrixView<T, Host> Tf);

/// C := op(H) C for H from `factor_panel` or `compact_wy` (gemqrt): W = VᵀC, W := op(T) W, C −= V W. 4mnp flops. Where the
/// arithmetic is Corrected, which the host does not have, the columns of C have norms up to 2.
template <class T>
void apply_panel(Context<Host>& ctx, Op op, MatrixView<const T, Host> V, MatrixView<const T, Host> Tf,
                 MatrixView<T, Host> C, Arithmetic arithmetic = Arithmetic::Native);

/// S := V Tᵀ for V and T from `factor_panel`, m×n, zeros above its diagonal. mn² flops.
template <class T>
void form_s(Context<Host>& ctx, MatrixView<const T, Host> V, MatrixView<const T, Host> Tf, MatrixView<T, Host> S);

/// What a step of the recurrence for the full T (algorithms.md, section 5) knows and updates beside the trailing matrix.
template <class T, class D>
struct FullTStep {
    MatrixView<const T, D> S;  ///< V Tᵀ of this panel, m×n, zeros above its diagonal: HᵀC = C − S (VᵀC)
    MatrixView<T, D> S1;       ///< of the panels before it, the same rows: S₁ := HᵀS₁ = S₁ + V T₁₂ᵀ
    MatrixView<T, D> T12;      ///< := −S₁ᵀV T, of the S₁ on entry
};

/// C := HᵀC by S, and S₁ and T₁₂. 4mn(p + p₁) flops for p columns of C and p₁ of S₁.
template <class T>
void apply_and_extend(Context<Host>& ctx, MatrixView<const T, Host> V, MatrixView<const T, Host> Tf,
                      MatrixView<T, Host> C, FullTStep<T, Host> step);

/// One look-ahead step. With H = (V, Tf): C := HᵀC, and the first `next.cols` columns of C below its top V.cols rows are
/// factored into `next`'s Tf as soon as they are updated, while the rest of C is still being updated. Where the step's S
/// has data, as `apply_and_extend`.
template <class T>
void apply_and_factor_next(Context<Host>& ctx, MatrixView<const T, Host> V, MatrixView<const T, Host> Tf,
                           MatrixView<T, Host> C, MatrixView<T, Host> next_Tf, FullTStep<T, Host> step = {});

/// The host's cores, for panels that they factor while the context's device computes.
Context<Host>& host_beside(Context<Host>& ctx);
/// Memory of the host for `bytes`, uninitialised, that the copies below read and write in place: the context's, the same at every
/// call, for one panel on its way.
void* travelling_memory(Context<Host>& ctx, std::size_t bytes);
/// B := A, to such memory, where it is there once `arrive` returns.
template <class T>
void fetch(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T> B);
/// Waits for what was asked of the context so far.
void arrive(Context<Host>& ctx);
/// B := A, from such memory, which must stay as it is until an `arrive` behind it.
template <class T>
void send(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T, Host> B);

/// A := H [I; 0], the panel's own columns of Q, in place of V. 2mn² flops.
template <class T>
void form_panel(Context<Host>& ctx, MatrixView<T, Host> A, MatrixView<const T, Host> Tf);

/// T of given reflectors: T⁻¹ + T⁻ᵀ = VᵀV (Puglisi 1992), column by column as larft; tau n×1. mn² flops.
template <class T>
void compact_wy(Context<Host>& ctx, MatrixView<const T, Host> V, MatrixView<const T, Host> tau, MatrixView<T, Host> Tf);

// ---- Decisions --------------------------------------------------------------------------------------------------------

/// What a chain of Gram steps has come to. Steps write it where they run, a GPU among them, so that a chain is enqueued
/// whole and looked at once: the first demand that is not met closes it, and what would follow does nothing.
struct Verdict {
    enum Reason : int {
        Open,
        Unusable,   ///< a column's square sum is not finite, or within u² of over- or underflow
        Trace,      ///< ‖Q‖_F² is too large
        Departure,  ///< ‖I − QᵀQ‖_F is too large
        Pivot,      ///< one is not positive and finite
        Condition,  ///< κ(R D) is too large
        Growth,     ///< ‖(Q₁ − S)⁻¹‖ is too large
    };
    Reason reason = Open;
    int step = 0;           ///< at which it was closed
    Index column = -1;      ///< of it, where the reason names one
    double departure = -1;  ///< ‖I − G‖_F of the last Gram matrix
    double condition = -1;  ///< κ(R D), where it was asked for

    constexpr bool closed() const { return reason != Open; }
    constexpr void close(int step_, Reason reason_, Index column_) {
        step = step_;
        reason = reason_;
        column = column_;
    }
};
/// A 1×1 view of a verdict in D's memory, which step 0 opens; without data it is always open.
template <class D>
using Gate = MatrixView<Verdict, D>;

/// What the steps so far have decided. Waits for them.
Verdict read_gate(Context<Host>& ctx, Gate<Host> gate);
/// The same in two: the verdict is sent for now, and received without waiting for steps enqueued in between. One at a time;
/// a read of the same gate in between does no harm.
void send_for_gate(Context<Host>& ctx, Gate<Host> gate);
Verdict receive_gate(Context<Host>& ctx, Gate<Host> gate);
/// What they will have decided.
void write_gate(Context<Host>& ctx, Gate<Host> gate, Verdict verdict);

// ---- Tall matrices times small ones: Cholesky QR, and bases held explicitly ------------------------------------------

/// The type in which device D holds sums over the rows of a matrix of T, and the triangles that come of them.
template <class T, class D>
struct SumOf {
    using Type = T;
};
template <class T, class D>
using Sum = typename SumOf<T, D>::Type;

/// How well `solve_and_gram` knows G: |G − XᵀX| <= γ |X|ᵀ|X| entry by entry, γ = longest_sum · u.
struct GramPrecision {
    double u = 0;            ///< unit roundoff of its products and sums
    double longest_sum = 1;  ///< additions in a row
};
template <class T>
GramPrecision gram_precision(Context<Host>& ctx, Index m, Index n);

/// X := A Y₁⁻¹ Y₂⁻¹ … (each n×n upper triangular; none: X = A), row block by row block in cache. `X` may be A, or null
/// data: nothing is stored then. Where G has data, G := XᵀX (upper triangle, zeros below); it is written after the last
/// use of the factors and may be one of them. Where the gate is closed X stays as it is, and G is whatever it is. mn² flops
/// a factor, mn² for G.
template <class T>
void solve_and_gram(Context<Host>& ctx, MatrixView<const T, Host> A, std::span<const MatrixView<const T, Host>> factors,
                    MatrixView<T, Host> X, MatrixView<T, Host> G, Gate<Host> gate = {});

/// C := AᵀB, or C + AᵀB where `accumulate`. 2mnp flops. Where the arithmetic is not Native, which is all that the host and f64
/// have, a device may round entries of A and B to it, relative to the largest of either where its exponents are few: columns of
/// about one norm keep their digits.
template <class T>
void multiply_transposed(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<const T, Host> B,
                         MatrixView<T, Host> C, bool accumulate = false, Arithmetic arithmetic = Arithmetic::Native);

/// C := C − A B. 2mnk flops. The arithmetic as above.
template <class T>
void subtract_product(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<const T, Host> B,
                      MatrixView<T, Host> C, Arithmetic arithmetic = Arithmetic::Native);
/// S := QᵀW and W := W − Q S, as by the two above, at once or for blocks of Q's columns in turn, for columns of norms up to 2 in
/// Q. With `again` W has been projected before: S is small, and its product may be rounded more coarsely where
/// `rounding_suffices`. 4mkp flops.
template <class T>
void project_away(Context<Host>& ctx, MatrixView<const T, Host> Q, MatrixView<T, Host> W, MatrixView<T, Host> S,
                  Arithmetic arithmetic, bool again);

/// Where many W are projected from one Q in FP16 or BF16, a device may keep Q rounded: rows and columns from which on, and the
/// numbers of f32 that take as much memory as k columns of m rows do then. Rows come in runs, padded to 64 each.
inline constexpr Index least_rounded = 256, rounded_rows_of_run = 16384;
constexpr Index rounded_elements(Index m, Index k) {
    return (m + 64 * (m / rounded_rows_of_run + 1)) * ((k + 7) / 8 * 4);
}

/// Of a product Q S with p columns that is taken from columns of norms about 1: operands rounded to f16 leave an error of
/// 2⁻¹¹‖S‖_F, no more than 8u√p for u = 2⁻²⁴, where ‖S‖_F² = `squares` is at most 2⁻²⁰p.
constexpr bool rounding_suffices(double squares, Index p) { return squares <= 0x1p-20 * static_cast<double>(p); }

// ---- Gram-Schmidt, a few columns at a time ----------------------------------------------------------------------------

/// What is left of a column of T after j projections holds nothing but their rounding errors, which act independently (Higham
/// and Mary 2019), where it is at most this times the column's norm: 4u√(j + 1).
template <class T>
double dependence(Index j) {
    return 2.0 * std::numeric_limits<T>::epsilon() * std::sqrt(static_cast<double>(j + 1));
}

/// ±1 by the bits of i and j, mixed as splitmix64 does.
constexpr double random_sign(Index i, Index j) {
    std::uint64_t z = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL +
                      static_cast<std::uint64_t>(j + 1) * 0xd1b54a32d192ed03ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) & 1 ? 1.0 : -1.0;
}

/// A (m×n) = Q R by modified Gram-Schmidt column by column, Q in place of A:
///
///     r_jj = ‖a_j‖,   q_j = a_j / r_jj,   r_jl = q_jᵀa_l,   a_l := a_l − r_jl q_j   for l > j.
///
/// R is (k + n)×n: the last n rows are written, zeros below their diagonal; the k above them hold what was projected from A's
/// columns before, so that the norm of R(:, j) is that of the column which A's column j once was. Where r_jj <=
/// dependence(k + j) ‖R(:, j)‖ column j depends on those before it. With `complete` r_jj = 0 then, and a unit vector of random
/// signs, `random_sign`, takes q_j's place, not orthogonal to anything yet, and on a GPU projected from nothing, r_jl = 0; without,
/// the gate is closed with reason Pivot and column k + j,
/// and A and R are unspecified. 2mn² flops, n + 1 passes over A.
template <class T>
void orthonormalize_columns(Context<Host>& ctx, MatrixView<T, Host> A, MatrixView<T, Host> R, bool complete,
                            Gate<Host> gate);

/// What the projections have left of columns whose coefficients are R ((k + n)×n, k of them above the triangle).
struct Remainders {
    double least = 1;  ///< min_j r_jj / ‖R(:, j)‖, 0 for a column of zeros
    double departure = 0;  ///< Σ_j (1 − (r_jj / ‖R(:, j)‖)²): ‖R D − diag(R D)‖_F², D scaling R's columns to unit norm
    Index zeros = 0;         ///< columns with r_jj = 0
    bool dependent = false;  ///< whether one has r_jj <= dependence(k + j) ‖R(:, j)‖

    /// r_jj, ‖R(:, j)‖ and the tolerance of one column.
    void count(double kept, double whole, double tolerance) {
        const double share = kept == 0 ? 0 : kept / whole;
        least = std::min(least, share);
        departure += 1 - share * share;
        zeros += kept == 0;
        dependent |= kept <= tolerance * whole;
    }
};
/// Waits for them.
template <class T>
Remainders inspect_remainders(Context<Host>& ctx, MatrixView<const T, Host> R);

// ---- Small dense steps, n×n -------------------------------------------------------------------------------------------

/// Between these, squares of T and sums of them keep all their bits.
template <class T>
inline constexpr double smallest_square = std::numeric_limits<T>::min() /
                                          (std::numeric_limits<T>::epsilon() * std::numeric_limits<T>::epsilon() / 4);
template <class T>
inline constexpr double largest_square = std::numeric_limits<T>::max() * (std::numeric_limits<T>::epsilon() / 2);

/// What one step of a chain demands of its Gram matrix G, in this order, after a diagonal of usable squares of T.
struct GramDemands {
    static constexpr double any = std::numeric_limits<double>::infinity();
    int step = 0;      ///< 0 begins a chain: the gate is open, whatever it was
    double shift = 0;  ///< G + shift diag(G) is factored
    double most_trace = any;
    double most_departure = any;  ///< ‖I − G‖_F
    double most_condition = any;  ///< κ(R D), D scaling R's columns to unit norm

    constexpr bool asks_condition() const { return most_condition < any; }
};

/// G (upper triangle) = RᵀR if `demands` are met; the gate is closed where they are not, and R unspecified then, zeros
/// below its diagonal or not, unless κ alone was too large. Does nothing where the gate is closed. R may be G. n³/3 flops,
/// twice that with a condition.
///
/// κ(R D) is κ₁ or an estimate of it from below (Hager 1984, Higham 1988) on the host, and κ_F on a GPU: between κ₂ and
/// nκ₂ all of them.
template <class T>
void factor_gram(Context<Host>& ctx, MatrixView<T, Host> G, GramDemands demands, MatrixView<T, Host> R,
                 Gate<Host> gate);

/// κ₁(R D) of an upper triangular R, where the diagonal D scales its columns to unit norm, or an estimate from below
/// (Hager 1984, Higham 1988); infinity or NaN where R is singular or not finite.
template <class T>
double scaled_condition_estimate(Context<Host>& ctx, MatrixView<const T, Host> R);

/// What the solvers ask of an upper triangular R (n×n) before they divide by it.
struct TriangleInspection {
    Index zero_column = -1;       ///< first column of zeros, or −1
    double condition = 1;         ///< κ₁(R), as `condition_estimate`
    double scaled_condition = 1;  ///< κ₁(R D), as `scaled_condition_estimate`
};
template <class T>
TriangleInspection inspect_triangle(Context<Host>& ctx, MatrixView<const T, Host> R);

/// ‖(LU)⁻¹‖₁, or an estimate from below, L unit lower and U upper triangular in one n×n array; infinity or NaN where U is
/// singular.
template <class T>
double inverse_norm_estimate(Context<Host>& ctx, MatrixView<const T, Host> LU);

/// P := S R for upper triangular S and R, zeros below them; S without data: P := R. P may be R. Nothing where the gate is
/// closed. n³/3 flops.
template <class T>
void multiply_upper(Context<Host>& ctx, MatrixView<const T, Host> S, MatrixView<const T, Host> R, MatrixView<T, Host> P,
                    Gate<Host> gate = {});

/// Q − diag(signs) = L U in place, without pivoting: signs_j = −sgn of the pivot, so that every pivot is at least 1 in
/// magnitude and |L| <= 1 for orthonormal Q (Ballard et al. 2014). Q n×n, signs n×1. 2n³/3 flops.
template <class T>
void signed_lu(Context<Host>& ctx, MatrixView<T, Host> Q, MatrixView<T, Host> signs);

/// Every reflector of V (m×n, below the diagonal of A) with v = e_j exactly, which is I − 2e_je_jᵀ, becomes I: row and column j
/// of Tf := 0, signs_j := −signs_j, and row j of R (n×n) and of A's upper triangle := minus itself. The other reflectors have 0 in
/// row j or act before: Q loses the sign of its column j alone. Nothing where the gate is closed.
template <class T>
void drop_unit_reflectors(Context<Host>& ctx, MatrixView<T, Host> A, MatrixView<T, Host> R, MatrixView<T, Host> Tf,
                          MatrixView<T, Host> signs, Gate<Host> gate);

// Where n <= Tuning<D>::most_top_cols there is also, in one step and behind a gate, without waiting:
//
//     void reconstruct_top(Context<D>& ctx, A, Y, double limit, R, V, Tf, U, signs, Gate<D> gate);
//
// For the top block Q = A Y⁻¹ of orthonormal columns (Y upper triangular, or without data: Q = A): Q − diag(signs) = L U,
// T = −U S L⁻ᵀ, V := L (V may be A), R := S R, written above L as well. All n×n, Y and U in Sum<T, D>, U without zeros below.
// The gate is closed (Growth), and V and R stay as they were, where ‖(Q − S)⁻¹‖_F > limit.

/// The triangle of an n×n array that is meant; the rest of the array is not read.
enum class Triangle { UnitLower, Lower, Upper };
/// X := L⁻ᵀX or U⁻ᵀX and so on: X := op(A)⁻¹ X. n²p flops.
template <class T>
void solve_triangle(Context<Host>& ctx, Triangle triangle, Op op, MatrixView<const T, Host> A, MatrixView<T, Host> X);
/// X := op(A) X, or X := X op(A) (trmm). n²p flops.
template <class T>
void multiply_triangle(Context<Host>& ctx, Side side, Triangle triangle, Op op, MatrixView<const T, Host> A,
                       MatrixView<T, Host> X);

/// A = U diag(s) Vᵀ for an n×n A, which is lost. U and Vt are n×n, or have null data: then only s is computed.
///
/// Divide and conquer (LAPACK's gesdd), or QR iteration (gesvd) where that does not converge; sequential, so that the bits
/// depend on no number of threads. About 22n³ flops with vectors, 8n³/3 without. Throws NumericalBreakdown if QR iteration
/// does not converge either, or A holds NaN or Inf.
template <class T>
void small_svd(Context<Host>& ctx, MatrixView<T, Host> A, std::span<T> s, MatrixView<T, Host> U,
               MatrixView<T, Host> Vt);

// ---- Principal component pursuit: M = L + S, multipliers Y; `observed` 0 where M is unknown, no data: nowhere -----------

struct EntryNorms {
    double squares = 0, sum = 0, largest = 0;  ///< ‖M‖_F², ‖M‖₁ entrywise, max |m_ij|, over the observed entries
};
template <class T>
EntryNorms entry_norms(Context<Host>& ctx, MatrixView<const T, Host> M, MatrixView<const std::uint8_t, Host> observed);

/// B := factor A where observed, 0 elsewhere.
template <class T>
void scaled_copy(Context<Host>& ctx, double factor, MatrixView<const T, Host> A,
                 MatrixView<const std::uint8_t, Host> observed, MatrixView<T, Host> B);

/// What the passes of one iteration find. They write it where they run, so that the host asks once.
struct PursuitSums {
    double sparse = 0;       ///< ‖S‖₁ over the observed entries
    double change = 0;       ///< ‖S − S'‖_F² for S' the S before
    double nonzeros = 0;     ///< of S among them
    double residual = 0;     ///< ‖Z‖_F² over the observed entries
    double multipliers = 0;  ///< ‖Y‖_F²
};
/// A 1×1 view of them in D's memory.
template <class D>
using SumsView = MatrixView<PursuitSums, D>;
PursuitSums read_sums(Context<Host>& ctx, SumsView<Host> sums);

/// S := shrink(M − L + Y/μ, threshold), X := M − S + Y/μ in place of L, in one pass. Where not observed S := 0 and X := L.
/// Sums: sparse, change, nonzeros.
template <class T>
void shrink_sparse(Context<Host>& ctx, MatrixView<const T, Host> M, MatrixView<const T, Host> Y,
                   MatrixView<const std::uint8_t, Host> observed, double mu, double threshold, MatrixView<T, Host> L,
                   MatrixView<T, Host> S, SumsView<Host> sums);

/// Where a device that finds Σ and V by iteration may end; others find all to u.
struct SpectrumNeeds {
    double threshold = 0;  ///< Σ above it and their V; of what is below, only that, and that V is orthogonal
    double tolerance = 0;  ///< of X V (I − threshold Σ⁻¹)₊ Vᵀ entry by entry of V, over ‖X‖; u where that is more
};
/// s and Vᵀ (n×n) of X (m×n) from XᵀX = VΣ²Vᵀ, summed and decomposed in double. Vᵀ is orthogonal on entry: where a device
/// that iterates starts from. mn² flops.
template <class T>
void gram_eigenvectors(Context<Host>& ctx, MatrixView<const T, Host> X, SpectrumNeeds needs, std::span<T> s,
                       MatrixView<T, Host> Vt);
/// s and Vᵀ of an n×n R, which is lost, s to u‖R‖; needs and Vᵀ on entry as above.
template <class T>
void right_singular_vectors(Context<Host>& ctx, MatrixView<T, Host> R, SpectrumNeeds needs, std::span<T> s,
                            MatrixView<T, Host> Vt);

/// P := V diag(weights) Vᵀ for Vᵀ r×n. 2rn² flops.
template <class T>
void weighted_projector(Context<Host>& ctx, MatrixView<const T, Host> Vt, std::span<const T> weights,
                        MatrixView<T, Host> P);

/// L := X P in place of X, Z = M − L − S, Y += μ Z where observed. P is symmetric. 2mn² flops, one pass.
/// Sums: residual, multipliers.
template <class T>
void multiply_and_correct(Context<Host>& ctx, MatrixView<const T, Host> P, MatrixView<const T, Host> M,
                          MatrixView<const T, Host> S, MatrixView<const std::uint8_t, Host> observed, double mu,
                          MatrixView<T, Host> X, MatrixView<T, Host> Y, SumsView<Host> sums);

// ---- Elements ---------------------------------------------------------------------------------------------------------

/// ‖a_j‖₂ of every column of A, without overflow or underflow on the way.
template <class T>
void column_norms(Context<Host>& ctx, MatrixView<const T, Host> A, std::span<T> norms);
/// Whether all entries of A and B, of one shape, are equal.
template <class T>
bool equal(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<const T, Host> B);

/// What one pass over a matrix says of its entries.
struct Scan {
    Index bad_row = -1, bad_col = -1;  ///< first NaN or Inf in column-major order, or −1
    bool scaled = false;               ///< whether some exponent is not 0
};
/// Reads A once. `exponents` (n×1) receives ilogb of each column's largest entry (0 for a zero column) where one of them
/// is beyond ±safe, and zeros otherwise or where an entry is not finite; `found` is 1×1.
template <class T>
void scan(Context<Host>& ctx, MatrixView<const T, Host> A, int safe, MatrixView<int, Host> exponents,
          MatrixView<Scan, Host> found);
Scan read_scan(Context<Host>& ctx, MatrixView<const Scan, Host> found);

// Where Tuning<D>::corrected_products there is also, after `scan`:
//
//     void norm_exponents(Context<D>& ctx, A, exponents);
//
// e_j := the exponent of ‖a_j‖₂, 0 where that is 0 or not finite.

/// Column j of A (of its upper triangle or trapezoid alone, if asked) := 2^(sign·e_j) times itself: exact unless it
/// under- or overflows.
enum class Part { All, Upper };
template <class T>
void scale_columns(Context<Host>& ctx, MatrixView<const int, Host> exponents, int sign, Part part,
                   MatrixView<T, Host> A);

/// B := A.
template <class T>
void copy(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T, Host> B);
/// B := Aᵀ.
template <class T>
void transpose(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T, Host> B);
/// R := the upper triangle or trapezoid of A, exact zeros below it. R may be A.
template <class T>
void copy_triangle(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T, Host> R);
/// A := [I; 0], with ones on the diagonal that starts at (0, first_col); first_col may be negative.
template <class T>
void set_identity(Context<Host>& ctx, Index first_col, MatrixView<T, Host> A);
/// The upper triangle of A := I, what lies below it stays: the root of a tree before `form_nodes`.
template <class T>
void set_root(Context<Host>& ctx, MatrixView<T, Host> A);
/// The upper triangle of A := that of R, what lies below it stays.
template <class T>
void store_triangle(Context<Host>& ctx, MatrixView<const T, Host> R, MatrixView<T, Host> A);
/// d (n×1) := the diagonal of A.
template <class T>
void copy_diagonal(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T, Host> d);
/// s (n×1) := the signs of the diagonal of A, 1 for zeros.
template <class T>
void diagonal_signs(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T, Host> s);
/// A := A + I.
template <class T>
void add_identity(Context<Host>& ctx, MatrixView<T, Host> A);
/// A := −A.
template <class T>
void negate(Context<Host>& ctx, MatrixView<T, Host> A);
/// B := B − A.
template <class T>
void subtract(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<T, Host> B);
/// A := diag(signs) A, signs of length A.rows.
template <class T>
void flip_rows(Context<Host>& ctx, MatrixView<const T, Host> signs, MatrixView<T, Host> A);

}  // namespace quoin
