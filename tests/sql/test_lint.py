"""The lint of templates: each rule fires on the smallest template that breaks it, and on no other."""

from __future__ import annotations

import pytest

from sqldeid.sql.lint import lint, lint_collection, lint_kept

HEAD = """{#- Count rows.
    parameters  t: table · c: identifier
    returns     n BIGINT
    grain       one row
    source      issue 2 -#}
"""
DUCKDB_HEAD = HEAD.replace("    parameters", "    engine duckdb — the search always runs in DuckDB\n    parameters")
KEPT_HEAD = HEAD.replace(" -#}", "\n    kept        at once — read twice -#}")
MADE = "CREATE TEMPORARY TABLE {{ t }} AS SELECT 1 AS n"
SOUND = HEAD + "SELECT COUNT(*) AS n FROM {{ t }}\n"


def portable(sql: str) -> list[str]:
    return lint("engine/count_rows", HEAD + sql)


def test_a_sound_template_has_no_complaint() -> None:
    assert lint("engine/count_rows", SOUND) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {% list c in columns %}{{ c.name }}{% endlist %}, {{ others }} FROM {{ t }}",
        "SELECT 1 AS n WHERE {% list c in columns by AND %}{{ c }} = 1{% also d in others %}{{ d }} = 2{% endlist %}",
        "{% list t in tables by UNION ALL %}SELECT {{ loop.index }} AS n FROM {{ t }}{% endlist %}",
        "SELECT {% if c is not none and k > 1 or k == 'x' %}{{ c }}{% else %}NULL{% endif %} FROM {{ t }}",
        "SELECT 1 AS n {# a filter | upper, a decimal 1.5, QUALIFY #}",
        "SELECT 'QUALIFY 1.5; HASH(x)' AS \"mode(\" -- LOG(x)",
        "SELECT x / 3600e0, 2.5e-1, LN(x), DATE_DIFF('microsecond', a, b) / 3600000000e0 FROM {{ t }}",
        "SELECT MAX(v) OVER (PARTITION BY k, grp ORDER BY a RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t",
        "SELECT h FROM {{ t }} CROSS JOIN UNNEST(GENERATE_SERIES(a, b)) AS g(h) WHERE b >= a",
        "SELECT STRING_AGG(x, ',' ORDER BY x NULLS LAST), QUANTILE_CONT(x, 5e-1) FROM {{ t }} GROUP BY y",
        "SELECT SUBSTR(x, 1, a), first, last, mode, log, range FROM {{ t }} GROUP BY a, b",
    ],
)
def test_sound_forms_have_no_complaint(sql: str) -> None:
    assert portable(sql) == []


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT 1.5", "decimal"),
        ("SELECT HASH(x)", "HASH"),
        ("SELECT PERCENTILE_CONT(x, 5e-1)", "PERCENTILE_CONT"),
        ("SELECT PERCENTILE_DISC(5e-1) WITHIN GROUP (ORDER BY x)", "WITHIN GROUP"),
        ("SELECT LIST(x ORDER BY x)", "LIST"),
        ("SELECT ARRAY_AGG(x ORDER BY y)", "ARRAY_AGG"),
        ("SELECT LAG(x) IGNORE NULLS OVER (ORDER BY y)", "IGNORE NULLS"),
        ("SELECT LAG(x IGNORE NULLS) OVER (ORDER BY y)", "IGNORE NULLS"),
        ("SELECT * FROM a ASOF JOIN b USING (x)", "ASOF"),
        ("SELECT x, COUNT(*) FROM t GROUP BY ALL", "GROUP BY ALL"),
        ("SELECT x, COUNT(*) FROM t group\n  by all", "GROUP BY ALL"),
        ("SELECT * EXCLUDE (x) FROM t", "EXCLUDE"),
        ("SELECT x FROM t QUALIFY y = 1", "QUALIFY"),
        ("SELECT ANY_VALUE(x)", "ANY_VALUE"),
        ("SELECT ARG_MAX(x, y)", "ARG_MAX"),
        ("SELECT max_by(x, y)", "MAX_BY"),
        ("SELECT MODE(x)", "MODE"),
        ("SELECT TRY_CAST(x AS INT)", "TRY_CAST"),
        ("SELECT LOG(x)", "LOG"),
        ("SELECT LOG10(x)", "LOG10"),
        ("SELECT EXTRACT(DOW FROM x)", "EXTRACT(DOW"),
        ("SELECT EXTRACT(EPOCH FROM x)", "EXTRACT(EPOCH"),
        ("SELECT EPOCH(x)", "EPOCH"),
        ("SELECT DATE_DIFF('hour', a, b)", "DATE_DIFF"),
        ("SELECT DATE_DIFF('day', a, b)", "DATE_DIFF"),
        ("SELECT LEFT(x, -1)", "LEFT"),
        ("SELECT SUBSTRING(x, -2, 1)", "SUBSTRING"),
        ("SELECT ROUND(x, 1)", "ROUND"),
        ("WITH a AS MATERIALIZED (SELECT 1) SELECT * FROM a", "AS MATERIALIZED"),
        ("WITH a AS NOT MATERIALIZED (SELECT 1) SELECT * FROM a", "AS NOT MATERIALIZED"),
        ("SELECT * FROM RANGE(3)", "RANGE"),
        ("SELECT * FROM GENERATE_SERIES(1, 3)", "GENERATE_SERIES"),
        ("SELECT CAST(x AS HUGEINT)", "HUGEINT"),
        ("SELECT FIRST(x ORDER BY y)", "FIRST"),
        ("SELECT LAST(x)", "LAST"),
        ("SELECT x::INTEGER", "::"),
        ("SELECT x FROM a JOIN b ON a.x IS NOT DISTINCT FROM b.x", "IS NOT DISTINCT FROM"),
        ("SELECT x[1]", "["),
        ("SELECT { 'a': 1 }", "{"),
        ("SELECT SKEWNESS(x)", "SKEWNESS"),
    ],
)
def test_what_engines_read_differently_is_refused_unless_the_template_is_for_one(sql: str, word: str) -> None:
    assert any(word in complaint for complaint in portable(sql))
    assert lint("engine/count_rows.duckdb", DUCKDB_HEAD + sql) == []


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT {{ c | upper }}", "Filter"),
        ("SELECT {{ c ~ t }}", "Concat"),
        ("SELECT {{ c + t }}", "Add"),
        ("SELECT {{ c % t }}", "Mod"),
        ("SELECT {{ c.sql() }}", "Call"),
        ("SELECT {{ 'x' }}", "text constant"),
        ("SELECT {{ c if c else 'x' }}", "text constant"),
        ("SELECT {{ c['x'] }}", "Getitem"),
        ("{% for x in ['a', 'b'] %}{{ x }}{% endfor %}", "text constant"),
        ("{% macro m() %}x{% endmacro %}SELECT 1", "Macro"),
        ("{% set x %}DROP{% endset %}SELECT {{ x }}", "AssignBlock"),
        ("{% set x = c %}SELECT {{ x }}", "Assign"),
        ("{% call m() %}x{% endcall %}", "CallBlock"),
        ("{% filter upper %}x{% endfilter %}", "FilterBlock"),
        ("{% include 'x' %}", "Include"),
        ("{% import 'x' as y %}", "Import"),
        ("{% extends 'x' %}", "Extends"),
        ("{% block x %}{% endblock %}", "Block"),
        ("{% with x = c %}{% endwith %}", "With"),
        ("SELECT {% if %}", "Jinja cannot read"),
        ("SELECT {% for c in columns %}{{ c }}{% if not loop.last %}, {% endif %}{% endfor %}", "loop.last"),
        ("SELECT {% for c in columns %}{% if loop . first %}{% else %}, {% endif %}{{ c }}{% endfor %}", "loop.first"),
        ("SELECT {% list c in columns by ; %}{{ c }}{% endlist %}", "Jinja cannot read"),
        ("SELECT {% list c in columns by DROP %}{{ c }}{% endlist %}", "a list is separated by one of AND"),
        ("SELECT {% list c in columns | upper %}{{ c }}{% endlist %}", "Filter"),
        ("SELECT '{{ c }}'", "inside quotes"),
        ("SELECT 'a {{ c }} b'", "inside quotes"),
        ('SELECT "{{ c }}"', "inside quotes"),
        ("SELECT 'a", "quote is not closed"),
        ("SELECT 1; SELECT 2", "semicolon"),
        ("SELECT 1;", "semicolon"),
        ("SELECT RANDOM()", "RANDOM"),
        ("SELECT CURRENT_DATE", "CURRENT_DATE"),
        ("SELECT CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
        ("SELECT NOW()", "NOW"),
        ("SELECT UUID()", "UUID"),
        ("SELECT STRING_AGG(x, ',') FROM t", "STRING_AGG without ORDER BY"),
    ],
)
def test_what_no_template_may_hold(sql: str, word: str) -> None:
    for complaints in (portable(sql), lint("engine/count_rows.duckdb", DUCKDB_HEAD + sql)):
        assert any(word in complaint for complaint in complaints), complaints


@pytest.mark.parametrize("key", ["parameters", "returns", "grain", "source"])
def test_the_head_is_whole(key: str) -> None:
    without = "\n".join(line for line in SOUND.splitlines() if not line.strip().startswith(key))
    if key == "source":
        without = without.replace("one row\n", "one row -#}\n")
    assert any(key in complaint for complaint in lint("engine/count_rows", without))


@pytest.mark.parametrize(
    ("name", "source", "word"),
    [
        ("engine/count_rows", "SELECT 1", "comment"),
        ("engine/count_rows", SOUND.replace("Count rows.", ""), "purpose"),
        ("engine/count_rows", SOUND + "\n" * 60, "lines"),
        ("tables/rows", SOUND, "named"),
        ("count_rows", SOUND, "named"),
        ("engine/count_rows.oracle", SOUND, "named"),
        ("tables/Count_rows", SOUND, "named"),
        ("engine/count_rows.duckdb", SOUND, "engine duckdb"),
        ("engine/count_rows", DUCKDB_HEAD + "SELECT 1", "engine"),
        ("engine/count_rows.postgres", DUCKDB_HEAD + "SELECT 1", "engine postgres"),
        ("engine/count_rows", KEPT_HEAD + MADE, "kept.toml"),
    ],
)
def test_name_head_and_length(name: str, source: str, word: str) -> None:
    assert any(word in complaint for complaint in lint(name, source))


EACH_HEAD = DUCKDB_HEAD.replace("engine duckdb", "engine each")
ASKING = "SELECT {% if on.spark %}XXHASH64(1){% elif on.duckdb %}HASH(1){% else %}1{% endif %}"


def test_only_a_template_for_each_engine_asks_which_it_is() -> None:
    assert lint("engine/count_rows.each", EACH_HEAD + ASKING) == []
    assert any("on.<engine>" in complaint for complaint in portable(ASKING))
    assert any("on.<engine>" in complaint for complaint in lint("engine/count_rows.duckdb", DUCKDB_HEAD + ASKING))
    for asked in ("on.sqlite", "on", "on == 'spark'"):
        assert lint("engine/count_rows.each", EACH_HEAD + ASKING.replace("on.spark", asked))
    assert lint("engine/count_rows.each", DUCKDB_HEAD + ASKING)


def test_a_short_head_leaves_out_what_there_is_none_of() -> None:
    source = "{#- Count rows.\n    source      issue 2 -#}\nSELECT HASH(1)\n"
    assert lint("engine/count_rows.duckdb", source, short=True) == []
    assert len(lint("engine/count_rows.duckdb", source)) == 4
    assert lint("engine/count_rows.spark", DUCKDB_HEAD + "SELECT 1", short=True)
    assert lint("engine/count_rows.duckdb", source.replace("source", "sauce"), short=True)


SHORT = "{#- Short statements. -#}\n"
COUNT = "\n{% statement count_rows %}\n" + SOUND
LIST = COUNT.replace("count_rows", "list_rows")


def test_a_sound_collection_has_no_complaint() -> None:
    assert lint_collection(SHORT + COUNT + LIST) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (COUNT + LIST, "begin with one comment"),
        ("SELECT 1\n" + COUNT, "begin with one comment"),
        (SHORT + "SELECT 1\n" + COUNT, "begin with one comment"),
        (SHORT + LIST + COUNT, "order"),
        (SHORT + COUNT + COUNT, "twice"),
        (SHORT + COUNT + "\n{% statement list_rows%}\nSELECT 1\n", "its name"),
        (SHORT + COUNT.replace("COUNT(*) AS", "\nCOUNT(*)\n\nAS\n"), "count_rows has 4 lines"),
    ],
)
def test_what_no_collection_may_hold(text: str, word: str) -> None:
    assert any(word in complaint for complaint in lint_collection(text))


KEPT = """["at once"]
"it is read twice" = ["tables/fold/fold_classes", "tables/verify/group_source.spark"]
"""


def test_a_sound_list_of_what_is_kept_has_no_complaint() -> None:
    assert lint_kept(KEPT) == []


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("at once", "somehow", "somehow is none of at once"),
        ("at once", "lazily", "what holds for what is not listed"),
        ("it is read twice", " ", "without a reason"),
        ('"tables/fold/fold_classes"', '"tables/fold/fold_classes", "tables/fold/fold_classes"', "more than once"),
        ("tables/fold/fold_classes", "engine/count_rows", "makes no temporary table"),
        ("tables/fold/fold_classes", "tables/fold/no_classes", "makes no temporary table"),
        ("group_source.spark", "group_source.duckdb", "makes no temporary table on an engine that has views"),
        ("tables/fold/fold_classes", "tables/write/keep_classes", "not what Spark runs"),
    ],
)
def test_what_no_list_of_what_is_kept_may_hold(old: str, new: str, word: str) -> None:
    assert any(word in complaint for complaint in lint_kept(KEPT.replace(old, new)))
