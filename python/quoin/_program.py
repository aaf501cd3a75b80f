"""The console script `quoin`: the program of the same name, which the wheel carries."""

import os
import pathlib
import sys


def main() -> None:
    """Replaces this process by the program."""
    program = pathlib.Path(__file__).parent / "bin" / "quoin"
    if not program.exists():
        sys.exit(f"quoin: {program} is missing: this quoin-qr was built without the program (QUOIN_BUILD_CLI=ON)")
    os.execv(program, ["quoin", *sys.argv[1:]])
