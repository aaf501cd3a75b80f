"""Updates of Q and R after changes of rows, of columns, or of low rank."""

from __future__ import annotations

from typing import Any, Literal

from ._arguments import flag, integer, one_of, threads_number
from ._arrays import exactly_2d, located_beside, on_host, to_float
from ._results import QRResult
from ._types import A


class _Factors:
    """Q and R as the extension module takes them, for the function `name`."""

    def __init__(self, name: str, Q: Any, R: Any, threads: int | None, check_finite: bool):
        Q, self.place = on_host(Q, name)
        self.name = name
        self.Q = exactly_2d(to_float(Q, name))
        self.R = exactly_2d(self.beside(R))
        self.where, self.check_finite = self.place.where(threads_number(threads)), flag("check_finite", check_finite)

    def beside(self, array: Any) -> Any:
        return located_beside(self.place, array, self.name, self.Q.dtype)[0]

    def vectors(self, array: Any, as_rows: bool = False) -> Any:
        """Returns the columns or rows to insert as a matrix; one of them may be a vector."""
        array = self.beside(array)
        return exactly_2d(array if array.ndim != 1 else array[None, :] if as_rows else array[:, None])

    def size(self, rows: bool) -> int:
        return self.Q.shape[0] if rows else self.R.shape[1]

    def updated(self, *arguments: Any) -> QRResult:
        new = getattr(self.place.core, self.name)(self.Q, self.R, *arguments, self.where, self.check_finite)
        return QRResult(*map(self.place.give_back, new))


def qr_insert(
    Q: A, R: A, u: Any, k: int, which: Literal["row", "col"] = "row", threads: int | None = None, check_finite: bool = True
) -> QRResult[A]:
    """Q and R after rows or columns are inserted in A = Q R, as scipy.linalg.qr_insert.

    Parameters
    ----------
    Q, R : array_like, shapes (M, K) and (K, N)
        Q with orthonormal columns and R upper triangular. Q is square (K = M) or thin (K <= min(M, N)), as `qr` with
        mode 'complete' or 'reduced' returns them.
    u : array_like
        One row (N,), rows (P, N), one column (M,) or columns (M, P).
    k : int
        They come before row or column k of A; k = M or N appends. Negative numbers count from the end.
    which : {'row', 'col'}
        Whether u has rows or columns.
    threads, check_finite
        As for `qr`.

    Returns
    -------
    QRResult
        Q and R of the new matrix. A square Q gives a square one, and a thin Q a thin one.

    Notes
    -----
    The cost is of order M N P, instead of M N² for a new factorization. An update adds errors of order (N + P) u to
    those which Q and R already have. New columns may depend on A's.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((100, 20))
    >>> Q, R = quoin.qr(A[:90])
    >>> Q, R = quoin.qr_insert(Q, R, A[90:], 90)
    >>> Q.shape, R.shape, bool(np.allclose(Q @ R, A))
    ((100, 20), (20, 20), True)
    """
    f = _Factors("qr_insert", Q, R, threads, check_finite)
    rows = one_of("which", which, "row", "col") == "row"
    size = f.size(rows)
    at = integer("k", k, -size, size)
    return f.updated(f.vectors(u, rows), at + size if at < 0 else at, rows)


def qr_delete(
    Q: A, R: A, k: int, p: int = 1, which: Literal["row", "col"] = "row", threads: int | None = None, check_finite: bool = True
) -> QRResult[A]:
    """Q and R after rows or columns of A = Q R are deleted, as scipy.linalg.qr_delete.

    Parameters
    ----------
    Q, R : array_like, shapes (M, K) and (K, N)
        As for `qr_insert`.
    k : int
        The first row or column to delete. Negative numbers count from the end.
    p : int, optional
        The number of neighbouring rows or columns to delete.
    which : {'row', 'col'}
        Whether rows or columns are deleted.
    threads, check_finite
        As for `qr`.

    Returns
    -------
    QRResult
        Q and R of the new matrix. A square Q gives a square one, and a thin Q a thin one.

    Notes
    -----
    Rows are deleted by means of Q, so that the error is of order N u even if the new R is singular.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((100, 20))
    >>> Q, R = quoin.qr_delete(*quoin.qr(A), 0, 10)
    >>> Q.shape, R.shape, bool(np.allclose(Q @ R, A[10:]))
    ((90, 20), (20, 20), True)
    """
    f = _Factors("qr_delete", Q, R, threads, check_finite)
    rows = one_of("which", which, "row", "col") == "row"
    size = f.size(rows)
    begin = integer("k", k, -size, size)
    begin += size if begin < 0 else 0
    return f.updated(begin, begin + integer("p", p, 0, size - begin), rows)


def qr_update(Q: A, R: A, u: Any, v: Any, threads: int | None = None, check_finite: bool = True) -> QRResult[A]:
    """Q and R of A + u vᵀ for A = Q R, as scipy.linalg.qr_update.

    Parameters
    ----------
    Q, R : array_like, shapes (M, K) and (K, N)
        As for `qr_insert`.
    u : array_like, shape (M,) or (M, P)
        The left factor. To replace columns, u has the differences and v unit vectors.
    v : array_like, shape (N,) or (N, P)
        The right factor.
    threads, check_finite
        As for `qr`.

    Returns
    -------
    QRResult
        Q and R of the new matrix, of the shapes of the given ones.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> G = np.random.default_rng(0)
    >>> A, u, v = G.standard_normal((100, 20)), G.standard_normal((100, 3)), G.standard_normal((20, 3))
    >>> Q, R = quoin.qr_update(*quoin.qr(A), u, v)
    >>> bool(np.allclose(Q @ R, A + u @ v.T))
    True
    """
    f = _Factors("qr_update", Q, R, threads, check_finite)
    return f.updated(f.vectors(u), f.vectors(v))
