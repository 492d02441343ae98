"""`sqldeid evidence`: what a run rests on, in one archive for whoever must judge it, and its check later."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sqldeid.cli.options import Common, common, examples
from sqldeid.cli.targets import check_output, is_stream, refuse_kind, write_bytes
from sqldeid.errors import JobError
from sqldeid.report.text import facts, plain, print_table, put

if TYPE_CHECKING:
    from sqldeid.evidence import Given

_FILE = click.Path(path_type=Path)
_ZIP = frozenset({".zip"})


@click.command(
    epilog=examples(
        "sqldeid evidence result.json -o evidence.zip --job job.toml --certificate proof.json --release out.duckdb",
        "sqldeid evidence --check evidence.zip --release out.duckdb",
        "sqldeid evidence --check evidence.zip --sha256 0123…",
    )
)
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("-o", "--output", metavar="FILE.zip", help="The archive to write.")
@click.option(
    "--check", is_flag=True, help="Check the archive FILE instead: its members, and the files that are given."
)
@click.option("--job", type=_FILE, metavar="FILE", help="The job of the run: taken in, with hashes of its hierarchies.")
@click.option(
    "--house-rules",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="House rules that the run was held to: taken in; may be given again.",
)
@click.option("--certificate", type=_FILE, metavar="FILE", help="The certificate that the run wrote: taken in.")
@click.option(
    "--release",
    "releases",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="A file, or folder of files, that the run wrote: by its hash; may be given again.",
)
@click.option("--result", type=_FILE, metavar="FILE", help="With --check: the result that it was made of.")
@click.option("--sha256", metavar="HEX", help="With --check: the SHA-256 that was printed when it was made.")
@common
def evidence(
    common: Common,
    file: Path,
    output: str | None,
    check: bool,
    job: Path | None,
    house_rules: tuple[Path, ...],
    certificate: Path | None,
    releases: tuple[Path, ...],
    result: Path | None,
    sha256: str | None,
) -> None:
    """Gather what a run rests on in an archive for whoever must judge it, or check one.

    FILE is the result that `anonymize --json` wrote. The archive holds the findings, hashes of job, house rules,
    hierarchies and released files, and a text (Markdown and HTML) under the headings of HIPAA's expert determination,
    EMA Policy 0070 and ISO/IEC 27559. It claims nothing: what the program cannot know is left open and marked. It is
    for the data holder. No database is opened. With --check, exit code 4 if anything is not what it was.
    """
    from sqldeid.evidence import Given

    given = Given(job, certificate, house_rules, releases)
    if check:
        _refuse(output is not None, "-o", "goes with making evidence, not with --check; remove it")
        _check(common, file, given, result, sha256)
        return
    _refuse(result is not None, "--result", "goes with --check; FILE is the result")
    _refuse(sha256 is not None, "--sha256", "goes with --check; remove it")
    if output is None:
        raise JobError.at("-o", "is missing; name the archive to write, such as evidence.zip")
    _make(common, file, given, output)


def _refuse(wrong: bool, option: str, text: str) -> None:
    if wrong:
        raise JobError.at(option, text)


def _make(common: Common, file: Path, given: Given, output: str) -> None:
    from sqldeid.evidence import make

    refuse_kind("-o", output, _ZIP)
    check_output("-o", output)
    if is_stream(output):
        raise JobError.at("-o", "name a file; an archive is not printed")
    reads = [file, *(f for f in (given.job, given.certificate) if f), *given.house_rules, *given.releases]
    for read in reads:
        inside = read.is_dir() and Path(output).resolve().is_relative_to(read.resolve())
        if inside or read.resolve() == Path(output).resolve():
            raise JobError.at("-o", f"{output} is, or lies in, what the evidence is made of; name another file")
    made = make(file, given)
    write_bytes(output, made.archive)
    if common.quiet:
        return
    screen = common.screen()
    put(screen, f"{plain(output)} is for the data holder only.")
    open_ = f"{made.still_open} places of its text are left to you, and marked"
    screen.print()
    screen.print(f"  SHA-256  {made.sha256}", soft_wrap=True)
    screen.print(f"  Open     {open_}", soft_wrap=True)
    screen.print()
    put(screen, "Note the SHA-256 where nobody who may change the archive can change it: only that tells later.")


def _check(common: Common, file: Path, given: Given, result: Path | None, expected: str | None) -> None:
    from sqldeid.evidence import check

    if expected is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", expected):
        raise JobError.at("--sha256", "must be 64 hexadecimal digits, as they were printed")
    found = check(file, given, result=result, expected=expected)
    if common.quiet:
        return
    screen = common.screen()
    put(screen, f"{plain(file)} is whole: every member is what its manifest says.")
    screen.print()
    screen.print(f"  SHA-256  {found.sha256}{'' if expected is None else ' (as given)'}", soft_wrap=True)
    rows: list[tuple[str, object]] = [("Texts", "as its findings give them")]
    rows.append(("Same as given", ", ".join(map(plain, found.compared)) or "nothing was given to compare"))
    if found.not_compared:
        rows.append(("Not compared", ", ".join(map(plain, found.not_compared))))
    print_table(facts(rows), screen)
    if expected is None:
        screen.print()
        put(screen, "Compare the SHA-256 with the one that was noted when it was made, or give it as --sha256.")
