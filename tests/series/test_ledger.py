"""Nightly releases of series: differences of what classes show single people out, and with the ledger they do not.

The attacker knows everybody's series of every night, and who is in which class, but for what is sought: each published
mean times its class's size is a sum over persons, and so is every difference of two. A sum over fewer than k gives away
what k persons should share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import sqldeid
from sqldeid.engine.opening import Settings
from sqldeid.errors import JobError, VerificationError

K = 3
KEY = "".join(f"{i:02x}" for i in range(7, 39))
NIGHTS = 6
SKEW = 0.00000312345
"""Added before rounding: means of decimals lie on the edges of what rounds alike, and sums of floats beside them."""


@dataclass
class Ward:
    """Patients who arrive, leave, are corrected, and are measured once more; seeded."""

    seed: int
    people: int = 120
    arrivals: int = 6
    departures: int = 1
    corrections: int = 2
    rows: dict[int, dict[str, list[float]]] = field(default_factory=dict)

    def nights(self, number: int) -> Iterator[dict[int, dict[str, list[float]]]]:
        """Everybody's hourly series, each night."""
        rng = np.random.default_rng(self.seed)
        self._arrive(rng, self.people)
        for night in range(number):
            if night:
                self._change(rng)
            yield {
                person: {**{v: list(x) for v, x in series.items()}, "mark": [float(person)] * len(series["HR"])}
                for person, series in self.rows.items()
            }

    def _arrive(self, rng: np.random.Generator, number: int) -> None:
        for _ in range(number):
            person = max(self.rows, default=0) + 1
            hours = int(rng.choice([4, 5, 6]))
            self.rows[person] = {"HR": list(rng.normal(80, 15, hours).round(1))}
            if rng.random() < 0.6:
                self.rows[person]["BP"] = list(rng.normal(120, 20, hours).round(1))

    def _change(self, rng: np.random.Generator) -> None:
        for person in rng.choice(list(self.rows), self.departures, replace=False):
            del self.rows[int(person)]
        for person in rng.choice(list(self.rows), self.corrections, replace=False):
            values = self.rows[int(person)]["HR"]
            values[int(rng.integers(len(values)))] = round(float(rng.normal(80, 15)), 1)
        self._arrive(rng, self.arrivals)


def fill(connection: duckdb.DuckDBPyConnection, rows: Mapping[int, Mapping[str, list[float]]]) -> None:
    frame = pd.DataFrame(  # noqa: F841 - SQL reads it
        [(p, h, v, x) for p, series in rows.items() for v, values in series.items() for h, x in enumerate(values)],
        columns=["id", "hour", "item", "value"],
    )
    connection.execute("CREATE OR REPLACE TABLE charted AS SELECT * FROM frame")


def job(**changes: object) -> sqldeid.Job:
    series: dict[str, object] = {
        "source": "charted",
        "person": "id",
        "time": "hour",
        "time_unit": "hours",
        "variable": "item",
        "value": "value",
        "variables": {"HR": {"items": ["HR"]}, "BP": {"items": ["BP"]}, "mark": {"items": ["mark"]}},
        "features": {"mark": []},
        "round": {"HR": 1e-6, "BP": 1e-6},  # the ledger must hold without the help of rounding
        "perturb": {"method": "projection"},
        "durations": {"k": K},
        "privacy": {"k": K},
    }
    return sqldeid.Job.parse({"series": {"vitals": series | changes}})


Contents = dict[str, list[frozenset[tuple[int, tuple[float, ...]]]]]
"""By variable, for each class of a release: its members, with the series that went into what it shows."""


def seen(connection: duckdb.DuckDBPyConnection, rows: Mapping[int, Mapping[str, list[float]]]) -> Contents:
    """A release as the attacker knows it: the variable `mark`, released as it is, says who is who."""
    released = connection.execute("SELECT person_number, variable, value, step FROM release.vitals").fetchall()
    numbers: dict[int, dict[str, list[float]]] = {}
    steps: dict[int, int] = {}
    for number, variable, value, step in released:
        steps[number] = max(steps.get(number, 0), step + 1)
        if value is not None:
            numbers.setdefault(number, {}).setdefault(variable, []).append(value)
    groups: dict[tuple[str, int, float, float], list[int]] = {}
    for number, series in numbers.items():
        for variable in series.keys() - {"mark"}:
            mean, variance = float(np.mean(series[variable])), float(np.var(series[variable]))
            name = (variable, steps[number], round(mean + SKEW, 5), round(variance + SKEW, 4))
            groups.setdefault(name, []).append(int(series["mark"][0]))
    found: Contents = {}
    for (variable, length, mean, _), members in groups.items():
        content = frozenset((p, tuple(rows[p][variable][-length:])) for p in members)
        assert np.mean([np.mean(x) for _, x in content]) == pytest.approx(mean, abs=0.2)
        found.setdefault(variable, []).append(content)
    return found


def nightly(
    folder: Path, ward: Ward, nights: int, *, ledger: bool, **changes: object
) -> Iterator[tuple[Contents, dict[str, object]]]:
    """Each night: what is released, and what the result says of the ledger."""
    (folder / "key").write_text(KEY)
    options = sqldeid.Options(replace=True, without_ledger=True, settings=Settings(threads=1))
    if ledger:
        options = replace(options, ledger=folder / "ledger.duckdb", key_file=folder / "key")
    else:
        options = replace(options, **NAIVE)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        for rows in ward.nights(nights):
            fill(connection, rows)
            result = sqldeid.anonymize(job(**changes), connection, options=options)
            yield seen(connection, rows), dict(result.releases["vitals"].ledger)


NAIVE: dict[str, object] = {"without_ledger": True}


def least_difference(releases: list[Contents]) -> int:
    """The fewest persons, but not none, by whom two sums of one variable differ that share anybody, over all nights."""
    found = [10**9]
    for variable in ("HR", "BP"):
        for a, b in combinations([c for release in releases for c in release.get(variable, [])], 2):
            if {p for p, _ in a} & {p for p, _ in b}:
                found += [len({p for p, _ in side}) for side in (a - b, b - a)]
    return min(n for n in found if n)


def least_atom(releases: list[Contents]) -> int:
    """The fewest persons whose series go into the same sums of all releases: what any combination of sums can name."""
    least = []
    for variable in ("HR", "BP"):
        classes = [c for release in releases for c in release.get(variable, [])]
        atoms: dict[tuple[int, ...], set[int]] = {}
        for entry in {e for c in classes for e in c}:
            atoms.setdefault(tuple(i for i, c in enumerate(classes) if entry in c), set()).add(entry[0])
        least += [len(people) for people in atoms.values()]
    return min(least)


@pytest.fixture(scope="module", params=[1, 2])
def loads(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Contents, dict]]:
    folder = tmp_path_factory.mktemp("nights")
    return list(nightly(folder, Ward(request.param), NIGHTS, ledger=True))


def test_without_a_ledger_differences_single_people_out(tmp_path: Path) -> None:
    naive = [contents for contents, _ in nightly(tmp_path, Ward(1), 3, ledger=False)]
    assert least_difference(naive) == 1 and least_atom(naive) == 1


@pytest.mark.deep
def test_with_a_ledger_every_difference_is_of_k_persons(loads: list[tuple[Contents, dict]]) -> None:
    contents = [c for c, _ in loads]
    assert least_difference(contents) >= K and least_atom(contents) >= K


@pytest.mark.deep
def test_newcomers_are_released_and_losses_stay_near_what_changed(loads: list[tuple[Contents, dict]]) -> None:
    people = [{p for c in contents["HR"] for p, _ in c} for contents, _ in loads]
    assert len(people[-1] - people[0]) > (NIGHTS - 1) * 6 / 3  # of those who arrived
    lost = 2 * K * (1 + 2)  # each that left or was corrected takes those of its class along
    assert all(len(before - after) <= lost for before, after in pairwise(people))
    assert [account["release"] for _, account in loads] == list(range(1, NIGHTS + 1))


@pytest.mark.deep
def test_verify_asks_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    source, options = tmp_path / "ward.duckdb", sqldeid.Options(key_file=tmp_path / "key", ledger=tmp_path / "ledger")
    held = []
    for rows in Ward(1).nights(3):
        with duckdb.connect(str(source)) as connection:
            fill(connection, rows)
        result = sqldeid.anonymize(job(), source, options=replace(options, replace=True))
        found = sqldeid.verify(job(), source, options=options)["vitals"]
        made = result.releases["vitals"]
        assert (found.persons, found.released) == (made.persons, made.released)
        assert (found.lengths, found.classes, found.smallest_class) == (made.durations.classes, made.classes, made.k)
        held.append(result.releases["vitals"].ledger["held_back"])
    assert held[0] == 0 < held[1]
    with pytest.raises(VerificationError, match="a ledger held persons back from this release; name it with --ledger"):
        sqldeid.verify(job(), source)
    other = replace(options, ledger=tmp_path / "other")
    with pytest.raises(JobError, match="other does not exist"):
        sqldeid.verify(job(), source, options=other)
    with pytest.raises(JobError, match="does not know the release that is there"):
        sqldeid.anonymize(job(), source, options=replace(other, replace=True))
    with pytest.raises(JobError, match=r"series\.vitals: the release that is there was held to a ledger"):
        sqldeid.anonymize(job(), source, options=sqldeid.Options(replace=True, without_ledger=True))


@pytest.mark.parametrize("nulls", ["source", "strict", "null-aware", "null-strict"])
def test_other_null_modes_are_refused(tmp_path: Path, nulls: str) -> None:
    with pytest.raises(JobError, match=r"series\.vitals\.privacy\.nulls: .* write \"null-pattern\""):
        next(nightly(tmp_path, Ward(1), 1, ledger=True, privacy={"k": K, "nulls": nulls}))


def test_an_unchanged_source_is_released_as_it_was(tmp_path: Path) -> None:
    ward = Ward(1, arrivals=0, departures=0, corrections=0)
    (first, _), (second, account) = nightly(tmp_path, ward, 2, ledger=True)
    assert {v: set(c) for v, c in first.items()} == {v: set(c) for v, c in second.items()}
    assert account["held_back"] == 0


@pytest.mark.deep
def test_where_nobody_can_be_released_no_ledger_is_blamed(tmp_path: Path) -> None:
    """Each person has a variable of their own, which is left out: the release is empty, and nobody is held back."""
    (tmp_path / "key").write_text(KEY)
    source, options = tmp_path / "ward.duckdb", sqldeid.Options(key_file=tmp_path / "key", ledger=tmp_path / "ledger")
    own = {person: {f"v{person}": [80.0, 81.0]} for person in range(10)}
    items = ["HR", "BP", "mark", *(variable for series in own.values() for variable in series)]
    asked, shared = job(variables={item: {"items": [item]} for item in items}), next(Ward(1).nights(1))
    for rows in (own, shared):
        with duckdb.connect(str(source)) as connection:
            fill(connection, rows)
        result = sqldeid.anonymize(asked, source, options=replace(options, replace=True, new_persons=True))
        made = result.releases["vitals"]
        assert made.ledger["held_back"] == 0
        assert sqldeid.verify(asked, source, options=options)["vitals"].released == made.released
        assert (made.released > 0) == (rows is shared)


def test_where_series_are_shorter_than_they_were_the_ledger_is_named(tmp_path: Path) -> None:
    (night,) = Ward(1).nights(1)
    (tmp_path / "key").write_text(KEY)
    source, options = tmp_path / "ward.duckdb", sqldeid.Options(key_file=tmp_path / "key", ledger=tmp_path / "ledger")
    for rows in (night, {person: {"HR": series["HR"][:1]} for person, series in night.items()}):
        with duckdb.connect(str(source)) as connection:
            fill(connection, rows)
        if rows is night:
            sqldeid.anonymize(job(), source, options=options)
    with pytest.raises(JobError, match="released before keeps the length of then"):
        sqldeid.anonymize(job(), source, options=replace(options, replace=True))
