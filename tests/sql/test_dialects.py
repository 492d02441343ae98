"""The tree rewrites, as pairs: what a template says and what the engine gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqldeid.errors import JobError
from sqldeid.sql.dialects import transpile, write
from sqldeid.sql.names import column, identifier, literal, table_name

GRID = "SELECT k, h FROM t CROSS JOIN UNNEST(GENERATE_SERIES(a, b)) AS g(h) WHERE b >= a"


def microseconds(moment: str) -> str:
    """What Postgres is asked for microseconds."""
    return f"CASE WHEN ISFINITE({moment}) THEN CAST(EXTRACT(EPOCH FROM {moment}) * 1000000 AS BIGINT) END"


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
        f"SELECT {microseconds('t')} FROM t",
    ),
    (
        "spark",
        "SELECT EPOCH_US(COALESCE(a, CASE WHEN EPOCH_US(b) IS NULL THEN c END)) FROM t",
        "SELECT UNIX_MICROS(CAST(COALESCE(a, CASE WHEN UNIX_MICROS(CAST(b AS TIMESTAMP_LTZ)) IS NULL THEN c END) "
        "AS TIMESTAMP_LTZ)) FROM t",
    ),
    (
        "postgres",
        "SELECT EPOCH_US(COALESCE(a, EPOCH_US(b))) FROM t",
        f"SELECT {microseconds('COALESCE(a, ' + microseconds('b') + ')')} FROM t",
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


ODD = ["select", "rowid", "unnest", "a b", 'q"', "it's", "\\n", "ü"]
NAMES = st.one_of(st.text(max_size=6), st.sampled_from(ODD))
VALUES = st.one_of(NAMES, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())


@given(NAMES, NAMES, NAMES, VALUES, st.booleans())
def test_names_and_literals_are_written_as_sqlglot_does(a: str, b: str, c: str, value: object, noted: bool) -> None:
    try:
        trees = [identifier(a), column(a), column(a, b), table_name(a), table_name(a, b), table_name(a, b, c)]
        trees.append(literal(value))
    except JobError:  # what no database can hold
        return
    aliased = table_name(a).as_("x", quoted=True, table=True)
    others = [exp.to_identifier(a, quoted=False), exp.Column(this=exp.Star(), table=identifier(b)), aliased]
    for tree in (*trees, *others):
        if noted:
            tree.comments = ["said"]
        for dialect in ("duckdb", "postgres", "spark"):
            assert write(tree, dialect) == tree.sql(dialect=dialect)
