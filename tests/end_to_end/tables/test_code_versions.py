"""ICD-9's hierarchies do not read ICD-10's codes: E871 is another thing in each."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.errors import HierarchyError, JobError
from sqldeid.hierarchy import check, open_source
from sqldeid.hierarchy.versions import refuse_versions
from tests.support.sources import job, qi, release

NINES = ["0389", "E0010", "E0309", "41071", "E8710", "E871", "V4581", "V5867", "E9320", "250", "V011", "E899"]
TENS = ["I10", "E1165", "E039", "Z7901", "V4352XA", "V9021XA", "E0831", "S72001A", "e119", "I10    ", "E87.1A", "V00"]


@pytest.mark.parametrize("code", TENS)
def test_a_code_of_icd_10_is_refused_whatever_else_is_there(code: str) -> None:
    with pytest.raises(HierarchyError, match=r"1 value is codes|1 value") as refused:
        refuse_versions(open_source("icd9/diagnoses", Path()), pa.array([*NINES, code]), None)
    assert code.strip() not in refused.value.message.replace("(E871)", "")
    refuse_versions(open_source("icd9/diagnoses", Path()), pa.array([*NINES, None]), None)
    assert check("icd9/diagnoses", Path(), pa.array([*NINES, code])).problems


def test_procedures_too(shared_data: Path) -> None:
    with pytest.raises(HierarchyError, match="another version"):
        refuse_versions(open_source("icd9/procedures", Path()), pa.array(["3601", "0DTJ4ZZ"]), None)
    with duckdb.connect() as c:
        file = shared_data / "mimic3demo" / "DIAGNOSES_ICD.csv"
        codes = c.execute(f"SELECT DISTINCT icd9_code FROM read_csv('{file}', all_varchar = true)").fetchall()
    refuse_versions(open_source("icd9/diagnoses", Path()), pa.array([code for (code,) in codes]), None)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute("""CREATE TABLE dx AS SELECT i AS id, 1 AS seq, 9 + i % 2 AS icd_version,
            CASE WHEN i % 2 = 0 THEN 'E8710' WHEN i % 3 = 0 THEN 'E871' ELSE 'I10' END AS icd_code
            FROM RANGE(60) AS r(i)""")
        c.execute("CREATE TABLE people AS SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex FROM RANGE(60) AS r(i)")
    return path


def test_icd_10_is_kept_apart_likewise(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute("""CREATE TABLE dx AS SELECT i AS id, 9 + i % 2 AS icd_version, 'E87.1' AS icd_code
            FROM RANGE(60) AS r(i)""")
    columns = {"icd_code": qi("icd10/diagnoses")}
    for n, (where, reason) in enumerate([(None, "icd_version = 10"), ("icd_version > 0", "30 rows")]):
        more = {} if where is None else {"where": where}
        made = job({"into": f"{n}.duckdb"}, tmp_path, r=release(columns, source="dx", person="id", **more))
        with pytest.raises(JobError, match=reason):
            sqldeid.anonymize(made, path)
    columns = {"icd_code": qi("icd10/diagnoses", version="icd_version")}
    made = job({"into": "o.duckdb"}, tmp_path, r=release(columns, source="dx", person="id", where="icd_version = 10"))
    assert sqldeid.anonymize(made, path).releases["r"].released == 30


def test_a_run_keeps_versions_apart(source: Path, tmp_path: Path) -> None:
    columns = {"icd_code": qi("icd9/diagnoses", uncovered="top")}
    for n, (where, reason) in enumerate([(None, "icd_version beside icd_code"), ("icd_version > 0", "20 rows")]):
        more = {} if where is None else {"where": where}
        made = job({"into": f"{n}.duckdb"}, tmp_path, r=release(columns, source="dx", person="id", **more))
        with pytest.raises(JobError, match=reason):
            sqldeid.anonymize(made, source)
    made = job({"into": "o.duckdb"}, tmp_path, r=release(columns, source="dx", person="id", where="icd_version = 9"))
    assert sqldeid.anonymize(made, source).releases["r"].released == 30


def test_a_stack_does_so_too(source: Path, tmp_path: Path) -> None:
    stack = {"from": "dx", "on": "id", "value": "icd_code", "order": "seq", "first": 1, "role": "quasi-identifying"}
    stack |= {"hierarchy": "icd9/diagnoses", "uncovered": "top"}
    for where, reason in (
        (None, "icd_version beside"),
        ("icd_version < 99", "another version"),
        ("icd_version = 9", ""),
    ):
        made = {**stack, **({} if where is None else {"where": where})}
        asked = job(
            {"into": "o.duckdb"}, tmp_path, r=release({"sex": qi()}, source="people", person="id", stack={"c": made})
        )
        if not reason:
            assert sqldeid.anonymize(asked, source).releases["r"].released == 60
            continue
        with pytest.raises(JobError, match=reason):
            sqldeid.anonymize(asked, source)


LOOKALIKE = """CREATE TABLE dx AS SELECT i AS id, 1 AS seq, 9 + i % 2 AS icd_version,
    ['ICD9CM', 'ICD-10-CM'][1 + i % 2] AS spelt, ['E871', 'E872'][1 + i % 3 % 2] AS icd_code FROM RANGE(60) AS r(i)"""
QUERY = "SELECT id, icd_version, spelt, icd_code FROM dx"


@pytest.fixture
def alike(tmp_path: Path) -> Path:
    """Codes that both versions have, and nothing else."""
    path = tmp_path / "alike.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute(LOOKALIKE)
        c.execute("CREATE TABLE people AS SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex FROM RANGE(60) AS r(i)")
    return path


def coded(source: object, folder: Path, **more: object) -> sqldeid.Job:
    version = more.pop("version", None)
    column = qi("icd9/diagnoses", uncovered="top") | ({} if version is None else {"version": version})
    return job({"into": "o.duckdb"}, folder, r=release({"icd_code": column}, source=source, person="id", **more))


@pytest.mark.parametrize("query", [False, True])
def test_codes_that_both_have_are_told_apart_by_the_column_of_versions(
    alike: Path, tmp_path: Path, query: bool
) -> None:
    source = {"query": QUERY} if query else "dx"
    wrong: list[dict[str, object]] = [
        {},
        {"where": "icd_version > 0"},
        {"version": "icd_version"},
        {"version": "spelt"},
        {"version": "spelt", "where": "icd_version < 99"},
        {"where": "icd_version = 10"},
        {"where": "icd_version = 10", "version": "icd_version"},
    ]
    for more in wrong:
        with pytest.raises(
            JobError, match=r"tables\.r\.columns\.icd_code: .* = \"(icd_version|spelt) = 9\""
        ) as refused:
            sqldeid.anonymize(coded(source, tmp_path, **more), alike)
        assert more == {} or "30 rows are of another version" in refused.value.message
        assert "ICD9CM" not in refused.value.message
    for more in ({"where": "icd_version = 9"}, {"where": "spelt = 'ICD9CM'", "version": "spelt"}):
        made = coded(source, tmp_path, **more)
        found = sqldeid.anonymize(made, alike, options=sqldeid.Options(replace=True, without_ledger=True)).releases["r"]
        assert found.released == 30
        assert sqldeid.verify(made, alike)["r"].released == 30


def test_a_query_that_leaves_the_column_of_versions_out_is_refused(alike: Path, tmp_path: Path) -> None:
    left_out = "SELECT id, icd_code FROM dx AS d"
    with pytest.raises(JobError, match="icd_version beside icd_code"):
        sqldeid.anonymize(coded({"query": left_out}, tmp_path), alike)
    kept = coded({"query": f"{left_out} WHERE d.icd_version = 9"}, tmp_path)
    assert sqldeid.anonymize(kept, alike).releases["r"].released == 30


def test_a_stack_names_its_column_of_versions(alike: Path, tmp_path: Path) -> None:
    stack = {"from": "dx", "on": "id", "value": "icd_code", "order": "seq", "first": 1, "role": "quasi-identifying"}
    stack |= {"hierarchy": "icd9/diagnoses", "uncovered": "top", "version": "icd_version"}

    def asked(**more: object) -> sqldeid.Job:
        part = release({"sex": qi()}, source="people", person="id", stack={"c": stack | more})
        return job({"into": "o.duckdb"}, tmp_path, r=part)

    for more in ({}, {"where": "icd_version > 0"}, {"where": "icd_version = 10"}):
        with pytest.raises(JobError, match=r"tables\.r\.stack\.c: 30 rows are of another version"):
            sqldeid.anonymize(asked(**more), alike)
    assert sqldeid.anonymize(asked(where="icd_version = 9"), alike).releases["r"].released == 60


def test_what_reads_no_version_refuses_the_key(alike: Path, tmp_path: Path) -> None:
    with pytest.raises(
        JobError, match=r"columns\.icd_code\.version: goes with hierarchies of codes that have versions"
    ):
        column = qi({"keep_first": [1]}) | {"version": "icd_version"}
        sqldeid.anonymize(job({"into": "o.duckdb"}, tmp_path, r=release({"icd_code": column}, source="dx")), alike)
    with pytest.raises(JobError, match=r'columns\.icd_code\.version: .* has no column "nowhere"'):
        sqldeid.anonymize(coded("dx", tmp_path, version="nowhere"), alike)


DRAWN = {"search": {"method": "epsilon-safe", "epsilon_safe": {"epsilon": 2.0, "beta": 0.2, "delta": 0.9}}}


def test_epsilon_safe_never_tells_of_versions(alike: Path, tmp_path: Path) -> None:
    """What the job says decides, not the rows: a filter that speaks of the column passes, whatever it leaves."""
    with pytest.raises(JobError, match=r"columns\.icd_code\.version: is not for epsilon-safe"):
        coded("dx", tmp_path, version="icd_version", **DRAWN)
    with pytest.raises(JobError, match="icd_version beside icd_code"):
        sqldeid.anonymize(coded("dx", tmp_path, **DRAWN), alike)
    with pytest.raises(JobError, match="is built from the column's values"):
        sqldeid.anonymize(coded("dx", tmp_path, where="icd_version > 0", **DRAWN), alike)


def test_two_versions_in_one_column_are_each_read_by_their_own(source: Path, tmp_path: Path) -> None:
    """A column of versions tells which; a code that both have is two things; nothing without a version is guessed."""
    with duckdb.connect(str(source)) as c:
        c.execute(
            'CREATE TABLE mixed AS SELECT id, icd_code AS "select", icd_version AS "Ver", 1 AS "Ver:select" FROM dx'
        )
        c.execute('UPDATE mixed SET "Ver" = 10 WHERE "select" = \'I10\'')
        c.execute('UPDATE mixed SET "select" = \'E871\', "Ver" = 9 WHERE id < 20')
        c.execute('UPDATE mixed SET "select" = \'E871\', "Ver" = 10 WHERE id >= 40')
    columns = {"select": qi("icd/diagnoses", version="ver")}
    for k, level in ((5, 0), (15, 1)):
        into = tmp_path / f"{k}.duckdb"
        made = job({"into": into.name}, tmp_path, r=release(columns, source="mixed", person="id", k=k, limit=0.5))
        found = sqldeid.anonymize(made, source).releases["r"]
        assert found.k >= k and sqldeid.verify(made, source)["r"].released == found.released
        with duckdb.connect(str(into)) as c:
            labels = {row[0] for row in c.execute("SELECT * FROM release.r").fetchall()}
        assert {label.split(":")[0] if level == 0 else label[:5] for label in labels} <= {"9", "10", "ICD-9", "ICD-1"}
        assert len(labels) > 1
    with duckdb.connect(str(source)) as c:
        c.execute('UPDATE mixed SET "Ver" = NULL WHERE id = 3')
    with pytest.raises(HierarchyError, match="does not cover 1 value"):
        sqldeid.anonymize(job({"into": "n.duckdb"}, tmp_path, r=release(columns, source="mixed", person="id")), source)
    for wrong, reason in (
        (qi("icd/diagnoses"), "version: missing"),
        (qi("icd/diagnoses", version="nope"), 'no column "nope"'),
        (qi({"suppress": True}, version="Ver"), "goes with hierarchies of codes"),
    ):
        made = job({"into": "w.duckdb"}, tmp_path, r=release({"select": wrong}, source="mixed", person="id"))
        with pytest.raises(JobError, match=reason):
            sqldeid.plan(made, source)


def test_mixed_versions_are_read_as_each_version_is_alone() -> None:
    both = open_source("icd/diagnoses", Path())
    nine, ten = (open_source(f"icd{v}/diagnoses", Path()) for v in (9, 10))
    codes = [*NINES, *(code for code in TENS if code != "e119" and " " not in code)]
    for version, alone, spelt in (("9", nine, "ICD-9-CM"), ("10", ten, "10.0")):
        mixed = both.bind(pa.array([f"{spelt}:{code}" for code in codes]), uncovered="top")
        own = alone.bind(pa.array(codes), uncovered="top")
        for x in range(1, own.height - 1):
            wanted = [own.labels[x][own.groups[x][leaf]] for leaf in own.leaf]
            found = [mixed.labels[x][mixed.groups[x][leaf]] for leaf in mixed.leaf]
            assert found == [label if label == "*" else f"ICD-{version} {label}" for label in wanted]
