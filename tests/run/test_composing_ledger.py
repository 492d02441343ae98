"""What a release tells beside a ledger's earlier ones equals what sets of persons tell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sqldeid
from sqldeid import Options
from sqldeid.job import Job
from sqldeid.ledger.core import Entered, Ledger, Settled
from sqldeid.ledger.parts import Branches, Decision
from sqldeid.run import composing

Classes = dict[str, int]
"""The class of each person whom a release shows."""


def night(random: np.random.Generator, number: int) -> pa.Table:
    """Persons come and go, and some are older the next time."""
    seq = np.sort(random.choice(600, 450, replace=False)) if number else np.arange(500)
    age = (seq * 7) % 30 + (random.random(len(seq)) < 0.2) * 5
    return pa.table({"seq": seq, "age": age, "los": (seq * 5) % 12, "ill": [f"d{x}" for x in seq % 4]})


def job(k: int, known: str, bands: int) -> Job:
    columns = {
        "seq": {"role": "identifying"},
        known: {"role": "quasi-identifying", "hierarchy": {"bands": [bands, 3 * bands]}},
    }
    part = {"source": "p", "person": "seq", "columns": columns, "privacy": {"k": k, "suppression_limit": 0.3}}
    return Job.parse({"tables": {"a": part}})


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[Classes]:
    """What went into the ledger, release by release, as persons are spelt."""
    every: list[Classes] = []
    enter = Ledger.enter

    def heard(self: Ledger, settled: Settled, job_sha256: str, *, also_held: int = 0) -> Entered:
        held = set(settled.held.to_pylist())
        rows = zip(settled.load.rows["person"].to_pylist(), settled.load.rows["class"].to_pylist(), strict=True)
        every.append({p: c for i, (p, c) in enumerate(rows) if i not in held})
        return enter(self, settled, job_sha256, also_held=also_held)

    monkeypatch.setattr(Ledger, "enter", heard)
    return every


def slow(releases: list[Classes], k: int) -> dict[str, int]:
    """Of the persons of the last release whom an earlier one shows, too: who has the same classes in all."""
    histories = {p: tuple(r.get(p) for r in releases) for p in releases[-1]}
    sets = Counter(histories.values())
    own = [sets[h] for h in histories.values() if any(c is not None for c in h[:-1])]
    few = {"alone": sum(n == 1 for n in own), "below": sum(n < k for n in own)}
    return {"persons": len(own), "smallest": min(own, default=0), **few}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_told_beside_a_ledger_equals_sets(
    seed: int, tmp_path: Path, entered: list[Classes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLDEID_KEY", "0123456789abcdef" * 4)
    random = np.random.default_rng(seed)
    with duckdb.connect() as c:
        for number in range(4):
            c.register("given", night(random, number))
            c.execute("CREATE OR REPLACE TABLE p AS FROM given")
            c.unregister("given")
            k = 3 + int(random.integers(0, 2))
            asked = job(k, *(("age", 5), ("los", 3))[number % 2])
            options = Options(replace=True, ledger=tmp_path / "ledger", without_ledger=not number)
            result = sqldeid.anonymize(asked, c, options=options)
            attacks = result.releases["a"].attacks
            expected = slow(entered, k)
            assert result.releases["a"].ledger["intersected"] == expected
            if not number:
                [reason] = [x.reason for x in attacks.left_out if x.attack == "composition"]
                assert reason == composing.FIRST and not expected["persons"]
                continue
            [told] = attacks.composition.beside
            assert (told.release, told.persons, told.smallest) == (composing.EARLIER, *list(expected.values())[:2])
            assert told.alone.value == told.below.value == 0  # the ledger's own promise
            assert told.smallest >= k and "intersected" not in str(result.to_public())
    assert len(entered) == 4 and slow(entered, k)["persons"] > 20
    assert len({p for r in entered for p in r}) > len(entered[-1])


def test_a_person_whom_the_ledger_let_out_alone_is_found(
    tmp_path: Path, entered: list[Classes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted twin: the ledger is told that nobody was held back, whom it should have."""
    monkeypatch.setenv("SQLDEID_KEY", "0123456789abcdef" * 4)
    monkeypatch.setattr("sqldeid.ledger.core.decide", _all_out)
    told: list[Any] = []
    with duckdb.connect() as c:
        for number in range(2):
            late = " + (CASE WHEN r.i = 0 THEN 20 ELSE 0 END)" if number else ""
            c.execute(
                f"CREATE OR REPLACE TABLE p AS SELECT r.i AS seq, r.i % 2 * 20{late} AS age FROM RANGE(40) AS r(i)"
            )
            options = Options(replace=True, ledger=tmp_path / "ledger", without_ledger=not number)
            told.append(sqldeid.anonymize(job(3, "age", 10), c, options=options).releases["a"])
    [beside] = told[1].attacks.composition.beside
    assert (beside.persons, beside.smallest) == (40, 1)
    assert round(beside.alone.value * 40) == 1 and "alone in both classes" in told[1].attacks.composition.said


def _all_out(branches: Branches, k: int, withdrawn: Any, least: Any) -> Decision:
    """Every branch goes out as it is."""
    return Decision(branches.leaves.copy(), np.zeros(len(branches.n), dtype=np.int64))
