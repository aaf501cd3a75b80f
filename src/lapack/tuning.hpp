#pragma once

#include "quoin/matrix.hpp"

namespace quoin::lapack {

/// Returns the columns of a panel for k given reflectors of m rows. If they are tall, it is all of them, so that V is
/// read once for T and once for Q. Wider ones cost mk² flops for T: ?orgqr of 8192×512 (f64) takes 0.66 of LAPACK's
/// time by 64 columns, and 1.4 by 512, on one core of an AMD EPYC 9004; 20 000×300 0.57 and 0.65.
inline Index panel_width(Index m, Index k) {
    if (m >= 16 * k && k <= 128) return std::max<Index>(1, k);
    return k < 192 ? 32 : 64;
}

/// Columns of `work` that a query recommends: a panel of the next LAPACK.
inline constexpr Index work_columns = 32;
/// Elements of T in the reference's ?ormqr and ?ormrz: 64 + 1 rows of 64 columns.
inline constexpr Index t_size = 65 * 64;

/// Whether Quoin is faster. If not, the system's LAPACK serves the call.
inline bool factor_pays(Index m, Index n) { return std::min(m, n) >= 16 && 1.0 * m * n * std::min(m, n) >= 2e6; }
inline bool form_pays(Index m, Index n, Index k) { return k >= 16 && 1.0 * m * n * k >= 2e6; }
/// ?orhr_col: 1000×64 in 0.07 against 0.05 ms and 500×400 in 1.1 against 1.0, 2000×192 in 0.46 against 0.58 (as above).
inline bool reconstruct_pays(Index m, Index n) {
    const double flops = 1.0 * m * n * n;
    return (m >= 8 * n && flops >= 1e7) || flops >= 3e8;
}
/// Whether ?geqr pays; the system's ?geqr has one reflector a panel.
inline bool geqr_pays(Index m, Index n) { return std::min(m, n) >= 8 && 1.0 * m * n * std::min(m, n) >= 2e5; }
/// Whether products with C pay. With a few columns of C, either library moves V through memory once.
inline bool apply_pays(Index rows, Index cols, Index k) {
    if (cols < 8) return k >= 48 && 1.0 * rows * k >= 1e5;
    return k >= 16 && 1.0 * rows * cols * k >= 2e6;
}

/// Whether ?gelqf pays, and ?orglq with k = min(m, n). The reference's reflectors of rows have a stride. f64, one core
/// of an AMD EPYC (AVX2), ms against OpenBLAS 0.3.21, with the copies of the transposes: 16×64 0.005|0.010, 300×300
/// 1.1|1.6, 300×3000 13|28, 5000×32 0.69|0.73; ?orglq of 32×32 0.009|0.010, of 300×3000 14|27.
inline bool lq_pays(Index m, Index n, Index k) { return k >= 16 && 1.0 * m * n * k >= 3e4; }
/// Whether ?ormlq pays, as above. V is copied. C has 500 columns: 500×500 6.9|6.5; 64 columns: 100×200 0.13|0.15; 8
/// columns: 500×500 0.64|0.54, 64×1000 0.11|0.23.
inline bool lq_apply_pays(Index order, Index cols, Index k) { return apply_pays(order, cols, k) && order >= 2 * k; }
/// Whether ?geqp3 takes its pivots from R, and then factors A P. Greedy panels take as long as the reference's. f64,
/// one core as above, ms: 300×100 0.44|0.40, 600×100 0.67|0.76, 20 000×100 16|37, 2000×500 47|46, 3000×500 61|67,
/// 3000×1000 290|370, 8000×1000 760|1670.
inline bool pivots_of_r_pay(Index m, Index n) { return n > 0 && m >= (n < 1000 ? 5 : 3) * n; }

/// Whether ?geqp3rk of at most k columns pays. The reference has panels of one column, since its ilaenv knows no block
/// size for ?geqp3rk.
inline bool truncated_pays(Index m, Index n, Index k) { return form_pays(m, n, k); }
/// Whether ?geqp3rk of at most k columns takes its pivots from R. R costs as much as half of A's greedy panels, and a
/// tolerance may stop these at the first column.
inline bool truncated_from_r_pays(Index m, Index n, Index k, bool has_tolerance) {
    return pivots_of_r_pay(m, n) && !has_tolerance && 2 * k >= n;
}
/// Whether ?tzrzf with m rows of l entries beyond the triangle pays, and ?ormrz with k of them. Both copy the vectors,
/// and ?tzrzf its triangle, too: with few entries a row that takes longer than the reference's rows with a stride.
inline bool trapezoid_pays(Index m, Index l) { return m >= 16 && 10 * l >= m && 1.0 * m * m * l >= 2.5e4; }
inline bool trapezoid_apply_pays(Index l, Index cols, Index k) {
    return k >= 16 && 4 * l >= k && 1.0 * k * l * (cols + 8) >= 3e4;
}

/// From this number of rows on, the cores share a stacked leaf if C has few columns; and the least rows that one core
/// takes.
inline constexpr Index tall_leaf_rows = 8192, tall_leaf_chunk = 2048;

/// Whether ?copy by several threads pays: waking them is a small part of it even if they sleep
/// (OMP_WAIT_POLICY=passive): 32 768 numbers of f64 in 25 against 20 µs and, with a stride of 100 on one side, in 42
/// against 51; 110 592 in 50 against 76 and in 62 against 146 (as above).
template <class T>
bool copy_pays(Index n, Index incx, Index incy) {
    return incx == 1 && incy == 1 ? n >= Index(1 << 19) / Index(sizeof(T)) : n >= 1 << 16;
}
/// Numbers that a strided ?copy fetches ahead.
inline constexpr Index copy_ahead = 64;

/// Panels that the caller chose: narrow ones are the system's.
inline bool panels_pay(Index nb) { return nb >= 16; }

}  // namespace quoin::lapack
