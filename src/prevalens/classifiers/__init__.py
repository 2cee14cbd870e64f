"""Room: classifiers."""
