#pragma once

// The steps that the solvers share around a QR factorization.

#include <fmt/format.h>

#include <limits>

#include "algorithms/one_matrix/factorization.hpp"
#include "devices.hpp"

namespace quoin {

/// Runs work on the side stream: concurrently with the context's next work on a GPU, immediately on the host. Joined at
/// the end of the scope, whatever ends it, because memory given back on `ctx` may still be in use there.
template <class D>
class SideWork {
public:
    explicit SideWork(Context<D>& ctx) : ctx_(ctx), side_(side_stream(ctx)) {}
    SideWork(const SideWork&) = delete;
    ~SideWork() {
        try {
            join();
        } catch (...) {
        }
    }
    /// Returns the side stream. Its next work runs after all work enqueued on the context.
    Context<D>& fork() { return side_stream(ctx_); }
    void join() { wait_for(ctx_, side_); }
    bool is_apart() const { return &ctx_ != &side_; }

private:
    Context<D>& ctx_;
    Context<D>& side_;
};

/// Returns `options` for products with the thin Q of an m×n matrix, or of its transpose if m < n: explicit Q if
/// Cholesky QR makes it.
template <class T, class D>
Options for_thin_products(const Context<D>& ctx, Index m, Index n, Options options) {
    if (options.q == QForm::None) options.q = QForm::Any;
    if (!Tuning<D>::reflectors_are_any_form || options.q != QForm::Any) return options;
    Options of_thin = options;
    of_thin.q = QForm::Explicit;
    return is_cholesky(plan_qr<T>(ctx, std::max(m, n), std::min(m, n), of_thin).method) ? of_thin : options;
}

/// Throws InvalidArgument. `contiguous` elements (the `rows` of a column-major matrix, the `cols` of a row-major one)
/// lie next to each other.
void check_storage(const void* data, Index rows, Index cols, Index contiguous, const char* direction, Index ld);
template <class T, class D>
void check_matrix(MatrixView<const T, D> A) {
    check_storage(A.data, A.rows, A.cols, A.rows, "rows", A.ld);
}

/// Returns a column-major copy of A, a row-major or column-major matrix.
template <class T, class D>
Matrix<T, D> loaded(Context<D>& ctx, InputView<T, D> A) {
    Matrix<T, D> B(ctx, A.rows, A.cols);
    load<T>(ctx, A, B.view());
    return B;
}

/// Throws NonFiniteEntry with the first NaN or Inf of A in column-major order.
template <class T, class D>
void require_finite(Context<D>& ctx, Input<T, D> A, const char* name = "the matrix") {
    if (A.by_rows && !Tuning<D>::reads_rows) return require_finite<T, D>(ctx, loaded<T, D>(ctx, A).view(), name);
    Matrix<int, D> exponents(ctx, A.cols, 1);
    Matrix<Scan, D> scanned(ctx, 1, 1);
    scan<T>(ctx, A, std::numeric_limits<int>::max(), exponents.view(), scanned.view());
    const Scan found = read_scan(ctx, scanned.view());
    if (found.bad_row >= 0) throw NonFiniteEntry(found.bad_row, found.bad_col, name);
}

/// Throws InvalidArgument if `what` needs an orthonormal Q and Gram-Schmidt without reorthogonalization makes Q.
inline void require_orthonormal(Method method, Reorthogonalization reorthogonalization, const char* what) {
    if (!is_gram_schmidt(method) || reorthogonalization != Reorthogonalization::Off) return;
    throw InvalidArgument(fmt::format(
        "{} needs an orthonormal Q. That of {} without reorthogonalization is far from it if κ(A) is large: ask "
        "for reorthogonalization, or for another method",
        what, to_string(method)));
}
inline void require_orthonormal(const Options& options, const char* what) {
    require_orthonormal(options.method, options.method.reorthogonalization(), what);
}
inline void require_orthonormal(const Plan& plan, const char* what) {
    require_orthonormal(plan.method, plan.reorthogonalization, what);
}

/// Returns Aᵀ, in memory of its own.
template <class T, class D>
Matrix<T, D> transposed(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<T, D> B(ctx, A.cols, A.rows);
    transpose<T>(ctx, A, B.view());
    return B;
}

/// Returns a copy of A.
template <class T, class D>
Matrix<T, D> copy_of(Context<D>& ctx, MatrixView<const T, D> A) {
    return loaded<T, D>(ctx, A);
}

/// Factors Aᵀ = QR. The entries of A are checked under their own indices.
template <class T, class D>
QR<T, D> qr_of_transpose(Context<D>& ctx, InputView<T, D> A, Options options) {
    if (options.check_finite) require_finite<T, D>(ctx, A);
    options.check_finite = false;
    if (A.by_rows) return qr<T, D>(ctx, A.stored(), options);
    const Plan plan = plan_qr<T>(ctx, A.cols, A.rows, options);
    return qr<T, D>(ctx, transposed<T, D>(ctx, A.stored()), plan);
}

/// Returns the options of one step of a stream, on [R; block] with m rows: always reflectors, over trees unless m < n.
template <class D>
Options streaming_options(const Context<D>&, Index m, Index n, QForm q) {
    Options options;
    options.method = m < n ? Method::BlockedHouseholder : n <= Tuning<D>::one_tree_cols ? Method::TSQR : Method::CAQR;
    options.q = q;
    options.check_finite = false;
    return options;
}

/// Returns a copy of A in the host's memory. Waits.
template <class T, class D>
Matrix<T, Host> host_copy_of(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<T, Host> B(A.rows, A.cols);
    start_copy_to_host<T>(ctx, A, B.view());
    finish_copies(ctx);
    ctx.wait();
    return B;
}

/// Returns Q₁W for the thin Q₁. W (k×p) is lost.
template <class T, class D>
Matrix<T, D> multiply_thin_q(Context<D>& ctx, const QR<T, D>& factorization, MatrixView<T, D> W) {
    const Index m = factorization.rows(), k = W.rows;
    Matrix<T, D> X(ctx, m, W.cols);
    if (const auto* basis = Inside::of(factorization).explicit_q()) {
        // 0 − Q₁(−W)
        set_zero(ctx, X.view());
        negate<T>(ctx, W);
        subtract_product<T>(ctx, basis->Q.view(), W, X.view());
    } else {
        // Q [W; 0]
        copy<T>(ctx, W, X.view().row_block({0, k}));
        set_zero(ctx, X.view().row_block({k, m}));
        factorization.apply_q(ctx, Side::Left, Op::None, X.view());
    }
    return X;
}

/// Returns the tolerance that `rcond` stands for: 10u for −1. Throws InvalidArgument unless it is −1 or from 0 to 1.
template <class T>
double rank_tolerance(double rcond);

/// Returns κ₁(R), R k×k. Throws RankDeficient if 1/κ₁(RD) <= rcond; the diagonal D scales the columns of R to unit
/// norm. If the matrix was perturbed, `perturbed_condition` counts if it is larger. If R holds NaN or Inf: throws
/// NumericalBreakdown if the matrix was `checked` to be finite, else returns NaN.
///
/// The message names the m×n matrix. R is its factor, or its transpose's if m < n.
template <class T, class D>
double require_full_rank(Context<D>& ctx, MatrixView<const T, D> R, Index m, Index n, double rcond, bool checked = true,
                         double perturbed_condition = -1);

}  // namespace quoin
