"""What a release of tables by Mondrian tells of itself. Everything but `to_public` is for the data holder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from sqldeid.attacked import Attacks
from sqldeid.result import Criterion

LIMITS = "one value is recoded differently from row to row; Mondrian is greedy, so a lesser loss may exist"
CUTS = (
    "a class that was not cut where k allows it tells that a side failed another criterion, which can give a sensitive "
    "value to whoever knows who is in the table"
)
"""Of releases with l-diversity or t-closeness, beside `LIMITS`."""


@dataclass(frozen=True, slots=True)
class PartitionRelease:
    """What was released; counts are for the data holder.

    Parameters
    ----------
    unit
        What k counts: ``person``, or ``row`` where no key tells persons.
    moved
        Rows and bytes (as Arrow) that came out of the source's engine or went to it while this release was made.
    attacks
        Which attacks were left out, and why; None where the job asks for none.
    """

    name: str
    rows: int
    released: int
    k: int
    classes: int
    columns: Mapping[str, Mapping[str, object]]
    warnings: tuple[str, ...]
    asked: int
    heuristic: str = "range"
    criteria: tuple[Criterion, ...] = ()
    moved: Mapping[str, int] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    attacks: Attacks | None = None
    kind: str = "table"
    method: str = "mondrian"
    unit: str = "person"

    @property
    def limits(self) -> str:
        """What is not promised."""
        return f"{LIMITS}; {CUTS}" if self.criteria else LIMITS

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = asdict(replace(self, attacks=None))
        del found["name"], found["attacks"]
        if self.attacks is not None:
            found["attacks"] = self.attacks.to_dict()
        return {"kind": found.pop("kind"), **found, "suppressed": 0, "limits": self.limits}

    def to_public(self) -> dict[str, object]:
        """What may go with the release: no count."""
        criteria: list[dict[str, object]] = [{"name": "k-anonymity", "asked": self.asked}]
        criteria += [{"name": c.name, "column": c.column, "asked": c.asked} for c in self.criteria]
        return {
            "kind": self.kind,
            "method": self.method,
            "columns": dict(self.columns),
            "criteria": criteria,
            "limits": self.limits,
        }

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        return [
            ("Rows", f"{self.released:,} of {self.rows:,} released"),
            ("Classes", f"{self.classes:,}, smallest {self.k}"),
            *_shown(self.criteria),
            *(self.attacks.facts() if self.attacks is not None else ()),
            ("Note", self.limits),
        ]


@dataclass(frozen=True, slots=True)
class PartitionVerified:
    """What a re-check counted."""

    rows: int
    released: int
    k: int
    classes: int
    criteria: tuple[Criterion, ...] = ()

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        counts: list[tuple[str, object]] = [("Rows", f"{self.released:,} of {self.rows:,}")]
        return [*counts, ("Classes", f"{self.classes:,}, smallest {self.k}"), *_shown(self.criteria)]

    def to_dict(self) -> dict[str, object]:
        """The counts for JSON."""
        return asdict(self)


def _shown(criteria: tuple[Criterion, ...]) -> list[tuple[str, object]]:
    return [(c.name, f"{c.column}: {c.achieved:.4g} in the worst class ({c.asked:g} asked)") for c in criteria]
