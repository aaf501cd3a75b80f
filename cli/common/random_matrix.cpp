#include "random_matrix.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace quoin::cli {

template <class T>
void fill_normal(Matrix<T>& A, std::uint64_t seed) {
    constexpr Index chunk = 1 << 16;
    const Index count = A.rows() * A.cols();
    T* data = A.data();
#pragma omp parallel for schedule(static)
    for (Index first = 0; first < count; first += chunk) {
        std::seed_seq seeds{seed, static_cast<std::uint64_t>(first / chunk)};
        std::mt19937_64 engine(seeds);
        std::normal_distribution<T> normal;
        std::generate(data + first, data + std::min(first + chunk, count), [&] { return normal(engine); });
    }
}

void copy_in_parallel(void* to, const void* from, std::size_t bytes) {
    constexpr Index chunk = Index{4} << 20;
    const Index count = static_cast<Index>(bytes);
#pragma omp parallel for schedule(static)
    for (Index first = 0; first < count; first += chunk)
        std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                    static_cast<std::size_t>(std::min(chunk, count - first)));
}

template void fill_normal(Matrix<float>&, std::uint64_t);
template void fill_normal(Matrix<double>&, std::uint64_t);

}  // namespace quoin::cli
