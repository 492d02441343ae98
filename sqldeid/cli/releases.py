"""`sqldeid anonymize`, `assess` and `verify`: a database and a job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

import sqldeid
from sqldeid.cli.failures import PUBLISHED, WRITTEN, say
from sqldeid.cli.files import check_outputs, read_certificates, write_json
from sqldeid.cli.options import Common, common, examples
from sqldeid.cli.policies import earlier, ledger_files
from sqldeid.cli.policies import house_rules as house_rules_option
from sqldeid.cli.policies import ledger as ledger_option
from sqldeid.cli.reports import refuse_without_charts, write_page, write_public
from sqldeid.cli.streams import reader_left
from sqldeid.engine.choosing import again
from sqldeid.report.progress import Progress
from sqldeid.report.terminal import print_result, print_risk, print_rules, print_verified, print_warnings
from sqldeid.report.text import console, put
from sqldeid.result import HOLDER, Told

if TYPE_CHECKING:
    from sqldeid.run import Proven, ProvenBound, Verified

_TABLES_ALONE = "only table releases have classes of rows and a lattice, and this job selects none"
_DATABASE = click.argument("database", metavar="DB")
_JOB = click.option("--job", "job_file", required=True, metavar="FILE", help="The job file (TOML).")
_ONLY = click.option("--only", multiple=True, metavar="NAME", help="Only this release; may be given more than once.")
_KEY = click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Secret key of pseudonyms, in hexadecimal digits; absent: the environment variable SQLDEID_KEY.",
)
_JSON = click.option("--json", "json_file", metavar="FILE", help="Write the result as JSON; - is standard output.")


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that `anonymize` writes beside the releases."""

    json: str | None
    public: str | None
    certificate: str | None
    report: str | None

    @property
    def by_option(self) -> dict[str, str | None]:
        """Option → file."""
        return {f"--{name}": file for name, file in asdict(self).items()}


def _given(run: Callable[..., None]) -> Callable[..., None]:
    """The arguments that the three commands share."""
    for option in (_JSON, _ONLY, _JOB, _DATABASE):
        run = option(run)
    return run


@click.command(
    epilog=examples(
        "sqldeid anonymize hospital.duckdb --job job.toml --plan",
        "sqldeid anonymize hospital.duckdb --job job.toml",
        "sqldeid anonymize hospital.duckdb --job job.toml --only patients --replace",
        "sqldeid anonymize people.csv --job job.toml --json result.json --public public.json",
        "sqldeid anonymize postgresql://me@db.example.org/hospital --job job.toml --replace",
        "sqldeid anonymize people.csv --job job.toml --certificate proof.json",
        "sqldeid anonymize hospital.duckdb --job job.toml --report report.html",
        "sqldeid anonymize hospital.duckdb --job job.toml --policy result.json --replace",
        "sqldeid anonymize hospital.duckdb --job job.toml --policy result.json --ledger ledger.duckdb --replace",
        "sqldeid anonymize hospital.duckdb --job job.toml --house-rules rules.toml --json result.json",
    )
)
@_given
@click.option("--plan", is_flag=True, help="Print what would be done; nothing is read or written.")
@click.option("--replace", is_flag=True, help="Allow releases that sqldeid made before to be replaced.")
@click.option(
    "--public",
    "public_file",
    metavar="FILE",
    help="Write what may be published with the release: a page if FILE ends in .html, else JSON.",
)
@click.option("--certificate", "certificate_file", metavar="FILE", help="Write the proof that no node loses less.")
@click.option("--report", "report_file", metavar="FILE.html", help="Write a report for the data holder's board.")
@_KEY
@house_rules_option
@earlier
@common
def anonymize(
    common: Common,
    database: str,
    job_file: str,
    only: tuple[str, ...],
    json_file: str | None,
    plan: bool,
    replace: bool,
    public_file: str | None,
    certificate_file: str | None,
    report_file: str | None,
    key_file: Path | None,
    house_rules: Path | None,
    policy: Path | None,
    ledger: Path | None,
    without_ledger: bool,
    new_persons: bool,
    new_values: tuple[str, ...],
) -> None:
    """Make the releases of a job: all of them, verified, or none.

    The summary, --json, --report and --certificate are for the data holder: they count suppressed people. What may go
    with the release is written by --public, as a page if the file's name ends in .html.
    """
    with _unpublished():
        job = sqldeid.Job.load(job_file)
        outputs = Outputs(json_file, public_file, certificate_file, report_file)
        refuse_without_charts(report_file)
        reads = [*(str(file) for file in (policy, house_rules, key_file) if file is not None), *ledger_files(ledger)]
        check_outputs(outputs.by_option, job, database, reads, results=not plan)
        options = sqldeid.Options(
            only=only,
            replace=replace,
            certificate=certificate_file is not None,
            explain=report_file is not None,
            settings=common.settings,
            key_file=key_file,
            policy=policy,
            ledger=ledger,
            without_ledger=without_ledger,
            new_persons=new_persons,
            new_values=new_values,
            house_rules=house_rules,
        )
    if plan:
        _refuse_earlier(options)
        _plan(common, job, database, options, json_file)
        return
    given = {"--only": only, "--key-file": _paths(key_file), "--ledger": _paths(ledger)}
    given["--house-rules"] = _paths(house_rules)
    _run(common, job, database, options, outputs, given)


def _run(
    common: Common,
    job: sqldeid.Job,
    database: str,
    options: sqldeid.Options,
    outputs: Outputs,
    given: Mapping[str, tuple[str, ...]],
) -> None:
    """Make the releases, write what was asked for, and print the summary."""
    made: list[sqldeid.Result] = []
    try:
        with _progress(common) as progress:
            listener = sqldeid.Listener(progress.step, progress.search)
            made.append(sqldeid.anonymize(job, database, options=options, listener=listener))
        result = _write_outputs(made[0], outputs)
        with _published(key="--json"):
            if not common.quiet:
                screen, named, file = common.screen(*outputs.by_option.values()), again(database), str(job.path)
                print_result(result, screen, database=named, job=file, verbose=common.verbose, given=given)
            if reader_left():
                say(_LEFT)
    except KeyboardInterrupt:  # between what tells of itself
        raise sqldeid.Interrupted(f"interrupted; {'the releases were' if made else 'nothing was'} published") from None


_LEFT = "Note: what reads standard output has left before the end; the releases were published"


def _refuse_earlier(options: sqldeid.Options) -> None:
    if options.policy is not None or options.ledger is not None:
        raise sqldeid.JobError("--plan shows what a search would do; leave --policy and --ledger out", key="--plan")


def _paths(file: Path | None) -> tuple[str, ...]:
    return () if file is None else (str(file),)


def _write_outputs(result: sqldeid.Result, to: Outputs) -> sqldeid.Result:
    """Write what was asked for; the result, which names its certificate."""
    with _published():
        if to.certificate is not None:
            result = _certified(result, to.certificate)
        if to.json is not None:
            write_json(to.json, result.to_dict())
    with _published(key="--json"):
        if to.public is not None:
            write_public(to.public, result.to_public())
        if to.report is not None:
            write_page(to.report, result.to_dict())
    return result


@contextmanager
def _unpublished() -> Iterator[None]:
    """What is stopped here is stopped before anything was done; from there on the library tells."""
    try:
        yield
    except KeyboardInterrupt:
        raise sqldeid.Interrupted("interrupted; nothing was published") from None


@contextmanager
def _published(key: str = "") -> Iterator[None]:
    """What fails from now on fails after the releases were published, and must say so.

    Parameters
    ----------
    key
        `--json` where the result stands in that file already and no failure may take its place.
    """
    try:
        yield
    except sqldeid.Interrupted:
        raise sqldeid.Interrupted("interrupted; the releases were published", key=key) from None
    except sqldeid.SqldeidError as error:
        raise sqldeid.EngineError(f"{error.message}; the releases were published", key=key or error.key) from None
    except KeyboardInterrupt:
        raise sqldeid.Interrupted("interrupted; the releases were published", key=key) from None
    except click.exceptions.Exit:
        raise
    except BrokenPipeError:  # of a pipe that an option names; standard output takes care of itself
        say(_LEFT)
        raise click.exceptions.Exit(0) from None
    except Exception as error:
        error.add_note(PUBLISHED)
        if key:
            error.add_note(WRITTEN)
        raise


def _certified(result: sqldeid.Result, target: str) -> sqldeid.Result:
    """Write the certificates; the result, which names the file."""
    given = {name: getattr(release, "certificate", None) for name, release in result.releases.items()}
    proofs = {name: proof for name, proof in given.items() if proof}
    if not result.tables and not proofs:
        say(f"Note: {target} was not written: {_TABLES_ALONE}")
        return result
    write_json(target, {"audience": HOLDER, "certificates": proofs})
    named = {
        name: replace(release, search=_naming(release.search, target)) if name in proofs else release
        for name, release in result.releases.items()
    }
    return replace(result, releases=named)


def _naming(search: Any, target: str) -> Any:
    """How a release was searched, with the file of its certificate."""
    if isinstance(search, Mapping):
        return {**search, "certificate": target}
    return replace(search, certificate=target)


def _plan(common: Common, job: sqldeid.Job, database: str, options: sqldeid.Options, json_file: str | None) -> None:
    from sqldeid.cli.plans import plan_dict, print_plans

    planned = sqldeid.plan(job, database, options=options)
    plans = {p.name: told for p, told in zip(planned, planned.explained, strict=True)}
    if json_file is not None:
        found = {name: plan_dict(told, options) for name, told in plans.items()}
        write_json(json_file, {"plan": found, "warnings": job.warnings()})
    if not common.quiet:
        screen = common.screen(json_file)
        print_plans(plans, job, database, screen, options, verbose=common.verbose)


@click.command(
    epilog=examples(
        "sqldeid assess hospital.duckdb --job job.toml",
        "sqldeid assess hospital.duckdb --job job.toml --release --json risk.json",
    )
)
@_given
@click.option("--release", is_flag=True, help="Look at what was released instead of the source.")
@common
def assess(
    common: Common, database: str, job_file: str, only: tuple[str, ...], json_file: str | None, release: bool
) -> None:
    """Count class sizes and re-identification risk of the source, or of what was released.

    Classes are those of the quasi-identifying columns that the job names.
    """
    job = sqldeid.Job.load(job_file)
    check_outputs({"--json": json_file}, job, database)
    with _progress(common):
        found = sqldeid.assess(job, database, release=release, options=_options(common, only))
    beside = list(_of_items(job, found, released=release))
    if json_file is not None:
        told = {"warnings": beside} if beside else {}
        of = "release" if release else "source"
        _write(json_file, {name: asdict(risk) for name, risk in found.items()}, of=of, **told)
    if not common.quiet:
        screen = common.screen(json_file)
        print_risk(found, screen, released=release) if found else put(screen, f"Nothing to assess: {_TABLES_ALONE}")
        print_warnings(beside, screen)


def _of_items(job: sqldeid.Job, found: Collection[str], *, released: bool) -> Iterator[str]:
    """What an assessment of parents does not count: the items of their child tables, which others may know as well."""
    for name, table in job.tables.items():
        if table.parent in found:
            counted = f": of the release they are {table.privacy.k} or more, or none" if released else ""
            yield (
                f"tables.{name}: is a child table, and is not assessed: whoever knows {table.known} of a person's "
                f"items beside the columns of {table.parent} may find fewer persons than its classes have{counted}"
            )


@click.command(
    epilog=examples(
        "sqldeid verify hospital.duckdb --job job.toml",
        "sqldeid verify hospital.duckdb --job job.toml --only patients --json -",
        "sqldeid verify hospital.duckdb --job job.toml --certificate proof.json",
        "sqldeid verify hospital.duckdb --job job.toml --house-rules rules.toml",
    )
)
@_given
@click.option("--certificate", "certificate_file", metavar="FILE", help="Check this proof of the release's node, too.")
@_KEY
@house_rules_option
@ledger_option
@common
def verify(
    common: Common,
    database: str,
    job_file: str,
    only: tuple[str, ...],
    json_file: str | None,
    certificate_file: str | None,
    key_file: Path | None,
    house_rules: Path | None,
    ledger: Path | None,
) -> None:
    """Check published releases again, against job and source, and with SQL that shares nothing with the search.

    With --certificate also the proof that no node loses less than the released one; no number in the file is
    trusted. Exit code 4 if a release is not there or not what it must be, or if its certificate does not hold.
    """
    job = sqldeid.Job.load(job_file)
    reads = [
        *([certificate_file] if certificate_file else []),
        *map(str, filter(None, (house_rules, key_file))),
        *ledger_files(ledger),
    ]
    check_outputs({"--json": json_file}, job, database, reads)
    certificates = read_certificates(Path(certificate_file)) if certificate_file else None
    proven: dict[str, Proven | ProvenBound] = {}
    with _progress(common):
        options = replace(_options(common, only, key_file, ledger), house_rules=house_rules)
        found = sqldeid.verify(job, database, options=options)
        if certificates is not None:
            proven = sqldeid.verify_certificates(job, database, certificates, options=_options(common, only))
    _refuse_other_nodes(found, proven)
    if json_file is not None:
        proofs = {name: {"certificate": asdict(p)} for name, p in proven.items()}
        checked = {name: {**asdict(cast(Any, v)), **proofs.get(name, {})} for name, v in found.items()}
        joinable = [pair.to_dict() for pair in found.joinable]
        more: dict[str, object] = {"joinable": joinable} if joinable else {}
        if found.warnings:
            more["warnings"] = found.warnings
        if found.house_rules:
            more["house_rules"] = found.house_rules
        _write(json_file, checked, **more)
    if not common.quiet:
        print_verified(found, common.screen(json_file), proven)
        if certificates is not None and not proven:
            put(common.screen(json_file), f"No certificate to check: {_TABLES_ALONE}")
        print_rules(found.house_rules, common.screen(json_file))
        print_warnings(found.warnings, common.screen(json_file))


def _refuse_other_nodes(found: Mapping[str, Verified | Told], proven: Mapping[str, Proven | ProvenBound]) -> None:
    """A proof of another node says nothing about the release."""
    for name, proof in proven.items():
        if proof.node != getattr(found[name], "node", None):
            key = f"tables.{name}"
            raise sqldeid.VerificationError(f"{key}: the certificate is of another node than the release's", key=key)


def _options(
    common: Common, only: tuple[str, ...], key_file: Path | None = None, ledger: Path | None = None
) -> sqldeid.Options:
    return sqldeid.Options(only=only, settings=common.settings, key_file=key_file, ledger=ledger)


def _progress(common: Common) -> Progress:
    return Progress(console(sys.stderr), live=not common.quiet, steps=common.verbose)


def _write(target: str, releases: dict[str, dict[str, Any]], **more: object) -> None:
    write_json(target, {"audience": HOLDER, **more, "releases": releases})
