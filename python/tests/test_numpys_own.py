"""NumPy's and SciPy's own tests of QR and least squares, with Quoin in the place of what they test.

What Quoin refuses by design (complex numbers, pivoting) is asserted to be refused, and then left to the original.
"""

import functools

import numpy as np
import pytest

import quoin

numpys = pytest.importorskip("numpy.linalg.tests.test_linalg")
scipys = pytest.importorskip("scipy.linalg.tests.test_decomp")

numpy_qr, numpy_lstsq, scipy_qr = np.linalg.qr, np.linalg.lstsq, scipys.qr


def is_complex(*arrays):
    return any(np.iscomplexobj(array) for array in arrays)


def qr(a, mode="reduced"):
    if is_complex(a):
        with pytest.raises(TypeError):
            quoin.qr(a, mode)
        return numpy_qr(a, mode)
    return quoin.qr(a, mode)


def lstsq(a, b, rcond=None):
    if is_complex(a, b):
        with pytest.raises(TypeError):
            quoin.lstsq(a, b)
        return numpy_lstsq(a, b, rcond)
    return tuple(quoin.lstsq(a, b))


def qr_of_scipy(a, *args, mode="full", pivoting=False, check_finite=True, **others):
    if is_complex(a) or pivoting or args or others:
        return scipy_qr(a, *args, mode=mode, pivoting=pivoting, check_finite=check_finite, **others)
    a = np.asarray(a)

    def factor(mode):
        return quoin.qr(a, mode, method="householder", check_finite=check_finite)  # LAPACK's signs

    if mode == "r":
        return (factor("complete").R,)
    if mode == "raw":
        h, tau = factor("raw")
        return (h.T, tau), np.triu(h.T)[: len(tau)]
    return tuple(factor({"full": "complete", "economic": "reduced"}[mode]))


@pytest.fixture(autouse=True)
def in_their_place(monkeypatch):
    monkeypatch.setattr(np.linalg, "qr", qr)
    monkeypatch.setattr(np.linalg, "lstsq", lstsq)
    monkeypatch.setattr(scipys, "qr", qr_of_scipy)


@pytest.fixture(autouse=True)
def single_precision(monkeypatch):
    """NumPy computes float32 in float64, and its tests ask for 1.5e-6 of QR with entries up to 6, and of A x where
    n·u ‖A‖ ‖x‖ of float32 is 5e-6 (single_nsq_1: ‖A‖ = 8.7, ‖x‖ = 3.3, n = 3)."""
    monkeypatch.setattr(numpys, "assert_almost_equal", functools.partial(numpys.assert_almost_equal, single_decimal=5))


class TestNumpysQR(numpys.TestQR):
    pass


class TestNumpysLstsq(numpys.TestLstsq):
    def test_rcond(self):
        a = np.array([[0, 1, 0, 1, 2, 0], [0, 2, 0, 0, 1, 0], [1, 0, 1, 0, 0, 4], [0, 0, 0, 2, 3, 0]]).T
        with pytest.raises(quoin.RankDeficient):
            quoin.lstsq(a, np.eye(6)[0], deficient="error")
        assert quoin.lstsq(a, np.eye(6)[0]).rank == 3

    def test_incompatible_dims(self):
        with pytest.raises(quoin.InvalidArgument, match="5 rows"):
            quoin.lstsq(np.ones((4, 2)), np.ones(5))


class TestScipysQR(scipys.TestQR):
    test_lwork = test_overwrite_args = test_raw_flags = None  # of SciPy's memory, not of its factors
