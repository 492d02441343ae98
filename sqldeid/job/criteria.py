"""The keys of `[tables.….privacy]` that ask for criteria beyond k, in one place. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from sqldeid.errors import listed

PER_CLASS: Mapping[str, str] = {
    "l_diversity": "l",
    "t_closeness": "t",
    "delta_disclosure": "delta",
    "beta_likeness": "beta",
}
"""Criteria that are judged class by class, each a table or a list of tables with a `column`, and its number's key."""

CRITERIA = (*PER_CLASS, "m_concealing")
"""Criteria beyond k, which look at sensitive columns."""

OVERALL = ("average_risk", "at_risk")
"""What all released classes must meet together, by their sizes alone."""

OF_POPULATION = ("k_map", "delta_presence")
"""What is judged by the table of a population."""

NAMED = f"{', '.join(CRITERIA[:-1])} or {CRITERIA[-1]}"
"""These keys in a sentence."""


def asked_per_class(privacy: Mapping[str, object]) -> bool:
    """Whether a section asks for a criterion that is judged class by class."""
    return any(privacy.get(key) for key in PER_CLASS)


def entries(privacy: Mapping[str, object], key: str) -> Iterator[Mapping[str, object]]:
    """What a section asks for by a key: one table, or a list of them."""
    asked = privacy.get(key)
    for entry in asked if isinstance(asked, (list, tuple)) else [asked]:
        if isinstance(entry, Mapping):
            yield entry


def named_sensitive(asked: str, roles: Mapping[str, object]) -> str:
    """The end of a message on a column that is not sensitive: those that are, and which is meant, perhaps."""
    there = [name for name, role in roles.items() if role == "sensitive"]
    if not there:
        return "; none has it: give the column that role"
    plain = {name.casefold(): name for name in there}
    near = get_close_matches(asked.casefold(), plain, n=1) or [n for n in plain if n.startswith(asked.casefold())]
    meant = f"; did you mean {_quoted(plain[near[0]])}?" if near and len(there) > 1 else ""
    return f"; with it there {'is' if len(there) == 1 else 'are'} {listed([_quoted(name) for name in there])}{meant}"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=not name.isprintable())
