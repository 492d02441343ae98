"""The end of each command's help, as a manual has it: exit codes, files and variables, what to see as well.

It is one table, so that no command is left out, and it is put to a command when that is loaded; so are the files that
completion offers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import cleandoc

import click
from click.shell_completion import CompletionItem

DATABASE = (
    "DB is a DuckDB file; a CSV or Parquet file, which is then the table of its name; or a server: "
    "postgresql://USER@HOST/DATABASE, or Spark as sc://HOST:PORT, or as spark in this process."
)
EXITS = {
    0: "done",
    1: "the database, a server, a lock, the disk, or a bug",
    2: "what you can mend: arguments, files, data that breaks a rule of the job",
    3: "no admissible solution; the nearest node is named",
    4: "verification failed, a policy or ledger lets nothing out, or there is no release to look at",
    130: "interrupted; nothing was published but what is said",
}
VARIABLES = {
    "SQLDEID_KEY": "secret key of pseudonyms and of the ledger, where --key-file is not given",
    "SQLDEID_HOUSE_RULES": "file of house rules that every job must meet",
    "PGPASSFILE": "file of Postgres' passwords, else ~/.pgpass; PGSERVICEFILE, PGPASSWORD and the like as for psql",
    "TMPDIR": "folder for spill files beside a server, where --temp-dir is not given",
    "XDG_STATE_HOME": "its sqldeid/key (else ~/.local/state/sqldeid/key) tells whether a source has changed",
    "JAVA_HOME": "the Java that Spark starts in this process",
    "NO_COLOR": "print without colour",
}
_READS = (0, 1, 2, 130)
_OF_DATA = ("PGPASSFILE", "TMPDIR", "JAVA_HOME", "NO_COLOR")


@dataclass(frozen=True, slots=True)
class Page:
    """What the end of a command's help says.

    Parameters
    ----------
    see
        Names of commands.
    exits, variables
        Keys of `EXITS` and `VARIABLES`.
    files
        What it reads and writes, beside what its options name.
    """

    see: tuple[str, ...]
    exits: tuple[int, ...] = _READS
    variables: tuple[str, ...] = ("NO_COLOR",)
    files: str = ""


_SPILL = "Spill files stand beside the database, or in --temp-dir, in a private folder that is removed."
PAGES = {
    "anonymize": Page(
        ("verify", "assess", "evidence", "report"),
        (0, 1, 2, 3, 4, 130),
        tuple(VARIABLES),
        f"Releases go where release.into of the job says: all of them at once, or none. {_SPILL}",
    ),
    "assess": Page(("anonymize", "explore"), (*_READS[:-1], 4, 130), _OF_DATA, f"Nothing is written. {_SPILL}"),
    "completion": Page(("doctor",), files="Prints a script; nothing is written."),
    "demo": Page(("anonymize", "init"), files="Writes the database, and its job file beside it."),
    "demo adult": Page(("anonymize",), files="Writes DB, and DB's job file beside it."),
    "demo eicu": Page(("init", "anonymize"), files="Writes DB; no job file, which init writes."),
    "demo events": Page(("anonymize",), files="Writes DB, and DB's job file beside it."),
    "demo mimic": Page(("anonymize",), files="Writes DB, and DB's job file beside it."),
    "demo mimiciv": Page(("init", "anonymize"), files="Writes DB; no job file, which init writes."),
    "demo omop": Page(("init", "anonymize"), files="Writes DB; no job file, which init writes."),
    "doctor": Page(
        ("completion",),
        variables=tuple(VARIABLES),
        files="Only files of a moment are written, to see whether they can be.",
    ),
    "evaluate": Page(("anonymize", "tradeoff"), (0, 1, 2, 3, 130), _OF_DATA, f"Nothing is published. {_SPILL}"),
    "evidence": Page(
        ("anonymize", "verify", "report"), (*_READS[:-1], 4, 130), files="Reads and writes only what its options name."
    ),
    "explore": Page(("init", "assess"), variables=_OF_DATA, files=f"Nothing is written. {_SPILL}"),
    "hierarchy": Page(("init",), files="A hierarchy is a CSV file (original;level1;...;top), or has a shipped name."),
    "hierarchy build": Page(("hierarchy check", "hierarchy show"), files="Writes the hierarchy that -o names."),
    "hierarchy check": Page(("hierarchy show", "hierarchy build"), files="Nothing is written."),
    "hierarchy list": Page(("hierarchy show",), files="Nothing is written."),
    "hierarchy show": Page(("hierarchy list", "hierarchy check", "hierarchy build"), files="Nothing is written."),
    "import-arx": Page(("anonymize",), files="Writes the job that -o names, and data and hierarchies beside it."),
    "init": Page(
        ("anonymize", "explore", "hierarchy"), variables=_OF_DATA, files=f"Writes the job that -o names. {_SPILL}"
    ),
    "privacy": Page(("anonymize",), files="No database is read."),
    "privacy plan": Page(("anonymize", "tradeoff"), files="No database is read."),
    "privacy shifts": Page(("anonymize", "privacy plan"), files="No database is read."),
    "report": Page(("anonymize", "evidence"), files="Reads the result; no database is opened."),
    "schema": Page(("init",), files="Nothing is read or written."),
    "tradeoff": Page(
        ("anonymize", "evaluate"),
        variables=("SQLDEID_HOUSE_RULES", *_OF_DATA),
        files=f"Nothing is published. {_SPILL}",
    ),
    "verify": Page(
        ("anonymize", "assess", "evidence"), (*_READS[:-1], 4, 130), tuple(VARIABLES), f"Nothing is written. {_SPILL}"
    ),
}
"""By command: the end of its help."""

_FILE = re.compile(r"\[?(DB|[A-Z-]*FILE[A-Z-]*|RESULT)(\.\w+)?\]?")


class FileName(click.types.StringParamType):
    """Text that names a file, so that completion offers files; it is not looked at here."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="file")]


def completed(command: click.Command, name: str) -> click.Command:
    """The command with the end of its help, and files where its arguments name them; and all commands in it."""
    if opens(command) and DATABASE not in (command.help or ""):
        command.help = f"{cleandoc(command.help or '')}\n\n{DATABASE}"
    end = _end(PAGES[name])
    if not (command.epilog or "").endswith(end):
        command.epilog = "\n\n".join(part for part in (command.epilog, end) if part)
    for param in command.params:
        named = param.metavar or ""
        if type(param.type) is click.types.StringParamType and _FILE.fullmatch(named):
            param.type = FileName()
    for inner, other in getattr(command, "commands", {}).items():
        completed(other, f"{name} {inner}")
    return command


def opens(command: click.Command) -> bool:
    """Whether the command takes a database; a demo makes one, which is no server."""
    return any(
        param.name in ("database", "source") and (param.metavar or "").strip("[]") == "DB" for param in command.params
    )


def _end(page: Page) -> str:
    exits = [f"  {code:<3}  {EXITS[code]}" for code in page.exits]
    variables = [f"  {name}: {VARIABLES[name]}" for name in page.variables]
    files = f"\n\nFiles: {page.files}" if page.files else ""
    see = ", ".join(f"sqldeid {name}" for name in page.see)
    return (
        "\b\nExit codes:\n"
        + "\n".join(exits)
        + files
        + "\n\n\b\nEnvironment:\n"
        + "\n".join(variables)
        + f"\n\nSee also: {see}"
    )
