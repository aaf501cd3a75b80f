// The frames of the kernels that kernel_choice.hpp chooses, by their sizes in products/, panels/ and cholesky/.

#include "primitives/kernel_workspace.hpp"

#include <algorithm>

#include "cuda/kernel_choice.hpp"
#include "cuda/tuning.hpp"
#include "primitives/sketch.hpp"
#include "quoin/cuda.hpp"

namespace quoin {

namespace {

using namespace cuda;
using Tuned = Tuning<Cuda>;

constexpr double f64_bytes = 8;

constexpr Index blocks_of(Index n, Index width) { return (n + width - 1) / width; }

/// The sums of the runs of AᵀB by cuBLAS (products/tall.cu). `all`: also of few runs, and of wide products.
double sums_of_runs(const Kernels& kernels, Index m, Index k, Index p, ScalarKind scalar, bool all) {
    const Index tiles = blocks_of(k, 64) * blocks_of(p, 64), multiprocessors = kernels.multiprocessors;
    const Index h = std::clamp(m * tiles / (2 * multiprocessors), Tuned::min_part_rows, Tuned::max_part_rows);
    const Index count = blocks_of(m, h);
    if (!all && (count <= Tuned::few_parts || k * p >= multiprocessors * 128 * 128)) return 0;
    return number(count * k * p * bytes_of(scalar));
}

/// Operands of 16 bits (products/products_by_halves.cu), of `slots` numbers an entry.
struct Halves {
    Index multiprocessors, slots;
    Halves(const Kernels& kernels, Arithmetic arithmetic)
        : multiprocessors(kernels.multiprocessors), slots(arithmetic == Arithmetic::Corrected ? 3 : 1) {}
    double bytes(Index rows, Index cols) const { return number(2 * slots * rows * cols); }
    /// The columns of `rows` rows that are converted at a time, n at most.
    Index columns_at_a_time(Index rows, Index n) const {
        return std::min(n, std::max<Index>(128, Tuned::halves_bytes / (2 * slots * rows) / 128 * 128));
    }
    /// The sums of the runs of AᵀB that are added at the end.
    double sums(Index m, Index k, Index p) const {
        const Index tiles = blocks_of(k, 128) * blocks_of(p, 128);
        const Index longest = slots == 3 ? Tuned::corrected_run_rows : Tuned::rounded_run;
        if (4 * blocks_of(m, longest) * k * p > Tuned::halves_bytes) return 0;
        if (slots == 3) return number(4 * blocks_of(m, longest) * k * p);
        if (tiles >= 2 * multiprocessors) return 0;
        const Index h = std::clamp(m * tiles / (2 * multiprocessors), Tuned::min_rounded_run, longest);
        return number(4 * blocks_of(m, h) * k * p);
    }
    double inner_product(Index m, Index k, Index p) const {
        const Index k_wide = columns_at_a_time(m, k), p_wide = columns_at_a_time(m, p);
        return bytes(m, k_wide + p_wide) + sums(m, k_wide, p_wide);
    }
    /// C − A B of an m×k A, whose columns go by runs.
    double subtracted_product(Index m, Index k, Index p) const {
        const Index at_a_time = columns_at_a_time(m, k);
        return bytes(m, at_a_time) + bytes(at_a_time, columns_at_a_time(at_a_time, p));
    }
    /// Both layouts of Q, which are one for one slot, and W and S.
    double projection(Index m, Index k, Index p) const {
        while (2 * slots * m * k > Tuned::shared_halves_bytes) k /= 2;
        const Index p_wide = columns_at_a_time(m, p);
        return (slots == 1 ? 1 : 2) * bytes(m, k) + bytes(m + k, p_wide) + sums(m, k, p_wide);
    }
};

/// Whether R and AᵀA of n columns go by blocks of columns.
bool by_blocks(Index n, ScalarKind scalar, const Kernels& kernels) {
    return choose_gram(n, 0, scalar, kernels) == GramKernel::Blocks;
}
/// R rounded to T for cuBLAS.
double rounded_factor(Index n, ScalarKind scalar) { return entry_for(scalar, 4.0, 0.0) * number(n * n); }

}  // namespace

template <>
double KernelWorkspace<Cuda>::inner_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const {
    if (choose_inner_product(m, k, p, scalar, arithmetic, tuning.kernels) == ProductKernel::Halves)
        return Halves(tuning.kernels, arithmetic).inner_product(m, k, p);
    return sums_of_runs(tuning.kernels, m, k, p, scalar, false);
}

template <>
double KernelWorkspace<Cuda>::panel(Index m, Index k, ScalarKind scalar) const {
    const double squares = number(3 * k * k * bytes_of(scalar));
    if (choose_panel(m, scalar, tuning.kernels) != PanelKernel::Strips) return squares;
    // the strips' V, and V as an operand of VᵀV
    const bool corrected = entry_for(scalar, true, false) && tuning.kernels.warpgroups && k >= min_corrected_gram;
    const double operand = corrected ? number(4 * m * k) : sums_of_runs(tuning.kernels, m, k, k, scalar, false);
    return squares + number(m * k * bytes_of(scalar)) + operand;
}

template <>
double KernelWorkspace<Cuda>::update(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const {
    if (k == 0 || p == 0) return 0;
    const UpdateKernel kernel = choose_update(m, k, p, scalar, arithmetic, tuning.kernels);
    if (kernel == UpdateKernel::Corrected) {
        // the images of V and T; W and T W of as many columns as are converted at a time; V and T W once more for
        // cuBLAS where there is no kernel for C − V W
        constexpr Index max_update_depth = 256;
        const Halves halves(tuning.kernels, arithmetic);
        const Index width = halves.columns_at_a_time(k, p);
        return number(4 * (m + k) * k + 8 * k * width) + (k > max_update_depth ? halves.bytes(m + width, k) : 0);
    }
    // V's triangle, W and T W
    const double common = number((k + 2 * p) * k * bytes_of(scalar));
    if (kernel != UpdateKernel::Halves) return common + inner_product(m, k, p, scalar, Arithmetic::Native);
    return common + std::max(inner_product(m, k, p, scalar, arithmetic),
                             Halves(tuning.kernels, arithmetic).subtracted_product(m, k, p));
}

template <>
double KernelWorkspace<Cuda>::projection(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const {
    if (choose_inner_product(m, k, p, scalar, arithmetic, tuning.kernels) == ProductKernel::Halves)
        return Halves(tuning.kernels, arithmetic).projection(m, k, p);
    return sums_of_runs(tuning.kernels, m, k, p, scalar, false);
}

template <>
double KernelWorkspace<Cuda>::gram(Index m, Index n, ScalarKind scalar) const {
    if (!by_blocks(n, scalar, tuning.kernels)) return 0;
    // the product of two halves of the columns
    return sums_of_runs(tuning.kernels, m, n / 2, n - n / 2, scalar, entry_for(scalar, true, false));
}

template <>
double KernelWorkspace<Cuda>::gram_of_solution(Index m, Index n, ScalarKind scalar, bool stored) const {
    if (!by_blocks(n, scalar, tuning.kernels)) return 0;
    if (stored) return rounded_factor(n, scalar) + gram(m, n, scalar);
    const Index rows = std::min(m, Tuned::solved_rows);
    return rounded_factor(n, scalar) + number(rows * n * bytes_of(scalar)) + f64_bytes * number(n * n) +
           sums_of_runs(tuning.kernels, rows, n, n, scalar, true);
}

template <>
double KernelWorkspace<Cuda>::cholesky(Index n, bool with_eigenvalue) const {
    if (choose_cholesky(n, tuning.kernels) == SquareKernel::OneBlock) return 0;
    return (with_eigenvalue ? 3 : 2) * f64_bytes * number(n * n);
}

template <>
double KernelWorkspace<Cuda>::sketch(Index m, Index n) const {
    // parts of A have sums of their own while there are multiprocessors for them
    return m < sketch_rows(n) ? 0 : f64_bytes * number(sketch_rows(n) * n);
}

}  // namespace quoin
