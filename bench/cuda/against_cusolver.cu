// Quoin against cuSOLVER on one GPU, in one process: CSV on standard output, milliseconds.
//
//   against_cusolver [--quick]
//
// thin-qr: A := Q and R (cuSOLVER: geqrf + orgqr); lapack: A := V, R and tau (geqrf). Both work in place on a fresh copy
// of the same random A, which is not timed. Events around the call, the median of 7 runs after 2. Orthogonality
// ‖I − QᵀQ‖_F and residual ‖A − QR‖_F/‖A‖_F are Quoin's, by GEMM in double on the device.

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "quoin/cuda.hpp"
#include "quoin/quoin.hpp"

using namespace quoin;

namespace {

void check(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "against_cusolver: %s failed\n", what);
    std::exit(1);
}
#define CHECK(call) check((call) == 0, #call)

/// Standard normal from a hash of the entry's place (splitmix64, Box and Muller).
__device__ double noise(Index at) {
    const auto hash = [](unsigned long long x) {
        x += 0x9E3779B97F4A7C15ull;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        return ((x ^ (x >> 31)) >> 11) * 0x1p-53;
    };
    return sqrt(-2 * log(1 - hash(2 * at))) * cospi(2 * hash(2 * at + 1));
}
template <class T>
__global__ void fill(Index count, T* A) {
    for (Index e = blockIdx.x * Index(blockDim.x) + threadIdx.x; e < count; e += Index(gridDim.x) * blockDim.x) {
        A[e] = static_cast<T>(noise(e));
    }
}
template <class T>
__global__ void widen(Index count, const T* A, double* B) {
    for (Index e = blockIdx.x * Index(blockDim.x) + threadIdx.x; e < count; e += Index(gridDim.x) * blockDim.x) {
        B[e] = A[e];
    }
}
__global__ void subtract_identity(Index n, double* G) {
    const Index j = blockIdx.x * Index(blockDim.x) + threadIdx.x;
    if (j < n) G[j + j * n] -= 1;
}

class Bench {
public:
    Bench() {
        CHECK(cublasCreate(&blas_));
        CHECK(cusolverDnCreate(&solver_));
        CHECK(cublasSetStream(blas_, ctx_.stream()));
        CHECK(cusolverDnSetStream(solver_, ctx_.stream()));
        for (cudaEvent_t* event : {&begin_, &end_}) CHECK(cudaEventCreate(event));
    }

    template <class T>
    void measure(Index m, Index n, bool thin_q) {
        const Index k = std::min(m, n);
        Matrix<T, Cuda> A(ctx_, m, n);
        fill<<<2048, 256, 0, ctx_.stream()>>>(m * n, A.data());
        CHECK(cudaGetLastError());
        Options options;
        options.q = thin_q ? QForm::Explicit : QForm::Reflectors;
        const Plan plan = plan_qr<T>(ctx_, m, n, options);

        double orthogonality = 0, residual = 0;
        Method method;
        {
            const QR<T, Cuda> f = qr<T, Cuda>(ctx_, copy_of(A), plan);
            method = f.report().method;
            const Matrix<double, Cuda> Q = wide(f.form_q(ctx_)), R = wide(f.r(ctx_));
            Matrix<double, Cuda> G(ctx_, k, k), E = wide(A);
            const double norm = norm_of(E);
            multiply(CUBLAS_OP_T, k, k, m, 1, Q, Q, 0, G);
            subtract_identity<<<static_cast<unsigned>(k / 256 + 1), 256, 0, ctx_.stream()>>>(k, G.data());
            multiply(CUBLAS_OP_N, m, n, k, -1, Q, R, 1, E);
            orthogonality = norm_of(G);
            residual = norm_of(E) / norm;
        }
        Matrix<T, Cuda> W;
        std::vector<QR<T, Cuda>> kept;
        const double quoin_ms = median(
            [&] {
                kept.clear();
                W = copy_of(A);
            },
            [&] { kept.push_back(qr<T, Cuda>(ctx_, std::move(W), plan)); });
        kept.clear();
        W = copy_of(A);
        const double cusolver_ms = with_cusolver(A, W, thin_q);
        std::printf("%lld,%lld,%s,%s,%s,%.4f,%.4f,%.2f,%.2e,%.2e\n", static_cast<long long>(m),
                    static_cast<long long>(n), sizeof(T) == 4 ? "f32" : "f64", thin_q ? "thin-qr" : "lapack",
                    to_string(method), quoin_ms, cusolver_ms, cusolver_ms / quoin_ms, orthogonality, residual);
        std::fflush(stdout);
    }

private:
    template <class T>
    void copy(const Matrix<T, Cuda>& A, Matrix<T, Cuda>& B) {
        CHECK(cudaMemcpyAsync(B.data(), A.data(), A.rows() * A.cols() * sizeof(T), cudaMemcpyDefault, ctx_.stream()));
    }
    template <class T>
    Matrix<T, Cuda> copy_of(const Matrix<T, Cuda>& A) {
        Matrix<T, Cuda> B(ctx_, A.rows(), A.cols());
        copy(A, B);
        return B;
    }
    template <class T>
    Matrix<double, Cuda> wide(const Matrix<T, Cuda>& A) {
        Matrix<double, Cuda> B(ctx_, A.rows(), A.cols());
        widen<<<2048, 256, 0, ctx_.stream()>>>(A.rows() * A.cols(), A.data(), B.data());
        CHECK(cudaGetLastError());
        return B;
    }
    void multiply(cublasOperation_t op, Index m, Index n, Index k, double alpha, const Matrix<double, Cuda>& A,
                  const Matrix<double, Cuda>& B, double beta, Matrix<double, Cuda>& C) {
        CHECK(cublasDgemm_64(blas_, op, CUBLAS_OP_N, m, n, k, &alpha, A.data(), A.ld(), B.data(), B.ld(), &beta,
                             C.data(), C.ld()));
    }
    double norm_of(const Matrix<double, Cuda>& A) {
        double norm = 0;
        CHECK(cublasDnrm2_64(blas_, A.rows() * A.cols(), A.data(), 1, &norm));
        return norm;
    }
    template <class Prepare, class Run>
    double median(Prepare prepare, Run run) {
        std::vector<float> times;
        for (int i = 0; i < 9; ++i) {
            prepare();
            CHECK(cudaStreamSynchronize(ctx_.stream()));
            CHECK(cudaEventRecord(begin_, ctx_.stream()));
            run();
            CHECK(cudaEventRecord(end_, ctx_.stream()));
            CHECK(cudaEventSynchronize(end_));
            float ms = 0;
            CHECK(cudaEventElapsedTime(&ms, begin_, end_));
            if (i >= 2) times.push_back(ms);
        }
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    }
    template <class T>
    double with_cusolver(const Matrix<T, Cuda>& A, Matrix<T, Cuda>& W, bool thin_q) {
        const int m = static_cast<int>(A.rows()), n = static_cast<int>(A.cols()), k = std::min(m, n);
        int size = 0, form_size = 0;
        Matrix<T, Cuda> tau(ctx_, k, 1);
        Matrix<int, Cuda> info(ctx_, 1, 1);
        T *w = W.data(), *t = tau.data();
        if constexpr (sizeof(T) == 4) {
            CHECK(cusolverDnSgeqrf_bufferSize(solver_, m, n, w, m, &size));
            CHECK(cusolverDnSorgqr_bufferSize(solver_, m, k, k, w, m, t, &form_size));
        } else {
            CHECK(cusolverDnDgeqrf_bufferSize(solver_, m, n, w, m, &size));
            CHECK(cusolverDnDorgqr_bufferSize(solver_, m, k, k, w, m, t, &form_size));
        }
        size = std::max(size, form_size);
        Matrix<T, Cuda> work(ctx_, size, 1);
        const auto factor = [&] {
            if constexpr (sizeof(T) == 4) {
                CHECK(cusolverDnSgeqrf(solver_, m, n, w, m, t, work.data(), size, info.data()));
                if (thin_q) CHECK(cusolverDnSorgqr(solver_, m, k, k, w, m, t, work.data(), size, info.data()));
            } else {
                CHECK(cusolverDnDgeqrf(solver_, m, n, w, m, t, work.data(), size, info.data()));
                if (thin_q) CHECK(cusolverDnDorgqr(solver_, m, k, k, w, m, t, work.data(), size, info.data()));
            }
        };
        return median([&] { copy(A, W); }, factor);
    }

    Context<Cuda> ctx_;
    cublasHandle_t blas_ = nullptr;
    cusolverDnHandle_t solver_ = nullptr;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
    struct Case {
        Index m, n;
        bool thin_q;
    };
    std::vector<Case> cases = {{1'000'000, 192, true}, {110'592, 100, true}, {4'000'000, 8, true},
                               {4'000'000, 32, true},  {8192, 64, false},    {8192, 256, false},
                               {8192, 1024, false},    {8192, 8192, false}};
    if (quick) cases = {{10'000, 100, true}, {8192, 64, false}};
    Bench bench;
    std::printf("rows,cols,dtype,op,method,quoin_ms,cusolver_ms,ratio,orthogonality,residual\n");
    for (const Case& c : cases) {
        bench.measure<float>(c.m, c.n, c.thin_q);
        bench.measure<double>(c.m, c.n, c.thin_q);
    }
}
