"""Propose a role and a hierarchy for each column, with the reason, for a person to read.

Whatever is proposed runs. Where nothing good can be said of a column, it is left out, and so is not released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.insight.coded import find_coded
from sqldeid.insight.fitting import Sought, fit_all
from sqldeid.insight.identifiers import Finding, find_column, is_death_date, is_text_age
from sqldeid.insight.presets import Preset
from sqldeid.insight.profile import ColumnFacts, TableFacts
from sqldeid.insight.repeating import LEAST_AGAIN, find_repeating
from sqldeid.insight.words import (
    says_age,
    says_birth,
    says_category,
    says_part_of_birth,
    says_secret,
    says_year,
    spelt,
    words_of,
)
from sqldeid.sql import column, render

MOST_QIS = 9
"""Quasi-identifying columns proposed at most: with more, little is left to release at any k."""

MOST_VALUES = 50_000
"""Different values from which a column is not proposed as quasi-identifying."""

FEW_VALUES = 12
"""Different numbers up to which a number is taken for a code."""

K = 5
LEAST_K = 2
"""Of one person nothing may go out as it is, whoever reads the proposal or not."""
SUPPRESSION_LIMIT = 0.05
LENGTH = 20
"""Persons who share each length of series."""
AGE_TOP = 90

_RANKED: tuple[Sequence[str], ...] = (
    ("zip", "zipcode", "postal", "postcode", "plz"),
    (
        "birth",
        "dob",
        "born",
        "birthdate",
        "birthday",
        "yob",
        "geburtsdatum",
        "geburtsjahr",
        "age",
        "year",
        "alter",
        "edad",
    ),
    ("sex", "gender", "geschlecht", "sexo", "sexe", "sesso", "kon", "kjonn"),
    ("race", "ethnicity", "ethnic", "nationality", "country", "native", "citizenship"),
    ("marital", "civil", "relationship", "family"),
    ("language", "religion", "faith"),
    ("education", "occupation", "profession", "job", "workclass", "employer", "insurance"),
    ("city", "town", "county", "district", "state", "region"),
    ("death", "dod", "admission", "discharge"),
)
"""What strangers know of people, from the most to the least."""

_PERSONS = ("subject", "patient", "patienten", "pat", "person", "member", "pid", "mrn", "ssn")
_VISITS = ("stay", "visit", "encounter", "admission", "hadm", "unit", "episode", "case", "fall")
"""With a person's word in a name they say that the key is of something that a person has several of."""
_SHARED = tuple(
    "item concept code type provider doctor physician nurse staff user care site hospital hosp clinic center centre "
    "ward unit department practice location place street zip city county state region country device test lab variable "
    "parameter measurement drug product source group study form batch household family employer insurance "
    "insurer payer company event row".split()
)
"""With "id" in a name they say that the key is of something that many persons share, or that no person is."""
_THEIRS = (*_PERSONS, "stay", "visit", "encounter", "admission", "hadm", "episode")
"""With "id" in a name they say that the key is a person's, or of what one person has: ``patientunitstayid``."""
_KEYS = ("id", "key", "number", "nummer", "no", "nr", "code", "pid", "mrn", "ssn")


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a job may say of a column.

    Parameters
    ----------
    keys
        As a job writes them: ``{"role": "quasi-identifying", "hierarchy": {"bands": [5, 10]}}``.
    why
        The reason, in words; no data value.
    released
        False for a line that is only written as a comment: the column is not released.
    """

    name: str
    keys: Mapping[str, object]
    why: str
    released: bool = True
    rank: float = math.inf

    @property
    def role(self) -> str:
        """The role proposed."""
        return str(self.keys["role"])


@dataclass(frozen=True, slots=True)
class Proposed:
    """A job for one table.

    Parameters
    ----------
    person
        The person key; None where no column is one.
    person_why
        Why that is, or what to do about it.
    many
        Whether persons have many rows; then also how rows are ordered, of which the first may stand for the person.
    known
        False where rows have no person: they are left out.
    runs
        False where the table has fewer persons than any k: the job says so, and is refused.
    preset
        What the job was asked to begin with; its k is not lowered for a table of fewer persons.
    """

    facts: TableFacts
    columns: tuple[Proposal, ...]
    person: str | None
    person_why: str
    k: int
    l_diversity: tuple[str, int] | None
    many: bool = False
    order: tuple[str, ...] = ()
    known: bool = True
    runs: bool = True
    preset: Preset | None = None


@dataclass(frozen=True, slots=True)
class _Person:
    """The person key, and why; `many` where persons have several rows, `known` unless some rows have none."""

    name: str | None
    why: str
    many: bool = False
    known: bool = True


def propose(facts: TableFacts, engine: Engine, preset: Preset | None = None) -> Proposed:
    """Propose a job for a table whose facts are known.

    Cost: one scan for each column that may be quasi-identifying and for which shipped hierarchies are tried.
    """
    found = _person(facts, engine)
    person, key = found.name, next((c for c in facts.columns if c.name == found.name), None)
    whole = any(says_year(c.name) and says_birth(c.name) for c in facts.columns)
    drafts = [_born(c, whole) or _column(c, person, many=found.many) for c in facts.columns]
    if preset is not None and preset.harbor:
        drafts = [_harboured(c, draft) for c, draft in zip(facts.columns, drafts, strict=True)]
    chosen = _choose(drafts)
    fitted = _fitted(chosen, facts, engine)
    columns = tuple(_by_years(list(_with_codes(list(_spare(fitted, facts)), facts, engine))))
    persons = facts.rows if key is None else key.different
    k = preset.k if preset is not None and preset.k else max(LEAST_K, min(K, persons))
    diverse = _diversity(columns, facts, engine, person if found.many else None)
    order = _order(facts, person) if found.many else ()
    return Proposed(facts, columns, person, found.why, k, diverse, found.many, order, found.known, persons >= k, preset)


def _by_years(columns: Sequence[Proposal]) -> Iterator[Proposal]:
    """Dates by years and decades where others are shifted: a release of months beside these is refused."""
    moved = next((p.name for p in columns if p.released and "shift" in p.keys), None)
    for p in columns:
        rule = p.keys.get("hierarchy")
        if moved is None or not isinstance(rule, Mapping) or "dates" not in rule:
            yield p
        else:
            why = p.why.replace("months, years", "years")
            why = f"{why}; beside {moved}, which is shifted, months would tell the shift"
            yield replace(p, keys={**p.keys, "hierarchy": {"dates": ["year", "decade"]}}, why=why)


def _person(facts: TableFacts, engine: Engine) -> _Person:
    """The column that tells persons apart, and why: by its name, else by counts; none where rows share persons."""
    # "float": pandas turns numbers into it where some are missing
    keys = [c for c in facts.columns if c.kind in ("integer", "text", "number", "float")]
    about = [
        c
        for c in keys
        if _names(c, _PERSONS) and not _names(c, _VISITS) and (_names(c, _KEYS) or len(words_of(c.name)) == 1)
    ]
    for c in about[:2]:
        if _unique(c):
            return _Person(c.name, "every row has its own; it is not released")
    for c in [c for c in about if 0 < c.different <= c.there]:
        none = "" if c.there == c.rows else "; rows without one are left out"
        if c.different == c.there:
            return _Person(c.name, f"every row has its own{none}; it is not released", known=c.there == c.rows)
        why = f"persons have several rows, which k then counts once{none}; it is not released"
        return _Person(c.name, why, many=True, known=c.there == c.rows)
    if (again := find_repeating(facts, engine)) is not None:
        none = "" if again.there == again.rows else "; rows without one are left out"
        why = (
            f"its values repeat, and each goes with one sex, birth or the like, so it seems to be the person{none}; "
            "of persons who have several of it, name the key instead"
        )
        return _Person(again.name, why, many=True, known=again.there == again.rows)
    if (again := _named_key([c for c in keys if _names(c, _THEIRS)])) is not None:
        return _repeating(again)
    for c in [c for c in keys if _names(c, ("id", "key"))][:2]:
        if _unique(c):
            return _Person(c.name, "every row has its own, so each row is taken for a person; it is not released")
    if (again := _named_key(keys)) is not None:
        return _repeating(again)
    why = "no column tells persons apart, so each row is taken for another person; name the person key if there is one"
    return _Person(None, why)


def _repeating(key: ColumnFacts) -> _Person:
    none = "" if key.there == key.rows else "; rows without one are left out"
    why = (
        f"its name says key and its values repeat, so rows that share one may be a person's, whom k counts once{none}; "
        "if they are not, name the person key, or where each row is another person, write rows_are_persons = true"
    )
    return _Person(key.name, why, many=True, known=key.there == key.rows)


def _named_key(keys: Sequence[ColumnFacts]) -> ColumnFacts | None:
    """Of the columns that are called a key and repeat, the one with most values; but for keys of what persons share.

    Rows of a long table, of measurements, taken for persons would make k a count of rows.
    """
    may = [c for c in keys if _names(c, ("id", "key")) and (_names(c, _THEIRS) or not _names(c, _SHARED))]
    may = [c for c in may if not says_category(c.name)]
    return max((c for c in may if LEAST_AGAIN < c.different < c.there), key=lambda c: c.different, default=None)


def _order(facts: TableFacts, person: str | None) -> tuple[str, ...]:
    """Columns by which a person's first row is found: a moment where there is one, then what no two rows share."""
    moments = [c for c in facts.columns if c.kind in ("date", "timestamp") and c.there and not says_birth(c.name)]
    keys = [c for c in facts.columns if _unique(c) and c.name != person]
    fullest = sorted(moments, key=lambda c: -c.there)[:1]
    return tuple(dict.fromkeys(c.name for c in (*fullest, *keys[:1]))) or tuple(
        c.name for c in facts.columns if c.kind != "other" and c.name != person
    )


def _unique(c: ColumnFacts) -> bool:
    """Whether a column is there in each row and nowhere twice."""
    return c.rows > 0 and c.different == c.there == c.rows


def _born(c: ColumnFacts, whole: bool) -> Proposal | None:
    """What is said of a column for its name's sake: parts of a date of birth, and that date beside its year."""
    if c.there and says_part_of_birth(c.name):
        return _left_out(c, "beside the year it tells the date of birth")
    moment = c.kind in ("date", "timestamp") or c.column.type.startswith("TIMESTAMP")
    if whole and moment and says_birth(c.name):
        return _left_out(c, "another column has the year of birth, of which this tells the day")
    return None


def _column(c: ColumnFacts, person: str | None, *, many: bool) -> Proposal:
    """What to say of one column, were it alone."""
    if c.name == person:
        why = "never released, nor anything in its place" if many else "pseudonym = true releases a keyed hash of it"
        return Proposal(c.name, {"role": "identifying"}, f"the person key; {why}")
    if c.there == 0:
        return _left_out(c, "holds nothing")
    if c.different <= 1 and c.kind != "other":
        return _left_out(c, "holds one value only, which is that of everybody")
    if is_death_date(c):
        why = "Safe Harbor (C) a date of death, which notices tell; shifted it would tell the shift; never released"
        return Proposal(c.name, {"role": "identifying"}, why)
    if c.kind == "text" and c.column.type.startswith("TIMESTAMP"):
        return _left_out(
            c, f"Safe Harbor (C) a date, of type {c.column.shown_type}; cast it to TIMESTAMP in a source query"
        )
    found = find_column(c)
    if found is not None and found.role != "quasi-identifying":
        return _hidden(c, found)
    if c.kind == "other":
        return _left_out(c, f"cannot be compared ({c.column.shown_type}); cast it in a source query")
    if says_secret(c.name) and not (found and c.kind in ("date", "timestamp")):
        return _sensitive(c)
    if c.kind in ("date", "timestamp") and not says_birth(c.name):
        return _event(c, person, many=many)
    return _known(c, found)


def _hidden(c: ColumnFacts, found: Finding) -> Proposal:
    title = "" if found.letter == "R" else f" {found.kind}"
    safe = f"Safe Harbor ({found.letter}){title}" if found.letter else found.kind
    return Proposal(c.name, {"role": found.role}, f"{safe}: {found.why}; never released")


def _harboured(c: ColumnFacts, draft: Proposal) -> Proposal:
    """Under Safe Harbor nothing of the 18 kinds goes out at any level, but ages, from 90 on as 90.

    Its role is then identifying, also where it was to be left out: as nothing else may it be taken in again.
    """
    found = find_column(c)
    if found is None or draft.role in ("identifying", "free-text") or "top_code" in draft.keys:
        return draft
    return Proposal(c.name, {"role": "identifying"}, f"Safe Harbor ({found.letter}) {found.kind}: {found.why}")


def _left_out(c: ColumnFacts, why: str) -> Proposal:
    return Proposal(c.name, {"role": "insensitive"}, f"{why}; left out", released=False)


def _sensitive(c: ColumnFacts) -> Proposal:
    if c.uniqueness > 0.5 and c.there >= 20:
        why = "its name says that it is sensitive, but most rows have a value of their own, which finds the person"
        return replace(_left_out(c, why), keys={"role": "sensitive"})
    return Proposal(
        c.name, {"role": "sensitive"}, "its name says that nobody should learn it of a person; as in the source"
    )


def _event(c: ColumnFacts, person: str | None, *, many: bool) -> Proposal:
    if many:
        return _left_out(c, "Safe Harbor (C) a date; a common shift would link the rows of one person")
    if person is None:
        return _left_out(c, "Safe Harbor (C) a date, which only a table with a person key can shift")
    why = "Safe Harbor (C) a date: moved by a secret number of days a person; intervals stay, and are fingerprints"
    return Proposal(c.name, {"role": "insensitive", "shift": "person"}, why)


def _known(c: ColumnFacts, found: Finding | None) -> Proposal:
    """A column that a stranger may know: quasi-identifying; its hierarchy is sought when it is chosen."""
    many = c.kind == "text" and c.uniqueness > 0.7 and c.there >= 20 and not is_text_age(c)
    if c.different > MOST_VALUES or many:
        return _left_out(c, "has too many different values; make it coarser in a source query")
    keys: dict[str, object] = {"role": "quasi-identifying"}
    top = _age_top(c)
    if top is not None:
        keys["top_code"] = top
    safe = f"Safe Harbor ({found.letter}) {found.kind}; " if found else ""
    pooled = "ages over 89 are one; " if top is not None or is_text_age(c) else ""
    return Proposal(c.name, keys, f"{safe}{pooled}", rank=_rank(c))


def _fitted(chosen: Sequence[Proposal], facts: TableFacts, engine: Engine) -> list[Proposal]:
    """The proposals, the quasi-identifying columns among them with the hierarchies that fit."""
    sought = [
        (place, Sought(c, _top(p)))
        for place, (p, c) in enumerate(zip(chosen, facts.columns, strict=True))
        if p.role == "quasi-identifying" and p.released
    ]
    found = list(chosen)
    fits = fit_all([asked for _, asked in sought], facts.relation, engine)
    for (place, _), (hierarchy, why, sure) in zip(sought, fits, strict=True):
        keys = {**found[place].keys, "hierarchy": hierarchy, **({} if sure else {"uncovered": "top"})}
        found[place] = replace(found[place], keys=keys, why=f"{found[place].why}{why}")
    return found


def _with_codes(chosen: Sequence[Proposal], facts: TableFacts, engine: Engine) -> Iterator[Proposal]:
    """The proposals, and of columns of codes the hierarchy that reads them: taken, or told where the role has none."""
    asked = [c for p, c in zip(chosen, facts.columns, strict=True) if _may_be_coded(p)]
    found = find_coded(asked, facts.parts[-1], facts.relation, engine) if asked else {}
    for p in chosen:
        coded = found.get(p.name)
        if coded is None:
            yield p
        elif p.role == "quasi-identifying" and p.released and p.keys.get("hierarchy") == {"suppress": True}:
            keys = {k: v for k, v in p.keys.items() if k not in ("hierarchy", "uncovered")}
            yield replace(p, keys={**keys, **coded.keys}, why=p.why.replace("its values, or *", coded.told))
        elif p.role in ("sensitive", "quasi-identifying", "insensitive"):
            yield replace(p, why=f"{p.why}; codes: {coded.told}")
        else:
            yield p


def _may_be_coded(p: Proposal) -> bool:
    return p.role not in ("identifying", "free-text")


def _top(proposal: Proposal) -> int | None:
    top = proposal.keys.get("top_code")
    return top if isinstance(top, int) else None


def _rank(c: ColumnFacts) -> float:
    """Smaller for what strangers rather know; then for fewer values."""
    words = {*words_of(c.name), *spelt(c.name)}
    place = next((i for i, group in enumerate(_RANKED) if any(w in words for w in group)), len(_RANKED))
    return place + min(c.different, MOST_VALUES) / (MOST_VALUES + 1)


def _names(c: ColumnFacts, words: Sequence[str]) -> bool:
    return any(w in words for w in (*words_of(c.name), *spelt(c.name)))


def _age_top(c: ColumnFacts) -> int | None:
    """Ages over 89 are pooled, whatever the table holds today."""
    number = c.kind in ("integer", "float", "number")
    return AGE_TOP if number and says_age(c.name) and (c.high or 0) <= 400 else None


def _choose(drafts: Sequence[Proposal]) -> list[Proposal]:
    """The columns that strangers rather know stay quasi-identifying; the others are left out."""
    ranked = sorted((d for d in drafts if d.role == "quasi-identifying"), key=lambda d: d.rank)
    beyond = {d.name for d in ranked[MOST_QIS:]}
    why = f"not among the {MOST_QIS} columns that strangers rather know; left out until it is given a role"
    return [replace(d, why=why, released=False) if d.name in beyond else d for d in drafts]


def _spare(chosen: Sequence[Proposal], facts: TableFacts) -> Iterator[Proposal]:
    """A release needs a quasi-identifying column: where none was found, the one that tells the least is.

    Raises
    ------
    JobError
        If there is no column that could be.
    """
    if any(p.role == "quasi-identifying" and p.released for p in chosen):
        yield from chosen
        return
    able = [
        (p, c)
        for p, c in zip(chosen, facts.columns, strict=True)
        if c.kind != "other" and p.role in ("insensitive", "sensitive")
    ]
    if not able:
        raise JobError("TABLE: every column identifies by itself or cannot be compared: there is nothing to generalise")
    spared = min(able, key=lambda pair: (pair[0].released, pair[1].different))[0].name
    why = "a release needs a quasi-identifying column; this one tells the least"
    keys = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    for p in chosen:
        yield Proposal(p.name, keys, why) if p.name == spared else p


def _diversity(
    columns: Sequence[Proposal], facts: TableFacts, engine: Engine, many: str | None
) -> tuple[str, int] | None:
    """The least l, 2, for the first sensitive column that has values enough.

    Parameters
    ----------
    many
        The person key where persons have several rows: a value that all of them have fails l in every class.
    """
    for p, c in zip(columns, facts.columns, strict=True):
        if not (p.released and p.role == "sensitive" and c.different >= 3 and "shift" not in p.keys):
            continue
        if many is None or not _had_by_all(facts, engine, many, c.name):
            return p.name, 2
    return None


def _had_by_all(facts: TableFacts, engine: Engine, person: str, name: str) -> bool:
    key = column(person, "s")
    statement = render("insight/count_holders", source=facts.relation, person=key, value=column(name, "s"))
    row = engine.query(statement).to_pylist()[0]
    return int(row["most"] or 0) >= int(row["persons"])
