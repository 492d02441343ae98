"""Does epsilon-safe draw a good node, and what does it suppress? Figures 6.3, 6.4, C.1 and C.2 of Mazzone (2019).

    python good_nodes.py                                   on invented people
    python good_nodes.py DATABASE --job JOB --only NAME    on the quasi-identifying columns of a release of yours

A node is good if its normalised Prec is below 0.5 and fewer than 5 % of the sampled rows are suppressed. The average
suppression (§6.2.3, appendix C) is that of all nodes, each weighed by the probability that it is drawn. Rows are
sampled several times; what is shown is the mean over the samples. For the data holder only: the figures are statistics
of secret samples, and the seeds are fixed so that they can be redone. Nothing here is a release.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path

import click
import matplotlib
import numpy as np
import numpy.typing as npt

import sqldeid
from sqldeid import demo
from sqldeid.engine.base import Engine
from sqldeid.run import reading
from sqldeid.tables.check.check import Checker
from sqldeid.tables.criteria.mechanism import SeededRandomness
from sqldeid.tables.criteria.sampling import Penalty
from sqldeid.tables.epsilon_safe.release import sample_classes
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.search.epsilon_safe import steps_everywhere
from sqldeid.tables.search.utility import Utility, probabilities, reciprocal_probabilities

matplotlib.use("Agg")
from matplotlib import pyplot as plt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gallery import Row, markdown, put, show_figure, write_rows

COLUMNS = ("age", "workclass", "marital-status", "occupation")
"""Levels 4 · 3 · 3 · 3: a lattice of 108 nodes, as many as the source's; it does not say which columns it took."""

FACTORS: dict[Penalty, tuple[str, ...]] = {
    "suppression": ("0.001", "0.005", "0.01", "0.02", "0.03", "0.04", "0.05", "0.06", "0.08", "0.1", "0.15", "0.2"),
    "k-anonymity": ("0.02", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"),
}
"""Penalty factors: a percentage point of suppressed rows, and not being k-anonymous."""

FIGURES: dict[Penalty, str] = {"suppression": "6.3", "k-anonymity": "6.4"}
APPENDIX: dict[Penalty, str] = {"suppression": "C.2", "k-anonymity": "C.1"}
UTILITIES = {"reciprocal": "the source's, not proven private", "score": "sound: what sqldeid draws by"}
EPSILON_PRIMES = ("0.01", "0.1", "0.5", "1", "2")
LIMIT = Fraction(5, 100)
"""Share of rows: the most that a good node suppresses, and what "k-anonymity" forgives."""

SOURCE_C = "about 10 % alike; at most 3.7 points below it (factor 0.9, ε′ = 2); with ε′ = 0.01 one point more"
SOURCE_GOOD: dict[Penalty, str] = {
    "suppression": "almost 1 at 0.04, whatever ε′; below the baseline from 0.2",
    "k-anonymity": "a little over 0.4 at 0.5 for ε′ = 2",
}
"""What §6.2.2 and §6.2.3 say of the figures."""

MOST_PREC = 0.5
Shape = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """What is drawn from: public numbers alone."""

    heights: tuple[int, ...]
    k: int
    beta: Fraction
    population: int

    def utility(self, penalty: Penalty, factor: Fraction, epsilon_prime: Fraction) -> Utility:
        """The utility for one point of a figure; `factor` is in the figure's unit."""
        return Utility(
            heights=self.heights,
            weights=(Fraction(1),) * len(self.heights),
            penalty=penalty,
            factor=factor * 100 if penalty == "suppression" else factor,
            epsilon_prime=epsilon_prime,
            k=self.k,
            allowed=int(LIMIT * self.beta * self.population),
            population=self.population,
        )


@dataclass(frozen=True)
class Sample:
    """One random sample: its rows, the penalty's steps at every node, which nodes are good, and the checks it took."""

    rows: int
    steps: dict[Penalty, npt.NDArray[np.int64]]
    good: npt.NDArray[np.bool_]
    checks: dict[Penalty, int]

    @property
    def lost(self) -> Shape:
        """Share of the sampled rows that each node suppresses."""
        return self.steps["suppression"] / max(1, self.rows)


@dataclass(frozen=True)
class Point:
    """One point of a figure."""

    penalty: Penalty
    utility: str
    epsilon_prime: str
    factor: str
    probability: float
    suppressed: float


def look(plan: TablePlan, folded: Folded, engine: Engine, setting: Setting, seed: int) -> Sample:
    """Sample the rows and check the nodes: few for "k-anonymity", most for "suppression"."""
    sample = sample_classes(plan, folded, setting.beta, engine, SeededRandomness(seed))
    checker = Checker(engine, sample, setting.k, -1, plan.name)
    marginals = [c.marginal for c in sample.columns]
    found = {
        p: steps_everywhere(setting.utility(p, Fraction(1), Fraction(1)), checker, marginals, sample.rows)
        for p in FIGURES
    }
    suppressed = found["suppression"].steps
    prec = setting.utility("suppression", Fraction(1), Fraction(1)).prec()
    good = (prec < MOST_PREC - 1e-9) & (suppressed < float(LIMIT) * sample.rows)
    return Sample(sample.rows, {p: s.steps for p, s in found.items()}, good, {p: s.checks for p, s in found.items()})


def points(samples: list[Sample], setting: Setting) -> Iterator[Point]:
    """Mean probability of a good node, and mean suppression, for every penalty, utility, ε′ and factor."""
    for penalty, factors in FACTORS.items():
        for utility in UTILITIES:
            for epsilon_prime in EPSILON_PRIMES:
                for factor in factors:
                    asked = setting.utility(penalty, Fraction(factor), Fraction(epsilon_prime))
                    chances = [chance(asked, utility, s) for s in samples]
                    good = [float(c[s.good].sum()) for c, s in zip(chances, samples, strict=True)]
                    lost = [float((c * s.lost).sum()) for c, s in zip(chances, samples, strict=True)]
                    yield Point(penalty, utility, epsilon_prime, factor, float(np.mean(good)), float(np.mean(lost)))


def chance(asked: Utility, utility: str, sample: Sample) -> Shape:
    """With what probability each node is drawn from this sample."""
    steps = sample.steps[asked.penalty]
    return probabilities(asked, steps) if utility == "score" else reciprocal_probabilities(asked, steps, sample.rows)


def draw_figure(
    found: list[Point], penalty: Penalty, value: Callable[[Point], float], baseline: float, file: Path
) -> None:
    """One figure: the source's utility on the left, the sound one on the right."""
    good = file.stem.startswith("figure_6")
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(EPSILON_PRIMES)))
    for panel, (utility, words) in zip(panels, UTILITIES.items(), strict=True):
        for colour, epsilon_prime in zip(colours, EPSILON_PRIMES, strict=True):
            line = [p for p in found if (p.penalty, p.utility, p.epsilon_prime) == (penalty, utility, epsilon_prime)]
            panel.plot(
                [float(p.factor) for p in line],
                [value(p) for p in line],
                marker="o",
                markersize=3,
                color=colour,
                label=f"ε′ = {epsilon_prime}",
            )
        panel.axhline(baseline, color="black", linestyle=":", label="any node alike")
        panel.set(title=f"{utility} ({words})")
        if good:
            panel.set_ylim(-0.02, 1.02)
        panel.set_xlabel(
            "penalty factor, per % of rows suppressed"
            if penalty == "suppression"
            else "penalty factor, not k-anonymous"
        )
        if penalty == "suppression":
            panel.set_xscale("log")
    panels[0].set_ylabel("probability of a good node" if good else "average suppression (share of sampled rows)")
    panels[1].legend()
    figure.suptitle(f"Figure {(FIGURES if good else APPENDIX)[penalty]} redone: penalty by {penalty}")
    figure.savefig(file, dpi=110)
    plt.close(figure)


def show(found: list[Point], penalty: Penalty, utility: str, figure: str) -> Iterator[str]:
    """One panel as text: probabilities of figures 6.3 and 6.4, shares of rows of C.1 and C.2."""
    yield ""
    yield f"Figure {figure}, penalty by {penalty}, utility {utility} ({UTILITIES[utility]})"
    yield "factor " + "".join(f"{'ε′ = ' + e:>11}" for e in EPSILON_PRIMES)
    good = figure == FIGURES[penalty]
    mine = [p for p in found if (p.penalty, p.utility) == (penalty, utility)]
    cells = {(p.factor, p.epsilon_prime): p.probability if good else p.suppressed for p in mine}
    for factor in FACTORS[penalty]:
        yield f"{factor:<7}" + "".join(f"{cells[factor, e]:>11.3f}" for e in EPSILON_PRIMES)


def adult_job(table: str, columns: tuple[str, ...], k: int) -> sqldeid.Job:
    """A census table with the shipped hierarchies."""
    qis = {c: {"role": "quasi-identifying", "hierarchy": f"adult/{c}"} for c in columns}
    return sqldeid.Job.parse(
        {"tables": {"census": {"source": table, "rows_are_persons": True, "columns": qis, "privacy": {"k": k}}}},
        name="good_nodes.py",
    )


def redo(
    database: Path, job: sqldeid.Job, name: str, setting: Callable[[TablePlan], Setting], seeds: range
) -> tuple[Setting, list[Sample]]:
    """Read the source once, then look at each sample; nothing is written."""
    with reading(database, database, sqldeid.Settings(threads=1)) as engine:  # rows in the same order each time
        plan = planning.plan(name, job.tables[name], engine, job.folder)
        folded = fold(plan, engine)
        asked = setting(plan)
        return asked, [look(plan, folded, engine, asked, seed) for seed in seeds]


@click.command()
@click.argument("database", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option("--job", "job_file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Your job.")
@click.option("--only", help="Which release of the job; the first where absent.")
@click.option("--table", default="main.adult", show_default=True, help="A census table, where no job is given.")
@click.option("--columns", default=",".join(COLUMNS), show_default=True, help="Its columns, where no job is given.")
@click.option("--k", default=50, show_default=True, type=click.IntRange(1), help="Least class size.")
@click.option("--beta", default="0.75", show_default=True, help="Probability with which a row is sampled.")
@click.option(
    "--population", default=30_000, show_default=True, type=click.IntRange(1), help="Persons, publicly known."
)
@click.option("--samples", default=10, show_default=True, type=click.IntRange(1), help="Samples to average over.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The same seed, the same figures.")
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put tables there.")
def main(
    database: Path | None,
    job_file: Path | None,
    only: str | None,
    table: str,
    columns: str,
    k: int,
    beta: str,
    population: int,
    samples: int,
    seed: int,
    into: Path,
    page: Path | None,
) -> None:
    """Redo figures 6.3, 6.4, C.1 and C.2: PNG files, good_nodes.csv, and tables on standard output."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = database or demo.adult(Path(folder) / "adult.duckdb", rows=population, seed=seed).database
            job = sqldeid.Job.load(job_file) if job_file else adult_job(table, tuple(columns.split(",")), k)
            name = only or next(iter(job.tables))
            if name not in job.tables:
                raise sqldeid.JobError(f"--only: there is no release {name}; there is {', '.join(job.tables)}")
            made = redo(
                path,
                job,
                name,
                lambda plan: Setting(plan.lattice.heights, k, Fraction(beta), population),
                range(seed, seed + samples),
            )
        except (sqldeid.SqldeidError, ValueError, ZeroDivisionError) as error:
            raise click.ClickException(str(error)) from None
    report(*made, into, page)


def least_suppressed(found: list[Point], alike: float) -> Iterator[Row]:
    """§6.2.3: where the average suppression is least, against any node alike and against the least ε′."""
    for penalty, utility in product(APPENDIX, UTILITIES):
        mine = [p for p in found if (p.penalty, p.utility) == (penalty, utility)]
        best = min(mine, key=lambda p: p.suppressed)
        small = min((p for p in mine if p.epsilon_prime == EPSILON_PRIMES[0]), key=lambda p: p.suppressed)
        yield {
            "penalty (figure)": f"{penalty} ({APPENDIX[penalty]})",
            "utility": utility,
            "any node alike": f"{alike:.1%}",
            "least average suppression": f"{best.suppressed:.1%} (factor {best.factor}, ε′ = {best.epsilon_prime})",
            "below any node alike": f"{100 * (alike - best.suppressed):.1f} points",
            f"least with ε′ = {EPSILON_PRIMES[0]}": f"{small.suppressed:.1%} (factor {small.factor})",
            "source": SOURCE_C if (penalty, utility) == ("k-anonymity", "reciprocal") else "",
        }


def most_good(found: list[Point], baseline: float) -> Iterator[Row]:
    """Figures 6.3 and 6.4 in a line each: the best factor for every ε′."""
    for penalty, utility in product(FIGURES, UTILITIES):
        mine = [p for p in found if (p.penalty, p.utility) == (penalty, utility)]
        best = {e: max((p for p in mine if p.epsilon_prime == e), key=lambda p: p.probability) for e in EPSILON_PRIMES}
        yield {
            "penalty (figure)": f"{penalty} ({FIGURES[penalty]})",
            "utility": utility,
            "any node alike": f"{baseline:.3f}",
            **{f"ε′ = {e}": f"{p.probability:.3f} at {p.factor}" for e, p in best.items()},
            "source": SOURCE_GOOD[penalty] if utility == "reciprocal" else "",
        }


def report(setting: Setting, samples: list[Sample], into: Path, page: Path | None) -> None:
    """Print and write everything."""
    found = list(points(samples, setting))
    baseline = float(np.mean([s.good.mean() for s in samples]))
    checks = {p: round(float(np.mean([s.checks[p] for s in samples])), 1) for p in FIGURES}
    size = samples[0].good.size
    alike = float(np.mean([s.lost.mean() for s in samples]))
    click.echo(f"{size} nodes, k = {setting.k}, β = {float(setting.beta):g}, {len(samples)} samples (fixed seeds)")
    click.echo(f"Any node alike: good with probability {baseline:.3f}, suppresses {alike:.1%} of rows")
    click.echo("Nodes checked for the penalty of every node: " + ", ".join(f"{p} {n:g}" for p, n in checks.items()))
    for penalty in FIGURES:
        for utility in UTILITIES:
            click.echo("\n".join(show(found, penalty, utility, FIGURES[penalty])))
            click.echo("\n".join(show(found, penalty, utility, APPENDIX[penalty])))
        file = into / f"figure_{FIGURES[penalty].replace('.', '_')}.png"
        draw_figure(found, penalty, lambda p: p.probability, baseline, file)
        file = into / f"figure_{APPENDIX[penalty].replace('.', '_')}.png"
        draw_figure(found, penalty, lambda p: p.suppressed, alike, file)
        if page is not None:
            show_figure(page, file)
    tables = {
        "good_nodes_least": list(least_suppressed(found, alike)),
        "good_nodes_good": list(most_good(found, baseline)),
    }
    for name, rows in tables.items():
        click.echo(f"\n{markdown(rows)}")
        write_rows(into / f"{name}.csv", rows)
        if page is not None:
            put(page, f"epsilon_safe/{name}", markdown(rows))
    with (into / "good_nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["penalty", "utility", "epsilon_prime", "factor", "probability", "suppressed"])
        writer.writerows(
            [p.penalty, p.utility, p.epsilon_prime, p.factor, f"{p.probability:.6f}", f"{p.suppressed:.6f}"]
            for p in found
        )


if __name__ == "__main__":
    main()
