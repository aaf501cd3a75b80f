"""Interpolative and CUR decompositions, and the truncated SVD."""

import numpy as np
import pytest
from laws import assert_orthonormal, bound, wide

import quoin


def of_rank(rng, m, n, rank, dtype):
    return (rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))).astype(dtype)


def norm(*factors):
    return np.prod([np.linalg.norm(wide(factor)) for factor in factors])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("pivoting", ["auto", "greedy", "randomized", "strong"])
@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (500, 20)])
def test_exact_rank(rng, shape, pivoting, order, dtype):
    A = np.asarray(of_rank(rng, *shape, 5, dtype), order=order)
    units = bound(A) * max(shape) / min(shape)
    columns, X = quoin.interpolative(A, pivoting=pivoting)
    assert columns.shape == (5,) and X.shape == (5, shape[1]) and X.dtype == dtype
    assert np.array_equal(X[:, columns], np.eye(5))
    assert norm(A - wide(A[:, columns]) @ wide(X)) <= units * norm(A[:, columns], X)
    for limit in ({}, {"rank": 5}, {"rtol": 1e-4}, {"rtol_frobenius": 1e-4}):
        columns, rows, U = quoin.cur(A, **limit, pivoting=pivoting)
        assert columns.shape == rows.shape == (5,) and U.shape == (5, 5)
        error = norm(A - wide(A[:, columns]) @ wide(U) @ wide(A[rows]))
        assert error <= units * norm(A[:, columns], U, A[rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(80, 50), (50, 80), (900, 30)])
def test_truncated_svd(rng, shape, dtype):
    k, rank = min(shape), 6
    left, right = (np.linalg.qr(rng.standard_normal((size, k)))[0] for size in shape)
    sigma = 0.4 ** np.arange(k)
    A = ((left * sigma) @ right.T).astype(dtype)
    U, S, Vh = quoin.svd(A, rank=rank)
    assert U.shape == (shape[0], rank) and S.shape == (rank,) and Vh.shape == (rank, shape[1])
    assert_orthonormal(U)
    assert_orthonormal(Vh.T)
    assert np.all(np.abs(S - sigma[:rank]) <= bound(A) + (100 * sigma[17]) ** 2)
    best = np.sqrt(np.sum(sigma[rank:] ** 2))
    assert norm(wide(A) - wide(U) * wide(S) @ wide(Vh)) <= 1.01 * best + bound(A)
    assert np.array_equal(quoin.svd(A, compute_uv=False, rank=rank), S) or np.allclose(
        quoin.svd(A, compute_uv=False, rank=rank), S, rtol=0, atol=bound(A) + (100 * sigma[17]) ** 2
    )
    assert 5 <= len(quoin.svd(A, compute_uv=False, rtol=1e-3)) <= 12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pivoting", [True, "greedy", "randomized", "strong"])
@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (500, 20)])
def test_qr_stops_at_a_limit(rng, shape, pivoting, dtype):
    A = of_rank(rng, *shape, 5, dtype)
    for limit in ({"rank": 5}, {"rtol": 1e-4}, {"rtol_frobenius": 1e-4}):
        Q, R, P = quoin.qr(A, pivoting=pivoting, positive=True, **limit)
        assert Q.shape == (shape[0], 5) and R.shape == (5, shape[1]) and np.all(np.diag(R) > 0)
        assert_orthonormal(Q)
        assert norm(A[:, P] - wide(Q) @ wide(R)) <= bound(A) * norm(A)
        r, p = quoin.qr(A, "r", pivoting=pivoting, **limit)
        assert r.shape == R.shape and np.array_equal(np.sort(p), np.arange(shape[1]))
    assert quoin.qr(A, pivoting=pivoting, rank=2).R.shape == (2, shape[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_frobenius_norm_of_what_is_left(rng, dtype):
    A = rng.standard_normal((300, 200)).astype(dtype)  # its columns have nearly the same norm
    for tolerance in (0.9, 0.5, 0.1):
        Q, R, P = quoin.qr(A, pivoting="greedy", rtol_frobenius=tolerance)
        left = lambda k: norm(wide(A[:, P]) - wide(Q[:, :k]) @ wide(R[:k])) / norm(A)
        assert left(len(R)) <= tolerance + bound(A)
        assert left(len(R) - 1) > tolerance - bound(A)  # one column fewer leaves too much
        assert len(R) != len(quoin.qr(A, pivoting="greedy", rtol=tolerance).R)
        columns, X = quoin.interpolative(A, pivoting="greedy", rtol_frobenius=tolerance)
        assert np.array_equal(columns, P[: len(R)])
        assert quoin.svd(A, compute_uv=False, rtol_frobenius=tolerance).size < 200


def test_zero_and_empty_matrices(rng):
    for shape in [(4, 3), (0, 3), (3, 0)]:
        columns, X = quoin.interpolative(np.zeros(shape))
        assert columns.shape == (0,) and X.shape == (0, shape[1])
        columns, rows, U = quoin.cur(np.zeros(shape))
        assert len(columns) == len(rows) == U.size == 0


@pytest.mark.parametrize("function", [quoin.interpolative, quoin.cur, quoin.svd])
def test_limits_out_of_their_domain(rng, function):
    A = rng.standard_normal((8, 5))
    for options, words in [
        ({"rank": 6}, "at most min"), ({"rank": 0}, "at least 1"), ({"rtol": -1}, "rtol must not be negative"),
        ({"rtol": np.nan}, "rtol must be a number"), ({"rtol_frobenius": -1}, "rtol_frobenius must not be negative"),
    ]:
        with pytest.raises(quoin.InvalidArgument, match=words):
            function(A, **options)
    with pytest.raises(quoin.NonFiniteEntry):
        function(np.full((8, 5), np.nan), rank=2)
