"""Times numpy.linalg.qr and scipy.linalg.qr with and without libquoin_lapack.so, alternating.

    /usr/bin/python3 bench/rivals/lapack_preload.py build/lib/libquoin_lapack.so [MxN ...]

Run it by a Python that uses the system's LAPACK.
"""

import argparse
import os
import statistics
import subprocess
import sys

CALLS = {
    "numpy C order": "np.linalg.qr(a)",
    "numpy Fortran order": "np.linalg.qr(f)",
    "scipy economic": "sl.qr(f, mode='economic', check_finite=False)",
}

TIMED = """
import sys, time, numpy as np, scipy.linalg as sl
m, n, repeats = map(int, sys.argv[1:4])
a = np.random.default_rng(1).standard_normal((m, n))
f = np.asfortranarray(a)
times = []
for i in range(repeats + 1):
    start = time.perf_counter()
    {call}
    times.append(time.perf_counter() - start)
print(sorted(times[1:])[repeats // 2])
"""


def seconds(call, m, n, library):
    environment = dict(os.environ)
    if library:
        environment["LD_PRELOAD"] = library
    repeats = 1 if m * n > 1e8 else 5 if m * n > 1e5 else 201
    run = subprocess.run([sys.executable, "-c", TIMED.format(call=call), str(m), str(n), str(repeats)],
                         env=environment, capture_output=True, text=True, check=True)
    return float(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=os.path.abspath, help="libquoin_lapack.so")
    parser.add_argument("shapes", nargs="*", metavar="MxN", default=["1000000x192", "110592x100", "1000x1000", "100x100"],
                        help="rows and columns (default: 1000000x192 110592x100 1000x1000 100x100)")
    arguments = parser.parse_args()
    library = arguments.library
    for m, n in (map(int, text.split("x")) for text in arguments.shapes):
        for name, call in CALLS.items():
            with_quoin, without = [], []
            for _ in range(3 if m * n > 1e8 else 5):
                without.append(seconds(call, m, n, None))
                with_quoin.append(seconds(call, m, n, library))
            a, b = statistics.median(without), statistics.median(with_quoin)
            print(f"| {m}×{n} | {name} | {a:.3g} | {b:.3g} | {a / b:.2f} | "
                  f"{min(without):.3g} to {max(without):.3g}, {min(with_quoin):.3g} to {max(with_quoin):.3g} |",
                  flush=True)


main()
