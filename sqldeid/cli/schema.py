"""`sqldeid schema`."""

from __future__ import annotations

import json

import click

from sqldeid.cli.files import print_json
from sqldeid.cli.options import Common, common, examples


@click.command(epilog=examples("sqldeid schema > job.schema.json"))
@common
def schema(_: Common) -> None:
    """Print the JSON schema of the job file, for editors."""
    from sqldeid.job import schema as job_schema

    print_json(json.dumps(job_schema(), indent=2, ensure_ascii=False))
