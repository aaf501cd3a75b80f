// Least squares from C: a line through points, and a thousand lines at once by a batch.

#include <math.h>
#include <stdio.h>

#include "quoin.h"

enum { m = 50, lines = 1000 };

int main(void) {
    static float a[m][2], b[lines][m][1];
    static float x[lines][2][1];
    for (int i = 0; i < m; ++i) {
        a[i][0] = 1;
        a[i][1] = (float)i / m;
        for (int l = 0; l < lines; ++l) b[l][i][0] = 3 + (float)l / lines * a[i][1];
    }
    // with stride 0 one A serves all; each right-hand side is m entries after the one before
    const quoin_matrix A = {a, m, 2, 2, QUOIN_TYPE_F32, QUOIN_ROW_MAJOR, 0};
    const quoin_matrix B = {b, m, 1, 1, QUOIN_TYPE_F32, QUOIN_ROW_MAJOR, m};
    const quoin_matrix X = {x, 2, 1, 1, QUOIN_TYPE_F32, QUOIN_ROW_MAJOR, 2};
    float residual_norm = -1;
    quoin_solution solution = {.size = sizeof solution};
    quoin_context* ctx = NULL;
    if (quoin_context_create(QUOIN_HOST, 0, NULL, &ctx) ||
        quoin_least_squares(ctx, &A, &B, NULL, &X, &residual_norm, &solution) ||
        quoin_least_squares_batch(ctx, lines, &A, &B, NULL, &X)) {
        fprintf(stderr, "%s\n", quoin_last_error());
        return 1;
    }
    printf("rank %d, condition about %.1f, residual norm %.1e\n", (int)solution.rank, solution.condition,
           residual_norm);
    float error = 0;
    for (int l = 0; l < lines; ++l) {
        error = fmaxf(error, fabsf(x[l][0][0] - 3));
        error = fmaxf(error, fabsf(x[l][1][0] - (float)l / lines));
    }
    printf("largest error of %d lines: %.1e\n", lines, error);
    quoin_context_destroy(ctx);
    return solution.rank == 2 && residual_norm < 1e-5f && error < 1e-5f ? 0 : 1;
}
