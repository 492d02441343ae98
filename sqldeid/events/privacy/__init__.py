"""What protects the objects: `ratio` is the test of Shaked and Rokach (2016), `laplace` is differential privacy."""
