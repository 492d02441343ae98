"""Recognise columns of codes by name and look: ICD of either version or both, ATC, countries; what share is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.hierarchy import UncoveredValues, open_source
from sqldeid.insight.profile import ColumnFacts
from sqldeid.insight.words import spelt, words_of
from sqldeid.sql import column

LEAST = 0.95
"""Share of a column's different values that a hierarchy must read to be proposed."""

MOST_VALUES = 200_000
"""Different values up to which a column is read for this."""

_COUNTRIES = frozenset(
    "country land nation nationality citizenship staatsangehorigkeit herkunftsland pais pays".split()
)
_ILL = frozenset("icd dx diagnosis diagnose diagnoses diagnosen diag".split())
_DONE = frozenset("proc procedure procedures prozedur ops pcs".split())
_DRUGS = frozenset("atc".split())
_CODES = frozenset("icd icd9 icd10 code codes atc pcs dx px".split())
_VERSIONS = frozenset("version vers ver vocabulary system type rev revision".split())


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of codes.

    Parameters
    ----------
    hierarchy
        The shipped one that reads most of them.
    share
        Share of the different values that it reads; 0 … 1.
    version
        The column that tells versions, where the hierarchy needs one.
    """

    hierarchy: str
    share: float
    version: str | None = None

    @property
    def told(self) -> str:
        """What is said of it; a count of values is for the data holder."""
        return f"hierarchy {self.hierarchy} reads {100 * self.share:.1f} % of its different values"

    @property
    def keys(self) -> dict[str, object]:
        """As a job writes it."""
        version = {} if self.version is None else {"version": self.version}
        uncovered = {} if self.share == 1 else {"uncovered": "top"}
        return {"hierarchy": self.hierarchy, **version, **uncovered}


def find_coded(columns: Sequence[ColumnFacts], table: str, relation: exp.Expr, engine: Engine) -> Mapping[str, Coded]:
    """The columns of codes, by name. Cost: one statement, which scans the columns whose names speak of codes.

    Different values come here; none is told.

    Parameters
    ----------
    table
        What the table is called: `icd_code` of one of procedures is a procedure.
    """
    asked = [c for c in columns if c.kind == "text" and 0 < c.different <= MOST_VALUES and _systems(c.name, table)]
    if not asked:
        return {}
    listed = [{"number": i, "column": column(c.name, "s")} for i, c in enumerate(asked)]
    read = engine.ask("insight/list_texts", source=relation, columns=listed).to_pylist()
    version = next((c.name for c in columns if _tells_version(c)), None)
    found: dict[str, Coded] = {}
    for i, c in enumerate(asked):
        values = sorted({row["value"] for row in read if row["number"] == i and row["value"] is not None})
        coded = _best(_systems(c.name, table), values, version)
        if coded is not None:
            found[c.name] = coded
    return found


def _systems(name: str, table: str) -> tuple[str, ...]:
    """The hierarchies that a column of that name may be read by."""
    words, around = ({*words_of(text), *spelt(text)} for text in (name, table))
    if words & _COUNTRIES:
        return ("world/country",)
    if words & _DRUGS:
        return ("atc/substances",)
    if not words & (_ILL | _DONE):
        return ()
    ill = words & (_ILL - {"icd"}) or not around & _DONE
    kind = "procedures" if words & _DONE or not ill else "diagnoses"
    return (f"icd9/{kind}", f"icd10/{kind}")


def _tells_version(c: ColumnFacts) -> bool:
    words = set(words_of(c.name))
    return c.kind in ("text", "integer") and bool(words & _VERSIONS) and bool(words & (_ILL | _DONE | _CODES))


def _best(systems: Sequence[str], values: Sequence[str], version: str | None) -> Coded | None:
    """The hierarchy that reads most values, or both versions' where a column tells them apart; None below `LEAST`."""
    if not values:
        return None
    covered = {name: _covered(name, values) for name in systems}
    shares = {name: len(read) / len(values) for name, read in covered.items()}
    name = max(shares, key=lambda n: shares[n])
    alike = [n for n in shares if shares[n] >= LEAST]
    if len(systems) > 1 and version is not None:
        both = len(set[int]().union(*covered.values())) / len(values)
        of = name.partition("/")[2]
        return Coded(f"icd/{of}", both, version) if both >= LEAST else None
    return Coded(name, shares[name]) if len(alike) == 1 else None


def _covered(name: str, values: Sequence[str]) -> set[int]:
    try:
        open_source(name, Path()).bind(pa.array(values, pa.string()))
    except UncoveredValues as error:
        return set(range(len(values))) - set(error.indices.tolist())
    return set(range(len(values)))
