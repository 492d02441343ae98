"""The bound of a release by local recoding as a file: shares of what each combination must lose, checked anew.

A certificate parts the columns into sets that share none and lists, for each, a share of each combination of the
source, in the order of their values' texts: what is lost is the sum of what is lost in each set. It names no value, but
who has the source reads which combinations are rare: it is for the data holder. The check folds the source by SQL
of its own, sorts the combinations itself, prices every level by the hierarchies as it binds them, and walks every node
of the lattice (`sqldeid.tables.certificate.shares`): no number of the file is believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Flags, Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.hierarchy import Hierarchy
from sqldeid.result import HOLDER
from sqldeid.sql import identifier
from sqldeid.tables.certificate.passing_rows import passing_rows
from sqldeid.tables.certificate.proof import FORMAT, fraction, refuse, refuse_others, terms_of_claim
from sqldeid.tables.certificate.recount import Recount
from sqldeid.tables.certificate.shares import Claimed, Leveled
from sqldeid.tables.plan.choosing import choosing
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.bind import bind
from sqldeid.tables.verify.concealment import above

MOST_NODES = 2_000_000
"""Nodes that a check walks; the bound of a greater lattice is told without a certificate."""

_OWN = ("rows", "unit", "bound", "parts", "shares")
"""Keys of a certificate beside those that the job gives."""

_MOST_UNITS = 2**40
"""Of a suppressed row: so that sums over k rows stay below 2**63 for every k that a table of a billion rows allows."""


@dataclass(frozen=True, slots=True)
class ProvenBound:
    """What a checked certificate proves: no recoding of this kind loses less than `bound`.

    Parameters
    ----------
    node
        None: a release by local recoding has no node of its own.
    combinations, nodes
        Of the source, each with a share in each set of columns; of the sets' lattices, each looked at.
    """

    bound: float
    loss: str
    combinations: int
    nodes: int
    node: None = None

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        return [
            ("Proven", f"no recoding of this kind loses less than {self.bound:.6g} ({self.loss})"),
            ("Certificate", f"{self.combinations:,} shares checked at {self.nodes:,} nodes"),
        ]


def certify_bound(
    plan: TablePlan, rows: int, parts: Sequence[Sequence[int]], share: Ints, unit: Fraction, bound: int
) -> dict[str, object]:
    """The certificate of a bound, ready for JSON.

    Parameters
    ----------
    parts, share
        Sets of columns by place; units per row of each combination in each, in the order of their leaves' texts.
    unit, bound
        What a unit of the sum over all rows is worth in the published scale; that sum.
    """
    return {
        "audience": HOLDER,
        "format": FORMAT,
        **terms_of_claim(plan),
        "method": "local",
        "rows": rows,
        "unit": str(unit * rows),
        "bound": str(unit * bound),
        "parts": [list(part) for part in parts],
        "shares": share.tolist(),
    }


def no_bound(plan: TablePlan, parts: Sequence[Sequence[int]]) -> str:
    """Why a bound by these sets of columns has no certificate; empty where it has one."""
    if plan.search.blunt:
        return "levels are blunted by secret draws"
    size = _nodes(plan, parts)
    return "" if size <= MOST_NODES else f"there are {size:,} nodes to look at; a check walks at most {MOST_NODES:,}"


def _nodes(plan: TablePlan, parts: Sequence[Sequence[int]]) -> int:
    """Nodes of the lattices over each set of columns."""
    return sum(prod(plan.lattice.heights[j] for j in part) for part in parts)


def check_bound(plan: TablePlan, certificate: Mapping[str, object], engine: Engine) -> ProvenBound:
    """Check a certificate against the source as it is now.

    Raises
    ------
    VerificationError
        If any part of it is not what job and source say, or its shares do not prove its bound.

    Cost: two scans of the source, and a walk of the lattice over its combinations.
    """
    plan = choosing(plan)
    refuse_others(plan, certificate, {**terms_of_claim(plan), "method": "local"}, _OWN)
    parts, share, unit, bound = _parsed(plan, certificate)
    if reason := no_bound(plan, parts):
        refuse(plan, reason)
    proof = Recount.of(plan, engine)
    if certificate.get("rows") != proof.rows:
        refuse(plan, "the source has another number of rows")
    claims = _claimed(plan, proof, engine, parts, share, unit)
    rows = claims[0].rows.tolist() if claims else []
    if sum(n * s for of_part in share for n, s in zip(rows, of_part, strict=True)) * unit != bound * proof.rows:
        refuse(plan, "its shares do not sum to its bound")
    if not all(claimed.holds() for claimed in claims):
        refuse(plan, "its shares do not prove its bound")
    return ProvenBound(float(bound), plan.search.loss, len(rows), _nodes(plan, parts))


Shares = list[list[int]]


def _parsed(plan: TablePlan, certificate: Mapping[str, object]) -> tuple[Shares, Shares, Fraction, Fraction]:
    try:
        parts, shares = _whole(certificate["parts"]), _whole(certificate["shares"])
        named = [j for part in parts for j in part]
        if len(parts) != len(shares) or len(set(named)) < len(named) or not all(j < len(plan.qis) for j in named):
            raise ValueError
        unit, bound = fraction(certificate["unit"]), fraction(certificate["bound"])
        if unit < 0:
            raise ValueError
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise VerificationError.at(plan.key, "the file is not a certificate of this version of sqldeid") from None
    return parts, shares, unit, bound


def _whole(value: object) -> Shares:
    """Lists of whole numbers from 0 on."""
    if not isinstance(value, list) or not all(isinstance(numbers, list) for numbers in value):
        raise TypeError
    if not all(type(n) is int and 0 <= n < 2**62 for numbers in value for n in numbers):
        raise TypeError
    return value


def _claimed(
    plan: TablePlan, proof: Recount, engine: Engine, parts: Shares, share: Shares, unit: Fraction
) -> list[Claimed]:
    """The source's combinations in the order of their texts, priced, for each set of columns."""
    hierarchies = [bind(plan, i, engine, proof.source).hierarchy for i in range(len(plan.qis))]
    names = [[identifier(f"a{i}_{x}") for x in range(h.height)] for i, h in enumerate(hierarchies)]
    every = [name for of_column in names for name in of_column]
    read = proof.engine.ask("tables/certificate/read_combinations", folded=proof.folded, columns=every)
    group = [[read.column(n.name).to_numpy().astype(np.int64) for n in of_column] for of_column in names]
    order = np.lexsort([_by_text(h)[levels[0]] for h, levels in zip(hierarchies, group, strict=True)][::-1])
    if any(len(order) != len(of_part) for of_part in share):
        refuse(plan, "the source has other combinations")
    group = [[of_level[order] for of_level in levels] for levels in group]
    rows = read.column("n").to_numpy().astype(np.int64)[order]
    prices, row = _prices(plan, hierarchies, unit)
    columns = tuple(
        Leveled(tuple(levels), tuple(price[g] for price, g in zip(by_level, levels, strict=True)))
        for levels, by_level in zip(group, prices, strict=True)
    )
    own = int(unit * sum(row))
    if any(s * own > sum(row) for of_part in share for s in of_part):
        refuse(plan, "its shares do not prove its bound")
    least = _least_rows(plan, proof.rows)
    possible = _Possible.of(plan, proof, group, rows, least)
    return [
        Claimed(
            tuple(columns[j] for j in part),
            rows,
            np.array([s * own for s in of_part], dtype=np.int64),
            least,
            sum(row[j] for j in part),
            possible,
        )
        for part, of_part in zip(parts, share, strict=True)
    ]


def _least_rows(plan: TablePlan, rows: int) -> int:
    """Rows below which no class is released: k, and by m-concealing those among which one is found at m at most.

    Whoever knows no sensitive value at all picks a row of a class of n with the inclusion probability over n, and the
    more is known, the fewer rows fit. A class of more rows than there are stands for none.
    """
    hidden = plan.concealing
    if hidden is None:
        return plan.demands.k
    needed = hidden.inclusion / (hidden.m * (1 + Fraction(1, 10**12)))
    return max(plan.demands.k, min(-int(-needed // 1), rows + 1))


def _by_text(hierarchy: Hierarchy) -> Ints:
    """The place of each leaf in the order of their texts; NULL is the last."""
    texts = hierarchy.labels[0].tolist()
    falling = sorted(range(len(texts)), key=lambda leaf: (texts[leaf] is None, str(texts[leaf] or "")))
    places = np.empty(len(texts), dtype=np.int64)
    places[falling] = np.arange(len(texts))
    return places


def _prices(plan: TablePlan, hierarchies: list[Hierarchy], unit: Fraction) -> tuple[list[list[Ints]], list[int]]:
    """Units that a row loses by column, level and group; and those that a suppressed row loses in each column.

    Shares in `unit`, of what a row loses in the published scale, are whole numbers of them, too.
    """
    parts = []
    for q, h in zip(plan.qis, hierarchies, strict=True):
        if plan.search.loss == "prec":
            most = max(h.height - 1, 1)
            lost = [[Fraction(x, most)] * len(h.labels[x]) for x in range(h.height)]
        else:
            most = max(h.leaves - 1, 1)
            lost = [[Fraction(int(n) - 1, most) for n in h.group_sizes(x).tolist()] for x in range(h.height)]
        parts.append([[q.weight * one for one in of_level] for of_level in lost])
    whole = sum((q.weight for q in plan.qis), Fraction(0))
    common = lcm(
        *(q.weight.denominator for q in plan.qis), *(one.denominator for c in parts for level in c for one in level)
    )
    common *= (unit * whole * common).denominator
    if whole * common > _MOST_UNITS:
        refuse(plan, "its units are finer than any loss needs")
    priced = [[np.array([int(one * common) for one in level], dtype=np.int64) for level in c] for c in parts]
    return priced, [int(q.weight * common) for q in plan.qis]


@dataclass(frozen=True, slots=True)
class _Possible:
    """Which classes can hold a released one by the criteria beyond k, with other formulas than the search's.

    Parameters
    ----------
    cells
        Of each criterion's column: where each combination's values begin, their places and rows; and rows of the whole.
    hidden
        Of the columns that m-concealing calls known, together: where each combination's values begin, their places by
        column, and rows; None where it is not asked for.
    least
        Rows below which no class is released.
    """

    plan: TablePlan
    cells: Mapping[str, tuple[Ints, Ints, Ints, Ints]]
    hidden: tuple[Ints, list[Ints], Ints] | None
    least: int

    @classmethod
    def of(cls, plan: TablePlan, proof: Recount, group: list[list[Ints]], rows: Ints, least: int) -> _Possible:
        """Read the combinations split by each sensitive column, and by those together that m-concealing calls known."""
        judge = proof.judge
        if judge is None:
            return cls(plan, {}, None, least)
        leaf = np.stack([levels[0] for levels in group])
        cells, hidden = {}, None
        for name in dict.fromkeys(c.column for c in plan.criteria):
            begin, (value,), n = _split(proof, leaf, [judge.places[name]])
            cells[name] = (begin, value, n, judge.whole(name))
        if plan.concealing is not None:
            hidden = _split(proof, leaf, [judge.places[name] for name, _ in plan.concealing.known])
        return cls(plan, cells, hidden, least)

    def __call__(self, members: Ints, first: Ints) -> Flags:
        """Whether each class lets `least` rows be released by every criterion."""
        owner = np.repeat(np.arange(len(first)), np.diff([*first.tolist(), len(members)]))
        found = np.ones(len(first), dtype=np.bool_)
        for criterion in self.plan.criteria:
            begin, value, n, whole = self.cells[criterion.column]
            count, cells = _cells_of(begin, members)
            key, place = np.unique(np.repeat(owner, count) * len(whole) + value[cells], return_inverse=True)
            rows = np.bincount(place.reshape(-1), weights=n[cells]).astype(np.int64)
            starts = np.searchsorted(key // len(whole), np.arange(len(first)))
            found &= passing_rows(criterion, starts, key % len(whole), rows, whole) >= self.least
        hidden = self.plan.concealing
        if hidden is not None and self.hidden is not None and len(first):
            begin, values, n = self.hidden
            count, cells = _cells_of(begin, members)
            mine = np.repeat(owner, count)
            risky = above(mine, [v[cells] for v in values], n[cells], hidden)
            kept = np.bincount(mine, weights=n[cells] * ~risky, minlength=len(first)).astype(np.int64)
            found &= kept >= self.least
        return found


def _split(proof: Recount, leaf: Ints, places: list[exp.Identifier]) -> tuple[Ints, list[Ints], Ints]:
    """Combinations split by sensitive columns: where each one's values begin, their places by column, and rows."""
    names = [identifier(f"a{i}_0") for i in range(len(leaf))]
    read = proof.engine.ask("tables/certificate/read_combinations", folded=proof.folded, columns=[*names, *places])
    mine = np.stack([read.column(n.name).to_numpy().astype(np.int64) for n in names])
    values = [read.column(p.name).to_numpy().astype(np.int64) for p in places]
    owner = _found(leaf, mine)
    order = np.lexsort((*values, owner))
    begin = np.searchsorted(owner[order], np.arange(leaf.shape[1] + 1))
    return begin, [v[order] for v in values], read.column("n").to_numpy().astype(np.int64)[order]


def _cells_of(begin: Ints, members: Ints) -> tuple[Ints, Ints]:
    """How many cells each of some combinations has, and which these are."""
    count = begin[members + 1] - begin[members]
    return count, np.repeat(begin[members] - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))


def _found(there: Ints, asked: Ints) -> Ints:
    """Where each asked column of numbers is among those that are there."""
    _, owner = np.unique(np.concatenate([there, asked], axis=1), axis=1, return_inverse=True)
    owner, size = owner.reshape(-1), there.shape[1]
    place = np.zeros(int(owner.max(initial=-1)) + 1, dtype=np.int64)
    place[owner[:size]] = np.arange(size)
    return place[owner[size:]]
