"""The CSV files of results: comment lines, a header, one row a case and reference."""

import csv
import datetime
import pathlib
import subprocess


def read(path):
    """The rows of a file as dictionaries; columns that were not measured hold ''."""
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def device_of(path):
    """Returns the device that a file's comments name: on its own line (`./run gpu-bench`), or after the version."""
    with open(path) as file:
        for line in file:
            for begin, field in (("# device: ", 0), ("# quoin ", 1)):
                if line.startswith(begin):
                    return (line[len(begin):].split(";") + [""])[field].split(",")[0].strip()
    return ""


def write(path, rows, program, *about):
    """Writes rows below a comment with the commit, the date, what `about` says and the version of `program`."""
    root = pathlib.Path(__file__).parents[1]
    commit, version = (subprocess.run(command, capture_output=True, text=True).stdout.strip()
                       for command in (["git", "-C", root, "rev-parse", "--short", "HEAD"], [program, "--version"]))
    with open(path, "w", newline="") as file:
        file.write("# " + "; ".join((f"commit: {commit}", str(datetime.date.today()), *about, version)) + "\n")
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def append(path, rows, comment):
    """Appends a comment on their origin and rows with the columns of the file."""
    with open(path, newline="") as file:
        columns = next(csv.reader(line for line in file if not line.startswith("#")))
    with open(path, "a", newline="") as file:
        file.write(f"# {comment}\n")
        csv.DictWriter(file, columns, lineterminator="\n").writerows(rows)


def flops(row):
    """The standard Householder count of a row's operation, as cli/common/flop_counts.hpp has it."""
    m, n = int(row["rows"]), int(row["cols"])
    p, k = max(m, n), min(m, n)
    factor = 2 * p * k * k - 2 * k**3 / 3
    return factor + (2 * m * k * k - 2 * k**3 / 3 if row["op"] == "thin-qr" else 0)
