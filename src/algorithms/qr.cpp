// The front of the library: checks, scaling, the choice among the algorithms, and the operations of a factorization.

#include "quoin/qr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "algorithms/column_scaling.hpp"
#include "algorithms/gram_schmidt.hpp"
#include "algorithms/solver_steps.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// `column` of the breakdown, or −1.
[[noreturn]] void report_breakdown(Method method, Index column) {
    if (column >= 0) {
        throw NumericalBreakdown(fmt::format("{}: the Gram matrix is not numerically positive definite at column {}",
                                             to_string(method), column),
                                 column);
    }
    throw NumericalBreakdown(
        fmt::format("{}: the matrix is too ill-conditioned for a certified answer", to_string(method)), 0);
}

/// Everything that becomes of A between the checks and the report.
template <class T, class D>
class Factorizer {
public:
    using Impl = typename QR<T, D>::Impl;

    Factorizer(Context<D>& ctx, Impl& f) : ctx_(ctx), f_(f) {}

    /// A in its own memory, whose columns are scaled and finite. CholeskyQR finds out by itself whether they are: false
    /// then, and A is as it was.
    bool factor(Matrix<T, D>&& A, bool checked) {
        const Plan& plan = f_.plan;
        f_.report.method = plan.method;
        f_.report.flops = plan.flops;
        f_.forest.A = std::move(A);
        if (is_cholesky(plan.method)) return by_cholesky(checked);
        if (is_gram_schmidt(plan.method)) {
            by_gram_schmidt();
        } else {
            by_reflectors(plan);
        }
        return true;
    }

    /// R alone, with A only read; the same convention.
    bool factor_r_only(MatrixView<const T, D> A, bool checked) {
        const Plan& plan = f_.plan;
        const Index n = A.cols;
        f_.report.method = plan.method;
        f_.report.flops = plan.flops;
        f_.R = Matrix<T, D>(ctx_, n, n);
        if (plan.method == Method::CholeskyQR2) {
            const auto passes = cholesky_passes<T, D>(ctx_, false, false, A, {}, f_.R.view());
            f_.report.gram_departure = passes.gram_departure;
            if (passes.state == Passes::State::Certified) return true;
            if (passes.state == Passes::State::Unusable && !checked) return false;
            fall_back(passes);
        }
        if (plan.panel_width >= n) {
            tsqr_r_only<T, D>(ctx_, plan, A, f_.R.view());
            return true;
        }
        Plan caqr = plan;
        caqr.method = plan.fallback;
        f_.R = {};
        f_.forest.A = Matrix<T, D>(ctx_, A.rows, n);
        copy<T>(ctx_, A, f_.forest.A.view());
        by_reflectors(caqr);
        return true;
    }

private:
    using Passes = CholeskyPasses<T, D>;

    void by_reflectors(Plan plan) {
        const Index k = std::min(plan.rows, plan.cols);
        auto& forest = f_.forest;
        lay_out_panels(ctx_, plan, forest);
        if (plan.method == Method::BlockedHouseholder) {
            // one panel's T is all of T
            const bool by_recurrence =
                plan.compact_wy == CompactWY::Full && plan.full_t == FullTRoute::Recurrence && forest.panels.size() > 1;
            if (by_recurrence) f_.full_t = Matrix<T, D>(ctx_, plan.rows, k);
            factor_blocked_householder(ctx_, plan, forest.view(), f_.full_t.view());
        } else {
            factor_trees(ctx_, forest);
        }
        const bool lapack_wanted = plan.q == QForm::Reflectors && !forest.lapack_format();
        if (plan.q == QForm::Explicit || plan.q == QForm::None || lapack_wanted) take_r(k);
        if (plan.q == QForm::None) {
            forest = {};
        } else if (plan.q == QForm::Explicit || lapack_wanted) {
            form_q_in_place(ctx_, forest.view(), plan.arithmetic);
            if (lapack_wanted) {
                become_lapack();
            } else {
                become_explicit();
            }
        }
        complete_full_t();
    }

    void by_gram_schmidt() {
        const Index n = f_.plan.cols;
        f_.R = Matrix<T, D>(ctx_, n, n);
        set_zero(ctx_, f_.R.view());
        GramSchmidtBasis<T, D> basis(ctx_, f_.plan, n);
        f_.report.dependent_columns = basis.orthonormalize(ctx_, f_.forest.A.view(), f_.R.view(), 0).dependent;
        if (f_.plan.q == QForm::None) {
            f_.forest = {};
        } else {
            become_explicit();
        }
    }

    bool by_cholesky(bool checked) {
        using State = typename Passes::State;
        const Plan& plan = f_.plan;
        const Index n = plan.cols;
        const auto A = f_.forest.A.view();
        Matrix<T, D> R(ctx_, n, n);
        const bool shifted = plan.method == Method::ShiftedCholeskyQR3;
        const bool reflectors = plan.q == QForm::Reflectors;
        if (reflectors) lay_out_one_panel();
        OverlappedWork nothing;
        const auto passes = reflectors
                                ? factor_by_cholesky<T, D>(ctx_, shifted, A, f_.forest.Tf.view(), R.view(), nothing)
                                : cholesky_passes<T, D>(ctx_, shifted, plan.q != QForm::None, A, A, R.view());
        f_.report.gram_departure = passes.gram_departure;
        if (passes.state == State::Unusable && !checked) return false;
        if (passes.state == State::Certified) {
            if (reflectors) {
                complete_full_t();
                return true;
            }
            f_.R = std::move(R);
            if (plan.q == QForm::None) {
                f_.forest = {};
            } else {
                become_explicit();
            }
            return true;
        }
        fall_back(passes);
        Plan by_tree = plan;
        by_tree.method = plan.fallback;
        by_reflectors(by_tree);
        if (passes.state == State::Improved) {
            // A = Q₁ R₁ and Q₁ = Q R₂, so R = R₂ R₁
            take_r(n);
            multiply_upper<T>(ctx_, f_.R.view(), R.view(), R.view());
            f_.R = std::move(R);
            if (!f_.is_explicit && f_.forest.A.rows() > 0) {
                store_triangle<T>(ctx_, f_.R.view(), f_.forest.A.view().row_block({0, n}));
                f_.R = {};
            }
        }
        return true;
    }

    void fall_back(const Passes& passes) {
        if (f_.plan.fallback == Method::Auto) report_breakdown(f_.plan.method, passes.column);
        f_.report.method = f_.plan.fallback;
        f_.report.fell_back = true;
    }

    void take_r(Index k) {
        if (f_.R.rows() > 0 || k == 0) return;
        f_.R = Matrix<T, D>(ctx_, k, f_.plan.cols);
        copy_triangle<T>(ctx_, f_.forest.A.view().row_block({0, k}), f_.R.view());
    }

    /// What the plan wants of T and S, once the reflectors are there.
    void complete_full_t() {
        const Plan& plan = f_.plan;
        const Index m = plan.rows, k = std::min(m, plan.cols);
        const auto& forest = std::as_const(f_.forest);
        if (plan.compact_wy != CompactWY::Full || k == 0) return;
        Matrix<T, D> Tf;
        if (f_.full_t.rows() == 0) {
            if (forest.panels.size() == 1 && !plan.keep_s) return;
            Tf = Matrix<T, D>(ctx_, k, k);
            {
                const Span span(ctx_, "T");
                join_t<T, D>(ctx_, forest.view(), Tf.view());
            }
            if (plan.keep_s) {
                const Span span(ctx_, "S");
                f_.full_t = Matrix<T, D>(ctx_, m, k);
                form_s<T>(ctx_, forest.A.view().col_block({0, k}), Tf.view(), f_.full_t.view());
                store_triangle<T>(ctx_, Tf.view(), f_.full_t.view().row_block({0, k}));
                return;
            }
        } else if (plan.keep_s) {
            return;
        } else if (m == k) {
            return copy_triangle<T>(ctx_, f_.full_t.view(), f_.full_t.view());
        } else {
            Tf = Matrix<T, D>(ctx_, k, k);
            copy_triangle<T>(ctx_, f_.full_t.view().row_block({0, k}), Tf.view());
        }
        f_.full_t = std::move(Tf);
    }

    /// forest.A holds the thin Q (its first k columns).
    void become_explicit() {
        const Index m = f_.plan.rows, k = std::min(m, f_.plan.cols);
        if (k == f_.plan.cols) {
            f_.Q = std::move(f_.forest.A);
        } else {
            f_.Q = Matrix<T, D>(ctx_, m, k);
            copy<T>(ctx_, f_.forest.A.view().col_block({0, k}), f_.Q.view());
        }
        f_.forest = {};
        f_.is_explicit = true;
    }

    /// Of all columns, in LAPACK's format.
    void lay_out_one_panel() {
        Plan one = f_.plan;
        one.method = Method::BlockedHouseholder;
        one.panel_width = one.inner_block = std::max<Index>(1, std::min(one.rows, one.cols));
        f_.forest.panels.clear();
        lay_out_panels(ctx_, one, f_.forest);
    }

    /// forest.A holds the thin Q, and R is taken: one panel of all columns.
    void become_lapack() {
        const Index k = std::min(f_.plan.rows, f_.plan.cols);
        lay_out_one_panel();
        const Span span(ctx_, "reconstruction");
        const auto A = f_.forest.A.view(), R = f_.R.view();
        reconstruct_householder<T, D>(ctx_, A.col_block({0, k}), R, f_.forest.Tf.view());
        copy<T>(ctx_, R.col_block({k, A.cols}), A.block({0, k}, {k, A.cols}));
        f_.R = {};
    }

    Context<D>& ctx_;
    Impl& f_;
};

template <class T, class D>
void measure_accuracy(Context<D>& ctx, MatrixView<const T, D> A, QR<T, D>& f) {
    const Matrix<T, D> Q = f.form_q(ctx), R = f.r(ctx);
    f.impl().report.orthogonality = orthogonality<T>(ctx, Q.view());
    f.impl().report.residual = residual<T>(ctx, A, Q.view(), R.view());
}

/// `contiguous` elements (the `rows` of a column-major matrix, the `cols` of a row-major one) lie next to each other.
void check_storage(const void* data, Index rows, Index cols, Index contiguous, const char* direction, Index ld) {
    if (rows < 0 || cols < 0) {
        throw InvalidArgument(fmt::format("a matrix cannot have {} rows and {} columns", rows, cols));
    }
    if (ld < std::max<Index>(1, contiguous)) {
        throw InvalidArgument(fmt::format("ld must be at least max(1, {}) = {}, and is {}", direction,
                                          std::max<Index>(1, contiguous), ld));
    }
    if (!data && rows > 0 && cols > 0) throw InvalidArgument("the matrix has no data");
}

template <class T, class D>
void check_matrix(MatrixView<const T, D> A) {
    check_storage(A.data, A.rows, A.cols, A.rows, "rows", A.ld);
}

/// −1 on devices where the work may still be on its way when the call returns.
template <class D>
double wall_seconds(std::chrono::steady_clock::time_point start) {
    if constexpr (!std::is_same_v<D, Host>) return -1;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

namespace {

/// Whether R is found while A is only read.
bool reads_only(const Plan& plan) {
    return plan.q == QForm::None && plan.rows >= plan.cols &&
           (plan.method == Method::TSQR || plan.method == Method::CholeskyQR2);
}

/// R back to A's scale, wherever it is kept.
template <class T, class D>
void unscale_r(Context<D>& ctx, const ColumnScaling<T, D>& scaling, typename QR<T, D>::Impl& f) {
    scaling.unscale(ctx, Part::Upper,
                    f.R.rows() > 0 ? f.R.view() : f.forest.A.view().row_block({0, std::min(f.plan.rows, f.plan.cols)}));
}

/// R alone. A copy is made only where A's columns have to be scaled.
template <class T, class D>
QR<T, D> r_alone(Context<D>& ctx, MatrixView<const T, D> A, const Plan& plan) {
    const auto start = std::chrono::steady_clock::now();
    QR<T, D> f(std::make_unique<typename QR<T, D>::Impl>());
    f.impl().plan = plan;
    Factorizer<T, D> factorizer(ctx, f.impl());
    // CholeskyQR sees in its first Gram matrix whether a scan is needed
    if (!is_cholesky(plan.method) || !factorizer.factor_r_only(A, false)) {
        ColumnScaling<T, D> scaling(ctx, A);
        if (scaling.needed(ctx, plan.check_finite)) {
            Matrix<T, D> AD(ctx, A.rows, A.cols);
            copy<T>(ctx, A, AD.view());
            scaling.scale(ctx, AD.view());
            factorizer.factor_r_only(AD.view(), true);
            unscale_r(ctx, scaling, f.impl());
        } else {
            factorizer.factor_r_only(A, true);
        }
    }
    f.impl().report.seconds = wall_seconds<D>(start);
    return f;
}

}  // namespace

template <class T, class D>
QR<T, D> qr(Context<D>& ctx, Matrix<T, D>&& A, const Plan& plan) {
    if (A.rows() != plan.rows || A.cols() != plan.cols || plan.element_bytes != static_cast<int>(sizeof(T))) {
        throw InvalidArgument(fmt::format("the plan is for {} x {} elements of {} bytes, and A is {} x {} of {}",
                                          plan.rows, plan.cols, plan.element_bytes, A.rows(), A.cols(), sizeof(T)));
    }
    if (reads_only(plan)) {
        QR<T, D> f = r_alone<T, D>(ctx, A.view(), plan);
        A = {};
        return f;
    }
    Matrix<T, D> original;
    if (plan.verify && plan.q != QForm::None) {
        original = Matrix<T, D>(ctx, A.rows(), A.cols());
        copy<T>(ctx, A.view(), original.view());
    }
    const auto start = std::chrono::steady_clock::now();
    QR<T, D> f(std::make_unique<typename QR<T, D>::Impl>());
    f.impl().plan = plan;
    Factorizer<T, D> factorizer(ctx, f.impl());
    if (!is_cholesky(plan.method) || !factorizer.factor(std::move(A), false)) {
        if (is_cholesky(plan.method)) A = std::move(f.impl().forest.A);
        // what A holds is asked when the work is done, unless that is known already, or CholeskyQR would refuse it first, or
        // Gram-Schmidt, which asks all the time; trees do not touch what is right of their first panel before its leaves are
        // factored
        const bool at_once = std::is_same_v<D, Host> || is_cholesky(plan.method) || is_gram_schmidt(plan.method);
        const bool by_panels = !at_once && plan.method != Method::BlockedHouseholder;
        ColumnScaling<T, D> scaling(ctx, A.view(), plan.arithmetic,
                                    by_panels ? std::min(plan.panel_width, plan.cols) : plan.cols);
        const SideWork beside(ctx);
        if (at_once) scaling.needed(ctx, plan.check_finite);
        scaling.scale(ctx, A.view());
        factorizer.factor(std::move(A), true);
        unscale_r(ctx, scaling, f.impl());
        if (!at_once && plan.check_finite) scaling.needed(ctx, true);
    }
    f.impl().report.seconds = wall_seconds<D>(start);
    if (plan.verify && plan.q != QForm::None) measure_accuracy<T, D>(ctx, original.view(), f);
    return f;
}

template <class T, class D>
QR<T, D> qr(Context<D>& ctx, MatrixView<const T, D> A, Options options) {
    check_matrix(A);
    Plan plan = plan_qr<T>(ctx, A.rows, A.cols, options);
    if (reads_only(plan)) return r_alone<T, D>(ctx, A, plan);
    plan.verify = false;  // the caller's A is the original: no second copy
    Matrix<T, D> work(ctx, A.rows, A.cols);
    copy<T>(ctx, A, work.view());
    QR<T, D> f = qr<T, D>(ctx, std::move(work), plan);
    if (options.verify && options.q != QForm::None) measure_accuracy<T, D>(ctx, A, f);
    return f;
}

template <class T>
QR<T, Host> qr(Context<Host>& ctx, RowMajorView<const T> A, Options options) {
    check_storage(A.data, A.rows, A.cols, A.cols, "cols", A.ld);
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, options);
    Matrix<T> work(A.rows, A.cols);
    transpose<T>(ctx, MatrixView<const T>(A.data, A.cols, A.rows, A.ld), work.view());
    return qr<T, Host>(ctx, std::move(work), plan);
}

// ---- The operations of a factorization ---------------------------------------------------------------------------------

template <class T, class D>
QR<T, D>::QR(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
template <class T, class D>
QR<T, D>::QR(QR&&) noexcept = default;
template <class T, class D>
QR<T, D>& QR<T, D>::operator=(QR&&) noexcept = default;
template <class T, class D>
QR<T, D>::~QR() = default;

template <class T, class D>
Index QR<T, D>::rows() const {
    return impl_->plan.rows;
}
template <class T, class D>
Index QR<T, D>::cols() const {
    return impl_->plan.cols;
}
template <class T, class D>
const Plan& QR<T, D>::plan() const {
    return impl_->plan;
}
template <class T, class D>
const Report& QR<T, D>::report() const {
    return impl_->report;
}

namespace {

/// Of a product of op(Q), in blocks of `width` reflectors, with p columns.
template <class D>
Arithmetic product_arithmetic(const Plan& plan, Index width, Index p) {
    const bool pays = Tuning<D>::corrected_product_pays(plan.rows, width, p);
    return pays && plan.products == Arithmetic::Corrected ? Arithmetic::Corrected : Arithmetic::Native;
}
/// Of one of op(Q(r, c)) with p columns.
template <class D>
Arithmetic block_arithmetic(const Plan& plan, Range r, Range c, Index p) {
    const bool pays = Tuning<D>::corrected_block_pays(r.size(), c.size(), std::min(plan.rows, plan.cols), p);
    return pays && plan.products == Arithmetic::Corrected ? Arithmetic::Corrected : Arithmetic::Native;
}

template <class T, class D>
void require_q(const QR<T, D>& f, const char* operation) {
    const auto& impl = f.impl();
    const bool spent = impl.is_explicit ? impl.Q.rows() != f.rows() : impl.forest.A.rows() != f.rows();
    if (impl.plan.q == QForm::None) {
        throw InvalidArgument(
            fmt::format("{} needs Q, and the factorization was asked for R alone (q = none)", operation));
    }
    if (spent) throw InvalidArgument(fmt::format("{} of a factorization whose Q was taken", operation));
}

}  // namespace

template <class T, class D>
Matrix<T, D> QR<T, D>::r(Context<D>& ctx) const {
    const Index k = std::min(rows(), cols());
    Matrix<T, D> R(ctx, k, cols());
    const bool apart = impl_->is_explicit || impl_->plan.q == QForm::None;
    if (!apart) require_q(*this, "r");
    copy_triangle<T>(ctx, apart ? impl_->R.view() : impl_->forest.A.view().row_block({0, k}), R.view());
    return R;
}

template <class T, class D>
void QR<T, D>::apply_q(Context<D>& ctx, Side side, Op op, MatrixView<T, D> C) const {
    require_q(*this, "apply_q");
    check_matrix(MatrixView<const T, D>(C));
    const Index m = rows(), touched = side == Side::Left ? C.rows : C.cols;
    if (touched != m) {
        throw InvalidArgument(fmt::format("apply_q: C is {} x {}, and Q is {} x {}", C.rows, C.cols, m, m));
    }
    if (C.empty() || std::min(m, cols()) == 0) return;
    const Span span(ctx, "apply Q");
    const auto wy = impl_->full_wy();
    const auto from_left = [&](Op op_left, MatrixView<T, D> B) {
        if (impl_->is_explicit) {
            return apply_basis<T, D>(ctx, impl_->Q.view(), impl_->kernel(ctx), op_left, B);
        }
        const Index width = wy.V.data ? wy.V.cols : impl_->plan.panel_width;
        const Arithmetic arithmetic = product_arithmetic<D>(impl_->plan, width, B.cols);
        const UnitColumns<T, D> unit(ctx, arithmetic, B);
        if (wy.V.data) {
            apply_full_wy<T, D>(ctx, wy, op_left, B, arithmetic);
        } else {
            apply_forest<T, D>(ctx, std::as_const(impl_->forest).view(), op_left, B, arithmetic);
        }
        unit.restore(ctx, B);
    };
    if (side == Side::Left) return from_left(op, C);
    apply_from_right(ctx, op, C, from_left);
}

template <class T, class D>
Matrix<T, D> QR<T, D>::form_q(Context<D>& ctx) const {
    require_q(*this, "form_q");
    const Index m = rows(), k = std::min(m, cols());
    Matrix<T, D> Q(ctx, m, k);
    if (impl_->is_explicit) {
        copy<T>(ctx, impl_->Q.view(), Q.view());
        return Q;
    }
    ReflectorForest<T, D> forest;
    forest.panels = impl_->forest.panels;
    forest.A = std::move(Q);
    copy<T>(ctx, impl_->forest.A.view().col_block({0, k}), forest.A.view());
    forest.Tf = Matrix<T, D>(ctx, impl_->forest.Tf.rows(), impl_->forest.Tf.cols());
    copy<T>(ctx, impl_->forest.Tf.view(), forest.Tf.view());
    form_q_in_place(ctx, forest.view(), impl_->plan.arithmetic);
    return std::move(forest.A);
}

template <class T, class D>
Matrix<T, D> QR<T, D>::take_q(Context<D>& ctx) && {
    require_q(*this, "take_q");
    if (impl_->is_explicit) return std::move(impl_->Q);
    if (cols() > rows()) {
        Matrix<T, D> Q = form_q(ctx);
        impl_->forest = {};
        impl_->full_t = {};
        return Q;
    }
    form_q_in_place(ctx, impl_->forest.view(), impl_->plan.arithmetic);
    impl_->full_t = {};
    return std::move(impl_->forest.A);
}

namespace {

template <class T, class D>
void check_block(const QR<T, D>& f, const char* operation, Range r, Range c) {
    const Index m = f.rows();
    if (r.begin < 0 || r.end > m || r.size() < 0 || c.begin < 0 || c.end > m || c.size() < 0) {
        throw InvalidArgument(fmt::format("{}: rows [{}, {}) and columns [{}, {}) do not lie in the {} x {} Q",
                                          operation, r.begin, r.end, c.begin, c.end, m, m));
    }
}

}  // namespace

template <class T, class D>
Matrix<T, D> QR<T, D>::q_block(Context<D>& ctx, Range r, Range c) const {
    require_q(*this, "q_block");
    check_block(*this, "q_block", r, c);
    const Index m = rows();
    Matrix<T, D> B(ctx, r.size(), c.size());
    if (B.view().empty()) return B;
    const Span span(ctx, "block of Q");
    if (impl_->is_explicit && c.end <= impl_->Q.cols()) {
        copy<T>(ctx, impl_->Q.view().block(r, c), B.view());
        return B;
    }
    if (const auto wy = impl_->full_wy(); wy.V.data) {
        const Arithmetic arithmetic = block_arithmetic<D>(impl_->plan, r, c, std::min(r.size(), c.size()));
        form_full_wy_block<T, D>(ctx, wy, r, c, B.view(), arithmetic);
        return B;
    }
    // Q E_c restricted to the rows r, or (Qᵀ E_r)ᵀ restricted to the columns c: whichever has fewer columns
    const bool by_cols = c.size() <= r.size();
    const Range unit = by_cols ? c : r;
    Matrix<T, D> E(ctx, m, unit.size());
    set_identity<T>(ctx, -unit.begin, E.view());
    apply_q(ctx, Side::Left, by_cols ? Op::None : Op::Transpose, E.view());
    if (by_cols) {
        copy<T>(ctx, E.view().row_block(r), B.view());
    } else {
        transpose<T>(ctx, E.view().row_block(c), B.view());
    }
    return B;
}

template <class T, class D>
Matrix<T, D> QR<T, D>::apply_q_block(Context<D>& ctx, Op op, Range r, Range c, MatrixView<const T, D> C) const {
    require_q(*this, "apply_q_block");
    check_block(*this, "apply_q_block", r, c);
    check_matrix(C);
    const Range from = op == Op::None ? c : r, to = op == Op::None ? r : c;
    if (C.rows != from.size()) {
        throw InvalidArgument(fmt::format("apply_q_block: C is {} x {}, and op(Q(rows, cols)) is {} x {}", C.rows,
                                          C.cols, to.size(), from.size()));
    }
    Matrix<T, D> B(ctx, to.size(), C.cols);
    if (B.view().empty()) return B;
    const Span span(ctx, "apply block of Q");
    if (const auto wy = impl_->full_wy(); wy.V.data) {
        const Arithmetic arithmetic = block_arithmetic<D>(impl_->plan, r, c, C.cols);
        if (arithmetic == Arithmetic::Native) {
            apply_full_wy_block<T, D>(ctx, wy, op, r, c, C, B.view(), arithmetic);
            return B;
        }
        Matrix<T, D> CD = copy_of(ctx, C);
        const UnitColumns<T, D> unit(ctx, arithmetic, CD.view());
        apply_full_wy_block<T, D>(ctx, wy, op, r, c, CD.view(), B.view(), arithmetic);
        unit.restore(ctx, B.view());
        return B;
    }
    // the rows `to` of op(Q) [0; C; 0]
    Matrix<T, D> E(ctx, rows(), C.cols);
    set_zero(ctx, E.view());
    copy<T>(ctx, C, E.view().row_block(from));
    apply_q(ctx, Side::Left, op, E.view());
    copy<T>(ctx, E.view().row_block(to), B.view());
    return B;
}

#define QUOIN_INSTANTIATE(T, D)                                               \
    template class QR<T, D>;                                                  \
    template QR<T, D> qr<T, D>(Context<D>&, MatrixView<const T, D>, Options); \
    template QR<T, D> qr<T, D>(Context<D>&, Matrix<T, D>&&, const Plan&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

template QR<float, Host> qr<float>(Context<Host>&, RowMajorView<const float>, Options);
template QR<double, Host> qr<double>(Context<Host>&, RowMajorView<const double>, Options);

}  // namespace quoin
