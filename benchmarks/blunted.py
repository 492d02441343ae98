"""What `search.blunt` costs: loss of the demo's census by amount, in several runs each, for every run draws anew.

    python -m benchmarks.blunted --record    makes the runs, writes benchmarks/blunted.csv and the table of the page
    python -m benchmarks.blunted             prints the table of what is recorded

The page is docs/attacks.md. A run without a release counts as none: local classes that are raised to the top may leave
too many rows without one.
"""

from __future__ import annotations

import csv
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path

import sqldeid
from sqldeid.demo import adult
from sqldeid.errors import NoSolutionError

RECORD = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).parents[1] / "docs" / "attacks.md"
AMOUNTS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)
RUNS = {"a node": 8, "local": 5}
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}
"""Of 95 %, by degrees of freedom."""

HEAD = "| levels | " + " | ".join(f"{a:g} (`true`)" if a == 0.5 else f"{a:g}" for a in AMOUNTS) + " |"
Losses = Mapping[tuple[str, float], Sequence[float | None]]


def loss(text: str, kind: str, amount: float, source: Path) -> float | None:
    """The loss of one run; None where it has no release."""
    search = ('method = "local"\n' if kind == "local" else "") + (f"blunt = {amount}\n" if amount else "")
    job = source.with_suffix(".run.toml")
    told = re.sub(r"(\[tables\.\w+\.search\]\n)", rf"\1{search}", text)
    job.write_text(re.sub(r"(\[tables\.\w+\]\n)", r"\1attacks = false\n", told), encoding="utf-8")
    try:
        result = sqldeid.anonymize(sqldeid.Job.load(job), source, options=sqldeid.Options(replace=True))
    except NoSolutionError:
        return None
    [release] = result.releases.values()
    return float(release.to_dict()["loss"]["loss"])  # type: ignore[call-overload, index]


def drawn() -> Iterator[tuple[str, float, float | None]]:
    """Every run; without blunting one is enough."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "db.duckdb"
        text = adult(source).jobs[0].read_text(encoding="utf-8")
        for kind, runs in RUNS.items():
            for amount in AMOUNTS:
                for _ in range(runs if amount else 1):
                    yield kind, amount, loss(text, kind, amount, source)


def recorded() -> Losses:
    """What was recorded."""
    found: dict[tuple[str, float], list[float | None]] = defaultdict(list)
    with RECORD.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["levels"], float(row["amount"])].append(float(row["loss"]) if row["loss"] else None)
    return found


def cell(losses: Sequence[float | None]) -> str:
    """The mean of the runs that have a release, with its interval of 95 % (Student), and how many have none."""
    there = [x for x in losses if x is not None]
    none = f"; {len(losses) - len(there)} of {len(losses)} none" if len(there) < len(losses) else ""
    if not there:
        return f"no release in {len(losses)}"
    mean = sum(there) / len(there)
    if len(there) == 1:
        return f"{mean:.3f}{none}"
    half = STUDENT[len(there) - 1] * sqrt(sum((x - mean) ** 2 for x in there) / (len(there) - 1) / len(there))
    return f"{mean:.3f} ({mean - half:.3f} to {mean + half:.3f}){none}"


def table(losses: Losses) -> str:
    """The table of the page."""
    rows = [f"| {kind} | {' | '.join(cell(losses[kind, a]) for a in AMOUNTS)} |" for kind in RUNS]
    return "\n".join([HEAD, "|" + "---|" * (1 + len(AMOUNTS)), *rows])


def on_page(page: str) -> str:
    """The table as a page has it."""
    lines = page.splitlines()
    first = lines.index(HEAD)
    return "\n".join(lines[first : first + 2 + len(RUNS)])


def main(arguments: Sequence[str]) -> None:
    """Print the table, or make the runs and put it into the page."""
    if list(arguments[:1]) == ["--record"]:
        found = [(kind, f"{a:g}", "" if x is None else f"{x:.6f}") for kind, a, x in drawn()]
        with RECORD.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("levels", "amount", "loss"), *found])
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page.replace(on_page(page), table(recorded())), encoding="utf-8")
    sys.stdout.write(table(recorded()) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
