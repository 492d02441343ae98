"""Compare the tables of one run by the persons in their classes: their differences must not single people out.

Two tables of one job are both given out. Where one has a person whom the other does not have, whoever holds both takes
the rows of the one from those of the other, and what is left is that person's row. The tables are compared before
anything is published, by the classes that each of them shows.

Guarantee
    Take the releases that show one column which is not quasi-identifying in all of them. The persons of a class of any
    of them, told apart by which of the others show them with the same values of the columns that all show, are in
    groups of at least the k of that release. So of no class can it be told by the others what fewer than k of its
    persons have, because these alone are, or are not, in other cohorts, suppressed elsewhere, or shown otherwise there.
    Where criteria beyond k speak of such a column, a class is in one such group: nothing is told of a part of it.
    Where one of them shows a statistic of such a column, its classes are classes of the others, too, with a statistic
    taken alike, or have nobody in common with them: of the k persons of a difference fewer than k may have a value.
    And of any two of these, and of two that share quasi-identifying columns alone but have other persons, no sum
    and difference of classes is about fewer persons than the lesser k (`sqldeid.run.subtracting`); so bands of other
    edges over the same persons are refused where they part fewer.
    Where two read a common table, through views or not, and name their person keys differently, they are compared by
    the key that both have as a column, and refused where there is none, unless the job states that they hold other
    persons and each reads a table of its own.

Why not pairs alone: of cohorts A, B and C, where C holds both others and one person more, each two differ by many.
Therefore all releases that show a column are told apart at once. Sums of three and more are not tried beyond that.

Assumes
    A person key of one name means the same persons; without one, rows of one source are compared by all its columns,
    and those of a view, partition or heir and of what it shares rows with by the columns that both have.
    A column of one name means the same where it is shown. What `never_with` names nobody is given beside the release;
    what `other_persons` names holds nobody of it.

Does not protect
    Against the intersection of classes over the same persons in other columns, where a row is found again by its
    values: `sqldeid.run.joinable` warns of it, and `link` judges the join. Against columns of other names that tell the
    same, the comparison of a table with series or events, which show no class of the other's columns, and what
    `verify` is asked for later: it looks at one release at a time. With a ledger its rules hold instead. Differentially
    private releases compose, and are not compared.

Source: soundness.md 5, 7, 18.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from sqlglot import exp

from sqldeid.catalogue.beneath import Beneath, beneath, group, meet, read_alike
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError, listed
from sqldeid.making import Cohort, Nature, Placed
from sqldeid.run.joinable import spelt_alike
from sqldeid.run.subtracting import can_be_subtracted
from sqldeid.sql import column, identifier, render


@dataclass(frozen=True, slots=True)
class Trace:
    """A release whose rows were placed: what it is called, its k, and the columns that were kept beside its classes.

    `reads` is what lies beneath its source.
    """

    names: tuple[str, ...]
    k: int
    cohort: Cohort
    table: exp.Table
    columns: Mapping[str, tuple[exp.Identifier, Column]]
    reads: Beneath = ()

    @property
    def key(self) -> str:
        """Where the job asks for it."""
        return " + ".join(f"tables.{name}" for name in self.names)


@dataclass(frozen=True, slots=True)
class Question:
    """Releases that are compared: by which labels their persons are known, and what else must be alike of a row."""

    persons: tuple[str, ...]
    alike: tuple[str, ...]
    traces: tuple[Trace, ...]
    shared: bool

    @property
    def counted(self) -> bool:
        """Whether one release may have several rows that are alike."""
        own = [t.cohort.person for t in self.traces]
        return any(t.cohort.many for t in self.traces) or any(p is None or p[0] not in self.persons for p in own)

    @property
    def keyed(self) -> bool:
        """Whether a person key tells whose a row is; else rows are persons."""
        return any(t.cohort.person is not None and self.persons == (t.cohort.person[0],) for t in self.traces)


@dataclass(slots=True)
class Compared:
    """The tables of a run that may have persons in common, while they are made.

    Parameters
    ----------
    natures
        By what a release, or linked ones, are called as they are made.
    """

    natures: Mapping[str, Nature]
    traces: list[Trace] = field(default_factory=list)

    def place(self, name: str, k: int, source: exp.Expr, engine: Engine) -> Placed | None:
        """Where to put the rows of what a release reads, with their classes; None where it is compared with nothing."""
        nature = self.natures.get(name)
        if nature is None or nature.cohort is None:
            return None
        there = _labelled(nature.cohort, engine.columns(source))
        kept = {
            label: (identifier(f"c{i}"), c) for i, (label, c) in enumerate(there.items()) if self._asked(label, name)
        }
        table = engine.workbench(f"{name}_placed")
        self.traces.append(Trace(nature.names, k, nature.cohort, table, kept, beneath(nature.source, engine)))
        return Placed(table, [{"name": n, "column": column(c.name, "s")} for n, c in kept.values()])

    def _asked(self, label: str, name: str) -> bool:
        """Whether a column may be asked for: a person key, what a release shows, and all of a source without a key."""
        own, cohorts = self.natures[name].cohort, [n.cohort for n in self.natures.values() if n.cohort is not None]
        if own is not None and any(c.person is None and c.source == own.source for c in cohorts):
            return True
        return any(label in c.shown or (c.person is not None and c.person[0] == label) for c in cohorts)

    def judge(self, engine: Engine) -> None:
        """Refuse the releases that can be subtracted from each other down to fewer than k persons.

        Cost: two statements for releases that show the same, and one for each two of them.

        Raises
        ------
        JobError
            If that is so, or their person keys cannot be compared.
        """
        if len(self.traces) < len(self.natures):
            raise ValueError("a table was made whose rows were not placed")
        _refuse_renamed(self.traces)
        for number, question in enumerate(_questions(self.traces)):
            _judge(question, engine, number)

    def drop(self, engine: Engine) -> None:
        """Drop what was placed."""
        for trace in self.traces:
            engine.drop(trace.table)
        self.traces.clear()


def compare_tables(natures: Iterable[Nature], engine: Engine) -> Compared | None:
    """What compares the tables of a run; None where no two of them may have persons in common."""
    tables = {"/".join(n.names): n for n in natures if n.cohort is not None}
    if any(n.cohort is not None and n.cohort.other_persons for n in tables.values()):
        from sqldeid.run.others import with_others

        tables = with_others(tables, engine)
    return Compared(_of_one_source(tables, engine)) if len(tables) > 1 else None


def _of_one_source(natures: Mapping[str, Nature], engine: Engine) -> dict[str, Nature]:
    """The same, where those that read rows of the same tables by other names have one source."""
    cohorts = {name: n.cohort for name, n in natures.items() if n.cohort is not None}
    if len({c.source for c in cohorts.values() if c.source}) > 1:
        read = [name for name, c in cohorts.items() if c.source]
        numbers = group(_beneath(cohorts[name], engine) for name in read)
        first = {number: cohorts[name].source for name, number in reversed(list(zip(read, numbers, strict=True)))}
        cohorts |= {name: replace(cohorts[name], source=first[n]) for name, n in zip(read, numbers, strict=True)}
    return {name: replace(n, cohort=cohorts.get(name)) for name, n in natures.items()}


def _beneath(cohort: Cohort, engine: Engine) -> Beneath:
    return tuple(engine.beneath(parts) for parts in cohort.relations)


def may_be_subtracted(here: Nature, there: Nature, engine: Engine) -> bool:
    """Whether two releases of one job must be made in one run, if they are not of the same persons.

    Series of one person key, or with keys of two names over a common table; tables likewise, or of rows of the same
    tables, that show a common column, unless the job states that nobody is given both.
    """
    common = meet(beneath(here.source, engine), beneath(there.source, engine))
    if here.cohort is None or there.cohort is None:
        return bool(here.subtracted and there.subtracted) and (here.subtracted == there.subtracted or common)
    a, b = here.cohort, there.cohort
    keys = [c.person[0] for c in (a, b) if c.person is not None]
    known = len(keys) == 2 and keys[0] == keys[1]
    apart = a.never_with & {*there.names} or b.never_with & {*here.names}
    if apart or not a.shown.keys() & b.shown.keys():
        return False
    if len(keys) == 2 and not known and common and (a.other_persons or b.other_persons):
        from sqldeid.run.others import are_others

        return not are_others(here, there, engine)
    if len(keys) == 2:
        return known or common
    return bool(a.source and b.source) and read_alike(_beneath(a, engine), _beneath(b, engine))


def _labelled(cohort: Cohort, there: Sequence[Column]) -> dict[str, Column]:
    """The columns of what is read, by label; the join of linked tables puts a release's name before each."""
    found = {c.name.casefold(): c for c in there if "/" not in c.name}
    by_name = {c.name: c for c in there}
    found |= {label: by_name[c.name] for label, (c, _) in cohort.shown.items() if c.name in by_name}
    if cohort.person is not None and cohort.person[1] in by_name:
        found[cohort.person[0]] = by_name[cohort.person[1]]
    return found


def _questions(traces: Sequence[Trace]) -> Iterator[Question]:
    """Each set of releases that must be compared, once."""
    asked: dict[tuple[object, ...], Question] = {}
    for persons, members in known_by(traces):
        apart = never_together if any(_is_key(t, persons[0]) for t in members) else _apart
        shown = dict.fromkeys(label for t in members for label in t.cohort.shown)
        by_label = {label: tuple(t for t in members if label in t.cohort.shown) for label in shown}
        told = {label: of for label, of in by_label.items() if not all(t.cohort.shown[label][1] for t in of)}
        for of in told.values():
            for together in _given_together(of, apart):
                alike = tuple(n for n, all_ in told.items() if set(map(id, together)) <= set(map(id, all_)))
                question = Question(persons, alike, together, shared=True)
                asked[persons, tuple(map(id, together))] = question
        for two in combinations(members, 2):
            both = [label for label, of in by_label.items() if all(any(t is o for o in of) for t in two)]
            if both and not any(label in told for label in both) and len(list(_given_together(two, apart))) == 1:
                asked[persons, tuple(map(id, two))] = Question(persons, (), two, shared=False)
    yield from (q for q in asked.values() if len(q.traces) > 1)


def known_by(traces: Sequence[Trace]) -> Iterator[tuple[tuple[str, ...], list[Trace]]]:
    """Releases whose persons can be known again, and the labels by which."""
    found: list[list[Trace]] = []
    for label in dict.fromkeys(t.cohort.person[0] for t in traces if t.cohort.person is not None):
        read = [of for t in traces if _is_key(t, label) for of in t.reads]
        members = [t for t in traces if label in t.columns and (_is_key(t, label) or meet(t.reads, read))]
        found.append(members)
        yield (label,), members
    for source in dict.fromkeys(t.cohort.source for t in traces if t.cohort.source):
        members = [t for t in traces if t.cohort.source == source]
        common = tuple(label for label in members[0].columns if all(label in t.columns for t in members))
        if not any(all(any(m is o for o in before) for m in members) for before in found):
            yield common, members


def _is_key(trace: Trace, label: str) -> bool:
    return trace.cohort.person is not None and trace.cohort.person[0] == label


def _given_together(traces: tuple[Trace, ...], apart: Callable[[Trace, Trace], bool]) -> Iterator[tuple[Trace, ...]]:
    """The greatest sets of releases that must be compared: of which somebody may be given all."""
    for a, b in combinations(traces, 2):
        if apart(a, b):
            yield from _given_together(tuple(t for t in traces if t is not a), apart)
            yield from _given_together(tuple(t for t in traces if t is not b), apart)
            return
    yield traces


def never_together(a: Trace, b: Trace) -> bool:
    """Whether the job says that nobody is given both."""
    return any(name in a.cohort.never_with for name in b.names) or any(name in b.cohort.never_with for name in a.names)


def _apart(a: Trace, b: Trace) -> bool:
    """Whether two are not compared where no key tells whose a row is."""
    return never_together(a, b) or _are_others(a, b)


def _are_others(a: Trace, b: Trace) -> bool:
    """Whether the job says that nobody is in both, and is believed."""
    return any(name in a.cohort.believed for name in b.names)


def _judge(asked: Question, engine: Engine, number: int) -> None:
    """Compare releases by all that they show alike; by each column, and by persons alone, where these need not agree.

    Values that differ do not make other persons: a column that is spelt otherwise in one of them must hide nobody.
    """
    if asked.keyed:
        _refuse_spelling(asked)
    settled = _judge_by(asked, engine, number)
    if settled or not asked.keyed:
        return
    each = [(label,) for label in asked.alike] if len(asked.alike) > 1 else []
    for alike in ((), *each):
        _judge_by(replace(asked, alike=alike), engine, number, asked.alike)


def _judge_by(asked: Question, engine: Engine, number: int, told: Sequence[str] = ()) -> bool:
    """Compare releases; whether it is known that nobody is shown with other values in one of them."""
    folded = fold_question(asked, engine, f"cohorts_{number}")
    person = _unit(0) if asked.keyed else None
    if asked.shared:
        _refuse_torn(asked, folded, person, engine, {*asked.alike, *told})
    for (i, here), (j, there) in combinations(enumerate(asked.traces), 2):
        statement = render(
            "run/list_cells",
            folded=folded,
            person=person,
            here=_class(i),
            there=_class(j),
            reads=[_there(i), _there(j)],
        )
        cells = engine.query(statement).to_pylist()
        _refuse_statistics(here, there, [(cell["here"], cell["there"]) for cell in cells])
        if not asked.shared and not any(cell["apart"] for cell in cells):
            continue
        k = min(here.k, there.k)
        if can_be_subtracted(((cell["here"], cell["there"], cell["n"]) for cell in cells), k):
            raise _refusal(here, [there], f"sums of their classes differ by fewer than {k} persons")
    settled = not asked.alike
    if asked.alike and asked.keyed and not asked.counted:
        row = engine.query(render("run/count_units", folded=folded, person=person)).to_pylist()[0]
        settled = bool(row["units"] == row["persons"])
    engine.drop(folded)
    return settled


def fold_question(asked: Question, engine: Engine, name: str) -> exp.Table:
    """The rows of all, by person and what they show alike."""
    labels = (*asked.persons, *(label for label in asked.alike if label not in asked.persons))
    values = [spelt_alike([t.columns[label] for t in asked.traces], "t") for label in labels]
    units = [_unit(i) for i in range(len(labels))]
    sides = range(len(asked.traces))
    releases = [
        {
            "table": t.table,
            "units": [{"name": u, "value": v[i]} for u, v in zip(units, values, strict=True)],
            "there": _there(i),
            "class": _class(i),
            "others": [{"there": _there(j), "class": _class(j), "own": j == i} for j in sides],
        }
        for i, t in enumerate(asked.traces)
    ]
    folded = engine.workbench(name)
    engine.execute(render("run/fold_cohorts", folded=folded, units=units, releases=releases, counted=asked.counted))
    return folded


def _refuse_torn(
    asked: Question, folded: exp.Table, person: exp.Identifier | None, engine: Engine, told: set[str]
) -> None:
    """Refuse classes that others part into fewer than k persons; at all, where a criterion beyond k holds of them."""
    sides = range(len(asked.traces))
    releases = [
        {
            "number": i,
            "class": _class(i),
            "k": t.k,
            "others": [{"class": _class(j), "bit": 2**j} for j in sides if j != i],
        }
        for i, t in enumerate(asked.traces)
    ]
    statement = render("run/count_torn", folded=folded, person=person, releases=releases)
    for row, trace in zip(engine.query(statement).to_pylist(), asked.traces, strict=True):
        others = [t for t in asked.traces if t is not trace]
        if row["few"]:
            raise _refusal(trace, others, f"fewer than {trace.k} persons of a class are in one and not in another")
        if row["torn"] and trace.cohort.judged & told:
            what = f"what {trace.key} asks beyond k need not hold of it"
            raise _refusal(trace, others, f"a part of a class is in one and not in another, and {what}")


def _refuse_statistics(here: Trace, there: Trace, cells: Sequence[tuple[int | None, int | None]]) -> None:
    """Refuse statistics of a column where a class has persons in common with another one that is not the same.

    Parameters
    ----------
    cells
        Classes of both that have persons in common, each pair once; None beside a class whose persons are in none.
    """
    told = here.cohort.statistics.keys() | there.cohort.statistics.keys()
    both = [c for c in cells if None not in c]
    for label in sorted(told & here.cohort.shown.keys() & there.cohort.shown.keys()):
        taken = [t.cohort.statistics.get(label) for t in (here, there)]
        alike = None in taken or taken[0] == taken[1]
        sides = [Counter(cell[side] for cell in cells) for side in (0, 1)]
        if all(alike and sides[0][a] == sides[1][b] == 1 for a, b in both):
            continue
        first, last = sorted((here, there), key=lambda t: t.names)
        raise JobError.at(
            last.key,
            f"beside {first.key}, shows {label} of classes that have persons in common, one of the two as a statistic: "
            "from both may follow what fewer than k persons have. Show that column in one of them alone; or give both "
            "the same classes and, where both show a statistic, the same one with the same grid, top_code and k; or, "
            "if nobody is ever given both, say so by never_with",
        )


def _refuse_spelling(asked: Question) -> None:
    first = asked.traces[0]
    for t in asked.traces[1:]:
        if spelt_apart(first, t):
            raise JobError.at(
                f"{t.key}.person",
                f"is of type {t.cohort.spelt}, in {first.key} of type {first.cohort.spelt}, so that it is not known "
                "whether both hold the same persons; cast one of them in a source query",
            )


def _refuse_renamed(traces: Sequence[Trace]) -> None:
    """Refuse releases over a common table whose person keys have other names, and can be looked up in neither.

    A view or query that renames the key leaves no column by which the persons of both are known again. Where the job
    says that they are other persons, they are let pass if each reads a table of its own, too.
    """
    groups = [(names[0], members) for names, members in known_by(traces) if len(names) == 1]
    known = [{id(t) for t in members} for name, members in groups if any(_is_key(t, name) for t in members)]
    for here, there in combinations(traces, 2):
        keys = (here.cohort.person, there.cohort.person)
        if None in keys or never_together(here, there) or any({id(here), id(there)} <= both for both in known):
            continue
        if _are_others(here, there):
            continue
        if meet(here.reads, there.reads) and here.cohort.shown.keys() & there.cohort.shown.keys():
            stated = any(a.cohort.other_persons & {*b.names} for a, b in ((here, there), (there, here)))
            first, last = sorted((here, there), key=lambda t: t.names)
            if stated:
                raise JobError.at(
                    f"{last.key}.other_persons",
                    f"is not believed of {first.key}: they do not read a table each that the other does not read, so "
                    "that both may be rows of the same persons. Give the key one name in both, by a source query that "
                    "renames it, and they are compared; or say by never_with that nobody is ever given both",
                )
            raise JobError.at(
                f"{last.key}.person",
                f"has another name than in {first.key}, and both read a common table, so that it is not known whether "
                "whoever is given both can subtract. Give the key one name in both, by a source query that renames it, "
                "and they are compared; hold them to each other with --ledger FILE; if nobody is ever given them both, "
                "say so by never_with; if they are of other persons, of whom that table only tells more, say so "
                "by other_persons",
            )


def spelt_apart(here: Trace, there: Trace) -> bool:
    """Whether the person keys of two releases are of different types."""
    return bool(here.cohort.spelt and there.cohort.spelt) and here.cohort.spelt != there.cohort.spelt


def _refusal(trace: Trace, others: Sequence[Trace], reason: str) -> JobError:
    *before, last = sorted((trace, *others), key=lambda t: t.names)
    return JobError.at(
        last.key,
        f"beside {listed([t.key for t in before])}, {reason}, so that whoever is given them can "
        "subtract. Release the same persons, or none in common; link the releases; coarsen them until no row is "
        "suppressed; hold them to each other with --ledger FILE; or, if nobody is ever given them all, say so by "
        "never_with",
    )


def _unit(number: int) -> exp.Identifier:
    return identifier(f"u{number}")


def _class(number: int) -> exp.Identifier:
    return identifier(f"class{number}")


def _there(number: int) -> exp.Identifier:
    return identifier(f"there{number}")
