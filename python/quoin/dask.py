"""QR, least squares and the SVD of Dask arrays in chunks of rows, by TSQR. Its tree is a graph of tasks.

    upward      A_i = Q_i R_i,    [R_1; …; R_f] = [G_1; …; G_f] R    for f = fan_in of them at a time, until one R is left
    downward    E = I at the root,    E_j = G_j E,    rows i of Q = Q_i E_i

after Demmel, Grigori, Hoemmen and Langou (2012). No task gets more than `fan_in` triangles. All results are lazy. Their
bits depend on the chunks and on `fan_in`, but not on the scheduler or the number of workers. Chunks may be CuPy's.

>>> import dask.array as da, quoin.dask
>>> A = da.random.default_rng(0).standard_normal((10000, 8), chunks=(1000, 8))
>>> Q, R = quoin.dask.qr(A)
>>> Q.chunks == A.chunks, bool(da.linalg.norm(A - Q @ R) < 1e-13 * da.linalg.norm(A))
(True, True)
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, Literal

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from . import _functions
from ._arguments import flag, integer, one_of, rcond_number, shown, threads_number
from ._arrays import to_float
from ._errors import InvalidArgument, NonFiniteEntry
from ._results import LstsqResult, QRResult, SVDResult
from ._types import Method
from ._streaming import StreamingR

__all__ = ["lstsq", "qr", "svd"]

def qr(
    a: Any,
    mode: Literal["reduced", "r"] = "reduced",
    method: Method = "auto",
    threads: int | None = 1,
    check_finite: bool = True,
    fan_in: int = 4,
) -> Any:
    """The thin Q and R of a Dask array.

    Parameters
    ----------
    a : dask.array.Array, shape (M, N)
        Chunks may have any number of rows, known or not, also fewer than N. Chunks of columns are joined, so that one
        worker needs three times the memory of a chunk with all columns.
    mode : 'reduced' or 'r'
        'r' returns R alone, and keeps nothing else of a chunk.
    method, check_finite
        For each chunk, as in `quoin.qr`.
    threads : int, optional
        Number of threads of each task; with None all cores. Dask runs several tasks at the same time.
    fan_in : int
        Number of triangles that one task combines, at least 2.

    Returns
    -------
    QRResult, or R
        Q (M, K) in the chunks of A's rows and R (K, N), K = min(M, N). ‖I − QᵀQ‖ and ‖A − QR‖/‖A‖ are at most as for
        `quoin.qr` times the number of levels of the tree. Q and R take 4MN² flops, R alone half of them. Each task
        sends N² numbers up the tree and N² down.

    Raises
    ------
    TypeError, InvalidArgument, LinAlgError
        At once, for wrong arguments. The tasks check the entries of A. `NonFiniteEntry.row` is a row of A, or a row of
        its chunk if the sizes of chunks are unknown.
    """
    with_q = one_of("mode", mode, "reduced", "r") == "reduced"
    tree = _Tree("dask.qr", a, method, threads, check_finite, fan_in, with_q)
    Q = tree.q() if with_q else None
    R = tree.array(tree.root, (tree.smaller, tree.columns))
    return QRResult(Q, R) if with_q else R


def svd(
    a: Any,
    compute_uv: bool = True,
    method: Method = "auto",
    threads: int | None = 1,
    check_finite: bool = True,
    fan_in: int = 4,
) -> Any:
    """The thin singular value decomposition A = U diag(S) Vh of a Dask array.

    It is computed from R = W diag(S) Vh. U = QW is formed in the same way as Q, with E = W at the root.

    Parameters
    ----------
    compute_uv : bool
        With False only the singular values are returned.
    a, method, threads, check_finite, fan_in
        As in `qr`.

    Returns
    -------
    SVDResult, or S
        U (M, K) in the chunks of A's rows, S (K,) descending, Vh (K, N), K = min(M, N).

    Examples
    --------
    >>> import dask.array as da, quoin.dask
    >>> A = da.random.default_rng(0).standard_normal((5000, 6), chunks=(1000, 6))
    >>> U, S, Vh = quoin.dask.svd(A)
    >>> bool(da.linalg.norm(A - (U * S) @ Vh) < 1e-13 * da.linalg.norm(A))
    True
    """
    with_q = flag("compute_uv", compute_uv)
    tree = _Tree("dask.svd", a, method, threads, check_finite, fan_in, with_q)
    k = tree.smaller
    if not with_q:
        return tree.array(tree.tasks.add(_functions.svd, tree.root, False), (k,))
    W, S, Vh = tree.tasks.parts(tree.tasks.add(_functions.svd, tree.root), 3)
    return SVDResult(tree.q(W), tree.array(S, (k,)), tree.array(Vh, (k, tree.columns)))


def lstsq(
    a: Any, b: Any, rcond: float | None = None, threads: int | None = 1, fan_in: int = 4
) -> LstsqResult:
    """Full-rank least squares of Dask arrays: the minimiser of ‖A x − b‖₂, from R of [A b].

    No task keeps more than R of a chunk. A matrix of deficient rank raises `quoin.RankDeficient`.

    Parameters
    ----------
    a : dask.array.Array, shape (M, N), M >= N
        Chunks as for `qr`.
    b : dask.array.Array or array_like, shape (M,) or (M, P)
        It is divided into the same chunks of rows as A.
    rcond
        As in `quoin.lstsq`.
    threads, fan_in
        As in `qr`.

    Returns
    -------
    LstsqResult
        As from `quoin.lstsq`, with lazy arrays and without a report. The singular values are computed only if `s` is.

    Examples
    --------
    >>> import dask.array as da, numpy as np, quoin.dask
    >>> A = da.random.default_rng(0).standard_normal((5000, 3), chunks=(1000, 3))
    >>> quoin.dask.lstsq(A, A @ np.ones(3)).x.compute().round(12)
    array([1., 1., 1.])
    """
    rcond_number(rcond), threads_number(threads)  # refuse wrong values
    a, dtype = _in_rows("dask.lstsq", a)
    b = b if isinstance(b, da.Array) else da.asarray(b)
    if b.ndim not in (1, 2):
        raise np.linalg.LinAlgError(f"b has {b.ndim} dimensions. It must have one or two")
    dtype = np.promote_types(dtype, _computed_type("dask.lstsq", b))
    joined = {1: -1} if b.ndim == 2 else {}
    if _rows_known(a) and _rows_known(b):
        if a.shape[0] != b.shape[0]:
            raise InvalidArgument(f"dask.lstsq: A has {a.shape[0]} rows, and b {b.shape[0]}")
        joined[0] = a.chunks[0]
    b = b.rechunk(joined)
    if a.numblocks[0] != b.numblocks[0]:
        raise InvalidArgument(
            f"dask.lstsq: A has {a.numblocks[0]} chunks of rows, b {b.numblocks[0]}, and their sizes are unknown"
        )
    tasks = _Tasks("dask.lstsq", [a, b], dtype, rcond, threads, fan_in)
    leaves = zip(_blocks(a), _blocks(b), _first_rows(a))
    streams = [tasks.add(_streamed, *leaf, dtype, threads) for leaf in leaves]
    root = _levels(streams, fan_in, lambda group: tasks.add(_merged, group, threads))[-1][0]
    x, residual_norms, condition = tasks.parts(tasks.add(_solved, root, rcond), 3)
    S = tasks.add(_functions.svd, tasks.add(getattr, root, "R"), False)
    like, n = a._meta.astype(dtype), a.shape[1]
    norms, s = tasks.array(residual_norms, b.shape[1:], like), tasks.array(S, (n,), like)
    return LstsqResult(
        tasks.array(x, (n, *b.shape[1:]), like),
        norms,
        tasks.array(condition, (), np.empty((), np.float64)),
        None,
        [],
        residuals=lambda: (norms.reshape(-1) ** 2)[: 0 if a.shape[0] == n else None],
        rank=lambda: n,
        s=lambda: s,
    )


# ---- the graph of tasks ----------------------------------------------------------------------------------------------


class _Tasks:
    """The tasks of one call. Their keys depend only on its arguments.

    They are kept in one dictionary, since a dask.delayed for each would take ten times as long.
    """

    def __init__(self, function: str, inputs: list[Any], *arguments: Any):
        self._inputs = inputs
        self._token = tokenize(function, [a.name for a in inputs], *arguments)
        self._tasks: dict[Any, Any] = {}
        self._arrays = 0

    def add(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Adds the task function(*arguments) and returns its key.

        Keys among the arguments, also in lists, stand for their values.
        """
        key = (f"{function.__name__}-{self._token}", len(self._tasks))
        self._tasks[key] = (function, *arguments)
        return key

    def parts(self, key: Any, count: int) -> list[Any]:
        """Adds `count` tasks for key[0], key[1], … and returns their keys."""
        return [self.add(operator.getitem, key, i) for i in range(count)]

    def array(self, keys: Any, shape: tuple[float, ...], meta: Any, rows: Any = None) -> Any:
        """Returns the Dask array of `shape` whose chunks are computed under `keys`.

        Without `rows`, `keys` is the key of its one chunk. With `rows`, `keys` are the keys of chunks with these
        numbers of rows. All tasks have been added when the first array is made.
        """
        self._arrays += 1
        name = f"quoin-{self._arrays}-{self._token}"
        chunks = tuple((size,) for size in shape) if rows is None else (rows, (shape[1],))
        blocks = [keys] if rows is None else keys
        places = [(name, i, *[0] * (len(shape) - 1))[: len(shape) + 1] for i in range(len(blocks))]
        graph = HighLevelGraph.from_collections(name, dict(zip(places, blocks)), dependencies=[self])
        return da.Array(graph, name, chunks, meta=meta)

    def __dask_graph__(self) -> HighLevelGraph:
        return HighLevelGraph.from_collections(self.__dask_layers__()[0], self._tasks, dependencies=self._inputs)

    def __dask_layers__(self) -> tuple[str]:
        return (f"quoin-{self._token}",)


class _Tree:
    """The tasks on the way up the tree.

    A node is (Q_i, R_i) of a chunk, or ([G_1, …, G_f], R) of the nodes below it. Without Q it is (None, R).
    """

    def __init__(
        self, function: str, a: Any, method: str, threads: int | None, check_finite: bool, fan_in: int, with_q: bool
    ):
        self._a, dtype = _in_rows(function, a)
        self._meta = self._a._meta.astype(dtype)
        _functions.plan(1, 1, method=method, threads=threads)  # refuses wrong values
        options = (method, threads, flag("check_finite", check_finite), with_q)
        self.tasks = _Tasks(function, [self._a], *options, fan_in)
        leaves = [self._node(_factored, *leaf, *options) for leaf in zip(_blocks(self._a), _first_rows(self._a))]
        self._levels = _levels(leaves, fan_in, lambda group: self._node(_combined, [R for _, R in group], threads, with_q))
        self._fan_in = fan_in
        self.root = self._levels[-1][0][1]
        self.columns = self._a.shape[1]
        self.smaller = min(self._a.shape) if _rows_known(self._a) else math.nan

    def _node(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Adds a node and returns the keys of Q and R, or of the factors G and R."""
        return self.tasks.parts(self.tasks.add(function, *arguments), 2)

    def array(self, key: Any, shape: tuple[float, ...]) -> Any:
        return self.tasks.array(key, shape, self._meta)

    def q(self, W: Any = None) -> Any:
        """Returns Q, or QW if W is given."""
        factors = [W]
        for below, level in reversed(list(itertools.pairwise(self._levels))):
            parents = [divmod(j, self._fan_in) for j in range(len(below))]
            factors = [
                self._times(self.tasks.add(operator.getitem, level[parent][0], child), factors[parent])
                for parent, child in parents
            ]
        blocks = [self._times(Q, E) for (Q, _), E in zip(self._levels[0], factors)]
        # not da.concatenate, which drops chunks without rows
        return self.tasks.array(blocks, (self._a.shape[0], self.smaller), self._meta, self._a.chunks[0])

    def _times(self, Q: Any, E: Any) -> Any:
        return Q if E is None else self.tasks.add(operator.matmul, Q, E)


def _levels(leaves: list[Any], fan_in: int, combine: Callable[[list[Any]], Any]) -> list[list[Any]]:
    """Returns the levels from the leaves up to the root. Every node combines up to `fan_in` nodes below it."""
    integer("fan_in", fan_in, 2)
    levels = [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([combine(below[i : i + fan_in]) for i in range(0, len(below), fan_in)])
    return levels


def _in_rows(function: str, a: Any) -> tuple[Any, Any]:
    """Returns `a` with all columns in each chunk, and the type of the computation."""
    if not isinstance(a, da.Array):
        raise TypeError(f"quoin.{function} takes a dask.array.Array, and was given {shown(a)}")
    if a.ndim != 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if math.isnan(a.shape[1]):
        raise InvalidArgument(f"quoin.{function}: the number of columns is unknown; call compute_chunk_sizes() first")
    return a.rechunk({1: -1}) if a.numblocks[1] != 1 else a, _computed_type(function, a)


def _computed_type(function: str, a: Any) -> Any:
    return to_float(np.empty(0, a.dtype), function).dtype


def _rows_known(a: Any) -> bool:
    return not math.isnan(a.shape[0])


def _blocks(a: Any) -> list[Any]:
    """Returns the keys of the chunks of rows."""
    return [(a.name, i, *[0] * (a.ndim - 1)) for i in range(a.numblocks[0])]


def _first_rows(a: Any) -> list[int]:
    """Returns the first row of each chunk, or −1 if it is unknown."""
    return [0, *itertools.accumulate(a.chunks[0])][:-1] if _rows_known(a) else [-1] * a.numblocks[0]


# ---- the tasks -------------------------------------------------------------------------------------------------------


def _of_chunk(first: int, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except NonFiniteEntry as error:
        if first < 0:
            raise
        row, col = first + error.row, error.col
        whole = NonFiniteEntry(
            f"{error.matrix} holds NaN or Inf; in its chunk from row {first} on the first is at row {row}, column {col} (zero-based)"
        )
        whole.row, whole.col, whole.matrix = row, col, error.matrix
        raise whole from None


def _factored(
    A: Any, first: int, method: str, threads: int | None, check_finite: bool, with_q: bool
) -> tuple[Any, Any]:
    options: dict[str, Any] = {"method": method, "threads": threads, "check_finite": check_finite}
    if with_q:
        return tuple(_of_chunk(first, lambda: _functions.qr(A, **options)))
    return None, _of_chunk(first, lambda: _functions.qr(A, mode="r", **options))


def _combined(triangles: list[Any], threads: int | None, with_q: bool) -> tuple[Any, Any]:
    stack = np.concatenate(triangles)
    if not with_q:
        return None, _functions.qr(stack, mode="r", threads=threads, check_finite=False)
    G, R = _functions.qr(stack, threads=threads, check_finite=False)
    return np.split(G, list(itertools.accumulate(len(R) for R in triangles))[:-1]), R


def _streamed(A: Any, b: Any, first: int, dtype: Any, threads: int | None) -> StreamingR:
    return _of_chunk(first, lambda: StreamingR(threads).partial_fit(A.astype(dtype, copy=False), b.astype(dtype, copy=False)))


def _solved(stream: StreamingR, rcond: float | None) -> tuple[Any, Any, Any]:
    solution = stream.solve(rcond, deficient="error")
    return solution.x, solution.residual_norms, solution.condition


def _merged(streams: list[StreamingR], threads: int | None) -> StreamingR:
    return functools.reduce(StreamingR.merge, streams, StreamingR(threads))
