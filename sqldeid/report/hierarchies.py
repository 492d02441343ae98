"""A hierarchy on the terminal: its levels, and what becomes of its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sqldeid.report.text import cell, count, plain, print_table, put, table

if TYPE_CHECKING:
    from sqldeid.hierarchy import HierarchyReport


def print_report(found: HierarchyReport, to: Console) -> None:
    """Print levels with their numbers of groups, and what data was looked at."""
    put(to, Text(plain(found.name), style="bold"), _leaves(found) if found.leaves else "")
    if found.height:
        made = table("Level", "Name", "Groups", right=(0, 2))
        for level, name in enumerate(found.level_names):
            made.add_row(cell(level), cell(name), cell(f"{found.groups[level]:,}" if found.groups else ""))
        print_table(made, to)
    if found.values:
        null = ", NULL among them" if found.null else ""
        covered = f"{found.values - found.uncovered:,} of {count(found.values, 'value')} covered{null}"
        to.print()
        put(to, covered)
    if found.unused:
        put(
            to,
            f"{count(found.unused, 'leaf is', 'leaves are')} in no row; each counts in losses as a value that is there",
        )


def _leaves(found: HierarchyReport) -> str:
    """How many leaves, and how long their numbers are: a code of a release has room for 63 bits a column."""
    null = ", NULL among them" if found.null else ""
    return f": {count(found.leaves, 'leaf', 'leaves')}{null}; numbered with {count(found.bits, 'bit')} (63 at most)"


def print_values(values: Iterable[object], to: Console) -> None:
    """Print values of the source, a line each."""
    to.print()
    for value in values:
        put(to, f"  {plain(str(value))}")


def print_shipped(steps: Mapping[str, tuple[str | None, ...]], maps: Iterable[str], to: Console) -> None:
    """Print the names that a job may give, with the steps of each; then the maps of items to variables, for series."""
    made = table("Name", "Its levels, or what becomes of one value")
    for name, own in steps.items():
        made.add_row(cell(name), cell(_arrows(own)))
    print_table(made, to)
    to.print()
    put(to, f"For the variables of series: {', '.join(maps)}")


def _arrows(labels: Iterable[str | None]) -> str:
    return " → ".join("NULL" if label is None else plain(label) for label in labels)


def print_paths(paths: Iterable[tuple[str | None, ...]], leaves: int, to: Console) -> None:
    """Print leaves with their label on each level, and how many more there are."""
    to.print()
    printed = 0
    for path in paths:
        put(to, f"  {_arrows(path)}")
        printed += 1
    if printed < leaves:
        put(to, f"  and {leaves - printed:,} more (-v prints all)", style="dim")
