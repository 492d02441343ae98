"""Cases of the templates that compare releases of one job."""

from __future__ import annotations

import re

from sqldeid.engine.base import Column
from sqldeid.run.dates import looked_at
from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import ALL_OUT, OUT, Case

A, B, FOLDED = table_name("ta ble"), table_name("select"), table_name("fol ded")
SETUP = (
    'CREATE TABLE "ta ble" ("x y" VARCHAR(20), "n" INTEGER)',
    """INSERT INTO "ta ble" VALUES ('it''s', 1), ('it''s', 1), ('😀', NULL), (NULL, 2)""",
    'CREATE TABLE "select" ("X Y" VARCHAR(20), "n" BIGINT)',
    """INSERT INTO "select" VALUES ('it''s', 1), (NULL, 2), (NULL, 2), ('it', 1)""",
)
FOLDED_SETUP = (
    'CREATE TABLE "fol ded" (c0 VARCHAR(20), "c 1" VARCHAR(20), here_n BIGINT, there_n BIGINT)',
    """INSERT INTO "fol ded" VALUES ('it''s', '1', 2, 1), ('it', '1', 0, 1), ('😀', NULL, 1, 0), (NULL, '2', 1, 2)""",
)
NAMES = [identifier("c0"), identifier("c 1")]
PAIR = {
    "folded": OUT,
    "here": A,
    "there": B,
    "columns": [
        {"name": identifier("c0"), "here": column("x y", "r"), "there": column("X Y", "r")},
        {"name": identifier("c 1"), "here": column("n", "r"), "there": column("n", "r")},
    ],
}
MATCHES = {
    "folded": FOLDED,
    "here_k": 2,
    "there_k": 3,
    "sets": [{"number": 0, "columns": NAMES}, {"number": 1, "columns": NAMES[:1]}, {"number": 7, "columns": NAMES[1:]}],
}
NONE = (FOLDED_SETUP[0],)
DATES = (
    *("2020-01-15", "2020/1/5", "2020-01-15 10:11:12.5", "2020-01-15T10:11:12+01:00", "15.01.2020", "15.1.20 8:00"),
    *("1/15/2020", "01/15/20", "1/15/2020 3:04 PM", "31-12-1999", "20200115", "20200115103059", "20200115T1030Z"),
    *("15-JAN-2020", "15JAN2020:10:11:12", "15. Oktober 2020", "Wed, 15 Jan 2020 10:11:12 GMT", "January 15th, 2020"),
    *("Jan 5 2020", "2020-01", "01/2020", "Jan 2020", "202001", "2020-Q1", "2020-W03-3", " 2150-07-07 "),
    *("1579046400", "1579046400.25", "1579046400000", "1579046400000000", "1579046400000000000"),
)
CODES = (
    *(
        "2020",
        "it''s",
        "none",
        "Q20",
        "120/80",
        "10000032",
        "22595853",
        "73211009",
        "195967001",
        "250.00",
        "V45.81",
        "E11-9",
    ),
    *("2020-13-01", "32.01.2020", "13/32/2020", "20201315", "9999999999", "1.2.3", "4.10.5.7", "12-34-56", "50-78-2"),
    *("seen on 2020-01-15", "code 20200115", "617-555-0123", "07:30", "1579046", "02139", "sep", "march", "2020-1-"),
)
NUMBERS = (20200115, 202012, 1579046400, 946684800, -946684800, 1579046400000, 2020, 45, 10000032, 99999999, 0, -1)
WRITTEN_SETUP = (
    """CREATE TABLE "wri tten" ("da tes" VARCHAR(40), codes VARCHAR(40), n BIGINT, "select" DOUBLE PRECISION,
       d DECIMAL(20, 2))""",
    f"""INSERT INTO "wri tten" ("da tes") VALUES ({"), (".join(f"'{text}'" for text in (*DATES, "", "  "))})""",
    f"""INSERT INTO "wri tten" (codes) VALUES ({"), (".join(f"'{text}'" for text in CODES)})""",
    f"""INSERT INTO "wri tten" (n, "select", d) VALUES ({"), (".join(f"{n}, {n}.75, {n}.5" for n in NUMBERS)})""",
    'INSERT INTO "wri tten" ("select") VALUES (1e300), (-1e300), (NULL)',
)
WRITTEN = (
    Column("da tes", "VARCHAR", "text"),
    Column("codes", "VARCHAR", "text"),
    Column("n", "BIGINT", "integer"),
    Column("select", "DOUBLE", "float"),
    Column("d", "DECIMAL(20, 2)", "number"),
)
HELD = sum(bool(re.search(r"\b(\d{4}[-/]\d+[-/]\d+|\d+[.]\d+[.]\d{4}|\d+/\d+/\d{4})(?!\d)", date)) for date in DATES)
COUNTED = (len(DATES), len(DATES), HELD, len(CODES), 0, 1, *(len(NUMBERS), 6, 0) * 3)

CASES = [
    Case(
        "run/fold_pair",
        PAIR,
        [("it", 1, 0, 1), ("it's", 1, 2, 1), ("😀", None, 1, 0), (None, 2, 1, 2)],
        SETUP,
        read='SELECT * FROM "o\'u""t"',
        ordered=False,
    ),
    Case(
        "run/count_matches",
        MATCHES,
        [(0, 3, 3, 3, 2, 1, 1, 0.5), (1, 3, 3, 3, 2, 1, 1, 0.5), (7, 3, 4, 3, 2, 2, 1, 0.75)],
        FOLDED_SETUP,
    ),
    Case(
        "run/count_matches",
        {**MATCHES, "sets": MATCHES["sets"][:1]},
        [(0, 0, 0, 0, 0, 0, 0, 0.0)],
        NONE,
        note="of empty releases",
    ),
    Case(
        "run/count_written",
        {"release": table_name("wri tten"), "columns": looked_at(WRITTEN, within=True), "first": None},
        [COUNTED],
        WRITTEN_SETUP,
        note="dates and what is none",
    ),
    Case(
        "run/count_written",
        {"release": table_name("wri tten"), "columns": looked_at(WRITTEN, within=True), "first": None},
        [(0,) * 15],
        WRITTEN_SETUP[:1],
        note="of nothing",
    ),
    Case(
        "run/count_written",
        {"release": table_name("wri tten"), "columns": looked_at(WRITTEN, within=False), "first": len(DATES)},
        [(len(DATES), len(DATES), *(0,) * 13)],
        WRITTEN_SETUP[:2],
        note="of the first rows, before blanks",
    ),
    Case(
        "run/measure_steps",
        {"lengths": OUT, "series": A},
        [(1.0,), (4.0,)],
        (
            'CREATE TABLE "ta ble" (person_number BIGINT, step BIGINT, variable VARCHAR(9), value DOUBLE PRECISION)',
            "INSERT INTO \"ta ble\" VALUES (1, 0, 'a', 1), (1, 3, 'a', NULL), (1, 3, 'b', 2), (2, 0, 'a', 1)",
        ),
        read=ALL_OUT + "1",
    ),
]
