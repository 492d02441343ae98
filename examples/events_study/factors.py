"""What patient factors would give `laplace`: transitions by sex or age group, at a price in noise.

    python factors.py                        on generated hospitals of 4,370 and 20,000 patients
    python factors.py --patients 500 --draws 2

Shaked & Rokach (2016, §6) name patient attributes as future work. A factor known for every patient (two sexes, four age
groups) makes a table of transitions more, of sensitivity L + 1 as the first, which takes half its part of epsilon, as
the factors of time do. Shown: distance of what is learnt to each group's own transitions, weighted by its transitions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import duckdb
import numpy as np
from numpy.typing import NDArray

from sqldeid.demo.hospital import mimic_rows
from sqldeid.events.estimate import posterior_mean, shares
from sqldeid.events.synthesize import possible

sys.path.append(str(Path(__file__).resolve().parents[1]))
import gallery

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]
Row = dict[str, object]
EVENTS_MAX = 8
TRANSITIONS, HALF = 0.6, 0.5
"""Of epsilon: the part of transitions in `sqldeid.events.privacy.laplace`, and of that the factors' part."""
AGES = (1, 45, 65)
SEED = 20_160_831
READ = (
    "SELECT t.subject_id AS patient, COALESCE(curr_careunit, '') || ' ' || eventtype AS state, gender, "
    "date_diff('year', p.dob, MIN(t.intime) OVER (PARTITION BY t.subject_id)) AS age "
    "FROM transfers t JOIN patients p USING (subject_id) ORDER BY t.subject_id, t.intime, t.row_id"
)


def counted(patients: int) -> dict[str, Counts]:
    """By factor (groups, from START or a state, to a state or END): transitions of each patient's first events."""
    with duckdb.connect() as connection:
        for name, rows in mimic_rows(patients, 1).items():
            if name in ("transfers", "patients"):
                connection.from_arrow(rows).create(name)
        read = connection.execute(READ).fetchnumpy()
    names, state = np.unique(read["state"].astype(str), return_inverse=True)
    new = np.append(True, read["patient"][1:] != read["patient"][:-1])
    place = np.arange(len(new)) - np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))
    ends = np.append(new[1:], True)
    groups = {"sex": (read["gender"].astype(str) == "F").astype(np.int64), "age group": np.digitize(read["age"], AGES)}
    origin = np.where(new, 0, np.append(0, state[:-1]) + 1)
    looked = place < EVENTS_MAX
    found: dict[str, Counts] = {}
    for factor, group in groups.items():
        table = np.zeros((int(group.max()) + 1, len(names) + 1, len(names) + 1), dtype=np.int64)
        np.add.at(table, (group[looked], origin[looked], state[looked]), 1)
        done = looked & ends
        np.add.at(table, (group[done], state[done] + 1, len(names)), 1)
        found[factor] = table
    return found


def distance(exact: Counts, learnt: Shares) -> float:
    """Mean total variation distance of rows, weighted by the transitions of each group's rows."""
    weight = exact.sum(axis=-1)
    gap = np.abs(exact / np.maximum(weight, 1)[..., None] - learnt).sum(axis=-1) / 2
    return float((weight * gap).sum() / weight.sum())


def learnt(exact: Counts, part: float, prior: Shares, rng: np.random.Generator) -> Shares:
    """Noised with this part of epsilon, and estimated as in the product; cells that cannot be are 0."""
    scale, able = (EVENTS_MAX + 1) / part, possible(exact)
    noised = np.round(exact + rng.laplace(0, scale, exact.shape)).astype(np.int64)
    found = np.zeros(exact.shape)
    found[able] = posterior_mean(noised[able], scale, np.maximum(prior[able], 1e-9))
    return found


def pooled(exact: Counts, part: float, rng: np.random.Generator) -> Shares:
    """All groups together; the prior is that states do not depend on the one before."""
    whole = exact.sum(axis=0)
    columns = whole.sum(axis=0)
    return learnt(whole, part, np.outer(np.maximum(whole.sum(axis=1), 1), columns / columns.sum()), rng)


def by_group(exact: Counts, part: float, rng: np.random.Generator) -> Shares:
    """Half of the part for the table of all, which is the prior of each group's, half for those."""
    whole = pooled(exact, part * (1 - HALF), rng)
    sizes = shares(exact.sum(axis=(1, 2)).astype(np.float64))
    found = learnt(exact, part * HALF, sizes[:, None, None] * whole, rng)
    return shares(np.where(found.sum(axis=2, keepdims=True) > 0, found, whole))


def compared(patients: int, draws: int) -> list[Row]:
    """A line a factor and epsilon."""
    rows: list[Row] = []
    for factor, exact in counted(patients).items():
        for epsilon in (1.0, 5.0):
            rng, part = np.random.default_rng(SEED), TRANSITIONS * epsilon
            alike = [distance(exact, shares(pooled(exact, part, rng))) for _ in range(draws)]
            apart = [distance(exact, by_group(exact, part, rng)) for _ in range(draws)]
            row: Row = {"patients": patients, "factor": factor, "groups": len(exact), "ε": epsilon}
            row |= {"without the factor": f"{np.mean(alike):.3f}", "with it": f"{np.mean(apart):.3f}"}
            bare = distance(exact, shares(exact.sum(axis=0).astype(np.float64)))
            rows.append(row | {"without it and without noise": f"{bare:.3f}"})
    return rows


@click.command(help=__doc__)
@click.option("--patients", multiple=True, type=int, default=(4_370, 20_000), show_default=True)
@click.option("--draws", default=10, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("events_factors"))
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="A page that the table is put into.")
@click.option("--again", is_flag=True, help="Print the results that are in --out; run nothing.")
def main(patients: tuple[int, ...], draws: int, out: Path, page: Path | None, again: bool) -> None:
    """Run it."""
    if not again:
        gallery.write_rows(out / "factors.csv", [row for number in patients for row in compared(number, draws)])
    gallery.tell({"events_study/factors": gallery.markdown(gallery.read_rows(out / "factors.csv"))}, page)


if __name__ == "__main__":
    main()
