"""What docs show in indented blocks, and in fenced ones outside the four parts: run where it can be, else read.

Fenced blocks of the four parts run in `test_readme.py`. Here every other block is of a kind that is known: jobs are
validated; commands of sqldeid are parsed by the program, and run where a folder or server can be made. Of other
programs files, options and names are looked up: Airflow, Dagster, dbt and R go into no environment of ours. What the
files for Airflow, Dagster and dbt do is run by `test_nightly.py`, with stand-ins for what those programs give them.
"""

from __future__ import annotations

import ast
import configparser
import copy
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import duckdb
import pytest
import sqlglot

import sqldeid
from sqldeid.cli.app import cli
from sqldeid.hierarchy import check
from tests.support.hospital import hospitals
from tests.support.places import ROOT
from tests.support.shell import execute

DOCS = ROOT / "docs"
PARTS = ("tutorial", "how-to", "reference", "explanation")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)((?:^ {4,}\S.*\n(?:^\s*\n(?=^ {4,}\S))*)+)", flags=re.MULTILINE)
DRAWN = {
    "persons-and-rows.md": "subject_id  age",
    "explanation/how-it-works.md": "job.toml ─▶",
    "design/search.md": "fold:",
}
"""Drawings and pseudo-code: page, and how the block begins."""
ELSEWHERE = {"child-tables.md": "console"}
"""Sessions that a test of their page runs (`test_child_page.py`)."""

QI = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
SERIES = {
    "source": "main.s", "person": "id", "time": "t", "variable": "v", "value": "x", "step_hours": 1,
    "time_unit": "hours",
    "variables": {"HR": {"items": ["HR"]}, "Temp": {"items": ["Temp"]}}, "durations": {"k": 5}, "privacy": {"k": 5},
    "features": ["mean"], "perturb": {"method": "projection"},
}  # fmt: skip
ILL = {"tables": {"people": {"columns": {"illness": {"role": "sensitive"}}}}}
ROUND: Mapping[str, Mapping[str, Any]] = {
    "child-tables.md": {"tables": {
        "patients": {"person": "subject_id", "columns": {"subject_id": {"role": "identifying", "pseudonym": True}}},
        "diagnoses": {
            "person": "subject_id", "parent": "patients", "items": "icd9_code", "known": 2,
            "columns": {"icd9_code": QI}, "privacy": {"k": 3},
        },
    }},
    "closeness.md": {"tables": {"people": {"columns": {"occupation": {"role": "sensitive"}}}}},
    "cohorts.md": {"tables": {"all": {}, "patients": {}}},
    "mondrian.md": {"tables": {"t": {"search": {"method": "mondrian"}}}},
    "node-choice.md": ILL,
    "ratio-criteria.md": ILL,
    "series-rounding.md": {"series": {"vitals": SERIES}},
}  # fmt: skip
"""What a page's part of a job leaves to the reader."""


def blocks() -> Iterator[tuple[str, str]]:
    """Page and text of each block that this module is for."""
    for path in sorted(DOCS.rglob("*.md")):
        page, text = path.relative_to(DOCS).as_posix(), path.read_text(encoding="utf-8")
        for kind, inside in FENCED.findall(text):
            if path.parent.name not in PARTS and ELSEWHERE.get(page) != kind:
                yield page, inside
        for inside in INDENTED.findall(FENCED.sub("", text)):
            least = min(len(line) - len(line.lstrip()) for line in inside.splitlines() if line.strip())
            yield page, "".join(line[least:] if line.strip() else line for line in inside.splitlines(keepends=True))


def kind_of(page: str, text: str) -> str:
    """What a block is, by how it begins."""
    kinds = {
        "toml": r"(\[[a-z]+(\.\w+)*\]|[\w-]+ += [{\[\"]|[\w-]+ = )",
        "service": r"\[hospital\]\nhost=",
        "sql": r"SELECT ",
        "grants": r"GRANT ",
        "hierarchy": r"[^;\n ]+;[^;\n]+\n[^;\n ]+;[^;\n]+\n",
        "R": r"library\(",
        "python": r"\w+Operator\(",
        "cron": r"\d+ \d+ \* \* \* ",
        "shell": r"(\([^)]+\)|[A-Z_]+=\S+|sqldeid|pip|python|\.venv/bin/python|make|cd|dbt|cp) ?",
    }
    if text.startswith(DRAWN.get(page, "\0")):
        return "drawn"
    fits = [kind for kind, begins in kinds.items() if re.match(begins, text)]
    if fits[:2] == ["toml", "service"]:
        return "service"
    assert fits, f"{page}: no test knows what this is:\n{text}"
    return fits[0]


BLOCKS = [(page, kind_of(page, text), text) for page, text in blocks()]


def of(*kinds: str) -> list[Any]:
    found = [(page, text) for page, kind, text in BLOCKS if kind in kinds]
    assert found
    return [pytest.param(page, text, id=f"{page}-{i}") for i, (page, text) in enumerate(found)]


def merged(one: Any, other: Any) -> Any:
    """Two parts of a job; what the first says stays."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return one
    return {**other, **{key: merged(value, other[key]) if key in other else value for key, value in one.items()}}


def whole(page: str, text: str) -> dict[str, Any]:
    """The job that a page's part stands for: columns and tables get what every one needs."""
    part = tomllib.loads(text)
    if part.keys().isdisjoint({"tables", "series", "events", "about", "release"}):
        table = part if {"source", "person"} & part.keys() else {"columns": part}
        part = {"tables": {"t": table}}
    part = merged(part, ROUND.get(page, {}))
    if part.keys().isdisjoint({"tables", "series", "events"}):
        part["tables"] = {"t": {}}
    for table in part.get("tables", {}).values():
        given = {"source": "main.t", "person": "id", "privacy": {"k": 5}}
        table.update({key: value for key, value in given.items() if key not in table})
        columns = table.setdefault("columns", {})
        if "quasi-identifying" not in {column.get("role") for column in columns.values()}:
            columns.setdefault("age", QI)
    return part


@pytest.mark.parametrize(("page", "text"), of("hierarchy"))
def test_a_hierarchy_that_is_shown_is_the_file_that_the_page_writes(page: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "shown.csv").write_text(text, encoding="utf-8")
    found = check("shown.csv", tmp_path)
    assert (found.problems, found.leaves) == ((), len(text.splitlines()))
    shell = "".join(inside for kind, inside in FENCED.findall((DOCS / page).read_text("utf-8")) if kind == "sh")
    written = re.findall(r"'([^';]+;[^']+)'", "".join(line for line in shell.splitlines() if "printf" in line))
    assert written == text.splitlines()


@pytest.mark.parametrize(("page", "text"), of("toml"))
def test_a_part_of_a_job_is_valid(page: str, text: str) -> None:
    if "undecided" in text:  # what an import leaves open must be decided, says the page
        with pytest.raises(sqldeid.JobError, match="undecided"):
            sqldeid.Job.parse(whole(page, text))
        text = re.sub(r"^undecided = \[.*?^\]\n", "", text, flags=re.MULTILINE | re.DOTALL)
    sqldeid.Job.parse(whole(page, text))


def test_a_part_that_is_wrong_is_seen() -> None:
    with pytest.raises(sqldeid.JobError):
        sqldeid.Job.parse(whole("any.md", "[tables.people.privacy]\nk = 5\nsuppresion = 1\n"))
    with pytest.raises(click.UsageError):
        parse(["verify", "x.duckdb", "--job", "x.toml", "--no-such"])
    with pytest.raises(AssertionError, match="no test knows"):
        kind_of("any.md", "curl http://example.org\n")


def parse(words: list[str]) -> None:
    """Have the program read a command's words, and run nothing."""
    command, context = click.Command("x"), click.Context(cli, info_name="sqldeid")
    group: click.Group = cli
    while True:
        found = group.get_command(context, words[0])
        assert found is not None, f"no command {words[0]}"
        command, words = found, words[1:]
        if not isinstance(command, click.Group):
            break
        group, context = command, click.Context(command, info_name=command.name, parent=context)
    command = copy.copy(command)  # other tests of this process run the program's own
    command.params = [copy.copy(option) for option in command.params]
    for option in command.params:  # a file that is not there yet is no fault of the page
        if isinstance(option.type, click.Path):
            option.type = click.Path()
    with command.make_context(command.name, list(words), parent=context) as made:
        assert made.params


def commands(text: str) -> Iterator[list[str]]:
    """Words of each command of a block, without settings of the environment, files of output, comments."""
    for line in text.splitlines():
        lexer = shlex.shlex(re.sub(r"^[\d*]+ [\d*]+ \* \* \* +", "", line), posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if not set(word) <= set("();<>|&"):
                words.append(word)
                continue
            words = [w for w in words if not re.match(r"[A-Z_]+=", w)]
            if words and not (len(words) == 1 and "/" in words[0]):
                yield words
            words = []


def known_to_sqldeid(rest: list[str], _: Path) -> None:
    parse([word.replace("…", "x.duckdb") for word in rest] + (["--job", "j"] if "…" in rest else []))


def known_to_python(rest: list[str], folder: Path) -> None:
    if rest[0] == "-c":
        ast.parse(rest[1])
        return
    source = (folder / rest[0]).read_text(encoding="utf-8")
    assert all(f'"{word}"' in source for word in rest if word.startswith("--")), rest
    told = "".join(file.read_text(encoding="utf-8") for file in (folder / rest[0]).parent.glob("*.py"))
    for case in (case for option, case in pairwise(rest) if option == "--only"):
        assert re.search(rf'["\s]{case}\b', told), case


def known_to_make(rest: list[str], folder: Path) -> None:
    assert re.search(rf"^{rest[0]}:", (folder / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


def known_to_pip(rest: list[str], folder: Path) -> None:
    extras = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = re.fullmatch(r"sqldeid\[(\w+)\]", rest[1])
    assert found and found[1] in extras


def known_to_nightly(rest: list[str], folder: Path) -> None:
    """Files, tasks, assets and models that Airflow, Dagster and dbt are told to run are those of the example."""
    nightly = folder / "examples" / "nightly"
    told = "".join(p.read_text() for p in nightly.glob("*.py"))
    models = {p.stem for p in nightly.glob("dbt/models/*")}
    names = [w for w in rest if w not in ("dags", "test", "asset", "materialize", "run", "build", ".", "-f")]
    for name in (n for n in names if not n.startswith("-")):
        assert (nightly / name).exists() or name in models or f"def {name}(" in told, name


def known_to_shell(rest: list[str], folder: Path) -> None:
    assert rest


KNOWN: Mapping[str, Callable[[list[str], Path], None]] = {
    "sqldeid": known_to_sqldeid,
    "python": known_to_python,
    ".venv/bin/python": known_to_python,
    "make": known_to_make,
    "pip": known_to_pip,
    **dict.fromkeys(("airflow", "dagster", "dbt"), known_to_nightly),
    **dict.fromkeys(("cp", "umask"), known_to_shell),
}


@pytest.mark.parametrize(("page", "text"), of("shell", "cron"))
def test_a_command_names_what_is_there(page: str, text: str) -> None:
    folder = ROOT
    for program, *rest in commands(text):
        if program == "cd":
            folder = ROOT / rest[0]
            assert folder.is_dir()
        elif program.startswith("/srv/release/"):  # where the page's reader put the example
            assert (ROOT / "examples" / "nightly" / Path(program).name).exists()
        else:
            KNOWN[program](rest, folder)


@pytest.mark.parametrize(("page", "text"), of("python", "sql"))
def test_a_line_of_another_program_can_be_read(page: str, text: str) -> None:
    if text.startswith("SELECT"):
        assert sqlglot.parse_one(text, read="duckdb")
    else:
        ast.parse(text)


def test_what_r_asks_of_duckdb_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R is not here; its statements are DuckDB's, and the key that it reads is the one that a file has."""
    [text] = [text for page, kind, text in BLOCKS if kind == "R"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "practice").mkdir()
    with duckdb.connect("practice_release.duckdb") as connection:
        connection.execute("CREATE TABLE census AS SELECT 1 AS age")
        connection.execute("COMMENT ON COLUMN census.age IS 'sensitive, as in the source'")
        connection.execute("COPY census TO 'practice/census.parquet' (KV_METADATA {sqldeid: '{\"sqldeid\": {}}'})")
        asked = re.findall(r'"(SELECT .*)"\)', text)
        answers = [connection.sql(query).fetchall() for query in asked]
    assert answers == [[("census", "age", "sensitive, as in the source")], [('{"sqldeid": {}}',)]]
    assert "metadata$sqldeid" in text and text.count('"practice/census.parquet"') == 1


PATIENTS = """CREATE TABLE patients AS
    SELECT i AS id, 20 + (i * 7) % 50 AS age, CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, 'ward ' || i % 4 AS ward
    FROM GENERATE_SERIES(1, 2000) AS g(i)"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", ["tutorial/own-table.md", "presets.md"])
def test_commands_for_a_table_of_ones_own_run(page: str, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "hospital.duckdb") as connection:
        connection.execute(PATIENTS)
    [text] = [text for at, kind, text in BLOCKS if at == page and kind == "shell"]
    for line in text.splitlines():
        execute(["bash", "-c", line], tmp_path)
    assert (tmp_path / "job.toml").exists()


@pytest.fixture
def postgres_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """The page's server, its service and its password file; text of the page with the address of this one."""
    [service] = [text for _, kind, text in BLOCKS if kind == "service"]
    with hospitals() as hospital:
        port = str(hospital.server.port)
        [grants] = [text for _, kind, text in BLOCKS if kind == "grants"]
        given = grants.replace("DATABASE hospital", "DATABASE postgres").replace("TO me;", "TO worker")
        hospital.run(PATIENTS, *given.splitlines())
        read = configparser.ConfigParser()
        read.read_string(service)
        assert set(read["hospital"]) == {"host", "dbname", "user", "sslmode"}
        read["hospital"].update(host="127.0.0.1", port=port, dbname="postgres", user="worker", sslmode="prefer")
        with (tmp_path / "services").open("w") as file:
            read.write(file, space_around_delimiters=False)
        page = (DOCS / "how-to" / "postgres.md").read_text(encoding="utf-8")
        [line] = re.findall(r"`(db\.example\.org:5432:hospital:me:the password)`", page)
        mended = line.replace(
            "db.example.org:5432:hospital:me:the password", f"127.0.0.1:{port}:postgres:worker:hidden-word"
        )
        (tmp_path / "pass").write_text(mended + "\n")
        (tmp_path / "pass").chmod(0o600)
        monkeypatch.delenv("PGPASSWORD", raising=False)
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
        yield lambda text: text.replace("me@db.example.org/hospital", f"worker@127.0.0.1:{port}/postgres")


@pytest.mark.deep
def test_the_commands_for_postgres_run(postgres_page: Callable[[str], str], tmp_path: Path) -> None:
    first, ledger = [text for page, kind, text in BLOCKS if page == "how-to/postgres.md" and kind == "shell"]
    for line in postgres_page(first).splitlines()[1:]:  # pip is not run
        execute(["bash", "-c", line], tmp_path)
    job = (tmp_path / "job.toml").read_text()
    (tmp_path / "job.toml").write_text(re.sub(r'^schema = "\w+"', 'schema = "nightly"', job, flags=re.MULTILINE))
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    (tmp_path / "key").chmod(0o600)
    for line in ledger.splitlines():
        execute(["bash", "-c", line], tmp_path)
    assert (tmp_path / "ledger.duckdb").exists() and (tmp_path / "policy.json").exists()
