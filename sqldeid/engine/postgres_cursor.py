"""Cursors on a user's psycopg connection that nothing of the user's changes."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import AdaptersMap

_ADAPTERS = AdaptersMap(psycopg.adapters)


class PlainCursor(psycopg.Cursor[tuple[Any, ...]]):
    """Values as psycopg gives them, whatever loaders a user registered for the connection."""

    @property
    def adapters(self) -> AdaptersMap:
        """Those that psycopg itself has."""
        return _ADAPTERS
