#pragma once

#include <cstdint>

#include "quoin/matrix.hpp"

namespace quoin::bench {

/// Matrices of the host that are as large as its memory allows: made by all cores in seconds, and known again entry by entry, so
/// that what a factorization in their place has come to can be measured without a copy.

/// A := the matrix of `seed`: entries uniform on (−1, 1), multiples of 2⁻²⁴, by a hash of row and column, the same for every
/// machine and number of threads.
template <class T>
void fill_noise(std::uint64_t seed, MatrixView<T> A);

/// An n×n matrix of zeros, of which only the pages on and above the diagonal are memory, as long as nobody writes below.
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
/// Of A = the matrix of `seed`, in double. Two passes over Q, one over R, and A made anew.
template <class T>
Probed probe(std::uint64_t seed, MatrixView<const T> Q, MatrixView<const T> R);

}  // namespace quoin::bench
