// Least squares for a batch: several matrices of one shape at once if the device can, otherwise one by one.

#include <exception>
#include <mutex>

#include "algorithms/batches/batched_qr.hpp"
#include "algorithms/one_matrix/full_rank.hpp"
#include "algorithms/one_matrix/range_scaling.hpp"
#include "quoin/least_squares.hpp"

namespace quoin {
namespace {

template <class T, class D>
class Solver {
public:
    Solver(Context<D>& ctx, Index count, BatchView<const T, D> B, const LeastSquaresOptions& solver, bool checked,
           bool uniform)
        : ctx_(ctx), B_(B), count_(count), rcond_(solver.rcond), checked_(checked), uniform_(uniform && B.uniform()) {}

    /// Allocates solutions of n_of(b) rows and triangular factors of r_of(b).
    template <class RowsOf, class SizeOf>
    void allocate(const RowsOf& n_of, const SizeOf& r_of) {
        const auto memory = [&](const auto& rows_of, const auto& cols_of) {
            return batch_of<T, D>(ctx_, count_, uniform_, [&](Index b) {
                return std::pair<Index, Index>{rows_of(b), cols_of(b)};
            });
        };
        const auto p_of = [&](Index b) { return B_.cols(b); };
        solution_.X = memory(n_of, p_of);
        solution_.residual_norms = memory(p_of, [](Index) { return Index(1); });
        solution_.conditions = Batch<T, D>(ctx_, 1, 1, count_);
        solution_.R = memory(r_of, r_of);
        for (Index b = 0; b < count_; ++b) solution_.ranks.push_back(r_of(b));
    }
    /// Returns the solution. If `checked`, throws the error of the first matrix of the batch that was refused.
    BatchedLeastSquares<T, D> take() {
        if (checked_ && failure_) std::rethrow_exception(failure_);
        return std::move(solution_);
    }

    /// Solves with A = QR of small matrices. Matrices that this refuses are solved by alone(ctx, b, B_b), which returns
    /// their LeastSquares.
    template <class Alone>
    void solve_small(const SmallBatch<T, D>& small, Op op, Members members, const Alone& alone) {
        const bool some = small.solve(ctx_, op, members, B_, default_tolerance<T>, checked_, solution_.X.view(),
                                      solution_.residual_norms.view(), solution_.conditions.view());
        small.unpack(ctx_, Factor::R, members, solution_.R.view());
        const bool by_values = rcond_ != -1;
        if (!some && !by_values) return;
        Matrix<T> conditions(1, count_);
        start_copy_to_host<T, D>(ctx_, {solution_.conditions.view().data(0), 1, count_}, conditions.view());
        finish_copies(ctx_);
        ctx_.wait();
        for (Index i = 0; i < members.count; ++i) {
            const Index b = members[i];
            const double condition = static_cast<double>(conditions(0, b));
            if (std::isnan(condition) || (by_values && !has_full_rank(condition, solution_.ranks[b], rcond_)))
                solve_alone(ctx_, b, alone);
        }
    }
    template <class Alone>
    void solve_each(Members members, double flops, const Alone& alone) {
        for_each_matrix(ctx_, members.count, flops, Memory::Returned,
                        [&](Context<D>& mine, Index i) { solve_alone(mine, members[i], alone); });
    }

private:
    template <class Alone>
    void solve_alone(Context<D>& ctx, Index b, const Alone& alone) {
        const Matrix<T, D> B = gathered<T, D>(ctx, B_, b);
        const auto X = solution_.X[b], norms = solution_.residual_norms[b], condition = solution_.conditions[b],
                   R = solution_.R[b];
        LeastSquares<T, D> found;
        if (solved(ctx, b, B.view(), alone, found)) {
            copy<T>(ctx, found.X.view(), X);
            scale_by_power<T, D>(ctx, found.exponent, found.R.view(), R);
            solution_.ranks[b] = found.rank;
        } else {
            constexpr T none = std::numeric_limits<T>::quiet_NaN();
            found.residual_norms.assign(B.cols(), none);
            found.condition = none;
            for (const auto& unknown : {X, R}) {
                Matrix<T> poison(unknown.rows, unknown.cols);
                std::fill_n(poison.data(), unknown.rows * unknown.cols, none);
                write(ctx, poison.view(), unknown);
            }
        }
        const T kappa = static_cast<T>(found.condition);
        write(ctx, {found.residual_norms.data(), norms.rows, 1}, norms);
        write(ctx, {&kappa, 1, 1}, condition);
    }
    /// found := alone(ctx, b, B). Returns false if that throws. `take` throws the error then, with the name of matrix
    /// b.
    template <class Alone>
    bool solved(Context<D>& ctx, Index b, MatrixView<const T, D> B, const Alone& alone, LeastSquares<T, D>& found) {
        try {
            found = alone(ctx, b, B);
            return true;
        } catch (const NonFiniteEntry& e) {
            try {
                require_finite<T, D>(ctx, B, fmt::format("matrix {} of B", b).c_str());
                refuse(b, NonFiniteEntry(e.row, e.col, name_of(b)));
            } catch (const NonFiniteEntry& of_B) {
                refuse(b, of_B);
            }
        } catch (const RankDeficient& e) {
            refuse(b, RankDeficient(name_of(b) + ": " + e.what(), e.rcond));
        } catch (const NumericalBreakdown& e) {
            refuse(b, NumericalBreakdown(name_of(b) + ": " + e.what(), e.column));
        }
        return false;
    }
    template <class E>
    void refuse(Index b, const E& error) {
        const std::lock_guard lock(mutex_);
        if (b >= refused_) return;
        refused_ = b;
        failure_ = std::make_exception_ptr(error);
    }
    static void write(Context<D>& ctx, MatrixView<const T> from, MatrixView<T, D> to) {
        if (from.empty()) return;
        start_copy_from_host<T, D>(ctx, from, to);
        finish_copies(ctx);
        ctx.wait();
    }

    Context<D>& ctx_;
    BatchView<const T, D> B_;
    Index count_;
    double rcond_;
    bool checked_, uniform_;
    BatchedLeastSquares<T, D> solution_;
    std::mutex mutex_;  // guards the first matrix that is refused
    Index refused_ = std::numeric_limits<Index>::max();
    std::exception_ptr failure_;
};

/// Returns the transposes of the members, in order.
template <class T, class D>
Batch<T, D> transposes(Context<D>& ctx, BatchView<const T, D> A, const ShapeClass<T, D>& c) {
    Batch<T, D> At(ctx, c.n, c.m, c.count);
    for_each_matrix(ctx, c.count, 10.0 * c.m * c.n, Memory::Returned, [&](Context<D>& mine, Index i) {
        transpose<T>(mine, gathered<T, D>(mine, A, c.members()[i]).view(), At[i]);
    });
    return At;
}

}  // namespace

template <class T, class D>
BatchedLeastSquares<T, D> least_squares(Context<D>& ctx, BatchView<const T, D> A,
                                        std::type_identity_t<BatchView<const T, D>> B,
                                        const LeastSquaresOptions& solver, Options options) {
    require_storage(A);
    require_storage(B);
    require_options(solver);
    require_orthonormal(options, "least_squares");
    require_unpivoted(options, "least_squares");
    require_shapes<T, D>(
        "B", B, A.count(), [&](Index b) { return A.rows(b); }, [&](Index b) { return B.cols(b); });
    Solver<T, D> batch(ctx, A.count(), B, solver, options.check_finite, A.uniform());
    batch.allocate([&](Index b) { return A.cols(b); }, [&](Index b) { return std::min(A.rows(b), A.cols(b)); });
    options.check_finite = true;
    const auto alone = [&](Context<D>& mine, Index b, MatrixView<const T, D> Bb) {
        return least_squares<T, D>(mine, gathered<T, D>(mine, A, b).view(), Bb, solver, options);
    };
    auto sorted = by_shape<T, D>(A);
    for (auto& c : sorted.classes) {
        const bool wide = c.m < c.n;
        const Index longer = std::max(c.m, c.n);
        if (!at_once<T, D>(longer, c.k, options) || !SmallBatch<T, D>::solves(longer, c.k)) {
            batch.solve_each(c.members(), 2.0 * c.m * c.n * c.k, alone);
            continue;
        }
        SmallBatch<T, D> small(ctx, longer, c.k, c.count);
        // NaN and Inf are found when the solution is inspected
        if (!wide) {
            small.factor(ctx, A, c.members(), false);
        } else if (A.uniform()) {
            small.factor(ctx, A.transposed(), c.members(), false);
        } else {
            const Batch<T, D> At = transposes<T, D>(ctx, A, c);
            small.factor(ctx, At.view(), Members{{}, c.count}, false);
        }
        batch.solve_small(small, wide ? Op::Transpose : Op::None, c.members(), alone);
    }
    return batch.take();
}

template <class T, class D>
BatchedLeastSquares<T, D> least_squares(Context<D>& ctx, const BatchedQR<T, D>& factorizations,
                                        std::type_identity_t<BatchView<const T, D>> B,
                                        const LeastSquaresOptions& solver) {
    require_storage(B);
    require_options(solver);
    const auto& all = InsideBatch::of(factorizations);
    for (const auto& c : all.classes) {
        if (c.m < c.n) {
            throw InvalidArgument(
                fmt::format("least_squares: {} is {}x{}; an underdetermined system needs the factorization of its "
                            "transpose",
                            name_of(c.members()[0]), c.m, c.n));
        }
    }
    require_shapes<T, D>(
        "B", B, all.count, [&](Index b) { return factorizations.rows(b); }, [&](Index b) { return B.cols(b); });
    Solver<T, D> batch(ctx, all.count, B, solver, true, all.place.empty());
    const auto n_of = [&](Index b) { return factorizations.cols(b); };
    batch.allocate(n_of, n_of);
    for (const auto& c : all.classes) {
        if (!c.small) {
            batch.solve_each(c.members(), 4.0 * c.m * c.n, [&](Context<D>& mine, Index b, MatrixView<const T, D> Bb) {
                return c.with_qr(mine, all.at(b).second,
                                 [&](const QR<T, D>& f) { return least_squares<T, D>(mine, f, Bb, solver); });
            });
            continue;
        }
        std::optional<Batch<T, D>> V_R, tau;  // of the class, unpacked at the first use
        const auto unpack = [&] {
            const Members in_order{{}, c.count};
            V_R.emplace(ctx, c.m, c.n, c.count);
            tau.emplace(ctx, c.k, 1, c.count);
            c.small->unpack(ctx, Factor::VR, in_order, V_R->view());
            c.small->unpack_tau(ctx, in_order, tau->view());
        };
        const auto alone = [&](Context<D>& mine, Index b, MatrixView<const T, D> Bb) {
            if (!V_R) unpack();
            const Index i = all.at(b).second;
            const QR<T, D> f =
                from_lapack<T, D>(mine, {copy_of<T, D>(mine, (*V_R)[i]), copy_of<T, D>(mine, (*tau)[i])});
            return least_squares<T, D>(mine, f, Bb, solver);
        };
        if (SmallBatch<T, D>::solves(c.m, c.n)) {
            batch.solve_small(*c.small, Op::None, c.members(), alone);
        } else {
            unpack();
            batch.solve_each(c.members(), 4.0 * c.m * c.n, alone);
        }
    }
    return batch.take();
}

#define QUOIN_INSTANTIATE(T, D)                                                                                        \
    template BatchedLeastSquares<T, D> least_squares<T, D>(Context<D>&, BatchView<const T, D>, BatchView<const T, D>,  \
                                                           const LeastSquaresOptions&, Options);                       \
    template BatchedLeastSquares<T, D> least_squares<T, D>(Context<D>&, const BatchedQR<T, D>&, BatchView<const T, D>, \
                                                           const LeastSquaresOptions&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
