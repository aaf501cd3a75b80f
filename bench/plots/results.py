#!/usr/bin/env python3
"""Draws results of `./run gpu-bench`, an SVG and a PNG for each CSV file, in its folder. `./run papers` draws the rest.

    python3 bench/plots/results.py DIRECTORY

*_batched.csv       time of batches over the columns of a matrix, with what was required and what memory and products allow
*_batch_sizes.csv   the same of several numbers of square matrices
orthogonality.csv   loss of orthogonality over κ, of `quoin bench paper gram-schmidt orthogonality`
"""

import argparse
import glob
import math
import os
import pathlib
import sys

from style import (BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, label_ends, plain_log_ticks, plt, save, thousands)

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import bench_csv


# A GPU's bytes/s, and flop/s in f32 and, by tensor cores, in f64, of NVIDIA's data sheets.
PEAKS = {"H100": (3.35e12, 67e12), "H200": (4.8e12, 67e12)}


def batch_floor(count, m, n, dtype, peaks):
    """Milliseconds to read and write the matrices, or to make the products."""
    entries, flops = count * m * n, count * bench_csv.flops({"rows": m, "cols": n, "op": "factor"})
    return 1e3 * max(2 * entries * (4 if dtype == "f32" else 8) / peaks[0], flops / peaks[1])


def batch_of(row):
    return int(row["cols"]), int(row["rows"]), int(row["count"])


def plot_batched(path, out):
    peaks = next((peaks for gpu, peaks in PEAKS.items() if gpu in bench_csv.device_of(path)), None)
    rows = [r for r in bench_csv.read(path) if r["op"] == "factor" and r["seconds"]]
    codes = {"quoin": ("Quoin: V, tau, R", BLUE, "o"), "lapack": ("LAPACK in a loop", ORANGE, "P"),
             "cusolver": ("cuSOLVER geqrf in a loop", VERMILION, "^"), "cublas": ("cuBLAS geqrfBatched", GREEN, "D"),
             "pytorch": ("torch.geqrf", PURPLE, "v")}
    dtypes = sorted({r["dtype"] for r in rows})
    figure, panels = plt.subplots(1, len(dtypes), figsize=(7.5 * len(dtypes), 5), squeeze=False, constrained_layout=True)
    batches = sorted(set(map(batch_of, rows)))
    # lines over the columns for several sizes of as many matrices; otherwise one place for each batch
    lines = len(batches) > 2 * len({count for _, _, count in batches})
    for axes, dtype in zip(panels[0], dtypes):
        here = [r for r in rows if r["dtype"] == dtype]
        for code, (label, colour, marker) in codes.items():
            column = "seconds" if code == "quoin" else "reference_seconds"
            # once, although there is a row for each reference
            points = {batch_of(r): 1e3 * float(r[column]) for r in here if code in ("quoin", r["reference"])}
            if not points:
                continue
            if not lines:
                axes.plot([batches.index(b) for b in points], points.values(), marker, color=colour, markersize=6, label=label)
                continue
            ends = []
            for count in sorted({count for _, _, count in points}):
                line = sorted((n, ms) for (n, _, c), ms in points.items() if c == count)
                axes.plot(*zip(*line), color=colour, marker=marker, markersize=5, linewidth=1, label=label)
                label = None
                ends.append((*line[-1], thousands(count)))
            for n, ms, name in ends:
                near = [other for x, y, other in ends if x == n and abs(math.log(y / ms)) < 0.2]
                if name == near[0]:
                    axes.annotate(" and ".join(near), (n, ms), (6, -3), textcoords="offset points", fontsize=8)
        if peaks:
            label = "memory's rate, or peak of products"
            measured = sorted(set(map(batch_of, here)))
            for count in sorted({count for _, _, count in measured}) if lines else [None]:
                floor = [(n if lines else batches.index((n, m, c)), batch_floor(c, m, n, dtype, peaks))
                         for n, m, c in measured if count in (None, c)]
                axes.plot(*zip(*floor), "--" if lines else "x", color=GREY, markersize=5, linewidth=0.8, label=label)
                label = None
        required = {batch_of(r): 1e3 * float(r["required_seconds"]) for r in here if float(r["required_seconds"] or 0) > 0}
        if required:
            axes.plot([b[0] if lines else batches.index(b) for b in required], required.values(), "_", color="black",
                      markersize=12, label="required")
        axes.set_yscale("log")
        axes.set_ylim(bottom=100 * min(float(r["seconds"]) for r in here))
        if lines:
            axes.set_xscale("log")
            plain_log_ticks(axes.xaxis, sorted({n for n, _, _ in batches}))
            axes.set_xlabel("columns of a matrix; numbers of matrices beside the lines")
        else:
            axes.set_xticks(range(len(batches)), [f"{thousands(c)} of {m} × {n}" for n, m, c in batches], rotation=40, ha="right",
                            fontsize=8)
        axes.set_ylabel("ms for the batch")
        axes.set_title(f"Batches, {dtype}, {bench_csv.device_of(path)}")
        axes.legend(frameon=False, fontsize=8)
    save(figure, out)


# name in the results: label, colour, marker
ORTHOGONALITY_CODES = {
    "cgs": ("CGS", VERMILION, "s"),
    "mgs": ("MGS", BLUE, "o"),
    "cgs-selective": ("CGS, selective", ORANGE, "^"),
    "cgs-always": ("CGS, always", PURPLE, "v"),
    "mgs-always": ("MGS, always", SKY, "D"),
    "householder": ("Householder", GREEN, "P"),
    "tsqr": ("TSQR", "black", "x"),
}
UNIT = {"f32": 2.0**-24, "f64": 2.0**-53}


def draw_orthogonality(axes, rows, dtype, labels):
    u = UNIT[dtype]
    kappas = sorted({float(row["condition"]) for row in rows})
    ends = []
    for code, (label, colour, marker) in ORTHOGONALITY_CODES.items():
        points = sorted((float(r["condition"]), float(r["orthogonality"])) for r in rows if r["code"] == code)
        axes.plot(*zip(*points), color=colour, marker=marker, markersize=4, linewidth=1.5)
        ends.append((points[-1][1], label, colour))
    for power, name in ((1, "κu"), (2, "κ²u")):
        line = [(k, k**power * u) for k in kappas if k**power * u < 1]
        axes.plot(*zip(*line), ":", color=GREY, linewidth=1.2)
        axes.annotate(name, line[len(line) // 2], textcoords="offset points", xytext=(6, -10), color=GREY)
    axes.axhline(u, color=GREY, linestyle=":", linewidth=1.2)
    axes.annotate("u", (kappas[0], u), textcoords="offset points", xytext=(0, 4), color=GREY)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("κ(A)")
    axes.set_ylabel("‖I − QᵀQ‖")
    axes.set_title(dtype)
    if labels:
        axes.figure.canvas.draw()
        label_ends(axes, ends)


def plot_orthogonality(path, out):
    rows = bench_csv.read(path)
    dtypes = [dtype for dtype in ("f32", "f64") if any(row["dtype"] == dtype for row in rows)]
    figure, all_axes = plt.subplots(1, len(dtypes), figsize=(4.4 * len(dtypes), 4.2), squeeze=False)
    for axes, dtype in zip(all_axes[0], dtypes):
        draw_orthogonality(axes, [row for row in rows if row["dtype"] == dtype], dtype, labels=dtype == dtypes[-1])
    figure.tight_layout()
    save(figure, out)


# ending of a file's name: what draws it
PICTURES = {
    "_batched": plot_batched,
    "_batch_sizes": plot_batched,
    "orthogonality": plot_orthogonality,
}


def main(directory):
    drawn = 0
    for path in sorted(glob.glob(os.path.join(directory, "*.csv"))):
        out = path[:-len(".csv")]
        for ending, plot in PICTURES.items():
            if out.endswith(ending):
                plot(path, out)
                drawn += 1
    if drawn == 0:
        sys.exit(f"results.py: {directory} holds no " + ", ".join(f"*{ending}.csv" for ending in PICTURES))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="the folder of the CSV files")
    main(parser.parse_args().directory)
