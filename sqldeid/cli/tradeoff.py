"""`sqldeid tradeoff`: what k and the suppression limit cost, before one is chosen."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

import sqldeid
from sqldeid.cli.files import check_outputs, write_json
from sqldeid.cli.options import Common, common, examples, numbers
from sqldeid.cli.policies import house_rules as house_rules_option
from sqldeid.cli.targets import write_text
from sqldeid.report.progress import Progress
from sqldeid.report.text import console, put
from sqldeid.report.tradeoff import print_tradeoff, tradeoff_page
from sqldeid.result import HOLDER


@click.command(
    epilog=examples(
        "sqldeid tradeoff hospital.duckdb --job job.toml --k 2,5,10,25 --limit 0,0.01,0.05",
        "sqldeid tradeoff hospital.duckdb --job job.toml --max-loss 0.2,0.5 --json tradeoff.json",
        "sqldeid tradeoff hospital.duckdb --job job.toml --html tradeoff.html",
        "sqldeid tradeoff hospital.duckdb --job job.toml --k 5,10 --limit 0.05 --local",
    )
)
@click.argument("database", metavar="DB")
@click.option("--job", "job_file", required=True, metavar="FILE", help="The job file (TOML).")
@click.option("--only", multiple=True, metavar="NAME", help="Only this release; may be given more than once.")
@click.option("--k", "ks", default="2,3,5,10,25,100", show_default=True, metavar="K,…", help="Least class sizes.")
@click.option(
    "--limit",
    "limits",
    default="0,0.01,0.05,0.1",
    show_default=True,
    metavar="S,…",
    help="Shares of rows that may be suppressed.",
)
@click.option("--max-loss", "max_losses", metavar="L,…", help="Also the greatest k within each of these losses.")
@click.option("--local", is_flag=True, help="Also by local recoding; always where the job's method is that.")
@house_rules_option
@click.option("--json", "json_file", metavar="FILE", help="Write the table as JSON; - is standard output.")
@click.option("--html", "html_file", metavar="FILE", help="Write an interactive chart (needs sqldeid[report]).")
@common
def tradeoff(
    common: Common,
    database: str,
    job_file: str,
    only: tuple[str, ...],
    ks: str,
    limits: str,
    max_losses: str | None,
    local: bool,
    house_rules: Path | None,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Find the least loss for every pair of k and suppression limit, from one reading of the source.

    Nothing is released. The job's criteria beyond k hold for every pair; its method does not matter: every answer is
    the optimum of one node for all rows, proven, unless the job's time_limit says otherwise. With --local, and where
    the job's method is "local", what local recoding loses stands beside it, with what it must lose at least. The
    figures are for the data holder.
    """
    job = sqldeid.Job.load(job_file)
    reads = [] if house_rules is None else [str(house_rules)]
    check_outputs({"--json": json_file, "--html": html_file}, job, database, reads)
    asked = sqldeid.Asked(
        tuple(numbers("--k", ks, int, "5,20")),
        tuple(numbers("--limit", limits, float, "0,0.05")),
        tuple(numbers("--max-loss", max_losses, float, "0.2,0.5")) if max_losses is not None else (),
        local,
    )
    options = sqldeid.Options(only=only, settings=common.settings, house_rules=house_rules)
    with Progress(console(sys.stderr), live=not common.quiet, steps=common.verbose) as progress:
        listener = sqldeid.Listener(progress.step, progress.search)
        found = sqldeid.tradeoff(job, database, asked, options=options, listener=listener)
    if json_file is not None:
        write_json(json_file, {"audience": HOLDER, "tradeoff": {name: asdict(t) for name, t in found.items()}})
    if not found:
        unwritten = "" if html_file is None else f"; {html_file} was not written"
        text = "only table releases have a lattice whose nodes k and limits decide between, and this job selects none"
        if not common.quiet:
            put(common.screen(json_file), f"Nothing to trade off: {text}{unwritten}")
        return
    if html_file is not None:
        write_text(html_file, tradeoff_page(found))
    if not common.quiet:
        print_tradeoff(found, common.screen(json_file, html_file), verbose=common.verbose)
