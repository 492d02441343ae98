"""The studies of `series_study` at full width run by one command, and what the page shows is what they printed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.places import EXAMPLES, ROOT
from tests.support.studies import execute, lines_of, module_of

FOLDER = EXAMPLES / "series_study"
PAGE = ROOT / "docs" / "studies.md"
FIVE = ("lengths", "targets", "singled-out", "trust", "disagreement", "demo")
gallery = module_of(EXAMPLES / "gallery.py")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("width.py", ("width", "width-pr", "width-facts", "width-stay")),
        ("tuning.py", ("durations", "classes", "grid")),
        ("study.py", tuple(f"five-{name}" for name in FIVE)),
    ],
)
def test_the_page_shows_what_was_recorded(tmp_path: Path, script: str, names: tuple[str, ...]) -> None:
    shutil.copytree(FOLDER / "recorded", tmp_path / "recorded")
    done = execute(FOLDER / script, tmp_path, "--again", "--into", "recorded")
    assert done.returncode == 0, done.stderr
    sections = dict(part.split("\n\n", 1) for part in done.stdout.strip().split("\n\nseries_study/"))
    printed = {name.removeprefix("series_study/"): text.strip() for name, text in sections.items()}
    assert set(printed) == set(names)
    for name in names:
        assert printed[name].count("\n") >= 3
        assert gallery.held(PAGE, f"series_study/{name}") == printed[name]


@pytest.mark.deep
def test_four_trust_settings_of_a_generated_hospital(tmp_path: Path) -> None:
    done = execute(FOLDER / "width.py", tmp_path, "--patients", "200", "--splits", "2", "--quick")
    assert done.returncode == 0, done.stderr
    rows = lines_of(tmp_path / "series_width" / "width.csv")
    methods = {row["method"] for row in rows}
    assert methods == {
        *("mazzone2020", "genetic", "projection", "projection, all protected", "shared, all protected"),
    }
    assert len(rows) == 5 * 2 * 4
    for row in rows:
        low, mean, high = (float(row[f"test_roc{part}"]) for part in ("_low", "", "_high"))
        assert 0 <= low <= mean <= high <= 1
        if row["setting"] == "orig. / orig.":
            assert float(row["change"]) == 0
    trained = {(row["method"], row["setting"], row["train_roc"]) for row in rows if row["originals"] == "after the cut"}
    assert len({roc for _, setting, roc in trained if setting == "orig. / orig."}) == 1, "originals are the same"
    assert len({roc for _, setting, roc in trained if setting == "de-id. / de-id."}) == 5, "releases are not"
    assert "0.64" in done.stdout, "the source's figure stands beside ours"
    assert (tmp_path / "series_width" / "width.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.deep
def test_benchmark_stays_of_the_demo_with_labels(tmp_path: Path, shared_data: Path) -> None:
    """The preset benchmark17, the source's split of variables, and a second outcome."""
    mimic = ("--mimic", str(shared_data / "mimic3demo"), "--only", "MIMIC-III, 48", "--splits", "2", "--quick")
    done = execute(FOLDER / "width.py", tmp_path, *mimic)
    assert done.returncode == 0, done.stderr
    rows = lines_of(tmp_path / "series_width" / "width.csv")
    assert {(row["outcome"], row["variables"], row["common persons"]) for row in rows} == {
        ("death", "16", "57"),
        ("long stay", "16", "57"),
    }
    assert {row["method"] for row in rows} >= {"mazzone2020", "projection", "shared, all protected"}


@pytest.mark.deep
def test_tuning_of_a_generated_hospital(tmp_path: Path) -> None:
    done = execute(FOLDER / "tuning.py", tmp_path, "--patients", "150", "--stays", "1", "--quick")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "series_tuning"
    lengths = {(row["k"], row["method"]): int(row["moved"]) for row in lines_of(folder / "tuning_durations.csv")}
    for k in ("50", "100"):
        assert lengths[k, "optimal"] < lengths[k, "mazzone2020"]
    assert lengths["50", "optimal"] < lengths["100", "optimal"]
    made = {(r["k"], r["heuristic"], r["variance"]): r for r in lines_of(folder / "tuning_classes.csv")}
    assert len(made) == 6
    assert float(made["5", "range", ""]["distortion"]) < float(made["10", "range", ""]["distortion"])
    without = {name: float(made["10", "range", name]["distortion"]) for name in ("", "forms no classes", "kept")}
    assert len(set(without.values())) == 3, "classes without the variance are others, and so is what is then kept"
    settings = lines_of(folder / "tuning_grid.csv")
    assert len(settings) == 9 and {row["parents"] for row in settings} == {"2", "3", "4"}
    assert len({row["unfeasibility"] for row in settings}) == 9
    assert (folder / "figure_6_2_and_6_3.svg").exists()
