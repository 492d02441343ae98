"""Child tables in a release, end to end: what leaves, which criteria may speak of it, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.errors import HierarchyError, JobError, VerificationError
from sqldeid.run import explain
from sqldeid.tables.rows import shape, stacking

PEOPLE = 60
PROC = {
    "from": "hospital.procedures",
    "on": "id",
    "through": "hospital.admissions",
    "through_on": "hadm",
    "pick": "first",
    "pick_order": "admitted",
    "value": "code",
    "order": "seq",
    "first": 2,
    "role": "quasi-identifying",
    "hierarchy": {"keep_first": [1]},
}
VISITS = {"from": "hospital.admissions", "on": "id", "aggregate": "count", "role": "sensitive"}


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty people; six have no admission, some admissions no procedure; codes have leading zeros."""
    path = tmp_path_factory.mktemp("hospital") / "source.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE SCHEMA hospital")
        c.execute(f"""CREATE TABLE hospital.people AS SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex, 20 + i % 4 AS age,
                      ['a', 'b'][1 + i % 2] AS "select" FROM RANGE({PEOPLE}) AS r(i)""")
        c.execute(f"""CREATE TABLE hospital.admissions AS
                      SELECT i AS id, i * 10 + j AS hadm, DATE '2020-01-01' + CAST(100 * j AS INTEGER) AS admitted,
                             DATE '2020-01-02' + CAST(100 * j + (i + j) % 3 AS INTEGER) AS discharged, 'w' AS ward
                      FROM RANGE({PEOPLE - 6}) AS r(i), RANGE(3) AS s(j)""")
        c.execute("""CREATE TABLE hospital.procedures AS
                     SELECT hadm, seq, LPAD(CAST((hadm + seq) % 4 * 11 AS VARCHAR), 4, '0') AS code, hadm % 5 AS dose,
                            [seq] AS listed, CAST(id AS VARCHAR) AS person, id
                     FROM hospital.admissions, RANGE(1, 4) AS r(seq) WHERE hadm % 9 > 0 OR hadm < 20""")
        c.execute("CREATE TABLE hospital.sexes AS SELECT 1 AS sex, 1 AS seq, 'a' AS code")
        c.execute("CREATE TABLE hospital.wards AS SELECT 'w' AS ward, 1 AS seq, 'a' AS code")
    return path


@pytest.fixture
def database(hospital: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copy(hospital, tmp_path / "source.duckdb"))


def job(folder: Path, *stacks: Mapping[str, object], **table: object) -> sqldeid.Job:
    """A job with a stack `proc`, and `other` where there is one more."""
    names = dict(zip(("proc", "other"), stacks, strict=False))
    made: dict[str, object] = {
        "source": "hospital.people",
        "person": "id",
        "columns": {"sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}},
        "stack": names,
        "privacy": {"k": 3, "suppression_limit": 0.3},
    }
    return sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"t": made | table}}, folder=folder)


def released(folder: Path) -> list[dict[str, object]]:
    with duckdb.connect(str(folder / "out.duckdb"), read_only=True) as c:
        cursor = c.execute("SELECT * FROM release.t")
        names = [d[0] for d in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def make(database: Path, made: sqldeid.Job) -> sqldeid.TableRelease:
    """Anonymize, verify, assess: the release as it was made."""
    result = sqldeid.anonymize(made, database, options=sqldeid.Options(replace=True, without_ledger=True)).releases["t"]
    assert sqldeid.verify(made, database)["t"].k == result.k
    assert sqldeid.assess(made, database)["t"].class_sizes == result.risk["source"].class_sizes
    return result


def test_procedures_of_the_first_admission_are_columns_like_others(database: Path, tmp_path: Path) -> None:
    made = job(tmp_path, PROC, VISITS, search={"weights": {"proc_2": 3.0}})
    result = make(database, made)
    assert result.rows == PEOPLE
    assert set(result.node) == {"sex", "proc_1", "proc_2"}
    rows = released(tmp_path)
    assert list(rows[0]) == ["sex", "proc_1", "proc_2", "other"]
    assert {r["other"] for r in rows} <= {0, 3}
    codes = {r["proc_1"] for r in rows if r["proc_1"] is not None}
    assert codes and all(str(c).startswith("00") or c in ("0*", "*") or str(c)[0] == "0" for c in codes)


def test_keys_may_have_other_names_in_other_tables(database: Path, tmp_path: Path) -> None:
    make(database, job(tmp_path, PROC, VISITS))
    expected = released(tmp_path)
    with duckdb.connect(str(database)) as c:
        c.execute("ALTER TABLE hospital.admissions RENAME id TO patient")
        c.execute("ALTER TABLE hospital.procedures RENAME hadm TO admission")
        c.execute("ALTER TABLE hospital.procedures RENAME id TO hadm")  # a trap: it has the other key's name
    proc = PROC | {"on_as": "patient", "through_on_as": "ADMISSION"}
    made = job(tmp_path, proc, VISITS | {"on_as": ["patient"]})
    make(database, made)
    assert released(tmp_path) == expected
    sqldeid.verify(made, database)


def test_columns_may_refine_one_that_a_stack_makes(database: Path, tmp_path: Path) -> None:
    columns = {
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "proc_2": {"role": "sensitive"},
    }
    privacy = {"k": 3, "suppression_limit": 0.3, "m_concealing": {"m": 0.5, "known": {"proc_2": 0.1, "other": 0.2}}}
    made = job(tmp_path, PROC, VISITS, columns=columns, privacy=privacy)
    result = make(database, made)
    assert set(result.node) == {"sex", "proc_1"}
    assert result.one_over_m is not None and result.one_over_m >= 2
    assert list(released(tmp_path)[0]) == ["sex", "proc_2", "proc_1", "other"]


def test_the_filter_speaks_of_the_source_and_of_stacks(database: Path, tmp_path: Path) -> None:
    made = job(tmp_path, PROC, VISITS, where="people.age > 20 AND proc_2 IS NOT NULL AND other = 3")
    with duckdb.connect(str(database), read_only=True) as c:
        wanted = c.execute("""SELECT COUNT(*) FROM hospital.people AS p WHERE age > 20 AND 2 <= (
            SELECT COUNT(*) FROM hospital.procedures AS q JOIN hospital.admissions AS a USING (hadm)
            WHERE a.id = p.id AND admitted = DATE '2020-01-01')""").fetchone()
    assert wanted is not None
    assert make(database, made).rows == wanted[0] > 0


def test_a_query_is_a_source_and_persons_without_rows_may_be_dropped(database: Path, tmp_path: Path) -> None:
    query = {"query": 'SELECT id, sex, "select" FROM hospital.people WHERE age < 23'}
    columns = {"select": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}
    made = job(tmp_path, PROC | {"empty": "drop"}, VISITS, source=query, columns=columns, where="source.sex = 'f'")
    kept = make(database, job(tmp_path, PROC, VISITS, source=query, columns=columns, where="source.sex = 'f'")).rows
    dropped = make(database, made).rows
    assert 0 < dropped < kept


def test_an_admission_is_given_by_a_filter(database: Path, tmp_path: Path) -> None:
    given = {k: v for k, v in PROC.items() if not k.startswith("pick")} | {"through_where": "hadm % 10 = 1"}
    make(database, job(tmp_path, given))
    longest = PROC | {"pick": "longest", "pick_until": "discharged", "pick_then": ["hadm"]}
    make(database, job(tmp_path, longest))
    make(database, job(tmp_path, PROC | {"pick": "last"}))


def test_a_snapshot_view_and_a_certificate_go_with_stacks(database: Path, tmp_path: Path) -> None:
    made = job(tmp_path, PROC, VISITS)
    result = sqldeid.anonymize(
        made, database, options=sqldeid.Options(replace=True, without_ledger=True, certificate=True)
    )
    assert result.releases["t"].certificate is not None
    proven = sqldeid.run.verify_certificates(made, database, {"t": result.releases["t"].certificate})
    assert proven["t"].nodes > 0


def test_verification_sees_a_procedure_that_was_changed_or_moved(database: Path, tmp_path: Path) -> None:
    made = job(tmp_path, PROC | {"role": "sensitive"} | {"hierarchy": None, "value": "code"})
    make(database, made)
    with duckdb.connect(str(database)) as c:
        c.execute("UPDATE hospital.procedures SET seq = 3 - seq WHERE hadm = 10 AND seq < 3")
    with pytest.raises(VerificationError):
        sqldeid.verify(made, database)


def test_verification_does_not_trust_the_stack_of_the_run(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stack that takes the wrong rows is found out: verification stacks by itself."""
    wrong = stacking.Recipe("tables/rows/pick_rows", "tables/rows/stack_rows", "tables/rows/summarise_rows")
    whole = stacking.stacking

    def shifted(plan, table, picked, recipe):  # type: ignore[no-untyped-def]
        made = whole(plan, table, picked, recipe)
        if recipe is wrong:
            for value in made.values["values"]:
                value["place"] = 1
        return made

    monkeypatch.setattr(stacking, "MAIN", wrong)
    monkeypatch.setattr(stacking, "stacking", shifted)
    with pytest.raises(VerificationError):
        sqldeid.anonymize(job(tmp_path, PROC), database)
    assert not (tmp_path / "out.duckdb").exists()
    assert shape.stacking.MAIN is wrong


def test_the_plan_shows_stacks_and_what_they_run(database: Path, tmp_path: Path) -> None:
    made = job(tmp_path, PROC, VISITS)
    plan = sqldeid.run.plan(made, database)[0]
    assert plan.stacked is not None
    said = [s.text for s in plan.stacked.stacks]
    assert said[0].startswith("first 2 code of hospital.procedures by seq, through hospital.admissions (first by")
    listed = explain(plan, made, database).statements or ()
    shown = {s.template: "\n".join(s.statements) for s in listed}
    assert '"hospital"."procedures"' in shown["tables/rows/stack_rows"]
    assert {
        "tables/rows/pick_rows",
        "tables/rows/summarise_rows",
        "tables/rows/join_stacks",
        "tables/rows/restack_rows",
    } <= set(shown)


BAD: dict[str, tuple[dict[str, object], str, str]] = {
    "child": ({"from": "hospital.nothing"}, "stack.proc.from", "there is no table or view hospital.nothing"),
    "between": ({"through": "nothing"}, "stack.proc.through", "there is no table or view nothing"),
    "value": ({"value": "icd9"}, "stack.proc.value", 'hospital.procedures has no column "icd9"; it has hadm, seq'),
    "order": ({"order": "when"}, "stack.proc.order", 'has no column "when"'),
    "key": ({"through_on": "stay"}, "stack.proc.through_on", 'has no column "stay"'),
    "person's key": ({"on": "subject"}, "stack.proc.on", 'hospital.people has no column "subject"'),
    "person's key there": ({"on_as": "subject"}, "stack.proc.on_as", 'hospital.admissions has no column "subject"'),
    "person's key stacked": ({"value": "id"}, "columns.proc_1", "the person key is never released"),
    "person's key by another name": (
        {"value": "hadm", "through": None, "through_on": None, "pick": None, "pick_order": None, "on_as": "hadm"},
        "columns.proc_1",
        "the person key is never released",
    ),
    "key there": ({"through_on_as": "stay"}, "stack.proc.through_on_as", 'procedures has no column "stay"'),
    "types of keys": (
        {"through": None, "through_on": None, "pick": None, "pick_order": None, "on": "sex", "from": "hospital.sexes"},
        "stack.proc.on",
        "sex is of type VARCHAR on one side and INTEGER on the other",
    ),
    "ties": ({"order": "dose"}, "stack.proc.order", "dose leaves open which row of hospital.procedures comes first: "),
    "ties of two": ({"order": "dose", "then": "hadm"}, "stack.proc.then", "add a column to then"),
    "ties of the pick": ({"pick_order": "ward"}, "stack.proc.pick_then", "ward leaves open which row is the first"),
    "copies between": (
        {"through_on": "ward", "pick": None, "pick_order": None, "from": "hospital.wards"},
        "stack.proc.through_on",
        "hospital.admissions has several rows for the same on and through_on",
    ),
    "nested": ({"value": "listed", "role": "sensitive", "hierarchy": None}, "stack.proc.value", "cannot be stacked"),
    "mean of text": (
        {"first": None, "order": None, "aggregate": "mean", "role": "sensitive", "hierarchy": None},
        "stack.proc.value",
        "code is of type VARCHAR, which has no mean",
    ),
    "no length": ({"pick": "longest", "pick_until": "ward"}, "stack.proc.pick_until", "type DATE and VARCHAR"),
    "hierarchy": ({"hierarchy": {"bands": [5]}}, "columns.proc_1", "bands"),
    "where": ({"where": "cod = '1'"}, "stack.proc.where", "cod"),
    "files in where": ({"where": "code IN (SELECT 1 FROM read_csv('x.csv'))"}, "stack.proc.where", "read_csv"),
    "windows in where": ({"where": "ROW_NUMBER() OVER (ORDER BY seq) = 1"}, "stack.proc.where", "is refused"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str, hospital: Path, tmp_path: Path) -> None:
    changes, key, said = BAD[name]
    stack = {k: v for k, v in (PROC | changes).items() if v is not None}
    with pytest.raises((JobError, HierarchyError)) as caught:
        sqldeid.anonymize(job(tmp_path, stack), hospital)
    assert f"tables.t.{key}" in str(caught.value)
    assert said in str(caught.value)
    assert not (tmp_path / "out.duckdb").exists()


def test_names_that_clash_are_refused(database: Path, tmp_path: Path) -> None:
    source = {"query": "SELECT *, 1 AS PROC_1 FROM hospital.people"}
    with pytest.raises(JobError, match=r'tables\.t\.stack\.proc: .* has a column "proc_1" already'):
        sqldeid.anonymize(job(tmp_path, PROC, source=source), database)
    with pytest.raises(JobError, match="a column that stack proc makes"):
        made = {"proc": PROC, "proc_1": VISITS}
        sqldeid.Job.parse(
            {
                "tables": {
                    "t": {"rows_are_persons": True, "source": "s", "columns": {}, "stack": made, "privacy": {"k": 2}}
                }
            }
        )
    with pytest.raises(JobError, match="stacks need a snapshot"):
        job(tmp_path, PROC, view="computed")


def test_an_error_holds_no_value_of_the_data(database: Path, tmp_path: Path) -> None:
    mean = {"from": "hospital.huge", "on": "id", "value": "n", "aggregate": "mean", "role": "sensitive"}
    with duckdb.connect(str(database)) as c:
        c.execute("CREATE TABLE hospital.huge AS SELECT 1 AS id, 4.321e35::DOUBLE AS n")
    with pytest.raises(JobError, match=r"tables\.t\.stack\.proc: .*a mean is of finite numbers") as caught:
        sqldeid.anonymize(job(tmp_path, mean), database)
    assert "4321" not in str(caught.value) and "4.32" not in str(caught.value)


def test_one_row_and_nobody_with_children(tmp_path: Path) -> None:
    with duckdb.connect() as c:
        c.execute('CREATE TABLE "select" AS SELECT 1 AS "from", 5 AS "select"')
        c.execute('CREATE TABLE "group" ("from" INTEGER, "order" INTEGER, "value" VARCHAR)')
        stack = {"from": '"group"', "on": "from", "value": "value", "order": "order", "first": 2, "role": "insensitive"}
        columns = {"select": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}
        table = {"source": '"select"', "person": "from", "columns": columns, "stack": {"x y": stack}}
        made = sqldeid.Job.parse({"tables": {"t": table | {"privacy": {"k": 1}}}}, folder=tmp_path)
        sqldeid.anonymize(made, c)
        assert c.execute("FROM release.t").fetchall() == [(5, None, None)]
        c.execute("INSERT INTO \"group\" VALUES (1, 2, NULL), (1, 1, 'it''s'), (NULL, 0, 'nobody')")
        sqldeid.anonymize(made, c, options=sqldeid.Options(replace=True, without_ledger=True))
        assert c.execute('SELECT "x y_1", "x y_2" FROM release.t').fetchall() == [("it's", None)]


def test_epsilon_safe_says_when_a_stack_looks_across_persons(database: Path, tmp_path: Path) -> None:
    (tmp_path / "code.csv").write_text("".join(f"{i * 11:04};*\n" for i in range(4)))
    (tmp_path / "sex.csv").write_text("f;*\nm;*\n30;*\n")
    safe = {
        "columns": {"sex": {"role": "quasi-identifying", "hierarchy": "sex.csv"}},
        "search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.5, "epsilon": 2.0, "delta": 0.49, "seed": 1}},
        "privacy": {"k": 20},
    }
    proc = PROC | {"order": "dose", "pick_order": "ward", "hierarchy": "code.csv"}
    result = sqldeid.anonymize(job(tmp_path, proc, **safe), database).releases["t"]
    assert not any("looks across" in w for w in result.warnings), "and ties are broken by value, not refused"
    shared = {"from": "hospital.people", "on": "sex", "aggregate": "count"}
    other = shared | {"role": "quasi-identifying", "hierarchy": "sex.csv"}
    warned = sqldeid.anonymize(job(tmp_path, proc, other, **safe), database, options=REPLACE).releases["t"]
    assert any("stack other, whose key is not the person's" in w for w in warned.warnings)


REPLACE = sqldeid.Options(replace=True, without_ledger=True)


def test_pseudonyms_shifts_and_ledgers_go_with_stacks(database: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff1"[:64], encoding="utf-8")
    key.chmod(0o600)
    came = {
        "from": "hospital.admissions",
        "on": "id",
        "aggregate": "first",
        "value": "admitted",
        "order": "admitted",
        "role": "insensitive",
    }
    columns = {
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "id": {"role": "identifying", "pseudonym": True},
        "other": {"role": "insensitive", "shift": "person"},
    }
    options = sqldeid.Options(key_file=key, replace=True, without_ledger=True)
    made = job(tmp_path, PROC, came, columns=columns)
    result = sqldeid.anonymize(made, database, options=options).releases["t"]
    assert sqldeid.verify(made, database, options=options)["t"].released == result.released
    rows = released(tmp_path)
    assert len({r["id"] for r in rows}) == len(rows) and all(len(str(r["id"])) == 32 for r in rows)
    assert len({r["other"] for r in rows if r["other"] is not None}) > 2, "all came on one day"
    plain = job(tmp_path, PROC, VISITS)
    ledger = sqldeid.Options(key_file=key, replace=True, ledger=tmp_path / "ledger.duckdb")
    first = sqldeid.anonymize(plain, database, options=ledger).releases["t"]
    again = sqldeid.anonymize(plain, database, options=ledger).releases["t"]
    assert first.released == again.released
