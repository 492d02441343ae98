"""Reference pages that are made from the code: every key of a job, every command and option, every error.

Nothing here is typed by hand that the code says: descriptions are those of the schema, of click and of docstrings.
An example of a key is the first that a job of the repository or of its pages gives.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from html import escape
from importlib import import_module
from inspect import cleandoc, get_annotations, getsource
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import tomlkit

import sqldeid.errors
from sqldeid.cli.app import cli
from sqldeid.errors import SqldeidError
from sqldeid.job import schema
from sqldeid.result import Result

MOST = 200
"""Letters of an example that a cell has room for."""

WIDEST = 2**63 - 1
"""A bound that engines set, not the job: it is not told."""

ROOT = Path(__file__).resolve().parents[2]
LIST = re.compile(r"(?:[-*]|\d+\.) ")
TABLE_HEAD = "| {} | type | default | what it says |\n|---|---|---|---|"


def cell(text: str) -> str:
    """Text in a cell of a table: one line, no bar of its own; what is no code is no markup."""
    return " ".join(text.split()).replace("|", "\\|")


def plain(text: str) -> str:
    """Prose of a docstring or schema in a cell: stars and angles mean themselves."""
    parts = re.split(r"(``?[^`]+``?)", text)
    kept = [p.replace("``", "`") if p.startswith("`") else re.sub(r"([*_<\[])", r"\\\1", p) for p in parts]
    return cell("".join(kept))


def toml(value: object) -> str:
    """A value as a job spells it, on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{tomlkit.key(k).as_string()} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return tomlkit.item(value).as_string().strip()


# ------------------------------------------------------------------------------------------------- keys of a job


def model_of(part: Mapping[str, Any]) -> str | None:
    """Name of the model that a part of the schema refers to."""
    return part["$ref"].rpartition("/")[2] if "$ref" in part else None


def alternatives(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A part, and what it may be besides."""
    yield part
    for word in ("anyOf", "oneOf", "allOf"):
        for other in part.get(word, []):
            yield from alternatives(other)


def type_of(part: Mapping[str, Any]) -> str:
    """Words for what a key takes."""
    for word in ("anyOf", "oneOf", "allOf"):
        if word in part:
            return " or ".join(dict.fromkeys(type_of(p) for p in part[word] if p.get("type") != "null"))
    if name := model_of(part):
        return f"[{name}](#{name.lower()})"
    if "const" in part or "enum" in part:
        return ", ".join(f"`{toml(v)}`" for v in part.get("enum", [part.get("const")]) if v is not None)
    kind = part.get("type", "anything")
    if kind == "array":
        return f"list of {type_of(part.get('items', {}))}"
    if kind == "object":
        inside = part.get("additionalProperties")
        return f"table of {type_of(inside)} by name" if isinstance(inside, Mapping) else "table"
    low = [f"{sign} {part[key]}" for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">")) if key in part]
    high = [
        f"{sign} {part[key]}"
        for key, sign in (("maximum", "≤"), ("exclusiveMaximum", "<"))
        if key in part and part[key] < WIDEST
    ]
    kinds = [kind] if isinstance(kind, str) else kind
    return " ".join([" or ".join(kinds), ", ".join(low + high)]).strip()


def collect(
    value: object, part: Mapping[str, Any], models: Mapping[str, Any], found: dict[tuple[str, str], str]
) -> None:
    """Note of each model's key the first value that a job gives it."""
    for other in alternatives(part):
        name = model_of(other)
        target = models[name] if name else other
        if isinstance(value, Mapping):
            known = target.get("properties", {})
            if name and not value.keys() <= known.keys():
                continue  # of several models it is another
            for key, inside in value.items():
                if name and key in known:
                    found.setdefault((name, key), f"{key} = {toml(inside)}")
                deeper = known.get(key, target.get("additionalProperties"))
                if isinstance(deeper, Mapping):
                    collect(inside, deeper, models, found)
        elif isinstance(value, list) and "items" in target:
            for inside in value:
                collect(inside, target["items"], models, found)


def jobs() -> Iterator[dict[str, Any]]:
    """Every job that the repository shows: that of the job file's page first, then other pages', then the examples'."""
    first = ROOT / "docs" / "reference" / "job-file.md"
    for page in [first, *sorted(p for p in (ROOT / "docs").rglob("*.md") if p != first)]:
        blocks = re.findall(r"^```toml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        yield from map(tomllib.loads, blocks)
    for path in sorted((ROOT / "examples").rglob("*.toml")):
        yield tomllib.loads(path.read_text(encoding="utf-8"))


def examples_of(whole: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """By model and key, a line of a job."""
    found: dict[tuple[str, str], str] = {}
    for job in jobs():
        collect(job, {"$ref": "#/$defs/Job"}, {**whole["$defs"], "Job": whole}, found)
    return found


def taken(key: str, part: Mapping[str, Any], examples: Mapping[tuple[str, str], str]) -> str:
    """A line with a value that the schema takes, for a key that no job of the repository uses; empty for tables."""
    if part.get("default") is not None:
        return f"{key} = {toml(part['default'])}"
    for other in alternatives(part):
        kind = other.get("type")
        if words := other.get("enum", [other["const"]] if "const" in other else []):
            return f"{key} = {toml(words[0])}"
        if kind == "array":
            inside = taken(key, other.get("items", {}), examples).partition(" = ")[2]
            return f"{key} = [{inside}]" if inside and not inside.startswith(("[", "{")) else ""
        if kind == "string":
            return next((line for (_, name), line in examples.items() if name == key and '"' in line), "")
        if kind == "boolean":
            return f"{key} = true"
        if kind in ("integer", "number"):
            low = other.get("minimum", other.get("exclusiveMinimum", 0))
            high = other.get("maximum", other.get("exclusiveMaximum", WIDEST))
            middle = low + 1 if high >= low + 1000 else (low + high) / 2
            return f"{key} = {int(middle) if kind == 'integer' else middle}"
    return ""


def rows_of(name: str, model: Mapping[str, Any], examples: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """A row of the table of a model for each key."""
    needed = model.get("required", [])
    for key, part in model.get("properties", {}).items():
        default = (
            "*needed*"
            if key in needed
            else f"`{cell(toml(part['default']))}`"
            if part.get("default") is not None
            else ""
        )
        example = examples.get((name, key)) or taken(key, part, examples)
        says = plain(part.get("description", ""))
        shown = f" Example: `{cell(example)}`" if example and len(example) <= MOST else ""
        yield f"| `{key}` | {cell(type_of(part))} | {default} | {says}{shown} |"


def job_keys() -> str:
    """The page of every key."""
    whole = schema()
    examples = examples_of(whole)
    parts = [
        "# Every key of a job",
        "Made from the schema that the program checks jobs by (`sqldeid schema` prints it for editors). Examples are "
        "lines of jobs that the repository holds; of a key that none of them uses, a value that the schema takes. "
        "[The job file](job-file.md) shows all parts together.",
    ]
    for name, model in [("Job", whole), *whole["$defs"].items()]:
        said = plain(re.split(r"\n\n(?:Attributes|Parameters)\n", model.get("description", ""))[0])
        parts += [f"## {name}", said, "\n".join([TABLE_HEAD.format("key"), *rows_of(name, model, examples)])]
    return "\n\n".join(p for p in parts if p) + "\n"


# --------------------------------------------------------------------------------------------- commands and options


def commands(
    group: click.Group, context: click.Context, above: str
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command that does something, with its whole name."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        inside = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from commands(command, inside, f"{above} {name}")
        else:
            yield f"{above} {name}", command, inside


def parameter_row(option: click.Parameter, context: click.Context) -> str:
    """A row of the table of a command."""
    record = option.get_help_record(context) if isinstance(option, click.Option) else None
    names = ", ".join([*option.opts, *option.secondary_opts]) if record else option.make_metavar(ctx=context)
    kind = option.type.get_metavar(option, ctx=context) if hasattr(option.type, "get_metavar") else None
    kind = "flag" if getattr(option, "is_flag", False) else kind or option.type.name
    default = "*needed*" if option.required else ""
    value = option.default
    if record and isinstance(value, str | int | float) and not isinstance(value, bool):
        default = f"`{cell(str(value))}`"
    return f"| `{cell(names)}` | {plain(kind)} | {default} | {plain(getattr(option, 'help', None) or '')} |"


def command_line() -> str:
    """The page of every command and option."""
    context = click.Context(cli, info_name="sqldeid")
    parts = [
        "# Every command and option",
        "Made from the program's own help. [Commands at a glance](commands.md) shows them in use; "
        "[exit codes](exit-codes.md) say how a run ended.",
    ]
    for name, command, inside in commands(cli, context, "sqldeid"):
        text = cleandoc(command.help or "").partition("\f")[0]
        usage = f"```text\n{' '.join([name, *command.collect_usage_pieces(inside)])}\n```"
        said, shown = text, (command.epilog or "").partition("Examples:")[2]
        shown = f"```text\n{cleandoc(shown)}\n```" if shown.strip() else ""
        head = f"{TABLE_HEAD.format('argument or option')}"
        rows = [parameter_row(p, inside) for p in command.get_params(inside) if not getattr(p, "hidden", False)]
        parts += [f"## {name}", usage, re.sub(r"([*<])", r"\\\1", said.strip()), shown, "\n".join([head, *rows])]
    return "\n\n".join(p for p in parts if p) + "\n"


# ----------------------------------------------------------------------------------------------------------- errors


def errors() -> str:
    """The page of every error."""
    classes = [c for c in vars(sqldeid.errors).values() if isinstance(c, type) and issubclass(c, SqldeidError)]
    rows = [
        f"| `{c.__name__}` | `{c.__bases__[0].__name__}` | {c.code} | `{c.kind}` "
        f"| {plain(cleandoc(c.__doc__ or '').splitlines()[0])} |"
        for c in classes
    ]
    said = (
        "Made from `sqldeid/errors.py`. A run of the program ends with the [exit code](exit-codes.md) of its error; "
        "from Python each is a `sqldeid.SqldeidError` with `code`, `kind`, `key` and `message`. Messages name file, "
        "release, key, table or column and what to do; they never hold a data value."
    )
    head = "| class | is a | exit code | `kind` | when |\n|---|---|---|---|---|"
    return "\n\n".join(["# Errors", said, "\n".join([head, *rows])]) + "\n"


def python() -> str:
    """The page of the Python interface; mkdocstrings fills it."""
    entries = [f"::: {sqldeid._HOMES.get(name, 'sqldeid.errors')}.{name}" for name in sqldeid.__all__]
    said = "Made from the docstrings. [From Python](../how-to/python.md) shows it in use."
    return "\n\n".join(["# Python", said, *entries]) + "\n"


# ------------------------------------------------------------------------------------------------ keys of a result

RELEASES = {
    "sqldeid.result": "TableRelease",
    "sqldeid.tables.local.result": "LocalRelease",
    "sqldeid.tables.mondrian.result": "PartitionRelease",
    "sqldeid.tables.itemset.result": "ChildRelease",
    "sqldeid.series.result": "SeriesRelease",
    "sqldeid.events.result": "EventsRelease",
}
"""What may stand below `releases`, by the module that has it."""

COMMON = {
    "achieved": "what the release achieves",
    "alone": "persons who are alone with theirs",
    "about": "title, contact, date and text that the job has for recipients",
    "after": "how lengths single people out in the release",
    "asked": "what the job asks for",
    "before": "how lengths single people out in the source",
    "below_k": "persons in groups of fewer than k",
    "certificate": "the file that the proof was written to; absent where none was asked for",
    "checks": "nodes, or cuts, that were judged",
    "classes": "groups of persons who look alike in what is released",
    "cluster_sizes": "how many parts the clusters of the source have: size, and number of clusters",
    "column": "the column that it speaks of, if it does",
    "columns": "the released columns by name",
    "criteria": "the criteria, with what was asked for and achieved",
    "differentially_private": "whether the promise is differential privacy",
    "epsilon": "the budget that was spent, where the promise has one",
    "guarantee": "the promise in words; of a release that has several, by name",
    "height": "levels of the hierarchy",
    "heuristic": "by what a part is cut, as the job names it",
    "hierarchy": "the hierarchy, as the job names it",
    "job_sha256": "hash of the job file, 64 hexadecimal digits",
    "journalist_is_prosecutor": "whether no population was given, so that both are one",
    "k": "k, as tried or as reached",
    "kind": "what the release is",
    "attack": "the attack",
    "lattice_size": "nodes that there are",
    "layers": "how many coarser releases of the same persons it consists of",
    "level": "the level, 0 is the source's own values",
    "loss": "what is lost, by the job's loss",
    "name": "what it is called",
    "parent": "the release of the persons",
    "persons": "of the source",
    "recoding": "whether classes have levels of their own",
    "released": "rows, or persons, that are released",
    "releases": "the releases by name",
    "risk": "risks of `source` and `release`",
    "search": "how the node was found",
    "sqldeid": "the version",
    "lengths": "different lengths",
    "level_name": "the level's name",
    "met": "whether every class meets it",
    "method": "the method, as the job names it",
    "moved": "rows and bytes that left the source's engine, or went to it",
    "node": "the level of each column; null where there is none",
    "nulls": "what the job asks of missing variables",
    "one_over_m": "persons the riskiest hides among: by m-concealing where that is asked for, else the smallest class",
    "optimal": "whether it is proven that nothing is better",
    "pseudonymised": "columns that hold pseudonyms",
    "reason": "why",
    "records_lost": "records of the source that no released step has",
    "role": "the column's role",
    "rows": "rows of the source",
    "seconds": "how long it took; of series, by step",
    "share_lost_mean": "mean, over persons, of the share of a person's steps that is lost",
    "share_lost_sd": "its standard deviation",
    "shown": "the label that rows show",
    "source": "the database, as the user named it, and its engine",
    "statements": "SQL statements that the search ran",
    "steps_lost_mean": "mean of the steps that a person loses",
    "steps_lost_sd": "its standard deviation",
    "suppressed": "rows that are left out",
    "suppression_by": "for each column and value, the share of its rows that is left out",
    "suppression_limit": "the greatest share that the job lets be left out",
    "targets": "what features are moved to, as the job says",
    "text": "the promise in words",
    "too_short": "persons whose series are too short to be released",
    "type": "the type of the released column",
    "unit": "what k counts: persons, or rows where no key tells persons",
    "utility": "figures of what analyses lose, by name",
    "variables": "names of the variables",
    "verified": "what the re-check counted on what was written",
    "warnings": "what deserves a second look, one sentence each",
    "written": "where it was written",
}
"""What keys say of which neither a docstring nor its list of parameters tells."""

OWN = {
    ("DurationReport", "k"): "persons who share a length, at least",
    ("DurationReport", "moved"): "persons who got another length",
    ("SearchResult", "loss"): "the job's loss by its name",
    ("SetRisk", "columns"): "the columns of the set",
    ("Tradeoff", "loss"): "the job's loss by its name",
}
"""The same of keys that mean something else in a part of their own."""

KNOWN = {"Any": Any, "Callable": Callable, "Mapping": Mapping}
"""Names of types that modules import for their checks alone."""

UNWRITTEN = {"page", "tables_in_memory"}
"""Fields that no JSON has: what is in memory alone. Nor has a release its name, which is the key that leads to it."""


def result() -> str:
    """The page of a result's keys: fields and properties of what `to_dict` writes, with their docstrings."""
    roots = [Result, *(getattr(import_module(module), name) for module, name in RELEASES.items())]
    text = [
        "# Every key of a result",
        "Made from the docstrings of what `--json` writes. A result is for the data holder only, as `audience` says; "
        "`--public` writes what may go with a release. [Your first run](../tutorial/first-run.md) shows one.",
    ]
    for part in dict.fromkeys(found for root in roots for found in parts_of(root)):
        said, told = documented(part)
        rows = [
            f"| `{name}` | {cell(kind)} | {plain(told.get(name, '') or said_of(part, name))} |"
            for name, kind in keys_of(part)
        ]
        text += [f"## {part.__name__}", said, "| key | type | what it says |\n|---|---|---|\n" + "\n".join(rows)]
    return "\n\n".join(text) + "\n"


def parts_of(part: type) -> Iterator[type]:
    """A dataclass, and those that its fields hold, each before what it holds itself."""
    yield part
    hints = get_type_hints(part, vars(import_module(part.__module__)) | KNOWN)
    for one in fields(part):
        if one.name not in UNWRITTEN:
            for inside in held_by(hints[one.name]):
                yield from parts_of(inside)


def held_by(kind: Any) -> Iterator[type]:
    """The dataclasses in a type."""
    if isinstance(kind, type) and is_dataclass(kind):
        yield kind
    for inside in get_args(kind):
        yield from held_by(inside)


def keys_of(part: type) -> Iterator[tuple[str, str]]:
    """Each key with its type: fields, then what properties add."""
    named = {"name"} if any(one.name == "kind" for one in fields(part)) else set()
    for one in fields(part):
        if one.name not in UNWRITTEN | named:
            yield one.name, in_json(str(one.type))
    written = getsource(part.to_dict) if hasattr(part, "to_dict") else ""
    for name, value in vars(part).items():
        if isinstance(value, property) and f'"{name}"' in written:
            yield name, in_json(str(get_annotations(value.fget)["return"]))


def in_json(kind: str) -> str:
    """A type as JSON has it."""
    words = {"str": "text", "int": "number", "float": "number", "bool": "true or false", "None": "null", "list": "list"}
    found = []
    for one in re.split(r" \| (?![^\[]*\])", kind):
        name = one.partition("[")[0]
        found.append(
            words.get(name, "list" if name in ("tuple", "Sequence") else "text" if name == "Literal" else "object")
        )
    return " or ".join(dict.fromkeys(found))


def documented(part: type) -> tuple[str, dict[str, str]]:
    """The prose of a class, and what its docstring says of each parameter."""
    prose, *rest = re.split(r"\n(?:Parameters|Attributes)\n-{10}\n", cleandoc(part.__doc__ or ""))
    listed = "\n".join(rest)
    told = {}
    for names, text in re.findall(r"^(\w[\w, ]*)\n((?: {4}.*\n?)+)", listed + "\n", flags=re.MULTILINE):
        told |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return prose.strip(), told


def said_of(part: type, name: str) -> str:
    """The docstring of a property; of a field that no list names, where the prose tells of it, else what is common."""
    value = vars(part).get(name)
    if isinstance(value, property):
        return cleandoc(value.__doc__ or "")
    return "see above" if f"`{name}`" in (part.__doc__ or "") else OWN.get((part.__name__, name)) or COMMON[name]


# ------------------------------------------------------------------------------------------------ executed notebooks


def notebook(name: str) -> str:
    """A notebook of `examples/notebooks` as a page: its text, its code, and what it showed when it was executed."""
    cells = json.loads((ROOT / "examples" / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    head, _, rest = "".join(cells[0]["source"]).partition("\n")
    where = f"This is the notebook `examples/notebooks/{name}.ipynb`, with what it showed when it was executed last."
    parts = [head, where, rest.strip()]
    for cell in cells[1:]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [_output(output, cell["metadata"].get("alt", "")) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


NOTEBOOKS = {f"tutorial/notebook-{name}.md": partial(notebook, name) for name in ("tables", "series", "events")}
"""By the page's place, what makes it."""


def _output(output: Mapping[str, Any], alt: str) -> str:
    """What a cell shows: of several kinds the one that a notebook shows."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        return f'<img alt="{escape(alt)}" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        return " ".join(re.sub(r' (?:border|class|style)="[^"]*"', "", html).split())  # a blank line would end it
    return f"```text\n{''.join(data['text/plain']).strip()}\n```"


# ------------------------------------------------------------------------------------------------ files of an example

WRITTEN_IN = {".md": "", ".sh": "sh", ".py": "python", ".toml": "toml", ".yml": "yaml", ".sql": "sql"}
"""By the ending of a file, how its text is coloured."""


def nightly_files() -> str:
    """The page of all files of `examples/nightly`: its README, and each file as it is."""
    folder = ROOT / "examples" / "nightly"
    head, _, rest = (folder / "README.md").read_text(encoding="utf-8").partition("\n")
    parts = [
        f"{head}: the files",
        "These are the files of `examples/nightly`, as the repository has them.",
        rest.strip(),
    ]
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix in WRITTEN_IN):
        if path.name != "README.md":
            text = path.read_text(encoding="utf-8").strip()
            parts += [f"## {path.relative_to(folder).as_posix()}", f"```{WRITTEN_IN[path.suffix]}\n{text}\n```"]
    return "\n\n".join(parts) + "\n"


# --------------------------------------------------------------------------------------------------------- Markdown


def apart(text: str) -> str:
    """An empty line before each list and table that follows prose: what reads Markdown on the web needs none."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        code = code != line.startswith("```")
        before = lines[-1] if lines else ""
        inside = LIST.match(before) or before.startswith((" ", "|")) or not before.strip()
        if not code and not inside and (LIST.match(line) or line.startswith("|")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"
