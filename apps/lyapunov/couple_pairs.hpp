// `couple` for one instruction set. couple.cpp includes it once for each, in a namespace of its own:
//
//   QUOIN_TARGET         the attribute that has the compiler use the instruction set
//   QUOIN_VECTOR_BYTES   bytes of one vector register

template <int D>
QUOIN_TARGET void couple_pairs(std::span<const Coupling> pairs, const double* X, double* F) {
    typedef double Vector __attribute__((vector_size(QUOIN_VECTOR_BYTES), aligned(alignof(double)), may_alias));
    constexpr Index W = QUOIN_VECTOR_BYTES / sizeof(double), row = couple_width;
    for (const Coupling& c : pairs) {
        const double *const Xi = X + c.i * D * row, *const Xj = X + c.j * D * row;
        double *const Fi = F + c.i * D * row, *const Fj = F + c.j * D * row;
#pragma GCC unroll 4
        for (Index l = 0; l < row; l += W) {
            Vector x[D], along = {};
#pragma GCC unroll 3
            for (int a = 0; a < D; ++a) {
                x[a] = *reinterpret_cast<const Vector*>(Xi + a * row + l) -
                       *reinterpret_cast<const Vector*>(Xj + a * row + l);
                along += c.r[a] * x[a];
            }
            along *= c.beta;
#pragma GCC unroll 3
            for (int a = 0; a < D; ++a) {
                const Vector delta = c.alpha * x[a] + c.r[a] * along;
                *reinterpret_cast<Vector*>(Fi + a * row + l) += delta;
                *reinterpret_cast<Vector*>(Fj + a * row + l) -= delta;
            }
        }
    }
}

inline void couple(std::span<const Coupling> pairs, int d, const double* X, double* F) {
    if (d == 1) couple_pairs<1>(pairs, X, F);
    if (d == 2) couple_pairs<2>(pairs, X, F);
    if (d == 3) couple_pairs<3>(pairs, X, F);
}

#undef QUOIN_TARGET
#undef QUOIN_VECTOR_BYTES
