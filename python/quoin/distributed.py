"""QR of a matrix whose rows are spread over processes: all of them call the same function, each with its own rows.

With mpi4py, started as `mpiexec -n 4 python script.py`:

>>> from mpi4py import MPI                                      # doctest: +SKIP
>>> Q, R = quoin.distributed.qr(A_local, MPI.COMM_WORLD)        # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, overload

from . import _core
from ._arguments import flag, one_of, threads_number
from ._arrays import exactly_2d, on_host, to_float
from ._errors import InvalidArgument
from ._functions import QRResult

__all__ = ["Engine", "qr"]

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
    comm : mpi4py.MPI.Comm or Engine
        The ranks: a communicator of mpi4py, or any object that is an `Engine`.
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
    Q : ndarray, (h, k)
        This rank's rows of Q, k = min(m, n) of all m rows.
    R : ndarray, (k, n)
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
    engine = _Mpi4py(comm) if hasattr(comm, "Get_rank") else comm
    ranks = engine, engine.rank, engine.size
    try:
        try:
            with_q = one_of("mode", mode, "reduced", "r") == "reduced"
            rows = to_float(exactly_2d(on_host(a, "distributed.qr")[0]), "distributed.qr")
            choices = method, threads_number(threads), flag("check_finite", check_finite)
        except Exception as refusal:
            # the other ranks have begun, and must not wait
            try:
                _core.fail_distributed(*ranks, str(refusal))
            except InvalidArgument:
                raise refusal from None
        Q, R, _ = _core.distributed_qr(rows, *ranks, with_q, *choices)
    finally:
        if engine is not comm:
            engine.close()
    return QRResult(Q, R) if with_q else R
