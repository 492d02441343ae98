"""The guard of user SQL, without a database: what it refuses, what it says, and how it names tables."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqldeid.errors import JobError
from sqldeid.sql import bind, outward, parse_expression, parse_query, table_name, tables_of
from sqldeid.sql.allowed import NAMED_FUNCTIONS
from sqldeid.sql.unlike import refuse_unlike
from tests.support import hostile, queries
from tests.support.examples import examples


def resolve(parts: tuple[str, ...]) -> exp.Table:
    """The catalogue of `queries`, in a database of an odd name."""
    known = queries.TABLES.get(tuple(part.casefold() if part.isascii() else part for part in parts))
    known = known or queries.TABLES.get(parts)
    if known is None:
        raise JobError("no such table")
    return table_name('d"b', *known)


@pytest.mark.parametrize("text", hostile.QUERIES)
def test_hostile_queries_are_refused(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(JobError):
        bind(parse_query(text, key="source.query"), resolve)
    assert not caplog.records, "the parser's log would repeat the user's text"


@pytest.mark.parametrize("text", hostile.EXPRESSIONS)
def test_hostile_expressions_are_refused(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(JobError):
        bind(parse_expression(text, key="where"), resolve)
    assert not caplog.records


def test_the_hostile_corpus_is_large() -> None:
    assert len(set(hostile.QUERIES)) >= 120 and len(set(queries.QUERIES)) >= 60


@pytest.mark.parametrize("text", [*hostile.QUERIES, *hostile.EXPRESSIONS])
def test_messages_name_the_key_and_repeat_no_literal(text: str) -> None:
    marked = (
        text.replace("'secret.csv'", "'canary7f3a'").replace("'HOME'", "'canary7f3a'").replace("'x'", "'canary7f3a'")
    )
    for parse in (parse_query, parse_expression):
        try:
            parse(marked, key="tables.p.where")
        except JobError as error:
            assert error.key == "tables.p.where"
            assert error.message.startswith("tables.p.where: ")
            assert "canary7f3a" not in error.message.lower()


@pytest.mark.parametrize("text", queries.QUERIES)
def test_good_queries_are_written_with_quoted_names_and_no_comment(text: str) -> None:
    bound = bind(parse_query(text, key="q"), resolve)
    assert all(name.args["quoted"] for name in bound.find_all(exp.Identifier))
    assert not any(node.comments for node in bound.walk())
    for table in bound.find_all(exp.Table):
        ours = table.name.startswith("sqldeid with ") and not table.db
        assert ours or (table.catalog == 'd"b' and table.db in ("main", "ward"))


@pytest.mark.parametrize("text", queries.EXPRESSIONS)
def test_good_expressions_keep_together(text: str) -> None:
    assert isinstance(bind(parse_expression(text, key="where"), resolve), exp.Paren)


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT * FROM a JOIN s.b ON true, c.s.d", [("a",), ("s", "b"), ("c", "s", "d")]),
        ("WITH x AS (SELECT * FROM a) SELECT * FROM x", [("a",)]),
        ("WITH x AS (SELECT * FROM x) SELECT * FROM x", [("x",)]),
        ("WITH x AS (SELECT 1 AS a) SELECT * FROM main.x", [("main", "x")]),
        ("WITH X AS (SELECT 1 AS a) SELECT * FROM x", []),
        ("WITH y AS (SELECT * FROM x), x AS (SELECT 1 AS a) SELECT * FROM y, x", [("x",)]),
        ("SELECT * FROM (WITH x AS (SELECT 1 AS a) SELECT * FROM x) y, x", [("x",)]),
        ("SELECT * FROM x WHERE a IN (WITH x AS (SELECT 1 AS a) SELECT a FROM x)", [("x",)]),
        ("WITH x AS (SELECT 1 AS a) SELECT a FROM x UNION ALL SELECT a FROM x", []),
        ("SELECT a FROM x UNION ALL (WITH x AS (SELECT 1 AS a) SELECT a FROM x)", [("x",)]),
        ("(WITH x AS (SELECT 1 AS a) SELECT a FROM x) UNION ALL SELECT a FROM x", [("x",)]),
        ("WITH x AS (SELECT 1 AS a) SELECT (SELECT MAX(a) FROM x), EXISTS (FROM y) FROM (FROM z)", [("y",), ("z",)]),
        ("SELECT * FROM a, a", [("a",)]),
        ("SELECT 1", []),
    ],
)
def test_tables_of_knows_where_a_with_is_seen(text: str, tables: list[tuple[str, ...]]) -> None:
    assert sorted(tables_of(parse_query(text, key="q"))) == sorted(tables)


def test_bind_writes_the_catalogues_table_under_the_users_name() -> None:
    tree = parse_query("WITH patients AS (SELECT * FROM PATIENTS) SELECT p.id FROM patients p, ward.patients", key="q")
    assert bind(tree, resolve).sql("duckdb") == (
        'WITH "sqldeid with 0" AS (SELECT * FROM "d""b"."main"."patients" AS "PATIENTS") '
        'SELECT "p"."id" FROM "sqldeid with 0" AS "p", "d""b"."ward"."patients" AS "patients"'
    )


def test_bind_leaves_the_users_tree_alone() -> None:
    tree = parse_query("SELECT * FROM patients /* c */", key="q")
    before = tree.sql("duckdb")
    bind(tree, resolve)
    assert tree.sql("duckdb") == before


def test_bind_refuses_a_tree_that_reads_more_than_it_says() -> None:
    tree = parse_query("SELECT * FROM patients", key="q")
    name = tree.find(exp.Table).this
    assert name is not None

    def two(parts: tuple[str, ...]) -> exp.Table:
        return exp.Table(this=exp.Anonymous(this="read_csv", expressions=[exp.Literal.string("secret.csv")]))

    with pytest.raises(JobError, match="cannot be written anew"):
        bind(tree, two)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT id, UPPER(name) FROM patients WHERE id > 1", []),
        ("SELECT id FROM patients UNION ALL SELECT stay FROM stays", []),
        ("SELECT id FROM patients UNION SELECT stay FROM stays", ["UNION"]),
        ("SELECT id FROM patients EXCEPT SELECT stay FROM stays", ["EXCEPT"]),
        ("SELECT DISTINCT id FROM patients", ["DISTINCT"]),
        ("SELECT id FROM patients ORDER BY id LIMIT 2 OFFSET 1", ["LIMIT", "OFFSET"]),
        ("SELECT sex, COUNT(*) FROM patients GROUP BY sex", ["GROUP BY", "function count"]),
        ("SELECT RANK() OVER (ORDER BY id) FROM patients", ["window function"]),
        ("SELECT id FROM patients JOIN stays ON id = patient", ["join"]),
        ("SELECT id FROM patients, stays", ["join"]),
        ("SELECT id FROM patients WHERE id IN (SELECT patient FROM stays)", ["subquery"]),
        ("SELECT id FROM patients WHERE EXISTS (FROM stays)", ["subquery"]),
        ("SELECT id FROM patients WHERE id > ALL (SELECT patient FROM stays)", ["subquery"]),
        ("SELECT (SELECT MAX(id) FROM patients) FROM patients", ["function max", "subquery"]),
        ("SELECT * FROM (SELECT id FROM patients)", []),
        ("WITH x AS (SELECT id FROM patients) FROM x", []),
    ],
)
def test_outward_names_what_looks_across_rows(text: str, names: list[str]) -> None:
    found = outward(parse_query(text, key="q"))
    assert [n for n in found if n != "window function" or n in names] == found
    assert set(names) <= set(found) and (names or not found)


_WORDS = [
    *("SELECT", "FROM", "WHERE", "WITH", "AS", "(", ")", ",", "*", "JOIN", "ON", "UNION ALL", "IN", "EXISTS", "AND"),
    *("patients", '"secret.csv"', "'secret.csv'", "frame", "x", "id", "name", "1", "true", ".", ";", "--", "/*", "*/"),
    *(
        "read_csv(",
        "getenv(",
        "'a'",
        "$$",
        "E'a'",
        "LATERAL",
        "TABLE",
        "VALUES",
        "LIMIT",
        "ORDER BY",
        "COPY",
        "::",
        "?",
    ),
]


@given(st.lists(st.sampled_from(_WORDS), max_size=14).map(" ".join))
def test_no_mixture_of_words_gets_past(text: str) -> None:
    """Whatever parses reads catalogue tables only, and says so in its text."""
    for parse in (parse_query, parse_expression):
        try:
            bound = bind(parse(text, key="q"), resolve)
        except JobError:
            continue
        written = bound.sql("duckdb")
        assert "read_csv(" not in written.lower() and "getenv(" not in written.lower()
        for table in bound.find_all(exp.Table):
            assert table.name.startswith("sqldeid with ") or table.catalog == 'd"b'


@given(st.text(max_size=40))
def test_no_text_makes_the_guard_fall_over(text: str) -> None:
    for parse in (parse_query, parse_expression):
        try:
            parse(text, key="q")
        except JobError as error:
            assert error.code == 2


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20))
def test_literals_and_names_survive_whatever_they_hold(value: str) -> None:
    literal = "'" + value.replace("'", "''") + "'"
    tree = bind(parse_expression(f"name = {literal}", key="where"), resolve)
    assert [node.this for node in tree.find_all(exp.Literal)] == [value]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM patients UNPIVOT (v FOR n IN (name, code))", ["UNPIVOT"]),
        ("SELECT * FROM patients PIVOT (MAX(id) FOR sex IN ('f'))", ["PIVOT", "function max"]),
        ("SELECT UNNEST(STRING_SPLIT(name, ' ')) AS w FROM patients", ["UNNEST"]),
        ("SELECT SUM(id) OVER w FROM patients WINDOW w AS (ORDER BY id)", ["window function", "function sum"]),
        ("SELECT id, LIST(id ORDER BY id)[1] FROM patients GROUP BY id", ["GROUP BY", "function array_agg"]),
        ("SELECT STRING_SPLIT(name, ' ')[1], {'a': id}.a, MAP {'k': id}['k'] FROM patients", []),
    ],
)
def test_what_is_new_looks_across_rows_or_does_not(text: str, found: list[str]) -> None:
    assert sorted(outward(parse_query(text, key="q"))) == sorted(found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * FROM patients ORDER BY ALL", "ORDER BY ALL is refused; name the columns"),
        ("UNPIVOT patients ON a INTO NAME n VALUE v", "write it behind a table"),
        ("SELECT LIST_TRANSFORM([1], x -> x) FROM patients", "over a list's items is not checked"),
        ("SELECT * FROM patients PIVOT (MAX(id) FOR sex IN (name))", "holds literals"),
        ("SELECT ARRAY_AGG(id) FROM patients", "without ORDER BY"),
        ("SELECT main.patients.id FROM patients", "write table.column"),
        ("SELECT getenv('HOME') FROM patients", "it reads what is not in the tables"),
        ("SELECT * FROM patients, UNNEST([1])", "refused"),
        ("SELECT name.upper() FROM patients", "write it as f"),
    ],
)
def test_each_refusal_has_its_reason(text: str, reason: str) -> None:
    with pytest.raises(JobError) as refused:
        parse_query(text, key="q")
    assert reason in refused.value.message or ("write it as f" in reason and "f(x)" in refused.value.message)


_PIECES = st.sampled_from(
    """patients stays id name sex code [ ] { } ( ) : , . ' 'secret.csv' "secret.csv" 1 2 * PIVOT UNPIVOT FOR IN AS ON
    USING SELECT FROM WHERE UNNEST( MAP LIST( STRING_SPLIT( getenv( read_text( read_csv( COPY ATTACH PRAGMA SET
    INSTALL LOAD
    current_user rowid -> := :: || = OVER WINDOW w QUALIFY ORDER BY INCLUDE NULLS MAX( ) ) ) 'HOME' VALUES LATERAL WITH
    macro( query( query_table( COLUMNS( nextval( write_log( checkpoint( ; -- /* */ $$ $1 ?""".split()
)


@settings(max_examples=examples(1500), deadline=None)
@given(st.lists(_PIECES, min_size=1, max_size=14), st.sampled_from(["", "SELECT ", "SELECT * FROM patients ", "FROM "]))
def test_no_heap_of_words_reads_what_is_no_table(pieces: list[str], start: str) -> None:
    """Whatever passes reads tables of the catalogue alone, calls listed functions alone, and is one query."""
    try:
        bound = bind(parse_query(start + " ".join(pieces), key="q"), resolve)
    except JobError:
        return
    for table in bound.find_all(exp.Table):
        assert table.catalog == 'd"b' or table.name.startswith("sqldeid with ")
    for called in bound.find_all(exp.Anonymous):
        assert called.name.lower() in NAMED_FUNCTIONS
    text = bound.sql("duckdb").lower()
    forbidden = (
        "getenv",
        "read_",
        "copy ",
        "attach ",
        "pragma ",
        "install ",
        "query(",
        "write_log",
        "current_user",
        "rowid",
    )
    outside = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "", text)
    assert not [word for word in forbidden if word in outside]


_NEW = [t for t in queries.QUERIES if re.search(r"\[|\{|PIVOT|UNNEST|WINDOW|LIST|ARRAY_|STRUCT_|MAP", t)]


@pytest.mark.parametrize("engine", ["Postgres", "Spark"])
@pytest.mark.parametrize("text", _NEW)
def test_what_is_duckdbs_alone_is_refused_by_name_elsewhere(text: str, engine: str) -> None:
    assert len(_NEW) > 12
    with pytest.raises(JobError, match=f"is not the same on {engine} as in DuckDB"):
        refuse_unlike(bind(parse_query(text, key="q"), resolve), engine, key="q")
