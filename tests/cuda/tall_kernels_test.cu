// The kernels behind solve_and_gram against a reference in long double, and their times.
//
//   tall_kernels_test            laws on small and large matrices; exit 1 if one fails
//   tall_kernels_test small      the small ones (for compute-sanitizer)
//   tall_kernels_test time       the three passes of CholeskyQR2, milliseconds; or of one case: time f32 1000000 192

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cuda/kernels/solve_and_gram.cuh"

using namespace quoin;
using namespace quoin::cuda;

namespace {

int failures = 0, multiprocessors = 0;

void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(2);
}
#define CHECK(call) check(call, #call)

/// Normal enough: the sum of four uniform numbers of a hash of (i, j, seed).
__host__ __device__ double noise(Index i, Index j, unsigned seed) {
    unsigned long long x =
        (i * 0x9E3779B97F4A7C15ull) ^ ((j + 1) * 0xC2B2AE3D27D4EB4Full) ^ (seed * 0x165667B19E3779F9ull);
    double sum = 0;
    for (int k = 0; k < 4; ++k) {
        x ^= x >> 33;
        x *= 0xFF51AFD7ED558CCDull;
        x ^= x >> 29;
        sum += static_cast<double>(x >> 11) * 0x1p-53 - 0.5;
    }
    return sum * 1.7320508;
}

template <class T>
__global__ void fill_kernel(Index m, Index n, T* A, Index lda, unsigned seed) {
    for (Index e = blockIdx.x * Index(blockDim.x) + threadIdx.x; e < m * n; e += Index(gridDim.x) * blockDim.x) {
        A[e % m + e / m * lda] = static_cast<T>(noise(e % m, e / m, seed));
    }
}

template <class T>
class Buffer {
public:
    explicit Buffer(Index count) : count_(count) {
        CHECK(cudaMalloc(&data_, std::max<Index>(count, 1) * sizeof(T)));
        CHECK(cudaMemset(data_, 0xFF, std::max<Index>(count, 1) * sizeof(T)));  // NaN
    }
    Buffer(const Buffer&) = delete;
    ~Buffer() { cudaFree(data_); }
    T* get() { return data_; }
    void upload(const std::vector<T>& v) {
        CHECK(cudaMemcpy(data_, v.data(), v.size() * sizeof(T), cudaMemcpyDefault));
    }
    std::vector<T> download() {
        std::vector<T> v(count_);
        CHECK(cudaMemcpy(v.data(), data_, count_ * sizeof(T), cudaMemcpyDefault));
        return v;
    }

private:
    T* data_ = nullptr;
    Index count_;
};

enum class Kind { Random, Graded, Conditioned };
const char* name(Kind k) { return k == Kind::Random ? "random" : k == Kind::Graded ? "graded" : "conditioned"; }

/// R with AᵀA = RᵀR in long double. False where a pivot is not positive.
bool cholesky(int n, std::vector<long double>& G) {
    for (int j = 0; j < n; ++j) {
        for (int i = 0; i <= j; ++i) {
            long double sum = G[i + j * n];
            for (int k = 0; k < i; ++k) sum -= G[k + i * n] * G[k + j * n];
            if (i == j && !(sum > 0)) return false;
            G[i + j * n] = i == j ? std::sqrt(sum) : sum / G[i + i * n];
        }
        for (int i = j + 1; i < n; ++i) G[i + j * n] = 0;
    }
    return true;
}

/// A (m×n, ld): random; or with columns graded over 10^±(12, 60); or random times an upper triangle of condition κ.
template <class T>
std::vector<T> make(Kind kind, Index m, Index n, Index ld, unsigned seed) {
    std::vector<T> A(ld * n, std::numeric_limits<T>::quiet_NaN());
    const double kappa = sizeof(T) == 4 ? 1e3 : 1e6, range = sizeof(T) == 4 ? 24 : 120;
    for (Index j = 0; j < n; ++j) {
        const double s = n > 1 ? static_cast<double>(j) / (n - 1) : 0;
        for (Index i = 0; i < m; ++i) {
            double a = noise(i, j, seed);
            if (kind == Kind::Graded) a *= std::pow(10.0, range * (((j * 7) % n) / static_cast<double>(n) - 0.5));
            // columns close to the first one
            if (kind == Kind::Conditioned) a = noise(i, 0, seed) + a * std::pow(kappa, -s);
            A[i + j * ld] = static_cast<T>(a);
        }
    }
    return A;
}

/// max |G − XᵀX|_ij / (u‖x_i‖‖x_j‖), and zeros below.
template <class T, class TG>
double gram_error(Index m, int n, const std::vector<T>& X, Index ldx, const std::vector<TG>& G, Index ldg) {
    const long double u = std::numeric_limits<TG>::epsilon() / 2;
    std::vector<long double> norm(n, 0);
    for (int j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) norm[j] += (long double)X[i + j * ldx] * X[i + j * ldx];
        norm[j] = std::sqrt(norm[j]);
    }
    double worst = 0;
    for (int j = 0; j < n; ++j) {
        for (int i = 0; i < n; ++i) {
            const TG g = G[i + j * ldg];
            if (i > j) {
                if (g != 0) return INFINITY;
                continue;
            }
            long double sum = 0;
            for (Index k = 0; k < m; ++k) sum += (long double)X[k + i * ldx] * X[k + j * ldx];
            const long double scale = u * norm[i] * norm[j];
            const double error = static_cast<double>(std::abs(g - sum) / (scale > 0 ? scale : 1));
            if (!(error <= worst)) worst = error;
        }
    }
    return worst;
}

/// max over rows of |A − X Y₂ Y₁|_ij / (u Σ_k |x_k||R_kj|), the row-wise backward error.
template <class T>
double solve_error(Index m, int n, const std::vector<T>& A, Index lda, const std::vector<T>& X, Index ldx,
                   const std::vector<T>& R) {
    const long double u = std::numeric_limits<T>::epsilon() / 2;
    double worst = 0;
    for (Index i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            long double sum = A[i + j * lda], scale = 0;
            for (int k = 0; k <= j; ++k) {
                const long double p = (long double)X[i + k * ldx] * R[k + j * n];
                sum -= p;
                scale += std::abs(p);
            }
            const double error = static_cast<double>(std::abs(sum) / (u * (scale > 0 ? scale : 1)));
            if (!(error <= worst)) worst = error;
        }
    }
    return worst;
}

template <class T>
bool untouched(Index m, int n, const std::vector<T>& X, Index ldx) {
    for (int j = 0; j < n; ++j) {
        for (Index i = m; i < ldx; ++i) {
            if (X[i + j * ldx] == X[i + j * ldx]) return false;
        }
    }
    return true;
}

template <class T>
void small_case(Kind kind, Index m, int n, Index pad) {
    const Index ld = std::max<Index>(m, 1) + pad, ldg = n + 3;
    const std::vector<T> A = make<T>(kind, m, n, ld, 1 + n);
    Buffer<T> a(ld * n), x(ld * n), y(ld * n), r(std::max(1, n * n));
    Buffer<T> g(ldg * n), g0(ldg * n), g2(ldg * n);
    Buffer<double> gd(ldg * n);
    a.upload(A);
    Buffer<unsigned char> work0(tall_workspace<T>(m, n, 0, false, true, multiprocessors));
    Buffer<unsigned char> work1(tall_workspace<T>(m, n, 1, true, true, multiprocessors));
    Buffer<unsigned char> work2(tall_workspace<T>(m, n, 1, false, true, multiprocessors));
    T* const none = nullptr;
    // G := AᵀA, in T and in f64
    CHECK((solve_and_gram<T, T>(m, n, a.get(), ld, {}, nullptr, 1, g0.get(), ldg, work0.get(), multiprocessors, 0)));
    CHECK(
        (solve_and_gram<T, double>(m, n, a.get(), ld, {}, nullptr, 1, gd.get(), ldg, work0.get(), multiprocessors, 0)));
    CHECK(cudaDeviceSynchronize());
    const double e0 = gram_error(m, n, A, ld, g0.download(), ldg), ed = gram_error(m, n, A, ld, gd.download(), ldg);
    // any well scaled triangle where m < n or A is too ill-conditioned for its own Cholesky factor
    std::vector<long double> G(n * n, 0);
    for (int j = 0; j < n; ++j) {
        for (int i = 0; i <= j; ++i) {
            for (Index k = 0; k < m; ++k) G[i + j * n] += (long double)A[k + i * ld] * A[k + j * ld];
        }
    }
    std::vector<T> R(n * n, std::numeric_limits<T>::quiet_NaN());
    const bool own = m >= n && cholesky(n, G);
    for (int j = 0; j < n; ++j) {
        for (int i = 0; i <= j; ++i)
            R[i + j * n] = static_cast<T>(own ? G[i + j * n] : i == j ? 2.0 : noise(i, j, 5) / n);
    }
    r.upload(R);
    Factors<T> one;
    one.data[0] = r.get();
    one.ld[0] = n;
    one.count = 1;
    // X := A R⁻¹, G := XᵀX; then without X; then G over the factor itself, X over A
    CHECK((solve_and_gram<T, T>(m, n, a.get(), ld, one, x.get(), ld, g.get(), ldg, work1.get(), multiprocessors, 0)));
    CHECK((solve_and_gram<T, T>(m, n, a.get(), ld, one, none, 1, g2.get(), ldg, work2.get(), multiprocessors, 0)));
    CHECK((solve_and_gram<T, T>(m, n, a.get(), ld, {}, y.get(), ld, none, 1, nullptr, multiprocessors, 0)));
    CHECK((solve_and_gram<T, T>(m, n, y.get(), ld, one, y.get(), ld, r.get(), n, work1.get(), multiprocessors, 0)));
    // f64: two factors in one call are two calls, bit for bit
    bool twice = true;
    if (sizeof(T) == 8) {
        r.upload(R);
        Factors<T> two = one;
        two.data[1] = r.get();
        two.ld[1] = n;
        two.count = 2;
        Buffer<T> z(ld * n), once_more(ld * n);
        CHECK((solve_and_gram<T, T>(m, n, a.get(), ld, two, z.get(), ld, none, 1, nullptr, multiprocessors, 0)));
        CHECK(
            (solve_and_gram<T, T>(m, n, x.get(), ld, one, once_more.get(), ld, none, 1, nullptr, multiprocessors, 0)));
        twice = z.download() == once_more.download() || m < ld;  // padding is NaN
        CHECK((solve_and_gram<T, T>(m, n, a.get(), ld, one, y.get(), ld, r.get(), n, work1.get(), multiprocessors, 0)));
    }
    CHECK(cudaDeviceSynchronize());
    const std::vector<T> X = x.download(), Y = y.download(), Gx = g.download(), Gr = r.download(), G2 = g2.download();
    const double es = solve_error(m, n, A, ld, X, ld, R), eg = gram_error(m, n, X, ld, Gx, ldg);
    const double eg2 = gram_error(m, n, X, ld, G2, ldg);
    bool same = true;
    for (int j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) same = same && X[i + j * ld] == Y[i + j * ld];
        for (int i = 0; i < n; ++i) same = same && Gx[i + j * ldg] == Gr[i + j * n];
    }
    // row-wise: u for storing X, n·u(f64) for the sums; f64: n·u times the blocks' conditions
    const double solve_bound = sizeof(T) == 4 ? 2 : 4.0 * n + 8,
                 gram_bound = sizeof(T) == 4 ? 2 : 4 * std::sqrt(m + 1.0);
    const bool pass = e0 <= gram_bound && ed <= 4 * std::sqrt(m + 1.0) && es <= solve_bound && eg <= gram_bound &&
                      eg2 <= gram_bound && same && twice && untouched(m, n, X, ld) && untouched(n, n, Gx, ldg);
    if (!pass) ++failures;
    if (!pass || (m > 1000 && (n == 192 || n == 100 || n == 31))) {
        std::printf(
            "%s %s %6lldx%-3d ld+%lld  gram %.2g u (f64 sums %.2g u64)  solve %.2g u  gram of X %.2g, %.2g u  same "
            "%d\n",
            pass ? "ok  " : "FAIL", sizeof(T) == 4 ? "f32" : "f64", (long long)m, n, (long long)pad, e0, ed, es, eg,
            eg2, same);
        std::printf("     %s, R %s\n", name(kind), own ? "of A" : "random");
    }
}

template <class T>
void small_cases(bool quick) {
    // rows enough for every warp to go round twice, ragged, aligned and not
    for (const int n : {8, 31, 64}) {
        if (!quick) small_case<T>(Kind::Random, 100003, n, 1);
    }
    std::vector<int> widths = {1,  2,  7,  8,  9,  16,  17,  24,  31,  32,  33,  40,  47,  48,  50,  56,  63,  64,
                               65, 80, 81, 96, 97, 100, 112, 113, 128, 129, 144, 150, 160, 161, 176, 177, 191, 192};
    if (quick) widths = {1, 8, 15, 24, 32, 40, 48, 56, 61, 65, 90, 100, 128, 131, 160, 170, 192};
    for (const int n : widths) {
        for (const Index m : {0, 1, 15, 33, 200, 211}) small_case<T>(Kind::Random, m, n, m % 4);
        if (quick) continue;
        for (const Kind kind : {Kind::Random, Kind::Graded, Kind::Conditioned}) small_case<T>(kind, 1501 + n, n, n % 3);
    }
}

/// ‖I − G‖_F
double departure(int n, const std::vector<double>& G) {
    double sum = 0;
    for (int j = 0; j < n; ++j) {
        for (int i = 0; i <= j; ++i) sum += (i == j ? 1 : 2) * std::pow(G[i + j * n] - (i == j), 2);
    }
    return std::sqrt(sum);
}

double median_ms(const std::function<void()>& run) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int i = 0; i < 2; ++i) run();
    std::vector<float> times(11);
    for (float& t : times) {
        CHECK(cudaEventRecord(begin));
        run();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&t, begin, end));
    }
    std::sort(times.begin(), times.end());
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return times[5];
}

/// The passes of CholeskyQR2 with A's own R factors; ‖I − QᵀQ‖_F and bit-identical repetition.
template <class T>
void tall_case(Index m, int n, Index pad) {
    const Index ld = m + pad;
    Buffer<T> a(ld * n), q1(ld * n), q(ld * n), r1(n * n), r2(n * n);
    Buffer<double> g(n * n), h(n * n);
    fill_kernel<<<1024, 256>>>(m, Index(n), a.get(), ld, 7u);
    CHECK(cudaGetLastError());
    Buffer<unsigned char> work(std::max(tall_workspace<T>(m, n, 1, true, true, multiprocessors),
                                        tall_workspace<T>(m, n, 1, false, true, multiprocessors)));
    const auto pass = [&](const T* from, const T* factor, T* to, double* gram) {
        Factors<T> f;
        if (factor) {
            f.data[0] = factor;
            f.ld[0] = n;
            f.count = 1;
        }
        CHECK((solve_and_gram<T, double>(m, n, from, ld, f, to, ld, gram, n, work.get(), multiprocessors, 0)));
    };
    const auto factor = [&](Buffer<double>& gram, Buffer<T>& r) {
        const std::vector<double> G = gram.download();
        std::vector<long double> L(G.begin(), G.end());
        if (!cholesky(n, L)) ++failures, std::printf("FAIL cholesky\n");
        r.upload(std::vector<T>(L.begin(), L.end()));
    };
    pass(a.get(), nullptr, nullptr, g.get());
    factor(g, r1);
    pass(a.get(), r1.get(), q1.get(), g.get());
    pass(a.get(), r1.get(), nullptr, h.get());
    const std::vector<double> G = g.download(), H = h.download();
    pass(a.get(), r1.get(), q1.get(), g.get());
    const std::vector<double> again = g.download();
    factor(g, r2);
    pass(q1.get(), r2.get(), q.get(), nullptr);
    pass(q.get(), nullptr, nullptr, g.get());
    const double u = std::numeric_limits<T>::epsilon() / 2, orth = departure(n, g.download()) / (n * u);
    double split = 0;
    for (int e = 0; e < n * n; ++e) split = std::max(split, std::abs(G[e] - H[e]));
    const bool same = std::memcmp(G.data(), again.data(), n * n * sizeof(double)) == 0;
    const bool good = same && orth < 2 && split < 1e-12;
    if (!good) ++failures;

    const double t1 = median_ms([&] { pass(a.get(), nullptr, nullptr, g.get()); });
    const double t2 = median_ms([&] { pass(a.get(), r1.get(), q1.get(), g.get()); });
    const double t3 = median_ms([&] { pass(q1.get(), r2.get(), q.get(), nullptr); });
    const double t4 = median_ms([&] { pass(a.get(), r1.get(), nullptr, g.get()); });
    const double all = median_ms([&] {
        pass(a.get(), nullptr, nullptr, g.get());
        pass(a.get(), r1.get(), q1.get(), g.get());
        pass(q1.get(), r2.get(), q.get(), nullptr);
    });
    const double flops = double(m) * n * n, bytes = double(m) * n * sizeof(T);
    const auto floor_ms = [&](double f, double b) { return std::max(f * flops / 62e12, b * bytes / 3.0e12) * 1e3; };
    std::printf(
        "%s %s %8lldx%-3d | gram %.3f (floor %.3f, %.1f TF, %.0f GB/s) | solve+gram %.3f (%.3f, %.1f, %.0f) | "
        "solve %.3f (%.3f, %.1f, %.0f) | solve+gram, X not stored %.3f (%.3f) | three passes %.3f (%.3f) | "
        "orth %.2g nu, same bits %d, split %.1g\n",
        good ? "ok  " : "FAIL", sizeof(T) == 4 ? "f32" : "f64", (long long)m, n, t1, floor_ms(1, 1), flops / t1 * 1e-9,
        bytes / t1 * 1e-6, t2, floor_ms(2, 2), 2 * flops / t2 * 1e-9, 2 * bytes / t2 * 1e-6, t3, floor_ms(1, 2),
        flops / t3 * 1e-9, 2 * bytes / t3 * 1e-6, t4, floor_ms(2, 1), all,
        floor_ms(1, 1) + floor_ms(2, 2) + floor_ms(1, 2), orth, same, split);
}

template <class T>
void tall_cases() {
    tall_case<T>(1000000, 192, 0);
    tall_case<T>(100000, 192, 0);
    tall_case<T>(10000, 192, 0);
    tall_case<T>(1000000, 128, 0);
    tall_case<T>(1000000, 64, 0);
    tall_case<T>(110592, 100, 0);
    tall_case<T>(4000000, 8, 0);
    tall_case<T>(4000000, 32, 0);
    tall_case<T>(999983, 150, 1);
    tall_case<T>(3999971, 31, 2);
}

}  // namespace

int main(int argc, char** argv) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::printf("tall_kernels_test: skipped, no GPU\n");
        return 77;
    }
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode != "time") {
        small_cases<float>(mode == "small");
        small_cases<double>(mode == "small");
        std::printf("small cases: %d failed\n", failures);
    }
    if (argc == 5) {
        // time f32 1000000 192
        const Index m = std::atoll(argv[3]);
        const int n = std::atoi(argv[4]);
        std::string(argv[2]) == "f32" ? tall_case<float>(m, n, 0) : tall_case<double>(m, n, 0);
    } else if (mode != "small") {
        tall_cases<float>();
        tall_cases<double>();
    }
    std::printf("%d failed\n", failures);
    return failures > 0;
}
