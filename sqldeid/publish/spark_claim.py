"""Runs that write into one folder of Spark's storage, kept apart: each says so there, and looks whether others do.

A run writes its claim first and reads all of them then. So of two at the same moment each sees the other, and both
stop, wherever files that were written are there to be listed: in HDFS, in object stores of today, on disks. Only the
folder counts, not the catalogue: clusters need not share one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from sqlglot import exp

from sqldeid.engine.spark import SparkEngine
from sqldeid.engine.spark_errors import Missing
from sqldeid.errors import EngineError, SqldeidError
from sqldeid.publish.spark_runs import is_over, signed, when_and_where
from sqldeid.sql import identifier, literal, render

HIDDEN = "_sqldeid"
"""What is ours within a folder; readers of Parquet pass over names with _."""

_RUN = re.compile(r"[0-9a-f]{8}")


def claim(engine: SparkEngine, place: str) -> None:
    """Have a folder for this run alone, until the engine is closed or its steps are undone.

    Raises
    ------
    EngineError
        If another run has it.
    """
    mine = f"{place}/{HIDDEN}/{engine.run_id}"
    engine.undo.append(lambda: _release(engine, mine))
    _write(engine, mine, void=False)
    there = engine.read("publish/read_claims", claims=opened(f"{place}/{HIDDEN}/*/claim", engine))
    others = [found for found in there if found["run"] != engine.run_id and _RUN.fullmatch(found["run"] or "")]
    for found in others:
        if not is_over(found):
            path = f"{place}/{HIDDEN}/{found['run']}"
            raise EngineError.at(
                "release.into",
                f"another run is writing into {place}: it began {when_and_where(found)}; wait for it, "
                f"or, if it was killed, remove {path} (a day later the next run does)",
            )
    if len(there) == len(others):
        raise EngineError.at("release.into", f"another run has cleared {place} just now; run again")
    for found in others:
        _release(engine, f"{place}/{HIDDEN}/{found['run']}")


def opened(path: str, engine: SparkEngine, *, files: bool = False) -> exp.Table:
    """A temporary view of the rows of a folder, or of its files; it goes with the run.

    Raises
    ------
    Missing
        If there is none.
    """
    view = engine.workbench("files" if files else "rows")
    engine.execute(render("publish/open_folder", "spark", view=view, path=literal(path), files=files))
    return view


def remove(engine: SparkEngine, path: str) -> None:
    """Remove a folder of this program's with all that is in it, where the catalogue does that; else it stays."""
    schema = exp.Table(this=identifier(f"sqldeid_{engine.run_id}"))
    with suppress(SqldeidError):
        engine.execute(render("publish/create_there", "spark", schema=schema, path=literal(path)))
        engine.execute(render("publish/drop_schema", "spark", schema=schema))


def _release(engine: SparkEngine, path: str) -> None:
    remove(engine, path)
    with suppress(Missing):
        opened(f"{path}/claim", engine)
        _write(engine, path, void=True)


def _write(engine: SparkEngine, path: str, *, void: bool) -> None:
    said: dict[str, Any] = {name: literal(text) for name, text in signed(engine.run_id).items()}
    engine.execute(render("publish/write_claim", "spark", path=literal(f"{path}/claim"), void=void, **said))
