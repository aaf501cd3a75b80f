// On a GPU the same calls take Matrix<T, Cuda> and Context<Cuda>: least squares and an SVD of matrices in its memory,
// checked and timed. Exits with 77 where there is no GPU.

#include <cstdio>

#ifdef QUOIN_HAVE_CUDA
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "quoin/cuda.hpp"
#include "quoin/quoin.hpp"

using namespace quoin;

template <class T>
Matrix<T> random_normal(Index m, Index n) {
    Matrix<T> A(m, n);
    std::mt19937_64 random(1);
    std::normal_distribution<T> normal;
    std::generate_n(A.data(), m * n, [&] { return normal(random); });
    return A;
}

/// Median of 15 runs in milliseconds, after three more.
template <class Run>
double milliseconds(const Context<Cuda>& gpu, Run run) {
    std::vector<double> times;
    for (int i = 0; i < 18; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run();
        gpu.wait();
        times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(times.begin() + 3, times.begin() + 10, times.end());
    return times[10];
}

template <class T>
bool demonstrate(Context<Cuda>& gpu, const char* type) {
    // b = A (1, …, 1)
    const Matrix<T> A = random_normal<T>(100000, 64);
    Matrix<T> b(A.rows(), 1);
    for (Index i = 0; i < A.rows(); ++i) {
        b(i, 0) = 0;
        for (Index j = 0; j < A.cols(); ++j) b(i, 0) += A(i, j);
    }
    const Matrix<T, Cuda> A_on_gpu = copy_to_device<T>(gpu, A.view()), b_on_gpu = copy_to_device<T>(gpu, b.view());
    LeastSquares<T, Cuda> solution;
    const double lstsq_ms =
        milliseconds(gpu, [&] { solution = least_squares<T, Cuda>(gpu, A_on_gpu.view(), b_on_gpu.view()); });
    const Matrix<T> x = copy_to_host<T>(gpu, solution.X.view());
    double worst = 0;
    for (Index j = 0; j < x.rows(); ++j) worst = std::max(worst, std::abs(double(x(j, 0)) - 1));

    // Σ s² = ‖C‖²
    const Matrix<T> C = random_normal<T>(110592, 100);
    double square = 0, sum = 0;
    for (Index j = 0; j < C.cols(); ++j) {
        double of_column = 0;
        for (Index i = 0; i < C.rows(); ++i) of_column += double(C(i, j)) * double(C(i, j));
        square += of_column;
    }
    const Matrix<T, Cuda> C_on_gpu = copy_to_device<T>(gpu, C.view());
    SVD<T, Cuda> f;
    const double svd_ms = milliseconds(gpu, [&] { f = svd<T, Cuda>(gpu, C_on_gpu.view()); });
    for (const T s : f.s) sum += double(s) * s;

    std::printf("%s  least squares 100000x64 %.3f ms, largest error %.1e;  svd 110592x100 %.3f ms\n", type, lstsq_ms,
                worst, svd_ms);
    const double u = std::numeric_limits<T>::epsilon() / 2;
    return worst < 1000 * u && std::abs(sum / square - 1) < 1000 * u;
}

int main() {
    const GpuSurvey survey = survey_gpus();
    if (survey.gpus.empty() || !survey.gpus[0].problem.empty()) {
        std::printf("no usable GPU: %s\n",
                    survey.gpus.empty() ? survey.problem.c_str() : survey.gpus[0].problem.c_str());
        return 77;
    }
    std::printf("%s\n", survey.gpus[0].name.c_str());
    Context<Cuda> gpu;
    const bool f32 = demonstrate<float>(gpu, "f32"), f64 = demonstrate<double>(gpu, "f64");
    return f32 && f64 ? 0 : 1;
}
#else
int main() {
    std::printf("Quoin was built without CUDA\n");
    return 77;
}
#endif
