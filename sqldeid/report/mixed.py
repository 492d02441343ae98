"""What a report tells of a table release by local recoding: shares of rows by level instead of one level a column.

Shares are whole per cents, and levels with fewer rows than `FEW` are not told exactly: who is alone at a level should
not stand out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from sqldeid.report.attacked import attack_sections
from sqldeid.report.codebook import coded_sections, how, limit_told
from sqldeid.report.risks import risks, size_bins, sizes_chart
from sqldeid.report.sections import Chart, Grid, Section, grid, percent, told
from sqldeid.report.text import number, share
from sqldeid.report.words import FEW, LOSS_NAMES, in_short, not_protected
from sqldeid.result import Tree
from sqldeid.traded import LocalPoint, Tradeoff, TradePoint

HIDDEN = "hidden"
"""What the last level of a column is called: all of it is one label."""

LAYERS_SHOWN = 12
"""Layers in the report's table, those with most rows."""

READ = (
    "One column holds labels of several levels: one person's age may be shown as 36, another's as 30-39. A label is "
    "true of every row that shows it, but rows with a finer label are not all of their kind: some of those shown as "
    "30-39 may be 36. So do not count rows by equal labels; bring a column to one common level first, and take rows "
    'whose label is coarser as missing ("cannot say").'
)
"""How such a release is read, for the report and for whoever receives it."""


def mixed_sections(release: Tree, prefix: str) -> list[Section]:
    """The sections of one release for the data holder."""
    source, left = release["risk"]["source"], release["risk"]["release"]
    unit = str(release.get("unit", "person"))
    return [
        Section("In short", answers=tuple(_short(release))),
        Section(
            "What protects the people in it?", words=(_limits(release), *_open(release)), grids=(_criteria(release),)
        ),
        Section(
            "How risky was the source, how risky is the release?",
            chart=Chart(
                sizes_chart(release, f"{prefix}-sizes"),
                "Rows by the size of their class, before and after; sizes that hold fewer than 11 rows are told "
                "together, in source and release apart. A dash: these sizes are told in another line.",
            ),
            grids=(
                grid("Risks", ("Attacker", "Who", "Source", "Release"), risks(source, left, unit), (2, 3)),
                grid("Rows by class size", ("Rows in the class", "Source", "Release"), size_bins(release), (1, 2)),
            ),
        ),
        _lost(release, prefix),
        Section("How is it read?", words=(READ, _layered(release)), grids=_layers(release)),
        *attack_sections(release),
        _traded(release, prefix),
    ]


def public_mixed(release: Tree) -> list[Section]:
    """What may be published: criteria, columns and limits, and how the release is read."""
    words = (f"{_status(release)}{_limits(release)}", *filter(None, (limit_told(release),)))
    rows = [(name, str(c.get("role", "")), _shown(c)) for name, c in release["columns"].items()]
    return [
        Section("What protects the people in it?", words=words, grids=(_criteria(release, public=True),)),
        Section("Columns", grids=(grid("Columns", ("Column", "Role", "Levels, the finest first"), rows),)),
        *coded_sections(release["columns"]),
        Section("How is it read?", words=(READ, _layered(release, public=True))),
    ]


def _shown(column: Tree) -> str:
    """The levels that a column's labels may be of, or what became of its values."""
    if column.get("role") in ("identifying", "free-text") and not column.get("shown"):
        return "not released"
    named = column.get("level_names")
    if not named:
        return str(column.get("shown") or "as in the source")
    hidden = f"{HIDDEN} (“{column['top']}” for every value)" if column.get("top") else HIDDEN
    return ", ".join([*dict.fromkeys(_named(column, str(name), i) for i, name in enumerate(named[:-1])), hidden])


def _named(column: Tree, name: str, level: int) -> str:
    """A level by its name, where it has one; a number is the width of bands."""
    return how({**column, "level_name": name}) if level else name


def _short(release: Tree) -> Iterator[str]:
    rows, left = int(release["rows"]), release["risk"]["release"]
    yield from in_short(release["k"], left["prosecutor"], str(release.get("unit", "person")))
    lowest = "" if release["search"].get("stopped") else ", each at the lowest levels that its neighbours allow"
    yield (
        f"{told(release['released'])} of {told(rows)} rows ({share(release['released'], rows)}) are in it, in "
        f"{told(release['classes'])} classes{lowest}."
    )
    if release.get("ledger"):
        yield f"{told(int(release['ledger']['held_back']))} rows are held back for a later load, by the ledger."
    yield _bounded(release)


def _bounded(release: Tree) -> str:
    """Loss, bound and gap in plain words."""
    name = str(release["search"]["loss"])
    loss, bound, gap = float(release["loss"][name]), float(release["bound"]), float(release["gap"])
    of = "the information" if name == "loss" else f"the {LOSS_NAMES.get(name, name)} that there can be"
    least = f"No release of this kind can lose less than {percent(bound)}: that is proven"
    words = f"{percent(loss)} of {of} is lost. {least}"
    if gap <= 0:
        return f"{words}, so nothing could be better."
    time = "; the time was over before classes were as good as they get" if release["search"].get("stopped") else ""
    return f"{words}. So at most {percent(gap)} is lost for want of a better way{time}."


def _lost(release: Tree, prefix: str) -> Section:
    mixed = {name: c for name, c in release["columns"].items() if c.get("levels")}
    return Section(
        "What was lost?",
        words=(
            _bounded(release),
            "Each row has levels of its own. The chart shows for each column which share of the released rows is at "
            "which level: as in the source, coarser, or hidden.",
        ),
        chart=Chart(
            _levels_chart(mixed, int(release["released"]), f"{prefix}-levels"),
            "Released rows by the level at which a column is shown; the table has the same numbers.",
        ),
        grids=(_levels(mixed, int(release["released"])),),
    )


def _levels_chart(columns: Mapping[str, Tree], rows: int, name: str) -> Markup:
    """One bar a column, its parts the levels; the last one, which tells nothing, is the same for all columns."""
    from sqldeid.report.interactive import bars, embed

    most = max((len(c["levels"]) for c in columns.values()), default=0)
    parts = []
    for title, at in [(_level_name(x), x) for x in range(most - 1)] + [(HIDDEN, -1)]:
        shares = [_part(c["levels"], at) for c in columns.values()]
        parts.append((title, [float(round(100 * s)) if round(s * rows) >= FEW else 0.0 for s in shares]))
    shown = [(title, shares) for title, shares in parts if any(shares)]
    figure = bars(list(columns), shown, across="column", up="released rows (%)", lying=True, stacked=True)
    return embed(figure, name)


def _part(levels: Sequence[float], at: int) -> float:
    """Share of rows at a level below the top, or at the top (-1)."""
    if at < 0:
        return levels[-1]
    return levels[at] if at < len(levels) - 1 else 0.0


def _level_name(level: int) -> str:
    return "as in the source" if level == 0 else f"level {level}"


def _levels(columns: Mapping[str, Tree], rows: int) -> Grid:
    found = []
    for name, c in columns.items():
        names = c.get("level_names") or [""] * len(c["levels"])
        for level, (part, called) in enumerate(zip(c["levels"], names, strict=True)):
            top = level == len(c["levels"]) - 1
            found.append((name, f"{level}", HIDDEN if top else called or _level_name(level), _rough(part, rows)))
    return grid("Released rows by level", ("Column", "Level", "Called", "Rows"), found, (1, 3))


def _rough(part: float, rows: int) -> str:
    """A share as a whole per cent; a small group is not told exactly."""
    counted = round(part * rows)
    if not counted:
        return "none"
    if counted < FEW:
        return f"fewer than {FEW} rows"
    if part < 0.005:
        return "less than 1 %"
    return "more than 99 %" if 0.995 <= part < 1 else f"{100 * part:.0f} %"


def _layered(release: Tree, *, public: bool = False) -> str:
    """How many layers there are, and how a reader learns each row's; the data holder, how to let readers know."""
    number = len(release["layers"])
    words = f"The rows are of {told(number)} layer{'s' * (number != 1)}, each with one level for every column."
    if release.get("recoding"):
        words += " The column recoding tells the number of each row's layer."
    else:
        words += " No column tells which row is of which layer"
        words += "." if public else "; with recoding = true in the job one does."
    if (table := release.get("hierarchies")) is None:
        if public:
            return f"{words} What each label says at coarser levels the data holder can tell."
        return f"{words} With hierarchies = true in the job a table tells what each label says at each level."
    return (
        f"{words} The table {table} tells what each label says at each level that is no finer: join it on column_name, "
        "label and level (IS NOT DISTINCT FROM for missing labels), and take a row without a match as missing."
    )


def _layers(release: Tree) -> tuple[Grid, ...]:
    """The largest layers, with the columns that they change."""
    counted = sorted((r for r in release["layers"] if r.get("rows")), key=lambda r: (-r["rows"], r["number"]))
    rows = [
        (f"{r['number']}", f"{r['rows']:,}" if r["rows"] >= FEW else f"fewer than {FEW}", _node(r["node"]))
        for r in counted[:LAYERS_SHOWN]
    ]
    return (grid("The largest layers", ("Layer", "Rows", "Levels above 0"), rows, (1,)),) if rows else ()


def _node(node: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in node.items() if level) or "none: as in the source"


def _traded(release: Tree, prefix: str) -> Section:
    """What other k and limits cost, by one node for all rows and by local recoding."""
    from sqldeid.report.interactive import embed
    from sqldeid.report.tradeoff import tradeoff_figure, tradeoff_of

    title = "How would it change with k and the limit?"
    if not release.get("tradeoff"):
        words = "Not recorded in this result. A run with --report records it; sqldeid tradeoff computes it alone."
        return Section(title, words=(words,))
    traded = tradeoff_of(release["tradeoff"])
    return Section(
        title,
        words=(
            "k is the size of the smallest class, the limit the share of rows that may be left out. Each pair is "
            "answered twice: by one node for all rows, and by local recoding, for which it is told what must be lost "
            "at least. ≤ marks what was found in the time given: less may be possible.",
            *traded.warnings,
        ),
        chart=Chart(
            embed(tradeoff_figure(traded), f"{prefix}-tradeoff"),
            "What is lost by suppression limit, a line for each k: whole for one node for all rows, dotted for local "
            "recoding. The table has the numbers, and what must be lost.",
        ),
        grids=(_pairs(release, traded),),
    )


def _pairs(release: Tree, traded: Tradeoff) -> Grid:
    """Each pair with what both families lose; the pair of the release is marked where it was not held to a ledger."""
    asked = next((c["asked"] for c in release["criteria"] if c["name"] == "k-anonymity"), None)
    own = None if release.get("ledger") else (asked, release.get("suppression_limit"))
    headings = ("k", "Limit", "One node for all rows", "Left out", "Local recoding", "Left out", "At least")
    mark = "this release, by k alone" if release["search"].get("choose") == "by-k" else "this release"
    local = {(p.k, p.suppression_limit): p for p in traded.local}
    rows = []
    for p in traded.points:
        pair = (p.k, p.suppression_limit)
        q = local.get(pair)
        rows.append(
            (
                f"{p.k:,}{f' ({mark})' if pair == own else ''}",
                f"{100 * p.suppression_limit:g} %",
                *_cost(p, traded.rows, proven=p.optimal),
                *_cost(q, traded.rows, proven=q is None or not q.stopped),
                "–" if q is None or q.bound is None else number(q.bound),
            )
        )
    return grid("What is lost by k and limit", headings, rows, range(1, len(headings)))


def _cost(point: TradePoint | LocalPoint | None, rows: int, *, proven: bool) -> tuple[str, str]:
    """What is lost, and how many rows are left out."""
    if point is None or point.loss is None:
        return "none", "–"
    return f"{'' if proven else '≤ '}{number(point.loss)}", share(point.suppressed or 0, rows)


def _criteria(release: Tree, *, public: bool = False) -> Grid:
    achieved = () if public else ("Achieved",)
    headings = ("Criterion", "Asked", *achieved, "What it promises", "What it does not protect")
    rows = [
        (
            f"{c['name']} of {c['column']}" if c.get("column") else str(c["name"]),
            told(c["asked"]),
            *(() if public else (told(c["achieved"]),)),
            str(c["guarantee"]),
            not_protected(str(c["name"])),
        )
        for c in release.get("criteria", ())
    ]
    return grid("Criteria", headings, rows, (1,) if public else (1, 2))


def _open(release: Tree) -> Iterator[str]:
    """Sensitive columns against whose disclosure no criterion was asked for."""
    guarded = {c.get("column") for c in release["criteria"]}
    named = [n for n, c in release["columns"].items() if c["role"] == "sensitive" and n not in guarded]
    if named:
        yield (
            f"No criterion guards {', '.join(named)}: where all rows of a class share a value, whoever finds the class "
            "learns it."
        )


def _limits(release: Tree) -> str:
    words = str(release["limits"])
    return f"{words[:1].upper()}{words[1:]}."


def _status(release: Tree) -> str:
    return "Pseudonymised, not anonymous. " if release.get("pseudonymised") else ""
