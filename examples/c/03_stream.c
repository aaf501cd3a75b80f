// A matrix whose rows arrive block by block, from C: R and least squares in O(n²) memory.

#include <math.h>
#include <stdio.h>

#include "quoin.h"

enum { m = 100000, n = 12, block = 5000 };

int main(void) {
    static double a[block][n], b[block][1];
    double x[n], r[n][n], norm, square = 0;
    const quoin_matrix A = {a, block, n, n, QUOIN_TYPE_F64, QUOIN_ROW_MAJOR, 0};
    const quoin_matrix B = {b, block, 1, 1, QUOIN_TYPE_F64, QUOIN_ROW_MAJOR, 0};
    const quoin_matrix X = {x, n, 1, n, QUOIN_TYPE_F64, QUOIN_COLUMN_MAJOR, 0};
    const quoin_matrix R = {r, n, n, n, QUOIN_TYPE_F64, QUOIN_ROW_MAJOR, 0};

    quoin_context* ctx = NULL;
    quoin_stream* stream = NULL;
    quoin_status status = quoin_context_create(QUOIN_HOST, 0, NULL, &ctx);
    if (!status) status = quoin_stream_create(ctx, QUOIN_TYPE_F64, n, 1, &stream);
    for (int first = 0; first < m && !status; first += block) {
        for (int i = 0; i < block; ++i) {
            const double t = 3.1 * (first + i) / m;
            for (int j = 0; j < n; ++j) a[i][j] = cos(j * t);
            b[i][0] = cos(3 * t) + 0.5;
            square += a[i][0] * a[i][0];
        }
        status = quoin_stream_append(ctx, stream, &A, &B);
    }
    if (status || quoin_stream_solve(ctx, stream, NULL, &X, &norm, NULL) || quoin_stream_r(ctx, stream, &R)) {
        fprintf(stderr, "%s\n", quoin_last_error());
        return 1;
    }
    // b is column 3 plus half of column 0; |r_00| is the norm of column 0
    printf("x_0 = %.6f, x_3 = %.6f, residual norm %.1e, |r_00| = %.6f\n", x[0], x[3], norm, fabs(r[0][0]));
    quoin_stream_destroy(stream);
    quoin_context_destroy(ctx);
    const int solved = fabs(x[0] - 0.5) < 1e-12 && fabs(x[3] - 1) < 1e-12;
    return solved && fabs(fabs(r[0][0]) / sqrt(square) - 1) < 1e-13 ? 0 : 1;
}
