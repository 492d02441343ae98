"""Sections 6.1 to 6.3 of Mazzone (2020): durations, k and heuristics, the genetic grid, an attack by the variance.

python tuning.py                         on a generated hospital
python tuning.py --challenge FOLDER      on the PhysioNet Challenge 2012, each stay cut to 2 to 47 hours by its number
python tuning.py --full                  all 81 settings of the genetic algorithm, instead of one change at a time
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import click
import figures
import numpy as np
from cases import generate, generated
from cohorts import CHALLENGE, HERE, SEED, Cohort, complete, load_challenge, release, store_complete
from numpy.typing import NDArray

from sqldeid.series.attack_report import class_features
from sqldeid.series.blocks import features_of
from sqldeid.series.disagreement import euclidean, measure_disagreement
from sqldeid.series.durations import assign, report
from sqldeid.series.perturb import GeneticSettings
from sqldeid.series.perturb.genetic import evolve

sys.path.append(str(HERE.parent))
import gallery

Array = NDArray[np.float64]
Row = dict[str, object]
STAYS = 41_901
"""Series of §6.1."""
GRID = {
    "mutation_sd": (3, 2, 5),
    "mutation_probability": (0.2, 0.1, 0.4),
    "tournament": (5, 10, 15),
    "parents": (2, 3, 4),
}
"""§6.2; the best for the source first (it does not tell its best number of parents)."""
MOST = [6000]
"""Iterations of the genetic algorithm at most."""
SHARES = (0.05, 0.2)
"""Of a class included, at which disagreement is shown."""
LOST = {50: "5.93 ± 21.13 (5.98 ± 17.65 %)", 100: "6.78 ± 24.15 (8.67 ± 20.54 %)"}
"""§6.1: records lost a series, and their share."""
TRUNCATED = (
    "SELECT recordid, minute, parameter, value FROM measurements "
    "WHERE value >= 0 AND minute < 60 * (2 + recordid * 7919 % 46)"
)
"""Nearly all stays of the Challenge last 48 hours: cut like this they have 46 lengths of about 85 stays."""


def durations(patients: int) -> list[Row]:
    """§6.1: hours of generated ICU stays, made common; k = 50 and 100."""
    with generate(patients, ("icustays",)) as connection:
        read = connection.execute("SELECT los FROM mimiciii.icustays ORDER BY icustay_id LIMIT ?", [STAYS]).fetchnumpy()
    hours = np.maximum(np.round(np.asarray(read["los"], dtype=np.float64) * 24), 1).astype(np.int64)
    rows: list[Row] = []
    for k, method in product((50, 100), ("source", "optimal")):
        found = report(hours, assign(hours, k, method), k, method)
        lost = f"{found.steps_lost_mean:.2f} ± {found.steps_lost_sd:.2f}"
        share = f"{100 * found.share_lost_mean:.2f} ± {100 * found.share_lost_sd:.2f} %"
        row: Row = {"k": k, "method": {"source": "mazzone2020"}.get(method, method), "stays": len(hours)}
        row |= {"moved": found.moved, "lost hours a stay": f"{lost} ({share})", "the source's": LOST[k]}
        rows.append(row | {"alone before": found.before.alone, "lengths before / after": _lengths(found)})
    return rows


def _lengths(found: object) -> str:
    return f"{found.before.lengths} / {found.after.lengths}"


def classes(connection: object, part: Mapping[str, object]) -> list[Row]:
    """§6.3: k of 5 and 10, both heuristics; and the variance left out."""
    rows: list[Row] = []
    for k, heuristic, left_out in (
        *((k, heuristic, "") for k, heuristic in product((5, 10), ("range", "diversity"))),
        (10, "range", "classes"),
        (10, "range", "targets"),
    ):
        privacy = {"k": k, "heuristic": heuristic, "nulls": "source", "targets": "source"}
        made = {"perturb": {"method": "source"}, "privacy": privacy}
        _, blocks, cohorts = release(connection, part, left_out=left_out, **made)
        gap = np.concatenate([np.abs(b.released - b.original).reshape(-1) for b in blocks])
        row: Row = {
            "k": k,
            "heuristic": heuristic,
            "variance": {"": "", "classes": "forms no classes"}.get(left_out, "kept"),
        }
        rows.append(row | {"distortion": round(float(np.nanmean(gap)), 3)} | _disagreement(cohorts))
    return rows


def _disagreement(cohorts: list[Cohort]) -> Row:
    """Means over persons of all lengths; the attacker knows all four features, as they are."""
    auc, first, curves = [], [], []
    for cohort in cohorts:
        known, released = class_features(cohort.original), class_features(cohort.released)
        found = measure_disagreement(known, released, euclidean(cohort.original, cohort.released))
        auc.append(found.auc)
        first.append(found.first)
        curves.append([np.interp(share, found.inclusion, found.curve.mean) for share in SHARES])
    all_first = np.concatenate(first)
    shown = dict(
        zip((f"disagreement at {share:.0%}" for share in SHARES), np.mean(curves, axis=0).tolist(), strict=True)
    )
    return shown | {
        "Δ-AUC": float(np.nanmean(np.concatenate(auc))),
        "first, median": float(np.nanmedian(all_first)),
        "lengths": len(cohorts),
    }


Problem = tuple[Array, Array, NDArray[np.int64], NDArray[np.int64]]
"""Series, targets, persons and variables."""


def grid(problems: list[Problem], full: bool) -> list[Row]:
    """§6.2: the genetic algorithm's settings on complete series, as means over lengths; the best drawn."""
    best = {name: values[0] for name, values in GRID.items()}
    settings = [best] + [best | {name: value} for name, values in GRID.items() for value in values[1:]]
    if full:
        settings = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    rows: list[Row] = []
    for chosen in settings:
        judged = np.concatenate([_judged(problem, chosen) for problem in problems])
        means = dict(zip(("unfeasibility", "distortion", "iterations"), judged.mean(axis=0).tolist(), strict=True))
        rows.append({**chosen, **means, "the source's": "2.13, 9.41, 1728" if chosen == best else ""})
        click.echo(f"{chosen}: {means}", err=True)
    return rows


def _problem(connection: object, series: Array, stays: int) -> Problem:
    """Series, targets, persons and variables of some stays of one length."""
    part = store_complete(connection, series)
    made = {"perturb": {"method": "projection"}, "privacy": {"k": 5, "nulls": "source", "targets": "source"}}
    shaped, blocks, _ = release(connection, part, **made)
    rows = np.concatenate([b.rows for b in blocks])
    original = np.concatenate([b.original for b in blocks])
    person = shaped.measured.person_at[rows]
    mine = np.flatnonzero(np.isin(person, np.random.default_rng(SEED).permutation(int(person.max()) + 1)[:stays]))
    variable = shaped.measured.features.variable_number[rows[mine]]
    return original[mine], shaped.classes.targets.values[rows[mine]], person[mine], variable


def evolved(problem: Problem, chosen: Mapping[str, float]) -> tuple[Array, NDArray[np.int64]]:
    """What the genetic algorithm makes of the series, and after how many iterations."""
    original, targets, person, variable = problem
    whole = {name: int(chosen[name]) for name in ("tournament", "parents")}
    shares = {name: chosen[name] for name in ("mutation_sd", "mutation_probability")}
    settings = GeneticSettings(most_iterations=MOST[0], **shares, **whole)
    done = evolve(original, targets, settings, SEED, person, variable)
    return done.released, done.iterations


def _judged(problem: Problem, chosen: Mapping[str, float]) -> Array:
    """(series, 3): unfeasibility, distortion, iterations."""
    released, iterations = evolved(problem, chosen)
    gap = np.abs(features_of(released) - problem[1]).sum(axis=1)
    return np.stack([gap, np.abs(released - problem[0]).mean(axis=1), iterations], axis=1)


def worst_and_best(problem: Problem) -> list[figures.Panel]:
    """Figures 6.2 and 6.3: of the series far from their variance's target the most, and the least, distorted one."""
    released, _ = evolved(problem, {name: values[0] for name, values in GRID.items()})
    before, after = features_of(problem[0]), features_of(released)
    distortion = np.abs(released - problem[0]).mean(axis=1)
    able = np.flatnonzero(before[:, 1] > np.median(before[:, 1]))
    chosen = (int(np.argmax(distortion)), int(able[np.argmin(distortion[able])]))
    panels = []
    for row in chosen:
        lines = {"original": problem[0][row], "genetic": released[row]}
        parts = zip(("from", "target", "reached"), (before[row], problem[1][row], after[row]), strict=True)
        panels.append(("; ".join(f"{name} {_features(of)}" for name, of in parts), lines))
    return panels


def _features(of: Array) -> str:
    """Minimum, maximum, mean and variance, in the order of the source's captions."""
    return "(" + ", ".join(f"{of[i]:.1f}" for i in (2, 3, 0, 1)) + ")"


def tables(results: Path) -> dict[str, str]:
    """What is printed and stands on the page, by its name there, of the files of a run."""
    names = ("durations", "classes", "grid")
    rows = {name: gallery.read_rows(results / f"tuning_{name}.csv") for name in names}
    return {f"series_study/{name}": gallery.markdown([_rounded(row) for row in found]) for name, found in rows.items()}


def _rounded(row: Mapping[str, str]) -> Row:
    def cell(text: str) -> object:
        return float(text) if "." in text and text.replace(".", "").isdigit() else text

    return {name: cell(text) for name, text in row.items()}


def run(folder: Path | None, into: Path, patients: int, stays: int, full: bool) -> None:
    """Everything, into files."""
    gallery.write_rows(into / "tuning_durations.csv", durations(max(patients * 35, 50)))
    if folder is None:
        case = generated(patients)
        connection, part = case.load(), {**case.part, "drop": [*case.part["drop"], "Temperature", "Respiratory rate"]}
        lengths = (5, 12, 25, 47)
    else:
        connection, part = load_challenge(folder), {**CHALLENGE, "source": {"query": TRUNCATED}, "min_steps": 3}
        lengths = (5, 12, 25, 40)
    with connection:
        gallery.write_rows(into / "tuning_classes.csv", classes(connection, part))
        cohorts = release(connection, part, perturb={"method": "projection"})[2]
        problems = [_problem(connection, complete(cohorts, length), stays) for length in lengths]
        drawn = _problem(connection, complete(cohorts, lengths[-2]), 4 * stays)
    gallery.write_rows(into / "tuning_grid.csv", grid(problems, full))
    figures.examples(worst_and_best(drawn), into / "figure_6_2_and_6_3.svg")


@click.command(help=__doc__)
@click.option("--challenge", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), default=Path("series_tuning"))
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="A page that the tables are put into.")
@click.option("--again", is_flag=True, help="Print the results that are in --into; run nothing.")
@click.option("--patients", default=1000, show_default=True, help="Of the generated hospital.")
@click.option("--stays", default=8, show_default=True, help="Of each length that the genetic algorithm works on.")
@click.option("--quick", is_flag=True, help="Five iterations of the genetic algorithm: whether it runs.")
@click.option("--full", is_flag=True, help="All 81 settings, 20 stays of each length.")
def main(
    folder: Path | None, into: Path, page: Path | None, again: bool, patients: int, stays: int, quick: bool, full: bool
) -> None:
    """Run it."""
    MOST[0] = 5 if quick else MOST[0]
    if not again:
        run(folder, into, patients, 20 if full else stays, full)
    gallery.tell(tables(into), page)


if __name__ == "__main__":
    main()
