"""All 18 × 3 runs of OLA in chapter 6.1 of Mazzone (2019): every k, limit and loss, with the nodes checked (table 6.9).

    python ola.py                       on an invented census
    python ola.py --data FOLDER         on adult.data and adult.test of UCI Adult

A node's class sizes answer for every k and limit, so the database is asked once for each node, and the searches count
what they ask. Beside OLA stands the default search, which must find the same node.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gallery import Row, markdown, put, show_figure, write_rows  # noqa: E402
from study import LOSSES, SOURCE_CHECKS, SOURCE_LIMITS, Study, invent, load, numbers, quasi_identifying  # noqa: E402

import sqldeid  # noqa: E402
from sqldeid.report.charts import Line, Panel, panels, render  # noqa: E402
from sqldeid.run import reading  # noqa: E402
from sqldeid.tables.check.check import Checker  # noqa: E402
from sqldeid.tables.fold.fold import Folded, fold  # noqa: E402
from sqldeid.tables.model.evaluation import Evaluation, allowed_rows  # noqa: E402
from sqldeid.tables.model.lattice import Lattice, Node  # noqa: E402
from sqldeid.tables.model.loss import make_loss  # noqa: E402
from sqldeid.tables.plan import plan as planning  # noqa: E402
from sqldeid.tables.release.node import checker_of  # noqa: E402
from sqldeid.tables.search import Outcome, Problem, search  # noqa: E402

KS, LIMITS = (5, 25, 100), SOURCE_LIMITS


class Sizes:
    """What is known of every node that was asked for, by any search: its class sizes."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.known: dict[Node, Evaluation] = {}

    def of(self, nodes: Sequence[Node], k: int) -> list[Evaluation]:
        """The nodes as a check for this k tells them."""
        fresh = [node for node in nodes if node not in self.known]
        if fresh:
            self.known.update(zip(fresh, self.checker(fresh, histogram=True), strict=True))
        return [self._for(self.known[node], k) for node in nodes]

    @staticmethod
    def _for(known: Evaluation, k: int) -> Evaluation:
        failing = sum(size * times for size, times in (known.histogram or {}).items() if size < k)
        return Evaluation(known.node, failing, failing, known.classes, known.squares)


@dataclass(frozen=True)
class Cell:
    """One k, limit and loss: what OLA found, and the default search."""

    loss: str
    k: int
    limit: float
    value: float
    ola: Outcome
    frontier: Outcome


def cells(folded: Folded, lattice: Lattice, sizes: Sizes, ks: Sequence[int], limits: Sequence[float]) -> Iterator[Cell]:
    """Every cell, by the searches of the program."""
    marginals = [c.marginal for c in folded.columns]
    (original,) = sizes.of([lattice.bottom], 1)
    for name, k, limit in product(LOSSES, ks, limits):
        loss = make_loss(name, marginals, folded.rows)

        def evaluate(nodes: Sequence[Node], *, histogram: bool = False, k: int = k) -> list[Evaluation]:
            return sizes.of(nodes, k)

        made = [
            search(m, Problem(lattice, marginals, folded.rows, allowed_rows(limit, folded.rows), loss, evaluate))
            for m in ("ola", "frontier")
        ]
        value = made[0].loss - (original.squares if name == "dm_star" else 0)
        yield Cell(name, k, limit, value, *made)


def checks(found: Sequence[Cell]) -> Iterator[Row]:
    """Table 6.9 for every loss: nodes that OLA checked / the default search; the source's OLA in brackets."""
    for name, k in dict.fromkeys((c.loss, c.k) for c in found):
        mine = {c.limit: c for c in found if (c.loss, c.k) == (name, k)}
        yield {"loss": LOSSES[name], "k": k, **{f"{100 * x:g} %": _checks(c) for x, c in mine.items()}}


def _checks(cell: Cell) -> str:
    theirs = dict(zip(SOURCE_LIMITS, SOURCE_CHECKS.get(cell.k, ()), strict=False)).get(cell.limit)
    shown = f"{cell.ola.checks} / {cell.frontier.checks}" + (f" ({theirs})" if theirs is not None else "")
    return shown + ("" if cell.ola.node == cell.frontier.node else " not the same node")


def losses(found: Sequence[Cell]) -> Iterator[Row]:
    """Figure 6.1 in numbers: the least loss of every cell."""
    for name, k in dict.fromkeys((c.loss, c.k) for c in found):
        mine = [c for c in found if (c.loss, c.k) == (name, k)]
        form = "{:.4f}" if name == "prec" else "{:,.0f}"
        yield {"loss": LOSSES[name], "k": k, **{f"{100 * c.limit:g} %": form.format(c.value) for c in mine}}


def draw(found: Sequence[Cell], file: Path) -> None:
    """Nodes checked, a panel for each loss, a line for each k and for the source's."""
    shown = []
    ticks = tuple(dict.fromkeys(100 * c.limit for c in found))
    for name, label in LOSSES.items():
        lines = []
        for k in dict.fromkeys(c.k for c in found):
            mine = [c for c in found if (c.loss, c.k) == (name, k)]
            lines.append(Line(f"OLA, k = {k}", list(ticks), [c.ola.checks for c in mine]))
            theirs = dict(zip(SOURCE_LIMITS, SOURCE_CHECKS.get(k, ()), strict=False))
            xs = [c.limit for c in mine if c.limit in theirs]
            if xs:
                lines.append(Line(f"source, k = {k}", [100 * x for x in xs], [theirs[x] for x in xs]))
        axis = "suppression allowed (% of rows)"
        shown.append(Panel(label, axis, "nodes checked", tuple(lines), log_y=True, ticks=ticks, even=True))
    file.write_bytes(render(panels(shown), "png"))


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with adult.data and adult.test; without it a census is invented.",
)
@click.option("--k", "ks", default=",".join(map(str, KS)), show_default=True, help="Least class sizes.")
@click.option("--limits", default=",".join(map(str, LIMITS)), show_default=True, help="Most suppression, as a share.")
@click.option("--columns", default="", help="Quasi-identifying columns; all nine by default.")
@click.option("--rows", default=30_000, show_default=True, type=click.IntRange(30), help="Of the invented census.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the invented census.")
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the tables there.")
def main(
    data: Path | None, ks: str, limits: str, columns: str, rows: int, seed: int, into: Path, page: Path | None
) -> None:
    """Run every cell; prints least losses and nodes checked, and writes them as CSV and as a figure."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "adult.duckdb"
        names = tuple(name for name in columns.split(",") if name)
        study = Study(path, Path(scratch), tuple(int(k) for k in numbers(ks)), numbers(limits), (), names)
        try:
            if data is not None:
                load(data, path)
            else:
                invent(rows, seed, path)
            job = study.job({"adult": {**quasi_identifying(study.table), "privacy": {"k": 1}}}, "ola")
            with reading(path, path, sqldeid.Settings(threads=1)) as engine:
                plan = planning.plan("adult", job.tables["adult"], engine, job.folder)
                folded = fold(plan, engine)
                sizes = Sizes(checker_of(plan, folded, engine))
                found = list(cells(folded, plan.lattice, sizes, study.ks, study.limits))
        except sqldeid.SqldeidError as error:
            raise click.ClickException(str(error)) from None
    click.echo(f"{len(found)} runs on a lattice of {plan.lattice.size:,} nodes; {len(sizes.known):,} were asked for\n")
    for name, rows_of in (("losses", losses), ("checks", checks)):
        table = list(rows_of(found))
        click.echo(f"{markdown(table)}\n")
        write_rows(into / f"ola_{name}.csv", table)
        if page is not None:
            put(page, f"adult_study/ola_{name}", markdown(table))
    draw(found, into / "ola.png")

    if page is not None:
        show_figure(page, into / "ola.png")


if __name__ == "__main__":
    main()
