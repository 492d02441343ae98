"""`sqldeid init`: a first look at a table, and a job that runs."""

from __future__ import annotations

import os
import sys
from shlex import quote

import click
from rich.console import Console

import sqldeid
from sqldeid.cli.options import Common, common, examples
from sqldeid.cli.streams import in_utf8
from sqldeid.cli.targets import JOB, check_output, is_stdout, is_stream, refuse_kind, write_text
from sqldeid.engine.choosing import again
from sqldeid.errors import JobError
from sqldeid.report.terminal import print_commands
from sqldeid.report.text import console, plain, put
from sqldeid.schemas import PARTS


@click.command(
    epilog=examples(
        "sqldeid init hospital.duckdb main.patients -o job.toml",
        "sqldeid init people.csv > job.toml",
        "sqldeid init warehouse.duckdb --preset omop54 --preset cms-11 -o job.toml",
        "sqldeid init warehouse.duckdb --preset omop54 --part diagnoses -o diagnoses.toml",
        "sqldeid init postgresql://me@db.example.org/hospital public.patients -o job.toml",
        "sqldeid anonymize hospital.duckdb --job job.toml --plan",
    )
)
@click.argument("database", metavar="DB")
@click.argument("table", metavar="TABLE", required=False)
@click.option("-o", "--output", default="-", metavar="FILE", help="The job file to write; - (the default) prints it.")
@click.option(
    "--preset",
    metavar="NAME",
    multiple=True,
    help="Begin with hipaa-safe-harbor, cms-11 (k = 11) or risk-0.09 (k = 12); or with a whole schema: omop54, "
    "mimiciv, mimiciii, eicu (TABLE is then the name of yours, if it must be told). One of each goes together.",
)
@click.option(
    "--part",
    type=click.Choice(["persons", *PARTS]),
    default="persons",
    help="Of such a schema: one row per person (the default), the diagnoses as a child table, or the vital signs as "
    "time series; each a job of its own.",
)
@common
def init(common: Common, database: str, table: str | None, output: str, preset: tuple[str, ...], part: str) -> None:
    """Profile a table and print a commented job that runs as it is.

    Each column gets a role, a hierarchy and the reason, guessed from its name, type, look and number of different
    values; columns that HIPAA's Safe Harbor names are marked. No data value is printed. Read it before you release
    anything: a role is a judgement about what strangers know.
    """
    if not is_stdout(output):
        check_output("-o", output)
        if os.path.lexists(output) and not is_stream(output):
            raise JobError(f"-o: {output} exists already; remove it, or name another file", key="output")
    refuse_kind("-o", output, JOB)
    text = sqldeid.init(database, table, settings=common.settings, preset=preset, part=part)
    if is_stdout(output):
        in_utf8()  # a job file is UTF-8 wherever it is printed
    write_text(output, text)
    if not common.quiet and is_stdout(output):
        to = console(sys.stderr)
        put(
            to,
            "A proposed job is printed. Keep it in a file (-o job.toml), read it, change what is wrong, then:",
        )
        _print_next(database, "job.toml", part, to)
    elif not common.quiet:
        to = console(sys.stderr) if is_stream(output) else common.screen()
        told, then = _told(text), "Read it, change what is wrong, then:"
        put(to, f"{plain(output)}: a proposed job.{'' if told else ' ' + then}")
        for line in [*told, then] if told else []:  # the commands stand below what they come after
            put(to, line)
        _print_next(database, plain(output), part, to)


def _print_next(database: str, file: str, part: str, to: Console) -> None:
    """The commands that come next."""
    given = f"sqldeid anonymize {quote(plain(again(database)))} --job {quote(file)}"
    key = [("(umask 077; openssl rand -hex 32 > key)", "makes the secret key of its pseudonyms")]
    keyed = part == "diagnoses"
    given += " --key-file key" if keyed else ""
    steps = [(f"{given} --plan", "shows what would be done"), (given, "does it")]
    print_commands([*(key if keyed else []), *steps], to)


def _told(text: str) -> list[str]:
    """What the head of a job for a whole schema says of what is left out, a paragraph a line."""
    told: list[str] = []
    for line in text.split("\n\n")[0].splitlines():
        said = line.removeprefix("#").strip()
        if said.startswith("> "):
            told.append(said.removeprefix("> "))
        elif told:
            told[-1] += f" {said}"
    return told
