"""Downcoding: what a reader undoes of the recoding with certainty, by knowing how levels are chosen (Cohen 2022).

*The reader* knows the algorithm, the hierarchies, the job, the number of rows of the source, the released table and its
levels; that the search ended with its proof; that a ledger, if there is one, held nobody back; and how many rows of
classes of k and more were suppressed. He is told the last three by the data holder or takes them for granted: who does
not know them is certain of less. A value is certain if it is the same in every source of so many rows that gives this
release under this job, and for which all that is so.

*Method.* Facts that every such source satisfies, and what follows from them for each class one level finer (`certain`).

- Full-domain: let y be the released node x with one column a level lower. Rows that fail at x fail at y, too. If y
  suppressed no more than the limit, it would lose no more than x but for the rows that fail there beside those, and
  with none of these it would win the tie, for its levels are lower. So the search, which proves its optimum, has found
  at y at least so many more failing rows as y needs to be inadmissible or to lose as much: `needed`, reckoned exactly
  in the loss's units with the greatest loss that so many rows can cause.
- Local: the last step releases each class at the lowest node at which its members agree (`peel.improving.settle`). So
  in each column that is above level 0 they are not all of one finer value. That finer cells hold fewer than k rows is
  NOT used: peeling guarantees it, improvement moves rows afterwards, and ends before nothing is left to gain.

*Limits of the search.* `time_limit` and `checks_limit` may end a search with another node, and then nothing is said
here. Where the search proved its node they cost nothing. Proof: a proven node is the least by loss, then suppressed
rows, then levels (`Outcome.optimal` covers ties), which is a function of source and job that has no limit in it. So
each source for which the job gives this node with a proof gives it without limits, too; the facts hold of all these,
and so of those. Local recoding whose time was not over has made its last step, and the fact is about that step alone.

*By k alone* (`choose = "by-k"`) the node is the least for k, and classes that fail another criterion are suppressed
after that: rows that the reader does not see, but which count where nodes are compared. Let there be b of them
(`beyond`). Any of them may fail at y; so y needs that many failing released rows less, and where suppression costs,
they may cost what b suppressed rows do. With b = 0 it is k-anonymity's case. Where other criteria choose the node, too,
nothing is said: that a finer one failed does not tell by which.

*Soundness.* Each fact holds of every source that gives the release, so whatever follows from them is certain. What is
certain by enumeration of all sources and not found is measured in the tests: facts of nodes beside the released one,
and of the path that peeling takes, are not used. So the shares are lower bounds of what is certain.

*Bits* are -log2 of the probability that the facts hold, where each row is of any leaf below its label alike,
divided by the released rows: exact for local recoding; drawn `DRAWS` times for a node, for sums over all classes.
Columns whose leaves readers do not know (hierarchies made from the values that are there) tell nothing here.

Source: Cohen, "Attacks on deidentification's defenses", USENIX Security 2022, §3 and §4.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.attacked import Downcoding, Estimate, counted, sampled
from sqldeid.tables.attacks.base import HELD_BACK, Attack, Attacked, Recoded
from sqldeid.tables.attacks.certain import (
    Sharpened,
    Shown,
    disagreeing,
    disagreeing_bits,
    failing,
    failing_draws,
    heads_of,
    shown_of,
)
from sqldeid.tables.fold.fold import Coded
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.loss import Loss, make_loss
from sqldeid.tables.plan.choosing import by_k

PROVING = ("frontier", "best-first", "flash", "ola")
"""Methods that prove their node the optimum, so that a reader is certain of it."""

PROVEN_OF = ("loss", "prec", "dm_star", "entropy")
"""Losses that `needed` speaks of."""


def _left_out(attacked: Attacked) -> str:
    plan, search = attacked.plan, attacked.plan.search
    if not attacked.anew:
        return "levels are those of an earlier release, and tell nothing of these rows"
    if not attacked.whole:
        return HELD_BACK
    if search.blunt:
        return "levels are blunted by secret draws, so that none of the facts it rests on is certain"
    if attacked.kind == "local":
        if not attacked.proven:
            return (
                "the time was over before levels were as low as they get, so that nothing about lower ones is certain"
            )
        few = plan.stated.get("search", {}).get("layers") is not None
        return "with a number of layers no fact about finer levels is certain" if few else ""
    if (plan.beyond_k and not by_k(plan)) or plan.overall is not None:
        return "which of several criteria finer levels failed is not certain"
    if search.loss not in PROVEN_OF:
        return f"of {search.loss} no fact about finer levels is proven"
    if search.method not in PROVING:
        return f"{search.method} proves nothing of finer levels"
    return "" if attacked.proven else "its levels are not proven the best, so that no fact about finer ones is certain"


def _make(attacked: Attacked) -> Downcoding:
    recoded = attacked.read()
    sizes, columns = recoded.sizes, shown_of(recoded)
    if attacked.kind == "local":
        settled = lowest(recoded, blanked=attacked.plan.demands.blanks)
        told = [settled & clear(c, ambiguous(of)) for c, of in zip(columns, attacked.columns, strict=True)]
        found = [disagreeing(c, sizes, t) for c, t in zip(columns, told, strict=True)]
        bits = sum(disagreeing_bits(c, sizes, t) for c, t in zip(columns, told, strict=True)) / attacked.released
        return _downcoding(found, columns, sizes, Estimate(bits, bits, bits, attacked.released))
    needs = needs_of(attacked, columns, sizes)
    found = [failing(c, sizes, attacked.k, need) for c, need in zip(columns, needs, strict=True)]
    return _downcoding(found, columns, sizes, _drawn_bits(attacked, columns, sizes, needs))


def lowest(recoded: Recoded, *, blanked: bool) -> Flags:
    """Of which classes a reader is certain that members agree on no lower level; shape (classes,).

    Not where labels of two layers are equal; nor of the class at the top that suppressed rows may have been put into.
    """
    heads = heads_of(recoded)
    same = (recoded.level == recoded.level[:, heads][:, recoded.owner]).all(axis=0)
    told = np.ones(len(heads), dtype=np.bool_)
    told[recoded.owner[recoded.released & ~same]] = False
    if blanked:
        top = np.array([[len(groups) - 1] for groups in recoded.groups])
        told &= ~(recoded.level[:, heads] == top).all(axis=0)
    return told


def ambiguous(column: Coded) -> list[Flags]:
    """Per level of a column, which groups share their label with a group of other leaves."""
    hierarchy, seen = column.hierarchy, dict[str | None, set[tuple[int, int]]]()
    told = []
    for level in range(hierarchy.height):
        first = np.zeros(len(hierarchy.labels[level]), dtype=np.int64)
        first[hierarchy.groups[level][::-1]] = np.arange(hierarchy.leaves)[::-1]
        texts = [None if label is None else str(label) for label in column.qi.labels(hierarchy, level)]
        sets = list(zip(first.tolist(), hierarchy.group_sizes(level).tolist(), strict=True))
        told.append(texts)
        for text, leaves in zip(texts, sets, strict=True):
            seen.setdefault(text, set()).add(leaves)
    return [np.array([len(seen[text]) > 1 for text in texts], dtype=np.bool_) for texts in told]


def clear(shown: Shown, unclear: list[Flags]) -> Flags:
    """Of which classes the label tells its level; shape (classes,)."""
    pairs = zip(shown.level.tolist(), shown.group.tolist(), strict=True)
    return np.array([not unclear[level][group] for level, group in pairs], dtype=np.bool_)


def needs_of(attacked: Attacked, columns: list[Shown], sizes: Ints) -> list[int]:
    """Per column, how many rows beside the suppressed ones are certain to fail one level lower; 0 at level 0."""
    if attacked.node is None:
        raise ValueError("a full-domain release has a node")
    plan, rows = attacked.plan, attacked.rows
    marginals = [c.marginal for c in attacked.columns]
    loss = make_loss(plan.search.loss, marginals, rows)
    spare = allowed_rows(plan.demands.suppression_limit, rows) - int(rows - sizes.sum())
    beyond = attacked.beyond
    return [needed(loss, columns, j, sizes, spare, beyond) if level else 0 for j, level in enumerate(attacked.node)]


def needed(loss: Loss, columns: list[Shown], j: int, sizes: Ints, spare: int, beyond: int = 0) -> int:
    """How many released rows more fail for k with column j a level lower, at least; 0 where nothing is certain of it.

    Proof. With e more failing rows, e at most `spare`, the finer node is admissible. For losses taken before
    suppression it then loses less (with e = 0 no more, and wins the tie), so e > spare. For `loss` a row that fails
    costs the whole row instead of what its class loses, and every other row of a class saves what the label has more
    leaves than its widest child. If even the e rows for which that is most do not outweigh what all would save, the
    finer node would have won; so more fail.

    With b rows beyond k, all of these may be among those that fail: with e failing released rows at most e + b fail
    beside those that fail for k at the released node, and with e at most `spare` the finer node is admissible still. It
    loses less before suppression, or nothing fails and it wins the tie. For `loss` the b rows cost at most what as many
    suppressed rows do, and nothing is known of what they save; so that much is taken off what the others would save,
    and where nothing is left no row needs to fail.

    Parameters
    ----------
    spare
        Rows that may be suppressed beside those that are, for whatever reason; may be negative with rows beyond k.
    beyond
        Rows in classes of k and more that are suppressed; none where the node is chosen by all criteria.
    """
    if not loss.suppressed_row:
        return max(spare + 1, 0)
    if not all(c.public for c in columns):
        return 0 if beyond else 1
    own = columns[j]
    cost = sum((unit * (c.widest[1] - 1) for unit, c in zip(loss.leaf, columns, strict=True)), np.zeros_like(sizes))
    saved = loss.leaf[j] * (own.widest[1] - own.widest[0])
    worth = loss.suppressed_row - cost + saved
    left, certain = int((saved * sizes).sum()) - beyond * loss.suppressed_row, 0
    if beyond and (left <= 0 or spare < 0):
        return 0
    for i in np.argsort(-worth, kind="stable").tolist():
        if certain >= spare or left <= 0:
            break
        most = int(sizes[i]) if worth[i] <= 0 else min(int(sizes[i]), -(-left // int(worth[i])) - 1)
        left -= most * int(worth[i])
        certain += most
        if most < sizes[i]:
            break
    return min(certain, spare) + 1


def _downcoding(found: list[Sharpened], columns: list[Shown], sizes: Ints, bits: Estimate) -> Downcoding:
    raised = np.stack([c.level > 0 for c in columns])
    exact, present = np.stack([f.exact for f in found]), np.stack([f.present for f in found])
    cells = int((raised * sizes).sum())
    return Downcoding(
        rows=counted(int(sizes[exact.any(axis=0)].sum()), int(sizes.sum())),
        cells=counted(int((exact * sizes).sum()), cells),
        present=counted(int((present * sizes).sum()), cells),
        bits=bits,
    )


def _drawn_bits(attacked: Attacked, columns: list[Shown], sizes: Ints, needs: list[int]) -> Estimate:
    """Bits of a node's facts a row: columns are independent where leaves are alike, so theirs add up."""
    random = np.random.default_rng(20220810)
    value = low = 0.0
    high: float | None = 0.0
    drawn = 0
    for shown, need in zip(columns, needs, strict=True):
        if not need or not (shown.public and (shown.children > 1).any()):
            continue
        hits, draws = failing_draws(shown, sizes, attacked.k, need, random)
        share, drawn = sampled(hits, draws), draws
        value -= float(np.log2(max(hits, 0.5) / draws))
        low -= float(np.log2(share.high or 1.0))
        high = None if high is None or not hits else high - float(np.log2(share.low))
    rows = attacked.released
    return Estimate(value / rows, low / rows, None if high is None else high / rows, drawn)


ATTACK = Attack("downcoding", _left_out, _make)
