"""The 18 kinds of identifiers of HIPAA's Safe Harbor, and a finder that says which columns may hold them.

It goes by a column's name, type, look (patterns over a sample of its values) and uniqueness, and only proposes: a
column that it passes over may still identify, and Safe Harbor also asks for the absence of actual knowledge.

Source
    45 CFR 164.514(b)(2)(i)(A)–(R); Mazzone 2019, §2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from sqldeid.engine.base import Engine
from sqldeid.insight.profile import ColumnFacts, TableFacts, profile
from sqldeid.insight.words import AGES, named, says_category, says_death, words_of

SEEN = 0.6
"""Share of a sample's values that must have a pattern."""

NEARLY_UNIQUE = 0.9
FREE_TEXT_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the 18 kinds.

    Parameters
    ----------
    letter
        Of the paragraph of the rule.
    role
        What a column of this kind becomes in a job.
    words
        Names, as words in lower case with blanks between; such a run of words in a column's name is one.
    patterns
        What values look like, by name; each matches a whole value.
    """

    letter: str
    title: str
    role: str
    words: tuple[str, ...]
    patterns: tuple[tuple[str, str], ...] = ()


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


KINDS: tuple[Kind, ...] = (
    Kind(
        "A",
        "names",
        "identifying",
        _words(
            "name, names, surname, forename, firstname, lastname, fullname, first name, last name, middle name, "
            "full name, given name, family name, maiden name, patient name, nachname, vorname, nom, prenom, initials"
        ),
    ),
    Kind(
        "B",
        "geographic subdivisions smaller than a state",
        "quasi-identifying",
        _words(
            "zip, zipcode, postal, postcode, post code, postal code, plz, street, address, addr, city, town, county, "
            "district, precinct, parish, village, municipality, latitude, longitude, lat, lon, lng, geocode, "
            "census tract"
        ),
        (("zip", r"[0-9]{5}(-[0-9]{4})?"), ("postcode", r"[A-Z]{1,2}[0-9][A-Z0-9]? ?[0-9][A-Z]{2}")),
    ),
    Kind(
        "C",
        "dates of a person (but the year), and ages over 89",
        "quasi-identifying",
        _words(
            "birth, birthdate, birthday, born, dob, geburtsdatum, death, died, deceased, dod, date, admittime, "
            "dischtime, admitted, discharged, admission date, discharge date"
        )
        + AGES,
        (("date", r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}"),),
    ),
    Kind(
        "D",
        "telephone numbers",
        "identifying",
        _words("phone, telephone, tel, mobile, cell, cellphone, telefon, handy, pager"),
        (("phone", r"(\+[0-9]{1,3}[ .-]?)?(\([0-9]{2,5}\)|[0-9]{2,5})[ ./-][0-9]{2,4}[ .-]?[0-9]{3,8}"),),
    ),
    Kind("E", "fax numbers", "identifying", _words("fax, telefax")),
    Kind(
        "F",
        "electronic mail addresses",
        "identifying",
        _words("email, e mail, mail"),
        (("mail", r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}"),),
    ),
    Kind(
        "G",
        "social security numbers",
        "identifying",
        _words("ssn, social security, sozialversicherung, nhs number, nino, insee"),
        (("ssn", r"[0-9]{3}-[0-9]{2}-[0-9]{4}"),),
    ),
    Kind("H", "medical record numbers", "identifying", _words("mrn, medical record, record number, chart number")),
    Kind(
        "I",
        "health plan beneficiary numbers",
        "identifying",
        _words(
            "beneficiary, member id, member number, policy number, insurance number, insurance id, subscriber, "
            "hicn, mbi"
        ),
    ),
    Kind(
        "J",
        "account numbers",
        "identifying",
        _words("account, iban, credit card, card number, invoice"),
        (("iban", r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}"),),
    ),
    Kind(
        "K",
        "certificate and license numbers",
        "identifying",
        _words("license, licence, certificate, passport, npi, dea"),
    ),
    Kind("L", "vehicle identifiers", "identifying", _words("vin, vehicle, plate, license plate, licence plate")),
    Kind(
        "M",
        "device identifiers and serial numbers",
        "identifying",
        _words("device id, serial, imei, udi, mac address"),
        (("mac", r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}"),),
    ),
    Kind(
        "N",
        "web addresses (URLs)",
        "identifying",
        _words("url, website, homepage, web"),
        (("url", r"(https?|ftp)://\S+|www\.\S+"),),
    ),
    Kind(
        "O",
        "internet (IP) addresses",
        "identifying",
        _words("ip, ip address, ipaddress, ipv4, ipv6"),
        (("ip", r"([0-9]{1,3}\.){3}[0-9]{1,3}|([0-9A-Fa-f]{0,4}:){3,7}[0-9A-Fa-f]{0,4}"),),
    ),
    Kind(
        "P",
        "biometric identifiers",
        "identifying",
        _words("fingerprint, biometric, voiceprint, iris, retina, genome, dna"),
    ),
    Kind("Q", "full-face photographs", "identifying", _words("photo, photograph, picture, portrait, image")),
    Kind(
        "R",
        "any other unique identifying number, characteristic or code",
        "identifying",
        _words(
            "id, uid, guid, uuid, pid, key, subject, patient id, person id, hadm id, stay id, encounter, visit id, "
            "row id, user, username, login, person source value, patient source value, patienten nr, patienten nummer, "
            "pat id, pat nr, pat nummer, fall nr, fall nummer, fall id"
        ),
        (("uuid", r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),),
    ),
)
"""Paragraphs (A) to (R)."""

AGE_LOOK = "age"
PATTERNS = {name: pattern for kind in KINDS for name, pattern in kind.patterns} | {
    AGE_LOOK: r"[^0-9A-Za-z]{0,3}[0-9]{1,3} ?([+]|[A-Za-z. ]{1,12})?"
}
"""The kinds' looks, and that of ages in text: ``72``, ``> 89``, ``90+``."""

_NARRATIVE = _words(
    "note, notes, comment, comments, remark, remarks, text, narrative, report, memo, free text, anamnesis"
)
_OF_THINGS = frozenset(
    _words(
        "drug, hospital, ward, unit, item, test, lab, procedure, product, event, department, file, table, column, care"
    )
)
"""Words before "name" that say it is no person's."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A column that may identify.

    Parameters
    ----------
    letter, kind
        Which of the 18 kinds; empty for free text, which may hold any of them.
    role
        Proposed for a job.
    why
        What spoke for it: name, look, uniqueness. No data value.
    """

    column: str
    letter: str
    kind: str
    role: str
    why: str

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def safe_harbor(table: str | None, engine: Engine) -> tuple[Finding, ...]:
    """Say which columns of a table may hold one of the 18 kinds of identifiers.

    Parameters
    ----------
    table
        As a job's ``source`` names it; None where the database has one table only.

    Cost: two passes over the table.
    """
    return find(profile(table, engine, PATTERNS))


def find(facts: TableFacts) -> tuple[Finding, ...]:
    """The findings on a table whose facts are known, in the order of its columns; at most one a column."""
    return tuple(found for c in facts.columns if (found := find_column(c)) is not None)


def find_column(facts: ColumnFacts) -> Finding | None:
    """What a column may hold: by its look first, then by its name, then by being unique.

    Of all looks a telephone number's is the least strict: a key's name comes before it.
    """
    named_ones = list(_by_name(facts))
    keys = [f for f in named_ones if f.letter == "R"] if named_ones and named_ones[0].letter == "R" else []
    found = (*_by_look(facts, phones=False), *keys, *_by_look(facts, phones=True), *named_ones)
    return next(iter((*found, *_by_uniqueness(facts))), None)


def _by_look(facts: ColumnFacts, *, phones: bool) -> Iterator[Finding]:
    for kind in KINDS:
        for name, _ in kind.patterns if (kind.letter == "D") is phones else ():
            share = facts.looks.get(name, 0.0)
            if share >= SEEN and not (name == "zip" and not (named(facts.name, kind.words) or facts.kind == "text")):
                yield _finding(facts, kind, f"{_most(share)} of its values look like it ({name})")


def _most(share: float) -> str:
    return "all" if share == 1 else "most"


def _by_name(facts: ColumnFacts) -> Iterator[Finding]:
    if facts.kind in ("text", "other") and named(facts.name, _NARRATIVE):
        yield Finding(facts.name, "", "free text", "free-text", "its name; free text may hold any of the 18 kinds")
    matched = [(kind, word) for kind in KINDS if (word := named(facts.name, kind.words))]
    for kind, word in sorted(matched, key=lambda m: (m[0].letter == "R", -len(m[1].split()))):
        thing = kind.letter == "A" and any(w in _OF_THINGS for w in words_of(facts.name))
        dated = kind.letter == "C" and not _dated(facts, word)
        category = kind.letter == "R" and word == "id" and says_category(facts.name)
        if not (thing or dated or category or (facts.kind == "boolean")):
            yield _finding(facts, kind, f'the word "{word}" in its name')


def _dated(facts: ColumnFacts, word: str) -> bool:
    """A date is a date, an age a number: "death" in the name of a flag is none."""
    if word in AGES:
        return facts.different > 2 and (facts.kind in ("integer", "float", "number") or is_text_age(facts))
    return facts.kind in ("date", "timestamp") or (facts.kind in ("integer", "text") and facts.different > 20)


def is_text_age(facts: ColumnFacts) -> bool:
    """Whether a text column holds ages, some of them as "over 89"."""
    return facts.kind == "text" and bool(named(facts.name, AGES)) and facts.looks.get(AGE_LOOK, 0.0) >= SEEN


def is_death_date(facts: ColumnFacts) -> bool:
    """Whether a column holds dates of death: by its name, in several languages, and by holding dates."""
    moments = facts.kind in ("date", "timestamp") or facts.column.type.startswith(("TIMESTAMP", "DATE"))
    return says_death(facts.name) and (moments or facts.looks.get("date", 0.0) >= SEEN)


def _by_uniqueness(facts: ColumnFacts) -> Iterator[Finding]:
    if facts.kind in ("date", "timestamp") or facts.column.type.startswith("TIMESTAMP"):
        kind = next(k for k in KINDS if k.letter == "C")
        yield _finding(facts, kind, f"its type ({facts.column.shown_type})")
    elif facts.kind == "text" and facts.length >= FREE_TEXT_CHARACTERS and facts.uniqueness >= 0.2:
        yield Finding(facts.name, "", "free text", "free-text", "its values are long, and mostly different")
    elif facts.kind in ("text", "integer", "number") and facts.there >= 20 and facts.uniqueness >= NEARLY_UNIQUE:
        kind = next(k for k in KINDS if k.letter == "R")
        yield _finding(facts, kind, "nearly every row has a value of its own")


def _finding(facts: ColumnFacts, kind: Kind, why: str) -> Finding:
    return Finding(facts.name, kind.letter, kind.title, kind.role, why)
