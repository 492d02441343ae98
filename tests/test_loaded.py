"""What the program loads: each command what it uses, and the help next to nothing."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from sqldeid import tables
from sqldeid.cli.app import COMMANDS, cli
from tests.support.places import ROOT

MOST = 247
"""Modules of ours that a release takes; one more is a reason to ask who imports it, and whether it is used."""
AFTER = """
import atexit, sys
atexit.register(lambda: sys.stderr.write("LOADED " + " ".join(sys.modules)))
from sqldeid.cli import main
main()
"""


def loaded(*arguments: str, folder: Path) -> set[str]:
    """The modules that a command has loaded when it ends."""
    done = subprocess.run([sys.executable, "-c", AFTER, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.partition("LOADED ")[2].split())


def of_ours(modules: set[str]) -> set[str]:
    return {m for m in modules if m.partition(".")[0] == "sqldeid"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("loaded")
    loaded("demo", "adult", "db.duckdb", "--rows", "300", folder=made)
    return made


def test_help_loads_no_command_and_no_library_but_click(folder):
    modules = loaded("--help", folder=folder)
    assert not modules & {"duckdb", "jinja2", "numpy", "pandas", "pyarrow", "pydantic", "rich", "sqlglot"}
    assert len(of_ours(modules)) <= 12, sorted(of_ours(modules))


@pytest.mark.deep
def test_anonymize_loads_neither_pandas_nor_other_wings(folder):
    modules = loaded("anonymize", "db.duckdb", "--job", "db.job.toml", folder=folder)
    assert not modules & {"dateutil", "matplotlib", "pandas", "plotly", "psycopg", "pyspark", "rich.progress", "scipy"}
    assert not modules & {"sqldeid.series", "sqldeid.events", "sqldeid.insight", "sqldeid.demo", "sqldeid.mondrian"}
    assert len(of_ours(modules)) <= MOST, sorted(of_ours(modules))


def test_parameters_are_reckoned_without_database_job_or_engine(folder):
    modules = loaded("privacy", "plan", "--k", "5", folder=folder)
    assert not modules & {"duckdb", "pandas", "pyarrow", "pydantic", "scipy.stats", "sqldeid.tables.plan", "sqlglot"}


def test_no_name_of_the_wing_of_tables_is_that_of_a_room():
    rooms = {path.stem for path in (ROOT / "sqldeid" / "tables").iterdir()}
    assert not rooms & set(tables.__all__)
    assert all(hasattr(tables, name) for name in tables.__all__)


def test_arrow_makes_a_data_frame_where_it_was_kept_from_looking_for_pandas():
    code = "import sys; from sqldeid.cli.unloaded import without_pandas; without_pandas(); import pyarrow as pa; "
    code += "made = pa.table({'a': pa.array([1, None])}); assert 'pandas' not in sys.modules; "
    code += "import pandas; assert made.to_pandas()['a'].isna().sum() == 1; "
    code += "assert len(pa.array(pandas.Series([1]))) == 1"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_line_of_the_help_is_the_first_sentence_of_its_command():
    context = click.Context(cli)
    for name, (_, line) in COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(200) == click.Command(name, help=line).get_short_help_str(200)
        assert " ".join((command.help or "").split()).startswith(line.removesuffix("."))
    assert list(COMMANDS) == sorted(COMMANDS)
