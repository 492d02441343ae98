"""Many rows of a person: search, release, re-check and certificate against pandas `nunique` over all nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import log
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import sqldeid
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.tables.model.evaluation import allowed_rows

HEIGHTS = {"a": 4, "b": 2, "c": 2}


def raised(frame: pd.DataFrame, node: tuple[int, ...]) -> pd.DataFrame:
    """The quasi-identifying columns at a node, value by value."""
    a, b, c = node
    width = {1: 2, 2: 4}.get(a)
    return pd.DataFrame(
        {
            "a": frame.a if a == 0 else frame.a // width * width if width else "*",
            "b": frame.b if b == 0 else "*",
            "c": frame.c if c == 0 else "*",
        },
        index=frame.index,
    )


@dataclass(frozen=True)
class Case:
    """A random table, and what is asked of it."""

    frame: pd.DataFrame
    k: int
    limit: float
    criterion: dict[str, Any] | None

    def passes(self, rows: pd.DataFrame) -> bool:
        if rows.person.nunique() < self.k:
            return False
        asked = self.criterion
        if asked is None:
            return True
        if "t" in asked:
            return self._close(rows, asked)
        return self._diverse(rows, asked)

    def _diverse(self, rows: pd.DataFrame, asked: dict[str, Any]) -> bool:
        persons = rows.person.nunique()
        counts = sorted(rows.groupby("s", dropna=False).person.nunique(), reverse=True)
        told: list[int] = []
        for c in counts:
            told.append(min(c, persons - sum(told)))
        told = [c for c in told if c > 0]
        l, kind = asked["l"], asked.get("kind", "distinct")
        if kind == "distinct":
            return len(told) >= l
        if kind == "entropy":
            return -sum(c / persons * log(c / persons) for c in told) >= log(l) - 1e-9
        return max(told) < Fraction(str(asked["c"])) * sum(told[l - 1 :])

    def _close(self, rows: pd.DataFrame, asked: dict[str, Any]) -> bool:
        values = sorted(self.frame.s.unique())
        whole, here = (f.groupby("s").person.nunique() for f in (self.frame, rows))
        gaps = [
            Fraction(int(here.get(v, 0)), int(rows.person.nunique()))
            - Fraction(int(whole[v]), int(self.frame.person.nunique()))
            for v in values
        ]
        if asked.get("distance") == "ordered":
            far = sum((abs(sum(gaps[: i + 1])) for i in range(len(gaps))), Fraction(0)) / max(len(values) - 1, 1)
        else:
            far = sum(map(abs, gaps), Fraction(0)) / 2
        return far <= Fraction(str(asked["t"]))

    def suppressed(self, node: tuple[int, ...]) -> tuple[int, list[tuple[object, ...]], int]:
        """Rows that fail, the released rows, and the least persons of a released class."""
        keys = raised(self.frame, node)
        kept: list[tuple[object, ...]] = []
        least, lost = 10**9, 0
        for _, index in keys.groupby(["a", "b", "c"], dropna=False).groups.items():
            rows = self.frame.loc[index]
            if self.passes(rows):
                least = min(least, rows.person.nunique())
                kept += [(*map(str, keys.loc[i]), self.frame.s[i]) for i in index]
            else:
                lost += len(rows)
        return lost, kept, 0 if least == 10**9 else least

    def loss(self, node: tuple[int, ...]) -> Fraction:
        """Cell by cell, with the hierarchies' own leaves: whole numbers from the least to the greatest, two, two."""
        low, high = self.frame.a.min(), self.frame.a.max()
        leaves = sorted(self.frame.a.unique())
        domain = {"a": len(leaves), "b": self.frame.b.nunique(), "c": self.frame.c.nunique()}
        keys, total = raised(self.frame, node), Fraction(0)
        assert low <= high
        shown = {"a": raised(pd.DataFrame({"a": leaves, "b": 0, "c": 0}), node).a.value_counts()}
        for _, index in keys.groupby(["a", "b", "c"], dropna=False).groups.items():
            passes, first = self.passes(self.frame.loc[index]), keys.loc[index[0]]
            for name, level in zip("abc", node, strict=True):
                size = int(shown["a"][first.a]) if name == "a" else domain[name] if level else 1
                share = Fraction(size - 1, domain[name] - 1) if domain[name] > 1 else Fraction(0)
                total += len(index) * (share if passes else 1)
        return total / (3 * len(self.frame))

    def best(self) -> tuple[Fraction, int] | None:
        allowed = allowed_rows(self.limit, len(self.frame))
        found = [
            (self.loss(node), lost)
            for node in product(*(range(h) for h in HEIGHTS.values()))
            if (lost := self.suppressed(node)[0]) <= allowed
        ]
        return min(found, default=None)

    def job(self, method: str = "frontier", **more: Any) -> sqldeid.Job:
        rules: dict[str, Any] = {"a": {"bands": [2, 4]}, "b": {"suppress": True}, "c": {"suppress": True}}
        columns = {name: {"role": "quasi-identifying", "hierarchy": rule} for name, rule in rules.items()}
        privacy: dict[str, Any] = {"k": self.k, "suppression_limit": self.limit}
        if self.criterion is not None:
            privacy["t_closeness" if "t" in self.criterion else "l_diversity"] = {"column": "s", **self.criterion}
        table = {
            **{"source": "people", "person": "person", "rows": "many", "search": {"method": method}},
            **{"columns": {**columns, "s": {"role": "sensitive"}}, "privacy": privacy},
        }
        return sqldeid.Job.parse({"tables": {"people": table | more}})


def case(seed: int) -> Case:
    """Few persons with many rows, some of one person alone in a class; values that follow the person, or not."""
    rng = np.random.default_rng(seed)
    persons, rows = int(rng.integers(3, 16)), int(rng.integers(8, 60))
    person = rng.choice(persons, rows, p=rng.dirichlet(np.full(persons, float(rng.choice([0.4, 2.0])))))
    own = rng.integers(0, 8, persons)
    criteria: list[dict[str, Any] | None] = [
        None,
        {"l": 2},
        {"l": 3},
        {"l": 2, "kind": "entropy"},
        {"l": 2, "kind": "recursive", "c": 1.5},
        {"l": 3, "kind": "recursive", "c": 3},
        {"t": 0.4},
        {"t": 0.3, "distance": "ordered"},
    ]
    criterion = criteria[seed % len(criteria)]
    steady = rng.integers(0, 3, persons)
    fixed = criterion is not None and "t" in criterion
    s = steady[person] if fixed or rng.random() < 0.3 else rng.integers(0, 4, rows)
    frame = pd.DataFrame(
        {
            "person": [f"p{n}" for n in person],
            "a": np.where(rng.random(rows) < 0.6, own[person], rng.integers(0, 8, rows)),
            "b": rng.choice(["x", "y"], rows),
            "c": np.where(rng.random(rows) < 0.7, person % 2, rng.integers(0, 2, rows)),
            "s": s,
        }
    )
    return Case(frame, int(rng.choice([1, 2, 3, 4])), float(rng.choice([0.0, 0.1, 0.4])), criterion)


def loaded(frame: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("frame", frame)
    connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    connection.unregister("frame")
    return connection


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(64))
def test_search_release_and_certificate_are_those_of_pandas(seed: int) -> None:
    asked = case(seed)
    best = asked.best() if asked.k <= asked.frame.person.nunique() else None
    method = ("frontier", "best-first", "flash", "ola")[seed % 4]
    with loaded(asked.frame) as connection:
        try:
            options = sqldeid.Options(certificate=True)
            result = sqldeid.anonymize(asked.job(method), connection, options=options).releases["people"]
        except (NoSolutionError, JobError) as error:
            assert best is None or "has only" in error.message, (best, error.message)
            return
        node = tuple(result.node.values())
        lost, kept, least = asked.suppressed(node)
        assert best is not None and result.suppressed == lost
        if method != "ola" or result.search.optimal:
            assert (round(result.loss["loss"] * 10**9), lost) == (round(best[0] * 10**9), best[1])
        shown = connection.execute("SELECT a::VARCHAR, b::VARCHAR, c::VARCHAR, s FROM release.people").fetchall()
        assert Counter((row[1], row[2], row[3]) for row in shown) == Counter((r[1], r[2], r[3]) for r in kept)
        assert result.persons is not None and (result.k, result.persons.k) == (least, least)
        _tells_persons(asked, node, result)
        assert sqldeid.verify(asked.job(method), connection)["people"].k == least
        if result.certificate is not None:
            proof = {"people": result.certificate}
            proven = sqldeid.verify_certificates(asked.job(method), connection, proof)["people"]
            assert proven.bound - 1e-9 <= float(best[0]) <= proven.value + 1e-9
            assert proven.value == proven.bound or not result.search.optimal
            _is_refused_of_rows(asked, connection, proof)


def _is_refused_of_rows(asked: Case, connection: duckdb.DuckDBPyConnection, proof: dict[str, Any]) -> None:
    """A certificate of persons proves nothing about rows."""
    said = asked.job().model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    del said["tables"]["people"]["person"], said["tables"]["people"]["rows"]
    said["tables"]["people"]["rows_are_persons"] = True
    with pytest.raises(VerificationError):
        sqldeid.verify_certificates(sqldeid.Job.parse(said), connection, proof)


def _tells_persons(asked: Case, node: tuple[int, ...], result: Any) -> None:
    keys = raised(asked.frame, node).assign(person=asked.frame.person)
    passing = keys.groupby(["a", "b", "c"]).person.transform("size") < 0
    for _, index in keys.groupby(["a", "b", "c"]).groups.items():
        passing[index] = asked.passes(asked.frame.loc[index])
    kept = keys[passing]
    assert result.persons.persons == asked.frame.person.nunique()
    assert result.persons.lost == asked.frame.person.nunique() - kept.person.nunique()
    if len(kept):
        shares = kept.groupby(["a", "b", "c"]).person.apply(lambda p: p.value_counts().iloc[0] / len(p))
        assert abs(result.persons.greatest_share - shares.max()) < 1e-12


@pytest.mark.deep
def test_whatever_passes_l_holds_of_every_choice_of_one_row_a_person() -> None:
    """The counts that are judged are those of the least even choice, or less even."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        persons = int(rng.integers(2, 6))
        has = [set(rng.choice(4, int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(persons)]
        frame = pd.DataFrame([(str(p), s) for p, values in enumerate(has) for s in values], columns=["person", "s"])
        for asked in ({"l": 2}, {"l": 3}, {"l": 2, "kind": "entropy"}, {"l": 2, "kind": "recursive", "c": 2}):
            if not Case(frame, 1, 0.0, asked).passes(frame):
                continue
            for choice in product(*has):
                one = pd.DataFrame({"person": [str(p) for p in range(persons)], "s": choice})
                assert Case(one, 1, 0.0, asked).passes(one), (has, choice, asked)
            if asked.get("kind") is None:
                assert not any(
                    all(values & set(out) for values in has) for out in combinations(range(4), asked["l"] - 1)
                )


def test_a_class_that_is_ten_rows_of_one_patient_is_no_class_of_ten() -> None:
    """The issue's example: by rows it passes k = 5, by persons it is suppressed."""
    frame = pd.DataFrame(
        {
            "person": ["one"] * 10 + [f"p{i}" for i in range(10)],
            "a": [7] * 10 + [0] * 10,
            "b": "x",
            "c": 0,
            "s": range(20),
        }
    )
    many = Case(frame, 5, 0.5, None)
    as_rows = many.job(rows="one", person=None, rows_are_persons=True).model_dump(
        by_alias=True, exclude_unset=True, exclude_none=True
    )
    del as_rows["tables"]["people"]["rows"]
    with loaded(frame) as connection:
        rows = sqldeid.anonymize(sqldeid.Job.parse(as_rows), connection).releases["people"]
        assert rows.released == 20 and rows.unit == "row"
        with pytest.raises(VerificationError):
            sqldeid.verify(many.job(), connection)
        options = sqldeid.Options(replace=True, without_ledger=True)
        with pytest.raises(JobError, match='rows = "many"'):
            sqldeid.anonymize(many.job(rows="one"), connection, options=options)
        found = sqldeid.anonymize(many.job(), connection, options=options).releases["people"]
    assert (found.k, found.released) != (10, 20) and found.persons.persons == 11
    assert found.released == 10 or found.persons.k >= 5


def test_the_report_says_how_persons_are_counted() -> None:
    """Its shares are of persons and classes, and it named rows where it meant persons."""
    frame = pd.DataFrame({"person": ["one"] * 10 + [f"p{i}" for i in range(10)], "a": ["u"] * 10 + ["v"] * 10})  # noqa: F841 - SQL reads it
    part = {
        **{"source": "people", "person": "person", "rows": "many", "privacy": {"k": 5, "suppression_limit": 0.5}},
        "columns": {"a": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}},
    }
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS FROM frame")
        made = sqldeid.anonymize(sqldeid.Job.parse({"tables": {"people": part}}), connection)
    page = made.to_html()
    assert made.releases["people"].persons.lost == 1 and "Of 11 persons 1 loses all of their rows." in page
    assert "who has rows in several classes is counted in each. Size ranges that hold fewer than 11 persons are" in page


def test_t_closeness_of_what_varies_within_a_person_is_refused() -> None:
    frame = pd.DataFrame({"person": ["p", "p", "q"], "a": [0, 0, 0], "b": "x", "c": 0, "s": [1, 2, 1]})
    with loaded(frame) as connection, pytest.raises(JobError, match="several values for one person"):
        sqldeid.anonymize(Case(frame, 1, 0.0, {"t": 0.5}).job(), connection)


def test_what_is_remembered_by_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLDEID_KEY", "".join(f"{i * 37 % 256:02x}" for i in range(32)))
    asked = Case(pd.DataFrame({"person": list("ppqq"), "a": 0, "b": "x", "c": 0, "s": 1}), 2, 0.0, None)
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection, loaded(asked.frame) as memory:
        frame = memory.execute("FROM people").df()
        connection.execute("CREATE TABLE people AS FROM frame")
        assert len(frame) == 4
    options = sqldeid.Options(ledger=tmp_path / "l.ledger")
    with pytest.raises(JobError, match=r"people\.rows: --ledger knows each person by one row"):
        sqldeid.anonymize(asked.job(), tmp_path / "d.duckdb", options=options)
    assert not (tmp_path / "l.ledger").exists()


def test_values_that_only_one_person_has_link_rows() -> None:
    """Refused where they are insensitive, told with a number where they are what is studied."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"person": [f"p{i % 20}" for i in range(80)], "a": rng.integers(0, 3, 80), "b": "x", "c": 0})
    frame["s"] = [f"own {i % 20}" for i in range(80)]
    asked = Case(frame, 3, 0.2, None)
    with loaded(frame) as connection:
        said = sqldeid.anonymize(asked.job(), connection).releases["people"].warnings
        assert any("columns.s: values that are one person's alone, in several rows: 20" in w for w in said)
        part = asked.job().model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
        part["tables"]["people"]["columns"]["s"] = {"role": "insensitive"}
        with pytest.raises(JobError, match=r"columns\.s: it has values that are one person's alone"):
            sqldeid.anonymize(
                sqldeid.Job.parse(part), connection, options=sqldeid.Options(replace=True, without_ledger=True)
            )
