"""Runs what the first screen of README.md shows, as it is printed, on a PATH that has no compiler.

    ENVIRONMENT/bin/python tests/first_screen.py         after `pip install` of a wheel; part of ./run wheel
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


def main():
    screen = README.read_text().split("\n## ")[0]
    code = re.search(r"```python\n(.*?)```", screen, re.DOTALL)[1]
    in_comments = re.findall(r"quoin\.\w+\(A[^)]*\)[.\w]*", "".join(re.findall("#.*", code)))
    programs = re.findall(r"`(quoin run [^`]*)`", screen)
    assert len(in_comments) >= 2 and programs, screen
    environment = {**os.environ, "PATH": os.path.dirname(sys.executable)}
    found = [tool for tool in ("cc", "c++", "gcc", "clang", "nvcc", "cmake") if shutil.which(tool, path=environment["PATH"])]
    assert not found, f"the PATH has {found}"
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "script.py").write_text("\n".join([code, "b = A @ np.ones(50)", *in_comments, ""]))
        for command in ["python script.py", *programs, "quoin info", "quoin plan 100000 50"]:
            subprocess.run(command.split(), cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
            print("ran", command)


if __name__ == "__main__":
    main()
