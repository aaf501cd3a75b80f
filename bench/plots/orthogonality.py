#!/usr/bin/env python3
"""Draws the loss of orthogonality over κ, docs/pictures/orthogonality.svg.

    build/bin/quoin bench paper orthogonality --csv docs/pictures/orthogonality.csv
    python3 bench/plots/orthogonality.py docs/pictures/orthogonality.csv docs/pictures/orthogonality.svg
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from results import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, bench_csv, label_ends

# name in the results: label, colour, marker
CODES = {
    "cgs": ("CGS", VERMILION, "s"),
    "mgs": ("MGS", BLUE, "o"),
    "cgs-selective": ("CGS, selective", ORANGE, "^"),
    "cgs-always": ("CGS, always", PURPLE, "v"),
    "mgs-always": ("MGS, always", SKY, "D"),
    "householder": ("Householder", GREEN, "P"),
    "tsqr": ("TSQR", "black", "x"),
}
UNIT = {"f32": 2.0**-24, "f64": 2.0**-53}


def draw(axes, rows, dtype, labels):
    u = UNIT[dtype]
    kappas = sorted({float(row["condition"]) for row in rows})
    ends = []
    for code, (label, colour, marker) in CODES.items():
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


def main(source, target):
    rows = bench_csv.read(source)
    dtypes = [dtype for dtype in ("f32", "f64") if any(row["dtype"] == dtype for row in rows)]
    figure, all_axes = plt.subplots(1, len(dtypes), figsize=(4.4 * len(dtypes), 4.2), squeeze=False)
    for axes, dtype in zip(all_axes[0], dtypes):
        draw(axes, [row for row in rows if row["dtype"] == dtype], dtype, labels=dtype == dtypes[-1])
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="the CSV file that quoin bench wrote")
    parser.add_argument("picture", help="the SVG file to write")
    arguments = parser.parse_args()
    main(arguments.results, arguments.picture)
