"""Templates that count the persons of classes, where one may have many rows."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, literal, table_name
from tests.templates.cases import (
    AGE,
    ALL_OUT,
    CODED_COLUMNS,
    CODED_SETUP,
    GROUPS_SETUP,
    INTEGER,
    NOTE,
    OUT,
    PEOPLE,
    PEOPLE_SETUP,
    SEX,
    W0,
    Case,
)

PERSON = column(SEX, "s")
"""Three persons, of whom one has no name: two rows each."""

COLUMNS = [
    {
        "name": identifier("q0"),
        "column": column(AGE, "s"),
        "alias": identifier("m0"),
        "labels": table_name("lab els"),
        "type": INTEGER,
        "null_label": literal("*"),
        "text": True,
    },
    {"name": identifier("q1"), "column": column(AGE, "s"), "labels": None, "text": False},
]
LABELS_SETUP = (
    'CREATE TABLE "lab els" (value BIGINT, label TEXT)',
    "INSERT INTO \"lab els\" VALUES (-30, 'low'), (40, 'high')",
)

CASES = [
    Case(
        "tables/fold/fold_classes",
        {
            "classes": OUT,
            "source": PEOPLE,
            "words": [{"name": W0, "columns": CODED_COLUMNS[1:]}],
            "sensitive": [{**CODED_COLUMNS[0], "name": identifier("s0")}],
            "person": PERSON,
        },
        [(0, 0, "it's", 2), (0, 4, "😀", 1), (1, 4, "😀", 1), (1, 8, None, 2)],
        PEOPLE_SETUP + CODED_SETUP,
        read=ALL_OUT + "1, 2",
        note="with persons",
    ),
    Case(
        "tables/certificate/prove_fold",
        {
            "folded": OUT,
            "source": PEOPLE,
            "columns": [
                {
                    "column": column(AGE, "s"),
                    "alias": identifier("v1"),
                    "groups": table_name("groups 1"),
                    "type": INTEGER,
                    "levels": [{"name": identifier("a1_1"), "null_group": None}],
                }
            ],
            "sensitive": [],
            "person": PERSON,
        },
        [(0, "it's", 2), (0, "😀", 1), (None, "😀", 1), (None, None, 2)],
        PEOPLE_SETUP + GROUPS_SETUP,
        read=ALL_OUT + "1 NULLS LAST, 3, 2",
        ordered=False,
        note="with persons",
    ),
    Case(
        "tables/verify/own_classes",
        {"owned": OUT, "source": PEOPLE, "person": PERSON, "columns": COLUMNS},
        [("low", -30, "it's", 2), ("low", -30, "😀", 1), ("high", 40, "😀", 1), ("high", 40, None, 2)],
        PEOPLE_SETUP + LABELS_SETUP,
        read=ALL_OUT + "2, 4",
        ordered=False,
    ),
    Case(
        "tables/verify/split_persons",
        {
            "cells": OUT,
            "source": PEOPLE,
            "person": PERSON,
            "sensitive": column(NOTE, "s"),
            "columns": COLUMNS[1:],
        },
        [(-30, "a", 1), (-30, "b", 1), (-30, None, 1), (40, "a\nb", 1), (40, "e", 1), (40, None, 1)],
        PEOPLE_SETUP,
        read=ALL_OUT + "1, 2",
        ordered=False,
    ),
    Case(
        "tables/verify/split_persons",
        {"cells": OUT, "source": PEOPLE, "person": PERSON, "sensitive": column(AGE, "s"), "columns": COLUMNS[:1]},
        [("low", -30, 2), ("high", 40, 2)],
        PEOPLE_SETUP + LABELS_SETUP,
        read=ALL_OUT + "2",
        ordered=False,
        note="a person counts once",
    ),
    Case(
        "tables/verify/rank_values",
        {
            "ranked": OUT,
            "source": PEOPLE,
            "sensitive": column(AGE, "s"),
            "stated": None,
            "places": 0,
            "person": column("id", "s"),
        },
        [(-30, 3, 0), (40, 3, 1)],
        PEOPLE_SETUP,
        read=ALL_OUT + "3",
        note="persons",
    ),
    Case(
        "tables/release/count_linking",
        {"source": PEOPLE, "person": column(SEX, "s"), "columns": [column(AGE, "s"), column(SEX, "s")]},
        [(0, 1, 3), (1, 2, 4)],
        PEOPLE_SETUP,
    ),
    Case(
        "insight/count_holders",
        {"source": PEOPLE, "person": column(SEX, "s"), "value": column(AGE, "s")},
        [(2, 2)],
        PEOPLE_SETUP,
    ),
    Case(
        "insight/join_first",
        {
            "base": PEOPLE,
            "person": identifier(AGE),
            "order": [column("id", "s")],
            "columns": [
                {"there": False, "value": column("id", "b"), "at": None, "name": identifier("first")},
                {"there": True, "value": column("id", "j1"), "at": None, "name": identifier("th ere")},
            ],
            "joins": [
                {
                    "table": PEOPLE,
                    "on": identifier("id"),
                    "base_on": identifier("id"),
                    "order": [column(AGE, "s")],
                    "alias": identifier("j1"),
                }
            ],
        },
        [(-30, 1, 1), (40, 4, 1)],
        PEOPLE_SETUP,
        ordered=False,
    ),
    Case(
        "insight/join_first",
        {
            "base": PEOPLE,
            "person": identifier("id"),
            "order": [column("id", "s")],
            "columns": [
                {
                    "there": False,
                    "value": exp.cast(exp.Literal.string("1950-12-31"), "TIMESTAMP"),
                    "at": exp.cast(exp.Literal.string("2000-01-01"), "TIMESTAMP"),
                    "name": identifier("age"),
                }
            ],
            "joins": [],
        },
        [(i, 50) for i in range(1, 7)],
        PEOPLE_SETUP,
        ordered=False,
        note="ages",
    ),
    Case(
        "insight/add_age",
        {
            "source": PEOPLE,
            "birth": exp.cast(literal("2000-02-29"), exp.DataType.build("date")),
            "at": exp.cast(literal("2026-02-28"), exp.DataType.build("date")),
            "age": identifier("a ge"),
        },
        [
            (1, "it's", -30, "b", 25),
            (2, "it's", -30, "a", 25),
            (3, "😀", -30, None, 25),
            (4, "😀", 40, "a\nb", 25),
            (5, None, 40, "e", 25),
            (6, None, 40, None, 25),
        ],
        PEOPLE_SETUP,
        ordered=False,
    ),
    Case(
        "insight/pick_first",
        {
            "source": PEOPLE,
            "person": identifier(AGE),
            "order": [identifier("id"), identifier(SEX)],
            "place": identifier("pla ce"),
        },
        [(1, "it's", -30, "b", 1), (4, "😀", 40, "a\nb", 1)],
        PEOPLE_SETUP,
        ordered=False,
    ),
    *(
        Case(
            "insight/join_stays",
            {
                "table": PEOPLE,
                "columns": [
                    {"value": column("ünï code", "r"), "first_of": literal("\n"), "name": identifier("be fore")},
                    {"value": column("id", "r"), "first_of": None, "name": identifier("row")},
                ],
                "person": identifier(SEX),
                "stays": PEOPLE,
                "stay": identifier("id"),
                "stays_on": identifier("id"),
                "order": order,
            },
            expected,
            PEOPLE_SETUP,
            ordered=False,
            note=note,
        )
        for order, expected, note in (
            ([], [("it's", "b", 1), ("it's", "a", 2), ("😀", None, 3), ("😀", "a", 4)], "all stays"),
            ([column("id", "s")], [("it's", "b", 1), ("😀", None, 3)], "first stays"),
        )
    ),
]
