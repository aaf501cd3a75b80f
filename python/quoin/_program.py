"""The console script `quoin`: the program of the same name, which the wheel carries."""

import os
import pathlib
import sys
from collections.abc import Sequence

from . import _libraries


def environment(libraries: Sequence[str]) -> dict[str, str]:
    """Returns the environment in which the program finds cuBLAS and cuSOLVER, or sees no GPU if one is missing."""
    variables = dict(os.environ)
    if all(libraries):
        preloaded = [*libraries, *filter(None, [variables.get("LD_PRELOAD")])]
        return variables | ({"LD_PRELOAD": ":".join(preloaded)} if preloaded else {})
    return variables | {"CUDA_VISIBLE_DEVICES": ""}


def main() -> None:
    """Replaces this process by the program."""
    program = pathlib.Path(__file__).parent / "bin" / "quoin"
    if not program.exists():
        sys.exit(f"quoin: {program} is missing: this quoin-qr was built without the program (QUOIN_BUILD_CLI=ON)")
    needed = () if sys.argv[1:2] == ["run"] else _libraries.LOADED  # what it starts has libraries of its own
    os.execve(program, ["quoin", *sys.argv[1:]], environment(needed))
