"""Cases of the preset's templates: a small MIMIC-III with every rule of the mortality benchmark."""

from __future__ import annotations

from sqldeid.series.benchmark import NUMBER
from sqldeid.sql import column, literal, table_name
from tests.templates.cases import Case

OUT = table_name("o'u\"t")
STAYS_SETUP = (
    "CREATE TABLE icu (icustay_id INTEGER, subject_id INTEGER, hadm_id INTEGER, intime TIMESTAMP, los NUMERIC(8, 4), "
    "first_wardid INTEGER, last_wardid INTEGER, first_careunit VARCHAR(9), last_careunit VARCHAR(9))",
    """INSERT INTO icu VALUES (30, 1, 10, '2150-01-01 10:00:00', 2, 5, 5, 'A', 'A'),
       (20, 2, 20, '2150-01-01 10:00:00', 9, 5, 5, 'A', 'A'),
       (31, 3, 30, '2150-01-01 10:00:00', 1.9999, 5, 5, 'A', 'A'),
       (32, 3, 31, '2150-01-01 10:00:00', 3, 5, 6, 'A', 'A'), (33, 3, 32, '2150-01-01 10:00:00', 3, 5, 5, 'A', 'B'),
       (34, 3, 33, '2150-01-01 10:00:00', 3, 5, 5, 'A', 'A'), (35, 3, 33, '2150-01-09 10:00:00', 1, 5, 5, 'A', 'A'),
       (36, 4, 40, '2150-01-01 10:00:00', 3, 5, 5, 'A', 'A'), (37, 4, 41, '2150-01-06 10:00:00', 3, 5, 5, 'A', 'A'),
       (38, 1, 50, '2150-01-01 10:00:00', 3, 5, 5, NULL, 'A'), (39, 9, 90, '2150-01-01 10:00:00', 3, 5, 5, 'A', 'A')""",
    "CREATE TABLE adm (subject_id INTEGER, hadm_id INTEGER)",
    "INSERT INTO adm VALUES (1, 10), (2, 20), (3, 30), (3, 31), (3, 32), (3, 33), (4, 40), (4, 41), (1, 50)",
    "CREATE TABLE pat (subject_id INTEGER, dob TIMESTAMP)",
    """INSERT INTO pat VALUES (1, '2100-06-01'), (2, '1850-01-01'), (3, '2100-01-01'), (4, '2132-01-10 10:00:00'),
       (9, '2100-01-01')""",
)
"""Kept: 48 hours to the minute, an age of 300, and an 18th birthday (of 365 days each) a day before the second stay."""
EVENTS_SETUP = (
    "CREATE TABLE stays (person INTEGER, subject_id INTEGER, hadm_id INTEGER, origin TIMESTAMP, person_number BIGINT)",
    "INSERT INTO stays VALUES (30, 1, 10, '2150-01-01 10:00:00', 1)",
    "CREATE TABLE ev (subject_id INTEGER, hadm_id INTEGER, icustay_id INTEGER, charttime TIMESTAMP, itemid INTEGER, "
    "value VARCHAR(40), valueuom VARCHAR(20))",
    """INSERT INTO ev VALUES
       (1, 10, 30, '2150-01-01 11:00:00', 1, '3 To speech', NULL), (1, 10, 30, '2150-01-01 11:00:00', 1, 'Zzz', NULL),
       (1, 10, 30, '2150-01-01 12:00:00', 1, '3 To speech', NULL),
       (1, 10, 30, '2150-01-01 12:00:00', 1, '2 To pain', ''),
       (1, 10, 30, '2150-01-01 13:00:00', 1, '4.5', NULL), (1, 10, 30, '2150-01-01 14:00:00', 1, 'to speech', NULL),
       (1, 10, 30, '2150-01-01 10:20:00', 2, '120/80', 'mmHg'), (1, 10, 30, '2150-01-01 10:20:00', 2, '118', 'mmHg'),
       (1, 10, 30, '2150-01-01 10:20:00', 3, '120/80', 'mmHg'), (1, 10, 30, '2150-01-01 10:21:00', 3, '70', NULL),
       (1, 10, 30, '2150-01-01 10:00:00', 4, 'Brisk', NULL), (1, 10, 30, '2150-01-01 10:01:00', 4, 'Delayed', NULL),
       (1, 10, 30, '2150-01-01 10:02:00', 4, 'Other/Remarks', NULL), (1, 10, NULL, '2150-01-01 10:00:00', 5, '40', '%'),
       (1, 10, 30, '2150-01-01 10:01:00', 5, '50', 'tOrr'), (1, 10, 30, '2150-01-01 10:02:00', 5, 'None', '%'),
       (1, 10, 30, '2150-01-01 10:00:00', 7, '0.95', '%'), (1, 10, 30, '2150-01-01 10:01:00', 7, '95', '%'),
       (1, 10, 30, '2150-01-01 10:02:00', 7, '-1', '%'), (1, 10, 30, '2150-01-01 10:00:00', 8, '98.6', NULL),
       (1, 10, 30, '2150-01-01 10:01:00', 8, ' 37 ', NULL), (1, 10, 30, '2150-01-01 10:02:00', 8, '1e3e', NULL),
       (1, 10, 30, '2150-01-01 10:00:00', 90, '32', NULL), (1, 10, 30, '2150-01-01 10:01:00', 9, '100', 'LBS'),
       (1, 10, 30, '2150-01-01 10:02:00', 9, '70', 'kg'), (1, 10, 30, '2150-01-01 10:00:00', 10, '71.9', 'Inch'),
       (1, 10, 30, '2150-01-01 10:01:00', 10, '75', 'Inch'), (1, 10, 30, '2150-01-01 10:02:00', 10, '175.4', 'cm'),
       (1, 10, 31, '2150-01-01 10:00:00', 8, '37', NULL), (1, 11, 30, '2150-01-01 10:00:00', 8, '38', NULL),
       (1, 10, 30, '2150-01-01 09:59:59', 8, '39', NULL), (1, 10, 30, '2150-01-03 10:00:00', 8, '36', NULL),
       (1, 10, 30, '2150-01-03 10:00:01', 8, '40', NULL), (1, 10, 30, NULL, 8, '40', NULL),
       (1, 10, 30, '2150-01-01 10:05:00', 8, NULL, NULL), (1, 10, 30, '2150-01-01 10:06:00', 8, '2e9', NULL)""",
    "CREATE TABLE lab (subject_id INTEGER, hadm_id INTEGER, charttime TIMESTAMP, itemid INTEGER, value VARCHAR(40), "
    "valueuom VARCHAR(20))",
    """INSERT INTO lab VALUES (1, 10, '2150-01-01 10:00:00', 6, '7.', NULL),
       (1, 10, '2150-01-01 10:01:00', 6, '7.4 ', ''),
       (1, 10, '2150-01-01 10:02:00', 6, '<.5', NULL), (1, 10, '2150-01-01 10:03:00', 6, '.5', NULL)""",
    "CREATE TABLE its (item BIGINT, variable_number INTEGER, rule INTEGER, label_unit VARCHAR(9))",
    """INSERT INTO its VALUES (1, 0, 1, ''), (2, 1, 2, ''), (3, 2, 3, ''), (4, 3, 4, ''), (5, 4, 5, ''), (6, 5, 6, ''),
       (7, 6, 7, ''), (8, 7, 8, ''), (9, 8, 9, ''), (90, 8, 9, 'oz'), (10, 9, 10, '')""",
    "CREATE TABLE sco (variable_number INTEGER, word VARCHAR(40), score DOUBLE PRECISION)",
    "INSERT INTO sco VALUES (0, '3 To speech', 3), (0, '2 To pain', 2), (1, '3 To speech', 9)",
)
CASES = [
    Case(
        "series/keep_stays",
        {
            "persons": OUT,
            "icustays": table_name("icu"),
            "admissions": table_name("adm"),
            "patients": table_name("pat"),
        },
        [(20, 2, 1), (30, 1, 2), (37, 4, 3)],
        STAYS_SETUP,
        read='SELECT person, subject_id, person_number FROM "o\'u""t" ORDER BY person_number',
    ),
    Case(
        "series/clean_benchmark",
        {
            "instants": OUT,
            "persons": table_name("stays"),
            "chartevents": table_name("ev"),
            "labevents": table_name("lab"),
            "items": table_name("its"),
            "scores": table_name("sco"),
            "number": literal(NUMBER),
            "step": 2.0,
            "said": column("word", "c"),
            "greatest": column("word", "o"),
        },
        [
            (0, 1.0, 3_000_000, "3 To speech"),
            (0, 1.5, 4_500_000, "4.5"),
            (1, 20 * 60 / 3600 / 2, 120_000_000, None),
            (2, 20 * 60 / 3600 / 2, 80_000_000, None),
            (2, 21 * 60 / 3600 / 2, 70_000_000, None),
            (3, 0.0, 0, None),
            (3, 60 / 3600 / 2, 1_000_000, None),
            (4, 0.0, 400_000, None),
            (4, 60 / 3600 / 2, 50_000_000, None),
            (5, 0.0, 7_000_000, None),
            (5, 180 / 3600 / 2, 500_000, None),
            (6, 0.0, 95_000_000, None),
            (6, 60 / 3600 / 2, 95_000_000, None),
            (7, 0.0, 37_000_000, None),
            (7, 60 / 3600 / 2, 37_000_000, None),
            (7, 24.0, 36_000_000, None),
            (8, 0.0, 907_184, None),
            (8, 60 / 3600 / 2, 45_359_200, None),
            (8, 120 / 3600 / 2, 70_000_000, None),
            (9, 0.0, 183_000_000, None),
            (9, 60 / 3600 / 2, 190_000_000, None),
            (9, 120 / 3600 / 2, 175_400_000, None),
        ],
        EVENTS_SETUP,
        read='SELECT variable_number, steps, millionths, word FROM "o\'u""t" ORDER BY 1, 2',
    ),
]
