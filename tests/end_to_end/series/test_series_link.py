"""Series that are linked to a table release: in both or in neither, k and every criterion on the join."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from sqldeid import anonymize, verify
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.errors import JobError, VerificationError
from sqldeid.job import Job
from sqldeid.report.page import public_page
from sqldeid.result import Result
from sqldeid.run import Options, plan
from sqldeid.sql import Statement
from tests.support.linked_series import CHOICES, SERIES, STAYS, TABLE, charted, people

pytestmark = pytest.mark.duckdb14


def source_of(folder: Path, **frames: pd.DataFrame) -> Path:
    path = folder / "source.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name, frame in frames.items():
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stays 0 … 159 have rows, 20 … 179 have series."""
    folder = tmp_path_factory.mktemp("linked")
    return source_of(folder, charted=charted(range(20, STAYS + 20), 5), stays=people(range(STAYS), 6))


def job(folder: Path, table: Mapping[str, Any] | None = None, **series: Any) -> Job:
    asked = {"people": {**TABLE, **(table or {})}}
    kept = {name: value for name, value in {**SERIES, **series}.items() if value is not None}
    return Job.parse({"release": {"into": "out.duckdb"}, "tables": asked, "series": {"vitals": kept}}, folder=folder)


def joined(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    with duckdb.connect(str(folder / "out.duckdb"), read_only=True) as connection:
        return connection.execute("SELECT * FROM release.people").df(), connection.execute(
            "SELECT * FROM release.vitals"
        ).df()


def classes_of(rows: pd.DataFrame, series: pd.DataFrame) -> pd.DataFrame:
    """What an attacker sees of each number: the row's class, the length, and with `shared` the values of the class."""
    if "variable" not in series:
        series = series.melt(["person_number", "step"], var_name="variable")
    length = series.groupby("person_number").step.max() + 1
    there = series[series.value.notna()].sort_values("value")
    content = there.groupby("person_number").apply(
        lambda g: str(sorted(zip(g.variable, g.value.round(6), strict=True))), include_groups=False
    )
    seen = rows.set_index("person_number")
    return seen.assign(length=length, content=content)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("table", "series"), CHOICES, ids=range(len(CHOICES)))
def test_what_is_promised_holds_on_the_join(
    source: Path, tmp_path: Path, table: dict[str, Any], series: dict[str, Any]
) -> None:
    asked = job(tmp_path, table, **series)
    result = anonymize(asked, source)
    rows, vitals = joined(tmp_path)
    numbers = set(rows.person_number)
    assert numbers == set(vitals.person_number) == set(range(1, len(rows) + 1)) and len(rows) > 20
    seen = classes_of(rows, vitals)
    k = max(asked.tables["people"].privacy.k, asked.series["vitals"].privacy.k)
    combined = seen.groupby(["age", "sex", "length", "content"], dropna=False)
    assert combined.size().min() >= k
    assert seen.groupby(["age", "sex", "length"], dropna=False).size().min() >= max(
        k, asked.series["vitals"].durations.k
    )
    privacy = table.get("privacy", {})
    if "l_diversity" in privacy:
        assert combined.died.nunique().min() >= 2
        (told,) = result.releases["people"].followed["criteria"]  # type: ignore[index]
        assert told["achieved"] == combined.died.nunique().min()
    if "t_closeness" in privacy:
        whole = people(range(STAYS), 6).died.value_counts(normalize=True)
        for _, group in combined:
            found = group.died.value_counts(normalize=True).reindex(whole.index, fill_value=0)
            assert abs(found - whole).sum() / 2 <= 0.4 + 1e-9
    again = {
        name: found.to_dict() if hasattr(found, "to_dict") else {} for name, found in verify(asked, source).items()
    }
    assert again["vitals"]["released"] == len(rows)
    account = result.releases["people"].followed
    assert account is not None and account["released"] == len(rows) == result.releases["people"].released
    assert account["lost_of_table"] == account["in_table"] - len(rows)


def test_a_row_and_its_series_are_of_one_person_and_of_who_is_in_both(source: Path, tmp_path: Path) -> None:
    """Two groups that differ in everything: who has the old row has the old's heart."""
    told = people(range(STAYS), 6).assign(age=lambda f: np.where(f.stay % 2, 30, 70), died=lambda f: f.stay.astype(str))
    frame = charted(range(20, STAYS + 20), 5)
    frame["value"] += np.where(frame.stay % 2, 0, 1000)
    path = source_of(tmp_path, charted=frame, stays=told)
    anonymize(job(tmp_path), path)
    rows, vitals = joined(tmp_path)
    heart = vitals.groupby("person_number").value.max()
    assert (rows.set_index("person_number").age == 70).eq(heart > 500).all()
    assert rows.died.astype(int).between(20, STAYS - 1).all() and not rows.died.duplicated().any()
    order = rows.sort_values("person_number").died.astype(int)
    assert abs(order.corr(pd.Series(range(len(order)), index=order.index))) < 0.6  # 1e-6 at n > 90: t > 7


def test_a_seed_repeats_both_and_none_does_not(source: Path, tmp_path: Path) -> None:
    found = []
    for n, seed in enumerate([3, 3, None]):
        folder = tmp_path / str(n)
        folder.mkdir()
        anonymize(job(folder, perturb={"seed": seed} if seed is not None else None), source)
        found.append(joined(folder))
    for first, second in zip(found[0], found[1], strict=True):
        pd.testing.assert_frame_equal(first, second)
    assert not found[0][0].equals(found[2][0])


def test_statements_do_not_grow_with_the_classes_of_the_table(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apart from the search and from Mondrian's rounds, which are as many as it cuts deep."""
    seen: list[Counter[str]] = []
    query, execute = DuckDBEngine.query, DuckDBEngine.execute

    def noting(run: Callable[..., Any]) -> Callable[..., Any]:
        def noted(engine: DuckDBEngine, sql: Statement) -> Any:
            area, _, verb = str(getattr(sql, "template", "")).partition("/")
            if area == "series" or verb.rpartition("/")[2] in (
                "class_persons",
                "number_source",
                "place_written",
                "join_written",
            ):
                seen[-1][f"{area}/{verb}"] += 1
            return run(engine, sql)

        return noted

    monkeypatch.setattr(DuckDBEngine, "query", noting(query))
    monkeypatch.setattr(DuckDBEngine, "execute", noting(execute))
    classes = []
    for width in (80, 10):
        folder = tmp_path / str(width)
        folder.mkdir()
        seen.append(Counter())
        age = {"role": "quasi-identifying", "hierarchy": {"bands": [width]}}
        table = {"columns": {**TABLE["columns"], "age": age}, "privacy": {"k": 4, "suppression_limit": 0.5}}
        found = anonymize(job(folder, table, durations={"k": 4}), source)
        classes.append(found.releases["people"].classes)
    assert classes[1] > 2 * classes[0] and seen[0] == seen[1] and seen[0]["tables/followed/class_persons"] == 1


@pytest.fixture(scope="module")
def published(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("published")
    return folder, anonymize(job(folder), source)


TAMPERED = {
    "a row without a series": "DELETE FROM release.vitals WHERE person_number = 3",
    "a series without a row": "DELETE FROM release.people WHERE person_number = 3",
    "a number twice": "UPDATE release.people SET person_number = 4 WHERE person_number = 3",
    "another class": "UPDATE release.people SET sex = IF(sex = 'F', 'M', 'F') WHERE person_number = 3",
    "another value": "UPDATE release.people SET died = 'never' WHERE person_number = 3",
    "a length": "DELETE FROM release.vitals WHERE person_number = 3 AND step = 0",
    "a value": "UPDATE release.vitals SET value = value + 5 WHERE person_number = 3",
    "numbers beyond": "UPDATE release.people SET person_number = person_number + 1",
    "no number": "ALTER TABLE release.people DROP COLUMN person_number",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_pair_fails(source: Path, published: tuple[Path, Result], tmp_path: Path, statement: str) -> None:
    shutil.copy(published[0] / "out.duckdb", tmp_path)
    verify(job(tmp_path), source)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        connection.execute(statement)
    with pytest.raises(VerificationError):
        verify(job(tmp_path), source)


def test_series_that_change_places_across_classes_fail(
    source: Path, published: tuple[Path, Result], tmp_path: Path
) -> None:
    """Two persons of one length and of different classes: each table by itself is as before, but for who is who."""
    shutil.copy(published[0] / "out.duckdb", tmp_path)
    rows, vitals = joined(tmp_path)
    seen = classes_of(rows, vitals).reset_index()
    one = seen.iloc[0]
    other = seen[(seen.length == one.length) & ((seen.age != one.age) | (seen.sex != one.sex))].iloc[0]
    a, b = int(one.person_number), int(other.person_number)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        connection.execute(
            f"UPDATE release.vitals SET person_number = CASE person_number WHEN {a} THEN {b} ELSE {a} END "
            f"WHERE person_number IN ({a}, {b})"
        )
    with pytest.raises(VerificationError):
        verify(job(tmp_path), source)


def test_rows_that_change_places_within_a_class_of_the_table_fail(
    source: Path, published: tuple[Path, Result], tmp_path: Path
) -> None:
    """The table and the series are as before each by itself; but a class of both has another person's row."""
    shutil.copy(published[0] / "out.duckdb", tmp_path)
    rows, vitals = joined(tmp_path)
    seen = classes_of(rows, vitals).reset_index()
    pairs = seen.merge(seen, on=["age", "sex"], suffixes=("", "_other"))
    pair = pairs[(pairs.died != pairs.died_other) & (pairs.content != pairs.content_other)].iloc[0]
    a, b = int(pair.person_number), int(pair.person_number_other)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        connection.execute(
            f"UPDATE release.people SET person_number = CASE person_number WHEN {a} THEN {b} ELSE {a} END "
            f"WHERE person_number IN ({a}, {b})"
        )
    with pytest.raises(VerificationError, match="rows are not beside series of their class"):
        verify(job(tmp_path), source)


def test_a_pair_fails_where_the_job_says_less(source: Path, published: tuple[Path, Result], tmp_path: Path) -> None:
    shutil.copy(published[0] / "out.duckdb", tmp_path)
    for changed in (job(tmp_path, link=None), job(tmp_path, {"privacy": {"k": 9, "suppression_limit": 0.05}})):
        with pytest.raises(VerificationError):
            verify(changed, source)


def test_what_is_told(source: Path, published: tuple[Path, Result], tmp_path: Path) -> None:
    result = published[1]
    table, series = result.releases["people"], result.releases["vitals"]
    told = result.to_dict()
    releases = told["releases"]
    assert releases["people"]["followed"]["series"] == "vitals" and releases["vitals"]["link"]["table"] == "people"
    assert table.columns["person_number"].role == "linked"
    assert table.to_public()["followed"] == "vitals" and series.to_public()["linked"] == "people"
    assert "every person is in both or neither, and at least 8 persons share" in series.guarantee
    given = series.attacks["given_table_row"]
    assert given["raw_points_before"]["5"]["nearest"]["sole"] > 0.9
    assert given["raw_points"]["5"]["nearest"]["sole"] < 0.3 and given["feature"]["raw"]["sole"] < 0.1
    page, public = result.to_html(), public_page(told)
    assert "What does the link with a table cost" in page and "numbers people as the series" in page
    assert public.count("Everybody is in both releases or in neither") == 2
    assert public_page(result.to_public()) == public
    assert not any("seem to hold the same persons" in warning for warning in result.warnings)
    facts = dict(series.facts())
    assert "persons with series" in str(facts["Lost to the link"])
    planned = {p.name: p for p in plan(job(tmp_path), source)}
    assert planned["people"].followed == "vitals"  # type: ignore[union-attr]
    assert "tables.people" in str(dict(planned["vitals"].facts())["Linked"])  # type: ignore[union-attr]


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"link": "nobody"}, "series.vitals.link: names no table release of this job; there: people"),
    ({}, {"link": "vitals"}, "series.vitals.link: names a release of series"),
    ({"person": "other"}, {}, "series.vitals.link: tables.people has another person key"),
    ({"person": None}, {}, "tables.people.person: missing; a linked release is joined by it"),
    ({}, {"perturb": {"method": "projection"}}, "series.vitals.perturb.method: with link: whoever knows a few values"),
    ({}, {"privacy": {"k": 3, "nulls": "null-strict"}}, "series.vitals.privacy.nulls: with link: who lacks several"),
    ({"privacy": {"k": 8, "suppression": "blank"}}, {}, "tables.people.privacy.suppression: with a linked series"),
    (
        {"privacy": {"k": 8, "m_concealing": {"m": 0.5, "known": {"died": 0.1}}}},
        {},
        "tables.people.privacy.m_concealing: is not kept",
    ),
    (
        {"columns": {**TABLE["columns"], "Person_Number": {"role": "insensitive"}}},
        {},
        "tables.people.columns.Person_Number: a linked release has a column person_number of its own",
    ),
    (
        {
            "columns": {"age": {"role": "quasi-identifying", "hierarchy": {"median": "range"}}},
            "search": {"method": "mondrian"},
        },
        {},
        "series.vitals.link: tables.people.search.method",
    ),
    (
        {
            "privacy": {"k": 8},
            "columns": {name: c for name, c in TABLE["columns"].items() if name != "died"},
            "search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.25, "epsilon": 1.0, "population": 1000}},
        },
        {},
        "series.vitals.link: tables.people.search.method",
    ),
    (
        {"search": {"method": "inverse-ola", "max_loss": 0.5}},
        {},
        'series.vitals.link: tables.people.search.method = "inverse-ola" finds the greatest k',
    ),
]


@pytest.mark.parametrize(("table", "series", "message"), WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_linked_is_refused(
    tmp_path: Path, table: dict[str, Any], series: dict[str, Any], message: str
) -> None:
    kept = {name: value for name, value in {**TABLE, **table}.items() if value is not None}
    with pytest.raises(JobError) as refused:
        Job.parse(
            {"tables": {"people": kept}, "series": {"vitals": {**SERIES, **series}}},
            folder=tmp_path,
        )
    assert message in str(refused.value)


def test_two_series_cannot_follow_one_table(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="a table goes with one series"):
        Job.parse({"tables": {"people": TABLE}, "series": {"a": SERIES, "b": SERIES}}, folder=tmp_path)


REFUSED: list[tuple[Options, str]] = [
    (Options(only=("vitals",)), "--only people --only vitals"),
    (Options(only=("people",)), "--only people --only vitals"),
    (Options(ledger="ledger.duckdb"), "--ledger keeps no account of series that follow a table"),
    (Options(policy={}), "--policy keeps account of tables alone"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[text for _, text in REFUSED])
def test_what_does_not_go_with_a_link_is_refused(source: Path, tmp_path: Path, options: Options, message: str) -> None:
    with pytest.raises(JobError) as refused:
        anonymize(job(tmp_path), source, options=options)
    assert message in str(refused.value) and not (tmp_path / "out.duckdb").exists()


def _nobody(stays: pd.DataFrame, series: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return stays.assign(stay=stays.stay + 10_000), series


def _one(stays: pd.DataFrame, series: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return stays, series[series.stay == 50]


def _text(stays: pd.DataFrame, series: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return stays.assign(stay=stays.stay.astype(str)), series


def _empty(stays: pd.DataFrame, series: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return stays, series[series.stay < 0]


Change = Callable[[pd.DataFrame, pd.DataFrame], tuple[pd.DataFrame, pd.DataFrame]]
EDGES: list[tuple[Change, dict[str, Any], str]] = [
    (_nobody, {}, "series.vitals.link: no person with series is in a class that tables.people releases"),
    (_one, {}, "series.vitals.link: no class of the linked table has 8 persons with series"),
    (_text, {}, "series.vitals.link: tables.people.person is of type text"),
    (_empty, {}, "no plausible measurement"),
    (lambda a, b: (a, b), {"privacy": {"k": 1000}}, "series.vitals.link: no class of the linked table has 1000"),
    (lambda a, b: (a, b), {"durations": {"k": 1000}}, "series.vitals.link: no class of the linked table has 1000"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("change", "series", "message"), EDGES, ids=range(len(EDGES)))
def test_who_cannot_be_linked_is_told(tmp_path: Path, change: Change, series: dict[str, Any], message: str) -> None:
    stays, frame = change(people(range(STAYS), 6), charted(range(20, STAYS + 20), 5))
    with pytest.raises(JobError) as refused:
        anonymize(job(tmp_path, **series), source_of(tmp_path, charted=frame, stays=stays))
    assert message in str(refused.value) and not (tmp_path / "out.duckdb").exists()


def test_a_class_with_one_series_is_lost_and_no_other(tmp_path: Path) -> None:
    """All men but one have no series: that one, and all the men's rows, are left out; the women are as without them."""
    stays = people(range(STAYS), 6).assign(age=50)
    men = stays[stays.sex == "M"].stay
    frame = charted(range(STAYS), 5)
    frame = frame[~frame.stay.isin(men.iloc[1:])]
    result = anonymize(job(tmp_path), source_of(tmp_path, charted=frame, stays=stays))
    rows, _ = joined(tmp_path)
    assert set(rows.sex) == {"F"}
    account = result.releases["people"].followed
    assert account is not None
    assert (account["in_table"], account["in_both"]) == (STAYS, STAYS - len(men) + 1)


def test_columns_with_names_of_ours_are_the_users(tmp_path: Path) -> None:
    """Nor do they stand in for the classes that criteria are judged by."""
    ours = {"sqldeid number": "insensitive", "SQLDEID class": "sensitive", "sqldeid class_": "insensitive"}
    stays = people(range(STAYS), 6).assign(**{name: lambda f: f.stay % 3 for name in ours})
    columns = {**TABLE["columns"], **{name: {"role": role} for name, role in ours.items()}}
    criteria = [{"column": "died", "l": 2}, {"column": "SQLDEID class", "l": 3}]
    table = {"columns": columns, "privacy": {"k": 4, "suppression_limit": 0.3, "l_diversity": criteria}}
    path = source_of(tmp_path, charted=charted(range(20, STAYS + 20), 5), stays=stays)
    anonymize(job(tmp_path, table), path)
    rows, vitals = joined(tmp_path)
    combined = classes_of(rows, vitals).groupby(["age", "sex", "length", "content"])
    assert combined.died.nunique().min() >= 2 and combined["SQLDEID class"].nunique().min() == 3
    verify(job(tmp_path, table), path)


def test_beside_pseudonyms_shifted_dates_and_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLDEID_KEY", "9f8e7d6c5b4a39281706f5e4d3c2b1a0112233445566778899aabbccddeeff00")
    stays = people(range(STAYS), 6)
    seen = pd.Timestamp("2000-01-01") + pd.to_timedelta(stays.stay * 7, "D")
    stays = stays.assign(seen=seen.astype("datetime64[us]"))  # pandas 2 makes nanoseconds
    codes = pd.DataFrame({"stay": range(STAYS), "seq": 1, "code": [str(n % 2) for n in range(STAYS)]})
    stack = {"from": "codes", "on": "stay", "value": "code", "order": "seq", "first": 1, "role": "quasi-identifying"}
    table = {
        "columns": {
            **TABLE["columns"],
            "stay": {"role": "identifying", "pseudonym": True},
            "seen": {"role": "insensitive", "shift": "person"},
        },
        "stack": {"code": {**stack, "hierarchy": {"suppress": True}}},
    }
    path = source_of(tmp_path, charted=charted(range(20, STAYS + 20), 5), stays=stays, codes=codes)
    anonymize(job(tmp_path, table), path)
    rows, vitals = joined(tmp_path)
    assert rows.columns[0] == "person_number" and rows.stay.str.len().eq(32).all()
    assert set(rows.person_number) == set(vitals.person_number)
    verify(job(tmp_path, table), path)


@pytest.mark.parametrize("kind", ["parquet", "view"])
def test_other_forms_of_release(source: Path, tmp_path: Path, kind: str) -> None:
    asked = {"people": TABLE}
    if kind == "view":
        shutil.copy(source, tmp_path / "source.duckdb")
        release, database = {"as": "view"}, tmp_path / "source.duckdb"
    else:
        release, database = {"into": "out", "as": "parquet"}, source
    made = Job.parse({"release": release, "tables": asked, "series": {"vitals": SERIES}}, folder=tmp_path)
    result = anonymize(made, database)
    assert verify(made, database)["vitals"].to_dict()["released"] == result.releases["people"].released  # type: ignore[union-attr]


@pytest.mark.deep
def test_a_loss_to_lengths_is_counted_without_durations_k(source: Path, tmp_path: Path) -> None:
    """It was said to be lost to lengths, and to lower `durations.k`, also where k itself costs as much."""
    losses, warned = {}, {}
    for k in (20, 8, 2):  # the table's k is 8
        options = Options(replace=True, without_ledger=True)
        found = anonymize(job(tmp_path, durations={"k": k}), source, options=options).releases["vitals"]
        losses[k] = int(found.link["lost_to_lengths"])
        warned[k] = "".join(w for w in found.warnings if w.startswith("series.vitals.link:"))
    assert losses[20] > losses[8] == losses[2]
    assert f"{losses[20]:,} to lengths" in warned[20]
    assert f"({losses[8]:,} without durations.k, by k alone: lower durations.k; or raise" in warned[20]
    assert "without durations.k" not in warned[8] + warned[2]
    for k in (8, 2):
        assert not losses[k] or "by k, which durations.k does not exceed: lower k; or raise" in warned[k]


def test_a_loss_is_told_of_what_causes_it(source: Path, tmp_path: Path) -> None:
    """l-diversity of `died` costs the persons here, and lengths none: the warning blamed durations.k."""
    alike = people(range(STAYS), 6).assign(died=lambda f: f.stay % 40 == 0)
    path = source_of(tmp_path, charted=charted(range(STAYS), 5), stays=alike)
    plain = anonymize(job(tmp_path), path).releases["vitals"].link
    asked = job(tmp_path, {"privacy": {"k": 4, "l_diversity": {"column": "died", "l": 2}}})
    found = anonymize(asked, path, options=Options(replace=True, without_ledger=True)).releases["vitals"]
    link = found.link
    parts = [int(link[f"lost_to_{what}"]) for what in ("lengths", "features", "criteria")]
    assert sum(parts) == int(link["in_both"]) - int(link["released"]) and parts[2] == max(parts) > 0
    (warning,) = [w for w in found.warnings if w.startswith("series.vitals.link:")]
    assert f"lost: {parts[2]:,} to the criteria of tables.people" in warning
    without = int(link["released"]) + parts[2]
    assert f"{without:,} of {link['in_both']:,} would be released without l_diversity of died" in warning
    assert plain["lost_to_criteria"] == 0
