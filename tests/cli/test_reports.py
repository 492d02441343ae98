"""`tradeoff`, `report` and `anonymize --report`, run as a user runs them."""

from __future__ import annotations

import json
import os

import duckdb
import pytest

from sqldeid.report import interactive
from tests.support.cli import run, tree


def test_tradeoff_prints_a_table_writes_files_and_releases_nothing(folder, capsys):
    ran = run(
        capsys,
        *("tradeoff", "db.duckdb", "--job", "job.toml", "--only", "people", "--k", "2,3,30", "--limit", "0,0.2"),
        *("--max-loss", "1", "--json", "t.json", "--html", "t.html"),
    )
    assert ran.code == 0 and "limit 0.2" in ran.out and "Greatest k" in ran.out
    found = json.loads((folder / "t.json").read_text())["tradeoff"]["people"]
    assert [(p["k"], p["suppression_limit"]) for p in found["points"]] == [(k, x) for k in (2, 3, 30) for x in (0, 0.2)]
    assert run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--json", "r.json").code == 0
    alone = json.loads((folder / "r.json").read_text())["releases"]["people"]
    same = next(p for p in found["points"] if (p["k"], p["suppression_limit"]) == (3, 0.2))
    assert (same["node"], same["loss"], same["suppressed"]) == (
        alone["node"],
        alone["loss"]["loss"],
        alone["suppressed"],
    )
    page = (folder / "t.html").read_text()
    assert "Least loss by suppression limit" in page and "plotly" in page
    with duckdb.connect("db.duckdb") as connection:
        assert connection.execute("SELECT COUNT(*) FROM duckdb_tables()").fetchone() == (1,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--k", "two"), "--k: give whole numbers with commas between"),
        (("--k", "0"), "--k: must be whole numbers of at least 1"),
        (("--limit", "1.5"), "--limit: must be shares"),
        (("--max-loss", "-1"), "--max-loss: must be at least 0"),
        (("--only", "nobody"), "there is no release nobody"),
        (("--json", "nowhere/t.json"), "nowhere"),
    ],
)
def test_tradeoff_refuses_what_cannot_be(folder, capsys, given, message):
    before = tree(folder)
    ran = run(capsys, "tradeoff", "db.duckdb", "--job", "job.toml", *given)
    assert ran.code == 2 and message in " ".join(ran.err.split())
    assert tree(folder) == before


def test_a_k_that_no_node_reaches_is_told_as_none(folder, capsys):
    ran = run(capsys, "tradeoff", "db.duckdb", "--job", "job.toml", "--only", "people", "--k", "1000", "--limit", "0")
    assert ran.code == 0 and "none" in ran.out


def test_a_page_is_made_again_with_what_the_job_says_by_now(folder, capsys):
    job = folder / "job.toml"
    given = ("anonymize", "db.duckdb", "--job", "job.toml", "--json", "r.json")
    job.write_text(f'about.title = "The old title"\n{job.read_text()}')
    assert run(capsys, *given).code == 0
    job.write_text(job.read_text().replace("The old title", "A new <title>"))
    for public in ((), ("--public",)):
        assert run(capsys, "report", "r.json", "-o", "again.html", *public).code == 0
        assert "The old title" in (folder / "again.html").read_text()
        assert run(capsys, "report", "r.json", "-o", "again.html", *public, "--about", "job.toml").code == 0
        page = (folder / "again.html").read_text()
        assert "A new &lt;title&gt;" in page and "The old title" not in page
    (folder / "other.toml").write_text(job.read_text().replace("people", "others"))
    ran = run(capsys, "report", "r.json", "-o", "again.html", "--about", "other.toml")
    assert ran.code == 2 and "--about: other.toml has no release people" in ran.err
    (folder / "broken.json").write_text('{"releases": {"people": 3}}')
    assert run(capsys, "report", "broken.json", "-o", "again.html", "--about", "job.toml").code == 2
    assert "broken.toml" in run(capsys, "report", "r.json", "-o", "again.html", "--about", "broken.toml").err


def test_a_report_is_written_with_the_release_and_again_from_its_result(folder, capsys):
    written = ("--json", "r.json", "--report", "report.html", "--public", "about.html")
    assert run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", *written).code == 0
    assert run(capsys, "report", "r.json", "-o", "again.html").code == 0
    assert run(capsys, "report", "r.json", "--public", "-o", "about2.html").code == 0
    assert (folder / "report.html").read_text() == (folder / "again.html").read_text()
    assert (folder / "about.html").read_text() == (folder / "about2.html").read_text()
    assert "How would it change" in (folder / "report.html").read_text()
    assert "<script" not in (folder / "about.html").read_text()


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_class_sizes_are_bars_of_plain_text(folder, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ran = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--only", "people", "--replace")
    lines = ran.out.splitlines()
    start = next(i for i, text in enumerate(lines) if "Rows in a class" in text)
    bars = lines[start + 1 : lines.index("", start)]
    assert bars and all("%" in text and text.rstrip().endswith("#") for text in bars)
    shares = [float(text.split(" %")[0].split()[-1]) for text in bars]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert max(bars, key=lambda text: text.count("#")) == bars[shares.index(max(shares))]
    assert all(len(text) <= int(columns) for text in bars)
    assert "\x1b" not in ran.out and "█" not in ran.out


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), ("[", "is not JSON"), ("{}", "is not a result"), ('{"error": {}}', "is not a result")],
)
def test_a_report_of_something_else_is_refused(folder, capsys, content, message):
    if content is not None:
        (folder / "x.json").write_text(content)
    ran = run(capsys, "report", "x.json", "-o", "x.html")
    assert ran.code == 2 and message in ran.err
    assert not (folder / "x.html").exists()


def test_without_the_extra_nothing_is_released(folder, capsys, monkeypatch):
    monkeypatch.setattr(interactive, "find_spec", lambda name: None)
    ran = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--report", "report.html")
    assert ran.code == 2 and "pip install 'sqldeid[report]'" in ran.err
    assert not (folder / "out.duckdb").exists() and not (folder / "report.html").exists()


def test_a_job_of_drawn_nodes_has_no_tradeoff(folder, capsys):
    text = (folder / "job.toml").read_text().replace('illness = { role = "sensitive" }\n', "")
    method = 'method = "epsilon-safe"\nepsilon_safe = { beta = 0.25, epsilon = 1.0, delta = 0.24 }'
    text = text.replace("[tables.all]", f"[tables.people.search]\n{method}\n\n[tables.all]")
    (folder / "drawn.toml").write_text(text)
    ran = run(capsys, "tradeoff", "db.duckdb", "--job", "drawn.toml", "--only", "people")
    assert ran.code == 2 and "tables.people.search.method: epsilon-safe draws its node" in " ".join(ran.err.split())


def test_json_of_what_may_go_out_is_written_by_the_run_alone(folder, capsys):
    (folder / "r.json").write_text("{}")
    ran = run(capsys, "report", "r.json", "--public", "-o", "about.json")
    assert ran.code == 2 and "sqldeid anonymize … --public FILE.json" in ran.err
    assert not (folder / "about.json").exists()


def test_a_page_replaces_a_page_of_ours_and_nobody_elses_file(folder, capsys):
    made = ("anonymize", "db.duckdb", "--job", "job.toml", "--replace")
    assert run(capsys, *made, "--json", "r.json").code == 0
    (folder / "empty.html").touch()
    assert run(capsys, "report", "r.json", "-o", "empty.html").code == 0, "an empty file loses nothing"
    assert run(capsys, "report", "r.json", "-o", "empty.html", "--public").code == 0, "a page gives way to a page"
    older = (folder / "empty.html").read_text().replace('<meta name="generator" content="sqldeid">', "")
    (folder / "empty.html").write_text(older)
    assert run(capsys, "report", "r.json", "-o", "empty.html").code == 0, "older pages did not name themselves"
    (folder / "thesis.html").write_text("<!DOCTYPE html>\n<title>Years of work with sqldeid</title>\n")
    (folder / "notes").write_text("years of work\n")
    before = tree(folder)
    writes = [
        *([*given, "-o"] for given in (["report", "r.json"], ["report", "r.json", "--public"])),
        *([*made, option] for option in ("--report", "--public")),
        ["tradeoff", "db.duckdb", "--job", "job.toml", "--html"],
    ]
    for given in writes:
        ran = run(capsys, *given, "thesis.html")
        assert ran.code == 2 and f"{given[-1]}: thesis.html exists already and is no page that sqldeid wrote" in ran.err
    assert run(capsys, "report", "r.json", "-o", "notes").code == 2
    assert tree(folder) == before


def test_a_new_chart_is_for_its_owner_alone_and_follows_no_link_beside_it(folder, capsys):
    """It was readable as the umask had it, and was drawn first into a file whose name anybody could foretell."""
    explored = ("explore", "db.duckdb", "--job", "job.toml", "--only", "people", "--plot", "chart.svg")
    (folder / "others").write_text("x")
    (folder / f".chart.svg.{os.getpid()}").symlink_to(folder / "others")
    assert run(capsys, *explored).code == 0
    chart = folder / "chart.svg"
    assert (folder / "others").read_text() == "x"
    assert not chart.is_symlink() and chart.stat().st_mode & 0o777 == 0o600
    chart.chmod(0o640)
    assert run(capsys, *explored).code == 0
    assert chart.stat().st_mode & 0o777 == 0o640


def test_json_and_charts_replace_their_like_and_nobody_elses_file(folder, capsys):
    made = ("anonymize", "db.duckdb", "--job", "job.toml", "--replace")
    explored = ("explore", "db.duckdb", "--job", "job.toml", "--only", "people")
    looked = (("assess", "db.duckdb", "--job", "job.toml"), ("tradeoff", "db.duckdb", "--job", "job.toml"), explored)
    writes = [
        *([*made, option] for option in ("--json", "--public", "--certificate")),
        *([*given, "--json"] for given in (*looked, ("privacy", "shifts"), ("doctor",))),
    ]
    for number, given in enumerate(writes):
        (folder / f"{number}.json").touch()
        for _ in range(2):
            assert run(capsys, *given, f"{number}.json").code == 0, "an empty file, and what we wrote, are replaced"
    for name in ("chart.png", "chart.svg"):
        for _ in range(2):
            assert run(capsys, *explored, "--plot", name).code == 0
        (folder / f"own.{name}").write_bytes(b"\x89PNG\r\n\x1a\n" if name.endswith("png") else b"<?xml version='1.0'?>")
    (folder / "notes.json").write_text('{"years": "of work with sqldeid"}')
    (folder / "list.json").write_text("[1, 2]")
    before = tree(folder)
    for given, name in [(given, name) for given in writes for name in ("notes.json", "list.json")]:
        ran = run(capsys, *given, name)
        assert ran.code == 2 and f"{given[-1]}: {name} exists already and is no JSON that sqldeid wrote" in ran.err
    for name in ("own.chart.png", "own.chart.svg"):
        ran = run(capsys, *explored, "--plot", name)
        assert ran.code == 2 and f"--plot: {name} exists already and is no chart that sqldeid wrote" in ran.err
    assert tree(folder) == before
