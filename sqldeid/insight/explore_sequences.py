"""How well the first items of a child table tell their owners apart (Mazzone 2019, §3.2): codes of procedures, say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.findings import ExploredSequences
from sqldeid.insight.explore_source import LIMITS, Arm, Source, measure, open_table, value_of
from sqldeid.sql import column, identifier

MOST_PLACE = 1000
"""The last place that a pattern may name."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The items that an attacker knows: at these places (from 1, ascending), in order or as a set with its repeats."""

    places: tuple[int, ...]
    ordered: bool = True

    @property
    def name(self) -> str:
        """As tables and plots show it."""
        shown = ", ".join(map(str, self.places))
        return shown if self.ordered else f"{{{shown}}}"


PATTERNS = (
    Pattern((1,)),
    Pattern((1, 2)),
    Pattern((1, 2, 3)),
    Pattern((1, 3)),
    Pattern((1, 5)),
    Pattern((1, 2), ordered=False),
    Pattern((1, 2, 3), ordered=False),
)
"""What the source looked at: the first two or three, a pair that is not adjacent, unordered sets."""


@dataclass(frozen=True, slots=True)
class SequenceQuestion:
    """What is asked about a child table.

    Parameters
    ----------
    per
        Columns that say whose item a row is; rows where one is NULL are nobody's and left out.
    value
        The item.
    order
        Columns by which an owner's items are ordered, NULL last; where they leave it open, the item itself decides.
    person
        Column whose distinct values are persons, who may own several sequences; classes then count persons.
    """

    table: str
    per: tuple[str, ...]
    value: str
    order: tuple[str, ...]
    person: str | None = None
    patterns: tuple[Pattern, ...] = PATTERNS


def explore_sequences(asked: SequenceQuestion, engine: Engine) -> ExploredSequences:
    """Measure what patterns of an owner's items tell apart; owners with too few items for a pattern are not in it.

    Cost: three scans of the child table, one of them with a sort.

    Raises
    ------
    JobError
        If a table or column is not there, or a pattern is none.
    """
    started = monotonic()
    _check_patterns(asked.patterns)
    source = open_table(asked.table, asked.person, engine)
    owners = [(identifier(f"o{i}"), source.find(name, "--per")) for i, name in enumerate(asked.per)]
    orders = [(identifier(f"t{i}"), source.find(name, "--order")) for i, name in enumerate(asked.order)]
    keys = [{"name": name, "column": value_of(c)} for name, c in owners]
    counted = [{"name": name, "column": value_of(c)} for name, c in orders]
    row = engine.row("insight/count_ties", source=source.relation, owners=keys, orders=counted)
    ranked = _rank(asked, source, keys, counted, engine)
    arms = [_spell(p, ranked, [name for name, _ in owners], source, engine) for p in asked.patterns]
    return ExploredSequences(
        table=asked.table,
        per=tuple(c.name for _, c in owners),
        person=source.person_name,
        owners=int(row["owners"]),
        patterns=tuple(measure(arms, engine, shared=source.person is not None)),
        ties=int(row["ties"]),
        seconds=round(monotonic() - started, 3),
    )


def _check_patterns(patterns: Sequence[Pattern]) -> None:
    for p in patterns:
        good = p.places and all(a < b for a, b in zip((0, *p.places), p.places, strict=False))
        if not good or p.places[-1] > MOST_PLACE:
            raise JobError.at(
                "--places", f"{p.name} is no pattern; give places from 1 to {MOST_PLACE}, ascending: 1,2,3 or 1,5"
            )


def _rank(
    asked: SequenceQuestion,
    source: Source,
    owners: Sequence[dict[str, exp.Expr]],
    orders: Sequence[dict[str, exp.Expr]],
    engine: Engine,
) -> exp.Table:
    """A temporary table of each owner's items up to the last place that a pattern names, with their numbers."""
    item = value_of(source.find(asked.value, "--value"))
    values = engine.make("insight/number_values", "explore_items", column=item, source=source.relation)
    told = engine.row("insight/describe_values", columns=[{"number": 0, "numbered": values}], limits=LIMITS)
    return engine.make(
        "insight/rank_items",
        "explore_ranked",
        source=source.relation,
        value=item,
        values=values,
        null_id=told["last_null"],
        most=max(p.places[-1] for p in asked.patterns),
        person=source.person_column,
        owners=owners,
        orders=orders,
    )


def _spell(
    pattern: Pattern, ranked: exp.Table, owners: Sequence[exp.Identifier], source: Source, engine: Engine
) -> Arm:
    spelled = engine.make(
        "insight/spell_pattern",
        "explore_pattern",
        ranked=ranked,
        owners=list(owners),
        places=list(pattern.places),
        length=len(pattern.places),
        ordered=pattern.ordered,
        person=source.person is not None,
    )
    return Arm((pattern.name,), spelled, (column("items"),))
