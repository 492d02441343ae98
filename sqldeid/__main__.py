"""`python -m sqldeid`: the program."""

from __future__ import annotations

from sqldeid.cli.process import program

if __name__ == "__main__":
    program()
