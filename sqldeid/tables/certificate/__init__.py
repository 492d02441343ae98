"""The proof that comes with an optimum, written and checked without trusting a number of the search."""
