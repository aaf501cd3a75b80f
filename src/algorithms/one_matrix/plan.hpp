#pragma once

// Kinds of methods, and the costs of a plan.

#include "primitives/tuning.hpp"
#include "quoin/options.hpp"

namespace quoin {

inline bool is_cholesky(Method method) {
    return method == Method::CholeskyQR2 || method == Method::RandomizedCholeskyQR;
}

inline bool is_tree(Method method) { return method == Method::TSQR || method == Method::CAQR; }

inline bool is_gram_schmidt(Method method) {
    return method == Method::ModifiedGramSchmidt || method == Method::ClassicalGramSchmidt;
}

/// Whether three products of f16 replace one of T on this device.
template <class T, class D>
inline constexpr bool corrected_products = Tuning<D>::corrected_products&& Scalar<T>::has_halves;

/// Fills in the plan's flops and bytes_moved, from the counts in the primitives' contracts.
void count_costs(Plan& plan);
/// Returns the bytes of memory on D that the factorization takes beyond A, by one thread of the host.
template <class T, class D>
double workspace_bytes(const Plan& plan);
/// Returns the time of the plan by the times of its steps, in ns of one core: the factorization, the work that `q`
/// requires, and, for QForm::Any, QᵀC. C has A's number of columns, at most 16.
double modelled_time(const Plan& plan, const StepTimes& times);

}  // namespace quoin
