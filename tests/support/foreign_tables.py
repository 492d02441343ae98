"""Tables that every engine holds, releases of them, and what is told of a release."""

from __future__ import annotations

import math
from dataclasses import asdict, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sqldeid import (
    Asked,
    Job,
    Options,
    anonymize,
    tradeoff,
    verify,
    verify_certificates,
)
from tests.support.criteria import hierarchy_file
from tests.support.foreign import Both, Foreign, bag, in_duckdb
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, job, qi, release

SEX, AGE, WARD = 'we"ird; DROP TABLE x; --', "select", "Wärd"


def people(rows: int = 300) -> pa.Table:
    """Hostile names, NULLs, texts with quotes, line ends and emoji, and every type that travels."""
    every = range(rows)
    return pa.table(
        {
            "id": pa.array(every, pa.int64()),
            SEX: [["f", "it's", None, "a\nb"][i % 4 if i % 7 else 2] for i in every],
            AGE: pa.array([None if i % 41 == 0 else 20 + (i * 7) % 30 for i in every], pa.int32()),
            WARD: pa.array([i % 3 for i in every], pa.int16()),
            "money": pa.array([Decimal(i % 4) / 4 for i in every], pa.decimal128(10, 2)),
            "height": pa.array([None if i % 29 == 0 else (i % 2) * 1.5 - 0.0 for i in every], pa.float64()),
            "alive": [None if i % 37 == 0 else i % 5 > 0 for i in every],
            "born": pa.array([date(1950 + i % 4, 1, 1 + i % 2) for i in every], pa.date32()),
            "seen": pa.array([datetime(2020, 1, 1) + timedelta(hours=i % 2, microseconds=i % 2) for i in every]),
            "illness": [["", "😀", "flu", None, "cold"][(i * i + i // 9) % 5] for i in every],
            "days": pa.array([(i * 13) % 6 for i in every], pa.int64()),
        }
    )


COLUMNS = {
    "id": IDENTIFYING,
    SEX: qi(),
    AGE: qi({"bands": [5, 10]}),
    WARD: INSENSITIVE,
    "seen": INSENSITIVE,
    "illness": SENSITIVE,
    "days": SENSITIVE,
}


TYPED = {
    "money": qi({"bands": [0.5, 1]}),
    "height": qi(),
    "alive": qi(),
    "born": qi({"dates": ["month", "year"]}),
    "seen": qi({"dates": ["month", "year"]}),
    "illness": INSENSITIVE,
}


L, T = {"column": "illness", "l": 2}, {"column": "days", "t": 0.4}


AGES = """
    SELECT p.id, p."we""ird; DROP TABLE x; --", EXTRACT(YEAR FROM p.seen) - EXTRACT(YEAR FROM p.born) AS years,
           a.mean, a.place
    FROM people AS p JOIN (SELECT id, AVG(n) OVER (PARTITION BY n) AS mean, YEAR(DATE '2020-01-31') - n AS place
                           FROM visits) AS a ON a.id = p.id
    WHERE DATE_DIFF('day', p.born, p.seen) > 25200"""


VISITS = {"query": f'SELECT p.*, v.n FROM people AS p JOIN visits AS v ON v.id = p.id WHERE p."{AGE}" > 21'}


def asked(columns: dict[str, Any], *, privacy: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A release of the people; `privacy` adds criteria."""
    found = release(columns, source=more.pop("source", "people"), limit=0.3, person="id", **more)
    found["privacy"] |= privacy or {}
    return found


OWNED = {"query": "SELECT p.*, MOD(p.id, 70) AS owner FROM people AS p"}


MANY = {name: c for name, c in COLUMNS.items() if name != "id"}


def sampled_alike(both: Both, folder: Path) -> None:
    """Draw a sample by one key on both engines, and check both."""
    key = folder / "key"
    key.write_text("".join(f"{i * 7 % 256:02x}" for i in range(32)))
    key.chmod(0o600)
    columns = {SEX: qi(), AGE: qi({"bands": [10]}), "illness": SENSITIVE, "days": INSENSITIVE}
    wanted = job({"schema": "drawn"}, r=asked(columns, k=2, sample=0.4))
    options = Options(key_file=key)
    there, here = (anonymize(wanted, d, options=options).releases["r"] for d in (both.foreign.database, both.file))
    assert 60 < there.rows < 180
    assert told(there) == told(here)
    assert bag(both.foreign.read("drawn.r")) == bag(both.rows("drawn.r"))
    for database in (both.foreign.database, both.file):
        assert verify(wanted, database, options=options)["r"].rows == there.rows


RELEASES = {
    "k": asked(COLUMNS, k=4),
    "blank": asked(COLUMNS, k=4, suppression="blank"),
    "types": asked(TYPED, k=3),
    "types as text": asked({n: c for n, c in TYPED.items() if n != "height"}, k=3, text=True),  # engines spell 0.0
    "many rows": release(MANY, source=OWNED, person="owner", rows="many", k=3, limit=0.3),
    "many rows, l": asked(MANY, source=OWNED, rows="many", k=3, privacy={"l_diversity": L}) | {"person": "owner"},
    "only quasi-identifiers": asked({SEX: qi(), AGE: qi({"bands": [5, 10]})}, k=5),
    "times cut": asked({SEX: qi(), "seen": {**INSENSITIVE, "to": "week"}, "born": {**SENSITIVE, "to": "month"}}, k=3),
    "cut, every value": asked({AGE: qi({"bands": [5, 10]}, top_code=42)}, k=3),
    "cut, bands": asked({AGE: qi({"bands": [5, 10]}, top_code=42), "money": qi(top_code=0.5)}, k=20),
    "filter": asked(COLUMNS, k=3, where=f'"{WARD}" <> 1 AND "{AGE}" / 2 > 12.2'),
    "query": asked({**COLUMNS, "n": INSENSITIVE}, k=3, source=VISITS),
    "dates and means": asked(
        {SEX: qi(), "years": qi({"bands": [2]}), "mean": qi(), "place": qi()}, k=3, source={"query": AGES}
    ),
    "l distinct": asked(COLUMNS, k=3, privacy={"l_diversity": [{**L, "kind": "distinct"}]}),
    "l entropy, blank": asked(COLUMNS, k=3, suppression="blank", privacy={"l_diversity": [{**L, "kind": "entropy"}]}),
    "l recursive": asked(COLUMNS, k=3, privacy={"l_diversity": [{**L, "kind": "recursive", "c": 4.0}]}),
    "aggregated": asked(
        {
            **{SEX: qi(), AGE: qi({"aggregate": "median"}), WARD: qi({"aggregate": "mode"})},
            **{"money": qi({"aggregate": "mean"}), "height": qi({"aggregate": "interval", "grid": 0.5})},
            **{"born": qi({"aggregate": "interval"}), "seen": qi({"aggregate": "mean", "grid": "hour"})},
            "illness": SENSITIVE,
        },
        k=20,
    ),
    "aggregated, nothing beside": asked({SEX: qi(), "height": qi({"aggregate": "mean", "grid": 0.1})}, k=90, text=True),
    "t": asked(COLUMNS, k=3, privacy={"t_closeness": [{**T, "distance": "ordered"}]}),
    "t by hierarchy": asked(
        COLUMNS,
        k=3,
        privacy={"t_closeness": [{**T, "t": 0.25, "distance": "hierarchical", "hierarchy": hierarchy_file("days")}]},
    ),
    "delta": asked(COLUMNS, k=3, privacy={"delta_disclosure": [{"column": T["column"], "delta": 3.0}]}),
    "beta": asked(COLUMNS, k=3, privacy={"beta_likeness": [{"column": T["column"], "beta": 4.0}]}),
    "k-map": asked(
        COLUMNS,
        source={"query": "SELECT * FROM people WHERE MOD(id, 3) = 1"},
        k=1,
        privacy={"k_map": 12, "population": {"table": "people"}},
    ),
    "k-map, the rest": asked(
        COLUMNS, where="illness IN ('flu', 'cold')", k=1, privacy={"k_map": 12, "population": {"rest": True}}
    ),
    "k-map, weights": asked(
        COLUMNS,
        source={"query": "SELECT *, 1 + MOD(id, 7) AS w FROM people"},
        k=1,
        privacy={"k_map": 12, "population": {"weights": "w"}},
    ),
    "k-map, estimated": asked(
        COLUMNS, k=1, privacy={"k_map": 12, "population": {"size": 5000, "fraction": 0.5, "estimate": "poisson"}}
    ),
    "delta-presence": asked(
        COLUMNS,
        source={"query": "SELECT * FROM people WHERE MOD(id, 3) = 1"},
        k=2,
        privacy={"delta_presence": {"least": 0.1, "most": 0.6}, "population": {"table": "people"}},
    ),
    "average": asked(COLUMNS, k=3, privacy={"average_risk": 0.16}),
    "average, at risk, l": asked(
        COLUMNS, k=2, privacy={"average_risk": 0.2, "at_risk": {"threshold": 0.2, "share": 0.1}, "l_diversity": L}
    ),
    "m": asked(COLUMNS, k=3, privacy={"m_concealing": {"m": 0.4, "known": {"days": 0.5, "illness": 0.2}}}),
}


RELEASES["m, blank"] = asked(
    COLUMNS, k=3, suppression="blank", privacy={"m_concealing": {"m": 0.4, "known": {"days": 0.5, "illness": 0.2}}}
)


RELEASES["by k, then l"] = asked(COLUMNS, k=3, privacy={"l_diversity": [{**L, "l": 3}], "criteria_limit": 0.6}) | {
    "search": {"choose": "by-k"}
}


STACK = {"from": "codes", "on": "id", "value": "code", "role": "quasi-identifying", "hierarchy": {"keep_first": [1]}}


ORDERED = {"through": "stays", "through_on": "stay", "order": ["came", "seq"], "then": "code"}


FIRST = {"through": "stays", "through_on": "stay", "pick": "first", "pick_order": "came", "pick_then": "stay"}


SUMMED = {"from": "codes", "on": "id", "role": "sensitive"}


RELEASES |= {
    f"stack {name}": asked({SEX: qi()}, k=3, stack=stacks)
    for name, stacks in {
        "first of all": {"c": {**STACK, **ORDERED, "first": 2}},
        "unordered": {"c": {**STACK, **ORDERED, "first": 3, "unordered": True}},
        "last": {"c": {**STACK, **ORDERED, "aggregate": "last"}},
        "of a picked stay": {"c": {**STACK, **FIRST, "order": "seq", "then": "code", "items": [1, 3]}},
        "of the last stay": {"c": {**STACK, **FIRST, "pick": "last", "order": "seq", "then": "code", "first": 1}},
        "summaries": {
            "n": {**SUMMED, "aggregate": "count"},
            "mean": {**SUMMED, "aggregate": "mean", "value": "seq"},
            "high": {**SUMMED, "aggregate": "max", "value": "seq", "empty": "drop"},
        },
    }.items()
}


KEYED = asked(
    {
        "id": {"role": "identifying", "pseudonym": True},
        SEX: qi(),
        "seen": {"role": "insensitive", "shift": "person"},
        "born": {"role": "insensitive", "shift": "birth"},
    },
    k=3,
)


def children() -> dict[str, pa.Table]:
    """Stays of people, and codes of stays, in no order; with ties, NULLs, and people who have none."""
    stays = [(i, i * 4 + j, date(2020, 1, 1 + (j * 2) % 3)) for i in range(280) for j in range(i % 4)]
    codes = [
        (
            i,
            stay,
            None if (stay + q) % 11 == 0 else (stay * 7 + q) % 4,
            [f"0{stay % 2}", "1é", None][(stay + q) % 3],
        )
        for i, stay, _ in reversed(stays)
        for q in range((stay + i) % 4)
    ]
    return {
        "stays": pa.table(
            {
                "id": pa.array([s[0] for s in stays], pa.int64()),
                "stay": pa.array([s[1] for s in stays], pa.int64()),
                "came": pa.array([s[2] for s in stays], pa.date32()),
            }
        ),
        "codes": pa.table(
            {
                "id": pa.array([c[0] for c in codes], pa.int64()),
                "stay": pa.array([c[1] for c in codes], pa.int64()),
                "seq": pa.array([c[2] for c in codes], pa.int32()),
                "code": pa.array([c[3] for c in codes], pa.string()),
            }
        ),
    }


@pytest.fixture(scope="module")
def both(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Both:
    visits = pa.table({"id": pa.array(range(300), pa.int64()), "n": pa.array([i % 2 for i in range(300)], pa.int64())})
    tables = {"people": people(), "visits": visits, **children()}
    for name, rows in tables.items():
        foreign.load(name, rows)
    return Both(foreign, in_duckdb(tmp_path_factory.mktemp("both") / "people.duckdb", tables))


LEFT_OUT = ("search", "moved", "written", "seconds", "statements")


class Summed(float):
    """A number that may come of a sum: its last bits change with the order of the rows, from run to run."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isclose(self, other, rel_tol=1e-12)

    __hash__ = None  # type: ignore[assignment]


def without_order(whole: dict[str, Any]) -> dict[str, Any]:
    """What attacks tell but the order of rows, which is known of DuckDB's tables alone."""
    if not isinstance(left_out := whole.get("left_out"), list):
        return whole
    others = [one for one in left_out if not (isinstance(one, dict) and one.get("attack") == "order")]
    return {**{name: value for name, value in whole.items() if name != "order"}, "left_out": others}


def told(found: Any) -> Any:
    """What of a release, or of a look, must be the same on every engine."""
    whole = found.to_dict() if hasattr(found, "to_dict") else asdict(found) if is_dataclass(found) else found
    if isinstance(whole, dict):
        # A column's type is named as the engine names what it wrote: JSON there is VARCHAR here.
        own = ("type",) if "role" in whole else ()
        whole = without_order(whole)
        return {name: told(value) for name, value in whole.items() if name not in (*LEFT_OUT, *own)}
    if isinstance(whole, list | tuple):
        return [told(value) for value in whole]
    return Summed(whole) if isinstance(whole, float) else whole


def hold_beside(wanted: Job, *databases: Any) -> None:
    """Hold what goes with release `r` on one database to the same on another."""
    options = Options(certificate=True, explain=True)
    there, here = (anonymize(wanted, d, options=options).releases["r"] for d in databases)
    assert told(there) == told(here)
    for certificate in (there.certificate, here.certificate):
        proven = [verify_certificates(wanted, d, {"r": certificate}) for d in databases]
        assert proven[0] == proven[1]
    traded = [told(tradeoff(wanted, d, Asked((2, 5), (0.0, 0.1)))["r"]) for d in databases]
    assert traded[0] == traded[1]


def sampled(folder: Path, **into: str) -> Job:
    """A seeded sample, with its hierarchies in the folder."""
    (folder / "age.csv").write_text("\n".join(f"{a};{a // 10 * 10};*" for a in range(60)))
    (folder / "ward.csv").write_text("\n".join(f"{w};*" for w in range(5)))
    found = release({AGE: qi("age.csv", uncovered="top"), WARD: qi("ward.csv")}, source="people", k=8, person="id")
    drawn = {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.4, "epsilon": 2.0, "delta": 0.39, "seed": 7}}
    return job({"schema": "sampled", **into}, folder, r={**found, "privacy": {"k": 8}, "search": drawn})
