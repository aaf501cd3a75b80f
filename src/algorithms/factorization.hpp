#pragma once

#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "primitives.hpp"
#include "primitives/small_batch.hpp"
#include "primitives/tuning.hpp"

namespace quoin {

/// One panel of a ReflectorForest: columns [first, first + tree.width), rows [first, m).
struct Panel {
    Index first = 0;
    PanelTree tree;
    Index t_col = 0;  ///< column at which its T factors begin
};

/// Q as a list of panels, each a reduction tree. A has V, and R above it; Tf has T in inner blocks of equal height. One
/// leaf a panel is LAPACK's format; one panel is TSQR; several of both is CAQR. Somebody else owns the memory.
template <class T, class D>
struct ForestView {
    std::span<const Panel> panels;
    MatrixView<T, D> A;
    MatrixView<T, D> Tf;

    MatrixView<T, D> panel_a(const Panel& p) const {
        return A.block({p.first, A.rows}, {p.first, p.first + p.tree.width});
    }
    MatrixView<T, D> panel_t(const Panel& p) const {
        return Tf.block({0, std::min(p.tree.inner_block, p.tree.width)}, {p.t_col, p.t_col + p.tree.t_cols()});
    }
    bool lapack_format() const {
        for (const Panel& p : panels) {
            if (!p.tree.lapack_panel()) return false;
        }
        return true;
    }
    /// Returns the panels' factors. Only for LAPACK's format.
    std::vector<PanelFactors<std::remove_const_t<T>, D>> factors() const {
        std::vector<PanelFactors<std::remove_const_t<T>, D>> all;
        all.reserve(panels.size());
        for (const Panel& p : panels) all.push_back({panel_a(p), panel_t(p), p.first});
        return all;
    }
};

/// A ForestView with its memory.
template <class T, class D>
struct ReflectorForest {
    std::vector<Panel> panels;
    Matrix<T, D> A;
    Matrix<T, D> Tf;

    ForestView<T, D> view() { return {panels, A.view(), Tf.view()}; }
    ForestView<const T, D> view() const { return {panels, A.view(), Tf.view()}; }
    MatrixView<T, D> panel_a(const Panel& p) { return view().panel_a(p); }
    MatrixView<const T, D> panel_a(const Panel& p) const { return view().panel_a(p); }
    MatrixView<T, D> panel_t(const Panel& p) { return view().panel_t(p); }
    MatrixView<const T, D> panel_t(const Panel& p) const { return view().panel_t(p); }
    bool lapack_format() const { return view().lapack_format(); }
};

/// The m×m Q around an explicit thin Q, m×n, m >= n: (I − Y (I + R_q)⁻ᵀ Yᵀ) diag(W, I), with Q₁ = −W R_q the QR
/// factorization of Q's top block (W n×n orthogonal, diag(R_q) >= 0) and Y = Q − [W; 0] (a basis-kernel form: Sun and
/// Bischof 1995, Yamamoto 2012). ‖(I + R_q)⁻¹‖ is O(n) for every orthonormal Q.
template <class T, class D>
struct BasisKernel {
    ReflectorForest<T, D> W;  // W = (I − V T Vᵀ …) diag(signs)
    Matrix<T, D> signs;
    Matrix<T, D> K;  // I + R_q
};

/// Q = I − V T Vᵀ = I − V Sᵀ as a whole. V has R above its diagonal. S has T above its diagonal. T has S's strictly
/// lower triangle below its diagonal; without S, which then has no data, T has zeros there.
template <class T, class D>
struct FullWY {
    MatrixView<const T, D> V;   // m×k
    MatrixView<const T, D> Tf;  // k×k
    MatrixView<const T, D> S;   // m×k
};

/// R above V in the forest's A.
template <class T, class D>
struct ReflectorQ {
    ReflectorForest<T, D> forest;
    Matrix<T, D> full_t;  ///< T k×k, or with S m×k; empty if the only panel's T is all of it, or if not requested
};

/// A form of Q that a const factorization makes at its first use, once for all threads. Other contexts wait until it is
/// complete.
template <class Form, class D>
class LazyForm {
public:
    template <class Make>
    const Form& get(Context<D>& ctx, Make make) const {
        std::call_once(made_, [&] {
            form_ = make();
            ready_.record(ctx);
        });
        ready_.precede(ctx);
        return form_;
    }

private:
    mutable std::once_flag made_;
    mutable Form form_;
    mutable Event<D> ready_;
};

template <class T, class D>
struct ExplicitQ {
    ExplicitQ(Matrix<T, D>&& Q_, Matrix<T, D>&& R_) : Q(std::move(Q_)), R(std::move(R_)) {}
    /// Returns the kernel that the thin Q needs to act as the m×m Q. Made at the first call.
    const BasisKernel<T, D>& kernel(Context<D>& ctx) const;

    Matrix<T, D> Q, R;  ///< m×k and k×n

private:
    LazyForm<BasisKernel<T, D>, D> kernel_;
};

/// Reflectors in a format of the device's own, which factored the whole matrix in one launch.
template <class T, class D>
struct SmallQ {
    SmallQ(std::unique_ptr<SmallBatch<T, D>> one, Matrix<T, D>&& memory_)
        : batch(std::move(one)), memory(std::move(memory_)) {}
    /// Returns the reflectors by panels in LAPACK's format. Made at the first call.
    const ReflectorQ<T, D>& reflectors(Context<D>& ctx, const Plan& plan) const;

    std::unique_ptr<SmallBatch<T, D>> batch;  ///< of one matrix
    Matrix<T, D> memory;  ///< A's memory (m×n) if A was moved in, for results that are taken; else empty

private:
    LazyForm<ReflectorQ<T, D>, D> reflectors_;
};

/// Returns the seconds since `start`, or −1 on devices whose work may still be on its way when the call returns.
template <class D>
double wall_seconds(std::chrono::steady_clock::time_point start) {
    if (Tuning<D>::asynchronous) return -1;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// R without Q, for QForm::None.
template <class T, class D>
struct RAlone {
    Matrix<T, D> R;
};

/// The data of a QR.
template <class T, class D>
struct Factorization {
    Plan plan;
    Report report;
    /// The holder of Q. std::monostate: not yet computed, or Q was taken.
    std::variant<std::monostate, ReflectorQ<T, D>, ExplicitQ<T, D>, SmallQ<T, D>, RAlone<T, D>> holder;

    ReflectorQ<T, D>* reflectors() { return std::get_if<ReflectorQ<T, D>>(&holder); }
    const ReflectorQ<T, D>* reflectors() const { return std::get_if<ReflectorQ<T, D>>(&holder); }
    /// Returns the reflectors, by panels for a small Q too.
    const ReflectorQ<T, D>* reflectors(Context<D>& ctx) const {
        const SmallQ<T, D>* small = small_q();
        return small ? &small->reflectors(ctx, plan) : reflectors();
    }
    SmallQ<T, D>* small_q() { return std::get_if<SmallQ<T, D>>(&holder); }
    const SmallQ<T, D>* small_q() const { return std::get_if<SmallQ<T, D>>(&holder); }
    ExplicitQ<T, D>* explicit_q() { return std::get_if<ExplicitQ<T, D>>(&holder); }
    const ExplicitQ<T, D>* explicit_q() const { return std::get_if<ExplicitQ<T, D>>(&holder); }
    /// Returns the k rows that hold R, with V below its diagonal if there are reflectors. Without data once Q was
    /// taken, and for a small Q.
    MatrixView<T, D> r();
    /// Returns V, T and S if there is a full T; else V has no data.
    FullWY<T, D> full_wy() const;
    /// Throws InvalidArgument for `operation` if there is no Q.
    void require_q(const char* operation) const;
    /// Throws InvalidArgument for `operation` if the factorization holds nothing.
    void require_held(const char* operation) const;
};

/// Access of Quoin's own sources to the data of a QR.
struct Inside {
    template <class T, class D>
    static Factorization<T, D>& of(QR<T, D>& f) {
        return *f.inside_;
    }
    template <class T, class D>
    static const Factorization<T, D>& of(const QR<T, D>& f) {
        return *f.inside_;
    }
    template <class T, class D>
    static QR<T, D> planned(const Plan& plan) {
        QR<T, D> f(detail::own<Factorization<T, D>>());
        of(f).plan = plan;
        return f;
    }
};

/// Whether three products of f16 replace one of T on this device.
template <class T, class D>
inline constexpr bool corrected_products = Tuning<D>::corrected_products&& Scalar<T>::has_halves;
/// The Scalar<T>::safe_exponent of operands that are rounded to 16 bits. f16 exponents end at 15.
inline constexpr int safe_exponent_of_halves = 10;

/// Returns the tree of a panel of this plan.
PanelTree tree_of(const Plan& plan, Index rows, Index width);

/// The columns of a plan's panels, k = min(m, n) in all.
class PanelColumns {
public:
    explicit PanelColumns(const Plan& plan);
    Index count() const { return first_ + (k_ - start_ + last_width_ - 1) / last_width_; }
    Range operator[](Index i) const {
        const Index begin = i < first_ ? i * width_ : start_ + (i - first_) * last_width_,
                    end = begin + (i < first_ ? width_ : last_width_);
        return {begin, std::min(end, k_)};
    }
    /// Returns the panel that has column j.
    Index panel_of(Index j) const { return j < start_ ? j / width_ : first_ + (j - start_) / last_width_; }

private:
    Index k_, width_, last_width_;
    Index first_;  ///< panels of the first width
    Index start_;  ///< columns of these
};
/// Returns the panels of a plan with their trees.
std::vector<Panel> panels_of(const Plan& plan);

/// Fills in the plan's flops, bytes_moved and workspace_bytes, from the counts in the primitives' contracts.
void count_costs(Plan& plan);
/// Returns the time of the plan by the times of its steps, in ns of one core: the factorization, the work that `q`
/// requires, and, for QForm::Any, QᵀC. C has A's number of columns, at most 16.
double modelled_time(const Plan& plan, const StepTimes& times);

inline bool is_cholesky(Method method) {
    return method == Method::CholeskyQR2 || method == Method::RandomizedCholeskyQR;
}

/// Throws NumericalBreakdown. `column` is where CholeskyQR broke down, or −1.
[[noreturn]] void report_breakdown(Method method, Index column);

inline bool is_tree(Method method) { return method == Method::TSQR || method == Method::CAQR; }

inline bool is_gram_schmidt(Method method) {
    return method == Method::ModifiedGramSchmidt || method == Method::ClassicalGramSchmidt;
}

/// Lays out the panels, with memory for their T factors.
template <class T, class D>
void lay_out_panels(Context<D>& ctx, const Plan& plan, ReflectorForest<T, D>& forest);

/// Factors by TSQR or CAQR: every panel is reduced over its tree; the trailing matrix is updated leaf by leaf and level
/// by level.
template <class T, class D>
void factor_trees(Context<D>& ctx, ReflectorForest<T, D>& forest);

/// Work that is enqueued once, after a chain of steps and before the host waits for the certificate of the chain. So
/// the device computes while the host waits.
class OverlappedWork {
public:
    explicit OverlappedWork(std::function<void()> work = {}) : work_(std::move(work)) {}
    explicit operator bool() const { return static_cast<bool>(work_); }
    void operator()() {
        if (const auto work = std::exchange(work_, {})) work();
    }

private:
    std::function<void()> work_;
};

/// Factors by blocked Householder in LAPACK's format, with look-ahead; tall panels by reconstruction if the plan says
/// so. If ST (m×k) has data, it receives S = V Tᵀ on and below its diagonal and the full T on and above it. The
/// diagonals agree if A is real. `rest` prepares the columns right of the first panel, on the context, while that panel
/// is factored.
template <class T, class D>
void factor_blocked_householder(Context<D>& ctx, const Plan& plan, ForestView<T, D> forest, MatrixView<T, D> ST = {},
                                OverlappedWork rest = OverlappedWork());

/// T₁₂ := −T₁ V₁ᵀV₂ T₂ for neighbouring column ranges of V. Tf has T₁ and T₂ on its diagonal. 2mk₁k₂ flops and more for
/// T.
template <class T, class D>
void join_two(Context<D>& ctx, MatrixView<const T, D> V, Range left, Range right, MatrixView<T, D> Tf);

/// Tf (k×k) := the full T of panels in LAPACK's format, from the panels' T, with zeros below its diagonal.
template <class T, class D>
void join_t(Context<D>& ctx, ForestView<const T, D> forest, MatrixView<T, D> Tf);

/// C := op(Q) C. C has m rows. With Corrected arithmetic, here and below, the columns of C have norms up to 2.
template <class T, class D>
void apply_full_wy(Context<D>& ctx, const FullWY<T, D>& wy, Op op, MatrixView<T, D> C, Arithmetic arithmetic);

/// B := op(Q(r, c)) C.
template <class T, class D>
void apply_full_wy_block(Context<D>& ctx, const FullWY<T, D>& wy, Op op, Range r, Range c, MatrixView<const T, D> C,
                         MatrixView<T, D> B, Arithmetic arithmetic);

/// B := Q(r, c).
template <class T, class D>
void form_full_wy_block(Context<D>& ctx, const FullWY<T, D>& wy, Range r, Range c, MatrixView<T, D> B,
                        Arithmetic arithmetic);

/// Computes R (n×n) of a tall A, and Q, m×n, which may be A, unless it has no data. Uses a tree whose levels are
/// batches, with leaves of `leaf_rows` rows, on devices with Tuning<D>::has_batched_trees. Unless `checked`, returns
/// false, with A unchanged, if columns are not finite or out of range.
template <class T, class D>
bool tsqr_of_batches(Context<D>& ctx, Index leaf_rows, InputView<T, D> A, bool checked, MatrixView<T, D> Q,
                     MatrixView<T, D> R);
/// A := Q, and computes R (n×n), for a tall A by a tree. `plan` is for a matrix with A's columns.
template <class T, class D>
void orthonormalize_by_tree(Context<D>& ctx, const Plan& plan, MatrixView<T, D> A, MatrixView<T, D> R);

/// Computes R (n×n) alone of a tall matrix by TSQR. A is only read.
template <class T, class D>
void tsqr_r_only(Context<D>& ctx, const Plan& plan, InputView<T, D> A, MatrixView<T, D> R);

/// C := op(Q) C. C has m rows. `arithmetic` is for panels in LAPACK's format.
template <class T, class D>
void apply_forest(Context<D>& ctx, ForestView<const T, D> forest, Op op, MatrixView<T, D> C,
                  Arithmetic arithmetic = Arithmetic::Native);

/// C := C op(Q) = (op(Q)ᵀ Cᵀ)ᵀ, some rows of C at a time. C has m columns. `from_left(op, B)` is B := op(Q) B.
template <class T, class D, class FromLeft>
void apply_from_right(Context<D>& ctx, Op op, MatrixView<T, D> C, FromLeft from_left) {
    const Index step = std::min<Index>(C.rows, Tuning<D>::transposed_rows);
    Matrix<T, D> Ct(ctx, C.cols, step);
    for (Index i = 0; i < C.rows; i += step) {
        const auto rows_of_c = C.row_block({i, std::min(C.rows, i + step)});
        const auto B = Ct.view().col_block({0, rows_of_c.rows});
        adjoint<T>(ctx, rows_of_c, B);
        from_left(op == Op::None ? Op::Transpose : Op::None, B);
        adjoint<T>(ctx, B, rows_of_c);
    }
}

/// Writes Q to the first min(m, columns) columns of A, in place of the reflectors. If A has more columns than the
/// panels, A's columns right of them are columns of the unit matrix on entry. `arithmetic` is for panels in LAPACK's
/// format. If E (n×n, upper triangular) has data, writes Q [E; 0] in place of Q, for one panel.
template <class T, class D>
void form_q_in_place(Context<D>& ctx, ForestView<T, D> forest, Arithmetic arithmetic = Arithmetic::Native,
                     MatrixView<const T, D> E = {});

/// The limit of ‖I − G‖_F before the last Cholesky step. Up to it every singular value of Q₁ is in [√½, √(3/2)], so
/// that this step leaves ‖I − QᵀQ‖ = O(nu), whatever the first step did.
inline constexpr double most_final_departure = 0.5;

/// Returns the limit of κ(R₁D). A is overwritten by Q₁ = A R₁⁻¹ only below it: κ(R₁D)²u < 16n, D scaling columns to
/// unit norm. κ₂(AD)²u is about O(1) then, since κ is about √n κ₂. The Gram matrix is known to a small multiple of its
/// u, so that ‖Q₁‖² = 1 + O(κ₂²u) is O(1), and A = Q₁ R₁ is accurate to O(nu), certificate or not. A solve with a
/// larger u has the same bound with its u.
inline double most_gram_condition(Index n, const GramPrecision& known) {
    return std::sqrt(16 * static_cast<double>(n) / std::max(known.u, known.solve_u));
}

/// The limit of ‖(R D)⁻¹‖₂², D scaling R's columns to unit norm. Up to it one Cholesky step leaves ‖I − QᵀQ‖ = O(nu)
/// whatever went before. D G D has eigenvalues of at least 1/8 then.
inline constexpr double most_final_inverse_square = 8;

/// Decides whether A R⁻¹ is final, R from a first Gram matrix, E the error of that matrix and its factor, |D E D| <= γ:
///     ‖I − QᵀQ‖_F <= n γ ‖(R D)⁻¹‖₂²
/// It is if the last factor is at most `most_final_inverse_square`, or if the bound is nu/2.
class OnePass {
public:
    OnePass(Index m, Index n, const GramPrecision& known, double u)
        : n_(static_cast<double>(n)),
          gamma_((known.longest_sum + n_ + 1) * known.u),
          condition_is_norm_(known.condition_is_norm),
          most_inverse_square_(std::max(most_final_inverse_square, u / 2 / gamma_)),
          most_condition_(most_gram_condition(n, known)) {
        demands_.most_condition = most_condition_;
        if (!condition_is_norm_) {
            demands_.least_eigenvalue = 1 / most_inverse_square_;
            return;
        }
        // if random numbers need a second pass, an attempt to do without is not worth its wait
        is_tried_ = CommonTuning::norm_proves_one_pass(m, n, most_inverse_square_);
        if (!is_tried_) return;
        // D G D has eigenvalues λ of the sum n, and Σ 1/λ = κ_F²/n. So ‖(R D)⁻¹‖₂² <= κ_F²/n − (n − 1)²/n
        demands_.most_condition =
            std::min({most_condition_, known.most_condition_of_solve, std::sqrt(n_ * (most_inverse_square_ + n_ - 2))});
    }
    /// Whether `demands` require more than a second pass needs.
    bool is_tried() const { return is_tried_; }
    const GramDemands& demands() const { return demands_; }
    /// Whether a refused certificate allows a second pass: A = Q₁ R will be accurate.
    bool allows_second(const Certificate& found) const {
        return found.reason == Certificate::Eigenvalue ||
               (found.reason == Certificate::Condition && found.condition < most_condition_);
    }
    /// Returns a bound of ‖I − QᵀQ‖_F if the demands are met.
    double departure(const Certificate& found) const {
        const double bound =
            condition_is_norm_ ? found.condition * found.condition / n_ - n_ + 2 : most_inverse_square_;
        return n_ * gamma_ * bound;
    }

private:
    double n_, gamma_;
    bool condition_is_norm_, is_tried_ = true;
    double most_inverse_square_, most_condition_;
    GramDemands demands_;
};

enum class CholeskyChain {
    OfA,
    Sketched,  ///< of A R₀⁻¹, R₀ the triangle of a sketch of A, whose entries are finite and in range; Q1 has data
    /// Starts with A. If the first Gram matrix refuses A, goes on with a sketch of A; if the certificate fails and
    /// nothing follows, with a sketch of Q₁. Both only if A is tall enough.
    SketchedIfRefused,
    /// As SketchedIfRefused, for a matrix that is finite and in range: if it is Unusable, it has columns of zeros.
    SketchedIfRefusedOrZero,
};

/// The result of the Gram passes.
template <class T, class D>
struct CholeskyPasses {
    enum class State {
        Certified,  ///< R is final, and Q₁ R₂⁻¹ (or Q₁, if R₂ is empty) is orthonormal to O(nu); A holds Q₁, if stored
        Refused,   ///< the first Gram matrix refused: A is unchanged
        Improved,  ///< the certificate failed: A = Q₁ R holds with a better conditioned Q₁ (if stored)
        Unusable,  ///< A's entries are not finite, or too large or small to be squared: A is unchanged
    };
    State state = State::Refused;
    bool next_refused = false;        ///< certified, but the next step refused
    bool sketched = false;            ///< the result of a chain after a sketch
    Index column = -1;                ///< the column that broke down
    double gram_departure = -1;       ///< ‖I − Q₁ᵀQ₁‖_F, or a bound if one pass sufficed
    double perturbed_condition = -1;  ///< κ₁(R D) of the sketch, if A was perturbed
    Matrix<Sum<T, D>, D> R2;
};
/// The work that follows a chain that went through, given R₂, before the host waits. It may refuse the certificate with
/// reason Growth, and calls `request_certificate` when that is decided.
template <class T, class D>
using NextStep = std::function<void(MatrixView<const Sum<T, D>, D> R2, CertificateView<D> certificate)>;

/// The demands of a chain on its sketch.
struct SketchDemands {
    double most_condition = 0;  ///< κ₁(R D), D scaling R's columns to unit norm
    double perturbation = 0;    ///< δ that perturbs an R beyond that, relative to ‖r_j‖; 0: refuse R
};

/// Sums for an A with the rows of one of several ranks. `factor`: G, of these rows, becomes the Cholesky factor of the
/// sum of the ranks' G, and `certificate` the result of `factor_gram` for that sum, equal on all ranks, unless it is
/// refused already. `is_last(certificate)` returns whether this is the last sum. `levels` additions in a row make the
/// sum; `rows` are the rows of all ranks.
template <class T, class D>
struct GramOverRanks {
    using IsLast = std::function<bool(const Certificate& certificate)>;
    std::function<void(MatrixView<Sum<T, D>, D> G, GramDemands demands, CertificateView<D> certificate, IsLast is_last)>
        factor;
    /// Runs `factor_sketch` on the sum of the ranks' B, equal on all ranks. `rank` is the seed of this rank's sketch.
    std::function<void(MatrixView<Sum<T, D>, D> B, SketchDemands demands, MatrixView<Sum<T, D>, D> R,
                       CertificateView<D> certificate)>
        factor_sketch;
    Index rank = 0, rows = 0, levels = 0;
};

/// Computes R (n×n) of a sketch B = Q R, or of [R; δD⁻¹] if κ₁(R D) is larger than demanded. The certificate records
/// the latter.
template <class T, class D>
void factor_sketch(Context<D>& ctx, Matrix<Sum<T, D>, D>&& B, SketchDemands demands, MatrixView<Sum<T, D>, D> R,
                   CertificateView<D> certificate);

/// Makes the passes over A. Q1 (A, or without data: nothing is stored then) receives Q₁, and R (n×n) the factor. With
/// `last` the last pass is made too, so that Q1 is Q and R₂ empty. Without it, if one pass suffices, Q₁ is A itself,
/// and R₂ is R. Waits once, or twice if one pass turned out not to suffice; `next` is called twice then, and its first
/// result is discarded.
template <class T, class D>
CholeskyPasses<T, D> cholesky_passes(Context<D>& ctx, CholeskyChain chain, bool last, InputView<T, D> A,
                                     MatrixView<T, D> Q1, MatrixView<T, D> R, const NextStep<T, D>& next = {},
                                     const GramOverRanks<T, D>& over_ranks = {});

/// Reconstructs reflectors of Q = Q₁R₂⁻¹ (R2 may have no data: I) with orthonormal columns, Q₁ in A. A receives V below
/// its diagonal, Tf (n×n) T; R (n×n) takes the rows' signs, given in `signs` (n×1), and goes above V. Does nothing if
/// the certificate is refused. Refuses it with reason Growth, and leaves A and R alone, if V and T would not be
/// accurate. Requests the certificate once that is decided. May wait (`reconstruct_top`).
template <class T, class D>
void reconstruct_if_certified(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2,
                              MatrixView<T, D> R, MatrixView<T, D> Tf, MatrixView<T, D> signs,
                              CertificateView<D> certificate);

/// Returns the largest ‖(LU)⁻¹‖ of n columns that is accurate. V and T differ from reflectors' by up to this norm times
/// the departure of QᵀQ from I. The norm is about √n for almost every Q, but may grow as 2ⁿ. Beyond a multiple of √n
/// the reflectors are computed, not reconstructed.
inline double most_inverse_norm(Index n) { return 8 * std::sqrt(static_cast<double>(n)); }

/// Computes reflectors after a refused reconstruction: A := Q₁ R₂⁻¹ = H R', V and T of H, and R := R' R above V.
template <class T, class D>
void factor_q_by_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2, MatrixView<T, D> R,
                             MatrixView<T, D> Tf);

/// Factors A (m×n, m >= n) by CholeskyQR to V, Tf and R (n×n) in LAPACK's format, all under one certificate:
/// `cholesky_passes` and `reconstruct_if_certified`. If the state is not Certified, A is as that state says, and Tf is
/// not final. Waits.
template <class T, class D>
CholeskyPasses<T, D> factor_by_cholesky(Context<D>& ctx, CholeskyChain chain, MatrixView<T, D> A, MatrixView<T, D> Tf,
                                        MatrixView<T, D> R, OverlappedWork& overlapped);

/// Whether a panel of `rows` rows of this plan is reconstructed.
inline bool is_tall_panel(const Plan& plan, Index rows) {
    return plan.reconstruct_rows > 0 && rows >= plan.reconstruct_rows;
}
/// Factors A (m×n, m >= n) = H R, one panel of a plan of blocked Householder. `overlapped` runs on the way. Waits if
/// the panel is tall.
template <class T, class D>
void factor_one_panel(Context<D>& ctx, const Plan& plan, Index step, MatrixView<T, D> A, MatrixView<T, D> Tf,
                      OverlappedWork& overlapped);

/// Computes V and T of an orthonormal Q in A, by `reconstruct_if_certified` or `factor_q_by_householder`. R has n or
/// more columns. Waits.
template <class T, class D>
void reconstruct_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<T, D> R, MatrixView<T, D> Tf);

/// C := op(Q) C for the m×m Q around the thin Q. C has m rows.
template <class T, class D>
void apply_basis(Context<D>& ctx, MatrixView<const T, D> Q, const BasisKernel<T, D>& kernel, Op op, MatrixView<T, D> C);

}  // namespace quoin
