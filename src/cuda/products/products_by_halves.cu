// Products of f32 by numbers of 16 bits (products/make_halves.cuh) over cuBLAS's GEMM with sums in f32.
//
// The tensor cores cut sums off where they should round, so that the error of a long one grows with its length and not
// with the length's root. A corrected product is added up in runs: AᵀB in runs of `corrected_run_rows` by `sum_parts`
// in double, while the parts fit into `halves_bytes`, and otherwise in runs of `long_run_rows`, one after the other
// into C, in f32; A B in runs of `corrected_run_cols`.

#include "cuda/products/products_by_halves.hpp"

#include <algorithm>

#include "cuda/products/make_halves.cuh"
#include "cuda/products/sum_parts.hpp"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/tuning.hpp"
#include "primitives/generic/rounded_columns.hpp"

namespace quoin {

namespace cuda {

namespace {

using Tuned = Tuning<Cuda>;
constexpr Index run_rows = Tuned::corrected_run_rows, rounded_run = Tuned::rounded_run;
constexpr Index max_bytes = Tuned::halves_bytes, max_rows = Tuned::halved_rows;

Index round_up(Index n, Index step) { return (n + step - 1) / step * step; }

/// Runs of equal length, a multiple of `step`, of n rows or columns.
struct Runs {
    Index count, h;
    Runs(Index n, Index most, Index step) : count(std::max<Index>(1, (n + most - 1) / most)) {
        h = round_up((n + count - 1) / count, step);
        count = std::max<Index>(1, (n + h - 1) / h);
    }
    Index padded() const { return count * h; }
};

/// How an arithmetic holds its operands: of two bytes each number, in `slots` slots.
struct Form {
    Index slots;
    cudaDataType_t type;
    explicit Form(Arithmetic arithmetic)
        : slots(arithmetic == Arithmetic::Corrected ? 3 : 1),
          type(arithmetic == study::BF16 ? CUDA_R_16BF : CUDA_R_16F) {}

    /// Calls f.operator()<H, slots>().
    template <class F>
    void visit(F f) const {
        if (slots == 3) {
            f.template operator()<__half, 3>();
        } else if (type == CUDA_R_16F) {
            f.template operator()<__half, 1>();
        } else {
            f.template operator()<__nv_bfloat16, 1>();
        }
    }
};

/// Either layout of A, or both: `parts` of A.cols columns of slots · rows.padded(), and `sides` of slots ·
/// cols.padded() columns of ld.
struct Layouts {
    __half* parts = nullptr;
    Runs rows{1, 1, 1};
    __half* sides = nullptr;
    Runs cols{1, 1, 1};
    Index ld = 0;
};

template <bool unit_lower = false>
void make_halves(Context<Cuda>& ctx, const Form& form, MatrixView<const float, Cuda> A, LowSlot low,
                 const unsigned* largest, const Layouts& to) {
    const Index rows = std::max(to.parts ? to.rows.padded() : 0, to.ld);
    const Index cols = std::max(A.cols, to.sides ? to.cols.padded() : 0),
                row_blocks = (rows / 2 + element_threads - 1) / element_threads;
    const dim3 grid(static_cast<unsigned>(std::clamp<Index>(row_blocks, 1, 1 << 20)),
                    static_cast<unsigned>(std::clamp<Index>(cols, 1, 65535)));
    form.visit([&]<class H, int slots>() {
        launch(ctx.stream(), make_halves_kernel<unit_lower, H, slots>, {grid, element_threads}, A, low, largest,
               PartsLayout<H>{reinterpret_cast<H*>(to.parts), to.rows.h, to.rows.padded()},
               SidesLayout<H>{reinterpret_cast<H*>(to.sides), to.cols.h, to.cols.padded(), to.ld});
    });
}

/// The bits of max |a_ij|, in the frame's memory.
const unsigned* find_largest(Context<Cuda>& ctx, Arena::Frame& frame, MatrixView<const float, Cuda> A) {
    unsigned* const largest = frame.take<unsigned>(1);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(largest, 0, sizeof(unsigned), ctx.stream()));
    const Index blocks = 16 * ctx.state().kernels.multiprocessors;
    const Index x = std::clamp<Index>((A.rows + 4 * element_threads - 1) / (4 * element_threads), 1, blocks);
    const dim3 grid(static_cast<unsigned>(x), static_cast<unsigned>(std::clamp<Index>(blocks / x, 1, A.cols)));
    launch(ctx.stream(), largest_bits_kernel, {grid, element_threads}, A, largest);
    return largest;
}

/// factor / (s s'), 1 and 0 on the device.
struct Scalars {
    const float *alpha, *one, *zero;
    Scalars(Context<Cuda>& ctx, Arena::Frame& frame, const unsigned* largest_a, const unsigned* largest_b,
            float factor) {
        float* const scalars = frame.take<float>(3);
        launch(ctx.stream(), scale_of_product_kernel, {1, 1}, largest_a, largest_b, factor, scalars);
        alpha = scalars;
        one = scalars + 1;
        zero = scalars + 2;
    }
};

/// Columns whose slots of `length` numbers each fit into max_bytes, at most n.
Index columns_at_a_time(Index length, Index n) {
    return std::min(n, std::max<Index>(128, max_bytes / (length * Index(sizeof(__half))) / 128 * 128));
}

/// Rows of the runs of AᵀB for C n×p: `parts` says that their products are parts to be summed, and do not follow each
/// other.
struct RunsOfRows {
    bool parts;
    Runs runs;
    RunsOfRows(Context<Cuda>& ctx, const Form& form, Index m, Index n, Index p)
        : parts(choose_parts(ctx, form, m, n, p)), runs(m, longest(ctx, form, parts, m, n, p), 64) {}
    /// Runs of rounded operands, one after the other, for any n and p.
    explicit RunsOfRows(Index m) : parts(false), runs(m, rounded_run, 64) {}

private:
    static Index tiles(Index n, Index p) { return ((n + 127) / 128) * ((p + 127) / 128); }
    static bool choose_parts(Context<Cuda>& ctx, const Form& form, Index m, Index n, Index p) {
        const Index shortest = form.slots == 3 ? run_rows : rounded_run;
        const bool fit = (m + shortest - 1) / shortest * n * p * Index(sizeof(float)) <= max_bytes;
        return fit && (form.slots == 3 || tiles(n, p) < 2 * ctx.state().kernels.multiprocessors);
    }
    static Index longest(Context<Cuda>& ctx, const Form& form, bool parts, Index m, Index n, Index p) {
        if (form.slots == 3) return parts ? run_rows : Tuned::long_run_rows;
        if (!parts) return rounded_run;
        return std::clamp<Index>(m * tiles(n, p) / (2 * ctx.state().kernels.multiprocessors), Tuned::min_rounded_run,
                                 rounded_run);
    }
};

/// C := AᵀB (+ C where `accumulate`) of the parts of A and B.
void multiply_parts(Context<Cuda>& ctx, const Form& form, const RunsOfRows& by, const __half* A_runs,
                    const __half* B_runs, const Scalars& scalars, float* parts, bool accumulate,
                    MatrixView<float, Cuda> C) {
    const Index ld = form.slots * by.runs.padded(), depth = form.slots * by.runs.h, n = C.rows, p = C.cols;
    const cublasHandle_t blas = ctx.state().blas();
    if (by.parts) {
        {
            const ScalarsOnDevice device(blas);
            check(cublasGemmStridedBatchedEx_64(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, p, depth, scalars.alpha, A_runs,
                                                form.type, ld, depth, B_runs, form.type, ld, depth, scalars.zero, parts,
                                                CUDA_R_32F, n, n * p, by.runs.count, CUBLAS_COMPUTE_32F,
                                                CUBLAS_GEMM_DEFAULT),
                  "gemmStridedBatchedEx");
        }
        return sum_parts<float, float>(ctx, by.runs.count, parts, accumulate, false, C);
    }
    const ScalarsOnDevice device(blas);
    for (Index r = 0; r < by.runs.count; ++r) {
        check(cublasGemmEx_64(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, p, depth, scalars.alpha, A_runs + r * depth, form.type,
                              ld, B_runs + r * depth, form.type, ld, accumulate || r > 0 ? scalars.one : scalars.zero,
                              C.data, CUDA_R_32F, C.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              "gemmEx");
    }
}

/// C := C − A B of A's sides and B's parts. A has `slots` slots; the last Form::slots of B are used.
void subtract_sides(Context<Cuda>& ctx, const Form& form, Index slots, const Runs& runs, const __half* A_sides,
                    Index lda, const __half* B_runs, const Scalars& scalars, MatrixView<float, Cuda> C) {
    const cublasHandle_t blas = ctx.state().blas();
    const ScalarsOnDevice device(blas);
    const Index depth = form.slots * runs.h, skipped = (slots - form.slots) * runs.h;
    for (Index r = 0; r < runs.count; ++r) {
        const __half* const A_run = A_sides + (r * slots * runs.h + skipped) * lda;
        for (Index i = 0, h = 0; i < C.rows; i += h) {
            h = std::min(max_rows, C.rows - i);
            if (h > 8) h -= h % 8;  // cuBLAS has slower kernels for other numbers
            check(cublasGemmEx_64(blas, CUBLAS_OP_N, CUBLAS_OP_N, h, C.cols, depth, scalars.alpha, A_run + i, form.type,
                                  lda, B_runs + r * depth, form.type, form.slots * runs.padded(), scalars.one,
                                  C.data + i, CUDA_R_32F, C.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                  "gemmEx");
        }
    }
}

Runs runs_of_cols(const Form& form, Index k) {
    return Runs(k, form.slots == 3 ? Tuned::corrected_run_cols : rounded_run, 8);
}

}  // namespace

void multiply_transposed_by_halves(Context<Cuda>& ctx, Arithmetic arithmetic, MatrixView<const float, Cuda> A,
                                   MatrixView<const float, Cuda> B, MatrixView<float, Cuda> C, bool accumulate) {
    const Index m = A.rows, n = A.cols, p = B.cols;
    const Form form(arithmetic);
    Arena::Frame frame(ctx);
    const unsigned *const largest_a = find_largest(ctx, frame, A), *const largest_b = find_largest(ctx, frame, B);
    const Scalars scalars(ctx, frame, largest_a, largest_b, 1);
    const Index min_ld = form.slots * round_up(m, 64);
    const Index n_wide = columns_at_a_time(min_ld, n), p_wide = columns_at_a_time(min_ld, p);
    const RunsOfRows by(ctx, form, m, n_wide, p_wide);
    const Index ld = form.slots * by.runs.padded();
    __half *const A_runs = frame.take<__half>(ld * n_wide), *const B_runs = frame.take<__half>(ld * p_wide);
    float* const parts = by.parts ? frame.take<float>(by.runs.count * n_wide * p_wide) : nullptr;
    for (Index i = 0; i < n; i += n_wide) {
        const Range rows{i, std::min(n, i + n_wide)};
        make_halves(ctx, form, A.col_block(rows), LowSlot::First, largest_a, {A_runs, by.runs});
        for (Index j = 0; j < p; j += p_wide) {
            const Range cols{j, std::min(p, j + p_wide)};
            make_halves(ctx, form, B.col_block(cols), LowSlot::Second, largest_b, {B_runs, by.runs});
            multiply_parts(ctx, form, by, A_runs, B_runs, scalars, parts, accumulate, C.block(rows, cols));
        }
    }
}

void subtract_product_by_halves(Context<Cuda>& ctx, Arithmetic arithmetic, MatrixView<const float, Cuda> A,
                                MatrixView<const float, Cuda> B, MatrixView<float, Cuda> C) {
    const Index m = C.rows, k = A.cols, p = C.cols;
    const Form form(arithmetic);
    Arena::Frame frame(ctx);
    const unsigned *const largest_a = find_largest(ctx, frame, A), *const largest_b = find_largest(ctx, frame, B);
    const Scalars scalars(ctx, frame, largest_a, largest_b, -1);
    const Index lda = round_up(m, 8);
    // one run of rounded columns fits
    const Index longest = std::max<Index>(128, max_bytes / (lda * Index(sizeof(__half))) / 128 * 128);
    const Runs runs = form.slots == 1 ? Runs(k, std::min(longest, rounded_run), 8) : runs_of_cols(form, k);
    // as many runs of A's columns at a time as fit
    const Index of_run = form.slots * runs.h;
    const Index count = std::min(runs.count, std::max<Index>(1, max_bytes / (lda * of_run * Index(sizeof(__half)))));
    const Index p_wide = columns_at_a_time(count * of_run, p);
    __half* const A_sides = frame.take<__half>(lda * count * of_run);
    __half* const B_runs = frame.take<__half>(count * of_run * p_wide);
    for (Index l = 0; l < k; l += count * runs.h) {
        const Range inner{l, std::min(k, l + count * runs.h)};
        const Runs these(inner.size(), runs.h, runs.h);
        make_halves(ctx, form, A.col_block(inner), LowSlot::First, largest_a, {nullptr, these, A_sides, these, lda});
        for (Index j = 0; j < p; j += p_wide) {
            const Range cols{j, std::min(p, j + p_wide)};
            make_halves(ctx, form, B.block(inner, cols), LowSlot::Second, largest_b, {B_runs, these});
            subtract_sides(ctx, form, form.slots, these, A_sides, lda, B_runs, scalars, C.col_block(cols));
        }
    }
}

namespace {

/// Q in both layouts.
struct HalvesOfQ {
    const __half* parts;
    RunsOfRows by;
    const __half* sides;
    Runs cols;
    Index ld;  ///< of `sides`
};

/// S := QᵀW and W := W − Q S.
void project_from(Context<Cuda>& ctx, Arithmetic arithmetic, bool again, const HalvesOfQ& Q, MatrixView<float, Cuda> W,
                  MatrixView<float, Cuda> S) {
    const Form form(arithmetic), rounded(Arithmetic::FP16);
    const Index k = S.rows, ld = form.slots * Q.by.runs.padded(), ldb = form.slots * Q.cols.padded();
    const Index p_wide = columns_at_a_time(form.slots * round_up(W.rows, 64), W.cols);
    Arena::Frame frame(ctx);
    __half *const W_runs = frame.take<__half>(ld * p_wide), *const S_runs = frame.take<__half>(ldb * p_wide);
    float* const parts = Q.by.parts ? frame.take<float>(Q.by.runs.count * k * p_wide) : nullptr;
    for (Index j = 0; j < W.cols; j += p_wide) {
        const Range cols{j, std::min(W.cols, j + p_wide)};
        const auto W_j = W.col_block(cols), S_j = S.col_block(cols);
        Arena::Frame of_columns(ctx);
        const unsigned* const largest_w = find_largest(ctx, of_columns, W_j);
        make_halves(ctx, form, W_j, LowSlot::Second, largest_w, {W_runs, Q.by.runs});
        multiply_parts(ctx, form, Q.by, Q.parts, W_runs, Scalars(ctx, of_columns, nullptr, largest_w, 1), parts, false,
                       S_j);
        // the same halves hold Q rounded
        const bool round = again && arithmetic == Arithmetic::Corrected && W.cols >= Tuned::min_asked &&
                           rounding_suffices(entry_norms<float>(ctx, S_j).squares, cols.size());
        const Form& second = round ? rounded : form;
        const unsigned* const largest_s = find_largest(ctx, of_columns, S_j);
        make_halves(ctx, second, S_j, LowSlot::Second, largest_s, {S_runs, Q.cols});
        subtract_sides(ctx, second, form.slots, Q.cols, Q.sides, Q.ld, S_runs,
                       Scalars(ctx, of_columns, nullptr, largest_s, -1), W_j);
    }
}

}  // namespace

bool project_by_halves(Context<Cuda>& ctx, Arithmetic arithmetic, bool again, MatrixView<const float, Cuda> Q,
                       MatrixView<float, Cuda> W, MatrixView<float, Cuda> S) {
    const Index m = W.rows, k = Q.cols, p = W.cols;
    const Form form(arithmetic);
    const Index p_wide = columns_at_a_time(form.slots * round_up(m, 64), p);
    const RunsOfRows by(ctx, form, m, k, p_wide);
    const Runs inner = runs_of_cols(form, k);
    const Index ld = form.slots * by.runs.padded();
    if (ld * k * Index(sizeof(__half)) > Tuned::shared_halves_bytes) return false;
    // of one slot, both layouts are the same but for the columns beyond k
    const bool same = form.slots == 1;
    const Index lda = same ? ld : round_up(m, 8), ldb = form.slots * inner.padded();
    const Index halves = lda * ldb + (same ? 0 : ld * k) + (ld + ldb) * p_wide;
    const Index sums = by.parts ? by.runs.count * k * p_wide : 0;
    if (!ctx.state().arena.has_room_for(halves * Index(sizeof(__half)) + sums * Index(sizeof(float)))) return false;
    Arena::Frame frame(ctx);
    __half* const Q_sides = frame.take<__half>(lda * ldb);
    __half* const Q_runs = same ? Q_sides : frame.take<__half>(ld * k);
    make_halves(ctx, form, Q, LowSlot::First, nullptr,
                same ? Layouts{nullptr, by.runs, Q_sides, inner, lda} : Layouts{Q_runs, by.runs, Q_sides, inner, lda});
    project_from(ctx, arithmetic, again, {Q_runs, by, Q_sides, inner, lda}, W, S);
    return true;
}

CorrectedReflectors corrected_reflectors(Context<Cuda>& ctx, Arena::Frame& frame, Op op,
                                         MatrixView<const float, Cuda> V, MatrixView<const float, Cuda> Tf) {
    CorrectedReflectors H{corrected_operand(ctx, frame, Op::Transpose, true, V, nullptr),
                          corrected_operand(ctx, frame, op, false, Tf, find_largest(ctx, frame, Tf))};
    if (has_corrected_update(H.V_transposed)) return H;
    const Index k = V.cols;
    const Runs side(k, k, 8);
    H.ld = round_up(V.rows, 8);
    H.V_sides = frame.take<__half>(H.ld * 3 * k);
    make_halves<true>(ctx, Form(Arithmetic::Corrected), V, LowSlot::First, nullptr,
                      {nullptr, side, H.V_sides, side, H.ld});
    return H;
}

void apply_corrected(Context<Cuda>& ctx, const CorrectedReflectors& H, MatrixView<float, Cuda> C) {
    const Form form(Arithmetic::Corrected);
    const Index k = H.T.n, width = columns_at_a_time(3 * k, C.cols);
    const Runs side(k, k, 8);
    Arena::Frame frame(ctx);
    __half* const TW_sides = H.V_sides ? frame.take<__half>(3 * k * width) : nullptr;
    const auto W_all = frame.matrix<float>(k, width), TW_all = frame.matrix<float>(k, width);
    for (Index j = 0; j < C.cols; j += width) {
        const Range cols{0, std::min(width, C.cols - j)};
        const auto C_j = C.col_block({j, j + cols.end}), W = W_all.col_block(cols), TW = TW_all.col_block(cols);
        // W = VᵀC, |w_ij| <= ‖v_i‖‖c_j‖ <= 2√2;  C −= V op(T) W
        multiply_corrected(ctx, H.V_transposed, C_j, W);
        multiply_corrected(ctx, H.T, W, TW);
        Arena::Frame inner(ctx);
        const unsigned* const largest = find_largest(ctx, inner, TW);
        if (!H.V_sides) {
            subtract_corrected(ctx, H.V_transposed, TW, largest, C_j);
            continue;
        }
        make_halves(ctx, form, TW, LowSlot::Second, largest, {TW_sides, side});
        subtract_sides(ctx, form, form.slots, side, H.V_sides, H.ld, TW_sides,
                       Scalars(ctx, inner, nullptr, largest, -1), C_j);
    }
    ctx.state().add_flops(4.0 * C.rows * k * C.cols);
}

}  // namespace cuda

template <>
void round_columns<float>(Context<Cuda>& ctx, Arithmetic arithmetic, MatrixView<const float, Cuda> A, Index first,
                          float* place) {
    using namespace cuda;
    const Index ld = RunsOfRows(A.rows).runs.padded();
    const Runs cols(A.cols, A.cols, 8);
    make_halves(ctx, Form(arithmetic), A, LowSlot::First, nullptr,
                {nullptr, cols, reinterpret_cast<__half*>(place) + first * ld, cols, ld});
}

template <>
void block_gram_schmidt_step_rounded<float>(Context<Cuda>& ctx, const float* place, Index k, MatrixView<float, Cuda> W,
                                            MatrixView<float, Cuda> S, Arithmetic arithmetic) {
    using namespace cuda;
    const RunsOfRows by(W.rows);
    const auto* const Q = reinterpret_cast<const __half*>(place);
    project_from(ctx, arithmetic, false, {Q, by, Q, runs_of_cols(Form(arithmetic), k), by.runs.padded()}, W, S);
    ctx.state().add_flops(4.0 * W.rows * k * W.cols);
}

template decltype(round_columns<double, Cuda>) round_columns<double, Cuda>;
template decltype(block_gram_schmidt_step_rounded<double, Cuda>) block_gram_schmidt_step_rounded<double, Cuda>;

}  // namespace quoin
