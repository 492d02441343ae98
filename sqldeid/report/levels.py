"""Mixed levels in words: which share of the rows is at which level of a column's hierarchy."""

from __future__ import annotations

from collections.abc import Sequence


def mixed_levels(levels: Sequence[float]) -> str:
    """Shares of rows by level in a sentence; level 0 is as in the source, the last tells nothing of the value."""
    top = len(levels) - 1
    told = [f"{level_share(share)} {_at(x, top)}" for x, share in enumerate(levels) if share]
    return ", ".join(told) or "no row"


def level_share(share: float) -> str:
    """A share in percent; what is neither nothing nor all is never rounded to it."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %".replace(".0 %", " %")


def _at(level: int, top: int) -> str:
    if level == 0:
        return "as in the source"
    return "hidden" if level == top else f"at level {level}"
