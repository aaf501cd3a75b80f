"""QR of rows over ranks: threads with an engine of queues, and mpi4py under mpiexec."""

import copy
import doctest
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import traceback
import types

import laws
import numpy as np
import pytest

import quoin
import quoin.distributed


class Queues:
    """An engine of one queue for each pair of ranks."""

    def __init__(self, rank, size, queues):
        self.rank, self.size, self.queues = rank, size, queues

    def send(self, data, to, note):
        self.queues[self.rank, to].put((bytes(data), note))

    def receive(self, data, source):
        sent, note = self.queues[source, self.rank].get(timeout=60)
        if note == 0:
            data[:] = sent
        return note


def on_ranks(size, call):
    """Returns what `call(engine)` returns or raises on each rank."""
    queues = {(i, j): queue.Queue() for i in range(size) for j in range(size)}
    results = [None] * size

    def run(rank):
        try:
            results[rank] = call(Queues(rank, size, queues))
        except Exception as e:
            results[rank] = e

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def raised(call):
    try:
        call()
    except Exception as e:
        return e


def expect_faults(size, bad, cases):
    """`cases(engine, whether this is rank `bad`)` are texts and calls. Each raises on all ranks what rank `bad` raises,
    whom it names."""
    found = on_ranks(size, lambda ranks: [(text, raised(call)) for text, call in cases(ranks, ranks.rank == bad)])
    assert all(isinstance(of_rank, list) for of_rank in found), found
    for of_case in zip(*found):
        own = str(of_case[bad][1])
        for text, e in of_case:
            assert isinstance(e, Exception) and not isinstance(e, quoin.CommunicationFailure), (text, e)
            assert text in str(e) and str(e) in (own, f"rank {bad}: {own}")
        assert any(f"rank {bad}" in str(e) for _, e in of_case)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("method", ["auto", "tsqr"])
def test_the_law(rng, dtype, size, method):
    A = rng.standard_normal((100, 7)).astype(dtype)
    cuts = np.sort(rng.integers(0, 101, size - 1))
    rows = np.split(A, cuts)
    results = on_ranks(size, lambda ranks: quoin.distributed.qr(rows[ranks.rank], ranks, method=method))
    Q, R = np.concatenate([f.Q for f in results]), results[0].R
    laws.assert_orthonormal(Q)
    laws.assert_product(Q, R, A)
    laws.assert_upper(R)
    assert all(np.array_equal(f.R, R) for f in results)
    alone = on_ranks(size, lambda ranks: quoin.distributed.qr(rows[ranks.rank], ranks, mode="r", method="tsqr"))
    np.testing.assert_allclose(np.abs(alone[0]), np.abs(R), rtol=0, atol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 3])
def test_least_squares_are_those_of_the_whole(rng, dtype, size):
    A, B = rng.standard_normal((90, 5)).astype(dtype), rng.standard_normal((90, 2)).astype(dtype)
    rows = np.array_split(np.arange(90), size)
    u = np.finfo(dtype).eps
    for b in (B, B[:, 0]):
        parts = on_ranks(size, lambda ranks: quoin.distributed.lstsq(A[rows[ranks.rank]], b[rows[ranks.rank]], ranks))
        x = np.linalg.lstsq(A.astype(float), b.astype(float), rcond=None)[0]
        for part in parts:
            assert part.x.shape == x.shape and part.x.dtype == dtype
            np.testing.assert_allclose(part.x, x, rtol=0, atol=500 * u)
            np.testing.assert_allclose(part.residual_norms, np.linalg.norm(A @ x - b, axis=0), rtol=500 * u)
            assert part.condition >= 1 and np.array_equal(part.x, parts[0].x)
    # what rcond and another rank's rows change
    singular = np.column_stack([A[:, :2], A[:, :1] + A[:, 1:2]])
    x, squares, rank, s = np.linalg.lstsq(singular.astype(float), B.astype(float), rcond=1e-5)
    assert rank == 2

    def solved(ranks):
        mine = singular[rows[ranks.rank]], B[rows[ranks.rank]]
        return quoin.distributed.lstsq(*mine, ranks), quoin.distributed.factor(mine[0], ranks).lstsq(mine[1])

    for part in [found for both in on_ranks(size, solved) for found in both]:
        assert part.rank == 2 and len(part.dependent) == 1
        np.testing.assert_allclose(part.x, x, rtol=0, atol=500 * u)
        np.testing.assert_allclose(part.residual_norms, np.linalg.norm(singular @ x - B, axis=0), rtol=500 * u)
        np.testing.assert_allclose(part.s, s, rtol=0, atol=500 * u * s[0])
    for matrix, options in ((singular, {}), (A, {"rcond": 0.9})):
        for call in (quoin.distributed.lstsq, lambda a, b, ranks, **options: quoin.distributed.factor(a, ranks).lstsq(b, **options)):
            refused = on_ranks(size, lambda ranks: call(matrix[rows[ranks.rank]], B[rows[ranks.rank]], ranks, deficient="error", **options))
            assert all(isinstance(e, quoin.RankDeficient) for e in refused)
    for e in on_ranks(size, lambda ranks: quoin.distributed.lstsq(A[rows[ranks.rank]], B[:7], ranks)):
        assert isinstance(e, quoin.InvalidArgument)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 3])
def test_the_svd_is_that_of_the_whole(rng, dtype, size):
    A = rng.standard_normal((90, 5)).astype(dtype)
    rows = np.array_split(np.arange(90), size)
    parts = on_ranks(size, lambda ranks: quoin.distributed.svd(A[rows[ranks.rank]], ranks))
    U, S, Vh = np.concatenate([part.U for part in parts]), parts[0].S, parts[0].Vh
    laws.assert_orthonormal(U)
    laws.assert_orthonormal(Vh.T)
    laws.assert_product(U * S, Vh, A)
    expected = np.linalg.svd(A.astype(float), compute_uv=False)
    np.testing.assert_allclose(S, expected, rtol=0, atol=100 * np.finfo(dtype).eps * expected[0])
    for values in on_ranks(size, lambda ranks: quoin.distributed.svd(A[rows[ranks.rank]], ranks, compute_uv=False)):
        np.testing.assert_allclose(values, expected, rtol=0, atol=100 * np.finfo(dtype).eps * expected[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_merged_streams_are_those_of_all_rows(rng, dtype, size):
    A, b = rng.standard_normal((90, 5)).astype(dtype), rng.standard_normal(90).astype(dtype)
    cuts = [40, 40, 90][: size - 1]
    parts = list(zip(np.split(A, cuts), np.split(b, cuts)))
    streams = [quoin.StreamingR().partial_fit(rows[:20], of_b[:20]).partial_fit(rows[20:], of_b[20:]) for rows, of_b in parts]
    before = [stream.n_rows for stream in streams]
    merged = on_ranks(size, lambda ranks: quoin.distributed.merge(streams[ranks.rank], ranks))
    R = merged[0].R
    laws.assert_upper(R)
    gram = laws.wide(A).T @ laws.wide(A)
    assert np.abs(laws.wide(R).T @ laws.wide(R) - gram).max() <= 2 * laws.bound(A) * np.linalg.norm(A.astype(float)) ** 2
    x = np.linalg.lstsq(A.astype(float), b.astype(float), rcond=None)[0]
    for stream in merged:
        assert stream.n_rows == 90 and np.array_equal(stream.R, R) and R.dtype == dtype
        assert stream.solve().x.shape == x.shape and np.abs(stream.solve().x - x).max() <= 100 * laws.bound(A)
    assert [stream.n_rows for stream in streams] == before
    # the stream of the whole goes on
    assert merged[0].partial_fit(A[:1], b[:1]).n_rows == 91
    for e in on_ranks(size, lambda ranks: quoin.distributed.merge(quoin.StreamingR(), ranks)):
        assert isinstance(e, quoin.InvalidArgument) and "no rows yet" in str(e)
    last = quoin.StreamingR().partial_fit(A[:, :3], b)
    for e in on_ranks(size, lambda ranks: quoin.distributed.merge(last if ranks.rank == 1 else streams[0], ranks)):
        assert size == 1 or isinstance(e, quoin.InvalidArgument)
    with pytest.raises(TypeError, match="takes a StreamingR"):
        quoin.distributed.merge(A, Queues(0, 1, {}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_appended_columns_obey_the_law(rng, dtype, size):
    A = rng.standard_normal((90, 8)).astype(dtype)
    rows = np.split(A, [50, 50, 90][: size - 1])

    def append(ranks):
        mine = rows[ranks.rank]
        basis = quoin.distributed.GramSchmidt(len(mine), ranks, dtype)
        basis.append(mine[:, 0])
        basis.append(mine[:, 1:])
        with pytest.raises(quoin.InvalidArgument):
            basis.append(np.ones((90, 90)))
        bad = mine[:, :1].copy()
        bad[:1] = np.nan if ranks.rank == 0 else 1
        with pytest.raises(quoin.NonFiniteEntry, match="rank 0"):
            basis.append(bad)
        assert basis.shape == (len(mine), 8)
        return basis

    bases = on_ranks(size, append)
    Q, R = np.concatenate([basis.Q for basis in bases]), bases[0].R
    laws.assert_orthonormal(Q)
    laws.assert_product(Q, R, A)
    laws.assert_upper(R)
    assert R.dtype == Q.dtype == dtype and all(np.array_equal(basis.R, R) for basis in bases)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("method, q", [("auto", "any"), ("tsqr", "any"), ("tsqr", "explicit"), ("cholesky-qr2", "any")])
def test_a_factorization_obeys_the_law(rng, dtype, size, method, q):
    A, B = rng.standard_normal((100, 7)).astype(dtype), rng.standard_normal((100, 2)).astype(dtype)
    cuts = np.sort(rng.integers(0, 101, size - 1))
    cuts[:1] = 0  # the first rank has no rows
    rows, of_b = np.split(A, cuts), np.split(B, cuts)
    W = np.asfortranarray(rng.standard_normal((7, 3)))  # float64 for either type

    def use(ranks):
        mine, b = rows[ranks.rank], of_b[ranks.rank]
        f = quoin.distributed.factor(mine, ranks, method=method, q=q)
        assert f.shape == (100, 7) and f.plan.rows == 100 and f.report.method in repr(f)
        assert np.array_equal(f.lstsq(b[:, 1]).x, f.lstsq(np.ascontiguousarray(b[:, 1:])).x[:, 0])
        of_R, vector = f.apply_thin(f.R), f.apply_thin(f.R[:, 0])
        assert vector.shape == (len(mine),) and np.abs(vector - of_R[:, 0]).max(initial=0) <= laws.bound(A) * np.linalg.norm(A)
        assert f.apply_thin(b[:, 0], trans=True).shape == (7,)
        again = quoin.distributed.lstsq(mine, b, ranks, method=method)
        for solution in (again, f.lstsq(b)):
            _, squares, rank, s = solution
            assert rank == f.shape[1] and np.array_equal(squares, solution.residual_norms**2)
            assert np.allclose(s, np.linalg.svd(f.R, compute_uv=False), rtol=1e-3 if s.dtype == np.float32 else 1e-11)
        return f, f.q(), of_R, f.apply_thin(mine, trans=True), f.apply_thin(W), f.lstsq(b), again

    results = on_ranks(size, use)
    fs, Qs, of_Rs, of_As, of_Ws, solutions, again = zip(*results)
    Q, R = np.concatenate(Qs), fs[0].R
    laws.assert_orthonormal(Q)
    laws.assert_product(Q, R, A)
    laws.assert_upper(R)
    assert R is not fs[0].R and all(np.array_equal(f.R, R) for f in fs)
    size_of_A, bound = np.linalg.norm(A.astype(float)), laws.bound(A)
    assert np.linalg.norm(laws.wide(np.concatenate(of_Rs)) - laws.wide(A)) <= bound * size_of_A
    for product in of_As:
        assert np.array_equal(product, of_As[0]) and np.linalg.norm(laws.wide(product) - laws.wide(R)) <= bound * size_of_A
    of_W = np.concatenate(of_Ws)
    assert of_W.dtype == Q.dtype == R.dtype == dtype
    assert np.linalg.norm(laws.wide(of_W) - laws.wide(Q) @ laws.wide(W)) <= bound * np.linalg.norm(W)
    for solution, other in zip(solutions, again):
        x = laws.wide(solution.x)
        residual = laws.wide(B) - laws.wide(A) @ x
        scale = size_of_A * np.linalg.norm(x) + np.linalg.norm(B)
        assert np.linalg.norm(laws.wide(A).T @ residual) <= bound * size_of_A * scale
        assert np.abs(solution.residual_norms - np.linalg.norm(residual, axis=0)).max() <= bound * scale
        assert np.array_equal(solution.x, solutions[0].x) and solution.report is None and solution.condition >= 1
        if q == "any":
            assert np.array_equal(solution.x, other.x) and solution.condition == other.condition


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_factorization_has_r_where_it_was_asked_for(rng, size):
    A = rng.standard_normal((4, 6))
    rows = np.split(A, [3, 3][: size - 1])

    def use(ranks):
        f = quoin.distributed.factor(rows[ranks.rank], ranks, r="root", q="explicit")
        of_r = quoin.distributed.factor(rows[ranks.rank], ranks, q="none")
        for call in (of_r.q, lambda: of_r.apply_thin(np.ones((4, 1))), lambda: of_r.lstsq(np.ones(len(rows[ranks.rank])))):
            with pytest.raises(quoin.InvalidArgument, match="asked for R alone"):
                call()
        with pytest.raises(quoin.InvalidArgument, match="at least as many rows as columns"):
            f.lstsq(np.ones(len(rows[ranks.rank])))
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            copy.copy(f)
        return f.q(), f.R, of_r.R

    Qs, Rs, of_r = zip(*on_ranks(size, use))
    laws.assert_orthonormal(np.concatenate(Qs))
    laws.assert_product(np.concatenate(Qs), Rs[0], A)
    assert all(R is None for R in Rs[1:]) and all(np.array_equal(R, of_r[0]) for R in of_r) and of_r[0].shape == (4, 6)


@pytest.mark.parametrize("function", ["qr", "factor", "lstsq", "svd"])
@pytest.mark.parametrize("size, bad", [(2, 0), (2, 1), (3, 2)])
def test_a_fault_of_one_rank_is_that_of_all(rng, function, size, bad):
    A = rng.standard_normal((10, 3))
    spoiled = A.copy()
    spoiled[4, 1] = np.nan

    def cases(ranks, is_bad):
        def of(rows=A, **options):
            rows, options = (rows, options) if is_bad else (A, {})
            more = (np.ones(len(rows), rows.dtype),) if function == "lstsq" else ()
            return lambda: getattr(quoin.distributed, function)(rows, *more, ranks, **options)

        yield "complex128", of(A.astype(complex))
        yield "two-dimensional", of(A[0])
        yield "the number of columns", of(A[:, :2])
        yield "the size of an element", of(A.astype(np.float32))
        yield "row 4, column 1", of(spoiled)
        yield "method must be", of(method="gram")
        yield "and is 3", of(method=3)
        yield "over ranks", of(method="mgs")
        yield "Options::method", of(method="cholesky-qr2")
        yield "check_finite must be", of(check_finite=1)
        yield "Options::check_finite", of(check_finite=False)
        yield "threads must be", of(threads=0)
        if function == "factor":
            yield "LAPACK's format", of(q="reflectors")
            yield "q must be", of(q="thin")
            yield "Options::q", of(q="none")
            yield "r must be", of(r="some")
            yield "which ranks get R", of(r="root")
        if function == "lstsq":
            yield "rcond must be", of(rcond=2)
            yield "rcond must be", of(rcond="1")
            yield "rcond (its bits)", of(rcond=0.5)

    expect_faults(size, bad, cases)


@pytest.mark.parametrize("size, bad", [(2, 0), (2, 1), (3, 2)])
def test_a_fault_of_one_rank_with_a_factorization(rng, size, bad):
    A, b = rng.standard_normal((10, 3)), rng.standard_normal(10)
    spoiled = np.where(np.arange(10) == 4, np.inf, b)

    def cases(ranks, is_bad):
        f = quoin.distributed.factor(A, ranks)
        R, Q = f.R, f.q()

        def of(good, other=None):
            return other if is_bad and other else good

        for other, text in ((R[:2], "C has 2 rows"), (R[:, :2], "the number of columns of C"), (R.astype(complex), "complex128"),
                            (R[None], "one-dimensional or two-dimensional")):
            yield text, of(lambda: f.apply_thin(R), lambda: f.apply_thin(other))
        yield "trans must be", of(lambda: f.apply_thin(R), lambda: f.apply_thin(R, "no"))
        yield "op is", of(lambda: f.apply_thin(R), lambda: f.apply_thin(A, trans=True))
        for other, text in ((b[:9], "B has 9 rows"), (A, "the number of columns of B"), (spoiled, "row 4, column 0"),
                            (b.astype(complex), "complex128")):
            yield text, of(lambda: f.lstsq(b), lambda: f.lstsq(other))
        for rcond, text in ((-0.5, "rcond must be"), (2, "rcond must be"), ("1", "rcond must be"), (0.5, "rcond (its bits)")):
            yield text, of(lambda: f.lstsq(b), lambda: f.lstsq(b, rcond))
        yield "form_q", of(lambda: f.lstsq(b), f.q)
        assert np.array_equal(f.q(), Q) and np.array_equal(f.R, R)

    expect_faults(size, bad, cases)


@pytest.mark.parametrize("size, bad", [(2, 0), (3, 2)])
def test_a_fault_of_one_rank_with_streams_and_columns(rng, size, bad):
    A = rng.standard_normal((10, 3))

    def cases(ranks, is_bad):
        def merged(stream, good=None):
            stream = stream if is_bad else good or quoin.StreamingR().partial_fit(A)
            return lambda: quoin.distributed.merge(stream, ranks)

        yield "takes a StreamingR", merged(A)
        yield "no rows yet", merged(quoin.StreamingR())
        yield "the number of columns", merged(quoin.StreamingR().partial_fit(A[:, :2]))
        yield "the number of right-hand sides", merged(quoin.StreamingR().partial_fit(A, A[:, 0]))
        yield "the size of an element", merged(quoin.StreamingR().partial_fit(A.astype(np.float32)))

        def basis(m=10, **options):
            m, options = (m, options) if is_bad else (10, {})
            return lambda: quoin.distributed.GramSchmidt(m, ranks, **options)

        yield "m must be", basis(-1)
        yield "m must be", basis(1.5)
        yield "dtype must be", basis(dtype=complex)
        yield "the size of an element", basis(dtype=np.float32)
        yield "threads must be", basis(threads=0)
        of = quoin.distributed.GramSchmidt(10, ranks)
        of.append(A[:, :1])
        for other, text in ((A[:9, 1:], "A has 9 rows"), (A[:, 1:2], "the number of columns of A"), (A.astype(complex), "complex128"),
                            (A[None], "one-dimensional or two-dimensional")):
            yield text, lambda: of.append(other if is_bad else A[:, 1:])
        assert of.shape == (10, 1)

    expect_faults(size, bad, cases)


def test_the_ranks_are_an_argument(rng):
    for call in (quoin.distributed.qr, quoin.distributed.factor, quoin.distributed.svd, lambda A: quoin.distributed.lstsq(A, A)):
        with pytest.raises(TypeError, match="needs comm"):
            call(rng.standard_normal((5, 2)))


def test_what_is_no_communicator_is_refused():
    def ranks(rank, size):
        return types.SimpleNamespace(rank=rank, size=size)

    for comm, error, text in [
        (5, TypeError, "comm must be a communicator of mpi4py, .* or an Engine, and is 5"),
        (object(), TypeError, "comm must be"),
        (ranks("a", 1), TypeError, "comm.rank must be an integer, and is 'a'"),
        (ranks(0, 0), quoin.InvalidArgument, "comm.size must be at least 1, and is 0"),
        (ranks(2, 2), quoin.InvalidArgument, "comm.rank must be at most 1, and is 2"),
        (ranks(-1, 2), quoin.InvalidArgument, "comm.rank must be at least 0, and is -1"),
        (ranks(0, 2), TypeError, "comm.send must be callable, and is None"),
    ]:
        for call in (
            lambda: quoin.distributed.qr(np.ones((3, 1)), comm),
            lambda: quoin.distributed.merge(quoin.StreamingR(), comm),
            lambda: quoin.distributed.GramSchmidt(3, comm),
        ):
            with pytest.raises(error, match=text):
                call()


def test_an_error_of_one_rank_is_raised_on_all(rng):
    A = rng.standard_normal((10, 3))
    bad = A.copy()
    bad[4, 1] = np.nan
    for e in on_ranks(3, lambda ranks: quoin.distributed.qr(bad if ranks.rank == 1 else A, ranks)):
        assert isinstance(e, quoin.NonFiniteEntry)
        assert "rank 1: the matrix" in str(e)
        assert (e.row, e.col) == (4, 1)
    for e in on_ranks(3, lambda ranks: quoin.distributed.qr(A[:, : 3 - (ranks.rank == 2)], ranks)):
        assert isinstance(e, quoin.InvalidArgument)
        assert "the number of columns" in str(e)
    # what this package refuses before the call: the rank's own exception, and its text on the others
    errors = on_ranks(3, lambda ranks: quoin.distributed.qr(A.astype(complex) if ranks.rank == 0 else A, ranks))
    assert isinstance(errors[0], TypeError)
    for e in errors[1:]:
        assert isinstance(e, quoin.InvalidArgument)
        assert str(e) == f"rank 0: {errors[0]}"


def test_an_engine_that_fails():
    class Broken:
        rank, size = 0, 2

        def send(self, data, to, note):
            raise OSError("the line is down")

        def receive(self, data, source):
            raise OSError("the line is down")

    with pytest.raises(quoin.CommunicationFailure) as caught:
        quoin.distributed.qr(np.ones((3, 1)), Broken())
    line = Broken.receive.__code__.co_firstlineno + 1
    assert str(caught.value) == f"receive from rank 1 raised OSError: the line is down ({__file__}, line {line})"
    assert len("".join(traceback.format_exception(caught.value)).splitlines()) < 15
    Broken.receive = lambda *_: None
    with pytest.raises(quoin.CommunicationFailure, match="receive from rank 1 must return the note, an integer, and returned None"):
        quoin.distributed.qr(np.ones((3, 1)), Broken())
    Broken.receive = lambda *_: signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        quoin.distributed.qr(np.ones((3, 1)), Broken())


def test_docstrings():
    result = doctest.testmod(quoin.distributed, extraglobs={"np": np, "quoin": quoin})
    assert result.attempted > 20 and result.failed == 0


SCRIPT = """
import numpy as np
from mpi4py import MPI
import quoin, quoin.distributed

comm = MPI.COMM_WORLD
A = np.random.default_rng(comm.rank).standard_normal((40 * comm.rank, 6))
Q, R = quoin.distributed.qr(A, comm)
gram = comm.allreduce(Q.T @ Q)
assert np.abs(gram - np.eye(6)).max() < 1e-13
assert A.shape[0] == 0 or np.abs(Q @ R - A).max() < 1e-13
f = quoin.distributed.factor(A, comm, method="tsqr")
assert np.abs(f.apply_thin(f.R) - A).max(initial=0) < 1e-13
x = np.arange(6.0)
assert np.abs(f.lstsq(A @ x).x - x).max() < 1e-13
try:
    f.apply_thin(np.ones((6 + (comm.rank == 1), 2)))
except quoin.InvalidArgument as e:
    assert str(e) == "rank 1: apply_thin_q: C has 7 rows instead of 6", e
else:
    raise AssertionError
basis = quoin.distributed.GramSchmidt(len(A), comm)
basis.append(A)
assert np.abs(comm.allreduce(basis.Q.T @ basis.Q) - np.eye(6)).max() < 1e-13
R = quoin.distributed.merge(quoin.StreamingR().partial_fit(A), comm).R
assert np.abs(np.abs(R) - np.abs(basis.R)).max() < 1e-13
half = comm.Split(comm.rank == 0, comm.rank)
others = half.Create_intercomm(0, comm, int(comm.rank == 0))
for wrong, text in (others, "comm is an intercommunicator"), (MPI.COMM_NULL, "comm is MPI.COMM_NULL"):
    try:
        quoin.distributed.qr(A, wrong)
    except quoin.InvalidArgument as e:
        assert text in str(e), e
    else:
        raise AssertionError
try:
    quoin.distributed.qr(np.full((9, 2), np.inf if comm.rank == comm.size - 1 else 1.0), comm)
except quoin.NonFiniteEntry as e:
    assert f"rank {comm.size - 1}" in str(e)
    print("passed")
"""


@pytest.mark.skipif(not shutil.which("mpiexec"), reason="no mpiexec")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="mpiexec does not run with a sanitizer's runtime in front of it")
@pytest.mark.parametrize("size", [2, 3])
def test_mpi4py(size):
    pytest.importorskip("mpi4py")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    command = ["mpiexec", "--oversubscribe", "-n", str(size), sys.executable, "-c", SCRIPT]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("passed") == size
