#pragma once

#include "primitives.hpp"
#include "robust_pca/pursuit.hpp"

namespace quoin {

template <class T, class D>
void update_low_rank_and_multipliers(Context<D>& ctx, View<const T, D> P, View<const T, D> M, View<const T, D> S,
                                     View<const std::uint8_t, D> observed, double mu, View<T, D> X, View<T, D> Y,
                                     SumsView<D> sums) {
    Matrix<T, D> next_X(ctx, X.rows, X.cols), next_S(ctx, X.rows, X.cols);
    Matrix<PursuitSums, D> next_sums(ctx, 1, 1);
    update_multipliers_and_sparse<T>(ctx, X, P, M, S, observed, mu, mu, 0, Y, next_X.view(), next_S.view(), sums,
                                     next_sums.view());
    multiply_right<T>(ctx, X, P, next_X.view());
    copy<T>(ctx, next_X.view(), X);
}

}  // namespace quoin
