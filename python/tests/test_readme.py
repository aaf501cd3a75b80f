"""The first lines of README.md run as they are printed, and so does the command of its table."""

import importlib.util
import pathlib
import re

import pytest

from laws import assert_orthonormal, assert_product

root = pathlib.Path(__file__).parents[2]
readme = (root / "README.md").read_text()


def test_the_three_lines():
    lines = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    assert lines.count("\n") == 3 and "pip install quoin-qr" in readme[: readme.index(lines)]
    found = {}
    exec(lines, found)
    assert_orthonormal(found["Q"])
    assert_product(found["Q"], found["R"], found["A"])


def test_the_table(monkeypatch, capsys):
    pytest.importorskip("scipy")
    command = re.search(r"`python (\S+) --readme`", readme)[1]
    spec = importlib.util.spec_from_file_location("compare", root / command)
    compare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compare)
    shapes = compare.SHAPES["readme"]
    monkeypatch.setitem(compare.SHAPES, "readme", ["9x2", "20000x1", "4x5x3"])
    monkeypatch.setattr("sys.argv", [command, "--readme", "--repeat", "1"])
    compare.main()
    head, _, one, tall, stack = capsys.readouterr().out.splitlines()
    assert head in readme and one.startswith("| 9 × 2 | ") and tall.startswith("| 20 000 × 1 | ") and ": —, " in stack
    row = r"(\d+|\d+\.\d+) (µs|ms|s): ((\d+|\d+\.\d|—)(, |$)){1,3}"
    assert all(re.fullmatch(row, cell) for line in (one, tall, stack) for cell in line.strip("| ").split(" | ")[1:])
    # on a CPU and on a GPU, beside PyTorch alone
    printed = [line for line in readme.splitlines() if re.match(r"\| [\d ×]+ \| ", line)]
    assert len(printed) == 2 * len(shapes)
    for line, shape in zip(printed, 2 * shapes):
        assert line.split("|")[1].replace(" ", "").replace("×", "x") == shape
        assert all(re.fullmatch(row, cell) for cell in line.strip("| ").split(" | ")[1:])
