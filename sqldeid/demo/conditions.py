"""Why people come to the made hospital, and the ICD-9-CM codes that go with it: rough numbers of our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CAREUNITS = ("MICU", "SICU", "CCU", "CSRU", "TSICU", "NICU")


@dataclass(frozen=True, slots=True)
class Condition:
    """What an admission is for.

    Parameters
    ----------
    word
        Free text of the column ``diagnosis``.
    frequency
        Weights for ages under 45, 65, and above.
    danger
        Added to the log odds of dying in hospital.
    units
        Weights of the ICU by care unit.
    primary
        Weights of the first diagnosis code.
    secondary
        Share of the admissions that have a further diagnosis code.
    procedures
        Share of the admissions that have a procedure code, in the usual order.
    vitals
        What is added to the level of a vital sign (`vitals.VITALS`), in its unit.
    """

    word: str
    frequency: tuple[float, float, float]
    danger: float
    units: Mapping[str, float]
    primary: Mapping[str, float]
    secondary: Mapping[str, float]
    procedures: Mapping[str, float]
    vitals: Mapping[str, float] = field(default_factory=dict)


_LINES = {"3893": 0.45, "3891": 0.25}
_VENTILATION = {"9604": 0.35, "9672": 0.22, "9671": 0.18}
_TUBE = {"966": 0.2}

CONDITIONS = (
    Condition(
        "SEPSIS",
        (9, 12, 16),
        0.9,
        {"MICU": 8, "SICU": 1.5, "CCU": 0.5},
        {"0389": 6, "03842": 2, "99591": 1, "03849": 1},
        {"99592": 0.7, "78552": 0.5, "5990": 0.4, "5849": 0.5, "51881": 0.4, "2762": 0.35, "486": 0.25, "00845": 0.1},
        _LINES | _VENTILATION | _TUBE | {"0014": 0.1, "9904": 0.2, "3995": 0.1, "3129": 0.03, "0017": 0.1},
        {"heart rate": 14, "systolic": -14, "diastolic": -8, "temperature": 0.9, "respiration": 4, "glucose": 18},
    ),
    Condition(
        "PNEUMONIA",
        (8, 9, 11),
        0.3,
        {"MICU": 8, "CCU": 1, "SICU": 1},
        {"486": 6, "48241": 2, "5070": 3},
        {"51881": 0.6, "5119": 0.25, "5849": 0.25, "0413": 0.1, "2859": 0.3},
        _VENTILATION | _LINES | _TUBE | {"3324": 0.3, "3491": 0.12, "9390": 0.2, "3129": 0.05},
        {"heart rate": 8, "temperature": 0.7, "respiration": 5, "oxygen saturation": -2},
    ),
    Condition(
        "CONGESTIVE HEART FAILURE",
        (2, 6, 11),
        0.2,
        {"CCU": 7, "MICU": 3},
        {"4280": 5, "42823": 3, "42833": 2},
        {"5849": 0.4, "42731": 0.3, "4240": 0.2, "5119": 0.2, "2761": 0.2},
        {"8872": 0.3, "3723": 0.15, "9390": 0.2, "3893": 0.2, "3764": 0.01, "8938": 0.05},
        {"respiration": 3, "oxygen saturation": -1.5, "systolic": -4},
    ),
    Condition(
        "CORONARY ARTERY DISEASE",
        (4, 20, 18),
        -1.4,
        {"CSRU": 7, "CCU": 3},
        {"41401": 7, "41071": 3, "4241": 2, "4111": 1},
        {"2851": 0.2, "42731": 0.25, "4240": 0.12, "99811": 0.05, "5119": 0.15},
        {"3615": 0.5, "3612": 0.25, "3613": 0.2, "3961": 0.65, "8856": 0.4, "3722": 0.35, "3521": 0.12}
        | {"0066": 0.2, "3606": 0.08, "3607": 0.14, "0045": 0.12, "0040": 0.12, "9904": 0.2, "8872": 0.2, "3522": 0.03},
        {"heart rate": -3, "glucose": 12},
    ),
    Condition(
        "INTRACRANIAL HEMORRHAGE",
        (6, 7, 9),
        0.7,
        {"SICU": 6, "MICU": 2, "TSICU": 2},
        {"431": 5, "430": 3, "43491": 3, "4321": 2},
        {"51881": 0.3, "78039": 0.2, "3484": 0.2, "34290": 0.2},
        _VENTILATION | {"0131": 0.15, "0124": 0.12, "0221": 0.2, "8841": 0.35, "4311": 0.15, "3891": 0.3, "0331": 0.1},
        {"systolic": 14, "diastolic": 6, "heart rate": -4},
    ),
    Condition(
        "GASTROINTESTINAL BLEED",
        (7, 9, 10),
        -0.4,
        {"MICU": 9, "SICU": 1},
        {"5789": 4, "53240": 2, "4560": 2, "56212": 2},
        {"2851": 0.7, "5712": 0.25, "5849": 0.2, "07054": 0.1},
        {"4513": 0.5, "4516": 0.15, "4443": 0.25, "9904": 0.75, "9907": 0.3, "9905": 0.12, "5491": 0.1, "3893": 0.25},
        {"heart rate": 7, "systolic": -9},
    ),
    Condition(
        "S/P FALL",
        (16, 7, 6),
        -0.2,
        {"TSICU": 7, "SICU": 3},
        {"85221": 4, "80701": 3, "8052": 2, "86121": 1},
        {"E8889": 0.5, "E8120": 0.25, "2851": 0.2, "51881": 0.2, "30500": 0.2},
        _VENTILATION | {"0139": 0.1, "3404": 0.2, "7935": 0.12, "8051": 0.03, "8102": 0.04, "8108": 0.05, "8703": 0.4},
        {"heart rate": 4},
    ),
    Condition(
        "ABDOMINAL PAIN",
        (9, 7, 6),
        0.1,
        {"SICU": 5, "MICU": 4, "TSICU": 1},
        {"5770": 5, "5722": 3, "5761": 3},
        {"5849": 0.35, "2767": 0.2, "5712": 0.3, "99592": 0.2, "2875": 0.2},
        _LINES | {"5459": 0.08, "5491": 0.25, "5011": 0.06, "9915": 0.2, "9604": 0.15, "9671": 0.1, "9907": 0.15},
        {"heart rate": 8, "temperature": 0.4},
    ),
    Condition(
        "RESPIRATORY FAILURE",
        (6, 8, 9),
        0.5,
        {"MICU": 9, "SICU": 1},
        {"51881": 4, "49121": 5, "51884": 2, "49390": 1},
        {"486": 0.3, "5119": 0.15, "4168": 0.15, "32723": 0.12},
        _VENTILATION | _TUBE | {"9390": 0.4, "3129": 0.1, "3324": 0.15, "4311": 0.08, "3893": 0.3},
        {"respiration": 5, "oxygen saturation": -3, "heart rate": 6},
    ),
    Condition(
        "BRAIN MASS",
        (5, 8, 6),
        -0.5,
        {"SICU": 7, "MICU": 2, "TSICU": 1},
        {"1983": 4, "1628": 3, "1970": 2, "2252": 2},
        {"3485": 0.35, "2859": 0.25, "V5865": 0.15},
        {"0159": 0.55, "0331": 0.08, "3322": 0.15, "3404": 0.08, "9925": 0.1, "0239": 0.05, "8703": 0.3},
        {"glucose": 15},
    ),
    Condition(
        "NEWBORN",
        (0, 0, 0),
        -2.0,
        {"NICU": 1},
        {"V3000": 5, "V3001": 4, "V3101": 2},
        {"V290": 0.75, "V053": 0.7, "7742": 0.4, "769": 0.15, "77081": 0.1, "76518": 0.2, "7706": 0.2},
        {"9955": 0.55, "9983": 0.35, "640": 0.2, "9671": 0.1, "9604": 0.12, "9390": 0.15, "966": 0.15},
    ),
)
"""The last one is for newborns, and only for them."""

CHRONIC = {
    "4019": (0.08, 0.4, 0.5),
    "25000": (0.04, 0.17, 0.22),
    "2724": (0.03, 0.22, 0.28),
    "42731": (0.01, 0.08, 0.28),
    "5859": (0.02, 0.08, 0.15),
    "4280": (0.01, 0.08, 0.24),
    "41400": (0.005, 0.1, 0.17),
    "2449": (0.02, 0.07, 0.13),
    "3051": (0.13, 0.14, 0.05),
    "53081": (0.06, 0.16, 0.18),
    "311": (0.09, 0.12, 0.08),
    "496": (0.01, 0.09, 0.15),
    "V4581": (0.0, 0.05, 0.1),
    "V5861": (0.01, 0.05, 0.12),
    "30393": (0.05, 0.05, 0.01),
}
"""Diagnosis code → share of persons under 45, 65, and above who have it at every admission."""
