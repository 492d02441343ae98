"""The statements of the rooms that a release goes through, together: they are asked for by their stages alone."""

from sqldeid.tables.check.statements import checking, keeping_failing
from sqldeid.tables.fold.statements import folding
from sqldeid.tables.verify.statements import verifying
from sqldeid.tables.write.statements import telling, writing

__all__ = ["checking", "folding", "keeping_failing", "telling", "verifying", "writing"]
