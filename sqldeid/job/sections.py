"""Sections of a job file before it is checked: anything may stand there. Pure."""

from __future__ import annotations

from collections.abc import Mapping

Found = tuple[tuple[str, ...], str]
"""What breaks a rule: the keys that lead to it, and a text that says so."""


def section(mapping: Mapping[str, object], key: str) -> Mapping[str, object]:
    """The section under a key; empty where there is none, or something else, which the schema refuses."""
    found = mapping.get(key)
    return found if isinstance(found, Mapping) else {}
