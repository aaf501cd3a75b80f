"""Low-rank decompositions by QR with column pivoting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arguments import flag, pivoting_limits, threads_number
from ._arrays import exactly_2d, located, to_float
from ._results import CURResult, InterpolativeResult
from ._types import A, Kind


def _decompose(
    name: str, a: Any, limits: tuple[Any, Any, Any], pivoting: str, threads: int | None, check_finite: bool
) -> tuple[list[Any], Any]:
    """The indices and the matrix that the extension module's function `name` computes."""
    a, place = located(a)
    a = exactly_2d(to_float(a, name))
    pivots = pivoting_limits(pivoting, limits, min(a.shape))
    where = place.where(threads_number(threads))
    check_finite = flag("check_finite", check_finite)
    *indices, matrix = getattr(place.core, name)(place.operand(a), pivots, where, check_finite)
    return [np.array(index, dtype=np.intp) for index in indices], place.give_back(matrix)


def interpolative(
    a: A,
    rank: int | None = None,
    rtol: float | None = None,
    pivoting: Kind = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    *,
    rtol_frobenius: float | None = None,
) -> InterpolativeResult[A]:
    """An interpolative decomposition: some columns of `a`, and how the others are made of them.

    Parameters
    ----------
    a : array_like, shape (M, N)
        Types and layouts as for `qr`.
    rank : int, optional
        The most columns, up to min(M, N).
    rtol : float, optional
        The columns are no more than it takes to bring the norm of every column of a QR with column pivoting that is
        left down to rtol times the largest norm of a column of `a`. Without limits their number is the numerical rank,
        which is also the most.
    pivoting : {'auto', 'greedy', 'randomized', 'strong'}
        'strong' bounds the entries of X by 2, at the cost of a QR of all of `a` (Gu and Eisenstat 1996). With the
        others they are hardly ever large.
    threads, check_finite
        As for `qr`.
    rtol_frobenius : float, optional
        As `rtol`, for the Frobenius norm of all that is left, relative to the Frobenius norm of `a`.

    Returns
    -------
    InterpolativeResult
        columns (K,) and X (K, N), A ≈ A[:, columns] @ X. X[:, columns] is the identity.

    Notes
    -----
    A P ≈ Q [R₁₁ R₁₂] gives X = [I R₁₁⁻¹R₁₂] Pᵀ. The cost is of order M N K.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> G = np.random.default_rng(0)
    >>> A = G.standard_normal((50, 3)) @ G.standard_normal((3, 40))
    >>> columns, X = quoin.interpolative(A)
    >>> len(columns), bool(np.allclose(A[:, columns] @ X, A))
    (3, True)
    """
    (columns,), X = _decompose("interpolative", a, (rank, rtol, rtol_frobenius), pivoting, threads, check_finite)
    return InterpolativeResult(columns, X)


def cur(
    a: A,
    rank: int | None = None,
    rtol: float | None = None,
    pivoting: Kind = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    *,
    rtol_frobenius: float | None = None,
) -> CURResult[A]:
    """A CUR decomposition: columns of `a`, rows of `a`, and a small matrix between them.

    Parameters
    ----------
    a, rank, rtol, pivoting, threads, check_finite, rtol_frobenius
        As for `interpolative`.

    Returns
    -------
    CURResult
        columns (K,), rows (K,) and U (K, K), A ≈ A[:, columns] @ U @ A[rows].

    Notes
    -----
    `interpolative` chooses the columns, and the rows from these columns. U is the best for them in the Frobenius norm
    if C = A[:, columns] spans the columns (Voronin and Martinsson 2017).

    Examples
    --------
    >>> import numpy as np, quoin
    >>> G = np.random.default_rng(0)
    >>> A = G.standard_normal((50, 3)) @ G.standard_normal((3, 40))
    >>> columns, rows, U = quoin.cur(A, rank=3)
    >>> bool(np.allclose(A[:, columns] @ U @ A[rows], A))
    True
    """
    (columns, rows), U = _decompose("cur", a, (rank, rtol, rtol_frobenius), pivoting, threads, check_finite)
    return CURResult(columns, rows, U)
