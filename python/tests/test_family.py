"""LQ, RQ and QL, and factors whose diagonal is non-negative."""

import numpy as np
import pytest
from laws import QUICK, assert_orthonormal, assert_product

import quoin

SHAPES = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (3, 3), (5, 3), (3, 5), (33, 32), (200, 17), (64, 200)]
TALL = (200 if QUICK else 1500, 40)


def matrices(rng, shape, dtype):
    A = rng.standard_normal(shape).astype(dtype)
    yield np.ascontiguousarray(A)
    yield np.asfortranarray(A)
    wide = np.full((2 * shape[0], 3 * shape[1]), np.nan, dtype)
    wide[::2, ::3] = A
    yield wide[::2, ::3]


def diagonal(triangle, last):
    """The triangle's diagonal, which starts in its first entry or ends in its last one."""
    return np.diagonal(triangle[::-1, ::-1] if last else triangle)


def transposed(X):
    return np.swapaxes(X, -1, -2)


def check(name, A, mode, first, second):
    """The law of a factorization in product order, its shapes, zeros and types."""
    m, n = A.shape
    k = min(m, n) if mode == "reduced" else n if name in ("lq", "rq") else m
    assert first.shape == (m, k) and second.shape == (k, n) and first.dtype == second.dtype == A.dtype
    assert first.flags.writeable and second.flags.writeable
    Q, T = (first, second) if name in ("qr", "ql") else (second, first)
    if name in ("lq", "rq"):
        assert_orthonormal(transposed(Q))
        assert_product(transposed(Q), transposed(T), transposed(A))
    else:
        assert_orthonormal(Q)
        assert_product(Q, T, A)
    offset = T.shape[1] - T.shape[0]
    zeros = {"qr": np.triu(T), "lq": np.tril(T), "rq": np.triu(T, offset), "ql": np.tril(T, offset)}
    assert np.array_equal(T, zeros[name])
    return T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode, shape", [*((m, s) for m in ("reduced", "complete") for s in SHAPES), ("reduced", TALL),
                                         ("reduced", TALL[::-1])])
@pytest.mark.parametrize("name", ["lq", "rq", "ql"])
def test_laws(rng, name, mode, shape, dtype):
    function = getattr(quoin, name)
    for A in matrices(rng, shape, dtype):
        before = A.copy()
        T = check(name, A, mode, *function(A, mode))
        assert np.array_equal(A, before)
        positive = check(name, A, mode, *function(A, mode, positive=True))
        assert np.all(diagonal(positive, name != "lq") >= 0)
        alone = function(A, "r" if name == "rq" else "l")
        k = min(shape)
        assert alone.shape == ((k, shape[1]) if name == "ql" else (shape[0], k))
        sizes = (np.abs(diagonal(X, name != "lq")) for X in (alone, T))
        assert np.allclose(*sizes, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode, of_scipy", [("reduced", "economic"), ("complete", "full"), ("r", "r")])
@pytest.mark.parametrize("shape", SHAPES[3:])
def test_rq_is_scipys(rng, shape, mode, of_scipy):
    linalg = pytest.importorskip("scipy.linalg")
    A = rng.standard_normal(shape)
    mine, theirs = quoin.rq(A, mode), linalg.rq(A, mode=of_scipy)
    if mode == "r":
        mine, theirs = (mine,), (theirs[:, -min(shape):],)  # SciPy's 'r' is R of its 'full'
    assert [x.shape for x in mine] == [x.shape for x in theirs]
    size = np.linalg.norm(A)
    assert np.all(np.abs(np.abs(diagonal(mine[0], True)) - np.abs(diagonal(theirs[0], True))) <= 1e-13 * size)


def test_a_stack_is_factored_matrix_by_matrix(rng):
    A = rng.standard_normal((2, 3, 9, 5))
    for name in ("lq", "rq", "ql"):
        for mode in ("reduced", "complete"):
            first, second = getattr(quoin, name)(A, mode)
            for i in np.ndindex(2, 3):
                check(name, A[i], mode, first[i], second[i])


def test_what_is_not_finite_is_named_where_it_is(rng):
    A = rng.standard_normal((7, 4))
    A[5, 1] = np.inf
    for function in (quoin.lq, quoin.rq, quoin.ql):
        with pytest.raises(quoin.NonFiniteEntry) as caught:
            function(A)
        assert (caught.value.row, caught.value.col) == (5, 1)
        assert not np.all(np.isfinite(function(A, check_finite=False)[0]))
        with pytest.raises(np.linalg.LinAlgError):
            function(A[0])


def test_results_are_named():
    A = np.eye(3)
    assert quoin.lq(A)._fields == ("L", "Q") and quoin.rq(A)._fields == ("R", "Q") and quoin.ql(A)._fields == ("Q", "L")
    for function in (quoin.lq, quoin.rq, quoin.ql):
        with pytest.raises(quoin.InvalidArgument, match="mode"):
            function(A, "raw")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["auto", "householder", "tsqr", "caqr"])
@pytest.mark.parametrize("shape", [*SHAPES, TALL])
def test_positive(rng, shape, method, dtype):
    for A in matrices(rng, shape, dtype):
        for mode in ("reduced", "complete") if shape != TALL else ("reduced",):
            R = check("qr", A, mode, *quoin.qr(A, mode, method, positive=True))
            assert np.all(np.diagonal(R) >= 0)
            # no zero has lost its sign
            assert not np.any(np.signbit(np.tril(R, -1)))
        assert np.all(np.diagonal(quoin.qr(A, "r", method, positive=True)) >= 0)


@pytest.mark.parametrize("shape", [*SHAPES, (400, 300), TALL])
def test_positive_with_pivoting(rng, shape):
    A = rng.standard_normal(shape)
    for mode in ("reduced", "complete") if shape != TALL else ("reduced",):
        Q, R, P = quoin.qr(A, mode, pivoting=True, positive=True)
        check("qr", A[:, P], mode, Q, R)
        assert np.all(np.diagonal(R) >= 0)
        assert np.array_equal(P, quoin.qr(A, mode, pivoting=True).P)
    assert np.all(np.diagonal(quoin.qr(A, "r", pivoting=True, positive=True)[0]) >= 0)


@pytest.mark.parametrize("q", ["any", "explicit", "reflectors"])
@pytest.mark.parametrize("shape", [(50, 20), (20, 50), (900, 20)])
def test_a_factorization_keeps_its_signs(rng, shape, q):
    A, C = rng.standard_normal(shape), rng.standard_normal((shape[0], 3))
    f = quoin.factor(A, q=q, positive=True)
    Q, R = f.q(), f.R
    check("qr", A, "reduced", Q, R)
    assert np.all(np.diagonal(R) >= 0)
    assert np.allclose(f.apply(C, trans=True)[: len(R)], Q.T @ C) and np.allclose(f.q[3:9, :5], Q[3:9, :5])
    assert np.allclose(f.apply(f.apply(C), trans=True), C)
    assert np.allclose(f.apply(C.T, side="right")[:, : len(R)], C.T @ Q)
    if shape[0] > shape[1]:
        assert np.allclose(f.lstsq(C).x, np.linalg.lstsq(A, C, rcond=None)[0])
    if q == "reflectors":
        signs = np.sign(np.diagonal(quoin.factor(A, q=q).R))
        assert np.allclose((np.eye(shape[0]) - f.V @ f.T @ f.V.T)[:, : len(R)] * signs, Q)
