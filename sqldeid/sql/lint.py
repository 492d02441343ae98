"""What a template may hold: safe Jinja, a head that says what it is, and SQL that three engines read alike.

Every template
    - is named ``<room>/<verb>_<noun>`` or ``<room>/<verb>_<noun>.<engine>``, at most 60 lines, one statement;
    - begins with a comment: its purpose, then ``parameters``, ``returns``, ``grain``, ``source``;
    - prints names only: no filters, calls, macros, assignments, includes, concatenation or text constants, and nothing
      inside quotes;
    - separates items by ``{% list … %}`` or prints the list (`sqldeid.sql.lists`), and asks of a loop only its number;
    - reads no clock and draws nothing at random.

A collection ``<room>/statements[.<engine>]``
    begins with a comment and holds statements of at most three lines in the order of their names, each after its
    ``{% statement <verb>_<noun> %}``. Their heads leave out what there is none of, and the line ``engine`` where the
    collection's own comment says enough.

The file ``kept.toml``
    says how an engine whose temporary tables are views keeps the rows of one that a template makes or fills: under one
    of `sqldeid.sql.templates.KEPT`, by reason, its name (that of Spark's own template where there is one).

A template for one engine
    has the engine in its file name *and* a line ``engine <engine> — <reason>`` in its head (both or neither: the name
    is what the loader goes by, the line says why). It is free of the portable style.

A template for each engine, ``<verb>_<noun>.each``
    likewise, but asks which engine it is (``on.duckdb``, ``on.postgres``, ``on.spark``) where they differ in a word.

Every other template
    is written in the portable style of engines.md: what three engines do not read alike is refused. Some of that page
    needs types or a catalogue and cannot be seen here (lateral aliases, HAVING on an alias, the text of a double,
    UPPER of non-ASCII): there the template's case in tests/templates/cases.py, run on the engines, must tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import jinja2
from jinja2 import nodes
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from sqldeid.sql.lists import grammar
from sqldeid.sql.templates import EACH, ENGINES, KEPT, STATEMENT, head_of, kept_in, source_of, statements_in

MAX_LINES = 60
MAX_SHORT = 3
"""Lines of a template, and of a statement in a collection without its head."""
HEAD_KEYS = ("parameters", "returns", "grain", "source")
HOLE = "hole_of_a_template"

_NAME = re.compile(rf"([a-z][a-z_]*/)+[a-z]+(_[a-z0-9]+)+(\.({'|'.join((*ENGINES, EACH))}))?")
_FILLS = re.compile(r"\b(CREATE TEMPORARY|INSERT INTO) ")
_ENGINE_LINE = re.compile(r"^\s*engine (\w+) — \S", re.MULTILINE)
_TEXT = (TokenType.STRING, TokenType.IDENTIFIER)

_JINJA = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Getattr, nodes.For, nodes.If, nodes.Const),
    *(nodes.Compare, nodes.Operand, nodes.Not, nodes.And, nodes.Or, nodes.Test, nodes.CondExpr, nodes.Tuple),
)

_PLACES = ("index", "index0")
"""What a template may ask of a loop: an item's number, not whether it needs a separator."""

_NEVER = {
    "RANDOM": "nothing random: use a seeded hash of the key",
    "UUID": "nothing random: use a seeded hash of the key",
    "NOW": "no clock: pass the time as a parameter",
    "TODAY": "no clock: pass the date as a parameter",
    "NEXTVAL": "no sequence: number rows by ROW_NUMBER",
}

_CALLS = {
    "HASH": "each engine has its own; use MD5",
    "PERCENTILE_CONT": "write QUANTILE_CONT(x, q)",
    "PERCENTILE_DISC": "write QUANTILE_DISC(x, q)",
    **dict.fromkeys(("ANY_VALUE", "FIRST", "LAST"), "any row may answer; use MIN or MAX"),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "MAX_BY", "MIN_BY"), "ties differ; use ROW_NUMBER with a tie-break"),
    "MODE": "ties differ; count and use ROW_NUMBER with a tie-break",
    "TRY_CAST": "engines differ in what fails; clean the value first",
    **dict.fromkeys(("LOG", "LOG10", "LOG2"), "the base differs; use LN(x) / LN(base)"),
    "EPOCH": "fractions are lost; use DATE_DIFF('microsecond', a, b)",
    "ROUND": "halves of doubles differ; round in Python",
    "RANGE": "use CROSS JOIN UNNEST(GENERATE_SERIES(a, b)) AS g(h)",
    **dict.fromkeys(("SKEWNESS", "KURTOSIS"), "the definition differs; write central moments in an engine template"),
}

_PHRASES = {
    "IGNORE NULLS": "carry forward by MAX(v) OVER (PARTITION BY k, grp)",
    "WITHIN GROUP": "write QUANTILE_CONT(x, q)",
    "GROUP BY ALL": "name the columns",
    "AS MATERIALIZED": "make a temporary table",
    "AS NOT MATERIALIZED": "leave it out",
    "IS NOT DISTINCT FROM": "slow on Postgres; join by = and COALESCE the NULLs",
    "ASOF": "join by a window or a range",
    "EXCLUDE": "name the columns",
    "QUALIFY": "filter in an outer query",
    "POSITIONAL": "join by a key",
    "PIVOT": "write CASE expressions",
    "UNPIVOT": "write UNION ALL",
    "HUGEINT": "only DuckDB has it; split the number in two",
    "INT128": "only DuckDB has it; split the number in two",
    "[": "no lists; use rows",
    "{": "no structs; use columns",
    "::": "write CAST(x AS type)",
}


def lint(name: str, source: str, *, short: bool = False) -> list[str]:
    """Complaints about one template, empty if it is sound.

    Parameters
    ----------
    name
        ``<room>/<verb>_<noun>[.<engine>]``, as `sqldeid.sql.template_names` has it.
    source
        The template's text.
    short
        Whether it stands in a collection.
    """
    complaints = [*_lint_head(name, source, short), *_lint_jinja(source, each=name.endswith(f".{EACH}"))]
    words = _sql_tokens(source)
    if words is None:
        return [*complaints, "the SQL cannot be split into words: a quote is not closed"]
    complaints += _lint_every(words)
    if "." not in name:
        complaints += _lint_portable(words)
    return complaints


def lint_collection(text: str) -> list[str]:
    """Complaints about a collection as a whole; its statements are linted one by one, as templates are."""
    found = statements_in(text)
    complaints = [] if list(found) == sorted(found) else ["the statements are not in the order of their names"]
    first = text.partition(STATEMENT)[0]
    if text != first + "".join(f"{STATEMENT}{name} %}}\n{source}" for name, source in found.items()):
        complaints.append("a statement is there twice, or its name is not between '{% statement ' and ' %}'")
    if not re.fullmatch(r"\{#-[^#]+-#\}\n", first):
        complaints.append("it does not begin with one comment that tells what it holds")
    for name, source in found.items():
        sql = re.sub(r"\{#.*?#\}", "", source, flags=re.DOTALL).splitlines()
        if (lines := sum(bool(line.strip()) for line in sql)) > MAX_SHORT:
            complaints.append(f"{name} has {lines} lines; of more than {MAX_SHORT} it has a file of its own")
    return complaints


def lint_kept(text: str) -> list[str]:
    """Complaints about the file that says how temporary tables are kept, `sqldeid.sql.templates.KEPT_FILE`."""
    kept, complaints = kept_in(text), []
    listed = [name for name, _, _ in kept]
    for name, how, why in kept:
        if how not in KEPT or how == "lazily":
            complaints.append(f"{how} is none of {', '.join(KEPT)}, or what holds for what is not listed")
        if not why.strip():
            complaints.append(f"{name} is listed without a reason")
        if listed.count(name) > 1:
            complaints.append(f"{name} is listed more than once")
        if not _FILLS.search(source_of(name) or "") or name.partition(".")[2] not in ("", EACH, "spark"):
            complaints.append(f"{name} makes no temporary table on an engine that has views for it")
        elif (own := name.partition(".")[0] + ".spark") != name and source_of(own) is not None:
            complaints.append(f"{name} is not what Spark runs: {own} is")
    return complaints


def _lint_head(name: str, source: str, short: bool) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"{name} is not named <room>/<verb>_<noun> or <room>/<verb>_<noun>.<engine>"
    if (lines := len(source.splitlines())) > MAX_LINES:
        yield f"{lines} lines; at most {MAX_LINES} are allowed"
    head = head_of(source)
    if not head.strip():
        yield "it does not begin with a comment that tells what it is"
        return
    if re.match(rf"\s*({'|'.join(HEAD_KEYS)}|engine)\b", head):
        yield "the head does not tell the purpose first"
    for key in HEAD_KEYS[-1:] if short else HEAD_KEYS:
        if not re.search(rf"^\s+{key} +\S", head, re.MULTILINE):
            yield f"the head has no line for {key}"
    if re.search(r"^\s+kept +[a-z ]+ —", head, re.MULTILINE):
        yield "how a temporary table is kept stands in kept.toml"
    engine = _ENGINE_LINE.search(head)
    named = name.partition(".")[2]
    if (engine[1] if engine else named if short else "") != named:
        yield f"an engine template says so in its name and by 'engine {named or '<engine>'} — <reason>' in its head"


def _lint_jinja(source: str, *, each: bool) -> Iterator[str]:
    try:
        tree = grammar().parse(source)
    except jinja2.TemplateSyntaxError as error:
        yield f"line {error.lineno}: Jinja cannot read it: {error.message}"
        return
    yield from _lint_loops(source)
    yield from _lint_engines(tree, each)
    compared = {id(node) for compare in tree.find_all(nodes.Compare) for node in compare.find_all(nodes.Const)}
    for node in [tree, *tree.find_all(nodes.Node)]:
        if type(node) not in _JINJA:
            yield f"line {node.lineno}: {type(node).__name__} is refused; a template only prints, loops and asks"
        elif isinstance(node, nodes.Const) and isinstance(node.value, str) and id(node) not in compared:
            yield f"line {node.lineno}: a text constant is refused; give a sqlglot expression"


def _lint_engines(tree: nodes.Template, each: bool) -> Iterator[str]:
    asked = {id(part.node): part.attr for part in tree.find_all(nodes.Getattr)}
    for name in tree.find_all(nodes.Name):
        if name.name == "on" and not (each and asked.get(id(name)) in ENGINES):
            yield f"line {name.lineno}: only a template for each engine asks on.<engine>, of {', '.join(ENGINES)}"


def _lint_loops(source: str) -> Iterator[str]:
    words = [(line, text) for line, kind, text in grammar().lex(source) if kind != "whitespace"]
    for (line, loop), (_, dot), (_, asked) in zip(words, words[1:], words[2:], strict=False):
        if (loop, dot) == ("loop", ".") and asked not in _PLACES:
            yield f"line {line}: loop.{asked} is refused: separate items by {{% list … %}}, or print the list"


def _sql_tokens(source: str) -> list[Token] | None:
    """The SQL words outside comments, a hole where Jinja prints."""
    text = re.sub(r"\{#.*?#\}", _blank, source, flags=re.DOTALL)
    text = re.sub(r"\{%.*?%\}", _blank, text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", f" {HOLE} ", text, flags=re.DOTALL)
    try:
        return list(Dialect.get_or_raise("duckdb").tokenize(text))
    except TokenError:
        return None


def _blank(match: re.Match[str]) -> str:
    return " " + "\n" * match[0].count("\n")


def _lint_every(words: list[Token]) -> Iterator[str]:
    for at, word in enumerate(words):
        if word.token_type == TokenType.SEMICOLON:
            yield f"line {word.line}: a semicolon; one template is one statement, without its end"
        if word.token_type in _TEXT and HOLE in word.text:
            yield f"line {word.line}: something is printed inside quotes; give a literal or an identifier instead"
        if word.token_type in _TEXT:
            continue
        text = word.text.upper()
        if text.startswith("CURRENT_") and text[8:] in ("DATE", "TIME", "TIMESTAMP"):
            yield f"line {word.line}: {text}: no clock: pass it as a parameter"
        if _is_call(words, at) and text in _NEVER:
            yield f"line {word.line}: {text}: {_NEVER[text]}"
        if _is_call(words, at) and text in ("STRING_AGG", "LISTAGG", "GROUP_CONCAT") and not _holds(words, at, "ORDER"):
            yield f"line {word.line}: {text} without ORDER BY: the order would be an accident"


def _lint_portable(words: list[Token]) -> Iterator[str]:
    texts = [word.text.upper() if word.token_type not in _TEXT else "''" for word in words]
    for at, (word, text) in enumerate(zip(words, texts, strict=True)):
        if word.token_type == TokenType.NUMBER and "." in text and "E" not in text:
            yield f"line {word.line}: a decimal literal loses digits on Spark; write it as 3600e0"
        if _is_call(words, at) and text != "''":
            yield from _lint_call(words, texts, at)
    flat = [(part, word.line) for word, text in zip(words, texts, strict=True) for part in text.split()]
    for phrase, instead in _PHRASES.items():
        parts = phrase.split()
        for at in range(len(flat)):
            if [part for part, _ in flat[at : at + len(parts)]] == parts:
                yield f"line {flat[at][1]}: {phrase} is refused: {instead}"


def _lint_call(words: list[Token], texts: list[str], at: int) -> Iterator[str]:
    name, line = texts[at], words[at].line
    if name in _CALLS:
        yield f"line {line}: {name} is refused: {_CALLS[name]}"
    if name in ("LIST", "ARRAY_AGG") and _holds(words, at, "ORDER"):
        yield f"line {line}: {name} … ORDER BY is refused: use STRING_AGG, or rows"
    if name == "GENERATE_SERIES" and texts[max(at - 2, 0) : at] != ["UNNEST", "("]:
        yield f"line {line}: {name} is refused but as CROSS JOIN UNNEST(GENERATE_SERIES(a, b)) AS g(h)"
    if name in ("DATE_DIFF", "DATEDIFF") and words[at + 2].text.lower() != "microsecond":
        yield f"line {line}: {name} counts boundaries; write DATE_DIFF('microsecond', a, b) / 3600000000e0"
    if name == "EXTRACT" and texts[at + 2] in ("DOW", "DAYOFWEEK", "EPOCH"):
        yield f"line {line}: EXTRACT({texts[at + 2]} …) is refused: engines count differently; use ISODOW, or DATE_DIFF"
    if name in ("LEFT", "RIGHT", "SUBSTR", "SUBSTRING") and _holds(words, at, "-"):
        yield f"line {line}: {name} with a minus is refused: engines read negative lengths differently"


def _is_call(words: list[Token], at: int) -> bool:
    return at + 1 < len(words) and words[at + 1].token_type == TokenType.L_PAREN


def _holds(words: list[Token], at: int, text: str) -> bool:
    """Whether the call at `at` has the word `text` among its arguments, not deeper."""
    depth = 0
    for word in words[at + 1 :]:
        depth += (word.token_type == TokenType.L_PAREN) - (word.token_type == TokenType.R_PAREN)
        if depth == 0:
            return False
        if depth == 1 and word.token_type not in _TEXT and word.text.upper().split()[0] == text:
            return True
    return False
