"""De-identify relational health data inside the database that holds it.

>>> import sqldeid
>>> result = sqldeid.anonymize(sqldeid.Job.load("job.toml"), "hospital.duckdb")   # or an open DuckDB connection
>>> result.releases["patients"].node, result.to_dict()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sqldeid.errors import (
    EngineError,
    HierarchyError,
    Interrupted,
    JobError,
    NoSolutionError,
    SqldeidError,
    VerificationError,
)

if TYPE_CHECKING:
    from sqldeid.arx import Imported, import_arx
    from sqldeid.engine.frames import hold
    from sqldeid.engine.settings import Settings
    from sqldeid.findings import Classification, Explored, ExploredSequences, ExploredText
    from sqldeid.job import Job
    from sqldeid.result import Result, Risk, TableRelease
    from sqldeid.run import Asked, Listener, Options, anonymize, assess, plan, tradeoff, verify, verify_certificates
    from sqldeid.run.evaluating import evaluate
    from sqldeid.run.exploring import explore, explore_job, explore_sequences, explore_text
    from sqldeid.run.profiles import init, safe_harbor

__version__ = "0.1.0"

__all__ = [
    "Asked",
    "Classification",
    "EngineError",
    "Explored",
    "ExploredSequences",
    "ExploredText",
    "HierarchyError",
    "Imported",
    "Interrupted",
    "Job",
    "JobError",
    "Listener",
    "NoSolutionError",
    "Options",
    "Result",
    "Risk",
    "Settings",
    "SqldeidError",
    "TableRelease",
    "VerificationError",
    "anonymize",
    "assess",
    "evaluate",
    "explore",
    "explore_job",
    "explore_sequences",
    "explore_text",
    "hold",
    "import_arx",
    "init",
    "plan",
    "safe_harbor",
    "tradeoff",
    "verify",
    "verify_certificates",
]

# Loaded when first asked for: DuckDB, Arrow, sqlglot and pydantic take a second that `sqldeid --help` can spare.
_HOMES = {
    "Job": "sqldeid.job",
    "Settings": "sqldeid.engine.settings",
    "evaluate": "sqldeid.run.evaluating",
    "hold": "sqldeid.engine.frames",
    **dict.fromkeys(["Imported", "import_arx"], "sqldeid.arx"),
    **dict.fromkeys(["Classification", "Explored", "ExploredSequences", "ExploredText"], "sqldeid.findings"),
    **dict.fromkeys(["Result", "Risk", "TableRelease"], "sqldeid.result"),
    **dict.fromkeys(["explore", "explore_job", "explore_sequences", "explore_text"], "sqldeid.run.exploring"),
    **dict.fromkeys(["init", "safe_harbor"], "sqldeid.run.profiles"),
    **dict.fromkeys(
        [
            *("Asked", "Listener", "Options", "anonymize", "assess", "plan", "tradeoff"),
            *("verify", "verify_certificates"),
        ],
        "sqldeid.run",
    ),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
