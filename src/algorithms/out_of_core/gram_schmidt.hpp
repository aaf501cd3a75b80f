#pragma once

// Classical Gram-Schmidt QR of a matrix in slow memory (Zhang and Wu 2021), A = QR, Q in place of A, by recursion or by blocks:
//
//     [A₁ A₂] = [Q₁ Q₂] [R₁₁ R₁₂; 0 R₂₂]:   A₁ = Q₁R₁₁,  R₁₂ = Q₁ᵀA₂ (inner product),  A₂ −= Q₁R₁₂ (outer product),  A₂ = Q₂R₂₂
//
//   recursion   A₁ and A₂ are halves, and each is factored by the same steps. Columns of A₂ stay, as many as there is room for,
//               while Q₁ passes; below, where Q₁ is what has just been factored, it stays, and columns of A₂ pass. Either way
//               one pass serves both products: their Figures 3 and 5 take two, of rows of both, and on a bus rows of a matrix
//               travel at less than half the rate of columns.
//   blocking    A₁ is one block, A₂ all that is right of it; Q₁ stays, and columns of A₂ pass twice (Figures 4 and 6).

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/out_of_core/orthonormal_columns.hpp"
#include "algorithms/out_of_core/pipeline.hpp"
#include "algorithms/out_of_core/slow.hpp"
#include "algorithms/out_of_core/tiles.hpp"

namespace quoin {

template <class T, class D, Slow<T, D> S, Slow<T, D> SR>
class OutOfCoreGramSchmidt {
public:
    /// Of R (n×n) the upper triangle is written, and below it zeros next to the diagonal. `progress()` is called after every stage.
    OutOfCoreGramSchmidt(Context<D>& ctx, S& A, SR& R, const OutOfCorePlan& plan, std::function<void()> progress = {})
        : ctx_(ctx),
          A_(A),
          R_(R),
          tiles_(tiles_of(plan)),
          arithmetic_(plan.arithmetic),
          progress_(std::move(progress)),
          m_(A.rows()),
          n_(A.cols()),
          memory_(ctx, tiles_.elements, 1),
          pipeline_(ctx) {}
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

private:
    /// Hands out fast memory from the beginning, or from behind Q and R of the leaf.
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

    void recurse(Range J) {
        if (J.size() <= tiles_.leaf) return factor_leaf(J);
        const Range left{J.begin, tiles_.middle(J)}, right{left.end, J.end};
        recurse(left);
        if (left.size() <= tiles_.leaf) {
            update_once(left, right);
        } else {
            update_by_passing_q(left, right);
        }
        tell();
        recurse(right);
    }

    // ---- A leaf: A_J = Q_J R_JJ -------------------------------------------------------------------------------------------

    void factor_leaf(Range J) {
        const Index w = J.size();
        const auto Q = leaf_q(w), R = leaf_r(w);
        // R of the last leaf has left
        wait_for(ctx_, pipeline_.out);
        set_zero(ctx_, R);
        // a first pass leaves to the second what it does not need itself
        OrthonormalColumns<T, D> basis(ctx_, Q, R, arithmetic_,
                                       !tiles_.again  ? Reorthogonalization::Off
                                       : J.begin == 0 ? Reorthogonalization::Always
                                                      : Reorthogonalization::Selective);
        const std::vector<Range> parts = Tiles::growing({0, w}, tiles_.arriving());
        const bool again = tiles_.again && J.begin > 0;
        naming_columns(J, [&] {
            pipeline_.run(
                size_of(parts),
                [&](Index i) {
                    const Span span(pipeline_.in, "panel in", J.begin + parts[i].begin);
                    A_.move_in(pipeline_.in, {0, m_}, shifted(parts[i], J.begin), Q.col_block(parts[i]));
                },
                [&](Index i) {
                    const Span span(ctx_, "panel", J.begin + parts[i].begin);
                    basis.append(parts[i]);
                },
                [](Index) {},
                [&](Index i) {
                    if (!again) take_away_q(J, parts[i]);
                });
        });
        if (again) {
            project_again(J);
            for (const Range& part : parts) take_away_q(J, part);
        }
        wait_for(pipeline_.out, ctx_);
        // what lies below these blocks of columns is zero there already
        for (const Range& part : parts) {
            const Range rows{0, part.end};
            take_away_r(R.block(rows, part), shifted(rows, J.begin), shifted(part, J.begin));
        }
        tell();
    }

    void take_away_q(Range J, Range part) {
        const Span span(pipeline_.out, "panel out", J.begin + part.begin);
        A_.move_out(pipeline_.out, leaf_q(J.size()).col_block(part), {0, m_}, shifted(part, J.begin));
    }

    /// Q_J − Q₀Q₀ᵀQ_J = Q' R' for the Q₀ before it, block by block of Q₀: A_J = Q₀(R₀J + S R_JJ) + Q'(R' R_JJ).
    void project_again(Range J) {
        const Index w = J.size();
        const auto W = leaf_q(w), R = leaf_r(w);
        Places places = beside_leaf();
        const auto R2 = places.take(w, w);
        const std::vector<Range> blocks = Tiles::growing({0, J.begin}, tiles_.coming_again(w));
        const Index most = largest(blocks);
        const std::array<MatrixView<T, D>, 2> Q0{places.take(m_, most), places.take(m_, most)},
            R0{places.take(most, w), places.take(most, w)};
        const auto S_memory = places.take(most, w), R0_out = places.take(most, w);
        const auto top = [](MatrixView<T, D> place, Index rows) { return place.row_block({0, rows}); };
        pipeline_.run(
            size_of(blocks),
            [&](Index i) {
                const Span span(pipeline_.in, "Q in", blocks[i].begin);
                A_.move_in(pipeline_.in, {0, m_}, blocks[i], Q0[i % 2].col_block({0, blocks[i].size()}));
                R_.move_in(pipeline_.in, blocks[i], J, top(R0[i % 2], blocks[i].size()));
            },
            [&](Index i) {
                const Span span(ctx_, "reorthogonalization", blocks[i].begin);
                const Index b = blocks[i].size();
                const auto Q = Q0[i % 2].col_block({0, b}), minus_s = top(S_memory, b);
                project_away<T>(ctx_, Q, W, minus_s, arithmetic_, true);
                negate<T>(ctx_, minus_s);
                subtract_product<T>(ctx_, minus_s, R, top(R0[i % 2], b), arithmetic_);
            },
            [&](Index i) {
                const Index b = blocks[i].size();
                copy<T>(ctx_, top(R0[i % 2], b), top(R0_out, b));
            },
            [&](Index i) {
                const Span span(pipeline_.out, "R out", blocks[i].begin);
                R_.move_out(pipeline_.out, top(R0_out, blocks[i].size()), blocks[i], J);
            });
        set_zero(ctx_, R2);
        naming_columns(J, [&] {
            OrthonormalColumns<T, D>(ctx_, W, R2, arithmetic_, Reorthogonalization::Selective).append({0, w});
        });
        multiply_upper<T>(ctx_, R2, R, R);
        wait_for(pipeline_.out, ctx_);
    }

    // ---- R₁₂ = Q₁ᵀA₂,  A₂ −= Q₁R₁₂ ---------------------------------------------------------------------------------------

    /// Q₁ is the leaf, and columns of A₂ pass once.
    void update_once(Range left, Range right) {
        const Index s = left.size();
        const auto Q = leaf_q(s);
        const std::vector<Range> parts = Tiles::growing(right, tiles_.passing(s));
        const Index most = largest(parts);
        Places places = beside_leaf();
        const std::array<MatrixView<T, D>, 2> A2{places.take(m_, most), places.take(m_, most)};
        const auto A2_out = places.take(m_, most), R12 = places.take(s, most), R12_out = places.take(s, most);
        const auto cut = [&](MatrixView<T, D> place, Index i) { return place.col_block({0, parts[i].size()}); };
        pipeline_.run(
            size_of(parts),
            [&](Index i) {
                bring({0, m_}, parts[i], cut(A2[i % 2], i));
            },
            [&](Index i) {
                const Span span(ctx_, "projection", parts[i].begin);
                project_away<T>(ctx_, Q, cut(A2[i % 2], i), cut(R12, i), arithmetic_, false);
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

    /// Q₁ is the leaf, and columns of A₂ pass twice.
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
                for (const Range& part : Tiles::growing(tile, sizes.step)) steps.push_back({part, j, last});
            }
        }
        const auto cut = [&](MatrixView<T, D> place, Index i) { return place.col_block({0, steps[i].columns.size()}); };
        const auto r_of = [&](Index i) { return R12.col_block(shifted(steps[i].columns, -steps[i].first)); };
        pipeline_.run(
            size_of(steps),
            [&](Index i) {
                bring({0, m_}, steps[i].columns, cut(A2[i % 2], i));
            },
            [&](Index i) {
                if (steps[i].last) return outer_product(Q, r_of(i), cut(A2[i % 2], i), steps[i].columns.begin);
                // the tile before has left
                if (steps[i].columns.begin == steps[i].first) wait_for(ctx_, pipeline_.out);
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

    /// Some columns of A₂ stay, and columns of Q₁ pass: A₂ := A₂ − Q_b(Q_bᵀA₂) for one block of them after the other, which is the
    /// order of modified Gram-Schmidt. The first block meets A₂ part by part as it arrives, and the last one as it leaves.
    void update_by_passing_q(Range left, Range right) {
        const Index s = left.size();
        const Tiles::Tile sizes = tiles_.passing_q(s, right.size());
        Places places = everything();
        const auto tile_memory = places.take(m_, sizes.columns);
        const std::array<MatrixView<T, D>, 2> Q_memory{places.take(m_, sizes.step), places.take(m_, sizes.step)};
        const auto R_memory = places.take(sizes.step, sizes.columns), R_out = places.take(sizes.step, sizes.columns);
        struct Step {
            Index block;  // of Q₁
            Range part;   // of the tile's columns
            bool arrives, leaves;
        };
        const Index blocks = (s + sizes.step - 1) / sizes.step;
        const auto block_of = [&](Index b) {
            return Range{left.begin + b * sizes.step, std::min(left.end, left.begin + (b + 1) * sizes.step)};
        };
        for (Index j = right.begin; j < right.end; j += sizes.columns) {
            const Range tile{j, std::min(right.end, j + sizes.columns)};
            const Index parts_of_tile = std::max<Index>(1, (tile.size() + 7) / 8);
            std::vector<Step> steps;
            for (Index b = 0; b < blocks; ++b) {
                const bool first = b == 0, last = b + 1 == blocks;
                const Index each = first || last ? parts_of_tile : tile.size();
                for (Index c = 0; c < tile.size(); c += each) {
                    steps.push_back({b, {c, std::min(tile.size(), c + each)}, first, last});
                }
            }
            const auto Q = [&](Index i) {
                return Q_memory[steps[i].block % 2].col_block({0, block_of(steps[i].block).size()});
            };
            const auto R_in = [&](MatrixView<T, D> memory, Index i) {
                return memory.block({0, block_of(steps[i].block).size()}, steps[i].part);
            };
            const auto columns = [&](Index i) { return shifted(steps[i].part, tile.begin); };
            pipeline_.run(
                size_of(steps),
                [&](Index i) {
                    if (i == 0 || steps[i].block != steps[i - 1].block) {
                        const Span span(pipeline_.in, "Q in", block_of(steps[i].block).begin);
                        A_.move_in(pipeline_.in, {0, m_}, block_of(steps[i].block), Q(i));
                    }
                    if (steps[i].arrives) bring({0, m_}, columns(i), tile_memory.col_block(steps[i].part));
                },
                [&](Index i) {
                    const Span span(ctx_, "projection", columns(i).begin);
                    project_away<T>(ctx_, Q(i), tile_memory.col_block(steps[i].part), R_in(R_memory, i), arithmetic_,
                                    false);
                },
                [&](Index i) { copy<T>(ctx_, R_in(R_memory, i), R_in(R_out, i)); },
                [&](Index i) {
                    if (steps[i].leaves) take_away_a(tile_memory.col_block(steps[i].part), {0, m_}, columns(i));
                    take_away_r(R_in(R_out, i), block_of(steps[i].block), columns(i));
                });
        }
    }

    // ---- Steps ------------------------------------------------------------------------------------------------------------

    void bring(Range rows, Range columns, MatrixView<T, D> to) {
        const Span span(pipeline_.in, "A in", columns.begin);
        A_.move_in(pipeline_.in, rows, columns, to);
    }
    void take_away_a(MatrixView<const T, D> from, Range rows, Range columns) {
        const Span span(pipeline_.out, "A out", columns.begin);
        A_.move_out(pipeline_.out, from, rows, columns);
    }
    void take_away_r(MatrixView<const T, D> from, Range rows, Range columns) {
        const Span span(pipeline_.out, "R out", columns.begin);
        R_.move_out(pipeline_.out, from, rows, columns);
    }
    void inner_product(MatrixView<const T, D> Q, MatrixView<const T, D> A2, MatrixView<T, D> R12, Index step) {
        const Span span(ctx_, "inner product", step);
        multiply_transposed<T>(ctx_, Q, A2, R12, false, arithmetic_);
    }
    void outer_product(MatrixView<const T, D> Q, MatrixView<const T, D> R12, MatrixView<T, D> A2, Index step) {
        const Span span(ctx_, "outer product", step);
        subtract_product<T>(ctx_, Q, R12, A2, arithmetic_);
    }
    void tell() const {
        if (progress_) progress_();
    }
    /// Breakdowns name a column of A.
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
    const std::function<void()> progress_;
    const Index m_, n_;
    Matrix<T, D> memory_;
    Pipeline<D> pipeline_;  // waits before the memory goes
};

}  // namespace quoin
