"""Cases of the templates that join linked tables, and write and check them."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import ALL_OUT, OUT, Case

A, B, JOINED = table_name("ta ble"), table_name("select"), table_name("joi ned")
SETUP = (
    'CREATE TABLE "ta ble" ("i d" INTEGER, "x" VARCHAR(20))',
    """INSERT INTO "ta ble" VALUES (1, 'it''s'), (2, NULL), (3, '😀')""",
    'CREATE TABLE "select" ("i d" BIGINT, "y" INTEGER)',
    'INSERT INTO "select" VALUES (3, 30), (2, NULL), (4, 40)',
)
JOINED_SETUP = (
    *SETUP,
    'CREATE TABLE "joi ned" (person INTEGER, "A/x" VARCHAR(20), "B/y" INTEGER)',
)
RIGHT = (*JOINED_SETUP, "INSERT INTO \"joi ned\" VALUES (3, '😀', 30), (2, NULL, NULL)")
WRONG = (*JOINED_SETUP, "INSERT INTO \"joi ned\" VALUES (3, '😀', 30), (2, 'z', NULL), (2, NULL, NULL), (4, NULL, 40)")
WHOLE = table_name("ke pt")
WHOLE_SETUP = (
    'CREATE TABLE "ke pt" ("x" VARCHAR(20), "y" INTEGER)',
    "INSERT INTO \"ke pt\" VALUES ('it''s', 1), (NULL, 2), ('😀', 3)",
)
COMPARED = {
    "joined": JOINED,
    "source": A,
    "key": column("i d", "s"),
    "columns": [
        {"name": identifier("k"), "joined": column("person", "j"), "value": column("i d", "s")},
        {"name": identifier("c0"), "joined": column("A/x", "j"), "value": column("x", "s")},
    ],
    "others": [{"source": B, "key": column("i d", "o")}],
}
TEXT = exp.DataType.build("varchar", dialect="duckdb")
PSEUDONYMS = (
    'CREATE TABLE "ta ble" (p VARCHAR(32))',
    "INSERT INTO \"ta ble\" VALUES ('a'), ('b'), ('c'), ('c'), (NULL), ('d')",
    'CREATE TABLE "select" ("q" VARCHAR(32))',
    "INSERT INTO \"select\" VALUES ('a'), ('b'), ('e'), (NULL), ('d')",
)
MATCHED = {
    "members": [
        {"source": A, "key": exp.cast(column("p", "r"), TEXT), "place": 0},
        {"source": B, "key": exp.cast(column("q", "r"), TEXT), "place": 1},
    ],
    "tables": 2,
}

CASES = [
    Case(
        "tables/rows/join_linked",
        {
            "joined": OUT,
            "first": {"source": A, "alias": identifier("m0"), "key": column("i d", "m0")},
            "others": [{"source": B, "alias": identifier("m1"), "key": column("i d", "m1")}],
            "columns": [
                {"name": identifier("person"), "value": column("i d", "m0")},
                {"name": identifier("A/x"), "value": column("x", "m0")},
                {"name": identifier("B/y"), "value": column("y", "m1")},
            ],
        },
        [(2, None, None), (3, "😀", 30)],
        SETUP,
        read=ALL_OUT + "1",
    ),
    Case("tables/rows/compare_linked", COMPARED, [(0,)], RIGHT),
    Case("tables/rows/compare_linked", COMPARED, [(2,)], WRONG, note="a row changed, a person of one table only"),
    Case("tables/rows/match_linked", MATCHED, [(6, 3)], PSEUDONYMS, note="twice in one, in one only, NULL"),
    Case(
        "tables/rows/match_linked",
        MATCHED,
        [(0, 0)],
        tuple(s for s in PSEUDONYMS if s.startswith("CREATE")),
        note="of empty tables",
    ),
    Case(
        "tables/rows/stage_linked",
        {
            "target": OUT,
            "whole": WHOLE,
            "columns": [{"name": identifier("x"), "value": column("x", "w")}],
            "key": column("x", "w"),
        },
        [("it's",), (None,), ("😀",)],
        WHOLE_SETUP,
        read=ALL_OUT + "1 NULLS FIRST",
        ordered=False,
    ),
]
