"""The coarser labels that rows of a release by local recoding show, and what they stand for.

Only labels of released rows are named, those above level 0, and of what they stand for what `tables.write.codebook` may
tell. Pure: the release was compared with these labels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sqldeid.arrays import Ints
from sqldeid.result import Code
from sqldeid.tables.fold.fold import Coded
from sqldeid.tables.local.result import LocalColumn
from sqldeid.tables.write.codebook import SHOWN, code_of


def with_labels(column: LocalColumn, coded: Coded, levels: Ints, leaf: Ints, rows: Ints) -> LocalColumn:
    """A column with its labels between level 0 and the top, the most frequent ones, and with the text of the top.

    Parameters
    ----------
    levels, leaf, rows
        Level, leaf and rows of each released combination; each of shape (combinations,).
    """
    hierarchy = coded.hierarchy
    shown: Counter[tuple[str | None, int]] = Counter()
    for level in sorted(set(levels.tolist()) - {0}):
        here = levels == level
        labels = coded.qi.labels(hierarchy, level)[hierarchy.groups[level][leaf[here]]]
        for label, n in zip(labels.tolist(), rows[here].tolist(), strict=True):
            shown[None if label is None else str(label), level] += n
    top = hierarchy.height - 1
    tops = [label for label, level in shown if level == top and label is not None]
    found: dict[str | None, Code] = {}
    for (label, level), _ in sorted(shown.items(), key=lambda one: (-one[1], str(one[0][0]))):
        code = code_of(label, coded.qi.hierarchy, level)
        if level == top or (label in tops and top > 0):
            continue
        if label in found and found[label] != code:  # of two levels, and not the same there
            code = Code(code.shown)
        found[label] = code
    codes = tuple(found.values())
    return replace(column, codes=codes[:SHOWN], more_codes=len(codes) > SHOWN, top=tops[0] if tops else None)
