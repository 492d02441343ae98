"""What attacks on persons and their values achieve, in words, and the types of what is read of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from sqldeid.report.shape_parts import Count, Part
from sqldeid.report.words import FEW
from sqldeid.result import Tree

Share = Annotated[float, Field(ge=0, le=1)]
Times = Annotated[float, Field(ge=0, le=1e18)]


class ShareTold(Part):
    """A share of 0 … 1 with its interval."""

    value: Share
    low: Share
    high: Share
    of: Count
    exact: bool


class SuccessTold(Part):
    """What `sqldeid.tables.attacks.rates.Success` writes."""

    main: ShareTold
    control: ShareTold
    baseline: ShareTold
    risk: ShareTold
    column: str = ""


class _Held(Part):
    """Of whom an attack with a control group was made."""

    persons: Count
    held_out: Count
    sampled: bool


class SingledTold(_Held):
    """Singling out, by the class alone and with values."""

    by_class: SuccessTold
    with_values: SuccessTold | None = None


class LinkedTold(_Held):
    """Linkability."""

    main: ShareTold
    control: ShareTold
    baseline: ShareTold
    risk: ShareTold


class InferredTold(_Held):
    """Inference, by column."""

    columns: Sequence[SuccessTold]


class _Disclosed(Part):
    column: str
    alike: ShareTold
    positive_max: Times
    positive_mean: Times
    negative_max: Times
    negative_mean: Times
    skewness_max: Share
    skewness_mean: Share
    share_max: Share | None = None
    share_mean: Share | None = None


class DisclosureTold(Part):
    """What `sqldeid.tables.attacks.disclosure.Disclosure` writes."""

    columns: Sequence[_Disclosed]


class _Gained(Part):
    criterion: str
    column: str
    threshold: Share | None
    alone: ShareTold | None
    exceeding: ShareTold | None
    told: ShareTold


class MinimalityTold(Part):
    """What `sqldeid.tables.attacks.minimality.Minimality` writes."""

    nodes: Count
    kept: Count
    drawn: Count
    farthest: Share
    columns: Sequence[_Gained]


class _Common(Part):
    column: str
    one: ShareTold
    before: ShareTold


class _Beside(Part):
    release: str
    persons: Count
    smallest: Count
    alone: ShareTold
    below: ShareTold
    columns: Sequence[_Common] = ()


class CompositionTold(Part):
    """What `sqldeid.run.composing.Composition` writes."""

    beside: Sequence[_Beside]


class OrderTold(Part):
    """What `sqldeid.tables.attacks.order.RowOrder` writes."""

    unordered: ShareTold


class _Group(Part):
    column: str
    value: str
    attack: str
    main: ShareTold
    secret: str = ""


class GroupsTold(Part):
    """What `sqldeid.tables.attacks.held_out.Hit` writes."""

    groups: Sequence[_Group]


def estimated(found: Tree) -> str:
    """A share as a page shows it: its hits as `FEW` has it, its interval where it was sampled."""
    hits = found["value"] * found["of"]
    if found["exact"]:
        return f"fewer than {FEW} rows" if 0 < hits < FEW else percent(found["value"])
    return f"{percent(found['value'])} ({percent(found['low'])} to {percent(found['high'])})"


def percent(share: float) -> str:
    """A share in words where it is small, or next to all."""
    if 0.9995 <= share < 1:
        return "more than 99.9 %"
    return "none" if not share else "less than 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"


def _success(what: str, found: Tree) -> tuple[str, str]:
    """One attack beside its control group."""
    beside = (
        f"of persons held out {percent(found['control']['value'])}, by guessing {percent(found['baseline']['value'])}"
    )
    risk = f"risk {estimated(found['risk'])}"
    return f"{what} ({beside})", f"{percent(found['main']['value'])}; {risk}"


def singled(found: Tree) -> Iterator[tuple[str, str]]:
    """Singling out."""
    yield _success("Persons whom a class of the release isolates", found["by_class"])
    if found.get("with_values"):
        yield _success("Persons whom a class and the values in it isolate", found["with_values"])


def linked(found: Tree) -> Iterator[tuple[str, str]]:
    """Linkability."""
    yield _success("Persons of whom two files with half of the known columns each lead to one row", found)


def inferred(found: Tree) -> Iterator[tuple[str, str]]:
    """Inference."""
    for column in found["columns"]:
        yield _success(f"Persons whose {column['column']} is guessed from their class", column)


def disclosed(found: Tree) -> Iterator[tuple[str, str]]:
    """Attribute disclosure."""
    for c in found["columns"]:
        yield f"Rows in a class with one value of {c['column']}, which is then certain", estimated(c["alike"])
        if c.get("share_max") is not None:
            most = f"{percent(c['share_mean'])} in the mean, {percent(c['share_max'])} at most"
            yield f"Greatest share that one value of {c['column']} has of a class", most
        times = f"{c['positive_mean']:.2g} times in the mean, {c['positive_max']:.2g} at most"
        yield f"How many times likelier a class makes a value of {c['column']}", times


def minimal(found: Tree) -> Iterator[tuple[str, str]]:
    """The minimality attack."""
    for c in found["columns"]:
        if c.get("exceeding"):
            sure = f"{percent(c['exceeding']['low'])} to {percent(c['exceeding']['high'])}"
            what = f"Rows of which a value of {c['column']} is believed more than 1/l (by the class alone"
            yield f"{what} {percent(c['alone']['value'])})", sure
    if found["columns"]:
        far = found["farthest"]
        most = percent(far) if far else "nothing"
        knows = "who knows all quasi-identifying values and why no node one level finer was chosen"
        yield f"How far {knows} believes other than what the class shows, of anybody, at most", most


def composed(found: Tree) -> Iterator[tuple[str, str]]:
    """Two releases together; the smallest set of candidates only where it is of `FEW` and more."""
    for b in found["beside"]:
        fewest = f"fewer than {FEW}" if b["smallest"] < FEW else f"{b['smallest']:,}"
        both = f"both of their groups in this release and in {b['release']}"
        yield f"Persons who alone are in {both} (the smallest set has {fewest})", estimated(b["alone"])
        yield f"Persons who share {both} with fewer others than k promises in one", estimated(b["below"])
        for c in b["columns"]:
            what = f"Persons whose {c['column']} is certain, for these groups have one value in common"
            yield f"{what} (by one group alone {estimated(c['before'])})", estimated(c["one"])


def ordered(found: Tree) -> Iterator[tuple[str, str]]:
    """The order of rows."""
    yield "Rows whose place follows from no column of theirs, and may tell of the source", estimated(found["unordered"])


def hit(found: Tree) -> Iterator[tuple[str, str]]:
    """Who is hit most, attack by attack; groups of fewer than `FEW` persons are left out, fewer hits told as that."""
    worst: dict[tuple[str, str], Tree] = {}
    for g in found["groups"]:
        key = (g["attack"], g.get("secret", ""))
        if g["main"]["of"] >= FEW and (key not in worst or g["main"]["low"] > worst[key]["main"]["low"]):
            worst[key] = g
    for (attack, secret), g in worst.items():
        if g["main"]["value"]:
            of = f" of {secret}" if secret else ""
            few = g["main"]["value"] * g["main"]["of"] < FEW
            share = f"fewer than {FEW} persons" if few else estimated(g["main"])
            yield f"{_ATTACKS[attack]}{of}: most of all where {g['column']} is {g['value']}, by its first level", share


_ATTACKS = {
    "singling_out": "Singling out by class",
    "singling_out_with_values": "Singling out with values",
    "linkability": "Linking",
    "inference": "Inference",
}
