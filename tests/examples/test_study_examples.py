"""The source's figures 6.3 and 6.4 and tables 6.2 to 6.8 are redone by one command each, and the numbers are right."""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import product

import duckdb
import numpy as np
import pytest

from sqldeid import demo
from tests.support.cli import run
from tests.support.places import EXAMPLES, ROOT
from tests.support.studies import PNG, execute, lines_of, module_of, page_for, shown_on

GOOD_NODES = EXAMPLES / "epsilon_safe" / "good_nodes.py"
MODELS = EXAMPLES / "m_concealing" / "models.py"
QUERIES = EXAMPLES / "local_study" / "queries.py"


@pytest.mark.deep
def test_three_questions_are_asked_of_originals_and_of_both_releases(tmp_path):
    """What `docs/local-recoding.md` shows is in the form that the script prints; its originals are right."""
    done = execute(QUERIES, tmp_path, "--rows", "600")
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    demo.adult(tmp_path / "demo.duckdb", rows=600)
    with duckdb.connect(str(tmp_path / "demo.duckdb"), read_only=True) as c:
        ages = "SELECT AVG(CAST(\"salary-class\" = '>50K' AS INTEGER)) FROM adult WHERE age BETWEEN 30 AND 39"
        (rate,) = c.execute(ages).fetchone()
    assert f"| 30:39 | {100 * rate:.1f} % |" in shown
    page = (ROOT / "docs" / "local-recoding.md").read_text(encoding="utf-8")
    headings = [line for line in shown.splitlines() if line.startswith("### ")]
    assert len(headings) == 3
    for line in headings:
        assert line in page
    for line in ("| cannot say | 0 of", "| age | originals | one node for all rows | local recoding |", "Loss: 0."):
        assert line in shown and line in page


@pytest.mark.deep
def test_the_page_shows_what_the_questions_print(tmp_path):
    """Every figure of the page: printed by the command that it names, on the demo as it is."""
    done = execute(QUERIES, tmp_path)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "local-recoding.md").read_text(encoding="utf-8")
    assert page.endswith(done.stdout), f"python {QUERIES} --page docs/local-recoding.md puts it there"
    one, local = (float(n) for n in re.findall(r"(0\.\d+) and", done.stdout))
    assert 0 < local < one / 4, "less than a quarter, says the page"
    copy = tmp_path / "page.md"
    copy.write_text("Before.\n\nLoss: 1.\nAfter.\n", encoding="utf-8")
    assert execute(QUERIES, tmp_path, "--rows", "600", "--page", str(copy)).returncode == 0
    assert copy.read_text(encoding="utf-8").startswith("Before.\n\nLoss: 0.") and "After" not in copy.read_text()


@pytest.mark.deep
def test_good_nodes_writes_every_figure(tmp_path):
    small = ("--columns", "workclass,marital-status,race", "--population", "4000", "--k", "20", "--samples", "1")
    done = execute(GOOD_NODES, tmp_path, *small)
    assert done.returncode == 0, done.stderr
    for figure in ("figure_6_3.png", "figure_6_4.png", "figure_C_1.png", "figure_C_2.png"):
        assert (tmp_path / figure).read_bytes().startswith(PNG)
    assert done.stdout.startswith("18 nodes, k = 20, β = 0.75, 1 samples (fixed seeds)")
    assert done.stdout.count("the source's, not proven private") == 4
    lines = lines_of(tmp_path / "good_nodes.csv")
    assert len(lines) == 2 * 2 * 5 * 12
    best = {
        (penalty, utility): max(
            float(x["probability"]) for x in lines if (x["penalty"], x["utility"]) == (penalty, utility)
        )
        for penalty, utility in product(("suppression", "k-anonymity"), ("reciprocal", "score"))
    }
    baseline = float(done.stdout.partition("good with probability ")[2].partition(",")[0])
    assert 0 < baseline < min(best.values()), "the mechanism is never better than drawing any node alike"
    assert best["suppression", "reciprocal"] > best["k-anonymity", "reciprocal"]
    alike = float(done.stdout.partition("suppresses ")[2].partition("%")[0]) / 100
    for penalty, utility in best:
        mine = [x for x in lines if (x["penalty"], x["utility"]) == (penalty, utility)]
        least = min(float(x["suppressed"]) for x in mine)
        assert least < alike, "suppression is punished, so less is suppressed than without looking"
        assert f"| {100 * least:.1f}% (factor " in done.stdout.partition("any node alike |")[2]


def test_good_nodes_looks_at_the_sample_and_the_same_seed_gives_the_same(tmp_path):
    module = module_of(GOOD_NODES)
    path = demo.adult(tmp_path / "adult.duckdb", rows=1500, seed=3).database
    job = module.adult_job("main.adult", ("race", "sex"), 30)
    made = [
        module.redo(path, job, "census", lambda p: module.Setting(p.lattice.heights, 30, Fraction(3, 4), 1500), seeds)[
            1
        ]
        for seeds in (range(5, 7), range(5, 7))
    ]
    for one, other in zip(*made, strict=True):
        assert one.rows == other.rows
        assert all((one.steps[p] == other.steps[p]).all() for p in one.steps)
    sample = made[0][0]
    assert abs(sample.rows - 1125) < 6 * math.sqrt(1500 * 0.75 * 0.25)
    suppressed = sample.steps["suppression"]
    assert suppressed[1, 1] == 0 < suppressed[0, 0]
    assert (sample.steps["k-anonymity"] == (suppressed > 56)).all()  # 5 % of 0.75 · 1,500 persons
    prec = np.array([[0, 0.5], [0.5, 1]])
    assert (sample.good == ((prec < 0.5) & (suppressed < 0.05 * sample.rows))).all()


@pytest.mark.parametrize(("penalty", "utility"), list(product(("suppression", "k-anonymity"), ("reciprocal", "score"))))
def test_points_are_the_exponential_mechanism_written_out(penalty, utility):
    module = module_of(GOOD_NODES)
    setting = module.Setting((2, 3), 10, Fraction(3, 4), 1000)
    suppressed = np.array([[300, 90, 31], [80, 20, 0]])
    steps = {"suppression": suppressed, "k-anonymity": (suppressed > 37).astype(np.int64)}
    good = np.array([[False, False, False], [False, True, False]])
    sample = module.Sample(740, steps, good, {"suppression": 6, "k-anonymity": 4})
    found = [p for p in module.points([sample], setting) if (p.penalty, p.utility) == (penalty, utility)]
    assert len(found) == 60
    for point in found:
        factor = float(point.factor) * (100 if penalty == "suppression" else 1)
        rows = 740 if utility == "reciprocal" else 1000
        share = {"suppression": 1 / rows, "k-anonymity": 1.0}[penalty]
        moved = 10 if (penalty, utility) == ("suppression", "score") else 1  # rows that one row can suppress
        scores = {}
        for x, y in product(range(2), range(3)):
            lost = (x + y / 2) / 2 + factor * share * steps[penalty][x, y]
            gain = -lost if utility == "score" else (1 / lost if lost else math.inf)
            scores[x, y] = float(point.epsilon_prime) * gain / (2 * factor * share * moved)
        weights = {node: math.exp(score - max(scores.values())) for node, score in scores.items()}
        assert point.probability == pytest.approx(weights[1, 1] / sum(weights.values()), rel=1e-9, abs=1e-300)
        lost = sum(w * suppressed[node] for node, w in weights.items()) / sum(weights.values()) / 740
        assert point.suppressed == pytest.approx(lost, rel=1e-9, abs=1e-15)


@pytest.mark.deep
def test_models_writes_every_table(tmp_path):
    page = page_for(tmp_path, "m_concealing", tuple(f"models-{n}" for n in ("hidden", "anonymous", "searched")))
    done = execute(MODELS, tmp_path, "--patients", "150", "--losses", "0.8", "--limits", "0.1", "--page", str(page))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "models.png").read_bytes().startswith(PNG)
    for table in ("6.2", "6.3", "6.4", "6.5", "6.6", "6.7"):
        assert f"Table {table}: " in done.stdout
    lines = {line["table"]: line for line in lines_of(tmp_path / "models.csv")}
    hidden = {table: float(line["one_over_m"]) for table, line in lines.items() if line["one_over_m"]}
    assert hidden["6.4"] > hidden["6.6"] > hidden["6.5"], "whoever knows more finds people more easily"
    module = module_of(MODELS)
    for model, table in module.SOURCE_TABLE.items():
        most = 1 - (1 - 1 / int(lines[table]["k"])) * math.prod(1 - p for p in module.MODELS[model])
        assert 1 / most - 1e-4 <= hidden[table] <= int(lines[table]["k"])
    searched = [float(line["one_over_m"]) for table, line in lines.items() if table.startswith("searched")]
    assert searched and min(searched) >= 5
    shown = shown_on(page, "m_concealing")
    assert shown == {name: lines_of(tmp_path / f"{name}.csv") for name in shown} and len(shown) == 3
    (row,) = shown["models-hidden"]
    for model, theirs in (("A", 33.2), ("B", 7), ("C", 20.1), ("D", 5.3)):
        assert row[f"1/m, {model}"] == f"{hidden[module.SOURCE_TABLE[model]]:.1f} ({theirs:g})"
    assert [v for n, v in row.items() if n.startswith("k, ")] == [lines["6.4"]["k"], lines["6.7"]["k"]]
    (row,) = shown["models-anonymous"]
    for number, (name, cell) in zip(("6.2", "6.3"), list(row.items())[2:], strict=True):
        assert cell.partition(" ")[0] == lines[number]["k"] and name.endswith("(procedures kept)")
    for row in shown["models-searched"]:
        model, least = row["model"], list(row.values())[4]
        assert float(row["inside the search: Prec"]) <= (1 if least == "–" else float(least)), "it is the least"
        assert row["1/m"] == f"{float(lines[f'searched {model}']['one_over_m']):.2f}"
    assert (page.parent / "figures" / "models.png").exists()


def test_models_measure_what_a_row_by_row_sum_gives(tmp_path):
    module = module_of(MODELS)
    path = demo.mimic(tmp_path / "mimic.duckdb", patients=150, seed=2).database
    study = module.Study(path, tmp_path, False, (0.5,), (0.5,))
    rows = {row.table: row for row in module.measured(study)}
    for model, table in module.SOURCE_TABLE.items():
        known = module.MODELS[model]
        with duckdb.connect(str(tmp_path / f"measured{len(known)}.duckdb"), read_only=True) as connection:
            columns = [f"procedure_{i + 1}" for i in range(len(known))]
            released = connection.sql('FROM release."loss 0_5 limit 0_5"').to_arrow_table().to_pylist()
        qis = [name for name in released[0] if name not in columns]
        assert len(qis) == 6
        risks: Counter[int] = Counter()
        for state in product((False, True), repeat=len(known)):
            chance = math.prod(p if knows else 1 - p for p, knows in zip(known, state, strict=True))
            seen = [*qis, *(c for c, knows in zip(columns, state, strict=True) if knows)]
            views = [tuple(row[name] for name in seen) for row in released]
            sizes = Counter(views)
            for i, view in enumerate(views):
                risks[i] += chance / sizes[view]  # type: ignore[assignment]
        assert rows[table].one_over_m == pytest.approx(1 / max(risks.values()), rel=1e-9)


def test_models_load_csv_files_with_their_codes(tmp_path):
    module = module_of(MODELS)
    (tmp_path / "PATIENTS.csv").write_text(
        '"ROW_ID","SUBJECT_ID","GENDER","DOB","DOD","DOD_HOSP","DOD_SSN","EXPIRE_FLAG"\n'
        '1,7,"F",2094-03-05 00:00:00,,,,0\n'
    )
    (tmp_path / "ADMISSIONS.csv").write_text(
        ",".join(f'"{c}"' for c in ADMISSION) + "\n1,7,70,2164-10-23 21:09:00" + "," * (len(ADMISSION) - 4) + "\n"
    )
    missing = execute(MODELS, tmp_path, "--csv", ".")
    assert missing.returncode == 1 and "PROCEDURES_ICD.csv (or PROCEDURES_ICD.csv.gz) is missing" in missing.stderr
    assert "Traceback" not in missing.stderr
    (tmp_path / "PROCEDURES_ICD.csv").write_text(
        '"ROW_ID","SUBJECT_ID","HADM_ID","SEQ_NUM","ICD9_CODE"\n1,7,70,1,"0066"\n'
    )
    module.load(tmp_path, tmp_path / "mimic.duckdb")
    with duckdb.connect(str(tmp_path / "mimic.duckdb"), read_only=True) as connection:
        assert connection.execute(
            "SELECT p.gender, c.icd9_code, year(a.admittime) - year(p.dob) FROM mimiciii.patients AS p "
            "JOIN mimiciii.admissions AS a USING (subject_id) JOIN mimiciii.procedures_icd AS c USING (hadm_id)"
        ).fetchall() == [("F", "0066", 70)]


ADMISSION = (
    "ROW_ID SUBJECT_ID HADM_ID ADMITTIME DISCHTIME DEATHTIME ADMISSION_TYPE ADMISSION_LOCATION DISCHARGE_LOCATION "
    "INSURANCE LANGUAGE RELIGION MARITAL_STATUS ETHNICITY EDREGTIME EDOUTTIME DIAGNOSIS HOSPITAL_EXPIRE_FLAG "
    "HAS_CHARTEVENTS_DATA"
).split()


def test_the_job_of_model_a_runs_as_its_head_says(tmp_path, monkeypatch, capsys):
    job = (EXAMPLES / "m_concealing" / "job.toml").read_text(encoding="utf-8")
    (tmp_path / "job.toml").write_text(job, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    commands = [line.removeprefix("#     sqldeid ") for line in job.splitlines() if line.startswith("#     sqldeid ")]
    assert len(commands) == 2
    for command in commands:
        ran = run(capsys, *command.split())
        assert ran.code == 0, ran
    assert run(capsys, "verify", "mimic.duckdb", "--job", "job.toml").code == 0
