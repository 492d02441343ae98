"""The game in which no attack pays: by the attacker's gain, class by class, and never by the k that it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import log2

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import JobError, VerificationError
from sqldeid.report.page import public_page, report_page
from sqldeid.tables.criteria.game import NoAttack
from sqldeid.tables.criteria.persons import promise_of_k
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.release.planned import criteria
from tests.support.criteria import NODES, Oracle, Row, generalised
from tests.support.examples import examples
from tests.support.sources import insert

PUBLISH = sqldeid.Options(replace=True, without_ledger=True, certificate=True)


@dataclass(frozen=True)
class Game(Oracle):
    """A table whose classes are released where an attacker who picks one of their rows loses on average."""

    payout: Fraction = Fraction(0)
    cost: Fraction = Fraction(1)

    def gain(self, persons: int) -> Fraction:
        """One of so many is the right one, each picked alike; every pick costs."""
        outcomes = [self.payout - self.cost] + [-self.cost] * (persons - 1)
        return sum(outcomes, Fraction(0)) / persons

    def passes(self, rows: list[Row]) -> bool:  # type: ignore[override]
        return self.gain(len(rows)) < 0


def random_game(seed: int) -> Game:
    rng = np.random.default_rng(seed)
    rows = tuple(
        {"a": int(rng.integers(0, 8)), "b": str(rng.choice(["xx", "xy", "yx", "yy"])), "c": str(rng.choice(["f", "m"]))}
        | {"s": "low", "n": 0, "d": None}
        for _ in range(int(rng.integers(8, 60)))
    )
    payout, cost = Fraction(int(rng.integers(0, 30)), 2), Fraction(int(rng.integers(1, 9)), 2)
    return Game(rows, 1, (), payout=payout, cost=cost)


def job_of(played: Game, limit: float, *, loss: str = "loss", **changed: object) -> sqldeid.Job:
    rules: dict[str, object] = {"a": {"bands": [2, 4]}, "b": {"mask": [1]}, "c": {"suppress": True}}
    asked = {"payout": float(played.payout), "cost": float(played.cost)}
    least = next(n for n in range(1, 1000) if played.gain(n) < 0)
    table = {
        "rows_are_persons": True,
        "source": "people",
        "columns": {name: {"role": "quasi-identifying", "hierarchy": rule} for name, rule in rules.items()},
        "privacy": {"k": least, "suppression_limit": limit, "game": asked} | changed,
        "search": {"loss": loss},
        "attacks": False,
    }
    return sqldeid.Job.parse({"tables": {"people": table}})


def database(rows: tuple[Row, ...]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (a INTEGER, b TEXT, c TEXT)")
    insert(connection, "people", [(r["a"], r["b"], r["c"]) for r in rows])
    return connection


@given(st.fractions(0, 30, max_denominator=20), st.fractions(Fraction(1, 2), 20, max_denominator=20))
def test_the_least_size_is_the_first_at_which_an_attack_loses(payout: Fraction, cost: Fraction) -> None:
    game, asked = Game((), 1, (), payout=payout, cost=cost), NoAttack(payout, cost, "prosecutor")
    assert [game.gain(n) < 0 for n in range(1, asked.least + 3)] == [False] * (asked.least - 1) + [True] * 3


def test_an_attacker_who_neither_gains_nor_loses_is_not_turned_away() -> None:
    """A twin that were content with a gain of 0 would let classes of 4 pass."""
    assert NoAttack(Fraction(12), Fraction(3), "prosecutor").least == 5 != -(-12 // 3)
    assert NoAttack(Fraction(0), Fraction(3), "prosecutor").least == 1


@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), limit=st.sampled_from([0.0, 0.1, 0.3]))
def test_releases_are_those_of_exhaustive_search_by_gains(seed: int, limit: float) -> None:
    game = random_game(seed)
    best = game.optimum(int(Fraction(repr(limit)) * len(game.rows)))
    with database(game.rows) as connection:
        if best is None:
            few = job_of(game, limit).tables["people"].privacy.k > len(game.rows)
            with pytest.raises(JobError if few else sqldeid.NoSolutionError, match="has only" if few else None):
                sqldeid.anonymize(job_of(game, limit), connection, options=PUBLISH)
            return
        release = sqldeid.anonymize(job_of(game, limit), connection, options=PUBLISH).releases["people"]
        assert (tuple(release.node.values()), release.suppressed) == (best, game.failing(best))
        told = release.criteria[-1]
        kept = [len(rows) for rows in game.classes(best).values() if game.passes(rows)]
        assert (told.name, told.achieved) == ("no attack pays (prosecutor)", min(kept, default=0))
        assert sqldeid.verify(job_of(game, limit), connection)["people"].criteria[-1] == told
        proofs = {"people": release.certificate}
        assert sqldeid.verify_certificates(job_of(game, limit), connection, proofs)["people"].optimal


def payout(game: Game, node: Node) -> float:
    """What a publisher earns who is paid 1200 for each row, less the entropy that it lost; nothing for what is gone."""
    domain = sum(log2(len({r[c] for r in game.rows})) for c in "abc")
    total = 0.0
    for values, rows in game.classes(node).items():
        sets = [{r[c] for r in game.rows if generalised(r, node)[j] == values[j]} for j, c in enumerate("abc")]
        lost = sum(log2(len(alike)) for alike in sets) / domain if domain else 0.0
        total += len(rows) * 1200 * (1 - lost) if game.passes(rows) else 0.0
    return total


def admissible(game: Game, limit: float) -> list[Node]:
    return [node for node in NODES if game.failing(node) <= int(Fraction(repr(limit)) * len(game.rows))]


def least(game: Game, loss: str, limit: float) -> sqldeid.TableRelease:
    with database(game.rows) as connection:
        return sqldeid.anonymize(job_of(game, limit, loss=loss), connection, options=PUBLISH).releases["people"]


@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), limit=st.sampled_from([0.0, 0.1, 0.3]))
def test_the_least_payout_lost_is_the_publishers_greatest(seed: int, limit: float) -> None:
    game = random_game(seed)
    if not (nodes := admissible(game, limit)):
        return
    found, most = least(game, "payout", limit), max(payout(game, node) for node in nodes)
    assert payout(game, tuple(found.node.values())) == pytest.approx(most, rel=1e-5, abs=1e-2)
    assert found.loss["payout"] == pytest.approx(1 - most / (1200 * len(game.rows)), abs=1e-5)


@pytest.mark.deep
def test_a_twin_that_forgets_suppressed_rows_earns_less() -> None:
    """The ambiguity of a node is its payout before suppression."""
    earned = []
    for seed in range(12):
        game = random_game(seed)
        if admissible(game, 0.3):
            nodes = (tuple(least(game, loss, 0.3).node.values()) for loss in ("payout", "ambiguity"))
            earned.append([payout(game, node) for node in nodes])
    assert all(most >= twin - 1e-2 for most, twin in earned)
    assert any(most > twin + 1 for most, twin in earned)


def test_a_k_at_which_attacks_pay_is_refused_with_the_one_that_it_takes() -> None:
    game = Game((), 1, (), payout=Fraction(300), cost=Fraction(4))
    assert job_of(game, 0.0).tables["people"].privacy.k == 76
    with pytest.raises(JobError, match="write k = 76, or more"):
        job_of(game, 0.0, k=75)
    with pytest.raises(JobError, match="write k_map = 76, or more"):
        job_of(game, 0.0, game={"payout": 300.0, "cost": 4.0, "attacker": "journalist"})


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"search": {"method": "local"}}, 'search.method = "local"'),
        ({"rows": "many", "person": "id", "rows_are_persons": False}, 'rows = "many"'),
    ],
)
def test_where_only_k_would_be_told_a_game_is_refused(table: dict[str, object], told: str) -> None:
    stated = job_of(random_game(1), 0.0).tables["people"].model_dump(mode="json", by_alias=True, exclude_unset=True)
    with pytest.raises(JobError, match=f"does not go with {told}"):
        sqldeid.Job.parse({"tables": {"people": {**stated, **table}}})


def test_the_journalist_is_held_off_by_the_population_and_all_is_told() -> None:
    everybody = [(a, b, c) for a, b, c in product(range(8), ["xx", "yy"], ["f", "m"]) for _ in range(1 + a % 3)]
    with duckdb.connect() as connection:
        for name, rows in (("residents", everybody), ("people", everybody[::3])):
            connection.execute(f"CREATE TABLE {name} (a INTEGER, b TEXT, c TEXT)")
            insert(connection, name, rows)
        game = {"payout": 12.0, "cost": 3.0, "attacker": "journalist"}
        job = job_of(random_game(1), 0.0, k=1, k_map=5, population={"table": "residents"}, game=game)
        result = sqldeid.anonymize(job, connection, options=PUBLISH)
        by_name = {c.name: c for c in result.releases["people"].criteria}
        told = by_name["no attack pays (journalist)"]
        assert (told.asked, told.achieved) == (5, by_name["k-map"].achieved)
        for page in (report_page(result.to_dict()), public_page(result.to_public())):
            assert "no attack pays" in page.lower()
        assert told.guarantee in str(result.to_public()) and told.guarantee != promise_of_k(5)
        measured = {m.name: m for m in sqldeid.assess(job, connection)["people"].criteria}
        assert not measured["no attack pays (journalist)"].met
        (plan,) = sqldeid.plan(job, connection)
        assert ("No attack pays (journalist)", "payout 12, cost 3: 5 fit each row at least") in list(criteria(plan))
        weaker = job_of(
            random_game(1), 0.0, k=1, k_map=5, population={"table": "residents"}, game={**game, "cost": 4.0}
        )
        with pytest.raises(VerificationError, match="other privacy criteria"):
            sqldeid.verify(weaker, connection)


def test_trade_offs_say_below_which_k_attacks_pay() -> None:
    game = replace(random_game(3), payout=Fraction(6), cost=Fraction(2))
    with database(game.rows) as connection:
        traded = sqldeid.tradeoff(job_of(game, 0.5), connection, sqldeid.Asked((2, 4), (0.5,), ()))["people"]
    assert any("an attack pays where k is below 4" in warning for warning in traded.warnings)
