#pragma once

#include <string>

#include "quoin/options.hpp"

/// The methods and forms of Q that parametrise tests, and readable names for what a failure is about.
namespace quoin::test {

inline constexpr Method unconditional_methods[] = {Method::Auto, Method::BlockedHouseholder, Method::TSQR,
                                                   Method::CAQR};
inline constexpr Method conditional_methods[] = {Method::CholeskyQR2, Method::RandomizedCholeskyQR};
inline constexpr Method named_methods[] = {Method::BlockedHouseholder, Method::TSQR, Method::CAQR, Method::CholeskyQR2,
                                           Method::RandomizedCholeskyQR};
inline constexpr Method all_methods[] = {Method::Auto, Method::BlockedHouseholder, Method::TSQR,
                                         Method::CAQR, Method::CholeskyQR2,        Method::RandomizedCholeskyQR};

inline constexpr QForm q_forms[] = {QForm::Any, QForm::None, QForm::Explicit, QForm::Reflectors};
inline constexpr QForm q_forms_with_q[] = {QForm::Any, QForm::Explicit, QForm::Reflectors};

inline bool is_conditional(Method method) {
    return method == Method::CholeskyQR2 || method == Method::RandomizedCholeskyQR;
}

/// Whether the method factors an m×n matrix: the Gram matrix of a wide one is singular.
inline bool factors_shape(Method method, Index m, Index n) {
    return m >= n || (method != Method::CholeskyQR2 && method != Method::RandomizedCholeskyQR);
}

inline Options with(Method method, QForm q = QForm::Any) {
    Options options;
    options.method = method;
    options.q = q;
    return options;
}

/// Gram-Schmidt in every way it is offered, for any m >= n and q but Reflectors.
inline constexpr struct GramSchmidtCase {
    const char* name;
    Method method;
    Reorthogonalization reorthogonalization;
    GramSchmidtPanel panel = GramSchmidtPanel::MGS;

    /// Whether it obeys the law for every finite matrix.
    bool unconditional() const { return reorthogonalization != Reorthogonalization::Off; }
    Options options(Index panel_width = 0, QForm q = QForm::Explicit) const {
        Options options;
        options.method = method;
        options.q = q;
        options.method.set_reorthogonalization(reorthogonalization);
        if (method == Method::ClassicalGramSchmidt) options.method.set_panel(panel);
        options.method.set_panel_width(panel_width);
        return options;
    }
} gram_schmidt_cases[] = {
    {"mgs", Method::ModifiedGramSchmidt, Reorthogonalization::Off},
    {"mgs_selective", Method::ModifiedGramSchmidt, Reorthogonalization::Selective},
    {"mgs_always", Method::ModifiedGramSchmidt, Reorthogonalization::Always},
    {"cgs", Method::ClassicalGramSchmidt, Reorthogonalization::Off},
    {"cgs_selective", Method::ClassicalGramSchmidt, Reorthogonalization::Selective},
    {"cgs_always", Method::ClassicalGramSchmidt, Reorthogonalization::Always},
    {"cgs_cholesky", Method::ClassicalGramSchmidt, Reorthogonalization::Off, GramSchmidtPanel::CholeskyQR2},
    {"cgs_cholesky_selective", Method::ClassicalGramSchmidt, Reorthogonalization::Selective,
     GramSchmidtPanel::CholeskyQR2},
    {"cgs_cholesky_always", Method::ClassicalGramSchmidt, Reorthogonalization::Always, GramSchmidtPanel::CholeskyQR2},
};

/// "40000x33".
inline std::string shape_name(Index m, Index n) { return std::to_string(m) + "x" + std::to_string(n); }

/// "40000x33 tsqr explicit".
inline std::string case_name(Index m, Index n, Method method, QForm q) {
    return shape_name(m, n) + " " + to_string(method) + " " + to_string(q);
}

}  // namespace quoin::test
