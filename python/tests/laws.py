"""The bounds of Householder QR (Higham 2002, theorem 19.4) in units of n·u, measured in the next longer type."""

import os

import numpy as np

CONSTANT = 10.0
QUICK = os.environ.get("QUOIN_TEST_QUICK", "0") not in ("", "0")


def wide(array):
    array = np.asarray(array)
    return array.astype(np.float64 if array.dtype == np.float32 else np.longdouble)


def bound(array):
    n = max(1, min(array.shape[-2:]))
    return CONSTANT * n * float(np.finfo(array.dtype).eps)


def assert_orthonormal(Q):
    gram = np.swapaxes(wide(Q), -1, -2) @ wide(Q)
    departure = np.sqrt(((gram - np.eye(Q.shape[-1])) ** 2).sum(axis=(-2, -1)))
    assert np.all(departure <= bound(Q))


def assert_product(Q, R, A):
    residual = np.sqrt(((wide(A) - wide(Q) @ wide(R)) ** 2).sum(axis=(-2, -1)))
    assert np.all(residual <= bound(Q) * np.sqrt((wide(A) ** 2).sum(axis=(-2, -1))))


def assert_upper(R):
    assert np.array_equal(R, np.triu(R))
