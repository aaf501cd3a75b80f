"""QR of a matrix whose columns are appended one after the other."""

from __future__ import annotations

import threading
from typing import Any, Literal

import numpy as np

from . import _core
from ._arguments import float_type, integer, threads_number
from ._arrays import _FLOAT32, columns, on_host, to_float
from ._pickles import Pickled


class GramSchmidt(Pickled):
    """A = QR whose columns are appended. Existing Q and R do not change, as Arnoldi's and other Krylov methods need.

    Parameters
    ----------
    m : int
        Number of rows.
    capacity : int
        Number of columns to allocate memory for at first; more is allocated when needed.
    method : {'auto', 'mgs', 'cgs'}
        'auto' is classical Gram-Schmidt that always reorthogonalises.
    reorthogonalize : {'off', 'selective', 'always'}
        With 'off', a column that depends on earlier ones raises NumericalBreakdown. Otherwise its R[j, j] is exactly 0,
        and Q stays orthonormal.
    panel_width : int
        Number of columns that are factored together; 0: Quoin chooses.
    dtype : float64 or float32
        The type of Q and R, to which columns are converted.
    threads : int, optional
        As for `qr`.

    Notes
    -----
    Objects can be copied and pickled, in MK + K² numbers. A copy is independent and continues with the same bits.

    Examples
    --------
    Arnoldi: A Q[:, :-1] = Q H.

    >>> import numpy as np, quoin
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((100, 100))
    >>> basis = quoin.GramSchmidt(100)
    >>> basis.append(rng.standard_normal(100))
    >>> for j in range(10):
    ...     basis.append(A @ basis.Q[:, j])
    >>> Q, H = basis.Q, basis.R[:, 1:]
    >>> bool(np.allclose(A @ Q[:, :-1], Q @ H) and np.allclose(Q.T @ Q, np.eye(11)))
    True
    """

    def __init__(
        self,
        m: int,
        capacity: int = 0,
        method: Literal["auto", "mgs", "cgs"] = "auto",
        reorthogonalize: Literal["off", "selective", "always"] = "off",
        panel_width: int = 0,
        dtype: Any = np.float64,
        threads: int | None = None,
    ):
        m, capacity = integer("m", m, 0), integer("capacity", capacity, 0)
        panel_width = integer("panel_width", panel_width, 0)
        self._dtype = float_type("dtype", dtype)
        self._threads = threads_number(threads)
        self._lock = threading.Lock()
        self._basis = self._new(m, capacity, method, reorthogonalize, panel_width)

    _restored = ("_basis",)

    def _new(self, *arguments: Any) -> Any:
        kind = _core.GramSchmidt32 if self._dtype == _FLOAT32 else _core.GramSchmidt64
        return kind(*arguments, self._threads)

    def _save(self) -> Any:
        return self._basis.state(self._threads)

    def _restore(self, saved: Any) -> None:
        self._basis = self._new(*saved)

    def _columns(self, array: Any, function: str) -> tuple[np.ndarray, Any]:
        name = f"GramSchmidt.{function}"
        array, place = on_host(array, name)
        array = to_float(array, name).astype(self._dtype, copy=False)
        return columns(array), place

    @property
    def shape(self) -> tuple[int, int]:
        """(M, K): K columns so far."""
        return self._basis.rows, self._basis.cols

    @property
    def Q(self) -> np.ndarray:
        """Q, shape (M, K), a new array at each call."""
        with self._lock:
            return self._basis.q()

    @property
    def R(self) -> np.ndarray:
        """R, shape (K, K), a new array at each call."""
        with self._lock:
            return self._basis.r()

    def append(self, columns: Any) -> None:
        """Append `columns` (M, P), or one column (M,). After an exception the state is unchanged."""
        A, _ = self._columns(columns, "append")
        with self._lock:
            self._basis.append(A, self._threads)

    def orthogonalize(self, vectors: Any) -> tuple[Any, Any]:
        """(I − QQᵀ)V and the coefficients H, with V = QH + (I − QQᵀ)V.

        `vectors` V are (M, P) or (M,), and are not appended.
        """
        V, place = self._columns(vectors, "orthogonalize")
        with self._lock:
            left, H = self._basis.orthogonalize(V, self._threads)
        if np.ndim(vectors) == 1:
            left, H = left[:, 0], H[:, 0]
        return place.give_back(left), place.give_back(H)

    def truncate(self, k: int) -> None:
        """Keep the first k columns."""
        k = integer("k", k, 0)
        with self._lock:
            self._basis.truncate(k)
