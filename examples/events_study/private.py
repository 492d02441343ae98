"""What `laplace` keeps at several epsilons, beside a plain noised table of transitions that spends all of epsilon."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np

from sqldeid.demo.sequences import procedure_rows, transfer_rows
from sqldeid.engine.opening import open_connection
from sqldeid.events.evaluate import Source, evaluate
from sqldeid.events.generate import Made
from sqldeid.events.plan import plan
from sqldeid.events.privacy.laplace import Spend, noise
from sqldeid.events.release import read_private
from sqldeid.events.stage import put_batches
from sqldeid.events.synthesize import Tables, count_tables, fit_private, possible
from sqldeid.job.events import Events
from sqldeid.sql import render

HERE = Path(__file__).resolve().parent
EPSILONS = (0.5, 1.0, 5.0)
WARDS = [f"{ward}\t{kind}" for ward in range(1, 43) for kind in ("admit", "transfer")] + ["\tdischarge"]
CODES = [f"{90_000 + code * 7_919 % 9_990:05d}" for code in range(117)]
"""Every state that the invented hospitals can have."""


@dataclass(frozen=True)
class Dataset:
    """Events, and the section of a job that makes them private."""

    name: str
    section: Mapping[str, Any]
    load: Callable[[duckdb.DuckDBPyConnection], object]


@dataclass(frozen=True)
class Run:
    """One private release; `plain_2gram` is the distance of a plain noised table."""

    dataset: str
    epsilon: float
    repetition: int
    similarity: float
    cover: float
    tvd_2gram: float
    tvd_length: float
    plain_2gram: float
    noise_ratio: float


def put(connection: duckdb.DuckDBPyConnection, rows: object) -> None:
    """Invented rows as the table `events`."""
    connection.register("invented", rows)
    connection.execute("CREATE TABLE events AS SELECT * FROM invented")
    connection.unregister("invented")


def section(job: str, name: str) -> dict[str, Any]:
    """A section of one of the jobs beside this file, with its list of states."""
    found: dict[str, Any] = tomllib.loads((HERE / job).read_text(encoding="utf-8"))["events"][name]
    found["privacy"]["states"] = str(HERE / found["privacy"]["states"])
    return found | {"source": "events"}


def datasets(folder: Path | None, scale: float, lists: Path) -> list[Dataset]:
    """The invented ones, and the real ones where a folder is given; `lists` gets the invented ones' states."""
    moved, billed = section("transfers.toml", "transfers_private"), section("procedures.toml", "procedures_private")
    found = []
    if folder is not None:
        for name, part in (("CPTEVENTS", billed), ("TRANSFERS", moved)):
            file = str(folder / f"{name}.csv")
            found.append(Dataset(f"{name}, MIMIC-III", part, lambda c, f=file: c.read_csv(f).create("events")))
    for name, states in (("wards", WARDS), ("codes", CODES)):
        (lists / f"{name}.txt").write_text("\n".join(states), encoding="utf-8")
    invented = {"states": str(lists / "wards.txt"), "time_range": ["2100-01-01", "2125-01-01"], "events_max": 8}
    wards = moved | {"state": ["curr_wardid", "eventtype"], "privacy": moved["privacy"] | invented}
    coded = {"states": str(lists / "codes.txt"), "events_max": 8}
    codes = billed | {"state": "cpt_cd", "privacy": billed["privacy"] | coded}
    return [
        Dataset("CPTEVENTS, invented", codes, lambda c: put(c, procedure_rows(round(3_171 * scale), 1))),
        Dataset("TRANSFERS, invented", wards, lambda c: put(c, transfer_rows(round(4_370 * scale), 1))),
        *found,
    ]


def study(data: Dataset, epsilons: tuple[float, ...], repetitions: int) -> list[Run]:
    """Releases of one dataset, each with noise of its own and, to compare well, as many objects as the source has."""
    connection = duckdb.connect()
    data.load(connection)
    runs = []
    with open_connection(connection) as engine:
        engine.neutralise()
        engine.begin()
        planned = plan("private", Events.model_validate(data.section), engine, Path())
        if planned.domain is None:
            raise ValueError("only laplace has public domains")
        read = read_private(planned, engine)
        exact, source = count_tables(planned.domain, read.placed, engine), Source("source", read.compared, engine)
        for epsilon in epsilons:
            for repetition in range(repetitions):
                rng = np.random.default_rng([20_160_831, repetition])
                fitted = fit_private("x", planned.domain, Fraction(epsilon), read.placed, engine, lambda text: None)
                made = put_batches("made", fitted.generate(read.counts["objects"], rng, Made()), engine)
                split = engine.workbench("split")
                engine.execute(
                    render("events/split_made", split=split, made=made, objects=2**62, timed=planned.timed, whole=False)
                )
                found = evaluate("x", source, split, engine)
                for used in (made, split):
                    engine.drop(used)
                kept = {n: getattr(found, n) for n in ("similarity", "cover", "tvd_2gram", "tvd_length")}
                plain = plain_distance(exact, planned.domain.events_max, epsilon)
                runs.append(
                    Run(data.name, epsilon, repetition, **kept, plain_2gram=plain, noise_ratio=fitted.noise_ratio)
                )
    return runs


def plain_distance(exact: Tables, events_max: int, epsilon: float) -> float:
    """2-gram distance of a table of transitions that gets all of epsilon and is clipped at 0, nothing else."""
    can_be, drawn = possible(exact.transitions), np.zeros_like(exact.transitions)
    spend = Spend("plain", events_max + 1, Fraction(epsilon), (events_max + 1) / epsilon, int(can_be.sum()))
    drawn[can_be] = noise(exact.transitions[can_be], spend)[0]
    noised, truth = drawn[1:, :-1].clip(0), exact.transitions[1:, :-1]
    return float(np.abs(noised / max(noised.sum(), 1) - truth / max(truth.sum(), 1)).sum() / 2)


def all_runs(folder: Path | None, scale: float, repetitions: int, epsilons: tuple[float, ...] = EPSILONS) -> list[Run]:
    """Every dataset at every epsilon."""
    with TemporaryDirectory() as lists:
        return [run for data in datasets(folder, scale, Path(lists)) for run in study(data, epsilons, repetitions)]
