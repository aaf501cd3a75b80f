# Longley's data set and its certified values are NIST's (Statistical Reference Datasets, Linear Regression, Longley).
longley_certified <- c(-3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683, -1.03322686717359,
                       -0.511041056535807e-01, 1829.15146461355)

test_that("Longley's regression has NIST's certified digits", {
    d <- datasets::longley
    # NIST has the deflator times 10, and GNP and population in thousands: R's data set is in other units
    x <- cbind(1, d$GNP.deflator, d$GNP * 1000, d$Unemployed * 10, d$Armed.Forces * 10, d$Population * 1000, d$Year)
    z <- quoin_lm_fit(x, round(d$Employed * 1000))
    expect_lte(max(abs(z$coefficients / longley_certified - 1)), 1e-8)
})

test_that("every field is lm.fit's", {
    x <- cbind(1, normal(40, 6))
    colnames(x) <- c("(Intercept)", letters[1:6])
    attr(x, "assign") <- 0:6
    y <- stats::setNames(sin(1:40), paste0("r", 1:40))
    x[, 4] <- x[, 2] + x[, 3]
    for (rhs in list(y, cbind(a = y, b = cos(1:40)), matrix(y))) {
        for (columns in list(1:7, c(1:3, 5:7), 1L, c(2, 3, 4))) {
            of_x <- structure(x[, columns, drop = FALSE], assign = columns - 1)
            for (offset in list(NULL, 1:40)) {
                own <- stats::lm.fit(of_x, rhs, offset)
                z <- quoin_lm_fit(of_x, rhs, offset)
                expect_equal(names(z), names(own))
                for (field in setdiff(names(own), c("effects", "qr"))) expect_equal(z[[field]], own[[field]], tolerance = 1e-12)
                kept <- seq_len(own$rank)
                expect_equal(abs(as.matrix(z$effects)[kept, ]), abs(as.matrix(own$effects)[kept, ]), tolerance = 1e-12)
                expect_equal(sum(z$effects^2), sum(own$effects^2), tolerance = 1e-12)
                expect_equal(attributes(z$effects), attributes(own$effects))
                expect_equal(z$qr[c("rank", "pivot", "tol")], own$qr[c("rank", "pivot", "tol")])
                expect_equal(dimnames(z$qr$qr), dimnames(own$qr$qr))
            }
        }
    }
})

test_that("odd shapes", {
    expect_equal(quoin_lm_fit(normal(3, 5), 1:3)$rank, 3)
    expect_equal(quoin_lm_fit(normal(3, 5), 1:3)$coefficients, stats::lm.fit(normal(3, 5), 1:3)$coefficients)
    expect_equal(quoin_lm_fit(matrix(0, 3, 0), 1:3)$residuals, c(1, 2, 3))
    expect_equal(quoin_lm_fit(matrix(0, 3, 2), 1:3)$coefficients, c(x1 = NA_real_, x2 = NA))
    expect_equal(quoin_lm_fit(matrix(0, 0, 2), numeric())$rank, 0)
    expect_error(quoin_lm_fit(diag(2), 1:3), "x has 2 rows, and y has 3", class = "quoin_invalid_argument")
    expect_error(quoin_lm_fit(diag(2), 1:2, offset = 1:3), "offset has 3", class = "quoin_invalid_argument")
    expect_error(quoin_lm_fit(matrix(1, 3, 2), 1:3, singular.ok = FALSE), "rank 1", class = "quoin_rank_deficient")
    expect_error(quoin_lm_fit(diag(2), c(1, NA)), "y holds NaN or Inf, first at row 1, column 0", class = "quoin_non_finite_entry")
})

test_that("lm's methods work on a quoin_lm", {
    d <- transform(datasets::mtcars, twice = 2 * wt, cyl = factor(cyl))
    own <- stats::lm(mpg ~ wt + cyl * hp + twice, d)
    z <- quoin_lm(mpg ~ wt + cyl * hp + twice, d)
    expect_equal(stats::coef(summary(z)), stats::coef(summary(own)), tolerance = 1e-10)
    expect_equal(summary(z)$r.squared, summary(own)$r.squared)
    expect_equal(stats::anova(z)[["F value"]], stats::anova(own)[["F value"]])
    expect_equal(stats::hatvalues(z), stats::hatvalues(own))
    expect_equal(stats::cooks.distance(z), stats::cooks.distance(own))
    expect_equal(stats::vcov(z), stats::vcov(own))
    new <- d[c(3, 9), ]
    expect_equal(suppressWarnings(stats::predict(z, new, interval = "confidence")),
                 suppressWarnings(stats::predict(own, new, interval = "confidence")))
    hole <- d
    hole$wt[2] <- NA
    subset <- quoin_lm(mpg ~ wt, hole, subset = hp > 100, offset = qsec)
    expect_equal(stats::residuals(subset), stats::residuals(stats::lm(mpg ~ wt, hole, subset = hp > 100, offset = qsec)))
    expect_error(quoin_lm(mpg ~ wt, d, weights = hp), "no weights", class = "quoin_invalid_argument")
})
