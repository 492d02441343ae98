"""Whether a deep model sees more of what de-identification takes: a small GRU beside the logistic regression.

    python deep.py                            on a generated hospital
    python deep.py --challenge FOLDER         and the PhysioNet Challenge 2012, first 48 hours

The source (Mazzone 2020, §5.7) takes the benchmark's logistic regression for its speed, and leaves the deep ones out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from time import process_time

import click
import numpy as np
from cases import Case, challenge, generated
from cohorts import HERE, Cohort, release
from numpy.typing import NDArray
from recurrent import Training, recurrent

from sqldeid.series.outcome import long_records, train_and_test, window_features

sys.path.append(str(HERE.parent))
import gallery

Array = NDArray[np.float64]
Row = dict[str, object]
METHODS = ("mazzone2020", "shared, all protected")
ORIGINAL = "originals"


def versions(case: Case) -> tuple[dict[str, Array], Array]:
    """(persons, variables, steps) of originals and releases, last steps last, and who died."""
    with case.load() as connection:
        made = {name: release(connection, case.part, **case.methods(False)[name])[2] for name in METHODS}
        people = {name: np.concatenate([c.person_number for c in cohorts]) for name, cohorts in made.items()}
        both = np.array(sorted(set.intersection(*(set(p.tolist()) for p in people.values()))))
        label = case.outcome(connection, case.outcomes["death"], both.tolist())
    steps = max(c.length for cohorts in made.values() for c in cohorts)
    data: dict[str, Array] = {}
    for name, cohorts in made.items():
        order = np.argsort(people[name])
        rows = order[np.searchsorted(people[name][order], both)]
        if not data:
            data[ORIGINAL] = _stacked(cohorts, "original", steps)[rows]
        data[name] = _stacked(cohorts, "released", steps)[rows]
    return data, label


def _stacked(cohorts: list[Cohort], which: str, steps: int) -> Array:
    """Series of all lengths, absent steps in front."""
    parts = [getattr(cohort, which) for cohort in cohorts]
    pads = [np.full((*part.shape[:2], steps - part.shape[2]), np.nan) for part in parts]
    return np.concatenate([np.concatenate(pair, axis=2) for pair in zip(pads, parts, strict=True)])


def compared(case: Case, splits: int, epochs: int) -> list[Row]:
    """Both models in four trust settings, over the same splits: ROC-AUC on the test set."""
    data, label = versions(case)
    features = {name: window_features(*long_records(v), len(v), v.shape[1]) for name, v in data.items()}
    pairs = [(ORIGINAL, ORIGINAL)]
    pairs += [pair for m in METHODS for pair in ((m, m), (ORIGINAL, m), (m, ORIGINAL))]
    rows: list[Row] = []
    for model, of, fit in (("logistic", features, None), ("GRU", data, recurrent(Training(epochs=epochs)))):
        started = process_time()
        found = train_and_test(of, label, pairs, splits=splits, fit=fit)
        click.echo(f"{case.name}: {model}: {process_time() - started:.0f} s of processor", err=True)
        for method in METHODS:
            row: Row = {"data": case.name, "model": model, "method": method, "splits": splits}
            settings = ((ORIGINAL, ORIGINAL), (method, method), (ORIGINAL, method), (method, ORIGINAL))
            names = ("orig. / orig.", "de-id. / de-id.", "orig. / de-id.", "de-id. / orig.")
            for name, pair in zip(names, settings, strict=True):
                scores = found[pair][:, 2]
                row[name] = f"{scores.mean():.3f} ({scores.min():.2f} … {scores.max():.2f})"
            rows.append(row)
    return rows


def tables(rows: list[Mapping[str, object]]) -> dict[str, str]:
    """What is printed and stands on the page, by its name there."""
    return {"series_study/deep": gallery.markdown(rows)}


@click.command(help=__doc__)
@click.option("--challenge", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), default=Path("series_deep"))
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="A page that the tables are put into.")
@click.option("--again", is_flag=True, help="Print the results that are in --into; run nothing.")
@click.option("--patients", default=800, show_default=True, help="Of the generated hospital.")
@click.option("--splits", default=3, show_default=True)
@click.option("--epochs", default=12, show_default=True)
def main(
    folder: Path | None, into: Path, page: Path | None, again: bool, patients: int, splits: int, epochs: int
) -> None:
    """Run it."""
    if not again:
        cases = [generated(patients)] + ([challenge(folder, False)] if folder is not None else [])
        gallery.write_rows(into / "deep.csv", [row for case in cases for row in compared(case, splits, epochs)])
    gallery.tell(tables(list(gallery.read_rows(into / "deep.csv"))), page)


if __name__ == "__main__":
    main()
