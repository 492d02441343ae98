"""How long tests look: shortly in `make test`, at length in `make test-deep`."""

import os

DEEP = bool(os.environ.get("SQLDEID_DEEP"))


def examples(n: int) -> int:
    """How many examples Hypothesis tries: n in `make test-deep`, a quarter of them (at least five) in `make test`."""
    return n if DEEP else max(5, n // 4)
