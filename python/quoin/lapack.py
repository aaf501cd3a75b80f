"""Runs a Python program with Quoin's drop-in for LAPACK in front of the LAPACK of NumPy, SciPy and other packages.

    python -m quoin.lapack [--report] script.py arguments...

Instead of script.py, -m module, -c code and Python's other options work as for python itself. The program and the
processes that it starts have libquoin_lapack.so preloaded (LD_PRELOAD): numpy.linalg.qr, lstsq and svd and their SciPy
counterparts then factor large matrices with Quoin, and small calls are passed on as before. It starts only if a call of
NumPy's is seen to arrive at Quoin.

--report: at the end of each process prints to stderr how many calls of each routine Quoin computed and passed on.
"""

import os
import pathlib
import subprocess
import sys

__all__ = ["main"]

_CALL = "import numpy; numpy.linalg.qr(numpy.ones((4096, 32)))"


def main() -> None:
    """Replaces this process by the program."""
    arguments, library = sys.argv[1:], pathlib.Path(__file__).with_name("libquoin_lapack.so")
    if arguments[:1] in (["-h"], ["--help"]):
        sys.exit(print(__doc__.strip()))
    if not sys.platform.startswith("linux"):
        sys.exit(f"quoin.lapack: {sys.platform} has no LD_PRELOAD; link the program with -lquoin_lapack before its LAPACK")
    if not library.exists():
        sys.exit(f"quoin.lapack: {library} is missing: this quoin-qr was built without the drop-in (QUOIN_BUILD_LAPACK=ON)")
    # a sanitizer's runtime must be the first
    preloaded = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))
    environment = os.environ | {"LD_PRELOAD": preloaded}
    python = [sys.executable, *subprocess._args_from_interpreter_flags()]  # type: ignore[attr-defined]
    trial = subprocess.run([*python, "-c", _CALL], env=environment | {"QUOIN_VERBOSE": "1"}, capture_output=True, text=True)
    if "quoin: DGEQRF" not in trial.stderr:
        said = (trial.stderr.strip() or "NumPy calls its LAPACK by other names").splitlines()[-1]
        sys.exit(f"quoin.lapack: the drop-in {library} did not get NumPy's calls: {said}")
    if arguments[:1] == ["--report"]:
        environment["QUOIN_REPORT"] = str(os.getpid())  # the program keeps this number
        del arguments[0]
    os.execve(sys.executable, [*python, *arguments], environment)


if __name__ == "__main__":
    main()
