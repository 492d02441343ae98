"""What is left of Adult by local recoding, beside one node for all rows: for a model, and by k.

python benchmarks/run.py --only local-utility --only local-k     measures
python benchmarks/run.py --only local-adult --only local-criteria --only local-1m --only local-10m
python benchmarks/run.py --only local-wide-12 --only local-wide-16
python benchmarks/local_use.py docs/local-recoding.md     writes loss against k, of both families, with the bound, into
                                                          the page's table, and draws the figure beside it
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sqldeid
from benchmarks.must import CRITERIA, GB, MUST, Demand, Tables, at_most
from benchmarks.process import Row, finished, measure
from benchmarks.sources import Bench, Task, data_folder
from sqldeid.findings import Scores
from sqldeid.report.charts import Line, Panel, panels, render
from sqldeid.traded import LocalPoint, TradePoint

KS, LIMIT = (2, 3, 5, 10, 25, 50, 100), 0.05
LABEL, HELD_OUT, MOST = "salary-class", 10_162 / 30_162, 0.01
"""The label, the share of rows that models are tested on, and by how much the area may fall."""

ARX = {5: 0.0589, 50: 0.1535}
"""Loss of ARX 3.9 by k, at its best setting (measured: fast, weight of generalisation 0, nothing suppressed)."""

LEAST = {5: 0.030147335338, 10: 0.043071495838}
"""The bound by the least loss of each row alone, by k; what is proven must be no less."""

T_CLOSE = {"t_closeness": {"column": "occupation", "t": 0.3}}

PART = 0.4
"""Of what one node for all rows loses under l and t."""


def local_adult(bench: Bench) -> Tables:
    """Adult by local recoding: loss, bound and time of the whole process."""
    lines = []
    asked = ((5, LIMIT, 0.0505), (10, LIMIT, 0.0750), (5, 0.0, 0.0515), (10, 0.0, 0.0760))
    for (k, limit, most), attacks in [*((a, False) for a in asked), *((a, True) for a in asked[:2])]:
        row = _measured(Task("adult", k=k, limit=limit, method="local", attacks=attacks), bench)
        demands = [_loss(row, most), Demand(f"bound ≥ {LEAST[k]}", f"{row['bound']:.6f}", row["bound"] >= LEAST[k])]
        demands += [at_most(row["process_s"], 6, "s process")]
        lines.append(_line(f"Adult, local recoding, k={k}, {limit:.0%}{', attacked' * attacks}", demands, row))
    for k, share in ((5, 0.88), (50, 0.97)):
        row = _measured(Task("adult", k=k, method="local"), bench)
        lines.append(_line(f"Adult, local recoding, k={k}", [_loss(row, share * ARX[k])], row, f"loss {ARX[k]}"))
    return {MUST: lines}


def local_criteria(bench: Bench) -> Tables:
    """Adult with l or t on `occupation`: beside one node for all rows under the same criterion."""
    lines = []
    asked = {"distinct l = 3": CRITERIA["distinct l-diversity"], "t = 0.3": T_CLOSE}
    for name, criteria in asked.items():
        full = measure(Task("adult", sensitive="occupation", criteria=criteria), bench)["value"]
        row = _measured(Task("adult", method="local", sensitive="occupation", criteria=criteria), bench)
        case = f"Adult, local recoding, k=5, {name} (one node for all: {full:.4f}; bound {row['bound']:.4f})"
        lines.append(_line(case, [_loss(row, PART * full)], row))
    return {MUST: lines}


def local_large(bench: Bench, millions: int, seconds: float) -> Tables:
    """Adult resampled to millions of rows."""
    row = _measured(Task("adult", millions=millions, method="local"), bench)
    demands = [at_most(row["process_s"], seconds, "s process"), at_most(row["peak_mb"], 2 * GB, "MB peak")]
    case = f"Adult, {row['rows']:,} rows, {row['combinations']:,} combinations, local recoding (loss {row['loss']:.4f})"
    return {MUST: [_line(case, demands, row)]}


def local_wide(bench: Bench, attributes: int, full: float) -> Tables:
    """`wide` for a minute: half of what the best known node for all rows loses."""
    row = _measured(Task("wide", attributes=attributes, method="local", time_limit=60), bench)
    gap = Demand("a gap", f"gap {row['loss'] - row['bound']:.4f}", 0 < row["bound"] < row["loss"])
    case = f"wide, {attributes} attributes, local recoding, time_limit = 60"
    return {MUST: [_line(case, [_loss(row, full / 2), gap], row)]}


def _measured(task: Task, bench: Bench) -> Row:
    """A whole run of the program."""
    result, figures, _, _ = finished(task, bench, bench.database(task.data, task.millions))
    release = result["releases"][task.data]
    return {
        "rows": release["rows"],
        "combinations": release["search"]["combinations"],
        "loss": release["loss"][task.loss],
        "bound": release["bound"],
        "process_s": figures["seconds"],
        "peak_mb": round(figures["peak"] / 1e6),
    }


def _loss(row: Row, most: float) -> Demand:
    return Demand(f"loss ≤ {most:.4f}", f"{row['loss']:.6f}", row["loss"] <= most)


def _line(case: str, demands: list[Demand], row: Row, arx: str = "-") -> Row:
    return {
        "case": case,
        "must": ", ".join(d.must for d in demands),
        "measured": ", ".join(d.measured for d in demands),
        "holds": all(d.holds for d in demands),
        "ARX 3.9": arx,
        "process_s": row["process_s"],
        "peak_mb": row["peak_mb"],
    }


def local_utility(bench: Bench) -> Tables:
    """Area under the ROC curve of logistic regressions, trained on eight columns of Adult at k = 5."""
    started = monotonic()
    found = {method: _evaluated(bench, method) for method in ("local", "frontier")}
    originals, local = _area(found["local"].originals), _area(found["local"].anonymised)
    full = _area(found["frontier"].anonymised), _area(found["frontier"].originals)
    row: Row = {
        "case": f"Adult, local recoding, 8 columns, k=5, {LABEL}",
        "must": f"area ≥ originals − {MOST:g}",
        "measured": f"area {local:.4f}, originals {originals:.4f} (full-domain {full[0]:.4f}, originals {full[1]:.4f})",
        "holds": local >= originals - MOST,
        "ARX 3.9": "-",
        "process_s": round(monotonic() - started, 1),
        "peak_mb": "-",
    }
    return {MUST: [row]}


def _evaluated(bench: Bench, method: str) -> sqldeid.Classification:
    asked = Task("adult", method=method, sensitive=LABEL).job(bench)
    return sqldeid.evaluate(sqldeid.Job.parse(asked), bench.database("adult", 0), LABEL, test_share=HELD_OUT)


def _area(scores: Scores | None) -> float:
    if scores is None or scores.roc_auc is None:
        raise ValueError("the label has two classes, and a model was asked for")
    return scores.roc_auc


def losses_by_k(bench: Bench) -> Tables:
    """Loss of both families for each k, nine columns of Adult, with what local recoding must lose at least."""
    rows: list[Row] = [
        {
            "k": p.k,
            "one node for all": round(p.loss or 0, 4),
            "local": round(q.loss or 0, 4),
            "at least": round(q.bound or 0, 4),
            "suppressed": f"{p.suppressed} and {q.suppressed}",
            "layers": q.layers,
            "seconds": round(q.seconds, 1),
        }
        for p, q in traded(bench)
    ]
    return {"Adult, nine columns, at most 5 % suppressed: loss by k": rows}


def traded(bench: Bench, ks: tuple[int, ...] = KS) -> list[tuple[TradePoint, LocalPoint]]:
    job = sqldeid.Job.parse(Task("adult", method="local").job(bench))
    found = sqldeid.tradeoff(job, bench.database("adult", 0), sqldeid.Asked(ks, (LIMIT,)))["adult"]
    return list(zip(found.points, found.local, strict=True))


NAMES = ("one node for all rows", "local recoding", "least for local recoding (proven)")
"""What the figure calls its lines, and the page's table its columns."""

PLACE = "<!-- loss by k -->\n\n"
"""What stands in the page before the table, which ends with the next empty line."""


def recorded(page: str) -> dict[int, tuple[float, ...]]:
    """By k, what each family loses, and what must be lost: the page's table."""
    rows = page.partition(PLACE)[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {int(k): tuple(map(float, losses)) for k, *losses in cells}


def record(found: list[tuple[TradePoint, LocalPoint]], page: Path) -> None:
    """Put what was measured into the page's table."""
    rows = [f"| {p.k} | {p.loss or 0:.4f} | {q.loss or 0:.4f} | {q.bound or 0:.4f} |" for p, q in found]
    table = "\n".join((f"| k | {' | '.join(NAMES)} |", "|---|---|---|---|", *rows))
    before, place, after = page.read_text(encoding="utf-8").partition(PLACE)
    if not place:
        raise ValueError("the page has no place for the table")
    page.write_text(f"{before}{place}{table}\n\n{after.partition(chr(10) * 2)[2]}", encoding="utf-8")


def draw(page: Path) -> None:
    """Loss against k as a figure beside the page, from its table."""
    found = recorded(page.read_text(encoding="utf-8"))
    lines = tuple(Line(name, KS, [found[k][i] for k in KS]) for i, name in enumerate(NAMES))
    title = "UCI Adult, nine columns, at most 5 % suppressed"
    panel = Panel(title, "k, the least rows of a class", "loss of information (0 to 1)", lines, ticks=KS, even=True)
    figure = panels([panel])
    figure.set_size_inches(8, 4.6)
    page.with_suffix(".svg").write_bytes(render(figure, "svg"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        record(traded(Bench(data_folder(), Path(cache), quick=False)), Path(sys.argv[1]))
        draw(Path(sys.argv[1]))
