"""Run the commands of the examples and read the tables that they write."""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from tests.support.places import EXAMPLES

PNG = b"\x89PNG\r\n"


def module_of(file: Path) -> ModuleType:
    """The module of a script, loaded anew with those beside it: scripts of several folders import a module `study`."""
    for name in [n for n, m in sys.modules.items() if EXAMPLES in Path(getattr(m, "__file__", None) or "/").parents]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def execute(file: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, file, *arguments], cwd=folder, capture_output=True, text=True)


def page_for(folder: Path, study: str, names: tuple[str, ...]) -> Path:
    """An empty page in a folder of its own, with a place for each table of a study."""
    page = folder / "page" / "page.md"
    page.parent.mkdir()
    page.write_text("".join(f"<!-- {study}/{name} -->\n<!-- end -->\n" for name in names), encoding="utf-8")
    return page


def shown_on(page: Path, study: str) -> dict[str, list[dict[str, str]]]:
    """The tables of a page, by name, as rows."""
    found = {}
    for part in page.read_text(encoding="utf-8").split(f"<!-- {study}/")[1:]:
        name, _, text = part.partition(" -->\n")
        heads, _, *rows = ([c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines()[:-1])
        found[name] = [dict(zip(heads, row, strict=True)) for row in rows]
    return found


def lines_of(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))
