# Times Quoin against R's own functions, in turn: Rscript -e 'source(system.file("benchmark.R", package = "quoin"))'
library(quoin)
set.seed(1)
rows <- 1e6
x <- matrix(rnorm(rows * 20), rows)
y <- rnorm(rows)
calls <- list(quoin_qr = function() quoin_qr(x), qr = function() qr(x), `qr LAPACK` = function() qr(x, LAPACK = TRUE),
              quoin_lm_fit = function() quoin_lm_fit(x, y), lm.fit = function() lm.fit(x, y),
              quoin_svd = function() quoin_svd(x), svd = function() svd(x))
of_quoin <- quoin_qr(x)
of_r <- qr(x)
calls <- c(calls, list(`qr.Q of quoin_qr` = function() qr.Q(of_quoin), `qr.Q of qr` = function() qr.Q(of_r)))
seconds <- replicate(7, vapply(calls, function(call) system.time(call())[["elapsed"]], 0))
print(round(t(apply(seconds, 1, quantile, c(0, 0.5, 1))), 3))
