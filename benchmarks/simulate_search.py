"""Run a search strategy on the real data against DuckDB, and print what it took.

python benchmarks/simulate_search.py adult --limit 0.05 --method frontier
python benchmarks/simulate_search.py wide --columns 10
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.classes import Workbench, read_table
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.search import Problem, search

DATA = Path(__file__).parents[2] / "shared" / "data"
FILES = {
    "adult": ("adult.csv", "adult_hierarchy_{}.csv"),
    "wide": ("mach2019_int.csv", "mach2019_int_hierarchy_{}.csv"),
}


def main() -> None:
    """One run per method and limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", choices=FILES)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--limit", type=float, nargs="*", default=[0.05])
    parser.add_argument("--loss", default="loss")
    parser.add_argument("--method", nargs="*", default=["frontier"])
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--checks-limit", type=int)
    parser.add_argument("--max-loss", type=float)
    parser.add_argument("--progress", action="store_true")
    args = parser.parse_args()
    columns = read_table(DATA / args.data, *FILES[args.data], args.columns)
    for limit in args.limit:
        for method in args.method:
            run(columns, limit, method, args)


def run(columns: list, limit: float, method: str, args: argparse.Namespace) -> None:
    """One search on fresh classes."""
    rows = len(columns[0].codes)
    bench = Workbench(columns, args.k, allowed_rows(limit, rows))
    problem = Problem(
        bench.lattice,
        bench.marginals,
        rows,
        bench.allowed,
        make_loss(args.loss, bench.marginals, rows),
        bench,
        time_limit=args.time_limit,
        checks_limit=args.checks_limit,
        max_loss=args.max_loss,
        progress=print if args.progress else None,
    )
    start = perf_counter()
    outcome = search(method, problem)
    print(
        f"{args.data}{len(columns)} k={args.k} limit={limit} {args.loss} {method}: {outcome.loss!r} {outcome.node} "
        f"suppressed={outcome.evaluation.failing} optimal={outcome.optimal} gap={outcome.gap:.6g} "
        f"checks={outcome.checks} statements={bench.statements} {perf_counter() - start:.2f} s "
        f"(nodes {bench.lattice.size:,}, classes {len(bench.words):,})",
        flush=True,
    )


if __name__ == "__main__":
    main()
