#!/usr/bin/env python3
"""Draws a timeline that `quoin ... --trace FILE` wrote, as an SVG and a PNG in its folder: a row for each engine, a bar
for each span.

    python3 bench/plots/timeline.py TRACE.json [--from MS] [--to MS] [--title TEXT]

--from and --to bound the part that is drawn, in milliseconds from the first span. Spans within others are drawn over
them, lower. A trace does not say what ran: --title does, by default the file's name.
"""

import argparse
import json
import sys
from typing import NamedTuple

import style
from style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, plt

# the steps of the blocked algorithm keep their colours; what else there is takes the next of the others
COLOURS = {"panel": VERMILION, "update": BLUE, "T": GREEN, "S": ORANGE, "copy in": PURPLE, "copy out": SKY,
           "broadcast": PURPLE, "reduce": SKY, "send": GREEN, "wait": "#CCCCCC"}
OTHERS = (GREY, "#F0E442", "#999933", "#882255", "#44AA99", "#332288",
          "#CC6677", "#117733", "#661100", "#AA4499", "#DDCC77", "#6699CC")


class Span(NamedTuple):
    name: str
    begin: float  # milliseconds
    end: float
    step: int | None = None  # of the algorithm, such as a panel's number


def read(path):
    """The rows, [(name, [Span])] from the top, in milliseconds from the first span, spans by their begin."""
    try:
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        rows_of, processes = {}, {}
        for e in events:
            if e["ph"] == "M" and e["name"] == "thread_name":
                rows_of.setdefault(e.get("pid"), {})[e["tid"]] = e["args"]["name"]
            elif e["ph"] == "M" and e["name"] == "process_name":
                processes[e.get("pid")] = e["args"]["name"]
        # with several ranks a row has the rank's name, and the engine's name if a rank has several rows
        names = {(pid, tid): name if len(rows_of) == 1 else processes[pid] if len(rows) == 1 else f"{processes[pid]}, {name}"
                 for pid, rows in rows_of.items() for tid, name in rows.items()}
        spans = [((e.get("pid"), e["tid"]), Span(e["name"], e["ts"] / 1e3, (e["ts"] + e["dur"]) / 1e3, e.get("args", {}).get("step")))
                 for e in events if e["ph"] == "X"]
    except OSError as error:
        sys.exit(f"timeline.py: {path}: {error.strerror}")
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"timeline.py: {path} is not a trace: {error}")
    if not spans:
        sys.exit(f"timeline.py: {path} holds no spans")
    first = min(span.begin for _, span in spans)
    rows = {}
    for row, span in sorted(spans, key=lambda found: (found[0], found[1].begin, -found[1].end)):
        rows.setdefault(row, []).append(span._replace(begin=span.begin - first, end=span.end - first))
    return [(names.get(row, str(row[1])), of_row) for row, of_row in rows.items()]


def depths(spans):
    """How many spans each one lies within."""
    found, around = [], []
    for _, begin, end, _ in spans:
        while around and around[-1] <= begin:
            around.pop()
        found.append(len(around))
        around.append(end)
    return found


def busy(spans, begin, end):
    """The share of [begin, end] in which a row is busy."""
    total, last = 0, begin
    for _, b, e, _ in spans:
        b, e = max(b, last), min(e, end)
        if e > b:
            total, last = total + e - b, e
    return total / (end - begin) if end > begin else 0


def timeline(axes, rows, begin, end, colours, kind=lambda name: name):
    """Bars of [begin, end] in the colours of their kinds. Returns the kinds that are there; `colours` gains those it
    lacks."""
    used, thin = set(), (end - begin) / 300
    for line, (_, spans) in enumerate(rows):
        bars = {}
        for (name, b, e, _), depth in zip(spans, depths(spans)):
            if e > begin and b < end:
                bars.setdefault((depth, kind(name)), []).append((b, e - b))
        for (depth, name), of_kind in sorted(bars.items()):
            colour = colours.setdefault(name, next((c for c in OTHERS if c not in colours.values()), GREY))
            height = 0.7 * 0.7**depth
            # white edges would hide thin bars, and whole pixels make them longer or none
            axes.broken_barh(of_kind, (line + 0.35 - height, height), facecolors=colour, edgecolor="white",
                             linewidth=[0.3 if width > thin else 0 for _, width in of_kind], snap=False)
            used.add(name)
    axes.set_yticks(range(len(rows)), [f"{name}\n{100 * busy(spans, begin, end):.0f}% busy" for name, spans in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(begin, end)
    axes.grid(axis="y", visible=False)
    return [name for name in colours if name in used]


def legend(axes, names, colours, below, columns=6):
    axes.legend([plt.Rectangle((0, 0), 1, 1, color=colours[name]) for name in names], names, loc="upper center",
                bbox_to_anchor=(0.5, -below), ncols=columns, frameon=False, fontsize=9)


def draw(rows, out, title, begin=0.0, end=None):
    end = max(span.end for _, spans in rows for span in spans) if end is None else end
    if not begin < end:
        sys.exit(f"timeline.py: --from {begin:g} is not before {end:g} ms")
    colours = dict(COLOURS)
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.55 * len(rows)))
    used = timeline(axes, rows, begin, end, colours)
    legend(axes, used, colours, 0.45 / len(rows) + 0.12)
    axes.set_xlabel("ms")
    axes.set_title(title)
    style.save(figure, out)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--from", dest="begin", type=float, default=0.0, metavar="MS")
    parser.add_argument("--to", dest="end", type=float, metavar="MS")
    parser.add_argument("--title")
    asked = parser.parse_args(arguments)
    out = asked.trace[:-len(".json")] if asked.trace.endswith(".json") else asked.trace
    draw(read(asked.trace), out, asked.title or out.split("/")[-1], asked.begin, asked.end)


if __name__ == "__main__":
    main(sys.argv[1:])
