"""The keys of `[tables.….privacy]` that ask for criteria beyond k, in one place. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
