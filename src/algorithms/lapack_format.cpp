// LAPACK's format: in, out, and its compact WY form Q = I − V T Vᵀ as a whole.

#include <fmt/format.h>

#include "algorithms/factorization.hpp"
#include "algorithms/solver_steps.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

template <class T, class D>
bool holds_lapack_format(const QR<T, D>& f) {
    const auto& impl = f.impl();
    return !impl.is_explicit && impl.plan.q != QForm::None && impl.forest.A.rows() == f.rows() &&
           impl.forest.lapack_format();
}

template <class T, class D>
const ReflectorForest<T, D>& lapack_forest(const QR<T, D>& f, const char* what) {
    if (holds_lapack_format(f)) return f.impl().forest;
    throw InvalidArgument(fmt::format(
        "{} belongs to LAPACK's format, which this factorization by {} does not keep: ask for q = reflectors", what,
        to_string(f.report().method)));
}

/// V of reflectors that are stored below the diagonal of A: its ones and zeros too.
template <class T, class D>
Matrix<T, D> unit_lower(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<T, D> V = copy_of(ctx, A);
    set_root<T>(ctx, V.view());
    return V;
}

}  // namespace

template <class T, class D>
Matrix<T, D> QR<T, D>::v(Context<D>& ctx) const {
    const auto& forest = lapack_forest(*this, "V");
    return unit_lower(ctx, forest.A.view().col_block({0, std::min(rows(), cols())}));
}

template <class T, class D>
Matrix<T, D> QR<T, D>::tau(Context<D>& ctx) const {
    const auto& forest = lapack_forest(*this, "tau");
    Matrix<T, D> tau(ctx, std::min(rows(), cols()), 1);
    for (const Panel& panel : forest.panels) {
        copy_diagonal<T>(ctx, forest.panel_t(panel),
                         tau.view().row_block({panel.first, panel.first + panel.tree.width}));
    }
    return tau;
}

template <class T, class D>
Matrix<T, D> QR<T, D>::t(Context<D>& ctx) const {
    const auto& forest = lapack_forest(*this, "T");
    const Index k = std::min(rows(), cols());
    Matrix<T, D> Tf(ctx, k, k);
    const auto wy = impl_->full_wy();
    if (wy.Tf.data) {
        copy_triangle<T>(ctx, wy.Tf, Tf.view());
    } else {
        join_t<T, D>(ctx, forest.view(), Tf.view());
    }
    return Tf;
}

template <class T, class D>
Matrix<T, D> QR<T, D>::s(Context<D>& ctx) const {
    const auto& forest = lapack_forest(*this, "S");
    const Index m = rows(), k = std::min(m, cols());
    Matrix<T, D> S(ctx, m, k);
    const auto wy = impl_->full_wy();
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

/// V and R of LAPACK's format, with one T of all columns, from any other holder of Q.
template <class T, class D>
Matrix<T, D> reconstruct(Context<D>& ctx, QR<T, D>&& factorization, MatrixView<T, D> Tf) {
    const Index m = factorization.rows(), n = factorization.cols(), k = std::min(m, n);
    // Q₁ = Q S: one panel of k columns, and S R; the columns of R right of it need only the signs
    Matrix<T, D> R = factorization.r(ctx), V_R(ctx, m, n);
    const auto V = V_R.view().col_block({0, k});
    copy<T>(ctx, std::move(factorization).take_q(ctx).view(), V);
    reconstruct_householder<T, D>(ctx, V, R.view(), Tf);
    copy<T>(ctx, R.view().col_block({k, n}), V_R.view().block({0, k}, {k, n}));
    return V_R;
}

template <class T, class D>
void require_kept_q(const QR<T, D>& f, const char* operation) {
    if (f.plan().q == QForm::None) {
        throw InvalidArgument(
            fmt::format("{} needs Q, and the factorization was asked for R alone (q = none)", operation));
    }
}

/// An empty factorization in LAPACK's format, for reflectors that are given.
template <class T, class D>
QR<T, D> imported(Context<D>& ctx, Matrix<T, D>&& V_R, Index panel_width) {
    QR<T, D> f(std::make_unique<typename QR<T, D>::Impl>());
    auto& impl = f.impl();
    Options options;
    options.method = Method::BlockedHouseholder;
    options.q = QForm::Reflectors;
    options.panel_width = panel_width;
    impl.plan = plan_qr<T>(ctx, V_R.rows(), V_R.cols(), options);
    impl.report.method = Method::BlockedHouseholder;
    lay_out_panels(ctx, impl.plan, impl.forest);
    impl.forest.A = std::move(V_R);
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
    const Index k = std::min(factorization.rows(), factorization.cols());
    require_kept_q(factorization, "to_lapack");
    require_orthonormal(factorization.plan(), "to_lapack");
    LapackQR<T, D> result;
    if (holds_lapack_format(factorization)) {
        result.tau = factorization.tau(ctx);
        result.V_R = std::move(factorization.impl().forest.A);
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
    const Index m = factorization.rows(), k = std::min(m, factorization.cols());
    require_kept_q(factorization, "to_lapack_t");
    require_orthonormal(factorization.plan(), "to_lapack_t");
    check_block("to_lapack_t", nb, k);
    LapackQRT<T, D> result;
    result.Tf = Matrix<T, D>(ctx, nb, k);
    set_zero(ctx, result.Tf.view());
    const auto block_of = [&](Range J) { return result.Tf.view().block({0, J.size()}, J); };
    const auto for_each_block = [&](auto copy_block) {
        for (Index j = 0; j < k; j += nb) copy_block(Range{j, std::min(k, j + nb)});
    };
    if (!holds_lapack_format(factorization)) {
        Matrix<T, D> Tf(ctx, k, k);
        result.V_R = reconstruct(ctx, std::move(factorization), Tf.view());
        for_each_block([&](Range J) { copy_triangle<T>(ctx, Tf.view().block(J, J), block_of(J)); });
        return result;
    }
    auto& forest = factorization.impl().forest;
    const auto wy = factorization.impl().full_wy();
    if (wy.Tf.data) {
        for_each_block([&](Range J) { copy_triangle<T>(ctx, wy.Tf.block(J, J), block_of(J)); });
    } else if (nb == k) {
        join_t<T, D>(ctx, std::as_const(forest).view(), result.Tf.view());
    } else {
        const Matrix<T, D> tau = factorization.tau(ctx);
        const Index width = factorization.plan().panel_width;
        for_each_block([&](Range J) {
            const Panel& panel = forest.panels[static_cast<std::size_t>(J.begin / width)];
            const Range within{J.begin - panel.first, J.end - panel.first};
            if (within.end <= panel.tree.width) {
                copy_triangle<T>(ctx, forest.panel_t(panel).block(within, within), block_of(J));
            } else {
                compact_wy<T>(ctx, forest.A.view().block({J.begin, m}, J), tau.view().row_block(J), block_of(J));
            }
        });
    }
    result.V_R = std::move(forest.A);
    return result;
}

template <class T, class D>
QR<T, D> from_lapack(Context<D>& ctx, LapackQR<T, D>&& factors) {
    const Index m = factors.V_R.rows(), n = factors.V_R.cols(), k = std::min(m, n);
    if (factors.tau.rows() != k || (k > 0 && factors.tau.cols() != 1)) {
        throw InvalidArgument(fmt::format("from_lapack: tau is {} x {}, and V_R is {} x {}", factors.tau.rows(),
                                          factors.tau.cols(), m, n));
    }
    QR<T, D> f = imported(ctx, std::move(factors.V_R), 0);
    auto& forest = f.impl().forest;
    for (const Panel& panel : forest.panels) {
        compact_wy<T>(ctx, forest.panel_a(panel),
                      factors.tau.view().row_block({panel.first, panel.first + panel.tree.width}),
                      forest.panel_t(panel));
    }
    return f;
}

template <class T, class D>
QR<T, D> from_lapack_t(Context<D>& ctx, LapackQRT<T, D>&& factors) {
    const Index m = factors.V_R.rows(), n = factors.V_R.cols(), k = std::min(m, n), nb = factors.Tf.rows();
    check_block("from_lapack_t", nb, k);
    if (factors.Tf.cols() != k) {
        throw InvalidArgument(
            fmt::format("from_lapack_t: Tf is {} x {}, and V_R is {} x {}", nb, factors.Tf.cols(), m, n));
    }
    QR<T, D> f = imported(ctx, std::move(factors.V_R), nb);
    auto& forest = f.impl().forest;
    for (const Panel& panel : forest.panels) {
        const Index w = panel.tree.width;
        copy_triangle<T>(ctx, factors.Tf.view().block({0, w}, {panel.first, panel.first + w}), forest.panel_t(panel));
    }
    return f;
}

#define QUOIN_INSTANTIATE(T, D)                                                 \
    template Matrix<T, D> QR<T, D>::v(Context<D>&) const;                       \
    template Matrix<T, D> QR<T, D>::tau(Context<D>&) const;                     \
    template Matrix<T, D> QR<T, D>::t(Context<D>&) const;                       \
    template Matrix<T, D> QR<T, D>::s(Context<D>&) const;                       \
    template LapackQR<T, D> to_lapack<T, D>(Context<D>&, QR<T, D> &&);          \
    template QR<T, D> from_lapack<T, D>(Context<D>&, LapackQR<T, D> &&);        \
    template LapackQRT<T, D> to_lapack_t<T, D>(Context<D>&, QR<T, D>&&, Index); \
    template QR<T, D> from_lapack_t<T, D>(Context<D>&, LapackQRT<T, D> &&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
