"""Fails where a program that cannot use Quoin gets more than one error, or another one than the sentence for it.

    refused_programs_test.py COMPILER INCLUDE...
"""

import subprocess
import sys

COMPILER, *INCLUDES = sys.argv[1:]
USE = "int main() {{ quoin::Context<quoin::Host> ctx; quoin::qr(ctx, quoin::Matrix<{}>(3, 2)); }}"
CASES = [
    ("c++17", USE.format("double"), "Quoin needs C++20: compile with -std=c++20"),
    ("c++20", USE.format("int"), "Quoin computes in float and double"),
    ("c++20", USE.format("double"), None),
]

failures = []
for standard, program, sentence in CASES:
    command = [COMPILER, f"-std={standard}", "-fsyntax-only", *(f"-I{folder}" for folder in INCLUDES), "-x", "c++", "-"]
    printed = subprocess.run(command, input="#include <quoin/quoin.hpp>\n" + program, text=True, capture_output=True).stderr
    errors = [line for line in printed.split("\n") if "error: " in line]
    if len(errors) != (sentence is not None) or (sentence and sentence not in errors[0]):
        failures.append("\n".join([f"{standard}: {program}", *errors]))
print("\n".join(failures) or "each program gets its sentence")
sys.exit(bool(failures))
