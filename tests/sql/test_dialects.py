"""The tree rewrites, as pairs: what a template says and what the engine gets."""

import pytest
from sqlglot.errors import SqlglotError

from sqldeid.sql.dialects import transpile

GRID = "SELECT k, h FROM t CROSS JOIN UNNEST(GENERATE_SERIES(a, b)) AS g(h) WHERE b >= a"

PAIRS = [
    ("duckdb", GRID, GRID),
    ("postgres", GRID, "SELECT k, h FROM t CROSS JOIN LATERAL GENERATE_SERIES(a, b) AS g(h) WHERE b >= a"),
    ("spark", GRID, "SELECT k, h FROM t LATERAL VIEW EXPLODE(SEQUENCE(a, b)) g AS h WHERE b >= a"),
    (
        "postgres",
        "SELECT h FROM UNNEST(GENERATE_SERIES(1, 3)) AS g(h)",
        "SELECT h FROM GENERATE_SERIES(1, 3) AS g(h)",
    ),
    (
        "postgres",
        "SELECT (SELECT COUNT(*) FROM t CROSS JOIN UNNEST(GENERATE_SERIES(t.a, t.b)) AS g(h)) AS n",
        "SELECT (SELECT COUNT(*) FROM t CROSS JOIN LATERAL GENERATE_SERIES(t.a, t.b) AS g(h)) AS n",
    ),
    ("postgres", "SELECT x FROM t CROSS JOIN UNNEST(l) AS g(x)", "SELECT x FROM t CROSS JOIN UNNEST(l) AS g(x)"),
    (
        "spark",
        "SELECT QUANTILE_CONT(x, 5e-1), QUANTILE_DISC(x + 1, 25e-2) FILTER (WHERE x > 0) FROM t",
        "SELECT PERCENTILE_CONT(5e-1) WITHIN GROUP (ORDER BY x), "
        "PERCENTILE_DISC(25e-2) WITHIN GROUP (ORDER BY x + 1) FILTER(WHERE x > 0) FROM t",
    ),
    (
        "postgres",
        "SELECT QUANTILE_CONT(x, 5e-1) FROM t",
        "SELECT PERCENTILE_CONT(5e-1) WITHIN GROUP (ORDER BY x) FROM t",
    ),
    (
        "postgres",
        "SELECT EXTRACT(YEAR FROM EXTRACT(SECOND FROM a)), YEAR(b), EXTRACT(EPOCH FROM c) FROM t",
        "SELECT CAST(EXTRACT(YEAR FROM CAST(FLOOR(EXTRACT(SECOND FROM a)) AS BIGINT)) AS BIGINT), "
        "CAST(EXTRACT(YEAR FROM b) AS BIGINT), EXTRACT(EPOCH FROM c) FROM t",
    ),
    (
        "postgres",
        "SELECT AVG(x), AVG(x) FILTER (WHERE y > 1), AVG(x) OVER (PARTITION BY y) FROM t",
        "SELECT CAST(AVG(x) AS DOUBLE PRECISION), CAST(AVG(x) FILTER(WHERE y > 1) AS DOUBLE PRECISION), "
        "CAST(AVG(x) OVER (PARTITION BY y) AS DOUBLE PRECISION) FROM t",
    ),
    (
        "postgres",
        "SELECT EPOCH_US(t) FROM t",
        "SELECT CAST(EXTRACT(EPOCH FROM t) * 1000000 AS BIGINT) FROM t",
    ),
    *(
        (
            dialect,
            "SELECT EXTRACT(DAYOFWEEK FROM a), EXTRACT(DAYOFYEAR FROM b) FROM t",
            "SELECT CAST(EXTRACT(DOW FROM a) AS BIGINT), CAST(EXTRACT(DOY FROM b) AS BIGINT) FROM t",
        )
        for dialect in ("postgres", "spark")
    ),
    ("postgres", 'SELECT "we""ird" FROM "a b"', 'SELECT "we""ird" FROM "a b"'),
    (
        "spark",
        "SELECT AVG(x), AVG(DISTINCT x), AVG(x) FILTER (WHERE y > 1), a / b FROM t",
        "SELECT AVG(CAST(x AS DOUBLE)), AVG(DISTINCT CAST(x AS DOUBLE)), AVG(CAST(x AS DOUBLE)) FILTER(WHERE y > 1), "
        "CAST(a AS DOUBLE) / b FROM t",
    ),
    ("spark", 'SELECT "we`ird" FROM "a b"', "SELECT `we``ird` FROM `a b`"),
    (
        "spark",
        "(WITH a AS (SELECT x FROM t) SELECT x FROM (WITH b AS (SELECT x FROM a) SELECT x FROM b))",
        "(WITH a AS (SELECT x FROM t) SELECT x FROM (WITH b AS (SELECT x FROM a) SELECT x FROM b))",
    ),
    ("postgres", r"SELECT 'it''s \n'", r"SELECT 'it''s \n'"),
    ("spark", r"SELECT 'it''s \n'", r"SELECT 'it\'s \\n'"),
]


@pytest.mark.parametrize(("dialect", "template", "expected"), PAIRS)
def test_pairs(dialect: str, template: str, expected: str) -> None:
    assert transpile(template, dialect) == expected


def test_what_an_engine_has_not_is_an_error() -> None:
    with pytest.raises(SqlglotError):
        transpile("SELECT * FROM a POSITIONAL JOIN", "postgres")


def test_an_unknown_engine_is_an_error() -> None:
    with pytest.raises(KeyError):
        transpile("SELECT 1", "oracle")
