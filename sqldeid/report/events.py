"""What a report tells of a release of event sequences: the promise, its price, what was kept, what attackers find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, floor
from typing import Any

from sqldeid.report.codebook import column_sections
from sqldeid.report.sections import Chart, Section, grid, people, percent, told
from sqldeid.report.words import FEW
from sqldeid.result import Tree

CHANCE = 0.05
"""Level of the test that what is seen more often with a person is so by their presence."""

NOT_PROTECTED = {
    "laplace": "What is true of many people whether or not a certain one is in the data; whoever takes part in several "
    "releases (their epsilons add up); figures of this report, which are not noised.",
    "ratio": "A person: one person can decide whether a pattern is released, and a person has many events. What the "
    "whole database tells about everybody.",
    "none": "Anything.",
}
SPENT = {
    "transitions": "which state follows which, with beginnings and ends",
    "states": "how often each state occurs",
    "gaps": "how long it takes to the next event, by state",
    "lengths": "how many events an object has",
    "start months": "in which month sequences begin",
    "start hours": "on which weekday and at which hour sequences begin",
    "transitions by weekday": "which state follows which, by weekday",
    "transitions by hour": "which state follows which, by hour of the day",
    "transitions by month": "which state follows which, by month",
    "transitions by year": "which state follows which, by year",
    "groups": "how many objects each group has",
    "transitions by group": "which state follows which, by group",
}
KEPT = (
    ("similarity", "Similarity", "how near a sequence that was made is to the nearest real one, on average", True),
    ("cover", "Cover", "how near a real sequence is to the nearest one that was made: what is missing lowers it", True),
    ("top20", "Most frequent pairs", "share of the 20 most frequent pairs of neighbouring states that stay so", True),
    ("tvd_2gram", "Pairs of states", "distance between the shares of all pairs of neighbouring states", False),
    ("tvd_length", "Lengths", "distance between the shares of lengths", False),
    ("tvd_gap", "Gaps", "distance between the shares of times between events", False),
)
"""Key, name, meaning, and whether 1 is best (else 0 is)."""

WIDTH = 0.25
"""Of the result's bins of gaps, in ln(hours)."""


def events_sections(release: Tree, prefix: str) -> list[Section]:
    """The sections of one release for the data holder, in the order of a committee's questions."""
    return [
        Section("In short", answers=tuple(_short(release))),
        Section("What protects the people in it?", grids=(_promise(release),)),
        _ledger(release),
        _kept(release, prefix),
        _attacks(release),
        _made(release, prefix),
    ]


def public_events(release: Tree) -> list[Section]:
    """What may be published: the promise and the public budget."""
    ledger = [_ledger(release)] if release.get("ledger") else []
    told = column_sections(release.get("columns") or {})
    return [*told, Section("What protects the people in it?", grids=(_promise(release),)), *ledger]


def _short(release: Tree) -> Iterable[str]:
    promise = release["guarantee"]
    yield _safe(promise)
    yield from _worst(release.get("attacks") or {})
    yield (
        "Every row is made up by a model and belongs to nobody. A path that looks like somebody's may be chance, or "
        "what the model remembers."
    )
    yield "Cannot be studied any more: single people, rare states and paths, whatever hangs together over many events."
    figures = release.get("evaluation", {})
    if "cover" in figures:
        good = figures["cover"] >= 0.7 and figures["tvd_2gram"] <= 0.3
        verdict = (
            "common paths can be studied" if good else "even common paths are distorted: use it to try programs out"
        )
        yield (
            f"How true to life: cover {figures['cover']:.2f} (1 is best), pairs of states {figures['tvd_2gram']:.2f} "
            f"off (0 is best): {verdict}."
        )


def _safe(promise: Tree) -> str:
    if promise["method"] == "none":
        return "Is it safe to publish? No: nothing is protected. This is for comparison only."
    if not promise["differentially_private"]:
        return (
            "Is it safe to publish? Nothing is proven for a person: this is not differential privacy. One person's "
            "presence can decide whether a pattern appears."
        )
    factor = exp(float(promise["epsilon"]))
    return (
        f"Is it safe to publish? There is a proven promise (differential privacy) for each {promise['unit']}: whatever "
        f"is concluded from the release is at most {factor:,.3g} times as likely as it would be without that one's "
        f"events. The smaller the factor the better; 1 would be perfect, and above about 20 it says little."
    )


def _worst(attacks: Tree) -> Iterable[str]:
    canary = attacks.get("canary")
    if canary:
        yield (
            f"Worst risk, tried: one made-up person with a path of their own was planted. The path was seen in "
            f"{canary['seen_with']} of {canary['releases']} releases with the person, and in {canary['seen_without']} "
            f"of {canary['releases']} without: {_canary(canary)}."
        )
    elif not attacks:
        yield "Worst risk: no attack was tried in this run, which says nothing about safety."


def _canary(canary: Tree) -> str:
    if float(canary.get("p_value", 1)) <= CHANCE:
        return (
            "the release gives away whether such a person is in the data (a difference by chance alone has probability "
            f"{float(canary['p_value']):.2g})"
        )
    return f"so few trials show no difference (test at the level {CHANCE}), which is no proof that there is none"


def _promise(release: Tree) -> Any:
    promise = release["guarantee"]
    rows = [
        ("Method", str(promise["method"])),
        ("Differentially private?", "yes" if promise["differentially_private"] else "no"),
        ("Promise", str(promise["text"])),
        (
            "Epsilon",
            f"{told(promise['epsilon'])} (the smaller, the stronger)" if promise["epsilon"] is not None else "none",
        ),
        ("Protected unit", str(promise["unit"])),
        ("What it does not protect", NOT_PROTECTED.get(str(promise["method"]), "")),
    ]
    return grid("The promise", ("What", "Answer"), rows)


def _ledger(release: Tree) -> Section:
    title = "What was spent of the privacy budget?"
    spends = release.get("ledger") or ()
    if not spends:
        return Section(title, words=("There is no budget: this method has no promise that could be spent.",))
    rows = [
        (
            SPENT.get(str(s["statistic"]), str(s["statistic"]).replace("_", " ")),
            told(float(s["epsilon"])),
            told(s["sensitivity"]),
            told(float(s["scale"])),
            told(s.get("cells")),
        )
        for s in spends
    ]
    total = sum(float(s["epsilon"]) for s in spends)
    return Section(
        title,
        words=(
            f"Every statistic that was read of the source, with the noise that was added to each of its cells. The "
            f"parts add up to {told(total)}. Each further release drawn from the same people adds its own, also one "
            "that is thrown away.",
        ),
        grids=(
            grid(
                "Budget, spend by spend",
                ("What was read", "Epsilon", "Most one can change", "Scale of the noise (counts)", "Cells"),
                rows,
                (1, 2, 3, 4),
            ),
        ),
    )


def _kept(release: Tree, prefix: str) -> Section:
    figures = release.get("evaluation", {})
    timeless = not release.get("gaps", {}).get("histogram") and not figures.get("tvd_gap")
    kept = [k for k in KEPT if k[0] in figures and not (timeless and k[0] == "tvd_gap")]
    found = [(name, figures[key], words, best) for key, name, words, best in kept]
    title = "What was kept, and what was lost?"
    if not found:
        return Section(title, words=("Nothing was made that could be compared with the source.",))
    words = [
        "Compared with the source. Similarity alone flatters (one common path, repeated, would score 1), so cover "
        "stands beside it. Not noised: publish none of these figures."
    ]
    if "suppressed_records" in figures:
        words.append(
            f"The method left {percent(figures['suppressed_entries'])} of the models' entries out, which stand for "
            f"{percent(figures['suppressed_records'])} of the records; an entry that stayed rests on "
            f"{figures['mean_support']:.3g} records on average. What is left out is what is rare: rare paths and those "
            "who walk them are missing."
        )
    rows = [(name, words_, f"{value:.3f}", "1" if best else "0") for name, value, words_, best in found]
    return Section(
        title,
        words=tuple(words),
        chart=_chart([(n, v) for n, v, _, _ in found], prefix),
        grids=(grid("What sequences keep", ("Figure", "What it says", "Value", "Best"), rows, (2, 3)),),
    )


def _chart(figures: list[tuple[str, float]], prefix: str) -> Chart:
    from sqldeid.report.interactive import bars, embed

    names = [n for n, _ in figures]
    made = bars(names, [("value", [v for _, v in figures])], across="figure", up="value (0 to 1)", lying=True)
    return Chart(
        embed(made, f"{prefix}-kept"),
        "Similarity, cover and most frequent pairs are best at 1; the distances after them at 0.",
    )


def _attacks(release: Tree) -> Section:
    title = "What do attackers find?"
    attacks = release.get("attacks") or {}
    rows: list[tuple[str, str, str]] = []
    if member := attacks.get("membership"):
        found = (
            f"right in {percent(member['auc'])} of pairs (AUC {member['auc']:.3f}; guessing: 50 %; a copy of the "
            f"source: {percent(member['ceiling'])})"
        )
        does = "is shown a person who is in the data and one who is not, and says who is nearer to what was released"
        rows.append(("Is this person in the data?", does, found))
    if canary := attacks.get("canary"):
        seen = (
            f"seen in {canary['seen_with']} of {canary['releases']} releases with the person, "
            f"{canary['seen_without']} of {canary['releases']} without"
        )
        does = f"looks for a path of {canary['events']} events that one made-up person alone has"
        rows.append(("One person's path", does, f"{seen}: {_canary(canary)}"))
    if not rows:
        return Section(title, words=("None was tried in this run. That is no evidence of privacy.",))
    return Section(
        title,
        words=(
            "An AUC near .5 is no evidence of privacy: this attack is weak, and an average hides single people. A "
            "promise holds against every attacker; an attack that fails shows nothing.",
        ),
        grids=(grid("Attacks that were tried", ("Attack", "What the attacker does", "What was found"), rows),),
    )


def _made(release: Tree, prefix: str) -> Section:
    source = release.get("source", {})
    rows = [
        ("People or objects", people(source.get("objects")), told(release.get("objects"))),
        ("Events", people(source.get("events")), told(release.get("events"))),
        ("Different states", told(source.get("states")), told(release.get("verified", {}).get("states"))),
    ]
    if source.get("parts") is not None:
        rows.append(("Sequences after splitting at long gaps", people(source["parts"]), told(release.get("parts"))))
    words = []
    if (clusters := release.get("clusters")) and release.get("cluster_sizes"):
        words.append(
            f"Similar sequences were put into {told(clusters)} groups, and a model was made of each; a group's size is "
            "not a number of people that hide in it."
        )
    gaps = release.get("gaps", {})
    if gaps.get("threshold_hours") is not None:
        hours = float(gaps["threshold_hours"])
        words.append(f"Sequences were split where nothing happens for more than {hours:,.6g} hours ({gaps['rule']}).")
    grids = [grid("Source and release", ("What", "Source", "Release"), rows, (1, 2))]
    bars = gap_bars(gaps.get("histogram") or {})
    if bars:
        caption = f"Times between events of the source; fewer than {FEW} are told together with their neighbours"
        grids.append(grid(caption, ("Time to the next event", "Share"), [(n, percent(v)) for n, v in bars], (1,)))
    return Section("How was it made?", words=tuple(words), chart=_gap_chart(bars, gaps, prefix), grids=tuple(grids))


def _gap_chart(found: list[tuple[str, float]], gaps: Tree, prefix: str) -> Chart | None:
    """Times between events as bars, and where sequences were split; None where there are next to none."""
    if len(found) < 2:
        return None
    from sqldeid.report.interactive import bars, embed

    made = bars([n for n, _ in found], [("share", [v for _, v in found])], across="time to the next event", up="share")
    hours = gaps.get("threshold_hours")
    split = f" Sequences were split above {span(float(hours))}." if hours is not None else ""
    return Chart(
        embed(made, f"{prefix}-gaps"),
        f"How long it takes to the next event in the source.{split}",
    )


def gap_bars(histogram: Mapping[Any, Any]) -> list[tuple[str, float]]:
    """Shares of gaps between events by bins of one unit of ln(hours), none of fewer than `FEW` gaps.

    Parameters
    ----------
    histogram
        Gaps by bin of ln(hours), as the result has it; JSON makes its keys text.
    """
    counts: dict[int, int] = {}
    for key, n in histogram.items():
        whole = floor(int(key) * WIDTH)
        counts[whole] = counts.get(whole, 0) + int(n)
    pooled: list[tuple[int, int, int]] = []
    for low in range(min(counts, default=0), max(counts, default=-1) + 1):
        n = counts.get(low, 0)
        if pooled and pooled[-1][2] < FEW:
            first, _, few = pooled.pop()
            pooled.append((first, low + 1, few + n))
        else:
            pooled.append((low, low + 1, n))
    if len(pooled) > 1 and pooled[-1][2] < FEW:
        _, high, few = pooled.pop()
        first, _, n = pooled.pop()
        pooled.append((first, high, n + few))
    total = sum(n for _, _, n in pooled)
    if total < FEW:
        return []
    return [(f"{span(exp(low))} to {span(exp(high))}", n / total) for low, high, n in pooled]


def span(hours: float) -> str:
    """A time in words of two digits: minutes, hours or days."""
    if hours < 1:
        return f"{60 * hours:.2g} min"
    if hours < 48:
        return f"{hours:.2g} h"
    days = float(f"{hours / 24:.2g}")
    return f"{days:g} days" if days < 10 else f"{days:,.0f} days"
