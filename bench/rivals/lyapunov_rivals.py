#!/usr/bin/env python3
"""Time of Lyapunov spectra by `quoin lyapunov` and by JiTCODE (Ansmann 2018), with the same accuracy of the orbit, as
CSV.

    python3 bench/rivals/lyapunov_rivals.py bench/results/lyapunov_rivals.csv        needs jitcode, which needs a C compiler

Both integrate the orbit and all tangent vectors by Dormand and Prince's method of order 5, with a QR every 0.1 time
units. JiTCODE adapts its steps to relative and absolute tolerances of 1e-6. Quoin takes the longest step 0.1/k whose
median error of the state after one time unit, from 20 states of the attractor, is not larger. The fastest of --repeat
runs counts, without compilation and start. Of one thread times are of the processor, which other work disturbs little;
of two they are of the clock, and JiTCODE's derivative is compiled with OpenMP and without, which is as a rule faster.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

import numpy as np
from scipy.integrate import RK45, solve_ivp

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import bench_csv
SEGMENT = 0.1


def lorenz63(x, n):
    return [10 * (x(1) - x(0)), x(0) * (28 - x(2)) - x(1), x(0) * x(1) - 8 / 3 * x(2)]


def lorenz96(x, n):
    return [(x((i + 1) % n) - x(i - 2 if i > 1 else i - 2 + n)) * x(i - 1 if i else n - 1) - x(i) + 8 for i in range(n)]


# f, n, time of a run, `quoin lyapunov`'s words
CASES = {
    "lorenz63": (lorenz63, 3, 2000, "lorenz63"),
    "lorenz96-10": (lorenz96, 10, 500, "lorenz96 --size 10"),
    "lorenz96-40": (lorenz96, 40, 100, "lorenz96 --size 40"),
    "lorenz96-100": (lorenz96, 100, 50, "lorenz96 --size 100"),
}


def fixed_step(f, x, k):
    """x after one time unit, in steps of SEGMENT / k."""
    h = SEGMENT / k
    for _ in range(round(k / SEGMENT)):
        K = []
        for row in RK45.A:
            K.append(f(x + h * sum((a * slope for a, slope in zip(row, K)), np.zeros_like(x))))
        x = x + h * sum(b * slope for b, slope in zip(RK45.B, K))
    return x


def jitcode_system(case, openmp):
    """JiTCODE's system, compiled."""
    from jitcode import jitcode_lyap, y

    f, n, *_ = CASES[case]
    system = jitcode_lyap(f(y, n), n_lyap=n)
    system.compile_C(omp=openmp)
    system.set_integrator("dopri5", rtol=1e-6, atol=1e-6)
    return system


def measure_jitcode(case, threads, starts, repeat):
    """In a process of its own, whose OMP_NUM_THREADS is set: seconds, exponents, errors after one time unit."""
    _, n, length, _ = CASES[case]
    systems = [jitcode_system(case, openmp) for openmp in ((False, True) if threads > 1 else (False,))]
    system, ends = systems[0], []
    for x in starts:
        system.set_initial_value(x, 0.0)
        for k in range(1, 11):
            state = system.integrate(k * SEGMENT)[0]
        ends.append(state.tolist())
    clock = time.process_time if threads == 1 else time.perf_counter
    seconds = []
    for system in systems * repeat:
        system.set_initial_value(starts[0], 0.0)
        begin = clock()
        local = [system.integrate((k + 1) * SEGMENT)[1] for k in range(round(length / SEGMENT))]
        seconds.append(clock() - begin)
    return {"seconds": seconds, "first": float(np.mean([v[0] for v in local])), "ends": ends}


def measure_quoin(program, case, threads, k, repeat):
    _, n, length, words = CASES[case]

    def run(length):
        line = [program, *words.split(), "--time", str(length), "--transient", "0", "--alignment", "0", "--step", str(SEGMENT / k),
                "--every", str(k), "--threads", str(threads), "--json"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return report, processor if threads == 1 else report["seconds"]

    start = min(run(SEGMENT)[1] for _ in range(repeat)) if threads == 1 else 0
    runs = [run(length) for _ in range(repeat)]
    return {"seconds": [seconds - start for _, seconds in runs], "first": runs[0][0]["exponents"][0]}


def rows_of(case, program, threads_list, repeat):
    f, n, length, _ = CASES[case]
    slope = lambda x: np.array(f(lambda i: x[i], n))  # noqa: E731
    tight = dict(method="DOP853", rtol=1e-13, atol=1e-13)
    x = solve_ivp(lambda t, x: slope(x), (0, 20), 1 + 0.1 * np.random.default_rng(1).normal(size=n)).y[:, -1]
    starts, ends = [], []
    for _ in range(20):
        starts.append(x.tolist())
        x = solve_ivp(lambda t, x: slope(x), (0, 1), x, **tight).y[:, -1]
        ends.append(x)
    error = lambda found: float(np.median([np.linalg.norm(a - b) for a, b in zip(found, ends)]))  # noqa: E731
    k = None
    for threads in threads_list:
        task = json.dumps([case, threads, starts, repeat])
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads),
                                    "OMP_WAIT_POLICY": "passive"}
        run = subprocess.run([sys.executable, __file__, "--jitcode"], input=task, capture_output=True, text=True, env=environment)
        if run.returncode != 0:
            sys.exit(run.stderr)
        rival = json.loads(run.stdout.splitlines()[-1])
        rival["error"] = error(rival["ends"])
        if k is None:
            k, found = 1, error([fixed_step(slope, np.array(x), 1) for x in starts])
            while not found <= rival["error"]:
                k += 1
                found = error([fixed_step(slope, np.array(x), k) for x in starts])
        own = measure_quoin(program, case, threads, k, repeat)
        own["error"] = found
        for name, result in (("jitcode", rival), ("quoin", own)):
            yield {"system": case, "exponents": n, "threads": threads, "program": name, "time": length,
                   "step": f"{SEGMENT / k:.6g}" if name == "quoin" else "adaptive", "state_error": f"{result['error']:.2g}",
                   "seconds": f"{min(result['seconds']):.4g}", "slowest": f"{max(result['seconds']):.4g}",
                   "largest_exponent": f"{result['first']:.4f}"}


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return f"{fields['model name']} (family {fields['cpu family']}, model {fields['model']}), {os.cpu_count()} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--program", default=str(ROOT / "build/bin/quoin-lyapunov"))
    parser.add_argument("--jitcode", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.jitcode:
        print(json.dumps(measure_jitcode(*json.load(sys.stdin))))
        return
    rows = []
    for case in arguments.case or CASES:
        for row in rows_of(case, arguments.program, arguments.threads or [1, 2], arguments.repeat):
            print(", ".join(str(value) for value in row.values()), flush=True)
            rows.append(row)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jitcode", "symengine", "numpy", "scipy"))
    bench_csv.write(arguments.file, rows, arguments.program, cpu_name(), f"{versions}, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
