#include "papers/large_matrix.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "quoin/error.hpp"

namespace quoin::bench {

namespace {

/// Rows that one thread takes of every column: sums over the columns stay in its cache.
constexpr Index strip = 2048;

/// Two vectors.
struct Pair {
    std::vector<double> first, second;
    explicit Pair(Index n) : first(n), second(n) {}
};

/// Y += B X for the entries b(i, j), i < last(j), of m×n: every strip of rows by one thread.
template <class Column, class Last>
void multiply(Index m, Index n, Column column, Last last, const Pair& X, Pair& Y) {
#pragma omp parallel for schedule(dynamic)
    for (Index i0 = 0; i0 < m; i0 += strip) {
        const Index end = std::min(m, i0 + strip);
        double *const y = Y.first.data(), *const z = Y.second.data();
        for (Index j = 0; j < n; ++j) {
            const double x = X.first[j], w = X.second[j];
            const Index stop = std::min(end, last(j));
            const auto b = column(j);
#pragma omp simd
            for (Index i = i0; i < stop; ++i) {
                const double b_ij = b(i);
                y[i] += b_ij * x;
                z[i] += b_ij * w;
            }
        }
    }
}

/// A column of the noise: a hash of the row's number with two keys of the column, all in 32 bits, which every
/// instruction set has in vectors.
class NoiseColumn {
public:
    NoiseColumn(std::uint64_t seed, Index j) {
        // splitmix64
        std::uint64_t z = (seed << 40) + static_cast<std::uint64_t>(j) + 1;
        z *= 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        first_ = static_cast<std::uint32_t>(z);
        second_ = static_cast<std::uint32_t>(z >> 32);
    }
    float operator()(Index i) const {
        std::uint32_t x = (static_cast<std::uint32_t>(i) ^ first_) * 0x9e3779b1u;
        x = (x ^ (x >> 16) ^ second_) * 0x21f0aaadu;
        x = (x ^ (x >> 15)) * 0x735a2d97u;
        x ^= x >> 15;
        return static_cast<float>(static_cast<std::int32_t>(x >> 8) * 2 + 1 - (1 << 24)) * 0x1p-24f;
    }

private:
    std::uint32_t first_, second_;
};

}  // namespace

template <class T>
void fill_noise(std::uint64_t seed, MatrixView<T> A) {
#pragma omp parallel for schedule(static)
    for (Index j = 0; j < A.cols; ++j) {
        const NoiseColumn a(seed, j);
        T* const to = A.at(0, j);
#pragma omp simd
        for (Index i = 0; i < A.rows; ++i) to[i] = a(i);
    }
}

template <class T>
UpperZeros<T>::UpperZeros(Index n) : n_(n) {
    const std::size_t bytes = static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * sizeof(T);
    void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw OutOfMemory("out of memory: " + std::to_string(bytes) + " bytes for R");
    // small pages: those below the diagonal stay unwritten
    madvise(p, bytes, MADV_NOHUGEPAGE);
    data_ = static_cast<T*>(p);
    // memory now, and not while R arrives
#pragma omp parallel for schedule(dynamic, 16)
    for (Index j = 0; j < n; ++j) std::fill_n(data_ + j * n, j + 1, T(0));
}
template <class T>
UpperZeros<T>::~UpperZeros() {
    munmap(data_, static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_) * sizeof(T));
}

template <class T>
Probed probe(std::uint64_t seed, MatrixView<const T> Q, MatrixView<const T> R) {
    const Index m = Q.rows, n = Q.cols;
    Pair X(n), RX(n), QX(m), QRX(m), AX(m), QtQX(n);
    const NoiseColumn x1(seed + 1, 0), x2(seed + 1, 1);
    for (Index j = 0; j < n; ++j) {
        X.first[j] = (x1(j) < 0 ? -1 : 1) / std::sqrt(double(n));
        X.second[j] = (x2(j) < 0 ? -1 : 1) / std::sqrt(double(n));
    }
    const auto all = [m](Index) { return m; };
    const auto column_of = [](MatrixView<const T> B) {
        return [B](Index j) { return [b = B.at(0, j)](Index i) { return double(b[i]); }; };
    };
    const auto column_of_a = [seed](Index j) { return [a = NoiseColumn(seed, j)](Index i) { return double(a(i)); }; };
    multiply(
        n, n, column_of(R), [](Index j) { return j + 1; }, X, RX);
    multiply(m, n, column_of(Q), all, X, QX);
    multiply(m, n, column_of(Q), all, RX, QRX);
    multiply(m, n, column_of_a, all, X, AX);
#pragma omp parallel for schedule(dynamic, 64)
    for (Index j = 0; j < n; ++j) {
        const T* const q = Q.at(0, j);
        double sum = 0, other = 0;
#pragma omp simd reduction(+ : sum, other)
        for (Index i = 0; i < m; ++i) {
            sum += double(q[i]) * QX.first[i];
            other += double(q[i]) * QX.second[i];
        }
        QtQX.first[j] = sum;
        QtQX.second[j] = other;
    }
    double departure = 0, residual = 0;
    const auto half_square = [](double a, double b) { return (a - b) * (a - b) / 2; };
    for (Index j = 0; j < n; ++j) {
        departure += half_square(QtQX.first[j], X.first[j]) + half_square(QtQX.second[j], X.second[j]);
    }
    for (Index i = 0; i < m; ++i) {
        residual += half_square(AX.first[i], QRX.first[i]) + half_square(AX.second[i], QRX.second[i]);
    }
    // ‖A‖_F² = mn/3 to a relative 1/√(mn)
    const double norm = std::sqrt(double(m) * double(n) / 3);
    return {std::sqrt(double(n) * departure), std::sqrt(double(n) * residual) / norm};
}

template void fill_noise<float>(std::uint64_t, MatrixView<float>);
template void fill_noise<double>(std::uint64_t, MatrixView<double>);
template class UpperZeros<float>;
template class UpperZeros<double>;
template Probed probe<float>(std::uint64_t, MatrixView<const float>, MatrixView<const float>);
template Probed probe<double>(std::uint64_t, MatrixView<const double>, MatrixView<const double>);

}  // namespace quoin::bench
