"""What the report says in words: what each criterion does not protect, and what a number means for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from sqldeid.errors import UnknownKindError

_CHOICE = "what the choice of levels may tell where it is not made by k alone."

_DIVERSITY = f"Values that mean much the same; an attacker who can rule values out; what suppression tells; {_CHOICE}"

NOT_PROTECTED = {
    "k-anonymity": "A sensitive value that a whole class shares; what suppression itself tells (a missing class "
    "had too few people); columns called insensitive that identify people all the same; the comparison with other "
    "releases of the same people.",
    "l-diversity": _DIVERSITY,
    "(c,l)-diversity": _DIVERSITY,
    "t-closeness": f"What the whole table tells about everybody; what suppression tells; {_CHOICE}",
    "delta-disclosure privacy": "What the whole table tells about everybody; an attacker who can rule values out; what "
    f"suppression tells; {_CHOICE}",
    "beta-likeness": "Learning that a value is less likely, or not there; what the whole table tells about everybody; "
    "an attacker who can rule values out; what suppression tells; "
    f"{_CHOICE}",
    "m-concealing": f"Learning a sensitive value; somebody who knows more than was stated; {_CHOICE}",
    "k-map, estimated": "Classes of too few persons all the same, for it is an estimate and no bound, and says nothing "
    "of a source that is no random sample; a person who is known to be in the release, whom only k itself protects; a "
    "sensitive value that a whole class shares; what suppression itself tells.",
    "k-map, by weights": "Classes of too few persons all the same, for the sum of a survey's weights is an estimate "
    "and no bound; a person who is known to be in the release, whom only k itself protects; a sensitive value that a "
    "whole class shares; what suppression itself tells.",
    "k-map": "A person who is known to be in the release, whom only k itself protects; a sensitive value that a whole "
    "class shares; what suppression itself tells (a missing class fits too few persons).",
    "delta-presence": "A person of whom more is known than the quasi-identifying columns say; a sensitive value that a "
    "whole class shares; what the choice of the node may tell of parts of classes.",
    "average risk": "A single person, who may be at the risk 1/k however small the average; a sensitive value that a "
    "whole class shares; what suppression itself tells (a missing class was one of the smallest).",
    "records at risk": "Those who are at risk all the same; a sensitive value that a whole class shares; what "
    "suppression itself tells (a missing class was one of the smallest).",
    "no attack pays": "Who gains otherwise than by what was stated, or attacks at less cost; a sensitive value that a "
    "whole class shares; what suppression itself tells (a missing class was small enough to be attacked).",
    "epsilon-safe": "What is true of people whether or not they are in the table; somebody whose row several releases "
    "use; counts and losses in this report, which are not part of the release.",
}
"""By the first word or two of a criterion's name (docs/explanation, *What is promised*)."""

AXES = {
    "loss": "share of information lost",
    "prec": "share of the hierarchy's height",
    "dm_star": "squared rows",
    "entropy": "bits",
    "height": "levels",
    "ambiguity": "bits per row",
    "normalised_entropy": "share of the entropy at the top",
    "class_size": "1 - 1/rows of a class",
    "payout": "share of the greatest payout lost",
}
LOSS_NAMES = {
    "prec": "precision loss",
    "dm_star": "discernibility",
    "entropy": "entropy",
    "height": "height",
    "ambiguity": "ambiguity",
    "normalised_entropy": "normalised entropy",
    "class_size": "class size",
    "payout": "payout lost",
}
LOSSES = {
    "loss": "Loss: share of information lost, by how many original values each shown value could be (0 none, 1 all); a "
    "suppressed row counts as lost",
    "prec": "Precision loss: how far up the hierarchies values stand, on average (0 none, 1 all), before suppression: "
    "rows that are left out cost nothing",
    "dm_star": "Discernibility (for specialists): sum of squared class sizes, in squared rows; divided by the rows "
    "it is the size of the class that a row is in, on average",
    "dm_star_original": "Discernibility of the source, for comparison (for specialists)",
    "entropy": "Non-uniform entropy (for specialists): uncertainty about the original values, in bits over all rows",
    "height": "Height (for specialists): the sum of the columns' levels, before suppression",
    "ambiguity": "Ambiguity (for specialists): log2 of the number of original combinations that a row could be, on "
    "average, before suppression",
    "normalised_entropy": "Normalised entropy (for specialists): each column's non-uniform entropy as a share of that "
    "at its top, on average (0 none, 1 all), before suppression",
    "class_size": "Class size (for specialists): 1 less one over the rows of a class on average, before suppression: "
    "0 for rows of their own, 0.9 for ten",
    "payout": "Payout lost (for specialists): share of the greatest payout that the publisher forgoes, where nobody "
    "attacks (0 none, 1 all); a suppressed row earns nothing",
}

BINS = ((1, 1), (2, 4), (5, 10), (11, 24), (25, 99), (100, None))
"""Class sizes that are told together, in rows."""

UNCHECKED = (
    "No column tells whose a row is: k and every risk are of rows, and the job says that each is another person's."
)
"""What is said where a job says that rows are persons."""

COARSE = 0.25
"""Share of information from whose loss a column is called rough."""

FEW = 11
"""Rows below which a bin is told together with the next: who is alone in it should not stand out."""


def not_protected(name: str) -> str:
    """What a criterion does not protect.

    Raises
    ------
    UnknownKindError
        For one that is not known here: to say nothing would read as "nothing".
    """
    found = next((text for known, text in NOT_PROTECTED.items() if known in name), None)
    if found is None:
        raise UnknownKindError(name, "criterion")
    return found


def odds(risk: float) -> str:
    """A risk as people say it."""
    if risk <= 0:
        return "none"
    return "certain" if risk >= 1 else f"1 in {round(1 / risk):,} ({100 * risk:.2g} %)"


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows whose class has from `low` to `high` rows; without an end where `high` is None."""

    low: int
    high: int | None
    rows: int

    @property
    def label(self) -> str:
        """The sizes in words."""
        if self.high is None:
            return f"{self.low} or more"
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"

    @property
    def sizes(self) -> tuple[int, float]:
        """The least size and the greatest, to sort by."""
        return self.low, inf if self.high is None else self.high

    def with_next(self, other: Bin) -> Bin:
        """Both together."""
        return Bin(self.low, other.high, self.rows + other.rows)


def known_of(unit: str) -> str:
    """What somebody knows whom k is against: values of a person, or, where no key tells persons, of a row."""
    return "a person's quasi-identifying values" if unit == "person" else "the quasi-identifying values of a row"


def in_short(k: int, chance: float, unit: str) -> Iterator[str]:
    """Whether a table of classes is safe to publish, and its worst risk.

    Parameters
    ----------
    k
        Rows that every class has at least.
    chance
        With which somebody who knows that a person is in the release picks the right row.
    unit
        What k counts: ``person``, of whom each has one row, or ``row``.
    """
    persons = unit == "person"
    yield (
        "Is it safe to publish? This report cannot decide that. What was asked for is met, and was counted again on "
        f"what was written: every row looks like at least {max(k - 1, 0)} others in the quasi-identifying columns. "
        + ("Every row is another person's, which was checked." if persons else UNCHECKED)
    )
    yield (
        f"Worst risk: somebody who knows {known_of(unit)}, and that {'the person' if persons else 'it'} is in the "
        f"release, picks the right row with a chance of {odds(chance)}."
    )


def binned(sizes: Sequence[Sequence[int]], k: int | None = None) -> list[Bin]:
    """Rows by size of their class.

    A bin of fewer than `FEW` rows is told with the next one, the last with the one before it that has rows. A bin
    begins at k, so that rows in classes of k are never told together with sizes that k forbids: a release has no
    rows below it, and an empty bin is joined to no other.

    Parameters
    ----------
    sizes
        Pairs of class size and number of classes.
    k
        The least class that was asked for; None where none was.

    Returns
    -------
    list
        From small classes to large.
    """
    found: list[Bin] = []
    for low, high in _bins(k):
        rows = sum(size * classes for size, classes in sizes if low <= size and (high is None or size <= high))
        own = Bin(low, high, rows)
        if found and 0 < found[-1].rows < FEW:
            own = found.pop().with_next(own)
        found.append(own)
    while any(b.rows for b in found[:-1]) and 0 < found[-1].rows < FEW:
        last = found.pop()
        found.append(found.pop().with_next(last))
    return found


def _bins(k: int | None) -> Iterator[tuple[int, int | None]]:
    """The bins, of which one begins at k: it takes the place of the nearest beginning above 2."""
    begins = [low for low, _ in BINS]
    if k is not None and k > 2:
        begins[min(range(2, len(begins)), key=lambda i: abs(begins[i] - k))] = k
    yield from zip(begins, [*(low - 1 for low in begins[1:]), None], strict=True)


def few(rows: int) -> str:
    """A number of rows of the source; small ones are not told exactly."""
    return f"{rows:,}" if rows == 0 or rows >= FEW else f"fewer than {FEW}"


def lost(columns: Mapping[str, Mapping[str, object]]) -> tuple[list[str], list[str]]:
    """Columns of which nothing is left, and those that are rough by now (more than a quarter is lost)."""
    gone, coarse = [], []
    for name, column in columns.items():
        level, height, loss = column.get("level"), column.get("height"), column.get("loss")
        if not isinstance(level, int) or not isinstance(height, int):
            continue
        if level == height - 1 and height > 1:
            gone.append(name)
        elif isinstance(loss, float) and loss > COARSE:
            coarse.append(name)
    return gone, coarse


def levels_shown(node: Mapping[str, int] | None, columns: Mapping[str, Any]) -> str:
    """A node in words: each column's level, by what a frequent value becomes there, where a result tells an example.

    Parameters
    ----------
    node
        Level by column.
    columns
        A release's columns by name, as a result's tree holds them; empty where only the levels are known.
    """
    found = []
    for column, level in (node or {}).items():
        example: Sequence[str] = columns.get(column, {}).get("example") or ()
        told = f"{level} ({example[0]} as {example[level]})" if 0 < level < len(example) else f"{level}"
        found.append(f"{column} {told}" if level else f"{column} 0 (as it is)")
    return ", ".join(found)
