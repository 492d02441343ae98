"""What a later version of the program may leave: the same content in another form, which it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sqldeid.publish.notes import Note

MARKS: tuple[Any, ...] = (2, 0, "2", "1", 1.0, True, None, [1], {"1": 1})
"""Forms that this version does not know; some of them look like the one that it knows."""

SAID = "made by another version of sqldeid, in a form that this one cannot read; use that one, or a later one"


@contextmanager
def a_later_version(mark: Any = 2) -> Iterator[None]:
    """Runs write their notes in this form meanwhile, with sums that fit."""
    summed = Note.summed
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Note, "summed", lambda note: summed(note.also({"format": mark})))
        yield
