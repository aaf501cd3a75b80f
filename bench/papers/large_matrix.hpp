#pragma once

#include <cstdint>

#include "quoin/matrix.hpp"

namespace quoin::bench {

/// Matrices as large as the host's memory allows. All cores make them in seconds, and any entry can be made again, so
/// that a factorization in their place can be checked without a copy.

/// A := the matrix of `seed`: entries uniform on (−1, 1), multiples of 2⁻²⁴, by a hash of row and column, the same for
/// every machine and number of threads.
template <class T>
void fill_noise(std::uint64_t seed, MatrixView<T> A);

/// Returns an n×n matrix of zeros. Only pages on and above the diagonal take memory, as long as nothing is written
/// below it.
template <class T>
class UpperZeros {
public:
    explicit UpperZeros(Index n);
    UpperZeros(const UpperZeros&) = delete;
    ~UpperZeros();
    MatrixView<T> view() const { return {data_, n_, n_}; }

private:
    T* data_;
    Index n_;
};

/// Estimates by random vectors x of ±1/√n: E‖Ex‖² = ‖E‖_F²/n (Hutchinson), here of two x.
struct Probed {
    double orthogonality = -1;  ///< √n ‖Qᵀ(Qx) − x‖, for ‖I − QᵀQ‖_F
    double residual = -1;       ///< √n ‖A x − Q (R x)‖ / ‖A‖_F
};
/// Measures Q and R of A, the matrix of `seed`, in double. Two passes over Q and one over R; A is made anew.
template <class T>
Probed probe(std::uint64_t seed, MatrixView<const T> Q, MatrixView<const T> R);

}  // namespace quoin::bench
