pivots <- eval(formals(quoin_qr)$pivot)

test_that("every shape has a QR that R's functions take", {
    for (pivot in pivots) {
        for (shape in list(c(100, 7), c(40, 40), c(6, 50), c(1, 1), c(1, 3), c(3, 1), c(0, 3), c(3, 0), c(0, 0), c(50000, 11))) {
            x <- normal(shape[1], shape[2])
            q <- quoin_qr(x, pivot)
            expect_qr(q, x)
            expect_true(is.qr(q))
            expect_equal(q$rank, min(shape))
            expect_setequal(q$pivot, seq_len(shape[2]))
            expect_length(q$qraux, shape[2])
        }
    }
})

test_that("Q may be complete or scaled, and its products keep the shape of y", {
    x <- normal(30, 4)
    q <- quoin_qr(x)
    complete <- qr.Q(q, complete = TRUE)
    expect_equal(dim(complete), c(30, 30))
    expect_lte(norm(crossprod(complete) - diag(30), "F"), 20 * 4 * u)
    expect_equal(qr.Q(q, Dvec = c(2, 1, 1, 1))[, 1], 2 * qr.Q(q)[, 1], tolerance = 40 * u)
    y <- c(a = 1, normal(29, 1))
    expect_null(dim(qr.qty(q, y)))
    expect_equal(qr.qy(q, qr.qty(q, y)), y, tolerance = 200 * u)
    expect_equal(names(qr.qty(q, y)), names(y))
    expect_error(qr.qty(q, 1:3), "y has 3 rows, and Q is 30 x 30", class = "quoin_invalid_argument")
    expect_equal(qr.Q(base::qr(x)), base::qr.Q(base::qr(x)))
})

test_that("graded and badly scaled matrices have their QR", {
    x <- normal(200, 6) %*% diag(10^seq(-300, 300, length.out = 6)) / 10
    q <- quoin_qr(x, "none")
    for (j in 1:6) {
        error <- qr.Q(q) %*% (qr.R(q)[, j] / max(abs(x[, j]))) - x[, j] / max(abs(x[, j]))
        expect_lte(sqrt(sum(error^2)), 20 * 6 * u * sqrt(200))
    }
    expect_equal(quoin_qr(x)[c("rank", "pivot")], base::qr(x)[c("rank", "pivot")])
})

test_that("dependent columns go to the end, as in qr()", {
    x <- normal(50, 8)
    x[, 3] <- x[, 1] - 2 * x[, 2]
    x[, 5] <- 0
    x[, 8] <- 1e-9 * x[, 8] + x[, 7]
    for (rows in list(1:50, 1:8, 1:6)) {
        q <- quoin_qr(x[rows, ])
        own <- base::qr(x[rows, ])
        expect_equal(q[c("rank", "pivot")], own[c("rank", "pivot")])
        expect_equal(qr.coef(q, cos(rows)), qr.coef(own, cos(rows)), tolerance = 1e-10)
        expect_equal(abs(qr.R(q)[seq_len(q$rank), ]), abs(qr.R(own)[seq_len(q$rank), ]), tolerance = 1e-12)
    }
    expect_equal(quoin_qr(x, tol = 1e-12)[c("rank", "pivot")], base::qr(x, tol = 1e-12)[c("rank", "pivot")])
    expect_equal(quoin_qr(matrix(0, 4, 2))$rank, 0)
    for (pivot in c("greedy", "randomized", "strong", "auto")) expect_equal(quoin_qr(x[, 1:7], pivot)$rank, 5)
})

test_that("greedy pivots are LAPACK's", {
    x <- normal(60, 9) %*% diag(c(3, 1, 20, 7, 0.1, 50, 2, 9, 0.5))
    expect_equal(quoin_qr(x, "greedy")$pivot, base::qr(x, LAPACK = TRUE)$pivot)
})

test_that("names, integers, data frames and solve", {
    x <- normal(20, 3)
    dimnames(x) <- list(letters[1:20], c("one", "two", "three"))
    q <- quoin_qr(x, "greedy")
    expect_equal(dimnames(q$qr), list(letters[1:20], colnames(x)[q$pivot]))
    expect_equal(names(qr.coef(q, 1:20)), colnames(x))
    expect_equal(quoin_qr(as.data.frame(x))$qr, quoin_qr(x)$qr, ignore_attr = TRUE)
    whole <- matrix(c(2L, 1L, 1L, 3L), 2)
    expect_equal(qr.solve(quoin_qr(whole), c(3, 4)), c(1, 1))
    expect_error(qr.solve(quoin_qr(matrix(1, 2, 2)), 1:2), "singular")
    expect_equal(quoin_qr(c(3, 4))$qr[1, 1], -5)
})

test_that("the bits do not depend on the number of threads", {
    x <- normal(20000, 15)
    expect_identical(quoin_qr(x, threads = 1), quoin_qr(x, threads = 3))
})

test_that("errors are conditions with Quoin's sentence", {
    x <- normal(5, 2)
    x[4, 2] <- NaN
    expect_error(quoin_qr(x), "first at row 3, column 1 (zero-based)", fixed = TRUE, class = "quoin_non_finite_entry")
    expect_error(quoin_qr(x), class = "quoin_error")
    expect_error(quoin_qr(diag(2), threads = -1), "threads", class = "quoin_invalid_argument")
    expect_error(quoin_qr("a"), "x must be a numeric matrix, and is of type character", class = "quoin_invalid_argument")
    expect_error(quoin_qr(matrix(1i)), "of type complex", class = "quoin_invalid_argument")
    expect_error(quoin_qr(diag(2), "best"), "should be one of")
})

test_that("an interrupt ends a call", {
    skip_on_os("windows")
    x <- normal(1500, 1500)
    shell <- sprintf("(sleep 0.3; kill -INT %d)", Sys.getpid())
    times <- 0
    interrupted <- tryCatch({
        system(shell, wait = FALSE)
        start <- proc.time()[["elapsed"]]
        while (proc.time()[["elapsed"]] < start + 20) {
            quoin_qr(x, "strong", threads = 1)
            times <- times + 1
        }
        FALSE
    }, interrupt = function(condition) TRUE)
    expect_true(interrupted)
    expect_equal(quoin_qr(diag(2))$rank, 2)
})
