"""Cases of the portable templates of series: hostile names, NULLs, ties, negative and fractional times, even groups."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from sqldeid.sql import column, identifier, literal, render, table_name
from tests.templates.cases import PEOPLE, PEOPLE_SETUP, SEX, Case

WHO, WHAT, HOW = 'st"ay; --', "select", "ünï"
RECORDS_SETUP = (
    'CREATE TABLE "chart ed" ("st""ay; --" INTEGER, "when" INTEGER, "select" VARCHAR(20), "ünï" NUMERIC(12, 4))',
    """INSERT INTO "chart ed" VALUES
       (7, -30, 'a''rt', 80), (7, -30, 'cu''ff', 99), (7, -30, 'a''rt', 80.5), (7, 30, 'cu''ff', 90),
       (7, 29, 'cu''ff', 91), (7, 300, 'a''rt', 60), (7, 300, 'a''rt', 1000), (7, 31, 'temp', 98.6),
       (7, 95, 'temp', 37), (NULL, 0, 'a''rt', 70),
       (8, 5, 'a''rt', 70), (8, NULL, 'a''rt', 71), (8, 6, 'a''rt', NULL), (8, 6, 'other', 5), (9, 1, 'spo2', 0.5),
       (9, 1, 'fio2', 40), (10, 1, 'a''rt', 55)""",
    'CREATE TABLE "it ems" (item VARCHAR(20), variable_number INTEGER, place BIGINT, factor DOUBLE PRECISION, '
    "repair INTEGER, low DOUBLE PRECISION, high DOUBLE PRECISION)",
    """INSERT INTO "it ems" VALUES ('a''rt', 0, 0, 1, 0, 30, 300), ('cu''ff', 0, 1, 1, 0, 30, 300),
       ('temp', 1, 0, 1, 1, 25, 45), ('spo2', 2, 0, 1, 3, 40, 100), ('fio2', 3, 0, 1, 2, 0.2, 1)""",
    'CREATE TABLE "mem bers" (person INTEGER)',
    'INSERT INTO "mem bers" VALUES (7), (8), (9)',
)


def read(members: exp.Table | None) -> dict[str, object]:
    return {
        "source": table_name("chart ed"),
        "items": table_name("it ems"),
        "person": column(WHO, "s"),
        "time": column("when", "s"),
        "variable": column(WHAT, "s"),
        "value": column(HOW, "s"),
        "members": members,
    }


def subquery(members: exp.Table | None = None) -> exp.Subquery:
    return exp.Subquery(this=sqlglot.parse_one(render("series/read_records", **read(members)), read="duckdb"))


ALL = [
    (7, 0, 0, -30, 80.0),
    (7, 0, 0, -30, 80.5),
    (7, 0, 0, 300, 60.0),
    (7, 0, 1, -30, 99.0),
    (7, 0, 1, 29, 91.0),
    (7, 0, 1, 30, 90.0),
    (7, 1, 0, 31, (98.6 - 32) * 5 / 9),
    (7, 1, 0, 95, 37.0),
    (8, 0, 0, 5, 70.0),
    (9, 2, 0, 1, 50.0),
    (9, 3, 0, 1, 0.4),
]
PERSONS_SETUP = (
    'CREATE TABLE "per sons" (person INTEGER, origin INTEGER, person_number BIGINT)',
    'INSERT INTO "per sons" VALUES (7, -30, 1), (8, 5, 2), (9, 1, 3), (10, 1, 4)',
)
CLOCKS_SETUP = (
    "CREATE TABLE clocked (person INTEGER, variable_number INTEGER, place BIGINT, time TIMESTAMP, "
    "value DOUBLE PRECISION)",
    """INSERT INTO clocked VALUES (1, 0, 0, TIMESTAMP '2150-02-28 23:30:00', -5.25),
       (1, 0, 0, TIMESTAMP '2150-03-01 00:45:00.5', -1000000000), (1, 0, 1, TIMESTAMP '2150-03-01 00:45:00.5', 7),
       (1, 0, 0, TIMESTAMP '2150-02-28 23:29:59', 6)""",
    "CREATE TABLE clocks (person INTEGER, origin TIMESTAMP, person_number BIGINT)",
    "INSERT INTO clocks VALUES (1, TIMESTAMP '2150-02-28 23:30:00', 1)",
)
INSTANTS_SETUP = (
    "CREATE TABLE ins (person_number BIGINT, variable_number INTEGER, steps DOUBLE PRECISION, millionths BIGINT)",
    """INSERT INTO ins VALUES (1, 0, 0, 10000000), (1, 0, 0.5, 20000000), (1, 0, 2.5, 40000000), (1, 0, 4, 10000001),
       (1, 1, 1.25, 1), (2, 0, 0, -3000000), (2, 1, 1, 5000000), (2, 1, 1.5, 7000000), (2, 1, 1.75, 9000000)""",
)
BINS_SETUP = (
    "CREATE TABLE bi (person_number BIGINT, variable_number INTEGER, position BIGINT, value DOUBLE PRECISION)",
    """INSERT INTO bi VALUES (1, 0, 0, 15), (1, 0, 2, 40), (1, 0, 6, -40), (1, 1, 5, 1), (2, 0, 3, 8), (2, 0, 4, 9)""",
)
RELEASED_SETUP = (
    "CREATE TABLE rel (number BIGINT, variable_number INTEGER, position BIGINT, value DOUBLE PRECISION)",
    "INSERT INTO rel VALUES (2, 0, 0, 1.5), (2, 0, 1, NULL), (1, 1, 1, 4), (1, 1, 0, NULL), (1, 0, 0, -2), "
    "(1, 0, 1, 3)",
    "CREATE TABLE nam (variable_number INTEGER, name VARCHAR(20))",
    "INSERT INTO nam VALUES (0, 'it''s'), (1, 'Ü \"x\"')",
)
COHORT_SETUP = (
    'CREATE TABLE "co hort" ("st""ay; --" INTEGER, "select" INTEGER, "ünï" TIMESTAMP)',
    """INSERT INTO "co hort" VALUES (3, 1, TIMESTAMP '2150-01-02'), (4, 1, TIMESTAMP '2150-01-01'), (5, 2, NULL),
       (6, 2, TIMESTAMP '2150-01-01'), (NULL, 3, NULL), (9, 4, TIMESTAMP '2150-01-01'),
       (8, 4, TIMESTAMP '2150-01-01')""",
)
CUT_SETUP = (
    "CREATE TABLE len (person_number BIGINT, length BIGINT, released BIGINT)",
    "INSERT INTO len VALUES (1, 7, 5), (2, 5, 0), (3, 4, 4)",
)
WRITTEN_SETUP = (
    'CREATE TABLE "writ ten" (person_number BIGINT, step BIGINT, variable VARCHAR(20), value DOUBLE PRECISION)',
    """INSERT INTO "writ ten" VALUES (1, 0, 'it''s', 2.5), (1, 1, 'it''s', NULL), (2, 0, 'Ü "x"', -1),
       (2, 0, 'other', 3), (3, 0, NULL, 4)""",
    "CREATE TABLE nam (variable_number INTEGER, name VARCHAR(20))",
    "INSERT INTO nam VALUES (0, 'it''s'), (1, 'Ü \"x\"')",
    'CREATE TABLE wide (person_number BIGINT, step BIGINT, "it\'s" DOUBLE PRECISION, "Ü ""x""" DOUBLE PRECISION)',
    "INSERT INTO wide VALUES (1, 0, 2.5, NULL), (2, 0, NULL, -1)",
)
MALFORMED_SETUP = (
    "CREATE TABLE unf (number BIGINT, variable_number INTEGER, position BIGINT, value DOUBLE PRECISION)",
    """INSERT INTO unf VALUES (1, 0, 0, 2.5), (1, 0, 1, NULL), (1, 1, 0, NULL), (1, 1, 1, NULL), (9, 0, 0, NULL),
       (NULL, 0, 0, 4), (0, 0, 0, 4)""",
)
PLACES_SETUP = (
    "CREATE TABLE rel (number BIGINT, variable_number INTEGER, position BIGINT, value DOUBLE PRECISION)",
    """INSERT INTO rel VALUES (7, 0, 0, 15), (7, 0, 1, 4), (7, 0, 2, NULL), (7, 1, 2, 4), (8, 0, 3, 1), (8, 0, 5, 1),
       (9, 0, 0, 1)""",
    "CREATE TABLE who (number BIGINT, person_number BIGINT)",
    "INSERT INTO who VALUES (7, 1), (8, 2)",
)
OUTCOMES_SETUP = (
    'CREATE TABLE "who else" (person INTEGER, person_number BIGINT)',
    'INSERT INTO "who else" VALUES (3, 2), (4, 1), (5, 3), (7, 4)',
    'CREATE TABLE "la bels" ("st""ay; --" INTEGER, "select" INTEGER)',
    'INSERT INTO "la bels" VALUES (3, 1), (4, NULL), (5, 0), (5, 1), (NULL, 1)',
)
UNFOLDED = "number, variable_number, position, value"
OUT = table_name("o'u\"t")
FROM_OUT = 'SELECT {} FROM "o\'u""t" ORDER BY {}'

CASES = [
    Case("series/read_records", read(table_name("mem bers")), ALL, RECORDS_SETUP, ordered=False, note="members"),
    Case("series/read_records", read(None), [*ALL, (10, 0, 0, 1, 55.0)], RECORDS_SETUP, ordered=False),
    Case(
        "series/unpivot_wide",
        {
            "source": table_name("wi de"),
            "person": column("select", "s"),
            "person_name": identifier("select"),
            "time": column("off set", "s"),
            "time_name": identifier("off set"),
            "measured": [
                {"number": literal(0), "item": literal("it's"), "value": column("variable", "s")},
                {"number": literal(1), "item": literal("ü"), "value": column("h r", "s")},
            ],
            "number": identifier("number"),
            "variable": identifier("variable"),
            "value": identifier("value"),
        },
        [(1, 5, "it's", 7.0), (1, 5, "ü", None), (None, 6, "it's", None), (None, 6, "ü", 1.5)],
        (
            'CREATE TABLE "wi de" ("select" INTEGER, "off set" INTEGER, "variable" INTEGER, "h r" DOUBLE PRECISION)',
            """INSERT INTO "wi de" VALUES (1, 5, 7, NULL), (NULL, 6, NULL, 1.5)""",
        ),
        ordered=False,
    ),
    Case(
        "series/find_persons",
        {"persons": OUT, "records": subquery(table_name("mem bers"))},
        [(7, -30, 8, 1), (8, 5, 1, 2), (9, 1, 2, 3)],
        RECORDS_SETUP,
        read=FROM_OUT.format("person, origin, records, person_number", 1),
    ),
    Case(
        "series/name_people",
        {"persons": table_name("nam ed")},
        [("7", 1), ("-8", 2), ("90", 3)],
        (
            'CREATE TABLE "nam ed" (person INTEGER, person_number BIGINT)',
            'INSERT INTO "nam ed" VALUES (90, 3), (7, 1), (-8, 2)',
        ),
    ),
    Case(
        "series/keep_instants",
        {
            "instants": OUT,
            "records": subquery(),
            "persons": table_name("per sons"),
            "clock": False,
            "step": 60.0,
            "first": None,
            "last": None,
        },
        [
            (1, 0, 0.0, 80500000),
            (1, 0, 59 / 60, 91000000),
            (1, 0, 1.0, 90000000),
            (1, 0, 5.5, 60000000),
            (1, 1, 61 / 60, 37000000),
            (1, 1, 125 / 60, 37000000),
            (2, 0, 0.0, 70000000),
            (3, 2, 0.0, 50000000),
            (3, 3, 0.0, 400000),
            (4, 0, 0.0, 55000000),
        ],
        RECORDS_SETUP + PERSONS_SETUP,
        read=FROM_OUT.format("person_number, variable_number, steps, millionths", "1, 2, 3"),
        note="the first item wins, then the greatest value",
    ),
    Case(
        "series/keep_instants",
        {
            "instants": OUT,
            "records": table_name("clocked"),
            "persons": table_name("clocks"),
            "clock": True,
            "step": 3600000000.0,
            "first": None,
            "last": None,
        },
        [(1, 0, 0.0, -5250000), (1, 0, 4500.5 / 3600, -(10**15))],
        CLOCKS_SETUP,
        read=FROM_OUT.format("person_number, variable_number, steps, millionths", "1, 2, 3"),
        note="timestamps, negative and extreme values; a record that came before the origin",
    ),
    Case(
        "series/keep_instants",
        {
            "instants": OUT,
            "records": subquery(),
            "persons": table_name("per sons"),
            "clock": False,
            "step": 60.0,
            "first": 2,
            "last": 3,
        },
        [(2, 0, 0.0, 70000000), (3, 2, 0.0, 50000000), (3, 3, 0.0, 400000)],
        RECORDS_SETUP + PERSONS_SETUP,
        read=FROM_OUT.format("person_number, variable_number, steps, millionths", "1, 2, 3"),
        note="some persons",
    ),
    Case(
        "series/cut_persons",
        {"persons": table_name("coun ted"), "limit": 10},
        [(1, 2), (3, 3), (4, 5)],
        (
            'CREATE TABLE "coun ted" (person_number BIGINT, records BIGINT)',
            'INSERT INTO "coun ted" VALUES (1, 4), (2, 6), (3, 30), (4, 1), (5, 2)',
        ),
    ),
    Case(
        "series/measure_written",
        {"measured": OUT, "unfolded": table_name("un folded")},
        [(1, 0, 3, 0, 4, 3, 2, 3.0, 2.25, 1.5, 4.5), (2, 1, 1, 1, 1, 2, 2, 7.0, 0.0, 7.0, 7.0)],
        (
            'CREATE TABLE "un folded" (number BIGINT, variable_number INT, position BIGINT, value DOUBLE PRECISION)',
            """INSERT INTO "un folded" VALUES (1, 0, 4, NULL), (1, 0, 2, 4.5), (1, 0, 0, 1.5), (2, 1, 1, 7),
               (2, 1, 1, 7), (3, 0, 0, NULL)""",
        ),
        read=FROM_OUT.format(
            'number, variable_number, steps, "first", "last", "rows", n, mean, variance, minimum, maximum', "1"
        ),
        note="absent values, a variable without any, and one whose values are equal",
    ),
    Case(
        "series/bin_instants",
        {"bins": OUT, "instants": table_name("ins")},
        [(1, 0, 0, 15.0), (1, 0, 2, 40.0), (1, 0, 4, 10.000001), (1, 1, 1, 1e-6), (2, 0, 0, -3.0), (2, 1, 1, 7.0)],
        INSTANTS_SETUP,
        read=FROM_OUT.format("person_number, variable_number, position, value", "1, 2, 3"),
    ),
    Case(
        "series/fill_steps",
        {"series": OUT, "bins": table_name("bi"), "append": False},
        [
            *((1, 0, p, v) for p, v in enumerate([15.0, 27.5, 40.0, 20.0, 0.0, -20.0, -40.0])),
            (1, 1, 5, 1.0),
            (2, 0, 3, 8.0),
            (2, 0, 4, 9.0),
        ],
        BINS_SETUP,
        read=FROM_OUT.format("person_number, variable_number, position, value", "1, 2, 3"),
    ),
    Case(
        "series/fill_steps",
        {"series": OUT, "bins": table_name("bi"), "append": True},
        [
            (0, 7, 1, 3.0),
            *((1, 0, p, v) for p, v in enumerate([15.0, 27.5, 40.0, 20.0, 0.0, -20.0, -40.0])),
            (1, 1, 5, 1.0),
            (2, 0, 3, 8.0),
            (2, 0, 4, 9.0),
        ],
        (
            *BINS_SETUP,
            'CREATE TABLE "o\'u""t" (person_number BIGINT, variable_number INTEGER, position BIGINT, '
            "value DOUBLE PRECISION)",
            'INSERT INTO "o\'u""t" VALUES (0, 7, 1, 3.0)',
        ),
        read=FROM_OUT.format("person_number, variable_number, position, value", "1, 2, 3"),
        note="beside others",
    ),
    Case(
        "series/fill_points",
        {"series": OUT, "instants": table_name("ins"), "append": False},
        [
            *((1, 0, p, v) for p, v in [(0, 10.0), (1, 25.0), (2, 35.0), (3, 30.000000333333333), (4, 10.000001)]),
            (2, 0, 0, -3.0),
            (2, 1, 1, 5.0),
        ],
        INSTANTS_SETUP,
        read=FROM_OUT.format("person_number, variable_number, position, value", "1, 2, 3"),
    ),
    Case(
        "series/measure_span",
        {"instants": table_name("ins"), "most": 2, "source": None, "person": column(SEX, "s"), "time": None},
        [(1, 0, 0)],
        INSTANTS_SETUP,
    ),
    Case(
        "series/measure_span",
        {
            "instants": table_name("ins"),
            "most": 2,
            "source": PEOPLE,
            "person": column(SEX, "s"),
            "time": column("ünï code", "s"),
        },
        [(1, 2, 1)],
        (*INSTANTS_SETUP, *PEOPLE_SETUP),
        note="rows of nobody and of no time",
    ),
    Case("series/measure_lengths", {"series": table_name("bi")}, [(1, 7, 4), (2, 5, 2)], BINS_SETUP),
    Case(
        "series/list_variables",
        {"source": table_name("chart ed"), "variable": column(WHAT, "s"), "limit": 3},
        [("a'rt",), ("cu'ff",), ("fio2",)],
        RECORDS_SETUP,
    ),
    Case(
        "series/keep_members",
        {
            "members": OUT,
            "cohort": table_name("co hort"),
            "person": column(WHO, "c"),
            "first_of": column(WHAT, "c"),
            "order": column(HOW, "c"),
        },
        [(4,), (6,), (8,)],
        COHORT_SETUP,
        read=FROM_OUT.format("person", 1),
        note="first of each",
    ),
    Case(
        "series/keep_members",
        {
            "members": OUT,
            "cohort": table_name("co hort"),
            "person": column(WHO, "c"),
            "first_of": None,
            "order": None,
        },
        [(3,), (4,), (5,), (6,), (8,), (9,)],
        COHORT_SETUP,
        read=FROM_OUT.format("person", 1),
    ),
    Case(
        "series/stage_long",
        {"target": OUT, "released": table_name("rel"), "names": table_name("nam")},
        [
            (1, 0, "it's", -2.0),
            (1, 0, 'Ü "x"', None),
            (1, 1, "it's", 3.0),
            (1, 1, 'Ü "x"', 4.0),
            (2, 0, "it's", 1.5),
            (2, 1, "it's", None),
        ],
        RELEASED_SETUP,
        read=FROM_OUT.format("person_number, step, variable, value", "1, 2, 4"),
        ordered=False,
    ),
    Case(
        "series/stage_wide",
        {
            "target": OUT,
            "released": table_name("rel"),
            "variables": [{"number": 0, "name": identifier("it's")}, {"number": 1, "name": identifier('Ü "x"')}],
        },
        [(1, 0, -2.0, None), (1, 1, 3.0, 4.0), (2, 0, 1.5, None), (2, 1, None, None)],
        RELEASED_SETUP,
        read='SELECT person_number, step, "it\'s", "Ü ""x""" FROM "o\'u""t" ORDER BY 1, 2',
    ),
    Case(
        "series/cut_series",
        {"cut": OUT, "series": table_name("bi"), "lengths": table_name("len")},
        [(1, 0, 0, 40.0), (1, 0, 4, -40.0), (1, 1, 3, 1.0)],
        BINS_SETUP + CUT_SETUP,
        read=FROM_OUT.format("person_number, variable_number, position, value", "1, 2, 3"),
        note="from the beginning",
    ),
    Case(
        "series/read_part",
        {"series": table_name("rel"), "person": identifier("number"), "first": 8, "last": 9},
        [(8, 0, 3, 1.0), (8, 0, 5, 1.0), (9, 0, 0, 1.0)],
        PLACES_SETUP,
        ordered=False,
    ),
    Case(
        "series/add_released",
        {"released": table_name("rel"), "rows": table_name("more")},
        [(1, 1, 1, None), (1, 2, 1, 0.5), (7, 7, 1, 1.0)],
        (
            "CREATE TABLE more (number BIGINT, variable_number BIGINT, position BIGINT, value DOUBLE PRECISION)",
            "INSERT INTO more VALUES (1, 1, 1, NULL), (1, 2, 1, 0.5)",
            "CREATE TABLE rel (number BIGINT, variable_number INTEGER, position BIGINT, value DOUBLE PRECISION)",
            "INSERT INTO rel VALUES (7, 7, 1, 1)",
        ),
        read="SELECT number, variable_number, position, value FROM rel ORDER BY 1, 2",
    ),
    Case(
        "series/unfold_long",
        {"unfolded": OUT, "written": table_name("writ ten"), "names": table_name("nam")},
        [(1, 0, 0, 2.5), (1, 0, 1, None), (2, -1, 0, 3.0), (2, 1, 0, -1.0), (3, -1, 0, 4.0)],
        WRITTEN_SETUP,
        read=FROM_OUT.format(UNFOLDED, "1, 2, 3"),
    ),
    Case(
        "series/unfold_wide",
        {
            "unfolded": OUT,
            "written": table_name("wide"),
            "variables": [{"number": 0, "name": identifier("it's")}, {"number": 1, "name": identifier('Ü "x"')}],
        },
        [(1, 0, 0, 2.5), (1, 1, 0, None), (2, 0, 0, None), (2, 1, 0, -1.0)],
        WRITTEN_SETUP,
        read=FROM_OUT.format(UNFOLDED, "1, 2, 3"),
    ),
    *(
        Case(
            "series/check_rows",
            {"unfolded": table_name("unf"), "wide": wide},
            [(4, 3, empty)],
            MALFORMED_SETUP,
            note="wide" if wide else "long",
        )
        for wide, empty in ((True, 1), (False, 2))
    ),
    Case(
        "series/compare_places",
        {"unfolded": table_name("rel"), "cut": table_name("bi"), "persons": table_name("who")},
        [(3,)],
        BINS_SETUP + PLACES_SETUP,
    ),
    Case(
        "series/read_outcomes",
        {
            "persons": table_name("who else"),
            "labels": table_name("la bels"),
            "person": column(WHO, "c"),
            "outcome": column(WHAT, "c"),
        },
        [(1, None, 1), (2, 1.0, 1), (3, 1.0, 2), (4, None, 0)],
        OUTCOMES_SETUP,
    ),
]
