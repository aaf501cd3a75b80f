// The factorizations of a batch: matrices of one shape at once where the device can, others one by one.

#include <fmt/format.h>

#include <map>
#include <optional>

#include "algorithms/solver_steps.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// Matrices of one shape.
template <class T, class D>
struct ShapeClass {
    Index m, n, k;
    std::vector<Index> list;  // empty: all of the batch
    Index count = 0;
    std::optional<SmallBatch<T, D>> small;
    std::vector<std::optional<QR<T, D>>> each;  // where they are not small

    Members members() const { return {list, count}; }
};

/// A copy of matrix b of a batch of any strides.
template <class T, class D>
Matrix<T, D> gathered(Context<D>& ctx, BatchView<const T, D> A, Index b) {
    Matrix<T, D> B(ctx, A.rows(b), A.cols(b));
    if (A.row_stride(b) == 1) {
        copy<T>(ctx, MatrixView<const T, D>(A.data(b), B.rows(), B.cols(), A.col_stride(b)), B.view());
    } else if (A.col_stride(b) == 1) {
        transpose<T>(ctx, MatrixView<const T, D>(A.data(b), B.cols(), B.rows(), A.row_stride(b)), B.view());
    } else {
        // column by column, each a row of a matrix with that leading dimension
        for (Index j = 0; j < B.cols(); ++j) {
            transpose<T>(ctx, MatrixView<const T, D>(A.data(b) + j * A.col_stride(b), 1, B.rows(), A.row_stride(b)),
                         B.view().col_block({j, j + 1}));
        }
    }
    return B;
}
/// Matrix b of a batch of any strides := A.
template <class T, class D>
void scatter(Context<D>& ctx, MatrixView<const T, D> A, BatchView<T, D> B, Index b) {
    if (B.row_stride(b) == 1) {
        copy<T>(ctx, A, MatrixView<T, D>(B.data(b), A.rows, A.cols, B.col_stride(b)));
    } else if (B.col_stride(b) == 1) {
        transpose<T>(ctx, A, MatrixView<T, D>(B.data(b), A.cols, A.rows, B.row_stride(b)));
    } else {
        for (Index j = 0; j < A.cols; ++j) {
            transpose<T>(ctx, A.col_block({j, j + 1}),
                         MatrixView<T, D>(B.data(b) + j * B.col_stride(b), 1, A.rows, B.row_stride(b)));
        }
    }
}
/// Throws InvalidArgument unless batch B, which the caller names, has so many matrices of the shapes that are asked for.
template <class T, class D, class RowsOf, class ColsOf>
void require_shapes(const char* name, BatchView<const T, D> B, Index count, RowsOf rows, ColsOf cols) {
    if (B.count() != count) {
        throw InvalidArgument(fmt::format("{} has {} matrices, and the batch {}", name, B.count(), count));
    }
    for (Index b = 0; b < (B.uniform() ? std::min<Index>(count, 1) : count); ++b) {
        if (B.rows(b) != rows(b) || B.cols(b) != cols(b)) {
            throw InvalidArgument(fmt::format("matrix {} of {} is {}x{}, and must be {}x{}", b, name, B.rows(b),
                                              B.cols(b), rows(b), cols(b)));
        }
    }
}

/// Throws InvalidArgument for a batch that no memory can hold, naming the matrix.
template <class T, class D>
void require_storage(BatchView<const T, D> A) {
    const auto refuse = [](Index b, const char* why) {
        throw InvalidArgument(fmt::format("matrix {} of the batch {}", b, why));
    };
    if (A.count() < 0) throw InvalidArgument(fmt::format("a batch cannot have {} matrices", A.count()));
    for (Index b = 0; b < (A.uniform() ? std::min<Index>(A.count(), 1) : A.count()); ++b) {
        if (A.rows(b) < 0 || A.cols(b) < 0) refuse(b, "has a negative size");
        if (!A.data(b) && A.rows(b) > 0 && A.cols(b) > 0) refuse(b, "has no data");
        const Index ld = A.col_stride(b);
        if (!A.uniform() && A.cols(b) > 1 && ld >= 0 && ld < A.rows(b)) refuse(b, "has an ld below its number of rows");
    }
}

/// In messages.
std::string name_of(Index b) { return fmt::format("matrix {} of the batch", b); }

/// Whether the options leave the method to the device.
bool any_reflectors(const Options& options) {
    return (options.method == Method::Auto || options.method == Method::BlockedHouseholder) && !options.verify &&
           !options.full_t;
}

}  // namespace

template <class T, class D>
struct BatchedQR<T, D>::Impl {
    std::vector<ShapeClass<T, D>> classes;
    Index count = 0;
    std::vector<std::pair<Index, Index>> place;  // of matrix b: its class and where in it; none: all in one, in order

    std::pair<Index, Index> at(Index b) const { return place.empty() ? std::pair<Index, Index>{0, b} : place[b]; }
    const ShapeClass<T, D>& shape(Index b) const { return classes[at(b).first]; }
};

namespace {

template <class T, class D>
void factor_class(Context<D>& ctx, BatchView<const T, D> A, const Options& options, ShapeClass<T, D>& c) {
    if (any_reflectors(options) && SmallBatch<T, D>::fits(c.m, c.n)) {
        c.small.emplace(ctx, c.m, c.n, c.count);
        const Index bad = c.small->factor(ctx, A, c.members(), options.check_finite);
        if (bad >= 0) require_finite<T, D>(ctx, gathered<T, D>(ctx, A, bad).view(), name_of(bad).c_str());
        return;
    }
    const Plan plan = plan_qr<T>(ctx, c.m, c.n, options);
    c.each.resize(c.count);
    for_each_matrix(ctx, c.count, plan.flops, [&](Context<D>& mine, Index i) {
        const Index b = c.members()[i];
        try {
            c.each[i] = qr<T, D>(mine, gathered<T, D>(mine, A, b), plan);
        } catch (const NonFiniteEntry& e) {
            throw NonFiniteEntry(e.row, e.col, name_of(b));
        } catch (const NumericalBreakdown& e) {
            throw NumericalBreakdown(name_of(b) + ": " + e.what(), e.column);
        }
    });
}

}  // namespace

template <class T, class D>
BatchedQR<T, D> qr(Context<D>& ctx, BatchView<const T, D> A, Options options) {
    require_storage(A);
    // of a batch each matrix is held as reflectors, unless another method or R alone is asked for
    if (options.method == Method::Auto && options.q != QForm::None) options.method = Method::BlockedHouseholder;
    auto impl = std::make_unique<typename BatchedQR<T, D>::Impl>();
    impl->count = A.count();
    const auto add = [&](Index b, Index count) {
        impl->classes.push_back({A.rows(b), A.cols(b), std::min(A.rows(b), A.cols(b)), {}, count, {}, {}});
    };
    if (A.uniform()) {
        if (A.count() > 0) add(0, A.count());
    } else {
        std::map<std::pair<Index, Index>, Index> known;
        for (Index b = 0; b < A.count(); ++b) {
            const auto [it, fresh] =
                known.try_emplace({A.rows(b), A.cols(b)}, static_cast<Index>(impl->classes.size()));
            if (fresh) add(b, 0);
            auto& c = impl->classes[it->second];
            impl->place.emplace_back(it->second, c.count++);
            c.list.push_back(b);
        }
    }
    for (auto& c : impl->classes) factor_class<T, D>(ctx, A, options, c);
    return BatchedQR<T, D>(std::move(impl));
}

template <class T, class D>
BatchedQR<T, D>::BatchedQR(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
template <class T, class D>
BatchedQR<T, D>::BatchedQR(BatchedQR&&) noexcept = default;
template <class T, class D>
BatchedQR<T, D>& BatchedQR<T, D>::operator=(BatchedQR&&) noexcept = default;
template <class T, class D>
BatchedQR<T, D>::~BatchedQR() = default;

template <class T, class D>
Index BatchedQR<T, D>::count() const {
    return impl_->count;
}
template <class T, class D>
Index BatchedQR<T, D>::rows(Index b) const {
    return impl_->shape(b).m;
}
template <class T, class D>
Index BatchedQR<T, D>::cols(Index b) const {
    return impl_->shape(b).n;
}

namespace {

/// work(ctx, QR, b) for a class of matrices that are not small.
template <class T, class D, class Work>
void for_each_qr(Context<D>& ctx, const ShapeClass<T, D>& c, double flops, const Work& work) {
    for_each_matrix(ctx, c.count, flops, [&](Context<D>& mine, Index i) { work(mine, *c.each[i], c.members()[i]); });
}

}  // namespace

template <class T, class D>
void BatchedQR<T, D>::r(Context<D>& ctx, BatchView<T, D> R) const {
    require_shapes<T, D>(
        "R", R, count(), [&](Index b) { return impl_->shape(b).k; }, [&](Index b) { return cols(b); });
    for (const auto& c : impl_->classes) {
        if (c.small) {
            c.small->unpack(ctx, Factor::R, c.members(), R);
        } else {
            for_each_qr(ctx, c, 10.0 * c.k * c.n, [&](Context<D>& mine, const QR<T, D>& f, Index b) {
                scatter<T, D>(mine, f.r(mine).view(), R, b);
            });
        }
    }
}

template <class T, class D>
void BatchedQR<T, D>::form_q(Context<D>& ctx, BatchView<T, D> Q) const {
    require_shapes<T, D>(
        "Q", Q, count(), [&](Index b) { return rows(b); }, [&](Index b) { return impl_->shape(b).k; });
    for (const auto& c : impl_->classes) {
        if (c.small) {
            c.small->form_q(ctx, c.members(), Q);
        } else {
            for_each_qr(ctx, c, 2.0 * c.m * c.k * c.k, [&](Context<D>& mine, const QR<T, D>& f, Index b) {
                scatter<T, D>(mine, f.form_q(mine).view(), Q, b);
            });
        }
    }
}

template <class T, class D>
void BatchedQR<T, D>::apply_q(Context<D>& ctx, Op op, BatchView<const T, D> from, BatchView<T, D> to) const {
    for (const auto& c : impl_->classes) {
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
    require_shapes<T, D>(
        "C", C, count(), [&](Index b) { return rows(b); }, [&](Index b) { return C.cols(b); });
    apply_q(ctx, op, BatchView<const T, D>(C), C);
}

template <class T, class D>
void BatchedQR<T, D>::lapack(Context<D>& ctx, BatchView<T, D> V_R, BatchView<T, D> tau) const {
    require_shapes<T, D>(
        "V_R", V_R, count(), [&](Index b) { return rows(b); }, [&](Index b) { return cols(b); });
    require_shapes<T, D>(
        "tau", tau, count(), [&](Index b) { return impl_->shape(b).k; }, [&](Index) { return Index(1); });
    for (const auto& c : impl_->classes) {
        if (c.small) {
            c.small->unpack(ctx, Factor::VR, c.members(), V_R);
            c.small->unpack_tau(ctx, c.members(), tau);
        } else {
            for_each_qr(ctx, c, 10.0 * c.m * c.n, [&](Context<D>& mine, const QR<T, D>& f, Index b) {
                const Matrix<T, D> V = f.v(mine), R = f.r(mine);
                Matrix<T, D> both(mine, c.m, c.n);
                copy<T>(mine, V.view(), both.view().col_block({0, c.k}));
                copy<T>(mine, R.view().col_block({c.k, c.n}), both.view().block({0, c.k}, {c.k, c.n}));
                store_triangle<T>(mine, R.view().col_block({0, c.k}), both.view().block({0, c.k}, {0, c.k}));
                scatter<T, D>(mine, std::as_const(both).view(), V_R, b);
                scatter<T, D>(mine, f.tau(mine).view(), tau, b);
            });
        }
    }
}

namespace {

/// Memory for a batch of results, of these shapes.
template <class T, class D, class ShapeOf>
Batch<T, D> batch_of(const Context<D>& ctx, Index count, bool uniform, const ShapeOf& shape_of) {
    if (uniform) {
        const auto [rows, cols] = count > 0 ? shape_of(0) : std::pair<Index, Index>{0, 0};
        return Batch<T, D>(ctx, rows, cols, count);
    }
    std::vector<std::pair<Index, Index>> shapes;
    for (Index b = 0; b < count; ++b) shapes.push_back(shape_of(b));
    return Batch<T, D>(ctx, shapes);
}

}  // namespace

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::r(Context<D>& ctx) const {
    auto R = batch_of<T, D>(ctx, count(), impl_->place.empty(), [&](Index b) {
        return std::pair{impl_->shape(b).k, cols(b)};
    });
    r(ctx, R.view());
    return R;
}

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::form_q(Context<D>& ctx) const {
    auto Q = batch_of<T, D>(ctx, count(), impl_->place.empty(), [&](Index b) {
        return std::pair{rows(b), impl_->shape(b).k};
    });
    form_q(ctx, Q.view());
    return Q;
}

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::apply_q(Context<D>& ctx, Op op, std::type_identity_t<MatrixView<const T, D>> C) const {
    for (const auto& c : impl_->classes) {
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
Report BatchedQR<T, D>::report(Index b) const {
    const auto [c, i] = impl_->at(b);
    const auto& of_shape = impl_->classes[c];
    if (!of_shape.small) return of_shape.each[i]->report();
    Report report;
    report.method = Method::BlockedHouseholder;
    return report;
}

#define QUOIN_INSTANTIATE(T, D)     \
    template class BatchedQR<T, D>; \
    template BatchedQR<T, D> qr<T, D>(Context<D>&, BatchView<const T, D>, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
