// SVD of every matrix of a batch: QR of all on their device, then the SVD of each triangular factor by one thread of
// the host.

#include <algorithm>
#include <vector>

#include "algorithms/batches/batched_qr.hpp"
#include "algorithms/one_matrix/range_scaling.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"
#include "quoin/svd.hpp"

namespace quoin {
namespace {

template <class T, class D>
BatchedSVD<T, D> allocated(Context<D>& ctx, BatchView<const T, D> A, bool vectors) {
    const auto k = [&](Index b) { return std::min(A.rows(b), A.cols(b)); };
    const auto batch = [&](const auto& rows, const auto& cols) {
        return batch_of<T, D>(ctx, A.count(), A.uniform(),
                              [&](Index b) { return std::pair<Index, Index>(rows(b), cols(b)); });
    };
    BatchedSVD<T, D> all;
    all.s = batch(k, [](Index) { return 1; });
    if (!vectors) return all;
    all.U = batch([&](Index b) { return A.rows(b); }, k);
    all.Vt = batch(k, [&](Index b) { return A.cols(b); });
    return all;
}

/// Views the matrices of a batch of one shape side by side.
template <class T, class D>
MatrixView<T, D> side_by_side(Batch<T, D>& batch) {
    if (batch.count() == 0) return {};
    return {batch[0].data, batch[0].rows, batch[0].cols * batch.count()};
}

/// Decomposes matrix b by `svd`.
template <class T, class D>
void decompose_alone(Context<D>& ctx, BatchView<const T, D> A, Index b, bool vectors, const Options& options,
                     BatchedSVD<T, D>& all) {
    const SVD<T, D> f = svd<T, D>(ctx, gathered<T, D>(ctx, A, b).view(), vectors, options);
    bring_from_host<T, D>(ctx, {f.s.data(), static_cast<Index>(f.s.size()), 1}, all.s[b]);
    if (!vectors) return;
    copy<T>(ctx, f.U.view(), all.U[b]);
    copy<T>(ctx, f.Vt.view(), all.Vt[b]);
}

/// Calls work(ctx, b) for every matrix; on the host each by one thread. The errors name the matrix.
template <class D, class Work>
void for_each_named(Context<D>& ctx, Index count, double flops, const Work& work) {
    const auto named = [&](Context<D>& mine, Index b) {
        try {
            work(mine, b);
        } catch (const NonFiniteEntry& e) {
            throw NonFiniteEntry(e.row, e.col, name_of(b));
        } catch (const NumericalBreakdown& e) {
            throw NumericalBreakdown(name_of(b) + ": " + e.what(), e.column);
        }
    };
    if constexpr (std::is_same_v<D, Host>) {
        for_each_matrix(ctx, count, flops, Memory::Returned, named);
    } else {
        for (Index b = 0; b < count; ++b) named(ctx, b);
    }
}

/// Decomposes A_b = Q_b R_b = Q_b U₁ΣVᵀ, m×n with m >= n.
template <class T, class D>
BatchedSVD<T, D> svd_of_tall(Context<D>& ctx, BatchView<const T, D> A, bool vectors, Options options) {
    BatchedSVD<T, D> all = allocated<T, D>(ctx, A, vectors);
    if (A.count() == 0) return all;
    const Index n = A.cols(0);
    if (!vectors && !options.verify) options.q = QForm::None;
    const BatchedQR<T, D> f = qr<T, D>(ctx, A, options);
    Context<Host>& host = host_context(ctx);
    Batch<T> R(host, n, n, A.count());
    {
        Batch<T, D> there = f.r(ctx);
        bring_to_host<T, D>(ctx, side_by_side(there), side_by_side(R));
    }
    BatchedSVD<T> of_R = allocated<T, Host>(host, std::as_const(R).view(), vectors);
    std::vector<char> out_of_range(static_cast<std::size_t>(A.count()));
    for_each_named(host, A.count(), (vectors ? 22.0 : 8.0 / 3) * n * n * n, [&](Context<Host>& mine, Index b) {
        out_of_range[b] = solver_exponent<T>(entry_norms<T>(mine, R[b]).largest, 0) != 0;
        if (out_of_range[b]) return;
        const std::span<T> s(of_R.s[b].data, static_cast<std::size_t>(n));
        vectors ? small_svd<T>(mine, R[b], s, of_R.U[b], of_R.Vt[b]) : small_svd<T>(mine, R[b], s, {}, {});
    });
    bring_from_host<T, D>(ctx, side_by_side(of_R.s), side_by_side(all.s));
    if (vectors) {
        // U = Q [U₁; 0]
        const MatrixView<T, D> U = side_by_side(all.U);
        set_zero(ctx, U);
        bring_from_host<T, D>(ctx, side_by_side(of_R.U), U.row_block({0, n}));
        bring_from_host<T, D>(ctx, side_by_side(of_R.Vt), side_by_side(all.Vt));
        f.apply_q(ctx, Op::None, all.U.view());
    }
    for_each_named(ctx, A.count(), 0, [&](Context<D>& mine, Index b) {
        if (out_of_range[b]) decompose_alone<T, D>(mine, A, b, vectors, options, all);
    });
    return all;
}

/// Decomposes A_bᵀ = VΣUᵀ for m < n.
template <class T, class D>
BatchedSVD<T, D> svd_of_wide(Context<D>& ctx, BatchView<const T, D> A, bool vectors, const Options& options) {
    BatchedSVD<T, D> all = allocated<T, D>(ctx, A, vectors);
    const auto transpose_all = [&](const Batch<T, D>& from, Batch<T, D>& to) {
        if constexpr (std::is_same_v<D, Host>) {
            for_each_named(ctx, from.count(), 2.0 * A.rows(0) * A.cols(0),
                           [&](Context<Host>& mine, Index b) { transpose<T>(mine, from[b], to[b]); });
        } else if (from.count() > 0) {
            copy_batch<T, D>(ctx, from.view().transposed(), to.view());
        }
    };
    try {
        BatchedSVD<T, D> turned = svd_of_tall<T, D>(ctx, A.transposed(), vectors, options);
        all.s = std::move(turned.s);
        if (!vectors) return all;
        transpose_all(turned.Vt, all.U);
        transpose_all(turned.U, all.Vt);
    } catch (const NonFiniteEntry&) {
        for (Index b = 0; b < A.count(); ++b)
            require_finite<T, D>(ctx, gathered<T, D>(ctx, A, b).view(), name_of(b).c_str());
        throw;
    }
    return all;
}

}  // namespace

template <class T, class D>
BatchedSVD<T, D> svd(Context<D>& ctx, BatchView<const T, D> A, bool vectors, Options options) {
    require_storage(A);
    require_orthonormal(options, "svd");
    require_unpivoted(options, "svd of a batch");
    if (A.uniform())
        return A.rows(0) < A.cols(0) ? svd_of_wide<T, D>(ctx, A, vectors, options)
                                     : svd_of_tall<T, D>(ctx, A, vectors, options);
    BatchedSVD<T, D> all = allocated<T, D>(ctx, A, vectors);
    for_each_named(ctx, A.count(), 0,
                   [&](Context<D>& mine, Index b) { decompose_alone<T, D>(mine, A, b, vectors, options, all); });
    return all;
}

#define QUOIN_INSTANTIATE(T, D) template BatchedSVD<T, D> svd<T, D>(Context<D>&, BatchView<const T, D>, bool, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
