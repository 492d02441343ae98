"""The limits that the search and the whole program are held to, line by line, each beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.classes import read_table
from benchmarks.exhaust import Exhausted, exhaust
from benchmarks.figures import ARX, OPTIMA
from benchmarks.inside import Inside, folded
from benchmarks.process import Row, measure
from benchmarks.sources import FILES, Bench, Task
from sqldeid.errors import NoSolutionError
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.loss import LOSSES
from sqldeid.tables.search import search

Tables = dict[str, list[Row]]

MUST, RUNS, GRID = "Must hold", "Whole runs", "Adult: frontier against exhaustive search"
KS, LIMITS = (2, 3, 5, 10, 25, 100), (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
GB = 1000
"""In the megabytes of a row's peak."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One thing that must hold, in words, with what was measured."""

    must: str
    measured: str
    holds: bool


def at_most(value: float, most: float, unit: str) -> Demand:
    """A measured number with its limit; `unit` follows both."""
    return Demand(f"≤ {most:,} {unit}", f"{_short(value)} {unit}", value <= most)


def _short(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def proven(row: Row) -> Demand:
    """The optimum, with its proof."""
    return Demand("proven", "proven" if row["optimal"] else f"gap {row['gap']:.4g}", row["optimal"])


def line(case: str, demands: list[Demand], row: Row, arx: str = "") -> Row:
    """One line of the table of what must hold."""
    return {
        "case": case,
        "must": ", ".join(d.must for d in demands),
        "measured": ", ".join(d.measured for d in demands),
        "holds": all(d.holds for d in demands),
        "ARX 3.9": ARX.get(arx, "-"),
        "process_s": row["process_s"],
        "peak_mb": row["peak_mb"],
    }


def adult(bench: Bench) -> Tables:
    """Adult as it is, at three limits."""
    zero, five, twenty = (measure(Task("adult", limit=x, repeats=3), bench) for x in (0.0, 0.05, 0.2))
    lines = [
        line(
            "Adult, k=5, 5 %",
            [at_most(five["checks"], 200, "checks"), at_most(five["search_s"], 0.35, "s search"), proven(five)],
            five,
            "adult 5 %",
        ),
        line("Adult, k=5, 0 %", [at_most(zero["checks"], 100, "checks"), proven(zero)], zero, "adult 0 %"),
        line("Adult, k=5, 20 %", [at_most(twenty["checks"], 620, "checks"), proven(twenty)], twenty),
        line(f"{five['rows']:,} rows, whole process", [at_most(five["process_s"], 3, "s")], five),
    ]
    return {MUST: lines, RUNS: [zero, five, twenty]}


def adult_33(bench: Bench) -> Tables:
    """A million rows."""
    row = measure(Task("adult", millions=1, repeats=3), bench)
    demands = [at_most(row["process_s"], 4, "s process"), proven(row)]
    return {MUST: [line("Adult ×33, k=5, 5 %", demands, row, "adult ×33")], RUNS: [row]}


def adult_330(bench: Bench) -> Tables:
    """Ten million rows in little memory."""
    row = measure(Task("adult", millions=10, memory_limit="1GB"), bench)
    peak = at_most(row["peak_mb"], 2 * GB, "MB peak")
    lines = [
        line("Adult ×330, memory_limit 1GB", [at_most(row["process_s"], 20, "s process"), peak], row, "adult ×330"),
        line(f"{row['rows']:,} rows, memory_limit 1GB", [at_most(row["process_s"], 60, "s process"), peak], row),
    ]
    return {MUST: lines, RUNS: [row]}


def wide(bench: Bench, attributes: int, seconds: float) -> Tables:
    """The first attributes of `wide`, to the end."""
    row = measure(Task("wide", attributes=attributes, repeats=3 if attributes < 10 else 1), bench)
    demands = [at_most(row["search_s"], seconds, "s search"), proven(row)]
    if attributes in OPTIMA:
        known = OPTIMA[attributes]
        demands.append(Demand(f"loss {known} ± 1e-8", f"{row['value']:.11f}", abs(row["value"] - known) <= 1e-8))
    return {MUST: [line(f"wide, {attributes} attributes", demands, row, f"wide {attributes}")], RUNS: [row]}


def wide_16(bench: Bench) -> Tables:
    """Every attribute of `wide`, for ten seconds."""
    row = measure(Task("wide", attributes=16, time_limit=10), bench)
    gap = Demand("a gap", f"gap {row['gap']:.4f}", 0 < row["gap"] < row["value"])
    demands = [Demand("loss ≤ 0.5812", f"{row['value']:.5f}", row["value"] <= 0.5812), gap]
    return {MUST: [line("wide, 16 attributes, time_limit = 10", demands, row, "wide 16")], RUNS: [row]}


CRITERIA: dict[str, Mapping[str, object]] = {
    "distinct l-diversity": {"l_diversity": {"column": "occupation", "l": 3}},
    "entropy l-diversity": {"l_diversity": {"column": "occupation", "l": 3, "kind": "entropy"}},
    "recursive l-diversity": {"l_diversity": {"column": "occupation", "l": 3, "kind": "recursive", "c": 3.0}},
    "t-closeness": {"t_closeness": {"column": "occupation", "t": 0.5}},
}
"""What is asked for beyond k, with `occupation` as the sensitive column."""


def criterion(bench: Bench, name: str) -> Tables:
    """A million rows: a criterion beyond k against k alone, of the same job."""
    plain = measure(Task("adult", millions=1, sensitive="occupation"), bench)
    task = Task("adult", millions=1, sensitive="occupation", criteria=CRITERIA[name])
    row = {**measure(task, bench), "criteria": name}
    ratios = [
        at_most(row[what] / plain[what], 3, f"× {words}")
        for what, words in (("checks", "checks"), ("search_s", "search"), ("process_s", "process"))
    ]
    return {MUST: [line(f"Adult ×33, {name} against k alone", ratios, row)], RUNS: [plain, row]}


def grid(bench: Bench) -> Tables:
    """Every k, limit and loss of the grid: the same node as the exhaustive search."""
    ks = (5,) if bench.quick else KS
    name, pattern = FILES["adult"]
    known = exhaust(read_table(bench.data / "adult", name, pattern), ks)
    rows: list[Row] = []
    with folded(Task("adult"), bench) as inside:
        for loss in LOSSES:
            rows += [_compare(inside, known, k, loss) for k in ks]
    cases, same = sum(r["cases"] for r in rows), sum(r["same"] for r in rows)
    total = {
        "case": f"Adult, {len(ks)} k × {len(LIMITS)} limits × {len(LOSSES)} losses",
        "must": "the optimum of exhaustive search, proven",
        "measured": f"{same} of {cases}",
        "holds": same == cases,
        "ARX 3.9": "-",
    }
    return {MUST: [total], GRID: rows}


def _compare(inside: Inside, known: Exhausted, k: int, loss: str) -> Row:
    """All limits of one k and loss."""
    found = []
    for limit in LIMITS:
        problem = inside.problem(k=k, limit=limit, loss=loss)
        expected = known.optimum(loss, k, allowed_rows(limit, known.rows))
        try:
            outcome = search("frontier", problem)
        except NoSolutionError:
            found.append((expected is None, problem.state.checks, 0.0))
        else:
            found.append((outcome.optimal and outcome.node == expected, outcome.checks, outcome.seconds))
    checks = sorted(c for _, c, _ in found)
    return {
        "k": k,
        "loss": loss,
        "limits": len(LIMITS),
        "cases": len(found),
        "same": sum(same for same, _, _ in found),
        "lattice": inside.plan.lattice.size,
        "fewest checks": checks[0],
        "median checks": checks[len(checks) // 2],
        "most checks": checks[-1],
        "search_s": sum(seconds for _, _, seconds in found),
    }
