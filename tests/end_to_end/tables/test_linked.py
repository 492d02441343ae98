"""Linked tables from end to end: what is written and noted, what is found when it is tampered with, what is refused."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from sqlglot import exp

from sqldeid.errors import JobError, SqldeidError, VerificationError
from sqldeid.job import Job
from sqldeid.publish import days_of
from sqldeid.report.page import public_page, report_page
from sqldeid.run import Options, anonymize, assess, plan, tradeoff, verify, verify_certificates
from sqldeid.run.evaluating import classification
from sqldeid.sql import literal, render
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.release.tradeoff import Asked
from tests.support.failing import rendering
from tests.support.files import write
from tests.support.later import SAID
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, qi, release

pytestmark = pytest.mark.usefixtures("stages")

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0"
PSEUDONYM = {**IDENTIFYING, "pseudonym": True}
PEOPLE, STAYS, CODES = "peo;ple", 'st"ays', "select"
"""Releases with hostile names."""

SOURCES = (
    """CREATE TABLE people AS SELECT CAST(i AS INTEGER) AS "per son", 20 + i * 7 % 40 AS "a.ge",
       ['f', 'm'][1 + i % 2] AS sex, 'd' || i % 4 AS diagnosis,
       DATE '2020-01-01' + CAST(i * 13 % 300 AS INTEGER) AS seen, i AS true_row
       FROM RANGE(200) r(i)""",
    """CREATE TABLE stays AS SELECT CAST(i AS BIGINT) AS "per son", 'w' || i * i % 3 AS ward, i % 5 AS los,
       DATE '2020-01-01' + CAST(i * 13 % 300 AS INTEGER) AS seen, i AS same FROM RANGE(12, 230) r(i)""",
    """CREATE TABLE codes AS SELECT i % 210 AS "per son", 'c' || i % 3 AS code, i AS seq FROM RANGE(700) r(i)""",
)
SHIFT = {**INSENSITIVE, "shift": "person"}
PEOPLE_COLUMNS = {
    "per son": PSEUDONYM,
    "A.ge": qi({"bands": [10, 20]}),  # the catalogue spells it a.ge
    "sex": qi(),
    "diagnosis": SENSITIVE,
    "true_row": INSENSITIVE,
}
STAYS_COLUMNS = {"per son": PSEUDONYM, "ward": qi(), "los": SENSITIVE, "same": INSENSITIVE}
STACK = {"code": {"from": "codes", "on": "per son", "value": "code", "order": "seq", "first": 1, **qi()}}


@pytest.fixture(autouse=True)
def no_key_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLDEID_KEY", raising=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_source(tmp_path)


def make_source(folder: Path) -> Path:
    path = folder / "source.duckdb"
    with duckdb.connect(str(path)) as c:
        for statement in SOURCES:
            c.execute(statement)
    (folder / "key").write_text(KEY)
    return path


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source and what was released of it, which verifies."""
    folder = tmp_path_factory.mktemp("published")
    source = make_source(folder)
    wanted = job(parts(), into=str(folder / "out"))
    anonymize(wanted, source, options=options(source))
    assert set(verify(wanted, source)) == {PEOPLE, STAYS}
    return folder


def parts(**of_stays: Any) -> dict[str, dict[str, Any]]:
    people = release(PEOPLE_COLUMNS, source="people", k=4, limit=0.1, person="per son")
    people["privacy"]["l_diversity"] = {"column": "diagnosis", "l": 2}
    stays = release(STAYS_COLUMNS, source="stays", k=3, limit=0.2, person="per son", link=PEOPLE)
    return {PEOPLE: people, STAYS: stays | of_stays}


def job(tables: dict[str, dict[str, Any]], **target: Any) -> Job:
    return Job.parse({"release": target, "tables": tables})


def options(source: Path, **more: Any) -> Options:
    return Options(key_file=source.parent / "key", **more)


def read(target: Path, name: str, kind: str = "table") -> pd.DataFrame:
    with duckdb.connect() as c:
        if kind == "parquet":
            return c.read_parquet(str(target / f"{name}.parquet")).df()
        c.execute(f"ATTACH '{target}' AS t (READ_ONLY)")
        quoted = name.replace('"', '""')
        return c.execute(f'SELECT * FROM t.release."{quoted}"').df()


def note_on(target: Path, name: str) -> dict[str, Any]:
    with duckdb.connect(str(target), read_only=True) as c:
        rows = c.execute("SELECT comment FROM duckdb_tables() WHERE table_name = ?", [name]).fetchall()
    return dict(json.loads(rows[0][0])["sqldeid"])


def test_what_a_source_meets_names_the_linked_releases(source: Path) -> None:
    with duckdb.connect(str(source)) as c:
        c.execute("CREATE VIEW unread AS SELECT * REPLACE (CAST(ward AS INTEGER) AS ward) FROM stays")
    wanted = job(parts(source="unread"))
    for work in (lambda: anonymize(wanted, source, options=options(source)), lambda: assess(wanted, source)):
        with pytest.raises(JobError, match="a value cannot be converted") as raised:
            work()
        assert raised.value.key == f"tables.{PEOPLE} + tables.{STAYS}"
        assert raised.value.message.startswith(f"job: {raised.value.key}: ")


@pytest.mark.sampled(1)
@pytest.mark.duckdb14
@pytest.mark.parametrize("kind", ["table", "view", "parquet"])
def test_whoever_holds_both_finds_classes_of_k(source: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    wanted = job(parts(), into=str(target), **{"as": kind})
    result = anonymize(wanted, source, options=options(source))
    people, stays = read(target, PEOPLE, kind), read(target, STAYS, kind)
    both = people.merge(stays, on="per son", how="outer", indicator=True, validate="one_to_one")
    assert (both["_merge"] == "both").all()
    assert (both["true_row"] == both["same"]).all()
    assert both["true_row"].between(12, 199).all()
    classes = both.groupby(["A.ge", "sex", "ward"])
    assert classes.size().min() == result.tables[PEOPLE].k >= 4
    assert classes["diagnosis"].nunique().min() >= 2
    assert people["per son"].is_monotonic_increasing
    assert stays["per son"].is_monotonic_increasing
    found = verify(wanted, source, options=options(source))
    assert {v.linked for v in found.values()} == {(PEOPLE, STAYS)}
    assert verify(wanted, source)[STAYS].released == len(both)


def test_pseudonyms_are_what_the_readme_says(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    anonymize(job(parts(), into=str(target)), source, options=options(source))
    run = note_on(target, PEOPLE)["pseudonym_run"]
    scope = [b"sqldeid pseudonym 1", bytes.fromhex(run), f"{PEOPLE}/{STAYS}".encode(), f"{PEOPLE}/per son".encode()]
    message = b"".join(len(p).to_bytes(4, "big") + p for p in scope)
    found = read(target, STAYS)
    expected = [
        hmac.new(bytes.fromhex(KEY), message + str(i).encode(), hashlib.sha256).hexdigest()[:32] for i in found["same"]
    ]
    assert found["per son"].tolist() == expected


def test_two_publications_cannot_be_joined(source: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        anonymize(job(parts(), into=str(tmp_path / name)), source, options=options(source))
    assert read(tmp_path / "one", PEOPLE).merge(read(tmp_path / "two", STAYS), on="per son").empty


def test_what_is_told(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    wanted = job(parts(), into=str(target))
    result = anonymize(wanted, source, options=options(source, explain=True))
    people, stays = (result.tables[name] for name in (PEOPLE, STAYS))
    assert set(people.node) == {"A.ge", "sex"}
    assert set(stays.node) == {"ward"}
    assert people.linked == {"with": [STAYS], "node": stays.linked["node"], "left_out": 12}
    assert stays.linked["left_out"] == 30
    assert people.loss == stays.loss
    assert {c.column for c in people.criteria} == {None, "diagnosis"}
    assert {c.column for c in stays.criteria} == {None}
    assert f"joins this table with {PEOPLE}" in stays.criteria[0].guarantee
    assert "A.ge" not in " ".join(stays.warnings)
    assert any("30 of its 218 persons are left out" in w for w in stays.warnings)
    assert any("pseudonymised, not anonymous" in w for w in stays.warnings)
    public = result.to_public()["releases"][STAYS]
    assert public["linked"] == [PEOPLE]
    assert public["status"] == "pseudonymised, not anonymous"
    assert "left_out" not in json.dumps(result.to_public())
    for page in (report_page(result.to_dict()), public_page(result.to_dict()), public_page(result.to_public())):
        assert "criteria hold on the join" in page
    assert not any("seem to hold the same persons" in w for w in result.warnings)


def test_three_tables_in_a_chain_with_a_stack(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    query = {"query": 'SELECT DISTINCT "per son" FROM codes'}
    third = release({"per son": PSEUDONYM}, source=query, k=5, person="per son", link=STAYS, stack=STACK)
    wanted = job(parts() | {CODES: third}, into=str(target))
    result = anonymize(wanted, source, options=options(source, certificate=True))
    frames = [read(target, name) for name in (PEOPLE, STAYS, CODES)]
    both = frames[0].merge(frames[1], on="per son", validate="one_to_one").merge(frames[2], on="per son")
    assert len(both) == len(frames[0]) == len(frames[2])
    assert both.groupby(["A.ge", "sex", "ward", "code_1"]).size().min() >= 5
    with duckdb.connect(str(source), read_only=True) as c:
        first = dict(c.execute('SELECT "per son", MIN_BY(code, seq) FROM codes GROUP BY ALL').fetchall())
    if result.tables[CODES].node["code_1"] == 0:
        assert both["code_1"].tolist() == [first[i] for i in both["true_row"]]
    assert len(verify(wanted, source, options=options(source))) == 3
    proofs = {name: r.certificate for name, r in result.tables.items()}
    proven = verify_certificates(wanted, source, proofs, options=options(source))
    assert {p.optimal for p in proven.values()} == {True}
    proofs[CODES] = {**proofs[CODES], "rows": 1}
    with pytest.raises(VerificationError, match="one certificate"):
        verify_certificates(wanted, source, proofs, options=options(source))
    later = {name: {**proof, "format": 2} for name, proof in proofs.items()}
    with pytest.raises(VerificationError, match=f"the certificate was {SAID}"):
        verify_certificates(wanted, source, later, options=options(source))


@pytest.mark.sampled(3)
@pytest.mark.xdist_group("linked, published")
@pytest.mark.parametrize(
    "tampering",
    [
        f"""INSERT INTO release."{PEOPLE}" SELECT * REPLACE (SUBSTR(MD5("per son"), 1, 32) AS "per son")
            FROM release."{PEOPLE}" LIMIT 1""",
        f'INSERT INTO release."{PEOPLE}" FROM release."{PEOPLE}" LIMIT 1',
        'DELETE FROM release."st""ays" WHERE same = (SELECT MIN(same) FROM release."st""ays")',
        """UPDATE release."st""ays" SET "per son" = CASE same WHEN (SELECT MIN(same) FROM release."st""ays")
           THEN (SELECT ARG_MAX("per son", same) FROM release."st""ays") ELSE
           (SELECT ARG_MIN("per son", same) FROM release."st""ays") END
           WHERE same IN (SELECT MIN(same) FROM release."st""ays" UNION ALL SELECT MAX(same) FROM release."st""ays")""",
        'UPDATE release."st""ays" SET ward = \'w0\'',
        'UPDATE release."st""ays" SET "per son" = NULL',
        'ALTER TABLE release."st""ays" ADD COLUMN more INTEGER',
    ],
    ids=["restored", "twice", "missing", "swapped", "changed", "null", "column"],
)
def test_tampering_is_found_without_the_key(published: Path, tmp_path: Path, tampering: str) -> None:
    """A swap of two persons' pseudonyms in one table leaves each table as good as it was; the join is not."""
    source, target = published / "source.duckdb", tmp_path / "out"
    shutil.copy(published / "out", target)
    wanted = job(parts(), into=str(target))
    write(target, tampering)
    with pytest.raises(VerificationError):
        verify(wanted, source)


@pytest.mark.parametrize("template", ["tables/rows/join_linked", "tables/rows/stage_linked"])
def test_what_is_joined_or_written_wrongly_is_not_published(
    source: Path, tmp_path: Path, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the second table beside the wrong persons: of the source, or as written."""
    wrong: list[str] = []

    def mistaken(name: str, *dialect: str, **parameters: Any) -> str:
        if name == template and (name != "tables/rows/join_linked" or not wrong):
            wrong.append(name)
            if name == "tables/rows/join_linked":
                (other,) = parameters["others"]
                parameters["others"] = [{**other, "key": exp.Add(this=other["key"], expression=literal(1))}]
            else:
                parameters["columns"][-1] = {**parameters["columns"][-1], "value": parameters["columns"][1]["value"]}
        return render(name, *dialect, **parameters)

    rendering(monkeypatch, mistaken)
    with pytest.raises(VerificationError, match="re-check"):
        anonymize(job(parts(), into=str(tmp_path / "out")), source, options=options(source))
    assert wrong
    assert not (tmp_path / "out").exists()


def test_tables_of_two_publications_are_refused(source: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for target in (one, two):
        anonymize(job(parts(), into=str(target)), source, options=options(source))
    comment = json.dumps({"sqldeid": note_on(two, STAYS)}).replace("'", "''")
    write(one, f"""COMMENT ON TABLE release."st""ays" IS '{comment}'""")
    with pytest.raises(VerificationError, match="not published together"):
        verify(job(parts(), into=str(one)), source)


def test_a_job_that_links_no_more_or_only_now(source: Path, tmp_path: Path) -> None:
    linked, alone = parts(), parts()
    del alone[STAYS]["link"]
    anonymize(job(linked, into=str(tmp_path / "one")), source, options=options(source))
    with pytest.raises(VerificationError):
        verify(job(alone, into=str(tmp_path / "one")), source)
    anonymize(job(alone, into=str(tmp_path / "two")), source, options=options(source))
    with pytest.raises(VerificationError, match="not made linked"):
        verify(job(linked, into=str(tmp_path / "two")), source)


def test_dates_of_both_tables_are_shifted_alike(source: Path, tmp_path: Path) -> None:
    """One shift a person: two would narrow the true dates down."""
    tables = parts()
    for part in tables.values():
        part["columns"] = {**part["columns"], "seen": SHIFT}
    target = tmp_path / "out"
    wanted = job(tables, into=str(target))
    anonymize(wanted, source, options=options(source))
    both = read(target, PEOPLE).merge(read(target, STAYS), on="per son")
    assert (both["seen_x"] == both["seen_y"]).all()
    told = (f"tables.{PEOPLE}.columns.seen", f"tables.{STAYS}.columns.seen")
    assert days_of(note_on(target, PEOPLE)) == days_of(note_on(target, STAYS)) == (told, ())
    verify(wanted, source)


def test_a_date_beside_the_shifted_ones_of_another_table_is_told(source: Path, tmp_path: Path) -> None:
    """Neither table has both; whoever joins them has the true month, and with it the shift to a month."""
    tables = parts()
    tables[PEOPLE]["columns"] = {**tables[PEOPLE]["columns"], "seen": SHIFT}
    tables[STAYS]["source"] = {"query": "SELECT *, seen AS noted FROM stays"}
    noted = {"role": "quasi-identifying", "hierarchy": {"dates": ["month", "year"]}}
    tables[STAYS]["columns"] = {**tables[STAYS]["columns"], "noted": noted}
    result = anonymize(job(tables, into=str(tmp_path / "out")), source, options=options(source))
    told = {n: [w for w in r.warnings if ".columns.noted: is a date that is" in w] for n, r in result.tables.items()}
    assert len(told[STAYS]) == 1 and told[STAYS][0].startswith(f"tables.{STAYS}.columns.noted: ")
    assert told[PEOPLE] == []


@pytest.mark.parametrize("units", [["month"], ["day", "quarter"]])
def test_a_finer_date_beside_the_shifted_ones_of_another_table_is_refused(
    source: Path, tmp_path: Path, units: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few other columns are generalised, so that a level finer than years is the least lossy one."""
    tables = parts()
    columns = {"per son": PSEUDONYM, "seen": SHIFT, "sex": qi()}
    tables[PEOPLE]["columns"] = columns
    tables[STAYS]["source"] = {"query": "SELECT *, seen AS noted FROM stays"}
    tables[STAYS]["columns"] = {"per son": PSEUDONYM, "noted": qi({"dates": units})}
    for part in tables.values():
        part["privacy"] = {"k": 3}
        part.pop("stack", None)
    with pytest.raises(JobError, match="finer than years beside") as refused:
        anonymize(job(tables, into=str(tmp_path / "out")), source, options=options(source))
    assert refused.value.key == f"tables.{STAYS}.columns.noted"
    assert not (tmp_path / "out").exists()
    with monkeypatch.context() as older:  # a version that let it out and noted nothing of days
        older.setattr("sqldeid.tables.write.disguised.refuse_fine_dates", lambda *_: None)
        older.setattr("sqldeid.tables.disguise.disguise.noted_days", lambda *_: {})
        anonymize(job(tables, into=str(tmp_path / "out")), source, options=options(source))
    with pytest.raises(VerificationError, match="finer than years beside") as found:
        verify(job(tables, into=str(tmp_path / "out")), source)
    assert found.value.key == f"tables.{STAYS}.columns.noted"


def test_blanked_rows_are_blanked_in_both(source: Path, tmp_path: Path) -> None:
    tables = parts()
    rare = "SELECT * REPLACE (CASE true_row WHEN 50 THEN 'x' ELSE sex END AS sex) FROM people"
    tables[PEOPLE]["source"] = {"query": rare}
    for part in tables.values():
        part["privacy"] |= {"suppression": "blank"}
    target = tmp_path / "out"
    wanted = job(tables, into=str(target))
    result = anonymize(wanted, source, options=options(source))
    both = read(target, PEOPLE).merge(read(target, STAYS), on="per son", validate="one_to_one")
    assert both.groupby(["A.ge", "sex", "ward"]).size().min() >= result.tables[PEOPLE].k
    verify(wanted, source)


def test_the_strictest_of_all_tables_counts(source: Path, tmp_path: Path) -> None:
    """The greater k and the smaller limit are in different tables, and so are two criteria."""
    tables = parts()
    tables[STAYS]["privacy"] = {"k": 9, "suppression_limit": 0.0, "t_closeness": {"column": "los", "t": 0.5}}
    result = anonymize(job(tables, into=str(tmp_path / "out")), source, options=options(source))
    for r in result.tables.values():
        assert r.criteria[0].asked == 9
        assert r.k >= 9
        assert r.suppressed == 0
    assert [c.name for c in result.tables[STAYS].criteria] == ["k-anonymity", "t-closeness"]


def test_what_may_be_known_of_either_table(source: Path, tmp_path: Path) -> None:
    """m-concealing of both tables: the smaller m, and the columns that either calls known."""
    tables = parts()
    tables[PEOPLE]["privacy"] = {"k": 2, "m_concealing": {"m": 0.2, "known": {"diagnosis": 0.5}}}
    tables[STAYS]["privacy"] = {"k": 2, "m_concealing": {"m": 0.4, "known": {"los": 0.25}}}
    wanted = job(tables, into=str(tmp_path / "out"))
    result = anonymize(wanted, source, options=options(source))
    both = read(tmp_path / "out", PEOPLE).merge(read(tmp_path / "out", STAYS), on="per son")
    classes, risk = ["A.ge", "sex", "ward"], 0.0
    for known, chance in (([], 0.375), (["diagnosis"], 0.375), (["los"], 0.125), (["diagnosis", "los"], 0.125)):
        risk += chance / both.groupby(classes + known)["per son"].transform("size")
    for r in result.tables.values():
        assert r.one_over_m == pytest.approx(1 / risk.max())
        assert r.one_over_m >= 5
    verify(wanted, source)


def test_inverse_ola_finds_the_greatest_k_of_the_join(source: Path, tmp_path: Path) -> None:
    tables = parts()
    del tables[PEOPLE]["privacy"]["l_diversity"]
    tables[PEOPLE]["search"] = {"method": "inverse-ola", "max_loss": 0.5}
    wanted = job(tables, into=str(tmp_path / "out"))
    result = anonymize(wanted, source, options=options(source))
    assert result.tables[STAYS].search.method == "inverse-ola"
    assert verify(wanted, source)[STAYS].k == result.tables[STAYS].k >= 4


def test_plan_assess_and_tradeoff_are_of_the_join(source: Path, tmp_path: Path) -> None:
    wanted = job(parts(), into=str(tmp_path / "out"))
    (planned,) = plan(wanted, source, options=options(source))
    assert isinstance(planned, Linked)
    assert planned.name == f"{PEOPLE} + {STAYS}"
    assert planned.joint.lattice.size == 4 * 2 * 2
    (traded,) = tradeoff(wanted, source, Asked((4,), (0.1,)), options=options(source)).values()
    result = anonymize(wanted, source, options=options(source))
    assert traded.points[0].loss == result.tables[PEOPLE].loss["loss"]
    (before,), (after,) = (assess(wanted, source, release=r).items() for r in (False, True))
    assert before[0] == after[0] == planned.name
    assert after[1].prosecutor == 1 / result.tables[PEOPLE].k
    with duckdb.connect(str(source), read_only=True) as c:
        joined = c.execute('FROM people JOIN stays USING ("per son")').df()
    sizes = joined.groupby(["a.ge", "sex", "ward"]).size()
    assert before[1].class_sizes == tuple(sorted(sizes.value_counts().items()))


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"only": (STAYS,)}, "linked tables are one release"),
        ({"policy": {"releases": {PEOPLE: {"policy": {}}}}}, "--policy"),
        ({"ledger": "ledger.duckdb"}, "--ledger"),
    ],
)
def test_what_is_refused_with_links(source: Path, tmp_path: Path, more: dict[str, Any], text: str) -> None:
    with pytest.raises(JobError, match=text):
        anonymize(job(parts(), into=str(tmp_path / "out")), source, options=options(source, **more))
    assert not (tmp_path / "out").exists()


def test_a_classifier_knows_no_join(source: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="not applicable: scikit-learn is not installed")
    with pytest.raises(JobError, match="is linked"):
        classification(job(parts()), source, "los", options=options(source, only=(STAYS,)))


def _with(**more: Any) -> Callable[[dict[str, dict[str, Any]]], None]:
    return lambda tables: tables[STAYS].update(more)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_with(where="same < 12"), "has no rows"),
        (_with(where="same > 199"), "no person is in"),
        (
            _with(source={"query": 'SELECT * REPLACE (NULLIF("per son", 99) AS "per son") FROM stays'}),
            "is NULL in 1 row of",
        ),
        (_with(source={"query": "FROM stays UNION ALL FROM stays"}), "436 rows but 218 values"),
        (
            _with(source={"query": 'SELECT * REPLACE (\'p\' || "per son" AS "per son") FROM stays'}),
            "cast it in a source",
        ),
        (lambda tables: tables[STAYS]["columns"].update({"ward": qi("no such.csv")}), 'tables.st"ays.columns.ward'),
        (_with(privacy={"k": 3000}), "rows"),
    ],
    ids=["empty", "apart", "null", "twice", "type", "hierarchy", "few"],
)
def test_bad_input_is_refused_and_nothing_is_made(source: Path, tmp_path: Path, change: Any, text: str) -> None:
    tables = parts()
    tables[STAYS]["columns"] = dict(STAYS_COLUMNS)
    change(tables)
    with pytest.raises(SqldeidError) as refused:
        anonymize(job(tables, into=str(tmp_path / "out")), source, options=options(source))
    assert text in refused.value.message
    assert f"{STAYS}/" not in refused.value.message
    assert not (tmp_path / "out").exists()


def test_an_uncovered_value_is_named_by_its_own_table(source: Path, tmp_path: Path) -> None:
    (tmp_path / "ward.csv").write_text("w0;*\nw1;*\n")
    write(source, "UPDATE stays SET ward = 'w9' WHERE same = 100")
    tables = parts()
    tables[STAYS]["columns"] = {**STAYS_COLUMNS, "ward": qi(str(tmp_path / "ward.csv"))}
    with pytest.raises(SqldeidError) as refused:
        anonymize(job(tables, into=str(tmp_path / "out")), source, options=options(source))
    assert refused.value.key == f"tables.{STAYS}.columns.ward"
    assert "of stays.ward (1 row)" in refused.value.message


def test_no_key_no_release(source: Path, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="needs a secret key") as refused:
        anonymize(job(parts(), into=str(tmp_path / "out")), source)
    assert refused.value.key.startswith(f"tables.{PEOPLE}.columns")


def test_keys_of_any_type_meet(tmp_path: Path, source: Path) -> None:
    """Two ENUM types with the same words, text and ENUM; values with quotes and signs."""
    with duckdb.connect(str(source)) as c:
        c.execute(
            """CREATE TABLE e AS SELECT * REPLACE (CAST('ü''"' || "per son" AS VARCHAR) AS "per son") FROM people"""
        )
        c.execute("""CREATE TYPE one AS ENUM (SELECT "per son" FROM e)""")
        c.execute("""CREATE TABLE f AS
                     SELECT CAST("per son" AS one) AS "per son", true_row AS same, 'w0' AS ward, 1 AS los FROM e""")
    tables = parts()
    tables[PEOPLE]["source"], tables[STAYS]["source"] = "e", "f"
    wanted = job(tables, into=str(tmp_path / "out"))
    anonymize(wanted, source, options=options(source))
    both = read(tmp_path / "out", PEOPLE).merge(read(tmp_path / "out", STAYS), on="per son", validate="one_to_one")
    assert len(both) == 200
    assert (both["true_row"] == both["same"]).all()
    verify(wanted, source, options=options(source))
