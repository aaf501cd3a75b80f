#!/usr/bin/env python3
"""Mutation test: small mistakes in a copy of the tree, one at a time, and whether the programs of `./run test unit`
notice.

    mutants.py N SEED [CMAKE ARGS]...

Lines of src/, apps/, cli/, bench/ and python/ are drawn at random, and on each line one mistake. The copy,
build/mutants/tree, is built once with line coverage (gcov). Each test runs once on it without a mistake; that gives its
time and the lines it runs. Then each mutant is built, and the tests that run its line follow, the shortest first, until
one fails. build/mutants/mutants.csv holds the results: a mutant that it lists is not tried again. Delete its row to try
it again, after a test was added.
"""

import csv
import functools
import hashlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from mutations import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build/mutants"
TREE, COVERAGE, LOG = WORK / "tree", WORK / "coverage", WORK / "mutants.csv"
BUILD = TREE / "build"  # where a checkout has its own, so that ccache knows the tests' objects
MUTATED = ("src/", "apps/", "cli/", "bench/", "python/")
# Block sizes, crossovers and shares of memory, which change the time alone or what a GPU does (src/primitives:
# `workspace_share` of split products; apps/robust_pca: the rotations of Jacobi's method); CUDA's part of the package;
# tests. What this build does not compile, such as src/cuda, is left out as well, and quoin.torch and quoin.jax, whose
# tests need PyTorch and JAX (`./run test torch jax`).
EXCLUDED = ("src/host/tuning.hpp", "src/lapack/tuning.hpp", "src/primitives/tuning.hpp", "apps/robust_pca/tuning.hpp",
            "python/quoin/_cuda.py", "python/quoin/torch.py", "python/quoin/jax.py", "python/src/jax.cpp",
            "python/tests/", "python/benchmarks/")
# The tests spend their time here: optimised, and so without coverage.
HOT = "src/host/kernels/"


def output(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def copy_tree():
    """Only what differs is written, so that the rest is not built again."""
    names = output("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
    files = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    for old in TREE.rglob("*"):
        if old.is_file() and not old.is_relative_to(BUILD) and str(old.relative_to(TREE)) not in files:
            old.unlink()
    for name, data in files.items():
        file = TREE / name
        if not file.exists() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, file)


def configure(arguments):
    output("cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DQUOIN_CUDA=OFF", "-DQUOIN_BUILD_MANUALS=OFF",
           f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};{Path(__file__).resolve()};compile",
           "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON", *arguments,
           *(f"-DCMAKE_{kind}_LINKER_FLAGS=--coverage" for kind in ("EXE", "SHARED", "MODULE")))


def launch(command):
    """The compiler: what is mutated is compiled quickly and with coverage, the tests as in the release."""
    source = next((arg for arg in command if arg.startswith(f"{TREE}/") and arg.endswith(".cpp")), "").removeprefix(f"{TREE}/")
    if source.startswith(MUTATED) and not source.startswith(HOT):
        command = command + ["-O1", "--coverage", "-w"]
    command = ["ccache"] * bool(shutil.which("ccache")) + command
    os.execvp(command[0], command)


def build():
    with open(WORK / "build.log", "w") as log:
        return subprocess.run(["cmake", "--build", BUILD], stdout=log, stderr=log).returncode == 0


def passes(test, cpu_seconds, counts):
    """gcov's counts go below the folder `counts`. Processor time is limited, which other programs' load does not
    change."""
    shutil.rmtree(counts, ignore_errors=True)
    counts.mkdir(parents=True)
    environment = dict(os.environ, GTEST_FAIL_FAST="1", PYTEST_ADDOPTS="-x", GCOV_PREFIX=str(counts))
    limits = (resource.RLIMIT_CPU, (int(cpu_seconds), int(cpu_seconds)))
    with open(WORK / "test.log", "w") as log:
        command = ["ctest", "--test-dir", BUILD, "--output-on-failure", "-R", f"^{re.escape(test)}$"]
        return subprocess.run(command, stdout=log, stderr=log, env=environment,
                              preexec_fn=lambda: resource.setrlimit(*limits)).returncode == 0


def measured_tests():
    """Processor seconds of each test without a mistake, the shortest first. Coverage is kept until what is mutated
    changes."""
    files = sorted(file for folder in ("include/", *MUTATED) for file in (TREE / folder).rglob("*") if file.is_file())
    digest = hashlib.sha256(b"".join(str(file).encode() + file.read_bytes() for file in files)).hexdigest()
    if not (COVERAGE / digest).exists():
        shutil.rmtree(COVERAGE, ignore_errors=True)
        for notes in BUILD.rglob("*.gcno"):
            kept = COVERAGE / "notes" / notes.relative_to(BUILD)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(notes, kept)
        (COVERAGE / digest).touch()
    seconds = {}
    for description in json.loads(output("ctest", "--test-dir", BUILD, "--show-only=json-v1"))["tests"]:
        test, program = description["name"], Path(description["command"][0])
        record = COVERAGE / test / "seconds"
        if not record.exists() or program.is_relative_to(BUILD) and program.stat().st_mtime > record.stat().st_mtime:
            before = sum(os.times()[2:4])
            passed = passes(test, 3600, record.parent)
            spent = sum(os.times()[2:4]) - before
            record.write_text(str(spent if passed else -1))
            print(f"   {spent:7.1f} s  {test}{'' if passed else ': fails without a mistake, left out'}", flush=True)
        seconds[test] = float(record.read_text())
    return dict(sorted(((test, s) for test, s in seconds.items() if s >= 0), key=lambda item: item[1]))


def objects_of():
    """The objects that each file of the tree is compiled into."""
    objects = defaultdict(list)
    for block in output("ninja", "-C", BUILD, "-t", "deps").split("\n\n"):
        name, _, files = block.partition(": #deps")
        for file in files.split("\n")[1:]:
            path = os.path.normpath(BUILD / file.strip())
            objects[path.removeprefix(f"{TREE}/")].append(Path(name.strip()).with_suffix(""))
    return objects


def counts_of(path, notes, counts=None):
    """How often each line of `path` that has code ran; without counts 0."""
    for file in (WORK / "x.gcno", WORK / "x.gcda"):
        file.unlink(missing_ok=True)
    shutil.copy(notes, WORK / "x.gcno")
    if counts:
        shutil.copy(counts, WORK / "x.gcda")
    report = json.loads(output("gcov", "--json-format", "--stdout", "x.gcno", cwd=WORK, stderr=subprocess.DEVNULL))
    lines = defaultdict(int)
    for file in report["files"]:
        if os.path.normpath(BUILD / file["file"]) == str(TREE / path):
            for line in file["lines"]:
                lines[line["line_number"]] += line["count"]
    return lines


def notes_of(stem):
    return COVERAGE / "notes" / f"{stem}.gcno"


def lines_run(test, path, objects):
    """Whether each line of `path` that has code was run by `test`."""
    lines = {}
    for stem in objects:
        counts = COVERAGE / test / str(BUILD / f"{stem}.gcda").lstrip("/")
        if notes_of(stem).exists() and counts.exists():
            for line, count in counts_of(path, notes_of(stem), counts).items():
                lines[line] = lines.get(line, False) or count > 0
    return lines


@functools.cache
def not_instantiated(path, objects):
    """The lines of function templates that are there for a GPU alone: no line of them has code."""
    code = {line for stem in objects if notes_of(stem).exists() for line in counts_of(path, notes_of(stem))}
    lines, left_out = (TREE / path).read_text().split("\n"), set()
    for begin in [i for i, line in enumerate(lines) if line.startswith("template <")] if code else []:
        body = next(i for i in range(begin, len(lines)) if lines[i].endswith(("{", "}", ";")))
        end = next(i for i in range(body, len(lines)) if lines[i] in ("}", "};") or lines[body][-1] != "{")
        numbers = set(range(begin + 1, end + 2))
        if lines[end].endswith("}") and "constexpr" not in "".join(lines[begin:body + 1]) and not code & numbers:
            left_out |= numbers
    return left_out


def relevant(mutant, tests, objects):
    """The tests that run the mutant's line; where it has no code of its own, those that run any line of its file."""
    if mutant.path.endswith(".py"):
        return [test for test in tests if test.startswith("python_package")]
    lines = {test: lines_run(test, mutant.path, objects) for test in tests}
    if any(mutant.line in of for of in lines.values()):
        return [test for test in tests if lines[test].get(mutant.line)]
    return [test for test in tests if any(lines[test].values())] or list(tests)


def try_out(mutant, tests, seconds):
    """killed, survived or 'did not compile', and the tests that ran."""
    file = TREE / mutant.path
    text = file.read_text()
    lines = text.split("\n")
    lines[mutant.line - 1] = mutant.after
    try:
        file.write_text("\n".join(lines))
        if file.suffix == ".py":
            compile("\n".join(lines), mutant.path, "exec")
        elif tests and not build():
            return "did not compile", []
        for ran, test in enumerate(tests, 1):
            if not passes(test, 30 + 5 * seconds[test], WORK / "counts"):
                return "killed", tests[:ran]
        return "survived", tests
    except SyntaxError:
        return "did not compile", []
    finally:
        file.write_text(text)


def main(n, seed, arguments):
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))  # a mistake may ask for all of it
    print(f"== {n} mutants, seed {seed}: building", flush=True)
    copy_tree()
    configure(arguments)
    if not build():
        sys.exit((WORK / "build.log").read_text())
    print("== tests without a mistake", flush=True)
    seconds, objects = measured_tests(), objects_of()

    candidates = defaultdict(list)
    for file in sorted(file for folder in MUTATED for file in (TREE / folder).rglob("*.[chp][py]*")):
        path = str(file.relative_to(TREE))
        if not path.startswith(EXCLUDED) and (path in objects or path.startswith("python/") and file.suffix == ".py"):
            for mutant in mutants_of(path, file.read_text()):
                candidates[path, mutant.line].append(mutant)
    draw = random.Random(seed)
    drawn = []
    for path, line in draw.sample(sorted(candidates), len(candidates)):
        mutant = draw.choice(candidates[path, line])
        if len(drawn) < n and line not in not_instantiated(path, tuple(objects[path])):
            drawn.append(mutant)

    columns = ["seed", "number", *Mutant._fields, "result", "seconds", "tests"]
    if not LOG.exists():
        LOG.write_text(",".join(columns) + "\n")
    with open(LOG, newline="") as log:
        known = {(row["path"], row["before"], row["after"]): row for row in csv.DictReader(log)}
    results = defaultdict(list)
    for number, mutant in enumerate(drawn, 1):
        row = known.get((mutant.path, mutant.before, mutant.after))
        if row is None:
            start = time.monotonic()
            result, ran = try_out(mutant, relevant(mutant, seconds, objects[mutant.path]), seconds)
            values = [seed, number, *mutant, result, round(time.monotonic() - start), " ".join(ran)]
            with open(LOG, "a", newline="") as log:
                csv.writer(log, lineterminator="\n").writerow(values)
            row = dict(zip(columns, values))
            print(f"{number:4}  {result:9}  {mutant.path}:{mutant.line}, {row['seconds']} s, {len(ran)} tests", flush=True)
        results[row["result"]].append((mutant, row["tests"]))
    for mutant, ran in results["survived"]:
        print(f"\n{mutant.path}:{mutant.line}\n-{mutant.before}\n+{mutant.after}\n  {ran or 'no test runs this line'}")
    print("\n" + ", ".join(f"{len(results[result])} {result}" for result in ("killed", "survived", "did not compile")))


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        launch(sys.argv[2:])
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
