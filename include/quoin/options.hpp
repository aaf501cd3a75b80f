#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "quoin/arithmetic.hpp"
#include "quoin/context.hpp"
#include "quoin/matrix.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// Methods to compute A = QR. `docs/algorithms.md` has the mathematics and the error bounds.
enum class Method {
    Auto,                ///< by shape from the tuning table; conditional methods only with their certificate
    BlockedHouseholder,  ///< panels of reflectors in compact WY form, updates by matrix products; LAPACK's format
    TSQR,                ///< one panel, its rows reduced over a tree of Householder factorizations
    CAQR,                ///< a grid: several panels, each a TSQR tree, with horizontal and tree updates
    CholeskyQR2,  ///< R = chol(AᵀA), Q = A R⁻¹, once or twice; certified, fails where κ(A) > about u^(-1/2); m >= n
    /// CholeskyQR of A R₀⁻¹, R₀ the triangle of a sketch of A; certified; any κ(A) for the thin Q of m >= 8n; m >= n
    RandomizedCholeskyQR,
    ModifiedGramSchmidt,  ///< explicit Q, ‖I − QᵀQ‖ ∝ κ(A)u unless reorthogonalised; R as good as Householder's; m >= n
    ClassicalGramSchmidt,  ///< explicit Q, the largest products; ‖I − QᵀQ‖ ∝ κ(A)²u unless reorthogonalised; m >= n
};

/// The form of Q that the caller needs. Quoin computes nothing else.
enum class QForm {
    Any,         ///< any holder of Q: apply_q, form_q, q_block all work
    None,        ///< R alone; reflectors are never stored
    Explicit,    ///< the thin Q itself, formed in place of A
    Reflectors,  ///< LAPACK's format (V below the diagonal, tau), one reflector a column
};

/// A tree of TSQR or CAQR. On a GPU one launch factors all leaves, or all nodes of a level: of f32 they have at most
/// 16 384 rows, of f64 8192.
struct TreeOptions {
    Index leaf_rows = 0;  ///< rows a leaf; at least the panel's width; 0: Quoin chooses
    Index fan_in = 0;     ///< R factors merged at a node, at least 2; `flat_tree`: all; 0: Quoin chooses
    bool operator==(const TreeOptions&) const = default;
};
/// The fan_in of a tree that reduces one leaf after the other into one R.
inline constexpr Index flat_tree = std::numeric_limits<Index>::max();

/// The columns of Gram-Schmidt that are orthogonalised a second time, against every earlier column and within their
/// panel. This is done panel by panel; Always with classical Gram-Schmidt does it for all columns at once.
/// `docs/algorithms.md` has the guarantees.
enum class Reorthogonalization {
    Off,        ///< none; a column that depends on earlier columns is a NumericalBreakdown
    Selective,  ///< columns that lost more than they kept: r_jj < ‖a_j‖/√2 (Kahan and Parlett's criterion)
    Always,     ///< all; here and for Selective a dependent column gives r_jj = 0 and a q_j that completes Q
};

/// How classical Gram-Schmidt factors a panel.
enum class GramSchmidtPanel {
    Auto,         ///< by the tuning table
    MGS,          ///< modified Gram-Schmidt
    CholeskyQR2,  ///< with its certificate; modified Gram-Schmidt for the panels that it refuses
};

// The options of each method. `panel_width`: columns a panel; 0: Quoin chooses.

/// Quoin chooses the method: a tree if `tree` is given, a method by panels if `panel_width` is given.
struct Auto {
    Index panel_width = 0;
    TreeOptions tree{};
};
/// Householder reflectors, panel by panel.
struct BlockedHouseholder {
    Index panel_width = 0;
    TreeOptions tree{};  ///< for a panel that is reconstructed from Q of a tree
};
/// Trees of Householder factorizations, one panel.
struct TSQR {
    TreeOptions tree{};
};
/// Trees of Householder factorizations, panel by panel.
struct CAQR {
    Index panel_width = 0;
    TreeOptions tree{};
};
/// R by Cholesky factorization of the Gram matrix. It has no options.
struct CholeskyQR2 {};
/// CholeskyQR after a sketch. It has no options.
struct RandomizedCholeskyQR {};
/// Modified Gram-Schmidt, panel by panel.
struct ModifiedGramSchmidt {
    Index panel_width = 0;
    Reorthogonalization reorthogonalization = Reorthogonalization::Off;
};
/// Classical Gram-Schmidt, panel by panel.
struct ClassicalGramSchmidt {
    Index panel_width = 0;
    Reorthogonalization reorthogonalization = Reorthogonalization::Off;
    GramSchmidtPanel panel = GramSchmidtPanel::Auto;
};

/// One method with its options. A Method stands for its method with no option given.
struct MethodOptions : std::variant<Auto, BlockedHouseholder, TSQR, CAQR, CholeskyQR2, RandomizedCholeskyQR,
                                    ModifiedGramSchmidt, ClassicalGramSchmidt> {
    using variant::variant;
    /// Takes the method's default options.
    MethodOptions(Method method);
    operator Method() const { return static_cast<Method>(index()); }

    /// Return the given option, or its default if the method has no such option.
    Index panel_width() const;
    TreeOptions tree() const;
    Reorthogonalization reorthogonalization() const;
    GramSchmidtPanel panel() const;

    /// Set an option of a method that is known only at run time. They throw InvalidArgument if the method has no such
    /// option, unless the value is the default.
    void set_panel_width(Index width);
    void set_tree(TreeOptions tree);
    void set_reorthogonalization(Reorthogonalization reorthogonalization);
    void set_panel(GramSchmidtPanel panel);
};

/// How the full T is computed. Both routes cost 2k³/3 flops beyond the factorization of a square matrix.
enum class FullTRoute {
    Auto,  ///< the recurrence if S is kept, otherwise by the tuning table
    /// during the factorization from S = V Tᵀ (Benner, Köhler and Penke's Algorithm 1), in one m×k array with it
    Recurrence,
    Joined,  ///< afterwards, from the panels' T
};

/// Reflectors with one T for all columns, as in ?geqrt3: Q = I − V T Vᵀ. Any block of Q is then a few products. By
/// default each panel has its own T, as in ?geqrt, which is enough for R, Q C and the thin Q.
struct FullT {
    bool keep_s = false;  ///< keep S = V Tᵀ, too: Q = I − V Sᵀ
    FullTRoute route = FullTRoute::Auto;
};

/// A form of Q; a FullT: QForm::Reflectors with one T.
struct QOptions {
    QOptions(QForm form = QForm::Any) : form(form) {}
    QOptions(FullT full_t) : form(QForm::Reflectors), full_t(full_t) {}
    operator QForm() const { return form; }

    QForm form;
    std::optional<FullT> full_t;
};

/// How the pivots of a QR with column pivoting are chosen.
enum class Pivots {
    Auto,  ///< by shape from the tuning table
    /// The remaining column of largest norm, column by column, as LAPACK's ?geqp3. In a tall matrix its norm is at
    /// least 0.7 of the largest (docs/pivoting.md).
    Greedy,
    /// the pivots of a whole panel by Greedy in a sketch of the remaining columns
    Randomized,
    /// Greedy, and then exchanges of columns until |R₁₁⁻¹R₁₂| <= strong_bound for R₁₁ of the rank (Gu and Eisenstat
    /// 1996)
    Strong,
};

/// QR with column pivoting, A P = QR: P moves columns of large norm to the front. `docs/pivoting.md` has the bounds.
///
/// A limit makes Q smaller. Q has at most `max_rank` columns, or as few as bring the 2-norm of each column of A P − Q R
/// down to max(tolerance, relative_tolerance · max_j ‖a_j‖₂), as by LAPACK's ?geqp3rk, or its Frobenius norm down to
/// relative_frobenius · ‖A‖_F. Without a limit Q has min(m, n) columns, even if the rest of A vanishes.
///
///     qr(ctx, A, {.pivoting = Pivoting{}});
///     qr(ctx, A, {.pivoting = Pivoting{.max_rank = 100, .relative_tolerance = 1e-6}});
struct Pivoting {
    Pivots kind = Pivots::Auto;
    Index max_rank = 0;             ///< the most columns of Q, up to min(m, n); 0: no limit
    double tolerance = 0;           ///< largest 2-norm of a column that is left; 0: no limit
    double relative_tolerance = 0;  ///< the same, relative to the largest 2-norm of a column of A; 0: no limit
    double relative_frobenius = 0;  ///< largest ‖A P − QR‖_F, relative to ‖A‖_F; 0: no limit
    std::uint64_t seed = 0;         ///< of the sketch of Pivots::Randomized; the same seed gives the same bits
    double strong_bound = 2;        ///< of Pivots::Strong, above 1

    /// Whether a tolerance is given.
    bool has_tolerance() const { return tolerance > 0 || relative_tolerance > 0 || relative_frobenius > 0; }
    /// Whether a tolerance or a largest rank is given.
    bool has_limit() const { return max_rank > 0 || has_tolerance(); }
};

/// Choices left to the caller. The defaults are right for almost everybody.
///
///     qr(ctx, A, {.method = Method::TSQR});
///     qr(ctx, A, {.method = TSQR{.tree = {.fan_in = 4}}});
///     qr(ctx, A, {.q = FullT{.keep_s = true}});
///     qr(ctx, A, {.method = ClassicalGramSchmidt{.reorthogonalization = Reorthogonalization::Always}});
struct Options {
    MethodOptions method = Method::Auto;
    QOptions q = QForm::Any;
    Arithmetic arithmetic = Arithmetic::Auto;
    std::optional<Pivoting> pivoting{};  ///< column pivoting; of `qr` and `svd`
    /// R has a non-negative diagonal, by the signs of R's rows and Q's columns. Of `qr` of one matrix alone.
    bool positive_diagonal = false;
    bool check_finite = true;  ///< NaN or Inf in A is an error; false: they propagate, as in LAPACK
    bool verify = false;       ///< measure orthogonality and residual after the factorization (keeps a copy of A)
};

/// The trees of TSQR and CAQR over a panel.
struct TreePlan {
    Index leaf_rows = 0;  ///< rows a leaf
    /// Leaves reduced one after the other (a flat tree) before the tree of `fan_in` starts; 0 on a GPU, where every
    /// level of a tree is a batch.
    Index domain_leaves = 0;
    Index fan_in = 0;  ///< R factors merged at a node above the domains
};
/// Choices of BlockedHouseholder.
struct HouseholderPlan {
    Index last_rows = 0;          ///< panels of at most last_rows rows have last_width columns; 0: none
    Index last_width = 0;         ///< columns of these panels
    Index reconstruct_rows = 0;   ///< from this number of rows on, panels are factored by reconstruction; 0: none
    bool one_launch = false;      ///< one kernel factors the whole matrix; later steps work by panels
    bool panels_on_host = false;  ///< of a matrix on a GPU (quoin/study.hpp)
    TreePlan tree{};
};
/// Choices of CholeskyQR2 and RandomizedCholeskyQR.
struct CholeskyPlan {
    Method fallback = Method::Auto;  ///< taken if `method` cannot certify its answer; Auto: none, an error instead
    TreePlan tree{};                 ///< of the fallback
};
/// Choices of Gram-Schmidt.
struct GramSchmidtPlan {
    Reorthogonalization reorthogonalization = Reorthogonalization::Off;
    GramSchmidtPanel panel = GramSchmidtPanel::Auto;  ///< never Auto if the method is Gram-Schmidt
};

/// Choices of column pivoting.
struct PivotPlan : Pivoting {  // `kind` is never Auto
    /// All pivots are chosen first: from a sketch of A, from its R, or, if CholeskyQR2 forms Q with greedy pivots, from
    /// AᵀA. `method` factors A P. For R alone `method` factors A; its R then gives the pivots and the R of A P.
    bool chosen_first = false;
};

/// The choices made for one shape, type and context: a pure value.
///
/// Results are reproducible bit for bit for a given plan on one machine, whatever the number of threads.
struct Plan {
    Index rows = 0, cols = 0;
    ScalarKind scalar = ScalarKind::F64;
    Method method = Method::Auto;                ///< never Auto
    QOptions q = QForm::Any;                     ///< the route of its full T is never Auto
    Arithmetic arithmetic = Arithmetic::Native;  ///< never Auto
    Arithmetic products = Arithmetic::Native;    ///< of op(Q) C and blocks of Q, if large: Native or Corrected
    Index panel_width = 0;                       ///< columns a panel
    Index inner_block = 0;  ///< columns of one compact WY factor T inside a leaf; 0: trees of batches on a GPU
    std::variant<HouseholderPlan, TreePlan, CholeskyPlan, GramSchmidtPlan> choices;  ///< of the method
    std::optional<PivotPlan> pivoting{};
    bool positive_diagonal = false;
    bool check_finite = true;
    bool verify = false;
    /// The table of `quoin tune` by whose times Auto chose the method (`TuningTable::id`); 0: the built-in table, or no
    /// choice. A plan states its method, and gives the same bits under any table.
    std::uint32_t tuning = 0;
    /// Memory that the factorization takes beyond A: R, T, Q of a wide A, copies, and sums over rows. Left out is what
    /// threads have in their caches, about 1 MiB each, and of a tree the leaves of all threads but one; on a GPU up to
    /// 256 MiB of the libraries. The fallback of a method without its certificate may take more.
    double workspace_bytes = 0;
    double flops = 0;        ///< of the chosen method
    double bytes_moved = 0;  ///< between memory and caches, each pass over A counted once

    /// Return these choices, or their defaults if the method has no such choices.
    HouseholderPlan householder() const;
    TreePlan tree() const;
    Method fallback() const;
    GramSchmidtPlan gram_schmidt() const;
};

/// Results of a factorization. A negative number was not measured.
struct Report {
    Method method = Method::Auto;  ///< the method whose answer is returned
    bool fell_back = false;        ///< the planned method could not certify its answer
    /// Time of the factorization without verification. On a GPU, calls that wait (least_squares, svd) measure it
    /// between two events. Calls that do not wait (qr, StreamingR) leave it negative: time these by events, or around
    /// `Context::wait`.
    double seconds = 0;
    double flops = 0;
    /// With pivoting: columns of Q if there is a limit; without one the number of |r_jj| > max(m, n) u max |r_ii|.
    Index rank = -1;
    Index dependent_columns = 0;  ///< of reorthogonalised Gram-Schmidt: r_jj = 0, and q_j completes Q
    double gram_departure = -1;  ///< certificate of CholeskyQR: ‖I − Q₁ᵀQ₁‖_F before the last pass, or its bound
    /// κ₁(A D) by a sketch, with D scaling columns to unit norm, if randomized CholeskyQR found dependent columns. Q
    /// and R are then the factors of A with perturbations of 8√n u ‖a_j‖. Infinite if columns of A are zero.
    double perturbed_condition = -1;
    double orthogonality = -1;  ///< ‖I − QᵀQ‖_F, with Options::verify
    double residual = -1;       ///< ‖A − QR‖_F / ‖A‖_F, with Options::verify
};

/// Chooses method, tree and block sizes for an m×n matrix. Pure: touches no data, allocates nothing. The first choice
/// of Auto in a process reads the table of `quoin tune`, if there is one (quoin/tuning.hpp).
///
/// Throws InvalidArgument for negative sizes and for options outside their domain (leaf_rows below panel_width, fan_in
/// of 1, CholeskyQR or Gram-Schmidt of a wide matrix, reflectors of Gram-Schmidt, an arithmetic that the method, type
/// or device does not have ...); the message names the option.
///
///     Context<Host> ctx;
///     Plan plan = plan_qr<double>(ctx, 1000000, 192);
///     std::puts(to_string(plan).c_str());
template <class T, class D>
Plan plan_qr(const Context<D>& ctx, Index m, Index n, Options options = {});

/// A step of a factorization, and the kernel that runs it, in words, with its file in src/host or src/cuda.
struct KernelUse {
    std::string step, kernel;
};
/// Returns the kernels that run a plan on D, step by step. Panels with one kernel are one step. Needs no device.
///
///     for (const auto& [step, kernel] : kernels_of<Host>(plan)) std::puts((step + ": " + kernel).c_str());
template <class D>
std::vector<KernelUse> kernels_of(const Plan& plan);

/// "auto", "householder", "tsqr", "caqr", "cholesky-qr2", "randomized-cholesky-qr", "mgs", "cgs".
const char* to_string(Method method);
/// Returns every method, in the order above.
std::span<const Method> every_method();
/// "any", "none", "explicit", "reflectors".
const char* to_string(QForm q);
/// "auto", "recurrence", "joined".
const char* to_string(FullTRoute route);
/// "auto", "greedy", "randomized", "strong".
const char* to_string(Pivots pivots);
/// "auto", "native", "fp16", "corrected".
const char* to_string(Arithmetic arithmetic);
/// "off", "selective", "always".
const char* to_string(Reorthogonalization reorthogonalization);
/// "auto", "mgs", "cholesky-qr2".
const char* to_string(GramSchmidtPanel panel);
/// Describes the plan in one paragraph: method, blocks, flops, bytes and workspace.
std::string to_string(const Plan& plan);

}  // namespace quoin
