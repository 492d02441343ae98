"""`sqldeid privacy plan`, run as a user runs it."""

from __future__ import annotations

import json

import pytest

from sqldeid.tables.criteria.sampling import largest_epsilon_prime, proven_delta, published_delta
from tests.support.cli import run

PLAN = ("privacy", "plan")


def test_the_table_is_what_the_library_proves(capsys):
    ran = run(capsys, *PLAN, "--k", "5,20", "--beta", "0.25", "--epsilon", "1,2", "--delta", "0.1", "--json", "-")
    assert ran.code == 0
    rows = ran.json["plan"]
    assert [(r["epsilon"], r["k"]) for r in rows] == [(1, 5), (1, 20), (2, 5), (2, 20)]
    spent = largest_epsilon_prime(0.25, 1.0)
    assert rows[1]["delta"] == proven_delta(20, 0.25, 1.0, spent)
    assert rows[1]["published"] == published_delta(20, 0.25, 1 - spent)
    assert "D (published)" in " ".join(ran.err.split()) or "(published)" in ran.err


def test_a_delta_makes_the_region_and_the_smallest_k(capsys):
    ran = run(capsys, *PLAN, "--k", "5,50", "--beta", "0.25,0.9", "--epsilon", "1", "--delta", "1e-6")
    assert ran.code == 0
    assert ran.out.count("admissible") == 1
    assert "too small for beta 0.9" in " ".join(ran.out.split())
    (line,) = [line.split() for line in ran.out.splitlines() if "admissible" in line]
    assert line == ["0.25", "1", "50", "0.7123", "2.54e-13", "8.88e-06", "22", "admissible"]


def test_without_delta_or_population_nothing_is_admissible(capsys):
    ran = run(capsys, *PLAN, "--k", "50", "--beta", "0.25", "--epsilon", "1", "--json", "-")
    [row] = ran.json["plan"]
    assert (row["admissible"], row["smallest_k"]) == (False, None)
    assert "a job states delta or population" in row["note"]


def test_a_population_holds_delta_below_one_in_it(capsys):
    asked = ("--k", "5,50", "--beta", "0.25", "--epsilon", "1", "--population", "1000000")
    ran = run(capsys, *PLAN, *asked, "--json", "-")
    rows = ran.json["plan"]
    assert [r["admissible"] for r in rows] == [False, True]
    assert rows[1]["delta"] < 1e-6


def test_quiet_writes_the_file_alone(capsys, tmp_path):
    ran = run(capsys, *PLAN, "-q", "--json", tmp_path / "plan.json")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert len(json.loads((tmp_path / "plan.json").read_text())["plan"]) == 18


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--k", "5,x"), "--k: give whole numbers"),
        (("--beta", ""), "--beta: give numbers"),
        (("--beta", "2"), "beta is 2; it must lie between 0 and 1"),
        (("--k", "0"), "k is 0; it must be at least 1"),
        (("--delta", "0"), "delta is 0; it must lie between"),
        (("--epsilon", "nan"), "finite"),
        (("--epsilon", "-1"), "take at least 0.1054"),
        (("--penalty", "suppression", "--k", "1"), "k is 1; it must be at least 2"),
        (("--json", "no/such/folder.json"), "make it first"),
    ],
)
def test_bad_parameters_are_errors_to_mend(capsys, arguments, message):
    ran = run(capsys, *PLAN, *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
