"""Attack a release of events, for the data holder: models are fitted again on a part of the objects.

Source: events.md, *Evaluation* and *ratio*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from math import ceil, comb, exp
from math import inf as infinite

import numpy as np
import pyarrow as pa
from sqlglot import exp as sql

from sqldeid.arrays import Floats
from sqldeid.engine.base import Engine
from sqldeid.events.evaluate import Shingled, common_sets, nearest, read_sets
from sqldeid.events.fit import Fitted
from sqldeid.events.generate import HOUR_US, Made
from sqldeid.events.plan import EventsPlan
from sqldeid.events.sequences import split_events
from sqldeid.events.stage import put_batches
from sqldeid.sql import literal

Refit = Callable[[sql.Table], Fitted]
"""Fit again on other placed events."""

OBJECTS = 4_000
"""Objects that are attacked, more or less; the models are fitted on half of them."""

CANARY_RELEASES = 10
LEVEL = 0.05
"""Of the test (Fisher's, one-sided) that what is seen more often with an object is so by its presence."""
CANARY_MOST = 60
SPACE = 0x1_0000_0000


TELLS = f"more often with the object, by a test at the level {LEVEL}: it gives away that the object is in the data"
SILENT = f"so few releases do not tell a difference (test at the level {LEVEL}), which is no evidence of privacy"


@dataclass(frozen=True, slots=True)
class Membership:
    """Who is in the data? Nearest neighbours of objects among what was made, for members and for a held-out half.

    Parameters
    ----------
    auc
        Probability that a member is nearer than somebody who is not in the data; ties count half.
    ceiling
        The same where the members themselves are published.
    """

    auc: float
    ceiling: float
    members: int
    others: int
    reading: str = "an AUC near 0.5 is no evidence of privacy: this attack is weak, and the average hides single people"


@dataclass(frozen=True, slots=True)
class Canary:
    """One object with a pattern that nobody else has: in how many releases it is seen, with the object and without.

    Parameters
    ----------
    events
        Of the object that was planted.
    releases
        That were made each way.
    p_value
        Probability that it is seen with the object as often or more by chance (Fisher's exact test, one-sided).
    """

    events: int
    releases: int
    seen_with: int
    seen_without: int
    p_value: float
    reading: str


@dataclass(frozen=True, slots=True)
class Attacks:
    """The attacks that could be made; None where the data allow none."""

    membership: Membership | None
    canary: Canary | None

    def to_dict(self) -> dict[str, object]:
        """As the result has it."""
        return {k: v for k, v in asdict(self).items() if v is not None}


def attack(
    plan: EventsPlan,
    placed: sql.Table,
    objects: int,
    refit: Refit,
    rng: np.random.Generator,
    engine: Engine,
    *,
    releases: int = CANARY_RELEASES,
) -> Attacks:
    """Attack releases of a part of the objects.

    Parameters
    ----------
    placed
        Table of ``place_events``; `objects` is their number.
    """
    share = min(OBJECTS / max(objects, 1), 1.0)
    return Attacks(
        infer_membership(plan, placed, share, refit, rng, engine),
        fly_canary(plan, _take(plan, placed, 0.0, share, engine), refit, rng, engine, releases=releases),
    )


def infer_membership(
    plan: EventsPlan, placed: sql.Table, share: float, refit: Refit, rng: np.random.Generator, engine: Engine
) -> Membership | None:
    """Fit on one half of a share of the objects, and look for both halves in what is made."""
    inside = _take(plan, placed, 0.0, share / 2, engine)
    everybody = _split(plan, _take(plan, placed, 0.0, share, engine), engine)
    members = _split(plan, inside, engine)
    known, people = _objects(members, engine), _objects(everybody, engine)
    if not known or known == people:
        return None
    batches = refit(inside).generate(known, rng, Made())
    made = put_batches(plan.name, batches, engine, grouped=bool(plan.group))
    split = engine.make(
        "events/split_made", f"{plan.name}_made", made=made, objects=2**62, timed=plan.timed, whole=True
    )
    everyone = read_sets(plan.name, everybody, 1, engine, members=members)
    published = [read_sets(plan.name, table, 1, engine) for table in (split, members)]
    return Membership(
        auc=area(*_scores(everyone, published[0])),
        ceiling=area(*_scores(everyone, published[1])),
        members=known,
        others=people - known,
    )


def area(inside: Floats, outside: Floats) -> float:
    """Area under the ROC curve: how often a score of `inside` exceeds one of `outside`, ties counting half."""
    ordered = np.sort(outside)
    below = np.searchsorted(ordered, inside, side="left") + np.searchsorted(ordered, inside, side="right")
    return float(below.sum() / (2 * len(inside) * len(outside)))


def _take(plan: EventsPlan, placed: sql.Table, low: float, high: float, engine: Engine) -> sql.Table:
    """Placed events of the objects whose hash lies in [low, high), as shares of all."""
    return engine.make(
        "events/take_objects",
        f"{plan.name}_taken",
        placed=placed,
        low=literal(f"{int(low * SPACE):08x}"),
        high=literal(f"{int(high * SPACE):08x}" if high < 1 else "g"),
        seed=literal("attack"),
        factors=[f.name for f in (*plan.expressions, *plan.group)],
    )


def _split(plan: EventsPlan, placed: sql.Table, engine: Engine) -> sql.Table:
    """Whole sequences: an attacker knows all of an object."""
    return split_events(plan, placed, None, engine)


def _objects(events: sql.Table, engine: Engine) -> int:
    found: int = engine.ask("events/count_objects", events=events).column(0).to_pylist()[0]
    return found


def _scores(people: Shingled, published: Shingled) -> tuple[Floats, Floats]:
    """How near members and others are to what was published; one part each."""
    left, right = common_sets(people, published)
    best = nearest(left, right) if len(right.parts) else np.zeros(len(left.parts))
    return np.repeat(best, people.members), np.repeat(best, people.parts.astype(np.int64) - people.members)


def fly_canary(
    plan: EventsPlan,
    placed: sql.Table,
    refit: Refit,
    rng: np.random.Generator,
    engine: Engine,
    *,
    releases: int = CANARY_RELEASES,
) -> Canary | None:
    """Plant one object that goes to and fro between two states that never follow each other, and release both ways."""
    rows = engine.rows("events/list_pairs", placed=placed)
    pair = unseen_pair([(r["state"], r["next_state"], r["n"]) for r in rows])
    if pair is None:
        return None
    times = repeats(plan)
    first, apart = canary_times(plan, min((r["first"] for r in rows if r["first"] is not None), default=None), times)
    objects = max(r["objects"] for r in rows)
    single = engine.put(f"{plan.name}_canary", canary_rows(objects + 1, pair, times, first, apart))
    factors = [f.name for f in (*plan.expressions, *plan.group)]
    planted = engine.make("events/plant_object", f"{plan.name}_planted", placed=placed, object=single, factors=factors)
    seen = []
    for events in (planted, placed):
        fitted = refit(events)
        shown = 0
        for release in range(releases):
            if release and plan.domain is not None:  # each release of `laplace` has noise of its own
                fitted = refit(events)
            shown += _shows(fitted, pair, rng)
        seen.append(shown)
    chance = by_chance(seen[0], seen[1], releases)
    return Canary(2 * times, releases, seen[0], seen[1], chance, TELLS if chance <= LEVEL else SILENT)


def by_chance(seen_with: int, seen_without: int, releases: int) -> float:
    """Probability of as many or more of what is seen among those with the object, were it the same both ways."""
    seen = seen_with + seen_without
    ways = [comb(releases, w) * comb(releases, seen - w) for w in range(seen_with, min(seen, releases) + 1)]
    return sum(ways) / comb(2 * releases, seen)


def repeats(plan: EventsPlan) -> int:
    """How often the canary goes there and back: enough for the ratio test at least."""
    epsilon = float(plan.part.privacy.epsilon) if plan.part.privacy.epsilon is not None else infinite
    if plan.domain is not None:
        return max(plan.domain.events_max // 2, 1)
    return min(2 * ceil(1 / (1 - exp(-epsilon))) + 4, CANARY_MOST)


def unseen_pair(counts: list[tuple[int, int | None, int]]) -> tuple[int, int] | None:
    """Two states that never follow each other, either way, the most frequent such; None where all do."""
    total: dict[int, int] = {}
    for state, _, n in counts:
        total[state] = total.get(state, 0) + n
    together = {(state, after) for state, after, _ in counts}
    frequent = sorted(total, key=lambda s: (-total[s], s))
    for least in range(1, len(frequent)):
        for a in frequent[:least]:
            b = frequent[least]
            if (a, b) not in together and (b, a) not in together:
                return a, b
    return None


def canary_times(plan: EventsPlan, first: datetime | None, times: int) -> tuple[datetime | None, int]:
    """When the canary begins, and the microseconds between its events: an hour.

    With `laplace` it begins where the public range does, and its events stay in it, nearer to each other where the
    range is short: whether a release is made must not depend on when somebody's first event is.
    """
    domain = plan.domain
    if domain is None or domain.first is None or domain.last is None:
        return first, HOUR_US
    return domain.first, min((domain.last - domain.first) // timedelta(microseconds=2 * times), HOUR_US)


def canary_rows(number: int, pair: tuple[int, int], times: int, first: datetime | None, apart_us: int) -> pa.Table:
    """Placed events of the canary."""
    count = 2 * times
    if first is None:
        moments = pa.nulls(count, pa.timestamp("us"))
    else:
        us = int(np.datetime64(first, "us").astype(np.int64)) + np.arange(count) * apart_us
        moments = pa.array(us).cast(pa.timestamp("us"))
    return pa.table(
        {
            "object": pa.array([number] * count, pa.int64()),
            "position": pa.array(range(1, count + 1), pa.int64()),
            "state": pa.array(list(pair) * times, pa.int64()),
            "moment": moments,
            "gap_us": pa.array([None] + [apart_us] * (count - 1), pa.int64()),
        }
    )


def _shows(fitted: Fitted, pair: tuple[int, int], rng: np.random.Generator) -> bool:
    """Whether one release shows the pair."""
    found = False
    for batch in fitted.generate(fitted.objects, rng, Made()):
        part, state = (batch.column(n).to_numpy() for n in ("part", "state"))
        follows = (part[1:] == part[:-1]) & (state[:-1] == pair[0]) & (state[1:] == pair[1])
        found = found or bool(follows.any())
    return found
