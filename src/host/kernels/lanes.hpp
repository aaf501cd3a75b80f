// The kernels of many small matrices at once, a matrix in each lane of a vector register: element (i, j) of all of them lies
// at X + (i + j·ld)·lanes. Included by microkernels.hpp.

namespace quoin::host {
namespace {

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

/// below := Σ x_i² over the h rows x under α at `a`; returns α² + below. Not inlined: each copy might round in its own way, and a lane's
/// bits depend on which one its neighbours ask for.
template <class T>
[[gnu::noinline]] Vector<T> lane_squares(Index h, const T* a, Vector<T>* below) {
    constexpr Index W = width<T>;
    const T* const x = a + W;
    Vector<T> total = {};
    for (Index first = 0; first < h; first += longest_chain) {
        const Index end = h < first + longest_chain ? h : first + longest_chain;
        Vector<T> even = {}, odd = {};
        Index i = first;
        for (; i + 2 <= end; i += 2) {
            const Vector<T> x0 = load(x + i * W), x1 = load(x + (i + 1) * W);
            even += x0 * x0;
            odd += x1 * x1;
        }
        if (i < end) even += load(x + i * W) * load(x + i * W);
        total += even + odd;
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

template <class T>
[[gnu::always_inline]] inline void lane_reflect_all(Index h, const T* v, Vector<T> tau, Index p, T* C, Index ldc) {
    Index j = 0;
    for (; j + 8 <= p; j += 8) lane_reflect<T, 8>(h, v, tau, C + j * ldc, ldc);
    for (; j + 4 <= p; j += 4) lane_reflect<T, 4>(h, v, tau, C + j * ldc, ldc);
    for (; j < p; ++j) lane_reflect<T, 1>(h, v, tau, C + j * ldc, ldc);
}

/// x := 2^±e x, an e for each lane, over h rows.
template <class T>
void scale_lanes(Index h, T* x, const int* e, int sign) {
    constexpr Index W = width<T>;
    for (Index i = 0; i < h; ++i) {
        for (Index l = 0; l < W; ++l) {
            T& a = x[i * W + l];
            a = sizeof(T) == sizeof(float) ? static_cast<T>(__builtin_scalbnf(static_cast<float>(a), sign * e[l]))
                                           : static_cast<T>(__builtin_scalbn(a, sign * e[l]));
        }
    }
}

/// Where a lane is `far`, x := 2^-e x over h rows with the e of its largest entry, unless that is 0 or not finite; e is 0 elsewhere.
/// Returns whether an e is not 0.
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
    Vector<T> largest = {};
    for (Index i = 0; i < h; ++i) {
        const Vector<T> a = load(x + i * width<T>), magnitude = a < 0 ? -a : a;
        largest = magnitude > largest ? magnitude : largest;
        *finite += a * 0;
    }
    return largest;
}

template <class T>
unsigned factor_lanes(Index m, Index n, Index ld, T* X, T* tau, int* e) {
    constexpr Index W = width<T>;
    constexpr T safe = sizeof(T) == sizeof(float) ? T(0x1p30) : T(0x1p400);
    // columns whose largest entry is beyond 2^±safe are factored as 2^-e times themselves
    Vector<T> finite = {};
    bool scaled = false;
    for (Index j = 0; j < n; ++j) {
        T* const x = X + j * ld * W;
        const Vector<T> largest = largest_lanes<T>(m, x, &finite);
        scaled |= normalise_lanes<T>(m, x, largest, (largest > safe) | (largest < 1 / safe), e + j * W);
    }
    unsigned not_finite = 0;
    if (any_lane<T>(finite != 0)) {
        for (Index l = 0; l < W; ++l) not_finite |= static_cast<unsigned>(!(finite[l] == 0)) << l;
    }

    // smaller squares lose digits; larger ones than T's do not occur
    constexpr T low =
        std::numeric_limits<T>::min() / (std::numeric_limits<T>::epsilon() * std::numeric_limits<T>::epsilon());
    const Index k = m < n ? m : n;
    for (Index j = 0; j < k; ++j) {
        const Index h = m - j - 1;
        T *const a = X + (j + j * ld) * W, *const x = a + W;
        const Vector<T> one = Vector<T>{} + T(1);
        Vector<T> below, squares = lane_squares<T>(h, a, &below), unused;
        const auto small = squares < low;
        bool rescaled = any_lane<T>(small);
        int exponents[W];
        if (rescaled) {
            rescaled = normalise_lanes<T>(h + 1, a, largest_lanes<T>(h + 1, a, &unused), small, exponents);
            squares = lane_squares<T>(h, a, &below);
        }
        // β = −sgn(α) ‖x‖, τ = (β − α)/β, v = x/(α − β); H = I where nothing is below α
        const Vector<T> alpha = load(a), norm = square_root<T>(squares);
        const auto nothing = below == 0;
        const Vector<T> beta = nothing ? alpha : alpha < 0 ? norm : -norm;
        const Vector<T> t = nothing ? Vector<T>{} : (beta - alpha) / beta;
        const Vector<T> scale = nothing ? Vector<T>{} : one / (alpha - beta);
        for (Index i = 0; i < h; ++i) store(x + i * W, load(x + i * W) * scale);
        store(a, beta);
        if (rescaled) scale_lanes<T>(1, a, exponents, 1);
        store(tau + j * W, t);
        lane_reflect_all<T>(h, x, t, n - j - 1, a + ld * W, ld * W);
    }
    if (scaled) {
        for (Index j = 0; j < n; ++j) scale_lanes<T>(j < k ? j + 1 : k, X + j * ld * W, e + j * W, 1);
    }
    return not_finite;
}

template <class T>
void form_lanes(Index m, Index k, Index ld, T* X, const T* tau) {
    constexpr Index W = width<T>;
    for (Index j = k; j-- > 0;) {
        const Index h = m - j - 1;
        T* const a = X + (j + j * ld) * W;
        const Vector<T> t = load(tau + j * W);
        lane_reflect_all<T>(h, a + W, t, k - j - 1, a + ld * W, ld * W);
        // H e_j = e_j − τ [1; v]
        store(a, T(1) - t);
        for (Index i = 1; i <= h; ++i) store(a + i * W, -t * load(a + i * W));
        for (Index i = 1; i <= j; ++i) store(a - i * W, Vector<T>{});
    }
}

template <class T>
void apply_lanes(bool transpose, Index m, Index k, Index ld, const T* X, const T* tau, Index p, T* C) {
    constexpr Index W = width<T>;
    for (Index step = 0; step < k; ++step) {
        const Index j = transpose ? step : k - 1 - step;
        lane_reflect_all<T>(m - j - 1, X + (j + 1 + j * ld) * W, load(tau + j * W), p, C + j * W, ld * W);
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

/// *condition := κ₁(R); returns κ₁(RD), the diagonal D scaling the columns of R to unit norm, or NaN where their norms are beyond
/// 2^±safe. inverse: n + 1 columns of workspace.
template <class T>
[[gnu::noinline]] Vector<T> lane_conditions(Index n, Index ld, const T* R, T* inverse, Vector<T>* condition) {
    constexpr Index W = width<T>;
    constexpr T safe = sizeof(T) == sizeof(float) ? T(0x1p35) : T(0x1p405);
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
        const auto inside = (length <= safe) & (length >= 1 / safe);
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
    constexpr T safe = sizeof(T) == sizeof(float) ? T(0x1p30) : T(0x1p400);
    Vector<T> kappa, finite = {};
    const Vector<T> scaled = lane_conditions<T>(n, ld, X, work, &kappa), least = Vector<T>{} + static_cast<T>(rcond);
    auto accepted = T(1) / scaled > least;
    for (Index j = 0; j < p; ++j) {
        const Vector<T> largest = largest_lanes<T>(shortest ? n : m, C + j * ld * W, &finite);
        accepted &= (largest == 0) | ((largest <= safe) & (largest >= 1 / safe));
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

/// Lane l of the two vectors, G apart, of which a step of the transposition makes the first (or the second).
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
/// Lane l of x[i] and lane i of x[l] change places, for `width` vectors x.
template <class T, int G = 1>
[[gnu::always_inline]] inline void transpose_lanes(Vector<T>* x) {
    constexpr int W = VectorOf<T>::width;
    if constexpr (G < W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) {
            if ((i & G) == 0) exchange<W, G>(x[i], x[i + G], typename MakeIndices<W>::type{});
        }
        transpose_lanes<T, 2 * G>(x);
    }
}

/// How the elements of an m×n matrix that lie next to each other are walked: `lines` of them, `length` each, `stride` apart; element e of
/// line c is entry (r, q) of columns (or rows, if `by_rows`) of length `inner`, e running on from one to the next where they are dense.
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
void gather_lanes(Index m, Index n, Index ld, const T* const* a, Index row_stride, Index col_stride, T* X) {
    constexpr Index W = width<T>;
    const LaneWalk walk(m, n, row_stride, col_stride);
    if (!walk.together) {
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                for (Index l = 0; l < W; ++l) X[(i + j * ld) * W + l] = a[l][i * row_stride + j * col_stride];
            }
        }
        return;
    }
    const Index step = (walk.by_rows ? ld : 1) * W, turn = (walk.by_rows ? 1 : ld) * W;
    for (Index line = 0; line < walk.lines; ++line) {
        T* start = X + line * turn;  // of a column or row
        Index r = 0;
        const auto put = [&](Vector<T> x) __attribute__((always_inline)) {
            store(start + r * step, x);
            if (++r == walk.inner) {
                r = 0;
                start += turn;
            }
        };
        Index e = 0;
        for (; e + W <= walk.length; e += W) {
            Vector<T> x[W];
#pragma GCC unroll 16
            for (Index l = 0; l < W; ++l) x[l] = load(a[l] + line * walk.stride + e);
            transpose_lanes<T>(x);
#pragma GCC unroll 16
            for (Index t = 0; t < W; ++t) put(x[t]);
        }
        for (; e < walk.length; ++e) {
            Vector<T> x;
#pragma GCC unroll 16
            for (Index l = 0; l < W; ++l) x[l] = a[l][line * walk.stride + e];
            put(x);
        }
    }
}

template <class T>
void scatter_lanes(Index m, Index n, Index ld, bool upper, const T* X, T* const* b, Index row_stride,
                   Index col_stride) {
    constexpr Index W = width<T>;
    const LaneWalk walk(m, n, row_stride, col_stride);
    if (!walk.together) {
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                for (Index l = 0; l < W; ++l)
                    b[l][i * row_stride + j * col_stride] = upper && i > j ? T(0) : X[(i + j * ld) * W + l];
            }
        }
        return;
    }
    const Index step = (walk.by_rows ? ld : 1) * W, turn = (walk.by_rows ? 1 : ld) * W;
    for (Index line = 0; line < walk.lines; ++line) {
        const T* start = X + line * turn;
        Index r = 0, q = line;
        const auto next = [&]() __attribute__((always_inline)) {
            const bool below = upper && (walk.by_rows ? r < q : r > q);
            const Vector<T> x = below ? Vector<T>{} : load(start + r * step);
            if (++r == walk.inner) {
                r = 0;
                ++q;
                start += turn;
            }
            return x;
        };
        Index e = 0;
        for (; e + W <= walk.length; e += W) {
            Vector<T> x[W];
#pragma GCC unroll 16
            for (Index t = 0; t < W; ++t) x[t] = next();
            transpose_lanes<T>(x);
#pragma GCC unroll 16
            for (Index l = 0; l < W; ++l) store(b[l] + line * walk.stride + e, x[l]);
        }
        for (; e < walk.length; ++e) {
            const Vector<T> x = next();
#pragma GCC unroll 16
            for (Index l = 0; l < W; ++l) b[l][line * walk.stride + e] = x[l];
        }
    }
}

}  // namespace
}  // namespace quoin::host
