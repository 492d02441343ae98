"""Tables 1, 3, 4 and 5 of Prasser et al. 2016, redone with this library's searches on the data that is here.

Best-first keeps two stores: `lossy` (generalisations inherit it; minimum rank) and `failing` (specialisations do;
maximum rank). Times are of searches in one process, on classes that are folded already.
"""

from __future__ import annotations

from time import monotonic, perf_counter

from benchmarks.inside import folded
from benchmarks.process import Row
from benchmarks.sources import Bench, Task
from benchmarks.stores import VARIANTS, Blind, Recorder, Store
from sqldeid.errors import NoSolutionError
from sqldeid.tables.search import Outcome, Problem, search
from sqldeid.tables.search.best_first import best_first

Tables = dict[str, list[Row]]

PATIENCE = 60.0
"""Seconds after which one search, or the replay of one store, ends."""


def _recorded(problem: Problem) -> tuple[Outcome, Recorder, Recorder]:
    """A best-first search with what its two stores were asked: failing, lossy."""
    recorders: list[Recorder] = []

    def make(*, upwards: bool) -> Recorder:
        recorders.append(Recorder(upwards))
        return recorders[-1]

    outcome = best_first(problem, make)
    failing, lossy = sorted(recorders, key=lambda r: r.upwards)
    return outcome, failing, lossy


def table_1(bench: Bench) -> Tables:
    """Seconds that each kind of store takes for the inserts and queries of the same search."""
    cases = [(Task("adult"), 0.0), (Task("adult"), 0.05)]
    cases += [(Task("wide", attributes=n), 0.05) for n in ((7,) if bench.quick else (7, 8, 9))]
    rows = []
    for task, limit in cases[1:] if bench.quick else cases:
        with folded(task, bench) as inside:
            _, failing, lossy = _recorded(inside.problem(limit=limit, time_limit=PATIENCE))
            attributes = len(inside.folded.columns)
        for name, recorder in (("loses too much (min rank)", lossy), ("fails (max rank)", failing)):
            rows.append(
                {"data": task.data, "attributes": attributes, "limit": limit, "property": name, **_replayed(recorder)}
            )
    return {"[PRUNE] table 1: time to store and ask for a property, by kind of store (s)": rows}


def _replayed(recorder: Recorder) -> Row:
    row: Row = {"queries": sum(not o[0] for o in recorder.operations), "inserts": recorder.inserts}
    for name, variant in VARIANTS.items():
        row[name] = _replay(recorder, variant(upwards=recorder.upwards))
    row["antichain"] = recorder.largest
    return row


def _replay(recorder: Recorder, store: Store) -> float | None:
    """Seconds for the recorded operations; None beyond `PATIENCE`. Every store must give the same answers."""
    started = perf_counter()
    for insert, node, answer in recorder.operations:
        if insert:
            if answer:
                store.add(node)
        elif store.covers(node) != answer:
            raise AssertionError(f"{type(store).__name__} answers otherwise on {node}")
        elif perf_counter() - started > PATIENCE:
            return None
    return perf_counter() - started


def table_3(bench: Bench) -> Tables:
    """Best-first with its stores, and with stores that know nothing."""
    rows = []
    for attributes in (4, 5, 6, 7) if bench.quick else (4, 5, 6, 7, 8, 9):
        with folded(Task("wide", attributes=attributes), bench) as inside:
            blind = best_first(inside.problem(time_limit=PATIENCE), Blind)
            seeing = search("best-first", inside.problem(time_limit=PATIENCE))
        rows.append(
            {
                "data": "wide",
                "attributes": attributes,
                "checks without": blind.checks,
                "checks with": seeing.checks,
                "without_s": blind.seconds,
                "with_s": seeing.seconds,
                "saved share": 1 - seeing.seconds / blind.seconds,
                "same node": blind.node == seeing.node,
                "optimal": blind.optimal and seeing.optimal,
            }
        )
    return {"[PRUNE] table 3: best-first without and with prediction": rows}


def table_4(bench: Bench) -> Tables:
    """How much of the lattice is checked as attributes are added."""
    rows = []
    for attributes in range(3, 8 if bench.quick else 11):
        with folded(Task("wide", attributes=attributes), bench) as inside:
            outcome, _, lossy = _recorded(inside.problem(time_limit=PATIENCE))
            ours = search("frontier", inside.problem(time_limit=PATIENCE))
            size = inside.plan.lattice.size
        rows.append(
            {
                "data": "wide",
                "attributes": attributes,
                "lattice": size,
                "best-first checks": outcome.checks,
                "best-first share": outcome.checks / size,
                "inserts": lossy.inserts,
                "hits share": lossy.hits,
                "antichain share": lossy.largest / max(lossy.inserts, 1),
                "best-first optimal": outcome.optimal,
                "frontier checks": ours.checks,
                "frontier share": ours.checks / size,
                "frontier optimal": ours.optimal,
                "same node": outcome.node == ours.node,
            }
        )
    return {"[PRUNE] table 4: checked share by dimension (store: loses too much)": rows}


def table_5(bench: Bench) -> Tables:
    """The greedy baseline, and what best-first and frontier find in the seconds that it takes."""
    cases = [Task("adult", attributes=n) for n in range(3, 10)] + [Task("wide", attributes=n) for n in range(3, 17)]
    rows = []
    for task in cases[::4] if bench.quick else cases:
        with folded(task, bench) as inside:
            greedy = search("igreedy", inside.problem())
            row: Row = {"data": task.data, "attributes": len(inside.folded.columns), "seconds_s": greedy.seconds}
            row |= {"igreedy checks": greedy.checks, "igreedy loss": greedy.loss}
            for method in ("best-first", "frontier"):
                problem = inside.problem(time_limit=greedy.seconds)
                row |= _against(method, greedy, problem)
            rows.append(row)
    return {
        "[PRUNE] table 5: loss found in the time of igreedy": rows,
        "[PRUNE] table 5, summary: quality (1 − loss) gained over igreedy": _summary(rows),
    }


def _against(method: str, greedy: Outcome, problem: Problem) -> Row:
    started = monotonic()
    try:
        found = search(method, problem)
    except NoSolutionError:
        return {f"{method} loss": None, f"{method} gain share": None, f"{method}_s": monotonic() - started}
    gain = (1 - found.loss) / (1 - greedy.loss) - 1
    return {f"{method} loss": found.loss, f"{method} gain share": gain, f"{method}_s": found.seconds}


def _summary(rows: list[Row]) -> list[Row]:
    found = []
    for data in dict.fromkeys(row["data"] for row in rows):
        for method in ("best-first", "frontier"):
            every = [row[f"{method} gain share"] for row in rows if row["data"] == data]
            gains = [gain for gain in every if gain is not None]
            found.append(
                {
                    "data": data,
                    "method": method,
                    "cases": len(every),
                    "nothing found": len(every) - len(gains),
                    "worse": sum(gain < 0 for gain in gains),
                    "same": sum(gain == 0 for gain in gains),
                    "better": sum(gain > 0 for gain in gains),
                    "least gain share": min(gains, default=None),
                    "mean gain share": sum(gains) / len(gains) if gains else None,
                    "most gain share": max(gains, default=None),
                }
            )
    return found
