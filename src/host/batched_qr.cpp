// The factorizations of a batch on the host: matrices of one shape in lanes, larger ones each by one thread.

#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <optional>

#include "host/batch.hpp"
#include "host/parallel.hpp"
#include "primitives.hpp"

namespace quoin {

namespace {

using host::Factor;
using host::LaneShape;
using host::Members;

/// Matrices of one shape.
template <class T>
struct ShapeClass {
    LaneShape shape;
    std::vector<Index> list;  // empty: all of the batch
    Index count = 0;
    // in lanes
    Matrix<T> X, tau;
    // or one by one
    std::vector<std::optional<QR<T>>> each;

    Members members() const { return {list, count}; }
    bool in_lanes() const { return each.empty(); }
};

/// work(ctx, i) for the members of a class, one thread each with a context of its own. Of several exceptions that of the first member
/// is thrown.
template <class Work>
void for_each_member(Context<Host>& ctx, Index count, double flops, const Work& work) {
    const int threads = static_cast<int>(std::min<Index>(count, host::team(ctx, flops * static_cast<double>(count))));
    if (threads <= 1) {
        for (Index i = 0; i < count; ++i) {
            throw_if_stopped(ctx);
            work(ctx, i);
        }
        return;
    }
    std::mutex mutex;
    std::exception_ptr failure;
    Index failed = count;
#pragma omp parallel num_threads(threads)
    {
        Context<Host> mine(1);
#pragma omp for schedule(dynamic)
        for (Index i = 0; i < count; ++i) {
            try {
                throw_if_stopped(ctx);
                work(mine, i);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (i < failed) {
                    failed = i;
                    failure = std::current_exception();
                }
            }
        }
    }
    if (failure) std::rethrow_exception(failure);
    ctx.state().add_flops(flops * static_cast<double>(count));
}

/// to(i, j) := from(i, j), each of any strides, tile by tile.
template <class T>
void copy_strided(Index m, Index n, const T* from, Index from_rows, Index from_cols, T* to, Index to_rows, Index to_cols) {
    constexpr Index tile = 32;
    for (Index j0 = 0; j0 < n; j0 += tile) {
        for (Index i0 = 0; i0 < m; i0 += tile) {
            for (Index j = j0; j < std::min(n, j0 + tile); ++j) {
                for (Index i = i0; i < std::min(m, i0 + tile); ++i) {
                    to[i * to_rows + j * to_cols] = from[i * from_rows + j * from_cols];
                }
            }
        }
    }
}

template <class T>
Matrix<T> gathered(BatchView<const T> A, Index b) {
    Matrix<T> M(A.rows(b), A.cols(b));
    copy_strided(M.rows(), M.cols(), A.data(b), A.row_stride(b), A.col_stride(b), M.data(), Index(1), M.ld());
    return M;
}

template <class T>
void scatter(MatrixView<const T> M, BatchView<T> B, Index b) {
    copy_strided(M.rows, M.cols, M.data, Index(1), M.ld, B.data(b), B.row_stride(b), B.col_stride(b));
}

/// Throws InvalidArgument unless batch B, which the caller names, has so many matrices of the shapes that are asked for.
template <class T, class RowsOf, class ColsOf>
void require_shapes(const char* name, BatchView<const T> B, Index count, RowsOf rows, ColsOf cols) {
    if (B.count() != count) {
        throw InvalidArgument(fmt::format("{} has {} matrices, and the batch {}", name, B.count(), count));
    }
    for (Index b = 0; b < (B.uniform() ? std::min<Index>(count, 1) : count); ++b) {
        if (B.rows(b) != rows(b) || B.cols(b) != cols(b)) {
            throw InvalidArgument(
                fmt::format("matrix {} of {} is {}x{}, and must be {}x{}", b, name, B.rows(b), B.cols(b), rows(b), cols(b)));
        }
    }
}

/// The same for batches of which each matrix may have a shape of its own.
template <class T>
void require_storage(BatchView<const T> A) {
    const auto refuse = [](Index b, const char* why) { throw InvalidArgument(fmt::format("matrix {} of the batch {}", b, why)); };
    if (A.count() < 0) throw InvalidArgument(fmt::format("a batch cannot have {} matrices", A.count()));
    for (Index b = 0; b < (A.uniform() ? std::min<Index>(A.count(), 1) : A.count()); ++b) {
        if (A.rows(b) < 0 || A.cols(b) < 0) refuse(b, "has a negative size");
        if (!A.data(b) && A.rows(b) > 0 && A.cols(b) > 0) refuse(b, "has no data");
        if (A.row_stride(b) == 1 && A.cols(b) > 1 && A.col_stride(b) < A.rows(b) && A.col_stride(b) >= 0 && !A.uniform()) {
            refuse(b, "has an ld below its number of rows");
        }
    }
}

bool by_lanes(const Options& options, Index m, Index n, Index element_bytes) {
    return (options.method == Method::Auto || options.method == Method::BlockedHouseholder) && !options.verify &&
           options.compact_wy == CompactWY::Panels && Tuning<Host>::in_lanes(m, n, element_bytes);
}

}  // namespace

template <class T, class D>
struct BatchedQR<T, D>::Impl {
    std::vector<ShapeClass<T>> classes;
    Index count = 0;
    std::vector<std::pair<Index, Index>> place;  // of matrix b: its class and where in it; none: all in one, in order

    std::pair<Index, Index> at(Index b) const { return place.empty() ? std::pair<Index, Index>{0, b} : place[b]; }
    const LaneShape& shape(Index b) const { return classes[at(b).first].shape; }
};

namespace {

template <class T>
void factor_class(Context<Host>& ctx, BatchView<const T> A, const Options& options, ShapeClass<T>& c) {
    const LaneShape& shape = c.shape;
    if (by_lanes(options, shape.m, shape.n, sizeof(T))) {
        const Index groups = shape.groups(c.count);
        c.X = Matrix<T>(shape.elements(), groups);
        c.tau = Matrix<T>(shape.taus(), groups);
        const Index bad = host::factor_batch<T>(ctx, shape, A, c.members(), c.X.data(), c.tau.data());
        if (bad >= 0 && options.check_finite) {
            const Matrix<T> M = gathered(A, bad);
            for (Index j = 0; j < M.cols(); ++j) {
                for (Index i = 0; i < M.rows(); ++i) {
                    if (!std::isfinite(M(i, j))) throw NonFiniteEntry(i, j, fmt::format("matrix {} of the batch", bad));
                }
            }
        }
        return;
    }
    const Plan plan = plan_qr<T>(ctx, shape.m, shape.n, options);
    c.each.resize(c.count);
    for_each_member(ctx, c.count, plan.flops, [&](Context<Host>& mine, Index i) {
        const Index b = c.members()[i];
        try {
            c.each[i] = qr<T, Host>(mine, gathered(A, b), plan);
        } catch (const NonFiniteEntry& e) {
            throw NonFiniteEntry(e.row, e.col, fmt::format("matrix {} of the batch", b));
        } catch (const NumericalBreakdown& e) {
            throw NumericalBreakdown(fmt::format("matrix {} of the batch: {}", b, e.what()), e.column);
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
    const Index lanes = host::kernels<T>().lanes;
    if (A.uniform()) {
        if (A.count() > 0) impl->classes.push_back({LaneShape(A.rows(0), A.cols(0), lanes), {}, A.count(), {}, {}, {}});
    } else {
        std::map<std::pair<Index, Index>, Index> known;
        for (Index b = 0; b < A.count(); ++b) {
            const auto [it, fresh] = known.try_emplace({A.rows(b), A.cols(b)}, static_cast<Index>(impl->classes.size()));
            if (fresh) impl->classes.push_back({LaneShape(A.rows(b), A.cols(b), lanes), {}, 0, {}, {}, {}});
            auto& c = impl->classes[it->second];
            impl->place.emplace_back(it->second, c.count++);
            c.list.push_back(b);
        }
    }
    for (auto& c : impl->classes) factor_class<T>(ctx, A, options, c);
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

/// write(ctx, QR, b) for a class of matrices that are not in lanes.
template <class T, class Write>
void for_each_qr(Context<Host>& ctx, const ShapeClass<T>& c, double flops, const Write& write) {
    for_each_member(ctx, c.count, flops, [&](Context<Host>& mine, Index i) { write(mine, *c.each[i], c.members()[i]); });
}

}  // namespace

template <class T, class D>
void BatchedQR<T, D>::r(Context<D>& ctx, BatchView<T, D> R) const {
    require_shapes<T>("R", R, count(), [&](Index b) { return impl_->shape(b).k; }, [&](Index b) { return cols(b); });
    for (const auto& c : impl_->classes) {
        if (c.in_lanes()) {
            host::unpack_batch<T>(ctx, c.shape, c.X.data(), Factor::R, c.members(), R);
        } else {
            for_each_qr(ctx, c, 10.0 * c.shape.k * c.shape.n,
                        [&](auto& mine, const QR<T>& f, Index b) { scatter<T>(f.r(mine).view(), R, b); });
        }
    }
}

template <class T, class D>
void BatchedQR<T, D>::form_q(Context<D>& ctx, BatchView<T, D> Q) const {
    require_shapes<T>("Q", Q, count(), [&](Index b) { return rows(b); }, [&](Index b) { return impl_->shape(b).k; });
    for (const auto& c : impl_->classes) {
        if (c.in_lanes()) {
            host::form_q_batch<T>(ctx, c.shape, c.X.data(), c.tau.data(), c.members(), Q);
        } else {
            for_each_qr(ctx, c, 2.0 * c.shape.m * c.shape.k * c.shape.k,
                        [&](auto& mine, const QR<T>& f, Index b) { scatter<T>(f.form_q(mine).view(), Q, b); });
        }
    }
}

template <class T, class D>
void BatchedQR<T, D>::apply_q(Context<D>& ctx, Op op, BatchView<T, D> C) const {
    require_shapes<T>("C", C, count(), [&](Index b) { return rows(b); }, [&](Index b) { return C.cols(b); });
    for (const auto& c : impl_->classes) {
        if (c.in_lanes()) {
            host::apply_q_batch<T>(ctx, c.shape, c.X.data(), c.tau.data(), op, c.members(), C);
        } else {
            for_each_qr(ctx, c, 4.0 * c.shape.m * c.shape.k * c.shape.k, [&](auto& mine, const QR<T>& f, Index b) {
                Matrix<T> M = gathered<T>(C, b);
                f.apply_q(mine, Side::Left, op, M.view());
                scatter<T>(std::as_const(M).view(), C, b);
            });
        }
    }
}

template <class T, class D>
void BatchedQR<T, D>::lapack(Context<D>& ctx, BatchView<T, D> V_R, BatchView<T, D> tau) const {
    require_shapes<T>("V_R", V_R, count(), [&](Index b) { return rows(b); }, [&](Index b) { return cols(b); });
    require_shapes<T>("tau", tau, count(), [&](Index b) { return impl_->shape(b).k; }, [&](Index) { return Index(1); });
    for (const auto& c : impl_->classes) {
        if (c.in_lanes()) {
            host::unpack_batch<T>(ctx, c.shape, c.X.data(), Factor::VR, c.members(), V_R);
            host::unpack_tau<T>(ctx, c.shape, c.tau.data(), c.members(), tau);
        } else {
            for_each_qr(ctx, c, 10.0 * c.shape.m * c.shape.n, [&](auto& mine, const QR<T>& f, Index b) {
                const Matrix<T> V = f.v(mine), R = f.r(mine);
                Matrix<T> both(c.shape.m, c.shape.n);
                for (Index j = 0; j < c.shape.n; ++j) {
                    for (Index i = 0; i < c.shape.m; ++i) both(i, j) = i <= j ? R(i, j) : V(i, j);
                }
                scatter<T>(std::as_const(both).view(), V_R, b);
                scatter<T>(f.tau(mine).view(), tau, b);
            });
        }
    }
}

namespace {

/// Memory for a batch of results, of these shapes.
template <class T, class ShapeOf>
Batch<T> batch_of(const Context<Host>& ctx, Index count, bool uniform, const ShapeOf& shape_of) {
    if (uniform) {
        const auto [rows, cols] = count > 0 ? shape_of(0) : std::pair<Index, Index>{0, 0};
        return Batch<T>(ctx, rows, cols, count);
    }
    std::vector<std::pair<Index, Index>> shapes;
    for (Index b = 0; b < count; ++b) shapes.push_back(shape_of(b));
    return Batch<T>(ctx, shapes);
}

}  // namespace

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::r(Context<D>& ctx) const {
    auto R = batch_of<T>(ctx, count(), impl_->place.empty(), [&](Index b) { return std::pair{impl_->shape(b).k, cols(b)}; });
    r(ctx, R.view());
    return R;
}

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::form_q(Context<D>& ctx) const {
    auto Q = batch_of<T>(ctx, count(), impl_->place.empty(), [&](Index b) { return std::pair{rows(b), impl_->shape(b).k}; });
    form_q(ctx, Q.view());
    return Q;
}

template <class T, class D>
Batch<T, D> BatchedQR<T, D>::apply_q(Context<D>& ctx, Op op, std::type_identity_t<MatrixView<const T, D>> C) const {
    for (Index b = 0; b < (impl_->place.empty() ? std::min<Index>(count(), 1) : count()); ++b) {
        if (rows(b) != C.rows) {
            throw InvalidArgument(fmt::format("C has {} rows, and Q of matrix {} is {}x{}", C.rows, b, rows(b), rows(b)));
        }
    }
    Batch<T> result(ctx, C.rows, C.cols, count());
    for (Index b = 0; b < count(); ++b) scatter<T>(C, result.view(), b);
    apply_q(ctx, op, result.view());
    return result;
}

template <class T, class D>
Report BatchedQR<T, D>::report(Index b) const {
    const auto [c, i] = impl_->at(b);
    const auto& of_shape = impl_->classes[c];
    if (!of_shape.in_lanes()) return of_shape.each[i]->report();
    Report report;
    report.method = Method::BlockedHouseholder;
    return report;
}

#define QUOIN_INSTANTIATE(T)        \
    template class BatchedQR<T, Host>; \
    template BatchedQR<T, Host> qr<T, Host>(Context<Host>&, BatchView<const T, Host>, Options);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
