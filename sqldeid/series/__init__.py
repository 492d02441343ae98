"""The wing of numeric time series: vital signs and laboratory values, released as series; this is its face.

Imported from inside, modules are named in full: `plan` and `recheck` here are the functions.
"""

from sqldeid.series.face import check_promise, explain, plan, recheck, run
from sqldeid.series.nature import nature, reads
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.recheck import Reshaped, recheck_shaped, reshape
from sqldeid.series.release import Begun, begin, finish
from sqldeid.series.together import Together

__all__ = [
    "Begun",
    "Reshaped",
    "SeriesPlan",
    "Together",
    "begin",
    "check_promise",
    "explain",
    "finish",
    "nature",
    "plan",
    "reads",
    "recheck",
    "recheck_shaped",
    "reshape",
    "run",
]
