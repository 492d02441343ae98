"""Read the public domains of `laplace` from the job and the files that it names, never from data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import accumulate
from math import prod
from pathlib import Path

from sqldeid.errors import JobError
from sqldeid.files import read_limited
from sqldeid.job.events import Events

MAX_STATES = 1_000
"""Each pair of states is a cell that gets noise; 1,000 make a million."""

MAX_CELLS = 1_002_000
"""Of a factor's table: values x states x (states + 2)."""

MAX_GROUPS = 1_000
"""All combinations of the groups' values."""

REACHED = Fraction(4, 5)
"""Share of the objects of which all events are looked at, where their number is chosen with noise (events.md)."""

EVENTS_MAX = 8
LENGTH_BINS = (1, 2, 4, 8, 16)

LONGEST = 8
"""Times the last bin of lengths: the longest object that is made."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Public domains.

    Parameters
    ----------
    states
        Each with one text per state column; the job's `other` is the last where there is one.
    other
        Number of the state that others become; None where they are dropped.
    first, last
        Times are within [first, last); None where there is only an order.
    gap_bins_hours
        Edges of bins of gaps; below the first and above the last are bins, too. A gap on an edge is in the bin above.
    length_bins
        Last lengths of bins; longer objects are in one bin more.
    events_max
        First events of an object that are looked at; where they are chosen with noise, the most that can be.
    chosen
        Whether the number of events looked at is chosen from the noised histogram of lengths (`choose_events`).
    factors
        What transitions are counted by as well, each with a table of its own: values that the range of times gives.
    groups
        Columns with their public values; every combination is a group, and whoever is in none of them is in the rest.
    """

    states: tuple[tuple[str, ...], ...]
    other: int | None
    first: datetime | None
    last: datetime | None
    gap_bins_hours: tuple[Fraction, ...]
    length_bins: tuple[int, ...]
    events_max: int
    chosen: bool = False
    factors: tuple[str, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def group_count(self) -> int:
        """Number of groups without the rest, which has the next number; 0 where objects are not grouped."""
        return prod(len(values) for _, values in self.groups) if self.groups else 0

    @property
    def timed(self) -> bool:
        """Whether events have times."""
        return self.first is not None

    @property
    def longest(self) -> int:
        """No object that is made has more events: the last bin of lengths is open, to a point."""
        return LONGEST * max(self.length_bins[-1], self.events_max)

    @property
    def months(self) -> int:
        """Months that the range of times touches."""
        if self.first is None or self.last is None:
            return 0
        whole = (self.last.year - self.first.year) * 12 + self.last.month - self.first.month
        return max(whole + (self.last > datetime(self.last.year, self.last.month, 1)), 1)

    def values(self, factor: str) -> range:
        """The values of a factor of time, whatever the data are."""
        if factor == "year" and self.first is not None and self.last is not None:
            return range(self.first.year, (self.last - timedelta(microseconds=1)).year + 1)
        return {"weekday": range(1, 8), "hour": range(24), "month": range(1, 13)}[factor]


def choose_events(domain: Domain, lengths: Sequence[int]) -> Domain:
    """How many events are looked at, from the noised histogram of lengths alone: it costs nothing beyond the histogram.

    The last length of the first bin up to which `REACHED` of the objects are; that of the last bin where none is.
    """
    counts = [max(n, 0) for n in lengths]
    reached = accumulate(counts[:-1])
    enough = (last for last, n in zip(domain.length_bins, reached, strict=True) if n >= REACHED * sum(counts))
    return replace(domain, events_max=next(enough, domain.length_bins[-1]))


def read_domain(part: Events, folder: Path, key: str) -> Domain:
    """The public domains of a job with `laplace`.

    Raises
    ------
    JobError
        If the file of states cannot be read, or is not a list of states.
    """
    privacy = part.privacy
    states = _states(folder / str(privacy.states), len(part.state), f"{key}.privacy.states")
    other = None
    if privacy.other is not None:
        label = (privacy.other,) * len(part.state)
        states = (*(s for s in states if s != label), label)
        other = len(states) - 1
    span = [datetime.fromisoformat(t) for t in privacy.time_range or ()]
    bins = tuple(privacy.length_bins or LENGTH_BINS)
    chosen = privacy.events_max == "private"
    found = Domain(
        states=states,
        other=other,
        first=span[0] if span else None,
        last=span[1] if span else None,
        gap_bins_hours=tuple(Fraction(repr(b)) for b in privacy.gap_bins_hours or ()),
        length_bins=bins,
        events_max=bins[-1] if chosen else int(privacy.events_max or EVENTS_MAX),
        chosen=chosen,
        factors=tuple(part.factors or ()),
        groups=tuple((name, tuple(values)) for name, values in (privacy.groups or {}).items()),
    )
    if found.group_count > MAX_GROUPS:
        raise JobError.at(
            f"{key}.privacy.groups",
            f"make {found.group_count:,} groups, and {MAX_GROUPS:,} are allowed; list fewer values",
        )
    for name in found.factors:
        _refuse_large(found, len(found.values(name)), name, f"{key}.factors")
    _refuse_large(found, found.group_count, "groups", f"{key}.privacy.groups")
    return found


def _refuse_large(domain: Domain, values: int, name: str, key: str) -> None:
    """A table of transitions more for each of these values must not be too large."""
    cells = len(domain.states) * (len(domain.states) + 2) * values
    if cells > MAX_CELLS:
        raise JobError.at(
            key,
            f"{name} makes a table of {cells:,} cells, and {MAX_CELLS:,} are allowed: each gets "
            "noise; list fewer states, or leave it out",
        )


def _states(file: Path, columns: int, key: str) -> tuple[tuple[str, ...], ...]:
    try:
        text = read_limited(file).decode("utf-8-sig")
    except OSError as error:
        raise JobError.at(key, f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise JobError.at(key, f"{file} is not in UTF-8; save it as UTF-8") from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # splitlines would part states at U+2028, too
    found = [tuple(line.split("\t")) for line in lines if line.strip()]
    wrong = [n for n, state in enumerate(found, start=1) if len(state) != columns]
    if not found:
        raise JobError.at(key, f"{file} lists no state; write one a line")
    if wrong:
        raise JobError.at(
            key,
            f"{file} has {len(wrong)} lines that do not hold {columns} columns with tabs between; the first is "
            f"state {wrong[0]}",
        )
    if len(set(found)) < len(found):
        raise JobError.at(key, f"{file} lists a state twice")
    if len(found) > MAX_STATES:
        raise JobError.at(
            key,
            f"{file} lists {len(found)} states, and {MAX_STATES} are allowed: every pair of them gets noise; "
            "list fewer, and set other",
        )
    if any("\0" in word for state in found for word in state):
        raise JobError.at(key, f"{file} holds a NUL character")
    return tuple(found)
