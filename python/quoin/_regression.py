"""Linear regression with its statistics, and least squares with constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._arguments import flag, real, threads_number
from ._arrays import columns, exactly_2d, located, require_one_place, to_float
from ._errors import InvalidArgument
from ._results import LstsqResult, RegressionResult, solution
from ._types import A


def regression(
    a: Any,
    b: Any,
    intercept: bool = False,
    weights: Any = None,
    ridge: float = 0.0,
    names: Sequence[str] | None = None,
    leverages: bool = False,
    threads: int | None = None,
) -> RegressionResult:
    """Linear regression: the minimiser of Σ wᵢ (A x − b)ᵢ² + ridge ‖x‖², with its statistics, as R's summary(lm()).

    Parameters
    ----------
    a : array_like, shape (M, N)
        Types and layouts as for `qr`.
    b : array_like, shape (M,) or (M, P)
        One or several right-hand sides.
    intercept : bool
        Put a column of ones before the columns of `a`. R² and F then compare with the mean of b, otherwise with 0.
    weights : array_like, shape (M,), optional
        Not negative. Rows of weight 0 do not count as observations.
    ridge : float
        The factor of the penalty ‖x‖², to which the intercept does not add. The estimates are then biased: t, p and F
        are NaN.
    names : sequence of str, optional
        A name for each column of `a`, for `summary`; by default x1, x2, ….
    leverages : bool
        Compute the leverages, the diagonal of the hat matrix, in M N² flops more.
    threads : int, optional
        As for `qr`.

    Returns
    -------
    RegressionResult
        Its arrays are NumPy's, wherever `a` is.

    Raises
    ------
    InvalidArgument
        For shapes that do not fit, negative or NaN weights and a negative ridge; NonFiniteEntry for NaN or Inf.

    Notes
    -----
    Everything follows from R of √W [1 A b] = Q R, which is never squared: (AᵀA)⁻¹ = R⁻¹R⁻ᵀ, and a ridge adds a QR of
    [R; √ridge I]. A column that depends on earlier ones is left out, as by R's lm, and its coefficient is NaN.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> x, y = np.arange(6.0), np.array([1.1, 2.9, 5.2, 6.8, 9.1, 10.9])
    >>> fit = quoin.regression(x[:, None], y, intercept=True, names=["x"])
    >>> fit.coefficients.round(3), fit.standard_errors.round(3), float(round(fit.r_squared, 4))
    (array([1.057, 1.977]), array([0.12, 0.04]), 0.9984)
    >>> print(fit.summary(), end="")
    coefficient      estimate    std. error    t value   Pr(>|t|)
    (intercept)       1.05714      0.120487    8.77395    0.00093
    x                 1.97714     0.0397954    49.6827   9.82e-07
    residual standard error 0.166476 on 4 degrees of freedom
    R² 0.998382, adjusted R² 0.997978
    F 2468.37 on 1 and 4 degrees of freedom, p value 9.82e-07
    """
    intercept, leverages, ridge = flag("intercept", intercept), flag("leverages", leverages), real("ridge", ridge)
    a, place = located(a)
    b, place_of_b = located(b)
    require_one_place("regression", place, place_of_b)
    a, b = exactly_2d(to_float(a, "regression")), to_float(b, "regression")
    dtype = np.promote_types(a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    w = np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    if w.ndim != 1:
        raise InvalidArgument(f"regression takes a vector of weights, and was given {w.ndim} dimensions")
    if weights is not None and len(w) != len(a):
        raise InvalidArgument(f"regression: {len(w)} weights were given for {len(a)} observations")
    known = [f"x{j + 1}" for j in range(a.shape[1])] if names is None else [str(name) for name in names]
    if len(known) != a.shape[1]:
        raise InvalidArgument(f"regression: {len(known)} names were given for the {a.shape[1]} columns of a")
    found = place.core.regression(
        place.operand(a),
        place.operand(columns(b)),
        intercept,
        ridge,
        w,
        ["(intercept)", *known] if intercept else known,
        leverages,
        place.where(threads_number(threads)),
    )
    return RegressionResult.of(found, b.ndim == 1)


def constrained_lstsq(a: A, b: Any, constraints: Any, values: Any, threads: int | None = None) -> LstsqResult[A]:
    """Least squares with equality constraints: min ‖A x − b‖₂ subject to C x = d, as LAPACK's gglse.

    Parameters
    ----------
    a : array_like, shape (M, N)
        Types and layouts as for `qr`.
    b : array_like, shape (M,) or (M, P)
        The right-hand sides.
    constraints : array_like, shape (K, N), K <= N
        C, whose rows must not depend on each other.
    values : array_like, shape (K,) or (K, P)
        d.
    threads : int, optional
        As for `qr`.

    Returns
    -------
    LstsqResult
        x and the norms of A x − b. If several x minimise it, x is the one of least norm. `rank`, `s` and `condition`
        belong to A restricted to the null space of C, of dimension N − K.

    Raises
    ------
    RankDeficient
        For constraints that depend on each other. The message names their rows.

    Notes
    -----
    Null-space method (Lawson and Hanson 1974): Cᵀ = Q [R; 0] and A Q = [A₁ A₂] give x = Q [y₁; y₂], where y₁ = R⁻ᵀd
    and y₂ minimises ‖A₂y₂ − (b − A₁y₁)‖.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> t = np.arange(5.0)
    >>> line = np.column_stack([np.ones(5), t])                  # through (0, 1)
    >>> quoin.constrained_lstsq(line, 2 * t + 3, [[1.0, 0.0]], [1.0]).x.round(12)
    array([1.        , 2.66666667])
    """
    places = [located(operand) for operand in (a, b, constraints, values)]
    place = places[0][1]
    for _, other in places[1:]:
        require_one_place("constrained_lstsq", place, other)
    found = [to_float(operand, "constrained_lstsq") for operand, _ in places]
    dtype = np.result_type(*(array.dtype for array in found))
    a, b, c, d = (array.astype(dtype, copy=False) for array in found)
    if b.ndim != d.ndim:
        raise InvalidArgument(f"constrained_lstsq: b has {b.ndim} dimensions, and values has {d.ndim}")
    operands = [place.operand(array) for array in (exactly_2d(a), columns(b), exactly_2d(c), columns(d))]
    result = place.core.constrained_lstsq(*operands, place.where(threads_number(threads)))
    return solution(result, a.shape[0], b.ndim, place)
