"""The independent re-check of a release: on values, by other SQL than the search."""
