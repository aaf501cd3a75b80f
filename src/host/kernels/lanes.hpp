// The kernels of many small matrices at once, a matrix in each lane of a vector register: element (i, j) of all of them lies
// at X + (i + j·ld)·lanes. Included by microkernels.hpp.

namespace quoin::host {
namespace {

template <class T>
[[gnu::always_inline]] inline Vector<T> square_root(Vector<T> x) {
    for (int l = 0; l < VectorOf<T>::width; ++l) {
        x[l] = sizeof(T) == sizeof(float) ? static_cast<T>(__builtin_sqrtf(static_cast<float>(x[l])))
                                          : static_cast<T>(__builtin_sqrt(x[l]));
    }
    return x;
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
    for (Index l = 0; l < W; ++l) not_finite |= static_cast<unsigned>(!(finite[l] == 0)) << l;

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
        bool rescaled = false;
        int exponents[W] = {};
        for (Index l = 0; l < W; ++l) rescaled = rescaled || small[l];
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

template <class T>
void gather_lanes(Index m, Index n, Index ld, const T* const* a, Index row_stride, Index col_stride, T* X) {
    constexpr Index W = width<T>;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            Vector<T> x;
#pragma GCC unroll 16
            for (Index l = 0; l < W; ++l) x[l] = a[l][i * row_stride + j * col_stride];
            store(X + (i + j * ld) * W, x);
        }
    }
}

template <class T>
void scatter_lanes(Index m, Index n, Index ld, bool upper, const T* X, T* const* b, Index row_stride,
                   Index col_stride) {
    constexpr Index W = width<T>;
    for (Index j = 0; j < n; ++j) {
        const Index end = upper && j + 1 < m ? j + 1 : m;
        for (Index i = 0; i < end; ++i) {
            const Vector<T> x = load(X + (i + j * ld) * W);
#pragma GCC unroll 16
            for (Index l = 0; l < W; ++l) b[l][i * row_stride + j * col_stride] = x[l];
        }
        for (Index i = end; i < m; ++i) {
            for (Index l = 0; l < W; ++l) b[l][i * row_stride + j * col_stride] = 0;
        }
    }
}

}  // namespace
}  // namespace quoin::host
