"""Static charts: a few kinds, one look; colours that the colour-blind tell apart (Okabe & Ito 2008), and never alone.

Matplotlib is the extra `report`; it is imported when a chart is drawn. A chart is a figure; `render` makes bytes of it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqldeid.errors import JobError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Blue, vermilion, green, purple, orange, sky blue, black; of the palette without yellow, which white swallows."""
MARKERS = "osD^vP*"
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
FORMATS = ("png", "svg")


@dataclass(frozen=True, slots=True)
class Bar:
    """One horizontal bar of parts that lie end to end; each a share, 0 … 1."""

    label: str
    parts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A series of points; `joined` by a line, or left as points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes. Units stand in the labels of the axes.

    Parameters
    ----------
    ticks
        Where the x axis is marked; empty leaves it to the chart.
    even
        Whether the ticks stand evenly apart, whatever lies between them.
    level
        A dotted line across, with its name.
    """

    title: str
    xlabel: str
    ylabel: str
    lines: tuple[Line, ...]
    log_y: bool = False
    ticks: tuple[float, ...] = ()
    even: bool = False
    level: tuple[str, float] | None = None


def format_of(target: str, option: str) -> str:
    """The format that a file's name asks for.

    Raises
    ------
    JobError
        If it is none that can be drawn.
    """
    ending = target.rpartition(".")[2].lower() if "." in target else ""
    if ending not in FORMATS:
        raise JobError.at(option, "name a file that ends in .png or .svg")
    return ending


def require(option: str) -> None:
    """Raise JobError where Matplotlib is not installed; before anything is computed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise JobError.at(option, "charts need Matplotlib: pip install 'sqldeid[report]'") from None


WHOLE_SCALE = 60.0
"""Per cent from which bars stand on a scale to 100; below it the scale ends where they do, or most of it is empty."""

LEAST_SCALE = 0.1
"""Per cent that a scale reaches at least."""


def bars(rows: Sequence[Bar], parts: Sequence[str], *, title: str, xlabel: str) -> Figure:
    """Horizontal stacked bars of shares, the first row on top.

    Parameters
    ----------
    parts
        Names of the bars' parts; one name draws no legend.
    """
    figure, (axes,) = _figure(1, width=8, height=1.6 + 0.32 * max(len(rows), 1))
    colours = ("#D55E00", "#E69F00", "#56B4E9", "#999999")
    hatches = ("", "///", "...", "xx")
    left = [0.0] * len(rows)
    for number, name in enumerate(parts):
        widths = [100 * row.parts[number] for row in rows]
        axes.barh(
            range(len(rows)),
            widths,
            left=left,
            label=name,
            color=colours[number],
            hatch=hatches[number],
            edgecolor="white",
            linewidth=0.5,
        )
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(rows)), [_short(row.label) for row in rows])
    axes.invert_yaxis()
    most = max(left, default=0.0)
    axes.set_xlim(0, 100 if most > WHOLE_SCALE else max(1.15 * most, LEAST_SCALE))
    for row, total in enumerate(left):
        axes.annotate(f"{total:.3g} %", (total, row), xytext=(4, 0), textcoords="offset points", va="center", size=8)
    axes.set_xlabel(xlabel)
    axes.set_title(title, loc="left")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(parts) > 1:
        figure.legend(loc="outside lower center", ncols=len(parts), frameon=False)
    return figure


def panels(shown: Sequence[Panel], *, columns: int = 0) -> Figure:
    """Small multiples of lines or points with one legend; a name keeps its colour, marker and dash in all of them.

    Parameters
    ----------
    columns
        Panels in a row; 0 is all.
    """
    columns = columns or len(shown)
    rows = -(-len(shown) // columns)
    figure, all_axes = _figure(len(shown), width=4.2 * columns, height=3.6 * rows + 0.4, columns=columns)
    names = list(dict.fromkeys(line.name for panel in shown for line in panel.lines))
    for axes, panel in zip(all_axes, shown, strict=True):
        _draw(axes, panel, names)
    handles = {}
    for axes in all_axes:
        found, labels = axes.get_legend_handles_labels()
        handles.update(dict(zip(labels, found, strict=True)))
    if len(handles) > 1:
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=min(len(handles), 6), frameon=False
        )
    return figure


def _draw(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    place = {x: i for i, x in enumerate(panel.ticks)} if panel.even else {}
    for line in panel.lines:
        number = names.index(line.name) % len(COLOURS)
        axes.plot(
            [place.get(x, x) for x in line.x],
            line.y,
            label=line.name,
            color=COLOURS[number],
            marker=MARKERS[number],
            markersize=5,
            linewidth=1.6,
            linestyle=STYLES[number] if line.joined else "none",
            alpha=1 if line.joined else 0.8,
        )
    if panel.level is not None:
        axes.axhline(panel.level[1], color="black", linestyle=":", linewidth=1.2, label=panel.level[0])
    if panel.ticks:
        axes.set_xticks([place.get(x, x) for x in panel.ticks], [f"{x:g}" for x in panel.ticks])
    if panel.log_y:
        _powers(axes)
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(panel.xlabel)
    axes.set_ylabel(panel.ylabel)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _powers(axes: Axes) -> None:
    """A logarithmic axis, its numbers as plain text: `render` reads no text as mathematics, these neither."""
    from matplotlib.ticker import LogFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(LogFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter())


def _figure(count: int, *, width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure by itself: no global state, no window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    rows = -(-count // columns)
    axes = [figure.add_subplot(rows, columns, number + 1) for number in range(count)]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _short(label: str, most: int = 48) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def render(figure: Figure, kind: str, *, dots_per_inch: int = 130) -> bytes:
    """The chart as a file's bytes: the same for the same chart, without a date.

    Parameters
    ----------
    kind
        ``png`` or ``svg``.
    """
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a column may be called $x$
    into = io.BytesIO()
    metadata = {"Software": "sqldeid"} if kind == "png" else {"Date": None, "Creator": "sqldeid"}
    with matplotlib.rc_context({"svg.hashsalt": "sqldeid", "text.parse_math": False}):
        figure.savefig(into, format=kind, dpi=dots_per_inch, metadata=metadata)
    return into.getvalue()
