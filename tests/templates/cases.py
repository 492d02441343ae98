"""One small fixture or more for every portable template: it must give these rows on every engine.

Names are hostile and fixtures hold NULLs, ties, classes of even size and text with quotes, line ends and emoji.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sqldeid.sql import column, identifier, literal, table_name

Rows = list[tuple[object, ...]]

SEX, AGE, NOTE = 'we"ird; DROP TABLE x; --', "select", "ünï code"
PEOPLE_SETUP = (
    'CREATE TABLE "peo ple" (id INTEGER, "we""ird; DROP TABLE x; --" VARCHAR(20), "select" INTEGER, "ünï code" TEXT)',
    """INSERT INTO "peo ple" VALUES (1, 'it''s', -30, 'b'), (2, 'it''s', -30, 'a'), (3, '😀', -30, NULL),
       (4, '😀', 40, 'a\nb'), (5, NULL, 40, 'e'), (6, NULL, 40, NULL)""",
)
CODED_SETUP = (
    'CREATE TABLE "coded 0" (original VARCHAR(20), code BIGINT)',
    "INSERT INTO \"coded 0\" VALUES ('it''s', 0), ('😀', 4)",
    'CREATE TABLE "coded 1" (original INTEGER, code BIGINT)',
    'INSERT INTO "coded 1" VALUES (-30, 0), (40, 1)',
)
"""Sex in bits 2 and 3 (NULL is 8), age in bit 0."""
COMBINED_SETUP = (
    'CREATE TABLE "com bined" (word TEXT, n BIGINT)',
    "INSERT INTO \"com bined\" VALUES ('a', 2), (NULL, 1), ('a', 3)",
)
CLASSES_SETUP = (
    'CREATE TABLE "clas ses" (w0 BIGINT, n BIGINT)',
    'INSERT INTO "clas ses" VALUES (0, 2), (4, 1), (5, 1), (9, 2)',
)
"""The people above, folded."""
LABELS_SETUP = (
    'CREATE TABLE "labels 0" (prefix BIGINT, label VARCHAR(20))',
    "INSERT INTO \"labels 0\" VALUES (0, 'it''s'), (4, '😀')",
    'CREATE TABLE "labels 1" (prefix BIGINT, label INTEGER)',
    'INSERT INTO "labels 1" VALUES (0, -30), (1, 40)',
)
KEPT_SETUP = (
    'CREATE TABLE "ke pt" (w0 BIGINT, size BIGINT, s TEXT, a INTEGER, place BIGINT)',
    "INSERT INTO \"ke pt\" VALUES (0, 2, 'it''s', -30, 1), (9, 2, NULL, 40, 2)",
)

NOTES_SETUP = (
    'CREATE TABLE "coded 2" (original TEXT, code BIGINT)',
    """INSERT INTO "coded 2" VALUES ('a', 0), ('b', 1), ('a\nb', 2), ('e', 3)""",
)
FOLDED_SETUP = (
    'CREATE TABLE "fol ded" (w0 BIGINT, s0 BIGINT, s1 BIGINT, n BIGINT)',
    'INSERT INTO "fol ded" VALUES (0, 0, 0, 2), (0, 1, 0, 1), (0, 0, 1, 1), (5, 3, NULL, 4)',
)
FAILING_SETUP = ('CREATE TABLE "fai led" (w0 BIGINT)', 'INSERT INTO "fai led" VALUES (9)')
GROUPS_SETUP = (
    'CREATE TABLE "groups 0" (value TEXT, a0_0 BIGINT, a0_1 BIGINT)',
    "INSERT INTO \"groups 0\" VALUES ('it''s', 0, 0), ('😀', 1, 0)",
    'CREATE TABLE "groups 1" (value BIGINT, a1_0 BIGINT, a1_1 BIGINT)',
    'INSERT INTO "groups 1" VALUES (-30, 0, 0)',
)

PEOPLE, CLASSES, KEPT, OUT = table_name("peo ple"), table_name("clas ses"), table_name("ke pt"), table_name("o'u\"t")
ALL_OUT = 'SELECT * FROM "o\'u""t" ORDER BY '
W0 = identifier("w0")
INTEGER, TEXT = exp.DataType.build("bigint", dialect="duckdb"), exp.DataType.build("varchar", dialect="duckdb")


@dataclass(frozen=True)
class Case:
    """A template with its parameters, and what must be true after it ran.

    Parameters
    ----------
    setup, after
        Statements that every engine reads as they are, before and after.
    read
        Query of the result, or one for each engine; empty where the template's own rows are the result.
    ordered
        Whether the order of the rows is part of the result.
    """

    template: str
    parameters: dict[str, object]
    rows: Rows
    setup: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    read: str | dict[str, str] = ""
    ordered: bool = True
    note: str = field(default="", kw_only=True)


def coded(number: int, name: str, null_code: int | None) -> dict[str, object]:
    return {
        "alias": identifier(f"h{number}"),
        "column": column(name, "s"),
        "coded": table_name(f"coded {number}"),
        "null_code": null_code,
    }


CODED_COLUMNS = [coded(0, SEX, 8), coded(1, AGE, None)]


def kept(*, blank: bool, text: bool, k: int = 2, failing: exp.Table | None = None) -> dict[str, object]:
    return {
        "kept": OUT,
        "failing": failing,
        "classes": CLASSES,
        "words": [{"name": W0, "mask": 13}],
        "k": k,
        "blank": blank,
        "columns": [
            {
                "name": identifier(name),
                "alias": identifier(f"l{i}"),
                "word": W0,
                "mask": mask,
                "labels": table_name(f"labels {i}"),
                "top": literal("*"),
                "text": text,
            }
            for i, (name, mask) in enumerate([(SEX, 12), (AGE, 1)])
        ],
    }


ARX = [
    Case(
        "arx/create_table",
        {"table": OUT, "rows": PEOPLE, "columns": [identifier("id"), identifier(AGE)]},
        [(1, -30), (2, -30), (3, -30), (4, 40), (5, 40), (6, 40)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1",
    ),
]

DEMO = [
    Case(
        "demo/create_schema",
        {"schema": identifier("ca se")},
        [(1,)],
        read="SELECT 1 AS made",
        after=('CREATE TABLE "ca se".t (a INTEGER)', 'DROP TABLE "ca se".t'),
    ),
    Case(
        "demo/create_table",
        {"table": OUT, "rows": PEOPLE, "columns": [identifier("id"), identifier(AGE)]},
        [(1, -30), (2, -30), (3, -30), (4, 40), (5, 40), (6, 40)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1",
    ),
]

ENGINE = [
    Case(
        "engine/commit_transaction",
        {},
        [(1,)],
        ("CREATE TABLE t (a INTEGER)", "BEGIN", "INSERT INTO t VALUES (1)"),
        read="SELECT a FROM t",
    ),
    Case(
        "engine/rollback_transaction",
        {},
        [],
        ("CREATE TABLE t (a INTEGER)", "BEGIN", "INSERT INTO t VALUES (1)"),
        read="SELECT a FROM t",
    ),
    Case(
        "engine/drop_table",
        {"table": PEOPLE},
        [(0,)],
        PEOPLE_SETUP,
        read="SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'peo ple'",
    ),
    Case(
        "engine/drop_table",
        {"table": PEOPLE},
        [(0,)],
        note="no such table",
        read="SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'peo ple'",
    ),
]

INSIGHT = [
    Case("insight/find_row", {"table": PEOPLE}, [(1,)], PEOPLE_SETUP),
    Case("insight/find_row", {"table": PEOPLE}, [(0,)], (*PEOPLE_SETUP, 'DELETE FROM "peo ple"'), note="empty"),
    Case(
        "insight/list_values",
        {"column": column(SEX, "s"), "type": TEXT, "source": PEOPLE},
        [("it's",), ("😀",), (None,)],
        PEOPLE_SETUP,
    ),
    Case(
        "insight/list_values",
        {"column": column(AGE, "s"), "type": INTEGER, "source": PEOPLE},
        [(-30,), (40,)],
        PEOPLE_SETUP,
        note="numbers",
    ),
]

SHOWN = [
    Case(
        "run/list_different",
        {"column": column(SEX, "s"), "source": PEOPLE},
        [("it's", 2), ("😀", 2), (None, 2)],
        PEOPLE_SETUP,
    ),
    Case("run/list_repeated", {"person": column(AGE, "s"), "source": PEOPLE}, [(-30, 3), (40, 3)], PEOPLE_SETUP),
]

PUBLISH = [
    Case(
        "publish/comment_table",
        {"table": PEOPLE, "comment": literal("it's; --\n😀")},
        [("it's; --\n😀",)],
        PEOPLE_SETUP,
        read={
            "duckdb": "SELECT comment FROM duckdb_tables() WHERE table_name = 'peo ple'",
            "postgres": "SELECT obj_description('\"peo ple\"'::regclass)",
        },
    ),
    Case(
        "publish/comment_column",
        {"table": PEOPLE, "column": identifier(AGE), "comment": literal("it's \\n")},
        [("it's \\n",)],
        PEOPLE_SETUP,
        read={
            "duckdb": "SELECT comment FROM duckdb_columns() WHERE table_name = 'peo ple' AND column_name = 'select'",
            "postgres": "SELECT col_description('\"peo ple\"'::regclass, 3)",
        },
    ),
    Case(
        "publish/comment_view",
        {"table": table_name("v w"), "comment": literal("it's")},
        [("it's",)],
        ('CREATE VIEW "v w" AS SELECT 1 AS a',),
        read={
            "duckdb": "SELECT comment FROM duckdb_views() WHERE view_name = 'v w'",
            "postgres": "SELECT obj_description('\"v w\"'::regclass)",
        },
    ),
    Case(
        "publish/copy_table",
        {"target": OUT, "table": KEPT},
        [(0, 2, "it's", -30, 1), (9, 2, None, 40, 2)],
        KEPT_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "publish/take_back",
        {
            "table": table_name("ma de"),
            "rows": PEOPLE,
            "columns": [
                {"name": identifier(AGE), "type": exp.DataType.build("double", dialect="duckdb")},
                {"name": identifier("id"), "type": TEXT},
            ],
        },
        [(-30.0, "1"), (-30.0, "2"), (-30.0, "3"), (40.0, "4"), (40.0, "5"), (40.0, "6")],
        PEOPLE_SETUP,
        read='SELECT * FROM "ma de"',
        ordered=False,
    ),
    Case(
        "publish/create_schema",
        {"schema": identifier("ca'se")},
        [(1,)],
        read="SELECT 1 AS made",
        after=('CREATE TABLE "ca\'se".t (a INTEGER)', 'DROP TABLE "ca\'se".t'),
    ),
    Case(
        "publish/create_view",
        {"view": OUT, "snapshot": PEOPLE, "columns": [identifier(AGE), identifier(SEX)]},
        [(-30, "it's"), (-30, "it's"), (-30, "😀"), (40, "😀"), (40, None), (40, None)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1, 2 NULLS LAST",
    ),
    Case(
        "publish/drop_view",
        {"table": table_name("v w")},
        [(0,)],
        ('CREATE VIEW "v w" AS SELECT 1 AS a',),
        read="SELECT COUNT(*) FROM information_schema.views WHERE table_name = 'v w'",
    ),
]

TABLES = [
    Case(
        "tables/release/group_classes",
        {"grouped": OUT, "source": PEOPLE, "columns": [identifier(SEX), identifier(AGE)]},
        [(1,), (1,), (2,), (2,)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1",
    ),
    Case("tables/rows/check_person", {"source": PEOPLE, "person": column("id", "s")}, [(6, 6, 6)], PEOPLE_SETUP),
    Case(
        "tables/rows/check_person",
        {"source": PEOPLE, "person": column(SEX, "s")},
        [(6, 4, 2)],
        PEOPLE_SETUP,
        note="NULLs and repeats",
    ),
    Case(
        "tables/rows/check_person", {"source": PEOPLE, "person": None}, [(6, 6, 6)], PEOPLE_SETUP, note="no person key"
    ),
    Case(
        "tables/rows/check_person",
        {"source": PEOPLE, "person": column("id", "s"), "numbered": True},
        [(6, 6, 6)],
        PEOPLE_SETUP,
        note="integers of a table",
    ),
    Case(
        "tables/rows/count_values",
        {"values": OUT, "column": column(SEX, "s"), "type": TEXT, "source": PEOPLE},
        [(1, "it's", "it's", 2), (2, "😀", "😀", 2), (3, None, None, 2)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/rows/count_values",
        {"values": OUT, "column": column(AGE, "s"), "type": INTEGER, "source": PEOPLE},
        [(1, -30, -30, 3), (2, 40, 40, 3)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1",
        note="numbers",
    ),
    Case(
        "tables/plan/count_versions",
        {"source": PEOPLE, "codes": column(NOTE, "s"), "version": column(AGE, "s")},
        [("-30", 2), ("40", 2)],
        PEOPLE_SETUP,
        ordered=False,
    ),
    Case(
        "tables/fold/combine_rows",
        {
            "combined": OUT,
            "source": PEOPLE,
            "columns": [column(SEX, "s"), column(AGE, "s")],
            "n": identifier("n"),
        },
        [("it's", -30, 2), ("😀", -30, 1), ("😀", 40, 1), (None, 40, 2)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1 NULLS LAST, 2",
    ),
    Case(
        "tables/fold/count_every",
        {
            "values": OUT,
            "columns": [
                {"column": column("word", "s"), "original": identifier("o0"), "value": identifier("v0"), "type": TEXT},
                {"column": column("n", "s"), "original": identifier("o1"), "value": identifier("v1"), "type": INTEGER},
            ],
            "source": table_name("com bined"),
            "n": column("n", "s"),
        },
        [
            (0, 1, 5, "a", "a", None, None),
            (0, 2, 1, None, None, None, None),
            (1, 1, 1, None, None, 1, 1),
            (1, 2, 2, None, None, 2, 2),
            (1, 3, 3, None, None, 3, 3),
        ],
        COMBINED_SETUP,
        read=ALL_OUT + "1, 2",
    ),
    Case(
        "tables/fold/read_every",
        {"values": table_name("v"), "columns": [identifier("v0"), identifier("v1")]},
        [(0, 5, "a", None), (1, 1, None, 1), (1, 2, None, 2)],
        (
            "CREATE TABLE v (c BIGINT, id BIGINT, n BIGINT, v0 TEXT, v1 BIGINT)",
            "INSERT INTO v VALUES (1, 2, 2, NULL, 2), (0, 1, 5, 'a', NULL), (1, 1, 1, NULL, 1)",
        ),
    ),
    Case(
        "tables/fold/code_every",
        {
            "coded": OUT,
            "values": table_name("v"),
            "codes": table_name("c"),
            "columns": [identifier("o0"), identifier("o1")],
        },
        [(0, "a", None, 8), (1, None, 1, 0), (1, None, 2, 4)],
        (
            "CREATE TABLE v (c BIGINT, id BIGINT, n BIGINT, o0 TEXT, o1 BIGINT)",
            "INSERT INTO v VALUES (1, 2, 2, NULL, 2), (0, 1, 5, 'a', NULL), (1, 1, 1, NULL, 1)",
            "CREATE TABLE c (c BIGINT, id BIGINT, code BIGINT)",
            "INSERT INTO c VALUES (0, 1, 8), (1, 1, 0), (1, 2, 4)",
        ),
        read=ALL_OUT + "1, 4",
    ),
    Case(
        "tables/fold/pick_coded",
        {"coded": OUT, "every": table_name("v"), "place": 1, "column": identifier("o1")},
        [(0, 1), (2, 4)],
        (
            "CREATE TABLE v (c BIGINT, o0 TEXT, o1 BIGINT, code BIGINT)",
            "INSERT INTO v VALUES (1, NULL, 2, 4), (0, 'a', NULL, 8), (1, NULL, 0, 1), (1, NULL, NULL, 9)",
        ),
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/write/list_shown",
        {
            "release": table_name("v"),
            "columns": [{"number": 0, "column": column("a b", "r")}, {"number": 2, "column": column("c", "r")}],
            "most": 2,
        },
        [(0, "x'", 3), (0, None, 1), (2, "same", 5)],
        (
            'CREATE TABLE v ("a b" TEXT, c TEXT)',
            "INSERT INTO v VALUES ('x''', 'same'), ('x''', 'same'), ('x''', 'same'), (NULL, 'same'), ('z', 'same')",
        ),
        ordered=False,
    ),
    Case(
        "tables/rows/read_values",
        {"values": table_name("v")},
        [("b", 1), (None, 3), ("a", 2)],
        (
            "CREATE TABLE v (id BIGINT, value TEXT, n BIGINT)",
            "INSERT INTO v VALUES (3, 'a', 2), (1, 'b', 1), (2, NULL, 3)",
        ),
    ),
    Case(
        "tables/fold/code_values",
        {"coded": OUT, "values": table_name("v"), "codes": table_name("c")},
        [("a", 8), ("b", 0)],
        (
            "CREATE TABLE v (id BIGINT, original TEXT)",
            "INSERT INTO v VALUES (1, 'b'), (2, NULL), (3, 'a')",
            "CREATE TABLE c (id BIGINT, code BIGINT)",
            "INSERT INTO c VALUES (1, 0), (2, 4), (3, 8)",
        ),
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/write/label_values",
        {"labels": OUT, "coded": table_name("coded 0")},
        [(0, "it's"), (4, "😀")],
        CODED_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/fold/fold_classes",
        {"classes": OUT, "source": PEOPLE, "words": [{"name": W0, "columns": CODED_COLUMNS}], "sensitive": []},
        [(0, 2), (4, 1), (5, 1), (9, 2)],
        PEOPLE_SETUP + CODED_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/fold/fold_classes",
        {
            "classes": OUT,
            "source": PEOPLE,
            "words": [{"name": identifier(f"w{i}"), "columns": [c]} for i, c in enumerate(CODED_COLUMNS)],
            "sensitive": [],
        },
        [(0, 0, 2), (4, 0, 1), (4, 1, 1), (8, 1, 2)],
        PEOPLE_SETUP + CODED_SETUP,
        read=ALL_OUT + "1, 2",
        note="two words",
    ),
    Case(
        "tables/fold/fold_classes",
        {
            "classes": OUT,
            "source": table_name("com bined"),
            "words": [{"name": W0, "columns": [coded(0, "word", 4)]}],
            "sensitive": [],
            "n": column("n", "s"),
        },
        [(0, 5), (4, 1)],
        (
            *COMBINED_SETUP,
            'CREATE TABLE "coded 0" (original TEXT, code BIGINT)',
            "INSERT INTO \"coded 0\" VALUES ('a', 0)",
        ),
        read=ALL_OUT + "1",
        note="of combinations",
    ),
    Case(
        "tables/fold/fold_classes",
        {
            "classes": OUT,
            "source": PEOPLE,
            "words": [{"name": W0, "columns": [coded(0, SEX, None)]}],
            "sensitive": [],
        },
        [(0, 2), (4, 2), (None, 2)],
        PEOPLE_SETUP + CODED_SETUP,
        read=ALL_OUT + "1 NULLS LAST",
        note="a value without a code stays NULL",
    ),
    Case(
        "tables/fold/fold_classes",
        {
            "classes": OUT,
            "source": PEOPLE,
            "words": [{"name": W0, "columns": CODED_COLUMNS[1:]}],
            "sensitive": [
                {**coded(2, NOTE, 4), "name": identifier("s0")},
                {**coded(0, SEX, None), "name": identifier("s1")},
            ],
        },
        [(0, 0, 0, 1), (0, 1, 0, 1), (0, 4, 4, 1), (1, 2, 4, 1), (1, 3, None, 1), (1, 4, None, 1)],
        PEOPLE_SETUP + CODED_SETUP + NOTES_SETUP,
        read=ALL_OUT + "1, 2",
        note="split by sensitive columns, NULL a value of its own",
    ),
    Case(
        "tables/fold/spread_classes",
        {"spread": OUT, "folded": table_name("fol ded"), "words": [W0], "sensitive": identifier("s1")},
        [(0, 0, 3), (0, 1, 1), (5, None, 4)],
        FOLDED_SETUP,
        read=ALL_OUT + "1, 2",
    ),
    Case(
        "tables/fold/spread_classes",
        {
            "spread": OUT,
            "folded": table_name("fol ded"),
            "words": [W0, identifier("s1")],
            "sensitive": identifier("s0"),
        },
        [(0, 0, 0, 2), (0, 0, 1, 1), (0, 1, 0, 1), (5, None, 3, 4)],
        FOLDED_SETUP,
        read=ALL_OUT + "1, 2, 3",
        note="two words",
    ),
    Case(
        "tables/fold/merge_classes",
        {"classes": OUT, "folded": table_name("fol ded"), "words": [W0]},
        [(0, 4), (5, 4)],
        FOLDED_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/fold/merge_classes",
        {"classes": OUT, "folded": table_name("fol ded"), "words": [W0, identifier("s0")]},
        [(0, 0, 3), (0, 1, 1), (5, 3, 4)],
        FOLDED_SETUP,
        read=ALL_OUT + "1, 2",
        note="two words",
    ),
    Case("tables/fold/total_classes", {"classes": CLASSES, "words": [W0]}, [(6, 0, 4)], CLASSES_SETUP),
    Case(
        "tables/fold/total_classes",
        {"classes": CLASSES, "words": [W0, identifier("n")]},
        [(9, 3, 5)],
        (*CLASSES_SETUP, 'INSERT INTO "clas ses" VALUES (NULL, 3)'),
        note="uncoded rows, two words",
    ),
    Case(
        "tables/fold/total_classes", {"classes": CLASSES, "words": [W0]}, [(0, 0, 0)], CLASSES_SETUP[:1], note="empty"
    ),
    Case(
        "tables/write/count_suppressed",
        {
            "failing": table_name("fai led"),
            "classes": CLASSES,
            "words": [{"name": W0, "mask": 13}],
            "k": 2,
            "columns": [{"number": 0, "word": W0, "mask": 12}, {"number": 1, "word": W0, "mask": 1}],
        },
        [(0, 0, 2, 0), (0, 4, 2, 2), (0, 8, 2, 2), (1, 0, 3, 1), (1, 1, 3, 3)],
        CLASSES_SETUP + FAILING_SETUP,
        ordered=False,
        note="a criterion fails, too",
    ),
    Case(
        "tables/write/count_suppressed",
        {
            "failing": None,
            "classes": CLASSES,
            "words": [{"name": W0, "mask": 13}],
            "k": 2,
            "columns": [{"number": 0, "word": W0, "mask": 12}, {"number": 1, "word": W0, "mask": 1}],
        },
        [(0, 0, 2, 0), (0, 4, 2, 2), (0, 8, 2, 0), (1, 0, 3, 1), (1, 1, 3, 1)],
        CLASSES_SETUP,
        ordered=False,
    ),
    Case(
        "tables/write/keep_classes",
        kept(blank=False, text=False),
        [(0, 2, "it's", -30, 1), (9, 2, None, 40, 2)],
        CLASSES_SETUP + LABELS_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/write/keep_classes",
        kept(blank=False, text=True),
        [(0, 2, "it's", "-30", 1), (9, 2, None, "40", 2)],
        CLASSES_SETUP + LABELS_SETUP,
        read=ALL_OUT + "1",
        note="as text",
    ),
    Case(
        "tables/write/keep_classes",
        {**kept(blank=False, text=True), "placed": False},
        [(0, 2), (9, 2)],
        CLASSES_SETUP + LABELS_SETUP,
        read='SELECT w0, size FROM "o\'u""t" ORDER BY 1',
        note="without a place",
    ),
    Case(
        "tables/write/keep_classes",
        kept(blank=True, text=True),
        [(0, 2, "it's", "-30", 2), (4, 1, "*", "*", 1), (5, 1, "*", "*", 1), (9, 2, None, "40", 3)],
        CLASSES_SETUP + LABELS_SETUP,
        read=ALL_OUT + "1",
        note="blanked rows, k of them together",
    ),
    Case(
        "tables/write/keep_classes",
        kept(blank=True, text=True),
        [(0, 2, "it's", "-30", 1), (9, 2, None, "40", 2)],
        (*CLASSES_SETUP, *LABELS_SETUP, 'DELETE FROM "clas ses" WHERE w0 = 4'),
        read=ALL_OUT + "1",
        note="blanked rows, fewer than k",
    ),
    Case(
        "tables/write/keep_classes",
        kept(blank=False, text=False, failing=table_name("fai led")),
        [(0, 2, "it's", -30, 1)],
        CLASSES_SETUP + LABELS_SETUP + FAILING_SETUP,
        read=ALL_OUT + "1",
        note="a criterion fails",
    ),
    Case(
        "tables/write/keep_classes",
        kept(blank=True, text=True, k=1, failing=table_name("fai led")),
        [(0, 2, "it's", "-30", 2), (4, 1, "😀", "-30", 3), (5, 1, "😀", "40", 4), (9, 2, "*", "*", 1)],
        CLASSES_SETUP + LABELS_SETUP + FAILING_SETUP,
        read=ALL_OUT + "1",
        note="blanked, for a criterion fails",
    ),
    Case(
        "tables/rows/keep_source",
        {
            "kept": OUT,
            "columns": [identifier(AGE), identifier("id")],
            "source": exp.Subquery(this=exp.select("*").from_(PEOPLE)),
        },
        [(-30, 1), (-30, 2), (-30, 3), (40, 4), (40, 5), (40, 6)],
        PEOPLE_SETUP,
        read=ALL_OUT + "2",
    ),
    Case(
        "tables/write/stage_rows",
        {
            "target": OUT,
            "source": PEOPLE,
            "kept": KEPT,
            "words": [{"name": W0, "mask": 13, "columns": CODED_COLUMNS}],
            "columns": [
                {"name": identifier(NOTE), "value": column(NOTE, "s")},
                {"name": identifier(SEX), "value": column("s", "e")},
                {"name": identifier(AGE), "value": column("a", "e")},
            ],
            "order": [column(NOTE, "s")],
        },
        [("a", "it's", -30), ("b", "it's", -30), ("e", None, 40), (None, None, 40)],
        PEOPLE_SETUP + CODED_SETUP + KEPT_SETUP,
        read='SELECT * FROM "o\'u""t"',
        note="in this order",
    ),
    *(
        Case(
            "tables/write/stage_classes",
            {
                "target": OUT,
                "kept": KEPT,
                "columns": [
                    {"name": identifier(NOTE), "value": column("a", "e")},
                    {"name": identifier(SEX), "value": column("s", "e")},
                ],
                "parts": 1,
                "copies": copies,
            },
            [(-30, "it's"), (-30, "it's"), (-30, "it's"), (40, None), (40, None), (40, None), (40, None)],
            (KEPT_SETUP[0], "INSERT INTO \"ke pt\" VALUES (9, 4, NULL, 40, 2), (0, 3, 'it''s', -30, 1)"),
            read='SELECT * FROM "o\'u""t"',
            note=f"{copies} to a piece, in this order",
        )
        for copies in (1, 2, 3, 9)
    ),
    Case(
        "tables/write/write_labels",
        {"target": OUT, "coded": table_name("coded 0"), "labels": table_name("labels 0"), "mask": 4},
        [("it's", "it's"), ("😀", "😀")],
        CODED_SETUP + LABELS_SETUP,
        read='SELECT * FROM "o\'u""t"',
    ),
    Case(
        "tables/write/write_labels",
        {"target": OUT, "coded": table_name("coded 0"), "labels": table_name("labels 0"), "mask": 0},
        [("it's", "it's"), ("😀", "it's")],
        CODED_SETUP + LABELS_SETUP,
        read='SELECT * FROM "o\'u""t"',
        note="one group",
    ),
]

TABLES += [
    Case(
        "tables/certificate/prove_fold",
        {
            "folded": OUT,
            "source": PEOPLE,
            "sensitive": [],
            "columns": [
                {
                    "column": column(name, "s"),
                    "alias": identifier(f"v{i}"),
                    "groups": table_name(f"groups {i}"),
                    "type": type_,
                    "levels": [{"name": identifier(f"a{i}_{x}"), "null_group": g} for x, g in enumerate(null_groups)],
                }
                for i, (name, type_, null_groups) in enumerate([(SEX, TEXT, [2, 0]), (AGE, INTEGER, [None, None])])
            ],
        },
        [(0, 0, 0, 0, 2), (1, 0, 0, 0, 1), (1, 0, None, None, 1), (2, 0, None, None, 2)],
        PEOPLE_SETUP + GROUPS_SETUP,
        read=ALL_OUT + "1, 2, 3 NULLS LAST",
        note="NULL has groups of its own; a value without a group stays NULL",
    ),
    Case(
        "tables/certificate/prove_fold",
        {
            "folded": OUT,
            "source": PEOPLE,
            "sensitive": [],
            "weight": column(AGE, "s"),
            "columns": [
                {
                    "column": column(SEX, "s"),
                    "alias": identifier("v0"),
                    "groups": table_name("groups 0"),
                    "type": TEXT,
                    "levels": [{"name": identifier("a0_0"), "null_group": 2}],
                }
            ],
        },
        [(0, -60), (1, 10), (2, 80)],
        PEOPLE_SETUP + GROUPS_SETUP,
        read=ALL_OUT + "1",
        note="rows stand for several",
    ),
    Case("tables/rows/count_unweighed", {"source": PEOPLE, "weight": column(AGE, "s")}, [(3,)], PEOPLE_SETUP),
    Case(
        "tables/certificate/prove_fold",
        {
            "folded": OUT,
            "source": PEOPLE,
            "sensitive": [{"name": identifier("v0"), "column": column(AGE, "s")}],
            "columns": [
                {
                    "column": column(SEX, "s"),
                    "alias": identifier("v0"),
                    "groups": table_name("groups 0"),
                    "type": TEXT,
                    "levels": [{"name": identifier(f"a0_{x}"), "null_group": g} for x, g in enumerate([2, 0])],
                }
            ],
        },
        [(0, 0, -30, 2), (1, 0, -30, 1), (1, 0, 40, 1), (2, 0, 40, 2)],
        PEOPLE_SETUP + GROUPS_SETUP,
        read=ALL_OUT + "1, 2, 3 NULLS LAST",
        note="split by a sensitive column",
    ),
    Case(
        "tables/certificate/prove_marginals",
        {"folded": table_name("fol ded"), "leaf": identifier("s1")},
        [(0, 3), (1, 1), (None, 4)],
        FOLDED_SETUP,
        ordered=False,
    ),
    Case("engine/count_rows", {"table": CLASSES}, [(4,)], CLASSES_SETUP),
    Case(
        "tables/epsilon_safe/read_classes",
        {"classes": CLASSES, "words": [W0]},
        [(0, 2), (4, 1), (5, 1), (9, 2)],
        CLASSES_SETUP,
        ordered=False,
    ),
    Case(
        "tables/epsilon_safe/read_classes",
        {"classes": CLASSES, "words": [W0]},
        [(0, 2), (4, 1), (5, 1), (9, 2)],
        CLASSES_SETUP,
        ordered=False,
    ),
    Case("tables/epsilon_safe/read_classes", {"classes": CLASSES, "words": [W0]}, [], CLASSES_SETUP[:1], note="empty"),
    Case("engine/count_rows", {"table": CLASSES}, [(0,)], CLASSES_SETUP[:1], note="empty"),
]

MAPPED_SETUP = (
    "CREATE TABLE m (q0 TEXT, n BIGINT, p BIGINT)",
    "INSERT INTO m VALUES ('a', 2, 3), (NULL, 1, 4), ('c', 5, 0)",
)
PRESENCE_SETUP = (
    "CREATE TABLE g (q0 TEXT, n BIGINT)",
    "INSERT INTO g VALUES ('a', 2), (NULL, 1), ('c', 5)",
    "CREATE TABLE e (q0 TEXT, n BIGINT)",
    "INSERT INTO e VALUES ('a', 3), ('b', 9), (NULL, 4)",
)
PRESENCE = {
    **{"grouped": table_name("g"), "population": table_name("e"), "columns": [identifier("q0")]},
    **{"least_num": 1, "least_den": 4, "most_num": 1, "most_den": 2},
}
PASSING_SETUP = (
    "CREATE TABLE g (n BIGINT, fails BOOLEAN)",
    "INSERT INTO g VALUES (2, FALSE), (5, FALSE), (5, TRUE), (2, FALSE), (1, TRUE)",
)
SIZES_SETUP = ("CREATE TABLE g (n BIGINT)", "INSERT INTO g VALUES (2), (5), (2), (1)")
TABLES += [
    Case("tables/verify/count_sizes", {"grouped": table_name("g")}, [(1, 1), (2, 2), (5, 1)], SIZES_SETUP),
    Case("tables/verify/count_sizes", {"grouped": table_name("g")}, [], SIZES_SETUP[:1], note="empty"),
    Case("tables/verify/count_passing", {"flagged": table_name("g")}, [(2, 2), (5, 1)], PASSING_SETUP),
    Case("tables/verify/count_passing", {"flagged": table_name("g")}, [], PASSING_SETUP[:1], note="empty"),
    Case(
        "tables/verify/map_classes",
        {
            "mapped": table_name("m"),
            "grouped": table_name("g"),
            "population": table_name("e"),
            "columns": [identifier("q0")],
        },
        [(None, 1, 4), ("a", 2, 3), ("c", 5, 0)],
        (
            "CREATE TABLE g (q0 TEXT, n BIGINT)",
            "INSERT INTO g VALUES ('a', 2), (NULL, 1), ('c', 5)",
            "CREATE TABLE e (q0 TEXT, n BIGINT)",
            "INSERT INTO e VALUES ('a', 3), ('b', 9), (NULL, 4)",
        ),
        read="SELECT * FROM m",
        ordered=False,
    ),
    Case(
        "tables/verify/few_mapped",
        {"failing": table_name("f"), "mapped": table_name("m"), "columns": [identifier("q0")], "k_map": 4},
        [("a",), ("c",)],
        MAPPED_SETUP,
        read="SELECT * FROM f",
        ordered=False,
    ),
    Case("tables/verify/measure_presence", PRESENCE, [(1, 2, 0.0, 1.0)], PRESENCE_SETUP),
    Case("tables/verify/measure_presence", PRESENCE, [(0, 0, None, None)], PRESENCE_SETUP[::2], note="empty"),
    Case("tables/verify/measure_mapped", {"mapped": table_name("m")}, [(0, 2 / 3 + 1 / 4 + 5, 8)], MAPPED_SETUP),
    Case("tables/verify/measure_mapped", {"mapped": table_name("m")}, [(0, 0.0, 0)], MAPPED_SETUP[:1], note="empty"),
]

CASES = [*ARX, *DEMO, *ENGINE, *INSIGHT, *SHOWN, *PUBLISH, *TABLES]
