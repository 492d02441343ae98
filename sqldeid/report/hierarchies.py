"""A hierarchy on the terminal: its levels, and what becomes of its values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sqldeid.report.text import cell, count, plain, print_table, put, table

if TYPE_CHECKING:
    from sqldeid.hierarchy import HierarchyReport


def print_report(found: HierarchyReport, to: Console) -> None:
    """Print levels with their numbers of groups, and what data was looked at."""
    leaves = f": {count(found.leaves, 'leaf', 'leaves')}, {count(found.bits, 'bit')}" if found.leaves else ""
    put(to, Text(plain(found.name), style="bold"), leaves)
    if found.height:
        made = table("Level", "Name", "Groups", right=(0, 2))
        for level, name in enumerate(found.level_names):
            made.add_row(cell(level), cell(name), cell(f"{found.groups[level]:,}" if found.groups else ""))
        print_table(made, to)
    if found.values:
        covered = f"{found.values - found.uncovered:,} of {count(found.values, 'value')} covered"
        to.print()
        put(to, covered)
    if found.unused:
        put(
            to,
            f"{count(found.unused, 'leaf is', 'leaves are')} in no row; each counts in losses as a value that is there",
        )


def print_paths(paths: Iterable[tuple[str | None, ...]], leaves: int, to: Console) -> None:
    """Print leaves with their label on each level, and how many more there are."""
    to.print()
    printed = 0
    for path in paths:
        put(to, "  " + " → ".join("NULL" if label is None else plain(label) for label in path))
        printed += 1
    if printed < leaves:
        put(to, f"  and {leaves - printed:,} more (-v prints all)", style="dim")
