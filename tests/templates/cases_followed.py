"""Cases of the templates of a table release and the series that follow it: keys as text, NULLs among labels."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import AGE, CODED_COLUMNS, CODED_SETUP, PEOPLE_SETUP, SEX, Case

OUT = table_name("o'u\"t")
FROM_OUT = 'SELECT {} FROM "o\'u""t" ORDER BY {}'
KEPT_SETUP = (
    *PEOPLE_SETUP,
    *CODED_SETUP,
    "CREATE TABLE kept (w0 BIGINT, place BIGINT)",
    "INSERT INTO kept VALUES (0, 5), (4, 2), (8, 9)",
)
MEMBERS_SETUP = (
    *PEOPLE_SETUP,
    "CREATE TABLE members (person TEXT, number BIGINT, class BIGINT)",
    "INSERT INTO members VALUES ('1', 2, 7), ('4', 1, 7), ('9', 3, 8)",
    "CREATE TABLE placed (person TEXT, class BIGINT)",
    "INSERT INTO placed VALUES ('1', 0), ('2', 0), ('4', 1), ('6', 1)",
)
LABELS_SETUP = (
    'CREATE TABLE "flag ged" (q0 TEXT, q1 INTEGER, n BIGINT, fails BOOLEAN)',
    """INSERT INTO "flag ged" VALUES ('b', 1, 2, FALSE), ('b', NULL, 2, FALSE), ('a', 9, 1, TRUE), (NULL, 1, 2, FALSE),
       ('', 1, 3, FALSE)""",
    "CREATE TABLE classes (q0 TEXT, q1 INTEGER, place BIGINT)",
    "INSERT INTO classes VALUES ('', 1, 1), ('b', 1, 2), ('b', NULL, 3), (NULL, 1, 4)",
    'CREATE TABLE "label led" (q0 TEXT, q1 INTEGER, "no" INTEGER)',
    "INSERT INTO \"label led\" VALUES ('b', 1, 11), ('b', NULL, 12), (NULL, 1, 13), (NULL, NULL, 14), ('', 1, 15)",
    'CREATE TABLE "writ ten" ("the number" BIGINT, "select" TEXT, "ünï" BIGINT)',
    "INSERT INTO \"writ ten\" VALUES (1, 'b', 1), (2, 'b', NULL), (3, NULL, 1), (4, 'c', 1), (4, '', 1)",
)
LABELS = [identifier("q0"), identifier("q1")]
CONTENT_SETUP = (
    'CREATE TABLE given (class BIGINT, "select" TEXT, n INTEGER)',
    "INSERT INTO given VALUES (7, 'a', 1), (7, 'a', 1), (7, NULL, NULL), (8, 'b', 2), (8, '', 2)",
    'CREATE TABLE written (number BIGINT, "select" TEXT, n INTEGER)',
    "INSERT INTO written VALUES (1, 'a', 1), (2, NULL, NULL), (3, 'b', 2), (4, NULL, 2)",
    "CREATE TABLE fit (number BIGINT, class BIGINT)",
    "INSERT INTO fit VALUES (1, 7), (2, 7), (3, 7), (3, 8), (4, 8)",
)
SERIES_SETUP = (
    "CREATE TABLE persons (person INTEGER, person_number BIGINT)",
    "INSERT INTO persons VALUES (1, 10), (2, 11), (4, 12), (5, 13)",
    "CREATE TABLE numbers (person_number BIGINT, number BIGINT, class BIGINT)",
    "INSERT INTO numbers VALUES (10, 2, 7), (12, 1, 8)",
    "CREATE TABLE placed (person TEXT, class BIGINT)",
    "INSERT INTO placed VALUES ('4', 1), ('1', 0), ('2', 0), ('9', 1)",
    "CREATE TABLE joined (person TEXT, person_number BIGINT, class BIGINT)",
    "INSERT INTO joined VALUES ('4', 12, 1), ('1', 10, 0), ('2', 11, 0)",
)

CASES = [
    Case(
        "tables/followed/class_persons",
        {
            "persons": OUT,
            "source": table_name("peo ple"),
            "person": column("id", "s"),
            "kept": table_name("kept"),
            "words": [{"name": identifier("w0"), "mask": 12, "columns": CODED_COLUMNS}],
        },
        [("1", 5), ("2", 5), ("3", 2), ("4", 2), ("5", 9), ("6", 9)],
        KEPT_SETUP,
        read=FROM_OUT.format("person, class", "person"),
    ),
    *(
        Case(
            "tables/followed/number_source",
            {
                "numbered": OUT,
                "columns": [identifier(SEX), identifier(AGE)],
                "source": table_name("peo ple"),
                "person": column("id", "s"),
                "members": table_name("members"),
                "given": identifier("number"),
                "name": identifier("new number"),
                "all": everybody,
            },
            [("it's", -30, 2), ("😀", 40, 1), *([("it's", -30, None), (None, 40, None), (None, 40, None)] * everybody)]
            + [("😀", -30, None)] * everybody,
            MEMBERS_SETUP,
            read='SELECT "we""ird; DROP TABLE x; --", "select", "new number" FROM "o\'u""t"',
            ordered=False,
            note="everybody" if everybody else "members",
        )
        for everybody in (True, False)
    ),
    Case(
        "tables/followed/hold_unlinked",
        {"held": OUT, "persons": table_name("placed"), "members": table_name("members")},
        [("2",), ("6",)],
        MEMBERS_SETUP,
        read=FROM_OUT.format("person", "person"),
    ),
    Case(
        "tables/followed/join_written",
        {
            "joined": OUT,
            "written": table_name("writ ten"),
            "columns": [identifier("select"), identifier("the number")],
            "number": identifier("the number"),
            "members": table_name("members"),
            "name": identifier("the class"),
        },
        [("b", 1, 7), ("b", 2, 7), (None, 3, 8)],
        MEMBERS_SETUP + LABELS_SETUP,
        read=FROM_OUT.format('"select", "the number", "the class"', '"the number"'),
    ),
    Case(
        "tables/followed/check_numbers",
        {"written": table_name("writ ten"), "number": identifier("the number")},
        [(5, 4, 1, 4)],
        LABELS_SETUP,
    ),
    Case(
        "tables/followed/place_labels",
        {"classes": OUT, "flagged": table_name("flag ged"), "columns": LABELS},
        [("", 1, 1), ("b", 1, 2), ("b", None, 3), (None, 1, 4)],
        LABELS_SETUP,
        read=FROM_OUT.format("q0, q1, place", "place"),
    ),
    Case(
        "tables/followed/place_persons",
        {
            "persons": OUT,
            "labelled": table_name("label led"),
            "person": identifier("no"),
            "classes": table_name("classes"),
            "columns": LABELS,
        },
        [("11", 2), ("12", 3), ("13", 4), ("15", 1)],
        LABELS_SETUP,
        read=FROM_OUT.format("person, class", "person"),
    ),
    Case(
        "tables/followed/place_written",
        {
            "placed": OUT,
            "written": table_name("writ ten"),
            "number": identifier("the number"),
            "classes": table_name("classes"),
            "columns": [
                {"name": identifier("q0"), "released": identifier("select")},
                {"name": identifier("q1"), "released": identifier("ünï")},
            ],
        },
        [(1, 2), (2, 3), (3, 4), (4, 1), (4, None)],
        LABELS_SETUP,
        read='SELECT number, class FROM "o\'u""t"',
        ordered=False,
        note="another type of number",
    ),
    Case(
        "tables/followed/failing_numbers",
        {"flagged": table_name("flag ged"), "column": identifier("q1")},
        [(9,)],
        LABELS_SETUP,
    ),
    Case(
        "tables/followed/compare_members",
        {
            "given": table_name("given"),
            "combined": column("class", "s"),
            "source_columns": [column("select", "s"), column("n", "s")],
            "written": table_name("written"),
            "number": column("number", "r"),
            "written_columns": [column("select", "r"), column("n", "r")],
            "fit": table_name("fit"),
        },
        [(2,)],
        CONTENT_SETUP,
    ),
    Case(
        "series/join_classes",
        {
            "joined": OUT,
            "persons": table_name("persons"),
            "classes": table_name("placed"),
            "person": exp.cast(column("person", "p"), "TEXT"),
        },
        [("1", 10, 0), ("2", 11, 0), ("4", 12, 1)],
        SERIES_SETUP,
        read=FROM_OUT.format("person, person_number, class", "person"),
    ),
    Case("series/read_joined", {"joined": table_name("joined")}, [(10, 0), (11, 0), (12, 1)], SERIES_SETUP),
    Case(
        "series/name_members",
        {"members": OUT, "joined": table_name("joined"), "numbers": table_name("numbers")},
        [("1", 2, 7), ("4", 1, 8)],
        SERIES_SETUP,
        read=FROM_OUT.format("person, number, class", "person"),
    ),
]
