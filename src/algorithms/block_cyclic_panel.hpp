#pragma once

// Householder reconstruction of a panel whose rows are on the ranks of a process column.

#include <array>
#include <cmath>
#include <span>

#include "algorithms/block_cyclic.hpp"

namespace quoin {

/// V, T and R of one panel from its explicit Q, on all ranks of a process column.
template <class T, class D>
class PanelReconstruction {
public:
    using Factors = BlockCyclicFactorization<T, D>;
    /// Q: this rank's rows. R: w×w, the same on all ranks. Tf: w×w zeros. Allocates.
    PanelReconstruction(Context<D>& ctx, const Factors& f, JointCall& call, CyclicReflectors<T, D>& reflectors,
                        const CyclicPanel& panel, MatrixView<T, D> Q, MatrixView<T, D> R, MatrixView<T, D> Tf)
        : ctx_(ctx), f_(f), call_(call), reflectors_(reflectors), panel_(panel), Q_(Q), R_(R), Tf_(Tf) {
        const Index w = panel.width;
        top_ = Matrix<T, D>(ctx, w + 1, w);
        words_ = Matrix<T, D>(ctx, 2 * w * w, 1);
        signs_ = Matrix<T, D>(ctx, w, 1);
        U_ = Matrix<S, D>(ctx, (w + 1) * w, 1);
        certificate_ = Matrix<Certificate, D>(ctx, 1, 1);
        flags_ = Matrix<T>(w, 2);
    }

    /// Q := V below its diagonal, Tf := T, R := S R. Where Q₁ − S = L U is not accurate enough, column by column.
    void reconstruct() {
        const Range all{0, panel_.width};
        if (!in_one_step(all)) by_columns(all);
    }

private:
    using S = Sum<T, D>;
    MatrixView<T, D> rows_of_q(Index i) const {
        return Q_.row_block({f_.rows_before(panel_.first + i) - f_.rows_before(panel_.first), Q_.rows});
    }
    int owner(Index i) const { return f_.row_axis.owner(panel_.first + i); }
    Matrix<T, D> unit_v(Range c) {
        Matrix<T, D> V = copy_of<T, D>(ctx_, rows_of_q(c.begin).col_block(c));
        reflectors_.set_unit_rows(panel_, c, V.view());
        return V;
    }

    /// Q₁ = H₁ [S₁; 0], H₁ᵀQ₂ = [0; Q'], Q' = H₂ [S₂; 0] and T of both, for columns `c` that are orthonormal from row c.begin on. Each column
    /// is of unit norm when it becomes a reflector, so that errors do not grow from one to the next.
    void by_columns(Range c) {
        if (c.size() == 1) {
            normalize(c);
            in_one_step(c);
            return;
        }
        const Range left{c.begin, (c.begin + c.end) / 2}, right{left.end, c.end};
        by_columns(left);
        Matrix<T, D> V;
        call_.attempt([&] { V = unit_v(left); });
        const auto C = rows_of_q(left.begin).col_block(right);
        reflectors_.apply(V.view(), Tf_.block(left, left), Op::Transpose, C, C.rows);
        by_columns(right);
        join(left, right);
    }

    /// q := q / ‖q‖
    void normalize(Range c) {
        Communicator& col = f_.grid->col_comm();
        const auto q = rows_of_q(c.begin).col_block(c);
        T norm[2] = {};
        call_.attempt([&] { column_norms<T>(ctx_, q, std::span<T>(norm, 1)); });
        reduce_entries<T>(col, host_context(ctx_), {norm, 1, 1}, {norm + 1, 1, 1}, 0, call_.note(),
                          [](T a, T b) { return std::hypot(a, b); });
        call_.hear(col.broadcast<T>(host_context(ctx_), {norm, 1, 1}, 0, call_.note()));
        call_.attempt([&] { scaled_copy<T>(ctx_, 1 / static_cast<double>(norm[0]), q, {}, q); });
    }

    /// False, and nothing is changed, where ‖(Q₁ − S)⁻¹‖ is too large.
    bool in_one_step(Range c) {
        const Index n = c.size(), rest = panel_.width - c.end;
        Communicator& col = f_.grid->col_comm();
        const int root = owner(c.begin);
        const bool is_root = col.rank() == root;
        const auto Q = rows_of_q(c.begin).col_block(c);
        const Index own = rows_of_q(c.begin).rows - rows_of_q(c.end).rows;  // among the first n
        const MatrixView<T, D> top = top_.view().block({0, n + 1}, {0, n}), message(words_.data(), n, 2 * n + rest);
        const MatrixView<S, D> U(U_.data(), n + 1, n);
        const auto signs = signs_.view().row_block({0, n});
        const auto flags = flags_.view().block({0, n}, {0, 1}), part = flags_.view().block({0, n}, {1, 2});
        const auto certificate = certificate_.view();
        call_.attempt([&] {
            set_zero(ctx_, top);
            set_zero(ctx_, U);
        });
        collect_top(c, own, top);
        const auto L = top.row_block({0, n});
        const auto R = R_.block(c, c), Tf = Tf_.block(c, c);
        if (is_root) {
            // Q₁ − S = L U,  T = −U S L⁻ᵀ,  R := S R
            call_.attempt(
                [&] {
                    write_certificate(ctx_, certificate, {});
                    const double limit = most_inverse_norm(n);
                    reconstruct_top<T>(ctx_, L, MatrixView<const S, D>(), limit, R, L, Tf, U.row_block({0, n}), signs,
                                       certificate);
                    // 1 below U: it is there
                    const bool refused = read_certificate(ctx_, certificate).refused();
                    if (refused && n == 1)
                        throw NumericalBreakdown("a panel of the QR factorization holds NaN or Inf", c.begin);
                    if (!refused) set_identity<S>(ctx_, 0, U.row_block({n, n + 1}));
                },
                JointCall::Of::All);
        }
        const int heard = col.broadcast<S>(ctx_, U, root, call_.note());
        call_.hear(heard);
        // the same decision on all ranks, whatever has failed on this one
        if (heard == 0 && entry_norms<S>(ctx_, U.row_block({n, n + 1}), {}).largest == 0) return false;
        // V₂ = Q₂ U⁻¹
        call_.attempt([&] {
            using Factors1 = std::array<MatrixView<const S, D>, 1>;
            const auto V2 = rows_of_q(c.end).col_block(c);
            solve_and_gram<T>(ctx_, V2, Factors1{U.row_block({0, n})}, V2, {});
            std::vector<T> norms(n);
            column_norms<T>(ctx_, V2, norms);
            for (Index j = 0; j < n; ++j) flags(j, 0) = norms[j] != 0;
        });
        // reflectors with v = e_j on all ranks are dropped
        reduce_entries<T>(col, host_context(ctx_), flags, part, root, call_.note(),
                          [](T a, T b) { return std::max(a, b); });
        if (is_root) {
            call_.attempt(
                [&] {
                    const MatrixView<const T> row(flags.data, 1, n);
                    start_copy_from_host<T>(ctx_, row, top.row_block({n, n + 1}));
                    finish_copies(ctx_);
                    drop_unit_reflectors<T>(ctx_, top, R, Tf, signs, certificate);
                    flip_rows<T>(ctx_, signs, R_.block(c, {c.end, panel_.width}));
                    copy<T>(ctx_, L, message.col_block({0, n}));
                    copy<T>(ctx_, Tf, message.col_block({n, 2 * n}));
                    copy<T>(ctx_, R_.block(c, {c.end, panel_.width}), message.col_block({2 * n, 2 * n + rest}));
                    ctx_.wait();
                },
                JointCall::Of::All);
        }
        call_.hear(col.broadcast<T>(ctx_, message, root, call_.note()));
        call_.attempt([&] {
            const auto V_R = message.col_block({0, n});
            copy_triangle<T>(ctx_, V_R, R);
            copy<T>(ctx_, message.col_block({n, 2 * n}), Tf);
            copy<T>(ctx_, message.col_block({2 * n, 2 * n + rest}), R_.block(c, {c.end, panel_.width}));
            const Index first = panel_.first + c.begin, local_first = f_.rows_before(first);
            f_.for_each_run({first, panel_.first + c.end}, [&](Range local, Range global) {
                copy<T>(ctx_, V_R.row_block({global.begin - first, global.end - first}),
                        Q.row_block({local.begin - local_first, local.end - local_first}));
            });
        });
        return true;
    }

    /// top := the first n rows of Q(:, c), on their root: those of other ranks are sent there.
    void collect_top(Range c, Index own, MatrixView<T, D> top) {
        Communicator& col = f_.grid->col_comm();
        const int root = owner(c.begin);
        const Index first = panel_.first + c.begin, end = panel_.first + c.end;
        const auto mine = rows_of_q(c.begin).block({0, own}, c);
        if (col.rank() != root) {
            if (own > 0) col.send<T>(ctx_, mine, root, call_.note());
            return;
        }
        for (int r = 0; r < col.size(); ++r) {
            const Index before = f_.row_axis.before(r, first), count = f_.row_axis.before(r, end) - before;
            if (count == 0) continue;
            const MatrixView<T, D> rows(words_.data(), count, c.size());
            if (r == root) {
                call_.attempt([&] { copy<T>(ctx_, mine, rows); });
            } else {
                call_.hear(col.receive<T>(ctx_, rows, r));
            }
            call_.attempt([&] {
                f_.row_axis.for_each_block({first, end}, [&](Range block, int owner) {
                    if (owner != r) return;
                    const Index l = f_.row_axis.before(r, block.begin) - before;
                    copy<T>(ctx_, rows.row_block({l, l + block.size()}),
                            top.row_block({block.begin - first, block.end - first}));
                });
            });
        }
    }

    /// T₁₂ := −T₁ V₁ᵀV₂ T₂
    void join(Range left, Range right) {
        const auto T12 = Tf_.block(left, right);
        const Index words = left.size() * right.size();
        const MatrixView<T, D> W(words_.data(), left.size(), right.size());
        const MatrixView<T, D> part(words_.data() + words, left.size(), right.size());
        call_.attempt([&] {
            const Matrix<T, D> V1 = unit_v(left), V2 = unit_v(right);
            multiply_transposed<T>(ctx_, V1.view().row_block({V1.rows() - V2.rows(), V1.rows()}), V2.view(), W);
        });
        sum_on_all<T, D>(ctx_, call_, f_.grid->col_comm(), W, part);
        call_.attempt([&] {
            multiply_triangle<T>(ctx_, Side::Left, Triangle::Upper, Op::None, Tf_.block(left, left), W);
            multiply_triangle<T>(ctx_, Side::Right, Triangle::Upper, Op::None, Tf_.block(right, right), W);
            negate<T>(ctx_, W);
            copy<T>(ctx_, W, T12);
        });
    }

    Context<D>& ctx_;
    const Factors& f_;
    JointCall& call_;
    CyclicReflectors<T, D>& reflectors_;
    const CyclicPanel& panel_;
    MatrixView<T, D> Q_, R_, Tf_;
    Matrix<T, D> top_, words_, signs_;
    Matrix<S, D> U_;  // and a row with a one in the first place where the step is taken
    Matrix<Certificate, D> certificate_;
    Matrix<T> flags_;
};

}  // namespace quoin
