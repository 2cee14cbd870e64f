"""Studies: published experiments, run again with the public parts of this package."""
