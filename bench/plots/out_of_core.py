#!/usr/bin/env python3
"""Draws the timelines that `quoin bench paper out-of-core ENTRY --csv X.csv --trace X.json` wrote into a folder.

They are Tables 1 and 2 and Figures 7 to 15 of Zhang and Wu (2021), on this GPU. `./run papers` draws the seconds of
Tables 3 and 4.

    python3 bench/plots/out_of_core.py DIRECTORY_OR_CSV [--out PREFIX]

PREFIX_…_products.png   the largest products (Figures 7 to 11; Tables 1 and 2)
PREFIX_…_runs.png       whole runs (Figures 12 to 15)
"""

import argparse
import collections
import glob
import itertools
import os
import pathlib
import sys

import style
import timeline
from style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, plt, thousands

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import bench_csv

METHODS = {"recursive": "recursion", "blocking": "blocks"}
# their Tables 1 and 2: TFLOP/s of the largest inner and outer product of 131072², blocks of 16384
PUBLISHED_PRODUCTS = {"recursive": (87.1, 97.7), "blocking": (43.6, 96.2)}
COLOURS = {"panel": VERMILION, "A₂": SKY, "Q₁": ORANGE, "R₁₂": GREEN, "slab": SKY, "V": ORANGE, "inner product": PURPLE,
           "outer product": BLUE, "both products": "#332288", "reorthogonalization": PURPLE, "update": BLUE}
KINDS = {"A": "A₂", "Q": "Q₁", "R": "R₁₂", "projection": "both products"}


class Case:
    """One matrix, cap and block that was asked for: {route: row}, and {route: timeline} of those that were traced."""

    def __init__(self, m, n, dtype, cap, block):
        self.m, self.n, self.dtype, self.cap, self.block = int(m), int(n), dtype, float(cap) / 2**30, int(block)
        self.rows, self.traces = {}, {}

    def shape(self):
        return thousands(self.m) + ("²" if self.m == self.n else f" × {thousands(self.n)}")

    def title(self):
        return f"{self.shape()} {self.dtype}, {self.cap:g} GiB" + (f", blocks of {thousands(self.block)}" if self.block else "")

    def name(self):
        shape = f"{self.m}" + ("" if self.m == self.n else f"x{self.n}")
        return f"{shape}_{self.dtype}_{self.cap:g}GiB" + (f"_{self.block}" if self.block else "")


def read(directory):
    """The cases of a folder, or of one file, and the device that its files name. Of a route that was measured twice the
    last file counts."""
    cases, device = {}, ""
    for path in [directory] if os.path.isfile(directory) else sorted(glob.glob(os.path.join(directory, "*.csv"))):
        rows = [row for row in bench_csv.read(path) if "asked_block" in row]
        of_file = [tuple(row[key] for key in ("rows", "cols", "dtype", "memory_cap", "asked_block")) for row in rows]
        device = device or (bench_csv.device_of(path) if rows else "")
        for key, row in zip(of_file, rows):
            route = f"{row['method']}-{row['arithmetic']}" + ("-twice" if row["reorthogonalized"] == "true" else "")
            route += "-" * bool(schedule := row.get("schedule", "")) + schedule
            case = cases.setdefault(key, Case(*key))
            case.rows[route] = row
            trace = path[:-len("csv")] + "json" + (f".{route}.json" if len(rows) > 1 else "")
            if len(set(of_file)) == 1 and os.path.exists(trace):  # runs on several matrices leave the trace of the last
                case.traces[route] = timeline.read(trace)
    if not cases:
        sys.exit(f"out_of_core.py: {directory} holds no results of quoin bench paper out-of-core ENTRY --csv")
    return list(cases.values()), device.removeprefix("NVIDIA ") or "this GPU"


# ---- Timelines -------------------------------------------------------------------------------------------------------


def kind(name):
    """The operand of a span: 'A in' and 'A out' give the same."""
    first, _, rest = name.partition(" ")
    return KINDS.get(first, first) if rest in ("in", "out") else KINDS.get(name, name)


def outermost(rows):
    return [(name, [span for span, depth in zip(spans, timeline.depths(spans)) if depth == 0]) for name, spans in rows]


def largest_product(rows):
    """(begin, end, s): the longest run of products without a panel between, from the first copy that it waits for to
    the last one that it makes; A₂ begins at column s. None where there is no product."""
    spans = collections.defaultdict(list, rows)
    runs = [list(of_run) for _, of_run in itertools.groupby(spans["device, main stream"], lambda span: span.name == "panel")]
    lengths = [0 if run[0].name == "panel" else run[-1].end - run[0].begin for run in runs]
    if not any(lengths):
        return None
    i = lengths.index(max(lengths))
    begin, end = runs[i][0].begin, runs[i][-1].end
    before = runs[i - 1][-1].begin if i > 0 else 0
    after = runs[i + 1][0].begin if i + 1 < len(runs) else float("inf")
    incoming = [span for span in spans["host to device"] if before <= span.begin < end and kind(span.name) != "panel"]
    outgoing = [span for span in spans["device to host"] if begin <= span.begin < after and kind(span.name) != "panel"]
    columns = [span.step for span in incoming if span.name == "A in"]
    if not columns or not outgoing:
        return None
    return min(span.begin for span in incoming), max(span.end for span in outgoing), min(columns)


def plot_timelines(parts, out, title):
    """parts: [(title, rows, begin, end)], one below the other on axes of the same length."""
    length = max(end - begin for _, _, begin, end in parts)
    figure, panels = plt.subplots(len(parts), 1, figsize=(10, 1.9 * len(parts) + 0.8), squeeze=False, constrained_layout=True)
    colours, used = dict(COLOURS), set()
    for axes, (of_part, rows, begin, end) in zip(panels[:, 0], parts):
        moved = [(name, [span._replace(begin=span.begin - begin, end=span.end - begin) for span in spans]) for name, spans in rows]
        used.update(timeline.timeline(axes, moved, 0, end - begin, colours, kind))
        axes.set_xlim(0, length)
        axes.set_title(of_part, fontsize=10)
    panels[-1, 0].set_xlabel("ms")
    timeline.legend(panels[-1, 0], [name for name in colours if name in used], colours, 0.3, columns=7)
    figure.suptitle(title, x=0.02, ha="left", fontsize=11)
    style.save(figure, out, (".png",))


def plot_products(case, out, device):
    parts = []
    for route, trace in sorted(case.traces.items()):
        method, arithmetic, *schedule = route.split("-", 2)
        rows = outermost(trace)
        found = arithmetic == "fp16" and method in METHODS and "twice" not in route and largest_product(rows)
        if not found:
            continue
        begin, end, s = found
        tflops = 1e-9 * 4 * case.m * s * (case.n - s) / (end - begin)
        inner, outer = PUBLISHED_PRODUCTS[method]
        figures = {"recursive": "Figures 8 and 10", "blocking": "Figures 7, 9 and 11"}[method]
        theirs = "" if schedule else f" ({figures}; their V100 {inner} and {outer})"
        parts.append((f"{', '.join([METHODS[method], *schedule])}: Q₁ᵀA₂ and A₂ − Q₁R₁₂ with {thousands(s)} and "
                      f"{thousands(case.n - s)} columns, {tflops:.0f} TFLOP/s{theirs}", rows, begin, end))
    if parts:
        plot_timelines(parts, out, f"The largest products of {case.title()}, {device}")


def plot_runs(case, out, device):
    parts = []
    for route, trace in sorted(case.traces.items()):
        row, rows = case.rows[route], outermost(trace)
        seconds, end = float(row["seconds"]), max(span.end for _, spans in rows for span in spans)
        allowed = min(1, float(row["seconds_products"]) / max(float(row["seconds_product_copies"]), 1e-9))
        parts.append((f"{route.replace('-', ' ')}: {seconds:.3g} s, {float(row['tflops']):.0f} TFLOP/s; copies hidden: "
                      f"{100 * float(row['hidden']):.0f}%, of the products {100 * float(row['hidden_in_products']):.0f}% "
                      f"(the arithmetic allows {100 * allowed:.0f}%)", rows, end - 1e3 * seconds, end))
    if parts:
        plot_timelines(parts, out, f"{case.title()}, {device}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--out", metavar="PREFIX", help="of the pictures' paths (default: DIRECTORY/out_of_core)")
    asked = parser.parse_args(arguments)
    out = asked.out or os.path.join(asked.directory, "out_of_core")
    cases, device = read(asked.directory)
    for case in cases:
        plot_products(case, f"{out}_{case.name()}_products", device)
        plot_runs(case, f"{out}_{case.name()}_runs", device)


if __name__ == "__main__":
    main(sys.argv[1:])
