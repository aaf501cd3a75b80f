"""The CSV files of `quoin bench --csv`: comment lines, a header, one row a case and reference."""

import csv


def read(path):
    """The rows of a file as dictionaries; columns that were not measured hold ''."""
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


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
