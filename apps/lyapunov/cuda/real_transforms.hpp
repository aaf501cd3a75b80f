#pragma once

// cuFFT's transforms of real columns, by type.

#include <cufft.h>

#include <algorithm>
#include <type_traits>

#include "cuda/runtime/error.hpp"

namespace quoin::cuda {

inline void check(cufftResult status, const char* call) {
    if (status != CUFFT_SUCCESS) fail(call, "cuFFT status " + std::to_string(static_cast<int>(status)));
}

/// x and y, the real and the imaginary part.
template <class T>
using Complex = std::conditional_t<std::is_same_v<T, double>, cufftDoubleComplex, cufftComplex>;

/// A plan of transforms of `batch` columns, stored one after another without gaps. The caller provides its workspace.
class FftPlan {
public:
    FftPlan(cufftType type, Index points, Index from_rows, Index to_rows, Index batch) : FftPlan() {
        long long n = points, from = from_rows, to = to_rows;
        QUOIN_CUDA_CHECK(cufftSetAutoAllocation(plan_, 0));
        QUOIN_CUDA_CHECK(
            cufftMakePlanMany64(plan_, 1, &n, &from, 1, from_rows, &to, 1, to_rows, type, batch, &workspace_bytes_));
    }
    FftPlan(const FftPlan&) = delete;
    ~FftPlan() { cufftDestroy(plan_); }

    std::size_t workspace_bytes() const { return workspace_bytes_; }
    void set(cudaStream_t stream, void* workspace) {
        QUOIN_CUDA_CHECK(cufftSetStream(plan_, stream));
        QUOIN_CUDA_CHECK(cufftSetWorkArea(plan_, workspace));
    }
    cufftHandle handle() const { return plan_; }

private:
    FftPlan() { QUOIN_CUDA_CHECK(cufftCreate(&plan_)); }

    cufftHandle plan_ = 0;
    std::size_t workspace_bytes_ = 0;
};

/// Transforms between G/2 + 1 coefficients U_0 … U_{G/2} and G values of each column:
///
///   u_g = Σ_k U_k exp(2πikg/G), −G/2 < k <= G/2, U_{−k} = conj(U_k),   and   U_k = Σ_g u_g exp(−2πikg/G)
template <class T>
class RealTransforms {
public:
    RealTransforms(Index points, Index batch)
        : to_values_(wide ? CUFFT_Z2D : CUFFT_C2R, points, points / 2 + 1, points, batch),
          to_coefficients_(wide ? CUFFT_D2Z : CUFFT_R2C, points, points, points / 2 + 1, batch) {}

    std::size_t workspace_bytes() const {
        return std::max(to_values_.workspace_bytes(), to_coefficients_.workspace_bytes());
    }
    /// Sets the stream and the workspace of later calls.
    void set(cudaStream_t stream, void* workspace) {
        to_values_.set(stream, workspace);
        to_coefficients_.set(stream, workspace);
    }
    /// u := the values of the coefficients U. Overwrites U.
    void to_values(Complex<T>* U, T* u) {
        if constexpr (wide) {
            QUOIN_CUDA_CHECK(cufftExecZ2D(to_values_.handle(), U, u));
        } else {
            QUOIN_CUDA_CHECK(cufftExecC2R(to_values_.handle(), U, u));
        }
    }
    /// U := the coefficients of the values u. Overwrites u.
    void to_coefficients(T* u, Complex<T>* U) {
        if constexpr (wide) {
            QUOIN_CUDA_CHECK(cufftExecD2Z(to_coefficients_.handle(), u, U));
        } else {
            QUOIN_CUDA_CHECK(cufftExecR2C(to_coefficients_.handle(), u, U));
        }
    }

private:
    static constexpr bool wide = std::is_same_v<T, double>;
    FftPlan to_values_, to_coefficients_;
};

}  // namespace quoin::cuda
