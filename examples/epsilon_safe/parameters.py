"""Which ε′, k and β go together? The grid of Mazzone (2019, §6.2.1), with its δ and with the δ that is proven.

    python parameters.py

For every lower bound of ε and every β: the most that the draw of a node may spend (ε′), and the δ that is left for
every k. Needs no data: all of it is known before a row is read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import click

import sqldeid
from sqldeid.report.charts import Line, Panel, panels, render
from sqldeid.tables.criteria.sampling import largest_epsilon_prime, proven_delta, published_delta

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gallery import Row, markdown, put, show_figure, write_rows

BETAS = ("0.01", "0.05", "0.1", "0.25", "0.5", "0.75", "0.9")
EPSILONS = ("0.1", "0.25", "0.5", "1", "1.5", "2")
KS = (5, 10, 20, 25, 50, 75, 100, 150)
"""The source's ranges: β from 0.01 to 0.9, ε from 0.1 to 2. It does not say which values between, nor which k."""

MOST_DELTA = 1e-4
NODES = 108
"""Nodes of the lattice of §6.2.2: where suppression is punished, the proven δ counts all of them."""


def spent(beta: str, epsilon: str) -> Fraction | None:
    """The greatest ε′ for this ε, β; None where none is left (the source leaves negative ones out)."""
    try:
        return largest_epsilon_prime(Fraction(beta), Fraction(epsilon))
    except sqldeid.JobError:
        return None


def grid() -> Iterator[Row]:
    """ε′ by ε and β."""
    for epsilon in EPSILONS:
        cells = {f"β = {b}": "–" if (e := spent(b, epsilon)) is None else f"{float(e):.3f}" for b in BETAS}
        yield {"ε": epsilon, **cells}


def deltas() -> Iterator[Row]:
    """The source's δ by k and β, with ε′ as large as it may be: then it depends on nothing else."""
    for k in KS:
        found = {b: source_delta(k, b) for b in BETAS}
        yield {"k": k, **{f"β = {b}": f"{d:.2e}" for b, d in found.items()}, "all below 1e-4": _yes(found)}


def source_delta(k: int, beta: str) -> float:
    """The source's δ where ε − ε′ is as small as it may be; ε does not matter then."""
    epsilon = Fraction(2) if spent(beta, "2") is not None else Fraction(3)
    return published_delta(k, Fraction(beta), epsilon - largest_epsilon_prime(Fraction(beta), epsilon))


def _yes(found: dict[str, float]) -> str:
    missed = [b for b, d in found.items() if d > MOST_DELTA]
    return "yes" if not missed else f"no: β = {', '.join(missed)}"


def smallest() -> Iterator[Row]:
    """By β, the smallest k whose δ is at most 1e-4: the source's δ, and what is proven for each penalty at ε = 2."""
    for beta in BETAS:
        yield {
            "β": beta,
            "source's δ at k = 50": f"{source_delta(50, beta):.2e}",
            "smallest k, source's δ": _least(lambda k, b=beta: source_delta(k, b)),
            **{f"smallest k, proven for {penalty}": _least_proven(beta, penalty) for penalty in PENALTIES},
        }


PENALTIES = {"k-anonymity": 1, "suppression": NODES}


def _least_proven(beta: str, penalty: str) -> str:
    """At ε = 2, half of what may be spent going to the draw."""
    most = spent(beta, "2")
    if most is None:
        return "–"
    half = most / 2
    return _least(lambda k: proven_delta(k, Fraction(beta), Fraction(2), half, penalty, PENALTIES[penalty]))


def _least(delta) -> str:  # type: ignore[no-untyped-def]
    """The smallest k up to 100,000 with δ of at most 1e-4; δ never grows with k."""
    low, high = 1, 2
    while delta(high) > MOST_DELTA:
        low, high = high, 2 * high
        if high > 100_000:
            return "none"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta(middle) <= MOST_DELTA else (middle, high)
    return str(high)


def draw(file: Path) -> None:
    """δ against k, a line for each β, and the smallest k by β; β of 0.05 and 0.1 hardly differ from 0.01."""
    shown = [b for b in BETAS if b not in ("0.05", "0.1")]
    lines = tuple(Line(f"β = {b}", KS, [max(source_delta(k, b), 1e-16) for k in KS]) for b in shown)
    least = [float(_least(lambda k, b=b: source_delta(k, b))) for b in BETAS]
    made = [
        Panel("δ with ε′ as large as it may be", "k", "δ", lines, log_y=True, level=("1e-4", MOST_DELTA)),
        Panel("Smallest k for δ of 1e-4", "β", "k", (Line("source's δ", [float(b) for b in BETAS], least),)),
    ]
    file.write_bytes(render(panels(made, columns=2), "png"))


TABLES = {
    "grid": ("The greatest ε′ by ε and β (§6.2.1); – where ε is below −ln(1 − β)", grid),
    "deltas": ("The source's δ by k and β, with that ε′", deltas),
    "smallest": ("The smallest k with a δ of at most 1e-4", smallest),
}


@click.command()
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the tables there.")
def main(into: Path, page: Path | None) -> None:
    """Print the grid and write it as CSV, and δ against k as a figure."""
    for name, (title, rows_of) in TABLES.items():
        rows = list(rows_of())
        click.echo(f"{title}\n\n{markdown(rows)}\n")
        write_rows(into / f"parameters_{name}.csv", rows)
        if page is not None:
            put(page, f"epsilon_safe/parameters_{name}", markdown(rows))
    draw(into / "parameters.png")

    if page is not None:
        show_figure(page, into / "parameters.png")


if __name__ == "__main__":
    main()
