"""The help of every command is a manual's page, and shells complete by it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sqldeid import errors
from sqldeid.cli.app import COMMANDS, cli
from sqldeid.cli.manual import DATABASE, EXITS, PAGES, VARIABLES
from sqldeid.engine.choosing import dialect_of
from sqldeid.engine.offers import NAMES
from tests.support.cli import PROGRAM, run

PACKAGE = Path(errors.__file__).parent


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    for inner, other in getattr(command, "commands", {}).items():
        yield from walk(other, f"{name} {inner}")


def every() -> list[tuple[str, click.Command]]:
    context = click.Context(cli)
    return [one for name in COMMANDS for one in walk(cli.get_command(context, name), name)]


def test_every_command_has_its_page_and_no_page_is_of_none():
    names = [name for name, _ in every()]
    assert set(names) == set(PAGES)
    for page in PAGES.values():
        assert page.see and set(page.see) <= set(names)
        assert set(page.exits) <= set(EXITS) and set(page.variables) <= set(VARIABLES)
    assert {v for page in PAGES.values() for v in page.variables} == set(VARIABLES)


def test_help_says_it_all_once(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in every():
        for _ in range(2):  # loaded once, its end must not be put there again
            out = run(capsys, *name.split(), "--help").out
        for heading in ("Exit codes:", "Environment:", "Files:", "See also:"):
            assert out.count(heading) == 1, (name, heading)
        assert max(map(len, out.splitlines())) <= 120
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.help, f"{name} {param.name}: an option without help"
        assert command.help and len(command.help.split()) > 4, name


def test_every_command_that_takes_a_database_says_what_it_may_be(capsys, repository):
    """Every engine is told, spelt so that it is taken for that engine, and as the pages of it spell it."""
    spelt = {"postgres": "postgresql://USER@HOST/DATABASE", "spark": "sc://HOST:PORT"}
    assert {*spelt, "duckdb"} == set(NAMES)
    for engine, url in spelt.items():
        assert url in DATABASE and dialect_of(url) == engine
        page = (repository / "docs" / "how-to" / f"{engine}.md").read_text(encoding="utf-8")
        assert url.partition("//")[0] in page
    assert "as spark in" in DATABASE and dialect_of("spark") == "spark"
    takes = [name for name, command in every() if any((p.metavar or "").strip("[]") == "DB" for p in command.params)]
    assert {"anonymize", "verify", "init", "hierarchy check", "doctor"} < set(takes)
    for name in takes:
        said = " ".join(run(capsys, *name.split(), "--help").out.split())
        assert said.count(DATABASE) == 1, name
        assert not re.search(r"^ {3,}", run(capsys, *name.split(), "--help").out.partition("Options:")[0], re.MULTILINE)
    page = (repository / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert "postgresql://" in page and "sc://" in page and "`spark`" in page


CASES = {
    "NoSolutionError": {
        "a search finds no admissible node": ("tables/search", "tables/mondrian", "tables/peel", "tables/local"),
        "the node that k alone chooses fails another criterion too often": ("tables/release/node", "tables/local"),
        "no cut of the items": ("tables/itemset",),
        "no release of so many layers": ("tables/peel",),
    },
    "VerificationError": {
        "`--policy`: its node does not meet the criteria": ("tables/release/policy",),
        "`--ledger`: every row is held back": ("ledger/core", "series/ledger"),
        "a linked series has nobody in common with its table": ("run/followed",),
        "what was written is not what the job promises": (
            *("tables/verify", "tables/mondrian", "tables/itemset", "tables/local", "tables/followed", "tables/rows"),
            *("tables/disguise", "series", "run/followed"),
        ),
        "the source changed while a server read it": ("tables/write", "tables/mondrian", "publish/spark_replaced"),
        "`verify`, `assess --release`: no release is there": ("publish/existing", "publish/spark_folder"),
        "`assess --release`: the release was made with quasi-identifying columns": ("tables/release/assess",),
        "shows [true dates beside shifted ones]": ("run/dates_there",),
        "the release, or its source, has changed": ("run/places", "tables/release", "events", "series", "tables/local"),
        "the job asks for something else by now": ("tables/verify", "tables/release", "series", "tables/itemset"),
        "a release in DuckDB is a view that does [not show all of its snapshot]": ("publish/snapshots",),
        "comments, defaults, lists of values (ENUM) or domains (Postgres) of columns, a note, or metadata of Parquet": (
            "publish/comments",
        ),
        "the ledger it was made with is not named": ("run/earlier", "ledger/audit"),
        "`verify --certificate`: the proof does not hold": (
            *("tables/certificate", "tables/release/face", "run/orchestrator", "cli/releases"),
        ),
        "a certificate or an archive in a form that only another version reads": ("run/orchestrator", "evidence"),
        "`evidence --check`: something was changed": ("evidence",),
    },
}
"""By error of a code of its own: the cases that the page has, and the modules or rooms that raise it for them."""


def raising(kind: str) -> set[str]:
    """Modules that make this error, whether by its name or by `at`."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            made = node.func if isinstance(node, ast.Call) else None
            made = made.value if isinstance(made, ast.Attribute) and made.attr == "at" else made
            named = made.id if isinstance(made, ast.Name) else made.attr if isinstance(made, ast.Attribute) else ""
            if named == kind:
                found.add(path.relative_to(PACKAGE).with_suffix("").as_posix())
    return found


def rows(page: str, heads: str) -> list[list[str]]:
    """Rows of the table with these heads."""
    [table] = re.findall(rf"^\| {heads} \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", page, flags=re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()]


@pytest.mark.deep
def test_exit_codes_and_their_cases_are_those_of_the_page(repository):
    """A module that begins to end a run with code 3 or 4 has to be told here, and so on the page."""
    page = (repository / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    assert {int(code): said for code, said in rows(page, r"code \| meaning")} == EXITS
    cases = [(said, int(code)) for said, code in rows(page, r"case \| code")]
    assert {code for _, code in cases} == set(EXITS) - {0}
    for name, told in CASES.items():
        code = getattr(errors, name).code
        for case in told:
            assert [c for said, c in cases if case in said] == [code], case
        untold = [said for said, c in cases if c == code and not any(case in said for case in told)]
        assert untold == []
        where = {room for rooms in told.values() for room in rooms}
        made = raising(name)
        assert [module for module in made if not any(f"{module}/".startswith(f"{room}/") for room in where)] == []
        assert [room for room in where if not any(f"{module}/".startswith(f"{room}/") for module in made)] == []


def complete(*words: str) -> list[str]:
    """What bash would offer for the last word, as ``type,value``."""
    env = {**os.environ, "_SQLDEID_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words)}
    env["COMP_CWORD"] = str(len(words) - 1)
    done = subprocess.run([str(PROGRAM)], env=env, capture_output=True, text=True)
    assert done.stderr == "", done.stderr
    return done.stdout.split()


def test_commands_options_and_files_are_completed():
    assert complete("sqldeid", "ev") == ["plain,evaluate", "plain,evidence"]
    assert complete("sqldeid", "verify", "--jo") == ["plain,--job"]
    assert complete("sqldeid", "verify", "d") == ["file,d"]
    assert complete("sqldeid", "anonymize", "--house-rules", "r") == ["file,r"]
    assert complete("sqldeid", "hierarchy", "s") == ["plain,show"]


@pytest.mark.deep
def test_completing_commands_loads_none():
    code = "import os, sys, atexit; atexit.register(lambda: sys.stderr.write(' '.join(sys.modules))); "
    code += "from sqldeid.cli import main; main()"
    env = {**os.environ, "_SQLDEID_COMPLETE": "zsh_complete", "COMP_WORDS": "sqldeid ", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert all(name in done.stdout for name in COMMANDS)
    assert not set(done.stderr.split()) & {"duckdb", "rich", "pydantic", "sqldeid.cli.releases", "sqldeid.cli.manual"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_printed(shell, capsys):
    ran = run(capsys, "completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"_SQLDEID_COMPLETE={shell}_complete" in ran.out
    assert run(capsys, "completion", "cmd").code == 2


def test_bash_reads_its_script(tmp_path, capsys):
    (tmp_path / "sqldeid.bash").write_text(run(capsys, "completion", "bash").out)
    done = subprocess.run(["bash", "-n", str(tmp_path / "sqldeid.bash")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_module_is_the_program():
    done = subprocess.run([sys.executable, "-m", "sqldeid", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("sqldeid, version ")
    assert subprocess.run([sys.executable, "-m", "sqldeid", "no"], capture_output=True).returncode == 2
