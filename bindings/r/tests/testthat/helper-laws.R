u <- .Machine$double.eps / 2

# Expects A P = QR and orthonormal columns of Q to 20 n u, as LAPACK's tests ask, and that R's own functions for LINPACK's
# form agree with Quoin's.
expect_qr <- function(q, x) {
    k <- max(1, min(dim(x)))
    of_q <- qr.Q(q)
    error <- if (length(x)) norm(of_q %*% qr.R(q) - x[, q$pivot, drop = FALSE], "F") / max(norm(x, "F"), .Machine$double.xmin) else 0
    testthat::expect_lte(error, 20 * k * u)
    testthat::expect_lte(sqrt(sum((crossprod(of_q) - diag(1, ncol(of_q)))^2)), 20 * k * u)
    y <- matrix(cos(seq_len(3 * nrow(x))), nrow(x), 3)
    own <- list(base::qr.qty(q, y), base::qr.qy(q, y), base::qr.Q(q))
    quoin <- list(qr.qty(q, y), qr.qy(q, y), of_q)
    sizes <- c(sqrt(sum(y^2)), sqrt(sum(y^2)), sqrt(k))
    for (i in 1:3) testthat::expect_lte(sqrt(sum((own[[i]] - quoin[[i]])^2)), 40 * k * u * sizes[i])
}

normal <- function(m, n, seed = 1) {
    set.seed(seed)
    matrix(stats::rnorm(m * n), m, n)
}
