"""The text of evidence: what was run, on what, and three frameworks; as Markdown and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.evidence.blocks import OPEN, Block, Fact, Grid, Heading, Open, grid, markdown, open_in
from sqldeid.evidence.facts import counts
from sqldeid.evidence.frameworks import Run, ema, hipaa, iso
from sqldeid.report.html import render
from sqldeid.result import Tree

TITLE = "Evidence on a de-identification"
HEAD = (
    "For the data holder only. Counts of suppressed people, of the source and of what attackers achieve are statistics "
    "about people.",
    "This text claims nothing. It states what was asked, made, counted and attacked, under the headings that three "
    "frameworks ask for; whether any of them is met is for a person to judge. It is no legal advice. What the program "
    f"cannot know is marked: {OPEN}.",
)


def texts(run: Run) -> tuple[dict[str, bytes], int]:
    """The text as Markdown and as a page, by name; and how many places are open."""
    blocks = [*_what(run), *hipaa(run), *ema(run), *iso(run)]
    page = render("evidence.html.jinja", title=TITLE, head=HEAD, open=OPEN, blocks=[_shown(one) for one in blocks])
    written = {"evidence.md": markdown(TITLE, HEAD, blocks).encode(), "evidence.html": page.encode()}
    return written, open_in(blocks)


def _shown(block: Block) -> dict[str, object]:
    """A block for the page."""
    match block:
        case Heading(level, text):
            return {"kind": "heading", "level": level, "text": text}
        case Fact(text):
            return {"kind": "fact", "text": text}
        case Open(text):
            return {"kind": "open", "text": text}
        case Grid(caption, headings, rows):
            return {"kind": "grid", "caption": caption, "headings": headings, "rows": rows}


def _what(run: Run) -> Iterator[Block]:
    """What was run, by which program, and the hashes of what went in and came out."""
    result = run.result
    yield Heading(2, "What was run")
    source = result.get("source") or {}
    rows = [
        ("Job", str(result.get("job") or "–")),
        ("Finished (UTC)", str(result.get("finished") or "–")),
        ("Source", f"{source.get('database', '–')} ({source.get('engine', '–')})"),
        *((f"Version of {name}", str(one)) for name, one in sorted((result.get("versions") or {}).items())),
    ]
    yield grid("The run", ("What", "Which"), rows)
    yield from (counts(name, release) for name, release in run.releases.items())
    for warning in (
        *(result.get("warnings") or ()),
        *(w for r in run.releases.values() for w in r.get("warnings") or ()),
    ):
        yield Fact(f"Warning of the run: {warning}")
    yield Heading(2, "What it rests on")
    yield grid("SHA-256", ("What", "File", "SHA-256"), _hashes(run.inputs))
    yield from _not_given(run)


def _hashes(inputs: Tree) -> Iterator[tuple[str, str, str]]:
    for what in ("result", "findings", "job", "certificate"):
        if inputs[what] is not None:
            yield what, str(inputs[what].get("name") or "–"), str(inputs[what]["sha256"])
    for rules in inputs["house_rules"]:
        yield "house rules", str(rules["name"]), str(rules["sha256"])
    for one in inputs["hierarchies"]:
        yield f"{one['key']}", str(one["of"]), str(one["sha256"] or "–")
    for one in inputs["releases"]:
        yield "released file", str(one["name"]), str(one["sha256"])


def _not_given(run: Run) -> Iterator[Block]:
    """What was not named when the evidence was made, so that it is not bound by it."""
    inputs: Mapping[str, object] = run.inputs
    if not run.inputs["job"]["given"]:
        yield Open("the job itself: it was not given (--job), so only its hash is here.")
    if any(not rules["given"] for rules in run.inputs["house_rules"]):
        yield Open("the house rules themselves: they were not given (--house-rules), so only their hash is here.")
    if not inputs["releases"]:
        yield Open("which files were given away: none was named (--release), so nothing here is bound to one.")
    if inputs["certificate"] is None:
        yield Open("a proof that no less could be lost: no certificate was given (--certificate).")
