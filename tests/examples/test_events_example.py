"""Figures 1 to 5 of Shaked & Rokach (2016) are redone by one command, and the jobs beside it release the real data."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

import sqldeid
from sqldeid.demo.hospital import mimic_rows
from sqldeid.job import Job
from tests.support.places import EXAMPLES, ROOT
from tests.support.studies import execute, lines_of, module_of

FOLDER = EXAMPLES / "events_study"
STUDY = FOLDER / "study.py"


@pytest.mark.deep
def test_the_study_writes_its_figures_and_tables(tmp_path: Path) -> None:
    command = [sys.executable, STUDY, "--quick", "--scale", "0.03", "--repetitions", "1", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for number in range(1, 7):
        assert (tmp_path / "out" / f"figure{number}.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert (tmp_path / "out" / f"state_figure{number}.png").exists() == (number > 1)
    assert (tmp_path / "out" / "both_figure2.svg").exists()
    rows = lines_of(tmp_path / "out" / "summary.csv")
    data = ("CPTEVENTS, invented", "TRANSFERS, invented")
    kinds = list(product(data, ("duration", "state"), ("0.05", "inf")))
    assert [(r["dataset"], r["end"], r["epsilon"]) for r in rows] == kinds
    for strict, free in zip(rows[::2], rows[1::2], strict=True):
        assert float(strict["suppressed_entries"]) > float(free["suppressed_entries"]) == 0
        assert float(strict["mean_support"]) > float(free["mean_support"])
        assert float(strict["cover"]) < float(free["cover"])
    by_kind = dict(zip(kinds, rows, strict=True))
    assert all(
        by_kind[d, "duration", e]["tvd_length"] != by_kind[d, "state", e]["tvd_length"]
        for d, e in product(data, ("0.05", "inf"))
    )
    assert len(lines_of(tmp_path / "out" / "runs.csv")) == 2 * 2 * 3 * 2
    assert done.stdout.startswith("\nevents_study/table-1\n\n| data | objects |")
    sizes = {r["data"]: r for r in lines_of(tmp_path / "out" / "table_1.csv")}
    assert {name: int(r["objects"]) for name, r in sizes.items()} == dict(zip(data, (95, 131), strict=True))
    assert all(int(r["sequences"]) >= int(r["objects"]) for r in sizes.values())
    made = lines_of(tmp_path / "out" / "private_summary.csv")
    assert [(r["dataset"], r["epsilon"]) for r in made] == [(d, "1.0") for d in data]


@pytest.mark.deep
def test_the_page_shows_what_was_recorded(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "recorded", tmp_path / "recorded")
    done = execute(STUDY, tmp_path, "--again", "--out", "recorded")
    assert done.returncode == 0, done.stderr
    gallery = module_of(EXAMPLES / "gallery.py")
    names = ("table-1", "figure-2", "summary", "friedman", "private")
    for name in names:
        held = gallery.held(ROOT / "docs" / "studies.md", f"events_study/{name}")
        assert held.count("\n") > 4
        assert f"\nevents_study/{name}\n\n{held}\n" in done.stdout


def test_what_patient_factors_give_is_counted_as_in_a_slow_count(tmp_path: Path) -> None:
    """Patient by patient, event by event; and the table of the page is the recorded one."""
    factors = module_of(FOLDER / "factors.py")
    with factors.hospital(60) as (connection, states):
        listed = states.read_text(encoding="utf-8").splitlines()
        found = {n: factors.counted(connection, states, g)[1].factors["group"] for n, g in factors.FACTORS.items()}
    tables = {n: r.read_all() if hasattr(r, "read_all") else r for n, r in mimic_rows(60, 1).items()}
    people = {p["subject_id"]: p for p in tables["patients"].to_pylist()}
    rows = sorted(tables["transfers"].to_pylist(), key=lambda r: (r["subject_id"], r["intime"], r["row_id"]))
    shown = [f"{r['curr_careunit'] or ''}\t{r['eventtype']}" for r in rows]
    code = {name: i for i, name in enumerate(listed)}
    assert set(code) == set(shown)
    slow = {name: np.zeros_like(table) for name, table in found.items()}
    for person in people:
        mine = [i for i, r in enumerate(rows) if r["subject_id"] == person]
        if not mine:
            continue
        years = rows[mine[0]]["intime"].year - people[person]["dob"].year
        sex, age = int(people[person]["gender"] == "F"), sum(years >= a for a in (1, 45, 65))
        path = [0, *(code[shown[i]] + 1 for i in mine)]
        steps = [(a, b - 1) for a, b in pairwise(path)][:8]
        steps += [(path[-1], len(code))] if len(mine) <= 8 else []
        for name, of in {"sex": sex, "age group": age, "both": 4 * sex + age}.items():
            for step in steps:
                slow[name][of][step] += 1
    assert all((found[name] == slow[name]).all() and slow[name].sum() > 100 for name in found)
    shutil.copytree(FOLDER / "recorded", tmp_path / "recorded")
    done = execute(FOLDER / "factors.py", tmp_path, "--again", "--out", "recorded")
    held = module_of(EXAMPLES / "gallery.py").held(ROOT / "docs" / "studies.md", "events_study/factors")
    assert done.stdout == f"\nevents_study/factors\n\n{held}\n" and held.count("\n") == 13


@pytest.mark.deep
def test_groups_pay_where_they_differ(tmp_path: Path) -> None:
    """With much epsilon, age groups' own tables are nearer to each group than one table can be."""
    done = execute(FOLDER / "factors.py", tmp_path, "--patients", "4000", "--draws", "2", "--out", ".")
    assert done.returncode == 0, done.stderr
    rows = {(row["factor"], row["ε"]): row for row in lines_of(tmp_path / "factors.csv")}
    paid = rows["age group", "5.0"]
    assert float(paid["with it"]) < float(paid["without it and without noise"]) <= float(paid["without the factor"])
    assert rows["both", "1.0"]["warned"] == "yes"


def test_friedman_tests_pair_the_blocks() -> None:
    """By ranks within blocks, whatever the order of the runs; nothing where nothing differs, or of two treatments."""
    found = friedman_of(lambda shingle, hashes, repetition: 10 * repetition + hashes + shingle)
    assert found["shingle"]["p"] == pytest.approx(math.exp(-6)) and found["shingle"]["blocks"] == 6
    assert [found["shingle"][str(level)] for level in (1, 2, 3)] == pytest.approx([156, 157, 158])
    assert found["hashes"]["p"] is None, "two treatments"
    assert friedman_of(lambda shingle, hashes, repetition: 1.0)["shingle"]["p"] is None


def test_repetitions_that_are_copies_count_once() -> None:
    """What depends on the model alone is the same in every repetition, which is no evidence more."""
    found = friedman_of(lambda shingle, hashes, repetition: hashes + shingle)
    assert found["shingle"]["blocks"] == 2 and found["shingle"]["p"] == pytest.approx(math.exp(-2))


def friedman_of(value: Callable[[int, int, int], float]) -> dict[str, dict[str, object]]:
    """Tests of one measure in two numbers of hashes and three repetitions: chi-squared is 12 of 2 degrees."""
    compare = module_of(FOLDER / "compare.py")
    measures = {measure for measure, _ in compare.FOUND}
    runs = [
        {"dataset": "d", "end": "duration", "epsilon": 1, "shingle": s, "hashes": h, "repetition": r}
        | dict.fromkeys(measures, value(s, h, r))
        for s, h, r in product((3, 1, 2), (100, 190), (2, 0, 1))
    ]
    return {row["treatments"]: row for row in compare.friedman(runs) if row["measure"] == "top20"}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "file", "counts"), [("transfers", "TRANSFERS", (100, 524)), ("procedures", "CPTEVENTS", (91, 1579))]
)
def test_the_jobs_release_the_real_data(
    shared_data: Path, tmp_path: Path, name: str, file: str, counts: tuple[int, int]
) -> None:
    """Both methods, from the job files and the lists of states; of 100 patients, noise can leave no object at all."""
    job = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    job["release"]["into"] = str(tmp_path / "release")
    for part in job["events"].values():
        part["attacks"] = False
    source = shared_data / "mimic3demo" / f"{file}.csv"
    found = sqldeid.anonymize(Job.parse(job, folder=FOLDER), source).releases
    private, ratio = found[f"{name}_private"], found[f"{name}_ratio"]
    assert (ratio.source["objects"], ratio.source["events"]) == counts and ratio.events > 0
    assert private.guarantee.differentially_private and not ratio.guarantee.differentially_private
    assert sum(Fraction(str(s["epsilon_exact"])) for s in private.ledger) == 1
    assert any("most of the table of transitions is noise" in w for w in private.warnings)
    checked = sqldeid.verify(Job.parse(job, folder=FOLDER), source)
    assert {n: v.events for n, v in checked.items()} == {n: r.events for n, r in found.items()}
