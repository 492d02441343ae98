"""How risky source and release are, in words and as shares of rows by the size of their class."""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup

from sqldeid.report.words import binned, odds
from sqldeid.result import Tree


def risks(source: Tree, left: Tree, unit: str) -> list[tuple[str, str, str, str]]:
    """By attacker: what he knows, and his chance in source and release."""
    whose = "the person's row" if unit == "person" else "that row"
    journalist = (
        f"does not know whether the {unit} is in it; taken as the prosecutor's, for no population was given"
        if left["journalist_is_prosecutor"]
        else f"does not know whether the {unit} is in it"
    )
    return [
        (
            "Prosecutor",
            f"knows that the {unit} is in it, and seeks {whose} (worst class)",
            odds(source["prosecutor"]),
            odds(left["prosecutor"]),
        ),
        (
            "Journalist",
            journalist,
            odds(source["journalist"]),
            odds(left["journalist"]),
        ),
        (
            "Marketer",
            "tries to match everybody: share of all that would be right",
            f"{100 * source['marketer']:.3g} %",
            f"{100 * left['marketer']:.3g} %",
        ),
    ]


def size_bins(release: Tree) -> list[tuple[str, str, str]]:
    """Share of rows by class size, in source and release; a dash where a bin is not among theirs.

    Small bins are told together in source and release apart, so that neither hides the other: sizes that the source
    has of few rows would else blur those of the release.
    """
    return [(label, _percent(a), _percent(b)) for label, a, b in _compared(release)]


def sizes_chart(release: Tree, name: str) -> Markup:
    """The same as bars; none where a bin is not theirs."""
    from sqldeid.report.interactive import bars, embed

    compared = _compared(release)
    shown = [("source", [a for _, a, _ in compared]), ("release", [b for _, _, b in compared])]
    sized = "persons" if release.get("persons") else "rows"
    figure = bars(
        [label for label, _, _ in compared], shown, across=f"{sized} in the class", up=f"share of {sized} (%)"
    )
    return embed(figure, name)


def asked_k(release: Tree) -> int | None:
    """The k that was asked for; None where none was."""
    return next((int(c["asked"]) for c in release["criteria"] if c["name"] == "k-anonymity"), None)


def _compared(release: Tree) -> list[tuple[str, float | None, float | None]]:
    """By bin: the share of the source's rows and of the release's, in per cent; None where it is not theirs."""
    k = asked_k(release)
    both = [binned(release["risk"][which]["class_sizes"], k) for which in ("source", "release")]
    source, left = ({b.label: 100 * b.rows / max(sum(b.rows for b in found), 1) for b in found} for found in both)
    ordered = sorted({b for found in both for b in (replace(b, rows=0) for b in found)}, key=lambda b: b.sizes)
    return [(b.label, source.get(b.label), left.get(b.label)) for b in ordered]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1f} %"
