"""QR of rows over ranks: threads with an engine of queues, and mpi4py under mpiexec."""

import os
import queue
import shutil
import subprocess
import sys
import threading

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
    """What `call(engine)` returns or raises on each rank."""
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
    singular = np.repeat(A[:, :1], 3, axis=1)
    for e in on_ranks(size, lambda ranks: quoin.distributed.lstsq(singular[rows[ranks.rank]], B[rows[ranks.rank]], ranks)):
        assert isinstance(e, quoin.RankDeficient)
    for e in on_ranks(size, lambda ranks: quoin.distributed.lstsq(A[rows[ranks.rank]], B[rows[ranks.rank]], ranks, rcond=0.9)):
        assert isinstance(e, quoin.RankDeficient)
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
@pytest.mark.parametrize("size", [1, 3])
def test_merged_streams_are_those_of_all_rows(rng, dtype, size):
    A, b = rng.standard_normal((90, 5)).astype(dtype), rng.standard_normal(90).astype(dtype)
    cuts = [40, 40][: size - 1]
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
@pytest.mark.parametrize("size", [1, 3])
def test_appended_columns_obey_the_law(rng, dtype, size):
    A = rng.standard_normal((90, 8)).astype(dtype)
    rows = np.split(A, [50, 50][: size - 1])

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
        return basis

    bases = on_ranks(size, append)
    Q, R = np.concatenate([basis.Q for basis in bases]), bases[0].R
    laws.assert_orthonormal(Q)
    laws.assert_product(Q, R, A)
    laws.assert_upper(R)
    assert R.dtype == Q.dtype == dtype and all(np.array_equal(basis.R, R) for basis in bases)


def test_the_ranks_are_an_argument(rng):
    for call in (quoin.distributed.qr, quoin.distributed.svd, lambda A: quoin.distributed.lstsq(A, A)):
        with pytest.raises(TypeError, match="needs comm"):
            call(rng.standard_normal((5, 2)))


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

    with pytest.raises(quoin.CommunicationFailure, match="the line is down"):
        quoin.distributed.qr(np.ones((3, 1)), Broken())


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
