#pragma once

// The state of a context of the host: workspace and threads.

#include <atomic>
#include <cstddef>
#include <vector>

#include "quoin/context.hpp"

namespace quoin {

/// Workspace of one context. Frames nest; memory taken in a frame returns to the arena at the frame's end. What one
/// call needed beyond the arena's size becomes part of it before the next call.
class Arena {
public:
    Arena() = default;
    Arena(const Arena&) = delete;
    ~Arena();

    class Frame {
    public:
        explicit Frame(Arena& arena) : arena_(arena), used_(arena.used_), extra_(arena.extra_.size()) {}
        Frame(const Frame&) = delete;
        ~Frame() { arena_.release(used_, extra_); }
        /// `count` uninitialised elements, aligned to 64 bytes, valid until the frame ends.
        template <class T>
        T* take(Index count) {
            return static_cast<T*>(arena_.take(static_cast<std::size_t>(count) * sizeof(T)));
        }

    private:
        Arena& arena_;
        std::size_t used_, extra_;
    };

private:
    void* take(std::size_t bytes);
    void release(std::size_t used, std::size_t extra);

    char* base_ = nullptr;
    std::size_t size_ = 0, used_ = 0, wanted_ = 0;
    std::vector<void*> extra_;  // taken beyond `size_`
};

struct Context<Host>::State {
    Arena arena;
    std::atomic<double> flops{0};
    std::atomic<bool> stop{false};
    const State* part_of = nullptr;  ///< of the context whose work this one does a part of
    Trace* trace = nullptr;
    Matrix<std::byte> staging;  ///< buffer for a panel while it is factored outside of its matrix

    bool stopped() const { return stop.load(std::memory_order_relaxed) || (part_of && part_of->stopped()); }
    void add_flops(double count) { flops.fetch_add(count, std::memory_order_relaxed); }
};

}  // namespace quoin
