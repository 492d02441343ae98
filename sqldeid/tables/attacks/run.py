"""Make every attack on a release, and say which were left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module

import numpy as np
from sqlglot import exp

from sqldeid import attacked as told
from sqldeid.arrays import Flags, Ints
from sqldeid.attacked import ATTACKS, Achieved, Attacks, LeftOut
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Stage, Step
from sqldeid.tables.attacks.base import SUPPRESSED, Attack, Attacked, Recoded
from sqldeid.tables.attacks.failing import once, reason_of
from sqldeid.tables.attacks.folding import fold_attacked, leaves_of, not_inferred
from sqldeid.tables.attacks.held_out import comparing_steps, control_of, drawing_steps
from sqldeid.tables.attacks.known import Released
from sqldeid.tables.fold.fold import Coded, Folded
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.write.draft import Beside, Draft

SAID = "attacking what was written"

MADE = (
    *("downcoding", "singling_out", "linkability", "inference"),
    *("disclosure", "minimality", "order", "groups"),
)
"""Attacks that there are: each a module of this room, whose `ATTACK` it is."""


TOGETHER = "releases are attacked together once all of a run are made"
"""Why composition is left out here: `sqldeid.run.composing` puts what it finds in its place."""


_READING = ("tables/local/read_combinations", "tables/attacks/read_failing")
"""Statements that read the combinations of a full-domain release; those of a local one are there."""


def attacks() -> Iterator[Attack]:
    """The attacks that there are, in the order in which they are told."""
    for name in ATTACKS:
        if name in MADE:
            found: Attack = import_module(f"sqldeid.tables.attacks.{name}").ATTACK
            yield found


def attack(attacked: Attacked) -> Attacks:
    """What the attacks on a release achieve.

    Raises
    ------
    AttackFailedError
        If one failed, and the database has ended the run's transaction by that.
    """
    known = None if attacked.known is None else once(attacked.known)
    attacked = replace(attacked, read=once(attacked.read), known=known)
    attacked = replace(attacked, control=once(partial(control_of, attacked)))
    found: dict[str, Achieved] = {}
    left_out = [LeftOut("composition", TOGETHER)]
    for one in attacks():
        try:
            if not (reason := attacked.spared.get(one.name) or _unknown(attacked)):
                attacked.read()
                reason = one.left_out(attacked)
            if not reason:
                found[one.name] = one.make(attacked)
        except told.TOLERATED as error:
            reason = reason_of(attacked, one.name, error)
        if reason:
            left_out.append(LeftOut(one.name, reason))
    if "inference" in found:
        left_out += [LeftOut("inference", reason, name) for name, reason in not_inferred(attacked.plan)]
    return Attacks(**found, left_out=tuple(left_out))


def _unknown(attacked: Attacked) -> str:
    """Why no attack knows a release."""
    if attacked.plan.many:
        return 'with rows = "many" classes count persons, and the attacks count rows'
    if attacked.plan.mapped:
        asked = "k_map" if attacked.plan.k_map is not None else "delta_presence"
        return f"with {asked} classes are also judged by a population, which no attack knows"
    if attacked.far:
        return "its combinations are too many to be read"
    return "" if attacked.released else "the release is empty"


def attacking_steps(plan: TablePlan, reading: Iterator[Step], searching: Iterator[Step] | None) -> Iterator[Step]:
    """The statements of all attacks, for `--plan`: those that read the combinations, and that find classes, first.

    Parameters
    ----------
    searching
        Those by which a release is made once more; None where persons were drawn and classes sought before.
    """
    yield from reading
    for one in attacks():
        if one.name == "singling_out":
            if searching is not None:
                yield from drawing_steps()
                yield from searching
            yield from comparing_steps()
        yield from one.steps(plan)


Remaking = Callable[[Draft, Folded, exp.Table, int], Released]
"""Makes a full-domain release once more: what is on its way, the whole source's fold, the persons and their number."""


def attacking(
    plan: TablePlan,
    searching: Callable[[], Iterator[Step]],
    remake: Remaking,
    *,
    anew: bool,
    spared: Mapping[str, str],
) -> Beside:
    """What accompanies a full-domain release: attacks on what was verified, told with its result.

    Parameters
    ----------
    searching
        The statements by which a release is made once more.
    remake
        Makes it.
    anew
        Whether the node was searched: false where it is an earlier release's.
    spared
        As `Attacked.spared`.
    """

    def act(draft: Draft) -> None:
        found = replace(_attacked(draft, remake, anew=anew), spared=spared)
        draft.result = replace(draft.result, attacks=attack(found))

    return Beside(told=(Stage(SAID, act, lambda _: attacking_steps(plan, as_needed(*_READING), searching())),))


def _attacked(draft: Draft, remake: Remaking, *, anew: bool) -> Attacked:
    chosen, outcome = draft.chosen, draft.outcome
    folded = draft.checker.folded if anew else chosen.folded
    here = not folded.far and not chosen.plan.many
    return Attacked(
        plan=chosen.plan,
        engine=draft.engine,
        source=chosen.folded.source,
        written=draft.written,
        rows=draft.verified.rows,
        released=draft.verified.released,
        k=chosen.k,
        kind="full-domain",
        columns=chosen.folded.columns,
        read=cache(lambda: _Reading(draft).recoded()),
        node=outcome.node,
        whole=draft.whole,
        anew=anew,
        proven=outcome.optimal,
        beyond=draft.result.search.suppressed_beyond_k or 0,
        exact=outcome.exact,
        known=cache(partial(fold_attacked, chosen.plan, folded, draft.engine)) if here else None,
        remake=partial(remake, draft, folded) if here else None,
        far=draft.folded.far,
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """The combinations of a full-domain release, read from the bench."""

    draft: Draft

    def recoded(self) -> Recoded:
        chosen = self.draft.chosen
        folded, node = chosen.folded, chosen.node
        words, rows = self._combinations(folded)
        leaf = np.stack([leaves_of(c, words) for c in folded.columns])
        masks = np.array(folded.coding.masks(node), dtype=np.int64)[:, None]
        classes, owner = np.unique(words & masks, axis=1, return_inverse=True)
        owner = owner.reshape(-1)
        passing = np.bincount(owner, weights=rows) >= chosen.k
        if chosen.failing is not None:
            passing &= ~self._failing(folded, classes)
        number = np.where(passing, np.cumsum(passing) - 1, SUPPRESSED)
        owner = number[owner]
        level = np.where(owner == SUPPRESSED, SUPPRESSED, np.array(node, dtype=np.int64)[:, None])
        return Recoded(leaf, rows, level, owner, *hierarchies_of(folded.columns))

    def _combinations(self, folded: Folded) -> tuple[Ints, Ints]:
        bench = self.draft.engine.bench
        read = bench.ask("tables/local/read_combinations", classes=folded.table, words=list(folded.words))
        words = np.stack([read.column(w.name).to_numpy().astype(np.int64) for w in folded.words])
        order = np.lexsort(words[::-1])
        return words[:, order], read.column("n").to_numpy().astype(np.int64)[order]

    def _failing(self, folded: Folded, classes: Ints) -> Flags:
        """Which classes fail a criterion beyond k."""
        bench, names = self.draft.engine.bench, list(folded.words)
        read = bench.ask("tables/attacks/read_failing", failing=self.draft.chosen.failing, words=names)
        words = np.stack([read.column(w.name).to_numpy().astype(np.int64) for w in names])
        both, at = np.unique(np.concatenate([classes, words], axis=1), axis=1, return_inverse=True)
        at = at.reshape(-1)
        size = classes.shape[1]
        failing = np.zeros(both.shape[1], dtype=np.bool_)
        failing[at[size:]] = True
        return np.asarray(failing[at[:size]])


def hierarchies_of(columns: tuple[Coded, ...]) -> tuple[tuple[tuple[Ints, ...], ...], tuple[bool, ...]]:
    """Per column the groups of each level, and whether readers know all leaves."""
    groups = tuple(tuple(c.hierarchy.groups) for c in columns)
    public = tuple(not c.qi.hierarchy.data_derived and c.qi.uncovered == "refuse" for c in columns)
    return groups, public


def levels_of(node: Node, combinations: int) -> Ints:
    """The levels of a node for each combination; shape (columns, combinations)."""
    return np.repeat(np.array(node, dtype=np.int64)[:, None], combinations, axis=1)
