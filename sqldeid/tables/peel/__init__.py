"""Local recoding as arrays: peel classes off the lattice from the bottom up, improve them, bound what must be lost."""

from __future__ import annotations

from sqldeid.tables.peel.partition import partition
from sqldeid.tables.peel.problem import Attribute, Judged, LocalProblem, Partition

__all__ = ["Attribute", "Judged", "LocalProblem", "Partition", "partition"]
