"""QR of a matrix that comes in blocks of rows."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from . import _core
from ._arrays import _FLOAT32, exactly_2d, threads_number, to_float, to_numpy
from ._errors import InvalidArgument
from ._functions import LstsqResult, _solution


class _Stream:
    """The type of the first block is that of the stream; a lock lets threads take turns."""

    def __init__(self, threads: int | None = None):
        self._threads = threads_number(threads)
        self._lock = threading.Lock()
        self._stream: Any = None
        self._dtype: Any = None

    def _block(self, rows: Any) -> np.ndarray:
        block = exactly_2d(to_float(to_numpy(rows)[0], f"{type(self).__name__}.partial_fit"))
        return block if self._dtype is None else block.astype(self._dtype, copy=False)

    def _fitted(self) -> Any:
        if self._stream is None:
            raise InvalidArgument(f"{type(self).__name__}: no rows yet; call partial_fit first")
        return self._stream

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return 0 if self._stream is None else self._stream.rows

    @property
    def R(self) -> np.ndarray:
        """R of all rows so far, shape (min(n_rows, N), N)."""
        with self._lock:
            return self._fitted().r()


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
        self._b: Any = None

    def partial_fit(self, rows: Any, b: Any = None) -> StreamingR:
        """Append rows (H, N), and right-hand sides b (H,) or (H, P) if the first block had any."""
        with self._lock:
            block = self._block(rows)
            if b is not None:
                b = to_float(to_numpy(b)[0], "StreamingR.partial_fit").astype(block.dtype, copy=False)
            if b is None:
                B = np.empty((block.shape[0], 0), block.dtype)
            else:
                B = b[:, None] if b.ndim == 1 else exactly_2d(b)
            stream = self._stream
            if stream is None:
                kind = _core.StreamingR32 if block.dtype == _FLOAT32 else _core.StreamingR64
                stream = kind(block.shape[1], B.shape[1])
            stream.append(block, B, self._threads)
            if self._stream is None:
                self._stream, self._dtype, self._b = stream, block.dtype, np.empty((0,) * (1 if b is None else b.ndim))
        return self

    def solve(self, rcond: float | None = None) -> LstsqResult:
        """The minimiser of ‖A x − b‖₂ over all rows so far; as `quoin.lstsq`."""
        with self._lock:
            result = self._fitted().solve(-1.0 if rcond is None else rcond)
            return _solution(result, self._b, lambda array: array)


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
            block = self._block(rows)
            stream = self._stream
            if stream is None:
                kind = _core.StreamingQR32 if block.dtype == _FLOAT32 else _core.StreamingQR64
                stream = kind(block.shape[1])
            stream.append(block, self._threads)
            self._stream, self._dtype = stream, block.dtype
        return self

    def q_rows(self, rows: Any) -> np.ndarray:
        """The rows of Q that belong to the last block appended, then to the one before it, and so on."""
        with self._lock:
            return self._fitted().q_rows(self._block(rows), self._threads)
