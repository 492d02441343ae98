"""Cases of the templates of child tables: labels that are alike but for their level, NULL groups, rows of strangers."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import Case, Rows

OUT = table_name("o'u\"t")
FROM_OUT = 'SELECT {} FROM "o\'u""t" ORDER BY {}'
A0 = identifier("a0")
TEXT = exp.DataType.build("varchar", dialect="duckdb")

RELEASED_SETUP = (
    'CREATE TABLE "par ents" ("per son" TEXT, "select" TEXT, age INTEGER)',
    """INSERT INTO "par ents" VALUES ('p1', 'it''s', 1), ('p2', 'it''s', 1), ('p3', NULL, 1), ('p4', NULL, NULL),
       ('p5', NULL, NULL), ('p6', 'it''s', 1)""",
    'CREATE TABLE "ite ms" ("per son" TEXT, "it\'s" TEXT, lev INTEGER)',
    """INSERT INTO "ite ms" VALUES ('p1', 'a', 0), ('p1', 'a', 1), ('p2', 'a', 1), ('p4', '😀', 0), ('p5', '😀', 0)""",
)
"""Two groups with NULL; a label of two levels; nobody of the third person, and a sixth without items."""
SPOILT_SETUP = (
    *RELEASED_SETUP,
    "INSERT INTO \"ite ms\" VALUES ('p1', 'a', 1), ('p9', 'b', 0), (NULL, 'b', 0), ('p2', NULL, 1)",
    "INSERT INTO \"par ents\" VALUES ('p1', 'f', 2), (NULL, 'f', 2)",
)
SHOWN = {"pseudonym": column("per son", "r"), "item": column("it's", "r"), "level": column("lev", "r")}
ITEMS = {"written": table_name("ite ms"), **SHOWN}
PARENT = {"parent": table_name("par ents"), "key": column("per son", "p")}
BOTH = {"written": table_name("ite ms"), **PARENT}
TWO = [{**ITEMS, "number": 0}, {**ITEMS, "written": table_name("dru gs"), "number": 1}]
TWO_SETUP = (
    *RELEASED_SETUP,
    'CREATE TABLE "dru gs" ("per son" TEXT, "it\'s" TEXT, lev INTEGER)',
    """INSERT INTO "dru gs" VALUES ('p1', 'a', 0), ('p3', 'it''s', 2), ('p1', 'a', 0)""",
)
"""Of a second child table, with a label that the first has, too; a person shows it in two rows."""
GROUPS = [
    {"value": column("select", "p"), "name": identifier("q0")},
    {"value": column("age", "p"), "name": identifier("q1")},
]
SOURCES = (
    'CREATE TABLE "sour_ce" ("per son" INTEGER, "co de" TEXT, "no te" TEXT)',
    """INSERT INTO "sour_ce" VALUES (1, 'a1', 'x'), (1, 'a1', NULL), (1, 'b', 'x'), (2, 'a2', 'x'), (4, '😀', 'y'),
       (5, NULL, 'z'), (7, 'a1', 'x'), (NULL, 'b', 'y')""",
    "CREATE TABLE se_crets (value INTEGER, pseudonym TEXT)",
    "INSERT INTO se_crets VALUES (1, 'p1'), (2, 'p2'), (4, 'p4'), (4, 'p4'), (5, 'p5'), (7, 'p7')",
    "CREATE TABLE texts (value TEXT, pseudonym TEXT)",
    "INSERT INTO texts VALUES ('1', 'p1'), ('2', 'p2'), ('4', 'p4'), ('4', 'p4'), ('5', 'p5'), ('7', 'p7')",
    "CREATE TABLE codes (item TEXT, leaf INTEGER)",
    "INSERT INTO codes VALUES ('a1', 0), ('a2', 1), ('b', 2), ('😀', 3)",
    "CREATE TABLE chains (item TEXT, label TEXT, level INTEGER)",
    """INSERT INTO chains VALUES ('a1', 'a1', 0), ('a1', 'a', 1), ('a2', 'a2', 0), ('a2', 'a', 1), ('b', 'a', 0),
       ('b', 'a', 1), ('😀', '😀', 0), ('😀', 'x', 1)""",
)
SOURCE_SETUP = (*RELEASED_SETUP, *SOURCES)
PLACED_SETUP = (
    "CREATE TABLE pairs (class INTEGER, person INTEGER, leaf INTEGER)",
    "INSERT INTO pairs VALUES (1, 1, 0), (1, 1, 1), (1, 2, 1), (2, 3, 2), (2, 4, 0)",
    "CREATE TABLE nodes (leaf INTEGER, node INTEGER)",
    "INSERT INTO nodes VALUES (0, 7), (1, 7), (2, 2)",
    "CREATE TABLE placed (class INTEGER, person INTEGER, node INTEGER)",
    "INSERT INTO placed VALUES (1, 1, 7), (1, 2, 7), (2, 3, 2), (2, 4, 7)",
    "CREATE TABLE cells (class INTEGER, node INTEGER)",
    "INSERT INTO cells VALUES (1, 7), (2, 7)",
    "CREATE TABLE persons (value INTEGER, pseudonym TEXT, person INTEGER, class INTEGER)",
    """INSERT INTO persons VALUES (10, 'p1', 1, 1), (20, 'p2', 2, 1), (30, 'p3', 3, 2), (40, 'p4', 4, 2),
       (40, 'p4', 4, 2)""",
    "CREATE TABLE labels (node INTEGER, label TEXT, level INTEGER)",
    "INSERT INTO labels VALUES (7, 'it''s', 1), (2, 'b', 0)",
)
OWNER = {"key": column("per son", "s")}
NAMES = {"pseudonym": identifier("per son"), "item_name": identifier("it's"), "level": identifier("it's_level")}
BESIDE = [{"written": column("no te", "r"), "value": column("no te", "s"), "name": A0, "own": identifier("no te")}]
ALIASES = [
    {"alias": identifier("s0"), "earlier": None, "first": identifier("s0")},
    {"alias": identifier("s1"), "earlier": identifier("s0"), "first": identifier("s0")},
]
BESIDE_EXPECTED: Rows = [
    *(("p1", "a", 0, "x"), ("p1", "a", 1, "x"), ("p1", "a", 1, None), ("p2", "a", 1, "x")),
    *(("p4", "😀", 0, "y"), ("p7", "a", 1, "x")),
]


def read_again(text: bool) -> dict[str, object]:
    """How a re-check reads the source: by persons' keys as they are, or as texts."""
    return {
        **{"source": table_name("sour_ce"), "key": column("per son", "s"), "item": column("co de", "s"), "type": TEXT},
        **{"text": text, "secrets": table_name("texts" if text else "se_crets"), "chains": table_name("chains")},
    }


CASES = [
    *(
        Case(
            "tables/itemset/number_persons",
            {
                "persons": OUT,
                "parent": table_name("par ents"),
                "pseudonym": column("per son", "p"),
                "columns": GROUPS,
                "secrets": table_name(secrets),
            },
            [(key(1), "p1", 1, 3), (key(2), "p2", 2, 3), (key(4), "p4", 4, 1), (key(5), "p5", 5, 1)],
            SOURCE_SETUP,
            read=FROM_OUT.format("value, pseudonym, person, class", "pseudonym"),
            note=secrets,
        )
        for secrets, key in (("se_crets", int), ("texts", str))
    ),
    *(
        Case(
            "tables/itemset/list_pairs",
            {
                "pairs": OUT,
                "source": table_name("sour_ce"),
                "key": column("per son", "s"),
                "item": column("co de", "s"),
                "type": TEXT,
                "text": text,
                "persons": table_name("keyed"),
                "codes": table_name("codes"),
            },
            [(1, 1, 0), (1, 1, 2), (1, 2, 1), (2, 3, 3)],
            (
                *SOURCE_SETUP,
                f"CREATE TABLE keyed (value {'TEXT' if text else 'INTEGER'}, person INTEGER, class INTEGER)",
                f"INSERT INTO keyed VALUES {values}",
            ),
            read=FROM_OUT.format("class, person, leaf", "class, person, leaf"),
            note="texts" if text else "numbers",
        )
        for text, values in (
            (False, "(1, 1, 1), (2, 2, 1), (4, 3, 2), (5, 4, 2)"),
            (True, "('1', 1, 1), ('2', 2, 1), ('4', 3, 2), ('5', 4, 2)"),
        )
    ),
    *(
        Case(
            "tables/itemset/count_left_out",
            {
                "source": table_name("sour_ce"),
                "key": column("per son", "s"),
                "item": column("co de", "s"),
                "text": text,
                "persons": table_name("keyed"),
            },
            [(1, 1, 2)],
            (
                *SOURCE_SETUP,
                f"CREATE TABLE keyed (value {'TEXT' if text else 'INTEGER'}, person INTEGER, class INTEGER)",
                f"INSERT INTO keyed VALUES {values}",
            ),
            note="texts" if text else "numbers",
        )
        for text, values in (
            (False, "(1, 1, 1), (2, 2, 1), (5, 4, 2)"),
            (True, "('1', 1, 1), ('2', 2, 1), ('5', 4, 2)"),
        )
    ),
    Case(
        "tables/itemset/place_items",
        {"placed": OUT, "pairs": table_name("pairs"), "nodes": table_name("nodes")},
        [(1, 1, 7, 2), (1, 2, 7, 1), (2, 3, 2, 1), (2, 4, 7, 1)],
        PLACED_SETUP,
        read=FROM_OUT.format("class, person, node, pairs", "person"),
    ),
    Case(
        "tables/itemset/stage_items",
        {
            "target": OUT,
            "placed": table_name("placed"),
            "cells": table_name("cells"),
            "persons": table_name("persons"),
            "labels": table_name("labels"),
            **NAMES,
        },
        [("p1", "it's", 1), ("p2", "it's", 1), ("p4", "it's", 1)],
        PLACED_SETUP,
        read='SELECT "per son", "it\'s", "it\'s_level" FROM "o\'u""t" ORDER BY "per son"',
    ),
    Case(
        "tables/itemset/stage_nothing",
        {"target": OUT, "source": table_name("sour_ce"), "sensitive": BESIDE, **NAMES},
        [],
        SOURCES,
        read='SELECT "per son", "it\'s", "it\'s_level", "no te" FROM "o\'u""t"',
    ),
    Case("tables/itemset/check_items", {**BOTH, **SHOWN, "sensitive": []}, [(5, 5, 5, 0, 4, 6, 6)], RELEASED_SETUP),
    Case(
        "tables/itemset/check_items",
        {**BOTH, **SHOWN, "sensitive": []},
        [(9, 8, 7, 1, 5, 8, 6)],
        SPOILT_SETUP,
        note="spoilt",
    ),
    Case(
        "tables/itemset/join_shown",
        {"shown": OUT, **PARENT, "tables": [{**ITEMS, "number": 0}], "columns": GROUPS, "several": False},
        [("p1", 1, 1), ("p1", 1, 2), ("p2", 1, 2), ("p4", 4, 3), ("p5", 4, 3)],
        RELEASED_SETUP,
        read=FROM_OUT.format("pseudonym, class, item", "pseudonym, item"),
    ),
    Case(
        "tables/itemset/join_shown",
        {"shown": OUT, **PARENT, "tables": TWO, "columns": GROUPS, "several": True},
        [("p1", 1, 1), ("p1", 1, 2), ("p1", 1, 4), ("p2", 1, 2), ("p3", 3, 5), ("p4", 4, 3), ("p5", 4, 3)],
        TWO_SETUP,
        read=FROM_OUT.format("pseudonym, class, item", "pseudonym, item"),
        note="two",
    ),
    Case(
        "tables/itemset/list_shown",
        {"shown": OUT, "persons": table_name("keyed"), "tables": TWO, "start": 100},
        [(1, 101), (1, 102), (1, 104), (4, 103)],
        (
            *TWO_SETUP,
            "CREATE TABLE keyed (value INTEGER, pseudonym TEXT, person INTEGER)",
            "INSERT INTO keyed VALUES (10, 'p1', 1), (11, 'p1', 1), (40, 'p4', 4), (90, 'p9', 9)",
        ),
        read=FROM_OUT.format("person, cell", "person, cell"),
    ),
    *(
        Case(
            "tables/itemset/count_sets",
            {"shown": table_name("shown"), "items": ALIASES[:size]},
            found,
            (
                "CREATE TABLE shown (pseudonym TEXT, class BIGINT, item BIGINT)",
                "INSERT INTO shown VALUES ('a', 1, 1), ('a', 1, 2), ('b', 1, 1), ('b', 1, 2), ('c', 1, 1), ('d', 2, 1)",
            ),
            note=f"{size}",
        )
        for size, found in ((1, [(1, 3)]), (2, [(2, 1)]))
    ),
    *(
        Case(
            "tables/itemset/expect_items",
            {
                "expected": OUT,
                **read_again(text),
                "written": table_name("ite ms"),
                "label": column("it's", "r"),
                "level": column("lev", "r"),
                "sensitive": BESIDE if text else [],
            },
            BESIDE_EXPECTED if text else [row[:3] for row in BESIDE_EXPECTED if row[3] is not None],
            SOURCE_SETUP,
            read=FROM_OUT.format("*" if text else "pseudonym, label, level", "pseudonym, level"),
            ordered=False,
            note="texts, and what stands beside" if text else "numbers",
        )
        for text in (False, True)
    ),
    *(
        Case(
            "tables/itemset/count_pairs",
            {
                **read_again(text),
                "parent": table_name("par ents"),
                "own": column("per son", "p"),
                "written": table_name("ite ms"),
                "pseudonym": column("per son", "r"),
                "label": column("it's", "r"),
                "level": column("lev", "r"),
            },
            [(5, 4)],
            (*SOURCE_SETUP, 'DELETE FROM "ite ms" WHERE "per son" = \'p2\''),
            note="texts" if text else "numbers",
        )
        for text in (False, True)
    ),
    Case(
        "tables/itemset/compare_items",
        {
            **{"expected": table_name("expected"), "chains": table_name("chains"), "columns": GROUPS},
            **{**BOTH, **SHOWN, "sensitive": []},
        },
        [(1, 0, 1, 1)],
        (
            *SOURCE_SETUP,
            "CREATE TABLE expected (pseudonym TEXT, label TEXT, level INTEGER)",
            """INSERT INTO expected VALUES ('p1', 'a', 0), ('p1', 'a', 1), ('p2', 'a', 1), ('p4', '😀', 0),
               ('p6', 'a', 1), ('p3', 'b', 0)""",
        ),
        note="a row that is not true, one that is missing of a cell, an item of two levels",
    ),
    Case(
        "tables/itemset/compare_items",
        {
            **{"expected": table_name("expected"), "chains": table_name("chains"), "columns": GROUPS, **BOTH},
            **{**SHOWN, "written": table_name("beside"), "sensitive": BESIDE},
        },
        [(1, 2, 0, 1)],
        (
            *SOURCE_SETUP,
            'CREATE TABLE beside ("per son" TEXT, "it\'s" TEXT, lev INTEGER, "no te" TEXT)',
            """INSERT INTO beside VALUES ('p1', 'a', 0, NULL), ('p1', 'a', 1, 'x'), ('p2', 'a', 1, 'y'),
               ('p4', '😀', 0, 'y')""",
            "CREATE TABLE expected (pseudonym TEXT, label TEXT, level INTEGER, a0 TEXT)",
            """INSERT INTO expected VALUES ('p1', 'a', 0, NULL), ('p1', 'a', 1, 'x'), ('p1', 'a', 1, NULL),
               ('p2', 'a', 1, 'x'), ('p4', '😀', 0, 'y'), ('p3', 'b', 0, 'x')""",
        ),
        note="beside an item a value that is not true, and two that are missing",
    ),
    *(
        Case(
            "tables/itemset/stage_rows",
            {
                "target": OUT,
                "source": table_name("sour_ce"),
                "key": column("per son", "s"),
                "item": column("co de", "s"),
                "type": TEXT,
                "text": text,
                "codes": table_name("codes"),
                "nodes": table_name("of_leaf"),
                "cells": table_name("cells"),
                "persons": table_name("keyed"),
                "labels": table_name("labels"),
                "sensitive": BESIDE,
                **NAMES,
            },
            [("p1", "b", 0, "x"), ("p1", "it's", 1, "x"), ("p1", "it's", 1, None), ("p2", "it's", 1, "x")],
            (
                *SOURCES,
                *PLACED_SETUP,
                "INSERT INTO cells VALUES (1, 2)",
                "CREATE TABLE of_leaf (leaf INTEGER, node INTEGER)",
                "INSERT INTO of_leaf VALUES (0, 7), (1, 7), (2, 2), (3, 2)",
                f"CREATE TABLE keyed (value {kind}, pseudonym TEXT, person INTEGER, class INTEGER)",
                f"INSERT INTO keyed VALUES {values}",
            ),
            read='SELECT "per son", "it\'s", "it\'s_level", "no te" FROM "o\'u""t"',
            ordered=False,
            note="texts" if text else "numbers",
        )
        for text, kind, values in (
            (False, "INTEGER", "(1, 'p1', 1, 1), (2, 'p2', 2, 1), (4, 'p4', 3, 2)"),
            (True, "TEXT", "('1', 'p1', 1, 1), ('2', 'p2', 2, 1), ('4', 'p4', 3, 2), ('4', 'p4', 3, 2)"),
        )
    ),
    Case(
        "tables/itemset/tell_items",
        {"source": table_name("sour_ce"), "item": column("co de", "s"), "value": column("no te", "s"), **OWNER},
        [(6, 1, 1, 4, 5)],
        (*SOURCE_SETUP, "INSERT INTO sour_ce VALUES (8, '😀', 'x')"),
    ),
    Case(
        "tables/itemset/tell_items",
        {"source": table_name("sour_ce"), "item": column("per son", "s"), "value": column("no te", "s"), **OWNER},
        [(6, 2, 2, 5, 5)],
        SOURCE_SETUP,
        note="some tell",
    ),
]
