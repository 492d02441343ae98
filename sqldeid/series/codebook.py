"""What recipients need to read a release of series: its columns, what stands in them, variables with their units.

Only variables are named that released rows or columns have, and nothing is counted.
"""

from __future__ import annotations

from sqldeid.series.plan import SeriesPlan
from sqldeid.series.shape import Shaped

WHOLE, NUMBER, TEXT = "whole number", "number", "text"
"""Types as recipients are told of them, the same whatever the engine calls them."""

CHANGED = {
    "all": "changed: a person's features are near those that the class has in common",
    "mean": "changed: a person's mean is near that of the class, the rest is as it was measured",
    "none": "as it was measured",
}
"""What became of a variable's values, by which of its features are made common."""


def columns_of(planned: SeriesPlan, shaped: Shaped) -> dict[str, dict[str, object]]:
    """Each column of the release by name: `type`, `meaning`, `unit` where there is one, and `codes`, its words."""
    hours = float(planned.part.step_hours)
    found: dict[str, dict[str, object]] = {
        "person_number": {"type": WHOLE, "meaning": "whose series it is: numbered anew, in random order"},
        "step": {
            "type": WHOLE,
            "meaning": "place in the series, from 0 on: no time is told",
            "unit": f"{hours:g} {'hour' if hours == 1 else 'hours'}",
        },
    }
    units = shaped.prepared.variables.units
    if planned.part.shape == "wide":
        return found | {
            n: {"type": NUMBER, "meaning": _changed(planned, n), "unit": units.get(n, "")}
            for n in shaped.named.values()
        }
    there = [name for number, name in shaped.named.items() if number in shaped.there]
    codes = [{"shown": n, "unit": units.get(n, ""), "meaning": _changed(planned, n)} for n in there]
    return found | {
        "variable": {"type": TEXT, "meaning": "what was measured", "codes": codes},
        "value": {"type": NUMBER, "meaning": "the value of the variable at this step, in its unit; may be missing"},
    }


def _changed(planned: SeriesPlan, name: str) -> str:
    return CHANGED[planned.kept(name)]
