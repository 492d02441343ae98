"""The options that tie a run to earlier ones, and to the rules of the house."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

_FILE = click.Path(dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--policy",
        type=_FILE,
        metavar="RESULT.json",
        help="Apply the nodes and hierarchies of this earlier result; nothing is searched.",
    ),
    click.option(
        "--ledger",
        type=_FILE,
        metavar="FILE",
        help="Hold rows back that would single somebody out beside the earlier releases in this private file.",
    ),
    click.option(
        "--without-ledger",
        is_flag=True,
        help="Assert that nobody was given the releases that are there, though the source has changed since; beside "
        "--ledger, too, where they were made without one.",
    ),
    click.option(
        "--new-persons",
        is_flag=True,
        help="Insist that the persons are others than the ledger's, where hardly one is found in it.",
    ),
    click.option(
        "--new-values",
        multiple=True,
        metavar="COLUMN",
        help="Insist that a column's values are new for nearly everybody; may be given again.",
    ),
)


def ledger_files(ledger: Path | None) -> list[str]:
    """A ledger and what stands beside it while a run writes it, its lock and its mark; empty without one."""
    if ledger is None:
        return []
    beside = os.path.realpath(ledger)
    return [str(ledger), f"{beside}.lock", f"{beside}.pending"]


def ledger(run: Callable[..., None]) -> Callable[..., None]:
    """Add the option --ledger alone: to check a release again by what it says."""
    return click.option(
        "--ledger", type=_FILE, metavar="FILE", help="The ledger that held rows back from the release; it is only read."
    )(run)


def house_rules(run: Callable[..., None]) -> Callable[..., None]:
    """Add the option --house-rules."""
    return click.option(
        "--house-rules",
        type=_FILE,
        metavar="FILE",
        help="Refuse a job that does not meet these rules; those that SQLDEID_HOUSE_RULES names bind as well.",
    )(run)


def earlier(run: Callable[..., None]) -> Callable[..., None]:
    """Add the options --policy and --ledger, and what is said to the latter."""
    for option in reversed(_OPTIONS):
        run = option(run)
    return run
