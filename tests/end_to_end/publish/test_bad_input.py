"""Bad input: the right error, in the interface's words, without a data value, and nothing changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from sqldeid.engine.opening import Settings
from sqldeid.errors import (
    RAISED,
    EngineError,
    HierarchyError,
    JobError,
    SqldeidError,
    UncoveredError,
    VerificationError,
)
from sqldeid.job import Job
from sqldeid.run import anonymize, assess, plan, reading, tradeoff, verify
from sqldeid.tables.release.tradeoff import Asked
from tests.support.sources import INSENSITIVE, contents, database, job, listed, people, qi, release

AGE = {"age": qi({"bands": [5]})}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """People, with a table of bad keys, and files that a job may not read."""
    path = database(tmp_path / "source.duckdb")
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE TABLE nothing AS FROM people WHERE FALSE")
        c.execute("CREATE TABLE twice AS SELECT id // 2 AS id, age FROM people")
        c.execute("CREATE TABLE keyless AS SELECT CASE WHEN id > 7 THEN id END AS id, age FROM people")
        c.execute("CREATE TABLE secrets AS SELECT 'SECRET' || id AS code, id % 3 AS n FROM people")
        c.execute("CREATE VIEW unread AS SELECT id, CAST('SECRET' || id AS INTEGER) AS n FROM people")
        raised = "CASE WHEN id = 7 THEN error('SECRET' || id) ELSE id END AS n"
        c.execute(f"CREATE VIEW raising AS SELECT id, {raised} FROM people")
        c.execute("CREATE VIEW outside AS SELECT 'SECRET' AS code, 1 AS n")
    (tmp_path / "secret.csv").write_text("code\nSECRET1\nSECRET2\n")
    return path


JOBS: dict[str, tuple[dict[str, object], type[SqldeidError], str]] = {
    "unknown table": (release(AGE, source="nobody"), JobError, "tables.r.source: there is no table or view nobody"),
    "unknown schema": (release(AGE, source="x.people"), JobError, "there is no table or view x.people"),
    "unknown column": (release({"agee": qi()}, source="people"), JobError, "tables.r.columns.agee: people has no"),
    "unknown person": (people() | {"person": "nobody"}, JobError, "tables.r.person: people has no column"),
    "empty": (release(AGE, source="nothing"), JobError, "nothing has no rows"),
    "empty by where": (people(where="age > 1000"), JobError, "has no rows"),
    "k": (people(k=401), JobError, "tables.r.privacy.k: k is 401, but people has only 400 rows"),
    "duplicate key": (release(AGE, source="twice", person="id"), JobError, "tables.r.person: twice has 400 rows"),
    "NULL key": (release(AGE, source="keyless", person="id"), JobError, "tables.r.person: id is NULL in 8 rows"),
    "person released": (release({"ID": INSENSITIVE, **AGE}, source="people", person="id"), JobError, "person key"),
    "file in a query": (
        release({"code": qi()}, source={"query": "SELECT * FROM read_csv('secret.csv')"}), JobError, "tables.r.source"
    ),
    "file as a table": (release({"code": qi()}, source='"secret.csv"'), JobError, "no table or view secret.csv"),
    "file as a name": (
        release({"code": qi()}, source={"query": 'SELECT * FROM "secret.csv"'}), JobError, "there is no table or view"
    ),
    "file in where": (
        people(where="age IN (SELECT code FROM read_csv('secret.csv'))"), JobError, "tables.r.where"
    ),
    "file name in where": (people(where='age IN (SELECT 1 FROM "secret.csv")'), JobError, "tables.r.where"),
    "two statements": (release(AGE, source={"query": "SELECT 1 AS age; DROP TABLE x"}), JobError, "tables.r.source"),
    "not a query": (release(AGE, source={"query": "DELETE FROM people"}), JobError, "DELETE"),
    "where of another type": (people(where="age > 'SECRET'"), JobError, ""),
    "a value that does not convert": (
        release({"n": qi()}, source="secrets", where="CAST(code AS INTEGER) > 0"),
        JobError,
        "tables.r.where: a value cannot be converted",
    ),
    "a value of a view": (
        release({"n": qi()}, source="unread", person="id"), JobError, "tables.r: a value cannot be converted"
    ),
    "a view that raises": (
        release({"n": qi()}, source="raising", person="id"), JobError, "tables.r: a view of the source, or a function"
    ),
    "a value of a median": (
        release({"n": qi({"median": "mean"})}, source="unread", person="id", search={"method": "mondrian"}),
        JobError,
        "tables.r.source: a value cannot be converted",
    ),
    "unknown shipped hierarchy": (
        release({"age": qi("adult/agee")}, source="people"), HierarchyError, "hierarchy adult/agee: no such file"
    ),
    "does not cover": (
        release({"code": qi("cover.csv")}, source="secrets"), UncoveredError, "hierarchy cover.csv does not cover"
    ),
    "does not nest": (release({"n": qi("nest.csv")}, source="secrets"), HierarchyError, "hierarchy nest.csv"),
    "not UTF-8": (release({"n": qi("latin.csv")}, source="secrets"), HierarchyError, "hierarchy latin.csv"),
    "no top": (release({"n": qi("ragged.csv")}, source="secrets"), HierarchyError, "hierarchy ragged.csv"),
    "a rule for another type": (
        release({"code": qi({"bands": [5]})}, source="secrets"), HierarchyError, "tables.r.columns.code"
    ),
    "edges that do not cover": (
        release({"n": qi({"edges": [[1, 2]]})}, source="secrets"), UncoveredError, "does not cover"
    ),
}  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("place", [{}, {"into": "out.duckdb"}], ids=str)
@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_does_not_fit_the_data(source: Path, tmp_path: Path, name: str, place: dict[str, object]) -> None:
    (tmp_path / "cover.csv").write_text("SECRET1;*\n")
    (tmp_path / "nest.csv").write_text("0;a;x;*\n1;a;y;*\n2;b;y;*\n")
    (tmp_path / "latin.csv").write_bytes("0;\xe9;*\n1;a;*\n2;a;*\n".encode("latin-1"))
    (tmp_path / "ragged.csv").write_text("0;a;*\n1;a\n2;b;*\n")
    part, kind, text = JOBS[name]
    before, beside = contents(source), listed(tmp_path)
    with pytest.raises(kind) as raised:
        anonymize(job(place, tmp_path, r=part), source)
    assert type(raised.value) is kind
    assert raised.value.code == 2
    assert text in raised.value.message
    assert raised.value.message.startswith("job: ") or not raised.value.key
    assert "SECRET" not in raised.value.message
    assert contents(source) == before
    assert listed(tmp_path) == beside


@pytest.mark.parametrize("work", [assess, lambda j, s: tradeoff(j, s, Asked((5,), (0,)))], ids=["assess", "tradeoff"])
@pytest.mark.parametrize(
    ("view", "kind"),
    [
        ("SELECT id, CAST('SECRET' || id AS INTEGER) AS n FROM people", JobError),
        ("SELECT id, (SELECT p.id FROM people p WHERE p.id < n.id) AS n FROM people n", JobError),
    ],
    ids=["a cast", "rows of a subquery"],
)
def test_every_command_names_the_release(
    source: Path, work: Callable[[Job, Path], object], view: str, kind: type[SqldeidError]
) -> None:
    with duckdb.connect(str(source)) as c:
        c.execute(f"CREATE OR REPLACE VIEW unread AS {view}")
    with pytest.raises(kind, match=r"^job: tables\.r(\.source)?: ") as raised:
        work(job({}, r=release({"n": qi()}, source="unread", person="id")), source)
    assert raised.value.key in ("tables.r", "tables.r.source") and "SECRET" not in raised.value.message


@pytest.mark.parametrize(
    "call",
    [
        "CASE WHEN id = 7 THEN error('SECRET' || id) ELSE id END",
        "refuse(id)",
        "main.REFUSE (id)",
        "id.refuse()",
        "checked(id)",
        '"Is ""ALLOWED"""(id)',
        "nested(id)",
    ],
)
@pytest.mark.parametrize("own", [False, True], ids=["a file", "a connection"])
def test_a_view_that_raises_itself_or_by_a_macro(source: Path, call: str, own: bool) -> None:
    """A macro's text is not in the view's."""
    with duckdb.connect(str(source)) as c:
        c.execute("CREATE MACRO refuse(x) AS CASE WHEN x = 7 THEN error('SECRET' || x) ELSE x END")
        c.execute("CREATE MACRO checked(x) AS refuse(x) + 0")
        c.execute('CREATE MACRO "is ""allowed"""(x) AS Refuse(x)')
        c.execute('CREATE MACRO nested(x) AS "IS ""allowed"""(x)')
        c.execute(f"CREATE OR REPLACE VIEW raising AS SELECT id, {call} AS n FROM people")
        if own:
            assert RAISED in _refused(c)
    if not own:
        assert RAISED in _refused(source)


def _refused(source: Path | duckdb.DuckDBPyConnection) -> str:
    """What is said of the view that raises."""
    with pytest.raises(JobError, match=r"^job: tables\.r: ") as raised:
        anonymize(job(r=release({"n": qi()}, source="raising", person="id")), source)
    assert raised.value.code == 2 and "SECRET" not in raised.value.message
    return raised.value.message


JOB_TEXTS = {
    "two releases of one name": "[tables.r]\nsource='a'\n[tables.r]\nsource='b'\n",
    "syntax": "[tables.r\n",
    "k": "[tables.r]\nsource='a'\nprivacy={k=0}\ncolumns.a={role='quasi-identifying',hierarchy={suppress=true}}\n",
    "limit": "[tables.r]\nsource='a'\nprivacy={k=2,suppression_limit=1.5}\n"
    "columns.a={role='quasi-identifying',hierarchy={suppress=true}}\n",
    "unknown key": "[tables.r]\nsource='a'\nprivacy={k=2}\nsuppres=1\n"
    "columns.a={role='quasi-identifying',hierarchy={suppress=true}}\n",
    "unknown role": "[tables.r]\nsource='a'\nprivacy={k=2}\ncolumns.a={role='quasi'}\n",
    "no quasi-identifier": "[tables.r]\nsource='a'\nprivacy={k=2}\ncolumns.a={role='sensitive'}\n",
}


@pytest.mark.parametrize("name", JOB_TEXTS)
def test_a_job_file_that_is_not_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "job.toml").write_text(JOB_TEXTS[name])
    with pytest.raises(JobError, match=r"^job\.toml") as raised:
        Job.load(tmp_path / "job.toml")
    assert raised.value.code == 2


RUNS: dict[str, Callable[..., object]] = {"anonymize": anonymize, "plan": plan, "assess": assess, "verify": verify}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        (None, JobError, "does not exist"),
        (b"", JobError, "is empty"),
        (b"this is text, and not a database at all" * 400, JobError, "not a DuckDB database"),
        (b"PAR1 but nothing more", SqldeidError, "x.duckdb"),
        ("folder", JobError, "is a folder"),
    ],
)
def test_a_file_that_is_no_database(
    tmp_path: Path, run: str, content: bytes | str | None, error: type[SqldeidError], text: str
) -> None:
    path = tmp_path / "x.duckdb"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    before, beside = path.read_bytes() if path.is_file() else None, listed(tmp_path)
    with pytest.raises(error, match=text) as raised:
        RUNS[run](job({"into": "out.duckdb"} if run == "anonymize" else {}, tmp_path, r=people()), path)
    assert raised.value.code in (1, 2)
    assert "x.duckdb" in raised.value.message or "no table or view" in raised.value.message
    assert listed(tmp_path) == beside
    assert (path.read_bytes() if path.is_file() else None) == before


HOLDER = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); input()"


@pytest.mark.parametrize("place", [{}, {"into": "out.duckdb"}], ids=str)
def test_a_database_that_another_process_holds(tmp_path: Path, place: dict[str, object]) -> None:
    source = database(tmp_path / "source.duckdb")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(source)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    beside = listed(tmp_path)
    try:
        with pytest.raises(EngineError, match="in use by another connection or process") as raised:
            anonymize(job(place, tmp_path, r=people()), source)
    finally:
        holder.communicate(b"\n")
    assert raised.value.code == 1
    assert [n for n in listed(tmp_path) if n in beside or ".sqldeid" in n] == listed(tmp_path)
    assert not [n for n in listed(tmp_path) if ".sqldeid" in n]


@pytest.mark.parametrize("place", [{}, {"into": "out.duckdb"}], ids=str)
def test_a_database_that_this_process_holds(tmp_path: Path, place: dict[str, object]) -> None:
    source = database(tmp_path / "source.duckdb")
    with duckdb.connect(str(source)), pytest.raises(EngineError, match="in use by another connection or process"):
        anonymize(job(place, tmp_path, r=people()), source)
    assert listed(tmp_path) == ["source.duckdb"]


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with a database that nobody may write, root included."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("not applicable: a disk cannot be mounted here")
    database(folder / "source.duckdb")
    subprocess.run([mount, "-o", "remount,ro", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_read_only_database(read_only_disk: Path, tmp_path: Path) -> None:
    source = read_only_disk / "source.duckdb"
    with pytest.raises(EngineError, match=r"cannot be written|no folder can be made") as raised:
        anonymize(job(r=people()), source)
    assert raised.value.code == 1
    with pytest.raises(EngineError, match="no folder can be made there"):
        anonymize(job({"into": str(read_only_disk / "out.duckdb")}, r=people()), source)
    done = anonymize(job({"into": str(tmp_path / "out.duckdb")}, r=people()), source)
    assert done.releases["r"].released > 0
    assert plan(job(r=people()), source)[0].name == "r"
    assert sum(size * n for size, n in assess(job(r=people()), source)["r"].class_sizes) == 400


def test_files_as_sources(tmp_path: Path) -> None:
    """CSV keeps codes with leading zeros; a Parquet file is found by its content; neither can take the release."""
    with duckdb.connect() as c:
        c.execute(
            "CREATE TABLE t AS SELECT i AS id, LPAD(CAST(i % 3 AS VARCHAR), 3, '0') AS code FROM RANGE(30) AS r(i)"
        )
        c.execute(f"COPY t TO '{tmp_path}/t.csv' (HEADER true); COPY t TO '{tmp_path}/plain' (FORMAT PARQUET)")
    part = {"t.csv": "t", "plain": "plain"}
    for file, table in part.items():
        beside = listed(tmp_path)
        with pytest.raises(JobError, match="the source is a file, not a database; name where to write"):
            anonymize(job(r=release({"code": qi()}, source=table, person="id")), tmp_path / file)
        assert listed(tmp_path) == beside
        out = tmp_path / f"{table}.duckdb"
        anonymize(job({"into": str(out)}, r=release({"code": qi()}, source=table, person="id")), tmp_path / file)
        with duckdb.connect(str(out)) as plain:
            codes = plain.execute("SELECT DISTINCT code FROM release.r ORDER BY ALL").fetchall()
        assert codes == [("000",), ("001",), ("002",)]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("31.01.26", "VARCHAR"),  # DuckDB takes it for 26 January 2031
        ("26-01-31", "VARCHAR"),
        ("01/31/26", "VARCHAR"),
        ("1.2.26", "VARCHAR"),
        ("26-01-31 10:00:00", "VARCHAR"),
        ("26-01-31 10:00:00+02", "VARCHAR"),
        ("2026-01-31 10:00:00+02", "TIMESTAMP WITH TIME ZONE"),
        ("31.01.2026", "DATE"),
        ("0x1F", "VARCHAR"),
        ("12E3", "VARCHAR"),
        ("1.2e3", "DOUBLE"),
        ("12e+03", "DOUBLE"),
        ("0.5", "DOUBLE"),
        ("0", "BIGINT"),
        ("2026-01-31", "DATE"),
        ("2026-01-31 10:00:00", "TIMESTAMP"),
    ],
)
def test_a_csv_file_keeps_codes_and_years_of_two_digits_as_text(tmp_path: Path, written: str, read: str) -> None:
    lines = [f"{i},{written},00{i}" for i in range(5)]
    (tmp_path / "t.csv").write_text("\n".join(["id,on,code", *lines]) + "\n")
    with reading(tmp_path / "t.csv", tmp_path / "t.csv", Settings()) as engine:
        columns = engine.columns(engine.resolve(("t",)))
    assert [c.shown_type for c in columns] == ["BIGINT", read, "VARCHAR"]


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    source = database(tmp_path / "source.duckdb")
    before, beside = contents(source), listed(tmp_path)
    for into in ("no/such/folder/out.duckdb", "source.duckdb/out.duckdb"):
        with pytest.raises(JobError, match=r"release\.into: there is no folder"):
            anonymize(job({"into": into}, tmp_path, r=people()), source)
    with pytest.raises(JobError, match="there is no release x; it has r"):
        from sqldeid.run import Options

        anonymize(job(r=people()), source, options=Options(only=("x",)))
    assert contents(source) == before
    assert listed(tmp_path) == beside


def test_verify_of_what_is_not_there(tmp_path: Path) -> None:
    source = database(tmp_path / "source.duckdb")
    for place in ({}, {"as": "view"}):
        with pytest.raises(VerificationError, match="is not there, or sqldeid did not make it") as raised:
            verify(job(place, tmp_path, r=people()), source)
        assert raised.value.code == 4
    for place in ({"into": "out.duckdb"}, {"into": "out", "as": "parquet"}):
        with pytest.raises(VerificationError, match="does not exist; nothing was released there") as raised:
            verify(job(place, tmp_path, r=people()), source)
        assert raised.value.code == 4
    assert listed(tmp_path) == ["source.duckdb"]
    assert os.access(source, os.W_OK)
