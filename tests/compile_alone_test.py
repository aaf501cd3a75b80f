"""Fails where a source or a header does not compile by itself, which unity builds and includes of other files hide.

    compile_alone_test.py BUILD CLANG++ [PATTERN]

Parses the C++ sources of the build folder BUILD and every header of the project that they include, each alone, with
definitions and include folders of BUILD/compile_commands.json. With PATTERN only those that contain it. What the build
precompiles of the standard library and of other projects precedes every file: the project's own includes are checked.
Clang shares the instantiations of that header's templates, so that most files take a few tenths of a second.

A header that some file includes before all others was compiled by itself there. Left out are headers without #pragma
once, which are parts of the file that includes them; headers that no source includes; and what nvcc compiles, one by
one in any build.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD, CLANG = Path(sys.argv[1]).resolve(), sys.argv[2]
PATTERN = re.compile(sys.argv[3] if len(sys.argv) > 3 else "")
COMMON = ["-std=c++20", "-fopenmp", "-DFMT_SHARED"]  # what precompiled headers depend on


def precompiled_headers(arguments):
    """The includes with angle brackets of the build's precompiled header, as text."""
    for option, file in zip(arguments, arguments[1:]):
        if option == "-include" and file.endswith(".hxx"):
            return "".join(re.findall(r"#include <.*>\n", Path(file).read_text()))
    return ""


def is_ours(path):
    return path.is_relative_to(ROOT) and not path.relative_to(ROOT).parts[0].startswith("build")


def sources_of(file):
    """The project's sources that the build compiles as `file`: those that it includes, if it is a unit of several."""
    sources = re.findall(r'#include "(.*\.cpp)"', file.read_text()) if file.name.startswith("unity_") else [file]
    return [path for path in map(Path, sources) if is_ours(path)]


def commands():
    """For each source the options that matter to a parser, and the headers to precompile."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        arguments = shlex.split(entry["command"])
        if not entry["file"].endswith((".cpp", ".cxx")):
            continue
        options = [*COMMON, *(a for a in arguments if re.match("-[DI]|-std=|-m", a) and a not in COMMON)]
        for option, folder in zip(arguments, arguments[1:]):
            options += [option, folder] if option == "-isystem" else []
        for source in sources_of(Path(entry["file"])):
            headers = precompiled_headers(arguments)
            if not PATTERN.search(source.read_text()):
                continue
            if source not in found or len(headers) > len(found[source][1]):
                found[source] = options, headers
    return found


def parse(file, options, precompiled):
    """Exit code, errors, and the project's headers that were read, each with its depth."""
    base = [CLANG, "-fsyntax-only", "-w", "-H", *options]
    if not any(option.startswith("-m") for option in options):  # an instruction set has its own
        base += ["-include-pch", precompiled]
    # a header is not the main file, so that #pragma once means something
    command = [*base, "-include", file, "-xc++", os.devnull] if file.suffix == ".hpp" else [*base, file]
    run = subprocess.run(command, cwd=BUILD, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    errors, read = [], []
    for line in run.stderr.splitlines():
        if match := re.fullmatch(r"(\.+) (.*)", line):
            path = Path(os.path.normpath(BUILD / match[2]))
            if is_ours(path) and path.suffix == ".hpp":
                read.append((len(match[1]), path))
        else:
            errors.append(line)
    return run.returncode, "\n".join(errors), read


def included_first(read):
    """The headers that were read with nothing of the project in front of them: the first of the file, the first of
    that, ..."""
    depth = 0
    for deeper, path in read:
        if deeper <= depth:
            return
        depth = deeper
        yield path


def main():
    start, failed, alone, users = time.monotonic(), 0, set(), {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:

        def precompile(item):
            number, headers = item
            source, output = Path(folder) / f"{number}.hpp", Path(folder) / f"{number}.pch"
            source.write_text(headers)
            subprocess.run([CLANG, *COMMON, "-w", "-fpch-instantiate-templates", "-xc++-header", source, "-o", output], check=True)
            return output

        sources = commands()
        texts = sorted({headers for _, headers in sources.values() if headers} or {""}, key=len)
        precompiled = dict(zip(texts, pool.map(precompile, enumerate(texts))))
        precompiled[""] = precompiled[texts[0]]  # of targets without any
        todo = {path: (options, precompiled[headers]) for path, (options, headers) in sources.items()}
        count = 0
        while todo:
            count += len(todo)
            alone |= set(todo)
            results = pool.map(lambda path: parse(path, *todo[path]), todo)
            for (path, how), (code, errors, read) in zip(todo.items(), results):
                if code:
                    failed += 1
                    print(f"{path.relative_to(ROOT)} does not compile by itself:\n{errors}\n", flush=True)
                alone.update(included_first(read))
                for _, header in read:
                    users.setdefault(header, how)
            texts = {header: header.read_text() for header in users if header not in alone}
            todo = {header: users[header] for header, text in texts.items() if "#pragma once" in text and PATTERN.search(text)}
    print(f"{count} files compiled by themselves, and {len(alone) - count} headers that one of them includes first; "
          f"{failed} failed; {time.monotonic() - start:.0f} s")
    return failed > 0


sys.exit(main())
