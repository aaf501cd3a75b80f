"""mypy and pyright, both strict, accept programs that use the package, and find their mistakes."""

import json
import os
import pathlib
import re
import site
import subprocess
import sys
import typing

import numpy as np
import pytest

import quoin
from quoin import _types

if not (pathlib.Path(quoin.__file__).parent / "_core.pyi").exists():
    pytest.skip("built without stubs", allow_module_level=True)

PROGRAM = """
import numpy as np

import quoin
import quoin.distributed

A = np.random.default_rng(0).standard_normal((20, 4))
Q, R = quoin.qr(A)
h, tau = quoin.qr(A, mode="raw")
complete: quoin.QRResult = quoin.qr(A, "complete", threads=2)
f = quoin.factor(A, verify=True, callback=lambda done: print(f"{done:.0%}"))
print(complete.Q, quoin.qr(A, mode="r"), f.apply(A, trans=True), f.report.residual)
solution: quoin.LstsqResult = quoin.lstsq(A, A[:, 0])
U, S, Vh = quoin.svd(A)
plan: quoin.Plan = quoin.plan(100, 4)
route: quoin.Route = quoin.plan_route(100, 4, memory=1e9)
print(solution.x, plan.method, route.fits, quoin.info()["threads"], quoin.__version__)
stream: quoin.StreamingR = quoin.StreamingR().partial_fit(A)


class Alone:
    rank, size = 0, 1


of_rows: quoin.distributed.Factorization = quoin.distributed.factor(A, Alone(), r="root")
print(of_rows.R, of_rows.q(), of_rows.apply_thin(A, trans=True), of_rows.plan.method, of_rows.lstsq(A).x)
basis = quoin.distributed.GramSchmidt(20, Alone())
print(basis.shape, quoin.distributed.merge(stream, Alone()).R)
try:
    quoin.qr(A, mode="q")  # type: ignore[call-overload]
except (quoin.InvalidArgument, quoin.NonFiniteEntry) as error:
    print(error)
quoin.plan("100", 4)  # type: ignore[arg-type]
quoin.qrs(A)  # type: ignore[attr-defined]
"""

# Every expression has a type without Any: arrays are typed by what went in.
PROGRAM_OF_ARRAYS = """
import numpy as np
from numpy.typing import NDArray

import quoin

A: NDArray[np.float64] = np.zeros((20, 4))
single: NDArray[np.float32] = np.zeros((20, 4), dtype=np.float32)
f: quoin.Factorization[NDArray[np.float64]] = quoin.factor(A, method="tsqr")
Q, R = quoin.qr(A)
product: NDArray[np.float64] = f.q() @ f.R + Q @ R + f.q[:, :4] @ R
triangle: NDArray[np.float64] = quoin.qr([[1.0, 2.0], [3.0, 4.0]], mode="r")
pivoted: NDArray[np.float32] = single[:, quoin.qr(single, pivoting=True).P]
of_integers: quoin.SVDResult[NDArray[np.float64]] = quoin.svd(np.eye(3, dtype=np.int64), full_matrices=True)
h, tau = quoin.qr(A, mode="raw")
x, residuals, rank, s = quoin.lstsq(A, A[:, 0])
solution: NDArray[np.float64] = f.lstsq(A[:, 0]).x + x
values: NDArray[np.float32] = quoin.svd(single, compute_uv=False)
S, Vh = quoin.svd(single, compute_uv="vh")
L, of_rows = quoin.lq(A.T, mode="economic")
columns, X = quoin.interpolative(A, rank=2)
print(product, triangle, pivoted, of_integers.U, h, tau, rank + 1, residuals, solution, values, S, Vh, L, of_rows, columns, X)
print(quoin.matrix_rank(A), quoin.pinv(A), quoin.orth(A), quoin.null_space(A), f.report.residual, f.plan.method)
quoin.factor(A, method="qr")  # type: ignore[call-overload]
quoin.svd(A, rank="3")  # type: ignore[call-overload]
"""

PROGRAM_WITH_TENSORS = """
import torch

import quoin.torch


def step(G: torch.Tensor, P: torch.Tensor) -> torch.Tensor:
    q, r = quoin.torch.qr(P @ G, mode="reduced")
    basis: torch.Tensor = quoin.torch.orthonormalize(G, dtype=torch.bfloat16)
    a, tau = quoin.torch.geqrf(G)
    product = quoin.torch.apply_q(a, tau, quoin.torch.householder_product(a, tau), transpose=True)
    with quoin.torch.override() as override:
        override.end()
    return q @ r + basis + product + quoin.torch.lstsq(P, G).solution


pivots: torch.Tensor = quoin.torch.qr(torch.ones(3, 2), pivoting=True).P
quoin.torch.qr(1)  # type: ignore[call-overload]
"""


FOLDER = str(pathlib.Path(quoin.__file__).parents[1])
INSTALLED = FOLDER in site.getsitepackages()
PROGRAMS = {"quoin": PROGRAM, "arrays": PROGRAM_OF_ARRAYS, "torch": PROGRAM_WITH_TENSORS}


def of_mypy(no_any):
    # of an installed package mypy reports nothing, and in the build tree it should not either
    options = "disallow_any_expr = True\n" if no_any else ""
    settings = f"[mypy]\nstrict = True\n{options}[mypy-quoin.*]\nignore_errors = True\n"
    return "mypy.ini", settings, ["--config-file", "mypy.ini", "program.py"], {} if INSTALLED else {"MYPYPATH": FOLDER}


def of_pyright(no_any):
    rules = {"typeCheckingMode": "strict", "reportAny": no_any, "reportUnnecessaryTypeIgnoreComment": True}
    settings = json.dumps(rules | {"extraPaths": [] if INSTALLED else [FOLDER]})
    return "pyrightconfig.json", settings, ["--pythonpath", sys.executable, "--warnings"], {}


# basedpyright is pyright with Node.js, and has a rule against Any
@pytest.mark.parametrize("checker, of_checker", [("mypy", of_mypy), ("basedpyright", of_pyright)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_strict(checker, of_checker, program, tmp_path):
    pytest.importorskip(checker)
    if program == "torch":
        pytest.importorskip("torch")
    file, settings, options, variables = of_checker(no_any=program == "arrays")
    (tmp_path / file).write_text(settings)
    (tmp_path / "program.py").write_text(PROGRAMS[program])
    environment = {key: value for key, value in os.environ.items() if key not in ("MYPYPATH", "LD_PRELOAD")} | variables
    command = [sys.executable, "-m", checker, *options]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_types_name_every_method():
    with pytest.raises(quoin.InvalidArgument) as refused:
        quoin.qr(np.eye(2), method="none of them")
    named = re.findall(r"'([^']*)'", str(refused.value))
    assert {*named} - {"none of them"} == {*typing.get_args(_types.Method)}
