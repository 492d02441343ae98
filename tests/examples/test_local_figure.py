"""The figure of loss against k is what the page's table says, and local recoding loses no more than the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.studies import module_of

use = module_of(ROOT / "benchmarks" / "local_use.py")
PAGE = ROOT / "docs" / "local-recoding.md"
MARK = re.compile(r'<use xlink:href="#m\w+" x="([\d.]+)" y="([\d.]+)" style="fill: (#\w+)')
TICK = re.compile(
    r'<g id="([xy])tick_\d+">.*?<use xlink:href="#m\w+" x="([\d.]+)" y="([\d.]+)".*?<!-- ([\d.]+) -->', re.S
)
PIXEL = 0.0005
"""A hundredth of a point of the figure, in units of loss, and the table's last digit."""


def drawn(svg: str) -> dict[str, dict[int, float]]:
    """The figure's points by line and k, read from its coordinates by the ticks of its axes."""
    ticks = [(axis, float(x), float(y), float(label)) for axis, x, y, label in TICK.findall(svg)]
    k_at = {x: int(label) for axis, x, _, label in ticks if axis == "x"}
    (low, at_low), *_, (high, at_high) = [(label, y) for axis, _, y, label in ticks if axis == "y"]
    body, legend = svg.split('<g id="legend_1">')
    names = re.findall(r"<!-- (.+?) -->", legend)
    colours = [colour for _, _, colour in MARK.findall(legend)]
    found: dict[str, dict[int, float]] = {name: {} for name in names}
    for x, y, colour in MARK.findall(body):
        k = min(k_at, key=lambda tick: abs(tick - float(x)))
        assert abs(k - float(x)) < 0.01
        found[names[colours.index(colour)]][k_at[k]] = low + (float(y) - at_low) / (at_high - at_low) * (high - low)
    return found


def test_the_figure_shows_the_table() -> None:
    recorded = use.recorded(PAGE.read_text(encoding="utf-8"))
    found = drawn(PAGE.with_suffix(".svg").read_text(encoding="utf-8"))
    assert tuple(found) == use.NAMES and tuple(recorded) == use.KS
    for place, name in enumerate(use.NAMES):
        assert found[name] == pytest.approx({k: losses[place] for k, losses in recorded.items()}, abs=PIXEL)
    for whole, local, least in recorded.values():
        assert 0 < least <= local < whole < 1


def test_a_figure_is_drawn_from_the_table_and_another_table_shows(tmp_path: Path) -> None:
    page, text = tmp_path / "page.md", PAGE.read_text(encoding="utf-8")
    page.write_text(text.replace("| 0.2696 |", "| 0.3696 |", 1), encoding="utf-8")
    use.draw(page)
    found = drawn(page.with_suffix(".svg").read_text(encoding="utf-8"))
    assert found[use.NAMES[0]][5] == pytest.approx(0.3696, abs=PIXEL)


@pytest.mark.deep
def test_the_table_is_what_adult_loses(shared_data: Path, tmp_path: Path) -> None:
    """One node for all rows exactly; local recoding no more, and its bound no less, than the page says."""
    bench = use.Bench(shared_data, tmp_path, quick=True)
    [(whole, local)] = use.traded(bench, (10,))
    recorded = use.recorded(PAGE.read_text(encoding="utf-8"))[10]
    assert whole.loss == pytest.approx(recorded[0], abs=6e-5)
    assert local.loss <= recorded[1] + 6e-5 and local.bound >= recorded[2] - 6e-5
    assert local.bound <= recorded[1] + 6e-5
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    use.record([(whole, local)], page)
    assert use.recorded(page.read_text(encoding="utf-8")) == {
        10: (round(whole.loss, 4), round(local.loss, 4), round(local.bound, 4))
    }
    assert (
        page.read_text(encoding="utf-8").partition("## Three questions")[2]
        == PAGE.read_text(encoding="utf-8").partition("## Three questions")[2]
    )
