"""The wing of numeric time series: vital signs and laboratory values, released as series; this is its face.

Imported from inside, modules are named in full: `recheck` here is the function.
"""

from sqldeid.series.differencing import Differencing
from sqldeid.series.face import check_promise, explain, plan_unit, recheck, run
from sqldeid.series.nature import nature, reads
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.recheck import Reshaped, recheck_shaped, reshape
from sqldeid.series.release import Begun, begin, finish

__all__ = [
    "Begun",
    "Differencing",
    "Reshaped",
    "SeriesPlan",
    "begin",
    "check_promise",
    "explain",
    "finish",
    "nature",
    "plan_unit",
    "reads",
    "recheck",
    "recheck_shaped",
    "reshape",
    "run",
]
