#pragma once

// Overlap of copies and work: the schedule of every out-of-core factorization.

#include "primitives.hpp"

namespace quoin {

/// Which of `come(i + 1)` and `compute(i)` is called first. The second one may block the caller.
enum class First { Come, Compute };

/// A context with its two contexts for moves, and the one schedule of all streamed work: step i computes while step i +
/// 1 moves in and step i − 1 moves out (Zhang and Wu 2021, Figures 7 to 10). In: D, whose stream moves in, or Disk,
/// whose thread reads (file_qr/run.hpp).
///
///     in       0 │ 1 │ 2 │ …             two buffers for input, used alternately
///     compute      │ 0 │ 1 │ 2 │ …       in place, then copies to the one output buffer:
///     out              │ 0 │ 1 │ …       so a buffer is free for the next move-in before the move-out ends
template <class D, class In = D>
class Pipeline {
public:
    explicit Pipeline(Context<D>& ctx) : Pipeline(ctx, copy_in_stream(ctx)) {}
    Pipeline(Context<D>& ctx, Context<In>& in) : ctx(ctx), in(in), out(copy_out_stream(ctx)) {}
    Pipeline(const Pipeline&) = delete;
    /// Waits. However the work ends, nothing moves in the caller's memory afterwards.
    ~Pipeline() {
        try {
            wait_for(ctx, in);
            finish();
        } catch (...) {
        }
    }

    /// Has later moves in wait for all moves out, and for all work that uses their memory.
    void turn() {
        finish_copies(out);
        wait_for(in, out);
        wait_for(in, ctx);
    }
    /// Waits until all enqueued work is done, slow memory included.
    void finish() {
        finish_copies(out);
        wait_for(ctx, out);
        ctx.wait();
    }

    /// Numbers of buffers, used alternately. `in` = 0: `come` and `compute` order their work themselves.
    struct Places {
        Index in, out;
    };

    /// Runs `steps` steps. `come(i)` enqueues on `in`, `compute(i)` and `stage(i)` on `ctx`, `leave(i)` on `out`.
    /// `stage` copies the data that `leave` takes away. Call `turn` before, if the first data to come were moved out,
    /// or their buffer used, since the last `turn`.
    template <class Come, class Compute, class Stage, class Leave>
    void run(Index steps, Come come, Compute compute, Stage stage, Leave leave, Places places = {2, 1},
             First first = First::Come) {
        if (steps == 0) return;
        Event<D> left[2];
        come(Index(0));
        end_of_part();
        for (Index i = 0; i < steps; ++i) {
            throw_if_stopped(ctx);
            const bool more = i + 1 < steps;
            if (places.in > 0) wait_for(ctx, in);
            // step i − 1 has been computed
            if (places.in > 0 && more) wait_for(in, ctx);
            if (first == First::Come && more) come(i + 1);
            end_of_part();
            compute(i);
            end_of_part();
            if (first == First::Compute && more) come(i + 1);
            end_of_part();
            left[(i + places.out) % 2].precede(ctx);
            stage(i);
            wait_for(out, ctx);
            leave(i);
            left[i % 2].record(out);
            end_of_part();
        }
    }
    /// Runs steps that move nothing out.
    template <class Come, class Compute>
    void run(Index steps, Come come, Compute compute, First first = First::Come) {
        run(
            steps, come, compute, [](Index) {}, [](Index) {}, {2, 1}, first);
    }

    Context<D>& ctx;
    Context<In>& in;
    Context<D>& out;
    bool asynchronous = true;  ///< `come`, `compute` and `leave` overlap; false: each one waits for the one before

private:
    void end_of_part() {
        if (asynchronous) return;
        finish_copies(out);
        wait_for(ctx, in);
        wait_for(ctx, out);
        wait_for(in, ctx);
        wait_for(out, ctx);
    }
};

}  // namespace quoin
