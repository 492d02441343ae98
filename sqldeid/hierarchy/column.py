"""The values of a column as a hierarchy sees them: their kind, their text, and a key that decides equality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Flags
from sqldeid.errors import HierarchyError

Kind = Literal["integer", "float", "decimal", "text", "boolean", "date", "timestamp"]

_KINDS: tuple[tuple[Any, Kind], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "float"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_null, "text"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Distinct values of one column, at most one of them NULL.

    Parameters
    ----------
    values
        The values as they were given.
    kind
        What they are; `decimal` also for exact decimals and big integers that come as text.
    texts
        Their text; NULL stays NULL.
    """

    values: pa.Array
    kind: Kind
    texts: pa.Array

    @classmethod
    def of(cls, values: pa.Array, *, numeric: bool) -> Column:
        """Take in an Arrow array; `numeric` says that text holds exact numbers.

        Raises
        ------
        HierarchyError
            If the type cannot be generalised (binary, nested).
        ValueError
            If a value occurs twice.
        """
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        kind = next((kind for test, kind in _KINDS if test(plain.type)), None)
        if kind is None:
            raise HierarchyError(f"a column of type {plain.type} has no hierarchies; cast it to text in the source")
        if pa.types.is_null(plain.type):
            plain = plain.cast(pa.string())
        if pc.count_distinct(plain, mode="all").as_py() != len(plain):
            raise ValueError("bind takes distinct values")
        if kind == "timestamp":
            plain = plain.cast(pa.timestamp("us"), safe=False)
        return cls(values, "decimal" if numeric and kind == "text" else kind, _texts(plain, kind))

    @property
    def plain(self) -> pa.Array:
        """The values without dictionary encoding."""
        return self.values.dictionary_decode() if pa.types.is_dictionary(self.values.type) else self.values

    @property
    def null(self) -> Flags:
        """Which values are NULL."""
        return mask(self.values.is_null())


def mask(flags: pa.Array) -> Flags:
    """An Arrow boolean array as NumPy's; NULL counts as false."""
    result: Flags = pc.fill_null(flags, False).to_numpy(zero_copy_only=False).astype(bool)
    return result


def _texts(plain: pa.Array, kind: Kind) -> pa.Array:
    texts = plain.cast(pa.string())
    return pc.replace_substring_regex(texts, r"\.0+$", "") if kind == "timestamp" else texts


def keys(texts: pa.Array, kind: Kind) -> pa.Array:
    """Keys that are equal exactly when two texts mean the same value of this kind; NULL if a text is none.

    `007`, `7` and `+7.0` are the same number, `TRUE` and `true` the same truth, `2101-03-01` and
    `2101-03-01T00:00` the same moment; as text they all differ.
    """
    if kind == "text":
        return texts
    if kind == "boolean":
        return _only(pc.utf8_lower(texts), "^(true|false)$")
    if kind == "float":
        return _float_keys(texts)
    if kind in ("integer", "decimal"):
        return _decimal_keys(texts)
    return _moment_keys(texts)


def _only(texts: pa.Array, pattern: str) -> pa.Array:
    """The texts that match; the others become NULL."""
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, pa.string()))


def _float_keys(texts: pa.Array) -> pa.Array:
    good = _only(texts, r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+|inf|infinity|nan)(e[+-]?[0-9]{1,4})?$")
    return pa.array([None if t is None else _float(t) for t in good.to_pylist()], pa.float64(), from_pandas=False)


def _float(text: str) -> float | None:
    """The number, with one zero; None for a text such as `infe5`."""
    try:
        return float(text) + 0.0
    except ValueError:
        return None


_EMPTY, _ZERO, _POINT, _MINUS = (pa.scalar(text, pa.string()) for text in ("", "0", ".", "-"))


def _decimal_keys(texts: pa.Array) -> pa.Array:
    good = _only(texts, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$")
    digits = pc.utf8_ltrim(good, "+-")
    whole = pc.utf8_ltrim(pc.replace_substring_regex(digits, r"\..*$", ""), "0")
    whole = pc.if_else(pc.equal(whole, _EMPTY), _ZERO, whole)
    part = pc.utf8_rtrim(pc.replace_substring_regex(digits, r"^[0-9]*\.?", ""), "0")
    number = pc.if_else(pc.equal(part, _EMPTY), whole, pc.binary_join_element_wise(whole, part, _POINT))
    negative = pc.and_(pc.starts_with(good, "-"), pc.not_equal(number, _ZERO))
    return pc.if_else(negative, pc.binary_join_element_wise(_MINUS, number, _EMPTY), number)


def _moment_keys(texts: pa.Array) -> pa.Array:
    good = _only(texts, r"^-?[0-9]{4,7}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?$")
    spaced = pc.replace_substring(good, "T", " ")
    exact = pc.replace_substring_regex(spaced, r"(\.[0-9]*[1-9])0+$|\.0+$", r"\1")
    seconds = pc.replace_substring_regex(exact, r"( [0-9]{2}:[0-9]{2})$", r"\1:00")
    return pc.replace_substring_regex(seconds, " 00:00:00$", "")
