"""Frozen results: what a run returns and `--json` writes. Fields are only ever added (interface.md, *Result*).

Everything here but `Result.to_public` is for the data holder: counts about suppressed people are statistics about
people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

HOLDER = "for the data holder only: counts of suppressed rows and of the source are statistics about people"


@dataclass(frozen=True, slots=True)
class Criterion:
    """A privacy criterion: what was asked, what the release achieves, and the promise in words."""

    name: str
    column: str | None
    asked: float
    achieved: float
    guarantee: str


@dataclass(frozen=True, slots=True)
class ColumnResult:
    """A released column: its level of `height` levels (0 = original), and its own part of the loss (0 … 1)."""

    role: str
    level: int | None = None
    level_name: str | None = None
    height: int | None = None
    hierarchy: str | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A criterion of a job, measured on any table: what is asked, what its worst class achieves, whether all meet it.

    `achieved` is None for a table without rows, and where a class has fewer than l values for recursive l-diversity.
    """

    name: str
    column: str | None
    asked: float
    achieved: float | None
    met: bool


@dataclass(frozen=True, slots=True)
class Risk:
    """Re-identification risk from class sizes (El Emam 2013), and from sensitive columns where a job asks for it.

    Parameters
    ----------
    prosecutor
        Greatest risk of a person known to be in the table: 1 / smallest class. 0 … 1.
    marketer
        Expected share of persons that a match of all would re-identify: classes / rows. 0 … 1.
    journalist
        Greatest risk of a person not known to be in the table; without a population table it is the prosecutor's.
    class_sizes
        (class size, number of classes), ascending.
    rows_below
        Rows in classes smaller than 2, 3, 5 and 11.
    one_over_m
        Persons that the riskiest one hides among when the columns of the job's m_concealing may be known (Mazzone
        2019, §5.2); None where it was not measured.
    worst_state
        The known columns of the knowledge state that adds most to that greatest risk.
    criteria
        The job's criteria beyond k, as `assess` measures them.
    """

    prosecutor: float
    marketer: float
    journalist: float
    journalist_is_prosecutor: bool
    class_sizes: tuple[tuple[int, int], ...]
    rows_below: Mapping[int, int]
    one_over_m: float | None = None
    worst_state: tuple[str, ...] = ()
    criteria: tuple[Measured, ...] = ()


def risk_of(sizes: Mapping[int, int]) -> Risk:
    """Risk from a class-size histogram (size -> classes); an empty table has none."""
    rows = sum(size * classes for size, classes in sizes.items())
    prosecutor = 1 / min(sizes) if sizes else 0.0
    return Risk(
        prosecutor=prosecutor,
        marketer=sum(sizes.values()) / rows if rows else 0.0,
        journalist=prosecutor,
        journalist_is_prosecutor=True,
        class_sizes=tuple(sorted(sizes.items())),
        rows_below={limit: sum(s * c for s, c in sizes.items() if s < limit) for limit in (2, 3, 5, 11)},
    )


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How the node was found; `gap` is best loss − proven bound in the loss's unit, 0 if `optimal`."""

    method: str
    loss: str
    optimal: bool
    gap: float
    lattice_size: int
    checks: int
    statements: int
    seconds: float
    certificate: str | None = None


@dataclass(frozen=True, slots=True)
class TableRelease:
    """One table release (interface.md, *Result*).

    `certificate` is the search's proof where it was asked for; `search.certificate` is the file it was written to.
    """

    name: str
    rows: int
    released: int
    suppressed: int
    node: Mapping[str, int]
    k: int
    classes: int
    criteria: tuple[Criterion, ...]
    one_over_m: float
    loss: Mapping[str, float]
    columns: Mapping[str, ColumnResult]
    risk: Mapping[str, Risk]
    suppression_by: Mapping[str, Mapping[str, float]]
    search: SearchResult
    written: tuple[str, ...]
    moved: Mapping[str, int]
    warnings: tuple[str, ...]
    kind: str = "table"
    certificate: Mapping[str, object] | None = None
    guarantee: Mapping[str, object] | None = None

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = asdict(replace(self, certificate=None))
        del found["name"], found["certificate"]
        if found["guarantee"] is None:
            del found["guarantee"]
        found["columns"] = {n: {k: v for k, v in c.items() if v is not None} for n, c in found["columns"].items()}
        return {"kind": found.pop("kind"), **found}

    def to_public(self) -> dict[str, object]:
        """What may go with the release: columns, levels and promises; no count, no loss."""
        columns = {
            n: {k: v for k, v in asdict(c).items() if v is not None and k != "loss"} for n, c in self.columns.items()
        }
        criteria = [
            {"name": c.name, "column": c.column, "asked": c.asked, "guarantee": c.guarantee} for c in self.criteria
        ]
        return {"kind": self.kind, "node": dict(self.node), "columns": columns, "criteria": criteria}


@dataclass(frozen=True, slots=True)
class Result:
    """A run: its releases by name."""

    releases: Mapping[str, TableRelease]
    sqldeid: str
    job_sha256: str
    source: Mapping[str, object]
    seconds: float
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return {
            "audience": HOLDER,
            "releases": {name: release.to_dict() for name, release in self.releases.items()},
            "sqldeid": self.sqldeid,
            "job_sha256": self.job_sha256,
            "source": dict(self.source),
            "seconds": self.seconds,
            "warnings": list(self.warnings),
        }

    def to_public(self) -> dict[str, object]:
        """What may be published with the releases (`--public`)."""
        return {
            "releases": {name: release.to_public() for name, release in self.releases.items()},
            "sqldeid": self.sqldeid,
        }
