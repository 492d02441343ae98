"""Cases of the templates of local recoding that run where the source lies: mixed levels, typed columns, NULLs, ties."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, literal, table_name
from tests.templates.cases import ALL_OUT, OUT, Case

ASSIGNED, LAYERS, WITNESS, GROUPED = (table_name(n) for n in ("as signed", "found_layers", "wit ness", "gro uped"))
LABELS, VALUES = table_name("labels 0"), table_name("labels 1")
W0 = identifier("w0")
ASSIGNED_SETUP = (
    'CREATE TABLE "as signed" (w0 BIGINT, layer BIGINT, recoding BIGINT, n BIGINT)',
    'INSERT INTO "as signed" VALUES (0, 1, 2, 2), (5, 2, 2, 1), (13, 2, 2, 4), (9, 1, 1, 3)',
)
"""The first column in bits 2 and 3 (at level 1 in bit 3 alone), the second in bit 0."""
LAYERS_SETUP = (
    'CREATE TABLE "found_layers" (layer BIGINT, x0 BIGINT, x1 BIGINT, m0 BIGINT, m1 BIGINT)',
    'INSERT INTO "found_layers" VALUES (1, 0, 0, 12, 1), (2, 1, 0, 8, 1)',
)
LABELS_SETUP = (
    'CREATE TABLE "labels 0" (level BIGINT, prefix BIGINT, leaf BIGINT, label VARCHAR(20))',
    """INSERT INTO "labels 0" VALUES (0, 0, 0, 'it''s'), (0, 4, 1, '😀'), (0, 8, 2, NULL), (1, 0, 0, 'it''s'),
       (1, 8, 2, '*'), (1, 0, 1, 'it''s')""",
)
WRITE_SETUP = (
    'CREATE TABLE "labels 0" (level BIGINT, prefix BIGINT, label VARCHAR(20))',
    "INSERT INTO \"labels 0\" VALUES (0, 0, 'it''s'), (0, 4, '😀'), (0, 8, NULL), (1, 0, 'it''s'), (1, 8, '*')",
    'CREATE TABLE "labels 1" (prefix BIGINT, label INTEGER)',
    'INSERT INTO "labels 1" VALUES (0, -30), (1, 40)',
)
MIXED = {
    "name": identifier("q0"),
    "alias": identifier("l0"),
    "word": W0,
    "labels": LABELS,
    "level": identifier("x0"),
    "mask": identifier("m0"),
}
OWN = {
    "name": identifier("q1"),
    "alias": identifier("l1"),
    "word": W0,
    "labels": VALUES,
    "level": None,
    "mask": 1,
}
RELEASED_SETUP = (
    'CREATE TABLE "re leased" ("b c" VARCHAR(20), "select" INTEGER)',
    "INSERT INTO \"re leased\" VALUES ('it''s', -30), ('it''s', 40), ('*', 40), (NULL, NULL)",
)
TOLD_SETUP = (
    'CREATE TABLE "told" (place BIGINT, column_name VARCHAR(20), label VARCHAR(20), level BIGINT, '
    "level_name VARCHAR(20), says VARCHAR(20))",
    """INSERT INTO "told" VALUES (0, 'b c', '😀', 0, 'original', '😀'), (1, 'b c', NULL, 1, '*', 'it''s'),
       (2, 'select', '-30', 1, '*', '*')""",
)
GROUPED_SETUP = (
    'CREATE TABLE "gro uped" (q0 BIGINT, q1 BIGINT, n BIGINT, fingerprint BIGINT)',
    'INSERT INTO "gro uped" VALUES (0, 7, 2, 10), (1, 7, 1, 20), (2, 7, 5, 40), (2, 8, 1, 80), (NULL, 7, 1, 160)',
    'CREATE TABLE "wit ness" (q0 BIGINT, q1 BIGINT, layer BIGINT)',
    'INSERT INTO "wit ness" VALUES (0, 7, 1), (1, 7, 2), (2, 7, 2)',
)
PLACED = {
    "placed": OUT,
    "grouped": GROUPED,
    "layers": LAYERS,
    "witness": WITNESS,
    "columns": [
        {"name": identifier("q0"), "alias": identifier("l0"), "level": identifier("x0"), "labels": LABELS},
        {"name": identifier("q1"), "alias": identifier("l1"), "level": identifier("x1"), "labels": None},
    ],
}
ROLLED_SETUP = (
    'CREATE TABLE "re_leased" (q0 VARCHAR(20), q1 INTEGER, "b c" INTEGER)',
    "INSERT INTO \"re_leased\" VALUES ('it''s', 1, 7), ('😀', 2, 8), ('*', NULL, 9), (NULL, 3, NULL), ('*', NULL, 9)",
    'CREATE TABLE "said_0" (value VARCHAR(20), label VARCHAR(20))',
    "INSERT INTO \"said_0\" VALUES ('it''s', 'a'), ('😀', 'b'), ('*', NULL)",
    'CREATE TABLE "said_1" (value BIGINT, label VARCHAR(20))',
    "INSERT INTO \"said_1\" VALUES (1, 'low'), (2, 'low'), (3, 'high')",
)
ROLLED = [
    {
        "name": identifier("q0"),
        "column": column("q0", "s"),
        "labels": table_name("said_0"),
        "alias": identifier("m0"),
        "type": exp.DataType.build("varchar", dialect="duckdb"),
        "null_label": literal("none"),
    },
    {
        "name": identifier("q1"),
        "column": column("q1", "s"),
        "labels": table_name("said_1"),
        "alias": identifier("m1"),
        "type": exp.DataType.build("bigint", dialect="duckdb"),
        "null_label": literal(None),
    },
    {"name": identifier("b c"), "column": column("b c", "s"), "labels": None},
]
CASES = [
    Case(
        "tables/local/roll_up",
        {"target": OUT, "release": table_name("re_leased"), "columns": ROLLED},
        setup=ROLLED_SETUP,
        read='SELECT * FROM "o\'u""t"',
        rows=[("a", "low", 7), ("b", "low", 8), (None, None, 9), ("none", "high", None), (None, None, 9)],
        ordered=False,
    ),
    Case(
        "tables/local/compare_roll_up",
        {"rolled": table_name("rolled"), "release": table_name("re_leased"), "columns": ROLLED},
        setup=(
            *ROLLED_SETUP,
            'CREATE TABLE "rolled" (q0 VARCHAR(20), q1 VARCHAR(20), "b c" INTEGER)',
            "INSERT INTO \"rolled\" VALUES ('a', 'low', 7), ('b', 'low', 8), (NULL, NULL, 9), ('none', 'high', NULL)",
        ),
        rows=[(1,)],
        note="one of two equal rows is missing",
    ),
    Case(
        "tables/local/compare_roll_up",
        {"rolled": table_name("re_leased"), "release": table_name("re_leased"), "columns": ROLLED[2:]},
        setup=ROLLED_SETUP,
        rows=[(0,)],
        note="nothing is rolled up",
    ),
    Case(
        "tables/local/keep_combinations",
        {
            "kept": OUT,
            "assigned": ASSIGNED,
            "layers": LAYERS,
            "words": [{"name": W0}],
            "recoding": identifier("recoding"),
            "columns": [MIXED, OWN],
        },
        setup=(*ASSIGNED_SETUP, *LAYERS_SETUP, *WRITE_SETUP),
        read='SELECT w0, size, q0, q1, recoding, place FROM "o\'u""t" ORDER BY w0',
        rows=[(0, 2, "it's", -30, 2, 2), (5, 1, "it's", 40, 2, 3), (9, 3, None, 40, 1, 4), (13, 4, "*", 40, 2, 1)],
    ),
    Case(
        "tables/local/keep_combinations",
        {
            "kept": OUT,
            "assigned": ASSIGNED,
            "layers": LAYERS,
            "words": [{"name": W0}],
            "recoding": None,
            "columns": [MIXED],
        },
        setup=(*ASSIGNED_SETUP, *LAYERS_SETUP, *WRITE_SETUP),
        read=ALL_OUT + "w0",
        rows=[(0, 2, "it's", 2), (5, 1, "it's", 2), (9, 3, None, 3), (13, 4, "*", 1)],
        note="equal labels of two layers have one place",
    ),
    Case(
        "tables/local/place_combinations",
        {**PLACED, "recoding": identifier("recoding")},
        setup=(*GROUPED_SETUP, *LAYERS_SETUP, *LABELS_SETUP),
        read='SELECT q0, q1, recoding, n, CAST(fingerprint AS BIGINT), fails FROM "o\'u""t" ORDER BY n, fails',
        rows=[(None, None, None, 2, 240, True), ("it's", 7, 2, 3, 30, False), ("*", 7, 2, 5, 40, False)],
        ordered=False,
    ),
    Case(
        "tables/local/place_combinations",
        {**PLACED, "recoding": None},
        setup=(*GROUPED_SETUP, *LAYERS_SETUP, *LABELS_SETUP),
        read='SELECT q0, q1, n, CAST(fingerprint AS BIGINT), fails FROM "o\'u""t" ORDER BY n, fails',
        rows=[(None, None, 2, 240, True), ("it's", 7, 3, 30, False), ("*", 7, 5, 40, False)],
        ordered=False,
        note="without recoding",
    ),
    Case(
        "tables/local/write_layers",
        {
            "target": OUT,
            "layers": LAYERS,
            "recoding": identifier("recoding"),
            "columns": [
                {"name": identifier("b c"), "level": identifier("x0")},
                {"name": identifier("select"), "level": identifier("x1")},
            ],
        },
        setup=LAYERS_SETUP,
        read=ALL_OUT + "recoding",
        rows=[(1, 0, 0), (2, 1, 0)],
    ),
    Case(
        "tables/local/read_layers",
        {
            "layers": LAYERS,
            "columns": [
                {"name": identifier("recoding"), "value": column("layer", "y")},
                {"name": identifier("b c"), "value": column("x0", "y")},
            ],
        },
        setup=LAYERS_SETUP,
        rows=[(1, 0), (2, 1)],
        ordered=False,
    ),
    Case(
        "tables/local/read_marked",
        {"marked": table_name("mar ked"), "columns": [identifier("q0")]},
        setup=(
            'CREATE TABLE "mar ked" (q0 VARCHAR(20), mark BIGINT, n BIGINT)',
            "INSERT INTO \"mar ked\" VALUES ('it''s', 0, 2), (NULL, 7, 1)",
        ),
        rows=[(None, 7, 1), ("it's", 0, 2)],
        ordered=False,
    ),
    Case(
        "tables/local/list_labels",
        {"release": table_name("re leased"), "column": column("b c", "s"), "labels": None, "type": None},
        setup=RELEASED_SETUP,
        rows=[(None,), ("it's",), ("*",)],
        ordered=False,
    ),
    Case(
        "tables/local/list_labels",
        {
            "release": table_name("re leased"),
            "column": column("select", "s"),
            "labels": table_name("tex ts"),
            "type": exp.DataType.build("INT"),
        },
        setup=(
            *RELEASED_SETUP,
            'CREATE TABLE "tex ts" (value INTEGER, label VARCHAR(20))',
            "INSERT INTO \"tex ts\" VALUES (-30, '-30'), (40, '40'), (50, '50')",
        ),
        rows=[(None,), ("-30",), ("40",)],
        ordered=False,
        note="a column with a type of its own",
    ),
    Case(
        "tables/local/write_hierarchies",
        {"target": OUT, "told": table_name("told")},
        setup=TOLD_SETUP,
        read=ALL_OUT + "column_name, level, label",
        rows=[("b c", "😀", 0, "original", "😀"), ("b c", None, 1, "*", "it's"), ("select", "-30", 1, "*", "*")],
        ordered=False,
    ),
    Case(
        "tables/local/read_hierarchies",
        {"told": table_name("told")},
        setup=TOLD_SETUP,
        rows=[("b c", "😀", 0, "original", "😀"), ("b c", None, 1, "*", "it's"), ("select", "-30", 1, "*", "*")],
        ordered=False,
    ),
]
