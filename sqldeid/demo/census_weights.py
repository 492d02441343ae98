"""The numbers behind `census`: rough guesses at how often a word occurs, given the words before it.

Weights need not add up to 1. A word that a line leaves out does not occur there.
"""

from __future__ import annotations

import numpy as np

AGES = (
    *((17, 4.8), (20, 11.2), (25, 13.0), (30, 13.2), (35, 13.1), (40, 11.4), (45, 9.7), (50, 7.1), (55, 5.4)),
    *((60, 4.3), (65, 2.5), (70, 1.5), (75, 0.8), (80, 0.4), (85, 0.2)),
)
"""First year of a band, and its weight; the last band ends at 90."""

RACE = {"White": 0.85, "Black": 0.10, "Asian-Pac-Islander": 0.03, "Amer-Indian-Eskimo": 0.01, "Other": 0.01}

COUNTRIES = (
    *("United-States", "Mexico", "?", "Philippines", "Germany", "Canada", "Puerto-Rico", "El-Salvador", "India"),
    *("Cuba", "England", "Jamaica", "South", "China", "Italy", "Dominican-Republic", "Vietnam", "Guatemala", "Japan"),
    *("Poland", "Columbia", "Taiwan", "Haiti", "Iran", "Portugal", "Nicaragua", "Peru", "Greece", "France", "Ecuador"),
    *("Ireland", "Hong", "Cambodia", "Trinadad&Tobago", "Laos", "Thailand", "Yugoslavia", "Hungary", "Honduras"),
    *("Scotland", "Outlying-US(Guam-USVI-etc)", "Holand-Netherlands"),
)

_EUROPE = {
    "Germany": 4.5,
    "England": 3.0,
    "Italy": 2.5,
    "Poland": 2.0,
    "Portugal": 1.3,
    "Greece": 1.0,
    "France": 1.0,
    "Ireland": 0.8,
    "Yugoslavia": 0.6,
    "Hungary": 0.5,
    "Scotland": 0.4,
    "Holand-Netherlands": 0.1,
}
_LATIN = {
    "Mexico": 18.0,
    "Puerto-Rico": 3.0,
    "El-Salvador": 3.0,
    "Cuba": 2.8,
    "Guatemala": 1.8,
    "Columbia": 1.6,
    "Nicaragua": 1.0,
    "Peru": 0.9,
    "Dominican-Republic": 0.9,
    "Ecuador": 0.8,
    "Honduras": 0.4,
}
_CARIBBEAN = {"Jamaica": 22.0, "Haiti": 11.0, "Trinadad&Tobago": 5.0, "Dominican-Republic": 6.0, "Honduras": 1.0}
_ASIA = {
    "Philippines": 190.0,
    "India": 95.0,
    "China": 75.0,
    "South": 75.0,
    "Vietnam": 65.0,
    "Japan": 45.0,
    "Taiwan": 50.0,
    "Hong": 20.0,
    "Cambodia": 19.0,
    "Laos": 18.0,
    "Thailand": 17.0,
    "Iran": 12.0,
}
COUNTRY_BY_RACE = (
    {"United-States": 915.0, "?": 14.0, "Canada": 4.5, "Iran": 1.3, "Outlying-US(Guam-USVI-etc)": 0.2}
    | {"India": 0.4, "South": 0.2, "Japan": 0.2}
    | _EUROPE
    | _LATIN,
    {"United-States": 915.0, "?": 25.0, "Puerto-Rico": 2.0, "England": 2.5, "Outlying-US(Guam-USVI-etc)": 1.5}
    | {"Germany": 1.5}
    | _CARIBBEAN,
    {"United-States": 280.0, "?": 60.0, "Outlying-US(Guam-USVI-etc)": 2.0} | _ASIA,
    {"United-States": 950.0, "?": 12.0, "Mexico": 22.0, "Canada": 4.0},
    {"United-States": 480.0, "?": 50.0, "India": 30.0, "Iran": 8.0}
    | {word: 9 * weight for word, weight in _LATIN.items()},
)
"""One line per word of RACE."""

MARITALS = (
    *("Never-married", "Married-civ-spouse", "Divorced", "Separated", "Widowed", "Married-spouse-absent"),
    "Married-AF-spouse",
)
_MARITAL_WEIGHTS = (
    *((970, 22, 3, 3, 0, 4, 1), (820, 145, 15, 10, 0, 11, 1), (365, 520, 80, 20, 1, 12, 1)),
    *((145, 680, 140, 22, 4, 12, 0), (70, 755, 130, 20, 9, 11, 0), (50, 800, 90, 16, 30, 10, 0)),
    (50, 775, 50, 10, 105, 10, 0),
    *((945, 30, 8, 10, 0, 10, 2), (770, 120, 50, 32, 2, 20, 3), (420, 225, 235, 70, 10, 20, 2)),
    *((205, 225, 395, 95, 40, 24, 1), (120, 225, 420, 70, 130, 20, 0), (100, 215, 285, 50, 325, 20, 0)),
    (130, 160, 150, 20, 525, 10, 0),
)
MARITAL_BY_SEX_AND_AGE = tuple(dict(zip(MARITALS, line, strict=True)) for line in _MARITAL_WEIGHTS)
"""Men first; ages under 20, 25, 35, 45, 55, 65, and above."""

RELATIONSHIPS = ("Husband", "Wife", "Own-child", "Not-in-family", "Other-relative", "Unmarried")


def _relationship_lines(spouse: float, *ages: tuple[float, float, float, float]) -> tuple[dict[str, float], ...]:
    """Lines for men and women, each for 35 and over, 25 to 34 and younger; women keep the household more often."""
    lines = []
    for word, unmarried in (("Husband", 0.4), ("Wife", 1.5)):
        for child, alone, relative, keeper in ages:
            others = {"Own-child": child, "Not-in-family": alone, "Other-relative": relative}
            lines.append({word: spouse, **others, "Unmarried": keeper * unmarried})
    return tuple(lines)


_WITH_SPOUSE = _relationship_lines(960, (3, 2, 9, 0), (8, 2, 13, 0), (40, 3, 40, 0))
RELATIONSHIP_BY_MARITAL = {
    "Married-civ-spouse": _WITH_SPOUSE,
    "Married-AF-spouse": _WITH_SPOUSE,
    "Never-married": _relationship_lines(0, (12, 66, 6, 12), (28, 56, 7, 8), (72, 20, 5, 3)),
    "Divorced": _relationship_lines(0, (5, 58, 2, 32), (13, 52, 3, 30), (30, 40, 4, 25)),
    "Separated": _relationship_lines(0, (6, 43, 5, 42), (14, 40, 7, 40), (28, 30, 9, 33)),
    "Widowed": _relationship_lines(0, (2, 54, 5, 37), (6, 40, 8, 45), (15, 35, 10, 40)),
    "Married-spouse-absent": _relationship_lines(0, (5, 52, 8, 30), (12, 48, 12, 27), (25, 40, 14, 20)),
}
"""By marital status: one line per sex and age band."""

EDUCATIONS = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"),
    *("Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"),
)
SCHOOL_YEARS = np.arange(1, 17)
"""Rank of an education, in the order of EDUCATIONS: HS-grad 9, Bachelors 13, Doctorate 16."""

_EDUCATION_WEIGHTS = (
    (0, 1, 3, 15, 30, 190, 480, 120, 110, 30, 0, 0, 0, 0, 0, 0),
    (0, 2, 3, 6, 18, 35, 110, 65, 370, 370, 5, 5, 3, 0, 0, 0),
    (1, 3, 7, 7, 13, 22, 32, 17, 330, 430, 35, 32, 68, 2, 0, 0),
    (1, 4, 11, 10, 15, 21, 28, 13, 325, 215, 46, 40, 210, 42, 12, 6),
    (2, 5, 10, 17, 13, 24, 24, 8, 315, 200, 50, 36, 180, 78, 24, 17),
    (3, 11, 17, 62, 28, 45, 30, 9, 345, 170, 30, 18, 125, 60, 24, 20),
)
EDUCATION_BY_AGE = tuple(dict(zip(EDUCATIONS, line, strict=True)) for line in _EDUCATION_WEIGHTS)
"""Ages 17, 18 to 19, 20 to 22, 23 to 34, 35 to 54, and above."""

WORKCLASSES = (
    *("Private", "Self-emp-not-inc", "Self-emp-inc", "Local-gov", "State-gov", "Federal-gov"),
    *("Without-pay", "Never-worked", "?"),
)
_WORKCLASS_AGE_WEIGHTS = (
    *((760, 15, 4, 30, 25, 4, 2.0, 3.0, 150), (800, 22, 6, 35, 50, 16, 0.3, 0.8, 85)),
    *((710, 85, 36, 70, 40, 33, 0.2, 0.0, 25), (520, 150, 55, 75, 35, 25, 1.0, 0.1, 140)),
)
WORKCLASS_BY_AGE = tuple(dict(zip(WORKCLASSES, line, strict=True)) for line in _WORKCLASS_AGE_WEIGHTS)
"""Ages under 20, 25, 60, and above."""

_WORKCLASS_EDUCATION_FACTORS = (
    *((1.05, 1.15, 0.5, 0.5, 0.4, 0.3, 2.0, 2.0, 1.6), (1.05, 1.0, 0.9, 0.8, 0.8, 1.0, 1.0, 0.6, 0.9)),
    (0.85, 0.95, 1.6, 1.9, 2.0, 1.4, 0.1, 0.0, 0.6),
)
WORKCLASS_BY_EDUCATION = tuple(dict(zip(WORKCLASSES, line, strict=True)) for line in _WORKCLASS_EDUCATION_FACTORS)
"""Factors: no diploma, high school to associate, bachelor and above."""

HOURS_BY_WORKCLASS = np.array([41.0, 44.0, 49.0, 41.0, 39.0, 42.0, 33.0, 27.0, 32.0])
"""Mean hours a week, in the order of WORKCLASSES."""

OCCUPATIONS = (
    *("Prof-specialty", "Craft-repair", "Exec-managerial", "Adm-clerical", "Sales", "Other-service"),
    *("Machine-op-inspct", "Transport-moving", "Handlers-cleaners", "Farming-fishing", "Tech-support"),
    *("Protective-serv", "Priv-house-serv", "Armed-Forces", "?"),
)
_OCCUPATION_EDUCATION_WEIGHTS = (
    (7, 190, 22, 35, 60, 210, 150, 90, 110, 60, 3, 10, 15, 0.1, 0),
    (20, 210, 75, 130, 105, 125, 105, 85, 60, 42, 16, 22, 5, 0.4, 0),
    (75, 120, 120, 185, 130, 105, 38, 38, 38, 22, 55, 32, 4, 0.4, 0),
    (275, 45, 255, 92, 145, 32, 13, 12, 10, 15, 45, 20, 1.5, 0.3, 0),
    (610, 14, 225, 25, 60, 10, 4, 3, 3, 8, 22, 8, 0.5, 0.3, 0),
)
OCCUPATION_BY_EDUCATION = tuple(dict(zip(OCCUPATIONS, line, strict=True)) for line in _OCCUPATION_EDUCATION_WEIGHTS)
"""No diploma, high school, some college or associate, bachelor, above."""

OCCUPATION_BY_SEX = {
    "Craft-repair": (1.5, 0.12),
    "Transport-moving": (1.45, 0.14),
    "Farming-fishing": (1.4, 0.15),
    "Handlers-cleaners": (1.3, 0.35),
    "Protective-serv": (1.3, 0.3),
    "Armed-Forces": (1.5, 0.1),
    "Adm-clerical": (0.48, 2.1),
    "Other-service": (0.68, 1.7),
    "Priv-house-serv": (0.1, 3.0),
    "Machine-op-inspct": (1.1, 0.8),
    "Exec-managerial": (1.05, 0.9),
    "Prof-specialty": (0.95, 1.15),
}
"""Factors for men and women; 1 where a word is left out."""

OCCUPATION_BY_WORKCLASS = {
    ("Priv-house-serv", "Private"): 1.0,
    ("Armed-Forces", "Federal-gov"): 25.0,
    ("Farming-fishing", "Self-emp-not-inc"): 6.0,
    ("Farming-fishing", "Without-pay"): 25.0,
    ("Exec-managerial", "Self-emp-inc"): 2.5,
    ("Sales", "Self-emp-inc"): 2.0,
    ("Sales", "Local-gov"): 0.05,
    ("Sales", "State-gov"): 0.05,
    ("Sales", "Federal-gov"): 0.1,
    ("Protective-serv", "Local-gov"): 9.0,
    ("Protective-serv", "State-gov"): 6.0,
    ("Machine-op-inspct", "Local-gov"): 0.1,
    ("Machine-op-inspct", "State-gov"): 0.1,
    ("Prof-specialty", "Local-gov"): 2.2,
    ("Prof-specialty", "State-gov"): 2.0,
    ("Adm-clerical", "Federal-gov"): 2.5,
}
"""Factors for an occupation in a workclass; 1 where a pair is left out (but see `census._usual`)."""

OCCUPATION_PAY = np.array([0.6, 0.2, 0.95, 0.0, 0.4, -0.9, -0.15, 0.0, -0.6, -1.0, 0.65, 0.5, -2.5, 0.3, -0.5])
"""What an occupation adds to the log odds of the higher salary class, in the order of OCCUPATIONS."""
