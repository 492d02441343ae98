"""What attackers achieve on a table release: frozen results of its own attacks (`sqldeid.tables.attacks`).

For the data holder alone: a figure of what an attacker achieves is a statistic about the people whom it hits, so none
of it stands in what `--public` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from math import sqrt
from typing import Protocol

from sqldeid.errors import EngineError, SqldeidError

TOLERATED: tuple[type[Exception], ...] = (EngineError, MemoryError)
"""What costs an attack and not the release: what the place of the run lacks. Tests tolerate nothing, unless they ask
for it."""

ATTACKS = (
    "downcoding",
    "singling_out",
    "linkability",
    "inference",
    "disclosure",
    "minimality",
    "composition",
    "order",
    "groups",
)
"""The attacks, by the name of their field, in the order in which they are told."""

CONTROLLED = ("singling_out", "linkability", "inference", "groups")
"""The attacks that share a control group, and fail together where it cannot be made."""

LINES = {
    "Undone": ("downcoding", "order"),
    "Found": ("singling_out", "linkability", "composition"),
    "Learnt": ("inference", "disclosure", "minimality", "groups"),
}
"""The three lines of a summary: what is undone of the recoding, who is found, and what is learnt."""

_Z = 1.959963984540054
"""Standard deviations to either side of 95 % of a normal distribution."""


class Achieved(Protocol):
    """What one attack achieves."""

    @property
    def said(self) -> str:
        """In a few words, for the summary; no data value. Empty where there is nothing to say of it there."""

    def to_dict(self) -> Mapping[str, object]:
        """As `--json` writes it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with the interval that it lies in with 95 %.

    Parameters
    ----------
    value, low, high
        In the figure's own unit; all three are equal where it was counted and not sampled. `high` is None where
        nothing bounds it.
    of
        How many were counted or drawn.
    """

    value: float
    low: float
    high: float | None
    of: int

    @property
    def exact(self) -> bool:
        """Whether it was counted, and not estimated."""
        return self.low == self.value == self.high

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "exact": self.exact}


def percent(share: float) -> str:
    """A share in per cent, to two digits; below a hundredth of a per cent that alone is said, and only all is 100."""
    if 0 < share < 1e-4:
        return "< 0.01"
    texts = [f"{100 * share:.{digits}g}" for digits in (2, 3, 4)]
    return next((text for text in texts if float(text) < 100), "100" if share >= 1 else "> 99.99")


def counted(part: float, whole: int) -> Estimate:
    """A share that was counted: exact; 0 of nothing."""
    share = part / whole if whole else 0.0
    return Estimate(share, share, share, whole)


def sampled(hits: float, drawn: int) -> Estimate:
    """A share that was estimated from independent draws, with Wilson's interval of 95 %.

    Source: Wilson, J. Am. Stat. Assoc. 22 (1927).
    """
    if not drawn:
        return Estimate(0.0, 0.0, 1.0, 0)
    share, n = hits / drawn, float(drawn)
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half), drawn)


@dataclass(frozen=True, slots=True)
class Downcoding:
    """What a reader undoes of the recoding with certainty, because he knows how levels are chosen.

    Parameters
    ----------
    rows
        Share of the released rows in a class of which it is certain, in some column, how many rows have each finer
        value.
    cells
        The same share of generalised cells, those that are shown above level 0.
    present
        Share of generalised cells in whose class each value of the next finer level is certain to be there.
    bits
        Mean information per released row, in bits, beside a reader who takes all values below a label to be alike.
    """

    rows: Estimate
    cells: Estimate
    present: Estimate
    bits: Estimate

    @property
    def said(self) -> str:
        """In a few words, for the summary."""
        if not (self.rows.value or self.present.value or self.bits.value):
            return "nothing: who knows the algorithm is certain of no finer value"
        counts = f"how many rows have each finer value, for {percent(self.rows.value)} % of the rows"
        there = f"that each is there, for {percent(self.present.value)} % of the coarse cells"
        return f"who knows the algorithm is certain {counts}; {there}; in all {self.bits.value:.2g} bits a row"

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return {f.name: getattr(self, f.name).to_dict() for f in fields(self)}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An attack that was not made, and why.

    With a column, one that was not made on that column alone; of composition, on that other release.
    """

    attack: str
    reason: str
    column: str = ""

    def to_dict(self) -> dict[str, str]:
        """As `--json` writes it."""
        found = {"attack": self.attack, "reason": self.reason}
        return {**found, "column": self.column} if self.column else found


@dataclass(frozen=True, slots=True)
class Attacks:
    """What the attacks on a release achieve; None where one was left out, and `left_out` says why.

    Parameters
    ----------
    downcoding
        What a reader undoes of the recoding with certainty.
    singling_out, linkability, inference
        Success against persons in the release, beside persons who were held out of it.
    disclosure, minimality
        What classes tell of sensitive values, and what the choice of levels tells beside them.
    composition
        What two releases of the same persons tell together.
    order
        What the order of rows tells beside them.
    groups
        Success by group of persons.
    """

    downcoding: Achieved | None = None
    singling_out: Achieved | None = None
    linkability: Achieved | None = None
    inference: Achieved | None = None
    disclosure: Achieved | None = None
    minimality: Achieved | None = None
    composition: Achieved | None = None
    order: Achieved | None = None
    groups: Achieved | None = None
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        reasons = {one.attack for one in self.left_out if not one.column}
        silent = [name for name in ATTACKS if (getattr(self, name) is None) != (name in reasons)]
        if silent or {f.name for f in fields(self)} != {*ATTACKS, "left_out"}:
            raise ValueError(f"each attack is made, or left out with a reason: {', '.join(silent)}")

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = {name: dict(one.to_dict()) for name in ATTACKS if (one := getattr(self, name)) is not None}
        return {**found, "left_out": [one.to_dict() for one in self.left_out]}

    def facts(self) -> Iterator[tuple[str, object]]:
        """Three lines for the summary; one where nothing was attacked."""
        reasons = {one.attack: one.reason for one in self.left_out if not one.column}
        if {*reasons} == {*ATTACKS}:
            yield "Attacks", f"none made: {'; '.join(dict.fromkeys(reasons[name] for name in ATTACKS))}"
            return
        for line, names in LINES.items():
            made = [one.said for name in names if (one := getattr(self, name)) is not None]
            said = [words for words in made if words]
            if "inference" in names and self.inference is not None:
                said += self._not_inferred()
            why = sorted({reasons[name] for name in names if name in reasons})
            yield line, "; ".join(said) if said else f"not attacked: {'; '.join(why)}" if why else "nothing"

    def _not_inferred(self) -> list[str]:
        """How many columns were left out of what was made on others, if any."""
        columns = sum(bool(one.column) for one in self.left_out if one.attack == "inference")
        return [f"{columns} other column{'s' if columns > 1 else ''} not attacked"] if columns else []


def why_failed(error: Exception) -> str:
    """Why an attack is left out that failed; no data value, for errors hold none."""
    said = error.message if isinstance(error, SqldeidError) else "the program ran out of memory"
    return f"it could not be made: {said.removesuffix('; nothing was published')}"


def spared_after(before: Mapping[str, str] | None, attack: str, reason: str) -> Mapping[str, str]:
    """The attacks to leave out where a release is made once more because one failed, each with its reason.

    First that one alone, with those that share its work; where another one fails then, all: a run is made three times
    at most.

    Parameters
    ----------
    before
        What was left out already; None the first time.
    """
    if before is None and attack in CONTROLLED:
        return {
            **dict.fromkeys(CONTROLLED, f"it compares with persons held out, of whom {attack} failed"),
            attack: reason,
        }
    if before is None:
        return {attack: reason}
    alone = f"the release was made once more without attacks, for {attack} failed"
    return {**dict.fromkeys(ATTACKS, alone), **before, attack: reason}


def none_made(reason: str, named: Mapping[str, str] | None = None) -> Attacks:
    """No attack was made on a release, for one reason, or reasons of their own for those that are `named`."""
    return Attacks(left_out=tuple(LeftOut(name, (named or {}).get(name, reason)) for name in ATTACKS))
