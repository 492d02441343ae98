"""The pages that the site makes of the code name everything that the code has, and their examples can be read."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from types import ModuleType

import click
import pyarrow as pa
import pytest

import sqldeid
import sqldeid.errors
from sqldeid import demo
from sqldeid.cli.app import COMMANDS, cli
from sqldeid.job import schema
from tests.support.places import ROOT


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "site" / "pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sections(text: str) -> dict[str, str]:
    """By heading of the second level, what stands below."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_key_of_every_part_of_a_job_is_told_with_its_description(pages):
    found, whole = sections(pages.job_keys()), schema()
    models = {"Job": whole, **whole["$defs"]}
    assert found.keys() == models.keys()
    told = 0
    for name, model in models.items():
        rows = re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", found[name], flags=re.MULTILINE)
        assert [key for key, _ in rows] == list(model.get("properties", {}))
        assert all(len(says) > 5 for _, says in rows)
        told += len(rows)
    assert told > 200


def test_links_between_parts_lead_to_one(pages):
    text = pages.job_keys()
    targets = set(re.findall(r"\]\(#(\w+)\)", text))
    assert len(targets) > 20 and targets <= {name.lower() for name in sections(text)}


def test_examples_are_lines_of_a_job(pages):
    whole = schema()
    examples = pages.examples_of(whole)
    shown = re.findall(r"^\| `(\w+)` .*? Example: `(.*?)` \|$", pages.job_keys(), flags=re.MULTILINE)
    assert len(shown) > 180 and len(examples) > 100
    for key, line in shown:
        assert list(tomllib.loads(line.replace("\\|", "|"))) == [key]


def test_every_command_has_all_its_options(pages):
    found = sections(pages.command_line())

    def walk(command: dict, name: str) -> dict[str, set[str]]:
        if "commands" in command:
            inside = [walk(c, f"{name} {n}") for n, c in command["commands"].items()]
            return {key: value for part in inside for key, value in part.items()}
        return {name: {o for p in command["params"] if not p.get("hidden") for o in p["opts"] if o.startswith("-")}}

    known = walk(click.Context(cli, info_name="sqldeid").to_info_dict()["command"], "sqldeid")
    assert found.keys() == known.keys() and {name.split()[1] for name in known} == set(COMMANDS)
    for name, options in known.items():
        assert options <= set(re.findall(r"(?<=[`\s])--?[\w-]+", found[name])), name


def test_every_error_stands_with_its_code_and_the_codes_are_those_of_the_table(pages):
    kinds = [k for k in vars(sqldeid.errors).values() if isinstance(k, type) and issubclass(k, sqldeid.SqldeidError)]
    text = pages.errors()
    for kind in kinds:
        assert re.search(
            rf"^\| `{kind.__name__}` \| `\w+` \| {kind.code} \| `{kind.kind}` \| .{{9}}", text, re.MULTILINE
        )
    table = (ROOT / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE)}
    assert codes == {0, *(kind.code for kind in kinds)}


def test_every_public_name_of_python_is_asked_for(pages):
    text = pages.python()
    assert {n.rpartition(".")[2] for n in re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE)} == set(sqldeid.__all__)


def test_lists_and_tables_are_set_apart_but_not_in_code(pages):
    text = "prose\n- a\n  more\n- b\n\n```sh\nx\n- y\n```\nand\n| c |\n|---|\n| d |\n1. e\n"
    assert pages.apart(text) == ("prose\n\n- a\n  more\n- b\n\n```sh\nx\n- y\n```\nand\n\n| c |\n|---|\n| d |\n1. e\n")


def keys_told(text: str) -> dict[str, set[str]]:
    """By dataclass, the keys that the page of a result tells."""
    found: dict[str, set[str]] = {}
    for name, part in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| `(\w+)` \| (?:.+) \| (.+) \|$", part, flags=re.MULTILINE)
        assert rows and all(len(says) > 2 for _, says in rows)
        found.setdefault(name, set()).update(key for key, _ in rows)
    return found


@pytest.mark.deep
def test_every_key_of_a_result_is_told(pages, tmp_path):
    told = keys_told(pages.result())
    demo.adult(tmp_path / "a.duckdb", 300)
    job = sqldeid.Job.load(tmp_path / "a.job.toml")
    made = sqldeid.anonymize(job, tmp_path / "a.duckdb").to_dict()
    assert made.keys() <= told["Result"] | {"audience"}
    [table] = made["releases"].values()
    assert table.keys() <= told["TableRelease"]
    for column in table["columns"].values():
        assert column.keys() <= told["ColumnResult"]
    assert table["search"].keys() <= told["SearchResult"]
    for criterion in table["criteria"]:
        assert criterion.keys() <= told["Criterion"]
    demo.events(tmp_path / "e.duckdb", 600)
    made = sqldeid.anonymize(sqldeid.Job.load(tmp_path / "e.job.toml"), tmp_path / "e.duckdb").to_dict()
    for release in made["releases"].values():
        assert release.keys() <= told["EventsRelease"] | {"audience"}
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    rows = {
        "people": pa.table({"id": range(40), "sex": ["f", "m"] * 20}),
        "codes": pa.table({"id": range(40), "code": ["a", "a", "b", "b"] * 10}),
    }
    qi = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    pseudonym = {"role": "identifying", "pseudonym": True}
    parent = {"source": "people", "person": "id", "columns": {"id": pseudonym, "sex": qi}, "privacy": {"k": 5}}
    child = {"source": "codes", "person": "id", "parent": "p", "items": "code", "known": 1, "columns": {"code": qi}}
    job = sqldeid.Job.parse({"tables": {"p": parent, "c": {**child, "privacy": {"k": 5}}}})
    made = sqldeid.anonymize(job, rows, options=sqldeid.Options(key_file=tmp_path / "key")).to_dict()
    assert made["releases"]["c"].keys() <= told["ChildRelease"]


def test_every_chart_stands_on_its_page_with_its_command():
    page = (ROOT / "docs" / "explanation" / "charts.md").read_text(encoding="utf-8")
    made = (ROOT / "docs" / "site" / "charts.py").read_text(encoding="utf-8")
    [listed] = re.findall(r"^COMMANDS = (\(\n.*?^\))", made, flags=re.MULTILINE | re.DOTALL)
    for command in ast.literal_eval(listed):
        assert f"sqldeid {command}" in page, command
    shown = set(re.findall(r"!\[.{40,}\]\(\.\./figures/(charts-[\w-]+\.png)\)", page))
    assert shown == {path.name for path in (ROOT / "docs" / "figures").glob("charts-*.png")}
    assert len(shown) >= 8


def test_the_strict_build_is_not_quiet():
    """With --quiet mkdocs counts no warning, so that --strict refuses none: dead links passed for months."""
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = [line for line in made.splitlines() if "mkdocs build" in line or line.startswith("\t$(SITE)")]
    assert len(lines) == 3 and "--strict" in lines[0]
    assert not any(re.search(r"\s(-q|--quiet)\b", line) for line in lines)


def test_all_files_of_the_nightly_example_are_on_the_site_as_they_are(pages):
    text, folder = pages.nightly_files(), ROOT / "examples" / "nightly"
    kept = [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {p.suffix for p in kept} == set(pages.WRITTEN_IN)
    for path in kept:
        name, content = path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8").strip()
        assert content.partition("\n")[2].strip() in text and (name == "README.md" or f"\n## {name}\n\n```" in text)


def test_the_page_shows_the_cron_script_of_the_example(pages):
    page = (ROOT / "docs" / "how-to" / "nightly.md").read_text(encoding="utf-8")
    script = (ROOT / "examples" / "nightly" / "nightly.sh").read_text(encoding="utf-8")
    assert f"`nightly.sh`:\n\n```sh\n{script}```\n" in page


def test_a_notebook_becomes_a_page(pages):
    for path, make in pages.NOTEBOOKS.items():
        text = make()
        assert text.startswith("# ") and (ROOT / "examples" / "notebooks" / f"{path[18:-3]}.ipynb").exists()
        assert re.findall(r"<img [^>]*>", text) == re.findall(
            r'<img alt="[^"]{40,}" src="data:image/png;base64,[^"]+">', text
        )
        assert "<table>" in text and "<style" not in text and "```python" in text
        assert not any("<div>" in line and "</div>" not in line for line in text.splitlines())
