#include "streamed_accuracy.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>

namespace quoin::cli {

namespace {

constexpr Index tile_rows = 256;

double column_norm(Index rows, const double* x) { return cblas_dnrm2(static_cast<int>(rows), x, 1); }
double column_norm(Index rows, const float* x) {
    return std::sqrt(cblas_dsdot(static_cast<int>(rows), x, 1, x, 1));  // squares of floats cannot overflow a double
}

/// ‖A‖_F without overflow.
template <class T>
double frobenius_norm(MatrixView<const T> A) {
    double norm = 0;
    for (Index j = 0; j < A.cols; ++j) norm = std::hypot(norm, column_norm(A.rows, A.at(0, j)));
    return norm;
}

}  // namespace

template <class T>
StreamedAccuracy<T>::StreamedAccuracy(Index n)
    : n_(n), rows_(tile_rows * n), product_(n * n), gram_(n * n), compensation_(n * n) {}

template <class T>
void StreamedAccuracy<T>::add(Context<Host>& ctx, MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R) {
    for (Index first = 0; first < Q.rows; first += tile_rows) {
        const Index h = std::min(tile_rows, Q.rows - first);
        for (Index j = 0; j < n_; ++j) std::copy_n(Q.at(first, j), h, &rows_[j * tile_rows]);
        cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, static_cast<int>(n_), static_cast<int>(h), 1, rows_.data(),
                    tile_rows, 0, product_.data(), static_cast<int>(n_));
        for (std::size_t i = 0; i < gram_.size(); ++i) {
            // Neumaier: gram + compensation is the sum so far
            const double sum = gram_[i] + product_[i];
            compensation_[i] += std::abs(gram_[i]) >= std::abs(product_[i]) ? (gram_[i] - sum) + product_[i]
                                                                            : (product_[i] - sum) + gram_[i];
            gram_[i] = sum;
        }
    }
    // ‖A − QR‖² = Σ ‖A_b − Q_b R‖²; `residual` divides by ‖A_b‖ unless that is zero
    const double norm = frobenius_norm(A);
    residual_norm_ = std::hypot(residual_norm_, quoin::residual<T>(ctx, A, Q, R) * (norm > 0 ? norm : 1));
    norm_ = std::hypot(norm_, norm);
}

template <class T>
double StreamedAccuracy<T>::orthogonality() const {
    double sum = 0;
    for (Index j = 0; j < n_; ++j)
        for (Index i = 0; i <= j; ++i) {
            const double departure = (gram_[i + j * n_] - (i == j ? 1 : 0)) + compensation_[i + j * n_];
            sum += (i == j ? 1 : 2) * departure * departure;
        }
    return std::sqrt(sum);
}

template <class T>
double StreamedAccuracy<T>::residual() const {
    return norm_ > 0 ? residual_norm_ / norm_ : residual_norm_;
}

template class StreamedAccuracy<float>;
template class StreamedAccuracy<double>;

}  // namespace quoin::cli
