"""Templates between a source engine and its workbench, and those of verification that run where the rows are."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, literal, table_name
from tests.templates.cases import AGE, CLASSES_SETUP, NOTE, PEOPLE, PEOPLE_SETUP, SEX, Case

LABELLED_SETUP = (
    *PEOPLE_SETUP,
    'CREATE TABLE "sex labels" (value VARCHAR(20), label TEXT)',
    "INSERT INTO \"sex labels\" VALUES ('it''s', 'x'), ('😀', 'x')",
)
COLUMNS = [
    {
        "name": identifier("q0"),
        "column": column(SEX, "s"),
        "alias": identifier("m0"),
        "labels": table_name("sex labels"),
        "type": exp.DataType.build("VARCHAR"),
        "null_label": literal("none"),
        "text": False,
    },
    {
        "name": identifier("q1"),
        "column": column(AGE, "s"),
        "alias": identifier("m1"),
        "labels": None,
        "type": exp.DataType.build("BIGINT"),
        "null_label": literal(None),
        "text": True,
    },
]
RANKED_SETUP = (
    *PEOPLE_SETUP,
    'CREATE TABLE "sta ted" (text TEXT, place BIGINT)',
    "INSERT INTO \"sta ted\" VALUES ('b', 0), ('z', 1), ('a', 2), ('e', 3), ('a\nb', 4)",
)
GROUPED_SETUP = (
    "CREATE TABLE expected (q TEXT, n BIGINT, fingerprint BIGINT)",
    "INSERT INTO expected VALUES ('a', 2, 7), (NULL, 3, 8), ('b', 4, 9)",
    "CREATE TABLE written (q TEXT, n BIGINT, fingerprint BIGINT)",
    "INSERT INTO written VALUES ('a', 2, 7), (NULL, 3, 8), ('b', 4, 1), ('c', 1, 1)",
    "CREATE TABLE flagged (q TEXT, n BIGINT, fingerprint BIGINT, fails BOOLEAN)",
    "INSERT INTO flagged VALUES ('a', 2, 7, FALSE), (NULL, 3, 8, FALSE), ('b', 4, 9, FALSE), ('d', 5, 5, TRUE)",
)
CELLS_SETUP = (
    'CREATE TABLE "ce lls" (q0 TEXT, class BIGINT, v0 BIGINT, c BIGINT)',
    "INSERT INTO \"ce lls\" VALUES ('a', 0, 0, 2), ('a', 0, 1, 1), (NULL, 1, 0, 3)",
    "CREATE TABLE numbers (class BIGINT)",
    "INSERT INTO numbers VALUES (0)",
)
SPLIT_RELEASE_COLUMNS = [{"name": identifier("q0"), "column": column(AGE, "r")}]
MADE = table_name("ma de")

CASES = [
    Case(
        "engine/read_table",
        {"table": table_name("clas ses"), "columns": [identifier("n"), identifier("w0")]},
        [(2, 0), (1, 4), (1, 5), (2, 9)],
        CLASSES_SETUP,
        ordered=False,
    ),
    Case(
        "tables/verify/compare_release",
        {
            "expected": table_name("expected"),
            "written": table_name("written"),
            "source": table_name("flagged"),
            "columns": [identifier("q")],
        },
        [(1, 2, 1, 10, 4, 14, 5)],
        GROUPED_SETUP,
    ),
    Case(
        "tables/verify/compare_sample",
        {"written": table_name("written"), "source": table_name("flagged"), "columns": [identifier("q")]},
        [(1, 10, 4, 14, 1)],
        GROUPED_SETUP,
        note="a class that is not there",
    ),
    Case(
        "tables/verify/compare_sample",
        {"written": table_name("flagged"), "source": table_name("written"), "columns": [identifier("q")]},
        [(2, 14, 4, 10, 1)],
        GROUPED_SETUP,
        note="NULL is a value",
    ),
    Case(
        "tables/verify/pick_classes",
        {
            "picked": MADE,
            "cells": table_name("ce lls"),
            "names": [identifier("q0")],
            "numbers": table_name("numbers"),
        },
        [("a",)],
        CELLS_SETUP,
        read='SELECT * FROM "ma de"',
        ordered=False,
    ),
    Case(
        "tables/verify/read_known",
        {"cells": table_name("ce lls"), "codes": [identifier("v0")]},
        [(0, 0, 2), (0, 1, 1), (1, 0, 3)],
        CELLS_SETUP,
        ordered=False,
    ),
    Case(
        "tables/verify/split_release",
        {
            "cells": MADE,
            "release": PEOPLE,
            "sensitive": column(SEX, "r"),
            "columns": SPLIT_RELEASE_COLUMNS,
        },
        [(-30, "it's", 2), (-30, "😀", 1), (40, "😀", 1), (40, None, 2)],
        PEOPLE_SETUP,
        read='SELECT * FROM "ma de"',
        ordered=False,
    ),
    Case(
        "tables/verify/split_known",
        {
            "cells": MADE,
            "rows": PEOPLE,
            "columns": [{"name": identifier("q0"), "value": column(AGE, "s")}],
            "known": [{"name": identifier("v0"), "value": column("id", "s")}],
        },
        [(-30, 0, 0, 1), (-30, 0, 1, 1), (-30, 0, 2, 1), (40, 1, 3, 1), (40, 1, 4, 1), (40, 1, 5, 1)],
        PEOPLE_SETUP,
        read='SELECT * FROM "ma de"',
        ordered=False,
    ),
    Case(
        "tables/verify/label_rows",
        {
            "labelled": MADE,
            "source": PEOPLE,
            "columns": COLUMNS,
            "known": [{"name": identifier("v0"), "column": column("id", "s")}],
        },
        [("x", "-30", 1), ("x", "-30", 2), ("x", "-30", 3), ("x", "40", 4), ("none", "40", 5), ("none", "40", 6)],
        LABELLED_SETUP,
        read='SELECT * FROM "ma de"',
        ordered=False,
    ),
    Case(
        "tables/verify/split_source",
        {"cells": MADE, "source": PEOPLE, "sensitive": column(NOTE, "s"), "columns": COLUMNS},
        [
            *(("x", "-30", "a", 1), ("x", "-30", "b", 1), ("x", "-30", None, 1), ("x", "40", "a\nb", 1)),
            *(("none", "40", "e", 1), ("none", "40", None, 1)),
        ],
        LABELLED_SETUP,
        read='SELECT * FROM "ma de"',
        ordered=False,
    ),
    Case(
        "tables/verify/rank_values",
        {"ranked": MADE, "source": PEOPLE, "sensitive": column(AGE, "s"), "stated": None, "places": 0},
        [(-30, 3, 0), (40, 3, 1)],
        PEOPLE_SETUP,
        read='SELECT * FROM "ma de"',
        ordered=False,
    ),
    Case(
        "tables/verify/rank_values",
        {
            "ranked": MADE,
            "source": PEOPLE,
            "sensitive": column(NOTE, "s"),
            "stated": table_name("sta ted"),
            "places": 5,
        },
        [("b", 1, 0), (None, 0, 1), ("a", 1, 2), ("e", 1, 3), ("a\nb", 1, 4), (None, 2, 5)],
        RANKED_SETUP,
        note="in a stated order",
        read='SELECT * FROM "ma de"',
        ordered=False,
    ),
]
