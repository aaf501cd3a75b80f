#include "streamed_accuracy.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace quoin::cli {

namespace {

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
StreamedAccuracy<T>::StreamedAccuracy(Index k, Index n) : StreamedAccuracy(k, {0, n}, max_rows) {}

template <class T>
StreamedAccuracy<T>::StreamedAccuracy(Index k, Range J, Index tile)
    : J_{std::min(k, J.begin), std::min(k, J.end)},
      columns_(J_.end),
      tile_(tile),
      rows_(tile * columns_),
      product_(columns_ * J_.size()),
      gram_(product_.size()),
      compensation_(product_.size()) {}

template <class T>
void StreamedAccuracy<T>::add(Context<Host>& ctx, MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R) {
    const int left = static_cast<int>(J_.begin), w = static_cast<int>(J_.size()), ld = static_cast<int>(columns_),
              t = static_cast<int>(tile_);
    for (Index first = 0; first < Q.rows && w > 0; first += tile_) {
        const int h = static_cast<int>(std::min(tile_, Q.rows - first));
        for (Index j = 0; j < columns_; ++j) std::copy_n(Q.at(first, j), h, &rows_[j * tile_]);
        // (QᵀQ)(:, J), its square on the diagonal by its upper half
        const double* const Q_J = &rows_[J_.begin * tile_];
        if (left > 0) {
            cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, left, w, h, 1, rows_.data(), t, Q_J, t, 0,
                        product_.data(), ld);
        }
        cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, w, h, 1, Q_J, t, 0, &product_[J_.begin], ld);
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
void StreamedAccuracy<T>::add(const StreamedAccuracy& other) {
    residual_norm_ = std::hypot(residual_norm_, other.residual_norm_);
    norm_ = std::hypot(norm_, other.norm_);
    others_ = std::hypot(others_, other.orthogonality());
}

template <class T>
void StreamedAccuracy<T>::add_ranks(Context<Host>& ctx, Communicator& comm) {
    for (std::size_t i = 0; i < gram_.size(); ++i) gram_[i] += std::exchange(compensation_[i], 0);
    comm.all_reduce<double>(ctx, {gram_.data(), static_cast<Index>(gram_.size()), 1});
    for (double* norm : {&residual_norm_, &norm_, &others_}) {
        double largest = *norm;
        comm.all_reduce<double>(ctx, {&largest, 1, 1}, Reduction::Max);
        double squares = largest > 0 ? std::pow(*norm / largest, 2) : 0;
        comm.all_reduce<double>(ctx, {&squares, 1, 1});
        *norm = largest * std::sqrt(squares);
    }
}

template <class T>
double StreamedAccuracy<T>::departure() const {
    double sum = 0;
    for (Index j = J_.begin; j < J_.end; ++j)
        for (Index i = 0; i <= j; ++i) {
            const Index at = i + (j - J_.begin) * columns_;
            const double departure = (gram_[at] - (i == j ? 1 : 0)) + compensation_[at];
            sum += (i == j ? 1 : 2) * departure * departure;
        }
    return std::sqrt(sum);
}

template <class T>
double StreamedAccuracy<T>::orthogonality() const {
    return std::hypot(departure(), others_);
}

template <class T>
double StreamedAccuracy<T>::residual() const {
    return norm_ > 0 ? residual_norm_ / norm_ : residual_norm_;
}

template class StreamedAccuracy<float>;
template class StreamedAccuracy<double>;

}  // namespace quoin::cli
