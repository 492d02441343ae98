"""Names and values on their way into SQL: always quoted, never text."""

from __future__ import annotations

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sqldeid.errors import JobError
from sqldeid.sql import column, identifier, literal, parse_table, render, table_name
from sqldeid.sql.names import refuse_same_names
from sqldeid.sql.templates import UnsafeSqlError

HOSTILE = [
    "select",
    'we"ird; DROP TABLE x; --',
    "ünïcode",
    "a b",
    "a'b",
    "a`b",
    "a\\b",
    "a\nb",
    "😀",
    ".",
    "{{ x }}",
    "$1",
]
names = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=20)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_quoted(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    assert identifier(name).sql("duckdb") == quoted
    assert table_name(name, name, name).sql("postgres") == f"{quoted}.{quoted}.{quoted}"
    assert column(name, name).sql("duckdb") == f"{quoted}.{quoted}"
    assert identifier(name).sql("spark") == "`" + name.replace("`", "``") + "`"


@given(st.lists(names, min_size=1, max_size=3))
def test_parse_table_reads_what_table_name_writes(parts: list[str]) -> None:
    assert parse_table(table_name(*parts).sql("duckdb")) == tuple(parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("patients", ("patients",)),
        ("mimiciii.patients", ("mimiciii", "patients")),
        ('a."b.c".d', ("a", "b.c", "d")),
        ("main.order", ("main", "order")),
    ],
)
def test_parse_table(text: str, parts: tuple[str, ...]) -> None:
    assert parse_table(text) == parts


@pytest.mark.parametrize(
    "text", ["", "a b", "a..b", ".a", "a.", "a.b.c.d", "'a'", "e'a'", "$$a$$", "1a", "a;", "a(b)", '"a', "a.'b'"]
)
def test_what_is_no_table_name_is_refused(text: str) -> None:
    with pytest.raises(JobError, match=r"tables\.p\.source"):
        parse_table(text, key="tables.p.source")


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_no_database_holds_are_refused(name: str) -> None:
    with pytest.raises(JobError):
        identifier(name)


@pytest.mark.parametrize("value", ["a\0b", float("nan"), float("inf"), float("-inf")])
def test_values_sql_cannot_hold_are_refused(value: str | float) -> None:
    with pytest.raises(JobError):
        literal(value)


def test_names_equal_but_for_case_are_refused() -> None:
    refuse_same_names(["age", "sex", "AGE2"], what="columns")
    with pytest.raises(JobError, match='"age" and "AGE"'):
        refuse_same_names(["age", "sex", "AGE"], what="columns")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "NULL"), (True, "TRUE"), (3, "3"), (-3, "-3"), ("it's", "'it''s'"), ("a\\n", "'a\\n'"), (0.1, "0.1")],
)
def test_literals(value: str | int | float | None, text: str) -> None:
    assert literal(value).sql("duckdb") == text


@pytest.mark.parametrize(
    "unsafe", ["people", "people; DROP TABLE x", b"x", ["x"], None, float("nan"), jinja2.Template("")]
)
def test_render_lets_no_plain_text_through(unsafe: object) -> None:
    with pytest.raises(UnsafeSqlError):
        render("engine/drop_table", table=unsafe)


def test_render_asks_for_every_parameter() -> None:
    with pytest.raises(jinja2.UndefinedError, match="table"):
        render("engine/drop_table")


def test_render_writes_for_other_engines() -> None:
    grouped = exp.Table(this=identifier("a`b"))
    assert render("tables/verify/count_sizes", "postgres", grouped=grouped).startswith(
        "SELECT n AS size, COUNT(*) AS classes"
    )
    assert "`a``b`" in render("tables/verify/count_sizes", "spark", grouped=grouped)


def test_a_template_for_duckdb_alone_is_not_written_for_others() -> None:
    with pytest.raises(jinja2.TemplateNotFound):
        render("engine/close_access", "postgres")
