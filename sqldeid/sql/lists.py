"""The tag ``list`` of the templates: a loop whose items are separated, so that no template separates them itself.

``{% list c in columns %}{{ c.value }} AS {{ c.name }}{% endlist %}``
    writes a comma between items.
``{% list c in columns by AND %}…{% endlist %}``
    writes one of `SEPARATORS` instead.
``{% list c in columns %}{{ c.name }}{% also s in sensitive %}{{ s.name }}{% endlist %}``
    goes on with the items of further lists, each of which may be empty.

A list of parts that can be printed needs no tag: ``{{ columns }}`` prints them with commas (`sqldeid.sql.templates`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

SEPARATORS = ("AND", "OR", "UNION", "UNION ALL", "+", "|", "|| ':' ||", "|| ',' ||")
"""What may stand after ``by``; without it items are separated by commas."""


@dataclass(frozen=True, slots=True)
class _Arm:
    """One loop of a list: ``target in items``, and what it prints of each."""

    target: nodes.Expr
    items: nodes.Expr
    body: list[nodes.Node]
    line: int


class Lists(Extension):
    """Read ``list`` as one loop or more that print a separator after each item but the last of all.

    The separator goes before the white space that an item ends with, so that a line ends in a comma and begins in none.
    """

    tags = {"list"}  # noqa: RUF012 - Jinja asks for it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The loops of one tag; refuses a separator that is not one of `SEPARATORS`."""
        arms: list[_Arm] = []
        separator = ","
        while next(parser.stream).value != "endlist":
            line = parser.stream.current.lineno
            target = parser.parse_assign_target(extra_end_rules=("name:in",))
            parser.stream.expect("name:in")
            items = parser.parse_expression()
            if not arms and parser.stream.skip_if("name:by"):
                separator = _separator(parser)
            arms.append(_Arm(target, items, parser.parse_statements(("name:also", "name:endlist")), line))
        return [_loop(arm, separator, [later.items for later in arms[at:]]) for at, arm in enumerate(arms, 1)]


def grammar() -> jinja2.Environment:
    """What reads a template as `sqldeid.sql.templates` does, and renders nothing."""
    return jinja2.Environment(autoescape=False, extensions=[Lists])  # noqa: S701 - parsed, never rendered


def _separator(parser: Parser) -> str:
    line, words = parser.stream.current.lineno, ""
    while parser.stream.current.type != "block_end":
        token = next(parser.stream)
        words += {"name": f" {token.value}", "string": f" '{token.value}' "}.get(token.type, str(token.value))
    if words.strip() not in SEPARATORS:
        parser.fail(f"a list is separated by one of {', '.join(SEPARATORS)}", line)
    return f" {words.strip()}"


def _loop(arm: _Arm, separator: str, later: list[nodes.Expr]) -> nodes.For:
    """The loop of an arm, with the separator where another item follows in it or in a later one."""
    ahead: nodes.Expr = nodes.Not(nodes.Getattr(nodes.Name("loop", "load"), "last", "load"))
    ahead = reduce(nodes.Or, later, ahead)
    space = _cut_space(arm.body)
    between = nodes.If(ahead, [nodes.Output([nodes.TemplateData(separator + ("" if space else " "))])], [], [])
    end = nodes.Output([nodes.TemplateData(space)])
    return nodes.For(arm.target, arm.items, [*arm.body, between, end], [], None, False, lineno=arm.line)


def _cut_space(body: list[nodes.Node]) -> str:
    """The white space that a body ends with, taken off it."""
    last = body[-1] if body else None
    if not isinstance(last, nodes.Output) or not isinstance(data := last.nodes[-1], nodes.TemplateData):
        return ""
    text = data.data.rstrip()
    space, data.data = data.data[len(text) :], text
    return space
