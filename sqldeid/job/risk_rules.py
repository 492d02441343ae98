"""Rules of what a release must meet as a whole, over all of its classes: where it does not carry over. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import isfinite

from sqldeid.job.criteria import OF_POPULATION, OVERALL
from sqldeid.job.sections import Found, section

METHODS = ("frontier", "best-first", "flash", "ola", "datafly", "igreedy")
"""Searches that ask for nodes alone, which tell what each must suppress."""

MOST_DECIMALS = 9
MOST_ESTIMATED = 100_000
"""Greatest k_map that is estimated, by sums over so many terms."""

_WHY = {
    "inverse-ola": "seeks the greatest k, and knows no other demand",
    "epsilon-safe": "draws its node, and suppresses by k alone",
    "mondrian": "suppresses nothing, and cuts as long as each part passes",
    "local": "gives classes levels of their own, one after the other, before all are known",
}


def risk_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """What a release must meet as a whole goes with searches of nodes, dropped rows and one row a person."""
    privacy, search = section(table, "privacy"), section(table, "search")
    for key in OVERALL:
        if privacy.get(key) is not None:
            yield from ((("privacy", key), text) for text in _unfit(table, privacy, search))
    yield from ((("privacy", *keys), text) for keys, text in _of_population(table, privacy, search))
    yield from _game(table, privacy, search)
    yield from _decimals(("average_risk",), privacy.get("average_risk"))
    for name in ("threshold", "share"):
        yield from _decimals(("at_risk", name), section(privacy, "at_risk").get(name))
    for name in ("least", "most"):
        yield from _decimals(("delta_presence", name), section(privacy, "delta_presence").get(name))
    for name in ("fraction", "significance"):
        yield from _decimals(("population", name), section(privacy, "population").get(name))


def _unfit(table: Mapping[str, object], privacy: Mapping[str, object], search: Mapping[str, object]) -> Iterator[str]:
    method = search.get("method", "frontier")
    if isinstance(method, str) and method not in METHODS:
        yield f"does not go with {method}, which {_WHY.get(method, 'does not know it')}; use frontier"
    if search.get("choose") == "by-k":
        yield 'does not go with search.choose = "by-k": its limits tell k from criteria of classes; remove choose'
    if search.get("blunt"):
        yield "does not go with search.blunt, whose levels are drawn by k; remove one of the two"
    if privacy.get("suppression") == "blank":
        yield 'does not go with suppression = "blank": blanked rows are a class that would count, too; use "drop"'
    if table.get("rows") == "many":
        yield 'does not go with rows = "many": it counts rows as persons; give one row per person (a source query)'
    if table.get("view") == "computed":
        yield "does not go with a computed view, which counts each class alone; use a snapshot"
    if table.get("link") is not None:
        yield "does not go with link: the linked tables are judged by their join's classes, one by one; remove it"


def _of_population(
    table: Mapping[str, object], privacy: Mapping[str, object], search: Mapping[str, object]
) -> Iterator[Found]:
    """k-map, δ-presence and their population go together, and with what the population is counted in."""
    asked = [key for key in OF_POPULATION if privacy.get(key) is not None]
    if bool(asked) != (privacy.get("population") is not None):
        missing = "population" if asked else "k_map"
        yield (missing,), 'missing; k_map = 5 (or delta_presence) and population.table = "…" go together'
    part = table.get("where") is not None or table.get("sample") is not None
    yield from _one_population(section(privacy, "population"), part=part)
    yield from _estimated(table, privacy)
    if not asked:
        return
    yield from _of_presence(privacy)
    refused = [f'search.method = "{m}"' for m in [search.get("method", "frontier")] if m not in METHODS]
    refused += ['search.choose = "by-k"'] if search.get("choose") == "by-k" else []
    refused += ["search.blunt"] if search.get("blunt") else []
    refused += ['suppression = "blank"'] if privacy.get("suppression") == "blank" else []
    refused += ['rows = "many"'] if table.get("rows") == "many" else []
    refused += ["a computed view"] if table.get("view") == "computed" else []
    refused += [key for key in ("link", "stack") if table.get(key) is not None]
    columns = section(table, "columns")
    refused += ["columns of one version of codes"] if any(section(columns, c).get("version") for c in columns) else []
    for key, what in product(asked, refused):
        yield (key,), f"does not go with {what}: there the persons of the population are not counted; leave one out"


def _of_presence(privacy: Mapping[str, object]) -> Iterator[Found]:
    """Bounds of δ-presence are in order, and the release is not empty where they are not met."""
    presence = section(privacy, "delta_presence")
    least, most = (float(str(presence.get(n, 0))) if _is_number(presence.get(n, 0)) else 0.0 for n in ("least", "most"))
    if presence and least > most:
        yield ("delta_presence", "least"), "is above most, so no class can meet both; lower it"
    if presence and _is_number(limit := privacy.get("suppression_limit", 0)) and float(str(limit)) >= 1:
        yield (
            ("suppression_limit",),
            "is 1, by which everything may be suppressed; no suppression mends delta_presence, so state less than 1",
        )


def _one_population(population: Mapping[str, object], *, part: bool) -> Iterator[Found]:
    """A population is a table, or the source before its filter."""
    given = [key for key in ("table", "rest", "size", "weights") if population.get(key) is not None]
    if population and len(given) != 1:
        yield ("population",), "must hold exactly one of table, rest, size, weights"
    if given == ["rest"] and not part:
        yield (
            ("population", "rest"),
            "is the source without where, and there is no where: everybody is in the release; add it, or name a table",
        )


def _estimated(table: Mapping[str, object], privacy: Mapping[str, object]) -> Iterator[Found]:
    """A population of which only the size is stated goes with k_map, of a source that is all that there is of it."""
    population = section(privacy, "population")
    if population.get("size") is not None or population.get("weights") is not None:
        yield from _unfit_for_estimate(table, privacy)
    if population.get("size") is None:
        for key in ("fraction", "estimate", "significance"):
            if population.get(key) is not None:
                yield ("population", key), "goes with size alone: a table is counted; remove it"
        return
    if population.get("fraction") is None:
        yield ("population", "fraction"), "missing; the greatest share of the population's persons in the source"
    k_map = privacy.get("k_map")
    if type(k_map) is int and k_map > MOST_ESTIMATED:
        yield ("k_map",), f"is above {MOST_ESTIMATED:,}, up to which it is estimated; lower it, or name a table"


def _unfit_for_estimate(table: Mapping[str, object], privacy: Mapping[str, object]) -> Iterator[Found]:
    """What needs a population that was counted, and a source that is all that there is of it."""
    if privacy.get("delta_presence") is not None:
        yield ("delta_presence",), "needs a table of the population: its classes are counted, not estimated; name one"
    if section(privacy, "game").get("attacker") == "journalist":
        yield ("game",), "of the journalist needs a table of the population: an estimate is no bound; name one"
    if table.get("sample") is not None:
        yield (
            ("population",),
            "of an estimate does not go with sample, which leaves out some of the source; use rest = true, or sample "
            "beforehand",
        )


def least_unpaid(payout: Fraction, cost: Fraction) -> int:
    """The least n with payout / n below the cost."""
    return payout // cost + 1


def _game(table: Mapping[str, object], privacy: Mapping[str, object], search: Mapping[str, object]) -> Iterator[Found]:
    """A game in which no attack pays goes with the k that it takes, and with releases that tell of it."""
    game = section(privacy, "game")
    yield from (found for name in ("payout", "cost") for found in _decimals(("game", name), game.get(name)))
    payout, cost = (_exact(game.get(name)) for name in ("payout", "cost"))
    if payout is None or cost is None or cost <= 0:
        return
    key = "k_map" if game.get("attacker") == "journalist" else "k"
    stated, least = privacy.get(key), least_unpaid(payout, cost)
    if type(stated) is not int or stated < least:
        yield (
            ("privacy", "game"),
            f"an attack on a class of {least - 1} pays, or costs nothing: write {key} = {least}, or more",
        )
    refused = [f'search.method = "{m}"' for m in [search.get("method", "frontier")] if m not in METHODS]
    refused += ['rows = "many"'] if table.get("rows") == "many" else []
    refused += ["link"] if table.get("link") is not None else []
    for what in refused:
        yield (
            ("privacy", "game"),
            f"does not go with {what}, which tells of k alone; leave one out",
        )


def _exact(value: object) -> Fraction | None:
    """A number of the job as it is written; None for anything else."""
    if type(value) not in (int, float) or not isfinite(number := float(str(value))):
        return None
    return Fraction(repr(number))


def linked_risk_problems(job: Mapping[str, object]) -> Iterator[Found]:
    """A release that others are linked with is suppressed with them, after its own classes were counted."""
    tables, series = section(job, "tables"), section(job, "series")
    for name in tables:
        privacy = section(section(tables, name), "privacy")
        by = [n for part in (tables, series) for n in part if section(part, n).get("link") == name]
        for key in (*OVERALL, *OF_POPULATION):
            if by and privacy.get(key) is not None:
                yield (
                    ("tables", name, "privacy", key),
                    f"does not go with a link from another release ({by[0]}), with which rows are left out after "
                    "classes were counted; remove one of the two",
                )


def _decimals(where: tuple[str, ...], value: object) -> Iterator[Found]:
    """Shares are compared in whole numbers."""
    if _is_number(value) and Fraction(repr(float(str(value)))).denominator > 10**MOST_DECIMALS:
        yield ("privacy", *where), f"has more than {MOST_DECIMALS} decimals; round it"


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and isfinite(float(str(value)))
