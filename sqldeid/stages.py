"""The stages of a release, whatever its kind, as data: a run walks them, and `--plan` shows the same ones.

Each wing builds the stages of a plan once. A stage bears its work and the statements that this work runs, so that what
is shown cannot be another way than the one that is gone; the tests refuse a statement that its stage does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S")


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

    @property
    def may_be_proven(self) -> bool:
        """Whether releases of this kind have certificates, or a reason why this one has none."""
        return self.certificate is not None or bool(self.no_certificate)


def _nothing(_: object) -> str:
    return ""


def _no_statements(_: object) -> tuple[Step, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Stage(Generic[S]):
    """A stage of a release on its way.

    Parameters
    ----------
    said
        What a listener hears when it begins; empty where it goes on with what was said before.
    act
        Its work, on what the stages before it left.
    statements
        What this work runs, in order, by where the release goes.
    more
        What a listener hears beside `said`, where only the stages before tell it.
    """

    said: str
    act: Callable[[S], None]
    statements: Callable[[Target], Iterable[Step]] = _no_statements
    more: Callable[[S], str] = _nothing


def walk(stages: Sequence[Stage[S]], release: S, say: Callable[[str], None]) -> None:
    """Take a release through its stages, in order."""
    for stage in stages:
        if stage.said:
            say(stage.said + stage.more(release))
        perform(stage, release)


def perform(stage: Stage[S], release: S) -> None:
    """Do the work of one stage; tests watch here what it runs."""
    stage.act(release)


def listed(stages: Sequence[Stage[S]], target: Target) -> tuple[Step, ...]:
    """What a walk runs, in order. Cost: no statement is run."""
    return tuple(step for stage in stages for step in stage.statements(target))


class Told(Protocol):
    """A plan that tells of itself line by line."""

    @property
    def name(self) -> str:
        """The release."""

    def facts(self) -> Sequence[tuple[str, object]]:
        """Line by line."""

    def to_dict(self) -> dict[str, object]:
        """For JSON."""


def explained(planned: Told, kind: str, steps: Sequence[Step], target: Target) -> Explained:
    """What `--plan` shows of a release without a lattice: its facts, and what a run executes."""
    content = {
        **planned.to_dict(),
        "written": target.shown(planned.name),
        "kind": target.kind,
        "statements": [step.to_dict() for step in steps],
    }
    return Explained((Part(planned.name, f" ({kind})", None, tuple(planned.facts())),), content, tuple(steps))


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
