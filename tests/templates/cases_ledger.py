"""Cases of the portable templates of the release ledger."""

from __future__ import annotations

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import (
    AGE,
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

HELD_SETUP = ('CREATE TABLE "he ld" (person VARCHAR(20))', "INSERT INTO \"he ld\" VALUES ('2'), ('5'), ('77')")

CASES = [
    Case(
        "tables/ledger/list_admissible",
        {
            "source": PEOPLE,
            "person": column("id", "s"),
            "kept": KEPT,
            "words": [{"name": W0, "mask": 13, "columns": CODED_COLUMNS}],
            "fields": [
                {"name": identifier("c0"), "column": column(NOTE, "s"), "utc": True},
                {"name": identifier("c1"), "column": column(AGE, "s"), "utc": False},
            ],
        },
        [("1", 1, "b+00", "-30"), ("2", 1, "a+00", "-30"), ("5", 2, "e+00", "40"), ("6", 2, None, "40")],
        PEOPLE_SETUP + CODED_SETUP + KEPT_SETUP,
        ordered=False,
    ),
    Case(
        "tables/ledger/list_admissible",
        {
            "source": PEOPLE,
            "person": column("id", "s"),
            "kept": KEPT,
            "words": [{"name": W0, "mask": 13, "columns": CODED_COLUMNS}],
            "fields": [],
        },
        [("1", 1), ("2", 1), ("5", 2), ("6", 2)],
        PEOPLE_SETUP + CODED_SETUP + KEPT_SETUP,
        ordered=False,
        note="nothing beside the class",
    ),
    Case(
        "tables/ledger/list_persons",
        {"source": PEOPLE, "person": column("id", "s")},
        [("1",), ("2",), ("3",), ("4",), ("5",), ("6",)],
        PEOPLE_SETUP,
        ordered=False,
    ),
    Case(
        "tables/rows/keep_admitted",
        {
            "kept": OUT,
            "columns": [identifier("id"), identifier(AGE)],
            "source": PEOPLE,
            "person": column("id", "s"),
            "held": table_name("he ld"),
        },
        [(1, -30), (3, -30), (4, 40), (6, 40)],
        PEOPLE_SETUP + HELD_SETUP,
        read=ALL_OUT + "id",
    ),
]
