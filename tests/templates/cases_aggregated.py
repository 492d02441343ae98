"""Fixtures of the templates that tell statistics of classes, and that draw samples."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import (
    AGE,
    ALL_OUT,
    CODED_COLUMNS,
    CODED_SETUP,
    INTEGER,
    KEPT,
    KEPT_SETUP,
    LABELS_SETUP,
    OUT,
    PEOPLE,
    PEOPLE_SETUP,
    SEX,
    TEXT,
    W0,
    Case,
)

CELL = exp.cast(column("id", "s"), "DOUBLE")
LABELLED = [
    {
        "name": identifier("q0"),
        "column": column(AGE, "s"),
        "alias": identifier("m0"),
        "labels": None,
        "type": INTEGER,
        "null_label": None,
        "text": True,
    }
]

CASES = [
    Case(
        "tables/write/list_cells",
        {
            "cells": OUT,
            "source": PEOPLE,
            "kept": KEPT,
            "words": [{"name": W0, "mask": 13, "columns": CODED_COLUMNS}],
            "cell": CELL,
        },
        [(1, 1.0, 1), (1, 2.0, 1), (2, 5.0, 1), (2, 6.0, 1)],
        PEOPLE_SETUP + CODED_SETUP + KEPT_SETUP,
        read=ALL_OUT + "1, 2",
    ),
    Case(
        "tables/write/join_statistics",
        {"told": OUT, "kept": KEPT, "statistics": table_name("a"), "columns": [identifier("a0")]},
        [(0, 2, "it's", -30, 1, 7), (9, 2, None, 40, 2, None)],
        (*KEPT_SETUP, "CREATE TABLE a (place BIGINT, a0 BIGINT)", "INSERT INTO a VALUES (1, 7)"),
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/verify/split_cells",
        {"cells": OUT, "source": PEOPLE, "columns": LABELLED, "cell": CELL},
        [("-30", 1.0, 1), ("-30", 2.0, 1), ("-30", 3.0, 1), ("40", 4.0, 1), ("40", 5.0, 1), ("40", 6.0, 1)],
        PEOPLE_SETUP + LABELS_SETUP,
        read=ALL_OUT + "2",
    ),
    Case(
        "tables/verify/group_statistics",
        {
            "grouped": OUT,
            "release": PEOPLE,
            "columns": [{"name": identifier("q0"), "column": column(SEX, "r")}],
            "statistic": column(AGE, "r"),
            "type": TEXT,
        },
        [("it's", "-30"), ("😀", "-30"), ("😀", "40"), (None, "40")],
        PEOPLE_SETUP,
        read='SELECT * FROM "o\'u""t"',
        ordered=False,
    ),
    *(
        Case(
            "tables/fold/sample_source",
            {
                "sampled": OUT,
                "source": PEOPLE,
                "columns": [identifier("id"), identifier(SEX)],
                "person": column("id", "s"),
                "chosen": table_name("chosen"),
                "text": text,
            },
            [(1, "it's"), (5, None)],
            (
                *PEOPLE_SETUP,
                f"CREATE TABLE chosen (value {'TEXT' if text else 'INTEGER'}, pseudonym TEXT)",
                f"INSERT INTO chosen VALUES {values}",
            ),
            read=ALL_OUT + "1",
            note="by text, one twice" if text else "",
        )
        for text, values in (
            (False, "(1, '1'), (2, '0'), (5, '1'), (9, '1')"),
            (True, "('1', '1'), ('1', '1'), ('2', '0'), ('5', '1'), ('9', '1')"),
        )
    ),
]
