"""Lyapunov spectra of systems that the caller defines."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Literal, NamedTuple

import numpy as np

from .. import _core
from .._arguments import flag, float_type, function, integer, one_of, path_bytes, positive, real, threads_number
from .._arrays import on_host, to_float
from .._errors import InvalidArgument
from .._types import Method, Progress
from ._derivatives import jvp_of


class Estimate(NamedTuple):
    """A number, its standard error and half the width of its 95% interval; nan where unknown."""

    value: float
    error: float
    half_width: float


class LyapunovResult(NamedTuple):
    """The first p exponents, descending, with quantities derived from them and their convergence."""

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
    """The exponents of covariant vectors, local and over the run, and the angles between the vectors in radians."""

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
    """Exponents of a measured series: all by Jacobians, the largest by the divergence of nearest neighbours."""

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


def _system(
    name: str, f: Any, jvp: Any, x0: Any, kind: str, delay: float | None
) -> tuple[list[float], Callable[..., Any], Callable[..., Any]]:
    """Returns x0, f, and the product with f's Jacobian.

    The two functions take arrays and return arrays of the right shape. With a delay, they are functions of
    z = [x(t), x(t - delay)].
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
    kind: Literal["flow", "map"] = "flow",
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
    method: Method = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    callback: Callable[[float, float], Any] | None = None,
    dtype: Any = np.float64,
    threads: int | None = None,
) -> LyapunovResult:
    """Lyapunov exponents of dx/dt = f(x), with a delay or without, or of the map x := f(x), by QR of its tangent
    vectors.

    The state and p tangent vectors V are evolved together; every few steps V = QR and V := Q. The averages of log|r_ii|
    over time are the exponents (Benettin et al. 1980; Shimada and Nagashima 1979).

    Parameters
    ----------
    f : callable
        f(x) of shape (n,) is the vector field of a flow, or the next state of a map.
    jvp : callable, None, 'jax' or 'torch'
        jvp(x, V) of shape (n, p) is the Jacobian of f at x times the matrix V of all vectors, ``J(x) @ V``. With None,
        f is differentiated by dual numbers; it may use arithmetic, powers and NumPy's functions of one number. With
        'jax' or 'torch', that library differentiates f, and f gets its float64 arrays.
    x0 : array_like, shape (n,)
        The state at the start.
    kind : {'flow', 'map'}
        Flows are integrated by Dormand and Prince's method of order 5, and the vectors by its derivative.
    step : float
        The time step of a flow without a delay.
    delay : float, optional
        The delay of dx/dt = f(x(t), x(t - delay)). f is called as ``f(x, y)``, and jvp as ``jvp(x, y, V, W)``, the
        derivative for directions V of x and W of y. x(t) = x0 for t <= 0. The state is x at ``intervals + 1`` points of
        the last delay, the oldest first. The Runge-Kutta method of order 4 takes steps of ``delay / intervals``.
    intervals : int
        Number of steps in a delay, at least 3. There are ``(intervals + 1) * len(x0)`` exponents. The last ones belong
        to the grid and not to the system, so ask for the first few only.
    divergence : float, optional
        The mean of div f of a flow, or of log|det J| of a map, if it is known. The sum of all exponents is then
        checked.
    exponents : int, optional
        The first p; by default all n.
    time, transient, alignment : float
        Durations, or numbers of iterations of a map. First the state alone runs for `transient`, then the vectors run
        with it for `alignment` without being averaged, and then they are averaged over `time`.
    until : float, optional
        The run ends as soon as the 95% interval of every exponent is at most ± `until`, and after `time` at the latest.
    every : int
        Largest number of steps between two factorizations. If the vectors grow too far apart in them, there are more
        factorizations, and a warning.
    seed : int
        Seed of the random vectors at the start of the run.
    method : str
        As for `quoin.qr`.
    checkpoint : path, optional
        A file. If it exists, the run continues from it with the same bits; f, jvp and x0 must be the same as in the run
        that wrote it. The run is saved to it at the end, and when an exception or Ctrl-C ends it.
    checkpoint_seconds : float
        Time between two savings to `checkpoint` during the run.
    callback : callable, optional
        Called as callback(time, fraction) after each factorization. The run stops if it returns a value that is false
        and not None.
    dtype : numpy dtype
        Type of the tangent vectors between factorizations and of the factorizations: float64, or float32, which is
        faster. f and jvp compute in float64.
    threads : int, optional
        As for `quoin.qr`.

    Returns
    -------
    LyapunovResult
        `exponents` have standard `errors` and `half_widths` of their 95% intervals. Both include rounding and the error
        of a flow's step, which a comparison with half the step after the run finds, with about 5% more calls of f.
        `sum`, `kolmogorov_sinai` (the entropy, the sum of the positive exponents) and `kaplan_yorke` (the dimension)
        are `Estimate`s. `discarded` is the part of `time` at its start that was found to be a transient and is left
        out. `resolved` is false if correlations last longer than 1/16 of the time, so that errors may be too small.
        `reached` is false if `until` was not reached. `every` is the number of steps between factorizations in use.
        `averages[:, b]` are the exponents over the first `times[b]` after the discarded part.

    Raises
    ------
    NonFiniteEntry
        If the orbit or a vector becomes NaN or Inf; the message gives the time.
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
    kind: Literal["flow", "map"] = "flow",
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
    callback: Progress | None = None,
    threads: int | None = None,
) -> CovariantResult:
    """Covariant Lyapunov vectors of dx/dt = f(x), or of the map x := f(x) (Ginelli et al. 2007).

    The flow or map takes each vector to the vector at the next time, and it grows at its own exponent. Memory is
    bounded, since the forward run keeps only a checkpoint every √K of its K segments.

    Parameters
    ----------
    f, jvp, x0, kind, step, delay, intervals, exponents, transient, every, seed
        As in `lyapunov`.
    time : float
        Time over which vectors are computed.
    alignment : float
        Time before `time` for the forward run's vectors to align, and after it for the backward run's vectors to align.
    split : int, optional
        `angles` are measured between the first `split` vectors and the rest; by default, `split` is the number of
        vectors that grow.
    vectors : bool
        Whether to return all vectors.
    callback : callable, optional
        Called as callback(fraction) after each segment with the share of the work that is done. Its exceptions end the
        call.
    threads : int, optional
        As for `quoin.qr`.

    Returns
    -------
    CovariantResult
        `local[i, k]` is the growth rate of vector i in segment k, of duration `segment`; `exponents` are the means over
        k. `angles[k]` is the least angle between the spans of the first `split` vectors and of the rest.
        `least_angles[i, j]` is the least angle that vectors i and j had. With `vectors`, `vectors[k]` (n, p) are the
        vectors, and `states[k]` the state, at `times[k]`.

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
        None if callback is None else function("callback", callback, ", or None"),
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
        Samples at equal intervals, with c components each.
    delays, lag : int
        A state has `delays` samples, `lag` apart, and thus c·delays variables.
    interval : float
        Time between two samples.
    theiler : int, optional
        Samples nearer in time than this are no neighbours; by default ``2 * delays * lag``.
    neighbours : int, optional
        Number of neighbours in each least-squares problem for a Jacobian; by default four for each variable and 1. Take
        more if there is noise.
    evolve : int, optional
        Number of samples that a Jacobian spans; by default `lag`.
    exponents : int, optional
        The first p; by default all.
    horizon : int, optional
        Number of samples over which nearest neighbours are followed; by default a tenth of the series.
    threads : int, optional
        As for `quoin.qr`.

    Returns
    -------
    SeriesResult
        `exponents` belong to the product of the Jacobians (Sano and Sawada 1985; Eckmann et al. 1986). `largest` is the
        slope of `logarithms`, the mean log-distance of nearest neighbours at `times`, in ``[first:last]`` (Rosenstein
        et al. 1993). Errors do not include the bias from noise, from neighbourhoods that are not small, or from too few
        delays. Exponents of directions that contract faster than the noise allows, or that the reconstruction adds,
        have no meaning. States that agree to 1e-10 of the range are no neighbours. `skipped` Jacobians are left out,
        because their neighbours do not determine them; `exponents` are nan if all are left out.

    Raises
    ------
    InvalidArgument
        If the series is too short, is constant or repeats itself.
    NonFiniteEntry
        If the series holds NaN or Inf; the message gives the sample (row) and the component (column).

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
