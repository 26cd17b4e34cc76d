"""Scale runs and comparisons, started by `make bench`. None is in CI."""
