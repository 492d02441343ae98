"""Which parts of a job run on which engine: the one place that says so. What is not offered is refused before it runs.

A cell that is missing is a gap, not a limit: a further engine, or a further template, adds it here when its tests pass.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqldeid.errors import JobError

NAMES: Mapping[str, str] = {"duckdb": "DuckDB", "postgres": "Postgres", "spark": "Spark"}
"""What engines are called in messages."""

OFFERS: Mapping[str, frozenset[str]] = {
    what: frozenset(engines.split())
    for what, engines in {
        # sources and releases of tables
        "tables": "duckdb postgres spark",
        "stacks": "duckdb postgres spark",
        "links": "duckdb postgres spark",
        "child tables": "duckdb postgres spark",
        "series links": "duckdb postgres spark",
        "pseudonyms": "duckdb postgres spark",
        "shifted dates": "duckdb postgres spark",
        'search.method = "mondrian"': "duckdb postgres spark",
        'search.method = "epsilon-safe"': "duckdb postgres spark",
        'search.method = "local"': "duckdb postgres spark",
        'view = "computed"': "duckdb",
        "frozen": "duckdb",
        'release.as = "table"': "duckdb postgres spark",
        'release.as = "view"': "duckdb postgres spark",
        'release.as = "parquet"': "duckdb postgres spark",
        "release.into": "duckdb postgres spark",
        # other kinds of release
        "series": "duckdb postgres spark",
        "series presets": "duckdb postgres spark",
        "events": "duckdb postgres spark",
        # what goes with a run
        "--policy": "duckdb postgres spark",
        "--ledger": "duckdb postgres spark",
        "--ledger with series": "duckdb",
        "--ledger with events": "duckdb",
        "--ledger with epsilon-safe": "duckdb",
        "--certificate": "duckdb postgres spark",
        "--report": "duckdb postgres spark",
        # commands
        "anonymize": "duckdb postgres spark",
        "verify": "duckdb postgres spark",
        "assess": "duckdb postgres spark",
        "explore": "duckdb postgres spark",
        "explore --per": "duckdb postgres spark",
        "explore --text": "duckdb postgres spark",
        "hierarchies": "duckdb postgres spark",
        "init": "duckdb postgres spark",
        "tradeoff": "duckdb postgres spark",
        "evaluate": "duckdb postgres spark",
        "doctor": "duckdb postgres spark",
    }.items()
}
"""Part of a job, option or command → the engines on which it runs."""


def refuse_missing(dialect: str, what: str, *, key: str = "") -> None:
    """Refuse what an engine does not have.

    Raises
    ------
    JobError
        If it is not offered; it names the engines on which it is.
    """
    offered = OFFERS[what]
    if dialect in offered:
        return
    others = " and ".join(NAMES[e] for e in NAMES if e in offered)
    where = f"{key}: " if key and key != what else ""
    raise JobError(f"{where}not on {NAMES[dialect]}: {what}; {others} can", key=key or what)
