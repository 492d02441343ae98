"""Codes of two versions of ICD in one column, each value with its version before it: `9:4280`, `ICD-10:I50.9`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Ints
from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.codes import Codes
from sqldeid.hierarchy.column import Column
from sqldeid.hierarchy.level import Level
from sqldeid.hierarchy.model import label_array
from sqldeid.hierarchy.versions import SPELT

MARK = ":"
"""Between version and code."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """A code system for each version; what is of none of them is uncovered.

    A label says the version, so that what both call V10 stays two things. The system with fewer levels repeats its
    finest.

    Parameters
    ----------
    systems
        By version.
    name
        For messages.
    """

    systems: tuple[tuple[str, Codes], ...]
    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """One per level, as the system with most levels calls them."""
        return max((codes.names for _, codes in self.systems), key=len)

    def levels(self, column: Column) -> list[Level]:
        """Group per level.

        Raises
        ------
        HierarchyError
            If the column is not text.
        """
        if column.kind != "text":
            raise HierarchyError(f"hierarchy {self.name}: the column holds {column.kind} values. Codes must be text")
        parts = [(text or "").partition(MARK) for text in column.texts.to_pylist()]
        height = len(self.names)
        ids = [np.full(len(parts), -1, dtype=np.int64) for _ in range(height)]
        labels: list[list[str]] = [[] for _ in range(height)]
        for version, system in self.systems:
            spelt = re.compile(SPELT.format(version), re.IGNORECASE)
            own = [code if mark and spelt.fullmatch(said) else None for said, mark, code in parts]
            found = _read(system, own)
            for x, level in enumerate([found[0]] * (height - len(found)) + found):
                there: Ints = level.ids
                ids[x] = np.where(there >= 0, there + len(labels[x]), ids[x])
                labels[x] += [f"ICD-{version} {label}" for label in level.labels]
        return [Level(i, label_array(names)) for i, names in zip(ids, labels, strict=True)]


def _read(system: Codes, codes: list[str | None]) -> list[Level]:
    """The levels of one version's codes; -1 where a value is none of it."""
    texts = pa.array(codes, pa.string())
    distinct = pc.unique(texts)
    place: Ints = pc.index_in(texts, value_set=distinct).to_numpy(zero_copy_only=False).astype(np.int64)
    return [Level(level.ids[place], level.labels) for level in system.levels(Column.of(distinct, numeric=False))]
