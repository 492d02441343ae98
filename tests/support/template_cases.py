"""All cases of templates, and how to run one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import count

import duckdb

from tests.support.places import ROOT
from tests.templates.cases import CASES as FIRST
from tests.templates.cases import Case, Rows

FURTHER = sorted(path.stem for path in (ROOT / "tests" / "templates").glob("cases_*.py"))


CASES: list[Case] = [*FIRST, *(case for name in FURTHER for case in import_module(f"tests.templates.{name}").CASES)]


_NUMBERS = count()


@cache
def _opened() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@contextmanager
def fresh_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a new database of one DuckDB, which takes far longer to open than a case to run."""
    name = f"fresh_{next(_NUMBERS)}"
    with _opened().cursor() as connection:
        connection.execute(f"ATTACH ':memory:' AS {name}")
        connection.execute(f"USE {name}")
        yield connection
    _opened().execute(f"DETACH {name}")


def found_rows(case: Case, statement: str, read: str, run: Callable[[str], Rows]) -> Rows:
    """The rows of a template's statement, or of the query that reads what it made."""
    found = run(statement)
    for after in case.after:
        run(after)
    return run(read) if read else found


def assert_same(case: Case, found: Rows) -> None:
    rows = case.rows if case.ordered else sorted(case.rows, key=repr)
    found = found if case.ordered else sorted(found, key=repr)
    assert found == rows
    types = [list(map(type, row)) for row in found]
    assert types == [list(map(type, row)) for row in rows], "equal values of other types: a sum must be cast"
