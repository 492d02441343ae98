"""`python -m sqldeid`: the program."""

from __future__ import annotations

from sqldeid.cli import main

if __name__ == "__main__":
    main()
