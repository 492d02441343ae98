"""Whatever ends a run early, the source is as it was and no half release is anywhere."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.errors import EngineError, Interrupted, JobError, SqldeidError, VerificationError
from sqldeid.job import Job
from sqldeid.run import Options, anonymize
from sqldeid.tables.release import release as releasing
from sqldeid.tables.verify.verify import Claimed
from tests.support.files import read, write
from tests.support.sources import contents, database, job, listed, people, qi, release

Run = Callable[[DuckDBEngine, str], None]

PLACES = {
    "in place": {},
    "view in place": {"as": "view"},
    "fresh file": {"into": "out.duckdb"},
    "parquet": {"into": "out", "as": "parquet"},
}
"""Every place that a release can go to."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> dict[str, object]:
    return PLACES[request.param]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return database(tmp_path / "source.duckdb")


def assert_fails(wanted: Job, source: Path, error: type[SqldeidError], **options: object) -> SqldeidError:
    """The run fails with this error; the source holds what it held, and nothing new lies beside it."""
    before, beside = contents(source), listed(source.parent)
    with pytest.raises(error) as raised:
        anonymize(wanted, source, options=Options(**options))  # type: ignore[arg-type]
    assert contents(source) == before
    assert listed(source.parent) == beside
    return raised.value


def test_a_release_that_fails_its_check_never_appears(
    source: Path, tmp_path: Path, place: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise VerificationError("not what was promised")

    monkeypatch.setattr(releasing, "verify", refuse)
    assert_fails(job(place, tmp_path, r=people()), source, VerificationError)


NEEDED = {
    "CREATE TEMPORARY TABLE": PLACES,
    "CREATE SCHEMA": ("in place", "view in place", "fresh file"),
    "CREATE TABLE": PLACES,
    "CREATE VIEW": ("view in place",),
    "COMMENT ON COLUMN": ("in place", "view in place", "fresh file"),
    "COPY": ("parquet",),
    "COMMIT": PLACES,
    "CHECKPOINT": ("fresh file", "parquet"),
    "DETACH": ("fresh file", "parquet"),
}
"""Statements that make a release, and the places that need them."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("statement", "where"), [(s, w) for s, places in NEEDED.items() for w in places])
def test_an_engine_error_at_any_statement(
    source: Path, tmp_path: Path, statement: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def failing(run: Run) -> Run:
        def fail(self: DuckDBEngine, sql: str) -> None:
            if sql.lstrip().startswith(statement):
                tried.append(sql)
                raise EngineError("the disk is full")
            run(self, sql)

        return fail

    monkeypatch.setattr(DuckDBEngine, "execute", failing(DuckDBEngine.execute))
    monkeypatch.setattr(DuckDBEngine, "_finish", failing(DuckDBEngine._finish))
    found = assert_fails(job(PLACES[where], tmp_path, r=people()), source, EngineError)
    assert found.message.endswith("the disk is full")
    assert tried


def test_data_that_breaks_a_rule_leaves_nothing(source: Path, tmp_path: Path, place: dict[str, object]) -> None:
    """Found only after the source was read: fewer rows than k."""
    part = release({"age": qi({"bands": [5]})}, source="people", k=401, person="id")
    assert assert_fails(job(place, tmp_path, r=part), source, JobError).key == "tables.r.privacy.k"


@pytest.mark.sampled(2)
def test_a_later_release_that_fails_takes_the_others_with_it(
    source: Path, tmp_path: Path, place: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = releasing.verify

    def refuse(claimed: Claimed, *more: object, **named: object) -> object:
        if claimed.plan.name == "second":
            raise VerificationError("not what was promised")
        return check(claimed, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(releasing, "verify", refuse)
    assert_fails(job(place, tmp_path, first=people(), second=people(k=7)), source, VerificationError)
    monkeypatch.undo()
    done = anonymize(job(place, tmp_path, first=people(), second=people(k=7)), source)
    assert list(done.releases) == ["first", "second"]
    assert all(r.written for r in done.releases.values())


LONGER = """SELECT a.id, a.age FROM people AS a, people AS b, people AS c, people AS d
            WHERE MD5(a.name || b.name || c.name || d.name) = 'never'"""


@contextmanager
def control_c(seconds: float) -> Iterator[None]:
    """Ctrl-C after a while, unless the body has ended by then."""
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.sampled(1)
def test_control_c_during_a_long_statement(source: Path, tmp_path: Path, place: dict[str, object]) -> None:
    part = release({"age": qi()}, source={"query": LONGER}, k=2, person="id")
    before, beside = contents(source), listed(tmp_path)
    started = time.monotonic()
    with pytest.raises(Interrupted) as raised, control_c(1.0):
        anonymize(job(place, tmp_path, r=part), source)
    assert time.monotonic() - started < 20, "the statement would take days"
    assert raised.value.code == 130
    assert contents(source) == before
    assert listed(tmp_path) == beside


def test_control_c_on_a_users_connection_leaves_it_usable(source: Path) -> None:
    with duckdb.connect(str(source)) as c:
        with pytest.raises(Interrupted), control_c(1.0):
            anonymize(job(r=release({"age": qi()}, source={"query": LONGER}, person="id")), c)
        assert c.execute("SELECT COUNT(*) FROM people").fetchall() == [(400,)]
        assert anonymize(job(r=people()), c).releases["r"].released > 0


def test_control_c_between_two_statements(
    source: Path, tmp_path: Path, place: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(releasing, "verify", stop)
    assert_fails(job(place, tmp_path, r=people()), source, Interrupted)


def test_control_c_during_commit_tells_what_became_of_it(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COMMIT is not cut short: the release is there, and the run says so."""
    finish = DuckDBEngine._finish

    def slowly(self: DuckDBEngine, sql: str) -> None:
        if sql.lstrip().startswith("COMMIT"):
            self._worker._thread.submit(time.sleep, 1.0)  # what COMMIT waits for
            with control_c(0.3):
                finish(self, sql)
        else:
            finish(self, sql)

    monkeypatch.setattr(DuckDBEngine, "_finish", slowly)
    assert anonymize(job({}, tmp_path, r=people()), source).releases["r"].written == ("release.r",)
    assert read(source, "SELECT COUNT(*) > 0 FROM release.r") == [(True,)]


CHILD = """
import sys, time
from pathlib import Path
from sqldeid.job import Job
from sqldeid.run import anonymize
from sqldeid.tables.release import release as releasing
check = releasing.verify
def wait(*more, **named):
    check(*more, **named)
    print("staged", flush=True)
    time.sleep(60)
releasing.verify = wait
anonymize(Job.load(sys.argv[1]), sys.argv[2])
"""

JOB = """[release]
{target}
[tables.r]
source = "people"
person = "id"
columns.sex = {{ role = "quasi-identifying", hierarchy = {{ suppress = true }} }}
columns.age = {{ role = "quasi-identifying", hierarchy = {{ bands = [5, 10] }} }}
columns.ward = {{ role = "insensitive" }}
privacy = {{ k = 5 }}
"""


def toml(place: dict[str, object]) -> str:
    return JOB.format(target="\n".join(f'{key} = "{value}"' for key, value in place.items()))


@pytest.mark.deep
def test_a_killed_run_leaves_nothing_that_the_next_does_not_sweep(
    tmp_path: Path, place: dict[str, object], repository: Path
) -> None:
    source = database(tmp_path / "so[u]rce*.duckdb", 60_000)  # a name that a file pattern would misread
    before = contents(source)
    (tmp_path / "job.toml").write_text(toml(place))
    beside = listed(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "job.toml"), str(source)],
        stdout=subprocess.PIPE, cwd=repository,
        env=os.environ | {"PYTHONPATH": str(repository)},
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == b"staged\n"
    child.kill()
    child.wait()
    child.stdout.close()
    left = [name for name in listed(tmp_path) if name not in beside]
    assert all(".sqldeid-" in name or name.endswith(".wal") for name in left)
    assert contents(source) == before
    wanted = Job.load(tmp_path / "job.toml")
    assert anonymize(wanted, source).releases["r"].released > 0
    made = [str(place["into"])] if "into" in place else []
    assert listed(tmp_path) == sorted([*beside, *made])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    tried = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if not tried or tried.returncode:
        pytest.skip("not applicable: a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def wide(path: Path, rows: int) -> Path:
    """A database of texts that cannot be compressed to less than 32 bytes a row."""
    return write(
        path, f"CREATE TABLE wide AS SELECT i % 9 AS a, MD5('a' || i) || MD5('b' || i) AS b FROM RANGE({rows}) AS r(i)"
    )


WIDE = release({"a": qi(), "b": {"role": "insensitive"}}, source="wide", k=2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["table", "view", "parquet"])
def test_disk_full_beside_the_target(small_disk: Path, tmp_path: Path, kind: str) -> None:
    source = wide(tmp_path / "source.duckdb", 150_000)
    before = contents(source)
    with pytest.raises(EngineError, match="disk is full") as raised:
        anonymize(job({"into": str(small_disk / "out"), "as": kind}, r=WIDE), source)
    assert raised.value.code == 1
    assert contents(source) == before
    assert listed(small_disk) == []


@pytest.mark.parametrize("rows", [26_000, 32_000])
def test_disk_full_in_place(small_disk: Path, rows: int) -> None:
    """The source itself has no room for the release; it is as it was."""
    source = wide(small_disk / "source.duckdb", rows)
    before = contents(source)
    with pytest.raises(EngineError, match="disk is full"):
        anonymize(job(r=WIDE), source)
    # DuckDB has no room to clear its own log of the failed COMMIT; it ignores it, and clears it once there is room.
    assert set(listed(small_disk)) <= {"source.duckdb", "source.duckdb.wal"}
    assert contents(source) == before


def test_disk_full_on_a_users_connection(small_disk: Path, tmp_path: Path) -> None:
    """Where only the target's disk is full, the connection goes on."""
    with duckdb.connect(str(wide(tmp_path / "source.duckdb", 150_000))) as c:
        with pytest.raises(EngineError, match="disk is full"):
            anonymize(job({"into": str(small_disk / "out")}, r=WIDE), c)
        assert listed(small_disk) == []
        assert c.execute("SELECT COUNT(*) FROM wide").fetchall() == [(150_000,)]
        there = c.execute("SELECT database_name FROM duckdb_databases() WHERE NOT internal").fetchall()
        assert there == [("source",)]
        assert anonymize(job(r=WIDE), c).releases["r"].released == 150_000
