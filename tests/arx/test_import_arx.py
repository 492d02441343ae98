"""Projects of ARX as jobs: what is taken, what is told, what is refused."""

from __future__ import annotations

import csv
import os
import tomllib
import zipfile
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from random import Random

import duckdb
import pytest

from sqldeid import JobError, anonymize, import_arx
from sqldeid.arx.criteria import demands, loss_of
from sqldeid.errors import HierarchyError, NoSolutionError
from sqldeid.hierarchy import open_source
from sqldeid.job import Job
from sqldeid.tables.criteria import OverallRisk
from tests.support.arx import Arx, Column, element, random_project
from tests.support.real_data import ADULT

AGES = [[str(i), f"{i // 10}0s", "*"] for i in range(20, 60)]


def simple(**changes: object) -> Arx:
    rows = [[str(20 + i % 40), ["flu", "hiv", "none"][i % 3]] for i in range(120)]
    columns = {"age": Column(hierarchy=AGES), "illness": Column("sensitive")}
    return Arx(**({"columns": columns, "rows": rows} | changes))  # type: ignore[arg-type]


def asked(project: Arx, folder: Path) -> tuple[dict, tuple[str, ...], tuple[str, ...]]:
    made = import_arx(project.write(folder / "p.deid"), folder / "job.toml")
    return tomllib.loads(made.job.read_text())["tables"]["data"], made.undecided, made.notes


def test_adult_has_the_optimum_of_arx_without_an_edit(shared_data, tmp_path):
    """k = 5, 5 %: the node and loss that ARX 3.9 finds (mean of columns, gsFactor 0.5)."""
    with (shared_data / "adult/adult.csv").open() as file:
        header, *rows = csv.reader(file, delimiter=";")
    columns = {}
    for name in header:
        with (shared_data / f"adult/adult_hierarchy_{name}.csv").open() as file:
            columns[name] = Column(hierarchy=list(csv.reader(file, delimiter=";")))
    project = Arx(columns, rows, weights=dict.fromkeys(header, "0.5")).write(tmp_path / "adult.deid")
    made = import_arx(project, tmp_path / "adult.toml")
    assert made.undecided == ()
    assert (made.rows, made.columns) == (30162, 9)
    found = anonymize(Job.load(made.job), made.database).releases["data"]
    expected = dict(zip(ADULT, (0, 3, 0, 0, 2, 1, 1, 2, 0), strict=True))
    assert found.node == expected
    assert found.loss["loss"] == pytest.approx(0.269634662789, abs=1e-12)
    assert (found.suppressed, found.search.optimal) == (1346, True)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(12))
def test_projects_run_as_they_are_taken(seed, tmp_path):
    """Names are kept to the letter, rows to the last one, and released classes meet what the project asks."""
    project = random_project(seed)
    made = import_arx(project.write(tmp_path / "p.deid"), tmp_path / "job.toml")
    assert made.undecided == ()
    with duckdb.connect(str(made.database), read_only=True) as c:
        kept = c.execute("SELECT * FROM main.data")
        assert [d[0] for d in kept.description] == list(project.columns)
        assert Counter(kept.fetchall()) == Counter(map(tuple, project.rows))
    k = int(project.criteria[0].split("-")[0])
    try:
        found = anonymize(Job.load(made.job), made.database).releases["data"]
    except NoSolutionError:
        assert project.limit != "1.0"
        return
    assert found.k is None or found.k >= k
    assert found.suppressed <= float(project.limit) * len(project.rows)


def test_everything_that_a_job_has_is_taken(tmp_path):
    columns = {
        "age": Column(hierarchy=AGES),
        "sex": Column(hierarchy=[["m", "*"], ["f", "*"]]),
        "who": Column("identifying"),
        "note": Column("insensitive"),
        "illness": Column("sensitive"),
        "cost": Column("sensitive", datatype="Integer"),
    }
    rows = [[str(20 + i % 40), "mf"[i % 2], str(i), "x", "abc"[i % 3], str(i)] for i in range(90)]
    criteria = [
        "7-anonymity",
        "distinct-2-diversity for attribute 'illness'",
        "shannon-entropy-2.0-diversity for attribute 'illness'",
        "recursive-(3.5,2)-diversity for attribute 'illness'",
        "0.25-closeness with equal distance for attribute 'illness'",
        "0.3-closeness with ordered distance for attribute 'cost'",
        "2.0-disclosure privacy for attribute 'illness'",
        "basic-4.0-likeness for attribute 'illness'",
        "enhanced-5.0-likeness for attribute 'illness'",
    ]
    table, undecided, notes = asked(Arx(columns, rows, criteria, "0.02", weights={"age": "0.9"}), tmp_path)
    assert undecided == ("enhanced-5.0-likeness for attribute 'illness'",)  # of one column a job has one of these
    assert {name: c["role"] for name, c in table["columns"].items()} == {
        "age": "quasi-identifying",
        "sex": "quasi-identifying",
        "who": "identifying",
        "note": "insensitive",
        "illness": "sensitive",
        "cost": "sensitive",
    }
    assert table["columns"]["age"]["hierarchy"] == "job_hierarchies/1_age.csv"
    assert table["search"] == {"loss": "loss", "weights": {"age": 0.9, "sex": 0.5}}
    privacy = table["privacy"]
    assert (privacy["k"], privacy["suppression_limit"]) == (7, 0.02)
    assert privacy["l_diversity"] == [
        {"column": "illness", "l": 2},
        {"column": "illness", "l": 2, "kind": "entropy"},
        {"column": "illness", "l": 2, "kind": "recursive", "c": 3.5},
    ]
    assert privacy["t_closeness"] == [
        {"column": "illness", "t": 0.25},
        {"column": "cost", "t": 0.3, "distance": "ordered"},
    ]
    assert privacy["delta_disclosure"] == {"column": "illness", "delta": 1.386294361}
    assert privacy["beta_likeness"] == {"column": "illness", "beta": 4.0, "kind": "basic"}
    assert any("ln 2" in note for note in notes)


def test_a_distance_by_the_attributes_hierarchy_is_taken_with_its_file(tmp_path):
    """The release is within t by a count by hand: half the differences of shares, of values and of their groups."""
    groups = {"flu": "lungs", "cold": "lungs", "hiv": "other"}
    columns = {
        "age": Column(hierarchy=AGES),
        "illness": Column("sensitive", hierarchy=[[v, up, "*"] for v, up in groups.items()]),
    }
    rows = [[str(20 + i % 40), list(groups)[(i * i + i // 7) % 3]] for i in range(120)]
    text = "0.12-closeness with hierarchical distance for attribute 'illness'"
    made = import_arx(Arx(columns, rows, ["3-anonymity", text]).write(tmp_path / "p.deid"), tmp_path / "job.toml")
    assert made.undecided == ()
    job = Job.load(made.job)
    entry = job.tables["data"].privacy.t_closeness[0]
    assert (entry.t, entry.distance, entry.hierarchy) == (0.12, "hierarchical", "job_hierarchies/2_illness.csv")
    anonymize(job, made.database)
    with duckdb.connect(str(tmp_path / "job_release.duckdb")) as c:
        kept = c.execute("SELECT age, illness FROM release.data").fetchall()
    whole = Counter(illness for _, illness in rows)
    for age in {age for age, _ in kept}:
        own = Counter(illness for a, illness in kept if a == age)
        gap = {v: own[v] / own.total() - whole[v] / whole.total() for v in groups}
        moved = sum(map(abs, gap.values())) + abs(gap["flu"] + gap["cold"]) + abs(gap["hiv"])
        assert moved / 4 <= 0.12 + 1e-12


@pytest.mark.parametrize(
    ("variant", "terms", "k", "notes"),
    [
        ("no-attack-profitability", "gain=40.0, cost=4.0", 11, False),
        ("no-attack-profitability", "gain=39.0, cost=4.0", 10, False),
        ("profitability", "gain=39.0, cost=4.0", 10, True),
        ("no-attack-profitability", "gain=0.0, cost=4.0", 3, False),
    ],
)
def test_profitability_is_taken_with_the_k_at_which_no_attack_pays(variant, terms, k, notes, tmp_path):
    text = f"{variant} (prosecutor)[benefit=1200.0, loss=300.0, {terms}]"
    table, undecided, told = asked(simple(criteria=["3-anonymity", text]), tmp_path)
    assert (undecided, table["privacy"]["k"]) == ((), k)
    payout, cost = (float(part.partition("=")[2]) for part in terms.split(", "))
    assert table["privacy"]["game"] == {"payout": payout, "cost": cost}
    assert any(note.startswith("game: ") for note in told) == notes
    assert anonymize(Job.load(tmp_path / "job.toml"), tmp_path / "job.duckdb").releases["data"].k >= k


@pytest.mark.parametrize("kind", ["Poisson", "Zero-truncated Poisson"])
def test_an_estimated_k_map_is_taken_as_the_anonymity_that_arx_derived(kind, tmp_path):
    text = f"(20)-map estimated as (6)-anonymity ({kind})"
    table, undecided, told = asked(simple(criteria=["3-anonymity", text]), tmp_path)
    assert (undecided, table["privacy"]["k"]) == ((), 6)
    assert any("(20)-map, which ARX estimated as 6-anonymity" in note for note in told)
    assert anonymize(Job.load(tmp_path / "job.toml"), tmp_path / "job.duckdb").releases["data"].k >= 6


@pytest.mark.parametrize("criterion", ["(0.01)-sample-uniqueness", "(0.01)-population-uniqueness (dankar)"])
def test_uniqueness_holds_where_no_row_is_alone(criterion, tmp_path):
    table, undecided, told = asked(simple(criteria=[criterion, "2-anonymity"]), tmp_path)
    assert (undecided, table["privacy"]["k"], "at_risk" in table["privacy"]) == ((), 2, False)
    assert any(note.startswith(f"{criterion} holds") for note in told)


def test_sample_uniqueness_is_a_share_of_rows_at_risk(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    table, undecided, _ = asked(simple(criteria=["(0.2)-sample-uniqueness"]), tmp_path / "one")
    assert (undecided, table["privacy"]["k"]) == ((), 1)
    assert table["privacy"]["at_risk"] == {"threshold": 0.5, "share": 0.2}
    risk = OverallRisk(threshold=Fraction(1, 2), share=Fraction(1, 5))
    assert [risk.risky(size) for size in (1, 2, 3)] == [True, False, False]
    both = "(0.2)-sample-uniqueness", "(0.3)-sample-uniqueness"
    assert asked(simple(criteria=list(both)), tmp_path / "two")[1] == both[1:]
    estimated = "(0.2)-population-uniqueness (pitman)"
    assert asked(simple(criteria=["1-anonymity", estimated]), tmp_path / "three")[1] == (estimated,)


UNTAKEN = [
    "(5)-map",
    "(5)-map estimated as (0)-anonymity (Poisson)",
    "(5)-map estimated as (3)-anonymity (Binomial)",
    "(0.1,0.9)-presence",
    "(0.0912345678912)-avg-reidentification-risk",
    "(1.5)-avg-reidentification-risk",
    "Inclusion",
    "profitability (prosecutor)",
    "profitability (journalist)[benefit=1200.0, loss=300.0, gain=300.0, cost=4.0]",
    "no-attack-profitability (prosecutor)[benefit=1200.0, loss=300.0, gain=300.0, cost=0.0]",
    "profitability (prosecutor)[benefit=0.0, loss=300.0, gain=300.0, cost=4.0]",
    "grassberger-entropy-2.0-diversity for attribute 'illness'",
    "entropy-2.5-diversity for attribute 'illness'",
    "0.2-closeness with hierarchical distance for attribute 'illness'",
    "0.2-closeness with ordered distance for attribute 'illness'",
    "0.1234567891-closeness with equal distance for attribute 'illness'",
    "distinct-3-diversity for attribute 'age'",
    "20.0-disclosure privacy for attribute 'illness'",
    "5-anonymity and something",
    "",
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("criterion", UNTAKEN)
def test_a_criterion_that_is_not_taken_refuses_the_job_until_it_is_decided(criterion, tmp_path):
    made = import_arx(simple(criteria=["5-anonymity", criterion]).write(tmp_path / "p.deid"), tmp_path / "job.toml")
    assert made.undecided == (criterion,)
    with pytest.raises(JobError, match=r"tables\.data\.privacy\.undecided"):
        Job.load(made.job)
    text = made.job.read_text()
    before, line, rest = text.partition("undecided = [")
    assert line
    made.job.write_text(before + rest.partition("]\n")[2])
    assert anonymize(Job.load(made.job), made.database).releases["data"].k >= 5


def test_average_risk_is_taken_and_records_at_risk_as_arx_counts_them(tmp_path):
    """ARX's bound counts a class of exactly 1/risk rows (sizes up to that one), the job's those above the risk."""
    table, undecided, notes = asked(simple(criteria=["(0.5)-avg-reidentification-risk"]), tmp_path)
    assert (undecided, table["privacy"]["k"], table["privacy"]["average_risk"]) == ((), 1, 0.5)
    assert any(note.startswith("k = 1") for note in notes)
    both = "(0.3, 0.2, 0.05)-avg-reidentification-risk"
    (tmp_path / "both").mkdir()
    table, undecided, notes = asked(simple(criteria=["3-anonymity", both]), tmp_path / "both")
    assert (undecided, table["privacy"]["k"], table["privacy"]["average_risk"]) == ((), 3, 0.3)
    at_risk = table["privacy"]["at_risk"]
    assert at_risk["share"] == 0.05
    counted = [size for size in range(1, 20) if 1 / size > at_risk["threshold"]]
    assert counted == [1, 2, 3, 4, 5]
    assert any(note.startswith("at_risk") for note in notes)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"criteria": ["0.2-closeness with equal distance for attribute 'illness'"]}, "k-anonymity"),
        ({"config": {"protectSensitiveAssociations": "true"}}, "config.xml"),
        ({"config": {"brandNew": "1"}}, "config.xml"),
        ({"columns": {"age": Column(hierarchy=AGES, least="1"), "illness": Column("sensitive")}}, "below 1"),
        (
            {
                "columns": {
                    "age": Column(hierarchy=AGES, more={"microaggregationFunction": "Geometric mean"}),
                    "illness": Column("sensitive"),
                }
            },
            "microaggregation",
        ),
        ({"columns": {"age": Column(hierarchy=AGES, more={"new": "x"}), "illness": Column("sensitive")}}, "age"),
    ],
)
def test_what_bounds_a_release_is_not_dropped(change, named, tmp_path):
    made = import_arx(simple(**change).write(tmp_path / "p.deid"), tmp_path / "job.toml")
    assert len(made.undecided) == 1
    assert named in made.undecided[0]
    with pytest.raises(JobError, match="undecided"):
        Job.load(made.job)


@pytest.mark.parametrize(
    ("function", "taken"),
    [("Arithmetic mean", "mean"), ("Median", "median"), ("Mode", "mode"), ("Interval", "interval")],
)
def test_microaggregation_of_whole_numbers_is_taken(function, taken, tmp_path):
    more = {"microaggregationFunction": function, "microaggregationIgnoreMissingData": "false"}
    columns = {
        "age": Column(hierarchy=AGES),
        "days": Column(hierarchy=[["1", "*"]], datatype="Integer", more=more),
        "illness": Column("sensitive"),
    }
    rows = [[str(20 + i % 40), str(i % 7), "abc"[i % 3]] for i in range(120)]
    project = Arx(columns, rows, weights={"age": "0.5", "days": "1.0"})
    table, undecided, notes = asked(project, tmp_path)
    assert undecided == ()
    assert table["columns"]["days"] == {"role": "quasi-identifying", "hierarchy": {"aggregate": taken}}
    assert "weights" not in table["search"], "one column is left to weigh"
    for word in ("fewer than k rows", "one value of the class is", "clustering"):
        assert any("column days" in note and word in note for note in notes), word
    made = anonymize(Job.load(tmp_path / "job.toml"), tmp_path / "job.duckdb").releases["data"]
    assert made.columns["days"].shown == f"{taken} of the class, grid 1"
    assert list(made.node) == ["age"]


@pytest.mark.parametrize("why", ["text", "alone"])
def test_microaggregation_that_cannot_be_taken_is_undecided(why, tmp_path):
    more = {"microaggregationFunction": "Median"}
    columns = {"age": Column(hierarchy=AGES), "days": Column(more=more), "illness": Column("sensitive")}
    if why == "alone":
        columns = {"age": Column("insensitive"), "days": Column(datatype="Integer", more=more), "illness": Column()}
        columns["illness"] = Column("sensitive")
    rows = [[str(20 + i % 40), str(i % 7), "abc"[i % 3]] for i in range(120)]
    table, undecided, _ = asked(Arx(columns, rows), tmp_path)
    assert undecided == ("column days: microaggregation",)
    assert table["columns"]["days"]["hierarchy"] == {"suppress": True}


def test_what_costs_utility_alone_is_told(tmp_path):
    columns = {
        "age": Column(hierarchy=AGES, greatest="1"),
        "zip": Column(hierarchy=[["a", "x"], ["b", "y"]]),
        "bare": Column(),
        "illness": Column("sensitive"),
    }
    rows = [[str(20 + i % 40), "ab"[i % 2], "v", "abc"[i % 3]] for i in range(80)]
    project = Arx(columns, rows, metric="Loss (0.2/1.0/0.4)", config={"practicalMonotonicity": "true"})
    project.weights = {"age": "0.0", "zip": "1.0"}
    table, undecided, notes = asked(project, tmp_path)
    assert undecided == ()
    assert table["columns"]["bare"]["hierarchy"] == {"suppress": True}
    assert table["search"]["weights"] == {"age": 1e-6, "zip": 1.0, "bare": 0.5}
    for word in ("stops at level 1", "several values", "no hierarchy", "alike", "prune", "geometric", "weight of 0"):
        assert any(word in note for note in notes), word


def test_l_diversity_implies_k(tmp_path):
    table, undecided, _ = asked(simple(criteria=["distinct-3-diversity for attribute 'illness'"]), tmp_path)
    assert (table["privacy"]["k"], undecided) == (3, ())


def test_metrics_have_losses():
    assert [loss_of(m)[0] for m in ("Loss", "Loss (0.5/1.0/1.0)", "Non-monotonic precision", "Height")] == [
        "loss",
        "loss",
        "prec",
        "height",
    ]
    assert loss_of("Normalized non-uniform entropy")[0] == "normalised_entropy"
    assert loss_of("Ambiguity") == ("loss", ["search.loss: the project's metric is not known here; the job takes loss"])
    assert loss_of("Monotonic non-uniform entropy")[0] == "entropy"
    assert loss_of("Discernability")[0] == "dm_star"
    assert loss_of("EntropyBasedInformationLoss")[0] == "payout"
    assert loss_of("PublisherBenefit (Prosecutor, Benefit=1200.0)")[0] == "payout"


@pytest.mark.parametrize("seed", range(30))
def test_delta_is_taken_as_strict_as_it_was(seed):
    """Whatever meets the job's bound on |ln(q/p)| meets ARX's on |log2(q/p)|."""
    delta = f"{Random(seed).uniform(0.01, 14):.6f}"
    found = demands((f"{delta}-disclosure privacy for attribute 'x'",), frozenset(["x"]), frozenset())
    with localcontext(prec=50):
        assert Decimal(found.entries["delta_disclosure"][0]["delta"]) <= Decimal(delta) * Decimal(2).ln()  # type: ignore[arg-type]


def bomb() -> bytes:
    return b"<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]><definition>&b;</definition>"


DEFINITION = "input/definition.xml"
HOSTILE = {
    "no project": ({"entries": {"metadata.xml": None}}, "metadata.xml"),
    "no data": ({"entries": {"data/input.csv": None}}, "data/input.csv"),
    "no config": ({"entries": {"input/config.xml": None}}, "input/config.xml"),
    "old vocabulary": ({"vocabulary": "1.0"}, "ARX 3.9"),
    "new version": ({"version": "4.0.0"}, "ARX 3.9"),
    "entities": ({"entries": {DEFINITION: bomb()}}, "entities"),
    "outer entity": (
        {"entries": {DEFINITION: b'<!DOCTYPE d SYSTEM "file:///etc/passwd"><definition/>'}},
        "document type",
    ),
    "broken XML": ({"entries": {DEFINITION: b"<definition><assigment>"}}, "not XML"),
    "deep XML": ({"entries": {DEFINITION: b"<definition>" + b"<a>" * 5000}}, "deeper"),
    "other root": ({"entries": {DEFINITION: b"<html/>"}}, "not what ARX writes"),
    "unknown encoding": (
        {"entries": {DEFINITION: b"<?xml version='1.0' encoding='x-none'?><definition/>"}},
        "encoding",
    ),
    "raw bytes": ({"entries": {DEFINITION: "<definition>ä</definition>".encode("cp1252")}}, "not XML"),
    "twice": (
        {"entries": {"metadata.xml": b"<metadata><version>3.9</version><version>2.0</version></metadata>"}},
        "twice",
    ),
    "other encoding": ({"encoding": "cp1252", "rows": [["20", "Fieber über 40"]]}, "--encoding"),
    "wrong separator": ({"entries": {"project.xml": element("project", separator=",")}}, "separator"),
    "long separator": ({"entries": {"project.xml": element("project", separator=";;")}}, "separator"),
    "no hierarchy": ({"entries": {"input/hierarchies/age.csv": None}}, "hierarch"),
    "torn hierarchy": (
        {"entries": {"input/hierarchies/age.csv": b"20;a;x\n21;a;y\n"}},
        "job_hierarchies/1_age.csv",
    ),
    "ragged hierarchy": ({"entries": {"input/hierarchies/age.csv": b"20;a;*\n21;*\n"}}, "1_age.csv"),
    "header twice": ({"entries": {"data/input.csv": b"age;age\n20;flu\n"}}, "one name"),
    "header by case": ({"columns": {"age": Column(hierarchy=AGES), "AGE": Column("sensitive")}}, "one name"),
    "blank name": ({"columns": {"age": Column(hierarchy=AGES), " ": Column("sensitive")}}, "blank"),
    "ragged data": ({"rows": [["20", "flu"], ["21"]]}, "row 2"),
    "blank line": ({"entries": {"data/input.csv": b"age;illness\n20;flu\n\n21;flu\n"}}, "row 2"),
    "no rows": ({"rows": []}, "no rows"),
    "open quote": ({"entries": {"data/input.csv": b'age;illness\n20;"flu\n'}}, "not CSV"),
    "limit of none": ({"limit": "none"}, "limit"),
    "limit of 5": ({"limit": "5.0"}, "between 0 and 1"),
    "limit NaN": ({"limit": "NaN"}, "no number"),
    "no role": ({"entries": {DEFINITION: b"<definition><assigment><name>age</name></assigment></definition>"}}, "type"),
    "no quasi-identifier": (
        {"columns": {"age": Column("insensitive"), "illness": Column("sensitive")}},
        "quasi-identifying",
    ),
    "huge k": ({"criteria": ["99999999999999999999-anonymity"]}, "k"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_projects_are_refused_in_one_line_and_leave_nothing(case, tmp_path):
    change, named = HOSTILE[case]
    project = simple(**change).write(tmp_path / "p.deid")
    with pytest.raises(JobError) as refused:
        import_arx(project, tmp_path / "job.toml")
    assert named in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.code == 2
    assert [p.name for p in tmp_path.iterdir()] == ["p.deid"]


def test_what_is_made_is_for_its_owner_alone(tmp_path):
    """Rows and values of a project that nobody else could read were there for everybody."""
    project = simple().write(tmp_path / "p.deid")
    project.chmod(0o600)
    before = os.umask(0o022)
    try:
        import_arx(project, tmp_path / "job.toml")
    finally:
        os.umask(before)
    modes = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.rglob("*")}
    private = dict.fromkeys(("p.deid", "job.toml", "job.duckdb", "1_age.csv"), 0o600)
    assert modes == {**private, "job_hierarchies": 0o700}


def test_what_a_killed_import_left_is_removed_by_the_next(tmp_path):
    project = simple().write(tmp_path / "p.deid")
    left = tmp_path / ".job.toml.sqldeid-killed"
    left.mkdir()
    (left / "lock").touch()
    (left / "data.duckdb").write_text("rows")
    import_arx(project, tmp_path / "job.toml")
    assert not left.exists() and not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "p.deid").write_bytes(b"PK\x03\x04 and nothing")
    with pytest.raises(JobError, match="not an ARX project"):
        import_arx(tmp_path / "p.deid", tmp_path / "job.toml")
    with pytest.raises(JobError, match="cannot be read"):
        import_arx(tmp_path / "none.deid", tmp_path / "job.toml")


@pytest.mark.parametrize("seed", range(25))
def test_a_damaged_archive_is_refused_or_read_as_it_was(seed, tmp_path):
    """Bytes changed anywhere: one line, or (in what is not read) the same job."""
    r = Random(seed)
    content = bytearray(simple().write(tmp_path / "p.deid").read_bytes())
    for _ in range(r.randint(1, 20)):
        content[r.randrange(len(content))] = r.randrange(256)
    (tmp_path / "p.deid").write_bytes(content[: r.choice([len(content), r.randrange(len(content))])])
    try:
        made = import_arx(tmp_path / "p.deid", tmp_path / "job.toml")
    except JobError as refused:
        assert "\n" not in refused.message
        assert [p.name for p in tmp_path.iterdir()] == ["p.deid"]
    else:
        assert made.rows == 120


def test_names_lead_nowhere(tmp_path):
    """Neither an attribute's name nor an entry's becomes a path."""
    (tmp_path / "in").mkdir()
    columns = {"../../up": Column(hierarchy=AGES), "illness": Column("sensitive")}
    project = simple(columns=columns, entries={"../escaped.txt": b"x", "/tmp/escaped-arx.txt": b"x"})
    made = import_arx(project.write(tmp_path / "in/p.deid"), tmp_path / "in/job.toml")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]
    assert [p.name for p in made.hierarchies.iterdir()] == ["1__up.csv"]  # type: ignore[union-attr]
    assert anonymize(Job.load(made.job), made.database).releases["data"].k >= 5


def test_bombs_are_refused_before_they_are_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "p.deid", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("metadata.xml", b" " * (20 << 20))
    assert (tmp_path / "p.deid").stat().st_size < 1 << 20
    with pytest.raises(JobError, match="larger than 16 MB"):
        import_arx(tmp_path / "p.deid", tmp_path / "job.toml")


def test_entries_of_one_name_are_refused(tmp_path):
    simple().write(tmp_path / "p.deid")
    with zipfile.ZipFile(tmp_path / "p.deid", "a") as made, pytest.warns(UserWarning, match="Duplicate"):
        made.writestr("input/config.xml", "<config/>")
    with pytest.raises(JobError, match="one name"):
        import_arx(tmp_path / "p.deid", tmp_path / "job.toml")


@pytest.mark.parametrize("there", ["job.toml", "job.duckdb", "job_hierarchies"])
def test_nothing_that_is_there_is_overwritten(there, tmp_path):
    project = simple().write(tmp_path / "p.deid")
    (tmp_path / there).write_text("mine")
    with pytest.raises(JobError, match="exists already"):
        import_arx(project, tmp_path / "job.toml")
    assert (tmp_path / there).read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


def test_data_in_another_encoding_are_read_when_it_is_named(tmp_path):
    rows = [["20", "Fieber über 40"]] * 5
    project = simple(rows=rows, encoding="cp1252").write(tmp_path / "p.deid")
    made = import_arx(project, tmp_path / "job.toml", encoding="windows-1252")
    with duckdb.connect(str(made.database), read_only=True) as c:
        assert c.execute("SELECT DISTINCT illness FROM data").fetchall() == [("Fieber über 40",)]
    with pytest.raises(JobError, match="--encoding"):
        import_arx(project, tmp_path / "two.toml", encoding="no-such")


def test_what_arx_writes_into_comments_cannot_leave_them(tmp_path):
    """Names and criteria of a project stand in the job as text, whatever they hold."""
    evil = "x\n[tables.data.privacy]\nk = 1\u202e]"
    columns = {evil: Column(hierarchy=AGES, greatest="1"), "illness": Column("sensitive")}
    made = import_arx(
        simple(columns=columns, criteria=["5-anonymity", evil]).write(tmp_path / "p.deid"), tmp_path / "j.toml"
    )
    found = tomllib.loads(made.job.read_text())["tables"]["data"]
    assert found["privacy"]["k"] == 5
    assert list(found["columns"]) == [evil, "illness"]
    assert "\u202e" not in made.job.read_text()


def test_a_builder_of_hierarchies_is_told_from_a_hierarchy(tmp_path):
    """`.ahs` holds Java objects: reading them is running what a stranger says; the message says what to do."""
    (tmp_path / "age.ahs").write_bytes(b"\xac\xed\x00\x05sr\x00(org.deidentifier.arx.aggregates")
    with pytest.raises(HierarchyError, match=r"Java objects.*import-arx"):
        open_source("age.ahs", tmp_path)
