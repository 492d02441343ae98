"""What a release of a child table tells of itself. Everything but `to_public` is for the data holder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

LIMITS = (
    "who knows more items of a person than {known}, how many the person has, or an item that the person does not have, "
    "may find fewer; an item that a whole class shares is told of everybody in it; who knows how levels are chosen "
    "learns that finer ones failed, and that an item missing from a class may have been suppressed there; other "
    "releases of the same persons are not looked at"
)


BESIDE = (
    "; sensitive columns leave as they are ({columns}), and nothing is promised against whoever knows one of their "
    "values, or how many rows a person has; a value that goes with few items tells of them"
)
"""What sensitive columns add to the limits."""


SHOWN = 5e-7
"""A bound below it is shown as 0, and says nothing."""


def guarantee_of(k: int, known: int, parent: str, together: Sequence[str] = ()) -> str:
    """The promise in words; `together` names all child tables of the parent, where there are several."""
    items = "one item" if known == 1 else f"any {known} items"
    among = f", in {', '.join(together[:-1])} and {together[-1]} together," if len(together) > 1 else ""
    return (
        f"Whoever knows a person's quasi-identifying values in {parent} and {items} that the person has{among} finds "
        f"at least {k} persons who fit, or none."
    )


def least_of(shown: str, bound: float) -> str:
    """What is known of how little a release of this kind can lose, where none is proven the least."""
    if bound < SHOWN:
        return "not proven to be the least: how much less is possible is not known"
    return f"not proven to be the least: a release of this kind loses {shown} at least"


@dataclass(frozen=True, slots=True)
class ChildRelease:
    """A child table that was released with its parent; counts are for the data holder.

    Parameters
    ----------
    known, k
        Items of a person that may be known, and the fewest persons who fit then, as asked; `fewest` is what the
        release achieves, None where it has no rows.
    pairs, released, suppressed
        Pairs of a released person and an item that the person has: of the source, shown in some way, and suppressed.
    rows
        Of the release: an item that a person has twice at the level that is shown is one row, or with sensitive
        columns as many as there are different ones.
    persons, parents
        Persons with a row, and all persons of the parent's release.
    loss, bound
        Share of information lost over the pairs, 0 … 1; what any cut with any suppression of whole cells within the
        limit loses at least. `optimal` where nothing loses less.
    levels
        Share of the released pairs shown at each level, by its name.
    together, settled
        Names of the parent's other child tables, which share the promise, and of those that were made before this one:
        `bound` and `optimal` are of releases beside what these show.
    """

    name: str
    parent: str
    known: int
    k: int
    fewest: int | None
    pairs: int
    released: int
    suppressed: int
    rows: int
    persons: int
    parents: int
    loss: float
    bound: float
    checks: int
    levels: Mapping[str, float]
    columns: Mapping[str, Mapping[str, object]]
    suppression_limit: float
    warnings: tuple[str, ...]
    together: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    moved: Mapping[str, int] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    kind: str = "child"

    @property
    def optimal(self) -> bool:
        """Whether no such release loses less."""
        return self.loss - self.bound <= 1e-9

    @property
    def guarantee(self) -> str:
        """The promise in words."""
        others = self.together
        at = len(self.settled)
        return guarantee_of(self.k, self.known, self.parent, (*others[:at], self.name, *others[at:]))

    @property
    def limits(self) -> str:
        """What is not promised."""
        beside = [name for name, c in self.columns.items() if c["role"] == "sensitive"]
        return LIMITS.format(known=self.known) + (BESIDE.format(columns=", ".join(beside)) if beside else "")

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = asdict(self)
        del found["name"]
        told = {"optimal": self.optimal, "guarantee": self.guarantee, "limits": self.limits}
        return {"kind": found.pop("kind"), **found, **told}

    def to_public(self) -> dict[str, object]:
        """What may go with the release: no count, no loss."""
        return {
            "kind": self.kind,
            "parent": self.parent,
            "columns": {name: dict(told) for name, told in self.columns.items()},
            "criteria": [{"name": "km-anonymity", "asked": self.k, "known": self.known, "guarantee": self.guarantee}],
            "limits": self.limits,
            "suppression_limit": self.suppression_limit,
            "status": "pseudonymised, not anonymous",
        }

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        share = f" ({100 * self.suppressed / self.pairs:.2f} %)" if self.pairs else ""
        beside = f" beside what {', '.join(self.settled)} shows" if self.settled else ""
        least = (
            f"the least possible of this kind{beside} (proven)"
            if self.optimal
            else least_of(f"{self.bound:.6f}{beside}", self.bound)
        )
        fewest = "no rows" if self.fewest is None else f"{self.fewest:,}"
        return [
            ("Child of", self.parent),
            ("Status", "pseudonymised, not anonymous"),
            ("Kᵐ-anonymity", f"{fewest} (asked: {self.k} of a class, for {self.known} known items)"),
            ("Released", f"{self.released:,} of {self.pairs:,} pairs of person and item, in {self.rows:,} rows"),
            ("Suppressed", f"{self.suppressed:,} pairs{share}"),
            ("Persons", f"{self.persons:,} of {self.parents:,} in {self.parent} have a row"),
            *((f"At {name}", f"{100 * part:.1f} % of the pairs") for name, part in self.levels.items()),
            ("Loss", f"{self.loss:.6f}, {least}"),
            ("Note", self.limits),
        ]


@dataclass(frozen=True, slots=True)
class ChildVerified:
    """What a re-check counted.

    Parameters
    ----------
    fewest
        Persons of a class who have a set of at most `known` items together, of all sets; None where there are none.
    compared
        Whether every row was compared with the source, which takes the key of the pseudonyms.
    """

    parent: str
    known: int
    k: int
    fewest: int | None
    rows: int
    persons: int
    parents: int
    compared: bool

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        fewest = "no rows" if self.fewest is None else f"{self.fewest:,}"
        source = "each row, and what is missing" if self.compared else "not compared: that takes the key (--key-file)"
        return [
            ("Child of", self.parent),
            ("Kᵐ-anonymity", f"{fewest} (asked: {self.k} of a class, for {self.known} known items)"),
            ("Released", f"{self.rows:,} rows of {self.persons:,} persons, of {self.parents:,} in {self.parent}"),
            ("Source", source),
        ]

    def to_dict(self) -> dict[str, object]:
        """The counts for JSON."""
        return asdict(self)
