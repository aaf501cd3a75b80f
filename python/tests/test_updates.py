"""Updates of Q and R: the law of a factorization for the changed matrix, and SciPy's shapes and values."""

import importlib.util
import pathlib

import numpy as np
import pytest
from laws import assert_orthonormal, assert_upper, bound, wide

import quoin

P = 3


def changes(rng, A):
    """Yields a name, the arguments of the update, and A' for rows and columns at both ends and inside."""
    m, n = A.shape

    def normal(*shape):
        return rng.standard_normal(shape).astype(A.dtype)

    for which, axis, size in (("row", 0, m), ("col", 1, n)):
        for k in (0, size // 2, size, -2):
            for new in (normal(size * 0 + A.shape[1 - axis]), normal(*((P, n) if axis == 0 else (m, P)))):
                block = new if new.ndim == 1 or axis == 0 else new.T
                yield "qr_insert", (new, k, which), np.insert(A, [k] * (1 if new.ndim == 1 else P), block if axis == 0 else block.T if new.ndim == 2 else block[:, None], axis)
            if k < size:
                p = min(P, size - k) if k >= 0 else 2
                yield "qr_delete", (k, p, which), np.delete(A, range(k % size, k % size + p), axis)
    yield "qr_update", (u := normal(m), v := normal(n)), A + np.outer(u, v)
    yield "qr_update", (U := normal(m, P), V := normal(n, P)), A + U @ V.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mode", ["economic", "full"])
@pytest.mark.parametrize("shape", [(60, 20), (30, 24), (30, 30), (20, 40)])
def test_factors_of_the_changed_matrix(rng, shape, mode, order, dtype):
    linalg = pytest.importorskip("scipy.linalg")
    A = rng.standard_normal(shape).astype(dtype)
    Q, R = (np.asarray(factor, order=order) for factor in linalg.qr(A, mode=mode))
    for name, arguments, B in changes(rng, A):
        new = getattr(quoin, name)(Q, R, *arguments)
        assert isinstance(new, quoin.QRResult) and new.Q.dtype == new.R.dtype == dtype
        assert_orthonormal(new.Q)
        assert_upper(new.R)
        assert np.linalg.norm(wide(B) - wide(new.Q) @ wide(new.R)) <= 4 * bound(A) * (np.linalg.norm(A) + np.linalg.norm(B))
        theirs = getattr(linalg, name)(Q, R, *arguments)
        assert new.Q.shape == theirs[0].shape and new.R.shape == theirs[1].shape
        rows = min(*B.shape, len(R) if name == "qr_update" else min(B.shape))
        least = np.linalg.svd(B.astype(np.float64), compute_uv=False)[-1]
        accurate = 100 * bound(A) * np.linalg.norm(B) ** 2 / least
        assert np.abs(np.abs(new.R[:rows]) - np.abs(theirs[1][:rows])).max() <= accurate


def test_arrays_of_other_kinds(rng):
    A = rng.standard_normal((9, 4))
    Q, R = quoin.qr(A)
    strided = np.zeros((18, 8))[::2, ::2]
    strided[:] = Q
    for q in (strided, Q.tolist()):
        assert np.array_equal(quoin.qr_delete(q, R, 1).R, quoin.qr_delete(Q, R, 1).R)
    assert quoin.qr_insert(Q, R.astype(np.float32), [1, 2, 3, 4], 0).R.dtype == np.float64
    with pytest.raises(np.linalg.LinAlgError, match="0-dimensional"):
        quoin.qr_insert(Q, R, 1.0, 0)


def test_what_does_not_fit(rng):
    A = rng.standard_normal((9, 4))
    Q, R = quoin.qr(A)
    for call, words in (
        (lambda: quoin.qr_insert(Q, R, A[0], 10), "k must be at most 9, and is 10"),
        (lambda: quoin.qr_insert(Q, R, A[0], -5, "col"), "k must be at least -4, and is -5"),
        (lambda: quoin.qr_insert(Q, R, A[0], 0, "col"), "U is 4 x 1, and must have 9 rows"),
        (lambda: quoin.qr_insert(Q, R, A[:, 0], 0), "V is 1 x 9, and must have 4 columns"),
        (lambda: quoin.qr_delete(Q, R, 8, 2), "p must be at most 1, and is 2"),
        (lambda: quoin.qr_delete(Q, R, 4, which="col"), "p must be at most 0, and is 1"),
        (lambda: quoin.qr_delete(Q, R[:3], 0), "R is 3 x 4, and must have 4 rows"),
        (lambda: quoin.qr_delete(Q, R[:, :3], 0), "Q must be square or thin"),
        (lambda: quoin.qr_update(Q, R, A[:, 0], A[:, 0]), "V is 9 x 1, and must have 4 rows"),
    ):
        with pytest.raises(quoin.InvalidArgument, match=words):
            call()
    with pytest.raises(quoin.NonFiniteEntry):
        quoin.qr_insert(Q, R, np.full(4, np.nan), 0)
    assert np.isnan(quoin.qr_insert(Q, R, np.full(4, np.nan), 0, check_finite=False).R).any()


def test_sliding_window_regression(capsys):
    path = pathlib.Path(__file__).parents[1] / "examples" / "sliding_window.py"
    spec = importlib.util.spec_from_file_location("sliding_window", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.main(steps=40)
    assert "largest difference" in capsys.readouterr().out
