"""`anonymize --plan`: what would be done, printed; nothing is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sqldeid.job import Job
from sqldeid.report.terminal import print_commands, print_warnings
from sqldeid.report.text import cell, count, facts, plain, print_table, put, table
from sqldeid.run import Options, destination
from sqldeid.run.wings import Plan
from sqldeid.tables.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.privacy.l_diversity import RecursiveLDiversity
from sqldeid.tables.privacy.t_closeness import TCloseness
from sqldeid.tables.release import no_certificate
from sqldeid.tables.steps import Step, certificate_steps, steps


def print_plans(
    plans: Sequence[TablePlan | Plan], job: Job, database: str, to: Console, *, verbose: bool, certificate: bool = False
) -> None:
    """Print columns, hierarchies, lattice, criteria, destination and statements of each release."""
    put(to, "The plan, from the job and the catalogue. No row was read, nothing was written.", style="dim")
    for plan in plans:
        if not isinstance(plan, TablePlan):
            _print_facts(plan, job, to)
            continue
        _print_plan(plan, job, to, verbose)
        if certificate:
            _print_certificate(plan, to)
    print_warnings(job.warnings(), to)
    to.print()
    to.print("Next:")
    given = f"sqldeid anonymize {quote(plain(database))} --job {quote(plain(job.path or job.name))}"
    print_commands([(given, "does it"), (f"{given} --plan -v", "prints the SQL that is known before the run")], to)


def _print_facts(plan: Plan, job: Job, to: Console) -> None:
    """A plan of another wing, which tells of itself."""
    to.print()
    put(to, Text(plain(plan.name), style="bold"), f" ({plan.key.partition('.')[0]})")
    target = destination(job)
    print_table(facts([*plan.facts(), ("Written as", f"{target.kind} {target.shown(plan.name)}")]), to)


def _print_plan(plan: TablePlan, job: Job, to: Console, verbose: bool) -> None:
    to.print()
    put(to, Text(plain(plan.name), style="bold"), " from ", plain(plan.source_label))
    print_table(_columns(plan), to)
    print_table(facts(_facts(plan, job)), to)
    to.print()
    to.print("Statements, in order:")
    listed = steps(plan, job.release.kind)
    print_table(_statements(listed), to)
    if verbose:
        for step in listed:
            _print_sql(step, to)


def _print_certificate(plan: TablePlan, to: Console) -> None:
    to.print()
    if reason := no_certificate(plan):
        put(to, Text("Warning: ", style="yellow"), f"there will be no certificate: {reason}")
        return
    put(to, "The certificate is written from the search's checks. Checking it again (verify --certificate) runs:")
    print_table(_statements(certificate_steps(plan)), to)


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
    privacy, search = plan.part.privacy, plan.part.search
    target = destination(job)
    exists = target.into is not None and target.into.exists()
    note = " (exists: needs --replace)" if exists else ""
    limits = [
        f"{name} {value}"
        for name, value in (("time limit", search.time_limit), ("checks limit", search.checks_limit))
        if value is not None
    ]
    blank = "kept with every quasi-identifying column at its top" if privacy.suppression == "blank" else "left out"
    return [
        *_others(plan),
        ("Person", plan.person or "not named: rows are counted"),
        *[(f"Stack {s.name}", s.text) for s in (plan.stacked.stacks if plan.stacked else ())],
        ("Lattice", count(plan.lattice.size, "node")),
        ("K-anonymity", f"k = {privacy.k}"),
        *_criteria(plan),
        ("Suppression", f"at most {100 * privacy.suppression_limit:g} % of the rows, {blank}"),
        ("Search", ", ".join([f"{search.method}, least {search.loss}", *limits])),
        ("Written as", f"{target.kind} {target.shown(plan.name)}{note}"),
    ]


def _criteria(plan: TablePlan) -> Iterator[tuple[str, object]]:
    """The criteria beyond k-anonymity, with what they ask."""
    for c in plan.criteria:
        if isinstance(c, TCloseness):
            asked = f"t = {float(c.t):g}, {c.distance} distance"
        elif isinstance(c, RecursiveLDiversity):
            asked = f"c = {float(c.c):g}, l = {c.l}"
        else:
            asked = f"l = {c.l}"
        yield c.name.capitalize(), f"{asked}, of {c.column}"
    if (hidden := plan.concealing) is not None:
        known = ", ".join(f"{name} ({p:g})" for name, p in hidden.known) or "nothing more"
        yield hidden.name.capitalize(), f"m = {hidden.asked:g}; known with probability: {known}"


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


def plan_dict(plan: TablePlan | Plan, job: Job, options: Options) -> dict[str, object]:
    """A plan for JSON."""
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
        "statements": [step.to_dict() for step in steps(plan, job.release.kind)],
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
