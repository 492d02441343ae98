"""Fixtures of the templates behind `explore`, in the style of `tests.templates.cases`."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, literal, table_name
from tests.templates.cases import AGE, ALL_OUT, NOTE, OUT, PEOPLE, PEOPLE_SETUP, SEX, TEXT, Case

DOUBLE = exp.DataType.build("double", dialect="duckdb")
LIMITS = [{"below": n, "name": identifier(f"rows {n}"), "persons": identifier(f"persons {n}")} for n in (2, 3)]
NUMBERED_SETUP = (
    'CREATE TABLE "values 0" (id BIGINT, original VARCHAR(20), n BIGINT)',
    "INSERT INTO \"values 0\" VALUES (1, 'it''s', 2), (2, '😀', 2), (3, NULL, 2)",
    'CREATE TABLE "values 1" (id BIGINT, original INTEGER, n BIGINT)',
    'INSERT INTO "values 1" VALUES (1, -30, 3), (2, 40, 3)',
    'CREATE TABLE "values 2" (id BIGINT, original INTEGER, n BIGINT)',
)
V0, V1, V2 = (table_name(f"values {i}") for i in range(3))
FOLDED_SETUP = (
    'CREATE TABLE "fol ded" (w0 BIGINT, person INTEGER, n BIGINT)',
    'INSERT INTO "fol ded" VALUES (0, 1, 1), (0, 2, 2), (1, 1, 1), (5, 3, 3), (5, 4, 1), (4, 4, 1)',
)
FOLDED = table_name("fol ded")
HELD_SETUP = (
    *PEOPLE_SETUP,
    'CREATE TABLE "he ld" (id BIGINT, "we""ird; DROP TABLE x; --" VARCHAR(9), "select" BIGINT, "ünï code" TEXT)',
    """INSERT INTO "he ld" VALUES (9, 'it''s', -30, 'b'), (9, '😀', -30, NULL), (10, '😀', -30, NULL),
       (11, 'it', 40, 'e'), (12, NULL, 40, 'e')""",
)
COMMON_LABEL = [{"name": identifier("v0"), "value": column(SEX, "s")}]
COMMON = {
    "train": PEOPLE,
    "test": table_name("he ld"),
    "columns": [*COMMON_LABEL, {"name": identifier("v1"), "value": column(NOTE, "s")}],
    "present": column(SEX, "s"),
}
ITEMS_SETUP = (
    'CREATE TABLE "it ems" (owner INTEGER, seq INTEGER, code VARCHAR(5), who INTEGER)',
    """INSERT INTO "it ems" VALUES (1, 1, 'a', 7), (1, 2, NULL, 7), (1, 3, 'b', 7), (2, NULL, 'a', 8), (2, 2, 'b', 8),
       (2, 2, 'a', 8), (NULL, 1, 'a', 9), (3, 1, 'b', 7)""",
    "CREATE TABLE codes (id BIGINT, original VARCHAR(5), n BIGINT)",
    "INSERT INTO codes VALUES (1, 'a', 4), (2, 'b', 3), (3, NULL, 1)",
)
OWNERS = [{"name": identifier("o0"), "column": column("owner", "s")}]
ORDERS = [{"name": identifier("t0"), "column": column("seq", "s")}]
RANKED_SETUP = (
    'CREATE TABLE "ran ked" (o0 INTEGER, place BIGINT, code BIGINT, person INTEGER)',
    'INSERT INTO "ran ked" VALUES (1, 1, 2, 7), (1, 2, 10, 7), (1, 3, 1, 7), (2, 1, 10, 8), (2, 2, 2, 8), (3, 1, 2, 9)',
)


def masked(mask: int) -> exp.Expr:
    return exp.Paren(this=exp.BitwiseAnd(this=column("w0"), expression=literal(mask)))


def fold(*, person: exp.Column | None) -> dict[str, object]:
    columns = [
        {"alias": identifier("h0"), "column": column(SEX, "s"), "numbered": V0, "null_id": 3, "weight": 2},
        {"alias": identifier("h1"), "column": column(AGE, "s"), "numbered": V1, "null_id": None, "weight": 1},
    ]
    words = [{"name": identifier("w0"), "columns": columns}]
    return {"folded": OUT, "source": PEOPLE, "person": person, "words": words}


def arm(number: int, *masks: int) -> dict[str, object]:
    keys = [{"name": identifier(f"k{i}"), "value": masked(mask)} for i, mask in enumerate(masks)]
    named = {"grouped": identifier(f"g {number}"), "sized": identifier(f"s {number}")}
    return {"number": number, "folded": FOLDED, "parts": [masked(m) for m in masks], "key_columns": keys, **named}


def rank(*, person: exp.Column | None) -> dict[str, object]:
    return {
        "ranked": OUT,
        "source": table_name("it ems"),
        "value": column("code", "s"),
        "values": table_name("codes"),
        "null_id": 3,
        "most": 2,
        "person": person,
        "owners": OWNERS,
        "orders": ORDERS,
    }


def spell(places: list[int], *, ordered: bool, person: bool = False) -> dict[str, object]:
    return {
        "spelled": OUT,
        "ranked": table_name("ran ked"),
        "owners": [identifier("o0")],
        "places": places,
        "length": len(places),
        "ordered": ordered,
        "person": person,
    }


CASES = [
    Case(
        "insight/number_values",
        {"values": OUT, "column": column(SEX, "s"), "source": PEOPLE},
        [(1, "it's", 2), (2, "😀", 2), (3, None, 2)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "insight/describe_values",
        {"columns": [{"number": i, "numbered": v} for i, v in enumerate((V0, V1, V2))], "limits": LIMITS},
        [
            (0, 3, 2, 3, 4.1588830833596715, 6, 0, 6),
            (1, 2, 0, None, 6.591673732008658, 6, 0, 0),
            (2, 0, 0, None, 0.0, 0, 0, 0),
        ],
        NUMBERED_SETUP,
    ),
    Case(
        "insight/fold_columns",
        fold(person=None),
        [(0, 2), (2, 1), (3, 1), (5, 2)],
        PEOPLE_SETUP + NUMBERED_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "insight/fold_columns",
        fold(person=column(NOTE, "s")),
        [(0, "a", 1), (0, "b", 1), (2, None, 1), (3, "a\nb", 1), (5, "e", 1), (5, None, 1)],
        PEOPLE_SETUP + NUMBERED_SETUP,
        read=ALL_OUT + "1, 2 NULLS LAST",
        note="rows that share persons",
    ),
    Case(
        "insight/measure_sets",
        {"arms": [arm(0, 7), arm(1, 4, 1), arm(2, 0)], "limits": LIMITS},
        [(0, 4, 9, 2, 2), (1, 4, 9, 2, 2), (2, 1, 9, 0, 0)],
        FOLDED_SETUP,
    ),
    Case(
        "insight/measure_sets",
        {"arms": [arm(0, 7)], "limits": LIMITS},
        [(0, 0, 0, 0, 0)],
        FOLDED_SETUP[:1],
        note="empty",
    ),
    Case(
        "insight/measure_persons",
        {"arms": [arm(0, 7), arm(1, 4, 1), arm(2, 4)], "limits": LIMITS},
        [(0, 4, 6, 9, 4, 2, 2, 9, 4), (1, 4, 6, 9, 4, 2, 2, 9, 4), (2, 2, 4, 9, 4, 0, 0, 9, 4)],
        FOLDED_SETUP,
    ),
    Case(
        "insight/measure_persons",
        {"arms": [arm(0, 7)], "limits": LIMITS},
        [(0, 0, 0, 0, 0, 0, 0, 0, 0)],
        FOLDED_SETUP[:1],
        note="empty",
    ),
    Case(
        "insight/count_ties",
        {"source": table_name("it ems"), "owners": OWNERS, "orders": ORDERS},
        [(3, 2)],
        ITEMS_SETUP,
    ),
    Case(
        "insight/count_ties",
        {"source": table_name("it ems"), "owners": OWNERS, "orders": []},
        [(3, 6)],
        ITEMS_SETUP,
        note="no order",
    ),
    Case(
        "insight/rank_items",
        rank(person=None),
        [(1, 1, 1), (1, 2, 3), (2, 1, 1), (2, 2, 2), (3, 1, 2)],
        ITEMS_SETUP,
        read=ALL_OUT + "1, 2",
    ),
    Case(
        "insight/rank_items",
        rank(person=column("who", "s")),
        [(1, 1, 1, 7), (1, 2, 3, 7), (2, 1, 1, 8), (2, 2, 2, 8), (3, 1, 2, 7)],
        ITEMS_SETUP,
        read=ALL_OUT + "1, 2",
        note="with persons",
    ),
    Case(
        "insight/spell_pattern",
        spell([1, 2], ordered=True),
        [("10,2", 1), ("2,10", 1)],
        RANKED_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "insight/spell_pattern",
        spell([1, 2], ordered=False, person=True),
        [("2,10", 7, 1), ("2,10", 8, 1)],
        RANKED_SETUP,
        read=ALL_OUT + "2",
        note="unordered, by number and not by text",
    ),
    Case(
        "insight/spell_pattern",
        spell([1, 3], ordered=True),
        [("2,1", 1)],
        RANKED_SETUP,
        read=ALL_OUT + "1",
        note="a gap",
    ),
    Case(
        "insight/fold_prefixes",
        {
            "folded": OUT,
            "source": PEOPLE,
            "text": column(NOTE, "s"),
            "person": column("id", "s"),
            "prefixes": [{"name": identifier("p0"), "length": 1}, {"name": identifier("p1"), "length": 2}],
        },
        [("a", "a", 2, 1), ("a", "a\n", 4, 1), ("b", "b", 1, 1), ("e", "e", 5, 1)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1, 3",
    ),
    Case(
        "insight/fold_prefixes",
        {
            "folded": OUT,
            "source": PEOPLE,
            "text": column(NOTE, "s"),
            "person": None,
            "prefixes": [{"name": identifier("p0"), "length": 1}],
        },
        [("a", 2), ("b", 1), ("e", 1)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1",
        note="every row a person",
    ),
    Case(
        "insight/count_texts",
        {"source": PEOPLE, "text": column(NOTE, "s"), "person": column(SEX, "s")},
        [(4, 3, 2)],
        PEOPLE_SETUP,
    ),
    Case(
        "insight/count_texts",
        {"source": PEOPLE, "text": column(NOTE, "s"), "person": None},
        [(4, 4, 4)],
        PEOPLE_SETUP,
        note="every row a person",
    ),
]

PARTS_SETUP = (
    'CREATE TABLE "pa rts" ("select" INTEGER, "ünï code" TEXT, "sqldeid part" INTEGER)',
    """INSERT INTO "pa rts" VALUES (1, 'a', 0), (2, NULL, 1), (NULL, 'c', 1)""",
)
COLUMNS = [{"name": identifier(AGE)}, {"name": identifier(NOTE)}]


def split(*, person: exp.Column | None) -> dict[str, object]:
    return {
        "parts": OUT,
        "source": PEOPLE,
        "columns": [{"name": identifier("id")}, *COLUMNS],
        "first": identifier("id"),
        "part": identifier("sqldeid part"),
        "person": person,
        "seed": literal("7:"),
        "absent": literal("NULL"),
        "cut": literal("80000000"),
    }


CASES += [
    Case(
        "insight/split_rows",
        split(person=column("id", "s")),
        [(1, 1), (2, 1), (3, 1), (4, 0), (5, 0), (6, 1)],
        PEOPLE_SETUP,
        read='SELECT id, "sqldeid part" FROM "o\'u""t" ORDER BY id',
        note="by person",
    ),
    Case(
        "insight/split_rows",
        split(person=None),
        [(1, 0), (2, 1), (3, 0), (4, 1), (5, 1), (6, 0)],
        PEOPLE_SETUP,
        read='SELECT id, "sqldeid part" FROM "o\'u""t" ORDER BY id',
        note="by content",
    ),
    Case(
        "insight/pick_part",
        {
            "picked": OUT,
            "parts": table_name("pa rts"),
            "columns": COLUMNS,
            "part": identifier("sqldeid part"),
            "number": 1,
        },
        [(2, None), (None, "c")],
        PARTS_SETUP,
        read=ALL_OUT + "1 NULLS LAST",
    ),
    Case(
        "insight/read_rows",
        {
            "source": PEOPLE,
            "label": column(SEX, "s"),
            "columns": [
                {"name": identifier("c0"), "value": column(AGE, "s"), "type": DOUBLE},
                {"name": identifier("c1"), "value": column(NOTE, "s"), "type": TEXT},
            ],
        },
        [(-30.0, "a", "it's", 2), (-30.0, "b", "it's", 1), (-30.0, None, "😀", 1), (40.0, "a\nb", "😀", 1)],
        (*PEOPLE_SETUP, """INSERT INTO "peo ple" VALUES (7, 'it''s', -30, 'a')"""),
        ordered=False,
    ),
    Case("insight/count_common", COMMON, [(4, 3, 3, 2)], HELD_SETUP),
    Case("insight/count_common", {**COMMON, "columns": COMMON_LABEL}, [(4, 3, 3, 2)], HELD_SETUP, note="of one column"),
    Case(
        "insight/count_common",
        COMMON,
        [(0, 0, 0, 0)],
        HELD_SETUP[:-1],
        note="no row held out",
    ),
    Case("insight/count_labels", {"source": PEOPLE, "label": column(SEX, "s")}, [(6, 4, 2)], PEOPLE_SETUP),
]


def counted(name: str, place: int, *, number: bool = False, text: bool = False) -> dict[str, object]:
    names = {part: identifier(f"{part} {place}") for part in ("there", "low", "high", "length", "longest")}
    return {"column": column(name, "s"), "number": number, "text": text, **names}


SAMPLED = [
    {"name": identifier("v0"), "column": column(SEX, "s")},
    {"name": identifier("v1"), "column": column(NOTE, "s")},
]
SAMPLE_SETUP = (
    'CREATE TABLE "sam ple" (v0 VARCHAR(20), v1 TEXT)',
    """INSERT INTO "sam ple" VALUES (' 12345 ', 'a.b@c.de'), ('12345', 'a.b@c.de'), (NULL, 'x
12345'), ('x12345', NULL), ('12345-6789', '12345
')""",
)
LOOKS = [
    {"pattern": literal(r"^\s*(?:[0-9]{5}(-[0-9]{4})?)\s*$"), "matching": identifier("zip")},
    {"pattern": literal(r"^\s*(?:[^@\s]+@[^@\s]+\.[A-Za-z]{2,})\s*$"), "matching": identifier("it's mail")},
]

CASES += [
    Case(
        "insight/profile_columns",
        {"source": PEOPLE, "columns": [counted(AGE, 0, number=True), counted(NOTE, 1, text=True)]},
        [(6, 6, -30.0, 40.0, 4, 1.5, 3)],
        PEOPLE_SETUP,
    ),
    Case(
        "insight/count_columns",
        {"source": PEOPLE, "columns": [{"number": i, "column": column(n, "s")} for i, n in ((3, SEX), (7, AGE))]},
        [(3, 2), (7, 2)],
        PEOPLE_SETUP,
    ),
    Case(
        "insight/count_mixed",
        {
            "source": PEOPLE,
            "keys": [
                {"number": 0, "column": column("id", "s"), "others": [column(SEX, "s"), column(AGE, "s")]},
                {"number": 4, "column": column(SEX, "s"), "others": [column(AGE, "s")]},
            ],
        },
        [(0, 0), (4, 1)],
        PEOPLE_SETUP,
    ),
    Case(
        "insight/sample_rows",
        {
            "sampled": OUT,
            "source": PEOPLE,
            "columns": SAMPLED,
            "hashed": [column("id", "s"), column(SEX, "s")],
            "absent": literal("NULL"),
            "cut": literal("80000000"),
        },
        [("it's", "a"), ("😀", "a\nb"), ("😀", None), (None, None)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1 NULLS LAST, 2 NULLS LAST",
    ),
    Case(
        "insight/sample_rows",
        {"sampled": OUT, "source": PEOPLE, "columns": SAMPLED, "hashed": [], "absent": literal("NULL"), "cut": None},
        [("it's", "a"), ("it's", "b"), ("😀", "a\nb"), ("😀", None), (None, "e"), (None, None)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1 NULLS LAST, 2 NULLS LAST",
        note="all rows",
    ),
    Case(
        "insight/match_looks",
        {
            "sampled": table_name("sam ple"),
            "columns": [{"number": i, "name": identifier(f"v{i}")} for i in range(2)],
            "looks": LOOKS,
        },
        [(0, 4, 3, 0), (1, 3, 1, 1)],
        SAMPLE_SETUP,
    ),
    Case(
        "insight/list_texts",
        {"source": PEOPLE, "columns": [{"number": i, "column": column(n, "s")} for i, n in ((1, SEX), (4, AGE))]},
        [(1, "it's"), (1, "😀"), (1, None), (4, "-30"), (4, "40")],
        PEOPLE_SETUP,
        ordered=False,
    ),
]
