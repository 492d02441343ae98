"""The version of this package, and the form of what it writes; for whoever may not import its face.

What a run leaves is read by other versions. One that writes a result, a note on a release or a certificate in a form
that earlier ones would misread says so under `format`, so that they refuse it. What has no such key has the first form.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

_FIRST = 1

OTHER_FORM = "was made by another version of sqldeid, in a form that this one cannot read; use that one, or a later one"


def own_version() -> str:
    """As the package states it: a checkout on PYTHONPATH has no metadata of a distribution that could tell it."""
    return str(sys.modules["sqldeid"].__version__)


def is_known(content: Mapping[str, object]) -> bool:
    """Whether something is of the form that this version reads; 1.0 and true are no forms."""
    form = content.get("format", _FIRST)
    return type(form) is int and form == _FIRST
