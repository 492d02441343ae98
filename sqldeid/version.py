"""The version of this package, for whoever may not import its face: what runs, and what packs evidence."""

from __future__ import annotations

import sys


def own_version() -> str:
    """As the package states it: a checkout on PYTHONPATH has no metadata of a distribution that could tell it."""
    return str(sys.modules["sqldeid"].__version__)
