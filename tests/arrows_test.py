"""Fails where a source includes a header that its layer may not know: arrows of docs/architecture.md point one way.

Fails for PTX outside src/cuda/arch, too.
"""

import pathlib
import re
import sys

DEVICES = "src/primitives src/devices.hpp"
MATRIX = f"{DEVICES} src/algorithms/shared src/algorithms/one_matrix"
CUDA = "src/primitives src/cuda/kernel_choice.hpp src/cuda/tuning.hpp src/cuda/arch src/cuda/runtime"

# Layer: layers that it may include besides itself and include/quoin; include/quoin/apps is a layer of its own. The
# longest prefix of a path is its layer.
ALLOWED = {
    "include/quoin": "",
    "include/quoin/apps": "",
    "src/primitives": "",  # the folder and primitives.hpp
    "src/host": "src/primitives src/io/control_group.hpp src/io/tuning_file.hpp",
    "src/cuda/arch": "",
    "src/cuda/kernel_choice.hpp": "src/primitives src/cuda/runtime/kernels.hpp",
    "src/cuda/kernel_names.cpp": "src/primitives src/cuda/kernel_choice.hpp src/cuda/tuning.hpp",
    "src/cuda/kernel_workspace.cpp": "src/primitives src/cuda/kernel_choice.hpp src/cuda/tuning.hpp",
    "src/cuda/table_in_use.cpp": "src/cuda/runtime src/cuda/tuning.hpp src/io/tuning_file.hpp",
    "src/cuda/tuning.hpp": "src/primitives src/cuda/kernel_choice.hpp",
    "src/cuda/runtime": "src/primitives src/cuda/kernel_choice.hpp src/cuda/tuning.hpp",
    "src/cuda/elements": CUDA,
    "src/cuda/products": f"{CUDA} src/cuda/elements",
    "src/cuda/triangles": f"{CUDA} src/cuda/elements",
    "src/cuda/plain": f"{CUDA} src/cuda/elements src/cuda/products",
    "src/cuda/cholesky": f"{CUDA} src/cuda/elements src/cuda/plain src/cuda/products src/cuda/triangles",
    "src/cuda/gram_schmidt": f"{CUDA} src/cuda/elements",
    "src/cuda/pivots": f"{CUDA} src/cuda/elements",
    "src/cuda/strips": f"{CUDA} src/cuda/elements src/cuda/products",
    "src/cuda/small": f"{CUDA} src/cuda/elements src/cuda/plain src/cuda/strips",
    "src/cuda/panels": f"{CUDA} src/cuda/elements src/cuda/plain src/cuda/products src/cuda/strips",
    "src/devices.hpp": "src/primitives src/host/batch.hpp src/host/device.hpp src/host/tuning.hpp src/cuda/small/batch.hpp "
    "src/cuda/runtime/device.hpp src/cuda/tuning.hpp",
    "src/comm": "src/primitives src/devices.hpp",  # spans of a trace
    "src/algorithms/shared": DEVICES,
    "src/algorithms/one_matrix": f"{DEVICES} src/algorithms/shared",
    "src/algorithms/batches": MATRIX,
    "src/algorithms/streams": MATRIX,
    "src/algorithms/out_of_core": MATRIX,
    "src/algorithms/ranks": f"{MATRIX} src/comm",
    "src/io": "",
    "src/file_qr": "src/algorithms src/comm src/primitives src/devices.hpp src/io",
    "src/routes": "src/file_qr src/algorithms src/primitives src/devices.hpp",
    "src/c": "src/io",
    "src/lapack": "src/algorithms src/primitives src/devices.hpp src/host",
    "src/scalapack": "src/lapack",
    "src": "src/io src/host",  # error, trace, version
    "apps/plot": "src/io",
    "apps/video": "include/quoin/apps src/io apps/plot",
    "apps/robust_pca": "include/quoin/apps src/algorithms src/primitives src/devices.hpp src/host src/cuda",
    "apps/lyapunov": "include/quoin/apps src/algorithms src/primitives src/devices.hpp src/io",
    "apps/robust_pca/program": "include/quoin/apps apps/plot apps/video cli/common src/io",
    "apps/lyapunov/program": "include/quoin/apps apps/plot cli/common src/io",
    "bench": "include/quoin/apps cli/common src/io",
    "cli": "cli/common src/io bench",
    "cli/common": "src/io",
    "python": "include/quoin/apps",
    "examples": "include/quoin/apps",
}

# Exceptions, with the reason: from, to.
EXCEPTIONS = {
    ("apps/lyapunov", "src/host"): "maps of dense tangents use the host's kernels",
    ("apps/lyapunov/cuda", "src/cuda"): "kernels of an application are built of the device's parts",
    ("bench", "src"): "measures kernels and primitives by themselves",
    ("bench", "apps"): "measures the applications",
}

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])


def within(path, prefix):
    return path == prefix or path.startswith((prefix + "/", prefix + "."))


def layer(path):
    return max((name for name in ALLOWED if within(path, name)), key=len)


wrong = 0
unused = set(EXCEPTIONS)
sources = [p for name in ("include", "src", "apps", "cli", "bench", "python", "examples") for p in sorted((root / name).rglob("*"))]
for source in sources:
    if source.suffix not in (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"):
        continue
    path = source.relative_to(root).as_posix()
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if re.search(r"\basm\b", line.partition("//")[0]) and not within(path, "src/cuda/arch"):
            print(f"{path}:{number}: instructions belong into src/cuda/arch")
            wrong += 1
        match = re.match(r'\s*#\s*include "(.*)"', line)
        if not match:
            continue
        folders = (source.parent, *(root / name for name in ("src", "include", "apps", "cli/common", "bench", "")))
        places = [folder / match[1] for folder in folders]
        found = next((p.resolve().relative_to(root.resolve()).as_posix() for p in places if p.exists()), None)
        if not found or layer(found) in ("include/quoin", layer(path)):
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
