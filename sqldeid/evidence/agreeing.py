"""Hold a result to the job and to the certificate that are given with it: what was asked stands in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqldeid.job import Job, Table
from sqldeid.report.shape import kind_of


def differing(job: Job, result: Mapping[str, Any]) -> str:
    """Where a result says that something else was asked than its job says; empty if nowhere.

    Of linked tables the greatest k of all and the least limit hold, which no one table of the job says.
    """
    for name, table in job.tables.items():
        release = result["releases"].get(name)
        if release is not None and not release.get("linked"):
            for key, told, asked in _of_table(table, release):
                if told != asked:
                    return f"tables.{name}.privacy.{key}"
    return ""


def _of_table(table: Table, release: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """Key of the job, what the result says was asked, and what the job asks."""
    sought = table.search.method == "inverse-ola"  # k is the least there, and what was found is told as asked
    for told in asked_k(release):
        if not (sought and isinstance(told, int) and told > table.privacy.k):
            yield "k", told, table.privacy.k
    if release.get("suppression_limit") is not None:
        yield "suppression_limit", release["suppression_limit"], table.privacy.suppression_limit


def asked_k(release: Mapping[str, Any]) -> list[object]:
    """Every k that a release says was asked of its classes."""
    listed = [one.get("asked") for one in release.get("criteria") or () if one.get("name") == "k-anonymity"]
    key = "k" if kind_of(release) == "child" else "asked"
    return listed + ([release[key]] if key in release else [])


def of_other_terms(proof: Mapping[str, Any], release: Mapping[str, Any]) -> bool:
    """Whether a proof says of another k or limit than a release's that it was asked."""
    limit = release.get("suppression_limit")
    return any(told != proof.get("k") for told in asked_k(release)) or limit not in (
        None,
        proof.get("suppression_limit"),
    )
