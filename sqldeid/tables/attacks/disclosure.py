"""Attribute disclosure: what the classes themselves tell of sensitive values, to who knows whose class is whose.

It is counted on all released rows and not estimated, and no control group takes part: whoever fits a class learns it,
released or not. A class tells a value with certainty where all its rows have it. Otherwise it moves what is believed:
with p the share of a value in a class and q its share of the source, p/q is how many times likelier the value has
become, and (1 - p)/(1 - q) how many times likelier that somebody does not have it.

Source: Machanavajjhala et al. 2007, §2; Li et al. 2007, §3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.attacked import Achieved, Estimate, counted, percent
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Step
from sqldeid.tables.attacks.base import HELD_BACK, SUPPRESSED, Attack, Attacked, Recoded
from sqldeid.tables.attacks.folding import leaves_of
from sqldeid.tables.attacks.known import Known
from sqldeid.tables.attacks.minimal import number_columns
from sqldeid.tables.plan.plan import TablePlan


@dataclass(frozen=True, slots=True)
class Disclosed:
    """What classes tell of one column; means are over released rows.

    Parameters
    ----------
    alike
        Share of rows in a class of one value.
    positive_max, positive_mean
        The greatest p/q of a class's values.
    negative_max, negative_mean
        The greatest (1 - p)/(1 - q) of all values, those that the class lacks among them.
    skewness_max, skewness_mean
        Half the sum of |p - q|, from 0 to 1.
    share_max, share_mean
        The greatest share that one value has of a class: of all classes, and in the mean.
    """

    column: str
    alike: Estimate
    positive_max: float
    positive_mean: float
    negative_max: float
    negative_mean: float
    skewness_max: float
    skewness_mean: float
    share_max: float
    share_mean: float

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "alike": self.alike.to_dict()}


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What classes tell, by column."""

    columns: tuple[Disclosed, ...]

    @property
    def said(self) -> str:
        """In a few words, for the summary."""
        worst = max(self.columns, key=lambda c: (c.alike.value, c.positive_mean))
        alike = f"{percent(worst.alike.value)} % of the rows are in a class with one value of {worst.column}"
        if worst.alike.value:
            return alike
        return f"{alike}, and no value has more than {percent(worst.share_max)} % of its class"

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return {"columns": [c.to_dict() for c in self.columns]}


def disclose(known: Known, class_of: Ints) -> Disclosure:
    """What the classes of a release tell of each attacked column.

    Parameters
    ----------
    class_of
        Class of each of the known cells, `SUPPRESSED` where it is not released; shape (cells,).

    Cost: a statement for each column.
    """
    owned = put_owned(known, class_of)
    found = []
    for secret in known.secrets:
        row = known.bench.row("tables/attacks/disclose_values", cells=known.cells, owned=owned, code=secret.code)
        alike = counted(int(row.pop("alike")), int(row.pop("rows")))
        found.append(Disclosed(secret.name, alike, **{name: float(x) for name, x in row.items()}))
    known.bench.drop(owned)
    return Disclosure(tuple(found))


def put_owned(known: Known, class_of: Ints) -> exp.Table:
    """The released cells with their class, on the bench."""
    here = np.flatnonzero(class_of != SUPPRESSED)
    return known.bench.put(f"{known.name}_owned", pa.table({"id": here, "class": class_of[here]}))


def classes_of(known: Known, recoded: Recoded) -> tuple[Ints, Ints]:
    """The combination of each known cell, by its place in `recoded`, and its class; both of shape (cells,)."""
    read = known.bench.ask("tables/attacks/read_cells", cells=known.cells, words=known.words)
    words = np.stack([read.column(w.name).to_numpy().astype(np.int64) for w in known.words])
    leaf = [leaves_of(c, words) for c in known.columns]
    size = len(recoded.rows)
    both = [np.concatenate([there, own]) for there, own in zip(recoded.leaf, leaf, strict=True)]
    number = number_columns(both)
    place = np.empty(int(number.max(initial=-1)) + 1, dtype=np.int64)
    place[number[:size]] = np.arange(size)
    combination = place[number[size:]]
    return combination, np.asarray(recoded.owner[combination])


def _left_out(attacked: Attacked) -> str:
    if attacked.known is None:
        return "its classes are too many to be brought into the memory limit"
    if not attacked.whole:
        return HELD_BACK
    return "" if attacked.known().secrets else "the release shows no sensitive column as it is, and none of its secrets"


def _make(attacked: Attacked) -> Achieved:
    if attacked.known is None:
        raise ValueError("nothing is known of the source")
    known = attacked.known()
    return disclose(known, classes_of(known, attacked.read())[1])


def _steps(plan: TablePlan) -> Iterator[Step]:
    yield from as_needed("tables/attacks/read_cells", "tables/attacks/disclose_values")


ATTACK = Attack("disclosure", _left_out, _make, _steps)
