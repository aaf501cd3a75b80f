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


def mixture(rng, m, n, rank=3, density=0.05, dtype=np.float64):
    """L + S far inside the domain where both are recovered exactly (Candès, Li, Ma and Wright 2011)."""
    L = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    S = rng.choice([-1.0, 0.0, 1.0], (m, n), p=[density / 2, 1 - density, density / 2])
    return L.astype(dtype), (3 * S).astype(dtype)
