"""`anonymize --plan`: what would be done, printed; nothing is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sqldeid.engine.choosing import again, dialect_of
from sqldeid.job import Job
from sqldeid.report.terminal import print_commands, print_warnings
from sqldeid.report.text import cell, count, facts, plain, print_table, put, table
from sqldeid.run import Options, destination
from sqldeid.run.linked import Unit
from sqldeid.run.wings import Plan
from sqldeid.tables.criteria import known
from sqldeid.tables.plan.choosing import by_k
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.release.linked_steps import linked_certificate_steps, linked_steps
from sqldeid.tables.release.release import no_certificate
from sqldeid.tables.release.steps import Step, certificate_steps, in_dialect, steps

FOLLOWED = "series.{}: formed within its classes; who is in both gets one person_number, and nobody is in one alone"
"""What a plan says of the series that are linked to a table."""


def print_plans(
    plans: Sequence[Unit], job: Job, database: str, to: Console, *, verbose: bool, certificate: bool = False
) -> None:
    """Print columns, hierarchies, lattice, criteria, destination and statements of each release."""
    put(to, "The plan, from the job and the catalogue. No row was read, nothing was written.", style="dim")
    for plan in plans:
        if isinstance(plan, Linked):
            _print_linked(plan, job, to, verbose, dialect_of(database))
        elif isinstance(plan, TablePlan):
            _print_plan(plan, job, to, verbose, dialect_of(database))
        else:
            _print_facts(plan, job, to)
            continue
        if certificate:
            _print_certificate(plan, to)
    print_warnings(job.warnings(), to)
    to.print()
    to.print("Next:")
    given = f"sqldeid anonymize {quote(plain(again(database)))} --job {quote(plain(job.path or job.name))}"
    listed = any(isinstance(plan, Linked | TablePlan) for plan in plans)  # of others no statement is known before
    sql = [(f"{given} --plan -v", "prints the SQL that is known before the run")]
    print_commands([(given, "does it"), *(sql if listed else [])], to)


def _print_facts(plan: Plan, job: Job, to: Console) -> None:
    """A plan of another wing, which tells of itself."""
    to.print()
    put(to, Text(plain(plan.name), style="bold"), f" ({plan.key.partition('.')[0]})")
    target = destination(job)
    print_table(facts([*plan.facts(), ("Written as", f"{target.kind} {target.shown(plan.name)}")]), to)


def _print_plan(plan: TablePlan, job: Job, to: Console, verbose: bool, dialect: str) -> None:
    to.print()
    put(to, Text(plain(plan.name), style="bold"), " from ", plain(plan.source_label))
    print_table(_columns(plan), to)
    print_table(facts(_facts(plan, job)), to)
    _print_steps(_listed(plan, job, dialect), to, verbose)


def _listed(plan: TablePlan, job: Job, dialect: str) -> tuple[Step, ...]:
    return in_dialect(steps(plan, job.release.kind, dialect), dialect)


def _listed_linked(plan: Linked, job: Job, dialect: str) -> tuple[Step, ...]:
    return in_dialect(linked_steps(plan, job.release.kind, dialect), dialect)


def _print_steps(listed: Sequence[Step], to: Console, verbose: bool) -> None:
    to.print()
    to.print("Statements, in order:")
    print_table(_statements(listed), to)
    if verbose:
        for step in listed:
            _print_sql(step, to)


def _print_linked(plan: Linked, job: Job, to: Console, verbose: bool, dialect: str) -> None:
    """Linked tables: each table's columns, then what is done with their join."""
    for member in plan.members:
        to.print()
        put(to, Text(plain(member.name), style="bold"), " from ", plain(member.source_label))
        print_table(_columns(member), to)
        stacks = [(f"Stack {s.name}", s.text) for s in (member.stacked.stacks if member.stacked else ())]
        print_table(facts([*_others(member), *stacks]), to)
    to.print()
    put(to, Text(plain(plan.name), style="bold"), ", linked: searched, suppressed and verified as one table")
    persons = f"{', '.join(sorted({m.person or '' for m in plan.members}))}: who is in all of them"
    print_table(facts([("Person", persons), *_demands(plan.joint), ("Written as", _target(job, plan.names))]), to)
    _print_steps(_listed_linked(plan, job, dialect), to, verbose)


def _print_certificate(plan: TablePlan | Linked, to: Console) -> None:
    to.print()
    if reason := no_certificate(plan.joint if isinstance(plan, Linked) else plan):
        put(to, Text("Warning: ", style="yellow"), f"there will be no certificate: {reason}")
        return
    put(to, "The certificate is written from the search's checks. Checking it again (verify --certificate) runs:")
    print_table(_statements(_proof_steps(plan)), to)


def _proof_steps(plan: TablePlan | Linked) -> tuple[Step, ...]:
    return linked_certificate_steps(plan) if isinstance(plan, Linked) else certificate_steps(plan)


def _columns(plan: TablePlan) -> Table:
    made = table("Column", "Hierarchy", "Levels")
    for q in plan.qis:
        name = f"{q.hierarchy_name}, {q.shown}" if q.shown else q.hierarchy_name
        made.add_row(cell(q.name), cell(name), _levels(q.hierarchy.level_names))
    return made


def _levels(names: Sequence[str]) -> Text:
    """How many levels, and their names where these say more than a number; no line ends inside a name."""
    if all(name.startswith("level ") for name in names[1:-1]):
        return cell(len(names))
    shown = " → ".join(plain(name).replace(" ", "\N{NO-BREAK SPACE}") for name in names)
    return Text(f"{len(names)}: {shown}", overflow="fold")


def _others(plan: TablePlan) -> list[tuple[str, object]]:
    """The other columns, by role and by what becomes of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for c in plan.columns:
        if not isinstance(c, QuasiIdentifier):
            shown = c.shown or ("as in the source" if c.released else "not released")
            found.setdefault((c.role.capitalize(), shown), []).append(c.name)
    return [(role, f"{', '.join(names)} ({shown})") for (role, shown), names in found.items()]


def _facts(plan: TablePlan, job: Job) -> list[tuple[str, object]]:
    return [
        *_others(plan),
        ("Person", _person(plan)),
        *[(f"Stack {s.name}", s.text) for s in (plan.stacked.stacks if plan.stacked else ())],
        *_demands(plan),
        *([("Followed by", FOLLOWED.format(plan.followed))] if plan.followed else []),
        ("Written as", _target(job, [plan.name])),
    ]


def _person(plan: TablePlan) -> str:
    if plan.person is None:
        return "not named: each row is taken for another person, and rows are counted"
    return f"{plan.person}: may have many rows; persons are counted" if plan.many else plan.person


def _target(job: Job, names: Sequence[str]) -> str:
    target = destination(job)
    exists = target.into is not None and target.into.exists()
    note = " (exists: needs --replace)" if exists else ""
    return f"{target.kind} {', '.join(target.shown(name) for name in names)}{note}"


def _demands(plan: TablePlan) -> list[tuple[str, object]]:
    """The lattice, what its nodes must meet, and how one is found."""
    privacy, search = plan.part.privacy, plan.part.search
    limits = [
        f"{name} {value}"
        for name, value in (("time limit", search.time_limit), ("checks limit", search.checks_limit))
        if value is not None
    ]
    blank = "kept with every quasi-identifying column at its top" if privacy.blanks else "left out"
    return [
        ("Lattice", count(plan.lattice.size, "node")),
        ("K-anonymity", f"k = {privacy.k}"),
        *_criteria(plan),
        ("Suppression", f"at most {100 * privacy.suppression_limit:g} % of the rows, {blank}"),
        *_beyond(plan),
        ("Search", ", ".join([f"{search.method}, least {search.loss}", *limits])),
    ]


def _beyond(plan: TablePlan) -> Iterator[tuple[str, object]]:
    """The limit of its own of what criteria beyond k suppress."""
    if by_k(plan):
        most = 100 * (plan.part.privacy.criteria_limit or 0)
        yield "Node", f"chosen by k alone; then at most {most:g} % in classes that fail another criterion"


def _criteria(plan: TablePlan) -> Iterator[tuple[str, object]]:
    """The criteria beyond k-anonymity, with what they ask."""
    for c in plan.criteria:
        yield known(c).name.capitalize(), f"{c.told}, of {c.column}"
    if (hidden := plan.concealing) is not None:
        stated = ", ".join(f"{name} ({p:g})" for name, p in hidden.known) or "nothing more"
        yield hidden.name.capitalize(), f"m = {hidden.asked:g}; known with probability: {stated}"


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


def plan_dict(plan: Unit, job: Job, options: Options, dialect: str = "duckdb") -> dict[str, object]:
    """A plan for JSON."""
    if isinstance(plan, Linked):
        return _linked_dict(plan, job, options, dialect)
    if not isinstance(plan, TablePlan):
        return {**plan.to_dict(), "written": destination(job).shown(plan.name), "kind": job.release.kind}
    proof = [step.to_dict() for step in certificate_steps(plan)] if not no_certificate(plan) else None
    return {
        "source": plan.source_label,
        "person": plan.person,
        "stacks": {s.name: s.text for s in (plan.stacked.stacks if plan.stacked else ())},
        "columns": {
            c.name: _column_dict(c.role) if not isinstance(c, QuasiIdentifier) else _qi_dict(c) for c in plan.columns
        },
        "lattice_size": plan.lattice.size,
        "privacy": plan.part.privacy.model_dump(),
        "search": plan.part.search.model_dump(exclude_none=True),
        "written": destination(job).shown(plan.name),
        "kind": job.release.kind,
        "statements": [step.to_dict() for step in _listed(plan, job, dialect)],
        **({"followed": plan.followed} if plan.followed else {}),
        **({"certificate": proof} if options.certificate else {}),
    }


def _linked_dict(plan: Linked, job: Job, options: Options, dialect: str) -> dict[str, object]:
    """Linked tables: the plan of their join, its columns called by release and name."""
    proof = [step.to_dict() for step in linked_certificate_steps(plan)] if not no_certificate(plan.joint) else None
    return {
        **plan_dict(plan.joint, job, replace(options, certificate=False)),
        "linked": list(plan.names),
        "source": {m.name: m.source_label for m in plan.members},
        "person": {m.name: m.person for m in plan.members},
        "written": [destination(job).shown(name) for name in plan.names],
        "stacks": {m.name: {s.name: s.text for s in m.stacked.stacks} for m in plan.members if m.stacked},
        "statements": [step.to_dict() for step in _listed_linked(plan, job, dialect)],
        **({"certificate": proof} if options.certificate else {}),
    }


def _qi_dict(c: QuasiIdentifier) -> dict[str, object]:
    return {
        "role": "quasi-identifying",
        "hierarchy": c.hierarchy_name,
        "height": c.hierarchy.height,
        "levels": list(c.hierarchy.level_names),
        "uncovered": c.uncovered,
    }


def _column_dict(role: str) -> dict[str, object]:
    return {"role": role}
