"""The bounds of Householder QR (Higham 2002, theorem 19.4) in units of n·u, measured in float64 or longer."""

import numpy as np

CONSTANT = 10.0


def bound(array):
    n = max(1, min(array.shape[-2:]))
    return CONSTANT * n * float(np.finfo(array.dtype).eps)


def assert_orthonormal(Q):
    wide = np.asarray(Q, dtype=np.longdouble)
    gram = np.swapaxes(wide, -1, -2) @ wide
    departure = np.sqrt(((gram - np.eye(Q.shape[-1])) ** 2).sum(axis=(-2, -1)))
    assert np.all(departure <= bound(Q))


def assert_product(Q, R, A):
    wide = [np.asarray(X, dtype=np.longdouble) for X in (Q, R, A)]
    residual = np.sqrt(((wide[2] - wide[0] @ wide[1]) ** 2).sum(axis=(-2, -1)))
    assert np.all(residual <= bound(Q) * np.sqrt((wide[2] ** 2).sum(axis=(-2, -1))))


def assert_upper(R):
    assert np.array_equal(R, np.triu(R))
