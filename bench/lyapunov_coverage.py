#!/usr/bin/env python3
"""How often the 95% intervals of `quoin lyapunov` hold the truth: each case with many seeds, as CSV.

    python3 bench/lyapunov_coverage.py bench/results/lyapunov_coverage.csv
    python3 bench/lyapunov_coverage.py --seeds 20 --case henon --case lorenz63 /dev/stdout

The truth of a quantity is 0 where a symmetry makes it so, and otherwise its mean over all seeds of the longest case of
the system, which is uncertain by a tenth of that case's error for 100 seeds.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor

import bench_csv

ROOT = pathlib.Path(__file__).parents[1]
SOFT = "particles --size 100 --dimensions 2 --potential soft --step 0.005 --exponents 20 --transient 20 --alignment 20"

# system: command; times, the longest last; exponents that are 0
CASES = {
    "lorenz63": ("lorenz63", (100, 1000, 10000), (2,)),
    "henon": ("henon", (10000, 100000), ()),
    "lorenz96": ("lorenz96", (100, 500), ()),
    "kuramoto-sivashinsky": ("kuramoto-sivashinsky", (10000,), (2, 3)),
    "fput": ("fput", (10000,), (32, 33)),
    "fput-leading": ("fput --exponents 8 --transient 2000 --alignment 2000", (100000,), ()),
    "soft-particles": (SOFT, (100,), ()),
}


def quantities(report):
    """Name: value, half width."""
    values = {f"{i}": pair for i, pair in enumerate(zip(report["exponents"], report["half_widths"]), 1)}
    for name in ("kolmogorov_sinai", "kaplan_yorke"):
        if report[name] is not None:
            values[name] = (report[name], report[name + "_half_width"])
    return values


def rows_of(name, seeds, jobs, program):
    """A row for each time and quantity of a case."""
    command, times, zeros = CASES[name]

    def run(time, seed):
        line = [program, *command.split(), "--time", str(time), "--seed", str(seed), "--threads", "1", "--json"]
        return quantities(json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout))

    with ThreadPoolExecutor(jobs) as pool:
        results = {time: list(pool.map(lambda seed: run(time, seed), range(1, seeds + 1))) for time in times}
    longest = results[times[-1]]
    truth = {key: statistics.fmean(r[key][0] for r in longest if key in r) for key in longest[0]}
    truth |= {str(i): 0.0 for i in zeros}
    for time in times:
        for key, value in truth.items():
            pairs = [r[key] for r in results[time] if key in r]
            yield {
                "system": name, "time": time, "quantity": key, "truth": f"{value:.6g}", "seeds": len(pairs),
                "covered": sum(abs(v - value) <= h for v, h in pairs),
                "median_half_width": f"{statistics.median(h for _, h in pairs):.3g}",
                "rms_error": f"{math.sqrt(statistics.fmean((v - value) ** 2 for v, _ in pairs)):.3g}",
            }


def summary(rows):
    """A line for each case: what share of all intervals holds the truth, and the least and most of one exponent."""
    for case in dict.fromkeys((r["system"], r["time"]) for r in rows):
        exponents = [r for r in rows if (r["system"], r["time"]) == case and r["quantity"].isdigit()]
        shares = [100 * r["covered"] / r["seeds"] for r in exponents]
        print(f"{case[0]:<22} T = {case[1]:<7} {len(exponents):>3} exponents: {statistics.fmean(shares):5.1f}% "
              f"({min(shares):.0f} to {max(shares):.0f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--program", default=str(ROOT / "build/bin/quoin-lyapunov"))
    arguments = parser.parse_args()
    rows = [row for name in arguments.case or CASES for row in rows_of(name, arguments.seeds, arguments.jobs, arguments.program)]
    bench_csv.write(arguments.file, rows, arguments.program)
    summary(rows)


if __name__ == "__main__":
    main()
