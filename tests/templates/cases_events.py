"""Cases of the events templates: hostile names, NULLs, ties, equal times, times before 1970, fractions of seconds."""

# ruff: noqa: E501 - rows of fixtures

from __future__ import annotations

from datetime import date, datetime
from types import SimpleNamespace as S

from sqlglot import exp

from sqldeid.sql import column, identifier, literal, table_name
from tests.templates.cases import PEOPLE, PEOPLE_SETUP, SEX, Case

OF_PEOPLE: dict[str, object] = {"source": PEOPLE, "owner": column(SEX, "s")}

OUT = table_name("o'u\"t")
READ = 'SELECT * FROM "o\'u""t" ORDER BY '
WHO, WARD = 'select "who"', "w;ard"


def stamp(text: str) -> exp.Expr:
    return exp.cast(literal(text), exp.DataType.build("timestamp", dialect="duckdb"))


def names(*words: str) -> list[exp.Identifier]:
    return [identifier(w) for w in words]


SOURCE = (
    'CREATE TABLE "so urce" ("select ""who""" TEXT, "w;ard" INTEGER, kind TEXT, "at" TIMESTAMP, seq INTEGER)',
    """INSERT INTO "so urce" VALUES ('b', 7, 'in', '1969-12-31 23:59:59.5', 1), ('b', 8, 'to', '1970-01-01 01:00:00', NULL),
       ('b', 9, 'to', '1970-01-01 01:00:00', 2), ('b', NULL, 'out', '1970-03-01 00:00:00', 1), ('a', 7, 'in', '2164-02-29 12:00:00', 1),
       ('a', NULL, 'out', '2164-02-29 12:30:00', 1), (NULL, 7, 'in', '2164-02-29 12:00:00', 1), ('a', NULL, NULL, '2164-02-29 12:00:00', 1),
       ('c', 7, 'it''s', NULL, 1), ('c', 7, 'in', '2001-05-05 05:05:05', 1)""",
)
"""Objects a, b and c; three rows are unusable, and two of b are at one time."""

PLACED = (
    "CREATE TABLE placed (object BIGINT, position BIGINT, state BIGINT, moment TIMESTAMP, gap_us BIGINT, x0 BIGINT)",
    """INSERT INTO placed VALUES (1, 1, 0, '2164-02-29 12:00:00', NULL, 4), (1, 2, 3, '2164-02-29 12:30:00', 1800000000, 5),
       (2, 1, 0, '1969-12-31 23:00:00', NULL, 1), (2, 2, 2, '1970-01-01 01:00:00', 7200000000, 1),
       (2, 3, 2, '1970-01-01 01:00:00', 0, 2), (2, 4, 3, '1970-03-01 01:00:00', 5097600000000, 3), (3, 1, 1, '2001-05-05 05:05:05', NULL, 0)""",
)
SPLIT = (
    """CREATE TABLE split (part BIGINT, object BIGINT, position BIGINT, state BIGINT, moment TIMESTAMP, gap_us BIGINT,
       next_state BIGINT, next_us BIGINT, x0 BIGINT)""",
    """INSERT INTO split VALUES (1, 1, 1, 0, '2164-02-29 12:00:00', NULL, 3, 1800000000, 4),
       (1, 1, 2, 3, '2164-02-29 12:30:00', 1800000000, NULL, NULL, 5), (2, 2, 1, 0, '1969-12-31 23:00:00', NULL, 2, 7200000000, 1),
       (2, 2, 2, 2, '1970-01-01 01:00:00', 7200000000, 2, 0, 1), (2, 2, 3, 2, '1970-01-01 01:00:00', 0, NULL, NULL, 2),
       (3, 2, 4, 3, '1970-03-01 01:00:00', NULL, NULL, NULL, 3), (4, 3, 1, 1, '2001-05-05 05:05:05', NULL, NULL, NULL, 0)""",
)
PARTS = (
    """CREATE TABLE parts (part BIGINT, object BIGINT, ordinal BIGINT, length BIGINT, started TIMESTAMP, ended TIMESTAMP,
       duration_us BIGINT, duration BIGINT, x0 BIGINT)""",
    """INSERT INTO parts VALUES (1, 1, 1, 2, '2164-02-29 12:00:00', '2164-02-29 12:30:00', 1800000000, 0, 4),
       (2, 2, 1, 3, '1969-12-31 23:00:00', '1970-01-01 01:00:00', 7200000000, 1, 1),
       (3, 2, 2, 1, '1970-03-01 01:00:00', '1970-03-01 01:00:00', 0, 0, 3), (4, 3, 1, 1, '2001-05-05 05:05:05', '2001-05-05 05:05:05', 0, 0, 0)""",
)
CLUSTERED = (
    "CREATE TABLE clustered (part BIGINT, set_number BIGINT, cluster BIGINT)",
    "INSERT INTO clustered VALUES (1, 1, 0), (2, 2, 1), (3, 3, 0), (4, 3, 0)",
)
LINKS = (
    "CREATE TABLE links (cluster BIGINT, f BIGINT, origin BIGINT, target BIGINT, hours DOUBLE PRECISION)",
    "INSERT INTO links VALUES (0, 5, 1, 2, 1.5), (0, 6, 1, 2, 2.5), (1, 5, 1, 2, 8), (1, 5, 1, 3, NULL)",
)
COUNTED = (
    """CREATE TABLE counted (level BIGINT, cluster BIGINT, value BIGINT, origin BIGINT, target BIGINT, n BIGINT,
       mean_hours DOUBLE PRECISION, sd_hours DOUBLE PRECISION)""",
    """INSERT INTO counted VALUES (0, -1, -1, 1, 2, 3, 1.5, 0.5), (0, -1, -1, 1, 9, 7, NULL, NULL), (0, -1, -1, 2, 9, 1, NULL, NULL),
       (0, -1, -1, 3, 1, 8, 1, NULL), (0, -1, -1, 3, 9, 1, NULL, NULL)""",
)
JUDGED = (
    """CREATE TABLE judged (level BIGINT, cluster BIGINT, value BIGINT, origin BIGINT, target BIGINT, n BIGINT,
       mean_hours DOUBLE PRECISION, sd_hours DOUBLE PRECISION, total BIGINT, kept BOOLEAN)""",
    """INSERT INTO judged VALUES (0, -1, -1, 1, 9, 7, NULL, NULL, 10, true), (0, -1, -1, 1, 2, 3, 1.5, 0.5, 10, true),
       (0, -1, -1, 2, 9, 1, NULL, NULL, 1, false)""",
)
SHINGLES = (
    "CREATE TABLE shingles (part BIGINT, shingle TEXT)",
    "INSERT INTO shingles VALUES (1, '0'), (1, '3'), (2, '0'), (2, '3'), (3, '11')",
)
CODED = (
    "CREATE TABLE coded (shingle TEXT, code BIGINT)",
    "INSERT INTO coded VALUES ('0', 2), ('3', 10), ('11', 0)",
)
KEYED = (
    "CREATE TABLE keyed (part BIGINT, content TEXT)",
    "INSERT INTO keyed VALUES (1, '2,10'), (2, '2,10'), (3, '0')",
)
RANKED = (
    "CREATE TABLE ranked (set_number BIGINT, n BIGINT, sample BIGINT, content TEXT)",
    "INSERT INTO ranked VALUES (1, 2, 1, '2,10'), (2, 1, 3, '0')",
)
MEMBERS = (
    "CREATE TABLE members (set_number BIGINT, code BIGINT)",
    "INSERT INTO members VALUES (1, 10), (1, 2), (2, 0)",
)
CLUSTERS = ("CREATE TABLE clusters (set_number BIGINT, leader BIGINT)", "INSERT INTO clusters VALUES (1, 1)")
MADE = (
    "CREATE TABLE made (object BIGINT, part BIGINT, position BIGINT, state INTEGER, moment TIMESTAMP)",
    """INSERT INTO made VALUES (1, 1, 1, 0, '2164-02-29 12:00:00'), (1, 1, 2, 3, '2164-02-29 12:00:01'),
       (1, 2, 3, 0, '2164-03-29 12:00:00'), (2, 3, 1, 3, '2000-01-01 00:00:00')""",
)
LISTED = (
    "CREATE TABLE listed (state BIGINT, s0 TEXT, s1 TEXT)",
    "INSERT INTO listed VALUES (0, '7', 'it''s'), (1, '8', 'to'), (3, '', 'out')",
)
NUMBERED = (
    "CREATE TABLE numbered (object BIGINT, state BIGINT, moment TIMESTAMP, s0 TEXT, s1 TEXT, o0 INTEGER, x0 BIGINT)",
    """INSERT INTO numbered VALUES (1, 0, '2164-02-29 12:00:00.25', '7', 'it''s', 1, 0), (1, 1, '2164-02-29 12:00:00.25', '9', 'to', 1, 1),
       (2, 2, '1969-12-31 23:59:59.5', NULL, 'out', NULL, 0), (2, 0, '1969-12-31 23:59:59.5', '7', 'it''s', 2, 0)""",
)
STEPS = (
    "CREATE TABLE split (gap_us BIGINT)",
    "INSERT INTO split VALUES (NULL), (3600000000), (10800000000), (18000000000)",
    "CREATE TABLE links (hours DOUBLE PRECISION)",
    "INSERT INTO links VALUES (NULL), (1), (3), (5)",
    "CREATE TABLE parts (object BIGINT, duration_us BIGINT)",
    """INSERT INTO parts VALUES (1, 7200000000), (2, 7200000000), (2, 7200000000), (2, 7200000000), (3, 7200000000),
       (3, 7200000000), (3, 7200000000), (3, 7200000000), (3, 7200000000)""",
)
"""Numbers whose deviations are exact on every engine."""
ENDS = ("CREATE TABLE bits (object BIGINT, position BIGINT, state BIGINT, moment TIMESTAMP, gap_us BIGINT)",)


def t(name: str) -> exp.Table:
    return table_name(name)


FACTORS = [
    S(name=identifier("weekday"), weekday=True, hour=False, month=False, year=False, weight=2),
    S(name=identifier("hour"), weekday=False, hour=True, month=False, year=False, weight=4),
    S(name=identifier("month"), weekday=False, hour=False, month=True, year=False, weight=6),
    S(name=identifier("year"), weekday=False, hour=False, month=False, year=True, weight=8),
    S(name=identifier("x0"), weekday=False, hour=False, month=False, year=False, weight=10),
]
STATES = [S(name=identifier("s0"), value=column(WARD, "s")), S(name=identifier("s1"), value=column("kind", "s"))]


CASES = [
    Case(
        "events/order_events",
        {
            "events": OUT,
            "source": t("so urce"),
            "object": column(WHO, "s"),
            "time": column("at", "s"),
            "first_time": stamp("0001-01-02"),
            "last_time": stamp("9999-12-01"),
            "states": STATES,
            "orders": [S(name=identifier("o0"), value=column("seq", "s"))],
            "factors": [S(name=identifier("x0"), value=column("kind", "s"))],
        },
        [
            (1, 1, datetime(2164, 2, 29, 12, 0), 7, "in", 1, 0),
            (1, 0, datetime(2164, 2, 29, 12, 30), None, "out", 1, 1),
            (2, 1, datetime(1969, 12, 31, 23, 59, 59, 500000), 7, "in", 1, 0),
            (2, 2, datetime(1970, 1, 1, 1, 0), 8, "to", None, 2),
            (2, 3, datetime(1970, 1, 1, 1, 0), 9, "to", 2, 2),
            (2, 0, datetime(1970, 3, 1, 0, 0), None, "out", 1, 1),
            (3, 1, datetime(2001, 5, 5, 5, 5, 5), 7, "in", 1, 0),
        ],
        (*SOURCE,),
        read=READ + "object, moment, state",
    ),
    Case(
        "events/order_events",
        {
            "events": OUT,
            "source": t("so urce"),
            "object": column(WHO, "s"),
            "time": None,
            "first_time": None,
            "last_time": None,
            "states": STATES[1:],
            "orders": [],
            "factors": [],
        },
        [
            (1, 0, None, "in"),
            (1, 2, None, "out"),
            (2, 0, None, "in"),
            (2, 2, None, "out"),
            (2, 3, None, "to"),
            (2, 3, None, "to"),
            (3, 0, None, "in"),
            (3, 1, None, "it's"),
        ],
        (*SOURCE,),
        read=READ + "object, state",
        note="an order alone",
    ),
    Case(
        "events/list_states",
        {"listed": OUT, "events": t("numbered"), "states": names("s0", "s1")},
        [(0, "7", "it's"), (1, "9", "to"), (2, None, "out")],
        (*NUMBERED,),
        read=READ + "state, s0",
    ),
    Case(
        "events/place_events",
        {"placed": OUT, "events": t("numbered"), "timed": True, "orders": names("o0"), "factors": names("x0")},
        [
            (1, 1, 0, datetime(2164, 2, 29, 12, 0, 0, 250000), None, 0),
            (1, 2, 1, datetime(2164, 2, 29, 12, 0, 0, 250000), 0, 1),
            (2, 1, 0, datetime(1969, 12, 31, 23, 59, 59, 500000), None, 0),
            (2, 2, 2, datetime(1969, 12, 31, 23, 59, 59, 500000), 0, 0),
            (3, 1, 1, datetime(2001, 5, 5), None, 0),
            (3, 2, 1, datetime(2001, 5, 5), 0, 1),
            (3, 3, 1, datetime(2001, 5, 5), 0, None),
        ],
        (
            *NUMBERED,
            "INSERT INTO numbered VALUES (3, 1, '2001-05-05', '9', 'to', 1, NULL), "
            "(3, 1, '2001-05-05', '9', 'to', 1, 1), (3, 1, '2001-05-05', '9', 'to', 1, 0)",
        ),
        read=READ + "object, position",
        note="of one time and state: by factors, whatever the order of rows",
    ),
    Case(
        "events/place_events",
        {"placed": OUT, "events": t("numbered"), "timed": False, "orders": [], "factors": []},
        [
            (1, 1, 0, datetime(2164, 2, 29, 12, 0, 0, 250000), None),
            (1, 2, 1, datetime(2164, 2, 29, 12, 0, 0, 250000), 3600000000),
            (2, 1, 0, datetime(1969, 12, 31, 23, 59, 59, 500000), None),
            (2, 2, 2, datetime(1969, 12, 31, 23, 59, 59, 500000), 3600000000),
        ],
        (*NUMBERED,),
        read=READ + "object, position",
        note="an order alone",
    ),
    Case("events/count_source", OF_PEOPLE | {"placed": t("placed")}, [(7, 3, 4, 4, 2)], (*PLACED, *PEOPLE_SETUP)),
    Case(
        "events/count_source",
        OF_PEOPLE | {"placed": t("bits")},
        [(0, 0, 0, 0, 2)],
        (*ENDS, *PEOPLE_SETUP),
        note="nothing",
    ),
    Case("events/measure_gaps", {"placed": t("placed")}, [(4, 1, 0.0, 3.974369227406805)], (*PLACED,)),
    Case("events/count_gaps", {"placed": t("placed"), "width": 0.25}, [(-17, 1), (-3, 1), (2, 1), (29, 1)], (*PLACED,)),
    Case(
        "events/split_events",
        {"split": OUT, "placed": t("placed"), "most_us": 7200000000, "factors": names("x0")},
        [
            (1, 1, 1, 0, datetime(2164, 2, 29, 12, 0), None, 3, 1800000000, 4),
            (1, 1, 2, 3, datetime(2164, 2, 29, 12, 30), 1800000000, None, None, 5),
            (2, 2, 1, 0, datetime(1969, 12, 31, 23, 0), None, 2, 7200000000, 1),
            (2, 2, 2, 2, datetime(1970, 1, 1, 1, 0), 7200000000, 2, 0, 1),
            (2, 2, 3, 2, datetime(1970, 1, 1, 1, 0), 0, None, None, 2),
            (3, 2, 4, 3, datetime(1970, 3, 1, 1, 0), None, None, None, 3),
            (4, 3, 1, 1, datetime(2001, 5, 5, 5, 5, 5), None, None, None, 0),
        ],
        (*PLACED,),
        read=READ + "object, position",
    ),
    Case(
        "events/split_events",
        {"split": OUT, "placed": t("placed"), "most_us": None, "factors": []},
        [
            (1, 1, 1, 0, datetime(2164, 2, 29, 12, 0), None, 3, 1800000000),
            (1, 1, 2, 3, datetime(2164, 2, 29, 12, 30), 1800000000, None, None),
            (2, 2, 1, 0, datetime(1969, 12, 31, 23, 0), None, 2, 7200000000),
            (2, 2, 2, 2, datetime(1970, 1, 1, 1, 0), 7200000000, 2, 0),
            (2, 2, 3, 2, datetime(1970, 1, 1, 1, 0), 0, 3, 5097600000000),
            (2, 2, 4, 3, datetime(1970, 3, 1, 1, 0), 5097600000000, None, None),
            (3, 3, 1, 1, datetime(2001, 5, 5, 5, 5, 5), None, None, None),
        ],
        (*PLACED,),
        read=READ + "object, position",
        note="never",
    ),
    Case(
        "events/build_parts",
        {"parts": OUT, "split": t("split"), "factors": names("x0")},
        [
            (1, 1, 1, 2, datetime(2164, 2, 29, 12, 0), datetime(2164, 2, 29, 12, 30), 1800000000, 0, 4),
            (2, 2, 1, 3, datetime(1969, 12, 31, 23, 0), datetime(1970, 1, 1, 1, 0), 7200000000, 1, 1),
            (3, 2, 2, 1, datetime(1970, 3, 1, 1, 0), datetime(1970, 3, 1, 1, 0), 0, 0, 3),
            (4, 3, 1, 1, datetime(2001, 5, 5, 5, 5, 5), datetime(2001, 5, 5, 5, 5, 5), 0, 0, 0),
        ],
        (*SPLIT,),
        read=READ + "part",
    ),
    Case(
        "events/make_shingles",
        {"shingles": OUT, "split": t("split"), "later": []},
        [(1, "0"), (1, "3"), (2, "0"), (2, "2"), (3, "3"), (4, "1")],
        (*SPLIT,),
        read=READ + "part, shingle",
    ),
    Case(
        "events/make_shingles",
        {"shingles": OUT, "split": t("split"), "later": [1, 2]},
        [(1, "0-3-"), (2, "0-2-2"), (3, "3--"), (4, "1--")],
        (*SPLIT,),
        read=READ + "part, shingle",
        note="of three",
    ),
    Case(
        "events/code_shingles",
        {"coded": OUT, "shingles": t("shingles")},
        [("11", 0), ("0", 1), ("3", 2)],
        (*SHINGLES,),
        read=READ + "code",
    ),
    Case(
        "events/key_parts",
        {"keyed": OUT, "shingles": t("shingles"), "coded": t("coded")},
        [(1, "2,10"), (2, "2,10"), (3, "0")],
        (*SHINGLES, *CODED),
        read=READ + "part",
    ),
    Case(
        "events/rank_sets",
        {"ranked": OUT, "keyed": t("keyed")},
        [(1, 2, 1, "2,10"), (2, 1, 3, "0")],
        (*KEYED,),
        read=READ + "set_number",
    ),
    Case(
        "events/list_members",
        {"members": OUT, "ranked": t("ranked"), "shingles": t("shingles"), "coded": t("coded")},
        [(1, 2), (1, 10), (2, 0)],
        (*RANKED, *SHINGLES, *CODED),
        read=READ + "set_number, code",
    ),
    Case(
        "events/sign_sets",
        {"signed": OUT, "members": t("members"), "hashed": t("hashed"), "hashes": names("h0", "h1")},
        [(1, 3, 1), (2, 5, 6)],
        (
            *MEMBERS,
            "CREATE TABLE hashed (code BIGINT, h0 BIGINT, h1 BIGINT)",
            "INSERT INTO hashed VALUES (0, 5, 6), (2, 8, 1), (10, 3, 4)",
        ),
        read=READ + "set_number",
    ),
    Case(
        "events/start_clusters",
        {"clusters": OUT, "ranked": t("ranked"), "leaders": 1},
        [(1, 1)],
        (*RANKED,),
        read=READ + "set_number",
    ),
    Case(
        "events/join_rest",
        {"clusters": t("clusters"), "ranked": t("ranked")},
        [(1, 1), (2, 1)],
        (*RANKED, *CLUSTERS),
        read="SELECT * FROM clusters ORDER BY set_number",
    ),
    Case(
        "events/cluster_parts",
        {"clustered": OUT, "keyed": t("keyed"), "ranked": t("ranked"), "clusters": t("clusters")},
        [(1, 1, 0), (2, 1, 0), (3, 2, 0)],
        (
            *KEYED,
            *RANKED,
            *CLUSTERS,
            "INSERT INTO clusters VALUES (2, 1)",
        ),
        read=READ + "part",
    ),
    Case("events/count_clusters", {"clustered": t("clustered")}, [(1, 1), (3, 1)], (*CLUSTERED,)),
    Case(
        "events/link_events",
        {
            "links": OUT,
            "split": t("split"),
            "parts": t("parts"),
            "clustered": t("clustered"),
            "start": 4,
            "finish": 5,
            "ends": True,
            "factors": FACTORS,
        },
        [
            (1, 0, 0, 3, 0.5, 3, 12, 2, 2164, 4),
            (1, 0, 3, 5, None, 3, 12, 2, 2164, 4),
            (1, 0, 4, 0, None, 3, 12, 2, 2164, 4),
            (2, 0, 3, 5, None, 7, 1, 3, 1970, 3),
            (2, 0, 4, 3, None, 7, 1, 3, 1970, 3),
            (2, 1, 0, 2, 2.0, 3, 23, 12, 1969, 1),
            (2, 1, 4, 0, None, 3, 23, 12, 1969, 1),
            (2, 1, 2, 2, 0.0, 4, 1, 1, 1970, 1),
            (2, 1, 2, 5, None, 4, 1, 1, 1970, 1),
            (3, 0, 1, 5, None, 6, 5, 5, 2001, 0),
            (3, 0, 4, 1, None, 6, 5, 5, 2001, 0),
        ],
        (*SPLIT, *PARTS, *CLUSTERED),
        read=READ + "object, cluster, year, month, hour, origin, target, x0",
    ),
    Case(
        "events/link_events",
        {
            "links": OUT,
            "split": t("split"),
            "parts": t("parts"),
            "clustered": t("clustered"),
            "start": 4,
            "finish": 5,
            "ends": False,
            "factors": [],
        },
        [
            (1, 0, 0, 3, 0.5),
            (1, 0, 4, 0, None),
            (2, 0, 4, 3, None),
            (2, 1, 0, 2, 2.0),
            (2, 1, 2, 2, 0.0),
            (2, 1, 4, 0, None),
            (3, 0, 4, 1, None),
        ],
        (*SPLIT, *PARTS, *CLUSTERED),
        read=READ + "object, cluster, origin, target",
        note="without ends",
    ),
    Case(
        "events/link_parts",
        {
            "links": OUT,
            "parts": t("parts"),
            "clustered": t("clustered"),
            "start": -1,
            "finish": -2,
            "ends": True,
            "timed": True,
        },
        [
            (1, -1, 0, None, 3, 2, 2164),
            (1, 0, -2, None, 3, 2, 2164),
            (2, -1, 1, None, 3, 12, 1969),
            (2, 1, 0, 1416.0, 3, 12, 1969),
            (2, 0, -2, None, 7, 3, 1970),
            (3, -1, 0, None, 6, 5, 2001),
            (3, 0, -2, None, 6, 5, 2001),
        ],
        (*PARTS, *CLUSTERED),
        read=READ + "object, year, month, origin",
    ),
    Case(
        "events/link_parts",
        {
            "links": OUT,
            "parts": t("parts"),
            "clustered": t("clustered"),
            "start": -1,
            "finish": -2,
            "ends": False,
            "timed": False,
        },
        [(1, -1, 0, None), (2, -1, 1, None), (2, 1, 0, 1416.0), (3, -1, 0, None)],
        (*PARTS, *CLUSTERED),
        read=READ + "object, origin",
        note="without ends",
    ),
    Case(
        "events/link_starts",
        {"links": OUT, "parts": t("parts"), "clustered": t("clustered")},
        [
            (0, 0, 1, None, 7, 3, 1970),
            (0, 0, 5, None, 6, 5, 2001),
            (0, 0, 12, None, 3, 2, 2164),
            (1, 0, 23, None, 3, 12, 1969),
        ],
        (*PARTS, *CLUSTERED),
        read=READ + "cluster, year, month",
    ),
    Case(
        "events/link_values",
        {"links": OUT, "parts": t("parts"), "clustered": t("clustered"), "factor": identifier("x0")},
        [(0, 0, 0, 0.0), (0, 0, 3, 0.0), (0, 0, 4, 0.5), (1, 0, 1, 2.0)],
        (*PARTS, *CLUSTERED),
        read=READ + "cluster, target",
    ),
    Case(
        "events/count_links",
        {"counted": OUT, "links": t("links"), "clustered": True, "factors": [S(name=identifier("f"), weight=2)]},
        [
            (0, -1, -1, 1, 2, 3, 4.0, 3.5),
            (0, -1, -1, 1, 3, 1, None, None),
            (1, 0, -1, 1, 2, 2, 2.0, 0.7071067811865476),
            (1, 1, -1, 1, 2, 1, 8.0, None),
            (1, 1, -1, 1, 3, 1, None, None),
            (2, -1, 5, 1, 2, 2, 4.75, 4.596194077712559),
            (2, -1, 5, 1, 3, 1, None, None),
            (2, -1, 6, 1, 2, 1, 2.5, None),
            (3, 0, 5, 1, 2, 1, 1.5, None),
            (3, 0, 6, 1, 2, 1, 2.5, None),
            (3, 1, 5, 1, 2, 1, 8.0, None),
            (3, 1, 5, 1, 3, 1, None, None),
        ],
        (*LINKS,),
        read=READ + "level, cluster, value, origin, target",
    ),
    Case(
        "events/count_links",
        {"counted": OUT, "links": t("links"), "clustered": False, "factors": []},
        [(0, -1, -1, 1, 2, 3, 4.0, 3.5), (0, -1, -1, 1, 3, 1, None, None)],
        (*LINKS,),
        read=READ + "target",
        note="no factor",
    ),
    Case(
        "events/judge_links",
        {"judged": OUT, "counted": t("counted"), "bound": 1.4918246976412703, "finish": 9},
        [
            (0, -1, -1, 1, 2, 3, 1.5, 0.5, 10, True),
            (0, -1, -1, 1, 9, 7, None, None, 10, True),
            (0, -1, -1, 2, 9, 1, None, None, 1, False),
            (0, -1, -1, 3, 1, 8, 1.0, None, 9, True),
            (0, -1, -1, 3, 9, 1, None, None, 9, True),
        ],
        (*COUNTED,),
        read=READ + "origin, target",
        note="epsilon 0.4",
    ),
    Case(
        "events/judge_links",
        {"judged": OUT, "counted": t("counted"), "bound": 1.3498588075760032, "finish": None},
        [
            (0, -1, -1, 1, 2, 3, 1.5, 0.5, 10, False),
            (0, -1, -1, 1, 9, 7, None, None, 10, True),
            (0, -1, -1, 2, 9, 1, None, None, 1, False),
            (0, -1, -1, 3, 1, 8, 1.0, None, 9, True),
            (0, -1, -1, 3, 9, 1, None, None, 9, False),
        ],
        (*COUNTED,),
        read=READ + "origin, target",
        note="epsilon 0.3",
    ),
    Case(
        "events/judge_links",
        {"judged": OUT, "counted": t("counted"), "bound": None, "finish": 9},
        [
            (0, -1, -1, 1, 2, 3, 1.5, 0.5, 10, True),
            (0, -1, -1, 1, 9, 7, None, None, 10, True),
            (0, -1, -1, 2, 9, 1, None, None, 1, True),
            (0, -1, -1, 3, 1, 8, 1.0, None, 9, True),
            (0, -1, -1, 3, 9, 1, None, None, 9, True),
        ],
        (*COUNTED,),
        read=READ + "origin, target",
        note="none",
    ),
    Case(
        "events/read_links",
        {"judged": t("judged")},
        [(0, -1, -1, 1, 2, 3, 1.5, 0.5), (0, -1, -1, 1, 9, 7, None, None)],
        (*JUDGED,),
    ),
    Case("events/sum_links", {"judged": t("judged")}, [(3, 1, 11, 1)], (*JUDGED,)),
    Case(
        "events/pair_states",
        {"counted": OUT, "split": t("split")},
        [
            (0, -1, -1, 0, 2, 1, None, None),
            (0, -1, -1, 0, 3, 1, None, None),
            (0, -1, -1, 2, 0, 1, None, None),
            (0, -1, -1, 3, 0, 1, None, None),
        ],
        (*SPLIT,),
        read=READ + "origin, target",
    ),
    Case(
        "events/pair_clusters",
        {"counted": OUT, "parts": t("parts"), "clustered": t("clustered")},
        [(0, -1, -1, 0, 1, 1, None, None), (0, -1, -1, 1, 0, 1, None, None)],
        (*PARTS, *CLUSTERED),
        read=READ + "origin, target",
    ),
    Case(
        "events/count_days",
        {"parts": t("parts")},
        [(date(1969, 12, 31), 1, 2.0, None), (date(2001, 5, 5), 1, 1.0, None), (date(2164, 2, 29), 1, 1.0, None)],
        (*PARTS,),
    ),
    Case(
        "events/measure_steps",
        {"split": t("split"), "parts": t("parts"), "steps": t("links")},
        [(3.0, 2.0, 3.0, 2.0, 2.0, 0.0, 3.0, 2.0)],
        (*STEPS,),
    ),
    Case(
        "events/map_states",
        {
            "mapped": OUT,
            "events": t("numbered"),
            "listed": t("listed"),
            "states": names("s0", "s1"),
            "orders": names("o0"),
            "empty": literal(""),
            "other": 3,
            "first_time": stamp("1960-01-01"),
            "last_time": stamp("2164-02-29 12:00:00.25"),
        },
        [
            (2, 0, datetime(1969, 12, 31, 23, 59, 59, 500000), 2),
            (2, 3, datetime(1969, 12, 31, 23, 59, 59, 500000), None),
        ],
        (*NUMBERED, *LISTED),
        read=READ + "object, state",
    ),
    Case(
        "events/map_states",
        {
            "mapped": OUT,
            "events": t("numbered"),
            "listed": t("listed"),
            "states": names("s0", "s1"),
            "orders": [],
            "empty": literal(""),
            "other": None,
            "first_time": None,
            "last_time": None,
        },
        [
            (1, 0, datetime(2164, 2, 29, 12, 0, 0, 250000)),
            (2, 0, datetime(1969, 12, 31, 23, 59, 59, 500000)),
            (2, 3, datetime(1969, 12, 31, 23, 59, 59, 500000)),
        ],
        (*NUMBERED, *LISTED),
        read=READ + "object, state",
        note="others are dropped",
    ),
    Case(
        "events/bound_steps",
        {"placed": t("placed"), "most": 2, "start": 4, "finish": 5},
        [(0, 2, 1), (0, 3, 1), (1, 5, 1), (3, 5, 1), (4, 0, 2), (4, 1, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_factors",
        {"placed": t("placed"), "most": 2, "start": 4, "finish": 5, "factor": S(weekday=True, hour=False, month=False)},
        [(3, 0, 2, 1), (3, 0, 3, 1), (3, 3, 5, 1), (3, 4, 0, 2), (6, 1, 5, 1), (6, 4, 1, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_factors",
        {"placed": t("placed"), "most": 4, "start": 4, "finish": 5, "factor": S(weekday=False, hour=True, month=False)},
        [
            (1, 2, 2, 1),
            (1, 2, 3, 1),
            (1, 3, 5, 1),
            (5, 1, 5, 1),
            (5, 4, 1, 1),
            (12, 0, 3, 1),
            (12, 3, 5, 1),
            (12, 4, 0, 1),
            (23, 0, 2, 1),
            (23, 4, 0, 1),
        ],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_factors",
        {"placed": t("placed"), "most": 1, "start": 4, "finish": 5, "factor": S(weekday=False, hour=False, month=True)},
        [(2, 4, 0, 1), (5, 1, 5, 1), (5, 4, 1, 1), (12, 4, 0, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_factors",
        {
            "placed": t("placed"),
            "most": 1,
            "start": 4,
            "finish": 5,
            "factor": S(weekday=False, hour=False, month=False),
        },
        [(1969, 4, 0, 1), (2001, 1, 5, 1), (2001, 4, 1, 1), (2164, 4, 0, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_groups",
        {"placed": t("placed"), "group": identifier("x0")},
        [(0, 1), (1, 1), (4, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_group_steps",
        {"placed": t("placed"), "most": 2, "start": 4, "finish": 5, "rest": 4, "group": identifier("x0")},
        [(0, 1, 5, 1), (0, 4, 1, 1), (1, 0, 2, 1), (1, 4, 0, 1)],
        (*PLACED,),
        ordered=False,
        note="an object's first event says its group, and 4 is the rest",
    ),
    Case(
        "events/bound_states",
        {"placed": t("placed"), "most": 2},
        [(0, 2), (1, 1), (2, 1), (3, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_gaps",
        {"placed": t("placed"), "most": 3, "edges_us": [1800000000, 7200000001]},
        [(0, 1, 2), (2, 0, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_lengths",
        {"placed": t("placed"), "lasts": [1, 3]},
        [(0, 1), (1, 1), (2, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/bound_starts",
        {"placed": t("placed")},
        [(1969, 12, 3, 23, 1), (2001, 5, 6, 5, 1), (2164, 2, 3, 12, 1)],
        (*PLACED,),
        ordered=False,
    ),
    Case(
        "events/check_groups",
        {"release": t("so urce"), "object": column(WHO, "r"), "groups": [column(WARD, "r")]},
        [(2,)],
        SOURCE,
        note="one has three values, one a value and NULL",
    ),
    Case("events/count_objects", {"events": t("split")}, [(3,)], (*SPLIT,)),
    Case(
        "events/list_pairs",
        {"placed": t("placed")},
        [
            (0, 2, 1, datetime(1969, 12, 31, 23, 0), 3),
            (0, 3, 1, datetime(1969, 12, 31, 23, 0), 3),
            (1, None, 1, datetime(1969, 12, 31, 23, 0), 3),
            (2, 2, 1, datetime(1969, 12, 31, 23, 0), 3),
            (2, 3, 1, datetime(1969, 12, 31, 23, 0), 3),
            (3, None, 2, datetime(1969, 12, 31, 23, 0), 3),
        ],
        (*PLACED,),
    ),
    Case(
        "events/plant_object",
        {"planted": OUT, "placed": t("placed"), "object": t("bits"), "factors": names("x0")},
        [
            (1, 1, 0, datetime(2164, 2, 29, 12, 0), None, 4),
            (1, 2, 3, datetime(2164, 2, 29, 12, 30), 1800000000, 5),
            (2, 1, 0, datetime(1969, 12, 31, 23, 0), None, 1),
            (2, 2, 2, datetime(1970, 1, 1, 1, 0), 7200000000, 1),
            (2, 3, 2, datetime(1970, 1, 1, 1, 0), 0, 2),
            (2, 4, 3, datetime(1970, 3, 1, 1, 0), 5097600000000, 3),
            (3, 1, 1, datetime(2001, 5, 5, 5, 5, 5), None, 0),
            (4, 1, 0, datetime(2001, 1, 1, 0, 0), None, 0),
        ],
        (
            *PLACED,
            *ENDS,
            "INSERT INTO bits VALUES (4, 1, 0, '2001-01-01', NULL)",
        ),
        read=READ + "object, position",
    ),
    Case(
        "events/take_objects",
        {
            "taken": OUT,
            "placed": t("placed"),
            "low": literal("00000000"),
            "high": literal("80000000"),
            "seed": literal("it's"),
            "factors": [],
        },
        [
            (2, 1, 0, datetime(1969, 12, 31, 23, 0), None),
            (2, 2, 2, datetime(1970, 1, 1, 1, 0), 7200000000),
            (2, 3, 2, datetime(1970, 1, 1, 1, 0), 0),
            (2, 4, 3, datetime(1970, 3, 1, 1, 0), 5097600000000),
        ],
        (*PLACED,),
        read=READ + "object, position",
    ),
    Case(
        "events/list_objects",
        {"source": t("made"), "owner": column("object", "s")},
        [("1",), ("2",)],
        (
            "CREATE TABLE made (object BIGINT, state INTEGER)",
            "INSERT INTO made VALUES (1, 7), (2, NULL), (1, 8), (NULL, 9)",
        ),
        ordered=False,
    ),
    Case(
        "events/read_sets",
        {"members": t("members"), "ranked": t("ranked"), "coded": t("coded")},
        [(1, "0", 2), (1, "3", 2), (2, "11", 1)],
        (*MEMBERS, *RANKED, *CODED),
    ),
    Case(
        "events/count_owners",
        {"split": t("split"), "keyed": t("keyed"), "ranked": t("ranked"), "members": t("those")},
        [(1, 1), (2, 1)],
        (
            *SPLIT,
            *KEYED,
            *RANKED,
            "CREATE TABLE those (object BIGINT)",
            "INSERT INTO those VALUES (2), (2), (9)",
        ),
    ),
    Case(
        "events/join_clusters",
        {
            "clusters": t("clusters"),
            "banded": t("banded"),
            "signed": t("signed"),
            "leaders": 2,
            "hashes": names("h0", "h1"),
        },
        [(1, 1), (3, 2), (4, 1)],
        (
            *CLUSTERS,
            "CREATE TABLE banded (set_number BIGINT, band INTEGER, content TEXT)",
            "INSERT INTO banded VALUES (1, 0, '5'), (2, 0, '5'), (3, 0, '5'), (3, 1, '7'), (2, 1, '7'), (4, 1, '6'), (1, 1, '6'), (5, 0, '9')",
            "CREATE TABLE signed (set_number BIGINT, h0 BIGINT, h1 BIGINT)",
            "INSERT INTO signed VALUES (1, 5, 6), (2, 5, 7), (3, 5, 7), (4, 1, 6), (5, 9, 9)",
        ),
        read="SELECT * FROM clusters ORDER BY set_number",
    ),
    Case(
        "events/compare_lengths",
        {"left_split": t("split"), "right_split": t("other"), "width": 0.25},
        [(0, 1, 2, 1), (0, 2, 1, 0), (0, 3, 1, 0), (1, -17, 1, 0), (1, -3, 1, 1), (1, 2, 1, 0)],
        (
            *SPLIT,
            "CREATE TABLE other AS SELECT * FROM split WHERE part = 1 AND position = 2",
        ),
    ),
    Case(
        "events/compare_pairs",
        {"left_split": t("split"), "right_split": t("other"), "top": 2},
        [(0.75, 1, 2)],
        (
            *SPLIT,
            "INSERT INTO split VALUES (9, 9, 1, 3, NULL, NULL, 1, 0, 0)",
            "CREATE TABLE other AS SELECT * FROM split WHERE position = 1 AND part = 2",
        ),
    ),
    Case(
        "events/compare_pairs",
        {"left_split": t("split"), "right_split": t("other"), "top": 20},
        [(1.0, 0, 3)],
        (*SPLIT, "CREATE TABLE other AS SELECT * FROM split WHERE part > 9"),
        note="nothing",
    ),
    Case(
        "events/check_numbers",
        {
            "release": t("made"),
            "object": column("object", "r"),
            "time": column("moment", "r"),
            "place": None,
            "first_time": stamp("2000-01-01"),
            "last_time": stamp("2164-02-29 12:00:01"),
        },
        [(6, 4, 3, 1, 2, 2, 1, 3)],
        (*MADE, "INSERT INTO made VALUES (3, 4, 1, 0, NULL), (NULL, 4, 1, 0, '2001-01-01')"),
    ),
    Case(
        "events/check_numbers",
        {
            "release": t("made"),
            "object": column("object", "r"),
            "time": None,
            "place": column("position", "r"),
            "first_time": None,
            "last_time": None,
        },
        [(5, 2, 2, 1, 0, 0, 1, 3)],
        (*MADE, "INSERT INTO made VALUES (2, 4, 3, 0, NULL)"),
        note="places",
    ),
    Case(
        "events/check_states",
        {
            "release": t("listed"),
            "allowed": t("known"),
            "least": 2,
            "states": [
                S(name=identifier("n0"), release=column("s0", "r"), allowed=column("a b", "a")),
                S(name=identifier("n1"), release=column("s1", "r"), allowed=column("c", "a")),
            ],
        },
        [(4, 2)],
        (
            *LISTED,
            "INSERT INTO listed VALUES (4, NULL, 'out'), (5, NULL, 'out')",
            'CREATE TABLE known ("a b" TEXT, c TEXT)',
            "INSERT INTO known VALUES (NULL, 'out'), (NULL, 'out'), ('8', 'to'), ('8', 'to'), ('', 'out'), ('x', 'x')",
        ),
    ),
    Case(
        "events/fence_gaps",
        {
            "source": t("so urce"),
            "object": column(WHO, "s"),
            "time": column("at", "s"),
        },
        [(14596.482261013358,)],
        (*SOURCE,),
    ),
    Case(
        "events/split_made",
        {"split": OUT, "made": t("made"), "objects": 1, "timed": True, "whole": False},
        [
            (1, 1, 1, 0, datetime(2164, 2, 29, 12, 0), None, 1000000, 3),
            (1, 1, 2, 3, datetime(2164, 2, 29, 12, 0, 1), 1000000, None, None),
            (2, 1, 3, 0, datetime(2164, 3, 29, 12, 0), None, None, None),
        ],
        (*MADE,),
        read=READ + "part, position",
    ),
    Case(
        "events/split_made",
        {"split": OUT, "made": t("made"), "objects": 2, "timed": False, "whole": True},
        [
            (1, 1, 1, 0, datetime(2164, 2, 29, 12, 0), None, 3600000000, 3),
            (1, 1, 2, 3, datetime(2164, 2, 29, 12, 0, 1), 3600000000, 3600000000, 0),
            (1, 1, 3, 0, datetime(2164, 3, 29, 12, 0), 3600000000, None, None),
            (2, 2, 1, 3, datetime(2000, 1, 1, 0, 0), None, None, None),
        ],
        (*MADE,),
        read=READ + "part, position",
        note="an order alone",
    ),
    Case(
        "events/write_events",
        {
            "target": OUT,
            "made": t("made"),
            "listed": t("listed"),
            "columns": [
                S(name=identifier(WHO), value=column("object", "m")),
                S(name=identifier("at"), value=column("moment", "m")),
                S(name=identifier(WARD), value=column("s0", "l")),
            ],
        },
        [
            (1, datetime(2164, 2, 29, 12, 0), "7"),
            (1, datetime(2164, 2, 29, 12, 0, 1), ""),
            (1, datetime(2164, 3, 29, 12, 0), "7"),
            (2, datetime(2000, 1, 1, 0, 0), ""),
        ],
        (*MADE, *LISTED),
        read='SELECT * FROM "o\'u""t"',
    ),
]
