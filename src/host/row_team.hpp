#pragma once

// A panel whose rows several cores may share. Every core runs the recursion of block_reflector.hpp, has T and all sums
// over rows for itself, and writes its own rows.
//
//     ┌ leader ┐   the n rows at the top, and the rows below them down to a border of blocks
//     ├────────┤
//     │ core 1 │   blocks of panel_rows, counted from the bottom, where every column of the recursion ends
//     ├────────┤
//     │ core 2 │
//     └────────┘
//
// A sum adds the leader's rows, block by block from the top, and then the sums of the blocks below, one at a time. So
// the bits do not depend on the number of cores. A sum takes one exchange. The leader writes one sum of its rows, every
// other core one for each block. After a barrier every core adds all of them. With its sum the leader writes whether
// the context was asked to stop, so that all cores end at the same sum.

#include <atomic>
#include <thread>

#include "host/block_reflector.hpp"
#include "host/state.hpp"

namespace quoin::host {

/// Rows of a block.
template <class T>
inline constexpr Index panel_rows = block_rows<T> / 2;

/// A barrier at which threads spin. All of them must be running.
class SpinBarrier {
public:
    void wait(int threads) {
        const unsigned round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        constexpr int max_spins = 2000;  // a thread without a core to itself gives it up
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
            if (spins > max_spins) std::this_thread::yield();
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
    }

private:
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<unsigned> round_{0};
};

/// The shared state of the cores of an m×n panel: a barrier, and two sets of slots for sums. The sets are used
/// alternately, so that one barrier a sum is enough.
template <class T>
class RowTeam {
public:
    /// Cores that have rows.
    static Index max_cores(Index m, Index n) { return 1 + blocks_below(m, n); }
    /// Elements of `slots`.
    static Index size(Index m, Index n) { return 2 * max_cores(m, n) * slot_size(n); }

    /// `slots` may be null for one core.
    RowTeam(Context<Host>& ctx, Index m, Index n, T* slots)
        : state_(ctx.state()), blocks_(blocks_below(m, n)), slot_size_(slot_size(n)), slots_(slots) {}

    void wait(int cores) { barrier_.wait(cores); }

    /// The rows of core `core` of `cores`, at most `max_cores`. Core 0 is the leader.
    class Rows {
    public:
        static constexpr bool are_shared = true;

        Rows(RowTeam& team, int core, int cores) : team_(team), core_(core), cores_(cores) {
            const Index each = (team.blocks_ + cores) / cores;
            const auto from_bottom = [&](int others) { return std::min(team.blocks_, others * each); };
            lowest_ = from_bottom(cores - 1 - core);
            highest_ = from_bottom(cores - core);
            leaders_lowest_ = from_bottom(cores - 1);
        }
        bool leads() const { return core_ == 0; }
        Range own(Index h) const { return {leads() ? 0 : h - highest_ * panel_rows<T>, h - lowest_ * panel_rows<T>}; }
        void inner(Index m, Index n, Index h, const T* A, Index lda, const T* B, Index ldb, T* C, Index at_once,
                   T* work, Index others = 0) {
            const Index size = m * n;
            const auto add = [&](const T* part) {
                for (Index i = 0; i < size; ++i) C[i] += part[i];
            };
            const auto sum_block = [&](Index row, Index rows, T* to) {
                std::fill_n(to, size, T(0));
                inner_blocked(m, n, rows, A + row, lda, B + row, ldb, to, m, at_once);
            };
            if (leads()) {
                for (Index row = 0, end = own(h).end; row < end;) {
                    const Index rows = (h - row - 1) % panel_rows<T> + 1;
                    if (rows <= at_once) {  // one sum, which is added
                        kernels<T>().inner(m, n, rows, A + row, lda, B + row, ldb, C, m);
                    } else {
                        sum_block(row, rows, work);
                        add(work);
                    }
                    row += rows;
                }
            }
            if (cores_ == 1) {
                if (team_.state_.stopped()) throw Interrupted();
                return;
            }
            T* const slots = next_slots();
            const auto slot = [&](Index block) { return slots + (1 + block) * team_.slot_size_; };
            if (leads()) {
                std::copy_n(C, size + others, slots);
                if (team_.state_.stopped()) team_.stops_[turn_] = true;
            } else {
                for (Index block = lowest_; block < highest_; ++block) {
                    sum_block(h - (block + 1) * panel_rows<T>, panel_rows<T>, slot(block));
                }
            }
            team_.wait(cores_);
            if (team_.stops_[turn_]) throw Interrupted();
            if (!leads()) std::copy_n(slots, size + others, C);
            for (Index block = leaders_lowest_; block-- > 0;) add(slot(block));
        }
        Real<T> largest(Real<T> x) {
            if (cores_ == 1) return x;
            T* const slots = next_slots();
            slots[core_ * team_.slot_size_] = x;
            team_.wait(cores_);
            for (int i = 0; i < cores_; ++i) x = std::max(x, real_part(slots[i * team_.slot_size_]));
            return x;
        }

    private:
        T* next_slots() {
            turn_ = 1 - turn_;
            return team_.slots_ + turn_ * (1 + team_.blocks_) * team_.slot_size_;
        }

        RowTeam& team_;
        int core_, cores_, turn_ = 0;
        Index lowest_, highest_, leaders_lowest_;  // blocks, counted from the bottom
    };

private:
    static Index blocks_below(Index m, Index n) { return (m - n) / panel_rows<T>; }
    /// Returns the elements of a slot, in whole cache lines. It holds V₁ᵀV₂ of a recursion's two halves, or a
    /// reflector's products and the numbers that the leader adds to them.
    static Index slot_size(Index n) { return (std::max<Index>(n * n / 4, 32) + 15) / 16 * 16; }

    const Context<Host>::State& state_;
    const Index blocks_, slot_size_;
    T* const slots_;
    bool stops_[2] = {};  // written once: what all cores read stays in their caches
    SpinBarrier barrier_;
};

/// Elements that a core needs for its part of a panel of n columns: work and T.
inline Index panel_work(Index n) { return factor_work(n) + n * n; }

/// Factors A = H R by `cores` cores; every one calls it with its own number `core`. Returns on all of them without the
/// result if the context was asked to stop.
template <class T>
void factor_rows(RowTeam<T>& team, int core, int cores, MatrixView<T> A, MatrixView<T> Tf, T* buffer) {
    if (core > 0) Tf = {buffer + factor_work(A.cols), A.cols, A.cols};
    if (team.max_cores(A.rows, A.cols) == 1) {
        factor_leaf_block(A.rows, A.cols, A.data, A.ld, Tf.data, Tf.ld, buffer);
        return;
    }
    try {
        factor_leaf_block(A.rows, A.cols, A.data, A.ld, Tf.data, Tf.ld, buffer,
                          typename RowTeam<T>::Rows(team, core, cores));
    } catch (const Interrupted&) {
        // the caller, outside of the threads' region, throws it
    }
}

}  // namespace quoin::host
