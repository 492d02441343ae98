"""Refuse codes of another version of a code system: some look alike in both and would be misread.

E871 is a disorder of sodium in ICD-10 and a foreign object left in a body in ICD-9. Nothing but the version tells them
apart, so a column in which some codes can only be ICD-10's is not read as ICD-9's at all, nor the other way.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Ints
from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.codes import Codes
from sqldeid.hierarchy.column import Column, mask
from sqldeid.hierarchy.sources import HierarchySource, RuleSource
from sqldeid.hierarchy.stored import StoredSource

SPELT = (
    r"\s*(?:i(?:cd)?)?[\s_.-]*(?:v|vers?|version|rev(?:ision)?)?[\s_.-]*0*{}(?:\.0+)?"
    r"(?:[\s_.-]*(?:cm|pcs|proc|gm|who|ca|cn))*\s*"
)
"""How columns of versions spell one: 9, 9.0, ICD9CM, ICD-9-CM, ICD9Proc."""


def codes_of(source: HierarchySource) -> Codes | None:
    """The code system that a hierarchy reads, if it knows the looks of another version."""
    found = source.source if isinstance(source, StoredSource) else source
    rule = found.rule if isinstance(found, RuleSource) else None
    return rule if isinstance(rule, Codes) and rule.other else None


def reads_versions(source: HierarchySource) -> bool:
    """Whether a hierarchy reads values that have their version before them."""
    found = source.source if isinstance(source, StoredSource) else source
    return isinstance(found, RuleSource) and hasattr(found.rule, "systems")  # `Versioned`, which few runs load


def refuse_versions(source: HierarchySource, values: pa.Array, rows: Ints | None = None) -> None:
    """Refuse a column with codes that can only be of another version.

    Parameters
    ----------
    values
        Distinct values of the column.
    rows
        Rows of each, to be counted in the message.

    Raises
    ------
    HierarchyError
        If there are such codes; with their number.
    """
    rule = codes_of(source)
    column = None if rule is None else Column.of(values, numeric=False)
    if rule is None or column is None or column.kind != "text":
        return
    other = mask(pc.match_substring_regex(column.texts, f"^(?:{rule.other})\\s*$"))
    count = int(other.sum())
    if count:
        told = "" if rows is None else f" ({int(np.asarray(rows)[other].sum()):,} rows)"
        raise HierarchyError(
            f"hierarchy {source.name}: {count:,} {'value is' if count == 1 else 'values are'} codes of another version"
            f"{told}, and codes that both versions have (E871) mean something else in each. Keep one version with "
            f'where = "icd_version = {rule.version or 9}" or the like, of a stack in its where; or map the others to '
            "this one in a source query, or give a hierarchy file that has all codes"
        )
