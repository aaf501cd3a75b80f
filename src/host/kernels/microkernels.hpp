// The kernels of kernels.hpp, written once over vectors of a width that the including file fixes:
//
//   QUOIN_VECTOR_BYTES   bytes of one vector register
//   QUOIN_INNER_M, _N    tile of `inner`, in columns of A and columns of B
//   QUOIN_OUTER_V, _N    tile of `outer`, in vectors of rows and columns
//   QUOIN_ISA            name of the kernel set
//
// Included by one file for each instruction set, which is compiled with that set's flags. Everything here has internal
// linkage, and nothing inline from the standard library is called: the linker would otherwise be free to run code of
// the newest instruction set on the oldest CPU.

#if QUOIN_VECTOR_BYTES > 16 && defined(__x86_64__)
#include <immintrin.h>
#elif QUOIN_VECTOR_BYTES > 16
#include <arm_sve.h>
#endif

#include <limits>

#include "host/kernels/kernels.hpp"

namespace quoin::host {
namespace {

// Tasks begin at multiples of 24 columns (min_tile_cols), where a tile must begin, too: another tile has other sums.
static_assert(24 % QUOIN_INNER_M == 0 && 24 % QUOIN_INNER_N == 0 && 24 % QUOIN_OUTER_N == 0);

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(QUOIN_VECTOR_BYTES)));
    typedef T unaligned __attribute__((vector_size(QUOIN_VECTOR_BYTES), aligned(alignof(T)), may_alias));
    static constexpr int width = QUOIN_VECTOR_BYTES / sizeof(T);
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
constexpr Index width = VectorOf<T>::width;

template <class T>
[[gnu::always_inline]] inline Vector<T> load(const T* p) {
    return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Vector<T> x) {
    *reinterpret_cast<typename VectorOf<T>::unaligned*>(p) = x;
}
// load_part: the first `count` elements, zeros after them; store_part: these alone. Nothing else is read, or written.
#if QUOIN_VECTOR_BYTES == 64
[[gnu::always_inline]] inline Vector<float> load_part(const float* p, Index count) {
    return reinterpret_cast<Vector<float>>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p));
}
[[gnu::always_inline]] inline Vector<double> load_part(const double* p, Index count) {
    return reinterpret_cast<Vector<double>>(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), p));
}
[[gnu::always_inline]] inline void store_part(float* p, Vector<float> x, Index count) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), reinterpret_cast<__m512>(x));
}
[[gnu::always_inline]] inline void store_part(double* p, Vector<double> x, Index count) {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << count) - 1), reinterpret_cast<__m512d>(x));
}
#elif QUOIN_VECTOR_BYTES == 32 && defined(__x86_64__)
/// Returns the mask of the first `count` words of 32 bits.
[[gnu::always_inline]] inline __m256i first_words(Index count) {
    static constexpr int flags[] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(flags + 8 - count));
}
[[gnu::always_inline]] inline Vector<float> load_part(const float* p, Index count) {
    return reinterpret_cast<Vector<float>>(_mm256_maskload_ps(p, first_words(count)));
}
[[gnu::always_inline]] inline Vector<double> load_part(const double* p, Index count) {
    return reinterpret_cast<Vector<double>>(_mm256_maskload_pd(p, first_words(2 * count)));
}
[[gnu::always_inline]] inline void store_part(float* p, Vector<float> x, Index count) {
    _mm256_maskstore_ps(p, first_words(count), reinterpret_cast<__m256>(x));
}
[[gnu::always_inline]] inline void store_part(double* p, Vector<double> x, Index count) {
    _mm256_maskstore_pd(p, first_words(2 * count), reinterpret_cast<__m256d>(x));
}
#elif QUOIN_VECTOR_BYTES == 32
[[gnu::always_inline]] inline Vector<float> load_part(const float* p, Index count) {
    return svld1(svwhilelt_b32(Index{0}, count), p);
}
[[gnu::always_inline]] inline Vector<double> load_part(const double* p, Index count) {
    return svld1(svwhilelt_b64(Index{0}, count), p);
}
[[gnu::always_inline]] inline void store_part(float* p, Vector<float> x, Index count) {
    svst1(svwhilelt_b32(Index{0}, count), p, x);
}
[[gnu::always_inline]] inline void store_part(double* p, Vector<double> x, Index count) {
    svst1(svwhilelt_b64(Index{0}, count), p, x);
}
#else
template <class T>
[[gnu::always_inline]] inline Vector<T> load_part(const T* p, Index count) {
    Vector<T> x = {};
    for (Index l = 0; l < count; ++l) x[l] = p[l];
    return x;
}
template <class T>
[[gnu::always_inline]] inline void store_part(T* p, Vector<T> x, Index count) {
    for (Index l = 0; l < count; ++l) p[l] = x[l];
}
#endif

/// One vector, or the first `part` elements of one if Part.
template <bool Part, class T>
[[gnu::always_inline]] inline Vector<T> load_rows(const T* p, Index part) {
    if constexpr (Part) {
        return load_part(p, part);
    } else {
        return load(p);
    }
}
template <bool Part, class T>
[[gnu::always_inline]] inline void store_rows(T* p, Vector<T> x, Index part) {
    if constexpr (Part) {
        store_part(p, x, part);
    } else {
        store(p, x);
    }
}

template <int... I>
struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I>
struct MakeIndices<0, I...> {
    using type = Indices<I...>;
};

/// Lane l of the two halves to add when sums of runs of G lanes become sums of runs of 2G lanes.
template <int W, int G, int Offset>
constexpr int merge_lane(int l) {
    int run = l / (2 * G), within = l % (2 * G);
    return within < G ? run * 2 * G + within + Offset : W + run * 2 * G + (within - G) + Offset;
}
template <int W, int G, class V, int... L>
[[gnu::always_inline]] inline V merge(V a, V b, Indices<L...>) {
    return __builtin_shufflevector(a, b, merge_lane<W, G, 0>(L)...) +
           __builtin_shufflevector(a, b, merge_lane<W, G, G>(L)...);
}
/// Vector whose lane i is the sum of the lanes of x[i], for up to `width` vectors x, and 0 beyond: a transposition that
/// adds as it goes.
template <class T, int count, int G = 1>
[[gnu::always_inline]] inline Vector<T> sum_lanes(Vector<T>* x) {
    constexpr int W = VectorOf<T>::width;
    if constexpr (G == W) {
        return x[0];
    } else {
        constexpr int pairs = (count + 1) / 2;
#pragma GCC unroll 8
        for (int i = 0; i < pairs; ++i) {
            const Vector<T> second = 2 * i + 1 < count ? x[2 * i + 1] : Vector<T>{};
            x[i] = merge<W, G>(x[2 * i], second, typename MakeIndices<W>::type{});
        }
        return sum_lanes<T, pairs, 2 * G>(x);
    }
}

/// c += aᵀb for one vector of rows (`part` of its elements, if Part) of M columns of A and N columns of B.
template <class T, int M, int N, bool Part>
[[gnu::always_inline]] inline void inner_step(Index part, const T* A, Index lda, const T* B, Index ldb, Vector<T>* c) {
    Vector<T> a[M];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) a[i] = load_rows<Part>(A + i * lda, part);
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
        const Vector<T> b = load_rows<Part>(B + j * ldb, part);
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) c[i + j * M] += a[i] * b;
    }
}

/// C(M×N) += A(k×M)ᵀ B(k×N), all of C in registers as vectors of partial sums; small tiles as several such sums side by
/// side, because one sum alone would wait for itself, and its rounding errors would add up over a longer chain. Longer
/// sums are cut into runs, so that narrow vectors have no longer chains than wide ones.
template <class T, int M, int N>
[[gnu::noinline]] void inner_tile(Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    constexpr int W = VectorOf<T>::width;
    constexpr int sums = (M * N + W - 1) / W * W, last = sums - W;
    constexpr int chains = M * N >= 8 ? 1 : M * N >= 4 ? 2 : M * N >= 2 ? 4 : 8;
    // narrow vectors have longer chains and more of them, whose errors add up: chains half as long keep the bound
    constexpr Index run = chains * (QUOIN_VECTOR_BYTES > 16 ? longest_chain : longest_chain / 2) * W;
    if (k > run) {
        T of_runs[M * N] = {};
        for (; k > run; k -= run, A += run, B += run) inner_tile<T, M, N>(run, A, lda, B, ldb, of_runs, M);
        inner_tile<T, M, N>(k, A, lda, B, ldb, of_runs, M);
        for (int j = 0; j < N; ++j) {
            for (int i = 0; i < M; ++i) C[i + j * ldc] += of_runs[i + j * M];
        }
        return;
    }
    Vector<T> c[chains][sums];
#pragma GCC unroll 8
    for (int s = 0; s < chains; ++s) {
#pragma GCC unroll 32
        for (int i = 0; i < M * N; ++i) c[s][i] = Vector<T>{};
    }
    Index p = 0;
    for (; p + chains * W <= k; p += chains * W) {
#pragma GCC unroll 8
        for (int s = 0; s < chains; ++s) inner_step<T, M, N, false>(W, A + p + s * W, lda, B + p + s * W, ldb, c[s]);
    }
    if constexpr (chains > 1) {
        for (; p + W <= k; p += W) inner_step<T, M, N, false>(W, A + p, lda, B + p, ldb, c[0]);
    }
    if (p < k) inner_step<T, M, N, true>(k - p, A + p, lda, B + p, ldb, c[0]);
#pragma GCC unroll 4
    for (int half = chains / 2; half > 0; half /= 2) {
        for (int s = 0; s < half; ++s) {
            for (int i = 0; i < M * N; ++i) c[s][i] += c[s + half][i];
        }
    }
    T sum[sums];
#pragma GCC unroll 8
    for (int s = 0; s < last; s += W) store(sum + s, sum_lanes<T, W>(c[0] + s));
    store(sum + last, sum_lanes<T, M * N - last>(c[0] + last));
    for (int j = 0; j < N; ++j) {
        for (int i = 0; i < M; ++i) C[i + j * ldc] += sum[i + j * M];
    }
}

template <class T, int M, int N>
void inner_edge(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    if constexpr (M > 1) {
        if (m < M) return inner_edge<T, M - 1, N>(m, n, k, A, lda, B, ldb, C, ldc);
    }
    if constexpr (N > 1) {
        if (n < N) return inner_edge<T, M, N - 1>(m, n, k, A, lda, B, ldb, C, ldc);
    }
    inner_tile<T, M, N>(k, A, lda, B, ldb, C, ldc);
}

template <class T>
void inner(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    constexpr int M = QUOIN_INNER_M, N = QUOIN_INNER_N;
    for (Index j = 0; j < n; j += N) {
        for (Index i = 0; i < m; i += M) {
            inner_edge<T, M, N>(m - i, n - j, k, A + i * lda, lda, B + j * ldb, ldb, C + i + j * ldc, ldc);
        }
    }
}

template <class T>
void inner_upper(Index n, Index k, const T* A, Index lda, T* C, Index ldc) {
    constexpr int M = QUOIN_INNER_M, N = QUOIN_INNER_N;
    for (Index j = 0; j < n; j += N) {
        const Index last = n < j + N ? n : j + N;  // tile columns [j, last) reach rows below `last`
        for (Index i = 0; i < last; i += M) {
            inner_edge<T, M, N>(last - i, n - j, k, A + i * lda, lda, A + j * lda, lda, C + i + j * ldc, ldc);
        }
    }
}

/// C(V vectors × N) −= A B(k×N); `part` elements of the last vector if Part.
template <class T, int V, int N, bool Part>
[[gnu::noinline]] void outer_tile(Index part, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    constexpr int W = VectorOf<T>::width;
    Vector<T> c[V * N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
#pragma GCC unroll 8
        for (int i = 0; i < V; ++i) c[i + j * V] = load_rows<Part>(C + i * W + j * ldc, part);
    }
    for (Index p = 0; p < k; ++p) {
        Vector<T> a[V];
#pragma GCC unroll 8
        for (int i = 0; i < V; ++i) a[i] = load_rows<Part>(A + i * W + p * lda, part);
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) {
            const T b = B[p + j * ldb];
#pragma GCC unroll 8
            for (int i = 0; i < V; ++i) c[i + j * V] -= a[i] * b;
        }
    }
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
#pragma GCC unroll 8
        for (int i = 0; i < V; ++i) store_rows<Part>(C + i * W + j * ldc, c[i + j * V], part);
    }
}

template <class T, int N>
void outer_columns(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    if constexpr (N > 1) {
        if (n < N) return outer_columns<T, N - 1>(m, n, k, A, lda, B, ldb, C, ldc);
    }
    constexpr Index W = width<T>, V = QUOIN_OUTER_V;
    Index i = 0;
    for (; i + V * W <= m; i += V * W) outer_tile<T, V, N, false>(0, k, A + i, lda, B, ldb, C + i, ldc);
    for (; i + W <= m; i += W) outer_tile<T, 1, N, false>(0, k, A + i, lda, B, ldb, C + i, ldc);
    if (i < m) outer_tile<T, 1, N, true>(m - i, k, A + i, lda, B, ldb, C + i, ldc);
}

template <class T>
void outer(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    constexpr int N = QUOIN_OUTER_N;
    for (Index j = 0; j < n; j += N) outer_columns<T, N>(m, n - j, k, A, lda, B + j * ldb, ldb, C + j * ldc, ldc);
}

/// One vector of rows of X := X R⁻¹ in registers, column by column: x_j := (x_j − Σ_{i<j} x_i r_ij) / r_jj. A division
/// takes as long as the sum before it: unless Divide, x_j is multiplied by `inverse`, the 1 / r_jj.
template <class T, int N, bool Part, bool Divide>
[[gnu::always_inline]] inline void solve_rows(Index part, T* X, Index ldx, const T* R, Index ldr, const T* inverse) {
    Vector<T> x[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
        Vector<T> s = load_rows<Part>(X + j * ldx, part);
#pragma GCC unroll 8
        for (int i = 0; i < j; ++i) s -= x[i] * R[i + j * ldr];
        x[j] = Divide ? s / R[j + j * ldr] : s * inverse[j];
        store_rows<Part>(X + j * ldx, x[j], part);
    }
}

template <class T, int N, bool Divide>
void solve_all_rows(Index m, T* X, Index ldx, const T* R, Index ldr, const T* inverse) {
    constexpr Index W = width<T>;
    Index i = 0;
    for (; i + W <= m; i += W) solve_rows<T, N, false, Divide>(0, X + i, ldx, R, ldr, inverse);
    if (i < m) solve_rows<T, N, true, Divide>(m - i, X + i, ldx, R, ldr, inverse);
}

template <class T, int N>
void solve_columns(Index m, Index n, T* X, Index ldx, const T* R, Index ldr) {
    if constexpr (N > 1) {
        if (n < N) return solve_columns<T, N - 1>(m, n, X, ldx, R, ldr);
    }
    // a reciprocal that is normal has a relative error of u, and any other one may have any
    constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    T inverse[N];
    bool normal = true;
    for (int j = 0; j < N; ++j) {
        inverse[j] = 1 / R[j + j * ldr];
        const T magnitude = inverse[j] < 0 ? -inverse[j] : inverse[j];
        normal = normal && magnitude >= least && magnitude <= most;
    }
    if (normal) {
        solve_all_rows<T, N, false>(m, X, ldx, R, ldr, inverse);
    } else {
        solve_all_rows<T, N, true>(m, X, ldx, R, ldr, inverse);
    }
}

template <class T>
void solve(Index m, Index n, T* X, Index ldx, const T* R, Index ldr) {
    static_assert(solve_width == 8);
    solve_columns<T, 8>(m, n, X, ldx, R, ldr);
}

template <class T>
void scale(Index m, T alpha, T* x) {
    for (Index i = 0; i < m; ++i) x[i] *= alpha;
}

/// One vector of rows: x := alpha x, and C −= x w for N columns; `part` of its elements if Part.
template <class T, int N, bool Part>
[[gnu::always_inline]] inline void reflect_rows(Index part, T alpha, T* x, const T* w, T* C, Index ldc) {
    const Vector<T> v = load_rows<Part>(x, part) * alpha;
    store_rows<Part>(x, v, part);
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) store_rows<Part>(C + j * ldc, load_rows<Part>(C + j * ldc, part) - v * w[j], part);
}

template <class T, int N = int(reflect_width)>
void reflect(Index m, Index n, T alpha, T* x, const T* w, T* C, Index ldc) {
    if constexpr (N > 0) {
        if (n < N) return reflect<T, N - 1>(m, n, alpha, x, w, C, ldc);
    }
    constexpr Index W = width<T>;
    Index i = 0;
    for (; i + W <= m; i += W) reflect_rows<T, N, false>(0, alpha, x + i, w, C + i, ldc);
    if (i < m) reflect_rows<T, N, true>(m - i, alpha, x + i, w, C + i, ldc);
}

template <class T>
void add_groups(Index count, const T* x, const T* row_signs, const GroupPlaces<T>* places, T* y) {
    constexpr Index W = width<T>;
    for (Index g = 0; g < count; ++g, x += 32, row_signs += 32) {
        const GroupPlaces<T>& group = places[g];
#pragma GCC unroll 8
        for (Index i = 0; i < 32; i += W) {
            const Vector<T> a = load(x + i) * load(row_signs + i);
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) {
                T* const to = y + group.to[k] + i;
                store(to, load(to) + group.sign[k] * a);
            }
        }
    }
}

template <class T>
MagnitudeBits<T> largest(Index m, const T* x) {
    using Bits = MagnitudeBits<T>;
    constexpr Index W = width<T>;
    const auto magnitudes = [](Vector<T> a) __attribute__((always_inline)) {
        return reinterpret_cast<Vector<Bits>>(a) & std::numeric_limits<Bits>::max();
    };
    const auto raise = [](Vector<Bits> & top, Vector<Bits> a) __attribute__((always_inline)) {
        top = a > top ? a : top;
    };
    // four vectors at a time: each chain waits for itself
    Vector<Bits> top[4] = {};
    Index i = 0;
    for (; i + 4 * W <= m; i += 4 * W) {
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) raise(top[c], magnitudes(load(x + i + c * W)));
    }
    for (; i + W <= m; i += W) raise(top[0], magnitudes(load(x + i)));
    if (i < m) raise(top[0], magnitudes(load_part(x + i, m - i)));
    raise(top[0], top[1]);
    raise(top[2], top[3]);
    raise(top[0], top[2]);
    Bits most = 0;
    for (Index l = 0; l < W; ++l) most = top[0][l] > most ? top[0][l] : most;
    return most;
}

}  // namespace
}  // namespace quoin::host

#include "host/kernels/lanes.hpp"

namespace quoin::host {
namespace {

template <class T>
constexpr Kernels<T> kernel_set = {QUOIN_ISA,     inner<T>,        inner_upper<T>,   outer<T>,        solve<T>,
                                   scale<T>,      reflect<T>,      add_groups<T>,    transpose<T>,    largest<T>,
                                   width<T>,      gather_lanes<T>, scatter_lanes<T>, factor_lanes<T>, factor_tiny<T>,
                                   form_lanes<T>, apply_lanes<T>,  solve_lanes<T>};

}  // namespace
}  // namespace quoin::host
