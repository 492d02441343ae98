"""`sqldeid evaluate`: what a release is still good for."""

from __future__ import annotations

import sys

import click

import sqldeid
from sqldeid.cli.files import check_outputs, write_json
from sqldeid.cli.options import Common, common, examples
from sqldeid.report.evaluated import print_classification
from sqldeid.report.progress import Progress
from sqldeid.report.text import console
from sqldeid.result import HOLDER


@click.command(
    epilog=examples(
        "sqldeid evaluate hospital.duckdb --job job.toml --label died",
        "sqldeid evaluate hospital.duckdb --job job.toml --label died --only patients --test-share 0.2 --seed 7",
        "sqldeid evaluate census.duckdb --job job.toml --label income --test main.adult_test --json utility.json",
    )
)
@click.argument("database", metavar="DB")
@click.option("--job", "job_file", required=True, metavar="FILE", help="The job file (TOML).")
@click.option("--label", required=True, metavar="COLUMN", help="The column that is predicted.")
@click.option("--only", multiple=True, metavar="NAME", help="The release, where the job has several tables.")
@click.option("--model", type=click.Choice(["logistic"]), default="logistic", show_default=True, help="The classifier.")
@click.option("--test", metavar="T", help="A table of held-out rows; then the whole source is the training part.")
@click.option(
    "--test-share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.3,
    show_default=True,
    metavar="SHARE",
    help="Else the share of the rows that are held out.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Of the split.")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found; - is standard output.")
@common
def evaluate(
    common: Common,
    database: str,
    job_file: str,
    label: str,
    only: tuple[str, ...],
    model: str,
    test: str | None,
    test_share: float,
    seed: int,
    json_file: str | None,
) -> None:
    """Train a classifier on the release and on the originals, and test both on rows that neither has seen.

    The training part is anonymised by the job; the test part is generalised by the same node and never suppressed.
    Nothing is published. Needs the extra `utility` (scikit-learn).
    """
    job = sqldeid.Job.load(job_file)
    check_outputs({"--json": json_file}, job, database)
    options = sqldeid.Options(only=only, settings=common.settings)
    with Progress(console(sys.stderr), live=not common.quiet, steps=common.verbose) as progress:
        found = sqldeid.evaluate(
            job,
            database,
            label,
            test=test,
            test_share=test_share,
            seed=seed,
            model=model,  # type: ignore[arg-type]  # click has checked it
            options=options,
            listener=sqldeid.Listener(progress.step, progress.search),
        )
    if json_file is not None:
        write_json(json_file, {"audience": HOLDER, "evaluated": found.to_dict()})
    if not common.quiet:
        print_classification(found, common.screen(json_file))
