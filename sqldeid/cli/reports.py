"""`sqldeid report`, and the pages that `anonymize` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from sqldeid.cli.files import check_found, write_json
from sqldeid.cli.options import Common, common, examples
from sqldeid.cli.targets import JSON, PAGE, write_text
from sqldeid.errors import JobError
from sqldeid.files import read_limited


@click.command(
    epilog=examples(
        "sqldeid anonymize hospital.duckdb --job job.toml --report report.html --json result.json",
        "sqldeid report result.json -o report.html",
        "sqldeid report result.json --public -o about.html",
        "sqldeid report result.json --public --about job.toml -o about.html",
    )
)
@click.argument("result_file", metavar="RESULT.json")
@click.option("-o", "--output", required=True, metavar="FILE.html", help="The page to write; - is standard output.")
@click.option("--public", is_flag=True, help="The page that may accompany the release, without a count of people.")
@click.option("--about", "job_file", metavar="JOB.toml", help="Say of itself what [about] of this job says by now.")
@common
def report(common: Common, result_file: str, output: str, public: bool, job_file: str | None) -> None:
    """Write the report of a run again, from its result; no database is opened.

    The report is for the data holder. A result of `anonymize --report` also tells what other k and limits would cost.
    Title, contact, date and text are the result's, or with --about those of the job as it is now.
    """
    if public and Path(output).suffix.casefold() in JSON:
        raise JobError(
            f"-o: {output}: a page is made from a result, so name a file that ends in .html; JSON of what may go "
            "out is written by the run: sqldeid anonymize … --public FILE.json",
            key="output",
        )
    check_found("-o", output, [result_file, *([] if job_file is None else [job_file])], kinds=PAGE)
    with _readable(result_file):
        result = read_result(Path(result_file))
    if job_file is not None:
        result = {**result, "about": _about(job_file, result)}
    with _readable(result_file):
        write_page(output, result, public=public)
    if not common.quiet:
        audience = "may accompany the release" if public else "is for the data holder"
        common.screen(output).print(f"{output} {audience}.", soft_wrap=True)


def _about(job_file: str, result: Mapping[str, object]) -> dict[str, object]:
    """What a job says of itself.

    Raises
    ------
    JobError
        If it is another job: one without the result's releases.
    """
    import sqldeid

    job = sqldeid.Job.load(job_file)
    made, named = result["releases"], {**job.tables, **job.series, **job.events}
    missing = [name for name in made if name not in named] if isinstance(made, Mapping) else []
    if missing:
        said = f"--about: {job_file} has no release {missing[0]}, which the result has; name its job"
        raise JobError(said, key="--about")
    return job.about.model_dump(exclude_none=True)


@contextmanager
def _readable(result_file: str) -> Iterator[None]:
    """Name the file; what its shape does not tell, but no page can be made of, is the file's fault as well."""
    from sqldeid.report.html import UNSHOWN

    try:
        yield
    except JobError as error:
        at = "" if result_file in error.message or error.key != "result" else f"{result_file}: "
        raise JobError(f"{at}{error.message}", key=error.key) from None
    except UNSHOWN as error:
        raise JobError(
            f"{result_file}: no page can be made of this result ({type(error).__name__}); it was changed after it was "
            "written, or is of another version: make it anew with `sqldeid anonymize --json FILE`",
            key="result",
        ) from None


def read_result(path: Path) -> Mapping[str, object]:
    """What `--json` wrote.

    Raises
    ------
    JobError
        If there is no such file, or it is something else.
    """
    try:
        found = json.loads(read_limited(path))
    except OSError as error:
        raise JobError(f"{path}: cannot be read ({error.strerror})", key="result") from None
    except (ValueError, RecursionError):
        raise JobError(f"{path}: is not JSON; `sqldeid anonymize --json FILE` writes a result", key="result") from None
    if not isinstance(found, dict) or not isinstance(found.get("releases"), dict):
        raise JobError(
            f"{path}: is not a result, which has releases; `sqldeid anonymize --json FILE` writes one", key="result"
        )
    return found


def refuse_without_charts(report_file: str | None) -> None:
    """Refuse a report before the run, not after it, where its library is missing."""
    if report_file is not None:
        from sqldeid.report.interactive import require

        require()


def write_page(target: str, result: Mapping[str, object], *, public: bool = False) -> None:
    """Write the report of a result, or the page that may accompany its releases.

    Raises
    ------
    JobError
        If the result is none, or not complete.
    """
    from sqldeid.report.page import public_page, report_page

    write_text(target, public_page(result) if public else report_page(result))


def write_public(target: str, public: Mapping[str, object]) -> None:
    """What may go with the releases: a page where the file's name says so, else JSON."""
    if target.lower().endswith((".html", ".htm")):
        write_page(target, public, public=True)
    else:
        write_json(target, public)
