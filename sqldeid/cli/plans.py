"""`anonymize --plan`: what would be done, printed; nothing is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sqldeid.engine.choosing import again
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.report.terminal import print_commands, print_warnings
from sqldeid.report.text import cell, facts, plain, print_table, put, table
from sqldeid.run import Options, destination, selected
from sqldeid.stages import Explained, Generalised, Part, Step

MANY = 6
"""So many releases are told a line each; who wants all of one names it by --only, and --verbose tells all of all."""


def print_plans(
    plans: Mapping[str, Explained], job: Job, database: str, to: Console, options: Options, *, verbose: bool
) -> None:
    """Print columns, hierarchies, lattice, criteria, destination and statements of each release."""
    certificate = options.certificate
    short = len(plans) >= MANY and not verbose
    statements = not short and any(p.statements is not None for p in plans.values())
    order = " First the statements, then what would be released." if statements else ""
    put(to, f"The plan, from the job and the catalogue. No row was read, nothing was written.{order}", style="dim")
    if short:
        _print_short(plans, job, to, certificate)
    for planned in () if short else plans.values():
        _print_statements(planned, to, verbose=verbose, certificate=certificate)
    for planned in () if short else plans.values():
        _print_plan(planned, job, to)
        if certificate and planned.may_be_proven and planned.certificate is None:
            put(to, Text("Warning: ", style="yellow"), f"there will be no certificate: {planned.no_certificate}")
    print_warnings(job.warnings(), to)
    to.print()
    to.print("Next:")
    given = f"sqldeid anonymize {quote(plain(again(database)))} --job {quote(plain(job.path or job.name))}"
    if options.key_file is not None:
        given += f" --key-file {quote(plain(options.key_file))}"
    listed = any(step.statements for p in plans.values() for step in p.statements or ())
    sql = [(f"{given} --plan -v", "prints the SQL that is known before the run")]
    name = _alone(plans, job) if short else None
    one = [(f"{given} --plan --only {quote(plain(name))}", "tells all of one release")] if name is not None else []
    print_commands([(given, "does it"), *one, *(sql if listed else [])], to)


def _alone(names: Iterable[str], job: Job) -> str | None:
    """The first release that --only may name by itself: linked tables, and parent and child, are made together."""
    for name in names:
        try:
            selected(job, [name])
        except JobError:
            continue
        return name
    return None


def _print_short(plans: Mapping[str, Explained], job: Job, to: Console, certificate: bool) -> None:
    """A line for each release: where it comes from, all that is promised, and how many columns are generalised."""
    made = table("Release", "From", "Asked", "Generalised", right=(3,))
    for part in (part for planned in plans.values() for part in planned.parts):
        source = dict(part.facts).get("source") or plain(part.said).strip().removeprefix("from ")
        columns = "" if part.columns is None else str(len(part.columns))
        made.add_row(cell(part.name), cell(source), cell(_asked(part.facts)), columns)
    print_table(made, to)
    to.print()
    target = destination(job)
    exists = " (exists: needs --replace)" if target.into is not None and target.into.exists() else ""
    where = f", in {plain(str(target.into))}{exists}" if target.into is not None else ""
    put(to, f"{len(plans)} releases, all or none of them, each as a {target.kind}{where}.")
    for name, planned in plans.items() if certificate else ():
        if planned.may_be_proven and planned.certificate is None:
            put(to, Text("Warning: ", style="yellow"), f"{plain(name)}: no certificate: {planned.no_certificate}")


def _asked(told: Sequence[tuple[str, object]]) -> str:
    """What is promised: of a table every criterion, of others the line that says it."""
    names = [name.casefold() for name, _ in told]
    if "k-anonymity" in names and "suppression" in names:
        among = told[names.index("k-anonymity") : names.index("suppression")]
        return "; ".join(str(value) if name == "K-anonymity" else f"{name}: {value}" for name, value in among)
    return next((str(value) for name, value in told if name.casefold() in _PROMISES), "")


_PROMISES = ("k-anonymity", "promise", "privacy")
"""What releases that are no tables of classes call it."""


def _print_plan(planned: Explained, job: Job, to: Console) -> None:
    *before, last = planned.parts
    for part in before:
        _print_part(part, part.facts, to)
    written = _target(planned, job)
    _print_part(last, (*last.facts, ("Written as", written)), to)


def _print_part(part: Part, lines: Sequence[tuple[str, object]], to: Console) -> None:
    to.print()
    put(to, Text(plain(part.name), style="bold"), plain(part.said))
    if part.columns is not None:
        print_table(_columns(part.columns), to)
    print_table(facts(list(lines)), to)


def _target(planned: Explained, job: Job) -> str:
    """Where the releases go, and, where their statements are known, what is in the way."""
    target = destination(job)
    exists = planned.statements is not None and target.into is not None and target.into.exists()
    written = planned.content["written"]
    names = written if isinstance(written, str) else ", ".join(map(str, written)) if isinstance(written, list) else ""
    return f"{target.kind} {names}{' (exists: needs --replace)' if exists else ''}"


def _print_statements(planned: Explained, to: Console, *, verbose: bool, certificate: bool) -> None:
    """What would be run, of which there are many; what everybody reads comes below it, and stays on the screen."""
    names = " and ".join(plain(part.name) for part in planned.parts)
    if planned.statements is not None:
        to.print()
        put(to, Text(names, style="bold"), ": Statements, in order:")
        print_table(_statements(planned.statements), to)
        for step in planned.statements if verbose else ():
            _print_sql(step, to)
    if certificate and planned.may_be_proven and planned.certificate is not None:
        to.print()
        put(to, "The certificate is written from the search's checks. Checking it again (verify --certificate) runs:")
        print_table(_statements(planned.certificate), to)


def _columns(columns: Sequence[Generalised]) -> Table:
    made = table("Column", "Hierarchy", "Levels")
    for column in columns:
        made.add_row(cell(column.name), cell(column.hierarchy), _levels(column.levels))
    return made


def _levels(names: Sequence[str]) -> Text:
    """How many levels, and their names where these say more than a number; no line ends inside a name."""
    if all(name.startswith("level ") for name in names[1:-1]):
        return cell(len(names))
    shown = " → ".join(plain(name).replace(" ", "\N{NO-BREAK SPACE}") for name in names)
    return Text(f"{len(names)}: {shown}", overflow="fold")


def _statements(listed: Sequence[Step]) -> Table:
    made = table("", "", "", right=(0,))
    for number, step in enumerate(listed, 1):
        times = "" if step.times == 1 else " (as needed)" if step.times is None else f" ({step.times} times)"
        made.add_row(cell(number, "dim"), cell(step.template), cell(step.purpose + times))
    return made


def _print_sql(step: Step, to: Console) -> None:
    for statement in step.statements:
        to.print()
        to.print(Text(f"-- {step.template}", style="dim"))
        to.print(Text(plain(statement, lines=True)), soft_wrap=True)


def plan_dict(planned: Explained, options: Options) -> dict[str, object]:
    """A plan for JSON."""
    if not planned.may_be_proven or not options.certificate:
        return dict(planned.content)
    proof = None if planned.certificate is None else [step.to_dict() for step in planned.certificate]
    return {**planned.content, "certificate": proof}
