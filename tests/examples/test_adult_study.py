"""Chapter 6.1 of the source is redone by one command: every table and plot, on invented people and on UCI's files."""

from __future__ import annotations

import json

import duckdb
import pytest

from tests.support.cli import run
from tests.support.places import EXAMPLES
from tests.support.studies import PNG, execute, lines_of, module_of, page_for, shown_on

STUDY = EXAMPLES / "adult_study" / "study.py"
UCI = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, Cuba, "
    "<=50K"
)


@pytest.mark.deep
def test_the_study_writes_every_table_and_plot(tmp_path):
    small = ("--rows", "900", "--k", "3,9", "--limits", "0,0.1", "--trained", "0.1", "--columns", "workclass,race,sex")
    page = page_for(tmp_path, "adult_study", ("accuracy", "inverse"))
    done = execute(STUDY, tmp_path, *small, "--page", str(page))
    assert done.returncode == 0, done.stderr
    for plot in ("figure_6_1.png", "figure_6_2.png", "table_6_9.png"):
        assert (tmp_path / plot).read_bytes().startswith(PNG)
    for title in ("Figure 6.1", "Table 6.1", "Table 6.9", "Inverse OLA"):
        assert title in done.stdout
    optima = lines_of(tmp_path / "figure_6_1.csv")
    assert len(optima) == (3 + 1) * 2 * 2
    losses = {(x["method"], x["loss"], x["k"], x["limit"]): float(x["value"]) for x in optima}
    for k in ("3", "9"):
        for limit in ("0.0", "0.1"):
            assert losses["ola", "prec", k, limit] == losses["frontier", "prec", k, limit], "both are exact"
        assert losses["frontier", "prec", k, "0.1"] <= losses["frontier", "prec", k, "0.0"]
    assert all(float(x["suppressed_share"]) <= float(x["limit"]) for x in optima)
    models = lines_of(tmp_path / "table_6_1.csv")
    assert [m["loss"] for m in models[:2]] == ["originals", "prec"] and len(models) == 1 + 3 * 2
    assert all(0.5 < float(m["accuracy"]) <= 1 for m in models)
    greatest = {(x["max_loss"], x["limit"]): int(x["k"]) for x in lines_of(tmp_path / "inverse_ola.csv")}
    assert len(greatest) == 9 and greatest["0.8", "0.5"] >= greatest["0.2", "0.0"]
    shown = shown_on(page, "adult_study")
    assert shown == {name: lines_of(tmp_path / f"{name}.csv") for name in shown} and set(shown) == {
        "accuracy",
        "inverse",
    }
    cells = {f"{100 * float(x):g} %": f"{greatest['0.8', x]:,}" for x in ("0.0", "0.1", "0.5")}
    assert shown["inverse"][-1] == {"max. loss": "0.8", **cells}
    accurate = {(m["loss"], m["k"]): f"{float(m['accuracy']):.4f}" for m in models}
    assert [r["k"] for r in shown["accuracy"]] == ["originals", "most frequent class", "3", "9"]
    assert shown["accuracy"][0]["Prec"] == f"{accurate['originals', '']} (0.8519)"
    assert shown["accuracy"][3]["Entropy"] == accurate["entropy", "9"]
    assert {f.name for f in (page.parent / "figures").iterdir()} == {"figure_6_1.png", "figure_6_2.png"}


def test_table_6_1_has_the_sources_figures_beside_ours():
    """Each in brackets where the source has it, and every k, limit and loss of the study once."""
    rows = lines_of(STUDY.parent / "recorded" / "accuracy.csv")[2:]
    source = module_of(STUDY).SOURCE_ACCURACY
    raw = {
        (m["loss"], m["k"], m["limit"]): float(m["accuracy"]) for m in lines_of(STUDY.parent / "recorded/table_6_1.csv")
    }
    assert len(rows) == 9 and len(raw) == 1 + 9 * 3
    for row in rows:
        k, limit = int(row["k"]), float(row["suppressed"].removesuffix(" %")) / 100
        for i, (loss, label) in enumerate({"prec": "Prec", "dm_star": "DM*", "entropy": "Entropy"}.items()):
            ours, _, theirs = row[label].partition(" ")
            assert ours == f"{raw[loss, str(k), str(limit)]:.4f}"
            assert theirs == (f"({source[k, limit][i]:.4f})" if k > 5 else "")


def test_uci_files_are_loaded_as_they_are(tmp_path):
    module = module_of(STUDY)
    (tmp_path / "adult.data").write_text(f"{UCI}\n{UCI.replace('Cuba', '?')}\n\n")
    missing = execute(STUDY, tmp_path, "--data", ".")
    assert missing.returncode == 1 and "adult.test is missing" in missing.stderr and "Traceback" not in missing.stderr
    (tmp_path / "adult.test").write_text(f"|1x3 Cross validator\n{UCI}.\n\n")
    module.load(tmp_path, tmp_path / "adult.duckdb")
    with duckdb.connect(str(tmp_path / "adult.duckdb"), read_only=True) as connection:
        train = connection.execute('SELECT id, age, "native-country", income FROM adult ORDER BY id').fetchall()
        assert train == [(1, 39, "Cuba", "<=50K"), (2, 39, "?", "<=50K")]
        assert connection.execute("SELECT id, income FROM adult_test").fetchall() == [(3, "<=50K")]


@pytest.mark.deep
def test_the_job_beside_it_runs_as_its_head_says(tmp_path, monkeypatch, capsys):
    job = (STUDY.parent / "job.toml").read_text(encoding="utf-8")
    small = "\n".join(x for x in job.splitlines() if not x.startswith(("capital", "education", "occupation", "native")))
    (tmp_path / "job.toml").write_text(small, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    module_of(STUDY).invent(900, 1, tmp_path / "adult.duckdb")
    commands = [line.removeprefix("#     sqldeid ") for line in job.splitlines() if line.startswith("#     sqldeid ")]
    assert len(commands) == 2
    for command in commands:
        ran = run(capsys, *command.split(), "--json", f"{command.split()[0]}.json")
        assert ran.code == 0, ran
    found = json.loads((tmp_path / "evaluate.json").read_text())["evaluated"]
    assert found["train"] == 600 and found["test"] == 300
    assert found["originals"]["accuracy"] == pytest.approx(found["anonymised"]["accuracy"], abs=0.15)
