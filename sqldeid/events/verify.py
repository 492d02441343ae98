"""Check a release of events by other formulas: from what was written, the job, and the source.

It shares no statement with what made the release. It checks what can be seen of a release:

- every method: the columns; objects numbered 1, 2, …; nothing missing; times strictly in order, or places without gaps.
- `laplace`: every state is on the public list, every time in the public range, no object longer than the public cap,
  every group on the job's list and each object in one; and the ledger on the release is the job's and adds up to
  epsilon. The source is not asked: what it holds is noised.
- `ratio` and `none`: every state is in the source; every pair of states within a part is there as a transition, or in
  the rows of one object as neighbours are. With `ratio` once is not enough: nothing rests on a single record.

It does not show which entries of the models were used, nor that the rows are those that were drawn: the release alone
does not say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import UnknownKindError, VerificationError
from sqldeid.events.domain import Domain
from sqldeid.events.groups import listed
from sqldeid.events.plan import FIRST_TIME, LAST_TIME, OBJECT, POSITION, EventsPlan, timestamp
from sqldeid.events.privacy.laplace import Ledger
from sqldeid.events.result import EventsVerified
from sqldeid.publish import names_of
from sqldeid.sql import column, identifier


def verify(plan: EventsPlan, note: Mapping[str, object], written: exp.Expr, engine: Engine) -> EventsVerified:
    """Check what was written.

    Raises
    ------
    VerificationError
        If it is not what its note, the job and the source allow.
    """
    check = _Check(plan, written, engine)
    check.columns()
    counted = check.numbers()
    check.note(note)
    done = ["columns, numbering, order", "note and job agree"]
    if plan.domain is not None:
        states, pairs = check.public(plan.domain, counted), 0
        done += [
            "every state is on the public list" + (", every time in the public range" if plan.timed else ""),
            *(["every object is in one of the public groups, or the rest"] if plan.group else []),
            "the budget adds up to epsilon",
        ]
    else:
        least = _least(plan)
        states, pairs = check.source_states(least), check.source_pairs(least)
        done.append(f"every state and every pair of states has {least} or more records in the source")
    return EventsVerified(plan.method, counted["objects"], counted["events"], states, pairs, tuple(done))


def _least(plan: EventsPlan) -> int:
    """Records of the source that a state, or a pair of states, rests on at least."""
    match plan.method:
        case "ratio":
            return 2
        case "none":
            return 1
        case unknown:
            raise UnknownKindError(unknown, "privacy method of events")


class _Check:
    """One release being checked."""

    def __init__(self, plan: EventsPlan, written: exp.Expr, engine: Engine) -> None:
        self.plan, self.written, self.engine = plan, written, engine
        self.object = column(OBJECT, "r")
        self.time = column(plan.time.name, "r") if plan.time else None
        self.place = column(POSITION, "r") if plan.placed else None

    def fail(self, text: str) -> VerificationError:
        return VerificationError.at(self.plan.key, f"{text}; nothing of it should be used")

    def columns(self) -> None:
        """The release has these columns and no other."""
        plan = self.plan
        wanted = [OBJECT, *([plan.time.name] if plan.time else []), *([POSITION] if plan.placed else [])]
        wanted += [c.name for c in (*plan.grouped, *plan.states)]
        there = names_of(self.engine.columns(self.written), self.plan.key)
        if sorted(there) != sorted(wanted):
            raise self.fail(f"it has the columns {', '.join(there)}, and should have {', '.join(wanted)}")

    def numbers(self) -> dict[str, int]:
        """Numbering, order, and the public range of times."""
        domain = self.plan.domain
        ranged = domain is not None and domain.first is not None and domain.last is not None
        first = timestamp(domain.first.isoformat()) if ranged and domain and domain.first else None
        last = timestamp(domain.last.isoformat()) if ranged and domain and domain.last else None
        found: dict[str, int] = self.engine.row(
            "events/check_numbers",
            release=self.written,
            object=self.object,
            time=self.time,
            place=self.place,
            first_time=first,
            last_time=last,
        )
        wrong = {
            "values are missing in it": found["missing"],
            "its objects are not numbered 1, 2, …": found["objects"] != found["greatest"] or found["least"] != 1,
            "times are outside the public range": found["outside"],
            "events of an object are not in order": found["misplaced"],
        }
        for text, there in wrong.items():
            if there:
                raise self.fail(text)
        return found

    def note(self, note: Mapping[str, object]) -> None:
        """What was noted is what the job asks for; a budget adds up, exactly."""
        plan = self.plan
        promised = note.get("guarantee")
        epsilon = plan.part.privacy.epsilon
        if note.get("method") != plan.method or not isinstance(promised, Mapping):
            raise self.fail("it was made by another method than the job's")
        if promised.get("epsilon") != (float(epsilon) if epsilon is not None else None):
            raise self.fail("it was made with another epsilon than the job's")
        if promised.get("differentially_private") is not (plan.method == "laplace"):
            raise self.fail("its note promises what its method does not give")
        if plan.method != "laplace":
            return
        ledger = note.get("ledger")
        spends = [s for s in ledger if isinstance(s, Mapping)] if isinstance(ledger, list) else []
        spent = sum((Fraction(str(s.get("epsilon_exact"))) for s in spends), Fraction(0))
        if spent != plan.epsilon:
            raise self.fail("the spends on its note do not add up to epsilon")
        self.budget(spends)
        for spend in spends:
            needed = Fraction(int(str(spend.get("sensitivity")))) / Fraction(str(spend.get("epsilon_exact")))
            if Fraction(float(str(spend.get("scale")))) < needed:
                raise self.fail("noise on its note is less than its sensitivity and its part of the budget need")

    def budget(self, spends: list[Mapping[str, object]]) -> None:
        """Statistics, sensitivities, cells and parts of epsilon are the job's, of a number of events that it allows."""
        domain = self.plan.domain
        assert domain is not None  # noqa: S101 - only with laplace
        allowed = [replace(domain, events_max=last) for last in domain.length_bins] if domain.chosen else [domain]
        names = ("statistic", "sensitivity", "epsilon_exact", "cells")
        found = sorted(tuple(str(spend.get(name)) for name in names) for spend in spends)
        for tried in allowed:
            ledger = Ledger.split(tried, self.plan.epsilon)
            if found == sorted(tuple(str(s.to_dict()[name]) for name in names) for s in ledger.spends):
                return
        raise self.fail("the spends on its note are not those of the job")

    def public(self, domain: Domain, counted: Mapping[str, int]) -> int:
        """States are on the list, objects are not longer than the cap."""
        if counted["longest"] > domain.longest:
            raise self.fail("an object has more events than the public cap")
        self.groups(domain)
        names = [c.name for c in self.plan.states]
        words = list(zip(*domain.states, strict=True))
        listed = self.engine.put(
            f"{self.plan.name}_public", pa.table({f"p{i}": pa.array(w, pa.string()) for i, w in enumerate(words)})
        )
        return self._states(listed, {n: column(f"p{i}", "a") for i, n in enumerate(names)}, 1)

    def groups(self, domain: Domain) -> None:
        """Values of groups are on the list, together as the list combines them, and one object is in one group."""
        if not self.plan.grouped:
            return
        columns = [column(c.name, "r") for c in self.plan.grouped]
        wrong = self.engine.row("events/check_groups", release=self.written, object=self.object, groups=columns)
        if wrong["wrong"]:
            raise self.fail(f"{wrong['wrong']} of its objects are in more than one group")
        allowed = self.engine.put(f"{self.plan.name}_groups", listed(domain))
        groups = {c.name: column(f"g{i}", "a") for i, c in enumerate(self.plan.grouped)}
        self._allowed(allowed, groups, 1, "groups")

    def source_states(self, least: int) -> int:
        """States are in the source often enough."""
        return self._states(self.events(), {c.name: self._value(c.name, "a") for c in self.plan.states}, least)

    def events(self) -> exp.Expr:
        """The usable rows of the source."""
        source = exp.alias_(self.plan.source.copy(), "s", table=True)
        return exp.Subquery(this=exp.select("*").from_(source).where(self.usable()))

    def _value(self, name: str, table: str) -> exp.Expr:
        found = next(c for c in self.plan.states if c.name == name)
        value = column(name, table)
        return exp.cast(value, exp.DataType.build("varchar", dialect="duckdb")) if found.is_enum else value

    def _states(self, allowed: exp.Expr, columns: Mapping[str, exp.Expr], least: int) -> int:
        return self._allowed(allowed, columns, least, "states")

    def _allowed(self, allowed: exp.Expr, columns: Mapping[str, exp.Expr], least: int, what: str) -> int:
        states = [
            {"release": column(n, "r"), "allowed": value, "name": identifier(f"s{i}")}
            for i, (n, value) in enumerate(columns.items())
        ]
        found = self.engine.row(
            "events/check_states", release=self.written, allowed=allowed, least=least, states=states
        )
        if found["wrong"]:
            raise self.fail(f"{found['wrong']} of its {what} may not be in it")
        return int(found["states"])

    def source_pairs(self, least: int) -> int:
        """Pairs of states within parts are in the source often enough."""
        plan = self.plan
        order = [column(plan.time.name, "s")] if plan.time else []
        found = self.engine.row(
            "events/check_pairs",
            release=self.written,
            source=plan.source,
            least=least,
            hours=self.threshold(),
            object={"release": self.object, "source": column(plan.owner.name, "s")},
            time=self.time,
            place=self.place,
            usable=self.usable(),
            order=[*order, *(o.value for o in plan.orders)],
            states=[
                {"release": column(c.name, "r"), "source": self._value(c.name, "s"), "name": identifier(f"s{i}")}
                for i, c in enumerate(plan.states)
            ],
        )
        if found["wrong"]:
            raise self.fail(f"{found['wrong']} pairs of neighbouring states in it have no support in the source")
        return int(found["pairs"])

    def threshold(self) -> float | None:
        """The longest gap within a part, in hours."""
        plan, asked = self.plan, self.plan.part.gap_hours
        if plan.time is None or asked == "none":
            return None
        if not isinstance(asked, str):
            return float(asked)
        found = self.engine.row(
            "events/fence_gaps", source=self.events(), object=column(plan.owner.name, "s"), time=plan.moment
        )["hours"]
        return max(float(found), 1.0) * (1 - 1e-9) if found is not None else 1e12

    def usable(self) -> exp.Expr:
        """Rows of the source that have object, time and state."""
        plan = self.plan
        parts: list[exp.Expr] = [_there(column(plan.owner.name, "s"))]
        time = plan.moment
        if time is not None:
            parts += [
                exp.GTE(this=time, expression=timestamp(FIRST_TIME)),
                exp.LTE(this=time.copy(), expression=timestamp(LAST_TIME)),
            ]
        parts.append(exp.Paren(this=exp.or_(*(_there(column(c.name, "s")) for c in plan.states))))
        return exp.and_(*parts)


def _there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value, expression=exp.Null()))
