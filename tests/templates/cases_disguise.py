"""Cases of the templates that replace keys by pseudonyms and shift dates."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from sqldeid.engine.base import Column
from sqldeid.sql import column, identifier, literal, table_name
from sqldeid.tables.plan.columns import coarsened
from tests.templates.cases import AGE, ALL_OUT, OUT, PEOPLE, PEOPLE_SETUP, SEX, Case

NUMBERED_SETUP = (
    'CREATE TABLE "num bered" (number BIGINT, value VARCHAR(20), shown VARCHAR(20))',
    "INSERT INTO \"num bered\" VALUES (0, 'it''s', 'it''s'), (1, '😀', '😀'), (2, 'z', 'z')",
    'CREATE TABLE "pa rt" (number BIGINT, pseudonym VARCHAR(32), days BIGINT)',
    "INSERT INTO \"pa rt\" VALUES (0, 'aa', -365), (1, NULL, 365)",
)
SECRETS_SETUP = (
    'CREATE TABLE "sec rets" (value VARCHAR(20), pseudonym VARCHAR(32), days BIGINT)',
    "INSERT INTO \"sec rets\" VALUES ('k', 'kk', 0)",
)
TEXTS_SETUP = (
    'CREATE TABLE "te xts" (shown VARCHAR(20), pseudonym VARCHAR(32), days BIGINT)',
    "INSERT INTO \"te xts\" VALUES ('it''s', 'aa', -365), ('it''s', 'bb', 365)",
)
STAYS_SETUP = (
    'CREATE TABLE "sta ys" (id INTEGER, "select" DATE, "at" TIMESTAMP)',
    """INSERT INTO "sta ys" VALUES (1, DATE '2020-02-28', TIMESTAMP '2020-03-01 23:59:59.123456'),
       (2, DATE '2021-01-01', NULL), (3, NULL, TIMESTAMP '1899-12-31 00:00:00')""",
    'CREATE TABLE "days of" (value INTEGER, pseudonym VARCHAR(32), days BIGINT)',
    "INSERT INTO \"days of\" VALUES (1, 'p1', 2), (2, 'p2', -365), (3, 'p3', 365)",
)
HEX = "0123456789abcdef" * 2
PSEUDONYMS_SETUP = (
    'CREATE TABLE "rel" ("a b" VARCHAR(40), c INTEGER)',
    f"INSERT INTO \"rel\" VALUES ('{HEX}', 1), ('{HEX}', 2), ('{HEX.upper()}', 2), ('{HEX}0', NULL), (NULL, NULL)",
)
NUMBERED, PART, SECRETS = table_name("num bered"), table_name("pa rt"), table_name("sec rets")
TEXTS = table_name("te xts")
DATE, TIMESTAMP = exp.DataType.build("date"), exp.DataType.build("timestamp", dialect="duckdb")

_CUT = {"alias": identifier("x0")}

CASES = [
    Case(
        "tables/disguise/number_values",
        {"numbered": OUT, "column": column(AGE, "s"), "source": PEOPLE, "text": True},
        [(0, -30, "-30"), (1, 40, "40")],
        PEOPLE_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/disguise/number_values",
        {"numbered": OUT, "column": column(SEX, "s"), "source": PEOPLE, "text": False},
        [("it's", None), ("😀", None)],
        PEOPLE_SETUP,
        read='SELECT value, shown FROM "o\'u""t"',
        ordered=False,
        note="without text, without NULL",
    ),
    Case(
        "tables/disguise/read_numbered",
        {"numbered": NUMBERED, "first": 1, "past": 3},
        [(1, "😀"), (2, "z")],
        NUMBERED_SETUP,
        ordered=False,
    ),
    Case(
        "tables/disguise/create_secrets",
        {"secrets": OUT, "numbered": NUMBERED, "part": PART},
        [("it's", "aa", -365), ("😀", None, 365)],
        NUMBERED_SETUP,
        read=ALL_OUT + "3",
    ),
    Case(
        "tables/disguise/create_secrets",
        {"secrets": OUT, "numbered": None, "part": TEXTS},
        [("it's", "aa", -365), ("it's", "bb", 365)],
        TEXTS_SETUP,
        read=ALL_OUT + "3",
        note="by text",
    ),
    Case(
        "tables/disguise/append_secrets",
        {"secrets": SECRETS, "numbered": None, "part": TEXTS},
        [("it's", "aa", -365), ("k", "kk", 0), ("it's", "bb", 365)],
        TEXTS_SETUP + SECRETS_SETUP,
        read='SELECT * FROM "sec rets" ORDER BY days',
        note="by text",
    ),
    Case(
        "tables/disguise/append_secrets",
        {"secrets": SECRETS, "numbered": NUMBERED, "part": PART},
        [("it's", "aa", -365), ("k", "kk", 0), ("😀", None, 365)],
        NUMBERED_SETUP + SECRETS_SETUP,
        read='SELECT * FROM "sec rets" ORDER BY days',
    ),
    Case(
        "tables/disguise/disguise_source",
        {
            "disguised": OUT,
            "source": table_name("sta ys"),
            "columns": [identifier("id"), identifier("select")],
            "secrets": [
                {"table": table_name("days of"), "alias": identifier("x0"), "column": column("id", "s"), "text": False}
            ],
            "hidden": [
                {"name": identifier("p x"), "value": None, "alias": identifier("x0"), "type": None, "unit": None},
                {
                    "name": identifier("d x"),
                    "value": column("select", "s"),
                    "alias": identifier("x0"),
                    "type": DATE,
                    "unit": None,
                },
                {
                    "name": identifier("t x"),
                    "value": column("at", "s"),
                    "alias": identifier("x0"),
                    "type": TIMESTAMP,
                    "unit": None,
                },
            ],
        },
        [
            (1, dt.date(2020, 2, 28), "p1", dt.date(2020, 3, 1), dt.datetime(2020, 3, 3, 23, 59, 59, 123456)),
            (2, dt.date(2021, 1, 1), "p2", dt.date(2020, 1, 2), None),
            (3, None, "p3", None, dt.datetime(1900, 12, 31)),
        ],
        STAYS_SETUP,
        read=ALL_OUT + "1",
    ),
    Case(
        "tables/disguise/disguise_source",
        {
            "disguised": OUT,
            "source": table_name("sta ys"),
            "columns": [identifier("id")],
            "secrets": [
                {"table": table_name("texts of"), "alias": identifier("x0"), "column": column("id", "s"), "text": True}
            ],
            "hidden": [
                {"name": identifier("p x"), "value": None, "alias": identifier("x0"), "type": None, "unit": None},
                {
                    "name": identifier("d x"),
                    "value": column("select", "s"),
                    "alias": identifier("x0"),
                    "type": DATE,
                    "unit": None,
                },
            ],
        },
        [(1, "p1", dt.date(2020, 3, 1)), (2, "p2", dt.date(2020, 1, 2)), (3, None, None)],
        (
            *STAYS_SETUP,
            'CREATE TABLE "texts of" (value VARCHAR(9), pseudonym VARCHAR(32), days BIGINT)',
            "INSERT INTO \"texts of\" VALUES ('1', 'p9', 2), ('1', 'p1', 2), ('2', 'p2', -365)",
        ),
        read=ALL_OUT + "1",
        note="by text, one twice and one never",
    ),
    Case(
        "tables/disguise/check_pseudonyms",
        {"relation": table_name("rel"), "columns": [column("a b", "s"), column("c", "s")]},
        [(0, 5, 4, 3, 2), (1, 5, 3, 2, 0)],
        PSEUDONYMS_SETUP,
    ),
    Case(
        "tables/disguise/disguise_source",
        {
            "disguised": OUT,
            "source": table_name("sta ys"),
            "columns": [identifier("id")],
            "secrets": [
                {"table": table_name("days of"), "alias": identifier("x0"), "column": column("id", "s"), "text": False}
            ],
            "hidden": [
                {
                    **_CUT,
                    "name": identifier("d x"),
                    "value": column("select", "s"),
                    "type": DATE,
                    "unit": literal("MONTH"),
                },
                {
                    **_CUT,
                    "name": identifier("t x"),
                    "value": column("at", "s"),
                    "type": TIMESTAMP,
                    "unit": literal("WEEK"),
                },
            ],
        },
        [
            (1, dt.date(2020, 3, 1), dt.datetime(2020, 3, 2)),
            (2, dt.date(2020, 1, 1), None),
            (3, None, dt.datetime(1900, 12, 31)),
        ],
        STAYS_SETUP,
        read=ALL_OUT + "1",
        note="cut after the shift",
    ),
    Case(
        "tables/disguise/count_finer",
        {
            "release": table_name("sta ys"),
            "columns": [
                {"column": column(n, "r"), "first": coarsened(column(n, "r"), to, Column(n, "", kind))}
                for n, to, kind in (
                    ("select", "month", "date"),
                    ("at", "day", "timestamp"),
                    ("at", "week", "timestamp"),
                )
            ],
        },
        [(0, 1), (1, 1), (2, 2)],
        STAYS_SETUP,
    ),
]
