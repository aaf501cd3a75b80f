import itertools
import pickle

import numpy as np
import pytest
from laws import QUICK, assert_orthonormal, assert_product, assert_upper, bound, wide

import quoin
from quoin._arrays import to_float, unconverted

SHAPES = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (3, 3), (5, 3), (3, 5), (33, 32), (200, 17), (64, 200)]
TALL = (200 if QUICK else 1000, 64)  # several leaves; a square Q of as many rows is too slow to check in longdouble
METHODS = ["auto", "householder", "tsqr", "caqr"]


def spread(rng, m, n, dtype):
    """Columns of norms between 1e-5 and 1e5, two of them nearly equal."""
    A = rng.standard_normal((m, n)) * np.logspace(-5, 5, n)
    if n > 1:
        A[:, 1] = A[:, 0] * (1 + 1e-6)
    return A.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
def test_modes_have_the_shapes_and_types_of_numpy(rng, mode, shape, dtype):
    A = spread(rng, *shape, dtype)
    ours, theirs = quoin.qr(A, mode), np.linalg.qr(A, mode)
    if mode == "r":
        ours, theirs = (ours,), (theirs,)
    assert len(ours) == len(theirs)
    for mine, reference in zip(ours, theirs):
        assert mine.shape == reference.shape and mine.dtype == reference.dtype
        assert mine.flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode, shape", [*itertools.product(["reduced", "complete"], SHAPES), ("reduced", TALL)])
@pytest.mark.parametrize("method", METHODS)
def test_laws(rng, mode, method, shape, dtype):
    A = spread(rng, *shape, dtype)
    Q, R = quoin.qr(A, mode, method)
    assert_orthonormal(Q)
    assert_product(Q, R, A)
    assert_upper(R)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode, shape", [*itertools.product(["reduced", "complete"], SHAPES), ("reduced", TALL)])
def test_laws_with_pivoting(rng, mode, shape, dtype):
    A = spread(rng, *shape, dtype)
    Q, R, P = quoin.qr(A, mode, pivoting=True)
    assert P.dtype == np.intp and np.array_equal(np.sort(P), np.arange(shape[1]))
    assert Q.dtype == R.dtype == dtype
    assert_orthonormal(Q)
    assert_product(Q, R, A[:, P])
    assert_upper(R)
    r, p = quoin.qr(A, "r", pivoting=True)
    assert np.array_equal(p, P) and r.shape == (min(shape), shape[1])
    assert_upper(r)
    # another method may make R alone, with other signs: ‖r_j‖ = ‖a_j‖
    of_r, of_a = (np.sqrt((wide(X) ** 2).sum(axis=0)) for X in (r, A[:, P]))
    assert np.all(np.abs(of_r - of_a) <= bound(A) * of_a)


@pytest.mark.parametrize("order", ["C", "F"])
def test_pivots_are_those_of_scipy_where_the_choice_is_clear(rng, order):
    linalg = pytest.importorskip("scipy.linalg")
    A = np.asarray(np.linalg.qr(rng.standard_normal((90, 24)))[0] * 2.0 ** rng.permutation(24), order=order)
    assert np.array_equal(quoin.qr(A, pivoting=True).P, linalg.qr(A, mode="r", pivoting=True)[1])
    A[:, 7:] = A[:, :7] @ rng.standard_normal((7, 17))
    diagonal = np.abs(np.diagonal(quoin.qr(A, "r", pivoting=True)[0]))
    assert np.all(diagonal[7:] <= bound(A) * diagonal[0]) and np.all(diagonal[:7] > 1e-8 * diagonal[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3001, 50), (40, 7), (7, 40), (65, 65)])
def test_the_storage_order_does_not_change_a_bit(rng, shape, dtype):
    A, b = spread(rng, *shape, dtype), rng.standard_normal(shape[0]).astype(dtype)
    strided = np.repeat(np.repeat(A, 2, 0), 3, 1)[::2, ::3]

    def results(A):
        stream = quoin.StreamingR().partial_fit(A)
        singular_values = quoin.svd(A, compute_uv=False)
        return [quoin.qr(A, mode="r"), *quoin.qr(A, mode="raw"), stream.R, singular_values, quoin.lstsq(A, b, rcond=0)[0]]

    expected = results(np.asfortranarray(A))
    for other in (np.ascontiguousarray(A), A[::-1][::-1], strided):
        before = other.copy()
        for ours, theirs in zip(results(other), expected):
            assert ours.tobytes() == theirs.tobytes()
        assert np.array_equal(other, before)


def test_r_alone_is_r(rng):
    A = spread(rng, 300, 20, np.float64)
    R = quoin.qr(A, mode="r")
    assert_upper(R)
    # the Cholesky factor of AᵀA is unique up to signs of rows; here to the scale of each column
    reference = np.linalg.qr(A, mode="r")
    well_posed = [0] + list(range(2, 20))
    difference = np.abs(np.linalg.norm(R, axis=0) - np.linalg.norm(reference, axis=0))
    assert np.all(difference[well_posed] <= bound(A) * np.linalg.norm(A, axis=0)[well_posed])


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (9, 9), (1, 1)])
def test_raw_is_lapack_format(rng, shape):
    A = rng.standard_normal(shape)
    h, tau = quoin.qr(A, mode="raw")
    Q = np.eye(shape[0])
    for j in range(min(shape)):
        v = np.concatenate([np.zeros(j), [1.0], h[j, j + 1 :]])
        Q = Q - np.outer(Q @ v, tau[j] * v)
    assert_orthonormal(Q)
    assert_product(Q, np.triu(h.T), A)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
@pytest.mark.parametrize("batch", [(0,), (1,), (3,), (2, 3), (2, 0, 3)])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (0, 2), (5, 5)])
def test_a_batch_is_its_matrices(rng, mode, batch, shape):
    A = rng.standard_normal(batch + shape)
    ours, theirs = quoin.qr(A, mode), np.linalg.qr(A, mode)
    if mode == "r":
        ours, theirs = (ours,), (theirs,)
    for mine, reference in zip(ours, theirs):
        assert mine.shape == reference.shape
    for index in np.ndindex(batch):
        alone = quoin.qr(A[index][None], mode)
        for mine, one in zip(ours, (alone,) if mode == "r" else alone):
            assert np.array_equal(mine[index], one[0])
        if mode in ("reduced", "complete"):
            assert_orthonormal(ours[0][index])
            assert_product(ours[0][index], ours[1][index], A[index])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 3), (16, 8), (8, 16), (70, 66)])
def test_large_stacks(rng, shape, dtype):
    A = rng.standard_normal((500,) + shape).astype(dtype)
    Q, R = quoin.qr(A)
    assert Q.dtype == R.dtype == dtype
    for b in (0, 17, 498, 499):
        assert_orthonormal(Q[b])
        assert_product(Q[b], R[b], A[b])
    A[321, 2, 1] = np.nan
    with pytest.raises(ValueError, match="matrix 321 of the batch holds NaN or Inf, first at row 2, column 1"):
        quoin.qr(A)
    lenient = quoin.qr(A, check_finite=False)
    others = np.arange(500) != 321
    assert np.array_equal(lenient.R[others], R[others]) and np.isnan(lenient.R[321]).any()


def test_a_batch_of_any_strides(rng):
    A = rng.standard_normal((4, 3, 2, 8))
    view = A.transpose(2, 1, 3, 0)[:, ::-1, ::2]
    Q, R = quoin.qr(view)
    assert_product(Q, R, view)
    assert_orthonormal(Q)


@pytest.mark.parametrize("layout", [
    np.asfortranarray,
    lambda A: A[::-1],
    lambda A: A[:, ::-1],
    lambda A: A[::2, ::3],
    lambda A: A[:, 5:15],
    lambda A: np.asfortranarray(A)[3:50, :11],
    lambda A: A.T,
    lambda A: np.broadcast_to(A[:1], (30, A.shape[1])),
    lambda A: A[:, :1],
    lambda A: A[:1],
    lambda A: A.astype(">f8"),
    lambda A: np.frombuffer(b"x" + A.tobytes(), np.uint8)[1:].view(np.float64).reshape(A.shape),
])
def test_layouts_give_the_same_bits(rng, layout):
    A = layout(rng.standard_normal((60, 20)))
    kept = A.copy()
    Q, R = quoin.qr(A)
    reference = quoin.qr(np.array(A, dtype=np.float64, order="F"))
    assert np.array_equal(Q, reference.Q) and np.array_equal(R, reference.R)
    assert np.array_equal(A, kept)


def test_the_extension_module_is_given_aligned_memory(rng):
    misaligned = np.frombuffer(b"x" + rng.standard_normal((6, 4)).tobytes(), np.uint8)[1:].view(np.float64)
    assert not misaligned.flags.aligned and to_float(misaligned, "").flags.aligned
    assert unconverted(misaligned) is None and unconverted(misaligned.copy()) is not None


def test_read_only(rng):
    A = rng.standard_normal((10, 3))
    A.flags.writeable = False
    assert_product(*quoin.qr(A), A)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_integers_are_computed_in_float64(dtype):
    A = np.array([[1, 2], [0, 1], [1, 1]]).astype(dtype)
    Q, R = quoin.qr(A)
    assert Q.dtype == R.dtype == np.float64 == np.linalg.qr(A).R.dtype
    assert_product(Q, R, A.astype(np.float64))


def test_lists():
    assert_product(*quoin.qr([[1, 2], [3, 4]]), np.array([[1.0, 2.0], [3.0, 4.0]]))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.float16, np.longdouble, object, "U3", "M8[s]"])
def test_other_types_are_a_type_error_that_says_what_is_supported(dtype):
    with pytest.raises(TypeError, match="supports float32 and float64"):
        quoin.qr(np.zeros((2, 2), dtype=dtype))


@pytest.mark.parametrize("A", [np.float64(1.0), np.zeros(3)])
def test_fewer_than_two_dimensions(A):
    with pytest.raises(np.linalg.LinAlgError, match="two-dimensional"):
        quoin.qr(A)


@pytest.mark.parametrize("arguments", [{"mode": "thin"}, {"mode": None}, {"method": "qr"}, {"threads": 0},
                                       {"threads": -2}])
def test_arguments_out_of_their_domain(arguments):
    with pytest.raises(quoin.InvalidArgument, match=next(iter(arguments))) as caught:
        quoin.qr(np.eye(3), **arguments)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, quoin.Error)


def test_scipys_names_of_modes_and_options(rng):
    A = rng.standard_normal((30, 4))
    for mine, scipys in (("reduced", "economic"), ("complete", "full")):
        for pivoting in (False, True):
            expected = quoin.qr(A, mine, pivoting=pivoting)
            assert all(map(np.array_equal, quoin.qr(A.copy(), mode=scipys, pivoting=pivoting, overwrite_a=True), expected))
        assert all(map(np.array_equal, quoin.qr([A, A[:3]], scipys).R, quoin.qr([A, A[:3]], mine).R))
        for function in (quoin.lq, quoin.rq, quoin.ql):
            assert all(map(np.array_equal, function(A, scipys), function(A, mine)))
    before = A.copy()
    assert np.array_equal(quoin.svd(A, compute_uv=False, overwrite_a=True), quoin.svd(A, compute_uv=False))
    assert np.array_equal(quoin.lstsq(A, A[:, 0], overwrite_a=True).x, quoin.lstsq(A, A[:, 0]).x)
    assert np.array_equal(A, before)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_entries_that_are_not_finite(bad):
    A = np.ones((4, 3))
    A[2, 1] = bad
    with pytest.raises(quoin.NonFiniteEntry) as caught:
        quoin.qr(A)
    assert isinstance(caught.value, np.linalg.LinAlgError)
    assert (caught.value.row, caught.value.col) == (2, 1)
    assert not np.isfinite(quoin.qr(A, check_finite=False).R).all()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.row == 2


def test_breakdown_of_a_conditional_method():
    with pytest.raises(quoin.NumericalBreakdown) as caught:
        quoin.qr(np.ones((100, 3)), method="cholesky-qr2")
    assert isinstance(caught.value, (np.linalg.LinAlgError)) and isinstance(caught.value, ArithmeticError)


@pytest.mark.parametrize("A", [np.zeros((20, 5)), np.ones((20, 5)), 1e300 * np.ones((20, 5)), 1e-300 * np.eye(20, 5)])
def test_rank_deficient_and_out_of_scale(A):
    Q, R = quoin.qr(A)
    assert_orthonormal(Q)
    scale = np.abs(A).max() or 1.0
    assert_product(Q, R / scale, A / scale)


def test_results_are_named_tuples_and_pickle(rng):
    A = rng.standard_normal((8, 3))
    result = quoin.qr(A)
    assert isinstance(result, tuple) and result._fields == np.linalg.qr(A)._fields
    for value in (result, quoin.qr(A, "raw"), quoin.svd(A), quoin.plan(8, 3), quoin.factor(A).report):
        copy = pickle.loads(pickle.dumps(value))
        assert type(copy) is type(value) and all(np.array_equal(x, y) for x, y in zip(copy, value))


def test_results_own_their_memory(rng):
    Q = quoin.qr(rng.standard_normal((500, 30))).Q
    kept = Q.copy()
    for _ in range(20):
        quoin.qr(rng.standard_normal((500, 30)))
    assert np.array_equal(Q, kept)


def test_the_number_of_threads_does_not_change_the_bits(rng):
    A = rng.standard_normal((20000, 48))
    one, three = quoin.qr(A, threads=1), quoin.qr(A, threads=3)
    assert np.array_equal(one.Q, three.Q) and np.array_equal(one.R, three.R)
