"""What `explore` found, for the terminal and as charts; names of columns and keyword groups, never a data value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sqldeid.findings import Explored, ExploredSequences, ExploredText, Uniqueness
from sqldeid.report.terminal import HEAD
from sqldeid.report.text import cell, count, facts, plain, print_table, put, share, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS_SHOWN = 5
"""Sets of each size that are printed, unless all are asked for."""

BORDERS_SHOWN = 10
"""Sets of a border that are printed, unless all are asked for."""

BARS = 20
"""Bars of a chart."""

PARTS = ("alone", "among 2 to 4", "among 5 to 10")


def print_explored(found: Explored, to: Console, *, verbose: bool = False) -> None:
    """Print the columns, the sets that single out most, and the borders.

    Parameters
    ----------
    verbose
        Whether all sets are printed.
    """
    put(to, HEAD, style="dim")
    _print_size(found.table, found.rows, found.persons, found.person, to)
    print_table(_columns(found), to)
    sets = [s for s in found.sets if len(s.columns) > 1]
    if sets:
        to.print()
        put(to, "Sets of columns, those first that single out most:")
        shown = sets if verbose else _first(sets)
        print_table(_uniqueness(shown, "Columns", found.person), to)
    enough = f"{100 * found.enough:g} %"
    _print_border(f"Smallest sets that single out {enough} or more", found.smallest, to, verbose)
    _print_border(f"Largest sets that single out less than {enough}", found.largest, to, verbose)
    print_table(facts(list(_facts(found))), to)


def _print_size(name: str, rows: int, persons: int, person: str | None, to: Console) -> None:
    to.print()
    of = f"of {count(persons, 'person')} ({plain(person)})" if person else "each a person"
    put(to, Text(plain(name), style="bold"), f": {count(rows, 'row')}, {of}")


def _columns(found: Explored) -> Table:
    alone = {s.columns[0]: s for s in found.sets if len(s.columns) == 1}
    made = table("Column", "Distinct", "Bits", "NULL", "Alone", "< 5", "< 11", right=(1, 2, 3, 4, 5, 6))
    for c in found.columns:
        shares = _shares(alone[c.name]) if c.name in alone else ("", "", "")
        nulls = share(c.nulls, found.rows) if c.nulls else ""
        made.add_row(
            cell(c.name), cell(f"{c.distinct:,}"), cell(f"{c.entropy_bits:.2f}"), cell(nulls), *map(cell, shares)
        )
    return made


def _shares(s: Uniqueness) -> tuple[str, str, str]:
    alone, five, eleven = (share(s.persons_below[n], s.persons) for n in (2, 5, 11))
    return alone, five, eleven


def _first(sets: Sequence[Uniqueness]) -> list[Uniqueness]:
    """Of each size those that single out most; they are in that order."""
    return [s for _, group in groupby(sets, key=lambda s: len(s.columns)) for s in islice(group, SETS_SHOWN)]


def _uniqueness(sets: Iterable[Uniqueness], heading: str, person: str | None) -> Table:
    size = "Persons in one" if person else "Rows in one"
    made = table(heading, "Classes", size, "Alone", "< 5", "< 11", right=(1, 2, 3, 4, 5))
    for s in sets:
        made.add_row(
            cell(", ".join(s.columns)), cell(f"{s.classes:,}"), cell(f"{s.mean_size:,.2f}"), *map(cell, _shares(s))
        )
    return made


def _print_border(title: str, sets: Sequence[tuple[str, ...]], to: Console, verbose: bool) -> None:
    if not sets:
        return
    to.print()
    put(to, f"{title}:")
    to.print()
    for columns in sets if verbose else sets[:BORDERS_SHOWN]:
        put(to, "  ", ", ".join(plain(c) for c in columns))
    if not verbose and len(sets) > BORDERS_SHOWN:
        put(to, f"  and {len(sets) - BORDERS_SHOWN} more (-v)", style="dim")


def _facts(found: Explored) -> Iterable[tuple[str, object]]:
    yield "Alone", "share of the persons with a row that is nobody else's; < 5, < 11: among fewer than that"
    tried = f"{found.tried:,} of {count(found.possible, 'set')}, {count(found.statements, 'statement')}"
    untried = found.possible - found.tried
    if untried > 0 and not found.largest:
        tried += f"; the others contain a set that singles out {100 * found.enough:g} % or more"
    elif untried > 0:
        tried += "; they decide the others"
    yield "Tried", tried
    for name, reason in found.left_out.items():
        yield "Left out", f"{plain(name)} ({reason})"


def print_sequences(found: ExploredSequences, to: Console, *, verbose: bool = False) -> None:
    """Print what patterns of items tell apart; there is no more to tell where `verbose`."""
    put(to, HEAD, style="dim")
    to.print()
    put(to, Text(plain(found.table), style="bold"), f": items of {found.owners:,} owners ({_names(found.per)})")
    print_table(_sequences(found), to)
    facts_ = [("Items", "places that are known; in braces, without their order. Who has too few is not counted")]
    facts_ += [("Alone", "share of the persons with a pattern that is nobody else's; < 5, < 11: among fewer than that")]
    if found.ties:
        facts_ += [
            ("Ties", f"{count(found.ties, 'item')} that the order leaves open were taken in the order of values")
        ]
    print_table(facts(list(facts_)), to)


def _names(names: Iterable[str]) -> str:
    return ", ".join(plain(n) for n in names)


def _sequences(found: ExploredSequences) -> Table:
    headings = ("Items", "Owners", *(("Persons",) if found.person else ()), "Classes", "Mean", "Alone", "< 5", "< 11")
    made = table(*headings, right=tuple(range(1, len(headings))))
    for p in found.patterns:
        persons = (cell(f"{p.persons:,}"),) if found.person else ()
        size = (cell(f"{p.classes:,}"), cell(f"{p.mean_size:,.2f}"))
        made.add_row(cell(p.columns[0]), cell(f"{p.rows:,}"), *persons, *size, *map(cell, _shares(p)))
    return made


def print_text(found: ExploredText, to: Console, *, verbose: bool = False) -> None:
    """Print what the beginnings of texts tell apart, and how many hold keywords; no more where `verbose`."""
    put(to, HEAD, style="dim")
    _print_size(f"{found.table}.{found.column}", found.rows, found.persons, found.person, to)
    if found.prefixes:
        print_table(_uniqueness(found.prefixes, "Characters", found.person), to)
    if found.keywords:
        made = table("Keywords", "Rows", "", *(("Persons", "") if found.person else ()), right=(1, 2, 3, 4))
        for k in found.keywords:
            persons = (f"{k.persons:,}", share(k.persons, found.persons)) if found.person else ()
            made.add_row(cell(k.group), *map(cell, (f"{k.rows:,}", share(k.rows, found.rows), *persons)))
        print_table(made, to)


def draw_explored(found: Explored) -> Figure:
    """Bars of the sets that single out most, of every size."""
    ranked = sorted(found.sets, key=lambda s: (-s.alone, len(s.columns), s.columns))
    per_size = {s.columns for s in _first(found.sets)}
    shown = [s for s in ranked if s.columns in per_size and s.persons_below[11]][:BARS] or ranked[:1]
    return _bars([(", ".join(s.columns), s) for s in shown], f"{found.table}: who stands alone", found.persons)


def draw_sequences(found: ExploredSequences) -> Figure:
    """Bars of the patterns."""
    rows = [(f"items {p.columns[0]} ({p.rows:,} owners)", p) for p in found.patterns]
    return _bars(rows, f"{found.table}: known items of a sequence", None)


def draw_text(found: ExploredText) -> Figure:
    """Bars of the beginnings."""
    rows = [(f"{p.columns[0]} characters", p) for p in found.prefixes]
    return _bars(rows, f"{found.table}.{found.column}: known beginnings", found.persons)


def _bars(rows: Sequence[tuple[str, Uniqueness]], title: str, persons: int | None) -> Figure:
    from sqldeid.report.charts import Bar, bars

    made = []
    for label, s in rows:
        below = [s.persons_below[n] / s.persons if s.persons else 0.0 for n in (2, 5, 11)]
        made.append(Bar(label, (below[0], below[1] - below[0], below[2] - below[1])))
    of = "" if persons is None else f" of {persons:,}"
    return bars(made, PARTS, title=title, xlabel=f"persons{of} (%), by how many look alike")
