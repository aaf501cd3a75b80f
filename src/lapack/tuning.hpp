#pragma once

#include "quoin/matrix.hpp"

namespace quoin::lapack {

/// Columns of a panel of k given reflectors of m rows: all of them where they are tall, so that V is read once for T and
/// once for Q. Wider ones cost mk² flops for T: ?orgqr of 8192×512 (f64) takes 0.66 of LAPACK's time by 64 columns, and 1.4
/// by 512, on one core of an AMD EPYC 9004; 20 000×300 0.57 and 0.65.
inline Index panel_width(Index m, Index k) {
    if (m >= 16 * k && k <= 128) return std::max<Index>(1, k);
    return k < 192 ? 32 : 64;
}

/// Columns that a query of `work` recommends: a panel of the LAPACK that is passed on to.
inline constexpr Index work_columns = 32;

/// Whether Quoin is the faster one: below, the system's LAPACK serves.
inline bool factor_pays(Index m, Index n) { return std::min(m, n) >= 16 && 1.0 * m * n * std::min(m, n) >= 2e6; }
inline bool form_pays(Index m, Index n, Index k) { return k >= 16 && 1.0 * m * n * k >= 2e6; }
/// ?orhr_col: 1000×64 in 0.07 against 0.05 ms and 500×400 in 1.1 against 1.0, 2000×192 in 0.46 against 0.58 (as above).
inline bool reconstruct_pays(Index m, Index n) {
    const double flops = 1.0 * m * n * n;
    return (m >= 8 * n && flops >= 1e7) || flops >= 3e8;
}
/// ?geqr, where the system's has one reflector a panel.
inline bool geqr_pays(Index m, Index n) { return std::min(m, n) >= 8 && 1.0 * m * n * std::min(m, n) >= 2e5; }
/// A few columns of C move V through memory once, whoever multiplies.
inline bool apply_pays(Index rows, Index cols, Index k) {
    if (cols < 8) return k >= 48 && 1.0 * rows * k >= 1e5;
    return k >= 16 && 1.0 * rows * cols * k >= 2e6;
}

/// Rows of a stacked leaf that are shared out among the cores where C has few columns, and the least that one core takes.
inline constexpr Index tall_leaf_rows = 8192, tall_leaf_chunk = 2048;

/// ?copy, where waking the threads is little of it also if they sleep (OMP_WAIT_POLICY=passive): 32 768 numbers of f64 in 25
/// against 20 µs and, with a stride of 100 on one side, in 42 against 51; 110 592 in 50 against 76 and in 62 against 146 (as
/// above).
template <class T>
bool copy_pays(Index n, Index incx, Index incy) {
    return incx == 1 && incy == 1 ? n >= Index(1 << 19) / Index(sizeof(T)) : n >= 1 << 16;
}
/// Numbers that a strided ?copy fetches ahead.
inline constexpr Index copy_ahead = 64;

/// Panels that the caller chose: narrow ones are the system's.
inline bool panels_pay(Index nb) { return nb >= 16; }

}  // namespace quoin::lapack
