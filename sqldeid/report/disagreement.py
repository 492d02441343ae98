"""What a report tells of measured disagreement: figures 5.4 and 6.4 to 6.6 of Mazzone (2020), with their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqldeid.report.sections import Chart, Grid, Section, grid, people, told
from sqldeid.result import Tree

SIDES = {"before": "originals", "after": "release"}
INCLUDED = "share of the length's series that are included, nearest by features first (%)"
WORDS = (
    "Somebody who knows a person's features takes the nearest series for that person's. Disagreement is how far the "
    "series taken are from the person's own on average (per value): at the left the single nearest, at the right all "
    "of the length. Zero means that the person is found."
)


def disagreement_sections(disagreement: object, prefix: str) -> list[Section]:
    """Sections of a result's `disagreement`; none where a job did not ask for it."""
    if not isinstance(disagreement, Mapping) or not disagreement.get("by_length"):
        return []
    found = [Section("How far off is the best guess?", words=(WORDS,), grids=(_numbers(disagreement),))]
    curves = disagreement.get("curves")
    return found + (_drawn(curves, prefix) if curves else [])


def _numbers(disagreement: Tree) -> Grid:
    names = ("first_mean", "first_median", "delta_auc_mean", "delta_auc_least")
    rows = [
        (
            told(row["length"]),
            people(row["persons"]),
            *(_pair(row, name) for name in names),
        )
        for row in disagreement["by_length"]
    ]
    warping = "dynamic time warping" if disagreement["distance"] == "dtw" else "Euclidean"
    headings = ("Length", "People", "First, mean", "First, median", "Area under the curve, mean", "Least")
    return grid(f"Disagreement ({warping}), originals → release", headings, rows, (1, 2, 3, 4, 5))


def _pair(row: Tree, name: str) -> str:
    """Before and after."""
    shown = [told(float(row[side][name])) if name in row[side] else "–" for side in SIDES]
    return " → ".join(shown)


def _drawn(curves: Tree, prefix: str) -> list[Section]:
    """The four figures of the largest length."""
    at = [100 * share for share in curves["inclusion"]]
    length, both = told(curves["length"]), {SIDES[side]: curves[side] for side in SIDES}
    mean, least = (
        _chart({n: c["plain"][of] for n, c in both.items()}, at, f"{prefix}-{of}", up=f"{of} disagreement")
        for of in ("mean", "least")
    )
    spread = {of: curves["after"]["normalised"][of] for of in ("greatest", "mean", "least")}
    shown = _chart(spread, at, f"{prefix}-spread", up="disagreement / that of all included")
    first = _first({name: c["first"] for name, c in both.items()}, curves["shares"], f"{prefix}-first")
    titles = {
        f"Mean disagreement, {length} steps (figure 6.4)": mean,
        f"Least disagreement, {length} steps (figure 6.5)": least,
        f"Spread over people in the release, {length} steps (figure 5.4)": shown,
        f"First disagreement, {length} steps (figure 6.6)": first,
    }
    return [Section(title, chart=chart) for title, chart in titles.items()]


def _chart(curves: Mapping[str, Sequence[float | None]], at: Sequence[float], name: str, *, up: str) -> Chart:
    from sqldeid.report.interactive import embed, line, lines

    drawn = [
        line(label, at, values, [(label, f"{x:.3g} %", told(y)) for x, y in zip(at, values, strict=True)])
        for label, values in curves.items()
    ]
    figure = lines(drawn, across=INCLUDED, up=up, log_x=True)
    return Chart(embed(figure, name), "The numbers by length stand above.")


def _first(first: Mapping[str, Sequence[float]], shares: Sequence[float], name: str) -> Chart:
    from sqldeid.report.interactive import embed, line, lines

    drawn = [
        line(label, values, [100 * s for s in shares[: len(values)]], [(label, told(v)) for v in values])
        for label, values in first.items()
    ]
    figure = lines(drawn, across="first disagreement", up="people whose first disagreement is not above it (%)")
    return Chart(embed(figure, name), "The numbers by length stand above.")
