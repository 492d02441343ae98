"""How risky source and release are, in words and as shares of rows by the size of their class."""

from __future__ import annotations

from collections.abc import Mapping

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


def size_bins(source: Tree, left: Tree) -> list[tuple[str, str, str]]:
    """Share of rows by class size, in source and release; both with the bins of the source."""
    shares = [_shares(risk, _labels(source, left)) for risk in (source, left)]
    return [(label, f"{a:.1f} %", f"{b:.1f} %") for label, a, b in zip(_labels(source, left), *shares, strict=True)]


def sizes_chart(release: Tree, name: str) -> Markup:
    """The same as bars."""
    from sqldeid.report.interactive import bars, embed

    found: Mapping[str, Tree] = release["risk"]
    labels = _labels(found["source"], found["release"])
    shown = [(title, _shares(found[title], labels)) for title in ("source", "release")]
    sized = "persons" if release.get("persons") else "rows"
    return embed(bars(labels, shown, across=f"{sized} in the class", up=f"share of {sized} (%)"), name)


def _labels(source: Tree, left: Tree) -> list[str]:
    labels = dict.fromkeys(label for risk in (source, left) for label, _ in binned(risk["class_sizes"]))
    return sorted(labels, key=lambda label: int(label.split()[0]))


def _shares(risk: Tree, labels: list[str]) -> list[float]:
    rows = dict(binned(risk["class_sizes"]))
    return [100 * rows.get(label, 0) / max(sum(rows.values()), 1) for label in labels]
