"""quoin.dask: the laws of QR for any chunks, on Dask's schedulers and on workers in processes of their own."""

import doctest
import time

import numpy as np
import pytest

import quoin
from laws import assert_orthonormal, assert_product, assert_upper, bound

da = pytest.importorskip("dask.array")
get_dependencies = pytest.importorskip("dask.core").get_dependencies
quoin_dask = pytest.importorskip("quoin.dask")

CHUNKS = {
    "one": (700,),
    "equal": (100,) * 7,
    "ragged": (1, 250, 3, 0, 200, 5, 7, 234),
    "of one row": (1,) * 40,
    "wide": (3, 4),
    "empty": (0,),
}


def in_chunks(A, rows, cols=None):
    return da.from_array(A, chunks=(rows, cols or A.shape[1:]))


@pytest.mark.parametrize("rows", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("fan_in", [2, 3, 8])
def test_q_and_r(rng, rows, fan_in):
    A = rng.standard_normal((sum(rows), 9))
    D = in_chunks(A, rows)
    Q, R = quoin_dask.qr(D, fan_in=fan_in)
    assert Q.shape == (len(A), min(A.shape)) and R.shape == (min(A.shape), 9)
    assert Q.chunks[0] == rows and R.numblocks == (1, 1)
    q, r = da.compute(Q, R)
    assert q.shape == Q.shape and r.shape == R.shape
    assert_orthonormal(q)
    assert_product(q, r, A)
    assert_upper(r)
    assert np.allclose(np.abs(quoin_dask.qr(D, mode="r", fan_in=fan_in)), np.abs(r), atol=1e-12)


def hostile(rng):
    A = rng.standard_normal((300, 8))
    graded = A * 10.0 ** np.linspace(-250, 250, 8)
    collinear = A[:, :1] + 1e-14 * A
    repeated = np.column_stack([A[:, :4], A[:, :4]])
    rows = A * 10.0 ** rng.uniform(-100, 100, (300, 1))
    return {"zero": 0 * A, "graded": graded, "collinear": collinear, "repeated": repeated, "rows": rows, "triangle": np.triu(A)}


@pytest.mark.parametrize("kind", ["zero", "graded", "collinear", "repeated", "rows", "triangle"])
def test_hostile_matrices(rng, kind):
    A = hostile(rng)[kind]
    q, r = da.compute(*quoin_dask.qr(in_chunks(A, (40,) * 7 + (20,)), fan_in=2))
    assert_orthonormal(q)
    exponents = 2.0 ** np.floor(np.log2(np.maximum(np.abs(A).max(axis=0), 1e-300)))  # column by column, exactly
    assert_product(q, r / exponents, A / exponents)


@pytest.mark.parametrize("dtype, computed", [("f4", "f4"), (">f8", "f8"), ("i4", "f8"), ("?", "f8")])
def test_types(rng, dtype, computed):
    A = (3 * rng.standard_normal((200, 5))).astype(dtype)
    D = in_chunks(A, (50,) * 4)
    Q, R = quoin_dask.qr(D)
    q, r = da.compute(Q, R)
    assert Q.dtype == q.dtype == R.dtype == r.dtype == np.dtype(computed)
    assert_orthonormal(q)
    assert_product(q, r, A.astype(computed))
    x = quoin_dask.lstsq(D[:, :1], da.ones(200, chunks=50, dtype="f4")).x
    assert x.dtype == x.compute().dtype == np.dtype(computed)


def test_chunks_of_columns_and_of_unknown_sizes(rng):
    A = rng.standard_normal((400, 6))
    q, r = da.compute(*quoin_dask.qr(da.from_array(A, chunks=(100, 2))))
    assert_orthonormal(q)
    assert_product(q, r, A)
    D = in_chunks(A, (100,) * 4)
    some = D[D[:, 0] > 0]
    Q, R = quoin_dask.qr(some)
    q, r = da.compute(Q, R)
    assert np.isnan(Q.shape[0]) and len(q) < 400
    assert_orthonormal(q)
    assert_product(q, r, A[A[:, 0] > 0])
    x = quoin_dask.lstsq(some, some @ np.arange(6)).x
    assert np.allclose(x.compute(), np.arange(6)) and quoin_dask.lstsq(some, some @ np.arange(6)).residuals.compute().shape == (1,)
    with pytest.raises(quoin.InvalidArgument, match="4 chunks of rows, b 1"):
        quoin_dask.lstsq(some, np.ones(200))
    with pytest.raises(quoin.InvalidArgument, match="columns is unknown"):
        quoin_dask.qr(some.T)


@pytest.mark.parametrize("fan_in", [2, 5])
def test_no_task_gets_more_triangles_than_the_fan_in(rng, fan_in):
    D = in_chunks(rng.standard_normal((640, 4)), (10,) * 64)
    x = quoin_dask.lstsq(D, np.ones(640), fan_in=fan_in)
    for result in (*quoin_dask.qr(D, fan_in=fan_in), *quoin_dask.svd(D, fan_in=fan_in), x.x):
        graph = dict(result.__dask_graph__())
        inputs = {key: len(get_dependencies(graph, key)) for key in graph}
        combining = [count for key, count in inputs.items() if key[0].startswith(("_combined", "_merged"))]
        assert max(combining) <= fan_in and sum(combining) >= 64 - 1


def test_the_graph_of_many_chunks_is_built_at_once():
    D = da.ones((4000, 4), chunks=(1, 4))
    for call in (lambda: quoin_dask.qr(D), lambda: quoin_dask.svd(D), lambda: quoin_dask.lstsq(D, D[:, 0])):
        begin = time.process_time()
        call()
        assert time.process_time() - begin < 2


def test_no_task_of_r_alone_forms_q(rng, monkeypatch):
    D = in_chunks(rng.standard_normal((100, 4)), (50, 50))
    modes = []
    original = quoin.dask._functions.qr
    monkeypatch.setattr(quoin.dask._functions, "qr", lambda *a, **k: modes.append(k.get("mode")) or original(*a, **k))
    quoin_dask.qr(D, mode="r").compute(scheduler="sync")
    quoin_dask.svd(D, compute_uv=False).compute(scheduler="sync")
    assert modes == ["r"] * 6


def test_svd(rng):
    for m, n in [(500, 7), (5, 12)]:
        A = rng.standard_normal((m, n)) * np.logspace(0, -6, n)
        U, S, Vh = quoin_dask.svd(in_chunks(A, (m // 5,) * 5), fan_in=2)
        k = min(m, n)
        assert U.shape == (m, k) and S.shape == (k,) and Vh.shape == (k, n) and U.numblocks[0] == 5
        u, s, vh = da.compute(U, S, Vh)
        assert_orthonormal(u)
        assert_orthonormal(vh.T)
        assert_product(u * s, vh, A)
        expected = np.linalg.svd(A, compute_uv=False)
        assert np.all(np.abs(s - expected) <= bound(A) * expected[0])
        assert np.array_equal(quoin_dask.svd(in_chunks(A, (m // 5,) * 5), fan_in=2, compute_uv=False).shape, s.shape)


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_lstsq(rng, shape):
    A, b = rng.standard_normal((500, 6)), rng.standard_normal((500, *shape))
    D = in_chunks(A, (120, 3, 177, 200))
    expected = quoin.lstsq(A, b)
    for given in (b, da.from_array(b, chunks=(250, *shape))):
        f = quoin_dask.lstsq(D, given, fan_in=3)
        assert f.x.shape == expected.x.shape and f.residual_norms.shape == shape and f.report is None
        x, norms, condition = da.compute(f.x, f.residual_norms, f.condition)
        assert np.allclose(x, expected.x, rtol=1e-12) and np.allclose(norms, expected.residual_norms, rtol=1e-12)
        for mine, theirs in zip(da.compute(*f), np.linalg.lstsq(A, b, rcond=None)):
            assert np.shape(mine) == np.shape(theirs) and np.allclose(mine, theirs, rtol=1e-12)
        assert [np.shape(one) for one in f] == [np.shape(one) for one in expected]
        # Hager's estimate is a lower bound of the condition, a third of it at worst here
        true = np.linalg.cond(quoin.qr(A, mode="r"), 1)
        assert true / 3 <= condition <= true * (1 + 1e-10)
    A[:, 5] = A[:, 4] + 1e-9 * A[:, 5]
    with pytest.raises(quoin.RankDeficient):
        quoin_dask.lstsq(in_chunks(A, (250, 250)), b, rcond=1e-6).x.compute()
    quoin_dask.lstsq(in_chunks(A, (250, 250)), b, rcond=1e-12).x.compute()
    with pytest.raises(quoin.RankDeficient, match="500x6"):
        quoin_dask.lstsq(in_chunks(A, (250, 250)), b, rcond=1.0).x.compute()


def test_nan_is_named_by_its_row_in_the_whole_array(rng):
    A, b = rng.standard_normal((300, 4)), rng.standard_normal(300)
    A[217, 2] = np.nan
    D = in_chunks(A, (100,) * 3)
    for result in (quoin_dask.qr(D).R, quoin_dask.qr(D, mode="r"), quoin_dask.lstsq(D, b).x, quoin_dask.svd(D).S):
        with pytest.raises(quoin.NonFiniteEntry, match="from row 200 on the first is at row 217, column 2") as caught:
            result.compute()
        assert (caught.value.row, caught.value.col) == (217, 2)
    with pytest.raises(quoin.NonFiniteEntry, match="row 17, column 2") as caught:
        quoin_dask.qr(D[D[:, 0] < np.inf]).R.compute()
    assert np.isnan(quoin_dask.qr(D, mode="r", check_finite=False).compute()).any()


def test_options_reach_the_tasks(rng):
    A = np.vander(np.linspace(0, 1, 300), 20)  # too ill-conditioned for CholeskyQR2
    D = in_chunks(A, (150, 150))
    with pytest.raises(quoin.NumericalBreakdown):
        quoin_dask.qr(D, method="cholesky-qr2").R.compute()
    quoin_dask.qr(D, method="householder").R.compute()


def test_arguments_are_refused_before_any_task(rng):
    D = in_chunks(rng.standard_normal((20, 3)), (10, 10))
    for error, call in [
        (TypeError, lambda: quoin_dask.qr(np.ones((4, 2)))),
        (TypeError, lambda: quoin_dask.qr(D.astype(complex))),
        (TypeError, lambda: quoin_dask.lstsq(D, np.ones(20, complex))),
        (np.linalg.LinAlgError, lambda: quoin_dask.qr(D[0])),
        (np.linalg.LinAlgError, lambda: quoin_dask.lstsq(D, np.ones((20, 1, 1)))),
        (quoin.InvalidArgument, lambda: quoin_dask.qr(D, mode="complete")),
        (quoin.InvalidArgument, lambda: quoin_dask.qr(D, method="none")),
        (quoin.InvalidArgument, lambda: quoin_dask.qr(D, threads=0)),
        (quoin.InvalidArgument, lambda: quoin_dask.lstsq(D, np.ones(20), threads=0)),
        (quoin.InvalidArgument, lambda: quoin_dask.qr(D, fan_in=1)),
        (quoin.InvalidArgument, lambda: quoin_dask.lstsq(D, np.ones(20), fan_in=1)),
        (quoin.InvalidArgument, lambda: quoin_dask.lstsq(D, np.ones(20), rcond=2)),
        (quoin.InvalidArgument, lambda: quoin_dask.lstsq(D, np.ones(21))),
    ]:
        with pytest.raises(error):
            call()


def test_the_bits_do_not_depend_on_scheduler_or_workers(rng):
    distributed = pytest.importorskip("distributed")
    A = rng.standard_normal((600, 8))

    def results():
        D = in_chunks(A, (50,) * 12)
        return [*quoin_dask.qr(D, fan_in=2), *quoin_dask.svd(D, fan_in=3), quoin_dask.lstsq(D, A[:, 0] + 1).x]

    alone = da.compute(*results(), scheduler="sync")
    assert all(map(np.array_equal, alone, da.compute(*results(), scheduler="threads")))
    for workers in (2, 3):
        with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
            with distributed.Client(cluster) as client:
                there = [future.result() for future in client.compute(results())]
        assert all(map(np.array_equal, alone, there))


def test_docstrings():
    result = doctest.testmod(quoin_dask)
    assert result.attempted > 10 and result.failed == 0
