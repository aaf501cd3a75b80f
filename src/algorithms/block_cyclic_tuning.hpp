#pragma once

// The sizes of block-cyclic QR on GPUs, as those of src/cuda/tuning.hpp: first choices by counting.

#include "quoin/matrix.hpp"

namespace quoin {

struct CyclicTuning {
    /// Columns of a block where nobody asks. Of 16 384² on 4 GPUs the panels, their messages and the updates of the next panels follow each
    /// other, and take the least in blocks of 512.
    static constexpr Index block = 512;
    /// Columns of a panel with all its rows on one of several GPUs: a block, up to this.
    static constexpr Index whole_width = 1024;
    /// Rows of a matrix on several process rows up to which the rows of a panel go to one GPU, which factors it as one with all rows does:
    /// 512 columns of 16 384 rows of f32 take about 0.1 ms over NVLink, and 1 ms to factor. GPUs share the work on taller ones.
    static constexpr Index most_gathered_rows = Index(1) << 17;
    /// Columns of a panel that GPUs of several process rows share: its n×n steps are one kernel each.
    static constexpr Index shared_width = 128;
    /// Columns of half an update from which on the half comes before the next panel is received: less keeps the multiprocessors busy for a
    /// shorter time than the panel takes.
    static constexpr Index least_half = 1024;
    /// Columns of the rest of an update, on the rank that factors the next panel alone, up to which it waits for the panel. The update takes
    /// up to three times as long then, by 95 TFLOP/s and 2 ms for a panel of 32 768 × 512.
    static constexpr Index most_behind_a_panel = 8192;
};

}  // namespace quoin
