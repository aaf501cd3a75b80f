// Imports and exports LAPACK's format, and its compact WY form Q = I − V T Vᵀ as a whole.

#include <fmt/format.h>

#include "algorithms/one_matrix/reconstruct_householder.hpp"
#include "algorithms/one_matrix/solver_steps.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// Returns the forest if it is in LAPACK's format, else null.
template <class T, class D>
const ReflectorForest<T, D>* find_lapack_forest(Context<D>& ctx, const QR<T, D>& f) {
    const auto* held = Inside::of(f).reflectors(ctx);
    return held && held->forest.lapack_format() ? &held->forest : nullptr;
}

template <class T, class D>
const ReflectorForest<T, D>& lapack_forest(Context<D>& ctx, const QR<T, D>& f, const char* what) {
    if (const auto* forest = find_lapack_forest(ctx, f)) return *forest;
    throw InvalidArgument(fmt::format(
        "{} belongs to LAPACK's format, which this factorization by {} does not keep: ask for q = reflectors", what,
        to_string(f.report().method)));
}

/// Returns V and R of a small Q in LAPACK's format, in `memory` if that has data.
template <class T, class D>
Matrix<T, D> unpacked(Context<D>& ctx, const SmallQ<T, D>& small, Index m, Index n, Matrix<T, D>&& memory = {}) {
    Matrix<T, D> V_R = memory.rows() > 0 ? std::move(memory) : Matrix<T, D>(ctx, m, n);
    small.batch->unpack(ctx, Factor::VR, one_member, one_of(V_R.view()));
    return V_R;
}
template <class T, class D>
Matrix<T, D> unpacked_tau(Context<D>& ctx, const SmallQ<T, D>& small, Index k) {
    Matrix<T, D> tau(ctx, k, 1);
    small.batch->unpack_tau(ctx, one_member, one_of(tau.view()));
    return tau;
}

/// Takes V below the diagonal and R above it. The factorization has no Q afterwards.
template <class T, class D>
Matrix<T, D> take_v_and_r(Context<D>& ctx, QR<T, D>& f) {
    auto& held = Inside::of(f);
    auto* small = held.small_q();
    Matrix<T, D> V_R = small ? unpacked(ctx, *small, f.rows(), f.cols(), std::move(small->memory))
                             : std::move(held.reflectors()->forest.A);
    if (held.kept) set_zero(ctx, V_R.view().block({held.k(), f.rows()}, {held.k(), f.cols()}));
    held.holder.template emplace<std::monostate>();
    return V_R;
}

/// Returns V with its ones and zeros, for reflectors that are stored below the diagonal of A.
template <class T, class D>
Matrix<T, D> unit_lower(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<T, D> V = copy_of(ctx, A);
    set_root<T>(ctx, V.view());
    return V;
}

}  // namespace

template <class T, class D>
Matrix<T, D> QR<T, D>::v(Context<D>& ctx) const {
    const auto& forest = lapack_forest(ctx, *this, "V");
    return unit_lower(ctx, forest.A.view().col_block({0, inside_->k()}));
}

template <class T, class D>
Matrix<T, D> QR<T, D>::tau(Context<D>& ctx) const {
    if (const auto* small = inside_->small_q()) return unpacked_tau(ctx, *small, std::min(rows(), cols()));
    const auto& forest = lapack_forest(ctx, *this, "tau");
    Matrix<T, D> tau(ctx, inside_->k(), 1);
    for (const Panel& panel : forest.panels) {
        copy_diagonal<T>(ctx, forest.panel_t(panel),
                         tau.view().row_block({panel.first, panel.first + panel.tree.width}));
    }
    return tau;
}

template <class T, class D>
Matrix<T, D> QR<T, D>::t(Context<D>& ctx) const {
    const auto& forest = lapack_forest(ctx, *this, "T");
    const Index k = inside_->k();
    Matrix<T, D> Tf(ctx, k, k);
    const auto wy = inside_->full_wy();
    if (wy.Tf.data) {
        copy_triangle<T>(ctx, wy.Tf, Tf.view());
    } else {
        join_t<T, D>(ctx, forest.view(), Tf.view());
    }
    return Tf;
}

template <class T, class D>
Matrix<T, D> QR<T, D>::s(Context<D>& ctx) const {
    const auto& forest = lapack_forest(ctx, *this, "S");
    const Index m = rows(), k = inside_->k();
    Matrix<T, D> S(ctx, m, k);
    const auto wy = inside_->full_wy();
    if (wy.S.data) {
        copy<T>(ctx, wy.S, S.view());
        // zeros above the diagonal
        Matrix<T, D> Lt = transposed<T, D>(ctx, wy.S.row_block({0, k}));
        copy_triangle<T>(ctx, Lt.view(), Lt.view());
        transpose<T>(ctx, Lt.view(), S.view().row_block({0, k}));
    } else {
        form_s<T>(ctx, forest.A.view().col_block({0, k}), wy.Tf.data ? wy.Tf : t(ctx).view(), S.view());
    }
    return S;
}

namespace {

/// Returns V and R of LAPACK's format, and one T of all columns, from any other holder of Q.
template <class T, class D>
Matrix<T, D> reconstruct(Context<D>& ctx, QR<T, D>&& factorization, MatrixView<T, D> Tf) {
    const Index m = factorization.rows(), n = factorization.cols(), k = Tf.cols;
    // Q₁ = Q S: one panel of k columns, and S R; the other columns of R need only the signs
    auto [Q, R] = std::move(factorization).take_thin(ctx);
    Matrix<T, D> V_R(ctx, m, n);
    const auto V = V_R.view().col_block({0, k});
    copy<T>(ctx, std::as_const(Q).view(), V);
    reconstruct_householder<T, D>(ctx, V, R.view(), Tf);
    copy<T>(ctx, R.view().col_block({k, n}), V_R.view().block({0, k}, {k, n}));
    if (k < std::min(m, n)) set_zero(ctx, V_R.view().block({k, m}, {k, n}));
    return V_R;
}

/// Returns the plan of given reflectors in panels of `panel_width` columns (0: as Quoin chooses).
template <class T, class D>
Plan plan_of_given(const Context<D>& ctx, Index m, Index n, Index panel_width) {
    Options options;
    options.method = BlockedHouseholder{panel_width};
    options.q = QForm::Reflectors;
    Plan plan = plan_qr<T>(ctx, m, n, options);
    factor_by_panels(plan);
    return plan;
}

/// Returns a factorization in LAPACK's format that lacks its T, for given reflectors.
template <class T, class D>
QR<T, D> imported(Context<D>& ctx, Matrix<T, D>&& V_R, const Plan& plan) {
    QR<T, D> f = Inside::planned<T, D>(plan);
    Inside::of(f).report.method = Method::BlockedHouseholder;
    auto& forest = Inside::of(f).holder.template emplace<ReflectorQ<T, D>>().forest;
    lay_out_panels(ctx, plan, forest);
    forest.A = std::move(V_R);
    return f;
}

void check_block(const char* operation, Index nb, Index k) {
    if (nb >= 1 && nb <= std::max<Index>(1, k)) return;
    throw InvalidArgument(
        fmt::format("{}: blocks of T have 1 to {} columns, and not {}", operation, std::max<Index>(1, k), nb));
}

}  // namespace

template <class T, class D>
LapackQR<T, D> to_lapack(Context<D>& ctx, QR<T, D>&& factorization) {
    const Index k = Inside::of(factorization).k();
    Inside::of(factorization).require_q("to_lapack");
    require_orthonormal(factorization.plan(), "to_lapack");
    LapackQR<T, D> result;
    auto& held = Inside::of(factorization);
    if (auto* small = held.small_q()) {
        if (auto taken = small->batch->take_lapack()) {
            held.holder.template emplace<std::monostate>();
            return *std::move(taken);
        }
    }
    if (held.small_q() || find_lapack_forest(ctx, factorization)) {
        result.tau = factorization.tau(ctx);
        result.V_R = take_v_and_r(ctx, factorization);
        return result;
    }
    result.tau = Matrix<T, D>(ctx, k, 1);
    Matrix<T, D> Tf(ctx, k, k);
    result.V_R = reconstruct(ctx, std::move(factorization), Tf.view());
    copy_diagonal<T>(ctx, Tf.view(), result.tau.view());
    return result;
}

template <class T, class D>
LapackQRT<T, D> to_lapack_t(Context<D>& ctx, QR<T, D>&& factorization, Index nb) {
    const Index m = factorization.rows(), k = Inside::of(factorization).k();
    Inside::of(factorization).require_q("to_lapack_t");
    require_orthonormal(factorization.plan(), "to_lapack_t");
    check_block("to_lapack_t", nb, k);
    LapackQRT<T, D> result;
    result.Tf = Matrix<T, D>(ctx, nb, k);
    set_zero(ctx, result.Tf.view());
    const auto block_of = [&](Range J) { return result.Tf.view().block({0, J.size()}, J); };
    const auto for_each_block = [&](auto copy_block) {
        for (Index j = 0; j < k; j += nb) copy_block(Range{j, std::min(k, j + nb)});
    };
    const auto* forest = find_lapack_forest(ctx, factorization);
    if (!forest) {
        Matrix<T, D> Tf(ctx, k, k);
        result.V_R = reconstruct(ctx, std::move(factorization), Tf.view());
        for_each_block([&](Range J) { copy_triangle<T>(ctx, Tf.view().block(J, J), block_of(J)); });
        return result;
    }
    const auto wy = Inside::of(factorization).full_wy();
    if (wy.Tf.data) {
        for_each_block([&](Range J) { copy_triangle<T>(ctx, wy.Tf.block(J, J), block_of(J)); });
    } else if (nb == k) {
        join_t<T, D>(ctx, forest->view(), result.Tf.view());
    } else {
        const Matrix<T, D> tau = factorization.tau(ctx);
        const PanelColumns columns(factorization.plan());
        for_each_block([&](Range J) {
            const Panel& panel = forest->panels[static_cast<std::size_t>(columns.panel_of(J.begin))];
            const Range within{J.begin - panel.first, J.end - panel.first};
            if (within.end <= panel.tree.width) {
                copy_triangle<T>(ctx, forest->panel_t(panel).block(within, within), block_of(J));
            } else {
                compact_wy<T>(ctx, forest->A.view().block({J.begin, m}, J), tau.view().row_block(J), block_of(J));
            }
        });
    }
    result.V_R = take_v_and_r(ctx, factorization);
    return result;
}

template <class T, class D>
const ReflectorQ<T, D>& SmallQ<T, D>::reflectors(Context<D>& ctx, const Plan& plan) const {
    return reflectors_.get(ctx, [&] {
        const Index m = plan.rows, n = plan.cols;
        QR<T, D> f = from_lapack<T, D>(ctx, {unpacked(ctx, *this, m, n), unpacked_tau(ctx, *this, std::min(m, n))});
        return std::move(*Inside::of(f).reflectors());
    });
}

template <class T, class D>
QR<T, D> of_reflectors(Context<D>& ctx, const Plan& plan, Matrix<T, D>&& V_R, View<const T, D> tau) {
    QR<T, D> f = imported(ctx, std::move(V_R), plan);
    auto& forest = Inside::of(f).reflectors()->forest;
    for (const Panel& panel : forest.panels) {
        compact_wy<T>(ctx, forest.panel_a(panel), tau.row_block({panel.first, panel.first + panel.tree.width}),
                      forest.panel_t(panel));
    }
    return f;
}

template <class T, class D>
QR<T, D> from_lapack(Context<D>& ctx, LapackQR<T, D>&& factors) {
    const Index m = factors.V_R.rows(), n = factors.V_R.cols(), k = std::min(m, n);
    if (factors.tau.rows() != k || (k > 0 && factors.tau.cols() != 1)) {
        throw InvalidArgument(fmt::format("from_lapack: tau is {} x {}, and V_R is {} x {}", factors.tau.rows(),
                                          factors.tau.cols(), m, n));
    }
    return of_reflectors<T, D>(ctx, plan_of_given<T>(ctx, m, n, 0), std::move(factors.V_R), factors.tau.view());
}

template <class T, class D>
QR<T, D> from_lapack_t(Context<D>& ctx, LapackQRT<T, D>&& factors) {
    const Index m = factors.V_R.rows(), n = factors.V_R.cols(), k = std::min(m, n), nb = factors.Tf.rows();
    check_block("from_lapack_t", nb, k);
    if (factors.Tf.cols() != k) {
        throw InvalidArgument(
            fmt::format("from_lapack_t: Tf is {} x {}, and V_R is {} x {}", nb, factors.Tf.cols(), m, n));
    }
    QR<T, D> f = imported(ctx, std::move(factors.V_R), plan_of_given<T>(ctx, m, n, nb));
    auto& forest = Inside::of(f).reflectors()->forest;
    for (const Panel& panel : forest.panels) {
        const Index w = panel.tree.width;
        copy_triangle<T>(ctx, factors.Tf.view().block({0, w}, {panel.first, panel.first + w}), forest.panel_t(panel));
    }
    return f;
}

#define QUOIN_INSTANTIATE(T, D)                                                 \
    template struct SmallQ<T, D>;                                               \
    template Matrix<T, D> QR<T, D>::v(Context<D>&) const;                       \
    template Matrix<T, D> QR<T, D>::tau(Context<D>&) const;                     \
    template Matrix<T, D> QR<T, D>::t(Context<D>&) const;                       \
    template Matrix<T, D> QR<T, D>::s(Context<D>&) const;                       \
    template LapackQR<T, D> to_lapack<T, D>(Context<D>&, QR<T, D> &&);          \
    template decltype(of_reflectors<T, D>) of_reflectors<T, D>;                 \
    template QR<T, D> from_lapack<T, D>(Context<D>&, LapackQR<T, D> &&);        \
    template LapackQRT<T, D> to_lapack_t<T, D>(Context<D>&, QR<T, D>&&, Index); \
    template QR<T, D> from_lapack_t<T, D>(Context<D>&, LapackQRT<T, D> &&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
