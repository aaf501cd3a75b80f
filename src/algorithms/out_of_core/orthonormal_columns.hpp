#pragma once

// Gram-Schmidt of the columns in fast memory.

#include "algorithms/one_matrix/gram_schmidt.hpp"

namespace quoin {

/// Classical Gram-Schmidt in fast memory for columns that arrive from left to right: [Q₁ A₂] = [Q₁ Q₂] [I R₁₂; 0 R₂₂].
/// Q₂ overwrites A₂. R receives R₁₂ and R₂₂, and is zero on entry.
template <class T, class D>
class OrthonormalColumns {
public:
    OrthonormalColumns(Context<D>& ctx, MatrixView<T, D> Q, MatrixView<T, D> R, Arithmetic arithmetic,
                       Reorthogonalization reorthogonalization)
        : ctx_(ctx), Q_(Q), R_(R), basis_(ctx, plan_of(ctx, Q, arithmetic, reorthogonalization), Q.cols) {}

    /// Orthonormalizes the next columns.
    void append(Range columns) {
        const Range done{0, columns.end};
        basis_.orthonormalize(ctx_, Q_.col_block(done), R_.block(done, done), columns.begin);
    }

private:
    static Plan plan_of(Context<D>& ctx, MatrixView<const T, D> Q, Arithmetic arithmetic,
                        Reorthogonalization reorthogonalization) {
        Options options;
        options.method = ClassicalGramSchmidt{.reorthogonalization = reorthogonalization};
        options.q = QForm::Explicit;
        options.arithmetic = arithmetic;
        options.check_finite = false;
        return plan_qr<T>(ctx, Q.rows, Q.cols, options);
    }

    Context<D>& ctx_;
    const MatrixView<T, D> Q_, R_;
    GramSchmidtBasis<T, D> basis_;
};

}  // namespace quoin
