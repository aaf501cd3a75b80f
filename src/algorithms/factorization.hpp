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
    Index t_col = 0;  ///< where its T factors begin
};

/// Q as a list of panels, each a reduction tree. V (and R above it) lie in A, T in inner blocks of one height.
/// One leaf a panel is LAPACK's format; one panel is TSQR; both many is CAQR. Somebody else owns the memory.
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
    /// Of LAPACK's format.
    std::vector<PanelFactors<std::remove_const_t<T>, D>> factors() const {
        std::vector<PanelFactors<std::remove_const_t<T>, D>> all;
        all.reserve(panels.size());
        for (const Panel& p : panels) all.push_back({panel_a(p), panel_t(p), p.first});
        return all;
    }
};

/// The same with its memory.
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

/// Q = I − V T Vᵀ = I − V Sᵀ as a whole. V has R above its diagonal; S has T above its own and T what is strictly below that
/// in S; without S, which then has no data, T has zeros there.
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
    Matrix<T, D> full_t;  ///< T k×k, or with S m×k; none where the one panel's T is all of it, or nobody asked
};

/// A form of Q that a const factorization makes at its first use, once for all threads. Contexts other than the one that made it
/// use it after it is made.
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
    /// What the thin Q needs to act as the m×m Q; made at the first call.
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
    /// The same by panels in LAPACK's format; made at the first call.
    const ReflectorQ<T, D>& reflectors(Context<D>& ctx, const Plan& plan) const;

    std::unique_ptr<SmallBatch<T, D>> batch;  ///< of one matrix
    Matrix<T, D> memory;  ///< m×n, for what is taken of it: where A was, if that was given up; or none

private:
    LazyForm<ReflectorQ<T, D>, D> reflectors_;
};

/// Since `start`; −1 on devices where the work may still be on its way when the call returns.
template <class D>
double wall_seconds(std::chrono::steady_clock::time_point start) {
    if (Tuning<D>::asynchronous) return -1;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// With QForm::None.
template <class T, class D>
struct RAlone {
    Matrix<T, D> R;
};

/// The data of a QR.
template <class T, class D>
struct Factorization {
    Plan plan;
    Report report;
    /// Nothing: not yet computed, or Q was taken.
    std::variant<std::monostate, ReflectorQ<T, D>, ExplicitQ<T, D>, SmallQ<T, D>, RAlone<T, D>> holder;

    ReflectorQ<T, D>* reflectors() { return std::get_if<ReflectorQ<T, D>>(&holder); }
    const ReflectorQ<T, D>* reflectors() const { return std::get_if<ReflectorQ<T, D>>(&holder); }
    /// Those of a small Q too, by panels.
    const ReflectorQ<T, D>* reflectors(Context<D>& ctx) const {
        const SmallQ<T, D>* small = small_q();
        return small ? &small->reflectors(ctx, plan) : reflectors();
    }
    SmallQ<T, D>* small_q() { return std::get_if<SmallQ<T, D>>(&holder); }
    const SmallQ<T, D>* small_q() const { return std::get_if<SmallQ<T, D>>(&holder); }
    ExplicitQ<T, D>* explicit_q() { return std::get_if<ExplicitQ<T, D>>(&holder); }
    const ExplicitQ<T, D>* explicit_q() const { return std::get_if<ExplicitQ<T, D>>(&holder); }
    /// The k rows that hold R, with V below its diagonal where there are reflectors. No data once Q was taken, and of a small Q.
    MatrixView<T, D> r();
    /// V, T and S, if there is a full T; else V has no data.
    FullWY<T, D> full_wy() const;
    /// Throws InvalidArgument for `operation` where there is no Q.
    void require_q(const char* operation) const;
    /// The same where nothing is left.
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
        QR<T, D> f(std::make_unique<Factorization<T, D>>());
        of(f).plan = plan;
        return f;
    }
};

/// Whether three products of f16 stand for one of T on this device.
template <class T, class D>
inline constexpr bool corrected_products = Tuning<D>::corrected_products&& Scalar<T>::has_halves;
/// As Scalar<T>::safe_exponent, of what is rounded to 16 bits; those of f16 end at 15.
inline constexpr int safe_exponent_of_halves = 10;

/// The tree of a panel of this plan.
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
    /// The panel that has column j.
    Index panel_of(Index j) const { return j < start_ ? j / width_ : first_ + (j - start_) / last_width_; }

private:
    Index k_, width_, last_width_;
    Index first_;  ///< panels of the first width
    Index start_;  ///< columns of these
};
/// The same panels with their trees.
std::vector<Panel> panels_of(const Plan& plan);

/// Fills in the plan's flops, bytes_moved and workspace_bytes, from the counts in the primitives' contracts.
void count_costs(Plan& plan);
/// The time that the plan takes by the times of its steps, ns of one core: the factorization, what `q` asks for, and, for QForm::Any,
/// QᵀC of as many columns as A has, 16 at most.
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

/// The panels, with memory for their T factors.
template <class T, class D>
void lay_out_panels(Context<D>& ctx, const Plan& plan, ReflectorForest<T, D>& forest);

/// TSQR and CAQR: every panel reduced over its tree, the trailing matrix updated leaf by leaf and level by level.
template <class T, class D>
void factor_trees(Context<D>& ctx, ReflectorForest<T, D>& forest);

/// Work that is enqueued once, behind a chain of steps and before the host waits for the certificate of the chain: the device
/// computes while the host waits.
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

/// Blocked Householder in LAPACK's format, with look-ahead; tall panels by reconstruction if the plan says so. Where ST (m×k)
/// has data, S = V Tᵀ goes on and below its diagonal and the full T on and above it: on the diagonal they agree, if A is real.
/// `rest` makes what is right of the first panel ready, on the context, beside that panel.
template <class T, class D>
void factor_blocked_householder(Context<D>& ctx, const Plan& plan, ForestView<T, D> forest, MatrixView<T, D> ST = {},
                                OverlappedWork rest = OverlappedWork());

/// T₁₂ := −T₁ V₁ᵀV₂ T₂ of neighbouring column ranges of V, whose T₁ and T₂ stand in Tf. 2mk₁k₂ flops and more for T.
template <class T, class D>
void join_two(Context<D>& ctx, MatrixView<const T, D> V, Range left, Range right, MatrixView<T, D> Tf);

/// Tf (k×k) := the full T of panels in LAPACK's format, zeros below its diagonal, from theirs.
template <class T, class D>
void join_t(Context<D>& ctx, ForestView<const T, D> forest, MatrixView<T, D> Tf);

/// C := op(Q) C, C with m rows. Where the arithmetic is Corrected, here and below, the columns of C have norms up to 2.
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

/// R (n×n) of a tall A, and Q, m×n, which may be A, unless it has no data: by a tree whose levels are batches, with leaves of `leaf_rows`
/// rows. On devices with Tuning<D>::has_batched_trees. False, with A as it was, where columns are not finite or out of range, unless
/// somebody has `checked`.
template <class T, class D>
bool tsqr_of_batches(Context<D>& ctx, Index leaf_rows, InputView<T, D> A, bool checked, MatrixView<T, D> Q,
                     MatrixView<T, D> R);
/// A := Q, R (n×n), of a tall A by a tree, `plan` being that of a matrix with these columns.
template <class T, class D>
void orthonormalize_by_tree(Context<D>& ctx, const Plan& plan, MatrixView<T, D> A, MatrixView<T, D> R);

/// R alone of a tall matrix by TSQR; A is only read. `R` n×n.
template <class T, class D>
void tsqr_r_only(Context<D>& ctx, const Plan& plan, InputView<T, D> A, MatrixView<T, D> R);

/// C := op(Q) C, C with m rows; panels in LAPACK's format in the given arithmetic.
template <class T, class D>
void apply_forest(Context<D>& ctx, ForestView<const T, D> forest, Op op, MatrixView<T, D> C,
                  Arithmetic arithmetic = Arithmetic::Native);

/// C := C op(Q), C with m columns, by `from_left(op, B)`, which is B := op(Q) B: C op(Q) = (op(Q)ᵀ Cᵀ)ᵀ, some rows of C at
/// a time.
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

/// The first min(m, columns) columns of A := those of Q, in place of the reflectors. Where A has more columns than the
/// panels, A's right of them are those of the unit matrix on entry. `arithmetic` is that of panels in LAPACK's format. Where E
/// (n×n, upper triangular) has data, Q [E; 0] in place of Q's columns, of one panel.
template <class T, class D>
void form_q_in_place(Context<D>& ctx, ForestView<T, D> forest, Arithmetic arithmetic = Arithmetic::Native,
                     MatrixView<const T, D> E = {});

/// ‖I − G‖_F <= 1/2 puts every singular value of Q₁ into [√½, √(3/2)], so that one more Cholesky step leaves
/// ‖I − QᵀQ‖ = O(nu), whatever the first step did.
inline constexpr double most_final_departure = 0.5;

/// A is overwritten by Q₁ = A R₁⁻¹ only where κ(R₁D)²u < 16n, D scaling columns to unit norm: that is where κ₂(AD)²u is about
/// O(1), since κ is about √n κ₂. The Gram matrix is known to a small multiple of its u, so that ‖Q₁‖² = 1 + O(κ₂²u) is O(1)
/// then, and with it A = Q₁ R₁ accurate to O(nu), certificate or not. The same holds for a solve with a larger u.
inline double most_gram_condition(Index n, const GramPrecision& known) {
    return std::sqrt(16 * static_cast<double>(n) / std::max(known.u, known.solve_u));
}

/// Where ‖(R D)⁻¹‖₂² <= 8, D scaling R's columns to unit norm, one Cholesky step leaves ‖I − QᵀQ‖ = O(nu) whatever went before. D G D has
/// eigenvalues of at least 1/8 then.
inline constexpr double most_final_inverse_square = 8;

/// When A R⁻¹ is final, R from a first Gram matrix, |D E D| <= γ its error and that of its factor:
///     ‖I − QᵀQ‖_F <= n γ ‖(R D)⁻¹‖₂²
/// where the last factor is at most `most_final_inverse_square`, or where the bound is nu/2.
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
        // where random numbers need a second pass, an attempt to do without is not worth its wait
        is_tried_ = CommonTuning::norm_proves_one_pass(m, n, most_inverse_square_);
        if (!is_tried_) return;
        // D G D has eigenvalues λ of the sum n, and Σ 1/λ = κ_F²/n. So ‖(R D)⁻¹‖₂² <= κ_F²/n − (n − 1)²/n
        demands_.most_condition =
            std::min({most_condition_, known.most_condition_of_solve, std::sqrt(n_ * (most_inverse_square_ + n_ - 2))});
    }
    /// Whether `demands` ask for more than a second pass needs.
    bool is_tried() const { return is_tried_; }
    const GramDemands& demands() const { return demands_; }
    /// Whether a refused certificate allows a second pass: A = Q₁ R will be accurate.
    bool allows_second(const Certificate& found) const {
        return found.reason == Certificate::Eigenvalue ||
               (found.reason == Certificate::Condition && found.condition < most_condition_);
    }
    /// A bound of ‖I − QᵀQ‖_F where the demands are met.
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
    /// Of A, and behind a sketch where the first Gram matrix refuses it, or of Q₁ where the certificate fails and nothing is to follow, if A is
    /// tall enough.
    SketchedIfRefused,
    /// The same of a matrix that is finite and in range: what is unusable has columns of zeros.
    SketchedIfRefusedOrZero,
};

/// What the Gram passes left behind.
template <class T, class D>
struct CholeskyPasses {
    enum class State {
        Certified,  ///< R is final, and Q₁ R₂⁻¹ (or Q₁, if R₂ is empty) is orthonormal to O(nu); A holds Q₁, if stored
        Refused,   ///< the first Gram matrix said no: A is as it was
        Improved,  ///< the certificate failed: A = Q₁ R holds with a better conditioned Q₁ (if stored)
        Unusable,  ///< A's entries are not finite, or beyond what may be squared: A is as it was
    };
    State state = State::Refused;
    bool next_refused = false;        ///< certified, but the next step refused
    bool sketched = false;            ///< the answer of a chain behind a sketch
    Index column = -1;                ///< where it broke down
    double gram_departure = -1;       ///< ‖I − Q₁ᵀQ₁‖_F, or a bound where one pass did
    double perturbed_condition = -1;  ///< κ₁(R D) of the sketch, where A was perturbed
    Matrix<Sum<T, D>, D> R2;
};
/// What is to follow a chain that went through, given R₂, before anybody waits: it may refuse the certificate with reason Growth, and
/// calls `request_certificate` when that is decided.
template <class T, class D>
using NextStep = std::function<void(MatrixView<const Sum<T, D>, D> R2, CertificateView<D> certificate)>;

/// What a chain demands of its sketch.
struct SketchDemands {
    double most_condition = 0;  ///< κ₁(R D), D scaling R's columns to unit norm
    double perturbation = 0;    ///< δ by which an R beyond that is perturbed, relative to ‖r_j‖; 0: it is refused
};

/// Where A has the rows of one of several ranks: G, of these rows, becomes the Cholesky factor of the sum of the ranks' G, and
/// `certificate` what `factor_gram` says of that sum, the same on all ranks, unless it is refused already. `is_last` says of that
/// certificate whether this is the last sum. `levels` additions in a row make the sum; `rows` are those of all ranks.
template <class T, class D>
struct GramOverRanks {
    using IsLast = std::function<bool(const Certificate& certificate)>;
    std::function<void(MatrixView<Sum<T, D>, D> G, GramDemands demands, CertificateView<D> certificate, IsLast is_last)>
        factor;
    /// `factor_sketch` of the sum of the ranks' B, the same on all ranks; `rank` is the seed of this one's sketch.
    std::function<void(MatrixView<Sum<T, D>, D> B, SketchDemands demands, MatrixView<Sum<T, D>, D> R,
                       CertificateView<D> certificate)>
        factor_sketch;
    Index rank = 0, rows = 0, levels = 0;
};

/// R (n×n) of a sketch B = Q R, or of [R; δD⁻¹] where κ₁(R D) is larger than demanded, which the certificate tells.
template <class T, class D>
void factor_sketch(Context<D>& ctx, Matrix<Sum<T, D>, D>&& B, SketchDemands demands, MatrixView<Sum<T, D>, D> R,
                   CertificateView<D> certificate);

/// The passes over A. Q1 (A, or without data: nothing is stored then) receives Q₁ and R (n×n) the factor. With `last` the
/// last pass is made too, so that Q1 is Q and R₂ empty; without, Q₁ is A itself, and R₂ is R, where one pass suffices.
/// Waits once, or twice where one pass turned out not to suffice; `next` is called twice then, and its first result is discarded.
template <class T, class D>
CholeskyPasses<T, D> cholesky_passes(Context<D>& ctx, CholeskyChain chain, bool last, InputView<T, D> A,
                                     MatrixView<T, D> Q1, MatrixView<T, D> R, const NextStep<T, D>& next = {},
                                     const GramOverRanks<T, D>& over_ranks = {});

/// Householder reconstruction: Q = Q₁R₂⁻¹ (R2 may have no data: I) with orthonormal columns, Q₁ in A, becomes V below the
/// diagonal of A and Tf (n×n); R (n×n) takes the rows' signs, given in `signs` (n×1), and goes above V. Nothing where the
/// certificate is refused. Refuses it with reason Growth, and leaves A and R alone, where V and T would not be accurate. Requests the
/// certificate once that is decided. May wait (`reconstruct_top`).
template <class T, class D>
void reconstruct_if_certified(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2,
                              MatrixView<T, D> R, MatrixView<T, D> Tf, MatrixView<T, D> signs,
                              CertificateView<D> certificate);

/// The largest ‖(LU)⁻¹‖ of n columns that is accurate. V and T are those of reflectors up to this norm times the departure of QᵀQ from I.
/// It is about √n for almost every Q, but may grow as 2ⁿ: beyond a multiple of √n the reflectors are computed, not reconstructed.
inline double most_inverse_norm(Index n) { return 8 * std::sqrt(static_cast<double>(n)); }

/// Where reconstruction was refused: A := Q₁ R₂⁻¹ = H R' by reflectors, V and T of H, and R := R' R above V.
template <class T, class D>
void factor_q_by_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2, MatrixView<T, D> R,
                             MatrixView<T, D> Tf);

/// A (m×n, m >= n) by CholeskyQR to V, Tf and R (n×n) in LAPACK's format, all of it under one certificate: `cholesky_passes` and
/// `reconstruct_if_certified`. Where the state is not Certified A is as that says, and Tf is not final. Waits.
template <class T, class D>
CholeskyPasses<T, D> factor_by_cholesky(Context<D>& ctx, CholeskyChain chain, MatrixView<T, D> A, MatrixView<T, D> Tf,
                                        MatrixView<T, D> R, OverlappedWork& overlapped);

/// Whether a panel of so many rows of this plan is reconstructed.
inline bool is_tall_panel(const Plan& plan, Index rows) {
    return plan.reconstruct_rows > 0 && rows >= plan.reconstruct_rows;
}
/// A (m×n, m >= n) = H R, one panel of a plan of blocked Householder; `overlapped` is done on the way. Waits where the panel is tall.
template <class T, class D>
void factor_one_panel(Context<D>& ctx, const Plan& plan, Index step, MatrixView<T, D> A, MatrixView<T, D> Tf,
                      OverlappedWork& overlapped);

/// Of an orthonormal Q in A, by `reconstruct_if_certified` or `factor_q_by_householder`. R has n or more columns. Waits.
template <class T, class D>
void reconstruct_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<T, D> R, MatrixView<T, D> Tf);

/// C := op(Q) C for the m×m Q around the thin Q, C with m rows.
template <class T, class D>
void apply_basis(Context<D>& ctx, MatrixView<const T, D> Q, const BasisKernel<T, D>& kernel, Op op, MatrixView<T, D> C);

}  // namespace quoin
