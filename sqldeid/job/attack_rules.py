"""Rules of `attacks`, `secrets` and `search.blunt`: what attackers try to infer stands in the release. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.job.sections import Found, section

_BLUNTED = ("frontier", "best-first", "flash", "ola", "local")
"""Methods whose best levels can be drawn from others nearly as good."""

_RELEASED = ("quasi-identifying", "sensitive", "insensitive")


def attack_problems(table: Mapping[str, object], roles: Mapping[str, object]) -> Iterator[Found]:
    """Secrets are released columns, and are there only where attacks are made; not every method is blunted."""
    yield from _blunt(table)
    secrets = table.get("secrets")
    if not isinstance(secrets, list):
        return
    if table.get("attacks") is False and secrets:
        yield ("secrets",), "is for attacks, and attacks = false makes none; remove one of them"
    if section(table, "search").get("method") == "mondrian" and secrets:
        yield ("secrets",), "is for attacks, and releases by mondrian are not attacked; remove it"
    if any(not isinstance(name, str) or roles.get(name) not in _RELEASED for name in secrets):
        yield ("secrets",), "must name columns of this release, none of them identifying or free text"
    elif len({str(name) for name in secrets}) < len(secrets):
        yield ("secrets",), "names a column twice"


def _blunt(table: Mapping[str, object]) -> Iterator[Found]:
    search = section(table, "search")
    if not search.get("blunt"):
        return
    key, method = ("search", "blunt"), search.get("method", "frontier")
    if isinstance(method, str) and method not in _BLUNTED:
        yield key, f"does not go with {method}, which finds no best levels to draw beside; remove it"
    if search.get("choose") == "by-k":
        yield key, 'does not go with choose = "by-k", whose node is a function of k alone; remove one of them'
    if search.get("layers") is not None:
        yield key, "does not go with layers: classes that are raised are of further layers; remove one of them"
    if table.get("link") is not None:
        yield key, "does not go with link: what it proves is proven of one table; remove one of them"
