"""Invented notes of nurses and doctors, by a seeded generator; what each tells of its patient is known.

No sentence is of a real note. A note is a greeting, a few sentences of care, and now and then a sentence that tells an
attribute. Among the sentences of care are some that hold the letters of a keyword and tell nothing: "the" has "he",
"Gayle" has "gay", a white count is no white man.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

ATTRIBUTES = ("age", "sex", "ethnicity", "religion", "orientation")
RATES = {"age": 0.25, "sex": 0.45, "ethnicity": 0.02, "religion": 0.01, "orientation": 0.004}
"""Share of notes that tell an attribute: our guess, not the source's counts."""

SEXES = (("he", "man", "male"), ("she", "woman", "female"))
ETHNICITIES = ("white", "black", "asian", "hispanic", "indian")
RELIGIONS = ("Catholic", "Jewish", "Muslim", "Protestant", "Buddhist")
ORIENTATIONS = ("heterosexual", "gay", "lesbian", "homosexual")

OPENINGS = {
    "Nursing": (
        *(
            "Nursing progress note.",
            "Neuro: alert and oriented.",
            "CV: sinus rhythm, no ectopy noted.",
            "Resp: on room air.",
        ),
        *("Shift summary:", "Pt received awake at start of shift.", "See flowsheet for all data."),
    ),
    "Physician": (
        "TITLE: Physician progress note",
        "Chief complaint: shortness of breath.",
        "HPI: admitted overnight.",
    ),
}
CARE = (
    *("Lungs clear on both sides.", "Vital signs stable overnight.", "Skin intact, turned every two hours."),
    *("Foley draining clear yellow urine.", "Pain well controlled on current regimen.", "Diet advanced as tolerated."),
    *("Lasix given, good effect.", "Family in to visit.", "Plan: continue present management.", "Repeat labs in AM."),
    *("No fever, cultures pending.", "Encouraged cough and deep breathing.", "Dressing changed, no drainage."),
)
DECOYS = (
    *(
        "Monitor the white count.",
        "Discussed with Dr. Gayle.",
        "The heparin drip was held.",
        "Chest film shows no change.",
    ),
    *("Transferred from Catholic Medical Center.", "Wound edges pink, black eschar debrided.", "Head of bed raised."),
    *("Insulin (human) given per scale.", "Check the urinalysis.", "Mother called for an update.", "White sputum."),
)
"""Sentences that hold letters or words of a keyword and tell no attribute."""


@dataclass(frozen=True)
class Notes:
    """Invented notes: a database, its table, and its rows by attribute told."""

    database: Path
    table: str
    rows: int
    told: dict[str, int]


def write_notes(database: Path, patients: int, notes: int, seed: int) -> Notes:
    """Write so many notes of so many patients: `subject_id`, `category`, `text`, and what is told, `tells_…`."""
    rng = np.random.default_rng(seed)
    people = _people(rng, patients)
    owners = rng.integers(0, patients, notes)
    doctors = rng.random(notes) < 0.3
    tells = {a: rng.random(notes) < RATES[a] for a in ATTRIBUTES}
    texts = []
    for i, owner in enumerate(owners):
        telling = [_tell(rng, a, people[a][owner], people["sex"][owner]) for a in ATTRIBUTES if tells[a][i]]
        for sentence in telling:
            if sentence[1]:  # it tells the sex, too
                tells["sex"][i] = True
        texts.append(_note(rng, "Physician" if doctors[i] else "Nursing", [s for s, _ in telling]))
    columns = {
        "subject_id": owners,
        "category": pa.array(np.where(doctors, "Physician", "Nursing").tolist()),
        "text": pa.array(texts),
        **{f"tells_{a}": tells[a] for a in ATTRIBUTES},
    }
    with duckdb.connect(str(database)) as connection:
        connection.register("made", pa.table(columns))
        connection.execute("CREATE TABLE main.noteevents AS SELECT * FROM made")
    return Notes(database, "main.noteevents", notes, {a: int(tells[a].sum()) for a in ATTRIBUTES})


def _people(rng: np.random.Generator, patients: int) -> dict[str, np.ndarray]:
    return {
        "age": rng.integers(18, 90, patients),
        "sex": rng.integers(0, 2, patients),
        "ethnicity": rng.choice(len(ETHNICITIES), patients, p=[0.65, 0.15, 0.08, 0.08, 0.04]),
        "religion": rng.integers(0, len(RELIGIONS), patients),
        "orientation": rng.choice(len(ORIENTATIONS), patients, p=[0.6, 0.2, 0.1, 0.1]),
    }


def _tell(rng: np.random.Generator, attribute: str, value: int, sex: int) -> tuple[str, bool]:
    """A sentence that tells an attribute, and whether it tells the sex as well."""
    pronoun, noun, adjective = SEXES[sex]
    if attribute == "age":
        return _one(
            rng, (f"{value} year old pt.", f"{value}-year-old pt with known CHF.", f"{value} yo, lives alone.")
        ), False
    if attribute == "sex":
        say = (
            f"{pronoun.capitalize()} slept in short naps.",
            f"{adjective.capitalize()} pt, no distress.",
            f"Per RN {pronoun} ate well.",
        )
        return _one(rng, say), True
    if attribute == "ethnicity":
        word = ETHNICITIES[value]
        return _one(rng, (f"{word.capitalize()} {noun} in no distress.", f"{word.capitalize()} {adjective}.")), True
    if attribute == "religion":
        word = RELIGIONS[value]
        return _one(rng, (f"{word}, asks for a chaplain.", f"Religion: {word}.", f"Observes {word} holidays.")), False
    return f"Identifies as {ORIENTATIONS[value]}.", False


def _note(rng: np.random.Generator, category: str, telling: Sequence[str]) -> str:
    care = list(rng.choice(CARE, size=rng.integers(1, 5), replace=False))
    care += list(rng.choice(DECOYS, size=rng.integers(0, 3), replace=False))
    body = [*care, *telling]
    rng.shuffle(body)
    own = f"Bed {rng.integers(1, 400)}: " if rng.random() < 0.02 else ""
    return " ".join([own + _one(rng, OPENINGS[category]), *body])


def _one(rng: np.random.Generator, choices: Sequence[str]) -> str:
    return str(choices[int(rng.integers(0, len(choices)))])
