#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "algorithms/shared/copies.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "least_squares_law.hpp"
#include "quoin/distributed.hpp"
#include "ranks.hpp"

/// The laws of streams and of Gram-Schmidt over ranks, whose matrices are on the device of their context.
namespace quoin::test {

inline int levels(int ranks) { return static_cast<int>(std::ceil(std::log2(ranks))); }

/// A tree of d stages has √d times the law of one: the leaf's, and one for each level of ranks.
inline double law_over(int ranks) { return law * std::sqrt(1.0 + levels(ranks)); }

/// A on the context's device.
template <class T, class D>
Matrix<T, D> placed(Context<D>& ctx, MatrixView<const T> A) {
    Matrix<T, D> B(ctx, A.rows, A.cols);
    start_copy_from_host<T>(ctx, A, B.view());
    finish_copies(ctx);
    ctx.wait();
    return B;
}

/// R and least squares of what the ranks have streamed, two blocks a rank.
template <class T, class D>
void expect_merged_law(Context<D>& ctx, Communicator& comm, const Spread& spread, MatrixView<const T> A,
                       MatrixView<const T> B) {
    const int ranks = comm.size();
    const Index m = A.rows, n = A.cols, p = B.cols;
    SCOPED_TRACE(fmt::format("{}x{}, {} of {} {}", m, n, comm.rank(), ranks, spread.name));
    Context<Host> host(1);
    const auto on_host = [&](const Matrix<T, D>& X) { return host_copy_of<T, D>(ctx, X.view()); };
    const Range rows = spread.rows(m, n, ranks)[comm.rank()];
    const Index half = (rows.begin + rows.end) / 2;
    StreamingR<T, D> mine(ctx, n, p);
    for (const Range block : {Range{rows.begin, half}, Range{half, rows.end}}) {
        const auto A_block = placed<T>(ctx, A.row_block(block)), B_block = placed<T>(ctx, B.row_block(block));
        mine.append(ctx, std::as_const(A_block).view(), std::as_const(B_block).view());
    }
    const Matrix<T> before = on_host(mine.r(ctx));
    const Traffic t = comm.traffic();
    const StreamingR<T, D> all = merge(ctx, comm, mine);
    if (comm.rank() == ranks - 1) {
        EXPECT_EQ(comm.traffic().messages_sent - t.messages_sent, ranks > 1 ? 2 : 0);
    }
    EXPECT_TRUE(same_bits<T>(on_host(mine.r(ctx)).view(), before.view()));
    EXPECT_EQ(all.rows(), m);
    const Matrix<T> R = on_host(all.r(ctx));
    EXPECT_TRUE(same_as_on_root<T>(host, comm, R.view()));
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    // a row passes two blocks and the levels of ranks
    const double bound = law * std::sqrt(2.0 + levels(ranks));
    EXPECT_LE(gram_error<T>(A, R.view()), bound) << "AᵀA = RᵀR";
    const auto solution = all.solve(ctx);
    const auto errors = least_squares_errors<T>(A, B, on_host(solution.X).view(), solution.residual_norms);
    EXPECT_LE(errors.gradient, 2 * bound * (n + p) / n);
    EXPECT_LE(errors.residual_norm, 2 * bound * (n + p) / n);
}

/// No rows, then one row a rank, a trapezoid until there are n; streams of other sizes, and a rank that is stopped.
template <class D>
void expect_merge_of_few_rows_and_refusals(Context<D>& ctx, Communicator& comm) {
    const int ranks = comm.size();
    const Index n = 5, last = ranks - 1;
    const auto r_of = [&](const StreamingR<double, D>& stream) {
        return host_copy_of<double, D>(ctx, stream.r(ctx).view());
    };
    StreamingR<double, D> mine(ctx, n);
    EXPECT_EQ(merge(ctx, comm, mine).r(ctx).rows(), 0);
    const Matrix<double> A = random_normal<double>(ranks, n, 4);
    const auto row = placed<double>(ctx, A.view().row_block({comm.rank(), comm.rank() + 1}));
    mine.append(ctx, row.view());
    const Matrix<double> R = r_of(merge(ctx, comm, mine));
    EXPECT_EQ(R.rows(), std::min<Index>(ranks, n));
    EXPECT_LE(gram_error<double>(A.view(), R.view()), law_over(ranks)) << "AᵀA = RᵀR";
    if (ranks == 1) return;
    const StreamingR<double, D> other(ctx, n + (comm.rank() == last), 1 - (comm.rank() == last));
    EXPECT_THROW(merge(ctx, comm, other), InvalidArgument);
    if (comm.rank() == 0) ctx.request_stop();
    EXPECT_THROW(merge(ctx, comm, mine), Interrupted);
    ctx.clear_stop();
    EXPECT_TRUE(same_bits<double>(r_of(merge(ctx, comm, mine)).view(), R.view()));
}

/// Q and R of the columns of A, appended in these blocks.
template <class T, class D>
void expect_appended_law(Context<D>& ctx, Communicator& comm, const Spread& spread, MatrixView<const T> A,
                         const std::vector<Range>& blocks) {
    const int ranks = comm.size();
    const Index m = A.rows, n = A.cols;
    SCOPED_TRACE(fmt::format("{}x{}, {} {} of {}", m, n, spread.name, comm.rank(), ranks));
    Context<Host> host(1);
    const auto rows = spread.rows(m, n, ranks);
    const Matrix<T, D> mine = placed<T>(ctx, A.row_block(rows[comm.rank()]));
    DistributedGramSchmidt<T, D> basis(ctx, mine.rows());
    const auto q = [&] { return host_copy_of<T, D>(ctx, basis.q()); };
    const auto r = [&] { return host_copy_of<T, D>(ctx, basis.r()); };
    for (const Range block : blocks) {
        const Matrix<T> Q = q(), R = r();
        try {
            basis.append(ctx, comm, mine.view().col_block(block));
        } catch (const NumericalBreakdown& e) {
            // |r_jj| of Householder's method is within the law's bound then
            const Matrix<T> R_of_a = qr(host, A).r(host);
            const auto column = R_of_a.view().col_block({e.column, e.column + 1});
            EXPECT_LE(std::abs(column(e.column, 0)),
                      law * static_cast<double>(n) * unit_roundoff<T> * frobenius_norm<T>(column));
            return;
        }
        const Range old{0, block.begin};
        EXPECT_TRUE(same_bits<T>(q().view().col_block(old), Q.view())) << "Q has changed";
        EXPECT_TRUE(same_bits<T>(r().view().block(old, old), R.view()));
    }
    EXPECT_EQ(basis.cols(), n);
    const Matrix<T> R = r();
    EXPECT_TRUE(same_as_on_root<T>(host, comm, R.view()));
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    const Matrix<T> Q = gather<T>(host, comm, rows, q().view());
    if (comm.rank() != 0) return;
    // two projections, and two factorizations over the levels of ranks
    const double bound = law * std::sqrt(2.0 * (2 + levels(ranks)));
    EXPECT_LE(orthogonality_error<T>(Q.view(), n), bound) << "‖I − QᵀQ‖";
    EXPECT_LE(column_residual_error<T>(A, Q.view(), R.view()), bound) << "max ‖a_j − Q r_j‖";
}

/// Columns that are too many, dependent, not finite, or of other rows than Q has.
template <class D>
void expect_append_refuses(Context<D>& ctx, Communicator& comm) {
    const int ranks = comm.size(), last = ranks - 1;
    const Index m = 6;
    const auto all_rows = spreads[0].rows(m, 4, ranks);
    const Range rows = all_rows[comm.rank()];
    Matrix<double> A = random_normal<double>(m, 4, 2);
    const auto mine = [&](MatrixView<const double> X) { return placed<double>(ctx, X.row_block(rows)); };
    const auto append = [&](DistributedGramSchmidt<double, D>& to, const Matrix<double, D>& X) {
        to.append(ctx, comm, X.view());
    };
    DistributedGramSchmidt<double, D> basis(ctx, rows.size());
    append(basis, mine(A.view()));
    const auto state = [&] {
        return std::pair(host_copy_of<double, D>(ctx, basis.q()), host_copy_of<double, D>(ctx, basis.r()));
    };
    const auto [Q, R] = state();
    EXPECT_THROW(append(basis, mine(random_normal<double>(m, 3, 5).view())), InvalidArgument);
    // a column of zeros whose q_j is e_1, which is a column of Q already
    DistributedGramSchmidt<double, D> unit(ctx, rows.size());
    append(unit, mine(identity<double>(m).view().col_block({0, 3})));
    EXPECT_THROW(append(unit, mine(filled<double>(m, 1, 0.0).view())), NumericalBreakdown);
    EXPECT_EQ(unit.cols(), 3);
    A(m - 1, 1) = std::numeric_limits<double>::infinity();
    EXPECT_THROW(append(basis, mine(A.view().col_block({0, 2}))), NonFiniteEntry);
    if (all_rows[last].size() > 0) {
        const Range fewer{rows.begin + (comm.rank() == last), rows.end};
        EXPECT_THROW(append(basis, placed<double>(ctx, A.view().block(fewer, {2, 3}))), InvalidArgument);
    }
    const auto [Q_now, R_now] = state();
    EXPECT_TRUE(same_bits<double>(Q_now.view(), Q.view()) && same_bits<double>(R_now.view(), R.view()));
    append(basis, mine(random_normal<double>(m, 1, 5).view()));
    EXPECT_EQ(basis.cols(), 5);
}

}  // namespace quoin::test
