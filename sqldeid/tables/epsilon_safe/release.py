"""An `epsilon-safe` release: a secret random sample, a node drawn at random, and the classes of k sampled rows.

Only the node and those classes leave. Every count of sample, suppression, checks and loss is for the data holder; no
refusal after the plan depends on the rows beyond the custodian's own assertions (one row per person, readable source).

Source: Mazzone 2019, §4.5; soundness.md, *epsilon-safe*; the guarantee is `EpsilonSafe`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from time import monotonic

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Ints
from sqldeid.attacked import none_made
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.job import EpsilonSafeSettings
from sqldeid.publish import Note
from sqldeid.result import ColumnResult, Criterion, SearchResult, TableRelease, risk_of
from sqldeid.sql.steps import as_needed, step
from sqldeid.stages import Stage, Step, Target
from sqldeid.tables.check.check import Checker
from sqldeid.tables.criteria.epsilon_safe import Draw, EpsilonSafe, promise
from sqldeid.tables.criteria.mechanism import Randomness, SeededRandomness, SystemRandomness, sample_rows
from sqldeid.tables.fold.fold import Folded, fold, word_names
from sqldeid.tables.fold.statements import folding
from sqldeid.tables.model.evaluation import Evaluation, Marginal, allowed_rows
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import all_losses
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.search.epsilon_safe import draw_node, steps_everywhere
from sqldeid.tables.search.utility import Utility, reciprocal_probabilities
from sqldeid.tables.verify.statements import verifying
from sqldeid.tables.verify.verify import Verified, verify
from sqldeid.tables.write.codebook import with_codes
from sqldeid.tables.write.draft import Draft, DraftStage
from sqldeid.tables.write.stage import Chosen, stage
from sqldeid.tables.write.statements import telling_drawn
from sqldeid.tables.write.unchanged_source import source_unchanged


@dataclass(frozen=True, slots=True)
class Safe:
    """A drawn node on the sample.

    Parameters
    ----------
    sample
        The fold, reduced to the sampled rows.
    guarantee
        What is promised; its `warnings` and `proven` say what weakens it.
    proven
        Whether the guarantee holds: sound utility, secret bits.
    """

    sample: Folded
    node: Node
    evaluation: Evaluation
    guarantee: EpsilonSafe
    proven: bool
    search: SearchResult

    @property
    def criterion(self) -> Criterion:
        """The guarantee as a result states it."""
        text = self.guarantee.promise
        if not self.proven:
            text = f"Not proven private (reciprocal utility or a fixed seed). For comparison, what would be: {text}"
        return Criterion("epsilon-safe", None, float(self.guarantee.epsilon), self.guarantee.delta, text)


def check_plan(plan: TablePlan) -> EpsilonSafe:
    """What is promised for a plan; refuses all that the theorem does not cover, before any data is read.

    Raises
    ------
    JobError
        For parameters outside the theorem, data-derived hierarchies, or columns that are not quasi-identifying.
    """
    asked, key = settings_of(plan), f"{plan.key}.search.epsilon_safe"
    derived = [q.name for q in plan.qis if q.hierarchy.data_derived]
    if derived:
        raise JobError.at(
            f"{plan.key}.columns.{derived[0]}.hierarchy",
            "is built from the column's values, and epsilon-safe needs one "
            "that does not depend on them: write it to a file that lists every possible value",
        )
    read = [q.name for q in plan.qis if q.in_database]
    if read:
        raise JobError.at(
            f"{plan.key}.columns.{read[0]}.hierarchy",
            "is read from the database, where nothing tells that it does not depend on the rows, and epsilon-safe "
            "needs one that does not: write it to a file that lists every possible value",
        )
    if plan.others:
        raise JobError.at(
            f"{plan.key}.columns.{plan.others[0].name}",
            "epsilon-safe releases quasi-identifying columns only; give it a hierarchy, or leave it out",
        )
    try:
        draw = Draw(plan.demands.k, exact(asked.beta), exact(asked.epsilon), asked.penalty, plan.lattice.size)
        found = promise(draw, delta=_most_of(asked), population=asked.population)
        utility_of(plan, found, 0)
        _refuse_one_in_population(found, asked)
    except JobError as error:
        raise JobError.at(key, error.message) from None
    return found


def _most_of(asked: EpsilonSafeSettings) -> Fraction:
    """The most that δ may be: as stated, else one in the stated population."""
    if asked.delta is not None:
        return exact(asked.delta)
    if asked.population is None:
        raise JobError("state delta, the most that it may be, or population, a public number of persons")
    return Fraction(1, asked.population)


def _refuse_one_in_population(found: EpsilonSafe, asked: EpsilonSafeSettings) -> None:
    """A δ that is derived from the population lies below one in so many, not at it."""
    if asked.delta is None and asked.population is not None and Fraction(found.delta) * asked.population >= 1:
        raise JobError(f"delta {found.delta:g} is not below one in the population of {asked.population:,}; raise k")


def exact(number: float) -> Fraction:
    """A number of the job as the decimal that was written."""
    return Fraction(repr(float(number)))


def settings_of(plan: TablePlan) -> EpsilonSafeSettings:
    """The job's parameters."""
    asked = plan.search.epsilon_safe
    if asked is None:
        key = f"{plan.key}.search.epsilon_safe"
        raise JobError.at(key, 'missing; method = "epsilon-safe" needs beta, epsilon, and delta or population')
    return asked


def utility_of(plan: TablePlan, guarantee: EpsilonSafe, rows: int) -> Utility:
    """By what the node is drawn.

    Parameters
    ----------
    rows
        Of the sample: what the suppression limit is taken of. It is the sum of the class sizes, through which alone the
        utility may depend on the sample; the indicator changes by 1 at most whatever the limit is.
    """
    asked = settings_of(plan)
    return Utility(
        heights=plan.lattice.heights,
        weights=tuple(q.weight for q in plan.qis),
        penalty=asked.penalty,
        factor=exact(asked.penalty_factor),
        epsilon_prime=guarantee.epsilon_prime,
        k=plan.demands.k,
        allowed=allowed_rows(plan.demands.suppression_limit, rows),
        population=asked.population,
    )


def draw(plan: TablePlan, folded: Folded, engine: Engine, say: Callable[[str, str], None]) -> Safe:
    """Sample the rows, then draw a node on the sample."""
    asked, guarantee = settings_of(plan), check_plan(plan)
    started = monotonic()
    randomness: Randomness = SystemRandomness() if asked.seed is None else SeededRandomness(asked.seed)
    sample = sample_classes(plan, folded, guarantee.beta, engine, randomness)
    utility = utility_of(plan, guarantee, sample.rows)
    say(plan.name, "drawing a node")
    checker = Checker(engine.bench, sample, plan.demands.k, -1, plan.name)  # nothing is weighed while drawing
    marginals = [c.marginal for c in sample.columns]
    if asked.utility == "score":
        drawn = draw_node(utility, checker, randomness, marginals, sample.rows)
        node, checks, statements = drawn.node, drawn.checks, drawn.statements
    else:
        node, checks, statements = _reciprocal(utility, checker, randomness, marginals, sample.rows)
    evaluation = replace(checker, allowed=sample.rows)([node])[0]
    search = SearchResult(
        method="epsilon-safe",
        loss=plan.search.loss,
        optimal=False,
        gap=0.0,
        lattice_size=plan.lattice.size,
        checks=checks,
        statements=statements,
        seconds=round(monotonic() - started, 4),
    )
    proven = asked.utility == "score" and randomness.secret
    return Safe(sample, node, evaluation, guarantee, proven, search)


def _reciprocal(
    utility: Utility, checker: Checker, randomness: Randomness, marginals: list[Marginal], rows: int
) -> tuple[Node, int, int]:
    """The source's draw, in floats; not proven private."""
    steps = steps_everywhere(utility, checker, marginals, rows)
    chances = np.cumsum(reciprocal_probabilities(utility, steps.steps, rows).ravel())
    point = float(randomness.words(1)[0]) / 2.0**64 * chances[-1]
    position = min(int(np.searchsorted(chances, point, side="right")), len(chances) - 1)
    node = tuple(int(x) for x in np.unravel_index(position, utility.heights))
    return node, steps.checks, steps.statements


def sample_classes(plan: TablePlan, folded: Folded, beta: Fraction, engine: Engine, randomness: Randomness) -> Folded:
    """The fold with every row kept with probability β, independently; what later steps see instead of the source."""
    words = list(word_names(folded.coding))
    read = engine.bench.ask("tables/epsilon_safe/read_classes", classes=folded.table, words=words)
    counts: Ints = read.column("n").to_numpy().astype(np.int64)
    kept = sample_rows(counts, beta, randomness)
    there = np.flatnonzero(kept)
    columns = {w.name: read.column(w.name).to_numpy()[there] for w in words}
    table = engine.bench.put(f"{plan.name}_sample", pa.table({**columns, "n": kept[there]}))
    at_source = None if engine.bench is engine else engine.from_bench(table)
    coded = tuple(
        replace(c, marginal=_marginal(c.marginal, c.prefixes, columns[words[c.field.word].name], kept[there]))
        for c in folded.columns
    )
    rows = int(kept.sum())
    return replace(folded, rows=rows, table=table, size=len(there), columns=coded, at_source=at_source)


def _marginal(whole: Marginal, prefixes: Callable[[int], Ints], words: Ints, rows: Ints) -> Marginal:
    """A column's distribution in the sample."""
    counted = []
    for level in range(whole.height):
        groups = prefixes(level)
        order = np.argsort(groups)
        mask = np.bitwise_or.reduce(groups, initial=0)
        at = order[np.searchsorted(groups[order], words & mask)] if len(words) else np.empty(0, dtype=np.int64)
        counted.append(np.bincount(at, weights=rows, minlength=len(groups)).astype(np.int64))
    return replace(whole, rows=tuple(counted))


def drawn_way(
    plan: TablePlan, note_of: Callable[[TablePlan, Node, int], Note], put: Callable[[Target], Iterable[Step]]
) -> tuple[DraftStage, ...]:
    """The stages of a release whose node is drawn on a secret sample.

    Parameters
    ----------
    note_of
        What is kept on the release.
    put
        The statements that write it.
    """
    drawn: list[Safe] = []

    def fold_source(draft: Draft) -> None:
        draft.folded = fold(draft.plan, draft.engine)

    def sample_and_draw(draft: Draft) -> None:
        safe = draw(draft.plan, draft.folded, draft.engine, draft.listener.step)
        drawn.append(safe)
        draft.chosen = draft.out = Chosen(draft.plan, safe.sample, safe.node, draft.plan.demands.k)

    def write(draft: Draft) -> None:
        draft.note = note_of(draft.plan, draft.chosen.node, draft.chosen.k)
        draft.written = stage(draft.out, draft.engine, draft.staging, draft.note)

    def check_written(draft: Draft) -> None:
        claimed = replace(draft.chosen.claimed, source=draft.folded.source)
        with source_unchanged(draft.plan, draft.folded, None, draft.engine) as check:
            draft.verified = check(verify(claimed, draft.written, draft.engine))

    def tell(draft: Draft) -> None:
        moved = tuple(a - b for a, b in zip(draft.engine.moved, draft.moved, strict=True))
        result = _result(draft.plan, drawn[0], draft.verified, moved, draft.engine)
        draft.result = with_codes(result, draft.plan, drawn[0].node, draft.written, draft.engine)

    return (
        Stage("", lambda draft: _refuse_unproven(draft.plan)),
        Stage("folding the source", fold_source, lambda target: folding(plan, target)),
        Stage("sampling rows", sample_and_draw, lambda _: _drawing()),
        Stage("writing the release", write, put),
        Stage("verifying what was written", check_written, lambda target: verifying(plan, target)),
        Stage("", tell, lambda _: telling_drawn()),
    )


def _refuse_unproven(plan: TablePlan) -> None:
    """Refuse a plan that the theorem does not cover, before any data is read."""
    check_plan(plan)


def _drawing() -> Iterator[Step]:
    yield step("tables/epsilon_safe/read_classes")
    yield from as_needed("tables/check/roll_up", "tables/check/check_nodes", "tables/check/list_failing")


def _result(plan: TablePlan, safe: Safe, verified: Verified, moved: tuple[int, ...], engine: Engine) -> TableRelease:
    """For the data holder but for node, columns and guarantee: rows and losses are those of the secret sample."""
    checker = Checker(engine.bench, safe.sample, plan.demands.k, safe.sample.rows, plan.name)
    bottom = checker([plan.lattice.bottom], histogram=True)[0]
    marginals = [c.marginal for c in safe.sample.columns]
    rows = max(safe.sample.rows, 1)
    losses = all_losses(safe.evaluation, marginals, rows, bottom.squares)
    columns = {
        q.name: ColumnResult(
            "quasi-identifying",
            level,
            q.hierarchy.level_names[level],
            q.hierarchy.height,
            q.hierarchy_name,
            losses.columns[q.name],
        )
        for q, level in zip(plan.qis, safe.node, strict=True)
    }
    return TableRelease(
        name=plan.name,
        rows=safe.sample.rows,
        released=verified.released,
        suppressed=safe.evaluation.failing,
        node=dict(zip((q.name for q in plan.qis), safe.node, strict=True)),
        k=verified.k,
        classes=verified.classes,
        criteria=(safe.criterion,),
        one_over_m=float(verified.k),
        loss=losses.totals,
        columns=columns,
        risk={"source": risk_of(dict(bottom.histogram or {})), "release": risk_of(verified.sizes)},
        suppression_by={},
        search=safe.search,
        written=(),
        moved={"rows": moved[0], "bytes": moved[1]},
        warnings=tuple(_warnings(plan, safe, verified.released)),
        guarantee=safe.guarantee.to_dict() | {"proven": safe.proven},
        attacks=none_made("no attack knows a node that was drawn on a secret sample") if plan.attacks else None,
    )


def _warnings(plan: TablePlan, safe: Safe, released: int) -> Iterator[str]:
    key = f"{plan.key}.search.epsilon_safe"
    asked = settings_of(plan)
    if plan.outward:
        yield (
            f"{plan.key}.source: looks across rows ({', '.join(plan.outward)}); the guarantee holds only if each row "
            "of the result depends on one person alone, which is the custodian's assertion"
        )
    yield f"{key}: rows, losses, checks and suppressed counts here are of the secret sample; publish none of them"
    if not released:
        yield (
            f"{key}: nothing is released: at the drawn node no class has {plan.demands.k} sampled rows. Drawing "
            "again spends epsilon and delta again; a smaller k, a greater beta or penalty_factor help"
        )
    if asked.seed is not None:
        yield f"{key}.seed: the draw can be repeated by whoever knows the seed; nothing is proven private"
    if asked.utility == "reciprocal":
        yield f"{key}.utility: the source's reciprocal utility is not proven private"
    yield from (f"{key}: {text}" for text in safe.guarantee.warnings)
