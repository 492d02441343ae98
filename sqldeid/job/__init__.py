"""The job file: what is released, how, and under which criteria. Read whole, refused whole, with every problem named.

``Job.load`` reads a TOML file, ``Job.parse`` a mapping; both raise `JobError` and nothing else. ``schema()`` is the
JSON schema for editors.
"""

from __future__ import annotations

from sqldeid.job.job import Job, schema
from sqldeid.job.parts import (
    Column,
    EpsilonSafeSettings,
    HierarchyRule,
    Query,
    Release,
    Search,
    Table,
)
from sqldeid.job.privacy import LDiversity, Privacy, TCloseness
from sqldeid.job.stack import Stack

__all__ = [
    "Column",
    "EpsilonSafeSettings",
    "HierarchyRule",
    "Job",
    "LDiversity",
    "Privacy",
    "Query",
    "Release",
    "Search",
    "Stack",
    "TCloseness",
    "Table",
    "schema",
]
