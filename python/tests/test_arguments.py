"""A wrong kind of argument is an error of the right class whose text names it: no signature, no module of the
package's own."""

import warnings

import numpy as np
import pytest

import quoin

A = np.random.default_rng(0).standard_normal((12, 3))
F = quoin.factor(A)
Q, R = quoin.qr(A)


def lyapunov(**options):
    run = dict(f=lambda x: 4 * x * (1 - x), jvp=lambda x, V: (4 - 8 * x) * V, x0=[0.3], kind="map", time=5, transient=0,
               alignment=0)
    return quoin.lyapunov(**{**run, **options})


def robust_pca(**options):
    return quoin.robust_pca(**{"M": A, "max_iterations": 2, **options})


def fit(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return quoin.RobustPCA(**{"max_iterations": 2, **options}).fit(A)


def gram_schmidt(k=0, **options):
    basis = quoin.GramSchmidt(**{"m": 12, **options})
    basis.append(A)
    basis.truncate(k)


def solve(**options):
    return quoin.StreamingR().partial_fit(A, A).solve(**options)


NAMES = (None, 1, b"auto", "magic", ["auto"], np.zeros((9, 9)))
NUMBERS = (None, "1", b"1", 1j, [1.0, 2.0], np.zeros((2, 2)))
INTEGERS = (1.5, "1", np.float64(1), [1], float("nan"))
FLAGS = (None, 0, 1, "no", np.zeros(3))

CALLS = {
    quoin.qr: dict(a=A), quoin.factor: dict(a=A), quoin.lstsq: dict(a=A, b=A), quoin.svd: dict(a=A),
    quoin.interpolative: dict(a=A), quoin.cur: dict(a=A),
    quoin.qr_insert: dict(Q=Q, R=R, u=A[0], k=0), quoin.qr_delete: dict(Q=Q, R=R, k=0), quoin.qr_update: dict(Q=Q, R=R, u=A[:, 0], v=A[0]),
    quoin.plan: dict(m=12, n=3), quoin.plan_route: dict(m=12, n=3), F.apply: dict(C=A), F.lstsq: dict(b=A), robust_pca: {}, fit: {}, lyapunov: {},
    gram_schmidt: {}, solve: {}, quoin.StreamingR: {}, quoin.StreamingQR: {},
    quoin.lq: dict(a=A), quoin.rq: dict(a=A), quoin.ql: dict(a=A),
}
OPTIONS = {
    quoin.qr: "mode:name method:name threads:integer check_finite:flag positive:flag",
    quoin.factor: "method:name threads:integer check_finite:flag verify:flag q:name positive:flag callback:function",
    quoin.lstsq: "rcond:number method:name threads:integer check_finite:flag mixed_precision:flag callback:function",
    quoin.svd: "compute_uv:flag method:name threads:integer check_finite:flag full_matrices:flag rank:integer rtol:number rtol_frobenius:number "
               "callback:function",
    quoin.interpolative: "rank:integer rtol:number rtol_frobenius:number pivoting:name threads:integer check_finite:flag",
    quoin.cur: "rank:integer rtol:number rtol_frobenius:number pivoting:name threads:integer check_finite:flag",
    quoin.qr_insert: "k:integer which:name threads:integer check_finite:flag",
    quoin.qr_delete: "k:integer p:integer which:name threads:integer check_finite:flag",
    quoin.qr_update: "threads:integer check_finite:flag",
    quoin.plan: "m:integer n:integer method:name q:name threads:integer device:name",
    quoin.plan_route: "m:integer n:integer memory:number work:name right_hand_sides:integer method:name q:name host_memory:number "
                      "files:flag threads:integer device:name",
    F.apply: "trans:flag side:name",
    F.lstsq: "rcond:number",
    robust_pca: "pursuit:name route:name lam:number mu:number rho:number tol:number max_iterations:integer max_rank:integer "
                "threads:integer callback:function",
    fit: "n_components:integer pursuit:name route:name lam:number mu:number rho:number tol:number max_iterations:integer "
         "threads:integer callback:function",
    lyapunov: "kind:name step:number divergence:number exponents:integer time:number until:number transient:number alignment:number every:integer "
              "seed:integer method:name checkpoint_seconds:number threads:integer f:function callback:function",
    gram_schmidt: "m:integer capacity:integer panel_width:integer method:name reorthogonalize:name threads:integer k:integer",
    solve: "rcond:number",
    quoin.StreamingR: "threads:integer",
    quoin.StreamingQR: "threads:integer",
    **dict.fromkeys((quoin.lq, quoin.rq, quoin.ql), "mode:name method:name threads:integer check_finite:flag positive:flag"),
}
BAD = {"name": (NAMES, quoin.InvalidArgument), "number": (NUMBERS, TypeError), "integer": (INTEGERS, TypeError),
       "flag": (FLAGS, TypeError), "function": ((1, "f", [len]), TypeError)}
# None is the default of these
OPTIONAL = {"threads", "rcond", "lam", "mu", "tol", "max_rank", "n_components", "exponents", "callback", "divergence", "until", "memory", "host_memory", "rank", "rtol", "rtol_frobenius"}


def clear(error, option):
    text = str(error)
    return text.startswith(f"{option} must be ") and "\n" not in text and len(text) < 260


@pytest.mark.parametrize("function, option, kind", [
    pytest.param(function, *option.split(":"), id=f"{function.__name__}-{option}")
    for function, options in OPTIONS.items() for option in options.split()
])
def test_options_of_another_type(function, option, kind):
    values, error = BAD[kind]
    for value in values:
        if value is None and option in OPTIONAL:
            continue
        with pytest.raises(error) as caught:
            function(**{**CALLS[function], option: value})
        assert clear(caught.value, option), caught.value


@pytest.mark.parametrize("function, option, values", [
    (quoin.qr, "threads", (0, -1, 10**12, 10**400, 10**5000)), (quoin.lstsq, "rcond", (-5, 2, np.nan, -np.inf)),
    (quoin.qr_insert, "k", (13, -13, 2**63)), (quoin.qr_delete, "k", (13, -13)), (quoin.qr_delete, "p", (-1, 13, 2**63)),
    (F.lstsq, "rcond", (-5, np.nan)), (solve, "rcond", (-5, np.nan)), (quoin.plan, "m", (-1, 2**63, 10**5000)), (quoin.plan, "n", (-1, 2**64)), (quoin.plan_route, "memory", (0, -1, np.nan, np.inf)),
    (robust_pca, "lam", (0, -1, np.nan, np.inf, 10**400)), (robust_pca, "mu", (0, np.nan)), (robust_pca, "tol", (0, -1, np.nan)),
    (robust_pca, "rho", (1, 0.5, np.nan, np.inf)), (robust_pca, "max_iterations", (0, 2**63)),
    (robust_pca, "max_rank", (0, -3, 2**63)), (fit, "max_iterations", (0, -1)), (fit, "n_components", (0,)), (fit, "tol", (0, -1)),
    (gram_schmidt, "m", (-1,)), (gram_schmidt, "capacity", (-1,)), (gram_schmidt, "panel_width", (-1, 2**63)),
    (gram_schmidt, "k", (-1,)), (lyapunov, "step", (0, -1, np.nan, np.inf)), (lyapunov, "time", (0, -1, np.nan, np.inf)), (lyapunov, "until", (0, -1, np.nan, np.inf)),
    (lyapunov, "divergence", (np.nan,)),
    (lyapunov, "transient", (-1, np.nan, np.inf)), (lyapunov, "alignment", (-1, np.nan, np.inf)),
    (lyapunov, "every", (0, -1, 2**63)), (lyapunov, "seed", (-1, 2**64)), (lyapunov, "exponents", (0, 2, -1)),
    (lyapunov, "checkpoint", ("", "a\0b")), (lyapunov, "checkpoint_seconds", (0, -1, np.nan)),
])
def test_options_out_of_their_domain(function, option, values):
    for value in values:
        with pytest.raises(quoin.InvalidArgument) as caught:
            function(**{**CALLS[function], option: value})
        assert clear(caught.value, option), caught.value


def test_threads_beyond_what_a_system_gives():
    assert quoin.qr(A, threads=4096).R.shape == (3, 3)
    with pytest.raises(quoin.InvalidArgument, match="threads must be at most 4096, or None, and is 4097"):
        quoin.qr(A, threads=4097)


@pytest.mark.parametrize("option", ["mode", "method"])
def test_long_values_are_not_shown(option):
    for value, text in (("x" * 58, repr("x" * 58)), ("x" * 59, "an object of type str"),
                        (np.zeros((2, 2)), "an object of type ndarray"), (10**5000, "an object of type int")):
        with pytest.raises(quoin.InvalidArgument) as caught:
            quoin.qr(A, **{option: value})
        assert str(caught.value).endswith(f", and is {text}")


def test_integers_of_numpy_and_numbers_of_any_type_are_taken():
    assert np.array_equal(quoin.qr(A, threads=np.int8(2), check_finite=np.True_).R, quoin.qr(A).R)
    assert quoin.lstsq(A, A, rcond=np.float32(0.0)).x.shape == quoin.lstsq(A, A, rcond=0).x.shape
    assert quoin.plan(np.int64(12), np.uint8(3)) == quoin.plan(12, 3)
    assert robust_pca(lam=np.array(0.5)).lam == 0.5


@pytest.mark.parametrize("dtype", ["complex128", "float16", "int64"])
def test_types_of_what_is_made(dtype):
    for make in (lambda: quoin.GramSchmidt(3, dtype=dtype), lambda: lyapunov(dtype=dtype)):
        with pytest.raises(quoin.InvalidArgument, match=f"dtype must be float64 or float32, and is {dtype}"):
            make()
    with pytest.raises(TypeError, match=f"supports float32 and float64; the dtype is {dtype}"):
        quoin.plan(3, 3, dtype)
    for make in (quoin.GramSchmidt, lyapunov):
        with pytest.raises(TypeError, match="dtype must be float64 or float32, and is 'no'"):
            make(**({"m": 3} if make is quoin.GramSchmidt else {}), dtype="no")


@pytest.mark.parametrize("array", [None, "abc", {}, object(), np.zeros((12, 3), "M8[s]"), np.zeros((12, 3), complex)])
def test_what_is_no_array_of_numbers(array):
    basis = quoin.GramSchmidt(12)
    for call in (quoin.qr, quoin.factor, quoin.svd, lambda a: quoin.lstsq(a, A), lambda b: quoin.lstsq(A, b), F.apply, F.lstsq,
                 lambda a: quoin.StreamingR().partial_fit(a), lambda b: quoin.StreamingR().partial_fit(A, [b] if b is None else b),
                 lambda a: quoin.StreamingQR().partial_fit(a), basis.append, basis.orthogonalize, quoin.robust_pca,
                 lambda a: robust_pca(Y=[a] if a is None else a), lambda a: lyapunov(x0=a), lambda a: quoin.qr_delete(a, R, 0),
                 lambda a: quoin.qr_insert(Q, R, a, 0), lambda a: quoin.qr_update(Q, R, A[:, 0], a)):
        with pytest.raises(TypeError, match="supports float32 and float64, and computes integers and booleans in float64"):
            call(array)
    with pytest.raises((TypeError, ValueError)):
        quoin.RobustPCA().fit(array)


def test_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"dense arrays, and this one is sparse; toarray\(\) makes it dense"):
        quoin.qr(sparse.eye(3))


def test_names_that_there_are():
    for call, names in ((lambda: quoin.qr(A, mode="thin"), "mode must be 'reduced', 'complete', 'r' or 'raw', and is 'thin'"),
                        (lambda: F.apply(A, side="top"), "side must be 'left' or 'right', and is 'top'"),
                        (lambda: lyapunov(kind="orbit"), "kind must be 'flow' or 'map', and is 'orbit'"),
                        (lambda: quoin.factor(A, q="all"), "q must be 'any', 'none', 'explicit' or 'reflectors', and is 'all'"),
                        (lambda: robust_pca(route="svd"), "route must be 'auto', 'qr' or 'gram', and is 'svd'"),
                        (lambda: robust_pca(pursuit="pcp"), "pursuit must be 'alm', 'alternating' or 'stable', and is 'pcp'"),
                        (lambda: gram_schmidt(reorthogonalize="on"),
                         "reorthogonalize must be 'off', 'selective' or 'always', and is 'on'")):
        with pytest.raises(quoin.InvalidArgument) as caught:
            call()
        assert str(caught.value) == names


@pytest.mark.parametrize("shape", [(), (2, 2, 2)])
def test_arrays_of_other_dimensions(shape):
    array = np.ones(shape)
    basis = quoin.GramSchmidt(12)
    for call in (lambda b: quoin.lstsq(A, b), F.apply, F.lstsq,
                 lambda a: quoin.StreamingR().partial_fit(a), lambda b: quoin.StreamingR().partial_fit(A, b),
                 lambda a: quoin.StreamingQR().partial_fit(a), basis.append, basis.orthogonalize, quoin.robust_pca):
        with pytest.raises(np.linalg.LinAlgError, match=f"{len(shape)}-dimensional array given"):
            call(array)
    for call in (quoin.factor, quoin.svd, lambda a: quoin.lstsq(a, A)):
        with pytest.raises(np.linalg.LinAlgError, match="1-dimensional array given"):
            call(np.ones(3))
    with pytest.raises(quoin.InvalidArgument, match=f"x0 must have one dimension, and has {len(shape)}"):
        lyapunov(x0=array)


@pytest.mark.parametrize("key, error, message", [
    (12, IndexError, "row 12 is out of bounds: Q is 12x12"), (-13, IndexError, "row -13 is out of bounds: Q is 12x12"),
    ((0, 12), IndexError, "column 12 is out of bounds: Q is 12x12"), ((0, -13), IndexError, "column -13 is out"),
    ((0, 1, 2), IndexError, "takes two indices, and was given 3"), ((), IndexError, "was given 0"),
    (1.5, TypeError, "takes integers and slices, and the row is 1.5"), ((0, None), TypeError, "the column is None"),
    ([0, 1], TypeError, r"the row is \[0, 1\]"), (slice(0, 4, 2), quoin.InvalidArgument, "slices of step 1, and the step is 2"),
])
def test_indices_of_q(key, error, message):
    with pytest.raises(error, match=message):
        F.q[key]


def test_q_that_was_not_asked_for():
    with pytest.raises(quoin.InvalidArgument, match=r"needs Q, and the factorization was asked for R alone \(q = none\)"):
        quoin.factor(A, q="none").q()


def test_public_names_are_quoins_own():
    for name in quoin.__all__:
        assert getattr(quoin, name).__module__ == "quoin"
    assert repr(quoin.InvalidArgument) == "<class 'quoin.InvalidArgument'>"
    assert "quoin.StreamingR object" in repr(quoin.StreamingR())


@pytest.mark.parametrize("call", [
    quoin.qr, quoin.factor, quoin.svd, lambda a: quoin.lstsq(a, A), lambda b: quoin.lstsq(A, b), lambda a: quoin.qr([a, a]),
    lambda a: quoin.qr([a, A[:5]]), F.apply, lambda a: quoin.StreamingR().partial_fit(a), lambda a: quoin.GramSchmidt(12).append(a),
    quoin.RobustPCA().fit(A).transform, lambda a: quoin.robust_pca(A, L=a),
])
def test_masked_entries_are_not_taken_for_numbers(call):
    masked = np.ma.masked_array(A, np.zeros(A.shape, bool))
    call(masked)
    masked[1, 2] = np.ma.masked
    with pytest.raises(quoin.InvalidArgument, match=f"1 masked of {A.size} entries"):
        call(masked)


def test_what_numpy_and_scipy_have_and_quoin_has_not():
    for mine, thin in zip(quoin.svd(A, full_matrices=False), quoin.svd(A)):
        assert np.array_equal(mine, thin)
    values = quoin.svd(A, compute_uv=False, full_matrices=True)  # as NumPy's, which does not look at full_matrices then
    assert np.array_equal(values, quoin.svd(A, compute_uv=False))
    with pytest.raises(quoin.InvalidArgument, match="thin"):
        quoin.svd(A, full_matrices=True, rank=2)
    with pytest.raises(quoin.InvalidArgument, match="give rank instead"):
        quoin.svd(np.stack([A, A]), rtol=0.1)
    assert np.array_equal(quoin.qr(A, pivoting=False).R, quoin.qr(A).R)
    for value in (*FLAGS, "least", b"greedy"):
        with pytest.raises((TypeError, quoin.InvalidArgument)) as caught:
            quoin.qr(A, pivoting=value)
        assert clear(caught.value, "pivoting")
    for options, why in (
        ({"rank": 2}, "add pivoting=True"), ({"pivoting": True, "rank": 99}, "at most min"),
        ({"pivoting": True, "rank": 2, "mode": "complete"}, "'reduced' or 'r'"), ({"pivoting": "strong", "rtol": -1}, "negative"),
    ):
        with pytest.raises(quoin.InvalidArgument, match=why):
            quoin.qr(A, **options)
    for a, options, why in (
        (A, {"mode": "raw"}, "must not be 'raw'"),
        (A, {"method": "tsqr"}, "pivoting is by householder"),
        ([A, A[:3]], {}, "a list of them"),
    ):
        with pytest.raises(quoin.InvalidArgument, match=why):
            quoin.qr(a, pivoting=True, **options)
    for a, options, why in (
        (A, {"mode": "raw"}, "another mode than 'raw'"),
        (np.stack([A, A]), {}, "an array of 3 dimensions"),
        ([A, A[:3]], {}, "a list of them"),
    ):
        with pytest.raises(quoin.InvalidArgument, match=why):
            quoin.qr(a, positive=True, **options)
        if "mode" not in options:
            with pytest.raises(quoin.InvalidArgument, match=why):
                quoin.factor(a, positive=True)


@pytest.mark.parametrize("call", [quoin.qr, quoin.factor, quoin.svd, lambda a: quoin.lstsq(a, [1.0]), quoin.robust_pca])
def test_lists_that_are_no_matrix(call):
    with pytest.raises(quoin.InvalidArgument, match="rows of one length"):
        call([[1, 2], [3]])
    with pytest.raises(np.linalg.LinAlgError, match=r"two-dimensional, and its shape is \(0,\)"):
        call([])


@pytest.mark.parametrize("call", [quoin.svd, quoin.robust_pca])
@pytest.mark.parametrize("shapes", [[(3, 3), (4, 4)], [(2, 3), (2, 4)]])
def test_matrices_of_several_shapes_where_no_batch_is_taken(call, shapes):
    with pytest.raises(quoin.InvalidArgument, match="for qr, factor and lstsq alone: call this function for each"):
        call([np.ones(shape) for shape in shapes])
