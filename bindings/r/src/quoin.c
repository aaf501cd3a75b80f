// The calls of the R package, by quoin.h. Each allocates what R owns first: an error of R would leave Quoin's memory.

#include <R.h>
#include <R_ext/Rdynload.h>
#include <Rinternals.h>
#include <quoin.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

static quoin_context* ctx;  // of the call in progress
static struct sigaction of_r;

static void stop_call(int signal) {
    (void)signal;
    quoin_request_stop(ctx);
}

/// Raises the last error as a condition of R.
static void raise_error(quoin_status status) {
    SEXP text = PROTECT(ScalarString(mkCharCE(quoin_last_error(), CE_UTF8)));
    SEXP call = PROTECT(lang3(install("raise"), ScalarInteger(status), text));
    eval(call, R_FindNamespace(mkString("quoin")));
    UNPROTECT(2);
}

/// Starts a call of Quoin: makes `ctx`, which Ctrl-C stops.
static void begin(SEXP threads) {
    const quoin_status status = quoin_context_create(QUOIN_HOST, asInteger(threads), NULL, &ctx);
    if (status) raise_error(status);
    struct sigaction stop = {0};
    stop.sa_handler = stop_call;
    sigaction(SIGINT, &stop, &of_r);
}

/// Ends a call of Quoin: raises an error, or R's interrupt.
static void end(quoin_status status) {
    sigaction(SIGINT, &of_r, NULL);
    quoin_context_destroy(ctx);
    if (status == QUOIN_INTERRUPTED) {
        raise(SIGINT);
        R_CheckUserInterrupt();
    }
    if (status) raise_error(status);
}

/// Allocates a matrix. Large pages save half of the time that the first write of a large one takes.
static SEXP make_matrix(int rows, int cols) {
    SEXP x = allocMatrix(REALSXP, rows, cols);
#ifdef MADV_HUGEPAGE
    const uintptr_t page = 1 << 21, first = ((uintptr_t)REAL(x) + page - 1) / page * page;
    const uintptr_t last = (uintptr_t)(REAL(x) + XLENGTH(x)) / page * page;
    if (first < last) madvise((void*)first, last - first, MADV_HUGEPAGE);
#endif
    return x;
}

/// Views a matrix of R, or a vector as one column.
static quoin_matrix view(SEXP x) {
    const int64_t rows = isMatrix(x) ? nrows(x) : XLENGTH(x), cols = isMatrix(x) ? ncols(x) : 1;
    return (quoin_matrix){REAL(x), rows, cols, rows > 0 ? rows : 1, QUOIN_TYPE_F64, QUOIN_COLUMN_MAJOR, 0};
}

static void finalize(SEXP handle) {
    quoin_factorization_destroy(R_ExternalPtrAddr(handle));
    R_ClearExternalPtr(handle);
}
/// Frees the factorization now: R's garbage collector does not know its size.
static SEXP release(SEXP handle) {
    finalize(handle);
    return R_NilValue;
}
/// Returns a pointer of R that owns a factorization, for now none.
static SEXP make_handle(void) {
    SEXP handle = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
    R_RegisterCFinalizer(handle, finalize);
    UNPROTECT(1);
    return handle;
}

/// Returns a handle of A P = QR held as reflectors, R, the one-based pivots, and the rank if there are pivots.
static SEXP factor(SEXP x, SEXP pivots, SEXP threads) {
    const char* names[] = {"handle", "R", "pivot", "rank", ""};
    const int m = nrows(x), n = ncols(x), k = m < n ? m : n;
    SEXP all = PROTECT(mkNamed(VECSXP, names));
    SET_VECTOR_ELT(all, 0, make_handle());
    SET_VECTOR_ELT(all, 1, allocMatrix(REALSXP, k, n));
    SET_VECTOR_ELT(all, 2, allocVector(INTSXP, n));
    int64_t* p = (int64_t*)R_alloc(n, sizeof *p);
    const quoin_matrix A = view(x), R = view(VECTOR_ELT(all, 1));
    quoin_options options;
    quoin_options_init(&options, sizeof options);
    options.q = QUOIN_Q_REFLECTORS;
    options.pivots = asInteger(pivots);
    quoin_report report;
    report.size = sizeof report;
    quoin_factorization* f;
    begin(threads);
    quoin_status status = quoin_factor(ctx, &A, &options, &f);
    if (!status) {
        R_SetExternalPtrAddr(VECTOR_ELT(all, 0), f);
        status = quoin_r(ctx, f, &R);
        quoin_permutation(f, p);
        quoin_factorization_report(f, &report);
    }
    end(status);
    for (int j = 0; j < n; ++j) INTEGER(VECTOR_ELT(all, 2))[j] = (int)p[j] + 1;
    SET_VECTOR_ELT(all, 3, ScalarInteger((int)report.rank));
    UNPROTECT(1);
    return all;
}

/// Returns Qᵀy or Qy.
static SEXP apply(SEXP handle, SEXP y, SEXP transpose, SEXP threads) {
    SEXP product = PROTECT(duplicate(y));
    const quoin_matrix C = view(product);
    begin(threads);
    end(quoin_apply_q(ctx, R_ExternalPtrAddr(handle), QUOIN_LEFT, asLogical(transpose), &C));
    UNPROTECT(1);
    return product;
}

/// Multiplies column j of `qr` below the diagonal by tau[j], or divides it if `invert`.
static void scale_reflectors(SEXP qr, SEXP tau, int invert) {
    const int64_t m = nrows(qr);
    for (int64_t j = 0; j < XLENGTH(tau); ++j) {
        const double factor = invert ? 1 / REAL(tau)[j] : REAL(tau)[j];
        double* column = REAL(qr) + j * m;
        if (REAL(tau)[j] != 0)
            for (int64_t i = j + 1; i < m; ++i) column[i] *= factor;
    }
}

/// Returns the factorization in the form of LINPACK that R's class `qr` has, and frees it.
///
/// LAPACK's H = I − tau v vᵀ with v = (1, …) is LINPACK's I − u uᵀ/u₁ with u = tau v and qraux = u₁ = tau.
static SEXP to_linpack(SEXP handle, SEXP rows, SEXP cols, SEXP threads) {
    const char* names[] = {"qr", "qraux", ""};
    const int m = asInteger(rows), n = asInteger(cols), k = m < n ? m : n;
    SEXP all = PROTECT(mkNamed(VECSXP, names));
    SEXP qr = make_matrix(m, n);
    SET_VECTOR_ELT(all, 0, qr);
    SEXP tau = allocVector(REALSXP, k);
    SET_VECTOR_ELT(all, 1, tau);
    const quoin_matrix V_R = view(qr), scalars = view(tau);
    quoin_factorization* f = R_ExternalPtrAddr(handle);
    begin(threads);
    R_ClearExternalPtr(handle);
    end(quoin_to_lapack(ctx, f, &V_R, &scalars));
    scale_reflectors(qr, tau, 0);
    UNPROTECT(1);
    return all;
}

/// Returns a handle of the first reflectors of LINPACK's form, `rank` of them.
static SEXP from_linpack(SEXP qr, SEXP qraux, SEXP rank, SEXP threads) {
    const int64_t m = nrows(qr), k = asInteger(rank);
    SEXP handle = PROTECT(make_handle());
    SEXP reflectors = PROTECT(allocMatrix(REALSXP, (int)m, (int)k)), tau = PROTECT(allocVector(REALSXP, k));
    memcpy(REAL(reflectors), REAL(qr), sizeof(double) * m * k);
    memcpy(REAL(tau), REAL(qraux), sizeof(double) * k);
    scale_reflectors(reflectors, tau, 1);
    const quoin_matrix V_R = view(reflectors), scalars = view(tau);
    quoin_factorization* f;
    begin(threads);
    const quoin_status status = quoin_from_lapack(ctx, &V_R, &scalars, &f);
    R_SetExternalPtrAddr(handle, f);
    end(status);
    UNPROTECT(3);
    return handle;
}

/// Returns s and, with `vectors`, U and Vᵀ, and how many singular values there are.
static SEXP svd(SEXP x, SEXP vectors, SEXP max_rank, SEXP tolerance, SEXP threads) {
    const char* names[] = {"d", "u", "vt", "k", ""};
    const int m = nrows(x), n = ncols(x), k = m < n ? m : n;
    SEXP all = PROTECT(mkNamed(VECSXP, names));
    SET_VECTOR_ELT(all, 0, allocVector(REALSXP, k));
    quoin_matrix A = view(x), U, Vt;
    if (asLogical(vectors)) {
        SET_VECTOR_ELT(all, 1, allocMatrix(REALSXP, m, k));
        SET_VECTOR_ELT(all, 2, allocMatrix(REALSXP, k, n));
        U = view(VECTOR_ELT(all, 1));
        Vt = view(VECTOR_ELT(all, 2));
    }
    quoin_options options;
    quoin_options_init(&options, sizeof options);
    options.max_rank = asInteger(max_rank);
    options.relative_tolerance = asReal(tolerance);
    if (options.max_rank != 0 || options.relative_tolerance != 0) options.pivots = QUOIN_PIVOTS_AUTO;
    int64_t found = 0;
    begin(threads);
    end(quoin_svd(ctx, &A, &options, REAL(VECTOR_ELT(all, 0)), asLogical(vectors) ? &U : NULL,
                  asLogical(vectors) ? &Vt : NULL, &found));
    SET_VECTOR_ELT(all, 3, ScalarInteger((int)found));
    UNPROTECT(1);
    return all;
}

static const R_CallMethodDef calls[] = {{"C_factor", (DL_FUNC)factor, 3},
                                        {"C_apply", (DL_FUNC)apply, 4},
                                        {"C_to_linpack", (DL_FUNC)to_linpack, 4},
                                        {"C_from_linpack", (DL_FUNC)from_linpack, 4},
                                        {"C_release", (DL_FUNC)release, 1},
                                        {"C_svd", (DL_FUNC)svd, 5},
                                        {NULL, NULL, 0}};

void R_init_quoin(DllInfo* library) {
    R_registerRoutines(library, NULL, calls, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
}
