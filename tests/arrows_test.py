"""Fails where a source includes a header that its layer may not know: arrows of docs/architecture.md point one way."""

import pathlib
import re
import sys

# Layer: layers that it may include besides itself and include/quoin. The longest prefix of a path is its layer.
ALLOWED = {
    "include/quoin": "",
    "src/scalar.hpp": "",
    "src/primitives": "src/scalar.hpp",  # the folder and primitives.hpp
    "src/host": "src/primitives src/scalar.hpp",
    "src/cuda": "src/primitives src/scalar.hpp",
    "src/devices.hpp": "src/primitives src/host/device.hpp src/host/tuning.hpp src/cuda/device.hpp src/cuda/tuning.hpp",
    "src/algorithms": "src/primitives src/devices.hpp src/scalar.hpp",
    "src/io": "",
    "src/file_qr": "src/algorithms src/primitives src/devices.hpp src/io",
    "src/lapack": "src/algorithms src/primitives src/devices.hpp src/host",
    "src/lyapunov": "src/algorithms src/devices.hpp src/io",
    "src/plot": "src/io",
    "src/video": "src/io src/plot",
    "src": "src/io src/host",  # error, trace, version
    "bench": "",
    "cli": "src/io src/plot src/video bench",
    "python": "",
    "examples": "",
}

# What remains, with the reason: from, to.
EXCEPTIONS = {
    ("src/cuda/flow.cu", "src/lyapunov"): "kernels of an application, which go with it",
    ("src/cuda/verlet.cu", "src/lyapunov"): "kernels of an application, which go with it",
    ("src/lyapunov", "src/host"): "maps of dense tangents use the host's kernels",
    ("bench", "src"): "measures kernels and primitives by themselves",
    ("cli", "src/host"): "`quoin bench` measures the host's kernels",
    ("cli", "src/devices.hpp"): "`quoin bench` measures primitives, and rows are streamed through a GPU",
}

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])


def within(path, prefix):
    return path == prefix or path.startswith((prefix + "/", prefix + "."))


def layer(path):
    return max((name for name in ALLOWED if within(path, name)), key=len)


wrong = 0
unused = set(EXCEPTIONS)
sources = [p for name in ("include", "src", "cli", "bench", "python", "examples") for p in sorted((root / name).rglob("*"))]
for source in sources:
    if source.suffix not in (".cpp", ".hpp", ".cu", ".cuh"):
        continue
    path = source.relative_to(root).as_posix()
    for number, line in enumerate(source.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include "(.*)"', line)
        if not match:
            continue
        places = (source.parent / match[1], root / "src" / match[1], root / "include" / match[1], root / match[1])
        found = next((p.resolve().relative_to(root.resolve()).as_posix() for p in places if p.exists()), None)
        if not found or within(found, "include/quoin") or layer(found) == layer(path):
            continue
        if any(within(found, name) for name in ALLOWED[layer(path)].split()):
            continue
        known = {(a, b) for a, b in EXCEPTIONS if within(path, a) and within(found, b)}
        unused -= known
        if known:
            continue
        print(f"{path}:{number}: {layer(path)} must not include {found}")
        wrong += 1
for a, b in sorted(unused):
    print(f"tests/arrows_test.py: the exception from {a} to {b} is no longer needed")
sys.exit(wrong + len(unused) > 0)
