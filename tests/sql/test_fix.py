"""A name written down once is as safe as the name, and is never taken for another engine's text."""

from __future__ import annotations

import pytest

from sqldeid.sql import fix, identifier, table_name
from sqldeid.sql.templates import UnsafeSqlError, _finalize

HOSTILE = 'we"ird; DROP TABLE x; --'


def test_fixed_text_is_that_of_the_expression() -> None:
    for part in (identifier(HOSTILE), table_name("main", HOSTILE), identifier("select")):
        assert _finalize("duckdb")(fix(part)) == _finalize("duckdb")(part)


def test_other_engines_get_no_text_of_duckdbs() -> None:
    with pytest.raises(UnsafeSqlError):
        _finalize("postgres")(fix(identifier("a")))


def test_a_plain_string_is_still_refused() -> None:
    with pytest.raises(UnsafeSqlError):
        _finalize("duckdb")('"a"')
