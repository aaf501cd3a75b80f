// The kernels of many small matrices at once, a matrix in each lane of a vector register: element (i, j) of all of them
// lies at X + (i + j·ld)·lanes. Included by microkernels.hpp.

namespace quoin::host {
namespace {

/// Columns whose sums a vector register each can hold, for two reflectors.
constexpr int reflect_cols = QUOIN_VECTOR_BYTES == 64 ? 8 : 4;

template <class T>
[[gnu::always_inline]] inline Vector<T> square_root(Vector<T> x) {
    constexpr Index W = width<T>;
    // an array, whose loop compilers make one instruction
    T roots[W];
    store(roots, x);
    for (Index l = 0; l < W; ++l) {
        roots[l] = sizeof(T) == sizeof(float) ? static_cast<T>(__builtin_sqrtf(static_cast<float>(roots[l])))
                                              : static_cast<T>(__builtin_sqrt(roots[l]));
    }
    return load(roots);
}

/// m with its lanes moved by G.
template <int W, int G, class Mask, int... L>
[[gnu::always_inline]] inline Mask rotate_lanes(Mask m, Indices<L...>) {
    return __builtin_shufflevector(m, m, (L + G) % W...);
}
/// Whether a comparison holds in some lane.
template <class T, int G = VectorOf<T>::width / 2, class Mask>
[[gnu::always_inline]] inline bool any_lane(Mask m) {
    constexpr int W = VectorOf<T>::width;
    if constexpr (G == 0) {
        return m[0] != 0;
    } else {
        return any_lane<T, G / 2>(m | rotate_lanes<W, G>(m, typename MakeIndices<W>::type{}));
    }
}

/// below := Σ x_i² over the h rows x under α at `a`; returns α² + below. Not inlined: each copy might round in its own
/// way, and a lane's bits depend on which one its neighbours ask for.
template <class T>
[[gnu::noinline]] Vector<T> lane_squares(Index h, const T* a, Vector<T>* below) {
    constexpr Index W = width<T>;
    const T* const x = a + W;
    Vector<T> total = {};
    for (Index first = 0; first < h; first += longest_chain) {
        const Index end = h < first + longest_chain ? h : first + longest_chain;
        Vector<T> s[4] = {};
        Index i = first;
        for (; i + 4 <= end; i += 4) {
#pragma GCC unroll 4
            for (int c = 0; c < 4; ++c) {
                const Vector<T> xi = load(x + (i + c) * W);
                s[c] += xi * xi;
            }
        }
#pragma GCC unroll 3
        for (int c = 0; c < 3; ++c) {
            const Vector<T> xi = i + c < end ? load(x + (i + c) * W) : Vector<T>{};
            s[c] += xi * xi;
        }
        total += (s[0] + s[1]) + (s[2] + s[3]);
    }
    *below = total;
    return load(a) * load(a) + total;
}

/// [c₀ᵀ; C] := (I − τ [1; v][1; v]ᵀ) [c₀ᵀ; C] for h rows of v and N columns, `ldc` elements apart.
template <class T, int N>
[[gnu::noinline]] void lane_reflect(Index h, const T* v, Vector<T> tau, T* C, Index ldc) {
    constexpr Index W = width<T>;
    Vector<T> w[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) w[j] = load(C + j * ldc);
    for (Index first = 0; first < h; first += longest_chain) {
        const Index end = h < first + longest_chain ? h : first + longest_chain;
        Vector<T> s[N] = {};
        for (Index i = first; i < end; ++i) {
            const Vector<T> vi = load(v + i * W);
#pragma GCC unroll 8
            for (int j = 0; j < N; ++j) s[j] += vi * load(C + (i + 1) * W + j * ldc);
        }
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) w[j] += s[j];
    }
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
        w[j] *= tau;
        store(C + j * ldc, load(C + j * ldc) - w[j]);
    }
    for (Index i = 0; i < h; ++i) {
        const Vector<T> vi = load(v + i * W);
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) {
            T* const c = C + (i + 1) * W + j * ldc;
            store(c, load(c) - vi * w[j]);
        }
    }
}

/// C := (I − τ₁v₁v₁ᵀ)(I − τ₀v₀v₀ᵀ) C or, unless `forward`, its transpose, for N columns of h + 2 rows: v₀ = [1; v], v₁
/// = [0; 1; v']. Twice the work for each entry that is loaded and stored.
template <class T, int N>
[[gnu::noinline]] void lane_reflect_two(bool forward, Index h, const T* v0, const T* v1, Vector<T> tau0, Vector<T> tau1,
                                        T* C, Index ldc) {
    constexpr Index W = width<T>;
    // w₀ = v₀ᵀC, w₁ = v₁ᵀC, g = v₀ᵀv₁
    const Vector<T> v01 = load(v0);
    Vector<T> w0[N], w1[N], g = v01;
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
        w1[j] = load(C + W + j * ldc);
        w0[j] = load(C + j * ldc) + v01 * w1[j];
    }
    for (Index first = 0; first < h; first += longest_chain) {
        const Index end = h < first + longest_chain ? h : first + longest_chain;
        Vector<T> s0[N] = {}, s1[N] = {}, cross = {};
        for (Index i = first; i < end; ++i) {
            const Vector<T> x = load(v0 + (i + 1) * W), y = load(v1 + i * W);
            cross += x * y;
#pragma GCC unroll 8
            for (int j = 0; j < N; ++j) {
                const Vector<T> c = load(C + (i + 2) * W + j * ldc);
                s0[j] += x * c;
                s1[j] += y * c;
            }
        }
        g += cross;
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) {
            w0[j] += s0[j];
            w1[j] += s1[j];
        }
    }
    // w₀ := τ₀w₀, w₁ := τ₁(w₁ − g w₀), or in the other order
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
        if (forward) {
            w0[j] *= tau0;
            w1[j] = tau1 * (w1[j] - g * w0[j]);
        } else {
            w1[j] *= tau1;
            w0[j] = tau0 * (w0[j] - g * w1[j]);
        }
        T* const c = C + j * ldc;
        store(c, load(c) - w0[j]);
        store(c + W, load(c + W) - v01 * w0[j] - w1[j]);
    }
    for (Index i = 0; i < h; ++i) {
        const Vector<T> x = load(v0 + (i + 1) * W), y = load(v1 + i * W);
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) {
            T* const c = C + (i + 2) * W + j * ldc;
            store(c, load(c) - x * w0[j] - y * w1[j]);
        }
    }
}

/// reflect(number, j) for p columns from the j-th on, as many at once as the registers have sums for.
template <int N = reflect_cols, class Reflect>
[[gnu::always_inline]] inline void for_columns(Index p, const Reflect& reflect, Index j = 0) {
    for (; j + N <= p; j += N) reflect(Indices<N>{}, j);
    if constexpr (N > 1) {
        if (j < p) for_columns<N - 1>(p, reflect, j);
    }
}
template <class T>
void lane_reflect_all(Index h, const T* v, Vector<T> tau, Index p, T* C, Index ldc) {
    for_columns(p, [&]<int N>(Indices<N>, Index j) { lane_reflect<T, N>(h, v, tau, C + j * ldc, ldc); });
}

template <class T>
void apply_lanes(bool transpose, Index m, Index k, Index ld, const T* X, const T* tau, Index p, T* C) {
    constexpr Index W = width<T>;
    const Index pairs = (k + 1) / 2;
    for (Index first = 0; first < p; first += lane_block) {
        const Index cols = p - first < lane_block ? p - first : lane_block;
        for (Index step = 0; step < pairs; ++step) {
            const Index j = 2 * (transpose ? step : pairs - 1 - step);
            const T *const v0 = X + (j + 1 + j * ld) * W, *const v1 = v0 + (1 + ld) * W;
            const Vector<T> t0 = load(tau + j * W);
            T* const c = C + (j + first * ld) * W;
            if (j + 1 == k) {
                lane_reflect_all<T>(m - j - 1, v0, t0, cols, c, ld * W);
                continue;
            }
            const Vector<T> t1 = load(tau + (j + 1) * W);
            for_columns(cols, [&]<int N>(Indices<N>, Index l) {
                lane_reflect_two<T, N>(transpose, m - j - 2, v0, v1, t0, t1, c + l * ld * W, ld * W);
            });
        }
    }
}

/// x := 2^±e x, an e for each lane, over h rows. By two factors, since 2^±e itself may be 0 or Inf.
template <class T>
void scale_lanes(Index h, T* x, const int* e, int sign) {
    constexpr Index W = width<T>;
    T first[W], second[W];
    for (Index l = 0; l < W; ++l) {
        first[l] = static_cast<T>(__builtin_ldexp(1.0, sign * (e[l] / 2)));
        second[l] = static_cast<T>(__builtin_ldexp(1.0, sign * (e[l] - e[l] / 2)));
    }
    const Vector<T> a = load(first), b = load(second);
    for (Index i = 0; i < h; ++i) store(x + i * W, load(x + i * W) * a * b);
}

/// Where a lane is `far`, x := 2^-e x over h rows with the e of its largest entry, unless that is 0 or not finite; e is
/// 0 elsewhere. Returns whether an e is not 0.
template <class T, class Mask>
bool normalise_lanes(Index h, T* x, Vector<T> largest, Mask far, int* e) {
    for (Index l = 0; l < width<T>; ++l) e[l] = 0;
    if (!any_lane<T>(far & (largest > 0))) return false;
    bool any = false;
    for (Index l = 0; l < width<T>; ++l) {
        const bool scaled = far[l] && largest[l] > 0 && largest[l] <= std::numeric_limits<T>::max();
        e[l] = scaled ? __builtin_ilogb(static_cast<double>(largest[l])) : 0;
        any = any || e[l] != 0;
    }
    if (any) scale_lanes<T>(h, x, e, -1);
    return any;
}

/// max |x_i| over h rows, NaN left out; finite += Σ 0 x_i, which is 0 unless there is NaN or Inf.
template <class T>
[[gnu::always_inline]] inline Vector<T> largest_lanes(Index h, const T* x, Vector<T>* finite) {
    constexpr Index W = width<T>;
    // four rows at a time: each chain waits for itself
    Vector<T> high[4] = {}, low[4] = {}, sum[4] = {};
    const auto row = [&](Index i, int c) __attribute__((always_inline)) {
        const Vector<T> a = load(x + i * W);
        high[c] = a > high[c] ? a : high[c];
        low[c] = a < low[c] ? a : low[c];
        sum[c] += a * 0;
    };
    Index i = 0;
    for (; i + 4 <= h; i += 4) {
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) row(i + c, c);
    }
    for (; i < h; ++i) row(i, 0);
    Vector<T> largest = {};
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
        largest = high[c] > largest ? high[c] : largest;
        largest = -low[c] > largest ? -low[c] : largest;
        *finite += sum[c];
    }
    return largest;
}

/// Entries and norms between 1/safe and safe have squares that neither overflow nor underflow where it counts.
template <class T>
constexpr T safe = sizeof(T) == sizeof(float) ? T(0x1p30) : T(0x1p400);

/// H = I − τ [1; v][1; v]ᵀ with H [α; x] = [β; 0] and v = scale·x, from α and the squares of the norms of [α; x] and of
/// x.
template <class T>
struct LaneReflector {
    [[gnu::always_inline]] LaneReflector(Vector<T> alpha, Vector<T> squares, Vector<T> below) {
        // ν = ‖[α; x]‖: β = −sgn(α) ν, τ = 1 + |α|/ν, v = sgn(α) x/(|α| + ν); H = I if nothing is below α
        const auto nothing = below == 0, negative = alpha < 0;
        const Vector<T> one = Vector<T>{} + T(1), norm = square_root<T>(squares);
        const Vector<T> magnitude = negative ? -alpha : alpha, sum = magnitude + norm;
        // both quotients of one division, ρ = 1/(ν(|α| + ν)), each with a step of Newton for the last bit
        const Vector<T> rho = one / (norm * sum);
        Vector<T> inverse = norm * rho, of_norm = sum * rho;
        inverse += inverse * (one - sum * inverse);
        of_norm += of_norm * (one - norm * of_norm);
        beta = nothing ? alpha : negative ? norm : -norm;
        tau = nothing ? Vector<T>{} : one + magnitude * of_norm;
        scale = nothing ? Vector<T>{} : negative ? -inverse : inverse;
    }
    Vector<T> beta, tau, scale;
};

/// Returns the lane of [a b], two vectors G apart, that a step of the transposition puts into lane l of a or, if
/// `Second`, of b.
template <int W, int G, bool Second>
constexpr int exchange_lane(int l) {
    const bool upper = (l & G) != 0;
    return Second ? (upper ? W + l : l + G) : (upper ? W + l - G : l);
}
template <int W, int G, class V, int... L>
[[gnu::always_inline]] inline void exchange(V& a, V& b, Indices<L...>) {
    const V first = __builtin_shufflevector(a, b, exchange_lane<W, G, false>(L)...);
    b = __builtin_shufflevector(a, b, exchange_lane<W, G, true>(L)...);
    a = first;
}
/// In every run of Q lanes: lane l of x[i] and lane i of x[l] change places, for Q vectors x.
template <class T, int Q, int G = 1>
[[gnu::always_inline]] inline void transpose_lanes(Vector<T>* x) {
    constexpr int W = VectorOf<T>::width;
    if constexpr (G < Q) {
#pragma GCC unroll 16
        for (int i = 0; i < Q; ++i) {
            if ((i & G) == 0) exchange<W, G>(x[i], x[i + G], typename MakeIndices<W>::type{});
        }
        transpose_lanes<T, Q, 2 * G>(x);
    }
}

/// Q consecutive elements in memory.
template <class T, int Q>
struct Piece {
    typedef T type __attribute__((vector_size(Q * sizeof(T))));
    typedef T unaligned __attribute__((vector_size(Q * sizeof(T)), aligned(alignof(T)), may_alias));
};
/// The most elements of a matrix that are moved into or out of a vector as one piece. A few elements take fewer
/// shuffles than whole vectors do. min_piece: the fewest, other than one.
template <class T>
constexpr int max_piece = VectorOf<T>::width * sizeof(T) > 16 ? VectorOf<T>::width / 2 : VectorOf<T>::width;
template <class T>
constexpr int min_piece = 16 / sizeof(T);

template <class V, int... L>
[[gnu::always_inline]] inline auto concatenate(V a, V b, Indices<L...>) {
    return __builtin_shufflevector(a, b, L...);
}
template <int First, class V, int... L>
[[gnu::always_inline]] inline auto part(V a, Indices<L...>) {
    return __builtin_shufflevector(a, a, (First + L)...);
}
/// Loads pieces of Q elements of `Count` matrices, Q·stride apart, into consecutive lanes.
template <class T, int Q, int Count = VectorOf<T>::width / Q>
[[gnu::always_inline]] inline auto load_pieces(const T* a, Index stride) {
    if constexpr (Count == 1) {
        return typename Piece<T, Q>::type(*reinterpret_cast<const typename Piece<T, Q>::unaligned*>(a));
    } else {
        return concatenate(load_pieces<T, Q, Count / 2>(a, stride),
                           load_pieces<T, Q, Count / 2>(a + Count / 2 * Q * stride, stride),
                           typename MakeIndices<Q * Count>::type{});
    }
}
template <class T, int Q, int First = 0>
[[gnu::always_inline]] inline void store_pieces(T* b, Index stride, Vector<T> x) {
    if constexpr (First < VectorOf<T>::width) {
        *reinterpret_cast<typename Piece<T, Q>::unaligned*>(b) = part<First>(x, typename MakeIndices<Q>::type{});
        store_pieces<T, Q, First + Q>(b + Q * stride, stride, x);
    }
}
/// Lane l of x[e] := a[l·stride + e] for e < Q; and back, which spoils x.
template <class T, int Q>
[[gnu::always_inline]] inline void load_across(const T* a, Index stride, Vector<T>* x) {
    if constexpr (Q == 1) {
        Vector<T> y = {};
#pragma GCC unroll 16
        for (int l = 0; l < width<T>; ++l) y[l] = a[l * stride];
        x[0] = y;
    } else {
#pragma GCC unroll 16
        for (int i = 0; i < Q; ++i) x[i] = load_pieces<T, Q>(a + i * stride, stride);
        transpose_lanes<T, Q>(x);
    }
}
template <class T, int Q>
[[gnu::always_inline]] inline void store_across(T* b, Index stride, Vector<T>* x) {
    if constexpr (Q == 1) {
#pragma GCC unroll 16
        for (int l = 0; l < width<T>; ++l) b[l * stride] = x[0][l];
    } else {
        transpose_lanes<T, Q>(x);
#pragma GCC unroll 16
        for (int i = 0; i < Q; ++i) store_pieces<T, Q>(b + i * stride, stride, x[i]);
    }
}
/// Loads (or stores) `Count` elements of each lane as load_across (store_across) does, in the largest pieces.
template <class T, int Count, int Q = max_piece<T>>
[[gnu::always_inline]] inline void load_all_across(const T* a, Index stride, Vector<T>* x) {
    if constexpr (Count >= Q) {
        load_across<T, Q>(a, stride, x);
        load_all_across<T, Count - Q, Q>(a + Q, stride, x + Q);
    } else if constexpr (Count > 0) {
        load_all_across<T, Count, (Q > min_piece<T> ? Q / 2 : 1)>(a, stride, x);
    }
}
template <class T, int Count, int Q = max_piece<T>>
[[gnu::always_inline]] inline void store_all_across(T* b, Index stride, Vector<T>* x) {
    if constexpr (Count >= Q) {
        store_across<T, Q>(b, stride, x);
        store_all_across<T, Count - Q, Q>(b + Q, stride, x + Q);
    } else if constexpr (Count > 0) {
        store_all_across<T, Count, (Q > min_piece<T> ? Q / 2 : 1)>(b, stride, x);
    }
}

template <class T>
void transpose(Index m, Index n, const T* A, Index lda, T* B, Index ldb) {
    constexpr Index W = width<T>;
    Index j = 0;
    for (; j + W <= n; j += W) {
        Index i = 0;
        const auto piece = [&]<int Q>(Indices<Q>) __attribute__((always_inline)) {
            for (; i + Q <= m; i += Q) {
                Vector<T> x[Q];
                load_across<T, Q>(A + i + j * lda, lda, x);
#pragma GCC unroll 16
                for (int t = 0; t < Q; ++t) store(B + j + (i + t) * ldb, x[t]);
            }
        };
        piece(Indices<VectorOf<T>::width>{});
        piece(Indices<max_piece<T>>{});
        piece(Indices<1>{});
    }
    for (; j < n; ++j) {
        for (Index i = 0; i < m; ++i) B[j + i * ldb] = A[i + j * lda];
    }
}

/// Returns into how many chains of additions each of `sums` sums is split. A single chain would wait for its own
/// additions.
constexpr int sum_chains(int sums) { return sums >= 4 ? 1 : sums >= 2 ? 2 : 4; }

/// x := the thin Q, M×N, of its reflectors, by the operations of form_lanes in their order.
template <class T, int M, int N>
[[gnu::always_inline]] inline void form_in_registers(Vector<T>* x, const Vector<T>* t) {
#pragma GCC unroll 4
    for (int j = N - 1; j >= 0; --j) {
        Vector<T>* const a = x + j + j * M;
#pragma GCC unroll 4
        for (int l = 1; l < N - j; ++l) {
            Vector<T>* const c = a + l * M;
            Vector<T> sum = {};
#pragma GCC unroll 4
            for (int i = 1; i < M - j; ++i) sum += a[i] * c[i];
            const Vector<T> w = (c[0] + sum) * t[j];
            c[0] -= w;
#pragma GCC unroll 4
            for (int i = 1; i < M - j; ++i) c[i] -= a[i] * w;
        }
        // H e_j = e_j − τ [1; v]
        a[0] = T(1) - t[j];
#pragma GCC unroll 4
        for (int i = 1; i < M - j; ++i) a[i] = -t[j] * a[i];
#pragma GCC unroll 4
        for (int i = 1; i <= j; ++i) a[-i] = Vector<T>{};
    }
}

/// factor_tiny, by the operations of factor_lanes in their order, but entries stay in registers.
template <class T, int M, int N>
[[gnu::noinline]] Index factor_in_registers(Index count, const T* A, Index a_stride, bool by_rows, bool upper, T* B,
                                            Index b_stride, T* other, Index other_stride) {
    constexpr Index W = width<T>, packed = (M + 1) * N;
    for (Index group = 0; group < count; ++group) {
        Vector<T> x[M * N], t[N];
        if (a_stride == 0) {
#pragma GCC unroll 16
            for (int i = 0; i < M * N; ++i) x[i] = load(A + (group * packed + i) * W);
        } else {
            load_all_across<T, M * N>(A + group * W * a_stride, a_stride, x);
            if (by_rows) {
                Vector<T> y[M * N];
#pragma GCC unroll 16
                for (int i = 0; i < M * N; ++i) y[i] = x[i % M * N + i / M];
#pragma GCC unroll 16
                for (int i = 0; i < M * N; ++i) x[i] = y[i];
            }
        }
        auto inside = x[0] == x[0];
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) {
            Vector<T>* const a = x + j + j * M;
            // sums[l] = xᵀc_l as sum_rows has them
            Vector<T> sums[N];
#pragma GCC unroll 4
            for (int l = 0; l < N - j; ++l) {
                Vector<T> s[4] = {};
#pragma GCC unroll 4
                for (int i = 1; i < M - j; ++i) {
                    Vector<T>& chain = s[(i - 1) % sum_chains(N - j)];
                    chain += a[i] * a[i + l * M];
                }
                sums[l] = (s[0] + s[1]) + (s[2] + s[3]);
            }
            const Vector<T> squares = a[0] * a[0] + sums[0];
            // ‖A e_j‖ <= safe, and an entry of it is above 1/safe
            Vector<T> total = squares;
#pragma GCC unroll 4
            for (int i = 1; i <= j; ++i) total += a[-i] * a[-i];
            inside &= (squares >= 16 / safe<T> / safe<T>)&(total <= safe<T> * safe<T> / 16);
            t[j] = Vector<T>{};
            if (j + 1 == M) continue;
            const LaneReflector<T> H(a[0], squares, sums[0]);
            a[0] = H.beta;
            t[j] = H.tau;
#pragma GCC unroll 4
            for (int i = 1; i < M - j; ++i) a[i] *= H.scale;
#pragma GCC unroll 4
            for (int l = 1; l < N - j; ++l) {
                Vector<T>* const c = a + l * M;
                const Vector<T> w = H.tau * (c[0] + H.scale * sums[l]);
                c[0] -= w;
#pragma GCC unroll 4
                for (int i = 1; i < M - j; ++i) c[i] -= a[i] * w;
            }
        }
        if (any_lane<T>(~inside)) return group;
        if (b_stride == 0) {
#pragma GCC unroll 16
            for (int i = 0; i < M * N; ++i) store(B + (group * packed + i) * W, x[i]);
#pragma GCC unroll 4
            for (int j = 0; j < N; ++j) store(B + (group * packed + M * N + j) * W, t[j]);
        } else if (!upper) {
            store_all_across<T, M * N>(B + group * W * b_stride, b_stride, x);
            store_all_across<T, N>(other + group * W * other_stride, other_stride, t);
        } else {
            Vector<T> R[N * N];
#pragma GCC unroll 16
            for (int i = 0; i < N * N; ++i) R[i] = i % N <= i / N ? x[i % N + i / N * M] : Vector<T>{};
            store_all_across<T, N * N>(B + group * W * b_stride, b_stride, R);
            if (!other) continue;
            form_in_registers<T, M, N>(x, t);
            store_all_across<T, M * N>(other + group * W * other_stride, other_stride, x);
        }
    }
    return count;
}
template <class T, int M = tiny_rows, int N = tiny_rows>
Index factor_tiny(Index m, Index n, Index count, const T* A, Index a_stride, bool by_rows, bool upper, T* B,
                  Index b_stride, T* other, Index other_stride) {
    if constexpr (M > 1) {
        if (m < M)
            return factor_tiny<T, M - 1, M - 1>(m, n, count, A, a_stride, by_rows, upper, B, b_stride, other,
                                                other_stride);
    }
    if constexpr (N > 1) {
        if (n < N)
            return factor_tiny<T, M, N - 1>(m, n, count, A, a_stride, by_rows, upper, B, b_stride, other, other_stride);
    }
    return factor_in_registers<T, M, N>(count, A, a_stride, by_rows, upper, B, b_stride, other, other_stride);
}

/// sums[l] := Σ row(i)[l] over h rows, l < A, where row(i, s) adds row i to s; cut into runs of `longest_chain`.
template <class T, int A, class Row>
[[gnu::always_inline]] inline void sum_rows(Index h, Vector<T>* sums, const Row& row) {
    constexpr int chains = sum_chains(A);
#pragma GCC unroll 8
    for (int l = 0; l < A; ++l) sums[l] = Vector<T>{};
    for (Index first = 0; first < h; first += longest_chain) {
        const Index end = h < first + longest_chain ? h : first + longest_chain;
        Vector<T> s[4][A] = {};
        Index i = first;
        for (; i + chains <= end; i += chains) {
#pragma GCC unroll 4
            for (int c = 0; c < chains; ++c) row(i + c, s[c]);
        }
#pragma GCC unroll 4
        for (int c = 0; c + 1 < chains; ++c) {
            if (i + c < end) row(i + c, s[c]);
        }
#pragma GCC unroll 8
        for (int l = 0; l < A; ++l) {
            if constexpr (chains == 1) sums[l] += s[0][l];
            if constexpr (chains == 2) sums[l] += s[0][l] + s[1][l];
            if constexpr (chains == 4) sums[l] += (s[0][l] + s[1][l]) + (s[2][l] + s[3][l]);
        }
    }
}

/// sums := xᵀ[x C]. x: the h rows below α at `a`. C: these rows of the next N columns, `ldc` elements apart.
template <class T, int N>
[[gnu::noinline]] void lane_products(Index h, const T* a, Index ldc, Vector<T>* sums) {
    constexpr Index W = width<T>;
    sum_rows<T, N + 1>(
        h, sums, [&](Index i, Vector<T> * s) __attribute__((always_inline)) {
            const T* const c = a + (i + 1) * W;
            const Vector<T> x = load(c);
            s[0] += x * x;
#pragma GCC unroll 8
            for (int l = 1; l <= N; ++l) s[l] += x * load(c + l * ldc);
        });
}

/// Stores v := scale·x in place of x, and [c₀ᵀ; C] := H [c₀ᵀ; C] with H = I − τ [1; v][1; v]ᵀ, in one pass over the
/// rows. On entry `sums` holds the products of this column, as lane_products computes them; on exit the products of the
/// next column.
template <class T, int N>
[[gnu::noinline]] void lane_step(Index h, T* a, Index ldc, Vector<T> tau, Vector<T> scale, Vector<T>* sums) {
    constexpr Index W = width<T>;
    // w = τ (c₀ + scale·Cᵀx)
    Vector<T> w[N + 1];
#pragma GCC unroll 8
    for (int l = 1; l <= N; ++l) {
        const Vector<T> c = load(a + l * ldc);
        w[l] = tau * (c + scale * sums[l]);
        store(a + l * ldc, c - w[l]);
    }
    const auto update = [&](T * x, Vector<T> * c) __attribute__((always_inline)) {
        const Vector<T> v = load(x) * scale;
        store(x, v);
#pragma GCC unroll 8
        for (int l = 1; l <= N; ++l) {
            c[l] = load(x + l * ldc) - v * w[l];
            store(x + l * ldc, c[l]);
        }
    };
    Vector<T> c[N + 1];
    if constexpr (N == 0) {
        for (Index i = 0; i < h; ++i) update(a + (i + 1) * W, c);
    } else if (h > 0) {
        update(a + W, c);
        sum_rows<T, N>(
            h - 1, sums, [&](Index i, Vector<T> * s) __attribute__((always_inline)) {
                Vector<T> row[N + 1];
                update(a + (i + 2) * W, row);
#pragma GCC unroll 8
                for (int l = 1; l <= N; ++l) s[l - 1] += row[1] * row[l];
            });
    }
}

/// work(number) for n <= N.
template <int N, class Work>
[[gnu::always_inline]] inline void for_number(Index n, const Work& work) {
    if constexpr (N > 0) {
        if (n < N) return for_number<N - 1>(n, work);
    }
    work(Indices<N>{});
}

template <class T>
unsigned factor_lanes(Index m, Index first, Index end, Index ld, T* X, T* tau, int* e) {
    constexpr Index W = width<T>;
    if (first == 0 && end <= m && m <= tiny_rows && ld == m && tau == X + m * end * W &&
        factor_tiny<T>(m, end, 1, X, 0, false, false, X, 0, tau, 0) == 1)
        return 0;
    // columns whose largest entry is beyond 2^±safe are factored as 2^-e times themselves
    Vector<T> finite = {};
    bool scaled = false;
    for (Index j = first; j < end; ++j) {
        T* const x = X + j * ld * W;
        const Vector<T> largest = largest_lanes<T>(m, x, &finite);
        scaled |= normalise_lanes<T>(m, x, largest, (largest > safe<T>) | (largest < 1 / safe<T>), e + (j - first) * W);
    }
    unsigned not_finite = 0;
    if (any_lane<T>(finite != 0)) {
        for (Index l = 0; l < W; ++l) not_finite |= static_cast<unsigned>(!(finite[l] == 0)) << l;
    }

    // smaller squares lose digits; larger ones than T's do not occur
    constexpr T low =
        std::numeric_limits<T>::min() / (std::numeric_limits<T>::epsilon() * std::numeric_limits<T>::epsilon());
    apply_lanes<T>(true, m, first < m ? first : m, ld, X, tau, end - first, X + first * ld * W);
    Vector<T> sums[lane_block];
    for (Index j = first; j < end && j < m; ++j) {
        const Index h = m - j - 1, right = end - j - 1;
        T* const a = X + (j + j * ld) * W;
        const auto multiply = [&] {
            for_number<lane_block - 1>(right, [&]<int N>(Indices<N>) { lane_products<T, N>(h, a, ld * W, sums); });
        };
        if (j == first) multiply();
        const auto small = load(a) * load(a) + sums[0] < low;
        bool rescaled = any_lane<T>(small);
        int exponents[W];
        if (rescaled) {
            Vector<T> unused = {};
            rescaled = normalise_lanes<T>(h + 1, a, largest_lanes<T>(h + 1, a, &unused), small, exponents);
            multiply();
        }
        const LaneReflector<T> H(load(a), load(a) * load(a) + sums[0], sums[0]);
        store(a, H.beta);
        if (rescaled) scale_lanes<T>(1, a, exponents, 1);
        store(tau + j * W, H.tau);
        for_number<lane_block - 1>(right,
                                   [&]<int N>(Indices<N>) { lane_step<T, N>(h, a, ld * W, H.tau, H.scale, sums); });
    }
    if (scaled) {
        for (Index j = first; j < end; ++j) scale_lanes<T>(j < m ? j + 1 : m, X + j * ld * W, e + (j - first) * W, 1);
    }
    return not_finite;
}

template <class T>
void form_lanes(Index m, Index k, Index ld, T* X, const T* tau) {
    constexpr Index W = width<T>;
    for (Index end = k; end > 0;) {
        const Index first = (end - 1) / lane_block * lane_block;
        for (Index j = end; j-- > first;) {
            const Index h = m - j - 1;
            T* const a = X + (j + j * ld) * W;
            const Vector<T> t = load(tau + j * W);
            lane_reflect_all<T>(h, a + W, t, end - j - 1, a + ld * W, ld * W);
            // H e_j = e_j − τ [1; v]
            store(a, T(1) - t);
            for (Index i = 1; i <= h; ++i) store(a + i * W, -t * load(a + i * W));
            for (Index i = 1; i <= j; ++i) store(a - i * W, Vector<T>{});
        }
        apply_lanes<T>(false, m, first, ld, X, tau, end - first, X + first * ld * W);
        end = first;
    }
}

/// N columns of C := op(R)⁻¹ C for n×n R, columns `ldc` elements apart.
template <class T, int N>
[[gnu::noinline]] void lane_solve(bool transpose, Index n, Index ld, const T* R, T* C, Index ldc) {
    constexpr Index W = width<T>;
    for (Index step = 0; step < n; ++step) {
        const Index j = transpose ? step : n - 1 - step;
        const T* const r = R + j * ld * W;
        const Vector<T> diagonal = load(r + j * W);
        Vector<T> x[N];
#pragma GCC unroll 8
        for (int l = 0; l < N; ++l) x[l] = load(C + j * W + l * ldc);
        if (transpose) {
            // y_j = (c_j − Σ r_ij y_i)/r_jj
            for (Index i = 0; i < j; ++i) {
                const Vector<T> ri = load(r + i * W);
#pragma GCC unroll 8
                for (int l = 0; l < N; ++l) x[l] -= ri * load(C + i * W + l * ldc);
            }
        }
#pragma GCC unroll 8
        for (int l = 0; l < N; ++l) {
            x[l] /= diagonal;
            store(C + j * W + l * ldc, x[l]);
        }
        if (transpose) continue;
        // x_j = c_j/r_jj, c −= r_j x_j
        for (Index i = 0; i < j; ++i) {
            const Vector<T> ri = load(r + i * W);
#pragma GCC unroll 8
            for (int l = 0; l < N; ++l) store(C + i * W + l * ldc, load(C + i * W + l * ldc) - ri * x[l]);
        }
    }
}
template <class T>
void lane_solve_all(bool transpose, Index n, Index ld, const T* R, Index p, T* C) {
    constexpr Index W = width<T>;
    Index j = 0;
    for (; j + 4 <= p; j += 4) lane_solve<T, 4>(transpose, n, ld, R, C + j * ld * W, ld * W);
    for (; j < p; ++j) lane_solve<T, 1>(transpose, n, ld, R, C + j * ld * W, ld * W);
}

/// Σ |x_i| over h rows.
template <class T>
[[gnu::noinline]] Vector<T> lane_sum(Index h, const T* x) {
    Vector<T> sum = {};
    for (Index i = 0; i < h; ++i) {
        const Vector<T> a = load(x + i * width<T>);
        sum += a < 0 ? -a : a;
    }
    return sum;
}

/// *condition := κ₁(R); returns κ₁(RD), the diagonal D scaling the columns of R to unit norm, or NaN where their norms
/// are beyond 2^±safe. inverse: n + 1 columns of workspace.
template <class T>
[[gnu::noinline]] Vector<T> lane_conditions(Index n, Index ld, const T* R, T* inverse, Vector<T>* condition) {
    constexpr Index W = width<T>;
    constexpr T range = 32 * safe<T>;
    T* const d = inverse + n * ld * W;
    Vector<T> norm = {}, scaled_norm = {}, poison = {};
    for (Index j = 0; j < n; ++j) {
        T* const x = inverse + j * ld * W;
        for (Index i = 0; i < n; ++i) store(x + i * W, Vector<T>{} + T(i == j));
        const T* const r = R + j * ld * W;
        const Vector<T> sum = lane_sum<T>(j + 1, r);
        // Σ r_ij², which neither overflows nor underflows where it counts
        Vector<T> below;
        const Vector<T> squares = lane_squares<T>(j, r, &below), length = square_root<T>(squares);
        const Vector<T> scaled = sum / length;
        store(d + j * W, length);
        norm = sum > norm ? sum : norm;
        scaled_norm = scaled > scaled_norm ? scaled : scaled_norm;
        const auto inside = (length <= range) & (length >= 1 / range);
        poison = inside ? poison : poison + static_cast<T>(__builtin_nan(""));
    }
    // R⁻¹, four columns at a time down to the last one's diagonal
    Vector<T> inverse_norm = {}, scaled_inverse_norm = {};
    for (Index j = 0; j < n; ++j) {
        T* const x = inverse + j * ld * W;
        if (j % 4 == 0 && j + 4 <= n) lane_solve<T, 4>(false, j + 4, ld, R, x, ld * W);
        if (j >= n / 4 * 4) lane_solve<T, 1>(false, j + 1, ld, R, x, ld * W);
        const Vector<T> sum = lane_sum<T>(j + 1, x);
        // ‖(RD)⁻¹‖ = ‖D⁻¹R⁻¹‖
        for (Index i = 0; i <= j; ++i) store(x + i * W, load(x + i * W) * load(d + i * W));
        const Vector<T> scaled = lane_sum<T>(j + 1, x);
        inverse_norm = sum > inverse_norm ? sum : inverse_norm;
        scaled_inverse_norm = scaled > scaled_inverse_norm ? scaled : scaled_inverse_norm;
        poison += sum * 0;
    }
    *condition = norm * inverse_norm;
    return scaled_norm * scaled_inverse_norm + poison;
}

/// Where a lane is `refused`, x := NaN over h rows.
template <class T, class Mask>
[[gnu::always_inline]] inline void refuse_lanes(Index h, T* x, Mask refused) {
    const Vector<T> nothing = Vector<T>{} + static_cast<T>(__builtin_nan(""));
    for (Index i = 0; i < h; ++i) store(x + i * width<T>, refused ? nothing : load(x + i * width<T>));
}

template <class T>
unsigned solve_lanes(bool shortest, Index m, Index n, Index ld, const T* X, const T* tau, Index p, T* C, T* norms,
                     T* condition, double rcond, T* work) {
    constexpr Index W = width<T>;
    Vector<T> kappa, finite = {};
    const Vector<T> scaled = lane_conditions<T>(n, ld, X, work, &kappa), least = Vector<T>{} + static_cast<T>(rcond);
    auto accepted = T(1) / scaled > least;
    for (Index j = 0; j < p; ++j) {
        const Vector<T> largest = largest_lanes<T>(shortest ? n : m, C + j * ld * W, &finite);
        accepted &= (largest == 0) | ((largest <= safe<T>)&(largest >= 1 / safe<T>));
    }
    accepted &= finite == 0;
    if (shortest) {
        // Rᵀ Y = B, X = Q [Y; 0]
        lane_solve_all<T>(true, n, ld, X, p, C);
        for (Index j = 0; j < p; ++j) {
            for (Index i = n; i < m; ++i) store(C + (i + j * ld) * W, Vector<T>{});
            store(norms + j * W, Vector<T>{});
        }
        apply_lanes<T>(false, m, n, ld, X, tau, p, C);
    } else {
        // QᵀB = [C₁; C₂], R X = C₁, ‖A x_j − b_j‖ = ‖C₂(:, j)‖
        apply_lanes<T>(true, m, n, ld, X, tau, p, C);
        for (Index j = 0; j < p; ++j) {
            Vector<T> below, squares = {};
            if (m > n) squares = lane_squares<T>(m - n - 1, C + (n + j * ld) * W, &below);
            store(norms + j * W, square_root<T>(squares));
        }
        lane_solve_all<T>(false, n, ld, X, p, C);
    }
    store(condition, kappa);
    unsigned refused = 0;
    if (any_lane<T>(~accepted)) {
        for (Index l = 0; l < W; ++l) refused |= static_cast<unsigned>(!accepted[l]) << l;
        for (Index j = 0; j < p; ++j) refuse_lanes<T>(shortest ? m : n, C + j * ld * W, ~accepted);
        refuse_lanes<T>(p, norms, ~accepted);
        refuse_lanes<T>(1, condition, ~accepted);
    }
    return refused;
}

/// How the elements of an m×n matrix that lie next to each other are walked: `lines` of them, `length` each, `stride`
/// apart; element e of line c is entry (r, q) of columns (or rows, if `by_rows`) of length `inner`, e running on from
/// one to the next where they are dense.
struct LaneWalk {
    LaneWalk(Index m, Index n, Index row_stride, Index col_stride)
        : by_rows(row_stride != 1 && col_stride == 1),
          together(row_stride == 1 || col_stride == 1),
          inner(by_rows ? n : m),
          stride(by_rows ? row_stride : col_stride) {
        const Index outer = by_rows ? m : n;
        const bool dense = stride == inner;
        lines = dense ? 1 : outer;
        length = dense ? inner * outer : inner;
    }
    bool by_rows, together;
    Index inner, stride, lines, length;
};

template <class T>
void gather_lanes(Index m, Index n, Index ld, const T* a, Index stride, Index row_stride, Index col_stride, T* X) {
    constexpr Index W = width<T>;
    const LaneWalk walk(m, n, row_stride, col_stride);
    if (!walk.together) {
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                for (Index l = 0; l < W; ++l) X[(i + j * ld) * W + l] = a[l * stride + i * row_stride + j * col_stride];
            }
        }
        return;
    }
    const Index step = (walk.by_rows ? ld : 1) * W, turn = (walk.by_rows ? 1 : ld) * W;
    for (Index line = 0; line < walk.lines; ++line) {
        const T* const from = a + line * walk.stride;
        T* start = X + line * turn;  // of a column or row
        Index r = 0, e = 0;
        const auto piece = [&]<int Q>(Indices<Q>) __attribute__((always_inline)) {
            for (; e + Q <= walk.length; e += Q) {
                Vector<T> x[Q];
                load_across<T, Q>(from + e, stride, x);
#pragma GCC unroll 16
                for (int t = 0; t < Q; ++t) {
                    store(start + r * step, x[t]);
                    if (++r == walk.inner) {
                        r = 0;
                        start += turn;
                    }
                }
            }
        };
        piece(Indices<VectorOf<T>::width>{});
        piece(Indices<max_piece<T>>{});
        piece(Indices<1>{});
    }
}

template <class T>
void scatter_lanes(Index m, Index n, Index ld, Index diagonal, const T* X, T* b, Index stride, Index row_stride,
                   Index col_stride) {
    constexpr Index W = width<T>;
    const LaneWalk walk(m, n, row_stride, col_stride);
    if (!walk.together) {
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                for (Index l = 0; l < W; ++l)
                    b[l * stride + i * row_stride + j * col_stride] = i > j + diagonal ? T(0) : X[(i + j * ld) * W + l];
            }
        }
        return;
    }
    const Index step = (walk.by_rows ? ld : 1) * W, turn = (walk.by_rows ? 1 : ld) * W;
    for (Index line = 0; line < walk.lines; ++line) {
        T* const to = b + line * walk.stride;
        const T* start = X + line * turn;
        Index r = 0, q = line, e = 0;
        const auto piece = [&]<int Q>(Indices<Q>) __attribute__((always_inline)) {
            for (; e + Q <= walk.length; e += Q) {
                Vector<T> x[Q];
#pragma GCC unroll 16
                for (int t = 0; t < Q; ++t) {
                    const bool below = walk.by_rows ? q > r + diagonal : r > q + diagonal;
                    x[t] = below ? Vector<T>{} : load(start + r * step);
                    if (++r == walk.inner) {
                        r = 0;
                        ++q;
                        start += turn;
                    }
                }
                store_across<T, Q>(to + e, stride, x);
            }
        };
        piece(Indices<VectorOf<T>::width>{});
        piece(Indices<max_piece<T>>{});
        piece(Indices<1>{});
    }
}

}  // namespace
}  // namespace quoin::host
