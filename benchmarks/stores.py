"""The other stores of table 1 of Prasser et al. 2016, for comparison with the library's `Antichain`; and a recorder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from sqldeid.tables.model.lattice import Node
from sqldeid.tables.search.antichain import Antichain

Tree = dict[int, "Tree"]


class Store(Protocol):
    """Nodes with a property that generalisations (upwards) or specialisations inherit."""

    def covers(self, node: Node) -> bool: ...

    def add(self, node: Node) -> bool: ...


def _implies(upwards: bool, known: Node, node: Node) -> bool:
    """Whether a property of `known` is one of `node`, too."""
    if upwards:
        return all(x <= y for x, y in zip(known, node, strict=True))
    return all(x >= y for x, y in zip(known, node, strict=True))


class SimpleList:
    """Option 1: every node that was added, in a list."""

    def __init__(self, *, upwards: bool) -> None:
        self._upwards, self._known = upwards, list[Node]()

    def covers(self, node: Node) -> bool:
        return any(_implies(self._upwards, known, node) for known in self._known)

    def add(self, node: Node) -> bool:
        self._known.append(node)
        return True


class AntichainList:
    """Option 2: a list from which implied nodes are dropped."""

    def __init__(self, *, upwards: bool) -> None:
        self._upwards, self._known = upwards, list[Node]()

    def covers(self, node: Node) -> bool:
        return any(_implies(self._upwards, known, node) for known in self._known)

    def add(self, node: Node) -> bool:
        if self.covers(node):
            return False
        self._known = [known for known in self._known if not _implies(self._upwards, node, known)]
        self._known.append(node)
        return True


class PlainTree:
    """Option 3: an antichain in a prefix tree without ranks."""

    def __init__(self, *, upwards: bool) -> None:
        self._sign, self._root = 1 if upwards else -1, Tree()

    def covers(self, node: Node) -> bool:
        turned = tuple(self._sign * x for x in node)
        return bool(self._root) and self._reaches(self._root, turned, 0)

    def add(self, node: Node) -> bool:
        if self.covers(node):
            return False
        turned = tuple(self._sign * x for x in node)
        self._remove(self._root, turned, 0)
        branch = self._root
        for level in turned:
            branch = branch.setdefault(level, {})
        return True

    def _reaches(self, branch: Tree, node: Node, depth: int) -> bool:
        if depth == len(node):
            return True
        return any(level <= node[depth] and self._reaches(child, node, depth + 1) for level, child in branch.items())

    def _remove(self, branch: Tree, node: Node, depth: int) -> None:
        if depth == len(node):
            return
        for level in [level for level in branch if level >= node[depth]]:
            self._remove(branch[level], node, depth + 1)
            if not branch[level]:
                del branch[level]


class Blind:
    """No store: nothing is predicted."""

    def __init__(self, *, upwards: bool) -> None:
        pass

    def covers(self, node: Node) -> bool:
        return False

    def add(self, node: Node) -> bool:
        return True


@dataclass
class Recorder:
    """The library's store, with what it was asked.

    Parameters
    ----------
    operations
        (whether it was an insert, node, answer), in order.
    largest
        The most members the antichain had.
    """

    upwards: bool
    operations: list[tuple[bool, Node, bool]] = field(default_factory=list)
    largest: int = 0

    def __post_init__(self) -> None:
        self._store = Antichain(upwards=self.upwards)

    def covers(self, node: Node) -> bool:
        answer = self._store.covers(node)
        self.operations.append((False, node, answer))
        return answer

    def add(self, node: Node) -> bool:
        answer = self._store.add(node)
        self.operations.append((True, node, answer))
        self.largest = max(self.largest, len(self._store))
        return answer

    @property
    def inserts(self) -> int:
        """Nodes that were taken in."""
        return sum(answer for insert, _, answer in self.operations if insert)

    @property
    def hits(self) -> float:
        """Share of the queries that found the property."""
        answers = [answer for insert, _, answer in self.operations if not insert]
        return sum(answers) / len(answers) if answers else 0.0


VARIANTS: dict[str, type[SimpleList] | type[AntichainList] | type[PlainTree] | type[Antichain]] = {
    "list": SimpleList,
    "list with antichain": AntichainList,
    "tree": PlainTree,
    "tree with ranks": Antichain,
}
"""The options of table 1 by name, in its order."""
