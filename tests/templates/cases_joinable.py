"""Cases of the templates that compare releases of one job."""

from __future__ import annotations

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import ALL_OUT, OUT, Case

A, B, FOLDED = table_name("ta ble"), table_name("select"), table_name("fol ded")
SETUP = (
    'CREATE TABLE "ta ble" ("x y" VARCHAR(20), "n" INTEGER)',
    """INSERT INTO "ta ble" VALUES ('it''s', 1), ('it''s', 1), ('😀', NULL), (NULL, 2)""",
    'CREATE TABLE "select" ("X Y" VARCHAR(20), "n" BIGINT)',
    """INSERT INTO "select" VALUES ('it''s', 1), (NULL, 2), (NULL, 2), ('it', 1)""",
)
FOLDED_SETUP = (
    'CREATE TABLE "fol ded" (c0 VARCHAR(20), "c 1" VARCHAR(20), here_n BIGINT, there_n BIGINT)',
    """INSERT INTO "fol ded" VALUES ('it''s', '1', 2, 1), ('it', '1', 0, 1), ('😀', NULL, 1, 0), (NULL, '2', 1, 2)""",
)
NAMES = [identifier("c0"), identifier("c 1")]
PAIR = {
    "folded": OUT,
    "here": A,
    "there": B,
    "columns": [
        {"name": identifier("c0"), "here": column("x y", "r"), "there": column("X Y", "r")},
        {"name": identifier("c 1"), "here": column("n", "r"), "there": column("n", "r")},
    ],
}
MATCHES = {
    "folded": FOLDED,
    "here_k": 2,
    "there_k": 3,
    "sets": [{"number": 0, "columns": NAMES}, {"number": 1, "columns": NAMES[:1]}, {"number": 7, "columns": NAMES[1:]}],
}
NONE = (FOLDED_SETUP[0],)

CASES = [
    Case(
        "run/fold_pair",
        PAIR,
        [("it", 1, 0, 1), ("it's", 1, 2, 1), ("😀", None, 1, 0), (None, 2, 1, 2)],
        SETUP,
        read='SELECT * FROM "o\'u""t"',
        ordered=False,
    ),
    Case(
        "run/count_matches",
        MATCHES,
        [(0, 3, 3, 3, 2, 1, 1, 0.5), (1, 3, 3, 3, 2, 1, 1, 0.5), (7, 3, 4, 3, 2, 2, 1, 0.75)],
        FOLDED_SETUP,
    ),
    Case(
        "run/count_matches",
        {**MATCHES, "sets": MATCHES["sets"][:1]},
        [(0, 0, 0, 0, 0, 0, 0, 0.0)],
        NONE,
        note="of empty releases",
    ),
    Case(
        "run/measure_steps",
        {"lengths": OUT, "series": A},
        [(1.0,), (4.0,)],
        (
            'CREATE TABLE "ta ble" (person_number BIGINT, step BIGINT, variable VARCHAR(9), value DOUBLE PRECISION)',
            "INSERT INTO \"ta ble\" VALUES (1, 0, 'a', 1), (1, 3, 'a', NULL), (1, 3, 'b', 2), (2, 0, 'a', 1)",
        ),
        read=ALL_OUT + "1",
    ),
]
