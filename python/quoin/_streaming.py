"""QR of a matrix that comes in blocks of rows."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ._arrays import _FLOAT32, ON_HOST, Place, exactly_2d, located, require_one_place, threads_number, to_float
from ._errors import InvalidArgument
from ._functions import LstsqResult, _solution


class _Stream:
    """The type and the place of the first block are those of the stream; a lock lets threads take turns."""

    def __init__(self, threads: int | None = None):
        self._threads = threads_number(threads)
        self._lock = threading.Lock()
        self._stream: Any = None
        self._dtype: Any = None
        self._place: Place = ON_HOST

    def _block(self, rows: Any) -> tuple[Any, Place]:
        name = f"{type(self).__name__}.partial_fit"
        block, place = located(rows)
        block = exactly_2d(to_float(block, name))
        if self._stream is None:
            return block, place
        require_one_place(name, self._place, place)
        return block.astype(self._dtype, copy=False), place

    def _begin(self, block: Any, place: Place, kind: str, *sizes: int) -> Any:
        """The stream, or a new one for blocks like this; `_began` keeps it, once it has taken the block."""
        if self._stream is not None:
            return self._stream
        new = getattr(place.core, kind + ("32" if block.dtype == _FLOAT32 else "64"))
        return new(block.shape[1], *sizes, place.where(self._threads))

    def _began(self, stream: Any, block: Any, place: Place) -> None:
        if self._stream is None:
            self._stream, self._dtype, self._place = stream, block.dtype, place

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

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((1000, 6))
    >>> stream = quoin.StreamingR()
    >>> for i in range(0, 1000, 100):
    ...     stream = stream.partial_fit(A[i : i + 100], A[i : i + 100] @ np.ones(6))
    >>> stream.R.shape, stream.solve().x.round(12)
    ((6, 6), array([1., 1., 1., 1., 1., 1.]))
    """

    def __init__(self, threads: int | None = None):
        super().__init__(threads)
        self._b_ndim = 1

    def partial_fit(self, rows: Any, b: Any = None) -> StreamingR:
        """Append rows (H, N), and right-hand sides b (H,) or (H, P) if the first block had any."""
        with self._lock:
            block, place = self._block(rows)
            if b is not None:
                b, place_of_b = located(b)
                require_one_place("StreamingR.partial_fit", place, place_of_b)
                b = to_float(b, "StreamingR.partial_fit").astype(block.dtype, copy=False)
            if b is None:
                B = block[:, :0]
            else:
                B = b[:, None] if b.ndim == 1 else exactly_2d(b)
            stream = self._begin(block, place, "StreamingR", B.shape[1])
            stream.append(place.operand(block), place.operand(B), place.where(self._threads))
            if self._stream is None and b is not None:
                self._b_ndim = b.ndim
            self._began(stream, block, place)
        return self

    def solve(self, rcond: float | None = None) -> LstsqResult:
        """The minimiser of ‖A x − b‖₂ over all rows so far; as `quoin.lstsq`."""
        with self._lock:
            result = self._fitted().solve(-1.0 if rcond is None else rcond, self._place.where(self._threads))
            return _solution(result, self._b_ndim, self._place)


class StreamingQR(_Stream):
    """R and the thin Q of a matrix larger than memory: blocks forward with `partial_fit`, then backward with `q_rows`.

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

    def partial_fit(self, rows: Any) -> StreamingQR:
        """Append rows (H, N)."""
        with self._lock:
            block, place = self._block(rows)
            stream = self._begin(block, place, "StreamingQR")
            stream.append(place.operand(block), place.where(self._threads))
            self._began(stream, block, place)
        return self

    def q_rows(self, rows: Any) -> Any:
        """The rows of Q that belong to the last block appended, then to the one before it, and so on."""
        with self._lock:
            stream = self._fitted()
            block, place = self._block(rows)
            return place.give_back(stream.q_rows(place.operand(block), place.where(self._threads)))
