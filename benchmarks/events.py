"""Events: a million events to models and back, ten million made, a million parts clustered, `laplace` on 100,000."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import duckdb

from benchmarks.clusters import server
from benchmarks.must import GB, MUST, Demand, at_most, line
from benchmarks.process import LAUNCH, RunError
from benchmarks.sources import Bench, toml
from sqldeid.demo.sequences import procedure_rows, transfer_rows
from sqldeid.engine.opening import Settings
from sqldeid.events.clusters import cluster_parts
from sqldeid.events.plan import plan
from sqldeid.events.sequences import read_sequences
from sqldeid.job.events import Events
from sqldeid.run import reading

Tables = dict[str, list[dict[str, Any]]]

MILLION_OBJECTS, PAPER_OBJECTS, PARTS_OBJECTS = 176_000, 4_370, 950_000
TRANSFERS: dict[str, Any] = {
    **{"source": "e", "object": "subject_id", "time": "intime", "order": "row_id"},
    **{"state": ["curr_wardid", "eventtype"], "gap_hours": 16_800, "attacks": False},
}
PROCEDURES: dict[str, Any] = {
    **{"source": "e", "object": "subject_id", "order": ["hadm_id", "ticket_id_seq", "row_id"]},
    **{"state": "cpt_cd", "attacks": False},
}
STATES = {
    "T": [f"{ward}\t{kind}" for ward in range(1, 43) for kind in ("admit", "transfer")] + ["\tdischarge"],
    "C": [f"{90_000 + code * 7_919 % 9_990:05d}" for code in range(117)],
}


def model_and_make(bench: Bench) -> Tables:
    """A whole run on a million events."""
    section = TRANSFERS | {"privacy": {"method": "ratio", "epsilon": 0.65}}
    row = _run(bench, _database(bench, "T", MILLION_OBJECTS), section, "900MB", "1 million events, ratio")
    demands = [at_most(row["process_s"], 40, "s"), at_most(row["peak_mb"], 1.5 * GB, "MB")]
    return {MUST: [line("events, 1 million", demands, row)], "Events": [row]}


def spark_million(bench: Bench) -> Tables:
    """The run of `model_and_make` on Spark, through a Connect server of this machine."""
    section = TRANSFERS | {"privacy": {"method": "ratio", "epsilon": 0.65}}
    title = "1 million events on Spark, ratio"
    with server(bench, _database(bench, "T", MILLION_OBJECTS), "e", spark__driver__memory="2g") as there:
        before = there.cpu_s()
        row = _run(bench, there.url, section, "500MB", title)
        row |= {"driver_mb": there.peak_mb(), "driver_cpu_s": there.cpu_s() - before}
    demands = [at_most(row["peak_mb"], GB, "MB process"), at_most(row["driver_mb"], 4 * GB, "MB driver")]
    return {MUST: [line(title, demands, row)], "Events": [row]}


def make_many(bench: Bench) -> Tables:
    """Ten million events from the models of 25,000."""
    section = TRANSFERS | {"privacy": {"method": "none"}, "generate": {"objects": 1_750_000}}
    row = _run(bench, _database(bench, "T", PAPER_OBJECTS), section, "500MB", "10 million events made")
    demands = [at_most(row["process_s"], 120, "s"), at_most(row["peak_mb"], GB, "MB")]
    return {MUST: [line("events, 10 million made", demands, row)], "Events": [row]}


def laplace_large(bench: Bench) -> Tables:
    """`laplace` with epsilon 1 on 100,000 objects of each kind, and at the size of the source."""
    rows, lines = [], []
    for kind, objects, most in [("T", 4_370, 0.55), ("C", 3_171, 0.5), ("T", 100_000, 0.2), ("C", 100_000, 0.2)]:
        states = bench.cache / f"states_{kind}.txt"
        states.write_text("\n".join(STATES[kind]), encoding="utf-8")
        section = {k: v for k, v in (TRANSFERS if kind == "T" else PROCEDURES).items() if k != "gap_hours"}
        privacy: dict[str, Any] = {"method": "laplace", "epsilon": 1.0, "states": str(states), "other": "OTHER"}
        if kind == "T":
            privacy |= {"time_range": ["2100-01-01", "2125-01-01"], "gap_bins_hours": [1, 6, 24, 168, 1000, 10_000]}
        title = f"laplace, {objects:,} objects of kind {kind}"
        row = _run(bench, _database(bench, kind, objects), section | {"privacy": privacy}, "900MB", title)
        distance = row["tvd_2gram"]
        rows.append(row)
        lines.append(line(title, [Demand(f"2-gram TVD ≤ {most}", f"{distance:.3f}", distance <= most)], row))
    return {MUST: lines, "Events": rows}


def cluster_many(bench: Bench) -> Tables:
    """A million parts; events are ordered and split first, which is not counted."""
    path = _database(bench, "T", PARTS_OBJECTS)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=bench.cache) as name:
        figures, found = Path(name) / "figures.json", Path(name) / "found.json"
        launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(figures)]
        done = subprocess.run(
            [*launcher, sys.executable, str(Path(__file__)), str(path), str(found)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RunError(f"exit code {done.returncode}: {done.stderr.strip()[-1000:]}")
        used, row = json.loads(figures.read_text()), json.loads(found.read_text())
    row |= {"process_s": used["seconds"], "peak_mb": round(used["peak"] / 1e6)}
    demands = [
        at_most(row["cluster_s"], 60, "s"),
        Demand("≥ 1,000,000 parts", f"{row['parts']:,}", row["parts"] >= 10**6),
    ]
    return {MUST: [line("events, a million parts clustered", demands, row)], "Events": [row]}


def _cluster(path: Path, out: Path) -> None:
    """In a process of its own: cluster the parts of a database."""
    section = TRANSFERS | {"privacy": {"method": "none"}}
    with reading(path, path, Settings(memory_limit="2500MB")) as engine:
        planned = plan("x", Events.model_validate(section), engine, Path())
        sequences = read_sequences(planned, engine)
        started = monotonic()
        found = cluster_parts("x", sequences.split, planned.part.clusters, engine)
        seconds = monotonic() - started
    row = {
        "case": "cluster",
        "cluster_s": seconds,
        "parts": found.parts,
        "sets": found.sets,
        "clusters": found.clusters,
    }
    out.write_text(json.dumps(row), encoding="utf-8")


def _database(bench: Bench, kind: str, objects: int) -> Path:
    path = bench.cache / f"events_{kind}_{objects}.duckdb"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.register("rows", transfer_rows(objects, 1) if kind == "T" else procedure_rows(objects, 1))
            connection.execute("CREATE TABLE e AS SELECT * FROM rows")
    return path


def _run(bench: Bench, database: Path | str, section: dict[str, Any], memory: str, title: str) -> dict[str, Any]:
    """`sqldeid anonymize` on a generated database; on a server into a schema there."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=bench.cache) as name:
        folder = Path(name)
        release = {"into": str(folder / "release.duckdb")} if isinstance(database, Path) else {"schema": "made"}
        job = {"release": release, "events": {"x": section}}
        (folder / "job.toml").write_text(toml(job), encoding="utf-8")
        figures, result = folder / "figures.json", folder / "result.json"
        program = Path(sys.executable).with_name("sqldeid")
        command = [
            str(program),
            "anonymize",
            str(database),
            "--job",
            str(folder / "job.toml"),
            "--memory-limit",
            memory,
        ]
        launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(figures)]
        done = subprocess.run([*launcher, *command, "--json", str(result)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunError(f"exit code {done.returncode}: {done.stderr.strip()}")
        used, found = json.loads(figures.read_text()), json.loads(result.read_text())["releases"]["x"]
    return {
        "case": title,
        "process_s": used["seconds"],
        "cpu_s": used["cpu"],
        "peak_mb": round(used["peak"] / 1e6),
        "source_events": found["source"]["events"],
        "events": found["events"],
        "clusters": found["clusters"],
        **{n: found["evaluation"][n] for n in ("similarity", "cover", "tvd_2gram", "tvd_length")},
    }


if __name__ == "__main__":
    _cluster(Path(sys.argv[1]), Path(sys.argv[2]))
