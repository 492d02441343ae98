"""What mkdocs does besides: made pages, the README as home, and no page that asks the net for anything."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import pages

ROOT = pages.ROOT
MADE = {
    "reference/job-keys.md": pages.job_keys,
    "reference/command-line.md": pages.command_line,
    "reference/errors.md": pages.errors,
    "reference/python.md": pages.python,
    "reference/result.md": pages.result,
    "how-to/nightly-files.md": pages.nightly_files,
    **pages.NOTEBOOKS,
}
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
MORE = {
    "reference/job-file.md": "All keys, one by one: [every key of a job](job-keys.md).",
    "reference/commands.md": "All options, one by one: [every command and option](command-line.md).",
    "reference/exit-codes.md": "What raises them: [errors](errors.md).",
    "how-to/dbt.md": "The project, file by file: [the files of every night](nightly-files.md).",
    "how-to/nightly.md": "Job, function, tasks and dbt project, whole: [the files of every night](nightly-files.md).",
    "how-to/orchestrators.md": "The function and the tasks, whole: [the files of every night](nightly-files.md).",
    "how-to/notebooks.md": "They are on this site, too: [a table](../tutorial/notebook-tables.md), "
    "[time series](../tutorial/notebook-series.md), [event sequences](../tutorial/notebook-events.md).",
    "how-to/python.md": "All names, one by one: [Python](../reference/python.md).",
}
FETCHED = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^"'\s>]+""")


def at_top(text: str) -> str:
    """Links of a page of the top folder, as they must be from within docs/."""
    text = text.replace("](docs/", "](")
    return re.sub(r"\]\((CONTRIBUTING|CHANGELOG)\.md", lambda m: f"]({m[1].lower()}.md", text)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, and those of the top folder."""
    for path, make in MADE.items():
        files.append(File.generated(config, path, content=make()))
    for name, path in OUTSIDE.items():
        files.append(File.generated(config, path, content=at_top((ROOT / name).read_text(encoding="utf-8"))))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make of the web's Markdown that of the site, and lead to the made pages."""
    path = page.file.src_uri
    if path.startswith("design/"):
        markdown = re.sub(r"\]\(\.\./\.\./(CONTRIBUTING|CHANGELOG)\.md", lambda m: f"](../{m[1].lower()}.md", markdown)
    return pages.apart(markdown) + (f"\n{MORE[path]}\n" if path in MORE else "")


def on_post_page(output: str, **_: Any) -> str:
    """Name the two buttons of narrow screens to which the theme gives a picture alone."""
    for part, name in (("__drawer", "Navigation"), ("__search", "Search")):
        button = f'class="md-header__button md-icon" for="{part}"'
        output = output.replace(button, f'{button} title="{name}" aria-label="{name}"')
    return output


def on_post_build(config: Any) -> None:
    """Refuse a site that loads something from the net: it must work from files, where there is none.

    Raises
    ------
    PluginError
        With the page and what it asks for.
    """
    for path in sorted(Path(config["site_dir"]).rglob("*.html")):
        asked = FETCHED.search(path.read_text(encoding="utf-8"))
        if asked:
            raise PluginError(f"{path.name}: {asked[0]} is loaded from the net; take it into docs/ or leave it out")
