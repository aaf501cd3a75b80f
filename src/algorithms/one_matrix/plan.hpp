#pragma once

// Kinds of methods, and the costs of a plan.

#include <span>

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

/// Returns the form of Q that `method` holds if `Auto` takes it for `form`. On a GPU all but trees hold reflectors for
/// QForm::Any.
template <class D>
QForm held_form(QForm form, Method method) {
    return Tuning<D>::reflectors_are_any_form && form == QForm::Any && !is_tree(method) ? QForm::Reflectors : form;
}

/// Whether three products of f16 replace one of T on this device.
template <class T, class D>
inline constexpr bool corrected_products = Tuning<D>::corrected_products&& Scalar<T>::has_halves;

/// Fills in the plan's flops and bytes_moved, from the counts in the primitives' contracts.
void count_costs(Plan& plan);
/// Returns the bytes of memory on D that the factorization takes beyond A, by one thread of the host.
template <class T, class D>
double workspace_bytes(const Tuning<D>& tuning, const Plan& plan);
/// Returns the time of the plan by the times of its steps, in ns of one core: the factorization, the work that `q`
/// requires, and, for QForm::Any, QᵀC. C has A's number of columns, at most 16.
double modelled_time(const Plan& plan, const StepTimes& times);

/// Returns the methods whose modelled times `Auto` compares for an m×n matrix: one, and no time, if there is no choice.
template <class D>
std::span<const Method> compared_methods(Index m, Index n, ScalarKind scalar, QForm q) {
    static constexpr Method methods[] = {Method::CholeskyQR2, Method::BlockedHouseholder, Method::TSQR, Method::CAQR};
    const std::span<const Method> all(methods);
    // the closer a matrix is to square, the fewer such matrices get a certificate
    const bool tall = Tuning<D>::tall(m, n, scalar);
    if (tall && (q == QForm::None || q == QForm::Explicit)) return all.first(1);
    if (m * n < Tuning<D>::min_compared) return all.subspan(1, 1);
    // trees reach LAPACK's format by forming Q first
    return all.first(q == QForm::Reflectors ? 2 : 4).subspan(tall ? 0 : 1);
}

/// Returns the plan of plan_qr for a device that need not be here; if `built_in`, without the user's table of times.
/// Ranks, whose machines may have different tables, choose so.
template <class T, class D>
Plan plan_for(const Tuning<D>& tuning, Index m, Index n, const Options& options, bool built_in = false);

}  // namespace quoin
