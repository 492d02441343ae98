"""What is done with a hostile source and job: commands, and what changes between them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.deep.hostile import NAMES, Make, Random
from tests.deep.sources import OWN, Made, change

OPTIONS: dict[str, Make] = {
    "--only": lambda r: r.choice(["one", "two", "nobody"]),
    "--replace": lambda r: None,
    "--without-ledger": lambda r: None,
    "--json": lambda r: r.choice(["result.json", "-"]),
    "--public": lambda r: r.choice(["public.json", "public.html"]),
    "--certificate": lambda r: "proof.json",
    "--report": lambda r: "report.html",
    "--ledger": lambda r: "ledger.duckdb",
    "--new-persons": lambda r: None,
    "--new-values": lambda r: r.choice(["illness", *NAMES]),
    "--policy": lambda r: r.choice(["result.json", "tree.csv", "nowhere"]),
    "--house-rules": lambda r: r.choice(["rules.toml", "lax.toml", "job.toml", "nowhere", "nul.csv"]),
    "--key-file": lambda r: r.choice(["key.txt", "tree.csv", "empty.csv"]),
    "--temp-dir": lambda r: r.choice([".", "nowhere", "job.toml"]),
    "--threads": lambda r: r.choice(["1", "0", "many"]),
    "--plan": lambda r: None,
    "-v": lambda r: None,
    "-q": lambda r: None,
    "--memory-limit": lambda r: r.choice(["1GB", "-5", "lots"]),
}
UNASKED = (
    "--house-rules",
    "--only",
    "--key-file",
    "--ledger",
    "--without-ledger",
    "--new-persons",
    "--new-values",
    "--policy",
    "--memory-limit",
    "--threads",
    "--temp-dir",
)
"""Options that are seldom right."""

CHANGES = (
    "DELETE FROM people WHERE hash(id) % 5 = 0",
    "DELETE FROM people WHERE id IN (SELECT min(id) FROM people)",
    "UPDATE people SET illness = 'HIV' WHERE hash(id) % 4 = 0",
    "UPDATE people SET illness = NULL WHERE hash(id) % 9 = 0",
    "INSERT INTO people SELECT * FROM people LIMIT 1",
    "INSERT INTO people SELECT * REPLACE (id + 100000 AS id) FROM people WHERE hash(id) % 3 = 0",
    "INSERT INTO people SELECT * REPLACE ('CANARYnew' || id AS id) FROM people WHERE hash(id) % 3 = 0",
    "ALTER TABLE people ADD COLUMN further INTEGER",
    "ALTER TABLE people DROP COLUMN note",
    "ALTER TABLE people DROP COLUMN illness",
    "ALTER TABLE people RENAME illness TO disease",
    "ALTER TABLE people ALTER illness TYPE VARCHAR[] USING [illness]",
    "DELETE FROM people",
    "DELETE FROM stays WHERE hash(stay) % 3 = 0",
    "INSERT INTO stays SELECT * FROM stays",
    "DELETE FROM charted WHERE hash(id) % 5 = 0",
    "UPDATE charted SET value = value + 1",
    "DELETE FROM moves WHERE hash(id) % 5 = 0",
    "INSERT INTO moves SELECT * FROM moves WHERE hash(id) % 4 = 0",
    "DROP TABLE visits",
)


@dataclass(frozen=True)
class Change:
    """A statement that changes the source."""

    statement: str

    def do(self, case: Case) -> None:
        """Change it, where it is a database."""
        if case.made.database:
            change(case.source, self.statement)


@dataclass(frozen=True)
class Damage:
    """A file that a command wrote, changed by somebody else: cut off, or with another number in it."""

    name: str
    seed: int

    def do(self, case: Case) -> None:
        """Damage it, where it is there."""
        r, path = random.Random(self.seed), case.folder / self.name
        if not path.is_file():
            return
        content = path.read_bytes()
        places = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
        if r.random() < 0.3 or not places:
            path.write_bytes(content[: r.randrange(len(content) + 1)])
            return
        at = r.choice(places)
        path.write_bytes(
            content[:at] + r.choice([b"9", b"-1", b"null", b'"x"', b"[]", b"1e999", b""]) + content[at + 1 :]
        )


@dataclass(frozen=True)
class Rewrite:
    """Another job under the same name: other names of releases, or another k."""

    old: str
    new: str

    def do(self, case: Case) -> None:
        """Replace the text in the job."""
        path = case.folder / "job.toml"
        path.write_text(path.read_text(encoding="utf-8").replace(self.old, self.new), encoding="utf-8")


Between = Change | Damage | Rewrite
Step = list[str] | Between


@dataclass
class Case:
    """What is run: `steps` are lists of arguments, after the program's name, and what happens between them."""

    seed: int
    folder: Path
    made: Made
    job: dict[str, Any]
    steps: list[Step] = field(default_factory=list)

    @property
    def source(self) -> Path:
        """The file."""
        return self.made.path

    @property
    def commands(self) -> list[list[str]]:
        """The steps that are commands."""
        return [step for step in self.steps if isinstance(step, list)]


def story(r: Random, case: Case) -> list[Step]:
    """Commands that follow one another as somebody's would."""
    on = [str(case.source), "--job", "job.toml"]
    made: list[str] = ["anonymize", *on, *_options(r)]
    told = r.choice([_plain, _plain, _replaced, _ledger, _proven, _policy, _renamed, _looked])(r, case, made, on)
    return [*told, *r.sample(_looks(r, case, on), r.randint(0, 2))]


def _options(r: Random) -> list[str]:
    given: list[str] = []
    for option, make in OPTIONS.items():
        if r.often(0.12, 0.01 if option in UNASKED else 0.05):
            value = make(r)
            given += [option] if value is None else [option, str(value)]
    return given


def _changes(r: Random) -> list[Step]:
    return [Change(statement) for statement in r.sample(CHANGES, r.choice([1, 1, 2]))]


def _plain(r: Random, case: Case, made: list[str], on: list[str]) -> list[Step]:
    return [made, ["verify", *on], ["assess", *on, *r.choice([[], ["--release"]])]]


def _replaced(r: Random, case: Case, made: list[str], on: list[str]) -> list[Step]:
    """A release whose source has changed is not replaced unless somebody insists."""
    return [
        *(made, *_changes(r), ["anonymize", *on, "--replace"], ["verify", *on]),
        *(["anonymize", *on, "--replace", "--without-ledger"], ["verify", *on]),
    ]


def _ledger(r: Random, case: Case, made: list[str], on: list[str]) -> list[Step]:
    kept = ["--ledger", "ledger.duckdb"]
    fresh = r.choice([[], [], ["--new-persons"], ["--new-values", "illness"]])
    return [
        *([*made, *kept], ["verify", *on, *kept], *_changes(r), ["anonymize", *on, "--replace", *kept, *fresh]),
        *(["verify", *on, *kept], ["anonymize", *on, "--replace", *r.choice([[], ["--without-ledger"]])]),
        *([Damage("ledger.duckdb", r.randrange(10**6)), ["verify", *on, *kept]] if r.random() < 0.2 else []),
    ]


def _proven(r: Random, case: Case, made: list[str], on: list[str]) -> list[Step]:
    """A certificate and a result, as written and damaged."""
    wrote = ["--certificate", "proof.json", "--json", "result.json", "--public", "public.html"]
    if r.random() < 0.3:
        wrote += ["--report", "report.html"]
    proof, result = ["verify", *on, "--certificate", "proof.json"], ["report", "result.json", "-o", "again.html"]
    taken = r.choice(_TAKEN)
    packed = ["evidence", "result.json", "-o", "evidence.zip", *taken]
    checked = ["evidence", "--check", "evidence.zip", *taken]
    return [
        *([*made, *wrote], proof, result, [*result, "--public"], packed, checked),
        *(Damage("proof.json", r.randrange(10**6)), proof, Damage("evidence.zip", r.randrange(10**6)), checked),
        *(Damage("result.json", r.randrange(10**6)), result, [*result, "--public"], packed),
    ]


def _policy(r: Random, case: Case, made: list[str], on: list[str]) -> list[Step]:
    again = ["anonymize", *on, "--policy", "result.json", "--replace", *r.choice([[], ["--without-ledger"]])]
    return [
        *([*made, "--json", "result.json"], *r.choice([[], _changes(r)]), again, ["verify", *on]),
        *(Damage("result.json", r.randrange(10**6)), again),
    ]


def _renamed(r: Random, case: Case, made: list[str], on: list[str]) -> list[Step]:
    """Another job beside the releases of the first."""
    other = r.choice([Rewrite(".one", ".other"), Rewrite("k = 2", "k = 3"), Rewrite("suppress", "mask")])
    return [
        made,
        *r.choice([[], _changes(r)]),
        other,
        ["anonymize", *on],
        ["verify", *on],
        ["anonymize", *on, "--replace"],
    ]


def _looked(r: Random, case: Case, made: list[str], on: list[str]) -> list[Step]:
    """A job that `init` writes runs as it is."""
    source, table = str(case.source), r.choice([case.made.table, *(OWN[:-1] if case.made.database else ())])
    mine = [source, "--job", "mine.toml"]
    return [
        ["init", source, table, "-o", "mine.toml"],
        ["anonymize", *mine, "--json", "result.json"],
        ["verify", *mine],
    ]


_TAKEN: tuple[list[str], ...] = (
    [],
    ["--job", "job.toml"],
    ["--certificate", "proof.json"],
    ["--house-rules", "lax.toml"],
    ["--release", "out.duckdb"],
    ["--release", "."],
    ["--result", "result.json"],
    ["--sha256", "0" * 64],
)
"""What may be given to evidence beside its file."""


_AGAIN = ([], ["--public"], ["--about", "job.toml"], ["--public", "--about", "tree.csv"])
"""What a report may be made again with."""


def _looks(r: Random, case: Case, on: list[str]) -> list[list[str]]:
    source, table = str(case.source), case.made.table
    column = r.choice([*case.made.types, "illness", "id", "note"])
    several = ",".join(r.sample([*case.made.types, "illness"], min(2, len(case.made.types))))
    shown = r.choice([*case.made.types, "illness"])  # a hierarchy is made of a column's values, and shows them
    of = ["--db", source, "--table", table, "--column", shown]
    rule = r.choice(
        ["bands=5,10", "mask=1", "edges=1", "suppress", "dates=month,year", "keep_first=2,1", "bands=0", "x="]
    )
    tree = r.choice(["tree.csv", "half.csv", "torn.csv", "empty.csv", "bom.csv", "quote.csv", "nul.csv", "adult/age"])
    seen = [*r.choice([[], ["--json", "-"], ["--json", "seen.json"], ["-v"], ["--plot", "seen.svg"]])]
    explored = [
        *(["--job", "job.toml"], ["--table", table], ["--table", table, "--columns", several]),
        *(["--table", table, "--person", "id", "--borders"], ["--table", table, "--max-size", "2", "--enough", "0.9"]),
        ["--table", "visits", "--per", "id", "--value", "code", "--order", "seq", *r.choice([[], ["--places", "1,3"]])],
        ["--table", table, "--text", "note", *r.choice([[], ["--first", "2,5"], ["--keywords", "words.toml"]])],
    ]
    k, limit = r.choice([("2,3", "0,0.1"), ("1", "0"), ("0", "2"), ("5,5", "0.5"), ("x", "")])
    asked = ["--k", r.choice(["5,20", "0", "x"]), "--population", r.choice(["1000", "0"])]
    return [
        [
            "verify",
            *on,
            *r.choice([[], ["--json", "-"], ["--ledger", "ledger.duckdb"], ["--certificate", "proof.json"]]),
        ],
        ["assess", *on, *r.choice([[], ["--release"], ["--json", "-"], ["--only", "one"]])],
        *(["explore", source, *how, *seen] for how in r.sample(explored, 3)),
        ["init", source, table, *r.choice([[], ["-o", "mine.toml"]])],
        ["tradeoff", *on, "--k", k, "--limit", limit, *r.choice([[], ["--max-loss", "0.2,1"], ["--html", "t.html"]])],
        [
            "evaluate",
            *on,
            "--label",
            r.choice(["illness", column]),
            *r.choice([[], ["--test-share", "0.5"], ["--json", "-"]]),
        ],
        ["evaluate", *on, "--label", "illness", "--test", r.choice([table, "visits"])],
        ["report", r.choice(["result.json", "job.toml"]), "-o", "again.html", *r.choice(_AGAIN)],
        ["hierarchy", "check", tree, *r.choice([[], of, [*of, "--uncovered"]])],
        ["hierarchy", "show", r.choice([tree, rule]), *r.choice([[], of, ["-v"]])],
        ["hierarchy", "build", rule, "-o", r.choice(["built.csv", "-"]), *of],
        ["privacy", "plan", *asked],
        ["evidence", r.choice(["result.json", "job.toml", "tree.csv"]), "-o", "evidence.zip", *r.choice(_TAKEN)],
        ["evidence", "--check", r.choice(["evidence.zip", "result.json", "out.duckdb"]), *r.choice(_TAKEN)],
        ["doctor", *r.choice([[], [source], [source, "--job", "job.toml"], ["nowhere"], ["--json", "-"]])],
        ["schema", *r.choice([[], ["--house-rules"]])],
    ]
