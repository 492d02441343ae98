"""Run one command and write its wall time and peak memory: python -I -S launch.py FIGURES COMMAND …

A process of its own, and a small one: on Linux a child's peak starts at that of the process that spawned it.
"""

import json
import os
import sys
from time import monotonic

started = monotonic()
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
seconds = monotonic() - started
unit = 1 if sys.platform == "darwin" else 1024
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump({"seconds": seconds, "peak": usage.ru_maxrss * unit, "cpu": usage.ru_utime + usage.ru_stime}, file)
sys.exit(os.waitstatus_to_exitcode(status))
