"""House rules: what an organisation asks of every job, in a file of its own that whoever writes jobs does not write.

They are read whole and refused whole, as jobs are: a key that is not known, a limit that is none, an exception that
nobody may approve. A part of a job of which they say nothing is refused.
"""

from __future__ import annotations

from sqldeid.house_rules.checking import broken
from sqldeid.house_rules.exceptions import applied
from sqldeid.house_rules.model import HouseRules, schema
from sqldeid.house_rules.reading import VARIABLE, load, parse

__all__ = ["VARIABLE", "HouseRules", "applied", "broken", "load", "parse", "schema"]
