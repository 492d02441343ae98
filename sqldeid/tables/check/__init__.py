"""Nodes of the lattice checked on the folded classes, many in one statement."""
