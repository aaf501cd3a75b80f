classes <- c("1" = "quoin_other_failure", "2" = "quoin_invalid_argument", "3" = "quoin_non_finite_entry",
             "4" = "quoin_numerical_breakdown", "5" = "quoin_rank_deficient", "6" = "quoin_out_of_memory",
             "9" = "quoin_device_failure")

# Raises an error of libquoin_c, with the class of its status. src/quoin.c calls it.
raise <- function(status, text) {
    stop(structure(class = c(classes[[as.character(status)]], "quoin_error", "error", "condition"),
                   list(message = text, call = NULL)))
}

# Returns x as a matrix of doubles, or as a vector of doubles if `vector`.
as_real <- function(x, name, vector = FALSE) {
    if (!(vector && is.null(dim(x)))) x <- as.matrix(x)
    if (!is.numeric(x) && !is.logical(x)) {
        raise(2L, sprintf("%s must be a numeric matrix, and is of type %s", name, typeof(x)))
    }
    if (!is.double(x)) storage.mode(x) <- "double"
    x
}

# Returns a handle of the QR of x[, pivot], R, the pivots and the rank. If columns are dependent by LINPACK's rule, the
# handle is of the other columns alone.
factor_columns <- function(x, pivot, tol, threads) {
    f <- .Call(C_factor, x, c(dependent = 0L, none = 0L, auto = 1L, greedy = 2L, randomized = 3L, strong = 4L)[[pivot]],
               threads)
    if (pivot %in% c("dependent", "none")) f$rank <- min(dim(x))
    # LINPACK moves column j to the end if |R_jj| < tol ||R_j||, and leaves the order if no column is so. The norm of a
    # column of R is the norm of the column of x.
    if (pivot == "dependent" && (ncol(x) > nrow(x) || any(abs(diag(f$R)) <= tol * colSums(abs(f$R))))) {
        of_r <- base::qr(f$R, tol = tol)
        if (of_r$rank < ncol(x)) {
            .Call(C_release, f$handle)
            f <- .Call(C_factor, x[, of_r$pivot[seq_len(of_r$rank)], drop = FALSE], 0L, threads)
            f[c("pivot", "rank")] <- of_r[c("pivot", "rank")]
        }
    }
    f
}

# Returns the factorization f of x as R's class qr. Ends the handle of f.
as_qr <- function(f, x, threads) {
    m <- nrow(x)
    n <- ncol(x)
    k <- ncol(f$R)
    rest <- if (k < n) .Call(C_apply, f$handle, x[, f$pivot[(k + 1L):n], drop = FALSE], TRUE, threads)
    z <- .Call(C_to_linpack, f$handle, m, k, threads)
    if (k < n) z$qr <- cbind(z$qr, rest)
    if (!is.null(dimnames(x))) dimnames(z$qr) <- list(rownames(x), colnames(x)[f$pivot])
    qraux <- c(z$qraux, numeric(n - length(z$qraux)))
    structure(list(qr = z$qr, rank = f$rank, qraux = qraux, pivot = f$pivot), class = c("quoin_qr", "qr"))
}

quoin_qr <- function(x, pivot = c("dependent", "none", "auto", "greedy", "randomized", "strong"), tol = 1e-07,
                     threads = getOption("quoin.threads", 0L)) {
    x <- as_real(x, "x")
    as_qr(factor_columns(x, match.arg(pivot), tol, threads), x, threads)
}

# Returns Qy, or Q'y if `transpose`, for a quoin_qr.
product <- function(qr, y, transpose) {
    y <- as_real(y, "y", vector = TRUE)
    if (NROW(y) != nrow(qr$qr)) {
        raise(2L, sprintf("y has %d rows, and Q is %d x %d", NROW(y), nrow(qr$qr), nrow(qr$qr)))
    }
    threads <- getOption("quoin.threads", 0L)
    handle <- .Call(C_from_linpack, qr$qr, qr$qraux, qr$rank, threads)
    on.exit(.Call(C_release, handle))
    .Call(C_apply, handle, y, transpose, threads)
}

setOldClass(c("quoin_qr", "qr"))
setGeneric("qr.qy", signature = "qr")
setGeneric("qr.qty", signature = "qr")
setGeneric("qr.Q", signature = "qr")
setMethod("qr.qy", "quoin_qr", function(qr, y) product(qr, y, FALSE))
setMethod("qr.qty", "quoin_qr", function(qr, y) product(qr, y, TRUE))
setMethod("qr.Q", "quoin_qr", function(qr, complete = FALSE, Dvec) {
    m <- nrow(qr$qr)
    columns <- if (complete) m else min(dim(qr$qr))
    if (missing(Dvec)) Dvec <- rep(1, columns)
    product(qr, diag(Dvec, m, columns), FALSE)
})

quoin_lm_fit <- function(x, y, offset = NULL, tol = 1e-07, singular.ok = TRUE,
                         threads = getOption("quoin.threads", 0L)) {
    assign <- attr(x, "assign")
    x <- as_real(x, "x")
    y <- as_real(y, "y", vector = TRUE)
    if (is.matrix(y) && ncol(y) == 1L) y <- drop(y)
    if (NROW(y) != nrow(x)) raise(2L, sprintf("x has %d rows, and y has %d", nrow(x), NROW(y)))
    if (!all(is.finite(y))) {
        first <- arrayInd(which(!is.finite(y))[1], dim(as.matrix(y))) - 1L
        raise(3L, sprintf("y holds NaN or Inf, first at row %d, column %d (zero-based)", first[1], first[2]))
    }
    if (!is.null(offset)) {
        if (length(offset) != length(y) && length(offset) != nrow(x)) {
            raise(2L, sprintf("y has %d entries, and offset has %d", length(y), length(offset)))
        }
        y <- y - offset
    }
    f <- factor_columns(x, "dependent", tol, threads)
    if (f$rank < ncol(x) && !singular.ok) {
        raise(5L, sprintf("x has rank %d and %d columns, and singular.ok is FALSE", f$rank, ncol(x)))
    }
    kept <- seq_len(f$rank)
    # Q'y = [R b; c], residuals = Q [0; c]
    effects <- .Call(C_apply, f$handle, y, TRUE, threads)
    beyond <- effects
    if (is.matrix(y)) beyond[kept, ] <- 0 else beyond[kept] <- 0
    residuals <- .Call(C_apply, f$handle, beyond, FALSE, threads)
    b <- as.matrix(effects)[kept, , drop = FALSE]
    if (f$rank > 0L) b <- backsolve(f$R, b)
    coefficients <- matrix(NA_real_, ncol(x), NCOL(y))
    coefficients[f$pivot[kept], ] <- b
    names <- if (is.null(colnames(x))) sprintf("x%d", seq_len(ncol(x))) else colnames(x)
    of_effects <- c(names[f$pivot[kept]], character(nrow(x) - f$rank))
    if (is.matrix(y)) {
        dimnames(coefficients) <- list(names, colnames(y))
        dimnames(effects) <- list(of_effects, colnames(y))
    } else {
        coefficients <- stats::setNames(drop(coefficients), names)
        names(effects) <- of_effects
    }
    qr <- as_qr(f, x, threads)
    qr$tol <- tol
    fitted <- y - residuals
    if (!is.null(offset)) fitted <- fitted + offset
    list(coefficients = coefficients, residuals = residuals, effects = effects, rank = f$rank, fitted.values = fitted,
         assign = assign, qr = qr, df.residual = nrow(x) - f$rank)
}

quoin_lm <- function(formula, data, ..., contrasts = NULL, tol = 1e-07, threads = getOption("quoin.threads", 0L)) {
    call <- of_frame <- match.call()
    of_frame[[1L]] <- quote(stats::lm)
    of_frame[c("contrasts", "tol", "threads")] <- NULL
    of_frame$method <- "model.frame"
    frame <- eval(of_frame, parent.frame())
    if (!is.null(stats::model.weights(frame))) {
        raise(2L, "quoin_lm has no weights: call quoin_lm_fit with the rows of x and y times sqrt(weights), or stats::lm")
    }
    terms <- attr(frame, "terms")
    x <- model.matrix(terms, frame, contrasts)
    y <- model.response(frame, "numeric")
    z <- quoin_lm_fit(x, y, model.offset(frame), tol, threads = threads)
    structure(c(z, list(na.action = attr(frame, "na.action"), offset = model.offset(frame),
                        contrasts = attr(x, "contrasts"), xlevels = stats::.getXlevels(terms, frame), call = call,
                        terms = terms, model = frame)), class = c(if (is.matrix(y)) "mlm", "lm"))
}

quoin_svd <- function(x, nu = min(dim(x)), nv = min(dim(x)), rank = NULL, tol = NULL,
                      threads = getOption("quoin.threads", 0L)) {
    x <- as_real(x, "x")
    if (max(nu, nv) > min(dim(x))) {
        raise(2L, sprintf("nu and nv must be at most %d: quoin_svd has no square u and v", min(dim(x))))
    }
    z <- .Call(C_svd, x, nu > 0 || nv > 0, if (is.null(rank)) 0L else rank, if (is.null(tol)) 0 else tol, threads)
    d <- list(d = z$d[seq_len(z$k)])
    if (nu > 0) {
        u <- z$u[, seq_len(min(nu, z$k)), drop = FALSE]
        rownames(u) <- rownames(x)
        d$u <- u
    }
    if (nv > 0) {
        v <- t(z$vt[seq_len(min(nv, z$k)), , drop = FALSE])
        rownames(v) <- colnames(x)
        d$v <- v
    }
    d
}
