"""ARX's words for criteria and metrics, taken as keys of a job. Pure.

A criterion is taken only where the job's means the same or more; else its words are handed back, for the job to be
refused until the custodian decides. That another loss is searched harms nobody, so a metric that is not known here is
told and not held against the job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import log
from types import MappingProxyType

from sqldeid.job.rules import MAX_DECIMALS

_NUMBER = r"(\d+(?:\.\d+)?(?:E-?\d+)?)"
_OF = r" for attribute '(.*)'"
_K = re.compile(r"(\d+)-anonymity")
_DISTINCT = re.compile(rf"distinct-(\d+)-diversity{_OF}", re.DOTALL)
_ENTROPY = re.compile(rf"(?:shannon-)?entropy-{_NUMBER}-diversity{_OF}", re.DOTALL)
_RECURSIVE = re.compile(rf"recursive-\({_NUMBER},\s*(\d+)\)-diversity{_OF}", re.DOTALL)
_CLOSE = re.compile(rf"{_NUMBER}-closeness with (equal|ordered|hierarchical) distance{_OF}", re.DOTALL)
_DISCLOSURE = re.compile(rf"{_NUMBER}-disclosure privacy{_OF}", re.DOTALL)
_BASIC = re.compile(rf"(?:basic-{_NUMBER}-|{_NUMBER}-basic )likeness{_OF}", re.DOTALL)
_ENHANCED = re.compile(rf"(?:enhanced-{_NUMBER}-|{_NUMBER}-enhanced )likeness{_OF}", re.DOTALL)
_MAPPED = re.compile(r"\((\d+)\)-map estimated as \((\d+)\)-anonymity \((?:Poisson|Zero-truncated Poisson)\)")
_ALONE = re.compile(rf"\({_NUMBER}\)-(?:sample-uniqueness|population-uniqueness \((?:dankar|pitman|zayatz|snb)\))")
_ALONE_IN_SAMPLE = "-sample-uniqueness"
_AVERAGE = re.compile(rf"\({_NUMBER}(?:, {_NUMBER}, {_NUMBER})?\)-avg-reidentification-risk")
_GAME = re.compile(
    rf"(no-attack-)?profitability \(prosecutor\)\[benefit={_NUMBER}, loss={_NUMBER}, gain={_NUMBER}, cost={_NUMBER}\]"
)
_MOST_ROWS = 10**12
"""Of a class that an attack does not pay on; what asks for more releases nothing."""
_LOSS = re.compile(r"Loss(?: \(([0-9.E-]+)/.*)?")

Taken = tuple[str, dict[str, object]]
"""A key of `privacy`, and an entry of its list."""


@dataclass(slots=True)
class Demands:
    """What the job asks of classes.

    Parameters
    ----------
    k
        Of k-anonymity; None where nothing implies one.
    entries
        Key of `privacy` to its list.
    overall
        Keys of `privacy` about all released classes together.
    unpaid
        The least class that nobody is paid for attacking; None where the project plays no game.
    left
        ARX's words for what was not taken.
    notes
        What was taken in another form, in a sentence each.
    """

    k: int | None = None
    entries: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    overall: dict[str, object] = field(default_factory=dict)
    unpaid: int | None = None
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def demands(
    criteria: tuple[str, ...],
    sensitive: frozenset[str],
    whole: frozenset[str],
    files: Mapping[str, str] = MappingProxyType({}),
) -> Demands:
    """Take criteria.

    Parameters
    ----------
    criteria
        ARX's words for each.
    sensitive
        The sensitive columns.
    whole
        Those that hold whole numbers alone, which are ordered by value here as in ARX.
    files
        Column to the file of its hierarchy.

    Guarantee: a release that meets `k`, `entries` and `overall` meets every criterion that is not in `left`.

    * l-diversity (distinct, entropy after Shannon, recursive), t-closeness of equal distance, and β-likeness are
      ARX's, letter by letter. Where no k is asked, the greatest l is one: a class of l values has l rows.
    * t-closeness of ordered distance orders by data type: taken of whole numbers, whose order is one.
    * t-closeness of hierarchical distance goes by the hierarchy of the attribute; ARX's steps are over its height.
    * ARX's δ-disclosure bounds |log2(q/p)| for the values that a class has; the job's bounds |ln(q/p)| below δ' for
      every value of the table. With δ' = δ·ln 2, rounded down, it is at least as strict.

    * The average risk is ARX's. Its bound on records at risk counts classes of 1/risk rows, too, where the job counts
      those above a risk alone: the job's threshold is a little lower, such that these count (`_at_risk`).

    * Estimated k-map, and uniqueness in sample and population: see `_take_mapped` and `_take_alone`.

    * Profitability without attacks (prosecutor) is ARX's: classes of more than gain / cost rows. Profitability with
      attacks keeps classes that may be attacked as long as the publisher gains; the job leaves none, which is more.

    Source: toString of the classes in ``org.deidentifier.arx.criteria``, ARX 2.3 to 3.9.
    """
    found, alone = Demands(), list[str]()
    for text in criteria:
        if _ALONE.fullmatch(text):
            alone.append(text)
        if _ALONE.fullmatch(text) or _take_of_whole(text, found):
            continue
        taken = _of_column(text, whole, files, found.notes)
        if taken is None or taken[1]["column"] not in sensitive or _again(taken, found):
            found.left.append(text)
        else:
            found.entries.setdefault(taken[0], []).append(taken[1])
    if found.k is None:
        found.k = _implied(found)
    if found.unpaid is not None:
        found.k = max(found.k or 1, found.unpaid)
    for text in alone:
        _take_alone(text, found)
    if found.k is None and found.overall.keys() - {"game"}:
        found.notes.append("k = 1: the project asks for no k-anonymity, and a risk on average bounds no single one")
        found.k = 1
    return found


def _take_mapped(match: re.Match[str], found: Demands) -> bool:
    """Take the k-anonymity that ARX derived of an estimated k-map when it was saved; false where it did not yet."""
    derived = int(match[2])
    if not 0 < derived <= _MOST_ROWS:
        return False
    found.k = max(found.k or 1, derived)
    found.notes.append(
        f"k: the project asks for ({match[1]})-map, which ARX estimated as {derived}-anonymity of its rows and "
        "population; the job holds that k. To estimate it here, write k_map, and population = { size, fraction }"
    )
    return True


def _take_of_whole(text: str, found: Demands) -> bool:
    """Take a criterion that names no attribute; false where it is none, or the job could not hold it."""
    if match := _K.fullmatch(text):
        found.k = max(found.k or 1, int(match[1]))
        return True
    for pattern, take in ((_MAPPED, _take_mapped), (_AVERAGE, _take_average), (_GAME, _take_game)):
        if (match := pattern.fullmatch(text)) is not None:
            return take(match, found)
    return False


def _take_alone(text: str, found: Demands) -> None:
    """Take the uniqueness of rows, or leave it where the job could not hold it.

    Where classes have 2 rows at least, no row is alone: sample uniqueness holds, and population uniqueness, too, for
    ARX estimates it as 0. Else sample uniqueness is the share of rows at a risk above 1/2; that of a population is not
    taken.
    """
    share = _few(text[1 : text.index(")")])
    if (found.k or 1) > 1:
        found.notes.append(f"{text} holds, for no released row is alone with k = {found.k}")
    elif not text.endswith(_ALONE_IN_SAMPLE) or share is None or share > 1 or "at_risk" in found.overall:
        found.left.append(text)
    else:
        found.overall["at_risk"] = {"threshold": 0.5, "share": share}


def _take_average(match: re.Match[str], found: Demands) -> bool:
    """Take an average risk, with the records at risk where they are bounded; false where a job could not hold it."""
    average = _few(match[1])
    if average is None or not 0 < average <= 1 or found.overall.keys() - {"game"}:
        return False
    if match[2] is None:
        found.overall["average_risk"] = average
        return True
    at_risk, share = _at_risk(match[2], found.notes), _few(match[3])
    if at_risk is None or share is None or not 0 <= share <= 1:
        return False
    found.overall |= {"average_risk": average, "at_risk": {"threshold": at_risk, "share": share}}
    return True


def _take_game(match: re.Match[str], found: Demands) -> bool:
    """Take a game of the prosecutor; false where the job could not hold it, or nothing is gained by publishing."""
    benefit, payout, cost = (_few(match[i]) for i in (2, 4, 5))
    if not benefit or payout is None or not cost or "game" in found.overall or payout / cost >= _MOST_ROWS:
        return False
    found.overall["game"] = {"payout": payout, "cost": cost}
    found.unpaid = int(Decimal(match[4]) // Decimal(match[5])) + 1
    if match[1] is None:
        found.notes.append(
            "game: ARX keeps classes that attackers gain from as long as the publisher's benefit is greater than the "
            "loss; the job leaves no class that they gain from"
        )
    return True


def _at_risk(highest: str, notes: list[str]) -> float | None:
    """The job's threshold by which the classes are at risk that ARX counts: those of 1/highest rows and fewer.

    ARX rounds 1/highest down where that is off by less than a hundredth of the risk, else up. The threshold is the
    least number of as many decimals as a job may have that classes of one row more do not exceed.
    """
    risk = Decimal(highest)
    if not 0 < risk <= 1:
        return None
    rows = int(1 / risk)
    if 1 / Decimal(rows) - risk >= risk / 100:
        rows += 1
    step = Decimal(1).scaleb(-MAX_DECIMALS)
    threshold = (1 / Decimal(rows + 1)).quantize(step, ROUND_CEILING)
    if threshold * rows >= 1:
        return None
    notes.append(
        f"at_risk: ARX counts classes of {rows} rows and fewer as at a risk above {risk.normalize():f}, those of that "
        "risk among them; the job's threshold is lower, so that these count"
    )
    return float(threshold)


def _again(taken: Taken, found: Demands) -> bool:
    """Whether a second of its kind is asked of one column, where a job has one."""
    key, entry = taken
    there = found.entries.get(key, [])
    return key != "l_diversity" and any(other["column"] == entry["column"] for other in there)


def _implied(found: Demands) -> int | None:
    """The least rows of a class that l-diversity leaves."""
    sizes = [l for entry in found.entries.get("l_diversity", []) if isinstance(l := entry["l"], int)]
    if not sizes:
        return None
    found.notes.append(f"k = {max(sizes)} is what l-diversity implies; the project asks for no k-anonymity")
    return max(sizes)


def _of_column(text: str, whole: frozenset[str], files: Mapping[str, str], notes: list[str]) -> Taken | None:
    """A criterion of one column; None where it cannot be taken."""
    if match := _DISTINCT.fullmatch(text):
        return "l_diversity", {"column": match[2], "l": int(match[1])}
    if (match := _ENTROPY.fullmatch(text)) and (l := Decimal(match[1])) == int(l):
        return "l_diversity", {"column": match[2], "l": int(l), "kind": "entropy"}
    if (match := _RECURSIVE.fullmatch(text)) and (c := _few(match[1])) is not None:
        return "l_diversity", {"column": match[3], "l": int(match[2]), "kind": "recursive", "c": c}
    if (match := _CLOSE.fullmatch(text)) and (t := _few(match[1])) is not None and t <= 1:
        if match[2] == "hierarchical":
            entry: dict[str, object] = {"column": match[3], "t": t, "distance": "hierarchical"}
            return ("t_closeness", entry | {"hierarchy": files[match[3]]}) if match[3] in files else None
        if match[2] == "equal":
            return "t_closeness", {"column": match[3], "t": t}
        return ("t_closeness", {"column": match[3], "t": t, "distance": "ordered"}) if match[3] in whole else None
    if (match := _DISCLOSURE.fullmatch(text)) and 0 < (delta := _natural(match[1])) <= 10:
        notes.append(
            "delta_disclosure: ARX's delta is of base-2 logarithms; the job has it times ln 2, rounded down, and asks "
            "besides that each value be in each class"
        )
        return "delta_disclosure", {"column": match[2], "delta": delta}
    for pattern, kind in ((_BASIC, "basic"), (_ENHANCED, "enhanced")):
        if (match := pattern.fullmatch(text)) and (beta := _few(match[1] or match[2])) is not None and 0 < beta <= 1000:
            return "beta_likeness", {"column": match[3], "beta": beta, "kind": kind}
    return None


def _few(text: str) -> float | None:
    """A number as the job may hold it; None where it has more decimals than are compared."""
    number = Decimal(text)
    return float(number) if number == round(number, MAX_DECIMALS) else None


def _natural(text: str) -> float:
    """ARX's δ, of base-2 logarithms, for natural ones; rounded down to what the job compares."""
    step = Decimal(1).scaleb(-MAX_DECIMALS)
    return float((Decimal(text) * Decimal(log(2))).quantize(step, ROUND_FLOOR))


def loss_of(metric: str) -> tuple[str, list[str]]:
    """The job's loss for a metric of ARX, and what is different about it, in a sentence each."""
    said = metric.casefold()
    if match := _LOSS.fullmatch(metric):
        notes = [
            "search.loss: ARX's file does not say how it put the columns' losses together (geometric mean unless it "
            "was told otherwise); the job takes their weighted arithmetic mean"
        ]
        if match[1] and float(match[1]) != 0.5:
            notes.append("search.loss: the project weighs suppression against generalisation; the job has both alike")
        return "loss", notes
    name = next((ours for theirs, ours in _METRICS.items() if all(word in said for word in theirs)), "loss")
    if name == "loss":
        return name, ["search.loss: the project's metric is not known here; the job takes loss"]
    if name == "payout":
        return name, ["search.loss: payout is that of a publisher whom no attack costs anything, over the greatest"]
    return name, [f"search.loss: {name} is of the node before suppression; ARX's variants may count suppressed rows"]


_METRICS: Mapping[tuple[str, ...], str] = {
    ("precision",): "prec",
    ("entropybasedinformationloss",): "payout",
    ("publisherbenefit",): "payout",
    ("normalized", "entropy"): "normalised_entropy",
    ("entropy",): "entropy",
    ("discern",): "dm_star",
    ("height",): "height",
    ("class", "size"): "class_size",
}
"""By words in ARX's name. Its ambiguity is the number of combinations, where ours is its logarithm: not taken."""
