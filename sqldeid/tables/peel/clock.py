"""How long an algorithm may go on; the only thing here that is not a function of the problem."""

from __future__ import annotations

from time import monotonic


class Clock:
    """A limit of time that is asked often.

    Parameters
    ----------
    seconds
        From now on; None: no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self.end = None if seconds is None else monotonic() + seconds
        self.stopped = False

    def over(self) -> bool:
        """Whether the time is over; remembered."""
        if self.end is not None and monotonic() >= self.end:
            self.stopped = True
        return self.stopped

    def part(self, share: float) -> Clock:
        """A clock for a share of the time that is left, which does not stop this one."""
        return Clock(None if self.end is None else max(self.end - monotonic(), 0) * share)
