"""Cases of the templates of Mondrian that run where the source lies: missing values, ties, labels that repeat."""

from __future__ import annotations

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import ALL_OUT, OUT, Case

SOURCE, NUMBERED, PARTS, CLASSES, MADE = (table_name(n) for n in ("peo ple", "num bered", "select", "classes", "ma de"))
SOURCE_SETUP = (
    'CREATE TABLE "peo ple" (a DOUBLE PRECISION, "b c" DOUBLE PRECISION, ill VARCHAR(20))',
    """INSERT INTO "peo ple" VALUES (0.5, NULL, 'it''s'), (0.5, NULL, 'it''s'), (0.5, NULL, '😀'), (NULL, 0, NULL),
       (NULL, NULL, NULL), (0, 0, '😀'), (-2, 0, 'it''s')""",
)
NUMBERED_SETUP = (
    'CREATE TABLE "num bered" (number BIGINT, value VARCHAR(20))',
    "INSERT INTO \"num bered\" VALUES (0, 'it''s'), (1, '😀')",
)
CUTS = [
    {"name": identifier("q0"), "value": column("a", "s")},
    {"name": identifier("q1"), "value": column("b c", "s")},
]
NAMES = [c["name"] for c in CUTS]
OTHERS = [{"name": identifier("o0"), "value": column("ill", "s")}]
PARTS_SETUP = (
    'CREATE TABLE "select" (q0 DOUBLE PRECISION, class BIGINT)',
    'INSERT INTO "select" VALUES (0.5, 1), (NULL, 2), (0, 1)',
    "CREATE TABLE labels (class BIGINT, label0 TEXT, low0 DOUBLE PRECISION)",
    "INSERT INTO labels VALUES (1, '≤ 1', NULL), (2, '> 1', 1)",
)
COLUMNS = ", ".join(
    f"label{i} {kind}, low{i} DOUBLE PRECISION, high{i} DOUBLE PRECISION, missing{i} BOOLEAN"
    for i, kind in enumerate(("TEXT", "DOUBLE PRECISION"))
)
CLASSES_SETUP = (
    f'CREATE TABLE "classes" (q0 DOUBLE PRECISION, q1 DOUBLE PRECISION, {COLUMNS})',
    """INSERT INTO "classes" VALUES
       (0.5, NULL, '≥ 0.5', 0.5, NULL, TRUE, 0.25, NULL, NULL, TRUE),
       (NULL, 0, '≥ 0.5', 0.5, NULL, TRUE, 0.25, NULL, NULL, TRUE),
       (NULL, NULL, '≥ 0.5', 0.5, NULL, TRUE, NULL, NULL, NULL, TRUE),
       (0, 0, '< 0.5', NULL, 0.5, FALSE, NULL, NULL, NULL, TRUE),
       (-2, 0, '< 0.5', NULL, 0.5, FALSE, NULL, NULL, NULL, TRUE)""",
)
GROUPED_SETUP = (
    *CLASSES_SETUP,
    """CREATE TABLE "ma de" (q0 DOUBLE PRECISION, q1 DOUBLE PRECISION, n BIGINT, fingerprint BIGINT)""",
    """INSERT INTO "ma de" VALUES (0.5, NULL, 3, 10), (NULL, 0, 1, 20), (NULL, NULL, 1, 30), (0, 0, 1, 40),
       (-2, 0, 1, 50), (7, 7, 9, 90)""",
)
SUMMED = 'SELECT q0, q1, n, CAST(fingerprint AS BIGINT) FROM "o\'u""t" ORDER BY q0, q1 NULLS LAST'
LIES = 'UPDATE "classes" SET high0 = 0.5 WHERE q0 = 0.5'
"""The value is on the border that is not in the class."""
ABSENT = 'UPDATE "classes" SET missing0 = FALSE WHERE q0 IS NULL AND q1 IS NULL'
SIDES = [
    {"name": n, **{s: identifier(f"{s}{i}") for s in ("label", "low", "high", "missing")}} for i, n in enumerate(NAMES)
]
EXPECT = {"expected": OUT, "grouped": MADE, "classes": CLASSES, "columns": SIDES}
COMPARED_SETUP = (
    "CREATE TABLE expected (q0 TEXT, n BIGINT, fingerprint BIGINT)",
    "INSERT INTO expected VALUES ('a', 2, 7), (NULL, 3, 8), ('b', 4, 9), ('c', 5, 5), ('d', 6, 6)",
    "CREATE TABLE written (q0 TEXT, n BIGINT, fingerprint BIGINT)",
    "INSERT INTO written VALUES ('a', 2, 7), (NULL, 3, 8), ('b', 4, 1), ('c', 4, 5), ('e', 1, 1)",
)
WRITTEN_SETUP = (
    'CREATE TABLE "peo ple" (a TEXT, "b c" DOUBLE PRECISION, ill VARCHAR(20))',
    """INSERT INTO "peo ple" VALUES ('x', 0.5, 'it''s'), ('x', 0.5, NULL), ('x', NULL, '😀'), ('x', 0.5, NULL),
       (NULL, 0.5, '😀')""",
)

CASES = [
    Case(
        "tables/mondrian/fold_points",
        {
            "folded": OUT,
            "source": SOURCE,
            "cuts": CUTS,
            "sensitive": [
                {
                    "name": identifier("s0"),
                    "alias": identifier("t0"),
                    "column": column("ill", "s"),
                    "numbered": NUMBERED,
                }
            ],
        },
        setup=(*SOURCE_SETUP, *NUMBERED_SETUP),
        read=ALL_OUT + "q0 NULLS FIRST, q1 NULLS FIRST, s0",
        rows=[
            (None, None, -1, 1),
            (None, 0.0, -1, 1),
            (-2.0, 0.0, 0, 1),
            (0.0, 0.0, 1, 1),
            (0.5, None, 0, 2),
            (0.5, None, 1, 1),
        ],
    ),
    Case(
        "tables/mondrian/fold_points",
        {"folded": OUT, "source": SOURCE, "cuts": CUTS[:1], "sensitive": []},
        setup=SOURCE_SETUP,
        read=ALL_OUT + "q0 NULLS FIRST",
        rows=[(None, 2), (-2.0, 1), (0.0, 1), (0.5, 3)],
        note="no sensitive column",
    ),
    Case(
        "tables/mondrian/label_parts",
        {
            "classes": OUT,
            "parts": PARTS,
            "labels": table_name("labels"),
            "columns": NAMES[:1],
            "sides": [identifier("label0"), identifier("low0")],
        },
        setup=PARTS_SETUP,
        read=ALL_OUT + "q0 NULLS FIRST",
        rows=[(None, "> 1", 1.0), (0.0, "≤ 1", None), (0.5, "≤ 1", None)],
    ),
    Case(
        "tables/mondrian/stage_parts",
        {
            "target": OUT,
            "source": SOURCE,
            "classes": CLASSES,
            "cuts": CUTS,
            "others": OTHERS,
            "columns": [
                {"name": identifier("a"), "value": column("label0", "l")},
                {"name": identifier("i l"), "value": column("o0", "p")},
                {"name": identifier("b"), "value": column("label1", "l")},
            ],
            "order": [column("label0", "l"), column("o0", "p"), column("label1", "l")],
        },
        setup=(*SOURCE_SETUP, *CLASSES_SETUP),
        read=ALL_OUT + 'a, "i l" NULLS LAST, b NULLS LAST',
        rows=[
            ("≥ 0.5", "it's", 0.25),
            ("≥ 0.5", "it's", 0.25),
            ("≥ 0.5", "😀", 0.25),
            ("≥ 0.5", None, 0.25),
            ("≥ 0.5", None, None),
            ("< 0.5", "it's", None),
            ("< 0.5", "😀", None),
        ],
        ordered=False,
    ),
    Case(
        "tables/mondrian/stage_parts",
        {
            "target": OUT,
            "source": SOURCE,
            "classes": CLASSES,
            "cuts": CUTS,
            "others": [],
            "columns": [{"name": identifier("b"), "value": column("label1", "l")}],
            "order": [column("label1", "l")],
        },
        setup=(*SOURCE_SETUP, *CLASSES_SETUP),
        read=ALL_OUT + "b NULLS LAST",
        rows=[(0.25,), (0.25,), (0.25,), (0.25,), (None,), (None,), (None,)],
        note="quasi-identifying columns alone",
    ),
    Case(
        "tables/mondrian/expect_parts",
        EXPECT,
        setup=GROUPED_SETUP,
        read=SUMMED,
        rows=[("≥ 0.5", 0.25, 4, 30), ("≥ 0.5", None, 1, 30), ("< 0.5", None, 2, 90)],
        ordered=False,
    ),
    Case(
        "tables/mondrian/expect_parts",
        EXPECT,
        setup=(*GROUPED_SETUP, LIES, ABSENT),
        read=SUMMED,
        rows=[("≥ 0.5", 0.25, 1, 20), ("< 0.5", None, 2, 90)],
        note="a value and a missing one outside their class",
        ordered=False,
    ),
    Case(
        "tables/mondrian/list_labels",
        {"release": SOURCE, "label": column("ill", "r")},
        setup=SOURCE_SETUP,
        rows=[(None,), ("it's",), ("😀",)],
        ordered=False,
    ),
    Case(
        "tables/mondrian/compare_parts",
        {"expected": table_name("expected"), "written": table_name("written"), "columns": NAMES[:1]},
        setup=COMPARED_SETUP,
        rows=[(5, 20, 14, 1, 3, 1)],
    ),
    Case(
        "tables/mondrian/spread_labels",
        {"written": SOURCE, "columns": [identifier("a"), identifier("b c")], "sensitive": identifier("ill")},
        setup=WRITTEN_SETUP,
        rows=[(1, 1, 1), (1, 3, 2), (2, 2, 1), (3, 2, 1)],
        ordered=False,
    ),
    Case(
        "tables/mondrian/spread_labels",
        {"written": SOURCE, "columns": [], "sensitive": identifier("ill")},
        setup=WRITTEN_SETUP,
        rows=[(1, 1, 1), (1, 2, 2), (1, 3, 2)],
        note="all rows as one class",
        ordered=False,
    ),
]
