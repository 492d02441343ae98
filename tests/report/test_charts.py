"""Numbers on a logarithmic axis are read as numbers, whatever the range; a title between dollars stays as it is."""

from __future__ import annotations

import pytest

from sqldeid.report.charts import Line, Panel, panels, render


@pytest.mark.parametrize("values", [(1.0, 250.0, 7000.0), (3e-14, 0.5, 1.0), (1.0, 1.0, 1.0), (100.0, 210.0, 800.0)])
def test_a_logarithmic_axis_shows_plain_numbers(values):
    figure = panels([Panel("$k$", "x", "y", (Line("a", [0, 1, 2], values),), log_y=True)])
    assert render(figure, "png").startswith(b"\x89PNG")
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    ticks = [*axes.yaxis.get_major_ticks(), *axes.yaxis.get_minor_ticks()]
    shown = [(t.get_loc(), t.label1.get_text()) for t in ticks if low <= t.get_loc() <= high and t.label1.get_text()]
    assert len(shown) > 1 and axes.get_yscale() == "log"
    for place, text in shown:
        assert float(text.replace("−", "-")) == pytest.approx(place, rel=0.06)  # no mark-up: a number
    assert axes.get_title(loc="left") == "$k$"
