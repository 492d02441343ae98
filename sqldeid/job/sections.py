"""Sections of a job file before it is checked: anything may stand there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

Found = tuple[tuple[str, ...], str]
"""What breaks a rule: the keys that lead to it, and a text that says so."""

AMBIGUOUS = "the file is named as the schema in it, which DuckDB finds ambiguous; name file or release.schema otherwise"


def section(mapping: Mapping[str, object], key: str) -> Mapping[str, object]:
    """The section under a key; empty where there is none, or something else, which the schema refuses."""
    found = mapping.get(key)
    return found if isinstance(found, Mapping) else {}


def is_ambiguous(into: object, schema: object) -> bool:
    """Whether a file is called as a schema: to DuckDB a database is called as its file until the first dot."""
    return (
        isinstance(into, str)
        and isinstance(schema, str)
        and PurePath(into).name.partition(".")[0].casefold() == schema.casefold()
    )
