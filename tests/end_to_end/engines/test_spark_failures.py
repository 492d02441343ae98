"""What can go wrong with Spark, from the command line: one clear line, exit code 1, nothing published, no secret."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import sqlglot

from sqldeid import EngineError, JobError, VerificationError
from sqldeid.engine import mark, spark_session
from sqldeid.engine.opening import Settings
from sqldeid.engine.spark import SparkEngine
from sqldeid.publish import Destination, Note
from sqldeid.publish.spark_runs import STAGED
from sqldeid.run.foreign import open_engine, open_staging
from sqldeid.sql import column, render
from tests.support import spark as spark_server
from tests.support.cli import Ran
from tests.support.failing import anonymizing, before_statement, refusal, until
from tests.support.on_spark import Cluster, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqldeid.publish.spark import OnSpark

pytestmark = pytest.mark.xdist_group("spark")

JOB = """
[release]
schema = "%(schema)s"
as = "%(as_)s"
[tables.a]
source = %(source)s
person = "id"
columns.age = { role = "quasi-identifying", hierarchy = { bands = [10] } }
columns.name = { role = "insensitive" }
privacy = { k = 3, suppression_limit = 0.5 }
"""
AGES = [20, 20, 20, 20, 31, 31, 31, 45, 45, 45, 58, 58]
"""Classes of 4, 3, 3 and 2: at k = 3 ages are released as they stand, and the last two rows are suppressed."""


def people() -> pa.Table:
    rows = [(i, age, "canary7f3a" if i % 2 else "x") for i, age in enumerate(AGES)]
    ids, ages, names = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "age": pa.array(ages, pa.int32()), "name": list(names)})


@pytest.fixture(scope="module")
def cluster(spark: SparkSession) -> Iterator[Cluster]:
    load(spark, "folk", people())
    yield Cluster(spark)
    spark.sql("DROP TABLE folk")


def tables_in(cluster: Cluster, schema: str) -> set[str]:
    return {name for space, name in cluster.catalogue() if space == schema and name}


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.chdir(tmp_path)
    return partial(anonymizing(capsys, JOB), source='"folk"')


def judged(done: Ran, code: int = 1) -> str:
    """The message of a run that failed."""
    return str(refusal(done, code)["message"])


CHANGES = {
    "a person twice": "INSERT INTO {t} VALUES (0, 20, 'x')",
    "one more": "INSERT INTO {t} VALUES (99, 20, 'x')",
    "one of a small class less": "INSERT OVERWRITE {t} SELECT * FROM folk WHERE id <> 4",
    "another person in the place of one": "INSERT OVERWRITE {t} SELECT IF(id = 0, 99, id), age, name FROM folk",
    "another name": "INSERT OVERWRITE {t} SELECT id, age, 'new' FROM folk",
    "ages that nobody had": "INSERT OVERWRITE {t} SELECT id, IF(id < 3, 90 + id, age), name FROM folk",
}


@pytest.mark.parametrize(
    ("change", "at", "source"),
    [
        ("a person twice", "tables/write/stage_rows", "table"),
        ("one of a small class less", "tables/write/stage_rows", "table"),
        ("another person in the place of one", "tables/write/stage_rows", "table"),
        ("ages that nobody had", "tables/write/stage_rows", "table"),
        ("another name", "tables/verify/group_source", "table"),
        ("one more", "tables/write/stage_rows", "query"),
    ],
)
def test_a_source_that_changes_midway_is_not_released(
    change: str, at: str, source: str, cluster: Cluster, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.run("CREATE TABLE moving AS SELECT * FROM folk")
    before = cluster.catalogue()
    before_statement(monkeypatch, at, lambda: cluster.run(CHANGES[change].format(t="moving")))
    asked = '"moving"' if source == "table" else '{ query = "SELECT id, age, name FROM moving WHERE id >= 0" }'
    try:
        said = judged(command(cluster.url, source=asked), VerificationError.code)
        assert "where the source changed meanwhile, run again while nobody writes to it" in said
        assert cluster.catalogue() == before
    finally:
        cluster.run("DROP TABLE moving")


SAMPLED = """
[release]
schema = "%(schema)s"
as = "%(as_)s"
[tables.a]
source = %(source)s
person = "id"
columns.age = { role = "quasi-identifying", hierarchy = "age.csv", uncovered = "top" }
privacy = { k = 3 }
search = { method = "epsilon-safe", epsilon_safe = { beta = 0.5, epsilon = 2.0, delta = 0.49, seed = 1 } }
"""


def test_a_sample_is_not_released_of_a_source_that_changes(
    cluster: Cluster, command: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its re-check cannot tell: a class may have fewer rows than the source's."""
    Path("age.csv").write_text("".join(f"{age};{age // 10 * 10};*\n" for age in range(100)))
    command = anonymizing(capsys, SAMPLED)
    cluster.run("CREATE TABLE moving AS SELECT * FROM folk")
    change = CHANGES["another person in the place of one"].format(t="moving")
    before_statement(monkeypatch, "tables/verify/group_source", lambda: cluster.run(change))
    try:
        said = judged(command(cluster.url, source='"moving"'), VerificationError.code)
        assert "not of the rows that were folded" in said
    finally:
        cluster.run("DROP TABLE moving")


@pytest.mark.parametrize("key", ["id", "name"])
def test_sums_of_keys_tell_other_persons(key: str, engine: SparkEngine) -> None:
    """As Python sums the hashes; a key that is twice, or NULL, counts as it stands; the order of rows does not."""
    sources = [
        "SELECT * FROM folk",
        "SELECT IF(id = 0, 99, id) AS id, age, IF(id = 0, 'y', name) AS name FROM folk",
        "SELECT NULLIF(id, 0) AS id, age, NULLIF(name, 'x') AS name FROM folk ORDER BY id DESC",
    ]
    told = []
    for text in sources:
        asked = {"source": sqlglot.parse_one(text, read="spark").subquery(), "person": column(key, "s")}
        [first], [again] = engine.read("tables/rows/check_keys", **asked), engine.read("tables/rows/sum_keys", **asked)
        assert again == {name: first[name] for name in ("rows", "high", "low")}
        hashes = engine.session.sql(f"SELECT {key}, XXHASH64({key}) AS h FROM ({text})").toArrow().to_pylist()
        assert (again["high"], again["low"]) == (sum(h["h"] >> 34 for h in hashes), sum(h["h"] % 2**30 for h in hashes))
        keys = [h[key] for h in hashes if h[key] is not None]
        assert (first["rows"], first["keyed"], first["persons"]) == (len(AGES), len(keys), len(set(keys)))
        told.append((again["high"], again["low"]))
    assert len(set(told)) == len(sources)
    assert engine.read("tables/rows/sum_keys", **asked | {"person": None}) == [{"rows": len(AGES), "high": 0, "low": 0}]


def test_a_table_that_is_dropped(cluster: Cluster, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cluster.catalogue()
    cluster.run("CREATE TABLE going AS SELECT * FROM folk")
    before_statement(monkeypatch, "tables/write/stage_rows", lambda: cluster.run("DROP TABLE going"))
    said = judged(command(cluster.url, source='"going"'))
    assert "no longer there; somebody dropped or renamed it (" in said and "default.going)" in said
    assert cluster.catalogue() == before
    assert "there is no table or view going on Spark" in judged(command(cluster.url, source='"going"'), JobError.code)


def test_a_statement_that_is_cancelled(cluster: Cluster, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another session of the same server, while it runs."""
    before = cluster.catalogue()
    sleeps = "reflect('java.lang.Thread', 'sleep', CASE WHEN id = 7 THEN 600000L ELSE 0L END)"
    cluster.run(f"CREATE VIEW slow AS SELECT id, age, coalesce({sleeps}, name) AS name FROM folk")
    context = cluster.spark.sparkContext

    def cancel() -> None:
        until(lambda: context.statusTracker().getActiveJobsIds())
        context.cancelAllJobs()

    thread = threading.Thread(target=cancel)
    before_statement(monkeypatch, "run/sum_columns", thread.start)
    try:
        assert "cancelled on the server by somebody else: run again" in judged(command(cluster.url, source='"slow"'))
    finally:
        thread.join()
        cluster.run("DROP VIEW slow")
    assert cluster.catalogue() == before


@pytest.fixture
def engine(cluster: Cluster) -> Iterator[SparkEngine]:
    with ExitStack() as stack:
        found = open_engine(cluster.spark, Settings(), stack)
        found.begin(writing=True)
        assert isinstance(found, SparkEngine)
        cluster.run("CREATE SCHEMA shelf")
        yield found
    cluster.run("DROP SCHEMA shelf CASCADE")


def staged(engine: SparkEngine, *names: str, as_: Any = "view", schema: str = "shelf") -> OnSpark:
    """Releases that are staged, without a run around them."""
    from sqldeid.publish.spark import OnSpark

    found = open_staging(engine, Destination(as_, schema, None), names, replace=True)
    assert isinstance(found, OnSpark)
    for name in names:
        write(found, name)
    return found


def write(staging: Any, name: str) -> None:
    """A release of one row."""
    rows = render("engine/read_place", "spark")
    staging.write(lambda target: f"CREATE TABLE {target.sql('spark')} AS\n{rows}", Note(name, {}, {"schema": "n"}))


@pytest.mark.parametrize("as_", ["table", "view"])
def test_of_two_runs_at_once_one_is_published(as_: Any, cluster: Cluster, engine: SparkEngine, command: Any) -> None:
    """One that begins while another has staged does not begin; of two that began together at most one is published.

    Whatever their releases are called, for each is held to those that are there; in a schema that is made then, too.
    """
    place = Destination(as_, "fresh", None)
    busy = r"release\.schema: another run of sqldeid is publishing into the schema fresh, .*: it staged fresh\."
    with ExitStack() as stack:
        other = open_engine(cluster.spark, Settings(), stack)
        other.begin(writing=True)
        late, beside = (open_staging(other, place, [name], replace=True) for name in "ab")
        first = staged(engine, "a", as_=as_, schema="fresh")
        said = judged(command(cluster.url, "--replace", as_=as_, schema="fresh"))
        assert f"tables.a: another run is writing it: it staged fresh.a__{engine.run_id} " in said
        with pytest.raises(EngineError, match=f"{busy}a__{engine.run_id}"):
            open_staging(other, place, ["c"], replace=True)
        write(beside, "b")
        with pytest.raises(EngineError, match=f"{busy}b__{other.run_id}"):
            first.publish()
        cluster.run(f"DROP TABLE fresh.b__{other.run_id}")  # as the other run does that is stopped
        assert first.publish() == ("fresh.a",)
        for staging, name in ((late, "a"), (beside, "b")):
            write(staging, name)
        with pytest.raises(
            EngineError, match=r"tables\.a: fresh\.a was published, replaced or dropped by somebody else"
        ):
            late.publish()
        with pytest.raises(EngineError, match=r"another run of sqldeid published fresh\.a\S* meanwhile"):
            beside.publish()
    assert tables_in(cluster, "fresh") == ({"a"} if as_ == "table" else {"a", f"a__{engine.run_id}"})
    assert cluster.there("fresh.a")
    cluster.run("DROP SCHEMA fresh CASCADE")


def left(cluster: Cluster, run_: str, hours: float) -> str:
    """A table that another run staged so long ago, and did not publish."""
    at = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    note = json.dumps({"sqldeid": {"release": "r", STAGED: {"run": run_, "at": at}}})
    cluster.run(f"CREATE TABLE shelf.r__{run_} COMMENT '{note}' AS SELECT 1 AS a")
    return f"r__{run_}"


def test_what_dead_runs_staged_goes_and_what_others_may_still_publish_stays(
    cluster: Cluster, engine: SparkEngine
) -> None:
    here, elsewhere, old = left(cluster, "0000aaaa", 0.1), left(cluster, "0000bbbb", 0.1), left(cluster, "0000cccc", 25)
    dead = mark._path("0000aaaa")
    dead.touch(0o600)  # as a run of this machine leaves it that was killed
    with pytest.raises(
        EngineError, match=rf"staged shelf\.{elsewhere} 6 minutes ago; .* DROP TABLE shelf\.{elsewhere}"
    ):
        staged(engine, "r")
    assert tables_in(cluster, "shelf") == {here, elsewhere, old}
    cluster.run(f"DROP TABLE shelf.{elsewhere}")
    staged(engine, "r").publish()
    assert tables_in(cluster, "shelf") == {"r", f"r__{engine.run_id}"} and not dead.exists()
    alive = mark.Mark("0000dddd")
    assert not mark.is_dead("0000dddd") and not mark.is_dead("0000eeee")
    alive.close()
    assert not mark._path("0000dddd").exists()


def test_a_published_table_says_nothing_of_its_run(cluster: Cluster, engine: SparkEngine) -> None:
    for as_, run_ in (("view", "0000aaaa"), ("table", "0000bbbb")):
        engine.run_id = run_
        staged(engine, "r", as_=as_).publish()
        engine.refresh()
        noted = [r.comment for r in engine.relations() if r.parts[0] == "shelf"]
        assert noted and not [comment for comment in noted if STAGED in comment]
        assert tables_in(cluster, "shelf") == ({"r", "r__0000aaaa"} if as_ == "view" else {"r"})


def test_a_step_that_cannot_be_taken_back_is_told(cluster: Cluster, engine: SparkEngine) -> None:
    """The second release cannot appear, and what the first one replaced is gone by then."""
    staged(engine, "Aa", "b").publish()
    first = engine.run_id
    engine.run_id = "0000ffff"
    again = staged(engine, "Aa", "b")
    with pytest.MonkeyPatch.context() as patched:
        flips = [again.staged[1]]

        def lost() -> None:
            cluster.run("DROP TABLE shelf.b__0000ffff", f"DROP TABLE shelf.Aa__{first}")

        from sqldeid.publish.spark import OnSpark

        flip = OnSpark._flip

        def flipped(self: OnSpark, made: Any, back: Any) -> None:
            if made in flips:
                lost()
            flip(self, made, back)

        patched.setattr(OnSpark, "_flip", flipped)
        with pytest.raises(EngineError) as error:
            again.publish()
    assert "publishing failed (a table or view is no longer there; somebody dropped or renamed it" in str(error.value)
    assert "1 of its steps could not be taken back: look at the schema shelf" in str(error.value)
    assert cluster.there("shelf.Aa") and cluster.there("shelf.b"), "every view can still be read"


def test_another_runs_view_is_not_taken_back(cluster: Cluster, engine: SparkEngine) -> None:
    """A step is taken back only where the view still reads what this run put there."""
    staged(engine, "a", "b").publish()
    engine.run_id = "0000ffff"
    again = staged(engine, "a", "b")
    cluster.run("CREATE TABLE shelf.a__00000000 AS SELECT 1 AS a")

    def other() -> None:
        cluster.run("CREATE OR REPLACE VIEW shelf.a AS SELECT * FROM shelf.a__00000000")
        cluster.run("DROP TABLE shelf.b__0000ffff")

    from sqldeid.publish.spark import OnSpark

    flip = OnSpark._flip
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OnSpark, "_flip", lambda s, m, b: (other() if m is s.staged[1] else None, flip(s, m, b)))
        with pytest.raises(EngineError, match="no longer there"):
            again.publish()
    assert cluster.there("shelf.a") == [(1,)]


@pytest.fixture(scope="module")
def killed() -> Iterator[spark_server.Server]:
    """A server whose processes are killed here: its executor, and itself by the last test of this module."""
    if reason := spark_server.missing():
        pytest.skip(reason)
    from pyspark.sql.connect.session import SparkSession as Connected

    with spark_server.server() as server:
        until(server.answers)
        session = Connected(server.url)
        load(session, "folk", people())
        made = f"reflect('java.io.File', 'createTempFile', 'slow-{server.port}-', 'x')"
        slept = "reflect('java.lang.Thread', 'sleep', 600000L)"
        session.sql(
            f"CREATE VIEW slow AS SELECT id, age, CASE WHEN id = 7 THEN concat({made}, {slept}) ELSE name END AS name "
            "FROM folk"
        )
        session.stop()
        yield server


def when_it_works(server: spark_server.Server, action: Callable[[], object]) -> threading.Thread:
    """Do something once the slow view's task runs: it leaves a file."""

    def wait() -> None:
        until(lambda: list(Path("/tmp").glob(f"slow-{server.port}-*")))
        action()
        for left in Path("/tmp").glob(f"slow-{server.port}-*"):
            left.unlink()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_an_executor_that_is_lost_is_replaced(
    killed: spark_server.Server, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it kept of temporary tables is made again."""
    lost: list[int] = []

    def kill() -> None:
        lost.extend(killed.executors)
        kill_all(killed)

    before_statement(monkeypatch, "tables/write/stage_rows", kill)
    done = command(killed.url)
    assert done.code == 0 and lost and killed.executors != lost, done.err
    assert done.json["releases"]["a"]["released"] == 10


def test_an_executor_that_is_lost_with_its_task(killed: spark_server.Server, command: Any) -> None:
    before = catalogue_of(killed)
    thread = when_it_works(killed, lambda: kill_all(killed))
    said = judged(command(killed.url, source='"slow"', schema="lost"))
    thread.join()
    assert "Spark lost its executors, more often than it tries again" in said
    assert catalogue_of(killed) == before


def test_a_server_that_goes_away(killed: spark_server.Server, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "_TRIES", 3)  # ten take half a minute
    thread = when_it_works(killed, killed.process.kill)
    said = judged(command(killed.url, source='"slow"', schema="gone"))
    thread.join()
    assert said == "the Spark server went away, or ended the session, while the job ran: run again when it is back"
    assert "no Spark Connect server answers" in judged(command(killed.url))


def kill_all(server: spark_server.Server) -> None:
    """Kill the executors that are there now."""
    for executor in server.executors:
        os.kill(executor, signal.SIGKILL)


def catalogue_of(server: spark_server.Server) -> set[str]:
    """The schemas and tables that lie in the server's folder."""
    return {str(path.relative_to(server.folder)) for path in (server.folder / "warehouse").glob("*/*")}
