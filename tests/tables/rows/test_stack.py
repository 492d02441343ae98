"""Stacks against a stack in plain Python, row by row, on random tables: hostile names, NULLs, ties, two keys."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.engine.opening import open_connection
from sqldeid.errors import JobError
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.rows.shape import check_stacks, keep, make_again
from tests.support.sources import insert

Row = dict[str, object]
PERSON, SITE, SEQ, CODE = "id", "select", 'se"q; --', "ünï code"
"""Names of columns: a person's keys, the order and the value."""


class Doubt(Exception):
    """Which row comes first is an accident."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ---- the definition ---------------------------------------------------------------------------------------------


def rank(row: Row, names: Sequence[str]) -> tuple[object, ...]:
    """A row's place in an order; NULL comes last."""
    return tuple((row[n] is None, row[n] if row[n] is not None else 0) for n in names)


def in_order(rows: Sequence[Row], names: Sequence[str], *, from_the_last: bool = False) -> list[list[Row]]:
    """Groups of rows that are equal in order, first to last; from the last on, NULL is still last."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(rank(row, names), []).append(row)
    if not from_the_last:
        return [groups[key] for key in sorted(groups)]
    ranked = sorted(groups)
    for place in reversed(range(len(names))):  # stable: the last column first
        ranked.sort(key=lambda key: key[place][1], reverse=True)  # type: ignore[index]
        ranked.sort(key=lambda key: key[place][0])  # type: ignore[index]
    return [groups[key] for key in ranked]


def picked(rows: Sequence[Row], stack: Mapping[str, object]) -> list[Row]:
    """Of a person's rows of the table between, those that count."""
    pick = stack.get("pick")
    if not rows or pick is None:
        keys = [row["hadm"] for row in rows]
        if len(set(keys)) < len(keys):
            raise Doubt
        return list(rows)
    names = [str(stack["pick_order"]), *stack.get("pick_then", [])]  # type: ignore[misc]
    if pick == "longest":
        for row in rows:
            known = row["come"] is not None and row["go"] is not None
            row["short"] = (row["come"] - row["go"]) if known else None  # type: ignore[operator]
        names[0] = "short"
    first = in_order(rows, names, from_the_last=pick == "last")[0]
    if len(first) > 1:
        raise Doubt
    return first


def taken(groups: list[list[Row]], places: Sequence[int], *, unordered: bool) -> list[object]:
    """The values in these places; doubtful where rows that are equal in order could change places unseen."""
    flat = [row for group in groups for row in group]
    start = 1
    for group in groups:
        among = set(range(start, start + len(group)))
        start += len(group)
        hit = among & set(places)
        if len(group) > 1 and hit and not (unordered and hit == among):
            raise Doubt
    values = [flat[p - 1][CODE] if p <= len(flat) else None for p in places]
    if unordered:
        members = sorted({v for v in values if v is not None})  # type: ignore[type-var]
        values = [*members, *[None] * (len(places) - len(members))]
    return values


def summary(aggregate: str, rows: Sequence[Row]) -> object:
    there = [row[CODE] for row in rows if row[CODE] is not None]
    if aggregate == "count":
        return len(there)
    if not there:
        return None
    if aggregate == "mean":
        return float(sum(Fraction(str(v)) for v in there) / len(there))
    return min(there) if aggregate == "min" else max(there)  # type: ignore[type-var]


def stacked(rows: Sequence[Row], stack: Mapping[str, object]) -> list[object]:
    """The columns of one person."""
    aggregate = stack.get("aggregate")
    if aggregate not in (None, "first", "last"):
        return [summary(str(aggregate), rows)]
    groups = in_order(rows, stack["order"] + stack.get("then", []), from_the_last=aggregate == "last")  # type: ignore
    places = [1] if aggregate else stack.get("items") or list(range(1, int(str(stack["first"])) + 1))
    return taken(groups, places, unordered=bool(stack.get("unordered")))  # type: ignore[arg-type]


# ---- random tables and stacks -----------------------------------------------------------------------------------


@dataclass
class Case:
    """A database, a stack over it, and what each person gets."""

    seed: int
    kind: str = "text"
    people: list[Row] = field(default_factory=list)
    child: list[Row] = field(default_factory=list)
    between: list[Row] = field(default_factory=list)
    stack: dict[str, object] = field(default_factory=dict)

    def expected(self) -> list[tuple[object, ...]]:
        through, on = "through" in self.stack, self.stack["on"]
        kept = [r for r in self.child if "where" not in self.stack or (r[SEQ] is not None and r[SEQ] > 0)]  # type: ignore
        chosen: dict[tuple[object, ...], list[Row]] = {}
        for row in self.between if through else kept:
            key = tuple(row[k] for k in on)  # type: ignore[attr-defined]
            if None not in key and (not through or row["hadm"] is not None):
                chosen.setdefault(key, []).append(row)
        if through:
            chosen = {key: picked(rows, self.stack) for key, rows in chosen.items()}
            chosen = {
                key: [c | {"come": t["come"]} for t in rows for c in kept if c["hadm"] == t["hadm"]]
                for key, rows in chosen.items()
            }
        got = {key: stacked(rows, self.stack) for key, rows in chosen.items() if rows}
        width = len(next(iter(got.values()))) if got else self.width
        nothing = [0] if self.stack.get("aggregate") == "count" else [None] * width
        made = []
        for person in self.people:
            values = got.get(tuple(person[k] for k in on))  # type: ignore[attr-defined]
            if values is not None or self.stack.get("empty") != "drop":
                made.append((person[PERSON], *(values if values is not None else nothing)))
        return sorted(made, key=repr)

    @property
    def width(self) -> int:
        if "aggregate" in self.stack:
            return 1
        items = self.stack.get("items")
        return len(items) if isinstance(items, list) else int(str(self.stack["first"]))


def random_case(seed: int) -> Case:
    draw = random.Random(seed)
    kind = draw.choice(["text", "integer", "float", "date"])
    case = Case(seed, kind)
    n = draw.choice([1, 2, 4])
    value = {
        "text": lambda: draw.choice(["", "a", "it's", "😀\n", "B", "007"]),
        "integer": lambda: draw.randint(-3, 3),
        "float": lambda: draw.choice([-0.0, 0.0, 1.5, -2.25, 0.1, 3e7]),
        "date": lambda: dt.date(2000, 1, 1) + dt.timedelta(days=draw.randint(-3, 3)),
    }[kind]
    tied = draw.random() < 0.5
    case.people = [{PERSON: i, SITE: draw.choice(["x", "y", None])} for i in range(n)]
    sites = {p[PERSON]: p[SITE] for p in case.people}
    for i in range(draw.choice([0, 4, 8, 8])):
        owner = draw.choice([None, *range(n + 1)])
        come = draw.choice([None, *range(5)])
        go = None if come is None else come + draw.randint(0, 3)
        hadm = None if draw.random() < 0.1 else i if not tied or draw.random() < 0.5 else draw.randint(0, 7)
        case.between.append({PERSON: owner, SITE: sites.get(owner, "x"), "hadm": hadm, "come": come, "go": go, "no": i})
    for i in range(draw.choice([0, 1, 12, 25, 25, 25, 25])):
        owner = draw.choice([None, *range(n + 2)])
        code = value() if draw.random() < 0.8 else None
        seq = draw.choice([None, *range(-1, 60 if not tied else 9)])
        row = {PERSON: owner, SITE: sites.get(owner, "z"), "hadm": draw.choice([None, *range(8)]), SEQ: seq, CODE: code}
        case.child.append(row | {"no": i})
    case.stack = random_stack(draw, kind)
    return case


def random_stack(draw: random.Random, kind: str) -> dict[str, object]:
    stack: dict[str, object] = {"from": "chi ld", "on": [PERSON], "value": CODE, "role": "insensitive"}
    stack["from"] = quoted("chi ld")
    if draw.random() < 0.4:
        stack |= {"through": quoted("be tween"), "through_on": ["hadm"]}
        if pick := draw.choice([None, "first", "last", "longest"]):
            stack |= {"pick": pick, "pick_order": "come"} | ({"pick_until": "go"} if pick == "longest" else {})
            stack |= {"pick_then": ["no"]} if draw.random() < 0.7 else {}
    if draw.random() < 0.3:
        stack["on"] = [PERSON, SITE]
    shape = draw.choice(["first", "items", "unordered", "unordered", "first or last", "summary", "summary"])
    if shape == "summary":
        aggregates = ["count", "min", "max"] + (["mean"] if kind in ("integer", "float") else [])
        stack["aggregate"] = draw.choice(aggregates)
    else:
        through = "through" in stack and "pick" not in stack and draw.random() < 0.7
        stack |= {"order": ["come", SEQ] if through else [SEQ]} | ({"then": ["no"]} if draw.random() < 0.5 else {})
        if shape == "first or last":
            stack["aggregate"] = draw.choice(["first", "last"])
        elif shape == "items" or draw.random() < 0.3:
            stack["items"] = sorted(draw.sample(range(1, 6), draw.randint(1, 3)))
        else:
            stack["first"] = draw.randint(1, 4)
        if shape == "unordered":
            stack["unordered"] = True
    if draw.random() < 0.3:
        stack["where"] = f"{quoted(SEQ)} > 0"
    if draw.random() < 0.4:
        stack["empty"] = draw.choice(["keep", "drop"])
    return stack


TYPES = {"text": "VARCHAR", "integer": "INTEGER", "float": "DOUBLE", "date": "DATE"}


def load(case: Case, c: duckdb.DuckDBPyConnection) -> None:
    site, seq, code = quoted(SITE), quoted(SEQ), quoted(CODE)
    c.execute(f"CREATE TABLE people (id INTEGER, {site} VARCHAR)")
    c.execute(
        f'CREATE TABLE "be tween" (id INTEGER, {site} VARCHAR, hadm INTEGER, come INTEGER, go INTEGER, no INTEGER)'
    )
    c.execute(
        f'CREATE TABLE "chi ld" (id BIGINT, {site} VARCHAR, hadm INTEGER, {seq} INTEGER, '
        f"{code} {TYPES[case.kind]}, no INTEGER)"
    )
    c.execute("BEGIN")
    for table, rows in (("people", case.people), ('"be tween"', case.between), ('"chi ld"', case.child)):
        if rows:
            insert(c, table, [[*r.values()] for r in rows])
    c.execute("COMMIT")


def job_of(stack: Mapping[str, object], **table: object) -> sqldeid.Job:
    columns = {SITE: {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}
    made = {"source": "people", "person": PERSON, "columns": columns, "privacy": {"k": 1}, "stack": {"y": stack}}
    return sqldeid.Job.parse({"tables": {"t": made | table}})


@contextmanager
def planned(job: sqldeid.Job, c: duckdb.DuckDBPyConnection) -> Iterator[tuple[planning.TablePlan, object]]:
    with open_connection(c) as engine:
        engine.begin()
        yield planning.plan("t", job.tables["t"], engine, Path()), engine


def read(plan: planning.TablePlan, engine: object, source: object) -> list[tuple[object, ...]]:
    names = ", ".join([quoted(PERSON), *(quoted(n) for s in plan.stacked.stacks for n in s.part.names("y"))])
    rows = engine.connection.execute(f"SELECT {names} FROM {source.sql('duckdb')}").fetchall()  # type: ignore[attr-defined]
    return sorted(rows, key=repr)


def close(found: Sequence[tuple[object, ...]], wanted: Sequence[tuple[object, ...]]) -> bool:
    """Equal, but for the last digits of a mean; both zeros are one value, but 1 is not 1.0."""

    def same(a: object, b: object) -> bool:
        if type(a) is float and type(b) is float:
            return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-10) and not (a == 0 and math.copysign(1, a) < 0)
        return a == b and type(a) is type(b)

    return len(found) == len(wanted) and all(
        len(f) == len(w) and all(map(same, f, w)) for f, w in zip(found, wanted, strict=True)
    )


@pytest.mark.sampled(24)
@pytest.mark.parametrize("seed", range(120))
def test_sql_stacks_what_python_stacks(seed: int) -> None:
    case = random_case(seed)
    with duckdb.connect() as c:
        load(case, c)
        with planned(job_of(case.stack), c) as (plan, engine):
            try:
                wanted = case.expected()
            except Doubt:
                with pytest.raises(JobError, match=r"tables\.t\.stack\.y\.\w+: .* (rows that are equal|several rows)"):
                    keep(plan, engine)
                return
            kept = keep(plan, engine)
            assert close(read(plan, engine, kept), wanted), case.stack
            assert close(read(plan, engine, make_again(plan, engine)), wanted), case.stack
            check_stacks(plan, engine, kept)


def test_the_random_cases_reach_every_corner() -> None:
    cases = [random_case(seed) for seed in range(120)]
    doubtful = full = 0
    for case in cases:
        try:
            full += any(v not in (None, 0) for row in case.expected() for v in row[1:])
        except Doubt:
            doubtful += 1
    assert doubtful >= 15
    assert full > 50
    for key in ("unordered", "items", "first", "through", "pick", "where", "then", "empty"):
        assert sum(key in case.stack for case in cases) > 10, key
    assert {case.stack.get("aggregate") for case in cases} >= {"count", "first", "last", "min", "max", "mean"}
