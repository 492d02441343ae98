"""Cases of the templates of attacks that run where the source lies."""

from __future__ import annotations

from sqldeid.sql import column
from tests.templates.cases import AGE, ALL_OUT, OUT, PEOPLE, PEOPLE_SETUP, SEX, Case

CASES = [
    Case(
        "tables/attacks/code_secret",
        {"coded": OUT, "column": column(AGE, "s"), "source": PEOPLE},
        [(-30, 0), (40, 1)],
        PEOPLE_SETUP,
        read=ALL_OUT + "2",
    ),
    Case(
        "tables/attacks/code_secret",
        {"coded": OUT, "column": column(SEX, "s"), "source": PEOPLE},
        [("it's",), ("😀",)],
        PEOPLE_SETUP,
        read='SELECT original FROM "o\'u""t"',
        ordered=False,
        note="text, without NULL",
    ),
]
