"""What attacks on a release cost beside the release itself, and how their statements are carried out.

python benchmarks/run.py --only attacks-adult --only attacks-1m           CPU of the whole process, with and without
python benchmarks/run.py --only attacks-postgres --only attacks-spark     the same with a server, and its CPU
python benchmarks/run.py --only attacks-memory                            the most memory, by limit
python benchmarks/run.py --only attacks-plans --only attacks-composition  each statement on a million rows, by its plan
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import sqldeid
from benchmarks.clusters import server
from benchmarks.must import MUST, Tables, at_most, line
from benchmarks.process import Row, finished
from benchmarks.servers import loaded
from benchmarks.sources import Bench, Task
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.run import orchestrator
from sqldeid.tables.attacks import run as attacks_run

LIMITS = (0.0, 0.05, 0.2)
ASKED: dict[str, Mapping[str, object]] = {
    "k alone": {},
    "l = 3": {"l_diversity": {"column": "occupation", "l": 3}},
    "t = 0.3": {"t_closeness": {"column": "occupation", "t": 0.3}},
}
STATEMENTS = "Statements of the attacks, a million rows"
FEW = 1_000
"""Rows that others may be compared with one by one: layers of a release, random guesses, a single row."""

SLOW_JOINS = ("NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT", "IE_JOIN", "PIECEWISE_MERGE_JOIN")
"""Operators of DuckDB that compare rows pair by pair."""


def adult(bench: Bench) -> Tables:
    """Adult as it is: by k, l and t, at three limits, and by local recoding."""
    tasks = [
        (f"Adult, {name}, {limit:.0%}", Task("adult", limit=limit, sensitive="occupation", criteria=criteria))
        for name, criteria in ASKED.items()
        for limit in LIMITS
    ]
    tasks.append(("Adult, local recoding", Task("adult", sensitive="occupation", method="local")))
    return _compared(tasks, lambda task: _whole(task, bench))


def million(bench: Bench) -> Tables:
    """A million rows."""
    tasks = [
        (f"Adult ×33, {name}, 5 %", Task("adult", millions=1, sensitive="occupation", criteria=criteria))
        for name, criteria in ASKED.items()
    ]
    tasks.append(("Adult ×33, local recoding", Task("adult", millions=1, sensitive="occupation", method="local")))
    return _compared(tasks, lambda task: _whole(task, bench))


def memory(bench: Bench) -> Tables:
    """A million rows with little memory: what of the attacks still ends, and the most that the process holds."""
    rows: list[Row] = []
    for limit in ("1GB", "500MB", "300MB"):
        for name, task in {
            "l = 3": Task("adult", millions=1, sensitive="occupation", criteria=ASKED["l = 3"], memory_limit=limit),
            "local": Task("adult", millions=1, sensitive="occupation", method="local", memory_limit=limit),
        }.items():
            for attacks in (False, True):
                rows.append({"limit": limit, "asked": name, **_limited(replace(task, attacks=attacks), bench)})
    return {"Memory of attacks, a million rows": rows}


def _limited(task: Task, bench: Bench) -> Row:
    result, figures, _, _ = finished(task, bench, bench.database(task.data, task.millions))
    made: Mapping[str, Any] = result["releases"][task.data].get("attacks") or {}
    left = [one["attack"] for one in made.get("left_out", ())]
    return {
        "attacks": ", ".join(sorted(made.keys() - {"left_out"})) or "none asked",
        "left out": ", ".join(left) or "-",
        "peak_mb": round(figures["peak"] / 1e6),
        "cpu_s": figures["cpu"],
    }


def postgres(bench: Bench) -> Tables:
    """A million rows in a server: CPU of the program and of the server."""
    task = Task("adult", millions=1, sensitive="occupation", criteria=ASKED["l = 3"])
    return _compared([("Adult ×33 in Postgres, l = 3, 5 %", task)], lambda task: _in_server(task, bench))


def _in_server(task: Task, bench: Bench) -> Row:
    """A run on a server of its own: CPU of the program and of the server."""
    with loaded(bench, task.millions) as (address, used):
        before = used()
        row = _whole(task, bench, address)
        return {**row, "cpu_s": row["cpu_s"] + used() - before}


def spark(bench: Bench) -> Tables:
    """Adult as it is on Spark: CPU of the program and of the JVM."""
    tasks = [
        (f"Adult on Spark, {name}, 5 %", Task("adult", sensitive="occupation", criteria=criteria))
        for name, criteria in ASKED.items()
    ]
    tasks.append(("Adult on Spark, local recoding", Task("adult", sensitive="occupation", method="local")))
    return _on_spark(tasks, bench)


def spark_million(bench: Bench) -> Tables:
    """A million rows on Spark."""
    task = Task("adult", millions=1, sensitive="occupation", criteria=ASKED["l = 3"])
    return _on_spark([("Adult ×33 on Spark, l = 3, 5 %", task)], bench)


def _on_spark(tasks: list[tuple[str, Task]], bench: Bench) -> Tables:
    """Runs in one JVM, which the first of them has warmed before they are measured."""
    first = tasks[0][1]
    with server(bench, bench.database(first.data, first.millions), first.data) as there:

        def measured(task: Task) -> Row:
            before = there.cpu_s()
            row = _whole(task, bench, there.url)
            for (name,) in there.session.sql("SHOW DATABASES").collect():
                if name != "default":
                    there.session.sql(f"DROP DATABASE `{name}` CASCADE")
            return {**row, "cpu_s": row["cpu_s"] + there.cpu_s() - before}

        measured(replace(first, attacks=True))
        return _compared(tasks, measured)


def _whole(task: Task, bench: Bench, database: str = "") -> Row:
    """What a whole process takes."""
    _, figures, _, _ = finished(task, bench, database or bench.database(task.data, task.millions))
    peak = round(figures["peak"] / 1e6)
    return {"cpu_s": figures["cpu"], "process_s": figures["seconds"], "peak_mb": peak, "attacks": task.attacks}


def _compared(tasks: list[tuple[str, Task]], run: Callable[[Task], Row]) -> Tables:
    """Each task without attacks and with them."""
    lines, rows = [], []
    for case, task in tasks:
        plain, attacked = run(task), run(replace(task, attacks=True))
        ratio = at_most(attacked["cpu_s"] / plain["cpu_s"] - 1, 1, "× CPU of the release, for its attacks")
        lines.append(line(case, [ratio], attacked))
        rows += [{"case": case, **plain}, {"case": case, **attacked}]
    return {MUST: lines, "Runs with attacks and without": rows}


@dataclass(slots=True)
class Watch:
    """The statements of a run, by what they are for and by their template: how often, CPU seconds, slow joins."""

    phase: str = "release"
    asked: str = ""
    found: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: {"release": 0.0})

    def rows(self) -> Iterator[Row]:
        """The statements of attacks, the longest first, beside the whole release without them."""
        whole = self.seconds["release"]
        for (phase, name), (runs, cpu, joins) in sorted(self.found.items(), key=lambda of: -of[1][1]):
            if phase != "release":
                ratio = round(cpu / whole, 3)
                slow = ", ".join(sorted(joins)) or "none"
                yield {"for": phase, "statement": name, "runs": runs, "cpu_s": cpu, "of release": ratio, "pairs": slow}


@contextmanager
def watching() -> Iterator[Watch]:
    """Have DuckDB's statements told; those of attacks are planned once more to see how they are carried out."""
    watch = Watch()
    with ExitStack() as stack:
        for name in ("run", "make", "ask", "rows", "row"):
            stack.enter_context(patch.object(DuckDBEngine, name, _named(getattr(DuckDBEngine, name), watch)))
        for name in ("execute", "query"):
            stack.enter_context(patch.object(DuckDBEngine, name, _timed(getattr(DuckDBEngine, name), watch)))
        for module, name, phase in ((attacks_run, "attack", "attacks"), (orchestrator, "compose", "composition")):
            stack.enter_context(patch.object(module, name, _within(getattr(module, name), watch, phase)))
        started = time.process_time()
        yield watch
        watch.seconds["release"] += time.process_time() - started


def _named(work: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def told(engine: DuckDBEngine, template: str, /, *arguments: Any, **named: Any) -> Any:
        watch.asked = template
        return work(engine, template, *arguments, **named)

    return told


def _timed(work: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def told(engine: DuckDBEngine, sql: str) -> Any:
        of = watch.found.setdefault((watch.phase, watch.asked), [0, 0.0, set()])
        if watch.phase != "release" and sql.lstrip().upper().startswith(
            ("SELECT", "WITH", "CREATE", "FROM", "/*", "--")
        ):
            of[2] |= slow_joins(engine, sql)
        started = time.process_time()
        try:
            return work(engine, sql)
        finally:
            of[0] += 1
            of[1] += time.process_time() - started

    return told


def _within(work: Callable[..., Any], watch: Watch, phase: str) -> Callable[..., Any]:
    def told(*arguments: Any, **named: Any) -> Any:
        watch.phase, started = phase, time.process_time()
        try:
            return work(*arguments, **named)
        finally:
            watch.phase, took = "release", time.process_time() - started
            watch.seconds[phase] = watch.seconds.get(phase, 0.0) + took
            watch.seconds["release"] -= took

    return told


def slow_joins(engine: DuckDBEngine, sql: str) -> set[str]:
    """The operators of a statement's plan that compare rows pair by pair, but with few."""
    found: set[str] = set()

    def walk(node: Mapping[str, Any]) -> None:
        children = node.get("children", [])
        least = min((_estimated(child) for child in children), default=0)
        if node.get("name") in SLOW_JOINS and least > FEW:
            found.add(str(node["name"]))
        for child in children:
            walk(child)

    for row in engine.connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall():
        for node in json.loads(row[1]):
            walk(node)
    return found


def _estimated(node: Mapping[str, Any]) -> int:
    """The rows that DuckDB expects of an operator; many, where it does not say."""
    text = str(node.get("extra_info", {}).get("Estimated Cardinality", "")).lstrip("~").replace(",", "")
    return int(text) if text.isdigit() else FEW + 1


def plans(bench: Bench) -> Tables:
    """Every attack on a node and on local classes of a million rows, statement by statement."""
    tables: Tables = {}
    for name, task in {
        "one node, l = 3": Task("adult", millions=1, sensitive="occupation", criteria=ASKED["l = 3"], attacks=True),
        "local": Task("adult", millions=1, sensitive="occupation", method="local", attacks=True),
    }.items():
        _add(tables, name, _watched(task.job(bench), bench), ("attacks",))
    return tables


def composition(bench: Bench) -> Tables:
    """Two tables of the same million persons, each with half of the columns and the sensitive one."""
    whole = Task("adult", millions=1, limit=0.0, sensitive="occupation", attacks=True).job(bench)
    part: Any = whole["tables"]
    columns = part["adult"]["columns"]
    known = [name for name in columns if name != "occupation"]
    halves = {"one": known[::2], "other": known[1::2]}
    both = {
        name: {**part["adult"], "columns": {c: columns[c] for c in (*half, "occupation")}}
        for name, half in halves.items()
    }
    tables: Tables = {}
    _add(tables, "two tables", _watched({"release": {}, "tables": both}, bench), ("composition",))
    return tables


def _watched(job: Mapping[str, Any], bench: Bench) -> Watch:
    with tempfile.TemporaryDirectory(dir=bench.cache) as folder, watching() as watch:
        into = str(Path(folder) / "release.duckdb")
        sqldeid.anonymize(sqldeid.Job.parse({**job, "release": {"into": into}}), bench.database("adult", 1))
    return watch


def _add(tables: Tables, name: str, watch: Watch, phases: tuple[str, ...]) -> None:
    rows = [{"case": name, **row} for row in watch.rows() if row["for"] in phases]
    if not rows:
        raise RuntimeError(f"{name}: no statement of {', '.join(phases)} was seen")
    took = sum(watch.seconds[phase] for phase in phases)
    ratio = at_most(took / watch.seconds["release"], 1, "× CPU of the release")
    slow = sum(row["pairs"] != "none" for row in rows)
    found: Row = {
        "case": f"1,000,000 rows, {name}: {', '.join(phases)}",
        "must": f"{ratio.must}, none pair by pair",
        "measured": f"{ratio.measured}, {slow} pair by pair",
        "holds": ratio.holds and not slow,
        "ARX 3.9": "-",
    }
    tables.setdefault(MUST, []).append(found)
    tables.setdefault(STATEMENTS, []).extend(rows)
