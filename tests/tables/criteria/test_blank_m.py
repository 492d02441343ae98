"""Blanked rows under m-concealing: they stay where, as the one class that they become, no risk is above m."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sqldeid
from tests.support.sources import insert

KNOWN = 0.5
Row = tuple[str, str]


def release_of(rows: Sequence[Row], folder: Path, known: dict[str, float], **privacy: object) -> tuple[Any, Any]:
    (folder / "zip.csv").write_text("".join(f"{z};*\n" for z in sorted({z for z, _ in rows})))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people (id INTEGER, zip VARCHAR, ill VARCHAR)")
        insert(connection, "people", [(i, *row) for i, row in enumerate(rows)])
        columns = {"zip": {"role": "quasi-identifying", "hierarchy": "zip.csv"}, "ill": {"role": "sensitive"}}
        asked = {"k": 2, "suppression_limit": 0.9, "suppression": "blank", "m_concealing": {"m": 0.3, "known": known}}
        part = {"source": "people", "person": "id", "columns": columns, "privacy": {**asked, **privacy}}
        job = sqldeid.Job.parse({"tables": {"people": part}}, folder=folder)
        release = sqldeid.anonymize(job, connection).releases["people"]
        return release, sqldeid.verify(job, connection)["people"]


def risks(rows: Sequence[str], known: float) -> list[float]:
    """Of each row of a class, by its definition."""
    n, by_value = len(rows), Counter(rows)
    return [(1 - known) / n + known / by_value[value] for value in rows]


def expected(rows: Sequence[Row], level: int, known: float) -> int:
    """Released rows at a level: all, if the blanked ones pass as one class, else those of classes that pass."""
    classes = defaultdict(list)
    for place, value in rows:
        classes[place if level == 0 else "*"].append(value)
    failing = [c for c in classes.values() if len(c) < 2 or max(risks(c, known)) > 0.3 * (1 + 1e-12)]
    blanked = [value for c in failing for value in c]
    passes = not blanked or (len(blanked) >= 2 and max(risks(blanked, known)) <= 0.3 * (1 + 1e-12))
    return len(rows) if passes else len(rows) - len(blanked)


MANY = [("B", "a")] * 20 + [("B", "b")] * 20


def test_blanked_rows_that_pass_together_stay(tmp_path: Path) -> None:
    rows = [*MANY, *[("A", "a")] * 3, *[("C", "b")] * 3]
    release, verified = release_of(rows, tmp_path, {"ill": KNOWN})
    assert release.node == {"zip": 0}
    assert (release.released, release.suppressed) == (46, 6)
    assert not any("blanked rows together" in w for w in release.warnings)
    assert (verified.released, verified.suppressed) == (46, 6)
    assert verified.criteria[-1].achieved == pytest.approx(0.25)


def test_blanked_rows_that_fail_together_are_dropped(tmp_path: Path) -> None:
    release, verified = release_of([*MANY, *[("A", "a")] * 2, ("C", "b")], tmp_path, {"ill": KNOWN})
    assert release.released == verified.released == 40
    assert any("blanked rows together do not meet" in w for w in release.warnings)


@pytest.mark.deep
@pytest.mark.parametrize("known", [{}, {"ill": 0.5}, {"ill": 1.0}])
@pytest.mark.parametrize("more", [{}, {"l_diversity": {"column": "ill", "l": 2}}])
def test_blanked_rows_are_judged_by_the_definition(tmp_path: Path, known: dict[str, float], more: Any) -> None:
    stayed = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = [(str(rng.choice(list("ABCDE"))), str(rng.choice(list("ab")))) for _ in range(22)]
        release, verified = release_of([*rows, *MANY], tmp_path, known, **more)
        assert release.released == verified.released
        if not more:
            assert release.released == expected([*rows, *MANY], release.node["zip"], known.get("ill", 0.0))
        stayed += bool(release.suppressed) and release.released == len(rows) + len(MANY)
    assert stayed
