"""Studies of Mazzone (2019) are redone by one command each: notes, all of OLA, weighted Prec, parameters."""

from __future__ import annotations

import re

import duckdb
import pytest

from tests.support.places import EXAMPLES, ROOT
from tests.support.studies import PNG, execute, lines_of, module_of

gallery = module_of(EXAMPLES / "gallery.py")
PAGE = ROOT / "docs" / "studies.md"
MINE = ("prune_study", "adult_study", "mimic_study", "epsilon_safe", "notes_study", "m_concealing")
RAW = {
    "epsilon_safe/good_nodes",
    *(f"adult_study/{name}" for name in ("figure_6_1", "inverse_ola", "table_6_1")),
    *(f"mimic_study/{name}" for name in ("chapter_3", "releases")),
    *(f"m_concealing/models-{name}" for name in ("demo", "generated")),
}
"""What a command records beside the tables of the page: every release."""

PLACES = re.findall(rf"<!-- ((?:{'|'.join(MINE)})/[\w-]+) -->", PAGE.read_text(encoding="utf-8"))


def test_the_page_has_a_place_for_every_recorded_table():
    recorded = {f"{f}/{p.stem}" for f in MINE for p in (EXAMPLES / f / "recorded").glob("*.csv")}
    assert recorded - RAW == set(PLACES) and recorded >= RAW and len(PLACES) == 30


@pytest.mark.parametrize("place", PLACES)
def test_the_page_shows_what_was_recorded(place):
    folder, name = place.split("/")
    rows = gallery.read_rows(EXAMPLES / folder / "recorded" / f"{name}.csv")
    assert gallery.held(PAGE, place) == gallery.markdown(rows)


def test_no_readme_of_these_studies_has_a_table_of_results():
    """They stand on the page, where a command puts them."""
    for folder in MINE:
        text = (EXAMPLES / folder / "README.md").read_text(encoding="utf-8")
        results = text.partition("## What comes out")[2].partition("\n## ")[0]
        assert not [line for line in results.splitlines() if line.startswith("|")], folder
        assert "docs/studies.md" in text, folder


def test_the_page_shows_every_figure():
    shown = set(re.findall(r"\]\((figures/[\w.-]+)\)", PAGE.read_text(encoding="utf-8")))
    drawn = {p.name for p in (PAGE.parent / "figures").iterdir() if not p.name.startswith("charts-")}
    assert {f"figures/{name}" for name in drawn} == shown and len(shown) > 5  # charts-* stand on explanation/charts.md


# ---- notes -----------------------------------------------------------------------------------------------------------

NOTES = EXAMPLES / "notes_study" / "notes.py"


@pytest.mark.deep
def test_notes_are_counted_as_letters_and_as_words(tmp_path):
    done = execute(NOTES, tmp_path, "--notes", "1500", "--patients", "200", "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "notes.png").read_bytes().startswith(PNG)
    rows = {r["attribute"]: r for r in lines_of(tmp_path / "table-3-1.csv")}
    assert list(rows) == ["age", "sex", "ethnicity", "religion", "orientation"]

    def per_cent(attribute: str, column: str) -> float:
        return float(rows[attribute][column].partition(" %")[0])

    for a in rows:
        letters, words = per_cent(a, "letters, source's list"), per_cent(a, "words, source's list")
        assert words <= letters, "a word is made of its letters"
        told = per_cent(a, "told") - per_cent(a, "letters: told, not matched")
        assert letters == pytest.approx(told + per_cent(a, "letters: matched, not told"), abs=0.03)
    assert per_cent("sex", "letters: matched, not told") > 20, "he stands in the"
    assert rows["sex"]["source (letters)"] == "1,823,400 (87.53 %)"
    kinds = {r["notes of"]: r for r in lines_of(tmp_path / "first-characters.csv")}
    assert set(kinds) == {"Nursing", "Physician"} and kinds["Nursing"]["source"].startswith("49.5%")


@pytest.mark.deep
def test_notes_of_ones_own_are_counted_by_hand(tmp_path):
    with duckdb.connect(str(tmp_path / "own.duckdb")) as connection:
        connection.execute("CREATE SCHEMA mimiciii")
        connection.execute(
            "CREATE TABLE mimiciii.noteevents AS SELECT * FROM (VALUES "
            "(1, 'Nursing', 'The heparin drip was held all night.'), (1, 'Nursing', 'She is 40 years old today.'), "
            "(2, 'Nursing', 'A man, Catholic, quite unwell.'), (3, 'Radiology', 'No change in this picture.')) "
            "t(subject_id, category, text)"
        )
    done = execute(NOTES, tmp_path, "own.duckdb", "--table", "mimiciii.noteevents")
    assert done.returncode == 0, done.stderr
    rows = {r["attribute"]: r for r in lines_of(tmp_path / "table-3-1.csv")}
    assert rows["sex"]["letters, source's list"] == "75.00 %" and rows["sex"]["words, source's list"] == "50.00 %"
    assert rows["age"]["letters, source's list"] == rows["religion"]["words, source's list"] == "25.00 %"
    assert "told" not in rows["sex"]
    singled = {
        r["notes of"]: r["singled out by the first 20 characters"] for r in lines_of(tmp_path / "first-characters.csv")
    }
    assert singled == {"Nursing": "100.0%", "Radiology": "100.0%"}
    missing = execute(NOTES, tmp_path, "own.duckdb", "--table", "main.none")
    assert missing.returncode == 1 and "Traceback" not in missing.stderr


# ---- OLA, weights, parameters ----------------------------------------------------------------------------------------


@pytest.mark.deep
def test_all_of_olas_cells_find_what_the_default_search_finds(tmp_path):
    small = ("--rows", "900", "--columns", "workclass,race,sex", "--k", "5,25", "--limits", "0,0.1")
    done = execute(EXAMPLES / "adult_study" / "ola.py", tmp_path, *small)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("12 runs on a lattice of 12 nodes; ") and "not the same node" not in done.stdout
    checks = lines_of(tmp_path / "ola_checks.csv")
    assert [(r["loss"], r["k"]) for r in checks] == [(x, k) for x in ("Prec", "DM*", "Entropy") for k in ("5", "25")]
    assert all(r["0 %"].endswith({"5": "(127)", "25": "(98)"}[r["k"]]) for r in checks)
    for k in ("5", "25"):
        assert len({r["10 %"].partition(" /")[0] for r in checks if r["k"] == k}) == 1, (
            "checks do not depend on the loss"
        )
    assert (tmp_path / "ola.png").read_bytes().startswith(PNG)


def test_recorded_cells_hold_the_least_prec_of_figure_6_1():
    """Prec as two other programs computed it (`tests/tables/search/test_adult_study.py`)."""
    rows = gallery.read_rows(EXAMPLES / "adult_study" / "recorded" / "ola_losses.csv")
    found = {r["k"]: [float(v) for n, v in r.items() if n.endswith("%")] for r in rows if r["loss"] == "Prec"}
    assert found["5"] == [0.7222, 0.5185, 0.3889, 0.2778, 0.1852, 0.0370]
    assert found["100"] == [0.7778, 0.7407, 0.6296, 0.5556, 0.4074, 0.2222]


@pytest.mark.deep
def test_weights_buy_procedures_with_k(tmp_path):
    small = ("--patients", "300", "--losses", "0.8", "--limits", "0.5")
    done = execute(EXAMPLES / "mimic_study" / "weighted.py", tmp_path, *small)
    assert done.returncode == 0, done.stderr
    (row,) = lines_of(tmp_path / "weighted.csv")
    ks = {name: int(cell.removeprefix("k = ").partition(",")[0]) for name, cell in row.items() if name.startswith("w")}
    assert list(ks) == ["weight 1", "weight 3", "weight 10", "weight 100"]
    assert ks["weight 100"] < ks["weight 1"] and not row["weight 100"].endswith("nothing")
    assert len(lines_of(tmp_path / "weighted-summary.csv")) == 4


@pytest.mark.deep
def test_joint_diversity_costs_more_and_its_absence_tells(tmp_path):
    """The loss of joint l is no less, and what a weighted l would weigh is right where a class is looked at by hand."""
    script = EXAMPLES / "m_concealing" / "diversity.py"
    done = execute(script, tmp_path, "--rows", "1500")
    assert done.returncode == 0, done.stderr
    for row in lines_of(tmp_path / "diversity.csv"):
        joint = row["least loss, p = 1"]
        assert joint == "no solution" or float(joint) >= float(row["least loss, p = 0"])
        (weighted,) = [v for n, v in row.items() if "weighted" in n]
        assert float(weighted.split()[0]) <= 0.95 / int(row["l"]) + 0.05 + 1e-3
    module = module_of(script)
    with duckdb.connect(str(tmp_path / "hand.duckdb")) as connection:
        qis = ", ".join(f"'*' AS \"{c}\"" for c in module.QIS)
        connection.execute("CREATE SCHEMA release")
        connection.execute(
            f"CREATE TABLE release.census AS SELECT {qis}, * FROM "
            "(VALUES ('a', 'x'), ('b', 'x'), ('b', 'y'), ('b', 'y')) t(occupation, workclass)"
        )
    certain, weighted = module.told(tmp_path / "hand.duckdb")
    assert (certain, weighted) == (0.5, pytest.approx(0.95 / 2 + 0.05 / 1))


def test_fifty_misses_the_delta_that_the_source_asks_for(tmp_path):
    done = execute(EXAMPLES / "epsilon_safe" / "parameters.py", tmp_path)
    assert done.returncode == 0, done.stderr
    deltas = {r["k"]: r for r in lines_of(tmp_path / "parameters_deltas.csv")}
    assert deltas["50"]["β = 0.75"] == "2.48e-04" and "0.75" in deltas["50"]["all below 1e-4"]
    assert deltas["25"]["β = 0.1"] == "1.20e-03" and deltas["20"]["β = 0.1"] == "3.59e-03"
    grid = {r["ε"]: r for r in lines_of(tmp_path / "parameters_grid.csv")}
    assert grid["2"]["β = 0.01"] == "1.990" and grid["2"]["β = 0.9"] == "–" and grid["2"]["β = 0.75"] == "0.614"
    module = module_of(EXAMPLES / "epsilon_safe" / "parameters.py")
    for row in lines_of(tmp_path / "parameters_smallest.csv"):
        k = int(row["smallest k, source's δ"])
        assert module.source_delta(k, row["β"]) <= 1e-4 < module.source_delta(k - 1, row["β"])
