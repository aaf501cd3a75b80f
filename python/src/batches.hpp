#pragma once

// Factorizations and least squares of stacks, the matrices in the last two dimensions of an array, and of lists of
// matrices.

#include <nanobind/stl/vector.h>

#include <map>

#include "devices.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {

template <class T, class D>
using List = std::vector<Array<T, D>>;

/// The matrices of a call, in the caller's memory if a BatchView can describe it, otherwise copied.
template <class T, class D>
class Operands {
public:
    Operands(Context<D>& ctx, const Batch<T, D>& stack) {
        const Index m = stack.rows(), n = stack.cols(), count = stack.count();
        if (count == 0) {
            view = {nullptr, m, n, m, 0, 0};
            return;
        }
        if (const auto stride = stack.stride()) {
            const StridedMatrix<T, D> A = stack[0];
            view = {A.data, m, n, A.row_stride, A.col_stride, *stride, count};
            return;
        }
        Matrix<T, D> copy(ctx, m, n * count);
        for (Index b = 0; b < count; ++b) load<T>(ctx, stack[b], copy.view().col_block({b * n, (b + 1) * n}));
        view = {std::as_const(copy).data(), m, n, copy.ld(), m * n, count};
        copies_.push_back(std::move(copy));
    }
    Operands(Context<D>& ctx, const List<T, D>& list) {
        std::vector<MatrixView<const T, D>> views;
        for (const Array<T, D>& array : list) {
            const StridedMatrix<T, D> A = matrix_of<T, D>(array);
            if (!A.column_major()) copies_.push_back(copy_of<T>(ctx, A));
            views.push_back(A.column_major() ? A.view() : std::as_const(copies_.back()).view());
        }
        view = BatchView<const T, D>(std::move(views));
    }
    Operands(const Operands&) = delete;
    Operands& operator=(const Operands&) = delete;

    BatchView<const T, D> view;

private:
    std::vector<Matrix<T, D>> copies_;
};

/// One result of a list, with an array for each matrix.
template <class T, class D>
class ListResult {
public:
    /// Allocates rows(b)×cols(b) matrices for the caller's arrays. Returns their first given(b) rows; the rows below
    /// are zeros.
    template <class RowsOf, class ColsOf, class GivenOf>
    BatchView<T, D> allocate(Context<D>& ctx, Index count, RowsOf rows, ColsOf cols, GivenOf given) {
        std::vector<MatrixView<T, D>> views;
        for (Index b = 0; b < count; ++b) {
            if (given(b) < rows(b)) {
                Matrix<T> zeros(rows(b), cols(b));
                std::fill_n(zeros.data(), rows(b) * cols(b), T(0));
                matrices_.push_back(placed<T>(ctx, std::move(zeros)));
            } else {
                matrices_.emplace_back(ctx, rows(b), cols(b));
            }
            views.push_back(matrices_.back().view().row_block({0, given(b)}));
        }
        return BatchView<T, D>(std::move(views));
    }
    /// Copies the matrices of a batch.
    void put(Context<D>& ctx, quoin::Batch<T, D>&& batch) {
        for (Index b = 0; b < batch.count(); ++b) {
            matrices_.emplace_back(ctx, batch[b].rows, batch[b].cols);
            copy<T>(ctx, MatrixView<const T, D>(batch[b]), matrices_.back().view());
        }
    }
    nb::object take(const Home<D>& home, const Where<D>& where, As as = As::Matrix) {
        nb::list arrays;
        for (Matrix<T, D>& M : matrices_) arrays.append(to_array(home, where, std::move(M), as));
        return arrays;
    }

private:
    std::vector<Matrix<T, D>> matrices_;
};

/// Writes every m×m Q_b to `to`.
template <class T, class D>
void form_complete_q(Context<D>& ctx, const BatchedQR<T, D>& f, BatchView<T, D> to) {
    std::map<Index, Matrix<T, D>> identities;
    std::vector<MatrixView<const T, D>> from;
    for (Index b = 0; b < (to.uniform() ? std::min<Index>(1, to.count()) : to.count()); ++b) {
        const Index m = to.rows(b);
        if (!identities.contains(m)) {
            Matrix<T> I(m, m);
            for (Index i = 0; i < m * m; ++i) I.data()[i] = i % (m + 1) == 0;
            identities.emplace(m, placed<T>(ctx, std::move(I)));
        }
        from.push_back(std::as_const(identities.at(m)).view());
    }
    if (from.empty()) return;
    f.apply_q(ctx, Op::None,
              to.uniform() ? BatchView<const T, D>(from[0].data, from[0].rows, from[0].cols, from[0].ld, 0, to.count())
                           : BatchView<const T, D>(from),
              to);
}

/// The factorizations of a stack or of a list.
template <class T, class D>
class Factorizations {
public:
    Factorizations(const Array<T, D>& array, const Options& options, const Where<D>& where) : home_(where) {
        const Batch<T, D> stack(array);
        stacked_ = true;
        leading_ = stack.shape();
        m_ = stack.rows();
        n_ = stack.cols();
        run(where, flops_of(stack),
            [&](Context<D>& ctx) { f_.emplace(qr<T, D>(ctx, Operands<T, D>(ctx, stack).view, options)); });
    }
    Factorizations(const List<T, D>& list, const Options& options, const Where<D>& where) : home_(where) {
        run(where, flops_of(list),
            [&](Context<D>& ctx) { f_.emplace(qr<T, D>(ctx, Operands<T, D>(ctx, list).view, options)); });
    }

    nb::object shape() const {
        nb::list shapes;
        if (stacked_) {
            for (const std::size_t length : leading_) shapes.append(length);
            shapes.append(m_);
            shapes.append(n_);
            return nb::tuple(shapes);
        }
        for (Index b = 0; b < f_->count(); ++b) shapes.append(nb::make_tuple(f_->rows(b), f_->cols(b)));
        return shapes;
    }
    /// Returns the permutations of a stack, a row for each matrix.
    nb::object permutations() const {
        Matrix<Index> all(n_, count());
        for (Index b = 0; b < count(); ++b) std::ranges::copy(f_->permutation(b), all.view().at(0, b));
        return to_numpy(std::move(all), As::Transpose);
    }
    /// Returns R, with zeros below it up to m rows if `complete`.
    nb::object r(bool complete, const Where<D>& where) const {
        return result(
            where, [&](Index b) { return complete ? rows(b) : least(b); }, [&](Index b) { return cols(b); },
            [&](Index b) { return least(b); }, [&](Context<D>& ctx, BatchView<T, D> R) { f_->r(ctx, R); });
    }
    /// Returns the thin Q, or the square Q if `complete`.
    nb::object q(bool complete, const Where<D>& where) const {
        const auto rows_of = [&](Index b) { return rows(b); };
        return result(
            where, rows_of, [&](Index b) { return complete ? rows(b) : least(b); }, rows_of,
            [&](Context<D>& ctx, BatchView<T, D> Q) {
                if (complete) return form_complete_q<T, D>(ctx, *f_, Q);
                f_->form_q(ctx, Q);
            });
    }
    /// Returns V_Rᵀ and tau.
    nb::tuple raw(const Where<D>& where) const {
        if (stacked_) {
            const Index k = least(0);
            BatchResult<T, D> h(where, leading_, count(), m_, n_, m_, As::Transpose);
            BatchResult<T, D> tau(where, leading_, count(), k, 1, k, As::Vector);
            run(where, 0, [&](Context<D>& ctx) { f_->lapack(ctx, h.all(m_), tau.all(k)); });
            return nb::make_tuple(h.take(), tau.take());
        }
        ListResult<T, D> h, tau;
        run(where, 0, [&](Context<D>& ctx) {
            const auto rows_of = [&](Index b) { return rows(b); };
            const auto k_of = [&](Index b) { return least(b); };
            f_->lapack(ctx,
                       h.allocate(
                           ctx, count(), rows_of, [&](Index b) { return cols(b); }, rows_of),
                       tau.allocate(
                           ctx, count(), k_of, [](Index) { return Index(1); }, k_of));
        });
        return nb::make_tuple(h.take(home_, where, As::Transpose), tau.take(home_, where, As::Vector));
    }
    /// Returns op(Q) C for a stack with the same leading dimensions, or for a list.
    template <class Given>
    nb::object apply(const Given& given, bool transpose, const Where<D>& where) const {
        const auto& C = operand(given);
        const auto rows_of = [&](Index b) { return rows(b); };
        return result(
            where, rows_of, [&](Index b) { return columns(C, b); }, rows_of,
            [&](Context<D>& ctx, BatchView<T, D> to) {
                f_->apply_q(ctx, transpose ? Op::Transpose : Op::None, Operands<T, D>(ctx, C).view, to);
            });
    }
    /// Returns X, residual norms, condition numbers, R, and the ranks as `solution`.
    template <class Given>
    nb::tuple lstsq(const Given& given, const Solver& solver, const Where<D>& where) const {
        const auto& B = operand(given);
        auto s = result_of(home_, where, 0, [&](Context<D>& ctx) {
            return least_squares<T, D>(ctx, *f_, Operands<T, D>(ctx, B).view, solver_of(solver));
        });
        return solution(std::move(s), stacked_, leading_, m_, n_, stacked_ ? columns(B, 0) : 0, home_, where);
    }
    Report report(Index b) const { return f_->report(b); }
    Index count() const { return f_->count(); }

    /// Returns the solutions of a batch as arrays, with n×p matrices X for a stack of m×n matrices, or as lists of
    /// arrays. The ranks are a list; of a stack the pairs (b, rank) of the matrices without full rank.
    static nb::tuple solution(quoin::BatchedLeastSquares<T, D>&& s, bool stacked,
                              const std::vector<std::size_t>& leading, Index m, Index n, Index p, const Home<D>& home,
                              const Where<D>& where) {
        const auto put = [&](auto& X, auto& norms, auto& conditions, auto& R) {
            run_released(home, where, 0, [&](Context<D>& ctx) {
                X.put(ctx, std::move(s.X));
                norms.put(ctx, std::move(s.residual_norms));
                conditions.put(ctx, std::move(s.conditions));
                R.put(ctx, std::move(s.R));
            });
        };
        if (stacked) {
            const Index count = s.X.count(), k = std::min(m, n);
            std::vector<std::pair<Index, Index>> deficient;
            for (Index b = 0; b < count; ++b)
                if (s.ranks[b] < k) deficient.emplace_back(b, s.ranks[b]);
            BatchResult<T, D> X(where, leading, count, n, p, n), norms(where, leading, count, p, 1, p, As::Vector),
                conditions(where, leading, count, 1, 1, 1, As::Vector), R(where, leading, count, k, k, k);
            put(X, norms, conditions, R);
            return nb::make_tuple(X.take(), norms.take(), conditions.take(), R.take(), std::move(deficient));
        }
        ListResult<T, D> X, norms, conditions, R;
        put(X, norms, conditions, R);
        return nb::make_tuple(X.take(home, where), norms.take(home, where, As::Vector),
                              conditions.take(home, where, As::Vector), R.take(home, where), std::move(s.ranks));
    }
    static Batch<T, D> operand(const Array<T, D>& array) { return Batch<T, D>(array); }
    static const List<T, D>& operand(const List<T, D>& list) { return list; }
    static double flops_of(const Batch<T, D>& stack) { return flops_of_qr(stack.rows(), stack.cols()) * stack.count(); }
    static double flops_of(const List<T, D>& list) {
        double flops = 0;
        for (const Array<T, D>& a : list) flops += flops_of_qr(a.shape(0), a.shape(1));
        return flops;
    }

private:
    template <class Work>
    void run(const Where<D>& where, double flops, Work&& work) const {
        run_released(home_, where, flops, work);
    }
    Index rows(Index b) const { return stacked_ ? m_ : f_->rows(b); }
    Index cols(Index b) const { return stacked_ ? n_ : f_->cols(b); }
    Index least(Index b) const { return b < count() ? f_->k(b) : std::min(rows(b), cols(b)); }
    static Index columns(const Batch<T, D>& C, Index) { return C.cols(); }
    static Index columns(const List<T, D>& C, Index b) {
        // the library reports a wrong number of matrices
        return static_cast<std::size_t>(b) < C.size() ? static_cast<Index>(C[b].shape(1)) : 0;
    }
    /// Returns rows(b)×cols(b) matrices. fill(ctx, batch) writes their first given(b) rows; the rows below are zeros.
    template <class RowsOf, class ColsOf, class GivenOf, class Fill>
    nb::object result(const Where<D>& where, RowsOf rows_of, ColsOf cols_of, GivenOf given, Fill fill) const {
        double elements = 0;
        for (Index b = 0; b < (stacked_ ? 1 : count()); ++b) elements += 4.0 * rows(b) * rows_of(b) * cols_of(b);
        if (stacked_) elements *= static_cast<double>(count());
        if (stacked_) {
            BatchResult<T, D> all(where, leading_, count(), rows_of(0), cols_of(0), given(0));
            run(where, elements, [&](Context<D>& ctx) { fill(ctx, all.all(given(0))); });
            return all.take();
        }
        ListResult<T, D> list;
        run(where, elements, [&](Context<D>& ctx) { fill(ctx, list.allocate(ctx, count(), rows_of, cols_of, given)); });
        return list.take(home_, where);
    }

    Home<D> home_;
    std::optional<BatchedQR<T, D>> f_;
    bool stacked_ = false;
    std::vector<std::size_t> leading_;
    Index m_ = 0, n_ = 0;
};

/// Returns for a stack the thin Q and R, R alone, or V_Rᵀ and tau, by `options.q`.
template <class T, class D>
nb::object qr_stack(const Array<T, D>& array, const Options& options, const Where<D>& where) {
    const Batch<T, D> stack(array);
    const Index m = stack.rows(), n = stack.cols(), k = std::min(m, n), count = stack.count();
    const bool raw = options.q == QForm::Reflectors;
    std::optional<BatchResult<T, D>> first;
    if (options.q != QForm::None)
        first.emplace(where, stack.shape(), count, m, raw ? n : k, m, raw ? As::Transpose : As::Matrix);
    BatchResult<T, D> second(where, stack.shape(), count, k, raw ? 1 : n, k, raw ? As::Vector : As::Matrix);
    run_released(Home<D>(where), where, Factorizations<T, D>::flops_of(stack), [&](Context<D>& ctx) {
        const Operands<T, D> A(ctx, stack);
        if (raw) return qr_lapack<T, D>(ctx, A.view, first->all(m), second.all(k), options);
        qr<T, D>(ctx, A.view, first ? first->all(m) : BatchView<T, D>(), second.all(k), options);
    });
    return first ? nb::object(nb::make_tuple(first->take(), second.take())) : second.take();
}

/// Solves min ‖A X − B‖ for a stack, with a B of the same leading dimensions, or for a list.
template <class T, class D, class Given>
nb::tuple solve_batch(const Given& a, const Given& b, const Solver& solver, const nb::object& method,
                      const Where<D>& where, bool check_finite) {
    using F = Factorizations<T, D>;
    const auto &A = F::operand(a), &B = F::operand(b);
    const Options options = options_of(method, check_finite);
    const Home<D> home(where);
    auto s = result_of(home, where, F::flops_of(A), [&](Context<D>& ctx) {
        return least_squares<T, D>(ctx, Operands<T, D>(ctx, A).view, Operands<T, D>(ctx, B).view, solver_of(solver),
                                   options);
    });
    if constexpr (std::is_same_v<Given, Array<T, D>>) {
        return F::solution(std::move(s), true, A.shape(), A.rows(), A.cols(), B.cols(), home, where);
    } else {
        return F::solution(std::move(s), false, {}, 0, 0, 0, home, where);
    }
}

}  // namespace quoin::python
