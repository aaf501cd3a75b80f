"""Times every routine of libquoin_lapack.so and the system's of the same name, alternating in one process, f64.

    /usr/bin/python3 bench/rivals/lapack_routines.py build/lib/libquoin_lapack.so [LAPACK.so] [MxN ...] [ROUTINE ...]

One line a call: seconds by the system, by Quoin, their ratio. `p` is the number of columns of C or of right-hand sides.
"""

import argparse
import ctypes
import os
import time

import numpy as np

SHAPES = [(1000, 192), (100000, 64), (8192, 512), (2000, 2000)]
NB = 32


def by_reference(argument):
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data_as(ctypes.c_void_p)
    if isinstance(argument, str):
        return ctypes.c_char_p(argument.encode())
    return ctypes.byref(ctypes.c_int(argument))


class Lapack:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, routine, *arguments):
        """The routine with info appended; a workspace given as None is queried first."""
        info = np.zeros(1, np.int32)
        lengths = [ctypes.c_size_t(1) for a in arguments if isinstance(a, str)]
        function = getattr(self.library, "d" + routine + "_")
        at = next((i for i, a in enumerate(arguments) if a is None), None)
        if at is not None:
            size = np.zeros(1)
            function(*map(by_reference, arguments[:at]), by_reference(size), by_reference(-1), by_reference(info),
                     *lengths)
            work = np.empty(int(size[0]))
            arguments = arguments[:at] + (work, work.size) + arguments[at + 1:]
        start = time.perf_counter()
        function(*map(by_reference, arguments), by_reference(info), *lengths)
        seconds = time.perf_counter() - start
        assert info[0] == 0, (routine, info[0])
        return seconds


def matrix(m, n, seed=1):
    return np.asfortranarray(np.random.default_rng(seed).standard_normal((m, n)))


def cases(system, m, n):
    """(name, call(lapack) -> seconds), whose inputs are fresh copies; factors are the system's."""
    A, nb, k = matrix(m, n), min(NB, n), min(m, n)
    p_list = (1, 32, n)

    def copied(routine, *arguments):
        return lambda lapack: lapack.call(routine, *[a.copy("F") if isinstance(a, np.ndarray) else a for a in arguments])

    if m >= n:
        R, work = np.triu(A[:n]).copy("F"), np.empty(nb * max(m, n))
        T = np.zeros((nb, n), order="F")
        yield "tpqrt", copied("tpqrt", m, n, 0, nb, R, n, A, m, T, nb, work)
        if m == n:
            yield "tpqrt, triangles", copied("tpqrt", n, n, n, nb, R, n, R, n, T, nb, work)
        V = A.copy("F")
        system.call("tpqrt", m, n, 0, nb, R.copy("F"), n, V, m, T, nb, work)
        for p in p_list:
            C, C_top, p_work = matrix(m, p, 2), matrix(n, p, 3), np.empty(nb * p)
            yield f"tpmqrt, p {p}", copied("tpmqrt", "L", "T", m, p, n, 0, nb, V, m, T, nb, C_top, n, C, m, p_work)

        mb = min(m, 4 * n)
        columns = n * max(1, -(-(m - n) // (mb - n)) if mb < m else 1)
        T = np.zeros((nb, columns), order="F")
        yield f"latsqr, mb {mb}", copied("latsqr", m, n, mb, nb, A, m, T, nb, None)
        V = A.copy("F")
        system.call("latsqr", m, n, mb, nb, V, m, T, nb, None)
        for p in p_list:
            yield f"lamtsqr, p {p}", copied("lamtsqr", "L", "T", m, p, n, mb, nb, V, m, T, nb, matrix(m, p, 2), m, None)
        if mb > n:
            yield "orgtsqr", copied("orgtsqr", m, n, mb, nb, V, m, T, nb, None)
            yield "orgtsqr_row", copied("orgtsqr_row", m, n, mb, nb, V, m, T, nb, None)
        Q = np.asfortranarray(np.linalg.qr(A)[0])
        yield "orhr_col", copied("orhr_col", m, n, nb, Q, m, T, nb, np.empty(n))

    # each library writes and reads its own T
    def geqr(lapack, V):
        size, work = np.zeros(5), np.zeros(1)
        lapack.call("geqr", m, n, V, m, size, -1, work, -1)
        T, work = np.empty(int(size[0])), np.empty(int(work[0]))
        return T, lapack.call("geqr", m, n, V, m, T, T.size, work, work.size)

    yield "geqr", lambda lapack: geqr(lapack, A.copy("F"))[1]
    made = {}
    for p in p_list:
        def gemqr(lapack, p=p):
            if lapack not in made:
                V = A.copy("F")
                made[lapack] = V, geqr(lapack, V)[0]
            V, T = made[lapack]
            return lapack.call("gemqr", "L", "T", m, p, k, V, m, T, T.size, matrix(m, p, 2), m, None)
        yield f"gemqr, p {p}", gemqr

    for p in (1, 32):
        B = matrix(max(m, n), p, 2)
        for routine in ("gels", "gelst", "getsls"):
            yield f"{routine}, p {p}", copied(routine, "N", m, n, p, A, m, B, B.shape[0], None)
    yield "geqp3", copied("geqp3", m, n, A, m, np.zeros(n, np.int32), np.empty(k), None)
    At, tau = A.T.copy("F"), np.empty(k)
    yield "gelqf of the transpose", copied("gelqf", n, m, At, n, tau, None)
    V = At.copy("F")
    system.call("gelqf", n, m, V, n, tau, None)
    if m >= n:
        yield "orglq of the transpose", copied("orglq", n, m, k, V, n, tau, None)
    for p in p_list:
        yield f"ormlq, p {p}", copied("ormlq", "L", "T", m, p, k, V, n, tau, matrix(m, p, 2), m, None)
    if m > n:
        for routine in ("gels", "gelst", "getsls"):
            yield f"{routine} of the transpose", copied(routine, "N", n, m, 1, At, n, matrix(m, 1, 2), m, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="+", metavar="LIBRARY | MxN | ROUTINE",
                        help="libquoin_lapack.so and, behind it, another LAPACK; shapes; routines (default: all)")
    arguments = parser.parse_args().arguments
    libraries = [a for a in arguments if os.path.exists(a)]
    names = [a for a in arguments if a not in libraries]
    shapes = [tuple(map(int, a.split("x"))) for a in names if a[0].isdigit()] or SHAPES
    wanted = [a for a in names if not a[0].isdigit()]
    quoin = Lapack(os.path.abspath(libraries[0]))
    system = Lapack(libraries[1] if len(libraries) > 1 else "liblapack.so.3")
    print("| shape | call | system (s) | Quoin (s) | ratio |\n|---|---|---|---|---|")
    for m, n in shapes:
        for name, call in cases(system, m, n):
            if wanted and name.split(",")[0].split(" ")[0] not in wanted:
                continue
            seconds = [[], []]
            start = time.perf_counter()
            while len(seconds[0]) < 5 or (time.perf_counter() - start < 0.2 and len(seconds[0]) < 200):
                for taken, lapack in zip(seconds, (system, quoin)):
                    taken.append(call(lapack))
                if time.perf_counter() - start > 20:
                    break
            a, b = (sorted(taken)[len(taken) // 2] for taken in seconds)
            print(f"| {m}×{n} | {name} | {a:.3g} | {b:.3g} | {a / b:.2f} |", flush=True)


main()
