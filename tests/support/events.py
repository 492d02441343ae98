"""What the tests of events share: databases of both kinds, plans without job files, and slow, obvious oracles."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sqldeid.demo.sequences import procedure_rows, transfer_rows
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import open_connection
from sqldeid.events.plan import EventsPlan, plan
from sqldeid.job.events import Events

WARD_STATES = [f"{ward}\t{kind}" for ward in range(1, 43) for kind in ("admit", "transfer")] + ["\tdischarge"]
"""The public list of kind T."""


def kind_t(**changes: object) -> dict[str, Any]:
    """An events section over `transfers`."""
    return {
        "source": "e",
        "object": "subject_id",
        "time": "intime",
        "order": "row_id",
        "state": ["curr_wardid", "eventtype"],
        "gap_hours": 16_800,
        "privacy": {"method": "none"},
        **changes,
    }


def kind_c(**changes: object) -> dict[str, Any]:
    """An events section over `procedures`: an order alone."""
    return {
        "source": "e",
        "object": "subject_id",
        "order": ["hadm_id", "ticket_id_seq", "row_id"],
        "state": "cpt_cd",
        "privacy": {"method": "none"},
        **changes,
    }


def laplace(states: Path, epsilon: float = 1.0, *, timed: bool = True, **changes: object) -> dict[str, Any]:
    """The privacy of a section with public domains."""
    ranged = {"time_range": ["2100-01-01", "2130-01-01"], "gap_bins_hours": [1, 6, 24, 168, 1000, 10_000]}
    found = {"method": "laplace", "epsilon": epsilon, "states": str(states), "other": "OTHER"}
    return {**found, **(ranged if timed else {}), **changes}


def database(rows: pa.Table) -> duckdb.DuckDBPyConnection:
    """An in-memory database with these rows as table `e`."""
    connection = duckdb.connect()
    connection.register("rows", rows)
    connection.execute("CREATE TABLE e AS SELECT * FROM rows")
    connection.unregister("rows")
    return connection


def transfers(objects: int, seed: int = 1) -> duckdb.DuckDBPyConnection:
    """Kind T."""
    return database(transfer_rows(objects, seed))


def procedures(objects: int, seed: int = 1) -> duckdb.DuckDBPyConnection:
    """Kind C."""
    return database(procedure_rows(objects, seed))


@contextmanager
def planned(
    connection: duckdb.DuckDBPyConnection, section: dict[str, Any], folder: Path = Path()
) -> Iterator[tuple[EventsPlan, DuckDBEngine]]:
    """A section planned on an open connection, inside a transaction."""
    with open_connection(connection) as engine:
        engine.neutralise()
        engine.begin()
        yield plan("x", Events.model_validate(section), engine, folder), engine


def random_events(rng: np.random.Generator, objects: int = 30, states: int = 6) -> pa.Table:
    """Random sequences: some of one event, equal times, long gaps, times before 1970 and far ahead."""
    who, when, what, row = [], [], [], []
    for number in range(objects):
        us = int(rng.integers(-(10**15), 6 * 10**15))
        for _ in range(int(rng.geometric(0.25))):
            who.append(f"o{number}")
            when.append(us)
            what.append("abcdefgh"[int(rng.integers(0, states))])
            row.append(len(row))
            us += int(rng.choice([0, 1, 3600 * 10**6, int(rng.integers(0, 10**11)), 400 * 86400 * 10**6]))
    order = rng.permutation(len(who))
    return pa.table(
        {
            "who": pa.array(who).take(order),
            "at": pa.array(when, pa.int64()).cast(pa.timestamp("us")).take(order),
            "what": pa.array(what).take(order),
            "row": pa.array(row, pa.int64()).take(order),
        }
    )


Sequence = list[tuple[int, str]]
"""Times in microseconds, and states, of one object or part, in order."""


def sequences_of(rows: pa.Table) -> dict[str, Sequence]:
    """Events by object, in order of time, then of the row's number."""
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    times = rows.column("at").cast(pa.int64()).to_pylist()
    columns = (rows.column("who").to_pylist(), times, rows.column("row").to_pylist(), rows.column("what").to_pylist())
    for who, at, row, what in zip(*columns, strict=True):
        found[who].append((at, row, what))
    return {who: [(at, what) for at, _, what in sorted(events)] for who, events in sorted(found.items())}


def split(sequence: Sequence, most_us: int | None) -> list[Sequence]:
    """Parts of a sequence."""
    parts = [[sequence[0]]]
    for before, event in pairwise(sequence):
        if most_us is not None and event[0] - before[0] > most_us:
            parts.append([])
        parts[-1].append(event)
    return parts


def transitions(parts: list[Sequence]) -> Counter[tuple[str, str]]:
    """START → first, state → state, last → END."""
    found: Counter[tuple[str, str]] = Counter()
    for part in parts:
        words = ["START", *(state for _, state in part), "END"]
        found.update(pairwise(words))
    return found
