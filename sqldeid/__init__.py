"""De-identify relational health data inside the database that holds it.

>>> import sqldeid
>>> result = sqldeid.anonymize(sqldeid.Job.load("job.toml"), "hospital.duckdb")   # or an open DuckDB connection
>>> result.releases["patients"].node, result.to_dict()
"""

from sqldeid.engine.opening import Settings
from sqldeid.errors import (
    EngineError,
    HierarchyError,
    Interrupted,
    JobError,
    NoSolutionError,
    SqldeidError,
    VerificationError,
)
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
