"""Tables and jobs of local recoding, drawn at random, each with the same quasi-identifying values in another order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from sqldeid import NoSolutionError, anonymize
from sqldeid.job import Job
from tests.support.local_tables import go_the_wide_way
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, qi

VALUES: dict[str, tuple[st.SearchStrategy[Any], pa.DataType, Any]] = {
    "age": (st.one_of(st.none(), st.integers(0, 39)), pa.int32(), {"bands": [5, 10]}),
    "ward": (st.sampled_from([None, "", "a", "B", "b", "é", "it's", "NULL"]), pa.string(), {"suppress": True}),
    "zip": (st.sampled_from([f"{a}{b}" for a in "aAé" for b in "012"]), pa.string(), {"mask": [1]}),
    "born": (st.dates(date(1999, 11, 1), date(2000, 3, 1)), pa.date32(), {"dates": ["month", "year"]}),
}
"""Quasi-identifying columns: values, type, hierarchy."""

ILL = st.sampled_from([None, "", "flu", "cold", "gout"])
BESIDE = ("_layers", "_rolled_up", "_hierarchies")


@dataclass(frozen=True)
class Case:
    """A table, the same quasi-identifying values in another order beside other values, and what is asked of both.

    Parameters
    ----------
    alike
        Whether what stands beside the quasi-identifying values moved with them.
    shown
        The columns that must be the same, row by row; None: all.
    wide
        Whether the lattice is taken for too large to be visited.
    """

    rows: pa.Table
    moved: pa.Table
    table: dict[str, Any]
    alike: bool
    wide: bool

    @property
    def shown(self) -> tuple[str, ...] | None:
        """The columns that must be the same, row by row; None: all of them."""
        others = [n for n in ("ill", "code") if n in self.table["columns"]]
        if self.alike or not others:
            return None
        kept = [n for n in self.table["columns"] if n in VALUES]
        return (*kept, *(["recoding"] if self.table.get("recoding") else []))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A case of up to forty people."""
    names = draw(st.lists(st.sampled_from([*VALUES]), min_size=1, max_size=3, unique=True))
    people = draw(st.lists(st.tuples(*(VALUES[n][0] for n in names)), min_size=8, max_size=40))
    order = draw(st.permutations(range(len(people))))
    judged, alike = draw(st.booleans()), draw(st.booleans())
    ill, code = _beside(draw, len(people))
    other = [ill[i] for i in order], [code[i] for i in order]
    if not alike:
        fresh = _beside(draw, len(people))
        other = other[0] if judged else fresh[0], fresh[1]
    privacy: dict[str, Any] = {"k": draw(st.integers(2, 5)), "suppression_limit": draw(st.sampled_from([0, 0.1, 0.3]))}
    privacy["suppression"] = draw(st.sampled_from(["drop", "blank"]))
    columns: dict[str, Any] = {"id": IDENTIFYING, **{n: qi(VALUES[n][2]) for n in names}}
    if judged:
        privacy["l_diversity"] = {"column": "ill", "l": 2}
    if judged or draw(st.booleans()):
        columns |= {"ill": SENSITIVE}
    if draw(st.booleans()):
        columns |= {"code": INSENSITIVE}
    search: dict[str, Any] = {"method": "local", "loss": draw(st.sampled_from(["loss", "prec"]))}
    if draw(st.booleans()):
        search["layers"] = draw(st.integers(1, 3))
    if judged and draw(st.booleans()):
        search["choose"], privacy["criteria_limit"] = "by-k", 0.6
    if draw(st.booleans()):
        search["weights"] = {names[0]: draw(st.sampled_from([0.5, 3]))}
    beside = {"recoding": draw(st.booleans()), "hierarchies": draw(st.booleans())}
    rolled = {names[-1]: 1} if draw(st.booleans()) else {}
    table = {"source": "people", "person": "id", "columns": columns, "privacy": privacy, "search": search, **beside}
    return Case(
        _table(names, people, ill, code),
        _table(names, [people[i] for i in order], *other),
        {**table, "roll_up": rolled},
        alike,
        draw(st.booleans()),
    )


def _beside(draw: st.DrawFn, n: int) -> tuple[list[Any], list[int]]:
    """A sensitive value and a number, each person's own."""
    return draw(st.lists(ILL, min_size=n, max_size=n)), draw(st.permutations(range(n)))


def _table(names: list[str], people: list[tuple[Any, ...]], ill: list[Any], code: list[int]) -> pa.Table:
    """The people under new keys, from the first row on."""
    columns = {n: pa.array([p[i] for p in people], VALUES[n][1]) for i, n in enumerate(names)}
    return pa.table({"id": range(len(people)), **columns, "ill": pa.array(ill, pa.string()), "code": code})


def job_of(case: Case, target: dict[str, Any], folder: Path | str = "", source: str = "people") -> Job:
    """What is asked, of a source of that name."""
    return Job.parse({"release": target, "tables": {"r": {**case.table, "source": source}}}, folder=folder)


def released(case: Case, job: Job, database: Any) -> dict[str, Any] | None:
    """What the result tells that no value beside the quasi-identifying ones decides; None where nothing is released."""
    with pytest.MonkeyPatch.context() as patched:
        if case.wide:
            go_the_wide_way(patched)
        try:
            found = anonymize(job, database).releases["r"]
        except NoSolutionError:
            return None
    told = found.to_dict()
    kept = ("rows", "released", "suppressed", "k", "classes", "loss", "bound", "gap", "layers", "risk", "recoding")
    levels = {n: c.get("levels") for n, c in told["columns"].items()}
    return {"levels": levels, **{name: told[name] for name in kept}}


def in_file(path: Path, rows: pa.Table) -> Path:
    """A DuckDB file with the people, in the order given."""
    with duckdb.connect(str(path)) as c:
        c.register("given", rows)
        c.execute("CREATE TABLE people AS SELECT * FROM given")
    return path


def parts_of(folder: Path, case: Case) -> dict[str, Any]:
    """The rows of each Parquet file of a release, in their order, and their notes without the marks of the source.

    Where all is to be the same, the bytes before the footer, which holds these marks, stand for the rows.
    """
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.parquet")):
        whole = path.read_bytes()
        footer = int.from_bytes(whole[-8:-4], "little")
        rolled = path.stem.endswith("_rolled_up")
        if case.shown is None or (path.stem != "r" and not rolled):
            found[path.stem] = whole[: -8 - footer]
        else:
            columns = ", ".join(f'"{n}"' for n in case.shown)
            found[path.stem] = duckdb.execute(f"SELECT {columns} FROM read_parquet('{path}')").fetchall()
        noted = f"SELECT value FROM parquet_kv_metadata('{path}') WHERE decode(key) = 'sqldeid'"
        [[note]] = duckdb.execute(noted).fetchall()
        told = json.loads(note)["sqldeid"]
        for name in ("source_marks", "comments", "sum"):
            told.pop(name, None)
        found[f"{path.stem}, note"] = told
    return found
