"""What user SQL may be made of: node types with their arguments, functions, words and types.

An allow-list: what is not named here is refused by `sqldeid.sql.guard`. A node type is listed with the arguments it
may carry, because one type can hold harmless and harmful forms (``Select.into``, ``Table.sample``).
"""

from __future__ import annotations

from sqlglot import exp


def _words(text: str) -> list[str]:
    return text.split()


_BINARY = "this expression"

STRUCTURE: dict[type[exp.Expr], str] = {
    # queries
    exp.Select: "with_ distinct expressions from_ joins where group having qualify windows order limit offset",
    exp.Union: "with_ this expression distinct by_name order limit offset",
    exp.Except: "with_ this expression distinct order limit offset",
    exp.Intersect: "with_ this expression distinct order limit offset",
    exp.Subquery: "with_ this alias pivots order limit offset",
    exp.With: "expressions",
    exp.CTE: "this alias materialized",
    exp.From: "this",
    exp.Table: "this db catalog alias joins pivots",
    exp.Pivot: "expressions fields unpivot include_nulls alias group columns pivot_column_naming",
    exp.TableAlias: "this columns",
    exp.Values: "expressions alias",
    exp.Join: "this on side kind using method",
    exp.Where: "this",
    exp.Group: "expressions all",
    exp.Having: "this",
    exp.Qualify: "this",
    exp.Order: "this expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression",
    exp.Offset: "expression",
    exp.Distinct: "expressions on",
    # names and values
    exp.Identifier: "this quoted",
    exp.PivotAlias: "this alias",
    exp.Column: "this table",
    exp.Star: "except_ replace",
    exp.Alias: "this alias",
    exp.Literal: "this is_string",
    exp.Boolean: "this",
    exp.Null: "",
    exp.Tuple: "expressions",
    exp.Paren: "this",
    exp.Interval: "this unit",
    exp.Var: "this",
    exp.DataType: "this expressions",
    exp.DataTypeParam: "this",
    # lists, structs and maps
    exp.Bracket: "this expressions safe returns_list_for_maps",
    exp.Slice: "this expression step",
    exp.Array: "expressions bracket_notation",
    exp.Struct: "expressions",
    exp.PropertyEQ: _BINARY,
    exp.Dot: _BINARY,
    # logic and comparison
    **dict.fromkeys((exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _BINARY),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Escape, exp.SimilarTo, exp.Glob), _BINARY),
    **dict.fromkeys((exp.Like, exp.ILike), "this expression negate"),
    exp.Not: "this",
    exp.Between: "this low high",
    exp.In: "this expressions query",
    exp.Exists: "this",
    exp.Any: "this",
    exp.All: "this",
    exp.Case: "this ifs default",
    exp.If: "this true false",
    # arithmetic
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.BitwiseAnd), _BINARY),
    **dict.fromkeys((exp.BitwiseOr, exp.BitwiseLeftShift, exp.BitwiseRightShift), _BINARY),
    exp.Div: "this expression typed safe",
    exp.DPipe: "this expression safe",
    exp.Neg: "this",
    # windows
    exp.Window: "this partition_by order spec over alias",
    exp.WindowSpec: "kind start start_side end end_side",
    exp.IgnoreNulls: "this",
    exp.Filter: "this expression",
}

FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Cast: "this to",
    exp.TryCast: "this to safe",
    # text
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Length, exp.Reverse, exp.Ascii, exp.MD5), "this"),
    **dict.fromkeys((exp.Left, exp.Right, exp.Contains, exp.StartsWith, exp.EndsWith), _BINARY),
    exp.Substring: "this start length",
    exp.Trim: "this expression position",
    exp.Concat: "expressions safe coalesce",
    exp.ConcatWs: "expressions safe coalesce",
    exp.Replace: "this expression replacement",
    exp.Translate: "this from_ to",
    exp.Pad: "this expression fill_pattern is_left",
    exp.SplitPart: "this delimiter part_index",
    exp.StrPosition: "this substr",
    exp.RegexpLike: "this expression flag",
    exp.RegexpFullMatch: "this expression",
    exp.RegexpExtract: "this expression group null_if_pos_overflow",
    exp.RegexpReplace: "this expression replacement modifiers single_replace",
    # lists, structs and maps
    **dict.fromkeys((exp.Split, exp.StructExtract, exp.ArrayContains, exp.ArrayToString), _BINARY),
    **dict.fromkeys((exp.ArraySize, exp.ArrayDistinct, exp.ArrayMax, exp.ArrayMin, exp.ToMap, exp.MapKeys), "this"),
    exp.ArraySort: "this nulls_first",
    exp.Map: "keys values",
    exp.Explode: "this",
    # NULL and choice
    exp.Coalesce: "this expressions",
    exp.Nullif: _BINARY,
    exp.Greatest: "this expressions ignore_nulls",
    exp.Least: "this expressions ignore_nulls",
    # numbers
    **dict.fromkeys((exp.Abs, exp.Floor, exp.Ceil, exp.Trunc, exp.Sign, exp.Sqrt, exp.Ln, exp.Exp), "this"),
    exp.Round: "this decimals",
    exp.Log: _BINARY,
    exp.Pow: _BINARY,
    # time
    **dict.fromkeys((exp.Year, exp.Quarter, exp.Month, exp.Week, exp.WeekOfYear, exp.Day, exp.DayOfMonth), "this"),
    **dict.fromkeys((exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear, exp.Hour, exp.Minute, exp.Second), "this"),
    **dict.fromkeys((exp.LastDay, exp.Date, exp.ToDays, exp.TimeToUnix, exp.Dayname, exp.Monthname), "this"),
    exp.Extract: _BINARY,
    exp.DateDiff: "this expression unit date_part_boundary",
    exp.DateAdd: _BINARY,
    exp.TimestampTrunc: "this unit",
    exp.DateTrunc: "this unit",
    exp.DateFromParts: "year month day",
    exp.TimestampFromParts: "year month day hour min sec",
    exp.TimeToStr: "this format",
    exp.StrToTime: "this format",
    # aggregates
    exp.Count: "this big_int",
    **dict.fromkeys((exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.LogicalAnd), "this"),
    **dict.fromkeys((exp.LogicalOr, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance), "this"),
    exp.VariancePop: "this",
    exp.PercentileCont: _BINARY,
    exp.PercentileDisc: _BINARY,
    exp.GroupConcat: "this separator",
    exp.ArrayAgg: "this",
    # window functions
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist), ""),
    exp.Ntile: "this",
    exp.Lag: "this offset default",
    exp.Lead: "this offset default",
    exp.FirstValue: "this",
    exp.LastValue: "this",
    exp.NthValue: "this offset",
}

NODES: dict[type[exp.Expr], frozenset[str]] = {t: frozenset(a.split()) for t, a in (STRUCTURE | FUNCTIONS).items()} | {
    exp.Anonymous: frozenset({"this", "expressions"})
}

NAMED_FUNCTIONS: dict[str, int] = {
    "date_part": 2,
    "datepart": 2,
    "date_sub": 3,
    "datesub": 3,
    "age": 2,
    "century": 1,
    "decade": 1,
    "isfinite": 1,
    "list_extract": 2,
    "list_slice": 3,
    "list_sum": 1,
    "list_position": 2,
    "array_length": 1,
    "array_extract": 2,
    "element_at": 2,
    "cardinality": 1,
    "prefix": 2,
    "strlen": 1,
    "suffix": 2,
    "try_strptime": 2,
    "to_years": 1,
    "to_months": 1,
    "to_hours": 1,
    "to_minutes": 1,
    "to_seconds": 1,
    "yearweek": 1,
}
"""Functions that sqlglot has no type for, with their number of arguments (``age`` with one would read the clock)."""

ORDERED_FUNCTIONS = (
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile),
    *(exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue),
)
"""Window functions whose result is an accident without ORDER BY."""

WORDS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Join: frozenset({"LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "ASOF"}),
    exp.Window: frozenset({"OVER"}),
    exp.WindowSpec: frozenset(
        {"ROWS", "RANGE", "GROUPS", "UNBOUNDED", "CURRENT ROW", "PRECEDING", "FOLLOWING"},
    ),
    exp.Pivot: frozenset({"AGG_NAME_IF_ALIASED_OR_MULTIPLE"}),
    exp.Trim: frozenset({"BOTH", "LEADING", "TRAILING"}),
}
"""Bare words a node may carry as text."""

UNITS = frozenset(
    f"{unit}{plural}"
    for unit in _words("MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR DECADE CENTURY")
    for plural in ("", "S")
) | frozenset(_words("CENTURIES DOW ISODOW DAYOFWEEK DOY DAYOFYEAR ISOYEAR EPOCH"))
"""Units and parts of dates and times."""

TYPES = frozenset(
    exp.DType[name]
    for name in _words(
        "BOOLEAN TINYINT SMALLINT INT BIGINT INT128 UTINYINT USMALLINT UINT UBIGINT FLOAT DOUBLE DECIMAL "
        "CHAR VARCHAR TEXT DATE TIME TIMESTAMP TIMESTAMPNTZ INTERVAL UUID"
    )
)
"""Types a value may be cast to."""

VALUE_NAMES = frozenset(
    _words(
        "current_catalog current_date current_role current_schema current_time current_timestamp current_user "
        "localtime localtimestamp session_user user"
    )
)
"""Names that DuckDB answers with a session value where no column has them, even in double quotes."""

_CLOCK = "its result changes from run to run; write a date literal such as DATE '2020-01-31'"
_CHANCE = "its result changes from run to run; choose rows by a key instead"
_ORDER = "it depends on the order of rows; use MIN, MAX, or ROW_NUMBER() OVER (PARTITION BY … ORDER BY …)"
_FILES = "a job reads only tables of the database; load the file into a table first"

HINTS: dict[str, str] = (
    dict.fromkeys(_words("now today get_current_timestamp get_current_time transaction_timestamp"), _CLOCK)
    | dict.fromkeys(_words("current_date current_time current_timestamp current_datetime localtime age"), _CLOCK)
    | dict.fromkeys(_words("localtimestamp current_timestamp_ltz"), _CLOCK)
    | dict.fromkeys(_words("random rand randn uuid gen_random_uuid setseed nextval currval table sample"), _CHANCE)
    | dict.fromkeys(_words("first last any_value arg_max arg_min max_by min_by mode"), _ORDER)
    | dict.fromkeys(_words("read_csv read_csv_auto read_parquet parquet_scan read_json read_text read_blob"), _FILES)
    | {"mean": "write AVG", "db": "write table.column, and of a struct (table.column).field"}
    | dict.fromkeys(
        _words("transform lambda comprehension list_transform list_filter list_reduce filter reduce"),
        "a function over a list's items is not checked; UNNEST the list in a source query",
    )
    | dict.fromkeys(_words("unnest explode"), "it makes rows; use it in the SELECT list of a source query")
    | dict.fromkeys(
        _words("range generate_series repeat"), "it can make more rows than fit; join a table that has them"
    )
    | dict.fromkeys(
        _words("getenv getvariable current_setting pragma_version duckdb_settings set_config"),
        "it reads what is not in the tables",
    )
    | dict.fromkeys(_words("glob sniff_csv read_xlsx read_json_auto sqlite_scan postgres_scan"), _FILES)
)
"""What to do instead, by the name of what is refused."""
