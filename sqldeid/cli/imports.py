"""`sqldeid import-arx`."""

from __future__ import annotations

from shlex import quote

import click

from sqldeid.cli.options import Common, common, examples
from sqldeid.cli.targets import JOB, check_output, refuse_kind
from sqldeid.report.terminal import print_commands
from sqldeid.report.text import count, plain, put


@click.command(
    "import-arx",
    epilog=examples(
        "sqldeid import-arx project.deid -o job.toml",
        "sqldeid import-arx project.deid -o job.toml --encoding windows-1252",
    ),
)
@click.argument("project", metavar="PROJECT")
@click.option("-o", "--output", required=True, metavar="FILE", help="The job file to write; the data come beside it.")
@click.option("--encoding", default="utf-8-sig", metavar="NAME", help="Of the project's data, where it is not UTF-8.")
@common
def import_arx(common: Common, project: str, output: str, encoding: str) -> None:
    """Take a project of ARX as a job, with its data and hierarchies.

    Beside job.toml come job.duckdb with the data and the folder job_hierarchies. Roles, hierarchies, criteria, weights,
    suppression limit and metric are taken; what cannot be is listed. A criterion that cannot be taken stands in the job
    as a line by which it is refused until you decide. PROJECT is a file that ARX saved (.deid).
    """
    refuse_kind("-o", output, JOB)
    check_output("-o", output)
    from sqldeid.arx import import_arx as take

    made = take(project, output, encoding=encoding)
    if common.quiet:
        return
    to = common.screen()
    size = f"{count(made.rows, 'row')}, {count(made.columns, 'column')}"
    put(to, f"{plain(made.job)}: the project's job; its data are in {plain(made.database)} ({size}).")
    for text in made.undecided:
        put(to, f"Not taken, and the job is refused until you decide on it: {plain(text)}")
    for text in made.notes:
        put(to, f"Taken otherwise: {plain(text)}")
    given = f"sqldeid anonymize {quote(plain(made.database))} --job {quote(plain(made.job))}"
    print_commands([(f"{given} --plan", "shows what would be done"), (given, "does it")], to)
