"""The command line: click, thin. Every command is one library call; what it prints is made in `sqldeid.report`."""

from sqldeid.cli.app import main

__all__ = ["main"]
