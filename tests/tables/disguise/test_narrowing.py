"""What a known period tells of shifts: the simulation against counting every case."""

from __future__ import annotations

import pytest

from sqldeid.errors import JobError
from sqldeid.tables.disguise.narrowing import narrow


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("period", "span"), [(730, 0), (730, 180), (90, 10), (4000, 30)])
def test_equals_counting_every_case(period: int, span: int) -> None:
    shifts = [s for s in range(-365, 366) if s]
    small = total = 0
    for first in range(0, period - span, 7 if period > 100 else 1):
        for shift in shifts[::3] if period > 100 else shifts:
            possible = sum(0 <= first + shift - s < period - span for s in shifts)
            small, total = small + (possible <= 90), total + 1
    [found] = narrow(period, [span], ["day"], persons=400_000, seed=3)
    assert found.within[90] == pytest.approx(small / total, abs=0.004)


def test_coarser_times_and_longer_studies_leave_more() -> None:
    day, month = narrow(730, [30], ["day", "month"])
    assert month.within[30] < day.within[30] / 2 and month.median >= day.median
    assert narrow(4383, [30], ["day"])[0].within[90] < day.within[90]
    assert narrow(730, [30], ["day"]) == narrow(730, [30], ["day"])
    with pytest.raises(JobError, match="do not fit"):
        narrow(30, [30], ["day"])
