#pragma once

// Sizes of block-cyclic QR on GPUs, like the sizes in src/cuda/tuning.hpp. They are first choices from counts.

#include "quoin/matrix.hpp"

namespace quoin {

struct CyclicTuning {
    /// Default columns of a block. For 16 384² on 4 GPUs the panels, their messages and the updates of the next panels
    /// follow each other, and blocks of 512 take the least time.
    static constexpr Index block = 512;
    /// Columns of a panel with all its rows on one of several GPUs: a block, up to this.
    static constexpr Index whole_width = 1024;
    /// If a matrix on several process rows has at most this many rows, the rows of a panel go to one GPU, which factors
    /// it as if it had all rows: 512 columns of 16 384 rows of f32 take about 0.1 ms over NVLink, and 1 ms to factor.
    /// GPUs share the work on taller matrices.
    static constexpr Index max_gathered_rows = Index(1) << 17;
    /// Columns of a panel that GPUs of several process rows share: its n×n steps are one kernel each.
    static constexpr Index shared_width = 128;
    /// If half an update has at least this many columns, it comes before the next panel is received. A smaller half
    /// would keep the multiprocessors busy for a shorter time than the panel takes.
    static constexpr Index min_half = 1024;
    /// If the rest of an update has at most this many columns, it waits for the next panel on the rank that factors
    /// that panel alone. The update takes up to three times as long then, by 95 TFLOP/s and 2 ms for a panel of 32 768
    /// × 512.
    static constexpr Index max_behind_a_panel = 8192;
};

}  // namespace quoin
