"""Make a temporary table of the source with pseudonyms, new numbers and shifted dates beside keys and dates.

What is staged are the disguised columns; what `verify` holds them against are the original ones: not the values, which
nobody could compute again, but all that must be left of them (see `kept_of`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.keys import VARIABLE, Key
from sqldeid.making import NO_TRUE_DATES, to_the_letter
from sqldeid.publish import noted_days
from sqldeid.sql import column, identifier, literal
from sqldeid.tables.disguise.pseudonyms import Digest, by_text, draw_secrets, fresh_run, scope
from sqldeid.tables.disguise.shift import OVER_89_YEARS, SHIFT_DAYS
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.columns import coarsened, moment_type
from sqldeid.tables.plan.days import first_of_years, shifted, shown_days
from sqldeid.tables.plan.plan import OtherColumn, TablePlan

FINGERPRINTS = (
    f"its dates are shifted by up to {SHIFT_DAYS} days, one secret number a person; the intervals between a person's "
    "dates are the true ones, and intervals are fingerprints: who knows some of them can find the person, and who "
    "links several such releases, or knows the period of the study, near whose ends few shifts are possible, narrows "
    'the true dates down (sqldeid privacy shifts); to = "month" or "week" beside the shift leaves less to compare'
)
ONE_DATE = (
    f"its dates are shifted by up to {SHIFT_DAYS} days, one secret number a person; a person has one shifted date, so "
    "that no interval between two is told. Who links several such releases of the same persons, or knows the period of "
    "the study, near whose ends few shifts are possible, narrows the true dates down (sqldeid privacy shifts)"
)
"""The same of a table of one row a person and one shifted column."""
PSEUDONYMISED = "pseudonymised, not anonymous"
RUN_NOTE = "pseudonym_run"


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a run knows and no release tells, but for `run`.

    Parameters
    ----------
    run
        The publication's public number, in the note on the release.
    shifting
        Whether dates are shifted; not where a release is checked again, for nobody keeps the days.
    """

    key: Key | None
    run: str
    shifting: bool = True


def fresh_secrets(plan: TablePlan, key: Key | None, *, repeated: bool = False) -> Secrets | None:
    """The secrets of a new publication; None where nothing is disguised.

    Parameters
    ----------
    repeated
        Whether it is one of a series of releases of the same persons.

    Raises
    ------
    JobError
        If pseudonyms are asked for without a key, true dates would stand beside shifted ones, or dates be shifted again
        and again.
    """
    if repeated:
        _refuse_repeated(plan)
    _refuse_keyless(plan, key)
    refuse_bare_dates(plan)
    return Secrets(key, fresh_run()) if disguised(plan) else None


def _refuse_repeated(plan: TablePlan) -> None:
    """Refuse shifted dates in a series of releases: intervals link a person's rows, and many shifts tell the dates."""
    if moved := shifted(plan):
        from sqldeid.job.ledger_rules import REFUSED

        raise JobError.at(f"{plan.key}.columns.{moved[0].name}.shift", REFUSED["shift"])


def noted_secrets(plan: TablePlan, note: Mapping[str, object], key: Key | None) -> Secrets | None:
    """What can be known again of a published release's secrets: those of its pseudonyms, with the key."""
    if key is None or not pseudonyms(plan):
        return None
    run = note.get(RUN_NOTE)
    if not isinstance(run, str) or not re.fullmatch(r"[0-9a-f]{32}", run):
        raise VerificationError.at(plan.key, "the release does not say which publication it is")
    return Secrets(key, run, shifting=False)


def disguised(plan: TablePlan) -> tuple[OtherColumn, ...]:
    """The columns in whose place something else leaves."""
    return tuple(c for c in plan.others if c.disguise is not None)


def pseudonyms(plan: TablePlan) -> tuple[OtherColumn, ...]:
    """The columns that leave as pseudonyms."""
    return tuple(c for c in plan.others if c.disguise == "pseudonym")


def _refuse_keyless(plan: TablePlan, key: Key | None) -> None:
    """Refuse a release with pseudonyms where there is no key, before anything is read."""
    if key is None and (found := pseudonyms(plan)):
        where = f"{plan.key}.columns.{found[0].name}.pseudonym"
        raise JobError.at(
            where,
            f"needs a secret key; name a file that holds one with --key-file, or set the environment variable "
            f"{VARIABLE} (openssl rand -hex 32 makes one)",
        )


def refuse_bare_dates(plan: TablePlan) -> None:
    """Refuse a true date beside shifted ones: an interval that somebody knows would tell the shift."""
    moved = shifted(plan)
    if not moved:
        return
    for name in shown_days(plan, None):
        statistic = " as a statistic of its class" if any(c.name == name for c in plan.aggregated) else ""
        raise JobError.at(
            f"{plan.key}.columns.{name}",
            f"a date as in the source{statistic} beside {moved[0].name}, whose dates are shifted, tells the shift; "
            'give it shift = "person", too (of type DATE or TIMESTAMP), read the year alone in a source query, or '
            "leave it out",
        )


def refuse_fine_dates(plan: TablePlan, nodes: Iterable[Node]) -> None:
    """Refuse quasi-identifying dates that are released finer than by years beside shifted ones.

    Parameters
    ----------
    nodes
        Those that rows are released by.

    Raises
    ------
    JobError
        If a level in use tells more than the year: k persons have it, and each of them fits few shifted dates.
    """
    moved = shifted(plan)
    for name in shown_days(plan, nodes) if moved else ():
        raise JobError.at(
            f"{plan.key}.columns.{name}",
            f"is released at a level finer than years beside {moved[0].name}, whose dates are shifted: whoever holds "
            f"both finds the shift, by the time of day, order or range of dates; {NO_TRUE_DATES}",
        )


def days_noted(plan: TablePlan, nodes: Iterable[Node]) -> dict[str, object]:
    """What the note on a release keeps of its dates, for who would release others of the same persons beside it."""
    return noted_days([c.name for c in shifted(plan)], shown_days(plan, nodes))


def disguise(plan: TablePlan, engine: Engine, source: exp.Expr, secrets: Secrets) -> exp.Expr:
    """The source with its disguised columns beside the others; the source itself where nothing is disguised.

    Cost: one scan of each column that is replaced, and one of the source.
    """
    hidden = [c for c in disguised(plan) if secrets.shifting or c.disguise == "pseudonym"]
    if not hidden:
        return source
    keys = _keys(plan, hidden)
    made_of = []
    for number, (name, key) in enumerate(keys.items()):
        digest, shifts = _digest(plan, secrets, name), secrets.shifting and name == plan.person and bool(shifted(plan))
        made_of.append(draw_secrets(f"{plan.name}_{number}", key, source, engine, digest=digest, shifted=shifts))
    tables = [
        {"table": table, "alias": identifier(f"x{number}"), "column": key, "text": by_text(engine)}
        for number, (table, key) in enumerate(zip(made_of, keys.values(), strict=True))
    ]
    place = {name: table["alias"] for name, table in zip(keys, tables, strict=True)}
    names = dict.fromkeys([*(c.source.name for c in plan.released), *([plan.person] if plan.person else [])])
    made = engine.make(
        "tables/disguise/disguise_source",
        f"{plan.name}_disguised",
        source=source,
        columns=[identifier(n) for n in names],
        secrets=tables,
        hidden=[_hidden(plan, c, place) for c in hidden],
    )
    for table in made_of:
        engine.drop(table)
    return made


def _keys(plan: TablePlan, hidden: Sequence[OtherColumn]) -> dict[str, exp.Expr]:
    """The columns of the source that have secrets, by name: the pseudonymous ones, and the person key for dates."""
    found = {c.source.name: c.column for c in hidden if c.disguise == "pseudonym"}
    if plan.person is not None and any(c.disguise != "pseudonym" for c in hidden):
        found.setdefault(plan.person, column(plan.person, "s"))
    return found


def _digest(plan: TablePlan, secrets: Secrets, name: str) -> Digest | None:
    """What makes the pseudonyms of a column of the source; None where it has none."""
    named = [c.name for c in pseudonyms(plan) if c.source.name == name]
    return secrets.key.hasher(scope(secrets.run, plan.name, named[0])) if named and secrets.key is not None else None


def person_digest(plan: TablePlan, secrets: Secrets) -> Digest | None:
    """What makes the pseudonyms of a release's persons, for whoever gives them to further rows; None without a key."""
    return _digest(plan, secrets, str(plan.person))


def _hidden(plan: TablePlan, c: OtherColumn, place: Mapping[str, object]) -> dict[str, object]:
    if c.disguise == "pseudonym":
        return {
            "name": identifier(c.disguised_name),
            "value": None,
            "alias": place[c.source.name],
            "type": None,
            "unit": None,
        }
    return {
        "name": identifier(c.disguised_name),
        "value": pooled(plan, c),
        "alias": place[str(plan.person)],
        "type": exp.DataType.build(moment_type(c.source), dialect="duckdb"),
        "unit": None if c.to is None else literal(c.to.upper()),
    }


def pooled(plan: TablePlan, c: OtherColumn) -> exp.Expr:
    """A column of `s` before its shift; a date of birth only where the latest other date is before the 90th birthday.

    A person without any other date has none, either: nobody can say how old such a person was.
    """
    if c.disguise != "birth":
        return c.column
    dates = [_moment(o.column) for o in shifted(plan) if o.disguise == "shift"]
    latest = exp.Greatest(this=dates[0], expressions=dates[1:], ignore_nulls=True) if len(dates) > 1 else dates[0]
    years = exp.Interval(this=literal(str(OVER_89_YEARS)), unit=exp.Var(this="YEAR"))
    young = exp.LT(this=latest, expression=exp.Add(this=_moment(c.column), expression=years))
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=young, true=c.column)]))


def _moment(value: exp.Expr) -> exp.Expr:
    return exp.cast(value, exp.DataType.build("timestamp", dialect="duckdb"))


def kept_of(plan: TablePlan, *, released: bool) -> list[exp.Expr]:
    """What a release must keep of each row beside its quasi-identifying columns, whatever the secrets are.

    Of a column that leaves as it stands: its value. Of a pseudonym: whether there is one. Of shifted dates: the
    infinite ones, which no shift changes, and the microseconds from the first other day in the row to each of them, so
    all intervals and times of day; of those that are cut to the day the days, of those cut to the week or month, which
    depend on the shift, whether there is one (`check_coarse` looks at their shape).

    Parameters
    ----------
    released
        Whether of the release, read as `r`, or of the source, read as `s`.
    """
    values = {c.name: column(c.name, "r") if released else pooled(plan, c) for c in plan.others}
    kept: list[exp.Expr] = []
    for c in plan.others:
        if c.disguise is None:
            kept.append(to_the_letter(values[c.name], c.source))
        elif c.disguise == "pseudonym":
            kept.append(exp.Paren(this=exp.Is(this=values[c.name], expression=exp.Null())))
    kept += [exp.Paren(this=exp.Is(this=values[c.name], expression=exp.Null())) for c in shifted(plan) if _by_shift(c)]
    moved = [_moment(values[c.name]) for c in shifted(plan)]
    kept += [_where_infinite(moment, infinite=moment) for moment in moved]
    daily = {
        c.name: coarsened(values[c.name], "day", c.source) if c.to == "day" else values[c.name] for c in plan.others
    }
    dates = [_moment(daily[c.name]) for c in shifted(plan) if not _by_shift(c)]
    if dates:
        finite = [_where_infinite(d, other=d) for d in dates]
        first = exp.cast(exp.Coalesce(this=finite[0], expressions=finite[1:]), exp.DataType.build("date"))
        kept += [
            exp.Paren(this=exp.Sub(this=_microseconds(d), expression=_microseconds(_moment(first)))) for d in dates
        ]
    return kept


def _by_shift(c: OtherColumn) -> bool:
    """Whether what a coarsened date keeps of its intervals depends on the shift."""
    return c.to in ("week", "month")


def check_coarse(plan: TablePlan, written: exp.Expr, engine: Engine) -> None:
    """Check that what is cut to a day, week or month is its first moment, in every row.

    Raises
    ------
    VerificationError
        If a released date or time is finer.
    """
    cut = [c for c in plan.others if c.to is not None]
    if not cut:
        return
    columns = [
        {"column": column(c.name, "r"), "first": coarsened(column(c.name, "r"), c.to, c.source)} for c in cut if c.to
    ]
    found = engine.rows("tables/disguise/count_finer", release=written, columns=columns)
    for c, row in zip(cut, found, strict=True):
        if row["finer"]:
            raise VerificationError.at(plan.key, f"the release failed its re-check: {c.name} is not cut to the {c.to}")


def _where_infinite(moment: exp.Expr, *, infinite: exp.Expr | None = None, other: exp.Expr | None = None) -> exp.Expr:
    """One value for a moment that is NULL or infinite, whose microseconds are NULL, and another for all others."""
    countless = exp.Is(this=_microseconds(moment), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=countless, true=infinite or exp.Null())], default=other)


def _microseconds(moment: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="EPOCH_US", expressions=[moment])


def exact_of(plan: TablePlan, secrets: Secrets | None, *, released: bool) -> list[exp.Expr]:
    """The disguised columns that can be compared value by value: those of which the secrets are known."""
    known = [c for c in disguised(plan) if secrets is not None and (secrets.shifting or c.disguise == "pseudonym")]
    return [column(c.name, "r") if released else c.leaving for c in known]


def check_pseudonyms(plan: TablePlan, source: exp.Expr, written: exp.Expr, engine: Engine) -> None:
    """Check shape and number of the pseudonyms of a release, without the key.

    Raises
    ------
    VerificationError
        If one is not 32 hexadecimal digits, or persons share one, or a column has more of them than it had values.
    """
    named = pseudonyms(plan)
    if not named:
        return
    found = _count(written, [column(c.name, "s") for c in named], engine)
    there = _count(source, [c.column for c in named], engine)
    for c, release, original in zip(named, found, there, strict=True):
        persons = c.source.name == plan.person
        wrong = (
            release["shaped"] < release["there"]
            or release["different"] > original["different"]
            or (persons and release["different"] < release["rows"])
            or (release["rows"] == original["rows"] and release["different"] < original["different"])
        )
        if wrong:
            raise VerificationError.at(
                plan.key, f"the release failed its re-check: {c.name} does not hold one pseudonym for each value"
            )


def _count(relation: exp.Expr, columns: Sequence[exp.Expr], engine: Engine) -> list[dict[str, int]]:
    found: list[dict[str, int]] = engine.rows(
        "tables/disguise/check_pseudonyms", relation=relation, columns=list(columns)
    )
    return found


def warnings_of(plan: TablePlan, gone: Collection[str] = (), *, apart: bool = True) -> list[str]:
    """What the result must say about what is disguised.

    Parameters
    ----------
    gone
        Quasi-identifying columns of which all rows show the one value of the top: these tell nothing.
    apart
        Whether no other table shows shifted dates of its persons by the same number; a linked one may.
    """
    found = []
    if named := pseudonyms(plan):
        names = ", ".join(c.name for c in named)
        found.append(
            f"{plan.key}: is {PSEUDONYMISED}: whoever holds the key can tell whom {names} "
            f"{'stands' if len(named) == 1 else 'stand'} for"
        )
    if moved := shifted(plan):
        one = len(moved) == 1 and apart and not plan.many and not plan.followed
        found.append(f"{plan.key}: {ONE_DATE if one else FINGERPRINTS}")
        found += [
            f"{plan.key}.columns.{c.name}: tells the age to the day, by the days from it to the other shifted dates; "
            "leave it out where the age is generalised"
            for c in moved
            if c.disguise == "birth"
        ]
        found += [
            f"{plan.key}.columns.{q.name}: is a date that is generalised but not shifted; its year leaves about half "
            "of the shifts that are possible"
            for q in plan.qis
            if first_of_years(q) and q.name not in gone
        ]
    return found
