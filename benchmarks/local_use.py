"""What is left of Adult by local recoding, beside one node for all rows: for a model, and by k.

python benchmarks/run.py --only local-utility --only local-k     measures
python benchmarks/local_use.py docs/local-recoding.svg           draws loss against k, of both families, with the bound
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sqldeid
from benchmarks.must import MUST, Tables
from benchmarks.process import Row
from benchmarks.sources import Bench, Task, data_folder
from sqldeid.findings import Scores
from sqldeid.report.charts import Line, Panel, panels, render
from sqldeid.traded import LocalPoint, TradePoint

KS, LIMIT = (2, 3, 5, 10, 25, 50, 100), 0.05
LABEL, HELD_OUT, MOST = "salary-class", 10_162 / 30_162, 0.01
"""The label, the share of rows that models are tested on, and by how much the area may fall."""


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
        for p, q in _traded(bench)
    ]
    return {"Adult, nine columns, at most 5 % suppressed: loss by k": rows}


def _traded(bench: Bench) -> list[tuple[TradePoint, LocalPoint]]:
    job = sqldeid.Job.parse(Task("adult", method="local").job(bench))
    found = sqldeid.tradeoff(job, bench.database("adult", 0), sqldeid.Asked(KS, (LIMIT,)))["adult"]
    return list(zip(found.points, found.local, strict=True))


def draw(bench: Bench, into: Path) -> None:
    """Loss against k as a figure."""
    found = _traded(bench)
    lines = (
        Line("one node for all rows", KS, [p.loss or 0 for p, _ in found]),
        Line("local recoding", KS, [q.loss or 0 for _, q in found]),
        Line("least for local recoding (proven)", KS, [q.bound or 0 for _, q in found]),
    )
    title = "UCI Adult, nine columns, at most 5 % suppressed"
    panel = Panel(title, "k, the least rows of a class", "loss of information (0 to 1)", lines, ticks=KS, even=True)
    figure = panels([panel])
    figure.set_size_inches(8, 4.6)
    into.write_bytes(render(figure, "svg"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        draw(Bench(data_folder(), Path(cache), quick=False), Path(sys.argv[1]))
