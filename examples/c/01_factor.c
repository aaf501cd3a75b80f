// A = QR of a row-major matrix from C: R, a product with Q, and the answer to a mistake.

#include <math.h>
#include <stdio.h>

#include "quoin.h"

enum { m = 1000, n = 3 };

int main(void) {
    static double a[m][n], c[m][1];
    double r[n][n];
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) a[i][j] = cos((double)j * i / m);
        c[i][0] = a[i][0] + a[i][2];
    }
    const quoin_matrix A = {a, m, n, n, QUOIN_TYPE_F64, QUOIN_ROW_MAJOR, 0};
    const quoin_matrix C = {c, m, 1, 1, QUOIN_TYPE_F64, QUOIN_ROW_MAJOR, 0};
    const quoin_matrix R = {r, n, n, n, QUOIN_TYPE_F64, QUOIN_ROW_MAJOR, 0};

    quoin_context* ctx = NULL;
    quoin_factorization* f = NULL;
    quoin_options options;
    quoin_options_init(&options, sizeof options);
    options.positive_diagonal = 1;
    if (quoin_context_create(QUOIN_HOST, 0, NULL, &ctx) || quoin_factor(ctx, &A, &options, &f) || quoin_r(ctx, f, &R) ||
        quoin_apply_q(ctx, f, QUOIN_LEFT, QUOIN_TRANSPOSE, &C)) {
        fprintf(stderr, "%s\n", quoin_last_error());
        return 1;
    }
    // c = a_0 + a_2, so that Qᵀc = r_0 + r_2, and zeros
    double error = 0;
    for (int i = 0; i < m; ++i) error = fmax(error, fabs(c[i][0] - (i < n ? r[i][0] + r[i][2] : 0)));
    printf("quoin %s: R has the diagonal %.4f, %.4f, %.4f; error of Q'c %.1e\n", quoin_version(), r[0][0], r[1][1],
           r[2][2], error);
    quoin_factorization_destroy(f);

    // with a mistake: the answer is a status and a sentence
    options.method = QUOIN_METHOD_TSQR;
    options.fan_in = 1;
    const quoin_status status = quoin_factor(ctx, &A, &options, &f);
    printf("status %d: %s\n", status, quoin_last_error());
    quoin_context_destroy(ctx);
    return error < 1e-12 && r[1][1] > 0 && status == QUOIN_INVALID_ARGUMENT ? 0 : 1;
}
