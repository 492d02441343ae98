"""Execute the notebooks of this folder and keep what they show: `python run.py [NAME.ipynb …]`.

Each runs in an empty folder of its own, in the environment of this program. `tests/examples/test_notebooks.py` runs
them, too, and compares; cells with the tag `varies` draw at random, so only the kinds of their outputs are compared.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
CODES = re.compile(r"\x1b\[[0-9;]*m")
"""By which a terminal dims text; a page shows them as they are."""

SECONDS = 300
"""A cell that takes longer is taken for one that hangs."""


def execute(path: Path) -> Any:
    """The notebook as it is after a run from its first cell to its last.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        With the cell that fails.
    """
    notebook = nbformat.read(path, as_version=4)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        within = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=within).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.text = CODES.sub("", output.text)
    return notebook


def main(names: list[str]) -> None:
    """Execute the named notebooks, or all, in place."""
    for path in [HERE / name for name in names] or sorted(HERE.glob("*.ipynb")):
        nbformat.write(execute(path), path)


if __name__ == "__main__":
    main(sys.argv[1:])
