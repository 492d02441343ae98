"""`init`, `hierarchy`, `explore --text` and `evaluate` say in Postgres and on Spark what they say in DuckDB."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

import sqldeid
from sqldeid import Job, JobError, anonymize, explore_text, init, safe_harbor, verify
from sqldeid.engine import choosing
from tests.support.cli import run as command_line
from tests.support.foreign import bag, in_duckdb, in_postgres
from tests.support.on_spark import on_both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 4_400
SICK = ["flu", "cold", "it's", "asthma", "gout", "😀"]
NOTES = [
    "Seen SHE; 40-YEAR-OLD, wife ill",
    "she-wolf\nmale?",
    "ashes, shed, females_",
    "Éhe her9 hers",
    "her",
    " heR\t",
    "naïve ĤER himſelf, K",
    "",
    "Weißwurst, WEIẞWURST; der größte",
    None,
    "ıs he İn",
    "a.b (x) [y] $5 c+d",
]
WORDS = {"she": ["she", "HE", "hers"], "signs": ["a.b", "(x)", "$5"], "others": ["ΑΣ", "weißwurst", "is", "k"]}


def people(rows: int = ROWS) -> pa.Table:
    """What `init` knows something of: identifiers by name, look and number, dates, codes, ages, free text."""
    every = range(rows)
    return pa.table(
        {
            "patient_id": pa.array([100_000 + i for i in every], pa.int64()),
            "last_name": [f"N{i % 3100}" for i in every],
            "contact": [f"m{i}@example.org" if i % 9 else f" m{i % 50}@example.org " for i in every],
            "reachable": [f"+49 30 {100_000 + i}" if i % 3 else None for i in every],
            "age": pa.array([None if i % 41 == 0 else 18 + i % 85 for i in every], pa.int32()),
            "sex": [["Male", "Female"][i % 2] for i in every],
            "zip": [f"{10_000 + i * 7 % 60:05d}" for i in every],
            "district_code": [f"{20_000 + i % 44}" for i in every],
            "weight": pa.array([40.25 + i * 13 % 90 for i in every], pa.float64()),
            "money": pa.array([Decimal(i * 3 % 1000) / 4 for i in every], pa.decimal128(10, 2)),
            "admitted": pa.array([date(1990, 1, 1) + timedelta(days=i % 900) for i in every], pa.date32()),
            "birthdate": pa.array([date(1930 + i % 80, 1 + i % 12, 1 + i % 28) for i in every], pa.date32()),
            "seen": pa.array([datetime(2020, 1, 1) + timedelta(hours=i % 70) for i in every], pa.timestamp("us")),
            "alive": [i % 5 > 0 for i in every],
            "diagnosis": [SICK[i % 6] for i in every],
            "remarks": [f"seen at the ward, {'slept well ' * 9}{i}" for i in every],
            'Wä"rd; --': pa.array([i % 4 for i in every], pa.int16()),
            "nothing": pa.array([None] * rows, pa.string()),
            "same": ["x"] * rows,
        }
    )


def notes(rows: int = 360) -> pa.Table:
    every = range(rows)
    texts = [NOTES[i % len(NOTES)] if i != 17 else "Nobody else writes so, he" for i in every]
    return pa.table(
        {
            "who": pa.array([i // 3 for i in every], pa.int64()),
            "note": [None if t is None else f"{t} {i % 7}" if i % 5 else t for i, t in zip(every, texts, strict=True)],
        }
    )


@dataclass(frozen=True)
class There:
    """The same tables in a DuckDB file and in another engine."""

    by: str
    file: Path
    database: Any
    read: Callable[[str], list[tuple[Any, ...]]]


def tables() -> dict[str, pa.Table]:
    few = people(120).select(["patient_id", "age", "sex", "zip", "diagnosis"])
    return {"patients": people(), "notes": notes(), "few": few}


@pytest.fixture(scope="module")
def in_server(postgres_cluster: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    file = in_duckdb(tmp_path_factory.mktemp("commands") / "hospital.duckdb", tables())
    with in_postgres(postgres_cluster) as server:
        for name, rows in tables().items():
            server.load(name, rows)
        yield There("postgres", file, server.database, server.read)


@pytest.fixture(scope="module")
def on_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    with on_both(spark, tmp_path_factory.mktemp("commands"), tables()) as both:
        yield There("spark", both.file, both.url, both.there)
        spark.sql("DROP SCHEMA IF EXISTS release CASCADE")


BOTH = pytest.mark.parametrize(
    "where", ["in_server", pytest.param("on_spark", marks=pytest.mark.xdist_group("spark"))], indirect=True
)


@pytest.fixture
def where(request: pytest.FixtureRequest) -> There:
    found: There = request.getfixturevalue(request.param)
    return found


def body(text: str) -> list[str]:
    """A job's text but for the head, where the release goes, and the table's schema."""
    lines = text.replace('source = "public.', 'source = "main.').replace('source = "default.', 'source = "main.')
    lines = lines[lines.index("[release]") :]
    return [line for line in lines.splitlines() if not line.startswith(("schema =", "into ="))]


@BOTH
def test_a_job_is_proposed_as_in_duckdb(where: There) -> None:
    """From a sample of 4,400 rows, too; and what is found by looks, names and numbers is found alike."""
    here, there = init(where.file, "patients"), init(where.database, "patients")
    assert body(there) == body(here)
    assert 'schema = "release"' in there and "hidden-word" not in there and "into" not in there
    assert "all of its values look like it (mail)" in " ".join(there.split())
    if where.by == "postgres":  # `init` found the same
        assert safe_harbor(where.database, "patients") == safe_harbor(where.file, "patients")


@BOTH
def test_a_proposed_job_runs_as_it_is(
    where: There, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the commands that are printed, each as it stands."""
    monkeypatch.chdir(tmp_path)
    if where.by == "postgres":
        monkeypatch.setenv("PGPASSWORD", "hidden-word")
    ran = command_line(capsys, "init", where.database, "few", "-o", "job.toml")
    assert ran.code == 0, ran
    for wanted in ("anonymize", "verify")[: 2 if where.by == "postgres" else 1]:
        [printed] = [line.strip() for line in ran.out.splitlines() if line.startswith(f"  sqldeid {wanted}")][-1:]
        assert "hidden-word" not in printed
        ran = command_line(capsys, *shlex.split(printed)[1:])
        assert ran.code == 0 and "hidden-word" not in ran.out + ran.err, ran
    text = init(where.file, "few")
    (tmp_path / "here.toml").write_text(text, encoding="utf-8")
    here = anonymize(Job.load(tmp_path / "here.toml"), where.file)
    assert here.tables["few"].released > 0.9 * 120
    with duckdb.connect(str(tmp_path / "few_release.duckdb")) as c:
        assert bag(where.read("release.few")) == bag(c.execute("SELECT * FROM release.few").fetchall())


@BOTH
def test_which_table_it_is_about(where: There) -> None:
    with pytest.raises(JobError, match=r"name the table.*few, .*notes, .*patients"):
        init(where.database)
    with pytest.raises(JobError, match="no table or view nowhere"):
        init(where.database, "nowhere")


@BOTH
def test_texts_are_counted_as_in_duckdb(where: There) -> None:
    """Keywords as words whatever their case, also of letters that few think of; beginnings; by row and by person."""
    for asked in ({}, {"person": "who", "keywords": WORDS, "first": [1, 3]}):
        there, here = (explore_text(d, "notes", "note", **asked) for d in (where.database, where.file))
        assert replace(there, seconds=0) == replace(here, seconds=0)
        assert any(k.rows for k in there.keywords) and any(p.rows_below[2] for p in there.prefixes)
    assert [k.rows for k in there.keywords][-1] > 0


@pytest.mark.deep
@BOTH
def test_hierarchies_are_shown_and_built_as_in_duckdb(
    where: There, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = {"money": "bands=10,20", "diagnosis": "keep_first=1", "age": "bands=5,10", "admitted": "dates=month,year"}
    for column, rule in list(rules.items())[: 4 if where.by == "postgres" else 2]:
        made = []
        for database in (where.database, str(where.file)):
            of = ("--db", database, "--table", "patients", "--column", column)
            file = tmp_path / "made.csv"
            file.unlink(missing_ok=True)
            ran = command_line(capsys, "hierarchy", "build", rule, "-o", str(file), *of)
            assert ran.code == 0, ran
            shown = command_line(capsys, "hierarchy", "show", str(file), *of)
            assert shown.code == 0, shown
            made.append((file.read_text(), shown.out, shown.err))
        assert made[0] == made[1]


@BOTH
def test_a_release_is_evaluated_as_in_duckdb(where: There) -> None:
    """Split, released, suppressed, read and trained on alike; nothing is published."""
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [10, 50]}},
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "money": {"role": "quasi-identifying", "hierarchy": {"bands": [50, 100]}},
        "weight": {"role": "insensitive"},
        "seen": {"role": "insensitive"},
        "alive": {"role": "sensitive"},
        "last_name": {"role": "identifying"},
    }
    part = {"source": "patients", "person": "patient_id", "columns": columns}
    job = Job.parse({"tables": {"r": {**part, "privacy": {"k": 8, "suppression_limit": 0.1}}}})
    found = [sqldeid.evaluate.classification(job, d, "alive", seed=3) for d in (where.database, where.file)]
    scores = [(s.pop("originals"), s.pop("anonymised")) for s in (f.to_dict() for f in found)]
    there, here = (replace(f, seconds=0.0, originals=None, anonymised=found[0].anonymised) for f in found)
    assert there == here and there.suppressed > 0 and 1_100 < there.test < 1_500
    for one, other in zip(*scores, strict=True):
        assert one == pytest.approx(other)
    with pytest.raises(JobError, match=r"no table or view release\.r"):
        init(where.database, "release.r")


@pytest.mark.deep
def test_a_server_may_keep_its_text_otherwise(postgres_cluster: str, tmp_path: Path) -> None:
    """In Latin-1: names, values and words reach us, and it, as they are."""
    with in_postgres(postgres_cluster) as server:
        server.run(
            f"CREATE DATABASE {server.dbname}_latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
        latin = replace(server, dbname=f"{server.dbname}_latin")
        texts = ["ÄGE of 7", "she éhe", "éshe", "Wär"]
        rows = pa.table({"Größe": [texts[i % 4] for i in range(40)], "sex": [["f", "m"][i % 2] for i in range(40)]})
        file = in_duckdb(tmp_path / "latin.duckdb", {"t": rows})
        with latin.connect() as c:
            c.execute('CREATE TABLE t ("Größe" TEXT, sex TEXT)')
            for row in rows.to_pylist():
                c.execute("INSERT INTO t VALUES (%s, %s)", tuple(row.values()))
        words = {"a": ["äge"], "b": ["she"], "c": ["he"]}
        there, here = (explore_text(d, "t", "größe", keywords=words) for d in (latin.database, file))
        assert replace(there, seconds=0) == replace(here, seconds=0)
        assert [k.rows for k in there.keywords] == [10, 10, 0]
        assert body(init(latin.database, "t")) == body(init(file, "t"))
        (tmp_path / "job.toml").write_text(init(latin.database, "t"), encoding="utf-8")
        job = Job.load(tmp_path / "job.toml")
        assert anonymize(job, latin.database).tables["t"].released == 40
        assert verify(job, latin.database)["t"].released == 40 and bag(latin.read("release.t"))
        server.run(f"DROP DATABASE {latin.dbname}")


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("postgresql:///db?host=/tmp/x", "postgresql:///db?host=/tmp/x"),
        ("postgresql://me:pass@/db?host=/tmp/x", "postgresql://me@/db?host=/tmp/x"),
        ("postgresql://me:pass@h:5432/db?sslmode=require&password=pass", "postgresql://me@h:5432/db?sslmode=require"),
        ("postgresql:///db?host=/tmp&user=u&password=pass&options=-cx%3Dpass", "postgresql:///db?host=/tmp&user=u"),
        ("postgresql:///x?dbname=host%3Dh%20password%3Dpass", "postgresql:///x"),
        ("postgresql://u:p%40pass@[::1]/db", "postgresql://u@[::1]/db"),
        ("sc://host:15002/;token=pass", "sc://host:15002"),
        ("hospital.duckdb", "hospital.duckdb"),
    ],
)
def test_a_database_is_named_once_more_without_its_password(url: str, wanted: str) -> None:
    assert choosing.again(url) == wanted


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:pass#a@host/db", "postgresql://[broken:pass", "postgresql://u:pass", "postgresql://u:pass?a"],
)
def test_no_part_of_an_address_that_cannot_be_read_is_named(url: str) -> None:
    assert "pass@" not in choosing.again(url) and ":pass" not in choosing.again(url)


@pytest.mark.parametrize("stopped", ["sqldeid.cli.options.without_pandas", "sqldeid.Options"])
def test_ctrl_c_while_the_program_loads_says_that_nothing_was_published(
    stopped: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "job.toml").write_text(init(in_duckdb(tmp_path / "d.duckdb", {"t": people(20)})), encoding="utf-8")
    monkeypatch.setattr(stopped, stop)
    ran = command_line(capsys, "anonymize", str(tmp_path / "d.duckdb"), "--job", str(tmp_path / "job.toml"))
    assert ran.code == 130 and "nothing was published" in ran.err
