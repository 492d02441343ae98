"""Cases of the templates that compare the tables of a run by their persons."""

from __future__ import annotations

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import (
    ALL_OUT,
    CODED_COLUMNS,
    CODED_SETUP,
    KEPT,
    KEPT_SETUP,
    NOTE,
    OUT,
    PEOPLE,
    PEOPLE_SETUP,
    W0,
    Case,
)
from tests.templates.cases_parted import CLASSES, CLASSES_SETUP, CUTS, SOURCE, SOURCE_SETUP

A, B, FOLDED = table_name("ta ble"), table_name("select"), table_name("fol ded")
SETUP = (
    'CREATE TABLE "ta ble" (class BIGINT, c0 INTEGER, "c 1" VARCHAR(20))',
    """INSERT INTO "ta ble" VALUES (1, 7, 'it''s'), (1, 8, NULL), (NULL, 9, '😀')""",
    'CREATE TABLE "select" (class BIGINT, c0 BIGINT, "c 1" VARCHAR(20))',
    """INSERT INTO "select" VALUES (5, 7, 'it''s'), (5, 7, 'it''s'), (6, 8, NULL), (6, 9, 'it')""",
)
UNITS = [identifier("u 0"), identifier("u1")]
RELEASES = [
    {
        "table": table,
        "units": [{"name": u, "value": column(c, "t")} for u, c in zip(UNITS, ("c0", "c 1"), strict=True)],
        "there": identifier(f"there{i}"),
        "class": identifier(f"class{i}"),
        "others": [{"there": identifier(f"there{j}"), "class": identifier(f"class{j}"), "own": i == j} for j in (0, 1)],
    }
    for i, table in enumerate((A, B))
]
FOLDED_SETUP = (
    'CREATE TABLE "fol ded" ("u 0" INTEGER, copy BIGINT, there0 INTEGER, class0 BIGINT, there1 INTEGER, class1 BIGINT)',
    """INSERT INTO "fol ded" VALUES (1, 1, 1, 3, 1, 4), (2, 1, 1, 3, 1, 5), (3, 1, 1, 3, 1, NULL),
       (3, 2, 1, 3, 0, NULL), (4, 1, 1, 2, 0, NULL), (5, 1, 0, NULL, 1, 4), (6, 1, 1, NULL, 1, 5),
       (7, 1, 1, NULL, 1, NULL)""",
)
CLASS0, CLASS1, PERSON = identifier("class0"), identifier("class1"), identifier("u 0")
TORN = {
    "folded": FOLDED,
    "person": PERSON,
    "releases": [
        {"number": 0, "class": CLASS0, "k": 2, "others": [{"class": CLASS1, "bit": 2}]},
        {"number": 1, "class": CLASS1, "k": 1, "others": [{"class": CLASS0, "bit": 1}]},
    ],
}
CELLS = {
    "folded": FOLDED,
    "person": PERSON,
    "here": CLASS0,
    "there": CLASS1,
    "reads": [identifier("there0"), identifier("there1")],
}
VALUES = {
    "folded": FOLDED,
    "here": {"class": CLASS0, "table": A, "value": column("c 1", "t")},
    "there": {"class": CLASS1, "table": B, "value": column("c 1", "t")},
}
VALUES_SETUP = (
    'CREATE TABLE "fol ded" (class0 BIGINT, class1 BIGINT)',
    'INSERT INTO "fol ded" VALUES (1, 5), (1, 5), (1, 6), (2, 6), (2, 7), (NULL, 7), (1, NULL)',
    'CREATE TABLE "ta ble" (class BIGINT, "c 1" VARCHAR(20))',
    """INSERT INTO "ta ble" VALUES (1, 'it''s'), (1, NULL), (2, '😀'), (2, 'a'), (2, 'a'), (NULL, 'a')""",
    'CREATE TABLE "select" (class BIGINT, "c 1" VARCHAR(20))',
    """INSERT INTO "select" VALUES
       (5, 'it''s'), (5, NULL), (5, 'b'), (6, 'a'), (6, NULL), (6, ''), (7, 'z'), (NULL, 'a')""",
)

CASES = [
    Case(
        "tables/write/place_rows",
        {
            "placed": OUT,
            "source": PEOPLE,
            "kept": KEPT,
            "words": [{"name": W0, "mask": 13, "columns": CODED_COLUMNS}],
            "columns": [
                {"name": identifier("c0"), "column": column("id", "s")},
                {"name": identifier("c1"), "column": column(NOTE, "s")},
            ],
        },
        [(1, 1, "b"), (1, 2, "a"), (None, 3, None), (None, 4, "a\nb"), (2, 5, "e"), (2, 6, None)],
        PEOPLE_SETUP + CODED_SETUP + KEPT_SETUP,
        read=ALL_OUT + "c0",
    ),
    Case(
        "tables/mondrian/place_parts",
        {
            "placed": OUT,
            "source": SOURCE,
            "classes": CLASSES,
            "cuts": CUTS,
            "sides": [column(name, "l") for name in ("low0", "high0", "label1")],
            "columns": [{"name": identifier("c0"), "column": column("ill", "s")}],
        },
        [(1, "it's"), (1, "it's"), (1, "😀"), (1, None), (2, None), (3, "it's"), (3, "😀")],
        SOURCE_SETUP + CLASSES_SETUP,
        read=ALL_OUT + "class, c0 NULLS LAST",
    ),
    Case(
        "run/fold_cohorts",
        {"folded": OUT, "units": UNITS, "releases": RELEASES, "counted": True},
        [
            (7, "it's", 1, 1, 1, 1, 5),
            (7, "it's", 2, 0, None, 1, 5),
            (8, None, 1, 1, 1, 1, 6),
            (9, "it", 1, 0, None, 1, 6),
            (9, "😀", 1, 1, None, 0, None),
        ],
        SETUP,
        read='SELECT * FROM "o\'u""t"',
        ordered=False,
    ),
    Case(
        "run/fold_cohorts",
        {"folded": OUT, "units": UNITS, "releases": RELEASES, "counted": False},
        [
            (7, "it's", 1, 1, 1, 1, 5),
            (8, None, 1, 1, 1, 1, 6),
            (9, "it", 1, 0, None, 1, 6),
            (9, "😀", 1, 1, None, 0, None),
        ],
        SETUP,
        read='SELECT * FROM "o\'u""t"',
        ordered=False,
        note="of one row each",
    ),
    Case("run/count_torn", TORN, [(0, 1, 1), (1, 2, 0)], FOLDED_SETUP),
    Case("run/count_torn", {**TORN, "person": None}, [(0, 1, 0), (1, 2, 0)], FOLDED_SETUP, note="rows are persons"),
    Case("run/count_torn", TORN, [(0, 0, 0), (1, 0, 0)], FOLDED_SETUP[:1], note="of empty releases"),
    Case(
        "run/list_cells",
        CELLS,
        [
            (3, 4, 1, False),
            (3, 5, 1, False),
            (3, None, 1, True),
            (2, None, 1, True),
            (None, 4, 1, True),
            (None, 5, 1, False),
        ],
        FOLDED_SETUP,
        ordered=False,
    ),
    Case(
        "run/list_cells",
        {**CELLS, "person": None},
        [
            (3, 4, 1, False),
            (3, 5, 1, False),
            (3, None, 2, True),
            (2, None, 1, True),
            (None, 4, 1, True),
            (None, 5, 1, False),
        ],
        FOLDED_SETUP,
        ordered=False,
        note="rows are persons",
    ),
    Case("run/count_units", {"folded": FOLDED, "person": PERSON}, [(8, 7)], FOLDED_SETUP),
    Case(
        "run/intersect_classes",
        {"folded": FOLDED, "here": CLASS0, "there": CLASS1, "here_k": 2, "there_k": 1},
        [(2, 1, 2, 2, 0)],
        FOLDED_SETUP,
    ),
    Case(
        "run/intersect_classes",
        {"folded": FOLDED, "here": CLASS0, "there": CLASS1, "here_k": 2, "there_k": 1},
        [(0, 0, 0, 0, 0)],
        FOLDED_SETUP[:1],
        note="of empty releases",
    ),
    Case("run/intersect_values", VALUES, [(5, 2, 1)], VALUES_SETUP, note="NULL is a value"),
    Case("run/intersect_values", VALUES, [(0, 0, 0)], VALUES_SETUP[::2], note="of empty releases"),
]
