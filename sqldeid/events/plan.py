"""Plan an events release from the job and the catalogue; no row is read, and `--plan` prints the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from sqlglot import exp

from sqldeid.catalogue.columns import columns_of, finder
from sqldeid.catalogue.relations import named, outward_in, resolve, resolve_expression
from sqldeid.engine.base import Column, Engine
from sqldeid.engine.opening import guessed_types
from sqldeid.errors import JobError
from sqldeid.events.domain import Domain, read_domain
from sqldeid.events.groups import GROUP, number_of
from sqldeid.events.privacy.laplace import Ledger
from sqldeid.job.events import BUILT_IN_FACTORS, Events
from sqldeid.sql import column, identifier, literal, parse_expression

TIMED_FACTORS = ("weekday", "hour", "duration")
"""Factors by default where there are times."""

MOMENTS = ("weekday", "hour", "month", "year")
"""Factors that are read off the time of the event before; the others hold for a whole part."""


OBJECTS_NOISE_MOST = 10_000_000
"""Of the number of objects with `laplace`, where the job does not say how many to make."""

FIRST_TIME, LAST_TIME = "0001-01-01", "9999-12-31 23:59:59.999999"
"""No usable time is outside: calendars of other programs go no further, and infinity is no time."""

WIDE_TYPES = {"DATE": 10, "TIMESTAMP_S": 19, "TIMESTAMP_MS": 23}
"""Types that hold times which a timestamp of microseconds does not, and how much of a time's text is in them."""

OBJECT = "object_number"
"""The released column of new numbers; not called as the source's key is, for whose values they would be taken."""

POSITION = "position"
"""The column that is released where times do not tell an object's events apart."""


@dataclass(frozen=True, slots=True)
class Named:
    """A value that a statement reads from the source, under a name of our own."""

    name: exp.Identifier
    value: exp.Expr


@dataclass(frozen=True, slots=True)
class Factor:
    """What the next state may depend on.

    Parameters
    ----------
    name
        The column that holds its values as numbers.
    kind
        One of the built-in factors, or ``expression``.
    number
        1, 2, …: its place among the factors.
    """

    shown: str
    name: exp.Identifier
    kind: Literal["weekday", "hour", "duration", "month", "year", "expression"]
    number: int

    @property
    def of_part(self) -> bool:
        """Whether it holds for a whole part, and is drawn for each part that is made."""
        return self.kind not in MOMENTS


@dataclass(frozen=True, slots=True)
class EventsPlan:
    """One events release, resolved against the catalogue.

    Parameters
    ----------
    owner
        The job's column `object`: whose event it is.
    source
        What the statements read, under the alias ``s``: a table or subquery, with filter and expressions of factors.
    orders
        Columns that order events of one object, after the time.
    domain
        The public domains of `laplace`; None otherwise.
    grouped
        Columns that say which group an object is in, of `laplace`.
    outward
        What looks across rows, of the job's SQL or as types that were guessed from all rows; a guarantee per object
        rests on looking at one object alone.
    """

    name: str
    key: str
    part: Events
    source: exp.Expr
    source_label: str
    owner: Column
    time: Column | None
    orders: tuple[Named, ...]
    states: tuple[Column, ...]
    factors: tuple[Factor, ...]
    expressions: tuple[Named, ...]
    domain: Domain | None
    outward: tuple[str, ...]
    grouped: tuple[Column, ...] = ()

    @property
    def group(self) -> tuple[Named, ...]:
        """A row's group as a number, from that row's columns alone; nothing where objects are not grouped."""
        if self.domain is None or not self.domain.groups:
            return ()
        text = exp.DataType.build("varchar", dialect="duckdb")
        columns = [exp.cast(column(c.name, "s"), text.copy()) for c in self.grouped]
        return (Named(identifier(GROUP), number_of(self.domain, columns)),)

    @property
    def timed(self) -> bool:
        """Whether events have times, not only an order."""
        return self.time is not None

    @property
    def moment(self) -> exp.Expr | None:
        """The source's time as a timestamp; NULL for one that no timestamp reaches, which is no usable time."""
        if self.time is None:
            return None
        found = column(self.time.name, "s")
        wide = "DATE" if self.time.kind == "date" else self.time.type
        if wide not in WIDE_TYPES:
            return found
        own, kind = (exp.DataType.build(name, dialect="duckdb") for name in (wide, "TIMESTAMP"))
        first, last = (exp.cast(literal(text[: WIDE_TYPES[wide]]), own.copy()) for text in (FIRST_TIME, LAST_TIME))
        usable = exp.and_(exp.GTE(this=found, expression=first), exp.LTE(this=found.copy(), expression=last))
        return exp.Case().when(usable, exp.cast(found.copy(), kind))

    @property
    def placed(self) -> bool:
        """Whether an event's place is released: where times do not tell events apart."""
        return self.time is None or self.time.kind == "date"

    @property
    def method(self) -> str:
        """``ratio``, ``laplace`` or ``none``."""
        return self.part.privacy.method

    @property
    def state_names(self) -> tuple[Named, ...]:
        """The states' columns under names of our own; an ENUM as text, for its type lists every value."""
        text = exp.DataType.build("varchar", dialect="duckdb")
        return tuple(
            Named(
                identifier(f"s{i}"),
                exp.cast(column(c.name, "s"), text) if c.is_enum or self.domain else column(c.name, "s"),
            )
            for i, c in enumerate(self.states)
        )

    @property
    def epsilon(self) -> Fraction:
        """Epsilon as the decimal that the job writes; with `none` there is none."""
        if self.part.privacy.epsilon is None:
            raise JobError.at(f"{self.key}.privacy.epsilon", "missing")
        return Fraction(repr(self.part.privacy.epsilon))

    @property
    def unit(self) -> str:
        """Whose events are protected together."""
        return self.owner.name

    def facts(self) -> list[tuple[str, object]]:
        """What is printed before anything is done."""
        privacy, found = self.part.privacy, self.part
        lines: list[tuple[str, object]] = [
            ("source", self.source_label),
            ("object", self.owner.name),
            ("time", self.time.name if self.time else "none: an order alone"),
            ("state", ", ".join(c.name for c in self.states)),
            ("privacy", privacy.method + (f", epsilon {privacy.epsilon:g}" if privacy.epsilon is not None else "")),
        ]
        if self.domain is not None:
            most = self.domain.events_max
            looked_at: object = f"chosen with noise, at most {most}" if self.domain.chosen else most
            lines += [("states listed", len(self.domain.states)), ("events looked at", looked_at)]
            lines.append(("noise", self._noise()))
            if self.domain.factors:
                lines.append(("factors", ", ".join(self.domain.factors)))
            if self.domain.groups:
                names = ", ".join(name for name, _ in self.domain.groups)
                lines.append(("groups", f"{self.domain.group_count} by {names}, and a rest"))
        else:
            clusters = found.clusters
            lines += [
                ("split", f"at gaps: {found.gap_hours}" if self.timed else "never: there are no times"),
                (
                    "clusters",
                    f"{clusters.share:g} of the parts, {clusters.hashes} hashes, shingles of {clusters.shingle}",
                ),
                ("factors", ", ".join(f.shown for f in self.factors) or "none"),
                ("end", found.end),
            ]
        lines.append(("objects made", found.generate.objects or "as many as there are, noised"))
        return lines

    def _noise(self) -> str:
        """How much noise there will be: of public numbers alone, so it can be told before anything is read."""
        spend = Ledger.split(self.domain, self.epsilon).of("transitions") if self.domain is not None else None
        if spend is None:
            return "none"
        return (
            f"{spend.cells:,} transitions get noise of scale {spend.scale:,.3g}; most is noise below about "
            f"{spend.cells * spend.scale:,.3g} events"
        )

    def to_dict(self) -> dict[str, object]:
        """The plan for JSON."""
        return {"kind": "events", "name": self.name, **{k.replace(" ", "_"): v for k, v in self.facts()}}


def plan(name: str, part: Events, engine: Engine, folder: Path) -> EventsPlan:
    """Resolve one events release against the catalogue; no data is read, but for a public list of states.

    Raises
    ------
    JobError
        If a table, column or file is not there or not fit.
    """
    key = f"events.{name}"
    relation, label = resolve(part.source, engine, f"{key}.source")
    find = finder(columns_of(relation, engine, f"{key}.source"), label)
    factors, texts = _factors(part)
    time = _time(find(part.time, f"{key}.time"), key) if part.time is not None else None
    taken = {OBJECT, POSITION} if time is not None and time.kind == "date" else {OBJECT}
    groups = tuple(part.privacy.groups or ())
    for name in (c for c in (part.time, *part.state, *groups) if c is not None and c.casefold() in taken):
        raise JobError.at(
            key, f"a column is called {name}, as one that is released beside it; rename it in a source query"
        )
    relation = _selected(relation, part.where, texts, engine, key)
    states = tuple(_comparable(find(c, f"{key}.state"), f"{key}.state") for c in part.state)
    grouped = tuple(_comparable(find(c, f"{key}.privacy.groups"), f"{key}.privacy.groups") for c in groups)
    if part.privacy.method == "laplace":
        _refuse_other_texts(states, engine, f"{key}.state")
        _refuse_other_texts(grouped, engine, f"{key}.privacy.groups")
    orders = tuple(
        Named(identifier(f"o{i}"), column(_comparable(find(c, f"{key}.order"), f"{key}.order").name, "s"))
        for i, c in enumerate(part.order)
    )
    return EventsPlan(
        name=name,
        key=key,
        part=part,
        source=relation,
        source_label=label,
        owner=_comparable(find(part.object, f"{key}.object"), f"{key}.object"),
        time=time,
        orders=orders,
        states=states,
        factors=factors,
        expressions=tuple(Named(identifier(f"x{i}"), column(_factor_column(i), "s")) for i in range(len(texts))),
        domain=_domain(part, folder, key) if part.privacy.method == "laplace" else None,
        outward=(*dict.fromkeys(outward_in(part.source, [part.where, *texts])), *guessed_types(engine)),
        grouped=grouped,
    )


def _domain(part: Events, folder: Path, key: str) -> Domain:
    """The public domains; refused where noise alone would decide how much is made, which epsilon says beforehand."""
    domain = read_domain(part, folder, key)
    try:
        spend = Ledger.split(domain, Fraction(repr(part.privacy.epsilon))).of("lengths")
    except JobError as error:
        raise JobError.at(f"{key}.privacy.epsilon", error.message) from None
    if part.generate.objects is None and spend is not None and spend.scale * spend.cells > OBJECTS_NOISE_MOST:
        raise JobError.at(
            f"{key}.privacy.epsilon",
            "so small that noise alone would decide how many objects are made, and it could be "
            "millions; set generate.objects, or a larger epsilon",
        )
    return domain


def _factor_column(number: int) -> str:
    return f"sqldeid factor {number}"


def _selected(relation: exp.Expr, where: str | None, texts: list[str], engine: Engine, key: str) -> exp.Expr:
    """The source with the job's filter and the factors' expressions."""
    if where is None and not texts:
        return relation
    query = exp.select("*")
    for number, text in enumerate(texts):
        bound = resolve_expression(text, engine, f"{key}.factors")
        query = query.select(exp.alias_(bound, identifier(_factor_column(number))))
    query = query.from_(named(relation))
    if where is not None:
        query = query.where(resolve_expression(where, engine, f"{key}.where"))
    found = exp.Subquery(this=query)
    for column_ in engine.columns(found, key=f"{key}.where" if where is not None else f"{key}.factors"):
        if column_.name.startswith("sqldeid factor "):
            _comparable_factor(column_, texts, f"{key}.factors")
    return found


def _comparable_factor(found: Column, texts: list[str], key: str) -> None:
    """A factor's values are told apart: they are of a type that can be compared, and not all NULL."""
    text = next(t for i, t in enumerate(texts) if _factor_column(i) == found.name)
    if found.shown_type.strip('"') == "NULL" or isinstance(parse_expression(text, key=key).unnest(), exp.Null):
        raise JobError.at(key, f"{text} is NULL on every row, which tells nothing apart; remove it")
    _comparable(replace(found, name=text), key)


def _factors(part: Events) -> tuple[tuple[Factor, ...], list[str]]:
    """The factors, and the SQL of those that are expressions."""
    if part.privacy.method == "laplace":
        return (), []
    asked = part.factors if part.factors is not None else list(TIMED_FACTORS if part.time is not None else ())
    found: list[Factor] = []
    texts: list[str] = []
    for number, shown in enumerate(asked, start=1):
        if shown in BUILT_IN_FACTORS:
            found.append(Factor(shown, identifier(shown), shown, number))  # type: ignore[arg-type]  # one of them
        else:
            found.append(Factor(shown, identifier(f"x{len(texts)}"), "expression", number))
            texts.append(shown)
    return tuple(found), texts


def _comparable(found: Column, key: str) -> Column:
    if found.kind == "other" or (found.holds_enum and not found.is_enum):
        raise JobError.at(
            key,
            f"values of {found.name}, of type {found.shown_type}, cannot be compared; cast it to text in a "
            "source query",
        )
    return found


def _refuse_other_texts(states: tuple[Column, ...], engine: Engine, key: str) -> None:
    """A public list holds texts, and engines write floating-point numbers in ways of their own: 1.0, or 1."""
    found = next((c for c in states if c.kind == "float"), None)
    if found is not None and engine.capabilities.dialect != "duckdb":
        raise JobError.at(
            key,
            f"{found.name} is of type {found.shown_type}, which engines do not write alike, as a public list "
            "needs; cast it to a whole number, a decimal or text in a source query",
        )


def _time(found: Column, key: str) -> Column:
    key = f"{key}.time"
    if found.kind not in ("timestamp", "date"):
        zoned = found.type == "TIMESTAMP WITH TIME ZONE"
        mend = (
            "cast it to TIMESTAMP in a source query"
            if zoned
            else "make it a timestamp in a source query, or name it in order"
        )
        raise JobError.at(key, f"{found.name} is of type {found.shown_type}, not a timestamp or date; {mend}")
    return replace(found)


def timestamp(text: str) -> exp.Expr:
    """A timestamp as a literal."""
    return exp.cast(literal(text), exp.DataType.build("timestamp", dialect="duckdb"))
