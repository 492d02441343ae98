"""What patient factors give `laplace`: transitions by sex or age group (`groups`), at a price in noise.

    python factors.py                        on generated hospitals of 4,370 and 20,000 patients
    python factors.py --patients 500 --draws 2

Shaked & Rokach (2016, §6) name patient attributes as future work. The tables are counted, noised and estimated as
`sqldeid anonymize` does it, with `groups` and without, for the same epsilon. Shown: distance of what is learnt to each
group's own transitions, weighted by its transitions; and from which the warning of the release says that it is noise.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import click
import duckdb
import numpy as np
from numpy.typing import NDArray

from sqldeid.demo.hospital import mimic_rows
from sqldeid.engine.opening import open_connection
from sqldeid.events.domain import Domain
from sqldeid.events.estimate import shares
from sqldeid.events.plan import plan
from sqldeid.events.privacy.laplace import BY_GROUP, Ledger
from sqldeid.events.release import read_private
from sqldeid.events.synthesize import Private, Tables, add_noise, count_tables, estimate
from sqldeid.job.events import Events

sys.path.append(str(Path(__file__).resolve().parents[1]))
import gallery

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]
Row = dict[str, object]
AGES = ["0", "1 to 44", "45 to 64", "65 and over"]
FACTORS = {
    "sex": {"gender": ["M", "F"]},
    "age group": {"age_group": AGES},
    "both": {"gender": ["M", "F"], "age_group": AGES},
}
EPSILONS = (1.0, 5.0)
READ = (
    "SELECT t.subject_id, t.intime, t.row_id, COALESCE(t.curr_careunit, '') AS unit, t.eventtype, p.gender, "
    "CASE WHEN date_diff('year', p.dob, t.intime) < 1 THEN '0' WHEN date_diff('year', p.dob, t.intime) < 45 "
    "THEN '1 to 44' WHEN date_diff('year', p.dob, t.intime) < 65 THEN '45 to 64' ELSE '65 and over' END AS age_group "
    "FROM transfers t JOIN patients p ON t.subject_id = p.subject_id"
)


@contextmanager
def hospital(patients: int) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A generated hospital, and a file with all of its states."""
    with duckdb.connect() as connection, tempfile.TemporaryDirectory() as folder:
        for name, rows in mimic_rows(patients, 1).items():
            if name in ("transfers", "patients"):
                connection.from_arrow(rows).create(name)
        query = "SELECT DISTINCT COALESCE(curr_careunit, '') || chr(9) || eventtype FROM transfers ORDER BY 1"
        states = Path(folder) / "states.txt"
        states.write_text("\n".join(row[0] for row in connection.execute(query).fetchall()), encoding="utf-8")
        yield connection, states


def counted(connection: duckdb.DuckDBPyConnection, states: Path, groups: dict[str, list[str]]) -> tuple[Domain, Tables]:
    """The exact tables of a release by these groups."""
    privacy = {"method": "laplace", "epsilon": 1.0, "states": str(states), "groups": groups}
    privacy |= {"time_range": ["2100-01-01", "2200-01-01"], "gap_bins_hours": [1, 6, 24, 168, 1000]}
    section = {"source": {"query": READ}, "object": "subject_id", "time": "intime", "order": "row_id"}
    asked = Events.model_validate(section | {"state": ["unit", "eventtype"], "privacy": privacy})
    with open_connection(connection) as engine:
        engine.begin()
        planned = plan("study", asked, engine, states.parent)
        if planned.domain is None:
            raise RuntimeError("laplace has public domains")
        return planned.domain, count_tables(planned.domain, read_private(planned, engine).placed, engine)


def distance(exact: Counts, learnt: Shares) -> float:
    """Mean total variation distance of rows, weighted by the transitions of each group's rows."""
    weight = exact.sum(axis=-1)
    gap = np.abs(exact / np.maximum(weight, 1)[..., None] - learnt).sum(axis=-1) / 2
    return float((weight * gap).sum() / weight.sum())


def drawn(domain: Domain, exact: Tables, epsilon: float) -> Private:
    """What a release is made from: noised anew, and estimated."""
    return estimate(domain, *add_noise(exact, Ledger.split(domain, Fraction(repr(epsilon)))))


def whole(model: Private) -> Shares:
    """Shares of what follows START and each state, of all objects."""
    return np.vstack([np.append(model.first, 0.0), model.following])


def compared(patients: int, draws: int) -> list[Row]:
    """A line a factor and epsilon."""
    rows: list[Row] = []
    with hospital(patients) as (connection, states):
        for factor, groups in FACTORS.items():
            domain, exact = counted(connection, states, groups)
            own = exact.factors[BY_GROUP]
            ungrouped = replace(domain, groups=()), replace(exact, factors={}, groups=exact.groups[:0])
            bare = distance(own, shares(own.sum(axis=0).astype(np.float64)))
            for epsilon in EPSILONS:
                alike = [distance(own, whole(drawn(*ungrouped, epsilon))) for _ in range(draws)]
                models = [drawn(domain, exact, epsilon) for _ in range(draws)]
                apart = [distance(own, model.factors[BY_GROUP][:-1]) for model in models]
                row: Row = {"patients": patients, "factor": factor, "groups": len(own), "ε": epsilon}
                row |= {"without the factor": f"{np.mean(alike):.3f}", "with it": f"{np.mean(apart):.3f}"}
                row["without it and without noise"] = f"{bare:.3f}"
                noise = np.mean([model.group_noise_ratio for model in models])
                rows.append(row | {"noise / transitions": f"{noise:.2f}", "warned": "yes" if noise > 1 else "no"})
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
