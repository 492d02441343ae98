"""Hold a job to house rules before anything runs: those that a caller names, and those that the environment does."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.job.problems import dotted

if TYPE_CHECKING:
    from sqldeid.run.places import Options

VARIABLE = "SQLDEID_HOUSE_RULES"
"""The environment variable that names a file which every run must meet, whatever else a caller names."""

OF_THE_PAIR = frozenset(
    {
        "tables.least_k",
        "tables.greatest_suppression_limit",
        "tables.allowed_methods",
        "tables.greatest_epsilon",
        "tables.greatest_dp_delta",
    }
)
"""Rules of what a trade-off varies, or does not use."""

Held = Mapping[str, object]
"""What a result tells of rules that were met: file, organisation, version, SHA-256, exceptions."""


def files_of(given: Path | None) -> list[Path]:
    """The files of house rules that bind a run; none, one, or the caller's and the environment's.

    Raises
    ------
    JobError
        If the environment variable is there and empty: it is not taken for no rules.
    """
    named = os.environ.get(VARIABLE)
    if named is not None and not named.strip():
        raise JobError.at(VARIABLE, "is set and empty; name a file of house rules, or unset it")
    files = [*([given] if given is not None else []), *([Path(named)] if named is not None else [])]
    return list({os.path.realpath(file): file for file in files}.values())


def hold(
    job: Job, options: Options, names: Sequence[str], *, running: bool = False, apart_from: Collection[str] = ()
) -> tuple[Held, ...]:
    """What the rules that bind a run say of themselves, when the job meets them all.

    Parameters
    ----------
    names
        The releases that are looked at.
    running
        Whether something is going to be released, so that rules of the run count.
    apart_from
        Keys of rules that say nothing of what is done.

    Raises
    ------
    JobError
        If a file does not load, or the job breaks one of its rules; one line for each.
    """
    files = files_of(options.house_rules)
    if not files:
        return ()
    from sqldeid.house_rules import broken, load  # a run without rules needs none of it

    run = _asked(options) if running else None
    held, lines, keys = list[Held](), list[str](), list[str]()
    for rules in map(load, files):
        found, used = broken(rules, job, names, run, date.today())
        for one in found:
            if one.rule not in apart_from:
                keys.append(one.where[0] if one.where[0].startswith("--") else dotted(one.where))
                lines.append(f"{job.name}: {keys[-1]}: {one.text} (house rules {rules.name}: {one.rule})")
        exceptions = [one.model_dump(mode="json", exclude={"job_sha256"}, exclude_none=True) for one in used]
        told = {"file": rules.name, "organisation": rules.organisation, "version": rules.version}
        held.append({**told, "sha256": rules.sha256, "met": True, "exceptions": exceptions})
    if lines:
        end = "Change the job, or have an exception approved in the house rules ([[exceptions]]); nothing was run."
        raise JobError("\n".join([*dict.fromkeys(lines), end]), key=keys[0])
    return tuple(held)


def _asked(options: Options) -> dict[str, bool]:
    """Of each option that house rules know, whether the run has it."""
    return {
        "certificate": options.certificate,
        "ledger": options.ledger is not None,
        "policy": options.policy is not None,
        "without-ledger": options.without_ledger,
        "new-persons": options.new_persons,
        "new-values": bool(options.new_values),
        "replace": options.replace,
    }
