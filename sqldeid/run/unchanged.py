"""Whether a source has changed since a release of it was made, for whoever would replace that or add another to it.

Two releases of a source that changed in between can be compared: what is different in them is what the source's change
did, and may be one person's. A ledger holds the second to the first. Without one, the second is refused.

Guarantee
    Without a ledger, a release is replaced, or given a companion, only if no column that both use
    has another sum of hashes of (person, value) over all rows than when the first one was made; or the holder has
    said that the first one was never given out. A companion is a release of the same job, or of any job that reads
    the same rows of the same table under another name; what goes with a file that is replaced as a whole is replaced,
    if it read the same table. For series the classes must be asked for alike, too: other classes of the same persons
    are subtracted as another night's are. What was held to a ledger is given no companion without that very ledger,
    which is known by the marks of what it took down. Nor is a table or series given one of its kind over other persons,
    if both read a common column and hold persons by one key, in this job, or read the same tables by another filter or
    another key, in another (`sqldeid.catalogue.beneath`: a view, a partition and an heir are no other tables): such
    cohorts may differ by one person, and they are compared only where one run makes both.

Assumes
    The first release is where the second goes: of releases elsewhere nothing is known here. Sums of 64-bit hashes are
    the same for two sources by chance alone; whoever may write to the source could make them so, and learns nothing
    that way that the source does not hold. On Spark, which has no snapshot of a source, the sums are of one scan after
    the release was decided; what is written is compared with the source then (`sqldeid.tables.write`).

A table that is a sample, or shows statistics of classes, is another one also of an unchanged source: by another share,
another key, or another way to make the statistic. So these are in the marks, too.

Does not protect
    Differentially private releases (epsilon-safe, laplace) are not asked: they compose by ε, which the ledger adds up.

The sums are kept in the note on the release as HMAC under the holder's key (`sqldeid.keys`) and a salt that is drawn
for each note: who reads a release, and guesses a source, cannot confirm it; who reads two does not see whether
anything changed, or which column, where a ledger holds the change back. A note without them, by another key or
another version of the engine tells nothing, and what it is on is not replaced.

Source: soundness.md 5, 18, 23.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqldeid.catalogue.beneath import Beneath, beneath, meet, read_alike
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.keys import Key, read_key, state_key
from sqldeid.making import Nature, Read
from sqldeid.publish import BESIDE_KINDS, LEDGER_MARK, LEDGER_NOTE, SOURCE_NOTE
from sqldeid.run.cohorts import may_be_subtracted
from sqldeid.run.places import Options
from sqldeid.run.wings import Plan, nature_of, part_of, wing_of
from sqldeid.sql import identifier, render

_SCOPE = b"sqldeid source mark\0"
_DRAWN = b"sqldeid sample's key\0"
_DIGITS = 32
_SALT = 16
Mark = Mapping[str, object]
COMPOSES = "composes by epsilon"
"""In place of marks on a differentially private release, which is never asked for its source."""

_APART = (
    "it may have some of the same persons in other classes. Make the releases in one run, without --only and with "
    "--replace, where they are compared person by person"
)
_DECLARED = (
    "its job reads the source otherwise by now (source, where or person), so that other rows leave, whether or not the "
    "data has changed; if what is there is another release that you keep, name another place (release.into or schema)"
)
_FILTERED = (
    "it has other rows of the same tables, and the two cohorts may differ by few persons. Make both in one run of one "
    "job, where they are compared person by person"
)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of a source: sums of hashes by column, its persons and rows, and where they come from.

    `spelt` are sums of another kind, by relation and column, of those that have intervals: older notes have none.
    """

    sums: Mapping[str, str]
    spelt: Mapping[str, str]
    persons: str
    whole: str
    named: bool
    of: str
    base: str
    beneath: Beneath
    person: str
    asked: str
    told: Mapping[str, str]
    drawn: str
    made_by: str


@dataclass(frozen=True, slots=True)
class _Now:
    """A release that could be made now: its nature, the holder's keys, and its source; None where there is no key."""

    nature: Nature
    keys: Sequence[Key]
    facts: _Facts | None


@dataclass(slots=True)
class Sources:
    """The sources of a run, beside what the notes on the releases that are there say of theirs.

    Parameters
    ----------
    job, engine, options
        Of the run.
    names
        The releases that are made.
    there
        Notes of the releases at the target.
    planned
        Plans a release of the job.
    entered
        Marks of the releases that the run's ledger took down before; by them it is known whether it is the ledger that
        a release was held to, wherever its file lies now.
    """

    job: Job
    engine: Engine
    options: Options
    names: Sequence[str]
    there: Sequence[Mapping[str, object]]
    planned: Callable[[str], Plan]
    entered: frozenset[str] = frozenset()
    _keys: list[Key] | None = None
    _compared: bool = False
    _others: dict[str, list[str]] = field(default_factory=dict)
    _unheld: list[str] = field(default_factory=list)

    def mark(self, name: str) -> list[Mark] | str:
        """What the note on a release keeps: a mark by each key; `COMPOSES` where that is so.

        Asked once the release is decided: its own steps have read the source then, and said what is wrong with its SQL.

        Cost: one scan of the source, two where it has intervals.

        Raises
        ------
        JobError
            If a release is there whose source has changed, or of which that is not known.
        """
        now = self._now(name)
        if now is None:
            return COMPOSES
        for note in self.there if not self.options.without_ledger else ():
            if note.get(SOURCE_NOTE) == COMPOSES or note.get("kind") in BESIDE_KINDS:
                continue
            if note["release"] not in self.names:
                self._beside(note, now)
                self._notice(name, note, now)
            elif note["release"] == name and LEDGER_NOTE not in note:
                self._refuse(note, _compare(note.get(SOURCE_NOTE), now), "replaced")
                if self.options.ledger is not None:
                    self._unheld.append(name)
        self._compared = True
        facts = now.facts
        return [] if facts is None else [_mark(facts, key, secrets.token_hex(_SALT)) for key in now.keys]

    def may_share(self, name: str, note: Mapping[str, object]) -> bool:
        """Whether a release at the target may be of persons of one that is made: unless a key tells that it is not.

        Cost: one scan of the source, where the job does not tell.
        """
        other = str(note["release"])
        if other in self.job.tables:
            if name in self.job.tables[other].never_with:
                return False
            here, there = nature_of(self.planned(name)), nature_of(self.planned(other))
            if here.days.persons & there.days.persons or meet(*(beneath(n.source, self.engine) for n in (here, there))):
                return True
        now, noted = self._now(name), note.get(SOURCE_NOTE)
        if now is None or now.facts is None or not isinstance(noted, list):
            return True
        pairs = [(mark, again) for mark in noted if (again := _again(mark, now)) is not None]
        keyed = bool(now.facts.person)
        alike = any(_share(m, a) or (keyed and m.get("person") == a["person"]) for m, a in pairs)
        return alike or not pairs

    def _beside(self, note: Mapping[str, object], now: _Now) -> None:
        """Refuse a release that is there, and is not made again, where it can be compared with the one that is made."""
        other, noted = str(note["release"]), note.get(SOURCE_NOTE)
        what = "replaced" if self.job.release.into is not None and not self.options.only else "added to"
        ours = self._is_ours(other)
        if not ours and not _of_one_source(noted, now, gone=what == "replaced"):
            entered = now.nature.ledger and self._knows(note)
            if note.get("kind") == _kind(now.nature) and not entered and _is_filtered_otherwise(noted, now):
                another = LEDGER_NOTE in note and now.nature.ledger and self.options.ledger is not None
                self._refuse(note, self._unheld_to(note) if another else _FILTERED, what)
            return
        if LEDGER_NOTE in note and now.nature.ledger:
            self._refuse(note, self._unheld_to(note), what)
            return
        if not ours:
            self._refuse(note, _compare(noted, now), what)
            return
        if not self._compared and (beside := self._now(other)) is not None:
            self._refuse(note, _compare(noted, beside), what)
        if may_be_subtracted(now.nature, nature_of(self.planned(other)), self.engine):
            self._refuse(note, "" if not _compare(noted, now) else _APART, what)

    def _knows(self, note: Mapping[str, object]) -> bool:
        """Whether the run's ledger took a release down itself."""
        return LEDGER_NOTE in note and note.get(LEDGER_MARK) in self.entered

    def _unheld_to(self, note: Mapping[str, object]) -> str:
        """Why nothing holds this run to a release that was held to a ledger; empty where that ledger does."""
        if self.options.ledger is None:
            return "it was held to a ledger, and this run names none"
        if self._knows(note):
            return ""
        return f"it was held to a ledger, and {self.options.ledger} does not know it: it is another one, or an old copy"

    def _refuse(self, note: Mapping[str, object], reason: str, what: str) -> None:
        """Refuse with a reason, if there is one, and with steps of which each succeeds."""
        if not reason:
            return
        section = {"series": "series", "events": "events"}.get(str(note.get("kind")), "tables")
        key = f"{section}.{note['release']}"
        raise JobError(
            f"{key}: the release that is there is not {what}: {reason}. Whoever holds two releases that differ can "
            f"tell apart what differs, which may be one person. {self._way_out(note)}",
            key="--without-ledger",
        )

    def _way_out(self, note: Mapping[str, object]) -> str:
        """What to do: a ledger holds a release to those that it took down itself, and no kind that it cannot keep."""
        from sqldeid.job.ledger_rules import unfit

        possible = not any(unfit(self.job, self.names))
        if LEDGER_NOTE in note and possible:
            another = self.options.ledger is not None and not self._knows(note)
            return f"Name {'that ledger, its newest copy,' if another else 'the ledger'} with --ledger"
        way = "If nobody was ever given the release that is there, say so by --without-ledger"
        if self.options.ledger is not None:
            way += (
                " and keep --ledger: the one speaks of that release, which no ledger took down, the other holds this "
                "release and all later ones to each other"
            )
        elif possible:
            way += "; with --ledger FILE beside it, all releases from this one on are held to each other"
        return f"{way}. If somebody was, take that one back first"

    def _notice(self, name: str, note: Mapping[str, object], now: _Now) -> None:
        """Keep in mind a release of another job, of the same rows, that stays where this one goes: a trial, perhaps."""
        other, stays = str(note["release"]), self.job.release.into is None or bool(self.options.only)
        held = self._knows(note)
        child = note.get("parent") == name
        alike = child or _of_one_source(note.get(SOURCE_NOTE), now, gone=False)
        if stays and not held and not self._is_ours(other) and alike:
            self._others.setdefault(name, []).append(other)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of each release, a sentence on those of the same source that other jobs left, or no ledger took down."""
        unheld = tuple(
            f"{self.job.name}: {part_of(self.job, name)[0]}.{name}: the release that was there was made without this "
            "ledger, which holds later ones to this one and not to that; if somebody was given it, take it back"
            for name in self._unheld
        )
        return unheld + tuple(
            f"{self.job.name}: {part_of(self.job, name)[0]}.{name}: {', '.join(others)} beside it "
            f"{'was' if len(others) == 1 else 'were'} released from the same source by another job, or an "
            "earlier form of this one; whoever is given more than one can subtract one from the other. Give out one, "
            "and delete the others"
            for name, others in self._others.items()
        )

    def _is_ours(self, name: str) -> bool:
        return any(name in part for part in (self.job.tables, self.job.series, self.job.events))

    def _now(self, name: str) -> _Now | None:
        plan = self.planned(name)
        nature = nature_of(plan)
        if nature.private:
            return None
        if self._keys is None:
            self._keys = [key for key in (state_key(), read_key(self.options.key_file)) if key is not None]
        if nature.drawn and (drawing := read_key(self.options.key_file)) is not None:
            nature = replace(nature, drawn=f"{nature.drawn} {drawing.hasher(_DRAWN)(b'')}")
        return _Now(nature, self._keys, _facts(plan, nature, self.engine) if self._keys else None)


def _of_one_source(noted: object, now: _Now, *, gone: bool) -> bool:
    """Whether a release of another job reads the same rows of the same table; where it goes, the same table."""
    for mark in noted if isinstance(noted, list) else ():
        again = _again(mark, now)
        if again is not None and (mark.get("of") == again["of"] or (gone and mark.get("base") == again["base"])):
            return True
    return False


def _kind(nature: Nature) -> str:
    """What the note on a release that can be subtracted calls it; empty for others."""
    return "table" if nature.cohort is not None else "series" if nature.subtracted else ""


def _is_filtered_otherwise(noted: object, now: _Now) -> bool:
    """Whether a release of another job reads other rows of the same tables, and a column that is released now, too."""
    for mark in noted if isinstance(noted, list) else ():
        again = _again(mark, now)
        if again is None or not _read_alike(mark, again):  # by a key of another name, too: a view may call it so
            continue
        old, new = mark.get("sums"), again["sums"]
        common = not isinstance(old, Mapping) or not isinstance(new, Mapping) or bool(old.keys() & new.keys())
        return common and bool(_compare(noted, now))
    return False


def _read_alike(noted: Mark, again: Mark) -> bool:
    """Whether rows of the same tables are read; an older note tells names alone, which a view or heir hides behind."""
    there, here = _beneath(noted), _beneath(again) or []
    if there is None:
        return noted.get("base") == again["base"] or any(of is None or len(of) > 1 for of in here)
    return read_alike(here, there)


def _share(noted: Mark, again: Mark) -> bool:
    """Whether a table is read by both, through views or not."""
    there = _beneath(noted)
    return noted.get("base") == again["base"] or there is None or meet(_beneath(again) or [], there)


def _beneath(mark: Mark) -> list[frozenset[str] | None] | None:
    """What lies beneath the relations that a mark is of; None where an older version did not say it."""
    found = mark.get("beneath")
    if not isinstance(found, list):
        return None
    return [frozenset(map(str, of)) if isinstance(of, list) else None for of in found]


def _again(noted: object, now: _Now) -> Mark | None:
    """The mark of a source by the key and salt of one that was noted; None where no such key is known."""
    if not isinstance(noted, Mapping) or not isinstance(salt := noted.get("salt"), str) or now.facts is None:
        return None
    marks = (_mark(now.facts, key, salt) for key in now.keys)
    return next((m for m in marks if m["key"] == noted.get("key")), None)


def _compare(noted: object, now: _Now) -> str:
    """Why it is not known that nothing changed; empty where nothing did."""
    if not isinstance(noted, list) or not noted:
        return "its note does not tell what the source was like (an older version made it, or no key could be kept)"
    pairs = [(m, again) for m in noted if (again := _again(m, now)) is not None]
    if not pairs:
        return "its note was made with another key, on another machine or by another user, and cannot be compared"
    before, after = pairs[0]
    if before.get("engine") != after["engine"]:
        return "its note was made by another version of the engine, and cannot be compared"
    old, new = before.get("sums"), after["sums"]
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return "its note cannot be read"
    alike = old.keys() == new.keys()
    changed = before.get("persons") != after["persons"] or any(old[n] != new[n] for n in old.keys() & new.keys())
    if changed or _respelt(before, after) or (alike and before.get("whole") != after["whole"]):
        otherwise = any(before.get(part, after[part]) != after[part] for part in ("of", "person"))
        return _DECLARED if otherwise else "its source has changed since"
    if not alike and not (after["named"] and before.get("named")):
        return "it shows other columns, and without a person key its rows cannot be compared"
    if alike and before.get("asked") != after["asked"]:
        return "its job asks for other classes by now, and classes of series are subtracted from each other"
    was, told = _told(before), _told(after)
    otherwise = any(was.get(n) != told.get(n) for n in old.keys() & new.keys())
    if otherwise or before.get("drawn") != after.get("drawn"):
        return "its job asks for another sample, or other statistics of classes, which are subtracted from each other"
    return ""


def _respelt(before: Mark, after: Mark) -> bool:
    """Whether intervals are spelt otherwise by now: what equals another may read as another."""
    was, now = before.get("spelt"), after.get("spelt")
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        return False
    return any(was[name] != now[name] for name in was.keys() & now.keys())


def _told(mark: Mark) -> Mapping[str, object]:
    found = mark.get("told")
    return found if isinstance(found, Mapping) else {}


def _mark(facts: _Facts, key: Key, salt: str) -> Mark:
    digest = key.hasher(_SCOPE + salt.encode() + b"\0")

    def keyed(*texts: str) -> str:
        return digest("\0".join(texts).encode())[:_DIGITS]

    return {
        "salt": salt,
        "key": keyed("key"),
        "engine": keyed("engine", facts.made_by),
        "of": keyed("of", facts.of),
        "base": keyed("base", facts.base),
        "beneath": [None if of is None else sorted(keyed("beneath", n) for n in of) for of in facts.beneath],
        "person": keyed("person", facts.person),
        "asked": keyed("asked", facts.asked),
        "persons": keyed("persons", facts.persons),
        "whole": keyed("whole", facts.whole),
        "named": facts.named,
        "sums": {keyed("column", n): keyed("sum", n, s) for n, s in facts.sums.items()},
        **({"told": {keyed("column", n): keyed("told", n, t) for n, t in facts.told.items()}} if facts.told else {}),
        **({"spelt": {keyed("spelt", n): keyed("spelt", n, s) for n, s in facts.spelt.items()}} if facts.spelt else {}),
        **({"drawn": keyed("drawn", facts.drawn)} if facts.drawn else {}),
    }


def _facts(plan: Plan, nature: Nature, engine: Engine) -> _Facts:
    """What marks are made of; sums of hashes are by relation and column."""
    found: dict[str, str] = {}
    spelt: dict[str, str] = {}
    persons, whole, named, made_by, dialect = [], [], False, "", engine.capabilities.dialect
    for read in wing_of(plan).reads(plan, engine):
        row, sums = _summed(read, read.columns, engine)
        persons.append(f"{read.name}: {row['rows']} {row['persons']}")
        whole.append(f"{read.name}: {row['whole']}")
        named = named or read.person is not None
        made_by = row["made_by"] if dialect == "duckdb" else f"{dialect} {row['made_by']}"
        found |= sums
        if read.spelt:
            row, sums = _summed(read, read.spelt, engine)
            spelt |= {**sums, f"{read.name}: {sorted(sums)}": str(row["whole"])}
    of, base = _origin(nature.source)
    key = nature.subtracted
    if nature.cohort is not None and nature.cohort.person is not None:
        key = nature.cohort.person[0]
    told = {f"source/{label}": text for label, text in nature.told.items()}
    return _Facts(
        found,
        spelt,
        "; ".join(persons),
        "; ".join(whole),
        named,
        of,
        base,
        beneath(nature.source, engine),
        key,
        nature.asked,
        told,
        nature.drawn,
        made_by,
    )


def _summed(
    read: Read, columns: Sequence[tuple[str, exp.Expr]], engine: Engine
) -> tuple[dict[str, str], dict[str, str]]:
    """The sums of a relation, and those of its columns by their labels."""
    labelled = sorted(columns, key=lambda c: c[0])
    asked = [{"name": identifier(f"c{i}"), "column": c} for i, (_, c) in enumerate(labelled)]
    statement = render("run/sum_columns", source=read.source, person=read.person, columns=asked)
    row: dict[str, str] = engine.query(statement).to_pylist()[0]
    return row, {f"{read.name}/{label}": str(row[f"c{i}"]) for i, (label, _) in enumerate(labelled)}


def _origin(source: exp.Expr) -> tuple[str, str]:
    """What a release reads, as SQL, and the tables in it; the database's own name is left out, for files are moved."""
    bare = source.copy()
    tables = list(bare.find_all(exp.Table))
    for table in tables:
        table.set("catalog", None)
    names = {".".join(part.name for part in table.parts).casefold() for table in tables}
    return bare.sql(dialect="duckdb"), ", ".join(sorted(names))
