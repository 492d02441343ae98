"""Commands as a reader of a page runs them: the program on PATH, a wide screen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(sys.executable).parent


def execute(command: list[str], folder: Path) -> str:
    """Run a command in a folder, and give what it prints; it must end with code 0."""
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    known = {**os.environ, "PATH": path, "COLUMNS": "500", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
