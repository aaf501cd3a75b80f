import os
import signal
import threading
import warnings

import numpy as np
import pytest
from laws import QUICK

import quoin


def lorenz(x):
    return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]


def lorenz_jvp(x, V):
    return np.array([[-10, 10, 0], [28 - x[2], -1, -x[0]], [x[1], x[0], -8 / 3]]) @ V


def test_a_flow_has_its_spectrum():
    time = 60 if QUICK else 200
    result = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], time=time, transient=10, alignment=10, step=0.02, every=5)
    known = np.array([0.906, 0, -14.572])
    assert np.all(np.abs(result.exponents - known) <= 5 * result.errors + 0.02)
    assert np.all(result.half_widths > 1.9 * result.errors) and result.sum.half_width >= result.sum.error
    assert result.every == 5 and result.discarded >= 0 and result.resolved and result.reached
    assert result.sum.value == pytest.approx(-41 / 3, abs=1e-3)
    assert result.kaplan_yorke.value == pytest.approx(2.062, abs=0.02)
    assert result.kolmogorov_sinai.value == pytest.approx(max(result.exponents[0], 0) + max(result.exponents[1], 0))
    assert result.positive == 1 and result.completed and result.segments == 10 * time and result.time == pytest.approx(time)
    assert result.averages.shape == (3, result.times.size)
    assert result.state.shape == (3,)


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_any_order_and_type(order):
    def jvp(x, V):
        assert V.shape == (3, 2) and x.shape == (3,)
        return np.array(lorenz_jvp(x, V), order=order)

    a = quoin.lyapunov(lorenz, jvp, (1, 1, 20), exponents=2, time=5, transient=1, alignment=1)
    b = quoin.lyapunov(lambda x: np.array(lorenz(x)), lorenz_jvp, np.array([1, 1, 20]), exponents=2, time=5, transient=1,
                       alignment=1)
    assert np.array_equal(a.exponents, b.exponents) and a.exponents.shape == (2,)
    assert np.isnan(a.kaplan_yorke.value) or a.exponents[1] < 0


def test_vectors_in_float32_follow_the_same_orbit():
    run = dict(time=20, transient=2, alignment=2)
    wide, narrow = (quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], dtype=dtype, **run) for dtype in ("f8", np.float32))
    assert np.array_equal(wide.state, narrow.state)
    assert np.all(np.abs(wide.exponents - narrow.exponents) <= 1e-4)
    assert not np.array_equal(wide.exponents, narrow.exponents)
    with pytest.raises(quoin.InvalidArgument, match="dtype must be float64 or float32, and is int64"):
        quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], dtype=int, **run)


def test_steps_between_factorizations_are_cut_and_said():
    with pytest.warns(UserWarning, match="too far apart in 200 steps"):
        result = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], step=0.02, every=200, time=80, transient=4, alignment=4,
                                divergence=-41 / 3)
    assert result.every <= 100
    assert result.sum.value == pytest.approx(-41 / 3, abs=1e-2) and result.exponents[2] == pytest.approx(-14.57, abs=0.3)


def test_a_delay_by_its_jacobian_and_by_dual_numbers():
    def f(x, y):
        return [0.2 * y[0] / (1 + y[0] ** 10) - 0.1 * x[0]]

    def jvp(x, y, V, W):
        power = y[0] ** 10
        return 0.2 * (1 - 9 * power) / (1 + power) ** 2 * W - 0.1 * V

    run = dict(delay=17, intervals=10, exponents=3, time=300, transient=100, alignment=100, every=5)
    own, dual = (quoin.lyapunov(f, j, [0.5], **run) for j in (jvp, None))
    assert own.state.shape == (11,) and np.array_equal(own.state, dual.state)
    assert np.allclose(own.exponents, dual.exponents, atol=1e-9)
    assert abs(own.exponents[0]) < 0.05 and own.exponents[2] < -0.01
    vectors = quoin.covariant_lyapunov(f, jvp, [0.5], **run, vectors=True)
    assert vectors.states.shape[1:] == (11,) and vectors.vectors.shape[1:] == (11, 3)
    with pytest.raises(quoin.InvalidArgument, match="delay is for a flow"):
        quoin.lyapunov(f, jvp, [0.5], kind="map", **run)


def test_a_wrong_sum_is_an_error():
    run = dict(kind="map", time=64, transient=0, alignment=0, every=1)
    assert quoin.lyapunov(lambda x: x, lambda x, V: 3 * V, [1.0], divergence=np.log(3), **run).sum.value > 1
    with pytest.raises(quoin.NumericalBreakdown, match="must be 1"):
        quoin.lyapunov(lambda x: x, lambda x, V: 3 * V, [1.0], divergence=1, **run)


def test_until_ends_the_run():
    def henon(**options):
        return quoin.lyapunov(lambda x: np.array([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]]),
                              lambda x, V: np.array([[-2.8 * x[0], 1.0], [0.3, 0.0]]) @ V, [0.1, 0.1], kind="map", **options)

    result = henon(time=1e5, until=0.05)
    assert result.reached and result.time < 1e5 and np.all(result.half_widths <= 0.05)
    with pytest.warns(UserWarning, match="until=1e-05 was not reached"):
        assert not henon(time=1000, until=1e-5).reached


def test_methods_agree():
    run = dict(time=5, transient=1, alignment=1)
    spectra = [quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], method=method, **run)
               for method in ("householder", "tsqr", "caqr", "cholesky-qr2", "mgs")]
    for other in spectra[1:]:
        assert np.array_equal(other.state, spectra[0].state)
        assert np.allclose(other.exponents, spectra[0].exponents, atol=1e-9)


def test_what_the_callers_code_is_given_may_be_kept():
    kept = []

    def f(x):
        kept.append(x)
        return 4 * x * (1 - x)

    quoin.lyapunov(f, lambda x, V: (4 - 8 * x) * V, [0.3], kind="map", time=30, transient=0, alignment=0, every=1)
    # segments of the state alone, whose time is measured, come again; 16 more show the effect of rounding
    states = {x.item() for x in kept}
    assert len(states) == 46 and sum(4 * x * (1 - x) in states for x in states) == 45


def test_callbacks_checkpoints_and_exceptions(tmp_path):
    run = dict(time=20, transient=1, alignment=1)
    whole = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], **run)
    saved = tmp_path / "run"
    stopped = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], checkpoint=saved, callback=lambda t, part: t < 7, **run)
    assert not stopped.completed and stopped.time == pytest.approx(5)

    class Mine(Exception):
        pass

    def raising(x, V):
        if raising.left == 0:
            raise Mine
        raising.left -= 1
        return lorenz_jvp(x, V)

    raising.left = 1000
    with pytest.raises(Mine):
        quoin.lyapunov(lorenz, raising, [1, 1, 20], checkpoint=saved, **run)

    def interrupt(time, fraction):
        if time > 12:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], checkpoint=saved, callback=interrupt, **run)
    resumed = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], checkpoint=os.fspath(saved), **run)
    assert np.array_equal(resumed.exponents, whole.exponents) and np.array_equal(resumed.errors, whole.errors)
    with pytest.raises(quoin.InvalidArgument, match="another run"):
        quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], checkpoint=saved, seed=9, **run)


def test_refusals():
    run = dict(time=1, transient=0, alignment=0)
    for wrong, match in [
        (dict(kind="orbit"), "kind"),
        (dict(exponents=4), "dimension 3"),
        (dict(exponents=0), "exponents"),
        (dict(step=0), "step"),
        (dict(every=0), "every"),
        (dict(seed=-1), "seed"),
        (dict(method="magic"), "magic"),
    ]:
        with pytest.raises(quoin.InvalidArgument, match=match):
            quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], **{**run, **wrong})
    with pytest.raises(quoin.InvalidArgument, match="x0"):
        quoin.lyapunov(lorenz, lorenz_jvp, [[1, 1, 20]], **run)
    with pytest.raises(quoin.InvalidArgument, match=r"jvp must return an array of shape \(3, 3\)"):
        quoin.lyapunov(lorenz, lambda x, V: V[:2], [1, 1, 20], **run)
    with pytest.raises(quoin.InvalidArgument, match=r"f must return"):
        quoin.lyapunov(lambda x: x[:2], lorenz_jvp, [1, 1, 20], **run)
    with pytest.raises(quoin.NonFiniteEntry, match="state at time"):
        quoin.lyapunov(lambda x: [float(x[0]) * 1e200], lambda x, V: V, [2.0], kind="map", **{**run, "time": 100})


def test_runs_in_threads():
    results = {}

    def run(seed):
        results[seed] = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], seed=seed, time=3, transient=1, alignment=1).exponents

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (1, 2, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], seed=2, time=3, transient=1, alignment=1).exponents
    assert np.array_equal(results[2], alone)


# ---- Jacobians by themselves ----------------------------------------------------------------------------------------


def test_dual_numbers_have_the_derivatives():
    def f(x):
        a, b = x[0], x[1]
        return [a * b - 3 / a + 2, (a - b) / (1 + b**2) - a**b, 2.0**a - abs(-b) + np.float64(3) * a,
                np.sin(a) * np.cos(b) + np.tan(a) + np.exp(-a) + np.log(b) + np.sqrt(a) + np.tanh(a * b),
                np.arcsin(a / 2) + np.arccos(a / 3) + np.arctan(b) + np.sinh(a) + np.cosh(b) + np.square(a) + np.reciprocal(b),
                (a % 0.5) + (+b) - (1 - a) if a < b else 0 * a, 7.0]

    from quoin.apps._derivatives import jvp_of

    x, V = np.array([0.7, 1.3]), np.array([[1.0, 0, 2], [0, 1, -1]])
    _, jvp = jvp_of(f, None)
    step = 1e-6
    differences = np.stack([(np.array(f(x + step * v)) - np.array(f(x - step * v))) / (2 * step) for v in V.T], axis=1)
    assert np.allclose(jvp(x, V), differences, rtol=0, atol=1e-8)
    # whole arrays
    J = np.array([[1.0, 2], [3, 4]])
    _, jvp = jvp_of(lambda x: J @ x * x + np.roll(x, 1) ** 2, None)
    assert np.allclose(jvp(x, V), np.diag(x) @ J @ V + (J @ x)[:, None] * V + 2 * np.roll(x, 1)[:, None] * np.roll(V, 1, axis=0))


@pytest.mark.parametrize("library", [None, "jax", "torch"])
def test_jacobians_by_themselves_give_the_same_spectrum(library):
    if library == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    elif library == "torch":
        pytest.importorskip("torch")
    run = dict(time=3, transient=1, alignment=1)
    own = quoin.lyapunov(lorenz, library, [1, 1, 20], **run)
    given = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], **run)
    # the library's sums may be ordered differently: chaos takes u to u·exp(0.9·5)
    assert np.allclose(own.exponents, given.exponents, rtol=0, atol=1e-9)


def test_functions_that_duals_cannot_pass():
    run = dict(time=1, transient=0, alignment=0)
    with pytest.raises(quoin.InvalidArgument, match="dual numbers"):
        quoin.lyapunov(lambda x: np.asarray(x, dtype=float), None, [1.0], kind="map", **run)
    with pytest.raises(quoin.InvalidArgument, match="'jax' or 'torch', and is 'numba'"):
        quoin.lyapunov(lorenz, "numba", [1, 1, 20], **run)
    with pytest.raises(TypeError, match="jvp must be callable, None, 'jax' or 'torch'"):
        quoin.lyapunov(lorenz, 3, [1, 1, 20], **run)


# ---- covariant vectors ----------------------------------------------------------------------------------------------


def test_covariant_vectors_are_mapped_to_each_other():
    run = dict(time=20, transient=10, alignment=30, step=0.01, every=10)
    c = quoin.covariant_lyapunov(lorenz, None, [1, 1, 20], vectors=True, **run)
    assert c.local.shape == (3, 200) and c.vectors.shape == (200, 3, 3) and c.states.shape == (200, 3)
    assert np.allclose(np.diff(c.times), c.segment) and np.allclose(c.local.mean(axis=1), c.exponents)
    for x, V, angle in zip(c.states, c.vectors, c.angles):
        flow = np.array(lorenz(x))
        assert abs(flow @ V[:, 1]) >= (1 - 1e-8) * np.linalg.norm(flow)
        # of the first vector to the plane of the others
        normal = np.cross(V[:, 1], V[:, 2])
        assert angle == pytest.approx(np.arcsin(abs(normal @ V[:, 0]) / np.linalg.norm(normal)), abs=1e-8)
    assert c.least_angles[0, 1] <= np.arccos(np.abs(np.sum(c.vectors[:, :, 0] * c.vectors[:, :, 1], axis=1)).max()) + 1e-7
    small = quoin.covariant_lyapunov(lorenz, lorenz_jvp, [1, 1, 20], exponents=2, split=1, **run)
    assert small.vectors is None and small.exponents.shape == (2,) and small.split == 1
    with pytest.raises(quoin.NumericalBreakdown, match="fewer steps per QR"):
        quoin.covariant_lyapunov(lorenz, lorenz_jvp, [1, 1, 20], every=500, time=10)
    for wrong, match in [(dict(split=4), "split"), (dict(time=0), "time"), (dict(exponents=4), "exponents")]:
        with pytest.raises(quoin.InvalidArgument, match=match):
            quoin.covariant_lyapunov(lorenz, lorenz_jvp, [1, 1, 20], **wrong)
    with pytest.raises(TypeError, match="vectors must be True or False"):
        quoin.covariant_lyapunov(lorenz, lorenz_jvp, [1, 1, 20], vectors=1)


# ---- measured series ------------------------------------------------------------------------------------------------


def test_a_measured_series_has_its_exponents():
    x = [0.1, 0.1]
    for _ in range(1000 if QUICK else 3000):
        x.append(1 - 1.4 * x[-1] ** 2 + 0.3 * x[-2])
    result = quoin.lyapunov_series(x, delays=2, horizon=30, interval=0.5)
    assert result.exponents == pytest.approx([0.419 / 0.5, -1.623 / 0.5], abs=0.2)
    assert result.largest.value == pytest.approx(0.419 / 0.5, abs=0.15) and result.kaplan_yorke.value == pytest.approx(1.26, abs=0.03)
    assert result.times[1] == 0.5 and result.logarithms.shape == (30,) and 0 <= result.first < result.last <= 30
    both = np.column_stack([x[1:], 0.3 * np.array(x[:-1])])
    assert quoin.lyapunov_series(both, delays=1, horizon=30).exponents == pytest.approx([0.419, -1.623], abs=0.1)
    for wrong, match in [(dict(delays=0), "delays"), (dict(delays=2000), "too short"), (dict(neighbours=2), "neighbours"),
                         (dict(exponents=9), "exponents"), (dict(interval=0), "interval"), (dict(horizon=4), "horizon")]:
        with pytest.raises(quoin.InvalidArgument, match=match):
            quoin.lyapunov_series(x, **wrong)
    with pytest.raises(quoin.InvalidArgument, match="one or two dimensions"):
        quoin.lyapunov_series(np.zeros((3, 3, 3)))


def test_a_series_of_an_instrument_that_rounds():
    x = [0.3]
    for _ in range(2999):
        x.append(4 * x[-1] * (1 - x[-1]))
    # four decimals, and the integers of a converter with 12 bits: rounding is noise, of some percent of ln 2
    decimals, integers = np.round(x, 4), np.round(np.array(x) * 4095).astype(np.int32)
    for series in (integers,) if QUICK else (decimals, integers):
        result = quoin.lyapunov_series(series, delays=1, horizon=30)
        assert result.exponents == pytest.approx([np.log(2)], abs=0.02) and result.skipped < 60
        assert result.largest.value == pytest.approx(np.log(2), abs=0.035)
    with pytest.warns(UserWarning, match="Jacobians are left out"):
        sine = quoin.lyapunov_series(np.sin(0.1 * np.arange(1500)), lag=10)
    assert np.isnan(sine.exponents).all() and sine.skipped == 147 and abs(sine.largest.value) < 1e-3
    for series, match in [(np.ones(500), "is constant"), (np.tile([1.0, 2, 3, 2], 200), "repeats itself every 4 samples")]:
        with pytest.raises(quoin.InvalidArgument, match=match):
            quoin.lyapunov_series(series)
    gap = np.random.default_rng(0).standard_normal((500, 2))
    gap[300, 1] = np.nan
    with pytest.raises(quoin.NonFiniteEntry, match="row 300, column 1"):
        quoin.lyapunov_series(gap)


def test_regular_motion_has_the_error_of_its_step():
    def cycle(x):  # r' = r(1 - r^2), an angle that grows by 1: 0 and -2
        r = x[0] * x[0] + x[1] * x[1]
        return [x[0] * (1 - r) - x[1], x[1] * (1 - r) + x[0]]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = quoin.lyapunov(cycle, None, [1, 0.5], step=0.1, time=60, transient=30, alignment=30)
    error = np.abs(result.exponents - [0, -2])
    assert 1e-9 < error[1] < result.half_widths[1] < 10 * error[1] and error[0] <= result.half_widths[0]
