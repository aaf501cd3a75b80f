"""Each option does what it says, against closed forms, NumPy's and SciPy's values: a test here fails where one is
ignored."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from laws import bound, mixture

import quoin

WITH_NAN = np.ones((12, 3))
WITH_NAN[3, 1] = np.nan

# The threads that a call with one thread starts, and then a call with three; too little work for a thread of its own.
THREADS = """
import os, sys, numpy as np, quoin
A = np.random.default_rng(0).random((60000, 16))
M = np.random.default_rng(0).random((300, 300))
calls = [
    lambda k: quoin.lyapunov(lambda x: x, lambda x, V: M @ V, M[0], kind="map", time=1, transient=0, alignment=0, threads=k),
    lambda k: quoin.qr(A, threads=k), lambda k: quoin.factor(A, threads=k), lambda k: quoin.lstsq(A, A, threads=k),
    lambda k: quoin.svd(A, threads=k), lambda k: quoin.StreamingR(threads=k).partial_fit(A),
    lambda k: quoin.StreamingQR(threads=k).partial_fit(A), lambda k: quoin.GramSchmidt(60000, threads=k).append(A),
    lambda k: quoin.robust_pca(A, threads=k, max_iterations=2),
]
def started(k):
    calls[int(sys.argv[1])](k)
    return len(os.listdir("/proc/self/task")) - before
before = len(os.listdir("/proc/self/task"))
print(started(1), started(3))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux shows them")
@pytest.mark.skipif(os.environ.get("QUOIN_TEST_QUICK") == "1", reason="a sanitizer's OpenMP shares no threads with OpenBLAS's")
@pytest.mark.parametrize("call", range(9))
def test_threads(call):
    four = {**os.environ, "OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1", "OMP_DYNAMIC": "false"}
    run = subprocess.run([sys.executable, "-c", THREADS, str(call)], text=True, env=four, capture_output=True, check=True)
    one, three = map(int, run.stdout.split())
    assert one == 0 and 1 <= three <= 2


@pytest.mark.parametrize("function, defaults", [
    (quoin.qr, "reduced auto None True False False None None None False"), (quoin.factor, "auto None True False any False None"),
    (quoin.lstsq, "None auto None True solve False False None"), (quoin.lq, "reduced auto None True False"),
    (quoin.rq, "reduced auto None True False"), (quoin.ql, "reduced auto None True False"),
    (quoin.svd, "True auto None True False None None None False None"), (quoin.interpolative, "None None auto None True None"),
    (quoin.cur, "None None auto None True None"), (quoin.plan, "<class 'numpy.float64'> auto any None cpu"),
    (quoin.plan_route, "<class 'numpy.float64'> None factor 0 auto explicit None False None cpu"),
    (quoin.Factorization.apply, "False left"), (quoin.Factorization.lstsq, "None solve"), (quoin.StreamingR, "None None"),
    (quoin.StreamingQR, "None None"), (quoin.StreamingR.solve, "None solve"),
    (quoin.GramSchmidt, "0 auto off 0 <class 'numpy.float64'> None"),
    (quoin.robust_pca, "alm auto None None None 1.5 None 1000 None None None None None None"),
    (quoin.OnlineRobustPCA, "4 0.01 0.04 32 None None"),
    (quoin.RobustPCA, "None alm auto None None 1.5 None 1000 None None None"),
    (quoin.lyapunov, "flow 0.01 None 100 None None 1000.0 None 100.0 100.0 10 1 auto None 60.0 None <class 'numpy.float64'> None"),
])
def test_defaults(function, defaults):
    parameters = inspect.signature(function).parameters.values()
    found = [str(parameter.default) for parameter in parameters if parameter.default is not parameter.empty]
    assert " ".join(found) == defaults


# ---- QR -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(30, 4), (4, 30), (9, 9)])
def test_householders_factors_are_lapacks(rng, shape):
    A = rng.standard_normal(shape)
    tolerance = 100 * bound(A) * np.linalg.cond(A[:, : min(shape)])
    for mode in ("reduced", "complete", "raw"):
        for mine, reference in zip(quoin.qr(A, mode, method="householder"), np.linalg.qr(A, mode)):
            assert np.abs(mine - reference).max() <= tolerance
    assert np.abs(quoin.qr(A, "r", method="householder") - np.linalg.qr(A, "r")).max() <= tolerance
    f = quoin.factor(A, method="householder")
    Q = np.linalg.qr(A, "complete").Q
    assert np.abs(f.q[:, : min(shape)] - Q[:, : min(shape)]).max() <= tolerance
    C = rng.standard_normal((shape[0], 2))
    assert np.abs(np.abs(f.apply(C, trans=True)) - np.abs(Q.T @ C))[: min(shape)].max() <= tolerance


@pytest.mark.parametrize("method", ["householder", "tsqr", "caqr", "cholesky-qr2", "randomized-cholesky-qr"])
def test_method_is_that_of_the_report(rng, method):
    A = rng.standard_normal((60, 5))
    assert quoin.factor(A, method=method).report.method == method
    assert quoin.lstsq(A, A, method=method).report.method == method
    assert quoin.plan(60, 5, method=method).method == method
    if method == "cholesky-qr2":
        ones = np.ones((60, 5))
        for call in (quoin.qr, quoin.factor, lambda a, method: quoin.lstsq(a, ones, method=method), quoin.svd):
            with pytest.raises(quoin.NumericalBreakdown):
                call(ones, method=method)


def test_check_finite():
    for call in (quoin.qr, quoin.factor, quoin.svd, lambda a, **options: quoin.lstsq(a, np.ones(12), **options)):
        with pytest.raises(quoin.NonFiniteEntry):
            call(WITH_NAN)
        with pytest.raises(quoin.NonFiniteEntry):
            call(WITH_NAN, check_finite=True)
    assert np.isnan(quoin.factor(WITH_NAN, check_finite=False).R[:, 1:]).any()
    assert np.isnan(quoin.lstsq(WITH_NAN, np.ones(12), check_finite=False).x).all()
    with pytest.raises(quoin.NumericalBreakdown, match="R holds NaN"):
        quoin.svd(WITH_NAN, check_finite=False)


def test_verify_measures_what_numpy_measures(rng):
    A = rng.standard_normal((80, 6))
    f = quoin.factor(A, verify=True, method="householder")
    Q, R = f.q(), f.R
    residual = np.linalg.norm(A - Q.astype(np.longdouble) @ R) / np.linalg.norm(A)
    assert 0 < f.report.residual <= bound(A) and f.report.residual == pytest.approx(float(residual), rel=0.5)
    assert 0 < f.report.orthogonality <= bound(A)
    for off in (quoin.factor(A), quoin.factor(A, verify=False)):
        assert off.report.residual is None and off.report.orthogonality is None


def test_q_is_that_of_the_plan(rng):
    for q in ("none", "explicit", "reflectors"):
        assert quoin.factor(rng.standard_normal((60, 5)), q=q).plan.q == q == quoin.plan(60, 5, q=q).q


def test_routes_of_less_and_less_memory():
    free = quoin.plan_route(200_000, 40, method="tsqr", files=True)
    assert free.fits and free.route == "memory" and str(free) == str(quoin.plan(200_000, 40, method="tsqr", q="explicit"))
    assert free.plan["workspace_bytes"] == quoin.plan(200_000, 40, method="tsqr", q="explicit").workspace_bytes
    for work, route in (("factor", "files"), ("least-squares", "row-blocks"), ("svd", "memory"), ("singular-values", "row-blocks")):
        less = quoin.plan_route(200_000, 40, work=work, files=True, memory=40e6)
        assert less.route == route and less.fits == (work != "svd")
        refused = quoin.plan_route(200_000, 40, work=work, files=True, memory=1)
        assert not refused.fits and quoin.plan_route(200_000, 40, work=work, files=True, memory=refused.min_bytes).fits
    sides = [quoin.plan_route(200_000, 40, work="least-squares", right_hand_sides=p).memory_bytes for p in (0, 7)]
    assert sides[1] - sides[0] == 2 * 200_000 * 7 * 8


def test_the_plan_counts_flops():
    m, n = 4000, 300
    householder = 2 * m * n**2 - 2 * n**3 / 3  # Golub and Van Loan 2013, section 5.2
    assert quoin.plan(m, n, method="householder", q="none").flops == pytest.approx(householder, rel=0.3)
    assert quoin.plan(m, n, np.float32).dtype == "float32" and quoin.plan(m, n).dtype == "float64"
    assert quoin.plan(m, n, np.float32, method="tsqr").bytes_moved == pytest.approx(
        quoin.plan(m, n, method="tsqr").bytes_moved / 2, rel=0.2)


# ---- least squares --------------------------------------------------------------------------------------------------

SOLVERS = {
    "lstsq": lambda A, b, **options: quoin.lstsq(A, b, **options),
    "factor": lambda A, b, **options: quoin.factor(A).lstsq(b, **options),
    "stream": lambda A, b, **options: quoin.StreamingR().partial_fit(A, b).solve(**options),
}


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_rcond(rng, solve):
    A, b = rng.standard_normal((40, 4)), rng.standard_normal(40)
    A[:, 3] = A[:, 0] + 1e-5 * A[:, 3]
    with pytest.raises(quoin.RankDeficient, match=r"columns 0 and 3 of the 40x4 matrix are nearly linearly dependent .*<= rcond 5\.0e-01") as caught:
        solve(A, b, rcond=0.5, deficient="error")
    s = np.linalg.svd(A, compute_uv=False)
    assert np.isclose(caught.value.rcond, s[-1] / s[0], rtol=1e-9)
    for factor, rank in ((0.99, 4), (1.01, 3)):
        rcond = factor * s[-1] / s[0]
        x, _, expected, _ = np.linalg.lstsq(A, b, rcond=rcond)
        solution = solve(A, b, rcond=rcond)
        assert solution.rank == expected == rank and np.allclose(solution.x, x, rtol=1e-6)
    with pytest.raises(quoin.InvalidArgument, match="deficient must be 'solve' or 'error'"):
        solve(A, b, deficient="drop")


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_default_of_rcond_is_ten_units_roundoff(solve, dtype):
    u = np.finfo(dtype).eps / 2
    # 1/κ₁ of [1 1; 0 δ], whose columns have unit norm but for O(δ²), is δ/2 but for O(δ²)
    def rank(delta, **options):
        return solve(np.array([[1, 1], [0, delta], [0, 0]], dtype), np.ones(3, dtype), **options).rank

    assert rank(22 * u) == 2 and rank(18 * u) == 1 and rank(18 * u, rcond=0) == 2
    with pytest.raises(quoin.RankDeficient) as caught:
        rank(18 * u, deficient="error")
    assert 8 * u < caught.value.rcond < 10 * u


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_a_line_through_points_in_closed_form(solve):
    t = np.arange(10.0)
    noise = np.where(t % 2 == 0, 1.0, -1.0)
    solution = solve(np.column_stack([np.ones(10), t]), 3 + 2 * t + noise)
    # the normal equations of an alternating error: Σ = 0, Σ t e = −5
    slope = -5 / 82.5
    assert np.allclose(solution.x, [3 - slope * 4.5, 2 + slope], rtol=1e-14)
    assert solution.residual_norms == pytest.approx(np.sqrt(10 - 25 / 82.5), rel=1e-14)
    R = np.linalg.qr(np.column_stack([np.ones(10), t]), mode="r")
    assert solution.condition == pytest.approx(np.linalg.cond(R, 1), rel=0.5)
    assert solution.report.flops > 0 and solution.report.seconds > 0


# ---- Gram-Schmidt ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "mgs", "cgs"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_schmidt_is_qr_with_a_positive_diagonal(rng, method, dtype):
    A = rng.standard_normal((50, 8)).astype(dtype)
    basis = quoin.GramSchmidt(50, method=method, dtype=dtype)
    basis.append(A)
    Q, R = np.linalg.qr(A.astype(np.float64))
    signs = np.sign(np.diag(R))
    assert np.abs(basis.R - signs[:, None] * R).max() <= 10 * bound(A) and np.abs(basis.Q - Q * signs).max() <= 10 * bound(A)
    assert quoin.GramSchmidt(5, dtype=dtype).Q.shape == (5, 0) and quoin.GramSchmidt(5, dtype=dtype).Q.dtype == dtype


def test_options_of_gram_schmidt(rng):
    A = rng.standard_normal((60, 12)) @ np.diag(np.logspace(0, -12, 12)) @ np.linalg.qr(rng.standard_normal((12, 12))).Q

    def loss(**options):
        basis = quoin.GramSchmidt(60, **options)
        basis.append(A[:, :6])
        basis.append(A[:, 6:])
        return np.linalg.norm(basis.Q.T @ basis.Q - np.eye(12))

    # κ = 1e12: modified loses κu, classical more, reorthogonalised neither
    modified, classical = loss(method="mgs"), loss(method="cgs")
    assert 1e-8 < modified < 1e-2 < classical
    for method in ("mgs", "cgs"):
        for reorthogonalize in ("selective", "always"):
            assert loss(method=method, reorthogonalize=reorthogonalize) < 1e-13
    assert loss() < 1e-13
    for width in (1, 5):
        assert quoin.GramSchmidt(60, method="mgs", panel_width=width).__getstate__()["saved"][2] == width
        assert loss(method="mgs", panel_width=width) != modified
    assert loss(method="mgs", capacity=9) == modified


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("scheme", [{}, {"method": "mgs"}, {"method": "mgs", "reorthogonalize": "always", "panel_width": 3},
                                    {"method": "cgs", "reorthogonalize": "selective", "dtype": np.float32}])
def test_a_copy_of_gram_schmidt_is_independent_and_goes_on_with_the_same_bits(rng, scheme, again):
    A = rng.standard_normal((50, 20)).astype(scheme.get("dtype", np.float64))
    basis = quoin.GramSchmidt(50, **scheme)
    for columns in (slice(0, 0), slice(0, 1), slice(1, 9), slice(9, 20)):
        copied = again(basis)
        kept = copied.Q, copied.R
        basis.append(A[:, columns])
        assert copied.shape == (50, columns.start) and np.array_equal(copied.Q, kept[0]) and np.array_equal(copied.R, kept[1])
        copied.append(A[:, columns])
        assert np.array_equal(copied.Q, basis.Q) and np.array_equal(copied.R, basis.R) and copied.Q.dtype == A.dtype
    for mine, theirs in zip(again(basis).orthogonalize(A[::-1, :2]), basis.orthogonalize(A[::-1, :2])):
        assert np.array_equal(mine, theirs)
    copied.truncate(4)
    assert basis.shape == (50, 20)


# ---- robust PCA -----------------------------------------------------------------------------------------------------


def inexact_alm(M, lam, rho, iterations):
    """Lin, Chen and Ma 2010, Algorithm 5, by full SVDs."""
    Y = M / max(np.linalg.norm(M, 2), np.abs(M).max() / lam)
    L, mu = np.zeros_like(M), 1.25 / np.linalg.norm(M, 2)
    largest = 1e7 * mu
    for _ in range(iterations):
        Z = M - L + Y / mu
        S = np.sign(Z) * np.maximum(np.abs(Z) - lam / mu, 0)
        U, s, Vh = np.linalg.svd(M - S + Y / mu, full_matrices=False)
        s = np.maximum(s - 1 / mu, 0)
        L = (U * s) @ Vh
        Y = Y + mu * (M - L - S)
        last, mu = mu, min(rho * mu, largest)
    return L, S, Y, s, last


@pytest.mark.parametrize("options", [{}, {"lam": 0.2}, {"rho": 1.2}])
@pytest.mark.parametrize("route", ["qr", "gram"])
def test_iterates_are_those_of_the_paper(rng, route, options):
    M = sum(mixture(rng, 60, 20))
    result = quoin.robust_pca(M, route=route, max_iterations=14, tol=1e-15, **options)
    lam = options.get("lam", 1 / np.sqrt(60))
    L, S, Y, s, mu = inexact_alm(M, lam, options.get("rho", 1.5), 14)
    assert result.iterations == 14 and result.lam == pytest.approx(lam, rel=1e-15)
    assert result.mu == pytest.approx(mu, rel=1e-3)
    for mine, reference in ((result.L, L), (result.S, S), (result.Y, Y)):
        assert np.linalg.norm(mine - reference) <= 2e-3 * np.linalg.norm(reference)
    assert result.residual == pytest.approx(np.linalg.norm(M - L - S) / np.linalg.norm(M), rel=0.05)
    assert result.rank == np.count_nonzero(s)
    assert result.objective == pytest.approx(s.sum() + lam * np.abs(S).sum(), rel=1e-3)


def test_the_minimum_satisfies_its_conditions(rng):
    """‖Y‖₂ = 1, and Y = λ sign(S) where S is not 0, |Y| <= λ elsewhere (Candès, Li, Ma and Wright 2011, section 2)."""
    M = sum(mixture(rng, 60, 20))
    for lam in (None, 0.17):
        result = quoin.robust_pca(M, pursuit="alternating", tol=1e-7, max_iterations=5000, lam=lam)
        lam = lam or 1 / np.sqrt(60)
        assert result.end == "converged" and np.linalg.norm(result.Y, 2) == pytest.approx(1, rel=1e-10)
        on = result.S != 0
        assert np.allclose(result.Y[on], lam * np.sign(result.S[on]), rtol=1e-4)
        assert np.abs(result.Y).max() <= lam * (1 + 1e-4)


def test_mu_rho_and_tol(rng):
    M = sum(mixture(rng, 60, 20))
    for options, first, growth in (({}, 1.25 / np.linalg.norm(M, 2), 1.5), ({"mu": 0.3, "rho": 1.1}, 0.3, 1.1),
                                   ({"mu": 0.3, "pursuit": "alternating"}, 0.3, 1)):
        steps = []
        quoin.robust_pca(M, callback=steps.append, max_iterations=12, tol=1e-15, **options)
        expected = first * growth ** np.arange(12.0)
        assert np.allclose([step.mu for step in steps], expected, rtol=1e-3)
    steps = []
    loose = quoin.robust_pca(M, tol=1e-3, callback=steps.append)
    assert [step.residual <= 1e-3 for step in steps] == [False] * (len(steps) - 1) + [True]
    assert loose.end == "converged" and loose.iterations < quoin.robust_pca(M).iterations
    for dtype, tol in ((np.float64, 1e-7), (np.float32, 1e-5)):  # the default, which constant μ comes near to slowly
        result = quoin.robust_pca(M.astype(dtype), pursuit="alternating", max_iterations=5000)
        assert result.end == "converged" and 0.6 * tol < max(result.residual, result.dual_residual) <= tol


def test_a_warm_start_is_one_of_both(rng):
    M = sum(mixture(rng, 60, 20))
    whole = quoin.robust_pca(M)
    one = {name: quoin.robust_pca(M, mu=1.0, max_iterations=1, **start)
           for name, start in (("none", {}), ("L", {"L": whole.L}), ("Y", {"Y": whole.Y}))}
    # S = shrink(M − L + Y/μ, λ/μ)
    lam = 1 / np.sqrt(60)
    Y0 = M / max(np.linalg.norm(M, 2), np.abs(M).max() / lam)
    for name, Z in (("none", M + Y0), ("L", M - whole.L + Y0), ("Y", M + whole.Y)):
        assert np.allclose(one[name].S, np.sign(Z) * np.maximum(np.abs(Z) - lam, 0), rtol=0, atol=1e-3)


@pytest.mark.parametrize("parameter, same, value", [
    ("n_components", "max_rank", 1), ("pursuit", "pursuit", "alternating"), ("route", "route", "gram"), ("lam", "lam", 0.3),
    ("mu", "mu", 0.2), ("rho", "rho", 1.2), ("tol", "tol", 1e-3), ("max_iterations", "max_iterations", 4),
])
def test_parameters_of_the_estimator_are_the_functions(rng, parameter, same, value):
    X = sum(mixture(rng, 60, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = quoin.RobustPCA(**{"max_iterations": 200, parameter: value}).fit(X)
    result = quoin.robust_pca(X, **{"max_iterations": 200, same: value})
    assert np.array_equal(pca.low_rank_, result.L) and np.array_equal(pca.sparse_, result.S)
    assert (pca.n_components_, pca.n_iter_) == (result.rank, result.iterations)
    default = quoin.robust_pca(X, max_iterations=200)
    if parameter != "route" or not np.array_equal(quoin.robust_pca(X, route="qr").L, quoin.robust_pca(X, route="gram").L):
        assert parameter == "route" or not np.array_equal(result.L, default.L)


def test_tol_of_the_scores(rng):
    X = sum(mixture(rng, 60, 20))
    pca = quoin.RobustPCA(max_iterations=5000).fit(X)
    rows = rng.standard_normal((10, 20))  # without a sparse error: the minimum is reached slowly
    near = [pca.set_params(tol=tol).transform(rows) for tol in (1e-1, 1e-5)]

    def norms(scores):
        return np.abs(rows - scores @ pca.components_).sum(axis=1)

    assert not np.array_equal(*near)
    assert np.all(norms(near[1]) <= norms(near[0]) + 1e-5 * np.abs(rows).sum(axis=1))


# ---- Lyapunov spectra -----------------------------------------------------------------------------------------------


def bernoulli(a, **options):
    """x to x/a below a, and otherwise to (x − a)/(1 − a): independent slopes 1/a and 1/(1 − a)."""
    def f(x):
        return x / a if x[0] < a else (x - a) / (1 - a)

    def jvp(x, V):
        return V / a if x[0] < a else V / (1 - a)

    return quoin.lyapunov(f, jvp, kind="map", every=1, **options)


def test_exponents_and_their_errors_in_closed_form(rng):
    a, time, runs = 0.2, 640, 20
    results = [bernoulli(a, x0=[x], time=time, transient=5, alignment=5) for x in rng.random(runs)]
    exponent = -a * np.log(a) - (1 - a) * np.log(1 - a)
    error = np.sqrt(a * (1 - a) / time) * np.log((1 - a) / a)
    found = np.array([result.exponents[0] for result in results])
    assert abs(found.mean() - exponent) <= 4 * error / np.sqrt(runs)
    # 64 batches or more know it to 16% in each run
    assert np.mean([result.errors[0] for result in results]) == pytest.approx(error, rel=0.1)
    for result in results:
        assert result.kolmogorov_sinai.value == result.sum.value == result.exponents[0] and result.positive == 1
        assert result.sum.error == pytest.approx(result.errors[0])


def test_a_linear_flow_has_the_real_parts_of_its_eigenvalues():
    J = np.array([[0.3, 5, 0, 0], [-5, 0.3, 0, 0], [1, 0, -0.1, 0], [0, 2, 0, -1.5]])

    def run(**options):
        return quoin.lyapunov(lambda x: J @ x, lambda x, V: J @ V, [1e-9, 0, 0, 0], step=0.05, time=30, transient=0,
                              alignment=20, **options)

    result = run()
    assert np.allclose(result.exponents, [0.3, 0.3, -0.1, -1.5], atol=2e-2)
    assert result.sum.value == pytest.approx(-1.0, abs=1e-5)
    assert result.kolmogorov_sinai.value == pytest.approx(result.exponents[:2].sum())
    # j + Σλ/|λ_j+1|, j = 3: 0.5/1.5
    assert result.kaplan_yorke.value == pytest.approx(3 + result.exponents[:3].sum() / -result.exponents[3])
    assert result.positive == 2 and np.array_equal(run(exponents=2).exponents.shape, (2,))


def test_the_orbit_is_scipys():
    integrate = pytest.importorskip("scipy.integrate")

    def f(x):
        return np.array([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]])

    def error(total, **options):
        result = quoin.lyapunov(f, lambda x, V: V, [1.0, 1, 20], exponents=1, **options)
        orbit = integrate.solve_ivp(lambda t, x: f(x), (0, total), [1, 1, 20], method="DOP853", rtol=1e-12, atol=1e-12)
        return np.abs(result.state - orbit.y[:, -1]).max()

    parts = dict(time=0.3, transient=0.2, alignment=0.1)
    # of order 5: a step of twice the length has 32 times the error
    errors = [error(0.6, step=step, every=2, **parts) for step in (0.01, 0.005)]
    assert errors[0] < 2e-6 and 15 < errors[0] / errors[1] < 60


def test_times_segments_and_callbacks():
    def run(**options):
        return quoin.lyapunov(lambda x: x + 1, lambda x, V: 2 * V, [0.0], kind="map",
                              **{"time": 12, "transient": 8, "alignment": 4, "every": 2, **options})

    result = run()
    assert result.state[0] == 24 and result.time == 12 and result.segments == 6
    assert result.exponents[0] == pytest.approx(np.log(2), rel=1e-15) and np.isnan(result.errors[0])
    # the growth is the same at each time: what is left is the bound on rounding
    long, u = run(time=64), np.finfo(float).eps / 2
    assert 0 <= long.errors[0] <= 4 * u and 0 <= long.half_widths[0] <= 16 * u
    for options, state, segments in (({"time": 20}, 32, 10), ({"transient": 0}, 16, 6), ({"alignment": 0}, 20, 6),
                                     ({"every": 4}, 24, 3)):
        assert (run(**options).state[0], run(**options).segments) == (state, segments)
    seen = []
    run(callback=lambda time, fraction: seen.append((time, fraction)))
    times, fractions = zip(*seen)
    assert list(times[-6:]) == [14, 16, 18, 20, 22, 24] and fractions[-1] == 1 and sorted(fractions) == list(fractions)


def test_seed_method_and_checkpoint_seconds(tmp_path):
    J = np.array([[1.0, 3.0], [0.0, 0.5]])

    def run(**options):
        return quoin.lyapunov(lambda x: x, lambda x, V: J @ V, [0.0, 0.0], kind="map", time=6, transient=0, alignment=0, every=1,
                              **options)

    assert np.array_equal(run().exponents, run(seed=1).exponents)
    assert not np.array_equal(run(seed=2).exponents, run(seed=1).exponents)
    for method in ("householder", "mgs"):
        assert run(method=method).method == method
    for seconds, saved in ((1e-9, True), (3600, False)):
        path = tmp_path / str(saved)
        there = []
        run(checkpoint=path, checkpoint_seconds=seconds, callback=lambda *_: there.append(path.exists()))
        assert any(there) == saved and path.exists()
