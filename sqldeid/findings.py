"""Frozen findings: what looking at data before, and at its use after, a release tells. `sqldeid.result` is a run's.

Everything here is for the data holder: counts of people who stand alone are statistics about people. No field holds a
data value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

OK, NOTE, FAIL = "ok", "note", "fail"
"""States of what `doctor` looks at: it works; it does not, and only some need it; nothing works without it."""

BELOW = (2, 5, 11)
"""Class sizes below which rows and persons are counted (Mazzone 2019, ch. 3)."""


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """The equivalence classes of a table by some columns.

    Parameters
    ----------
    columns
        The columns, or what else rows were told apart by.
    rows, persons
        What was looked at; without a person column every row is a person.
    classes
        Number of classes.
    mean_size
        Persons per class, on average.
    rows_below, persons_below
        By class size s of 2, 5 and 11: rows in classes of fewer than s persons, and persons with at least one such row.
    """

    columns: tuple[str, ...]
    rows: int
    persons: int
    classes: int
    mean_size: float
    rows_below: Mapping[int, int]
    persons_below: Mapping[int, int]

    @property
    def alone(self) -> float:
        """Share of the persons who can be singled out: they have a row in a class of nobody else. 0 … 1."""
        return self.persons_below[2] / self.persons if self.persons else 0.0


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column by itself.

    Parameters
    ----------
    distinct
        Distinct values; NULL counts as one.
    nulls
        Rows without a value.
    entropy_bits
        Shannon entropy of its values over the rows, in bits: 0 for a constant, log2(rows) for a key.
    """

    name: str
    distinct: int
    nulls: int
    entropy_bits: float


@dataclass(frozen=True, slots=True)
class Explored:
    """What sets of columns tell apart.

    Parameters
    ----------
    person
        The column whose distinct values are persons; None where every row is one.
    sets
        Those that were tried: by number of columns, and those first that single out most.
    smallest
        Sets that single out at least `enough` of the persons and have no such subset.
    largest
        Sets that do not and have no such superset; only where borders were sought without a limit of size.
    possible
        Sets that there are of the sizes asked for; those that were not tried contain one of `smallest`, or, where
        borders were sought, are decided by others.
    left_out
        Column → why it was not looked at.
    """

    table: str
    person: str | None
    rows: int
    persons: int
    columns: tuple[ColumnFacts, ...]
    sets: tuple[Uniqueness, ...]
    enough: float
    smallest: tuple[tuple[str, ...], ...]
    largest: tuple[tuple[str, ...], ...]
    possible: int
    tried: int
    statements: int
    seconds: float
    left_out: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """What a notebook shows; for the data holder."""
        from sqldeid.notebook import html_of_explored

        return html_of_explored(self.table, self.sets)


@dataclass(frozen=True, slots=True)
class ExploredSequences:
    """How well the first items of a child table tell its owners apart (Mazzone 2019, §3.2).

    Parameters
    ----------
    per
        The columns that say whose item a row is: an owner is one of their combinations.
    owners
        Distinct owners. A pattern's own `rows` are the owners with enough items for it.
    patterns
        Of each pattern of items, in the order asked for.
    ties
        Items that share owner and order with another; among them the item's value decides.
    """

    table: str
    per: tuple[str, ...]
    person: str | None
    owners: int
    patterns: tuple[Uniqueness, ...]
    ties: int
    seconds: float

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """What a notebook shows; for the data holder."""
        from sqldeid.notebook import html_of_explored

        return html_of_explored(self.table, self.patterns)


@dataclass(frozen=True, slots=True)
class KeywordCount:
    """Texts, and persons with such a text, in which at least one keyword of a group stands."""

    group: str
    rows: int
    persons: int


@dataclass(frozen=True, slots=True)
class ExploredText:
    """How far free text tells people apart, and what it tells (Mazzone 2019, §3.3).

    Parameters
    ----------
    rows, persons
        Rows that have a text, and their persons.
    prefixes
        By the first characters of the text.
    """

    table: str
    column: str
    person: str | None
    rows: int
    persons: int
    prefixes: tuple[Uniqueness, ...]
    keywords: tuple[KeywordCount, ...]
    seconds: float

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """What a notebook shows; for the data holder."""
        from sqldeid.notebook import html_of_explored

        return html_of_explored(self.table, self.prefixes)


@dataclass(frozen=True, slots=True)
class Scores:
    """How well a model tells the classes of a label apart on held-out rows.

    Parameters
    ----------
    accuracy
        Share of the test rows that are classified right. 0 … 1.
    roc_auc
        Area under the receiver operating characteristic; of more than two classes the mean of one against the rest,
        over the classes that the test part has; None where it has one class only. 0 … 1.
    rows
        Rows that the model was trained on.
    """

    accuracy: float
    roc_auc: float | None
    rows: int


@dataclass(frozen=True, slots=True)
class Classification:
    """What anonymising costs a classifier (Mazzone 2019, §5.3 and §6.1.2).

    What is measured is a release of the training part that is made for this by the job, searched anew: `node`, `k`,
    `loss` and `suppressed` are its own, and need not be those of a release of all rows that was published.

    Parameters
    ----------
    originals
        Trained on the training part as it was, tested on the test part as it was; None where it was not asked for.
    anonymised
        Trained on the anonymised training part, tested on the test part generalised by the same node, none suppressed;
        of local recoding on the test part as it was.
    baseline
        Accuracy of calling every test row the most frequent class of the training part. 0 … 1.
    train, test
        Rows of the two parts with a label.
    suppressed
        Rows of the training part that the job suppressed.
    classes
        Classes of the label.
    k
        Smallest released class.
    features
        Columns that the model may use.
    loss
        Of the release, by measure.
    node
        Its levels; empty where classes have levels of their own.
    levels
        Then the share of the released rows at each level, by column.
    indicators
        What a released label is to the model: ``labels``, an indicator of its own, or ``ancestors``, one for itself and
        one for each of its ancestors.
    """

    release: str
    label: str
    model: str
    originals: Scores | None
    anonymised: Scores
    baseline: float
    train: int
    test: int
    suppressed: int
    classes: int
    k: int
    node: Mapping[str, int]
    loss: Mapping[str, float]
    features: tuple[str, ...]
    seed: int | None
    test_share: float | None
    seconds: float
    warnings: tuple[str, ...] = ()
    indicators: str = "labels"
    levels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Looked:
    """One thing that `doctor` looked at.

    Parameters
    ----------
    group, name
        What it is: of the program, its extras, its surroundings, or a database.
    state
        `OK`, `NOTE` or `FAIL`.
    said
        What was found; no data value and no secret.
    mend
        What to do where it is not `OK`, and somebody needs it.
    """

    group: str
    name: str
    state: str
    said: str
    mend: str = ""

    def to_dict(self) -> dict[str, str]:
        """As `--json` writes it."""
        return asdict(self)
