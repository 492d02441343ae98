"""What protects the objects: `ratio` is the source's test, `laplace` is differential privacy."""
