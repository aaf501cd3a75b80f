#pragma once

// Matrices of few columns and more rows than a warp holds, factored by reflectors a column at a time, everything in
// registers. Each thread holds a few rows.
//
// A cluster of blocks holds a matrix: R rows a thread of its N columns, zeros beyond n. Step j takes x = A(j:m, j):
//
//     s_l = Σ_{i>j} x_i a_il
//     β, τ and 1/(α − β);  a_il −= v_i w_l, w = τ (a_j + vᵀa).
//
// The products are added over a thread's rows, over its warp, over its block in shared memory, and over the cluster
// through mailboxes. Row j goes out with them, from the block that has it. Every warp adds the same parts in the same
// order, and so knows the same reflector. Row j of R leaves, and the columns on the right move up by one register, so
// that every step has the same instructions. Products with Q have the same shape: columns of C in place of A's.
//
// Shared: parts of warps and blocks, 4N numbers a warp and a block, and V, N R numbers a thread, where it is kept.
// Bound by latency: a column costs a dot product, a barrier and a way through the cluster, a square root and a division
// one after the other.

#include "cuda/arch/levels.cuh"
#include "cuda/arch/sm70_messages.cuh"
#include "cuda/arch/sm90_cluster.cuh"
#include "cuda/elements/batch_entries.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/kernel_choice.hpp"

namespace quoin::cuda {

/// R rows of N columns a thread.
template <class T, int N_, int R_, int max_threads_>
struct RowsKernel {
    using Scalar = T;
    static constexpr int N = N_, R = R_, max_threads = max_threads_, max_warps = max_threads / 32;
    static constexpr Index rows = Index(max_row_blocks) * max_threads * R;
    static_assert((N & (N - 1)) == 0, "the columns' parts are folded by halves");
};

/// The rows of one column that a thread holds.
template <class T, int R>
struct alignas(R * sizeof(T) < 16 ? R * sizeof(T) : 16) HeldRows {
    T at[R];
};

/// Blocks of a cluster of the kernels as they were compiled.
inline constexpr int held_row_blocks = compiled_for_clusters ? max_row_blocks : max_boxed_row_blocks;

/// Partial sums of every warp and block (0 if absent), then row j. Double-buffered.
template <class K>
struct RowsShared {
    using T = typename K::Scalar;
    T of_warps[2][K::max_warps + 1][K::N], of_blocks[2][held_row_blocks + 1][K::N];
    T r[K::N][K::N], tau[K::N];  ///< R row by row
    Mailbox mailboxes[2];
};

/// part[0] := the parts of column lane % (2·half) of the lanes that differ in these bits.
template <int half, class T, int N, class Combine>
__device__ __forceinline__ void fold(T (&part)[N], int lane, Combine combine) {
    const bool late = lane & half;
#pragma unroll
    for (int x = 0; x < half; ++x) {
        const T keep = late ? part[x + half] : part[x], give = late ? part[x] : part[x + half];
        part[x] = combine(keep, __shfl_xor_sync(~0u, give, half));
    }
    if constexpr (half > 1) fold<half / 2>(part, lane, combine);
}
/// parts[0][c] … parts[count − 1][c], joined in one order. 0 stands for no part: they are added, or none is negative.
template <int count, class T, int N, int rows, class Combine>
__device__ __forceinline__ T join_column(const T (&parts)[rows][N], int c, Combine combine) {
    T x[4];
#pragma unroll
    for (int i = 0; i < count; ++i) x[i % 4] = i < 4 ? parts[i][c] : combine(x[i % 4], parts[i][c]);
    return combine(combine(x[0], x[1]), combine(x[2], x[3]));
}

/// The blocks of a cluster, and where a GPU has none their messages, zeros on entry: in each of two buffers, the
/// columns of each block's sums, then row j.
struct RowsCluster {
    int blocks;
    Message* boxes;

    static constexpr Index messages(int blocks, int cols) { return Index(2) * (blocks + 1) * cols; }
};

/// A thread of a cluster that holds a matrix.
template <class K>
class RowsThread {
public:
    using T = typename K::Scalar;

    __device__ RowsThread(RowsShared<K>& shared, const RowsCluster& cluster)
        : s(shared),
          warp(threadIdx.x / 32),
          lane(threadIdx.x % 32),
          warps(blockDim.x / 32),
          blocks(cluster.blocks),
          rank(blockIdx.x % cluster.blocks),
          boxes_(cluster.boxes + blockIdx.x / cluster.blocks * RowsCluster::messages(cluster.blocks, K::N)) {
        T* const parts = &s.of_warps[0][0][0];
        for (int x = threadIdx.x; x < int(sizeof(s.of_warps) + sizeof(s.of_blocks)) / int(sizeof(T)); x += blockDim.x)
            parts[x] = 0;
        if (compiled_for_clusters && threadIdx.x < 2) s.mailboxes[threadIdx.x].open();
        wait_for_all();
    }
    /// Nobody leaves while its shared memory may still be written.
    __device__ ~RowsThread() {
        if (blocks > 1) wait_for_all();
    }
    __device__ int row(int r) const { return (rank * K::R + r) * int(blockDim.x) + int(threadIdx.x); }

    /// The row that goes out with the next parts. By one thread of block 0.
    template <int count>
    __device__ void tell_row(const T (&a)[K::N]) {
#pragma unroll
        for (int c = 0; c < count; ++c) s.of_warps[round % 2][K::max_warps][c] = a[c];
    }
    /// All threads' parts of column lane % P, P the power of 2 from `count` on, in every lane; and `row`, what was
    /// told.
    template <int count, class Combine>
    __device__ __forceinline__ T joined(T (&part)[K::N], T& row, Combine combine) {
        constexpr int P = count <= 4 ? 4 : count <= 8 ? 8 : count <= 16 ? 16 : 32;
        const int c = lane % P;
        fold<P / 2>(part, lane, combine);
        T sum = part[0];
#pragma unroll
        for (int step = P; step < 32; step *= 2) sum = combine(sum, __shfl_xor_sync(~0u, sum, step));
        auto& of_warps = s.of_warps[round % 2];
        auto& of_blocks = s.of_blocks[round % 2];
        auto& mailbox = s.mailboxes[round % 2];
        if (lane < P) of_warps[warp][c] = sum;
        if (compiled_for_clusters && blocks > 1 && threadIdx.x == 0)
            mailbox.expect(static_cast<std::uint32_t>(blocks + 1) * P * sizeof(T));
        __syncthreads();
        sum = warps <= 8 ? join_column<8>(of_warps, c, combine) : join_column<K::max_warps>(of_warps, c, combine);
        row = of_warps[K::max_warps][c];
        if (blocks > 1) {
            if constexpr (compiled_for_clusters) {
                for (int peer = warp; peer < blocks; peer += warps) {
                    if (lane < P) mailbox.send(peer, &of_blocks[rank][c], sum);
                    if (lane < P && rank == 0) mailbox.send(peer, &of_blocks[held_row_blocks][c], row);
                }
                mailbox.receive(static_cast<int>(round / 2));
            } else {
                Message* const boxes = boxes_ + round % 2 * (blocks + 1) * K::N + lane;
                const unsigned label = round + 1;
                if (warp == 0 && lane < P) {
                    store_message(boxes + rank * K::N, {bits_of(sum), 0, label});
                    if (rank == 0) store_message(boxes + blocks * K::N, {bits_of(row), 0, label});
                }
                for (int of = warp; of <= blocks && lane < P; of += warps) {
                    Message received[1];
                    load_messages(received, boxes + of * K::N, 0, label);
                    of_blocks[of < blocks ? of : held_row_blocks][c] = from_bits<T>(received[0].payload);
                }
                __syncthreads();
            }
            sum = blocks <= 4 ? join_column<4>(of_blocks, c, combine)
                              : join_column<held_row_blocks>(of_blocks, c, combine);
            row = of_blocks[held_row_blocks][c];
        }
        ++round;
        return sum;
    }

    RowsShared<K>& s;
    const int warp, lane, warps, blocks, rank;

private:
    __device__ void wait_for_all() {
        if (compiled_for_clusters && blocks > 1) {
            wait_for_cluster();
        } else {
            __syncthreads();
        }
    }

    Message* const boxes_;
    unsigned round = 0;
};

/// Columns j, j + 1, … of the matrix, `Left` of them, as step j finds them.
template <class K, int Left>
struct RowsStep {
    using T = typename K::Scalar;
    T beta, tau, scale;  ///< of the reflector
    T own, loss;         ///< a_jl and w_l of the lane's l
    T x[K::R];           ///< column j below row j, zeros above
    int exponent = 0;    ///< the column is scaled by 2^-exponent

    __device__ __forceinline__ RowsStep(int j, T (&a)[K::R][K::N], RowsThread<K>& me) {
        constexpr int R = K::R;
        const bool is_first = me.rank == 0;
        const int row_0 = threadIdx.x;
        T dot, below, alpha;
#pragma unroll 1
        for (bool rescaled = false;; rescaled = true) {
            T part[K::N] = {};
#pragma unroll
            for (int r = 0; r < R; ++r) {
                x[r] = r == 0 && is_first && row_0 <= j ? T(0) : a[r][0];
#pragma unroll
                for (int c = 0; c < Left; ++c) part[c] = fma(x[r], a[r][c], part[c]);
            }
            if (is_first && row_0 == j) me.template tell_row<Left>(a[0]);
            dot = me.template joined<Left>(part, own, Plus());
            below = __shfl_sync(~0u, dot, 0), alpha = __shfl_sync(~0u, own, 0);
            if (rescaled || fma(alpha, alpha, below) >= least_squares_kept<T>()) break;
            // 2^-e x in the place of x, where its squares lose digits
            T largest[K::N] = {}, unused;
#pragma unroll
            for (int r = 0; r < R; ++r) largest[0] = max(largest[0], abs(x[r]));
            const T most = max(abs(alpha), __shfl_sync(~0u, me.template joined<1>(largest, unused, Larger()), 0));
            if (!(most > 0 && most <= std::numeric_limits<T>::max())) break;
            exponent = ilogb(most);
#pragma unroll
            for (int r = 0; r < R; ++r) {
                if (r > 0 || !is_first || row_0 >= j) a[r][0] = scalbn(a[r][0], -exponent);
            }
        }
        const Reflector<T> h(alpha, below);
        tau = h.tau, scale = h.scale;
        beta = exponent == 0 ? h.beta : scalbn(h.beta, exponent);
        loss = tau * fma(scale, dot, own);
        const T factor = -loss * scale;
#pragma unroll
        for (int c = 1; c < Left; ++c) {
            const T f = __shfl_sync(~0u, factor, c);
#pragma unroll
            for (int r = 0; r < R; ++r) a[r][c - 1] = fma(f, x[r], a[r][c]);
        }
#pragma unroll
        for (int r = 0; r < R; ++r) a[r][Left - 1] = 0;
    }
};

/// store(j, step) after every step j < k from N − Left on.
template <int Left, class K, class Store>
__device__ __forceinline__ void factor_rows_from(int k, typename K::Scalar (&a)[K::R][K::N], RowsThread<K>& me,
                                                 Store store) {
    constexpr int first = K::N - Left, alike = 8;
#pragma unroll 1
    for (int j = first; j < min(first + alike, k); ++j) store(j, RowsStep<K, Left>(j, a, me));
    if constexpr (Left > alike) factor_rows_from<Left - alike>(k, a, me, store);
}
/// C := (I − τ x xᵀ) C.
template <class K>
__device__ __forceinline__ void reflect_rows(typename K::Scalar (&c)[K::R][K::N], const typename K::Scalar (&x)[K::R],
                                             typename K::Scalar tau, RowsThread<K>& me) {
    using T = typename K::Scalar;
    T part[K::N] = {}, unused;
#pragma unroll
    for (int r = 0; r < K::R; ++r) {
#pragma unroll
        for (int l = 0; l < K::N; ++l) part[l] = fma(x[r], c[r][l], part[l]);
    }
    const T factor = -tau * me.template joined<K::N>(part, unused, Plus());
#pragma unroll
    for (int l = 0; l < K::N; ++l) {
        const T f = __shfl_sync(~0u, factor, l);
#pragma unroll
        for (int r = 0; r < K::R; ++r) c[r][l] = fma(f, x[r], c[r][l]);
    }
}

/// a := the thread's rows of columns first, first + 1, … of the m×cols matrix A, zeros beyond it. Reads the last row
/// and column again instead of entries beyond them, so that no load waits for a condition.
template <class K>
__device__ __forceinline__ void load_rows(const typename BatchEntries<const typename K::Scalar>::One& A, int m,
                                          Index first, Index cols, const RowsThread<K>& me,
                                          typename K::Scalar (&a)[K::R][K::N]) {
    using T = typename K::Scalar;
#pragma unroll
    for (int c = 0; c < K::N; ++c) {
        const T* const p = A.data + min(first + c, cols - 1) * A.col_stride;
#pragma unroll
        for (int r = 0; r < K::R; ++r) a[r][c] = p[min(me.row(r), m - 1) * A.row_stride];
    }
#pragma unroll
    for (int c = 0; c < K::N; ++c) {
#pragma unroll
        for (int r = 0; r < K::R; ++r) a[r][c] = first + c < cols && me.row(r) < m ? a[r][c] : T(0);
    }
}

/// a := the thread's rows of columns first, first + 1, … of I.
template <class K>
__device__ __forceinline__ void set_unit_rows(Index first, const RowsThread<K>& me,
                                              typename K::Scalar (&a)[K::R][K::N]) {
#pragma unroll
    for (int c = 0; c < K::N; ++c) {
#pragma unroll
        for (int r = 0; r < K::R; ++r) a[r][c] = me.row(r) == first + c;
    }
}
/// Columns first, first + 1, … of the m×cols matrix A := a.
template <class K>
__device__ __forceinline__ void store_rows(const typename BatchEntries<typename K::Scalar>::One& A, int m, Index first,
                                           Index cols, const RowsThread<K>& me,
                                           const typename K::Scalar (&a)[K::R][K::N]) {
#pragma unroll
    for (int c = 0; c < K::N; ++c) {
#pragma unroll
        for (int r = 0; r < K::R; ++r) {
            if (const int i = me.row(r); i < m && first + c < cols) A(i, first + c) = a[r][c];
        }
    }
}

/// The factors that a kernel keeps.
enum class RowsKept { R, VR, QR };

/// Factors matrix b by cluster b. With a `check`, writes nothing of a matrix with NaN or Inf. The first output may be
/// A.
template <class K, RowsKept kept>
__global__ void __launch_bounds__(K::max_threads)
    factor_rows_kernel(BatchSize size, BatchEntries<const typename K::Scalar> A,
                       BatchEntries<typename K::Scalar> first_out, BatchEntries<typename K::Scalar> second_out,
                       FiniteCheck check, RowsCluster cluster) {
    using T = typename K::Scalar;
    using Held = HeldRows<T, K::R>;
    constexpr int N = K::N, R = K::R;
    extern __shared__ __align__(16) unsigned char memory[];
    Held* const v = reinterpret_cast<Held*>(memory) + threadIdx.x;  // column j of V at j·threads
    __shared__ RowsShared<K> shared;
    RowsThread<K> me(shared, cluster);
    const int threads = blockDim.x, lane = me.lane;
    const Index b = blockIdx.x / me.blocks;
    T a[R][N], largest[N] = {}, unused;
    load_rows(A[b], size.m, 0, size.n, me, a);
#pragma unroll
    for (int c = 0; c < N; ++c) {
        T finite = 0;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            largest[c] = max(largest[c], abs(a[r][c]));
            finite += a[r][c] * 0;
        }
        if (!(finite == 0)) largest[c] = std::numeric_limits<T>::infinity();
    }
    // of the lane's column
    const T most = me.template joined<N>(largest, unused, Larger());
    if (check) {
        const bool is_bad = __any_sync(~0u, most > std::numeric_limits<T>::max());
        if (me.rank == 0 && threadIdx.x == 0) {
            if (size.count == 1) {
                check.tell(is_bad ? 0 : none_bad);
            } else {
                if (is_bad) check.note(b);
                check.part_is_read(size.count);
            }
        }
        if (is_bad) return;
    }
    const int exponent = far_exponent(most);
    if (__any_sync(~0u, exponent != 0)) {
#pragma unroll
        for (int c = 0; c < N; ++c) {
            const int e = __shfl_sync(~0u, exponent, c);
#pragma unroll
            for (int r = 0; r < R; ++r) a[r][c] = scalbn(a[r][c], -e);
        }
    }
    factor_rows_from<N>(size.k, a, me, [&](int j, const auto& step) {
        if (me.warp == me.warps - 1) {
            if (lane < N - j) shared.r[j][j + lane] = lane == 0 ? step.beta : step.own - step.loss;
            if (lane == 0) shared.tau[j] = step.tau;
        }
        if (kept == RowsKept::R) return;
        Held x;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const bool is_one = r == 0 && me.rank == 0 && int(threadIdx.x) == j;
            x.at[r] = is_one ? T(1) : step.x[r] * step.scale;
        }
        v[j * threads] = x;
    });
    __syncthreads();
    const auto first = first_out[b];
    if (me.rank == 0 && lane < size.n) {
        for (int i = me.warp; i < size.k; i += me.warps) {
            if (lane >= i) first(i, lane) = scalbn(shared.r[i][lane], exponent);
            if (lane < i && kept != RowsKept::VR) first(i, lane) = 0;
        }
    }
    if constexpr (kept == RowsKept::VR) {
        for (int j = 0; j < size.k; ++j) {
            const Held x = v[j * threads];
#pragma unroll
            for (int r = 0; r < R; ++r) {
                if (const int i = me.row(r); i > j && i < size.m) first(i, j) = x.at[r];
            }
        }
        if (me.rank == 0 && int(threadIdx.x) < size.k) second_out[b](threadIdx.x, 0) = shared.tau[threadIdx.x];
    } else if constexpr (kept == RowsKept::QR) {
        set_unit_rows(0, me, a);
#pragma unroll 1
        for (int j = size.k - 1; j >= 0; --j) reflect_rows<K>(a, v[j * threads].at, shared.tau[j], me);
        store_rows(second_out[b], size.m, 0, size.k, me, a);
    }
}

/// to := op(Q) from, p columns, N at a time a cluster. If `upper`, from is [E; 0], E of k rows, or I without matrices.
template <class K>
__global__ void __launch_bounds__(K::max_threads)
    apply_rows_kernel(BatchSize size, const typename K::Scalar* X, const typename K::Scalar* tau, bool transpose,
                      Index p, BatchEntries<const typename K::Scalar> from, bool upper,
                      BatchEntries<typename K::Scalar> to, RowsCluster cluster) {
    using T = typename K::Scalar;
    constexpr int N = K::N, R = K::R;
    __shared__ RowsShared<K> shared;
    RowsThread<K> me(shared, cluster);
    const Index strips = (p + N - 1) / N, of = blockIdx.x / me.blocks, b = of / strips, first = of % strips * N;
    const T* const V = X + b * size.ld * size.n;
    T c[R][N], x[R], next[R];
    const auto load = [&](int j, T(&column)[R]) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const int i = me.row(r);
            column[r] = i > j && i < size.m ? V[j * size.ld + i] : i == j ? T(1) : T(0);
        }
    };
    const auto step_of = [&](int step) { return transpose ? step : size.k - 1 - step; };
    load(step_of(0), next);
    if (upper && from.empty()) {
        set_unit_rows(first, me, c);
    } else {
        load_rows(from[b], upper ? size.k : size.m, first, p, me, c);
    }
#pragma unroll 1
    for (int step = 0; step < size.k; ++step) {
#pragma unroll
        for (int r = 0; r < R; ++r) x[r] = next[r];
        const int j = step_of(step);
        if (step + 1 < size.k) load(step_of(step + 1), next);
        reflect_rows<K>(c, x, tau[b * size.k + j], me);
    }
    store_rows(to[b], size.m, first, p, me, c);
}

}  // namespace quoin::cuda
