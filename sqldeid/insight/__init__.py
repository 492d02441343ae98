"""Looks at data before and after a release: profiles, uniqueness, risk and utility."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqldeid.insight.identifiers import safe_harbor as safe_harbor


def __getattr__(name: str) -> object:
    """`safe_harbor`, loaded when first asked for."""
    if name != "safe_harbor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sqldeid.insight.identifiers import safe_harbor

    return safe_harbor
