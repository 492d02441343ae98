"""The tables of `study.py` as the page of studies shows them, from the files that it writes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
import gallery

Rows = Sequence[Mapping[str, str]]
Row = dict[str, object]
SOURCE_TARGETS = {"source": "0.48, 9.62", "weighted": "2.13, 9.41"}
"""§6.2, tables 6.1 and 6.2: unfeasibility and distortion, mean over lengths."""

NAMES = {"source": "mazzone2020"}
FILES = ("durations", "table_6_1", "table_6_2", "attacks", "tables_6_3_and_6_4", "disagreement")
"""What is recorded of a run on the Challenge; of MIMIC-III's demo `mimic_attacks` as well."""


def lengths(rows: Rows) -> str:
    """§6.1: who is moved, and what is lost, by method."""
    return gallery.markdown(
        [
            {
                "method": NAMES.get(row["method"], row["method"]),
                "k": row["k"],
                "stays": row["persons"],
                "moved": row["moved"],
                "hours lost a stay": f"{float(row['lost_mean']):.2f} ± {float(row['lost_sd']):.2f}",
                "share lost": f"{float(row['share_lost_mean']):.1%} ± {float(row['share_lost_sd']):.1%}",
                "alone before / after": f"{row['alone_before']} / {row['alone_after']}",
            }
            for row in rows
        ]
    )


def targets(exact: Rows, genetic: Rows) -> str:
    """Tables 6.1 and 6.2: means over lengths, the source's beside ours."""
    lines: list[Row] = []
    for row in exact:
        if row["length"] == "all":
            name = NAMES.get(row["method"], row["method"])
            theirs = SOURCE_TARGETS.get(row["method"], "") if row["targets"] == "source" else ""
            lines.append({"method": name, "targets": row["targets"]} | _met(row) | {"the source's": theirs})
    for row in genetic:
        if row["length"] == "all":
            line: Row = {"method": f"genetic, {row['fitness']}", "targets": "source"}
            lines.append(line | _met(row) | {"the source's": SOURCE_TARGETS.get(row["fitness"], "")})
    return gallery.markdown(lines)


def _met(row: Mapping[str, str]) -> Row:
    return {
        "series": row["series"],
        "unfeasibility": f"{float(row['unfeasibility']):.2f}",
        "distortion": f"{float(row['distortion']):.2f}",
    }


def singled_out(rows: Rows) -> str:
    """Share of persons whose own release is the unique nearest, by what is known; last the gain over chance."""
    releases = list(dict.fromkeys(row["release"] for row in rows))
    cell = {(row["release"], row["attacker"]): row for row in rows}
    lines: list[Row] = []
    for attacker in dict.fromkeys(row["attacker"] for row in rows):
        line: Row = {"knows": attacker}
        line |= {NAMES.get(name, name): f"{float(cell[name, attacker]['sole']):.1%}" for name in releases}
        shared = cell["shared", attacker]
        line["shared, worst length"] = f"{float(shared['worst_sole']):.1%}"
        lines.append(line | {"shared, over chance": f"{float(shared['advantage']):+.3f}"})
    return gallery.markdown(lines)


def trust(rows: Rows) -> str:
    """Tables 6.3 and 6.4 with five variables: ROC-AUC on the test set by release, and what it cost."""
    lines: dict[str, Row] = {}
    for row in rows:
        base: Row = {
            "method": NAMES.get(row["release"], row["release"]),
            "distortion": f"{float(row['distortion']):.2f}",
        }
        line = lines.setdefault(row["release"], base)
        changed = "" if row["training / test"] == "orig. / orig." else f" ({_change(row)})"
        line[row["training / test"]] = f"{float(row['test_roc_auc']):.3f}{changed}"
    return gallery.markdown(list(lines.values()))


def _change(row: Mapping[str, str]) -> str:
    return f"{float(row['test_roc_auc_change']):+.3f} ± {float(row['test_roc_auc_change_sd']):.3f}"


def disagreement(rows: Rows) -> str:
    """§6.3: area under the curve of disagreement, and the first value, before and after."""
    return gallery.markdown(
        [
            {
                "release": row["release"],
                "length": row["length"],
                "series": row["series"],
                "Δ-AUC, mean": f"{float(row['delta_auc_mean']):.0f}",
                "Δ-AUC, least": f"{float(row['delta_auc_min']):.0f}",
                "first, median": f"{float(row['first_median']):.3f}",
                "first is 0": f"{float(row['first_zero_share']):.1%}",
            }
            for row in rows
        ]
    )


def tables(results: Path) -> dict[str, str]:
    """What is printed and stands on the page, by its name there, of the files of a run."""
    rows = {name: gallery.read_rows(results / f"{name}.csv") for name in FILES}
    found = {
        "series_study/five-lengths": lengths(rows["durations"]),
        "series_study/five-targets": targets(rows["table_6_1"], rows["table_6_2"]),
        "series_study/five-singled-out": singled_out(rows["attacks"]),
        "series_study/five-trust": trust(rows["tables_6_3_and_6_4"]),
        "series_study/five-disagreement": disagreement(rows["disagreement"]),
    }
    if (results / "mimic_attacks.csv").exists():
        found["series_study/five-demo"] = singled_out(gallery.read_rows(results / "mimic_attacks.csv"))
    return found
