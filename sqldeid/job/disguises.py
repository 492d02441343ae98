"""Rules of what is released in place of a value: pseudonyms, shifted dates, numbers cut at the top. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.job.criteria import PER_CLASS, entries
from sqldeid.job.sections import Found, section

KEYS = ("pseudonym", "shift", "to", "top_code")
_TOGETHER = {"shift", "to"}
_ROLES = {
    "pseudonym": ("identifying",),
    "shift": ("sensitive", "insensitive"),
    "to": ("sensitive", "insensitive"),
    "top_code": ("quasi-identifying", "sensitive", "insensitive"),
}


def column_disguises(column: Mapping[str, object]) -> Iterator[Found]:
    """Each key goes with its roles, and no two go together."""
    role = column.get("role")
    given = [key for key in KEYS if column.get(key) is not None]
    for key in given:
        if role not in _ROLES[key]:
            named = ", ".join(f'"{r}"' for r in _ROLES[key])
            yield (key,), f"goes with role = {named} alone; remove it or change the role"
    if len(given) > 1 and set(given) != _TOGETHER:
        yield (given[1],), f"does not go with {given[0]}; remove one of them"


def table_disguises(table: Mapping[str, object]) -> Iterator[Found]:
    """What hides a person needs a person key, and goes where its secrets can be kept."""
    columns = {name: c for name, c in section(table, "columns").items() if isinstance(c, Mapping)}
    hidden = {n: "pseudonym" if c.get("pseudonym") else "shift" for n, c in columns.items() if _hides(c)}
    shifted = {n: c.get("shift") for n, c in columns.items() if c.get("shift") is not None}
    for name in shifted:
        if table.get("person") is None:
            yield ("columns", name, "shift"), "needs the table's person key: each person has a shift of its own"
    if "birth" in shifted.values() and "person" not in shifted.values():
        name = next(n for n, kind in shifted.items() if kind == "birth")
        yield (
            ("columns", name, "shift"),
            '"birth" needs another date with shift = "person", up to which ages are counted; or make this column '
            'quasi-identifying with hierarchy = { dates = ["year", "decade"] }',
        )
    for name, key in hidden.items():
        if section(table, "search").get("method") == "epsilon-safe":
            yield ("columns", name, key), "does not go with epsilon-safe, whose columns are all quasi-identifying"
        elif table.get("view") == "computed":
            yield ("columns", name, key), "does not go with a computed view, whose text would tell the secret"
    yield from _judged(table, shifted)


def _judged(table: Mapping[str, object], shifted: Mapping[str, object]) -> Iterator[Found]:
    """A criterion on a shifted date would judge numbers that change with every run."""
    privacy = section(table, "privacy")
    named = [str(n) for n in section(section(privacy, "m_concealing"), "known")]
    named += [str(e.get("column")) for key in PER_CLASS for e in entries(privacy, key)]
    for name in dict.fromkeys(named):
        if name in shifted:
            yield (
                ("columns", name, "shift"),
                "a criterion of [privacy] names this column, and none can judge it shifted",
            )


def _hides(column: Mapping[str, object]) -> bool:
    return bool(column.get("pseudonym")) or column.get("shift") is not None
