"""pdgeqrf, and pdgeqrf with pdorgqr, with and without libquoin_scalapack.so, alternating; the fastest of all runs:

    python3 bench/rivals/scalapack_preload.py build/lib/libquoin_scalapack.so [MxN ...] [--grid PxQ ...] [--block NB]
        [--rounds K]

One thread a process. It needs NumPy, mpiexec and the system's ScaLAPACK for Open MPI.
"""

import argparse
import ctypes
import ctypes.util
import importlib.util
import os
import subprocess
import sys
import time


def matrix_size(text):
    return tuple(map(int, text.split("x")))


def time_calls(library, m, n, P, Q, block, repeats):
    """One process of the grid. Rank 0 prints the fastest seconds of pdgeqrf, and of both."""
    scalapack = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    quoin = os.environ.get("LD_PRELOAD")
    routines = ctypes.CDLL(quoin) if quoin else scalapack
    import numpy as np

    def integer(value):
        return ctypes.byref(ctypes.c_int(value))

    def pointer(array):
        return array.ctypes.data_as(ctypes.c_void_p)

    context, ignored, row, col = (ctypes.c_int(0) for _ in range(4))
    scalapack.Cblacs_pinfo(ctypes.byref(row), ctypes.byref(ignored))
    scalapack.Cblacs_get(0, 0, ctypes.byref(context))
    scalapack.Cblacs_gridinit(ctypes.byref(context), b"Row", P, Q)
    scalapack.Cblacs_gridinfo(context, *(ctypes.byref(ctypes.c_int()) for _ in range(2)), ctypes.byref(row), ctypes.byref(col))
    rows = scalapack.numroc_(integer(m), integer(block), ctypes.byref(row), integer(0), integer(P))
    cols = scalapack.numroc_(integer(n), integer(block), ctypes.byref(col), integer(0), integer(Q))
    descriptor = np.array([1, context.value, m, n, block, block, 0, 0, max(rows, 1)], dtype=np.int32)
    given = np.random.default_rng([row.value, col.value]).standard_normal((cols, max(rows, 1)))
    A, tau, work = given.copy(), np.zeros(cols + block), np.zeros(1)
    info = ctypes.c_int(0)

    def factor(size):
        routines.pdgeqrf_(integer(m), integer(n), pointer(A), integer(1), integer(1), pointer(descriptor), pointer(tau),
                          pointer(work), integer(size), ctypes.byref(info))

    def form(size):
        routines.pdorgqr_(integer(m), integer(n), integer(n), pointer(A), integer(1), integer(1), pointer(descriptor),
                          pointer(tau), pointer(work), integer(size), ctypes.byref(info))

    sizes = []
    for call in (factor, form):
        call(-1)
        sizes.append(int(work[0]))
    work = np.zeros(max(sizes))
    seconds = []
    for _ in range(repeats):
        A[:] = given
        times = []
        for call in (None, factor, form):
            if call:
                call(work.size)
                if info.value:
                    sys.exit(f"info = {info.value}")
            scalapack.Cblacs_barrier(context, b"All")
            times.append(time.perf_counter())
        seconds.append((times[1] - times[0], times[2] - times[0]))
    if row.value == 0 and col.value == 0:
        print(*(min(column) for column in zip(*seconds)))
    scalapack.Cblacs_exit(0)


def main():
    if sys.argv[1] == "--process":
        return time_calls(sys.argv[2], *map(int, sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libquoin_scalapack.so")
    parser.add_argument("shapes", nargs="*", type=matrix_size, default=[(400000, 192)], metavar="MxN")
    parser.add_argument("--grid", nargs="+", type=matrix_size, default=[(4, 1), (2, 2)], metavar="PxQ", help="process grids")
    parser.add_argument("--block", type=int, default=32, metavar="NB", help="rows and columns of a block (default 32)")
    parser.add_argument("--rounds", type=int, default=3, metavar="K", help="rounds of five runs each, of one where a run is long (default 3)")
    arguments = parser.parse_args()
    if not os.path.isfile(arguments.library):
        parser.error(f"there is no file {arguments.library}")
    if importlib.util.find_spec("numpy") is None:
        sys.exit(f"{sys.executable} has no NumPy")
    scalapack = ctypes.util.find_library("scalapack-openmpi")
    if not scalapack:
        sys.exit("the system has no ScaLAPACK for Open MPI (Debian: libscalapack-openmpi-dev)")

    def seconds(m, n, P, Q, preload):
        run = subprocess.run(
            ["mpiexec", "--oversubscribe", "-np", str(P * Q), "-x", "OMP_NUM_THREADS=1", "-x", "OPENBLAS_NUM_THREADS=1", *preload,
             sys.executable, os.path.abspath(__file__), "--process", scalapack, *map(str, (m, n, P, Q, arguments.block, 5 if m * n * n < 1e11 else 1))],
            capture_output=True, text=True)
        if run.returncode:
            sys.exit(run.stderr or run.stdout)
        return tuple(map(float, run.stdout.split()))

    print("| shape | processes | | ScaLAPACK, s | Quoin, s | ratio |\n|---|---|---|---|---|---|")
    for m, n in arguments.shapes:
        for P, Q in arguments.grid:
            runs = {(): [], ("-x", "LD_PRELOAD=" + os.path.abspath(arguments.library)): []}
            for _ in range(arguments.rounds):
                for preload, times in runs.items():
                    times.append(seconds(m, n, P, Q, preload))
            without, with_quoin = ([min(column) for column in zip(*times)] for times in runs.values())
            for name, a, b in zip(("pdgeqrf", "pdgeqrf and pdorgqr"), without, with_quoin):
                print(f"| {m}×{n} | {P}×{Q} | {name} | {a:.3g} | {b:.3g} | {a / b:.2f} |", flush=True)


main()
