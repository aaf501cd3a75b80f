#pragma once

// Classical Gram-Schmidt QR of a matrix in slow memory (Zhang and Wu 2021), A = QR, Q in place of A, by recursion or by
// blocks:
//
//     [A₁ A₂] = [Q₁ Q₂] [R₁₁ R₁₂; 0 R₂₂]:   A₁ = Q₁R₁₁,  R₁₂ = Q₁ᵀA₂ (inner product),  A₂ −= Q₁R₁₂ (outer product),  A₂ = Q₂R₂₂
//
//   recursion   A₁ and A₂ are halves, and each is factored by the same steps. Columns of A₂ fill the memory and stay
//               while Q₁ passes (passing.hpp). The pass begins with the columns of Q₁ just factored, and ends with the
//               columns of A₂ that are factored next. If Q₁ is the leaf just factored, and not rounded, it stays, and
//               columns of A₂ pass. Either way one pass serves both products. Their Figures 3 and 5 take two passes,
//               over rows of both matrices, and on a bus rows of a matrix travel at less than half the rate of columns.
//   blocking    A₁ is one block, A₂ all columns right of it. Q₁ stays, and columns of A₂ pass twice (Figures 4 and 6).
//
// Every column is scanned when it comes for the first time, by itself or in A₂ of the first leaves. If columns are out
// of range, A is replaced by A D as in ColumnScaling.

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/out_of_core/orthonormal_columns.hpp"
#include "algorithms/out_of_core/pipeline.hpp"
#include "algorithms/out_of_core/slow.hpp"
#include "algorithms/out_of_core/tiles.hpp"

namespace quoin {

/// The Scalar<T>::safe_exponent of operands that are rounded to 16 bits. f16 exponents end at 15.
inline constexpr int safe_exponent_of_halves = 10;

template <class T, class D, Slow<T, D> S, Slow<T, D> SR>
class OutOfCoreGramSchmidt {
public:
    /// Writes the upper triangle of R (n×n), and zeros next to its diagonal below it. Calls `progress()` after every
    /// stage.
    OutOfCoreGramSchmidt(Context<D>& ctx, S& A, SR& R, const OutOfCorePlan& plan, std::function<void()> progress = {},
                         const OutOfCoreSchedule& schedule = {})
        : ctx_(ctx),
          A_(A),
          R_(R),
          tiles_(tiles_of(plan, schedule)),
          arithmetic_(plan.arithmetic),
          check_finite_(plan.check_finite),
          progress_(std::move(progress)),
          m_(A.rows()),
          n_(A.cols()),
          memory_(ctx, tiles_.elements, 1),
          exponents_(ctx, n_, 1),
          scans_(ctx, n_, 1),
          pipeline_(ctx) {
        pipeline_.asynchronous = schedule.asynchronous;
    }
    OutOfCoreGramSchmidt(const OutOfCoreGramSchmidt&) = delete;

    void by_recursion() {
        if (n_ > 0) recurse({0, n_});
        pipeline_.finish();
    }

    void by_blocks() {
        for (Index j = 0; j < n_; j += tiles_.leaf) {
            const Range J{j, std::min(n_, j + tiles_.leaf)};
            factor_leaf(J);
            if (J.end == n_) break;
            update_twice(J, {J.end, n_});
            tell();
        }
        pipeline_.finish();
    }

    /// Returns the e_j of A D, D = diag(2^-e_j), whose R has been written. All are 0 if no column was out of range.
    Matrix<int> exponents() {
        Matrix<int> on_host(n_, 1);
        wait_for(pipeline_.out, ctx_);
        start_copy_to_host<int>(pipeline_.out, exponents_.view(), on_host.view());
        pipeline_.finish();
        return on_host;
    }
    /// Whether some e_j is not 0.
    bool scaled() const { return scaled_; }

private:
    /// Hands out fast memory from the beginning, or from the end of the leaf's Q and R on.
    class Places {
    public:
        Places(T* begin, T* end) : next_(begin), end_(end) {}
        MatrixView<T, D> take(Index rows, Index cols) {
            const MatrixView<T, D> place(next_, rows, cols);
            next_ += rows * cols;
            if (next_ > end_) throw OutOfMemory("out of core: the tiles do not fit the memory that they were cut for");
            return place;
        }

    private:
        T *next_, *end_;
    };
    Places everything() { return {memory_.data(), memory_.data() + tiles_.elements}; }
    Places beside_leaf() {
        Places places = everything();
        places.take(m_, tiles_.leaf);
        places.take(tiles_.leaf, tiles_.leaf);
        return places;
    }
    MatrixView<T, D> leaf_q(Index w) { return {memory_.data(), m_, w}; }
    MatrixView<T, D> leaf_r(Index w) { return {memory_.data() + m_ * tiles_.leaf, w, w, tiles_.leaf}; }
    const T* leaf_end() { return memory_.data() + (m_ + tiles_.leaf) * tiles_.leaf; }

    void recurse(Range J) {
        if (J.size() <= tiles_.leaf) return factor_leaf(J);
        const Range left{J.begin, tiles_.middle(J)}, right{left.end, J.end};
        recurse(left);
        if (tiles_.passes_q(left.size(), right.size())) {
            update_by_passing_q(left, right);
        } else {
            update_once(left, right);
        }
        tell();
        recurse(right);
    }

    // ---- A leaf: A_J = Q_J R_JJ -------------------------------------------------------------------------------------

    void factor_leaf(Range J) {
        const Index w = J.size();
        const auto Q = leaf_q(w), R = leaf_r(w);
        // R of the last leaf has left
        wait_for(ctx_, pipeline_.out);
        set_zero(ctx_, R);
        // if a second pass follows, the first pass reorthogonalizes only where it needs that itself
        OrthonormalColumns<T, D> basis(ctx_, Q, R, arithmetic_,
                                       !tiles_.again  ? Reorthogonalization::Off
                                       : J.begin == 0 ? Reorthogonalization::Always
                                                      : Reorthogonalization::Selective);
        const std::vector<Range> parts = tiles_.arriving(w);
        const bool again = tiles_.again && J.begin > 0;
        const auto take_away = [&](const Range& part) {
            if (part.end == w) all_but_last_left_.record(pipeline_.out);
            {
                const Span span(pipeline_.out, "panel out", J.begin + part.begin);
                A_.write(pipeline_.out, Q.col_block(part), {0, m_}, shifted(part, J.begin));
            }
            // the rows below these blocks of columns are zero there already
            const Range rows{0, part.end};
            take_away_r(R.block(rows, part), shifted(rows, J.begin), shifted(part, J.begin), "panel out");
        };
        const Index stayed = std::exchange(stayed_, 0);
        pipeline_.turn();
        naming_columns(J, [&] {
            pipeline_.run(
                size_of(parts),
                [&](Index i) {
                    if (parts[i].end <= stayed) return;
                    const Range come{std::max(stayed, parts[i].begin), parts[i].end};
                    const Span span(pipeline_.in, "panel in", J.begin + come.begin);
                    A_.read(pipeline_.in, {0, m_}, shifted(come, J.begin), Q.col_block(come));
                },
                [&](Index i) {
                    if (J.begin == 0) {
                        look_at(parts[i], Q.col_block(parts[i]));
                        conclude_scans();
                    }
                    const Span span(ctx_, "panel", J.begin + parts[i].begin);
                    basis.append(parts[i]);
                },
                [](Index) {},
                [&](Index i) {
                    if (!again) take_away(parts[i]);
                });
        });
        if (again) {
            project_again(J);
            wait_for(pipeline_.out, ctx_);
            for (const Range& part : parts) take_away(part);
        }
        tell();
    }

    /// Orthogonalizes the leaf a second time: Q_J − Q₀Q₀ᵀQ_J = Q' R' for the columns Q₀ left of it, block by block of
    /// Q₀. So A_J = Q₀(R₀J + S R_JJ) + Q'(R' R_JJ).
    void project_again(Range J) {
        const Index w = J.size();
        const auto W = leaf_q(w), R = leaf_r(w);
        Places places = beside_leaf();
        const auto R2 = places.take(w, w);
        const std::vector<Range> blocks = tiles_.in_steps({0, J.begin}, tiles_.coming_again(w));
        const Index most = largest(blocks);
        const std::array<MatrixView<T, D>, 2> Q0{places.take(m_, most), places.take(m_, most)},
            R0{places.take(most, w), places.take(most, w)};
        const auto S_memory = places.take(most, w), R0_out = places.take(most, w);
        const auto top = [](MatrixView<T, D> place, Index rows) { return place.row_block({0, rows}); };
        pipeline_.turn();
        pipeline_.run(
            size_of(blocks),
            [&](Index i) {
                const Span span(pipeline_.in, "Q in", blocks[i].begin);
                A_.read(pipeline_.in, {0, m_}, blocks[i], Q0[i % 2].col_block({0, blocks[i].size()}));
                R_.read(pipeline_.in, blocks[i], J, top(R0[i % 2], blocks[i].size()));
            },
            [&](Index i) {
                const Span span(ctx_, "reorthogonalization", blocks[i].begin);
                const Index b = blocks[i].size();
                const auto Q = Q0[i % 2].col_block({0, b}), minus_s = top(S_memory, b);
                block_gram_schmidt_step<T>(ctx_, Q, W, minus_s, arithmetic_, true);
                negate<T>(ctx_, minus_s);
                subtract_product<T>(ctx_, minus_s, R, top(R0[i % 2], b), arithmetic_);
            },
            [&](Index i) {
                const Index b = blocks[i].size();
                copy<T>(ctx_, top(R0[i % 2], b), top(R0_out, b));
            },
            [&](Index i) {
                const Span span(pipeline_.out, "R out", blocks[i].begin);
                R_.write(pipeline_.out, top(R0_out, blocks[i].size()), blocks[i], J);
            });
        set_zero(ctx_, R2);
        naming_columns(J, [&] {
            OrthonormalColumns<T, D>(ctx_, W, R2, arithmetic_, Reorthogonalization::Selective).append({0, w});
        });
        multiply_upper<T>(ctx_, R2, R, R);
    }

    // ---- R₁₂ = Q₁ᵀA₂,  A₂ −= Q₁R₁₂ ----------------------------------------------------------------------------------

    /// Updates A₂ by the leaf Q₁. Columns of A₂ pass once.
    void update_once(Range left, Range right) {
        const Index s = left.size();
        const auto Q = leaf_q(s);
        const std::vector<Range> parts = tiles_.in_steps(right, tiles_.passing(s));
        const Index most = largest(parts);
        Places places = beside_leaf();
        const std::array<MatrixView<T, D>, 2> A2{places.take(m_, most), places.take(m_, most)};
        const auto A2_out = places.take(m_, most), R12 = places.take(s, most), R12_out = places.take(s, most);
        const auto cut = [&](MatrixView<T, D> place, Index i) { return place.col_block({0, parts[i].size()}); };
        turn_behind_leaf();
        bring_leaf_again(left);
        pipeline_.run(
            size_of(parts),
            [&](Index i) {
                bring({0, m_}, parts[i], cut(A2[i % 2], i));
            },
            [&](Index i) {
                if (left.begin == 0) look_at(parts[i], cut(A2[i % 2], i));
                const Span span(ctx_, "projection", parts[i].begin);
                block_gram_schmidt_step<T>(ctx_, Q, cut(A2[i % 2], i), cut(R12, i), arithmetic_, false);
            },
            [&](Index i) {
                copy<T>(ctx_, cut(A2[i % 2], i), cut(A2_out, i));
                copy<T>(ctx_, cut(R12, i), cut(R12_out, i));
            },
            [&](Index i) {
                take_away_a(cut(A2_out, i), {0, m_}, parts[i]);
                take_away_r(cut(R12_out, i), left, parts[i]);
            });
    }

    /// Updates A₂ by the leaf Q₁. Columns of A₂ pass twice.
    void update_twice(Range left, Range right) {
        const Index s = left.size();
        const auto Q = leaf_q(s);
        const Tiles::Tile sizes = tiles_.two_passes(s, right.size());
        Places places = beside_leaf();
        const auto R12 = places.take(s, sizes.columns);
        const std::array<MatrixView<T, D>, 2> A2{places.take(m_, sizes.step), places.take(m_, sizes.step)};
        const auto A2_out = places.take(m_, sizes.step);
        struct Step {
            Range columns;  // of A
            Index first;    // column of A at which the tile begins
            bool last;      // the second pass
        };
        std::vector<Step> steps;
        for (Index j = right.begin; j < right.end; j += sizes.columns) {
            const Range tile{j, std::min(right.end, j + sizes.columns)};
            for (const bool last : {false, true}) {
                for (const Range& part : tiles_.in_steps(tile, sizes.step)) steps.push_back({part, j, last});
            }
        }
        const auto cut = [&](MatrixView<T, D> place, Index i) { return place.col_block({0, steps[i].columns.size()}); };
        const auto r_of = [&](Index i) { return R12.col_block(shifted(steps[i].columns, -steps[i].first)); };
        turn_behind_leaf();
        bring_leaf_again(left);
        pipeline_.run(
            size_of(steps),
            [&](Index i) {
                bring({0, m_}, steps[i].columns, cut(A2[i % 2], i));
            },
            [&](Index i) {
                if (steps[i].last) {
                    // the first pass did not write scaled columns back
                    if (left.begin == 0) scale(steps[i].columns, cut(A2[i % 2], i));
                    return outer_product(Q, r_of(i), cut(A2[i % 2], i), steps[i].columns.begin);
                }
                // the previous tile's R₁₂ has left
                if (steps[i].columns.begin == steps[i].first) wait_for(ctx_, pipeline_.out);
                if (left.begin == 0) look_at(steps[i].columns, cut(A2[i % 2], i));
                inner_product(Q, cut(A2[i % 2], i), r_of(i), steps[i].columns.begin);
            },
            [&](Index i) {
                if (steps[i].last) copy<T>(ctx_, cut(A2[i % 2], i), cut(A2_out, i));
            },
            [&](Index i) {
                if (steps[i].last) {
                    take_away_a(cut(A2_out, i), {0, m_}, steps[i].columns);
                } else {
                    take_away_r(r_of(i), left, steps[i].columns);
                }
            });
    }

    /// Updates A₂ while some of its columns stay and columns of Q₁ pass: A₂ := A₂ − Q_b(Q_bᵀA₂), one block after the
    /// other, which is the order of modified Gram-Schmidt. The blocks are orthogonal, so any order of them will do. The
    /// last ones begin, because they belong to the leaf that is still in fast memory. Places of Q₁ lie at the end of
    /// fast memory, the first place last. A₂ begins where the leaf did. The next leaf, which is A₂'s first columns,
    /// finds them there.
    void update_by_passing_q(Range left, Range right) {
        const Tiles::Passing sizes = tiles_.passing_q(left.size(), right.size());
        const std::vector<PassingStep> steps =
            passing_steps(right.size(), sizes.columns, sizes.blocks, sizes.kept, sizes.stay);
        T* const end = memory_.data() + tiles_.elements;
        const auto place_at = [&](Index place) { return end - (place + 1) * sizes.place; };
        Places places{memory_.data(), end - passing_places * sizes.place};
        const auto tile = places.take(m_, sizes.columns), pieces = places.take(m_, 2 * sizes.piece);
        const auto R12 = places.take(sizes.step, sizes.columns);
        const std::array<MatrixView<T, D>, 2> R12_out{places.take(sizes.step, sizes.columns),
                                                      places.take(sizes.step, sizes.columns)};
        const auto rows_of = [&](Index i) {
            const Index behind = left.end - steps[i].block * sizes.step;
            return Range{std::max(left.begin, behind - sizes.step), behind};
        };
        const auto of_a2 = [&](Range columns, Index i) {
            return shifted(columns, right.begin + steps[i].tile * sizes.columns);
        };
        const auto columns_of = [&](Index i) { return of_a2(steps[i].columns, i); };
        const auto r_in = [&](MatrixView<T, D> place, Index i) {
            return place.block({0, rows_of(i).size()}, steps[i].columns);
        };
        std::array<Event<D>, passing_places> q_came, q_used;                     // by places
        std::array<Event<D>, CommonTuning::passing_parts> part_came, part_left;  // of a tile
        const auto part_of = [&](Index i) { return steps[i].columns.begin / passing_part(sizes.columns); };
        // A₂ comes into the memory of leaf columns that have left, while the last ones leave. All other data come when
        // the leaf has left and its blocks are kept. Blocks of Q₁ come when the leaf is in slow memory
        wait_for(pipeline_.in, ctx_);
        all_but_last_left_.precede(pipeline_.in);
        Event<D> kept, gone, settled;
        gone.record(pipeline_.out);
        // the leaf, or data next to it on their way out, may lie where its blocks are kept
        if (tiles_.again || place_at(passing_places - 1) < leaf_end()) wait_for(ctx_, pipeline_.out);
        for (Index b = 0; b < sizes.kept; ++b) keep(b, sizes, place_at(b));
        kept.record(ctx_);
        // and R₁₂ may lie where the leaf does
        wait_for(ctx_, pipeline_.out);
        const Index not_kept = tiles_.leaf - sizes.kept * sizes.step;
        const Index last_left = tiles_.arriving(tiles_.leaf).back().begin;
        finish_copies(pipeline_.out);
        settled.record(pipeline_.out);
        pipeline_.run(
            size_of(steps),
            [&](Index i) {
                const Index place = steps[i].block % passing_places;
                if (steps[i].brings || steps[i].columns.end > not_kept) kept.precede(pipeline_.in);
                if (steps[i].brings || steps[i].columns.end > last_left) gone.precede(pipeline_.in);
                if (steps[i].brings) {
                    settled.precede(pipeline_.in);
                    q_used[place].precede(pipeline_.in);
                    const Span span(pipeline_.in, "Q in", rows_of(i).begin);
                    bring_q(rows_of(i), sizes.rounded, place_at(place), pieces);
                    q_came[place].record(pipeline_.in);
                }
                if (!steps[i].arrives) return;
                part_left[part_of(i)].precede(pipeline_.in);
                bring({0, m_}, columns_of(i), tile.col_block(steps[i].columns));
                part_came[part_of(i)].record(pipeline_.in);
            },
            [&](Index i) {
                if (steps[i].columns.size() == 0) return;
                const auto A2 = tile.col_block(steps[i].columns);
                const Index place = steps[i].block % passing_places;
                q_came[place].precede(ctx_);
                if (steps[i].arrives) part_came[part_of(i)].precede(ctx_);
                if (steps[i].arrives && left.begin == 0) look_at(columns_of(i), A2);
                {
                    const Span span(ctx_, "projection", columns_of(i).begin);
                    project_from(sizes.rounded, place_at(place), rows_of(i).size(), A2, r_in(R12, i));
                }
                q_used[place].record(ctx_);
            },
            [&](Index i) { copy<T>(ctx_, r_in(R12, i), r_in(R12_out[i % 2], i)); },
            [&](Index i) {
                if (steps[i].columns.size() == 0) return;
                take_away_r(r_in(R12_out[i % 2], i), rows_of(i), columns_of(i));
                if (steps[i].leaves.size() == 0) return;
                take_away_a(tile.col_block(steps[i].leaves), {0, m_}, of_a2(steps[i].leaves, i));
                part_left[part_of(i)].record(pipeline_.out);
            },
            {0, 2});
        stayed_ = sizes.stay;
    }

    /// Copies block b of Q₁, counted from the leaf's end, from the leaf to `place`, rounded if the places hold rounded
    /// columns.
    void keep(Index b, const Tiles::Passing& sizes, T* place) {
        const Index behind = tiles_.leaf - b * sizes.step;
        const auto Q = leaf_q(tiles_.leaf).col_block({std::max<Index>(0, behind - sizes.step), behind});
        if (sizes.rounded) return round_columns<T>(ctx_, arithmetic_, Q, 0, place);
        copy<T>(ctx_, Q, {place, m_, Q.cols});
    }

    /// Reads columns of Q, and rounds them if `rounded`.
    void bring_q(Range columns, bool rounded, T* place, MatrixView<T, D> pieces) {
        if (rounded) return bring_rounded(columns, place, pieces);
        A_.read(pipeline_.in, {0, m_}, columns, {place, m_, columns.size()});
    }
    /// Reads columns of Q in two pieces alternately. One piece is rounded while the other one comes.
    void bring_rounded(Range columns, T* place, MatrixView<T, D> pieces) {
        std::array<Event<D>, 2> read;
        const Index width = pieces.cols / 2;
        for (Index i = 0; i * width < columns.size(); ++i) {
            const Range piece{i * width, std::min(columns.size(), (i + 1) * width)};
            const auto Q = pieces.col_block({i % 2 * width, i % 2 * width + piece.size()});
            read[i % 2].precede(pipeline_.in);
            A_.read(pipeline_.in, {0, m_}, shifted(piece, columns.begin), Q);
            Context<D>& side = side_stream(pipeline_.in);
            round_columns<T>(side, arithmetic_, Q, piece.begin, place);
            read[i % 2].record(side);
            if (piece.end == columns.size()) wait_for(pipeline_.in, side);
        }
    }
    /// R₁₂ := QᵀA₂ and A₂ −= Q R₁₂ for k columns of Q in `place`, rounded or not.
    void project_from(bool rounded, T* place, Index k, MatrixView<T, D> A2, MatrixView<T, D> R12) {
        if (rounded) return block_gram_schmidt_step_rounded<T>(ctx_, place, k, A2, R12, arithmetic_);
        block_gram_schmidt_step<T>(ctx_, {place, m_, k}, A2, R12, arithmetic_, false);
    }

    // ---- Steps ------------------------------------------------------------------------------------------------------

    void bring(Range rows, Range columns, MatrixView<T, D> to) {
        const Span span(pipeline_.in, "A in", columns.begin);
        A_.read(pipeline_.in, rows, columns, to);
    }
    void take_away_a(MatrixView<const T, D> from, Range rows, Range columns) {
        const Span span(pipeline_.out, "A out", columns.begin);
        A_.write(pipeline_.out, from, rows, columns);
    }
    void take_away_r(MatrixView<const T, D> from, Range rows, Range columns, const char* name = "R out") {
        const Span span(pipeline_.out, name, columns.begin);
        R_.write(pipeline_.out, from, rows, columns);
    }
    void inner_product(MatrixView<const T, D> Q, MatrixView<const T, D> A2, MatrixView<T, D> R12, Index step) {
        const Span span(ctx_, "inner product", step);
        multiply_transposed<T>(ctx_, Q, A2, R12, false, arithmetic_);
    }
    void outer_product(MatrixView<const T, D> Q, MatrixView<const T, D> R12, MatrixView<T, D> A2, Index step) {
        const Span span(ctx_, "outer product", step);
        subtract_product<T>(ctx_, Q, R12, A2, arithmetic_);
    }
    /// Orders the next input after a leaf, if needed. Only a second orthogonalization used memory of the next input.
    /// The columns that went out are columns of Q, and none of them come next.
    void turn_behind_leaf() {
        if (tiles_.again) pipeline_.turn();
    }
    /// Brings Q of the leaf, which is on the device, if stages are not joined.
    void bring_leaf_again(Range left) {
        if (tiles_.schedule.joined_stages) return;
        const Span span(pipeline_.in, "Q in", left.begin);
        A_.read(pipeline_.in, {0, m_}, left, leaf_q(left.size()));
    }
    /// Scans columns of A that have come for the first time, and scales them: C := C D.
    void look_at(Range columns, MatrixView<T, D> C) {
        const Index slot = size_of(looked_at_);
        scan<T>(ctx_, C, takes_halves(arithmetic_) ? safe_exponent_of_halves : Scalar<T>::safe_exponent,
                exponents_.view().row_block(columns), scans_.view().row_block({slot, slot + 1}));
        looked_at_.push_back(columns);
        scale(columns, C);
    }
    void scale(Range columns, MatrixView<T, D> C) {
        scale_columns<T>(ctx_, exponents_.view().row_block(columns), -1, Part::All, C);
    }
    /// Evaluates the scans since the last call. Throws NonFiniteEntry if the plan checks for it. Waits, if there were
    /// any.
    void conclude_scans() {
        Index row = -1, col = n_;
        for (; concluded_ < size_of(looked_at_); ++concluded_) {
            const Scan found = read_scan(ctx_, scans_.view().row_block({concluded_, concluded_ + 1}));
            scaled_ = scaled_ || found.scaled;
            // tiles do not come in the order of their columns
            const Index first = looked_at_[concluded_].begin + found.bad_col;
            if (found.bad_row < 0 || first > col) continue;
            row = found.bad_row;
            col = first;
        }
        if (check_finite_ && row >= 0) throw NonFiniteEntry(row, col);
    }
    /// Ends a stage.
    void tell() {
        if (!tiles_.schedule.joined_stages) pipeline_.finish();
        conclude_scans();
        if (progress_) progress_();
    }
    /// Calls f. Breakdowns name a column of A.
    template <class F>
    void naming_columns(Range J, F f) {
        try {
            f();
        } catch (const NumericalBreakdown& breakdown) {
            throw NumericalBreakdown(std::string(breakdown.what()) + ", counted from column " + std::to_string(J.begin),
                                     J.begin + breakdown.column);
        }
    }
    static Range shifted(Range r, Index by) { return {r.begin + by, r.end + by}; }
    template <class Vector>
    static Index size_of(const Vector& steps) {
        return static_cast<Index>(steps.size());
    }
    static Index largest(const std::vector<Range>& parts) {
        Index size = 1;
        for (const Range& part : parts) size = std::max(size, part.size());
        return size;
    }

    Context<D>& ctx_;
    S& A_;
    SR& R_;
    const Tiles tiles_;
    const Arithmetic arithmetic_;
    const bool check_finite_;
    const std::function<void()> progress_;
    const Index m_, n_;
    Matrix<T, D> memory_;
    Matrix<int, D> exponents_;
    Matrix<Scan, D> scans_;
    std::vector<Range> looked_at_;  // columns of each scan
    Index concluded_ = 0;           // scans
    bool scaled_ = false;
    Event<D> all_but_last_left_;  // all parts of the leaf but the last
    Index stayed_ = 0;            // columns of the next leaf that are in their place already
    Pipeline<D> pipeline_;        // waits before the memory goes
};

}  // namespace quoin
