"""An Adult-shaped census table: the words of UCI Adult, with rough numbers of our own.

Each column is drawn given those before it: sex and race, country by race, age, marital status by age and sex,
relationship by marital status, sex and age, education by age, employment by age and education, occupation by
education, sex and workclass, hours by workclass, and salary by all of them. No row or count of the original is used.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Floats, Ints
from sqldeid.demo.census_weights import (
    AGES,
    COUNTRIES,
    COUNTRY_BY_RACE,
    EDUCATION_BY_AGE,
    EDUCATIONS,
    HOURS_BY_WORKCLASS,
    MARITAL_BY_SEX_AND_AGE,
    MARITALS,
    OCCUPATION_BY_EDUCATION,
    OCCUPATION_BY_SEX,
    OCCUPATION_BY_WORKCLASS,
    OCCUPATION_PAY,
    OCCUPATIONS,
    RACE,
    RELATIONSHIP_BY_MARITAL,
    RELATIONSHIPS,
    SCHOOL_YEARS,
    WORKCLASS_BY_AGE,
    WORKCLASS_BY_EDUCATION,
    WORKCLASSES,
)
from sqldeid.demo.draw import band, draw_codes, integers, text, weight_table

SEXES = ("Male", "Female")
SALARIES = ("<=50K", ">50K")
AGE_EDGES = (20, 25, 35, 45, 55, 65)


def adult_rows(rows: int, seed: int) -> pa.Table:
    """The rows of the table `adult`, one per made person; the same seed gives the same rows.

    Parameters
    ----------
    rows
        Number of persons.
    seed
        Seed of the PCG64 generator.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    one = np.zeros(rows, dtype=np.int64)
    sex = draw_codes(rng, np.array([[0.67, 0.33]]), one)
    race = draw_codes(rng, weight_table(tuple(RACE), [RACE]), one)
    country = draw_codes(rng, weight_table(COUNTRIES, COUNTRY_BY_RACE), race)
    age = _ages(rng, rows)
    marital = draw_codes(
        rng, weight_table(MARITALS, MARITAL_BY_SEX_AND_AGE), sex * (len(AGE_EDGES) + 1) + band(age, AGE_EDGES)
    )
    relationship = _relationships(rng, sex, age, marital)
    education = draw_codes(rng, weight_table(EDUCATIONS, EDUCATION_BY_AGE), band(age, (18, 20, 23, 35, 55)))
    years = SCHOOL_YEARS[education]
    workclass = _workclasses(rng, age, years)
    occupation = _occupations(rng, sex, years, workclass)
    hours = _hours(rng, age, workclass)
    salary = _salaries(rng, age, sex, marital, years, occupation, hours)
    columns = {
        "id": integers(np.arange(1, rows + 1)),
        "age": integers(age),
        "workclass": text(WORKCLASSES, workclass),
        "education": text(EDUCATIONS, education),
        "marital-status": text(MARITALS, marital),
        "occupation": text(OCCUPATIONS, occupation),
        "relationship": text(RELATIONSHIPS, relationship),
        "race": text(tuple(RACE), race),
        "sex": text(SEXES, sex),
        "native-country": text(COUNTRIES, country),
        "hours_per_week": integers(hours),
        "salary-class": text(SALARIES, salary),
    }
    return pa.table(columns)


def _ages(rng: np.random.Generator, rows: int) -> Ints:
    """Whole years 17 to 90: a band by its weight, then any year of the band."""
    low, weight = np.array([b[0] for b in AGES]), np.array([[b[1] for b in AGES]])
    chosen = draw_codes(rng, weight, np.zeros(rows, dtype=np.int64))
    width = np.diff(np.append(low, 91))[chosen]
    return (low[chosen] + np.floor(rng.random(rows) * width)).astype(np.int64)


def _relationships(rng: np.random.Generator, sex: Ints, age: Ints, marital: Ints) -> Ints:
    weights = weight_table(RELATIONSHIPS, [row for status in MARITALS for row in RELATIONSHIP_BY_MARITAL[status]])
    young = 2 - band(age, (25, 35))  # 2 under 25, 1 under 35, 0 from 35
    return draw_codes(rng, weights, marital * 6 + sex * 3 + young)


def _workclasses(rng: np.random.Generator, age: Ints, years: Ints) -> Ints:
    by_age = weight_table(WORKCLASSES, WORKCLASS_BY_AGE)
    by_education = weight_table(WORKCLASSES, WORKCLASS_BY_EDUCATION)
    both = (by_age[:, None, :] * by_education[None, :, :]).reshape(-1, len(WORKCLASSES))
    return draw_codes(rng, both, band(age, (20, 25, 60)) * len(by_education) + band(years, (9, 13)))


def _occupations(rng: np.random.Generator, sex: Ints, years: Ints, workclass: Ints) -> Ints:
    """Occupation by education, sex and workclass; `?` exactly where nobody works or the workclass is `?`."""
    by_education = weight_table(OCCUPATIONS, OCCUPATION_BY_EDUCATION)
    by_sex = np.array([[OCCUPATION_BY_SEX.get(job, (1.0, 1.0))[s] for job in OCCUPATIONS] for s in (0, 1)])
    by_class = np.array(
        [[OCCUPATION_BY_WORKCLASS.get((job, work), _usual(job, work)) for job in OCCUPATIONS] for work in WORKCLASSES]
    )
    weights = by_education[:, None, None, :] * by_sex[None, :, None, :] * by_class[None, None, :, :]
    weights[..., OCCUPATIONS.index("?")] = weights.sum(axis=-1) == 0
    line = (band(years, (9, 10, 13, 14)) * 2 + sex) * len(WORKCLASSES) + workclass
    return draw_codes(rng, weights.reshape(-1, len(OCCUPATIONS)), line)


def _usual(job: str, work: str) -> float:
    """Most jobs are found in most workclasses; these two only where the weights name them."""
    return 0.0 if job in ("Armed-Forces", "Priv-house-serv") or work in ("?", "Never-worked") else 1.0


def _hours(rng: np.random.Generator, age: Ints, workclass: Ints) -> Ints:
    """Half of the people work forty hours; the others around the mean of their workclass, less when young or old."""
    mean = HOURS_BY_WORKCLASS[workclass] - np.array([14.0, 4.0, 0.0, 12.0])[band(age, (20, 25, 65))]
    drawn = np.clip(np.rint(rng.normal(mean, 11.0)), 1, 99).astype(np.int64)
    full = rng.random(len(age)) < np.array([0.2, 0.5, 0.52, 0.25])[band(age, (20, 25, 65))]
    return np.where(full, 40, drawn)


def _salaries(
    rng: np.random.Generator, age: Ints, sex: Ints, marital: Ints, years: Ints, occupation: Ints, hours: Ints
) -> Ints:
    """1 (over 50K) by a logistic model: married, schooled, in mid-life, long hours, pay of the occupation."""
    married = np.isin(marital, [MARITALS.index("Married-civ-spouse"), MARITALS.index("Married-AF-spouse")])
    score: Floats = (
        -2.6
        + 2.3 * married
        + 0.32 * (years - 10)
        + OCCUPATION_PAY[occupation]
        + 0.03 * (np.minimum(hours, 65) - 40)
        - 0.0022 * (np.clip(age, 17, 75) - 50.0) ** 2
        + 0.25 * (sex == 0)
    )
    return (rng.random(len(age)) < 1 / (1 + np.exp(-score))).astype(np.int64)
