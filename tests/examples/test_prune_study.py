"""Tables of Prasser et al. (2016) are redone by one command, on generated tables and on the real ones."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pytest

from tests.support.places import EXAMPLES
from tests.support.studies import PNG, execute, lines_of

STUDY = EXAMPLES / "prune_study" / "study.py"
TABLES = ("table-2", "table-4", "table-5", "table-5-wide", "figures-5-6", "figure-7")


def ran(folder: Path, *arguments: str) -> dict[str, list[dict[str, str]]]:
    """The study's tables, by name."""
    done = execute(STUDY, folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert (folder / "prune.png").read_bytes().startswith(PNG)
    found = {name: lines_of(folder / f"{name}.csv") for name in TABLES}
    for rows in found.values():
        assert rows and f"| {' | '.join(rows[0])} |" in done.stdout
    return found


def count(text: str) -> int:
    """The first whole number of a cell."""
    return int(text.split()[0].replace(",", ""))


@pytest.mark.deep
def test_generated_tables_are_searched_and_told(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- prune_study/{name} -->\n<!-- end -->\n" for name in TABLES), encoding="utf-8")
    found = ran(tmp_path, "--rows", "600", "--attributes", "4", "--checks", "2000", "--page", "page.md")
    for rows in found.values():
        assert f"| {' | '.join(rows[0])} |" in page.read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "prune.png").read_bytes().startswith(PNG)
    assert [r["data"] for r in found["table-2"][::3]] == ["like Adult", "like Cup", "like Fars"]
    assert [r["nodes"] for r in found["table-4"]] == ["96", "480"], "the lattice is the source's"
    for row in found["table-4"]:
        assert 0 < count(row["frontier checks"]) <= count(row["checked"]) <= count(row["nodes"])
    for row in found["figure-7"]:
        assert 1 <= int(row["optimum after"]) <= int(row["checks"])
    assert len(found["figure-7"]) == 2 * 4, "every search ended"
    for row in found["table-5"]:
        assert sum(int(row[x]) for x in ("nothing found", "worse", "same", "better")) == 2
        assert row["method"] == "best-first" or row["worse"] == "0", "the default search begins with a descent"


@pytest.mark.deep
def test_the_same_seed_searches_alike_and_another_does_not(tmp_path):
    small = ("--rows", "300", "--attributes", "3", "--checks", "500")
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    one, same, other = (ran(f, *small, "--seed", s) for f, s in zip(folders, "112", strict=True))
    for name in (n for n in TABLES if n != "figures-5-6"):  # they hold seconds
        assert one[name] == same[name]
    assert one["table-4"] != other["table-4"]


@pytest.mark.deep
@pytest.mark.parametrize("attributes", [4])
def test_real_data_are_searched_in_place(tmp_path, shared_data, attributes):
    found = ran(tmp_path, "--data", str(shared_data), "--rows", "500", "--attributes", str(attributes))
    assert [r["data"] for r in found["table-2"][::3]] == ["Adult", "like Cup", "like Fars"]
    assert [r["nodes"] for r in found["table-4"]] == ["40", "120"]
    ours = {(r["data"], r["attributes"]): int(r["checks"]) for r in found["figure-7"]}
    with (EXAMPLES / "prune_study" / "recorded" / "figure-7.csv").open(encoding="utf-8", newline="") as file:
        recorded = {(r["data"], r["attributes"]): int(r["checks"]) for r in csv.DictReader(file)}
    for key in (("Adult", "3"), ("Adult", "4"), ("MACH-IV", "3"), ("MACH-IV", "4")):
        assert ours[key] == recorded[key], "what is recorded is what a run prints"


def test_a_folder_without_the_data_is_refused(tmp_path):
    done = execute(STUDY, tmp_path, "--data", ".")
    assert done.returncode == 1 and "Traceback" not in done.stderr and "adult" in done.stderr
    assert duckdb.__version__
