"""`make bench`: measure, print tables, write JSON. Each case runs in a process of its own; none can stop the others.

python benchmarks/run.py                          everything (up to half an hour)
python benchmarks/run.py --quick                  a subset in two minutes
python benchmarks/run.py --only wide-11 --only prune-1
python benchmarks/run.py --json bench.json --cache FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import duckdb
from rich.console import Console

import sqldeid
from benchmarks import (
    attack_cost,
    children,
    choices,
    clusters,
    criteria,
    distinct,
    events,
    local_use,
    must,
    prune,
    ratios,
    series,
    servers,
    stacks,
    strategies,
    tradeoffs,
)
from benchmarks.show import console, markdown, show
from benchmarks.sources import Bench, data_folder

CASES: dict[str, Callable[[Bench], dict[str, list[dict[str, Any]]]]] = {
    "adult": must.adult,
    "adult-33": must.adult_33,
    "adult-330": must.adult_330,
    "ratios": ratios.ratios,
    "adult-100m": ratios.adult_100m,
    "wide-9": partial(must.wide, attributes=9, seconds=2),
    "wide-10": partial(must.wide, attributes=10, seconds=6),
    "wide-11": partial(must.wide, attributes=11, seconds=40),
    "wide-12": partial(must.wide, attributes=12, seconds=180),
    "wide-16": must.wide_16,
    "grid": must.grid,
    **{name.replace(" ", "-"): partial(must.criterion, name=name) for name in must.CRITERIA},
    "tradeoff": tradeoffs.tradeoff,
    "choices": choices.choices,
    "criteria": criteria.checks,
    "criteria-1m": partial(criteria.checks, millions=1),
    "loss-checks": criteria.losses,
    "local-utility": local_use.local_utility,
    "local-k": local_use.losses_by_k,
    "local-adult": local_use.local_adult,
    "local-criteria": local_use.local_criteria,
    "local-1m": partial(local_use.local_large, millions=1, seconds=45),
    "local-10m": partial(local_use.local_large, millions=10, seconds=150),
    "local-wide-12": partial(local_use.local_wide, attributes=12, full=0.4467),
    "local-wide-16": partial(local_use.local_wide, attributes=16, full=0.5809),
    "attacks-adult": attack_cost.adult,
    "attacks-1m": attack_cost.million,
    "attacks-memory": attack_cost.memory,
    "attacks-plans": attack_cost.plans,
    "attacks-composition": attack_cost.composition,
    "attacks-postgres": attack_cost.postgres,
    "attacks-spark": attack_cost.spark,
    "attacks-spark-1m": attack_cost.spark_million,
    "child-100k": partial(children.child, persons=100_000, seconds=40),
    "child-1m": partial(children.child, persons=1_000_000, seconds=300),
    "stacks": stacks.stacks,
    "distinct-30m": distinct.distinct_30m,
    "distinct-30m-spark": distinct.distinct_30m_spark,
    "distinct-postgres": distinct.distinct_postgres,
    "distinct-spark": distinct.distinct_spark,
    "postgres-1m": servers.postgres_million,
    "postgres-growth": servers.postgres_growth,
    "spark-10m": clusters.spark_ten_million,
    "spark-growth": clusters.spark_growth,
    "series": series.whole_run,
    "series-100m": series.prepare_large,
    "series-wide": series.prepare_wide,
    "events-1m": events.model_and_make,
    "events-10m": events.make_many,
    "spark-events-1m": events.spark_million,
    "events-parts": events.cluster_many,
    "events-laplace": events.laplace_large,
    "methods": strategies.methods,
    "losses": strategies.losses,
    "sizes": strategies.sizes,
    "prune-1": prune.table_1,
    "prune-3": prune.table_3,
    "prune-4": prune.table_4,
    "prune-5": prune.table_5,
}
QUICK = (
    "adult",
    "adult-33",
    "wide-9",
    "grid",
    "methods",
    "losses",
    "sizes",
    "prune-1",
    "prune-3",
    "prune-4",
    "prune-5",
)
PATIENCE = 600
"""Seconds after which a case is given up."""


def main() -> int:
    """Run what is asked for; 1 where a case could not be measured."""
    args = _arguments()
    if not data_folder().is_dir():
        print(f"there is no folder {data_folder()}; set SQLDEID_TEST_DATA", file=sys.stderr)
        return 2
    if args.case:
        _measure(args.case, Bench(data_folder(), args.cache, args.quick), args.json)
        return 0
    with tempfile.TemporaryDirectory(prefix="sqldeid-bench-") as name:
        cache = args.cache or Path(name)
        cache.mkdir(parents=True, exist_ok=True)
        return _run(args, cache, Path(name))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a subset, in two minutes")
    parser.add_argument("--only", action="append", choices=CASES, metavar="NAME", help=f"one of {', '.join(CASES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write what must hold as a Markdown table")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep the databases that are made")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(name: str, bench: Bench, file: Path) -> None:
    """One case, in the process that was started for it."""
    file.write_text(json.dumps(CASES[name](bench)), encoding="utf-8")


def _run(args: argparse.Namespace, cache: Path, scratch: Path) -> int:
    """Every case in turn, then the tables."""
    notes, tables, errors, seconds = Console(stderr=True), dict[str, list[dict[str, Any]]](), dict[str, str](), {}
    for name in args.only or (QUICK if args.quick else CASES):
        started = monotonic()
        found, error = _start(name, args.quick, cache, scratch / f"{name}.json")
        seconds[name] = monotonic() - started
        for title, rows in found.items():
            tables.setdefault(title, []).extend(rows)
        error = error or "; ".join(row["error"] for rows in found.values() for row in rows if "error" in row)
        if error:
            errors[name] = error
        notes.print(
            f"{name:22s} {seconds[name]:7.1f} s  {'could not be measured' if error else 'done'}", highlight=False
        )
    screen = console()
    for title in sorted(tables, key=lambda title: title != must.MUST):
        show(screen, title, tables[title])
    for name, error in errors.items():
        screen.print(f"{name} could not be measured:\n{error}\n", style="red", markup=False, highlight=False)
    lines = tables.get(must.MUST, [])
    screen.print(
        f"{sum(row['holds'] for row in lines)} of {len(lines)} lines hold; {sum(seconds.values()):.0f} s in all"
    )
    if args.json:
        everything = {
            "machine": _machine(),
            "quick": args.quick,
            "tables": tables,
            "errors": errors,
            "seconds": seconds,
        }
        args.json.write_text(json.dumps(everything, indent=1), encoding="utf-8")
    if args.markdown:
        args.markdown.write_text(markdown(lines) + "\n", encoding="utf-8")
    return 1 if errors else 0


def _start(name: str, quick: bool, cache: Path, file: Path) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """One case in a process of its own: its tables, or why there are none."""
    command = [sys.executable, __file__, "--case", name, "--cache", str(cache.resolve()), "--json", str(file)]
    command += ["--quick"] if quick else []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        try:
            _, text = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return {}, f"given up after {PATIENCE} s"
        except KeyboardInterrupt:
            os.killpg(child.pid, signal.SIGTERM)
            raise
    if child.returncode:
        return {}, text.strip()[-2000:]
    return json.loads(file.read_text(encoding="utf-8")), ""


def _machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "duckdb": duckdb.__version__,
        "sqldeid": sqldeid.__version__,
    }


if __name__ == "__main__":
    sys.exit(main())
