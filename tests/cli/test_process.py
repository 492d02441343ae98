"""The process ends with its own exit code, and with all done that was to be done at its end."""

import subprocess
import sys

import pytest

CODE = """
import atexit, os, sys, tempfile
from sqldeid.cli import process
{before}
class Torn:
    def __del__(self):
        os.write(1, b"taken apart\\n")
torn = Torn()
def main():
    kept = sys.kept = tempfile.TemporaryDirectory()
    atexit.register(lambda: sys.stdout.write("at the end\\n"))
    print(kept.name)
    {ends}
process.main = main
process.program()
"""


def ended(ends: str, before: str = "") -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", CODE.format(ends=ends, before=before)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("code", [0, 2, 3])
def test_what_is_registered_runs_and_nothing_is_taken_apart(code, tmp_path):
    status, out, err = ended(f"sys.exit({code})")
    folder, *rest = out.splitlines()
    assert (status, rest, err) == (code, ["at the end"], "")
    assert subprocess.run(["test", "-e", folder]).returncode == 1, "the temporary folder is still there"


def test_what_was_registered_before_runs_too():
    status, out, _ = ended("sys.exit(2)", "atexit.register(lambda: sys.stdout.write('before\\n'))")
    assert status == 2
    assert {"before", "at the end", "taken apart"} <= set(out.splitlines())


@pytest.mark.parametrize(("ends", "code"), [("raise KeyError(1)", 1), ("sys.exit('stop')", 1), ("sys.exit()", 0)])
def test_other_ends_are_pythons(ends, code):
    status, out, _ = ended(ends)
    assert status == code
    assert "at the end" in out


def test_output_that_nobody_reads_is_no_traceback():
    done = subprocess.run(
        f"{sys.executable} -m sqldeid schema | head -c 10", shell=True, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
