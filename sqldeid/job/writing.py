"""Write a job down as TOML: releases and their sections as tables, what a column says on one line. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tomlkit
from tomlkit.items import Item

DEEP = 3
"""Tables so deep are written out, as in ``[tables.census.columns]``; below that, on one line."""


def toml_of(job: Mapping[str, object]) -> str:
    """The text of a job file.

    Parameters
    ----------
    job
        Sections and keys as in the file; what is None is left out.
    """
    document = tomlkit.document()
    for section, content in job.items():
        if isinstance(content, Mapping) and content:
            document.add(section, _table(content, 1))
    return tomlkit.dumps(document)


def _table(content: Mapping[str, object], depth: int) -> Item:
    """A table with its plain values first, as TOML asks."""
    made = tomlkit.table()
    there = {key: value for key, value in content.items() if value is not None}
    deep = {key for key, value in there.items() if isinstance(value, Mapping) and value and depth < DEEP}
    for key in (*(k for k in there if k not in deep), *(k for k in there if k in deep)):
        value = there[key]
        made.add(key, _table(value, depth + 1) if key in deep and isinstance(value, Mapping) else _inline(value))
    return made


def _inline(value: object) -> Item:
    if isinstance(value, Mapping):
        made = tomlkit.inline_table()
        for key, inner in value.items():
            if inner is not None:
                made.append(key, _inline(inner))
        return made
    if isinstance(value, Sequence) and not isinstance(value, str):
        listed = tomlkit.array()
        for inner in value:
            listed.append(_inline(inner))
        return listed
    return tomlkit.item(value)
