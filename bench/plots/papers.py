#!/usr/bin/env python3
"""Every table and figure of the five papers, beside the numbers that the papers print. `./run papers` calls it.

    papers.py report PROGRAM FOLDER [--quick] [--gpu]   runs `quoin bench paper` (PROGRAM: quoin-bench) and writes
                                                        FOLDER/report.html, which needs no other file
    papers.py markdown PROGRAM                          prints docs/papers.md

bench/papers/published.def has the numbers and sentences, `quoin-bench paper --list --json` the
entries. After Ctrl-C the report has what was done; --quick takes small matrices.
"""

import argparse
import base64
import collections
import datetime
import html
import io
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import bench_csv

DATA = ROOT / "bench" / "papers" / "published.def"


class Published:
    """The lines of published.def: `lines` has the lists of arguments for each (kind, paper, entry)."""

    def __init__(self):
        self.papers, self.lines = {}, collections.defaultdict(list)
        for line in DATA.read_text().splitlines():
            found = re.fullmatch(r"([A-Z]+)\((.*)\)", line)
            if not found:
                continue
            paper, entry, *rest = json.loads(f"[{found[2]}]")
            if found[1] == "PAPER":
                self.papers[paper] = (entry, *rest)
            else:
                self.lines[found[1], paper, entry].append(rest)

    def sentences(self, kind, paper, entry):
        return [text for text, in self.lines[kind, paper, entry]]

    def series(self, paper, entry):
        """The unit, and {code: {row: number}} of a printed table."""
        if not self.lines["ROWS", paper, entry]:
            return "", {}
        (unit, *rows), = self.lines["ROWS", paper, entry]
        return unit, {code: {row: x for row, x in zip(rows, values) if x != -1}
                      for code, *values in self.lines["VALUES", paper, entry]}


def entries_of(program):
    listed = subprocess.run([program, "paper", "--list", "--json"], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in listed.splitlines()]


def command_of(entry):
    command = f"quoin bench paper {entry['paper']} {entry['entry']}"
    return f"{command} --device cuda" if entry["host"] and entry["gpu"] else command


# ---- docs/papers.md --------------------------------------------------------------------------------------------------


def markdown(program):
    data, entries = Published(), entries_of(program)
    lines = ["# The papers, table by table", "",
             "Quoin unites five papers. Each of their tables and figures has a command that measures it again. `./run papers` runs all",
             "that this machine can and writes `build/papers/report.html`: each beside the numbers that the paper prints, with machine,",
             "command, date and commit. It takes at most 15 minutes on 2 cores, with `--quick` 2. A GPU's results that the repository",
             "keeps stand in for those that this machine cannot measure. `quoin bench paper --list` says where each entry runs and",
             "about how long.", "",
             "`bench/plots/papers.py markdown` writes this page from the data in [bench/papers/published.def](../bench/papers/published.def).", "",
             "![A part of the report: two entries of a paper, beside what the paper prints](pictures/papers_report.png)"]
    for paper, (title, machine) in data.papers.items():
        lines += ["", f"## {paper}", "", f"{title}.", f"Measured there on {machine}."]
        lines += data.sentences("DIFFERS", paper, "")
        lines += ["", "| entry | command | in Quoin | what differs |", "|---|---|---|---|"]
        for entry in (e for e in entries if e["paper"] == paper):
            key = paper, entry["entry"]
            command = f"`{command_of(entry).removesuffix(' --device cuda')}`"
            if entry["gpu"]:
                command += ", `--device cuda`" if entry["host"] else " on a GPU"
            files = ", ".join(f"[{name.rsplit('/', 1)[1]}](../{name})" for names in data.lines["FILES", *key] for name in names)
            differs = " ".join(data.sentences("DIFFERS", *key))
            lines.append(f"| {entry['title']} | {command} | {files} | {differs} |")
    return "\n".join(lines) + "\n"


# ---- What the pictures and tables of an entry show -------------------------------------------------------------------


def shape_of(row):
    return f"{row['rows']}x{row['cols']}"


def rates(x, reference_column="reference_gflops", own_column="gflops"):
    """Points of the studies of CAQR. In the rows of a shape the first method is Quoin's own choice, the other CAQR."""
    def points(rows):
        methods = {}
        for row in rows:
            if row["dtype"] != "f32" or not row["reference"] or row["reference"].endswith("2011"):
                continue
            seen = methods.setdefault(shape_of(row), [])
            if (row["op"], row["method"]) not in seen:
                seen.append((row["op"], row["method"]))
            code = ("Quoin", "Quoin CAQR")[min(1, seen.index((row["op"], row["method"])))]
            if reference_column:
                yield code, int(row[x]), shape_of(row), float(row[own_column])
                yield row["reference"], int(row[x]), shape_of(row), float(row[reference_column])
            else:
                yield f"{code} over {row['reference']}", int(row[x]), shape_of(row), float(row["ratio"])
    return points


def columns(x, y, series, keep=lambda row: True, label=shape_of):
    """Points (series, x, label of x, y) from columns of the rows that `keep` keeps."""
    def points(rows):
        for row in rows:
            if keep(row) and row[y] not in ("", "-1"):
                yield series(row), float(row[x]), label(row), float(row[y])
    return points


def storage_rates(rows):
    """Points in the paper's count 5n³/3, a second and, where joules were measured, a joule."""
    for row in rows:
        if row["op"] == "factor" and row["rows"] == row["cols"]:
            gflop = 5e-9 / 3 * int(row["cols"])**3
            for name, cost in ((row["code"], row["seconds"]), (f"{row['code']}: GFLOP/J", row.get("joules"))):
                if cost:
                    yield name, int(row["cols"]), shape_of(row), gflop / float(cost)


def out_of_core(*parts):
    """Points of a table of the out-of-core paper: `parts` has (name of a row, columns whose seconds are added)."""
    def points(rows):
        for row in rows:
            if row["reorthogonalized"] == "false" and row["arithmetic"] in ("fp16", "native"):
                for name, added in parts:
                    schedule = f", {row['schedule']}" if row.get("schedule") else ""
                    yield (f"{row['method']} {row['arithmetic']}, blocks of {row['asked_block']}, {float(row['memory_cap']) / 2**30:.3g} GiB{schedule}",
                           0, f"{shape_of(row)}, {name}", sum(float(row[column]) for column in added))
    return points


# whole runs, and what they would take one after the other
RUNS = out_of_core(("the run", ("seconds",)), ("sum of its copies and work", ("seconds_in", "seconds_out", "seconds_products", "seconds_panels")))


def kernel(code):
    return columns("nx", "gflops", lambda r: f"{r['access']}, NY = {r['ny']}",
                   lambda r: r["code"] == code and r["columns_left"] == "-1" and r["dtype"] == "f32", lambda r: r["nx"])


def of_code(row):
    return f"{row['code']} {row['dtype']}"


def of_threads(row):
    return ("blocked" if row["panel_width"] != "0" else "unblocked") + (", serial" if row["threads"] == "1" else f", {row['threads']} threads")


# (paper, entry): points, label of x, label of y
VIEWS = {
    ("caqr-report", "figure7"): (columns("panel_width", "update_gflops", lambda r: f"{r['leaf_rows']} rows, fan-in {r['fan_in']}" if int(r["panel_width"]) == 192 and r["fan_in"] in ("2", "4", "16") else f"leaves of {r['leaf_rows']} rows",
                                         lambda r: r["dtype"] == "f32", lambda r: r["panel_width"]), "columns of a panel", "GFLOP/s of the updates"),
    ("caqr-report", "strategies"): (lambda rows: ((r["code"], 0, shape_of(r), float(r["gflops"])) for r in rows), "", "GFLOP/s of apply_qt_h"),
    ("caqr-report", "figure8"): (rates("cols"), "columns", "GFLOP/s"),
    ("caqr-report", "figure9"): (rates("rows"), "rows", "GFLOP/s"),
    ("caqr-report", "table1"): (columns("rows", "iterations_per_second", lambda r: f"{r['method']} {r['route']}".strip(), lambda r: r["method"] != "online"), "", "iterations/s"),
    ("caqr", "figure8"): (rates("cols", None), "columns", "time over Quoin's"),
    ("caqr", "figure9"): (rates("cols"), "columns", "GFLOP/s"),
    ("caqr", "table1"): (rates("rows"), "rows", "GFLOP/s"),
    ("storage", "table1"): (columns("cols", "seconds", lambda r: r["code"], lambda r: r["op"] == "factor"), "order", "seconds"),
    ("storage", "figure2"): (storage_rates, "order", "GFLOP/s, 5n³/3"),
    ("storage", "products"): (columns("cols", "seconds", lambda r: f"{r['op']}, {r['code']} {r['dtype']}", lambda r: r["op"] != "factor"), "columns", "seconds"),
    ("out-of-core", "table1"): (RUNS, "", "seconds"),
    ("out-of-core", "table3"): (out_of_core(("in", ("seconds_in",)), ("out", ("seconds_out",))), "", "seconds"),
    ("out-of-core", "table4"): (out_of_core(("products", ("seconds_products",)), ("panels", ("seconds_panels",))), "", "seconds"),
    ("out-of-core", "tensor-cores"): (columns("cols", "ratio", lambda r: f"{r['method']} {r['arithmetic']} {r['reorthogonalization']}"), "order", "cuSOLVER's time over it"),
    ("gram-schmidt", "figure2"): (columns("threads", "seconds", lambda r: f"{r['code']} {r['cols']}", label=lambda r: r["threads"]), "threads", "seconds"),
    ("gram-schmidt", "figure4"): (columns("panel_width", "gflops", lambda r: f"{r['code']} {r['cols']}", label=lambda r: r["panel_width"]), "columns of a block", "GFLOP/s"),
    ("gram-schmidt", "figure5"): (columns("cols", "gflops", lambda r: r["code"], lambda r: r["threads"] == "1" and r["panel_width"] == "0"), "order", "GFLOP/s on one core"),
    ("gram-schmidt", "table1"): (columns("cols", "seconds", lambda r: f"{r['code']}, {r['cols']}", label=of_threads), "", "seconds"),
    ("gram-schmidt", "figure6"): (kernel("orthogonalization"), "NX", "GFLOP/s"),
    ("gram-schmidt", "figure7"): (kernel("dot-products"), "NX", "GFLOP/s"),
    ("gram-schmidt", "figure8"): (columns("columns_left", "seconds", lambda r: f"{r['nx']}×{r['ny']}", lambda r: int(r["columns_left"]) > 0 and r["dtype"] == "f32",
                                          lambda r: r["columns_left"]), "columns left", "seconds"),
    ("gram-schmidt", "figure10"): (columns("cols", "gflops", of_code, lambda r: r["orthogonality"]), "order", "GFLOP/s"),
    ("gram-schmidt", "orthogonality"): (columns("condition", "orthogonality", of_code, label=lambda r: r["condition"]), "κ", "‖I − QᵀQ‖"),
}
for same, entry in {("caqr-report", "figure10"): ("caqr-report", "figure8"), ("caqr", "figure7"): ("caqr-report", "figure7"),
                    ("caqr", "strategies"): ("caqr-report", "strategies"),
                    ("caqr", "table2"): ("caqr-report", "table1"), ("gram-schmidt", "figure9"): ("gram-schmidt", "figure10"),
                    ("out-of-core", "table2"): ("out-of-core", "table1"), ("out-of-core", "growing"): ("out-of-core", "table1"),
                    ("out-of-core", "stages"): ("out-of-core", "table1")}.items():
    VIEWS[same] = VIEWS[entry]


def kernel_maps(code):
    """{title of a map: {(x, y): (colour, text)}} of a kernel over the shape of a block."""
    def maps(rows):
        found = {}
        for row in rows:
            if row["code"] == code and row["columns_left"] == "-1" and row["dtype"] == "f32":
                title = {"direct": "direct access", "shared": "through shared memory"}[row["access"]]
                found.setdefault(title, {})[int(row["nx"]), int(row["ny"])] = float(row["gflops"]), f"{float(row['gflops']):.0f}"
        return found
    return maps


def step_maps(rows):
    """A map of µs of an orthogonalization, in the colours of their ratios to the fastest shape's."""
    times = {(int(row["columns_left"]), f"{row['nx']}×{row['ny']}"): 1e6 * float(row["seconds"])
             for row in rows if int(row["columns_left"]) > 0 and row["dtype"] == "f32"}
    least = {x: min(time for (left, _), time in times.items() if left == x) for x, _ in times}
    return {"µs of an orthogonalization": {(x, y): (time / least[x], f"{time:.3g}") for (x, y), time in times.items()}} if times else {}


# (paper, entry): maps, label of x, label of y, label of the colours
MAPS = {
    ("gram-schmidt", "figure6"): (kernel_maps("orthogonalization"), "NX, threads along a column", "NY, columns a block", "GFLOP/s"),
    ("gram-schmidt", "figure7"): (kernel_maps("dot-products"), "NX, threads along a column", "NY, columns a block", "GFLOP/s"),
    ("gram-schmidt", "figure8"): (step_maps, "columns left", "NX×NY", "time over the fastest shape's"),
}


def embedded(kind, content):
    return f'<img src="data:image/{kind};base64,{base64.b64encode(content).decode()}">'


def picture(lines, published, x_label, y_label, x_of):
    """An SVG of {series: {label: y}} over the numbers `x_of` of the labels; the paper's numbers are dotted."""
    import style
    figure, axes = style.plt.subplots(figsize=(7.2, 4.2))
    for number, (name, points) in enumerate([*lines.items(), *published.items()]):
        drawn = sorted((x_of[label], y) for label, y in points.items() if label in x_of and y > 0)
        if drawn:
            colours = [style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY, "black"]
            paper = name in published and name not in lines
            axes.plot(*zip(*drawn), ":" if paper else ("-", "--", "-.")[number // 7 % 3], color=style.GREY if paper else colours[number % 7],
                      marker="os^vDPx"[number % 7], markersize=4, label=f"{name} (paper)" if paper else name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    if len(x_of) <= 16:
        style.plain_log_ticks(axes.xaxis, sorted(set(x_of.values())))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    return svg_of(figure)


def heat_maps(maps, x_label, y_label, colour_label):
    """An SVG of the maps beside each other, in the same colours."""
    import style
    figure, panels = style.plt.subplots(1, len(maps), figsize=(1 + 4.6 * len(maps), 3.4), squeeze=False, constrained_layout=True)
    colours = [colour for cells in maps.values() for colour, _ in cells.values()]
    low, high = min(colours), max(colours)
    for axes, (title, cells) in zip(panels[0], maps.items()):
        # in the order of the file
        xs, ys = (list(dict.fromkeys(cell[side] for cell in cells)) for side in (0, 1))
        image = axes.imshow([[cells.get((x, y), (float("nan"), ""))[0] for x in xs] for y in ys], origin="lower", aspect="auto",
                            cmap="viridis", vmin=low, vmax=high)
        for (x, y), (colour, text) in cells.items():
            axes.text(xs.index(x), ys.index(y), text, ha="center", va="center", fontsize=8,
                      color="white" if colour < (low + high) / 2 else "black")
        axes.set_xticks(range(len(xs)), xs)
        axes.set_yticks(range(len(ys)), ys)
        axes.grid(False)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(title)
    figure.colorbar(image, ax=panels[0], label=colour_label)
    return svg_of(figure)


def svg_of(figure):
    import style
    content = io.BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    style.plt.close(figure)
    return content.getvalue()


def table(head, rows):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
    return '<table>' + line(head, "th") + "".join(line(row, "td") for row in rows) + "</table>"


def number(x):
    return "–" if x is None else f"{x:.0f}" if x >= 1e4 else f"{x:.4g}"


def shown(key, path, data, folder):
    """The picture and the table of an entry from a CSV file, beside what the paper prints."""
    rows = bench_csv.read(path)
    if key not in VIEWS or not rows:
        return table(rows[0].keys(), [row.values() for row in rows]) if rows else "<p>No results.</p>"
    points, x_label, y_label = VIEWS[key]
    lines, x_of = {}, {}
    for name, x, label, y in points(rows):
        lines.setdefault(name, {}).setdefault(label, y)
        x_of[label] = x
    unit, published = data.series(*key)
    out, svg = "", None
    if maps := key in MAPS and MAPS[key][0](rows):
        svg = heat_maps(maps, *MAPS[key][1:])
    elif len(x_of) > 1 and all(x > 0 for x in x_of.values()) and len(set(x_of.values())) > 1:
        svg = picture(lines, published, x_label, y_label, x_of)
    if svg:
        if folder:
            (folder / f"{'_'.join(key)}_{path.stem.rsplit('_', 1)[-1]}.svg").write_bytes(svg)
        out = embedded("svg+xml", svg)
    labels = sorted(x_of, key=lambda label: x_of[label])
    beside = {f"{code}, paper ({unit})": values for code, values in published.items() if any(label in values for label in labels)}
    cells = lines | beside
    if len(cells) > len(labels):  # the longer side goes down
        return out + table([y_label, *labels], [[name, *(number(values.get(label)) for label in labels)] for name, values in cells.items()])
    return out + table([y_label, *cells], [[label, *(number(values.get(label)) for values in cells.values())] for label in labels])


# ---- The report ------------------------------------------------------------------------------------------------------


STYLE = """body{font:15px/1.45 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px;margin:.6em 0;display:block;overflow-x:auto}td,th{border:1px solid #ccc;padding:2px 7px;text-align:right}
td:first-child,th:first-child{text-align:left}img{max-width:100%}h2{border-top:2px solid #0072B2;padding-top:.5em}code{background:#f2f2f2}
.from{color:#555;font-size:13px}.paper{border-left:4px solid #E69F00;padding-left:.8em}"""


class Report:
    def __init__(self, program, folder, quick, gpu):
        self.program, self.folder, self.quick = program, folder, quick
        self.data, self.entries, self.done = Published(), entries_of(program), {}
        self.devices, self.environment = ["host", "gpu"] if gpu else ["host"], []
        self.commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "unknown"

    def runs(self):
        """(name of the run, device, its entry), each once, a GPU's before the host's, and the shortest first."""
        entry_of = {f"{entry['paper']} {entry['entry']}": entry for entry in self.entries}
        found = {(entry["run"], device): entry_of[entry["run"]] for entry in self.entries for device in self.devices if entry[device]}
        def duration(run):
            count, unit = run[2][run[1]].split()
            return run[1] == "host", float(count) * {"s": 1, "min": 60}[unit]
        return sorted(((*key, entry) for key, entry in found.items()), key=duration)

    def arguments(self, entry, device):
        asked = self.data.lines["QUICK", entry["paper"], entry["entry"]]
        if not asked:
            return []
        full, quick, *on_gpu = asked[0]
        if device == "gpu" and entry["host"]:
            return " ".join(on_gpu).split()
        return (quick if self.quick else full).split()

    def run_all(self):
        start, runs = time.monotonic(), self.runs()
        # and some seconds to draw
        end = start + (80 if self.quick else 800 if "gpu" in self.devices else 740)
        for count, (run, device, entry) in enumerate(runs, 1):
            paper, name = run.split()
            csv = self.folder / f"{paper}_{name}_{device}.csv"
            command = ["paper", paper, name, *(["--device", "cuda"] if device == "gpu" and entry["host"] else []), *self.arguments(entry, device)]
            extra = ["--trace", str(csv.with_suffix(".json"))] if run == "storage figure1" or (paper == "out-of-core" and name != "tensor-cores") else []
            print(f"[{count}/{len(runs)}] {time.monotonic() - start:4.0f} s: quoin bench {' '.join(command)}", flush=True)
            # a slow run of the host may take three times its share of the time that is left
            share = 1 if device == "gpu" else min(1, 3 / (len(runs) - count + 1))
            limit = max(1, (end - time.monotonic()) * share)
            result = self.bench([*command, *extra, "--csv", str(csv)], limit)
            if asked := re.search(r"OPENBLAS_CORETYPE=(\w+) in the environment chooses faster", result.stderr):
                self.environment.append(asked[0].split()[0])  # a fair LAPACK
                result = self.bench([*command, *extra, "--csv", str(csv)], limit)
            csv.with_suffix(".txt").write_text(result.stdout + result.stderr)
            self.done[run, device] = {"command": " ".join([*self.environment, "quoin bench", *command]), "date": str(datetime.date.today()),
                                      "failed": result.returncode != 0, "said": result.stderr.strip(), "csv": csv}
            if result.returncode == 130:  # Ctrl-C reached the program first
                raise KeyboardInterrupt
            if result.returncode:
                print(f"        {result.stderr.strip()}", flush=True)

    def bench(self, arguments, limit):
        """Runs the program. After `limit` seconds it ends; its file has the rows that are done."""
        call = ["env", *self.environment, self.program, *arguments]
        try:
            return subprocess.run(call, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            note = f"stopped after {limit:.0f} s, because the report's time is limited; the command by itself goes on to its end"
            return subprocess.CompletedProcess(call, 0, "", note)

    def timelines(self, key, csv):
        """The pictures of a traced run that belong to an entry, which are drawn once."""
        if key == ("storage", "figure1"):
            import timeline
            for trace in self.folder.glob(f"{csv.stem}.json.*.json"):
                timeline.main([str(trace)])
            kind = "json.*"
        elif key[0] == "out-of-core" and key[1] not in ("table3", "table4", "tensor-cores"):
            import out_of_core
            kind = "_products" if key[1] in ("table1", "table2", "figure7", "figure8", "figure9", "figure10", "figure11") else "_runs"
            if not list(self.folder.glob(f"{csv.stem}*_runs.png")):
                out_of_core.main([str(csv), "--out", str(csv.with_suffix(""))])
        else:
            return ""
        return "".join(embedded("png", picture.read_bytes()) for picture in sorted(self.folder.glob(f"{csv.stem}*{kind}.png")))

    def of_entry(self, entry):
        key = entry["paper"], entry["entry"]
        out = [f"<h3 id='{'-'.join(key)}'>{html.escape(entry['title'])}</h3>"]
        said = [html.escape(text) for text in self.data.sentences("SAYS", *key)]
        unit, published = self.data.series(*key)
        if published:
            rows = list(dict.fromkeys(row for values in published.values() for row in values))
            said.append(table([unit, *published], [[row, *(number(values.get(row)) for values in published.values())] for row in rows]))
        if said:
            out.append("<div class='paper'><b>The paper.</b> " + " ".join(said) + "</div>")
        out += [f"<p>{html.escape(text)}</p>" for text in self.data.sentences("DIFFERS", *key)]
        for device in self.devices:
            done = self.done.get((entry["run"], device))
            if not done:
                if entry[device]:
                    out.append(f"<p>Not run yet: <code>{html.escape(command_of(entry))}</code></p>")
                continue
            machine = bench_csv.device_of(done["csv"]) if done["csv"].exists() else ""
            out.append(f"<p class='from'>{html.escape(machine)}; <code>{html.escape(done['command'])}</code>; {done['date']}; commit {self.commit}</p>")
            if done["said"]:
                out.append(f"<p class='from'>{html.escape(done['said'])}</p>")
            if done["failed"]:
                out.append("<p>It failed.</p>")
                continue
            pictures = self.timelines(key, done["csv"])
            out.append(pictures + (shown(key, done["csv"], self.data, self.folder) if key in VIEWS or not pictures else ""))
        if "gpu" not in self.devices and entry["gpu"] and not self.data.lines["KEPT", *key]:
            out.append(f"<p>This machine has no GPU, and the repository keeps no results of <code>{html.escape(command_of(entry))}</code>.</p>")
        if "gpu" not in self.devices:
            out += [self.kept(key, ROOT / path) for path, in self.data.lines["KEPT", *key]]
        if key == ("gram-schmidt", "figure10"):
            out.append(self.together(key, entry))
        files = [name for names in self.data.lines["FILES", *key] for name in names]
        out.append(f"<p class='from'>In Quoin: {', '.join(f'<code>{name}</code>' for name in files)}</p>")
        return "\n".join(out)

    def together(self, key, entry):
        """One picture of an entry's curves in f32 on a CPU and a GPU, this machine's or the kept one."""
        files = {device: self.done[entry["run"], device]["csv"] for device in self.devices if (entry["run"], device) in self.done}
        if "gpu" not in self.devices:
            files["gpu"] = ROOT / self.data.lines["KEPT", *key][0][0]
        files = {{"host": "CPU", "gpu": "GPU"}[device]: path for device, path in files.items() if path.exists()}
        points, x_label, y_label = VIEWS[key]
        lines, x_of = {}, {}
        for device, path in files.items():
            for name, x, label, y in points([row for row in bench_csv.read(path) if row["dtype"] == "f32"]):
                lines.setdefault(f"{device}: {name.removesuffix(' f32')}", {}).setdefault(label, y)
                x_of[label] = x
        if not lines:
            return ""
        devices = ", ".join(f"{device}: {bench_csv.device_of(path)}" for device, path in files.items())
        return f"<p class='from'>{html.escape(devices)}; f32</p>" + embedded("svg+xml", picture(lines, {}, x_label, y_label, x_of))

    def kept(self, key, path):
        """Results that the repository has from a GPU."""
        name = path.relative_to(ROOT)
        if path.suffix != ".csv":
            return f"<p class='from'>Kept from a GPU: <code>{name}</code></p>" + embedded({".svg": "svg+xml"}.get(path.suffix, "png"), path.read_bytes())
        head = [line[2:].strip() for line in path.read_text().splitlines() if line.startswith("# ")]
        return f"<p class='from'>Kept from a GPU, <code>{name}</code>: {html.escape('; '.join(head[:2]))}</p>" + shown(key, path, self.data, self.folder)

    def write(self):
        out = ["<!doctype html><html lang='en'><meta charset='utf-8'><title>The papers, again</title>", f"<style>{STYLE}</style>",
               "<h1>Every table and figure of the five papers, again</h1>",
               f"<p>By <code>./run papers{' --quick' if self.quick else ''}</code>, {datetime.datetime.now():%Y-%m-%d %H:%M}, commit {self.commit}: "
               f"{len(self.done)} of {len(self.runs())} runs. Orange bars mark what a paper prints.</p>"]
        for paper, (title, machine) in self.data.papers.items():
            out += [f"<h2 id='{paper}'>{html.escape(title)}</h2>", f"<p>Measured there on {html.escape(machine)}.</p>"]
            out += [f"<p>{html.escape(text)}</p>" for text in self.data.sentences("DIFFERS", paper, "")]
            out += [self.of_entry(entry) for entry in self.entries if entry["paper"] == paper]
        (self.folder / "report.html").write_text("\n".join(out) + "\n</html>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("report", "markdown"))
    parser.add_argument("program")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "build" / "papers")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    asked = parser.parse_args()
    if asked.what == "markdown":
        return print(markdown(asked.program), end="")
    asked.folder.mkdir(parents=True, exist_ok=True)
    report = Report(asked.program, asked.folder, asked.quick, asked.gpu)
    try:
        report.run_all()
    except KeyboardInterrupt:
        print("stopped; the report has what was done", file=sys.stderr)
    report.write()
    print(f"== {asked.folder / 'report.html'}")


if __name__ == "__main__":
    sys.exit(main())
