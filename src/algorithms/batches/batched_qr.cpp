// The factorizations of a batch: several matrices of one shape at once if the device can, otherwise one by one.

#include "algorithms/batches/batched_qr.hpp"
#include "algorithms/one_matrix/solver_steps.hpp"
#include "algorithms/shared/matrix_checks.hpp"

namespace quoin {

namespace {

/// Calls keep(ctx, QR, i) for the members of a class that are factored alone. Returns the first with NaN or Inf, or −1.
template <class T, class D, class Keep>
Index factor_each(Context<D>& ctx, BatchView<const T, D> A, const Options& options, const ShapeClass<T, D>& c,
                  Memory memory, const Keep& keep) {
    const Plan plan = plan_qr<T>(ctx, c.m, c.n, options);
    std::vector<char> bad(c.count);
    for_each_matrix(ctx, c.count, plan.flops, memory, [&](Context<D>& mine, Index i) {
        const Index b = c.members()[i];
        try {
            keep(mine, qr<T, D>(mine, gathered<T, D>(mine, A, b), plan), i);
        } catch (const NonFiniteEntry&) {
            bad[i] = 1;
        } catch (const NumericalBreakdown& e) {
            throw NumericalBreakdown(name_of(b) + ": " + e.what(), e.column);
        }
    });
    const auto first = std::find(bad.begin(), bad.end(), 1);
    return first == bad.end() ? -1 : c.members()[first - bad.begin()];
}

/// Factors the members of a class together if their plan allows, and no entry needs care. Returns whether it did.
template <class T, class D>
bool factor_pivoted_class(Context<D>& ctx, BatchView<const T, D> A, const Options& options, ShapeClass<T, D>& c) {
    if constexpr (std::is_same_v<D, Host>) {
        if (!options.pivoting) return false;
        const Plan plan = plan_qr<T>(ctx, c.m, c.n, options);
        if (!PivotedBatch<T, D>::fits(plan)) return false;
        auto& batch = c.pivoted.emplace(ctx, plan, c.count);
        for_each_matrix(ctx, c.count, 10.0 * c.m * c.n, Memory::Kept,
                        [&](Context<D>& mine, Index i) { gather<T, D>(mine, A, c.members()[i], batch.matrices()[i]); });
        if (batch.factor(ctx)) return true;
        c.pivoted.reset();
    }
    return false;
}

/// Calls factor(class) for every class. It returns a matrix with NaN or Inf, or −1. Throws NonFiniteEntry for the first
/// such matrix.
template <class T, class D, class Factor>
void factor_classes(Context<D>& ctx, BatchView<const T, D> A, BatchedFactors<T, D>& batch, const Factor& factor) {
    Index first_bad = A.count();
    for (auto& c : batch.classes) {
        const Index bad = factor(c);
        if (bad >= 0) first_bad = std::min(first_bad, bad);
    }
    if (first_bad < A.count()) {
        require_finite<T, D>(ctx, gathered<T, D>(ctx, A, first_bad).view(), name_of(first_bad).c_str());
    }
}

/// Returns the options of a batch. Each matrix is held as reflectors, unless the caller chooses another method or R
/// alone.
Options batch_options(Options options) {
    require_any_signs(options, "a batch");
    if (options.method == Method::Auto && options.q != QForm::None) options.method = Method::BlockedHouseholder;
    return options;
}

}  // namespace

template <class T, class D>
BatchedQR<T, D> qr(Context<D>& ctx, BatchView<const T, D> A, Options options) {
    require_storage(A);
    options = batch_options(options);
    auto impl = detail::own<BatchedFactors<T, D>>(by_shape<T, D>(A));
    factor_classes<T, D>(ctx, A, *impl, [&](ShapeClass<T, D>& c) {
        if (at_once<T, D>(c.m, c.n, options)) {
            c.small.emplace(ctx, c.m, c.n, c.count);
            return c.small->factor(ctx, A, c.members(), options.check_finite);
        }
        if (factor_pivoted_class<T, D>(ctx, A, options, c)) return Index(-1);
        c.each.resize(c.count);
        const Index bad = factor_each<T, D>(ctx, A, options, c, Memory::Kept,
                                            [&](Context<D>&, QR<T, D>&& f, Index i) { c.each[i] = std::move(f); });
        if (bad < 0 && options.pivoting && options.pivoting->has_limit()) {
            c.k = 0;
            for (const auto& f : c.each) c.k = std::max(c.k, f->report().rank);
        }
        return bad;
    });
    return InsideBatch::made<T, D>(std::move(impl));
}

template <class T, class D>
void qr(Context<D>& ctx, BatchView<const T, D> A, std::type_identity_t<BatchView<T, D>> Q,
        std::type_identity_t<BatchView<T, D>> R, Options options) {
    require_storage(A);
    const auto k_of = [&](Index b) { return std::min(A.rows(b), A.cols(b)); };
    require_shapes<T, D>("R", R, A.count(), k_of, [&](Index b) { return A.cols(b); });
    require_unpivoted(options, "a batch in the caller's memory");
    const bool with_q = Q.count() > 0;
    if (with_q)
        require_shapes<T, D>(
            "Q", Q, A.count(), [&](Index b) { return A.rows(b); }, k_of);
    options.q = with_q ? QForm::Explicit : QForm::None;
    options = batch_options(options);
    auto sorted = by_shape<T, D>(A);
    factor_classes<T, D>(ctx, A, sorted, [&](ShapeClass<T, D>& c) {
        if (at_once<T, D>(c.m, c.n, options))
            return SmallBatch<T, D>::factor_to(ctx, c.m, c.n, A, c.members(), options.check_finite, Factor::R, R, Q);
        return factor_each<T, D>(ctx, A, options, c, Memory::Returned, [&](Context<D>& mine, QR<T, D>&& f, Index i) {
            const Index b = c.members()[i];
            const auto [Qb, Rb] = std::move(f).take_thin(mine);
            scatter<T, D>(mine, Rb.view(), R, b);
            if (with_q) scatter<T, D>(mine, Qb.view(), Q, b);
        });
    });
}

template <class T, class D>
void qr_lapack(Context<D>& ctx, BatchView<const T, D> A, std::type_identity_t<BatchView<T, D>> V_R,
               std::type_identity_t<BatchView<T, D>> tau, Options options) {
    require_storage(A);
    require_shapes<T, D>(
        "V_R", V_R, A.count(), [&](Index b) { return A.rows(b); }, [&](Index b) { return A.cols(b); });
    require_shapes<T, D>(
        "tau", tau, A.count(), [&](Index b) { return std::min(A.rows(b), A.cols(b)); },
        [&](Index) { return Index(1); });
    require_unpivoted(options, "a batch");
    require_any_signs(options, "a batch");
    if (options.q == QForm::Any) options.q = QForm::Reflectors;
    auto sorted = by_shape<T, D>(A);
    factor_classes<T, D>(ctx, A, sorted, [&](ShapeClass<T, D>& c) {
        if (at_once<T, D>(c.m, c.n, options))
            return SmallBatch<T, D>::factor_to(ctx, c.m, c.n, A, c.members(), options.check_finite, Factor::VR, V_R,
                                               tau);
        return factor_each<T, D>(ctx, A, options, c, Memory::Returned, [&](Context<D>& mine, QR<T, D>&& f, Index i) {
            const LapackQR<T, D> factors = to_lapack<T, D>(mine, std::move(f));
            scatter<T, D>(mine, factors.V_R.view(), V_R, c.members()[i]);
            scatter<T, D>(mine, factors.tau.view(), tau, c.members()[i]);
        });
    });
}

template <class T, class D>
Index BatchedQR<T, D>::count() const {
    return inside_->count;
}
template <class T, class D>
Index BatchedQR<T, D>::rows(Index b) const {
    return inside_->shape(b).m;
}
template <class T, class D>
Index BatchedQR<T, D>::cols(Index b) const {
    return inside_->shape(b).n;
}
template <class T, class D>
Index BatchedQR<T, D>::k(Index b) const {
    return inside_->shape(b).k;
}

namespace {

/// Calls work(ctx, QR, b) for every matrix of a class that is not small.
template <class T, class D, class Work>
void for_each_qr(Context<D>& ctx, const ShapeClass<T, D>& c, double flops, const Work& work) {
    for_each_matrix(ctx, c.count, flops, Memory::Kept, [&](Context<D>& mine, Index i) {
        c.with_qr(mine, i, [&](const QR<T, D>& f) { work(mine, f, c.members()[i]); });
    });
}

/// Forms Q of a class. make(ctx, i) returns Q of its member i if the matrices are not small.
template <class T, class D, class Make>
void form_class(Context<D>& ctx, const ShapeClass<T, D>& c, BatchView<T, D> Q, const Make& make) {
    if (c.small) return c.small->form_q(ctx, c.members(), Q);
    for_each_matrix(ctx, c.count, 2.0 * c.m * c.k * c.k, Memory::Kept, [&](Context<D>& mine, Index i) {
        const Matrix<T, D> one = make(mine, i);
        scatter<T, D>(mine, one.view(), Q, c.members()[i]);
    });
}

template <class T, class D>
Batch<T, D> thin_q_memory(const Context<D>& ctx, const BatchedFactors<T, D>& f) {
    return batch_of<T, D>(ctx, f.count, f.place.empty(), [&](Index b) {
        return std::pair{f.shape(b).m, f.shape(b).k};
    });
}

}  // namespace

template <class T, class D>
void BatchedQR<T, D>::r(Context<D>& ctx, BatchView<T, D> R) const {
    require_shapes<T, D>(
        "R", R, count(), [&](Index b) { return inside_->shape(b).k; }, [&](Index b) { return cols(b); });
    for (const auto& c : inside_->classes) {
        if (c.small) {
            c.small->unpack(ctx, Factor::R, c.members(), R);
        } else {
            for_each_matrix(ctx, c.count, 10.0 * c.k * c.n, Memory::Kept, [&](Context<D>& mine, Index i) {
                const Matrix<T, D> one = c.pivoted ? c.pivoted->r(mine, i) : c.each[i]->r(mine);
                scatter<T, D>(mine, one.view(), R, c.members()[i]);
            });
        }
    }
}

template <class T, class D>
void BatchedQR<T, D>::form_q(Context<D>& ctx, BatchView<T, D> Q) const {
    require_shapes<T, D>(
        "Q", Q, count(), [&](Index b) { return rows(b); }, [&](Index b) { return inside_->shape(b).k; });
    for (const auto& c : inside_->classes)
        form_class<T, D>(ctx, c, Q, [&](Context<D>& mine, Index i) {
            return c.pivoted ? c.pivoted->one(mine, i).take_q(mine) : c.each[i]->form_q(mine);
        });
}

template <class T, class D>
void BatchedQR<T, D>::apply_q(Context<D>& ctx, Op op, std::type_identity_t<BatchView<const T, D>> from,
                              BatchView<T, D> to) const {
    require_shapes<T, D>(
        "C", from, count(), [&](Index b) { return rows(b); }, [&](Index b) { return from.cols(b); });
    require_shapes<T, D>(
        "C", to, count(), [&](Index b) { return rows(b); }, [&](Index b) { return from.cols(b); });
    for (const auto& c : inside_->classes) {
        if (c.small) {
            c.small->apply_q(ctx, op, c.members(), from, to);
        } else {
            for_each_qr(ctx, c, 4.0 * c.m * c.k * c.k, [&](Context<D>& mine, const QR<T, D>& f, Index b) {
                Matrix<T, D> C = gathered<T, D>(mine, from, b);
                f.apply_q(mine, Side::Left, op, C.view());
                scatter<T, D>(mine, std::as_const(C).view(), to, b);
            });
        }
    }
}
template <class T, class D>
void BatchedQR<T, D>::apply_q(Context<D>& ctx, Op op, BatchView<T, D> C) const {
    apply_q(ctx, op, BatchView<const T, D>(C), C);
}

template <class T, class D>
void BatchedQR<T, D>::lapack(Context<D>& ctx, BatchView<T, D> V_R, BatchView<T, D> tau) const {
    require_shapes<T, D>(
        "V_R", V_R, count(), [&](Index b) { return rows(b); }, [&](Index b) { return cols(b); });
    require_shapes<T, D>(
        "tau", tau, count(), [&](Index b) { return inside_->shape(b).k; }, [&](Index) { return Index(1); });
    for (const auto& c : inside_->classes) {
        if (c.small) {
            c.small->unpack(ctx, Factor::VR, c.members(), V_R);
            c.small->unpack_tau(ctx, c.members(), tau);
        } else {
            for_each_qr(ctx, c, 10.0 * c.m * c.n, [&](Context<D>& mine, const QR<T, D>& f, Index b) {
                const Matrix<T, D> V = f.v(mine), R = f.r(mine);
                const Range kept{0, R.rows()}, right{R.rows(), c.n};
                Matrix<T, D> both(mine, c.m, c.n);
                copy<T>(mine, V.view(), both.view().col_block(kept));
                copy<T>(mine, R.view().col_block(right), both.view().block(kept, right));
                store_triangle<T>(mine, R.view().col_block(kept), both.view().block(kept, kept));
                if (kept.end < std::min(c.m, c.n)) set_zero(mine, both.view().block({kept.end, c.m}, right));
                scatter<T, D>(mine, std::as_const(both).view(), V_R, b);
                scatter<T, D>(mine, f.tau(mine).view(), tau, b);
            });
        }
    }
}

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::r(Context<D>& ctx) const {
    auto R = batch_of<T, D>(ctx, count(), inside_->place.empty(), [&](Index b) {
        return std::pair{inside_->shape(b).k, cols(b)};
    });
    r(ctx, R.view());
    return R;
}

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::form_q(Context<D>& ctx) const {
    auto Q = thin_q_memory<T, D>(ctx, *inside_);
    form_q(ctx, Q.view());
    return Q;
}

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::take_q(Context<D>& ctx) && {
    auto Q = thin_q_memory<T, D>(ctx, *inside_);
    for (auto& c : inside_->classes) {
        form_class<T, D>(ctx, c, Q.view(), [&](Context<D>& mine, Index i) {
            if (c.pivoted) return c.pivoted->one(mine, i).take_q(mine);
            Matrix<T, D> one = std::move(*c.each[i]).take_q(mine);
            c.each[i].reset();
            return one;
        });
        c.small.reset();
        c.pivoted.reset();
    }
    return Q;
}

template <class T, class D>
Batch<T, D> orthonormalize(Context<D>& ctx, BatchView<const T, D> A, Options options) {
    options.q = QForm::Explicit;
    return qr<T, D>(ctx, A, options).take_q(ctx);
}

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::apply_q(Context<D>& ctx, Op op, std::type_identity_t<MatrixView<const T, D>> C) const {
    for (const auto& c : inside_->classes) {
        if (c.m != C.rows) {
            throw InvalidArgument(
                fmt::format("C has {} rows, and Q of matrix {} is {}x{}", C.rows, c.members()[0], c.m, c.m));
        }
    }
    Batch<T, D> result(ctx, C.rows, C.cols, count());
    apply_q(ctx, op, BatchView<const T, D>(C.data, C.rows, C.cols, C.ld, 0, count()), result.view());
    return result;
}

template <class T, class D>
std::span<const Index> BatchedQR<T, D>::permutation(Index b) const {
    const auto [c, i] = inside_->at(b);
    const auto& of_shape = inside_->classes[c];
    if (of_shape.pivoted) return of_shape.pivoted->permutation(i);
    return of_shape.small ? std::span<const Index>() : of_shape.each[i]->permutation();
}

template <class T, class D>
Report BatchedQR<T, D>::report(Index b) const {
    const auto [c, i] = inside_->at(b);
    const auto& of_shape = inside_->classes[c];
    if (of_shape.pivoted) return of_shape.pivoted->report(i);
    if (!of_shape.small) return of_shape.each[i]->report();
    Report report;
    report.method = Method::BlockedHouseholder;
    return report;
}

#define QUOIN_INSTANTIATE(T, D)                                                                                   \
    template class BatchedQR<T, D>;                                                                               \
    template BatchedQR<T, D> qr<T, D>(Context<D>&, BatchView<const T, D>, Options);                               \
    template void qr<T, D>(Context<D>&, BatchView<const T, D>, BatchView<T, D>, BatchView<T, D>, Options);        \
    template void qr_lapack<T, D>(Context<D>&, BatchView<const T, D>, BatchView<T, D>, BatchView<T, D>, Options); \
    template Batch<T, D> orthonormalize<T, D>(Context<D>&, BatchView<const T, D>, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
