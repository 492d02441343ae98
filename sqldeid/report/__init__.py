"""Reports for people, made from a result alone."""

from __future__ import annotations

from collections.abc import Mapping


def holders_page(result: Mapping[str, object]) -> str:
    """The report for the data holder (`report.page.report_page`); its libraries are loaded when it is asked for."""
    from sqldeid.report.page import report_page

    return report_page(result)
