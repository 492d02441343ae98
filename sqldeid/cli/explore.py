"""`sqldeid explore`: uniqueness before anything is released."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import sqldeid
from sqldeid.cli.files import is_ours, refuse_over_key, refuse_over_others, refuse_over_result, write_json
from sqldeid.cli.options import Common, common, examples
from sqldeid.cli.plots import check_plot, write_plot
from sqldeid.cli.targets import JSON, check_output, is_stdout, refuse_kind
from sqldeid.errors import JobError
from sqldeid.files import read_limited
from sqldeid.report.explored import (
    draw_explored,
    draw_sequences,
    draw_text,
    print_explored,
    print_sequences,
    print_text,
)
from sqldeid.report.text import put
from sqldeid.result import HOLDER

if TYPE_CHECKING:
    from sqldeid.findings import Explored, ExploredSequences, ExploredText

_MODES = {"--per": "sequences of a child table", "--text": "free text"}


def _options(run: Callable[..., None]) -> Callable[..., None]:
    """What is looked at, in the order of the help."""
    for option in reversed(
        (
            click.option("--table", metavar="T", help="The table, as schema.table."),
            click.option("--job", "job_file", metavar="FILE", help="Or a job: its table's columns, stacks and filter."),
            click.option(
                "--only", multiple=True, metavar="NAME", help="With --job: the release, where it has several."
            ),
            click.option("--person", metavar="C", help="Column whose values are persons, where rows share one."),
            click.option(
                "--columns", multiple=True, metavar="A,B,…", help="A set of columns; may be given more than once."
            ),
            click.option(
                "--max-size", type=click.IntRange(1), metavar="N", help="Try all sets of up to N columns (3)."
            ),
            click.option("--borders", is_flag=True, help="Seek the smallest sets that single out enough, of any size."),
            click.option(
                "--enough",
                type=click.FloatRange(0, 1, min_open=True),
                default=0.5,
                show_default=True,
                metavar="SHARE",
                help="Share of persons singled out from which larger sets are not tried.",
            ),
            click.option("--per", metavar="A,B,…", help="Look at sequences: columns that say whose item a row is."),
            click.option("--value", metavar="C", help="With --per: the item."),
            click.option("--order", metavar="A,B,…", help="With --per: columns that order the items."),
            click.option("--places", multiple=True, metavar="1,5", help="With --per: places of the known items."),
            click.option(
                "--unordered", multiple=True, metavar="1,2,3", help="With --per: the same, without their order."
            ),
            click.option("--text", metavar="C", help="Look at a column of free text."),
            click.option("--first", metavar="10,20,40", help="With --text: numbers of characters from the beginning."),
            click.option(
                "--keywords", metavar="FILE", help='With --text: groups of words, as TOML: age = ["year old"].'
            ),
            click.option("--json", "json_file", metavar="FILE", help="Write what was found; - is standard output."),
            click.option("--plot", metavar="FILE", help="Draw it, as .png or .svg."),
        )
    ):
        run = option(run)
    return run


@click.command(
    epilog=examples(
        "sqldeid explore hospital.duckdb --table main.patients",
        "sqldeid explore hospital.duckdb --table main.patients --columns age,sex,zip --plot risk.png",
        "sqldeid explore hospital.duckdb --job job.toml --columns age,sex,procedure_1,procedure_2,procedure_3",
        "sqldeid explore hospital.duckdb --table main.stays --person patient_id --borders --enough 0.2",
        "sqldeid explore hospital.duckdb --table main.procedures --per admission_id --value code --order seq",
        "sqldeid explore hospital.duckdb --table main.notes --text note --person patient_id --first 20",
    )
)
@click.argument("database", metavar="DB")
@_options
@common
def explore(common: Common, database: str, json_file: str | None, plot: str | None, **asked: Any) -> None:
    """Count how many persons sets of columns, sequences or texts single out. Nothing is written to DB.

    Without --columns all sets of up to three columns are tried, but for those that hold a set which already singles out
    --enough of the persons. With --job these are sets of its quasi-identifying columns. No data value is printed.
    """
    _refuse_mixed(asked)
    table = _place(asked)
    _check_files(json_file, plot, database)
    if table is None and _without_tables(asked):
        return _say_nothing(common, json_file, plot)
    show: tuple[Callable[..., None], Callable[..., Any]]
    found: Explored | ExploredSequences | ExploredText
    if asked["per"] is not None:
        found, show = _sequences(common, database, str(table), asked), (print_sequences, draw_sequences)
    elif asked["text"] is not None:
        found, show = _text(common, database, str(table), asked), (print_text, draw_text)
    else:
        found, show = _columns(common, database, table, asked), (print_explored, draw_explored)
    if json_file is not None:
        write_json(json_file, {"audience": HOLDER, "explored": found.to_dict()})
    if plot is not None:
        write_plot("--plot", plot, show[1](found))
    if not common.quiet:
        show[0](found, common.screen(json_file), verbose=common.verbose)


def _place(asked: Mapping[str, Any]) -> str | None:
    """The table that is looked at; None where a job says it."""
    table: str | None = asked["table"]
    if asked["job_file"] is None:
        if asked["only"]:
            raise JobError("--only belongs to --job; leave it out, or add --job", key="--only")
        if table is None:
            raise JobError("--table is missing: name the table, or give a job with --job", key="--table")
        return table
    for name in ("table", "person", *(mode.removeprefix("--") for mode in _MODES)):
        if asked[name] is not None:
            told = "the job says it" if name in ("table", "person") else "a job has columns alone"
            raise JobError(f"--{name} does not go with --job: {told}; leave one of them out", key=f"--{name}")
    return None


def _without_tables(asked: Mapping[str, Any]) -> bool:
    """Whether the job has series or events alone; releases that it does not have are refused as ever."""
    job = sqldeid.Job.load(asked["job_file"])
    return not job.tables and all(name in job.series or name in job.events for name in asked["only"])


def _say_nothing(common: Common, json_file: str | None, plot: str | None) -> None:
    if json_file is not None:
        write_json(json_file, {"audience": HOLDER, "explored": None})
    if not common.quiet:
        unwritten = "" if plot is None else f"; {plot} was not written"
        text = "of a job these are the columns of a table release, and this job has none; name a table with --table"
        put(common.screen(json_file), f"Nothing to explore: {text}{unwritten}")


def _columns(common: Common, database: str, table: str | None, asked: Mapping[str, Any]) -> Explored:
    sets = [_names("--columns", text) for text in asked["columns"]]
    how = {name: asked[name] for name in ("max_size", "borders", "enough")}
    if table is None:
        job = sqldeid.Job.load(asked["job_file"])
        options = sqldeid.Options(only=asked["only"], settings=common.settings)
        return sqldeid.explore_job(job, database, columns=sets, options=options, **how)
    return sqldeid.explore(database, table, columns=sets, person=asked["person"], settings=common.settings, **how)


def _sequences(common: Common, database: str, table: str, asked: Mapping[str, Any]) -> ExploredSequences:
    if asked["value"] is None or asked["order"] is None:
        raise JobError("--per needs --value, the item, and --order, the columns that order the items", key="--per")
    return sqldeid.explore_sequences(
        database,
        table,
        per=_names("--per", asked["per"]),
        value=asked["value"],
        order=_names("--order", asked["order"]),
        places=[_numbers("--places", text) for text in asked["places"]],
        unordered=[_numbers("--unordered", text) for text in asked["unordered"]],
        person=asked["person"],
        settings=common.settings,
    )


def _text(common: Common, database: str, table: str, asked: Mapping[str, Any]) -> ExploredText:
    given = {} if asked["first"] is None else {"first": _numbers("--first", asked["first"])}
    return sqldeid.explore_text(
        database,
        table,
        asked["text"],
        keywords=None if asked["keywords"] is None else _read_keywords(Path(asked["keywords"])),
        person=asked["person"],
        settings=common.settings,
        **given,
    )


def _refuse_mixed(asked: Mapping[str, Any]) -> None:
    """An option of one way to look, given with another, would be ignored."""
    belongs = {
        "--per": ("value", "order", "places", "unordered"),
        "--text": ("first", "keywords"),
        "": ("columns", "max_size", "borders"),
    }
    modes = [mode for mode in _MODES if asked[mode.removeprefix("--")] is not None]
    if len(modes) > 1:
        raise JobError("--per and --text look at different things; give one of them", key="--text")
    mode = modes[0] if modes else ""
    for other, names in belongs.items():
        for name in names:
            if other != mode and asked[name]:
                option = "--" + name.replace("_", "-")
                needs = f"belongs to {other}" if other else f"is of columns, not of {_MODES[mode]}"
                raise JobError(
                    f"{option} {needs}; leave it out, or {'add' if other else 'drop'} {other or mode}", key=option
                )


def _check_files(json_file: str | None, plot: str | None, database: str) -> None:
    refuse_kind("--json", json_file, JSON)
    for option, file in (("--json", json_file), ("--plot", plot)):
        if file is None or is_stdout(file):
            continue
        if option == "--json":
            check_output(option, file)
            refuse_over_result(option, file)
            refuse_over_key(option, file)
            refuse_over_others(option, file, "JSON", is_ours)
        if Path(file).exists() and Path(database).exists() and Path(file).samefile(database):
            raise JobError.at(option, f"{file} is what is looked at; name another file")
    check_plot("--plot", plot)
    if json_file is not None and plot is not None and Path(json_file).absolute() == Path(plot).absolute():
        raise JobError("--json and --plot name one file; give each its own", key="--plot")


def _names(option: str, text: str) -> list[str]:
    """Names between commas; one that holds a comma stands in double quotes."""
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True, strict=True), [])]
    except csv.Error:
        names = []
    if not names or not all(names):
        raise JobError.at(option, "names are missing; write them with commas between: age,sex,zip")
    return names


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise JobError.at(option, "write whole numbers with commas between: 1,2,3") from None


def _read_keywords(path: Path) -> Mapping[str, Sequence[str]]:
    """Groups of keywords from a TOML file."""
    try:
        found = tomllib.loads(read_limited(path, 1 << 24).decode())
    except OSError as error:
        raise JobError.at("--keywords", f"{path} cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise JobError.at("--keywords", f"{path} is not TOML") from None
    for group, words in found.items():
        if not (isinstance(words, list) and words and all(isinstance(w, str) for w in words)):
            raise JobError.at("--keywords", f'{path}: {group} must be a list of texts: {group} = ["…"]')
    return found
