"""Cases of the templates that stack child tables: hostile names, NULL keys, values and orders, even groups, nobody."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, literal, table_name
from tests.templates.cases import ALL_OUT, OUT, Case

SEQ, CODE = "select", "ünï code"
CHILD_SETUP = (
    'CREATE TABLE "chi ld" (id INTEGER, hadm INTEGER, "select" INTEGER, "ünï code" VARCHAR(20), n INTEGER)',
    """INSERT INTO "chi ld" VALUES (1, 10, 2, 'it''s', 1), (1, 10, 1, 'b', -2), (1, 11, NULL, 'z', 4),
       (1, 11, 3, NULL, NULL), (2, 20, 1, '😀', 5), (2, 21, 2, '😀', 6), (3, 30, 1, NULL, NULL),
       (NULL, 10, 1, 'q', 1), (4, NULL, 1, '', 0)""",
)
BETWEEN_SETUP = (
    'CREATE TABLE "be tween" (id INTEGER, hadm INTEGER, "at" INTEGER)',
    """INSERT INTO "be tween" VALUES (1, 10, 5), (1, 11, 3), (2, 20, NULL), (2, 21, 7), (3, 30, NULL), (NULL, 10, 1),
       (4, NULL, 1)""",
)
PICKED_SETUP = (
    'CREATE TABLE "pi cked" (k0 INTEGER, j0 INTEGER, x0 INTEGER)',
    'INSERT INTO "pi cked" VALUES (1, 11, 3), (2, 20, NULL), (3, 30, NULL)',
)
CHANGED_SETUP = (
    'CREATE TABLE "chi ld 2" AS SELECT * FROM "chi ld" WHERE hadm <> 30 OR hadm IS NULL',
    'INSERT INTO "chi ld 2" VALUES (3, 30, 1, NULL, 2), (3, 30, 1, NULL, 2)',
)
STACK_SETUP = (
    'CREATE TABLE "stack 0" (k0 INTEGER, v0 VARCHAR(20), v1 VARCHAR(20))',
    "INSERT INTO \"stack 0\" VALUES (1, 'b', NULL), (7, 'x', 'y')",
    'CREATE TABLE "stack 1" (k0 INTEGER, v0 BIGINT)',
    'INSERT INTO "stack 1" VALUES (1, 3), (2, 1)',
    'CREATE TABLE "peo ple" (id INTEGER, "select" INTEGER)',
    'INSERT INTO "peo ple" VALUES (1, 40), (2, 17), (NULL, 60)',
    'CREATE TABLE "doubt ful" (doubtful BOOLEAN)',
    'INSERT INTO "doubt ful" VALUES (TRUE), (FALSE), (TRUE), (NULL)',
)
CHILD, BETWEEN, PICKED = table_name("chi ld"), table_name("be tween"), table_name("pi cked")
KEYS = [{"name": identifier("k0"), "column": column("id", "c")}]
BETWEEN_KEYS = [{"name": identifier("k0"), "column": column("id", "t")}]
THROUGH = {
    "picked": PICKED,
    "keys": [{"name": identifier("k0"), "column": column("k0", "t")}],
    "joins": [{"left": column("j0", "t"), "right": column("hadm", "c")}],
}


def summarised(
    again: bool, aggregate: str, value: str | exp.Expr, rows: list[tuple[object, ...]], **other: object
) -> Case:
    """The same case for both ways of summarising."""
    return Case(
        "tables/rows/resummarise_rows" if again else "tables/rows/summarise_rows",
        {
            "stacked": OUT,
            "relation": CHILD,
            "keys": KEYS,
            "picked": None,
            "joins": [],
            "aggregate": aggregate,
            "value": column(value, "c") if isinstance(value, str) else value,
            "counted": True,
            "result": identifier("v0"),
        }
        | other,
        rows,
        CHILD_SETUP + PICKED_SETUP,
        read=ALL_OUT + "1",
        note=f"{aggregate} {'through' if 'picked' in other else ''}",
    )


def stacked(note: str, rows: list[tuple[object, ...]], **other: object) -> Case:
    return Case(
        "tables/rows/restack_rows",
        {
            "stacked": OUT,
            "relation": CHILD,
            "keys": KEYS,
            "picked": None,
            "joins": [],
            "order": [{"column": column(SEQ, "c")}],
            "value": column(CODE, "c"),
            "last": False,
            "most": 4,
            "places": [1, 3],
            "values": [{"name": identifier("v0"), "place": 1}, {"name": identifier("v1"), "place": 3}],
            "unordered": False,
        }
        | other,
        rows,
        CHILD_SETUP + PICKED_SETUP,
        read=ALL_OUT + "1",
        note=note,
    )


def picked(note: str, rows: list[tuple[object, ...]], **other: object) -> Case:
    return Case(
        "tables/rows/repick_rows",
        {
            "picked": OUT,
            "relation": BETWEEN,
            "keys": BETWEEN_KEYS,
            "joins": [{"name": identifier("j0"), "column": column("hadm", "t")}],
            "extra": [{"name": identifier("x0"), "column": column("at", "t")}],
            "order": [{"column": column("at", "t")}],
            "pick": True,
            "last": False,
        }
        | other,
        rows,
        BETWEEN_SETUP,
        read=ALL_OUT + "1, 2",
        note=note,
    )


def joined(note: str, rows: list[tuple[object, ...]], *, drop: bool, condition: exp.Expr | None) -> Case:
    return Case(
        "tables/rows/join_stacks",
        {
            "kept": OUT,
            "columns": [identifier(n) for n in ("id", "a b_1", "a b_2", "visits")],
            "source": table_name("peo ple"),
            "alias": identifier("peo ple"),
            "stacks": [
                {
                    "table": table_name("stack 0"),
                    "alias": identifier("y0"),
                    "drop": drop,
                    "on": [{"left": column("id", "s"), "right": column("k0", "y0")}],
                    "made": [
                        {"name": identifier(f"a b_{i + 1}"), "column": column(f"v{i}", "y0"), "count": False}
                        for i in range(2)
                    ],
                },
                {
                    "table": table_name("stack 1"),
                    "alias": identifier("y1"),
                    "drop": False,
                    "on": [{"left": column("id", "s"), "right": column("k0", "y1")}],
                    "made": [{"name": identifier("visits"), "column": column("v0", "y1"), "count": True}],
                },
            ],
            "condition": condition,
        },
        rows,
        STACK_SETUP,
        read=ALL_OUT + "1 NULLS LAST",
        note=note,
    )


AGAIN = (False, True)
SEVENTHS: list[tuple[object, ...]] = [(1, 0.4285714286 / 3), (2, 1.5714285714 / 2), (3, None), (4, 0.0)]
"""Sums of sevenths with ten decimals: a product of decimals would have lost four of them on Spark."""
CASES = [
    *(summarised(a, "count", CODE, [(1, 3), (2, 2), (3, 0), (4, 1)]) for a in AGAIN),
    *(summarised(a, "count", CODE, [(1, 4), (2, 2), (3, 1), (4, 1)], counted=False) for a in AGAIN),
    *(summarised(a, "min", CODE, [(1, "b"), (2, "😀"), (3, None), (4, "")]) for a in AGAIN),
    *(summarised(a, "max", "n", [(1, 4), (2, 6), (3, None), (4, 0)]) for a in AGAIN),
    *(summarised(a, "mean", "n", [(1, 1.0), (2, 5.5), (3, None), (4, 0.0)]) for a in AGAIN),
    *(summarised(a, "mean", exp.Div(this=column("n", "c"), expression=literal(7.0)), SEVENTHS) for a in AGAIN),
    *(summarised(a, "count", CODE, [(1, 1), (2, 1), (3, 0)], **THROUGH) for a in AGAIN),
    stacked("in order", [(1, "b", None), (2, "😀", None), (3, None, None), (4, "", None)]),
    stacked("from the last", [(1, None, "b"), (2, "😀", None), (3, None, None), (4, "", None)], last=True),
    stacked(
        "as a set",
        [(1, "b", "it's"), (2, "😀", None), (3, None, None), (4, "", None)],
        unordered=True,
        places=[1, 2],
        values=[{"name": identifier("v0"), "place": 1}, {"name": identifier("v1"), "place": 2}],
    ),
    stacked("through", [(1, None, None), (2, "😀", None), (3, None, None)], **THROUGH),
    picked("first", [(1, 11, 3), (2, 21, 7), (3, 30, None)]),
    picked("last", [(1, 10, 5), (2, 21, 7), (3, 30, None)], last=True),
    picked("longest", [(1, 10, 5), (2, 21, 7), (3, 30, None)], order=[{"column": exp.Neg(this=column("at", "t"))}]),
    picked("all", [(1, 10, 5), (1, 11, 3), (2, 20, None), (2, 21, 7), (3, 30, None)], pick=False, order=[]),
    joined("keep", [(1, "b", None, 3), (2, None, None, 1), (None, None, None, 0)], drop=False, condition=None),
    joined("drop", [(1, "b", None, 3)], drop=True, condition=None),
    joined(
        "filter on both",
        [(1, "b", None, 3)],
        drop=False,
        condition=exp.And(
            this=exp.GT(this=column("select", "peo ple"), expression=literal(18)),
            expression=exp.GT(this=column("visits"), expression=literal(0)),
        ),
    ),
    Case(
        "tables/rows/compare_stacks",
        {"kept": CHILD, "again": table_name("chi ld 2"), "columns": [identifier(CODE), identifier("n")]},
        [(3,)],
        (*CHILD_SETUP, *CHANGED_SETUP),
    ),
    Case(
        "tables/rows/compare_stacks",
        {"kept": CHILD, "again": CHILD, "columns": [identifier(CODE), identifier("n")]},
        [(0,)],
        CHILD_SETUP,
        note="the same",
    ),
    Case("tables/rows/count_doubtful", {"stacked": table_name("doubt ful")}, [(4, 2)], STACK_SETUP),
    Case("tables/rows/count_doubtful", {"stacked": table_name("doubt ful")}, [(0, 0)], STACK_SETUP[6:7], note="empty"),
]
