"""Fails where a public type of include/quoin has no description, which the built pages would then show without a
word."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
DECLARED = re.compile(r"\s*(struct|class|enum class|enum|using) (\w+)")
DETAIL = re.compile(r"^namespace detail \{.*?^\}", re.DOTALL | re.MULTILINE)


def undescribed(text):
    """(number of the line, line) of types that no `///` describes, before them or on their line. Not those that are
    private or in `detail`, nor declarations of types that are defined elsewhere."""
    lines = DETAIL.sub(lambda block: "\n" * block[0].count("\n"), text).split("\n")
    private = False
    for i, line in enumerate(lines):
        if re.match(r"\s*private:", line):
            private = True
        elif re.match(r"\s*public:|\S", line):
            private = False
        declared = DECLARED.match(line)
        if private or not declared or (line.endswith(";") and "=" not in line and "{" not in line):
            continue
        first = i
        while re.match(r"\s*(template|requires)\b", lines[first - 1]):
            first -= 1
        if "///" not in line and not lines[first - 1].lstrip().startswith("///"):
            yield i + 1, line.strip()


found = [
    f"{file.relative_to(root)}:{number}: {line}"
    for file in sorted((root / "include" / "quoin").rglob("*.hpp"))
    for number, line in undescribed(file.read_text(encoding="utf-8"))
]
print("\n".join(found) or "all public types are described")
sys.exit(bool(found))
