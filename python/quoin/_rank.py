"""Rank, pseudoinverse and bases of the range and the null space, from the SVD by QR."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from ._arguments import rcond_number
from ._arrays import exactly_2d, located, to_float
from ._functions import factor, svd
from ._types import A, Floats, Numbers


def _svd_and_rank(function: str, a: Any, name: str, tolerance: float | None, vectors: bool = True) -> tuple[Any, int]:
    """Returns the SVD of one matrix, or its values, and how many of these are above `tolerance` times the largest."""
    A = exactly_2d(to_float(located(a)[0], function))
    least = max(A.shape) * float(np.finfo(A.dtype).eps) if tolerance is None else rcond_number(tolerance, name)
    f = svd(a, vectors)
    S = f.S if vectors else f
    return f, int((S > least * S[0]).sum()) if min(A.shape) else 0


def matrix_rank(a: Any, rtol: float | None = None) -> int:
    """The number of singular values above rtol times the largest, as numpy.linalg.matrix_rank, from R of QR.

    Parameters
    ----------
    a : array_like, shape (M, N)
        Types and layouts as for `qr`.
    rtol : float, optional
        From 0 to 1; by default max(M, N) eps.

    Notes
    -----
    2 max(M, N) K² flops for R and 8K³/3 for its singular values, K = min(M, N).

    Examples
    --------
    >>> import numpy as np, quoin
    >>> quoin.matrix_rank(np.ones((1000, 3)))
    1
    """
    return _svd_and_rank("matrix_rank", a, "rtol", rtol, vectors=False)[1]


@overload
def pinv(a: Numbers, rtol: float | None = None) -> Floats: ...
@overload
def pinv(a: A, rtol: float | None = None) -> A: ...


def pinv(a: Any, rtol: float | None = None) -> Any:
    """The Moore-Penrose pseudoinverse A⁺ (N, M), as numpy.linalg.pinv, from the SVD by QR.

    To solve with A, use `lstsq`: it takes less time and memory.

    Parameters
    ----------
    a : array_like, shape (M, N)
        Types and layouts as for `qr`.
    rtol : float, optional
        From 0 to 1: singular values that are at most rtol times the largest count as zero; by default max(M, N) eps.

    Notes
    -----
    A = U Σ Vᵀ, A⁺ = V Σ⁺ Uᵀ: the flops of `svd`, and 2MNK more. The relative error is of order eps times the condition
    number of the part that is inverted.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> quoin.pinv(np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    (U, S, Vh), rank = _svd_and_rank("pinv", a, "rtol", rtol)
    return (Vh[:rank].T / S[:rank]) @ U[:, :rank].T


@overload
def orth(a: Numbers, rcond: float | None = None) -> Floats: ...
@overload
def orth(a: A, rcond: float | None = None) -> A: ...


def orth(a: Any, rcond: float | None = None) -> Any:
    """An orthonormal basis of the range of A (M, rank), as scipy.linalg.orth: the left singular vectors.

    Parameters
    ----------
    a : array_like, shape (M, N)
        Types and layouts as for `qr`.
    rcond : float, optional
        From 0 to 1: singular values that are at most rcond times the largest count as zero; by default max(M, N) eps.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> abs(quoin.orth(np.array([[2.0, 4.0], [0.0, 0.0]])))
    array([[1.],
           [0.]])
    """
    f, rank = _svd_and_rank("orth", a, "rcond", rcond)
    return f.U[:, :rank]


@overload
def null_space(a: Numbers, rcond: float | None = None) -> Floats: ...
@overload
def null_space(a: A, rcond: float | None = None) -> A: ...


def null_space(a: Any, rcond: float | None = None) -> Any:
    """An orthonormal basis of the null space of A (N, N − rank), as scipy.linalg.null_space.

    Parameters
    ----------
    a : array_like, shape (M, N)
        Types and layouts as for `qr`.
    rcond : float, optional
        From 0 to 1: singular values that are at most rcond times the largest count as zero; by default max(M, N) eps.

    Notes
    -----
    The last columns of the N×N Q of the right singular vectors that span the range of Aᵀ. ‖A Z‖ is at most about
    rcond ‖A‖.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> Z = quoin.null_space(np.array([[1.0, 1.0, 1.0]]))
    >>> Z.shape, bool(abs(Z.sum(axis=0)).max() < 1e-15)
    ((3, 2), True)
    """
    f, rank = _svd_and_rank("null_space", a, "rcond", rcond)
    return factor(f.Vh[:rank].T).q[:, rank:]
