"""The notebooks run from first cell to last, and show what they were kept with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.places import EXAMPLES
from tests.support.studies import module_of

FOLDER = EXAMPLES / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
run = module_of(FOLDER / "run.py")


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(outputs: Iterable[Mapping[str, Any]], *, values: bool) -> list[Any]:
    """The outputs of a cell: their kinds, and, where nothing in them varies, what is seen of them but pictures.

    On a busy machine what is printed arrives in pieces, each an output.
    """
    found: list[Any] = []
    for output in outputs:
        if output["output_type"] == "stream" and found and found[-1][0] == "stream" and output["name"] in found[-1][1]:
            last = found[-1][1]
            last[output["name"]] = None if last[output["name"]] is None else last[output["name"]] + output["text"]
            continue
        data = output.get("data") or {str(output.get("name")): output.get("text")}
        unseen = {"image/png", *(["text/plain"] if "text/html" in data else [])}
        told = {kind: text if values and kind not in unseen else None for kind, text in data.items()}
        found.append((output["output_type"], told))
    return found


def test_there_is_one_of_each_wing() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["events", "series", "tables"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_was_run_from_the_first_cell_to_the_last(path: Path) -> None:
    cells = code(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        assert not any(output.output_type == "error" or output.get("name") == "stderr" for output in cell.outputs)
        assert ("image/png" in kinds) == ("alt" in cell.metadata), "each picture has its text, alt, in the metadata"
    assert sum(bool(cell.outputs) for cell in cells) >= 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_of_the_machine_that_ran_it_is_kept(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/home/|/root/|/tmp/|/work/|\\u001b\[|\x1b", text)


@pytest.mark.deep
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_shows_what_it_was_kept_with(path: Path) -> None:
    compared = 0
    for kept, made in zip(code(read(path)), code(run.execute(path)), strict=True):
        values = "varies" not in kept.metadata.get("tags", [])
        assert shown(made.outputs, values=values) == shown(kept.outputs, values=values), kept.source
        compared += values and bool(kept.outputs)
    assert compared >= 2
