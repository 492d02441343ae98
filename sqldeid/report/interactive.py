"""Interactive charts by plotly, inlined: colour-blind safe, readable in light and dark, axes with units.

Names reach a chart as text: plotly reads a little HTML in labels, so they are escaped here, the one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape, unescape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from markupsafe import Markup

from sqldeid.errors import JobError
from sqldeid.report.text import plain

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#777777")
"""Okabe and Ito 2008, without yellow and black, which vanish on one ground or the other."""

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
PATTERNS = ("", "/", ".", "\\", "x", "-", "|")
"""A line is told by more than its colour, and so are bars that lie end to end."""


MOST_TOLD = 20
"""Values of a line or a group of bars that its text alternative tells; the table beside a chart has all."""

PAPER_PX = 640
"""Width of a chart on paper: DIN A4 less its margins."""

_FIT_PAPER = f"""
const fit = (width) => document.querySelectorAll('.js-plotly-plot').forEach((chart) => Plotly.relayout(chart, width));
addEventListener('beforeprint', () => fit({{width: {PAPER_PX}, autosize: false}}));
addEventListener('afterprint', () => fit({{width: null, autosize: true}}));
"""
"""Charts are drawn for the window; paper is narrower."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart.

    Parameters
    ----------
    hover
        The lines of text that each point shows.
    look
        Numbers of its colour and of its dashes; None: those of its place among the lines.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    hover: Sequence[Sequence[str]]
    look: tuple[int, int] | None = None


def line(
    name: str,
    x: Sequence[float],
    y: Sequence[float | None],
    hover: Sequence[Sequence[str]],
    look: tuple[int, int] | None = None,
) -> Line:
    """One line of a chart."""
    return Line(name, x, y, hover, look)


def text(words: object) -> str:
    """A name or number as a chart may hold it."""
    return escape(plain(words))


def lines(series: Sequence[Line], *, across: str, up: str, legend: str = "", log_x: bool = False) -> go.Figure:
    """Lines with markers over one pair of axes.

    Parameters
    ----------
    across, up
        Titles of the axes, with their units.
    legend
        What the lines' names say.
    log_x
        Whether the axis across is logarithmic.
    """
    figure = _figure(across, up, legend)
    if log_x:
        figure.update_xaxes(type="log")
    for i, one in enumerate(series):
        colour, dash = one.look or (i, i)
        figure.add_scatter(
            x=list(one.x),
            y=list(one.y),
            name=text(one.name),
            mode="lines+markers",
            line={"color": COLOURS[colour % len(COLOURS)], "dash": DASHES[dash % len(DASHES)], "width": 2},
            marker={"symbol": SYMBOLS[colour % len(SYMBOLS)], "size": 9},
            hovertext=["<br>".join(text(part) for part in parts) for parts in one.hover],
            hoverinfo="text",
        )
    return figure


LEGEND_BELOW, BESIDE_BARS = -65, 110
"""Pixels: where the legend begins below the axis, and what a chart's height has besides the bars."""


def bars(
    names: Sequence[str],
    groups: Sequence[tuple[str, Sequence[float | None]]],
    *,
    across: str,
    up: str,
    lying: bool = False,
    mark: float | None = None,
    stacked: bool = False,
) -> go.Figure:
    """Bars side by side: one group of names, one colour for each series; no bar where a value is None.

    Parameters
    ----------
    lying
        Whether bars lie, names at the left: for many or long names.
    mark
        A value that a line is drawn at.
    stacked
        Whether the bars of a name lie end to end; then each series has a pattern, too.
    """
    figure = _figure(up if lying else across, across if lying else up, "")
    labels = [text(n) for n in names]
    for i, (name, values) in enumerate(groups):
        numbers = list(values)
        figure.add_bar(
            x=numbers if lying else labels,
            y=labels if lying else numbers,
            orientation="h" if lying else "v",
            name=text(name),
            marker={"color": COLOURS[i % len(COLOURS)], "pattern": {"shape": PATTERNS[i % len(PATTERNS)] * stacked}},
        )
    figure.update_layout(barmode="stack" if stacked else "group", showlegend=len(groups) > 1)
    if mark is not None:
        side = {"x": mark} if lying else {"y": mark}
        (figure.add_vline if lying else figure.add_hline)(
            **side, line={"color": COLOURS[1], "dash": "dash", "width": 2}
        )
    if lying:
        figure.update_xaxes(rangemode="tozero")
        figure.update_yaxes(type="category", autorange="reversed", title=None, tickfont={"size": 12})
        height = 160 + 16 * len(labels) * (2 if stacked else 1 + len(groups))
        figure.update_layout(height=height, legend={"y": LEGEND_BELOW / (height - BESIDE_BARS)})
    else:
        figure.update_xaxes(type="category")
    return figure


def _figure(across: str, up: str, legend: str) -> go.Figure:
    require()
    import plotly.graph_objects as go

    grid = {"gridcolor": "rgba(128,128,128,0.25)", "zerolinecolor": "rgba(128,128,128,0.5)", "automargin": True}
    return go.Figure(
        layout={
            "xaxis": {"title": {"text": text(across)}, **grid},
            "yaxis": {"title": {"text": text(up)}, "rangemode": "tozero", **grid},
            "legend": {
                "title": {"text": text(legend), "side": "top"},
                "orientation": "h",
                "yanchor": "top",
                "y": -0.22,
            },
            "font": {"family": "system-ui, sans-serif", "size": 14, "color": "#888888"},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 10, "r": 10, "t": 20, "b": 10},
            "hoverlabel": {"align": "left", "bgcolor": "#ffffff", "font": {"color": "#111111"}},
            "height": 420,
        }
    )


def embed(figure: go.Figure, name: str) -> Markup:
    """The chart as a part of a page, with its text alternative; the library itself is embedded once by `library`.

    Parameters
    ----------
    name
        Its id in the page: letters, digits and hyphens, no two alike.
    """
    html = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=name,
        config={"displaylogo": False, "responsive": True, "displayModeBar": False},
    )
    drawn = Markup(html)  # noqa: S704  # plotly's own output; what we gave it was escaped
    return Markup('<div class="chart" role="img" aria-label="{}">{}</div>').format(alternative(figure), drawn)


def alternative(figure: go.Figure) -> str:
    """What a chart shows, in words: its axes, and the values of each line or group of bars."""
    layout = figure.layout
    axes = [unescape(axis.title.text or "") for axis in (layout.yaxis, layout.xaxis)]
    of = " by ".join(axis for axis in axes if axis)
    kind = "Bar chart" if figure.data and figure.data[0].type == "bar" else "Line chart"
    parts = []
    for trace in figure.data:
        lying = getattr(trace, "orientation", None) == "h"
        names, values = (trace.y, trace.x) if lying else (trace.x, trace.y)
        pairs = [(n, v) for n, v in zip(names, values, strict=True) if v is not None]
        told = [f"{unescape(str(n))}: {v:.3g}" for n, v in pairs[:MOST_TOLD]]
        more = f" and {len(pairs) - MOST_TOLD} more" if len(pairs) > MOST_TOLD else ""
        parts.append(f"{unescape(trace.name or '')}: {', '.join(told)}{more}")
    return f"{kind} of {of}. {'; '.join(parts)}."


def library() -> Markup:
    """The charts' script, to stand in the page before the first chart."""
    require()
    from plotly.offline import get_plotlyjs

    return Markup(f"<script>{get_plotlyjs()}</script><script>{_FIT_PAPER}</script>")  # noqa: S704  # library, ours


def require() -> None:
    """Refuse where the charts' library is not installed.

    Raises
    ------
    JobError
        With the way to install it.
    """
    if find_spec("plotly") is None:
        raise JobError("charts need the extra `report`: pip install 'sqldeid[report]'", key="report")
