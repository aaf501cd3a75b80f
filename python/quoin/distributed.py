"""QR, least squares, the SVD, Gram-Schmidt and streams of a matrix whose rows are spread over processes.

All processes call the same function, each with its own rows. With mpi4py, started as `mpiexec -n 4 python script.py`,
or with torch.distributed, started by torchrun:

>>> from mpi4py import MPI                                      # doctest: +SKIP
>>> Q, R = quoin.distributed.qr(A_local, MPI.COMM_WORLD)        # doctest: +SKIP
>>> Q, R = quoin.distributed.qr(A_local, torch.distributed.group.WORLD)  # doctest: +SKIP

A DTensor of PyTorch that is sharded by rows needs no communicator, and Q is sharded in the same way:

>>> A = distribute_tensor(a, init_device_mesh("cpu", (4,)), [Shard(0)])  # doctest: +SKIP
>>> Q, R = quoin.distributed.qr(A)                              # doctest: +SKIP

`qr`, `factor`, `lstsq` and `svd` take arrays on GPUs too, from PyTorch, CuPy or JAX, with one GPU for each rank. NCCL
connects the GPUs, and messages between the hosts use the communicator.
"""

from __future__ import annotations

import atexit
import copy
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Literal, Protocol, overload

import numpy as np

from . import _core, _libraries
from ._arguments import flag, float_type, function, integer, one_of, shown, solver, threads_number
from ._arrays import _FLOAT32, ON_HOST, OnHost, Place, exactly_2d, located, located_beside, require_one_place, to_float
from ._arrays import columns as _columns
from ._errors import CommunicationFailure, InvalidArgument
from ._factorization import KeptMatrix
from ._results import LstsqResult, QRResult, SVDResult, solution
from ._types import Deficient, Method
from ._streaming import StreamingR

__all__ = ["Engine", "Factorization", "GramSchmidt", "factor", "lstsq", "merge", "qr", "svd"]

_LARGEST_MESSAGE = 1 << 30


class Engine(Protocol):
    """A carrier of messages between ranks, for users without MPI: threads, sockets, a queue."""

    rank: int
    size: int

    def send(self, data: memoryview, to: int, note: int) -> None:
        """Sends the bytes `data` and `note` to rank `to`, and returns once `data` may change.

        `data` is empty if `note` is not 0.
        """

    def receive(self, data: memoryview, source: int) -> int:
        """Receives a message from rank `source` and returns its note.

        If that is 0, fills `data` with the message's data.
        """


class _Mpi4py:
    """Messages by mpi4py, on a duplicate of the caller's communicator. The tag is the note."""

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        if comm == MPI.COMM_NULL:
            raise InvalidArgument("quoin.distributed: comm is MPI.COMM_NULL, which has no ranks")
        if comm.Is_inter():
            raise InvalidArgument(
                "quoin.distributed: comm is an intercommunicator, of two groups; comm.Merge() gives a communicator of both"
            )
        self._mpi = MPI
        self._comm = comm.Dup()
        self._comm.Set_errhandler(MPI.ERRORS_RETURN)  # mpi4py raises them as exceptions
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


class _Mail:
    """Small messages between the ranks of an NCCL process group, sent through the group's store without a GPU.

    NCCL would hold a multiprocessor for as long as a rank waits. Some of Quoin's own kernels need all multiprocessors
    at once, and would in turn wait for that rank.
    """

    _of: weakref.WeakKeyDictionary[Any, _Mail] = weakref.WeakKeyDictionary()  # message numbers continue over calls

    def __init__(self, group: Any) -> None:
        from torch.distributed import PrefixStore, distributed_c10d

        # a group's own store has no public name
        if hasattr(distributed_c10d, "_get_process_group_store"):
            store = distributed_c10d._get_process_group_store(group)
        else:
            store = PrefixStore(group.group_name, distributed_c10d._get_default_store())
        if hasattr(store, "clone"):  # its own connection: PyTorch's threads could not use one that waits
            store = store.clone()
        self._store = PrefixStore("quoin", store)
        self._next: dict[tuple[int, int], int] = {}

    @classmethod
    def of(cls, group: Any) -> _Mail:
        if group not in cls._of:
            cls._of[group] = cls(group)
        return cls._of[group]

    def _key(self, source: int, to: int) -> str:
        number = self._next.get((source, to), 0)
        self._next[source, to] = number + 1
        return f"{source}-{to}-{number}"

    def send(self, message: bytes, source: int, to: int) -> None:
        self._store.set(self._key(source, to), message)

    def receive(self, source: int, to: int) -> bytes:
        key = self._key(source, to)
        message = self._store.get(key)
        self._store.delete_key(key)
        return message


class _Torch:
    """Messages by a process group of torch.distributed. A message has a note, the size of its data, and the data."""

    _smallest_of_nccl = 1 << 16  # smallest data, in bytes, that are worth a message between GPUs

    def __init__(self, group: Any) -> None:
        import torch

        self._torch, self._group = torch, group
        self.rank, self.size = torch.distributed.get_rank(group), torch.distributed.get_world_size(group)
        self._mail = _Mail.of(group) if torch.distributed.get_backend(group) == "nccl" else None
        self._device = torch.device("cpu")
        if self._mail:
            self._device = getattr(group, "bound_device_id", None) or torch.device("cuda", torch.cuda.current_device())

    def use_gpu(self, number: int) -> None:
        """Has NCCL's messages use the memory of GPU `number`, which holds the rank's array."""
        if self._mail:
            self._device = self._torch.device("cuda", number)

    def close(self) -> None:
        pass

    def _global(self, rank: int) -> int:
        return self._torch.distributed.get_global_rank(self._group, rank)

    def _in_mail(self, size: int) -> bool:
        return self._mail is not None and size < self._smallest_of_nccl

    def send(self, data: memoryview, to: int, note: int) -> None:
        torch, head, size = self._torch, np.array([note, len(data)], np.int64), 0 if note else len(data)
        if self._mail:
            self._mail.send(head.tobytes() + (bytes(data) if size and self._in_mail(size) else b""), self.rank, to)
        else:
            torch.distributed.send(torch.from_numpy(head), self._global(to), self._group)
        if size > 0 and not self._in_mail(size):
            # a copy, because PyTorch does not take read-only memory
            part = torch.from_numpy(np.frombuffer(data, np.uint8).copy()).to(self._device)
            torch.distributed.send(part, self._global(to), self._group)

    def receive(self, data: memoryview, source: int) -> int:
        torch, head, inside = self._torch, np.empty(2, np.int64), b""
        if self._mail:
            message = self._mail.receive(source, self.rank)
            head, inside = np.frombuffer(message[:16], np.int64), message[16:]
        else:
            torch.distributed.recv(torch.from_numpy(head), self._global(source), self._group)
        note, size = head.tolist()
        if note != 0 or size == 0 == len(data):
            return note
        part: Any = inside
        if size > 0 and not self._in_mail(size):
            there = torch.empty(size, dtype=torch.uint8, device=self._device)
            torch.distributed.recv(there, self._global(source), self._group)
            part = memoryview(there.cpu().numpy())
        if size != len(data):
            raise ValueError(f"rank {source} sends {size} bytes, and {len(data)} are expected")
        data[:] = part
        return 0


def _engine_of(comm: Any) -> Any:
    if hasattr(comm, "Get_rank"):
        return _Mpi4py(comm)
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and isinstance(comm, torch.distributed.ProcessGroup):
        return _Torch(comm)
    if not (hasattr(comm, "rank") and hasattr(comm, "size")):
        raise TypeError(
            "quoin.distributed: comm must be a communicator of mpi4py, a process group of torch.distributed or an Engine, "
            f"and is {shown(comm)}"
        )
    size = integer("comm.size", comm.size, 1)
    integer("comm.rank", comm.rank, 0, size - 1)
    if size > 1:
        function("comm.send", getattr(comm, "send", None))
        function("comm.receive", getattr(comm, "receive", None))
    return comm


_links: dict[tuple[int, int], Any] = {}  # connections of GPUs, by the communicator's id and the rank's GPU


if hasattr(_core, "cuda"):
    atexit.register(_core.cuda.wait_for_closing)


def _disconnect(key: tuple[int, int]) -> None:
    link = _links.pop(key, None)
    if link is not None:
        link.close()


def _keep(comm: Any, key: tuple[int, int], link: Any) -> bool:
    """Keeps `link` for as long as `comm` lives. Returns False if Python cannot report the end of `comm`."""
    if key not in _links:
        try:
            # not at the end of the process, when other ranks and the driver may be gone
            weakref.finalize(comm, _disconnect, key).atexit = False
        except TypeError:
            return False
    elif _links[key].number != link.number:
        _links[key].close()
    _links[key] = link
    return True


class _Ranks:
    """The ranks of one call."""

    def __init__(self, comm: Any) -> None:
        self._comm, self._engine = comm, _engine_of(comm)
        self.host = self._engine, self._engine.rank, self._engine.size
        self._key: tuple[int, int] | None = None
        self._brief: Any = None  # a link of this call alone

    def at(self, place: Place) -> tuple[Any, ...]:
        """Returns the ranks as the extension module takes them for arrays at `place`.

        All ranks connect their GPUs together.
        """
        if isinstance(place, OnHost) or self._engine.size == 1:
            return *self.host, None
        self._key = key = id(self._comm), place.device
        if isinstance(self._engine, _Torch):
            self._engine.use_gpu(place.device)
        link = place.core.connect(*self.host, place.device, _links.get(key), _libraries.nccl())
        if not _keep(self._comm, key, link):
            self._brief = link
        return *self.host, link

    def failed(self) -> None:
        """Drops the connection after a message has failed, so that the next call connects anew."""
        if self._key is not None:
            _disconnect(self._key)

    def close(self) -> None:
        if self._brief is not None:
            self._brief.close()
        if self._engine is not self._comm:
            self._engine.close()


def _together(comm: Any, prepare: Callable[[], tuple[Any, ...]], call: Callable[..., Any]) -> Any:
    """Returns call(place, *more, ranks), with (place, *more) from prepare().

    If `prepare` raises an exception on this rank, the call fails on all ranks with the same text.
    """
    ranks = _Ranks(comm)
    try:
        try:
            place, *prepared = prepare()
        except Exception as refusal:
            # the other ranks have begun, and must not wait for this one
            try:
                _core.fail_distributed(*ranks.host, str(refusal))
            except InvalidArgument:
                raise refusal from None
        return call(place, *prepared, ranks.at(place))
    except CommunicationFailure:
        ranks.failed()
        raise
    finally:
        ranks.close()


class _Arrays:
    """Arguments and results as plain arrays, which each rank has for itself."""

    def __init__(self, comm: Any, function: str) -> None:
        if comm is None:
            raise TypeError(f"quoin.{function} needs comm, the ranks, unless the matrix is a DTensor")
        self.comm, self._function = comm, function

    def local(self, a: Any) -> Any:
        if _is_dtensor(a):
            raise TypeError(f"quoin.{self._function}: either all arrays are DTensors, or none is")
        return a

    same = local

    def sharded(self, rows: Any) -> Any:
        return rows

    replicated = sharded


class _DTensors:
    """Arguments and results as DTensors of PyTorch whose rows are sharded over a one-dimensional mesh."""

    def __init__(self, a: Any, comm: Any, function: str) -> None:
        if comm is not None:
            raise TypeError(f"quoin.{function}: a DTensor has its ranks with it; leave comm out")
        self._mesh, self._rows, self._function = a.device_mesh, a.shape[0], function
        self.local(a)
        self.comm = self._mesh.get_group()

    def local(self, a: Any) -> Any:
        from torch.distributed.tensor import Shard

        return self._local(a, Shard(0), "sharded by rows", "Shard(0)")

    def same(self, a: Any) -> Any:
        """Returns the local tensor of `a`, which must be replicated on every rank."""
        from torch.distributed.tensor import Replicate

        return self._local(a, Replicate(), "replicated", "Replicate()")

    def _local(self, a: Any, placement: Any, kind: str, name: str) -> Any:
        if not _is_dtensor(a):
            raise TypeError(f"quoin.{self._function}: either all arrays are DTensors, or none is")
        if a.device_mesh.ndim != 1 or a.placements != (placement,):
            raise InvalidArgument(
                f"quoin.{self._function} takes a DTensor {kind} over a one-dimensional mesh, and this one has placements "
                f"{a.placements} on a mesh of {a.device_mesh.ndim} dimensions; on such a mesh "
                f"redistribute(placements=[{name}]) gives it"
            )
        if a.device_mesh != self._mesh:
            raise InvalidArgument(f"quoin.{self._function}: the DTensors are on different meshes")
        return a.to_local()

    def _from_local(self, local: Any, placement: Any, **shape: Any) -> Any:
        from torch.distributed.tensor import DTensor

        return DTensor.from_local(local, self._mesh, [placement], run_check=False, **shape)

    def sharded(self, rows: Any) -> Any:
        from torch.distributed.tensor import Shard

        shape, stride = (self._rows, *rows.shape[1:]), (1, max(1, self._rows))
        return self._from_local(rows, Shard(0), shape=shape, stride=stride[: rows.ndim])

    def replicated(self, array: Any) -> Any:
        from torch.distributed.tensor import Replicate

        return self._from_local(array, Replicate())


def _is_dtensor(a: Any) -> bool:
    tensors = sys.modules.get("torch.distributed.tensor")
    return tensors is not None and isinstance(a, tensors.DTensor)


def _spread(a: Any, comm: Any, function: str) -> _Arrays | _DTensors:
    return _DTensors(a, comm, function) if _is_dtensor(a) else _Arrays(comm, function)


def _rows(a: Any, function: str) -> tuple[Any, Place]:
    rows, place = located(a)
    return to_float(exactly_2d(rows), function), place


def _options(method: str, q: str, check_finite: bool) -> Any:
    """Returns the extension module's options.

    They are made in `prepare`, so that all ranks learn of an error in them.
    """
    return _core.options_over_ranks(method, q, flag("check_finite", check_finite))


@overload
def qr(
    a: Any,
    comm: Any = None,
    mode: Literal["reduced"] = "reduced",
    method: Method = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> QRResult: ...


@overload
def qr(
    a: Any,
    comm: Any = None,
    *,
    mode: Literal["r"],
    method: Method = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> Any: ...


@overload
def qr(
    a: Any, comm: Any, mode: Literal["r"], method: Method = "auto", threads: int | None = None, check_finite: bool = True
) -> Any: ...


def qr(
    a: Any,
    comm: Any = None,
    mode: str = "reduced",
    method: Method = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> Any:
    """QR factorization A = QR of a tall matrix whose rows are spread over the ranks of `comm`.

    Every rank calls it, with its own rows and otherwise the same arguments. The method is TSQR with the ranks as the
    top levels of its tree (Demmel, Grigori, Hoemmen and Langou 2012), or CholeskyQR2 with one certificate for all
    ranks. ‖A − QR‖/‖A‖ and ‖I − QᵀQ‖ are of order n·u.

    Parameters
    ----------
    a : array_like, (h, n), or torch.distributed.tensor.DTensor, (m, n)
        This rank's rows, in the order of the ranks; their number may be 0. All ranks' rows lie on the host, or on GPUs
        with one GPU for each rank. A DTensor is the matrix of all ranks, sharded by rows (placement Shard(0) on a
        one-dimensional mesh).
    comm : mpi4py.MPI.Comm, torch.distributed.ProcessGroup or Engine
        The ranks: a communicator of mpi4py, a process group of PyTorch (Gloo, MPI or NCCL), or any object that is an
        `Engine`. Leave it out for a DTensor, whose mesh has the ranks.
    mode : {'reduced', 'r'}
        'reduced' gives Q and R, 'r' R alone.
    method : {'auto', 'tsqr', 'cholesky-qr2', 'randomized-cholesky-qr'}
        As in `quoin.qr`.
    threads : int, optional
        Number of threads of this rank, on the host.
    check_finite : bool
        Whether NaN and Inf are an error.

    Returns
    -------
    Q : array, (h, k)
        This rank's rows of Q, k = min(m, n) for the m rows of all ranks. Q and R are arrays of the library of `a`. For
        a DTensor, Q is a DTensor (m, k) with the same placement.
    R : array, (k, n)
        R with the same bits on every rank. For a DTensor, R is a replicated DTensor.

    Raises
    ------
    quoin.Error
        The same error on every rank; the message names the rank that has caused it.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> Q, R = quoin.distributed.qr(np.ones((5, 1)), Alone())
    >>> Q.shape, R.shape
    ((5, 1), (1, 1))
    """

    def prepare() -> tuple[Any, ...]:
        with_q = one_of("mode", mode, "reduced", "r") == "reduced"
        rows, place = _rows(spread.local(a), "distributed.qr")
        options = _options(method, "explicit" if with_q else "none", check_finite)
        return place, place.operand(rows), options, place.where(threads_number(threads))

    def call(place: Place, *arguments: Any) -> Any:
        Q, R = place.core.distributed_qr(*arguments)
        R = spread.replicated(place.give_back(R))
        return R if Q is None else QRResult(spread.sharded(place.give_back(Q)), R)

    spread = _spread(a, comm, "distributed.qr")
    return _together(spread.comm, prepare, call)


class Factorization(KeptMatrix):
    """A = QR of a matrix whose rows are spread over ranks, with Q held implicitly; made by `factor`.

    All ranks call `q`, `apply_thin` and `lstsq` together. Its other members are local, and send no messages. `shape`
    and `plan` describe the matrix of all ranks. `report` is the same on every rank, except for `seconds`.
    """

    _name, _instead = "distributed.Factorization", "Q and R"

    def __init__(self, core: Any, place: Place, threads: int, spread: _Arrays | _DTensors, has_r: bool):
        super().__init__(core, place, threads)
        self._spread, self._has_r, self._lock = spread, has_r, threading.Lock()

    def _operand(self, array: Any, function: str) -> Any:
        """Returns a vector or matrix in the type of the factorization.

        Its place must be the place of the factorization.
        """
        return located_beside(self._place, array, f"distributed.Factorization.{function}", self._f.dtype)[0]

    def _together(self, prepare: Callable[[], tuple[Any, ...]], call: Callable[..., Any]) -> Any:
        with self._lock:
            return _together(self._spread.comm, lambda: (self._place, *prepare(), self._where()), lambda _, *arguments: call(*arguments))

    @property
    def R(self) -> Any:
        """R, shape (min(M, N), N), with the same bits on every rank; a new array at each call.

        It is None on the other ranks if `factor` gave R to rank 0 alone.
        """
        if not self._has_r:
            return None
        return self._spread.replicated(self._place.give_back(self._f.r(self._where())))

    def q(self) -> Any:
        """This rank's rows of the thin Q, (h, min(M, N)). Every rank calls it."""
        return self._spread.sharded(self._place.give_back(self._together(lambda: (), self._f.q)))

    def apply_thin(self, C: Any, trans: bool = False) -> Any:
        """Q₁C, or Q₁ᵀC with `trans`, for the thin Q₁, which is not formed. Every rank calls it.

        Parameters
        ----------
        C : array_like, or DTensor for the factorization of a DTensor
            With `trans`, this rank's rows of a matrix, (h, p) or (h,), or a DTensor sharded by rows. Otherwise (K, p)
            or (K,) with K = min(M, N), the same on every rank, or a replicated DTensor. It is converted to the type of
            the factorization, and not changed.
        trans : bool
            Whether to multiply by Q₁ᵀ.

        Returns
        -------
        array or DTensor
            With `trans`, (K, p) or (K,), the same on every rank. Otherwise this rank's rows, (h, p) or (h,).

        Examples
        --------
        >>> class Alone:
        ...     rank, size = 0, 1
        >>> A = np.arange(10.0).reshape(5, 2) ** 2
        >>> f = quoin.distributed.factor(A, Alone())
        >>> bool(np.allclose(f.apply_thin(f.R), A) and np.allclose(f.apply_thin(A, trans=True), f.R))
        True
        """
        spread = self._spread

        def prepare() -> tuple[Any, ...]:
            transposed = flag("trans", trans)
            array = self._operand(spread.local(C) if transposed else spread.same(C), "apply_thin")
            return array.ndim, self._place.operand(_columns(array)), transposed

        def call(ndim: int, C: Any, transposed: bool, *where: Any) -> Any:
            product = self._f.apply_thin(C, transposed, *where)
            product = self._place.give_back(product[:, 0] if ndim == 1 else product)
            return spread.replicated(product) if transposed else spread.sharded(product)

        return self._together(prepare, call)

    def lstsq(self, b: Any, rcond: float | None = None, deficient: Deficient = "solve") -> LstsqResult:
        """Minimise ‖A x − b‖₂ with this factorization (M >= N). Every rank calls it.

        b are this rank's rows; rcond, deficient and the result are as for `lstsq`. If `factor` gave R to rank 0 alone,
        `s` is None on the other ranks.
        """

        def prepare() -> tuple[Any, ...]:
            array = self._operand(self._spread.local(b), "lstsq")
            return array.ndim, self._place.operand(_columns(array)), solver(rcond, deficient)

        def call(ndim: int, *arguments: Any) -> LstsqResult:
            X, norms, condition, _, *others, _, _ = self._f.lstsq(*arguments)
            R = self._f.r(self._where()) if self._has_r else None
            return _solution(self._place, self._spread, self.shape[0], ndim, (X, norms, condition, R, *others))

        return self._together(prepare, call)


def factor(
    a: Any,
    comm: Any = None,
    method: Method = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    q: Literal["any", "explicit", "none"] = "any",
    r: Literal["all", "root"] = "all",
) -> Factorization:
    """Factor A = QR over ranks and keep Q as the method finds it.

    Q is kept as reflectors in the tree of ranks, or as the rows of Q on each rank.

    Parameters
    ----------
    a, comm, method, threads, check_finite
        As for `qr`.
    q : {'any', 'explicit', 'none'}
        How to keep Q: as the method finds it, on each rank its rows of the thin Q, or not at all.
    r : {'all', 'root'}
        The ranks that get R: all, or rank 0 alone.

    Returns
    -------
    Factorization
        It keeps `comm` for its calls. If `a` is a DTensor, its arrays are DTensors.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> f = quoin.distributed.factor(np.eye(5, 2), Alone())
    >>> f.shape, f.R.shape, f.q().shape, f.lstsq(np.ones(5)).x
    ((5, 2), (2, 2), (5, 2), array([1., 1.]))
    """

    def prepare() -> tuple[Any, ...]:
        on_all = one_of("r", r, "all", "root") == "all"
        rows, place = _rows(spread.local(a), "distributed.factor")
        return place, place.operand(rows), _options(method, q, check_finite), on_all, place.where(threads_number(threads))

    def call(place: Place, rows: Any, options: Any, on_all: bool, where: Any, ranks: tuple[Any, ...]) -> Factorization:
        core = place.core.distributed_factor(rows, options, on_all, where, ranks)
        return Factorization(core, place, threads_number(threads), spread, on_all or ranks[1] == 0)

    spread = _spread(a, comm, "distributed.factor")
    return _together(spread.comm, prepare, call)


def _solution(place: Place, spread: _Arrays | _DTensors, m: float, ndim: int, found: tuple[Any, ...]) -> LstsqResult:
    """Returns the result for m rows on all ranks and right-hand sides of `ndim` dimensions.

    s is None on a rank without R.
    """
    mine, R, everywhere = solution(found, m, ndim, place), found[3], spread.replicated
    return LstsqResult(
        everywhere(mine.x),
        everywhere(mine.residual_norms),
        mine.condition,
        None,
        mine.dependent,
        residuals=lambda: everywhere(mine.residuals),
        rank=lambda: mine.rank,
        s=lambda: None if R is None else everywhere(mine.s),
    )


def lstsq(
    a: Any,
    b: Any,
    comm: Any = None,
    rcond: float | None = None,
    method: Method = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    deficient: Deficient = "solve",
) -> LstsqResult:
    """Least squares of any rank, min ‖A x − b‖₂, of a tall matrix whose rows are spread over the ranks of `comm`.

    Parameters
    ----------
    a, b : array_like, (h, n) and (h,) or (h, p), or DTensor, (m, n) and (m,) or (m, p)
        This rank's rows of A and of b. DTensors are the matrices of all ranks, both sharded by rows.
    comm, method, threads, check_finite
        As for `qr`.
    rcond, deficient
        As for `quoin.lstsq`. One rank pivots R, so that messages are the same for a deficient A.

    Returns
    -------
    LstsqResult
        As from `quoin.lstsq` for the rows of all ranks, the same on every rank, without a report. For DTensors its
        arrays are replicated DTensors. `residuals` has shape (P,), or (1,), also for M = N.

    Raises
    ------
    quoin.Error
        The same error on every rank; `quoin.RankDeficient` with deficient='error' if the rank is not full.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> t = np.arange(5.0)
    >>> quoin.distributed.lstsq(np.column_stack([t, np.ones(5)]), 2 * t + 1, Alone()).x.round(12)
    array([2., 1.])
    """

    def prepare() -> tuple[Any, ...]:
        rows, place = _rows(spread.local(a), "distributed.lstsq")
        of_b, place_of_b = located(spread.local(b))
        require_one_place("distributed.lstsq", place, place_of_b)
        of_b = to_float(of_b, "distributed.lstsq")
        dtype = np.promote_types(rows.dtype, of_b.dtype)
        A, B = (place.operand(array.astype(dtype, copy=False)) for array in (rows, _columns(of_b)))
        choices = solver(rcond, deficient), _options(method, "any", check_finite), place.where(threads_number(threads))
        return place, of_b.ndim, A, B, *choices

    def call(place: Place, ndim: int, *arguments: Any) -> LstsqResult:
        # the number of rows of all ranks is not known here; there are at least as many rows as columns
        return _solution(place, spread, np.inf, ndim, place.core.distributed_lstsq(*arguments)[:-2])

    spread = _spread(a, comm, "distributed.lstsq")
    return _together(spread.comm, prepare, call)


def svd(
    a: Any,
    comm: Any = None,
    compute_uv: bool = True,
    method: Method = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> Any:
    """The thin singular value decomposition of a tall matrix whose rows are spread over the ranks of `comm`.

    Parameters
    ----------
    a, comm, method, threads, check_finite
        As for `qr`.
    compute_uv : bool
        With False only the singular values are returned.

    Returns
    -------
    SVDResult or array
        This rank's rows of U (h, n); S (n,) descending and Vh (n, n), the same on every rank. For a DTensor, U is a
        DTensor with the same placement, and S and Vh are replicated DTensors.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> quoin.distributed.svd(np.diag([3.0, 2.0]), Alone(), compute_uv=False)
    array([3., 2.])
    """

    def prepare() -> tuple[Any, ...]:
        rows, place = _rows(spread.local(a), "distributed.svd")
        vectors, options = flag("compute_uv", compute_uv), _options(method, "any", check_finite)
        return place, place.operand(rows), vectors, options, place.where(threads_number(threads))

    def call(place: Place, *arguments: Any) -> Any:
        U, S, Vh = place.core.distributed_svd(*arguments)
        S = spread.replicated(place.give_back(S))
        if U is None:
            return S
        return SVDResult(spread.sharded(place.give_back(U)), S, spread.replicated(place.give_back(Vh)))

    spread = _spread(a, comm, "distributed.svd")
    return _together(spread.comm, prepare, call)


def merge(stream: StreamingR, comm: Any) -> StreamingR:
    """One `StreamingR` of all rows and right-hand sides in the streams of the ranks of `comm`, the same on every rank.

    Parameters
    ----------
    stream : StreamingR
        This rank's stream, on the host. It must have been given a block, a block of no rows if the rank has none. It is
        not changed.
    comm
        As for `qr`.

    Returns
    -------
    StreamingR
        Its R has the same bits on every rank. The report of its `solve` describes this rank's rows.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> stream = quoin.StreamingR().partial_fit(np.eye(3))
    >>> quoin.distributed.merge(stream, Alone()).n_rows
    3
    """

    def prepare() -> tuple[Any, ...]:
        if not isinstance(stream, StreamingR):
            raise TypeError(f"quoin.distributed.merge takes a StreamingR, and was given {shown(stream)}")
        merged = copy.copy(stream)
        merged._fitted()
        state, _, place = merged._operands(merged._save())
        if isinstance(place, OnHost):  # also if a GPU computes: then the state lies on the host, too
            place = ON_HOST
        return place, merged, place.core.distributed_merge, *state, place.where(merged._threads)

    def call(place: Place, merged: StreamingR, merge: Any, *arguments: Any) -> StreamingR:
        n, rows, R, *report = merge(*arguments)
        merged._restore([n, rows, merged._place.give_back(R), *report])
        return merged

    return _together(comm, prepare, call)


class GramSchmidt:
    """A = QR whose columns are appended and whose rows are spread over ranks. Existing Q and R do not change.

    The method is classical Gram-Schmidt that always reorthogonalises. All ranks make an object together, and call
    `append` together, each with its own rows of the same columns. An error of one rank is raised on all ranks.

    Parameters
    ----------
    m : int
        Number of this rank's rows.
    comm, threads
        As for `qr`.
    dtype : float64 or float32
        The type of Q and R, to which columns are converted.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    >>> basis = quoin.distributed.GramSchmidt(5, Alone())
    >>> basis.append(np.ones(5))
    >>> basis.append(np.arange(5.0))
    >>> bool(np.allclose(basis.Q.T @ basis.Q, np.eye(2)))
    True
    """

    def __init__(self, m: int, comm: Any, dtype: Any = np.float64, threads: int | None = None):
        self._comm, self._lock = comm, threading.Lock()

        def prepare() -> tuple[Any, ...]:
            self._dtype, self._threads = float_type("dtype", dtype), threads_number(threads)
            self._begin(integer("m", m, 0), ON_HOST)
            return self._operands(np.empty((self.shape[0], 0), self._dtype), ON_HOST)

        # appends no columns, so that the ranks agree on the type
        _together(comm, prepare, self._append)

    def _begin(self, m: int, place: Place) -> None:
        kind = "DistributedGramSchmidt" + ("32" if self._dtype == _FLOAT32 else "64")
        self._basis = getattr(place.core, kind)(m, place.where(self._threads))
        self._place = place

    def _operands(self, A: Any, place: Place) -> tuple[Any, ...]:
        return place, place.operand(A), place.where(self._threads)

    def _append(self, _: Place, *arguments: Any) -> None:
        self._basis.append(*arguments)

    @property
    def shape(self) -> tuple[int, int]:
        """(M, K): the numbers of this rank's rows and of columns so far."""
        return self._basis.rows, self._basis.cols

    @property
    def Q(self) -> Any:
        """This rank's rows of Q, shape (M, K), a new array at each call."""
        with self._lock:
            return self._place.give_back(self._basis.q(self._place.where(self._threads)))

    @property
    def R(self) -> Any:
        """R, shape (K, K), the same bits on every rank, a new array at each call."""
        with self._lock:
            return self._place.give_back(self._basis.r(self._place.where(self._threads)))

    def append(self, columns: Any) -> None:
        """Append this rank's rows of `columns`, (M, P), or (M,) for one.

        After an exception, on all ranks, the state is unchanged.
        """

        def prepare() -> tuple[Any, ...]:
            name = "distributed.GramSchmidt.append"
            array, place = located(columns)
            A = _columns(to_float(array, name).astype(self._dtype, copy=False))
            m, k = self.shape
            if k == 0 and str(place) != str(self._place):
                self._begin(m, place)  # where the first columns lie
            require_one_place(name, self._place, place)
            return self._operands(A, place)

        with self._lock:
            _together(self._comm, prepare, self._append)
