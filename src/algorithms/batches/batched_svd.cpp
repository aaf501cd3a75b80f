// SVD of every matrix of a batch: QR of all, then the SVD of each triangular factor by one thread.

#include <algorithm>
#include <vector>

#include "algorithms/batches/batched_qr.hpp"
#include "algorithms/one_matrix/range_scaling.hpp"
#include "quoin/svd.hpp"

namespace quoin {
namespace {

template <class T>
BatchedSVD<T> allocated(Context<Host>& ctx, BatchView<const T> A, bool vectors) {
    const auto k = [&](Index b) { return std::min(A.rows(b), A.cols(b)); };
    const auto batch = [&](const auto& rows, const auto& cols) {
        return batch_of<T, Host>(ctx, A.count(), A.uniform(),
                                 [&](Index b) { return std::pair<Index, Index>(rows(b), cols(b)); });
    };
    BatchedSVD<T> all;
    all.s = batch(k, [](Index) { return 1; });
    if (!vectors) return all;
    all.U = batch([&](Index b) { return A.rows(b); }, k);
    all.Vt = batch(k, [&](Index b) { return A.cols(b); });
    return all;
}

/// Decomposes matrix b by `svd`.
template <class T>
void decompose_alone(Context<Host>& ctx, BatchView<const T> A, Index b, bool vectors, const Options& options,
                     BatchedSVD<T>& all) {
    const SVD<T> f = svd<T, Host>(ctx, gathered<T, Host>(ctx, A, b).view(), vectors, options);
    std::copy(f.s.begin(), f.s.end(), all.s[b].data);
    if (!vectors) return;
    copy<T>(ctx, f.U.view(), all.U[b]);
    copy<T>(ctx, f.Vt.view(), all.Vt[b]);
}

/// Calls work(ctx, b) for every matrix, each by one thread. The errors name the matrix.
template <class Work>
void for_each_named(Context<Host>& ctx, Index count, double flops, const Work& work) {
    for_each_matrix(ctx, count, flops, Memory::Returned, [&](Context<Host>& mine, Index b) {
        try {
            work(mine, b);
        } catch (const NonFiniteEntry& e) {
            throw NonFiniteEntry(e.row, e.col, name_of(b));
        } catch (const NumericalBreakdown& e) {
            throw NumericalBreakdown(name_of(b) + ": " + e.what(), e.column);
        }
    });
}

/// Decomposes A_b = Q_b R_b = Q_b U₁ΣVᵀ, m×n with m >= n.
template <class T>
BatchedSVD<T> svd_of_tall(Context<Host>& ctx, BatchView<const T> A, bool vectors, Options options) {
    BatchedSVD<T> all = allocated<T>(ctx, A, vectors);
    if (A.count() == 0) return all;
    const Index n = A.cols(0);
    if (!vectors && !options.verify) options.q = QForm::None;
    const BatchedQR<T> f = qr<T, Host>(ctx, A, options);
    Batch<T> R = f.r(ctx);
    std::vector<char> out_of_range(static_cast<std::size_t>(A.count()));
    for_each_named(ctx, A.count(), (vectors ? 22.0 : 8.0 / 3) * n * n * n, [&](Context<Host>& mine, Index b) {
        if (vectors) set_zero(mine, all.U[b]);
        out_of_range[b] = solver_exponent<T>(entry_norms<T>(mine, R[b]).largest, 0) != 0;
        if (out_of_range[b]) return;
        const std::span<T> s(all.s[b].data, static_cast<std::size_t>(n));
        vectors ? small_svd<T>(mine, R[b], s, all.U[b].row_block({0, n}), all.Vt[b])
                : small_svd<T>(mine, R[b], s, {}, {});
    });
    // U = Q [U₁; 0]
    if (vectors) f.apply_q(ctx, Op::None, all.U.view());
    for_each_named(ctx, A.count(), 0, [&](Context<Host>& mine, Index b) {
        if (out_of_range[b]) decompose_alone<T>(mine, A, b, vectors, options, all);
    });
    return all;
}

/// Decomposes A_bᵀ = VΣUᵀ for m < n.
template <class T>
BatchedSVD<T> svd_of_wide(Context<Host>& ctx, BatchView<const T> A, bool vectors, const Options& options) {
    BatchedSVD<T> all = allocated<T>(ctx, A, vectors);
    try {
        BatchedSVD<T> turned = svd_of_tall<T>(ctx, A.transposed(), vectors, options);
        all.s = std::move(turned.s);
        for_each_named(ctx, vectors ? A.count() : 0, 4.0 * A.rows(0) * A.cols(0), [&](Context<Host>& mine, Index b) {
            transpose<T>(mine, std::as_const(turned.Vt)[b], all.U[b]);
            transpose<T>(mine, std::as_const(turned.U)[b], all.Vt[b]);
        });
    } catch (const NonFiniteEntry&) {
        for (Index b = 0; b < A.count(); ++b)
            require_finite<T, Host>(ctx, gathered<T, Host>(ctx, A, b).view(), name_of(b).c_str());
        throw;
    }
    return all;
}

}  // namespace

template <class T>
BatchedSVD<T> svd(Context<Host>& ctx, BatchView<const T> A, bool vectors, Options options) {
    require_storage(A);
    require_orthonormal(options, "svd");
    require_unpivoted(options, "svd of a batch");
    if (A.uniform())
        return A.rows(0) < A.cols(0) ? svd_of_wide<T>(ctx, A, vectors, options)
                                     : svd_of_tall<T>(ctx, A, vectors, options);
    BatchedSVD<T> all = allocated<T>(ctx, A, vectors);
    for_each_named(ctx, A.count(), 0,
                   [&](Context<Host>& mine, Index b) { decompose_alone<T>(mine, A, b, vectors, options, all); });
    return all;
}

template BatchedSVD<float> svd(Context<Host>&, BatchView<const float>, bool, Options);
template BatchedSVD<double> svd(Context<Host>&, BatchView<const double>, bool, Options);

}  // namespace quoin
