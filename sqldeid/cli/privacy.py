"""`sqldeid privacy`: parameters of `epsilon-safe` and what each proves; how far shifted dates narrow."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sqldeid.cli.files import check_found, write_json
from sqldeid.cli.options import Common, common, examples, numbers
from sqldeid.errors import JobError
from sqldeid.report.text import cell, number, print_table, put, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from sqldeid.run.privacy import Narrowed, PlanRow


@click.group()
def privacy() -> None:
    """Choose parameters of differentially private releases; measure what shifted dates tell."""


@privacy.command(
    epilog=examples(
        "sqldeid privacy plan --k 5,20,50 --beta 0.1,0.25 --epsilon 1,2 --population 30000",
        "sqldeid privacy plan --k 50 --beta 0.25 --epsilon 1 --delta 1e-6",
        "sqldeid privacy plan --population 30000 --penalty suppression --nodes 12960 --json -",
    )
)
@click.option("--k", "ks", default="5,20,50", show_default=True, metavar="K,…", help="Least class sizes.")
@click.option("--beta", "betas", default="0.1,0.25,0.5", show_default=True, metavar="B,…", help="Shares of rows drawn.")
@click.option("--epsilon", "epsilons", default="1,2", show_default=True, metavar="E,…", help="Guarantees.")
@click.option("--delta", type=float, metavar="D", help="The most delta may be.  [default: one in the population]")
@click.option(
    "--penalty",
    type=click.Choice(["k-anonymity", "suppression"]),
    default="k-anonymity",
    show_default=True,
    help="What the draw punishes.",
)
@click.option("--nodes", type=click.IntRange(1), default=1, metavar="N", help="Nodes of the lattice (for suppression).")
@click.option(
    "--population",
    type=click.IntRange(1),
    metavar="N",
    help="A public number of persons, never a count.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write the table as JSON (- for standard output).")
@common
def plan(
    common: Common,
    ks: str,
    betas: str,
    epsilons: str,
    delta: float | None,
    penalty: str,
    nodes: int,
    population: int | None,
    json_file: str | None,
) -> None:
    """Print what epsilon-safe proves for each k, beta and epsilon.

    Epsilon' is what drawing the node may spend, as much as the guarantee leaves. The proven delta is what is promised;
    the published one is the sources' D, for comparison with figures in print. No data is looked at.
    """
    from sqldeid.run.privacy import PENALTIES, every_draw, plan_table

    check_found("--json", json_file)
    draws = every_draw(
        numbers("--k", ks, int, "20,50"),
        numbers("--beta", betas, float, "0.1,0.25"),
        numbers("--epsilon", epsilons, float, "0.5,1"),
        next(p for p in PENALTIES if p == penalty),
        nodes,
    )
    rows = plan_table(draws, delta, population)
    if not common.quiet:
        _print(rows, delta, common.screen(json_file))
    if json_file is not None:
        write_json(json_file, {"plan": [asdict(row) for row in rows], "delta": delta, "penalty": penalty})


@privacy.command(
    epilog=examples(
        "sqldeid privacy shifts --years 2",
        "sqldeid privacy shifts --years 12 --span 0,30,180 --to time,month --json -",
    )
)
@click.option("--years", type=click.FloatRange(0.01, 200), default=2.0, show_default=True, help="Length of the study.")
@click.option(
    "--span", "spans", default="0,30,180", show_default=True, metavar="D,…", help="Days from first to last date."
)
@click.option(
    "--to", "units", default="day,week,month", show_default=True, metavar="U,…", help="What dates are cut to."
)
@click.option("--persons", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True, help="Drawn.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the simulation.")
@click.option("--json", "json_file", metavar="FILE", help="Write the table as JSON (- for standard output).")
@common
def shifts(
    common: Common, years: float, spans: str, units: str, persons: int, seed: int, json_file: str | None
) -> None:
    """Simulate how far shifted dates narrow for who knows the period of the study. No data is looked at."""
    from sqldeid.run.privacy import UNITS, narrow

    check_found("--json", json_file)
    asked = [u.strip() for u in units.split(",")]
    if unknown := [u for u in asked if u not in UNITS]:
        raise JobError(f"--to: {unknown[0]} is none of {', '.join(UNITS)}", key="to")
    period = max(1, round(years * 365.25))
    rows = narrow(period, numbers("--span", spans, int, "0,30"), asked, persons=persons, seed=seed)
    if not common.quiet:
        _print_shifts(rows, common.screen(json_file))
    if json_file is not None:
        write_json(json_file, {"shifts": [asdict(row) for row in rows], "persons": persons, "seed": seed})


def _print_shifts(rows: Sequence[Narrowed], to: Console) -> None:
    from sqldeid.run.privacy import WIDTHS

    put(
        to,
        f"Shifted dates of a study of {rows[0].period_days:,} days: possible shifts left, of 730, where that is known",
    )
    widths = [f"at most {w}" for w in WIDTHS]
    made = table("First to last", "Cut to", "median", *widths, right=tuple(range(2, 3 + len(WIDTHS))))
    for row in rows:
        shares = (f"{100 * row.within[w]:.2f} %" for w in WIDTHS)
        made.add_row(
            cell(f"{row.span_days} days"), cell(row.to), cell(f"{row.median:,.0f}"), *(cell(s) for s in shares)
        )
    print_table(made, to)


def _print(rows: Sequence[PlanRow], delta: float | None, to: Console) -> None:
    from sqldeid.run.privacy import ceil_digits

    asked = "" if delta is None else f" at most {delta:g}"
    put(to, f"epsilon-safe: what is proven{f' with delta{asked}' if asked else ''}")
    made = table(
        "beta",
        "epsilon",
        "k",
        "epsilon'",
        "delta (proven)",
        "D (published)",
        "smallest k",
        "",
        right=(0, 1, 2, 3, 4, 5, 6),
    )
    for row in rows:
        proven = ["-"] * 3
        if row.epsilon_prime is not None and row.delta is not None and row.published is not None:
            proven = [f"{row.epsilon_prime:.4f}", ceil_digits(row.delta), f"{row.published:.2e}"]
        made.add_row(
            *(cell(x) for x in (number(row.beta), number(row.epsilon), row.k, *proven)),
            cell("-" if row.smallest_k is None else row.smallest_k),
            cell("admissible" if row.admissible else "no", "" if row.admissible else "dim"),
        )
    print_table(made, to)
    for note in dict.fromkeys(row.note for row in rows if row.note):
        to.print()
        put(to, note[:1].upper() + note[1:] + ".")
