"""The one orchestrator, and the entry point for pipelines: a job and a database in, all its releases out, or none."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqldeid.run.evaluating import evaluate
    from sqldeid.run.orchestrator import anonymize, assess, explain, plan, verify, verify_certificates
    from sqldeid.run.places import Options, destination, naming_job, reading
    from sqldeid.run.tradeoffs import tradeoff
    from sqldeid.run.wings import selected
    from sqldeid.tables import Asked, Listener, Proven, ProvenBound, Verified

__all__ = [
    "Asked",
    "Listener",
    "Options",
    "Proven",
    "ProvenBound",
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

# Loaded when first asked for: `sqldeid privacy` needs no engine, and a job of tables none of the other wings.
_HOMES = {
    "evaluate": "sqldeid.run.evaluating",
    "tradeoff": "sqldeid.run.tradeoffs",
    "selected": "sqldeid.run.wings",
    **dict.fromkeys(["Options", "destination", "naming_job", "reading"], "sqldeid.run.places"),
    **dict.fromkeys(["Asked", "Listener", "Proven", "ProvenBound", "Verified"], "sqldeid.tables"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(_HOMES.get(name, "sqldeid.run.orchestrator"))
    globals()[name] = found = getattr(home, name)
    return found
