#include "random_matrix.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace quoin::cli {

template <class T>
Matrix<T> normal_matrix(Index rows, Index cols, std::uint64_t seed) {
    constexpr Index chunk = 1 << 16;
    const Index count = rows * cols;
    Matrix<T> A(rows, cols);
    T* data = A.data();
#pragma omp parallel for schedule(static)
    for (Index first = 0; first < count; first += chunk) {
        std::seed_seq seeds{seed, static_cast<std::uint64_t>(first / chunk)};
        std::mt19937_64 engine(seeds);
        std::normal_distribution<T> normal;
        std::generate(data + first, data + std::min(first + chunk, count), [&] { return normal(engine); });
    }
    return A;
}

void copy_in_parallel(void* to, const void* from, std::size_t bytes) {
    constexpr Index chunk = Index{4} << 20;
    const Index count = static_cast<Index>(bytes);
#pragma omp parallel for schedule(static)
    for (Index first = 0; first < count; first += chunk)
        std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                    static_cast<std::size_t>(std::min(chunk, count - first)));
}

template Matrix<float> normal_matrix<float>(Index, Index, std::uint64_t);
template Matrix<double> normal_matrix<double>(Index, Index, std::uint64_t);

}  // namespace quoin::cli
