"""QR, least squares and the SVD of a matrix whose rows are spread over processes: all of them call the same function, each with
its own rows.

With mpi4py, started as `mpiexec -n 4 python script.py`, or with torch.distributed, started by torchrun:

>>> from mpi4py import MPI                                      # doctest: +SKIP
>>> Q, R = quoin.distributed.qr(A_local, MPI.COMM_WORLD)        # doctest: +SKIP
>>> Q, R = quoin.distributed.qr(A_local, torch.distributed.group.WORLD)  # doctest: +SKIP
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal, Protocol, overload

import numpy as np

from . import _core
from ._arguments import flag, one_of, rcond_number, threads_number
from ._arrays import OnHost, columns, exactly_2d, on_host, to_float
from ._errors import InvalidArgument
from ._functions import LstsqResult, QRResult, SVDResult

__all__ = ["Engine", "lstsq", "qr", "svd"]

_LARGEST_MESSAGE = 1 << 30


class Engine(Protocol):
    """What carries messages between ranks, for those who have no MPI: threads, sockets, a queue."""

    rank: int
    size: int

    def send(self, data: memoryview, to: int, note: int) -> None:
        """Sends the bytes and the note to rank `to`; returns when the bytes may be changed. With a note other than 0 there are none."""

    def receive(self, data: memoryview, source: int) -> int:
        """Fills `data` with what rank `source` has sent, unless that is a note, and returns the note."""


class _Mpi4py:
    """Messages of mpi4py, on a duplicate of the caller's communicator. A note is the tag."""

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = comm.Dup()
        self._comm.Set_errhandler(MPI.ERRORS_RETURN)  # as exceptions of mpi4py
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()

    def close(self) -> None:
        self._comm.Free()

    def send(self, data: memoryview, to: int, note: int) -> None:
        for begin in range(0, max(len(data), 1), _LARGEST_MESSAGE):
            self._comm.Send([data[begin : begin + _LARGEST_MESSAGE], self._mpi.BYTE], to, note)

    def receive(self, data: memoryview, source: int) -> int:
        status = self._mpi.Status()
        for begin in range(0, max(len(data), 1), _LARGEST_MESSAGE):
            part = data[begin : begin + _LARGEST_MESSAGE]
            self._comm.Recv([part, self._mpi.BYTE], source, self._mpi.ANY_TAG, status)
            if status.Get_tag() != 0:
                return status.Get_tag()
            if status.Get_count(self._mpi.BYTE) != len(part):
                raise ValueError(f"rank {source} sends {status.Get_count(self._mpi.BYTE)} bytes, and {len(part)} are expected")
        return 0


class _Torch:
    """Messages of a process group of torch.distributed, in the memory that its backend carries. A message is its note, then its data."""

    def __init__(self, group: Any) -> None:
        import torch

        self._torch, self._group = torch, group
        self.rank, self.size = torch.distributed.get_rank(group), torch.distributed.get_world_size(group)
        self._device = "cuda" if torch.distributed.get_backend(group) == "nccl" else "cpu"

    def close(self) -> None:
        pass

    def _global(self, rank: int) -> int:
        return self._torch.distributed.get_global_rank(self._group, rank)

    def send(self, data: memoryview, to: int, note: int) -> None:
        torch, to = self._torch, self._global(to)
        head = torch.tensor([note, len(data)], dtype=torch.int64, device=self._device)
        torch.distributed.send(head, to, self._group)
        if note == 0 and len(data) > 0:
            # a copy: PyTorch takes no memory that it must not write
            torch.distributed.send(torch.from_numpy(np.frombuffer(data, np.uint8).copy()).to(self._device), to, self._group)

    def receive(self, data: memoryview, source: int) -> int:
        torch, origin = self._torch, self._global(source)
        head = torch.empty(2, dtype=torch.int64, device=self._device)
        torch.distributed.recv(head, origin, self._group)
        note, size = head.tolist()
        if note != 0 or size == 0 == len(data):
            return note
        part = torch.empty(size, dtype=torch.uint8, device=self._device)
        torch.distributed.recv(part, origin, self._group)
        if size != len(data):
            raise ValueError(f"rank {source} sends {size} bytes, and {len(data)} are expected")
        data[:] = memoryview(part.cpu().numpy())
        return 0


def _engine_of(comm: Any) -> Any:
    if hasattr(comm, "Get_rank"):
        return _Mpi4py(comm)
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and isinstance(comm, torch.distributed.ProcessGroup):
        return _Torch(comm)
    return comm


def _together(comm: Any, prepare: Callable[[], tuple], call: Callable[..., Any]) -> Any:
    """call(*what `prepare` gives, engine, rank, size), or the same error on all ranks where `prepare` refuses on this one."""
    engine = _engine_of(comm)
    ranks = engine, engine.rank, engine.size
    try:
        try:
            prepared = prepare()
        except Exception as refusal:
            # the other ranks have begun, and must not wait
            try:
                _core.fail_distributed(*ranks, str(refusal))
            except InvalidArgument:
                raise refusal from None
        return call(*prepared, *ranks)
    finally:
        if engine is not comm:
            engine.close()


def _rows(a: Any, function: str) -> tuple[np.ndarray, OnHost]:
    rows, place = on_host(a, function)
    return to_float(exactly_2d(rows), function), place


@overload
def qr(
    a: Any,
    comm: Any,
    mode: Literal["reduced"] = "reduced",
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> QRResult: ...


@overload
def qr(
    a: Any, comm: Any, mode: Literal["r"], method: str = "auto", threads: int | None = None, check_finite: bool = True
) -> Any: ...


def qr(
    a: Any,
    comm: Any,
    mode: str = "reduced",
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> Any:
    """QR factorization A = QR of a tall matrix whose rows are spread over the ranks of `comm`.

    Every rank calls it, with the same arguments but for its rows. TSQR with the ranks as the top levels of its tree (Demmel,
    Grigori, Hoemmen and Langou 2012), or CholeskyQR2 with a certificate for all: ‖A − QR‖/‖A‖ and ‖I − QᵀQ‖ are of order n·u.

    Parameters
    ----------
    a : array_like, (h, n)
        This rank's rows, in the order of the ranks: any number, also none.
    comm : mpi4py.MPI.Comm, torch.distributed.ProcessGroup or Engine
        The ranks: a communicator of mpi4py, a process group of PyTorch (Gloo, MPI or NCCL), or any object that is an `Engine`.
    mode : {'reduced', 'r'}
        'reduced' gives Q and R, 'r' R alone.
    method : {'auto', 'tsqr', 'cholesky-qr2', 'shifted-cholesky-qr3'}
        As in `quoin.qr`.
    threads : int, optional
        Threads of this rank.
    check_finite : bool
        Whether NaN and Inf are an error.

    Returns
    -------
    Q : array, (h, k)
        This rank's rows of Q, k = min(m, n) of all m rows; of the library that `a` comes from, as is R.
    R : array, (k, n)
        On every rank, the same bits.

    Raises
    ------
    quoin.Error
        The same on every rank, whichever has caused it; the message names the rank.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> Q, R = quoin.distributed.qr(np.ones((5, 1)), Alone())
    >>> Q.shape, R.shape
    ((5, 1), (1, 1))
    """

    def prepare() -> tuple:
        with_q = one_of("mode", mode, "reduced", "r") == "reduced"
        choices = method, threads_number(threads), flag("check_finite", check_finite)
        return *_rows(a, "distributed.qr"), with_q, choices

    def call(rows: np.ndarray, place: OnHost, with_q: bool, choices: tuple, *ranks: Any) -> Any:
        Q, R, _ = _core.distributed_qr(rows, *ranks, with_q, *choices)
        return QRResult(place.give_back(Q), place.give_back(R)) if with_q else place.give_back(R)

    return _together(comm, prepare, call)


def lstsq(
    a: Any,
    b: Any,
    comm: Any,
    rcond: float | None = None,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> LstsqResult:
    """Full-rank least squares, min ‖A x − b‖₂, of a tall matrix whose rows are spread over the ranks of `comm`.

    Parameters
    ----------
    a, b : array_like, (h, n) and (h,) or (h, p)
        This rank's rows of A and of b.
    comm, method, threads, check_finite
        As for `qr`.
    rcond : float, optional
        As for `quoin.lstsq`.

    Returns
    -------
    LstsqResult
        x, the norms of the residuals over all rows, and the condition of R: the same on every rank, without a report.

    Raises
    ------
    quoin.Error
        The same on every rank; `quoin.RankDeficient` where R is numerically singular.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> t = np.arange(5.0)
    >>> quoin.distributed.lstsq(np.column_stack([t, np.ones(5)]), 2 * t + 1, Alone()).x.round(12)
    array([2., 1.])
    """

    def prepare() -> tuple:
        rows, place = _rows(a, "distributed.lstsq")
        of_b = to_float(on_host(b, "distributed.lstsq")[0], "distributed.lstsq")
        dtype = np.promote_types(rows.dtype, of_b.dtype)
        choices = rcond_number(rcond), method, threads_number(threads), flag("check_finite", check_finite)
        return rows.astype(dtype, copy=False), columns(of_b).astype(dtype, copy=False), place, of_b.ndim, choices

    def call(rows: np.ndarray, B: np.ndarray, place: OnHost, ndim: int, choices: tuple, *ranks: Any) -> LstsqResult:
        X, norms, condition = _core.distributed_lstsq(rows, B, *ranks, *choices)
        if ndim == 1:
            X, norms = X[:, 0], norms.reshape(())
        return LstsqResult(place.give_back(X), place.give_back(norms), condition, None)

    return _together(comm, prepare, call)


def svd(
    a: Any,
    comm: Any,
    compute_uv: bool = True,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> Any:
    """The thin singular value decomposition of a tall matrix whose rows are spread over the ranks of `comm`.

    Parameters
    ----------
    a, comm, method, threads, check_finite
        As for `qr`.
    compute_uv : bool
        With False the singular values alone.

    Returns
    -------
    SVDResult or array
        This rank's rows of U (h, n); S (n,) descending and Vh (n, n), the same on every rank.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> quoin.distributed.svd(np.diag([3.0, 2.0]), Alone(), compute_uv=False)
    array([3., 2.])
    """

    def prepare() -> tuple:
        choices = method, threads_number(threads), flag("check_finite", check_finite)
        return *_rows(a, "distributed.svd"), flag("compute_uv", compute_uv), choices

    def call(rows: np.ndarray, place: OnHost, vectors: bool, choices: tuple, *ranks: Any) -> Any:
        U, S, Vh = _core.distributed_svd(rows, *ranks, vectors, *choices)
        return SVDResult(*map(place.give_back, (U, S, Vh))) if vectors else place.give_back(S)

    return _together(comm, prepare, call)
