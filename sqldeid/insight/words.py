"""The words of a column's name, in the spellings and languages that clinical tables use, and what they say of it."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_PARTS = frozenset(
    "patient person subject unique health system unit stay icu hosp hospital ward admission admit admitted discharge "
    "disch time date datetime day month year of birth death dead died offset source location status type visit number "
    "height weight dx diagnosis apache gender sex race ethnicity age id pid first last zip city provider care site "
    "concept value encounter hadm user record case code patienten pat fall nummer".split()
)
"""Of names that are written in one word, as eICU's are: ``patientunitstayid``."""

_SHORTEST = 5
"""Characters of the shortest name that is split."""

AGES = ("age", "alter", "edad", "eta", "idade", "leeftijd", "alder", "wiek")
YEARS = ("year", "jahr", "annee", "ano", "anno", "jaar", "yob", "geburtsjahr", "jahrgang", "yod")
_BIRTHS = ("birth", "born", "dob", "geburt", "naissance", "nacimiento", "nascita", "nascimento", "geboorte", "fodelse")
_PARTS_OF_DATES = (
    "day month tag monat jour mois dia mes giorno mese dag maand manad geburtstag geburtsmonat mob week quarter".split()
)
_DEATHS = (
    "death deceas todes todestag todesdatum sterbe verstorb gestorb deces defun falleci muert obito decess overlij "
    "overlede sterf dodsd doedsd dodfall avliden exitus postmort zgon kuolin kuollu smrt dth mortal obituar".split()
)
"""Beginnings of words that say death; only of dates they mean the day of it."""
_WITHIN = ("death", "obito")
"""Of words written as one, as registers do: ``DTOBITO``."""
_DEATH_WORDS = frozenset("dod died dead death expired expire mort morte tod dood doden umrti yod deathdttm".split())
_LEAVING = frozenset("discharge disch discharged disposition entlassung entlass sortie alta dimissione ontslag".split())
_WHERE = frozenset(
    "location status destination type disposition place art grund ziel ort mode motivo motif destino code".split()
)
_ILLNESS = ("diagnos", "krankheit", "erkrankung", "befund", "medikament", "enfermedad", "maladie", "malattia", "ziekte")
_SENSITIVE = frozenset(
    "dx icd icd9 icd10 drg disease illness condition salary income wage hiv drug medication prescription procedure "
    "outcome expire expired died dead death mortality survival saps sofa lab result finding allergy psychiatric "
    "addiction crime score stage therapy therapie treatment symptom complication".split()
)
_CODED = frozenset(
    "concept gender sex geschlecht race ethnicity ethnic marital language religion nationality country insurance type "
    "status category class".split()
)
"""With "id" in a name they say that it is the number of a category, not of a person."""

_NUMBERED = frozenset("item itemid itemids code codes kode codigo cd ndc gsn cpt hcpcs drg loinc snomed rxnorm".split())
"""In a name they say that its numbers stand for things, so that neighbours have nothing in common."""


def words_of(name: str) -> tuple[str, ...]:
    """A name's words in lower case: ``dateOfBirth``, ``DATE_OF_BIRTH`` and ``date of birth`` are the same three."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.findall(r"[^\W\d_]+", split.casefold()))


def spelt(name: str) -> tuple[str, ...]:
    """A name's words without accents, those that are several in one taken apart: ``uniquepid`` is unique pid."""
    return tuple(part for word in words_of(name) for part in _apart(_plain(word)))


def named(name: str, known: tuple[str, ...]) -> str:
    """The longest of the known runs of words that a name holds, as it is written or taken apart; empty if none."""
    texts = [f" {' '.join(words)} " for words in (words_of(name), spelt(name))]
    return max((word for word in known if any(f" {word} " in text for text in texts)), key=len, default="")


def says_death(name: str) -> bool:
    """Whether a name speaks of death."""
    words = {_plain(w) for w in words_of(name)} | set(spelt(name))
    said = any(w in _DEATH_WORDS or w.startswith(tuple(_DEATHS)) or any(d in w for d in _WITHIN) for w in words)
    return said or words >= {"passed", "away"}


def says_birth(name: str) -> bool:
    """Whether a name speaks of birth."""
    words = {_plain(w) for w in words_of(name)} | set(spelt(name))
    return any(w in ("yob", "jahrgang", "mob") or any(b in w for b in _BIRTHS) for w in words)


def says_year(name: str) -> bool:
    """Whether a name says that its numbers are years."""
    words = {_plain(w) for w in words_of(name)} | set(spelt(name))
    return any(w in YEARS or w.endswith(("jahr", "jaar")) for w in words)


def says_part_of_birth(name: str) -> bool:
    """Whether a name says day or month of birth: beside the year they tell the date."""
    return says_birth(name) and not says_year(name) and any(w in _PARTS_OF_DATES for w in spelt(name))


def says_age(name: str) -> bool:
    """Whether a name says age."""
    return any(w in AGES for w in spelt(name))


def says_category(name: str) -> bool:
    """Whether an "id" in a name is a category's."""
    return any(w in _CODED for w in spelt(name))


def says_number_of_things(name: str) -> bool:
    """Whether a name says that its numbers are codes: a band of them would put together what is not alike."""
    return says_category(name) or any(w in _NUMBERED for w in spelt(name))


def says_secret(name: str) -> bool:
    """Whether a name says that nobody should learn it of a person: illness, death, where somebody was discharged to."""
    words = set(spelt(name)) | {_plain(w) for w in words_of(name)}
    left = any(w in _LEAVING for w in words) and any(w in _WHERE for w in words)
    left |= any(w.startswith("entlassungs") and w.endswith(("art", "grund", "ort", "ziel", "status")) for w in words)
    ill = any(w in _SENSITIVE or any(i in w for i in _ILLNESS) for w in words)
    return left or ill or says_death(name)


def _plain(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.replace("ø", "o").replace("ß", "ss"))
    return "".join(c for c in decomposed if not unicodedata.combining(c))


@lru_cache(maxsize=4096)
def _apart(word: str) -> tuple[str, ...]:
    """A word as the known ones that make it up, the fewest there are; itself where there are none."""
    if word in _PARTS or len(word) < _SHORTEST or len(word) > 64:
        return (word,)
    best: list[tuple[str, ...] | None] = [(), *([None] * len(word))]
    for end in range(1, len(word) + 1):
        for start in range(end):
            before, part = best[start], word[start:end]
            if before is None or part not in _PARTS or (part == "of" and start == 0):
                continue
            known = best[end]
            if known is None or len(before) + 1 < len(known):
                best[end] = (*before, part)
    return best[-1] or (word,)
