#pragma once

// Division of work into tasks by its shape alone, and their run on a team of threads.

#include <omp.h>

#include <vector>

#include "host/block_reflector.hpp"
#include "host/state.hpp"
#include "host/tuning.hpp"

namespace quoin::host {

/// Columns of C that one task updates: a multiple of every kernel's tile, so that the tasks' borders are the tiles'
/// borders, and the same sums are formed however the tasks are shared out.
inline constexpr Index tile_cols = 48, min_tile_cols = 24;
static_assert(min_tile_cols % 6 == 0 && min_tile_cols % 8 == 0 && tile_cols % min_tile_cols == 0);

/// Whether `fork` made the calling thread. OpenMP's other threads stayed in the parent process, and GCC's OpenMP would
/// wait for them for ever.
bool forked();

/// Returns OpenMP's number of threads. If it is the number of cores, as when nobody chose it, returns at most `quota`,
/// rounded up.
int default_threads(double quota);
/// Returns the number of threads of a context that asks for none: `quota` is the CPU quota of the process's control
/// groups, unless OMP_NUM_THREADS is set.
int default_threads();

/// The threads that share the tasks of a primitive, and whether the remaining tasks are to be dropped.
class Team {
public:
    Team(Context<Host>& ctx, int threads) : state_(&ctx.state()), threads_(threads) {}
    operator int() const { return threads_; }
    /// Whether the context was asked to stop. A long task checks this while it runs.
    bool stopped() const { return state_->stopped(); }
    /// Throws Interrupted if the context was asked to stop. Called after the tasks; some of them may have been dropped.
    void throw_if_stopped() const {
        if (stopped()) throw Interrupted();
    }

private:
    const Context<Host>::State* state_;
    int threads_;
};

/// Returns all threads for `flops` on `elements` elements in memory if they save more time than waking them costs, else
/// one. An element that is moved counts as ten flops. Never returns another number, because GCC's OpenMP ends threads
/// and starts them again whenever the size of the team changes: 14 threads in V, tau and R of 1383×83 by 16 threads.
inline Team team(Context<Host>& ctx, double flops, Index elements = 0) {
    const int all = ctx.threads();
    const double work = std::max(flops, 10.0 * static_cast<double>(elements));
    return {ctx, forked() || !Tuning<Host>::sharing_pays(work, all) ? 1 : all};
}

// One thread needs no parallel region, which costs OpenMP a system call even so: 0.3 to 0.5 us of the 3 us that the
// smallest matrices take.

/// Calls f(i) for i in [0, count). Each thread takes the next i as soon as it is free. Throws Interrupted if the
/// context was asked to stop; some calls were left out then.
template <class F>
void for_tasks(const Team& team, Index count, F f) {
    const int threads = team;
    const auto task = [&](Index i) {
        if (!team.stopped()) f(i);
    };
    if (threads == 1) {
        for (Index i = 0; i < count; ++i) task(i);
    } else {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
        for (Index i = 0; i < count; ++i) task(i);
    }
    team.throw_if_stopped();
}
/// Calls f(i, j) for i in [0, rows), j in [0, cols).
template <class F>
void for_tasks(const Team& team, Index rows, Index cols, F f) {
    for_tasks(team, rows * cols, [&](Index t) { f(t / cols, t % cols); });
}
/// Calls f(i) for i in [0, count) as `for_tasks` does, but each thread takes one run of consecutive i.
template <class F>
void for_parts(const Team& team, Index count, F f) {
    const int threads = team;
    const auto task = [&](Index i) {
        if (!team.stopped()) f(i);
    };
    if (threads == 1) {
        for (Index i = 0; i < count; ++i) task(i);
    } else {
#pragma omp parallel for schedule(static) num_threads(threads)
        for (Index i = 0; i < count; ++i) task(i);
    }
    team.throw_if_stopped();
}
template <class F>
void for_parts(const Team& team, Index rows, Index cols, F f) {
    for_parts(team, rows * cols, [&](Index t) { f(t / cols, t % cols); });
}

/// Workspace of each thread of one parallel region, or of for_tasks with as many threads.
template <class T>
struct ThreadBuffers {
    ThreadBuffers(Arena::Frame& frame, int threads_, Index size_)
        : size((size_ + 15) / 16 * 16), threads(threads_), base(frame.take<T>(threads * size)) {}
    /// Returns the calling thread's part. If `threads` is 1, the caller may be any thread of another team.
    T* mine() const { return threads == 1 ? base : base + omp_get_thread_num() * size; }
    Index size;
    int threads;
    T* base;
};

/// The rows of a tall matrix, cut for sums over rows: at most `row_chunks` chunks, whatever the number of threads, so
/// that each sum has one order.
struct RowChunks {
    RowChunks(Index rows_, Index least) : rows(rows_) {
        chunk_rows = Tuning<Host>::rows_of_chunk(rows, least);
        count = std::max<Index>(1, (rows + chunk_rows - 1) / chunk_rows);
    }
    Range operator[](Index c) const { return {c * chunk_rows, std::min(rows, (c + 1) * chunk_rows)}; }
    Index rows, chunk_rows, count;
};
/// Returns f(chunk) of each chunk of rows, in the order of the chunks. The threads share the chunks.
template <class Value, class F>
std::vector<Value> over_chunks(Context<Host>& ctx, const RowChunks& chunks, double flops, F f) {
    std::vector<Value> values(chunks.count);
    for_tasks(team(ctx, flops), chunks.count, [&](Index c) { values[c] = f(chunks[c]); });
    return values;
}
/// Returns chunks for products VᵀC of n columns of V. A chunk has at least n rows, so that a partial sum is no larger
/// than its rows of C.
inline RowChunks chunks_of_product(Index rows, Index n) { return {rows, std::max(Tuning<Host>::chunk_rows, n)}; }

/// C(m×n, ldc) := the sum over c of parts + c·m·n, element by element in pairs of neighbours, pairs of those, and so
/// on. The parts are overwritten.
template <class T>
void sum_parts(Context<Host>& ctx, Index m, Index n, Index count, T* parts, T* C, Index ldc) {
    for_parts(team(ctx, 0, m * n * count), n, [&](Index j) {
        for (Index step = 1; step < count; step *= 2) {
            for (Index c = 0; c + step < count; c += 2 * step) {
                T* const left = parts + (c * n + j) * m;
                const T* const right = left + step * m * n;
                for (Index i = 0; i < m; ++i) left[i] += right[i];
            }
        }
        std::copy_n(parts + j * m, m, C + j * ldc);
    });
}

}  // namespace quoin::host
