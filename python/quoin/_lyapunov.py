"""Lyapunov spectra of systems that the caller writes down."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _core
from ._arguments import flag, float_type, function, integer, one_of, path_bytes, positive, real, threads_number
from ._arrays import on_host, to_float
from ._derivatives import jvp_of
from ._errors import InvalidArgument


class Estimate(NamedTuple):
    """A number, its standard error and half the width of its 95% interval; nan if they are not known."""

    value: float
    error: float
    half_width: float


class LyapunovResult(NamedTuple):
    """The first p exponents, descending, with what follows from them and how they converged."""

    exponents: np.ndarray
    errors: np.ndarray
    half_widths: np.ndarray
    sum: Estimate
    kolmogorov_sinai: Estimate
    kaplan_yorke: Estimate
    positive: int
    state: np.ndarray
    time: float
    discarded: float
    segments: int
    every: int
    resolved: bool
    reached: bool
    completed: bool
    method: str
    times: np.ndarray
    averages: np.ndarray
    seconds: float
    qr_seconds: float
    tangent_seconds: float
    force_seconds: float


class CovariantResult(NamedTuple):
    """Covariant vectors' exponents, local and over the run, and their angles in radians."""

    exponents: np.ndarray
    segment: float
    local: np.ndarray
    split: int
    angles: np.ndarray
    least_angles: np.ndarray
    times: np.ndarray | None
    states: np.ndarray | None
    vectors: np.ndarray | None


class SeriesResult(NamedTuple):
    """Exponents of a measured series: all by Jacobians, the largest by nearest neighbours, and their divergence."""

    exponents: np.ndarray
    errors: np.ndarray
    half_widths: np.ndarray
    kaplan_yorke: Estimate
    largest: Estimate
    times: np.ndarray
    logarithms: np.ndarray
    first: int
    last: int
    skipped: int


def _system(name: str, f: Any, jvp: Any, x0: Any, kind: str, delay: float | None) -> tuple[list[float], Callable, Callable]:
    """x0, and f and the product with its Jacobian as functions of arrays that return arrays of the right shape.

    With a delay, they are functions of z = [x(t), x(t - delay)].
    """
    start = to_float(on_host(x0, name)[0], name).astype(np.float64)
    if start.ndim != 1:
        raise InvalidArgument(f"x0 must have one dimension, and has {start.ndim}")
    one_of("kind", kind, "flow", "map")
    n = len(start)
    if delay is None:
        motion, tangent = jvp_of(function("f", f), jvp)
    else:
        if kind != "flow":
            raise InvalidArgument("delay is for a flow, and kind is 'map'")
        function("f", f)
        stacked = (lambda z, Z: jvp(z[:n], z[n:], Z[:n], Z[n:])) if callable(jvp) else jvp
        motion, tangent = jvp_of(lambda z: f(z[:n], z[n:]), stacked)

    def of_shape(name: str, result: Any, shape: tuple[int, ...]) -> np.ndarray:
        array = np.asfortranarray(result, dtype=np.float64)
        if array.shape != shape:
            raise InvalidArgument(f"{name} must return an array of shape {shape}, and returned one of {array.shape}")
        return array

    return (
        start.tolist(),
        lambda x: of_shape("f", motion(x), (n,)),
        lambda x, V: of_shape("jvp", tangent(x, V), (n, V.shape[1])),
    )


def lyapunov(
    f: Callable[..., Any],
    jvp: Callable[..., Any] | str | None,
    x0: Any,
    *,
    kind: str = "flow",
    step: float = 0.01,
    delay: float | None = None,
    intervals: int = 100,
    divergence: float | None = None,
    exponents: int | None = None,
    time: float = 1000.0,
    until: float | None = None,
    transient: float = 100.0,
    alignment: float = 100.0,
    every: int = 10,
    seed: int = 1,
    method: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    callback: Callable[[float, float], Any] | None = None,
    dtype: Any = np.float64,
    threads: int | None = None,
) -> LyapunovResult:
    """Lyapunov exponents of dx/dt = f(x), with a delay or without, or of the map x := f(x), by QR of its tangent vectors.

    The state and p tangent vectors V are evolved together; every few steps V = QR and V := Q. The averages of log|r_ii|
    over time are the exponents (Benettin et al. 1980; Shimada and Nagashima 1979).

    Parameters
    ----------
    f : callable
        f(x) of shape (n,): the vector field, or the next state of a map.
    jvp : callable, None, 'jax' or 'torch'
        jvp(x, V) of shape (n, p), the Jacobian of f at x times the matrix V, all vectors at once: ``J(x) @ V``. None: f is
        differentiated by dual numbers; it may use arithmetic, powers and NumPy's functions of one number. 'jax' or 'torch': by
        that library, whose float64 arrays f is then given.
    x0 : array_like, shape (n,)
    kind : {'flow', 'map'}
        Flows are integrated by Dormand and Prince's method of order 5, the vectors by its derivative.
    step : float
        Of a flow without a delay.
    delay : float, optional
        dx/dt = f(x(t), x(t - delay)). f is called as ``f(x, y)``, and jvp as ``jvp(x, y, V, W)``, the derivative along V of x and
        W of y. x(t) = x0 for t <= 0. The state is x at ``intervals + 1`` points of the last delay, the oldest first, and a step,
        of the Runge-Kutta method of order 4, is ``delay / intervals``.
    intervals : int
        With a delay, at least 3. There are ``(intervals + 1) * len(x0)`` exponents, the last of which are the grid's: ask for
        the first few.
    divergence : float, optional
        The mean of div f of a flow, of log|det J| of a map, if it is known. The sum of all exponents is then checked.
    exponents : int, optional
        The first p; by default all n.
    time, transient, alignment : float
        Time to average over; before it that of the state alone; between them that of the vectors, not averaged. Of a map,
        iterations.
    until : float, optional
        The run ends as soon as the 95% interval of every exponent is at most ± `until`; after `time` at the latest.
    every : int
        Steps between two factorizations, at most. If the vectors grow too far apart in them, there are more
        factorizations, and a warning.
    seed : int
        Of the random vectors that the run begins with.
    method : str
        Of `quoin.qr`.
    checkpoint : path, optional
        A file. If it exists, the run continues from it with the same bits. The run is saved to it every
        `checkpoint_seconds`, at the end, and when an exception or Ctrl-C ends the run. f, jvp and x0 must be those of
        the run that wrote it.
    callback : callable, optional
        callback(time, fraction) after each factorization. The run stops if it returns a value that is false and not
        None.
    dtype : numpy dtype
        float64 or float32, of the tangent vectors between factorizations and of these, which are faster in float32;
        f and jvp compute in float64.
    threads : int, optional
        As for `quoin.qr`.

    Returns
    -------
    LyapunovResult
        `exponents` with standard `errors` and `half_widths` of their 95% intervals, which include the error of a flow's step (by
        a comparison with half the step after the run, about 5% more calls of f) and of rounding, and `Estimate`s of their `sum`, the
        Kolmogorov-Sinai entropy (sum of the positive ones) and the Kaplan-Yorke dimension. `discarded` is the part of `time`
        at its start that was found to be a transient and is left out. `resolved` is false if correlations last longer than
        1/16 of the time, so that errors may be too small; `reached` if `until` was not; `every` is the steps between
        factorizations in use.
        `averages[:, b]` are the exponents over the first `times[b]` after what was discarded.

    Raises
    ------
    NonFiniteEntry
        If the orbit or a vector becomes NaN or Inf; the message has the time.
    NumericalBreakdown
        If the vectors become parallel in a single step, or the sum of all exponents is not `divergence`.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> def f(x):
    ...     return np.array([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]])
    >>> def jvp(x, V):
    ...     return np.array([[-2.8 * x[0], 1.0], [0.3, 0.0]]) @ V
    >>> henon = quoin.lyapunov(f, jvp, [0.1, 0.1], kind="map", time=20000)
    >>> bool(abs(henon.exponents[0] - 0.419) < 5 * henon.errors[0]), round(henon.sum.value, 6)
    (True, -1.203973)
    """
    start, motion, tangent = _system("lyapunov", f, jvp, x0, kind, delay)
    if callback is not None:
        function("callback", callback, ", or None")

    def go_on(now: float, fraction: float) -> bool:
        answer = callback(now, fraction)  # type: ignore[misc]
        return answer is None or bool(answer)

    result = _core.lyapunov(
        start,
        kind == "flow",
        motion,
        tangent,
        positive("step", step),
        None if divergence is None else real("divergence", divergence, ", or None,"),
        positive("delay", delay, optional=True),
        integer("intervals", intervals, 3),
        integer("exponents", exponents, 1, optional=True),
        real("time", time),
        positive("until", until, optional=True),
        real("transient", transient),
        real("alignment", alignment),
        integer("every", every, 1),
        integer("seed", seed, 0, 2**64 - 1),
        method,
        path_bytes("checkpoint", checkpoint),
        real("checkpoint_seconds", checkpoint_seconds),
        None if callback is None else go_on,
        float_type("dtype", dtype) == np.float32,
        threads_number(threads),
    )
    values, errors, half_widths, total, entropy, dimension, *rest = result
    spectrum = LyapunovResult(values, errors, half_widths, Estimate(*total), Estimate(*entropy), Estimate(*dimension), *rest)
    if spectrum.every < every:
        warnings.warn(
            f"the vectors grow too far apart in {every} steps: there was a factorization every {spectrum.every} steps", stacklevel=2
        )
    if not spectrum.resolved and np.isfinite(spectrum.sum.error):
        warnings.warn("correlations last longer than 1/16 of the time: errors may be too small", stacklevel=2)
    if not spectrum.reached:
        warnings.warn(f"until={until:g} was not reached; it needs a longer time, or a shorter step if that is the limit", stacklevel=2)
    return spectrum


def covariant_lyapunov(
    f: Callable[..., Any],
    jvp: Callable[..., Any] | str | None,
    x0: Any,
    *,
    kind: str = "flow",
    step: float = 0.01,
    delay: float | None = None,
    intervals: int = 100,
    exponents: int | None = None,
    time: float = 100.0,
    transient: float = 100.0,
    alignment: float = 100.0,
    every: int = 10,
    seed: int = 1,
    split: int | None = None,
    vectors: bool = False,
    threads: int | None = None,
) -> CovariantResult:
    """Covariant Lyapunov vectors of dx/dt = f(x), or of the map x := f(x) (Ginelli et al. 2007).

    Each vector is mapped to the one at the next time and grows at its own exponent. Memory is bounded: the forward run keeps a
    checkpoint every √K of its K segments.

    Parameters
    ----------
    f, jvp, x0, kind, step, delay, intervals, exponents, transient, every, seed
        As in `lyapunov`.
    time : float
        Over which there are vectors.
    alignment : float
        Time before that for the vectors of the forward run, and after it for those of the backward run, to align.
    split : int, optional
        `angles` are those between the first `split` vectors and the others; by default as many as grow.
    vectors : bool
        Whether to return all vectors.
    threads : int, optional
        As for `quoin.qr`.

    Returns
    -------
    CovariantResult
        `local[i, k]` is the growth rate of vector i in segment k, of time `segment`; `exponents` are their means. `angles[k]` is
        the least angle between the spans of the first `split` vectors and of the others, `least_angles[i, j]` the least that
        two vectors had. With `vectors`, `vectors[k]` (n, p) are the vectors at `times[k]`, where the state is `states[k]`.

    Raises
    ------
    NumericalBreakdown
        If the vectors become too parallel in `every` steps.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> cat = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> c = quoin.covariant_lyapunov(lambda x: cat @ x % 1, lambda x, V: cat @ V, [0.1, 0.2], kind="map", every=1)
    >>> round(float(c.exponents[0]), 6), round(float(np.degrees(c.angles.min())))
    (0.962424, 90)
    """
    start, motion, tangent = _system("covariant_lyapunov", f, jvp, x0, kind, delay)
    keep = flag("vectors", vectors)
    result = _core.covariant_lyapunov(
        start,
        kind == "flow",
        motion,
        tangent,
        positive("step", step),
        positive("delay", delay, optional=True),
        integer("intervals", intervals, 3),
        integer("exponents", exponents, 1, optional=True),
        positive("time", time),
        real("transient", transient),
        real("alignment", alignment),
        integer("every", every, 1),
        integer("seed", seed, 0, 2**64 - 1),
        integer("split", split, 1, optional=True),
        keep,
        threads_number(threads),
    )
    *rest, times, states, columns = result
    if not keep:
        return CovariantResult(*rest, None, None, None)
    p, K = len(rest[0]), len(times)
    n = len(columns) // (p * K)
    backward = columns.reshape(K, p, n).transpose(0, 2, 1)
    return CovariantResult(*rest, times[::-1].copy(), states.reshape(K, n)[::-1].copy(), backward[::-1].copy())


def lyapunov_series(
    series: Any,
    *,
    delays: int = 3,
    lag: int = 1,
    interval: float = 1.0,
    theiler: int | None = None,
    neighbours: int | None = None,
    evolve: int | None = None,
    exponents: int | None = None,
    horizon: int | None = None,
    threads: int | None = None,
) -> SeriesResult:
    """Lyapunov exponents of a measured series.

    A state is a sample and the ``delays - 1`` samples before it, `lag` apart (Takens 1981).

    Parameters
    ----------
    series : array_like, shape (N,) or (N, c)
        Samples at equal times; c components.
    delays, lag : int
        Of a state, of c·delays variables.
    interval : float
        Time between two samples.
    theiler : int, optional
        Samples nearer in time are no neighbours; by default ``2 * delays * lag``.
    neighbours : int, optional
        Of each least-squares problem for a Jacobian; by default four for each variable and 1. More where there is noise.
    evolve : int, optional
        Samples that a Jacobian spans; by default `lag`.
    exponents : int, optional
        The first p; by default all.
    horizon : int, optional
        Samples that nearest neighbours are followed for; by default a tenth of the series.
    threads : int, optional
        As for `quoin.qr`.

    Returns
    -------
    SeriesResult
        `exponents` of the product of the Jacobians (Sano and Sawada 1985; Eckmann et al. 1986), and `largest`, the slope of the
        mean log-distance of nearest neighbours, `logarithms` at `times`, in ``[first:last]`` (Rosenstein et al. 1993). Errors do
        not have the bias of noise, of neighbourhoods that are not small, or of too few delays. Directions that contract faster
        than the noise allows, and those that a reconstruction adds, have exponents without a meaning. States that are the
        same to 1e-10 of the range are no neighbours. `skipped` Jacobians, which their neighbours did not determine, are left
        out; `exponents` are nan if all are.

    Raises
    ------
    InvalidArgument
        If the series is too short, is constant or repeats itself.
    NonFiniteEntry
        If the series holds NaN or Inf; the message has the sample (row) and the component (column).

    Examples
    --------
    >>> import numpy as np, quoin
    >>> x = [0.1, 0.1]
    >>> for _ in range(1500):
    ...     x.append(1 - 1.4 * x[-1] ** 2 + 0.3 * x[-2])
    >>> henon = quoin.lyapunov_series(x, delays=2, horizon=30)
    >>> bool(abs(henon.exponents[0] - 0.419) < 0.05), bool(abs(henon.largest.value - 0.419) < 0.1)
    (True, True)
    """
    samples = to_float(on_host(series, "lyapunov_series")[0], "lyapunov_series").astype(np.float64)
    if samples.ndim not in (1, 2):
        raise InvalidArgument(f"series must have one or two dimensions, and has {samples.ndim}")
    columns = np.asfortranarray(samples.reshape(len(samples), -1).T)
    values, errors, half_widths, dimension, largest, *rest, used = _core.lyapunov_series(
        columns,
        *columns.shape,
        integer("delays", delays, 1),
        integer("lag", lag, 1),
        positive("interval", interval),
        integer("theiler", theiler, 1, optional=True),
        integer("neighbours", neighbours, 1, optional=True),
        integer("evolve", evolve, 1, optional=True),
        integer("exponents", exponents, 1, optional=True),
        integer("horizon", horizon, 1, optional=True),
        threads_number(threads),
    )
    result = SeriesResult(values, errors, half_widths, Estimate(*dimension), Estimate(*largest), *rest)
    if result.skipped > (result.skipped + used) / 10:
        warnings.warn(
            f"{result.skipped} of {result.skipped + used} Jacobians are left out, which their neighbours do not determine: "
            "fewer delays, or more neighbours",
            stacklevel=2,
        )
    return result
