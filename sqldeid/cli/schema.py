"""`sqldeid schema`."""

from __future__ import annotations

import json

import click

from sqldeid.cli.files import print_json
from sqldeid.cli.options import Common, common, examples


@click.command(
    epilog=examples("sqldeid schema > job.schema.json", "sqldeid schema --house-rules > house-rules.schema.json")
)
@click.option("--house-rules", is_flag=True, help="That of a file of house rules instead.")
@common
def schema(_: Common, house_rules: bool) -> None:
    """Print the JSON schema of the job file, for editors."""
    print_json(json.dumps(_of_rules() if house_rules else _of_jobs(), indent=2, ensure_ascii=False))


def _of_jobs() -> dict[str, object]:
    from sqldeid.job import schema

    return schema()


def _of_rules() -> dict[str, object]:
    from sqldeid.house_rules import schema

    return schema()
