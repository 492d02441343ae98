"""The numbers behind `patients`: rough guesses at how often a word occurs, given the words before it.

Weights need not add up to 1. A word that a line leaves out does not occur there. `NULL` words become NULL.
"""

from __future__ import annotations

ETHNICITIES = {
    "WHITE": 70.0,
    "BLACK/AFRICAN AMERICAN": 9.5,
    "UNKNOWN/NOT SPECIFIED": 8.0,
    "HISPANIC OR LATINO": 3.5,
    "ASIAN": 3.5,
    "OTHER": 3.0,
    "UNABLE TO OBTAIN": 1.5,
    "ASIAN - CHINESE": 0.7,
    "PATIENT DECLINED TO ANSWER": 1.0,
}

LANGUAGES = ("ENGL", "SPAN", "RUSS", "PTUN", "CANT", "PORT", "CAPE", "MAND", "HAIT", "ITAL", "VIET", "GREE")
_MOSTLY_ENGLISH = {"ENGL": 90.0, "RUSS": 4.0, "PTUN": 2.0, "ITAL": 1.5, "PORT": 1.0, "GREE": 0.8, "SPAN": 0.7}
LANGUAGE_BY_ETHNICITY = (
    _MOSTLY_ENGLISH,
    {"ENGL": 85.0, "HAIT": 6.0, "CAPE": 6.0, "PTUN": 2.0, "SPAN": 1.0},
    _MOSTLY_ENGLISH,
    {"ENGL": 38.0, "SPAN": 58.0, "PTUN": 2.0, "PORT": 2.0},
    {"ENGL": 55.0, "CANT": 15.0, "MAND": 15.0, "VIET": 15.0},
    _MOSTLY_ENGLISH,
    _MOSTLY_ENGLISH,
    {"ENGL": 30.0, "CANT": 45.0, "MAND": 25.0},
    _MOSTLY_ENGLISH,
)
"""One line per word of ETHNICITIES."""

RELIGIONS = (
    *("CATHOLIC", "NOT SPECIFIED", "UNOBTAINABLE", "PROTESTANT QUAKER", "JEWISH", "OTHER", "EPISCOPALIAN"),
    *("GREEK ORTHODOX", "CHRISTIAN SCIENTIST", "BUDDHIST", "MUSLIM", "JEHOVAH'S WITNESS", "UNITARIAN-UNIVERSALIST"),
    *("HINDU", "ROMANIAN EAST. ORTH", "7TH DAY ADVENTIST", "BAPTIST", "NULL"),
)
_WEST = dict(
    zip(RELIGIONS, (36, 20, 14, 12, 10, 4, 1.3, 0.9, 0.9, 0.2, 0.3, 0.3, 0.3, 0, 0.3, 0.1, 0.1, 1), strict=True)
)
_AFRICAN = _WEST | {"PROTESTANT QUAKER": 20.0, "JEHOVAH'S WITNESS": 3.0, "7TH DAY ADVENTIST": 3.0, "BAPTIST": 3.0}
_LATIN = _WEST | {"CATHOLIC": 65.0, "JEWISH": 1.0, "PROTESTANT QUAKER": 6.0}
_EAST = {"NOT SPECIFIED": 30.0, "UNOBTAINABLE": 15.0, "BUDDHIST": 16.0, "OTHER": 12.0, "CATHOLIC": 12.0} | {
    "HINDU": 8.0,
    "MUSLIM": 3.0,
    "PROTESTANT QUAKER": 6.0,
    "NULL": 1.0,
}
RELIGION_BY_ETHNICITY = (_WEST, _AFRICAN, _WEST, _LATIN, _EAST, _WEST, _WEST, _EAST, _WEST)
"""One line per word of ETHNICITIES."""

MARITALS = ("MARRIED", "SINGLE", "WIDOWED", "DIVORCED", "SEPARATED", "UNKNOWN (DEFAULT)", "LIFE PARTNER", "NULL")
_MARITAL_WEIGHTS = (
    *((0, 0, 0, 0, 0, 0, 0, 100), (0, 0, 0, 0, 0, 0, 0, 100)),
    *((6, 88, 0, 0.5, 0.3, 1, 0, 4), (9, 84, 0, 1, 0.6, 1, 0, 4)),
    *((40, 47, 0.3, 6, 1.5, 1, 0.3, 4), (44, 40, 0.6, 9, 2, 1, 0.3, 4)),
    *((60, 23, 2.5, 9, 1.3, 1, 0.2, 4), (50, 22, 8, 13, 1.5, 1, 0.2, 4)),
    *((68, 12, 9, 6, 0.8, 1, 0.1, 4), (43, 13, 30, 9, 0.8, 1, 0.1, 4)),
    *((60, 9, 24, 3, 0.4, 1, 0, 4), (22, 10, 61, 3, 0.3, 1, 0, 4)),
)
MARITAL_BY_AGE_AND_GENDER = tuple(dict(zip(MARITALS, line, strict=True)) for line in _MARITAL_WEIGHTS)
"""Ages under 1, 25, 45, 65, 80, and above; men first."""

INSURANCES = ("Medicare", "Private", "Self Pay", "Government", "Medicaid")
INSURANCE_BY_AGE = (
    {"Private": 66.0, "Medicaid": 30.0, "Government": 3.0, "Self Pay": 1.0},
    {"Medicare": 2.0, "Private": 60.0, "Medicaid": 25.0, "Government": 8.0, "Self Pay": 5.0},
    {"Medicare": 8.0, "Private": 58.0, "Medicaid": 22.0, "Government": 8.0, "Self Pay": 4.0},
    {"Medicare": 19.0, "Private": 61.0, "Medicaid": 14.0, "Government": 4.0, "Self Pay": 2.0},
    {"Medicare": 87.0, "Private": 11.0, "Medicaid": 1.5, "Self Pay": 0.5},
    {"Medicare": 94.0, "Private": 5.0, "Medicaid": 0.8, "Self Pay": 0.2},
)
"""Ages under 1, 25, 45, 65, 80, and above. The order of INSURANCES lets one draw per person follow the age."""

TYPES = ("EMERGENCY", "ELECTIVE", "URGENT", "NEWBORN")
_ACUTE = {"EMERGENCY": 96.0, "URGENT": 3.0, "ELECTIVE": 1.0}
_PLANNED = {"EMERGENCY": 58.0, "ELECTIVE": 38.0, "URGENT": 4.0}
TYPE_BY_CONDITION = (*([_ACUTE] * 3), _PLANNED, *([_ACUTE] * 5), _PLANNED, _ACUTE)
"""One line per condition (`conditions.CONDITIONS`); heart surgery and cancer are often planned."""

LOCATIONS = (
    *("EMERGENCY ROOM ADMIT", "PHYS REFERRAL/NORMAL DELI", "TRANSFER FROM HOSP/EXTRAM"),
    *("CLINIC REFERRAL/PREMATURE", "TRANSFER FROM SKILLED NUR"),
)
LOCATION_BY_TYPE = (
    dict(zip(LOCATIONS, (62, 2, 20, 15, 1), strict=True)),
    dict(zip(LOCATIONS, (0, 96, 2, 2, 0), strict=True)),
    dict(zip(LOCATIONS, (2, 32, 60, 6, 0), strict=True)),
    dict(zip(LOCATIONS, (0, 68, 2, 30, 0), strict=True)),
)
"""One line per word of TYPES."""

DISCHARGES = (
    *("HOME", "HOME HEALTH CARE", "SNF", "REHAB/DISTINCT PART HOSP", "LONG TERM CARE HOSPITAL", "HOSPICE-HOME"),
    *("SHORT TERM HOSPITAL", "DEAD/EXPIRED"),
)
DISCHARGES_BY_AGE = (
    dict(zip(DISCHARGES, (80, 15, 0, 0, 0, 0, 5, 0), strict=True)),
    dict(zip(DISCHARGES, (55, 25, 4, 8, 4, 0.3, 3, 0), strict=True)),
    dict(zip(DISCHARGES, (34, 30, 13, 14, 5, 1, 2, 0), strict=True)),
    dict(zip(DISCHARGES, (14, 27, 34, 15, 5, 3, 1, 0), strict=True)),
)
"""Ages under 1, 50, 75, and above."""
