"""Fails where a cell of a notebook in docs/notebooks fails.

    notebooks_test.py NOTEBOOK...           runs the notebooks
    notebooks_test.py --write NOTEBOOK...   and stores their outputs, which the site shows

Needs nbclient, ipykernel and matplotlib, the package quoin, and the program quoin on the PATH.
"""

import os
import pathlib
import sys

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

# threads that spin, of quoin's OpenMP or of NumPy's OpenBLAS, take the core from each other
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
write = sys.argv[1] == "--write"
failed = 0
for path in map(pathlib.Path, sys.argv[2 if write else 1 :]):
    notebook = nbformat.read(path, 4)
    try:
        # without the times of its cells, a notebook changes only where its results do
        NotebookClient(notebook, timeout=120, record_timing=False).execute()
    except CellExecutionError as error:
        print(f"{path}:\n{error}")
        failed += 1
        continue
    if write:
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)
    print(f"{path}: {len(notebook.cells)} cells")
sys.exit(failed > 0)
