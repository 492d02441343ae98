"""The source folded to coded classes by one GROUP BY."""
