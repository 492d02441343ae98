"""What is set beside the source: table 1, figure 2 with both ends, and the Friedman tests."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from scipy.stats import friedmanchisquare

sys.path.append(str(Path(__file__).resolve().parents[1]))
import gallery

matplotlib.use("Agg")
from matplotlib import pyplot as plt

Row = dict[str, object]
Rows = Sequence[Mapping[str, object]]
SIZES: tuple[Row, ...] = (
    {"data": "TRANSFERS, the source's", "objects": 4370, "sequences": 4655, "max records per object": 138}
    | {"records": 24996, "states": 85},
    {"data": "CPTEVENTS, the source's", "objects": 3171, "sequences": 3171, "max records per object": 116}
    | {"records": 25000, "states": 117},
)
"""Table 1."""
SIMILARITY = {"TRANSFERS": (0.76, 0.81), "CPTEVENTS": (0.90, 1.00)}
"""§5: similarity in the source's figure 2, over its epsilons."""
FOUND = {
    ("similarity_own", "shingle"): "1 gives the lowest distance",
    ("similarity", "shingle"): "(with shingles of 1 for all: not told)",
    ("similarity_own", "hashes"): "no difference",
    ("top20", "shingle"): "no difference",
    ("top20", "hashes"): "no difference",
    ("suppressed_entries", "shingle"): "smaller ones suppress less",
    ("suppressed_entries", "hashes"): "100 suppress least",
    ("mean_support", "shingle"): "1 gives the highest",
    ("mean_support", "hashes"): "",
}
"""What the source's Friedman tests say at 95 %."""


def friedman(runs: Rows) -> list[Row]:
    """Friedman tests by data and end: treatments are sizes of shingles, or numbers of hashes, blocks all else."""
    found: list[Row] = []
    for data, end in dict.fromkeys((run["dataset"], run["end"]) for run in runs):
        mine = [run for run in runs if (run["dataset"], run["end"]) == (data, end)]
        for (measure, factor), said in FOUND.items():
            levels = sorted({int(str(run[factor])) for run in mine})
            row: Row = {"data": data, "end": end, "measure": measure, "treatments": factor}
            apart = _apart(mine, measure)
            columns = [_blocks(apart, measure, factor, level) for level in levels]
            row |= {str(level): round(float(np.mean(column)), 4) for level, column in zip(levels, columns, strict=True)}
            found.append(row | {"p": _p(columns), "blocks": len(columns[0]), "the source's": said})
    return found


def _apart(runs: Rows, measure: str) -> Rows:
    """Runs that are no copies: what is the same in all repetitions of a setting (of the model alone) counts once."""
    settings: dict[tuple[object, ...], set[object]] = {}
    for run in runs:
        settings.setdefault(tuple(run[name] for name in ("hashes", "shingle", "epsilon")), set()).add(run[measure])
    if any(len(values) > 1 for values in settings.values()):
        return runs
    first = min(int(str(run["repetition"])) for run in runs)
    return [run for run in runs if int(str(run["repetition"])) == first]


def _blocks(runs: Rows, measure: str, factor: str, level: int) -> list[float]:
    """The measure in each block, in one order for all levels."""
    other = {"shingle": "hashes", "hashes": "shingle"}[factor]
    names = (other, "epsilon", "repetition")
    mine = [run for run in runs if int(str(run[factor])) == level]
    ordered = sorted(mine, key=lambda run: tuple(float(str(run[name])) for name in names))
    return [float(str(run[measure])) for run in ordered]


def _p(columns: list[list[float]]) -> float | None:
    """None where there are fewer than three treatments, or nothing differs anywhere."""
    if len(columns) < 3 or all(column == columns[0] for column in columns):
        return None
    return float(friedmanchisquare(*columns).pvalue)


def shown_friedman(rows: Rows) -> str:
    """By data, measure and treatment, of the source's end: means of the levels, and p."""
    lines = []
    for row in rows:
        if row["end"] != "duration":
            continue
        levels = ("1", "2", "3") if row["treatments"] == "shingle" else ("100", "250", "500")
        means = " / ".join(f"{float(str(row[level])):.3g}" for level in levels if row.get(level))
        p = "" if row["p"] in ("", None) else f"{float(str(row['p'])):.2g}"
        names = {name: row[name] for name in ("data", "measure", "treatments")}
        lines.append(
            names | {"means, 1 / 2 / 3 or 100 / 250 / 500": means, "p": p, "the source's": row["the source's"]}
        )
    return gallery.markdown(lines)


def directions(rows: Rows) -> str:
    """Figure 2 as a table: similarity (exact Jaccard of states) by epsilon and end, beside the source's."""
    lines: list[Row] = []
    for data, end in dict.fromkeys((row["dataset"], row["end"]) for row in rows):
        mine = [row for row in rows if (row["dataset"], row["end"]) == (data, end)]
        of = next(band for name, band in SIMILARITY.items() if str(data).startswith(name))
        shown = {_epsilon(row): f"{float(str(row['similarity'])):.3f}" for row in mine}
        lines.append({"data": data, "end": end} | shown | {"the source's, all ε": f"{of[0]:.2f} … {of[1]:.2f}"})
    return gallery.markdown(lines)


def _epsilon(row: Mapping[str, object]) -> str:
    value = float(str(row["epsilon"]))
    return "ε = ∞" if math.isinf(value) else f"ε = {value:g}"


def both_ends(rows: Rows, file: Path) -> None:
    """Figure 2 with both ends: similarity by epsilon, with the span that the source gives."""
    names = list(dict.fromkeys(str(row["dataset"]) for row in rows))
    figure, panels = plt.subplots(1, len(names), figsize=(3.4 * len(names), 3.2), squeeze=False, sharey=True)
    for axis, name in zip(panels[0], names, strict=True):
        low, high = next(band for start, band in SIMILARITY.items() if name.startswith(start))
        axis.axhspan(low, high, color="0.88", label="the source's")
        for end, look in (("duration", "o-"), ("state", "s--")):
            mine = [row for row in rows if (row["dataset"], row["end"]) == (name, end)]
            mean, sd = (np.array([float(str(row[f"similarity{part}"])) for row in mine]) for part in ("", "_sd"))
            axis.errorbar(range(len(mine)), mean, sd, fmt=look, ms=4, lw=1, label=f'end = "{end}"')
        axis.set_xticks(range(len(mine)), [_epsilon(row).removeprefix("ε = ") for row in mine])
        axis.set(title=name, xlabel="epsilon")
        axis.grid(alpha=0.3)
    panels[0, 0].set_ylabel("similarity to the source")
    panels[0, 0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)


def tables(
    out: Path, shown: Sequence[str], private: Sequence[str], text: Callable[[Rows, Sequence[str]], str]
) -> dict[str, str]:
    """What is printed and stands on the page, by its name there, of the files of a run."""
    sizes = [*SIZES, *gallery.read_rows(out / "table_1.csv")]
    rows = gallery.read_rows(out / "summary.csv")
    return {
        "events_study/table-1": gallery.markdown(sizes),
        "events_study/figure-2": directions(rows),
        "events_study/summary": text(rows, shown),
        "events_study/friedman": shown_friedman(gallery.read_rows(out / "friedman.csv")),
        "events_study/private": text(gallery.read_rows(out / "private_summary.csv"), private),
    }
