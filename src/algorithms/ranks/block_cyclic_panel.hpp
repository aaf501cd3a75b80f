#pragma once

// Factors a panel whose rows are on the ranks of a process column. V, T and R go to the panel's own memory. They come
// from CholeskyQR2 and Householder reconstruction in one, or from an explicit Q.

#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/one_matrix/reconstruct_householder.hpp"
#include "algorithms/ranks/block_cyclic.hpp"
#include "algorithms/shared/copies.hpp"

namespace quoin {

/// Factors one panel on all ranks of its process column. If one of them throws, all of them throw.
template <class T, class D>
class CyclicPanelFactorizer {
public:
    using Factors = BlockCyclicFactorization<T, D>;
    CyclicPanelFactorizer(Context<D>& ctx, Factors& f, Index s)
        : ctx_(ctx),
          f_(f),
          call_(host_context(ctx), f.grid->col_comm(), RankOperation::Qr),
          panel_(f.panels[s]),
          A_(f.A.block(f.rows_from(panel_.first), f.local_cols(panel_.cols()))),
          Tf_(f.t_of(panel_)) {
        options_.q = QForm::Explicit;
        options_.check_finite = false;
    }

    /// A := V below the diagonal and R above it, and computes T. `overlapped`, which may have messages of its own along
    /// the process column, runs before the first decision that the host waits for, or before the QR of rows over ranks.
    void factor(OverlappedWork& overlapped) {
        const Index w = panel_.width;
        const Plan plan = plan_over_ranks<T>(ctx_, f_.layout.rows - panel_.first, w, options_);
        call_.attempt([&] {
            R_ = Matrix<T, D>(ctx_, w, w);
            top_ = Matrix<T, D>(ctx_, w + 1, w);
            words_ = Matrix<T, D>(ctx_, 2 * w * w, 1);
            signs_ = Matrix<T, D>(ctx_, w, 1);
            U_ = Matrix<S, D>(ctx_, w, w);
            certificate_ = Matrix<Certificate, D>(ctx_, 1, 1);
            flags_ = Matrix<T>(w, 2);
            if (!is_cholesky(plan.method)) return;
            G_ = Matrix<S, D>(ctx_, w, w);
            packed_ = Matrix<S, D>(ctx_, packed_size(w, w), 2);
        });
        call_.agree();
        if (!is_cholesky(plan.method) || !by_gram(overlapped)) {
            const Range all{0, w};
            overlapped();
            orthonormalize();
            if (!in_one_step(all)) by_columns(all);
            store_r();
        }
        call_.agree();
    }

private:
    using S = Sum<T, D>;
    using Factor = std::array<MatrixView<const S, D>, 1>;
    /// Returns this rank's rows of the panel from its row i on.
    MatrixView<T, D> rows_from(Index i) const {
        return A_.row_block({f_.rows_before(panel_.first + i) - f_.rows_before(panel_.first), A_.rows});
    }
    int owner(Index i) const { return f_.row_axis.owner(panel_.first + i); }
    Communicator& ranks() const { return f_.grid->col_comm(); }

    // ---- by Gram matrices -------------------------------------------------------------------------------------------

    /// CholeskyQR2 whose second pass reads V. It runs only if the first certificate does not suffice, and changes V
    /// only beyond a departure of nu/2. With AᵀA = R₁ᵀR₁ and
    ///     Q₁ = A R₁⁻¹ = V U + [S; 0],   V₁ = L
    /// V is final if `OnePass` says so: 2mw² flops. Otherwise small matrices give the departure of Q₁ from orthonormal
    /// columns:
    ///     Q₁ᵀQ₁ − I = UᵀP + PᵀU,   P = X U + LᵀS,   X + Xᵀ = VᵀV,   X upper triangular.
    /// Up to nu/2 V is final: 3mw² flops. Otherwise R₂ = chol(Q₁ᵀQ₁), Q₁R₂⁻¹ = V'U' + [S'; 0] and V' = V (U'R₂U⁻¹)⁻¹:
    /// 4mw² flops. Returns false if a certificate is refused. A is unchanged then, up to a backward error of O(nu) in
    /// each column.
    bool by_gram(OverlappedWork& overlapped) {
        const Index n = panel_.width;
        const int root = owner(0);
        const bool is_root = ranks().rank() == root;
        const auto A2 = rows_from(n), A1 = A_.row_block({0, A_.rows - A2.rows});
        const MatrixView<S, D> Y = U_.view(), G = G_.view();
        const auto certificate = certificate_.view();
        Matrix<T, D> Q1;  // its first n rows
        Matrix<S, D> R1, U;
        call_.attempt([&] {
            set_zero(ctx_, top_.view());
            if (!is_root) return;
            Q1 = Matrix<T, D>(ctx_, n, n);
            R1 = Matrix<S, D>(ctx_, n, n);
            U = Matrix<S, D>(ctx_, n, n);
        });
        collect_top({0, n}, A1, Q1.view());
        call_.attempt([&] { solve_and_gram<T>(ctx_, A_, {}, {}, G); });
        sum_gram(root);
        overlapped();
        Step step = decide(root, [&] {
            const Index m = f_.layout.rows - panel_.first;
            const OnePass one_pass(m, n, gram_precision<T>(ctx_, m, n), Scalar<T>::u);
            factor_gram<T>(ctx_, G, one_pass.demands(), R1.view(), certificate);
            const Certificate found = read_certificate(ctx_, certificate);
            if (one_pass.allows_second(found)) write_certificate(ctx_, certificate, {});
            solve_and_gram<T>(ctx_, Q1.view(), Factor{R1.view()}, Q1.view(), {}, certificate);
            if (!reconstruct_top_of(Q1.view(), {}, R1.view(), U.view())) return Step::Refused;
            multiply_upper<S>(ctx_, U.view(), R1.view(), Y);
            return found.refused() || !one_pass.is_tried() ? Step::Checked : Step::Last;
        });
        if (step == Step::Refused) return false;
        // V₂ = A₂ (U R₁)⁻¹
        divide(A2, root, step == Step::Checked ? G : MatrixView<S, D>());
        if (step == Step::Checked) {
            sum_gram(root);
            step = decide(root, [&] {
                Matrix<S, D> R2(ctx_, n, n), U2(ctx_, n, n);
                factor_departure(U.view(), R2.view());
                const Certificate found = read_certificate(ctx_, certificate);
                if (!found.refused() && found.departure <= static_cast<double>(n) * Scalar<T>::u / 2) return Step::Last;
                multiply_upper<S>(ctx_, R2.view(), R1.view(), R1.view(), certificate);
                if (!reconstruct_top_of(Q1.view(), R2.view(), R1.view(), U2.view())) return Step::Refused;
                // Yᵀ = U⁻ᵀ (U'R₂)ᵀ
                multiply_upper<S>(ctx_, U2.view(), R2.view(), G);
                transpose<S>(ctx_, G, R2.view());
                solve_triangle<S>(ctx_, Triangle::Upper, Op::Transpose, U.view(), R2.view());
                transpose<S>(ctx_, R2.view(), G);
                copy_triangle<S>(ctx_, G, Y);
                return Step::Checked;
            });
            if (step == Step::Refused) {
                // A₂ = V₂ (U R₁)
                call_.attempt([&] {
                    multiply_upper<S, T>(ctx_, {}, Y, R_.view());
                    multiply_triangle<T>(ctx_, Side::Right, Triangle::Upper, Op::None, R_.view(), A2);
                });
                return false;
            }
            if (step == Step::Checked) divide(A2, root, {});
        }
        finish({0, n});
        return true;
    }

    /// X := X Y⁻¹ with the root's Y, and G := XᵀX if G has data.
    void divide(MatrixView<T, D> X, int root, MatrixView<S, D> G) {
        const MatrixView<S, D> Y(U_.data(), X.cols, X.cols);
        call_.hear(ranks().template broadcast<S>(ctx_, Y, root, call_.note()));
        call_.attempt([&] { solve_and_gram<T>(ctx_, X, Factor{Y}, X, G); });
    }

    /// Sums G over the ranks into the root's G.
    void sum_gram(int root) {
        const auto sum = packed_.view().col_block({0, 1}), part = packed_.view().col_block({1, 2});
        call_.attempt([&] { pack_triangle<S>(ctx_, G_.view(), sum); });
        reduce_sum<S, D>(ranks(), ctx_, sum, part, root, call_.note());
        call_.attempt([&] { unpack_triangle<S>(ctx_, sum, G_.view()); });
    }

    /// Computes L, U, S and T of Q₁ Y⁻¹ − S = L U (Y without data: I), and R := S R. Returns false if the certificate
    /// is refused, or if rounding errors of V U may be larger than the errors of Q₁. Since ‖v_j‖² <= 2, a column of
    /// |V||U| has up to √2 ‖U‖₁ times the norm of q_j.
    bool reconstruct_top_of(MatrixView<const T, D> Q1, MatrixView<const S, D> Y, MatrixView<const S, D> R,
                            MatrixView<S, D> U) {
        constexpr double max_norm = 4;
        const Index n = Q1.cols;
        const auto certificate = certificate_.view();
        multiply_upper<S, T>(ctx_, {}, R, R_.view(), certificate);
        reconstruct_top<T>(ctx_, Q1, Y, max_inverse_norm(n), R_.view(), top_.view().row_block({0, n}), Tf_, U,
                           signs_.view(), certificate);
        if (read_certificate(ctx_, certificate).refused()) return false;
        const Matrix<S> columns = host_copy_of<S, D>(ctx_, U);
        for (Index j = 0; j < n; ++j) {
            double sum = 0;
            for (Index i = 0; i <= j; ++i) sum += std::abs(static_cast<double>(columns(i, j)));
            if (!(sum <= max_norm)) return false;
        }
        return true;
    }

    /// Computes R₂ of R₂ᵀR₂ = Q₁ᵀQ₁ = I + UᵀP + PᵀU, with P of `by_gram`. G has V₂ᵀV₂ on entry, and is lost. The
    /// certificate has the departure.
    void factor_departure(MatrixView<const S, D> U, MatrixView<S, D> R2) {
        const Index n = U.cols;
        const auto G = G_.view();
        Matrix<T, D> L = copy_of<T, D>(ctx_, std::as_const(top_).view().row_block({0, n})), Lt(ctx_, n, n);
        Matrix<S, D> X(ctx_, n, n), P(ctx_, n, n);
        // VᵀV = LᵀL + V₂ᵀV₂
        set_root<T>(ctx_, L.view());
        solve_and_gram<T>(ctx_, L.view(), {}, {}, X.view());
        add<S>(ctx_, X.view(), G);
        // 2X = the upper triangle of VᵀV plus its strictly upper triangle
        set_zero(ctx_, X.view());
        const Range above{0, n - 1}, right{1, n};
        copy_triangle<S>(ctx_, G.block(above, right), X.view().block(above, right));
        add<S>(ctx_, G, X.view());
        scaled_copy<S>(ctx_, 0.5, X.view(), X.view());
        // P = X U + LᵀS
        flip_rows<T>(ctx_, signs_.view(), L.view());
        transpose<T>(ctx_, L.view(), Lt.view());
        multiply_upper<T, S>(ctx_, {}, Lt.view(), P.view());
        multiply_upper<S>(ctx_, X.view(), U, G);
        add<S>(ctx_, G, P.view());
        multiply_triangle<S>(ctx_, Side::Left, Triangle::Upper, Op::Transpose, U, P.view());
        transpose<S>(ctx_, P.view(), G);
        add<S>(ctx_, P.view(), G);
        add_identity<S>(ctx_, G);
        factor_gram<T>(ctx_, G, {.step = 1, .max_departure = max_final_departure}, R2, certificate_.view());
    }

    // ---- from an explicit Q -----------------------------------------------------------------------------------------

    /// Factors A = Q R, with Q in A's place.
    void orthonormalize() {
        call_.agree();
        auto factors = qr<T, D>(ctx_, ranks(), MatrixView<const T, D>(A_), options_);
        R_ = factors.r(ctx_);
        const Matrix<T, D> Q = std::move(factors).take_q(ctx_);
        call_.attempt([&] {
            reflectors_.emplace(ctx_, f_, call_, panel_.width);
            copy<T>(ctx_, Q.view(), A_);
        });
        call_.agree();
    }

    /// Stores R above V.
    void store_r() {
        call_.attempt([&] {
            const Index top = f_.rows_before(panel_.first), w = panel_.width;
            f_.for_each_run(panel_.cols(), [&](Range local, Range global) {
                const Range rows{local.begin - top, local.end - top};
                const Range c{global.begin - panel_.first, global.end - panel_.first};
                store_triangle<T>(ctx_, R_.view().block(c, c), A_.block(rows, c));
                copy<T>(ctx_, R_.view().block(c, {c.end, w}), A_.block(rows, {c.end, w}));
            });
        });
    }

    Matrix<T, D> unit_v(Range c) {
        Matrix<T, D> V = copy_of<T, D>(ctx_, MatrixView<const T, D>(rows_from(c.begin).col_block(c)));
        reflectors_->set_unit_rows(ctx_, panel_, c, V.view());
        return V;
    }

    /// Computes Q₁ = H₁ [S₁; 0], H₁ᵀQ₂ = [0; Q'], Q' = H₂ [S₂; 0] and T of both, for columns `c` that are orthonormal
    /// from row c.begin on. Each column has unit norm when it becomes a reflector, so that errors do not grow from one
    /// to the next.
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
        const auto C = rows_from(left.begin).col_block(right);
        reflectors_->apply({V.view().row_block({0, 0}), V.view()}, Tf_.block(left, left), Op::Transpose, C);
        by_columns(right);
        join(left, right);
    }

    /// q := q / ‖q‖
    void normalize(Range c) {
        Communicator& col = ranks();
        const auto q = rows_from(c.begin).col_block(c);
        T norm[2] = {};
        call_.attempt([&] { column_norms<T>(ctx_, q, std::span<T>(norm, 1)); });
        reduce_entries<T>(col, host_context(ctx_), {norm, 1, 1}, {norm + 1, 1, 1}, 0, call_.note(),
                          [](T a, T b) { return std::hypot(a, b); });
        call_.hear(col.broadcast<T>(host_context(ctx_), {norm, 1, 1}, 0, call_.note()));
        call_.attempt([&] { scaled_copy<T>(ctx_, 1 / static_cast<double>(norm[0]), q, q); });
    }

    /// Q := V below its diagonal, T, and R := S R. If ‖(Q₁ − S)⁻¹‖ is too large, returns false and changes nothing.
    bool in_one_step(Range c) {
        const Index n = c.size();
        const int root = owner(c.begin);
        const auto Q = rows_from(c.begin).col_block(c), Q2 = rows_from(c.end).col_block(c);
        const MatrixView<T, D> L = top_.view().block({0, n}, {0, n});
        const MatrixView<S, D> U(U_.data(), n, n);
        call_.attempt([&] { set_zero(ctx_, top_.view()); });
        collect_top(c, Q.row_block({0, Q.rows - Q2.rows}), L);
        // Q₁ − S = L U,  T = −U S L⁻ᵀ,  R := S R
        const Step step = decide(root, [&] {
            const auto certificate = certificate_.view();
            write_certificate(ctx_, certificate, {});
            reconstruct_top<T>(ctx_, L, MatrixView<const S, D>(), max_inverse_norm(n), R_.view().block(c, c), L,
                               Tf_.block(c, c), U, signs_.view().row_block({0, n}), certificate);
            if (!read_certificate(ctx_, certificate).refused()) return Step::Last;
            if (n == 1) throw NumericalBreakdown("a panel of the QR factorization holds NaN or Inf", c.begin);
            return Step::Refused;
        });
        if (step == Step::Refused) return false;
        // V₂ = Q₂ U⁻¹
        divide(Q2, root, {});
        finish(c);
        return true;
    }

    // ---- both -------------------------------------------------------------------------------------------------------

    /// The next step of a panel. The root decides with `work`, and `decide` returns its decision on all ranks, whatever
    /// has failed on one.
    enum class Step : Index { Last, Checked, Refused };
    template <class F>
    Step decide(int root, F&& work) {
        Index step = static_cast<Index>(Step::Last);
        if (ranks().rank() == root) {
            call_.attempt([&] { step = static_cast<Index>(work()); }, JointCall::Of::All);
        }
        call_.hear(ranks().template broadcast<Index>(host_context(ctx_), {&step, 1, 1}, root, call_.note()));
        return static_cast<Step>(step);
    }

    /// Finishes columns `c`, whose V₂ is in A. Reflectors that are I get tau = 0. The root sends V₁ with R above it, T
    /// and R to all ranks.
    void finish(Range c) {
        const Index n = c.size(), rest = panel_.width - c.end;
        const int root = owner(c.begin);
        const MatrixView<T, D> top = top_.view().block({0, n + 1}, {0, n}), L = top.row_block({0, n});
        const MatrixView<T, D> message(words_.data(), n, 2 * n + rest);
        const auto R = R_.view().block(c, c), right = R_.view().block(c, {c.end, panel_.width}), Tf = Tf_.block(c, c);
        const auto signs = signs_.view().row_block({0, n});
        const auto flags = flags_.view().block({0, n}, {0, 1}), part = flags_.view().block({0, n}, {1, 2});
        call_.attempt([&] { flag_columns(rows_from(c.end).col_block(c), flags); });
        // reflectors with v = e_j on all ranks are dropped
        reduce_entries<T>(ranks(), host_context(ctx_), flags, part, root, call_.note(),
                          [](T a, T b) { return std::max(a, b); });
        if (ranks().rank() == root) {
            call_.attempt(
                [&] {
                    const MatrixView<const T> row(flags.data, 1, n);
                    start_copy_from_host<T>(ctx_, row, top.row_block({n, n + 1}));
                    finish_copies(ctx_);
                    drop_unit_reflectors<T>(ctx_, top, R, Tf, signs, certificate_.view());
                    flip_rows<T>(ctx_, signs, right);
                    copy<T>(ctx_, L, message.col_block({0, n}));
                    copy<T>(ctx_, Tf, message.col_block({n, 2 * n}));
                    copy<T>(ctx_, right, message.col_block({2 * n, 2 * n + rest}));
                    ctx_.wait();
                },
                JointCall::Of::All);
        }
        call_.hear(ranks().template broadcast<T>(ctx_, message, root, call_.note()));
        call_.attempt([&] {
            const auto V_R = message.col_block({0, n});
            copy_triangle<T>(ctx_, V_R, R);
            copy<T>(ctx_, message.col_block({n, 2 * n}), Tf);
            copy<T>(ctx_, message.col_block({2 * n, 2 * n + rest}), right);
            const Index first = panel_.first + c.begin, local_first = f_.rows_before(first);
            const auto rows = rows_from(c.begin).col_block(c);
            f_.for_each_run({first, panel_.first + c.end}, [&](Range local, Range global) {
                copy<T>(ctx_, V_R.row_block({global.begin - first, global.end - first}),
                        rows.row_block({local.begin - local_first, local.end - local_first}));
            });
        });
    }

    /// flags_j := 1 if column j of X has an entry other than 0, else 0. Reads rows from the top until every column has
    /// shown one.
    void flag_columns(MatrixView<const T, D> X, MatrixView<T> flags) {
        std::fill_n(flags.data, X.cols, T(0));
        std::vector<Real<T>> norms(X.cols);
        Index h = 64;
        for (Index i = 0; i < X.rows; i += h, h *= 2) {
            column_norms<T>(ctx_, X.row_block({i, std::min(i + h, X.rows)}), norms);
            bool all = true;
            for (Index j = 0; j < X.cols; ++j) {
                if (norms[j] != 0) flags(j, 0) = 1;
                all = all && flags(j, 0) != 0;
            }
            if (all) return;
        }
    }

    /// Collects the first n rows of columns `c` in `top` on their root. `mine`: this rank's rows among them.
    void collect_top(Range c, MatrixView<const T, D> mine, MatrixView<T, D> top) {
        Communicator& col = ranks();
        const int root = owner(c.begin);
        const Index first = panel_.first + c.begin, end = panel_.first + c.end;
        if (col.rank() != root) {
            if (mine.rows > 0) col.send<T>(ctx_, mine, root, call_.note());
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
        sum_on_all<T, D>(ctx_, call_, ranks(), W, part);
        call_.attempt([&] {
            multiply_triangle<T>(ctx_, Side::Left, Triangle::Upper, Op::None, Tf_.block(left, left), W);
            multiply_triangle<T>(ctx_, Side::Right, Triangle::Upper, Op::None, Tf_.block(right, right), W);
            negate<T>(ctx_, W);
            copy<T>(ctx_, W, T12);
        });
    }

    Context<D>& ctx_;
    Factors& f_;
    JointCall call_;
    const CyclicPanel& panel_;
    MatrixView<T, D> A_, Tf_;
    Options options_;
    std::optional<CyclicReflectors<T, D>> reflectors_;  // for products of half a panel with the other
    Matrix<T, D> R_, top_, words_, signs_;
    Matrix<S, D> U_, G_, packed_;
    Matrix<Certificate, D> certificate_;
    Matrix<T> flags_;
};

}  // namespace quoin
