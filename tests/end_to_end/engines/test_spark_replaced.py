"""Parquet that a cluster wrote is replaced: the old release or the new, whatever fails; and two runs are kept apart."""

from __future__ import annotations

import os
import platform
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from sqldeid import EngineError, JobError, Options, VerificationError, anonymize, verify
from sqldeid.engine import mark
from sqldeid.engine.opening import Settings
from sqldeid.job import Job
from sqldeid.publish import Destination, Note
from sqldeid.run.foreign import open_engine, open_staging
from sqldeid.sql import Fixed, literal, render
from tests.support.foreign import bag
from tests.support.on_spark import Both
from tests.support.sources import job, qi, release
from tests.support.spark_rows import HOSTILE, rows
from tests.support.spark_tables import both

if TYPE_CHECKING:
    from sqldeid.publish.spark_folder import InFolder
    from sqldeid.publish.spark_replaced import Folder

__all__ = ["both"]

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module", autouse=True)
def _shelf(both: Both) -> Iterator[None]:
    """A schema for the tables of runs: one that a killed run made stays."""
    both.spark.sql("CREATE SCHEMA shelf")
    yield
    both.spark.sql("DROP SCHEMA shelf")


def asked(folder: Path, k: int) -> Job:
    columns = {"select": qi({"bands": [5, 10]})}
    wanted = release(columns, source="people", k=k, limit=0.5)
    return job({"as": "parquet", "into": str(folder), "schema": "shelf"}, a=wanted)


def hidden(folder: Path) -> list[str]:
    """What is left of ours in the folder beside the releases."""
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in found if path.parts[0] == "_sqldeid"]


def test_readers_find_the_old_release_or_the_new(both: Both, tmp_path: Path) -> None:
    """While it is replaced, too: never rows of both, nor some of one."""
    folder, before, done, met = tmp_path / HOSTILE, both.catalogue(), threading.Event(), set[str]()
    anonymize(asked(folder, 2), both.url)
    old = rows(folder, "a")
    (folder / "mine.txt").write_text("mine")

    def read() -> None:
        while not done.is_set():
            with suppress(duckdb.Error):  # it is not there, or no longer
                met.add(repr(bag(rows(folder, "a"))))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        anonymize(asked(folder, 60), both.url, options=Options(replace=True, without_ledger=True))
    finally:
        done.set()
        reader.join()
    new = rows(folder, "a")
    assert bag(new) != bag(old) and repr(bag(old)) in met <= {repr(bag(old)), repr(bag(new))}
    assert verify(asked(folder, 60), both.url)["a"].k >= 60
    assert both.catalogue() == before and not hidden(folder)
    assert {path.name for path in folder.iterdir()} == {"_sqldeid", "a.parquet", "mine.txt"}
    with pytest.raises(JobError, match="not empty; allow releases there to be replaced with --replace"):
        anonymize(asked(folder, 60), both.spark)


class Stopped(EngineError):
    """A step fails, or the run is killed there."""


@contextmanager
def staged(database: Any, folder: Path, value: int, names: str = "ab", *, replace: bool = True) -> Iterator[InFolder]:
    """Releases of three rows that hold a value, as their notes do, without a run around them."""
    with ExitStack() as stack:
        engine = open_engine(database, Settings(), stack)
        engine.begin(writing=True)
        place = Destination("parquet", "shelf", folder, place=f"{folder}/")
        found: Any = open_staging(engine, place, list(names), replace=replace)
        for name in names:
            found.write(
                lambda target: f"CREATE TABLE {target.sql('spark')} AS\n{made(value)}", Note(name, {"value": value}, {})
            )
        yield found


def made(value: int) -> str:
    return f"SELECT id, {value} AS value FROM RANGE(3)"


def there(folder: Path) -> list[int]:
    """The values of both releases, whose three rows hold the same."""
    found = [{value for _, value in rows(folder, name)} for name in "ab"]
    assert [len(rows(folder, name)) for name in "ab"] == [3, 3]
    return [value for values in found for value in values]


@pytest.fixture(scope="module")
def standing(both: Both, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases in a folder, to be copied."""
    folder = tmp_path_factory.mktemp("standing")
    with staged(both.spark, folder, 0, replace=False) as found:
        found.publish()
    return folder


def die(found: InFolder) -> None:
    """Have nothing of a run undone any more, and its mark be nobody's."""
    found.engine.gone = True
    found.tables.mark._lock.release(force=True)


def killed(patched: pytest.MonkeyPatch) -> None:
    """Have the run end where it fails: nothing is taken back."""
    from sqldeid.publish.spark_folder import InFolder

    patched.setattr(InFolder, "_take_back", lambda self, failed: die(self))


def stopping(patched: pytest.MonkeyPatch, step: str, *, done: bool, first: Callable[[Folder], None]) -> None:
    """Have a step fail for the second release, before it, or after it was done."""
    from sqldeid.publish.spark_replaced import Folder

    method = getattr(Folder, step)

    def stopped(self: Folder, *given: Any) -> None:
        stops = self.name == "b" and (step != "sign" or len(given) < 2)  # not its copy, which is signed by its path
        if not stops or done:
            method(self, *given)
        if stops:
            first(self)
            raise Stopped("no room")

    patched.setattr(Folder, step, stopped)


def nothing(folder: Folder) -> None:
    """What is done before a step fails."""


def half(folder: Folder) -> None:
    """The server dies once it has removed the old folder and moved some of a file."""
    path = Path(folder.path)
    shutil.rmtree(path)
    path.mkdir()
    folder.engine.execute(
        render("publish/write_folder", "spark", path=literal(str(path)), rows=Fixed("RANGE(1)", "spark"))
    )


STEPS = [("keep", False, nothing), ("replace", True, half), ("sign", True, nothing)]


def test_the_old_release_is_put_back_where_a_step_fails(both: Both, standing: Path, tmp_path: Path) -> None:
    """The first release was replaced by then, but for the first step."""
    folder, before = Path(shutil.copytree(standing, tmp_path / "out")), both.catalogue()
    for value, (step, done, other) in enumerate(STEPS, 1):
        with staged(both.spark, folder, value) as found, pytest.MonkeyPatch.context() as patched:
            stopping(patched, step, done=done, first=other)
            with pytest.raises(Stopped, match=r"^no room$"):
                found.publish()
        assert there(folder) == [0, 0] and both.catalogue() == before and not hidden(folder), step


def test_what_a_killed_run_left_is_put_back_and_swept(both: Both, standing: Path, tmp_path: Path) -> None:
    """By the next run into the folder, even if that replaces nothing: each release is the old one or the new one."""
    before, runs = both.catalogue(), set()
    sessions = both.url, both.spark.newSession(), both.spark.newSession()  # whose views are not looked at here
    for value, ((step, done, other), session) in enumerate(zip(STEPS, sessions, strict=True), 1):
        folder = Path(shutil.copytree(standing, tmp_path / str(value)))
        with pytest.MonkeyPatch.context() as patched, suppress(Stopped), staged(session, folder, value) as found:
            runs.add(found.engine.run_id)
            killed(patched)
            stopping(patched, step, done=done, first=other)
            found.publish()
        if other is half:
            with pytest.raises(VerificationError, match=r"killed was replacing it, and the next run .* puts it back"):
                look(session, folder)
        with pytest.raises(JobError, match="exists already"), staged(session, folder, 99, replace=False):
            pass
        assert there(folder) == [0 if step == "keep" else value, value if step == "sign" else 0]
        assert not hidden(folder)
    assert {f"{name}__{run}" for name in "ab" for run in runs} <= {table for _, table in both.catalogue() - before}
    with staged(both.spark, folder, 4) as again:
        again.publish()
    assert there(folder) == [4, 4] and both.catalogue() == before and not hidden(folder)


def look(database: Any, folder: Path) -> None:
    """Open the second release to be read."""
    from sqldeid.publish import published

    with ExitStack() as stack:
        engine = open_engine(database, Settings(), stack)
        engine.begin()
        published(engine, Destination("parquet", "shelf", folder, place=str(folder)), "b")


def test_of_two_runs_into_one_folder_the_second_does_not_begin(both: Both, tmp_path: Path) -> None:
    """Nor one after a run of another machine that was killed, until its claim is removed, or a day is over."""
    before = both.catalogue()
    with staged(both.spark, tmp_path, 1, "a") as first:
        for database in (both.spark, both.url):
            with (
                pytest.raises(
                    EngineError,
                    match=rf"another run is writing into .*: it began 0 minutes ago "
                    rf"\(process {os.getpid()} on {re.escape(platform.node())}\); .*{first.engine.run_id} ",
                ),
                staged(database, tmp_path, 2, "a"),
            ):
                pass
        assert first.publish()
    assert both.catalogue() == before and not hidden(tmp_path)
    with staged(both.spark.newSession(), tmp_path, 2, "a") as dead:
        run = dead.engine.run_id
        die(dead)
    mark._path(run).unlink()
    with (
        pytest.raises(EngineError, match=f"if it was killed, remove .*/_sqldeid/{run} "),
        staged(both.spark, tmp_path, 3),
    ):
        pass
    shutil.rmtree(tmp_path / "_sqldeid" / run)
    mark._path(run).touch(0o600)
    earlier = tmp_path / "_sqldeid" / "0123abcd" / "claim"  # by a version that did not say where it ran
    said = f"SELECT '0123abcd' AS run, '{datetime.now(UTC)}' AS at"
    both.run(f"INSERT OVERWRITE DIRECTORY '{earlier}' USING parquet {said}")
    with pytest.raises(EngineError, match="it began 0 minutes ago; "), staged(both.spark, tmp_path, 3):
        pass
    shutil.rmtree(earlier.parent)
    with staged(both.spark, tmp_path, 3) as last:
        last.publish()
    assert there(tmp_path) == [3, 3] and both.catalogue() == before and not hidden(tmp_path)
