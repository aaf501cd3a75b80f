#include "cuda/small/batch.hpp"

#include <algorithm>
#include <vector>

#include "cuda/elements/elementwise.cuh"
#include "cuda/plain/householder.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/small/cluster_per_matrix.hpp"
#include "cuda/small/thread_per_column.cuh"
#include "cuda/small/thread_per_matrix.cuh"
#include "cuda/strips/strips.hpp"

namespace quoin {

namespace {

using namespace cuda;

unsigned grid_of(int group, Index count) {
    const Index each = column_threads / group;
    return static_cast<unsigned>((count + each - 1) / each);
}

/// The members of a batch as kernels find them. A list goes to the device.
template <class T>
class Entries {
public:
    Entries(Context<Cuda>& ctx, BatchView<T, Cuda> batch, Members members) {
        if (members.count == 0) return;
        if (batch.uniform() && members.list.empty()) {
            entries_ = {batch.data(0), batch.row_stride(0), batch.col_stride(0),
                        members.count > 1 ? batch.data(1) - batch.data(0) : 0};
            return;
        }
        std::vector<One> list;
        for (Index i = 0; i < members.count; ++i) {
            const Index b = members[i];
            list.push_back({batch.data(b), batch.row_stride(b), batch.col_stride(b)});
        }
        list_ = on_device(ctx, list);
        entries_.list = list_.data();
    }
    operator const BatchEntries<T>&() const { return entries_; }

private:
    using One = typename BatchEntries<T>::One;

    BatchEntries<T> entries_;
    Matrix<One, Cuda> list_;
};

/// Runs factor(check), and returns the first member with NaN or Inf, or −1. Waits until the kernel has read all
/// members, not for its end.
template <class Factor>
Index find_bad(Context<Cuda>& ctx, Members members, bool check_finite, Factor factor) {
    if (!check_finite || members.count == 0) {
        factor(FiniteCheck());
        return -1;
    }
    const unsigned long long bad = ctx.state().told_by(
        none_bad - 1, [&](unsigned long long* told, unsigned long long* first, unsigned long long* parts) {
            factor(FiniteCheck{told, first, parts});
        });
    return bad == none_bad ? -1 : members[static_cast<Index>(bad)];
}

unsigned thread_blocks(Index count) { return static_cast<unsigned>((count + matrix_threads - 1) / matrix_threads); }

/// f(i, j, b) for every entry of `count` rows×cols matrices, threads along the columns of one matrix after the other.
template <class F>
void for_each_small_entry(Context<Cuda>& ctx, Index rows, Index cols, Index count, F f) {
    const Index each = rows * cols, all = each * count, at_once = Index(1) << 31;
    for (Index first = 0; first < all; first += at_once / each * each) {
        const Index past = std::min(all, first + at_once / each * each), b = first / each;
        // 32-bit divisions
        for_each_element(ctx, past - first, 1, [=] __device__(Index x, Index) {
            const unsigned at = static_cast<unsigned>(x), of = at / static_cast<unsigned>(each),
                           in = at - of * static_cast<unsigned>(each), j = in / static_cast<unsigned>(rows);
            f(Index(in - j * static_cast<unsigned>(rows)), Index(j), b + of);
        });
    }
}

/// Calls work(first, members, width) for each run of members whose matrices have equal widths: one launch each.
template <class T, class Work>
void for_each_width(BatchView<T, Cuda> C, Members members, Work work) {
    if (members.count == 0) return;
    if (C.uniform()) return work(0, members, C.cols(0));
    Index first = 0;
    std::vector<Index> list(members.count);
    for (Index i = 0; i < members.count; ++i) list[i] = members[i];
    for (Index i = 1; i <= members.count; ++i) {
        if (i < members.count && C.cols(members[i]) == C.cols(members[first])) continue;
        const bool all = first == 0 && i == members.count;
        work(first, all ? members : Members{std::span<const Index>(list).subspan(first, i - first), i - first},
             C.cols(members[first]));
        first = i;
    }
}

}  // namespace

template <class T>
SmallBatch<T, Cuda>::SmallBatch(Context<Cuda>& ctx, Index m, Index n, Index count, Matrix<T, Cuda>* memory, BatchOf of)
    : m_(m),
      n_(n),
      k_(std::min(m, n)),
      choice_(choose_batch(m, n, scalar_kind<T>, of, ctx.state().kernels)),
      tau_(ctx, k_, count) {
    if (in_strips()) {
        const auto size = strips_size(count);
        const Index width = size.width;
        factor_ = Matrix<T, Cuda>(ctx, size.tiles * 8 * width, size.pieces * count);
        squares_ = Matrix<T, Cuda>(ctx, 2 * width * width, size.panels * count);
    } else {
        factor_ = memory && memory->rows() > 0 ? std::move(*memory) : Matrix<T, Cuda>(ctx, m, n * count);
    }
}

template <class T>
std::optional<LapackQR<T, Cuda>> SmallBatch<T, Cuda>::take_lapack() {
    if (in_strips()) return {};
    return LapackQR<T, Cuda>{std::move(factor_), std::move(tau_)};
}

template <class T>
strips::StripSize SmallBatch<T, Cuda>::strips_size(Index count) const {
    return strips::size_of<T>(choice_.row, count, m_, n_);
}
template <class T>
BatchSize SmallBatch<T, Cuda>::columns_size(Index count) const {
    return {count, m_, n_, factor_.ld()};
}
template <class T>
strips::StripFactors<T> SmallBatch<T, Cuda>::strips_from(Index first) const {
    const auto size = strips_size(1);
    // the kernels write only while they factor
    const auto at = [](const Matrix<T, Cuda>& A, Index column) { return const_cast<T*>(A.data()) + column * A.ld(); };
    return {at(factor_, first * size.pieces), at(squares_, first * size.panels), at(tau_, first)};
}

namespace {

/// Factors matrices that threads, groups of lanes or clusters hold.
template <class T>
Index factor_held(Context<Cuda>& ctx, BatchChoice choice, const BatchSize& size, BatchView<const T, Cuda> A,
                  Members members, bool check_finite, const BatchOutputs<T>& out) {
    ctx.state().add_flops((out.form_q ? 4.0 : 2.0) * size.m * size.n * size.k * size.count);
    return find_bad(ctx, members, check_finite, [&](const FiniteCheck& check) {
        const Entries<const T> entries(ctx, A, members);
        switch (choice.kernel) {
            case BatchKernel::ThreadPerMatrix:
                return launch(ctx.stream(), factor_in_threads_kernel<T>, {thread_blocks(size.count), matrix_threads},
                              size, entries, out, check);
            case BatchKernel::ThreadPerColumn:
                return with_row<std::size(column_lanes)>(choice.row, [&](auto row) {
                    constexpr int rows = column_lanes[row].rows, group = column_lanes[row].lanes;
                    const auto kernel = out.form_q ? factor_columns_kernel<T, rows, group, true>
                                                   : factor_columns_kernel<T, rows, group, false>;
                    launch(ctx.stream(), kernel, {grid_of(group, size.count), column_threads}, size, entries, out,
                           check);
                });
            case BatchKernel::ClusterPerMatrix: return rows::factor<T>(ctx, choice.row, size, entries, out, check);
            case BatchKernel::Strips:
            case BatchKernel::Plain:
            case BatchKernel::None: break;
        }
    });
}

/// Factors packed matrices of n columns in X one after the other. Returns the first that has NaN or Inf, or −1.
template <class T>
Index factor_one_by_one(Context<Cuda>& ctx, MatrixView<T, Cuda> X, Index n, bool check_finite,
                        MatrixView<T, Cuda> tau) {
    Matrix<int, Cuda> exponents(ctx, X.cols, 1);
    Matrix<Scan, Cuda> found(ctx, 1, 1);
    scan<T>(ctx, std::as_const(X), Scalar<T>::safe_exponent, exponents.view(), found.view());
    const Scan seen = read_scan(ctx, std::as_const(found).view());
    if (check_finite && seen.bad_col >= 0) return seen.bad_col / n;
    if (seen.scaled) scale_columns<T>(ctx, exponents.view(), -1, Part::All, X);
    for (Index i = 0; i < X.cols / n; ++i) {
        const Range columns{i * n, (i + 1) * n};
        plain::factor<T>(ctx, X.col_block(columns), tau.at(0, i));
        if (seen.scaled)
            scale_columns<T>(ctx, exponents.view().row_block(columns), 1, Part::Upper, X.col_block(columns));
    }
    return -1;
}

/// Applies packed reflectors, matrix by matrix, as the kernels do: to := op(Q) from. If `upper`, `from` has upper
/// triangles E, and to := op(Q) [E; 0], or op(Q) I without them.
template <class T>
void apply_one_by_one(Context<Cuda>& ctx, const BatchSize& size, const T* X, const T* tau, bool transpose, Index p,
                      const BatchEntries<const T>& from, bool upper, const BatchEntries<T>& to) {
    const Index m = size.m, n = size.n, k = size.k, rows_of_from = upper ? k : m;
    const bool has_from = from.data || from.list;
    Arena::Frame frame(ctx);
    const auto C = frame.matrix<T>(m, p), Tf = frame.matrix<T>(k, k);
    for (Index b = 0; b < size.count; ++b) {
        for_each_element(ctx, m, p, [=] __device__(Index i, Index j) {
            C.data[i + j * C.ld] = has_from && i < rows_of_from ? from[b](i, j) : T(!has_from && i == j);
        });
        const MatrixView<const T, Cuda> V{X + b * size.ld * n, m, k, size.ld};
        compact_wy<T>(ctx, V, MatrixView<const T, Cuda>{tau + b * k, k, 1}, Tf);
        apply_panel<T>(ctx, transpose ? Op::Transpose : Op::None, V, Tf, C);
        for_each_element(ctx, m, p, [=] __device__(Index i, Index j) { to[b](i, j) = C.data[i + j * C.ld]; });
    }
}

}  // namespace

template <class T>
Index SmallBatch<T, Cuda>::factor(Context<Cuda>& ctx, BatchView<const T, Cuda> A, Members members, bool check_finite) {
    if (choice_.kernel == BatchKernel::Plain) {
        const Entries<const T> entries(ctx, A, members);
        const BatchEntries<const T>& from = entries;
        T* const X = factor_.data();
        for_each_small_entry(ctx, m_, n_, members.count,
                             [=, n = n_, ld = factor_.ld()] __device__(Index i, Index j, Index b) {
                                 X[(b * n + j) * ld + i] = from[b](i, j);
                             });
        ctx.state().add_flops(2.0 * m_ * n_ * k_ * members.count);
        const Index bad =
            factor_one_by_one<T>(ctx, factor_.view().col_block({0, n_ * members.count}), n_, check_finite, tau_.view());
        return bad >= 0 ? members[bad] : -1;
    }
    if (!in_strips()) {
        return factor_held<T>(
            ctx, choice_, columns_size(members.count), A, members, check_finite,
            {Factor::VR, false, {factor_.data(), 1, factor_.ld(), factor_.ld() * n_}, {tau_.data(), 1, k_, k_}});
    }
    ctx.state().add_flops(2.0 * m_ * n_ * k_ * members.count);
    return find_bad(ctx, members, check_finite, [&](const FiniteCheck& check) {
        strips::factor<T>(ctx, strips_size(members.count), Entries<const T>(ctx, A, members), strips_from(0), check);
    });
}

template <class T>
Index SmallBatch<T, Cuda>::factor_to(Context<Cuda>& ctx, Index m, Index n, BatchView<const T, Cuda> A, Members members,
                                     bool check_finite, Factor kept, BatchView<T, Cuda> B, BatchView<T, Cuda> other,
                                     BatchOf of) {
    const bool form_q = kept == Factor::R && other.count() > 0;
    const BatchChoice choice = choose_batch(m, n, scalar_kind<T>, of, ctx.state().kernels);
    if (choice.kernel != BatchKernel::Strips && choice.kernel != BatchKernel::Plain) {
        const BatchSize size(members.count, m, n, m);
        return factor_held<T>(ctx, choice, size, A, members, check_finite,
                              {kept, form_q, Entries<T>(ctx, B, members),
                               Entries<T>(ctx, other, kept == Factor::VR || form_q ? members : Members())});
    }
    SmallBatch all(ctx, m, n, members.count, nullptr, of);
    const Index bad = all.factor(ctx, A, members, check_finite);
    if (bad >= 0) return bad;
    all.unpack(ctx, kept, members, B);
    if (kept == Factor::VR) all.unpack_tau(ctx, members, other);
    if (form_q) all.form_q(ctx, members, other);
    return -1;
}

template <class T>
void SmallBatch<T, Cuda>::unpack(Context<Cuda>& ctx, Factor factor, Members members, BatchView<T, Cuda> B) const {
    const Entries<T> entries(ctx, B, members);
    if (in_strips()) return strips::unpack<T>(ctx, strips_size(members.count), strips_from(0), factor, entries);
    const BatchEntries<T>& to = entries;
    const bool upper = factor == Factor::R;
    const Index rows = upper ? k_ : m_;
    const T* const X = factor_.data();
    for_each_small_entry(ctx, rows, n_, members.count,
                         [=, n = n_, ld = factor_.ld()] __device__(Index i, Index j, Index b) {
                             to[b](i, j) = upper && i > j ? T(0) : X[(b * n + j) * ld + i];
                         });
}

template <class T>
void SmallBatch<T, Cuda>::unpack_tau(Context<Cuda>& ctx, Members members, BatchView<T, Cuda> tau) const {
    const Entries<T> entries(ctx, tau, members);
    const BatchEntries<T>& to = entries;
    const T* const from = tau_.data();
    for_each_small_entry(ctx, k_, 1, members.count,
                         [=, k = k_] __device__(Index i, Index, Index b) { to[b](i, 0) = from[i + b * k]; });
}

template <class T>
void SmallBatch<T, Cuda>::apply(Context<Cuda>& ctx, Index first, Index count, bool transpose, Index p,
                                const BatchEntries<const T>& from, bool upper, const BatchEntries<T>& to) const {
    if (count == 0 || p == 0) return;
    const T *const X = factor_.data() + first * factor_.ld() * n_, *const tau = tau_.data() + first * k_;
    switch (choice_.kernel) {
        case BatchKernel::ThreadPerMatrix:
            return launch(ctx.stream(), apply_in_threads_kernel<T>, {thread_blocks(count), matrix_threads},
                          columns_size(count), X, tau, transpose, static_cast<int>(p), from, upper, to);
        case BatchKernel::ThreadPerColumn:
            return with_row<std::size(column_lanes)>(choice_.row, [&](auto row) {
                constexpr int rows = column_lanes[row].rows, group = column_lanes[row].lanes;
                launch(ctx.stream(), apply_columns_kernel<T, rows, group>, {grid_of(group, count), column_threads},
                       columns_size(count), X, tau, transpose, static_cast<int>(p), from, upper, to);
            });
        case BatchKernel::ClusterPerMatrix:
            return rows::apply<T>(ctx, columns_size(count), X, tau, transpose, p, from, upper, to);
        case BatchKernel::Strips:
            return strips::apply<T>(ctx, strips_size(count), strips_from(first), transpose, p, from, upper, to);
        case BatchKernel::Plain:
            return apply_one_by_one<T>(ctx, columns_size(count), X, tau, transpose, p, from, upper, to);
        case BatchKernel::None: break;
    }
}

template <class T>
void SmallBatch<T, Cuda>::form_q(Context<Cuda>& ctx, Members members, BatchView<T, Cuda> Q) const {
    apply(ctx, 0, members.count, false, k_, {}, true, Entries<T>(ctx, Q, members));
}

template <class T>
void SmallBatch<T, Cuda>::form_q(Context<Cuda>& ctx, Members members, BatchView<const T, Cuda> E,
                                 BatchView<T, Cuda> Q) const {
    apply(ctx, 0, members.count, false, k_, Entries<const T>(ctx, E, members), true, Entries<T>(ctx, Q, members));
}

template <class T>
void SmallBatch<T, Cuda>::apply_q(Context<Cuda>& ctx, Op op, Members members, BatchView<const T, Cuda> from,
                                  BatchView<T, Cuda> to) const {
    for_each_width(to, members, [&](Index first, Members some, Index p) {
        apply(ctx, first, some.count, op == Op::Transpose, p, Entries<const T>(ctx, from, some), false,
              Entries<T>(ctx, to, some));
    });
}

template <class T, class D>
void copy_batch(Context<D>& ctx, BatchView<const T, D> from, BatchView<T, D> to) {
    const Members all{{}, to.count()};
    const Entries<const T> source(ctx, from, all);
    const Entries<T> target(ctx, to, all);
    const BatchEntries<const T>& A = source;
    const BatchEntries<T>& B = target;
    for_each_small_entry(ctx, to.rows(0), to.cols(0), all.count,
                         [=] __device__(Index i, Index j, Index b) { B[b](i, j) = A[b](i, j); });
}

template decltype(copy_batch<float, Cuda>) copy_batch<float, Cuda>;
template decltype(copy_batch<double, Cuda>) copy_batch<double, Cuda>;
template class SmallBatch<float, Cuda>;
template class SmallBatch<double, Cuda>;

}  // namespace quoin
