#ifndef QUOIN_H
#define QUOIN_H

/// The C interface of Quoin: QR factorizations, least squares and singular values, from C99 and all that calls C.
///
/// Functions that can fail return QUOIN_OK or another quoin_status; `quoin_last_error` then has a sentence. Handles
/// come from a `create` function or `quoin_factor`, are independent of each other, and are freed by their `destroy`,
/// which takes null. A context serves one thread at a time; so does a stream. A factorization may be used by several
/// threads at once, each with a context of its own on the same device. docs/c.md is the guide. The headers in quoin/
/// have the error bounds and the costs of each call.
///
///     double a[] = {3, 4, 0, 5}, r[4];
///     quoin_matrix A = {a, 2, 2, 2, QUOIN_TYPE_F64, QUOIN_COLUMN_MAJOR, 0}, R = A;
///     R.data = r;
///     quoin_context *ctx;
///     if (quoin_context_create(QUOIN_HOST, 0, NULL, &ctx) || quoin_qr(ctx, &A, NULL, NULL, &R))
///         puts(quoin_last_error());
///     quoin_context_destroy(ctx);

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Outcomes of a call, the exit codes of the program `quoin`.
typedef enum quoin_status {
    QUOIN_OK = 0,
    QUOIN_OTHER_FAILURE = 1,        ///< a failure of the C++ library or of the system
    QUOIN_INVALID_ARGUMENT = 2,     ///< the sentence names the argument and says why
    QUOIN_NON_FINITE_ENTRY = 3,     ///< the input holds NaN or Inf; the sentence names the first entry
    QUOIN_NUMERICAL_BREAKDOWN = 4,  ///< a conditional method that was chosen by name cannot go on
    QUOIN_RANK_DEFICIENT = 5,       ///< only with quoin_options.refuse_deficient
    QUOIN_OUT_OF_MEMORY = 6,        ///< the sentence says how much was asked for
    QUOIN_DEVICE_FAILURE = 9,       ///< no usable GPU, a build without CUDA, or a failure of CUDA
    QUOIN_INTERRUPTED = 130         ///< `quoin_request_stop` was called
} quoin_status;

// The integer fields and parameters below take the values of these enumerations.

/// Types of entries. 2 and 3 are kept for complex numbers.
enum { QUOIN_TYPE_F32 = 0, QUOIN_TYPE_F64 = 1 };
/// Storage orders.
enum { QUOIN_COLUMN_MAJOR = 0, QUOIN_ROW_MAJOR = 1 };
/// The number of the host among devices; GPUs have the numbers 0, 1, … of CUDA.
enum { QUOIN_HOST = -1 };
/// Sides of op(Q) in a product, and op.
enum { QUOIN_LEFT = 0, QUOIN_RIGHT = 1 };
enum { QUOIN_NO_TRANSPOSE = 0, QUOIN_TRANSPOSE = 1 };
/// Methods (`Method` in quoin/options.hpp).
enum {
    QUOIN_METHOD_AUTO = 0,
    QUOIN_METHOD_HOUSEHOLDER = 1,
    QUOIN_METHOD_TSQR = 2,
    QUOIN_METHOD_CAQR = 3,
    QUOIN_METHOD_CHOLESKY_QR2 = 4,
    QUOIN_METHOD_RANDOMIZED_CHOLESKY_QR = 5,
    QUOIN_METHOD_MGS = 6,
    QUOIN_METHOD_CGS = 7
};
/// Forms of Q that `quoin_factor` computes (`QForm`). With QUOIN_Q_NONE the factorization has R alone.
enum { QUOIN_Q_ANY = 0, QUOIN_Q_NONE = 1, QUOIN_Q_EXPLICIT = 2, QUOIN_Q_REFLECTORS = 3 };
/// Columns of Gram-Schmidt that are orthogonalised a second time (`Reorthogonalization`).
enum { QUOIN_REORTHOGONALIZE_OFF = 0, QUOIN_REORTHOGONALIZE_SELECTIVE = 1, QUOIN_REORTHOGONALIZE_ALWAYS = 2 };
/// Column pivoting, A P = QR: without it, or how pivots are chosen (`Pivots`).
enum {
    QUOIN_PIVOTS_NONE = 0,
    QUOIN_PIVOTS_AUTO = 1,
    QUOIN_PIVOTS_GREEDY = 2,
    QUOIN_PIVOTS_RANDOMIZED = 3,
    QUOIN_PIVOTS_STRONG = 4
};

/// A matrix in memory of the caller: entry (i, j) is data[i + j*ld] (column-major) or data[i*ld + j] (row-major).
///
/// `data` is in the memory of the context's device. It may be null if `rows` or `cols` is 0. Inputs are only read.
/// Every function takes both orders; a row-major output, and a row-major right-hand side, costs one transposed copy.
typedef struct quoin_matrix {
    void* data;
    int64_t rows, cols;
    int64_t ld;      ///< at least max(1, rows) if column-major, max(1, cols) if row-major
    int32_t type;    ///< of the entries; all matrices of a call have the same
    int32_t order;   ///< QUOIN_COLUMN_MAJOR or QUOIN_ROW_MAJOR
    int64_t stride;  ///< entries from one matrix of a batch to the next; 0: one input for all. Else it is not read
} quoin_matrix;

/// Choices left to the caller, set to the defaults by `quoin_options_init`. Null stands for the defaults.
typedef struct quoin_options {
    size_t size;  ///< sizeof(quoin_options) of the program's header: later versions may append fields
    int32_t method;
    int32_t q;
    int32_t reorthogonalize;
    int32_t pivots;
    int32_t check_finite;       ///< 1: NaN or Inf in the input is an error; 0: they propagate
    int32_t verify;             ///< 1: `quoin_factor` measures orthogonality and residual
    int32_t positive_diagonal;  ///< 1: R has a non-negative diagonal
    int32_t refuse_deficient;   ///< 1: least squares refuses a matrix without full rank
    int64_t panel_width;        ///< columns a panel; 0: Quoin chooses
    int64_t leaf_rows, fan_in;  ///< of trees; 0: Quoin chooses
    int64_t max_rank;           ///< with pivots: the most columns of Q; 0: no limit
    double tolerance;           ///< with pivots: largest norm of a column that is left; 0: no limit
    double relative_tolerance;  ///< the same, relative to the largest norm of a column of A
    double rcond;               ///< decides the rank in least squares (`LeastSquaresOptions`); -1: by 10u
    double relative_frobenius;  ///< with pivots: largest Frobenius norm of all that is left, relative to A's
} quoin_options;

/// Shape, method and accuracy of a factorization. A negative number was not measured.
typedef struct quoin_report {
    size_t size;         ///< sizeof(quoin_report), set by the caller
    int64_t rows, cols;  ///< of A
    int64_t k;           ///< columns of the thin Q and rows of R
    int64_t rank;        ///< with pivots
    int32_t method;      ///< whose answer it is
    int32_t fell_back;   ///< whether the planned method could not certify its answer
    double seconds, flops;
    double orthogonality;  ///< ‖I − QᵀQ‖_F, with quoin_options.verify
    double residual;       ///< ‖A − QR‖_F / ‖A‖_F, with quoin_options.verify
} quoin_report;

/// Rank and condition of A, found by least squares.
typedef struct quoin_solution {
    size_t size;  ///< sizeof(quoin_solution), set by the caller
    int64_t rank;
    double condition;  ///< estimate of κ₁ of the triangular factor
    double tolerance;  ///< that decided the rank
} quoin_solution;

/// Statistics of a regression with n unknowns and p right-hand sides (`Regression`), the intercept first.
///
/// The caller sets `size` and the arrays, which are in the host's memory: n·p numbers column by column, or p numbers.
/// Null for an array that is not wanted. What cannot be estimated is NaN.
typedef struct quoin_fit {
    size_t size;                ///< sizeof(quoin_fit), set by the caller
    int64_t observations;       ///< rows whose weight is not 0
    int64_t rank;               ///< coefficients in the model
    double degrees_of_freedom;  ///< observations − rank, or more with a ridge
    double condition;           ///< estimate of κ₁ of the triangular factor
    double *coefficients, *standard_errors, *t_values, *p_values;  ///< n·p each
    double* error_bounds;  ///< n·p: first-order bounds on the rounding errors of the coefficients
    double *residual_norms, *residual_standard_errors, *r_squared, *adjusted_r_squared, *f_values, *f_p_values;  ///< p
} quoin_fit;

/// Handles: a device with its threads or stream and its workspace; A = QR; R of rows that arrive block by block; the
/// choices made for a shape.
typedef struct quoin_context quoin_context;
typedef struct quoin_factorization quoin_factorization;
typedef struct quoin_stream quoin_stream;
typedef struct quoin_plan quoin_plan;

/// Returns "major.minor.patch" of the library.
const char* quoin_version(void);
/// Returns the sentence of the calling thread's last failure, until its next one; "" before the first.
const char* quoin_last_error(void);

/// Sets the first `size` bytes to the defaults, with sizeof(quoin_options) for `size`.
quoin_status quoin_options_init(quoin_options* options, size_t size);

/// Makes a context on the host (QUOIN_HOST) with `threads` threads, 0 for every core within the CPU quota, or on GPU
/// number `device`, on the caller's `stream` (a cudaStream_t that outlives what is made with the context) or, for null,
/// on one of its own.
quoin_status quoin_context_create(int32_t device, int32_t threads, void* stream, quoin_context** ctx);
void quoin_context_destroy(quoin_context* ctx);
/// Waits on a GPU until results are complete, in the memory of the GPU. On the host calls return when they are.
quoin_status quoin_wait(quoin_context* ctx);
/// Makes the call in progress on `ctx`, and every later one, end with QUOIN_INTERRUPTED until `quoin_clear_stop`. Any
/// thread or signal handler may call it.
void quoin_request_stop(quoin_context* ctx);
void quoin_clear_stop(quoin_context* ctx);

/// Factors A = QR, or A P = QR, for a copy of A.
quoin_status quoin_factor(quoin_context* ctx, const quoin_matrix* A, const quoin_options* options,
                          quoin_factorization** factorization);
void quoin_factorization_destroy(quoin_factorization* factorization);
quoin_status quoin_factorization_report(const quoin_factorization* factorization, quoin_report* report);
/// Writes p of A(:, p) = QR, zero-based, `cols` numbers in the host's memory: 0, 1, … without pivots.
quoin_status quoin_permutation(const quoin_factorization* factorization, int64_t* p);
/// R := the k×n factor, with exact zeros below its diagonal.
quoin_status quoin_r(quoin_context* ctx, const quoin_factorization* factorization, const quoin_matrix* R);
/// Q := the thin m×k factor.
quoin_status quoin_thin_q(quoin_context* ctx, const quoin_factorization* factorization, const quoin_matrix* Q);
/// C := op(Q) C or C op(Q) with the m×m Q, which is not formed.
quoin_status quoin_apply_q(quoin_context* ctx, const quoin_factorization* factorization, int32_t side, int32_t op,
                           const quoin_matrix* C);
/// Writes LAPACK's format of ?geqrf: V strictly below the diagonal of V_R (m×n) and R on and above it, tau k×1.
///
/// Destroys the factorization, also if it fails. With QUOIN_Q_REFLECTORS the Q is the one of `quoin_apply_q`. Other
/// forms may change signs of columns of Q and of rows of R, and with QUOIN_Q_NONE it fails.
quoin_status quoin_to_lapack(quoin_context* ctx, quoin_factorization* factorization, const quoin_matrix* V_R,
                             const quoin_matrix* tau);
/// Makes a factorization from the output of ?geqrf, as `quoin_to_lapack` writes it. Copies both.
quoin_status quoin_from_lapack(quoin_context* ctx, const quoin_matrix* V_R, const quoin_matrix* tau,
                               quoin_factorization** factorization);
/// Solves min ‖AX − B‖ as `quoin_least_squares`, for m >= n. Reads rcond and refuse_deficient of the options.
quoin_status quoin_solve(quoin_context* ctx, const quoin_factorization* factorization, const quoin_matrix* B,
                         const quoin_options* options, const quoin_matrix* X, void* residual_norms,
                         quoin_solution* solution);

/// Writes the thin Q (m×k) and R (k×n) and keeps nothing else; R alone if Q is null. Q may be A itself for m >= n.
quoin_status quoin_qr(quoin_context* ctx, const quoin_matrix* A, const quoin_options* options, const quoin_matrix* Q,
                      const quoin_matrix* R);
/// Solves min ‖AX − B‖ for A of any shape and rank, A m×n, B m×p, X n×p: the X of least norm.
///
/// `residual_norms` gets the p norms of the columns of AX − B, in the type of A and the host's memory. It and
/// `solution` may be null.
quoin_status quoin_least_squares(quoin_context* ctx, const quoin_matrix* A, const quoin_matrix* B,
                                 const quoin_options* options, const quoin_matrix* X, void* residual_norms,
                                 quoin_solution* solution);
/// Fits B ≈ AX, A m×n and B m×p, and writes the statistics of the fit (`regression`).
///
/// `intercept` 1 puts a column of ones before A, whose coefficient is the first of n + 1 then. `ridge` is λ >= 0 of the
/// penalty λ‖x‖². `weights` are m numbers >= 0 in the host's memory, or null for 1.
quoin_status quoin_regression(quoin_context* ctx, const quoin_matrix* A, const quoin_matrix* B, int32_t intercept,
                              double ridge, const double* weights, quoin_fit* fit);
/// Computes A = U diag(s) Vt. `s` has room for min(m, n) numbers in the type of A and the host's memory.
///
/// U (m×k) and Vt (k×n) may both be null. k is min(m, n), and with pivots and a limit it may be less: then k values,
/// the first k columns of U and the first k rows of Vt are written. `k` may be null.
quoin_status quoin_svd(quoin_context* ctx, const quoin_matrix* A, const quoin_options* options, void* s,
                       const quoin_matrix* U, const quoin_matrix* Vt, int64_t* k);

/// Work as `quoin_qr` and `quoin_least_squares` for `count` matrices of one shape. Each quoin_matrix is the first of
/// its batch. The sentence of an error names the first matrix that has it.
quoin_status quoin_qr_batch(quoin_context* ctx, int64_t count, const quoin_matrix* A, const quoin_options* options,
                            const quoin_matrix* Q, const quoin_matrix* R);
quoin_status quoin_least_squares_batch(quoin_context* ctx, int64_t count, const quoin_matrix* A, const quoin_matrix* B,
                                       const quoin_options* options, const quoin_matrix* X);

/// Starts R of a matrix with `cols` columns whose rows arrive block by block, and with them the rows of B, which has
/// `right_hand_sides` columns.
quoin_status quoin_stream_create(quoin_context* ctx, int32_t type, int64_t cols, int64_t right_hand_sides,
                                 quoin_stream** stream);
void quoin_stream_destroy(quoin_stream* stream);
/// Appends rows of A and of B, which is null for a stream without right-hand sides. After an error the stream is as
/// before.
quoin_status quoin_stream_append(quoin_context* ctx, quoin_stream* stream, const quoin_matrix* A,
                                 const quoin_matrix* B);
/// R := the min(rows, cols)×cols factor of all rows so far.
quoin_status quoin_stream_r(quoin_context* ctx, const quoin_stream* stream, const quoin_matrix* R);
/// Solves min ‖AX − B‖ for all rows so far, at least `cols`, as `quoin_solve`.
quoin_status quoin_stream_solve(quoin_context* ctx, const quoin_stream* stream, const quoin_options* options,
                                const quoin_matrix* X, void* residual_norms, quoin_solution* solution);

/// Returns the choices that `quoin_factor` makes for an m×n matrix on the context's device, without computing.
quoin_status quoin_plan_create(quoin_context* ctx, int32_t type, int64_t m, int64_t n, const quoin_options* options,
                               quoin_plan** plan);
void quoin_plan_destroy(quoin_plan* plan);
/// Return the plan as a paragraph and as a JSON object on one line, which live as long as the plan.
const char* quoin_plan_text(const quoin_plan* plan);
const char* quoin_plan_json(const quoin_plan* plan);

#ifdef __cplusplus
}
#endif

#endif
