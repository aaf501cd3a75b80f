library(testthat)
library(quoin)

test_check("quoin")
