"""A planned table release as `--plan` shows it: columns, what they must meet, and the statements in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqldeid.publish.steps import in_dialect
from sqldeid.stages import Explained, Generalised, Part, Step, Target, explained, listed
from sqldeid.tables.certificate.proof import no_certificate
from sqldeid.tables.certificate.statements import proving
from sqldeid.tables.criteria import known
from sqldeid.tables.itemset.plan import ChildPlan
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.mondrian.plan import PartitionPlan
from sqldeid.tables.mondrian.release import way_of as parted
from sqldeid.tables.plan.choosing import by_k
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.release.linked import linked_way
from sqldeid.tables.release.linked_statements import proving_linked
from sqldeid.tables.release.release import Company, way_of

Facts = list[tuple[str, object]]

FOLLOWED = "series.{}: formed within its classes; who is in both gets one person_number, and nobody is in one alone"
"""What a plan says of the series that are linked to a table."""


TREE = (
    "of several parents the one with the shortest way up, then the smallest code; at depth d a code is shown as what "
    "stands d steps from the beginning, or as itself where it is no deeper"
)
"""What a plan says of hierarchies by links, whose rule is that of `sqldeid.hierarchy.parents`."""

_VAST = 10_000_000
"""Nodes beyond which a proof may not come: the bench searches a million to the end, 85 million with a time limit."""
_PROVEN = frozenset({"frontier", "best-first", "flash", "ola", "inverse-ola"})
"""Methods that go on until the least loss is proven."""


def explain(planned: TablePlan | PartitionPlan | LocalPlan | Linked | ChildPlan, target: Target) -> Explained:
    """What a run of a plan would do. Cost: no statement is run."""
    if planned.way == "child":
        from sqldeid.tables.itemset.release import way_of as child_way

        return explained(planned, "child table", in_dialect(listed(child_way(planned), target), target.dialect), target)
    if planned.way == "mondrian":
        return explained(planned, "tables", in_dialect(listed(parted(planned), target), target.dialect), target)
    if planned.way == "linked":
        return _explain_linked(planned, target)
    if planned.way == "local":
        return _explain_local(planned, target)
    steps = statements_of(planned, target)
    reason = no_certificate(planned)
    part = Part(planned.name, f" from {planned.source_label}", _columns(planned), tuple(_facts(planned)))
    proof = None if reason else tuple(proving(planned))
    return Explained((part,), _content(planned, target, steps), steps, proof, reason)


def statements_of(planned: TablePlan | LocalPlan | Linked, target: Target) -> tuple[Step, ...]:
    """What a run of a plan executes, in order, stage by stage. Cost: no statement is run."""
    if planned.way == "linked":
        return in_dialect(listed(linked_way(planned, Company(), []), target), target.dialect)
    if planned.way == "local":
        from sqldeid.tables.local.release import way_of as local_way

        return in_dialect(listed(local_way(planned), target), target.dialect)
    return in_dialect(listed(way_of(planned, Company()), target), target.dialect)


def _explain_local(planned: LocalPlan, target: Target) -> Explained:
    """A table whose classes each have levels of their own."""
    plan = planned.table
    facts = (*_others(plan), *_trees(plan), ("Person", _person(plan)), *_stacks(plan), *planned.facts())
    part = Part(plan.name, f" from {plan.source_label}", _columns(plan), facts)
    steps = statements_of(planned, target)
    content = {**_content(plan, target, steps), "recoding": planned.recoding, "layers": planned.layers}
    return Explained((part,), content, steps)


def _explain_linked(planned: Linked, target: Target) -> Explained:
    """Linked tables: each table's columns, then what is done with their join."""
    parts = [
        Part(m.name, f" from {m.source_label}", _columns(m), (*_others(m), *_trees(m), *_stacks(m)))
        for m in planned.members
    ]
    persons = f"{', '.join(sorted({m.person or '' for m in planned.members}))}: who is in all of them"
    said = ", linked: searched, suppressed and verified as one table"
    parts.append(Part(planned.name, said, None, (("Person", persons), *_demands(planned.joint))))
    steps = statements_of(planned, target)
    reason = no_certificate(planned.joint)
    content = {
        **_content(planned.joint, target, steps),
        "linked": list(planned.names),
        "source": {m.name: m.source_label for m in planned.members},
        "person": {m.name: m.person for m in planned.members},
        "written": [target.shown(name) for name in planned.names],
        "stacks": {m.name: {s.name: s.text for s in m.stacked.stacks} for m in planned.members if m.stacked},
    }
    return Explained(tuple(parts), content, steps, None if reason else tuple(proving_linked(planned)), reason)


def followed_by(planned: TablePlan, series: str) -> TablePlan:
    """The plan with what it says of the series that follow it."""
    return replace(planned, followed=series)


def _columns(plan: TablePlan) -> tuple[Generalised, ...]:
    return tuple(
        Generalised(
            q.name,
            f"{q.hierarchy_name}, {q.shown}" if q.shown else q.hierarchy_name,
            tuple(q.hierarchy.level_names),
        )
        for q in plan.qis
    )


def _others(plan: TablePlan) -> Facts:
    """The other columns, by role and by what becomes of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for c in plan.columns:
        if not isinstance(c, QuasiIdentifier):
            shown = c.shown or ("as in the source" if c.released else "not released")
            found.setdefault((c.role.capitalize(), shown), []).append(c.name)
    return [(role, f"{', '.join(names)} ({shown})") for (role, shown), names in found.items()]


def _trees(plan: TablePlan) -> Facts:
    """How a tree is made of a vocabulary's links."""
    return [(f"Tree of {q.name}", TREE) for q in plan.qis if q.linked]


def _stacks(plan: TablePlan) -> Facts:
    return [(f"Stack {s.name}", s.text) for s in (plan.stacked.stacks if plan.stacked else ())]


def _facts(plan: TablePlan) -> Facts:
    return [
        *_others(plan),
        *_trees(plan),
        ("Person", _person(plan)),
        *_stacks(plan),
        *_demands(plan),
        *([("Followed by", FOLLOWED.format(plan.followed))] if plan.followed else []),
    ]


def _person(plan: TablePlan) -> str:
    if plan.person is None:
        return "not named: each row is taken for another person, and rows are counted"
    return f"{plan.person}: may have many rows; persons are counted" if plan.many else plan.person


def _demands(plan: TablePlan) -> Facts:
    """The lattice, what its nodes must meet, and how one is found."""
    demands, search = plan.demands, plan.search
    limits = [
        f"{name} {value}"
        for name, value in (("time limit", search.time_limit), ("checks limit", search.checks_limit))
        if value is not None
    ]
    size = plan.lattice.size
    if not limits and size > _VAST and search.method in _PROVEN:
        limits = ["no time limit: such a lattice can take longer than anybody waits (search.time_limit)"]
    blank = "kept with every quasi-identifying column at its top" if demands.blanks else "left out"
    return [
        ("Lattice", f"{size:,} node{'s' * (size != 1)}"),
        ("K-anonymity", f"k = {demands.k}"),
        *criteria(plan),
        ("Suppression", f"at most {100 * demands.suppression_limit:g} % of the rows, {blank}"),
        *_beyond(plan),
        ("Search", ", ".join([f"{search.method}, least {search.loss}", *limits])),
    ]


def _beyond(plan: TablePlan) -> Iterator[tuple[str, object]]:
    """The limit of its own of what criteria beyond k suppress."""
    if by_k(plan):
        most = 100 * (plan.demands.criteria_limit or 0)
        yield "Node", f"chosen by k alone; then at most {most:g} % in classes that fail another criterion"


def criteria(plan: TablePlan) -> Iterator[tuple[str, object]]:
    """The criteria beyond k-anonymity, with what they ask."""
    for c in plan.criteria:
        yield known(c).name.capitalize(), f"{c.words.told}, of {c.column}"
    if plan.k_map is not None:
        yield "K-map", f"k = {plan.k_map} persons of the population{', by weights' if plan.weight is not None else ''}"
    if plan.demands.estimated is not None:
        yield "K-map, estimated", plan.demands.estimated.told
    if plan.demands.game is not None:
        yield plan.demands.game.name.capitalize(), plan.demands.game.told
    if plan.presence is not None:
        yield "Delta-presence", plan.presence.told
    for words in plan.overall.words if plan.overall is not None else ():
        yield words.name.capitalize(), words.told
    if (hidden := plan.concealing) is not None:
        stated = ", ".join(f"{name} ({p:g})" for name, p in hidden.known) or "nothing more"
        yield hidden.name.capitalize(), f"m = {hidden.asked:g}; known with probability: {stated}"


def _content(plan: TablePlan, target: Target, steps: tuple[Step, ...]) -> Mapping[str, object]:
    """The plan for JSON."""
    return {
        "source": plan.source_label,
        "person": plan.person,
        "stacks": {s.name: s.text for s in (plan.stacked.stacks if plan.stacked else ())},
        "columns": {c.name: _qi_dict(c) if isinstance(c, QuasiIdentifier) else {"role": c.role} for c in plan.columns},
        "lattice_size": plan.lattice.size,
        "privacy": plan.demands.to_dict(),
        "search": plan.search.to_dict(),
        "written": target.shown(plan.name),
        "kind": target.kind,
        "statements": [step.to_dict() for step in steps],
        **({"followed": plan.followed} if plan.followed else {}),
    }


def _qi_dict(c: QuasiIdentifier) -> dict[str, object]:
    return {
        "role": "quasi-identifying",
        "hierarchy": c.hierarchy_name,
        "height": c.hierarchy.height,
        "levels": list(c.hierarchy.level_names),
        "uncovered": c.uncovered,
    }
