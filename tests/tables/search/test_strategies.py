"""What searches do besides finding the optimum: limits, interruptions, no solution, baselines, the greatest k."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import Interrupted, JobError, NoSolutionError
from sqldeid.tables.model.lattice import Lattice
from sqldeid.tables.model.loss import LOSSES
from sqldeid.tables.search import STRATEGIES, search
from sqldeid.tables.search.antichain import Antichain
from sqldeid.tables.search.base import Progress
from sqldeid.tables.search.flash import flash, levels
from tests.support.examples import examples
from tests.support.oracle import IRRATIONAL, Table, exhaustive, problem_of, random_table

seeds = st.integers(0, 2**32 - 1)
PLAIN = [name for name in STRATEGIES if name != "inverse-ola"]


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ("loss", "payout")])
@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds, allowed=st.integers(0, 10), entropy=st.booleans())
def test_ola_is_exact_before_suppression(name: str, seed: int, allowed: int, entropy: bool) -> None:
    table = random_table(seed, entropy=entropy)
    allowed = min(allowed, table.rows)
    expected = exhaustive(table, name, allowed)
    if expected is None:
        with pytest.raises(NoSolutionError):
            search("ola", problem_of(table, name, allowed))
        return
    outcome = search("ola", problem_of(table, name, allowed))
    assert outcome.optimal
    assert outcome.node == expected


@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds, allowed=st.integers(0, 10))
def test_ola_with_loss_never_claims_the_optimum(seed: int, allowed: int) -> None:
    """Its node is the best of the minimal admissible ones, and its bound holds."""
    table = random_table(seed)
    allowed = min(allowed, table.rows)
    passing = [n for n in table.lattice if table.evaluation(n, allowed).failing <= allowed]
    if not passing:
        return
    lattice = table.lattice
    minimal = [n for n in passing if not any(s in passing for s in lattice.specialisations(n))]
    outcome = search("ola", problem_of(table, "loss", allowed))
    assert not outcome.optimal
    assert outcome.node in minimal
    assert table.loss("loss", outcome.node) == min(table.loss("loss", n) for n in minimal)
    best = exhaustive(table, "loss", allowed)
    assert best is not None
    assert outcome.loss - outcome.gap <= float(table.loss("loss", best)) + 1e-12


@pytest.mark.parametrize("method", ["datafly", "igreedy"])
@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds, name=st.sampled_from(LOSSES), allowed=st.integers(0, 10))
def test_baselines_end_at_an_admissible_node_and_claim_nothing(method: str, seed: int, name: str, allowed: int) -> None:
    table = random_table(seed)
    allowed = min(allowed, table.rows)
    best = exhaustive(table, name, allowed)
    try:
        outcome = search(method, problem_of(table, name, allowed))
    except NoSolutionError:
        assert table.evaluation(table.lattice.top, allowed).failing > allowed
        return
    assert best is not None
    assert not outcome.optimal
    assert table.evaluation(outcome.node, allowed).failing <= allowed
    assert outcome.loss >= float(table.loss(name, best)) - 1e-9
    assert outcome.loss - outcome.gap <= float(table.loss(name, best)) + 1e-9


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds, allowed=st.integers(0, 8), share=st.integers(0, 10), pick=st.integers(0, 10**6))
def test_inverse_ola_equals_exhaustive_search(name: str, seed: int, allowed: int, share: int, pick: int) -> None:
    """Greatest k, least loss before suppression, fewest rows below k, first node; also with max_loss on a boundary."""
    table = random_table(seed, columns=3)
    allowed = min(allowed, table.rows - 1)
    nodes = list(table.lattice)
    losses = {n: before_suppression(table, name, n) for n in nodes}
    exact = losses[nodes[pick % len(nodes)]]
    most = float(exact) if share == 0 or name == "dm_star" else share / 10 * float(max(losses.values()))
    keys = []
    for node in nodes:
        sizes = sorted(len(rows) for rows in table.classes(node).values())
        k = max(k for k in range(1, table.rows + 1) if sum(s for s in sizes if s < k) <= allowed)
        if losses[node] <= Fraction(repr(most)) + Fraction(1, 10**11):
            loss = round(float(losses[node]), 9) if name in IRRATIONAL else losses[node]
            keys.append((-k, loss, sum(s for s in sizes if s < k), node))
    if name in ("loss", "prec", "height", "class_size", "payout") and any(
        0 < abs(x - Fraction(repr(most))) < Fraction(1, 10**9) for x in losses.values()
    ):
        return  # the decimal number is not the fraction it rounds
    problem = problem_of(table, name, allowed, max_loss=most)
    if name in IRRATIONAL and any(abs(float(x) - most) < 1e-6 for x in losses.values()):
        return
    if not keys:
        with pytest.raises(NoSolutionError):
            search("inverse-ola", problem)
        return
    outcome = search("inverse-ola", problem)
    assert (outcome.k, outcome.node) == (-min(keys)[0], min(keys)[3])
    assert outcome.optimal


def before_suppression(table, name, node):  # type: ignore[no-untyped-def]
    """`loss` as if nothing were suppressed; the other losses never count suppression."""
    if name not in ("loss", "payout"):
        return table.loss(name, node)
    free = type(table)(table.codes, table.groups, table.weights, table.sensitive, 1)
    return free.loss(name, node)


def test_inverse_ola_needs_max_loss() -> None:
    with pytest.raises(JobError, match="max_loss"):
        search("inverse-ola", problem_of(random_table(1), "prec", 0))


@pytest.mark.parametrize("method", PLAIN)
def test_no_solution_names_the_nearest_node(method: str) -> None:
    table = random_table(3)
    table = type(table)(table.codes, table.groups, table.weights, table.sensitive, table.rows + 1)
    with pytest.raises(NoSolutionError, match=rf"c0 \d.*would suppress {table.rows} rows, 0 are allowed"):
        search(method, problem_of(table, "loss", 0))


@pytest.mark.parametrize("method", ["frontier", "best-first", "flash", "ola"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted("stopped")])
def test_an_interrupted_search_says_how_far_it_came(method: str, error: BaseException) -> None:
    table = next(t for t in map(random_table, range(100)) if t.lattice.size > 60 and t.k > 1)
    problem = problem_of(table, "loss", 3)
    problem.evaluate.fail_after, problem.evaluate.error = 2, error  # type: ignore[attr-defined]
    with pytest.raises(Interrupted, match=r"best node so far|no admissible node was known"):
        search(method, problem)
    assert problem.state.checks > 0
    if problem.state.best is not None:
        assert problem.state.bound <= exact_optimum(table)


def exact_optimum(table) -> int:  # type: ignore[no-untyped-def]
    best = exhaustive(table, "loss", 3)
    problem = problem_of(table, "loss", 3)
    assert best is not None
    return problem.loss.of(table.evaluation(best, 3))


@pytest.mark.parametrize("method", PLAIN)
def test_a_stop_flag_ends_the_search(method: str) -> None:
    with pytest.raises(Interrupted):
        search(method, problem_of(random_table(5), "loss", 0, stop=lambda: True))


def test_progress_reports_every_statement() -> None:
    seen: list[Progress] = []
    outcome = search("frontier", problem_of(random_table(8), "loss", 2, progress=seen.append))
    assert len(seen) == outcome.statements
    assert seen[-1].checks == outcome.checks


def test_a_time_limit_of_nothing_still_answers() -> None:
    table = next(t for t in map(random_table, range(100)) if t.lattice.size > 60)
    outcome = search("frontier", problem_of(table, "loss", table.rows // 2, time_limit=0.0))
    assert outcome.gap >= 0
    assert outcome.checks == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("columns", "height"), [(20, 4), (60, 3), (40, 1)])
@pytest.mark.parametrize("name", LOSSES)
def test_lattices_of_any_size_start_at_once(columns: int, height: int, name: str) -> None:
    """10^12 nodes and more: a node, a bound below it, and not one check too many."""
    rng = np.random.default_rng(1)
    levels = [(0, 1, 2, 3, 4, 5), (0, 0, 1, 1, 2, 2), (0, 0, 0, 0, 1, 1)][: height - 1]
    groups = ((*levels, (0, 0, 0, 0, 0, 0)),) * columns
    codes = tuple(tuple(int(c) for c in rng.integers(0, 6, 30)) for _ in range(columns))
    table = Table(codes, groups, (Fraction(1),) * columns, (0,) * 30, 3)
    problem = problem_of(table, name, 3, checks_limit=60)
    outcome = search("frontier", problem)
    assert outcome.checks <= 60
    assert 0 <= outcome.gap <= outcome.loss
    assert table.evaluation(outcome.node, 3).failing <= 3
    assert outcome.optimal == (height == 1)


@pytest.mark.parametrize("checks", [1, 2, 30, None])
@pytest.mark.parametrize("name", LOSSES)
def test_best_first_has_an_answer_when_it_stops(name: str, checks: int | None) -> None:
    """60 columns in which every row is its own class until nearly all are at their tops."""
    groups = ((tuple(range(30)), (0,) * 30),) * 60
    table = Table((tuple(range(30)),) * 60, groups, (Fraction(1),) * 60, (0,) * 30, 3)
    limits = {"time_limit": 0.0} if checks is None else {"checks_limit": checks}
    outcome = search("best-first", problem_of(table, name, 0, **limits))
    assert outcome.node == table.lattice.top
    assert outcome.checks <= (checks or 2)
    assert not outcome.optimal
    assert outcome.bound == 0 or name in ("dm_star", "class_size", *IRRATIONAL)
    assert 0 <= outcome.loss - outcome.gap <= outcome.loss


@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds, name=st.sampled_from(LOSSES), allowed=st.integers(0, 10), checks=st.integers(1, 80))
def test_best_first_within_limits_is_never_wrong(seed: int, name: str, allowed: int, checks: int) -> None:
    """The best of what it checked, a bound below the optimum, and the optimum itself where it says so."""
    table = random_table(seed)
    allowed = min(allowed, table.rows)
    best = exhaustive(table, name, allowed)
    problem = problem_of(table, name, allowed, checks_limit=checks)
    if best is None or table.evaluation(table.lattice.top, allowed).failing > allowed:
        return
    outcome = search("best-first", problem)
    assert outcome.checks <= checks
    assert max(problem.evaluate.asked.values()) == 1  # type: ignore[attr-defined]
    assert outcome.loss - outcome.gap <= float(table.loss(name, best)) * (1 + 1e-9) + 1e-9
    assert outcome.node == best or not outcome.optimal


def test_no_message_lists_sixty_columns() -> None:
    groups = ((tuple(range(4)), (0, 0, 1, 1)),) * 60
    table = Table((tuple(range(4)),) * 60, groups, (Fraction(1),) * 60, (0,) * 4, 3)
    with pytest.raises(NoSolutionError, match=r" … and 48 more\) would suppress 4 rows") as raised:
        search("best-first", problem_of(table, "loss", 0, checks_limit=1))
    assert raised.value.message.count(",") < 20


def test_ola_refuses_what_it_cannot_tag() -> None:
    groups = (((0, 1), (0, 0)),) * 31
    table = Table(((0, 1),) * 31, groups, (Fraction(1),) * 31, (0, 0), 2)
    with pytest.raises(JobError, match=r"2,147,483,648 nodes of 31 columns"):
        search("ola", problem_of(table, "prec", 0))


def test_flash_refuses_what_it_cannot_visit() -> None:
    groups = (((0, 1), (0, 0)),) * 24
    table = Table(((0, 1),) * 24, groups, (Fraction(1),) * 24, (0, 0), 2)
    with pytest.raises(JobError, match=r"16,777,216 nodes of 24 columns are too many; use frontier or best-first"):
        search("flash", problem_of(table, "prec", 0))


@settings(max_examples=examples(30), deadline=None)
@given(heights=st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_flash_visits_every_node_once_level_by_level(heights: list[int]) -> None:
    lattice = Lattice(tuple(heights))
    visited = list(levels(lattice))
    assert sorted(node for level in visited for node in level) == list(lattice)
    assert all(sum(node) == rank for rank, level in enumerate(visited) for node in level)


class Forgetful(Antichain):
    """A store that knows nothing."""

    def covers(self, node: tuple[int, ...]) -> bool:
        return False


@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds, name=st.sampled_from(LOSSES), allowed=st.integers(0, 10))
def test_flash_finds_the_same_whatever_its_store_tells(seed: int, name: str, allowed: int) -> None:
    table = random_table(seed)
    best = exhaustive(table, name, min(allowed, table.rows))
    if best is None:
        return
    for store in (Antichain, Forgetful):
        found = flash(problem_of(table, name, min(allowed, table.rows)), store)
        assert found.node == best and found.checks <= table.lattice.size


def test_what_flash_keeps_spares_checks() -> None:
    """Over many tables: in a single one, another path upwards may have fewer checks by chance."""
    spent = Counter[type[Antichain]]()
    for seed in range(60):
        table = random_table(seed)
        for store in (Antichain, Forgetful):
            if exhaustive(table, "prec", 0) is not None:
                spent[store] += flash(problem_of(table, "prec", 0), store).checks
    assert spent[Antichain] < 0.9 * spent[Forgetful]


def test_unknown_method_is_refused() -> None:
    with pytest.raises(JobError, match="frontier"):
        search("samarati", problem_of(random_table(1), "loss", 0))
