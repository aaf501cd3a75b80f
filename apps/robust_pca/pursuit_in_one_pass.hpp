#pragma once

#include "primitives.hpp"
#include "robust_pca/pursuit.hpp"

namespace quoin {

template <class T, class D>
void update_multipliers_and_sparse(Context<D>& ctx, View<const T, D> X, View<const T, D> P, View<const T, D> M,
                                   View<const T, D> S, View<const std::uint8_t, D> observed, double mu, double next_mu,
                                   double next_threshold, View<T, D> Y, View<T, D> next_X, View<T, D> next_S,
                                   SumsView<D> sums, SumsView<D> next_sums) {
    copy<T>(ctx, X, next_X);
    copy<T>(ctx, S, next_S);
    update_low_rank_and_multipliers<T>(ctx, P, M, S, observed, mu, next_X, Y, sums);
    shrink_sparse<T>(ctx, M, Y, observed, next_mu, next_threshold, next_X, next_S, next_sums);
}

template <class T, class D>
void multiply_right(Context<D>& ctx, View<const T, D> X, View<const T, D> P, View<T, D> L) {
    // L = 0 − X (−P)
    Matrix<T, D> minus_P(ctx, P.rows, P.cols);
    copy<T>(ctx, P, minus_P.view());
    negate<T>(ctx, minus_P.view());
    set_identity<T>(ctx, L.cols, L);
    subtract_product<T>(ctx, X, minus_P.view(), L);
}

}  // namespace quoin
