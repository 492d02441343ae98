"""Rules of what a row is: a person by a key, or a person by the job's word. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Found = tuple[tuple[str, ...], str]


def unit_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """A table says whose its rows are."""
    person, stated = table.get("person"), table.get("rows_are_persons") is True
    if person is None and not stated:
        yield (
            ("person",),
            "missing; name the column whose values are the persons, for k counts them; only where each row is another "
            "person and there is no such column, write rows_are_persons = true",
        )
    if person is not None and stated:
        yield ("rows_are_persons",), "is for tables without a person key, and this one has one; remove it"
