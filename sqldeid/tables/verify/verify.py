"""Independent re-check of a release: what was written against what the source says, on values, never on codes.

It shares nothing with fold, check or search: it labels every row of the source by the hierarchies, counts classes,
suppresses by its own counts, and compares with the classes of what was written, class by class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.hierarchy import Hierarchy
from sqldeid.keys import Key
from sqldeid.publish import names_of
from sqldeid.result import Criterion, Persons
from sqldeid.sql import column, identifier, literal, render
from sqldeid.tables.disguise.disguise import (
    Secrets,
    check_coarse,
    check_pseudonyms,
    disguise,
    exact_of,
    kept_of,
    noted_secrets,
)
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.choosing import allowed_of, chosen_by
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.rows.bind import bind
from sqldeid.tables.rows.held_back import without_held_back
from sqldeid.tables.rows.shape import check_stacks, count_persons, keep
from sqldeid.tables.verify.judgement import Judgement
from sqldeid.tables.verify.overall import achieved_together, least_size
from sqldeid.tables.verify.persons import PersonJudgement


@dataclass(frozen=True, slots=True)
class Verified:
    """What the re-check counted.

    Parameters
    ----------
    rows, released, suppressed
        Rows of the source, of the release, and of source classes that fail a criterion (dropped or blanked). What is
        left of the source is what the ledger holds back.
    k
        Smallest released class, in persons where one may have many rows; 0 for an empty release.
    classes, sizes
        Released classes, and class size -> number of classes.
    criteria
        The criteria beyond k, with what the release achieves.
    node
        The released level of each quasi-identifying column.
    sampled
        Whether a secret sample was released (`epsilon-safe`): its suppressed rows are unknown, and not counted.
    linked
        The releases of whose join all this was counted, where they are linked.
    persons
        The persons of source and release, where one may have many rows.
    """

    rows: int
    released: int
    suppressed: int
    k: int
    classes: int
    sizes: dict[int, int]
    criteria: tuple[Criterion, ...] = ()
    node: dict[str, int] = field(default_factory=dict)
    sampled: bool = False
    linked: tuple[str, ...] = ()
    persons: Persons | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a release claims to be: the source as the plan filters it at a node, in classes of k.

    `hierarchies` are bound to the source's values, one per quasi-identifier.
    """

    plan: TablePlan
    node: Node
    k: int
    hierarchies: Sequence[Hierarchy]
    source: exp.Expr


def verify(
    claimed: Claimed,
    written: exp.Expr,
    engine: Engine,
    secrets: Secrets | None = None,
    held: exp.Table | None = None,
    *,
    absent: bool = False,
) -> Verified:
    """Compare what was written with what it claims to be.

    Parameters
    ----------
    written
        What to read: the staged or published release.
    secrets, held
        With which the source was disguised; the persons whose rows the ledger holds back, who count for t alone.
    absent
        Whether `held` lists whom the criteria suppress, too: rows and suppressed rows are then counted in all of it.

    Raises
    ------
    VerificationError
        If columns, classes, counts or other columns' content are not what they must be.

    Cost: one scan of the source and one of the release.
    """
    plan, node, k, whole = claimed.plan, claimed.node, claimed.k, claimed.source
    _same_columns(plan, written, engine)
    check_stacks(plan, engine, whole)
    source = without_held_back(plan, engine, whole, held)
    labelled = _all_labelled(plan, claimed.hierarchies, node, engine)
    judgement = (PersonJudgement if plan.many else Judgement)(plan, engine, source, labelled, written, whole)
    judgement = _with_population(judgement, labelled)
    population = judgement.population
    counted_source, k = _flagged(judgement, _group_source(plan, labelled, source, engine, secrets), k)
    counted_release = _group_release(plan, written, engine, secrets)
    if plan.sampled:
        return _verify_sample(plan, node, k, counted_source, counted_release, engine)
    tops = [
        {"name": identifier(f"q{i}"), "top": literal(str(h.labels[-1][0]))} for i, h in enumerate(claimed.hierarchies)
    ]
    blank = plan.demands.blanks and judgement.blanked_pass(counted_source, tops)
    expected = _expect(plan, counted_source, k, tops, engine, blank=blank)
    every = Judgement(plan, engine, whole, labelled, written) if absent and held is not None else None
    judged = every.flag(_group_source(plan, labelled, whole, engine, secrets), k) if every else counted_source
    row = _compare(plan, expected, counted_release, judged, engine)
    sizes, criteria = _sizes(counted_release, engine), judgement.achieved(counted_source)
    criteria = (*criteria, *achieved_together(plan, _histogram(sizes)))
    criteria = (*criteria, *([] if population is None else population.achieved(counted_release, counted_source)))
    criteria = (*criteria, *_unattacked(plan, sizes, criteria), *_estimated(plan, sizes))
    verified = _verified(plan, node, row, sizes, int(row["failing"]), criteria)
    _refuse_differences(plan, int(row["missing"]), int(row["unexpected"]), verified, k)
    if isinstance(judgement, PersonJudgement):
        persons = judgement.persons(counted_source)
        judgement.refuse_few(persons, k)
        verified = replace(verified, persons=persons, k=persons.k)
    _check_columns(plan, source, labelled, written, engine)
    return verified


def _check_columns(
    plan: TablePlan, source: exp.Expr, labelled: Sequence[Mapping[str, object]], written: exp.Expr, engine: Engine
) -> None:
    """Look at what classes do not tell: pseudonyms, dates that are cut, and statistics of classes."""
    check_pseudonyms(plan, source, written, engine)
    check_coarse(plan, written, engine)
    if plan.aggregated:
        from sqldeid.tables.verify.statistics import check_statistics

        check_statistics(plan, source, labelled, written, engine)


def _unattacked(
    plan: TablePlan, sizes: Sequence[Mapping[str, int]], criteria: Sequence[Criterion]
) -> Iterator[Criterion]:
    """The job's game of what was written: its k and k-map were counted before.

    Raises
    ------
    VerificationError
        If an attack on a class pays.
    """
    if (game := plan.demands.game) is None:
        return
    fewest = float(min(_histogram(sizes), default=0))
    if game.attacker == "journalist":
        from sqldeid.tables.criteria.k_map import NAME

        fewest = next(c.achieved for c in criteria if c.name == NAME)
    if fewest < game.least and sizes:
        raise VerificationError.at(plan.key, f"the release failed its re-check: a class fails {game.name}")
    yield game.achieved(fewest)


def _estimated(plan: TablePlan, sizes: Sequence[Mapping[str, int]]) -> Iterator[Criterion]:
    """The job's estimated k-map of what was written, by the test that it is.

    Raises
    ------
    VerificationError
        If a class is as small as one of too few persons may be.
    """
    if (estimated := plan.demands.estimated) is None:
        return
    from sqldeid.tables.verify.estimated import stands_out

    fewest = min(_histogram(sizes), default=0)
    if sizes and not stands_out(estimated, fewest):
        raise VerificationError.at(plan.key, "the release failed its re-check: a class fails k-map as estimated")
    yield estimated.achieved(fewest)


def _with_population(judgement: Judgement, labelled: Sequence[Mapping[str, object]]) -> Judgement:
    if judgement.plan.population is None:
        return judgement
    from sqldeid.tables.verify.population import Population

    return replace(judgement, population=Population.of(judgement.plan, judgement.engine, labelled))


def _compare(
    plan: TablePlan, expected: exp.Table, written: exp.Table, source: exp.Table, engine: Engine
) -> dict[str, int]:
    names = [identifier(f"q{i}") for i in range(len(plan.qis))]
    statement = render(
        "tables/verify/compare_release", expected=expected, written=written, source=source, columns=names
    )
    row: dict[str, int] = engine.query(statement).to_pylist()[0]
    return row


def _sizes(grouped: exp.Table, engine: Engine) -> list[dict[str, int]]:
    found: list[dict[str, int]] = engine.rows("tables/verify/count_sizes", grouped=grouped)
    return found


def _histogram(sizes: Sequence[Mapping[str, int]]) -> dict[int, int]:
    """Class size → classes."""
    return {int(r["size"]): int(r["classes"]) for r in sizes}


def _flagged(judgement: Judgement, grouped: exp.Table, k: int) -> tuple[exp.Table, int]:
    """The source's classes with whether they must be suppressed, and the rows of one that is released, at least."""
    flagged, overall = judgement.flag(grouped, k), judgement.plan.overall
    if overall is None:
        return flagged, k
    sizes = _histogram(judgement.engine.rows("tables/verify/count_passing", flagged=flagged))
    least = least_size(overall, sizes, k)
    return (flagged, k) if least == k else (judgement.flag(grouped, least), least)


def _expect(
    plan: TablePlan, grouped: exp.Table, k: int, tops: Sequence[Mapping[str, object]], engine: Engine, *, blank: bool
) -> exp.Table:
    """The classes that must be in the release, from the source's own counts."""
    return engine.make(
        "tables/verify/expect_release",
        f"{plan.name}_verify_expected",
        grouped=grouped,
        k=k,
        blank=blank,
        columns=list(tops),
    )


def _verified(
    plan: TablePlan,
    node: Node,
    row: Mapping[str, int],
    sizes: Sequence[Mapping[str, int]],
    suppressed: int,
    criteria: tuple[Criterion, ...],
) -> Verified:
    return Verified(
        rows=int(row["source_rows"]),
        released=int(row["rows"]),
        suppressed=suppressed,
        k=int(row["smallest"]),
        classes=int(row["classes"]),
        sizes=_histogram(sizes),
        criteria=criteria,
        node=dict(zip((q.name for q in plan.qis), node, strict=True)),
        sampled=plan.sampled,
    )


def _verify_sample(
    plan: TablePlan, node: Node, k: int, source: exp.Table, release: exp.Table, engine: Engine
) -> Verified:
    """A sampled release has no class below k, and none with more rows than the source has."""
    names = [identifier(f"q{i}") for i in range(len(plan.qis))]
    row = engine.row("tables/verify/compare_sample", written=release, source=source, columns=names)
    if (row["classes"] and row["smallest"] < k) or row["unexpected"]:
        raise VerificationError.at(plan.key, "the release failed its re-check: its classes are not those of a sample")
    return _verified(plan, node, row, _sizes(release, engine), 0, ())


def _refuse_differences(plan: TablePlan, missing: int, unexpected: int, found: Verified, k: int) -> None:
    problems = []
    if found.released and found.k < k:
        problems.append(f"its smallest class has {found.k} rows, not {k}")
    if missing:
        problems.append(f"{missing} classes are missing or differ from the source")
    if unexpected:
        problems.append(f"{unexpected} classes are not what the source gives")
    if problems:
        raise VerificationError.at(plan.key, f"the release failed its re-check: {'; '.join(problems)}")


def _same_columns(plan: TablePlan, written: exp.Expr, engine: Engine) -> None:
    there = names_of(engine.columns(written, key=plan.key), plan.key)
    wanted = [c.name for c in plan.released]
    if there != wanted:
        raise VerificationError.at(
            plan.key, f"the release failed its re-check: its columns are not the {len(wanted)} that the job names"
        )


def _group_release(plan: TablePlan, written: exp.Expr, engine: Engine, secrets: Secrets | None) -> exp.Table:
    return engine.make(
        "tables/verify/group_release",
        f"{plan.name}_verify_release",
        release=written,
        columns=[{"name": identifier(f"q{i}"), "column": column(q.name, "r")} for i, q in enumerate(plan.qis)],
        others=[*kept_of(plan, released=True), *exact_of(plan, secrets, released=True)],
    )


def _group_source(
    plan: TablePlan,
    columns: Sequence[dict[str, object]],
    source: exp.Expr,
    engine: Engine,
    secrets: Secrets | None,
) -> exp.Table:
    return engine.make(
        "tables/verify/group_source",
        f"{plan.name}_verify_source",
        source=source,
        columns=list(columns),
        others=[*kept_of(plan, released=False), *exact_of(plan, secrets, released=False)],
    )


def _all_labelled(
    plan: TablePlan, hierarchies: Sequence[Hierarchy], node: Node, engine: Engine
) -> list[dict[str, object]]:
    levels = enumerate(zip(plan.qis, hierarchies, node, strict=True))
    return [_labelled(plan, i, q, h, level, engine) for i, (q, h, level) in levels]


def _labelled(
    plan: TablePlan, index: int, qi: QuasiIdentifier, hierarchy: Hierarchy, level: int, engine: Engine
) -> dict[str, object]:
    table, null_label = None, None
    if level > 0 or not qi.typed:
        of_value = np.asarray(qi.labels(hierarchy, level), dtype=object)[hierarchy.groups[level][hierarchy.leaf]]
        shown = pa.array(of_value.tolist(), type=pa.string())
        there = hierarchy.values.is_valid()
        rows = pa.table({"value": hierarchy.values, "label": shown}).filter(there)
        table = engine.put(f"{plan.name}_verify_labels_{index}", rows)
        absent = np.flatnonzero(~there.to_numpy(zero_copy_only=False))
        null_label = of_value[absent[0]] if len(absent) else None
    return {
        "name": identifier(f"q{index}"),
        "column": qi.column,
        "alias": identifier(f"m{index}"),
        "labels": table,
        "type": qi.travel_type,
        "null_label": literal(null_label),
        "text": plan.text,
    }


def recheck(
    plan: TablePlan,
    note: dict[str, object],
    written: exp.Expr,
    engine: Engine,
    key: Key | None = None,
    held: exp.Table | None = None,
) -> Verified:
    """Verify a published release against the source as it is now.

    Parameters
    ----------
    note
        What is kept on the release: its node, hierarchies and criteria.
    key
        Of its pseudonyms, which are then computed again. Without it their shape and number are checked; of shifted
        dates, whose shifts nobody keeps, the intervals are.
    held
        The persons whom the ledger does not know as released, those of suppressed rows among them.

    Raises
    ------
    VerificationError
        If the release is not what job, note and source say.
    """
    node = _noted_node(plan, note)
    if note.get("choose", "by-all") != chosen_by(plan):
        raise VerificationError.at(
            f"{plan.key}.search.choose", "the node of the release was chosen otherwise than the job says now"
        )
    plan = _with_noted_m(plan, note)
    k = _noted_k(plan, note)
    if note.get("sample") != (None if plan.sample is None else float(plan.sample)):
        raise VerificationError.at(f"{plan.key}.sample", "the release is of another share of persons than the job says")
    if note.get("aggregated", {}) != {c.name: c.noted for c in plan.aggregated}:
        raise VerificationError.at(
            plan.key, "the release was made with other statistics of classes than the job states"
        )
    source = keep(plan, engine)
    count_persons(plan, engine, source)
    hierarchies = [bind(plan, i, engine, source).hierarchy for i in range(len(plan.qis))]
    secrets = noted_secrets(plan, note, key)
    if secrets is not None:
        source = disguise(plan, engine, source, secrets)
    try:
        found = verify(Claimed(plan, node, k, hierarchies, source), written, engine, secrets, held, absent=True)
    except VerificationError as error:
        keyed = secrets is not None or plan.sample is not None
        other = "; or the key is another than the one it was made with" if keyed else ""
        raise VerificationError(f"{error.message}{other}", key=error.key) from None
    _refuse_beyond_limit(plan, found)
    return found


def _refuse_beyond_limit(plan: TablePlan, found: Verified) -> None:
    """Refuse a release of which more is suppressed than the job allows by now: it was made by another limit.

    Of a secret sample nobody knows how much is.
    """
    if found.sampled or found.suppressed <= allowed_of(plan, found.rows):
        return
    limits = plan.demands.suppression_limit + (plan.demands.criteria_limit or 0.0)
    both = "suppression_limit" if plan.demands.criteria_limit is None else "suppression_limit and criteria_limit"
    raise VerificationError.at(
        f"{plan.key}.privacy.suppression_limit",
        f"{100 * found.suppressed / found.rows:.2f} % of the rows are suppressed, and {both} of the job allow "
        f"{100 * limits:g} %; make the release anew, or give the job that it was made with",
    )


def labelled_as(plan: TablePlan, note: dict[str, object], engine: Engine) -> list[dict[str, object]]:
    """The quasi-identifying columns at the levels that are noted on a release, as parameters of `group_source`.

    Raises
    ------
    VerificationError
        If the note is not of this plan.
    """
    node, source = _noted_node(plan, note), keep(plan, engine)
    hierarchies = [bind(plan, i, engine, source).hierarchy for i in range(len(plan.qis))]
    return _all_labelled(plan, hierarchies, node, engine)


def _noted_node(plan: TablePlan, note: dict[str, object]) -> Node:
    levels, names = note.get("node"), note.get("hierarchies")
    wanted = {q.name: q.hierarchy_name for q in plan.qis}
    if not isinstance(levels, dict) or names != wanted or set(levels) != set(wanted):
        raise VerificationError.at(
            plan.key, "the release was made with other quasi-identifying columns or hierarchies than the job names"
        )
    node = tuple(levels[q.name] for q in plan.qis)
    if not all(isinstance(x, int) and 0 <= x < h for x, h in zip(node, plan.lattice.heights, strict=True)):
        raise VerificationError.at(plan.key, "the levels noted on the release are not in the lattice")
    return node


def noted_criteria(plan: TablePlan, k: int) -> dict[str, object]:
    """The criteria as they are noted on a release: those of the job, but never an order, for it lists data values.

    How much may be suppressed is nobody's but the holder's, and not noted.
    """
    unit = {"rows": "many"} if plan.many else {}
    asked = {name: value for name, value in plan.demands.noted(but=("order",)).items() if value}
    return {"k": k, **unit, "suppression": plan.demands.suppression, **asked}


def _with_noted_m(plan: TablePlan, note: dict[str, object]) -> TablePlan:
    """The plan with the m that `inverse-ola` found: at most the job's."""
    asked, criteria = plan.concealing, note.get("criteria")
    if asked is None or plan.search.method != "inverse-ola" or not isinstance(criteria, dict):
        return plan
    noted = criteria.get("m_concealing")
    m = noted.get("m") if isinstance(noted, dict) else None
    return plan.with_m(m) if isinstance(m, float) and 0 < m <= asked.asked else plan


def _noted_k(plan: TablePlan, note: dict[str, object]) -> int:
    criteria = note.get("criteria")
    k = criteria.get("k") if isinstance(criteria, dict) else None
    if not isinstance(k, int) or k < plan.demands.k or criteria != noted_criteria(plan, k):
        raise VerificationError.at(plan.key, "the release was made with other privacy criteria than the job states")
    return k
