"""The way of one table release: folded, searched, staged, verified, told."""
