"""Figures 5.4, 6.1 and 6.4 to 6.6 of Mazzone (2020), each from arrays alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

from sqldeid.series.disagreement import Disagreement, Summary, first_disagreement_shares

matplotlib.use("Agg")
from matplotlib import pyplot as plt

Array = NDArray[np.float64]
Panel = tuple[str, dict[str, Array]]
"""A title, and lines by name."""
SIZE = (7.0, 4.2)
BEFORE, AFTER, SHARED = "tab:green", "tab:blue", "tab:orange"
COLOURS = {"original": BEFORE, "projection": AFTER, "shared": SHARED}


def _save(figure: plt.Figure, file: Path) -> None:
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def length_classes(stays: dict[str, Array], file: Path) -> None:
    """Figure 6.1: mean size of the classes of one length, and series left, above each length.

    Parameters
    ----------
    stays
        By name of the unit (such as "days"): the length of each stay in it, whole.
    """
    figure, panels = plt.subplots(1, len(stays), figsize=(SIZE[0] * len(stays), SIZE[1]), squeeze=False)
    for axis, (unit, lengths) in zip(panels[0], stays.items(), strict=True):
        values, counts = np.unique(lengths, return_counts=True)
        above = counts[::-1].cumsum()[::-1]
        mean_size = above / np.arange(len(values), 0, -1)
        axis.step(values, above, where="pre", color=BEFORE, label="series")
        axis.step(values, mean_size, where="pre", color=AFTER, label="mean class size")
        axis.set(yscale="log", xlabel=f"at least so many {unit} of treatment", ylabel="persons")
        axis.legend()
        axis.grid(alpha=0.3, which="both")
    _save(figure, file)


def _curve(axis: plt.Axes, at: Array, values: Array, name: str, style: str = "-") -> None:
    axis.step(at, values, where="post", color=COLOURS.get(name, "tab:red"), linestyle=style, label=name)


def one_curve(found: dict[str, Disagreement], of: str, file: Path, length: int) -> None:
    """Figures 6.4 and 6.5: mean (or minimum) disagreement by share of the class included, before and after.

    Parameters
    ----------
    of
        ``mean``, ``minimum`` or ``maximum``.
    """
    figure, panels = plt.subplots(1, 2, figsize=(SIZE[0] * 2, SIZE[1]))
    for axis, normalised in zip(panels, (False, True), strict=True):
        for name, result in found.items():
            summary: Summary = result.normalised if normalised else result.curve
            _curve(axis, 100 * result.inclusion, getattr(summary, of), name)
        what = "disagreement / disagreement at 100 %" if normalised else "disagreement"
        axis.set(xscale="log", xlabel="inclusion (% of the class)", ylabel=f"{of} {what}")
        axis.set_title(f"series of {length} steps")
        axis.legend()
        axis.grid(alpha=0.3, which="both")
    _save(figure, file)


def summary_and_curves(result: Disagreement, name: str, file: Path, length: int) -> None:
    """Figure 5.4: above the normalised summary of all curves, below 100 of them."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(SIZE[0], 2 * SIZE[1]), sharex=True)
    at = 100 * result.inclusion
    for of, style in (("maximum", ":"), ("mean", "-"), ("minimum", "--")):
        above.step(at, getattr(result.normalised, of), where="post", color=COLOURS[name], linestyle=style, label=of)
    above.set(ylabel="normalised disagreement", title=f"{name}: all series of {length} steps")
    above.legend()
    below.step(at, result.curves.T, where="post", color=COLOURS[name], alpha=0.25, linewidth=0.7)
    below.set(xscale="log", xlabel="inclusion (% of the class)", ylabel="disagreement")
    below.set_title(f"{len(result.curves)} of the {len(result.rows)} curves")
    for axis in (above, below):
        axis.grid(alpha=0.3, which="both")
    _save(figure, file)


def first_values(found: dict[str, Disagreement], file: Path, length: int) -> None:
    """Figure 6.6: share of series whose first disagreement is not larger than x."""
    figure, axis = plt.subplots(figsize=SIZE)
    largest = max(float(np.nanmax(result.first)) for result in found.values())
    at = np.geomspace(max(largest / 1e4, 1e-4), largest * 1.2, 400)
    for name, result in found.items():
        _curve(axis, at, 100 * first_disagreement_shares(result.first, at), name)
    axis.set(xscale="log", ylim=(-2, 104), xlabel="first disagreement", ylabel="% of series not above it")
    axis.set_title(f"series of {length} steps")
    axis.legend(loc="center left")
    axis.grid(alpha=0.3, which="both")
    _save(figure, file)


def examples(panels: list[Panel], file: Path) -> None:
    """Like figures 6.2 and 6.3: series of a person and what is released of them."""
    figure, axes = plt.subplots(len(panels), 1, figsize=(SIZE[0], 2.4 * len(panels)), squeeze=False)
    for axis, (title, lines) in zip(axes[:, 0], panels, strict=True):
        for name, values in lines.items():
            axis.plot(np.arange(len(values)), values, color=COLOURS.get(name, "tab:red"), label=name, marker=".", ms=3)
        axis.set(title=title, xlabel="step")
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small", ncols=4)
    _save(figure, file)


def attacks(rows: list[tuple[str, dict[str, float]]], file: Path) -> None:
    """Share singled out by each attacker, for each release."""
    figure, axis = plt.subplots(figsize=(SIZE[0] * 1.5, SIZE[1] * 1.2))
    names = list(rows[0][1])
    height = 0.8 / len(rows)
    colours = ["tab:gray", "tab:red", AFTER, SHARED]
    for number, (release, shares) in enumerate(rows):
        place = np.arange(len(names)) + number * height
        axis.barh(place, [100 * shares[n] for n in names], height, label=release, color=colours[number % 4])
    axis.set_yticks(np.arange(len(names)) + 0.4 - height / 2, names)
    axis.invert_yaxis()
    axis.axvline(20, color="black", linewidth=0.8, linestyle=":")
    axis.set(xlabel="% of persons singled out", xlim=(0, 100))
    axis.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=len(rows))
    axis.grid(alpha=0.3, axis="x")
    _save(figure, file)


def trust(rows: list[Mapping[str, object]], source: Mapping[str, float], file: Path) -> None:
    """Table 6.4: the test's ROC-AUC in four trust settings, by data and method, with the middle 95 % of the splits."""
    mine = [row for row in rows if row["outcome"] == "death" and row["originals"] == "after the cut"]
    names = list(dict.fromkeys(str(row["data"]) for row in mine))
    methods = list(dict.fromkeys(str(row["method"]) for row in mine))
    figure, panels = plt.subplots(1, len(names), figsize=(4.2 * len(names), 3.6), squeeze=False, sharey=True)
    for axis, name in zip(panels[0], names, strict=True):
        for number, method in enumerate(methods):
            chosen = [row for row in mine if (row["data"], row["method"]) == (name, method)]
            mean, low, high = (
                np.array([float(str(row[f"test_roc{part}"])) for row in chosen]) for part in ("", "_low", "_high")
            )
            at = np.arange(len(chosen)) + (number - (len(methods) - 1) / 2) * 0.14
            axis.errorbar(at, mean, [mean - low, high - mean], fmt="o", ms=3, lw=0.9, label=method)
        axis.plot(range(len(source)), list(source.values()), "kx", label="the source's")
        axis.set_xticks(range(len(source)), [setting.replace(" / ", "\n") for setting in source], fontsize="small")
        axis.set(title=name, ylim=(0.3, 1))
        axis.grid(alpha=0.3, axis="y")
    panels[0, 0].set_ylabel("ROC-AUC, test (train / test)")
    panels[0, -1].legend(fontsize="x-small", loc="lower left")
    _save(figure, file)
