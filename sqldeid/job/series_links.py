"""Rules of `[series.NAME] link = "TABLE"`: what must hold so that both releases may share one numbering. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.job.sections import Found, section
from sqldeid.job.stack_rules import with_stacked

NUMBER = "person_number"
"""The column that both releases share."""
PROTECTING = "null-pattern"
"""The one NULL mode under which whoever lacks some variables shares just that with k persons of the class."""
_UNFIT = {
    "epsilon-safe": "releases a secret sample, and nobody may tell who is in it",
    "mondrian": "has no classes that series could be formed in",
    "local": "keeps nowhere who is in which class, and the re-check forms series again in the table's classes",
    "inverse-ola": "finds the greatest k, by which series would have to be formed, too",
}


def series_link_problems(job: Mapping[str, object]) -> Iterator[Found]:
    """Every broken rule between series and the tables that they are linked to."""
    tables, seen = section(job, "tables"), dict[str, str]()
    for name, series in section(job, "series").items():
        link = series.get("link") if isinstance(series, Mapping) else None
        if not isinstance(link, str) or not isinstance(series, Mapping):
            continue
        where = ("series", name, "link")
        if link not in tables:
            yield where, _unknown(job, link, tables)
            continue
        if seen.setdefault(link, name) != name:
            yield where, f"tables.{link} is linked to series.{seen[link]} already; a table goes with one series"
        yield from ((("series", name, *keys), text) for keys, text in _unprotected(series))
        table = tables[link]
        if isinstance(table, Mapping):
            yield from _between(where, link, table, series)


def _unknown(job: Mapping[str, object], link: str, tables: Mapping[str, object]) -> str:
    """Why a name is not that of a table release."""
    there = ", ".join(map(str, tables)) or "none"
    for kind in ("series", "events"):
        if link in section(job, kind):
            return f"names a release of {kind}; series are linked to a release of tables (there: {there})"
    return f"names no table release of this job; there: {there}"


def _unprotected(series: Mapping[str, object]) -> Iterator[Found]:
    """A link gives whoever knows raw values of a series the table row as well."""
    perturb, privacy = section(series, "perturb"), section(series, "privacy")
    if perturb.get("method", "shared") != "shared":
        yield (
            ("perturb", "method"),
            "with link: whoever knows a few values of a series would get the table row as well; take "
            '"shared" (the default), or release them without link',
        )
    if privacy.get("nulls", PROTECTING) != PROTECTING:
        yield (
            ("privacy", "nulls"),
            "with link: who lacks several variables may be alone with that in a class, table row included; "
            'take "null-pattern" (the default), or release them without link',
        )


def _between(
    where: tuple[str, ...], link: str, table: Mapping[str, object], series: Mapping[str, object]
) -> Iterator[Found]:
    """What the table release must be."""
    key, person, mine = ("tables", link), table.get("person"), series.get("person")
    if not isinstance(person, str):
        yield (*key, "person"), "missing; a linked release is joined by it: name the person key of the series"
    elif isinstance(mine, str) and mine.casefold() != person.casefold():
        yield where, f"tables.{link} has another person key; both must count the same persons by the same column"
    if table.get("rows") == "many":
        yield where, f'tables.{link} has rows = "many", and a common number would link a person\'s rows; remove link'
    method, privacy = section(table, "search").get("method"), section(table, "privacy")
    if isinstance(method, str) and method in _UNFIT:
        yield where, f'tables.{link}.search.method = "{method}" {_UNFIT[method]}; take "frontier", or remove link'
    if privacy.get("suppression") == "blank":
        yield (
            (*key, "privacy", "suppression"),
            'with a linked series a person is in both releases or in neither; write "drop"',
        )
    if privacy.get("m_concealing") is not None:
        yield (
            (*key, "privacy", "m_concealing"),
            "is not kept where a linked series tells more of each row; remove it, or remove link",
        )
    if table.get("view") == "computed":
        yield (*key, "view"), 'a linked release has numbers drawn at random, which no view computes; take "snapshot"'
    yield from _taken(key, table)


def _taken(key: tuple[str, ...], table: Mapping[str, object]) -> Iterator[Found]:
    for name, column in with_stacked(table).items():
        said = column if isinstance(column, Mapping) else {}
        leaves = said.get("role") not in ("identifying", "free-text") or said.get("pseudonym")
        if name.casefold() == NUMBER and leaves:
            yield (
                (*key, "columns", name),
                f"a linked release has a column {NUMBER} of its own; rename this one in a source query",
            )
