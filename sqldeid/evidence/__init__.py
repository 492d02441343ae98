"""Evidence of a run for whoever must judge it: facts and hashes in one archive that can be checked without a database.

Nothing here says that a law or a standard is met. Facts stand under the headings that three frameworks ask for, and
what the program cannot know is left open and marked.
"""

from __future__ import annotations

from sqldeid.evidence.checking import Checked, check
from sqldeid.evidence.inputs import Given
from sqldeid.evidence.making import make

__all__ = ["Checked", "Given", "check", "make"]
