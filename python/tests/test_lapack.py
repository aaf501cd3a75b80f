"""quoin.lapack: the QR and least squares of an unchanged NumPy and SciPy become Quoin's, with the same values."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import quoin.lapack

LIBRARY = pathlib.Path(quoin.lapack.__file__).with_name("libquoin_lapack.so")
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without the drop-in")

PROGRAM = """
import sys
import numpy as np
import scipy.linalg

random = np.random.default_rng(7)
A, b = random.standard_normal((20_000, 40)), random.standard_normal(20_000)
Q, R = np.linalg.qr(A)
thin = scipy.linalg.qr(A, mode="economic")
small = np.linalg.qr(A[:9, :4])
np.savez(sys.argv[1], Q=Q, R=R, Q_of_scipy=thin[0], R_of_scipy=thin[1], x=np.linalg.lstsq(A, b, rcond=None)[0],
         x_of_scipy=scipy.linalg.lstsq(A, b)[0], s=np.linalg.svd(A, compute_uv=False), small=small[1])
sys.exit(3)
"""


def run(*arguments, code=0, cwd=None):
    environment = {name: value for name, value in os.environ.items() if name not in ("QUOIN_VERBOSE", "QUOIN_REPORT")}
    child = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=cwd, timeout=300)
    assert child.returncode == code, child.stderr
    return child


def test_numpy_and_scipy_give_the_same_values(tmp_path):
    pytest.importorskip("scipy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run(program, tmp_path / "before.npz", code=3)
    report = run("-m", "quoin.lapack", "--report", program, tmp_path / "after.npz", code=3).stderr
    with np.load(tmp_path / "before.npz") as before, np.load(tmp_path / "after.npz") as after:
        for name in before:
            assert np.abs(before[name] - after[name]).max() < 1e-11 * np.abs(before[name]).max(), name
        assert not np.array_equal(before["R"], after["R"])  # another algorithm rounds differently
    counts = {name: (int(own), int(passed)) for name, own, passed in re.findall(
        r"quoin:   (\w+): (\d+) computed by Quoin, (\d+) passed on", report)}
    assert counts["DGEQRF"][0] >= 2 and counts["DGEQRF"][1] >= 1
    assert counts["DORGQR"][0] >= 2


def test_programs_start_as_by_python_itself(tmp_path):
    show = "import sys; print(sys.argv, sys.flags.optimize)"
    assert run("-O", "-m", "quoin.lapack", "-c", show, "--report", "b").stdout == "['-c', '--report', 'b'] 1\n"
    (tmp_path / "shown.py").write_text(show + "; print(__name__, __package__)")
    module = run("-m", "quoin.lapack", "-m", "shown", "a", cwd=tmp_path).stdout
    assert module.splitlines()[0].endswith("shown.py', 'a'] 0") and module.splitlines()[1] == "__main__ "
    report = run("-m", "quoin.lapack", "--report", "-c", "import os; os.system('true')").stderr
    assert re.fullmatch(r"quoin: calls of LAPACK in process \d+: none\n", report)
    assert run("-m", "quoin.lapack", "--help").stdout.startswith("Runs a Python program with Quoin's drop-in")


def test_a_drop_in_that_cannot_work_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["lapack.py", "program.py"])
    monkeypatch.setattr(quoin.lapack, "__file__", str(tmp_path / "lapack.py"))
    with pytest.raises(SystemExit, match="libquoin_lapack.so is missing: this quoin-qr was built without the drop-in"):
        quoin.lapack.main()
    (tmp_path / "libquoin_lapack.so").write_text("no library")
    with pytest.raises(SystemExit, match="did not get NumPy's calls: .*"):
        quoin.lapack.main()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SystemExit, match="darwin has no LD_PRELOAD"):
        quoin.lapack.main()
