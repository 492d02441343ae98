"""`sqldeid privacy plan`: parameters of `epsilon-safe`, and what each of them proves."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sqldeid.cli.files import write_json
from sqldeid.cli.options import Common, common, examples, numbers
from sqldeid.cli.targets import JSON, check_output, is_stdout, refuse_kind
from sqldeid.report.text import cell, number, print_table, put, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from sqldeid.tables.privacy.epsilon_safe import PlanRow


@click.group()
def privacy() -> None:
    """Choose parameters of differentially private releases."""


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
    from sqldeid.tables.privacy.epsilon_safe import plan_table
    from sqldeid.tables.privacy.sampling import PENALTIES

    refuse_kind("--json", json_file, JSON)
    if json_file is not None and not is_stdout(json_file):
        check_output("--json", json_file)
    rows = plan_table(
        numbers("--k", ks, int, "20,50"),
        numbers("--beta", betas, float, "0.1,0.25"),
        numbers("--epsilon", epsilons, float, "0.5,1"),
        delta=delta,
        penalty=next(p for p in PENALTIES if p == penalty),
        lattice_size=nodes,
        population=population,
    )
    if not common.quiet:
        _print(rows, delta, common.screen(json_file))
    if json_file is not None:
        write_json(json_file, {"plan": [asdict(row) for row in rows], "delta": delta, "penalty": penalty})


def _print(rows: Sequence[PlanRow], delta: float | None, to: Console) -> None:
    from sqldeid.tables.privacy.epsilon_safe import ceil_digits

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
