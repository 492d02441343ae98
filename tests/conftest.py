"""What all tests share: the real data, a Postgres cluster, and honesty about what could not run.

A skipped test is listed at the end of the run with its reason. With ``CI=true`` nothing may be missing: there a skip is
a failure, unless its reason starts with ``not applicable``. A slow machine may run out of time with the deep tests, and
only with them: what is left out then is listed by file.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import hypothesis
import pytest

from sqldeid import attacked
from sqldeid.errors import EngineError
from sqldeid.tables.attacks import held_out
from sqldeid.tables.release import compare
from tests.support import postgres as postgres_server
from tests.support import spark as spark_server
from tests.support.cli import JOB
from tests.support.examples import DEEP, examples
from tests.support.places import ROOT
from tests.support.stages import watched

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import SparkSession

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")
NOT_APPLICABLE = "not applicable"
NO_TIME = "no time was left"
_GIVEN = os.environ.get("SQLDEID_DEEP_UNTIL")
UNTIL = float(_GIVEN) if DEEP and _GIVEN else None
"""When the last deep test may begin, in seconds since 1970: continuous integration ends in time on a slow machine."""
# No test is timed: on a busy machine an example takes long by itself.
hypothesis.settings.register_profile(
    "sqldeid",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("sqldeid")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs keep their state in a folder of the tests, not in the user's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _nobody_held_out() -> Iterator[None]:
    """Attacks with a control group make each release once more; tests of attacks ask for `control_groups`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(held_out, "LEAST_PERSONS", 1_000_000_000)
        yield


@pytest.fixture
def control_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Persons are held out of releases, as the program does it."""
    monkeypatch.setattr(held_out, "LEAST_PERSONS", 100)


@pytest.fixture(scope="session", autouse=True)
def _attacks_do_not_fail() -> Iterator[None]:
    """No attack is left out because it failed: what an engine says of our own statements is seen."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(attacked, "TOLERATED", ())
        yield


@pytest.fixture
def attacks_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack that fails is left out, as in the program."""
    monkeypatch.setattr(attacked, "TOLERATED", (EngineError, MemoryError))


@pytest.fixture(scope="session", autouse=True)
def _unhurried() -> Iterator[None]:
    """Reports compare all pairs of k and limit: on a busy machine five seconds would leave some of them out."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compare, "LEAST_SECONDS", 300.0)
        yield


@pytest.fixture
def stages() -> Iterator[None]:
    """No stage of a run renders a statement that it does not name, and `--plan` does not show."""
    with watched(kept=False):
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data sets: SQLDEID_TEST_DATA, else ``shared/data`` beside the checkout."""
    folder = Path(os.environ.get("SQLDEID_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("real data: no folder shared/data beside the checkout (or set SQLDEID_TEST_DATA)")
    return folder


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[str]:
    """Connection string of a throw-away cluster; one per session and worker."""
    programs = postgres_server.binaries()
    if programs is None:
        pytest.skip(postgres_server.MISSING)
    with postgres_server.cluster(programs) as address:
        yield address


@pytest.fixture
def postgres(postgres_cluster: str) -> Iterator[psycopg.Connection]:
    """A connection of its own (autocommit), in a fresh schema that is dropped afterwards."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(postgres_cluster, autocommit=True) as connection:
        schema = sql.Identifier(f"test_{next(postgres_server.NUMBERS)}")
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        connection.execute(sql.SQL("SET search_path TO {}").format(schema))
        yield connection
        connection.rollback()
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(schema))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A classic Spark session on one core, for all tests of the group ``spark``: a JVM takes ten seconds to start."""
    if reason := spark_server.missing():
        pytest.skip(reason)
    with spark_server.session(**spark_server.LASTING) as session:
        yield session


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a database of sixty people and a job of two releases."""
    with duckdb.connect(tmp_path / "db.duckdb") as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(15 + i % 60 AS INTEGER) AS age, "
            "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, 'person ' || i AS name, "
            "'illness ' || (i % 7) AS illness, 1000 * (i % 4) AS income FROM range(60) AS r(i)"
        )
    (tmp_path / "job.toml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs with the oldest DuckDB that we support, too, and what `make test` leaves to `make test-deep`."""
    twice = (ROOT / "tests" / "end_to_end", ROOT / "tests" / "templates")
    for item in items:
        if any(folder in item.path.parents for folder in twice) and not _once_is_enough(item):
            item.add_marker(pytest.mark.duckdb14)
        if _on_spark(item) and not item.get_closest_marker("always"):
            item.add_marker(pytest.mark.deep)  # seconds each, one after the other
    _leave_cases_to_deep(items)
    if UNTIL is not None:
        _shuffle_files(items)


def _shuffle_files(items: list[pytest.Item]) -> None:
    """Where time may run out, no file is the last one every time; examples, of minutes each, are last.

    All workers of a run have the same order.
    """
    files = sorted({item.path for item in items})
    random.Random(UNTIL).shuffle(files)
    place = {path: (ROOT / "tests" / "examples" in path.parents, i) for i, path in enumerate(files)}
    items.sort(key=lambda item: place[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begin no deep test when the time is over."""
    if UNTIL is not None and time.time() > UNTIL:
        pytest.skip(NO_TIME)


def _leave_cases_to_deep(items: list[pytest.Item]) -> None:
    """Of a test that is `sampled(n)`, n cases run in `make test`, spread evenly; all others are deep."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("deep"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        mark = cases[0].get_closest_marker("sampled")
        n = mark.args[0] if mark else len(cases)
        kept = {i * len(cases) // n for i in range(n)}
        for i, case in enumerate(cases):
            if i not in kept:
                case.add_marker(pytest.mark.deep)


ONCE = (
    *("test_bad_input", "test_certificate_criteria", "test_certificate_file", "test_init", "test_lint"),
    *("test_postgres_failures", "test_spark_failures", "test_events_foreign", "test_foreign_commands"),
    *("test_foreign_link", "test_foreign_linked", "test_foreign_local", "test_foreign_mondrian"),
    "test_foreign_parquet",
    "test_foreign_series",
)
"""What judges our own words, proofs and rules, or another engine: its SQL runs on every DuckDB in other files, and a
workbench beside an engine in test_foreign and test_series_benchmark."""


def _once_is_enough(item: pytest.Item) -> bool:
    """Whether another DuckDB makes no difference: on Spark and Postgres it has a small part only."""
    elsewhere = _on_spark(item) or bool(
        {"postgres", "postgres_cluster", "spark"} & set(getattr(item, "fixturenames", ()))
    )
    return elsewhere or item.path.stem in ONCE


def _on_spark(item: pytest.Item) -> bool:
    return any(mark.args == ("spark",) for mark in item.iter_markers("xdist_group"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    _no_gap_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    _no_gap_in_ci(report)
    return report


def _no_gap_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not IN_CI or not report.skipped or hasattr(report, "wasxfail"):
        return
    if not _reason(report).startswith((NOT_APPLICABLE, NO_TIME)):
        report.outcome = "failed"
        report.longrepr = f"With CI=true nothing may be missing, but this was skipped: {_reason(report)}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what could not run, last and loud, before pytest's own closing line."""
    skipped: dict[str, list[pytest.TestReport]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", []):
        skipped[_reason(report)].append(report)
    left_out = Counter(report.nodeid.partition("::")[0] for report in skipped.pop(NO_TIME, []))
    if left_out:
        terminalreporter.section(f"{left_out.total()} TESTS LEFT OUT: {NO_TIME}", sep="!", red=True, bold=True)
        for file, n in sorted(left_out.items()):
            terminalreporter.line(f"{n:5d} x {file}", yellow=True)
    missing = {reason: reports for reason, reports in skipped.items() if not reason.startswith(NOT_APPLICABLE)}
    if missing:
        terminalreporter.section("COULD NOT RUN HERE", sep="!", red=True, bold=True)
        for reason, reports in sorted(missing.items()):
            terminalreporter.line(f"{len(reports):5d} x {reason}", yellow=True)
