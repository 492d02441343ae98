"""What de-identifying clinical time series gives and costs: chapter 6 of Mazzone (2020), redone on public data.

    python study.py                                 on a generated hospital
    python study.py CHALLENGE                       set-a.parquet and outcomes-a.parquet of the PhysioNet Challenge 2012
    python study.py CHALLENGE --mimic FOLDER        and CHARTEVENTS, ICUSTAYS of MIMIC-III or its demo
    python study.py CHALLENGE --quick               a few stays, a few iterations: whether it runs
    python study.py CHALLENGE --into RESULTS        a folder for tables and plots

Redoes tables 6.1 to 6.4 and figures 5.4, 6.1 and 6.4 to 6.6, and adds who is singled out by which knowledge.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import duckdb
import figures
import numpy as np
import shown
from cases import STAYS, generated
from cohorts import CHALLENGE, HERE, MIMIC, MIMIC_DROP, SEED, Cohort, complete, load_challenge, load_mimic, release
from cohorts import store_complete as store
from numpy.typing import NDArray

from sqldeid.series.attack_report import AttackReport, class_features
from sqldeid.series.blocks import features_of
from sqldeid.series.disagreement import Disagreement, euclidean, measure_disagreement, warped
from sqldeid.series.perturb import GeneticSettings
from sqldeid.series.perturb.genetic import evolve
from sqldeid.series.shape import Shaped
from sqldeid.series.utility import measure_utility

sys.path.append(str(HERE.parent))
import gallery

Array = NDArray[np.float64]
Row = dict[str, object]
RELEASES: dict[str, dict[str, object]] = {
    "source": {"perturb": {"method": "source"}, "privacy": {"k": 5, "nulls": "source", "targets": "source"}},
    "projection": {"perturb": {"method": "projection"}, "privacy": {"k": 5, "nulls": "null-aware"}},
    "shared": {"privacy": {"k": 5}},
}
"""The source's method as published; the exact one with targets in reach; the default, which protects the shape, too."""


@dataclass(frozen=True)
class Size:
    """How much is done.

    Parameters
    ----------
    stays
        Of the Challenge, None for all; of the generated hospital as many patients, None for 1,000.
    lengths
        Of tables 6.1 and 6.2.
    sample
        Persons of each length that the genetic algorithm works on.
    genetic
        Its idle and most iterations.
    warped
        Persons whose disagreement by dynamic time warping is measured.
    splits
        Of the outcome model's data.
    """

    stays: int | None
    lengths: tuple[int, ...]
    sample: int
    genetic: GeneticSettings
    warped: int
    splits: int


FULL = Size(None, (5, 12, 25, 36, 47), 20, GeneticSettings(), 50, 10)
QUICK = Size(250, (5, 12), 2, GeneticSettings(idle_iterations=15, most_iterations=40), 3, 1)


def feasibility(
    connection: duckdb.DuckDBPyConnection, cohorts: list[Cohort], size: Size
) -> tuple[list[Row], list[Row]]:
    """Tables 6.1 and 6.2: unfeasibility and distortion by length, on complete series."""
    first, second = [], []
    for length in size.lengths:
        part = store(connection, complete(cohorts, length))
        for method in ("source", "projection"):
            for targets in ("source", "reachable"):
                settings = {
                    "perturb": {"method": method},
                    "privacy": {"k": 5, "nulls": "null-aware", "targets": targets},
                }
                shaped, blocks, _ = release(connection, part, **settings)
                rows = np.concatenate([b.rows for b in blocks])
                original, released = (np.concatenate([getattr(b, n) for b in blocks]) for n in ("original", "released"))
                wanted = shaped.classes.targets.values[rows]
                row = {"length": length, "method": method, "targets": targets} | _judged(original, released, wanted)
                if (method, targets) == ("projection", "source"):
                    second += _genetic(shaped, rows, original, length, size)
                first.append(row)
    return _with_mean(first, ("method", "targets")), _with_mean(second, ("fitness",))


def _judged(original: Array, released: Array, targets: Array) -> Row:
    found = features_of(released)
    exact = np.abs(found - targets)[:, :2] / np.maximum(1.0, np.abs(targets[:, :2]))
    return {
        "series": len(original),
        "unfeasibility": float(np.abs(found - targets).sum(axis=1).mean()),
        "distortion": float(np.abs(released - original).mean()),
        "mean_variance_gap": float(exact.max()),
    }


def _genetic(shaped: Shaped, rows: NDArray[np.int64], original: Array, length: int, size: Size) -> list[Row]:
    """The genetic algorithm on a sample of persons, by fitness."""
    person = shaped.measured.person_at[rows]
    chosen = np.random.default_rng(SEED).permutation(int(person.max()) + 1)[: size.sample]
    mine = np.flatnonzero(np.isin(person, chosen))
    variable = shaped.measured.features.variable_number[rows[mine]]
    targets = shaped.classes.targets.values[rows[mine]]
    result: list[Row] = []
    for fitness in ("weighted", "annealing", "dampened", "capped"):
        settings = GeneticSettings(
            fitness=fitness,
            idle_iterations=size.genetic.idle_iterations,
            most_iterations=size.genetic.most_iterations,
        )
        done = evolve(original[mine], targets, settings, SEED, person[mine], variable)
        row = {"length": length, "fitness": fitness} | _judged(original[mine], done.released, targets)
        result.append(row | {"iterations": float(done.iterations.mean())})
    return result


def _with_mean(rows: list[Row], by: Sequence[str]) -> list[Row]:
    """The rows, and the mean over lengths of each kind."""
    kinds = list(dict.fromkeys(tuple(row[name] for name in by) for row in rows))
    means: list[Row] = []
    for kind in kinds:
        mine = [row for row in rows if tuple(row[name] for name in by) == kind]
        numbers = [n for n, v in mine[0].items() if isinstance(v, float)]
        mean = {n: float(np.mean([row[n] for row in mine])) for n in numbers}
        means.append(mine[0] | {"length": "all"} | mean | {"series": sum(int(str(row["series"])) for row in mine)})
    return rows + means


def disagreements(cohorts: dict[str, list[Cohort]], length: int) -> dict[str, Disagreement]:
    """Before, and after each release, for the persons of one length; all of a release are candidates."""
    found: dict[str, Disagreement] = {}
    for name, group in cohorts.items():
        cohort = next(c for c in group if c.length == length)
        known = class_features(cohort.original)
        if not found:
            distances = euclidean(cohort.original, cohort.original)
            found["original"] = measure_disagreement(known, known, distances)
        distances = euclidean(cohort.original, cohort.released)
        found[name] = measure_disagreement(known, class_features(cohort.released), distances)
    return found


def disagreement_rows(found: dict[str, Disagreement], length: int) -> list[Row]:
    """Summaries of the curves."""
    return [
        {
            "length": length,
            "release": name,
            "series": len(result.rows),
            "delta_auc_mean": float(np.nanmean(result.auc)),
            "delta_auc_min": float(np.nanmin(result.auc)),
            "first_median": float(np.nanmedian(result.first)),
            "first_zero_share": float((result.first < 1e-4).mean()),
        }
        for name, result in found.items()
    ]


def attack_rows(groups: dict[str, list[Cohort]]) -> tuple[list[Row], list[tuple[str, dict[str, float]]]]:
    """Who is singled out: as a table, and for the figure."""
    table: list[Row] = []
    drawn: list[tuple[str, dict[str, float]]] = []
    unchanged = [Cohort(c.original, c.original, c.feature_class, c.person_number) for c in groups["projection"]]
    for name, cohorts in {"original": unchanged, **groups}.items():
        report = AttackReport(seed=SEED, most_attacked=500)
        for cohort in cohorts:
            report.add(cohort.original, cohort.released, cohort.feature_class)
        flat = dict(_flat(report.to_dict()))
        table += [{"release": name, "attacker": attacker} | shares for attacker, shares in flat.items()]
        drawn.append((name, {attacker: float(str(shares["sole"])) for attacker, shares in flat.items()}))
    return table, drawn


def _flat(found: Mapping[str, object], name: str = "") -> list[tuple[str, Row]]:
    if "sole" in found:
        return [(name, {n: v for n, v in found.items() if not isinstance(v, list)})]
    parts = ((f"{name} {n}".strip().replace("_", " "), v) for n, v in found.items())
    return [pair for n, v in parts if isinstance(v, Mapping) for pair in _flat(v, n)]


def trust_rows(groups: dict[str, tuple[Shaped, list[Cohort]]], splits: int) -> list[Row]:
    """Tables 6.3 and 6.4, for each release; and the distortion, over records that both sides have."""
    rows: list[Row] = []
    for name, (shaped, cohorts) in groups.items():
        outcomes = shaped.outcomes
        if outcomes is None:
            continue
        found = measure_utility(((c.original, c.released, outcomes.of(c.person_number)) for c in cohorts), splits)
        changes = np.concatenate([np.abs(c.released - c.original).reshape(-1) for c in cohorts])
        base = {"release": name, "distortion": float(np.nanmean(changes))}
        settings = found.get("settings")
        if isinstance(settings, Mapping):
            rows += [base | {"training / test": setting} | scores for setting, scores in settings.items()]
        else:
            rows.append(base | found)
    return rows


def write(folder: Path, name: str, rows: list[Row]) -> None:
    """A table as CSV."""
    names = list(dict.fromkeys(key for row in rows for key in row))
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, names)
        writer.writeheader()
        writer.writerows(rows)


def duration_rows(shaped: dict[str, Shaped]) -> list[Row]:
    """§6.1: what common lengths cost, and how lengths single people out before and after."""
    return [
        {
            "method": name,
            "k": s.durations.k,
            "persons": s.durations.persons,
            "dropped": s.durations.dropped,
            "moved": s.durations.moved,
            "classes": s.durations.classes,
            "lost_mean": s.durations.steps_lost_mean,
            "lost_sd": s.durations.steps_lost_sd,
            "share_lost_mean": s.durations.share_lost_mean,
            "share_lost_sd": s.durations.share_lost_sd,
            "alone_before": s.durations.before.alone,
            "below_k_before": s.durations.before.below_k,
            "alone_after": s.durations.after.alone,
        }
        for name, s in shaped.items()
    ]


FIVE = ["Temperature", "Respiratory rate"]
"""Of the generated hospital's seven variables those that are dropped, so that the Challenge's five are left."""


def opened(folder: Path | None, size: Size) -> tuple[duckdb.DuckDBPyConnection, dict[str, object]]:
    """The Challenge 2012, or the generated hospital, and the part of a job that reads it."""
    if folder is not None:
        return load_challenge(folder, size.stays), CHALLENGE
    case = generated(1_000 if size.stays is None else size.stays)
    labels = {"source": {"query": STAYS["death"].replace(" FROM", " AS died FROM", 1)}, "person": "icustay_id"}
    dropped = [*case.part["drop"], *FIVE]
    return case.load(), {**case.part, "drop": dropped, "min_steps": 12, "labels": labels | {"column": "died"}}


def one_hospital(folder: Path | None, into: Path, size: Size) -> Array:
    """Everything on the Challenge 2012, or the generated hospital; the lengths of its stays, in hours."""
    connection, part = opened(folder, size)
    with connection:
        made = {name: release(connection, part, **settings) for name, settings in RELEASES.items()}
        queued = release(connection, part, durations={"k": 50, "method": "source"})[0]
        write(into, "durations", duration_rows({"optimal": made["projection"][0], "source": queued}))
        first, second = feasibility(connection, made["projection"][2], size)
    write(into, "table_6_1", first)
    write(into, "table_6_2", second)
    groups = {name: cohorts for name, (_, _, cohorts) in made.items()}
    table, drawn = attack_rows(groups)
    write(into, "attacks", table)
    figures.attacks(drawn, into / "attacks.png")
    draw_disagreement(groups, into, size)
    write(
        into,
        "tables_6_3_and_6_4",
        trust_rows({name: (shaped, c) for name, (shaped, _, c) in made.items()}, size.splits),
    )
    return np.asarray(made["projection"][0].prepared.length, dtype=np.float64)


def draw_disagreement(groups: dict[str, list[Cohort]], into: Path, size: Size) -> None:
    """Figures 5.4 and 6.4 to 6.6 for the largest length, and some series beside what is released of them."""
    after = {name: groups[name] for name in ("projection", "shared")}
    cohort = max(groups["projection"], key=lambda c: len(c.original))
    found = disagreements(after, cohort.length)
    rows = disagreement_rows(found, cohort.length)
    sample = np.arange(min(size.warped, len(cohort.original)))
    for name, group in after.items():
        mine = next(c for c in group if c.length == cohort.length)
        known, changed = class_features(mine.original), class_features(mine.released)
        result = measure_disagreement(known, changed, warped(mine.original, mine.released, 3), rows=sample)
        rows += disagreement_rows({f"{name}, warped": result}, cohort.length)
    write(into, "disagreement", rows)
    figures.one_curve(found, "mean", into / "figure_6_4.png", cohort.length)
    figures.one_curve(found, "minimum", into / "figure_6_5.png", cohort.length)
    figures.summary_and_curves(found["projection"], "projection", into / "figure_5_4.png", cohort.length)
    figures.first_values(found, into / "figure_6_6.png", cohort.length)
    figures.examples(_pictured(after, cohort.length), into / "series.png")


def _pictured(groups: dict[str, list[Cohort]], length: int) -> list[tuple[str, dict[str, Array]]]:
    chosen = {name: next(c for c in group if c.length == length) for name, group in groups.items()}
    base = chosen["projection"]
    panels = []
    for person in range(0, min(len(base.original), 90), 30):
        same = {n: np.flatnonzero(c.person_number == base.person_number[person]) for n, c in chosen.items()}
        lines = {"original": base.original[person, 0]}
        lines |= {n: chosen[n].released[at[0], 0] for n, at in same.items() if len(at)}
        panels.append(("heart rate", lines))
    return panels


def mimic(folder: Path, into: Path) -> Array:
    """What 136 stays of the demo allow: durations, attackers, distortion; the stays' lengths in days."""
    with load_mimic(folder) as connection:
        made = {
            name: release(connection, MIMIC, **settings, drop=list(MIMIC_DROP)) for name, settings in RELEASES.items()
        }
        stays = connection.execute("SELECT los FROM mimiciii.icustays").fetchnumpy()["los"]
    write(into, "mimic_durations", duration_rows({"optimal": made["projection"][0]}))
    table, drawn = attack_rows({name: cohorts for name, (_, _, cohorts) in made.items()})
    write(into, "mimic_attacks", table)
    figures.attacks(drawn, into / "mimic_attacks.png")
    return np.ceil(np.asarray(stays, dtype=np.float64))


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--mimic", "mimic_folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), default=Path("series_study"))
@click.option("--quick", is_flag=True, help="A few stays and iterations.")
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="A page that the tables are put into.")
@click.option("--again", is_flag=True, help="Print the results that are in --into; run nothing.")
def main(
    folder: Path | None, mimic_folder: Path | None, into: Path, quick: bool, page: Path | None, again: bool
) -> None:
    """Run the study on FOLDER, the Challenge 2012, or without it on a generated hospital."""
    if again:
        gallery.tell(shown.tables(into), page)
        return
    into.mkdir(parents=True, exist_ok=True)
    stays = {"hours": one_hospital(folder, into, QUICK if quick else FULL)}
    if mimic_folder is not None:
        stays["days"] = mimic(mimic_folder, into)
    figures.length_classes(stays, into / "figure_6_1.png")
    gallery.tell(shown.tables(into), page)
    click.echo(f"\nTables and figures are in {into}")


if __name__ == "__main__":
    main()
