"""How much of the machine a run may take; apart from the engines, so that nobody loads a database to say it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """How much of the machine a run may take; None leaves DuckDB's own choice."""

    memory_limit: str | None = None
    threads: int | None = None
    temp_dir: Path | None = None
