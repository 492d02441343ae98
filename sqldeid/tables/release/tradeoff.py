"""The optimum for many k and suppression limits, from one fold.

Class sizes answer for every k at once, so what the search for one pair learns is where the next one starts. Each pair's
answer is the one that `frontier` gives alone, with its own proof.

Source: interface.md, *tradeoff*; search.md §1. Cost: one fold, and checks on the folded classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import monotonic

from sqldeid.arguments import flag, numbers, wholes
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, NoSolutionError
from sqldeid.making import Hearing
from sqldeid.tables.check.thresholds import Thresholds
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.model.evaluation import Evaluate, Evaluation, admissible, allowed_rows
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan.choosing import by_k, choosing
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.node import checker_of
from sqldeid.tables.search import Problem, search
from sqldeid.traded import GreatestK, LocalPoint, Tradeoff, TradePoint


@dataclass(frozen=True, slots=True)
class Asked:
    """Which pairs are asked for.

    Parameters
    ----------
    ks
        Least class sizes, each at least 1.
    limits
        Shares of rows that may be suppressed, 0 … 1 (1 not included).
    max_losses
        For the greatest k by `max_loss`; none by default.
    local
        Whether each pair is answered by local recoding, too; where the job's method is that, it always is.
    """

    ks: tuple[int, ...]
    limits: tuple[float, ...]
    max_losses: tuple[float, ...] = ()
    local: bool = False

    def __post_init__(self) -> None:
        checked = {
            "ks": wholes("ks", self.ks),
            "limits": numbers("limits", self.limits),
            "max_losses": numbers("max_losses", self.max_losses),
            "local": flag("local", self.local),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not self.ks or not self.limits:
            raise JobError("--k and --limit: name at least one of each", key="--k")
        if min(self.ks) < 1:
            raise JobError.at("--k", "must be whole numbers of at least 1")
        if not all(0 <= x <= 1 for x in self.limits):
            raise JobError.at("--limit", "must be shares of rows, from 0 to 1")
        if not all(x >= 0 for x in self.max_losses):
            raise JobError.at("--max-loss", "must be at least 0")


def trade(plan: TablePlan, engine: Engine, asked: Asked, listener: Hearing, local: LocalPlan | None = None) -> Tradeoff:
    """The least loss for every pair of k and limit.

    Parameters
    ----------
    local
        The plan by local recoding, where that is compared.

    Raises
    ------
    JobError
        For a plan that draws its node (epsilon-safe), or if the data breaks a rule of the job.
    """
    if plan.sampled:
        key = f"{plan.key}.search.method"
        raise JobError.at(key, "epsilon-safe draws its node; there is no optimum to compare. Use frontier")
    started = monotonic()
    listener.step(plan.name, "folding the source")
    folded = fold(choosing(plan), engine)
    folding = monotonic() - started
    traded = trade_folded(Trading(plan, folded, engine, listener), asked, None if local is None else Beside(local))
    return replace(traded, seconds=round(traded.seconds + folding, 3))


@dataclass(frozen=True, slots=True)
class Trading:
    """What every pair's search is made of."""

    plan: TablePlan
    folded: Folded
    engine: Engine
    listener: Hearing

    def problem(self, limit: float, evaluate: Evaluate) -> Problem:
        """The search for the least loss, with at most this share of rows suppressed."""
        plan, folded = self.plan, self.folded
        marginals = [c.marginal for c in folded.columns]
        return Problem(
            lattice=plan.lattice,
            marginals=marginals,
            rows=folded.rows,
            allowed=allowed_rows(limit, folded.rows),
            loss=make_loss(plan.search.loss, marginals, folded.rows),
            evaluate=evaluate,
            time_limit=plan.search.time_limit,
            checks_limit=None,
            progress=self.listener.search,
        )


@dataclass(frozen=True, slots=True)
class Beside:
    """Local recoding beside one node for all rows.

    Parameters
    ----------
    known
        What a release by local recoding has found already.
    """

    planned: LocalPlan
    known: LocalPoint | None = None


def trade_folded(
    trading: Trading, asked: Asked, beside: Beside | None = None, seconds: float | None = None
) -> Tradeoff:
    """The same of a source that is folded already.

    Parameters
    ----------
    trading
        With the plan as the job asks for it.
    beside
        Local recoding, where that is compared.
    seconds
        For all pairs together, where given; each may take what is left for it, then its node comes with a gap. Local
        recoding may take as much again.
    """
    started, asking, folded = monotonic(), trading.plan, trading.folded
    trading = replace(trading, plan=choosing(asking))
    plan = trading.plan
    ks, limits = tuple(sorted(set(asked.ks))), tuple(sorted(set(asked.limits)))
    answers = _answers(plan, folded, trading.engine, ks, allowed_rows(max(limits), folded.rows))
    points = _points(trading, answers, list(product(ks, limits)), seconds)
    inverse = _inverse(trading, limits, tuple(sorted(set(asked.max_losses))))
    return Tradeoff(
        name=plan.name,
        rows=folded.rows,
        loss=plan.search.loss,
        heights={q.name: q.hierarchy.height for q in plan.qis},
        points=tuple(sorted(points, key=lambda p: (p.k, p.suppression_limit))),
        inverse=inverse,
        lattice_size=plan.lattice.size,
        checks=answers.checks,
        seconds=round(monotonic() - started, 3),
        warnings=(*_warnings(asking, points), *_apart(plan, beside)),
        local=() if beside is None else _local(trading, beside, (ks, limits), seconds),
    )


def _local(
    trading: Trading, beside: Beside, pairs: tuple[tuple[int, ...], tuple[float, ...]], seconds: float | None
) -> tuple[LocalPoint, ...]:
    from sqldeid.tables.local.tradeoff import Pairs, trade_local

    asked = Pairs(*pairs, seconds, beside.known)
    return trade_local(beside.planned, trading.folded, asked, trading.engine, trading.listener)


def _apart(plan: TablePlan, beside: Beside | None) -> list[str]:
    """Where the two families are not on one scale."""
    if beside is None or plan.search.loss != "prec":
        return []
    return [
        f"{plan.key}.search.loss: prec is before suppression for one node for all, and counts a suppressed row as "
        "lost by local recoding; compare pairs that suppress nothing"
    ]


def _points(
    trading: Trading,
    answers: Thresholds | _Criteria,
    pairs: Sequence[tuple[int, float]],  # by k, then by limit: of the orders tried, the one that counts fewest nodes
    seconds: float | None,
) -> list[TradePoint]:
    """The best node of each pair; what one search learns is where the next starts."""
    points: list[TradePoint] = []
    started = monotonic()
    for k, limit in pairs:
        trading.listener.step(trading.plan.name, f"searching for k = {k}, limit {limit:g}")
        left = _share(seconds, monotonic() - started, len(pairs) - len(points))
        points.append(_point(trading, answers, (k, limit), points, left))
    return [p if p.optimal else _improved(trading, answers, p, points) for p in points]


def _share(seconds: float | None, spent: float, pairs: int) -> float | None:
    """Seconds that the next pair may take: up to four times its share of what is left for all."""
    return None if seconds is None else max(0.01, 4 * (seconds - spent) / (pairs + 3))


class _Kept:
    """Evaluations under one k's criteria, each node asked for once; with histograms where `histogram` says so."""

    def __init__(self, evaluate: Evaluate, *, histogram: bool = False) -> None:
        self._evaluate, self._histogram = evaluate, histogram
        self.known: dict[Node, Evaluation] = {}

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        fresh = [node for node in dict.fromkeys(nodes) if node not in self.known]
        self.known.update((e.node, e) for e in (self._evaluate(fresh, histogram=self._histogram) if fresh else []))
        return [self.known[node] for node in nodes]


@dataclass(slots=True)
class _Criteria:
    """With criteria beyond k each k has its own verdicts; limits share them."""

    kept: dict[int, _Kept]

    @property
    def checks(self) -> int:
        return sum(len(k.known) for k in self.kept.values())

    @property
    def known(self) -> dict[int, dict[Node, Evaluation]]:
        return {k: kept.known for k, kept in self.kept.items()}

    def at(self, k: int, nodes: Sequence[Node]) -> list[Evaluation]:
        return self.kept[k](nodes)


def _answers(
    plan: TablePlan, folded: Folded, engine: Engine, ks: tuple[int, ...], allowed: int
) -> Thresholds | _Criteria:
    """What evaluates nodes for every k, with all that is suppressed up to the greatest limit."""
    if not plan.beyond_k and plan.overall is None:
        return Thresholds(checker_of(plan, folded, engine), tuple(ks), allowed)
    own = {k: checker_of(with_k(plan, k), folded, engine) for k in ks}
    return _Criteria({k: _Kept(replace(checker, allowed=allowed)) for k, checker in own.items()})


def with_k(plan: TablePlan, k: int) -> TablePlan:
    """The plan with another k."""
    return replace(plan, demands=replace(plan.demands, k=k))


@dataclass(frozen=True, slots=True)
class _View:
    """`evaluate` of one pair's search."""

    answers: Thresholds | _Criteria
    k: int

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        return self.answers.at(self.k, nodes)


def _point(
    trading: Trading,
    answers: Thresholds | _Criteria,
    pair: tuple[int, float],
    before: Sequence[TradePoint],
    seconds: float | None,
) -> TradePoint:
    """The best node of one pair; the search starts from what stricter pairs chose and from all that fails."""
    (k, limit), known, started = pair, answers.checks, monotonic()
    problem = trading.problem(limit, _View(answers, k))
    limits = [limit for limit in (problem.time_limit, seconds) if limit is not None]
    problem = replace(problem, time_limit=min(limits, default=None), prior=tuple(answers.known[k].values()))
    chosen = [tuple(p.node.values()) for p in before if p.node and p.k >= k and p.suppression_limit <= limit]
    if chosen:
        problem.ask(list(dict.fromkeys(chosen)))
    if learnt := _worth(problem, answers.known[k].values()):
        problem.ask(learnt)
    try:
        outcome = search("frontier", problem)
    except NoSolutionError:
        spent = answers.checks - known
        return TradePoint(k, limit, None, None, None, True, None, None, spent, round(monotonic() - started, 4))
    found = outcome.evaluation
    return TradePoint(
        k=k,
        suppression_limit=limit,
        node=dict(zip((q.name for q in trading.plan.qis), outcome.node, strict=True)),
        loss=outcome.loss,
        bound=outcome.loss - outcome.gap,
        optimal=outcome.optimal,
        suppressed=found.failing,
        classes=found.classes,
        checks=answers.checks - known,
        seconds=round(monotonic() - started, 4),
    )


def _improved(
    trading: Trading, answers: Thresholds | _Criteria, point: TradePoint, points: Sequence[TradePoint]
) -> TradePoint:
    """A point that was not proven, with a stricter pair's node where that is better: it is admissible here, too."""
    k, limit = point.k, point.suppression_limit
    stricter = (p for p in points if p.node and p.k >= k and p.suppression_limit <= limit)
    problem = trading.problem(limit, _View(answers, k))
    problem.ask(list(dict.fromkeys(tuple(p.node.values()) for p in stricter if p.node)))
    best, standing = problem.state.best, problem.standing().best
    if best is None or standing is None or (point.loss is not None and standing >= point.loss):
        return point
    node = dict(zip((q.name for q in trading.plan.qis), best.node, strict=True))
    return replace(point, node=node, loss=standing, suppressed=best.failing, classes=best.classes)


def _worth(problem: Problem, known: Iterable[Evaluation]) -> list[Node]:
    """Of counted nodes those that teach this search something: they fail, or may lose less than its best so far."""
    best = problem.state.key

    def open_(e: Evaluation) -> bool:
        return best is None or problem.loss.parts is None or problem.loss.bound(e.node) <= best[0]

    return [
        e.node
        for e in known
        if e.node not in problem.state.checked and (not admissible(e, problem.allowed) or open_(e))
    ]


def _inverse(trading: Trading, limits: tuple[float, ...], max_losses: tuple[float, ...]) -> tuple[GreatestK, ...]:
    """The greatest k within each loss; histograms are counted once a node."""
    plan = trading.plan
    if not max_losses:
        return ()
    if plan.beyond_k or plan.overall is not None:
        key = f"{plan.key}.privacy"
        raise JobError(f"{key}: --max-loss asks for the greatest k and knows k-anonymity alone", key="--max-loss")
    checker = checker_of(with_k(plan, 1), trading.folded, trading.engine)
    kept = _Kept(checker, histogram=True)
    found = []
    for limit in limits:
        for most in max_losses:
            trading.listener.step(plan.name, f"searching the greatest k for loss {most:g}, limit {limit:g}")
            found.append(_greatest(trading, kept, limit, most))
    return tuple(found)


def _greatest(trading: Trading, kept: _Kept, limit: float, most: float) -> GreatestK:
    problem = trading.problem(limit, kept)
    try:
        outcome = search("inverse-ola", replace(problem, max_loss=most, least_k=1))
    except NoSolutionError:
        return GreatestK(most, limit, None, None, None, True)
    node = dict(zip((q.name for q in trading.plan.qis), outcome.node, strict=True))
    return GreatestK(most, limit, outcome.k, node, outcome.loss, outcome.optimal)


def _warnings(plan: TablePlan, points: Sequence[TradePoint]) -> list[str]:
    found = []
    if by_k(plan):
        found.append(
            f'{plan.key}.search.choose: with "by-k" nodes, losses and suppressed rows are those of k alone; classes '
            "that fail another criterion are suppressed beside them"
        )
    game = plan.demands.game
    if game is not None and game.attacker == "prosecutor" and any(p.k < game.least for p in points):
        found.append(f"{plan.key}.privacy.game: an attack pays where k is below {game.least}; the job holds with more")
    estimated = plan.demands.estimated
    if estimated is not None and any(p.k < estimated.least for p in points):
        found.append(f"{plan.key}.privacy.k_map: as estimated, it fails where k is below {estimated.least}")
    open_pairs = sum(not p.optimal for p in points)
    if not open_pairs:
        return found
    return [
        *found,
        f"{plan.key}.search.time_limit: was reached for {open_pairs} of {len(points)} pairs; their nodes are the best "
        "found, not proven best",
    ]
