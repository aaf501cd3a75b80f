// Blocked Householder QR of a block-cyclic matrix, right-looking and with look-ahead. A panel is factored by the ranks
// of its process column.

#include <optional>

#include "algorithms/one_matrix/reflector_forest.hpp"
#include "algorithms/ranks/block_cyclic_panel.hpp"
#include "algorithms/ranks/block_cyclic_whole_panel.hpp"
#include "algorithms/shared/column_scaling.hpp"
#include "algorithms/shared/side_work.hpp"

namespace quoin {

namespace {

template <class T, class D>
class CyclicFactorizer {
public:
    /// `in_place`: A, which the result overwrites.
    CyclicFactorizer(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<const T, D> A, Index panel_width,
                     std::optional<MatrixView<T, D>> in_place = {})
        : ctx_(ctx),
          grid_(grid),
          A_(A),
          call_(host_context(ctx), grid.comm(), RankOperation::Qr),
          width_(panel_width),
          in_place_(in_place) {
        f_.grid = &grid;
        f_.layout = A.layout;
    }

    BlockCyclicFactorization<T, D> factor() {
        begin();
        scale();
        std::optional<CyclicReflectors<T, D>> reflectors;
        call_.attempt([&] {
            f_.Tf = Matrix<T, D>(ctx_, f_.width, f_.cols_before(f_.k()));
            set_zero(ctx_, f_.Tf.view());
            reflectors.emplace(ctx_, f_, call_, f_.A.cols, f_.arithmetic);
            if (f_.has_whole_panels()) whole_panels_.emplace(ctx_, f_, call_, plan_);
        });
        call_.agree();
        SideWork<D> side(ctx_);
        const Index count = static_cast<Index>(f_.panels.size());
        if (count > 0) {
            OverlappedWork nothing;
            if (f_.owns(f_.panels[0])) {
                gather(ctx_, 0);
                factor_panel(ctx_, 0, nothing);
            }
            reflectors->share(0);
        }
        for (Index s = 0; s < count; ++s) {
            call_.attempt([&] { throw_if_stopped(ctx_); });
            const Index next = s + 1;
            if (next == count) {
                update(*reflectors, s, {f_.panels[s].cols().end, f_.layout.cols});
            } else if (f_.owns(f_.panels[next])) {
                factor_beside(*reflectors, side, next);
            } else {
                receive_beside(*reflectors, side, next);
            }
        }
        side.join();
        call_.agree();
        if (is_scaled_) {
            const auto restore = [&](Part part) {
                return [&, part](MatrixView<T, D> B, Range cols) {
                    scale_columns<T>(ctx_, exponents_.view().row_block(cols), 1, part, B);
                };
            };
            f_.for_each_block_of_r(f_.A, restore(Part::All), restore(Part::Upper));
        }
        return std::move(f_);
    }

private:
    void begin() {
        call_.attempt([&] {
            check_cyclic(grid_, A_);
            check_width(width_);
        });
        agree_on<T>(call_, f_.layout, grid_, {"the width of a panel", width_});
        lay_out(f_, width_);
        if constexpr (Tuning<D>::asynchronous) {
            call_.attempt([&] {
                Options options;
                options.method = BlockedHouseholder{f_.width};
                options.check_finite = false;
                plan_ = plan_qr<T>(ctx_, f_.layout.rows, f_.layout.cols, options);
                f_.arithmetic = plan_.arithmetic;
            });
        }
    }

    /// Copies A, unless it is overwritten. Multiplies its columns by powers of two if one is out of range, or if the
    /// updates' arithmetic needs columns of similar norms.
    void scale() {
        bool scaled = false;
        call_.attempt([&] {
            exponents_ = Matrix<int, D>(ctx_, A_.local.cols, 1);
            Matrix<Scan, D> found(ctx_, 1, 1);
            scan<T>(ctx_, A_.local, Scalar<T>::safe_exponent, exponents_.view(), found.view());
            const Scan seen = read_scan(ctx_, found.view());
            if (seen.bad_row >= 0) {
                throw NonFiniteEntry(f_.row_axis.global(grid_.row(), seen.bad_row),
                                     f_.col_axis.global(grid_.col(), seen.bad_col));
            }
            scaled = seen.scaled;
            if (in_place_) {
                f_.A = *in_place_;
            } else {
                f_.memory = copy_of<T, D>(ctx_, A_.local);
                f_.A = f_.memory.view();
            }
        });
        const auto found = call_.agree({}, scaled);
        if (f_.arithmetic != Arithmetic::Native) {
            if constexpr (corrected_products<T, D>) choose_norm_exponents();
        } else if (std::any_of(found.begin(), found.end(), [](Index flag) { return flag != 0; })) {
            choose_exponents<T, D>(ctx_, call_, grid_.col_comm(), A_.local, exponents_.view());
        } else {
            return;
        }
        scale_columns<T>(ctx_, exponents_.view(), -1, Part::All, f_.A);
        is_scaled_ = true;
    }

    /// Chooses exponents for column norms from 1 to 2, or up to 2√Pr if the columns are on Pr ranks.
    void choose_norm_exponents() {
        call_.attempt([&] { norm_exponents<T>(ctx_, A_.local, exponents_.view()); });
        if (grid_.rows() == 1) return;
        Matrix<int> found(A_.local.cols, 1);
        Matrix<Index> mine(A_.local.cols, 1);
        call_.attempt([&] {
            start_copy_to_host<int>(ctx_, exponents_.view(), found.view());
            finish_copies(ctx_);
            ctx_.wait();
            for (Index j = 0; j < mine.rows(); ++j) mine(j, 0) = A_.local.rows > 0 ? found(j, 0) : no_exponent;
        });
        agree_on_exponents(ctx_, call_, grid_.col_comm(), mine, exponents_.view());
    }

    /// A(:, cols) := HᵀA(:, cols), with H of panel s.
    void update(CyclicReflectors<T, D>& reflectors, Index s, Range cols) {
        update_local(reflectors, s, f_.local_cols(cols));
    }
    void update_local(CyclicReflectors<T, D>& reflectors, Index s, Range local) {
        const Span span(ctx_, "update", s);
        reflectors.apply(s, Op::Transpose, f_.A.block(f_.rows_from(f_.panels[s].first), local));
    }

    /// Applies the update of the panel before `next`. Its first columns become panel `next` on the side stream, which
    /// sends V and T. On the host everything runs one after the other. With several process rows the rest of the update
    /// overlaps with the panel, because all process rows wait for it. With one process row the rest overlaps with the
    /// panel only if it takes much longer. Otherwise it comes after the panel, because the other ranks wait for the
    /// panel, and the update would delay the panel's many small kernels.
    void factor_beside(CyclicReflectors<T, D>& reflectors, SideWork<D>& side, Index next) {
        const CyclicPanel& panel = f_.panels[next];
        const Range others{panel.cols().end, f_.layout.cols};
        update(reflectors, next - 1, panel.cols());
        Context<D>& critical = side.fork();
        OverlappedWork rest([&] { update(reflectors, next - 1, others); }), nothing;
        const bool beside = grid_.rows() > 1 || f_.local_cols(others).size() > CyclicTuning::max_behind_a_panel;
        gather(critical, next);
        if (f_.has_whole_panels() && beside)
            // the panel's clusters need neighbouring multiprocessors: they start before the update takes them all
            side.join();
        factor_panel(critical, next, Tuning<D>::asynchronous && beside ? rest : nothing);
        reflectors.share(critical, next);
        reflectors.await(next);
        rest();
    }

    /// Applies the update of the panel before `next`, and receives V and T of panel `next` on the side stream. Half of
    /// the update comes before the receive, which takes multiprocessors from the update while it waits for its sender.
    /// With several process rows the receive comes after the sums of the update.
    void receive_beside(CyclicReflectors<T, D>& reflectors, SideWork<D>& side, Index next) {
        const Range all = f_.local_cols({f_.panels[next - 1].cols().end, f_.layout.cols});
        const Index half = f_.has_whole_columns() ? all.size() / 2 / 8 * 8 : 0;
        const Index middle = all.begin + (half >= CyclicTuning::min_half ? half : 0);
        if (middle > all.begin) update_local(reflectors, next - 1, {all.begin, middle});
        Context<D>& beside = side.fork();
        update_local(reflectors, next - 1, {middle, all.end});
        reflectors.share(beside, next);
        reflectors.await(next);
    }

    /// Gathers the rows of panel s on the rank that factors it, if one rank does.
    void gather(Context<D>& where, Index s) {
        if (whole_panels_) whole_panels_->gather(where, s);
    }
    /// Computes V, T and R of panel s: as on one process if one rank has the panel, otherwise by the ranks of its
    /// process column. `overlapped` runs on the way.
    void factor_panel(Context<D>& where, Index s, OverlappedWork& overlapped) {
        if (whole_panels_) return whole_panels_->factor(where, s, overlapped);
        // a rank of this process column may know of a failure that the other ranks do not know
        Index note = call_.note();
        grid_.col_comm().template all_reduce<Index>(host_context(where), {&note, 1, 1}, Reduction::Max);
        call_.hear(static_cast<int>(note));
        call_.attempt(
            [&] {
                const Span span(where, "panel", s);
                CyclicPanelFactorizer<T, D>(where, f_, s).factor(overlapped);
            },
            JointCall::Of::All);
    }

    Context<D>& ctx_;
    const ProcessGrid& grid_;
    BlockCyclicView<const T, D> A_;
    JointCall call_;
    Index width_;
    Plan plan_;  // of whole panels, and of the updates' arithmetic
    std::optional<MatrixView<T, D>> in_place_;
    BlockCyclicFactorization<T, D> f_;
    std::optional<WholePanels<T, D>> whole_panels_;
    Matrix<int, D> exponents_;
    bool is_scaled_ = false;
};

}  // namespace

template <class T, class D>
const BlockCyclic& BlockCyclicQR<T, D>::layout() const {
    return inside_->layout;
}
template <class T, class D>
Index BlockCyclicQR<T, D>::panel_width() const {
    return inside_->width;
}
template <class T, class D>
MatrixView<const T, D> BlockCyclicQR<T, D>::v_and_r() const {
    return inside_->A;
}

template <class T, class D>
Matrix<T, D> BlockCyclicQR<T, D>::tau(Context<D>& ctx) const {
    const auto& f = *inside_;
    Matrix<T, D> tau(ctx, f.Tf.cols(), 1);
    for (const auto& p : f.panels) {
        if (f.owns(p)) copy_diagonal<T>(ctx, f.t_of(p), tau.view().row_block(f.local_cols(p.cols())));
    }
    return tau;
}

template <class T, class D>
Matrix<T, D> BlockCyclicQR<T, D>::r(Context<D>& ctx) const {
    const auto& f = *inside_;
    Matrix<T, D> R(ctx, f.rows_before(f.k()), f.A.cols);
    set_zero(ctx, R.view());
    const auto from = f.A;
    // the same block of A
    const auto in_a = [&](MatrixView<T, D> B, Range cols) {
        const Index row = B.data ? (B.data - R.data()) % R.ld() : 0;
        return from.block({row, row + B.rows}, cols);
    };
    f.for_each_block_of_r(
        R.view(), [&](MatrixView<T, D> B, Range cols) { copy<T>(ctx, in_a(B, cols), B); },
        [&](MatrixView<T, D> B, Range cols) { copy_triangle<T>(ctx, in_a(B, cols), B); });
    return R;
}

namespace {

/// Returns the arithmetic of products with a caller's columns. A rank that has whole columns scales them by itself.
template <class T, class D>
Arithmetic arithmetic_of_products(const BlockCyclicFactorization<T, D>& f) {
    return f.has_whole_columns() ? f.arithmetic : Arithmetic::Native;
}

/// C := op(Q) C, for this rank's part. Its rows are in A's blocks.
template <class T, class D>
void apply_all(Context<D>& ctx, JointCall& call, CyclicReflectors<T, D>& reflectors,
               const BlockCyclicFactorization<T, D>& f, Op op, MatrixView<T, D> C) {
    std::optional<UnitColumns<T, D>> columns;
    call.attempt([&] { columns.emplace(ctx, arithmetic_of_products(f), C); });
    reflectors.for_each_panel(op == Op::Transpose,
                              [&](Index s) { reflectors.apply(s, op, C.row_block(f.rows_from(f.panels[s].first))); });
    call.attempt([&] { columns->restore(ctx, C); });
}

/// Throws InvalidArgument unless the rows of C are distributed as A's rows are.
template <class T, class D>
void check_rows_like(const BlockCyclicFactorization<T, D>& f, const char* operation, BlockCyclicView<const T, D> C) {
    check_cyclic(*f.grid, C);
    if (C.layout.rows == f.layout.rows && C.layout.row_block == f.layout.row_block &&
        C.layout.first_row == f.layout.first_row)
        return;
    throw InvalidArgument(fmt::format(
        "{}: {} rows in blocks of {} from process row {}, and A has {} in blocks of {} from {}", operation,
        C.layout.rows, C.layout.row_block, C.layout.first_row, f.layout.rows, f.layout.row_block, f.layout.first_row));
}

}  // namespace

template <class T, class D>
void BlockCyclicQR<T, D>::apply_q(Context<D>& ctx, Op op, BlockCyclicView<T, D> C) const {
    const auto& f = *inside_;
    JointCall call(host_context(ctx), f.grid->comm(), RankOperation::ApplyQ);
    std::optional<CyclicReflectors<T, D>> reflectors;
    call.attempt([&] {
        check_rows_like<T, D>(f, "apply_q", C);
        reflectors.emplace(ctx, f, call, C.local.cols, arithmetic_of_products(f));
    });
    agree_on<T>(call, C.layout, *f.grid, {"op", static_cast<Index>(op)});
    apply_all(ctx, call, *reflectors, f, op, C.local);
    call.agree();
}

namespace {

/// Returns this rank's part of the thin Q. With `in_place` Q replaces V in the first columns of f.A, and the result is
/// empty.
template <class T, class D>
Matrix<T, D> form_cyclic_q(Context<D>& ctx, const BlockCyclicFactorization<T, D>& f, bool in_place) {
    const Index n = f.cols_before(f.k());
    JointCall call(host_context(ctx), f.grid->comm(), RankOperation::FormQ);
    std::optional<CyclicReflectors<T, D>> reflectors;
    Matrix<T, D> memory;
    call.attempt([&] {
        reflectors.emplace(ctx, f, call, n, f.arithmetic);
        if (!in_place) memory = Matrix<T, D>(ctx, f.A.rows, n);
    });
    call.agree({{"whether Q is formed in place", in_place}});
    const auto Q = in_place ? f.A.col_block({0, n}) : memory.view();
    reflectors->for_each_panel(false, [&](Index s) {
        // Q(j:, j:) := H Q(j:, j:). The panel's own columns are columns of I before.
        const auto& p = f.panels[s];
        const auto own = Q.col_block(f.local_cols(p.cols()));
        const Range below = f.rows_from(p.first);
        reflectors->apply(s, Op::None, Q.block(below, {f.cols_before(p.cols().end), n}));
        if (!f.owns(p)) return;
        call.attempt([&] { set_zero(ctx, own.row_block({0, below.begin})); });
        reflectors->form(s, own.row_block(below));
    });
    call.agree();
    return memory;
}

}  // namespace

template <class T, class D>
Matrix<T, D> BlockCyclicQR<T, D>::form_q(Context<D>& ctx) const {
    return form_cyclic_q(ctx, *inside_, false);
}
template <class T, class D>
void BlockCyclicQR<T, D>::form_q_in_place(Context<D>& ctx) && {
    form_cyclic_q(ctx, *inside_, true);
}

template <class T, class D>
void BlockCyclicQR<T, D>::solve(Context<D>& ctx, BlockCyclicView<T, D> B) const {
    const auto& f = *inside_;
    const Index p = B.local.cols;
    JointCall call(host_context(ctx), f.grid->comm(), RankOperation::Solve);
    std::optional<CyclicReflectors<T, D>> reflectors;
    Matrix<T, D> column, X, part;
    call.attempt([&] {
        check_rows_like<T, D>(f, "solve", B);
        if (f.layout.rows < f.layout.cols) {
            throw InvalidArgument(fmt::format("solve needs at least as many rows as columns, and A is {}x{}",
                                              f.layout.rows, f.layout.cols));
        }
        reflectors.emplace(ctx, f, call, p, arithmetic_of_products(f));
        column = Matrix<T, D>(ctx, (f.A.rows + f.width) * f.width, 1);
        X = Matrix<T, D>(ctx, f.width * std::max(p, f.width), 1);
        part = Matrix<T, D>(ctx, X.rows(), 1);
    });
    agree_on<T>(call, B.layout, *f.grid);
    apply_all(ctx, call, *reflectors, f, Op::Transpose, B.local);
    const auto sum = [&](MatrixView<T, D> S) {
        sum_on_all<T, D>(ctx, call, f.grid->col_comm(), S, {part.data(), S.rows, S.cols});
    };
    for (Index s = static_cast<Index>(f.panels.size()) - 1; s >= 0; --s) {
        const auto& panel = f.panels[s];
        const Index w = panel.width, above = f.rows_before(panel.first);
        // R(0 : j + w, s): this rank's rows above the panel, and the whole triangle below them
        const MatrixView<T, D> M(column.data(), above + w, w);
        const auto R01 = M.row_block({0, above}), R11 = M.row_block({above, above + w});
        const auto rows_of = [&](MatrixView<T, D> S, Range global) {
            return S.row_block({global.begin - panel.first, global.end - panel.first});
        };
        if (f.owns(panel)) {
            const auto A = f.A.col_block(f.local_cols(panel.cols()));
            const MatrixView<T, D> triangle(X.data(), w, w);
            call.attempt([&] {
                copy<T>(ctx, A.row_block({0, above}), R01);
                set_zero(ctx, triangle);
                f.for_each_run(panel.cols(), [&](Range local, Range global) {
                    copy<T>(ctx, A.row_block(local), rows_of(triangle, global));
                });
            });
            sum(triangle);
            call.attempt(
                [&] {
                    copy_triangle<T>(ctx, triangle, R11);
                    Matrix<T, D> diagonal(ctx, w, 1);
                    copy_diagonal<T>(ctx, R11, diagonal.view());
                    const Matrix<T> found = host_copy_of<T, D>(ctx, diagonal.view());
                    for (Index j = 0; j < w; ++j) {
                        if (found(j, 0) == T(0))
                            throw RankDeficient(fmt::format("R({0}, {0}) is 0", panel.first + j), 0);
                    }
                },
                JointCall::Of::All);
        }
        call.hear(f.grid->row_comm().template broadcast<T>(ctx, M, f.col_axis.owner(panel.first), call.note()));
        if (p == 0) continue;
        // X₁ = R₁₁⁻¹ B₁,  B₀ := B₀ − R₀₁X₁
        const MatrixView<T, D> X1(X.data(), w, p);
        call.attempt([&] {
            throw_if_stopped(ctx);
            set_zero(ctx, X1);
            f.for_each_run(panel.cols(), [&](Range local, Range global) {
                copy<T>(ctx, B.local.row_block(local), rows_of(X1, global));
            });
        });
        sum(X1);
        call.attempt([&] {
            solve_triangle<T>(ctx, Triangle::Upper, Op::None, R11, X1);
            f.for_each_run(panel.cols(), [&](Range local, Range global) {
                copy<T>(ctx, rows_of(X1, global), B.local.row_block(local));
            });
            subtract_product<T>(ctx, R01, X1, B.local.row_block({0, above}));
        });
    }
    call.agree();
}

struct InsideCyclic {
    template <class T, class D>
    static BlockCyclicQR<T, D> hold(BlockCyclicFactorization<T, D>&& f) {
        return BlockCyclicQR<T, D>(detail::own<BlockCyclicFactorization<T, D>>(std::move(f)));
    }
};

template <class T, class D>
BlockCyclicQR<T, D> qr(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<const T, D> A, Index panel_width) {
    return InsideCyclic::hold(CyclicFactorizer<T, D>(ctx, grid, A, panel_width).factor());
}

template <class T, class D>
BlockCyclicQR<T, D> qr_in_place(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<T, D> A, Index panel_width) {
    return InsideCyclic::hold(CyclicFactorizer<T, D>(ctx, grid, A, panel_width, A.local).factor());
}

template <class T, class D>
BlockCyclicQR<T, D> from_lapack(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<T, D> V_R,
                                View<const T, D> tau, Index panel_width) {
    using S = Sum<T, D>;
    BlockCyclicFactorization<T, D> f;
    f.grid = &grid;
    f.layout = V_R.layout;
    JointCall call(host_context(ctx), grid.comm(), RankOperation::FromLapack);
    call.attempt([&] {
        check_cyclic<T, D>(grid, V_R);
        check_width(panel_width);
    });
    agree_on<T>(call, f.layout, grid, {"the width of a panel", panel_width});
    lay_out(f, panel_width);
    Matrix<S, D> G, part;
    Matrix<T, D> VtV;
    std::optional<CyclicReflectors<T, D>> reflectors;
    call.attempt([&] {
        if (tau.rows != f.cols_before(f.k()) || tau.cols != 1) {
            throw InvalidArgument(fmt::format("from_lapack: tau is {} x {}, and this rank has {} columns of V",
                                              tau.rows, tau.cols, f.cols_before(f.k())));
        }
        f.A = V_R.local;
        f.Tf = Matrix<T, D>(ctx, f.width, tau.rows);
        for (Matrix<S, D>* sum : {&G, &part}) *sum = Matrix<S, D>(ctx, f.width, f.width);
        VtV = Matrix<T, D>(ctx, f.width, f.width);
        reflectors.emplace(ctx, f, call, 0);
    });
    call.agree();
    for (std::size_t s = 0; s < f.panels.size(); ++s) {
        const CyclicPanel& p = f.panels[s];
        if (!f.owns(p)) continue;
        const Index w = p.width;
        const MatrixView<S, D> G_p(G.data(), w, w), part_p(part.data(), w, w);
        call.attempt([&] {
            const auto rows = f.A.block(f.rows_from(p.first), f.local_cols(p.cols()));
            const auto V1 = reflectors->v(static_cast<Index>(s)).top;
            const Index top = V1.rows;
            copy<T>(ctx, rows.row_block({0, top}), V1);
            reflectors->set_unit_rows(ctx, p, {0, w}, V1);
            solve_and_gram<T>(ctx, V1, {}, {}, G_p);
            solve_and_gram<T>(ctx, rows.row_block({top, rows.rows}), {}, {}, part_p);
            add<S>(ctx, part_p, G_p);
        });
        sum_on_all<S, D>(ctx, call, grid.col_comm(), G_p, part_p);
        call.attempt([&] {
            const MatrixView<T, D> VtV_p(VtV.data(), w, w);
            multiply_upper<S, T>(ctx, {}, G_p, VtV_p);
            compact_wy_from_gram<T>(ctx, VtV_p, tau.row_block(f.local_cols(p.cols())), f.t_of(p));
        });
    }
    call.agree();
    return InsideCyclic::hold(std::move(f));
}

#define QUOIN_INSTANTIATE(T, D)                                                                                    \
    template class BlockCyclicQR<T, D>;                                                                            \
    template BlockCyclicQR<T, D> qr<T, D>(Context<D>&, const ProcessGrid&, BlockCyclicView<const T, D>, Index);    \
    template BlockCyclicQR<T, D> qr_in_place<T, D>(Context<D>&, const ProcessGrid&, BlockCyclicView<T, D>, Index); \
    template BlockCyclicQR<T, D> from_lapack<T, D>(Context<D>&, const ProcessGrid&, BlockCyclicView<T, D>,         \
                                                   MatrixView<const T, D>, Index);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
