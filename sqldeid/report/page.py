"""A run's report as one HTML file, made from its result alone: what a committee asks, in its order.

The input is the result as `--json` writes it, so that a report can be made again later. Nothing of the source is read.
What is shown of the source is binned or pooled: no class smaller than k, no suppressed combination, no person key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from sqldeid.errors import UnknownKindError
from sqldeid.report.attacked import attack_sections
from sqldeid.report.child import child_sections, public_child
from sqldeid.report.codebook import UNTOLD, blanked, codebook, coded, limit_told
from sqldeid.report.events import events_sections, public_events
from sqldeid.report.html import render
from sqldeid.report.keyfigures import Entry, key_figures
from sqldeid.report.mixed import mixed_sections, public_mixed
from sqldeid.report.parted import parted_sections, public_parted
from sqldeid.report.risks import asked_k, risks, size_bins, sizes_chart
from sqldeid.report.series import public_series, series_sections
from sqldeid.report.shape import kind_of, releases_of
from sqldeid.report.words import AXES, LOSSES, few, lost, not_protected, odds
from sqldeid.result import CHOICES, Tree

HEAD = "For the data holder only. Counts of suppressed people and of the source are statistics about people."
AS_THEY_ARE = ("sensitive", "insensitive")
"""Roles of columns that are released as they stand."""

DRAWN = 20
"""Values in the chart of suppression."""

TABLE_PARTS = (
    ("short", "In short"),
    ("protects", "What protects the people in it?"),
    ("risk", "How risky was the source, how risky is the release?"),
    ("lost", "What was lost?"),
    ("hit", "Whom does suppression hit?"),
    ("why", "Why this one?"),
    ("tradeoff", "How would it change with k and the limit?"),
)
"""The sections of a table release, as `table_parts.html.jinja` has them."""

PUBLIC = "This page may accompany the release. It holds no count of people and nothing about those who were left out."


def report_page(result: Tree) -> str:
    """The report of a run, for the data holder.

    Parameters
    ----------
    result
        `Result.to_dict()`, or what `--json` wrote.

    Raises
    ------
    JobError
        If this is no result, a part of it is not what must stand there (the place is named), or the extra `report` is
        not installed.
    """
    from sqldeid.report.interactive import library

    shown = releases_of(result, public=False)
    about_job = len(result.get("warnings") or ())
    releases = [_view(name, release, i, about_job) for i, (name, release) in enumerate(shown.items())]
    entries = [
        Entry("key", "Key figures"),
        Entry("what", "What was released, and from what?"),
        *(Entry(f"release-{i}", view["name"], _parts(view, f"release-{i}")) for i, view in enumerate(releases, 1)),
    ]
    content = {"result": result, "head": HEAD, "releases": releases, "entries": entries, "library": library()}
    return render("report.html.jinja", **content)


def public_page(result: Tree) -> str:
    """The page that may go with the releases; columns, levels and promises alone.

    Parameters
    ----------
    result
        As for `report_page`, or `Result.to_public()`.
    """
    releases = {name: _public(release) for name, release in releases_of(result, public=True).items()}
    entries = [
        Entry(f"release-{i}", name, _public_parts(r, f"release-{i}")) for i, (name, r) in enumerate(releases.items(), 1)
    ]
    return render("public.html.jinja", result=result, head=PUBLIC, releases=releases, entries=entries)


def _public_parts(release: Tree, at: str) -> tuple[Entry, ...]:
    """The sections of a release on the public page, for the contents."""
    if "sections" in release:
        return tuple(Entry(f"{at}-{i}", section.title) for i, section in enumerate(release["sections"], 1))
    parts = [("criteria", "protects", "What protects the people in it?"), ("codebook", "columns", "Columns")]
    parts.append(("coded", "codes", "What do the values stand for?"))
    return tuple(Entry(f"{at}-{part}", title) for key, part, title in parts if release.get(key))


def _parts(view: Mapping[str, Any], at: str) -> tuple[Entry, ...]:
    """The sections of a release, for the contents."""
    if view["kind"] == "table" and "sections" not in view:
        attacked = [(f"attacks-{i}", s.title) for i, s in enumerate(view["attacked"], 1)]
        return tuple(Entry(f"{at}-{part}", title) for part, title in (*TABLE_PARTS, *attacked))
    return tuple(Entry(f"{at}-{i}", section.title) for i, section in enumerate(view["sections"], 1))


def _public(release: Tree) -> dict[str, Any]:
    """What may be told of a release, whatever else is there."""
    sections = {"series": public_series, "events": public_events}
    sections |= {"mondrian": public_parted, "local": public_mixed, "child": public_child}
    if (kind := kind_of(release)) in sections:
        return {"kind": release["kind"], "sections": sections[kind](release)}
    if kind != "table":
        raise UnknownKindError(kind, "kind of release")
    kept = {"kind", "node", "pseudonymised"}
    found = {name: value for name, value in release.items() if name in kept}
    found["linked"] = _linked(release)
    followed = release.get("followed")
    found["followed"] = followed["series"] if isinstance(followed, Mapping) else followed
    found["columns"] = {
        name: {k: v for k, v in column.items() if k not in ("loss", "example")}
        for name, column in release.get("columns", {}).items()
    }
    found["codebook"], found["coded"] = codebook(found["columns"], blanks=blanked(release)), coded(found["columns"])
    found["untold"] = UNTOLD if any(not stands for c in found["coded"] for _, stands in c["codes"]) else ""
    found["limit"] = limit_told(release)
    found["criteria"] = [
        {"name": c["name"], "column": c.get("column"), "asked": c["asked"], "guarantee": c["guarantee"]}
        | {"not_protected": not_protected(c["name"])}
        for c in release.get("criteria", ())
    ]
    found["choice"] = _choice(release)
    found["guarantee"] = {"text": text} if (text := _words(release.get("guarantee"))) else None
    return found


def _linked(release: Tree) -> list[str]:
    """The releases that one can be joined with; of a result for the data holder, or of what may be published."""
    linked = release.get("linked") or ()
    return list(linked.get("with", ()) if isinstance(linked, Mapping) else linked)


def _choice(release: Tree) -> str:
    """What the choice of the node tells; of a result for the data holder, or of what may be published."""
    if "search" not in release:
        return str(release.get("choice", ""))
    return CHOICES[release["search"].get("choose", "by-all")] if len(release["criteria"]) > 1 else ""


def _words(guarantee: object) -> str:
    """A guarantee's sentence, where it has one."""
    return str(guarantee.get("text", "")) if isinstance(guarantee, Mapping) else ""


def _view(name: str, release: Tree, number: int, about_job: int) -> dict[str, Any]:
    """What the templates show of one release."""
    prefix, shown = f"r{number}", {"name": name, "release": release, "key": key_figures(release, about_job)}
    match kind_of(release):
        case "table":
            return {**shown, "kind": "table", **_table(release, prefix)}
        case "mondrian":
            return {**shown, "kind": "table by Mondrian", "sections": parted_sections(release)}
        case "local":
            return {**shown, "kind": "table by local recoding", "sections": mixed_sections(release, prefix)}
        case "child":
            return {**shown, "kind": "child table", "sections": child_sections(release)}
        case "series":
            return {**shown, "kind": "series", "sections": series_sections(release, prefix)}
        case "events":
            return {**shown, "kind": "events", "sections": events_sections(release, prefix)}
        case unknown:
            raise UnknownKindError(unknown, "kind of release")


def _table(release: Tree, prefix: str) -> dict[str, Any]:
    source, left = release["risk"]["source"], release["risk"]["release"]
    gone, coarse = lost(release["columns"])
    hit = _hit(release)
    hardest = _hardest(hit)
    return {
        "taken": _taken(release),
        "criteria": [{**c, "not_protected": not_protected(c["name"])} for c in release["criteria"]],
        "k": asked_k(release),
        "linked": _linked(release),
        "choice": _choice(release),
        "worst": odds(left["prosecutor"]),
        "worst_source": odds(source["prosecutor"]),
        "open": [n for n, c in release["columns"].items() if c["role"] in AS_THEY_ARE and not c.get("shown")],
        "unguarded": _unguarded(release),
        "risks": risks(source, left, str(release.get("unit", "person"))),
        "unit": release.get("unit", "person"),
        "persons": release.get("persons"),
        "bins": size_bins(release),
        "gone": gone,
        "coarse": coarse,
        "hit": hit,
        "worst_hit": hardest[:3],
        "more_hit": len(hardest) - 3,
        "losses": [(LOSSES[n], value) for n, value in release["loss"].items() if n in LOSSES],
        "axis": AXES.get(release["search"]["loss"], ""),
        "neighbours": release.get("neighbours", ()),
        "sets": [{**s, "alone": few(s["alone"]), "below_k": few(s["below_k"])} for s in release.get("uniqueness", ())],
        "charts": {**_charts(release, prefix), "hit": _hit_chart(release, hit, prefix)},
        "drawn": min(DRAWN, sum(len(h["values"]) for h in hit)),
        "traded": _traded(release),
        "attacked": attack_sections(release),
    }


def _taken(release: Tree) -> str:
    """What became of suppressed rows."""
    return "blanked" if blanked(release) else "left out"


def _hit(release: Tree) -> list[dict[str, Any]]:
    """Suppression by shown value, for columns in which it differs: the hardest hit first."""
    overall = release["suppressed"] / release["rows"] if release["rows"] else 0.0
    found = []
    for column, by_value in release["suppression_by"].items():
        ordered = sorted(by_value.items(), key=lambda item: -item[1])
        if len(ordered) > 1 and overall:
            hardest = [(value, share) for value, share in ordered if share > 2 * overall]
            found.append({"column": column, "values": ordered[:12], "more": len(ordered) - 12, "hardest": hardest})
    return sorted(found, key=lambda f: -f["values"][0][1])


def _hardest(hit: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The values that suppression hits more than twice as hard as all, worst first."""
    hardest = [{"column": h["column"], "value": v, "part": part} for h in hit for v, part in h["hardest"]]
    return sorted(hardest, key=lambda h: -h["part"])


def _unguarded(release: Tree) -> list[str]:
    """Sensitive columns against whose disclosure no criterion was asked for."""
    guarded = {c.get("column") for c in release["criteria"]}
    return [n for n, c in release["columns"].items() if c["role"] == "sensitive" and n not in guarded]


def _charts(release: Tree, prefix: str) -> dict[str, Markup]:
    from sqldeid.report.interactive import bars, embed

    columns = {n: c["loss"] for n, c in release["columns"].items() if c.get("loss") is not None}
    return {
        "sizes": sizes_chart(release, f"{prefix}-sizes"),
        "columns": embed(
            bars(
                list(columns),
                [("lost", [100 * loss for loss in columns.values()])],
                across="column",
                up="information lost (%)",
                lying=True,
            ),
            f"{prefix}-columns",
        ),
    }


def _hit_chart(release: Tree, hit: list[dict[str, Any]], prefix: str) -> Markup | None:
    """The values that suppression hits hardest as bars, with a line at the share of all rows; None where none are."""
    from sqldeid.report.interactive import bars, embed

    if not hit:
        return None
    found = [(f"{h['column']}: {value}", round(100 * part)) for h in hit for value, part in h["values"]]
    drawn = sorted(found, key=lambda one: -one[1])[:DRAWN]
    overall = 100 * release["suppressed"] / release["rows"]
    figure = bars(
        [name for name, _ in drawn],
        [(_taken(release), [float(part) for _, part in drawn])],
        across="value, as released",
        up=f"rows {_taken(release)} (%)",
        lying=True,
        mark=overall,
    )
    return embed(figure, f"{prefix}-hit")


def _traded(release: Tree) -> dict[str, Any] | None:
    from sqldeid.report.interactive import embed
    from sqldeid.report.tradeoff import chosen_of, tradeoff_figure, tradeoff_of

    if not release.get("tradeoff"):
        return None
    traded = tradeoff_of(release["tradeoff"])
    figure = tradeoff_figure(traded, release["columns"])
    chosen = chosen_of(traded, release["node"], asked_k(release), release.get("suppression_limit"))
    return {"traded": traded, "chosen": chosen, "chart": embed(figure, f"tradeoff-{traded.name.encode().hex()}")}
