"""Lists in templates: items are separated by what the template says once, and by nothing else."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest

from sqldeid.sql import identifier
from sqldeid.sql.lists import SEPARATORS, grammar
from sqldeid.sql.templates import UnsafeSqlError, _environment

A, B, C = (identifier(name) for name in "abc")


def printed(text: str, **parameters: Any) -> str:
    return _environment("duckdb").from_string(text).render(**parameters)


@pytest.mark.parametrize(("columns", "text"), [([], ""), ([A], '"a"'), ([A, B, 3, True], '"a", "b", 3, TRUE')])
def test_a_printed_list_has_commas(columns: list[Any], text: str) -> None:
    assert printed("{{ columns }}", columns=columns) == text
    assert printed("{{ columns }}", columns=tuple(columns)) == text
    assert printed("{% list c in columns %}{{ c }}{% endlist %}", columns=columns) == text


@pytest.mark.parametrize("unsafe", [["x"], [A, None], [A, {"name": A}], [A, ["x"]]])
def test_an_unsafe_part_of_a_list_raises(unsafe: list[Any]) -> None:
    with pytest.raises(UnsafeSqlError):
        printed("{{ columns }}", columns=unsafe)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_list_is_separated_by_what_it_says(separator: str) -> None:
    text = f"{{% list c in columns by {separator} %}}{{{{ c }}}} = 1{{% endlist %}}"
    assert printed(text, columns=[A, B, C]) == f" {separator} ".join(f'"{c}" = 1' for c in "abc")
    assert printed(text, columns=[A]) == '"a" = 1'
    assert printed(text, columns=[]) == ""


@pytest.mark.parametrize("separator", ["", ",", ";", "DROP", "and", "UNION ALL SELECT", "|| ';' ||", "AND if x"])
def test_another_separator_is_refused(separator: str) -> None:
    with pytest.raises(jinja2.TemplateSyntaxError):
        grammar().parse(f"{{% list c in columns by {separator} %}}{{{{ c }}}}{{% endlist %}}")


@pytest.mark.parametrize("first", [[], [A], [A, B]])
@pytest.mark.parametrize("second", [[], [B], [B, C]])
@pytest.mark.parametrize("third", [[], [C]])
def test_a_list_goes_on_with_further_ones_that_may_be_empty(
    first: list[Any], second: list[Any], third: list[Any]
) -> None:
    text = "{% list c in x %}{{ c }}{% also c in y %}{{ c }}{% also c in z %}{{ c }}{% endlist %}"
    assert printed(text, x=first, y=second, z=third) == printed("{{ all }}", all=[*first, *second, *third])


def test_a_line_ends_in_the_separator() -> None:
    text = "{% list c in columns %}\n  {{ c }} AS x\n{% endlist %}"
    assert printed(text, columns=[A, B]) == '  "a" AS x,\n  "b" AS x\n'


def test_lists_stand_in_one_another() -> None:
    text = "{% list t in tables by OR %}({% list c in t by AND %}{{ c }}{% endlist %}){% endlist %}"
    assert printed(text, tables=[[A, B], [C]]) == '("a" AND "b") OR ("c")'
