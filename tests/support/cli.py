"""The program, run as a user runs it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqldeid.cli import main

JOB = """
[release]
into = "out.duckdb"

[tables.people]
source = "main.people"
person = "id"

[tables.people.columns]
age = { role = "quasi-identifying", hierarchy = { bands = [10, 50] } }
sex = { role = "quasi-identifying", hierarchy = { suppress = true } }
illness = { role = "sensitive" }
name = { role = "identifying" }

[tables.people.privacy]
k = 3
suppression_limit = 0.2

[tables.all]
source = "main.people"
person = "id"
where = "age >= 20"

[tables.all.columns]
sex = { role = "quasi-identifying", hierarchy = { suppress = true } }

[tables.all.privacy]
k = 2
"""

PROGRAM = Path(sys.executable).with_name("sqldeid")


@dataclass(frozen=True)
class Ran:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Ran:
    """Run a command in this process; standard output and error are pipes to it."""
    hook = sys.excepthook
    capsys.readouterr()
    try:
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
    finally:
        sys.excepthook = hook
    captured = capsys.readouterr()
    return Ran(int(end.value.code or 0), captured.out, captured.err)


def start(*arguments: object, cwd: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start the program in a process of its own."""
    return subprocess.Popen(
        [str(a) for a in (PROGRAM, *arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes], timeout: float = 60) -> Ran:
    out, err = process.communicate(timeout=timeout)
    return Ran(process.returncode, out.decode(errors="surrogateescape"), err.decode(errors="surrogateescape"))


def tree(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file with the hash of its content and its time of change."""
    return {
        str(p.relative_to(folder)): (hashlib.sha256(p.read_bytes()).hexdigest(), p.stat().st_mtime_ns)
        for p in folder.rglob("*")
        if p.is_file()
    }
