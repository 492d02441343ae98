"""Table releases whose persons have series in another release, under the same new numbers."""
