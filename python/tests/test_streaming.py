"""StreamingR and StreamingQR: merged, copied, pickled, with every option."""

import copy
import functools
import multiprocessing
import pickle
import threading

import numpy as np
import pytest
from laws import assert_orthonormal, assert_product, assert_upper, bound

import quoin

COPIES = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: pickle.loads(pickle.dumps(x, 2))]


def r_of(block):
    """The map of a map and reduce, where a pool's processes find it."""
    return quoin.StreamingR(threads=1).partial_fit(block[:, :-1], block[:, -1])


def assert_same(mine, theirs):
    assert mine.n_rows == theirs.n_rows
    assert np.array_equal(mine.R, theirs.R) and mine.R.dtype == theirs.R.dtype


# ---- merge ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["left to right", "right to left", "tree"])
def test_merged_streams_are_those_of_all_rows(rng, order, dtype):
    A, b = rng.standard_normal((300, 7)).astype(dtype), rng.standard_normal((300, 2)).astype(dtype)
    parts = [quoin.StreamingR().partial_fit(A[rows], b[rows])
             for rows in (slice(0, 100), slice(100, 103), slice(103, 103), slice(103, 200), slice(200, 300))]
    flops = sum(part.solve().report.flops for part in parts[3:])
    if order == "left to right":
        merged = functools.reduce(quoin.StreamingR.merge, parts)
    elif order == "right to left":
        merged = functools.reduce(quoin.StreamingR.merge, parts[::-1])
    else:
        merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]).merge(parts[4]))
    assert merged.n_rows == 300 and merged.R.dtype == dtype
    assert_upper(merged.R)
    R = np.linalg.qr(A.astype(np.float64), mode="r")
    scale = np.linalg.cond(R) * np.linalg.norm(R) * bound(A)
    assert np.linalg.norm(np.abs(merged.R) - np.abs(R)) <= 4 * scale
    solution = merged.solve()
    x, squares, _, _ = np.linalg.lstsq(A.astype(np.float64), b.astype(np.float64), rcond=None)
    assert np.abs(solution.x - x).max() <= 100 * bound(A)
    assert np.allclose(solution.residual_norms, np.sqrt(squares), rtol=100 * bound(A), atol=0)
    assert solution.report.flops > flops


def test_merge_leaves_the_other_and_is_the_same_bits_each_time(rng):
    A = rng.standard_normal((200, 5))
    one, other = quoin.StreamingR().partial_fit(A[:90]), quoin.StreamingR().partial_fit(A[90:])
    kept = other.R
    again = copy.copy(one).merge(other)
    assert one.merge(other) is one
    assert np.array_equal(other.R, kept) and other.n_rows == 110
    assert_same(one, again)
    one.partial_fit(A)
    assert np.array_equal(other.R, kept)


def test_merge_of_what_has_no_rows_and_of_itself(rng):
    A, b = rng.standard_normal((50, 4)), rng.standard_normal((50, 1))
    whole = quoin.StreamingR().partial_fit(A, b)
    R = whole.R
    assert quoin.StreamingR().merge(quoin.StreamingR()).n_rows == 0
    assert_same(whole.merge(quoin.StreamingR()), quoin.StreamingR().partial_fit(A, b))
    became = quoin.StreamingR().merge(whole)
    assert_same(became, whole)
    assert became.solve().x.shape == (4, 1)
    became.partial_fit(A, b)
    assert whole.n_rows == 50 and np.array_equal(whole.R, R)
    vector = quoin.StreamingR().partial_fit(A, b[:, 0])
    assert quoin.StreamingR().merge(vector).solve().x.shape == (4,)
    assert vector.merge(whole).solve().x.shape == (4,)
    # [A; A] has the factor √2 R
    whole.merge(whole)
    assert whole.n_rows == 100 and np.allclose(np.abs(whole.R), np.sqrt(2) * np.abs(R), rtol=0, atol=1e-13)


def test_what_cannot_be_merged(rng):
    A = rng.standard_normal((50, 4))
    stream = quoin.StreamingR().partial_fit(A)
    kept = stream.R
    for other, error, message in (
        (quoin.StreamingR().partial_fit(A[:, :3]), quoin.InvalidArgument, "one stream has 4 columns and 0 right-hand sides, the other 3 and 0"),
        (quoin.StreamingR().partial_fit(A, A[:, 0]), quoin.InvalidArgument, "4 columns and 0 right-hand sides, the other 4 and 1"),
        (quoin.StreamingR().partial_fit(A.astype(np.float32)), quoin.InvalidArgument, "one stream is float64, the other float32"),
        (quoin.StreamingQR().partial_fit(A), TypeError, "takes a StreamingR, and was given"),
        (A, TypeError, "takes a StreamingR, and was given"),
        (None, TypeError, "takes a StreamingR, and was given None"),
    ):
        with pytest.raises(error, match=message):
            stream.merge(other)
    assert np.array_equal(stream.R, kept) and stream.n_rows == 50


def test_streams_merge_each_other_at_once(rng):
    A = rng.standard_normal((40, 4))
    one, other = (quoin.StreamingR().partial_fit(A) for _ in range(2))
    threads = [threading.Thread(target=lambda a=a, b=b: [a.merge(b) for _ in range(5)]) for a, b in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


def test_map_and_reduce_over_processes(rng):
    Ab = rng.standard_normal((400, 6))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        merged = functools.reduce(quoin.StreamingR.merge, pool.map(r_of, np.split(Ab, 4)))
    assert_same(merged, functools.reduce(quoin.StreamingR.merge, map(r_of, np.split(Ab, 4))))
    assert np.allclose(merged.solve().x, np.linalg.lstsq(Ab[:, :-1], Ab[:, -1], rcond=None)[0], rtol=0, atol=1e-13)


# ---- copies and pickles ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", COPIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_copy_of_a_stream_of_r(rng, again, dtype):
    A, b = rng.standard_normal((60, 5)).astype(dtype), rng.standard_normal((60, 2)).astype(dtype)
    stream = quoin.StreamingR(threads=2)
    for rows in (slice(0, 0), slice(0, 3), slice(3, 30), slice(30, 60)):
        other = again(stream)
        assert other.n_rows == stream.n_rows
        other.partial_fit(A[rows], b[rows])
        assert stream.n_rows == rows.start
        stream.partial_fit(A[rows], b[rows])
        assert_same(other, stream)
    mine, theirs = again(stream).solve(), stream.solve()
    assert np.array_equal(mine.x, theirs.x) and np.array_equal(mine.residual_norms, theirs.residual_norms)
    assert mine.report == theirs.report
    with pytest.raises(quoin.InvalidArgument, match="no rows yet"):
        again(quoin.StreamingR()).R
    assert again(quoin.StreamingR().partial_fit(A, b[:, 0])).solve().x.shape == (5,)


@pytest.mark.parametrize("again", COPIES)
def test_a_copy_of_a_stream_of_q(rng, again):
    A = rng.standard_normal((90, 6))
    blocks = [A[:40], A[40:43], A[43:43], A[43:]]
    stream, copied = quoin.StreamingQR(), quoin.StreamingQR()
    for block in blocks:
        stream.partial_fit(block)
        copied = again(copied).partial_fit(block)
    rows, theirs = [], []
    for block in reversed(blocks):
        before = again(copied)
        theirs.append(stream.q_rows(block))
        rows.append(copied.q_rows(block))
        assert np.array_equal(before.q_rows(block), rows[-1])
        copied = again(copied)
        assert_same(copied, stream)
    assert all(np.array_equal(mine, other) for mine, other in zip(rows, theirs))
    Q = np.vstack(rows[::-1])
    assert_orthonormal(Q)
    assert_product(Q, copied.R, A)
    with pytest.raises(quoin.InvalidArgument, match="no block is left"):
        copied.q_rows(blocks[0])


def misaligned(array):
    memory = np.zeros(array.nbytes + 1, np.uint8)
    there = np.ndarray(array.shape, array.dtype, memory, offset=1, order="F" if array.flags.f_contiguous else "C")
    there[...] = array
    assert not there.flags.aligned
    return there


def test_what_is_unpickled_may_lie_at_any_address(rng):
    """As in a message; a build with sanitizers stops at a read of a misaligned number."""
    A, b = rng.standard_normal((50, 6)), rng.standard_normal(50)
    q_stream = quoin.StreamingQR()
    q_stream.partial_fit(A)
    basis = quoin.GramSchmidt(50)
    basis.append(A)
    for one in (quoin.StreamingR().partial_fit(A, b), q_stream, basis):
        state = one.__getstate__()
        state["saved"] = [misaligned(item) if isinstance(item, np.ndarray) and item.size else item for item in state["saved"]]
        other = type(one).__new__(type(one))
        other.__setstate__(state)
        assert np.array_equal(one.R, other.R)


def test_a_pickle_of_another_version_is_refused(rng):
    for thing in (quoin.StreamingR().partial_fit(np.eye(3)), quoin.StreamingQR(), quoin.GramSchmidt(3)):
        state = thing.__getstate__()
        assert state["version"] == 1
        with pytest.raises(quoin.InvalidArgument, match=f"{type(thing).__name__} is of version 2, and this quoin reads version 1"):
            thing.__setstate__({**state, "version": 2})


def test_a_damaged_pickle_is_an_error(rng):
    stream = quoin.StreamingR().partial_fit(np.eye(3))
    state = stream.__getstate__()
    state["saved"][1] = 2  # rows
    with pytest.raises(quoin.InvalidArgument, match="is not 3x3"):
        stream.__setstate__(state)


def test_subclasses_keep_their_attributes():
    stream = Named("wing").partial_fit(np.eye(3))
    for again in COPIES:
        assert again(stream).name == "wing" and again(stream).n_rows == 3


class Named(quoin.StreamingR):
    def __init__(self, name):
        super().__init__()
        self.name = name


@pytest.mark.parametrize("library", ["array_api_strict", "torch", "jax.numpy"])
def test_copies_are_of_the_callers_kind(rng, library):
    xp = pytest.importorskip(library)
    A = xp.from_dlpack(rng.standard_normal((20, 3)))
    for stream in (quoin.StreamingR().partial_fit(A), quoin.StreamingQR().partial_fit(A)):
        other = pickle.loads(pickle.dumps(stream))
        assert type(other.R) is type(A)
        # JAX copies what is not aligned to its default device, which may be a GPU
        on_host = np.asarray if library == "jax.numpy" else np.from_dlpack
        assert np.array_equal(on_host(other.R), on_host(stream.R))


# ---- options --------------------------------------------------------------------------------------------------------


def test_rcond_of_a_stream(rng):
    A = rng.standard_normal((30, 3)) @ np.array([[1, 1, 0], [0, 1e-4, 0], [0, 0, 1.0]])
    stream = quoin.StreamingR().partial_fit(A, A[:, 0])
    assert stream.solve(rcond=1e-6).x.shape == (3,)
    with pytest.raises(quoin.RankDeficient, match=r"<= rcond 1\.0e-02") as caught:
        stream.solve(rcond=1e-2, deficient="error")
    assert stream.solve(rcond=1e-2).rank == 2
    assert 1e-5 < caught.value.rcond < 1e-3


def test_the_stream_keeps_the_type_of_its_first_block(rng):
    A = rng.standard_normal((30, 3))
    stream = quoin.StreamingR().partial_fit(A[:10].astype(np.float32)).partial_fit(A[10:])
    assert stream.R.dtype == np.float32
    assert_same(stream, quoin.StreamingR().partial_fit(A[:10].astype(np.float32)).partial_fit(A[10:].astype(np.float32)))


def test_blocks_that_do_not_fit_are_named(rng):
    A, b = rng.standard_normal((6, 3)), np.ones(6)
    stream, bare, blocks = quoin.StreamingR().partial_fit(A, b), quoin.StreamingR().partial_fit(A), quoin.StreamingQR().partial_fit(A)
    for message, call in (
        ("StreamingR: the stream's blocks have 3 columns, and this one has 2", lambda: stream.partial_fit(A[:, :2], b)),
        ("StreamingR: the stream's blocks come with 1 right-hand sides, and this one with 0", lambda: stream.partial_fit(A)),
        ("StreamingR: the stream's blocks come with 0 right-hand sides, and this one with 1", lambda: bare.partial_fit(A, b)),
        ("StreamingR: the block has 6 rows, and its b has 4", lambda: stream.partial_fit(A, b[:4])),
        ("solve: this stream was given no right-hand sides", bare.solve),
        ("merge: one stream has 3 columns and 1 right-hand sides, the other 3 and 0", lambda: stream.merge(bare)),
        ("StreamingQR: the stream's blocks have 3 columns, and this one has 2", lambda: blocks.partial_fit(A[:, :2])),
    ):
        with pytest.raises(quoin.InvalidArgument) as caught:
            call()
        assert str(caught.value) == message
    assert stream.n_rows == bare.n_rows == blocks.n_rows == 6
    x, residuals, rank, s = stream.partial_fit(A, 2 * b).solve()
    theirs = np.linalg.lstsq(np.vstack([A, A]), np.r_[b, 2 * b], rcond=None)
    assert np.allclose(x, theirs[0]) and np.allclose(residuals, theirs[1]) and rank == 3 and np.allclose(s, theirs[3])
