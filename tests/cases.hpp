#pragma once

#include <string>

#include "quoin/options.hpp"

/// The methods and forms of Q that parametrise tests, and readable names for what a failure is about.
namespace quoin::test {

inline constexpr Method unconditional_methods[] = {Method::Auto, Method::BlockedHouseholder, Method::TSQR,
                                                   Method::CAQR};
inline constexpr Method conditional_methods[] = {Method::CholeskyQR2, Method::ShiftedCholeskyQR3};
inline constexpr Method named_methods[] = {Method::BlockedHouseholder, Method::TSQR, Method::CAQR, Method::CholeskyQR2,
                                           Method::ShiftedCholeskyQR3};
inline constexpr Method all_methods[] = {Method::Auto, Method::BlockedHouseholder, Method::TSQR,
                                         Method::CAQR, Method::CholeskyQR2,        Method::ShiftedCholeskyQR3};

inline constexpr QForm q_forms[] = {QForm::Any, QForm::None, QForm::Explicit, QForm::Reflectors};
inline constexpr QForm q_forms_with_q[] = {QForm::Any, QForm::Explicit, QForm::Reflectors};

inline bool is_conditional(Method method) {
    return method == Method::CholeskyQR2 || method == Method::ShiftedCholeskyQR3;
}

/// Whether the method factors an m×n matrix: the Gram matrix of a wide one is singular.
inline bool factors_shape(Method method, Index m, Index n) {
    return m >= n || (method != Method::CholeskyQR2 && method != Method::ShiftedCholeskyQR3);
}

inline Options with(Method method, QForm q = QForm::Any) {
    Options options;
    options.method = method;
    options.q = q;
    return options;
}

/// "40000x33".
inline std::string shape_name(Index m, Index n) { return std::to_string(m) + "x" + std::to_string(n); }

/// "40000x33 tsqr explicit".
inline std::string case_name(Index m, Index n, Method method, QForm q) {
    return shape_name(m, n) + " " + to_string(method) + " " + to_string(q);
}

}  // namespace quoin::test
