"""The one orchestrator, and the entry point for pipelines: a job and a database in, all its releases out, or none."""

from sqldeid.run.evaluating import evaluate
from sqldeid.run.orchestrator import anonymize, assess, explain, plan, verify, verify_certificates
from sqldeid.run.places import Options, destination, naming_job, reading
from sqldeid.run.tradeoffs import tradeoff
from sqldeid.run.wings import selected
from sqldeid.tables import Asked, Listener, Proven, Verified

__all__ = [
    "Asked",
    "Listener",
    "Options",
    "Proven",
    "Verified",
    "anonymize",
    "assess",
    "destination",
    "evaluate",
    "explain",
    "naming_job",
    "plan",
    "reading",
    "selected",
    "tradeoff",
    "verify",
    "verify_certificates",
]
