"""Two runs at the same moment into one place, or another program there: nothing that two runs in turn are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqldeid.errors import EngineError, JobError, SqldeidError
from sqldeid.job import Job
from sqldeid.publish import InPlace
from sqldeid.run import Options, anonymize, assess, plan, verify
from sqldeid.tables import Listener
from tests.support.charted_series import BASE, charted
from tests.support.events import kind_c
from tests.support.files import read
from tests.support.ledgers import KEY
from tests.support.sources import PEOPLE, contents, database, everything, job, listed, people

FILE, VIEW, FOLDER = {"into": "out.duckdb"}, {"into": "out.duckdb", "as": "view"}, {"into": "out", "as": "parquet"}
FILES = {"file": FILE, "views in a file": VIEW, "folder": FOLDER}
WRITING = "another run of sqldeid is writing to"
IN_DATABASE = "another run of sqldeid is writing into this database, or did so since"
REPLACE = Options(replace=True, without_ledger=True)


@pytest.fixture(params=FILES)
def place(request: pytest.FixtureRequest) -> dict[str, str]:
    return FILES[request.param]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return database(tmp_path / "source.duckdb")


def refused(error: type[SqldeidError], match: str, act: Callable[[], object]) -> Callable[[], None]:
    """What must be refused meanwhile."""

    def must() -> None:
        with pytest.raises(error, match=match):
            act()

    return must


def run_with(act: Callable[[], object], wanted: Job, database_: Any, options: Options | None = None) -> Any:
    """A run, in the middle of which something happens."""
    came: list[str] = []

    def meanwhile(release: str, step: str) -> None:
        if step == "publishing" and not came:  # it has looked at everything
            came.append(release)
            act()

    done = anonymize(wanted, database_, options=options, listener=Listener(step=meanwhile))
    assert came
    return done


def ks(folder: Path, place: Mapping[str, str], *names: str) -> list[int]:
    """The k of each release, by its own note."""
    into = folder / place["into"]
    if into.is_dir():
        asked = "SELECT DECODE(value) FROM parquet_kv_metadata(?) WHERE DECODE(key) = 'sqldeid'"
        texts = [duckdb.execute(asked, [f"{into}/{name}.parquet"]).fetchall()[0][0] for name in names]
    else:
        asked = """SELECT comment FROM duckdb_tables() WHERE table_name = '{0}'
                   UNION ALL SELECT comment FROM duckdb_views() WHERE view_name = '{0}'"""
        texts = [read(into, asked.format(name))[0][0] for name in names]
    return [json.loads(text)["sqldeid"]["criteria"]["k"] for text in texts]


# ---- one file or folder --------------------------------------------------------------------------------------------


def wings(folder: Path, place: Mapping[str, str]) -> dict[str, Job]:
    """A job of each wing."""
    parts = {
        "tables": {"tables": {"r": people()}},
        "series": {"series": {"vitals": dict(BASE)}},
        "events": {"events": {"moves": kind_c(source="steps", attacks=False)}},
    }
    return {wing: Job.parse({"release": dict(place), **part}, folder=folder) for wing, part in parts.items()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wing", ["tables", "series", "events"])
@pytest.mark.parametrize("there", [False, True])
def test_a_second_run_stops_while_the_first_is_under_way(
    source: Path, tmp_path: Path, place: dict[str, str], wing: str, there: bool
) -> None:
    with duckdb.connect(str(source)) as c:
        c.register("frame", charted())
        c.execute("CREATE TABLE charted AS FROM frame")
        c.execute(
            """CREATE TABLE steps AS SELECT i AS row_id, i // 6 AS subject_id, i // 6 AS hadm_id,
                   i % 6 AS ticket_id_seq, 'c' || (i * i) % 5 AS cpt_cd FROM RANGE(1200) AS r(i)"""
        )
    wanted = wings(tmp_path, place)[wing]
    if there:
        anonymize(wanted, source)
    options = REPLACE if there else Options()
    during: list[list[str]] = []

    def second() -> None:
        refused(EngineError, f"release.into: {WRITING} .*{place['into']}; run this one when that has ended", again)()
        during.append(listed(tmp_path))

    def again() -> None:
        anonymize(wanted, source, options=REPLACE)

    run_with(second, wanted, source, options)
    assert f".{place['into']}.sqldeid-lock" in during[0]
    verify(wanted, source)
    assert listed(tmp_path) == sorted([place["into"], "source.duckdb"])
    again()  # the first has ended


@pytest.mark.sampled(2)
def test_another_version_of_the_source_does_not_slip_in_between(tmp_path: Path, place: dict[str, str]) -> None:
    """Two runs in turn are refused, for what is there may not be replaced; and so are two at once."""
    old, new = database(tmp_path / "old.duckdb"), database(tmp_path / "new.duckdb", rows=399)
    wanted = job(place, tmp_path, r=people())
    allowed = Options(replace=True)

    def second() -> None:
        anonymize(wanted, new, options=allowed)

    run_with(refused(EngineError, WRITING, second), wanted, old, allowed)
    before = everything(tmp_path / place["into"])
    with pytest.raises(JobError, match="its source has changed since"):
        second()
    assert everything(tmp_path / place["into"]) == before


@pytest.mark.sampled(2)
def test_a_run_of_one_release_does_not_lose_what_another_run_makes_of_the_other(
    source: Path, tmp_path: Path, place: dict[str, str]
) -> None:
    def wanted(k: int) -> Job:
        return job(place, tmp_path, a=people(k=k), b=people(k=k))

    def only(name: str) -> None:
        anonymize(wanted(7), source, options=Options(only=(name,), replace=True, without_ledger=True))

    anonymize(wanted(5), source)
    one = Options(only=("a",), replace=True, without_ledger=True)
    run_with(refused(EngineError, WRITING, lambda: only("b")), wanted(7), source, one)
    assert ks(tmp_path, place, "a", "b") == [7, 5]
    only("b")
    assert ks(tmp_path, place, "a", "b") == [7, 7]


@pytest.mark.parametrize("where", [FILE, {}])
def test_a_run_without_a_ledger_does_not_replace_what_one_with_a_ledger_is_making(
    source: Path, tmp_path: Path, where: dict[str, str]
) -> None:
    (tmp_path / "key").write_text(KEY)
    wanted = job(where, tmp_path, r=people())
    held = Options(replace=True, ledger=tmp_path / "ledger.duckdb", key_file=tmp_path / "key")
    with duckdb.connect(str(source)) as c:
        match = WRITING if where else IN_DATABASE
        run_with(refused(EngineError, match, lambda: anonymize(wanted, c.cursor(), options=REPLACE)), wanted, c, held)
        with pytest.raises(JobError, match="was held to a ledger; name it with --ledger"):
            anonymize(wanted, c.cursor(), options=REPLACE)


def test_a_ledger_takes_down_nothing_that_another_program_kept_from_being_published(
    source: Path, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(KEY)
    held = Options(replace=True, ledger=tmp_path / "ledger.duckdb", key_file=tmp_path / "key")
    wanted = job(FILE, tmp_path, r=people())
    anonymize(wanted, source, options=held)
    before = everything(tmp_path / "ledger.duckdb")
    with pytest.raises(JobError, match="was changed by another program"):
        run_with(lambda: append(tmp_path / "out.duckdb"), wanted, source, held)
    assert everything(tmp_path / "ledger.duckdb") == before


FORKED = """
import os, sys
from pathlib import Path
from sqldeid.errors import EngineError
from sqldeid.publish import reserved
with reserved(Path(sys.argv[1])):
    child = os.fork()
    if child == 0:
        sys.exit(3)  # as code of the user's that forks within a run, and ends
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    try:
        with reserved(Path(sys.argv[1])):
            raise SystemExit("held twice")
    except EngineError:
        pass
with reserved(Path(sys.argv[1])) as held:
    assert held
"""


def test_a_forked_child_that_ends_does_not_let_others_in(tmp_path: Path) -> None:
    quiet = ("-W", "ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
    done = subprocess.run([sys.executable, *quiet, "-c", FORKED, str(tmp_path / "out")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert listed(tmp_path) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("spelt", ["{}/down/../{}", "{}/linked/{}", "{}/link"])
def test_a_place_is_one_however_it_is_spelt(source: Path, tmp_path: Path, place: dict[str, str], spelt: str) -> None:
    (tmp_path / "down").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path)
    first = job(place, tmp_path, r=people())
    anonymize(first, source)
    (tmp_path / "link").symlink_to(place["into"])
    other = job({**place, "into": spelt.format(tmp_path, place["into"])}, r=people())
    run_with(refused(EngineError, WRITING, lambda: anonymize(other, source, options=REPLACE)), first, source, REPLACE)
    run_with(refused(EngineError, WRITING, lambda: anonymize(first, source, options=REPLACE)), other, source, REPLACE)
    assert listed(tmp_path) == sorted([place["into"], "down", "link", "linked", "source.duckdb"])


KILLED = """
import sys, time
from sqldeid.run import anonymize
from sqldeid.tables import Listener
from tests.support.sources import job, people
def hold(release, step):
    if step == "publishing":
        print("held", flush=True)
        time.sleep(600)
folder, into, kind = sys.argv[1:]
anonymize(job({"into": into, "as": kind}, folder, r=people()), folder + "/source.duckdb", listener=Listener(step=hold))
"""


@pytest.mark.sampled(1)
def test_a_run_that_was_killed_keeps_nobody_out(source: Path, tmp_path: Path, place: dict[str, str]) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), place["into"], place.get("as", "table")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
    wanted = job(place, tmp_path, r=people())
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        refused(EngineError, WRITING, lambda: anonymize(wanted, source))()
        if Path("/proc/locks").exists():
            by = rf"name another place \(process {process.pid} of .+ holds the lock\)"
            refused(EngineError, by, lambda: anonymize(wanted, source))()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert f".{place['into']}.sqldeid-lock" in listed(tmp_path)
    anonymize(wanted, source)
    assert verify(wanted, source)["r"].k >= 5
    assert listed(tmp_path) == sorted([place["into"], "source.duckdb"])


def test_a_place_where_nothing_can_be_made_is_refused_as_such(source: Path, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="there is no folder"):
        anonymize(job({"into": "nowhere/out.duckdb"}, tmp_path, r=people()), source)
    with pytest.raises(EngineError, match="no folder can be made there"):
        anonymize(job({"into": "/proc/out.duckdb"}, r=people()), source)
    assert listed(tmp_path) == ["source.duckdb"]
    (tmp_path / ".out.duckdb.sqldeid-lock").mkdir()  # as another user's file may be, that cannot be opened
    with pytest.raises(EngineError, match=r"cannot be known, for .*sqldeid-lock cannot be locked .*removes it: rm "):
        anonymize(job(FILE, tmp_path, r=people()), source)
    assert listed(tmp_path) == [".out.duckdb.sqldeid-lock", "source.duckdb"]


# ---- another program -----------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("options", [Options(), REPLACE])
def test_what_another_program_puts_there_meanwhile_stays(
    source: Path, tmp_path: Path, place: dict[str, str], options: Options, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with --replace, which speaks of what was there when the run began."""
    into = tmp_path / place["into"]
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no links")))

    def put() -> None:
        if place is FOLDER:
            into.mkdir()
            (into / "r.parquet").write_text("mine")
        else:
            into.write_text("mine")

    with pytest.raises(JobError, match=f"release.into: .*{place['into']} exists by now; somebody else wrote it"):
        run_with(put, job(place, tmp_path, r=people()), source, options)
    assert everything(into) == b"mine"
    assert listed(tmp_path) == sorted([place["into"], "source.duckdb"])


def test_an_empty_folder_made_meanwhile_is_not_taken(source: Path, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="exists by now"):
        run_with((tmp_path / "out").mkdir, job(FOLDER, tmp_path, r=people()), source, REPLACE)
    assert listed(tmp_path / "out") == []


def append(into: Path) -> None:
    file = into / "r.parquet" if into.is_dir() else into
    with file.open("ab") as open_:
        open_.write(b"more")


def exchange(into: Path) -> None:
    file = into / "r.parquet" if into.is_dir() else into
    other = file.with_name("other")
    other.write_bytes(file.read_bytes())
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    os.replace(other, file)


def put_in(into: Path) -> None:
    (into / "notes.txt").write_text("mine")


def move_away(into: Path) -> None:
    into.rename(into.with_name("moved"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("where", "change"),
    [
        *((where, change) for where in ("file", "folder") for change in (append, exchange, move_away)),
        ("folder", put_in),
    ],
)
def test_what_another_program_changes_meanwhile_is_not_replaced(
    source: Path, tmp_path: Path, where: str, change: Callable[[Path], None]
) -> None:
    into = tmp_path / FILES[where]["into"]
    wanted = job(FILES[where], tmp_path, r=people())
    anonymize(wanted, source)
    changed: list[tuple[list[str], bytes]] = []

    def meanwhile() -> None:
        change(into)
        changed.append((listed(into) if into.is_dir() else [], everything(into) if into.exists() else b""))

    with pytest.raises(JobError, match=r"was changed by another program .*nothing was published"):
        run_with(meanwhile, wanted, source, REPLACE)
    after = (listed(into) if into.is_dir() else [], everything(into) if into.exists() else b"")
    assert after == changed[0]
    moved = ["moved"] if change is move_away else [into.name]
    assert listed(tmp_path) == sorted([*moved, "source.duckdb"])


def test_who_may_read_a_release_can_be_said_meanwhile(source: Path, tmp_path: Path, place: dict[str, str]) -> None:
    into = tmp_path / place["into"]
    wanted = job(place, tmp_path, r=people())
    anonymize(wanted, source)
    run_with(lambda: into.chmod(0o755), wanted, source, REPLACE)
    assert into.stat().st_mode & 0o777 == 0o755


# ---- one database --------------------------------------------------------------------------------------------------


def filled(path: Path | str = ":memory:") -> duckdb.DuckDBPyConnection:
    """People, and a schema for releases: two runs that both had to make it would meet there."""
    c = duckdb.connect(str(path))
    c.execute(PEOPLE.format("people", 400))
    c.execute("CREATE SCHEMA release")
    return c


def cohort(name: str, persons: int, **place: str) -> Job:
    """A cohort of the first so many people, under a job of its own."""
    part = people(limit=0.9)
    part["source"] = {"query": f"SELECT * FROM people WHERE id < {persons}"}
    return job(place, **{name: part})


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_second_run_into_a_database_stops_while_the_first_is_under_way(kind: str) -> None:
    """Of two cohorts that differ by one person the second is refused in turn, and so it is at once."""
    with filled() as c:
        second = cohort("b", 399, **{"as": kind})
        run_with(refused(EngineError, IN_DATABASE, lambda: anonymize(second, c.cursor())), cohort("a", 400), c)
        with pytest.raises(JobError, match="the two cohorts may differ by few persons"):
            anonymize(second, c.cursor())
        assert c.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'release'").fetchall() == [("a",)]
        assert c.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE schema_name = 'main'").fetchall() == [(1,)]


def test_a_run_that_looked_before_another_published_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is opened, and has begun, before the first is published: its claim comes after that."""
    opened, published = threading.Event(), threading.Event()
    claim, ended = InPlace.claim, []

    def waiting(self: InPlace) -> None:
        if threading.current_thread() is other:
            opened.set()
            assert published.wait(60)
        claim(self)

    def second() -> None:
        try:
            anonymize(cohort("b", 399), cursor)
        except SqldeidError as error:
            ended.append(error.message)

    monkeypatch.setattr(InPlace, "claim", waiting)
    with filled() as c:
        cursor = c.cursor()
        other = threading.Thread(target=second)

        def meanwhile() -> None:
            other.start()
            assert opened.wait(60)

        run_with(meanwhile, cohort("a", 400), c)
        published.set()
        other.join(60)
        assert len(ended) == 1 and "the two cohorts may differ by few persons" in ended[0]


@pytest.mark.parametrize("trial", range(3))
def test_of_two_cohorts_that_differ_by_one_person_one_is_published(trial: int, tmp_path: Path) -> None:
    together = threading.Barrier(2)
    with filled(tmp_path / "source.duckdb") as c:

        def release(wanted: Job, cursor: duckdb.DuckDBPyConnection) -> None:
            together.wait(60)
            with suppress(EngineError, JobError):
                anonymize(wanted, cursor)

        jobs = [cohort("a", 400), cohort("b", 399)]
        threads = [threading.Thread(target=release, args=(wanted, c.cursor())) for wanted in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        there = c.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE schema_name = 'release'").fetchall()
    assert there == [(1,)], trial


def test_a_run_that_failed_leaves_the_database_to_the_next(source: Path) -> None:
    before = contents(source)
    with duckdb.connect(str(source)) as c:
        with pytest.raises(JobError):
            anonymize(job(r=people(k=401)), c)
        anonymize(job(r=people()), c.cursor())
        c.execute("DROP SCHEMA release CASCADE")
    assert contents(source) == before


def test_a_table_of_the_markers_name_is_the_users() -> None:
    with filled() as c:
        c.execute("CREATE TABLE sqldeid_is_writing AS SELECT 1 AS mine")
        with pytest.raises(JobError, match=r"holds a table or view main\.sqldeid_is_writing.*; rename it"):
            anonymize(job(r=people()), c)
        assert c.execute("FROM sqldeid_is_writing").fetchall() == [(1,)]


# ---- one connection ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [{}, FILE])
def test_a_connection_serves_one_run(where: dict[str, str], tmp_path: Path) -> None:
    first, second = job(where, tmp_path, r=people()), job({"into": "other.duckdb"}, tmp_path, r=people())
    third = job({"into": "third.duckdb"}, tmp_path, r=people())
    with filled() as c:
        anonymize(third, c)

        def meanwhile() -> None:
            for run in (anonymize, plan, verify, assess):
                with pytest.raises(JobError, match=r"another run of sqldeid uses this connection.*cursor\(\)"):
                    run(second, c)
            if "into" in where:  # both would attach a file of one name
                with pytest.raises(EngineError, match="writes to a file from the same DuckDB"):
                    anonymize(second, c.cursor())
                with pytest.raises(EngineError, match="writes to a file from the same DuckDB"):
                    verify(third, c.cursor())
            else:
                anonymize(second, c.cursor())

        run_with(meanwhile, first, c)
        anonymize(first, c, options=REPLACE)
        assert verify(first, c)["r"].k >= 5


def test_a_connection_is_free_after_a_run_that_failed() -> None:
    with filled() as c:
        for _ in range(2):
            with pytest.raises(JobError, match="401"):
                anonymize(job(r=people(k=401)), c)
