"""Hold a job to house rules: what it breaks, each by the job's key and by the rule's.

Guarantee
    A job in which nothing is broken asks for at least what the rules ask for, key by key: its criteria are at least as
    strict, its columns have the roles that the rules give their names, and it does nothing that is forbidden.
Assumes
    That the rules bind whoever runs the program: who may choose the file may choose another one.
Does not protect
    What a job says in SQL (`query`, `where`) is not looked into, and a source may give a column any name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from sqldeid.errors import UnknownKindError
from sqldeid.house_rules.empty import asks_nothing
from sqldeid.house_rules.exceptions import applied
from sqldeid.house_rules.model import EventsRules, Exception_, HouseRules, SeriesRules, TableRules
from sqldeid.job import Job, Table
from sqldeid.job.criteria import PER_CLASS
from sqldeid.job.events import Events
from sqldeid.job.parts import Query
from sqldeid.job.problems import quoted
from sqldeid.job.rules import SECTIONS
from sqldeid.job.series import STATISTICS, Series


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that a job breaks.

    Parameters
    ----------
    where
        The keys of the job, or the option.
    rule
        The key of the rule.
    text
        What is to be changed; it follows the job's key.
    """

    where: tuple[str, ...]
    rule: str
    text: str


Found = Iterator[tuple[tuple[str, ...], str, str]]
"""(keys within a release, name of the rule within its section, what is to be changed)."""


def broken(
    rules: HouseRules, job: Job, names: Sequence[str], run: Mapping[str, bool] | None, today: date
) -> tuple[list[Broken], list[Exception_]]:
    """What a job breaks, and the exceptions that hold for it.

    Parameters
    ----------
    names
        The releases that are looked at.
    run
        Of each word of `RunRules`, whether the run has it; None where there is no run, such as for a re-check.
    """
    own = applied(rules, job.sha256, None, today)
    found = [Broken(("release", *keys), f"release.{rule}", text) for keys, rule, text in _release(own.rules, job)]
    if run is not None:
        found += [Broken(keys, f"run.{rule}", text) for keys, rule, text in _run(own.rules, run)]
    found, used = _with_ends(found, own.ended), list(own.used)
    for part in SECTIONS:
        for name, release in getattr(job, part).items():
            if name not in names:
                continue
            here = applied(rules, job.sha256, name, today)
            of_it = [
                Broken((part, name, *keys), f"{part}.{rule}" if rule else part, text)
                for keys, rule, text in _of_release(part, here.rules, release)
            ]
            found += _with_ends(of_it, here.ended)
            used += here.used
    return found, used


def _with_ends(found: list[Broken], ended: Mapping[str, str]) -> list[Broken]:
    return [
        Broken(one.where, one.rule, f"{one.text}; {ended[one.rule]}") if one.rule in ended else one for one in found
    ]


def _of_release(part: str, rules: HouseRules, release: Any) -> Found:
    """What a release breaks; one of a kind of which the rules say nothing is broken as a whole."""
    stated = getattr(rules, part)
    if stated is None:
        yield (), "", f"the rules say nothing of {part}; have a section [{part}] added to them, or leave this out"
        return
    match part:
        case "tables":
            yield from _table(stated, release)
        case "series":
            yield from _series(stated, release)
        case "events":
            yield from _events(stated, release)
        case unknown:
            raise UnknownKindError(unknown, "section of a job")


def _release(rules: HouseRules, job: Job) -> Found:
    asked = rules.release
    if asked is None:
        return
    yield from _allowed(("as",), "allowed_kinds", job.release.kind, asked.allowed_kinds)
    if asked.outside_the_source and job.release.into is None:
        yield ("into",), "outside_the_source", "must be stated, so that nothing is released into the source"


def _run(rules: HouseRules, run: Mapping[str, bool]) -> Found:
    asked = rules.run
    for option in (asked.required_options if asked else None) or ():
        if not run[option]:
            yield (f"--{option}",), "required_options", "must be given"
    for option in (asked.forbidden_options if asked else None) or ():
        if run[option]:
            yield (f"--{option}",), "forbidden_options", "must not be given"


def _table(rules: TableRules, table: Table) -> Found:
    privacy = table.privacy
    yield from _least(("privacy", "k"), "least_k", privacy.k, rules.least_k)
    yield from _least(("privacy", "k_map"), "least_k_map", privacy.k_map, rules.least_k_map)
    suppressed = Decimal(repr(privacy.suppression_limit)) + Decimal(repr(privacy.criteria_limit or 0.0))
    most = rules.greatest_suppression_limit
    if most is not None and suppressed > Decimal(repr(most)):
        both = "" if privacy.criteria_limit is None else " together with criteria_limit"
        yield ("privacy", "suppression_limit"), "greatest_suppression_limit", f"must be at most {most}{both}"
    yield from _criteria(rules, table)
    yield from _columns(rules, table)
    yield from _epsilon_safe(rules, table)
    yield from _allowed(("search", "method"), "allowed_methods", table.search.method, rules.allowed_methods)
    yield from _forbidden(rules.forbidden, OF_TABLES, table)


def _criteria(rules: TableRules, table: Table) -> Found:
    privacy = table.privacy
    numbers: dict[str, tuple[str, Any]] = {
        "l_diversity": ("least_l", rules.least_l),
        "t_closeness": ("greatest_t", rules.greatest_t),
        "delta_disclosure": ("greatest_delta", rules.greatest_delta),
        "beta_likeness": ("greatest_beta", rules.greatest_beta),
    }
    for key, listed in privacy.per_class.items():
        rule, bound = numbers[key]
        for entry in listed:
            compare = _least if rule.startswith("least") else _most
            yield from compare(("privacy", key, PER_CLASS[key]), rule, getattr(entry, PER_CLASS[key]), bound)
    if privacy.m_concealing is not None:
        yield from _most(("privacy", "m_concealing", "m"), "greatest_m", privacy.m_concealing.m, rules.greatest_m)
    risk = privacy.average_risk
    yield from _most(("privacy", "average_risk"), "greatest_average_risk", risk, rules.greatest_average_risk)
    for key in rules.required or ():
        if (asked := getattr(privacy, key)) is None:
            yield ("privacy", key), "required", "is missing; state it"
        elif asks_nothing(key, asked):
            yield ("privacy", key), "required", "holds of every table as it stands; ask for more"
    yield from _guarded(rules, table)


def _guarded(rules: TableRules, table: Table) -> Found:
    """Sensitive columns that are under none of the criteria of which each must be under one."""
    privacy, asked = table.privacy, rules.sensitive_needs
    if asked is None:
        return
    listed = [(key, entry) for key in asked if key in PER_CLASS for entry in privacy.per_class[key]]
    guarded = {entry.column for key, entry in listed if not asks_nothing(key, entry)}  # type: ignore[attr-defined]
    hidden = privacy.m_concealing if "m_concealing" in asked else None
    if hidden is not None and not asks_nothing("m_concealing", hidden):
        guarded |= {name for name, probability in hidden.known.items() if probability > 0}
    for name, column in table.every_column.items():
        if column.role == "sensitive" and name not in guarded:
            text = (
                f"is sensitive, and must be under {_either(asked)} of [privacy], and not one that holds of every table"
            )
            yield ("columns", name), "sensitive_needs", text


def _columns(rules: TableRules, table: Table) -> Found:
    roles = {name.casefold(): allowed for name, allowed in (rules.roles or {}).items()}
    for name, column in table.every_column.items():
        if column.role in (rules.forbidden_roles or ()):
            yield ("columns", name, "role"), "forbidden_roles", f"must not be {quoted(column.role)}"
        yield from _allowed(("columns", name, "role"), "roles", column.role, roles.get(name.casefold()))


def _epsilon_safe(rules: TableRules, table: Table) -> Found:
    asked = table.search.epsilon_safe
    if asked is None:
        return
    at = ("search", "epsilon_safe")
    yield from _most((*at, "epsilon"), "greatest_epsilon", asked.epsilon, rules.greatest_epsilon)
    delta = asked.delta if asked.delta is not None else 1 / asked.population if asked.population else None
    most = rules.greatest_dp_delta
    if most is not None and (delta is None or delta > most):
        yield (*at, "delta"), "greatest_dp_delta", f"must be stated, and at most {most}"


def _series(rules: SeriesRules, series: Series) -> Found:
    yield from _least(("privacy", "k"), "least_k", series.privacy.k, rules.least_k)
    yield from _least(("durations", "k"), "least_k_of_durations", series.durations.k, rules.least_k_of_durations)
    yield from _allowed(("privacy", "nulls"), "allowed_nulls", series.privacy.nulls, rules.allowed_nulls)
    yield from _allowed(("perturb", "method"), "allowed_methods", series.perturb.method, rules.allowed_methods)
    yield from _forbidden(rules.forbidden, OF_SERIES, series)


def _events(rules: EventsRules, events: Events) -> Found:
    privacy = events.privacy
    yield from _allowed(("privacy", "method"), "allowed_methods", privacy.method, rules.allowed_methods)
    if rules.greatest_epsilon is not None and privacy.epsilon is None:
        text = f"is missing; it must be stated, and at most {rules.greatest_epsilon}"
        yield ("privacy", "epsilon"), "greatest_epsilon", text
    yield from _most(("privacy", "epsilon"), "greatest_epsilon", privacy.epsilon, rules.greatest_epsilon)
    yield from _forbidden(rules.forbidden, OF_EVENTS, events)


def _least(keys: tuple[str, ...], rule: str, given: float | None, least: float | None) -> Found:
    if given is not None and least is not None and given < least:
        yield keys, rule, f"must be at least {least}"


def _most(keys: tuple[str, ...], rule: str, given: float | None, most: float | None) -> Found:
    if given is not None and most is not None and given > most:
        yield keys, rule, f"must be at most {most}"


def _allowed(keys: tuple[str, ...], rule: str, given: str, allowed: Sequence[str] | None) -> Found:
    if allowed is not None and given not in allowed:
        yield keys, rule, f"must be {_either([quoted(word) for word in allowed])}"


def _forbidden(words: Sequence[str] | None, known: Mapping[str, Trait], release: Any) -> Found:
    for word in words or ():
        if word not in known:
            raise UnknownKindError(word, "word of house rules")
        trait = known[word]
        for keys in trait(release):
            yield keys, "forbidden", f"{_MENDS.get(word, 'must not be there; remove it')} ({word} is forbidden)"


_MENDS = {
    "blank": 'must be "drop"',
    "computed-view": 'must be "snapshot"',
    "own-shape": "must be all four features",
    "query": "must be a table as it stands, not a query",
    "reciprocal": 'must be "score"',
    "without-attacks": "must not be false",
    "without-person": "must name the person key",
}
"""What is to be done where a key cannot just be removed."""


def _either(words: Sequence[str]) -> str:
    return " or ".join(words) if words else "nothing: the rules allow none"


Trait = Callable[[Any], Iterator[tuple[str, ...]]]
"""Where a release does what a word of house rules names."""


def _where(keys: tuple[str, ...], holds: Callable[[Any], bool]) -> Trait:
    def places(release: Any) -> Iterator[tuple[str, ...]]:
        if holds(release):
            yield keys

    return places


def _columns_with(key: str) -> Trait:
    def places(table: Table) -> Iterator[tuple[str, ...]]:
        for name, column in table.every_column.items():
            if getattr(column, key) is not None:
                yield "columns", name, key

    return places


def _own_shape(series: Series) -> Iterator[tuple[str, ...]]:
    """Variables whose four features are not all made common."""
    features = series.features
    for name, listed in features.items() if isinstance(features, dict) else [("", features)]:
        if isinstance(listed, list) and set(listed) != set(STATISTICS):
            yield ("features", name) if name else ("features",)


def _has_query(release: Any) -> bool:
    return isinstance(release.source, Query)


def _queries(series: Series) -> Iterator[tuple[str, ...]]:
    """A series' own source, and those of whom it takes and of their outcomes."""
    parts: dict[tuple[str, ...], Any] = {(): series, ("cohort",): series.cohort, ("labels",): series.labels}
    for keys, part in parts.items():
        if part is not None and _has_query(part):
            yield (*keys, "source")


OF_TABLES: Mapping[str, Trait] = {
    "pseudonym": _columns_with("pseudonym"),
    "shift": _columns_with("shift"),
    "computed-view": _where(("view",), lambda t: t.view == "computed"),
    "blank": _where(("privacy", "suppression"), lambda t: t.privacy.blanks),
    "link": _where(("link",), lambda t: t.link is not None),
    "never-with": _where(("never_with",), lambda t: bool(t.never_with)),
    "other-persons": _where(("other_persons",), lambda t: bool(t.other_persons)),
    "query": _where(("source",), _has_query),
    "reciprocal": _where(
        ("search", "epsilon_safe", "utility"),
        lambda t: t.search.epsilon_safe is not None and t.search.epsilon_safe.utility != "score",
    ),
    "seed": _where(
        ("search", "epsilon_safe", "seed"),
        lambda t: t.search.epsilon_safe is not None and t.search.epsilon_safe.seed is not None,
    ),
    "without-person": _where(("person",), lambda t: t.person is None),
    "without-attacks": _where(("attacks",), lambda t: not t.attacks),
}
OF_SERIES: Mapping[str, Trait] = {
    "seed": _where(("perturb", "seed"), lambda s: s.perturb.seed is not None),
    "link": _where(("link",), lambda s: s.link is not None),
    "query": _queries,
    "own-shape": _own_shape,
}
OF_EVENTS: Mapping[str, Trait] = {
    "seed": _where(("generate", "seed"), lambda e: e.generate.seed is not None),
    "query": _where(("source",), _has_query),
    "without-attacks": _where(("attacks",), lambda e: not e.attacks),
}
