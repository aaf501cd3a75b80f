import numpy as np
import pytest
from laws import assert_orthonormal, assert_product, assert_upper, bound

import quoin

SHAPES = [(3, 3), (16, 8), (8, 16), (5, 1), (70, 66), (33, 90)]


@pytest.fixture
def matrices(rng):
    return [rng.standard_normal(shape) for shape in [(16, 8), (0, 4), (90, 70), (3, 9), (16, 8), (5, 0), (1, 1)]]


def assert_same(one, other):
    """Fails unless both have equal bits, NaN included."""
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


# ---- Stacks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_factorizations_of_a_stack(rng, shape, dtype):
    A = rng.standard_normal((2, 3) + shape).astype(dtype)
    m, n = shape
    f = quoin.factor(A)
    assert f.shape == A.shape and len(f) == 6 and f.R.dtype == f.q().dtype == dtype
    assert_orthonormal(f.q())
    assert_product(f.q(), f.R, A)
    assert_upper(f.R)
    for mine, reference in zip(f.raw, quoin.qr(A, "raw")):
        assert_same(mine, reference)
    C = rng.standard_normal((m, 3)).astype(dtype)
    for given in (C, C[:, 0], np.broadcast_to(C, (3, m, 3)), np.broadcast_to(C, (2, 3, m, 3)).copy()):
        there = f.apply(given, trans=True)
        assert there.shape == (2, 3) + given.shape[-2:] if given.ndim > 1 else (2, 3, m)
        columns = there if given.ndim > 1 else there[..., None]
        back = f.apply(columns)
        assert np.all(np.abs(back - C[:, : back.shape[-1]]) <= bound(A) * np.linalg.norm(C))
    assert f.report(5).method == "householder"
    with pytest.raises(quoin.InvalidArgument, match="index"):
        f.report(6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_least_squares_of_a_stack(rng, shape, dtype):
    m, n = shape
    A = rng.standard_normal((2, 3) + shape).astype(dtype)
    b = rng.standard_normal((2, 3, m, 2)).astype(dtype)
    solution = quoin.lstsq(A, b)
    x, norms, condition = solution.x, solution.residual_norms, solution.condition
    assert x.shape == (2, 3, n, 2) and norms.shape == (2, 3, 2) and condition.shape == (2, 3) and solution.report is None
    assert x.dtype == dtype
    _, squares, ranks, s = solution
    assert squares.shape == (2, 3, 2 if m > n else 0) and np.array_equal(ranks, np.full((2, 3), min(m, n)))
    exact = np.linalg.svd(A.astype(np.float64), compute_uv=False)
    assert s.dtype == dtype and np.all(np.abs(s - exact) <= bound(A) * exact[..., :1])
    for index in np.ndindex(2, 3):
        alone = quoin.lstsq(A[index], b[index])
        scale = np.linalg.norm(alone.x) + np.linalg.norm(b[index])
        assert np.linalg.norm(x[index] - alone.x) <= 10 * bound(A) * alone.condition**2 * scale
        assert np.all(np.abs(norms[index] - alone.residual_norms) <= 10 * bound(A) * alone.condition * scale)
    # one right-hand side for all, a vector; and the bits of a copy for each
    shared = quoin.lstsq(A, b[0, 0, :, 0])
    each = quoin.lstsq(A, np.broadcast_to(b[0, 0, :, :1], (2, 3, m, 1)).copy())
    assert shared.x.shape == (2, 3, n) and shared.residual_norms.shape == (2, 3)
    assert_same(shared.x, each.x[..., 0])
    if m >= n:
        again = quoin.factor(A).lstsq(b)
        assert np.allclose(again.x, x, rtol=0, atol=float(10 * bound(A) * np.max(condition) ** 2 * np.abs(x).max()))


def test_empty_stacks():
    for shape in ((0, 3, 2), (2, 0, 3, 3), (3, 0, 2), (3, 2, 0)):
        A = np.ones(shape)
        f = quoin.factor(A)
        Q, R = np.linalg.qr(A)
        assert f.R.shape == R.shape and f.q().shape == Q.shape
        x = quoin.lstsq(A, np.ones(shape[-2])).x if shape[-2] else None
        assert x is None or x.shape == shape[:-2] + shape[-1:]


def test_what_is_refused_is_named_and_its_neighbours_are_unharmed(rng):
    A, b = rng.standard_normal((4, 5, 16, 8)), rng.standard_normal((4, 5, 16, 1))
    clean, solution = quoin.factor(A), quoin.lstsq(A, b)
    A[1, 2, 3, 4] = np.nan
    for call in (quoin.qr, quoin.factor, lambda A: quoin.lstsq(A, b)):
        with pytest.raises(quoin.NonFiniteEntry, match="matrix 7 of the batch .* row 3, column 4"):
            call(A)
    others = np.ones((4, 5), bool)
    others[1, 2] = False
    f = quoin.factor(A, check_finite=False)
    assert_same(f.R[others], clean.R[others])
    assert_same(f.q()[others], clean.q()[others])
    A[1, 2], A[3, 1, :, 1] = 1, A[3, 1, :, 0]
    with pytest.raises(quoin.RankDeficient, match="matrix 7 of the batch"):
        quoin.lstsq(A, b, deficient="error")
    others[3, 1] = False
    x = quoin.lstsq(A, b, check_finite=False, deficient="error").x
    assert_same(x[others], solution.x[others])
    assert np.isnan(x[~others]).all()
    shortest = quoin.lstsq(A, b)
    assert_same(shortest.x[others], solution.x[others])
    for at, rank in (((1, 2), 1), ((3, 1), 7)):
        assert shortest.rank[at] == rank
        assert np.allclose(shortest.x[at], np.linalg.lstsq(A[at], b[at], rcond=None)[0], rtol=0, atol=1e-12)
    assert (shortest.rank[others] == 8).all()
    of_list = quoin.lstsq([A[1, 2], A[0, 0, :12]], [b[1, 2], b[0, 0, :12]])
    assert of_list.rank == [1, 8] and np.array_equal(of_list.x[0], shortest.x[1, 2])


def test_results_do_not_depend_on_neighbours_layout_or_threads(rng):
    A, b = rng.standard_normal((33, 16, 8)), rng.standard_normal((33, 16, 2))
    f, s = quoin.factor(A), quoin.lstsq(A, b)
    strided = np.zeros((33, 8, 40))[:, :, 3:35:2].transpose(0, 2, 1)
    strided[...] = A
    for other in (strided, np.asfortranarray(A), A.astype(">f8")):
        assert_same(quoin.factor(other, threads=2).R, f.R)
        assert_same(quoin.lstsq(other, b, threads=1).x, s.x)
    backwards = quoin.lstsq(A[::-1], b[::-1])
    assert_same(backwards.x[::-1].copy(), s.x.copy())
    assert_same(quoin.factor(A[7:8]).R[0], f.R[7])


# ---- Lists -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
def test_a_list_of_matrices_of_different_shapes(matrices, mode):
    ours = quoin.qr(matrices, mode)
    ours = (ours,) if mode == "r" else ours
    for b, A in enumerate(matrices):
        theirs = np.linalg.qr(A, mode)
        for mine, reference in zip(ours, (theirs,) if mode == "r" else theirs):
            assert mine[b].shape == reference.shape and mine[b].dtype == reference.dtype
        alone = quoin.qr(A[None], mode)
        for mine, one in zip(ours, (alone,) if mode == "r" else alone):
            assert_same(mine[b], one[0])
        if mode in ("reduced", "complete"):
            assert_orthonormal(ours[0][b])
            assert_product(ours[0][b], ours[1][b], A)


def test_factorizations_and_least_squares_of_a_list(rng, matrices):
    f = quoin.factor(matrices)
    assert f.shape == [A.shape for A in matrices] and "7 matrices" in repr(f)
    C = [rng.standard_normal((A.shape[0], p)) for p, A in enumerate(matrices)]
    for given, there, back in zip(C, f.apply(C, trans=True), f.apply(f.apply(C, trans=True))):
        assert there.shape == given.shape and np.allclose(back, given, atol=1e-12)
    b = [rng.standard_normal(A.shape[0]) for A in matrices]
    solution = quoin.lstsq(matrices, b)
    for A, y, found in zip(matrices, b, zip(*solution)):
        for mine, theirs in zip(found, np.linalg.lstsq(A, y, rcond=None)):
            assert np.shape(mine) == np.shape(theirs) and np.allclose(mine, theirs, rtol=1e-9)
    for A, y, x, norm in zip(matrices, b, solution.x, solution.residual_norms):
        assert x.shape == A.shape[1:] and np.allclose(A.T @ (A @ x - y), 0, atol=1e-10)
        assert np.isclose(norm, np.linalg.norm(y - A @ x), atol=1e-10)
    tall = [A for A in matrices if A.shape[0] >= A.shape[1]]
    right = [rng.standard_normal((A.shape[0], 2)) for A in tall]
    for one, other in zip(quoin.factor(tall).lstsq(right).x, quoin.lstsq(tall, right).x):
        assert np.allclose(one, other)


def test_lists_of_one_shape_are_numpys_stacks(rng):
    As = [rng.standard_normal((5, 3)) for _ in range(4)]
    assert quoin.qr(As).Q.shape == (4, 5, 3)
    mixed = quoin.qr([As[0].astype(np.float32), np.eye(2)])
    assert all(R.dtype == np.float64 for R in mixed.R)


def test_what_does_not_fit(rng, matrices):
    A = rng.standard_normal((4, 5, 3))
    with pytest.raises(quoin.InvalidArgument, match="broadcast"):
        quoin.lstsq(A, np.ones((3, 5, 1)))
    with pytest.raises(quoin.InvalidArgument, match="B is 6x1|matrix 0 of B"):
        quoin.lstsq(A, np.ones(6))
    with pytest.raises(quoin.InvalidArgument, match="list of 7"):
        quoin.lstsq(matrices, np.ones(16))
    with pytest.raises(quoin.InvalidArgument, match="takes a list of 7 arrays"):
        quoin.factor(matrices).apply(np.ones(16))
    for function in (quoin.qr, quoin.factor):
        with pytest.raises(TypeError, match=f"quoin.{function.__name__} supports"):
            function([np.eye(3), np.eye(2, dtype=complex)])
    with pytest.raises(quoin.InvalidArgument, match="mode"):
        quoin.qr(matrices, "thin")
    with pytest.raises(np.linalg.LinAlgError, match="0-dimensional"):
        quoin.lstsq(A, 1.0)
    with pytest.raises(TypeError, match="pickled"):
        quoin.factor(A).__reduce__()


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(2, 3, 12, 5), (4, 5, 12), (0, 4, 3), (3, 4, 0)], ids=str)
def test_pivoted_stacks(rng, shape, mode):
    A = rng.standard_normal(shape)
    result = quoin.qr(A, mode=mode, pivoting=True)
    assert result[-1].shape == (*shape[:-2], shape[-1])
    for index in np.ndindex(shape[:-2]):
        alone = quoin.qr(A[index], mode=mode, method="auto" if mode == "r" else "householder", pivoting=True)
        for mine, one in zip(result[mode == "complete" :], alone[mode == "complete" :]):
            assert np.array_equal(mine[index], one)
        if mode != "r":
            Q, R, P = result
            assert Q[index].shape == alone[0].shape and np.allclose(Q[index] @ R[index], A[index][:, P[index]], rtol=0, atol=1e-13)
    with pytest.raises(quoin.InvalidArgument, match="positive"):
        quoin.qr(A, pivoting=True, positive=True)


@pytest.mark.parametrize("limit", [{"rank": 3}, {"rtol": 1e-8}, {"rank": 3, "rtol_frobenius": 1e-8}], ids=str)
def test_pivoted_stacks_with_limits(rng, limit):
    ranks = np.array([[4, 1, 2], [3, 4, 0]])
    A = np.zeros((2, 3, 12, 5))
    for index in np.ndindex(ranks.shape):
        A[index] = rng.standard_normal((12, ranks[index])) @ rng.standard_normal((ranks[index], 5))
    kept = np.full_like(ranks, 3) if limit == {"rank": 3} else np.minimum(ranks, limit.get("rank", 5))
    Q, R, P = quoin.qr(A, pivoting=True, **limit)
    alone_R, _ = quoin.qr(A, "r", pivoting=True, **limit)
    assert Q.shape == (2, 3, 12, kept.max()) and R.shape == alone_R.shape == (2, 3, kept.max(), 5)
    for index in np.ndindex(ranks.shape):
        one = quoin.qr(A[index], method="householder", pivoting=True, **limit)
        k = kept[index]
        assert one.Q.shape == (12, k)
        assert_same(Q[index][:, :k], one.Q)
        assert_same(R[index][:k], one.R)
        assert_same(P[index], one.P)
        assert not Q[index][:, k:].any() and not R[index][k:].any()
