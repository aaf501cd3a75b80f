import copy
import pickle

import numpy as np
import pytest
from laws import assert_orthonormal, assert_product, assert_upper, bound, wide

import quoin


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (50, 7), (7, 50), (3000, 20)])
@pytest.mark.parametrize("method", ["auto", "householder", "tsqr", "caqr"])
def test_r_and_q(rng, shape, dtype, method):
    A = rng.standard_normal(shape).astype(dtype)
    f = quoin.factor(A, method=method)
    Q = f.q()
    assert f.shape == shape and Q.dtype == f.R.dtype == dtype
    assert_orthonormal(Q)
    assert_upper(f.R)
    assert_product(Q, f.R, A)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_apply_is_the_product_with_the_square_q(rng, trans, order):
    f = quoin.factor(rng.standard_normal((30, 4)))
    Q = f.q[:, :]
    assert_orthonormal(Q)
    op = Q.T if trans else Q
    C = np.array(rng.standard_normal((30, 6)), order=order)
    kept = C.copy()
    tolerance = bound(np.empty((30, 30))) * np.linalg.norm(C)
    assert np.linalg.norm(f.apply(C, trans=trans) - op @ C) <= tolerance
    assert np.linalg.norm(f.apply(C.T, trans=trans, side="right") - C.T @ op) <= tolerance
    assert np.linalg.norm(f.apply(C[:, 0], trans=trans) - op @ C[:, 0]) <= tolerance
    assert f.apply(C[:, 0], side="right").shape == (30,)
    assert np.array_equal(C, kept)


def test_blocks_of_q(rng):
    f = quoin.factor(rng.standard_normal((30, 4)), method="householder")
    Q = f.q[:, :]
    tolerance = bound(Q)
    for key in [(slice(3, 9), slice(1, 28)), (slice(-4, None), slice(0, 2)), (slice(9, 3), slice(None)),
                (5, slice(None)), (slice(None), -1), (2, 3)]:
        assert np.shape(f.q[key]) == np.shape(Q[key])
        assert np.all(np.abs(f.q[key] - Q[key]) <= tolerance)
    assert np.array_equal(f.q[4], f.q[4, :])
    with pytest.raises(quoin.InvalidArgument):
        f.q[::2, :]
    with pytest.raises(IndexError):
        f.q[30, 0]


def test_arguments_of_apply(rng):
    f = quoin.factor(rng.standard_normal((30, 4)))
    with pytest.raises(quoin.InvalidArgument, match="30"):
        f.apply(np.ones((4, 30)))
    with pytest.raises(quoin.InvalidArgument, match="side"):
        f.apply(np.ones((30, 2)), side="above")
    with pytest.raises(np.linalg.LinAlgError):
        f.apply(np.ones((30, 2, 2)))
    with pytest.raises(TypeError, match="supports"):
        f.apply(np.ones((30, 2), complex))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (60, 9), (9, 60), (9, 9), (220, 150)])
@pytest.mark.parametrize("arguments", [{"method": "householder"}, {"q": "reflectors"},
                                       {"method": "tsqr", "q": "reflectors"}])
def test_v_t_and_tau_are_lapacks(rng, shape, arguments, dtype):
    A = rng.standard_normal(shape).astype(dtype)
    m, k = shape[0], min(shape)
    f = quoin.factor(A, **arguments)
    V, T, tau = f.V, f.T, f.tau
    assert V.shape == (m, k) and T.shape == (k, k) and tau.shape == (k,)
    assert V.dtype == T.dtype == tau.dtype == dtype
    assert_upper(T)
    assert np.array_equal(T.diagonal(), tau)
    assert np.array_equal(np.triu(V), np.eye(m, k))
    H = (np.eye(m) - wide(V) @ wide(T) @ wide(V).T).astype(dtype)
    assert_orthonormal(H)
    assert_product(H[:, :k], f.R, A)
    assert np.linalg.norm(H - f.q[:, :]) <= bound(A) * np.sqrt(m)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lapack_takes_v_and_t_and_makes_the_same(rng, dtype):
    lapack = pytest.importorskip("scipy.linalg.lapack")
    geqrt, gemqrt = (getattr(lapack, "sd"[dtype == np.float64] + name) for name in ("geqrt", "gemqrt"))
    A, C = rng.standard_normal((200, 40)).astype(dtype), rng.standard_normal((200, 7)).astype(dtype)
    for panels in ({"method": "householder"}, {"method": "cholesky-qr2", "q": "reflectors"}):
        f = quoin.factor(A, **panels)
        for trans in (False, True):
            product, info = gemqrt(f.V, f.T, C, trans="T" if trans else "N")
            assert info == 0
            assert np.linalg.norm(product - f.apply(C, trans=trans)) <= bound(A) * np.linalg.norm(C)
    f = quoin.factor(A, method="householder")
    V_R, T, info = geqrt(40, A)
    assert info == 0
    # reflectors of two backward stable factorizations differ by the condition of the leading columns
    condition = np.linalg.cond(A.astype(np.float64))
    assert np.linalg.norm(np.tril(V_R, -1) - np.tril(f.V, -1)) <= bound(A) * condition * np.linalg.norm(f.V)
    assert np.linalg.norm(np.triu(T) - f.T) <= bound(A) * condition * np.linalg.norm(T)


@pytest.mark.parametrize("arguments", [{"method": "cholesky-qr2"}, {"q": "explicit"}, {"q": "none"}])
def test_v_t_and_tau_where_none_are_kept(rng, arguments):
    f = quoin.factor(rng.standard_normal((500, 10)), **arguments)
    for name in ("V", "T", "tau"):
        with pytest.raises(quoin.InvalidArgument, match=f"{name} belongs to LAPACK's format.*q = reflectors"):
            getattr(f, name)


def test_arguments_of_factor(rng):
    with pytest.raises(quoin.InvalidArgument, match="q must be"):
        quoin.factor(np.eye(3), q="all")
    f = quoin.factor(rng.standard_normal((50, 3)), q="none")
    assert_upper(f.R)
    with pytest.raises(quoin.InvalidArgument, match="needs Q"):
        f.q()


def test_report_and_plan(rng):
    f = quoin.factor(rng.standard_normal((500, 10)), method="tsqr", verify=True)
    assert f.report.method == f.plan.method == "tsqr" and not f.report.fell_back
    assert 0 < f.report.seconds < 60 and f.report.flops == f.plan.flops
    assert 0 < f.report.residual < 1e-14 and 0 < f.report.orthogonality < 1e-13
    assert quoin.factor(np.eye(3)).report.residual is None
    assert "500" in str(f.plan) and f.plan.kernels == quoin.plan(500, 10, method="tsqr").kernels != ()


def test_a_factorization_says_that_it_does_not_pickle():
    with pytest.raises(TypeError, match="raw"):
        pickle.dumps(quoin.factor(np.eye(3)))


@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (6, 6)])
@pytest.mark.parametrize("columns", [None, 0, 3])
def test_least_squares(rng, shape, columns):
    A = rng.standard_normal(shape)
    b = rng.standard_normal(shape[:1] if columns is None else (shape[0], columns))
    solution = quoin.lstsq(A, b)
    x, norms, condition = solution.x, solution.residual_norms, solution.condition
    reference = np.linalg.lstsq(A, b, rcond=None)[0]
    assert x.shape == reference.shape and norms.shape == b.shape[1:]
    assert np.linalg.norm(x - reference) <= bound(A) * condition**2 * max(1.0, np.linalg.norm(reference))
    if shape[0] > shape[1]:
        assert np.allclose(norms, np.linalg.norm(b - A @ x, axis=0), rtol=1e-12)
    if shape[0] >= shape[1]:
        assert np.array_equal(quoin.factor(A).lstsq(b).x, x)


def test_least_squares_in_mixed_precision(rng):
    A, b = rng.standard_normal((200, 30)), rng.standard_normal((200, 2))
    refined, reference = quoin.lstsq(A, b, mixed_precision=True), quoin.lstsq(A, b)
    assert refined.refinement.steps > 0 and refined.refinement.fell_back == "" and reference.refinement == (0, "")
    assert np.linalg.norm(refined.x - reference.x) <= bound(A) * reference.condition**2
    deficient = np.column_stack([A, A[:, 0]])
    solution = quoin.lstsq(deficient, b, mixed_precision=True)
    assert "condition" in solution.refinement.fell_back and solution.rank == 30
    assert np.array_equal(solution.x, quoin.lstsq(deficient, b).x)
    for operands in ((A.astype(np.float32), b.astype(np.float32)), (A.T, b[:30]), (A[None], b)):
        with pytest.raises(quoin.InvalidArgument, match="mixed_precision"):
            quoin.lstsq(*operands, mixed_precision=True)


@pytest.mark.parametrize("columns", [(), (2,)], ids=str)
@pytest.mark.parametrize("shape", [(30, 4), (4, 4), (4, 30), (5, 0), (1, 1)], ids=str)
def test_least_squares_unpacks_to_numpys_four_values(rng, shape, columns):
    A, b = rng.standard_normal(shape), rng.standard_normal((shape[0], *columns))
    solution = quoin.lstsq(A, b)
    assert "s" not in vars(solution)  # computed when it is looked at
    for again in (solution, pickle.loads(pickle.dumps(solution)), copy.deepcopy(solution)):
        assert len(again) == 4 and len(again[1:]) == 3 and again[-1] is again.s and type(again.rank) is int
        for mine, theirs in zip(again, np.linalg.lstsq(A, b, rcond=None)):
            assert np.shape(mine) == np.shape(theirs) and np.allclose(mine, theirs, rtol=1e-9, atol=1e-13)
        assert again.residual_norms.shape == columns and again.report == solution.report
    A.fill(0)  # s belongs to the matrix that was solved
    assert np.array_equal(solution.s, again.s)
    if shape[0] >= shape[1]:
        A = rng.standard_normal(shape)
        for mine, theirs in zip(quoin.factor(A).lstsq(b), np.linalg.lstsq(A, b, rcond=None)):
            assert np.shape(mine) == np.shape(theirs) and np.allclose(mine, theirs, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("size", [1e-310, 1e300])
def test_singular_values_of_a_system_at_the_ends_of_the_range(rng, size):
    A = rng.standard_normal((30, 4))
    x, _, rank, s = quoin.lstsq(A * size, np.ones(30))
    assert rank == 4 and np.allclose(s / size, np.linalg.svd(A, compute_uv=False), rtol=1e-9 if size > 1 else 1e-4)


def test_least_squares_of_nan_has_no_rank(rng):
    A = rng.standard_normal((3, 8, 4))
    A[1, 2, 3] = np.nan
    _, squares, rank, s = quoin.lstsq(A, np.ones(8), check_finite=False)
    assert rank.tolist() == [4, 0, 4] and np.isnan(squares[1]).all() and np.isnan(s[1]).all()
    assert np.allclose(s[::2], np.linalg.svd(A[::2], compute_uv=False), rtol=1e-12)
    assert quoin.lstsq(A[1], np.ones(8), check_finite=False).rank == 0


@pytest.mark.parametrize("dependent", [(0, 3), (0, 16, 17, 18, 19), tuple(range(12))], ids=str)
@pytest.mark.parametrize("wide", [False, True])
def test_least_squares_names_dependent_columns(rng, dependent, wide):
    A = rng.standard_normal((50, 20))
    last, others = dependent[-1], list(dependent[:-1])
    A[:, last] = A[:, others] @ rng.choice([-1.0, 1.0], len(others))
    named = f"{', '.join(map(str, others))} and {last}" if len(dependent) < 9 else "0, 1, 2, 3, 4, 5, 6, 7 and 4 others"
    what = "rows" if wide else "columns"
    b = rng.standard_normal((20 if wide else 50, 2))

    def refuse(match=None):
        given = A.T if wide else A
        with pytest.raises(quoin.RankDeficient, match=match):
            quoin.lstsq(given, b, deficient="error")
        solution, (x, residuals, rank, s) = quoin.lstsq(given, b), np.linalg.lstsq(given, b, rcond=None)
        assert solution.rank == rank and len(solution.dependent) == 20 - rank
        assert np.allclose(solution.x, x, rtol=0, atol=1e-12) and np.allclose(solution.s, s, rtol=0, atol=1e-12)
        assert np.allclose(solution.residual_norms, np.linalg.norm(given @ x - b, axis=0), rtol=1e-12)
        assert solution.residuals.shape == residuals.shape == (0,)
        return solution

    assert refuse(f"^{what} {named} of the .* are linearly dependent .* drop one of them").dependent[0] in dependent
    A[:, 1:5] = 0  # and many at once
    assert refuse().dependent[-4:] != [] and set(range(1, 5)) <= set(refuse().dependent)
    A[:, 1:] = A[:, :1]
    assert refuse("linearly dependent").rank == 1
    with pytest.raises(quoin.InvalidArgument, match="rcond must be from 0 to 1"):
        quoin.lstsq(A, np.ones(50), rcond=2)


def test_least_squares_refuses_what_has_no_full_rank():
    with pytest.raises(quoin.RankDeficient) as caught:
        quoin.lstsq(np.ones((5, 2)), np.ones(5), deficient="error")
    assert caught.value.rcond < 1e-14 and isinstance(caught.value, np.linalg.LinAlgError)
    with pytest.raises(quoin.InvalidArgument, match="rows"):
        quoin.lstsq(np.eye(3), np.ones(4))
    assert quoin.lstsq(np.eye(3, dtype=np.float32), np.ones(3)).x.dtype == np.float64


@pytest.mark.parametrize("shape", [(0, 0), (0, 2), (60, 5), (5, 60), (8, 8)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_svd(rng, shape, dtype):
    A = rng.standard_normal(shape).astype(dtype)
    U, S, Vh = quoin.svd(A)
    reference = np.linalg.svd(A, full_matrices=False)
    assert [X.shape for X in (U, S, Vh)] == [X.shape for X in reference] and S.dtype == dtype
    assert_orthonormal(U)
    assert_orthonormal(Vh.T)
    if S.size:
        assert np.abs(S - reference.S).max() <= bound(A) * S[0]
        assert_product(U * S, Vh, A)
    assert np.allclose(quoin.svd(A, compute_uv=False), S, rtol=0, atol=bound(A) * (S[0] if S.size else 1))
    values, right = quoin.svd(A, "vh")
    assert values.shape == S.shape and right.shape == Vh.shape and values.dtype == right.dtype == dtype
    assert_orthonormal(right.T)
    assert np.allclose(values, S, rtol=0, atol=bound(A) * (S[0] if S.size else 1))
    # A Vᵀ = U S: its columns are orthogonal and have the singular values as their norms
    gram = np.float64(right) @ A.T @ A @ np.float64(right).T
    assert np.abs(gram - np.diag(np.float64(values) ** 2)).max(initial=0) <= bound(A) * (S[0] if S.size else 1) ** 2


@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_svd_of_a_stack_is_that_of_its_matrices(rng, shape):
    stack = rng.standard_normal((2, 3, *shape))
    for options in ({}, {"full_matrices": True}, {"rank": 2}, {"compute_uv": "vh"}, {"compute_uv": False}):
        whole = quoin.svd(stack, **options)
        for index in np.ndindex(2, 3):
            one = quoin.svd(stack[index], **options)
            for array, part in zip([whole] if options.get("compute_uv") is False else whole,
                                   [one] if options.get("compute_uv") is False else one):
                exact = "rank" in options or options.get("full_matrices")  # both by the same calls
                assert np.array_equal(array[index], part) if exact else np.allclose(np.abs(array[index]), np.abs(part), rtol=0, atol=1e-13)
    stack[1, 0, 3, 2] = np.nan
    for compute_uv in (True, "vh", False):
        with pytest.raises(quoin.NonFiniteEntry, match="matrix 3 of the batch .* row 3, column 2"):
            quoin.svd(stack, compute_uv)


def test_plan():
    p = quoin.plan(1000, 20, np.float32, method="caqr", q="explicit")
    assert (p.rows, p.cols, p.dtype, p.method, p.q) == (1000, 20, "float32", "caqr", "explicit")
    # what the paragraph says, to its three digits
    assert f"panels of {p.panel_width} columns" in str(p)
    assert f"leaves of {p.leaf_rows} rows" in str(p) and f"fan-in {p.fan_in}" in str(p)
    assert f"{p.flops / 1e9:.3g} GFLOP, {p.bytes_moved / 1e9:.3g} GB moved, {p.workspace_bytes / 1e6:.3g} MB" in str(p)
    assert p.fallback is None and quoin.plan(10**5, 20, q="explicit").fallback == "tsqr"
    assert p.kernels[0][0] == f"leaves of {p.leaf_rows} rows, {p.panel_width} columns" and "host/" in p.kernels[0][1]
    for arguments in ((-1, 3), (3, 3, float, "nothing"), (3, 3, float, "auto", "all"), (3, 5, float, "cholesky-qr2")):
        with pytest.raises(quoin.InvalidArgument):
            quoin.plan(*arguments)
    with pytest.raises(TypeError):
        quoin.plan(3, 3, complex)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("heights", [[100] * 4, [3, 0, 50, 1], [2]])
def test_streaming(rng, dtype, heights):
    A = rng.standard_normal((sum(heights), 6)).astype(dtype)
    blocks = np.split(A, np.cumsum(heights)[:-1])
    forward, both = quoin.StreamingR(), quoin.StreamingQR()
    for block in blocks:
        forward.partial_fit(block)
        assert both.partial_fit(np.asfortranarray(block)) is both
    assert forward.n_rows == both.n_rows == len(A)
    Q = np.vstack([both.q_rows(block) for block in reversed(blocks)][::-1])
    assert both.R.dtype == dtype
    assert_upper(both.R)
    assert_orthonormal(Q)
    assert_product(Q, both.R, A)
    gram = forward.R.astype(np.float64).T @ forward.R
    reference = A.astype(np.float64).T @ A
    assert np.linalg.norm(gram - reference) <= 2 * len(blocks) * bound(A) * np.linalg.norm(A) ** 2


def test_streaming_least_squares_and_errors(rng):
    A, b = rng.standard_normal((200, 5)), rng.standard_normal((200, 2))
    stream = quoin.StreamingR()
    with pytest.raises(quoin.InvalidArgument, match="partial_fit"):
        stream.R
    for i in range(0, 200, 50):
        stream.partial_fit(A[i : i + 50], b[i : i + 50])
    assert np.allclose(stream.solve().x, np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-11)
    kept = stream.R
    A[3, 2] = np.nan
    with pytest.raises(quoin.NonFiniteEntry):
        stream.partial_fit(A[:50], b[:50])
    with pytest.raises(quoin.InvalidArgument):
        stream.partial_fit(A[:5, :4], b[:5])
    assert np.array_equal(stream.R, kept) and stream.n_rows == 200


def routes_to_least_squares(A, b):
    """Every function that takes `rcond`."""
    stream = quoin.StreamingR()
    stream.partial_fit(A, b)
    refused = {"deficient": "error"}
    return [
        lambda *r: quoin.lstsq(A, b, *r, **refused),
        lambda *r: quoin.factor(A).lstsq(b, *r, **refused),
        lambda *r: stream.solve(*r, **refused),
    ]


@pytest.mark.parametrize("route", range(3))
def test_rcond_is_taken_and_defaults_to_ten_u(route):
    u = np.finfo(np.float64).eps / 2
    b = np.ones(2)
    # 1/κ₁ and σ₂/σ₁ of [1 1; 0 s] are s/2
    solve = routes_to_least_squares(np.array([[1.0, 1.0], [0.0, 30 * u]]), b)[route]
    solve()
    solve(14 * u)
    with pytest.raises(quoin.RankDeficient):
        solve(16 * u)
    solve = routes_to_least_squares(np.array([[1.0, 1.0], [0.0, 16 * u]]), b)[route]
    with pytest.raises(quoin.RankDeficient):
        solve()
    solve(7 * u)
    for rcond in (-5, 1.5, np.nan, np.inf):
        with pytest.raises(quoin.InvalidArgument, match="rcond"):
            solve(rcond)


def test_sizes_that_64_bits_do_not_count_are_refused():
    for m, n in ((10**18, 10**18), (10**30, 2), (2, 10**30), (-1, 2)):
        with pytest.raises(quoin.InvalidArgument):
            quoin.plan(m, n)
    assert quoin.plan(10**9, 10**9).flops > 1e27


@pytest.mark.parametrize("scale", [1e308, 1e-310])
def test_entries_near_the_ends_of_the_range(scale):
    A = np.full((300, 3), scale)
    U, S, Vh = quoin.svd(A)
    assert_orthonormal(U)
    assert_orthonormal(Vh.T)
    assert S[0] == np.inf if scale > 1 else abs(S[0] / scale - 30) < 1e-12
    assert quoin.svd(A, compute_uv=False)[0] == S[0]


# ---- rank, pseudoinverse and bases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (9, 9), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("rank", [0, 1, 4, 9])
def test_rank_pseudoinverse_and_bases_are_numpys_and_scipys(rng, shape, rank, dtype):
    m, n = shape
    k = min(m, n, rank)
    A = (rng.standard_normal((m, k)) @ rng.standard_normal((k, n))).astype(dtype)
    s = np.linalg.svd(A.astype(float), compute_uv=False)
    assert quoin.matrix_rank(A) == np.linalg.matrix_rank(A) == k
    # a perturbation of the rank k matrix (Wedin 1973)
    unit, kappa = bound(A), s[0] / s[k - 1] if k else 0
    P, Q, Z = quoin.pinv(A), quoin.orth(A), quoin.null_space(A)
    assert P.dtype == Q.dtype == Z.dtype == dtype
    exact = np.linalg.pinv(A.astype(float), rcond=1e-6)
    assert np.linalg.norm(P - exact) <= unit * kappa * max(1, np.linalg.norm(exact))
    assert Q.shape == (m, k) and Z.shape == (n, n - k)
    assert_orthonormal(Q)
    assert_orthonormal(Z)
    if k:
        assert np.linalg.norm(Q @ (Q.T @ A) - A) <= unit * np.linalg.norm(A)
        assert np.linalg.norm(A @ Z) <= unit * np.linalg.norm(A)
        assert quoin.matrix_rank(A, rtol=1.0) == 0 and quoin.pinv(A, 1.0).any() == 0
        assert quoin.orth(A, 0.999).shape == (m, 1) and quoin.null_space(A, 0.999).shape == (n, n - 1)
    for function in (quoin.matrix_rank, quoin.pinv, quoin.orth, quoin.null_space):
        with pytest.raises(quoin.InvalidArgument, match="must be from 0 to 1, or None"):
            function(A, 2)
        with pytest.raises(np.linalg.LinAlgError):
            function(A[0] if m else A.reshape(-1))


def test_equal_columns_share_their_coefficient(rng):
    A = rng.standard_normal((30, 5))
    A[:, 4] = A[:, 1]
    b = rng.standard_normal(30)
    x = quoin.lstsq(A, b).x
    assert np.allclose(x, np.linalg.lstsq(A, b, rcond=None)[0], rtol=0, atol=1e-13) and np.isclose(x[1], x[4])
