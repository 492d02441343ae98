"""Exceptions from house rules: of one job as it stands, within their days. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from sqldeid.house_rules.model import SECTION_RULES, Exception_, HouseRules


@dataclass(frozen=True, slots=True)
class Applied:
    """Rules as they are for one release, or for the run.

    Parameters
    ----------
    rules
        With the values of exceptions in the place of those that they are from.
    used
        The exceptions that hold.
    ended
        Keys of rules of which an exception does not hold today, with the reason.
    """

    rules: HouseRules
    used: tuple[Exception_, ...]
    ended: dict[str, str]


def applied(rules: HouseRules, job_sha256: str, release: str | None, today: date) -> Applied:
    """The rules of a job's release, or (with None) those of its run and its place."""
    used, ended = list[Exception_](), dict[str, str]()
    for one in _of(rules, job_sha256, release):
        if why := _not_today(one, today):
            ended[one.key] = why
            continue
        used.append(one)
        part, _, name = one.key.partition(".")
        stated = getattr(rules, part)
        value = getattr(SECTION_RULES[part].model_validate({name: one.value}), name)
        rules = rules.model_copy(update={part: stated.model_copy(update={name: value})})
    return Applied(rules, tuple(used), ended)


def _of(rules: HouseRules, job_sha256: str, release: str | None) -> Iterator[Exception_]:
    return (one for one in rules.exceptions if one.job_sha256 == job_sha256 and one.release == release)


def _not_today(one: Exception_, today: date) -> str:
    """Why an exception does not hold; empty if it does."""
    if today < date.fromisoformat(one.approved_on):
        return f"its exception holds from {one.approved_on} on"
    if one.until is not None and today > date.fromisoformat(one.until):
        return f"its exception ended on {one.until}"
    return ""
