"""Threads, signals, other libraries' arrays, documentation."""

import ast
import concurrent.futures
import doctest
import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from laws import assert_orthonormal, assert_product

import quoin

# Stopped between two iterations of some hundredths of a second; the residual falls for minutes.
LONG_PURSUIT = """
import time
import numpy as np, quoin
M = np.random.default_rng(0).standard_normal((1500, 600))
print("calling", flush=True)
try:
    quoin.robust_pca(M, pursuit="alternating", max_iterations=10**9, tol=1e-300)
except KeyboardInterrupt:
    print(time.process_time(), flush=True)
    assert quoin.robust_pca(np.eye(5)).L.shape == (5, 5)
    print("usable", flush=True)
"""

# The worker of a long call is stopped between two panels; the whole of it takes several times as long as is waited for.
LONG_CALL = """
import time
import numpy as np, quoin
A = np.random.default_rng(0).random((6000, 6000))
print("calling", flush=True)
try:
    quoin.qr(A, method="householder", threads=1)
except KeyboardInterrupt:
    print(time.process_time(), flush=True)
    assert quoin.qr(A[:50, :5]).R.shape == (5, 5)
    print("usable", flush=True)
"""


# OpenMP's threads stay in the parent; the child may start others.
FORK = """
import os, threading
import numpy as np, quoin
A = np.random.default_rng(0).standard_normal((20000, 40))
R = quoin.qr(A, threads=2).R
def factor():
    if not np.array_equal(quoin.qr(A, threads=2).R, R):
        os._exit(1)
child = os.fork()
if child == 0:
    factor()
    thread = threading.Thread(target=factor)
    thread.start()
    thread.join()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


def test_calls_in_the_child_of_a_fork():
    child = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60)
    assert child.stdout == "0\n", child.stderr


@pytest.mark.parametrize("call", [LONG_CALL, LONG_PURSUIT], ids=["qr", "robust_pca"])
def test_control_c_ends_a_long_call(call):
    process = subprocess.Popen([sys.executable, "-c", call], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "OMP_NUM_THREADS": "2"})
    try:
        assert process.stdout.readline() == "calling\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=300)
    finally:
        process.kill()
    seconds, usable = rest.split()
    assert usable == "usable" and process.returncode == 0
    assert float(seconds) < 4  # of CPU time, whatever else the machine does


# One panel, or a few passes, of most of a second each; CPU time, whatever else the machine does.
TALL = """
import signal, time
import numpy as np, quoin
A = np.random.default_rng(0).random((50, 1000000)).T
f = quoin.factor(A, method="householder", threads=1)
class Stop(Exception):
    pass
def stop(*_):
    raise Stop
signal.signal(signal.SIGPROF, stop)
for call in (
    lambda: quoin.qr(A, mode="raw", method="householder", threads=1),
    lambda: quoin.qr(A, method="tsqr", threads=1),
    lambda: f.apply(A),
):
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, 0.1)
    try:
        call()
        print("not interrupted")
    except Stop:
        print(time.process_time() - begin - 0.1)
"""


def test_control_c_ends_a_pass_over_a_tall_matrix():
    run = subprocess.run([sys.executable, "-c", TALL], capture_output=True, text=True, timeout=120)
    assert max(map(float, run.stdout.split())) < 0.2, run.stdout + run.stderr


# In a call when the process ends; each asks for the GIL while the interpreter ends.
DAEMONS = {
    "a large matrix": "quoin.qr(np.ones((3000, 1500)))",
    "small matrices": "quoin.qr(np.ones((200, 20)), threads=1)",
    "a callback": "quoin.robust_pca(np.eye(60), callback=lambda step: time.sleep(1e-3), tol=1e-300, max_iterations=10**9)",
    "an engine": "quoin.distributed.qr(np.ones((3, 1)), Waiting())",
}
DAEMON = """
import threading, time
import numpy as np, quoin, quoin.distributed
class Waiting:
    rank, size = 0, 2
    def send(self, data, to, note):
        pass
    def receive(self, data, source):
        time.sleep(60)
def repeat():
    while True:
        {}
for _ in range(2):
    threading.Thread(target=repeat, daemon=True).start()
time.sleep(0.2)
"""


@pytest.mark.parametrize("call", DAEMONS.values(), ids=DAEMONS)
def test_the_process_ends_while_a_daemon_thread_is_in_a_call(call):
    ended = subprocess.run([sys.executable, "-c", DAEMON.format(call)], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


SUBINTERPRETER = """
try:
    import _interpreters  # from Python 3.13 on
    there, run = _interpreters.create("legacy"), _interpreters.exec
except ImportError:
    import _xxsubinterpreters
    there, run = _xxsubinterpreters.create(isolated=False), _xxsubinterpreters.run_string
if {first}:
    import quoin
try:
    print(run(there, "import quoin"))
except Exception as e:
    print(e)
"""


@pytest.mark.parametrize("first", [False, True])
def test_a_subinterpreter_is_refused(first):
    run = subprocess.run([sys.executable, "-c", SUBINTERPRETER.format(first=first)], capture_output=True, text=True, timeout=60)
    assert "quoin works in Python's main interpreter, not in a sub-interpreter" in run.stdout, run.stderr


def test_a_handler_may_call_quoin_and_the_work_goes_on(rng):
    if not hasattr(signal, "setitimer"):
        pytest.skip("no interval timers")
    A = rng.random((1800, 1800))
    inner = []
    previous = signal.signal(signal.SIGALRM, lambda *_: inner.append(quoin.qr(np.eye(3)).R))
    signal.setitimer(signal.ITIMER_REAL, 0.06)
    try:
        R = quoin.qr(A, mode="r", method="householder", threads=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len(inner) == 1 and np.array_equal(R, quoin.qr(A, mode="r", method="householder"))


def test_threads_call_at_once(rng):
    matrices = [rng.standard_normal((200 + 50 * i, 20)) for i in range(16)]
    alone = [quoin.qr(A) for A in matrices]
    shared = quoin.factor(matrices[0])
    product = shared.apply(matrices[0], trans=True)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for mine, reference in zip(pool.map(quoin.qr, matrices), alone):
                assert np.array_equal(mine.Q, reference.Q) and np.array_equal(mine.R, reference.R)
            for other in pool.map(lambda _: shared.apply(matrices[0], trans=True), range(8)):
                assert np.array_equal(other, product)


def test_omp_num_threads():
    report = subprocess.run([sys.executable, "-c", "import quoin; print(quoin.info()['threads'])"], text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "3"}, capture_output=True, check=True)
    assert report.stdout == "3\n"


@pytest.mark.parametrize("library", ["array_api_strict", "torch", "jax.numpy"])
def test_arrays_of_other_libraries(rng, library):
    xp = pytest.importorskip(library)
    A = rng.standard_normal((30, 4)).astype(np.float32)
    theirs = xp.from_dlpack(A.copy())
    Q, R = quoin.qr(theirs)
    assert type(Q) is type(R) is type(theirs)
    assert_product(np.from_dlpack(Q), np.from_dlpack(R), A)
    assert_orthonormal(np.from_dlpack(Q))
    f = quoin.factor(theirs)
    for value in (f.R, f.q(), f.apply(theirs), f.q[:5, :2], quoin.svd(theirs).S, quoin.lstsq(theirs, theirs).x,
                  quoin.qr(theirs, mode="r"), quoin.qr(theirs, mode="raw").tau):
        assert type(value) is type(theirs)
    result = quoin.robust_pca(theirs, observed=xp.from_dlpack(A != 0), L=theirs, Y=theirs)
    pca = quoin.RobustPCA(tol=1e-3).fit(theirs)
    scores = pca.transform(theirs)
    for value in (result.L, result.S, result.Y, scores, pca.inverse_transform(scores)):
        assert type(value) is type(theirs)
    assert np.array_equal(np.from_dlpack(scores), pca.transform(A))


class Tensor:
    """A tensor whose library has from_dlpack and no array API, as PyTorch's are."""

    __module__ = "library_of_tensors.tensors"

    def __init__(self, array):
        self.array = np.from_dlpack(array)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_the_library_of_an_array_is_its_package(rng, monkeypatch):
    library = types.ModuleType("library_of_tensors")
    monkeypatch.setitem(sys.modules, "library_of_tensors", library)
    A = rng.standard_normal((5, 3))
    assert type(quoin.qr(Tensor(A)).R) is np.ndarray
    library.from_dlpack = Tensor
    monkeypatch.setattr(Tensor, "__dlpack_device__", lambda self: (3, 0))  # pinned memory of the host
    assert type(quoin.qr(Tensor(A)).R) is Tensor and np.array_equal(quoin.qr(Tensor(A)).R.array, quoin.qr(A).R)


def test_docstrings():
    result = doctest.testmod(quoin)
    assert result.attempted > 40 and result.failed == 0


def test_guide():
    guide = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
    result = doctest.testfile(str(guide), module_relative=False)
    assert result.attempted > 10 and result.failed == 0


def test_the_stub_of_the_extension_module_is_python():
    stub = pathlib.Path(quoin.__file__).parent / "_core.pyi"
    if not stub.exists():
        pytest.skip("built without stubs")
    assert {"qr", "robust_pca"} <= {getattr(node, "name", "") for node in ast.walk(ast.parse(stub.read_text()))}


def test_every_public_name_is_documented():
    for name in quoin.__all__:
        assert getattr(quoin, name).__doc__
    assert (pathlib.Path(quoin.__file__).parent / "py.typed").exists()


def import_of_a_copy(folder, before=""):
    """Imports the package without its compiled module, and returns what that says."""
    (folder / "quoin").mkdir(exist_ok=True)
    for file in pathlib.Path(quoin.__file__).parent.glob("*.py"):
        (folder / "quoin" / file.name).write_text(file.read_text())
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", before + "import quoin"]
    child = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert child.returncode == 1
    return child.stderr.splitlines()[-1]


def test_package_without_its_compiled_module_names_the_distribution(tmp_path):
    said = import_of_a_copy(tmp_path)
    assert said.startswith("ImportError: quoin's compiled module _core is not beside ")
    assert "install the distribution quoin-qr" in said


def test_a_wheel_of_the_stable_abi_refuses_a_free_threaded_python(tmp_path):
    free_threaded = "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1; "
    assert "_core is not beside" in import_of_a_copy(tmp_path, free_threaded)
    (tmp_path / "quoin" / "_core.abi3.so").touch()
    assert "for a Python with the GIL, and this Python is free-threaded" in import_of_a_copy(tmp_path, free_threaded)


def test_program_gets_the_libraries_that_the_package_found(monkeypatch):
    from quoin import _program

    monkeypatch.setenv("LD_PRELOAD", "/lib/other.so")
    assert _program.environment(["/a/libcublas.so.13", "libcusolver.so.12"])["LD_PRELOAD"] == (
        "/a/libcublas.so.13:libcusolver.so.12:/lib/other.so"
    )
    assert _program.environment(["", "libcusolver.so.12"])["CUDA_VISIBLE_DEVICES"] == ""
    assert _program.environment([]) == dict(os.environ)
    monkeypatch.delenv("LD_PRELOAD")
    assert _program.environment([]) == dict(os.environ)


@pytest.mark.parametrize("command, hides_gpus", [("info", True), ("run", False)])
def test_what_quoin_run_starts_sees_the_gpus(command, hides_gpus, monkeypatch, tmp_path):
    from quoin import _libraries, _program

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "quoin").touch()
    started = []
    monkeypatch.setattr(_program, "__file__", str(tmp_path / "_program.py"))
    monkeypatch.setattr(_libraries, "LOADED", [""])
    monkeypatch.setattr(sys, "argv", ["quoin", command])
    monkeypatch.setattr(os, "execve", lambda *call: started.append(call))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    _program.main()
    assert ("CUDA_VISIBLE_DEVICES" in started[0][2]) == hides_gpus


def test_console_script_becomes_the_program(tmp_path):
    call = "import sys; from quoin import _program; _program.__file__ = sys.argv.pop(1); _program.main()"
    command = [sys.executable, "-c", call, str(tmp_path / "_program.py"), "plan", "--help"]
    missing = subprocess.run(command, capture_output=True, text=True)
    assert missing.returncode == 1 and "built without the program (QUOIN_BUILD_CLI=ON)" in missing.stderr
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "quoin"
    program.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    program.chmod(0o755)
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 7 and found.stdout == "plan --help\n"
