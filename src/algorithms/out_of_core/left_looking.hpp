#pragma once

// Householder QR of a matrix in slow memory, A = H₁ H₂ … [R; 0], by slabs of columns from left to right (left-looking:
// Toledo and Rabani 2002). A slab comes in once. The reflectors left of it pass and are applied to it. It is factored
// in fast memory and goes back:
//
//              V₁  V₂ │ slab        slab := … H₂ᵀ H₁ᵀ slab,   slab's rows from its first column on = H₃ R₃₃
//             ────────┼──────
//     moved in: n²/(2w) (m − n/3) numbers for slabs of w columns, and mn;  moved out: mn.
//
// Errors are as in the blocked algorithm in fast memory, because the same reflectors act on each column in the same
// order.

#include <algorithm>
#include <optional>
#include <vector>

#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/out_of_core/pipeline.hpp"
#include "algorithms/out_of_core/slabs.hpp"
#include "algorithms/out_of_core/slow.hpp"
#include "algorithms/shared/column_scaling.hpp"

namespace quoin {

/// LAPACK's format in slow memory: V below the diagonal of A, R on and above it. The panels' T, panel×k for k = min(m,
/// n), are in the caller's fast memory; their diagonals are τ. Steps are taken one by one, so that a caller can stop
/// between them, or begin at a later one with the A and T of that moment. A is read on a context of In.
template <class T, class D, Slow<T, D> S, class In = D>
class LeftLookingQR {
public:
    LeftLookingQR(Context<D>& ctx, S& A, const Slabs& slabs, MatrixView<T, D> Tf)
        : LeftLookingQR(ctx, A, slabs, Tf, copy_in_stream(ctx), First::Come) {}
    LeftLookingQR(Context<D>& ctx, S& A, const Slabs& slabs, MatrixView<T, D> Tf, Context<In>& in, First first)
        : ctx_(ctx),
          A_(A),
          slabs_(slabs),
          Tf_(Tf),
          m_(A.rows()),
          n_(A.cols()),
          k_(std::min(m_, n_)),
          first_(first),
          slab_(ctx, m_, std::min(slabs.slab, n_)),
          pipeline_(ctx, in) {
        for (auto& V : passing_) V = Matrix<T, D>(ctx, m_, std::min(slabs_.v_block, k_));
        pipeline_.turn();
    }
    LeftLookingQR(const LeftLookingQR&) = delete;

    /// `count` returns the number of slabs of A, `q_count` of the thin Q, whose slabs begin left of column k.
    Index count() const { return (n_ + slabs_.slab - 1) / slabs_.slab; }
    Index q_count() const { return (k_ + slabs_.slab - 1) / slabs_.slab; }

    /// Factors slab j: writes its V and R, and T of its panels. The slabs before it are done. With `check_finite`
    /// throws NonFiniteEntry.
    void factor(Index j, bool check_finite = true) {
        const Range J = columns_of(j, n_);
        const auto C = slab_.view().col_block({0, J.size()});
        throw_if_stopped(ctx_);
        std::optional<ColumnScaling<T, D>> scaling;
        bring(J, {0, m_}, Op::Transpose, C, [&] {
            scaling.emplace(ctx_, C, slabs_.arithmetic, C.cols);
            needed(*scaling, J, check_finite);
            scaling->scale(ctx_, C);
        });
        if (J.begin < k_) {
            const Plan plan = plan_of(J);
            const std::vector<Panel> panels = panels_of(plan);
            factor_blocked_householder<T, D>(ctx_, plan, {panels, C.row_block({J.begin, m_}), t_of(J)});
        }
        // R := R D⁻¹
        const Index above = std::min(J.begin, k_);
        scaling->unscale(ctx_, Part::All, C.row_block({0, above}));
        scaling->unscale(ctx_, Part::Upper, C.row_block({above, std::min(m_, J.end)}));
        take_away(A_, J, {0, m_}, C);
    }

    /// Writes slab j of the thin Q (m×k) to `to`, from the reflectors in A. If `to` is A, the slabs right of j are
    /// done, and R has been copied.
    template <Slow<T, D> To>
    void form_q(Index j, To& to) {
        const Range J = columns_of(j, k_);
        const auto C = slab_.view().col_block({0, J.size()});
        throw_if_stopped(ctx_);
        // H_j [I; 0], zeros above, and then H₁ … H_{j−1} applied to it
        bring(J, {J.begin, m_}, Op::None, C, [&] {
            const std::vector<Panel> panels = panels_of(plan_of(J));
            form_q_in_place<T, D>(ctx_, {panels, C.row_block({J.begin, m_}), t_of(J)}, slabs_.arithmetic);
            set_zero(ctx_, C.row_block({0, J.begin}));
        });
        take_away(to, J, {0, m_}, C);
    }

    /// Waits until all enqueued work is done, slow memory included.
    void finish() { pipeline_.finish(); }

private:
    Range columns_of(Index j, Index end) const { return {j * slabs_.slab, std::min(end, (j + 1) * slabs_.slab)}; }
    Plan plan_of(Range J) {
        Options options;
        options.method = BlockedHouseholder{slabs_.panel};
        options.q = QForm::Reflectors;
        options.arithmetic = slabs_.arithmetic;
        options.check_finite = false;
        return plan_qr<T>(ctx_, m_ - J.begin, J.size(), options);
    }
    MatrixView<T, D> t_of(Range J) const { return Tf_.col_block({J.begin, std::min(J.end, k_)}); }

    static constexpr Index parts = Tuning<D>::slab_parts;
    /// Returns part p of the columns J, counted from the first of them.
    Range part_of(Range J, Index p) const {
        const Index width = (slabs_.slab + parts - 1) / parts;
        return {std::min(J.size(), p * width), std::min(J.size(), (p + 1) * width)};
    }

    /// Reads `to` := A(rows, J), part by part, each when the part of the last slab in its place has left.
    void come(Range J, Range rows, MatrixView<T, D> to) {
        wait_for(pipeline_.in, ctx_);
        for (Index p = 0; p < parts; ++p) {
            left_[p].precede(pipeline_.in);
            const Range part = part_of(J, p);
            if (part.size() == 0) continue;
            const Span span(pipeline_.in, "slab in", J.begin / slabs_.slab);
            A_.read(pipeline_.in, rows, {J.begin + part.begin, J.begin + part.end}, to.col_block(part));
        }
    }
    template <class To>
    void take_away(To& to, Range J, Range rows, MatrixView<const T, D> from) {
        wait_for(pipeline_.out, ctx_);
        for (Index p = 0; p < parts; ++p) {
            const Range part = part_of(J, p);
            if (part.size() == 0) continue;
            const Span span(pipeline_.out, "slab out", J.begin / slabs_.slab);
            to.write(pipeline_.out, from.col_block(part), rows, {J.begin + part.begin, J.begin + part.end});
            left_[p].record(pipeline_.out);
        }
    }

    /// Reads C(rows, :) := A(rows, J), calls `begin()`, and applies C := op(H₁ H₂ …) C for the reflectors left of J.
    /// One block of V is applied while the next one comes. The first one comes while `begin()` runs.
    template <class Begin>
    void bring(Range J, Range rows, Op op, MatrixView<T, D> C, Begin begin) {
        const Index before = std::min(J.begin, k_), v_block = slabs_.v_block, blocks = (before + v_block - 1) / v_block;
        const auto block = [&](Index i) {
            const Index b = op == Op::Transpose ? i - 1 : blocks - i;
            return Range{b * v_block, std::min(before, (b + 1) * v_block)};
        };
        const auto place = [&](Index i) {
            const Range B = block(i);
            return passing_[i % 2].view().block({B.begin, m_}, {0, B.size()});
        };
        pipeline_.run(
            1 + blocks,
            [&](Index i) {
                if (i == 0) return come(J, rows, C.row_block(rows));
                // the slabs before are in slow memory
                finish_copies(pipeline_.out);
                wait_for(pipeline_.in, pipeline_.out);
                const Range B = block(i);
                const Span span(pipeline_.in, "V in", B.begin / slabs_.panel);
                A_.read(pipeline_.in, {B.begin, m_}, B, place(i));
            },
            [&](Index i) {
                if (i == 0) return begin();
                const Span span(ctx_, "update", block(i).begin / slabs_.panel);
                apply_block(op, block(i), place(i), C);
            },
            first_);
    }

    /// Applies the panels of one block, V on and below its diagonal, to C.
    void apply_block(Op op, Range B, MatrixView<const T, D> V, MatrixView<T, D> C) {
        const Index nb = slabs_.panel, panels = (B.size() + nb - 1) / nb;
        for (Index s = 0; s < panels; ++s) {
            const Index first = (op == Op::Transpose ? s : panels - 1 - s) * nb;
            const Range P{first, std::min(B.size(), first + nb)}, columns{B.begin + P.begin, B.begin + P.end};
            apply_panel<T>(ctx_, op, V.block({P.begin, V.rows}, P), Tf_.block({0, P.size()}, columns),
                           C.row_block({columns.begin, m_}), slabs_.arithmetic);
        }
    }

    void needed(ColumnScaling<T, D>& scaling, Range J, bool check_finite) {
        try {
            scaling.needed(ctx_, check_finite);
        } catch (const NonFiniteEntry& entry) {
            throw NonFiniteEntry(entry.row, J.begin + entry.col);
        }
    }

    Context<D>& ctx_;
    S& A_;
    const Slabs slabs_;
    const MatrixView<T, D> Tf_;
    const Index m_, n_, k_;
    const First first_;
    Matrix<T, D> slab_, passing_[2];
    Event<D> left_[parts];      // the parts of the last slab have left
    Pipeline<D, In> pipeline_;  // waits before their memory goes
};

}  // namespace quoin
