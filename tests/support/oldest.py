"""The oldest release of each library that pyproject.toml allows, as constraints for pip: one `name==version` a line.

A lower bound that nobody installs is a guess, so that one of the two environments of the tests is made with these.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
EXTRAS = ("report", "utility", "dp", "postgres")  # Spark runs in the other environment


def oldest(pyproject: Path = PYPROJECT) -> Iterator[str]:
    """Yield `name==version` for what sqldeid needs and for its extras, by the bound `>=` of each."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for line in [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]:
        wanted = Requirement(line)
        [bound] = [each.version for each in wanted.specifier if each.operator == ">="]
        yield f"{wanted.name}=={bound}"


if __name__ == "__main__":
    print(*oldest(), sep="\n")
