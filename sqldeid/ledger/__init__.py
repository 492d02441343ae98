"""The release ledger: what was released of whom so far, so that no two releases can be compared to single anybody out.

**Cells.** A person's *trace* is the sequence, over all releases of the ledger, of what was released of the person: the
equivalence class, or nothing; and for each column released beside the class (sensitive, insensitive) which release
was the first to tell the person's value. Persons with one trace are a *cell*. A release tears a cell into parts; each
row of a part that would be too small is held back, and comes with a later load.

Guarantee
    Let p be a person of any release, and let an attacker know the traces of everybody: all quasi-identifying values at
    every load, who is in it, and whose other columns were corrected when, one by one. Whatever the attacker computes
    from all releases together (differences, intersections and unions of classes, of any number of releases), the set of
    persons behind it is empty or has at least k members, k the greatest under which they were released; and the values
    of each l-diverse or t-close column in every release are, over each such least set, l-diverse and t-close.
    *Proof.* A set that the attacker can name by classes of releases is described by traces, so it is a union of cells:
    every two persons of a cell are in the same classes of the same releases. A person of a release is in no cell of
    those who were never released. Each cell has at least its k persons, by induction over releases: a cell is made
    of k or more persons who are released for the first time in one class, and a part of a cell, released or not, is
    left as it is only if it is the whole cell or has k or more persons (`parts.decide`; `rules.judge_parts` for l
    and t, on what is released now and on what was released of the part before). Rows that a part's persons have in a
    release are indistinguishable by class, and are told from those of the class's other parts at best. A union of sets
    that meet k, l or t meets it (entropy is concave, the distance convex), so each class does, too. ∎
    In particular what joined and what left a class between *any two* releases is 0 or at least k persons (soundness.md
    6), and another node, k or column set for the same persons is held to the join of all releases, not of pairs alone.

Assumes
    One ledger, which is never rolled back, for all releases of these persons (another or an older one is told by the
    mark on the release that is replaced); the person key means one person for good; a column keeps its name.
    Persons' rows are released as they are or held back, never altered. t is measured against the table of the release
    in which a value was first released.

Does not protect
    Against what one release tells by itself (see the criteria), nor against what a missing class tells: that its rows
    were too few, or held back. A person who once left a cell with k - 1 companions is released again only with k of
    these at once: some rows never are, and the longer the series, the more. Values of the persons of a cell that are
    all the same once a criterion was not asked for are not hidden.

Source: soundness.md 5, 6, 7. The joint table of releases: Sweeney 2002, §4 (temporal attack); m-invariance (Xiao & Tao
2007) asks for less, and adds counterfeit rows.
"""
