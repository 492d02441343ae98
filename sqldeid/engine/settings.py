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

    def __post_init__(self) -> None:
        from sqldeid.arguments import place, text, unless_none, whole  # the help of a command needs none of it

        checked = {
            "memory_limit": unless_none(text, "memory_limit", self.memory_limit),
            "threads": unless_none(whole, "threads", self.threads),
            "temp_dir": unless_none(place, "temp_dir", self.temp_dir),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
