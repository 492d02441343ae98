"""What `--plan` shows of a release, whatever its kind: columns, facts and statements, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One statement, or one kind of statement, of a run.

    Parameters
    ----------
    template
        Its template, as ``area/verb_noun``.
    purpose
        What it is for: the first sentence of the template's head.
    times
        How often it is run, where that is known; None where the search decides.
    statements
        Its text, where it follows from job and catalogue alone; temporary tables carry other names in a run.
    """

    template: str
    purpose: str
    times: int | None = 1
    statements: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "template": self.template,
            "purpose": self.purpose,
            "times": self.times,
            "statements": list(self.statements),
        }


@dataclass(frozen=True, slots=True)
class Generalised:
    """A quasi-identifying column: its hierarchy, as it is shown, and the names of the levels."""

    name: str
    hierarchy: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A release, or the join of linked ones: its name, what follows the name, its columns, and facts line by line.

    `columns` are None where there is no hierarchy, or other parts have told them.
    """

    name: str
    said: str
    columns: tuple[Generalised, ...] | None
    facts: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Explained:
    """A planned release.

    Parameters
    ----------
    statements
        What a run executes, in order; None where that is not known before it.
    certificate
        What checking a certificate executes; None where there is none.
    no_certificate
        Why there will be none; empty where there is one, or it was never asked.
    content
        The plan for JSON, without the certificate.
    """

    parts: tuple[Part, ...]
    content: Mapping[str, object]
    statements: tuple[Step, ...] | None = None
    certificate: tuple[Step, ...] | None = None
    no_certificate: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the releases of a plan go.

    Parameters
    ----------
    kind
        What a release becomes: ``table``, ``view`` or ``parquet``.
    dialect
        Of the engine that the source lies in.
    shown
        The place of a release, by its name.
    """

    kind: str
    dialect: str
    shown: Callable[[str], str]
