"""Room: aggregators."""
