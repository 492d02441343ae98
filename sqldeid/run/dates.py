"""Releases of the same persons of which one shifts dates: what another one shows of days tells the shift.

Whoever holds both finds a person in both, by the quasi-identifying columns and by what both show alike, reads the true
date in the one and the shifted one in the other, and has the number of days of all of that person's dates. So a
release with shifted dates is refused beside one that shows dates finer than by years, as in the source or at a level
that k persons share, in the same run or at the place where it goes, and so is the other way round.

Guarantee
    No release whose dates are shifted is published beside one of the same persons of the same run that shows dates of
    type DATE or TIMESTAMP finer than years, alone or nested, or, in most rows, written as text or numbers in the forms
    of `FORMS`; nor where a release that stands at the target, or is replaced there, shows such dates, by its note.
Assumes
    A person key of one name means the same persons, and so does a table that both read, through views or not. What
    `never_with` names nobody is given beside the release; releases elsewhere are not known here. The holder's
    `--without-ledger` says that nobody was ever given what is there.
Does not protect
    Beside releases of versions that noted no days. Dates in other forms (Excel's numbers, in rarer languages), and
    columns of which less than half of the values are dates. Of dates within longer texts, lists, structs and JSON there
    is a warning alone, where most values hold one in a form of `WITHIN`. Epsilon-safe tables are asked, too:
    a date that they show is a true one. Series show steps from their own beginning, and events are made: neither shows
    a day.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from sqlglot import exp

from sqldeid.catalogue.beneath import Beneath, beneath, meet
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.making import NO_TRUE_DATES, Days, Nature
from sqldeid.publish import days_of, key_of
from sqldeid.run.unchanged import Sources
from sqldeid.sql import column, identifier, literal

Note = Mapping[str, object]

_YEAR, _MONTH, _DAY = "(19|20|21)[0-9][0-9]", "(0?[1-9]|1[0-2])", "(0?[1-9]|[12][0-9]|3[01])"
_SHORT = "((19|20|21)?[0-9][0-9])"
_NAME = "(jan|feb|mar|m.r|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-z]*"
_AND_TIME = "([ t,:].*)?"
_WEEKDAY = "([a-z]+[.,]? )?"
_SECONDS = "([1-3][0-9]{9}|40[0-9]{8})"

FORMS: Mapping[str, str] = {
    "2020-01-15": f"{_YEAR}[-/. ]{_MONTH}[-/. ]{_DAY}{_AND_TIME}",
    "15.01.2020": f"{_DAY}[-/. ]{_MONTH}[-/. ]{_SHORT}{_AND_TIME}",
    "1/15/2020": f"{_MONTH}[-/. ]{_DAY}[-/. ]{_SHORT}{_AND_TIME}",
    "20200115": f"{_YEAR}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])([ t_-]?[0-2][0-9][0-5][0-9]([0-5][0-9])?.*|[.]0*)?",
    "15-Jan-2020": f"{_WEEKDAY}{_DAY}[-/., ]*{_NAME}[-/., ]*{_SHORT}{_AND_TIME}",
    "January 15, 2020": f"{_WEEKDAY}{_NAME}[-/., ]*{_DAY}(st|nd|rd|th)?[-/., ]+{_YEAR}{_AND_TIME}",
    "2020-01": f"{_YEAR}[-/.]{_MONTH}",
    "01/2020": f"{_MONTH}[-/.]{_YEAR}",
    "Jan 2020": f"{_NAME}[-/., ]*{_YEAR}",
    "2020-Q1": f"{_YEAR}[-/. ]?(q[1-4]|w[0-5][0-9]([-/. ]?[1-7])?)",
    "202001": f"{_YEAR}(0[1-9]|1[0-2])",
    "1579046400": f"{_SECONDS}([.][0-9]*)?|{_SECONDS}[0-9]{{3}}([.][0-9]*)?|{_SECONDS}[0-9]{{6}}|{_SECONDS}[0-9]{{9}}",
}
"""How dates are written, by an example each, in small letters: days, months and moments of the years 1900 to 2199.

Seconds, milliseconds, microseconds and nanoseconds since 1970 are of September 2001 to 2100."""

_OF_NUMBERS = (FORMS["20200115"], FORMS["202001"], FORMS["1579046400"], "-?[1-9][0-9]{8}")
"""The last are seconds since 1970 before September 2001: of numbers alone, for many codes of text have nine digits."""

WRITTEN_IN: Mapping[str, str] = {
    "text": "^(" + "|".join(FORMS.values()) + ")$",
    **dict.fromkeys(("integer", "number", "float"), "^(" + "|".join(_OF_NUMBERS) + ")$"),
}
"""By the kind of a column, what its values look like, as text, where they are dates."""

WITHIN = (
    f"(^|[^0-9])({_YEAR}[-/.]{_MONTH}[-/.]{_DAY}|{_DAY}[.]{_MONTH}[.]{_YEAR}|"
    f"({_MONTH}/{_DAY}|{_DAY}/{_MONTH})/{_YEAR})([^0-9]|$)"
)
"""A day with its year and separators within a longer text: 2020-01-15, 15.01.2020, 1/15/2020."""

_OF_TEXT = ("CHAR", "TEXT", "STRING", "JSON")
"""What types are called that hold text, nested ones too."""

CAST_THEM = (
    'cast it to DATE or TIMESTAMP in a source query and give it shift = "person", too, or leave it out. If they are '
    "codes that only look like dates, write something before them in a source query ('code ' || …)"
)
"""What to do about a column that holds written dates."""

_LARGEST = 1e18
"""Numbers beyond it are no moments, and not all of them are whole numbers of an engine."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What is made at once: the names of its releases, what it tells of days, and what lies beneath its source."""

    names: tuple[str, ...]
    days: Days
    reads: Beneath = ()


@dataclass(slots=True)
class ToldDays:
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

    units: Sequence[Unit]
    there: Sequence[Note]
    sources: Sources
    told: bool
    warnings: list[str] = field(default_factory=list)
    _same: dict[tuple[str, str], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, natures: Sequence[Nature], there: Sequence[Note], sources: Sources, *, told: bool) -> ToldDays:
        """The releases of a run, from their plans."""
        return cls(units_of(natures, sources.engine), [n for n in there if any(days_of(n))], sources, told)

    def refuse_made(self, notes: Mapping[str, Note], written: Mapping[str, exp.Expr], engine: Engine) -> None:
        """Refuse what was made, before it is published; and gather warnings of dates within longer texts.

        Cost: one scan of each release that shifts dates, or is beside one that does, if it has text or numbers.

        Raises
        ------
        JobError
            If one of the releases shifts dates, and another one of the same persons shows days.
        """
        self.units = [_made(unit, notes) for unit in self.units]
        refuse_together(self.units)
        for unit in self.units if not self.told else ():
            for note in self.there:
                self._refuse_there(unit, note)
        for unit in self.units:
            if moved := self._shifted_beside(unit):
                for name in unit.names:
                    self.warnings += _refuse_written({"release": name, **notes[name]}, written[name], moved, engine)

    def _refuse_there(self, unit: Unit, note: Note) -> None:
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

    def _of_same(self, unit: Unit, note: Note) -> bool:
        """Whether a release at the target may be of the same persons; asked of the sources once for each release."""
        name = str(note["release"])
        if name in unit.days.never_with and name not in unit.names:
            return False
        if (unit.names[0], name) not in self._same:
            self._same[unit.names[0], name] = name in unit.names or self.sources.may_share(unit.names[0], note)
        return self._same[unit.names[0], name]

    def _shifted_beside(self, unit: Unit) -> str:
        """A shifted column of the release itself, or of another one of its persons; empty where there is none."""
        found = shifted_beside(unit, self.units)
        if not found and not self.told:
            found = [key for note in self.there for key in days_of(note)[0] if self._of_same(unit, note)]
        return found[0] if found else ""


def _made(unit: Unit, notes: Mapping[str, Note]) -> Unit:
    """What a release tells of days, now that its levels are known."""
    noted = [days_of({"release": name, **notes[name]}) for name in unit.names]
    shifted, shown = (tuple(dict.fromkeys(key for pair in noted for key in pair[i])) for i in (0, 1))
    return replace(unit, days=replace(unit.days, shifted=shifted, shown=shown))


def units_of(natures: Sequence[Nature], engine: Engine) -> list[Unit]:
    """What is made at once, from the plans; what lies beneath sources is asked where it matters."""
    shifting = len(natures) > 1 and any(n.days.shifted for n in natures)
    return [Unit(n.names, n.days, beneath(n.source, engine) if shifting else ()) for n in natures]


def shifted_beside(unit: Unit, units: Sequence[Unit]) -> list[str]:
    """The shifted columns of what is made at once, and of others of the same persons."""
    own = [u for u in units if u is unit or together(u, unit)]
    return [key for u in own for key in u.days.shifted]


def together(here: Unit, there: Unit) -> bool:
    """Whether two releases are of the same persons, and somebody may be given both."""
    apart = here.days.never_with & {*there.names} or there.days.never_with & {*here.names}
    same = bool(here.days.persons & there.days.persons) or meet(here.reads, there.reads)
    return here is not there and same and not apart


def refuse_together(units: Sequence[Unit]) -> None:
    """Refuse releases of the same persons of which one shifts dates, and another one shows true ones."""
    for here, there in permutations(units, 2):
        if here.days.shifted and there.days.shown and together(here, there):
            raise JobError.at(
                there.days.shown[0],
                f"shows dates finer than years beside {here.days.shifted[0]}, where dates of persons by the same key, "
                f"or from a table that both read, are shifted: whoever holds both finds the shifts; {NO_TRUE_DATES}, "
                "or, if nobody is ever given both, say so by never_with",
            )


def _refuse_written(note: Note, release: exp.Expr, moved: str, engine: Engine) -> list[str]:
    """Refuse columns of which most values are dates that are written as text or numbers; warn of dates within texts."""
    columns = [c for c in engine.columns(release) if c.kind in WRITTEN_IN or _holds_text(c)]
    found = count_written(release, columns, engine, within=True)
    beside = f"beside {moved}, whose dates are shifted, true dates tell the shift"
    for counted in found:
        if counted.is_date:
            key, said = like_dates(key_of(note), counted.column.name)
            raise JobError.at(key, f"{said}, and {beside}; {CAST_THEM}")
    return [
        f"{_place(key_of(note), counted.column.name)}: most of its values hold a date within a longer text (such as "
        f"2020-01-15, 15.01.2020 or 1/15/2020), and {beside}. If they are days of the persons, cut them out in a "
        "source query, or leave the column out"
        for counted in found
        if counted.holds_date
    ]


def _holds_text(c: Column) -> bool:
    """Whether texts are within its values: lists, structs, JSON."""
    return c.kind == "other" and any(word in c.shown_type.upper() for word in _OF_TEXT)


def _place(key: str, name: str) -> str:
    return f"{key}.columns.{name}" if key.startswith("tables.") else f"{key} ({name})"


def like_dates(key: str, name: str) -> tuple[str, str]:
    """Where a job names a column of written dates, and what is said of it; series name theirs otherwise."""
    forms = ", ".join(FORMS)
    own = key.startswith("tables.")
    values = "its values" if own else f"the values of {name}"
    return f"{key}.columns.{name}" if own else key, f"most of {values} are written like dates ({forms})"


@dataclass(frozen=True, slots=True)
class Counted:
    """Of a column how many values there are, how many are written dates, and how many hold one within a longer text."""

    column: Column
    there: int
    written: int
    inside: int

    @property
    def is_date(self) -> bool:
        """Whether most values are dates; of lists, structs and JSON it is not asked."""
        return self.column.kind in WRITTEN_IN and 2 * self.written > self.there

    @property
    def holds_date(self) -> bool:
        """Whether most values hold a date, alone or in a longer text."""
        return 2 * self.inside > self.there


def count_written(
    relation: exp.Expr, columns: Sequence[Column], engine: Engine, first: int | None = None, *, within: bool = False
) -> list[Counted]:
    """Count dates that are written as text or numbers.

    Parameters
    ----------
    first
        How many rows are looked at; None for all.
    within
        Whether dates within longer texts are counted, too.

    Cost: one scan of them, if there are columns.
    """
    if not columns:
        return []
    row = engine.row("run/count_written", release=relation, columns=looked_at(columns, within=within), first=first)
    return [Counted(c, row[f"t{i}"], row[f"w{i}"], row[f"i{i}"]) for i, c in enumerate(columns)]


def written_dates(relation: exp.Expr, columns: Sequence[Column], engine: Engine, first: int | None = None) -> list[str]:
    """The columns of a relation of which most values are dates that are written as text or numbers.

    As `count_written`.
    """
    found = count_written(relation, [c for c in columns if c.kind in WRITTEN_IN], engine, first)
    return [counted.column.name for counted in found if counted.is_date]


def looked_at(columns: Sequence[Column], *, within: bool) -> list[dict[str, object]]:
    """How the values of columns of a release, read as `r`, are looked at: `run/count_written`."""
    return [
        {
            "text": _text(c),
            "pattern": literal(WRITTEN_IN.get(c.kind, WRITTEN_IN["text"])),
            "within": literal(WITHIN) if within and (c.kind == "text" or _holds_text(c)) else None,
            "there": identifier(f"t{i}"),
            "written": identifier(f"w{i}"),
            "inside": identifier(f"i{i}"),
        }
        for i, c in enumerate(columns)
    ]


def _text(c: Column) -> exp.Expr:
    """A column of a release as text; a number that may have a fraction without it."""
    value: exp.Expr = column(c.name, "r")
    if c.kind in ("float", "number"):
        there = exp.LT(this=exp.Abs(this=value), expression=literal(_LARGEST))
        whole = exp.cast(exp.Floor(this=value.copy()), "BIGINT")
        value = exp.Case(ifs=[exp.If(this=there, true=whole)])
    return exp.cast(value, exp.DataType.build("varchar", dialect="duckdb"))
