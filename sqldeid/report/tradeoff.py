"""What k and the suppression limit cost, as tables on the terminal and as an interactive page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sqldeid.report.text import cell, count, number, plain, print_table, put, share, table
from sqldeid.report.words import levels_shown
from sqldeid.traded import GreatestK, LocalPoint, Tradeoff, TradePoint

if TYPE_CHECKING:
    import plotly.graph_objects as go

HEAD = "For the data holder only: these figures are statistics about people."
WHOLE, LOCAL = "full-domain", "local"
"""What the two families are called."""

LOSSES = {
    "loss": "loss of information (0 to 1)",
    "prec": "mean generalisation height (0 to 1)",
    "dm_star": "sum of squared class sizes (rows²)",
    "entropy": "entropy lost (bits)",
    "height": "sum of levels",
    "ambiguity": "ambiguity (bits per row)",
    "normalised_entropy": "share of entropy lost (0 to 1)",
    "class_size": "1 - 1/rows of a class on average",
    "payout": "share of the greatest payout lost (0 to 1)",
}
"""Axis titles."""


def print_tradeoff(found: Mapping[str, Tradeoff], to: Console, *, verbose: bool = False) -> None:
    """Print for each release the least loss by k (down) and suppression limit (across), and what it suppresses.

    Parameters
    ----------
    verbose
        Whether each pair's node is printed.
    """
    put(to, HEAD, style="dim")
    for traded in found.values():
        to.print()
        put(to, Text(plain(traded.name), style="bold"), f": {traded.loss} (share of rows suppressed)")
        print_table(_losses(traded), to)
        if verbose:
            print_table(_nodes(traded.points), to)
        if traded.inverse:
            to.print()
            put(to, f"Greatest k by greatest {traded.loss} accepted (before suppression)")
            print_table(_greatest(traded), to)
        to.print()
        checked = f"{count(traded.checks, 'check')}, each of one of {count(traded.lattice_size, 'node')} for one k"
        more = "" if verbose else " -v prints the levels of each."
        put(to, f"{checked} for {count(len(traded.points), 'pair')}, {traded.seconds:.1f} s.{more}")
        if traded.local:
            put(to, f"{WHOLE}: one node for all rows. {LOCAL}: each class has its own, and what it must lose at least.")
        for warning in traded.warnings:
            put(to, Text("Warning: ", style="yellow"), plain(warning))


def _limits(points: Iterable[TradePoint]) -> list[float]:
    return sorted({p.suppression_limit for p in points})


def _losses(traded: Tradeoff) -> Table:
    limits = _limits(traded.points)
    names = ["recoding"] if traded.local else []
    right = tuple(i for i in range(len(limits) + 1 + len(names)) if i != len(names))
    made = table("k", *names, *(f"limit {limit:g}" for limit in limits), right=right if names else (0, *right))
    for k in sorted({p.k for p in traded.points}):
        row = [p for p in traded.points if p.k == k]
        made.add_row(cell(k), *([cell(WHOLE)] if traded.local else []), *(cell(_cost(p, traded.rows)) for p in row))
        if local := [p for p in traded.local if p.k == k]:
            made.add_row(cell(""), cell(LOCAL), *(cell(_local_cost(p, traded.rows)) for p in local))
            made.add_row(cell(""), cell("at least"), *(cell(_number(p.bound)) for p in local))
    return made


def _local_cost(point: LocalPoint, rows: int) -> str:
    if point.loss is None:
        return "none"
    return f"{point.loss:.4g} ({100 * (point.suppressed or 0) / rows:.1f} %)"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _cost(point: TradePoint, rows: int) -> str:
    if point.loss is None:
        return "none"
    proven = "" if point.optimal else "≤ "
    return f"{proven}{point.loss:.4g} ({100 * (point.suppressed or 0) / rows:.1f} %)"


def _nodes(points: Iterable[TradePoint]) -> Table:
    made = table("k", "limit", "node", right=(0, 1))
    for p in points:
        levels = "no node is admissible" if p.node is None else ", ".join(f"{c} {x}" for c, x in p.node.items())
        made.add_row(cell(p.k), cell(f"{p.suppression_limit:g}"), cell(levels))
    return made


def _greatest(traded: Tradeoff) -> Table:
    limits = sorted({g.suppression_limit for g in traded.inverse})
    made = table("max_loss", *(f"limit {limit:g}" for limit in limits), right=tuple(range(len(limits) + 1)))
    for most in sorted({g.max_loss for g in traded.inverse}):
        ks = [g.k for g in traded.inverse if g.max_loss == most]
        made.add_row(cell(f"{most:g}"), *(cell("none" if k is None else f"{k:,}") for k in ks))
    return made


def tradeoff_page(found: Mapping[str, Tradeoff]) -> str:
    """One self-contained HTML page: a chart and a table for each release.

    Raises
    ------
    JobError
        If the extra `report` is not installed.
    """
    from sqldeid.report.html import render
    from sqldeid.report.interactive import embed, library

    releases = [
        {"traded": t, "chart": embed(tradeoff_figure(t), f"tradeoff-{i}")} for i, t in enumerate(found.values())
    ]
    title = "k and suppression: what they cost"
    return render("tradeoff.html.jinja", title=title, head=HEAD, releases=releases, library=library())


def tradeoff_of(tree: Mapping[str, Any]) -> Tradeoff:
    """The trade-off as JSON holds it, read back; what a later version added is left out."""
    known = {f.name for f in fields(Tradeoff)}
    found = {name: value for name, value in tree.items() if name in known}
    found["points"] = tuple(TradePoint(**p) for p in tree["points"])
    found["local"] = tuple(LocalPoint(**p) for p in tree.get("local", ()))
    found["inverse"] = tuple(GreatestK(**g) for g in tree["inverse"])
    return Tradeoff(**found)


def chosen_of(traded: Tradeoff, node: Mapping[str, int], k: int | None, limit: float | None) -> int | None:
    """Position of the pair that the release is of: several limits may give its levels, but one is its own.

    Parameters
    ----------
    limit
        The job's suppression limit; None in results that do not tell it: then it is the least that gives the levels.
    """
    same = [i for i, p in enumerate(traded.points) if p.k == k and p.node == node]
    own = [i for i in same if limit is None or traded.points[i].suppression_limit == limit]
    return next(iter(own), None)


def tradeoff_figure(traded: Tradeoff, columns: Mapping[str, Any] | None = None) -> go.Figure:
    """Loss against the suppression limit, a line for each k and family; hovering tells node and suppressed rows."""
    from sqldeid.report.interactive import line, lines

    series = []
    of_family = f", {WHOLE}" if traded.local else ""
    for i, k in enumerate(sorted({p.k for p in traded.points})):
        row = [p for p in traded.points if p.k == k and p.loss is not None]
        texts = [_hover(p, traded.rows, columns or {}) for p in row]
        across = [100 * p.suppression_limit for p in row]
        series.append(line(f"k = {k}{of_family}", across, [p.loss for p in row], texts, (i, 0 if traded.local else i)))
        if local := [p for p in traded.local if p.k == k and p.loss is not None]:
            texts = [_local_hover(p, traded.rows) for p in local]
            across = [100 * p.suppression_limit for p in local]
            series.append(line(f"k = {k}, {LOCAL}", across, [p.loss for p in local], texts, (i, 2)))
    axis = LOSSES.get(traded.loss, traded.loss)
    figure = lines(series, across="rows that may be suppressed (%)", up=axis, legend="least class size")
    if traded.local:
        figure.update_layout(height=560)  # the legend has twice as many lines
    return figure


def _local_hover(point: LocalPoint, rows: int) -> list[str]:
    return [
        f"k = {point.k}, limit {100 * point.suppression_limit:g} %, local recoding",
        f"loss {number(point.loss or 0.0)}, at least {number(point.bound or 0.0)} must be lost",
        f"suppressed {point.suppressed:,} of {rows:,} ({share(point.suppressed or 0, rows)})",
        f"{count(point.classes or 0, 'class', 'classes')} of {count(point.layers or 0, 'layer')}",
    ]


def _hover(point: TradePoint, rows: int, columns: Mapping[str, Any]) -> list[str]:
    proof = "" if point.optimal else f"; not proven, bound {number(point.bound or 0.0)}"
    return [
        f"k = {point.k}, limit {100 * point.suppression_limit:g} %",
        f"loss {number(point.loss or 0.0)}{proof}",
        f"suppressed {point.suppressed:,} of {rows:,} ({share(point.suppressed or 0, rows)})",
        f"levels: {levels_shown(point.node, columns)}",
    ]
