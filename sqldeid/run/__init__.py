"""The one orchestrator, and the entry point for pipelines: a job and a database in, all its releases out, or none."""

from sqldeid.run.evaluating import evaluate
from sqldeid.run.orchestrator import anonymize, assess, plan, selected, verify, verify_certificates
from sqldeid.run.places import Options, destination, naming_job, reading
from sqldeid.run.tradeoffs import tradeoff
from sqldeid.tables.release.release import Listener
from sqldeid.tables.release.tradeoff import Asked

__all__ = [
    "Asked",
    "Listener",
    "Options",
    "anonymize",
    "assess",
    "destination",
    "evaluate",
    "naming_job",
    "plan",
    "reading",
    "selected",
    "tradeoff",
    "verify",
    "verify_certificates",
]
