"""Tables 6.3 and 6.4 of Mazzone (2020) on all variables that the data have: a model of death in four trust settings.

    python width.py                             on a generated hospital
    python width.py --challenge FOLDER          and the PhysioNet Challenge 2012 (set-a.parquet, outcomes-a.parquet)
    python width.py --mimic FOLDER              and MIMIC-III or its demo, first 48 hours (benchmark17) and whole stays
    python width.py --genetic 2000              the genetic algorithm on the Challenge, too, up to so many iterations
    python width.py --full                      100 splits, the genetic algorithm to its end, 30 variables
    python width.py --only WORD                 the data sets with this word in their name; other results are kept

As in the source, what a consumer's device measures is protected (heart rate, pressures, oxygen saturation, glucose; of
height and weight the mean) and the other variables stay in the release as they are. `shared` protects all or nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import click
import figures
import numpy as np
from cases import Case, challenge, generated, mimic_stays, mimic_two_days
from cohorts import HERE, release
from numpy.typing import NDArray

from sqldeid.engine.opening import open_connection
from sqldeid.job.series import Series
from sqldeid.series.outcome import long_records, train_and_test, window_features
from sqldeid.series.planning import plan
from sqldeid.series.prepare import prepare

sys.path.append(str(HERE.parent))
import gallery

Array = NDArray[np.float64]
Row = dict[str, object]
SOURCE = {"orig. / orig.": 0.85, "de-id. / de-id.": 0.83, "orig. / de-id.": 0.82, "de-id. / orig.": 0.64}
"""ROC-AUC on the test set, table 6.4."""
SOURCE_PR = {"orig. / orig.": 0.49, "de-id. / de-id.": 0.45, "orig. / de-id.": 0.40, "de-id. / orig.": 0.22}
SETTINGS = tuple(SOURCE)
ORIGINALS = ("before the cut", "after the cut")
MEASURES = ("train_roc", "train_pr", "test_roc", "test_pr")


@dataclass(frozen=True)
class Versions:
    """The same persons' features in every version of the data, and what became of them.

    Parameters
    ----------
    data
        By name (`ORIGINALS`, then methods): (persons, features).
    outcomes
        By name: (persons,) 0, 1 or NaN.
    facts
        By method: persons released, variables, distortion.
    """

    data: Mapping[str, Array]
    outcomes: Mapping[str, Array]
    facts: Mapping[str, Row]


def versions(case: Case, full: bool) -> Versions:
    """Release by every method, and keep the persons whom all of them release."""
    with case.load() as connection:
        uncut = before_cut(connection, case.part)
        made: dict[str, tuple[NDArray[np.int64], Array, Array]] = {}
        facts: dict[str, Row] = {}
        for name, settings in case.methods(full).items():
            started = process_time()
            shaped, _, cohorts = release(connection, case.part, **settings)
            variables = len(shaped.prepared.variables.names)
            person = np.concatenate([c.person_number for c in cohorts])
            cut, released = (
                np.concatenate([window_features(*long_records(v), len(v), variables) for v in values])
                for values in zip(*((c.original, c.released) for c in cohorts), strict=True)
            )
            made[name] = person, cut, released
            gap = np.concatenate([np.abs(c.released - c.original).reshape(-1) for c in cohorts])
            seconds = process_time() - started
            facts[name] = {
                "persons": len(person),
                "variables": variables,
                "distortion": round(float(np.nanmean(gap)), 4),
            }
            click.echo(f"{case.name}: {name}: {len(person)} persons, {seconds:.0f} s of processor", err=True)
        everybody = sorted(set.intersection(*(set(person.tolist()) for person, _, _ in made.values())))
        outcomes = {name: case.outcome(connection, query, everybody) for name, query in case.outcomes.items()}
    place = {name: np.searchsorted(np.sort(p), everybody) for name, (p, _, _) in made.items()}
    rows = {name: np.argsort(p)[place[name]] for name, (p, _, _) in made.items()}
    first = next(iter(made))
    data = {ORIGINALS[0]: uncut[np.array(everybody)], ORIGINALS[1]: made[first][1][rows[first]]}
    data |= {name: released[rows[name]] for name, (_, _, released) in made.items()}
    return Versions(data, outcomes, facts)


def before_cut(connection: object, part: Mapping[str, object]) -> Array:
    """(person number, features) of regular series that nothing was cut off."""
    with open_connection(connection) as engine:
        engine.begin()
        prepared = prepare(plan("study", Series.model_validate(part), engine, HERE), engine)
        columns = "person_number, variable_number, position, value"
        read = connection.execute(f"SELECT {columns} FROM {prepared.series}").fetchnumpy()  # noqa: S608
    number = [np.asarray(read[name], dtype=np.int64) for name in ("person_number", "variable_number")]
    values = (np.asarray(read[name], dtype=np.float64) for name in ("position", "value"))
    return window_features(*number, *values, int(number[0].max()) + 1, len(prepared.variables.names))


def scores(case: Case, made: Versions, splits: int) -> list[Row]:
    """Every method in four trust settings, beside originals of both kinds; paired by split."""
    rows: list[Row] = []
    for outcome, label in made.outcomes.items():
        pairs = [(name, name) for name in ORIGINALS]
        for method in made.facts:
            pairs += [(method, method), *((o, method) for o in ORIGINALS), *((method, o) for o in ORIGINALS)]
        found = train_and_test(made.data, label, pairs, splits=splits)
        for method, facts in made.facts.items():
            for original in ORIGINALS:
                settings = ((original, original), (method, method), (original, method), (method, original))
                for setting, pair in zip(SETTINGS, settings, strict=True):
                    base = {"data": case.name, "outcome": outcome, "method": method, "originals": original}
                    base |= {"setting": setting, "common persons": int((~np.isnan(label)).sum()), "splits": splits}
                    rows.append(base | facts | _spread(found[pair], found[settings[0]]))
    return rows


def _spread(found: Array, base: Array) -> Row:
    """Means, and the middle 95 % of the splits; of the test's ROC-AUC also the change, split by split."""
    row: Row = {}
    values = dict(zip(MEASURES, found.T, strict=True)) | {"change": found[:, 2] - base[:, 2]}
    for name, of in values.items():
        low, high = np.quantile(of, (0.025, 0.975))
        row |= {name: round(float(of.mean()), 4)}
        row |= {f"{name}_low": round(float(low), 4), f"{name}_high": round(float(high), 4)}
    return row


def table(rows: list[Mapping[str, object]], measure: str, outcome: str = "death") -> str:
    """A line a method, a column a setting: mean and the middle 95 % of the splits; the source's first."""
    source = SOURCE if measure == "test_roc" else SOURCE_PR
    lines: list[Row] = [{"data": "MIMIC-III, the source's", "method": "mazzone2020", "originals": ""} | source]
    if outcome != "death":
        lines = []
    for row in rows:
        if row["outcome"] != outcome or (measure != "test_roc" and row["originals"] == ORIGINALS[0]):
            continue
        key = {name: row[name] for name in ("data", "method", "originals")}
        if not lines or {name: lines[-1][name] for name in key} != key:
            lines.append(key)
        lines[-1][str(row["setting"])] = _interval(row, measure)
        if row["setting"] == SETTINGS[-1] and measure == "test_roc":
            lines[-1]["change of de-id. / orig."] = _interval(row, "change")
    return gallery.markdown(lines)


def _interval(row: Mapping[str, object], measure: str) -> str:
    mean, low, high = (float(str(row[name])) for name in (measure, f"{measure}_low", f"{measure}_high"))
    sign = "+" if measure == "change" else ""
    return f"{mean:{sign}.3f} ({low:{sign}.2f} … {high:{sign}.2f})"


def facts(rows: list[Mapping[str, object]]) -> str:
    """Who and what was released, by data and method."""
    seen: dict[tuple[str, str], Row] = {}
    names = ("data", "method", "variables", "persons", "common persons", "splits")
    for row in rows:
        if row["outcome"] == "death":
            line = {name: row[name] for name in names} | {"distortion": f"{float(str(row['distortion'])):.2f}"}
            seen.setdefault((str(row["data"]), str(row["method"])), line)
    return gallery.markdown(list(seen.values()))


def tables(rows: list[Mapping[str, object]]) -> dict[str, str]:
    """What is printed and stands on the page, by its name there."""
    found = {"series_study/width": table(rows, "test_roc"), "series_study/width-pr": table(rows, "test_pr")}
    found["series_study/width-facts"] = facts(rows)
    if any(row["outcome"] == "long stay" for row in rows):
        found["series_study/width-stay"] = table(rows, "test_roc", "long stay")
    return found


@click.command(help=__doc__)
@click.option("--challenge", "two_days", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--mimic", "stays", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), default=Path("series_width"))
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="A page that the tables are put into.")
@click.option("--again", is_flag=True, help="Print and draw the results that are in --into; run nothing.")
@click.option("--patients", default=800, show_default=True, help="Of the generated hospital.")
@click.option("--splits", default=20, show_default=True)
@click.option("--genetic", default=0, help="Iterations of the genetic algorithm on the Challenge; 0 leaves it out.")
@click.option("--full", is_flag=True)
@click.option("--quick", is_flag=True, help="Five iterations of the genetic algorithm: whether it runs.")
@click.option("--only", default="", help="Rerun the data sets with this in their name, keep the others.")
def main(
    two_days: Path | None,
    stays: Path | None,
    into: Path,
    page: Path | None,
    again: bool,
    patients: int,
    splits: int,
    genetic: int,
    full: bool,
    quick: bool,
    only: str,
) -> None:
    """Run it."""
    cases = [generated(patients)]
    cases += [replace(challenge(two_days, full), most_iterations=genetic)] if two_days is not None else []
    cases += [mimic_two_days(stays), mimic_stays(stays)] if stays is not None else []
    chosen = [] if again else [case for case in cases if only in case.name]
    chosen = [replace(case, most_iterations=5) for case in chosen] if quick else chosen
    rows: list[Mapping[str, object]] = []
    if again or (only and (into / "width.csv").exists()):
        anew = {case.name for case in chosen}
        rows += [row for row in gallery.read_rows(into / "width.csv") if row["data"] not in anew]
    for case in chosen:
        started = process_time()
        rows += scores(case, versions(case, full), 100 if full else splits)
        click.echo(f"{case.name}: {process_time() - started:.0f} s of processor", err=True)
    gallery.write_rows(into / "width.csv", rows)
    gallery.tell(tables(rows), page)
    figures.trust(rows, SOURCE, into / "width.svg")


if __name__ == "__main__":
    main()
