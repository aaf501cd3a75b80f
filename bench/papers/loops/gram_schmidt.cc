// Modified Gram-Schmidt as a C++ compiler gets it in Brandes, Arnold, Soddemann and Reith (2012): Listing 1 by linear
// indexes, its loops over columns shared by OpenMP, and the blocked code of Section 3.

#include <cmath>
#include <cstring>
#include <vector>

static void unblocked(REAL* q, REAL* r, long m, long n, long ldr, int threads) {
    for (long i = 0; i < n; ++i) {
#pragma omp parallel for num_threads(threads)
        for (long j = i; j < n; ++j) {
            r[j * ldr + i] = 0;
            for (long k = 0; k < m; ++k) r[j * ldr + i] += q[i * m + k] * q[j * m + k];
        }
        r[i * ldr + i] = std::sqrt(r[i * ldr + i]);
        for (long k = 0; k < m; ++k) q[i * m + k] /= r[i * ldr + i];
        for (long j = i + 1; j < n; ++j) r[j * ldr + i] /= r[i * ldr + i];
#pragma omp parallel for num_threads(threads)
        for (long j = i + 1; j < n; ++j)
            for (long k = 0; k < m; ++k) q[j * m + k] -= q[i * m + k] * r[j * ldr + i];
    }
}

/// Factors the m×n matrix q in place by blocks of b columns; b = n: unblocked.
extern "C" void gram_schmidt(REAL* q, REAL* r, long m, long n, long b, int threads) {
    std::vector<REAL> saved(b < n ? b * m : 0);
    for (long i1 = 0; i1 < n; i1 += b) {
        const long i2 = i1 + b < n ? i1 + b : n;
        if (i2 < n) std::memcpy(saved.data(), q + i1 * m, sizeof(REAL) * (i2 - i1) * m);
        unblocked(q + i1 * m, r + i1 * n + i1, m, i2 - i1, n, threads);
#pragma omp parallel for num_threads(threads)
        for (long j = i2; j < n; ++j)
            for (long i = i1; i < i2; ++i) {
                r[j * n + i] = 0;
                for (long k = 0; k < m; ++k) r[j * n + i] += saved[(i - i1) * m + k] * q[j * m + k];
                r[j * n + i] /= r[i * n + i];
                for (long k = 0; k < m; ++k) q[j * m + k] -= r[j * n + i] * q[i * m + k];
            }
    }
}
