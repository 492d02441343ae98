"""Keep pandas out of the program: loading it takes half a second, and nothing on the way to a release is done by it.

Arrow asks once in a process whether pandas is installed, when it first makes an array, and loads it to find out; for
dateutil it looks whenever it guesses a type. Here it is asked while the answer is no. Whoever needs them later
(`evaluate`, PySpark) imports them as ever, and Arrow's own `to_pandas` looks again. That is done in the program alone:
in a process of somebody else Arrow is left as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent:
    """A finder for whom pandas and dateutil are not installed."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Raise for these what is raised for a package that is not there; leave all others to the next finder."""
        if name in ("pandas", "dateutil"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def without_pandas() -> None:
    """Load Arrow, and have it believe that pandas is not there, unless pandas is loaded already."""
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _Absent)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(_Absent)
