#pragma once

// Batches on a GPU for tests: lists of matrices, and matrices side by side in one.

#include <vector>

#include "gpu.hpp"
#include "quoin/batch.hpp"

namespace quoin::test {

template <class T>
class OnGpuBatches : public OnGpu {
protected:
    using View = BatchView<const T, Cuda>;

    std::vector<Matrix<T, Cuda>> on_gpu(const std::vector<Matrix<T>>& matrices) {
        std::vector<Matrix<T, Cuda>> copies;
        for (const auto& A : matrices) copies.push_back(copy_to_device<T>(gpu(), A.view()));
        return copies;
    }
    static View of(const std::vector<Matrix<T, Cuda>>& matrices) {
        std::vector<MatrixView<const T, Cuda>> views;
        for (const auto& A : matrices) views.push_back(A.view());
        return View(std::move(views));
    }
    /// Its columns, n for each matrix.
    static View in(const Matrix<T, Cuda>& all, Index n) {
        const Index m = all.rows();
        return {all.data(), m, n, all.ld(), m * n, n > 0 ? all.cols() / n : 0};
    }
    Matrix<T> fetched(MatrixView<T, Cuda> A) { return copy_to_host<T>(gpu(), MatrixView<const T, Cuda>(A)); }
};

}  // namespace quoin::test
