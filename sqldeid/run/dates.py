"""Releases of the same persons of which one shifts dates: what another one shows of days tells the shift.

Whoever holds both finds a person in both, by the quasi-identifying columns and by what both show alike, reads the true
date in the one and the shifted one in the other, and has the number of days of all of that person's dates. So a
release with shifted dates is refused beside one that shows dates finer than by years, as in the source or at a level
that k persons share, in the same run or at the place where it goes, and so is the other way round.

Guarantee
    No release whose dates are shifted is published beside one of the same persons of the same run that shows dates of
    type DATE or TIMESTAMP finer than years, alone or nested; nor where a release that stands at the target, or is
    replaced there, shows such dates, by its note.
Assumes
    A person key of one name means the same persons, and so does one source. What `never_with` names nobody is given
    beside the release; releases elsewhere are not known here. The holder's `--without-ledger` says that nobody was ever
    given what is there.
Does not protect
    Beside releases of versions that noted no days. Dates that are written as text or numbers. Series show steps from
    their own beginning, and events are made: neither shows a day.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from sqldeid.errors import JobError
from sqldeid.making import NO_TRUE_DATES, Days, Nature
from sqldeid.publish import days_of
from sqldeid.run.unchanged import Sources

Note = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is made at once: the names of its releases, and what it tells of days."""

    names: tuple[str, ...]
    days: Days


@dataclass(slots=True)
class Beside:
    """The releases of a run, and those that stand where they go, held to each other by what they tell of days.

    Parameters
    ----------
    there
        Notes of the releases at the target.
    sources
        What tells whether one of them is of the same persons.
    told
        Whether the holder said that nobody was ever given what is there.
    """

    units: Sequence[_Unit]
    there: Sequence[Note]
    sources: Sources
    told: bool
    _same: dict[tuple[str, str], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, natures: Sequence[Nature], there: Sequence[Note], sources: Sources, *, told: bool) -> Beside:
        """The releases of a run, from their plans."""
        units = [_Unit(n.names, n.days) for n in natures]
        return cls(units, [n for n in there if any(days_of(n))], sources, told)

    def refuse_planned(self) -> None:
        """Refuse what is known before anything is read.

        Raises
        ------
        JobError
            If dates are shifted in one release of the run, and shown as in the source in another one.
        """
        _refuse(self.units)

    def refuse_made(self, notes: Mapping[str, Note]) -> None:
        """Refuse what was made, before it is published.

        Raises
        ------
        JobError
            If one of the releases shifts dates, and another one of the same persons shows days.
        """
        self.units = [_made(unit, notes) for unit in self.units]
        _refuse(self.units)
        for unit in self.units if not self.told else ():
            for note in self.there:
                self._refuse_there(unit, note)

    def _refuse_there(self, unit: _Unit, note: Note) -> None:
        """Refuse a release that stands at the target beside one that is made."""
        moved, shown = days_of(note)
        name = str(note["release"])
        for old, new in ((moved, unit.days.shown), (shown, unit.days.shifted)):
            if not old or not new or not self._of_same(unit, note):
                continue
            true, shift = (new[0], old[0]) if old is moved else (old[0], new[0])
            raise JobError.at(
                new[0],
                f"the release {name} that is there was made of the same persons, as far as its note tells: {true} "
                f"shows dates finer than years, and the dates of {shift} are shifted, so that whoever holds both finds "
                f"the shifts; {NO_TRUE_DATES}. If nobody was ever given what is there, say so by --without-ledger",
            )

    def _of_same(self, unit: _Unit, note: Note) -> bool:
        """Whether a release at the target may be of the same persons; asked of the sources once for each release."""
        name = str(note["release"])
        if name in unit.days.never_with and name not in unit.names:
            return False
        if (unit.names[0], name) not in self._same:
            self._same[unit.names[0], name] = name in unit.names or self.sources.may_share(unit.names[0], note)
        return self._same[unit.names[0], name]


def _made(unit: _Unit, notes: Mapping[str, Note]) -> _Unit:
    """What a release tells of days, now that its levels are known."""
    noted = [days_of({"release": name, **notes[name]}) for name in unit.names]
    shifted, shown = (tuple(dict.fromkeys(key for pair in noted for key in pair[i])) for i in (0, 1))
    return replace(unit, days=replace(unit.days, shifted=shifted, shown=shown))


def _together(here: _Unit, there: _Unit) -> bool:
    """Whether two releases are of the same persons, and somebody may be given both."""
    apart = here.days.never_with & {*there.names} or there.days.never_with & {*here.names}
    return here is not there and bool(here.days.persons & there.days.persons) and not apart


def _refuse(units: Sequence[_Unit]) -> None:
    for here, there in permutations(units, 2):
        if here.days.shifted and there.days.shown and _together(here, there):
            raise JobError.at(
                there.days.shown[0],
                f"shows dates finer than years beside {here.days.shifted[0]}, where dates of the same persons are "
                f"shifted: whoever holds both finds the shifts; {NO_TRUE_DATES}, or, if nobody is ever given both, say "
                "so by never_with",
            )
