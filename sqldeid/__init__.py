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
    from sqldeid.engine.opening import Settings
    from sqldeid.job import Job
    from sqldeid.result import Result, Risk, TableRelease
    from sqldeid.run import Listener, Options, anonymize, assess, plan, verify, verify_certificates

__version__ = "0.1.0"

__all__ = [
    "EngineError",
    "HierarchyError",
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
    "plan",
    "verify",
    "verify_certificates",
]

# Loaded when first asked for: DuckDB, Arrow, sqlglot and pydantic take a second that `sqldeid --help` can spare.
_HOMES = {
    "Job": "sqldeid.job",
    "Settings": "sqldeid.engine.opening",
    **dict.fromkeys(["Result", "Risk", "TableRelease"], "sqldeid.result"),
    **dict.fromkeys(
        ["Listener", "Options", "anonymize", "assess", "plan", "verify", "verify_certificates"], "sqldeid.run"
    ),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
