"""Fails unless quoin.h declares, src/c/exports.map lists and libquoin_c.so exports the same functions, and quoin.h
and the program in docs/c.md compile without a warning as C99 and as C++.

    c_abi_test.py NM LIBRARY CC CXX
"""

import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[1]
header = root / "include/quoin.h"
nm, library, cc, cxx = sys.argv[1:]

declared = re.findall(r"^[\w* ]+\b(quoin_\w+)\(", header.read_text(), re.MULTILINE)
listed, version = [], None
for line in (root / "src/c/exports.map").read_text().splitlines():
    version = match[1] if (match := re.match(r"(QUOIN_[\d.]+) \{", line)) else version
    listed += [f"{match[1]}@@{version}" for match in [re.match(r"\s+(quoin_\w+);", line)] if match]
symbols = subprocess.run([nm, "-D", "--defined-only", library], check=True, text=True, stdout=subprocess.PIPE).stdout
exported = [line.split()[2] for line in symbols.splitlines() if line.split()[1] != "A"]  # A: the versions themselves

program = re.search(r"```c\n(.*?)```", (root / "docs/c.md").read_text(), re.DOTALL)[1]
wrong = []
for first, second, names in (
    ("quoin.h", "exports.map", (declared, [name.partition("@")[0] for name in listed])),
    ("exports.map", library, (listed, exported)),
):
    wrong += [f"{name} is in {first} and not in {second}" for name in sorted(set(names[0]) - set(names[1]))]
    wrong += [f"{name} is in {second} and not in {first}" for name in sorted(set(names[1]) - set(names[0]))]
for compiler, language, standard in ((cc, "c", "c99"), (cxx, "c++", "c++11")):
    strict = [f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    if subprocess.run([compiler, *strict, f"-I{header.parent}", "-x", language, "-"], input=program, text=True).returncode:
        wrong.append(f"quoin.h or docs/c.md does not compile as {standard}")
print("\n".join([*wrong, f"{len(exported)} functions exported, {len(wrong)} mistakes"]))
sys.exit(bool(wrong) or not declared)
