#pragma once

// The contract of src/primitives.hpp on a GPU: every function enqueues its work on the context's stream, and waits only
// where it returns a number to the host, which its line here then says.

#include <memory>
#include <span>

#include "../algorithms/span.hpp"
#include "../algorithms/work_timer.hpp"
#include "../primitives.hpp"
#include "quoin/cuda.hpp"

struct CUevent_st;

namespace quoin {

/// Between two events on the context's stream.
template <>
class WorkTimer<Cuda> {
public:
    explicit WorkTimer(Context<Cuda>& ctx);
    WorkTimer(const WorkTimer&) = delete;
    ~WorkTimer();
    void stop();
    double seconds() const;

private:
    CudaStream stream_;
    CUevent_st *start_ = nullptr, *stop_ = nullptr;
};

template <>
class Span<Cuda> {
public:
    explicit Span(Context<Cuda>& ctx, const char* name, Index step = -1);
    Span(Context<Cuda>& ctx, const char* name, Index step, Trace::Row row);
    Span(const Span&) = delete;
    ~Span();

private:
    struct Recording;
    std::shared_ptr<Recording> recording_;  // none without a trace
};

/// As on the host; it looks at the flag and not at the device.
void throw_if_stopped(Context<Cuda>& ctx);
/// The context's side stream, ahead of it on the device.
Context<Cuda>& work_beside(Context<Cuda>& ctx);
void wait_for(Context<Cuda>& ctx, Context<Cuda>& beside);

template <>
class Mark<Cuda> {
public:
    Mark() = default;
    Mark(const Mark&) = delete;
    ~Mark();
    void set(Context<Cuda>& ctx);
    void before(Context<Cuda>& ctx) const;

private:
    CUevent_st* event_ = nullptr;
};

/// Streams of their own, of which each can use one of the device's copy engines.
Context<Cuda>& moving_in(Context<Cuda>& ctx);
Context<Cuda>& moving_out(Context<Cuda>& ctx);
/// Pinned memory is read in place; other goes through eight buffers of 32 MiB.
template <class T>
void move_in(Context<Cuda>& ctx, MatrixView<const T> A, MatrixView<T, Cuda> B);
/// The other way.
template <class T>
void move_out(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T> B);
/// The stream behind what the host's cores still copy.
void settle(Context<Cuda>& ctx);
/// Of the context's device; its pools keep what they once held. CUDA's own context and the loaded kernels are not counted.
MemoryInUse memory_in_use(Context<Cuda>& ctx);
/// The arena's. Waits, and gives back what the pool keeps.
void limit_workspace(Context<Cuda>& ctx, double bytes);

// ---- Trees: panels of at most 256 columns, leaves of at most 256 rows ------------------------------------------------
// Where the host's nodes absorb their members one after the other, with a T each, a GPU's absorb up to 15 at once,
// [R_head; R_1; R_2; …] = H [R; 0], with one T in the place of the first one's. Panels of more than 32 columns go by
// sub-panels of 32 (kernels/geometry.cuh), each with its T, so that inner_block is min(width, 32) at least, and a leaf may
// have fewer rows than the panel columns.

/// geqrt of every leaf.
template <class T>
void factor_leaves(Context<Cuda>& ctx, const PanelTree& tree, MatrixView<T, Cuda> A, MatrixView<T, Cuda> Tf);
/// tpqrt of every node of one level.
template <class T>
void factor_nodes(Context<Cuda>& ctx, const PanelTree& tree, Index level, MatrixView<T, Cuda> A,
                  MatrixView<T, Cuda> Tf);
/// `factor_nodes` of all levels on the context's side stream, and C := Q_leavesᵀ C.
template <class T>
void factor_nodes_and_apply_leaves(Context<Cuda>& ctx, const PanelTree& tree, MatrixView<T, Cuda> A,
                                   MatrixView<T, Cuda> Tf, MatrixView<T, Cuda> C);
/// C := op(Q_leaves) C.
template <class T>
void apply_leaves(Context<Cuda>& ctx, const PanelTree& tree, Op op, MatrixView<const T, Cuda> A,
                  MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C);
/// C := op(Q_level) C.
template <class T>
void apply_nodes(Context<Cuda>& ctx, const PanelTree& tree, Index level, Op op, MatrixView<const T, Cuda> A,
                 MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C);
/// One level down of Q := Q_tree [I; 0].
template <class T>
void form_nodes(Context<Cuda>& ctx, const PanelTree& tree, Index level, MatrixView<T, Cuda> A,
                MatrixView<const T, Cuda> Tf);
/// Each domain's rows of the thin Q.
template <class T>
void form_leaves(Context<Cuda>& ctx, const PanelTree& tree, MatrixView<T, Cuda> A, MatrixView<const T, Cuda> Tf,
                 MatrixView<T, Cuda> C = {});
/// R of every domain without storing V.
template <class T>
void reduce_leaves(Context<Cuda>& ctx, const PanelTree& tree, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> stack);
/// The upper triangle of A := I.
template <class T>
void set_root(Context<Cuda>& ctx, MatrixView<T, Cuda> A);

// ---- Panels in LAPACK's format -----------------------------------------------------------------------------------------

/// A = H R (geqrt with block size n).
template <class T>
void factor_panel(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<T, Cuda> Tf);
/// C := op(H) C (gemqrt).
template <class T>
void apply_panel(Context<Cuda>& ctx, Op op, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf,
                 MatrixView<T, Cuda> C, Arithmetic arithmetic = Arithmetic::Native);
/// C := HᵀC by S, and S₁ and T₁₂.
template <class T>
void form_s(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> S);
template <class T>
void apply_and_extend(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf,
                      MatrixView<T, Cuda> C, FullTStep<T, Cuda> step);
/// One look-ahead step: the next panel is factored on the context's side stream.
template <class T>
void apply_and_factor_next(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf,
                           MatrixView<T, Cuda> C, MatrixView<T, Cuda> next_Tf, FullTStep<T, Cuda> step = {});
Context<Host>& host_beside(Context<Cuda>& ctx);
/// Pinned. Waits for the context where it has to grow.
void* travelling_memory(Context<Cuda>& ctx, std::size_t bytes);
/// B := A.
template <class T>
void fetch(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T> B);
/// Waits.
void arrive(Context<Cuda>& ctx);
/// B := A.
template <class T>
void send(Context<Cuda>& ctx, MatrixView<const T> A, MatrixView<T, Cuda> B);
/// A := H [I; 0].
template <class T>
void form_panel(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<const T, Cuda> Tf);
/// T of given reflectors.
template <class T>
void compact_wy(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> tau, MatrixView<T, Cuda> Tf);

// ---- Tall matrices times small ones ------------------------------------------------------------------------------------

/// Products of f32 are exact in f64, and the tensor cores add there as fast as elsewhere in f32.
template <class T>
struct SumOf<T, Cuda> {
    using Type = double;
};
/// What the steps so far have decided. Waits.
Verdict read_gate(Context<Cuda>& ctx, Gate<Cuda> gate);
/// What the steps before this call have decided is on its way to the host.
void send_for_gate(Context<Cuda>& ctx, Gate<Cuda> gate);
/// Waits for that copy alone.
Verdict receive_gate(Context<Cuda>& ctx, Gate<Cuda> gate);
/// What they will have decided.
void write_gate(Context<Cuda>& ctx, Gate<Cuda> gate, Verdict verdict);

/// Of `solve_and_gram` below.
template <class T>
GramPrecision gram_precision(Context<Cuda>& ctx, Index m, Index n);
/// X := A Y₁⁻¹ Y₂⁻¹ …, G := XᵀX. Waits where there is a gate and A has more than 192 columns.
template <class T>
void solve_and_gram(Context<Cuda>& ctx, MatrixView<const T, Cuda> A,
                    std::span<const MatrixView<const double, Cuda>> factors, MatrixView<T, Cuda> X,
                    MatrixView<double, Cuda> G, Gate<Cuda> gate = {});
/// C := AᵀB, or C + AᵀB. Of what each arithmetic knows: split_products.hpp, and 2⁻¹⁰ |x| of an entry in TF32.
template <class T>
void multiply_transposed(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B,
                         MatrixView<T, Cuda> C, bool accumulate = false, Arithmetic arithmetic = Arithmetic::Native);
/// C := C − A B.
template <class T>
void subtract_product(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B,
                      MatrixView<T, Cuda> C, Arithmetic arithmetic = Arithmetic::Native);
/// S := QᵀW, W := W − Q S, for one block of Q's columns after the other where the halves of all do not fit. Waits where it is
/// `again`, the arithmetic Corrected, and W has 1024 columns.
template <class T>
void project_away(Context<Cuda>& ctx, MatrixView<const T, Cuda> Q, MatrixView<T, Cuda> W, MatrixView<T, Cuda> S,
                  Arithmetic arithmetic, bool again);
/// Columns of norms up to 2 rounded to the 16 bits of FP16 or BF16, in `place` of `rounded_elements` numbers: those of A from the
/// `first` one on, a multiple of 8, in order.
void round_columns(Context<Cuda>& ctx, Arithmetic arithmetic, MatrixView<const float, Cuda> A, Index first,
                   float* place);
/// `project_away` from the k columns in such a place; W has at least `least_rounded` rows, as k is.
void project_away_rounded(Context<Cuda>& ctx, const float* place, Index k, MatrixView<float, Cuda> W,
                          MatrixView<float, Cuda> S, Arithmetic arithmetic);

// ---- Gram-Schmidt, a few columns at a time -----------------------------------------------------------------------------

/// A = Q R by modified Gram-Schmidt, at most Tuning<Cuda>::gram_schmidt_base columns.
template <class T>
void orthonormalize_columns(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<T, Cuda> R, bool complete,
                            Gate<Cuda> gate);
/// Waits.
template <class T>
Remainders inspect_remainders(Context<Cuda>& ctx, MatrixView<const T, Cuda> R);

// ---- Small dense steps, n×n --------------------------------------------------------------------------------------------

/// G = RᵀR, if `demands` are met; κ(R D) is κ_F, from (R D)⁻¹ itself.
template <class T>
void factor_gram(Context<Cuda>& ctx, MatrixView<double, Cuda> G, GramDemands demands, MatrixView<double, Cuda> R,
                 Gate<Cuda> gate);
/// ‖(LU)⁻¹‖₁ from the inverse itself. Waits.
template <class T>
double inverse_norm_estimate(Context<Cuda>& ctx, MatrixView<const T, Cuda> LU);
/// P := S R, summed in double and rounded once to P's type; T and P are one type, or one of them is double. Waits where
/// there is a gate and more than 192 columns.
template <class T, class P>
void multiply_upper(Context<Cuda>& ctx, MatrixView<const T, Cuda> S, MatrixView<const T, Cuda> R,
                    MatrixView<P, Cuda> to, Gate<Cuda> gate = {});
/// Q − diag(signs) = L U in place.
template <class T>
void signed_lu(Context<Cuda>& ctx, MatrixView<T, Cuda> Q, MatrixView<T, Cuda> signs);
/// Reflectors with v = e_j become I: one block a column, which reads it where tau is above 3/2 only.
template <class T>
void drop_unit_reflectors(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<T, Cuda> R, MatrixView<T, Cuda> Tf,
                          MatrixView<T, Cuda> signs, Gate<Cuda> gate);
/// A Y⁻¹ − S = L U, T = −U S L⁻ᵀ, V := L below S R, for n <= 128.
template <class T>
void reconstruct_top(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const double, Cuda> Y, double limit,
                     MatrixView<T, Cuda> R, MatrixView<T, Cuda> V, MatrixView<T, Cuda> Tf, MatrixView<double, Cuda> U,
                     MatrixView<T, Cuda> signs, Gate<Cuda> gate);
/// X := op(A)⁻¹ X for a triangle A.
template <class T>
void solve_triangle(Context<Cuda>& ctx, Triangle triangle, Op op, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> X);
/// X := op(A) X, or X op(A), for a triangle A.
template <class T>
void multiply_triangle(Context<Cuda>& ctx, Side side, Triangle triangle, Op op, MatrixView<const T, Cuda> A,
                       MatrixView<T, Cuda> X);

/// Both condition numbers from R⁻¹ itself, in double: n³/3 flops. Waits.
template <class T>
TriangleInspection inspect_triangle(Context<Cuda>& ctx, MatrixView<const T, Cuda> R);
/// On the host up to Tuning<Cuda>::host_svd_cols columns; beyond, in double on the device, by cuSOLVER's polar
/// decomposition (gesvdp), certified by its residual. Where that fails, as it does for an f64 A of κ > 1e9, on the host
/// after all, or by QR iteration (gesvd). Waits.
template <class T>
void small_svd(Context<Cuda>& ctx, MatrixView<T, Cuda> A, std::span<T> s, MatrixView<T, Cuda> U,
               MatrixView<T, Cuda> Vt);

// ---- Principal component pursuit ---------------------------------------------------------------------------------------

/// ‖M‖_F², ‖M‖₁ and max |m_ij|. Waits.
template <class T>
EntryNorms entry_norms(Context<Cuda>& ctx, MatrixView<const T, Cuda> M, MatrixView<const std::uint8_t, Cuda> observed);
/// B := factor A where observed, 0 elsewhere.
template <class T>
void scaled_copy(Context<Cuda>& ctx, double factor, MatrixView<const T, Cuda> A,
                 MatrixView<const std::uint8_t, Cuda> observed, MatrixView<T, Cuda> B);
/// What the passes have found. Waits.
PursuitSums read_sums(Context<Cuda>& ctx, SumsView<Cuda> sums);
/// S := shrink(M − L + Y/μ, threshold), X := M − S + Y/μ in place of L. Sums in double.
template <class T>
void shrink_sparse(Context<Cuda>& ctx, MatrixView<const T, Cuda> M, MatrixView<const T, Cuda> Y,
                   MatrixView<const std::uint8_t, Cuda> observed, double mu, double threshold, MatrixView<T, Cuda> L,
                   MatrixView<T, Cuda> S, SumsView<Cuda> sums);
/// By Jacobi rotations from Vᵀ on entry up to 128 columns (kernels/jacobi.cuh), so that σ and X V f(Σ) Vᵀ are right to
/// u‖X‖ of T or √u‖X‖ of double, whichever is more, or to what is needed; beyond, or where they do not converge, by
/// `small_svd` of XᵀX. Waits.
template <class T>
void gram_eigenvectors(Context<Cuda>& ctx, MatrixView<const T, Cuda> X, SpectrumNeeds needs, std::span<T> s,
                       MatrixView<T, Cuda> Vt);
/// In f32 as `gram_eigenvectors` of R, whose products are exact in double: √u of double is below u of f32. In f64 by
/// `small_svd`. Waits.
template <class T>
void right_singular_vectors(Context<Cuda>& ctx, MatrixView<T, Cuda> R, SpectrumNeeds needs, std::span<T> s,
                            MatrixView<T, Cuda> Vt);
/// P := V diag(weights) Vᵀ, summed in double up to 6144 rows of Vᵀ.
template <class T>
void weighted_projector(Context<Cuda>& ctx, MatrixView<const T, Cuda> Vt, std::span<const T> weights,
                        MatrixView<T, Cuda> P);
/// multiply_and_correct and the next iteration's shrink_sparse in one pass that leaves X and S as they are: L = X P,
/// Z = M − L − S, Y += μ Z, S' := shrink(M − L + Y/μ', t'), X' := M − S' + Y/μ', primes being `next`. P is symmetric.
/// Products in double up to 160 columns, sums in double: residual and multipliers in `sums`, the others in `next_sums`.
template <class T>
void correct_and_shrink(Context<Cuda>& ctx, MatrixView<const T, Cuda> X, MatrixView<const T, Cuda> P,
                        MatrixView<const T, Cuda> M, MatrixView<const T, Cuda> S,
                        MatrixView<const std::uint8_t, Cuda> observed, double mu, double next_mu, double next_threshold,
                        MatrixView<T, Cuda> Y, MatrixView<T, Cuda> next_X, MatrixView<T, Cuda> next_S,
                        SumsView<Cuda> sums, SumsView<Cuda> next_sums);
/// L := X P.
template <class T>
void project(Context<Cuda>& ctx, MatrixView<const T, Cuda> X, MatrixView<const T, Cuda> P, MatrixView<T, Cuda> L);

// ---- Elements ----------------------------------------------------------------------------------------------------------

/// ‖a_j‖₂ of every column. Waits.
template <class T>
void column_norms(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, std::span<T> norms);
/// Whether all entries are equal. Waits.
template <class T>
bool equal(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B);
/// One pass over A.
template <class T>
void scan(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, int safe, MatrixView<int, Cuda> exponents,
          MatrixView<Scan, Cuda> found);
/// e_j := the exponent of ‖a_j‖₂, summed in double.
void norm_exponents(Context<Cuda>& ctx, MatrixView<const float, Cuda> A, MatrixView<int, Cuda> exponents);
/// What it found. Waits.
Scan read_scan(Context<Cuda>& ctx, MatrixView<const Scan, Cuda> found);
/// Column j := 2^(sign·e_j) times itself; columns with e_j = 0 are not touched.
template <class T>
void scale_columns(Context<Cuda>& ctx, MatrixView<const int, Cuda> exponents, int sign, Part part,
                   MatrixView<T, Cuda> A);
// copy and transpose: quoin/cuda.hpp
/// R := the upper triangle of A, exact zeros below.
template <class T>
void copy_triangle(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> R);
/// A := ones on the diagonal from (0, first_col).
template <class T>
void set_identity(Context<Cuda>& ctx, Index first_col, MatrixView<T, Cuda> A);
/// The upper triangle of A := that of R.
template <class T>
void store_triangle(Context<Cuda>& ctx, MatrixView<const T, Cuda> R, MatrixView<T, Cuda> A);
/// d := the diagonal of A.
template <class T>
void copy_diagonal(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> d);
/// s := the signs of the diagonal of A.
template <class T>
void diagonal_signs(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> s);
/// A := A + I.
template <class T>
void add_identity(Context<Cuda>& ctx, MatrixView<T, Cuda> A);
/// A := −A.
template <class T>
void negate(Context<Cuda>& ctx, MatrixView<T, Cuda> A);
/// B := B − A.
template <class T>
void subtract(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> B);
/// A := diag(signs) A.
template <class T>
void flip_rows(Context<Cuda>& ctx, MatrixView<const T, Cuda> signs, MatrixView<T, Cuda> A);

}  // namespace quoin
