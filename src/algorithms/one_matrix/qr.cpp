// The front of the library: checks, scaling, and the choice among the algorithms.

#include "quoin/qr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "algorithms/one_matrix/batch_tree.hpp"
#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/one_matrix/factorization.hpp"
#include "algorithms/one_matrix/gram_schmidt.hpp"
#include "algorithms/one_matrix/pivoted_qr.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/one_matrix/reconstruct_householder.hpp"
#include "algorithms/one_matrix/solver_steps.hpp"
#include "algorithms/one_matrix/tsqr_caqr.hpp"
#include "algorithms/shared/column_scaling.hpp"
#include "algorithms/shared/matrix_checks.hpp"
#include "algorithms/shared/wall_seconds.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// Whether one tree of batches factors A, which is only read.
template <class D>
bool is_tree_of_batches(const Plan& plan) {
    return Tuning<D>::has_batched_trees && is_tree(plan.method) && plan.panel_width >= plan.cols;
}
/// Whether the method itself detects columns that are not finite or out of range. A tree of batches would wait for
/// that.
template <class D>
bool finds_range(const Plan& plan) {
    return plan.method == Method::CholeskyQR2 || (is_tree_of_batches<D>(plan) && plan.check_finite);
}

/// Returns a matrix in the caller's memory, or one without data.
template <class T, class D>
Matrix<T, D> borrowed(MatrixView<T, D> A) {
    return A.data ? Matrix<T, D>::over(A) : Matrix<T, D>();
}

/// The caller's memory for a thin Q (m×k) and R (k×n), whose columns follow each other. Without data, a factorization
/// allocates its own.
template <class T, class D>
struct ThinOutput {
    MatrixView<T, D> Q, R;

    Matrix<T, D> q(const Context<D>& ctx, Index m, Index k) const {
        return Q.data ? borrowed(Q) : Matrix<T, D>(ctx, m, k);
    }
    Matrix<T, D> r(const Context<D>& ctx, Index k, Index n) const {
        return R.data ? borrowed(R) : Matrix<T, D>(ctx, k, n);
    }
};

/// Runs the planned method on A and stores its result, in the memory of `out` if that has data.
template <class T, class D>
class Factorizer {
public:
    Factorizer(Context<D>& ctx, Factorization<T, D>& f, ThinOutput<T, D> out)
        : ctx_(ctx), f_(f), plan_(f.plan), out_(out) {
        f_.report.method = plan_.method;
        f_.report.flops = plan_.flops;
    }

    /// Factors A, whose columns must be finite and scaled, in `memory`, which is moved from, and which has A, unless
    /// one tree of batches reads A where it is. CholeskyQR and such a tree check the columns themselves unless
    /// `checked`, and return false with A unchanged. `rest` prepares the columns right of the first panel, on the
    /// context.
    bool factor(InputView<T, D> A, Matrix<T, D>& memory, bool checked, OverlappedWork rest = OverlappedWork()) {
        forest_.A = std::move(memory);
        if (is_cholesky(plan_.method) || is_tree_of_batches<D>(plan_)) {
            if (is_cholesky(plan_.method) ? by_cholesky(checked) : by_batches(A, checked)) return true;
            memory = std::move(forest_.A);
            return false;
        }
        if (is_gram_schmidt(plan_.method)) {
            by_gram_schmidt();
        } else {
            by_reflectors(plan_.method, std::move(rest));
        }
        return true;
    }

    /// Factors A P, as `factor` does A, for columns that are scaled by `exponents` (n×1, or without data), which are
    /// permuted with them.
    void factor_pivoted(Matrix<T, D>& A, MatrixView<int, D> exponents) {
        forest_.A = std::move(A);
        const Index r = factor_with_pivots(ctx_, plan_, forest_, exponents, f_.order);
        if (plan_.pivoting->has_limit()) f_.kept = k_ = r;
        hold_panels({});
    }

    /// Factors A P by CholeskyQR2 with greedy pivots P of AᵀA, in `memory`, which has A. Returns false with A unchanged
    /// if they are not proved, or A is out of range.
    bool factor_with_gram_pivots(Matrix<T, D>& memory) {
        if (plan_.cols > max_pivoted_gram(ctx_)) return false;
        Matrix<Index, D> order(ctx_, plan_.cols, 1);
        forest_.A = std::move(memory);
        if (!by_cholesky(false, order.view())) {
            memory = std::move(forest_.A);
            return false;
        }
        const Matrix<Index, Host> chosen = host_copy_of<Index, D>(ctx_, order.view());
        f_.order.assign(chosen.data(), chosen.data() + plan_.cols);
        return true;
    }

    /// Computes R alone, and only reads A. Returns false as `factor` does.
    bool factor_r_only(InputView<T, D> A, bool checked) {
        const Index n = A.cols;
        Matrix<T, D> R = new_r();
        if (plan_.method == Method::CholeskyQR2) {
            const auto passes = cholesky_passes<T, D>(ctx_, CholeskyChain::OfA, false, A, {}, R.view());
            f_.report.gram_departure = passes.gram_departure;
            if (passes.state == Passes::State::Certified) {
                hold_r(std::move(R));
                return true;
            }
            if (passes.state == Passes::State::Unusable && !checked) return false;
            fall_back(passes);
        }
        if (plan_.panel_width >= n) {
            if (!tsqr_r_only<T, D>(ctx_, plan_, A, checked, R.view())) return false;
            hold_r(std::move(R));
            return true;
        }
        R = {};
        forest_.A = Matrix<T, D>::aligned(ctx_, A.rows, n);
        load<T>(ctx_, A, forest_.A.view());
        by_reflectors(plan_.fallback());
        return true;
    }

private:
    using Passes = CholeskyPasses<T, D>;

    void by_reflectors(Method method, OverlappedWork rest = OverlappedWork()) {
        if constexpr (Tuning<D>::has_batched_trees) {
            if (is_tree(method)) return static_cast<void>(by_batches(std::as_const(forest_.A).view(), true));
        }
        std::optional<Plan> other;
        if (method != plan_.method) other.emplace(plan_).method = method;
        const Plan& plan = other ? *other : plan_;
        lay_out_panels(ctx_, plan, forest_);
        Matrix<T, D> ST;
        if (method == Method::BlockedHouseholder) {
            // one panel's T is all of T
            const bool by_recurrence =
                plan.q.full_t && plan.q.full_t->route == FullTRoute::Recurrence && forest_.panels.size() > 1;
            if (by_recurrence) ST = Matrix<T, D>(ctx_, plan.rows, k_);
            factor_blocked_householder(ctx_, plan, forest_.view(), ST.view(), std::move(rest));
        } else if constexpr (!Tuning<D>::has_batched_trees) {
            factor_trees(ctx_, forest_);
        }
        hold_panels(std::move(ST));
    }

    /// Holds R and the panels of the forest as the plan requires. `ST` as in `hold_reflectors`.
    void hold_panels(Matrix<T, D>&& ST) {
        if (plan_.q == QForm::None) return hold_r(copy_of_r());
        if (plan_.q == QForm::Explicit) {
            Matrix<T, D> R = copy_of_r();
            form_q_in_place(ctx_, forest_.view(), plan_.arithmetic);
            return hold_explicit_q(std::move(R));
        }
        if (plan_.q == QForm::Reflectors && !forest_.lapack_format()) {
            Matrix<T, D> R = copy_of_r();
            form_q_in_place(ctx_, forest_.view(), plan_.arithmetic);
            reconstruct(R.view());
        }
        hold_reflectors(std::move(ST));
    }

    /// Factors A by trees of batches, in the forest's memory if there are several panels. Q is formed there.
    bool by_batches(InputView<T, D> A, bool checked) {
        TreeQ<T, D> q{{}, new_r()};
        if (!q.factor(ctx_, plan_, A, forest_.A.view(), checked)) return false;
        if (plan_.q == QForm::Any) {
            Matrix<T, D> memory = std::exchange(forest_, {}).A;
            if (!checked && q.panels[0].tree.is_one_matrix()) {
                auto one = std::make_unique<SmallBatch<T, D>>(std::move(q.panels[0].tree).take_matrix());
                f_.holder.template emplace<SmallQ<T, D>>(std::move(one), std::move(memory));
            } else {
                f_.holder.template emplace<TreeQ<T, D>>(std::move(q));
            }
            return true;
        }
        if (plan_.q != QForm::None) q.form_q(ctx_, forest_.A.view().col_block({0, k_}));
        q.panels.clear();
        if (plan_.q == QForm::Reflectors) reconstruct(q.R.view());
        hold_as_planned(std::move(q.R));
        return true;
    }

    void by_gram_schmidt() {
        Matrix<T, D> R = new_r();
        set_zero(ctx_, R.view());
        GramSchmidtBasis<T, D> basis(ctx_, plan_, plan_.cols);
        f_.report.dependent_columns = basis.orthonormalize(ctx_, forest_.A.view(), R.view(), 0).dependent;
        hold_as_planned(std::move(R));
    }

    /// Factors A, or A P if there is an `order` for greedy pivots P. Returns false with A unchanged if the pivots
    /// are not proved. Unless `checked`, also if A is out of range.
    bool by_cholesky(bool checked, MatrixView<Index, D> order = {}) {
        using State = typename Passes::State;
        const auto A = forest_.A.view();
        Matrix<T, D> R = new_r();
        const auto chain = plan_.method == Method::RandomizedCholeskyQR     ? CholeskyChain::Sketched
                           : plan_.fallback() == Method::Auto || order.data ? CholeskyChain::OfA
                           : checked                                        ? CholeskyChain::SketchedIfRefusedOrZero
                                                                            : CholeskyChain::SketchedIfRefused;
        const bool reflectors = plan_.q == QForm::Reflectors;
        if (reflectors) lay_out_one_panel();
        OverlappedWork nothing;
        const auto passes =
            reflectors ? factor_by_cholesky<T, D>(ctx_, chain, A, forest_.Tf.view(), R.view(), nothing)
                       : cholesky_passes<T, D>(ctx_, chain, plan_.q != QForm::None, A, A, R.view(), {}, {}, order);
        f_.report.gram_departure = passes.gram_departure;
        f_.report.perturbed_condition = passes.perturbed_condition;
        if (passes.state == State::Unusable && !checked) return false;
        if (passes.state == State::Refused && order.data) return false;
        if (passes.state == State::Certified) {
            if (passes.sketched) answered_by(Method::RandomizedCholeskyQR);
            hold_as_planned(std::move(R));
            return true;
        }
        fall_back(passes);
        if (passes.state != State::Improved) {
            by_reflectors(plan_.fallback());
            return true;
        }
        // A = Q₁ R₁ and Q₁ = Q R₂, so R = R₂ R₁
        Matrix<T, D> R1 = copy_of<T, D>(ctx_, R.view()), R2(ctx_, k_, k_);
        by_reflectors(plan_.fallback());
        copy_triangle<T>(ctx_, f_.r(), R2.view());
        multiply_upper<T>(ctx_, R2.view(), R1.view(), R1.view());
        store_triangle<T>(ctx_, R1.view(), f_.r());
        return true;
    }

    void fall_back(const Passes& passes) {
        if (plan_.fallback() == Method::Auto) report_breakdown(plan_.method, passes.column);
        answered_by(plan_.fallback());
    }

    void answered_by(Method method) {
        f_.report.method = method;
        f_.report.fell_back = method != plan_.method;
    }

    /// Returns a k×n matrix for R. There is one at a time.
    Matrix<T, D> new_r() const { return out_.r(ctx_, k_, plan_.cols); }
    Matrix<T, D> copy_of_r() {
        Matrix<T, D> R = new_r();
        copy_triangle<T>(ctx_, forest_.A.view().row_block({0, k_}), R.view());
        return R;
    }

    void hold_r(Matrix<T, D>&& R) {
        forest_ = {};
        f_.holder.template emplace<RAlone<T, D>>(RAlone<T, D>{std::move(R)});
    }

    /// Holds R and Q. The first k columns of the forest's A are the thin Q.
    void hold_explicit_q(Matrix<T, D>&& R) {
        Matrix<T, D> Q = std::move(forest_.A);
        if (k_ < plan_.cols) {
            const Matrix<T, D> wide = std::exchange(Q, out_.q(ctx_, plan_.rows, k_));
            copy<T>(ctx_, wide.view().col_block({0, k_}), Q.view());
        }
        forest_ = {};
        f_.holder.template emplace<ExplicitQ<T, D>>(std::move(Q), std::move(R));
    }

    /// Holds R and, as the plan requires, nothing else, the reflectors, or Q of the forest.
    void hold_as_planned(Matrix<T, D>&& R) {
        if (plan_.q == QForm::None) return hold_r(std::move(R));
        if (plan_.q == QForm::Reflectors) return hold_reflectors({});
        hold_explicit_q(std::move(R));
    }

    /// Holds the reflectors, with T or S if the plan requires them. `ST` has both from the recurrence, or no data.
    void hold_reflectors(Matrix<T, D>&& ST) {
        Matrix<T, D> full_t = plan_.q.full_t && k_ > 0 ? full_t_of(std::move(ST)) : Matrix<T, D>();
        f_.holder.template emplace<ReflectorQ<T, D>>(ReflectorQ<T, D>{std::move(forest_), std::move(full_t)});
    }

    Matrix<T, D> full_t_of(Matrix<T, D>&& ST) {
        const Index m = plan_.rows;
        const auto& forest = std::as_const(forest_);
        if (ST.rows() > 0) {
            if (plan_.q.full_t->keep_s) return std::move(ST);
            if (m == k_) {
                copy_triangle<T>(ctx_, ST.view(), ST.view());
                return std::move(ST);
            }
            Matrix<T, D> Tf(ctx_, k_, k_);
            copy_triangle<T>(ctx_, ST.view().row_block({0, k_}), Tf.view());
            return Tf;
        }
        if (forest.panels.size() == 1 && !plan_.q.full_t->keep_s) return {};
        Matrix<T, D> Tf(ctx_, k_, k_);
        {
            const Span span(ctx_, "T");
            join_t<T, D>(ctx_, forest.view(), Tf.view());
        }
        if (!plan_.q.full_t->keep_s) return Tf;
        const Span span(ctx_, "S");
        Matrix<T, D> S(ctx_, m, k_);
        form_s<T>(ctx_, forest.A.view().col_block({0, k_}), Tf.view(), S.view());
        store_triangle<T>(ctx_, Tf.view(), S.view().row_block({0, k_}));
        return S;
    }

    /// Lays out one panel of all columns, in LAPACK's format.
    void lay_out_one_panel() {
        lay_out_panels(ctx_, householder_plan(plan_.rows, plan_.cols, std::max<Index>(1, k_)), forest_);
    }

    /// Turns A, which has the thin Q in its first columns, into one panel in LAPACK's format.
    void reconstruct(MatrixView<T, D> R) {
        lay_out_one_panel();
        const Span span(ctx_, "reconstruction");
        const auto A = forest_.A.view();
        reconstruct_householder<T, D>(ctx_, A.col_block({0, k_}), R, forest_.Tf.view());
        copy<T>(ctx_, R.col_block({k_, A.cols}), A.block({0, k_}, {k_, A.cols}));
    }

    Context<D>& ctx_;
    Factorization<T, D>& f_;
    const Plan& plan_;
    const ThinOutput<T, D> out_;
    Index k_ = std::min(plan_.rows, plan_.cols);  // columns of Q
    ReflectorForest<T, D> forest_;                // A, until it is held
};

template <class T, class D>
void measure_accuracy(Context<D>& ctx, MatrixView<const T, D> A, QR<T, D>& f) {
    const Matrix<T, D> Q = f.form_q(ctx), R = f.r(ctx);
    Matrix<T, D> AP;
    if (!f.permutation().empty()) {
        AP = copy_of<T, D>(ctx, A);
        permute(ctx, Inside::of(f).order, AP.view());
        A = AP.view();
    }
    Report& report = Inside::of(f).report;
    report.orthogonality = orthogonality<T>(ctx, Q.view());
    report.residual = residual<T>(ctx, A, Q.view(), R.view());
}

/// Whether R can be computed while a column-major A is only read.
template <class D>
bool reads_only(const Plan& plan) {
    return plan.q == QForm::None && plan.rows >= plan.cols &&
           (plan.method == Method::TSQR || plan.method == Method::CholeskyQR2 || is_tree_of_batches<D>(plan));
}

/// Computes R alone. Copies A only if its columns have to be scaled.
template <class T, class D>
QR<T, D> r_alone(Context<D>& ctx, InputView<T, D> A, const Plan& plan, ThinOutput<T, D> out) {
    const auto start = std::chrono::steady_clock::now();
    QR<T, D> f = Inside::planned<T, D>(plan);
    auto& held = Inside::of(f);
    Factorizer<T, D> factorizer(ctx, held, out);
    // CholeskyQR sees in its first Gram matrix whether a scan is needed, and a tree of batches in its first triangles
    if (!finds_range<D>(plan) || !factorizer.factor_r_only(A, false)) {
        ColumnScaling<T, D> scaling(ctx, A);
        if (scaling.needed(ctx, plan.check_finite)) {
            Matrix<T, D> copied = Matrix<T, D>::aligned(ctx, A.rows, A.cols);
            load<T>(ctx, A, copied.view());
            scaling.scale(ctx, copied.view());
            factorizer.factor_r_only(copied.view(), true);
            scaling.unscale(ctx, Part::Upper, held.r());
        } else {
            factorizer.factor_r_only(A, true);
        }
    }
    held.report.seconds = wall_seconds<D>(start);
    return f;
}

/// Throws NonFiniteEntry for the first bad entry of A, if the matrix `bad` of a batch, here A alone, has one.
template <class T, class D>
void refuse_if(Context<D>& ctx, Index bad, InputView<T, D> A) {
    if (bad < 0) return;
    const Matrix<T, D> copied = loaded<T, D>(ctx, A);
    require_finite<T, D>(ctx, copied.view());
}

/// Returns A as a batch of one matrix.
template <class T, class D>
BatchView<const T, D> one_of(InputView<T, D> A) {
    return {A.data, A.rows, A.cols, A.by_rows ? A.ld : 1, A.by_rows ? 1 : A.ld, 0, 1};
}

/// Factors A by one kernel of the device. A is only read. `memory` has A, if A was moved in, or no data.
template <class T, class D>
QR<T, D> in_one_launch(Context<D>& ctx, InputView<T, D> A, Matrix<T, D>&& memory, const Plan& plan,
                       ThinOutput<T, D> out) {
    throw_if_stopped(ctx);
    const auto start = std::chrono::steady_clock::now();
    const Index m = plan.rows, n = plan.cols;
    QR<T, D> f = Inside::planned<T, D>(plan);
    auto& held = Inside::of(f);
    held.report.method = plan.method;
    held.report.flops = plan.flops;
    if (plan.q == QForm::None || plan.q == QForm::Explicit) {
        const Index k = std::min(m, n);
        Matrix<T, D> R = out.r(ctx, k, n), Q;
        if (plan.q == QForm::Explicit) Q = memory.rows() > 0 && n <= m ? std::move(memory) : out.q(ctx, m, k);
        const Index bad =
            SmallBatch<T, D>::factor_to(ctx, m, n, one_of(A), one_member, plan.check_finite, Factor::R,
                                        one_of(R.view()), Q.rows() > 0 ? one_of(Q.view()) : BatchView<T, D>());
        refuse_if(ctx, bad, A);
        if (plan.q == QForm::None) {
            held.holder.template emplace<RAlone<T, D>>(RAlone<T, D>{std::move(R)});
        } else {
            held.holder.template emplace<ExplicitQ<T, D>>(std::move(Q), std::move(R));
        }
    } else {
        auto small = std::make_unique<SmallBatch<T, D>>(ctx, m, n, 1, &memory);
        refuse_if(ctx, small->factor(ctx, one_of(A), one_member, plan.check_finite), A);
        held.holder.template emplace<SmallQ<T, D>>(std::move(small), std::move(memory));
    }
    held.report.seconds = wall_seconds<D>(start);
    return f;
}

/// Makes R's diagonal non-negative by R := D R and Q := Q D. D of reflectors is kept in `signs`.
template <class T, class D>
void choose_signs(Context<D>& ctx, QR<T, D>& f) {
    auto& held = Inside::of(f);
    Matrix<T, D> signs(ctx, held.k(), 1);
    // a factorization in one launch holds no R
    diagonal_signs<T>(ctx, held.r().data ? held.r() : f.r(ctx).view(), signs.view());
    auto* basis = held.explicit_q();
    if (!basis && held.plan.q != QForm::None) {
        held.signs = std::move(signs);
        return;
    }
    flip_triangle<T, D>(ctx, signs.view(), held.r());
    if (basis) flip_columns<T>(ctx, signs.view(), basis->Q.view());
}

template <class T, class D>
QR<T, D> factored(Context<D>& ctx, InputView<T, D> A, const Plan& plan, Matrix<T, D> memory, ThinOutput<T, D> out = {});

/// Computes the pivots and R of a tall A from its R without pivots, which needs no copy of A. Returns nothing if that R
/// overflows.
template <class T, class D>
std::optional<QR<T, D>> pivoted_r_alone(Context<D>& ctx, InputView<T, D> A, const Plan& plan) {
    const auto start = std::chrono::steady_clock::now();
    Plan of_A = plan;
    of_A.pivoting.reset();
    of_A.positive_diagonal = false;
    QR<T, D> unpivoted = factored<T, D>(ctx, A, of_A, {});
    Matrix<T, D> R = unpivoted.r(ctx);
    if (!std::isfinite(entry_norms<T>(ctx, R.view()).largest)) return {};
    Options options{.q = QForm::None, .pivoting = *plan.pivoting, .check_finite = false};
    QR<T, D> f = factored<T, D>(ctx, InputView<T, D>(R.view()), plan_qr<T>(ctx, R.rows(), R.cols(), options), {});
    auto& held = Inside::of(f);
    Report& report = held.report;
    const double flops = report.flops;
    held.plan = plan;
    report = unpivoted.report();
    report.flops += flops;
    report.rank = held.kept ? *held.kept : numerical_rank<T, D>(ctx, std::max(plan.rows, plan.cols), held.r());
    report.seconds = wall_seconds<D>(start);
    return f;
}

/// Whether CholeskyQR2 is to choose the pivots in its first Gram matrix.
inline bool takes_gram_pivots(const Plan& plan) {
    return plan.pivoting->chosen_first && plan.pivoting->kind == Pivots::Greedy && plan.method == Method::CholeskyQR2 &&
           plan.q != QForm::Reflectors;
}

/// Factors A P by a plan with pivoting, in `memory`, which has A.
template <class T, class D>
QR<T, D> with_pivots(Context<D>& ctx, const Plan& plan, Matrix<T, D> memory) {
    const auto start = std::chrono::steady_clock::now();
    const auto finished = [&](QR<T, D> f) {
        auto& held = Inside::of(f);
        // a factorization in one launch holds no R
        held.report.rank = held.kept ? *held.kept
                                     : numerical_rank<T, D>(ctx, std::max(plan.rows, plan.cols),
                                                            held.r().data ? held.r() : f.r(ctx).view());
        held.report.seconds = wall_seconds<D>(start);
        return f;
    };
    QR<T, D> f = Inside::planned<T, D>(plan);
    if (takes_gram_pivots(plan) && Factorizer<T, D>(ctx, Inside::of(f), {}).factor_with_gram_pivots(memory))
        return finished(std::move(f));
    const Arithmetic arithmetic = plan.pivoting->chosen_first ? Arithmetic::Native : plan.arithmetic;
    ColumnScaling<T, D> scaling(ctx, memory.view(), arithmetic, plan.cols);
    const bool is_scaled = scaling.needed(ctx, plan.check_finite) || arithmetic != Arithmetic::Native;
    const MatrixView<int, D> exponents = is_scaled ? scaling.exponents() : MatrixView<int, D>();
    if (is_scaled) scaling.scale(ctx, memory.view());
    if (plan.pivoting->chosen_first) {
        const std::vector<Index> order = pivots_of<T, D>(ctx, *plan.pivoting, memory.view(), exponents);
        if (is_scaled) scaling.unscale(ctx, Part::All, memory.view());
        permute(ctx, order, memory.view());
        Plan of_permuted = plan;
        of_permuted.pivoting.reset();
        of_permuted.verify = of_permuted.check_finite = of_permuted.positive_diagonal = false;
        const InputView<T, D> AP = memory.view();
        f = factored<T, D>(ctx, AP, of_permuted, std::move(memory));
        Inside::of(f).plan = plan;
        Inside::of(f).order = order;
    } else {
        Factorizer<T, D>(ctx, Inside::of(f), {}).factor_pivoted(memory, exponents);
        if (is_scaled) scaling.unscale(ctx, Part::Upper, Inside::of(f).r());
    }
    return finished(std::move(f));
}

/// Factors A by the plan, in `memory` (m×n), which may have A itself, unless A is only read. Without data it is
/// allocated. The signs of R are as they come.
template <class T, class D>
QR<T, D> factored_with_any_signs(Context<D>& ctx, InputView<T, D> A, const Plan& plan, Matrix<T, D> memory,
                                 ThinOutput<T, D> out) {
    if (reads_only<D>(plan) && !plan.pivoting) return r_alone<T, D>(ctx, A, plan, out);
    const bool in_memory = A.data == memory.data(), verify = plan.verify && plan.q != QForm::None;
    Matrix<T, D> original;
    if (verify && (A.by_rows || in_memory)) original = loaded<T, D>(ctx, A);
    const auto given = original.rows() > 0 ? std::as_const(original).view() : A.stored();
    if (plan.householder().one_launch && !plan.pivoting) {
        QR<T, D> f = in_one_launch<T, D>(ctx, A, std::move(memory), plan, out);
        if (verify) measure_accuracy<T, D>(ctx, given, f);
        return f;
    }
    if (plan.pivoting && plan.pivoting->chosen_first && plan.q == QForm::None) {
        if (auto f = pivoted_r_alone<T, D>(ctx, A, plan)) return std::move(*f);
    }
    const auto load_it = [&] {
        if (!memory.data()) memory = Matrix<T, D>::aligned(ctx, A.rows, A.cols);
        if (!in_memory) load<T>(ctx, A, memory.view());
    };
    const bool finds = finds_range<D>(plan), is_read = is_tree_of_batches<D>(plan) && finds;
    if (!is_read) {
        load_it();
    } else if (plan.q != QForm::Any && !memory.data()) {
        memory = Matrix<T, D>::aligned(ctx, A.rows, A.cols);
    }
    if (plan.pivoting) {
        QR<T, D> f = with_pivots<T, D>(ctx, plan, std::move(memory));
        if (verify) measure_accuracy<T, D>(ctx, given, f);
        return f;
    }
    const auto start = std::chrono::steady_clock::now();
    QR<T, D> f = Inside::planned<T, D>(plan);
    auto& held = Inside::of(f);
    Factorizer<T, D> factorizer(ctx, held, out);
    if (!finds || !factorizer.factor(is_read ? A : InputView<T, D>(memory.view()), memory, false)) {
        if (is_read) load_it();
        // on a GPU the scan of A is read after the factorization, unless the method waits for the device anyway:
        // CholeskyQR, which would refuse A first, and Gram-Schmidt
        const bool at_once = !Tuning<D>::asynchronous || is_cholesky(plan.method) || is_gram_schmidt(plan.method);
        const bool blocked = plan.method == Method::BlockedHouseholder;
        // one scan of all of A costs less than the multiprocessors that the first panel would leave to a scan of the
        // rest
        const bool all = at_once || !blocked || plan.arithmetic == Arithmetic::Native;
        ColumnScaling<T, D> scaling(ctx, memory.view(), plan.arithmetic,
                                    all ? plan.cols : std::min(plan.panel_width, plan.cols));
        const bool is_scaled =
            !at_once || scaling.needed(ctx, plan.check_finite) || plan.arithmetic != Arithmetic::Native;
        if (is_scaled) scaling.scale(ctx, memory.view());
        OverlappedWork rest;
        if (scaling.tail_cols() > 0) {
            rest = OverlappedWork([&, view = memory.view()] { scaling.scale_tail(ctx, view); });
        }
        factorizer.factor(memory.view(), memory, true, std::move(rest));
        if (is_scaled) scaling.unscale(ctx, Part::Upper, held.r());
        if (!at_once && plan.check_finite) scaling.needed(ctx, true);
    }
    held.report.seconds = wall_seconds<D>(start);
    if (verify) measure_accuracy<T, D>(ctx, given, f);
    return f;
}

template <class T, class D>
QR<T, D> factored(Context<D>& ctx, InputView<T, D> A, const Plan& plan, Matrix<T, D> memory, ThinOutput<T, D> out) {
    QR<T, D> f = factored_with_any_signs<T, D>(ctx, A, plan, std::move(memory), out);
    if (plan.positive_diagonal) choose_signs(ctx, f);
    return f;
}

template <class T, class D>
void check_input(InputView<T, D> A) {
    check_storage(A.data, A.rows, A.cols, A.by_rows ? A.cols : A.rows, A.by_rows ? "cols" : "rows", A.ld);
}
/// Throws InvalidArgument unless the memory for `name` is a rows×cols matrix.
template <class T, class D>
void require_shape(const char* name, MatrixView<T, D> A, Index rows, Index cols) {
    check_matrix(MatrixView<const T, D>(A));
    if (A.rows == rows && A.cols == cols) return;
    throw InvalidArgument(fmt::format("{} is {} x {}, and its memory {} x {}", name, rows, cols, A.rows, A.cols));
}

/// Returns the caller's memory if work in it takes no longer than in memory of the library, else a view without data.
template <class T, class D>
MatrixView<T, D> usable(MatrixView<T, D> A) {
    return A.ld == std::max<Index>(1, Matrix<T, D>::aligned_ld(A.rows)) ? A : MatrixView<T, D>();
}
/// B := A, unless A is in B's memory.
template <class T, class D>
void deliver(Context<D>& ctx, const Matrix<T, D>& A, MatrixView<T, D> B) {
    if (A.data() != B.data) copy<T>(ctx, A.view(), B);
}

}  // namespace

template <class T, class D>
QR<T, D> qr(Context<D>& ctx, Matrix<T, D>&& A, const Plan& plan) {
    if (A.rows() != plan.rows || A.cols() != plan.cols || plan.scalar != scalar_kind<T>) {
        throw InvalidArgument(fmt::format("the plan is for {} x {} {}, and A is {} x {} {}", plan.rows, plan.cols,
                                          to_string(plan.scalar), A.rows(), A.cols(), to_string(scalar_kind<T>)));
    }
    const InputView<T, D> view = A.view();
    return factored<T, D>(ctx, view, plan, std::move(A));
}

template <class T, class D>
QR<T, D> qr(Context<D>& ctx, InputView<T, D> A, Options options) {
    check_input(A);
    return factored<T, D>(ctx, A, plan_qr<T>(ctx, A.rows, A.cols, options), {});
}

template <class T, class D>
void qr(Context<D>& ctx, InputView<T, D> A, View<T, D> Q, View<T, D> R, Options options) {
    check_input(A);
    require_unpivoted(options, "qr that writes Q and R to the caller's memory");
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    options.q = Q.data ? QForm::Explicit : QForm::None;
    options.verify = false;
    if (Q.data) require_shape<T, D>("Q", Q, m, k);
    require_shape<T, D>("R", R, k, n);
    const ThinOutput<T, D> out{usable(Q), usable(R)};
    QR<T, D> f =
        factored<T, D>(ctx, A, plan_qr<T>(ctx, m, n, options), borrowed(n <= m ? out.Q : MatrixView<T, D>()), out);
    const ThinQR<T, D> thin = std::move(f).take_thin(ctx);
    deliver(ctx, thin.R, R);
    if (Q.data) deliver(ctx, thin.Q, Q);
}

template <class T, class D>
void qr_lapack(Context<D>& ctx, InputView<T, D> A, View<T, D> V_R, View<T, D> tau, Options options) {
    check_input(A);
    require_unpivoted(options, "qr_lapack");
    require_any_signs(options, "qr_lapack");
    options.q = QForm::Reflectors;
    options.verify = false;
    require_shape<T, D>("V_R", V_R, A.rows, A.cols);
    require_shape<T, D>("tau", tau, std::min(A.rows, A.cols), 1);
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, options);
    if (plan.householder().one_launch) {
        const Index bad = SmallBatch<T, D>::factor_to(ctx, A.rows, A.cols, one_of(A), one_member, plan.check_finite,
                                                      Factor::VR, one_of(V_R), one_of(tau));
        return refuse_if(ctx, bad, A);
    }
    const LapackQR<T, D> factors = to_lapack<T, D>(ctx, factored<T, D>(ctx, A, plan, borrowed(usable(V_R))));
    deliver(ctx, factors.V_R, V_R);
    deliver(ctx, factors.tau, tau);
}

#define QUOIN_INSTANTIATE(T, D)                                                            \
    template QR<T, D> qr<T, D>(Context<D>&, InputView<T, D>, Options);                     \
    template QR<T, D> qr<T, D>(Context<D>&, Matrix<T, D>&&, const Plan&);                  \
    template void qr<T, D>(Context<D>&, InputView<T, D>, View<T, D>, View<T, D>, Options); \
    template void qr_lapack<T, D>(Context<D>&, InputView<T, D>, View<T, D>, View<T, D>, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
