"""Parquet that a cluster wrote is replaced: the old release or the new, whatever fails; and two runs are kept apart."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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
from tests.engines.foreign import bag
from tests.engines.on_spark import Both
from tests.engines.sources import job, qi, release
from tests.engines.test_spark import both
from tests.engines.test_spark_keyed import HOSTILE, rows

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
        anonymize(asked(folder, 60), both.url, options=Options(replace=True))
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
def staged(database: Any, folder: Path, value: int, *, replace: bool = True) -> Iterator[InFolder]:
    """Two releases of three rows that hold a value, as their notes do, without a run around them."""
    with ExitStack() as stack:
        engine = open_engine(database, Settings(), stack)
        engine.begin(writing=True)
        place = Destination("parquet", "shelf", folder, place=f"{folder}/")
        found: Any = open_staging(engine, place, ["a", "b"], replace=replace)
        for name in ("a", "b"):
            found.write(
                lambda target: f"CREATE TABLE {target.sql('spark')} AS\n{made(value)}", Note(name, {"value": value}, {})
            )
        yield found


def made(value: int) -> str:
    return f"SELECT id, {value} AS value FROM RANGE(3)"


def there(folder: Path) -> list[list[Any]]:
    """The values of both releases, each row's."""
    return [[value for _, value in rows(folder, name)] for name in "ab"]


def killed(found: InFolder, patched: pytest.MonkeyPatch) -> None:
    """Have the run end where it fails: nothing is taken back, nor closed, and its mark is nobody's."""
    from sqldeid.publish.spark_folder import InFolder

    def dies(self: InFolder, failed: BaseException) -> None:
        self.engine.gone = True
        found.tables.mark._file.close()  # type: ignore[attr-defined]

    patched.setattr(InFolder, "_take_back", dies)


def stopping(patched: pytest.MonkeyPatch, step: str, *, done: bool, first: Callable[[Folder], None]) -> None:
    """Have a step fail for the second release, before it, or after it was done."""
    from sqldeid.publish.spark_replaced import Folder

    method = getattr(Folder, step)

    def stops(self: Folder, *given: Any) -> None:
        if self.name != "b" or done:
            method(self, *given)
        if self.name == "b":
            first(self)
            raise Stopped("no room")

    patched.setattr(Folder, step, stops)


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


def test_the_old_release_is_put_back_where_a_step_fails(both: Both, tmp_path: Path) -> None:
    """The first release was replaced by then, but for the first step; or the run is killed there."""
    with staged(both.spark, tmp_path, 0, replace=False) as first:
        first.publish()
    before = both.catalogue()
    for value, (step, done, other) in enumerate(STEPS, 1):
        with staged(both.spark, tmp_path, value) as found, pytest.MonkeyPatch.context() as patched:
            stopping(patched, step, done=done, first=other)
            with pytest.raises(Stopped, match=r"^no room$"):
                found.publish()
        assert there(tmp_path) == [[0] * 3] * 2 and both.catalogue() == before and not hidden(tmp_path), step


@pytest.mark.parametrize("session", ["classic", "connect"])
def test_what_a_killed_run_left_is_put_back_and_swept(session: str, both: Both, tmp_path: Path) -> None:
    """By the next run into the folder, even if that replaces nothing: each release is the old one or the new one."""
    database = both.url if session == "connect" else both.spark.newSession()  # whose views are not looked at here
    with staged(database, tmp_path, 0, replace=False) as first:
        first.publish()
    before = both.catalogue()
    for value, (step, done, other) in enumerate(STEPS[1:] if session == "classic" else STEPS[:1], 1):
        with pytest.MonkeyPatch.context() as patched, suppress(Stopped), staged(database, tmp_path, value) as found:
            run = found.engine.run_id
            killed(found, patched)
            stopping(patched, step, done=done, first=other)
            found.publish()
        assert {f"{name}__{run}" for name in "ab"} <= {table for _, table in both.catalogue() - before}
        if other is half:
            with pytest.raises(VerificationError, match=r"killed was replacing it, and the next run .* puts it back"):
                look(database, tmp_path)
        with pytest.raises(JobError, match="exists already"), staged(database, tmp_path, 99, replace=False):
            pass
        assert there(tmp_path) == [[0 if step == "keep" else value] * 3, [value if step == "sign" else 0] * 3]
        with staged(database, tmp_path, 0) as again:
            again.publish()
        assert there(tmp_path) == [[0] * 3] * 2 and both.catalogue() == before and not hidden(tmp_path)


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
    with staged(both.spark, tmp_path, 1) as first:
        for database in (both.spark, both.url):
            with (
                pytest.raises(
                    EngineError,
                    match=rf"another run is writing into .*: it began 0 minutes ago; .*{first.engine.run_id} ",
                ),
                staged(database, tmp_path, 2),
            ):
                pass
        assert first.publish() and there(tmp_path) == [[1] * 3] * 2
    assert both.catalogue() == before and not hidden(tmp_path)
    with (
        pytest.MonkeyPatch.context() as patched,
        suppress(Stopped),
        staged(both.spark.newSession(), tmp_path, 2) as dead,
    ):
        killed(dead, patched)
        stopping(patched, "keep", done=False, first=nothing)
        dead.publish()
    run = dead.engine.run_id
    mark._path(run).unlink()
    with (
        pytest.raises(EngineError, match=f"if it was killed, remove .*/_sqldeid/{run} "),
        staged(both.spark, tmp_path, 3),
    ):
        pass
    shutil.rmtree(tmp_path / "_sqldeid" / run)
    mark._path(run).touch(0o600)
    with staged(both.spark, tmp_path, 3) as last:
        last.publish()
    assert there(tmp_path) == [[3] * 3] * 2 and both.catalogue() == before and not hidden(tmp_path)
