test_that("singular values and vectors are svd()'s up to signs", {
    for (shape in list(c(60, 9), c(9, 60), c(20, 20), c(1, 4))) {
        x <- normal(shape[1], shape[2])
        k <- min(shape)
        z <- quoin_svd(x)
        own <- svd(x)
        expect_lte(max(abs(z$d - own$d)), 20 * k * u * own$d[1])
        expect_lte(norm(z$u %*% diag(z$d, k) %*% t(z$v) - x, "F"), 20 * k * u * norm(x, "F"))
        expect_lte(norm(crossprod(z$u) - diag(k), "F"), 20 * k * u)
        expect_lte(norm(crossprod(z$v) - diag(k), "F"), 20 * k * u)
    }
})

test_that("parts, names and a truncated rank", {
    x <- matrix(1:20 / 7, 10, dimnames = list(NULL, c("a", "b")))
    expect_named(quoin_svd(x, 0, 0), "d")
    expect_equal(dim(quoin_svd(x, nu = 1)$u), c(10, 1))
    expect_equal(rownames(quoin_svd(x)$v), c("a", "b"))
    low <- normal(80, 3) %*% normal(3, 40, 2)
    expect_equal(quoin_svd(low, rank = 3)$d, svd(low)$d[1:3])
    expect_length(quoin_svd(low, tol = 1e-8)$d, 3)
    expect_equal(dim(quoin_svd(low, tol = 1e-8)$v), c(40, 3))
    expect_error(quoin_svd(x, nu = 3), "at most 2", class = "quoin_invalid_argument")
    expect_equal(quoin_svd(matrix(0, 0, 2)), list(d = numeric()))
})
