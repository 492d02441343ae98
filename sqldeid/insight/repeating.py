"""Find a key of persons that repeats by counting, whatever it is called: each value has one sex and one birth.

A table of visits, or of measurements, has many rows of a person. Taken for persons, they would make k a count of rows.
"""

from __future__ import annotations

from sqldeid.engine.base import Engine
from sqldeid.insight.profile import ColumnFacts, TableFacts
from sqldeid.insight.words import says_age, says_birth, says_year, spelt, words_of
from sqldeid.sql import column

LASTING = frozenset(
    ("sex", "gender", "geschlecht", "sexo", "sexe", "sesso", "kon", "kjonn", "race", "ethnicity", "ethnic")
)
"""Words for what a person keeps, beside birth."""

LEAST_AGAIN = 20
"""Rows whose value was there before, from which on it is no chance that all agree with those before."""

MOST_ROWS = 50
"""Rows of a value on average, above which a column is rather a code than a key of persons."""

MOST_KEYS = 8
"""Columns that are counted, those with most values first."""


def find_repeating(facts: TableFacts, engine: Engine) -> ColumnFacts | None:
    """The column that tells persons apart though it repeats; None where none is found, or nothing lasting is there.

    Of several the one with fewest values: stays have one sex, too. Cost: one statement with a scan for each of at most
    eight columns.
    """
    lasting = [c for c in facts.columns if _lasts(c)]
    keys = sorted((c for c in facts.columns if _repeats(c) and c not in lasting), key=lambda c: -c.different)
    if not lasting or not keys:
        return None
    others = [column(c.name, "s") for c in lasting]
    asked = [{"number": i, "column": column(c.name, "s"), "others": others} for i, c in enumerate(keys[:MOST_KEYS])]
    counted = engine.rows("insight/count_mixed", source=facts.relation, keys=asked)
    pure = [keys[row["number"]] for row in counted if not row["mixed"]]
    return min(pure, key=lambda c: c.different, default=None)


def _lasts(c: ColumnFacts) -> bool:
    """Whether a column is of what a person keeps, and tells something of who it is."""
    if c.kind not in ("integer", "text", "number", "date", "timestamp") or not 2 <= c.different < c.there / 2:
        return False
    return says_birth(c.name) or any(w in LASTING for w in (*words_of(c.name), *spelt(c.name)))


def _repeats(c: ColumnFacts) -> bool:
    """Whether a column has many values, of which many are there again."""
    if c.kind not in ("integer", "text", "number") or says_age(c.name) or says_year(c.name):
        return False
    return c.there - c.different >= LEAST_AGAIN and c.different * MOST_ROWS >= c.there and c.different > LEAST_AGAIN
