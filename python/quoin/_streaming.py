"""QR of a matrix that arrives in blocks of rows."""

from __future__ import annotations

import threading
from typing import Any

from ._arguments import gpu_number, shown, solver, threads_number
from ._arrays import (
    _FLOAT32,
    ON_HOST,
    Place,
    columns,
    exactly_2d,
    located_for,
    require_one_place,
    to_float,
)
from ._errors import InvalidArgument
from ._pickles import Pickled
from ._results import LstsqResult, solution
from ._types import Deficient


class _Stream(Pickled):
    """A stream of blocks. The first block fixes its type and place; a lock lets threads take turns."""

    _device: Any = None

    def __init__(self, threads: int | None = None, device: Any = None):
        self._threads = threads_number(threads)
        self._device = None if device is None else str(device)
        if device is not None:
            gpu_number(device)
        self._lock = threading.Lock()
        self._stream: Any = None
        self._dtype: Any = None
        self._place: Place = ON_HOST

    def _located(self, rows: Any) -> tuple[Any, Place]:
        return located_for(self._device, rows, type(self).__name__)

    def _operands(self, saved: list[Any]) -> tuple[list[Any], Any, Place]:
        """Returns the state `saved` by `_save` as the extension module takes it, one of its arrays, and their place."""
        arguments = []
        for item in saved:
            if hasattr(item, "__dlpack__"):
                array, place = self._located(item)
                item = place.operand(array)
            arguments.append(item)
        return arguments, array, place

    def _block(self, rows: Any) -> tuple[Any, Place]:
        name = f"{type(self).__name__}.partial_fit"
        block, place = self._located(rows)
        block = exactly_2d(to_float(block, name))
        if self._stream is None:
            return block, place
        require_one_place(name, self._place, place)
        return block.astype(self._dtype, copy=False), place

    _kind: str  # the name of the extension module's classes
    _restored = ("_stream", "_dtype", "_place")

    def _new(self, like: Any, place: Place, *arguments: Any) -> Any:
        kind = getattr(place.core, self._kind + ("32" if like.dtype == _FLOAT32 else "64"))
        return kind(*arguments, place.where(self._threads))

    def _begin(self, block: Any, place: Place, *sizes: int) -> Any:
        """Returns the stream, or a new one for blocks like `block`.

        `_began` keeps a new one once it has taken the block.
        """
        if self._stream is not None:
            return self._stream
        return self._new(block, place, block.shape[1], *sizes)

    def _began(self, stream: Any, block: Any, place: Place) -> None:
        if self._stream is None:
            self._stream, self._dtype, self._place = stream, block.dtype, place

    def _save(self) -> Any:
        if self._stream is None:
            return None
        state = self._stream.state(self._place.where(self._threads))
        return [self._place.give_back(item) if hasattr(item, "__dlpack__") else item for item in state]

    def _restore(self, saved: Any) -> None:
        self._stream, self._dtype, self._place = None, None, ON_HOST
        if saved is not None:
            arguments, array, place = self._operands(saved)
            self._began(self._new(array, place, *arguments), array, place)

    def _fitted(self) -> Any:
        if self._stream is None:
            raise InvalidArgument(f"{type(self).__name__}: no rows yet; call partial_fit first")
        return self._stream

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return 0 if self._stream is None else self._stream.rows

    @property
    def R(self) -> Any:
        """R of all rows so far, shape (min(n_rows, N), N)."""
        with self._lock:
            R = self._fitted().r(self._place.where(self._threads))
            return self._place.give_back(R)


class StreamingR(_Stream):
    """R of a matrix whose rows arrive block by block, and its least squares, in memory of order N².

    Parts of the rows may be streamed separately and the objects merged. Objects can be copied and pickled, in N²
    numbers. A copy continues with the same bits.

    `threads` is as for `qr`. Work is done where the first block lies. With device='cuda' (or 'cuda:1') blocks and
    results lie in host memory; a block is copied to the GPU while the GPU works on the block before it.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((1000, 6))
    >>> stream = quoin.StreamingR()
    >>> for i in range(0, 1000, 100):
    ...     stream = stream.partial_fit(A[i : i + 100], A[i : i + 100] @ np.ones(6))
    >>> stream.R.shape, stream.solve().x.round(12)
    ((6, 6), array([1., 1., 1., 1., 1., 1.]))

    Map and reduce, here over threads; processes can exchange the objects, too (docs/python.md):

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from functools import reduce
    >>> with ThreadPoolExecutor() as pool:
    ...     parts = list(pool.map(lambda rows: quoin.StreamingR().partial_fit(rows), np.split(A, 4)))
    >>> merged = reduce(quoin.StreamingR.merge, parts)
    >>> merged.n_rows, bool(np.allclose(merged.R.T @ merged.R, A.T @ A))
    (1000, True)
    """

    _kind = "StreamingR"

    def __init__(self, threads: int | None = None, device: Any = None):
        super().__init__(threads, device)
        self._b_ndim = 1

    def partial_fit(self, rows: Any, b: Any = None) -> StreamingR:
        """Append rows (H, N), and right-hand sides b (H,) or (H, P) if the first block had any."""
        with self._lock:
            block, place = self._block(rows)
            if b is not None:
                b, place_of_b = self._located(b)
                require_one_place("StreamingR.partial_fit", place, place_of_b)
                b = to_float(b, "StreamingR.partial_fit").astype(block.dtype, copy=False)
            B = block[:, :0] if b is None else columns(b)
            stream = self._begin(block, place, B.shape[1])
            stream.append(place.operand(block), place.operand(B), place.where(self._threads))
            if self._stream is None and b is not None:
                self._b_ndim = b.ndim
            self._began(stream, block, place)
        return self

    def merge(self, other: StreamingR) -> StreamingR:
        """Append all rows and right-hand sides that `other` was given, in 4(N + P)³ flops. `other` is not changed.

        R and the solution belong to all rows, to rounding, in any order of merging. The same order gives the same bits;
        another order changes R by rounding errors and by the signs of its rows. Merging an object without rows changes
        nothing. Merging into an object without rows makes it a copy of `other`.

        Raises
        ------
        TypeError
            If `other` is not a StreamingR, or lies in another memory.
        InvalidArgument
            If `other` has another dtype, or another number of columns or right-hand sides.
        """
        if not isinstance(other, StreamingR):
            raise TypeError(f"StreamingR.merge takes a StreamingR, and was given {shown(other)}")
        with other._lock:  # never hold both locks at once
            saved, b_ndim = other._save(), other._b_ndim
        with self._lock:
            if self._stream is None:
                self._restore(saved)
                self._b_ndim = b_ndim
            elif saved is not None:
                arguments, array, place = self._operands(saved)
                require_one_place("StreamingR.merge", self._place, place)
                if self._dtype != array.dtype:
                    raise InvalidArgument(f"StreamingR.merge: one stream is {self._dtype}, the other {array.dtype}")
                self._stream.merge(*arguments, self._place.where(self._threads))
        return self

    def solve(self, rcond: float | None = None, deficient: Deficient = "solve") -> LstsqResult:
        """The minimiser of ‖A x − b‖₂ over all rows so far.

        rcond, deficient and the result are as for `quoin.lstsq`.
        """
        options = solver(rcond, deficient)
        with self._lock:
            result = self._fitted().solve(options, self._place.where(self._threads))
            return solution(result, self.n_rows, self._b_ndim, self._place)


class StreamingQR(_Stream):
    """R and the thin Q of a matrix larger than memory.

    Give its blocks in order to `partial_fit`, then in reverse order to `q_rows`. Objects can be copied and pickled in
    either pass, in up to 2N² numbers for each block, and a copy continues with the same bits. `threads` and `device`
    are as for `StreamingR`.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((300, 4))
    >>> blocks = [A[:100], A[100:200], A[200:]]
    >>> stream = quoin.StreamingQR()
    >>> for block in blocks:
    ...     stream = stream.partial_fit(block)
    >>> Q = np.vstack([stream.q_rows(block) for block in reversed(blocks)][::-1])
    >>> bool(np.allclose(Q @ stream.R, A))
    True
    """

    _kind = "StreamingQR"

    def partial_fit(self, rows: Any) -> StreamingQR:
        """Append rows (H, N)."""
        with self._lock:
            block, place = self._block(rows)
            stream = self._begin(block, place)
            stream.append(place.operand(block), place.where(self._threads))
            self._began(stream, block, place)
        return self

    def q_rows(self, rows: Any) -> Any:
        """The rows of Q for `rows`, which must be the last block appended, then the one before it, and so on."""
        with self._lock:
            stream = self._fitted()
            block, place = self._block(rows)
            return place.give_back(stream.q_rows(place.operand(block), place.where(self._threads)))
